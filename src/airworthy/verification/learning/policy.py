"""The policy: item 7 of SOUS VIDE's acceptance list (specification, sections 7 and 12), and its runner beside its twin.

The history network: items 8 and 9 of SOUS VIDE's acceptance list (specification, sections 7, 8 and 12).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from airworthy.benchmarks.tracking.adaptation import check_formula
from airworthy.benchmarks.tracking.tables import class_of
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AssetError
from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.learning.svnet.adaptation import AdaptationConfig, estimated_parameters, measure_adaptation
from airworthy.learning.svnet.data import ExpertPairs, training_data
from airworthy.learning.svnet.metrics import ratio_of
from airworthy.learning.svnet.options import RunOptions, SvNetOptions
from airworthy.learning.synthesis import RATE, RolloutPlan, SynthesisConfig, roll_out
from airworthy.pilots.pilot import observe
from airworthy.pilots.svnet.contract import WEIGHTS_FILE, PolicyContract, PolicyImage, read_policy, shipped_policy
from airworthy.pilots.svnet.features import HISTORY_SIZE, HISTORY_TICKS, OBJECTIVE_SIZE, OBSERVABLE_SIZE, history_features
from airworthy.pilots.svnet.network import Reading, SvNetwork, svnet_twin
from airworthy.pilots.svnet.pilot import SvNetPilot, objective_of
from airworthy.pilots.svnet.variants import PUBLISHED, tensor_shapes, variant
from airworthy.simulation import FlightTable, MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_state import Sample
from airworthy.tasks import TrackingReference
from airworthy.trajectories import course
from airworthy.vehicles import vehicle
from airworthy.verification.published import Figure, below, zero

__all__ = [
    "formula_figures",
    "frozen_figures",
    "has_torch",
    "metric_figures",
    "network_figures",
    "place_figures",
    "random_weights",
    "runner_figures",
    "size_figures",
    "usable_policy",
]


# -----------------------------------------------------------------------------------------------------------------------------
# How flights are judged: item 10 of SOUS VIDE's acceptance list (specification, sections 9 and 12), by hand-made flights.

T = np.arange(0.0, 10.0 + 1e-9, 0.05)
"""(201,) [s]"""
LINE = TrackingReference(T, np.stack([T, 0.0 * T, 0.0 * T + 1.0], 1), np.tile([1.0, 0.0, 0.0], (len(T), 1)), 0.0 * T)
"""Along x at 1 m/s, 1 m up, facing along it."""


def metric_figures() -> Iterator[Figure]:
    """Check every outcome class once, and the metrics of a flight whose numbers can be written down."""
    flights = _flights()
    for wanted, (table, collisions) in flights.items():
        (found,) = evaluate_tracking(table, LINE)
        wrong = int(class_of(found.outcome) != wanted) + int(found.collisions != collisions)
        yield zero(f"SOUS VIDE 10, hand-made flight '{wanted.replace('_', ' ')}': class and collisions that differ", wrong)
    # 0.2 m beside the path up to 5 s (101 rows), 0.4 m after that (100), touching once; float32 columns.
    aside = np.where(T <= 5.0 + 1e-9, 0.2, 0.4)
    (found,) = evaluate_tracking(_flight(y=aside, clearance=_touching()), LINE)
    error, near, length = (101 * 0.2 + 100 * 0.4) / 201, 100.0 * 101 / 201, 199 * 0.05 + np.hypot(0.05, 0.2)
    case = "SOUS VIDE 10, hand-made flight with one touch:"
    yield below(f"{case} tracking error off that by hand", abs(found.tracking_error_m - error), 1e-6, "m")
    yield below(f"{case} proximity off that by hand", abs(found.proximity_percent - near), 1e-6, "%")
    yield below(f"{case} collisions per metre off those by hand", abs(found.collisions_per_m * length - 1.0), 1e-6)


def _flights() -> dict[str, tuple[FlightTable, int]]:
    """By the paper's class: a flight, and how often it collides."""
    leaving = np.where(T > 5.0, T - 5.0, 0.0)
    return {
        "success": (_flight(y=0.2), 0),
        "success_recovered": (_flight(y=0.2, clearance=_touching()), 1),
        "partial": (_flight(yaw=np.where(T > 9.5, np.radians(35.0), 0.0)), 0),
        "failure_no_recovery": (_flight(y=leaving, clearance=_touching()), 1),
        "failure_off_course": (_flight(y=leaving), 0),
    }


def _touching() -> Array:
    """Clearance [m] of a flight that comes within the drone's 0.15 m once."""
    return np.where(np.abs(T - 5.0) < 0.2, 0.1, 1.0)


def _flight(y: Any = 0.0, yaw: Any = 0.0, clearance: Any = 1.0) -> FlightTable:
    """Along the line, moved aside by y [m], turned by yaw [rad], with a clearance [m]."""
    zeros = np.zeros(len(T))
    columns: dict[str, Any] = {"env": zeros, "t": T, "status": zeros}
    columns |= {f"velocity_{axis}_m_s": zeros for axis in "xyz"} | {f"rate_{axis}_rad_s": zeros for axis in "xyz"}
    columns |= {"position_x_m": T, "position_y_m": y + zeros, "position_z_m": 1.0 + zeros}
    columns |= {"attitude_x": zeros, "attitude_y": zeros}
    columns |= {"attitude_z": np.sin(0.5 * (yaw + zeros)), "attitude_w": np.cos(0.5 * (yaw + zeros))}
    return FlightTable.from_columns({**columns, "clearance_m": clearance + zeros})


# -----------------------------------------------------------------------------------------------------------------------------

Weights = dict[str, ArrayF32]
BLOCKS = {
    "history": ("history network", 7_226),
    "vision.backbone": ("SqueezeNet 1.1", 1_235_496),
    "vision.head": ("feature network", 679_296),
    "command": ("command network", 26_804),
    "": ("whole", 1_948_822),
}
"""Of SV-Net: what it is called, and how many numbers it learns (specification, section 7)."""
READS = {"sv_net": 162, "no_rma": 154, "no_pretrain": 162, "no_latent": 156, "hp_net": 37}
"""Inputs of each command network: those of section 7; of HP-Net state (11), objective (18) and latent (8)."""
TOTALS = {"no_rma": 1_940_796, "no_pretrain": 1_948_822, "no_latent": 1_948_222, "hp_net": 21_530}
"""Numbers of each, by the layers of section 7 with these inputs: 100 (inputs + 1) + 10,100 + 404 of the command network."""
SIDE, FLIGHTS, TICKS, FAR = 24, 3, 12, 1_024.0
FULL_FORCE = 27.6
"""Of the reference drone [N]."""
SECONDS = 0.4
"""For how long decisions are timed [s]."""


# ---- 7: sizes -----------------------------------------------------------------------------------------------------------


def size_figures() -> Iterator[Figure]:
    """Check counts of all tensors by the names and shapes that policies are read and written with."""
    for block, (name, expected) in BLOCKS.items():
        yield _count(f"SOUS VIDE 7, SV-Net, {name}: numbers", _numbers("sv_net", block), expected)
    for name, expected in TOTALS.items():
        yield _count(f"SOUS VIDE 7, {name}, whole: numbers", _numbers(name), expected)
    for name, expected in READS.items():
        yield _count(
            f"SOUS VIDE 7, {name}: inputs of the command network", tensor_shapes(name)["command.0.weight"][1], expected
        )


def _numbers(name: str, block: str = "") -> int:
    return sum(int(np.prod(shape)) for key, shape in tensor_shapes(name).items() if key.startswith(block))


def _count(label: str, measured: int, expected: int) -> Figure:
    return Figure(label, measured, f"{expected:,}", measured == expected)


# ---- 7: where it is does not matter -------------------------------------------------------------------------------------


class _Film:
    """Mounted sensors that show every flight the same pictures, wherever it is."""

    names = ("camera",)

    def __init__(self, count: int):
        self.count, self.tick = count, 0

    def latest(self, name: str) -> Sample:
        """Return the picture of this tick."""
        picture = np.random.default_rng(self.tick).integers(0, 256, (1, SIDE, SIDE, 3), np.uint8)
        numbers = np.full(self.count, self.tick, np.int64)
        sensed = {"rgb": np.repeat(picture, self.count, axis=0)}
        known, position, turn = np.ones(self.count, bool), np.zeros((self.count, 3)), np.zeros((self.count, 4))
        return Sample(numbers / 20.0, numbers, numbers, known, position, turn, sensed)


def place_figures() -> Iterator[Figure]:
    """Check flights here and a kilometre away, with the same pictures; and a little higher, which must matter."""
    for name in PUBLISHED:
        if not variant(name).vision:
            continue
        here = _flown(name, (0.0, 0.0, 1.0))
        away = _flown(name, (FAR, -0.5 * FAR, 1.0))
        other = int((here != away).any(axis=-1).sum())
        yield zero(f"SOUS VIDE 7, {name}: of {here[..., 0].size} commands, with other bytes 1.1 km away", other)
        higher = int((here == _flown(name, (0.0, 0.0, 1.3))).all(axis=-1).sum())
        yield zero(f"SOUS VIDE 7, {name}: of {here[..., 0].size} commands, the same 0.3 m higher", higher)


def _flown(name: str, start: tuple[float, float, float]) -> Array:
    """Commands (TICKS, FLIGHTS, 4) of closed-loop flights from a place, each at its own velocity."""
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
    simulator = Simulator(vehicle("carl"), config, FLIGHTS)
    velocity = np.random.default_rng(5).uniform(-0.5, 0.5, (FLIGHTS, 3))
    simulator.reset(position=start, velocity=velocity)
    contract = PolicyContract(name, PolicyImage.of_side(SIDE))
    network = SvNetwork(contract, random_weights(name))
    pilot = SvNetPilot(contract, network, objective_of(course("robustness").trajectory()), np.full(FLIGHTS, FULL_FORCE))
    film, given = _Film(FLIGHTS), []
    for tick in range(TICKS):
        film.tick = tick
        given.append(pilot.command(observe(simulator, pilot.observes, cast(MountedSensors, film))))
        simulator.step(given[-1])
    return np.stack(given)


# ---- the runner ---------------------------------------------------------------------------------------------------------


def runner_figures() -> Iterator[Figure]:
    """Check the native network beside its NumPy twin, and how long one decision takes here."""
    weights = random_weights("sv_net")
    for side in (112, 224):
        contract, reading = PolicyContract("sv_net", PolicyImage.of_side(side)), _reading(2, side)
        network = SvNetwork(contract, weights, threads=1)
        found, wanted = network(reading), svnet_twin(contract, weights, reading)
        gap = float(np.abs(found.command - wanted.command).max())
        # Sums of up to 1,005 terms in float32, in another order: some 2^-23 of their largest part.
        yield below(f"SV-Net at {side} x {side}: commands off those of the NumPy twin, worst", gap, 1e-5)
        yield _timed(f"SV-Net at {side} x {side}: a decision, processor time of one thread", _decision(network, side), "ms")


def _timed(label: str, measured: float, unit: str) -> Figure:
    """Check a figure that depends on the machine, and is not judged."""
    return Figure(label, measured, "not judged; a tick is 50 ms", True, unit)


def _decision(network: SvNetwork, side: int) -> float:
    """Return the shortest of some decisions for one flight [ms]."""
    reading = _reading(1, side)
    spent: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(spent) < 5:
        begun = time.process_time()
        network(reading)
        spent.append(time.process_time() - begun)
    return 1e3 * min(spent)


def _reading(count: int, side: int) -> Reading:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (count, side, side, 3), np.uint8)
    state, objective, history = (rng.normal(size=(count, size)) for size in (OBSERVABLE_SIZE, OBJECTIVE_SIZE, HISTORY_SIZE))
    return Reading(state, objective, history, images)


def random_weights(name: str) -> Weights:
    """Draw weights of a variant: numbers neither fade nor grow on their way, and commands are near hover."""
    rng = np.random.default_rng(0)

    def drawn(key: str, shape: tuple[int, ...]) -> ArrayF32:
        if len(shape) == 1:
            return rng.uniform(-0.1, 0.1, shape).astype(np.float32)
        gain = 6.0 if "backbone" in key else 1.0  # He's rule: a rectifier takes half
        return (rng.uniform(-1.0, 1.0, shape) * np.sqrt(gain / np.prod(shape[1:]))).astype(np.float32)

    found: Mapping[str, ArrayF32] = {key: drawn(key, shape) for key, shape in tensor_shapes(name).items()}
    return {**found, "command.2.bias": np.array([-0.41, 0.0, 0.0, 0.0], np.float32)}


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
    """Check c + z_B . f_add / f and |f_add| sin(angle), beside what fits the motion of pushed drones."""
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
