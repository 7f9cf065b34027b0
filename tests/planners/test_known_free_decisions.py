"""What a flight decides at one moment, its parts replaced by ones that say what they were asked: looks, waits, ways back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.planners.known_free import KnownFreeSettings
from airworthy.planners.known_free.config import KnownFreeState
from airworthy.planners.known_free.known_space import MET, UNSEEN
from airworthy.planners.known_free.motion import StoppingPlans, StoppingTrajectory
from airworthy.planners.known_free.path import SPACING
from airworthy.planners.known_free.planner import KnownFreePlanner
from airworthy.planners.known_free.routes import FollowedRoutes
from airworthy.planners.known_free.tracking_errors import TrackingErrors

REST = np.zeros((3, 3))
STRAIGHT = np.stack([np.arange(40) * SPACING, np.zeros(40), np.ones(40)], -1)


class Told:
    """Records what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *given: Any) -> None:
        self.calls.append(given)


class Fast:
    """One candidate, of 3 m/s."""

    speed, cost = np.array([3.0]), np.zeros(1)

    def __len__(self) -> int:
        return 1

    def trajectory(self, *_: Any) -> Any:
        return SimpleNamespace(points=lambda *_: STRAIGHT)


def flight(path: np.ndarray = STRAIGHT, back: bool = False, off: float = 0.0, way: int = 3, **more: Any) -> Any:
    """A planner of one flight at rest whose parts are stubs."""
    made: Any = object.__new__(KnownFreePlanner)
    made.config = KnownFreeSettings()
    made.stage, made._idle, made._refusals = np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int64)
    made._refused_at, made.tracking_errors = np.full((1, 3), np.inf), TrackingErrors(1)
    made.refused, made.looks, made.begun = Told(), Told(), Told()
    made._routes = SimpleNamespace(path=lambda _: path, follow=Told(), forget=Told(), ends=np.zeros(1, bool))
    made._heading = SimpleNamespace(off=lambda _: off, look=made.looks)
    made.movers = SimpleNamespace(near=lambda *_: False, heading=lambda _flight, _here, ahead: ahead)

    def begin(*given: Any) -> np.ndarray:
        made.begun(*given)
        return STRAIGHT[:way]

    made.retreats = SimpleNamespace(goes_back=lambda _: back, begin=begin, end=Told(), heading=lambda *_: "back")
    made._memories = SimpleNamespace(of=lambda _: SimpleNamespace(refuse=made.refused), thought=np.zeros(1))
    for name, value in more.items():
        setattr(made, name, value)
    return made


# ---- what a plan says behind its end ----------------------------------------------------------------------------------------


def test_a_plan_rests_behind_its_end() -> None:
    """1 m/s for a second, then braked with 1 m/s2 for another: half a metre farther, and no acceleration is left there."""
    coefficients = np.zeros((2, 6, 3))
    coefficients[0, 1, 0] = 1.0
    coefficients[1, :3, 0] = 1.0, 1.0, -0.5
    plans = StoppingPlans(np.zeros((1, 3)))
    plans.put(0, StoppingTrajectory(coefficients, np.array([1.0, 1.0]), 2.0))
    plans.settle(np.array([2.0]))
    for time, position, velocity, acceleration in (
        (2.5, 0.5, 1.0, 0.0),
        (3.5, 1.375, 0.5, -1.0),
        (4.0, 1.5, 0.0, 0.0),
        (9.0, 1.5, 0.0, 0.0),
    ):
        found = [float(part[0, 0]) for part in plans.state(np.zeros(1, np.int64), np.array([time]))]
        assert found == pytest.approx([position, velocity, acceleration])


# ---- looking ----------------------------------------------------------------------------------------------------------------


def test_the_camera_looks_a_little_past_what_is_known() -> None:
    """The route turns left 1.2 m ahead: four points before the last that is known it is looked to, not sooner."""
    turning = STRAIGHT.copy()
    turning[12:, 0], turning[12:, 1] = 12 * SPACING, np.arange(28) * SPACING
    for last, ahead in ((2, True), (20, False)):
        one = flight(turning)
        one._look(0, turning[0], last)
        ((_, angle),) = one.looks.calls
        at = min(last + 4, int(one.config.look_ahead / SPACING))
        far = next(p for p in turning[at:] if np.hypot(*p[:2]) > 0.4)
        assert angle == pytest.approx(np.arctan2(far[1], far[0]))
        assert (abs(angle) < 1e-6) == ahead
    one = flight(turning)
    one._look(0, turning[0], 8)
    # Four points past the eighth is the corner itself; without them it would look along the first leg a little longer.
    assert one.looks.calls[0][1] == pytest.approx(np.arctan2(0.0, 12 * SPACING), abs=1e-6)


@pytest.mark.parametrize(("last", "to"), [(0, "path"), (len(STRAIGHT) - 1, "back"), (20, "back")])
def test_who_goes_back_looks_along_the_way_only_where_it_stands_before_it(last: int, to: str) -> None:
    short = STRAIGHT[:2] if last == len(STRAIGHT) - 1 else STRAIGHT
    one = flight(short, back=True)
    one._look(0, short[0], min(last, len(short) - 1))
    ((_, said),) = one.looks.calls
    assert (said == "back") == (to == "back")
    blind = flight(back=True, config=KnownFreeSettings(look_back=False))
    blind._look(0, STRAIGHT[0], 0)
    assert blind.looks.calls == [(0, "back")]


# ---- waiting, and going back ------------------------------------------------------------------------------------------------


def wait(one: Any, here: np.ndarray, why: int = UNSEEN, last: int = 0) -> None:
    """Let it stand there for as long as its patience lasts."""
    for _ in range(20):
        one._wait(0, np.stack([here, *REST[1:]]), STRAIGHT, last, why)
        if one._idle[0] == 0.0:
            return
    pytest.fail("its patience never ends")


def test_what_is_unseen_is_looked_at_from_afar_first_and_then_taken_as_blocked() -> None:
    one, here, near, far = flight(), *np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 1.0], [3.0, 0.0, 1.0]])
    wait(one, here)
    assert len(one.begun.calls) == 1
    assert not one.refused.calls
    assert int(one.stage[0]) == KnownFreeState.BLOCKED
    wait(one, near)  # as good as the same place
    assert len(one.begun.calls) == 1
    ((_, radius, known, spared),) = one.refused.calls
    assert radius == pytest.approx(0.25 * 1.4)
    assert not known
    np.testing.assert_array_equal(spared, near)
    wait(one, here)
    assert [call[-1] for call in one.begun.calls] == [0, 1]  # from twice as far
    wait(one, far)  # elsewhere it begins anew
    assert [call[-1] for call in one.begun.calls] == [0, 1, 0]


def test_what_is_met_is_taken_as_blocked_at_once() -> None:
    one = flight()
    wait(one, np.array([0.0, 0.0, 1.0]), MET)
    ((_, radius, known, _),) = one.refused.calls
    assert (radius, known) == (0.25, True)
    assert not one.begun.calls


@pytest.mark.parametrize("who", ["flies", "turns", "meets somebody"])
def test_who_is_not_at_rest_and_looking_waits_for_nothing(who: str) -> None:
    one = flight(off=0.5 if who == "turns" else 0.0)
    if who == "meets somebody":
        one.movers = SimpleNamespace(near=lambda *_: True)
    here = np.array([[0.0, 0.0, 1.0], [0.5 if who == "flies" else 0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for _ in range(40):
        one._wait(0, here, STRAIGHT, 0, MET)
    assert not one.refused.calls


def test_who_went_back_is_back_at_the_end_of_its_way_and_looking() -> None:
    end, beside, far = STRAIGHT[-1], STRAIGHT[-2], STRAIGHT[-11]
    assert flight()._is_back(0, beside)
    assert not flight(off=0.5)._is_back(0, end)
    assert not flight()._is_back(0, far)
    assert flight(np.zeros((0, 3)), off=0.5)._is_back(0, end)


# ---- what is unsafe, and what is spared -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "why", "unsafe"), [(5, MET, True), (5, UNSEEN, False), (1, MET, False), (0, MET, False), (30, 0, False)]
)
def test_what_is_followed_is_unsafe_where_it_meets_something_ahead(first: int, why: int, unsafe: bool) -> None:
    """What is unknown was certified when it was planned, and where the flight is already cannot be helped."""
    one = flight(
        _plans=SimpleNamespace(of=lambda _: SimpleNamespace(points=lambda *_: STRAIGHT[:30], begin=0.0)),
        limits=SimpleNamespace(speed=np.ones(1)),
        _evasion=SimpleNamespace(is_threatened=lambda *_: False),
        _certified=lambda *_: (np.array([first, 1, 40]), np.array([why, 0, 0])),
    )
    assert one._look_along(0, 0.0, REST, STRAIGHT, {})[0] == unsafe


@pytest.mark.parametrize(("error", "more"), [(0.05, 0.0), (0.08, 0.0), (0.18, 0.05), (1.0, 0.1)])
def test_who_is_far_beside_its_plans_keeps_farther_away(error: float, more: float) -> None:
    """Half of what it is beside them beyond 8 cm, and 0.1 m at most, where it is fast."""
    radii: list[float] = []
    for own in (0.0, error):
        one = flight(limits=SimpleNamespace(jerk=np.full(1, 60.0)))
        one.tracking_errors.farthest[:] = own

        def certified(_flight: int, paths: Any, wide: Any, *_: Any) -> Any:
            radii.append(float(wide[0]))
            return np.array([len(p) for p in paths]), None

        one._certified = certified
        assert one._first_certified(0, Fast(), 0.0, 1.0, {}, np.inf) is not None
    assert radii[1] - radii[0] == pytest.approx(more)
    assert radii[0] == pytest.approx(0.3 + min(0.01 + 0.05 * 2.3, 0.2))


# ---- searching anew ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("blocked", "due"), [(2, False), (6, True), (10, True), (None, False)])
def test_a_way_that_is_blocked_ahead_is_searched_anew(blocked: int | None, due: bool) -> None:
    """Before half a second is over; not for what is beside the flight already."""
    routes = FollowedRoutes(np.array([[9.0, 0.0, 1.0]]), np.zeros((1, 2, 3)), KnownFreeSettings(), None)  # type: ignore[arg-type]
    routes.follow(0, STRAIGHT, True)
    routes._routed[0] = 0.0
    room = np.ones(len(STRAIGHT), bool)
    if blocked is not None:
        room[blocked] = False
    space: Any = SimpleNamespace(has_room=lambda points: room[len(STRAIGHT) - len(points) :])
    assert routes.due(0, 0.2, space) == due
    assert routes.due(0, 0.6, space)
    assert not routes.due(0, 0.05, space)
