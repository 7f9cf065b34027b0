"""What is learnt beside the Gaussians: skies, and what exposures mean for images that were held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_training import QUICK, captured

from airworthy.capture import CaptureImages, TrainOptions, read_capture, write_capture
from airworthy.capture.training.image_models import SkyMap, fitted_exposure
from airworthy.capture.training.run import TrainingRun, directions, first_splats, judged
from airworthy.capture.training.train import digest
from airworthy.core import frames
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewpoints import look_at
from airworthy.splats import SplatRenderer
from airworthy.splats.cameras import RenderRequest, camera_view


def blue_above(degree: int = 3) -> SkyMap:
    """Some sky that changes with direction."""
    sky = SkyMap(degree)
    sky._factors = 0.15 * np.random.default_rng(4).normal(size=sky._factors.shape)
    return sky


def away(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=(*shape, 3))


def test_a_sky_learns_by_its_derivative() -> None:
    """Against differences of the image, in float64: the factors, and what is said of the alpha."""
    rng = np.random.default_rng(1)
    sky, image, alpha = blue_above(), rng.random((5, 6, 3)), rng.random((5, 6))
    rays, weight, given = away(rng, 5, 6), rng.normal(size=(5, 6, 3)), {}
    sky._moments = SimpleNamespace(step=lambda k, slope: given.update(slope=slope) or 0.0)  # type: ignore[assignment]
    by_alpha = sky.learned(weight.astype(np.float32), alpha, rays)

    def loss(cover: Any) -> float:
        return float(np.sum(weight * (image + (1.0 - cover)[..., None] * sky.colors(rays))))

    step, base = 1e-6, sky._factors.copy()
    for place in ((0, 0), (3, 1), (12, 2)):
        sky._factors[place] += step
        high = loss(alpha)
        sky._factors[place] -= 2.0 * step
        # Of a sum that is linear in them but where a colour is held at 0; weights are float32.
        assert given["slope"][place] == pytest.approx((high - loss(alpha)) / (2.0 * step), rel=1e-4, abs=1e-6)
        sky._factors[:] = base
    moved = alpha.copy()
    moved[2, 3] += step
    assert by_alpha[2, 3] == pytest.approx((loss(moved) - loss(alpha)) / step, rel=1e-4)


def test_a_sky_becomes_a_shell_that_looks_the_same() -> None:
    sky = blue_above()
    shell = sky.shell(np.array([1.0, 2.0, 3.0]), 100.0)
    rng = np.random.default_rng(3)
    attitude = np.stack([look_at(np.zeros(3), one) for one in away(rng, 4)])
    place = np.array([1.0, 2.0, 3.0]) + rng.uniform(-1.0, 1.0, (4, 3))
    found = SplatRenderer(shell).render(32, 24, (30.0, 30.0, 16.0, 12.0), place, attitude)
    u, v = np.meshgrid((np.arange(32) + 0.5 - 16.0) / 30.0, (np.arange(24) + 0.5 - 12.0) / 30.0)
    rays = np.stack([u, v, np.ones_like(u)], axis=-1)
    assert found["alpha"].min() > 0.98
    for k in range(4):
        wanted = sky.colors(frames.rotate(attitude[k], rays.reshape(-1, 3))).reshape(24, 32, 3)
        # Gaussians are 3.2 degrees apart, and colours change by up to 0.7 per radian: 0.04 from one to the next.
        assert np.abs(found["rgb"][k] - wanted).max() < 0.04


def outdoors(count: int = 24) -> CaptureImages:
    """Coloured balls under a sky, as rendered images, and points on the balls."""
    rng, sky = np.random.default_rng(0), blue_above(1)
    where, turn = rng.uniform(-0.8, 0.8, (40, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (40, 1))
    shades = (rng.random((40, 1, 3)) - 0.5) / 0.28209479
    balls = SplatRenderer(Splats(where, turn, rng.uniform(0.05, 0.12, (40, 3)), np.full(40, 0.95), shades))
    base, painted = captured(count), []
    for k in range(count):
        one = slice(k, k + 1)
        asked = camera_view(balls._spans, RenderRequest(64, 48, base.intrinsics[one], base.position[one], base.attitude[one]))
        found = balls.render(64, 48, base.intrinsics[one], base.position[one], base.attitude[one])
        behind = sky.behind(found["rgb"][0], found["alpha"][0], directions(asked))
        painted.append(np.asarray(np.rint(255.0 * behind.clip(0.0, 1.0)), np.uint8))
    points = np.repeat(where, 30, axis=0) + 0.05 * rng.normal(size=(1200, 3))
    grey = np.full((1200, 3), 128, np.uint8)
    return replace(base, rgb=tuple(painted), rendered=True, points=points, colors=grey)


def test_a_sky_is_learnt_and_goes_on_to_the_same_bytes() -> None:
    images = outdoors()
    options = replace(QUICK, steps=120, background="sky", exposure="auto", start="points")
    splats = first_splats(images[images.training], options, quiet=True)[0]
    run, black = TrainingRun(images, options, splats), TrainingRun(images, replace(options, background="black"), splats)
    for k in range(120):
        if k == 60:
            saved, notes = (
                {name: value.copy() for name, value in run.save().items()},
                dict(run.notes, loss=list(run.notes["loss"])),
            )
        run.advance()
        black.advance()
    with_sky, without = (np.mean([one.psnr for one in one_run.evaluate()]) for one_run in (run, black))
    assert with_sky > without + 1.0
    assert len(run.final_splats()) == len(run.optimizer) + 4000
    assert run.final_splats().degree == run.optimizer.degree
    again = TrainingRun(images, options, splats)
    again.restore(60, saved, notes)
    for _ in range(60):
        again.advance()
    assert again.final_splats().harmonics.tobytes() == run.final_splats().harmonics.tobytes()


def test_exposures_are_those_of_photographs(tmp_path: Path) -> None:
    images = captured(4)
    drawn = replace(images, rendered=True)
    for given, choice, exposed in ((images, "auto", True), (drawn, "auto", False), (images, "off", False), (drawn, "on", True)):
        options = replace(QUICK, exposure=choice)
        run = TrainingRun(given, options, first_splats(given[given.training], options, quiet=True)[0])
        assert run.exposed == exposed
        assert (run._maps is not None) == exposed
    assert TrainOptions().exposure == "auto"
    assert digest(images) != digest(drawn)
    # Written and read again they are what they were.
    for one in (images, drawn):
        folder = tmp_path / str(one.rendered)
        write_capture(one, folder)
        assert read_capture(folder).rendered == one.rendered


def test_a_photograph_is_judged_on_the_half_that_its_exposure_is_not_found_on() -> None:
    rng = np.random.default_rng(6)
    image = rng.random((20, 32, 3)).astype(np.float32)
    truth = (image @ np.array([[0.8, 0.1, 0.0], [0.0, 0.7, 0.0], [0.05, 0.0, 0.9]], np.float32).T + 0.05).astype(np.float32)
    spoilt = truth.copy()
    spoilt[:, 16:] += rng.normal(0.0, 0.1, (20, 16, 3)).astype(np.float32)
    np.testing.assert_allclose(fitted_exposure(image, truth), truth, atol=2e-3)
    found = judged("a", image, spoilt, None, True)
    # Noise of 0.1 is 20 dB: what the right half differs by, and no less for having been fitted; the left half counts for
    # nothing.
    assert found.psnr == pytest.approx(20.0, abs=0.4)
    assert judged("a", image, truth, None, True).psnr > 50.0
    assert found.psnr_unfitted < 20.0
    plain = judged("a", image, spoilt, None, False)
    assert plain.psnr == plain.psnr_unfitted
    mask = np.zeros((20, 32), bool)
    mask[:, 16:] = True
    np.testing.assert_array_equal(fitted_exposure(image, truth, mask), image)  # nothing to find it on
