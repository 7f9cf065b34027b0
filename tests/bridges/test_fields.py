"""Every field of every message against values computed by hand from rotation matrices, for random states."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.bridges.conftest import make_pilot

from airworthy.bridges.ardupilot import ServoPacket, servo_packet, state_line
from airworthy.bridges.betaflight import Sticks, rc_packet, state_packet
from airworthy.bridges.mavlink import encode
from airworthy.bridges.px4 import Px4Pilot, hil_gps, hil_sensor, hil_state
from airworthy.bridges.stick_pilot import stick_for_rate
from airworthy.bridges.vehicle_sample import VehicleSample, vehicle_sample
from airworthy.core.frames import to_matrix
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.suite import NavigationSensors

HOME = Home(47.397742, 8.545594, 488.0)
NED = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])  # rows: north, east, down of an east, north, up
FRD = np.diag([1.0, -1, -1])
STATES = range(20)


class State:
    """A random state in our frames, and what an autopilot should be told of it."""

    def __init__(self, number: int):
        rng = np.random.default_rng(number)
        self.position, self.velocity = rng.normal(0, 20, 3), rng.normal(0, 5, 3)
        attitude = rng.normal(size=4)
        self.attitude = attitude / np.linalg.norm(attitude)
        self.rate, self.imu = rng.normal(0, 3, 3), np.concatenate([rng.normal(0, 10, 3), rng.normal(0, 3, 3)])
        sensors = NavigationSensors(HOME, "ideal", "ideal", "ideal")
        self.field = sensors.field
        found = sensors.sample(0.0, self.position[None], self.velocity[None], self.attitude[None])
        self.turn = to_matrix(self.attitude)  # body FLU to world ENU
        self.sample: VehicleSample = vehicle_sample(
            1.25, self.position, self.velocity, self.attitude, self.rate, self.imu, found
        )


def turn_of(w: float, x: float, y: float, z: float) -> np.ndarray:
    return to_matrix(np.array([x, y, z, w]))


@pytest.mark.parametrize("number", STATES)
def test_px4(number: int) -> None:
    state = State(number)
    sensor = hil_sensor(state.sample)
    assert sensor["time_usec"] == 1_250_000
    np.testing.assert_allclose([sensor[f"{a}acc"] for a in "xyz"], FRD @ state.imu[:3], atol=1e-12)
    np.testing.assert_allclose([sensor[f"{a}gyro"] for a in "xyz"], FRD @ state.imu[3:], atol=1e-12)
    np.testing.assert_allclose([sensor[f"{a}mag"] for a in "xyz"], FRD @ state.turn.T @ state.field, atol=1e-12)
    height = 488.0 + state.position[2]
    share = 1.0 - 0.0065 * height / 288.15
    assert sensor["abs_pressure"] == pytest.approx(1013.25 * share**5.25588, rel=1e-6)  # ISO 2533's exponent, to five digits
    assert sensor["pressure_alt"] == pytest.approx(height, abs=1e-6)
    assert sensor["temperature"] == pytest.approx(15.0 - 0.0065 * height, abs=1e-9)
    assert sensor["fields_updated"] == 0x7 | 0x38 | 0x1C0 | 0x200 | 0x800 | 0x1000

    assert state.sample.navigation.gnss is not None
    gps = hil_gps(state.sample.navigation.gnss)
    north, east, down = NED @ state.velocity
    assert (gps["vn"], gps["ve"], gps["vd"]) == (round(100 * north), round(100 * east), round(100 * down))
    assert gps["vel"] == round(100 * math.hypot(north, east))
    assert gps["cog"] == round(100 * (math.degrees(math.atan2(east, north)) % 360)) % 36000
    back = HOME.local(gps["lat"] / 1e7, gps["lon"] / 1e7, gps["alt"] / 1e3)
    np.testing.assert_allclose(back, state.position, atol=0.008)  # half of 1e-7 deg: 5.6 mm; half of 1 mm

    place = tuple(float(value) for value in HOME.geodetic(state.position))
    truth = hil_state(state.sample, (place[0], place[1], place[2]))
    np.testing.assert_allclose(turn_of(*truth["attitude_quaternion"]), NED @ state.turn @ FRD, atol=1e-12)
    rates = [truth[name] for name in ("rollspeed", "pitchspeed", "yawspeed")]
    np.testing.assert_allclose(rates, FRD @ state.rate, atol=1e-12)
    assert [truth[name] for name in ("vx", "vy", "vz")] == [round(100 * value) for value in NED @ state.velocity]
    milli_g = [round(value / 9.80665e-3) for value in FRD @ state.imu[:3]]
    assert [truth[name] for name in ("xacc", "yacc", "zacc")] == milli_g


@pytest.mark.parametrize(("accuracy", "told"), [((0.8, 1.25), (80, 125)), ((0.001, 1e4), (1, 65535))])
def test_accuracy_of_a_fix_is_in_centimetres(accuracy: tuple[float, float], told: tuple[int, int]) -> None:
    """PX4 takes eph and epv of HIL_GPS times 0.01 for metres; 0 would be no accuracy at all, and 16 bits end at 655.35 m."""
    fix = State(0).sample.navigation.gnss
    assert fix is not None
    gps = hil_gps(replace(fix, accuracy=accuracy))
    assert (gps["eph"], gps["epv"]) == told


@pytest.mark.parametrize(("mode", "armed"), [(1, False), (129, True)])
def test_motors_of_an_unarmed_px4_are_off(mode: int, armed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it sends for them then, numbers or NaN, is no command."""
    controls = [0.25, 0.5, 0.75, float("nan") if not armed else 1.0] + [0.0] * 12
    frame = encode("HIL_ACTUATOR_CONTROLS", {"time_usec": 1, "flags": 1, "controls": controls, "mode": mode}, 0)
    link = SimpleNamespace(receive=lambda deadline: frame, close=lambda: None, refused=0)
    monkeypatch.setattr("airworthy.bridges.px4.TcpLink", lambda *_: link)
    with make_pilot("px4", 4560) as pilot:
        assert isinstance(pilot, Px4Pilot)
        reply = pilot._reply(deadline=0.0)
    assert reply is not None
    assert reply.armed is armed
    assert reply.commands.tolist() == (controls if armed else [0.0] * 16)


def test_px4_is_not_told_of_what_is_not_new() -> None:
    sensors = NavigationSensors(HOME)
    at = (np.zeros((1, 3)), np.zeros((1, 3)), np.array([[0.0, 0, 0, 1]]))
    sensors.sample(0.0, *at)
    nothing = sensors.sample(0.001, *at)
    sample = vehicle_sample(0.001, *(value[0] for value in at), np.zeros(3), np.zeros(6), nothing)
    assert hil_sensor(sample)["fields_updated"] == 0x3F


@pytest.mark.parametrize("number", STATES)
def test_ardupilot(number: int) -> None:
    state = State(number)
    line = state_line(state.sample)
    assert line.startswith(b"\n")
    assert line.endswith(b"\n")
    told = json.loads(line)
    assert told["timestamp"] == 1.25
    np.testing.assert_allclose(told["imu"]["gyro"], FRD @ state.imu[3:], atol=1e-12)
    np.testing.assert_allclose(told["imu"]["accel_body"], FRD @ state.imu[:3], atol=1e-12)
    np.testing.assert_allclose(told["position"], NED @ state.position, atol=1e-12)
    np.testing.assert_allclose(told["velocity"], NED @ state.velocity, atol=1e-12)
    np.testing.assert_allclose(turn_of(*told["quaternion"]), NED @ state.turn @ FRD, atol=1e-12)


@pytest.mark.parametrize(("magic", "count"), [(18458, 16), (29569, 32)])
def test_servo_packets(magic: int, count: int) -> None:
    pulses = tuple(range(1000, 1000 + count))
    data = struct.pack(f"<HHI{count}H", magic, 400, 70000, *pulses)
    assert servo_packet(data) == ServoPacket(400, 70000, pulses)
    assert servo_packet(data[:-1]) == f"{len(data) - 1} bytes; {count} channels have {len(data)}"
    assert servo_packet(b"\x01") == "1 bytes are too few for a servo packet"
    assert servo_packet(b"\0" * 40) == "the magic number is 0; ArduPilot's are 18458 and 29569"


@pytest.mark.parametrize("form", ["gazebo", "legacy", "before_2026"])
@pytest.mark.parametrize("number", STATES)
def test_betaflight(number: int, form: str) -> None:
    state = State(number)
    v = np.array(struct.unpack("<18d", state_packet(state.sample, HOME, form)))  # type: ignore[arg-type]
    assert v[0] == 1.25
    # The firmware turns what it is given to forward, left, up: x, -y and, by its form, z or -z.
    np.testing.assert_allclose(v[1:4] * ((1, -1, 1) if form == "gazebo" else (1, -1, -1)), state.imu[3:], atol=1e-12)
    np.testing.assert_allclose(-v[4:7], state.imu[:3], atol=1e-12)
    north_west_up = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    turn, wanted = turn_of(*v[7:11]), north_west_up @ state.turn
    if form == "gazebo":  # half a turn about x on both sides, then a quarter turn to the left
        turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ FRD @ turn @ FRD
    if form == "before_2026":  # angles are read from the first column and the last row, two signs of which it turns
        turn[1:, 0] *= -1.0
        np.testing.assert_allclose([*turn[:, 0], *turn[2]], [*wanted[:, 0], *wanted[2]], atol=1e-12)
    else:
        np.testing.assert_allclose(turn, wanted, atol=1e-12)
    np.testing.assert_allclose(v[11:14], state.velocity, atol=1e-12)
    np.testing.assert_allclose(HOME.local(v[15], v[14], v[16]), state.position, atol=1e-6)
    share = 1.0 - 0.0065 * (488.0 + state.position[2]) / 288.15
    assert v[17] == pytest.approx(101325.0 * share**5.25588, rel=1e-6)


def test_a_betaflight_of_the_gazebo_form_mirrors_places_back() -> None:
    """sitl.c takes twice the first latitude and longitude less what it is told."""
    first, later = State(1).sample, State(2)
    told = [struct.unpack("<18d", state_packet(each, HOME, "gazebo", first.position)) for each in (first, later.sample)]
    longitude, latitude = (2.0 * told[0][k] - told[1][k] for k in (14, 15))
    # Mirrored on the ellipsoid and in the plane are the same within what a degree's length changes over some metres.
    np.testing.assert_allclose(HOME.local(latitude, longitude, told[1][16]), later.position, atol=2e-3)
    plain = struct.unpack("<18d", state_packet(later.sample, HOME, "legacy", first.position))
    np.testing.assert_allclose(HOME.local(plain[15], plain[14], plain[16]), later.position, atol=1e-6)


@pytest.mark.parametrize("degrees", [-700.0, -30.0, 0.0, 1.0, 70.0, 300.0, 670.0])
def test_a_stick_asks_for_its_rate(degrees: float) -> None:
    """Forward: Betaflight's actual rates (rc.c, applyActualRates) with rc_rate 7, srate 67 and no expo."""
    stick = stick_for_rate(np.radians(degrees))
    assert abs(stick) <= 1.0
    asked = stick * 70.0 + (670.0 - 70.0) * abs(stick) * stick
    assert asked == pytest.approx(np.clip(degrees, -670.0, 670.0), abs=1e-9)


def test_sticks() -> None:
    sticks = Sticks(roll=0.5, pitch=-1.0, yaw=2.0, throttle=0.25, arm=True, angle=True)
    found = struct.unpack("<d16H", rc_packet(3.0, sticks))
    assert found[:7] == (3.0, 1750, 1000, 1250, 2000, 2000, 2000)
    assert struct.unpack("<d16H", rc_packet(0.0, Sticks(angle=False)))[1:7] == (1500, 1500, 1000, 1500, 1000, 1000)
