"""Which pictures are held against which: neighbours in time, and those that look alike, which closes loops.

Likeness is by vectors of locally aggregated descriptors (Jegou, Douze, Schmid and Perez, 2010) over words that are learnt from
the capture itself: nothing has to be loaded, and a room's own patterns are told apart best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt, ArrayU8

__all__ = ["likely_pairs", "likeness", "sequential_pairs", "visual_words"]

WORDS = 64
_SAMPLE = 30_000
"""Descriptors from which words are learnt, of all pictures alike."""
_ROUNDS = 12


def visual_words(descriptors: Sequence[ArrayU8], count: int = WORDS, seed: int = 0) -> ArrayF32:
    """Return words (count, 128), unit: means of descriptors by k-means on the sphere.

    Args:
        descriptors: Of each picture, (n_k, 128).
        count: How many words.
        seed: Of the sample and the first words.
    """
    rng = np.random.default_rng([seed, 0x3A1D])
    each = max(1, _SAMPLE // max(len(descriptors), 1))
    some = [d[rng.permutation(len(d))[:each]] for d in descriptors if len(d)]
    rows = _unit(np.concatenate(some)) if some else np.zeros((0, 128), np.float32)
    if len(rows) <= count:
        return rows
    words = rows[rng.choice(len(rows), count, replace=False)]
    for _ in range(_ROUNDS):
        nearest = np.argmax(rows @ words.T, axis=1)
        sums = np.zeros_like(words)
        np.add.at(sums, nearest, rows)
        # A word that nobody is near to starts again at the sample's own place.
        empty = np.bincount(nearest, minlength=count) == 0
        sums[empty] = rows[rng.choice(len(rows), int(empty.sum()), replace=False)]
        words = _unit(sums)
    return words


def likeness(descriptors: Sequence[ArrayU8], words: ArrayF32) -> ArrayF32:
    """Return how alike pictures look, (n, n), 1 on the diagonal; 0 for pictures without descriptors.

    Args:
        descriptors: Of each picture, (n_k, 128).
        words: (count, 128)
    """
    vectors = np.zeros((len(descriptors), words.size), np.float32)
    for k, rows in enumerate(descriptors):
        if not len(rows) or not len(words):
            continue
        unit = _unit(rows)
        nearest = np.argmax(unit @ words.T, axis=1)
        sums = np.zeros_like(words)
        np.add.at(sums, nearest, unit - words[nearest])
        # Each word by itself first, or a carpet, which is one word many times, would be all there is.
        vectors[k] = _unit(sums).ravel()
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(vectors @ vectors.T)


def _unit(rows: Array | ArrayF32 | ArrayU8) -> ArrayF32:
    values = np.asarray(rows, np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), np.float32(1e-12))


def sequential_pairs(source: ArrayInt, ordered: Sequence[bool], overlap: int = 6) -> set[tuple[int, int]]:
    """Return pairs of pictures that follow each other in one film.

    Args:
        source: Number of each picture's source, (n,); pictures of a source are in order.
        ordered: Whether a source's order is that of time (a film), by source.
        overlap: How many that follow; beyond them those after 2, 4, 8, ... up to 4 times as many.
    """
    steps = sorted({*range(1, overlap + 1), *(2**k for k in range(1, 12) if overlap < 2**k <= 4 * overlap)})
    found = set()
    for number, in_order in enumerate(ordered):
        rows = np.flatnonzero(np.asarray(source) == number)
        if in_order:
            found |= {(int(rows[k]), int(rows[k + step])) for step in steps for k in range(len(rows) - step)}
    return found


def likely_pairs(alike: ArrayF32, count: int) -> set[tuple[int, int]]:
    """Return pairs of each picture with those that look most like it.

    Args:
        alike: (n, n)
        count: Of each.
    """
    values = np.array(alike)
    np.fill_diagonal(values, -np.inf)
    best = np.argsort(-values, axis=1, kind="stable")[:, : min(count, len(values) - 1)]
    return {(min(k, int(other)), max(k, int(other))) for k, row in enumerate(best) for other in row}
