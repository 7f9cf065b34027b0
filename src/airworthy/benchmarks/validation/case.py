"""A case of validation as data: which logs, of which vehicles, fitted to what and judged on what. No file is named in code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.benchmarks.validation.structure import Airframe
from airworthy.core.files import parse_toml

__all__ = ["CaseExperiment", "CaseSplit", "ValidationCase", "validation_case"]

CASE_FILE = "crazyflie_imrc.toml"


@dataclass(frozen=True)
class CaseSplit:
    """What is fitted and what is judged."""

    name: str
    judge: str
    """Log."""
    judge_part: tuple[float, float] | None
    """Shares of its time; None: all of it."""
    fit: tuple[str, ...]
    """Logs."""
    fit_part: tuple[float, float] | None
    """Shares of their time; None: all of it."""


@dataclass(frozen=True)
class CaseExperiment:
    """One section of the table."""

    name: str
    title: str
    vehicle: str
    """Name in `ValidationCase.vehicles`."""
    feed: str
    """"speeds": measured rotor speeds; "commands": PWM through a motor map fitted to the same logs as the model."""
    splits: tuple[CaseSplit, ...]
    structures: tuple[str, ...] = ()
    """Candidates for our model; empty: those of measured speeds."""

    @property
    def logs(self) -> tuple[str, ...]:
        """Logs of it, each once."""
        return tuple(dict.fromkeys(name for split in self.splits for name in (*split.fit, split.judge)))


@dataclass(frozen=True)
class ValidationCase:
    """Everything that a validation names."""

    folder: str
    """Of the logs, within the reference files' folder of flights."""
    pose_rate: float
    """Of the capture system [Hz]."""
    vehicles: dict[str, tuple[Airframe, tuple[str, ...]]]
    """Airframe, and logs that are calibrated together."""
    experiments: tuple[CaseExperiment, ...]
    benches: tuple[str, ...]
    inertial: str
    """Folder of a sensor at rest."""
    drawn: dict[str, Any]
    """Which flight and which motors are shown in pictures."""

    def experiment(self, name: str) -> CaseExperiment:
        """Return an experiment by its name."""
        return next(e for e in self.experiments if e.name == name)


@cache
def validation_case(name: str = CASE_FILE) -> ValidationCase:
    """Read a case that comes with this package.

    Args:
        name: Of its file.
    """
    table = parse_toml(files("airworthy.benchmarks.validation").joinpath(name).read_text("utf-8"), name)
    return ValidationCase(
        folder=table["folder"],
        pose_rate=float(table["pose_rate"]),
        vehicles={key: (_airframe(row["airframe"]), tuple(row["logs"])) for key, row in table["vehicles"].items()},
        experiments=tuple(_experiment(row) for row in table["experiments"]),
        benches=tuple(table["benches"]),
        inertial=table["inertial"],
        drawn=dict(table["drawn"]),
    )


def _airframe(row: dict[str, Any]) -> Airframe:
    x, y, z = row["inertia"]
    return Airframe(**{**row, "inertia": (x, y, z)})


def _experiment(row: dict[str, Any]) -> CaseExperiment:
    splits = tuple(
        CaseSplit(
            name=split.get("name", split["judge"]),
            judge=split["judge"],
            judge_part=_part(split.get("judge_part")),
            fit=tuple(split["fit"]),
            fit_part=_part(split.get("fit_part")),
        )
        for split in row["splits"]
    )
    return CaseExperiment(row["name"], row["title"], row["vehicle"], row["feed"], splits, tuple(row.get("structures", ())))


def _part(values: Sequence[float] | None) -> tuple[float, float] | None:
    return None if values is None else (float(values[0]), float(values[1]))
