"""Gaussians as decoded from a file, before they are checked: activated values that may be nonsense.

The reader silences NumPy's floating-point warnings for all decoders: what is not finite in the end is dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._source import Source
from airworthy.scenes.splats.harmonics import C0, with_degree
from airworthy.scenes.splats.record import COEFFICIENTS, Splats

Floats = NDArray[np.float32]
SCALE_MIN = 1e-9
SCALE_MAX = 1e5
"""Standard deviations [m] below the first are raised to it, gaussians above the second are dropped."""
_HARMONIC_MAX = 1e4
_NORM_MIN = 1e-12
_BLOCK = 1 << 16
_HELD = 3  # arrays that are alive at once while a file is decoded, turned and checked, in units of the result


@dataclass
class Raw:
    """Float32 arrays of n gaussians."""

    position: Floats
    """(n, 3)."""
    rotation: Floats
    """(n, 4) x, y, z, w of any length."""
    scale: Floats
    """(n, 3) standard deviations."""
    opacity: Floats
    """(n,)."""
    harmonics: Floats
    """(n, k, 3)."""


@dataclass
class Decoded:
    """What a container's decoder gives."""

    raw: Raw
    container: str
    up: str
    """The axis that the container, or its custom, says is up."""
    axes: str = ""
    antialiased: bool = False
    levels: int = 1
    dropped: dict[str, int] = field(default_factory=dict)
    """Of gaussians that the decoder itself left out."""


def reserve(source: Source, count: int, degree: int) -> None:
    """Refuse none, or more gaussians than the limits allow, and count their memory, before anything is allocated."""
    if not count:
        source.refuse("it holds no gaussian")
    source.at_most(count, source.limits.vertices, "gaussians")
    source.take(_HELD * count * 4 * (11 + 3 * COEFFICIENTS[degree]), f"its {count:,} gaussians")


def sigmoid(values: NDArray[np.floating]) -> Floats:
    """Opacities of logits; infinities become 0 and 1, NaN stays."""
    return np.asarray(1.0 / (1.0 + np.exp(-values.astype(np.float32))), np.float32)


def exponential(values: NDArray[np.floating]) -> Floats:
    """Scales of their logarithms; too large ones become infinite, and are dropped later."""
    return np.exp(values.astype(np.float32))


def first_harmonic(colors: NDArray[np.floating]) -> Floats:
    """Coefficients of degree 0, (n, 1, 3), of colours (n, 3) in [0, 1]."""
    return np.asarray((colors.astype(np.float32) - 0.5) / C0, np.float32)[:, None, :]


def joined(parts: list[Raw]) -> Raw:
    """Gaussians of several files; harmonics of a lower degree are filled with zeros."""
    if len(parts) == 1:
        return parts[0]
    degree = max(COEFFICIENTS.index(part.harmonics.shape[1]) for part in parts)
    return Raw(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.rotation for part in parts]),
        np.concatenate([part.scale for part in parts]),
        np.concatenate([part.opacity for part in parts]),
        np.concatenate([with_degree(part.harmonics, degree) for part in parts]),
    )


def checked(source: Source, raw: Raw) -> tuple[Splats, dict[str, int]]:
    """Splats of what is sound, and how many gaussians were dropped by reason; each is counted once.

    Raises:
        AssetError: Nothing is left.
    """
    if not len(raw.position):
        source.refuse("it holds no gaussian")
    limit = np.float32(source.limits.coordinate)
    keep = np.ones(len(raw.position), bool)
    dropped: dict[str, int] = {}

    def drop(reason: str, bad: Any) -> None:
        number = int((bad & keep).sum())
        if number:
            dropped[reason] = number
            keep[bad] = False

    drop(f"position not finite or beyond {limit:g} m", ~_all_within(raw.position, limit))
    norm = np.sqrt(np.einsum("ij,ij->i", raw.rotation, raw.rotation))
    drop("rotation zero or not finite", ~(np.isfinite(norm) & (norm > _NORM_MIN)))
    drop("scale zero or not finite", ~((raw.scale > 0) & np.isfinite(raw.scale)).all(1))
    drop(f"scale above {SCALE_MAX:g} m", (raw.scale > SCALE_MAX).any(1))
    drop("opacity outside 0 to 1", ~((raw.opacity >= -1e-3) & (raw.opacity <= 1 + 1e-3)))
    drop("colour not finite or absurd", ~_all_within(raw.harmonics.reshape(len(keep), -1), np.float32(_HARMONIC_MAX)))
    for reason, number in dropped.items():
        source.warn(f"gaussians dropped: {reason}", number)
    if not keep.any():
        source.refuse("it holds no sound gaussian")
    if not keep.all():
        raw, norm = _kept(raw, keep), norm[keep]
    tiny = int((raw.scale < SCALE_MIN).any(1).sum())
    if tiny:
        source.warn(f"gaussians thinner than {SCALE_MIN:g} m made that thick", tiny)
    rotation = raw.rotation / norm[:, None]
    opacity = raw.opacity.clip(0.0, 1.0)
    return Splats(raw.position, rotation, np.maximum(raw.scale, SCALE_MIN), opacity, raw.harmonics), dropped


def _all_within(values: Floats, limit: np.float32) -> NDArray[np.bool_]:
    """(n,) whether all numbers of a row are finite and within a limit; in blocks, which bounds the memory."""
    result = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        here = slice(start, start + _BLOCK)
        result[here] = (np.abs(values[here]) <= limit).all(1)  # False also for NaN
    return result


def _kept(raw: Raw, keep: NDArray[np.bool_]) -> Raw:
    return Raw(raw.position[keep], raw.rotation[keep], raw.scale[keep], raw.opacity[keep], raw.harmonics[keep])
