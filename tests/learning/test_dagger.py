"""Flights that are learnt from while a policy flies them: whose command is flown, what is kept, and which count as its own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from airworthy.benchmarks.tracking.conditions import condition
from airworthy.learning.visuomotor.dagger import DaggerFlights, DaggerPilot, _gathered, dagger_condition
from airworthy.pilots.pilot import Observation

FULL = np.array([20.0, 30.0])
LINE = np.column_stack([np.linspace(0.0, 10.0, 101), np.zeros((101, 2))])
"""Of the course, along x."""


class Learner:
    """A policy that decides on the ticks it is told to, and says what it was told of the expert's commands."""

    observes = ("velocity",)

    def __init__(self) -> None:
        self.decisions = np.zeros(2, np.int64)
        self.estimate = np.ones((2, 2))
        self.network: Any = SimpleNamespace(reading=None)
        self.next: list[list[int]] = []
        self.noted: list[tuple[Any, Any]] = []

    def command(self, observation: Observation) -> Any:
        ids = self.next.pop(0) if self.next else [0, 1]
        self.decisions[ids] += 1
        number = float(self.decisions.sum())
        self.network.reading = SimpleNamespace(
            state=np.full((len(ids), 8), number), objective=np.full((len(ids), 18), number),
            history=np.full((len(ids), 75), number), images=np.full((len(ids), 2, 2, 3), int(number), np.uint8),
        )  # fmt: skip
        return np.full((2, 4), 1.0)

    def note_applied(self, command: Any, which: Any) -> None:
        self.noted.append((command.copy(), which.copy()))


class Expert:
    """An expert with a command of its own per flight, which now and then finds none."""

    def __init__(self) -> None:
        self.failures, self.cut_off = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self.weighed: list[Any] = []
        self.given = np.array([[10.0, 0.1, 0.2, 0.3], [15.0, -0.1, -0.2, -0.3]])
        self.fails: list[str] = []

    def weigh(self, mass: Any) -> None:
        self.weighed.append(mass)

    def command(self, observation: Observation) -> Any:
        assert set(observation.fields) == {"position", "velocity", "attitude"}
        given = self.given.copy()
        match self.fails.pop(0) if self.fails else "":
            case "failure":
                self.failures[0] += 1
            case "cut off":
                self.cut_off[1] += 1
            case "nan":
                given[1, 2] = np.nan
        return given


class Stage:
    """Pilot, policy, expert and vehicles that stand where they are put."""

    def __init__(self) -> None:
        self.learner, self.expert = Learner(), Expert()
        self.vehicles: Any = SimpleNamespace(
            position=np.zeros((2, 3)), velocity=np.zeros((2, 3)), attitude=np.zeros((2, 4)), mass=[1.0, 2.0]
        )
        self.vehicles.parameter = lambda name: getattr(self.vehicles, name)
        learner, expert, vehicles = self.learner, self.expert, self.vehicles
        self.pilot = DaggerPilot(learner, expert, vehicles, LINE, FULL)  # type: ignore[arg-type]

    def fly(self, *off: float) -> Any:
        """A tick with vehicles so far beside the course."""
        self.vehicles.position = np.array([[3.0, off[0], 0.0], [4.0, 0.0, off[1]]])
        return self.pilot.command(Observation(np.zeros(2), {"velocity": np.zeros((2, 3))}))


def test_the_expert_takes_over_far_off_and_hands_back_near_the_course() -> None:
    stage = Stage()
    flown = [stage.fly(a, 0.0) for a in (0.69, 0.71, 0.5, 0.31, 0.29, 0.6, np.nan, 0.2)]
    by_expert = [bool((command[0] == stage.expert.given[0]).all()) for command in flown]
    assert by_expert == [False, True, True, True, False, False, True, False]
    assert all((command[1] == 1.0).all() for command in flown)
    assert [helped.tolist() for helped in stage.pilot.helped] == [[now, False] for now in by_expert]
    # The policy is told of what was flown instead of its own, of these flights alone.
    assert len(stage.learner.noted) == 4
    assert all(which.tolist() == [True, False] for _, which in stage.learner.noted)
    np.testing.assert_array_equal(stage.learner.noted[0][0], stage.expert.given)


def test_what_the_policy_read_is_kept_with_what_the_expert_says() -> None:
    stage = Stage()
    stage.learner.next = [[0, 1], [], [1]]
    for _ in range(3):
        stage.fly(0.1, 0.2)
    first, second = stage.pilot.parts
    assert (first["env"].tolist(), first["tick"].tolist()) == ([0, 1], [0, 0])
    assert (second["env"].tolist(), second["tick"].tolist()) == ([1], [2])
    # Half of full thrust, z down; rates about y and z the other way.
    np.testing.assert_allclose(first["command"], [[-0.5, 0.1, -0.2, -0.3], [-0.5, -0.1, 0.2, 0.3]], rtol=1e-6)
    np.testing.assert_allclose(second["command"], [[-0.5, -0.1, 0.2, 0.3]], rtol=1e-6)
    np.testing.assert_allclose(first["position"], [[3.0, 0.1, 0.0], [4.0, 0.0, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(second["position"], [[4.0, 0.0, 0.2]], rtol=1e-6)
    assert (first["images"][0, 0, 0, 0], second["images"][0, 0, 0, 0], second["state"][0, 0]) == (2, 3, 3.0)
    assert first["sound"].all()
    # A load that is hung on is the expert's to know.
    assert stage.expert.weighed == [[1.0, 2.0]] * 3


@pytest.mark.parametrize(("what", "sound"), [("failure", [False, True]), ("cut off", [True, False]), ("nan", [True, False])])
def test_what_the_expert_does_not_know_is_no_label(what: str, sound: list[bool]) -> None:
    stage = Stage()
    stage.expert.fails = ["", what, ""]
    for _ in range(3):
        stage.fly(0.0, 0.0)
    assert [part["sound"].tolist() for part in stage.pilot.parts] == [[True, True], sound, [True, True]]


def test_instants_behind_a_flights_end_are_dropped_and_help_is_no_success() -> None:
    stage = Stage()
    stage.expert.fails = ["failure"]
    for k in range(4):
        stage.fly(0.0, 0.8 if k == 2 else 0.0)
    rows: list[dict[str, Any]] = [{"outcome": "success"}, {"outcome": "success"}]
    # The first ends after three ticks; of its first no optimum was found.
    found = _gathered(stage.pilot, np.array([3, 4]), rows)
    assert (len(found.state), found.dropped) == (6, 2)
    assert found.images.shape == (6, 2, 2, 3)
    assert [row["alone"] for row in rows] == [True, False]
    assert [row["helped_percent"] for row in rows] == [0.0, 25.0]
    lost = [{"outcome": "too_far"}, {"outcome": "success"}]
    # Help that comes when a flight is over is none of it.
    assert [row["alone"] for row in _gathered(stage.pilot, np.array([3, 2]), lost).rows] == [False, True]
    stage.pilot.parts[1]["history"][0, 7] = np.inf
    assert _gathered(stage.pilot, np.array([3, 4]), rows).dropped == 3
    both = DaggerFlights.joined([found, found])
    assert (len(both.state), both.dropped, len(both.rows)) == (12, 4, 4)
    np.testing.assert_array_equal(both.command[6:], found.command)


def test_a_rounds_condition_is_what_was_drawn() -> None:
    made = dagger_condition("round", 0.3, 0.4, "assisted", 0.02, 1.5, 0.8, 0.25)
    plain = condition("baseline")
    changed = {name: value for name, value in vars(made).items() if value != getattr(plain, name)}
    assert changed == {
        "name": "round", "title": "round", "says": "", "paper": "", "mass_spread": 0.3, "thrust_spread": 0.3,
        "noise": "assisted", "delay": 0.02, "gust": 1.5, "light": 0.8, "pickup": 0.25, "position_spread": 0.4,
        "velocity_spread": 0.4, "attitude_spread": 0.1,
    }  # fmt: skip
