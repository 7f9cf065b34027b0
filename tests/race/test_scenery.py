"""Scenes of races: what stands where the record says, by distances to it, and who may fly what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry.twins import shape_distance
from airworthy.race import Race, course_of, gate_shape, load_race, race_names, race_scene, race_vehicle, racer_names
from airworthy.scenes.batch import SceneBatch
from airworthy.vehicles import thrust_limits

OTHERS = (*(name for name in race_names() if name != "alphapilot"), "random:3")


def distance(race: Race, points: np.ndarray) -> np.ndarray:
    """Distance of points from whatever can be hit in a race's scene [m], (n,): each shape's own, in NumPy."""
    scene = race_scene(race)
    rows = []
    for item in scene.instances:
        if item.collide:
            local = frames.rotate(frames.conjugate(np.array(item.attitude)), points - np.array(item.position))
            rows.append(shape_distance(scene.shapes[item.shape], local))
    return np.min(rows, axis=0)


@pytest.mark.parametrize("name", OTHERS)
def test_openings_are_free_and_frames_are_not(name: str) -> None:
    race = load_race(name)
    assert race.frames is not None
    for gate in race.gates:
        shape = gate_shape(gate)
        parts = {item.name: item for item in race_scene(race).instances if item.name.startswith(f"gate {gate.name}, ")}
        assert sorted(parts) == sorted(f"gate {gate.name}, {side} bar" for side in ("left", "right", "top", "bottom"))
        for side, axis, half in (("left", shape.left, shape.half_width), ("top", shape.up, shape.half_height)):
            # The bar's inner face lies on the opening's edge; where gates are stacked one bar stands on the edge itself.
            away = (np.array(parts[f"gate {gate.name}, {side} bar"].position) - shape.center) @ axis
            assert away == pytest.approx(half + 0.5 * race.frames.width, abs=1e-6) or away == pytest.approx(half, abs=1e-6)


def test_distances_to_a_gate_and_a_post() -> None:
    """Of LSY's first gate: 0.4 m inside, 0.72 m outside; posts of 15 mm."""
    race = load_race("lsy_0")
    shape, post = gate_shape(race.gates[0]), race.posts[0]
    # Just inside the opening's edge, at the middle of its side; and beyond the frame.
    inner = shape.center + 0.15 * shape.left
    outer = shape.center + 0.46 * shape.left
    beside = np.array([post.position[0] + 0.115, post.position[1], 1.0])
    above = np.array([*post.position, 1.65])
    assert distance(race, np.array([inner, outer, beside, above])) == pytest.approx([0.05, 0.10, 0.10, 0.10], abs=2e-3)


def test_courses_move_the_scene_and_are_the_same_twice() -> None:
    race = load_race("lsy_2")
    one, again, other = (race_scene(course_of(race, name)) for name in ("fresh/5/1", "fresh/5/1", "fresh/5/2"))
    assert one.gates == again.gates
    assert one.gates != other.gates
    for frame, gate in zip(one.gates, course_of(race, "fresh/5/1").gates, strict=True):
        assert np.array(frame.corners) == pytest.approx(gate_shape(gate).corners, abs=1e-6)
    assert len(one.beacons) == 4 * len(race.gates)


def test_a_floor_under_limits_is_only_seen() -> None:
    """LSY's vehicles start on it, and end below it by the limits; elsewhere the floor is hit."""
    floors = {name: next(i for i in race_scene(load_race(name)).instances if i.name == "floor") for name in OTHERS}
    assert {name: floor.collide for name, floor in floors.items()} == {name: not name.startswith("lsy") for name in OTHERS}


def test_stacked_gates_leave_each_other_open() -> None:
    race = load_race("a2rl")
    low, high = (gate_shape(race.gate(name)) for name in ("low", "high"))
    edge = low.center + low.half_height * low.up
    assert edge == pytest.approx(high.center - high.half_height * high.up, abs=1e-9)
    # Half a bar on either side of the edge that they share.
    near = distance(race, np.stack([edge - 0.275 * low.up, edge + 0.275 * low.up]))
    assert near == pytest.approx([0.2, 0.2], abs=2e-3)


def test_racers_have_sources_and_can_fly() -> None:
    assert racer_names() == ("cf21B_500", "kingfisher")
    for name in OTHERS:
        flown_by = race_vehicle(load_race(name))
        assert float(np.sum(thrust_limits(flown_by)[1])) > 1.5 * flown_by.mass * flown_by.gravity
        assert {"mass", "inertia", "drag", "rotors.thrust"} <= set(flown_by.sources)
    assert race_vehicle(load_race("lsy_0"), "carl").name == "carl"
    with pytest.raises(AirworthyError, match="names no vehicle; give one \\(--vehicle\\): cf21B_500, kingfisher"):
        race_vehicle(replace(load_race("random:1"), vehicle=""))


def test_what_is_hit_has_its_name() -> None:
    race = load_race("lsy_0")
    batch = SceneBatch([race_scene(race)])
    names = {batch.instance_name(0, k) for k in range(len(race_scene(race).instances))}
    assert {"gate 2, top bar", "post 4"} <= names
