"""One acceptance figure: what was measured beside what it must be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured figure and its aim."""

    name: str
    """What was checked, with where the aim comes from."""
    measured: float
    """In `unit`."""
    aim: str
    """What it must be, in words."""
    passed: bool
    """Whether it is."""
    unit: str = ""
    """Of the measured number."""


def within(name: str, measured: float, expected: float, share: float, unit: str = "") -> Figure:
    """A figure that must lie within a share of an expected value."""
    aim = f"{expected:.6g} +- {100 * share:g} %"
    return Figure(name, measured, aim, bool(abs(measured - expected) <= share * abs(expected)), unit)


def below(name: str, measured: float, bound: float, unit: str = "") -> Figure:
    """A figure that must not exceed a bound."""
    return Figure(name, measured, f"at most {bound:g}", bool(measured <= bound), unit)


def zero(name: str, count: int) -> Figure:
    """A count that must be zero."""
    return Figure(name, float(count), "0", count == 0)
