"""Logs whose sensors have a wrong scale, unit or place in the body are refused beside attitudes, with what to do."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, changed, fly, quad

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_rotation_vector, multiply, rotate_inverse
from airworthy.logs import Log
from airworthy.vehicles import Known, identify
from airworthy.vehicles.identification.gathering import Gathered


@cache
def flown() -> tuple[Craft, Log]:
    craft = quad(posed=True)
    return craft, fly(craft, 16.0, 250, speed=2.0)


def gathered(log: Log, order: tuple[int, ...] = ()) -> Gathered:
    return Gathered(log, flown()[0].known(), (), (), order)


def turned(log: Log, degrees: float) -> Log:
    """Return a log whose sensor is turned about z in the body."""
    turn = from_rotation_vector([0.0, 0.0, np.deg2rad(degrees)])
    for kind in ("gyro", "accelerometer"):
        log = changed(log, kind, values=rotate_inverse(turn, log.stream(kind).values))
    return log


def without_rest(log: Log, *kinds: str) -> Log:
    return replace(log, streams=tuple(s.between(3.0, 18.0) for s in log.streams if s.kind not in kinds))


def scaled(log: Log, kind: str, factor: float) -> Log:
    return changed(log, kind, values=factor * log.stream(kind).values)


def noisy(log: Log) -> Log:
    """Return a log with 2 degrees of noise in its attitudes, which come 50 ms late."""
    stream = log.stream("attitude")
    shaken = from_rotation_vector(np.deg2rad(2.0) * np.random.default_rng(5).normal(size=(len(stream.time), 3)))
    return changed(log, "attitude", time=stream.time + 0.05, values=multiply(stream.values, shaken))


def test_a_right_log_is_taken_with_and_without_its_rest_and_attitudes() -> None:
    _, log = flown()
    for right in (log, noisy(log), without_rest(log), without_rest(noisy(log))):
        assert not any("nothing tells the accelerometer's scale" in note for note in gathered(right).notes)
    (said,) = (note for note in gathered(without_rest(log, "attitude")).notes if "no rest" in note)
    assert said.startswith("flown: There is no rest and no attitude: nothing tells the accelerometer's scale")


def test_a_vehicle_whose_thrust_has_no_scale_is_not_called_flyable() -> None:
    craft, log = flown()
    verdicts = [
        identify([one], Known(mass=(craft.mass, 1e-4), vehicle=craft.known()), quick=True).table
        for one in (without_rest(log), without_rest(log, "attitude"))
    ]
    assert [table.verdict for table in verdicts if table is not None] == ["flyable", "supported"]


@pytest.mark.parametrize("factor", [1.08, 0.9])
@pytest.mark.parametrize("late", [False, True])
def test_a_gyro_with_a_wrong_scale_is_refused(factor: float, late: bool) -> None:
    _, log = flown()
    wrong = scaled(log, "gyro", factor)
    with pytest.raises(AirworthyError, match=r"as fast as attitude:capture: its scale is wrong, .* Nothing is fitted"):
        gathered(noisy(wrong) if late else wrong)


@pytest.mark.parametrize(("factor", "said"), [(1.0 / 9.81, "look in g"), (1.12, "off by [+]1"), (0.88, "off by -1")])
def test_an_accelerometer_with_a_wrong_scale_is_refused_without_a_rest(factor: float, said: str) -> None:
    _, log = flown()
    wrong = without_rest(noisy(scaled(log, "accelerometer", factor)))
    with pytest.raises(AirworthyError, match=rf"By attitude:capture and .* gravity is .*{said}.* Nothing is fitted"):
        gathered(wrong)


@pytest.mark.parametrize(
    ("degrees", "columns", "order"),
    [(90.0, '"-y", "x", "z"', (3, 0, 1, 2)), (180.0, '"-x", "-y", "z"', (2, 3, 0, 1)), (-90.0, '"y", "-x", "z"', (1, 2, 3, 0))],
)
def test_a_sensor_that_is_turned_about_z_is_named_and_not_the_order(
    degrees: float, columns: str, order: tuple[int, ...]
) -> None:
    _, log = flown()
    wrong = turned(log, degrees)
    with pytest.raises(AirworthyError, match="degrees about z against attitude:capture") as caught:
        gathered(noisy(wrong))
    said = str(caught.value)
    assert f"turn the gyro, and the accelerometer if it sits with it: its columns are {columns}. Then motors are in" in said
    assert f"wired in the order {' '.join(str(k + 1) for k in order)} instead, say --order." in said
    # Whoever says the order has decided, and without attitudes nothing tells.
    assert gathered(wrong, order).order == order


def test_attitudes_whose_body_is_turned_are_no_turned_sensor() -> None:
    """Motors are in the gyro's frame: markers of a capture system were put on turned."""
    _, log = flown()
    values = multiply(log.stream("attitude").values, from_rotation_vector([0.0, 0.0, np.pi / 2.0]))
    assert gathered(changed(log, "attitude", values=values)).order == (0, 1, 2, 3)


def test_swapped_axes_of_a_gyro_are_named_before_gravity_that_they_turn() -> None:
    _, log = flown()
    wrong = changed(log, "gyro", values=log.stream("gyro").values[:, [1, 0, 2]])
    with pytest.raises(AirworthyError, match=r"The gyro's x and y are swapped against attitude:capture"):
        gathered(noisy(wrong))
