"""The place of a condition: darker, without some of its things, with others covered, with people in it.

People who walk about beside a path: random walks on a grid of free places, each flight's its own.

Where somebody is at a time is a function of (seed, flight, person, time) alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, uniforms
from airworthy.geometry.distance import clearance
from airworthy.geometry.placement import Box, bounds
from airworthy.rendering.light_baking import relit
from airworthy.scenes import Scene, SceneBatch
from airworthy.scenes.actors import add_actor
from airworthy.scenes.carved import UNKNOWN_CLASS
from airworthy.scenes.people import person
from airworthy.scenes.record import Color, Instance, Material, SplatPlacement
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.editing import EditBox, selected
from airworthy.scenes.splats.placing import SURFACE, placed

__all__ = [
    "PERSON_HEIGHT",
    "PERSON_SPEED",
    "ROOM",
    "WalkableGround",
    "Walkers",
    "cleared",
    "covered",
    "extent",
    "free_ground",
    "person_names",
    "place_of",
    "populated",
    "without",
    "without_nearest",
]


REACH = 2.5
"""Things this near the path may be removed or covered [m]; a monitor on a desk by the wall stays."""
FLOOR = 0.015
"""Gaussians below this height are the floor's and stay [m]."""
FOOT, FOOTPRINT = 0.12, 0.05
"""Where a thing stood this near the floor [m] on this much of it [m^2], a patch closes the hole that it left."""
MARGIN = 0.05
"""Gaussians this far outside a thing still belong to it [m]."""
COVER_GAP = 0.03
"""Between a pillar and what covers it [m]."""
GREY, DARK = Material((0.22, 0.22, 0.22, 1.0), roughness=0.9), Material((0.035, 0.04, 0.05, 1.0), roughness=0.95)
PERSON_HEIGHT, PERSON_SPEED = 1.8, 1.5
"""[m], [m/s]; spec: 0.6 x 1.8 m, 1.5 m/s."""
SHIRTS: tuple[Color, ...] = ((0.75, 0.12, 0.08), (0.1, 0.25, 0.6), (0.85, 0.65, 0.1), (0.12, 0.4, 0.18))
ROOM = (
    "ground", "wall", "back_wall", "front_wall", "left_wall", "right_wall", "top_wall", "bottom_wall", "building",
    UNKNOWN_CLASS,
)  # fmt: skip
"""Classes that are the room itself, not things in it."""


def place_of(scene: Scene, condition: Condition, path: Array) -> Scene:
    """Return a scene as a condition wants it.

    Args:
        scene: As it is.
        condition: What differs.
        path: Points of the course (n, 3), world [m], at most some decimetres apart.
    """
    if condition.clear > 0.0:
        scene = cleared(scene, path, condition.clear)
    if condition.covered:
        scene = covered(scene, path)
    if condition.removed:
        scene = without(scene, path, condition.removed)
    if condition.nearest:
        scene = without_nearest(scene, path, condition.nearest)
    if condition.light != 1.0:
        scene = relit(scene, condition.light)
    return populated(scene, condition.people) if condition.people else scene


def without(scene: Scene, path: Array, classes: Iterable[str], reach: float = REACH) -> Scene:
    """Return a scene without the things of some classes near a path: neither their surfaces nor their gaussians.

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        classes: Semantic classes of what goes.
        reach: Only things whose boxes are so near to the path [m].
    """
    wanted = set(classes)
    gone = [item for item in scene.instances if item.semantic in wanted and distance(scene, item, path) <= reach]
    return _removed(scene, gone)


def cleared(scene: Scene, path: Array, radius: float) -> Scene:
    """Return a scene without all things that are no part of the room and nearer to a path than a radius [m].

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        radius: Things whose boxes are so near to the path go [m].
    """
    gone = [item for item in scene.instances if item.semantic not in ROOM and distance(scene, item, path) <= radius]
    return _removed(scene, gone)


def without_nearest(scene: Scene, path: Array, count: int) -> Scene:
    """Return a scene without those things, no part of the room, whose boxes are nearest to a path.

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        count: How many; fewer where there are fewer.
    """
    things = [item for item in scene.instances if item.semantic not in ROOM and item.shape != SURFACE]
    nearest = sorted(things, key=lambda item: distance(scene, item, path))
    return _removed(scene, nearest[:count])


def _removed(scene: Scene, gone: list[Instance]) -> Scene:
    if not gone:
        return scene
    number = {id(item) for item in gone}
    kept = tuple(item for item in scene.instances if id(item) not in number)
    boxes = [item_box(scene, item, MARGIN) for item in gone]
    clouds, splats = dict(scene.clouds), []
    for item in scene.splats:
        if item.attached:
            splats.append(item)
            continue
        # In the world, where the boxes are: a cloud may be placed twice, so each placement gets one of its own.
        name = f"{item.name or item.cloud}/edited"
        clouds[name] = _outside(placed(scene.clouds[item.cloud], item), boxes)
        splats.append(SplatPlacement(name, name=item.name))
    used = {item.cloud for item in splats}
    clouds = {key: value for key, value in clouds.items() if key in used}
    return _patched(replace(scene, instances=kept, clouds=clouds, splats=tuple(splats)), scene, gone)


def _patched(scene: Scene, before: Scene, gone: list[Instance]) -> Scene:
    """With a dark patch where things stood: where splats give the colours there are none below them."""
    if not scene.splats:
        return scene
    shapes, added = dict(scene.shapes), list[Instance]()
    for lower, upper in (extent(before, item) for item in gone):
        if lower[2] > FOOT or (upper - lower)[:2].prod() < FOOTPRINT:
            continue
        name = f"patch_{len(added)}"
        half = 0.5 * (upper - lower)[:2] + MARGIN
        shapes[name] = Box((float(half[0]), float(half[1]), 0.002))
        x, y = (float(value) for value in 0.5 * (lower + upper)[:2])
        added.append(Instance(name, (x, y, 0.008), materials=("patch",), semantic="ground", name=name, collide=False))
    if not added:
        return scene
    materials = {**scene.materials, "patch": DARK}
    return replace(scene, shapes=shapes, materials=materials, instances=(*scene.instances, *added))


def _outside(splats: Splats, boxes: list[EditBox]) -> Splats:
    inside = np.zeros(len(splats), bool)
    for box in boxes:
        inside |= box.holds(splats.position)
    return selected(splats, ~inside | (splats.position[:, 2] < FLOOR))


def covered(scene: Scene, path: Array, reach: float = REACH) -> Scene:
    """Return a scene whose pillars near a path stand behind four grey planes each, as high as they are.

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        reach: Only pillars whose boxes are so near to the path [m].
    """
    pillars = [item for item in scene.instances if item.semantic == "pillar" and distance(scene, item, path) <= reach]
    shapes, added = dict(scene.shapes), list[Instance]()
    for lower, upper in _merged([extent(scene, item) for item in pillars]):
        half = 0.5 * (upper - lower) + np.array([COVER_GAP, COVER_GAP, 0.0])
        x, y, z = (float(value) for value in 0.5 * (lower + upper))
        name = f"cover_{len(added)}"
        shapes[name] = Box((float(half[0]), float(half[1]), float(half[2])))
        added.append(Instance(name, (x, y, z), materials=("cover",), semantic="panel", name=name))
    if not added:
        return scene
    materials = {**scene.materials, "cover": GREY}
    return replace(scene, shapes=shapes, materials=materials, instances=(*scene.instances, *added))


def _merged(extents: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Boxes that overlap, as one."""
    found: list[tuple[Array, Array]] = []
    for low, high in extents:
        lower, upper = low, high
        rest = []
        for other in found:
            if (other[0] <= upper).all() and (lower <= other[1]).all():
                lower, upper = np.minimum(lower, other[0]), np.maximum(upper, other[1])
            else:
                rest.append(other)
        found = [*rest, (lower, upper)]
    return found


def populated(scene: Scene, count: int) -> Scene:
    """Return a scene with people that something else moves; see `people`."""
    for index, name in enumerate(person_names(count)):
        shirt = SHIRTS[index % len(SHIRTS)]
        kit = person(name, PERSON_HEIGHT, animation="walking", speed=PERSON_SPEED, motion="external", shirt=shirt)
        scene = add_actor(scene, kit)
    return scene


def person_names(count: int) -> tuple[str, ...]:
    """Return names of the actors."""
    return tuple(f"walker_{index}" for index in range(count))


@dataclass(frozen=True)
class _Turned:
    """A box turned in the world."""

    center: Array
    half: Array
    attitude: Array


def _turned(scene: Scene, item: Instance) -> _Turned:
    low, high = bounds(scene.shapes[item.shape])
    attitude = frames.normalize(np.array(item.attitude, float))
    middle = np.asarray(item.position) + frames.rotate(attitude, item.scale * 0.5 * (low + high))
    return _Turned(middle, item.scale * 0.5 * (high - low), attitude)


def distance(scene: Scene, item: Instance, path: Array) -> float:
    """Return the least distance of a thing's box to points (n, 3) [m]; 0 inside.

    Args:
        scene: Has the item's shape.
        item: The thing.
        path: Points [m], world frame, (n, 3).
    """
    box = _turned(scene, item)
    local = frames.rotate_inverse(box.attitude, path - box.center)
    return float(np.linalg.norm(np.maximum(np.abs(local) - box.half, 0.0), axis=1).min())


def item_box(scene: Scene, item: Instance, margin: float) -> EditBox:
    """Return a thing's box, wider by a margin [m] on all sides.

    Args:
        scene: Has the item's shape.
        item: The thing.
        margin: On every side [m].
    """
    box = _turned(scene, item)
    size = 2.0 * (box.half + margin)
    return EditBox(*(tuple(float(v) for v in part) for part in (box.center, size, box.attitude)))  # type: ignore[arg-type]


def extent(scene: Scene, item: Instance) -> tuple[Array, Array]:
    """Lower and upper corner in the world."""
    box = _turned(scene, item)
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    corners = box.center + frames.rotate(box.attitude, signs * box.half)
    return corners.min(0), corners.max(0)


STEP = 0.6
"""Between neighbouring places [m]."""
NEAR, FAR = 1.0, 2.6
"""How near the path, seen from above, and how far from it they walk [m]; nearer they would stand in the way."""
VISIBLE_SHARE, SIGHT, VIEW = 0.1, 7.0, np.radians(28.0)
"""They stay where a camera looks for this share of the course, not farther than this [m], this far off its axis [rad]."""
FREE = 0.35
"""Free space round a place [m]."""
HEIGHTS = (0.5, 1.0, 1.6)
"""At which space must be free [m]."""


@dataclass(frozen=True, eq=False)
class WalkableGround:
    """Places where a person may be, and which of them are one step apart."""

    position: Array
    """(n, 2) world x, y [m]."""
    neighbours: tuple[tuple[int, ...], ...]
    """Of each place; none is empty."""
    along: Array
    """(n,) share of the course at which each place is looked at: the middle of the times at which it is."""


def free_ground(scene: Scene, path: Array, yaw: Array) -> WalkableGround:
    """Return where one can walk in view beside a path: at least `NEAR` from it, with free space round oneself.

    Args:
        scene: Without the people.
        path: (n, 3) points of the course, evenly in time [m].
        yaw: (n,) heading there [rad].

    Raises:
        AirworthyError: There is no room for anybody.
    """
    low = np.maximum(path[:, :2].min(0) - FAR, np.array(scene.bounds.lower[:2]) + FREE)
    high = np.minimum(path[:, :2].max(0) + FAR, np.array(scene.bounds.upper[:2]) - FREE)
    axes = [np.arange(a, b + 1e-9, STEP) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    away = np.linalg.norm(grid[:, None] - path[None, :, :2], axis=-1)
    in_view = _in_view(grid, path, yaw)
    batch = SceneBatch(scene, 1)
    room = (away.min(1) >= NEAR) & (away.min(1) <= FAR) & (in_view.mean(1) >= VISIBLE_SHARE) & _free(batch, grid)
    position, in_view = grid[room], in_view[room]
    along = (in_view * np.arange(len(path))).sum(1) / np.maximum(in_view.sum(1), 1) / len(path)
    linked = _linked(batch, position, path)
    kept = np.flatnonzero([bool(item) for item in linked])
    if not len(kept):
        raise AirworthyError(f"There is no room for people beside the path in scene {scene.name!r}; leave 'dynamic' out.")
    number = {int(old): new for new, old in enumerate(kept)}
    return WalkableGround(position[kept], tuple(tuple(number[k] for k in linked[old]) for old in kept), along[kept])


def _in_view(position: Array, path: Array, yaw: Array) -> ArrayBool:
    """(places, points) whether a camera that faces the heading has a place in view, what stands between aside."""
    offset = position[:, None] - path[None, :, :2]
    ahead = offset[..., 0] * np.cos(yaw) + offset[..., 1] * np.sin(yaw)
    return (ahead > 0.3) & (ahead >= np.cos(VIEW) * np.linalg.norm(offset, axis=-1)) & (ahead <= SIGHT)


def _free(batch: SceneBatch, points: Array) -> ArrayBool:
    """Tell whether there is space round points (n, 2) at all heights."""
    free = np.ones(len(points), bool)
    for height in HEIGHTS:
        at = np.concatenate([points, np.full((len(points), 1), height)], axis=1)
        free &= clearance(batch.geometry, at, max_distance=1.0).distance > FREE
    return free


def _linked(batch: SceneBatch, position: Array, path: Array) -> list[list[int]]:
    """Numbers of the places one step from each, with free ground half way."""
    if not len(position):
        return []
    step = np.linalg.norm(position[:, None] - position[None], axis=-1)
    one, other = np.nonzero((step > 0.1) & (step < 1.1 * STEP))
    middle = 0.5 * (position[one] + position[other])
    clear = np.linalg.norm(middle[:, None] - path[None, :, :2], axis=-1).min(1) >= NEAR if len(one) else np.zeros(0, bool)
    good = clear & _free(batch, middle) if len(one) else clear
    found: list[list[int]] = [[] for _ in position]
    for a, b, useful in zip(one.tolist(), other.tolist(), good, strict=True):
        if useful:
            found[a].append(b)
    return found


class Walkers:
    """The people of n flights.

    Args:
        ground: Where they may be.
        keys: (n, 4) of the flights.
        count: People in each.
        duration: How long they walk [s]; they stand where they are then.
    """

    def __init__(self, ground: WalkableGround, keys: ArrayU32, count: int, duration: float):
        self._ground, self._keys, self._count = ground, keys, count
        self._steps = int(np.ceil(duration * PERSON_SPEED / STEP)) + 2

    @cached_property
    def corners(self) -> Array:
        """(n, people, steps, 2) places one after the other."""
        return np.stack([self._walks(person) for person in range(self._count)], axis=1)

    def _walks(self, person: int) -> Array:
        drawn = uniforms(self._keys, person, Stream.COURSE, self._steps)
        # Spread along the path: each begins in a part of it of its own.
        part = np.flatnonzero(np.floor(self._ground.along * self._count).astype(int) == person)
        part = part if len(part) else np.arange(len(self._ground.position))
        walks = []
        for row in drawn:
            here, before = int(part[int(row[0] * len(part))]), -1
            numbers = [here]
            for share in row[1:]:
                exits = [k for k in self._ground.neighbours[here] if k != before] or list(self._ground.neighbours[here])
                before, here = here, exits[int(share * len(exits))]
                numbers.append(here)
            walks.append(self._ground.position[numbers])
        return np.stack(walks)

    def at(self, time: Array) -> tuple[Array, Array]:
        """Return positions (n, people, 3) on the floor and attitudes (n, people, 4), heading forward, at times (n,) [s]."""
        share = np.clip(np.asarray(time, float) * PERSON_SPEED / STEP, 0.0, self._steps - 1.001)
        first = share.astype(np.int64)
        row = np.arange(len(first))
        a, b = self.corners[row, :, first], self.corners[row, :, first + 1]
        position = a + (share - first)[:, None, None] * (b - a)
        half = 0.5 * np.arctan2(b[..., 1] - a[..., 1], b[..., 0] - a[..., 0])
        zero = np.zeros_like(half)
        return np.concatenate([position, zero[..., None]], axis=-1), np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)

    def pose(self, batch: SceneBatch, time: Array, env_ids: ArrayInt | None = None) -> None:
        """Put the actors of a batch where they are at times (n,), and move their limbs.

        Args:
            batch: Of the scenes.
            time: Since each flight's start [s], (n,).
            env_ids: Environments that are posed; None: all.
        """
        position, attitude = self.at(time)
        batch.time = np.array(time, float)  # by which their limbs move; `advance` would pose everybody once more
        for index, name in enumerate(person_names(self._count)):
            batch.pose_actor(name, position[:, index], attitude[:, index], env_ids)
