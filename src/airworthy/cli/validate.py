"""`airworthy validate`: does a vehicle explain logs, and prediction error of the dynamics on the flights of a case."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from airworthy.benchmarks.validation.imu import RATE, simulated_at_rest
from airworthy.benchmarks.validation.open_loop.job import run_log_validation
from airworthy.benchmarks.validation.open_loop.judgement import BASELINES, MODELS
from airworthy.benchmarks.validation.open_loop.page import SUMMARY
from airworthy.benchmarks.validation.open_loop.validate import (
    POSE_RATE,
    SENSOR_DELAY,
    WINDOW_COUNT,
    LogValidation,
    ValidateOptions,
)
from airworthy.benchmarks.validation.plots import print_tables
from airworthy.benchmarks.validation.run import ValidateConfig, run_validation, summary
from airworthy.cli.common import emit_json, gathered, run_tyro, show_table
from airworthy.cli.logs import read_options, span_options
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import command_line
from airworthy.core.schema import check_fields
from airworthy.evaluation.statistics import Estimate

_DESCRIPTION = (
    "Does a vehicle explain logs? Predict windows of any log open loop, 0.05 to 0.5 s ahead, with any vehicle, beside what"
    " needs none (LOG... --vehicle FILE). Without a log: predict the real Crazyflie flights of the reference files with our"
    " fitted model and with published parameter sets, which takes minutes and needs AIRWORTHY_DATA or --data."
)
LISTS = ("--use", "--skip", "--topic", "--set")
"""Options that may be given several times."""
_OF_LOGS = ("vehicle", "use", "skip", "feed", "pose_rate", "sensor_delay", "windows", "map", "set", "topic")
_OF_THE_CASE = ("data", "save_vehicles")


@dataclass(frozen=True)
class ValidateCommandConfig(ValidateConfig):
    """What to validate."""

    logs: Positional[tuple[Path, ...]] = ()
    """Logs of one vehicle, of any format (`airworthy logs show` tells what they hold); none: the reference files' case."""
    vehicle: str | None = None
    """That is to explain the logs: a name of the catalogue, or a TOML file."""
    use: tuple[str, ...] = ()
    """Parts of the logs to judge by, START:STOP in seconds; without any, all that is usable."""
    skip: tuple[str, ...] = ()
    """Parts to leave out, START:STOP in seconds."""
    feed: Literal["auto", "speeds", "commands"] = "auto"
    """What the rotors follow: measured speeds, commands, or speeds where they were measured."""
    pose_rate: Annotated[float, POSE_RATE] | None = None
    """True rate of the poses [Hz], by which the log's clock is put right."""
    sensor_delay: Annotated[float, SENSOR_DELAY] = 0.0
    """By which gyro, accelerometer and poses come late [s]: filters that are not in the vehicle's dead time."""
    windows: Annotated[int, WINDOW_COUNT] = 200
    """Of each log, at most; they overlap by no more than half."""
    map: Path | None = None
    """As of `airworthy logs show`."""
    set: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""

    def __post_init__(self) -> None:
        check_fields(self)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(ValidateCommandConfig, gathered(argv, LISTS), "airworthy validate", _DESCRIPTION)
    usual = ValidateCommandConfig()
    odd = [name for name in (_OF_THE_CASE if config.logs else _OF_LOGS) if getattr(config, name) != getattr(usual, name)]
    if odd and config.logs:
        raise AirworthyError(
            f"--{odd[0].replace('_', '-')} belongs to the case of the reference files: leave it out, or the logs."
        )
    if odd:
        raise AirworthyError(f"--{odd[0].replace('_', '-')} is about logs, and none was named; expected LOG... --vehicle FILE.")
    return _logs(config) if config.logs else _case(config)


def _case(config: ValidateCommandConfig) -> int:
    chosen = ValidateConfig(config.data, config.out, config.save_vehicles, config.json)
    found = run_validation(chosen, {"simulated ADIS16448": (simulated_at_rest("adis16448"), RATE)})
    if config.json:
        emit_json(summary(found))
        return 0
    print_tables(found.measured, found.pwm)
    print(f"Numbers: {config.out / 'validation.json'}\nReport:  {config.out / 'report.html'}")
    if config.save_vehicles is not None:
        print(f"Vehicles: {config.save_vehicles}")
    return 0


def _logs(config: ValidateCommandConfig) -> int:
    if config.vehicle is None:
        raise AirworthyError("No vehicle is named that could explain the logs; give --vehicle NAME or --vehicle FILE.toml.")
    options = ValidateOptions(
        use=tuple(span_options(config.use, "--use")),
        skip=tuple(span_options(config.skip, "--skip")),
        feed=config.feed,
        pose_rate=config.pose_rate,
        sensor_delay=config.sensor_delay,
        windows=config.windows,
    )
    command = command_line("airworthy validate", config, leave_out=("json",), positional=("logs",), always=("vehicle",))
    done = run_log_validation(config.logs, config.vehicle, config.out, command, options, read_options(config))
    if config.json:
        emit_json(done.found.record() | {"command": command})
        return 0
    _print(done.found)
    print(f"Numbers: {config.out / SUMMARY}\nReport:  {done.page}")
    return 0


def _print(found: LogValidation) -> None:
    for line in (*found.missing, *found.notes):
        print(f"  {line}")
    names = (*MODELS, *BASELINES)
    rows = [
        (
            row.channel,
            row.windows,
            row.horizon,
            row.count,
            *(_text(row.rms.get(name)) for name in names),
            _text(row.skill[MODELS[0]], 2),
            row.says(),
        )
        for row in found.rows
    ]
    head = ("channel", "windows", "ahead [s]", "of", *names, "skill", "beside the better baseline")
    show_table("Errors, rms with 90 % intervals [rad/s, m/s^2, rad, m/s, m]", head, rows)
    for mismatch in found.mismatches:
        print(f"  {mismatch.sentence}")
    print(found.said)
    print(f"Verdict: {found.word}.")


def _text(estimate: Estimate | None, digits: int = 3) -> str:
    if estimate is None or not math.isfinite(estimate.value):
        return "-"
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return f"{estimate.value:.{digits}g}"
    return f"{estimate.value:.{digits}g} ({estimate.low:.{digits}g} .. {estimate.high:.{digits}g})"
