"""Ten configurations of a scenario: drawn, checked, and arranged so that difficulty rises with the index.

Difficulty is compared by rank sum: the ten configurations are ranked by each of the four terms, equal values sharing their mean
rank, and the ranks of each are added. Scenarios without a number that is tied to the index are sorted by it. The others (number
of gaps, slabs or objects, braiding) keep their index; from several draws of each configuration those are picked whose rank sums
do not fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.flyingtrust.cylinders import draw_cylinders
from airworthy.scenes.generators.flyingtrust.difficulty import TERMS, Difficulty, measure
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
_ROUNDS_MAX = 60


@dataclass(frozen=True, eq=False)
class Candidate:
    """A draw that keeps all rules, measured."""

    layout: Layout
    free: bool
    difficulty: Difficulty


@lru_cache(maxsize=24)
def configurations(name: str, seed: int) -> tuple[Candidate, ...]:
    """The ten configurations, with rank sums in their facts."""
    ten = _arranged(name, seed) if name in INDEXED else _sorted(name, seed)
    sums = rank_sums([c.difficulty.terms() for c in ten])
    for candidate, total in zip(ten, sums, strict=True):
        terms = dict(zip(TERMS, candidate.difficulty.terms(), strict=True))
        candidate.layout.facts.update({f"difficulty_{key}": value for key, value in terms.items()})
        candidate.layout.facts.update(difficulty_rank_sum=float(total), straight_line_free=float(candidate.free))
    return tuple(ten)


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
            layout = DRAWS[self.name](index, generator(self.name, index, self.seed, attempt))
            self._next[index] = attempt + 1
            if layout is None:
                continue
            obstacles = layout.obstacles()
            straight = straight_is_free(obstacles, stated)
            if (free is not None and straight != free) or not ends_are_clear(obstacles, stated):
                continue
            difficulty = measure(obstacles, stated)
            if difficulty is not None:
                return Candidate(layout, straight, difficulty)
        raise AirworthyError(
            f"No configuration {index} of {self.name!r} with seed {self.seed} was found in {_DRAWS_MAX} draws; use another seed."
        )


def _sorted(name: str, seed: int) -> list[Candidate]:
    source, free = Source(name, seed), free_count(name, seed)
    drawn = [source.draw(0, True) for _ in range(free)]
    drawn += [source.draw(0, False) for _ in range(CONFIGURATIONS - free)]
    order = np.argsort(rank_sums([c.difficulty.terms() for c in drawn]), kind="stable")
    return [drawn[k] for k in order]


def _arranged(name: str, seed: int) -> list[Candidate]:
    source, free = Source(name, seed), free_count(name, seed)
    pools = [[source.draw(i, i <= free)] for i in range(1, CONFIGURATIONS + 1)]
    picks = [0] * CONFIGURATIONS
    for _ in range(_ROUNDS_MAX):
        picks, falls = _best_picks(pools, picks)
        if not falls.any():
            return [pool[k] for pool, k in zip(pools, picks, strict=True)]
        for k in np.flatnonzero(falls):
            for index in (int(k) + 1, int(k) + 2):
                pools[index - 1].append(source.draw(index, index <= free))
    raise AirworthyError(f"The difficulty of {name!r} with seed {seed} does not rise with the index; use another seed.")


def _best_picks(pools: list[list[Candidate]], picks: list[int]) -> tuple[list[int], NDArray[np.bool_]]:
    """Exchange one pick at a time for as long as rank sums fall less; returns where they still fall."""
    picks = list(picks)
    best = _falls([pool[k] for pool, k in zip(pools, picks, strict=True)])
    improved = True
    while improved and best.any():
        improved = False
        for slot, pool in enumerate(pools):
            for k in range(len(pool)):
                trial = [*picks[:slot], k, *picks[slot + 1 :]]
                falls = _falls([p[j] for p, j in zip(pools, trial, strict=True)])
                if falls.sum() < best.sum() - 1e-9:
                    picks, best, improved = trial, falls, True
    return picks, best > 0.0


def _falls(ten: list[Candidate]) -> NDArray[np.float64]:
    """By how much the rank sum falls from each configuration to the next, (9,)."""
    return np.maximum(-np.diff(rank_sums([c.difficulty.terms() for c in ten])), 0.0)
