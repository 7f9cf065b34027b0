"""Ten configurations of a scenario: drawn, checked, and arranged so that difficulty rises with the index.

Difficulty is compared by rank sum: the ten configurations are ranked by each of the four terms, equal values sharing their mean
rank, and the ranks of each are added. Scenarios without a number that is tied to the index are sorted by it. The others (number
of gaps, slabs or objects, braiding) keep their index; from several draws of each configuration those are picked whose rank sums
do not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_axis_angle, multiply, to_matrix
from airworthy.geometry import Cylinder
from airworthy.scenes.generators.flyingtrust.difficulty import Difficulty, measure
from airworthy.scenes.generators.flyingtrust.forest import draw_forest, draw_maze
from airworthy.scenes.generators.flyingtrust.layout import (
    ObstacleLayout,
    Solids,
    ends_are_clear,
    goal_of,
    start_of,
    straight_is_free,
)
from airworthy.scenes.generators.flyingtrust.parameters import (
    CLEAR_RADIUS,
    CONFIGURATIONS,
    CYLINDER_CENTRE,
    CYLINDER_COUNT,
    CYLINDER_LENGTH,
    CYLINDER_RADIUS,
    CYLINDER_TILT,
    GAP_OFFSET,
    GAP_ROOM,
    GAP_SHIFT,
    GAP_WALL,
    GAP_WALL_HEIGHT,
    GAP_WIDTH,
    LOW_WALL,
    NOISE_FILL,
    NOISE_FREQUENCY,
    SCENARIOS,
    SLAB_BOTTOM,
    SLAB_THICKNESS,
    SLAB_TOP,
    VOXEL,
)
from airworthy.scenes.generators.flyingtrust.urban import draw_urban
from airworthy.scenes.generators.flyingtrust.voxels import Voxels
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Instance

# ---- Narrow gaps: walls across the map, each with one slit; the number of walls is the index --------------------------------


def draw_gaps(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return `index` walls at even distances; the only slit of configuration 1 lies on the line."""
    layout = ObstacleLayout("narrow_gap")
    half = 0.5 * SCENARIOS["narrow_gap"].width
    centres, widths = slit_centres(index, rng), GAP_WIDTH[0] + (GAP_WIDTH[1] - GAP_WIDTH[0]) * rng.random(index)
    for number, (x, y, width) in enumerate(zip(wall_places(index), centres, widths.tolist(), strict=True)):
        edges = ((-half, y - 0.5 * width), (y + 0.5 * width, half))
        for (low, high), side in zip(edges, ("right", "left"), strict=True):
            size = (GAP_WALL, high - low, GAP_WALL_HEIGHT)
            center = (x, 0.5 * (low + high), 0.5 * GAP_WALL_HEIGHT)
            layout.box(center, size, "wall", f"plaster~{number % 5}", name=f"wall_{number + 1}_{side}")
    shifts = np.abs(np.diff(centres))
    layout.facts = {"obstacles": float(index), "gaps": float(index), "narrowest_gap_m": float(widths.min())}
    layout.facts |= {"widest_gap_m": float(widths.max()), "least_shift_m": float(shifts.min()) if index > 1 else 0.0}
    return layout


def wall_places(count: int) -> list[float]:
    """Return even distances between start and goal; where that leaves less than 4 m between walls, 4 m, in the middle."""
    stated = SCENARIOS["narrow_gap"]
    start, goal = float(start_of(stated)[0]), float(goal_of(stated)[0])
    # Room to turn from one slit to the next.
    pitch = max((goal - start) / (count + 1), GAP_ROOM + GAP_WALL)
    return [(k - 0.5 * (count - 1)) * pitch for k in range(count)]


def slit_centres(count: int, rng: np.random.Generator) -> list[float]:
    """Return centres evenly distributed over +-8 m, each at least 3 m from the one before."""
    if count == 1:
        return [0.0]
    centres: list[float] = []
    while len(centres) < count:
        y = GAP_OFFSET * (2.0 * float(rng.random()) - 1.0)
        if not centres or abs(y - centres[-1]) >= GAP_SHIFT:
            centres.append(y)
    return centres


# -----------------------------------------------------------------------------------------------------------------------------
# Sudden drop: slabs that hang from 14 m down to 1.5 m across the whole map; the number of slabs is the index.


def draw_drop(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Draw hanging slabs only, as stated by the paper."""
    layout = ObstacleLayout("sudden_drop")
    _slabs(layout, index, rng)
    return layout


def draw_drop_plus(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return the same, and every second configuration adds a low wall between two slabs, so that one has to climb again."""
    layout = ObstacleLayout("sudden_drop_plus")
    edges = _slabs(layout, index, rng)
    between = list(pairwise(edges))
    # Drawn by sorting numbers, stable, for the same choice on every machine.
    order = np.argsort(rng.random(len(between)), kind="stable")[: index // 2].tolist()
    for k in sorted(order):
        height = LOW_WALL[0] + (LOW_WALL[1] - LOW_WALL[0]) * float(rng.random())
        size = (GAP_WALL, layout.stated.width, height)
        layout.box((0.5 * (between[k][0][1] + between[k][1][0]), 0.0, 0.5 * height), size, "wall", "brick")
    layout.facts["low_walls"] = float(len(order))
    return layout


def _slabs(layout: ObstacleLayout, count: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Add slabs with their middles at even distances; returns where each begins and ends along x."""
    stated = SCENARIOS["sudden_drop"]
    start, goal = float(start_of(stated)[0]), float(goal_of(stated)[0])
    thickness = SLAB_THICKNESS[0] + (SLAB_THICKNESS[1] - SLAB_THICKNESS[0]) * rng.random(count)
    edges = []
    for number, thick in enumerate(thickness.tolist()):
        x = start + (goal - start) * (number + 1) / (count + 1)
        size = (thick, stated.width, SLAB_TOP - SLAB_BOTTOM)
        layout.box((x, 0.0, 0.5 * (SLAB_TOP + SLAB_BOTTOM)), size, "slab", f"concrete~{number % 5}", name=f"slab_{number + 1}")
        edges.append((x - 0.5 * thick, x + 0.5 * thick))
    layout.facts = {"obstacles": float(count), "slabs": float(count), "lowest_point_m": SLAB_BOTTOM}
    layout.facts |= {"thinnest_slab_m": float(thickness.min()), "thickest_slab_m": float(thickness.max())}
    return edges


# ---- Random cylinders: 67 logs at any angle, sunk into the floor where they reach below it ----------------------------------

_SURFACES = ("rust", "concrete", "wood", "metal")


def draw_cylinders(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return cylinders whose centres are spread evenly over the area; none reaches through an outer wall or into a cleared
    end."""
    layout = ObstacleLayout("random_cylinder")
    stated = SCENARIOS["random_cylinder"]
    ends = np.stack([start_of(stated), goal_of(stated)])
    half = 0.5 * np.array([stated.length, stated.width])
    tilts: list[float] = []
    while len(layout.instances) < CYLINDER_COUNT:
        u = rng.random(7)
        radius, length, tilt = (
            a + (b - a) * x for (a, b), x in zip((CYLINDER_RADIUS, CYLINDER_LENGTH, CYLINDER_TILT), u[:3].tolist(), strict=True)
        )
        low, high = CYLINDER_CENTRE
        centre = np.array([*(2.0 * u[3:5] - 1.0) * half, low + (high - low) * u[5]])
        turn = multiply(from_axis_angle((0, 0, 1), 2.0 * np.pi * u[6]), from_axis_angle((1, 0, 0), np.radians(tilt)))
        log = Cylinder(radius, 0.5 * length)
        if not _fits(log, centre, turn, half, ends):
            continue
        position = (float(centre[0]), float(centre[1]), float(centre[2]))
        attitude = (float(turn[0]), float(turn[1]), float(turn[2]), float(turn[3]))
        surface = f"{_SURFACES[len(tilts) % len(_SURFACES)]}~{len(tilts) % 5}"
        layout.add(log, position, "cylinder", surface, attitude)
        tilts.append(tilt)
    layout.facts = {"obstacles": float(CYLINDER_COUNT), "least_tilt_deg": min(tilts), "largest_tilt_deg": max(tilts)}
    return layout


def _fits(log: Cylinder, centre: np.ndarray, turn: np.ndarray, half: np.ndarray, ends: np.ndarray) -> bool:
    axis = to_matrix(turn)[:, 2]
    reach = np.abs(axis) * log.half_length + np.sqrt(np.maximum(1.0 - axis * axis, 0.0)) * log.radius
    if (np.abs(centre[:2]) + reach[:2] > half).any():
        return False
    # Far from both ends, whatever its turn: no exact distances are needed.
    if (np.hypot(*(ends[:, :2] - centre[:2]).T) > CLEAR_RADIUS + log.half_length + log.radius).all():
        return True
    item = Instance("log", tuple(centre.tolist()), tuple(turn.tolist()))
    heights = np.linspace(0.0, SCENARIOS["random_cylinder"].ceiling, 31)
    points = np.repeat(ends, len(heights), axis=0)
    points[:, 2] = np.tile(heights, len(ends))
    return bool(Solids.of({"log": log}, [item]).distance(points).min() >= CLEAR_RADIUS + 1e-3)


# ---- Perlin noise: floating clutter, the 3 % of 0.1 m voxels in which improved Perlin noise is highest ----------------------

_EDGES = np.array(
    [
        *[(a, b, 0) for b in (1, -1) for a in (1, -1)],
        *[(a, 0, c) for c in (1, -1) for a in (1, -1)],
        *[(0, b, c) for c in (1, -1) for b in (1, -1)],
        (1, 1, 0), (0, -1, 1), (-1, 1, 0), (0, -1, -1),
    ],
    float,
)  # fmt: skip
"""Gradients towards the edges of a cube, picked by the low four bits of a hash (Perlin, "Improving noise", 2002)."""


def draw_perlin(index: int, rng: np.random.Generator) -> ObstacleLayout:
    """Return one field of clutter, with the cylinders around start and goal left out of it."""
    stated = SCENARIOS["perlin"]
    size = np.rint(np.array([stated.length, stated.width, stated.ceiling]) / VOXEL).astype(int)
    permutation = np.argsort(rng.random(256), kind="stable")
    field = noise_grid(permutation, tuple(size.tolist()), NOISE_FREQUENCY)
    lower = np.array([-0.5 * stated.length, -0.5 * stated.width, 0.0])
    x = lower[0] + (np.arange(size[0]) + 0.5) * VOXEL
    y = lower[1] + (np.arange(size[1]) + 0.5) * VOXEL
    for end in (start_of(stated), goal_of(stated)):  # 0.08 m: a voxel's corner is up to 0.071 m nearer than its centre
        near = np.hypot(x[:, None] - end[0], y[None] - end[1]) < CLEAR_RADIUS + 0.08
        field[near] = -np.inf
    wanted = round(NOISE_FILL * field.size)
    # The wanted share exactly, whatever the noise's distribution in this draw.
    threshold = np.partition(field, field.size - wanted, axis=None)[field.size - wanted]
    occupied = field >= threshold
    layout = ObstacleLayout("perlin")
    layout.voxels = Voxels(occupied, lower, VOXEL)
    layout.facts = {"fill": float(occupied.mean()), "threshold": float(threshold), "frequency": NOISE_FREQUENCY}
    layout.facts["voxels"] = float(occupied.sum())
    return layout


def noise_grid(permutation: NDArray[np.integer], shape: tuple[int, ...], frequency: float) -> Array:
    """Return the improved Perlin noise in [0, 1] at (2 f i, 2 f j, 2 f k) for every voxel index.

    Voxels between two lattice points have the same fractions in every cell, so a cell's voxels are its corners' gradients times
    one table. Needs 1 / (2 f) to be a whole number.

    Args:
        permutation: Of the lattice's hash.
        shape: Voxels along x, y, z.
        frequency: Half the number of lattice cells per voxel; 1 / (2 f) is whole.
    """
    per_cell = round(1.0 / (2.0 * frequency))
    assert abs(per_cell * 2.0 * frequency - 1.0) < 1e-12, frequency
    cells = [-(-n // per_cell) for n in shape]
    hashed = _hash(permutation, [n + 1 for n in cells])
    gradient = _EDGES[hashed & 15]
    fraction = np.arange(per_cell) / per_cell
    # Perlin's improved curve: first and second derivatives vanish at lattice points.
    fade = fraction**3 * (fraction * (fraction * 6.0 - 15.0) + 10.0)
    total = np.zeros((cells[0], per_cell, cells[1], per_cell, cells[2], per_cell))
    for corner in np.ndindex(2, 2, 2):
        g = gradient[tuple(slice(c, c + n) for c, n in zip(corner, cells, strict=True))]
        weight = [fade if c else 1.0 - fade for c in corner]
        away = [fraction - c for c in corner]
        w = weight[0][:, None, None] * weight[1][:, None] * weight[2]
        for axis in range(3):
            along = [1, 1, 1]
            along[axis] = per_cell
            table = w * away[axis].reshape(along)
            total += g[:, None, :, None, :, None, axis] * table[None, :, None, :, None, :]
    full = total.reshape([n * per_cell for n in cells])
    return np.asarray(0.5 * (1.0 + full[tuple(slice(n) for n in shape)]))


def _hash(permutation: NDArray[np.integer], shape: list[int]) -> NDArray[np.integer]:
    """Hash of every lattice point: p[p[p[x] + y] + z], indices modulo 256."""
    p = np.asarray(permutation)
    x, y, z = (np.arange(n) & 255 for n in shape)
    first = (p[x][:, None] + y) & 255
    second = (p[first][:, :, None] + z) & 255
    return np.asarray(p[second])


# -----------------------------------------------------------------------------------------------------------------------------

Draw = Callable[[int, np.random.Generator], ObstacleLayout | None]

DRAWS: dict[str, Draw] = {
    "forest": draw_forest,
    "urban": draw_urban,
    "random_cylinder": draw_cylinders,
    "narrow_gap": draw_gaps,
    "sudden_drop": draw_drop,
    "sudden_drop_plus": draw_drop_plus,
    "maze": draw_maze,
    "perlin": draw_perlin,
}
INDEXED = {"urban", "narrow_gap", "sudden_drop", "sudden_drop_plus", "maze"}
"""Scenarios in which a stated number rises or falls with the index."""
_DRAWS_MAX = 3000
_FIRST_DRAWS, _ROUNDS_MAX = 2, 100


@dataclass(frozen=True, eq=False)
class LayoutCandidate:
    """A draw that keeps all rules, measured."""

    draw: tuple[int, int]
    """Index and number of the attempt, which with name and seed give the draw again."""
    layout: ObstacleLayout
    free: bool
    difficulty: Difficulty


def drawn(name: str, seed: int, index: int, attempt: int) -> ObstacleLayout | None:
    """Return one attempt at a layout; a pure function of its arguments.

    Args:
        name: Of the scenario.
        seed: Of the catalogue.
        index: Of the configuration.
        attempt: Number of the draw.
    """
    return DRAWS[name](index, generator(name, index, seed, attempt))


def arrange(name: str, seed: int) -> list[LayoutCandidate]:
    """Return the ten configurations of a seed, in order.

    Raises:
        AirworthyError: If no ten configurations keep the rules, which no seed that was tried has shown.
    """
    return _arranged(name, seed) if name in INDEXED else _sorted(name, seed)


def rank_sums(terms: ArrayLike) -> Array:
    """Return the sum over the columns of each row's rank (1: least; equal values share their mean rank), (n, k) -> (n,)."""
    values = np.round(np.asarray(terms, float), 9)
    below = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    return np.asarray((below + 0.5 * (equal + 1.0)).sum(1))


def free_count(name: str, seed: int) -> int:
    """Return in how many of the ten configurations the straight line is free."""
    low, high = SCENARIOS[name].free
    return low + int(generator(name, "free", seed).random() * (high - low + 1))


class ScenarioDraws:
    """Draws of one scenario in order, kept when they obey the rules."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self._next = dict.fromkeys(range(CONFIGURATIONS + 1), 0)

    def draw(self, index: int, free: bool | None) -> LayoutCandidate:
        """Return the next draw of a configuration that is solvable, with clear ends, and with a straight line as asked (None:
        any).
        """
        stated = SCENARIOS[self.name]
        for attempt in range(self._next[index], self._next[index] + _DRAWS_MAX):
            layout = drawn(self.name, self.seed, index, attempt)
            self._next[index] = attempt + 1
            if layout is None:
                continue
            obstacles = layout.obstacles()
            straight = straight_is_free(obstacles, stated)
            if (free is not None and straight != free) or not ends_are_clear(obstacles, stated):
                continue
            difficulty = measure(obstacles, stated)
            if difficulty is not None:
                return LayoutCandidate((index, attempt), layout, straight, difficulty)
        raise AirworthyError(
            f"No configuration {index} of {self.name!r} with seed {self.seed} came out of {_DRAWS_MAX} draws; use another seed."
        )


def _sorted(name: str, seed: int) -> list[LayoutCandidate]:
    source, free = ScenarioDraws(name, seed), free_count(name, seed)
    ten = [source.draw(0, True) for _ in range(free)]
    ten += [source.draw(0, False) for _ in range(CONFIGURATIONS - free)]
    order = np.argsort(rank_sums([c.difficulty.terms() for c in ten]), kind="stable")
    return [ten[k] for k in order]


def _arranged(name: str, seed: int) -> list[LayoutCandidate]:
    source, free = ScenarioDraws(name, seed), free_count(name, seed)
    pools = [[source.draw(i, i <= free) for _ in range(_FIRST_DRAWS)] for i in range(1, CONFIGURATIONS + 1)]
    for _ in range(_ROUNDS_MAX):
        picks, falls = pick_rising([np.array([c.difficulty.terms() for c in pool]) for pool in pools])
        if not falls.any():
            return [pool[k] for pool, k in zip(pools, picks, strict=True)]
        for index in sorted({int(k) + side for k in np.flatnonzero(falls) for side in (1, 2)}):
            pools[index - 1].append(source.draw(index, index <= free))
    raise AirworthyError(f"The difficulty of {name!r} with seed {seed} does not rise with the index; use another seed.")


def pick_rising(pools: Sequence[Array]) -> tuple[list[int], Array]:
    """Return one draw of each pool such that rank sums fall as little as can be.

    Begins with the draws whose place among all draws fits the index best, then exchanges one at a time while that helps.

    Args:
        pools: Of each index, the terms of its draws, (k, 4).

    Returns:
        The number of the draw picked in each pool, and by how much rank sums still fall from each to the next.
    """
    score = rank_sums(np.concatenate(pools))
    wanted = np.quantile(score, (np.arange(len(pools)) + 0.5) / len(pools))
    parts = np.split(score, np.cumsum([len(pool) for pool in pools])[:-1])
    picks = [int(np.abs(part - target).argmin()) for part, target in zip(parts, wanted, strict=True)]
    terms = np.stack([pool[k] for pool, k in zip(pools, picks, strict=True)])
    best = _falls(terms)
    while best.any():
        trials = [(slot, k) for slot, pool in enumerate(pools) for k in range(len(pool))]
        found = []
        for slot, k in trials:
            changed = terms.copy()
            changed[slot] = pools[slot][k]
            found.append(_falls(changed))
        least = int(np.argmin([falls.sum() for falls in found]))
        if found[least].sum() >= best.sum():
            break
        slot, picks[trials[least][0]] = trials[least][0], trials[least][1]
        terms[slot], best = pools[slot][picks[slot]], found[least]
    return picks, best


def _falls(terms: Array) -> Array:
    """By how much the rank sum falls from each row to the next."""
    return np.maximum(-np.diff(rank_sums(terms)), 0.0)
