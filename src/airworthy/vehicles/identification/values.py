"""One value of what was identified, in numbers and in a word."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IdentifiedValue"]


@dataclass(frozen=True)
class IdentifiedValue:
    """One value, as it was found."""

    name: str
    value: float
    """SI units."""
    sd: float
    """Of the value itself; of what is positive, to first order."""
    share: float
    """1 - variance over the prior's."""
    laplace: float
    """Standard deviation by curvature, on the value's scale (`vehicles.record.UNCERTAIN`)."""
    sandwich: float
    """The same by the scatter of gradients."""
    word: str
    """"identified", "supported", "prior", "assumed", "weighed", "measured", "bench" or "fixed"."""
    beside: str = ""
    """What tells it beside the logs, as "bench: stand.csv[1a2b3c4d]"; empty: nothing."""
