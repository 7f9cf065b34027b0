"""Counter-based random numbers: the NumPy twin of `native/random.h`.

Every draw is a pure function of (seed, flight id, episode, stream, step, index), so a flight does not depend on its place in a
batch, on the batch's size, on threads or on what was drawn before. The generator is Threefry4x32 with 13 rounds (Salmon et
al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): key (seed low, seed high, flight id, episode), counter (step,
stream, index, 0). Four words make four uniforms or, by Box-Muller, four standard normals.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from airworthy.core.arrays import Array, ArrayLike, ArrayU32

ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA


class Stream(IntEnum):
    """Who draws. Numbers are part of every stored result: never reuse or reorder them."""

    SENSOR_AND_WRENCH = 1
    DISTURBANCE = 2
    WIND = 3
    PARAMETERS = 4
    RESET = 5
    COURSE = 6
    SENSOR = 7
    MOUNTING = 8
    SYNTHESIS = 9
    SENSED = 10
    NAVIGATION = 11
    SKY = 12
    CLOUDS = 13
    RAIN = 14
    STARS = 15
    SPLATS = 64
    PATHS = 65
    SHADING = 66


def threefry4x32(key: ArrayLike, counter: ArrayLike, rounds: int = 13) -> ArrayU32:
    """Return Threefry4x32 on the last axis.

    Args:
        key: Four words, shape (..., 4).
        counter: Four words, shape (..., 4), broadcast against the key.
        rounds: 13 is the fewest that the authors found to pass BigCrush with a margin.

    Returns:
        Four random words, shape (..., 4).
    """
    k, x = np.asarray(key, np.uint32), np.asarray(counter, np.uint32)
    k = np.concatenate([k, (np.uint32(_PARITY) ^ np.bitwise_xor.reduce(k, axis=-1))[..., None]], axis=-1)
    x = np.broadcast_to(x, (*np.broadcast_shapes(k.shape[:-1], x.shape[:-1]), 4)).copy()
    with np.errstate(over="ignore"):
        _inject(x, k, 0)
        for r in range(rounds):
            low, high = ROTATIONS[r % 8]
            first, second = (1, 3) if r % 2 == 0 else (3, 1)
            _mix(x, 0, first, low)
            _mix(x, 2, second, high)
            if r % 4 == 3:
                _inject(x, k, r // 4 + 1)
    return x


def _inject(x: ArrayU32, key: ArrayU32, count: int) -> None:
    for i in range(4):
        x[..., i] += key[..., (count + i) % 5]
    x[..., 3] += np.uint32(count)


def _mix(x: ArrayU32, a: int, b: int, bits: int) -> None:
    x[..., a] += x[..., b]
    x[..., b] = ((x[..., b] << np.uint32(bits)) | (x[..., b] >> np.uint32(32 - bits))) ^ x[..., a]


def flight_key(seed: int, flight_id: ArrayLike, episode: ArrayLike = 0) -> ArrayU32:
    """Return key words, shape (..., 4): seed (64 bits), flight id and episode (32 bits each).

    Args:
        seed: Of the experiment, 64 bits.
        flight_id: (...), 32 bits.
        episode: (...), 32 bits, broadcast against the former.
    """
    flight, episode = np.broadcast_arrays(np.asarray(flight_id, np.uint32), np.asarray(episode, np.uint32))
    # Two's complement: a negative seed is as good as any other.
    seed = int(seed) & 0xFFFFFFFFFFFFFFFF
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    return np.stack([np.full_like(flight, low), np.full_like(flight, high), flight, episode], axis=-1)


def words(key: ArrayU32, step: ArrayLike, stream: Stream, count: int, first: int = 0) -> ArrayU32:
    """Return `count` random words (a multiple of 4) per key, shape (..., count).

    Args:
        key: From `flight_key`, (..., 4).
        step: Of the flight, (...), 32 bits.
        stream: Which use of random numbers; streams are independent of each other.
        count: Numbers per key.
        first: How many are left out before them, a multiple of 4.
    """
    step_array = np.asarray(step, np.uint32)
    counter = np.zeros((*step_array.shape, count // 4, 4), np.uint32)
    blocks = np.arange(first // 4, first // 4 + count // 4)
    counter[..., 0], counter[..., 1], counter[..., 2] = step_array[..., None], stream, blocks
    drawn = threefry4x32(np.asarray(key)[..., None, :], counter)  # all blocks at once: a room draws hundreds
    return drawn.reshape(*drawn.shape[:-2], drawn.shape[-2] * drawn.shape[-1])


def uniforms(key: ArrayU32, step: ArrayLike, stream: Stream, count: int, first: int = 0) -> Array:
    """Return uniform numbers in (0, 1) on a grid of 2^23 cell centres, shape (..., count).

    Args:
        key: From `flight_key`, (..., 4).
        step: Of the flight, (...), 32 bits.
        stream: Which use of random numbers; streams are independent of each other.
        count: Numbers per key.
        first: How many are left out before them, a multiple of 4.
    """
    drawn = words(key, step, stream, -(-count // 4) * 4, first)[..., :count]
    # 23 bits and a half: exact in float32, so that a kernel makes the same number; never 0, whose logarithm has no value.
    return ((drawn >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


def normals(key: ArrayU32, step: ArrayLike, stream: Stream, count: int, first: int = 0) -> Array:
    """Return standard normal numbers by Box-Muller, shape (..., count); at most 5.77 in magnitude.

    Args:
        key: From `flight_key`, (..., 4).
        step: Of the flight, (...), 32 bits.
        stream: Which use of random numbers; streams are independent of each other.
        count: Numbers per key.
        first: How many are left out before them, a multiple of 4.
    """
    drawn = words(key, step, stream, -(-count // 4) * 4, first)
    one, other = drawn[..., 0::2], drawn[..., 1::2]
    radius = np.sqrt(-2.0 * np.log(((one >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23))
    # Quadrant and the angle in it are taken apart, since the kernel's series for sine and cosine hold in [-pi/4, pi/4) alone.
    quadrant = (other >> np.uint32(30)).astype(np.float64)
    inside = ((other << np.uint32(2)) >> np.uint32(9)).astype(np.float64) + 0.5
    angle = (quadrant - 0.5) * (np.pi / 2) + inside * (np.pi / 2**24)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.reshape(*drawn.shape[:-1], -1)[..., :count]
