"""Names of shared shapes."""

from __future__ import annotations

import hashlib
import operator
from typing import SupportsIndex

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.record import Color, Light, Material, Sky, Sun, Texture
from airworthy.scenes.textures import procedural

__all__ = ["DAY", "DAY_SKY", "TEXTURE_SIZE", "checked", "digest", "generator", "shape_name", "surfaces", "textures_of"]

# -----------------------------------------------------------------------------------------------------------------------------
# Where generated places get their chance from: a pure function of names and numbers, the same in every process.


def digest(*parts: object) -> int:
    """Return 128 bits of SHA-256 over the parts' texts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(*parts: object) -> np.random.Generator:
    """Return a Philox generator keyed by the parts: names, indices, seeds, numbers of attempts."""
    return np.random.Generator(np.random.Philox(key=digest(*parts)))


def checked(what: str, value: SupportsIndex, lowest: int | None = None, highest: int | None = None) -> int:
    """Return an integer within its range.

    Args:
        what: Name of the argument, for the error's sentence.
        value: What was given.
        lowest: Least value; None: any.
        highest: Largest; None: any.

    Raises:
        AirworthyError: If it is not an integer, or out of range.
    """
    limits = "" if lowest is None else f" from {lowest} on" if highest is None else f" from {lowest} to {highest}"
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise AirworthyError(f"`{what}` is {value!r}; expected an integer{limits}.")
    number = operator.index(value)
    if (lowest is not None and number < lowest) or (highest is not None and number > highest):
        raise AirworthyError(f"`{what}` is {number}; expected an integer{limits}.")
    return number


# -----------------------------------------------------------------------------------------------------------------------------
# Surfaces of generated places: one named material per kind of thing, with a procedural texture laid triplanar.

TEXTURE_SIZE = 256
"""Side of textures [px]."""

DAY: tuple[Light, ...] = (Sun((-0.45, 0.35, -0.8213), irradiance=3.2),)
DAY_SKY = Sky()

_TINTS: tuple[Color, ...] = ((1.0, 1.0, 1.0), (0.86, 0.84, 0.8), (0.95, 0.88, 0.78), (0.78, 0.82, 0.88), (1.0, 0.93, 0.86))

_KINDS: dict[str, tuple[str, float, Color, float]] = {
    # name: texture, metres per repeat, tint, roughness
    "grass": ("grass", 4.0, (0.9, 0.95, 0.85), 1.0),
    "soil": ("soil", 4.0, (1.0, 0.95, 0.9), 1.0),
    "asphalt": ("asphalt", 5.0, (1.0, 1.0, 1.0), 0.95),
    "floor": ("concrete", 3.0, (0.8, 0.8, 0.8), 0.9),
    "hedge": ("leaves", 2.5, (0.8, 0.9, 0.75), 1.0),
    "bark": ("bark", 1.2, (1.0, 1.0, 1.0), 1.0),
    "leaves": ("leaves", 1.6, (1.0, 1.0, 1.0), 1.0),
    "concrete": ("concrete", 2.5, (1.0, 1.0, 1.0), 0.9),
    "plaster": ("plaster", 2.5, (1.0, 1.0, 1.0), 0.9),
    "brick": ("brick", 2.0, (1.0, 1.0, 1.0), 0.9),
    "facade": ("facade", 6.0, (1.0, 1.0, 1.0), 0.7),
    "rust": ("rust", 2.0, (1.0, 1.0, 1.0), 0.8),
    "metal": ("metal", 1.5, (1.0, 1.0, 1.0), 0.4),
    "corrugated": ("corrugated", 2.0, (1.0, 1.0, 1.0), 0.5),
    "crate": ("crate", 1.0, (1.0, 1.0, 1.0), 0.8),
    "wood": ("wood", 1.5, (1.0, 1.0, 1.0), 0.7),
    "car_paint": ("", 0.0, (0.5, 0.06, 0.05), 0.3),
}


def surfaces(*names: str) -> dict[str, Material]:
    """Return materials by name. `bark~3` is the third tint of `bark`.

    Raises:
        KeyError: If a kind is not in the table; names come from our own generators only.
    """
    return {name: _material(name) for name in names}


def _material(name: str) -> Material:
    kind, _, variant = name.partition("~")
    texture, size, tint, roughness = _KINDS[kind]
    extra = _TINTS[int(variant) % len(_TINTS)] if variant else (1.0, 1.0, 1.0)
    red, green, blue = (round(a * b, 4) for a, b in zip(tint, extra, strict=True))
    return Material((red, green, blue, 1.0), roughness=roughness, base_color_map=texture, texture_size=size)


def textures_of(materials: dict[str, Material]) -> dict[str, Texture]:
    """Return the textures that materials name."""
    kinds = sorted({m.base_color_map for m in materials.values()} - {""})
    return {kind: procedural(kind, TEXTURE_SIZE) for kind in kinds}


# -----------------------------------------------------------------------------------------------------------------------------


def shape_name(shape: Shape) -> str:
    """Return kind and full measures of a solid, so that equal solids share one entry.

    Measures are written in full: two solids that differ by a bit have different names.
    """
    assert not isinstance(shape, Mesh), "meshes are named by who makes them"
    sizes: tuple[float, ...]
    if isinstance(shape, Box):
        sizes = shape.half_size
    elif isinstance(shape, Sphere):
        sizes = (shape.radius,)
    else:
        assert isinstance(shape, Cylinder | Capsule)
        sizes = (shape.radius, shape.half_length)
    return f"{type(shape).__name__.lower()}_{'_'.join(f'{2.0 * size:.17g}' for size in sizes)}"
