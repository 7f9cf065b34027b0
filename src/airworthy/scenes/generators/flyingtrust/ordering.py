"""Ten configurations of a scenario: drawn, checked, and arranged so that difficulty rises with the index.

Difficulty is compared by rank sum: the ten configurations are ranked by each of the four terms, equal values sharing their mean
rank, and the ranks of each are added. Scenarios without a number that is tied to the index are sorted by it. The others (number
of gaps, slabs or objects, braiding) keep their index; from several draws of each configuration those are picked whose rank sums
do not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.flyingtrust.cylinders import draw_cylinders
from airworthy.scenes.generators.flyingtrust.difficulty import Difficulty, measure
from airworthy.scenes.generators.flyingtrust.drops import draw_drop, draw_drop_plus
from airworthy.scenes.generators.flyingtrust.forest import draw_forest
from airworthy.scenes.generators.flyingtrust.gaps import draw_gaps
from airworthy.scenes.generators.flyingtrust.layout import Layout, ends_are_clear, straight_is_free
from airworthy.scenes.generators.flyingtrust.maze import draw_maze
from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, SCENARIOS
from airworthy.scenes.generators.flyingtrust.perlin import draw_perlin
from airworthy.scenes.generators.flyingtrust.urban import draw_urban
from airworthy.scenes.generators.seeding import generator

Draw = Callable[[int, np.random.Generator], Layout | None]

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
class Candidate:
    """A draw that keeps all rules, measured."""

    draw: tuple[int, int]
    """Index and number of the attempt, which with name and seed give the draw again."""
    layout: Layout
    free: bool
    difficulty: Difficulty


def drawn(name: str, seed: int, index: int, attempt: int) -> Layout | None:
    """One attempt at a layout; a pure function of its arguments."""
    return DRAWS[name](index, generator(name, index, seed, attempt))


def arrange(name: str, seed: int) -> list[Candidate]:
    """The ten configurations of a seed, in order.

    Raises:
        AirworthyError: If no ten configurations keep the rules, which no seed that was tried has shown.
    """
    return _arranged(name, seed) if name in INDEXED else _sorted(name, seed)


def rank_sums(terms: ArrayLike) -> NDArray[np.float64]:
    """Sum over the columns of each row's rank (1: least; equal values share their mean rank), (n, k) -> (n,)."""
    values = np.round(np.asarray(terms, float), 9)
    below = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    return np.asarray((below + 0.5 * (equal + 1.0)).sum(1))


def free_count(name: str, seed: int) -> int:
    """In how many of the ten configurations the straight line is free."""
    low, high = SCENARIOS[name].free
    return low + int(generator(name, "free", seed).random() * (high - low + 1))


class Source:
    """Draws of one scenario in order, kept when they obey the rules."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self._next = dict.fromkeys(range(CONFIGURATIONS + 1), 0)

    def draw(self, index: int, free: bool | None) -> Candidate:
        """The next draw of a configuration that is solvable, with clear ends, and with a straight line as asked (None: any)."""
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
                return Candidate((index, attempt), layout, straight, difficulty)
        raise AirworthyError(
            f"No configuration {index} of {self.name!r} with seed {self.seed} came out of {_DRAWS_MAX} draws; use another seed."
        )


def _sorted(name: str, seed: int) -> list[Candidate]:
    source, free = Source(name, seed), free_count(name, seed)
    ten = [source.draw(0, True) for _ in range(free)]
    ten += [source.draw(0, False) for _ in range(CONFIGURATIONS - free)]
    order = np.argsort(rank_sums([c.difficulty.terms() for c in ten]), kind="stable")
    return [ten[k] for k in order]


def _arranged(name: str, seed: int) -> list[Candidate]:
    source, free = Source(name, seed), free_count(name, seed)
    pools = [[source.draw(i, i <= free) for _ in range(_FIRST_DRAWS)] for i in range(1, CONFIGURATIONS + 1)]
    for _ in range(_ROUNDS_MAX):
        picks, falls = pick_rising([np.array([c.difficulty.terms() for c in pool]) for pool in pools])
        if not falls.any():
            return [pool[k] for pool, k in zip(pools, picks, strict=True)]
        for index in sorted({int(k) + side for k in np.flatnonzero(falls) for side in (1, 2)}):
            pools[index - 1].append(source.draw(index, index <= free))
    raise AirworthyError(f"The difficulty of {name!r} with seed {seed} does not rise with the index; use another seed.")


def pick_rising(pools: Sequence[NDArray[np.float64]]) -> tuple[list[int], NDArray[np.float64]]:
    """One draw of each pool such that rank sums fall as little as can be.

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


def _falls(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much the rank sum falls from each row to the next."""
    return np.maximum(-np.diff(rank_sums(terms)), 0.0)
