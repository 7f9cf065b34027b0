"""`airworthy races`: list, show, check and plan races."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import (
    ListConfig,
    Subcommands,
    emit_json,
    interrupted,
    run_subcommand,
    show_table,
    stopped_by_terminate,
)
from airworthy.core.errors import AirworthyError
from airworthy.core.files import refuse_unwritable, write_json
from airworthy.core.jobs.progress import waiting
from airworthy.core.schema import SEED
from airworthy.race import (
    Race,
    RacePlanOptions,
    RacerModel,
    check_race,
    course_of,
    gate_shape,
    glancing_plan,
    load_race,
    minimum_time_plan,
    race_names,
    write_plan,
)
from airworthy.race.benchmark.course_flight import CourseFlight
from airworthy.race.benchmark.course_job import fly_race_courses, summary_of
from airworthy.race.courses import names_of
from airworthy.race.pilots.catalogue import race_pilots
from airworthy.race.planning.course_planner import plan_options
from airworthy.race.planning.obstacles import obstacles_of
from airworthy.race.planning.ways import check_time, check_ways, time_note
from airworthy.race.racers import race_vehicle
from airworthy.scenes import scene_generators
from airworthy.scenes.generators.halls import course_names

PROG = "airworthy races"
_FILLED = 0.95
"""Part of a rectangle that an opening has to fill to be taken for one without a note; ours."""
_DESCRIPTION = "List the races there are. Also: airworthy races show NAME | check FILE | plan NAME | pilots | fly NAME."


@dataclass(frozen=True)
class ShowRaceConfig:
    """What to show."""

    name: Positional[str]
    """Name (`airworthy races` lists them), random:SEED, or the path of a race TOML."""
    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class CheckRaceConfig:
    """What to check."""

    file: Positional[Path]
    """Race TOML to read and check."""


@dataclass(frozen=True)
class PlanRaceConfig:
    """What to plan."""

    name: Positional[str]
    """Name (`airworthy races` lists them), random:SEED, or the path of a race TOML."""
    course: str = "nominal"
    """Course of it, as published/7 or fresh/10000/3."""
    vehicle: str = ""
    """Name or file of the vehicle; empty: the race's own."""
    glances: bool = False
    """Look at the gates that matter on the way, as pilots that do not know where they stand must."""
    out: Path = Path("plan.json")
    """File to write."""


@dataclass(frozen=True)
class FlyRaceConfig:
    """What to fly."""

    name: Positional[str]
    """Name (`airworthy races` lists them), random:SEED, or the path of a race TOML; not one of the hall's."""
    courses: str = "nominal"
    """Courses of it, as nominal or fresh:0/20."""
    vehicle: str = ""
    """Name or file of the vehicle; empty: the race's own."""
    seed: Annotated[int, SEED] = 0
    """Of the spread of vehicles."""
    out: Path | None = None
    """File to write: a summary and a row for each flight; none is written without."""
    json: bool = False
    """Print that as JSON instead of a table."""


def main(argv: list[str]) -> int:
    """Run `airworthy races`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowRaceConfig, _show, "Show one race: its gates in the order of flight, and its rules."),
        "plan": (PlanRaceConfig, _plan, "Solve the fastest flight through a course and write it; needs the extra 'race'."),
        "fly": (FlyRaceConfig, _fly, "Fly courses with the true state (truth:race), judged by the referee; extra 'race'."),
        "pilots": (ListConfig, _pilots, "List the pilots that come with the package, for `airworthy bench race --pilot`."),
        "check": (CheckRaceConfig, _check, "Read a race TOML and check that it can be judged."),
    }
    return run_subcommand(PROG, commands, argv)


def _head(race: Race) -> dict[str, Any]:
    return {
        "name": race.name,
        "title": race.title,
        "gates": len(race.gates),
        "passages": len(race.passes),
        "laps": race.laps,
        "length_m": _length(race),
        "test": race.test,
        "score": race.score.rule,
        "time_limit_s": race.limits.time_s,
        "drawn": race.is_drawn,
        "vehicle": race.vehicle or None,
        "scene": race.scene or None,
    }


def _length(race: Race) -> float:
    """Length of the straight lines from the start through the centres of the openings, as flown [m]."""
    centers = {gate.name: gate_shape(gate).center for gate in race.gates}
    points = np.array([race.start.position, *(centers[name] for name, _ in race.passes)])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _passages(race: Race) -> list[dict[str, Any]]:
    """Where each gate of a lap stands and how it is flown."""
    rows = []
    for word in race.order:
        gate = race.gate(word.removeprefix("-"))
        shape, way = gate_shape(gate), -1.0 if word.startswith("-") else 1.0
        bound = gate.bound
        rows.append(
            {
                "gate": word,
                "center_m": shape.center.tolist(),
                "direction": (way * shape.normal).tolist(),
                "width_m": 2.0 * shape.half_width,
                "height_m": 2.0 * shape.half_height,
                "bound_m": [bound.x, bound.y, bound.z],
                "bound_yaw_deg": bound.yaw_deg,
            }
        )
    return rows


def _list(config: ListConfig) -> int:
    rows = [_head(load_race(name)) for name in race_names()]
    if config.json:
        emit_json(rows)
        return 0
    columns = {
        "name": "name",
        "gates": "gates",
        "passages": "passages",
        "length [m]": "length_m",
        "test": "test",
        "score": "score",
        "drawn": "drawn",
        "what": "title",
    }
    show_table(f"{len(rows)} races, and random:SEED", list(columns), [[row[key] for key in columns.values()] for row in rows])
    return 0


def _pilots(config: ListConfig) -> int:
    rows = [{"pilot": name, "what": summary} for name, summary in race_pilots().items()]
    if config.json:
        emit_json(rows)
        return 0
    show_table(f"{len(rows)} race pilots", ["pilot", "what"], [list(row.values()) for row in rows])
    print(
        "Your own: FILE.py:CLASS, or external:PORT for a program that listens there; truth: before it gives it the truth."
        " A learned one: policy:FOLDER."
    )
    return 0


def _show(config: ShowRaceConfig) -> int:
    race = load_race(config.name)
    rows = _passages(race)
    if config.json:
        emit_json({**_head(race), "order": rows, "race": dataclasses.asdict(race)})
        return 0
    told, clock = race.information, race.clock
    facts = {
        **_head(race),
        "clock": "from arming" if clock.starts == "armed" else "from the first gate",
        "look before it": f"{clock.look_s:g} s",
        "score": _score_text(race),
        "start": f"{_vector(race.start.position)} m, heading {race.start.yaw_deg:g} degrees",
        "sensors": ", ".join(told.sensors),
        "gates are told": "exactly"
        if told.gates == "exact"
        else "nominally" + (f", within {told.near_m:g} m exactly" * (told.near_m > 0)),
        "command": told.command + (f" at up to {told.command_hz:g} Hz" if told.command_hz else ""),
        "posts": len(race.posts) or None,
        "source": race.source or None,
    }
    for key, value in facts.items():
        if value is not None:
            print(f"{key:18}{value:.4g}" if isinstance(value, float) else f"{key:18}{_word(value)}")
    print()
    cells = [
        [
            row["gate"],
            _vector(row["center_m"]),
            _vector(row["direction"]),
            f"{row['width_m']:.2f} x {row['height_m']:.2f}",
            _vector(row["bound_m"]) if any(row["bound_m"]) else None,
            row["bound_yaw_deg"] or None,
        ]
        for row in rows
    ]
    show_table("One lap", ["gate", "centre [m]", "direction", "opening [m]", "moves by +- [m]", "turns by +- [deg]"], cells)
    return 0


def _score_text(race: Race) -> str:
    rule = race.score
    each = f"{rule.gate_points:g} a gate less seconds" if rule.rule == "points" else "time"
    return f"{each}, mean of the best {rule.best} of {rule.of}" if rule.best else each


def _vector(values: Any) -> str:
    return ", ".join(f"{round(value, 3) + 0.0:g}" for value in values)


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _check(config: CheckRaceConfig) -> int:
    race = load_race(config.file)
    head = _head(race)
    if race.vehicle:
        try:
            race_vehicle(race)
        except AirworthyError as error:
            raise AirworthyError(f"{config.file}: {error}") from error
    print(
        f"{config.file}: {race.name} is valid ({head['passages']} passages of {head['gates']} gates, {head['length_m']:.4g} m)."
    )
    for name in course_names("fresh:0/10") if race.is_drawn and not race.scene else ():
        try:
            check_race(course_of(race, name))
        except AirworthyError as error:
            raise AirworthyError(f"{config.file}: on its course {name}: {error}") from error
    if race.scene and race.scene not in scene_generators():
        print(f"note: no scene of this package is called {race.scene!r}")
    if not race.source:
        print("note: no source is given")
    for note in _plan_notes(race):
        print(f"note: {note}")
    return 0


def _plan_notes(race: Race) -> list[str]:
    """Return what keeps plans of this package from the race, or near to its frames, as far as can be told without solving."""
    if race.scene:
        return []
    flown_by = race_vehicle(race) if race.vehicle else None
    options = RacePlanOptions() if flown_by is None else plan_options(race, flown_by)
    notes = []
    try:
        check_ways(race, obstacles_of(race, options.clearance, options.wall), options)
        if flown_by is not None:
            check_time(race, RacerModel.of(flown_by), options.cruise)
            notes += [note for note in [time_note(race, RacerModel.of(flown_by))] if note]
    except AirworthyError as error:
        return [str(error)]
    notes += [
        f"gate {name!r} fills {100.0 * shape.filled:.0f} % of the rectangle about its centre that holds its corners, by"
        " which its bars stand and plans are bound"
        for name, shape in ((gate.name, gate_shape(gate)) for gate in race.gates)
        if shape.filled < _FILLED
    ]
    margins = {
        gate.name: min(half) for gate in race.gates for half in [(gate_shape(gate).half_width, gate_shape(gate).half_height)]
    }
    return notes + [
        f"gate {name!r} leaves {half - options.window:.3g} m between plans and its edges, less than the {options.margin:.3g} m"
        " that flying and the vehicle take: a flight with the true state may hit it"
        for name, half in margins.items()
        if half - options.window < options.margin - 1e-9
    ]


def _spread(race: Race) -> list[float]:
    """Return the standard deviation of each passage's place across the flight, of a uniform draw within its bounds [m]."""
    gates = [race.gate(name) for name, _ in race.passes]
    return [float(np.hypot(*(gate_shape(gate).left[:2] * [gate.bound.x, gate.bound.y])) / np.sqrt(3.0)) for gate in gates]


def _plan(config: PlanRaceConfig) -> int:
    race = course_of(load_race(config.name), config.course)
    flown_by = race_vehicle(race, config.vehicle)
    racer = RacerModel.of(flown_by)
    refuse_unwritable(config.out)
    _tell_time(race, racer)
    with waiting(f"{race.name}: planning"):
        if config.glances:
            plan = glancing_plan(race, racer, sigma=_spread(load_race(config.name)))
        else:
            # Races of the hall are planned as ever: their stored plan says by what.
            plan = minimum_time_plan(race, racer, None if race.scene else plan_options(race, flown_by))
    write_plan(plan, config.out)
    print(f"{config.out}: {plan.duration:.3f} s through {len(plan.legs)} gates, largest defect {plan.defects().max():.1g}")
    return 0


def _tell_time(race: Race, racer: RacerModel) -> None:
    """Say before minutes of planning that the race's time limit will hardly be kept."""
    note = time_note(race, racer)
    if note:
        print(f"note: {note}", file=sys.stderr)


def _fly(config: FlyRaceConfig) -> int:
    race = load_race(config.name)
    race = dataclasses.replace(race, vehicle=config.vehicle or race.vehicle)
    names = names_of(race, config.courses)
    if config.seed and race.spread is None:
        raise AirworthyError(f"--seed changes nothing: vehicles of the race {race.name!r} are all alike; leave it out.")

    flown: list[CourseFlight] = []

    def told(flight: CourseFlight) -> None:
        flown.append(flight)
        result = flight.result
        end = f"{result.time_s:.3f} s" if result.completed else f"{result.end} {flight.part}".strip()
        others = "" if flight.rehearsals == 1 else "s"
        if flight.rehearsals and result.completed:
            end += f", behind {flight.rehearsals} lost rehearsal{others}"
        elif flight.rehearsals:
            end += f", as {flight.rehearsals} calmer flight{others}"
        end += f", missed gate {flight.missed} at {flight.missed_s:.3f} s" if flight.missed else ""
        print(
            f"{race.name} {flight.course}: {end}, {result.passed} of {len(race.passes)} passages", file=sys.stderr, flush=True
        )

    if config.out is not None:
        refuse_unwritable(config.out)
    with suppress(AirworthyError):  # what is wrong with the vehicle is said by who flies it
        _tell_time(race, RacerModel.of(race_vehicle(race)))
    with stopped_by_terminate() as received:
        try:
            with waiting(f"{race.name}: planning and flying", quiet=config.json):
                fly_race_courses(race, names, seed=config.seed, flown=told)
        except AirworthyError:
            # What was flown before a course without a plan took minutes: it is kept, and says what it lacks.
            _keep(config, race, flown, names)
            raise
        except KeyboardInterrupt:
            _keep(config, race, flown, names)
            kept = (
                f"{config.out} holds them, and names those that were not flown" if config.out else "none is kept without --out"
            )
            what = f"{len(flown)} of {len(names)} courses were flown: {kept}" if flown else "no course was flown to its end"
            return interrupted(received, f"Stopped: {what}.")
    summary = _keep(config, race, flown, names)
    if config.json:
        emit_json(summary)
        return 0
    cells = [
        [
            row["course"],
            row["end"]
            + (f": {row['part']}" if row["part"] else "")
            + (f", missed {row['missed']} at {row['missed_s']:.3g} s" if row["missed"] else ""),
            row["passed"],
            row["time_s"],
            row["planned_s"],
            row["plans"],
            row["error_max_m"],
            row["speed_max_mps"],
        ]
        for row in summary["flights"]
    ]
    titles = ["course", "end", "passed", "time [s]", "first plan [s]", "plans", "off plan [m]", "fastest [m/s]"]
    show_table(f"{race.name}, {race.vehicle}, truth:race", titles, cells)
    rate = summary["statistics"]["completion"]
    mean = "" if summary["mean_time_s"] is None else f", mean {summary['mean_time_s']:.3f} s"
    print(f"{summary['completed']} of {summary['runs']} completed ({_percent(rate)}){mean}. {summary['note']}.")
    if summary["warning"]:
        print(f"{summary['warning']}.")
    return 0


def _keep(config: FlyRaceConfig, race: Race, flown: list[CourseFlight], names: Sequence[str]) -> dict[str, Any]:
    """Write what was flown, and return it; nothing where there is nothing."""
    if not flown:
        return {}
    summary = summary_of(race, flown, config.seed) | {"not_flown": list(names[len(flown) :])}
    if config.out is not None:
        write_json(config.out, summary)
    return summary


def _percent(rate: dict[str, float]) -> str:
    return f"95 % of it {100.0 * rate['low']:.1f} to {100.0 * rate['high']:.1f} %"
