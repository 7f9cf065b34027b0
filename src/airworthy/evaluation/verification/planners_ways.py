"""PGO's ways around pillars, and which of them are one: item 6 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import flight_key
from airworthy.evaluation.verification.figure import Figure, zero
from airworthy.evaluation.verification.planners_worlds import World
from airworthy.pilots.pgo import RoadmapSettings
from airworthy.pilots.pgo.roadmap import Question, Roadmaps
from airworthy.pilots.pgo.sight import Sight

__all__ = ["way_figures"]

Array = NDArray[np.float64]

_SIZE = (14.0, 12.0, 3.0)
ONE = World(_SIZE, np.array([[0.0, 0.0, 0.5]]))
TWO = World(_SIZE, np.array([[0.0, -1.0, 0.5], [0.0, 1.0, 0.5]]))
ROW = World(_SIZE, np.array([[-1.2, 0.0, 0.5], [1.2, 0.0, 0.5]]))
_START, _END = np.array([-3.0, 0.0, 1.5]), np.array([3.0, 0.0, 1.5])


def way_figures(seeds: int = 4) -> Iterator[Figure]:
    """Classes of ways found, the fewest of some roadmaps, and whether equivalence depends on the order.

    Args:
        seeds: Roadmaps per place.
    """
    for world, words, fewest in (
        (ONE, "around one pillar", 2),
        (TWO, "around two side by side", 3),
        (ROW, "around two in a row", 3),
    ):
        found = min(_classes(world, seed) for seed in range(seeds))
        aim = "2" if fewest == 2 else "at least 3"
        yield Figure(f"PGO 6: homotopy classes {words}, fewest of {seeds} roadmaps", float(found), aim, found >= fewest)
    yield from _equivalence()


def _classes(world: World, seed: int) -> int:
    """Of the ways that a roadmap finds: on which side of each pillar they pass."""
    none = np.zeros((0, 3))
    asked = Question(0, _START, _END, none, none, flight_key(seed, 0), 0)
    paths = Roadmaps(RoadmapSettings()).run([asked], world.window())[0].paths
    return len({tuple(bool(np.interp(x, p[:, 0], p[:, 1]) > y) for x, y, _ in world.pillars) for p in paths})


def _equivalence() -> Iterator[Figure]:
    sight, rng, paths = Sight(TWO.window().view(0)), np.random.default_rng(0), []
    for _ in range(8):
        along = np.sort(rng.uniform(-2.0, 2.0, 2))
        corners = np.stack([along, rng.uniform(-3.0, 3.0, 2), rng.uniform(0.8, 2.2, 2)], axis=1)
        paths.append(np.concatenate([[_START], corners, [_END]]))
    table = np.array([[sight.equivalent(a, b) for b in paths] for a in paths])
    yield zero("PGO 6: of 64 pairs of paths, judged otherwise the other way round", int(np.sum(table != table.T)))
    # Two ways on the same side of both pillars are one; those between and beyond them are others.
    ways = [np.array([_START, [0.0, y, 1.5], _END]) for y in (-2.2, -2.0, 0.0, 2.0)]
    said = np.array([[sight.equivalent(a, b) for b in ways] for a in ways])
    wanted = np.eye(4, dtype=bool)
    wanted[:2, :2] = True
    yield zero("PGO 6: of 16 pairs of known ways, judged wrongly", int(np.sum(said != wanted)))
