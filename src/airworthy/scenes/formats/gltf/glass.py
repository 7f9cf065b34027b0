"""What light passes in glTF: glass and water by KHR_materials_transmission, _ior, _volume; leaves by _diffuse_transmission."""

from __future__ import annotations

import math
from typing import Any

from airworthy.scenes.formats._source import JsonFields
from airworthy.scenes.record import Material

__all__ = ["GLASS_EXTENSIONS", "glass_fields", "glass_json", "leaf_fields", "leaf_json"]

TRANSMISSION, IOR, VOLUME = "KHR_materials_transmission", "KHR_materials_ior", "KHR_materials_volume"
DIFFUSE = "KHR_materials_diffuse_transmission"
GLASS_EXTENSIONS = {TRANSMISSION, IOR, VOLUME, DIFFUSE}
_LEAST = 1e-6
"""Attenuation of a volume that takes nothing [1/m]: above 0, it bends light."""
_MOST = 1e4
_INDEX = 1.5
"""Of a material that does not say."""


def glass_fields(fields: JsonFields) -> dict[str, Any]:
    """Return fields of `Material` by what a glTF material says of glass; nothing where it is opaque.

    Args:
        fields: Of the material. Maps, which we have none of for these, are left out with a warning.
    """
    passes = fields.extension(TRANSMISSION)
    share = 0.0 if passes is None else _within(passes.number("transmissionFactor", 0.0), 0.0, 1.0)
    if passes is None or share == 0.0:
        return {}
    if "transmissionTexture" in passes:
        fields.source.warn("maps of how much passes glass are left out: it is even")
    about = fields.extension(IOR)
    found: dict[str, Any] = {
        "transmission": share,
        "ior": _within(_INDEX if about is None else about.number("ior", _INDEX), 1.0, 4.0),
    }
    volume = fields.extension(VOLUME)
    # Without thickness it is a thin sheet, as the extension says.
    if volume is not None and volume.number("thicknessFactor", 0.0) > 0.0:
        color = volume.numbers("attenuationColor", 3, (1.0, 1.0, 1.0))
        # A volume that says no distance takes nothing.
        distance = volume.number("attenuationDistance", 0.0)
        found["attenuation"] = tuple(_attenuation(value, distance) for value in color)
    return found


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most) if math.isfinite(value) else least


def _attenuation(color: float, distance: float) -> float:
    """Of one colour [1/m]: what is left of it after a distance is its share."""
    if not distance > 0.0:
        return _LEAST
    return _within(-math.log(min(max(color, 1e-6), 1.0)) / distance, _LEAST, _MOST)


def glass_json(material: Material) -> dict[str, Any]:
    """Return the extensions that say of a material what passes it, by name; none where it is opaque."""
    if material.transmission <= 0.0:
        return {}
    made: dict[str, Any] = {TRANSMISSION: {"transmissionFactor": float(material.transmission)}}
    if material.ior != _INDEX:
        made[IOR] = {"ior": float(material.ior)}
    most = max(material.attenuation)
    if most > 0.0:
        # After the way in which the colour that goes first falls to 1/e.
        color = [math.exp(-value / most) for value in material.attenuation]
        made[VOLUME] = {"thicknessFactor": 1.0, "attenuationDistance": 1.0 / most, "attenuationColor": color}
    return made


def leaf_fields(fields: JsonFields, base: tuple[float, ...]) -> dict[str, Any]:
    """Return fields of `Material` by what a glTF material says of light that is scattered to the other side.

    Args:
        fields: Of the material. Maps, which we have none of for these, are left out with a warning.
        base: Its base colour, over which what passes is tinted.
    """
    passes = fields.extension(DIFFUSE)
    share = 0.0 if passes is None else _within(passes.number("diffuseTransmissionFactor", 0.0), 0.0, 1.0)
    if passes is None or share == 0.0:
        return {}
    if "diffuseTransmissionTexture" in passes or "diffuseTransmissionColorTexture" in passes:
        fields.source.warn("maps of light that is scattered through are left out: it is even, in the colours of the base map")
    color = passes.numbers("diffuseTransmissionColorFactor", 3, (1.0, 1.0, 1.0))
    tint = tuple(_within(value / max(own, 1e-3), 0.0, 4.0) for value, own in zip(color, base, strict=False))
    return {"translucency": share, "translucent_tint": tint}


def leaf_json(material: Material) -> dict[str, Any]:
    """Return the extension that says of a material what is scattered to its other side, by name; none where nothing is."""
    if material.translucency <= 0.0:
        return {}
    color = [min(a * b, 1.0) for a, b in zip(material.base_color, material.translucent_tint, strict=False)]
    return {
        DIFFUSE: {"diffuseTransmissionFactor": float(material.translucency), "diffuseTransmissionColorFactor": color},
    }
