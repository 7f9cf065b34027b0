"""The one internal form of Gaussian splats: activated values, metres, quaternions x, y, z, w."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, ArrayLike
from airworthy.core.errors import AirworthyError

COEFFICIENTS = (1, 4, 9, 16)
"""Spherical harmonics per colour channel, by degree."""


@dataclass(frozen=True, eq=False)
class Splats:
    """Gaussians in the frame of a scene: z up, metres.

    Raises:
        AirworthyError: If shapes do not fit.
    """

    position: ArrayFloat
    """Means, (n, 3) [m], float32."""
    rotation: ArrayFloat
    """Unit quaternions x, y, z, w, local to world, (n, 4), float32."""
    scale: ArrayFloat
    """Standard deviations along the local axes, (n, 3) [m], > 0, float32."""
    opacity: ArrayFloat
    """In [0, 1], (n,), float32."""
    harmonics: ArrayFloat
    """Coefficients of the colour, (n, k, 3), k of `COEFFICIENTS`, float32, in the order and signs of 3DGS: the colour seen from
    direction d is 0.5 + sum of harmonics times the real basis at d, clamped to at least 0; sRGB-encoded, as trained."""

    def __post_init__(self) -> None:
        for name in ("position", "rotation", "scale", "opacity", "harmonics"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float32))
        n = len(self.position)
        shapes = {"position": (n, 3), "rotation": (n, 4), "scale": (n, 3), "opacity": (n,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise AirworthyError(f"Splats' {name} has shape {getattr(self, name).shape}; expected {shape}.")
        k = self.harmonics.shape[1] if self.harmonics.ndim == 3 else -1
        if self.harmonics.shape != (n, k, 3) or k not in COEFFICIENTS:
            raise AirworthyError(f"Splats' harmonics have shape {self.harmonics.shape}; expected ({n}, 1, 4, 9 or 16, 3).")

    def __len__(self) -> int:
        return len(self.position)

    @property
    def degree(self) -> int:
        """Of the harmonics, 0 to 3."""
        return COEFFICIENTS.index(self.harmonics.shape[1])


# -----------------------------------------------------------------------------------------------------------------------------
# Real spherical harmonics of degree 0 to 3 in the order and signs of 3DGS: values, colours, and how they turn with a
# scene.

C0 = 0.28209479177387814
"""Value of the first function, sqrt(1 / 4 pi): a colour of degree 0 is 0.5 + C0 * coefficient."""
_C1 = 0.4886025119029199
_C2 = (1.0925484305920792, 0.31539156525252005, 0.5462742152960396)
_C3 = (0.5900435899266435, 2.890611442640554, 0.4570457994644658, 0.3731763325901154, 1.445305721320277)
_DIRECTIONS = 64


def basis(directions: ArrayLike, degree: int = 3) -> Array:
    """Return values of the real harmonics with the Condon-Shortley phase (the basis of 3DGS and of KHR_gaussian_splatting).

    Args:
        directions: Unit vectors from the camera to the gaussian, (..., 3).
        degree: 0 to 3.

    Returns:
        (..., (degree + 1)^2).

    Raises:
        AirworthyError: The degree is none of these.
    """
    if degree not in range(len(COEFFICIENTS)):
        raise AirworthyError(f"Spherical harmonics of degree {degree} were asked for; 0 to {len(COEFFICIENTS) - 1} are known.")
    d = np.asarray(directions, np.float64)
    x, y, z = d[..., 0], d[..., 1], d[..., 2]
    xx, yy, zz = x * x, y * y, z * z
    values = [np.full(x.shape, C0)]
    if degree >= 1:
        values += [-_C1 * y, _C1 * z, -_C1 * x]
    if degree >= 2:
        a, b, c = _C2
        values += [a * x * y, -a * y * z, b * (2 * zz - xx - yy), -a * x * z, c * (xx - yy)]
    if degree >= 3:
        a, b, c, e, f = _C3
        side = 4 * zz - xx - yy
        values += [-a * y * (3 * xx - yy), b * x * y * z, -c * y * side, e * z * (2 * zz - 3 * xx - 3 * yy)]
        values += [-c * x * side, f * z * (xx - yy), -a * x * (xx - 3 * yy)]
    return np.stack(values, -1)


def colors(harmonics: ArrayLike, directions: ArrayLike) -> Array:
    """Return colours seen from directions: sRGB-encoded, (..., 3), clamped to at least 0.

    Args:
        harmonics: (..., k, 3), k of `COEFFICIENTS`.
        directions: Unit vectors from the camera to the gaussian, (..., 3).

    Raises:
        AirworthyError: The harmonics have another shape.
    """
    values = np.asarray(harmonics, np.float64)
    if values.ndim < 2 or values.shape[-2] not in COEFFICIENTS or values.shape[-1] != 3:
        raise AirworthyError(f"Harmonics have shape {values.shape}; expected (..., 1, 4, 9 or 16, 3).")
    at = basis(directions, COEFFICIENTS.index(values.shape[-2]))
    return np.maximum(0.5 + (at[..., None] * values).sum(-2), 0.0)


def turn_matrix(rotation: ArrayLike, degree: int = 3) -> Array:
    """Return (k, k) matrix that turns coefficients with a scene, k = (degree + 1)^2; blocks by degree, orthogonal.

    The turned colour from direction d must be the old one from R^-1 d. Each degree is closed under rotation, so the matrix
    follows from the values at enough directions: B(d) M = B(R^-1 d), solved by least squares, exactly up to rounding.

    Args:
        rotation: Unit quaternion x, y, z, w, (4,).
        degree: 0 to 3.
    """
    directions, inverse = _frame(degree)
    turned = basis(frames.rotate_inverse(np.asarray(rotation, np.float64), directions), degree)
    full = inverse @ turned
    result = np.zeros_like(full)
    for band in range(degree + 1):
        here = slice(band * band, (band + 1) ** 2)
        result[here, here] = full[here, here]
    return result


@cache
def _frame(degree: int) -> tuple[Array, Array]:
    """Directions spread over the sphere on a spiral, and the pseudo-inverse of the basis there."""
    number = np.arange(_DIRECTIONS) + 0.5
    z = 1.0 - 2.0 * number / _DIRECTIONS
    angle = number * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z * z)
    directions = np.stack([across * np.cos(angle), across * np.sin(angle), z], -1)
    return directions, np.asarray(np.linalg.pinv(basis(directions, degree)), np.float64)


def turned(harmonics: ArrayFloat, rotation: ArrayLike) -> ArrayF32:
    """Return harmonics (n, k, 3) of gaussians whose scene was rotated by a quaternion x, y, z, w."""
    n, k, _ = harmonics.shape
    if k == 1:
        return harmonics.astype(np.float32)
    matrix = turn_matrix(rotation, COEFFICIENTS.index(k)).astype(np.float32)
    wide = np.kron(matrix, np.eye(3, dtype=np.float32))  # one product for all channels is what BLAS does fast
    return (harmonics.reshape(n, 3 * k).astype(np.float32, copy=False) @ wide.T).reshape(n, k, 3)


def with_degree(harmonics: ArrayFloat, degree: int) -> ArrayF32:
    """Return harmonics (n, k, 3) cut, or filled with zeros, to a degree."""
    wanted = COEFFICIENTS[degree]
    have = harmonics.shape[1]
    if have >= wanted:
        return np.ascontiguousarray(harmonics[:, :wanted], np.float32)
    result = np.zeros((len(harmonics), wanted, 3), np.float32)
    result[:, :have] = harmonics
    return result
