"""Courses of the AlphaPilot race by name, one and several: what `alphapilot:NAME` builds, and what a race counts through.

    nominal              nothing moved
    published/0..24      the organisers' 25 practice courses
    fresh/SEED/NUMBER    drawn uniformly from the published bounds; NUMBER n is `alphapilot(n + 1, SEED)`
    bounds/GATE/CORNER   one gate, 0 to 10 in race order, at an extreme: of the corner's number, bit 0 is the sign of dx, bit 1
                         of dy, bit 2 of dyaw; all others nominal. 88 courses, to be hard (spec/race 2).

Several at once: `published` or `published:0-24`, `fresh:SEED/COUNT` or `fresh:SEED/FIRST-LAST`, `bounds` or `bounds:3`, and any
of these joined by commas. Equal names are equal courses on every machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.halls.race_hall import drawn_shifts, gate_frames, gate_order, race_hall, shift_bounds
from airworthy.scenes.record import GateFrame, Scene

COURSES_MAX = 100_000
"""Most courses that one text may name: beyond it somebody mistyped a count."""
CORNERS = 8
"""Extreme corners of a gate's bounds: two signs of each of dx, dy and dyaw."""
# Ours: scenes count drawn courses from 1 to 999,999 (`scenes.catalogue`), with seeds of 63 bits.
_NUMBER_MAX, _SEED_MAX = 999_998, 2**63 - 1


@cache
def published_shifts() -> Array:
    """Return shifts of the 25 published courses, (25, gates, 3), as `race_hall` takes them."""
    text = files("airworthy.scenes.generators.halls").joinpath("alphapilot_published.json").read_text()
    data = json.loads(text)
    # Tables are looked up by position: a list in another order would move other gates.
    assert tuple(data["order"]) == gate_order()
    shifts = np.array(data["courses"], float)
    shifts.setflags(write=False)
    return shifts


def course_shifts(name: str) -> Array:
    """Return shifts of a course by its name, (gates, 3): dx [m], dy [m], dyaw [deg], clockwise positive.

    Raises:
        AirworthyError: There is no such course.
    """
    kind, numbers = _parsed(name)
    if kind == "published":
        return published_shifts()[numbers[0]].copy()
    if kind == "fresh":
        return drawn_shifts(numbers[1] + 1, numbers[0])
    shifts = np.zeros((len(gate_order()), 3))
    if kind == "bounds":
        gate, corner = numbers
        signs = [1.0 if corner >> bit & 1 else -1.0 for bit in range(3)]
        shifts[gate] = np.array(signs) * shift_bounds()[gate]
    return shifts


def course_frames(name: str) -> tuple[GateFrame, ...]:
    """Return the race's gates in their order, of a course by its name; raises as `course_shifts`.

    Without the hall around them: a referee and statistics need no more, and 1,000 courses take a moment.
    """
    return gate_frames(course_shifts(name))


def alphapilot_course(name: str, decoy_beacons: bool = False) -> Scene:
    """Return the race hall with a course by its name; raises as `course_shifts`.

    Args:
        name: See the module.
        decoy_beacons: Whether decoys bear beacons, too.
    """
    plain = _name(*_parsed(name))
    return race_hall("alphapilot" if plain == "nominal" else f"alphapilot:{plain}", course_shifts(name), decoy_beacons)


def course_names(text: str) -> tuple[str, ...]:
    """Return names of the courses that a text means, in its order; see the module.

    Raises:
        AirworthyError: It means none, one twice, or more than `COURSES_MAX`.
    """
    names: list[str] = []
    for part in text.split(","):
        names += _several(part.strip())
        if len(names) > COURSES_MAX:
            raise AirworthyError(f"{_short(text)} names more than {COURSES_MAX:,} courses; name fewer.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AirworthyError(f"{_short(text)} names the course {name} twice; name each once.")
        seen.add(name)
    return tuple(names)


# ---- parts --------------------------------------------------------------------------------------------------------------

# Of more digits than anything may have: such a number is said to be too large, and not to be none.
_DIGITS = "[0-9]{1,60}"
_ONE = re.compile(rf"(nominal)|(published)/({_DIGITS})|(fresh|bounds)/({_DIGITS})/({_DIGITS})")
_RANGE = rf"({_DIGITS})(?:-({_DIGITS}))?"
_SEVERAL = re.compile(rf"(published|bounds)(?::{_RANGE})?|(fresh):({_DIGITS})/{_RANGE}")


def _parsed(name: str) -> tuple[str, tuple[int, ...]]:
    """Return kind and numbers of one course."""
    match = _ONE.fullmatch(name)
    if match is None:
        raise AirworthyError(
            f"{_short(name)} is no course of the AlphaPilot race; expected nominal, published/0 to"
            f" published/{len(published_shifts()) - 1}, fresh/SEED/NUMBER or bounds/GATE/CORNER."
        )
    kind, *numbers = (part for part in match.groups() if part is not None)
    found = tuple(int(number) for number in numbers)
    limits = {
        "published": ((len(published_shifts()) - 1, "number"),),
        "fresh": ((_SEED_MAX, "seed"), (_NUMBER_MAX, "number")),
        "bounds": ((len(gate_order()) - 1, "gate"), (CORNERS - 1, "corner")),
    }
    for number, (most, what) in zip(found, limits.get(kind, ()), strict=True):
        if number > most:
            raise AirworthyError(f"The course {name} has the {what} {number}; expected 0 to {most}.")
    return kind, found


def _name(kind: str, numbers: tuple[int, ...]) -> str:
    """Return a course's one name: without the leading zeros that somebody may type."""
    return "/".join([kind, *map(str, numbers)])


def _several(part: str) -> list[str]:
    """Return names of the courses of one part of a text, in order."""
    if _ONE.fullmatch(part):
        return [_name(*_parsed(part))]
    match = _SEVERAL.fullmatch(part)
    if match is None:
        raise AirworthyError(
            f"{_short(part)} names no courses of the AlphaPilot race; expected nominal, published:0-24, fresh:SEED/COUNT,"
            " fresh:SEED/FIRST-LAST, bounds or bounds:GATE, or single ones as published/7 and fresh/10000/3, joined by commas."
        )
    plain, first, last, fresh, seed, count, final = match.groups()
    if fresh:
        # One number is how many, two are the first and the last.
        ends = (0, int(count) - 1) if final is None else (int(count), int(final))
        return _numbered(part, ends, lambda number: [f"fresh/{int(seed)}/{number}"])
    size = len(published_shifts()) if plain == "published" else len(gate_order())
    ends = (0, size - 1) if first is None else (int(first), int(last or first))
    if plain == "published":
        return _numbered(part, ends, lambda number: [f"published/{number}"])
    return _numbered(part, ends, lambda gate: [f"bounds/{gate}/{corner}" for corner in range(CORNERS)])


def _numbered(part: str, ends: tuple[int, int], names: Callable[[int], list[str]]) -> list[str]:
    """Return the names of the numbers from the first to the last, both included."""
    first, last = ends
    if (first, last) == (0, -1):
        raise AirworthyError(f"{_short(part)} names 0 courses; expected 1 or more, as fresh:SEED/1.")
    if last < first:
        raise AirworthyError(f"{_short(part)} counts from {first} to {last}; expected at least one course.")
    if last - first >= COURSES_MAX:
        raise AirworthyError(f"{_short(part)} names more than {COURSES_MAX:,} courses; name fewer.")
    found = [name for number in range(first, last + 1) for name in names(number)]
    for name in (found[0], found[-1]):  # what lies between is between
        _parsed(name)
    return found


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")
