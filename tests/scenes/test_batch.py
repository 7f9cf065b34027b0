"""SceneBatch: what is shared, who stands where and when, and what a swap changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.geometry import Box, Mesh, Placement, RayTable, Sphere, cast
from airworthy.geometry.distance import clearance
from airworthy.scenes import (
    Actor,
    Beacon,
    Instance,
    Material,
    PointLight,
    Scene,
    SpotLight,
    Sun,
    Texture,
    Waypoint,
    add_actor,
    person,
    posed,
)
from airworthy.scenes.actors import path_pose
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.instance_tables import instance_numbers, semantic_numbers

QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
PATH = (Waypoint(0.0, (0.0, 5.0, 0.0)), Waypoint(4.0, (8.0, 5.0, 0.0), QUARTER))
TRIANGLE = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 1]]), face_material=np.array([0, 1]))


def stage(name: str = "stage", size: float = 0.5) -> Scene:
    """A ball, a block and three actors: one on rails, one drifting and turning, one posed from outside."""
    parts = (Instance("ball", (1.0, 0.0, 0.0)), Instance("block", (0.0, 0.0, 2.0), QUARTER, 0.5, semantic="gate"))
    return Scene(
        name,
        {"ball": Sphere(size), "block": Box((0.3, 0.2, 0.1)), "flag": TRIANGLE},
        {"red": Material((1.0, 0.0, 0.0, 1.0)), "blue": Material((0.0, 0.0, 1.0, 1.0), base_color_map="tiles")},
        {"tiles": Texture(np.zeros((2, 2, 3), np.uint8))},
        (
            Instance("block", (3.0, 0.0, 0.0), materials=("red",)),
            Instance("flag", (0.0, -9.0, 0.0), materials=("red", "blue"), semantic="bunting"),
            Instance("ball", (0.0, 9.0, 0.0), instance_id=101),
        ),
        (
            Actor("rail", parts, "scripted", path=PATH),
            Actor("drift", parts[:1], "velocity", (0.0, 0.0, 5.0), velocity=(0.0, 1.0, 0.0), rate=(0.0, 0.0, 0.3)),
            Actor("puppet", parts[1:], "external", (0.0, -5.0, 1.0)),
        ),
        (
            Sun((0.0, 0.0, -1.0)),
            PointLight((0.0, 0.0, 1.0), attached="rail"),
            SpotLight((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), attached="drift"),
        ),
        beacons=(Beacon("G", "1", (1.0, 0.0, 0.0), "rail"), Beacon("G", "2", (7.0, 7.0, 7.0))),
    )


def composed(position: np.ndarray, attitude: np.ndarray, part: Instance) -> tuple[np.ndarray, np.ndarray]:
    return position + frames.rotate(attitude, part.position), frames.multiply(attitude, part.attitude)


def expected(scene: Scene, time: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Closed forms of the stage's parts at a time."""
    rail, drift, puppet = scene.actors
    turn = frames.from_axis_angle((0.0, 0.0, 1.0), 0.3 * time)
    poses = [path_pose(PATH, time), (np.array([0.0, time, 5.0]), turn), (np.array(puppet.position), np.array(frames.IDENTITY))]
    return [composed(*pose, part) for actor, pose in zip((rail, drift, puppet), poses, strict=True) for part in actor.parts]


def test_parts_stand_where_closed_forms_say_at_the_time_of_their_environment() -> None:
    scene = stage()
    batch = SceneBatch(scene, 4)
    times = np.array([0.0, 1.0, 2.5, -3.0])
    batch.advance([9.0, 9.0, 9.0, 9.0])
    batch.advance(times)
    position, attitude, active = batch.dynamic_poses
    assert active.all()
    for env, time in enumerate(times):
        for slot, (where, turn) in enumerate(expected(scene, time)):
            np.testing.assert_allclose(position[env, slot], where, atol=1e-12)  # rounding of float64
            assert frames.angle_between(attitude[env, slot], turn) < 1e-7  # the angle's square root of rounding


def test_a_moved_obstacle_shows_in_the_next_picture() -> None:
    batch = SceneBatch(stage(), 2)
    ray = RayTable(np.array([[[0.0, 0.0, 1.0]]]), axis=(0.0, 0.0, 1.0))
    up = np.tile(frames.IDENTITY, (2, 1))
    eye = np.array([[20.0, 20.0, 0.0], [20.0, 20.0, 0.0]])

    def ranges() -> np.ndarray:
        return cast(batch.geometry, ray, eye, up, np.arange(2), ("range",))["range"][:, 0, 0]

    assert np.isinf(ranges()).all()
    # The puppet's part hangs 2 m above it, half of a block 0.2 m high, turned: its lower side is 1.95 m up.
    batch.pose_actor("puppet", (20.0, 20.0, 3.0), env_ids=[1])
    np.testing.assert_allclose(ranges(), (np.inf, 4.95), atol=1e-5)  # float32 at 20 m
    batch.command_actor("puppet", (0.0, 0.0, 2.0))
    batch.advance(0.5)
    np.testing.assert_allclose(ranges(), (np.inf, 5.95), atol=1e-5)
    batch.reset([1])
    assert np.isinf(ranges()).all()
    nearest = clearance(batch.geometry, np.array([[0.0, -5.0, 3.0]]), np.array([1]))
    assert nearest.distance[0] == pytest.approx(-0.05, abs=1e-5)  # in the middle of the block


def test_what_rays_meet_bears_numbers_of_instance_and_class() -> None:
    scene = stage()
    batch = SceneBatch(scene)
    down = frames.from_axis_angle((1.0, 0.0, 0.0), np.pi)
    ray = RayTable(np.array([[[0.0, 0.0, 1.0]]]), axis=(0.0, 0.0, 1.0))
    at = np.array([[3.0, 0.0, 9.0], [0.1, -8.9, 9.0], [0.0, 9.0, 9.0], [1.0, 5.0, 9.0], [0.0, 5.0, 9.0], [40.0, 0.0, 9.0]])
    found = cast(batch.geometry, ray, at, np.tile(down, (6, 1)), np.zeros(6, int), ("instance", "instance_id", "semantic_id"))
    start = batch.geometry.dynamic_start
    # 100, then 101 is taken by the ball, so the flag is 102, and the actors are 103 to 105.
    np.testing.assert_array_equal(found["instance"][:, 0, 0], (0, 1, 2, start, start + 1, -1))
    np.testing.assert_array_equal(found["instance_id"][:, 0, 0], (100, 102, 101, 103, 103, -2))
    np.testing.assert_array_equal(found["semantic_id"][:, 0, 0], (3, 200, 3, 3, 7, -2))
    assert batch.instance_names[0] == ("block", "flag", "ball")
    assert batch.dynamic_names(0) == ("rail/0", "rail/1", "drift/0", "puppet/0")
    assert [batch.instance_name(0, number) for number in (1, start + 1, -1)] == ["flag", "rail/1", ""]


def test_numbers_of_instances_and_classes() -> None:
    scene = stage()
    assert instance_numbers(scene) == ([100, 102, 101], [103, 103, 104, 105])
    own = replace(scene, semantics={"zebra": 200, "gate": 9})
    wanted = replace(own, instances=tuple(Instance("ball", semantic=name) for name in ("zebra", "yak", "ant", "gate", "tree")))
    numbers = semantic_numbers(wanted)
    assert [numbers[name] for name in ("zebra", "yak", "ant", "gate", "tree")] == [200, 202, 201, 9, 2]


def test_equal_things_are_held_once() -> None:
    one, two = stage("one"), stage("two")
    batch = SceneBatch([one, two, one], 9)
    assert [scene.name for scene in batch.scenes] == ["one", "two"]
    np.testing.assert_array_equal(batch.scene_of_env, [0, 1, 0] * 3)
    assert len(batch.geometry.shapes) == 3  # the mesh by identity, solids by measure
    assert batch.geometry.layout_count == 2
    assert batch.material_rows[0] == (-1, "")
    assert [name for _, name in batch.material_rows] == ["", "red", "red", "blue", "red", "blue"]
    # Pixels of another texture are another material, equal numbers are the same.
    assert [scene for scene, _ in batch.material_rows] == [-1, 0, 0, 0, 1, 1]
    row = int(batch.geometry.layout(0).material[1])
    assert [batch.material(row + k)[0].base_color[:3] for k in range(2)] == [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    assert list(batch.material(row + 1)[1]) == ["tiles"]


def test_environments_permuted_are_the_same_environments() -> None:
    scenes = [stage(str(k), 0.1 + 0.1 * k) for k in range(3)] + [
        Scene("empty", {"ball": Sphere(1.0)}, instances=(Instance("ball"),))
    ]
    order = np.random.default_rng(1).permutation(8)
    time = np.linspace(0.0, 5.0, 8)
    plain, mixed = SceneBatch(scenes, 8), SceneBatch(scenes, 8)
    mixed.assign(np.arange(8), [scenes[i % 4] for i in order])
    plain.advance(time)
    mixed.advance(time[order])
    for a, b in zip(plain.dynamic_poses, mixed.dynamic_poses, strict=True):
        there = plain.dynamic_poses[2][order]
        np.testing.assert_array_equal(a[order][there], b[there])
    points = np.random.default_rng(2).normal(size=(8, 3)) * 4.0
    near = clearance(plain.geometry, points, np.arange(8)).distance
    np.testing.assert_array_equal(near[order], clearance(mixed.geometry, points[order], np.arange(8)).distance)


def test_whole_scenes_are_swapped_and_actors_begin_anew() -> None:
    big, small = stage("big", 0.5), Scene("small", {"pea": Sphere(0.05)}, instances=(Instance("pea", (0.0, 0.0, 1.0)),))
    batch = SceneBatch([big, small], 4)
    batch.advance(2.0)
    batch.assign([0, 3], [small, big])
    np.testing.assert_array_equal(batch.scene_of_env, (1, 1, 0, 0))
    np.testing.assert_array_equal(batch.dynamic_poses[2].sum(1), (0, 0, 4, 4))
    origin = np.zeros((4, 3))
    np.testing.assert_allclose(clearance(batch.geometry, origin, np.arange(4)).distance[:2], 0.95, atol=1e-6)
    # Drifting actors start where they stood at the beginning, now; scripted ones follow the clock.
    position, _, _ = batch.dynamic_poses
    np.testing.assert_allclose(position[3, 2], (1.0, 0.0, 5.0), atol=1e-12)
    np.testing.assert_allclose(position[2, 2], expected(big, 2.0)[2][0], atol=1e-12)
    new = stage("new", 0.7)
    batch.assign([1], new)
    assert len(batch.scenes) == 3
    assert batch.geometry.layout_count == 3
    assert batch.dynamic_poses[2][1].all()
    batch.assign([1], 0)
    assert batch.scenes[batch.scene_of_env[1]] is big


def test_commands_compose_to_the_exact_motion() -> None:
    batch = SceneBatch(stage(), 3)
    rate, velocity = np.array([0.4, -0.2, 0.7]), np.array([1.0, 2.0, -0.5])
    batch.pose_actor("puppet", (1.0, 1.0, 1.0), QUARTER)
    batch.command_actor("puppet", velocity, rate)
    for time in np.linspace(0.0, 2.0, 17):
        batch.advance(time)
        batch.command_actor("puppet", velocity, rate)  # the same again: nothing may change
    position, attitude = batch.actor_pose("puppet")
    np.testing.assert_allclose(position, np.tile(np.array([1.0, 1.0, 1.0]) + 2.0 * velocity, (3, 1)), atol=1e-12)
    np.testing.assert_allclose(
        attitude, np.tile(frames.multiply(frames.from_rotation_vector(2.0 * rate), QUARTER), (3, 1)), atol=1e-12
    )


def test_lights_and_beacons_move_with_their_actors() -> None:
    scene = stage()
    batch = SceneBatch([scene, Scene("dark", lights=())], 2)
    batch.advance(4.0)
    position, direction = batch.light_poses()
    assert position.shape == direction.shape == (2, 3, 3)
    assert np.isnan(position[1]).all()
    assert np.isnan(position[0, 0]).all()
    np.testing.assert_allclose(direction[0, 0], (0.0, 0.0, -1.0))
    np.testing.assert_allclose(position[0, 1], (8.0, 5.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(position[0, 2], (0.0, 4.0, 6.0), atol=1e-12)
    np.testing.assert_allclose(direction[0, 2], (np.cos(1.2), np.sin(1.2), 0.0), atol=1e-12)
    # A quarter turn at the end of the rails: x of the actor is y of the world.
    np.testing.assert_allclose(batch.beacon_positions()[0], ((8.0, 6.0, 0.0), (7.0, 7.0, 7.0)), atol=1e-12)
    still = posed(scene, 4.0)
    np.testing.assert_allclose([beacon.position for beacon in still.beacons], batch.beacon_positions()[0], atol=1e-12)
    assert isinstance(still.lights[2], SpotLight)
    np.testing.assert_allclose(still.lights[2].direction, direction[0, 2], atol=1e-12)


def test_vehicles_are_dynamic_instances_before_the_actors() -> None:
    scene = stage()
    extra = Placement.of([1, 0], instance_id=[7, 8], semantic_id=8, material=[1, 0])
    shapes, paints = (Sphere(0.25), Box((0.1, 0.1, 0.1))), (Material((0.5, 0.5, 0.5, 1.0)), Material((0.0, 1.0, 0.0, 1.0)))
    batch = SceneBatch([scene, Scene("none")], 2, extra_dynamic_instances=extra, extra_shapes=shapes, extra_materials=paints)
    assert batch.extra_count == 2
    np.testing.assert_array_equal(batch.dynamic_poses[2].sum(1), (4, 0))  # vehicles come when they are posed
    batch.pose_dynamic_instances([[[0.0, 0.0, 50.0], [0.0, 0.0, 60.0]]], frames.IDENTITY, [1])
    batch.advance(1.0)
    np.testing.assert_array_equal(batch.dynamic_poses[2].sum(1), (4, 2))
    found = clearance(batch.geometry, np.array([[0.0, 0.0, 62.0], [0.0, 0.0, 49.0]]), np.array([1, 1]))
    np.testing.assert_allclose(found.distance, (1.75, 0.9), atol=1e-5)
    batch.assign([0], Scene("other", {"x": Sphere(9.0)}))
    np.testing.assert_array_equal(batch.dynamic_poses[2].sum(1), (0, 2))
    assert batch.dynamic_names(0)[:2] == ("vehicle/0", "vehicle/1")
    assert batch.material(int(batch._extra.material[0]))[0] == paints[1]


def test_a_walking_person_is_posed_like_the_frozen_one_and_obeys_motion_capture() -> None:
    scene = add_actor(add_actor(Scene("s"), person("a", animation="walking")), person("b", 1.6, position=(3.0, 0.0, 0.0)))
    batch = SceneBatch(scene, 3)
    batch.advance([0.0, 0.4, 7.3])
    for env, time in enumerate((0.0, 0.4, 7.3)):
        still = posed(scene, time)
        np.testing.assert_allclose(batch.dynamic_poses[0][env], [item.position for item in still.instances], atol=1e-12)
    straight = np.tile(frames.IDENTITY, (15, 1))
    batch.pose_actor("a", (0.0, 0.0, 0.0), joints=straight, env_ids=[1])
    rest = posed(replace(scene, actors=(replace(scene.actors[0], animation=""), scene.actors[1])), 0.4)
    found, wanted = batch.dynamic_poses[0][1, :15], np.array([item.position for item in rest.instances[:15]])
    # The pelvis keeps the height of its clip, everything else hangs from it.
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-6)
    batch.advance(0.9)
    moved = batch.dynamic_poses[0][1, :15]
    np.testing.assert_allclose((found - found[0])[5], (moved - moved[0])[5], atol=1e-6)
    with pytest.raises(AirworthyError, match="15 joints"):
        batch.pose_actor("a", (0.0, 0.0, 0.0), joints=straight[:3])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b: b.advance([0.0]), r"expected one finite time"),
        (lambda b: b.advance(np.nan), "finite"),
        (lambda b: b.pose_actor("nobody", (0.0, 0.0, 0.0)), "Unknown actor 'nobody'"),
        (lambda b: b.pose_actor("rial", (0.0, 0.0, 0.0)), "Closest: 'rail'"),
        (lambda b: b.pose_actor("rail", (0.0, 0.0)), r"expected \(3,\)"),
        (lambda b: b.pose_actor("rail", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 2.0)), "length 1"),
        (lambda b: b.command_actor("rail", (np.inf, 0.0, 0.0)), "finite"),
        (lambda b: b.assign([5], 0), "Environment 5"),
        (lambda b: b.assign([0, 1], [0]), "1 scenes for 2 environments"),
        (lambda b: b.assign([0], 3), "expected 0 to 0"),
    ],
)
def test_mistakes_are_told(call: object, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        call(SceneBatch(stage(), 2))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"instances": (Instance("blok"),)}, "Closest: 'block'"),
        ({"instances": (Instance("block", materials=("rad",)),)}, "Closest: 'red'"),
        ({"textures": {}}, "Unknown texture 'tiles'"),
        ({"instances": (Instance("block", attitude=(0.0, 0.0, 0.0, 0.0)),)}, "length 1"),
        ({"instances": (Instance("block", scale=0.0),)}, "scale above 0"),
        ({"beacons": (Beacon("G", "1", (0.0, 0.0, 0.0), "train"),)}, "Unknown actor 'train'"),
    ],
)
def test_a_scene_that_cannot_be_placed_is_refused(change: dict, says: str) -> None:
    with pytest.raises((AirworthyError, UnknownNameError), match=says):
        SceneBatch(replace(stage(), **change))


def test_no_scene_and_no_environment_are_refused() -> None:
    for arguments in (([],), (stage(), 0)):
        with pytest.raises(AirworthyError, match="at least one"):
            SceneBatch(*arguments)
