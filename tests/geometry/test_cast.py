"""Rays against closed forms, every channel, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.geometry import (
    CHANNELS,
    Box,
    Capsule,
    Cylinder,
    GeometryBatch,
    Mesh,
    Placement,
    RayTable,
    Shape,
    Sphere,
    cast,
    interpolate,
    occluded,
    twins,
)
from airworthy.geometry.placement import POSITION_LIMIT

LEVEL = (0.0, 0.0, 0.0, 1.0)
FORWARD = (-0.5, 0.5, -0.5, 0.5)
"""Camera (x right, y down, z forward) that looks along world x."""
DEPTH_TOLERANCE = 1e-4
"""[m] at 10 m: the figure the engine promises; single precision itself keeps about 1e-6 there."""
ALL = tuple(CHANNELS)


def pinhole(height: int = 48, width: int = 64, tangent: float = 1.0) -> RayTable:
    """A camera whose half width is seen under the given tangent."""
    x = (np.arange(width) + 0.5 - width / 2) / (width / 2) * tangent
    y = (np.arange(height) + 0.5 - height / 2) / (width / 2) * tangent
    u, v = np.meshgrid(x, y)
    return RayTable(np.stack([u, v, np.ones_like(u)], -1))


def one(shape: Shape, position: Any = (10.0, 0.0, 0.0), attitude: Any = LEVEL, scale: float = 1.0) -> GeometryBatch:
    return GeometryBatch([shape], [Placement.of([0], [position], [attitude], scale)])


def world_directions(table: RayTable) -> Array:
    d = table.directions
    return np.stack([d[..., 2], -d[..., 0], -d[..., 1]], -1)


def single(batch: GeometryBatch, start: Any, direction: Any, **options: Any) -> dict[str, Any]:
    hits = cast(batch, RayTable([[direction]]), [start], [LEVEL], channels=ALL, **options)
    return {name: value[0, 0, 0] for name, value in hits.items()}


# ---- closed forms ----------------------------------------------------------------------------------------------------


def test_depth_of_a_sphere_is_the_quadratics_root() -> None:
    table, centre, radius = pinhole(), np.array([10.0, 0.4, -0.3]), 2.5
    hits = cast(one(Sphere(radius), centre), table, [[0, 0, 0]], [FORWARD], channels=("range", "depth"))
    d = world_directions(table)
    middle = d @ centre
    room = radius**2 - (centre @ centre - middle**2)
    expected = np.where(room >= 0, middle - np.sqrt(np.maximum(room, 0)), np.inf)
    inside = np.abs(room) > 1e-3  # the band of the silhouette, where the root has no slope
    met = inside & (room > 0)
    assert met.sum() > 100
    np.testing.assert_allclose(hits["range"][0][met], expected[met], atol=DEPTH_TOLERANCE, rtol=0)
    np.testing.assert_allclose(hits["depth"][0][met], (expected * d[..., 0])[met], atol=DEPTH_TOLERANCE, rtol=0)
    assert np.isinf(hits["range"][0][inside & (room < 0)]).all()


def test_depth_of_a_wall_and_of_a_plane_of_two_triangles_is_constant() -> None:
    corners = np.array([[0, -50, -50], [0, 50, -50], [0, 50, 50], [0, -50, 50]], np.float32)
    for batch in (one(Box((0.5, 50, 50)), (10.5, 0, 0)), one(Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]])))):
        hits = cast(batch, pinhole(), [[0, 0, 0]], [FORWARD], channels=ALL)
        np.testing.assert_allclose(hits["depth"], 10.0, atol=5e-6)
        np.testing.assert_allclose(hits["point_sensor"][..., 2], 10.0, atol=5e-6)
        np.testing.assert_allclose(hits["normal_world"], np.broadcast_to([-1.0, 0, 0], hits["normal_world"].shape), atol=1e-6)
        np.testing.assert_allclose(hits["normal_sensor"], np.broadcast_to([0, 0, -1.0], hits["normal_world"].shape), atol=1e-6)


def distance_to(shape: Shape, p: Array) -> Array:
    """Signed distance of points (n, 3), in double precision."""
    if isinstance(shape, Box):
        q = np.abs(p) - shape.half_size
        return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)
    if isinstance(shape, Sphere):
        return np.linalg.norm(p, axis=1) - shape.radius
    if isinstance(shape, Capsule):
        inside = np.clip(p[:, 2], -shape.half_length, shape.half_length)
        return np.linalg.norm(p - np.stack([0 * inside, 0 * inside, inside], 1), axis=1) - shape.radius
    assert isinstance(shape, Cylinder)
    q = np.stack([np.hypot(p[:, 0], p[:, 1]) - shape.radius, np.abs(p[:, 2]) - shape.half_length], 1)
    return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)


SOLIDS: list[Shape] = [Box((0.6, 0.9, 1.3)), Sphere(1.1), Cylinder(0.7, 1.2), Capsule(0.6, 0.9)]


@pytest.mark.parametrize("shape", SOLIDS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("inside", [False, True])
def test_solids_are_met_on_their_surface_and_first(shape: Shape, inside: bool) -> None:
    """Against signed distances: the point met lies on the surface, nothing lies before it, and what misses stays outside."""
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(20, 30, 3))
    start = np.array([0.1, -0.2, 0.3]) if inside else np.array([-3.0, 1.0, 0.5])
    attitude = rng.normal(size=4)
    batch = GeometryBatch([shape], [Placement.of([0], [[5.0, -4.0, 2.0]], [attitude], 1.7)])
    place = batch.layout(0)
    turn = _matrix(place.attitude[0])
    world = place.position[0] + turn @ (1.7 * start)
    if not inside:  # towards the shape, most of them
        directions = (place.position[0] - world) / 4 + 0.5 * rng.normal(size=(20, 30, 3))
    hits = cast(batch, RayTable(directions), [world], [LEVEL], channels=ALL)
    t = hits["range"][0].reshape(-1).astype(float)
    d = RayTable(directions).directions.reshape(-1, 3)
    met = np.isfinite(t)
    assert met.all() if inside else 50 < met.sum() < 600
    local = (world + t[met, None] * d[met] - place.position[0]) @ turn / 1.7
    # Rounding at 6 m, over the cosine of a grazing ray: the worst lies on the surface to 2e-5.
    assert np.abs(distance_to(shape, local)).max() < 2e-5
    np.testing.assert_allclose(hits["local_point"][0].reshape(-1, 3)[met], local, atol=1e-5)
    for share in (0.02, 0.3, 0.6, 0.9, 0.99):
        before = (world + share * t[met, None] * d[met] - place.position[0]) @ turn / 1.7
        signed = distance_to(shape, before)
        assert (signed < 1e-5).all() if inside else (signed > -1e-5).all()
    for far in np.linspace(0.5, 20, 60):
        assert (distance_to(shape, (world + far * d[~met] - place.position[0]) @ turn / 1.7) > -1e-3).all()
    n = hits["normal_world"][0].reshape(-1, 3)[met]
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1e-6)
    assert (np.sum(n * d[met], 1) <= 1e-6).all()
    out = (-1 if inside else 1) * (n @ turn)
    # One step along the normal changes the distance by as much, away from edges.
    step = distance_to(shape, local + 1e-4 * out) - distance_to(shape, local)
    assert np.mean(np.abs(step - 1e-4) < 2e-6) > 0.97


def _matrix(q: Array) -> Array:
    x, y, z, w = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [-1, 1])
def test_faces_of_a_box_and_a_cylinder_have_the_stated_numbers(axis: int, sign: int) -> None:
    start, towards = np.zeros(3), np.zeros(3)
    start[axis], towards[axis] = 5.0 * sign, -sign
    hit = single(one(Box((1.0, 2.0, 3.0)), (0, 0, 0)), start, towards)
    assert hit["face"] == 2 * axis + (sign > 0)
    assert hit["range"] == 5.0 - (1.0, 2.0, 3.0)[axis]
    leaving = single(one(Box((1.0, 2.0, 3.0)), (0, 0, 0)), (0, 0, 0), -towards)
    assert leaving["face"] == 2 * axis + (sign > 0)
    side = single(one(Cylinder(1.0, 2.0), (0, 0, 0)), start, towards)
    assert side["face"] == (0 if axis < 2 else (2 if sign > 0 else 1))


@given(st.floats(-3, 3), st.floats(-3, 3), st.sampled_from([0, 1, 2]))
def test_rays_along_an_axis_meet_a_box_exactly_where_they_should(a: float, b: float, axis: int) -> None:
    """Zero components of the direction: no NaN, no miss."""
    start = np.insert(np.array([a, b]), axis, -4.0)
    towards = np.zeros(3)
    towards[axis] = 1.0
    hit = single(one(Box((1.0, 1.0, 1.0)), (0, 0, 0)), start, towards)
    wide = max(abs(a), abs(b))
    if abs(wide - 1.0) > 1e-5:  # on the edge itself either answer is right
        assert np.isfinite(hit["range"]) == (wide < 1.0)


# ---- far away --------------------------------------------------------------------------------------------------------


def test_depth_keeps_its_digits_far_from_the_origin() -> None:
    """At 5 km a single-precision position is 0.5 mm coarse; the difference to the camera is not."""
    far = np.array([5000.123456, -3000.654321, 100.111111])
    mesh = Mesh(np.array([[0, -5, -5], [0, 5, -5], [0, 0, 5]], np.float32), np.array([[0, 1, 2]]))
    for shape in (Box((1.0, 2.0, 2.0)), Sphere(2.0), mesh):
        near = cast(one(shape), pinhole(), [[0, 0, 0]], [FORWARD], channels=("depth", "instance"))
        away = cast(one(shape, far + np.array([10.0, 0, 0])), pinhole(), [far], [FORWARD], channels=("depth", "instance"))
        same = near["instance"] == away["instance"]
        assert same.mean() > 0.995  # the silhouette's band
        both = same & (near["instance"] >= 0)
        np.testing.assert_allclose(near["depth"][both], away["depth"][both], atol=DEPTH_TOLERANCE, rtol=0)


# ---- channels and options --------------------------------------------------------------------------------------------


def test_what_misses_says_so_in_every_channel() -> None:
    hit = single(one(Sphere(1.0)), (0, 0, 0), (-1, 0, 0))
    assert hit["range"] == hit["depth"] == np.inf
    assert hit["instance"] == hit["face"] == -1
    assert hit["instance_id"] == hit["semantic_id"] == -2
    for name in ("point_world", "point_sensor", "local_point", "normal_world", "normal_sensor"):
        assert np.isnan(hit[name]).all()


def test_channels_asked_for_alone_are_those_asked_for_together() -> None:
    batch = GeometryBatch([Sphere(1.0), Box((1, 1, 1))], [Placement.of([0, 1], [[6, 0, 0], [7, 2, 0]], semantic_id=[5, 6])])
    together = cast(batch, pinhole(), [[0, 0, 0]], [FORWARD], channels=ALL)
    for name, value in together.items():
        alone = cast(batch, pinhole(), [[0, 0, 0]], [FORWARD], channels=(name,))
        assert list(alone) == [name]
        assert alone[name].tobytes() == value.tobytes()
    met = together["instance"] >= 0
    assert set(together["instance_id"][met]) == {100, 101}
    np.testing.assert_array_equal(together["semantic_id"][met], together["instance"][met] + 5)
    world = together["range"][..., None] * world_directions(pinhole())
    np.testing.assert_allclose(together["point_world"][met], world[met], atol=1e-5)


def test_ignored_and_invisible_instances_are_not_seen_and_the_range_is_limited() -> None:
    place = {"shape": [0, 0, 0], "position": [[5, 0, 0], [10, 0, 0], [15, 0, 0]]}
    batch = GeometryBatch([Sphere(1.0)], [Placement.of(**place, visible=[True, True, False])])
    assert single(batch, (0, 0, 0), (1, 0, 0))["instance"] == 0
    assert single(batch, (0, 0, 0), (1, 0, 0), ignore=0)["instance"] == 1
    assert single(batch, (7, 0, 0), (1, 0, 0), ignore=1)["instance"] == -1
    assert single(batch, (0, 0, 0), (1, 0, 0), max_range=4.001)["instance"] == 0
    assert single(batch, (0, 0, 0), (1, 0, 0), max_range=4.0)["instance"] == -1


def test_of_equally_near_things_the_smaller_instance_and_face_is_met() -> None:
    for order in ([0, 1], [1, 0]):
        shapes = [Box((1, 1, 1)), Box((1, 2, 2))]
        batch = GeometryBatch(shapes, [Placement.of(order, [[5, 0, 0], [5, 0, 0]])])
        assert single(batch, (0, 0, 0), (1, 0, 0))["instance"] == 0
    corners = np.array([[0, -1, -1], [0, 1, -1], [0, 0, 1]], np.float32)
    for faces in ([[0, 1, 2]] * 9, [[0, 2, 1], [0, 1, 2]]):
        assert single(one(Mesh(corners, np.array(faces))), (0, 0, 0), (1, 0, 0))["face"] == 0


def test_a_pose_per_column_and_rays_of_their_own_origins_are_single_rays() -> None:
    rng = np.random.default_rng(1)
    shapes: list[Shape] = [Sphere(0.8), Box((0.5, 0.7, 0.9)), Capsule(0.4, 0.8)]
    batch = GeometryBatch(shapes, [Placement.of(np.arange(12) % 3, rng.uniform([4, -4, -3], [9, 4, 3], (12, 3)))])
    table = pinhole(5, 18)
    place, turn = 0.3 * rng.normal(size=(18, 3)), FORWARD + 0.1 * rng.normal(size=(18, 4))
    rolled = cast(batch, table, [], [], channels=ALL, env=[0], column_position=place[None], column_attitude=turn[None])
    for x in range(18):
        column = cast(batch, RayTable(table.directions[:, x : x + 1]), [place[x]], [turn[x]], channels=ALL)
        for name, value in column.items():
            assert value[:, :, 0].tobytes() == np.ascontiguousarray(rolled[name][:, :, x]).tobytes(), name
    offsets = 0.5 * rng.normal(size=(5, 18, 3))
    moved = cast(batch, RayTable(table.directions, offsets), [[0, 0, 0]], [FORWARD], channels=("range", "point_sensor"))
    for y, x in np.ndindex(5, 18):
        start = offsets[y, x][[2, 0, 1]] * [1, -1, -1]
        hit = single(batch, start, table.directions[y, x][[2, 0, 1]] * [1, -1, -1])
        # The same ray, its origin rounded elsewhere.
        np.testing.assert_allclose(moved["range"][0, y, x], hit["range"], atol=1e-4)


def test_segments_are_open_at_both_ends() -> None:
    batch = one(Box((1, 1, 1)), (5, 0, 0))
    start = np.array([[0, 0, 0], [0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 0], [4.5, 0, 0], [1, 1, 1]], float)
    end = np.array([[10, 0, 0], [4, 0, 0], [0, 0, 0], [10, 2, 0], [4.1, 0, 0], [5.5, 0, 0], [1, 1, 1]], float)
    # Through; ends on the face; begins on it; passes; ends inside; wholly inside (nothing stands between); no length.
    np.testing.assert_array_equal(occluded(batch, start, end), [True, False, False, False, True, False, False])
    assert not occluded(batch, start[:1], end[:1], ignore=0).any()
    assert occluded(batch, np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)


def test_segments_pass_through_their_group_and_through_nothing_else() -> None:
    """Against the twin, which sweeps a hair by distances in float64; also of dynamic instances."""
    rng = np.random.default_rng(4)
    shapes: list[Shape] = [Sphere(0.8), Box((0.5, 0.7, 0.9)), Capsule(0.4, 0.8), Cylinder(0.6, 0.7), TRIANGLES]
    count = 30
    place, turn = rng.uniform(-5.0, 5.0, (count, 3)), rng.normal(size=(count, 4))
    kind, group = np.arange(count) % len(shapes), rng.integers(0, 4, count)
    seen = rng.random(count) < 0.9
    placement = Placement.of(kind, place, turn, visible=seen, group=group)
    start, end = rng.uniform(-6.0, 6.0, (400, 3)), rng.uniform(-6.0, 6.0, (400, 3))
    through = rng.integers(0, 4, 400)
    expected = twins.blocked(shapes, placement, start, end, through)
    assert 0.2 < expected.mean() < 0.8
    assert (expected != twins.blocked(shapes, placement, start, end, np.zeros(400, int))).mean() > 0.05
    batch = GeometryBatch(shapes, [placement])
    np.testing.assert_array_equal(occluded(batch, start, end, through=through), expected)
    moving = GeometryBatch(shapes, [Placement.empty()], [0], [placement])
    np.testing.assert_array_equal(occluded(moving, start, end, np.zeros(400, int), through=through), expected)
    # Without groups a number changes nothing, and a group changes nothing where none is asked for.
    plain = GeometryBatch(shapes, [Placement.of(kind, place, turn, visible=seen)])
    np.testing.assert_array_equal(occluded(plain, start, end, through=through), occluded(batch, start, end))
    with pytest.raises(AirworthyError, match="`through` is an array of float64"):
        occluded(batch, start, end, through=np.zeros(400))
    with pytest.raises(AirworthyError, match="group has the number -1"):
        Placement.of([0], group=-1)


TRIANGLES = Mesh(np.array([[0, -1, -1], [0, 1, -1], [0.3, 0, 1], [0.8, 0.2, 0]], np.float32), np.array([[0, 1, 2], [1, 2, 3]]))


def test_vertex_channels_follow_the_surface() -> None:
    corners = np.array([[0, -3, -3], [0, 3, -3], [0, 3, 3], [0, -3, 3]], np.float32)
    mesh = Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]), channels={"height": corners[:, 2], "place": corners})
    hits = cast(one(mesh, (4, 0, 0)), pinhole(), [[0, 0, 0]], [FORWARD], channels=ALL)
    met = hits["instance"] >= 0
    assert met.any()
    assert not met.all()
    place = interpolate(one(mesh), hits, "place")
    np.testing.assert_allclose(place[met], hits["local_point"][met], atol=1e-5)
    np.testing.assert_allclose(interpolate(one(mesh), hits, "height")[met], hits["local_point"][met][:, 2], atol=1e-5)
    assert np.isnan(place[~met]).all()
    assert np.isnan(interpolate(one(Sphere(1.0)), hits, "height")).all()


def test_results_are_written_where_the_caller_says() -> None:
    table, batch = pinhole(), one(Sphere(1.0))
    mine = {"depth": np.zeros((1, 48, 64), np.float32)}
    given = cast(batch, table, [[0, 0, 0]], [FORWARD], out=mine)
    assert given["depth"] is mine["depth"]
    assert np.isfinite(mine["depth"]).any()


# ---- mistakes --------------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "channel": ({"channels": ("dept",)}, "Unknown channel 'dept'. Closest: 'depth'."),
    "sensors": ({"position": [[0, 0, 0]] * 2, "attitude": [LEVEL] * 3}, "expected (c, 3) and (c, 4)"),
    "nan": ({"position": [[np.nan, 0, 0]]}, "not finite"),
    "zero": ({"attitude": [[0, 0, 0, 0]]}, "quaternion that is zero"),
    "range": ({"max_range": 0.0}, "more than 0"),
    "environment": ({"env": [1]}, "expected 0 to 0"),
    "fraction": ({"env": [0.5]}, "expected whole numbers"),
    "columns": ({"column_position": np.zeros((1, 64, 3))}, "needs both"),
    "out": ({"out": {"depth": np.zeros((1, 48, 64))}}, "expected float32"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_one_sentence(name: str) -> None:
    wrong, message = MISTAKES[name]
    asked: dict[str, Any] = {"position": [[0, 0, 0]], "attitude": [FORWARD], **wrong}
    with pytest.raises(AirworthyError) as caught:
        cast(one(Sphere(1.0)), pinhole(), **asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_and_segments_are_checked() -> None:
    with pytest.raises(AirworthyError, match="expected \\(height, width, 3\\)"):
        RayTable(np.zeros((4, 3)))
    with pytest.raises(AirworthyError, match="zero or not finite"):
        RayTable(np.zeros((4, 4, 3)))
    with pytest.raises(AirworthyError, match="expected \\(n, 3\\)"):
        occluded(one(Sphere(1.0)), [0, 0, 0], [1, 0, 0])
    with pytest.raises(AirworthyError, match="instance, face and barycentric"):
        interpolate(one(Sphere(1.0)), {}, "x")


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("which", [0, 1])
def test_segments_end_within_the_limit_of_positions_on_every_side(which: int, axis: int, sign: float) -> None:
    ends = np.zeros((2, 1, 3))
    ends[1 - which, 0, axis] = sign * (POSITION_LIMIT - 1.0)
    ends[which, 0, axis] = sign * POSITION_LIMIT
    occluded(one(Sphere(1.0)), *ends)
    for beyond in (np.nextafter(sign * POSITION_LIMIT, sign * np.inf), sign * np.inf, np.nan):
        ends[which, 0, axis] = beyond
        with pytest.raises(AirworthyError, match="segment's end is not finite or beyond"):
            occluded(one(Sphere(1.0)), *ends)
