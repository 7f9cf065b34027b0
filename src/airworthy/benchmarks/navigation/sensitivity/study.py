"""The job behind `airworthy bench sensitivity`: the navigation benchmark flown anew at every point of some axes.

    sensitivity.json         which flights, which points, pilots
    points/NAME/             a folder of the benchmark for each point, gone on with where a run was stopped
    results.parquet          all rows: point, axis and level before the benchmark's columns
    summary.json, report.html

Axes and pilots may join a folder later; which flights they are cannot change, for the points are compared flight by flight.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy import __version__
from airworthy.benchmarks.navigation.config import (
    NAVIGATION_RULES,
    NavigationConfig,
    check,
    scenario_names,
    vehicle_names_of,
)
from airworthy.benchmarks.navigation.flight_records import COLUMNS
from airworthy.benchmarks.navigation.flown_folder import read_flown
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.missions import check_drawn
from airworthy.benchmarks.navigation.sensitivity.axes import AXES, IDEAL, StudyPoint, points_of, spelled
from airworthy.benchmarks.navigation.sensitivity.effects import effects_of, idle_points
from airworthy.benchmarks.navigation.store import MANIFEST_FILE, RESULTS_FILE, ROWS_MAX, read_manifest
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, make_folder, read_bytes, write_bytes, write_json
from airworthy.core.idle_options import refuse_idle
from airworthy.core.jobs import progress
from airworthy.core.jobs.block_job import SUMMARY_FILE, describe_machine, refuse_unknown_figures
from airworthy.core.jobs.block_store import (
    ManifestKind,
    Row,
    arrow_kinds,
    differences,
    digest_of,
    parse_table,
    plain,
    table_bytes,
)
from airworthy.core.schema import SEED, check_fields

__all__ = ["POINTS", "STUDY_FILE", "SensitivityConfig", "Studied", "read_study", "report_study", "run_study", "study_rows"]

STUDY_FILE, POINTS = "sensitivity.json", "points"
_KIND = ManifestKind(STUDY_FILE, "a sensitivity study", 1, ("identity", "points", "pilots"))
STUDY_COLUMNS: dict[str, type] = {"point": str, "axis": str, "level": str, **COLUMNS}


@dataclass(frozen=True)
class SensitivityConfig:
    """Which flights are flown with and without what."""

    pilots: tuple[str, ...] = ("known_free", "fast", "ego", "pgo")
    """Pilots, as of airworthy bench navigation."""
    axes: tuple[str, ...] = ("all",)
    """What is made worse: gain_scale, controller, motor_degradation, depth_noise, depth_dropout, latency, drift,
    moving_obstacles, moving_speed, gain_error, each at its declared levels or at yours (latency:0.05,0.2); or all."""
    vehicles: tuple[str, ...] = ("real_09", "real_12", "virt_05")
    """Vehicles: one that is weak (thrust to weight 1.4), one in the middle (2.2) and one that is agile (4.6)."""
    scenarios: tuple[str, ...] = ("forest", "sudden_drop")
    """Scenarios, as of airworthy bench navigation."""
    configurations: tuple[int, ...] = (3, 6, 9)
    """Of every scenario, 1 to 10."""
    repeats: int = 1
    """Flights per combination, each with other draws."""
    randomize: Literal["identified"] | None = None
    """identified: flights draw their vehicles, as in airworthy bench navigation; the same at every point."""
    seed: Annotated[int, SEED] = 0
    """Of everything that is drawn; a flight draws the same at every point and for every pilot."""
    batch: int = 144
    """Flights at once; those of a batch are kept together when a run is stopped."""
    workers: int = 1
    """Processes."""
    out: Path = Path("runs/sensitivity")
    """Folder of the results; a stopped run goes on where it was, and more axes and pilots join."""
    report: bool = True
    """Write report.html."""
    json: bool = False
    """Print JSON, and no progress."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Studied:
    """What a run left."""

    folder: Path
    summary: dict[str, Any]
    """Content of summary.json."""
    interrupted: bool
    report: Path | None


def run_study(config: SensitivityConfig, quiet: bool = True) -> Studied:
    """Fly what has not been flown at every point, compare it with the ideal, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.

    Raises:
        AirworthyError: With one sentence, before anything is flown: an axis, a pilot or a flight cannot be had, an axis changes
            nothing for these pilots, or the folder holds other flights.
    """
    points = points_of(config.axes)
    flown = {point: point.applied(_ideal(config, point)) for point in points}
    for chosen in flown.values():
        # All of them before the first: the last may begin an hour later.
        check(chosen)
        check_drawn(chosen)
        refuse_idle(chosen, NAVIGATION_RULES)
    refuse_unknown_figures(config.out, STUDY_FILE)
    with lock_folder(make_folder(config.out)) as folder:
        manifest = _opened(config, points)
        interrupted = False
        for number, (point, chosen) in enumerate(flown.items(), 1):
            if not quiet:
                print(f"{point.name} ({number} of {len(points)})", file=sys.stderr)
            interrupted = run_benchmark(chosen, quiet).interrupted
            if interrupted:
                break
        manifest["pilots"] = _pilots(Path(folder), manifest)
        rows = _gathered(Path(folder), manifest["points"])
        write_json(Path(folder) / STUDY_FILE, manifest)
        write_bytes(Path(folder) / RESULTS_FILE, table_bytes(rows, STUDY_COLUMNS, {"digest": manifest["digest"]}))
        summary = summarized(rows, manifest)
        write_json(Path(folder) / SUMMARY_FILE, summary)
        report = _reported(Path(folder)) if config.report and rows else None
    return Studied(Path(config.out), summary, interrupted, report)


def report_study(folder: str | Path) -> Studied:
    """Write summary and report of a study's folder again, from its rows alone.

    Raises:
        AssetError: The folder is none, or damaged.
    """
    manifest, rows = read_study(folder), study_rows(folder)
    with lock_folder(folder):
        summary = summarized(rows, manifest)
        write_json(Path(folder) / SUMMARY_FILE, summary)
        return Studied(Path(folder), summary, False, _reported(Path(folder)))


def _reported(folder: Path) -> Path:
    from airworthy.benchmarks.navigation.sensitivity.page import write_study_page

    return write_study_page(folder)


def summarized(rows: Sequence[Row], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return every number of the report, and what reached nobody."""
    entries = effects_of(rows)
    sample = dict(manifest["identity"]["config"])
    return {"entries": entries, "idle": idle_points(entries), "flights": len(rows), "sample": sample}


def read_study(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of a study's folder.

    Raises:
        AssetError: There is none, or it is damaged.
    """
    manifest = _KIND.read(folder)
    config = manifest["identity"].get("config")
    sound = isinstance(config, dict) and all(
        isinstance(config.get(name), list) for name in ("vehicles", "scenarios", "configurations")
    )
    known = all(
        isinstance(item, dict) and (name == IDEAL or item.get("axis") in AXES) for name, item in manifest["points"].items()
    )
    if not (sound and known and all(isinstance(item, dict) for item in manifest["pilots"].values())):
        raise AssetError(f"{str(Path(folder) / STUDY_FILE)!r} is damaged: its command writes it again.")
    return manifest


def study_rows(folder: str | Path) -> list[Row]:
    """Return all rows of a study's folder; raises AssetError where its table is missing or damaged."""
    where = Path(folder) / RESULTS_FILE
    wrong = "is no table of a sensitivity study, or damaged: its command writes it again."

    def content(table: Any) -> list[Row]:
        kinds = arrow_kinds(STUDY_COLUMNS)
        if any(name not in table.column_names or table.schema.field(name).type != kind for name, kind in kinds.items()):
            raise ValueError("columns")
        found: list[Row] = table.to_pylist()
        return found

    rows: list[Row] = parse_table(read_bytes(where, ROWS_MAX), str(where), wrong, content)[1]
    return rows


def _ideal(config: SensitivityConfig, point: StudyPoint) -> NavigationConfig:
    """Return the benchmark at the ideal, in the folder of a point."""
    return NavigationConfig(
        pilots=config.pilots,
        vehicles=config.vehicles,
        scenarios=config.scenarios,
        configurations=config.configurations,
        repeats=config.repeats,
        seed=config.seed,
        randomize=config.randomize,
        batch=config.batch,
        workers=config.workers,
        out=config.out / POINTS / point.name,
        report=False,
    )


def _opened(config: SensitivityConfig, points: Sequence[StudyPoint]) -> dict[str, Any]:
    """Return the manifest of the folder, with these points joined, and write it.

    Raises:
        AirworthyError: The folder holds a study of other flights.
    """
    sample = {
        "vehicles": vehicle_names_of(config.vehicles),
        "scenarios": scenario_names(config.scenarios),
        "configurations": list(config.configurations),
        "repeats": config.repeats,
        "seed": config.seed,
    }
    sample |= {"randomize": config.randomize} if config.randomize else {}
    identity = plain({"version": __version__, "config": sample})
    known: dict[str, Any] = {}
    pilots: dict[str, Any] = {}
    words: list[str] = []
    if (config.out / STUDY_FILE).is_file():
        before = read_study(config.out)
        _KIND.refuse(config.out, differences(before["identity"], identity))
        known, pilots, words = dict(before["points"]), dict(before["pilots"]), list(before.get("axes", []))
    known |= {point.name: asdict(point) for point in points if point.name not in known}
    axes = list(dict.fromkeys([*words, *config.axes]))
    asked = replace(config, axes=tuple(axes))
    manifest = {
        "schema_version": _KIND.version,
        "digest": digest_of(identity),
        "identity": identity,
        "points": known,
        "pilots": pilots,
        "axes": axes,
        "command": progress.command_line("airworthy bench sensitivity", asked, leave_out=("json", "workers", "report", "out"),
                                         short_numbers=True),
        "hardware": describe_machine(),
    }  # fmt: skip
    write_json(config.out / STUDY_FILE, manifest)
    return manifest


def _pilots(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return pilots of all points, as the folder and those of its points describe them.

    Raises:
        AirworthyError: A pilot is not the same at two points, so that they cannot be compared.
    """
    found = dict(manifest["pilots"])
    for name in manifest["points"]:
        if not (folder / POINTS / name / MANIFEST_FILE).is_file():
            continue
        for pilot, item in read_manifest(folder / POINTS / name)["pilots"].items():
            if found.setdefault(pilot, item) != item:
                raise AirworthyError(
                    f"The pilot {pilot!r} has changed since other points of {str(folder)!r} were flown: choose another --out."
                )
    return found


def _gathered(folder: Path, points: Mapping[str, Any]) -> list[Row]:
    """Return the rows of every point that has any, in order; of points whose folders are gone those of the table before."""
    before = study_rows(folder) if (folder / RESULTS_FILE).is_file() else []
    found: list[Row] = []
    for name, point in points.items():
        where = folder / POINTS / name
        if (where / RESULTS_FILE).is_file():
            head = {"point": name, "axis": point["axis"], "level": spelled(point["level"])}
            found += [{**head, **row} for row in read_flown(where).rows]
        else:
            found += [row for row in before if row["point"] == name]
    return found
