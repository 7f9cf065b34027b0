"""Start and goal of places that name none: in the largest free space, and the same in either frame."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.geometry import occluded
from airworthy.geometry.distance import clearance
from airworthy.scenes import Scene, SceneBatch, scene

FACES = ((1, 3, 4, 2), (5, 6, 8, 7), (1, 2, 6, 5), (3, 7, 8, 4), (1, 5, 7, 3), (2, 4, 8, 6))
"""Of a box whose corner numbers rise along z, then y, then x, from 1; outwards."""


def write_boxes(path: Path, boxes: list[tuple[float, ...]]) -> Path:
    """Boxes given by lower and upper corner, as an OBJ file."""
    lines = []
    for number, (x0, y0, z0, x1, y1, z1) in enumerate(boxes):
        lines += [f"v {x} {y} {z}" for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)]
        lines += ["f " + " ".join(str(8 * number + k) for k in face) for face in FACES]
    path.write_text("\n".join(lines))
    return path


def room(path: Path) -> Path:
    """A closed room of 10 x 8 x 3.5 m with pillars, its inner corner at (20, -5, 0)."""
    x, y, z, t = 10.0, 8.0, 3.5, 0.2
    shell = [
        (-t, -t, -t, x + t, y + t, 0.0),
        (-t, -t, z, x + t, y + t, z + t),
        (-t, -t, 0.0, 0.0, y + t, z),
        (x, -t, 0.0, x + t, y + t, z),
        (0.0, -t, 0.0, x, 0.0, z),
        (0.0, y, 0.0, x, y + t, z),
    ]
    pillars = [(a - 0.2, b - 0.2, 0.0, a + 0.2, b + 0.2, z) for a, b in ((3.0, 3.0), (7.0, 5.0), (5.0, 2.0))]
    offset = np.array([20.0, -5.0, 0.0] * 2)
    return write_boxes(path, [tuple(np.array(box) + offset) for box in shell + pillars])


def ends(found: Scene) -> Array:
    """Start and goal (2, 3) of a scene that has both; the way between them is free, and the start looks along it."""
    assert found.start is not None
    assert found.goal is not None
    both = np.array([found.start.position, found.goal.position])
    batch = SceneBatch(found).geometry
    assert (clearance(batch, both).distance >= 0.4).all()
    assert not occluded(batch, both[:1], both[1:]).any()
    ahead = both[1] - both[0]
    assert found.start.yaw == pytest.approx(math.atan2(ahead[1], ahead[0]))
    return both


def test_a_closed_room_is_flown_in_wherever_it_stands(tmp_path: Path) -> None:
    path = room(tmp_path / "room.obj")
    kept, centred = ends(scene(path, recentre=False)), ends(scene(path))
    assert ((kept > (20.4, -4.6, 0.4)) & (kept < (29.6, 2.6, 3.1))).all()
    # The file's box: 10.4 x 8.4 m about (25, -1), from 0.2 m under the floor.
    np.testing.assert_allclose(centred, kept - (25.0, -1.0, -0.2), atol=1e-4)
    np.testing.assert_allclose(kept[:, 2], 1.25, atol=1e-3)
    assert np.linalg.norm(kept[1] - kept[0]) > 6.0


def test_a_plane_with_a_tower_is_flown_over_the_ground(tmp_path: Path) -> None:
    path = tmp_path / "site.sdf"
    parts = {
        "ground": ("0 0 0 0 0 0", "<plane><normal>0 0 1</normal><size>30 30</size></plane>"),
        "tower": ("2 0 2.5 0 0 0", "<box><size>2 2 5</size></box>"),
        "pipe": ("-4 3 1 1.5708 0 0", "<cylinder><radius>0.2</radius><length>6</length></cylinder>"),
    }
    links = "".join(
        f'<model name="{name}"><static>true</static><pose>{pose}</pose><link name="l"><visual name="v"><geometry>{shape}'
        f'</geometry></visual><collision name="c"><geometry>{shape}</geometry></collision></link></model>'
        for name, (pose, shape) in parts.items()
    )
    path.write_text(f'<sdf version="1.9"><world name="site">{links}</world></sdf>')
    kept, centred = ends(scene(path)), ends(scene(path, recentre=True))
    assert (np.abs(kept[:, :2]) < 15.0).all()
    np.testing.assert_allclose(kept[:, 2], 1.25, atol=1e-3)
    assert np.linalg.norm(kept[1] - kept[0]) > 8.0
    np.testing.assert_allclose(centred[1] - centred[0], kept[1] - kept[0], atol=1e-3)


def test_open_terrain_is_flown_over_and_not_under(tmp_path: Path) -> None:
    side = np.linspace(0.0, 30.0, 25)
    x, y = (axis.ravel() for axis in np.meshgrid(side, side, indexing="ij"))
    height = 4.0 * np.exp(-((x - 15.0) ** 2 + (y - 15.0) ** 2) / 40.0)
    number = np.arange(625).reshape(25, 25) + 1
    quads = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], -1).reshape(-1, 4)
    lines = [f"v {a} {b} {c}" for a, b, c in zip(x, y, height, strict=True)]
    path = tmp_path / "hill.obj"
    path.write_text("\n".join(lines + ["f " + " ".join(map(str, quad)) for quad in quads]))
    for recentre in (True, False):
        found = scene(path, recentre=recentre)
        both = ends(found)
        below = both - (0.0, 0.0, 50.0)
        assert occluded(SceneBatch(found).geometry, both, below).all()
        assert np.linalg.norm(both[1] - both[0]) > 4.0


def test_a_small_object_is_flown_beside(tmp_path: Path) -> None:
    path = write_boxes(tmp_path / "crate.obj", [(4.0, 0.0, 0.0, 5.0, 1.0, 2.0)])
    kept, centred = scene(path, recentre=False), scene(path)
    assert kept.start is not None
    assert centred.start is not None
    assert clearance(SceneBatch(kept).geometry, [kept.start.position]).distance[0] > 0.3
    np.testing.assert_allclose(np.subtract(kept.start.position, centred.start.position), (4.5, 0.5, 0.0), atol=1e-6)


def test_who_flies_in_a_model_with_a_floor_begins_and_ends_above_it(tmp_path: Path) -> None:
    """Two walls leave a window of 2 m in the middle of an open floor, around which the bounds leave 1.5 m."""
    floor, walls = (0.0, 0.0, -0.1, 10.0, 6.0, 0.0), [(5.0, y, 0.0, 5.1, y + 2.0, 3.0) for y in (0.0, 4.0)]
    both = ends(scene(write_boxes(tmp_path / "window.obj", [floor, *walls])))
    assert (np.abs(both[:, 0]) < 4.9).all()
    assert (np.abs(both[:, 1]) < 2.9).all()
    assert np.linalg.norm(both[1] - both[0]) > 4.0


def test_a_scanned_floor_lies_under_start_and_goal(tmp_path: Path) -> None:
    """A corner of two corridors: the straight line through its middle would leave what was scanned."""
    x, y = np.meshgrid(np.arange(0.0, 12.01, 0.2), np.arange(0.0, 12.01, 0.2), indexing="ij")
    floor = (x < 3.01) | (y < 3.01)
    points = np.column_stack([x[floor], y[floor], np.zeros(floor.sum())])
    head = f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n" + "".join(f"property float {a}\n" for a in "xyz")
    path = tmp_path / "corner.ply"
    path.write_text(head + "end_header\n" + "\n".join(f"{a:.2f} {b:.2f} {c:.2f}" for a, b, c in points))
    found = ends(scene(str(path)))
    assert ((found[:, 0] < 3.2) | (found[:, 1] < 3.2)).all()
    assert ((found[:, :2] > -0.2) & (found[:, :2] < 12.2)).all()
    np.testing.assert_allclose(found[:, 2], 1.35, atol=0.05)  # 1.25 m above cells of 0.2 m
    assert np.linalg.norm(found[1] - found[0]) > 6.0
