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

__all__ = ["LiftShare", "agreement_notes", "fitted_judges", "lift_shares", "refuse_orders", "refuse_repeated", "refuse_unlike"]

BLOCK = 0.5
"""Over which force and commands are averaged [s]: many lags of motors, so that none has to be known."""
BLOCKS_MIN = 6
"""Fewer tell nothing."""
WORTH, REFUSED = 0.04, 0.2
"""Ours: shares of lift by which flights differ that are told, and that no battery explains: half of it is another mass or
propeller. The same vehicle on a full and on an empty cell differs by 0.05 to 0.12."""
ROUNDS = 20
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


def lift_shares(flights: Sequence[FlightSignals], parts: int = 1) -> list[LiftShare]:
    """Return lift of each flight, or of each part of it, over that of all of them at like commands.

    Args:
        flights: Signals.
        parts: Of each flight, one after the other.
    """
    stretches = []
    for flight in flights:
        known, force = _blocks(flight)
        for k, rows in enumerate(np.array_split(np.arange(len(force)), parts)):
            if len(rows) >= BLOCKS_MIN:
                name = flight.name if parts == 1 else f"{flight.name}, part {k + 1} of {parts}"
                stretches.append((name, known[rows], force[rows]))
    if not stretches:
        return []
    ratios = _lifted([(known, force) for _, known, force in stretches])
    whole = float(np.concatenate(ratios).mean())
    return [
        LiftShare(name, float(ratio.mean()) / whole, float(ratio.std(ddof=1) / np.sqrt(len(ratio))) / whole)
        for (name, _, _), ratio in zip(stretches, ratios, strict=True)
    ]


def _lifted(stretches: Sequence[tuple[Array, Array]]) -> list[Array]:
    """Return force over one curve of commands, whose shape all stretches share and whose level is each one's own, (n,) each.

    One curve for all alone would bend towards both: who flies heavier gives more command for the same force, and a flatter
    curve would explain half of that.
    """
    rows = np.concatenate([known for known, _ in stretches])
    felt = np.concatenate([force for _, force in stretches])
    # A weak pull towards a plain square keeps flights that only hover from asking for a curve.
    weight = 0.05 * np.sqrt(len(felt)) * np.diag(np.abs(rows).mean(axis=0))
    levels = np.array([force.mean() / max(float(known[:, 1].mean()), 1e-9) for known, force in stretches])
    for _ in range(ROUNDS):
        levels = levels / levels.mean()
        level = np.concatenate([np.full(len(force), own) for (_, force), own in zip(stretches, levels, strict=True)])
        square = np.array([0.0, float((felt / level).mean() / max(rows[:, 1].mean(), 1e-9))])
        curve = np.linalg.lstsq(np.vstack([rows, weight]), np.concatenate([felt / level, weight @ square]), rcond=None)[0]
        ratios = [force / np.maximum(known @ curve, 1e-6) for known, force in stretches]
        levels = np.array([ratio.mean() for ratio in ratios])
    return ratios


def _blocks(flight: FlightSignals) -> tuple[Array, Array]:
    """Return sums of commands and of their squares, (n, 2), and specific force along z, (n,), in means over blocks."""
    middles = [np.arange(a + 0.5 * BLOCK, b - 0.5 * BLOCK, BLOCK) for a, b in flight.spans]
    time = np.concatenate(middles) if middles else np.zeros(0)
    if not time.size:
        return np.zeros((0, 2)), np.zeros(0)
    command = flight.command
    edges = [np.clip((time + half * BLOCK - command.start) / command.period, 0, len(command.values)) for half in (-0.5, 0.5)]
    first, last = (edge.astype(np.int64) for edge in edges)
    values = np.abs(command.values)
    summed = [np.concatenate([[0.0], np.cumsum(v.sum(axis=1))]) for v in (values, values**2)]
    count = np.maximum(last - first, 1)
    known = np.stack([(s[last] - s[first]) / count for s in summed], axis=1)
    return known, flight.force.mean(time, BLOCK)[:, 2]


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


def refuse_unlike(flights: Sequence[FlightSignals]) -> None:
    """Refuse flights that cannot be of one vehicle.

    Args:
        flights: Signals, motors in the vehicle's order.

    Raises:
        AirworthyError: At like commands one lifts so much more than another that no battery explains it.
    """
    found = _furthest(lift_shares(flights))
    if found is None:
        return
    low, high, sure = found
    if sure and high.share - low.share > REFUSED:
        raise AirworthyError(
            f"At like commands {high.name!r} lifts {high.share / low.share:.2f} times as much per mass as {low.name!r}: these"
            " logs are not of one vehicle (another mass, propeller or battery); identify or validate them apart."
        )


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
