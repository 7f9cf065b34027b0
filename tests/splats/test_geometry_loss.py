"""The loss of surfaces against a float64 twin that makes points and their normals, its derivative by complex steps, and
planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.splats.training import twin
from airworthy.splats.training.geometry_loss import GeometryLoss, SurfaceImages, edge_weights, normals_of_depth

LENS = (30.0, 32.0, 11.0, 8.0)
SHAPE = (16, 22)


def slanted(normal: Any, distance: float = 3.0) -> Array:
    """Depth of a plane, n X = -distance, at the pixels' middles."""
    fx, fy, cx, cy = LENS
    u, v = np.meshgrid((np.arange(SHAPE[1]) + 0.5 - cx) / fx, (np.arange(SHAPE[0]) + 0.5 - cy) / fy)
    return -distance / (normal[0] * u + normal[1] * v + normal[2])


def bumpy(rng: np.random.Generator) -> tuple[SurfaceImages, ArrayAny]:
    towards = np.array([0.3, -0.4, -0.866])
    depth = slanted(towards) * (1.0 + 0.01 * rng.normal(size=SHAPE))
    depth[10:, 15:] += 2.0  # an outline, and
    depth[2:4, 3:5] = np.inf  # a hole
    normal = 0.8 * towards + 0.1 * rng.normal(size=(*SHAPE, 3))
    return SurfaceImages(depth, rng.uniform(0.3, 1.0, SHAPE), normal), rng.uniform(0.2, 1.0, SHAPE)


@pytest.mark.parametrize(("normal", "smooth"), [(0.7, 0.0), (0.0, 0.5), (0.7, 0.5)])
def test_value_and_derivatives_are_those_of_the_twin(normal: float, smooth: float) -> None:
    images, edges = bumpy(np.random.default_rng(1))
    value, by_depth, by_normal = GeometryLoss(normal, smooth)(images, edges, LENS)

    def whole(depth: ArrayAny, normals: ArrayAny) -> Any:
        return twin.geometry_loss(depth, images.alpha, normals, edges, LENS, normal, smooth)

    assert value == pytest.approx(whole(images.depth, images.normal), rel=1e-6)  # weights are float32
    for k in range(0, images.depth.size, 7):
        place = np.unravel_index(k, SHAPE)
        if not np.isfinite(images.depth[place]):
            assert by_depth[place] == 0.0
            continue
        moved = images.depth.astype(complex)
        moved[place] += 1e-30j
        assert by_depth[place] == pytest.approx(whole(moved, images.normal).imag / 1e-30, rel=1e-4, abs=1e-9)
        turned = images.normal.astype(complex)
        turned[(*place, 1)] += 1e-30j
        assert by_normal[(*place, 1)] == pytest.approx(whole(images.depth, turned).imag / 1e-30, rel=1e-4, abs=1e-9)


def test_a_plane_agrees_with_itself_and_bends_nowhere() -> None:
    towards = np.array([0.3, -0.4, -0.866])
    towards /= np.linalg.norm(towards)
    depth, ones = slanted(towards), np.ones(SHAPE)
    found = normals_of_depth(depth, LENS)
    np.testing.assert_allclose(found[1:-1, 1:-1], np.broadcast_to(towards, (14, 20, 3)), atol=1e-12)
    images = SurfaceImages(depth, ones, np.broadcast_to(towards, (*SHAPE, 3)).copy())
    value, _, _ = GeometryLoss(1.0, 1.0)(images, ones, LENS)
    # Lengths of 1e-12 are added where a normal has none; inverse depths are a third.
    assert value == pytest.approx(0.0, abs=1e-11)
    assert np.abs(GeometryLoss(1.0, 0.0)(images, ones, LENS)[1]).max() < 1e-12
    aside = SurfaceImages(depth, ones, np.broadcast_to([0.0, 0.0, -1.0], (*SHAPE, 3)).copy())
    share = (SHAPE[0] - 2) * (SHAPE[1] - 2) / (SHAPE[0] * SHAPE[1])
    assert GeometryLoss(1.0, 0.0)(aside, ones, LENS)[0] == pytest.approx(share * (1.0 + towards[2]), rel=1e-6)


def test_edges_and_what_is_masked_count_little() -> None:
    truth = np.full((*SHAPE, 3), 0.2, np.float32)
    truth[:, 11:] = 0.8
    mask = np.ones(SHAPE, bool)
    mask[:4] = False
    weight = edge_weights(truth, mask)
    assert not weight[:4].any()
    np.testing.assert_allclose(weight[4:, [2, 18]], 1.0)
    assert weight[8, 10] < 0.06


def test_weights_below_zero_are_refused() -> None:
    with pytest.raises(AirworthyError, match=r"expected 0 or more"):
        GeometryLoss(-1.0)
