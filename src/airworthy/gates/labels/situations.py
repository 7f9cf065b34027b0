"""Random parts of rollouts (Table I), as functions of (seed, situation index, draw, step) alone.

All candidates of a situation meet the same vehicle and the same noise, so that they are compared by what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.random import Stream, flight_key, uniforms, words
from airworthy.gates.labels.controller_model import ControllerModel
from airworthy.gates.labels.options import Randomisation
from airworthy.gates.planner.contract import FIELDS, PAPER_RANGES

__all__ = [
    "EXTENDED",
    "FIELDS",
    "PAPER",
    "RACING",
    "RANGES",
    "Grid",
    "RolloutDraws",
    "clamp",
    "corners",
    "draw",
    "encode",
    "grid_named",
    "noise",
    "outside",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Three gates as eight numbers: the situations of the search, their grid, and the way to and from gates in the world.
#
# Source: spec/boundary_predictor sections 2 and 5 (eq. 6, Table II). The paper measures bearings clockwise from world y;
# everything else here has headings counter-clockwise from world x. This module is the one place where they meet: the angles
# `theta0` and `thetaf` of a situation are clockwise, as printed, and leave it as headings.

RANGES = np.array(PAPER_RANGES)
"""Table II: lowest and highest value of each field, shape (8, 2)."""
RANGES.setflags(write=False)

# Source: Table II, in the order of FIELDS: 10 * 2^3 * 6^2 * 15 * 3 = 129,600 situations.
_POINTS = (10, 2, 6, 15, 2, 6, 3, 2)
# Ours: the same spacing of speeds (1/9 m/s), continued from 1 to 16/9 m/s.
_EXTENDED_POINTS = (17, *_POINTS[1:])
_EXTENDED_SPEED = 16.0 / 9.0
"""No candidate at or above this speed [m/s] ever keeps the limit of eq. 3: the extended grid is closed under its outputs."""


@dataclass(frozen=True)
class Grid:
    """Every combination of evenly spaced values, the first field slowest."""

    name: str
    values: tuple[tuple[float, ...], ...]
    """Of each field, in the order of FIELDS."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each field."""
        return tuple(map(len, self.values))

    @property
    def size(self) -> int:
        """Number of situations."""
        return int(np.prod(self.shape))

    @property
    def ranges(self) -> Array:
        """Lowest and highest value of each field, shape (8, 2)."""
        return np.array([(min(values), max(values)) for values in self.values])

    def situations(self, index: ArrayLike | None = None) -> Array:
        """Return situations with these numbers, shape (k, 8); all of them by default.

        Raises:
            AirworthyError: The grid has no such number.
        """
        numbers = np.arange(self.size) if index is None else np.atleast_1d(np.asarray(index, dtype=np.int64))
        if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < self.size):
            raise AirworthyError(
                f"The grid {self.name!r} has situations 0 to {self.size - 1}, but {int(numbers.max())} was asked for."
            )
        indices = np.unravel_index(numbers, self.shape)
        return np.stack([np.array(values)[index] for values, index in zip(self.values, indices, strict=True)], axis=-1)


def _grid(name: str, points: tuple[int, ...], speed: float) -> Grid:
    high = [speed, *RANGES[1:, 1]]
    spaced = (np.linspace(low, top, count) for low, top, count in zip(RANGES[:, 0], high, points, strict=True))
    return Grid(name, tuple(tuple(map(float, values)) for values in spaced))


PAPER = _grid("paper", _POINTS, 1.0)
"""The published grid: 129,600 situations."""
EXTENDED = _grid("extended", _EXTENDED_POINTS, _EXTENDED_SPEED)
"""v_prev up to 16/9 m/s, so that the speeds that come out may go in again: 220,320 situations (ours)."""


RACING = _grid("racing", (11, *_POINTS[1:]), 20.0 / 9.0)
"""v_prev up to 20/9 m/s in steps of 2/9, for searches with --speeds 11 --speed-max 2.2222222222222223: 142,560 (ours)."""


def grid_named(name: str) -> Grid:
    """Return one of the grids by its name.

    Raises:
        AirworthyError: There is no such grid.
    """
    grids = {grid.name: grid for grid in (PAPER, EXTENDED, RACING)}
    if name not in grids:
        raise unknown_name("grid", name, grids)
    return grids[name]


def corners(situations: ArrayLike) -> tuple[Array, Array]:
    """Return gates of situations, the first at the origin of the plane with heading 0, each later one facing along its leg.

    Args:
        situations: Shape (k, 8).

    Returns:
        Positions [m], shape (k, 3, 3), and headings [rad], shape (k, 3), of gates i - 1, i and i + 1.
    """
    e = np.asarray(situations, dtype=np.float64)
    zero = np.zeros(len(e))
    # Clockwise bearings become counter-clockwise headings here, and only here.
    first = -e[:, 3]
    second = first - e[:, 6]
    x1, y1 = e[:, 2] * np.cos(first), e[:, 2] * np.sin(first)
    x2, y2 = x1 + e[:, 5] * np.cos(second), y1 + e[:, 5] * np.sin(second)
    positions = [(zero, zero, e[:, 1]), (x1, y1, e[:, 4]), (x2, y2, e[:, 7])]
    return np.stack([np.stack(p, axis=-1) for p in positions], axis=1), np.stack((zero, first, second), axis=-1)


def encode(positions: ArrayLike, headings: ArrayLike, v_prev: ArrayLike) -> tuple[Array, Array]:
    """Return situations of gates in the world, and how far each field lies outside its range.

    A situation holds no heading of gates i and i + 1: bearings are measured from the heading of the gate behind, whatever it
    is, and a gate that does not face along its leg is encoded all the same.

    Args:
        positions: Of gates i - 1, i and i + 1 [m], shape (k, 3, 3).
        headings: Directions of flight through gates i - 1 and i [rad], shape (k, 2) or, the last unused, (k, 3).
        v_prev: Speed through gate i - 1 [m/s], shape (k,).

    Returns:
        Situations, shape (k, 8), and `outside` of them.
    """
    p, h = np.asarray(positions, dtype=np.float64), np.asarray(headings, dtype=np.float64)
    legs = p[:, 1:, :2] - p[:, :2, :2]
    distance = np.hypot(legs[..., 0], legs[..., 1])
    turn = h[:, :2] - np.arctan2(legs[..., 1], legs[..., 0])
    theta = turn - 2.0 * pi * np.round(turn / (2.0 * pi))
    speed = np.broadcast_to(np.asarray(v_prev, dtype=np.float64), len(p))
    columns = (speed, p[:, 0, 2], distance[:, 0], theta[:, 0], p[:, 1, 2], distance[:, 1], theta[:, 1], p[:, 2, 2])
    found = np.stack(columns, axis=-1)
    return found, outside(found)


def outside(situations: ArrayLike, ranges: ArrayLike = RANGES) -> Array:
    """Return how far each field lies above (positive) or below (negative) its range, shape (k, 8); 0 within."""
    e = np.asarray(situations, dtype=np.float64)
    return e - clamp(e, ranges)


def clamp(situations: ArrayLike, ranges: ArrayLike = RANGES) -> Array:
    """Return the nearest situations within the ranges, shape (k, 8)."""
    bounds = np.asarray(ranges, dtype=np.float64)
    return np.clip(np.asarray(situations, dtype=np.float64), bounds[:, 0], bounds[:, 1])


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RolloutDraws:
    """Of k rollouts."""

    mass: Array
    """[kg], shape (k,)."""
    inertia: Array
    """[kg m^2], shape (k, 3)."""
    keys: ArrayU32
    """For the noise of each step, shape (k, 4)."""

    def at(self, rows: ArrayInt | list[int]) -> RolloutDraws:
        """Return the draws of some of the rollouts, in this order."""
        return RolloutDraws(self.mass[rows], self.inertia[rows], self.keys[rows])


def draw(
    controller_model: ControllerModel, law: Randomisation, seed: int, index: ArrayLike, number: ArrayLike = 0
) -> RolloutDraws:
    """Return mass, inertia and keys of rollouts.

    Args:
        controller_model: Has the nominal values.
        law: Half widths.
        seed: Of the run.
        index: Situation numbers, shape (k,).
        number: Which of the draws of the situation, shape (k,) or one.
    """
    # Keyed by situation, not by lane: all 70 candidates of a situation share their draws (common random numbers).
    keys = flight_key(seed, index, number)
    turned = 2.0 * uniforms(keys, np.zeros(len(keys), np.uint32), Stream.PARAMETERS, 4) - 1.0
    return RolloutDraws(
        controller_model.mass + law.mass * turned[:, 0], np.array(controller_model.inertia) + law.inertia * turned[:, 1:], keys
    )


def noise(keys: ArrayU32, step: int, law: Randomisation) -> Array:
    """Return the outer force [N] and noise of each motor's thrust [N] in one step, shape (k, 7).

    One block of four words serves a step, so that each number has 16 bits: uniform numbers lie on a grid of 2^16, and
    normals reach 4.9 deviations.

    Args:
        keys: Of the flights, (k, 4) words.
        step: Number of the physics step.
        law: Half widths and deviation.
    """
    if law.force == 0.0 and law.thrust == 0.0:
        return np.zeros((len(keys), 7))
    drawn = words(keys, np.full(len(keys), step, np.uint32), Stream.DISTURBANCE, 4)
    # Two numbers of 16 bits from each word: noise is drawn in every step of every rollout, and words cost.
    high, low = drawn & np.uint32(0xFFFF0000), drawn << np.uint32(16)
    first, second = _uniform(high), _uniform(low)
    force = law.force * (2.0 * np.stack((first[:, 0], second[:, 0], first[:, 1]), axis=-1) - 1.0)
    radius = law.thrust * np.sqrt(-2.0 * np.log(first[:, 2:]))
    angle = _angle(low[:, 2:])
    normal = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1).reshape(-1, 4)
    return np.concatenate((force, normal), axis=-1)


def _uniform(word: ArrayU32) -> Array:
    return ((word >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


def _angle(word: ArrayU32) -> Array:
    """As `normal_pair` of native/random.h takes it: two bits of quadrant, then the place within it."""
    quadrant = (word >> np.uint32(30)).astype(np.float64)
    inside = ((word << np.uint32(2)) >> np.uint32(9)).astype(np.float64) + 0.5
    return (quadrant - 0.5) * (np.pi / 2) + inside * (np.pi / 2**24)
