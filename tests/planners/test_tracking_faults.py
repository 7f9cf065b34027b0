"""Containment of planners: each kind of fault, at each limit, ends the flights that it should, and says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.pilots.containment import PilotFailure
from airworthy.planners.common.interface import Setpoints
from airworthy.planners.common.tracking_faults import Guard, made, report_of

ALL = np.ones(3, bool)


def setpoints(**changed: Any) -> Setpoints:
    given = {"position": np.ones((3, 3)), "velocity": np.ones((3, 3)), "acceleration": np.ones((3, 3))}
    return Setpoints(**{**given, "yaw": np.ones(3), "yaw_rate": np.ones(3), **changed})


def raising(*_: Any) -> Any:
    raise RuntimeError("no")


def guard(**parts: Any) -> Guard:
    return Guard(SimpleNamespace(name="p", settings=None, **parts), 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "limit"), [("position", 1e5), ("velocity", 1e3), ("acceleration", 1e4), ("yaw", 1e6), ("yaw_rate", 1e4)]
)
def test_set_points_are_legal_up_to_their_limit(name: str, limit: float) -> None:
    for value, legal in (
        (limit, True),
        (-limit, True),
        (np.nextafter(limit, np.inf), False),
        (np.nan, False),
        (-np.inf, False),
    ):
        array = np.zeros((3, 3) if not name.startswith("yaw") else 3)
        array[1, ...] = 0.0
        array[(1, 2) if array.ndim == 2 else 1] = value
        one = guard(setpoints=lambda time, array=array: setpoints(**{name: array}))
        found = one.setpoints(np.zeros(3))
        assert one.failed.tolist() == [False, not legal, False]
        assert found is not None
        np.testing.assert_array_equal(getattr(found, name), array)
        assert one.causes[1] == ("" if legal else f"setpoints gave a {name} that is not a number or beyond {limit:g}")


@pytest.mark.parametrize("name", [f.name for f in fields(Setpoints)])
def test_set_points_of_another_shape_fail_all(name: str) -> None:
    for shape in ((2,), (3, 2), (2, 3), ()):
        one = guard(setpoints=lambda time, shape=shape: setpoints(**{name: np.zeros(shape)}))
        assert one.setpoints(np.zeros(3)) is None
        assert all(f"setpoints gave {name} of shape {shape}, expected" in cause for cause in one.causes)


def test_the_first_cause_of_a_flight_counts() -> None:
    one = guard()
    one.fail(np.array([2]), "first")
    one.fail(ALL, "second")
    assert one.causes == ["second", "second", "first"]


@pytest.mark.parametrize("where", ["reset", "adopt", "setpoints"])
def test_what_raises_elsewhere_fails_all_that_still_fly(where: str) -> None:
    one = guard(**{where: raising})
    if where != "reset":
        one.fail(np.array([0]), "before")
    result = getattr(one, where)(np.zeros(3))
    assert result is None
    assert [f"{where} raised" in cause for cause in one.causes] == [where == "reset", True, True]


def test_an_update_that_raises_is_asked_one_by_one() -> None:
    asked: list[list[bool]] = []

    def update(motion: Any, maps: Any, active: np.ndarray) -> dict[str, Any]:
        asked.append(active.tolist())
        if active[1]:
            raise RuntimeError("mine")
        return {"work": {"tries": [1.0, 2.0, 3.0]}, "replans": [4, 5, 6], "state": [7, 8, 9]}

    one = guard(update=update)
    report = one.update(None, None, ALL)  # type: ignore[arg-type]
    assert asked == [[True] * 3, [True, False, False], [False, True, False], [False, False, True]]
    assert one.failed.tolist() == [False, True, False]
    assert report["work"]["tries"].tolist() == [1.0, 0.0, 3.0]
    assert (report["replans"].tolist(), report["state"].tolist()) == ([4, 0, 6], [7, 0, 9])
    assert one.wall > 0.0
    asked.clear()
    alone = guard(update=update)
    report = alone.update(None, None, np.array([False, True, False]))  # type: ignore[arg-type]
    assert asked == [[False, True, False]]
    assert (alone.failed.tolist(), report["work"], report["replans"].tolist()) == ([False, True, False], {}, [0, 0, 0])


@pytest.mark.parametrize(
    ("faults", "failed"),
    [
        ({1: "own"}, [False, True, False]),
        ({}, [False] * 3),
        ({7: "own"}, [True] * 3),
        (3, [True] * 3),
        ({"a": "b"}, [True] * 3),
    ],
)
def test_faults_that_a_planner_tells(faults: Any, failed: list[bool]) -> None:
    one = guard(adopt=lambda delay: None, faults=faults)
    one.adopt(np.zeros(3))
    assert one.failed.tolist() == failed
    assert all(cause in ("", "own") or cause.startswith("faults cannot be read: ") for cause in one.causes)


@pytest.mark.parametrize(
    "given", [None, [], {"work": {"a": [1.0, np.nan, 0.0]}}, {"work": {"a": -1e-300}}, {"work": {"a": np.inf}}]
)
def test_reports_that_are_none(given: Any) -> None:
    with pytest.raises(ValueError, match=r"a report is a dict|is not a count"):
        report_of(given, 3)


def test_reports_become_arrays() -> None:
    found = report_of({"work": {"a": 0.0, 5: [1, 2, 3]}, "replans": 2.9}, 3)
    assert {kind: units.tolist() for kind, units in found["work"].items()} == {"a": [0.0] * 3, "5": [1.0, 2.0, 3.0]}
    assert (found["replans"].tolist(), found["state"].tolist()) == ([2, 2, 2], [0, 0, 0])
    assert report_of({}, 2)["work"] == {}


def test_a_planner_that_cannot_be_made_fails_in_whatever_it_is_asked() -> None:
    planner = made(raising)
    assert (planner.name, planner.settings) == ("planner", None)
    calls: list[Callable[[], Any]] = [
        lambda: planner.reset(None),  # type: ignore[arg-type]
        lambda: planner.update(None, None, ALL),  # type: ignore[arg-type]
        lambda: planner.adopt(np.zeros(3)),
        lambda: planner.setpoints(np.zeros(3)),
    ]
    for call in calls:
        with pytest.raises(PilotFailure, match=r"it could not be made: .*no"):
            call()
    whole = object()
    assert made(lambda: whole) is whole  # type: ignore[arg-type,return-value]
