"""A dead time beside a lag, by the joint method and by the published one (specification of identification, 11.5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airworthy.logs import Log, flight_segments
from airworthy.vehicles import Identified, Known, identify
from airworthy.vehicles.identification.prediction.signals import flight_signals
from airworthy.vehicles.identification.published import PublishedFit, identify_published
from airworthy.verification.identification.truths import MASS_SHARE, RATE, FlownTruth, craft, flown
from airworthy.verification.published import Figure, at_least, below, between

__all__ = ["DEAD_TIME", "dead_time_figures", "fit_jointly", "fit_published"]

LAG, DEAD_STEPS, INERTIA = 0.058, 6, 1.5e-5
"""The specification's truth: lag [s], dead time of 12 ms [steps of a sample], Ixx and Iyy [kg m^2]."""
DEAD_TIME = FlownTruth(craft("dead_time", "quad_x:0.028", 0.027, (INERTIA, INERTIA, 2.8e-5), LAG, 1.9), DEAD_STEPS)
SECONDS = 20.0
"""In the air."""
BIAS_LAG, BIAS_INERTIA = 0.1, 0.05
"""Least that the published method errs by, over the truth: a method that errs less is not that one. The specification's flight
has 0.23 and 0.09."""


def fit_jointly(log: Log) -> Identified:
    """Identify the vehicle of a flight by the joint method.

    Args:
        log: Of `DEAD_TIME`.
    """
    mass = DEAD_TIME.vehicle.mass
    return identify([log], Known(mass=(mass, MASS_SHARE * mass), vehicle=DEAD_TIME.known), quick=True)


def fit_published(log: Log) -> PublishedFit:
    """Fit a flight by the published procedure, which knows of no dead time.

    Args:
        log: Of `DEAD_TIME`.
    """
    vehicle, signals = DEAD_TIME.vehicle, flight_signals(log, flight_segments(log))
    positions, axes = (np.array([getattr(r, name) for r in vehicle.rotors]) for name in ("position", "axis"))
    return identify_published(signals, signals, vehicle.mass, positions, axes)


def dead_time_figures() -> Iterator[Figure]:
    """Measure what both methods make of a flight whose dead time and lag are known."""
    log = flown(DEAD_TIME, 0, SECONDS)
    found, published = fit_jointly(log), fit_published(log)
    lag, late = found.value("lag").value, found.value("command_delay").value
    yield between("dead time: lag of rotors behind it, truth 58 ms", lag, LAG - 0.002, LAG + 0.002, "s")
    yield between("dead time: itself, truth 12 ms", late, DEAD_STEPS / RATE - 0.001, DEAD_STEPS / RATE + 0.001, "s")
    off = max(abs(found.vehicle.inertia[k] / INERTIA - 1.0) for k in (0, 1))
    yield below("dead time: Ixx, Iyy, off by", off, 0.01)
    # The bias is stated, so that nobody takes the simpler method for as good.
    yield at_least("dead time: the published method's lag has taken it up, too long by", published.lag / LAG - 1.0, BIAS_LAG)
    small = 1.0 - published.inertia[0] / INERTIA
    yield at_least("dead time: the published method's Ixx is too small by", small, BIAS_INERTIA)
