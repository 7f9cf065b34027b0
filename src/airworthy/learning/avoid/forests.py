"""Forests in which policies that avoid are judged: trunks at random, so many per area, none of which was seen in training."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Cylinder, Shape
from airworthy.scenes import Scene
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Instance, Region

__all__ = ["FOREST_LENGTH", "FOREST_WIDTH", "draw_trunks", "forest_scene"]

FOREST_LENGTH, FOREST_WIDTH = 40.0, 24.0
"""Along the way x, from 0 on, and across, about y = 0 [m]; ours."""
AROUND = 5.0
"""Open ground before and behind the forest [m]; ours, beyond starts and goals."""
CEILING = 4.0
"""Nobody may fly higher [m]: over the trees is not through them."""
RADII = (0.1, 0.3)
"""Of trunks [m]; ours, within the specification's 0.05 to 0.4."""
GAP = 0.6
"""Least gap between two trunks [m]: twice the width of the vehicle that is flown; without one some forests have no way."""
TRUNK_HEIGHT = 8.0
"""Ours [m]: twice the ceiling, so that no image sees over the trees."""
_TRIES = 20_000
"""Ours: candidates per forest; what is too dense by then is refused."""


def draw_trunks(seed: int, number: int, area: float) -> Array:
    """Return trunks of one forest: x, y, radius [m], (n, 3).

    Args:
        seed: Of all forests.
        number: Which of them.
        area: Per trunk [m^2].

    Raises:
        AirworthyError: So many do not fit.
    """
    # Number and area are words of the key: adding forests or densities changes no other forest.
    rng = generator("avoid forest", seed, number, round(1000.0 * area))
    wanted = round(FOREST_LENGTH * FOREST_WIDTH / area)
    found = np.zeros((wanted, 3))
    count = 0
    for _ in range(_TRIES):
        if count == wanted:
            return found
        x, y, r = rng.random(3)
        trunk = np.array([FOREST_LENGTH * x, FOREST_WIDTH * (y - 0.5), RADII[0] + (RADII[1] - RADII[0]) * r])
        before = found[:count]
        # Between the surfaces, not the middles: thick trunks must leave the same gap as thin ones.
        away = np.hypot(before[:, 0] - trunk[0], before[:, 1] - trunk[1]) - before[:, 2] - trunk[2]
        if (away >= GAP).all():
            found[count], count = trunk, count + 1
    raise AirworthyError(f"A forest of a tree per {area:g} m^2 is too dense: trees keep {GAP} m apart; expected 2 or more.")


def forest_scene(seed: int, number: int, area: float) -> Scene:
    """Return one forest as a scene: trunks on level ground.

    Args:
        seed: Of all forests.
        number: Which of them.
        area: Per trunk [m^2].
    """
    trunks = draw_trunks(seed, number, area)
    # Half edges: a slab whose upper face is the ground.
    ground = (0.5 * FOREST_LENGTH + AROUND, 0.5 * FOREST_WIDTH, 0.5)
    middle = 0.5 * FOREST_LENGTH
    shapes: dict[str, Shape] = {"ground": Box(ground)}
    instances = [Instance("ground", (middle, 0.0, -0.5), semantic="ground")]
    for k, (x, y, r) in enumerate(trunks.tolist()):
        shapes[f"trunk_{k}"] = Cylinder(r, 0.5 * TRUNK_HEIGHT)
        instances.append(Instance(f"trunk_{k}", (x, y, 0.5 * TRUNK_HEIGHT), semantic="tree"))
    half = 0.5 * FOREST_WIDTH
    return Scene(
        name=f"avoid_forest:{number}@{seed}",
        shapes=shapes,
        materials={},
        textures={},
        instances=tuple(instances),
        # Its sides are open beyond half the width: a policy that flies round the forest has left it.
        bounds=Region((-AROUND, -half, 0.0), (FOREST_LENGTH + AROUND, half, CEILING)),
    )
