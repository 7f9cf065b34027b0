"""Judges the flights of a run's folder: film, summary and report, from what lies in it.

A run that has just flown and one that was interrupted before it was judged go the same way, so they leave the same bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.benchmarks.fly.causes import causes_of, farthest_from_start
from airworthy.benchmarks.fly.config import CONFIG_FILE, DEFAULT_COURSE, FlyConfig, draws, read_config, resolved
from airworthy.benchmarks.fly.film import Filmed, film_run
from airworthy.benchmarks.fly.run_record import RunRecord, read_record
from airworthy.benchmarks.fly.scene import finds_own_way
from airworthy.core.errors import AssetError
from airworthy.core.files import json_text, lock_folder, parse_json, sha256_file
from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.evaluation.statistics import SUMMARY_FILE, read_summary, summarize, write_summary
from airworthy.pilots import FlightRun
from airworthy.reports.flight_report import REPORT_FILE, write_report
from airworthy.reports.flight_text import START_TO_GOAL
from airworthy.simulation import read_flight
from airworthy.simulation.flights import META_FILE, FlightTable
from airworthy.tasks import TrackingReference
from airworthy.trajectories import Gate

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = ["RunMetrics", "judge", "judge_flights", "labels_of", "read_config_of", "read_run"]


@dataclass(frozen=True)
class RunMetrics:
    """What judging a run left."""

    summary: dict[str, Any]
    """Content of summary.json."""
    folder: Path
    """Where it lies."""
    filmed: Filmed
    """The film, where one was asked for."""


def judge(folder: str | Path, quiet: bool = True) -> RunMetrics:
    """Judge the recorded flights of a run again, or for the first time where it was interrupted before.

    Args:
        folder: A folder that `airworthy fly` wrote; its summary, report and, where one was asked for and is missing, film are
            written.
        quiet: Show no progress.

    Raises:
        AssetError: It is not such a folder, is damaged, or comes from a version that kept no record.
        AirworthyError: Another run holds it, or something cannot be written.
    """
    folder = Path(folder)
    config, record, flown, meta = read_run(folder)
    with lock_folder(folder):
        found = judge_flights(folder, config, record, flown, meta, record.scene_of(config), quiet)
    if found.filmed.error is not None:
        raise found.filmed.error
    return found


def read_run(folder: str | Path) -> tuple[FlyConfig, RunRecord, FlightRun, dict[str, Any]]:
    """Return configuration, record, flights and meta data of a run; raises AssetError where they do not belong together."""
    folder = Path(folder)
    table, meta = read_flight(folder)
    config = read_config_of(folder, meta)
    error = str(meta.get("pilot_error") or "")
    flown = FlightRun(
        table, bool(meta.get("interrupted")), error, causes=_by_env(meta, "causes"), outcomes=_by_env(meta, "outcomes")
    )
    return config, read_record(folder), flown, meta


def read_config_of(folder: Path, meta: Mapping[str, Any]) -> FlyConfig:
    """Return the configuration of a run; raises AssetError where it is not the one that its meta data tell of."""
    config = read_config(folder)
    if parse_json(json_text(resolved(config)), CONFIG_FILE) != meta.get("config"):
        raise AssetError(
            f"{CONFIG_FILE} and {META_FILE} in {str(folder)!r} tell of different runs: one was changed by hand; fly again."
        )
    return config


def judge_flights(
    folder: Path,
    config: FlyConfig,
    record: RunRecord,
    flown: FlightRun,
    meta: dict[str, Any],
    scene: Scene | None,
    quiet: bool = True,
) -> RunMetrics:
    """Judge flights, and write film, summary and report beside them.

    Args:
        folder: Holds flights and record; its caller holds the lock.
        config: As it was asked for.
        record: Of the run.
        flown: The flights.
        meta: Content of meta.json.
        scene: The scene.
        quiet: Show no progress.
    """
    kept = _kept_film(folder)
    filmed = Filmed() if kept is not None else _film(folder, config, record, flown, scene, quiet)
    film = kept if filmed.video is None else filmed.video.described()
    for name in (SUMMARY_FILE, REPORT_FILE):  # or a stop in between would leave an older page beside new numbers
        (folder / name).unlink(missing_ok=True)
    trajectory = record.trajectory()
    reference = TrackingReference.from_trajectory(trajectory)
    names = record.vehicles
    results = evaluate_tracking(flown.table, reference, ended_by={**flown.outcomes, **flown.unfinished})
    bodies = {env: record.vehicle(env % len(names)).body for env in range(config.envs)}
    farthest = farthest_from_start(trajectory)
    why = causes_of(flown.table, results, reference, scene, farthest=farthest, bodies=bodies)
    summary = summarize(
        results,
        command=str(meta["command"]),
        labels=labels_of(config, record.course, record.waypoints, _own_way(config, meta)),
        flight_labels={
            env: {"vehicle": names[env % len(names)], **_cause(flown, env, why), **_links_of(flown.table, env)}
            for env in range(config.envs)
        },
        parameters=record.parameters,
        seed=config.seed,
        drawn=draws(config),
    )
    summary |= {} if film is None else {"video": film}
    summary |= _unknown_space(scene)
    summary |= {name: meta[name] for name in ("identified_draws", "rejected_draws") if name in meta}
    summary |= {"pilot_notes": list(meta["pilot_notes"])} if meta.get("pilot_notes") else {}
    write_summary(folder, summary)
    if config.report:
        course = record.course_flown()
        rotors = record.vehicle(0).rotors
        write_report(
            folder,
            table=flown.table,
            summary=summary,
            meta=meta,
            reference=reference,
            gates=[_corners(gate) for gate in (() if course is None else course.gates)],
            place=_pictured(scene, flown, record),
            rotor_limits=([r.speed_min for r in rotors], [r.speed_max for r in rotors]) if len(names) == 1 else None,
        )
    return RunMetrics(summary, folder, filmed)


def _links_of(table: FlightTable, env: int) -> dict[str, Any]:
    """Return how near the links of a vehicle came to anything, and how often they hit it; nothing of others."""
    if "touches" not in table.columns or env not in table.envs:
        return {}
    columns = table.flight(env).columns
    near = columns["link_clearance_m"]
    near = near[np.isfinite(near)]
    return {"link_clearance_min_m": float(near.min()) if near.size else None, "touches": int(columns["touches"][-1])}


def _unknown_space(scene: Scene | None) -> dict[str, str]:
    """Return how the unknown space of a captured place was met; nothing where there is none."""
    if scene is None or scene.carved is None:
        return {}
    from airworthy.scenes.carved import is_unknown_solid

    return {"unknown_space": "solid" if is_unknown_solid(scene) else "free"}


def labels_of(config: FlyConfig, course: str | None, waypoints: tuple[str, ...], own_way: bool) -> dict[str, Any]:
    """Return scene, course, pilot and seed of a run, with the way as it was flown.

    Args:
        config: Of the run.
        course: Name of the course; None: waypoints, or the default course.
        waypoints: As they were typed; only whether there are any counts. Of who finds its own way they are start and goal.
        own_way: The pilot finds its own way between them.
    """
    typed = START_TO_GOAL if own_way else "waypoints"
    name = course or (typed if waypoints else DEFAULT_COURSE)
    return {"scene": config.scene, "course": name, "pilot": config.pilot, "seed": config.seed}


def _own_way(config: FlyConfig, meta: Mapping[str, Any]) -> bool:
    """Return whether nobody was asked to follow a path, without importing a planner of the user's own, whose file may be gone:
    the flight wrote down what it was."""
    return finds_own_way(config.pilot) or meta.get("course") == START_TO_GOAL


def _kept_film(folder: Path) -> dict[str, Any] | None:
    """Return what the summary tells of a film that still lies in the folder."""
    with contextlib.suppress(AssetError):
        film = read_summary(folder).get("video")
        if isinstance(film, dict):
            path = folder / Path(str(film.get("file"))).name
            if path.is_file() and sha256_file(path) == film.get("sha256"):
                return film
    return None


def _film(folder: Path, config: FlyConfig, record: RunRecord, flown: FlightRun, scene: Scene | None, quiet: bool) -> Filmed:
    if flown.interrupted:
        return Filmed()
    vehicles = [record.vehicle(k) for k in range(len(record.vehicles))]
    return film_run(replace(config, out=folder), flown.table, scene, vehicles, quiet)


def _pictured(scene: Scene | None, flown: FlightRun, record: RunRecord) -> dict[str, Any]:
    if scene is None:
        return {}
    from airworthy.reports.pictures import place_pictures

    return place_pictures(scene, flown.table, record.sensor_pictures())


def _cause(flown: FlightRun, env: int, why: Mapping[int, str]) -> dict[str, str]:
    cause = flown.pilot_error if flown.unfinished.get(env) == "pilot_error" else flown.causes.get(env, why.get(env))
    return {"cause": cause} if cause else {}


def _by_env(meta: Mapping[str, Any], name: str) -> dict[int, str]:
    """Return a text of each flight by its environment, as the meta data tell it; nothing where they tell something else."""
    causes = meta.get(name)
    return {int(env): str(cause) for env, cause in causes.items() if env.isdecimal()} if isinstance(causes, dict) else {}


def _corners(gate: Gate) -> Any:
    """Corners of the opening, in order round it, (4, 3)."""
    left = np.array([-np.sin(gate.yaw), np.cos(gate.yaw), 0.0]) * 0.5 * gate.opening[0]
    up = np.array([0.0, 0.0, 0.5 * gate.opening[1]])
    return np.asarray(gate.position) + np.array([left + up, -left + up, -left - up, left - up])
