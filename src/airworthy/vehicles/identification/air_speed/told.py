"""Drag in the words and tables of an identification: values with their shares, and what of it is uncertain in the record."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.vehicles.identification.air_speed.drag import AirDrag
from airworthy.vehicles.identification.air_speed.problem import DRAG_SD, SQUARE
from airworthy.vehicles.identification.excitation import word
from airworthy.vehicles.identification.values import IdentifiedValue
from airworthy.vehicles.record import UNCERTAIN, Uncertainty, Vehicle
from airworthy.vehicles.uncertainty import DRAGS

__all__ = ["OF_BODY", "drag_source", "drag_uncertainty", "drag_values"]

OF_BODY = "drag of the body"
"""How a source begins that tells it."""


def drag_values(air: AirDrag | str | None, vehicle: Vehicle) -> tuple[tuple[IdentifiedValue, ...], tuple[IdentifiedValue, ...]]:
    """Return values of drag, and what each flight had of its own.

    Args:
        air: What was found; why nothing was fitted to velocities; None: there are none.
        vehicle: That is saved.
    """
    if air is None:
        return (), ()
    believed = {name: value / vehicle.mass for name, value in zip(DRAGS, vehicle.drag.linear, strict=True)}
    if isinstance(air, str):
        return tuple(_believed(name, value) for name, value in believed.items()), ()
    shared: list[IdentifiedValue] = []
    own: list[IdentifiedValue] = []
    for k, item in enumerate(air.fit.problem.parameters.items):
        raw, sd, share = float(air.fit.theta[k]), float(air.fit.sd[k]), float(air.fit.share[k])
        if item.name == SQUARE and not air.told:
            # The record has none of it either.
            continue
        value = math.exp(raw) if item.scale == "log" else raw
        if item.flight is None and word(share, True) == "prior" and item.name in believed:
            shared.append(_believed(item.name, believed[item.name]))
            continue
        spread = sd * value if item.scale == "log" else sd
        name = item.name if item.flight is None else f"{item.name}[{air.names[item.flight]}]"
        laplace, sandwich = float(air.fit.laplace[k]), float(air.fit.sandwich[k])
        row = IdentifiedValue(name, value, spread, share, laplace, sandwich, word(share, True))
        (shared if item.flight is None else own).append(row)
    return tuple(shared), tuple(own)


def _believed(name: str, value: float) -> IdentifiedValue:
    """Return a value that no log told: it stays as the record has it."""
    return IdentifiedValue(name, value, value * DRAG_SD, 0.0, DRAG_SD, DRAG_SD, "prior")


def drag_uncertainty(told: Uncertainty, air: AirDrag) -> Uncertainty:
    """Return an uncertainty with the drag that logs told beside what inertial sensors told.

    Args:
        told: Without drag.
        air: What was found.
    """
    places = [air.place(name) for name in air.told]
    if not places:
        return told
    covariance = air.fit.covariance[np.ix_(places, places)]
    sd = np.sqrt(np.diag(covariance))
    count = len(told.names)
    related = np.eye(count + len(places))
    related[:count, :count] = told.correlation
    related[count:, count:] = np.round(covariance / np.outer(sd, sd), 12)
    np.fill_diagonal(related, 1.0)
    # In the order of `UNCERTAIN`.
    names = (*told.names, *air.told)
    order = sorted(range(len(names)), key=lambda k: list(UNCERTAIN).index(names[k]))

    def ordered(old: tuple[float, ...], new: list[float]) -> tuple[float, ...]:
        both = (*old, *new)
        return tuple(float(both[k]) for k in order)

    return replace(
        told,
        names=tuple(names[k] for k in order),
        transform=tuple("log" if UNCERTAIN[names[k]] == "log" else "linear" for k in order),
        mean=ordered(told.mean, air.fit.theta[places].tolist()),
        sd=ordered(told.sd, sd.tolist()),
        correlation=tuple(tuple(float(v) for v in row) for row in related[np.ix_(order, order)]),
        share=ordered(told.share, [round(float(air.fit.share[k]), 6) for k in places]),
    )


def drag_source(air: AirDrag | str | None, where: str, method: str) -> str:
    """Return where the record's drag per speed is from.

    Args:
        air: As of `drag_values`.
        where: Logs and parts, in words.
        method: Of the fit.
    """
    if air is None:
        return "no log told drag of the body"
    if isinstance(air, str):
        return f"prior: no log told drag of the body, {air}"
    if not air.told:
        return "prior: no log told drag of the body"
    shown = ", ".join(f"{n[-1]} {air.word(n)} +-{100.0 * air.fit.sd[air.place(n)]:.2g} %" for n in air.told)
    rest = "".join(f", {name[-1]} as given" for name in DRAGS if name not in air.told)
    square = f", square {air.value(SQUARE):.3g} 1/m" if air.square else ""
    return f"{OF_BODY}: {where}; {method}, {air.source}; {shown}{rest}{square}"
