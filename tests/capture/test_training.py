"""Training from posed images: that it learns, goes on after being stopped, and refuses what it cannot use."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.capture.images import CaptureImages
from airworthy.capture.training import train as training
from airworthy.capture.training.options import SplatTrainingPlan, reduced
from airworthy.capture.training.run import TrainingRun, first_splats, observed_colors
from airworthy.capture.training.train import TrainOptions, train_splats
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.scenes.splats import read_splats
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewpoints import look_at
from airworthy.splats import SplatRenderer

WIDTH, HEIGHT, LENS = 64, 48, (70.0, 70.0, 32.0, 24.0)
QUICK = TrainOptions(
    steps=700,
    count=2000,
    degree=0,
    start="random",
    start_share=1.0,
    place_rate=2e-3,
    scale_rate=0.03,
    judge_every=250,
    coarse=0.0,
    exposure="off",
)


def captured(count: int = 48, seed: int = 0) -> CaptureImages:
    """Images of coloured balls about the origin, from all around."""
    rng = np.random.default_rng(seed)
    n = 60
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    colours = (rng.random((n, 1, 3)) - 0.5) / 0.28209479
    splats = Splats(rng.uniform(-0.8, 0.8, (n, 3)), turn, rng.uniform(0.06, 0.2, (n, 3)), np.full(n, 0.95), colours)
    angle, height = 2.399963 * np.arange(count), np.linspace(-1.5, 1.5, count)
    eye = np.column_stack([3.0 * np.cos(angle), 3.0 * np.sin(angle), height])
    attitude = np.stack([look_at(place, np.zeros(3)) for place in eye])
    images = SplatRenderer(splats).render(WIDTH, HEIGHT, LENS, eye, attitude, channels=("rgb",))["rgb"]
    pixels = tuple((255.0 * image.clip(0.0, 1.0) + 0.5).astype(np.uint8) for image in images)
    return CaptureImages(pixels, np.tile(LENS, (count, 1)), eye, attitude, held_out=np.arange(count) % 8 == 3)


@pytest.fixture(scope="module")
def images() -> CaptureImages:
    return captured()


@pytest.fixture(scope="module")
def trained(images: CaptureImages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train_splats(images, folder, QUICK, quiet=True)
    return folder


def test_it_learns_from_images_alone(trained: Path, images: CaptureImages) -> None:
    report = json.loads((trained / "report.json").read_text())
    # Random places, 700 steps: 30 dB were reached, and 12 by images that are black.
    assert report["psnr_db"] > 26.0
    assert report["ssim"] > 0.9
    assert report["held_out"] == 6
    assert report["trained_on"] == 42
    losses = [value for _, value in report["curves"]["loss"]]
    assert losses[-1] < 0.5 * losses[0]
    assert report["options"] == asdict(QUICK)
    assert [step for step, *_ in report["curves"]["held_out"]] == [250, 500, QUICK.steps]  # as asked, and at the end
    # The file shows what the report says.
    splats = read_splats(trained / "splats.ply").splats
    k = int(images.held_out_ids[0])
    camera = (WIDTH, HEIGHT, LENS, images.position[k : k + 1], images.attitude[k])
    image = SplatRenderer(splats).render(*camera, channels=("rgb",), near=0.066)["rgb"][0]
    error = np.square(image.clip(0.0, 1.0) - images.rgb[k] / 255.0).mean()
    assert -10.0 * np.log10(error) == pytest.approx(report["judged"][0]["psnr_db"], abs=0.05)


def test_the_page_holds_everything_inline(trained: Path) -> None:
    page = (trained / "report.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 18
    assert "<polyline" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page


def test_a_finished_training_is_not_done_again(trained: Path, images: CaptureImages) -> None:
    before = (trained / "splats.ply").stat().st_mtime_ns
    again = train_splats(images, trained, QUICK, quiet=True)
    assert (trained / "splats.ply").stat().st_mtime_ns == before
    assert again.held_out == 6
    assert not (trained / "checkpoints").exists()


def test_other_options_or_images_are_refused(trained: Path, images: CaptureImages) -> None:
    with pytest.raises(AirworthyError, match=r"holds another training \(steps 700 before, 701 now\); choose another folder"):
        train_splats(images, trained, replace(QUICK, steps=701), quiet=True)
    with pytest.raises(AirworthyError, match="its images were others"):
        train_splats(captured(seed=1), trained, QUICK, quiet=True)


def test_one_run_at_a_time(images: CaptureImages, tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(AirworthyError, match="Another run"):
        train_splats(images, tmp_path, QUICK, quiet=True)


def test_too_few_images(images: CaptureImages, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="trained from 1 images; expected 2 or more"):
        train_splats(images[:1], tmp_path, QUICK, quiet=True)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from test_training import RICH, captured
from airworthy.capture.training.train import train_splats
train_splats(captured(), sys.argv[1], RICH, quiet=True)
"""
RICH = replace(QUICK, steps=260, degree=1, degree_every=80, exposure="on", cameras=True, background="random")
RICH = replace(RICH, coarse=0.1, start_share=0.7, checkpoint_seconds=0.02)


def started(folder: Path, threads: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "AIRWORTHY_THREADS": str(threads)}
    script = SCRIPT.format(tests=str(Path(__file__).parent))
    return subprocess.Popen([sys.executable, "-c", script, str(folder)], env=environment, stderr=subprocess.DEVNULL)


def wait_for_step(folder: Path, step: int) -> None:
    until = time.monotonic() + 120.0
    while time.monotonic() < until:
        if any(int(path.stem[5:]) >= step for path in (folder / "checkpoints").glob("step_*.json")):
            return
        time.sleep(0.01)
    raise AssertionError("no checkpoint appeared")


@pytest.mark.slow
def test_killed_and_resumed_it_writes_the_same_bytes(images: CaptureImages, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_splats(images, whole, RICH, quiet=True)
    for step, how in ((30, signal.SIGKILL), (120, signal.SIGTERM)):
        run = started(broken, 1)
        wait_for_step(broken, step)
        run.send_signal(how)
        assert run.wait(60) == -how
    # The newest is spoilt: the one before must be found and used.
    newest = max((broken / "checkpoints").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-7])
    train_splats(images, broken, RICH, quiet=True)
    assert (whole / "splats.ply").read_bytes() == (broken / "splats.ply").read_bytes()


def test_a_finished_training_whose_splats_are_damaged_is_refused(trained: Path, images: CaptureImages, tmp_path: Path) -> None:
    """It said that all was done, whatever the file held."""
    again = "put it back from a copy, or delete .*, which trains anew"
    folder = tmp_path / "trained"
    shutil.copytree(trained, folder)
    whole = (folder / "splats.ply").read_bytes()
    assert (
        train_splats(images, folder, QUICK, quiet=True).gaussians
        == json.loads((folder / "report.json").read_text())["gaussians"]
    )
    for data, said in ((whole[: len(whole) // 2], "bytes, .* when they were trained"), (whole[:-1] + b"x", "and others")):
        (folder / "splats.ply").write_bytes(data)
        with pytest.raises(AirworthyError, match=rf"are damaged \(.*{said}\): {again}"):
            train_splats(images, folder, QUICK, quiet=True)
    (folder / "splats.ply").unlink()
    with pytest.raises(AirworthyError, match=f"are gone: {again}"):
        train_splats(images, folder, QUICK, quiet=True)
    (folder / "splats.ply").write_bytes(whole)
    (folder / "report.json").write_text("{")
    with pytest.raises(AirworthyError, match=f"not valid JSON: .*{again}"):
        train_splats(images, folder, QUICK, quiet=True)
    (folder / "report.json").write_text("{}")
    with pytest.raises(AirworthyError, match=f"does not tell of a finished training: {again}"):
        train_splats(images, folder, QUICK, quiet=True)


def test_damaged_checkpoints_are_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Checkpoints(tmp_path, digits=8)
    identity: dict[str, Any] = {"options": {"seed": 0}}
    for step in (10, 20, 30):
        kept.save(Checkpoint(step, {"a": np.full(4, step, np.float32)}, {"loss": []}), identity)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["step_00000020.json", "step_00000030.json"]
    data = bytearray((tmp_path / "step_00000030.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "step_00000030.safetensors").write_bytes(data)
    found = kept.newest()
    assert found is not None
    assert found.number == 20
    assert "checkpoint of step 30 is damaged" in capsys.readouterr().err
    (tmp_path / "step_00000020.json").write_text("{")
    assert kept.newest() is None
    kept.clear()
    assert not tmp_path.exists()


def test_masked_pixels_are_not_learned(images: CaptureImages, tmp_path: Path) -> None:
    # A third of every image is spoilt and masked: the rest is learned as well as before.
    mask = np.ones((HEIGHT, WIDTH), bool)
    mask[:, :20] = False
    spoilt = tuple(np.where(mask[..., None], image, 255).astype(np.uint8) for image in images.rgb)
    masked = replace(images, rgb=spoilt, masks=(mask,) * len(images))
    result = train_splats(masked, tmp_path, replace(QUICK, steps=500), quiet=True)
    # 26 dB were reached; with the spoilt part learned the images disagree, and it would be 15.
    assert result.psnr > 23.0


def test_surfaces_are_compared_and_growth_follows_derivatives(images: CaptureImages) -> None:
    options = replace(QUICK, steps=160, count=900, start_share=0.5, relocate_every=20)
    start = first_splats(images[images.training], options, quiet=True)[0]
    more = {"flatness": 100.0, "needles": 0.01, "normals": 0.05, "smoothness": 0.5, "surfaces_from": 0.5}
    shortest = {}
    for name, chosen in {
        "plain": {},
        "surfaces": more,
        "gradient": {**more, "densify": "gradient", "strain": 1e-5, "fade_every": 60},
    }.items():
        run = TrainingRun(images, replace(options, **chosen), start)  # type: ignore[arg-type]
        for _ in range(options.steps):
            run.advance()
        found = run.optimizer.splats()
        assert np.isfinite(found.position).all()
        assert 450 < len(found) <= 900
        shortest[name] = float(np.median(found.scale.min(axis=1)))
    # 160 steps of at most 0.03 of the logarithm each way: flatness alone could take it to a hundredth.
    assert shortest["surfaces"] < 0.7 * shortest["plain"]


def test_points_of_the_set_are_used(images: CaptureImages, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(-0.8, 0.8, (1200, 3))
    given = replace(images, points=points, colors=np.full((1200, 3), 128, np.uint8))
    result = train_splats(given, tmp_path, replace(QUICK, steps=20, start="points"), quiet=True)
    report = json.loads(result.report.read_text())
    assert report["start"] == "1,200 at the set's points, 800 at random"


def test_the_plan_shows_every_image_and_falls() -> None:
    plan = SplatTrainingPlan(TrainOptions(steps=1000, coarse=0.1), 7, 2.0)
    for epoch in range(5):
        assert sorted(plan.image(7 * epoch + k) for k in range(7)) == list(range(7))
    assert [plan.reduction(step) for step in (0, 99, 100, 199, 200)] == [4, 4, 2, 2, 1]
    assert plan.rates(0, 10).place == pytest.approx(1e-3)
    assert plan.rates(1000, 10).place == pytest.approx(1e-5)
    assert not plan.relocates(900)
    assert plan.relocates(800)
    assert not plan.relocates(100)
    assert not plan.relocates(801)


def test_reduction_is_the_mean() -> None:
    image = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
    assert reduced(image, 4).shape == (2, 2, 3)
    np.testing.assert_allclose(reduced(image, 2)[1, 2], image[2:4, 4:6].mean(axis=(0, 1)) / 255.0, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps=0; expected 1 or more"),
        ({"degree": 4}, "degree=4; expected 0 to 3"),
        ({"likeness": 1.5}, "likeness=1.5; expected 0 to 1"),
        ({"place_rate": float("nan")}, "place_rate is nan; expected a finite number"),
        ({"start": "sfm"}, "Unknown start 'sfm'. Known: auto, points, random, sweep"),
        ({"device": "cuda:99"}, "expected cpu, or a CUDA device that is present"),
        ({"normals": -0.1}, "normals=-0.1; expected 0 or more"),
        ({"surfaces_from": 0.5}, "--surfaces-from 0.5 changes nothing without --normals or --smoothness"),
        ({"strain": 1e-3}, "--strain 0.001 changes nothing with --densify mcmc"),
        ({"densify": "gradient", "noise": 1.0}, "--noise 1 changes nothing with --densify gradient"),
        ({"exposure": True}, "exposure is True; expected one of 'auto', 'on', 'off'"),
        ({"backend": "gsplat"}, "gsplat trains on a CUDA device, not on 'cpu'"),
    ],
)
def test_options_that_cannot_be_used(change: dict[str, Any], message: str, images: CaptureImages, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=message):
        train_splats(images, tmp_path, replace(QUICK, **change), quiet=True)


def test_what_was_chosen_is_what_is_trained_with(
    images: CaptureImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_known", lambda folder, options, identity: (options, identity["options"]))
    assert train_splats(images, tmp_path, QUICK) == (QUICK, asdict(QUICK))
    assert train_splats(images, tmp_path) == (TrainOptions(), asdict(TrainOptions()))


def test_points_take_the_mean_colour_of_the_images_that_show_them() -> None:
    """Two images of one colour each, that look opposite ways from 3 m: what is between is in both, what is beside in none."""
    eye = np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])
    attitude = np.stack([look_at(place, np.zeros(3)) for place in eye])
    pixels = tuple(np.full((HEIGHT, WIDTH, 3), color, np.uint8) for color in ((51, 102, 255), (153, 102, 0)))
    two = CaptureImages(pixels, np.tile(LENS, (2, 1)), eye, attitude)
    found = observed_colors(two, np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 50.0, 0.0]]))
    np.testing.assert_allclose(found, [[0.4, 0.4, 0.5], [0.6, 0.4, 0.0], [0.5, 0.5, 0.5]], atol=1e-12)
