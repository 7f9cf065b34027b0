"""Places of one's own in the benchmark: any scene, with pairs of start and goal between which a way is proven.

A pair is two places drawn at random in the free space of a scene, and a path of grid cells between them (A*, 26-connected).
Cells count as free only where a ball as large as the largest vehicle flown, with room to spare, fits wherever in the cell its
centre is, so along the whole path, its straight segments included, that vehicle touches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry.grid_path import GridPath, shortest_path
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import Scene, SceneBatch, scene, scene_digest
from airworthy.scenes.catalogue import is_path
from airworthy.scenes.generators.seeding import generator

__all__ = [
    "OWN",
    "OwnScene",
    "OwnSceneConfig",
    "Pair",
    "feasible_pairs",
    "is_own",
    "load_own_scene",
    "make_own_scene",
    "own_scenes_from",
    "placed",
]

Point = tuple[float, float, float]
OWN = "own_"
"""Before the names of places of one's own, where scenarios are named."""
SPARE = 0.25
"""Beyond the largest body a free cell has so much room [m]: starts are spread by 0.14 m, and nobody is tracked exactly."""
RESOLUTION, MOST_CELLS = 0.1, 2e7
"""Edge of a cell [m], larger where there would be more cells than these."""
HEIGHTS = (0.8, 2.5)
"""Starts and goals lie so high above the lower end of the place [m], where anything there is free."""
_TRIES = 60
"""Draws per pair that is wanted."""


@dataclass(frozen=True)
class Pair:
    """Where a flight goes from and to."""

    start: Point
    """World [m]."""
    goal: Point
    """World [m]."""
    path_m: float
    """Length of the shortest way through free cells that is known [m]."""


@dataclass(frozen=True)
class OwnScene:
    """A scene of the user's own and the pairs that are flown in it."""

    name: str
    """As scenario in results."""
    word: str
    """Scene: a name or a file."""
    sha256: str
    """Digest of the scene."""
    lower: Point
    """Corner of the area [m]."""
    upper: Point
    """Opposite corner [m]."""
    radius: float
    """Of the largest body for which ways are proven [m]."""
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class OwnSceneConfig(NavigationConfig):
    """A run's choices with its scenes looked up: everything that its flights depend on."""

    places: tuple[OwnScene, ...] = ()

    def own_scene(self, name: str) -> OwnScene:
        """Return a scene by the name of its scenario."""
        return next(item for item in self.places if item.name == name)


def is_own(scenario: str) -> bool:
    """Tell whether a scenario is a scene of the user's own."""
    return scenario.startswith(OWN)


def load_own_scene(item: OwnScene, unknown: str | None = None) -> Scene:
    """Return the scene of one of the user's own.

    Args:
        item: As its pairs were drawn.
        unknown: Of a captured place: whether unknown space is "solid" or "free"; None: as its folder says.

    Raises:
        AssetError: It is another one than that for which the ways are proven.
    """
    found, digest = _scene(item.word, unknown)
    if digest != item.sha256:
        raise AssetError(
            f"The scene {item.word!r} was changed since the pairs of {item.name!r} were drawn: choose another --out."
        )
    return found


@lru_cache(maxsize=8)
def _scene(specifier: str, unknown: str | None) -> tuple[Scene, str]:
    found = scene(specifier, unknown=unknown)
    return found, scene_digest(found)


def make_own_scene(
    specifier: str, count: int, radius: float, seed: int = 0, least: float = 0.0, unknown: str | None = None
) -> OwnScene:
    """Return a scene with its pairs; the same arguments and scene give the same pairs.

    Args:
        specifier: A scene's name or file.
        count: Pairs.
        radius: Of the largest body that is to fly there [m].
        seed: Of the drawing.
        least: Distance between start and goal [m]; 0: a third of the scene's longest edge.
        unknown: Of a captured place: whether unknown space is "solid" or "free"; None: as its folder says.

    Raises:
        AirworthyError: There is no such scene, nothing solid in it, or too little room.
    """
    found, digest = _scene(specifier, unknown)
    plain = Path(specifier).stem if is_path(specifier) or "." in specifier else specifier
    name = OWN + (re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-.") or "place")[:40]
    pairs = feasible_pairs(found, specifier, count, radius, generator("own places", digest, count, seed), least)
    lower, upper = (tuple(float(v) for v in corner) for corner in (found.bounds.lower, found.bounds.upper))
    return OwnScene(name, specifier, digest, lower, upper, float(radius), tuple(pairs))  # type: ignore[arg-type]


def feasible_pairs(
    scene: Scene, specifier: str, count: int, radius: float, rng: np.random.Generator, least: float = 0.0
) -> list[Pair]:
    """Return pairs of start and goal between which a way is proven; see the module and `make_own_scene`.

    Args:
        scene: The scene; its bounds are the area.
        specifier: What the user calls it, for messages.
        count: How many pairs are wanted.
        radius: Of the body [m].
        rng: Draws starts and goals.
        least: Shortest distance from start to goal [m]; 0: a third of the area's longer side.
    """
    lower, upper = (np.array(corner, np.float64) for corner in (scene.bounds.lower, scene.bounds.upper))
    size = upper - lower
    # Bounds the memory: a large place gets coarser cells, and what is proven then is proven of these.
    edge = max(RESOLUTION, float(np.cbrt(size.prod() / MOST_CELLS)))
    # Wherever in a cell a centre is, the cell's middle is no farther than half its diagonal.
    grown = radius + SPARE + 0.5 * np.sqrt(3.0) * edge
    batch = SceneBatch(scene, 1)
    taken = voxelize(batch.geometry, 0, lower, upper, edge, grown)
    if not taken.any():
        raise AirworthyError(
            f"The scene {specifier!r} holds nothing solid, so there is nothing to fly round: give it surfaces first."
        )
    margin_cells = int(np.ceil(grown / edge))
    for axis in range(3):  # the area's ends are walls, too
        layers = np.moveaxis(taken, axis, 0)
        layers[:margin_cells] = True
        layers[max(0, len(layers) - margin_cells - 1) :] = True
    free = _starts(taken, edge)
    # Ours: nearer ends than a third of the place would make missions that need no planner.
    wanted = least or float(size[:2].max()) / 3.0
    found: list[Pair] = []
    for _ in range(_TRIES * count if len(free) else 0):
        chosen = free[rng.integers(len(free), size=2)]
        # Rounded to a micrometre, so that the same pairs are read back from text.
        ends = np.asarray(np.round(lower + edge * (chosen + 0.5), 6), np.float64)
        if np.linalg.norm(ends[1] - ends[0]) < wanted:
            continue
        path = shortest_path(taken, edge, ends[0], ends[1], lower=lower)
        if path is not None:
            found.append(_pair(path, ends))
        if len(found) == count:
            return found
    raise AirworthyError(
        f"In the scene {specifier!r} only {len(found)} of {count} pairs were found with room for a body of {radius:.2f} m all"
        f" the way, {wanted:.1f} m apart: fewer --pairs, a smaller --least-distance, or smaller vehicles."
    )


def _starts(taken: ArrayBool, edge: float) -> ArrayInt:
    """Free cells (k, 3) at the usual heights; at any height where none is free there."""
    free = np.argwhere(~taken)
    height = edge * (free[:, 2] + 0.5)
    usual = free[(height >= HEIGHTS[0]) & (height <= HEIGHTS[1])]
    return usual if len(usual) else free


def _pair(path: GridPath, ends: Array) -> Pair:
    start, goal = (tuple(float(v) for v in end) for end in ends)
    return Pair(start, goal, round(float(path.length), 6))  # type: ignore[arg-type]


def own_scenes_from(records: Sequence[Mapping[str, Any]]) -> tuple[OwnScene, ...]:
    """Return scenes as a manifest tells them.

    Raises:
        TypeError, KeyError, ValueError: It tells something else.
    """
    found = []
    for item in records:
        pairs = tuple(Pair(_point(p["start"]), _point(p["goal"]), float(p["path_m"])) for p in item["pairs"])
        given = {**{f.name: item[f.name] for f in fields(OwnScene)}, "pairs": pairs}
        made = OwnScene(**{**given, "lower": _point(item["lower"]), "upper": _point(item["upper"])})
        if not is_own(made.name) or not isinstance(made.word, str) or not pairs:
            raise ValueError("a scene")
        found.append(made)
    return tuple(found)


def _point(values: Sequence[float]) -> Point:
    x, y, z = (float(v) for v in values)
    return x, y, z


def placed(config: NavigationConfig, radius: float) -> NavigationConfig:
    """Return the same with its scenes looked up and their pairs drawn; as it is where it names none.

    Raises:
        AirworthyError: A scene is not to be had, or two have one name.
    """
    if not config.scenes or isinstance(config, OwnSceneConfig):
        return config
    drawn = config.pairs, radius, config.layouts, config.least_distance, config.unknown
    found = [make_own_scene(specifier, *drawn) for specifier in config.scenes]
    names = [item.name for item in found]
    for k, name in enumerate(names):
        if names.index(name) < k:
            found[k] = replace(found[k], name=f"{name}-{k + 1}")
    given = {item.name: getattr(config, item.name) for item in fields(NavigationConfig)}
    usual = config.scenarios == NavigationConfig().scenarios
    return OwnSceneConfig(**{**given, "scenarios": () if usual else config.scenarios}, places=tuple(found))
