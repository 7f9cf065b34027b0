"""`airworthy logs`: show, map, plan, convert and render flight logs, and how long pictures of vehicle in the loop took."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tyro.conf import Positional

from airworthy.bridges.replay.job import LogRenderConfig, render_log
from airworthy.cli.common import Subcommands, emit_json, gathered, interrupted, run_subcommand, show_table, stopped_by_terminate
from airworthy.core.errors import AirworthyError
from airworthy.core.files import refuse_unwritable, write_text
from airworthy.logs import (
    ClockFit,
    Log,
    LogSegments,
    MotorOrder,
    ReadOptions,
    RotorGeometry,
    clock_fit,
    flight_segments,
    guess_mapping,
    log_checks,
    log_findings,
    motor_order,
    rate_advice,
    read_log,
    refuse_input,
    table_of,
    write_log,
)
from airworthy.trajectories import ExcitationConfig, ExcitationPart, ExcitationPlan, excitation_plan, write_course
from airworthy.vehicles import named_vehicle

PROG = "airworthy logs"
_REJECTED_MAX = 12
_EVENTS_MAX = 4
"""Events of a kind that are printed."""


@dataclass(frozen=True)
class ShowLogConfig:
    """What to show."""

    log: Positional[Path]
    """File or folder of a log."""
    map: Path | None = None
    """Of a plain table: the `mapping.toml` that says what its columns mean."""
    set: tuple[str, ...] = ()
    """Of a blackbox without its header lines: NAME=VALUE, as acc_1G=2048."""
    topic: tuple[str, ...] = ()
    """Of a bag: TOPIC=LABEL names the streams of a topic, TOPIC=- leaves it out."""
    env: int = 0
    """Of a recorded run: the environment."""
    use: tuple[str, ...] = ()
    """Parts of the log to look at, START:STOP in seconds; without any, all of it."""
    skip: tuple[str, ...] = ()
    """Parts to leave out, START:STOP in seconds."""
    like: str | None = None
    """The vehicle that flew it, a name of the catalogue or a TOML file: are motors in its order, and do rotors turn its way?
    Without one, the log's own geometry is asked, where it has any."""
    json: bool = False
    """Print everything as JSON."""


@dataclass(frozen=True)
class MapLogConfig:
    """What to map."""

    table: Positional[Path]
    """CSV, Parquet or .npz file whose columns need a meaning."""
    out: Path | None = None
    """File to write; without it the mapping is printed."""


@dataclass(frozen=True, kw_only=True)
class PlanLogConfig(ExcitationConfig):
    """What to plan."""

    vehicle: str
    """Who flies: a catalogue name or a vehicle TOML file; what is not known of it yet may be a guess, or a like vehicle's."""
    out: Path | None = None
    """Course file to write, as `airworthy fly --course` reads it; without it, the plan is only printed."""
    json: bool = False
    """Print the plan as JSON."""


@dataclass(frozen=True)
class ConvertLogConfig:
    """What to convert."""

    log: Positional[Path]
    """File or folder of a log."""
    out: Path
    """File to write."""
    to: Literal["", "mcap", "csv", "parquet", "npz", "tum"] = ""
    """Format; empty: by the ending of --out."""
    map: Path | None = None
    """As of `airworthy logs show`."""
    set: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    env: int = 0
    """Of a recorded run: the environment."""


@dataclass(frozen=True)
class LatencyLogConfig:
    """Of what."""

    log: Positional[Path]
    """frames.mcap of `airworthy serve --poses ... --out FOLDER`, or its folder."""
    json: bool = False
    """Print the rows as JSON [s]."""


@dataclass(frozen=True)
class RenderLogConfig(LogRenderConfig):
    """What to render."""

    log: Positional[Path]
    """File or folder with positions and attitudes: EuRoC, TUM, ULog, MCAP, a run of `airworthy fly`, a table with --map, ..."""


def main(argv: list[str]) -> int:
    """Run `airworthy logs`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "show": (
            ShowLogConfig,
            _show,
            "Show a flight log: streams, rates, gaps, checks of units, and what it can and cannot tell.",
        ),
        "map": (MapLogConfig, _map, "Guess what the columns of a table mean, with reasons, as a mapping.toml to be edited."),
        "plan": (
            PlanLogConfig,
            _plan,
            "Plan flights whose log tells a vehicle: steps of thrust and yaw, doublets of roll and pitch, fast lines.",
        ),
        "convert": (ConvertLogConfig, _convert, "Write a log as MCAP, CSV, Parquet, .npz or TUM, in SI units, FLU and ENU."),
        "latency": (
            LatencyLogConfig,
            _latency,
            "Compute anew how long pictures and aborts of vehicle in the loop took, of the instants that were kept with them.",
        ),
        "render": (
            RenderLogConfig,
            _render,
            "Render a log's poses at their stamps in a scene: a visual-inertial data set in EuRoC's layout.",
        ),
    }
    return run_subcommand(
        PROG, commands, gathered(argv, ("--set", "--topic", "--use", "--skip", "--sensors", "--people", "--parts"))
    )


def read_options(config: Any, env: int = 0) -> ReadOptions:
    """Return what a command's options say about a file.

    Args:
        config: With fields `map`, `topic` and, where it has any, `set`.
        env: Of a recorded run: the environment.
    """
    return ReadOptions(
        mapping=config.map,
        settings=_pairs(getattr(config, "set", ()), "--set", "acc_1G=2048"),
        topics=_pairs(config.topic, "--topic", "/imu=front"),
        env=env,
    )


def _pairs(texts: tuple[str, ...], option: str, example: str) -> dict[str, str]:
    made = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise AirworthyError(f"{option} is {text!r}; expected NAME=VALUE, as {example}.")
        made[name] = value
    return made


def span_options(texts: tuple[str, ...], option: str) -> list[tuple[float, float]]:
    """Return parts of logs, START:STOP in seconds, that an option names.

    Args:
        texts: Of the option.
        option: Names it in messages.

    Raises:
        AirworthyError: One of them is something else.
    """
    made = []
    for text in texts:
        start, colon, stop = text.partition(":")
        try:
            made.append((float(start), float(stop)))
        except ValueError:
            raise AirworthyError(f"{option} is {text!r}; expected START:STOP in seconds, as 35:65.") from None
        if not colon or not made[-1][1] > made[-1][0]:
            raise AirworthyError(f"{option} is {text!r}; expected a START before its STOP.")
    return made


def _show(config: ShowLogConfig) -> int:
    log = read_log(config.log, read_options(config, config.env))
    segments = flight_segments(log, span_options(config.use, "--use"), span_options(config.skip, "--skip"))
    motors = _motors(log, segments, config.like)
    if config.json:
        emit_json(_record(log, segments) | ({} if motors is None else {"motors": dataclasses.asdict(motors)}))
        return 0
    print(f"{log.name}: {log.source.format}, {log.duration:.3f} s, SHA-256 {log.source.sha256[:12]}")
    show_table(
        "Streams",
        (
            "stream",
            "columns",
            "unit",
            "samples",
            "rate [Hz]",
            "jitter [ms]",
            "gaps",
            "longest [s]",
            "back",
            "twice",
            "missing [%]",
            "stamp",
            "of",
        ),
        [_stream_row(stream) for stream in log.streams],
    )
    _print_lines("Notes", log.notes)
    _print_lines("Events", _event_lines(log))
    marks = {True: "good", False: "WRONG", None: "not known"}
    _print_lines("Checks", [f"{check.name}: {marks[check.passed]}. {check.said}" for check in log_checks(log)])
    _print_lines("Clocks", [said for said, _ in _clocks(log)])
    _print_lines("Flight", _flight_lines(segments))
    if motors is not None:
        _print_lines("Motors", [motors.sentence()])
    _print_lines("Advice", rate_advice(log))
    rows = [(f.parameter, f.verdict, f.reason, f.helps) for f in log_findings(log, segments)]
    show_table("What it tells of the vehicle", ("parameter", "verdict", "because", "what would help"), rows)
    return 0


def _clocks(log: Log) -> list[tuple[str, ClockFit | None]]:
    """Return what is known of the clock of each stream of attitudes beside the gyro's: a sentence, and the fit."""
    found: list[tuple[str, ClockFit | None]] = []
    for stream in log.of_kind("attitude") if log.has("gyro") else ():
        try:
            fit = clock_fit(log, stream)
            found.append((fit.sentence(), fit))
        except AirworthyError as error:
            found.append((str(error), None))
    return found


def _motors(log: Log, segments: LogSegments, like: str | None) -> MotorOrder | None:
    """Which motors are which rotors; None where no geometry was named, and the log has none."""
    if like is None:
        # A log's own numbers are no question: what they cannot answer is no error.
        fits = log.geometry is not None and log.has("motor_command")
        if not fits or log.geometry is None or len(log.geometry.position) != log.stream("motor_command").values.shape[1]:
            return None
        return motor_order(log, segments, log.geometry)
    craft = named_vehicle(like)
    rotors = craft.rotors
    count = len(rotors)
    found = motor_order(
        log,
        segments,
        RotorGeometry(
            np.array([rotor.position for rotor in rotors]).reshape(count, 3) - craft.center_of_mass,
            np.array([rotor.axis for rotor in rotors]).reshape(count, 3),
            # A rotor that turns counter-clockwise is answered by the vehicle against its axis.
            -np.array([float(rotor.spin) for rotor in rotors]),
            np.zeros(count),
        ),
    )
    if found is None:
        raise AirworthyError(
            f"--like {like} asks for the order of motors, which this log cannot tell: it needs motor commands, rates of a gyro"
            " and some seconds of usable flight."
        )
    return found


def _stream_row(stream: Any) -> tuple[object, ...]:
    q = stream.quality
    longest = q.gap_longest if q.gaps else None
    return (
        stream.name, stream.values.shape[1], stream.unit, q.count, q.rate or None, 1e3 * q.jitter, q.gaps, longest,
        q.backward, q.duplicates, 100.0 * q.missing, stream.stamp, stream.origin[:48],
    )  # fmt: skip


def _event_lines(log: Log) -> list[str]:
    """Return each kind of event in a line: how many, when, and of drop-outs how long."""
    lines = []
    for kind in dict.fromkeys(event.kind for event in log.events):
        found = [event for event in log.events if event.kind == kind]
        said = [f"{event.time:.2f} s" + f" ({event.detail[:40]})" * bool(event.detail) for event in found[:_EVENTS_MAX]]
        more = f" and {len(found) - _EVENTS_MAX} more (--json lists all)" if len(found) > _EVENTS_MAX else ""
        lines.append(f"{kind}, {len(found)}: {', '.join(said)}{more}")
    return lines


def _flight_lines(segments: LogSegments) -> list[str]:
    told = f", by its {segments.told_by}" if segments.told_by else ""
    lines = [f"in the air {s.start:.2f} to {s.stop:.2f} s{told}" for s in segments.flown] or [
        f"none was found{told.removeprefix(',')}"
    ]
    if segments.crash is not None:
        lines.append(f"crash at {segments.crash:.3f} s")
    lines.append(f"{segments.usable_time:.1f} s in {len(segments.usable)} parts are usable")
    lines += [f"not {s.start:.2f} to {s.stop:.2f} s: {s.reason}" for s in segments.rejected[:_REJECTED_MAX]]
    if len(segments.rejected) > _REJECTED_MAX:
        lines.append(f"and {len(segments.rejected) - _REJECTED_MAX} parts more (--json lists all)")
    return lines


def _print_lines(title: str, lines: Any) -> None:
    if lines:
        print(title)
        for line in lines:
            print(f"  {line}")


def _record(log: Log, segments: LogSegments) -> dict[str, Any]:
    """Everything that is shown, as plain tables."""
    return {
        "name": log.name,
        "source": dataclasses.asdict(log.source),
        "duration_s": log.duration,
        "streams": [
            {
                "name": s.name,
                "unit": s.unit,
                "frame": s.frame,
                "stamp": s.stamp,
                "origin": s.origin,
                "columns": s.values.shape[1],
            }
            | {"filter": None if s.filter is None else dataclasses.asdict(s.filter)}
            | {"quality": dataclasses.asdict(s.quality)}
            for s in log.streams
        ],
        "events": [dataclasses.asdict(e) for e in log.events],
        "notes": list(log.notes),
        "checks": [dataclasses.asdict(c) for c in log_checks(log)],
        "clocks": [dataclasses.asdict(fit) for _, fit in _clocks(log) if fit is not None],
        "segments": dataclasses.asdict(segments),
        "advice": list(rate_advice(log)),
        "findings": [dataclasses.asdict(f) for f in log_findings(log, segments)],
    }


def _map(config: MapLogConfig) -> int:
    columns, draft = table_of(config.table)
    text = guess_mapping(columns).text(config.table.name)
    if config.out is None:
        for note in draft.notes:
            print(f"# {note}")
        print(text, end="")
        return 0
    refuse_input(config.out, [config.table], "table")
    write_text(config.out, text)
    for note in draft.notes:
        print(f"  {note}")
    print(f"Wrote {config.out}: read it, correct it, and give it with --map.")
    return 0


def _plan(config: PlanLogConfig) -> int:
    if config.out is not None:
        refuse_unwritable(config.out)
        if config.out.suffix != ".json":
            raise AirworthyError(f"--out is {str(config.out)!r}; a course is a JSON file: name it {config.out.stem}.json.")
    plan = excitation_plan(
        named_vehicle(config.vehicle),
        ExcitationConfig(config.box, config.height, config.speed, config.parts, config.length),
    )
    if config.out is not None:
        write_course(plan.course, config.out)
    if config.json:
        parts = [dataclasses.asdict(part) | {"tells": part.tells} for part in plan.parts]
        facts = {"vehicle": plan.vehicle, "duration_s": plan.duration, "lowest_m": plan.lowest, "highest_m": plan.highest}
        emit_json(facts | {"parts": parts, "advice": plan.advice, "course": None if config.out is None else str(config.out)})
        return 0
    _show_plan(plan, config)
    return 0


def _show_plan(plan: ExcitationPlan, config: PlanLogConfig) -> None:
    sides = " x ".join(f"{high - low:.2f}" for low, high in zip(plan.lowest, plan.highest, strict=True))
    low, high = plan.lowest[2], plan.highest[2]
    print(f"{plan.vehicle}: {plan.duration:.0f} s within {sides} m, {low:.2f} to {high:.2f} m above the ground.")
    columns = ("part", "from [s]", "to [s]", "what", "to [m/s]", "to [rad/s]", "reach [m]", "rotors [%]", "tells")
    rows = [
        (p.name, p.start, p.stop, _flown_words(p), p.speed, p.rate, p.reach, 100.0 * p.rotor_use, p.tells) for p in plan.parts
    ]
    show_table("Excitation", columns, rows)
    _print_lines("Notes", plan.advice)
    if config.out is None:
        print("--out FILE.json writes it as a course, which pilots fly in simulation.")
        return
    who, where = shlex.quote(config.vehicle), shlex.quote(str(config.out))
    print(f"Wrote {config.out}. Fly it, and see what its log tells:")
    print(f"  airworthy fly --vehicle {who} --course {where} --imu bmi088 {_RATES} --out runs/excitation")
    print(f"  airworthy logs show runs/excitation --like {who}")


_RATES = "--control-rate 480 --record-rate 480"
"""Of flights whose log is to tell lag and dead time: half of the usual physics'."""


def _flown_words(part: ExcitationPart) -> str:
    """Return what is flown, with its size and how fast it is reached."""
    size = {"collective": f"{100.0 * part.size:.3g} %", "yaw": f"{np.degrees(part.size):.3g} deg/s"}.get(
        part.name, f"{np.degrees(part.size):.3g} deg"
    )
    return f"{part.flown}, +-{size} within {part.ramp:.2g} s"


def _convert(config: ConvertLogConfig) -> int:
    refuse_unwritable(config.out)
    refuse_input(config.out, [config.log], "log")
    refuse_input(config.out, [] if config.map is None else [config.map], "mapping")
    log = read_log(config.log, read_options(config, config.env))
    for note in log.notes:
        print(f"  {note}")
    for path in write_log(log, config.out, config.to):
        print(f"Wrote {path} ({path.stat().st_size:,} bytes).")
    return 0


def _latency(config: LatencyLogConfig) -> int:
    from airworthy.bridges.loop.latency import abort_rows, kept_times, latency_rows, latency_text

    kept = kept_times(config.log)
    rows = {name: latency_rows(times) for name, times in kept.frames.items()}
    if config.json:
        told = {
            name: [dataclasses.asdict(row) for row in of] for name, of in (*rows.items(), ("aborts", abort_rows(kept.aborts)))
        }
        emit_json({"latency_s": told, "notes": list(kept.notes)})
        return 0
    for name, of in rows.items():
        times = kept.frames[name]
        print(f"{name}: {len(times):,} frames, {sum(item.held for item in times):,} held.")
        print("\n".join(latency_text(of)))
    print(f"{len(kept.aborts):,} aborts.")
    print("\n".join(latency_text(abort_rows(kept.aborts))), end="\n" if kept.aborts else "")
    _print_lines("Notes", kept.notes)
    return 0


def _render(config: LogRenderConfig) -> int:
    with stopped_by_terminate() as received:
        try:
            made = render_log(config, read_options(config, config.env), say=lambda note: print(f"  {note}", flush=True))
        except KeyboardInterrupt:
            return interrupted(received, "Stopped: the same command goes on.")
    for folder, count in made.frames.items():
        print(f"mav0/{folder}: {count:,} pictures.")
    print(f"Inertial sensor: {made.imu}. Poses beyond the scene's bounds: {made.outside:,}; within something: {made.inside:,}.")
    print(f"Data set: {config.out} ({made.made:,} pictures made now).")
    return 0
