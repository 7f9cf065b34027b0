"""Prediction errors: vectors for fitting, lengths and angles for tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.validation.predict import Prediction
from airworthy.evaluation.validation.windows import HORIZONS, Windows

Array = NDArray[np.float64]

QUANTITIES = ("position_m", "velocity_m_s", "attitude_deg", "rate_rad_s")
DIVERGED = 1e3
"""What an error that is not finite counts as, in the unit of its quantity: it cannot improve a statistic."""


def attitude_error(a: Array, b: Array) -> Array:
    """Rotation vector that takes attitude b to a, in axes of b [rad], (..., 3); its length is the geodesic angle."""
    ax, ay, az, aw = np.moveaxis(a, -1, 0)
    bx, by, bz, bw = np.moveaxis(b, -1, 0)
    scalar = aw * bw + ax * bx + ay * by + az * bz
    vector = np.stack(
        [
            bw * ax - bx * aw - by * az + bz * ay,
            bw * ay - by * aw - bz * ax + bx * az,
            bw * az - bz * aw - bx * ay + by * ax,
        ],
        axis=-1,
    )
    vector = np.where(scalar[..., None] < 0.0, -vector, vector)
    length = np.linalg.norm(vector, axis=-1)
    angle = 2.0 * np.arctan2(length, np.abs(scalar))
    return vector * (angle / np.maximum(length, 1e-12))[..., None]


def error_vectors(prediction: Prediction, windows: Windows) -> tuple[Array, Array, Array, Array]:
    """Position [m], velocity [m/s], attitude [rad] and rate [rad/s] errors, each (craft, window, horizon, 3)."""
    return (
        prediction.position - windows.position[None, :, 1:],
        prediction.velocity - windows.velocity[None, :, 1:],
        attitude_error(prediction.attitude, windows.attitude[None, :, 1:]),
        prediction.rate - windows.rate[None, :, 1:],
    )


@dataclass(frozen=True)
class ErrorSamples:
    """Error lengths of one model on windows: (window, quantity, horizon), NaN where the reference is not to be trusted."""

    values: Array

    def rms(self) -> Array:
        """Root mean square, (quantity, horizon); NaN where no window can be judged."""
        return np.sqrt(self._over_windows(np.nanmean, self.values**2))

    def median(self) -> Array:
        """Median, (quantity, horizon); NaN where no window can be judged."""
        return self._over_windows(np.nanmedian, self.values)

    def _over_windows(self, statistic: Callable[..., Array], values: Array) -> Array:
        judged = np.isfinite(values).any(axis=0)
        return np.where(judged, statistic(np.where(judged, values, 0.0), axis=0), np.nan)

    def count(self) -> Array:
        """Windows judged per horizon, (horizon,)."""
        return np.sum(np.isfinite(self.values[:, 0]), axis=0)


def error_samples(prediction: Prediction, windows: Windows) -> ErrorSamples:
    """Errors of the first craft of a prediction, as lengths in the units of `QUANTITIES`."""
    lengths = [np.linalg.norm(v[0], axis=-1) for v in error_vectors(prediction, windows)]
    lengths[2] = np.rad2deg(lengths[2])
    values = np.stack(lengths, axis=1)
    values = np.where(np.isfinite(values), np.minimum(values, DIVERGED), DIVERGED)
    return ErrorSamples(np.where(windows.valid[:, None, :], values, np.nan))


def pooled(samples: Iterable[ErrorSamples]) -> ErrorSamples:
    """Windows of several flights as one sample."""
    return ErrorSamples(np.concatenate([s.values for s in samples]))


def as_dict(samples: ErrorSamples) -> dict[str, dict[str, list[float]]]:
    """`{statistic: {quantity: [value per horizon]}}` for files."""
    return {
        name: dict(zip(QUANTITIES, ([float(v) for v in row] for row in table), strict=True))
        for name, table in (("rms", samples.rms()), ("median", samples.median()))
    }


__all__ = ["HORIZONS", "QUANTITIES", "ErrorSamples", "as_dict", "attitude_error", "error_samples", "error_vectors", "pooled"]
