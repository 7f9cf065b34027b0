"""The history network: items 8 and 9 of SOUS VIDE's acceptance list (specification, sections 7, 8 and 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.adaptation import check_formula
from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError
from airworthy.learning.svnet.adaptation import AdaptationConfig, estimated_parameters, measure_adaptation
from airworthy.learning.svnet.data import ExpertPairs, training_data
from airworthy.learning.svnet.metrics import ratio_of
from airworthy.learning.svnet.options import RunOptions, SvNetOptions
from airworthy.learning.synthesis import RATE, RolloutPlan, SynthesisConfig, roll_out
from airworthy.pilots.svnet.contract import WEIGHTS_FILE, read_policy, shipped_policy
from airworthy.pilots.svnet.features import HISTORY_TICKS, history_features
from airworthy.pilots.svnet.variants import variant
from airworthy.vehicles import vehicle
from airworthy.verification.published import Figure, below, zero

__all__ = ["formula_figures", "frozen_figures", "has_torch", "network_figures", "usable_policy"]

Tensors = Mapping[str, ArrayF32]
UNSEEN_SEED = 9_001
"""Of the roll-outs by which the history network is judged: no policy is trained on it."""
EVERY = 15
"""Of the published roll-outs every so many is flown."""


def usable_policy() -> Path | None:
    """Return the folder of the policy that ships with the package; None: it is missing or cannot be read."""
    try:
        folder = shipped_policy()
        read_policy(folder)
    except AssetError:
        return None
    return folder


def has_torch() -> bool:
    """Tell whether torch is installed."""
    return find_spec("torch") is not None


# ---- 8: what it knows ---------------------------------------------------------------------------------------------------


def network_figures(folder: Path, flights: int = 20) -> Iterator[Figure]:
    """Check the history network of a policy on data it has not seen, and in the flights of `airworthy train adaptation`.

    Args:
        folder: Of the policy.
        flights: Of each kind.
    """
    size = (folder / WEIGHTS_FILE).stat().st_size
    yield below("Shipped policy: its weights", size / 1e6, 8.0, "MB")
    error, of_mean, count = _ratio_errors(folder)
    label = f"SOUS VIDE 8, shipped policy: k / m of {count} unseen roll-outs, root mean square error"
    yield Figure(label, error, f"under {of_mean:.3g}, of the mean predictor", error < of_mean, "N/kg")
    found = measure_adaptation(folder, AdaptationConfig(flights=flights))
    label = f"SOUS VIDE 8, shipped policy: k / m over {flights} nominal flights, mean off the true one"
    yield below(label, 100.0 * abs(found.nominal.error), 1.0, "%")
    share = 100.0 * found.payload_share
    label = f"SOUS VIDE 8, shipped policy: of the way to the true k / m under +30 % payload, {flights} flights"
    yield Figure(label, share, "70 to 130 (published: 72)", 70.0 <= share <= 130.0, "%")


def _ratio_errors(folder: Path) -> tuple[float, float, int]:
    """Of the force k of one rotor over mass [N/kg], by the network and by who always says these roll-outs' own mean, where the
    history is full."""
    contract, weights = read_policy(folder)
    plan = RolloutPlan(SynthesisConfig(seed=UNSEEN_SEED))
    flown = roll_out(plan, np.arange(0, plan.count, EVERY))
    clock = np.arange(flown.command.shape[1]) / RATE
    history = history_features(clock, flown.sensed, flown.command, contract.history)[:, HISTORY_TICKS:]
    true = (flown.force / flown.mass)[:, None]
    given = ratio_of(estimated_parameters(weights, history))
    errors = [float(np.sqrt(np.mean(np.square(found - true)))) for found in (given, true.mean())]
    return errors[0], errors[1], len(true)


def formula_figures() -> Iterator[Figure]:
    """c + z_B . f_add / f and |f_add| sin(angle), beside what fits the motion of pushed drones."""
    checks = check_formula(vehicle("carl"), tuple(range(0, 181, 15)))
    ratio = max(abs(item.fitted / item.predicted - 1.0) for item in checks)
    left = max(abs(item.remainder - item.remainder_predicted) for item in checks)
    # A change of velocity of 0.1 m/s in a float32 is good to 1e-8 of it, times 20 Hz.
    yield below(f"SOUS VIDE 8, {len(checks)} pushes: fitted ratio off c + z_B . f_add / f, worst, relative", ratio, 1e-5)
    label = f"SOUS VIDE 8, {len(checks)} pushes: acceleration left by the fit off |f_add| sin(angle), worst"
    yield below(label, left, 1e-4, "m/s^2")


# ---- 9: it stays as it is -----------------------------------------------------------------------------------------------


def frozen_figures(pairs: ExpertPairs, variants: tuple[str, ...] = ("sv_net", "no_latent")) -> Iterator[Figure]:
    """Check both steps of a training on a few pairs, and which tensors each moved. Needs torch.

    Args:
        pairs: With images, some held out.
        variants: To train.
    """
    for name in variants:
        before, between, after = _trained(pairs, name)
        mine = [key for key in after if key.startswith("history.")]
        rest = [key for key in after if key not in mine]
        label = f"SOUS VIDE 9, {name}: of {len(mine)} tensors of the history network,"
        yield zero(f"{label} other bytes after the command step", len(mine) - _same(between, after, mine))
        # Or nothing would have been learnt, and nothing proven.
        yield zero(f"{label} the same bytes after the history step", _same(before, between, mine))
        label = f"SOUS VIDE 9, {name}: of {len(rest)} other tensors, the same bytes after the command step"
        yield zero(label, _same(between, after, rest))


def _trained(pairs: ExpertPairs, name: str) -> tuple[Tensors, Tensors, Tensors]:
    """Tensors before the history step, between the steps, and after the command step."""
    from airworthy.learning.machine import computing, machine_for
    from airworthy.learning.svnet.run import SvNetRun

    options = SvNetOptions(name, epochs=2, history_epochs=2, batch=16, history_batch=16, view=32, precision="float32")
    data = training_data(pairs, variant(name), options.form, options.view)
    with computing(machine_for(RunOptions(device="cpu", threads=1), options.precision)) as device:
        run: Any = SvNetRun(data, options, device)
        before, steps = run.weights("last"), run.minibatches()
        while run.stage.name == "history":
            next(steps)
        between = run.weights("last")
        for _ in steps:
            pass
        return before, between, run.weights("last")


def _same(a: Tensors, b: Tensors, names: list[str]) -> int:
    return sum(a[name].tobytes() == b[name].tobytes() for name in names)
