"""`airworthy train adaptation POLICY`: what the history network of a trained policy knows in flight."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.learning.svnet.adaptation import Adaptation, AdaptationConfig, measure_adaptation

_DESCRIPTION = (
    "Measure what the history network of a trained policy knows: the expert flies nominal drones, drones with a payload, and"
    " drones that take it on in mid-flight, and the network is asked for force of a rotor over mass at every tick."
)


@dataclass(frozen=True)
class PolicyConfig:
    """Whose history network."""

    policy: Positional[Path]
    """Folder of a policy."""


@dataclass(frozen=True)
class MeasureConfig(AdaptationConfig, PolicyConfig):
    """What to measure."""

    device: str = "cpu"
    """Of simulation and expert: cpu or cuda:0."""
    json: bool = False
    """Print JSON."""


def measure(argv: list[str], prog: str) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(MeasureConfig, argv, prog, _DESCRIPTION)
    chosen = AdaptationConfig(**{item.name: getattr(config, item.name) for item in fields(AdaptationConfig)})
    found = measure_adaptation(config.policy, chosen, config.device)
    if config.json:
        emit_json({"policy": str(config.policy), **found.described()})
    else:
        _show(found)
    return 0


def _show(found: Adaptation) -> None:
    names = ("nominal", f"{100.0 * found.config.payload:+g} % mass")
    known = zip(names, (found.nominal, found.payload), strict=True)
    rows = [(name, item.mean, item.std, item.true, 100.0 * item.error) for name, item in known]
    show_table("Force of a rotor over mass [N/kg]", ("drone", "estimated", "std", "true", "error [%]"), rows)
    share = 100.0 * found.payload_share
    print(f"Of the way to the true value under the payload: {share:.1f} % (published, on real flights: 72 %).")
    show_table(
        "A payload in mid-flight",
        ("time since then", "of the way [%]"),
        [(k, 100.0 * v) for k, v in found.response.items()],
    )
