"""What watching found, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Drift", "DriftSize", "TrackRow", "WatchableCause", "WatchedVehicle"]

WORDS = {
    "mass": "mass (inertia as it was)",
    "thrust": "thrust of all rotors",
    "thrust_over_mass": "thrust over mass",
    "center": "centre of mass",
    "payload": "mass and centre of mass",
    "lag": "lag of the rotors",
    "command_delay": "dead time of commands",
}
RATIO_NOTE = "more mass and less thrust of all rotors show alike here, as their ratio"
SPREAD_NOTE = "mass that is spread as the vehicle's own shows like less thrust of all"


def cause_words(cause: str) -> str:
    """Return a cause as it is told to people."""
    return f"thrust of rotor {cause.partition('_')[2]}" if cause.startswith("rotor_") else WORDS[cause]


@dataclass(frozen=True)
class DriftSize:
    """By how much a value has changed, with its 90 % interval."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    """"1" for shares of what the record says, else SI."""

    def text(self) -> str:
        """Return it with its interval, shares in percent, times in ms, lengths in mm."""
        factor, unit = {"1": (100.0, "%"), "s": (1e3, "ms"), "m": (1e3, "mm")}[self.unit]
        value, low, high = (factor * v for v in (self.value, self.low, self.high))
        return f"{self.name.replace('_', ' ')} {value:+.3g} {unit} ({low:+.3g} to {high:+.3g})"


@dataclass(frozen=True)
class Drift:
    """One value that has drifted."""

    cause: str
    """A name of `WORDS`, or rotor_K."""
    told: bool
    """Whether the log tells this cause from all others that are looked for."""
    alternatives: tuple[str, ...]
    """Causes that the log does not tell from it."""
    steadily: bool
    """It goes on from its begin to the end of what was seen, rather than having come at once; sizes are those at the end."""
    log: str
    began: float
    """[s] of that log's clock."""
    began_low: float
    began_high: float
    """90 % interval of the begin; of what was so from the first second on, both are that."""
    before: bool
    """It was so when the first usable second of the log began."""
    alarm_log: str
    alarmed: float
    """When what had come until then was enough [s] of that log's clock."""
    sizes: tuple[DriftSize, ...]
    score: float
    """-log10 of the chance of it without a change, by the filter's own noise."""
    voltage_fall: float | None = None
    """Share by which the battery's voltage has fallen meanwhile; None where it was not logged, or the cause is no thrust."""

    @property
    def sentence(self) -> str:
        """It in words."""
        when = f"since {self.began:.1f} s of {self.log} ({self.began_low:.1f} to {self.began_high:.1f})"
        if self.before:
            when = f"from the first usable second of {self.log} on"
        pace = ", going on" if self.steadily else ""
        text = f"{cause_words(self.cause)}: {', '.join(s.text() for s in self.sizes)}, {when}{pace}."
        if self.cause == "thrust_over_mass":
            text += f" Which of both is not told: {RATIO_NOTE}."
        elif self.cause == "thrust":
            text += f" Note: {SPREAD_NOTE}."
        if self.alternatives:
            text += f" The log does not tell it from: {', '.join(cause_words(a) for a in self.alternatives)}."
        if self.voltage_fall is not None:
            text += f" The battery's voltage fell by {100.0 * self.voltage_fall:.1f} % meanwhile."
        return text


@dataclass(frozen=True)
class WatchableCause:
    """How small a change of something these logs would show within ten seconds."""

    cause: str
    smallest: float | None
    """Share, or SI; None: no change of it would show, so it was not watched."""
    unit: str


@dataclass(frozen=True)
class TrackRow:
    """A deviation from the record as it was known after half a second more of a log."""

    log: str
    time: float
    name: str
    value: float
    sd: float
    unit: str


@dataclass(frozen=True, eq=False)
class WatchedVehicle:
    """What `watch` returns."""

    vehicle: str
    logs: tuple[str, ...]
    seconds: float
    """That were watched."""
    threshold: float
    drifts: tuple[Drift, ...]
    """In order of their begin."""
    watchable: tuple[WatchableCause, ...]
    track: tuple[TrackRow, ...]
    noise: float
    """By how much neighbouring seconds differ more than the sensors' noise explains; gusts."""
    notes: tuple[str, ...]

    @property
    def alarm(self) -> bool:
        """Whether anything has drifted."""
        return bool(self.drifts)

    def record(self) -> dict[str, Any]:
        """Return all but the track as plain values."""
        plain = {k: v for k, v in asdict(self).items() if k != "track"}
        plain["alarm"] = self.alarm
        for row, drift in zip(plain["drifts"], self.drifts, strict=True):
            row["sentence"] = drift.sentence
        return plain

    def rows(self) -> str:
        """Return the track as CSV text: value and 90 % interval of each deviation after each half second."""
        lines = ["log,time_s,name,value,low,high,unit"]
        for row in self.track:
            low, high = row.value - 1.645 * row.sd, row.value + 1.645 * row.sd
            name = '"' + row.log.replace('"', '""') + '"' if any(c in row.log for c in ',"\n\r') else row.log
            lines.append(f"{name},{row.time:.3f},{row.name},{row.value:.6g},{low:.6g},{high:.6g},{row.unit}")
        return "\n".join(lines) + "\n"


def unit_of(name: str) -> str:
    """Return the unit of a deviation: "1" for logarithms, which are told as shares."""
    return {"command_delay": "s", "center_x": "m", "center_y": "m", "thrust_drift": "1/s"}.get(name, "1")


def plain(name: str, value: float) -> float:
    """Return a deviation as it is told: logarithms as shares."""
    return math.expm1(value) if unit_of(name) == "1" else value
