"""Training through gsplat, its rasterizer replaced by ours: the step, what is kept, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.splats import gsplat_stub

from airworthy.capture import TrainOptions
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer, gsplat_backend
from airworthy.splats.training import ImageLoss, Rates, SplatOptimizer
from airworthy.splats.training.fields import RENDERED

RATES = Rates(1e-2, 0.02, 0.02, 0.01, 0.1, 0.03, 0.01, opacity_pull=1e-4, scale_pull=1e-4, flat_pull=1e-2, needle_pull=1e-3)
CAMERA = (50, 40, (40.0, 42.0, 25.0, 20.0), np.array([[0.1, 0.0, -1.0]]), (0.0, 0.1, 0.0, 0.99498744))


def ahead(rng: np.random.Generator, n: int = 60, degree: int = 1) -> Splats:
    """Gaussians that one camera sees all of."""
    turn = rng.normal(size=(n, 4))
    where, scale = rng.uniform([-1.0, -0.8, 2.0], [1.0, 0.8, 3.0], (n, 3)), np.exp(rng.normal(-2.2, 0.7, (n, 3)))
    harmonics = 0.3 * rng.normal(size=(n, (degree + 1) ** 2, 3))
    return Splats(where, turn / np.linalg.norm(turn, axis=1, keepdims=True), scale, rng.uniform(0.1, 0.6, n), harmonics)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(gsplat_backend, "_gsplat", lambda device: (found, gsplat_stub.rasterization))
    return found


def test_its_step_is_ours(torch: Any) -> None:
    rng = np.random.default_rng(3)
    splats, truth, loss = ahead(rng), rng.random((1, 40, 50, 3)).astype(np.float32), ImageLoss()
    own, theirs = SplatOptimizer(splats), SplatOptimizer(splats, backend="gsplat")
    for _ in range(3):
        one, other = (o.step(o.camera_view(*CAMERA), lambda image: loss(image, truth), RATES) for o in (own, theirs))
        assert one[0] == pytest.approx(other[0], rel=1e-5)
        np.testing.assert_allclose(other[1].position, one[1].position, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(other[1].rotation, one[1].rotation, rtol=1e-3, atol=1e-6)
    first, second = own.fields(), theirs.fields()
    assert first.raw[:, RENDERED].sum() > 150
    for name in ("position", "raw", "harmonics", "moments", "shade_moments"):
        # Adam's first steps are rate * sign of a derivative: one that nearly vanishes may go the other way.
        seen = (first.raw[:, RENDERED] == second.raw[:, RENDERED])[:, None]
        one, other = (getattr(found, name).reshape(len(first), -1) for found in (first, second))
        columns = slice(0, 10) if name == "raw" else slice(None)  # then what only densification reads
        off = seen & (np.abs(one - other) > 2e-3 * (1e-3 + np.abs(one)))
        assert off[:, columns].mean() < 2e-2, name


def test_it_learns_and_goes_on_from_what_was_saved(torch: Any) -> None:
    rng = np.random.default_rng(4)
    wanted, loss = SplatRenderer(ahead(rng)).render(*CAMERA, channels=("rgb",))["rgb"], ImageLoss()
    optimizer = SplatOptimizer(ahead(rng), seed=1, backend="gsplat")
    losses = [optimizer.step(optimizer.camera_view(*CAMERA), lambda image: loss(image, wanted), RATES)[0] for _ in range(40)]
    assert losses[-1] < 0.6 * losses[0]
    other = SplatOptimizer(ahead(rng, 5), seed=1, backend="gsplat")
    other.restore(optimizer.save())
    noisy = replace(RATES, noise=0.1)
    ends = [o.step(o.camera_view(*CAMERA), lambda image: loss(image, wanted), noisy) and o.splats() for o in (optimizer, other)]
    np.testing.assert_allclose(ends[0].position, ends[1].position, rtol=1e-5, atol=1e-6)
    optimizer.raise_degree()
    assert optimizer.splats().degree == 2


def test_what_it_cannot_do_is_said(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = SplatOptimizer(ahead(np.random.default_rng(5)), backend="gsplat")
    asked = optimizer.camera_view(*CAMERA, channels=("rgb", "depth", "alpha", "normal"))
    with pytest.raises(AirworthyError, match="gsplat renders no normals"):
        optimizer.images(asked)
    with pytest.raises(AirworthyError, match="gsplat trains on a CUDA device, not on 'cpu'"):
        TrainOptions(backend="gsplat", normals=0.0, smoothness=0.0)
    with pytest.raises(AirworthyError, match="give normals=0 and smoothness=0"):
        TrainOptions(backend="gsplat", device="cuda:0", normals=0.05)
    with pytest.raises(AirworthyError, match="backend 'inria'"):
        SplatOptimizer(ahead(np.random.default_rng(5)), backend="inria")


def test_a_missing_gsplat_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(gsplat_backend, "import_module", gone)
    with pytest.raises(AirworthyError, match=r"'torch'.*airworthy\[splat-cuda\]"):
        SplatOptimizer(ahead(np.random.default_rng(6)), device="cuda:0", backend="gsplat")
