"""Editing splats: crop, delete, merge, duplicate, recolour, brighten. Every function returns new splats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.harmonics import C0, with_degree
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.splats.transforming import IDENTITY, transformed

_SRGB_POWER = 2.4
_SRGB_OFFSET = 0.055


@dataclass(frozen=True)
class EditBox:
    """A box in the scene: turned by `attitude` about its centre.

    Raises:
        AirworthyError: A size is not above 0, or something is not finite.
    """

    center: tuple[float, float, float]
    """[m]."""
    size: tuple[float, float, float]
    """Whole edge lengths [m]."""
    attitude: tuple[float, float, float, float] = IDENTITY
    """Quaternion x, y, z, w."""

    def __post_init__(self) -> None:
        numbers = np.array([*self.center, *self.size, *self.attitude], float)
        if not np.isfinite(numbers).all() or min(self.size) <= 0 or not any(self.attitude):
            raise AirworthyError(f"{self} is no box; finite numbers, sizes above 0 and a rotation were expected.")

    @classmethod
    def of(cls, lower: ArrayLike, upper: ArrayLike) -> EditBox:
        """The box along the axes between two corners."""
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        return cls(tuple((low + high) / 2), tuple(high - low))

    def holds(self, points: ArrayLike) -> NDArray[np.bool_]:
        """(n,) whether points (n, 3) lie in it, its faces included."""
        local = frames.rotate_inverse(frames.normalize(np.array(self.attitude)), np.asarray(points, float) - self.center)
        return np.asarray((np.abs(local) <= np.array(self.size) / 2).all(-1))


def selected(splats: Splats, keep: NDArray[Any]) -> Splats:
    """The gaussians of a mask (n,) or of indices."""
    return Splats(
        splats.position[keep], splats.rotation[keep], splats.scale[keep], splats.opacity[keep], splats.harmonics[keep]
    )


def _inside(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> NDArray[np.bool_]:
    result = np.zeros(len(splats), bool)
    for box in [boxes] if isinstance(boxes, EditBox) else boxes:
        result |= box.holds(splats.position)
    return result


def cropped(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> Splats:
    """Only the gaussians whose centre is in one of the boxes."""
    return selected(splats, _inside(splats, boxes))


def deleted(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> Splats:
    """Without the gaussians whose centre is in one of the boxes."""
    return selected(splats, ~_inside(splats, boxes))


def merged(parts: Sequence[Splats]) -> Splats:
    """Several splats as one, in their order; harmonics of a lower degree are filled with zeros.

    Raises:
        AirworthyError: There are none.
    """
    if not parts:
        raise AirworthyError("There are no splats to merge.")
    degree = max(part.degree for part in parts)
    return Splats(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.rotation for part in parts]),
        np.concatenate([part.scale for part in parts]),
        np.concatenate([part.opacity for part in parts]),
        np.concatenate([with_degree(part.harmonics, degree) for part in parts]),
    )


def duplicated(
    splats: Splats, positions: ArrayLike, attitudes: ArrayLike | None = None, scales: ArrayLike | None = None
) -> Splats:
    """Copies of splats at places (m, 3), with attitudes (m, 4) and scales (m,); the original is not among them.

    Raises:
        AirworthyError: The numbers of places, attitudes and scales differ.
    """
    places = np.atleast_2d(np.asarray(positions, float))
    count = len(places)
    turns = np.tile(IDENTITY, (count, 1)) if attitudes is None else np.atleast_2d(np.asarray(attitudes, float))
    sizes = np.ones(count) if scales is None else np.atleast_1d(np.asarray(scales, float))
    if places.shape != (count, 3) or turns.shape != (count, 4) or sizes.shape != (count,):
        raise AirworthyError(
            f"Copies have {places.shape} places, {turns.shape} attitudes, {sizes.shape} scales; (m, 3), (m, 4), (m,) expected."
        )
    return merged([transformed(splats, turns[i], places[i], float(sizes[i])) for i in range(count)])


def recolored(splats: Splats, matrix: ArrayLike, offset: ArrayLike = (0.0, 0.0, 0.0)) -> Splats:
    """Colours, as encoded, become matrix @ colour + offset, from every direction.

    Args:
        splats: The splats.
        matrix: (3, 3), or (3,) factors of red, green and blue, or one factor.
        offset: (3,), added.

    Raises:
        AirworthyError: A shape is another, or something is not finite.
    """
    mixing = np.asarray(matrix, float)
    mixing = np.diag(np.broadcast_to(mixing, 3)) if mixing.ndim < 2 and mixing.size in (1, 3) else mixing
    shift = np.asarray(offset, float)
    if mixing.shape != (3, 3) or shift.shape != (3,) or not np.isfinite([*mixing.ravel(), *shift]).all():
        raise AirworthyError(f"Colours cannot be mixed by {matrix!r} and {offset!r}; (3, 3) or (3,), and (3,), were expected.")
    harmonics = splats.harmonics @ mixing.T.astype(np.float32)
    harmonics[:, 0] += ((mixing.sum(1) * 0.5 + shift - 0.5) / C0).astype(np.float32)
    return Splats(splats.position, splats.rotation, splats.scale, splats.opacity, harmonics)


def brightened(splats: Splats, factor: float) -> Splats:
    """Splats as if lit `factor` times as brightly: the radiance of what is rendered is multiplied, not its encoded value.

    The sRGB curve above its toe is a power of c + 0.055, so scaling the radiance by f is the affine map
    c -> f^(1/2.4) (c + 0.055) - 0.055 of the encoded colour. Blending is linear, so an opaque image changes by the same map.
    In the toe (encoded 0.04 and below) this is off by at most 0.0175 for darkening.

    Raises:
        AirworthyError: The factor is not finite or below 0.
    """
    if not (np.isfinite(factor) and factor >= 0):
        raise AirworthyError(f"Brightness {factor!r} was asked for; a finite factor of at least 0 was expected.")
    gain = float(factor) ** (1.0 / _SRGB_POWER)
    return recolored(splats, gain, np.full(3, (gain - 1.0) * _SRGB_OFFSET))
