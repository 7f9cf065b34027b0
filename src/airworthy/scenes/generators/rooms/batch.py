"""Thousands of different rooms at once: every number of every environment in a few array operations.

A room is a pure function of (name, seed, environment id, episode): it depends neither on how many others are made with it
nor on the order. Random numbers are the counter-based ones of `core.random`, under a key of the room's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import from_euler, multiply, rotate
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.geometry import Box, Placement, Shape
from airworthy.scenes.generators.rooms.parameters import (
    ALIASES,
    HALF_COUNT_PROBABILITY,
    OBJECTS,
    ROOMS,
    SPAWN,
    THIN_KINDS,
    TREE_KINDS,
    TREE_LINKS,
    TWIST_LIMIT,
    Assets,
    Room,
)
from airworthy.scenes.generators.rooms.shapes import stock, trees
from airworthy.scenes.generators.seeding import checked, digest
from airworthy.scenes.record import DEFAULT_SEMANTICS

Floats = NDArray[np.float64]

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
    lower: Floats
    """(c, 3) lower corner of the bounds [m]."""
    upper: Floats
    """(c, 3)"""
    shape: NDArray[np.int32]
    """(c, n)"""
    position: Floats
    """(c, n, 3) world [m]."""
    attitude: Floats
    """(c, n, 4)"""
    active: NDArray[np.bool_]
    """(c, n) present at the level asked for; the others are to be neither seen nor hit."""
    velocity: Floats
    """(c, n, 3) with which movers begin [m/s], world; zero for what stands still."""
    rate: Floats
    """(c, n, 3) [rad/s], world."""
    asset: NDArray[np.int32]
    """(n,) which asset an instance belongs to, in the order of the curriculum; the ground is -1."""
    semantic_id: NDArray[np.int32]
    """(n,)"""
    instance_id: NDArray[np.int32]
    """(n,)"""
    moves: NDArray[np.bool_]
    """(n,)"""

    @property
    def spawn(self) -> tuple[Floats, Floats]:
        """Lower and upper corners of the boxes in which robots begin, each (c, 3) [m]."""
        size = self.upper - self.lower
        return self.lower + size * np.array(SPAWN[0]), self.lower + size * np.array(SPAWN[1])

    def placements(self, moving: bool = False) -> list[Placement]:
        """One per environment: of what stands still, or of the movers; inactive instances neither visible nor colliding."""
        rows = np.flatnonzero(self.moves == moving)
        shape, position, attitude, active = (a[:, rows] for a in (self.shape, self.position, self.attitude, self.active))
        ids, semantic = self.instance_id[rows], self.semantic_id[rows]
        scale, material = np.ones(len(rows)), np.zeros(len(rows), np.int32)
        return [
            Placement(shape[k], position[k], attitude[k], scale, ids, semantic, material, active[k], active[k])
            for k in range(len(shape))
        ]


def room_of(name: str) -> tuple[str, Room]:
    """Own name and description of a room, also by its name in the source.

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
    """The rooms of some environments.

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
    key = flight_key(digest("room", own, checked("seed", seed)) & 0xFFFFFFFFFFFFFFFF, ids, episode)
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


def _whole(what: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and (not np.issubdtype(array.dtype, np.integer) or array.min() < 0 or array.max() >= 1 << 32):
        raise AirworthyError(f"`{what}` holds {array.dtype} numbers; expected integers from 0 to 2^32 - 1.")
    return array.astype(np.int64)


Part = dict[str, Any]


def _asset(room: Room, assets: Assets, number: int, u: Floats, lower: Floats, upper: Floats) -> Part:
    """All environments' instance of one asset, (c, k, ...) with k = 21 for a tree, else 1."""
    low, high = np.array(assets.lower), np.array(assets.upper)
    root = lower + (upper - lower) * (low + (high - low) * u[:, 1:4])
    angle = np.array(assets.angle) * (2.0 * u[:, 4:7] - 1.0)
    turn = from_euler(angle[:, 0], angle[:, 1], angle[:, 2])
    first = stock(room).first
    if assets.kind == "tree":
        return _tree(number, (u[:, 0] * TREE_KINDS).astype(int), root, turn, first["tree"])
    pick: NDArray[Any] = np.zeros(len(u), int)
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


def _still(number: int, shape: NDArray[Any], position: Floats, attitude: Floats, semantic: str) -> Part:
    zero = np.zeros(position.shape)
    return {
        "shape": shape, "position": position, "attitude": attitude, "velocity": zero, "rate": zero,
        "asset": number, "semantic": DEFAULT_SEMANTICS[semantic], "moves": False,
    }  # fmt: skip


def _tree(number: int, kind: NDArray[np.int64], root: Floats, turn: Floats, first: int) -> Part:
    """The links of every environment's tree, carried by the pose of its root."""
    place = np.stack([tree.position for tree in trees()])[kind]
    attitude = np.stack([tree.attitude for tree in trees()])[kind]
    turned = np.broadcast_to(turn[:, None], attitude.shape)
    shape = first + kind[:, None] * TREE_LINKS + np.arange(TREE_LINKS)
    return _still(number, shape, root[:, None] + rotate(turned, place), multiply(turned, attitude), "tree")


def _ground(room: Room, count: int) -> Part:
    place = np.tile([4.0, 0.0, -GROUND.half_size[2]], (count, 1, 1))
    attitude = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1, 1))
    return _still(-1, np.full((count, 1), len(stock(room).shapes)), place, attitude, "ground")


def _stacked(
    name: str, room: Room, lower: Floats, upper: Floats, parts: list[Part], wanted: NDArray[np.int64], per_link: bool
) -> RoomArrays:
    """Parts side by side along the axis of instances."""
    count = len(lower)
    widths = [part["shape"].shape[1] for part in parts]
    asset = np.repeat([part["asset"] for part in parts], widths).astype(np.int32)

    def joined(field: str, kind: Any, *shape: int) -> NDArray[Any]:
        return np.concatenate([part[field] for part in parts] or [np.zeros((count, 0, *shape))], axis=1).astype(kind)

    def repeated(field: str, kind: Any) -> NDArray[Any]:
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
    """`count` different rooms as the ray engine takes them: shapes that all share, and one static layout each.

    Movers of a dynamic room are part of the layouts here, at the poses with which they begin. Options as `room_arrays`.
    """
    rooms = room_arrays(name, np.arange(checked("count", count, 0)), seed, **options)
    still = RoomArrays(**{**vars(rooms), "moves": np.zeros_like(rooms.moves)})
    return rooms.shapes, still.placements()


def resample(
    name: str, env_ids: ArrayLike, episodes: ArrayLike, seed: SupportsIndex = 0, level: SupportsIndex | None = None
) -> RoomArrays:
    """New rooms for environments that are reset: with probability 0.15 one gets half of the level's obstacles.

    Args:
        name: As `room_arrays`.
        env_ids: (c,) environments.
        episodes: (c,) how often each has been reset.
        seed: Any integer.
        level: Of the curriculum; None: all assets.
    """
    return room_arrays(name, env_ids, seed, episodes=episodes, level=level, half_probability=HALF_COUNT_PROBABILITY)
