"""Thousands of different rooms at once: every number of every environment in a few array operations.

A room is a pure function of (name, seed, environment id, episode): it depends neither on how many others are made with it
nor on the order. Random numbers are the counter-based ones of `core.random`, under a key of the room's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, SupportsIndex

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import from_euler, from_matrix, multiply, rotate
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.geometry import Box, Cylinder, Placement, Shape
from airworthy.scenes.generators.rooms.parameters import (
    ALIASES,
    HALF_COUNT_PROBABILITY,
    OBJECTS,
    PANEL,
    ROOMS,
    SPAWN,
    THIN_KINDS,
    TREE_KINDS,
    TREE_LINKS,
    TWIST_LIMIT,
    WALL_X,
    WALL_Y,
    WALL_Z,
    Assets,
    Room,
)
from airworthy.scenes.generators.seeding import checked, digest, generator
from airworthy.scenes.record import DEFAULT_SEMANTICS

# ---- Shapes that rooms share: boxes, 1,000 thin rods, and 100 trees as branches of cylinders --------------------------------


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree: its cylinders, trunk first, in the frame of its root."""

    links: tuple[Cylinder, ...]
    position: Array
    """(21, 3) [m]"""
    attitude: Array
    """(21, 4)"""


@cache
def trees() -> tuple[Tree, ...]:
    """Return the 100 trees: a trunk, five branches, fifteen twigs; every link starts inside of the one that bears it."""
    # A generator for each, so that a tree does not depend on those before it.
    return tuple(_tree(generator("gym tree", kind)) for kind in range(TREE_KINDS))


def _tree(rng: np.random.Generator) -> Tree:
    """Trunk 4 to 8 m high and 0.10 to 0.20 m thick (radius), each generation about half as long and thick as the one before."""
    height, radius = 4.0 + 4.0 * float(rng.random()), 0.10 + 0.10 * float(rng.random())
    trunk = (np.zeros(3), np.array([0.0, 0.0, 1.0]), height, radius)
    links = [trunk]
    branches = [_offshoot(trunk, 0.30 + 0.13 * k, 2.4 * k, rng) for k in range(5)]
    for number, branch in enumerate(branches):
        links.append(branch)
        links += [_offshoot(branch, 0.40 + 0.22 * k, 2.1 * k + number, rng) for k in range(3)]
    # Arrays count on it: every tree has as many rows.
    assert len(links) == TREE_LINKS
    shapes = tuple(Cylinder(round(r, 4), round(0.5 * length, 4)) for _, _, length, r in links)
    position = np.stack([root + 0.5 * length * axis for root, axis, length, _ in links])
    return Tree(shapes, position, np.stack([_along(axis) for _, axis, _, _ in links]))


Link = tuple[Array, Array, float, float]
"""Root, unit axis, length, radius."""


def _offshoot(parent: Link, at: float, azimuth: float, rng: np.random.Generator) -> Link:
    """Return a link that leaves its parent at a fraction of its length, at 35 to 70 degrees."""
    root, axis, length, radius = parent
    u = rng.random(4).tolist()
    side = np.cross(axis, [0.0, 0.0, 1.0] if abs(axis[2]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    other = np.cross(axis, side)
    turn, tilt = azimuth + 1.2 * u[0], math.radians(35.0 + 35.0 * u[1])
    out = math.cos(turn) * side + math.sin(turn) * other
    direction = math.cos(tilt) * axis + math.sin(tilt) * out
    fraction = min(at + 0.08 * u[2], 0.97)
    return (root + fraction * length * axis, direction, length * (0.35 + 0.2 * u[3]) * (1.2 - 0.6 * fraction), 0.5 * radius)


def _along(axis: Array) -> Array:
    """Attitude that lays z along a direction."""
    side = np.cross([1.0, 0.0, 0.0] if abs(axis[0]) < 0.9 else [0.0, 1.0, 0.0], axis)
    side /= np.linalg.norm(side)
    return np.asarray(from_matrix(np.stack([side, np.cross(axis, side), axis], axis=1)))


@cache
def thin_rods() -> tuple[Shape, ...]:
    """Return the 1,000 rods: square bars and round sticks, 1 to 5 m long, 10 to 40 mm thick."""
    u = generator("gym thin").random((THIN_KINDS, 3))
    half, thick = np.round(0.5 + 2.0 * u[:, 0], 4).tolist(), np.round(0.005 + 0.015 * u[:, 1], 5).tolist()
    bars = [Box((t, t, h)) if k % 2 else Cylinder(t, h) for k, (h, t) in enumerate(zip(half, thick, strict=True))]
    return tuple(bars)


@dataclass(frozen=True, eq=False)
class Stock:
    """All shapes that a room may hold, and where those of each kind begin."""

    shapes: tuple[Shape, ...]
    first: dict[str, int]
    """First index of a kind ("panel", "object", "thin", "tree") or of a wall by its box's normal ("wall_0", ...)."""


@cache
def stock(room: Room) -> Stock:
    """Return the shapes of one room, the same for every environment."""
    kinds: set[str] = {a.kind for a in room.assets}
    shapes: list[Shape] = []
    first: dict[str, int] = {}
    for kind, members in _members(kinds):
        first[kind] = len(shapes)
        shapes += members
    return Stock(tuple(shapes), first)


def _members(kinds: set[str]) -> list[tuple[str, list[Shape]]]:
    found: list[tuple[str, list[Shape]]] = []
    if "panel" in kinds:
        found.append(("panel", [PANEL]))
    if "object" in kinds:
        found.append(("object", list(OBJECTS)))
    if "wall" in kinds:
        found += [(f"wall_{k}", [box]) for k, box in enumerate((WALL_X, WALL_Y, WALL_Z))]
    if "thin" in kinds:
        found.append(("thin", list(thin_rods())))
    if "tree" in kinds:
        found.append(("tree", [link for tree in trees() for link in tree.links]))
    return found


# -----------------------------------------------------------------------------------------------------------------------------

FIRST_ID = 100
"""Instance numbers rise from here (spec/aerial_gym 7.1)."""
GROUND = Box((20.0, 20.0, 0.5))
_PER_ASSET = 13
"""Uniform numbers of an asset: which shape, three ratios, three angles, six of a twist."""


@dataclass(frozen=True, eq=False)
class RoomArrays:
    """c environments of n instances each (a tree counts 21: its links)."""

    name: str
    shapes: tuple[Shape, ...]
    """What `shape` counts; the same for all environments and seeds of this room."""
    lower: Array
    """(c, 3) lower corner of the bounds [m]."""
    upper: Array
    """(c, 3)"""
    shape: NDArray[np.int32]
    """(c, n)"""
    position: Array
    """(c, n, 3) world [m]."""
    attitude: Array
    """(c, n, 4)"""
    active: ArrayBool
    """(c, n) present at the level asked for; the others are to be neither seen nor hit."""
    velocity: Array
    """(c, n, 3) with which dynamic instances begin [m/s], world; zero for what stands still."""
    rate: Array
    """(c, n, 3) [rad/s], world."""
    asset: NDArray[np.int32]
    """(n,) which asset an instance belongs to, in the order of the curriculum; the ground is -1."""
    semantic_id: NDArray[np.int32]
    """(n,)"""
    instance_id: NDArray[np.int32]
    """(n,)"""
    moves: ArrayBool
    """(n,)"""

    @property
    def spawn(self) -> tuple[Array, Array]:
        """Lower and upper corners of the boxes in which robots begin, each (c, 3) [m]."""
        size = self.upper - self.lower
        return self.lower + size * np.array(SPAWN[0]), self.lower + size * np.array(SPAWN[1])

    def placements(self, moving: bool = False) -> list[Placement]:
        """Return one per environment: of what stands still, or of the dynamic instances; inactive instances neither visible nor
        colliding.
        """
        chosen = np.flatnonzero(self.moves == moving)
        shape, position, attitude, active = (a[:, chosen] for a in (self.shape, self.position, self.attitude, self.active))
        ids, semantic = self.instance_id[chosen], self.semantic_id[chosen]
        scale, material = np.ones(len(chosen)), np.zeros(len(chosen), np.int32)
        group = np.zeros(len(chosen), np.int32)
        return [
            Placement(shape[k], position[k], attitude[k], scale, ids, semantic, material, active[k], active[k], group)
            for k in range(len(shape))
        ]


def room_of(name: str) -> tuple[str, Room]:
    """Return the own name and description of a room, also by its name in the source.

    Raises:
        UnknownNameError: If there is no such room.
    """
    own = ALIASES.get(name, name)
    if own not in ROOMS:
        raise unknown_name("room", name, [*ROOMS, *ALIASES])
    return own, ROOMS[own]


def room_arrays(
    name: str,
    env_ids: ArrayLike,
    seed: SupportsIndex = 0,
    *,
    episodes: ArrayLike = 0,
    level: SupportsIndex | None = None,
    half_probability: float = 0.0,
    per_link: bool = True,
) -> RoomArrays:
    """Return the rooms of some environments.

    Args:
        name: One of `ROOMS`, or its name in the source.
        env_ids: (c,) whole numbers from 0 on.
        seed: Any integer.
        episodes: (c,) or one number: how often the environment has been reset; every episode has a room of its own.
        level: Number of assets placed, counted in order, kept ones first and never removed; None: all.
        half_probability: With which an environment gets half of its level.
        per_link: Every link of a tree has its own instance number; else a tree has one.

    Raises:
        UnknownNameError: If there is no such room.
        AirworthyError: If a number is not whole or out of range.
    """
    own, room = room_of(name)
    ids, episode = _whole("env_ids", np.atleast_1d(env_ids)), _whole("episodes", episodes)
    # The name is part of the seed: two rooms with one seed must not be alike.
    key = flight_key(digest("room", own, checked("seed", seed)) & 0xFFFFFFFFFFFFFFFF, ids, episode)
    # Thirteen numbers for each asset, whether it needs them or not: a new kind shifts no other's draws.
    u = uniforms(key, 0, Stream.RESET, 7 + _PER_ASSET * room.count)
    low, high = np.array(room.lower), np.array(room.upper)
    lower = low[0] + (low[1] - low[0]) * u[:, 0:3]
    upper = high[0] + (high[1] - high[0]) * u[:, 3:6]
    count = room.count if level is None else checked("level", level, 0)
    wanted = np.where(u[:, 6] < half_probability, count // 2, count)
    parts, at, asset = [], 7, 0
    for assets in room.ordered():
        for _ in range(assets.count):
            parts.append(_asset(room, assets, asset, u[:, at : at + _PER_ASSET], lower, upper))
            at, asset = at + _PER_ASSET, asset + 1
    if room.ground:
        parts.append(_ground(room, len(ids)))
    return _stacked(own, room, lower, upper, parts, np.maximum(wanted, room.kept), per_link)


def _whole(what: str, values: ArrayLike) -> ArrayInt:
    array = np.asarray(values)
    if array.size and (not np.issubdtype(array.dtype, np.integer) or array.min() < 0 or array.max() >= 1 << 32):
        raise AirworthyError(f"`{what}` holds {array.dtype} numbers; expected integers from 0 to 2^32 - 1.")
    return array.astype(np.int64)


Part = dict[str, Any]


def _asset(room: Room, assets: Assets, number: int, u: Array, lower: Array, upper: Array) -> Part:
    """Return all environments' instance of one asset, (c, k, ...) with k = 21 for a tree, else 1."""
    low, high = np.array(assets.lower), np.array(assets.upper)
    # Ratios of the environment's own bounds, which are drawn as well.
    root = lower + (upper - lower) * (low + (high - low) * u[:, 1:4])
    angle = np.array(assets.angle) * (2.0 * u[:, 4:7] - 1.0)
    turn = from_euler(angle[:, 0], angle[:, 1], angle[:, 2])
    first = stock(room).first
    if assets.kind == "tree":
        return _batch_tree(number, (u[:, 0] * TREE_KINDS).astype(int), root, turn, first["tree"])
    pick: ArrayAny = np.zeros(len(u), int)
    if assets.kind == "wall":
        assert assets.box is not None
        pick = pick + first[f"wall_{int(np.argmin(assets.box.half_size))}"]
    else:
        kinds = {"panel": 1, "object": len(OBJECTS), "thin": THIN_KINDS}[assets.kind]
        pick = first[assets.kind] + (u[:, 0] * kinds).astype(int)
    part = _still(number, pick[:, None], root[:, None], turn[:, None], assets.semantic)
    if assets.moves:
        part["velocity"] = TWIST_LIMIT[0] * (2.0 * u[:, None, 7:10] - 1.0)
        part["rate"] = TWIST_LIMIT[1] * (2.0 * u[:, None, 10:13] - 1.0)
        part["moves"] = True
    return part


def _still(number: int, shape: ArrayAny, position: Array, attitude: Array, semantic: str) -> Part:
    zero = np.zeros(position.shape)
    return {
        "shape": shape, "position": position, "attitude": attitude, "velocity": zero, "rate": zero,
        "asset": number, "semantic": DEFAULT_SEMANTICS[semantic], "moves": False,
    }  # fmt: skip


def _batch_tree(number: int, kind: ArrayInt, root: Array, turn: Array, first: int) -> Part:
    """Return the links of every environment's tree, carried by the pose of its root."""
    offset = np.stack([tree.position for tree in trees()])[kind]
    attitude = np.stack([tree.attitude for tree in trees()])[kind]
    turned = np.broadcast_to(turn[:, None], attitude.shape)
    shape = first + kind[:, None] * TREE_LINKS + np.arange(TREE_LINKS)
    return _still(number, shape, root[:, None] + rotate(turned, offset), multiply(turned, attitude), "tree")


def _ground(room: Room, count: int) -> Part:
    position = np.tile([4.0, 0.0, -GROUND.half_size[2]], (count, 1, 1))
    attitude = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1, 1))
    return _still(-1, np.full((count, 1), len(stock(room).shapes)), position, attitude, "ground")


def _stacked(
    name: str, room: Room, lower: Array, upper: Array, parts: list[Part], wanted: ArrayInt, per_link: bool
) -> RoomArrays:
    """Parts side by side along the axis of instances."""
    count = len(lower)
    widths = [part["shape"].shape[1] for part in parts]
    asset = np.repeat([part["asset"] for part in parts], widths).astype(np.int32)

    def joined(field: str, kind: Any, *shape: int) -> ArrayAny:
        return np.concatenate([part[field] for part in parts] or [np.zeros((count, 0, *shape))], axis=1).astype(kind)

    def repeated(field: str, kind: Any) -> ArrayAny:
        return np.repeat([part[field] for part in parts], widths).astype(kind)

    ids = FIRST_ID + (np.arange(len(asset)) if per_link else np.unique(asset, return_inverse=True)[1])
    shapes = (*stock(room).shapes, GROUND) if room.ground else stock(room).shapes
    return RoomArrays(
        name, shapes, lower, upper,
        joined("shape", np.int32), joined("position", float, 3), joined("attitude", float, 4),
        asset[None] < wanted[:, None],
        joined("velocity", float, 3), joined("rate", float, 3),
        asset, repeated("semantic", np.int32), ids.astype(np.int32), repeated("moves", bool),
    )  # fmt: skip


def room_batch(
    name: str, count: SupportsIndex, seed: SupportsIndex = 0, **options: Any
) -> tuple[tuple[Shape, ...], list[Placement]]:
    """Return `count` different rooms as the ray engine takes them: shapes that all share, and one static layout each.

    Dynamic instances of a room are part of the layouts here, at the poses with which they begin. Options as `room_arrays`.

    Args:
        name: One of `ROOMS`, or its name in the source.
        count: Rooms.
        seed: Any integer.
        **options: Others of `room_arrays`.
    """
    rooms = room_arrays(name, np.arange(checked("count", count, 0)), seed, **options)
    still = RoomArrays(**{**vars(rooms), "moves": np.zeros_like(rooms.moves)})
    return rooms.shapes, still.placements()


def resample(
    name: str, env_ids: ArrayLike, episodes: ArrayLike, seed: SupportsIndex = 0, level: SupportsIndex | None = None
) -> RoomArrays:
    """Return new rooms for environments that are reset: with probability 0.15 one gets half of the level's obstacles.

    Args:
        name: As `room_arrays`.
        env_ids: (c,) environments.
        episodes: (c,) how often each has been reset.
        seed: Any integer.
        level: Of the curriculum; None: all assets.
    """
    return room_arrays(name, env_ids, seed, episodes=episodes, level=level, half_probability=HALF_COUNT_PROBABILITY)
