"""Actors against closed forms: paths, drifts, joints, skins and the capsule person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Capsule, Mesh, Sphere
from airworthy.scenes import Actor, Instance, Scene, Waypoint, add_actor, person, posed, skinned_actor, walk_path
from airworthy.scenes.actors import PathTable, actor_table, drifted, path_pose
from airworthy.scenes.extent import instance_box, scene_box
from airworthy.scenes.files.extras import fit_capsule
from airworthy.scenes.formats.model import Clip, Model, Skeleton, Track
from airworthy.scenes.people import PERSON_JOINTS, standing_angles, walking_angles
from airworthy.scenes.skeletons import joint_matrices, skinned_mesh

QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
PATH = (
    Waypoint(1.0, (0.0, 0.0, 0.0)),
    Waypoint(3.0, (4.0, 0.0, 2.0), QUARTER),
    Waypoint(4.0, (4.0, 1.0, 2.0), QUARTER),
)


@pytest.mark.parametrize(
    ("time", "position", "yaw"),
    [
        (-5.0, (0.0, 0.0, 0.0), 0.0),
        (1.0, (0.0, 0.0, 0.0), 0.0),
        (1.5, (1.0, 0.0, 0.5), np.pi / 8.0),
        (3.0, (4.0, 0.0, 2.0), np.pi / 2.0),
        (3.25, (4.0, 0.25, 2.0), np.pi / 2.0),
        (9.0, (4.0, 1.0, 2.0), np.pi / 2.0),
    ],
)
def test_a_path_is_linear_in_position_and_angle_and_held_at_its_ends(time: float, position: tuple, yaw: float) -> None:
    where, attitude = path_pose(PATH, time)
    # Rounding of float64 only.
    np.testing.assert_allclose(where, position, atol=1e-12)
    np.testing.assert_allclose(frames.yaw_of(attitude), yaw, atol=1e-12)


@given(st.floats(-50.0, 50.0))
def test_a_repeated_path_has_the_period_between_its_ends(time: float) -> None:
    now, later = path_pose(PATH, time, True), path_pose(PATH, time + 3.0, True)
    # The remainder of a division rounds at 1e-15 x 50 s; a jump lies where the path begins anew.
    phase = (time - 1.0) % 3.0
    if 1e-9 < phase < 3.0 - 1e-9:
        np.testing.assert_allclose(now[0], later[0], atol=1e-12)
        np.testing.assert_allclose(now[1], later[1], atol=1e-12)
        np.testing.assert_allclose(now[0], path_pose(PATH, 1.0 + phase)[0], atol=1e-12)


def test_paths_of_many_actors_do_not_mix() -> None:
    table = PathTable()
    short = (Waypoint(0.0, (1.0, 2.0, 3.0)),)
    index = [table.add(PATH, False, "a"), table.add(short, False, "b"), table.add(PATH, True, "c"), table.add(PATH, False, "d")]
    assert index == [0, 1, 2, 0]
    time = np.linspace(-2.0, 9.0, 23)
    for path, points, repeat in ((0, PATH, False), (1, short, False), (2, PATH, True)):
        together = table.pose(np.full(len(time), path, np.int32), time)
        alone = [path_pose(points, t, repeat) for t in time]
        np.testing.assert_array_equal(together[0], [p for p, _ in alone])
        np.testing.assert_array_equal(together[1], [q for _, q in alone])


def test_a_drift_solves_the_equation_of_motion_and_composes() -> None:
    rng = np.random.default_rng(3)
    position, velocity, rate = rng.normal(size=(3, 5, 3))
    attitude = frames.normalize(rng.normal(size=(5, 4)))
    duration = rng.uniform(0.1, 3.0, 5)
    where, turned = drifted(position, attitude, velocity, rate, duration)
    # dq/dt = (w, 0) q / 2 by 2,000 steps of RK4: its error is far below 1e-9.
    q, steps = attitude.copy(), 2000
    h = (duration / steps)[:, None]
    pure = np.concatenate((rate, np.zeros((5, 1))), axis=1)

    def slope(value: np.ndarray) -> np.ndarray:
        return 0.5 * frames.multiply(pure, value)

    for _ in range(steps):
        k1 = slope(q)
        k2 = slope(q + 0.5 * h * k1)
        k3 = slope(q + 0.5 * h * k2)
        q = q + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(q + h * k3))
    np.testing.assert_allclose(turned, q, atol=1e-9)
    np.testing.assert_allclose(where, position + velocity * duration[:, None], atol=1e-14)
    half = drifted(position, attitude, velocity, rate, 0.3 * duration)
    rest = drifted(*half, velocity, rate, 0.7 * duration)
    np.testing.assert_allclose(rest[0], where, atol=1e-14)
    np.testing.assert_allclose(rest[1], turned, atol=1e-14)


@pytest.mark.parametrize(
    ("actor", "says"),
    [
        (Actor("a", (), "scripted"), "path is empty"),
        (Actor("a", (), "scripted", path=(PATH[1], PATH[0])), "times do not rise"),
        (Actor("a", (), "scripted", path=(Waypoint(0.0, (np.nan, 0.0, 0.0)),)), "not finite"),
        (Actor("a", (), "velocity", velocity=(np.inf, 0.0, 0.0)), "not finite"),
        (Actor("a", (), attitude=(0.0, 0.0, 0.0, 2.0)), "length 1"),
        (Actor("a", (), "flying"), "'scripted', 'velocity' or 'external'"),  # type: ignore[arg-type]
        (Actor("", ()), "needs a name"),
    ],
)
def test_what_cannot_move_is_refused(actor: Actor, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        actor_table(Scene("s", actors=(actor,)), PathTable())


# ---- joints


def arm(clips: dict[str, Clip] | None = None) -> Skeleton:
    """Two joints, one metre apart along x; the second's frame is turned."""
    position = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], np.float32)
    attitude = np.array([[0.0, 0.0, 0.0, 1.0], QUARTER], np.float32)
    bare = Skeleton(
        ("upper", "lower"),
        np.array([-1, 0], np.int32),
        position,
        attitude,
        np.ones((2, 3), np.float32),
        np.zeros((2, 4, 4), np.float32),
    )
    bare.inverse_bind[:] = np.linalg.inv(joint_matrices(bare)[0])
    return replace(bare, clips=clips or {})


def matrix(position: np.ndarray, attitude: np.ndarray) -> np.ndarray:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = frames.to_matrix(attitude), position
    return made


def test_joints_follow_their_parents() -> None:
    skeleton = arm()
    turns = frames.normalize(np.random.default_rng(1).normal(size=(2, 4)))
    found = joint_matrices(skeleton, "", 0.0, turns[None])[0]
    upper = matrix(skeleton.position[0], turns[0])
    np.testing.assert_allclose(found[0], upper, atol=1e-14)
    np.testing.assert_allclose(found[1], upper @ matrix(skeleton.position[1], turns[1]), atol=1e-14)


def test_tracks_are_linear_step_and_cubic() -> None:
    times = np.array([0.0, 1.0, 3.0], np.float32)

    def cubic(t: np.ndarray) -> np.ndarray:
        return np.stack((t**3 - t, 2.0 * t**2, 1.0 - t), axis=-1)

    def slope(t: np.ndarray) -> np.ndarray:
        return np.stack((3.0 * t**2 - 1.0, 4.0 * t, -np.ones_like(t)), axis=-1)

    keys = times.astype(float)
    hermite = np.stack((slope(keys), cubic(keys), slope(keys)), axis=1).astype(np.float32)
    values = cubic(keys).astype(np.float32)
    at = np.array([0.0, 0.25, 0.99, 1.0, 2.0, 2.9])
    expected = {
        "cubic": cubic(at),  # a Hermite spline is exact for a cubic
        "linear": np.stack([np.interp(at, keys, values[:, k]) for k in range(3)], axis=1),
        "step": values[[0, 0, 0, 1, 1, 1]],
    }
    for kind, wanted in expected.items():
        track = Track(times, hermite if kind == "cubic" else values, kind)  # type: ignore[arg-type]
        skeleton = arm({"clip": Clip(3.0, {1: track})})
        local = np.linalg.inv(joint_matrices(skeleton, "clip", at)[:, 0]) @ joint_matrices(skeleton, "clip", at)[:, 1]
        # Keys are float32: values up to 24 round at 1e-6.
        np.testing.assert_allclose(local[:, :3, 3], wanted, atol=3e-6)
        np.testing.assert_allclose(joint_matrices(skeleton, "clip", at + 6.0), joint_matrices(skeleton, "clip", at), atol=1e-12)


def bar() -> Mesh:
    """A strip along both bones, at a height of one metre."""
    x = np.linspace(0.0, 2.0, 41)
    side = np.array([-0.1, 0.1])
    vertices = np.stack([np.repeat(x, 2), np.tile(side, 41), np.ones(82)], axis=1)
    quads = np.arange(40)[:, None] * 2
    faces = np.concatenate((quads + np.array([0, 2, 3]), quads + np.array([0, 3, 1])))
    return Mesh(vertices, faces, normals=np.tile((0.0, 0.0, 1.0), (82, 1)))


def bound(skeleton: Skeleton, mesh: Mesh, name: str) -> Skeleton:
    weight = np.clip((mesh.vertices[:, 0] - 0.8) / 0.4, 0.0, 1.0)
    weights = np.zeros((len(weight), 4), np.float32)
    weights[:, 0], weights[:, 1] = 1.0 - weight, weight
    joints = np.tile(np.array([0, 1, 0, 0], np.int32), (len(weight), 1))
    return replace(skeleton, joints={name: joints}, weights={name: weights})


def test_skinning_is_the_weighted_sum_over_joints() -> None:
    mesh = bar()
    skeleton = bound(arm(), mesh, "bar")
    rest = skinned_mesh(skeleton, "bar", mesh, joint_matrices(skeleton)[0])
    # Inverse bind matrices are float32.
    np.testing.assert_allclose(rest.vertices, mesh.vertices, atol=1e-6)
    turns = frames.normalize(np.random.default_rng(5).normal(size=(2, 4)))
    matrices = joint_matrices(skeleton, "", 0.0, turns[None])[0]
    moved = skinned_mesh(skeleton, "bar", mesh, matrices)
    for v in range(0, 82, 7):
        point = np.append(mesh.vertices[v], 1.0)
        expected = sum(
            skeleton.weights["bar"][v, k] * (matrices[j] @ skeleton.inverse_bind[j] @ point)
            for k, j in enumerate(skeleton.joints["bar"][v])
        )
        np.testing.assert_allclose(moved.vertices[v], expected[:3], atol=2e-6)
    assert moved.normals is not None
    np.testing.assert_allclose(np.linalg.norm(moved.normals, axis=1), 1.0, atol=1e-6)
    assert moved.faces is mesh.faces or (moved.faces == mesh.faces).all()


def test_a_capsule_is_found_again_from_points_on_it() -> None:
    rng = np.random.default_rng(8)
    n, radius, half = 4000, 0.08, 0.3
    z = rng.uniform(-half - radius, half + radius, n)
    over = np.maximum(np.abs(z) - half, 0.0)
    angle, r = rng.uniform(0.0, 2.0 * np.pi, n), np.sqrt(radius**2 - over**2)
    points = np.stack((r * np.cos(angle), r * np.sin(angle), z), axis=1)
    turn = frames.normalize(rng.normal(size=4))
    capsule, center, attitude = fit_capsule(frames.rotate(turn, points) + np.array([1.0, 2.0, 3.0]))
    # From 4,000 random points: the middle and the radius to a few per cent of the radius, the axis to a degree or two.
    np.testing.assert_allclose(center, (1.0, 2.0, 3.0), atol=0.005)
    assert capsule.radius == pytest.approx(radius, abs=0.004)
    assert capsule.half_length == pytest.approx(half, abs=0.006)
    axis, wanted = frames.rotate(attitude, (0.0, 0.0, 1.0)), frames.rotate(turn, (0.0, 0.0, 1.0))
    assert abs(float(axis @ wanted)) > np.cos(0.03)


def dancer() -> Model:
    mesh = bar()
    swing = frames.from_axis_angle((0.0, 1.0, 0.0), np.array([0.0, -1.2, 0.0])).astype(np.float32)
    clip = Clip(2.0, {}, {0: Track(np.array([0.0, 1.0, 2.0], np.float32), swing)})
    skeleton = bound(arm({"wave": clip}), mesh, "bar")
    return Model({"bar": mesh}, instances=(Instance("bar"),), skeletons={"rig": skeleton})


def test_a_skinned_actor_is_met_as_capsules_that_follow_its_skin() -> None:
    scene = add_actor(Scene("stage"), skinned_actor(dancer(), "dancer", animation="wave"))
    parts = {part.name: part for part in scene.actors[0].parts}
    assert set(parts) == {"skin", "upper", "lower"}
    assert (parts["skin"].visible, parts["skin"].collide) == (False, False)
    assert parts["upper"].visible
    assert parts["upper"].collide
    still = posed(scene, 0.7)
    shown = [item for item in still.instances if item.visible]
    hit = [item for item in still.instances if item.collide]
    assert [item.name for item in shown] == ["dancer/skin"]
    skin = still.shapes[shown[0].shape]
    assert isinstance(skin, Mesh)
    for item in hit:  # the vertices that a bone moves alone lie within its capsule, but for the 5 % it may leave out
        shape = still.shapes[item.shape]
        assert isinstance(shape, Capsule)
        mine = skin.vertices[:32] if item.name == "dancer/upper" else skin.vertices[50:]
        local = frames.rotate_inverse(np.array(item.attitude), mine - np.array(item.position))
        along = np.clip(local[:, 2], -shape.half_length, shape.half_length)
        distance = np.linalg.norm(local - np.stack((0 * along, 0 * along, along), axis=1), axis=1)
        assert np.quantile(distance - shape.radius, 0.9) < 0.03


# ---- the person


@pytest.mark.parametrize("height", [1.2, 1.75, 2.05])
def test_a_person_is_as_tall_as_asked_and_made_of_fifteen_capsules(height: float) -> None:
    scene = add_actor(Scene("s"), person("p", height))
    assert len(scene.actors[0].parts) == 15 == len(PERSON_JOINTS)
    assert {part.semantic for part in scene.actors[0].parts} == {"person"}
    box = scene_box(posed(scene, 0.0))
    assert box is not None
    # Heights of limbs sum up to the height in float32.
    assert box[0][2] == pytest.approx(0.0, abs=2e-3)
    assert box[1][2] == pytest.approx(height, abs=2e-3)


@pytest.mark.parametrize("animation", ["walking", "standing"])
def test_a_person_always_stands_on_the_floor(animation: str) -> None:
    scene = add_actor(Scene("s"), person("p", animation=animation))
    for time in np.linspace(0.0, 5.0, 37):
        still = posed(scene, float(time))
        feet = [item for item in still.instances if "foot" in item.name]
        lowest = min(instance_box(still.shapes[f.shape], f.position, f.attitude, f.scale)[0][2] for f in feet)
        # Between its 32 keys per cycle the clip is interpolated: a chord of the feet's arcs, below 2 mm.
        assert abs(lowest) < 2e-3


@given(st.floats(-3.0, 3.0))
def test_left_does_half_a_cycle_later_what_right_does(phase: float) -> None:
    now, later = walking_angles([phase]), walking_angles([phase + 0.5])
    for name, angle in now.items():
        if name.endswith("_left"):
            np.testing.assert_allclose(angle, later[name.replace("_left", "_right")], atol=1e-12)
    for name, angle in standing_angles([phase]).items():
        np.testing.assert_allclose(angle, standing_angles([phase + 1.0])[name], atol=1e-12)


def test_knees_and_elbows_bend_one_way_only() -> None:
    angles = walking_angles(np.linspace(0.0, 1.0, 200))
    assert min(angles["lower_leg_left"].min(), angles["lower_leg_right"].min()) > 0.0
    assert max(angles["lower_arm_left"].max(), angles["lower_arm_right"].max()) < 0.0


def test_a_walk_has_its_speed_and_heads_forward() -> None:
    points = [(0.0, 0.0, 0.0), (4.0, 0.0, 0.0), (4.0, 3.0, 0.0)]
    path = walk_path(points, 1.6, closed=True)
    time = np.linspace(0.0, path[-1].time, 2001)
    position, attitude = path_pose(path, time)
    step = np.diff(position, axis=0) / np.diff(time)[:, None]
    speed = np.linalg.norm(step, axis=1)
    assert speed.max() == pytest.approx(1.6, rel=1e-9)
    moving = speed > 1.59
    heading = frames.rotate(attitude[:-1], (1.0, 0.0, 0.0))
    along = np.sum(heading * step, axis=1) / np.maximum(speed, 1e-12)
    assert along[moving].min() > 1.0 - 1e-9
    np.testing.assert_allclose(path_pose(path, path[-1].time, True)[0], points[0], atol=1e-12)


@pytest.mark.parametrize("arguments", [{"height": 0.1}, {"height": np.nan}, {"speed": 0.0}])
def test_an_impossible_person_is_refused(arguments: dict) -> None:
    with pytest.raises(AirworthyError, match="expected"):
        person("p", **arguments)


def test_an_actor_of_the_scenes_own_shapes_is_added_as_it_is() -> None:
    place = Scene("s", {"ball": Sphere(0.3)})
    made = add_actor(place, Actor("a", (Instance("ball"),)))
    assert [actor.name for actor in made.actors] == ["a"]
    with pytest.raises(AirworthyError, match=r"Unknown shape 'bell'.*ActorKit\(actor, shapes=\{'bell': \.\.\.\}\)"):
        add_actor(place, Actor("a", (Instance("bell"),)))
    with pytest.raises(AirworthyError, match=r"Unknown material 'red'.*materials="):
        add_actor(place, Actor("a", (Instance("ball", materials=("red",)),)))
    with pytest.raises(AirworthyError, match="an Actor, or an ActorKit"):
        add_actor(place, "a")  # type: ignore[arg-type]
