"""Facts about a device, in the words of the gallery."""

from __future__ import annotations

import math

from airworthy.sensors import Device
from airworthy.sensors.fields_of_view import fields_of_view


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


def bytes_shown(count: float) -> str:
    """A number of bytes that a person can read."""
    for unit in ("B", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} GB"
