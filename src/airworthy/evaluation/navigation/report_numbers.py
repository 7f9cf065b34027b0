"""How reports write numbers."""

from __future__ import annotations

from math import isfinite

__all__ = ["DASH", "interval", "number", "span"]

DASH = "\N{EN DASH}"


def number(value: float, digits: int) -> str:
    """A number; "" where there is none."""
    return f"{value:,.{digits}f}" if isfinite(value) else ""


def interval(low: float, high: float) -> str:
    """Two shares in percent; "" where one is no number."""
    return f"{100 * low:.0f} {DASH} {100 * high:.0f}" if isfinite(low) and isfinite(high) else ""


def span(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
