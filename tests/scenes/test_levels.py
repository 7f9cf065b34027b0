"""Levels of detail: fewer triangles, the same place."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Mesh
from airworthy.scenes import Instance, Scene
from airworthy.scenes.extent import scene_box, triangle_count
from airworthy.scenes.formats.meshes.simplify import coarser, mesh_bytes


def bump(n: int = 40) -> Mesh:
    """A hilly square of 2 n^2 triangles."""
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, n + 1), np.linspace(-1.0, 1.0, n + 1))
    vertices = np.stack((x, y, 0.3 * np.cos(3.0 * x) * np.cos(2.0 * y)), axis=-1).reshape(-1, 3)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1, 1)
    faces = np.concatenate((corner + np.array([0, 1, n + 2]), corner + np.array([0, n + 2, n + 1])))
    return Mesh(vertices, faces)


def test_a_coarser_scene_is_smaller_and_stands_where_it_stood() -> None:
    hill = bump()
    scene = Scene("s", {"a": hill, "b": hill, "box": Box((1.0, 1.0, 1.0))}, instances=(Instance("a"), Instance("b", scale=2.0)))
    level = coarser(scene, 0.25)
    assert level.shapes["a"] is level.shapes["b"]  # what was shared stays shared
    assert level.shapes["box"] is scene.shapes["box"]
    assert triangle_count(level)[0] <= 0.25 * triangle_count(scene)[0]
    assert mesh_bytes(level) < 0.4 * mesh_bytes(scene)
    before, after = scene_box(scene), scene_box(level)
    assert before is not None
    assert after is not None
    # Vertices move within a cell of the grid: 800 of 3,200 triangles leave cells of about 0.1 m, doubled by the scale.
    np.testing.assert_allclose(np.concatenate(after), np.concatenate(before), atol=0.25)
    assert coarser(scene, 1.0) is scene


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, np.nan])
def test_other_shares_are_refused(share: float) -> None:
    with pytest.raises(AirworthyError, match="more than 0 and at most 1"):
        coarser(Scene("s"), share)
