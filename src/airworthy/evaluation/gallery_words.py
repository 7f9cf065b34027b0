"""Facts about a device, in the words of the gallery."""

from __future__ import annotations

import math

import numpy as np

from airworthy.sensors import Device, Fisheye, Pinhole, Spherical


def device_facts(item: Device) -> list[tuple[str, str]]:
    """Name and value of what one wants to know first."""
    facts = [("rows x columns", f"{item.height} x {item.width}")]
    across, up = fields_of_view(item)
    if across is not None and up is not None:
        facts.append(("field of view", f"{across:.4g} x {up:.4g} deg"))
    limits = item.limits
    if math.isfinite(limits.maximum):
        facts.append(("range", f"{limits.minimum:g} to {limits.maximum:g} m"))
    facts.append(("rate", f"{item.rate:g} Hz"))
    if item.baseline:
        facts.append(("baseline", f"{1000.0 * item.baseline:.0f} mm"))
    if item.noise_enabled:
        facts.append(("noise", "on"))
    return facts


def fields_of_view(item: Device) -> tuple[float | None, float | None]:
    """Horizontal and vertical field of view [deg]; None where a sensor has none."""
    lens = item.projection
    if isinstance(lens, Pinhole):
        angles = (lens.horizontal_fov, lens.vertical_fov)
    elif isinstance(lens, Spherical):
        angles = (lens.azimuth[1] - lens.azimuth[0], lens.elevation[1] - lens.elevation[0])
    elif isinstance(lens, Fisheye):
        middle = (0.5 * lens.width, 0.5 * lens.height)
        rays = lens.unproject([[0.0, middle[1]], [lens.width, middle[1]], [middle[0], 0.0], [middle[0], lens.height]])
        off = np.arccos(np.clip(rays[:, 2], -1.0, 1.0))
        angles = (float(off[0] + off[1]), float(off[2] + off[3]))
    else:
        return None, None
    return math.degrees(angles[0]), math.degrees(angles[1])


def bytes_shown(count: float) -> str:
    """A number of bytes that a person can read."""
    for unit in ("B", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} GB"
