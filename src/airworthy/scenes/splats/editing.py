"""Editing splats: crop, delete, merge, duplicate, recolour, brighten. Every function returns new splats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes.splats.record import C0, Splats, turned, with_degree

# ---- Levels of detail: fewer gaussians that look much the same from further away --------------------------------------------
#
# Gaussians that share a cell of a grid become one of the same mean and covariance, weighted by opacity times cross-section,
# and of the opacity that keeps the sum of opacity times cross-section (moment matching).

_STEPS = 40
_BITS = 20
_VARIANCE_MIN = 1e-18
"""[m^2]; rounding can make the smallest variance of a flat group negative."""


def thinned(splats: Splats, count: int) -> Splats:
    """Return about `count` gaussians, and at most that many, in the order of their cells; the splats themselves if they are no
    more.

    Raises:
        AirworthyError: The count is below 1.
    """
    if count < 1:
        raise AirworthyError(f"{count} gaussians were asked for; at least 1 was expected.")
    if len(splats) <= count:
        return splats
    cell, groups = _cells(splats, count)
    weight = splats.opacity.astype(np.float64) * _section(splats.scale.astype(np.float64))
    weight = np.maximum(weight, 1e-30)  # a gaussian that cannot be seen still has a place
    total = np.bincount(cell, weight, groups)

    def mean(values: NDArray[np.floating]) -> Array:
        flat = values.reshape(len(splats), -1).astype(np.float64)
        columns = [np.bincount(cell, weight * flat[:, column], groups) / total for column in range(flat.shape[1])]
        return np.stack(columns, 1).reshape(groups, *values.shape[1:])

    position = mean(splats.position)
    away = splats.position - position[cell]
    covariance = mean(_covariance(splats) + away[:, :, None] * away[:, None, :])
    variance, axes = np.linalg.eigh(covariance)
    axes[:, :, 0] *= np.sign(np.linalg.det(axes))[:, None]
    scale = np.sqrt(np.maximum(variance, _VARIANCE_MIN))
    opacity = np.minimum(total / _section(scale), 1.0)
    return Splats(
        position.astype(np.float32),
        frames.from_matrix(axes).astype(np.float32),
        scale.astype(np.float32),
        opacity.astype(np.float32),
        mean(splats.harmonics).astype(np.float32),
    )


def levels_of_detail(splats: Splats, counts: Sequence[int]) -> tuple[Splats, ...]:
    """Return levels of falling numbers of gaussians, each made from the splats themselves."""
    return tuple(thinned(splats, count) for count in counts)


def _section(scale: Array) -> Array:
    """Mean of the cross-sections along the three axes of an ellipsoid of these half axes, up to a constant factor."""
    a, b, c = scale[:, 0], scale[:, 1], scale[:, 2]
    return (a * b + b * c + c * a) / 3.0


def _covariance(splats: Splats) -> Array:
    """(n, 3, 3) [m^2]."""
    scaled = frames.to_matrix(splats.rotation.astype(np.float64)) * splats.scale.astype(np.float64)[:, None, :]
    return scaled @ scaled.transpose(0, 2, 1)


def _cells(splats: Splats, count: int) -> tuple[ArrayInt, int]:
    """(n,) number of the cell of each gaussian, and how many cells there are: the finest grid that has no more than `count`."""
    position = splats.position.astype(np.float64)
    low = position.min(0)
    # Of one point alone the span is 0.
    span = float((position.max(0) - low).max()) or 1.0
    coarse, fine = 0.0, float(_BITS)
    best: tuple[ArrayInt, int] = np.zeros(len(splats), np.int64), 1
    for _ in range(_STEPS):
        middle = (coarse + fine) / 2
        cells = np.floor((position - low) / (span * (1 + 1e-9)) * 2.0**middle).astype(np.int64)
        # One number for each cell: numbers are sorted many times faster than rows.
        key = (cells[:, 0] << 2 * (_BITS + 1)) | (cells[:, 1] << (_BITS + 1)) | cells[:, 2]
        unique, number = np.unique(key, return_inverse=True)
        # Bisection in the logarithm of the cell's edge; near enough is good enough, as a count is not met exactly anyway.
        if len(unique) <= count:
            coarse, best = middle, (number.astype(np.int64), len(unique))
            if len(unique) >= 0.98 * count:
                break
        else:
            fine = middle
    return best


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Splats moved as a whole: similarity transformations, and the turns from a file's up axis to z --------------------------

_HALF = float(np.sqrt(0.5))
UP_TURNS: dict[str, tuple[float, float, float, float]] = {
    "x": (0.0, -_HALF, 0.0, _HALF),
    "-x": (0.0, _HALF, 0.0, _HALF),
    "y": (_HALF, 0.0, 0.0, _HALF),
    "-y": (-_HALF, 0.0, 0.0, _HALF),
    "z": (0.0, 0.0, 0.0, 1.0),
    "-z": (1.0, 0.0, 0.0, 0.0),
}
"""Quaternions x, y, z, w that turn the axis of a file that points up into z; x stays where that is possible."""
IDENTITY = (0.0, 0.0, 0.0, 1.0)
_BLOCK = 1 << 16


def transformed(
    splats: Splats, rotation: ArrayLike = IDENTITY, translation: ArrayLike = (0.0, 0.0, 0.0), scale: float = 1.0
) -> Splats:
    """Return splats scaled about the origin, then rotated, then moved; what depends on the viewing direction turns with them.

    Args:
        splats: The splats.
        rotation: Quaternion x, y, z, w of any length.
        translation: [m].
        scale: Factor of the whole scene, > 0.

    Raises:
        AirworthyError: The rotation is zero, or something is not finite or not positive.
    """
    quaternion, offset = _checked(rotation, translation, scale)
    position, attitude = _moved(splats.position, splats.rotation, quaternion, offset, scale)
    sizes = splats.scale * np.float32(scale)
    # Untouched bits where nothing turns.
    harmonics = splats.harmonics if _is_identity(quaternion) else turned(splats.harmonics, quaternion)
    return Splats(position, attitude, sizes, splats.opacity, harmonics)


def _checked(rotation: ArrayLike, translation: ArrayLike, scale: float) -> tuple[Array, Array]:
    quaternion = np.asarray(rotation, np.float64)
    offset = np.asarray(translation, np.float64)
    if quaternion.shape != (4,) or not np.isfinite(quaternion).all() or not np.linalg.norm(quaternion) > 0:
        raise AirworthyError(f"The rotation of splats is {rotation!r}; expected a quaternion x, y, z, w that is not zero.")
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise AirworthyError(f"The translation of splats is {translation!r}; expected three finite numbers [m].")
    if not (np.isfinite(scale) and scale > 0):
        raise AirworthyError(f"The scale of splats is {scale!r}; expected a finite factor above 0.")
    return quaternion / np.linalg.norm(quaternion), offset


def _is_identity(quaternion: Array) -> bool:
    return bool((quaternion[:3] == 0.0).all())


def _moved(
    position: NDArray[np.floating], attitude: NDArray[np.floating], quaternion: Array, offset: Array, scale: float
) -> tuple[ArrayF32, ArrayF32]:
    """Means and rotations in the new frame; in blocks, since sums are made in float64."""
    # Applied in float64: positions in a city lose centimetres in single precision.
    matrix = scale * frames.to_matrix(quaternion)
    product = frames.multiply(quaternion, np.eye(4))  # rows: quaternion times each unit; the product is linear in the second
    new_position = np.empty(position.shape, np.float32)
    new_attitude = np.empty(attitude.shape, np.float32)
    for start in range(0, len(position), _BLOCK):
        here = slice(start, start + _BLOCK)
        new_position[here] = position[here].astype(np.float64) @ matrix.T + offset
        new_attitude[here] = attitude[here].astype(np.float64) @ product
    return new_position, new_attitude


def up_turn(up: str) -> tuple[float, float, float, float]:
    """Return the quaternion that turns a file's up axis into z.

    Raises:
        UnknownNameError: The axis is none of `UP_TURNS`.
    """
    if up not in UP_TURNS:
        raise unknown_name("up axis", up, UP_TURNS, "It is the axis of the file that points up; z leaves the file as it is.")
    return UP_TURNS[up]


# -----------------------------------------------------------------------------------------------------------------------------

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
        """Return the box along the axes between two corners."""
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        return cls(tuple((low + high) / 2), tuple(high - low))

    def holds(self, points: ArrayLike) -> ArrayBool:
        """Return (n,) whether points (n, 3) lie in it, its faces included."""
        points = np.asarray(points, float)
        # What is farther away along an axis than its corners from its middle is outside, however it is turned.
        near, reach = np.arange(len(points)), 0.5 * (1.0 + 1e-9) * float(np.linalg.norm(self.size))
        for axis, middle in enumerate(self.center):
            near = near[np.abs(points[near, axis] - middle) <= reach]
        local = frames.rotate_inverse(frames.normalize(np.array(self.attitude)), points[near] - self.center)
        found = np.zeros(len(points), bool)
        found[near] = (np.abs(local) <= np.array(self.size) / 2).all(-1)
        return found


def selected(splats: Splats, keep: ArrayAny) -> Splats:
    """Return the gaussians of a mask (n,) or of indices."""
    return Splats(
        splats.position[keep], splats.rotation[keep], splats.scale[keep], splats.opacity[keep], splats.harmonics[keep]
    )


def _inside(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> ArrayBool:
    result = np.zeros(len(splats), bool)
    for box in [boxes] if isinstance(boxes, EditBox) else boxes:
        result |= box.holds(splats.position)
    return result


def cropped(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> Splats:
    """Return only the gaussians whose centre is in one of the boxes."""
    return selected(splats, _inside(splats, boxes))


def cropped_to(splats: Splats, lower: ArrayLike, upper: ArrayLike) -> Splats:
    """Return only the gaussians whose centre is in a box along the axes.

    Args:
        splats: Which.
        lower: Corner of the box [m], (3,).
        upper: The opposite one [m], (3,).

    Raises:
        AirworthyError: The corners are not those of a box, or nothing is in it.
    """
    low, high = np.asarray(lower, float), np.asarray(upper, float)
    corners = f"from {_corner(low)} to {_corner(high)}"
    if not (np.isfinite([low, high]).all() and (low < high).all()):
        raise AirworthyError(f"A box {corners} is none: its lower corner must be below the upper one in x, y and z.")
    inside = cropped(splats, EditBox.of(low, high))
    if not len(inside):
        whole = f"{_corner(splats.position.min(0))} to {_corner(splats.position.max(0))}" if len(splats) else "nowhere"
        raise AirworthyError(f"None of {len(splats):,} gaussians is in the box {corners}: they lie from {whole}.")
    return inside


def _corner(point: ArrayAny) -> str:
    return "(" + ", ".join(f"{float(value):.4g}" for value in point) + ")"


def deleted(splats: Splats, boxes: EditBox | Iterable[EditBox]) -> Splats:
    """Return the splats without the gaussians whose centre is in one of the boxes."""
    return selected(splats, ~_inside(splats, boxes))


def merged(parts: Sequence[Splats]) -> Splats:
    """Return several splats as one, in their order; harmonics of a lower degree are filled with zeros.

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
    """Return copies of splats; the original is not among them.

    Args:
        splats: One object.
        positions: Of the copies' origins [m], (m, 3).
        attitudes: Quaternions x, y, z, w, (m, 4); None: none is turned.
        scales: (m,); None: 1.

    Raises:
        AirworthyError: The numbers of places, attitudes and scales differ.
    """
    origins = np.atleast_2d(np.asarray(positions, float))
    count = len(origins)
    turns = np.tile(IDENTITY, (count, 1)) if attitudes is None else np.atleast_2d(np.asarray(attitudes, float))
    sizes = np.ones(count) if scales is None else np.atleast_1d(np.asarray(scales, float))
    if origins.shape != (count, 3) or turns.shape != (count, 4) or sizes.shape != (count,):
        raise AirworthyError(
            f"Copies have {origins.shape} places, {turns.shape} attitudes, {sizes.shape} scales; (m, 3), (m, 4), (m,) expected."
        )
    return merged([transformed(splats, turns[i], origins[i], float(sizes[i])) for i in range(count)])


def recolored(splats: Splats, matrix: ArrayLike, offset: ArrayLike = (0.0, 0.0, 0.0)) -> Splats:
    """Return colours, as encoded, become matrix @ colour + offset, from every direction.

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
    """Return splats as if lit `factor` times as brightly: the radiance of what is rendered is multiplied, not its encoded
    value.

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
