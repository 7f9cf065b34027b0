"""Two real flights of a Crazyflie, fitted jointly and judged on parts that no fit saw (specification of identification, 11.3).

The flights were published by Eschmann, Albani and Loianno (2024). Bounds are the specification's; where they are missed a
figure says so and why, and the bound stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles import Identified, Known, frame_vehicle, identify
from airworthy.vehicles.identification.compared import trimmed_rates
from airworthy.vehicles.identification.prediction.predict import FADING, Windows, predict
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.verification.published import Figure, at_least, below, between, explained, within

__all__ = ["CrazyflieFit", "crazyflie_figures", "crazyflie_logs", "fit_crazyflie", "thirds_agree"]

NAMES = ("log10", "log15")
FIT_FROM, FIT_UNTIL = 35.0, (50.0, 72.0)
"""Of the files' clocks: both flights are fitted from the one to the others [s]."""
TESTS = ((50.0, 65.0, 40), (73.0, 90.0, 60))
"""Parts that are judged [s], and how many windows are drawn there."""
STEP, STEPS, SEED = 0.004, 62, 9
"""Of a window, and of the draw of their starts: those for which the specification states its bounds."""
MARKS = ((12, 2.05, 0.75), (25, 3.65, 1.35), (62, 3.45, 2.25))
"""Steps of a window, error there where the rate is held, and the bound [rad/s]."""
FORCE_MAX = 0.40
"""[m/s^2]"""
LAGS, DEAD_TIMES, THRUSTS = (0.050, 0.064), (0.009, 0.017), (0.0745, 0.0762)
"""Ranges that the specification states: lag and dead time [s], thrust of a rotor at a command of 0.7 [N]."""
THIRDS = ((5.0, 20.0), (20.5, 34.0), (34.5, 54.0))
"""Of the logs' clocks [s]."""
COMPARED = (
    *("thrust", "thrust_linear", "lag", "command_delay", "inertia_xx", "inertia_yy", "center_x", "center_y", "damping"),
    *("drag_height", "force_delay"),
)
AGREE_MIN = 0.9
"""Share of values in which fits to two thirds must differ by less than twice the deviation of their difference."""
WHY_RATE = (
    "The trim about x drifts through the flight; a fit that weighs all errors alike reaches 1.79 rad/s by a dead time of 22 ms"
    " and 1.7 times the inertia, taking a pilot's answer to a push for the vehicle's."
)
WHY_LATE = (
    "9 to 17 ms are of fits that weigh all errors alike; of a simulated flight with pushes and 12 ms such a fit finds 13.1,"
    " this one 12.2 ms."
)
WHY_THRUST = "Gravity in flight reads 0.4 % too much by this accelerometer, and the thrust is told to 1.6 %."


@dataclass(frozen=True)
class CrazyflieFit:
    """What was fitted, and how it predicts what no fit saw, rms over the specification's windows."""

    found: Identified
    held: Array
    """Of the rate held as it was, at `MARKS` [rad/s], (3,)."""
    rate: Array
    """Of the fit, about x and y [rad/s], (3,)."""
    trimmed: Array
    """Of the fit with the push of the moment before carried on [rad/s], (3,)."""
    force: float
    """Of the specific force along z [m/s^2]."""

    @property
    def thrust(self) -> float:
        """Return the thrust of a rotor at a command of 0.7 [N]; the fit's command of 1 is a state of 1,000."""
        _, c1, c2 = self.found.vehicle.rotors[0].thrust
        return c1 * 700.0 + c2 * 700.0**2


def crazyflie_logs(folder: Path) -> list[Log]:
    """Read both flights.

    Args:
        folder: Of reference files.
    """
    return [read_log(folder / "flights/crazyflie_sysid" / name) for name in NAMES]


def known_crazyflie() -> Known:
    """Return what its publishers tell: 27 g, hubs 28 mm from the middle along x and y."""
    return Known(mass=(0.027, 0.0003), vehicle=frame_vehicle("quad_x:0.028", 0.027))


def fit_crazyflie(logs: Sequence[Log]) -> CrazyflieFit:
    """Fit the first parts of both flights, and predict windows of the later ones.

    Args:
        logs: Of `crazyflie_logs`.
    """
    begin = [log.source.start_ns * 1e-9 for log in logs]
    # Each log from its start, where the vehicle rests, to the end of its part, which a skip of all logs begins.
    cut = [_until(log, stop - first) for log, stop, first in zip(logs, FIT_UNTIL, begin, strict=True)]
    found = identify(cut, known_crazyflie(), holdout=logs, skip=[(0.0, FIT_FROM - begin[0])])
    assert found.table is not None
    plants = [found.fit.problem.parameters.plant(found.fit.theta[None], k) for k in (0, 1)]
    force, turning = (_windows(log, part, first) for log, part, first in zip(logs, TESTS, begin, strict=True))
    measured = turning.rate[..., :2]
    errors = (
        measured[:, :1] - measured,
        predict(plants[1], turning).rate[0, ..., :2] - measured,
        trimmed_rates(plants[1], turning, found.table.trim)[..., :2] - measured,
    )
    held, rate, trimmed = (np.array([_rms(error[:, step]) for step, _, _ in MARKS]) for error in errors)
    pulled = predict(plants[0], force).force[0, :, 1:, 2] - force.force[:, 1:, 2]
    return CrazyflieFit(found, held, rate, trimmed, _rms(pulled))


def thirds_agree(logs: Sequence[Log]) -> float:
    """Return the least share of values in which fits to two of three disjoint parts of the flights agree (`AGREE_MIN`).

    Args:
        logs: Of `crazyflie_logs`.
    """
    fits = [identify(logs, known_crazyflie(), quick=True, use=[part], holdout=logs[:1]).fit for part in THIRDS]
    places = [fits[0].problem.parameters.place(name) for name in COMPARED]
    shares = []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        apart = (fits[one].theta - fits[other].theta) / np.hypot(fits[one].sd, fits[other].sd)
        shares.append(float(np.mean(np.abs(apart[places]) < 2.0)))
    return min(shares)


def crazyflie_figures(folder: Path, everything: bool) -> Iterator[Figure]:
    """Measure how two real flights are explained.

    Args:
        folder: Of reference files; without the flights nothing is measured.
        everything: Fits to thirds of the flights are compared, too.
    """
    if not all((folder / "flights/crazyflie_sysid" / name).is_file() for name in NAMES):
        return
    logs = crazyflie_logs(folder)
    fit = fit_crazyflie(logs)
    for (step, held, bound), still, rate in zip(MARKS, fit.held, fit.rate, strict=True):
        after = f"{1e3 * STEP * step:.0f} ms"
        yield within(f"log15, not fitted: rate held, after {after}", float(still), held, 0.005, "rad/s")
        yield explained(below(f"log15, not fitted: rate predicted, after {after}", float(rate), bound, "rad/s"), WHY_RATE)
    title = "log15, not fitted: rate with the push of the moment before, after 248 ms"
    yield below(title, float(fit.trimmed[-1]), MARKS[-1][2], "rad/s")
    yield below("log10, not fitted: specific force along z", fit.force, FORCE_MAX, "m/s^2")
    yield between("log10, log15 jointly: lag", fit.found.value("lag").value, *LAGS, "s")
    late = between("log10, log15 jointly: dead time", fit.found.value("command_delay").value, *DEAD_TIMES, "s")
    yield explained(late, WHY_LATE)
    yield explained(between("log10, log15 jointly: thrust at a command of 0.7", fit.thrust, *THRUSTS, "N"), WHY_THRUST)
    if everything:
        title = f"thirds of both flights: share of {len(COMPARED)} values that agree, worst pair"
        yield at_least(title, thirds_agree(logs), AGREE_MIN)


def _windows(log: Log, part: tuple[float, float, int], begin: float) -> Windows:
    """Windows of a part that no fit saw, which start where the specification's do."""
    low, high, count = part
    flight: FlightSignals = flight_signals(log, flight_segments(log)).within((low - begin, high - begin))
    start = np.sort(np.random.default_rng(SEED).uniform(low + 0.5, high - 0.4, count)) - begin
    time = start[:, None] + STEP * np.arange(STEPS + 1)
    return Windows(flight, start, STEP, flight.gyro.mean(time, 0.005), flight.force.mean(time, 0.005), FADING)


def _until(log: Log, stop: float) -> Log:
    return replace(log, streams=tuple(stream.between(0.0, stop) for stream in log.streams))


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
