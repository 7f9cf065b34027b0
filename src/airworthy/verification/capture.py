"""Marker alignment: item 6 of SOUS VIDE's acceptance list (specification, sections 6 and 12), on captures that are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from airworthy.capture.alignment.align import find_alignment
from airworthy.capture.alignment.markers import PUBLISHED_SIDE as SIDE
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.similarity import Similarity, find_similarity
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.viewpoints import look_at
from airworthy.verification import Figure
from airworthy.verification.published import below

__all__ = ["marker_figures"]

SEEDS, ALL_SEEDS = 10, 100
IMAGES, WRONG = 60, 18
"""Of which 30 % are wrong."""
LENS = (1400.0, 1410.0, 540.0, 960.0)
"""fx, fy, cx, cy [px] of a camera like a telephone's."""
POSITION_NOISE, CORNER_NOISE = 3e-4, 0.1
"""Standard deviations of the places [m], and of each coordinate of the corners [px], that are not wrong."""
ROOM = 3.0
"""Half the side of the cube in which places are drawn, and the most that a wrong one is off along an axis [m]."""


def marker_figures(everything: bool = False) -> Iterator[Figure]:
    """Check a random similarity from places alone, and one from the corners of a marker in images of random poses.

    Args:
        everything: 100 random cases of each instead of 10.
    """
    count = ALL_SEEDS if everything else SEEDS
    for kind, case in (("places", _from_positions), ("images of a marker", _from_corners)):
        found = np.array([_errors_of(case, seed) for seed in range(count)])
        label = f"SOUS VIDE 6, similarity from {IMAGES} {kind}, 30 % of them wrong, {count} cases:"
        # Where the cameras were: what is extrapolated from there is as wrong as the corners are noisy.
        yield below(f"{label} their places off, worst", 1e3 * float(found[:, 0].max()), 1.0, "mm")
        yield below(f"{label} turned, worst", float(np.degrees(found[:, 1].max())), 0.1, "deg")


def _errors_of(case: Callable[[int], tuple[float, float]], seed: int) -> tuple[float, float]:
    """Return what a case finds; what is refused is infinitely far off."""
    try:
        return case(seed)
    except AirworthyError:
        return np.inf, np.inf


def _lost(rng: np.random.Generator) -> Similarity:
    """From a reconstruction's frame to the marker's."""
    return Similarity(frames.normalize(rng.normal(size=4)), rng.uniform(-2.0, 2.0, 3), float(rng.uniform(0.2, 5.0)))


def _from_positions(seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    wanted, positions = _lost(rng), rng.uniform(-ROOM, ROOM, (IMAGES, 3))
    given = positions + POSITION_NOISE * rng.normal(size=positions.shape)
    given[:WRONG] += rng.uniform(-ROOM, ROOM, (WRONG, 3))
    return _off(find_similarity(wanted.inverse.points(positions), given, seed=seed).similarity, wanted, positions)


def _from_corners(seed: int) -> tuple[float, float]:
    """Cameras 1 to 3 m from the marker, all around and above; those that are wrong saw it as from elsewhere."""
    rng = np.random.default_rng(seed)
    wanted, (position, turn) = _lost(rng), _cameras(rng)
    corners = _projected(position, turn) + CORNER_NOISE * rng.normal(size=(IMAGES, 4, 2))
    corners[:WRONG] = _projected(*_cameras(rng))[:WRONG]
    back = wanted.inverse
    dots = (np.zeros((1, 1, 3), np.uint8),) * IMAGES
    images = CaptureImages(dots, np.tile(LENS, (IMAGES, 1)), back.points(position), frames.multiply(back.rotation, turn))
    # Corners that are made up have noise, and no tone curve that moves edges.
    found = find_alignment(images, dict(enumerate(corners)), SIDE, seed=seed, bleed=0.0)
    return _off(found.similarity, wanted, position)


def _cameras(rng: np.random.Generator) -> tuple[Array, Array]:
    """Places (IMAGES, 3) in the marker's frame, and attitudes (IMAGES, 4), looking at about the marker."""
    directions = np.concatenate([rng.normal(size=(IMAGES, 2)), rng.uniform(0.6, 2.0, (IMAGES, 1))], axis=1)
    position = directions / np.linalg.norm(directions, axis=1, keepdims=True) * rng.uniform(1.0, 3.0, (IMAGES, 1))
    return position, np.stack([look_at(where, rng.uniform(-0.2, 0.2, 3)) for where in position])


def _projected(position: Array, turn: Array) -> Array:
    """Pixels (n, 4, 2) of the marker's corners."""
    eye = frames.rotate_inverse(turn[:, None], marker_corners(SIDE)[None] - position[:, None])
    return np.asarray(eye[..., :2] / eye[..., 2:] * LENS[:2] + LENS[2:])


def _off(found: Similarity, wanted: Similarity, positions: Array) -> tuple[float, float]:
    """Largest distance of places from where they belong [m], and the angle between the rotations [rad]."""
    off = np.linalg.norm(found.points(wanted.inverse.points(positions)) - positions, axis=1)
    return float(off.max()), float(frames.angle_between(found.rotation, wanted.rotation))
