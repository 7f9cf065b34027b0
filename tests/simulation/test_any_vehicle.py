"""Vehicles without a level hover, and without any: they fly at every level, and what falls is not called a success."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

from airworthy.cli.main import main
from airworthy.control.effectors import holds_yaw
from airworthy.control.kernel import LEVELS, TRIMMED_LEVELS
from airworthy.core.frames import multiply, rotate, to_matrix
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import (
    Disturbance,
    Rotor,
    Vehicle,
    WrenchNoise,
    control_effectiveness,
    hover_speed,
    hover_trim,
    thrust_limits,
    vehicle,
    write_vehicle,
)

RACER = replace(vehicle("flightgoggles"), wrench_noise=WrenchNoise(), disturbance=Disturbance())


def with_axis(rotor: Rotor, x: float, y: float = 0.0) -> Rotor:
    axis = np.array([math.tan(x), math.tan(y), 1.0])
    return replace(rotor, axis=tuple(float(a) for a in axis / np.linalg.norm(axis)))


def every(change: object) -> Vehicle:
    return replace(RACER, rotors=tuple(change(r) for r in RACER.rotors))  # type: ignore[operator]


DEAD = replace(RACER.rotors[0], thrust=(0.0, 0.0, 0.0), torque=(0.0, 0.0, 0.0))
LEANING = {
    "one_bent_arm": replace(RACER, rotors=(with_axis(RACER.rotors[0], math.radians(0.01)), *RACER.rotors[1:])),
    "urdf_rounding": every(lambda r: with_axis(r, 0.0035, -0.0035)),
    "all_tilted": every(lambda r: with_axis(r, math.radians(5.0))),
    "steep": every(lambda r: with_axis(r, math.radians(30.0), math.radians(-20.0))),
}
HOVERLESS = {
    "rotor_out": replace(RACER, rotors=(DEAD, *RACER.rotors[1:])),
    "overweight": replace(RACER, mass=10.0),
    "mass_beside_the_rotors": replace(RACER, center_of_mass=(0.2, 0.0, 0.0)),
    "no_thrust": every(lambda r: DEAD),
    "one_way": every(lambda r: replace(r, spin=1)),
}
HIGH = np.array([0.0, 0.0, 1000.0])


@pytest.mark.parametrize("level", sorted(set(LEVELS) - {"tracking:crazyflie"}))
def test_every_vehicle_flies_at_every_level(level: str) -> None:
    crafts = [*LEANING.values(), *HOVERLESS.values()]
    simulator = Simulator(crafts, SimulatorConfig(level=level))
    simulator.reset(position=HIGH)
    command = np.zeros((len(crafts), LEVELS[level].width(4)))
    if level.startswith(("position", "pose", "tracking")):
        command[:, :3] = HIGH
    simulator.advance(20, command)
    assert np.isfinite(simulator.field("rotor_speed")).all()
    assert not simulator.diverged.any()


def hovering(level: str, crafts: list[Vehicle]) -> Simulator:
    """Ten seconds of hover, from rest and level."""
    simulator = Simulator(crafts, SimulatorConfig(level=level))
    simulator.reset(position=HIGH, attitude=(0.0, 0.0, 0.0, 1.0))
    command = np.zeros(LEVELS[level].width(4))
    if level.startswith(("position", "tracking")):
        command[:3] = HIGH
    simulator.advance(9600, command)
    return simulator


@pytest.mark.parametrize("level", TRIMMED_LEVELS)
def test_laws_that_choose_the_attitude_hover_leaning(level: str) -> None:
    """Steady: 0.1 mm of error where position is controlled, 0.1 mm/s of drift where velocity is, the rotors' force upright."""
    simulator = hovering(level, list(LEANING.values()))
    if level in ("position", "tracking"):
        assert np.linalg.norm(simulator.position - HIGH, axis=1).max() < 1e-4
    if level != "acceleration":  # which keeps the velocity that levelling out gave it
        limit = 1e-4 if not level.startswith("tracking:") else 1e-2  # integrals are still at work
        assert np.linalg.norm(simulator.velocity, axis=1).max() < limit
    for airframe, attitude in zip(LEANING.values(), simulator.attitude, strict=True):
        up = rotate(attitude, np.array(hover_trim(airframe).up))
        assert np.linalg.norm(up - [0.0, 0.0, 1.0]) < (1e-4 if not level.startswith("tracking:") else 1e-2)


def test_the_yaw_asked_for_is_that_of_the_frame_that_is_level_in_hover() -> None:
    airframe = LEANING["steep"]
    simulator = Simulator([airframe], SimulatorConfig(level="position"))
    simulator.reset(position=HIGH)
    simulator.advance(9600, [*HIGH, 1.2])
    level = multiply(simulator.attitude[0], np.array(hover_trim(airframe).attitude) * [-1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(rotate(level, np.array([1.0, 0.0, 0.0])), [math.cos(1.2), math.sin(1.2), 0.0], atol=1e-4)


def test_a_reset_without_attitude_starts_in_the_trim_and_raw_rotor_speeds_keep_it() -> None:
    airframe = LEANING["steep"]
    simulator = Simulator([airframe], SimulatorConfig(level="rotor_speed"))
    simulator.reset(position=HIGH)
    np.testing.assert_allclose(simulator.attitude[0], hover_trim(airframe).attitude, atol=1e-7)
    simulator.advance(960, hover_speed(airframe))
    assert np.linalg.norm(simulator.position[0] - HIGH) < 1e-4


@pytest.mark.parametrize("slowest", [0.0, 150.0])
def test_a_rotor_without_thrust_is_no_rotor_at_a_limit(slowest: float) -> None:
    """It stands still for good; the others are counted as ever."""
    ring = [(0.2 * math.cos(k * math.pi / 3), 0.2 * math.sin(k * math.pi / 3), 0.0) for k in range(6)]
    pairs = zip(ring, (1, 1, -1, -1, 1, -1), strict=True)
    rotors = [replace(RACER.rotors[0], position=p, spin=s, speed_min=slowest) for p, s in pairs]
    rotors[1] = replace(rotors[1], thrust=(0.0, 0.0, 0.0), torque=(0.0, 0.0, 0.0))
    airframe = replace(RACER, name="hexa", rotors=tuple(rotors))
    simulator = Simulator([airframe], SimulatorConfig(level="position"))
    simulator.reset(position=HIGH)
    simulator.advance(96, [*HIGH, 0.0])
    assert simulator.field("rotor_command")[0, 1] == 0.0
    assert simulator.field("rotor_command")[0, [0, 2, 3, 4, 5]].min() > slowest
    assert simulator.field("saturated")[0] == 0.0
    direct = Simulator([airframe], SimulatorConfig(level="rotor_speed"))
    direct.reset(position=HIGH)
    for others, share in ((900.0, 0.0), (3000.0, 1.0)):
        direct.advance(8, [others, 0.0, *[others] * 4])
        assert direct.field("saturated")[0] == share


def test_a_leaning_vehicle_changes_no_bit_of_the_flights_beside_it() -> None:
    crafts = [RACER, replace(vehicle("lmf2"), wrench_noise=WrenchNoise()), vehicle("cf2x_L250")]
    command = np.array([1.0, -2.0, 1001.0, 0.5])
    flights = []
    for beside in ([], [LEANING["steep"]]):
        simulator = Simulator([*crafts, *beside], SimulatorConfig(level="position"), flight_ids=range(3 + len(beside)))
        simulator.reset(position=HIGH)
        simulator.advance(960, command)
        flights.append(
            [simulator.field(name)[:3].copy() for name in ("position", "velocity", "attitude", "rate", "rotor_speed")]
        )
    for alone, together in zip(*flights, strict=True):
        np.testing.assert_array_equal(alone, together)


def test_a_quadrotor_with_a_rotor_out_stays_in_place_while_it_turns() -> None:
    """Yaw cannot be held, so it is left out; thrust and tilt can."""
    simulator = hovering("position", [HOVERLESS["rotor_out"]])
    assert np.linalg.norm(simulator.position[0] - HIGH) < 0.01
    assert abs(simulator.rate[0, 2]) > 1.0


def hexarotor(spins: tuple[int, ...], out: int | None) -> Vehicle:
    """Six rotors of `RACER` on a circle, numbered round it, one of them without thrust."""
    angles = [k * math.pi / 3 for k in range(6)]
    places = [(0.2 * math.cos(a), 0.2 * math.sin(a), 0.0) for a in angles]
    rotors = [replace(RACER.rotors[0], position=p, spin=s) for p, s in zip(places, spins, strict=True)]
    dead = {} if out is None else {"thrust": (0.0, 0.0, 0.0), "torque": (0.0, 0.0, 0.0)}
    return replace(RACER, rotors=tuple(replace(r, **dead) if k == out else r for k, r in enumerate(rotors)))


ALTERNATING, IN_PAIRS = (1, -1, 1, -1, 1, -1), (1, 1, -1, -1, 1, -1)


@pytest.mark.parametrize("level", ["position", "tracking", "tracking:mellinger"])
def test_a_hexarotor_with_any_rotor_out_holds_its_place(level: str) -> None:
    """Five rotors of alternating spins cannot hold yaw while none pushes down; of spins in pairs, four of the six sets can.

    Hover as the flight check of synthesised vehicles asks for it: within 0.1 m for 5 s.
    """
    crafts = [hexarotor(spins, out) for spins in (ALTERNATING, IN_PAIRS) for out in range(6)]
    assert [holds_yaw(airframe) for airframe in crafts] == [False] * 6 + [True] * 4 + [False] * 2
    simulator = Simulator(crafts, SimulatorConfig(level=level))
    simulator.reset(position=HIGH, attitude=(0.0, 0.0, 0.0, 1.0))
    command = np.zeros(LEVELS[level].width(4))
    command[:3] = HIGH
    farthest = np.zeros(len(crafts))
    for _ in range(50):
        simulator.advance(96, command)
        farthest = np.maximum(farthest, np.linalg.norm(simulator.position - HIGH, axis=1))
    assert farthest.max() < 0.1
    turning = np.abs(simulator.rate[:, 2])
    assert (turning[:6] > 5.0).all()
    assert (turning[6:10] < 1e-3).all()


def test_yaw_is_held_where_thrusts_around_hover_reach_it() -> None:
    """Against linear programs in every direction of roll, pitch and yaw, for airframes drawn at random."""
    rng, found = np.random.default_rng(4), []
    for _ in range(60):
        count = int(rng.integers(4, 7))
        spots = rng.uniform(-0.2, 0.2, (count, 2))
        rotors = [
            replace(RACER.rotors[0], position=(x, y, 0.0), spin=int(s))
            for (x, y), s in zip(spots, rng.choice([-1, 1], count), strict=True)
        ]
        airframe = replace(RACER, rotors=tuple(rotors))
        rows = control_effectiveness(airframe)[2:]
        if np.linalg.matrix_rank(rows, tol=1e-6) < 4:
            continue
        reach = [min(_reach(airframe, rows[:k], axis, sign) for axis in range(1, k) for sign in (-1.0, 1.0)) for k in (3, 4)]
        if reach[0] > 1e-3:  # [N m]; roll and pitch are in hand
            assert holds_yaw(airframe) == (reach[1] > 0.0), reach
            found.append(holds_yaw(airframe))
    assert 5 < sum(found) < len(found) - 5


def _reach(airframe: Vehicle, rows: np.ndarray, axis: int, sign: float) -> float:
    """Largest moment about one axis [N m] at a thrust of the weight and no moment about the other axes of `rows`."""
    lower, upper = thrust_limits(airframe)
    fixed = [k for k in range(len(rows)) if k != axis]
    target = [airframe.mass * airframe.gravity, 0.0, 0.0, 0.0]  # Fz, then moments
    found = scipy.optimize.linprog(
        -sign * rows[axis], A_eq=rows[fixed], b_eq=[target[k] for k in fixed], bounds=list(zip(lower, upper, strict=True))
    )
    return -float(found.fun) if found.status == 0 else -math.inf


def test_what_cannot_hold_its_yaw_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "five.toml"
    write_vehicle(replace(hexarotor(ALTERNATING, 2), name="five"), path)
    assert main(["vehicles", "validate", str(path)]) == 0
    assert "WARNING: it cannot hold its yaw: " in capsys.readouterr().out
    out = tmp_path / "run"
    assert main(["fly", "--vehicle", str(path), "--course", "line", "--no-report", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "WARNING: five cannot hold its yaw: " in printed
    assert "partial: the course was flown, but yaw was off by more than 30 degrees" in printed
    (flight,) = json.loads((out / "summary.json").read_text())["flights"]
    assert flight["outcome"] == "partial"  # the course is flown, its yaw is not


def test_an_overweight_vehicle_falls_as_its_thrust_says() -> None:
    airframe = HOVERLESS["overweight"]
    simulator = Simulator([airframe], SimulatorConfig(level="position"))
    simulator.reset(position=HIGH)
    simulator.advance(480, [*HIGH, 0.0])
    before = float(simulator.velocity[0, 2])
    simulator.advance(96)
    lift = sum(r.thrust[2] * r.speed_max**2 for r in airframe.rotors) / airframe.mass
    assert (float(simulator.velocity[0, 2]) - before) / 0.1 == pytest.approx(lift - airframe.gravity, rel=0.05)
    assert to_matrix(simulator.attitude[0])[2, 2] > 0.999


@pytest.mark.parametrize("name", ["rotor_out", "overweight", "mass_beside_the_rotors"])
def test_what_cannot_hover_never_succeeds(name: str, tmp_path: Path) -> None:
    path = write_vehicle(replace(HOVERLESS[name], name=name), tmp_path / f"{name}.toml") or tmp_path / f"{name}.toml"
    out = tmp_path / "run"
    assert main(["fly", "--vehicle", str(path), "--course", "line", "--out", str(out)]) == 0
    (flight,) = json.loads((out / "summary.json").read_text())["flights"]
    assert flight["outcome"] in ("collision", "off_course", "out_of_bounds", "diverged", "not_at_goal")


@pytest.mark.slow
def test_a_leaning_vehicle_flies_a_course_as_a_level_one_does(tmp_path: Path) -> None:
    errors = []
    for airframe in (RACER, LEANING["all_tilted"], LEANING["one_bent_arm"]):
        write_vehicle(airframe, tmp_path / "airframe.toml")
        out = tmp_path / str(len(errors))
        assert main(["fly", "--vehicle", str(tmp_path / "airframe.toml"), "--course", "line", "--out", str(out)]) == 0
        (flight,) = json.loads((out / "summary.json").read_text())["flights"]
        assert flight["outcome"] == "success"
        errors.append(flight["tracking_error_m"])
    assert max(errors) < 1.1 * errors[0]
