"""Whether the yardsticks do the work that they are timed for: their results against float64 and against known statistics."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayU32
from benchmarks import body, lanes, primitives
from benchmarks.body_lanes import BodyLanes
from benchmarks.body_warp import BodyWarp

TOLERANCE = 5e-6
"""Relative error of one env-step in float32: 10 sub-steps, each rounding 17 numbers to 6e-8, on values near 1,000."""


def problems() -> list[str]:
    """One sentence per yardstick that computes something else; empty when all are right."""
    found = []
    for name, error in body_errors().items():
        if not error < TOLERANCE:
            found.append(f"{name}: relative error {error:.2g} against float64, at most {TOLERANCE:.0e} expected")
    mean, variance, count = primitives.normal_moments()
    if abs(mean) > 6.0 / count**0.5 or abs(variance - 1.0) > 9.0 / count**0.5:
        found.append(f"normal numbers: mean {mean:.2g} and variance {variance:.4g}, 0 and 1 expected")
    if not np.array_equal(timed_block(), threefry_reference()):
        found.append("Threefry4x32-13: the timed kernel differs from its reference")
    return found


def body_errors(env_count: int = 100) -> dict[str, float]:
    """Largest error of each bare body after one env-step, relative to max(1, |value|)."""
    found = {}
    for integrator in ("rk4", "euler"):
        found[f"hand-written lanes, {integrator}"] = _error(BodyLanes(env_count, integrator), integrator)
    found["plain Warp kernel"] = _error(BodyWarp(env_count), "rk4")
    return found


def _error(batch: BodyLanes | BodyWarp, integrator: str) -> float:
    batch.step()
    state = batch.state()
    expected = body.reference(state.shape[1], integrator)
    return float(np.max(np.abs(state - expected) / np.maximum(1.0, np.abs(expected))))


def timed_block() -> ArrayU32:
    """Exclusive or of the four words that the timed kernel draws in its first block, one per lane."""
    import warp as wp

    out = wp.zeros(lanes.LANES, dtype=wp.float32, device="cpu")
    lanes.launch_all(lanes.recorded(primitives.kernel("blocks"), primitives.key_words(), out, 1, 0, 1, 1))
    return out.numpy().view(np.uint32)


def threefry_reference() -> ArrayU32:
    """Return the same from Python integers, written from the publication."""
    keys = primitives.key_words().numpy().view(np.uint32).reshape(4, lanes.LANES)
    words = [_block([int(k) for k in keys[:, lane]], [0, 1, 0, 0]) for lane in range(lanes.LANES)]
    return np.array([w[0] ^ w[1] ^ w[2] ^ w[3] for w in words], np.uint32)


def _block(key: list[int], counter: list[int], rounds: int = 13) -> list[int]:
    turns = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
    key = [*key, 0x1BD11BDA ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(c + k) & 0xFFFFFFFF for c, k in zip(counter, key, strict=False)]
    for r in range(rounds):
        for low, high, turn in ((0, 1 + 2 * (r % 2), turns[r % 8][0]), (2, 3 - 2 * (r % 2), turns[r % 8][1])):
            x[low] = (x[low] + x[high]) & 0xFFFFFFFF
            x[high] = (((x[high] << turn) | (x[high] >> (32 - turn))) & 0xFFFFFFFF) ^ x[low]
        if r % 4 == 3:
            s = r // 4 + 1
            x = [(value + key[(s + i) % 5] + (s if i == 3 else 0)) & 0xFFFFFFFF for i, value in enumerate(x)]
    return x
