"""`airworthy verify`: acceptance figures, of physics and geometry to what learns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal

from airworthy.cli.common import interrupted, run_tyro, stopped_by_terminate
from airworthy.core.files import data_dir, json_text, lock_folder, make_folder
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.core.jobs.block_store import plain
from airworthy.core.jobs.progress import waiting
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
from airworthy.verification.identification.figures import identify_left_out, identify_parts
from airworthy.verification.keeping import MANIFEST_FILE, FigurePart, FigureStore, figure_identity, memo_in_memory
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
    """Print a JSON list of figures, a line each as it is found."""
    all: bool = False
    """Also what takes minutes: every way and export, 10,000 damaged files of each format, ten times the draws, the published
    data set twice, 20 forests of each planner's demonstration, straight flight through the whole navigation benchmark, five
    vehicles that learn to hover, eleven vehicles identified from their flights."""
    only: tuple[Group, ...] = ()
    """Groups of figures; none: all of them."""
    out: Path | None = None
    """Folder that keeps each figure from when it is found: the same command goes on from there. None: nothing is kept."""


WAITING_S = 30.0
"""Between two lines on standard error while a part of the figures is measured [s]; ours."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where every figure is as it must be, else 1."""
    config = run_tyro(VerifyConfig, argv, "airworthy verify", _DESCRIPTION)
    if config.out is not None:
        refuse_foreign(config.out, MANIFEST_FILE)
    show, close = (_show_json, _close_json) if config.json else (_show_line, _close_lines)
    # Figures of the benchmark's places are in two groups: told once where they agree.
    found: dict[Figure, None] = {}
    with stopped_by_terminate() as received, _folder(config) as store:
        try:
            for figure in _measured(config, store):
                if figure not in found:
                    show(figure, not found)
                    found[figure] = None
        except KeyboardInterrupt:
            close(list(found))
            kept = "nothing is kept without --out" if store is None else "the same command goes on with what is not there yet"
            return interrupted(received, f"Stopped after {len(found)} figures; {kept}.")
    close(list(found))
    if not config.json:
        for line in left_out(config):
            print(line)
    return int(any(not f.passed for f in found))


@contextmanager
def _folder(config: VerifyConfig) -> Iterator[FigureStore | None]:
    """Hold the folder that keeps figures, where one is named."""
    if config.out is None:
        yield None
        return
    with lock_folder(make_folder(config.out)):
        yield FigureStore(config.out, plain(figure_identity(config.all)))


def _measured(config: VerifyConfig, store: FigureStore | None) -> Iterator[Figure]:
    """Measure the groups that are asked for, part by part; what the folder has comes from there."""
    memo = memo_in_memory()
    for group, make in GROUPS.items():
        if group not in config.only and config.only:
            continue
        for part in _parts(group, make(config.all)):
            with waiting(f"verifying {part.name}", every_s=WAITING_S):
                yield from part.make(memo) if store is None else store.figures(part)


def _parts(group: Group, found: Iterator[Figure] | Sequence[FigurePart]) -> list[FigurePart]:
    """Return the parts of a group; one that has none is one."""
    if isinstance(found, Sequence):
        return [replace(part, name=f"{group}_{part.name}") for part in found]
    return [FigurePart(group, lambda memo: found)]


def _show_line(figure: Figure, first: bool) -> None:
    """Print a figure for people: the name, which may be long, stands last."""
    if first:
        print(f"{'is it':6} {'measured':>10} {'unit':8} {'must be':24} figure")
    cells = (f"{'yes' if figure.passed else 'NO':6}", f"{_shown(figure.measured):>10}", f"{figure.unit:8}", f"{figure.aim:24}")
    print(*cells, figure.name, flush=True)
    if figure.note:
        print(f"{'':6} {figure.note}", flush=True)


def _close_lines(found: Sequence[Figure]) -> None:
    failed = sum(not f.passed for f in found)
    print(f"{len(found) - failed} of {len(found)} figures are as they must be.")


def _show_json(figure: Figure, first: bool) -> None:
    """Print a figure as a line of a JSON list: what was printed can be read, whatever ends the program."""
    row = json.loads(json_text(asdict(figure)))
    sys.stdout.write(("[\n" if first else ",\n") + json.dumps(row))
    sys.stdout.flush()


def _close_json(found: Sequence[Figure]) -> None:
    sys.stdout.write("\n]\n" if found else "[]\n")


def _shown(measured: float) -> str:
    """Return counts with all their digits, other numbers with four that count."""
    return str(int(measured)) if float(measured).is_integer() else f"{measured:.4g}"


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


GROUPS: dict[Group, Callable[[bool], Iterator[Figure] | Sequence[FigurePart]]] = {
    "motion": _motion,
    "articulated": articulated_figures,
    "geometry": geometry_figures,
    "scenes": scene_figures,
    "sensors": sensor_figures,
    "splats": splat_figures,
    "identify": identify_parts,
    "sousvide": _sousvide,
    "navigation": navigation_figures,
    "gates": gate_figures,
    "learning": learning_figures,
}
LEFT_OUT: dict[Group, Callable[[], list[str]]] = {
    "articulated": articulated_left_out,
    "identify": identify_left_out,
    "sousvide": sousvide_left_out,
    "navigation": navigation_left_out,
    "gates": gates_left_out,
    "learning": learning_left_out,
}
"""What a group cannot measure here, in sentences."""
