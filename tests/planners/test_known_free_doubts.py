"""What the planner doubts before anything flies, and how much room it is told of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import airworthy as aw
from airworthy.benchmarks.navigation.config import NavigationConfig, asked_flights
from airworthy.benchmarks.navigation.doubts import start_room, warn_of_doubts, warn_of_doubts_in_benchmark
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.benchmarks.navigation.own_scenes import OwnSceneConfig, placed
from airworthy.core.errors import AssetWarning
from airworthy.geometry import Box, Shape
from airworthy.planners.common.interface import Airframes, Mission, StartRoom
from airworthy.planners.known_free.doubts import doubts_of
from airworthy.planners.known_free.planner import KnownFreePlanner
from airworthy.scenes import Instance, Material, Scene, SceneBatch
from airworthy.vehicles import vehicle


def walled(*walls: tuple[float, float]) -> SceneBatch:
    """A floor at z = 0 and thin walls, 2 m high, whose middles are there."""
    boxes: dict[str, Shape] = {"floor": Box((9.0, 9.0, 0.05)), "wall": Box((0.4, 0.02, 1.0)), "across": Box((0.02, 0.4, 1.0))}
    parts = [Instance("floor", (0.0, 0.0, -0.05), materials=("m",))]
    parts += [Instance("wall" if x == 0.0 else "across", (x, y, 1.0), materials=("m",)) for x, y in walls]
    return SceneBatch(Scene("s", boxes, {"m": Material()}, {}, tuple(parts)))


@pytest.mark.parametrize(
    ("walls", "heading", "nearest", "unseen"),
    [
        ([], 0.0, 1.0, np.inf),
        ([(0.0, 0.62)], 0.0, 0.6, 0.6),
        ([(0.0, 0.62)], np.pi / 2.0, 0.6, np.inf),
        ([(0.52, 0.0)], 0.0, 0.5, np.inf),
        ([(-0.52, 0.0)], 0.0, 0.5, 0.5),
        ([(-0.52, 0.0)], 3.1, 0.5, np.inf),
    ],
)
def test_room_is_what_is_near_and_what_no_camera_looks_at(
    walls: list[tuple[float, float]], heading: float, nearest: float, unseen: float
) -> None:
    found = start_room(walled(*walls), np.array([[0.0, 0.0, 1.0]]), np.array([heading]), np.zeros(1, np.int64))
    assert found.nearest[0] == pytest.approx(nearest, abs=1e-4)
    # The edge of a wall ahead may be outside of what a camera looks at.
    assert found.unseen[0] == pytest.approx(unseen, rel=1e-4) or (np.isinf(unseen) and found.unseen[0] > 0.55)


def mission(count: int, lag: float = 0.033, radius: float = 0.3) -> Mission:
    one = replace(Airframes.of([vehicle("real_12")] * count, radius), lag=np.full(count, lag))
    line, level = np.tile([0.0, 0.0, 1.0], (count, 1)), np.full(count, 3.0)
    return Mission(line, line + np.array([5.0, 0.0, 0.0]), level, level, line - 9.0, line + 9.0, np.arange(count), vehicle=one)


def test_each_reason_is_told_of_the_flights_that_have_it() -> None:
    planner, far = KnownFreePlanner(), np.full(3, np.inf)
    assert planner.doubts(mission(3), StartRoom(far, far)) == []
    near, unseen = np.array([0.29, 0.5, np.inf]), np.array([np.inf, 0.89, 0.91])
    ((tight, stays), (blind, flies_in)) = planner.doubts(mission(3), StartRoom(near, unseen))
    assert tight.tolist() == [True, False, False]
    assert "0.29 m, and 0.30 m" in stays
    assert blind.tolist() == [False, True, False]
    assert "0.89 m away, and the 0.9 m" in flies_in
    ((slow, hits),) = planner.doubts(mission(3, lag=0.2), StartRoom(far, far))
    assert slow.all()
    assert "rotors lag by 0.2 s" in hits
    assert doubts_of(mission(3, lag=0.1), StartRoom(far, far), planner.config) == []
    # A larger body takes more around its start as free.
    large = KnownFreePlanner.for_body(0.6)
    ((blind, why),) = large.doubts(mission(1, radius=0.6), StartRoom(np.array([1.0]), np.array([1.5])))
    assert blind.all()
    assert "1.8 m around it" in why


def test_users_are_warned_with_counts() -> None:
    with pytest.warns(AssetWarning, match=r"^known_free: in 3 of 3 flights rotors lag by 0\.2 s"):
        warn_of_doubts("known_free", KnownFreePlanner(), mission(3, lag=0.2), StartRoom(np.full(3, 9.0), np.full(3, 9.0)))


def test_a_flight_beside_a_wall_is_warned_of(tmp_path: Path) -> None:
    """By `fly`, from a file of the user's own; nothing needs to fly far for that."""
    (tmp_path / "wall.obj").write_text(
        "v -3 0.6 0\nv 3 0.6 0\nv 3 0.6 2\nv -3 0.6 2\nv -6 -6 0\nv 6 -6 0\nv 6 6 0\nv -6 6 0\nf 1 2 3 4\nf 5 6 7 8\n"
    )
    with pytest.warns(AssetWarning, match=r"known_free: something that no camera sees from the start is 0\.6"):
        aw.fly(
            vehicle=("real_12",),
            pilot="known_free",
            scene=str(tmp_path / "wall.obj"),
            keep_frame=True,
            start=(0.0, 0.0, 1.0),
            goal=(4.0, 0.0, 1.0),
            time_limit=0.2,
            report=False,
            out=tmp_path / "out",
        )


def corridor(folder: Path) -> Path:
    """A floor and a ceiling 3 m apart between walls 1.7 m apart and 12 m long, closed at both ends."""
    x, y, z = 6.0, 0.85, 3.0
    corners = [(a, b, c) for c in (0.0, z) for b in (-y, y) for a in (-x, x)]
    faces = ["1 2 4 3", "5 6 8 7", "1 2 6 5", "3 4 8 7", "1 3 7 5", "2 4 8 6"]
    lines = [f"v {a} {b} {c}" for a, b, c in corners] + [f"f {face}" for face in faces]
    path = folder / "corridor.obj"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_benchmark_counts_what_its_planners_doubt_in_places_of_ones_own(tmp_path: Path) -> None:
    asked = NavigationConfig(
        pilots=("known_free", "fast"), scenes=(str(corridor(tmp_path)),), pairs=2, vehicles=("real_12", "real_13")
    )
    config = placed(asked, 0.3)
    assert isinstance(config, OwnSceneConfig)
    # One begins between the walls, one so far beside them that no draw of its start comes near.
    pairs = tuple(replace(config.places[0].pairs[0], start=(-1.0, y, 1.5)) for y in (0.0, 2.3))
    config = replace(config, places=(replace(config.places[0], pairs=pairs),))
    flights = asked_flights(config)
    methods = [method_of(name) for name in asked.pilots]
    with pytest.warns(AssetWarning) as told:
        warn_of_doubts_in_benchmark(methods, flights, config)
    (said,) = [str(item.message) for item in told]
    assert said.startswith("known_free: in 2 of 4 flights something that no camera sees from the start is 0.")
    # Who is no planner of ours, and who flies nothing, is not asked.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_doubts_in_benchmark(methods[1:], flights, config)
        warn_of_doubts_in_benchmark([replace(methods[0], own=True)], flights, config)
        warn_of_doubts_in_benchmark([replace(methods[0], kind="pilot")], flights, config)
        warn_of_doubts_in_benchmark(methods, [], config)


def test_places_of_the_benchmark_have_room_where_flights_begin() -> None:
    config = NavigationConfig(
        pilots=("known_free",), scenarios=("maze", "narrow_gap"), vehicles=("real_12",), configurations=(1,)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_doubts_in_benchmark([method_of("known_free")], asked_flights(config), config)
