"""Local maps: what is free, occupied and unknown, what is forgotten, and that flights do not see one another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.planners.mapping_cases import CAMERA, EVERY, Array, looking, mission, wall_image

import airworthy.planners.mapping.scene as mapping_scene
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, cast
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping import (
    FREE,
    OCCUPIED,
    UNKNOWN,
    LocalMaps,
    camera_pose,
    map_boxes,
    mapping_camera,
    maps_of_scene,
    read_pixels,
)
from airworthy.planners.mapping.boxes import pixel_slopes
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene
from airworthy.scenes.record import Actor, Instance, Scene

HALL = mission([[-10.0, -10.0, 0.0]], [[10.0, 10.0, 3.0]])
EYE = np.array([[-5.03, 0.02, 1.53]])
"""In negative coordinates, away from faces of cells."""
TWO_AHEAD = np.array([2.0, 0.0, 0.0])


def mapped(maps: LocalMaps, depth: Any, at: Array = EYE, turn: Array | None = None, times: int = 6) -> LocalMaps:
    """The maps after so many equal images of flight 0; from unknown, the sixth hit makes a cell occupied."""
    for _ in range(times):
        maps.update([0], depth, at, (looking() if turn is None else turn)[None])
    return maps


def state(maps: LocalMaps, *points: tuple[float, float, float], flight: int = 0) -> list[int]:
    return maps.state([flight], np.array([points])).tolist()[0]


def test_before_a_wall_is_free_the_wall_is_occupied_and_behind_is_unknown() -> None:
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1))
    x, y, z = EYE[0]
    assert state(maps, (x + 1.0, y, z), (x + 2.0, y, z), (x + 2.5, y, z)) == [FREE, OCCUPIED, UNKNOWN]
    points = np.array([[[x + 1.0, y, z], [x + 1.9, y, z], [x + 2.0, y, z], [x + 2.1, y, z], [x + 2.5, y, z]]])
    assert maps.occupied([0], points).tolist() == [[False, True, True, True, False]]  # inflated by a cell; unknown is free


@pytest.mark.parametrize("ground", [-0.01, -1.0])
def test_a_known_floor_is_inflated_before_anything_is_seen_and_stays(ground: float) -> None:
    """The cell that holds height 0, all below and three above: of cells of 0.1 m from `ground` on, free from 0.39 or 0.4 m."""
    settings = replace(EVERY, ground=ground, inflation=0.299, floor=True, field=True)
    maps = LocalMaps(settings, HALL, CAMERA)
    free = 0.39 if ground == -0.01 else 0.4
    x, y, _ = EYE[0]
    points = np.array([[[x + 1.0, y, z] for z in (ground + 0.005, 0.0, free - 0.005, free + 0.005, 1.5)]])
    assert maps.occupied([0], points).tolist() == [[True, True, True, False, False]]
    mapped(maps, wall_image(1))
    assert maps.occupied([0], points).tolist() == [[True, True, True, False, False]]
    # From the middle of the first free cell on, distances are those to the middle of the last inflated one.
    high = np.array([[[x + 1.0, y, free + 0.05 + 0.1 * k] for k in range(3)]])
    assert maps.distance([0], high)[0][0] == pytest.approx([0.1, 0.2, 0.3])


def test_log_odds_go_by_the_published_steps() -> None:
    """Unknown lies 0.01 below the least; a hit adds logit(0.65); from the sixth on the cell is occupied; the most is held."""
    maps, wall = LocalMaps(EVERY, HALL, CAMERA), EYE + TWO_AHEAD
    hit, least, most = np.log(0.65 / 0.35), np.log(0.12 / 0.88), np.log(0.9 / 0.1)
    expected = least - 0.01
    for count in range(1, 9):
        mapped(maps, wall_image(1), times=1)
        expected = min(expected + hit, most)
        assert maps.log_odds([0], wall[None])[0, 0] == pytest.approx(expected, abs=8 / 4096)
        assert (state(maps, tuple(wall[0])) == [OCCUPIED]) == (count >= 6)
    for _ in range(3):  # something farther is seen through it: misses
        mapped(maps, wall_image(1, 3.0), times=1)
        expected -= hit
        assert maps.log_odds([0], wall[None])[0, 0] == pytest.approx(expected, abs=8 / 4096)
    assert not maps.occupied([0], wall[None]).any()


@pytest.mark.parametrize("depth", [0.0, np.inf, 5.1])
def test_no_return_frees_what_lies_within_the_longest_ray(depth: float) -> None:
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1, depth))
    x, y, z = EYE[0]
    assert state(maps, (x + 0.5, y, z), (x + 4.4, y, z), (x + 4.7, y, z)) == [FREE, FREE, UNKNOWN]
    assert not maps.inflated(0)[0][..., :-1].any()


def test_a_hit_beyond_the_longest_ray_is_a_miss_at_its_end() -> None:
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1, 4.8))
    assert not maps.inflated(0)[0][..., :-1].any()


@pytest.mark.parametrize("depth", [np.nan, -1.0, -np.inf, 0.19])
def test_what_is_no_measurement_changes_nothing(depth: float) -> None:
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1))
    before, bound = maps._odds.numpy().copy(), maps.bound(0)
    mapped(maps, wall_image(1, depth))
    np.testing.assert_array_equal(maps._odds.numpy(), before)
    np.testing.assert_array_equal(maps.bound(0), bound)


@pytest.mark.parametrize(
    ("yaw", "pitch", "direction"), [(np.pi / 2, 0, (0, 1, 0)), (np.pi, 0, (-1, 0, 0)), (0, np.pi / 2, (0, 0, -1))]
)
def test_a_turned_camera_sees_where_it_looks(yaw: float, pitch: float, direction: tuple[float, float, float]) -> None:
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1, 1.0), turn=looking(yaw, pitch, roll=0.3))
    ahead = EYE[0] + np.array(direction)
    aside = EYE[0] + np.array((1, 0, 0) if direction[0] == 0 else (0, 1, 0))
    assert state(maps, tuple(EYE[0] + 0.5 * np.array(direction)), tuple(ahead), tuple(aside)) == [FREE, OCCUPIED, UNKNOWN]


def test_rows_and_columns_of_an_image_are_down_and_right() -> None:
    """Only the upper left quarter returns 2 m: occupied up and to the left (world z up, y left), free elsewhere."""
    image = np.zeros((1, CAMERA.height, CAMERA.width), np.float32)
    image[:, :15, :20] = 2.0
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), image)
    x, y, z = EYE[0]
    far, near = ([(x + d, y + a * d, z + b * d) for a in (0.4, -0.4) for b in (0.4, -0.4)] for d in (2.0, 1.0))
    assert [s == OCCUPIED for s in state(maps, *far)] == [True, False, False, False]
    assert state(maps, *near) == [FREE] * 4


def test_the_camera_of_the_published_planners() -> None:
    full, fast = mapping_camera("full"), mapping_camera("fast")
    np.testing.assert_allclose(full.unproject([[321.046, 243.45]]), [[0, 0, 1]], atol=1e-12)
    pixels = np.array([[0.0, 0.0], [7.0, 100.0], [319.0, 239.0]])
    np.testing.assert_allclose(fast.unproject(pixels), full.unproject(2 * pixels), atol=1e-12)
    position, turn = camera_pose([[1.0, 2.0, 3.0]], [[0.0, 0.0, 0.0, 1.0]])
    np.testing.assert_allclose(position, [[1.0, 2.0, 2.98]])
    assert np.allclose(turn, looking()) or np.allclose(turn, -looking())


@pytest.mark.parametrize(("border", "skip"), [(1, 2), (2, 3), (0, 1)])
@pytest.mark.parametrize("whole_pixels", [True, False])
def test_reading_few_pixels_gives_the_same_map(border: int, skip: int, whole_pixels: bool) -> None:
    camera = replace(CAMERA, integer_pixels=whole_pixels)
    settings = MapSettings(border=border, skip=skip)
    few = read_pixels(camera, settings)
    slopes, _, shape = pixel_slopes(camera, settings)
    assert shape == (few.height, few.width)
    rays = few.rays().directions.reshape(-1, 3)
    np.testing.assert_allclose(rays[:, :2] / rays[:, 2:], slopes, atol=1e-12)
    image = np.random.default_rng(1).uniform(0.5, 4.0, (1, camera.height, camera.width)).astype(np.float32)
    one, two = LocalMaps(settings, HALL, camera), LocalMaps(settings, HALL, camera)
    mapped(one, image)
    mapped(two, image[:, border : camera.height - border : skip, border : camera.width - border : skip])
    np.testing.assert_array_equal(one._odds.numpy(), two._odds.numpy())


def test_the_ceiling_is_occupied_everywhere_and_so_is_outside() -> None:
    maps = LocalMaps(EVERY, HALL, CAMERA)
    points = np.array([[[9.0, 9.0, 2.98], [9.0, 9.0, 2.995], [0.0, 0.0, 3.01], [0.0, 0.0, -0.02], [10.01, 0.0, 1.0]]])
    assert maps.occupied([0], points).tolist() == [[False, True, True, True, True]]
    mapped(maps, wall_image(1))
    x, y, _ = EYE[0]
    assert maps.occupied([0], [[[x + 1.0, y, 2.995], [x + 1.0, y, 2.9], [np.nan, 0.0, 1.0]]]).tolist() == [[True, False, True]]


def test_a_camera_outside_its_box_or_without_a_pose_is_not_heard() -> None:
    maps = LocalMaps(EVERY, HALL, CAMERA)
    for at in ([[0.0, 0.0, 3.2]], [[np.nan, 0.0, 1.0]], [[11.0, 0.0, 1.0]]):
        mapped(maps, wall_image(1), np.array(at))
    maps.update([0], wall_image(1), EYE, [[np.nan, 0.0, 0.0, 1.0]])
    assert not maps.inflated(0)[0][..., :-1].any()
    lo, hi = maps.bound(0)
    np.testing.assert_array_equal(lo, hi)


def test_rays_end_before_the_border_of_the_box() -> None:
    """A wall 0.3 m beyond the box: the way to the border is free, and nothing becomes occupied."""
    at = np.array([[8.8, 0.0, 1.5]])
    maps = mapped(LocalMaps(EVERY, HALL, CAMERA), wall_image(1, 1.5), at)
    assert state(maps, (9.5, 0.0, 1.5), (9.97, 0.0, 1.5)) == [FREE, FREE]
    assert not maps.inflated(0)[0][..., :-1].any()


def test_the_shell_around_the_local_bound_is_forgotten_and_the_inflated_layer_is_not() -> None:
    """A wall 2 m behind, then a look ahead: 15 cells of margin, so cells 1.5 to 2 m behind the camera are forgotten."""
    maps = mapped(LocalMaps(replace(EVERY, margin=15), HALL, CAMERA), wall_image(1, 1.7), turn=looking(np.pi))
    x, y, z = EYE[0]
    assert state(maps, (x - 1.7, y, z), (x - 1.2, y, z)) == [OCCUPIED, FREE]
    mapped(maps, wall_image(1), times=1)
    assert state(maps, (x - 1.7, y, z), (x - 1.2, y, z)) == [UNKNOWN, FREE]
    assert maps.occupied([0], [[[x - 1.7, y, z]]]).all()


def test_what_leaves_the_window_is_forgotten_and_what_stays_is_kept() -> None:
    settings = replace(EVERY, margin=30)
    maps = mapped(LocalMaps(settings, mission([[-10.0, -10.0, 0.0]], [[40.0, 10.0, 3.0]]), CAMERA), wall_image(1))
    wall = EYE + TWO_AHEAD
    half = 0.1 * (maps.boxes.side[0, 0] // 2)
    for ahead, kept in ((half - 0.3, True), (half + 2.3, False)):
        maps.update([0], wall_image(1, np.nan), EYE + np.array([ahead, 0.0, 0.0]), looking()[None])
        assert maps.occupied([0], wall[None]).all() == kept
    assert state(maps, tuple(wall[0])) == [UNKNOWN]
    lower = maps.inflated(0)[1]
    np.testing.assert_allclose((lower - HALL.lower[0]) / 0.1, np.rint((lower - HALL.lower[0] + (0, 0, 0.01)) / 0.1), atol=0.11)


def test_maps_begin_anew_when_reset() -> None:
    maps = mapped(LocalMaps(replace(EVERY, field=True), HALL, CAMERA), wall_image(1))
    maps.reset([0])
    assert not maps.occupied([0], (EYE + TWO_AHEAD)[None]).any()
    assert (maps.state([0], EYE[None] + np.linspace(0.1, 3.0, 30)[None, :, None] * (1.0, 0.0, 0.0)) == UNKNOWN).all()
    fresh = mapped(LocalMaps(replace(EVERY, field=True), HALL, CAMERA), wall_image(1, 3.0))
    mapped(maps, wall_image(1, 3.0))
    np.testing.assert_array_equal(maps._odds.numpy(), fresh._odds.numpy())
    np.testing.assert_array_equal(maps._squared.numpy(), fresh._squared.numpy())


def test_a_flight_does_not_depend_on_its_place_its_company_or_threads() -> None:
    settings = MapSettings(field=True, margin=10)
    lower = np.array([[-8.0, -6.0, 0.0], [-3.0, -4.0, 0.0], [0.0, 0.0, 0.0], [-20.0, 5.0, 0.0]])
    upper = lower + np.array([[16.0, 12.0, 3.0], [9.0, 8.0, 10.0], [5.0, 5.0, 2.0], [30.0, 9.0, 4.0]])
    rng = np.random.default_rng(2)
    frames = [(lower + rng.uniform(0.3, 0.7, (4, 1)) * (upper - lower), rng.normal(size=(4, 4))) for _ in range(4)]
    images = rng.uniform(0.5, 6.0, (4, 4, CAMERA.height, CAMERA.width)).astype(np.float32)
    images[:, :, 10:20] = 1.5

    def fly(order: list[int], threads: int, together: bool) -> dict[int, tuple[bytes, bytes]]:
        maps = LocalMaps(settings, mission(lower[order].tolist(), upper[order].tolist()), CAMERA, threads=threads)
        for (at, turn), image in zip(frames, images, strict=True):
            turn = turn / np.linalg.norm(turn, axis=1, keepdims=True)
            for part in [list(range(len(order)))] if together else [[k] for k in reversed(range(len(order)))]:
                who = [order[k] for k in part]
                maps.update(part, image[who], at[who], turn[who])
        return {flight: (maps.inflated(k)[0].tobytes(), maps.field(k)[0].tobytes()) for k, flight in enumerate(order)}

    usual = fly([0, 1, 2, 3], 1, True)
    for other in (fly([3, 1, 0, 2], 3, True), fly([2], 1, True), fly([1, 3], 2, False)):
        for flight, layers in other.items():
            assert layers == usual[flight]


def test_a_scene_known_whole() -> None:
    scene = Scene("room", {"box": Box((0.5, 0.5, 0.5))}, instances=(Instance("box", (2.0, 0.0, 1.0)),))
    task = mission([[-5.0, -5.0, 0.0]] * 2, [[5.0, 5.0, 3.0], [5.0, 5.0, 2.0]])
    maps = maps_of_scene(SceneBatch(scene, 2), task, MapSettings(field=True))
    points = np.array([[[2.0, 0.0, 1.0], [1.45, 0.0, 1.0], [1.25, 0.0, 1.0], [0.0, 0.0, 2.5]]] * 2)
    assert maps.occupied([0, 1], points).tolist() == [[True, True, False, False], [True, True, False, True]]
    value, gradient = maps.distance([0], [[[0.0, 0.02, 1.01]]])
    # The face is at 1.5 m; the first inflated cell's middle at 1.45 m, or at 1.35 m where rounding makes it touch a cell more.
    assert value[0, 0] == pytest.approx(1.4, abs=0.06)
    np.testing.assert_allclose(gradient[0, 0], [-1.0, 0.0, 0.0], atol=0.05)


def test_flights_in_one_place_share_the_making_of_their_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the same is made once; other boxes, other scenes and scenes in which things move are made each."""
    made: list[int] = []
    voxels = mapping_scene.voxelize
    monkeypatch.setattr(mapping_scene, "voxelize", lambda g, env, *rest: (made.append(env), voxels(g, env, *rest))[1])
    box, thing = {"box": Box((0.5, 0.5, 0.5))}, Instance("box", (2.0, 0.0, 1.0))
    still, other = (
        Scene("room", box, instances=(thing,)),
        Scene("hall", box, instances=(replace(thing, position=(1.0, 0.0, 1.0)),)),
    )
    moving = replace(still, name="street", actors=(Actor("mover", (thing,)),))
    task = mission([[-5.0, -5.0, 0.0]] * 6, [[5.0, 5.0, 3.0], [5.0, 5.0, 2.0], *[[5.0, 5.0, 3.0]] * 4])
    batch = SceneBatch([still, still, still, other, moving, moving], 6)
    maps = maps_of_scene(batch, task, MapSettings(field=True))
    assert made == [0, 1, 3, 4, 5]
    alone = maps_of_scene(SceneBatch(still, 1), mission([[-5.0, -5.0, 0.0]], [[5.0, 5.0, 3.0]]), MapSettings(field=True))
    for layer in ("inflated", "field"):
        assert getattr(maps, layer)(2)[0].tobytes() == getattr(alone, layer)(0)[0].tobytes()
    kept = maps.field(2)[0]
    assert maps.field(2)[0] is kept
    maps.forget(2)
    assert maps.field(2)[0] is not kept


def test_what_is_mapped_in_flight_is_in_the_scene() -> None:
    """Along a forest: every occupied cell has the scene within a cell, and there are many."""
    batch = SceneBatch(scene("forest:3"), 1)
    task = mission([[-28.0, -6.0, 0.0]], [[-14.0, 6.0, 3.0]])
    settings = MapSettings(margin=200)
    camera = read_pixels(mapping_camera("fast"), settings)
    maps, truth = LocalMaps(settings, task), maps_of_scene(batch, task, replace(settings, inflation=0.1))
    for step in range(16):
        at, turn = camera_pose([[-27.0 + 0.3 * step, 0.0, 1.5]], [[0.0, 0.0, 0.0, 1.0]])
        maps.update([0], cast(batch.geometry, camera.rays(), at, turn)["depth"], at, turn)
    cells, lower = maps.inflated(0)
    middles = (lower + 0.1 * (np.moveaxis(np.indices(cells.shape), 0, -1) + 0.5)).reshape(1, -1, 3)
    solid = maps.state([0], middles)[0] == OCCUPIED
    assert solid.sum() > 500
    assert truth.occupied([0], middles[:, solid]).all()


BAD: dict[str, tuple[Callable[[LocalMaps], Any], str]] = {
    "shape": (lambda m: m.update([0], np.zeros((1, 5, 5)), EYE, looking()[None]), "Depth has shape"),
    "pose": (lambda m: m.update([0], wall_image(1), EYE[0], looking()[None]), "positions of shape"),
    "flight": (lambda m: m.update([1], wall_image(1), EYE, looking()[None]), "at most once, 0 to 0"),
    "twice": (lambda m: m.update([0, 0], wall_image(2), EYE[[0, 0]], looking()[None][[0, 0]]), "at most once"),
    "question": (lambda m: m.occupied([0], np.zeros((2, 3))), r"\(k, m, 3\)"),
    "asked": (lambda m: m.occupied([-1], np.zeros((1, 1, 3))), "count from 0"),
    "cloud": (lambda m: m.update_cloud([0], np.zeros((1, 3)), EYE), "Clouds have shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_calls_are_refused_in_one_sentence(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(AirworthyError, match=message):
        call(LocalMaps(EVERY, HALL, CAMERA))


def boxes_of(task: Mission = HALL, **changed: Any) -> None:
    map_boxes(task, MapSettings(**changed))


@pytest.mark.parametrize(
    "changed", [{"resolution": 0.0}, {"skip": 0}, {"least": 0.9}, {"hit": 0.4}, {"ray_max": np.inf}, {"inflation": 5.0}]
)
def test_settings_that_cannot_be_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError):
        boxes_of(**changed)


def test_boxes_and_cameras_that_cannot_be_are_refused() -> None:
    with pytest.raises(AirworthyError, match="lower < upper"):
        boxes_of(mission([[0, 0, 0]], [[1, 1, 0]]))
    with pytest.raises(AirworthyError, match="too large"):
        boxes_of(mission([[0, 0, 0]], [[1e5, 1, 1]]))
    with pytest.raises(AirworthyError, match="has none to read"):
        LocalMaps(MapSettings(border=30), HALL, CAMERA)
    with pytest.raises(AirworthyError, match="fast"):
        mapping_camera("quick")


def test_memory_stays_small() -> None:
    """At most 30 MB for a flight under the highest ceiling with a distance field; without one a third of it."""
    urban = mission([[-30.0, -30.0, 0.0]], [[30.0, 30.0, 10.0]])
    assert LocalMaps(MapSettings(margin=50, ground=-1.0, field=True), urban).memory < 30e6
    assert LocalMaps(MapSettings(), urban).memory < 10e6
