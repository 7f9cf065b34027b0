"""Which way is up: upright edges, the floor, accelerations, and how they are combined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from alignment_building import LENS, hall_points, walk

from airworthy.capture import Accelerations, CaptureImages, read_accelerations
from airworthy.capture.alignment.floor import find_floor
from airworthy.capture.alignment.level import UpDirection, angle_of, combined_level, up_by_accelerations, up_by_cameras
from airworthy.capture.alignment.verticals import image_segments, seen_segments, segments_of, up_by_segments
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.viewpoints import look_at

UP = np.array([0.0, 0.0, 1.0])


def looking_about(count: int = 20, seed: int = 0) -> CaptureImages:
    """Level cameras that look all around, up to 0.3 rad up and down."""
    rng = np.random.default_rng(seed)
    position, yaw = rng.uniform((-2.0, -2.0, 1.2), (2.0, 2.0, 1.8), (count, 3)), rng.uniform(-np.pi, np.pi, count)
    sight = np.stack((np.cos(yaw), np.sin(yaw), rng.uniform(-0.3, 0.3, count)), axis=-1)
    attitude = np.stack([look_at(a, a + b) for a, b in zip(position, sight, strict=True)])
    return CaptureImages((np.zeros((1, 1, 3), np.uint8),) * count, np.tile(LENS, (count, 1)), position, attitude)


def edges(images: CaptureImages, upright: int, slanted: int, noise: float, seed: int = 0) -> list[np.ndarray]:
    """Ends of edges on walls 4 m away, as the cameras see them."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-np.pi, np.pi, upright + slanted)
    foot = np.stack((4.0 * np.cos(turn), 4.0 * np.sin(turn), rng.uniform(0.0, 1.0, len(turn))), axis=-1)
    along = rng.normal(size=(len(turn), 3))
    along[:upright] = UP
    top = foot + rng.uniform(0.5, 2.0, (len(turn), 1)) * along / np.linalg.norm(along, axis=1, keepdims=True)
    result = []
    for position, attitude in zip(images.position, images.attitude, strict=True):
        eye = frames.rotate_inverse(attitude, np.concatenate((foot, top)) - position).reshape(2, -1, 3)
        pixel = eye[..., :2] / eye[..., 2:] * LENS[:2] + LENS[2:]
        inside = ((eye[..., 2] > 0.1) & (pixel > 0.0).all(axis=-1) & (pixel < 2.0 * LENS[2:]).all(axis=-1)).all(axis=0)
        seen = np.concatenate((pixel[0, inside], pixel[1, inside]), axis=-1)
        result.append(seen + noise * rng.normal(size=seen.shape))
    return result


def test_upright_edges_tell_up() -> None:
    """Half of all edges are slanted, and the guess is 10 degrees off: an edge of 150 px with 0.4 px at its ends is sure within
    0.2 degrees, hundreds of them within hundredths.
    """
    off, inside = [], 0
    for seed in range(20):
        images = looking_about(seed=seed)
        found = up_by_segments(segments_of(images, edges(images, 60, 60, 0.4, seed)), (np.sin(0.17), 0.0, np.cos(0.17)))
        assert found is not None
        off.append(np.degrees(angle_of(found.direction, UP)))
        inside += off[-1] <= np.degrees(found.tilt95)
    assert max(off) < 0.1
    assert inside >= 17


def test_edges_that_are_slanted_tell_nothing() -> None:
    images = looking_about()
    assert up_by_segments(segments_of(images, edges(images, 0, 300, 0.4)), UP, np.radians(10.0)) is None
    assert up_by_segments(segments_of(images, [np.zeros((0, 4))] * len(images)), UP) is None


def test_edges_in_pictures() -> None:
    """A black bar that is turned by 0.1 rad: both long edges, to a twentieth of a degree."""
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    v, u = np.mgrid[0:240, 0:320] + 0.5
    across = (u - 160) * np.cos(0.1) + (v - 120) * np.sin(0.1)
    dark = np.clip(20.5 - np.abs(across), 0.0, 1.0) * (np.abs(v - 120) < 90)
    rgb = np.repeat(np.uint8(np.rint(230.0 - 200.0 * dark))[..., None], 3, axis=-1)
    found = image_segments(rgb)[:2]
    angle = np.arctan2(found[:, 2] - found[:, 0], found[:, 3] - found[:, 1])
    assert np.abs(np.tan(angle)) == pytest.approx(np.full(2, np.tan(0.1)), abs=1e-3)
    middle = 0.5 * (found[:, :2] + found[:, 2:])
    off = (middle[:, 0] - 160) * np.cos(0.1) + (middle[:, 1] - 120) * np.sin(0.1)
    assert sorted(off) == pytest.approx([-20.0, 20.0], abs=0.3)


def test_borders_of_masks_are_no_edges() -> None:
    """A picture that was made straight is black beside a border that stands upright in it, whatever stands so in the place."""
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    rgb = np.full((120, 160, 3), 200, np.uint8)
    rgb[:, 100:] = 0
    rgb[20:100, 40:60] = 60
    mask = np.ones((120, 160), bool)
    mask[:, 100:] = False
    one = {
        "intrinsics": np.array([[100.0, 100.0, 80.0, 60.0]]),
        "position": np.zeros((1, 3)),
        "attitude": np.array([[0, 0, 0, 1.0]]),
    }
    assert len(seen_segments(CaptureImages((rgb,), **one)).image) == 5
    assert len(seen_segments(CaptureImages((rgb,), **one, masks=(mask,))).image) == 4


def test_the_floor_is_the_lowest_large_plane() -> None:
    """Below a table that holds half as many points, among a wall, reflections beneath and a guess that is 8 degrees off."""
    rng = np.random.default_rng(1)
    below = np.column_stack((rng.uniform(-2.0, 2.0, (60, 2)), rng.uniform(-2.0, -0.3, 60)))
    made = walk(points=np.concatenate((hall_points(), below)))
    guess = frames.rotate_inverse(made.truth.rotation, (np.sin(0.14), 0.0, np.cos(0.14)))
    found = find_floor(made.images, guess, np.radians(15.0))
    truth = frames.rotate_inverse(made.truth.rotation, UP)
    assert found is not None
    # 1,000 points with 4 mm over 8 m: 4e-3 / sqrt(1000) / 2.3 m = 0.003 degrees.
    assert np.degrees(angle_of(found.normal, truth)) < 0.015
    foot = made.truth.inverse.points(np.zeros(3))
    assert made.truth.scale * float(found.above(foot)) == pytest.approx(0.0, abs=1e-3)


def test_a_wall_without_a_floor_is_no_floor() -> None:
    """A level band of it is flatter across the wall than upwards."""
    rng = np.random.default_rng(0)
    wall = np.column_stack([np.full(6000, 4.0), rng.uniform(-3.0, 3.0, 6000), rng.uniform(0.0, 2.5, 6000)])
    wall = wall + 0.002 * rng.normal(size=wall.shape)
    made = walk(points=wall)
    guess = frames.rotate_inverse(made.truth.rotation, UP)
    assert find_floor(made.images, guess, np.radians(3.0)) is None
    # Beside a floor it hides none.
    floor = np.column_stack([rng.uniform(-4.0, 4.0, (3000, 2)), 0.002 * rng.normal(size=3000)])
    made = walk(points=np.concatenate([wall, floor]))
    found = find_floor(made.images, frames.rotate_inverse(made.truth.rotation, UP), np.radians(3.0))
    assert found is not None
    assert made.truth.scale * float(found.above(made.truth.inverse.points(np.zeros(3)))) == pytest.approx(0.0, abs=3e-3)


def test_no_floor_without_points_or_above_cameras() -> None:
    assert find_floor(walk().images, UP, 0.3) is None
    rng = np.random.default_rng(0)
    ceiling = np.column_stack((rng.uniform(-4.0, 4.0, (500, 2)), np.full(500, 3.0)))
    made = walk(points=ceiling)
    assert find_floor(made.images, frames.rotate_inverse(made.truth.rotation, UP), 0.1) is None


def filmed(seed: int = 0) -> tuple[CaptureImages, np.ndarray, dict[str, float]]:
    """20 s of filming at 5 images and 100 accelerations a second, by a hand that moves and shakes; the frame is tilted."""
    rng = np.random.default_rng(seed)
    count, tilt = 101, frames.from_euler(0.2, -0.1, 0.7)
    clock = np.arange(count) / 5.0
    turn = frames.from_euler(0.1 * np.sin(clock), 0.2 * np.cos(0.7 * clock), 0.3 * clock)
    camera = frames.camera_attitude(turn)
    images = CaptureImages(
        (np.zeros((1, 1, 3), np.uint8),) * count, np.tile(LENS, (count, 1)), np.zeros((count, 3)), frames.multiply(tilt, camera)
    )
    times = np.arange(0.0, 20.0, 0.01)
    first = np.minimum((times * 5.0).astype(int), count - 2)
    held = frames.slerp(camera[first], camera[first + 1], times * 5.0 - first)
    moved = 1.5 * np.sin(2.0 * np.pi * 1.8 * times)[:, None] * np.array([0.3, 0.2, 1.0]) + 0.2 * rng.normal(
        size=(len(times), 3)
    )
    measured = frames.rotate_inverse(held, moved + np.array([0.0, 0.0, 9.81]))
    # The camera's right, down and forward are the telephone's x, -y and -z.
    samples = np.column_stack((times, measured * (1.0, -1.0, -1.0)))
    return images, samples, {name: float(t) for name, t in zip(images.names, clock, strict=True)}


def test_accelerations_tell_up() -> None:
    images, samples, times = filmed()
    found = up_by_accelerations(images, Accelerations(samples, times))
    truth = frames.rotate(frames.from_euler(0.2, -0.1, 0.7), UP)
    assert np.degrees(angle_of(found.direction, truth)) < 0.3
    assert angle_of(found.direction, truth) <= found.tilt95 < np.radians(1.5)


def test_accelerations_that_cannot_be_used(tmp_path: Path) -> None:
    images, samples, times = filmed()
    with pytest.raises(AirworthyError, match="negate them"):
        up_by_accelerations(images, Accelerations(samples * (1.0, -1.0, -1.0, -1.0), times))
    with pytest.raises(AirworthyError, match=r"expected about 9.81"):
        up_by_accelerations(images, Accelerations(samples * (1.0, 0.1, 0.1, 0.1), times))
    with pytest.raises(AirworthyError, match="both clocks are the same"):
        up_by_accelerations(images, Accelerations(samples + np.array([1e6, 0.0, 0.0, 0.0]), times))
    with pytest.raises(AirworthyError, match="no right-handed x, y, z with signs"):
        up_by_accelerations(images, Accelerations(samples, times, "x,y,-z"))
    path = tmp_path / "imu.csv"
    path.write_text("t,ax,ay,az\n" + "\n".join(f"{k / 100},0,9.81,0" for k in range(20)))
    assert read_accelerations(path).shape == (20, 4)
    path.write_text("t,ax,ay\n0,1,2\n")
    with pytest.raises(AirworthyError, match="has no column az"):
        read_accelerations(path)
    path.write_text("t,ax,ay,az\n0,1,2,x\n")
    with pytest.raises(AirworthyError, match="a row that is not four numbers"):
        read_accelerations(path)


def test_what_agrees_is_combined_and_what_does_not_is_said() -> None:
    def one(name: str, tilt: float, sigma: float) -> UpDirection:
        return UpDirection(name, np.array([np.sin(np.radians(tilt)), 0.0, np.cos(np.radians(tilt))]), np.radians(sigma), "")

    level = combined_level([one("floor", 0.1, 0.1), one("verticals", 0.0, 0.05), one("marker", 2.0, 0.2)])
    assert level is not None
    # Weights 1 to 4.
    assert np.degrees(angle_of(level.direction, UP)) == pytest.approx(0.02, rel=1e-3)
    assert np.degrees(level.sigma) == pytest.approx(1.0 / np.sqrt(500.0), rel=1e-6)
    assert level.used == ("floor", "verticals")
    assert "up by marker is 2.00 degrees from up by verticals" in level.against[0]
    assert level.told
    assert combined_level([]) is None
    cameras = up_by_cameras(looking_about())
    assert cameras is not None
    assert not combined_level([cameras]).told
