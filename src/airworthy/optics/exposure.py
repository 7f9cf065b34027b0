"""Exposure in EV: what aperture, shutter and sensitivity make of light, and how a camera meters what it sees.

EV are those of ISO 100 (EV 0: f/1 for a second). Linear values of the renderer are shown as they are at `LINEAR_EV`; one EV
less shows them twice as bright. In the units of the skies by daylight (`scenes.sky`) that is a sunny day by the photographers'
rule.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import luminance

__all__ = ["LINEAR_EV", "METERINGS", "Metering", "ev100", "exposure_factor", "metered", "stops_of_ev"]

LINEAR_EV = 15.0
"""At which radiance 1 is shown as white: f/16 and 1/128 s at ISO 100."""
Metering = Literal["mean", "center", "highlights"]
METERINGS: tuple[Metering, ...] = get_args(Metering)
# Ours: a spot of a quarter of the image's height, as the round meters of cameras have, and what is given up as too bright.
_SPOT = 0.25
_CLIPPED = 0.02


def ev100(f_number: float, time: float, iso: float = 100.0) -> float:
    """Return the EV at ISO 100 of a camera's settings: log2(N^2 / t) - log2(S / 100).

    Args:
        f_number: N, of the aperture.
        time: t, that the shutter is open [s].
        iso: S, the sensitivity.

    Raises:
        AirworthyError: A number is not above 0.
    """
    for name, value in (("f-number", f_number), ("shutter time", time), ("sensitivity", iso)):
        if not (math.isfinite(value) and value > 0.0):
            raise AirworthyError(f"The {name} is {value}; expected a finite number above 0.")
    return math.log2(f_number * f_number / time) - math.log2(iso / 100.0)


def stops_of_ev(ev: ArrayLike) -> Array:
    """Return the stops by which an exposure brightens linear values: `LINEAR_EV` - EV."""
    return np.asarray(LINEAR_EV - np.asarray(ev, np.float64))


def exposure_factor(ev: ArrayLike) -> Array:
    """Return the factor on linear values at an exposure (...): 2^(`LINEAR_EV` - EV)."""
    return np.asarray(np.exp2(stops_of_ev(ev)))


def metered(image: ArrayF32, metering: Metering = "mean") -> Array:
    """Return the luminance that a camera's meter reads of each image of (c, H, W, 3), (c,); pixels that are not finite do not
    count.

    "mean" is the mean over the image; "center" weighs its middle most, by a bell of a quarter of its height; "highlights" is
    the mean, or more where more than a fiftieth of the pixels would else be brighter than white: a target of 0.18 then shows
    the brightest of the rest as 1.

    Args:
        image: Linear radiance.
        metering: How.

    Raises:
        AirworthyError: There is no such metering.
    """
    if metering not in METERINGS:
        raise AirworthyError(f"Unknown metering {metering!r}; expected one of {', '.join(METERINGS)}.")
    # One image at a time: a sum over a batch might be ordered by the batch's size.
    return np.array([_METERS[metering](luminance(one)) for one in image])


def _mean(values: NDArray[np.floating]) -> float:
    whole = float(np.mean(values, dtype=np.float64))
    if math.isfinite(whole):
        return whole
    finite = values[np.isfinite(values)]
    return float(np.mean(finite, dtype=np.float64)) if finite.size else 0.0


def _center(values: NDArray[np.floating]) -> float:
    height, width = values.shape
    y, x = (np.arange(n) + 0.5 - 0.5 * n for n in (height, width))
    weight = np.exp(-0.5 * (y[:, None] ** 2 + x[None] ** 2) / (_SPOT * height) ** 2)
    weight = np.where(np.isfinite(values), weight, 0.0)
    total = float(weight.sum())
    return float((weight * np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)).sum()) / total if total > 0.0 else 0.0


def _highlights(values: NDArray[np.floating]) -> float:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0
    return max(_mean(values), 0.18 * float(np.quantile(finite, 1.0 - _CLIPPED)))


_METERS = {"mean": _mean, "center": _center, "highlights": _highlights}
