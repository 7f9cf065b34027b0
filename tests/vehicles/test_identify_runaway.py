"""Fits that ask for another thrust than was read are not believed, and no vehicle whose thrust misses by far is flyable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.vehicles.identification.air_speed.drag import AirDrag, runaway
from airworthy.vehicles.identification.compared import COLUMNS, HeldOutRow, _verdict
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.result import delay_note, within_record


def drag(*lifts: float) -> AirDrag:
    """Drag of flights whose thrust is so far off what their accelerometers tell."""
    items = [SimpleNamespace(name="lift", flight=k) for k in range(len(lifts))]
    fit: Any = SimpleNamespace(theta=np.array(lifts), problem=SimpleNamespace(parameters=SimpleNamespace(items=items)))
    return AirDrag(fit, False, tuple(f"flight{k}" for k in range(len(lifts))), "velocity", 0.0, 0.0, {})


@pytest.mark.parametrize(("lifts", "said"), [((0.0,), ""), ((0.049, -0.049), ""), ((0.01, -0.06), "'flight1' lift 6 % less")])
def test_thrust_that_runs_away_is_told(lifts: tuple[float, ...], said: str) -> None:
    found = runaway(drag(*lifts))
    assert (said in found) if said else not found
    assert "12 % more" in runaway(drag(0.12))


def rows(skill: float, hold: float, force: float) -> list[HeldOutRow]:
    turned = dict.fromkeys(COLUMNS, 1.0) | {"trimmed": 1.0 - skill}
    lifted = dict.fromkeys(COLUMNS, 9.0) | {"hold": hold, "identified": force}
    return [
        HeldOutRow("rate", "excited", 0.25, turned, turned, 0.9),
        HeldOutRow("force", "all", 0.25, lifted, lifted, 0.9),
    ]


@pytest.mark.parametrize(
    ("hold", "force", "verdict"),
    [
        (0.4, 0.45, "flyable"),
        (0.4, 0.79, "flyable"),
        (0.4, 0.81, "do not trust"),
        (0.1, 0.49, "flyable"),
        (0.1, 0.51, "do not trust"),
    ],
)
def test_who_turns_as_foretold_and_lifts_otherwise_is_not_flyable(hold: float, force: float, verdict: str) -> None:
    word, reasons = _verdict(rows(0.8, hold, force), True, True)
    assert word == verdict
    if word == "do not trust":
        (said,) = reasons
        assert said.startswith(
            f"Specific force a quarter of a second ahead is off by {force:.2g} m/s^2, and by {hold:.2g} where"
        )
    else:
        assert reasons == ()


def test_vehicles_that_do_not_turn_as_foretold_are_what_they_were() -> None:
    assert _verdict(rows(0.2, 0.4, 0.4), True, True) == ("supported", ())
    word, (said,) = _verdict(rows(-0.1, 0.4, 0.4), True, True)
    assert word == "do not trust"
    assert said.startswith(
        "Rates a quarter of a second ahead, where the flight is excited, are off by 1.1 rad/s, and by 1 where"
    )
    assert _verdict(rows(0.8, 0.4, 0.4), True, False) == ("do not trust", ("Its rotors cannot carry its weight.",))


def test_of_flights_that_do_not_turn_the_force_is_judged() -> None:
    turned, lifted = (dict.fromkeys(COLUMNS, 1.0) | {"trimmed": 1.0 - skill} for skill in (-0.5, 0.5))
    judged = [HeldOutRow(k, "excited", 0.25, v, v, 0.9) for k, v in (("rate", turned), ("force", lifted))]
    assert _verdict(judged, False, True) == ("supported", ())
    assert _verdict(judged, True, True)[0] == "do not trust"
    (said,) = _verdict(judged[:1], False, True)[1]
    assert "nothing there judges it" in said


def test_a_flight_of_another_vehicle_judges_nothing() -> None:
    """However well it is predicted."""
    assert _verdict(rows(0.8, 0.4, 0.4), True, True, ["It lifts less."]) == ("do not trust", ("It lifts less.",))


@pytest.mark.parametrize("delay", [-0.7e-3, 0.7e-3])
def test_a_dead_time_that_no_record_holds_makes_the_lag_unsure(delay: float) -> None:
    """Of a log without noise the lag was sure to a thousandth, and four deviations off: a third of a step was missing."""
    problem: Any = SimpleNamespace(parameters=SimpleNamespace(place=["lag", "command_delay"].index))
    sure = np.diag([1e-3**2, 5e-5**2])
    fit = Fit(problem, np.array([np.log(0.035), delay]), 1.0, np.ones(2), np.ones(2), sure, 3)
    lag, late = within_record(fit).sd
    if delay > 0.0:
        assert (lag, late) == pytest.approx((1e-3, 5e-5))
        assert delay_note(fit) == []
    else:
        assert (lag, late) == pytest.approx((np.hypot(1e-3, 0.02), np.hypot(5e-5, 0.7e-3)))
        assert delay_note(fit) == [
            "The fit asks for a dead time of -0.7 ms; the record says 0, and lag and dead time are unsure by as much."
        ]
    assert np.array_equal(fit.covariance, sure)
