"""A start or goal inside of a mesh that bounds no volume: told once, since distances cannot tell."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.open_meshes import open_meshes_around
from airworthy.benchmarks.fly.scene import check_ends
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.geometry import Mesh
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.vehicles import vehicle

CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
FACES = np.array([(s[0], s[k], s[k + 1]) for s in SIDES for k in (1, 2)])
CLOSED, OPEN, INWARDS = Mesh(CORNERS, FACES), Mesh(CORNERS, FACES[:-2]), Mesh(CORNERS, FACES[:, ::-1])
HALF = float(np.sqrt(0.5))
CONFIG = FlyConfig(scene="made")


def placed(mesh: Mesh, *names: str) -> Scene:
    """Boxes of 4 m, turned about the vertical, at (5, 0, 2)."""
    things = tuple(Instance("box", (5.0, 0.0, 2.0), (0.0, 0.0, HALF, HALF), 2.0, name=name) for name in names)
    return Scene("made", shapes={"box": mesh}, instances=things)


def ends(scene: Scene, goal: tuple[float, float, float]) -> None:
    check_ends(CONFIG, SceneBatch(scene, 1), [vehicle("carl")], np.array([0.0, 0.0, 2.0]), np.array(goal))


def test_what_is_inside_of_an_open_mesh() -> None:
    inside, outside, beside = ((5.5, 0.5, 1.5), (0.0, 0.0, 2.0), (5.0, 1.9, 4.5))
    assert open_meshes_around(placed(OPEN, "shell"), np.array(inside)) == ["shell"]
    for mesh, place in ((OPEN, outside), (OPEN, beside), (CLOSED, inside), (INWARDS, inside)):
        assert open_meshes_around(placed(mesh, "shell"), np.array(place)) == []
    unseen = placed(OPEN, "shell")
    ghost = replace(unseen, instances=(replace(unseen.instances[0], collide=False),))
    assert open_meshes_around(ghost, np.array(inside)) == []


def test_a_goal_in_open_meshes_is_told_once_and_in_a_closed_one_refused() -> None:
    with pytest.warns(AssetWarning) as told:
        ends(placed(OPEN, "shell", "skin"), (5.0, 0.0, 2.0))
    (warning,) = told
    assert str(warning.message).startswith(
        "The goal may lie inside of 'shell', 'skin' (2 meshes): an open mesh bounds no volume"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends(placed(OPEN, "shell"), (10.0, 0.0, 2.0))
        with pytest.raises(AirworthyError, match="inside an obstacle"):
            ends(placed(CLOSED, "block"), (5.0, 0.0, 2.0))
