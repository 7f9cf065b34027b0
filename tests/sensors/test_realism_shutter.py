"""Shutter and aperture against their formulas, on a glowing wall whose edge is seen edge on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Actor, Instance, Material, Scene, Sky
from airworthy.sensors.build import make_sensor
from airworthy.sensors.camera import Camera
from airworthy.sensors.devices import device
from airworthy.sensors.realism import DepthOfField, MotionBlur, Realism, RollingShutter
from airworthy.sensors.realism.camera import ThinLens, aperture_points, exposure_ages, poses_at, row_ages
from airworthy.sensors.sampling import SensorView

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
GLOW = {"glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(1.0, 1.0, 1.0))}
CAMERA = Pinhole.from_fov(96, 64, vertical=1.0)
RATE = 50.0


def wall(depth: float = 5.0, whole: bool = False) -> SceneBatch:
    """Glowing, thin, in the left half (y > 0) of the view; its edge is on the axis. `whole`: it goes on, black."""
    left = Instance("wall", (depth + 0.001, 20.0, 0.0), materials=("glow",))
    right = Instance("wall", (depth + 0.001, -20.0, 0.0), materials=("black",))
    materials = {**GLOW, "black": Material((0.0, 0.0, 0.0, 1.0))}
    things = (left, right) if whole else (left,)
    return SceneBatch(Scene("s", {"wall": Box((0.001, 20.0, 20.0))}, materials, instances=things, lights=(), sky=BLACK))


def camera(settings: Realism | None, *channels: str) -> Camera:
    item = device("flightgoggles_camera").variant(projection=CAMERA, rate=RATE, channels=channels or ("rgb",), realism=settings)
    made = make_sensor(item)
    assert isinstance(made, Camera)
    return made


def view(y: float = 0.0, yaw: float = 0.0) -> SensorView:
    return SensorView(np.array([[0.0, y, 0.0]]), frames.from_euler(0.0, 0.0, yaw)[None], np.zeros(1, int))


def passing(settings: Realism, speed: float, *channels: str) -> dict[str, Any]:
    """The third image of a camera that moves along y at a constant speed [m/s]; it is at y = 0 then."""
    eye, scene = camera(settings, *channels), wall()
    for past in (2, 1, 0):
        out = eye.capture(scene, view(-speed * past / RATE))
    return out


def box_width(line: np.ndarray) -> float:
    """Width of a ramp [px], from its variance as a distribution of steps: a box of width w has variance w^2 / 12."""
    steps = np.abs(np.diff(line.astype(float)))
    place = np.arange(len(steps))
    mean = (steps * place).sum() / steps.sum()
    return float(np.sqrt(12.0 * (steps * (place - mean) ** 2).sum() / steps.sum()))


def lit_columns(image: np.ndarray) -> np.ndarray:
    """How far the wall reaches in each row [px]: its light, since it is 1."""
    return image[0, ..., 0].astype(float).sum(1)


# ---- shutter ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("percent", [0.25, 1.0])
def test_the_blur_of_a_passing_edge_is_speed_times_exposure(percent: float) -> None:
    speed = 45.0
    line = passing(Realism(motion_blur=MotionBlur(percent, 32)), speed)["rgb"][0, 30, :, 0]
    width = speed * percent / RATE / 5.0 * CAMERA.fx
    assert width > 2.0
    # Edges fall on whole pixels in each of the 32 exposures: that widens a box by a pixel at most.
    assert box_width(line) == pytest.approx(width, abs=1.0)
    # It ends at the stamp: the wall was further right (larger u) ... half the way, on average.
    assert line.sum() == pytest.approx(48.0 - 0.5 * width, abs=0.6)


def test_a_still_camera_and_a_first_image_are_sharp() -> None:
    sharp = camera(None).capture(wall(), view())["rgb"]
    blur = Realism(motion_blur=MotionBlur(1.0, 8))
    np.testing.assert_array_equal(passing(blur, 0.0)["rgb"], sharp)
    np.testing.assert_array_equal(camera(blur).capture(wall(), view())["rgb"], sharp)
    np.testing.assert_array_equal(passing(Realism(motion_blur=MotionBlur()), 45.0)["rgb"], sharp)  # 0 %: an instant


def test_a_new_flight_is_not_blurred_by_the_last() -> None:
    eye, scene = camera(Realism(motion_blur=MotionBlur(1.0, 8))), wall()
    eye.capture(scene, view(-1.0))
    eye.reset([0])
    np.testing.assert_array_equal(eye.capture(scene, view())["rgb"], camera(None).capture(scene, view())["rgb"])


def test_turning_blurs_by_the_angle() -> None:
    eye, scene = camera(Realism(motion_blur=MotionBlur(1.0, 32))), wall()
    for yaw in (-0.16, -0.08, 0.0):
        image = eye.capture(scene, view(yaw=yaw))["rgb"]
    assert box_width(image[0, 30, :, 0]) == pytest.approx(np.tan(0.08) * CAMERA.fx, abs=1.0)


def test_what_moves_in_the_scene_is_blurred_too_and_put_back() -> None:
    part = Instance("wall", materials=("glow",))
    actor = Actor("door", (part,), "velocity", (5.5, 20.0, 0.0), velocity=(0.0, -30.0, 0.0))
    batch = SceneBatch(Scene("s", {"wall": Box((0.5, 20.0, 20.0))}, GLOW, actors=(actor,), lights=(), sky=BLACK))
    batch.advance(0.1)
    eye = camera(Realism(motion_blur=MotionBlur(0.5, 16)))
    line = eye.capture(batch, view(-3.0))["rgb"][0, 30, :, 0]
    assert box_width(line) == pytest.approx(30.0 * 0.5 / RATE / 5.0 * CAMERA.fx, abs=1.0)
    assert batch.time[0] == 0.1
    np.testing.assert_allclose(batch.actor_pose("door")[0][0], (5.5, 17.0, 0.0), atol=1e-9)


def test_rolling_rows_are_skewed_by_speed_times_line_time() -> None:
    speed, readout = 45.0, 0.8
    out = passing(Realism(rolling_shutter=RollingShutter(readout)), speed, "rgb", "depth")
    line_time = readout / RATE / 64
    slope, last = np.polyfit(np.arange(64) - 63, lit_columns(out["rgb"]), 1)
    # The wall moves right in the image as the camera moves left, so later rows show more of it. Whole pixels over 64 rows.
    assert slope == pytest.approx(speed * line_time / 5.0 * CAMERA.fx, rel=0.03)
    assert last == pytest.approx(48.0, abs=1.0)
    # Every other channel is of the same rows.
    np.testing.assert_array_equal(np.isfinite(out["depth"]), out["rgb"][..., 0] > 0.5)


def test_rolling_rows_are_each_blurred() -> None:
    speed, readout, percent = 45.0, 0.8, 0.5
    settings = Realism(rolling_shutter=RollingShutter(readout), motion_blur=MotionBlur(percent, 32))
    image = passing(settings, speed)["rgb"]
    shift_px = speed / RATE / 5.0 * CAMERA.fx
    slope, last = np.polyfit(np.arange(64) - 63, lit_columns(image), 1)
    assert slope * 64 == pytest.approx(readout * shift_px, rel=0.03)
    assert last == pytest.approx(48.0 - 0.5 * percent * shift_px, abs=0.7)
    for row in (0, 30, 63):
        assert box_width(image[0, row, :, 0]) == pytest.approx(percent * shift_px, abs=1.0)


def test_a_still_rolling_camera_sees_what_another_sees() -> None:
    out = passing(Realism(rolling_shutter=RollingShutter(1.0)), 0.0, "rgb", "depth", "instance", "normal_world")
    plain = camera(None, "rgb", "depth", "instance", "normal_world").capture(wall(), view())
    for name, array in plain.items():
        np.testing.assert_array_equal(out[name], array, err_msg=name)


def test_instants_and_poses() -> None:
    np.testing.assert_allclose(exposure_ages(0.5, 4), [0.4375, 0.3125, 0.1875, 0.0625])
    np.testing.assert_allclose(row_ages(4, 0.5), [0.375, 0.25, 0.125, 0.0])
    turns = frames.from_euler(0.0, 0.0, np.array([0.0, 0.2, 0.6]))
    p, q = poses_at(np.array([2.0, 1.5, 1.0, 0.25, 0.0]), np.arange(3.0)[None, :, None] * np.ones(3), turns[None])
    np.testing.assert_allclose(p[0, :, 0], [0.0, 0.5, 1.0, 1.75, 2.0], atol=1e-12)
    np.testing.assert_allclose(frames.yaw_of(q[0]), [0.0, 0.1, 0.2, 0.5, 0.6], atol=1e-9)


def test_rows_have_no_common_pose_for_a_second_eye() -> None:
    with pytest.raises(AirworthyError, match="rolling shutter"):
        make_sensor(device("realsense_d455_datasheet").variant(realism=Realism(rolling_shutter=RollingShutter())))


# ---- aperture ---------------------------------------------------------------------------------------------------------------


def test_the_circle_of_confusion_is_the_lens_formulas() -> None:
    """|A f (d - s) / (d (s - f))|, and the lens equation behind it."""
    lens = ThinLens.of(DepthOfField(f_number=5.6, focus=10.0, sensor_height=4.8e-3), 548.41, 768)
    f, aperture, s = lens.focal_length, lens.aperture, 10.0
    image = 548.41 * 4.8e-3 / 768
    assert 1.0 / f == pytest.approx(1.0 / image + 1.0 / s, rel=1e-12)
    assert aperture == pytest.approx(f / 5.6)
    depth = np.array([0.2, 1.0, 10.0, 30.0, np.inf])
    with np.errstate(invalid="ignore"):
        expected = np.abs(aperture * f * (depth - s) / (depth * (s - f)))
    expected[-1] = aperture * f / (s - f)
    np.testing.assert_allclose(lens.circle(depth), expected, rtol=1e-12, atol=1e-20)
    np.testing.assert_allclose(lens.circle_pixels(depth), expected / (4.8e-3 / 768), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("depth", [2.0, 20.0])
def test_an_edge_out_of_focus_is_as_wide_as_the_formula_says(depth: float) -> None:
    settings = DepthOfField(0.1, 5.0, 0.06, 64)
    image = camera(Realism(depth_of_field=settings)).capture(wall(depth), view())["rgb"][0, ..., 0]
    diameter = float(ThinLens.of(settings, CAMERA.fy, 64).circle_pixels(depth))
    assert diameter > 4.0
    # Across, a disc of diameter D has variance D^2 / 16: the box of that variance is sqrt(12 / 16) D wide. Rows differ in how
    # the points are turned; whole pixels widen it a little.
    assert box_width(image.mean(0)) / np.sqrt(12.0 / 16.0) == pytest.approx(diameter, rel=0.05)


def test_what_is_in_focus_is_sharp() -> None:
    settings = Realism(depth_of_field=DepthOfField(0.1, 5.0, 0.06, 16))
    image = camera(settings).capture(wall(5.0), view())["rgb"]
    plain = camera(None).capture(wall(5.0), view())["rgb"]
    np.testing.assert_allclose(image, plain, atol=1e-6)


def test_the_fast_way_agrees_with_the_exact_one_on_a_flat_wall() -> None:
    scene = wall(2.0, whole=True)
    lens = DepthOfField(0.1, 5.0, 0.036, 64)
    exact = camera(Realism(depth_of_field=lens)).capture(scene, view())["rgb"][0, ..., 0]
    fast = camera(Realism(depth_of_field=replace(lens, method="gather"))).capture(scene, view())["rgb"][0, ..., 0]
    # 64 places on a disc of 5.5 px, rounded to pixels.
    np.testing.assert_allclose(fast[8:-8].mean(0), exact[8:-8].mean(0), atol=0.06)
    assert box_width(fast[30]) == pytest.approx(box_width(exact.mean(0)), rel=0.1)


def test_the_fast_way_leaves_what_is_sharp_as_it_is() -> None:
    settings = Realism(depth_of_field=DepthOfField(5.6, 5.0, method="gather"))
    np.testing.assert_array_equal(camera(settings).capture(wall(), view())["rgb"], camera(None).capture(wall(), view())["rgb"])


@pytest.mark.parametrize("samples", [1, 2, 8, 16, 61])
def test_points_are_spread_over_the_aperture(samples: int) -> None:
    points = aperture_points(samples)
    assert points.shape == (samples, 2)
    assert len(np.unique(np.round(points, 9), axis=0)) == samples
    assert np.hypot(*points.T).max() <= 1.0
    if samples >= 8:
        assert np.abs(points.mean(0)).max() < 0.15
        assert (points**2).sum(1).mean() == pytest.approx(0.5)  # the second moment of a disc
