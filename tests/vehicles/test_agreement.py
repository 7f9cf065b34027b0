"""Do logs show one vehicle?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.vehicles.flown_logs import Excitation, changed, fly, quad

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles.identification.agreement import agreement_notes, lift_shares, refuse_orders, refuse_unlike
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals


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
    """On their batteries they differ by 5 %, which is told."""
    folder = data_dir / "flights/crazyflie_sysid"
    flights = [signals(read_log(folder / name)) for name in ("log10", "log15")]
    refuse_unlike(flights)
    (note,) = agreement_notes(flights)
    assert "log10 has 5 % more than log15" in note
