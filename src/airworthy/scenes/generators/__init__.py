"""Generated places: `GENERATORS[name](index, seed) -> Scene`, a pure function of name, index and seed.

The seven scenarios of `SCENARIOS` (and `sudden_drop_plus`) have configurations 1 to 10, the halls of splats one; all other
generators take any index from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.flyingtrust import scene_of
from airworthy.scenes.generators.halls import HALLS, SPLAT_HALLS
from airworthy.scenes.generators.rooms import ALIASES, ROOMS, resample, room_arrays, room_batch, room_scene, with_level
from airworthy.scenes.record import Scene

Generator = Callable[[int, int], Scene]

SCENARIOS = ("forest", "urban", "random_cylinder", "narrow_gap", "sudden_drop", "maze", "perlin")
"""The scenarios of the navigation benchmark."""

GENERATORS: dict[str, Generator] = {name: partial(scene_of, name) for name in (*SCENARIOS, "sudden_drop_plus")}
"""Name -> scene from (index, seed)."""
GENERATORS.update({name: partial(room_scene, name) for name in (*ROOMS, *ALIASES)})
GENERATORS.update(HALLS)
GENERATORS.update(SPLAT_HALLS)

__all__ = [
    "GENERATORS",
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
