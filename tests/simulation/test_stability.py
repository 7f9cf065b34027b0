"""Every vehicle at every physics rate with every integrator: flown as at 4,000 Hz, or refused with a sentence."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError
from airworthy.simulation import family, stability
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle, vehicle_names
from airworthy.vehicles.record import Disturbance, Drag, RotorResponse, Vehicle, WrenchNoise

STIFF = ("cf2x_gym_pybullet_drones", "cf2x_scg_iros2022")
"""Rotors with a lag of 1 ms."""
RATES = (100.0, 130.0, 240.0, 333.0, 500.0, 960.0, 2000.0)
QUICK = (100.0, 333.0)
"""The least, and one that divides neither the control's rate nor the reference's; the others are slow tests."""
GOAL = (0.3, -0.2, 0.2, 0.1)


def quiet(name: str, **changes: Any) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance(), **changes)


def with_response(rise: tuple[float, float], fall: tuple[float, float] | None = None, name: str = "x500") -> Vehicle:
    item = quiet(name)
    response = RotorResponse(rise, rise if fall is None else fall)
    return replace(item, name="mine", rotors=tuple(replace(r, response=response) for r in item.rotors))


def flown(fleet: list[Vehicle], rate: float, integrator: Any, gains: str = "auto") -> tuple[np.ndarray, np.ndarray]:
    """Positions (env, 3) after 1.5 s towards a goal and largest body rates of the last 0.3 s (env,)."""
    control = ControlConfig(gains=gains)
    config = SimulatorConfig(level="position", physics_rate=rate, control_rate=100.0, integrator=integrator, control=control)
    simulator = Simulator(fleet, config)
    simulator.set_command(GOAL)
    fastest = np.zeros(len(fleet))
    for step in range(150):
        simulator.step()
        if step >= 120:
            fastest = np.maximum(fastest, np.abs(simulator.rate).max(axis=1))
    assert not simulator.diverged.any()
    return np.array(simulator.position), fastest


@cache
def fleet() -> tuple[Vehicle, ...]:
    return tuple(quiet(name) for name in vehicle_names())


@cache
def reference() -> tuple[np.ndarray, np.ndarray]:
    return flown(list(fleet()), 4000.0, "rk4")


@pytest.mark.parametrize("rate", [rate if rate in QUICK else pytest.param(rate, marks=pytest.mark.slow) for rate in RATES])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "semi_implicit"])
def test_whole_catalogue(integrator: str, rate: float) -> None:
    """Where a vehicle is after 1.5 s differs from 4,000 Hz by the laws' one step of delay and by Euler's first order.

    Both shrink with the step: 6 cm of a way of 0.41 m at 100 Hz bound every vehicle (the worst is at 3.5), and rates at rest
    are those of the reference.
    """
    position, fastest = flown(list(fleet()), rate, integrator)
    away = np.linalg.norm(position - reference()[0], axis=1)
    for k, item in enumerate(fleet()):
        assert away[k] < 6.0 / rate, (item.name, away[k])
        assert fastest[k] < reference()[1][k] + 30.0 / rate, (item.name, fastest[k])


def test_who_is_solved_exactly() -> None:
    """Rotors whose lag is shorter than the integrator can follow, and no others: 1 ms at 480 Hz, not at 500 Hz."""
    names = vehicle_names()
    for rate, integrator, expected in (
        (480.0, "rk4", set(STIFF)),
        (500.0, "rk4", set()),
        (960.0, "euler", set(STIFF)),
        (1000.0, "semi_implicit", set()),
    ):
        simulator = Simulator(list(fleet()), SimulatorConfig(physics_rate=rate, integrator=integrator))  # type: ignore[arg-type]
        assert {names[k] for k in np.flatnonzero(simulator.exact_rotors)} == expected


def test_a_stiff_neighbour_changes_no_bit() -> None:
    """Beside a vehicle whose rotors are solved exactly the others fly as alone; and the stiff one as alone."""
    fleet = [quiet("real_05"), quiet(STIFF[0]), quiet("cf2x_L250"), quiet("base_random")]
    config = SimulatorConfig(level="position", physics_rate=240.0)

    def fly(items: list[Vehicle], ids: list[int]) -> Simulator:
        simulator = Simulator(items, config, flight_ids=ids)
        simulator.set_command(GOAL)
        for _ in range(20):
            simulator.step()
        return simulator

    together = fly(fleet, [0, 1, 2, 3])
    assert together.exact_rotors.tolist() == [False, True, False, False]
    for k, item in enumerate(fleet):
        alone = fly([item], [k])
        for field in ("position", "velocity", "attitude", "rate"):
            assert alone.field(field)[0].tobytes() == together.field(field)[k].tobytes(), (item.name, field)


def test_twin_is_exact_in_the_same_lanes() -> None:
    simulator = Simulator([quiet("real_05"), quiet(STIFF[0])], SimulatorConfig(level="position", physics_rate=240.0))
    twin = Twin(simulator)
    simulator.advance(24, GOAL)
    twin.advance(24, GOAL)
    for name in ("position", "velocity", "rate"):
        assert simulator.field(name) == pytest.approx(twin.field(name), abs=2e-5), name
    assert simulator.rotor_speed == pytest.approx(twin.field("rotor_speed"), rel=1e-4)


# ---- what has no exact solution ----------------------------------------------------------------------------------------------


def least_rate(message: str) -> float:
    found = re.search(r"set physics_rate to at least (\d+) Hz", message)
    assert found, message
    assert "\n" not in message
    return float(found[1])


@pytest.mark.parametrize("integrator", ["rk4", "euler", "semi_implicit"])
def test_second_order_rotors_are_refused_or_fly(integrator: Any) -> None:
    """dw/dt = b (c^2 - w^2) has the pole 2 b w_max = 440 1/s: the rate that the sentence names flies, one less is refused."""
    item = with_response((0.0, 440.0 / 2.0 / vehicle("x500").rotors[0].speed_max))
    with pytest.raises(AirworthyError, match="rotors answer of mine within") as refused:
        Simulator(item, SimulatorConfig(physics_rate=150.0, integrator=integrator))
    least = least_rate(str(refused.value))
    assert least == (220.0 if integrator == "rk4" else 440.0)
    with pytest.raises(AirworthyError):
        Simulator(item, SimulatorConfig(physics_rate=least - 1.0, integrator=integrator))
    position, _ = flown([item], least, integrator)
    assert np.linalg.norm(position - flown([item], 4000.0, "rk4")[0]) < 6.0 / least


def test_drag_is_refused_or_flies() -> None:
    """Angular damping of 300 1/s and quadratic drag that brakes within milliseconds, too fast for 100 Hz."""
    base = quiet("x500")
    turning = replace(base, drag=Drag(angular_linear=tuple(300.0 * j for j in base.inertia[:3])))  # type: ignore[arg-type]
    moving = replace(base, drag=Drag(quadratic_norm=(300.0,) * 3))
    for item in (turning, moving):
        with pytest.raises(AirworthyError, match="drag acts of x500") as refused:
            Simulator(item, SimulatorConfig(physics_rate=100.0))
        simulator = Simulator(item, SimulatorConfig(physics_rate=least_rate(str(refused.value)), control_rate=50.0))
        if item is turning:
            simulator.reset(rate=(5.0, 5.0, 5.0))
        else:
            simulator.reset(velocity=(0.5, 0.0, 0.0))
        for _ in range(50):
            simulator.step()
        left = np.abs(simulator.rate).max() if item is turning else np.abs(simulator.velocity).max()
        assert left < (0.5 if item is turning else 0.1)


def test_drag_at_the_hubs_and_its_spread_count() -> None:
    """Damping by hand: c sum(W) / m of motion and c sum(W r^2) / J of rotation at full speed; half as much again drawn."""
    base = quiet("x500", drag=Drag())
    c = 5e-2
    item = replace(base, rotors=tuple(replace(rotor, hub_drag=(c, c)) for rotor in base.rotors))
    away = [float(np.sum((np.array(r.position) - base.center_of_mass) ** 2)) for r in base.rotors]
    turning = max(sum(c * r.speed_max * a for r, a in zip(base.rotors, away, strict=True)) / j for j in base.inertia[:3])
    pole = max(turning, sum(c * r.speed_max for r in base.rotors) / base.mass)
    Simulator(base, SimulatorConfig(physics_rate=20.0, control_rate=20.0))
    for spread in (0.0, 0.5):
        config = SimulatorConfig(physics_rate=20.0, control_rate=20.0, randomization=Randomization(drag=spread))
        with pytest.raises(AirworthyError, match="drag acts of x500") as refused:
            Simulator(item, config)
        assert least_rate(str(refused.value)) == pytest.approx(pole * (1.0 + spread) / 2.0, abs=1.0)


@pytest.mark.parametrize("gains", ["lee", "lmf2"])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "semi_implicit"])
def test_gains_are_refused_where_the_rate_makes_them_unstable(gains: str, integrator: Any) -> None:
    """Published sets on each vehicle at 100 Hz: where they are refused, 1.3 times the named rate is calm; else 100 Hz is.

    Not judged: vehicles that swing with these gains at 20 kHz as well, since their lag is too long for them.
    """
    control = ControlConfig(gains=gains)
    checked = 0
    for item in fleet():
        if item.name.startswith(("cf2x", "rotorpy", "base_octa", "tinyprop")):
            continue
        config = SimulatorConfig(level="position", physics_rate=100.0, integrator=integrator, control=control)
        rate = 100.0
        try:
            Simulator(item, config)
        except AirworthyError as error:
            rate = 1.3 * least_rate(str(error))
            checked += 1
        _, fastest = flown([item], rate, integrator, gains)
        assert fastest[0] < 1.0, (item.name, rate, fastest)
    assert checked >= 3


@pytest.mark.parametrize("name", ["cf2x_L250", "rotorpy_crazyflie", *STIFF])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "semi_implicit"])
def test_the_firmwares_law_is_refused_where_it_swings(name: str, integrator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gain on the rate's difference swings on fast rotors: a rate of 0.01 rad/s in hover, two seconds later.

    At 1.3 times the named rate it is gone, well below it has grown, and 4 % less than named is refused.
    """

    def left(rate: float) -> float:
        config = SimulatorConfig(level=level, physics_rate=rate, control_rate=rate, integrator=integrator)
        simulator = Simulator(quiet(name), config)
        simulator.reset(rate=(1e-2, -7e-3, 5e-3))
        simulator.set_command(np.zeros(14))
        simulator.advance(int(1.7 * rate))
        found = []
        for _ in range(int(0.3 * rate)):
            simulator.advance(1)
            found.append(np.abs(simulator.rate).max())
        return float(max(found))

    level = "tracking:crazyflie"
    if name == "cf2x_L250":
        assert left(100.0) < 0.01
        return
    with pytest.raises(AirworthyError, match=f"firmware's gains on {name} are unstable at 100 physics steps") as refused:
        Simulator(quiet(name), SimulatorConfig(level=level, physics_rate=100.0, integrator=integrator))
    least = least_rate(str(refused.value))
    assert "tracking:mellinger" in str(refused.value)
    assert left(1.3 * least) < 0.003
    with pytest.raises(AirworthyError, match="unstable"):  # the named rate is of a grid of 2 %
        Simulator(quiet(name), SimulatorConfig(level=level, physics_rate=0.96 * least, integrator=integrator))
    monkeypatch.setattr(family, "check_law", lambda *_: None)
    assert left(130.0 if integrator == "rk4" else 0.6 * least) > 0.01
    if name in STIFF:
        assert left(0.9 * least) > 0.01  # what grows fast tells the named rate to a tenth


def test_spread_counts() -> None:
    """Lags drawn 20 % shorter: solved exactly in the flights that need it, refused where there is no exact solution."""
    spread = Randomization(lag=0.2)
    config = SimulatorConfig(physics_rate=500.0, randomization=spread, level="position")
    simulator = Simulator(quiet(STIFF[0]), config, env_count=64, seed=1)
    fast = simulator.parameter("rotor_rise").reshape(64, 4, 2)[:, 0, 0] > 1000.0
    assert 10 < fast.sum() < 54
    assert np.array_equal(simulator.exact_rotors, fast)
    simulator.set_command(GOAL)
    for _ in range(100):
        simulator.step()
    assert np.abs(simulator.rate).max() < 0.5
    bent = with_response((0.0, 440.0 / 2.0 / vehicle("x500").rotors[0].speed_max))
    Simulator(bent, SimulatorConfig(physics_rate=230.0))
    with pytest.raises(AirworthyError, match="at least 275 Hz"):
        Simulator(bent, SimulatorConfig(physics_rate=230.0, randomization=spread))


def test_parameters_that_are_set_count() -> None:
    """A lag set too short turns to the exact solution; a response without one is refused and nothing changes."""
    simulator = Simulator(quiet("real_05"), SimulatorConfig(physics_rate=240.0, level="position"), env_count=2)
    assert not simulator.exact_rotors.any()
    rise = simulator.parameter("rotor_rise").reshape(2, 4, 2)
    stiff = rise.copy()
    stiff[1, :, 0] = 1000.0
    simulator.set_parameter("rotor_rise", stiff)
    assert simulator.exact_rotors.tolist() == [False, True]
    simulator.set_command(GOAL)
    for _ in range(100):
        simulator.step()
    assert np.abs(simulator.rate).max() < 0.5
    stiff[1, :, 1] = 10.0
    before = simulator.parameter("rotor_rise")
    with pytest.raises(AirworthyError, match="rotors answer of real_05"):
        simulator.set_parameter("rotor_rise", stiff)
    assert np.array_equal(simulator.parameter("rotor_rise"), before)
    simulator.set_parameter("rotor_rise", rise)
    assert not simulator.exact_rotors.any()


def test_the_command_line_flies_it_and_says_so(tmp_path: Path) -> None:
    """A lag of 1 ms at 240 Hz ended at 117 m/s; now it follows the course, and the record names how its rotors turned."""
    command_line = f"fly --vehicle {STIFF[0]} --course line --physics-rate 240 --no-report --out {tmp_path / 'run'} --json"
    assert main(command_line.split()) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["flights"][0]["outcome"] == "success"
    meta = json.loads((tmp_path / "run" / "meta.json").read_text())
    assert meta["exact_rotors"] == [STIFF[0]]


def test_flapping_and_drag_at_a_hub_add_up() -> None:
    """Damping of rotation by hand: sum of (c r + k) W r over J at full speed, of rotors with both."""
    base = quiet("x500", drag=Drag())
    hub, flapping = 4e-2, 3e-3
    item = replace(base, rotors=tuple(replace(rotor, hub_drag=(hub, hub), flapping=flapping) for rotor in base.rotors))
    simulator = Simulator(item, SimulatorConfig(physics_rate=1000.0))
    away = [float(np.linalg.norm(np.array(r.position) - base.center_of_mass)) for r in base.rotors]
    turning = sum((hub * a + flapping) * r.speed_max * a for r, a in zip(base.rotors, away, strict=True)) / min(
        base.inertia[:3]
    )
    found = stability.air_poles(np.array(simulator.rows), simulator._param_layout)
    assert found == pytest.approx([turning], rel=1e-4)


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit", "euler"])
@pytest.mark.parametrize("angle", [0.0, 60.0])
def test_the_radius_of_a_loop_is_that_of_its_steps(integrator: str, angle: float) -> None:
    """Many steps of the loop by its equations: what is left after them shrinks, or grows, by the radius to their number."""
    rate, pole, dt = 14.0, 20.0, 0.01
    left = {"rk4": sum((-pole * dt) ** k / math.factorial(k) for k in range(5))}.get(integrator, 1.0 - pole * dt)
    mean = 1.0 - (1.0 - left) / (pole * dt) if integrator == "rk4" else 0.0
    rng = np.random.default_rng(1)
    state = rng.normal(size=3)
    sizes = []
    for _ in range(3000):
        attitude, turning, moment = state
        asked = -angle * attitude - rate * turning
        acting = moment + mean * (asked - moment)
        turned = turning + dt * acting
        moved = {"rk4": 0.5 * (turning + turned), "semi_implicit": turned, "euler": turning}[integrator]
        attitude = attitude + dt * moved if angle else 0.0
        state = np.array([attitude, turned, moment + (1.0 - left) * (asked - moment)])
        sizes.append(float(np.log(np.linalg.norm(state))))
        state = state / np.linalg.norm(state)
    grown = math.exp(float(np.mean(sizes[500:])))
    assert stability._loop_radius(angle, rate, pole, 0.0, integrator, dt) == pytest.approx(grown, rel=2e-3)
