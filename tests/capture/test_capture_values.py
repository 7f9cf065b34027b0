"""What the room of captures computes, number by number: readers of captures whole and damaged, markers, plans, charts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import capture_building as build
import capture_fuzzing as fuzzing
import numpy as np
import pytest
from tests.fixtures.damage import outcomes
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.capture import TrainOptions, read_capture
from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.capture.alignment.markers import detect_marker, marker_corners, marker_poses, refined_corners
from airworthy.capture.alignment.similarity import best_similarity, find_similarity
from airworthy.capture.cameras import camera_of
from airworthy.capture.images import Undistorter, mean_up, over_black, reduced_size
from airworthy.capture.rendering import RenderCaptureOptions, camera_poses, render_capture
from airworthy.capture.training import image_models
from airworthy.capture.training import train as training
from airworthy.capture.training.image_models import CameraMotion, ExposureMaps
from airworthy.capture.training.options import SplatTrainingPlan, reduced
from airworthy.capture.training.run import TrainingRun, views_reach
from airworthy.capture.training.train import curve
from airworthy.geometry import Box
from airworthy.scenes import Instance, Material, Region, Scene, SceneBatch
from airworthy.splats.renderer import PoseGradients

SNAPSHOTS = Path(__file__).parent / "snapshots"
MODELS = {
    "SIMPLE_PINHOLE": (10.0, 6.0, 4.0),
    "PINHOLE": (10.0, 11.0, 6.0, 4.0),
    "SIMPLE_RADIAL": (10.0, 6.0, 4.0, 0.1),
    "RADIAL": (10.0, 6.0, 4.0, 0.1, -0.05),
    "OPENCV": (10.0, 11.0, 6.0, 4.0, 0.1, -0.05, 0.01, -0.02),
    "OPENCV_FISHEYE": (10.0, 11.0, 6.0, 4.0, 0.1, -0.05, 0.01, -0.002),
    "FULL_OPENCV": (10.0, 11.0, 6.0, 4.0, 0.1, -0.05, 0.01, -0.02, 0.03, 0.02, 0.01, 0.005),
    "SIMPLE_RADIAL_FISHEYE": (10.0, 6.0, 4.0, 0.1),
    "RADIAL_FISHEYE": (10.0, 6.0, 4.0, 0.1, -0.05),
}


@pytest.mark.parametrize("layout", fuzzing.LAYOUTS)
def test_captures_whole_and_damaged(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    valid = fuzzing.seeds()[layout]
    found = outcomes(fuzzing, monkeypatch, fuzzing.Driver(tmp_path), valid, fuzzing.inputs(layout, 77), 60)
    check_snapshot(SNAPSHOTS / f"read_{layout}.txt", found, 1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_cameras_and_undistortion(model: str) -> None:
    camera = camera_of(model, 12, 8, MODELS[model])
    flat = np.random.default_rng(1).uniform(-0.9, 0.9, (40, 2))
    values: dict[str, Any] = {"camera": condensed(camera), "distorted": camera.distort(flat), "pixels": camera.pixels(flat)}
    values["reach"] = [camera.reach(limit) for limit in (0.3, 1.0, 5.0)]
    values["sized"], values["straight"] = condensed(camera.sized(6, 4)), str(camera.straight)
    check_snapshot(SNAPSHOTS / f"camera_{model}.txt", values, 1e-7)


@pytest.mark.parametrize("up", [None, "x", "-y", "z"])
@pytest.mark.parametrize("every", [0, 2, 3])
def test_reading_with_every_option(up: str | None, every: int, tmp_path: Path) -> None:
    build.write(tmp_path, build.transforms(5))
    images = read_capture(tmp_path, width=7, up=up, every=every)
    values = {"images": condensed(images), "reach": views_reach(images), "up": condensed(mean_up(images.attitude))}
    values["moved"] = condensed(images.moved((0.1, -0.3, 0.5, 0.8062257748), (1.0, 2.0, 3.0), 1.7))
    check_snapshot(SNAPSHOTS / f"reading_{up}_{every}.txt", values, 1e-6)


def test_sizes_and_pixels() -> None:
    values: dict[str, Any] = {}
    for size in ((12, 8), (7, 9), (1, 5), (4000, 3000), (3, 4001)):
        values[str(size)] = [reduced_size(*size, most) for most in (None, 1, 7, 12, 1600, 5000)]
    image = np.random.default_rng(2).integers(0, 256, (13, 10, 4)).astype(np.uint8)
    values["over black"] = over_black(image)
    for factor in (1, 2, 4):
        values[f"reduced {factor}"] = reduced(image[..., :3], factor)
    values["marker"] = draw_marker(7)
    check_snapshot(SNAPSHOTS / "pixels.txt", values, 1e-6)


def test_similarities() -> None:
    rng = np.random.default_rng(3)
    source, values = rng.normal(size=(30, 3)), {}
    target = 2.5 * source[:, [1, 2, 0]] + (1.0, -2.0, 0.5) + 0.02 * rng.normal(size=(30, 3))
    values["best"] = condensed(best_similarity(source, target))
    target[::4] += rng.normal(size=(8, 3))
    for tolerance in (0.02, 0.1, 0.5):
        values[f"found {tolerance}"] = condensed(find_similarity(source, target, tolerance, 200, 3, 0.1))
    check_snapshot(SNAPSHOTS / "similarities.txt", values, 1e-7)


def test_markers() -> None:
    rng, lens = np.random.default_rng(4), np.array([700.0, 710.0, 320.0, 240.0])
    square = marker_corners(0.2)
    values: dict[str, Any] = {"square": square}
    for k in range(6):
        turn = rng.normal(0.0, 0.35, 3)
        cosine, sine = np.cos(turn[2]), np.sin(turn[2])
        where = square @ np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        where = np.array((0.0, 0.0, 1.0 + 0.2 * k)) + where + np.outer(where @ turn, (0.0, 0.0, 1.0))
        pixels = where[:, :2] / where[:, 2:] * lens[:2] + lens[2:] + rng.normal(0.0, 0.2, (4, 2))
        values[f"poses {k}"] = condensed(marker_poses(pixels, lens, 0.2))
    picture = np.full((200, 240, 3), 230, np.uint8)
    drawn = draw_marker(12)
    picture[40 : 40 + len(drawn), 60 : 60 + drawn.shape[1]] = drawn.reshape(*drawn.shape[:2], -1)[..., :1]
    corners = detect_marker(picture)
    assert corners is not None
    values["corners"], values["refined"] = corners, refined_corners(picture, corners + rng.normal(0.0, 0.5, (4, 2)))
    values["none"] = str(detect_marker(picture, 7))
    check_snapshot(SNAPSHOTS / "markers.txt", values, 1e-5)


def test_plans_of_training() -> None:
    values: dict[str, Any] = {}
    for background in ("random", "white", "black"):
        plan = SplatTrainingPlan(TrainOptions(steps=1000, background=background, seed=3), 7, 2.5)  # type: ignore[arg-type]
        steps = [0, 1, 99, 100, 199, 200, 249, 250, 400, 600, 700, 799, 800, 950, 999]
        values[background] = [plan.background(step) for step in steps]
        values[f"{background} rates"] = condensed([plan.rates(step, 500) for step in steps])
        values[f"{background} images"] = [plan.image(step) for step in range(20)]
        values[f"{background} reduction"] = [plan.reduction(step) for step in range(0, 1000, 9)]
        values[f"{background} relocates"] = [int(plan.relocates(step)) for step in range(0, 1001, 10)]
        values[f"{background} degree"] = [plan.degree(step) for step in range(0, 5000, 250)]
    check_snapshot(SNAPSHOTS / "plan.txt", values)


def test_exposures_and_moving_cameras(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    build.write(tmp_path, build.transforms(3))
    images = read_capture(tmp_path)
    maps, motion = ExposureMaps(3), CameraMotion(images, 1e-2, 2.0)
    values: dict[str, Any] = {}
    for step, k in enumerate((0, 1, 0, 2, 0, 1)):
        image, slope = rng.random((4, 5, 3)).astype(np.float32), rng.normal(size=(4, 5, 3)).astype(np.float32)
        values[f"slope {step}"] = maps.learned(k, image, slope)
        values[f"applied {step}"] = maps.applied(k, image)
        motion.move(k, PoseGradients(rng.normal(size=(1, 3)), rng.normal(size=(1, 3))))
        values[f"pose {step}"] = list(motion.pose(k))
    saved, moved = maps.save(), motion.save()
    values |= {"saved": saved, "moved": moved}
    maps, motion = ExposureMaps(3), CameraMotion(images, 1e-2, 2.0)
    maps.restore(saved)
    motion.restore(moved)
    for key, value in {**maps.save(), **motion.save()}.items():
        np.testing.assert_array_equal(value, {**saved, **moved}[key])
    check_snapshot(SNAPSHOTS / "motion.txt", values, 1e-6)


def test_curves() -> None:
    charts = {"none": curve([(0.0, 1.0)], "x"), "flat": curve([(0.0, 1.0), (5.0, 1.0)], "x")}
    for scale in (1e-4, 0.05, 3.0, 4000.0):
        charts[str(scale)] = curve([(float(k), scale * np.sin(k) + scale) for k in range(9)], "x")
    pieces = {key: text.replace("<", "\n<").split("\n") for key, text in charts.items()}
    check_snapshot(SNAPSHOTS / "curves.txt", {key: condensed(lines) for key, lines in pieces.items()})


def test_a_rendered_capture(tmp_path: Path) -> None:
    place = Scene(
        "room",
        {"box": Box((4.0, 4.0, 0.1)), "cube": Box((0.5, 0.5, 0.5))},
        {"red": Material((0.8, 0.1, 0.1, 1.0))},
        instances=(Instance("box", (0.0, 0.0, -0.1)), Instance("cube", (1.0, 0.5, 0.5), materials=("red",))),
        bounds=Region((-3.0, -3.0, 0.0), (3.0, 3.0, 2.5)),
    )
    values: dict[str, Any] = {"free": list(camera_poses(SceneBatch(place), "", 6, 2))}
    options = RenderCaptureOptions(views=3, held_out=2, width=24, height=16, points=40)
    render_capture(place, tmp_path / "set", options)
    images = read_capture(tmp_path / "set")
    values |= {"intrinsics": options.intrinsics, "position": images.position, "attitude": images.attitude}
    values |= {"lens": images.intrinsics, "names": list(images.names), "points": images.points, "held": images.held_out}
    check_snapshot(SNAPSHOTS / "rendered.txt", values, 1e-5, 1e-5)
    check_snapshot(SNAPSHOTS / "rendered_pixels.txt", {"rgb": np.array(images.rgb), "colors": images.colors}, 1e-2, 1e-3)


def test_undistorted_images() -> None:
    rgb = np.random.default_rng(6).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    values: dict[str, Any] = {}
    for model, parameters in MODELS.items():
        made = Undistorter(camera_of(model, 12, 8, parameters), 9)
        values[model] = condensed({key: value for key, value in vars(made).items() if isinstance(value, np.ndarray)})
        values[f"{model} rgb"] = made(rgb)
        values[f"{model} masked"] = made.masked(rgb[..., 0] > 20)
    check_snapshot(SNAPSHOTS / "undistorted.txt", values, 1e-5, 1e-5)


def test_moments_are_those_of_adam_down_to_slopes_of_nothing() -> None:
    """Algorithm 1 of Kingma and Ba, written out, for slopes about the 1e-15 that keeps it from dividing by 0."""
    rng = np.random.default_rng(8)
    for size in (1.0, 1e-14, 1e-16):
        moments, mean, square = image_models._Moments((3, 4)), np.zeros(4), np.zeros(4)
        for k in range(1, 6):
            slope = size * rng.normal(size=4)
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            step = mean / (1.0 - 0.9**k) / (np.sqrt(square / (1.0 - 0.999**k)) + 1e-15)
            np.testing.assert_allclose(moments.step(1, slope), step, rtol=1e-12)
        assert moments.times.tolist() == [0.0, 5.0, 0.0]
        assert not moments.mean[[0, 2]].any()
    assert (moments.step(0, np.zeros(4)) == 0.0).all()


@pytest.mark.parametrize(("reach", "near"), [(1.0, 0.02), (0.0051, 1.02e-4), (1e-9, 1e-4), (49_000.0, 980.0), (1e9, 1e3)])
def test_how_near_a_camera_sees(reach: float, near: float) -> None:
    """A fiftieth of how far views reach, within a tenth of a millimetre and a kilometre."""
    found = TrainingRun.near.fget(SimpleNamespace(_reach=reach))  # type: ignore[attr-defined]
    assert found == pytest.approx(near, rel=1e-12)


@pytest.mark.parametrize(("losses", "said"), [([], "loss nan"), ([0.5], "loss 0.5000"), ([0.5, 0.25, 0.125], "loss 0.1250")])
def test_what_is_said_of_an_evaluation(losses: list[float], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last loss, and the means of what was found."""
    found = [SimpleNamespace(psnr=20.0, ssim=0.5), SimpleNamespace(psnr=30.0, ssim=0.7)]
    run = SimpleNamespace(
        evaluate=lambda: found,
        step=40,
        notes={"judged": [], "loss": [[k, loss] for k, loss in enumerate(losses)]},
        images=SimpleNamespace(held_out_ids=[1]),
        options=SimpleNamespace(steps=1000),
        optimizer=range(1234),
    )
    told: list[str] = []
    monkeypatch.setattr(training, "_say", lambda quiet, text: told.append(text))
    training._evaluate(run, False)  # type: ignore[arg-type]
    assert told[0].startswith(f"step 40 of 1,000: {said}, PSNR 25.00 dB, SSIM 0.600 on 2 held-out images, 1,234 gaussians")
    assert run.notes["judged"] == [[40, 25.0, pytest.approx(0.6)]]
