"""Normals of what grows, and of cars, lie on the side of their faces' fronts: seen from a back they are turned round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from airworthy.geometry import Mesh
from airworthy.scenes.figures.figure import FigureForm, figure_mesh, limb_meshes
from airworthy.scenes.streets.cars import car_patches
from airworthy.scenes.vegetation.tree import TreeForm, tree_mesh, trunk_mesh
from airworthy.scenes.vegetation.undergrowth import fallen_trunk, fern, hedge_panel, stone

BIRCH = TreeForm("birch", 0)
MADE: dict[str, Callable[[], Mesh]] = {
    "trunk": lambda: trunk_mesh(BIRCH),
    "tree": lambda: tree_mesh(BIRCH),
    "hedge": lambda: hedge_panel(0, 1.0, 1.0, leaves=200),
    "fern": lambda: fern(0),
    "fallen trunk": lambda: fallen_trunk(0),
    "stone": lambda: stone(0),
    "car": lambda: car_patches("hatch", 0).mesh(),
}


@pytest.mark.parametrize("name", MADE)
def test_normals_lie_on_the_side_of_the_front(name: str) -> None:
    check_sides(MADE[name]())


@pytest.mark.parametrize("outfit", ["shirt", "jacket", "worker"])
def test_people_are_wound_outwards_whole_and_cut_at_the_joints(outfit: str) -> None:
    """Who stands is one closed mesh, who walks one for each joint; of both the fronts are outside, where the normals are."""
    form = FigureForm(outfit=outfit, seed=2)
    coarse, whole = (figure_mesh(replace(form, detail=detail)) for detail in (0, 1))
    for mesh in (coarse, whole, *limb_meshes(replace(form, detail=1)).values()):
        a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
        # The volume within a closed surface whose fronts are outside; of fronts inside it would be below 0.
        assert np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0 > 1e-4
        # Of the coarsest, seen where a pixel is wider than 2 cm, cells are as wide as an arm, and 4 % of faces are folded.
        if mesh is not coarse:
            check_sides(mesh)


def check_sides(mesh: Mesh) -> None:
    assert mesh.normals is not None
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    flat = np.cross(b - a, c - a)
    area = np.linalg.norm(flat, axis=1)
    sides = np.einsum("fi,fi->f", flat, mesh.normals[mesh.faces].astype(float).mean(1))
    # By area, and by 120 degrees: bends of twigs fold small triangles over, and normals of leaves are bent on purpose.
    assert area[sides < -0.5 * area].sum() < 0.02 * area.sum()
