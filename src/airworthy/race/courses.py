"""Courses of a race by name: where its gates stand in one run, and several of them by one text.

    nominal              nothing moved
    fresh/SEED/NUMBER    drawn: within the bounds; in a race with a layout, on a layout of its own
    published/0..24      the organisers' practice courses, of the AlphaPilot race
    bounds/GATE/CORNER   one gate at an extreme of its bounds, of the AlphaPilot race

The AlphaPilot race has the courses of its scene (`airworthy.scenes.generators.halls.race_courses`), under the same names.
"""

from __future__ import annotations

import re

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.race.drawn import perturbed, placed
from airworthy.race.gate_geometry import with_corners
from airworthy.race.record import Race
from airworthy.scenes.generators.halls import course_frames, course_names

_HALL = "alphapilot"
"""The one scene whose courses are named so far."""
_DRAWN = re.compile(r"fresh(/[0-9]+/[0-9]+|:[0-9]+/[0-9]+(-[0-9]+)?)")
_FRESH = re.compile(r"fresh/([0-9]{1,18})/([0-9]{1,9})")


def course_of(race: Race, name: str) -> Race:
    """Return one course: the race with its gates, posts and start where they stand there.

    Args:
        race: Nominal.
        name: See the module.

    Raises:
        AirworthyError: The race has no such course.
    """
    _check_asked(race)
    if not isinstance(name, str):
        raise AirworthyError(f"A course of the race {race.name!r} was named by {name!r}; expected text, as 'nominal'.")
    if race.scene == _HALL:
        # Truth for the referee and truth for the scene come from one place: no gate is turned twice.
        hall = {frame.name: frame.corners for frame in course_frames(name)}
        strange = [gate.name for gate in race.gates if gate.name not in hall]
        if strange:
            raise unknown_name(f"gate of the scene {race.scene!r}", strange[0], hall, "A race in it flies its gates alone.")
        return with_corners(race, {gate.name: hall[gate.name] for gate in race.gates})
    if name == "nominal":
        return race
    match = _FRESH.fullmatch(name)
    if match is None:
        raise AirworthyError(
            f"The race {race.name!r} has no course {name[:80]!r}; expected nominal or fresh/SEED/NUMBER, with at most 18 and 9"
            " digits."
        )
    if not race.is_drawn:
        raise AirworthyError(f"Nothing of the race {race.name!r} is drawn: its one course is nominal.")
    seed, index = int(match[1]), int(match[2])
    return perturbed(placed(race, seed, index) if race.layout is not None else race, seed, index)


def names_of(race: Race, text: str) -> tuple[str, ...]:
    """Return names of the courses of a race that a text means, in its order.

    Args:
        race: Nominal.
        text: As `airworthy.scenes.generators.halls.course_names` has it.

    Raises:
        AirworthyError: It means no course, one twice, or one that no race of this kind has.
    """
    _check_asked(race)
    if not isinstance(text, str):
        raise AirworthyError(f"Courses of the race {race.name!r} were named by {text!r}; expected text, as 'nominal'.")
    # The texts are those of the AlphaPilot race; what another race lacks is said by its own name.
    for part in (item.strip() for item in text.split(",")) if race.scene != _HALL else ():
        if not race.is_drawn and part != "nominal":
            raise AirworthyError(f"Nothing of the race {race.name!r} is drawn: its one course is nominal, not {part[:80]!r}.")
        if part != "nominal" and not _DRAWN.fullmatch(part):
            raise AirworthyError(
                f"The race {race.name!r} has no course {part[:80]!r}; expected nominal, fresh/SEED/NUMBER, fresh:SEED/COUNT or"
                " fresh:SEED/FIRST-LAST, with whole numbers."
            )
    return course_names(text)


def courses_of(race: Race, text: str) -> tuple[Race, ...]:
    """Return the courses that a text means, in its order: `published:0-24`, `fresh:10000/100`, `nominal`, joined by commas.

    Args:
        race: Nominal.
        text: As `airworthy.scenes.generators.halls.course_names` has it.

    Raises:
        AirworthyError: It means no course, one twice, or one that the race has not.
    """
    return tuple(course_of(race, name) for name in names_of(race, text))


def _check_asked(race: Race) -> None:
    if not isinstance(race, Race):
        raise AirworthyError(f"Courses were asked for of {race!r}; expected a race, as of `load_race`.")
