"""The planners' acceptance list (specification of the planners, section 12), measured."""

from __future__ import annotations

from collections.abc import Iterator

from airworthy.evaluation.navigation.timing import planning_times
from airworthy.evaluation.verification.figure import Figure
from airworthy.evaluation.verification.planners_costs import cost_figures
from airworthy.evaluation.verification.planners_flights import DEMOS, demo_figure, ego_figures
from airworthy.evaluation.verification.planners_maps import map_figures
from airworthy.evaluation.verification.planners_navrl import network_figures, shield_figures, usable_network
from airworthy.evaluation.verification.planners_search import search_figures
from airworthy.evaluation.verification.planners_twins import twin_figures
from airworthy.evaluation.verification.planners_ways import way_figures

__all__ = ["planner_figures", "time_figures"]

SEEDS, ALL_SEEDS = 5, 20
"""Forests of each demonstration."""
TIMED = ("ego", "fast", "pgo")
"""Pilots whose calls are timed."""


def planner_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; the check values of NavRL are left out without its weights.

    Args:
        everything: 20 forests of each demonstration, ten times the draws, and more flights to time.
    """
    many = 10 if everything else 1
    yield from cost_figures(40 * many)
    yield from twin_figures(4 * many)
    yield from map_figures(2 * many)
    yield from search_figures(200 * many)
    yield from ego_figures()
    for name in DEMOS:
        yield demo_figure(name, ALL_SEEDS if everything else SEEDS)
    yield from way_figures(4 * many)
    if (network := usable_network()) is not None:
        yield from network_figures(network)
    yield from shield_figures(400 * many)
    yield from time_figures(4 if everything else 1)


def time_figures(flights: int) -> Iterator[Figure]:
    """Item 8: how long a call in which a planner works takes here, of one flight on one thread, beside what was published.

    Args:
        flights: Through the benchmark's forest, whose calls are counted.
    """
    for found in planning_times(TIMED, flights=flights):
        label = f"{found.title} 8: median planning time per call, {found.calls:,} calls"
        yield Figure(label, found.median_ms, f"not judged; published {found.published}", True, "ms")
