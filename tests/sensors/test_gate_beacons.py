"""Beacons of the race hall: hidden by posts, other gates and pillars, never by the tube that carries them (spec/race 4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.frames import camera_attitude, from_euler, rotate_inverse
from airworthy.geometry import Box, Cylinder, twins
from airworthy.scenes import Actor, Beacon, Instance, Scene, SceneBatch, scene
from airworthy.scenes.generators.halls.race_hall import gate_order
from airworthy.sensors.build import BeaconCamera
from airworthy.sensors.devices import device
from airworthy.sensors.sampling import SensorView

DEVICE = device("flightgoggles_beacons")
FOCAL = 384.0 / math.tan(math.radians(35.0))
HALL = scene("alphapilot")
AT_START = [4, 4, 4, 4, 0, 0, 0, 0, 2, 0, 4]
"""In race order, of the first published course, with nothing between (spec/race 4.1)."""


def looking(position: Any, target: Any) -> Any:
    """Attitude of a body whose x axis points at a target, without roll."""
    x, y, z = np.subtract(target, position)
    return from_euler(0.0, -math.atan2(z, math.hypot(x, y)), math.atan2(y, x))


def seen(place: Scene | SceneBatch, position: Any, attitude: Any) -> Any:
    """Which beacons are reported, (poses, beacons)."""
    batch = place if isinstance(place, SceneBatch) else SceneBatch(place)
    where = np.atleast_2d(np.asarray(position, float))
    env = np.zeros(len(where), int)
    view = SensorView(where, np.atleast_2d(attitude), env)
    return BeaconCamera(DEVICE, "left").capture(batch, view)["beacon"] >= 0


def in_image(beacons: Any, position: Any, attitude: Any) -> Any:
    """Which points (n, 3) the lens shows, by the pinhole's own formula."""
    x, y, z = rotate_inverse(camera_attitude(np.asarray(attitude)), np.asarray(beacons) - position).T
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = FOCAL * x / z + 512.0, FOCAL * y / z + 384.0
    return (z > 0) & (u > 0) & (u < 1024) & (v > 0) & (v < 768)


def only(place: Scene, names: Sequence[str]) -> Scene:
    """The hall without what belongs to none of these."""
    kept = tuple(item for item in place.instances if item.name.split(", ")[0] in names)
    return replace(place, instances=kept, beacons=tuple(b for b in place.beacons if b.landmark in names))


@pytest.mark.parametrize("name", gate_order())
def test_a_gate_hides_none_of_its_own_beacons(name: str) -> None:
    """On the centre line, 30 and 60 degrees aside, from before and behind, 3 to 60 m: 4 of 4 where the lens shows them."""
    place = only(HALL, [name])
    frame = next(gate for gate in place.gates if gate.name == name)
    assert len(place.beacons) == 4
    center, (through, left, _) = np.array(frame.center), np.array(frame.axes)
    poses = []
    for angle in np.radians([0, 30, -30, 60, -60, 120, -120, 150, -150, 180]):
        for distance in (3.0, 8.0, 15.0, 30.0, 60.0):
            poses.append(center - distance * (math.cos(angle) * through + math.sin(angle) * left))
    turns = [looking(pose, center) for pose in poses]
    found = seen(place, poses, turns)
    shown = np.array([in_image(frame.corners, *pose) for pose in zip(poses, turns, strict=True)])
    np.testing.assert_array_equal(found, shown)
    far = np.linalg.norm(np.array(poses) - center, axis=1) > 2.4 * max(frame.opening)
    assert found[far].all()
    assert far.sum() >= 40


def test_nothing_but_the_lens_bounds_the_view_where_gates_stand_alone() -> None:
    """Eleven halls of one gate each, at the start of the first published course: the figures of spec/race 4.1."""
    place = scene("alphapilot:published/0")
    assert place.start is not None
    turn = from_euler(0.0, 0.0, place.start.yaw)
    alone = [int(seen(only(place, [name]), place.start.position, turn).sum()) for name in gate_order()]
    assert alone == AT_START
    # In the whole hall Gate10 stands in the way: it hides one marker of Gate21, on the nominal course three.
    whole = [seen(each, each.start.position, turn)[0] for each in (place, HALL)]
    of = [np.array([beacon.landmark == name for beacon in HALL.beacons]) for name in gate_order()]
    counts = [[int(row[mine].sum()) for mine in of] for row in whole]
    assert counts == [[4, 3, 4, 4, 0, 0, 0, 0, 2, 0, 4], [4, 1, 4, 4, 0, 0, 0, 0, 2, 2, 4]]


@pytest.mark.parametrize("name", ["alphapilot", "alphapilot:published/0", "alphapilot:fresh/5/1"])
def test_the_whole_hall_agrees_with_the_twin(name: str) -> None:
    """Every beacon from the start and from places around, against hairs swept by distances in float64."""
    place = scene(name)
    assert place.start is not None
    place = replace(place, instances=tuple(item for item in place.instances if item.semantic in ("gate", "pillar")))
    batch = SceneBatch(place)
    rng = np.random.default_rng(3)
    poses = np.vstack([place.start.position, rng.uniform((-30.0, -40.0, 0.5), (25.0, 45.0, 8.0), (3, 3))])
    marks = np.array([beacon.position for beacon in place.beacons])
    turns = np.array([from_euler(0.0, 0.0, yaw) for yaw in (place.start.yaw, *rng.uniform(-3.0, 3.0, 3))])
    found = seen(batch, poses, turns)
    pose, mark = np.nonzero(np.array([in_image(marks, *row) for row in zip(poses, turns, strict=True)]))
    shapes, placement = batch.geometry.shapes, batch.geometry.layout(0)
    through = batch.beacon_groups()[0][mark]
    start = marks[mark] + 1e-3 * (poses[pose] - marks[mark]) / np.linalg.norm(poses[pose] - marks[mark], axis=1)[:, None]
    expected = np.zeros_like(found)
    expected[pose, mark] = ~twins.blocked(shapes, placement, start, poses[pose], through)
    np.testing.assert_array_equal(found, expected)
    assert 5 < expected.sum() < len(pose)


def test_another_gates_tube_a_pillar_and_the_own_post_hide() -> None:
    place = only(HALL, ["Gate13"])
    frame = next(gate for gate in place.gates if gate.name == "Gate13")
    post = next(item for item in place.instances if item.name == "Gate13, left post")
    mark = min(range(4), key=lambda k: np.linalg.norm(np.subtract(frame.corners[k], post.position)))
    corner = np.array(frame.corners[mark])
    # From below, through the middle of the post that stands under the corner.
    below = corner + 2.0 * (np.array([post.position[0], post.position[1], 0.6]) - corner)
    turn = looking(below, corner)
    without = replace(place, instances=tuple(item for item in place.instances if item is not post))
    assert not seen(place, below, turn)[0, mark]
    assert seen(without, below, turn)[0, mark]
    # 20 m before the gate, a beam of another gate across the line of sight, a pillar, and the same beam as a part of this gate.
    eye = np.array(frame.center) - 20.0 * np.array(frame.direction)
    between = 0.5 * (eye + corner)
    beam = Instance("beam", tuple(between), materials=(), semantic="gate", name="Gate2, top side")
    shapes = {**place.shapes, "beam": Box((0.4, 0.4, 0.4)), "pillar": Cylinder(0.4, 10.0)}
    for item, hidden in (
        (replace(beam, carries="Gate2"), True),
        (beam, True),
        (replace(beam, shape="pillar", name="pillar 1"), True),
        (replace(beam, carries="Gate13"), False),
    ):
        crossed = replace(place, shapes=shapes, instances=(*place.instances, item))
        assert seen(crossed, eye, looking(eye, frame.center))[0, mark] == (not hidden), item


def test_a_tube_that_moves_carries_its_beacons_too() -> None:
    """Dynamic instances: along the tube the beacon in its middle is seen; a wall and another gate's tube hide it."""
    tube = Actor("gate", (Instance("tube", carries="G"),), position=(6.0, 0.0, 0.0))
    other = Actor("other", (Instance("tube", carries="H"),), position=(3.0, 0.0, 0.0))
    marks = (Beacon("G", "1", (0.0, 0.0, 0.0), attached="gate"), Beacon("H", "1", (0.0, 50.0, 0.0)))
    shapes = {"tube": Box((2.0, 0.1, 0.1)), "wall": Box((0.1, 1.0, 1.0))}
    plain = Scene("one", shapes, actors=(tube,), beacons=marks)
    level = from_euler(0.0, 0.0, 0.0)
    assert seen(plain, (0.0, 0.0, 0.0), level)[0].tolist() == [True, False]
    assert not seen(replace(plain, actors=(tube, other)), (0.0, 0.0, 0.0), level).any()
    wall = replace(plain, instances=(Instance("wall", (2.0, 0.0, 0.0)),))
    assert not seen(wall, (0.0, 0.0, 0.0), level).any()
    # Scenes of one batch number their groups each for itself.
    batch = SceneBatch([plain, HALL, wall])
    assert batch.beacon_groups().shape == (3, 44)
    assert batch.beacon_groups()[0].tolist()[:3] == [1, 0, 0]
    assert sorted(set(batch.beacon_groups()[1].tolist())) == list(range(1, 12))
