"""Scenes with splats: placed, rendered, collided with; and real statues in a hall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import sweep_sphere
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene as named_scene
from airworthy.scenes.record import Region, Scene, SplatSlot
from airworthy.scenes.splats import Splats, read_splats, transformed, write_splats
from airworthy.sensors.capture import render
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.compositing import composite
from airworthy.sensors.splats.scene import COLLISION_NAME, SplatScene, splat_file_scene, standing

STATUES = {
    "angel": (-3.0, 1.2),
    "angel-kneeling": (-2.0, -1.8),
    "massa": (-1.0, 1.0),
    "narcissus": (1.0, -0.8),
    "trumpet": (3.0, 1.5),
}
"""Where they stand in the flight room, x and y [m]: between its pillars."""


def block(plain: Any, size: float = 0.5) -> Splats:
    """Round gaussians that fill a cube around the origin."""
    side = np.linspace(-size, size, 11)
    grid = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)
    return plain(grid, 0.04, (0.2, 0.6, 0.2), 0.9)


# ---- slots -------------------------------------------------------------------------------------------------------------


def test_the_slot_places_the_file(plain: Any, tmp_path: Path) -> None:
    splats = block(plain)
    write_splats(splats, tmp_path / "block.ply")
    turn, where = (0.0, 0.0, np.sin(0.2), np.cos(0.2)), (3.0, 1.0, 2.0)
    place = Scene("place", splat=SplatSlot("block.ply", where, turn, 2.0))
    ours = SplatScene(place, tmp_path)
    assert np.allclose(ours.splats.position, transformed(splats, turn, where, 2.0).position, atol=1e-5)
    assert ours.loaded is not None
    assert np.allclose(ours.loaded.splats.position, splats.position, atol=1e-6)
    hit = ours.colliding(0.1, filled=True)
    assert hit.instances[-1].name == COLLISION_NAME
    assert not hit.instances[-1].visible
    batch = SceneBatch(hit)
    # From the left through the middle: the cube, 2 m wide and turned by 0.4, begins 1 / cos 0.4 before its middle.
    impact = sweep_sphere(batch.geometry, [[0.0, 1.0, 2.0]], [[6.0, 1.0, 2.0]], [0.1], env=[0])
    face = 3.0 - (1.0 + 2 * 0.04 * 2) / np.cos(0.4) - 0.1  # to 2 sigma of its outermost gaussians, less the sphere
    assert face - 0.15 <= 6.0 * impact.fraction[0] <= face + 0.25
    assert clearance(batch.geometry, [where], env=[0]).distance[0] < -0.9  # inside is filled


def test_a_path_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    for path in ("../secret.ply", "/etc/passwd", "a/../../b.ply", "..\\b.ply"):
        with pytest.raises(AssetError, match="outside"):
            SplatScene(Scene("place", splat=SplatSlot(path)), tmp_path)


def test_what_cannot_be_used_is_refused(plain: Any) -> None:
    with pytest.raises(AirworthyError, match="no splat slot"):
        SplatScene(Scene("place"))
    far = SplatScene(Scene("place"), splats=transformed(block(plain), translation=(500.0, 0.0, 0.0)))
    with pytest.raises(AirworthyError, match="outside"):
        far.geometry()
    near = SplatScene(Scene("place"), splats=block(plain))
    with pytest.raises(AirworthyError, match="already"):
        SplatScene(near.colliding(), splats=block(plain)).colliding()
    with pytest.raises(AirworthyError, match="opacity"):
        standing(plain([0.0] * 3, 0.1, 0.5, 0.2), (0.0, 0.0, 0.0))


def test_geometry_is_kept_and_bounded(plain: Any) -> None:
    place = Scene("place", bounds=Region((-50.0, -50.0, 0.0), (50.0, 50.0, 30.0)))
    ours = SplatScene(place, splats=[block(plain)])
    geometry = ours.geometry(0.1)
    assert ours.geometry(0.1) is geometry
    assert geometry.lower[2] == pytest.approx(-0.1)  # a cell below the bounds
    faint = SplatScene(place, splats=plain([[0.0, 0.0, 1.0]], 0.01, 0.5, 0.3))
    assert faint.colliding() is place


def test_standing_on_the_floor(plain: Any) -> None:
    splats = standing(block(plain), (2.0, -1.0, 0.5), yaw=0.7, scale=3.0, foot=0.0)
    assert splats.position[:, 2].min() == pytest.approx(0.5, abs=1e-5)
    assert splats.position.mean(0) == pytest.approx([2.0, -1.0, 2.0], abs=1e-4)


def test_a_file_is_a_scene(plain: Any, tmp_path: Path) -> None:
    write_splats(block(plain), tmp_path / "block.ply")
    ours = splat_file_scene(tmp_path / "block.ply", scale=2.0)
    assert ours.scene.name == "block"
    assert np.allclose(ours.scene.bounds.lower, -2.0, atol=1e-4)
    assert np.allclose(ours.scene.bounds.upper, 2.0, atol=1e-4)
    assert COLLISION_NAME in ours.colliding().shapes


# ---- real statues in a hall --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def statue_hall(data_dir: Path) -> SplatScene:
    """The recipe: two metres of statue each, on the mats of the flight room."""
    hall = named_scene("flightroom")
    parts = []
    for k, (name, (x, y)) in enumerate(STATUES.items()):
        statue = read_splats(data_dir / "splats" / "statues_sog" / f"{name}.sog").splats
        parts.append(standing(statue, (x, y, 0.01), yaw=0.5 * k, scale=0.5))
    return SplatScene(hall, splats=parts)


def test_statues_are_where_they_were_put(statue_hall: SplatScene) -> None:
    assert len(statue_hall.splats) == 71359 + 83547 + 58649 + 101275 + 89292
    hit = statue_hall.colliding(0.05)
    batch = SceneBatch(hit)
    bare = SceneBatch(statue_hall.scene)
    middle = np.array([(x, y, 0.0) for x, y in STATUES.values()])
    ways = [
        ((0.0, 0.0, 3.5), (0.0, 0.0, 0.3)),  # down on it: about 2 m tall, and its head is not quite in the middle
        ((0.0, 1.0, 0.3), (0.0, 0.0, 0.3)),  # into the pedestal, 0.7 m wide
    ]
    found = []
    for begin, end in ways:
        sweeps = [sweep_sphere(b.geometry, middle + begin, middle + end, [0.05] * 5, env=[0] * 5) for b in (batch, bare)]
        assert (sweeps[1].fraction == 1.0).all()  # nothing of the room is in the way
        found.append(sweeps[0].fraction)
    top = 3.5 - 3.2 * found[0] - 0.05
    assert (top > 0.7).all()
    assert (top < 2.2).all()
    side = 1.0 - found[1] - 0.05
    assert (side > 0.2).all()
    assert (side < 0.6).all()
    assert (clearance(batch.geometry, middle + np.array([0.0, 1.0, 1.0]), env=[0] * 5).distance > 0.2).all()
    free = np.array([[-5.0, 1.0, 1.0]])
    same = [clearance(b.geometry, free, env=[0]).distance[0] for b in (batch, bare)]
    assert same[0] == same[1]  # at the start of the room nothing came nearer


def test_collision_geometry_is_not_seen_but_statues_are(statue_hall: SplatScene) -> None:
    hit = SceneBatch(statue_hall.colliding(0.05))
    bare = SceneBatch(statue_hall.scene)
    lens = Pinhole(96, 64, fx=60.0, fy=60.0, cx=48.0, cy=32.0)
    position = np.array([[-5.0, 1.2, 1.0]])
    attitude = np.array([[-0.5, 0.5, -0.5, 0.5]])  # along +x, z up
    table = lens.rays()
    images = [render(b, table, position, attitude, channels=("rgb", "depth")) for b in (hit, bare)]
    assert np.array_equal(images[0]["depth"], images[1]["depth"])
    splats = statue_hall.renderer.render(96, 64, (60.0, 60.0, 48.0, 32.0), position, attitude)
    image = composite(splats, images[0])
    nearer = image["depth"] < images[1]["depth"] - 0.5
    assert 0.05 < nearer.mean() < 0.6
    middle = image["depth"][0, 32, 48]
    assert 1.4 < middle < 2.2  # the first statue, 2 m ahead


def test_statues_may_be_cut_from_bounds(statue_hall: SplatScene) -> None:
    low = replace(statue_hall.scene, bounds=Region((-8.5, -5.0, 0.0), (9.5, 5.0, 0.5)))
    cells = SplatScene(low, splats=statue_hall.splats).geometry(0.05)
    assert cells.lower[2] + 0.05 * cells.occupied.shape[2] < 0.61
