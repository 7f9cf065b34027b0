"""Films of flights: poses between rows, cameras, what is drawn, files that play, and what a run leaves."""

from __future__ import annotations

import dataclasses
import json
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.fixtures.likeness import psnr

from airworthy.benchmarks.fly.config import CONFIG_FILE, check_config, command_line, read_config, without_film
from airworthy.benchmarks.fly.film import VideoOptions, _Film, record_video
from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.benchmarks.fly.replay import refly
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import read_summary
from airworthy.geometry import Box, RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.optics.projections import Pinhole
from airworthy.reports.film import files
from airworthy.reports.film.cameras import PLAIN, camera_choice, camera_path, eased, sized
from airworthy.reports.film.files import read_frames, write_video
from airworthy.reports.film.flight_track import LINGER, FilmLayout, FlightTrack
from airworthy.reports.film.rendered_scene import DISC_OPACITY, TIP_OPACITY, RenderedScene
from airworthy.reports.film.sheet import MARK, label_places, plan_view, shortened
from airworthy.scenes import Instance, Material, Pose, Region, Scene
from airworthy.simulation import FlightTable
from airworthy.vehicles import vehicle

CARL = vehicle("carl")
WALLS = ((0.0, -2.05, 1.5), (0.0, 2.05, 1.5))
ROOM = Scene(
    "room",
    shapes={"floor": Box((8.0, 2.0, 0.05)), "wall": Box((8.0, 0.05, 1.5)), "end": Box((0.05, 2.0, 1.5))},
    materials={"paint": Material(base_color=(0.7, 0.4, 0.2, 1.0)), "tiles": Material(base_color=(0.2, 0.3, 0.5, 1.0))},
    instances=(
        Instance("floor", (0.0, 0.0, -0.05), materials=("tiles",)),
        *(Instance("wall", where, materials=("paint",)) for where in WALLS),
        *(Instance("end", (x, 0.0, 1.5), materials=("paint",)) for x in (-6.0, 6.0)),
    ),
    bounds=Region((-8.0, -2.0, 0.0), (8.0, 2.0, 3.0)),
    start=Pose((-4.0, 0.0, 1.0)),
    goal=Pose((4.0, 0.0, 1.0)),
)


def table_of(t: Any, position: Any, velocity: Any = 0.0, attitude: Any = frames.IDENTITY, status: Any = 0) -> FlightTable:
    """One flight from arrays over time."""
    count = len(t)
    columns: dict[str, Any] = {"env": np.zeros(count), "t": t, "status": np.broadcast_to(status, count)}
    for name, unit, values, width in (
        ("position", "_m", position, 3),
        ("velocity", "_m_s", velocity, 3),
        ("attitude", "", attitude, 4),
        ("rate", "_rad_s", 0.0, 3),
    ):
        rows = np.broadcast_to(np.asarray(values, float), (count, width))
        columns |= {f"{name}_{'xyzw'[k]}{unit}": rows[:, k] for k in range(width)}
    return FlightTable.from_columns(columns)


def weaving(duration: float = 4.0, rate: float = 50.0) -> FlightTable:
    """Ahead through the room, weaving towards its walls, the nose along the way."""
    t = np.arange(round(duration * rate) + 1) / rate
    pace, sway = 6.0 / duration, 2.0 * np.pi / duration
    position = np.stack([-3.0 + pace * t, 1.2 * np.sin(sway * t), 1.2 + 0.2 * np.sin(sway * t)], axis=1)
    velocity = np.stack([np.full_like(t, pace), 1.2 * sway * np.cos(sway * t), 0.2 * sway * np.cos(sway * t)], axis=1)
    return table_of(t, position, velocity, frames.from_euler(0.0, 0.0, np.arctan2(velocity[:, 1], velocity[:, 0])))


# ---- the flight between its rows


def test_a_cubic_motion_is_met_between_rows() -> None:
    """Hermite's cubic through positions and velocities is the motion itself, whose third derivative is constant."""
    t = np.arange(11) * 0.1
    c = np.array([[0.3, -0.2, 1.0], [1.0, 0.5, -0.4], [-0.7, 0.2, 0.3], [0.4, -0.6, 0.1]])

    def motion(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = x[:, None] ** np.arange(4)
        v = np.stack([np.zeros_like(x), np.ones_like(x), 2.0 * x, 3.0 * x**2], axis=1)
        return p @ c, v @ c

    spin = frames.from_axis_angle((0.0, 0.6, 0.8), 1.7 * t)
    track = FlightTrack.of(table_of(t, *motion(t), spin))
    times = np.linspace(0.0, 1.0, 57)
    position, attitude, _ = track.pose(times)
    # Rows are float32: 1e-7 of a metre or so.
    assert np.allclose(position, motion(times)[0], atol=1e-6)
    assert frames.angle_between(attitude, frames.from_axis_angle((0.0, 0.6, 0.8), 1.7 * times)).max() < 1e-6


def test_poses_are_held_outside_and_a_single_row_is_a_flight() -> None:
    track = FlightTrack.of(weaving())
    ends = track.pose(np.array([-1.0, 99.0]))[0]
    assert np.allclose(ends, track.position[[0, -1]])
    alone = FlightTrack.of(table_of([2.0], [[1.0, 2.0, 3.0]]))
    assert alone.frame_times(30.0).tolist() == [2.0]
    assert np.allclose(alone.pose(np.array([5.0]))[0], [[1.0, 2.0, 3.0]])


def test_frames_are_evenly_spaced_from_the_first_row_to_the_last() -> None:
    times = FlightTrack.of(weaving(4.0)).frame_times(30.0)
    assert len(times) == 121
    assert np.allclose(np.diff(times), 1.0 / 30.0)


def test_a_film_goes_on_for_a_moment_after_a_crash() -> None:
    t = np.arange(101) * 0.05
    track = FlightTrack.of(table_of(t, np.stack([t, 0 * t, 0 * t + 1], 1), (1.0, 0, 0), status=np.where(t > 2.0, 2, 0)))
    assert track.times[-1] == pytest.approx(2.0 + LINGER)
    assert not track.velocity[t[: len(track.velocity)] > 2.0].any()


def test_a_flight_that_starts_again_is_cut_and_not_swept_through_walls() -> None:
    t = np.arange(41) * 0.05
    x = np.where(t < 1.0, t, t - 5.0)
    track = FlightTrack.of(table_of(t, np.stack([x, 0 * x, 0 * x + 1], 1), (1.0, 0, 0)))
    times = track.frame_times(100.0)
    position = track.pose(times)[0][:, 0]
    assert not ((position > -2.9) & (position < -0.1)).any()
    first, second = track.takes(times)
    assert times[second.start] == pytest.approx(1.0)
    assert (first.start, second.stop) == (0, len(times))


def test_nothing_to_film() -> None:
    with pytest.raises(AirworthyError, match="There is no environment 3"):
        FlightTrack.of(weaving(), 3)
    with pytest.raises(AirworthyError, match="has no finite pose to film"):
        FlightTrack.of(table_of([0.0, 1.0], np.nan))


# ---- cameras


def test_the_camera_on_board_is_where_the_record_mounts_it() -> None:
    """p + R (mount - centre of mass), and its optical axis ahead: carl's ideal mount looks along the body's x."""
    track = FlightTrack.of(weaving())
    times = track.frame_times(10.0)
    path = camera_path("onboard", track, times, CARL, RenderedScene(ROOM, CARL, 1).batch)
    position, attitude, _ = track.pose(times)
    mount = np.array(CARL.sensors[0].position) - CARL.center_of_mass
    assert np.allclose(path.position, position + frames.rotate(attitude, mount), atol=1e-12)
    assert np.allclose(frames.rotate(path.attitude, (0.0, 0.0, 1.0)), frames.rotate(attitude, (1.0, 0.0, 0.0)), atol=1e-9)
    assert (path.projection.width, path.projection.height) == (640, 360)
    assert not path.sees_vehicle


@pytest.mark.parametrize("word", ["chase", "orbit"])
def test_cameras_that_follow_stay_clear_of_walls_and_see_the_vehicle(word: str) -> None:
    """The corridor is narrower than the way to the camera, so that it has to be pulled in."""
    stage = RenderedScene(ROOM, CARL, 4)
    track = FlightTrack.of(weaving())
    times = track.frame_times(30.0)
    path = camera_path(word, track, times, CARL, stage.batch, (64, 36))
    clear = clearance(stage.batch.geometry, path.position, np.zeros(len(times), int)).distance
    # The margin is 0.18 m along the way to the camera; a wall may be met at a slant.
    assert clear.min() > 0.05
    body = track.pose(times)[0]
    offset = body - path.position
    length = np.linalg.norm(offset, axis=1)
    toward = [frames.from_matrix(_basis(direction)) for direction in offset]
    ahead = cast(
        stage.batch.geometry, RayTable([[(0.0, 0.0, 1.0)]]), path.position, toward, np.zeros(len(times), int), ("range",)
    )
    assert (ahead["range"][:, 0, 0] > length).all()
    pixel, inside = path.projection.project(frames.rotate_inverse(path.attitude, body - path.position))
    assert inside.all()
    assert np.abs(pixel - (32, 18)).max() < 16


def _basis(z: np.ndarray) -> np.ndarray:
    z = z / np.linalg.norm(z)
    x = np.cross((0.3, 0.5, 0.81), z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def test_a_following_camera_is_steady_where_the_vehicle_trembles() -> None:
    """2 cm at 4 Hz hardly turn the camera: the gaussian of 0.3 s passes exp(-(2 pi 4 0.3)^2 / 2) < 1e-12 of it."""
    t = np.arange(301) / 50.0
    calm = np.stack([-3.0 + t, 0 * t, 0 * t + 1.2], axis=1)
    tremble = 0.02 * np.sin(2.0 * np.pi * 4.0 * t)[:, None] * (0.0, 1.0, 1.0)
    empty = dataclasses.replace(ROOM, instances=ROOM.instances[:1])
    paths = []
    for motion in (calm, calm + tremble):
        track = FlightTrack.of(table_of(t, motion, np.gradient(motion, t, axis=0)))
        paths.append(camera_path("chase", track, track.frame_times(30.0), CARL, RenderedScene(empty, CARL, 1).batch, (64, 36)))
    away = frames.angle_between(paths[0].attitude, paths[1].attitude)[30:-30]
    moved = np.linalg.norm(paths[0].position - paths[1].position, axis=1)[30:-30]
    # What is left comes from the direction of flight, 0.5 m/s of sway at 1 m/s, smoothed twice by 0.9 s.
    assert away.max() < 1e-3
    assert moved.max() < 2e-3


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.integers(1, 9))
def test_an_eased_curve_is_below_and_smooth(rough: list[float], half: int) -> None:
    """A mean over 2 half + 1 values changes by at most 1 / (2 half + 1) of their range from frame to frame."""
    free = np.array(rough)
    smooth = eased(free, half)
    assert (smooth <= free).all()
    assert (smooth >= free.min() - 1e-12).all()
    assert (np.abs(np.diff(smooth)) <= np.ptp(free) / (2 * half + 1) + 1e-12).all()


def test_a_resized_camera_sees_the_same() -> None:
    """Rays of corresponding pixels are equal; a wider shape sees as much upwards and more to the sides."""
    lens = Pinhole(640, 360, 462.956, 463.002, 323.076, 181.184)
    double = sized(lens, (1280, 720))
    pixels = np.array([[0.0, 0.0], [640.0, 360.0], [100.5, 77.0]])
    assert np.allclose(double.unproject(2.0 * pixels), lens.unproject(pixels), atol=1e-12)
    wide = sized(lens, (800, 360))
    assert wide.vertical_fov == pytest.approx(lens.vertical_fov)
    assert wide.horizontal_fov > lens.horizontal_fov
    assert (sized(lens, None).width, sized(Pinhole(64, 48, 50, 50, 32, 24), None).height) == (640, 480)


def test_camera_words() -> None:
    assert camera_choice("auto", CARL) == ("onboard", "chase")
    assert camera_choice("chase+camera_calibrated", CARL) == ("chase", "camera_calibrated")
    assert camera_choice("realsense_d455", CARL) == ("realsense_d455", "")
    with pytest.raises(AirworthyError, match=r"Unknown camera 'chse'\. Closest: 'chase'"):
        camera_choice("chse", CARL)
    with pytest.raises(AirworthyError, match="Unknown camera ''"):
        camera_choice("chase+", CARL)
    with pytest.raises(AirworthyError, match="'ouster_os1_64', a lidar; name one that takes images"):
        camera_choice("ouster_os1_64", CARL)


# ---- what is drawn


def test_frames_do_not_depend_on_how_many_are_rendered_at_once() -> None:
    track = FlightTrack.of(weaving())
    times = track.frame_times(1.0)
    position, attitude, _ = track.pose(times)
    films = []
    for count in (1, 3):
        stage = RenderedScene(ROOM, CARL, count)
        path = camera_path("orbit", track, times, CARL, stage.batch, (96, 54))
        images = []
        for k in range(0, len(times), count):
            rows = slice(k, min(k + count, len(times)))
            stage.set(times[rows], position[rows], attitude[rows])
            images.append(stage.shoot(path, rows))
        films.append(np.concatenate(images))
    assert np.array_equal(films[0], films[1])


def test_the_vehicle_is_seen_from_outside_only_and_its_rotors_let_light_through() -> None:
    track = FlightTrack.of(weaving())
    times = track.frame_times(30.0)[60:61]
    position, attitude, _ = track.pose(times)
    stage = RenderedScene(ROOM, CARL, 1)
    path = camera_path("chase", track, times, CARL, stage.batch, (192, 108))
    stage.set(times, position, attitude)
    blurred = stage.shoot(path, slice(0, 1))[0]
    layers = [stage._rendered(path.projection, path.position, path.attitude, block)[0] for block in range(3)]
    differs = [np.abs(layers[0] - layer).max(axis=-1) > 1e-4 for layer in (layers[1], blurred, layers[2])]
    # Body, body and discs, and discs that are solid: more is covered, and never less.
    assert 100 < differs[0].sum() < differs[1].sum()
    outside = dataclasses.replace(path, sees_vehicle=False)
    assert np.array_equal(stage.shoot(outside, slice(0, 1))[0], layers[0])
    # A disc is a mixture of what is behind it and of itself.
    mixed = np.abs(blurred - layers[1]).max(axis=-1) > 1e-4
    share = ((blurred - layers[1]) / np.where(np.abs(layers[2] - layers[1]) > 1e-2, layers[2] - layers[1], np.nan))[mixed]
    assert np.nanmax(share) < TIP_OPACITY + 0.003  # of a mask in 8 bits
    assert np.nanmedian(share) == pytest.approx(DISC_OPACITY, abs=0.003)


def test_caption_and_corner_stay_in_their_places() -> None:
    layout = FilmLayout(640, 360)
    grey = np.full((360, 640, 3), 128, np.uint8)
    captioned = [layout.with_caption(grey, "carl", [text, "1.0 m/s"]) for text in ("9.9 s", "11.1 s")]
    changed = [np.abs(picture.astype(int) - 128).max(axis=-1) > 0 for picture in captioned]
    assert not changed[0][:300].any()
    assert captioned[0].max() == 255
    # Digits that come leave the speed where it was.
    columns = [np.flatnonzero(mask.any(axis=0)) for mask in changed]
    assert columns[0][-1] == columns[1][-1]
    small = np.zeros((*layout.corner_size[::-1], 3), np.uint8)
    framed = layout.with_corner(grey, small)
    rows, cols = np.nonzero((framed != 128).any(axis=-1))
    assert (cols.min() > 400, rows.min() > 200) == (True, True)
    assert (framed[rows.min() + 40 : rows.min() + 60, cols.min() + 40 : cols.min() + 60] == 0).all()
    assert 640 - 1 - cols.max() == 360 - 1 - rows.max() == layout.margin


# ---- files


def moving_picture(count: int, width: int = 128, height: int = 72) -> list[np.ndarray]:
    """Smooth colours with a sharp square that moves."""
    v, u = np.mgrid[0:height, 0:width] / height
    shown = []
    for k in range(count):
        wave = [127.0 + 100.0 * np.sin(3.0 * u + 0.1 * k), 127.0 + 100.0 * np.cos(2.0 * v), 60.0 + 90.0 * u]
        picture = np.stack(wave, axis=-1).clip(0, 255).astype(np.uint8)
        picture[20:50, 2 * k : 2 * k + 30] = (250, 240, 20)
        shown.append(picture)
    return shown


@pytest.mark.parametrize(("suffix", "bound"), [(".mp4", 35.0), (".webp", 30.0)])
def test_films_decode_to_what_was_written(tmp_path: Path, suffix: str, bound: float) -> None:
    """Count and size; PSNR above 35 dB, what H.264 at crf 20 is taken to keep; WebP blurs colour more at the square's edges."""
    if suffix == ".mp4":
        pytest.importorskip("av")
    written = moving_picture(25)
    path = write_video(tmp_path / f"a{suffix}", iter(written), 25, (128, 72), 30.0)
    decoded = list(read_frames(path))
    assert [frame.shape for frame in decoded] == [(72, 128, 3)] * 25
    assert min(psnr(a / 255.0, b / 255.0) for a, b in zip(decoded, written, strict=True)) > bound
    again = write_video(tmp_path / f"b{suffix}", iter(written), 25, (128, 72), 30.0)
    assert again.read_bytes() == path.read_bytes()


def test_mp4_plays_at_its_rate_from_its_first_byte_on(tmp_path: Path) -> None:
    """H.264, yuv420p, BT.709, its index before its pictures, and no date."""
    av = pytest.importorskip("av")
    path = write_video(tmp_path / "a.mp4", iter(moving_picture(10)), 10, (128, 72), 29.97)
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        context = stream.codec_context
        assert (context.name, context.pix_fmt, stream.frames) == ("h264", "yuv420p", 10)
        assert float(stream.average_rate) == pytest.approx(29.97, abs=1e-3)
        assert (context.colorspace, context.color_primaries, context.color_trc, context.color_range) == (1, 1, 1, 1)
        assert "creation_time" not in file.metadata
    data = path.read_bytes()
    assert 0 < data.index(b"moov") < data.index(b"mdat")


def test_flat_colours_come_back(tmp_path: Path) -> None:
    """A wrong matrix would turn colours by 10 counts and more; rounding of YUV and the quantiser keep them within 4."""
    pytest.importorskip("av")
    for color in ((200, 30, 40), (20, 160, 60), (30, 60, 210), (250, 250, 250), (5, 5, 5)):
        picture = np.full((32, 32, 3), color, np.uint8)
        path = write_video(tmp_path / "a.mp4", iter([picture] * 3), 3, (32, 32), 30.0)
        assert np.abs(next(read_frames(path)).astype(int) - color).max() <= 4


def test_webp_shows_every_frame_for_its_time(tmp_path: Path) -> None:
    """Stamps are whole milliseconds; their rounding does not add up: 30 frames at 30 Hz last a second."""
    path = write_video(tmp_path / "a.webp", iter(moving_picture(30, 32, 18)), 30, (32, 18), 30.0)
    lasting = 0
    with Image.open(path) as image:
        for k in range(image.n_frames):
            image.seek(k)
            image.load()
            lasting += image.info["duration"]
    assert (k, lasting) == (29, 1000)


@pytest.mark.parametrize("suffix", [".mp4", ".webp"])
def test_frames_are_taken_one_by_one_and_let_go(tmp_path: Path, suffix: str) -> None:
    if suffix == ".mp4":
        pytest.importorskip("av")
    alive: list[weakref.ref[np.ndarray]] = []

    def frames_of() -> Iterator[np.ndarray]:
        for k in range(60):
            assert sum(ref() is not None for ref in alive) <= 4
            picture = np.full((32, 32, 3), k, np.uint8)
            alive.append(weakref.ref(picture))
            yield picture

    write_video(tmp_path / f"a{suffix}", frames_of(), 60, (32, 32), 30.0)


@pytest.mark.parametrize("suffix", [".mp4", ".webp"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, AirworthyError])
def test_an_interrupted_film_leaves_nothing(tmp_path: Path, suffix: str, stop: type[BaseException]) -> None:
    if suffix == ".mp4":
        pytest.importorskip("av")

    def frames_of() -> Iterator[np.ndarray]:
        yield from moving_picture(5)
        raise stop("now")

    old = tmp_path / f"a{suffix}"
    old.write_bytes(b"an older film")
    with pytest.raises(stop):
        write_video(old, frames_of(), 9, (128, 72), 30.0)
    assert [path.name for path in tmp_path.iterdir()] == [old.name]
    assert old.read_bytes() == b"an older film"


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirworthyError, match=r"expected a name that ends in \.mp4 or \.webp"):
        write_video(tmp_path / "a.avi", [], 0, (32, 32), 30.0)
    with pytest.raises(AirworthyError, match="A film of 33x32 pixels was asked for; expected even numbers, 16 to 4096"):
        write_video(tmp_path / "a.webp", [], 0, (33, 32), 30.0)
    monkeypatch.setattr(files, "can_write_mp4", lambda: False)
    with pytest.raises(AirworthyError, match=r"An MP4 needs the package 'av': pip install 'airworthy\[video\]'"):
        write_video(tmp_path / "a.mp4", [], 0, (32, 32), 30.0)
    assert files.video_suffix() == ".webp"


# ---- the sheet


@pytest.mark.parametrize(
    ("points", "moved"),
    [
        (np.full((16, 2), 90.0), 15),  # hovering: all frames at one place
        (np.full((16, 2), 0.5), 16),  # in the corner, where no number has room on its own point
        (np.stack([np.linspace(20.0, 280.0, 16), np.full(16, 80.0)], 1), 8),  # a line with marks of 22 px every 17.3 px
        (150.0 + 60.0 * np.stack([np.cos(np.arange(16) * np.pi / 8), np.sin(np.arange(16) * np.pi / 4)], 1), None),
    ],
)
def test_numbers_of_frames_do_not_overlap(points: np.ndarray, moved: int | None) -> None:
    """Every number is there, within the picture, clear of all others, and on its own point wherever that is free."""
    size = np.array([300.0, 250.0])
    labels = label_places(points, size, float(MARK))
    assert np.isfinite(labels).all()
    apart = np.linalg.norm(labels[:, None] - labels[None], axis=-1) + 1e9 * np.eye(len(labels))
    assert apart.min() >= 2.0 * MARK - 1e-6
    assert (labels >= MARK - 1e-9).all()
    assert (labels <= size - MARK + 1e-9).all()
    if moved is not None:
        assert (np.linalg.norm(labels - points, axis=1) > 1e-9).sum() == moved
    reach = 2.0 * MARK * (np.sqrt(16 * 4.0 / np.pi) + 1.0)  # of a quarter disc with room for 16 squares, and one mark more
    assert np.linalg.norm(labels - points, axis=1).max() <= reach


def test_a_number_without_room_is_left_out() -> None:
    labels = label_places(np.full((9, 2), 15.0), np.array([30.0, 30.0]), 11.0)
    assert np.isfinite(labels).all(axis=1).sum() == 1


def test_a_long_title_leaves_room_for_the_figures() -> None:
    assert shortened("a vehicle in a hall", lambda text: len(text) <= 11) == "a vehicle\u2026"
    assert shortened("short", lambda text: len(text) <= 11) == "short"


# ---- the whole


def test_a_film_and_its_contact_sheet(tmp_path: Path) -> None:
    """The decoded film against the pictures that were rendered: over 33 dB (H.264 at crf 20, letters and edges in 4:2:0)."""
    table = weaving(1.0)
    options = VideoOptions(size=(160, 90), rate=10.0, samples=1)
    film = record_video(table, ROOM, tmp_path / "film", options, flyer=CARL)
    suffix = files.video_suffix()
    assert (film.path.name, film.frames, film.size, film.camera) == (f"film{suffix}", 11, (160, 90), "onboard+chase")
    decoded = list(read_frames(film.path))
    rendered = list(_Film(FlightTrack.of(table), ROOM, CARL, options, "cpu").pictures())
    assert len(decoded) == len(rendered) == 11
    assert min(psnr(a / 255.0, b / 255.0) for a, b in zip(decoded, rendered, strict=True)) > 33.0
    with Image.open(film.sheet) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width == 1714
        assert sheet.height > 1000


def test_the_plan_shows_the_path_also_beyond_the_scene() -> None:
    """The line is where the path is, from -4 m on past the room's end at 6 m, with the room in the middle of the picture."""
    t = np.arange(101) * 0.1
    track = FlightTrack.of(table_of(t, np.stack([-4.0 + 3.0 * t, 0 * t, 0 * t + 1], 1), (3.0, 0, 0)))
    picture = plan_view(ROOM, track, track.position[[0, 50, 100]], (300, 160)).astype(int)
    orange = (picture[..., 0] - picture[..., 2] > 60).any(axis=0)
    assert orange[150:285].all()
    assert not orange[:110].any()


def test_films_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="A film needs something to see: name a scene"):
        record_video(weaving(), None, tmp_path / "a", flyer=CARL)
    with pytest.raises(AirworthyError, match="do not say who flew: give the vehicle"):
        record_video(weaving(), ROOM, tmp_path / "a")
    with pytest.raises(AirworthyError, match="A film of 500 frames per second was asked for; expected 1 to 240"):
        record_video(weaving(), ROOM, tmp_path / "a", VideoOptions(rate=500.0), flyer=CARL)
    assert not list(tmp_path.iterdir())


QUICK: dict[str, Any] = {
    "vehicle": ("carl",),
    "scene": "mid_gate",
    "waypoints": ("-4.5,0,1", "-4,0,1"),
    "hold": 0.0,
    "record": ("video",),
    "video_size": (64, 36),
    "video_rate": 2.0,
    "video_camera": "onboard",
}


@pytest.mark.usefixtures("small_pictures")
def test_a_run_leaves_a_film_that_summary_and_report_tell_of(tmp_path: Path) -> None:
    result = run_fly(FlyConfig(**QUICK, out=tmp_path))
    assert result.video is not None
    entry = read_summary(tmp_path)["video"]
    assert entry["file"] == "video" + files.video_suffix()
    assert (entry["size_px"], entry["rate_hz"], entry["camera"], entry["env"]) == ([64, 36], 2.0, "onboard", 0)
    assert len(list(read_frames(tmp_path / entry["file"]))) == entry["frames"]
    assert (tmp_path / entry["contact_sheet"]).is_file()
    page = (tmp_path / "report.html").read_text()
    assert 'id="film"' in page
    assert "data:video/mp4;base64," in page or "data:image/webp;base64," in page
    assert "file:" not in page.split("</head>")[0]
    assert read_config(tmp_path) == FlyConfig(**QUICK, out=tmp_path)
    assert "--record video" in command_line(read_config(tmp_path))
    assert refly(tmp_path).equal
    # Another run in the folder takes the old film away.
    run_fly(without_film(FlyConfig(**{**QUICK, "report": False}, out=tmp_path)))
    assert not list(tmp_path.glob("video*"))
    assert "video" not in read_summary(tmp_path)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, AirworthyError])
def test_a_film_that_fails_keeps_the_flights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def pictures(self: _Film) -> Iterator[np.ndarray]:
        yield np.zeros((36, 64, 3), np.uint8)
        raise stop("The disk is full.")

    monkeypatch.setattr(_Film, "pictures", pictures)
    config = FlyConfig(**{**QUICK, "report": False}, out=tmp_path)
    if stop is KeyboardInterrupt:
        result = run_fly(config)
        assert (result.film_interrupted, result.interrupted, result.video) == (True, False, None)
    else:
        with pytest.raises(AirworthyError, match="The disk is full"):
            run_fly(config)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == [
        CONFIG_FILE,
        "flight.parquet",
        "meta.json",
        "record",
        "summary.json",
    ]
    assert read_summary(tmp_path)["flights"][0]["outcome"]
    assert json.loads((tmp_path / "meta.json").read_text())["interrupted"] is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"record": ("vdeo",)}, "Unknown recording 'vdeo'. Closest: 'video'"),
        ({"scene": None}, "A film needs something to see: name a --scene"),
        ({"video_env": 1}, "video_env is 1; expected less than the 1 flights, which count from 0"),
        ({"video_rate": 0.0}, "video_rate is 0 Hz; expected 1 to 240"),
        ({"video_size": (65, 36)}, "A film of 65x36 pixels was asked for; expected even numbers"),
    ],
)
def test_options_that_nobody_can_mean(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AirworthyError, match=message.replace(".", r"\.")):
        check_config(FlyConfig(**{**QUICK, **changes}))


def test_an_unknown_camera_is_told_before_anything_flies(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"Unknown camera 'onbord'\. Closest: 'onboard'"):
        run_fly(FlyConfig(**{**QUICK, "video_camera": "onbord"}, out=tmp_path))
    assert not list(tmp_path.iterdir())


def test_what_a_vehicle_without_a_camera_sees(make_flights: Callable[..., Any]) -> None:
    """A plain camera at its middle, of SOUS VIDE's intrinsics."""
    path = camera_path(
        "onboard", FlightTrack.of(weaving()), np.zeros(1), vehicle("flightgoggles"), RenderedScene(ROOM, CARL, 1).batch
    )
    assert path.projection == PLAIN.projection
