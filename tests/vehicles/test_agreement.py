"""Do logs show one vehicle?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.vehicles import drifting_flights as drifting
from tests.vehicles.flown_logs import Excitation, changed, fly, quad

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles import Known, frame_vehicle, identify
from airworthy.vehicles.identification.agreement import (
    LiftShare,
    _furthest,
    agreement_notes,
    lift_shares,
    refuse_orders,
    refuse_unlike,
    unlike_judges,
)
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.vehicles.identification.supply import as_supplied, refuse_unlike_supplied


def signals(log: Log, name: str = "") -> FlightSignals:
    found = flight_signals(log, flight_segments(log))
    return replace(found, name=name or found.name)


def lifting(log: Log, factor: float, since: float = 2.0) -> Log:
    stream = log.stream("accelerometer")
    values = stream.values.copy()
    values[stream.time > since] *= factor
    return changed(log, "accelerometer", values=values)


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(quad(), 10.0)


def test_one_vehicle_agrees_with_itself(flown: Log) -> None:
    other = signals(fly(quad(), 8.0, seed=3), "other")
    shares = lift_shares([signals(flown), other])
    assert [s.share for s in shares] == pytest.approx([1.0, 1.0], abs=0.01)
    assert agreement_notes([signals(flown), other]) == []
    refuse_unlike([signals(flown), other])


def test_another_propeller_is_told_and_another_vehicle_refused(flown: Log) -> None:
    slightly = [signals(flown, "first"), signals(lifting(flown, 0.9), "second")]
    assert lift_shares(slightly)[0].share / lift_shares(slightly)[1].share == pytest.approx(1.0 / 0.9, rel=0.02)
    (note,) = agreement_notes(slightly)
    assert note.startswith("Lift at like commands changes between flights: first has 11 % more than second.")
    refuse_unlike(slightly)
    with pytest.raises(
        AirworthyError, match=r"'first' lifts 1\.43 times as much per mass as 'second': these logs are not of one"
    ):
        refuse_unlike([signals(flown, "first"), signals(lifting(flown, 0.7), "second")])


@pytest.mark.parametrize("more", [1.12, 1.35])
def test_who_flies_heavier_is_not_explained_by_a_flatter_curve(more: float) -> None:
    """A heavier vehicle gives more command for the same force: one curve through both would hide half of its mass."""
    one = quad()
    other = quad(mass=more * one.mass)
    both = [fly(craft, 5.0, seed=k, excitation=Excitation(collective=0.2)) for k, craft in enumerate((one, other))]
    flights = [signals(log, name) for log, name in zip(both, ("empty", "loaded"), strict=True)]
    shares = lift_shares(flights)
    assert shares[0].share / shares[1].share == pytest.approx(more, rel=0.03)
    if more < 1.2:
        refuse_unlike(flights)
    else:
        with pytest.raises(AirworthyError, match="'empty' lifts 1"):
            refuse_unlike(flights)


@pytest.mark.parametrize("more", [1.15, 1.36])
def test_a_battery_that_falls_hides_and_adds_nothing(more: float) -> None:
    """It asks for more command as time goes on, which a curve for all took for one that is flat; and a thrust that is half
    linear was taken for a square, which made ratios larger by a tenth."""
    one = quad(thrust=(0.06, 0.08), sag=1.0, volts=(4.0, 3.65))
    other = replace(one, mass=more * one.mass)
    excitation = Excitation(collective=0.6)
    both = [fly(craft, 8.0, rate=250, seed=k, excitation=excitation) for k, craft in enumerate((one, other))]
    flights = [signals(log, name) for log, name in zip(both, ("empty", "loaded"), strict=True)]
    for power in (0.0, 1.0):
        shares = lift_shares(as_supplied(flights, power))
        assert shares[0].share / shares[1].share == pytest.approx(more, rel=0.015)
    if more < 1.2:
        refuse_unlike_supplied(flights)
        refuse_unlike_supplied(flights[:1], flights[1:])
        return
    with pytest.raises(AirworthyError, match=r"'empty' lifts 1\.3[4-7] times as much per mass as 'loaded'"):
        refuse_unlike_supplied(flights)
    with pytest.raises(AirworthyError, match=r"'loaded', which is held out, lifts 0\.7[2-5] times .* give another --holdout"):
        refuse_unlike_supplied(flights[:1], flights[1:])


def test_a_flight_that_judges_is_compared_with_those_that_are_fitted(flown: Log) -> None:
    """By the rule for fitted ones; between two of these it is one of them. Names need not differ."""
    fitted = signals(flown, "same")

    def judged(*factors: float) -> list[str]:
        judges = [signals(lifting(flown, factor), "same") for factor in factors]
        return [found.sentence if not found.verdict else found.verdict for found in unlike_judges([fitted], judges)]

    assert judged(1.0, 0.97) == []
    (light,) = judged(0.92)
    assert light.startswith(
        "same, which judges, lifts 8 % less per mass at like commands than same, which is fitted: its errors"
    )
    (heavy,) = judged(1.15)
    assert heavy.startswith(
        "same, which judges, lifts 15 % more per mass at like commands than same, which is fitted: no battery"
    )
    assert unlike_judges([fitted, signals(lifting(flown, 0.85), "other")], [signals(lifting(flown, 0.92), "between")]) == []
    # Too short to tell.
    assert unlike_judges([replace(fitted, spans=((3.0, 4.5),))], [fitted]) == []
    assert unlike_judges([fitted], []) == []


def test_a_held_out_flight_of_another_vehicle_judges_nothing() -> None:
    """It was "flyable" by a flight with 15 % more mass. Refused from 20 % on; in between no battery explains it."""
    changes = [drifting.NONE, *(drifting.Change(mass=mass, at=-1.0) for mass in (1.15, 1.35))]
    own, laden, heavy = drifting.fly(changes, 14.0, seed=4, push=0.3)
    what = Known((drifting.MASS, 0.001), frame_vehicle("quad_x:0.12", drifting.MASS))
    table = identify([own], what, quick=True, holdout=[laden]).table
    assert table is not None
    assert table.verdict == "do not trust"
    assert "flight_1, which judges, lifts 13 % less per mass at like commands than flight_0" in table.reasons[0]
    with pytest.raises(AirworthyError, match=r"'flight_2', which is held out, lifts 0\.7. times"):
        identify([own], what, quick=True, holdout=[heavy])


def test_a_payload_in_flight_is_told(flown: Log) -> None:
    (note,) = agreement_notes([signals(lifting(flown, 1.12, since=7.0))])
    assert "changes within a flight" in note
    assert "part 2 of 2 has" in note


def test_orders_of_motors() -> None:
    refuse_orders(["a", "b", "c"], [(0, 1, 2, 3), None, (0, 1, 2, 3)])
    with pytest.raises(AirworthyError, match="in the order 1 2 3 4, those of 'b' in the order 2 1 3 4"):
        refuse_orders(["a", "b"], [(0, 1, 2, 3), (1, 0, 2, 3)])


def test_little_tells_nothing(flown: Log) -> None:
    short = replace(signals(flown), spans=((3.0, 4.5),))
    assert lift_shares([short]) == []
    assert agreement_notes([short]) == []
    refuse_unlike([short, short])


def test_real_flights_of_one_vehicle_are_not_refused(data_dir: Path) -> None:
    """On their batteries they differ by 4 %, which is told."""
    folder = data_dir / "flights/crazyflie_sysid"
    flights = [signals(read_log(folder / name)) for name in ("log10", "log15")]
    refuse_unlike(flights)
    (note,) = agreement_notes(flights)
    assert "log10 has 4 % more than log15" in note


@pytest.mark.parametrize(("apart", "sure"), [(0.02, False), (0.04, False), (0.05, True)])
def test_a_difference_is_one_beyond_three_standard_errors(apart: float, sure: bool) -> None:
    found = _furthest([LiftShare("a", 1.0, 0.01), LiftShare("b", 1.0 + apart, 0.01)])
    assert found is not None
    assert found[2] is sure
