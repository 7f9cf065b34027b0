"""Options of `airworthy bench navigation` that change nothing beside the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airworthy.core.idle_options import IdleRule

if TYPE_CHECKING:
    from airworthy.benchmarks.navigation.config import NavigationConfig

__all__ = ["NAVIGATION_RULES"]

_BLIND = ("straight", "expert", "oracle")
"""Built-in pilots without a camera: two know the scene, one needs to know nothing."""


def _only_own(config: NavigationConfig) -> bool:
    """Tell whether only places of the user's own are flown in."""
    from airworthy.benchmarks.navigation.config import NavigationConfig

    return bool(config.scenes) and config.scenarios in ((), NavigationConfig().scenarios)


def _nothing_hard(config: NavigationConfig) -> bool:
    from airworthy.benchmarks.navigation.config import CLASSIC, scenario_names

    return not config.scenes and set(scenario_names(config.scenarios)) <= set(CLASSIC)


def _all_named(config: NavigationConfig) -> bool:
    from airworthy.benchmarks.navigation.config import quick

    return quick(config) == config


def _untimed(config: NavigationConfig) -> bool:
    from airworthy.benchmarks.navigation.methods import BUILT_IN_PILOTS

    return config.compute != "measured" and set(config.pilots) <= set(BUILT_IN_PILOTS)


NAVIGATION_RULES = (
    IdleRule(("pairs", "least_distance"), lambda c: not c.scenes, "without --scenes, in which pairs are drawn", "name some"),
    IdleRule(
        ("trials", "configurations"),
        _only_own,
        "in --scenes alone, whose flights are counted by --pairs",
        "give that, or name --scenarios",
    ),
    IdleRule(("trials",), lambda c: bool(c.configurations), "beside --configurations, which says itself what is flown"),
    IdleRule(
        ("hard_repeats",),
        _nothing_hard,
        "where only forest, urban and random_cylinder are flown, none of which is hard",
        "give --repeats",
    ),
    IdleRule(
        ("perturb.moving_speed",),
        lambda c: c.perturb.moving_obstacles == 0,
        "without --perturb.moving-obstacles, whose speed it is",
        "give some",
    ),
    IdleRule(
        ("perturb.moving_obstacles",),
        _only_own,
        "in --scenes alone, whose actors are their own",
        "name --scenarios besides",
    ),
    IdleRule(
        ("sensing", "perturb.depth_noise", "perturb.depth_dropout", "perturb.latency"),
        lambda c: set(c.pilots) <= set(_BLIND),
        "for straight, expert and oracle, which have no camera",
        "name another of --pilots",
    ),
    IdleRule(
        ("compute",),
        lambda c: set(c.pilots) <= {"straight"},
        "for straight, which plans nothing",
        "name another of --pilots",
    ),
    IdleRule(
        ("warm_up",),
        _untimed,
        "where no pilot is timed",
        "name one of your own, FILE.py:CLASS, or --compute measured",
    ),
    IdleRule(
        ("protocol.above_m",),
        lambda c: c.protocol.ceiling_is_solid,
        "with --protocol.ceiling-is-solid, under which nothing flies above the ceiling",
    ),
    IdleRule(("workers",), lambda c: bool(c.cluster), "with --cluster, whose machines fly instead"),
    IdleRule(
        ("quick",),
        _all_named,
        "beside --vehicles and --trials, which are what it would choose",
    ),
)
