"""What half a second of a log says of all deviations at once: windows are predicted, and their errors and slopes condensed.

Windows of 0.35 s follow one another by a quarter of a second. From a measured rate each is predicted by the equations of
identification and never corrected. Errors of a channel are weighed by the inverse of their covariance over the window, and the
first tenth of a second only foretells the rest, so that a push of air and what a pilot does against it tell little. The errors
of an epoch and their slopes over the deviations are then brought to as many numbers as there are deviations by a QR
decomposition: nothing of what they tell is lost, and a filter over hours stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.fitting.refine import BLOCK_STEPS, window_errors
from airworthy.vehicles.identification.prediction.predict import STEP, Windows
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.watching.values import Watched

__all__ = ["EPOCH", "Epochs", "epochs_of"]

BLOCKS, TOLD = 14, 4
"""Blocks of a window (25 ms each), and first ones that only foretell."""
HOP = (BLOCKS - TOLD) * BLOCK_STEPS * STEP
"""From window to window [s]: what counts of one begins where that of the one before it ends."""
PER_EPOCH = 2
EPOCH = PER_EPOCH * HOP
"""[s]"""
EDGE = 0.12
"""Sensors are averaged on both sides of a window [s]."""
CHANNELS = (0, 1, 2, 5)
"""Rates and the force along z: what pushes across the rotors' axes is air."""
BATCH = 240
"""Windows that are predicted at once."""
GROUP = 16
"""Windows over whose median errors count as noise: four seconds, in which a value that has drifted is the same."""
WINDOWS_MIN = 24
"""Fewer tell no covariance: six seconds."""
CLIP, SOFT = 4.0, 2.0
"""Errors beyond so many times the usual enter the covariance as that; windows whose unexplained error is beyond so many times
the usual count less."""
FLOOR = (1e-4, 1e-4, 1e-4, 1e-3)
"""Least error [rad/s, m/s^2]."""
REACTIVE = 4.0
"""Where a window's predicted motion is under so many times its errors' variance, its commands mostly answer pushes: what such
an answer looks like is no sign of another lag, dead time or strength of turns, and it tells nothing of these."""
FAR = 1e3
"""Scaled error of a prediction that ran away."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """A log, condensed: values = slopes x + noise of unit size, x the deviations."""

    name: str
    time: Array
    """Where each begins [s], (n,)."""
    values: Array
    """(n, values)."""
    slopes: Array
    """(n, values, values)."""
    down: float
    """Share of the windows that an unexplained error made count by less than half."""

    def __len__(self) -> int:
        return len(self.time)


def epochs_of(watched: Watched, flight: FlightSignals, took_off: float, points: Array | None = None) -> Epochs:
    """Condense a log.

    Args:
        watched: The vehicle, and what is followed.
        flight: Its signals and usable parts.
        took_off: When it began [s].
        points: Deviations about which predictions are linearised, one row for each epoch, (n, values); None: the record.

    Raises:
        AirworthyError: The log is too short; one sentence.
    """
    starts = _starts(flight)
    if len(starts) < WINDOWS_MIN:
        raise AirworthyError(
            f"Log {flight.name!r} has {len(starts) * HOP:.3g} s of unbroken usable flight; watching needs"
            f" {WINDOWS_MIN * HOP:g} s."
        )
    count = len(starts) // PER_EPOCH
    starts = starts[: count * PER_EPOCH]
    epoch = starts.reshape(count, PER_EPOCH)[:, 0]
    rows = np.zeros((count, len(watched.names))) if points is None else points
    errors, slopes, moved = _measured(watched, flight, starts, np.repeat(rows, PER_EPOCH, axis=0))
    noise = _lasting_less(errors)
    roots = _whitening(noise)
    _unheard(watched, slopes, moved / (noise**2).mean(axis=(0, 1)))
    # A battery that empties is thrust that goes with the time in the air.
    since = starts - took_off - watched.battery.since
    slopes[..., watched.place("thrust_drift")] = (slopes @ watched.common) * since[:, None, None]
    errors, slopes = _whitened(roots, errors), _whitened(roots, slopes)
    weight, down = _weights(errors, slopes)
    errors, slopes = errors * weight[:, None], slopes * weight[:, None, None]
    errors, slopes = errors.reshape(count, -1), slopes.reshape(count, -1, slopes.shape[-1])
    q, r = np.linalg.qr(slopes / _scale(watched))
    values = -np.einsum("nij,ni->nj", q, errors)
    r = r * _scale(watched)
    return Epochs(flight.name, epoch, values + np.einsum("nij,nj->ni", r, rows), r, down)


def _scale(watched: Watched) -> Array:
    """Sizes that make the columns of slopes alike, for the numbers' sake."""
    return 1.0 / watched.steps


def _starts(flight: FlightSignals) -> Array:
    """Where windows begin; those of an epoch follow one another without a break."""
    length = BLOCKS * BLOCK_STEPS * STEP
    found = []
    for a, b in flight.spans:
        room = b - EDGE - (a + EDGE) - length
        whole = (int(room / HOP) + 1) // PER_EPOCH * PER_EPOCH if room >= 0.0 else 0
        found.append(a + EDGE + HOP * np.arange(whole))
    return np.concatenate(found) if found else np.zeros(0)


def _measured(watched: Watched, flight: FlightSignals, starts: Array, points: Array) -> tuple[Array, Array, Array]:
    """Errors of windows, (windows, blocks, channels), their slopes, (..., values), and variances of what is predicted."""
    errors, slopes, moved = [], [], []
    for part in _alike(starts, points):
        windows = _windows(flight, starts[part])
        theta = points[part.start] + np.concatenate([np.zeros((1, len(watched.names))), np.diag(watched.steps)])
        found = window_errors(watched.plant(theta), windows)[..., list(CHANNELS)]
        found = np.clip(np.nan_to_num(found, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)
        errors.append(found[0])
        slopes.append(np.moveaxis(found[1:] - found[0], 0, -1) / watched.steps)
        predicted = found[0] + _blocks(np.concatenate([windows.rate, windows.force[..., 2:]], axis=-1))
        moved.append(predicted.var(axis=1))
    return np.concatenate(errors), np.concatenate(slopes), np.concatenate(moved)


def _unheard(watched: Watched, slopes: Array, clear: Array) -> None:
    """Take out of slopes, in place, what windows whose commands mostly answer pushes do not tell.

    Args:
        watched: The vehicle.
        slopes: (windows, blocks, channels, values).
        clear: Variance of what is predicted over that of errors, (windows, channels).
    """
    still = ~np.any(clear > REACTIVE, axis=1)
    late = np.array([watched.place("lag"), watched.place("command_delay")])
    slopes[np.ix_(still, np.arange(slopes.shape[1]), np.arange(slopes.shape[2]), late)] = 0.0
    # Nor how strongly the vehicle turns by its rotors: of these, what they do beside one another is left.
    still = np.flatnonzero(~np.any(clear[:, :3] > REACTIVE, axis=1))
    rotors = np.flatnonzero(watched.common)
    turns = slopes[still, :, :3]
    turns[..., rotors] -= turns[..., rotors].mean(axis=-1, keepdims=True)
    turns[..., [watched.place("inertia"), watched.place("torque")]] = 0.0
    slopes[still, :, :3] = turns


def _blocks(readings: Array) -> Array:
    """Means over blocks, (windows, blocks, channels)."""
    return np.asarray(readings[:, 1:].reshape(len(readings), BLOCKS, BLOCK_STEPS, -1).mean(axis=2))


def _alike(starts: Array, points: Array) -> Iterator[slice]:
    """Stretches of windows that share their point, at most `BATCH` long."""
    begin = 0
    for k in range(1, len(starts) + 1):
        if k == len(starts) or k - begin == BATCH or np.any(points[k] != points[begin]):
            yield slice(begin, k)
            begin = k


def _windows(flight: FlightSignals, starts: Array) -> Windows:
    """Windows at given starts, with no more of the commands than they need."""
    length = BLOCKS * BLOCK_STEPS * STEP
    flight = flight.within((float(starts[0]) - 2.0 * EDGE, float(starts[-1]) + length + 2.0 * EDGE))
    time = starts[:, None] + STEP * np.arange(BLOCKS * BLOCK_STEPS + 1)
    return Windows(flight, starts, STEP, flight.gyro.mean(time, STEP), flight.force.mean(time, STEP))


def _lasting_less(errors: Array) -> Array:
    """Errors without what lasts over a few seconds, which is no noise."""
    count, left = len(errors), np.empty_like(errors)
    for begin in range(0, count, GROUP):
        # Of a short rest at the end the median would be the rest itself.
        part = slice(min(begin, max(count - GROUP, 0)), min(begin + GROUP, count))
        left[part] = (errors[part] - np.median(errors[part], axis=0)) * GROUP / (GROUP - 1)
    return left


def _whitening(left: Array) -> Array:
    """Inverse roots of the covariance of noise over blocks, (channels, blocks, blocks)."""
    count, blocks = left.shape[:2]
    width = np.maximum(1.4826 * np.median(np.abs(left), axis=0), FLOOR)
    clipped = np.clip(left / width, -CLIP, CLIP) * width
    # Few windows tell a covariance badly: it is drawn to what holds of each block alone.
    alone = max(0.1, min(1.0, 2.0 * blocks / count))
    found = np.empty((left.shape[2], blocks, blocks))
    for k, least in enumerate(FLOOR):
        own = clipped[..., k].T @ clipped[..., k] / count + least**2 * np.eye(blocks)
        own = (1.0 - alone) * own + alone * np.diag(np.diag(own))
        found[k] = np.linalg.inv(np.linalg.cholesky(own))
    return found


def _whitened(roots: Array, errors: Array) -> Array:
    """Weighed errors or slopes of what counts of each window, (windows, numbers, ...)."""
    found = np.einsum("cij,wjc...->wic...", roots[:, TOLD:], errors, optimize=True)
    return found.reshape(len(found), -1, *found.shape[3:])


def _weights(errors: Array, slopes: Array) -> tuple[Array, float]:
    """Square roots of weights of windows by what of their errors no deviation explains, and the share of those below a half."""
    q = np.linalg.qr(slopes * (1.0 / np.maximum(np.abs(slopes).max(axis=(0, 1)), 1e-12)))[0]
    left = errors - np.einsum("wij,wj->wi", q, np.einsum("wij,wi->wj", q, errors))
    free = max(errors.shape[1] - slopes.shape[2], 1)
    weight = 1.0 / np.sqrt(1.0 + (left**2).sum(axis=1) / (SOFT**2 * free))
    usual = 1.0 / np.sqrt(1.0 + 1.0 / SOFT**2)
    return np.sqrt(np.minimum(weight / usual, 1.0)), float(np.mean(weight < 0.5 * usual))
