"""A mesh and a splat in one view: who hides whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, GeometryBatch, Placement, RayTable, cast
from airworthy.scenes.splats import merged
from airworthy.sensors.splats import SplatRenderer
from airworthy.sensors.splats.compositing import composite

WIDTH, HEIGHT = 48, 32
LENS = np.array([40.0, 40.0, 24.0, 16.0])
RED, GREEN, SKY = np.array([0.9, 0.1, 0.1]), np.array([0.1, 0.8, 0.1]), np.array([0.2, 0.3, 0.9])
AHEAD = np.array([0.0, 0.0, 0.0, 1.0])


def wall(plain: Any, depth: float, opacity: float) -> Any:
    """A green wall of flat discs across the view."""
    x, y = np.meshgrid(np.arange(-4.0, 4.01, 0.1), np.arange(-4.0, 4.01, 0.1))
    place = np.stack([x.ravel(), y.ravel(), np.full(x.size, depth)], -1)
    return plain(place, (0.08, 0.08, 1e-3), GREEN, opacity)


def box_images(depth: float) -> dict[str, NDArray[np.float32]]:
    """A red cube of 0.5 m whose face towards the camera lies at a depth, before a blue sky."""
    u, v = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    rays = np.stack([(u - LENS[2]) / LENS[0], (v - LENS[3]) / LENS[1], np.ones_like(u)], -1)
    table = RayTable(rays / np.linalg.norm(rays, axis=-1, keepdims=True), None, (0.0, 0.0, 1.0))
    batch = GeometryBatch([Box((0.25, 0.25, 0.25))], [Placement.of(shape=[0], position=[[0.0, 0.0, depth + 0.25]])])
    found = cast(batch, table, np.zeros((1, 3)), AHEAD[None], channels=("depth",))["depth"].astype(np.float32)
    return {"rgb": np.where(np.isfinite(found)[..., None], RED, SKY).astype(np.float32), "depth": found}


def seen(plain: Any, opacity: float, background: object = (0.0, 0.0, 0.0)) -> dict[str, NDArray[np.float32]]:
    renderer = SplatRenderer(wall(plain, 2.0, opacity))
    return renderer.render(WIDTH, HEIGHT, LENS, np.zeros((1, 3)), AHEAD, background=background)


def test_a_box_before_a_wall_hides_it(plain: Any) -> None:
    mesh = box_images(1.0)
    image = composite(seen(plain, 0.9), mesh)
    on = np.isfinite(mesh["depth"])
    assert 0 < on.sum() < on.size
    assert np.allclose(image["rgb"][on], RED)
    assert np.allclose(image["rgb"][~on], GREEN, atol=5e-3)  # between its discs the wall lets 0.3 % of the sky pass
    assert np.allclose(image["depth"][on], 1.0, atol=1e-5)
    assert np.allclose(image["depth"][~on], 2.0, atol=1e-5)
    assert (image["mesh"][on] == 1.0).all()
    assert (image["mesh"][~on] < 1e-2).all()


def test_a_box_behind_an_opaque_wall_is_hidden(plain: Any) -> None:
    image = composite(seen(plain, 0.9), box_images(3.0))
    assert np.allclose(image["rgb"], GREEN, atol=5e-3)
    assert np.allclose(image["depth"], 2.0, atol=5e-3)
    assert np.allclose(image["alpha"], 1.0, atol=5e-3)


def test_a_box_behind_a_thin_veil_shines_through(plain: Any) -> None:
    splats, mesh = seen(plain, 0.05), box_images(3.0)
    image = composite(splats, mesh)
    alpha, on = splats["alpha"], np.isfinite(mesh["depth"])
    assert 0.05 < alpha.min() < alpha.max() < 0.5
    expected = splats["rgb"] + (1.0 - alpha)[..., None] * np.where(on[..., None], RED, SKY)
    assert np.allclose(image["rgb"], expected, atol=1e-6)
    assert np.allclose(image["depth"][on], (alpha * splats["depth"] + (1 - alpha) * mesh["depth"])[on], atol=1e-5)
    assert np.allclose(image["depth"][~on], 2.0, atol=1e-4)  # before nothing, the depth of the splats alone
    assert (image["alpha"][on] == 1.0).all()
    assert np.array_equal(image["alpha"][~on], alpha[~on])
    median = composite(splats, mesh, depth_mode="median")["depth"]
    assert np.array_equal(median, mesh["depth"])


def test_what_was_behind_the_splats_is_taken_off(plain: Any) -> None:
    """The same picture whatever colour the splats were rendered over."""
    mesh = box_images(3.0)
    black, pink = composite(seen(plain, 0.05), mesh), composite(seen(plain, 0.05, (1.0, 0.4, 0.6)), mesh, (1.0, 0.4, 0.6))
    assert np.allclose(black["rgb"], pink["rgb"], atol=1e-6)


def test_against_one_renderer_for_both(plain: Any) -> None:
    """A box made of splats instead, behind the veil and before it: the same picture but at the outline of the box."""
    x, y = np.meshgrid(np.arange(-0.25, 0.251, 0.01), np.arange(-0.25, 0.251, 0.01))
    for depth in (1.0, 3.0):
        place = np.stack([x.ravel(), y.ravel(), np.full(x.size, depth)], -1)
        face, veil = plain(place, (0.008, 0.008, 1e-4), RED, 0.95), wall(plain, 2.0, 0.05)
        camera = (WIDTH, HEIGHT, LENS, np.zeros((1, 3)), AHEAD)
        whole = SplatRenderer(merged([face, veil])).render(*camera, background=SKY)["rgb"]
        image = composite(SplatRenderer(veil).render(*camera), box_images(depth))["rgb"]
        off = np.abs(whole - image).max(-1)[0]
        # Pixels that the outline crosses differ: the splats' edge is soft, by sigma and by the 0.55 px of the pixel itself.
        inner = np.zeros((HEIGHT, WIDTH), bool)
        half = round(0.25 / depth * 40.0)
        inner[16 - half + 2 : 16 + half - 2, 24 - half + 2 : 24 + half - 2] = True
        outer = np.ones((HEIGHT, WIDTH), bool)
        outer[16 - half - 3 : 16 + half + 3, 24 - half - 3 : 24 + half + 3] = False
        assert off[inner | outer].max() <= 5e-3
        assert inner.any()


def test_nothing_at_all_is_the_mesh(plain: Any) -> None:
    shape = (1, HEIGHT, WIDTH)
    empty = {"rgb": np.zeros((*shape, 3)), "alpha": np.zeros(shape), "depth": np.full(shape, np.inf)}
    mesh = box_images(1.0)
    image = composite(empty, mesh)
    assert np.array_equal(image["rgb"], mesh["rgb"])
    assert np.array_equal(image["depth"], mesh["depth"])
    assert np.array_equal(image["alpha"], np.isfinite(mesh["depth"]).astype(np.float32))


def test_what_does_not_fit_is_refused(plain: Any) -> None:
    splats, mesh = seen(plain, 0.9), box_images(1.0)
    with pytest.raises(AirworthyError, match="needs rgb, alpha, depth"):
        composite({"rgb": splats["rgb"], "depth": splats["depth"]}, mesh)
    with pytest.raises(AirworthyError, match="shape"):
        composite(splats, {"rgb": mesh["rgb"][:, :-1], "depth": mesh["depth"][:, :-1]})
    with pytest.raises(AirworthyError, match="uint8"):
        composite(splats, {"rgb": (mesh["rgb"] * 255).astype(np.uint8), "depth": mesh["depth"]})
    with pytest.raises(AirworthyError, match="depth mode"):
        composite(splats, mesh, depth_mode="nearest")
    with pytest.raises(AirworthyError, match="background"):
        composite(splats, mesh, background=(0.0, 1.0))
