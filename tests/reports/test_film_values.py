"""Cameras, puppets, captions and sheets of films, against lines on file and by geometry."""

from __future__ import annotations

import dataclasses
from math import pi, radians
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot
from tests.reports.test_video import CARL, ROOM, table_of, weaving

from airworthy.benchmarks import VideoOptions
from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.optics.projections import Pinhole
from airworthy.reports.film import cameras, files, flight_track, rendered_scene, sheet
from airworthy.reports.film.cameras import camera_path, following, reach, sized
from airworthy.reports.film.flight_track import FilmLayout, FlightTrack, film_content
from airworthy.reports.film.rendered_scene import RenderedScene, puppet
from airworthy.scenes.record import Region
from airworthy.scenes.viewpoints import view
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent / "snapshots" / "film.txt"
DRAWN = {"rtol": 2e-2, "of_means": 5e-3}
"""Of pictures with letters in them: another rasteriser rounds their edges otherwise."""


# ---- cameras ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stage() -> RenderedScene:
    """The room; carl is not in it yet."""
    return RenderedScene(ROOM, CARL, 2, samples=1)


@pytest.mark.parametrize("word", ["chase", "orbit", "fixed", "onboard", "realsense_d455"])
def test_where_cameras_are(word: str, stage: RenderedScene) -> None:
    track = FlightTrack.of(weaving())
    times = track.frame_times(5.0)
    path = camera_path(word, track, times, CARL, stage.batch, None if word == "realsense_d455" else (64, 36))
    shown = {"position": path.position, "attitude": path.attitude, "sees": path.sees_vehicle, "name": path.name}
    lens = path.projection
    assert isinstance(lens, Pinhole)
    shown["lens"] = np.array([lens.width, lens.height, lens.fx, lens.fy, lens.cx, lens.cy])
    # Rays of the engine are float32, and say how far a camera is pulled in.
    check_snapshot(SNAPSHOTS, shown, part=f"camera {word}", rtol=1e-5, of_means=1e-5)


def test_a_camera_that_circles_goes_round_once_in_24_seconds_and_keeps_its_distance() -> None:
    track = FlightTrack.of(table_of(np.arange(0.0, 24.5, 0.5), np.tile([0.0, 0.0, 1.0], (49, 1))))
    empty = RenderedScene(type(ROOM)("empty", {}, bounds=ROOM.bounds), CARL, 1, samples=1)
    position, attitude = following("orbit", track, track.times, CARL, empty.batch)
    away = position - [0.0, 0.0, 1.0]
    far = max(cameras.NEAR, 5.0 * reach(CARL))
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), far, rtol=1e-6)
    np.testing.assert_allclose(np.arcsin(away[:, 2] / far), radians(15.0), atol=1e-6)
    turned = np.unwrap(np.arctan2(away[:, 1], away[:, 0]))
    np.testing.assert_allclose(turned - turned[0], 2 * pi * track.times / 24.0, atol=1e-6)
    assert float(np.mod(turned[0], 2 * pi)) == pytest.approx(1.75 * pi)  # opposite of where it looks: 3/4 pi
    # It looks a tenth of the distance above the vehicle, and its picture is upright.
    ahead = frames.rotate(attitude, np.array([0.0, 0.0, 1.0]))
    target = [0.0, 0.0, 1.0 + 0.1 * far] - position
    np.testing.assert_allclose(ahead, target / np.linalg.norm(target, axis=1, keepdims=True), atol=1e-9)
    assert np.abs(frames.rotate(attitude, np.array([1.0, 0.0, 0.0]))[:, 2]).max() < 1e-9


def test_smoothing_keeps_straight_motion_and_mirrors_headings() -> None:
    line = np.arange(20.0)[:, None] * (1.0, -2.0)
    np.testing.assert_allclose(cameras._smoothed(line, 2.0), line, atol=1e-9)
    flat = cameras._smoothed(line, 2.0, "mirror")
    assert 0.0 < flat[0, 0] < line[2, 0]
    assert np.array_equal(cameras._smoothed(line[:1], 2.0), line[:1])
    impulse = np.zeros((41, 1))
    impulse[20] = 1.0
    # A gaussian's standard deviation is what was asked for.
    found = cameras._smoothed(impulse, 3.0)[:, 0]
    assert float(np.sqrt((found * (np.arange(41.0) - 20.0) ** 2).sum())) == pytest.approx(3.0, rel=0.01)
    assert cameras._step(np.array([0.0, 0.25, 0.5])) == 0.25
    assert cameras._step(np.array([3.0])) == 1.0


def test_a_heading_is_that_of_the_motion_or_of_the_nose_where_it_hovers() -> None:
    nose = np.tile(frames.from_euler(0.0, 0.0, 1.0), (60, 1))
    fast = np.tile([0.0, -200.0, 5.0], (60, 1))
    np.testing.assert_allclose(cameras._heading(nose, fast, 0.1), -pi / 2, atol=1e-2)
    np.testing.assert_allclose(cameras._heading(nose, 0.0 * fast, 0.1), 1.0, atol=1e-9)
    # At half a metre a second both count the same.
    slow = np.tile([0.5 * np.cos(2.0), 0.5 * np.sin(2.0), 0.0], (60, 1))
    np.testing.assert_allclose(cameras._heading(nose, slow, 0.1), 1.5, atol=1e-9)


def test_a_bundle_of_rays_and_the_share_of_a_way_that_is_free(stage: RenderedScene) -> None:
    rays = cameras._bundle(0.3).directions[0]
    np.testing.assert_allclose(rays[0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(np.arccos(rays[1:, 2]), 0.3, atol=1e-6)
    around = np.sort(np.mod(np.arctan2(rays[1:, 1], rays[1:, 0]), 2 * pi))
    np.testing.assert_allclose(np.diff(around), pi / 4, atol=1e-6)
    single = cameras._bundle(0.0)
    body, wanted = np.array([[0.0, 0.0, 1.5], [0.0, 0.0, 1.5]]), np.array([[0.0, 4.0, 1.5], [0.0, 1.0, 1.5]])
    found = cameras._free(body, wanted, np.zeros(2), single, stage.batch)
    np.testing.assert_allclose(found, [(2.0 - 0.18) / 4.0, 1.0], atol=1e-6)  # the wall's face is at 2 m


def test_reach_is_to_the_farthest_tip_or_edge() -> None:
    for name in ("carl", "flightgoggles", "cf2x_L250", "base_octarotor"):
        item = vehicle(name)
        tips = [np.linalg.norm(np.subtract(r.position, item.center_of_mass)) + r.radius for r in item.rotors]
        assert reach(item) == pytest.approx(max([*tips, *item.body.size]))


@pytest.mark.parametrize(
    ("size", "numbers"),
    [
        (None, (640, 426, 213.0 / 160.0 * 240.0, 213.0 / 160.0 * 250.0, 320.0 + 213.0 / 160.0 * 10.0, 213.0 / 160.0 * 170.0)),
        ((480, 320), (480, 320, 240.0, 250.0, 250.0, 170.0)),
        ((480, 160), (480, 160, 120.0, 125.0, 245.0, 85.0)),
        ((100, 640), (100, 640, 480.0, 500.0, 70.0, 340.0)),
    ],
)
def test_a_lens_in_another_size(size: Any, numbers: tuple[float, ...]) -> None:
    lens = Pinhole(480, 320, 240.0, 250.0, 250.0, 170.0)
    found = sized(lens, size)
    assert isinstance(found, Pinhole)
    assert (found.width, found.height, found.fx, found.fy, found.cx, found.cy) == pytest.approx(numbers)


# ---- the vehicle and what is laid over pictures -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["carl", "base_octarotor", "cf2x_L250", "virt_01"])
def test_puppets(name: str) -> None:
    made = puppet(vehicle(name))
    shown: dict[str, Any] = {"outlines": made.outlines}
    for k, mesh in enumerate(made.shapes[:2]):
        shown |= {f"vertices {k}": mesh.vertices, f"faces {k}": mesh.faces, f"paint {k}": mesh.face_material}
    check_snapshot(SNAPSHOTS, shown, part=f"puppet {name}", of_means=1e-6)
    assert len(made.shapes) == 1 + len(vehicle(name).rotors)
    placed = made.placement()
    assert placed.shape.tolist() == list(range(len(made.shapes)))
    assert not np.any(placed.collide)


def test_discs_lie_over_their_hubs_across_their_axes() -> None:
    for name in ("carl", "base_octarotor"):
        item = vehicle(name)
        made = puppet(item)
        hubs = np.array([rotor.position for rotor in item.rotors]) - item.center_of_mass
        size = float(np.linalg.norm(hubs - hubs.mean(axis=0), axis=1).mean())
        for rotor, hub, (outer, inner) in zip(item.rotors, hubs, made.outlines, strict=True):
            axis = np.array(rotor.axis) / np.linalg.norm(rotor.axis)
            middle = outer.mean(axis=0)
            np.testing.assert_allclose(middle - hub, 0.09 * size * axis, atol=1e-9)
            np.testing.assert_allclose((outer - middle) @ axis, 0.0, atol=1e-9)
            if rotor.radius > 0.0:
                np.testing.assert_allclose(np.linalg.norm(outer - middle, axis=1), rotor.radius)
            ratio = np.linalg.norm(inner - middle, axis=1) / np.linalg.norm(outer - middle, axis=1)
            np.testing.assert_allclose(ratio, 1.0 - rendered_scene.TIP_WIDTH)


def test_a_propeller_of_unknown_size_reaches_nearly_to_the_next() -> None:
    from dataclasses import replace

    rotor = replace(CARL.rotors[0], radius=0.0)
    hubs = np.array([[0.1, 0.0, 0.0], [-0.1, 0.0, 0.0], [0.1, 0.001, 0.0]])
    assert rendered_scene._radius(rotor, hubs, 0, 0.1) == pytest.approx(0.45 * 0.2)  # that in the same place is not beside it
    assert rendered_scene._radius(rotor, hubs[:1], 0, 0.1) == pytest.approx(0.06)
    assert rendered_scene._radius(replace(rotor, radius=0.3), hubs, 0, 0.1) == 0.3
    np.testing.assert_allclose(rendered_scene._along(np.array([0.0, 0.0, -2.0])), [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(rendered_scene._along(np.zeros(3)), [0.0, 0.0, 0.0, 1.0])
    for direction in (np.array([1.0, 2.0, -3.0]), np.array([0.0, -1.0, 0.0])):
        turned = frames.rotate(rendered_scene._along(direction), np.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(turned, direction / np.linalg.norm(direction), atol=1e-12)


def test_where_discs_are_in_a_picture() -> None:
    lens = Pinhole(100, 60, 50.0, 50.0, 50.0, 30.0)
    assert rendered_scene._box_of(np.array([[20.0, 17.0], [40.0, 33.0]]), lens) == (16, 16, 48, 48)
    assert rendered_scene._box_of(np.array([[-9.0, 50.0], [199.0, 90.0]]), lens) == (0, 48, 100, 60)
    assert rendered_scene._box_of(np.array([[120.0, 20.0], [130.0, 30.0]]), lens) is None
    assert rendered_scene._box_of(np.full((3, 2), np.nan), lens) is None
    square = np.array([[[[2.0, 2.0], [8.0, 2.0], [8.0, 8.0], [2.0, 8.0]], [[4.0, 4.0], [6.0, 4.0], [6.0, 6.0], [4.0, 6.0]]]])
    mask = rendered_scene._filled(square, Pinhole(10, 10, 1.0, 1.0, 5.0, 5.0))
    assert mask[3, 3] == pytest.approx(rendered_scene.TIP_OPACITY, abs=0.003)
    assert mask[5, 5] == pytest.approx(rendered_scene.DISC_OPACITY, abs=0.003)
    assert (mask[0, 0], mask[9, 9]) == (0.0, 0.0)


def test_the_vehicle_in_a_picture(stage: RenderedScene) -> None:
    track = FlightTrack.of(weaving())
    times = track.frame_times(1.0)[1:3]
    position, attitude, _ = track.pose(times)
    path = camera_path("chase", track, times, CARL, stage.batch, (48, 27))
    stage.set(times, position, attitude)
    shown = {"chase": stage.shoot(path, slice(0, 2)), "outlines": stage._outlines}
    check_snapshot(SNAPSHOTS, shown, part="shot", rtol=1e-3, of_means=1e-3)


@pytest.mark.parametrize("size", [(160, 90), (320, 240), (1280, 720)])
def test_what_is_laid_over_a_picture(size: tuple[int, int]) -> None:
    layout = FilmLayout(*size)
    rng = np.random.default_rng(2)
    picture = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
    small = rng.integers(0, 256, (*layout.corner_size[::-1], 3), np.uint8)
    shown = {
        "margin": layout.margin,
        "corner": np.array(layout.corner_size),
        "captioned": layout.with_caption(picture, "carl", ["1.0 s", "12.34 m/s", "ended before its time, in a wall"]),
        "cornered": layout.with_corner(picture, small),
        "masks": np.concatenate([mask.ravel() for mask in layout._corner_masks(*layout.corner_size)]),
    }
    check_snapshot(SNAPSHOTS, shown, part=f"layout {size[0]}", **DRAWN)


def test_values_of_a_caption_stand_apart_however_long_they_are() -> None:
    """At a fourth of the letters' height at least, as between words."""
    layout = FilmLayout(640, 360)
    black = np.zeros((360, 640, 3), np.uint8)
    for speed in ("9.9 m/s", "12.3 m/s", "123.4 m/s"):
        before, whole = (layout.with_caption(black, "carl", values) for values in (["100.0 s"], ["100.0 s", speed]))
        ends = np.flatnonzero((before[..., 0] > 128).any(axis=0))[-1]
        begins = np.flatnonzero(((whole[..., 0] > 128) & (before[..., 0] <= 128)).any(axis=0))[0]
        assert begins - ends >= 0.25 * 14


def test_a_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (1, 5, 6, 13):
        plan, cells, size = sheet._cells(count, 225)
        step_x, step_y = 400 + 14, 225 + 30 + 14
        assert size == (2 * 36 + 4 * step_x - 14, 86 + max(2, 2 + -(-(count - 4) // 4)) * step_y - 14 + 36 - 12)
        assert (plan.x, plan.y, plan.width, plan.height) == (36, 86, 814, 494)
        assert [(c.x, c.y) for c in cells[:4]] == [(36 + a * step_x, 86 + b * step_y) for b in (0, 1) for a in (2, 3)][:count]
        assert all(c.x > 0 and c.x + c.width < size[0] and c.y + c.height < size[1] for c in cells)
        boxes = [plan, *cells]
        apart = [(a, b) for a in boxes for b in boxes if a is not b]
        assert all(
            a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y for a, b in apart
        )
    monkeypatch.setattr(sheet, "FRAME_WIDTH", 100)
    track = FlightTrack.of(weaving())
    assert sheet._summary(track).split("   ")[0] == "4.0 s"
    times = np.linspace(0.0, 4.0, 5)
    stills = [np.full((9, 16, 3), 40 * k, np.uint8) for k in range(5)]
    monkeypatch.setattr(sheet, "plan_view", lambda scene, track, marks, size: np.full((size[1], size[0], 3), 77, np.uint8))
    check_snapshot(SNAPSHOTS, part="sheet", values={"page": sheet.contact_sheet(stills, times, track, ROOM, "carl")}, **DRAWN)


def test_a_plan() -> None:
    track = FlightTrack.of(weaving())
    marks = track.position[::50]
    check_snapshot(SNAPSHOTS, part="plan", values={"plan": sheet.plan_view(ROOM, track, marks, (120, 80))}, **DRAWN)
    camera = view(ROOM, "top")
    wide = sheet._holding(camera, np.array([[30.0, 0.0, 1.0], [0.0, -25.0, 1.0]]))
    offset = np.abs(frames.rotate_inverse(camera.attitude, np.array([[30.0, 0, 1], [0, -25.0, 1]]) - camera.position))[
        :, :2
    ].max(axis=0)
    np.testing.assert_allclose(wide.span, np.maximum(camera.span, 2.1 * offset))
    assert sheet._holding(camera, np.array([[0.0, 0.0, 1.0]])).span == pytest.approx(camera.span)
    assert sheet._pale(np.array([[0, 100, 255]], np.uint8)).tolist() == [[140, 185, 255]]


def test_a_plan_of_a_place_far_from_the_origin_is_the_same() -> None:
    """Everything moved by 40 m and -25 m: the path lies where it lay in the picture."""
    away = np.array([40.0, -25.0, 0.0])
    things = tuple(dataclasses.replace(item, position=tuple(np.add(item.position, away).tolist())) for item in ROOM.instances)
    bounds = Region(tuple(np.add(ROOM.bounds.lower, away).tolist()), tuple(np.add(ROOM.bounds.upper, away).tolist()))
    moved = dataclasses.replace(ROOM, instances=things, bounds=bounds, start=None, goal=None)
    track = FlightTrack.of(weaving())
    far = dataclasses.replace(track, position=track.position + away)
    here = sheet.plan_view(dataclasses.replace(ROOM, start=None, goal=None), track, track.position[::50], (120, 80)).astype(int)
    there = sheet.plan_view(moved, far, far.position[::50], (120, 80)).astype(int)
    orange = [(picture[..., 0] - picture[..., 2] > 60) for picture in (here, there)]
    assert orange[0].sum() > 50
    assert (orange[0] != orange[1]).sum() <= 0.05 * orange[0].sum()


def test_numbers_have_their_places() -> None:
    points = np.array([[50.0, 50.0], [55.0, 50.0], [50.0, 53.0], [2.0, 2.0], [98.0, 60.0], [70.0, 90.0]])
    check_snapshot(SNAPSHOTS, part="labels", values={"labels": sheet.label_places(points, np.array([100.0, 100.0]), 8.0)})
    alone = sheet.label_places(points[:2], np.array([100.0, 100.0]), 8.0)
    np.testing.assert_allclose(alone[0], [50.0, 50.0])
    away = np.linalg.norm(alone[1] - alone[0])
    assert 16.0 - 1e-9 <= away <= 21.0


# ---- the flight, and its film in a report -----------------------------------------------------------------------------------


def test_jumps_are_three_times_what_the_speed_allows_and_30_cm() -> None:
    times, v = np.array([0.0, 1.0, 2.0, 3.0]), np.array([[1.0, 0, 0], [2.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0]])
    for far, jumped in ((6.3, False), (6.31, True)):
        x = np.array([[0.0, 0, 0], [far, 0, 0], [far, 0, 0], [far, 0.0, 0.3]])
        assert flight_track._jumps(times, x, v).tolist() == [jumped, False, False]
    assert flight_track._jumps(times, np.array([[0.0, 0, 0]] * 3 + [[0, 0, 0.31]]), v).tolist() == [False, False, True]


def test_where_a_vehicle_was_put_it_stays_until_it_is_there() -> None:
    track = FlightTrack.of(table_of([0.0, 1.0, 2.0], [[0.0, 0, 0], [9.0, 0, 0], [9.5, 0, 0]], (0.5, 0.0, 0.0)))
    assert track.jumps.tolist() == [True, False]
    where = track.pose(np.array([0.0, 0.5, 0.999, 1.0, 1.5, 9.0]))[0][:, 0]
    np.testing.assert_allclose(where, [0.0, 0.0, 0.0, 9.0, 9.25, 9.5], atol=1e-6)
    assert track.takes(np.array([0.0, 0.5, 1.0, 1.5])) == [slice(0, 2), slice(2, 4)]
    assert track.frame_times(2.0).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert track.frame_times(0.6).tolist() == pytest.approx([0.0, 1.0 / 0.6])
    assert track.duration == 2.0


@pytest.mark.parametrize("part", ["position", "velocity", "attitude"])
def test_rows_of_which_one_number_is_not_finite_are_left_out(part: str) -> None:
    values: dict[str, Any] = {
        "position": np.zeros((4, 3)),
        "velocity": np.zeros((4, 3)),
        "attitude": np.tile([0.0, 0, 0, 1], (4, 1)),
    }
    values[part][1, 1] = np.nan
    track = FlightTrack.of(table_of([0.0, 1.0, 2.0, 3.0], **values))
    assert track.times.tolist() == [0.0, 2.0, 3.0]


def test_a_film_ends_a_second_after_the_last_row_that_flew() -> None:
    t = np.arange(9) * 0.5
    track = FlightTrack.of(table_of(t, np.zeros((9, 3)), (1.0, 0.0, 0.0), status=np.where(t > 1.4, 2, 0)))
    assert track.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert track.velocity[:, 0].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    with pytest.raises(AirworthyError, match="no finite pose to film"):
        FlightTrack.of(table_of(t, np.zeros((9, 3)), status=2))


FILM = {"file": "video.mp4", "contact_sheet": "sheet.png", "size_px": [64, 36], "env": 3, "camera": "orbit", "rate_hz": 29.97}


def test_a_film_lies_in_its_report_or_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    assert film_content(tmp_path, {}) is None
    assert film_content(tmp_path, {"video": FILM}) is None
    (tmp_path / "video.mp4").write_bytes(b"12345")
    assert film_content(tmp_path, {"video": FILM}) is None
    Image.new("RGB", (50, 20), (1, 2, 3)).save(tmp_path / "sheet.png")
    monkeypatch.setattr(flight_track, "SHEET_WIDTH", 25)
    found = film_content(tmp_path, {"video": FILM})
    assert found is not None
    assert found["sheet"].startswith("data:image/jpeg;base64,")
    assert (found["kind"], found["source"], found["beside"]) == ("video/mp4", "data:video/mp4;base64,MTIzNDU=", False)
    assert found["note"] == "Flight 3, camera orbit, 64x36 at 29.97 Hz."
    monkeypatch.setattr(flight_track, "EMBED_BYTES", 5)
    assert film_content(tmp_path, {"video": FILM})["beside"] is False  # type: ignore[index]
    monkeypatch.setattr(flight_track, "EMBED_BYTES", 4)
    (tmp_path / "a b.webp").write_bytes(b"12345")
    beside = film_content(tmp_path, {"video": {**FILM, "file": "x/a b.webp", "size_px": None}})
    assert beside is not None
    assert (beside["kind"], beside["source"], beside["beside"]) == ("image/webp", "a%20b.webp", True)
    assert beside["note"].endswith("0x0 at 29.97 Hz. It is too large for this file: a b.webp must lie beside it.")
    assert film_content(tmp_path, {"video": {**FILM, "file": "sheet.png"}}) is None
    (tmp_path / "sheet.png").write_bytes(b"no")
    with pytest.raises(AssetError, match="is not a picture"):
        film_content(tmp_path, {"video": FILM})


def test_sizes_of_films() -> None:
    for size in ((16, 16), (4096, 4096)):
        files.check_video_size(size)
    for size in ((14, 16), (16, 14), (17, 16), (16, 17), (4098, 16), (16, 4098)):
        with pytest.raises(AirworthyError, match="expected even numbers, 16 to 4096"):
            files.check_video_size(size)


def test_a_webp_lasts_as_long_as_its_flight(tmp_path: Path) -> None:
    from PIL import Image, ImageSequence

    shown = [np.full((16, 16, 3), 50 * k, np.uint8) for k in range(4)]
    path = files.write_video(tmp_path / "a.webp", shown, 4, (16, 16), 30.0)
    with Image.open(path) as image:
        lasting = []
        for frame in ImageSequence.Iterator(image):
            frame.load()
            lasting.append(frame.info["duration"])
        assert image.info["loop"] == 0
    assert lasting == [33, 34, 33, 33]


def test_an_mp4_says_its_rate_and_colours(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    path = files.write_video(tmp_path / "a.mp4", [np.full((16, 16, 3), 200, np.uint8)] * 3, 3, (16, 16), 29.97)
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        assert float(stream.average_rate) == pytest.approx(29.97, abs=1e-3)
        context = stream.codec_context
        assert (int(context.colorspace), int(context.color_range), int(context.color_primaries), int(context.color_trc)) == (
            1,
            1,
            1,
            1,
        )
        assert context.pix_fmt == "yuv420p"
    assert [frame.shape for frame in files.read_frames(path)] == [(16, 16, 3)] * 3
    assert np.abs(next(files.read_frames(path)).astype(int) - 200).max() <= 2


@pytest.mark.parametrize("size", [(160, 90), (640, 360), (1280, 720), (1920, 1080)])
def test_a_corner_picture_lies_in_the_middle_of_its_frame(size: tuple[int, int]) -> None:
    """Pixel by pixel as it was, the margin and a line away from the lower right; beside it bright, then the film."""
    layout = FilmLayout(*size)
    width, height = layout.corner_size
    small = np.random.default_rng(3).integers(0, 200, (height, width, 3), np.uint8)
    line, black = max(1, round(size[1] / 360)), np.zeros((size[1], size[0], 3), np.uint8)
    out = layout.with_corner(black, small)
    right, low = size[0] - layout.margin - line, size[1] - layout.margin - line
    rows, columns = slice(low - height // 2, low - height // 2 + 3), slice(right - width // 2, right - width // 2 + 3)
    np.testing.assert_array_equal(out[rows, right - width : right], small[height - height // 2 :][:3])
    np.testing.assert_array_equal(out[low - height : low, columns], small[:, width - width // 2 :][:, :3])
    for edge in (
        out[rows, right : right + line],
        out[low : low + line, columns],
        out[rows, right - width - line : right - width],
    ):
        assert (edge == 245).all()
    assert not out[:, right + line :].any()
    assert not out[low + line :].any()


def test_a_distance_of_ones_own_holds_for_cameras_that_follow() -> None:
    track = FlightTrack.of(table_of(np.arange(0.0, 2.5, 0.5), np.tile([0.0, 0.0, 1.0], (5, 1))))
    empty = RenderedScene(type(ROOM)("empty", {}, bounds=ROOM.bounds), CARL, 1, samples=1)
    for word in ("chase", "orbit"):
        for given, far in ((2.5, 2.5), (None, 5.0 * reach(CARL))):
            path = camera_path(word, track, track.times, CARL, empty.batch, (64, 36), given)
            np.testing.assert_allclose(np.linalg.norm(path.position - [0.0, 0.0, 1.0], axis=1), far, rtol=1e-6)


def test_a_distance_that_changes_nothing_is_refused() -> None:
    with pytest.raises(AirworthyError, match="changes nothing for the camera 'onboard'"):
        VideoOptions("onboard", distance=2.0)
    assert VideoOptions("onboard+chase", distance=2.0).distance == 2.0
