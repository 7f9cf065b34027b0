"""Against another simulator: trajectories of RotorPy 3.0, replayed from its own rotor commands.

`data/rotorpy.json` was computed with RotorPy for this project (its header says how). Windows of 0.25 s start from the state
that RotorPy had and follow its commands, since open-loop flight magnifies every difference.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Vehicle

FIELDS = {"position": slice(0, 3), "velocity": slice(3, 6), "attitude": slice(6, 10), "rate": slice(10, 13)}
FIELDS |= {"rotor_speed": slice(13, 17)}


def windows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start states (w, 17), end states (w, 17) and commands (w, 25, 4)."""
    data = json.loads((Path(__file__).parent / "data" / "rotorpy.json").read_text())[name]
    states, commands = np.array(data["states"]), np.array(data["commands"])
    return states[:-1], states[1:], commands.reshape(len(states) - 1, -1, 4)


def replayed(item: Any, starts: np.ndarray, commands: np.ndarray) -> tuple[Twin, Simulator]:
    simulator = Simulator(item, SimulatorConfig(physics_rate=1000, control_rate=100), env_count=len(starts))
    simulator.reset(**{name: starts[:, part] for name, part in FIELDS.items()})
    twin = Twin(simulator)
    for name, part in FIELDS.items():
        twin.state[name] = starts[:, part].T.copy()  # not rounded to float32
    for k in range(commands.shape[1]):
        twin.advance(10, commands[:, k])
        simulator.advance(10, commands[:, k])
    return twin, simulator


def without_air(item: Vehicle) -> Vehicle:
    return replace(item, rotors=tuple(replace(rotor, hub_drag=(0.0, 0.0)) for rotor in item.rotors))


def test_without_drag() -> None:
    """The same equations to the last term: RK4 at 1 kHz against DOP853 at 1e-11, tumbling; then float32."""
    starts, ends, commands = windows("free")
    twin, simulator = replayed(without_air(vehicle("rotorpy_crazyflie")), starts, commands)
    for state, tolerance in ((twin, 1e-7), (simulator, 1e-4)):
        for name, part in FIELDS.items():
            actual, expected = np.array(state.field(name), float), ends[:, part]
            if name == "attitude":
                actual = actual * np.sign((actual * expected).sum(axis=1, keepdims=True))
            assert np.abs(actual - expected).max() < tolerance * max(1.0, np.abs(expected).max()), name


def test_closed_loop_with_drag() -> None:
    """5 s of a circle flown by RotorPy's own controller, drag at each hub in its own air: the same to the last term as well."""
    starts, ends, commands = windows("closed_loop")
    assert vehicle("rotorpy_crazyflie").rotors[0].hub_drag == (1.02506e-06, 7.553e-07)
    twin, simulator = replayed(vehicle("rotorpy_crazyflie"), starts, commands)
    for state, tolerance in ((twin, 1e-7), (simulator, 1e-4)):
        for name, part in FIELDS.items():
            actual, expected = np.array(state.field(name), float), ends[:, part]
            if name == "attitude":
                actual = actual * np.sign((actual * expected).sum(axis=1, keepdims=True))
            assert np.abs(actual - expected).max() < tolerance * max(1.0, np.abs(expected).max()), name
