"""The inertial fit and the fit of drag in turns, until neither moves the other: one fit of everything, by its blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.logs import Log, LogCheck, LogFinding
from airworthy.vehicles.identification.air_speed.drag import AirDrag, AirStretch, fit_drag, without_drag
from airworthy.vehicles.identification.air_speed.motion import CONTRADICTS, FlightMotion, flight_motion
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle
from airworthy.vehicles.uncertainty import DRAGS

__all__ = ["FlightMotions", "drag_in_turns", "flight_motions"]

TURNS = 3
"""At most; the second one moves drag by a few hundredths."""
SETTLED = 0.1
"""Largest move of a drag that ends it, in its deviations."""
Refit = Callable[[Sequence[FlightSignals], Fit], Fit]
"""From flights without their drag and the fit so far to the next one."""


@dataclass(frozen=True, eq=False)
class FlightMotions:
    """How a vehicle moved in some flights."""

    of: dict[str, FlightMotion]
    """By name of a log; empty where no flight has poses, or none was fast enough."""
    reason: str = ""
    """Why there are none, in words; empty: there are, or no log has velocities."""
    notes: tuple[str, ...] = ()
    """What of the logs is not used, a sentence each."""


def flight_motions(
    logs: Sequence[Log],
    signals: Sequence[FlightSignals],
    findings: Sequence[Sequence[LogFinding]],
    checks: Sequence[Sequence[LogCheck]],
) -> FlightMotions:
    """Return how the vehicle moved.

    Args:
        logs: That are fitted.
        signals: Of each.
        findings: What each can tell.
        checks: Of each.
    """
    found = {log.name: flight_motion(log, flight, own) for log, flight, own in zip(logs, signals, checks, strict=True)}
    motions = {name: motion for name, motion in found.items() if isinstance(motion, FlightMotion)}
    contradicted = {name: said for name, said in found.items() if isinstance(said, str) and CONTRADICTS in said}
    notes = [f"{name}: {said}." for name, said in contradicted.items()]
    rows = [f for of in findings for f in of if f.parameter == "drag"]
    if not motions:
        return FlightMotions({}, "; ".join(dict.fromkeys(contradicted.values())), tuple(notes))
    if not any(f.verdict == "can tell" for f in rows):
        return FlightMotions({}, rows[0].reason if rows else "no flight was fast enough", tuple(notes))
    notes += [f"{name}: {said}" for name, motion in motions.items() for said in motion.notes]
    return FlightMotions(motions, "", tuple(notes))


def drag_in_turns(
    fit: Fit,
    motions: Mapping[str, FlightMotion],
    held: Sequence[FlightSignals],
    base: Vehicle,
    refit: Refit,
    quick: bool,
    say: Callable[[str], None],
) -> tuple[Fit, AirDrag]:
    """Return the inertial fit without drag in its readings, and the drag; where nothing of that is believed, the fit as it is.

    Args:
        fit: As inertial sensors tell it alone.
        motions: By name of a flight.
        held: What was held out.
        base: Whose mass and gravity count.
        refit: Fits anew from where a fit is.
        quick: Fewer windows.
        say: Told each stage.
    """
    flights = [windows.flight for windows in fit.problem.windows]
    found: AirDrag | None = None
    alone = fit
    for _ in range(TURNS):
        before, found = found, _drag(fit, flights, motions, held, base, quick, say)
        if found.against:
            return alone, found
        if not found.told or (before is not None and _still(before, found)):
            break
        freed = [without_drag(f, motions[f.name], found) if f.name in motions else f for f in flights]
        fit = refit(freed, fit)
    assert found is not None
    return fit, found


def _drag(
    fit: Fit,
    flights: Sequence[FlightSignals],
    motions: Mapping[str, FlightMotion],
    held: Sequence[FlightSignals],
    base: Vehicle,
    quick: bool,
    say: Callable[[str], None],
) -> AirDrag:
    plants = {f.name: fit.problem.parameters.plant(fit.theta[None], k) for k, f in enumerate(flights)}
    common = fit.problem.parameters.plant(np.where(_own(fit), 0.0, fit.theta)[None], 0)
    judged = [AirStretch(f, motions[f.name], plants.get(f.name, common)) for f in held if f.name in motions]
    mass = float(np.exp(fit.theta[fit.problem.parameters.place("mass")]))
    return fit_drag(_stretches(fit, flights, motions), judged, replace(base, mass=mass), quick, say)


def _own(fit: Fit) -> list[bool]:
    return [item.flight is not None for item in fit.problem.parameters.items]


def _stretches(fit: Fit, flights: Sequence[FlightSignals], motions: Mapping[str, FlightMotion]) -> list[AirStretch]:
    parameters = fit.problem.parameters
    return [
        AirStretch(flight, motions[flight.name], parameters.plant(fit.theta[None], k))
        for k, flight in enumerate(flights)
        if flight.name in motions
    ]


def _still(before: AirDrag, now: AirDrag) -> bool:
    if before.square != now.square:
        return False
    return all(
        abs(now.fit.theta[now.place(name)] - before.fit.theta[before.place(name)]) < SETTLED * now.fit.sd[now.place(name)]
        for name in DRAGS
    )
