"""What a range sensor makes of true values: noise, dropout, limits, normalisation, in one pass over an image.

Draws are counter-based: key (seed, flight, episode), counter (sample's number, stream, pixel, sensor). A pixel's noise
therefore depends on its flight, sample, sensor and place in the image, and on nothing else of a batch.

Range limits and normalisation (spec/aerial_gym 7.3).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source
from airworthy.core.random import Stream, flight_key, threefry4x32
from airworthy.core.schema import check_fields

_HAIR = 1e-6
"""Ours, relative: about ten steps of a float32, by which a range at its limit may be rounded."""


@dataclass(frozen=True)
class RangeLimits:
    """Which values a sensor can give, and what it gives instead of others.

    A value above `maximum` becomes `far`, one below `minimum` becomes `near`; with `normalize`, all is divided by `maximum`.
    Without limits, no return stays +inf.

    Raises:
        AirworthyError: If the limits do not rise, or what is normalised has no maximum.
    """

    minimum: float = 0.0
    """[m]"""
    maximum: float = math.inf
    """[m]"""
    near: float = math.inf
    """Given for what is too near [m]."""
    far: float = math.inf
    """Given for what is too far, or not there [m]."""
    normalize: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "RangeLimits.")
        if not -math.inf < self.minimum < self.maximum:
            raise AirworthyError(f"Range limits are {self.minimum} to {self.maximum} m; expected a minimum below the maximum.")
        if self.normalize and not math.isfinite(self.maximum):
            raise AirworthyError("Ranges are divided by their maximum when normalised; give a finite maximum.")

    @classmethod
    def published(cls, minimum: float, maximum: float, normalize: bool = True) -> RangeLimits:
        """Return defaults of the published simulator: normalised, in [0, 1] or -1; otherwise -1 for too near and too far.

        Args:
            minimum: [m]
            maximum: [m]
            normalize: Divide by `maximum`.
        """
        # Source: spec/aerial_gym 7.3: far = max_range and near = -max_range when normalising, so outputs are in [0, 1] or -1.
        near, far = (-maximum, maximum) if normalize else (-1.0, -1.0)
        return cls(minimum, maximum, near, far, normalize)

    @property
    def divisor(self) -> float:
        """What a limited value is divided by."""
        return self.maximum if self.normalize else 1.0

    def apply(self, value: ArrayLike) -> Array:
        """Return limited and normalised values, the readable form of what the kernel does."""
        r = np.asarray(value, np.float64)
        return np.where(r > self.maximum, self.far, np.where(r < self.minimum, self.near, r)) / self.divisor

    def metres(self, value: ArrayLike) -> Array:
        """Return metres of limited values; +inf where they are no measurement (too near, too far, dropped)."""
        r = np.asarray(value, np.float64) * self.divisor
        # A hair of room: a float32 that was normalised must come back as what it was.
        inside = (r >= self.minimum * (1.0 - _HAIR)) & (r <= self.maximum * (1.0 + _HAIR)) & np.isfinite(r) & (r > 0.0)
        # Infinite markers are found by `isfinite` already.
        for marker in (self.near, self.far):
            if math.isfinite(marker):
                inside &= np.abs(r - marker) > _HAIR * abs(marker)
        return np.where(inside, r, np.inf)


NO_LIMITS = RangeLimits()
"""Everything positive is a measurement."""


# ---- Builds the kernel of `airworthy.sensors.noise`: 16 pixels per lane vector on a CPU, one per thread on a GPU ----------

MODEL = ("A", "B", "C", "MULTIPLIER", "OFFSET", "DROPOUT", "MISS", "MINIMUM", "MAXIMUM", "NEAR", "FAR", "DIVISOR", "NOISY")
"""Numbers of a model, in the order of the kernel's array."""


def noise_source() -> str:
    """Complete native source."""
    numbers = {**{name: k for k, name in enumerate(MODEL)}, "STREAM_SENSOR": int(Stream.SENSOR)}
    enumerators = ", ".join(f"{name} = {number}" for name, number in numbers.items())
    text = files("airworthy.sensors").joinpath("native", "noise.cpp").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), text])


_ARGUMENTS = """
    values: float32[]  # (camera * pixels,), changed in place
    keys: uint32[]  # (camera * 5,)
    model: float32[]  # (len(MODEL),)
    pixels: int
    sensor: uint32
    block_count: int
"""


@cache
def noise_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("sensor_noise", noise_source(), _ARGUMENTS, "block")


# ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RangeNoise:
    """Reading of a true value r: N(r - offset, a r^2 + b r + c + multiplier r), dropped with a probability.

    LiDARs use a, b, c and offset (spec/aerial_gym 7.6), cameras the multiplier.

    Raises:
        AirworthyError: If a number is not finite or the probability is none.
    """

    a: float = 0.0
    """[1/m]"""
    b: float = 0.0
    c: float = 0.0
    """[m]"""
    offset: float = 0.0
    """Subtracted from every reading [m]."""
    multiplier: float = 0.0
    """Standard deviation per metre."""
    dropout: float = 0.0
    """Probability that a reading becomes the limits' near value."""

    def __post_init__(self) -> None:
        check_fields(self, "RangeNoise.")
        numbers = (self.a, self.b, self.c, self.offset, self.multiplier, self.dropout)
        if not all(math.isfinite(x) for x in numbers) or not 0.0 <= self.dropout <= 1.0:
            raise AirworthyError(f"{self} cannot be used; expected finite numbers and a dropout probability in [0, 1].")

    @property
    def any(self) -> bool:
        """Whether it changes anything."""
        return any((self.a, self.b, self.c, self.offset, self.multiplier, self.dropout))

    def sigma(self, r: ArrayLike) -> Array:
        """Return the standard deviation at true values [m]."""
        r = np.asarray(r, np.float64)
        return np.abs((self.a * r + self.b) * r + self.c + self.multiplier * r)


QUIET = RangeNoise()


@dataclass(frozen=True, eq=False)
class Draw:
    """Which random numbers a batch of samples gets; build it with `Draw.of`."""

    keys: ArrayU32
    """Key words of each camera's flight, (camera, 4)."""
    sample: ArrayU32
    """Number of the sample since the start of its flight, (camera,)."""
    sensor: int = 0
    """Number of the sensor, see `sensor_number`."""

    @classmethod
    def of(
        cls,
        count: int,
        seed: int = 0,
        flight: ArrayLike | None = None,
        episode: ArrayLike = 0,
        sample: ArrayLike = 0,
        sensor: str = "",
    ) -> Draw:
        """Return draws of `count` cameras, by default flights 0, 1, 2, ...

        Args:
            count: Cameras.
            seed: Of the run.
            flight: Number of each camera's flight, (count,); None: 0, 1, 2, ...
            episode: Of each flight, one or (count,).
            sample: Number of the sample since its flight began, one or (count,).
            sensor: Its name; draws depend on nothing else of it.
        """
        flights = np.broadcast_to(np.arange(count) if flight is None else np.asarray(flight), (count,))
        number = np.ascontiguousarray(np.broadcast_to(np.asarray(sample, np.uint32), (count,)))
        return cls(flight_key(seed, flights, np.broadcast_to(episode, (count,))), number, sensor_number(sensor))

    def words(self, count: int, stream: Stream = Stream.SENSOR) -> ArrayU32:
        """Return `count` quadruples of random words per camera, (camera, count, 4)."""
        counter = np.zeros((len(self.keys), count, 4), np.uint32)
        counter[..., 0], counter[..., 1], counter[..., 3] = self.sample[:, None], stream, self.sensor
        counter[..., 2] = np.arange(count)
        return threefry4x32(self.keys[:, None, :], counter)


def sensor_number(name: str) -> int:
    """Return the number that a sensor's draws carry: of its name alone, so that mounting another sensor changes nothing."""
    return zlib.crc32(name.encode())


def uniforms_of(bits: ArrayU32) -> Array:
    """Return uniform numbers in (0, 1), one per word."""
    # 23 bits, which float32 holds exactly, and half a step off 0: the logarithm of the normal draws stays finite.
    # As `core.random.uniforms`: the same bits give the same number everywhere.
    return ((bits >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


def normal_of(first: ArrayU32, second: ArrayU32) -> Array:
    """Return one standard normal number per pair of words, as `airworthy.core.random.normals` makes its first."""
    radius = np.sqrt(-2.0 * np.log(uniforms_of(first)))
    quadrant = (second >> np.uint32(30)).astype(np.float64)
    inside = ((second << np.uint32(2)) >> np.uint32(9)).astype(np.float64) + 0.5
    return radius * np.cos((quadrant - 0.5) * (np.pi / 2) + inside * (np.pi / 2**24))


def measured_twin(
    values: ArrayLike, noise: RangeNoise, limits: RangeLimits, draw: Draw | None = None, miss: float = math.inf
) -> Array:
    """Return the readable form of `measure`, in float64, on a copy.

    Args:
        values: Ranges or depths [m], (camera, ...).
        noise: Noise and dropout.
        limits: Applied last.
        draw: Random numbers; None: no noise.
        miss: What a miss counts as before noise [m].
    """
    true = np.asarray(values, np.float64)
    flat = true.reshape(len(true), -1)
    flat = np.where(flat == np.inf, miss, flat)
    if draw is not None and noise.any:
        bits = draw.words(flat.shape[1])
        finite = np.isfinite(flat)
        r = np.where(finite, flat, 0.0)
        noisy = r - noise.offset + noise.sigma(r) * normal_of(bits[..., 0], bits[..., 1])
        flat = np.where(finite, noisy, flat)
        # The third word: dropout must not depend on how large the noise was, for which the first two were spent.
        flat = np.where(uniforms_of(bits[..., 2]) < noise.dropout, limits.near, flat)
    return limits.apply(flat).reshape(true.shape)


def measure(
    values: ArrayF32,
    noise: RangeNoise = QUIET,
    limits: RangeLimits = NO_LIMITS,
    draw: Draw | None = None,
    miss: float = math.inf,
) -> ArrayF32:
    """Turn true values into readings, in place.

    Args:
        values: Ranges or depths [m], (camera, ...), float32, contiguous; +inf where nothing is hit, -inf where the sensor
            knows a value to be wrong (a stereo shadow), which becomes the near value.
        noise: Noise and dropout.
        limits: Limits and normalisation, applied last.
        draw: Random numbers; None: no noise.
        miss: What a miss counts as before noise [m] (a ranger's 21 m); +inf: nothing.

    Returns:
        `values`.

    Raises:
        AirworthyError: If the array is of another kind or does not fit the draws.
    """
    if values.dtype != np.float32 or not values.flags.c_contiguous or values.ndim < 1:
        raise AirworthyError(f"Readings are made in place of a contiguous float32 array; got {values.dtype} of {values.shape}.")
    noisy = draw is not None and noise.any
    cameras = len(values)
    if noisy and draw is not None and len(draw.keys) != cameras:
        raise AirworthyError(f"{cameras} images came with draws for {len(draw.keys)}.")
    # Warp has no launch of nothing.
    if not values.size:
        return values
    numbers = [noise.a, noise.b, noise.c, noise.multiplier, noise.offset, noise.dropout, miss]
    numbers += [limits.minimum, limits.maximum, limits.near, limits.far, limits.divisor, float(noisy)]
    _launch(values.reshape(-1), np.array(numbers, np.float32), values.size // cameras, cameras, draw if noisy else None)
    return values


def _launch(values: ArrayF32, model: ArrayF32, pixels: int, cameras: int, draw: Draw | None) -> None:
    wp = quiet_warp()
    keys = np.zeros((1, 5), np.uint32)
    if draw is not None:
        keys = np.concatenate([draw.keys, draw.sample[:, None]], axis=1).astype(np.uint32)
    arrays = [wp.array(a.reshape(-1), device="cpu", copy=False) for a in (values, np.ascontiguousarray(keys), model)]
    blocks = cameras * -(-pixels // CPU_LANES)
    number = draw.sensor if draw is not None else 0
    Launcher(noise_kernel(), blocks, [*arrays, pixels, number, blocks], "cpu", threads=1).launch()
