"""Surfaces of generated places: one named material per kind of thing, with a procedural texture laid triplanar."""

from __future__ import annotations

from airworthy.scenes.record import Color, Light, Material, Sky, Sun, Texture
from airworthy.scenes.textures import procedural

__all__ = ["DAY", "DAY_SKY", "TEXTURE_SIZE", "surfaces", "textures_of"]

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
    """Materials by name. `bark~3` is the third tint of `bark`.

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
    """The textures that materials name."""
    kinds = sorted({m.base_color_map for m in materials.values()} - {""})
    return {kind: procedural(kind, TEXTURE_SIZE) for kind in kinds}
