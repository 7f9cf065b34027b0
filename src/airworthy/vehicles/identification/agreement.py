"""Do logs show one vehicle? Specific force over what the motors were told, flight by flight, and first against last.

Another mass, another propeller, a worn battery or a payload that was dropped changes force at like commands. One curve for all
flights then fits none of them, and what a fit calls its error is too small (specification identify, 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.logs import Log
from airworthy.vehicles.identification.prediction.signals import FlightSignals

__all__ = [
    "JudgeLift",
    "LiftShare",
    "agreement_notes",
    "fitted_judges",
    "lift_shares",
    "refuse_orders",
    "refuse_repeated",
    "refuse_unlike",
    "unlike",
    "unlike_judges",
]

BLOCK = 0.5
"""Over which force and commands are averaged [s]: many lags of motors, so that none has to be known."""
BLOCKS_MIN = 6
"""Fewer tell nothing."""
WORTH, REFUSED = 0.04, 0.2
"""Ours: shares of lift by which flights differ that are told, and that no battery explains: half of it is another mass or
propeller. The same vehicle on a full and on an empty cell differs by 0.05 to 0.12."""
BATTERY = 0.12
"""The most that a battery does: what judges a fit and differs by more is of another vehicle, and its verdict says so."""
LATE = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
"""Ours: by how much forces may come after commands, lag and dead time together [s]; what explains forces best is taken. A
force that is held against the command of another moment bends the curve, and hides part of another mass."""
LINEAR = 0.3
"""Ours: deviation that is believed of the linear part of a rotor's thrust, of its whole: motors have 0 to half. It counts where
flights show no curve, as in hover."""
ROUNDS = 40
"""Of fitting a common curve and each stretch's level in turn."""
SURE = 3.0
"""Standard errors beyond which a difference is one."""


@dataclass(frozen=True)
class LiftShare:
    """How much a stretch lifts of what all flights together do at its commands."""

    name: str
    share: float
    error: float
    """Standard error."""
    flight: int = 0
    """Whose it is, by its place among the flights; two may have one name."""


def lift_shares(flights: Sequence[FlightSignals], parts: int = 1) -> list[LiftShare]:
    """Return lift of each flight, or of each part of it, over that of all of them at like commands.

    Args:
        flights: Signals.
        parts: Of each flight, one after the other.
    """
    rows = [(name, k, *of) for k, flight in enumerate(flights) for name, of in _stretches(flight, parts).items()]
    if not rows:
        return []
    found = [_lifted([(_commands(flights[k], time, late), force) for _, k, time, force in rows]) for late in LATE]
    ratios = min(found, key=lambda item: item[1])[0]
    whole = float(np.concatenate(ratios).mean())
    return [
        LiftShare(name, float(ratio.mean()) / whole, float(ratio.std(ddof=1) / np.sqrt(len(ratio))) / whole, k)
        for (name, k, _, _), ratio in zip(rows, ratios, strict=True)
    ]


def _lifted(stretches: Sequence[tuple[Array, Array]]) -> tuple[list[Array], float]:
    """Return force over one curve of commands, (n,) for each stretch, and the deviation of what the curve leaves.

    Stretches share the curve's shape; its level is each one's own, and goes with time. One curve for all alone would bend
    towards both: who flies heavier gives more command for the same force, and a flatter curve would explain half of that. So
    would it explain a battery that falls, which asks for more command as time goes on.
    """
    rows = np.concatenate([known for known, _ in stretches])
    felt = np.concatenate([force for _, force in stretches])
    middle = np.maximum(np.abs(rows).mean(axis=0), 1e-9)
    times = [np.linspace(-0.5, 0.5, len(force)) for _, force in stretches]
    levels = [np.full(len(force), force.mean() / max(float(known[:, 1].mean()), 1e-9)) for known, force in stretches]
    noise = LINEAR * float(felt.mean())
    for _ in range(ROUNDS):
        level = np.concatenate(levels) / float(np.mean([own.mean() for own in levels]))
        plain = felt / level
        square = np.array([0.0, float(plain.mean()) / middle[1]])
        # What is believed beforehand, a square, weighs as much as its deviation says beside the noise.
        weight = np.diag(noise / (LINEAR * max(float(felt.mean()), 1e-9)) * middle)
        curve = np.linalg.lstsq(np.vstack([rows, weight]), np.concatenate([plain, weight @ square]), rcond=None)[0]
        noise = max(float(np.std(plain - rows @ curve)), 1e-6 * float(felt.mean()))
        ratios = [force / np.maximum(known @ curve, 1e-6) for known, force in stretches]
        levels = [_line(time, ratio) for time, ratio in zip(times, ratios, strict=True)]
    return ratios, noise


def _line(time: Array, values: Array) -> Array:
    """Return the straight line through values, at least a tenth of their mean; times are about 0."""
    mean = float(values.mean())
    slope = float(time @ (values - mean)) / max(float(time @ time), 1e-12)
    return np.maximum(mean + slope * time, 0.1 * mean)


def _stretches(flight: FlightSignals, parts: int) -> dict[str, tuple[Array, Array]]:
    """Return parts of a flight by name, with the middles of their blocks [s], (n,), and specific force along z there, (n,)."""
    middles = [np.arange(a + 0.5 * BLOCK, b - 0.5 * BLOCK, BLOCK) for a, b in flight.spans]
    time = np.concatenate(middles) if middles else np.zeros(0)
    found = {}
    for k, rows in enumerate(np.array_split(np.arange(len(time)), parts)):
        if len(rows) >= BLOCKS_MIN:
            name = flight.name if parts == 1 else f"{flight.name}, part {k + 1} of {parts}"
            found[name] = (time[rows], flight.force.mean(time[rows], BLOCK)[:, 2])
    return found


def _commands(flight: FlightSignals, time: Array, late: float) -> Array:
    """Return sums of commands and of their squares in means over blocks before forces, (n, 2).

    Args:
        flight: Signals.
        time: Middles of the blocks of forces [s], (n,).
        late: By how much forces come after commands [s].
    """
    command = flight.command
    edges = [
        np.clip((time - late + half * BLOCK - command.start) / command.period, 0, len(command.values)) for half in (-0.5, 0.5)
    ]
    first, last = (edge.astype(np.int64) for edge in edges)
    values = np.abs(command.values)
    summed = [np.concatenate([[0.0], np.cumsum(v.sum(axis=1))]) for v in (values, values**2)]
    count = np.maximum(last - first, 1)
    return np.stack([(s[last] - s[first]) / count for s in summed], axis=1)


def _furthest(shares: Sequence[LiftShare]) -> tuple[LiftShare, LiftShare, bool] | None:
    """Return the least and the greatest, and whether they differ beyond chance."""
    if len(shares) < 2:
        return None
    low, high = min(shares, key=lambda s: s.share), max(shares, key=lambda s: s.share)
    sure = high.share - low.share > SURE * float(np.hypot(low.error, high.error))
    return low, high, sure


def refuse_repeated(logs: Sequence[Log], judges: Sequence[Log] = ()) -> None:
    """Refuse a flight that is given twice, whatever its file is called: it would count as two flights that agree.

    Args:
        logs: That are fitted, or judged, together.
        judges: That judge a fit to them.

    Raises:
        AirworthyError: Two hold the same samples of everything.
    """
    known: dict[str, Log] = {}
    for k, log in enumerate([*logs, *judges]):
        content = _content(log)
        if content not in known:
            known[content] = log
            continue
        twice = f"Logs {known[content].name!r} and {log.name!r} hold the same flight"
        if k < len(logs):
            raise AirworthyError(f"{twice}: counted twice it would look surer than it is; give it once.")
        raise AirworthyError(f"{twice}: what judges a fit must not be fitted; give another --holdout, or leave it out.")


def fitted_judges(logs: Sequence[Log], judges: Sequence[Log]) -> list[str]:
    """Return a sentence for each log that judges and is fitted in part, as --use and --skip leave it.

    Args:
        logs: That are fitted.
        judges: That judge the fit.
    """
    fitted = {_content(log) for log in logs}
    return [
        f"{log.name} judges, and parts of it are fitted: there its errors are those of a fit."
        for log in judges
        if _content(log) in fitted
    ]


def _content(log: Log) -> str:
    """Return what a log holds, whatever its file is called."""
    return "".join(f"{s.name}{sha256(np.ascontiguousarray(s.values).tobytes())}" for s in log.streams)


def refuse_orders(names: Sequence[str], orders: Sequence[tuple[int, ...] | None]) -> None:
    """Refuse logs whose motors come in different orders.

    Args:
        names: Of the logs.
        orders: Which column each rotor is, as each log tells it; None: it does not.

    Raises:
        AirworthyError: Two of them differ.
    """
    told = [(name, order) for name, order in zip(names, orders, strict=True) if order is not None]
    for name, order in told[1:]:
        if order != told[0][1]:
            shown = [" ".join(str(k + 1) for k in of) for of in (told[0][1], order)]
            raise AirworthyError(
                f"Motors of log {told[0][0]!r} come in the order {shown[0]}, those of {name!r} in the order {shown[1]}: these"
                " logs are not of one vehicle; identify or validate them apart."
            )


@dataclass(frozen=True)
class JudgeLift:
    """A flight that judges a fit and lifts otherwise than all that are fitted, beyond chance."""

    name: str
    beside: str
    """The fitted flight that comes nearest."""
    ratio: float
    """Of its lift per mass at like commands."""
    apart: float
    """Difference of the two in shares of the lift of all."""

    @property
    def sentence(self) -> str:
        """What differs, and what that does to errors."""
        return f"{self._said}: its errors of force are in part those of another payload, propeller or battery."

    @property
    def verdict(self) -> str:
        """Why it judges nothing; empty where a battery may explain it."""
        if self.apart <= BATTERY:
            return ""
        return (
            f"{self._said}: no battery does that, so it is of another vehicle (mass, propeller) and judges nothing of this one;"
            " hold out another flight (--holdout)."
        )

    @property
    def _said(self) -> str:
        way = "more" if self.ratio > 1.0 else "less"
        share = 100.0 * abs(self.ratio - 1.0)
        lifts = f"lifts {share:.0f} % {way} per mass at like commands than"
        return f"{self.name}, which judges, {lifts} {self.beside}, which is fitted"


def _judged(flights: Sequence[FlightSignals], judges: Sequence[FlightSignals]) -> list[JudgeLift]:
    """Return what each judge differs by from the fitted flight that comes nearest, where that is beyond chance."""
    shares = lift_shares([*flights, *judges])
    # Flights too short to tell have no share.
    fitted, found = [s for s in shares if s.flight < len(flights)], list[JudgeLift]()
    if not fitted:
        return []
    low, high = min(fitted, key=lambda s: s.share), max(fitted, key=lambda s: s.share)
    for own in (s for s in shares if s.flight >= len(flights)):
        near = high if own.share > high.share else low if own.share < low.share else own
        apart = abs(own.share - near.share)
        if apart > SURE * float(np.hypot(own.error, near.error)):
            found.append(JudgeLift(own.name, near.name, own.share / near.share, apart))
    return found


def unlike_judges(flights: Sequence[FlightSignals], judges: Sequence[FlightSignals]) -> list[JudgeLift]:
    """Return which flights that judge a fit lift otherwise than all that are fitted, by the rule of `agreement_notes`.

    Args:
        flights: That are fitted; signals, motors in the vehicle's order.
        judges: That judge the fit.
    """
    return [found for found in _judged(flights, judges) if found.apart > WORTH]


def unlike(flights: Sequence[FlightSignals], judges: Sequence[FlightSignals] = ()) -> tuple[float, str] | None:
    """Return by how much two flights differ that cannot be of one vehicle, and a sentence; None where all can.

    Args:
        flights: Signals, motors in the vehicle's order.
        judges: Signals of what judges a fit to them.
    """
    found = _furthest(lift_shares(flights))
    if found is not None and found[2] and found[1].share - found[0].share > REFUSED:
        low, high, _ = found
        return high.share - low.share, (
            f"At like commands {high.name!r} lifts {high.share / low.share:.2f} times as much per mass as {low.name!r}: these"
            " logs are not of one vehicle (another mass, propeller or battery); identify or validate them apart."
        )
    if not judges:
        return None
    worst = max(_judged(flights, judges), key=lambda j: j.apart, default=None)
    if worst is None or worst.apart <= REFUSED:
        return None
    return worst.apart, (
        f"At like commands {worst.name!r}, which is held out, lifts {worst.ratio:.2f} times as much per mass as"
        f" {worst.beside!r}, which is fitted: it is of another vehicle (mass, propeller or battery) and judges nothing of this"
        " one; give another --holdout, or leave it out."
    )


def refuse_unlike(flights: Sequence[FlightSignals], judges: Sequence[FlightSignals] = ()) -> None:
    """Refuse flights that cannot be of one vehicle.

    Args:
        flights: Signals, motors in the vehicle's order.
        judges: Signals of what judges a fit to them.

    Raises:
        AirworthyError: At like commands one lifts so much more than another that no battery explains it.
    """
    found = unlike(flights, judges)
    if found is not None:
        raise AirworthyError(found[1])


def agreement_notes(flights: Sequence[FlightSignals]) -> list[str]:
    """Return sentences about flights, and about parts of a flight, that differ more than chance.

    Args:
        flights: Signals, motors in the vehicle's order.
    """
    notes = []
    cases = [(lift_shares(flights), "between flights")] + [(lift_shares([flight], 2), "within a flight") for flight in flights]
    for shares, where in cases:
        found = _furthest(shares)
        if found is not None and found[2] and found[1].share - found[0].share > WORTH:
            low, high, _ = found
            notes.append(
                f"Lift at like commands changes {where}: {high.name} has {100.0 * (high.share / low.share - 1.0):.0f} % more"
                f" than {low.name}. Payload, propeller, battery or ground; one vehicle fits them only on average."
            )
    return notes
