"""Corners of race gates in images: of drawn gates to parts of a pixel, of rendered ones to one, none of what is no gate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayU8
from airworthy.optics import Pinhole, to_8bit
from airworthy.race import GateFilter, load_race, race_briefing, race_class
from airworthy.race.courses import course_of
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.vision.holes import TUBE, around, visible_corners
from airworthy.race.vision.naming import PIXEL_SIGMA, expected_openings, named, seen_gates
from airworthy.race.vision.openings import Opening, _line, find_openings, orange
from airworthy.rendering.images import render
from airworthy.scenes import SceneBatch, scene
from airworthy.scenes.generators.halls import race_hall
from airworthy.sensors import device

RACE = load_race("alphapilot")
WIDTH, HEIGHT = 1024, 768
COLOUR, WALL = (235, 150, 60), (120, 130, 150)


def within(ring: Array, points: Array) -> Array:
    """Which points lie within a convex ring, by the sides of its edges, (n,)."""
    step = np.roll(ring, -1, axis=0) - ring
    away = points[:, None] - ring
    side = step[:, 0] * away[..., 1] - step[:, 1] * away[..., 0]
    return np.all(side > 0.0, axis=1) | np.all(side < 0.0, axis=1)


def drawn(*gates: tuple[Array, float]) -> ArrayU8:
    """A picture of tubes around openings: pixels whose middle lies in the opening grown about its middle, but not in it."""
    image = np.full((HEIGHT, WIDTH, 3), WALL, np.uint8)
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    points = np.stack([x.ravel(), y.ravel()], 1)
    for ring, growth in gates:
        middle = ring.mean(axis=0)
        tube = within(middle + growth * (ring - middle), points) & ~within(ring, points)
        image[tube.reshape(HEIGHT, WIDTH)] = COLOUR
    return image


def farthest(found: Array, ring: Array) -> float:
    """Largest distance of corners from those of a ring that begins anywhere and leads round either way [px]."""
    orders = [np.roll(ring[::turn], start, axis=0) for turn in (1, -1) for start in range(len(ring))]
    return min(float(np.linalg.norm(found - order, axis=1).max()) for order in orders)


def quad(size: float, rng: np.random.Generator) -> Array:
    """A turned, slightly skewed square within the picture."""
    turn = rng.uniform(0.0, np.pi)
    ring = size * np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]) * rng.uniform(0.6, 1.0, 2)
    ring += rng.uniform(-0.06, 0.06, (4, 2)) * size
    ring = ring @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return ring + rng.uniform((300.0, 300.0), (700.0, 450.0))


@pytest.mark.parametrize("size", [40.0, *(pytest.param(size, marks=pytest.mark.slow) for size in (120.0, 400.0))])
def test_corners_of_a_drawn_opening_are_found_to_parts_of_a_pixel(size: float) -> None:
    # A side of n crossings, each even within half a pixel, is off by 2 x 0.29 / sqrt(n) at its ends, a corner by that of two
    # sides; the shortest side is 0.6 of the size less 12 % at its ends. 3.5 deviations: 64 corners are looked at.
    most = 3.5 * np.sqrt(2.0) * 2.0 * 0.29 / np.sqrt(0.88 * 0.6 * size)
    rng = np.random.default_rng(int(size))
    for _ in range(8):
        ring = quad(size, rng)
        openings = [item for item in find_openings(drawn((ring, 1.3))) if item.whole]
        assert len(openings) == 1
        assert farthest(openings[0].corners, ring) < most


@pytest.mark.parametrize(("share", "found"), [(0.95, True), (0.75, False)])
def test_a_side_is_one_where_most_of_its_rows_have_their_point(share: float, found: bool) -> None:
    rows = np.arange(100.0, 200.0)
    rows = rows[np.random.default_rng(2).permutation(len(rows)) < share * len(rows)]
    upright = np.column_stack([50.0 + 0.1 * (rows - 100.0), rows])
    side = _line(np.array([50.0, 100.0]), np.array([60.0, 200.0]), upright, np.zeros((0, 2)))
    assert (side is not None) is found
    if side is not None:
        np.testing.assert_allclose(upright @ side[0], side[1], atol=1e-6)


def test_an_opening_behind_a_pillar_is_none() -> None:
    ring = quad(200.0, np.random.default_rng(3))
    image = drawn((ring, 1.3))
    # Wider than the tube and across it: what is enclosed has no straight sides any more.
    middle = ring.mean(axis=0).astype(int)
    for dark in (slice(middle[0] - 15, middle[0] + 15), slice(middle[0] - 140, middle[0] - 20)):
        hidden = image.copy()
        hidden[:, dark] = WALL
        assert not find_openings(hidden)
    assert find_openings(image)


def test_corners_outside_the_picture_are_not_told_and_those_inside_are() -> None:
    ring = np.array([(-60.0, 200.0), (240.0, 180.0), (250.0, 500.0), (-50.0, 510.0)])
    (opening,) = [item for item in find_openings(drawn((ring, 1.3))) if len(item.corners) == 2]
    assert not opening.whole
    assert np.linalg.norm(opening.corners - ring[1:3], axis=1).max() < 0.3


def test_a_gate_seen_through_another_leaves_both() -> None:
    outer = np.array([(300.0, 200.0), (700.0, 210.0), (690.0, 600.0), (310.0, 590.0)])
    inner = 470.0 + np.array([(0.0, -70.0), (60.0, -65.0), (60.0, 0.0), (0.0, 0.0)])
    found = find_openings(drawn((outer, 1.3), (inner, 1.3)))
    assert sorted(min(farthest(item.corners, ring) for ring in (outer, inner)) < 0.3 for item in found) == [True, True]


def test_a_gate_whose_tube_meets_the_edge_of_a_nearer_opening_leaves_that_whole() -> None:
    near = np.array([(300.0, 200.0), (700.0, 210.0), (690.0, 600.0), (310.0, 590.0)])
    far = np.array([(520.0, 330.0), (840.0, 320.0), (840.0, 500.0), (520.0, 490.0)])
    image = drawn((far, 1.03))  # some 3 px, where the nearer one has 50
    front = drawn((near, 1.3))
    image = np.where(orange(front)[..., None], front, image)
    assert min(farthest(item.corners, near) for item in find_openings(image) if item.whole) < 0.3


@pytest.mark.parametrize("across", [2, 4, 6])
def test_a_thin_tube_right_across_an_opening_moves_no_corner(across: int) -> None:
    """It is taken away by squares of 3, 5 and 8 px, after which thicker tubes are where they were."""
    ring = np.array([(300.0, 200.0), (700.0, 210.0), (690.0, 600.0), (310.0, 590.0)])
    image = drawn((ring, 1.3))
    (alone,) = find_openings(image)
    image[400 : 400 + across, 290:710] = COLOUR
    found = [item for item in find_openings(image) if farthest(item.corners, ring) < 5.0]
    assert len(found) == 1
    assert farthest(found[0].corners, alone.corners) < 0.1


@pytest.mark.parametrize("aside", [0.0, 30.0, 60.0, -60.0])
def test_visible_corners_bound_what_rays_through_both_faces_see(aside: float) -> None:
    """By rays: a pixel sees through where its ray meets both faces' planes within their openings."""
    rng = np.random.default_rng(5)
    focal, center = np.array([548.4, 548.4]), np.array([512.0, 384.0])
    turn = frames.to_matrix(frames.from_euler(0.1, np.radians(aside), 0.05))
    flat = np.array([(-0.9, -0.6, 0.0), (0.9, -0.6, 0.0), (0.9, 0.6, 0.0), (-0.9, 0.6, 0.0)])
    middle, normal = np.array([0.4, -0.3, 4.0]), turn[:, 2]
    corners = flat @ turn.T + middle
    hole = visible_corners(corners, normal, focal, center)
    pixels = rng.uniform(hole.min(0) - 30.0, hole.max(0) + 30.0, (4000, 2))
    rays = np.column_stack([(pixels - center) / focal, np.ones(len(pixels))])
    through = np.ones(len(pixels), bool)
    for face in (-0.5 * TUBE, 0.5 * TUBE):
        origin = middle + face * normal
        points = rays * (origin @ normal / (rays @ normal))[:, None] - origin
        local = points @ turn
        through &= (np.abs(local[:, 0]) < 0.9) & (np.abs(local[:, 1]) < 0.6)
    assert np.array_equal(through, within(hole, pixels))


def test_thickness_is_that_of_the_hall_and_nothing_is_seen_along_a_gate() -> None:
    assert TUBE == race_hall.TUBE
    flat = np.array([(-0.1, -0.6, 0.0), (0.1, -0.6, 0.0), (0.1, 0.6, 0.0), (-0.1, 0.6, 0.0)])
    turn = frames.to_matrix(frames.from_euler(0.0, np.radians(75.0), 0.0))
    away = np.array([0.0, 0.0, 4.0])
    # 0.2 m wide and 0.15 m deep: from 75 degrees aside one looks at its inner side.
    assert np.isnan(visible_corners(flat @ turn.T + away, turn[:, 2], np.full(2, 548.4), np.array([512.0, 384.0]))).all()
    # Of a gate that is being passed the corners ahead are known, by the same numbers as if all were.
    flat *= 10.0
    turn = frames.to_matrix(frames.from_euler(0.0, np.radians(50.0), 0.0))
    near, far = (
        visible_corners(flat @ turn.T + [0.0, 0.0, z], turn[:, 2], np.full(2, 548.4), np.array([512.0, 384.0]))
        for z in (0.5, 9.0)
    )
    assert np.isfinite(far).all()
    assert np.isfinite(near).all(1).tolist() == [bool(z > 0.3) for z in (flat @ turn.T)[:, 2] + 0.5]


def lens() -> Pinhole:
    projection = device("flightgoggles_camera").projection
    assert isinstance(projection, Pinhole)
    return projection


def pictured(batch: SceneBatch, position: Array, attitude: Array) -> ArrayU8:
    out = render(
        batch, lens().rays(), position[None], frames.camera_attitude(attitude[None]), np.array([0]), ("rgb",), projection=lens()
    )
    return np.asarray(to_8bit(np.asarray(out["rgb"]))[0])


@pytest.fixture(scope="module")
def hall() -> SceneBatch:
    return SceneBatch([scene("alphapilot:published/3")])


# Gates with nothing orange behind them and no pillar before them, seen against their direction of flight or along it.
@pytest.mark.parametrize(
    ("name", "distance", "aside"),
    [("Gate10", 5.0, 60.0), ("Gate23", 5.0, 30.0), ("Gate23", 20.0, 30.0), ("Gate6", 5.0, -60.0), ("Gate15", 10.0, 60.0)],
)  # fmt: skip
def test_corners_of_a_rendered_gate_are_within_a_pixel(hall: SceneBatch, name: str, distance: float, aside: float) -> None:
    shape = gate_shape(course_of(RACE, "published/3").gate(name))
    way = frames.rotate(frames.from_euler(0.0, 0.0, np.radians(aside)), shape.normal)
    position = shape.center - distance * way
    attitude = frames.from_euler(0.2, 0.1, float(np.arctan2(way[1], way[0])))
    camera = frames.camera_attitude(attitude)
    order = around(shape.corners)
    local = frames.rotate_inverse(camera, shape.corners[order] - position)
    focal, center = np.array([lens().fx, lens().fy]), np.array([lens().cx, lens().cy])
    hole = visible_corners(local, frames.rotate_inverse(camera, shape.normal), focal, center)
    found = [item for item in find_openings(pictured(hall, position, attitude)) if item.whole]
    assert min(farthest(item.corners, hole) for item in found) < 1.0


def test_gates_seen_from_the_start_are_named_where_they_are(hall: SceneBatch) -> None:
    briefing = race_briefing(RACE, race_class("noisy"))
    gates = GateFilter(briefing)
    state = gates.begin(1)
    position = np.array(RACE.start.position)
    attitude = frames.from_euler(0.0, 0.0, np.radians(RACE.start.yaw_deg))
    frame = seen_gates(briefing, state.now, gates.gates_at, 0.0, pictured(hall, position, attitude))
    seen = np.isfinite(frame.pixel[0]).all(-1)
    assert np.count_nonzero(seen.all(1)) >= 3
    course = course_of(RACE, "published/3")
    for gate in np.flatnonzero(seen.any(1)):
        corners = gate_shape(course.gate(briefing.gates[gate])).corners
        true, _ = lens().project(frames.rotate_inverse(frames.camera_attitude(attitude), corners - position))
        # In the mid plane, as beacons are. Half a pixel of a level side, which all its columns share, and the thickness: of up
        # to 4 px at 60 degrees aside, for a gate that may stand a quarter nearer or farther than it is expected.
        assert np.linalg.norm(frame.pixel[0, gate] - true, axis=1)[seen[gate]].max() < 2.0, briefing.gates[gate]


def test_what_fits_two_gates_or_none_is_left_out() -> None:
    briefing = race_briefing(RACE, race_class("noisy"))
    gates = GateFilter(briefing)
    expected = expected_openings(briefing, gates.begin(1).now, gates.gates_at)
    first = expected[0]
    right = Opening(first.corners[::-1], 20.0)
    pixel = named([right], expected, len(briefing.gates))
    assert np.allclose(pixel[first.gate, first.order], first.corners + first.hidden)
    assert np.count_nonzero(np.isfinite(pixel[..., 0])) == 4
    # Twice the size is no gate of this course; the same twice is not told apart.
    middle = first.corners.mean(axis=0)
    assert np.isnan(named([Opening(middle + 2.0 * (first.corners - middle), 40.0)], expected, 11)).all()
    assert np.isnan(named([right, right], expected, 11)).all()
    assert np.isnan(named([], expected, 11)).all()


def test_a_gate_that_is_first_seen_from_near_and_stands_far_beside_its_place_is_named() -> None:
    """Slopes at where it was expected do not hold there: it is nearer by a quarter, and so larger."""
    briefing = race_briefing(RACE, race_class("noisy"))
    gates = GateFilter(briefing)
    begun = gates.begin(1).now
    gate = briefing.gates.index("Gate1")
    shift = 0.8 * briefing.bound[gate] * [-1.0, 1.0, 1.0]
    position = briefing.corners[gate].mean(axis=0) - 7.0 * briefing.normal[gate]
    attitude = frames.from_euler(0.0, 0.0, float(np.arctan2(briefing.normal[gate][1], briefing.normal[gate][0])))
    motion = replace(begun.motion, position=position[None], attitude=attitude[None])
    true = begun.gates.copy()
    true[0, gate] = shift
    seen, believed = (
        next(
            x for x in expected_openings(briefing, replace(begun, motion=motion, gates=given), gates.gates_at) if x.gate == gate
        )
        for given in (true, begun.gates)
    )
    assert np.linalg.norm(seen.corners - believed.corners, axis=1).min() > 50.0
    pixel = named([Opening(seen.corners, 100.0)], [believed], len(briefing.gates))
    hidden, corners = np.zeros((4, 2)), np.zeros((4, 2))
    hidden[believed.order], corners[seen.order] = believed.hidden, seen.corners
    assert np.allclose(pixel[gate], corners + hidden)


@pytest.mark.parametrize("distance", [0.6, 4.0])
@pytest.mark.parametrize("along", ["x", "y"])
def test_what_slopes_leave_out_of_a_gate_follows_from_how_well_its_distance_is_known(distance: float, along: str) -> None:
    """Its share of the distance squared of the opening's size, and once of the tube's; nearer than 1 m counts as 1 m."""
    briefing = race_briefing(RACE, race_class("noisy"))
    gates = GateFilter(briefing)
    begun, gate = gates.begin(1).now, briefing.gates.index("Gate1")
    normal = briefing.normal[gate]
    heading = frames.from_euler(0.0, 0.0, float(np.arctan2(normal[1], normal[0])))
    # Aside, so that the tube hides something.
    aside = frames.rotate(heading, np.array([-distance, 0.3, 0.1]))
    motion = replace(begun.motion, position=(briefing.corners[gate].mean(axis=0) + aside)[None], attitude=heading[None])
    first = gates.gates_at + 3 * gate
    covariance, places = np.zeros_like(begun.covariance), (0, first) if along == "x" else (1, first + 1)
    covariance[0, places, places] = 0.0025, 0.0064
    # Less along the other axis, and nothing in what says nothing of distances.
    for other in (0, 1, first, first + 1):
        covariance[0, other, other] = covariance[0, other, other] or 0.0001
    covariance[0, first + 2, first + 2] = covariance[0, 2, 2] = 0.0
    belief = replace(begun, motion=motion, covariance=covariance)
    item = next(x for x in expected_openings(briefing, belief, gates.gates_at) if x.gate == gate)
    share = np.sqrt(0.0025 + 0.0064) / max(distance, 1.0)
    known = np.isfinite(item.corners[:, 0])
    size = np.ptp(item.corners[known], axis=0).max()
    left_out = share**2 * size + share * np.abs(item.hidden[known]).max()
    # A step of the gate is one of the vehicle the other way: of eight directions along two something moves.
    spread = np.linalg.eigvalsh(item.spread)
    np.testing.assert_allclose(spread[:6], PIXEL_SIGMA**2 + left_out**2, rtol=1e-6)
    assert spread[6] > 1.001 * spread[0]


def test_dark_gates_crates_and_lanes_are_not_orange() -> None:
    others = np.array([[(41, 46, 54), (200, 160, 70), (150, 70, 60), (215, 190, 60), (255, 255, 255)]], np.uint8)
    assert not orange(others).any()
    assert orange(np.array([[COLOUR, (175, 112, 40), (253, 215, 190)]], np.uint8)).all()
