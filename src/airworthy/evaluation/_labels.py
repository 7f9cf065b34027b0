"""Names of columns and settings as people write them."""

from __future__ import annotations

_UNITS = {
    ("m", "s"): "m/s",
    ("m", "s2"): "m/s\N{SUPERSCRIPT TWO}",
    ("rad", "s"): "rad/s",
    ("hz",): "Hz",
    ("kg",): "kg",
    ("m",): "m",
    ("n",): "N",
    ("rad",): "rad",
    ("s",): "s",
}


def labelled(name: str) -> str:
    """`wind_speed_m_s` as "wind speed [m/s]"; a name without a unit only loses its underscores."""
    parts = name.split("_")
    for suffix, unit in _UNITS.items():
        count = len(suffix)
        if len(parts) > count and tuple(parts[-count:]) == suffix:
            return f"{' '.join(parts[:-count])} [{unit}]"
    return " ".join(parts)
