"""Races that come with the package, files of one's own, and what is wrong with them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import data_dir
from airworthy.race import check_race, gate_shape, load_race, moved_gate, race_from_text, race_names, with_corners
from airworthy.race.gate_bars import frames_of, gate_bars
from airworthy.race.gate_geometry import placed_gate, shape_of
from airworthy.race.gates_apart import _closed, check_apart
from airworthy.race.record import GateFrames

SMALL = """
airworthy = "race"
version = 1
name = "small"
title = "Two gates"
order = ["A", "B"]

[start]
position = [0.0, 0.0, 1.0]

[limits]
time_s = 20.0
lower = [-5.0, -5.0, 0.0]
upper = [9.0, 5.0, 5.0]

[score]
rule = "time"

[[gates]]
name = "A"
position = [3.0, 0.0, 1.0]
yaw_deg = 90.0
opening = [1.0, 2.0]

[[gates]]
name = "B"
corners = [[6.0, 1.0, 2.0], [6.0, -1.0, 2.0], [6.0, 1.0, 0.0], [6.0, -1.0, 0.0]]
direction = [1.0, 0.0, 0.0]

[[posts]]
position = [4.0, 2.0]
top = 3.0
radius = 0.1
"""


@pytest.mark.parametrize("name", race_names())
def test_shipped_races_can_be_judged(name: str) -> None:
    race = load_race(name)
    check_race(race)
    assert race.name == name
    assert race.source
    assert load_race(name) is race  # read once


def test_the_races_of_the_specification_are_there() -> None:
    assert race_names() == ("a2rl", "alphapilot", "lsy_0", "lsy_1", "lsy_2", "lsy_3", "uzh_split_s")
    assert len(load_race("alphapilot").passes) == 11
    assert len(load_race("a2rl").passes) == 10
    assert len(load_race("uzh_split_s").passes) == 21
    assert load_race("a2rl").passes[5:] == (("6", True), ("high", True), ("low", True), ("2", True), ("1", True))


def test_a_race_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    race = load_race(file)
    assert load_race(str(file)) == race
    a, b = (gate_shape(gate) for gate in race.gates)
    np.testing.assert_allclose(a.normal, [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(a.left, [-1.0, 0.0, 0.0], atol=1e-15)
    assert (a.half_width, a.half_height) == (0.5, 1.0)
    np.testing.assert_array_equal(b.normal, [1.0, 0.0, 0.0])
    # Counter-clockwise for who looks against the flight, from corners that are listed row by row.
    sides = np.roll(b.ring, -1, axis=0) - b.ring
    assert np.all(np.cross(sides, np.roll(sides, -1, axis=0)) @ b.normal > 0.0)


WRONG = {
    "x": ('version = 1', 'version = 2', "version must be 1"),
    "kind": ('airworthy = "race"', 'airworthy = "scene"', "is not a race"),
    "no toml": ("[start]", "[start", "is not valid TOML"),
    "unknown key": ('title = "Two', 'titel = "Two', "unknown key 'titel' (closest: 'title')"),
    "unknown key of a gate": ("yaw_deg = 90.0", "yaw = 90.0", "gates[0] has the unknown key 'yaw' (closest: 'yaw_deg')"),
    "missing": ('[score]\nrule = "time"\n', "", "lacks 'score'"),
    "nan": ("position = [3.0, 0.0, 1.0]", "position = [3.0, nan, 1.0]", "gates[0].position[1] must be a finite number, -1000"),
    "far": ("position = [3.0, 0.0, 1.0]", "position = [3.0, 0.0, 1e9]", "gates[0].position[2] must be"),
    "shape": ("position = [3.0, 0.0, 1.0]", "position = [3.0, 0.0]", "gates[0].position must be a list of 3 numbers"),
    "text": ("time_s = 20.0", 'time_s = "20"', "limits.time_s must be a number"),
    "no time": ("time_s = 20.0", "time_s = 0.0", "limits.time_s must be a number, more than 0"),
    "rule": ('rule = "time"', 'rule = "luck"', "score.rule must be one of 'points', 'time'"),
    "points without any": ('rule = "time"', 'rule = "points"', "give both or none"),
    "points by time": ('rule = "time"', 'rule = "time"\ngate_points = 1.0', "give both or none"),
    "best of nothing": ('rule = "time"', 'rule = "time"\nbest = 3', "best 3 of 0"),
    "no such gate": ('["A", "B"]', '["A", "C"]', "Unknown gate in the order 'C'"),
    "idle gate": ('["A", "B"]', '["A"]', "Gate 'B' is not in the order"),
    "empty order": ('["A", "B"]', "[]", "order must be a list of 1 to 1000"),
    "double": ('name = "B"', 'name = "A"', "Two gates are called 'A'"),
    "hyphen": ('name = "B"', 'name = "-B"', "A gate is called '-B'"),
    "not flat": ("[6.0, -1.0, 0.0]]", "[6.1, -1.0, 0.0]]", "lie up to 0.02498 m off one plane"),
    "three corners": (", [6.0, -1.0, 0.0]]", "]", "has 3 corners; expected 4"),
    "no opening": ("opening = [1.0, 2.0]", "", "Gate 'A' has a position and no opening"),
    "both forms": ("opening = [1.0, 2.0]", "opening = [1.0, 2.0]\ndirection = [1.0, 0.0, 0.0]", "give one form"),
    "neither": ("position = [3.0, 0.0, 1.0]\n", "", "Gate 'A' has an opening or a yaw and no position"),
    "a point": ("[6.0, 1.0, 2.0], [6.0, -1.0, 2.0]", "[6.0, 1.0, 0.0], [6.0, -1.0, 0.0]", "span 0 m^2"),
    "a corner inside": ("[6.0, 1.0, 2.0]", "[6.0, -0.9, 0.1]", "not those of a convex opening"),
    "across": ("direction = [1.0, 0.0, 0.0]", "direction = [0.0, 1.0, 0.0]", "flown along (0, 1, 0), but its opening faces"),
    "no direction": ("direction = [1.0, 0.0, 0.0]", "", "flown along (0, 0, 0)"),
    "laps": ('title = "Two gates"', 'title = ""\nlaps = 0', "laps must be a whole number, 1 to 100"),
    "passages": ('order = ["A", "B"]', "laps = 100\norder = [" + '"A", "B", ' * 60 + "]", "expected 10,000 passages at most"),
    "letters": ('name = "A"', 'name = "a\\nb"', "holds letters that cannot be printed"),
    "two lines": ('name = "small"', 'name = "a\\nb"', "called 'a\\nb'; expected letters, digits, dots"),
    "elsewhere": ('name = "small"', 'name = "../../x<b>"', "The race is called '../../x<b>'; expected letters"),
    "hidden": ('name = "small"', 'name = ".small"', "The race is called '.small'; expected letters"),
    "loose laps": ('title = "Two gates"', 'title = ""\nlaps = 2\ntest = "loose"', "would be passed twice at once"),
    "loose reverse": ('["A", "B"]', '["A", "-B"]\ntest = "loose"', "The loose test knows no direction"),
    "half a box": ("lower = [-5.0, -5.0, 0.0]\n", "", "one of lower and upper"),
    "box upside down": ("lower = [-5.0, -5.0, 0.0]", "lower = [-5.0, 5.0, 0.0]", "is not below limits.upper"),
    "start outside": ("position = [0.0, 0.0, 1.0]", "position = [0.0, 7.0, 1.0]", "The start lies outside the limits"),
    "gate outside": ("position = [3.0, 0.0, 1.0]", "position = [10.0, 0.0, 1.0]", "Gate 'A' lies outside the limits"),
    "post in the way": ("position = [4.0, 2.0]", "position = [6.05, 0.5]", "Post 1 stands in the opening of gate 'B'"),
    "near": ("[score]", '[information]\ngates = "near"\n\n[score]', "give both or none"),
    "sensors": ("[score]", '[information]\nsensors = ["imu", "imu"]\n\n[score]', "expected each sensor once"),
    "smell": ("[score]", '[information]\nsensors = ["smell"]\n\n[score]', "information.sensors[0] must be one of"),
    "layout": ('title = "Two gates"', 'title = ""\nlaps = 1.5', "laps must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence(name: str) -> None:
    before, after, said = WRONG[name]
    assert SMALL.count(before) == 1 or name == "shape"
    with pytest.raises(AssetError, match=re.escape(said)) as error:
        race_from_text(SMALL.replace(before, after, 1), "small.toml")
    assert "\n" not in str(error.value)
    assert "small.toml" in str(error.value)


_TOKEN = re.compile(r"-?\d+\.\d+|\d+|\"[^\"\n]*\"|\[[^\[\]\n]*\]")
_WORDS = ("nan", "-inf", "1e999", "true", "[]", "{}", '""', "[[[]]]", "-1", "1" + "0" * 25, "1979-05-27", '"a\\nb"')
_JUNK = st.one_of(
    st.sampled_from(_WORDS),
    st.floats().map(repr),
    st.integers().map(str),
    st.lists(st.floats(-100.0, 100.0), max_size=5).map(str),
    st.text(max_size=10).map(lambda text: json.dumps(text).replace("\x7f", "")),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["small", "lsy_3", "alphapilot"]), st.integers(0, 10_000), _JUNK)
def test_a_value_that_is_another_makes_a_race_or_one_sentence(name: str, place: int, junk: str) -> None:
    text = SMALL if name == "small" else (files("airworthy.race") / "races" / f"{name}.toml").read_text("utf-8")
    tokens = list(_TOKEN.finditer(text))
    token = tokens[place % len(tokens)]
    try:
        race = race_from_text(text[: token.start()] + junk + text[token.end() :], "changed.toml")
    except AirworthyError as error:
        said = str(error)
        assert "\n" not in said
        assert said.endswith(".")
    else:
        check_race(race)


def test_names_that_are_none() -> None:
    with pytest.raises(AirworthyError, match=r"Unknown race 'alfapilot'\. Closest: 'alphapilot'"):
        load_race("alfapilot")
    for word in ("random:x", "random:-1", "random:", "random:1" + "0" * 20):
        with pytest.raises(AirworthyError, match="expected random:SEED"):
            load_race(word)
    with pytest.raises(AssetError, match=r"no_such\.toml"):
        load_race("no_such.toml")


def test_too_large_a_file_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "large.toml"
    file.write_text("#" * 300_000)
    with pytest.raises(AssetError, match="large"):
        load_race(file)


# ---- AlphaPilot's gates -----------------------------------------------------------------------------------------------------


def test_directions_are_those_of_the_order() -> None:
    """Each gate is left towards the next: so every direction points on, and away from where the flight comes from."""
    race = load_race("alphapilot")
    shapes = [gate_shape(race.gate(name)) for name, _ in race.passes]
    points = np.array([race.start.position, *(shape.center for shape in shapes)])
    for k, shape in enumerate(shapes):
        into = points[k + 1] - points[k]
        out = points[k + 2] - points[k + 1] if k + 2 < len(points) else into
        ways = into / np.linalg.norm(into) + out / np.linalg.norm(out)
        assert ways @ shape.normal > 0.0


def test_gates_are_those_of_the_hall() -> None:
    from airworthy.scenes import scene

    race, hall = load_race("alphapilot"), scene("alphapilot")
    corners = {gate.name: gate.corners for gate in hall.gates}
    placed = with_corners(race, corners)
    for gate, there in zip(race.gates, placed.gates, strict=True):
        np.testing.assert_allclose(gate.corners, there.corners, atol=2e-6)
        assert gate_shape(gate).normal @ gate_shape(there).normal > 1.0 - 1e-9
    assert hall.start is not None
    assert race.start.position == hall.start.position


def test_published_courses_follow_from_the_nominal_gates() -> None:
    """To 0.1 mm: turned about the pivot by the file's yaw, which is clockwise."""
    folder = data_dir()
    if folder is None:
        pytest.skip("AIRWORTHY_DATA is unset")
    race = load_race("alphapilot")
    courses = json.loads((folder / "flightgoggles" / "alphapilot_courses.json").read_text())["courses"]
    assert len(courses) == 25
    for course in courses:
        for gate in race.gates:
            given = course["gates"][gate.name]
            there = moved_gate(gate, [given["dx_m"], given["dy_m"], 0.0, -given["dyaw_file_deg"]])
            np.testing.assert_allclose(there.corners, given["corners_m"], atol=1e-4)
            bound = gate.bound
            assert abs(given["dx_m"]) <= bound.x
            assert abs(given["dy_m"]) <= bound.y
            assert abs(given["dyaw_file_deg"]) <= bound.yaw_deg


def test_corners_from_elsewhere_keep_the_side() -> None:
    race = load_race("alphapilot")
    corners = {race.gates[0].name: np.array(race.gates[0].corners)[[2, 0, 3, 1]]}
    assert gate_shape(with_corners(race, corners).gates[0]).normal[1] > 0.99
    with pytest.raises(AirworthyError, match="has no gate 'Gate99'"):
        with_corners(race, {"Gate99": corners["Gate10"]})


@pytest.mark.parametrize("yaw", [-170.0, -30.0, 0.0, 45.0, 90.0])
def test_moving_turns_corners_and_direction_alike(yaw: float) -> None:
    gate = load_race("alphapilot").gate("Gate14")
    there = gate_shape(moved_gate(gate, [1.0, -2.0, 0.5, yaw]))
    was = gate_shape(gate)
    angle = math.radians(yaw)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    np.testing.assert_allclose(there.normal[:2], turn @ was.normal[:2], atol=1e-12)
    assert gate.pivot is not None
    pivot = np.array(gate.pivot)
    np.testing.assert_allclose(there.center[:2], turn @ (was.center[:2] - pivot) + pivot + [1.0, -2.0], atol=1e-9)
    assert there.center[2] == pytest.approx(was.center[2] + 0.5)
    back = moved_gate(
        replace(gate, corners=moved_gate(gate, [0, 0, 0, yaw]).corners, direction=tuple(there.normal)), [0, 0, 0, -yaw]
    )
    np.testing.assert_allclose(back.corners, gate.corners, atol=1e-9)


def test_words_of_a_race_are_printable() -> None:
    for field in ("title", "source"):
        line = f'{field} = "a\\u001b[31mb"'
        text = SMALL.replace('title = "Two gates"', line if field == "title" else f'title = "x"\n{line}')
        with pytest.raises(AssetError, match=f"The {field} of the race holds letters that cannot be printed"):
            race_from_text(text, "small.toml")


@pytest.mark.slow
def test_bars_in_openings_are_those_that_a_linear_programme_finds() -> None:
    """Boxes overlap where some point lies within all their faces by more than nothing; gates turned every way."""
    rng = np.random.default_rng(4)
    frames, found = GateFrames(), []
    square = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    for _ in range(160):
        one, other = (
            shape_of((square * rng.uniform(0.4, 1.2, 2)) @ turn[:2] + rng.uniform(-0.9, 0.9, 3), turn[2], "x")
            for turn in Rotation.random(2, random_state=rng).as_matrix()
        )
        # The middle of the opening as deep as the frame, less a bar's width at its edges, but half of it at least.
        size = np.array([one.half_width, one.half_height])
        free = np.maximum(size - frames.width, 0.5 * size)
        axes = np.stack([one.normal, one.left, one.up])
        depth = [
            overlap((one.center, axes, [0.5 * frames.depth, *free]), (bar.center, bar.axes(other), bar.half))
            for bar in gate_bars(other, frames, [one])
        ]
        if np.min(np.abs(depth)) > 1e-6:
            found.append(max(depth) > 0.0)
            assert _closed(one, other, frames) is found[-1]
    assert 30 < np.sum(found) < len(found) - 30


def overlap(one: Any, other: Any) -> float:
    """How deep a point lies in both of two boxes at most, below 0 where they are apart."""
    rows, most = [], []
    for center, axes, half in (one, other):
        for axis, size in zip(axes, half, strict=True):
            for sign in (1.0, -1.0):
                rows.append([*(sign * axis), 1.0])
                most.append(size + sign * float(axis @ center))
    solved = linprog([0.0, 0.0, 0.0, -1.0], A_ub=rows, b_ub=most, bounds=[(None, None)] * 4)
    return float(-solved.fun)


def test_bars_close_a_frame_once_and_are_shared_by_gates_of_one_plane() -> None:
    frames = GateFrames(0.2, 0.3)
    shape = shape_of([[5, 1, 3], [5, -1, 3], [5, -1, 1], [5, 1, 1]], [1.0, 0.0, 0.0], "A")
    bars = {bar.side: bar for bar in gate_bars(shape, frames, [])}
    for side, length in (("left", 1.0 + frames.width), ("right", 1.0 + frames.width), ("top", 1.0), ("bottom", 1.0)):
        assert bars[side].half == pytest.approx([0.5 * frames.depth, 0.5 * frames.width, length])
    assert bars["top"].center == pytest.approx([5.0, 0.0, 3.0 + 0.5 * frames.width])
    # Of one that stands on top the bar between is shared, but not of one that stands 0.2 m behind.
    for behind, height in ((0.0, 3.0), (0.09, 3.0), (0.2, 3.0 + 0.5 * frames.width)):
        above = shape_of(shape.corners + np.array([behind, 0.0, 2.0]), [1.0, 0.0, 0.0], "B")
        shared = {bar.side: bar for bar in gate_bars(shape, frames, [above])}
        assert shared["top"].center == pytest.approx([5.0, 0.0, height])


def test_a_start_in_a_bar_is_refused() -> None:
    race = race_from_text(SMALL, "x")
    gate = gate_shape(race.gates[0])
    bar = next(bar for bar in gate_bars(gate, frames_of(race) or GateFrames(), []) if bar.side == "top")
    for off, refused in ((0.9, True), (1.1, False)):
        start = replace(race.start, position=tuple(bar.center + off * bar.half[1] * gate.up))
        moved = replace(race, start=start)
        if refused:
            with pytest.raises(AirworthyError, match="The start lies in the top bar of gate 'A'"):
                check_apart(moved)
        else:
            check_apart(moved)


def test_gates_that_cross_and_share_a_bar_are_races() -> None:
    """Openings may meet, as those of a2rl do, where no bar stands in them; stacked gates share theirs."""
    check_apart(load_race("a2rl"))
    race = race_from_text(SMALL.replace("[6.0, 1.0, 2.0], [6.0, -1.0, 2.0]", "[6.0, 1.0, 1.9], [6.0, -1.0, 1.9]"), "x")
    a, b = race.gates
    shape = gate_shape(b)
    stacked = shape.corners + np.array([0.0, 0.0, 2.0 * shape.half_height])
    check_apart(replace(race, gates=(placed_gate(a, stacked, shape.normal), b)))
    for shift in ([0.0, 0.6, 0.0], [0.05, 0.0, 0.8], [0.0, 0.0, 0.9]):
        with pytest.raises(AirworthyError, match="A bar of gate"):
            check_apart(replace(race, gates=(placed_gate(a, shape.corners + shift, shape.normal), b)))
