"""`airworthy verify`: acceptance figures, of physics and geometry to what learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import chain
from typing import Literal

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.files import data_dir
from airworthy.core.jobs.progress import progress
from airworthy.verification import (
    Figure,
    flightgoggles_figures,
    geometry_figures,
    navigation_figures,
    navigation_left_out,
    promise_figures,
    published_figures,
    scene_figures,
    sensor_figures,
    splat_figures,
)
from airworthy.verification.articulated.figures import articulated_figures, articulated_left_out
from airworthy.verification.capture import marker_figures
from airworthy.verification.gates import gate_figures, gates_left_out
from airworthy.verification.identification.figures import identify_figures
from airworthy.verification.learning import sousvide_figures, sousvide_left_out
from airworthy.verification.learning.trainers import learning_figures, learning_left_out

_DESCRIPTION = (
    "Measure physics, vehicles with joints, geometry, places, sensors, splats, identification, the lists of SOUS VIDE,"
    " navigation, gates and learning here, and print each figure beside what it must be."
)

Group = Literal[
    "motion",
    "articulated",
    "geometry",
    "scenes",
    "sensors",
    "splats",
    "identify",
    "sousvide",
    "navigation",
    "gates",
    "learning",
]


@dataclass(frozen=True)
class VerifyConfig:
    """What to measure, and how to print it."""

    json: bool = False
    """Print a JSON list of figures."""
    all: bool = False
    """Also what takes minutes: every way and export, 10,000 damaged files of each format, ten times the draws, the published
    data set twice, 20 forests of each planner's demonstration, straight flight through the whole navigation benchmark, five
    vehicles that learn to hover, eleven vehicles identified from their flights."""
    only: tuple[Group, ...] = ()
    """Groups of figures; none: all of them."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where every figure is as it must be, else 1."""
    config = run_tyro(VerifyConfig, argv, "airworthy verify", _DESCRIPTION)
    chosen = [make(config.all) for group, make in GROUPS.items() if group in config.only or not config.only]
    measured = progress(chain.from_iterable(chosen), "verifying", quiet=config.json)
    # Figures of the benchmark's places are in two groups: told once where they agree.
    found = list(dict.fromkeys(measured))
    if config.json:
        emit_json([asdict(figure) for figure in found])
    else:
        rows = [(f.name, _shown(f.measured), f.unit, f.aim, "yes" if f.passed else "NO") for f in found]
        show_table("", ("figure", "measured", "unit", "must be", "is it"), rows)
        failed = sum(not f.passed for f in found)
        print(f"{len(found) - failed} of {len(found)} figures are as they must be.")
        for line in left_out(config):
            print(line)
    return int(any(not f.passed for f in found))


def _shown(measured: float) -> float | int:
    """Return counts with all their digits."""
    return int(measured) if float(measured).is_integer() else measured


def left_out(config: VerifyConfig) -> list[str]:
    """Return what was not measured, one sentence each."""
    lines = []
    if data_dir() is None:
        lines.append("AIRWORTHY_DATA is unset: comparisons with reference files were left out.")
    if find_spec("embreex") is None and ("geometry" in config.only or not config.only):
        lines.append("The package embreex is not installed: comparisons with Embree were left out.")
    for group, describe in LEFT_OUT.items():
        if group in config.only or not config.only:
            lines += describe()
    if not config.all:
        lines.append("What takes minutes was left out: run with --all.")
    return lines


def _motion(everything: bool) -> Iterator[Figure]:
    return chain(flightgoggles_figures(), promise_figures(), published_figures())


def _sousvide(everything: bool) -> Iterator[Figure]:
    return chain(sousvide_figures(everything), marker_figures(everything))


GROUPS: dict[Group, Callable[[bool], Iterator[Figure]]] = {
    "motion": _motion,
    "articulated": articulated_figures,
    "geometry": geometry_figures,
    "scenes": scene_figures,
    "sensors": sensor_figures,
    "splats": splat_figures,
    "identify": identify_figures,
    "sousvide": _sousvide,
    "navigation": navigation_figures,
    "gates": gate_figures,
    "learning": learning_figures,
}
LEFT_OUT: dict[Group, Callable[[], list[str]]] = {
    "articulated": articulated_left_out,
    "sousvide": sousvide_left_out,
    "navigation": navigation_left_out,
    "gates": gates_left_out,
    "learning": learning_left_out,
}
"""What a group cannot measure here, in sentences."""
