"""The figures of the planners are as they must be, and each kind of check can fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.navigation.replay import PlanningTime
from airworthy.core.errors import AirworthyError
from airworthy.planners.ego import EgoPlanner
from airworthy.planners.fast import costs as fast
from airworthy.planners.mapping import CellMaps, LocalMaps
from airworthy.planners.navrl.network import SHAPES, Network
from airworthy.planners.navrl.shield import Verdict
from airworthy.verification.planning import costs as planners_costs
from airworthy.verification.planning import maps as planners_maps
from airworthy.verification.planning import planners
from airworthy.verification.planning import worlds as planners_worlds
from airworthy.verification.published import Figure, zero


def failed(figures: Iterator[Figure]) -> list[str]:
    """Names of those that are not as they must be; they are all told apart by their names."""
    found = list(figures)
    assert found
    assert len({figure.name for figure in found}) == len(found)
    return [figure.name for figure in found if not figure.passed]


# ---- 1: gradients -------------------------------------------------------------------------------------------------------


def test_gradients() -> None:
    found = list(planners_costs.cost_figures(3))
    assert [figure.name for figure in found if not figure.passed] == []
    assert len(found) == 4 + 5 + 2


@pytest.mark.parametrize("name", ["smoothness", "nearness", "excess", "ending"])
def test_a_wrong_gradient_shows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    cost = getattr(fast, name)

    def other(*given: Any, **options: Any) -> tuple[float, Any]:
        value, gradient = cost(*given, **options)
        return value, gradient * (1.0 + 1e-5)

    monkeypatch.setattr(fast, name, other)
    names = failed(planners_costs.cost_figures(2))
    assert 1 <= len([label for label in names if "Fast-Planner" in label]) <= 2  # itself, and perhaps all together


def test_a_guide_that_is_not_at_its_minimum_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    guided = planners_costs.guided
    monkeypatch.setattr(planners_costs, "guided", lambda *given: guided(*given) + 1e-6)
    assert ["PGO" in name for name in failed(planners_costs.cost_figures(1))] == [True]


# ---- compiled parts and their twins -------------------------------------------------------------------------------------


def test_compiled_parts_are_their_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(planners_maps.twin_figures(2)) == []
    run, costs = planners_maps.EgoTwin.run, planners_maps.SplineCosts.__call__
    search, roadmap = planners_maps.search_twin, planners_maps.roadmap_twin

    def moved(self: Any) -> Any:
        outcome = run(self)
        self.q[0, 0] = np.nextafter(self.q[0, 0], 9.0)
        return outcome

    def heavier(self: Any, x: Any) -> Any:
        value, gradient = costs(self, x)
        return value * (1.0 + 1e-12), gradient

    monkeypatch.setattr(planners_maps.EgoTwin, "run", moved)
    monkeypatch.setattr(planners_maps.SplineCosts, "__call__", heavier)
    monkeypatch.setattr(planners_maps, "search_twin", lambda *given: replace(found := search(*given), nodes=found.nodes + 1))
    monkeypatch.setattr(planners_maps, "roadmap_twin", lambda *given: replace(found := roadmap(*given), paths=found.paths[1:]))
    names = [figure.name for figure in planners_maps.twin_figures(1) if not figure.passed]
    assert [name.split(":")[0] for name in names][:2] == ["EGO-Planner", "Fast-Planner"]
    assert names[-1].startswith("PGO")


# ---- 2: maps ------------------------------------------------------------------------------------------------------------


def test_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planners_maps, "DENSITIES", (0.01,))
    assert failed(planners_maps.distance_figures()) == []
    distance = CellMaps.distance

    def off(self: CellMaps, *given: Any) -> Any:
        value, slope = distance(self, *given)
        value[0, 77] += 1e-8
        return value, slope

    monkeypatch.setattr(CellMaps, "distance", off)
    assert len(failed(planners_maps.distance_figures())) == 1


@pytest.mark.parametrize(
    ("method", "message"), [("state", "state or inflation"), ("field", "distance"), ("log_odds", "log-odds")]
)
def test_occupancy(monkeypatch: pytest.MonkeyPatch, method: str, message: str) -> None:
    tables = {"EGO-Planner": replace(planners_maps.TABLES["PGO"], ray_max=0.8, depth_max=2.0)}
    monkeypatch.setattr(planners_maps, "TABLES", tables)
    if method == "state":
        assert failed(planners_maps.occupancy_figures(1)) == []
    said = getattr(LocalMaps, method)

    def off(self: LocalMaps, *given: Any) -> Any:
        answer = said(self, *given)
        spoilt = np.array(answer[0] if method == "field" else answer)
        spoilt.reshape(-1)[3] += 1
        return (spoilt, answer[1]) if method == "field" else spoilt

    monkeypatch.setattr(LocalMaps, method, off)
    assert any(message in name for name in failed(planners_maps.occupancy_figures(1)))


# ---- 3: search ----------------------------------------------------------------------------------------------------------


def test_least_cost_and_shot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(planners.search_figures(30)) == []
    least, shot = planners.least_cost, planners.connection
    with monkeypatch.context() as patch:
        # As if another time were the best.
        patch.setattr(planners, "least_cost", lambda a, b, w, v: (planners.cost_of_time(a, b, w, 9.0), least(a, b, w, v)[1]))
        assert len(failed(planners.search_figures(30))) == 3
    monkeypatch.setattr(planners, "connection", lambda a, b, t: shot(a, b, t) + 1e-8)
    assert any("boundary" in name for name in failed(planners.search_figures(30)))


# ---- 4 and 5: flights ---------------------------------------------------------------------------------------------------


def test_ego_past_a_pillar_and_through_a_gap() -> None:
    assert failed(planners.ego_figures()) == []


class Straight(EgoPlanner):
    """Sees nothing."""

    def update(self, motion: Any, maps: Any, active: Any) -> dict[str, Any]:
        for known in maps._known:
            known[..., 1:-1] = False
        return super().update(motion, maps, active)


def test_a_planner_that_sees_nothing_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planners, "EgoPlanner", Straight)
    pillar, gap = failed(planners.ego_figures())
    assert "from a pillar of 1 m" in pillar
    assert "not passed by their gap" in gap
    small = {**planners.DEMOS["EGO-Planner"], "planner": Straight, "limit": 12.0}
    flight = {"size": (16.0, 8.0, 3.0), "count": 20, "spacing": 1.2}
    monkeypatch.setattr(planners, "DEMOS", {"EGO-Planner": {**small, "place": flight}})
    assert not planners.demo_figure("EGO-Planner", 2).passed


@pytest.mark.parametrize("name", planners.DEMOS)
def test_a_small_forest(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    demo = planners.DEMOS[name]
    flight = {**demo["place"], "size": (16.0, 8.0, 3.0), "count": 15}
    monkeypatch.setitem(planners.DEMOS, name, {**demo, "place": flight, "limit": 14.0})
    figure = planners.demo_figure(name, 2)
    assert (figure.measured, figure.passed) == (100.0, True)


def test_forests_are_as_stated() -> None:
    world, start, goal = planners_worlds.forest(1, (20.0, 10.0, 3.0), 30, 1.2, 1.0)
    axes = world.pillars[:, :2]
    apart = np.linalg.norm(axes[:, None] - axes, axis=2) + 9.0 * np.eye(30)
    assert apart.min() >= 1.2
    assert ((world.pillars[:, 2] >= 0.25) & (world.pillars[:, 2] <= 0.35)).all()
    assert world.clearance(np.array([start, goal])) > 1.0
    assert (start.tolist(), goal.tolist()) == ([-9.0, 0.0, 1.0], [9.0, 0.0, 1.0])
    pillar = np.array([[*axes[0], 1.0]])
    assert world.clearance(pillar) == pytest.approx(-world.pillars[0, 2])
    cell = tuple(np.floor((pillar[0] - world.lower) / 0.1).astype(int))
    assert world.cells[cell]


def test_maps_know_what_came_within_sight() -> None:
    world = planners_worlds.World((20.0, 10.0, 3.0), np.array([[3.0, 0.0, 0.3], [8.0, 0.0, 0.3]]))
    maps = planners_worlds.SightMaps([world])
    maps.see(np.array([[0.0, 0.0, 1.0]]))
    asked = np.array([[[3.0, 0.0, 1.0], [8.0, 0.0, 1.0], [0.0, 0.0, 1.0], [99.0, 0.0, 1.0]]])
    assert maps.occupied(np.array([0]), asked)[0].tolist() == [True, False, False, True]
    value, slope = maps.distance(np.array([0]), asked[:, 2:3])
    # To the floor's layer, 0.95 m below; the gradient points up, away from it.
    assert value[0, 0] == pytest.approx(0.95, abs=0.051)
    assert slope[0, 0, 2] > 0.9


# ---- 6: ways ------------------------------------------------------------------------------------------------------------


def test_ways_and_their_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(planners.path_figures(1)) == []
    monkeypatch.setattr(planners, "_classes", lambda world, seed: 1)

    class Judge(planners.Visibility):
        """The first path counts."""

        def equivalent(self, a: Any, b: Any) -> bool:
            return bool(a[1, 0] >= b[1, 0])

    monkeypatch.setattr(planners, "Visibility", Judge)
    assert len(failed(planners.path_figures(1))) == 5


# ---- 7: NavRL -----------------------------------------------------------------------------------------------------------


def test_the_network_of_navrl(data_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    network = planners_costs.load_network(data_dir / "policies" / "navrl" / "navrl_weights.npz")
    assert failed(planners_costs.network_figures(network)) == []
    rng = np.random.default_rng(0)
    drawn = Network({name: (0.1 * rng.normal(size=shape)).astype(np.float32) for name, shape in SHAPES.items()})
    assert len(failed(planners_costs.network_figures(drawn))) == 1


def test_the_shield(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(planners_costs.shield_figures(150)) == []
    said = planners_costs.shielded
    with monkeypatch.context() as patch:
        patch.setattr(
            planners_costs, "shielded", lambda wanted, *rest: Verdict(wanted, said(wanted, *rest).planes, False, True)
        )
        assert len(failed(planners_costs.shield_figures(150))) == 2  # lets pass, and so inside
    monkeypatch.setattr(planners_costs, "violation", lambda plane, v: 0.0)
    monkeypatch.setattr(planners_costs, "shielded", lambda wanted, *rest: replace(said(wanted, *rest), velocity=0.0 * wanted))
    assert ["changed" in name for name in failed(planners_costs.shield_figures(150))] == [True]


def test_without_weights_there_is_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Network:
        raise AirworthyError("There are no NavRL weights.")

    monkeypatch.setattr(planners_costs, "load_network", none)
    assert planners_costs.usable_network() is None


# ---- all of them --------------------------------------------------------------------------------------------------------


def test_times_stand_beside_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = PlanningTime("ego", "EGO-Planner", 36, 1.5, 2.0, 3.0, 1.0, "3.3", 9.0)
    monkeypatch.setattr(planners, "planning_times", lambda pilots, flights: [timing])
    (figure,) = planners.time_figures(1)
    assert (figure.measured, figure.unit, figure.passed) == (1.5, "ms", True)
    assert figure.aim == "not judged; published 3.3"


@pytest.mark.parametrize(("everything", "many", "seeds"), [(False, 1, 5), (True, 10, 20)])
def test_everything_is_more_of_the_same(monkeypatch: pytest.MonkeyPatch, everything: bool, many: int, seeds: int) -> None:
    asked: dict[str, Any] = {}

    def stub(name: str) -> Any:
        def figures(*given: Any) -> Any:
            asked.setdefault(name, []).append(given)
            return zero(name, 0) if name == "demo_figure" else iter([zero(name, 0)])

        return figures

    names = ("cost", "twin", "map", "search", "ego", "path", "network", "shield", "time")
    for name in [*(f"{part}_figures" for part in names), "demo_figure"]:
        monkeypatch.setattr(planners, name, stub(name))
    monkeypatch.setattr(planners, "usable_network", lambda: None)
    assert len(list(planners.planner_figures(everything))) == len(names) - 1 + 2
    assert "network_figures" not in asked
    assert asked["demo_figure"] == [("EGO-Planner", seeds), ("Fast-Planner", seeds)]
    assert asked["search_figures"] == [(200 * many,)]
