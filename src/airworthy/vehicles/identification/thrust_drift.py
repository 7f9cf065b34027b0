"""What thrust of all rotors does within flights whose voltage tells no sag: of what a battery does the record is told.

A fit takes thrust as constant. What is read along z over what it predicts then goes with the time in the air as the battery
empties; a line through its logarithm tells the rate, and its deviation from flight to flight. Whole flights are looked at, what
is held out of them, too: batteries fall faster in the beginning, and no prediction that is judged uses the rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.prediction.predict import Windows, cut_windows, predict
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import ThrustDrift

__all__ = ["drift_cause", "flight_rate", "thrust_drift"]

USUAL = 0.003
"""Deviation of rates beforehand [1/s]; ours: a battery that loses a sixth of its lift in a minute."""
UNLIKE = 0.2
"""Share of a rate by which another flight's may differ at least, its battery being another one or less full; ours."""
LASTING = 4.0
"""Errors of thrust go with themselves for so long [s]: so few of them count."""
LENGTH, LEAST = 0.35, 1.0
"""Of windows, and of a part that holds one [s]."""
APART = 2.0
"""Windows closer than that tell no slope [s]."""
ROUND = 6
"""Decimals that are kept."""


def thrust_drift(
    fit: Fit, flights: Sequence[FlightSignals], took_off: Sequence[float]
) -> tuple[ThrustDrift | None, tuple[str, ...]]:
    """Return what thrust does within flights, and what is said of it; None where they are too short.

    Args:
        fit: With rotors that follow commands, of which no sag is told.
        flights: Those of which it was fitted to parts, whole.
        took_off: When each of them began [s].
    """
    rates, sds, middles, notes = [], [], [], []
    for k, flight in enumerate(flights):
        if max((b - a for a, b in flight.spans), default=0.0) < LEAST:
            continue
        windows = cut_windows(flight, max(int(flight.usable_time), 3), LENGTH)
        time = windows.start - took_off[k]
        rate, sd = flight_rate(time, _excess(fit, k, windows))
        if abs(rate) > 2.0 * sd:
            notes.append(
                f"{flight.name}: thrust {'falls' if rate < 0.0 else 'grows'} by {100.0 * abs(rate):.2f} % per second"
                f" (+-{100.0 * sd:.2f}), {drift_cause(flight)}; it is taken as constant."
            )
        rates.append(rate)
        sds.append(sd)
        middles.append(float(time.mean()))
    if not rates:
        return None, ()
    weight = 1.0 / np.square(sds)
    rate = float(np.sum(weight * rates) / weight.sum())
    unlike = max(UNLIKE * abs(rate), float(np.std(rates, ddof=1)) if len(rates) > 1 else 0.0)
    sd = float(np.sqrt(1.0 / weight.sum() + unlike**2))
    return ThrustDrift(round(rate, ROUND), round(sd, ROUND), round(float(np.mean(middles)), 3)), tuple(notes)


def drift_cause(flight: FlightSignals) -> str:
    """Return why thrust may do so, the rest of a sentence: by whether the flight's voltage was measured."""
    if flight.supply is None:
        return "as an emptying battery makes it that no voltage tells"
    return "as an emptying battery makes it, and the voltage moves too little where it is fitted to tell how"


def flight_rate(time: Array, excess: Array) -> tuple[float, float]:
    """Return the rate at which something changes in a flight and its deviation, drawn to what is usual [1/s].

    The median of slopes between any two (Theil and Sen): the first second behind take-off is none of it.

    Args:
        time: Since take-off [s], (n,).
        excess: Logarithm of what is read over what is predicted, (n,).
    """
    across = time[None] - time[:, None]
    far = across > APART
    if not far.any():
        return 0.0, USUAL
    slope = float(np.median((excess[None] - excess[:, None])[far] / across[far]))
    left = excess - slope * time
    scatter = 1.4826 * float(np.median(np.abs(left - np.median(left))))
    counted = max(min(len(time), float(np.ptp(time)) / LASTING), 1.0)
    sd = max(scatter, 1e-4) / (float(time.std()) * np.sqrt(counted))
    share = USUAL**2 / (USUAL**2 + sd**2)
    return share * slope, float(np.sqrt(share) * sd)


def _excess(fit: Fit, k: int, windows: Windows) -> Array:
    """Logarithm of the specific force along z that windows read over what they predict, (windows,)."""
    predicted = predict(fit.problem.parameters.plant(fit.theta[None], k), windows).force[0, ..., 2].mean(axis=1)
    return np.log(np.maximum(windows.force[..., 2].mean(axis=1), 1e-3) / np.maximum(predicted, 1e-3))
