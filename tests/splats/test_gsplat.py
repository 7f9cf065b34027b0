"""Our renderer against gsplat: numbers that its PyTorch reference gave once, that reference itself, and the CUDA backend."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.splats import gsplat_reference as reference
from tests.splats.gradient_cases import FIELDS, close

from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer, gsplat_backend
from airworthy.splats.gsplat_backend import GsplatRenderer, splat_renderer

NUMBERS = json.loads(reference.PATH.read_text())


@pytest.mark.parametrize("mode", reference.CASES)
def test_images_and_derivatives_are_those_of_gsplat(mode: str) -> None:
    given, weight, wanted = reference.fields(NUMBERS["given"]), reference.weights(), NUMBERS[mode]
    splats = Splats(**{name: given[name] for name in FIELDS})
    camera = (*reference.SIZE, reference.LENS, given["camera_position"][None], given["camera_attitude"])
    renderer = SplatRenderer(splats)
    images = renderer.render(*camera, antialiased=mode == "antialiased")
    # Theirs in float64. Ours: 2 to a power to 4e-6, so 1e-5 per Gaussian at most.
    assert np.abs(images["rgb"][0] - wanted["rgb"]).max() < 1e-4
    assert np.abs(images["alpha"][0] - wanted["alpha"]).max() < 1e-4
    depth = np.where(np.isinf(images["depth"][0]), -1.0, images["depth"][0])
    assert np.abs(depth - wanted["depth"]).max() < 1e-3
    (found,), _ = renderer.gradients(lambda images, some: weight, *camera, antialiased=mode == "antialiased")
    for name in FIELDS:  # sums of 192 pixels of both signs in float32
        assert close(getattr(found, name), np.array(wanted[f"d_{name}"]), 1e-3), name


@pytest.mark.parametrize("mode", reference.CASES)
def test_the_numbers_are_those_of_gsplats_reference(mode: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gsplat", reason="gsplat is not installed")
    for name, value in reference.computed(NUMBERS["given"], mode).items():
        np.testing.assert_allclose(value, NUMBERS[mode][name], atol=1e-5, rtol=1e-5, err_msg=name)


def test_the_backend_speaks_gsplats_conventions(monkeypatch: pytest.MonkeyPatch, cloud: Any) -> None:
    """Over its PyTorch reference in place of its CUDA rasterizer: several scenes, cameras, one that sees nothing."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gsplat", reason="gsplat is not installed")
    monkeypatch.setattr(gsplat_backend, "_gsplat", lambda device: (torch, reference.rasterization))
    scenes, camera, weight = _case(cloud)
    own, theirs = SplatRenderer(scenes), GsplatRenderer(scenes, "cpu")
    _assert_alike(own, theirs, camera, weight)


@pytest.mark.gpu
def test_a_gpu_gives_through_gsplat_what_we_do(cloud: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gsplat", reason="gsplat is not installed")
    scenes, camera, weight = _case(cloud)
    _assert_alike(SplatRenderer(scenes), splat_renderer(scenes, "cuda:0", "gsplat"), camera, weight)


def _case(cloud: Any) -> tuple[list[Splats], dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(5)
    scenes = [cloud(rng, n, degree) for n, degree in ((40, 0), (30, 2))]
    for one in scenes:  # so that no pixel is finished
        one.opacity[:] = np.minimum(0.6 * one.opacity, 0.6)
    attitude = rng.normal(size=(5, 4))
    camera = {
        "width": 40,
        "height": 30,
        "intrinsics": (30.0, 32.0, 19.0, 16.0),
        "position": rng.uniform(-4, 4, (5, 3)),
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "scene": [0, 1, 1, -1, 0],
        "background": (0.2, 0.4, 0.6),
    }
    shape = (5, 30, 40)
    weight = {"rgb": rng.normal(size=(*shape, 3)), "depth": 0.1 * rng.normal(size=shape), "alpha": rng.normal(size=shape)}
    return scenes, camera, weight


def _assert_alike(own: SplatRenderer, theirs: Any, camera: dict[str, Any], weight: dict[str, Any]) -> None:
    for antialiased in (False, True):
        ours, other = (one.render(**camera, antialiased=antialiased) for one in (own, theirs))
        for name, image in ours.items():
            both = np.isfinite(image) & np.isfinite(other[name])
            assert both.mean() > 0.999 * np.isfinite(image).mean()
            off = np.abs(np.where(both, image - np.where(both, other[name], 0.0), 0.0))
            # A Gaussian that counts 1/255 on one side only is 4e-3 of a pixel.
            assert off.mean() < 1e-4, name
        found, poses = own.gradients(lambda images, some: {k: v[some] for k, v in weight.items()}, **camera)
        same, same_poses = theirs.gradients(lambda images, some: {k: v[some] for k, v in weight.items()}, **camera)
    for one, two in zip(found, same, strict=True):
        for name in (*FIELDS, "image_shift"):
            assert close(getattr(two, name), getattr(one, name), 1e-2), name
    assert close(same_poses.position, poses.position, 1e-2)
    assert close(same_poses.rotation, poses.rotation, 1e-2)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    splats = plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5)
    assert isinstance(splat_renderer(splats), SplatRenderer)
    with pytest.raises(AirworthyError, match="backend"):
        splat_renderer(splats, backend="inria")  # type: ignore[arg-type]

    def gone(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(gsplat_backend, "import_module", gone)
    with pytest.raises(AirworthyError, match=r"'torch'.*airworthy\[splat-cuda\]"):
        splat_renderer(splats, "cuda:0", backend="gsplat")


def test_what_gsplat_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(gsplat_backend, "_gsplat", lambda device: (torch, None))
    renderer = GsplatRenderer(plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5), "cpu")
    camera = (8, 8, (8.0, 8.0, 4.0, 4.0), np.zeros((1, 3)), (0.0, 0.0, 0.0, 1.0))
    with pytest.raises(AirworthyError, match="median depths"):
        renderer.render(*camera, depth_mode="median")
    with pytest.raises(AirworthyError, match="limit"):
        renderer.render(*camera, limit=np.ones((1, 8, 8)))
