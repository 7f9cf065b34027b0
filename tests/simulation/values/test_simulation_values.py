"""What the simulator computes, number by number: parameter rows, poles and radii, starts, short flights, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot

from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig, Wind, stability, start_state
from airworthy.simulation.config import Randomization
from airworthy.simulation.family import FAMILIES
from airworthy.vehicles import vehicle

FILE = Path(__file__).parent / "snapshots" / "simulation.txt"
NAMES = ("flightgoggles", "cf2x_L250", "x500", "lmf2", "carl", "tinyprop", "real_05", "base_octarotor")
CONFIGS: dict[str, SimulatorConfig] = {
    "plain": SimulatorConfig(),
    "windy": SimulatorConfig(wind=Wind(mean=(1.0, -0.5, 0.25), turbulence=(0.5, 0.75, 0.25))),
    "sensed": SimulatorConfig(imu=Imu.named("flightgoggles"), gyro_feedback=True, level="rate_thrust:flightgoggles"),
    "drawn": SimulatorConfig(
        randomization=Randomization(mass=0.2, inertia=0.3, thrust=0.1, lag=0.3, rotor=0.05, drag=0.4, position=0.5, yaw=0.7)
    ),
    "euler": SimulatorConfig(integrator="euler", physics_rate=2000.0, ground=Ground(-5.0)),
    "held": SimulatorConfig(level="position", control=ControlConfig(gains="lee")),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_starts_and_steps(name: str) -> None:
    """Of a mixed batch: the rows that the kernel reads, where flights begin, and where they are a tenth of a second later."""
    items = [vehicle(item) for item in ("flightgoggles", "x500", "real_05")]
    simulator = Simulator(items, CONFIGS[name], seed=7)
    layout = simulator._param_layout
    simulator.reset(np.array([0, 1]), velocity=(1.0, 0.5, -0.25), rate=(0.5, -0.25, 1.0))
    rows = np.array(simulator.rows, float)
    values: dict[str, Any] = {f"row {field}": rows[layout.rows(field)] for field in layout.fields}
    values["start"] = simulator.save().state[:, :3]
    width = {"held": 4, "sensed": 4}.get(name, simulator.rotor_count)
    low, high = simulator.parameter("rotor_min"), simulator.parameter("rotor_max")
    for k in range(10):
        share = 0.4 + 0.2 * math.sin(1.3 * k)
        asked = {"held": [0.5, -0.25, 1.0, 0.3], "sensed": [9.0 + k % 3, 0.5, -0.3, 0.2]}.get(name)
        simulator.step(np.tile(asked, (3, 1)) if asked else (low + share * (high - low))[:, :width])
    for field in ("position", "velocity", "attitude", "rate"):
        values[f"later {field}"] = np.array(simulator.field(field), float)
    values["later rotors"] = np.array(simulator.rotor_speed, float)
    check_snapshot(FILE, values, 1e-4, 1e-4, part=name)


@pytest.mark.parametrize("name", NAMES)
def test_how_fast_vehicles_are(name: str) -> None:
    """Poles of rotors and of the air, loops of the law, and what a step leaves of them at three rates."""
    values: dict[str, Any] = {}
    item = vehicle(name)
    for integrator in ("rk4", "semi_implicit", "euler"):
        config = SimulatorConfig(level="position", integrator=integrator, physics_rate=4000.0)  # type: ignore[arg-type]
        simulator = Simulator(item, config)
        rows, layout = np.array(simulator.rows, float), simulator._param_layout
        column = rows[:, 0]
        loops = stability._axis_loops(column, layout, config)
        values[f"{integrator} loops"] = np.array(loops)
        values[f"{integrator} radii"] = [stability._radius(loops, config, rate) for rate in (100.0, 250.0, 1000.0)]
        values[f"{integrator} poles"] = [
            *stability.rotor_poles(rows, layout, config).tolist(),
            *stability.air_poles(rows, layout).tolist(),
            stability._pole_max(config),
            float(stability.may_be_exact(rows, layout, config)),
        ]
        values[f"{integrator} lag"] = [x for z in (1e-7, 0.5, 2.5) for x in stability._lag_over_step(z, 0.0, integrator)]
        values[f"{integrator} exact"] = list(stability._lag_over_step(0.5, 1.0, integrator))
    check_snapshot(FILE, values, 1e-6, 1e-6, part=f"fast {name}")


def test_the_least_rates_that_are_named() -> None:
    """Of stiff rotors of second order and of quick drag: the rate in the sentence is the pole over what a step may be."""
    told: dict[str, Any] = {}
    slow = SimulatorConfig(level="position", physics_rate=60.0, control_rate=60.0)
    for name in ("x500", "flightgoggles"):
        for integrator in ("rk4", "euler", "semi_implicit"):
            for gains in ("lee", "lmf2"):
                config = replace(slow, integrator=integrator, control=ControlConfig(gains=gains))  # type: ignore[arg-type]
                try:
                    Simulator(vehicle(name), config)
                    told[f"{name} {integrator} {gains}"] = "flies"
                except AirworthyError as refused:
                    told[f"{name} {integrator} {gains}"] = str(refused)
    check_snapshot(FILE, told, part="least rates")


# ---- starts ----------------------------------------------------------------------------------------------------------


def test_what_may_be_given() -> None:
    """Both sides of each limit."""
    assert start_state.delay_array(3, 2).tolist() == [3.0, 3.0]
    assert start_state.delay_array([0, 2**24], 2).tolist() == [0.0, 2.0**24]
    for wrong in (-1, 2**24 + 1, 0.5, [1, 2, 3], "a", [[1], [2, 3]], np.nan):
        with pytest.raises(AirworthyError, match="delay_steps is"):
            start_state.delay_array(wrong, 2)
    assert start_state.flight_id_array([0, 2**32 - 1], 2).tolist() == [0, 2**32 - 1]
    for wrong in ([-1, 0], [0, 2**32], [0.5, 1.0], [1], [[1], [2, 3]]):
        with pytest.raises(AirworthyError, match="flight_ids"):
            start_state.flight_id_array(wrong, 2)
    assert start_state.flight_id_array(None, 3).tolist() == [0, 1, 2]
    assert [start_state.whole_number("n", n, 2, 5) for n in (2, np.int64(5))] == [2, 5]
    for number in (1, 6, 2.0, True, "2"):
        with pytest.raises(AirworthyError, match="n is"):
            start_state.whole_number("n", number, 2, 5)
    with pytest.raises(AirworthyError, match="at least 2 and at most 5"):
        start_state.whole_number("n", 6, 2, 5)
    force = start_state.external_array("force", [1.0, 2.0, 3.0], 2)
    assert force.tolist() == [[1.0, 2.0, 3.0]] * 2
    assert start_state.external_array("force", 0.5, 2).shape == (2, 3)
    for wrong in ([1.0, 2.0], [[1.0, 2.0, 3.0]], "abc"):
        with pytest.raises(AirworthyError, match="External force"):
            start_state.external_array("force", wrong, 2)
    assert start_state.command_array([1, 2, 3, 4], "position", 2, 4, 4).shape == (4,)
    for wrong in ([1, 2, 3], [[1, 2, 3, 4]], [["a"] * 4] * 2):
        with pytest.raises(AirworthyError, match="A command at level 'position'"):
            start_state.command_array(wrong, "position", 2, 4, 4)


def test_whose_flights_they_are() -> None:
    items = [vehicle("carl"), vehicle("x500")]
    assert start_state.vehicles_per_env(items[0], 3, "vehicles") == [items[0]] * 3
    assert start_state.vehicles_per_env(items[0], None, "vehicles") == [items[0]]
    assert start_state.vehicles_per_env(items, 2, "vehicles") == items
    for given, count, told in (
        ("carl", None, "look the vehicle up first"),
        ([], None, "is empty"),
        ([1], None, "expected Vehicle records"),
        (items, 3, "has 2 entries but env_count is 3"),
        (5, None, "expected a Vehicle or a list"),
    ):
        with pytest.raises(AirworthyError, match=told):
            start_state.vehicles_per_env(given, count, "vehicles")  # type: ignore[arg-type]
    start_state.check_beliefs(items, [replace(items[0], mass=2.0), items[1]])
    with pytest.raises(AirworthyError, match=r"takes x500 \(4 rotors\) for base_octarotor \(8 rotors\)"):
        start_state.check_beliefs(items, [items[0], vehicle("base_octarotor")])
    assert start_state.checked_config(None) == SimulatorConfig()
    with pytest.raises(AirworthyError, match="got a dict as config"):
        start_state.checked_config({})  # type: ignore[arg-type]


@pytest.mark.parametrize("level", ["position", "tracking:crazyflie"])
def test_each_environment_has_the_rows_of_its_vehicle_and_its_belief(level: str) -> None:
    """In a batch of every pair, records that are equal but not the same among them, as alone."""
    own = vehicle("cf2x_L250")
    told = replace(own, extra={**own.extra, "controller_mass_kg": 0.05})  # records are equal whatever stands in `extra`
    heavy, copy = replace(own, mass=1.25 * own.mass), replace(own)
    pairs = [(item, belief) for item in (own, heavy, copy) for belief in (own, heavy, told, copy)]
    config = SimulatorConfig(level=level)
    family, count = FAMILIES["rigid"], 4
    rows = family.rows([item for item, _ in pairs], [belief for _, belief in pairs], config, count)
    for k, (item, belief) in enumerate(pairs):
        np.testing.assert_array_equal(rows[:, k], family.rows([item], [belief], config, count)[:, 0], err_msg=str(k))
    # Three vehicles, two of them alike, and as many beliefs; what is told is read by the firmware's law alone.
    assert len(np.unique(rows, axis=1).T) == (6 if level == "tracking:crazyflie" else 4)


def test_a_snapshot_of_another_kind_is_refused(tmp_path: Path) -> None:
    simulator = Simulator(vehicle("carl"), SimulatorConfig(), 2, seed=3)
    simulator.step(np.full(simulator.rotor_count, 400.0))
    saved = simulator.save()
    saved.write(tmp_path / "a")
    again = start_state.Snapshot.read(tmp_path / "a")
    for name, value in vars(saved).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    replace(saved, state=saved.state.astype(np.float64)).write(tmp_path / "b")  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match="holds state as float64; expected float32"):
        start_state.Snapshot.read(tmp_path / "b")
    with pytest.raises(AirworthyError, match="does not exist"):
        start_state.Snapshot.read(tmp_path / "none")
    (tmp_path / "c").write_bytes((tmp_path / "a").read_bytes()[:-10])
    with pytest.raises(AirworthyError, match="cannot be read"):
        start_state.Snapshot.read(tmp_path / "c")
