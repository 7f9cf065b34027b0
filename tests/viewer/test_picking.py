"""What is under a click: boxes, clouds and level planes, by distances worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.geometry import Box
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.splats import Splats
from airworthy.viewer.picking import Picker, on_height, ray_depth

SHAPES = {"cube": Box((0.5, 0.5, 0.5))}


def sheet(x: float, opacity: float = 0.95) -> Splats:
    """A dense wall of flat gaussians at x, 2 m wide and high."""
    y, z = np.meshgrid(np.arange(-1.0, 1.01, 0.1), np.arange(-1.0, 1.01, 0.1))
    points = np.stack((np.full_like(y, x), y, z), axis=-1).reshape(-1, 3)
    count = len(points)
    size = np.tile((0.005, 0.1, 0.1), (count, 1))
    turn = np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
    return Splats(points, turn, size, np.full(count, opacity), np.zeros((count, 1, 3)))


class TestMeshes:
    def test_the_near_face_of_a_box(self) -> None:
        place = Scene("yard", SHAPES, instances=(Instance("cube", (3.0, 0.0, 0.0), name="crate"),))
        found = Picker(place).pick((0, 0, 0), (2.0, 0.0, 0.0))
        assert found is not None
        assert found.point == pytest.approx((2.5, 0.0, 0.0), abs=1e-6)
        assert (found.distance, found.what) == (pytest.approx(2.5, abs=1e-6), "crate")

    def test_nothing_is_there(self) -> None:
        place = Scene("yard", SHAPES, instances=(Instance("cube", (3.0, 0.0, 0.0)),))
        assert Picker(place).pick((0, 0, 0), (-1, 0, 0)) is None
        assert Picker(Scene("nothing")).pick((0, 0, 0), (1, 0, 0)) is None


class TestSplats:
    def test_a_dense_sheet_is_met_where_it_is(self) -> None:
        place = Scene("wall", clouds={"w": sheet(2.0)}, splats=(SplatPlacement("w", (1.0, 0.0, 0.0)),))
        found = Picker(place).pick((0, 0.03, 0.02), (1, 0, 0))
        assert found is not None
        assert found.distance == pytest.approx(3.0, abs=0.01)
        assert found.what == "splats"

    def test_thin_haze_is_looked_through(self) -> None:
        """Half of the light passes a cloud of low opacity; the wall behind is what is clicked."""
        both = Scene("hazy", clouds={"h": sheet(1.0, 0.02), "w": sheet(2.0)}, splats=(SplatPlacement("h"), SplatPlacement("w")))
        found = Picker(both).pick((0, 0, 0), (1, 0, 0))
        assert found is not None
        assert found.distance == pytest.approx(2.0, abs=0.01)

    def test_slanting_rays_and_what_lies_behind(self) -> None:
        along = np.array([1.0, 0.3, 0.2])
        assert ray_depth(sheet(2.0), (0, 0, 0), along) == pytest.approx(2.0 * np.linalg.norm(along), rel=0.01)
        assert ray_depth(sheet(-2.0), (0, 0, 0), along) == float("inf")
        assert ray_depth(sheet(2.0), (0, 5, 0), (1, 0, 0)) == float("inf")

    def test_the_nearer_of_mesh_and_cloud_counts(self) -> None:
        crate = Instance("cube", (1.5, 0.0, 0.0), name="crate")
        place = Scene("both", SHAPES, instances=(crate,), clouds={"w": sheet(2.0)}, splats=(SplatPlacement("w"),))
        found = Picker(place).pick((0, 0, 0), (1, 0, 0))
        assert found is not None
        assert found.what == "crate"


class TestPlanes:
    def test_a_ray_down_meets_a_height(self) -> None:
        found = on_height((0, 0, 3), (1, 0, -1), 1.0)
        assert found == pytest.approx((2.0, 0.0, 1.0))

    def test_rays_that_never_do(self) -> None:
        assert on_height((0, 0, 3), (1, 0, 1), 1.0) is None
        assert on_height((0, 0, 3), (1, 0, 0), 1.0) is None
        assert on_height((0, 0, 3), (1, 0, -1e-5), 1.0) is None  # beyond a kilometre
