"""The step of training against its float64 twin, closed forms of Adam, and the table that culling reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.splats.native_text import SLOPE_ROWS
from airworthy.splats.training import ImageLoss, Rates, SplatOptimizer, twin
from airworthy.splats.training.engines import SingleEngine
from airworthy.splats.training.fields import LOGIT, NEEDLE, RENDERED, SCALE, TURN, blocks_of, fields_of, pack, rows_of

RATES = Rates(0.02, 0.05, 0.03, 0.02, 0.1, 0.03, 0.01, opacity_pull=1e-3, scale_pull=2e-3, noise=3.0, decays=(0.9, 0.99))
PULLED = replace(RATES, flat_pull=0.7, needle_pull=0.4)
# float32 rounds by 6e-8, exp2 and log2 of the lanes by 4e-6; Adam divides by moments, which doubles that.
CLOSE: dict[str, Any] = {"rtol": 4e-5, "atol": 2e-6}


def cloud(rng: np.random.Generator, n: int, degree: int) -> Splats:
    turn = rng.normal(size=(n, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    scale, opacity = np.exp(rng.normal(-2.0, 0.8, (n, 3))), rng.uniform(0.002, 0.95, n)
    return Splats(rng.uniform(-3.0, 3.0, (n, 3)), turn, scale, opacity, 0.4 * rng.normal(size=(n, (degree + 1) ** 2, 3)))


def feed(optimizer: SplatOptimizer, slopes: ArrayAny, shades: ArrayAny, rates: Rates = RATES) -> None:
    """Put derivatives where a rendered image would leave them, and move."""
    room = len(optimizer._engine.slopes.gaussians) * 16
    optimizer._engine.slopes.gaussians[...] = blocks_of(slopes.astype(np.float32), room)
    optimizer._engine.slopes.harmonics[...] = blocks_of(shades.astype(np.float32).reshape(len(shades), -1), room).reshape(-1)
    optimizer.move(rates)


@pytest.mark.parametrize("rates", [RATES, PULLED], ids=["plain", "pulled"])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_steps_equal_those_of_the_twin(degree: int, rates: Rates) -> None:
    rng = np.random.default_rng(degree)
    n, k = 700, (degree + 1) ** 2
    optimizer = SplatOptimizer(cloud(rng, n, degree), seed=5 + (3 << 32), least_scale=0.02)
    logs = np.sort(optimizer.fields().raw[:, SCALE : SCALE + 3], axis=1)
    assert (logs[:, 2] - logs[:, 1] > NEEDLE).sum() > 5  # some are needles
    for number in range(3):
        before = optimizer.fields()
        slopes, shades = rng.normal(size=(n, SLOPE_ROWS)), 0.1 * rng.normal(size=(n, k, 3))
        slopes[:, SLOPE_ROWS - 2 :] = 1.0
        expected = twin.step(before, slopes, shades, rates, 5 + (3 << 32), number, 0.02)
        feed(optimizer, slopes, shades, rates)
        after = optimizer.fields()
        found = {"position": after.position, "log_scale": after.raw[:, SCALE : SCALE + 3], "harmonics": after.harmonics}
        found |= {"rotation": after.raw[:, TURN : TURN + 4], "logit": after.raw[:, LOGIT]}
        found |= {"moments": after.moments, "shade_moments": after.shade_moments}
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, **CLOSE, err_msg=f"{name} of step {number}")


def test_what_the_renderer_reads_is_that_of_a_cloud_packed_anew() -> None:
    rng = np.random.default_rng(3)
    optimizer = SplatOptimizer(cloud(rng, 1100, 1))
    slopes = rng.normal(size=(1100, SLOPE_ROWS))
    slopes[:, SLOPE_ROWS - 1] = rng.random(1100) < 0.5
    feed(optimizer, slopes, rng.normal(size=(1100, 4, 3)))
    found, anew = optimizer._packed.cloud, pack(optimizer.fields()).cloud
    np.testing.assert_allclose(rows_of(found.geometry, 1100), rows_of(anew.geometry, 1100), rtol=2e-5, atol=2e-6)
    colours = [rows_of(one.harmonics.reshape(-1, 12, 16), 1100) for one in (found, anew)]
    np.testing.assert_array_equal(*colours)
    # The kernel's bounds leave out what nobody sees; they must hold all the rest.
    shown = anew.geometry[:, -1].reshape(-1, 512) >= 1.0 / 255.0
    place = anew.geometry[:, :3].swapaxes(1, 2).reshape(-1, 512, 3)
    away = np.linalg.norm(place - found.chunks["centre"][:, None], axis=-1)
    assert (away <= found.chunks["radius"][:, None])[shown].all()
    assert (found.chunks["radius"] <= 1.001 * np.where(shown, away, 0.0).max(axis=1) + 1e-4).all()
    for name in ("extent", "reach"):
        assert (found.chunks[name] >= anew.chunks[name] * (1.0 - 1e-6)).all()
        np.testing.assert_allclose(found.chunks[name], anew.chunks[name], rtol=2e-3)


def test_the_first_step_is_as_long_as_the_rate() -> None:
    # Adam: with both biases corrected, the first step is rate * g / |g|.
    optimizer = SplatOptimizer(cloud(np.random.default_rng(0), 40, 0))
    before = optimizer.fields()
    slopes = np.zeros((40, SLOPE_ROWS))
    slopes[:, 0], slopes[:, SLOPE_ROWS - 1] = np.linspace(-3.0, 3.0, 40), 1.0
    optimizer._engine.slopes.gaussians[...] = blocks_of(slopes.astype(np.float32), 512)
    optimizer.move(Rates(place=0.25, scale=0.0, rotation=0.0, opacity=0.0, color=0.0, color_rest=0.0))
    moved = optimizer.fields().position - before.position
    np.testing.assert_allclose(moved[:, 0], -0.25 * np.sign(slopes[:, 0]), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(moved[:, 1:], 0.0)


def test_only_what_was_seen_moves_and_derivatives_are_used_up() -> None:
    rng = np.random.default_rng(7)
    optimizer = SplatOptimizer(cloud(rng, 600, 1))
    before = optimizer.fields()
    rendered = np.arange(600) % 3 == 0
    slopes = rng.normal(size=(600, SLOPE_ROWS))
    slopes[:, SLOPE_ROWS - 1] = rendered
    feed(optimizer, slopes, rng.normal(size=(600, 4, 3)))
    after = optimizer.fields()
    for name in ("position", "raw", "harmonics", "moments", "shade_moments"):
        same = (getattr(after, name) == getattr(before, name)).reshape(600, -1).all(axis=1)
        np.testing.assert_array_equal(same, ~rendered, err_msg=name)
    np.testing.assert_array_equal(after.raw[:, RENDERED], rendered)
    assert not optimizer._engine.slopes.gaussians[optimizer._engine.slopes.gaussians[:, SLOPE_ROWS - 1].any(axis=1)].any()
    middle = blocks_of(rendered[:, None].astype(np.float32), 1024).any(axis=(1, 2))
    assert not optimizer._engine.slopes.gaussians[middle].any()


def test_random_motion_has_the_covariance_of_the_gaussians() -> None:
    # Transparent ones (sigma(-k (o - t)) near 1/2 at o = t) move by noise * covariance * normal numbers.
    n = 4000
    scale = np.array([0.5, 0.2, 0.05])
    turn = np.tile([0.0, 0.0, np.sin(0.4), np.cos(0.4)], (n, 1))
    optimizer = SplatOptimizer(Splats(np.zeros((n, 3)), turn, np.tile(scale, (n, 1)), np.full(n, 0.005), np.zeros((n, 1, 3))))
    slopes = np.zeros((n, SLOPE_ROWS))
    slopes[:, SLOPE_ROWS - 1] = 1.0
    optimizer._engine.slopes.gaussians[...] = blocks_of(slopes.astype(np.float32), len(optimizer._engine.slopes.gaussians) * 16)
    optimizer.move(Rates(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, noise=2.0))
    moved = optimizer.fields().position.astype(float)
    axes = twin.rotations(turn[:1])[0]
    expected = axes @ np.diag((2.0 * 0.5 * scale**2) ** 2) @ axes.T
    # The standard error of a variance from 4,000 is 2.2 %; five of them.
    np.testing.assert_allclose(np.cov(moved.T), expected, atol=0.11 * expected.max())


def test_pack_and_back_is_exact() -> None:
    found = fields_of(cloud(np.random.default_rng(2), 777, 2))
    again = pack(found).fields()
    for name in ("position", "raw", "harmonics", "moments", "shade_moments", "number"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name), err_msg=name)


def test_saved_and_restored_it_goes_on_to_the_same_bytes() -> None:
    rng = np.random.default_rng(11)
    splats, slopes = cloud(rng, 900, 1), rng.normal(size=(4, 900, SLOPE_ROWS))
    shades = rng.normal(size=(4, 900, 4, 3))
    one = SplatOptimizer(splats, seed=1)
    for k in range(2):
        feed(one, slopes[k], shades[k])
    other = SplatOptimizer(cloud(rng, 3, 0), seed=1)
    other.restore(one.save())
    for k in (2, 3):
        feed(one, slopes[k], shades[k])
        feed(other, slopes[k], shades[k])
    for name, value in one.save().items():
        assert value.tobytes() == other.save()[name].tobytes(), name


def test_a_device_that_is_not_there_is_refused_in_one_sentence() -> None:
    with pytest.raises(AirworthyError, match="cannot be trained on device 'cuda:99'; expected cpu, or a CUDA device that"):
        SplatOptimizer(cloud(np.random.default_rng(0), 3, 0), device="cuda:99")


def test_the_form_of_a_gpu_does_the_same() -> None:
    # One Gaussian per thread, then one chunk per thread for its bounds; on this machine's processor.
    rng = np.random.default_rng(13)
    splats, truth = cloud(rng, 800, 1), rng.random((1, 40, 50, 3)).astype(np.float32)
    lanes, single, loss = SplatOptimizer(splats), SplatOptimizer(splats), ImageLoss()
    single._engine = SingleEngine(single._packed, "cpu", "#define SCALAR_PATH\n")
    camera = (50, 40, (40.0, 40.0, 25.0, 20.0), np.zeros((1, 3)), (0.0, 0.0, 0.0, 1.0))
    quiet = replace(RATES, noise=0.0)
    for _ in range(2):
        one, other = (o.step(o.camera_view(*camera), lambda image: loss(image, truth), quiet) for o in (lanes, single))
        assert one[0] == pytest.approx(other[0], rel=1e-5)
        # Sums over Gaussians and pixels are made in other orders.
        np.testing.assert_allclose(one[1].position, other[1].position, rtol=1e-2, atol=1e-5)
    first, second = lanes.fields(), single.fields()
    # Adam's first steps are rate * sign of a derivative: one of the few that nearly vanish may go the other way.
    for name in ("position", "raw", "harmonics"):
        off = np.abs(getattr(first, name) - getattr(second, name)) > 1e-4 * (1.0 + np.abs(getattr(first, name)))
        assert off.mean() < 5e-3, name
    for name in ("centre", "radius", "extent", "reach"):
        np.testing.assert_allclose(
            lanes._packed.cloud.chunks[name], single._packed.cloud.chunks[name], rtol=2e-2, atol=2e-2, err_msg=name
        )


@pytest.mark.gpu
def test_on_a_gpu_it_learns_as_on_a_cpu() -> None:
    rng = np.random.default_rng(17)
    splats, truth, loss = cloud(rng, 1500, 1), np.full((1, 64, 64, 3), 0.4, np.float32), ImageLoss()
    camera = (64, 64, (50.0, 50.0, 32.0, 32.0), np.array([[0.0, 0.0, -2.0]]), (0.0, 0.0, 0.0, 1.0))
    ends = []
    for device in ("cpu", "cuda:0"):
        optimizer = SplatOptimizer(splats, device=device)
        for _ in range(60):
            value, _ = optimizer.step(optimizer.camera_view(*camera), lambda image: loss(image, truth), Rates())
        ends.append(value)
        assert SplatOptimizer(optimizer.splats()).fields().position.shape == (1500, 3)
    assert ends[1] == pytest.approx(ends[0], rel=0.02)
