"""The figures of the places are as they must be, and each kind of check can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.geometry import Box, Cylinder
from airworthy.scenes import Instance, scene
from airworthy.scenes.formats import Points, write_pcd
from airworthy.scenes.generators.flyingtrust import layout_of
from airworthy.verification import scene_figures, scenes
from airworthy.verification.damaged_files import FORMATS, broken_promises, damaged, read_outcome
from airworthy.verification.scenes import clearance_figure, cloud_cells, straight_figure, violations


@pytest.mark.slow
def test_all_are_as_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    figures = list(scene_figures())
    assert len(figures) == 1 + 7 + 1 + 1 + 1 + 3 + len(FORMATS)
    assert [f for f in figures if not f.passed] == []


def test_the_published_gates(data_dir: Path) -> None:
    assert scenes._gates(data_dir / "flightgoggles").passed


@pytest.mark.slow
def test_with_everything() -> None:
    assert [f for f in scene_figures(True) if not f.passed] == []


def test_numbers_out_of_range_show() -> None:
    forest = layout_of("forest", 2)
    assert violations(forest, 2) == []
    forest.instances.remove(next(item for item in forest.instances if item.semantic == "tree" and item.collide))
    assert any("number of trees is 48, stated 49 to 49" in phrase for phrase in violations(forest, 2))
    drop = layout_of("sudden_drop", 3)
    slab = next(k for k, item in enumerate(drop.instances) if item.semantic == "slab")
    x, y, z = drop.instances[slab].position
    drop.instances[slab] = replace(drop.instances[slab], position=(x, y, z + 0.1))
    assert any(phrase.startswith("sudden_drop:3: bottom of a slab is 1.6") for phrase in violations(drop, 3))
    maze = layout_of("maze", 1)
    assert any("share of dead ends" in phrase for phrase in violations(maze, 9))


@pytest.mark.parametrize(("name", "right"), [("forest", {1, 2}), ("urban", {1, 2}), ("narrow_gap", {1}), ("maze", {0})])
def test_straight_flights_must_be_as_many_as_published(name: str, right: set[int]) -> None:
    for count in range(11):
        assert straight_figure(name, [True] * count + [False] * (10 - count)).passed is (count in right)


@pytest.mark.slow
def test_what_cannot_be_solved_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "solvable", lambda plan: np.nan)
    assert scenes._solved((1,)).measured == 7


def test_a_chair_in_the_way_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    hall = scene("mid_gate")
    start = hall.start
    assert start is not None
    chair = Instance("chair", start.position, semantic="furniture")
    full = replace(hall, shapes={**hall.shapes, "chair": Box((0.2, 0.2, 0.2))}, instances=(chair,))
    monkeypatch.setattr(scenes, "scene", lambda name: full)
    figure = clearance_figure("mid_gate", "robustness")
    assert figure.measured < 0.0
    assert not figure.passed


def test_cells_of_a_cloud(tmp_path: Path) -> None:
    points = Points(np.array([[0.05, 0.05, 0.05], [0.25, 0.05, 0.15], [9.0, 0.0, 0.0]], np.float32))
    grid = cloud_cells(write_pcd(tmp_path / "a.pcd", points), np.zeros(3), np.array([0.3, 0.2, 0.2]))
    assert np.argwhere(grid).tolist() == [[0, 0, 0], [2, 0, 1]]


def test_what_readers_must_not_do_counts(tmp_path: Path) -> None:
    def outcome(answer: Any) -> str:
        def read(path: Path) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return read_outcome(read, tmp_path)

    good = Points(np.zeros((2, 3), np.float32))
    assert outcome(good) == "loaded"
    assert outcome(AssetError("The file has no end.")) == "refused"
    assert outcome(AssetError("no sentence")) == "broken"
    assert outcome(AssetError("Two\nlines.")) == "broken"
    assert outcome(KeyError("x")) == "broken"
    assert outcome(MemoryError()) == "broken"
    assert outcome(Points(np.full((2, 3), np.nan, np.float32))) == "broken"


def test_damage_differs_and_repeats() -> None:
    data = bytes(range(256)) * 4
    one, two = ([damaged(data, rng) for _ in range(50)] for rng in (np.random.default_rng(3), np.random.default_rng(3)))
    assert one == two
    assert len(set(one)) > 40


@pytest.mark.parametrize("name", FORMATS)
def test_some_damaged_files_load_and_some_do_not(name: str) -> None:
    """So that the damage reaches beyond the header, and is damage."""
    wrong, _, loaded = broken_promises(name, 100, seed=9)
    assert wrong == 0
    assert loaded >= 5
    assert loaded <= 95 or name == "mtl"  # what is wrong with a material is left out with a warning


@pytest.mark.parametrize(
    ("place", "radius", "half", "said"),
    [
        ((29.5, 0.0, 2.0), 0.5, 2.0, ""),
        ((29.8, 0.0, 2.0), 0.5, 2.0, "place of a trunk along is 30.3, stated 0 to 30"),
        ((0.0, -19.8, 2.0), 0.5, 2.0, "place of a trunk across is 20.3, stated 0 to 20"),
        ((0.0, 0.0, 2.0), 0.7, 2.0, "radius of a trunk is 0.7, stated 0.3 to 0.6"),
        ((0.0, 0.0, 4.25), 0.5, 4.25, "height of a trunk is 8.5, stated 3.5 to 8"),
        ((0.0, 0.0, 1.5), 0.5, 1.5, "height of a trunk is 3, stated 3.5 to 8"),
        ((0.0, 0.0, 2.5), 0.5, 2.0, "foot of a trunk is 0.5, stated 0 to 0"),
    ],
)
def test_a_trunk_out_of_its_stated_range_shows(
    place: tuple[float, float, float], radius: float, half: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenes, "_cylinders", lambda *_: [(np.array(place), Cylinder(radius, half), np.array([0.0, 0.0, 1.0]))])
    found = [
        f"{name} is {value:.3g}, stated {low:g} to {high:g}"
        for name, value, low, high in scenes._forest(layout_of("forest", 2), 2)
        if name != "number of trees" and not low - 1e-9 <= value <= high + 1e-9
    ]
    assert found == ([said] if said else [])
