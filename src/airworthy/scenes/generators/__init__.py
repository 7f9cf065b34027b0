"""Generated places: `GENERATORS[name](index, seed) -> Scene`, a pure function of name, index and seed.

The seven scenarios of `SCENARIOS` (and `sudden_drop_plus`) have configurations 1 to 10, the halls of splats one; all other
generators take any index from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from airworthy.core.errors import AirworthyError
from airworthy.core.faces import lazy_names
from airworthy.scenes.generators.rooms.parameters import ALIASES, ROOMS
from airworthy.scenes.record import Scene

if TYPE_CHECKING:
    from airworthy.scenes.generators.rooms import resample, room_arrays, room_batch, with_level
else:
    __getattr__, __dir__ = lazy_names(__name__)

Generator = Callable[[int, int], Scene]

SCENARIOS = ("forest", "urban", "random_cylinder", "narrow_gap", "sudden_drop", "maze", "perlin")
"""The scenarios of the navigation benchmark."""

FURNISHED = ("mid_gate", "flightroom", "backroom")
"""Furnished halls of meshes."""
SPLAT_HALLS = ("hall", "hall_statues")
"""Halls of splats; each is one configuration."""


def _generated(place: str, *arguments: str | int) -> Scene:
    """Load the file of a generator, which most programs never ask for, and call it; `place` is "module:function"."""
    module, _, function = place.partition(":")
    return cast(Scene, getattr(import_module(f"{__name__}.{module}"), function)(*arguments))


GENERATORS: dict[str, Generator] = {
    **{name: partial(_generated, "flyingtrust.scenario:scene_of", name) for name in (*SCENARIOS, "sudden_drop_plus")},
    **{name: partial(_generated, "rooms.scene:room_scene", name) for name in (*ROOMS, *ALIASES)},
    **{name: partial(_generated, f"halls.layouts:{name}") for name in FURNISHED},
    "street": partial(_generated, "street:street"),
    "warehouse": partial(_generated, "warehouse:warehouse"),
    "woodland": partial(_generated, "woodland:woodland"),
    "lakeside": partial(_generated, "lakeside:lakeside"),
    "alphapilot": partial(_generated, "halls.race_hall:alphapilot"),
    **{name: partial(_generated, f"halls.splat_hall:{name}") for name in SPLAT_HALLS},
}
"""Name -> scene from (index, seed)."""


def _other_look(name: str) -> Scene:
    from airworthy.scenes.vegetation.variety import look_named  # which asks for places by their names

    return look_named(name)


NAMED: dict[str, Callable[[str], Scene]] = {
    "alphapilot": partial(_generated, "halls.race_courses:alphapilot_course"),
    "other_look": _other_look,
}
"""What has configurations with names (`alphapilot:published/7`, `other_look:forest:3`): scene from what follows the colon."""

__all__ = [
    "GENERATORS",
    "NAMED",
    "SCENARIOS",
    "Generator",
    "register",
    "resample",
    "room_arrays",
    "room_batch",
    "with_level",
]


def register(name: str, generator: Generator) -> None:
    """Add a generator under a name of its own.

    Raises:
        AirworthyError: If the name is taken, or is not made of letters, digits, - and _.
    """
    if name in GENERATORS:
        raise AirworthyError(f"A generator {name!r} is registered already; choose another name.")
    if not name.replace("_", "").replace("-", "").isalnum():
        raise AirworthyError(f"A generator's name is {name!r}; expected letters, digits, - and _ only.")
    GENERATORS[name] = generator
