"""Prediction errors: vectors for fitting, lengths and angles for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.structure import CORNERS, SPINS, Prediction, VehicleModel
from airworthy.benchmarks.validation.windows import HORIZONS, LogWindows
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Drag, Rotor, Vehicle, vehicle

__all__ = ["HORIZONS", "QUANTITIES", "ErrorSamples", "as_dict", "attitude_error", "error_samples", "error_vectors", "pooled"]

# ---- Published Crazyflie parameter sets as models, each with its own equations' effects -------------------------------------
#
# The sets of the catalogue are RotorPy's, Crazyflow's L250 and P250, and gym-pybullet-drones' cf2x. For the brushless vehicle
# the two sets published for a brushless Crazyflie are added, since they are the fairer comparison; their numbers stand here
# with their source. Rotors are put in the Crazyflie's order by their corner and turn as the real ones do (gym-pybullet-drones'
# layout is mirrored, which would only spoil its yaw). The lag of a set is not used: predictions are fed rotor speeds.

_RPM = 2.0 * math.pi / 60.0


def comparators(brushless: bool) -> dict[str, VehicleModel]:
    """Return published sets by the name that tables show.

    Args:
        brushless: Add the sets that were published for a brushless Crazyflie.
    """
    models = {
        "RotorPy": _ordered(vehicle("rotorpy_crazyflie")),
        "Crazyflow L250": _ordered(vehicle("cf2x_L250")),
        "Crazyflow P250": _ordered(vehicle("cf2x_P250")),
        "gym-pybullet-drones": _bullet(vehicle("cf2x_gym_pybullet_drones")),
    }
    if brushless:
        models["RotorPy brushless"] = _rotorpy_brushless()
        models["Crazyflow 21B"] = _crazyflow_brushless()
    return models


def in_log_order(published: Vehicle) -> Vehicle:
    """Return the vehicle with rotors in the order front right, back right, back left, front left, turning as the Crazyflie's.

    Raises:
        AirworthyError: It has no rotor in one of the corners.
    """
    rotors: list[Rotor] = []
    for (x, y), spin in zip(CORNERS, SPINS, strict=True):
        found = [r for r in published.rotors if r.position[0] * x > 0.0 and r.position[1] * y > 0.0]
        if len(found) != 1:
            raise AirworthyError(
                f"{published.name} has {len(found)} rotors in the corner x {x:+d}, y {y:+d}; one was expected."
            )
        rotors.append(replace(found[0], spin=-1 if spin < 0 else 1))
    return replace(published, rotors=tuple(rotors))


def _ordered(published: Vehicle) -> VehicleModel:
    return VehicleModel(in_log_order(published))


def _bullet(published: Vehicle) -> VehicleModel:
    """With its optional drag (off by default there), the kinder reading: coefficient x summed rotor speeds x body velocity."""
    xy, z = (float(published.extra[f"optional_drag_coeff_{k}"]) for k in ("xy", "z"))
    return VehicleModel(replace(in_log_order(published), drag=Drag(rotor_speed=(xy, xy, z))))


def _rotorpy_brushless() -> VehicleModel:
    """RotorPy 3.0.0, rotorpy/vehicles/crazyfliebrushless_params.py: a Crazyflie 2.1 Brushless with propeller guards."""
    base = vehicle("rotorpy_crazyflie")
    air: dict[str, Any] = {"hub_drag": (5.09e-6, 1.19e-5), "translational_lift": 1.11e-3}
    rotors = tuple(replace(r, thrust=(0.0, 0.0, 4.052e-8), torque=(0.0, 0.0, 7.8e-10), **air) for r in base.rotors)
    heavy = replace(base, name="rotorpy_brushless", mass=0.044, inertia=(3.3e-5, 3.6e-5, 5.9e-5, 0.0, 0.0, 0.0), rotors=rotors)
    return _ordered(heavy)


def _crazyflow_brushless() -> VehicleModel:
    """Crazyflow 0.4.0, crazyflow/dynamics/first_principles/params.toml, set cf21B_500."""
    base = vehicle("cf2x_L250")
    arm = 0.035355
    rotors = tuple(
        replace(
            r,
            position=(math.copysign(arm, r.position[0]), math.copysign(arm, r.position[1]), 0.0),
            thrust=(0.0, -3.133427287299859e-07 / _RPM, 4.407354891648379e-10 / _RPM**2),
            torque=(0.0, 1.65886356219615e-09 / _RPM, 2.4693477924534137e-12 / _RPM**2),
            inertia=3.893e-08,
        )
        for r in base.rotors
    )
    drag = Drag(linear=(0.021643637770852733, 0.021643637770852733, 0.02477138502714662))
    return _ordered(
        replace(base, name="cf21B_500", mass=0.0434, inertia=(25e-6, 28e-6, 49e-6, 0.0, 0.0, 0.0), rotors=rotors, drag=drag)
    )


# -----------------------------------------------------------------------------------------------------------------------------

QUANTITIES = ("position_m", "velocity_m_s", "attitude_deg", "rate_rad_s")
DIVERGED = 1e3
"""What an error that is not finite counts as, in the unit of its quantity: it cannot improve a statistic."""


def attitude_error(a: Array, b: Array) -> Array:
    """Return the rotation vector that takes attitude b to a, in axes of b [rad], (..., 3); its length is the geodesic angle."""
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


def error_vectors(prediction: Prediction, windows: LogWindows) -> tuple[Array, Array, Array, Array]:
    """Return the position [m], velocity [m/s], attitude [rad] and rate [rad/s] errors, each (model, window, horizon, 3)."""
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
        """Return the root mean square, (quantity, horizon); NaN where no window can be judged."""
        return np.sqrt(self._over_windows(np.nanmean, self.values**2))

    def median(self) -> Array:
        """Return median, (quantity, horizon); NaN where no window can be judged."""
        return self._over_windows(np.nanmedian, self.values)

    def _over_windows(self, statistic: Callable[..., Array], values: Array) -> Array:
        finite = np.isfinite(values).any(axis=0)
        return np.where(finite, statistic(np.where(finite, values, 0.0), axis=0), np.nan)

    def count(self) -> Array:
        """Return windows judged per horizon, (horizon,)."""
        return np.sum(np.isfinite(self.values[:, 0]), axis=0)


def error_samples(prediction: Prediction, windows: LogWindows) -> ErrorSamples:
    """Return errors of the first model of a prediction, as lengths in the units of `QUANTITIES`."""
    lengths = [np.linalg.norm(v[0], axis=-1) for v in error_vectors(prediction, windows)]
    lengths[2] = np.rad2deg(lengths[2])
    values = np.stack(lengths, axis=1)
    values = np.where(np.isfinite(values), np.minimum(values, DIVERGED), DIVERGED)
    return ErrorSamples(np.where(windows.valid[:, None, :], values, np.nan))


def pooled(samples: Iterable[ErrorSamples]) -> ErrorSamples:
    """Return windows of several flights as one sample."""
    return ErrorSamples(np.concatenate([s.values for s in samples]))


def as_dict(samples: ErrorSamples) -> dict[str, dict[str, list[float]]]:
    """Return `{statistic: {quantity: [value per horizon]}}` for files."""
    return {
        name: dict(zip(QUANTITIES, ([float(v) for v in row] for row in table), strict=True))
        for name, table in (("rms", samples.rms()), ("median", samples.median()))
    }
