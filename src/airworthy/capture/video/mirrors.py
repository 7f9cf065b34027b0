"""A mirror in a reconstruction: the room behind it is reconstructed as a room, of which each point has a counterpart before it.

A point that is seen in a mirror looks like its counterpart turned left to right. So descriptors are mirrored and matched among
themselves; each pair of points then has one plane of which one is the other's mirror image, and in a mirror many pairs have the
same. Things that are alike on both sides have such a plane, too, and carpets many: but the camera passes through those, or
they lie near it. Behind a mirror no camera was ever, and what is seen in it lies about as far before it as the cameras.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.scenes.splats.capture_frame import SourceFrame

__all__ = ["MirrorPlane", "find_mirror", "mirror_matches", "mirror_record", "mirror_walls", "mirrored_descriptors"]

_RATIO = 0.85
"""Angle to the most similar descriptor over that to the second one, below which a match is taken; Lowe has 0.8."""
_TOLERANCE = 0.02, 0.015
"""How far a mirror image may lie from its counterpart: of the reach of the reconstruction, and of the way between the two, as
points that are seen in a mirror are far and hardly seen from several sides."""
_APART = 0.05
"""Of the reach: points nearer to each other than this have no plane to speak of."""
_PAIRS = 12
"""Pairs from where on a mirror is believed. Ours: twelve reconstructions without one have 6 and fewer of a plane that all their
cameras are before, and up to 61 of others."""
_AS_FAR = 0.5
"""Half of what is seen in a mirror lies before it at least this share as far as half of the cameras."""
_ROUNDS, _AT_ONCE, _NAMED = 5, 1024, 3


@dataclass(frozen=True, eq=False)
class MirrorPlane:
    """A plane before which the cameras are, and behind which points are mirror images of ones before it."""

    normal: Array
    """(3,) unit, towards the cameras."""
    offset: float
    """Places x of the plane have normal @ x = offset, in the unit of the reconstruction."""
    pairs: ArrayInt
    """(n, 2) points behind and before it."""

    @property
    def believed(self) -> bool:
        """Whether so many agree as never do by chance."""
        return len(self.pairs) >= _PAIRS


def mirrored_descriptors(descriptors: ArrayF32) -> ArrayF32:
    """Return SIFT descriptors of the same places in mirrored pictures, (n, 128).

    A descriptor has 4 x 4 fields along the direction of its feature and across it, of 8 directions each, against that of the
    feature (D. Lowe, "Distinctive image features from scale-invariant keypoints", IJCV 60 (2004), section 6). Mirroring
    turns round what lies across, and the sense of the directions.

    Args:
        descriptors: (n, 128), as COLMAP has them.
    """
    fields = descriptors.reshape(-1, 4, 4, 8)[:, ::-1]
    return np.ascontiguousarray(fields[..., -np.arange(8) % 8]).reshape(-1, 128)


def mirror_matches(descriptors: ArrayF32) -> ArrayInt:
    """Return pairs (n, 2) of places that look like each other's mirror images, more than like any other's.

    Args:
        descriptors: Of the places, (points, 128), of any length; one of a place that was seen often is the mean.
    """
    length = np.linalg.norm(descriptors, axis=1, keepdims=True)
    own = (descriptors / np.maximum(length, 1e-9)).astype(np.float32)
    turned = mirrored_descriptors(own)
    count = len(own)
    if count < 3:
        return np.zeros((0, 2), np.int64)
    best, sure = np.zeros(count, np.int64), np.zeros(count, bool)
    for first in range(0, count, _AT_ONCE):
        rows = np.arange(first, min(first + _AT_ONCE, count))
        alike = turned[rows] @ own.T
        # What is alike on both sides is its own mirror image.
        alike[rows - first, rows] = -1.0
        two = np.argpartition(alike, -2, axis=1)[:, -2:]
        angle = np.arccos(np.clip(np.take_along_axis(alike, two, axis=1), -1.0, 1.0))
        nearer = angle.argmin(axis=1)
        best[rows] = two[rows - first, nearer]
        sure[rows] = angle.min(axis=1) < _RATIO * angle.max(axis=1)
    # Mirroring twice changes nothing, so that the table is symmetric, and its columns need not be asked.
    number = np.arange(count)
    taken = sure & sure[best] & (best[best] == number) & (number < best)
    return np.stack((number[taken], best[taken]), axis=1)


def find_mirror(points: Array, pairs: ArrayInt, centres: Array) -> MirrorPlane | None:
    """Return the plane for which most pairs are mirror images, of those that have all cameras before them; None: there is none.

    Args:
        points: That were reconstructed, (points, 3), in any unit.
        pairs: Of points that look like each other's mirror images, (n, 2).
        centres: Of the cameras, (pictures, 3).
    """
    reach = float(np.median(np.linalg.norm(points - centres.mean(axis=0), axis=1))) if len(points) else 0.0
    one, other = points[pairs[:, 0]], points[pairs[:, 1]]
    apart = np.linalg.norm(other - one, axis=1)
    wide = apart > _APART * reach
    one, other, apart, pairs = one[wide], other[wide], apart[wide], pairs[wide]
    allowed = _TOLERANCE[0] * reach + _TOLERANCE[1] * apart
    best, agree = 0, np.zeros(len(pairs), bool)
    for k in range(len(pairs)):
        normal = (other[k] - one[k]) / apart[k]
        offset = float(normal @ (one[k] + other[k])) / 2.0
        if _on_one_side(normal, offset, centres):
            found = _errors(normal, offset, one, other) < allowed
            if found.sum() > best:
                best, agree = int(found.sum()), found
    if not best:
        return None
    for _ in range(_ROUNDS):
        normal, offset = _fitted(one[agree], other[agree])
        agree = _errors(normal, offset, one, other) < allowed
        if not agree.any() or not _on_one_side(normal, offset, centres):
            return None
    if np.median(centres @ normal) < offset:
        normal, offset = -normal, -offset
    behind = np.where((one @ normal < offset)[:, None], pairs, pairs[:, ::-1])[agree]
    far = points[behind[:, 1]] @ normal - offset
    if np.median(far) < _AS_FAR * np.median(centres @ normal - offset):
        return None
    return MirrorPlane(normal, offset, behind)


def _on_one_side(normal: Array, offset: float, centres: Array) -> bool:
    side = centres @ normal - offset
    return bool((side > 0.0).all() or (side < 0.0).all())


def _errors(normal: Array, offset: float, one: Array, other: Array) -> Array:
    """How far the mirror images of places (n, 3) lie from others."""
    image = one - 2.0 * (one @ normal - offset)[:, None] * normal
    return np.asarray(np.linalg.norm(image - other, axis=1))


def _fitted(one: Array, other: Array) -> tuple[Array, float]:
    """Return the plane of pairs: the mean of their directions, long ones first, and the middle of their middles."""
    way = other - one
    way = way * np.where(way @ way[np.argmax(np.linalg.norm(way, axis=1))] < 0.0, -1.0, 1.0)[:, None]
    normal = way.sum(axis=0)
    normal = normal / max(float(np.linalg.norm(normal)), 1e-12)
    return normal, float(np.median(0.5 * (one + other) @ normal))


def mirror_record(found: MirrorPlane | None, names: Sequence[str], seen: Sequence[ArrayInt]) -> dict[str, Any] | None:
    """Return what reconstruction.json keeps: the plane, how many agree on it, and the pictures that show most of them.

    Args:
        found: None: there is none.
        names: Of the pictures with a pose.
        seen: Numbers of the points that each of them sees.
    """
    if found is None:
        return None
    behind = found.pairs[:, 0]
    counts = np.array([int(np.isin(behind, numbers).sum()) for numbers in seen])
    most = [names[k] for k in np.argsort(-counts, kind="stable")[:_NAMED] if counts[k]]
    return {
        "normal": found.normal.tolist(),
        "offset": found.offset,
        "pairs": len(found.pairs),
        "believed": found.believed,
        "pictures": sorted(most),
    }


def mirror_walls(result: Mapping[str, Any], source: SourceFrame) -> list[tuple[Array, float]]:
    """Return the planes of mirrors that are believed, in the frame of the place: normals towards the room and offsets [m].

    Args:
        result: Of reconstruction.json.
        source: How the frame of the reconstruction became that of the place.
    """
    # Folders of before have no such figures.
    found = result.get("mirror")
    if not found or not found["believed"]:
        return []
    # p = s R q + t, and n @ q = c: (R n) @ p = s c + (R n) @ t.
    normal = np.asarray(frames.rotate(np.array(source.rotation), np.array(found["normal"])))
    return [(normal, float(source.scale * found["offset"] + normal @ np.array(source.translation)))]
