"""What the planner doubts before anything flies, and how much room it is told of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import airworthy as aw
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.scene import GoalFlight
from airworthy.benchmarks.navigation import doubts as doubts_module
from airworthy.benchmarks.navigation.config import NavigationConfig, asked_flights, vehicle_names_of
from airworthy.benchmarks.navigation.doubts import warn_of_doubts, warn_of_doubts_in_benchmark
from airworthy.benchmarks.navigation.methods import method_of, own_method
from airworthy.benchmarks.navigation.missions import draws_of
from airworthy.benchmarks.navigation.own_scenes import OwnSceneConfig, placed
from airworthy.benchmarks.navigation.start_room import start_room
from airworthy.core.arrays import ArrayBool
from airworthy.core.errors import AssetWarning
from airworthy.geometry import Box, Shape
from airworthy.planners.common.interface import Airframes, Mission, StartRoom
from airworthy.planners.known_free.config import KnownFreeSettings
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


FLOOR_AND_ROOF = [(0.0, 0.0, -0.05), (0.0, 0.0, 3.05)]
NONE = np.zeros(1, np.int64)


def thing(shape: Shape, *places: tuple[float, float, float]) -> SceneBatch:
    """One shape at places."""
    parts = tuple(Instance("thing", place, materials=("m",)) for place in places)
    return SceneBatch(Scene("s", {"thing": shape}, {"m": Material()}, {}, parts))


@pytest.mark.parametrize("z", [1.45, 2.35, -0.35])
def test_things_straight_above_and_below_are_unseen(z: float) -> None:
    """Slabs of 3 x 3 m: no camera that looks ahead shows them from below or from above."""
    slab = thing(Box((1.5, 1.5, 0.05)), (0.0, 0.0, z))
    found = start_room(slab, np.array([[0.0, 0.0, 1.0]]), np.zeros(1), NONE)
    assert found.unseen[0] == found.nearest[0] == pytest.approx(abs(z - 1.0) - 0.05)


@pytest.mark.parametrize("half", [0.03, 0.01, 0.001])
def test_nothing_is_too_thin_to_be_met(half: float) -> None:
    """Poles all around, in between of any spread of rays; those in the picture do not count."""
    for degrees in np.linspace(-180.0, 180.0, 50):
        angle = np.deg2rad(degrees)
        pole = thing(Box((half, half, 1.5)), (0.75 * np.cos(angle), 0.75 * np.sin(angle), 1.0))
        found = start_room(pole, np.array([[0.0, 0.0, 1.0]]), np.zeros(1), NONE)
        if abs(degrees) > 42.5:
            assert found.unseen[0] == pytest.approx(0.75, abs=1.5 * half)
        elif abs(degrees) < 36.0:
            # It reaches out of the picture, above sooner than below: the camera hangs 2 cm low.
            above = 0.6235 * 0.75 * np.cos(angle) - 0.02
            assert found.unseen[0] == pytest.approx(np.hypot(0.75, above), abs=0.01 + 1.5 * half)


def test_what_lies_in_the_picture_is_seen() -> None:
    sizes = {"ahead": (2.0, 0.0, 1.0), "beside": (2.0, 1.75, 1.0), "above": (2.0, 0.0, 2.35)}
    found = {
        name: start_room(thing(Box((0.05, 0.05, 0.05)), at), np.array([[0.0, 0.0, 1.0]]), np.zeros(1), NONE).unseen[0]
        for name, at in sizes.items()
    }
    assert found["ahead"] == np.inf
    assert found["beside"] == pytest.approx(np.hypot(1.95, 1.7), abs=0.05)
    assert found["above"] == pytest.approx(np.hypot(1.95, 1.3), abs=0.05)


def test_ends_of_the_box_are_known_and_what_stands_before_them_is_not() -> None:
    plates = thing(Box((9.0, 9.0, 0.05)), *FLOOR_AND_ROOF)
    start, low, high = np.array([[0.0, 0.0, 1.0]]), np.array([[-9.0, -9.0, 0.0]]), np.array([[9.0, 9.0, 3.0]])
    assert start_room(plates, start, np.zeros(1), NONE).unseen[0] == pytest.approx(1.0)
    assert start_room(plates, start, np.zeros(1), NONE, low, high).unseen[0] == np.inf
    # A floor that is a plate of its own thickness ends the box with its lower side.
    up = np.array([0.0, 0.0, 0.1])
    assert start_room(plates, start, np.zeros(1), NONE, low - up, high).unseen[0] == np.inf
    assert start_room(plates, start, np.zeros(1), NONE, low - 3.0 * up, high).unseen[0] == pytest.approx(1.0)
    assert start_room(plates, start, np.zeros(1), NONE, low, high + 3.0 * up).unseen[0] == pytest.approx(2.0, abs=1e-3)


def test_things_are_looked_for_as_far_as_large_bodies_need() -> None:
    behind = thing(Box((0.05, 0.05, 0.05)), (-2.55, 0.0, 1.0))
    found = start_room(behind, np.array([[0.0, 0.0, 1.0], [-5.7, 0.0, 1.0]]), np.array([0.0, np.pi]), np.zeros(2, np.int64))
    assert found.unseen.tolist() == pytest.approx([2.5, np.inf])
    assert found.nearest.tolist() == pytest.approx([2.5, np.inf])


def test_many_starts_are_each_looked_around_as_if_alone() -> None:
    rng, batch = np.random.default_rng(3), walled((0.0, 1.2), (-1.1, 0.0))
    start = np.array([0.0, 0.0, 1.0]) + rng.uniform(-0.5, 0.5, (70, 3))
    start[10:20], heading = start[:10], rng.uniform(-3.0, 3.0, 70)
    heading[10:15] = heading[:5]
    together = start_room(batch, start, heading, np.zeros(70, np.int64))
    for k in (0, 7, 12, 17, 69):
        alone = start_room(batch, start[k : k + 1], heading[k : k + 1], NONE)
        assert (alone.nearest[0], alone.unseen[0]) == (together.nearest[k], together.unseen[k])


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
    for lag in (0.11, 0.2):
        ((slow, hits),) = planner.doubts(mission(3, lag=lag), StartRoom(far, far))
        assert slow.all()
        assert f"rotors lag by {lag} s" in hits
    assert doubts_of(mission(3, lag=0.1), StartRoom(far, far), planner.config) == []
    # A larger body takes more around its start as free.
    large = KnownFreePlanner.for_body(0.6)
    ((blind, why),) = large.doubts(mission(1, radius=0.6), StartRoom(np.array([1.0]), np.array([1.5])))
    assert blind.all()
    assert "1.8 m around it" in why


def test_the_worst_of_several_flights_is_told() -> None:
    ((tight, stays), (blind, flies_in)) = KnownFreePlanner().doubts(
        mission(3), StartRoom(np.array([0.25, 0.1, 0.28]), np.array([0.8, 0.7, 0.85]))
    )
    assert tight.all()
    assert "0.10 m, and 0.30 m" in stays
    assert blind.all()
    assert "is 0.70 m away" in flies_in


def test_of_an_unknown_vehicle_the_body_that_the_planner_keeps_room_for_counts_and_nothing_else() -> None:
    nobody, far = replace(mission(2), vehicle=None), np.full(2, np.inf)
    ((tight, stays),) = KnownFreePlanner().doubts(nobody, StartRoom(np.array([0.29, 0.31]), far))
    assert tight.tolist() == [True, False]
    assert "0.29 m, and 0.30 m" in stays
    assert KnownFreePlanner().doubts(nobody, StartRoom(far, far)) == []


def test_a_body_larger_than_the_one_that_room_is_kept_for_is_doubted() -> None:
    far = np.full(1, np.inf)
    ((large, why),) = KnownFreePlanner().doubts(mission(1, radius=0.53), StartRoom(far, far))
    assert large.all()
    assert "radius of 0.53 m, and it keeps room for one of 0.30 m" in why
    assert KnownFreePlanner.for_body(0.53).doubts(mission(1, radius=0.53), StartRoom(far, far)) == []
    # How near a start is to something is compared with the vehicle's own ball.
    ((tight, stays),) = KnownFreePlanner.for_body(0.53).doubts(mission(1, radius=0.53), StartRoom(np.array([0.5]), far))
    assert tight.all()
    assert "0.50 m, and 0.53 m" in stays


def test_less_thrust_than_was_ever_flown_is_doubted() -> None:
    far, plain = np.full(2, np.inf), mission(2)
    weak = replace(vehicle("real_12"), mass=6.5)
    two = replace(plain, vehicle=Airframes.of([weak, vehicle("real_05")], 0.3))
    ((which, why),) = KnownFreePlanner().doubts(two, StartRoom(far, far))
    assert which.tolist() == [True, False]
    assert "thrust is 1.02 times the weight, and it was flown with 1.4" in why
    # All that the benchmark flies have enough.
    fleet = Airframes.of([vehicle(name) for name in vehicle_names_of(NavigationConfig().vehicles)], 0.3)
    rows = np.full(len(fleet), np.inf)
    assert KnownFreePlanner().doubts(replace(mission(len(fleet)), vehicle=fleet), StartRoom(rows, rows)) == []


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


def starting(config: OwnSceneConfig, *starts: tuple[float, float, float]) -> OwnSceneConfig:
    """The same with pairs that begin elsewhere."""
    pairs = tuple(replace(config.places[0].pairs[0], start=start) for start in starts)
    return replace(config, places=(replace(config.places[0], pairs=pairs),))


class Mine(KnownFreePlanner):
    """As users are told to make one."""

    def __init__(self) -> None:
        super().__init__(KnownFreePlanner.for_body(0.33, settings=KnownFreeSettings(speed=2.0)).config)


class Broken(Mine):
    """Raises where it is asked."""

    def doubts(self, mission: Mission, room: StartRoom) -> list[tuple[ArrayBool, str]]:
        raise RuntimeError("no idea")


class Short(Mine):
    """Answers for one flight."""

    def doubts(self, mission: Mission, room: StartRoom) -> list[tuple[ArrayBool, str]]:
        return [(np.ones(1, bool), "it is afraid")]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Mine, "Mine: in 2 of 4 flights something that no camera sees from the start is 0.7"),
        (Broken, "Broken: what it doubts cannot be asked: RuntimeError: no idea"),
        (Short, "Short: what it doubts cannot be asked: ValueError: doubts gave flights of shape (1,), expected (4,)"),
    ],
)
def test_a_subclass_of_ones_own_doubts_in_a_benchmark(tmp_path: Path, kind: type, says: str) -> None:
    asked = NavigationConfig(scenes=(str(corridor(tmp_path)),), pairs=2, vehicles=("real_12", "real_13"))
    config = placed(asked, 0.3)
    assert isinstance(config, OwnSceneConfig)
    config = starting(config, (-1.0, 0.0, 1.5), (-1.0, 2.3, 1.5))
    with pytest.warns(AssetWarning) as told:
        warn_of_doubts_in_benchmark([own_method(kind)], asked_flights(config), config)
    (said,) = [str(item.message) for item in told]
    assert said.startswith(says)


def test_a_benchmark_tells_of_starts_nearer_than_the_body_and_looks_from_where_vehicles_hover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = NavigationConfig(scenes=(str(corridor(tmp_path)),), pairs=2, vehicles=("real_12",))
    config = placed(asked, 0.3)
    assert isinstance(config, OwnSceneConfig)
    config = starting(config, (-1.0, 0.0, 0.2), (-1.0, 2.3, 1.5))
    flights, looked = asked_flights(config), []
    usual = doubts_module.start_room
    monkeypatch.setattr(doubts_module, "start_room", lambda *given: looked.append(given) or usual(*given))
    with pytest.warns(AssetWarning) as told:
        warn_of_doubts_in_benchmark([method_of("known_free")], flights, config)
    # The floor there is the end of the box, which the planner knows: it is near, but not unseen.
    tight, blind = (str(item.message) for item in told)
    assert "in 1 of 2 flights something is nearer to the start than the radius" in tight
    assert "(0.20 m, and 0.30 m)" in tight
    assert "in 1 of 2 flights something that no camera sees from the start is 0.7" in blind
    ((_, start, heading, _, lower, upper),) = looked
    draws = draws_of(flights, config.seed, config.perturb)
    assert heading.tolist() == draws.yaw.tolist()
    assert start[:, :2] == pytest.approx(np.array([[-1.0, 0.0], [-1.0, 2.3]]) + draws.offset)
    place = config.places[0]
    assert (lower.tolist(), upper.tolist()) == ([list(place.lower)] * 2, [list(place.upper)] * 2)


@pytest.mark.parametrize(("goal", "told"), [((4.0, 0.0, 1.0), True), ((0.0, 4.0, 1.0), False), ((0.0, -4.0, 1.0), True)])
def test_flights_begin_looking_towards_their_goals(goal: tuple[float, float, float], told: bool) -> None:
    """With a planner of one's own, an object for each flight."""
    batch = walled((0.0, 0.9))
    config = FlyConfig(pilot="known_free", waypoints=("0,0,1", ",".join(str(part) for part in goal)), vehicle=("virt_05",))
    scene = batch.scenes[0]
    for kind in (Mine, Broken):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GoalFlight(config, [vehicle("virt_05")], scene, batch, own_method(kind))
        said = [str(item.message) for item in caught if issubclass(item.category, AssetWarning)]
        expected = ["what it doubts cannot be asked"] if kind is Broken else ["no camera sees from the start is 0.88"] * told
        assert len(said) == len(expected)
        assert all(part in line for part, line in zip(expected, said, strict=True))


def test_a_benchmark_counts_what_its_planners_doubt_in_places_of_ones_own(tmp_path: Path) -> None:
    asked = NavigationConfig(
        pilots=("known_free", "fast"), scenes=(str(corridor(tmp_path)),), pairs=2, vehicles=("real_12", "real_13")
    )
    config = placed(asked, 0.3)
    assert isinstance(config, OwnSceneConfig)
    # One begins between the walls, one so far beside them that no draw of its start comes near.
    config = starting(config, (-1.0, 0.0, 1.5), (-1.0, 2.3, 1.5))
    flights = asked_flights(config)
    methods = [method_of(name) for name in asked.pilots]
    with pytest.warns(AssetWarning) as told:
        warn_of_doubts_in_benchmark(methods, flights, config)
    (said,) = [str(item.message) for item in told]
    assert said.startswith("known_free: in 2 of 4 flights something that no camera sees from the start is 0.")
    # Who has no doubts, who is no planner, and who flies nothing, is not asked.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_doubts_in_benchmark(methods[1:], flights, config)
        warn_of_doubts_in_benchmark([replace(methods[0], kind="pilot")], flights, config)
        warn_of_doubts_in_benchmark(methods, [], config)


def test_places_of_the_benchmark_have_room_where_flights_begin() -> None:
    config = NavigationConfig(
        pilots=("known_free",), scenarios=("maze", "narrow_gap"), vehicles=("real_12",), configurations=(1,)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_doubts_in_benchmark([method_of("known_free")], asked_flights(config), config)
