"""The catalogue of courses, course files and what users get wrong in them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError
from airworthy.trajectories import Course, Gate, Limits, course, course_names, prove, read_course, write_course
from airworthy.trajectories.course_file import CATALOGUE, reversed_keyframes
from build_courses import climbing_orbit, gate_courses, own_courses, published_courses

PUBLISHED = {"robustness", "extended", "cluttered", "infinity", "line", "hover", "sigmoid"}
GATES = {"straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10"}


def test_the_catalogue_holds_every_course() -> None:
    assert set(course_names()) == PUBLISHED | GATES | {"sigmoid_reversed", "climbing_orbit"}
    for name in course_names():
        item = course(name)
        assert item.name == name
        assert item.description
        assert item.source
        assert item.trajectory().duration > 0.0


def test_the_catalogue_is_what_its_sources_say(data_dir: Path) -> None:
    published = published_courses(data_dir)
    for item in [*published, *gate_courses(data_dir), *own_courses(published)]:
        assert course(item.name) == item


def test_positions_are_z_up() -> None:
    # Published with z about -0.3 to -1.4 (down).
    for name in PUBLISHED:
        height = course(name).trajectory().sample(np.linspace(0.0, 30.0, 100)).position[:, 2]
        assert 0.2 < np.min(height) <= np.max(height) < 1.7


def test_durations_and_lengths_are_the_published_ones() -> None:
    # Spec/sousvide section 3.
    table = {"robustness": (15, 12.65), "extended": (30, 27.66), "cluttered": (20, 17.65), "infinity": (18, 25.45)}
    for name, (duration, length) in table.items():
        path = course(name).trajectory()
        assert path.duration == duration
        assert path.length() == pytest.approx(length, abs=0.006)


def test_the_reversed_sigmoid_retraces_the_sigmoid() -> None:
    there, back = course("sigmoid").trajectory(), course("sigmoid_reversed").trajectory()
    t = np.linspace(0.0, 10.0, 101)
    np.testing.assert_allclose(back.sample(t).position, there.sample(10.0 - t).position, atol=1e-9)
    np.testing.assert_allclose(back.sample(t).yaw, there.sample(10.0 - t).yaw + np.pi, atol=1e-9)
    twice = reversed_keyframes(reversed_keyframes(course("extended").keyframes))
    np.testing.assert_allclose([k.time for k in twice], [k.time for k in course("extended").keyframes])


def test_the_orbit_is_round_and_faces_its_centre() -> None:
    assert course("climbing_orbit") == climbing_orbit()
    s = course("climbing_orbit").trajectory().sample(np.linspace(0.0, 12.0, 500))
    np.testing.assert_allclose(np.hypot(s.position[:, 0], s.position[:, 1]), 2.0, atol=1e-3)
    inwards = np.arctan2(-s.position[:, 1], -s.position[:, 0])
    np.testing.assert_allclose(np.cos(s.yaw - inwards), 1.0, atol=1e-6)
    assert (s.position[0, 2], s.position[-1, 2]) == pytest.approx((0.8, 1.4))
    assert s.yaw[-1] - s.yaw[0] == pytest.approx(2.0 * np.pi, abs=1e-5)


def test_limits_slow_keyframes_and_never_hurry_them() -> None:
    item = course("infinity")
    assert item.trajectory(Limits(speed=10.0)).duration == 18.0
    slow = item.trajectory(Limits(speed=1.5))
    assert slow.duration > 18.0
    assert prove(slow, Limits(speed=1.5)).proven


def test_waypoint_courses_fly(tmp_path: Path) -> None:
    points = ((0.0, 0.0, 1.0), (2.0, 1.0, 1.0), (4.0, 0.0, 1.5))
    item = Course("mine", "waypoints", "a bend", "own", waypoints=points)
    path = item.trajectory(Limits(speed=1.0))
    np.testing.assert_allclose(path.sample(path.knots).position, points, atol=1e-9)
    write_course(item, tmp_path / "mine.json")
    assert course(tmp_path / "mine.json") == item
    assert course(str(tmp_path / "mine.json")) == item
    with pytest.raises(AirworthyError, match="do not meet"):
        item.trajectory(lap_count=2)
    with pytest.raises(AirworthyError, match="laps"):
        item.trajectory(lap_count=0)


def test_start_poses() -> None:
    first = course("straight_8").trajectory(lap_count=1).sample(0.0)
    assert first.position.tolist() == [0.0, 0.0, 0.525]
    assert float(first.yaw) == pytest.approx(np.pi / 2, abs=1e-6)
    first = course("robustness").trajectory(lap_count=1).sample(0.0)
    np.testing.assert_allclose(first.position, [-4.5, 1.0, 1.0], atol=1e-9)
    assert float(first.yaw) == pytest.approx(-1.57)


@pytest.mark.parametrize("name", course_names())
def test_files_round_trip(name: str, tmp_path: Path) -> None:
    write_course(course(name), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (CATALOGUE / f"{name}.json").read_bytes()


def test_every_field_survives_a_file(tmp_path: Path) -> None:
    gates = (Gate((1.0, 2.0, 3.0), 0.5, (1.5, 0.75), 0.1), Gate((2.0, 2.0, 3.0), 0.25))
    item = Course("x.y-1", "gates", "é", "own", gates=gates, start=(0.0, 0.0, 1.0), start_yaw=0.1, lap_count=3)
    write_course(item, tmp_path / "a.json")
    assert read_course(tmp_path / "a.json") == item
    spins = Course("spin", "waypoints", waypoints=((0.0, 0.0, 1.0), (1.0, 0.0, 1.0)), waypoint_yaw=(0.0, 3.0))
    for other in (spins, replace(spins, waypoint_yaw=1.5), replace(spins, waypoint_yaw="fixed")):
        write_course(other, tmp_path / "b.json")
        assert read_course(tmp_path / "b.json") == other


def test_unknown_names_suggest() -> None:
    with pytest.raises(UnknownNameError, match="Closest: 'infinity'"):
        course("infinty")
    with pytest.raises(AssetError, match="no file"):
        course("nowhere/infinity.json")


def changed(name: str, change: dict[str, object], tmp_path: Path) -> Path:
    value = json.loads((CATALOGUE / f"{name}.json").read_text()) | change
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({key: item for key, item in value.items() if item != "drop"}))
    return path


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("line", {"format": "drop"}, "is not an airworthy-course file"),
        ("line", {"version": 9}, "version must be 1, the one that is read here, but is 9"),
        ("line", {"frame": "z_down"}, "'z_up'"),
        ("line", {"kind": "maze"}, "kind must be one of 'keyframes', 'gates', 'waypoints', but is 'maze'"),
        ("line", {"kind": ["gates"]}, "kind must be one of"),
        ("line", {"name": "a b"}, "name must be 1 to 80 letters"),
        ("line", {"name": "../x"}, "name must be 1 to 80 letters"),
        ("line", {"gates": []}, "unknown key 'gates'"),
        ("line", {"source": 3}, "source must be text"),
        ("line", {"lap_count": True}, "whole number"),
        ("line", {"lap_count": 0}, "whole number, 1 to 100"),
        ("line", {"coefficient_count": 6.5}, "whole number, 2 to 12"),
        ("line", {"keyframes": "drop"}, "lacks 'keyframes'"),
        ("line", {"keyframes": [{"time_s": 0.0}]}, "a list of 2 to 2000 tables"),
        ("line", {"keyframes": [{"time_s": 0.0}, 3]}, r"keyframes\[1\] must be a table"),
        ("line", {"keyframes": [{"time_s": 0.0}, {"time_s": 0.0}]}, r"keyframes\[1\]\.time_s must be"),
        ("line", {"keyframes": [{"time_s": 1.0}, {"time_s": 2.0}]}, r"keyframes\[0\]\.time_s must be"),
        ("line", {"keyframes": [{"time_s": 0.0, "w": []}, {"time_s": 1.0}]}, "unknown key 'w'"),
        ("line", {"keyframes": [{"time_s": 0.0, "x": ["0"]}, {"time_s": 1.0}]}, r"keyframes\[0\]\.x\[0\] must be a number"),
        (
            "line",
            {"keyframes": [{"time_s": 0.0, "x": [1e7]}, {"time_s": 1.0}]},
            r"x\[0\] must be a number, -1000000 to",
        ),
        (
            "line",
            {"keyframes": [{"time_s": 0.0, "x": [0] * 5}, {"time_s": 1.0}]},
            "0 to 4 numbers or null, but is",
        ),
        ("line", {"keyframes": [{"time_s": 0.0, "x": [10**400]}, {"time_s": 1.0}]}, r"keyframes\[0\]\.x\[0\] must be a number"),
        ("circle_8", {"gates": []}, "a list of 1 to 2000"),
        ("circle_8", {"start_m": [0, 0]}, "3 numbers"),
        ("circle_8", {"gates": [{"position_m": [0, 0, 0]}]}, r"gates\[0\] lacks \'yaw_rad\'"),
        ("circle_8", {"gates": [{"position_m": [0, 0, None], "yaw_rad": 0}]}, r"gates\[0\]\.position_m\[2\] must be a number"),
        ("circle_8", {"gates": [{"position_m": [0, 0, 0], "yaw_rad": 0, "opening_m": [0.4, 0.0]}]}, "more than 0"),
        (
            "circle_8",
            {"gates": [{"position_m": [0, 0, 0], "yaw_rad": 0, "bar_m": -1}]},
            "bar_m must be a number, 0 to 10 m",
        ),
    ],
)
def test_mistakes_in_files_are_one_sentence(name: str, change: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=message) as caught:
        read_course(changed(name, change, tmp_path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("yaw", ["sideways", [0.0], [0.0, "1"], None, True, {"a": 1}, 1e9], ids=repr)
def test_bad_yaw_of_waypoints(yaw: object, tmp_path: Path) -> None:
    value = {"format": "airworthy-course", "version": 1, "frame": "z_up", "name": "a", "kind": "waypoints", "yaw": yaw}
    (tmp_path / "a.json").write_text(json.dumps(value | {"waypoints_m": [[0, 0, 1], [1, 0, 1]]}))
    with pytest.raises(AssetError, match=r": yaw(\[\d\])? must be"):
        read_course(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(value | {"yaw": 0, "waypoints_m": [[0, 0, 1], [1, 0]]}))
    with pytest.raises(AssetError, match=r"waypoints_m\[1\] must be a list of 3 numbers"):
        read_course(tmp_path / "a.json")


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["time_s", "x", "yaw", "name", "gates"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=1000)
@given(data=st.data())
@pytest.mark.slow
def test_hostile_structure_is_read_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(["line", "circle_8", "robustness"]))
    value = json.loads((CATALOGUE / f"{name}.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        _replace_somewhere(value, data)
    path = tmp_path_factory.getbasetemp() / "hostile_course.json"
    path.write_text(json.dumps(value))
    with contextlib.suppress(AssetError):
        read_course(path)


def _replace_somewhere(value: object, data: st.DataObject) -> None:
    """Put junk at a random place of a JSON value."""
    while isinstance(value, dict | list) and len(value):
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        inner = value[key]  # type: ignore[index]
        if not isinstance(inner, dict | list) or not len(inner) or data.draw(st.booleans()):
            value[key] = data.draw(JUNK)  # type: ignore[index]
            return
        value = inner


@settings(max_examples=300)
@given(data=st.data())
def test_hostile_bytes_are_read_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = bytearray((CATALOGUE / "circle_8.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "hostile_course.json"
    path.write_bytes(bytes(text[: data.draw(st.integers(0, len(text)))]))
    with contextlib.suppress(AssetError):
        read_course(path)
