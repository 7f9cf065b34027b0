"""Impossible vehicles are refused with their physical reason."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import (
    Battery,
    CollisionBody,
    Disturbance,
    Drag,
    RotorResponse,
    SensorMount,
    Vehicle,
    VoltageChain,
    WrenchNoise,
    check,
    indicators,
    vehicle,
)
from airworthy.vehicles.record import Uncertainty

GOOD = vehicle("flightgoggles")


def with_rotor(**changes: object) -> Vehicle:
    return replace(GOOD, rotors=(replace(GOOD.rotors[0], **changes), *GOOD.rotors[1:]))


IMPOSSIBLE = {
    "mass is -1": replace(GOOD, mass=-1.0),
    "mass is nan": replace(GOOD, mass=math.nan),
    "beyond 1e+09": replace(GOOD, mass=1e12),
    "mass is 1e-308": replace(GOOD, mass=1e-308),
    "expected 1e-06 to 1000000": replace(GOOD, mass=1e-9),
    "not zero but less than": with_rotor(thrust=(0.0, 0.0, 1e-320)),
    "none is under": replace(GOOD, inertia=(1e-16, 1e-16, 1e-16, 0.0, 0.0, 0.0)),
    "gravity": replace(GOOD, gravity=-9.81),
    "all must be positive": replace(GOOD, inertia=(1e-3, 1e-3, 1e-3, 2e-3, 0.0, 0.0)),
    "exceeds the sum": replace(GOOD, inertia=(1e-3, 1e-3, 3e-3, 0.0, 0.0, 0.0)),
    "1 to 16 can fly": replace(GOOD, rotors=()),
    "holds 17 rotors": replace(GOOD, rotors=GOOD.rotors * 4 + GOOD.rotors[:1]),
    "motor_state": replace(GOOD, motor_state="torque"),  # type: ignore[arg-type]
    "a direction has length 1": with_rotor(axis=(0.0, 0.0, 2.0)),
    "spin is 0": with_rotor(spin=0),
    "minimum must be smaller": with_rotor(speed_min=3000.0),
    "speed_max is -1": with_rotor(speed_max=-1.0, speed_min=-2.0),
    "must not be negative": with_rotor(radius=-0.1),
    "cannot lift": with_rotor(thrust=(0.0, 0.0, -1e-6)),
    "its sign belongs in spin": with_rotor(torque=(0.0, 0.0, -1e-7)),
    "runs away": with_rotor(response=RotorResponse((-1.0, 0.0), (1.0, 0.0))),
    "never follow": with_rotor(response=RotorResponse((0.0, 0.0), (1.0, 0.0))),
    "must be [0, 1, 0]": replace(GOOD, motor_state="thrust"),
    "would push": replace(GOOD, drag=Drag(linear=(-0.1, 0.0, 0.0))),
    "is a variance": replace(GOOD, wrench_noise=WrenchNoise((-1.0, 0.0, 0.0))),
    "not in 0 to 1": replace(GOOD, disturbance=Disturbance(1.5)),
    "disturbance bounds": replace(GOOD, disturbance=Disturbance(0.5, (-1.0, 0.0, 0.0))),
    "half extent": replace(GOOD, body=CollisionBody("box", (0.1, 0.0, 0.1))),
    "radii of a sphere": replace(GOOD, body=CollisionBody("sphere", (0.1, 0.2, 0.1))),
    "body.shape": replace(GOOD, body=CollisionBody("cone", (0.1, 0.1, 0.1))),  # type: ignore[arg-type]
    "a rotation has length 1": replace(GOOD, sensors=(SensorMount("a", "imu", orientation=(0.0, 0.0, 0.0, 0.5)),)),
    "each needs its own name": replace(GOOD, sensors=(SensorMount("a", "imu"), SensorMount("a", "imu"))),
    "names a number twice": replace(GOOD, sensors=(SensorMount("a", "imu", parameters=(("f", 1.0), ("f", 2.0))),)),
    "voltage_full must exceed": replace(GOOD, battery=Battery(3.0, 4.0, 3.7, 100.0, 0.1)),
    "battery.efficiency": replace(GOOD, battery=Battery(4.2, 3.0, 3.7, 100.0, 0.1, 1.5)),
    "pwm_min must be smaller": replace(GOOD, voltage_chain=VoltageChain(1.0, 1.0, 0.0, 3.0, 9.0, 1.0, 1.0, 0.0)),
    "letters, digits": replace(GOOD, name="../evil"),
    "but without command_sag": replace(
        GOOD, uncertainty=Uncertainty(("sag",), ("linear",), (0.9,), (0.1,), ((1.0,),), (1.0,), 1.0)
    ),
}


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_impossible_vehicles_are_refused(reason: str) -> None:
    with pytest.raises(AirworthyError) as error:
        check(IMPOSSIBLE[reason])
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("This vehicle cannot exist: ")


def test_a_possible_vehicle_passes_unchanged() -> None:
    assert check(GOOD) is GOOD


def test_inertia_of_a_flat_plate_passes() -> None:
    # Jzz = Jxx + Jyy exactly: the limit of the triangle inequality, reached by a body without height.
    check(replace(GOOD, inertia=(1e-3, 2e-3, 3e-3, 0.0, 0.0, 0.0)))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_number_anywhere_is_taken_or_refused_in_a_sentence(data: st.DataObject) -> None:
    """Subnormal, huge and ordinary numbers, set into one field after the other: never a warning, never a traceback."""
    extreme = st.sampled_from([1e-320, 1e-308, 1e-40, 1e-12, -1e-320, 1e30, 1e300, -1.0, 0.0, 5e-324, math.inf, math.nan])
    value = data.draw(st.one_of(extreme, st.floats(allow_nan=True, allow_infinity=True)))
    airframe: Vehicle
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(["mass", "gravity", "inertia", "center_of_mass"]))
        old = getattr(GOOD, name)
        airframe = replace(GOOD, **{name: value if isinstance(old, float) else (value, *old[1:])})
    else:
        name = data.draw(
            st.sampled_from(["thrust", "torque", "position", "axis", "speed_max", "speed_min", "inertia", "radius"])
        )
        old = getattr(GOOD.rotors[0], name)
        airframe = with_rotor(**{name: value if isinstance(old, float) else (*old[:-1], value)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(airframe)
        except AirworthyError as error:
            said = str(error)
        else:
            said = ""
            indicators(airframe)
    assert "\n" not in said
