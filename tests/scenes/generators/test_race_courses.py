"""Courses of the race by name: the published ones against the organisers' corners, drawn ones, extremes, ranges, mistakes."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.scenes import check_scene, scene, scene_digest
from airworthy.scenes.catalogue import has_named, is_path
from airworthy.scenes.files.scene_file import read_scene, write_scene
from airworthy.scenes.generators.halls import alphapilot, course_frames, course_names, course_shifts, published_shifts
from airworthy.scenes.generators.halls.race_courses import alphapilot_course
from airworthy.scenes.generators.halls.race_hall import TUBE, gate_order, shift_bounds
from airworthy.scenes.record import GateFrame

DIRECTIONS = {
    "Gate10": (0.0, 1.0), "Gate21": (-0.74, 0.67), "Gate2": (0.0, -1.0), "Gate13": (0.0, -1.0), "Gate9": (0.0, -1.0),
    "Gate14": (0.71, -0.71), "Gate1": (1.0, 0.0), "Gate22": (0.71, 0.71), "Gate15": (0.0, 1.0), "Gate23": (0.0, 1.0),
    "Gate6": (0.0, 1.0),
}  # fmt: skip
"""Spec/race 1, to two digits."""


def test_published_courses_have_the_organisers_corners(data_dir: Path) -> None:
    """All 25 x 11 x 4 corners within 0.1 mm (spec/race 2); the perturbations are those of the file."""
    courses = json.loads((data_dir / "flightgoggles" / "alphapilot_courses.json").read_text())["courses"]
    assert len(courses) == len(published_shifts()) == 25
    for number, course in enumerate(courses):
        shifts = course_shifts(f"published/{number}")
        for frame, shift in zip(course_frames(f"published/{number}"), shifts, strict=True):
            gate = course["gates"][frame.name]
            assert shift.tolist() == [gate["dx_m"], gate["dy_m"], gate["dyaw_file_deg"]]
            np.testing.assert_allclose(frame.corners, gate["corners_m"], atol=1e-4)


@pytest.mark.parametrize("name", ["nominal", "published/3", "fresh/7/12"])
def test_gates_say_which_way_how_wide_and_about_what_they_turn(name: str) -> None:
    """Against an independent formula: the direction turned by the course's yaw, sides by the distances of the corners."""
    for frame, shift in zip(course_frames(name), course_shifts(name), strict=True):
        angle = -math.radians(shift[2])
        x, y = DIRECTIONS[frame.name]
        wanted = np.array([math.cos(angle) * x - math.sin(angle) * y, math.sin(angle) * x + math.cos(angle) * y, 0.0])
        assert frame.direction is not None
        through = np.array(frame.direction)
        assert through @ wanted / np.linalg.norm(wanted) > math.cos(math.radians(0.5))  # published to two digits
        assert np.linalg.norm(through) == pytest.approx(1.0, abs=1e-8)
        corners = np.array(frame.corners)
        assert np.ptp(corners @ through) < 2e-4  # in the plane
        # Of a rectangle, the three distances from one corner are its sides and its diagonal, whatever the order.
        sides = sorted(np.linalg.norm(corners[1:] - corners[0], axis=1))[:2]
        assert sorted(2.0 * np.array(frame.opening)) == pytest.approx(sides, abs=1e-4)
        assert 2.0 * frame.opening[1] == pytest.approx(np.ptp(corners[:, 2]), abs=1e-5)
        nominal = next(gate for gate in course_frames("nominal") if gate.name == frame.name)
        assert frame.pivot is not None
        assert nominal.pivot is not None
        assert np.subtract(frame.pivot, nominal.pivot) == pytest.approx(shift[:2], abs=2e-6)
        # The pivot is where turning leaves things: its distance to every corner does not change.
        before, after = (np.linalg.norm(np.array(g.corners)[:, :2] - g.pivot, axis=1) for g in (nominal, frame))
        assert before == pytest.approx(after, abs=3e-6)


@given(st.permutations(range(4)), st.floats(-math.pi, math.pi), st.booleans())
def test_axes_and_opening_do_not_depend_on_the_order_of_the_corners(order: list[int], yaw: float, stated: bool) -> None:
    c, s = math.cos(yaw), math.sin(yaw)
    points = [(2.0 - s * across, 1.0 + c * across, 3.0 + up) for across, up in itertools.product((1.5, -1.5), (0.4, -0.4))]
    a, b, d, e = (points[k] for k in order)
    frame = GateFrame("g", (a, b, d, e), (c, s, 0.0) if stated else None)
    assert frame.opening == pytest.approx((1.5, 0.4))
    assert frame.center == pytest.approx((2.0, 1.0, 3.0))
    through, left, up = np.array(frame.axes)
    sign = 1.0 if stated or through @ [c, s, 0.0] > 0.0 else -1.0
    assert sign * through == pytest.approx([c, s, 0.0])
    assert sign * left == pytest.approx([-s, c, 0.0])
    assert up == pytest.approx([0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["nominal", "published/3", "bounds/5/3"])
def test_no_tube_juts_into_an_opening(name: str) -> None:
    """All corners of all sides, of decoys too, lie beside the free rectangle to the millimetre, none farther than the tube."""
    built = alphapilot_course(name)
    checked = 0
    for frame in built.gates:
        _, left, up = np.array(frame.axes)
        for part in built.instances:
            if not (part.name.startswith(f"{frame.name}, ") and part.name.endswith(" side")):
                continue
            half = np.array(built.shapes[part.shape].half_size)
            corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
            away = rotate(np.array(part.attitude), corners) + np.array(part.position) - np.array(frame.center)
            beside = np.maximum(np.abs(away @ left) - frame.opening[0], np.abs(away @ up) - frame.opening[1])
            assert beside.min() > -1e-3, part.name
            assert beside.max() < TUBE + 1e-3, part.name
            checked += 1
    assert checked == 4 * len(built.gates)


def test_a_level_opening_has_axes_too() -> None:
    frame = GateFrame("roof", ((0.0, 0.0, 5.0), (2.0, 0.0, 5.0), (2.0, 6.0, 5.0), (0.0, 6.0, 5.0)))
    assert np.array(frame.axes) == pytest.approx(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
    assert frame.opening == pytest.approx((3.0, 1.0))


def test_names_build_the_scenes_that_index_and_seed_build() -> None:
    assert scene_digest(scene("alphapilot:nominal")) == scene_digest(alphapilot())
    drawn = scene("alphapilot:fresh/7/2")
    assert drawn.name == "alphapilot:fresh/7/2"
    assert drawn.gates == alphapilot(3, 7).gates
    assert drawn.instances == alphapilot(3, 7).instances
    assert scene("alphapilot:published/007").name == "alphapilot:published/7"
    assert not check_scene(drawn)


def test_a_course_in_a_file_comes_back(tmp_path: Path) -> None:
    made = scene("alphapilot:published/1")
    found = read_scene(write_scene(made, tmp_path / "course"))
    assert found.gates == made.gates
    assert scene_digest(found) == scene_digest(made)


def test_extreme_courses_move_one_gate_to_a_corner_of_its_bounds() -> None:
    names = course_names("bounds")
    assert len(names) == len(set(names)) == 88
    bounds = shift_bounds()
    for gate in range(len(gate_order())):
        shifts = np.array([course_shifts(f"bounds/{gate}/{corner}") for corner in range(8)])
        assert not np.delete(shifts, gate, axis=1).any()
        signs = np.array([[1 if corner & 1 << bit else -1 for bit in range(3)] for corner in range(8)])
        assert np.array_equal(shifts[:, gate], signs * bounds[gate])


def test_several_courses_in_one_text() -> None:
    assert course_names("published") == course_names("published:0-24") == tuple(f"published/{k}" for k in range(25))
    assert course_names("fresh:10000/100") == tuple(f"fresh/10000/{k}" for k in range(100))
    assert course_names("fresh:3/4-6, nominal,published:7") == (
        "fresh/3/4", "fresh/3/5", "fresh/3/6", "nominal", "published/7",
    )  # fmt: skip
    assert course_names("bounds:3")[-1] == "bounds/3/7"
    assert course_names("published/03") == ("published/3",)


def test_drawn_courses_are_the_same_on_every_machine() -> None:
    """A figure of NumPy's PCG64 that is on file: published results name courses by their seed."""
    assert course_shifts("fresh/10000/0")[[0, 3, 7]] == pytest.approx(np.array(FRESH), abs=1e-12)


FRESH = [
    [0.036189149519, 0.471376150854, -4.42982556023],
    [2.424538621876, 0.192292241339, 1.031499527467],
    [-0.815310659235, 0.515217676015, 3.831589185285],
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("published:0-25", "The course published/25 has the number 25; expected 0 to 24"),
        ("bounds/11/0", "the gate 11; expected 0 to 10"),
        ("bounds/1/8", "the corner 8; expected 0 to 7"),
        ("fresh:1", "names no courses of the AlphaPilot race; expected nominal, published:0-24"),
        ("", "names no courses"),
        ("published,published/3", "names the course published/3 twice"),
        ("published:5-2", "counts from 5 to 2"),
        ("fresh:1/0", "names 0 courses; expected 1 or more, as fresh:SEED/1"),
        ("fresh:99999999999999999999999/1", "has the seed 99999999999999999999999; expected 0 to 9223372036854775807"),
        ("fresh:1/999999", "more than 100,000 courses"),
    ],
)
def test_mistaken_ranges_get_one_sentence(text: str, message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        course_names(text)


@pytest.mark.parametrize("name", ["alphapilot:published", "alphapilot:fresh/3", "alphapilot:published/25", "alphapilot:hard@3"])
def test_mistaken_scenes_get_one_sentence(name: str) -> None:
    with pytest.raises(AirworthyError, match=r"^Scene 'alphapilot:"):
        scene(name)


def test_a_courses_slash_makes_no_path() -> None:
    assert not is_path("alphapilot:published/7")
    assert has_named("alphapilot:published/7")
    assert not has_named("alphapilot:3")
    assert is_path("alphapilot/published/7")
    assert is_path("mid_gate:published/7")


def test_a_direction_that_is_no_normal_is_a_problem() -> None:
    made = scene("mid_gate")
    gate = made.gates[0]
    assert gate.direction is not None
    for direction, said in (((0.9, 0.0, 0.0), "has length 0.9"), ((0.0, 0.0, 1.0), "90.0 degrees off the normal")):
        found = check_scene(replace(made, gates=(replace(gate, direction=direction),)))
        assert len(found) == 1
        assert said in found[0]
