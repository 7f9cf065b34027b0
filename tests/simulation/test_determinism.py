"""The same bytes: in two processes, alone or in a crowd, in any order, on one thread or two, whole or in parts."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.simulation.config import Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import vehicle

IMU = Imu((0.01,) * 3, (0.002,) * 3, (0.001,) * 3, (0.0002,) * 3, bias_initial=(0.1, 0.02, 0.01), position=(0.05, 0.0, 0.02))
EVERYTHING = {
    "wind": Wind(mean=(1.0, 0.5, 0.0), gust=(2.0, 0.0, 0.0), gust_start=0.05, gust_duration=0.2, turbulence=(0.5, 0.5, 0.3)),
    "imu": IMU,
    "ground": Ground(),
    "randomization": Randomization(0.1, 0.1, 0.05, 0.02, 0.2, 0.2, 1.0, 0.3, 0.5),
}
LEVEL_COMMAND = {
    "rotor_speed": [1150.0, 1140.0, 1160.0, 1150.0],
    "rate_thrust:flightgoggles": [10.0, 0.5, -0.3, 0.2],
    "tracking:mellinger": [0.5, 0.2, 1.0, *[0.0] * 11],
    "position": [1.0, -0.5, 1.2, 0.3],
}


def config(level: str, **changes: Any) -> SimulatorConfig:
    feedback = level == "rate_thrust:flightgoggles"
    return SimulatorConfig(**{"level": level, "gyro_feedback": feedback, "control_rate": 100.0, **EVERYTHING, **changes})


def states(simulator: Simulator) -> dict[str, np.ndarray]:
    return {name: np.array(simulator.field(name)) for name in simulator.layout.fields}


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name, value in a.items():
        assert value.tobytes() == b[name].tobytes(), name


SCRIPT = """
import hashlib, sys
sys.path.insert(0, {folder!r})
import numpy as np
from test_determinism import LEVEL_COMMAND, config
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import vehicle

digest = hashlib.sha256()
for level, command in LEVEL_COMMAND.items():
    simulator = Simulator(vehicle("flightgoggles"), config(level), env_count=37, seed=11)
    simulator.reset(position=(0.0, 0.0, 1.0))
    for k in range(50):
        simulator.step(command)
        if k == 20:
            simulator.reset(env_ids=[3, 17])
    for name in simulator.layout.fields:
        digest.update(np.ascontiguousarray(simulator.field(name)).tobytes())
    digest.update(simulator.advance(5, imu_log=True).tobytes())
print(digest.hexdigest())
"""


def test_two_processes() -> None:
    """flightgoggles 10.14: a run with every noise source, twice, in fresh processes, one of them on one thread."""
    script = SCRIPT.format(folder=str(Path(__file__).parent))
    digests = []
    for threads in ("1", "2"):
        environment = {**os.environ, "AIRWORTHY_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        digests.append(run.stdout.strip())
    assert len(digests[0]) == 64
    assert digests[0] == digests[1]


def test_seed_and_flight_id_matter() -> None:
    digests = set()
    for seed, first in ((1, 0), (2, 0), (1, 100)):
        simulator = Simulator(vehicle("flightgoggles"), config("rotor_speed"), 5, seed, flight_ids=np.arange(5) + first)
        simulator.advance(10, LEVEL_COMMAND["rotor_speed"])
        digests |= {hashlib.sha256(simulator.position[k].tobytes()).hexdigest() for k in range(5)}
    assert len(digests) == 15


@pytest.mark.parametrize("level", LEVEL_COMMAND)
def test_alone_or_among_1024_in_any_order(level: str) -> None:
    """A flight is a function of its id: its place and its company change no bit."""
    rng = np.random.default_rng(3)
    count, chosen = 1024, [0, 15, 16, 500, 1023]
    commands = np.array(LEVEL_COMMAND[level]) * rng.uniform(0.98, 1.02, (count, len(LEVEL_COMMAND[level])))
    start = rng.uniform(-1.0, 1.0, (count, 3)) + np.array([0, 0, 1.2])

    def fly(ids: np.ndarray) -> dict[str, np.ndarray]:
        simulator = Simulator(vehicle("flightgoggles"), config(level), len(ids), seed=9, flight_ids=ids)
        simulator.reset(position=start[ids])
        for _ in range(10):
            simulator.step(commands[ids])
        return states(simulator)

    together = fly(np.arange(count))
    order = rng.permutation(count)
    shuffled = fly(order)
    assert_same({name: value[order] for name, value in together.items()}, shuffled)
    for k in chosen:
        assert_same({name: value[[k]] for name, value in together.items()}, fly(np.array([k])))


@pytest.mark.parametrize("level", ["rotor_speed", "rate_thrust:flightgoggles"])
def test_thread_count(level: str) -> None:
    """1,500 environments on one thread, or cut in two at a place that is no multiple of anything."""
    ends = []
    for threads in (1, 2):
        simulator = Simulator(vehicle("flightgoggles"), config(level), 1500, seed=3, threads=threads)
        for _ in range(6):
            simulator.step(LEVEL_COMMAND[level])
        for launcher in simulator._arrays._launchers.values():
            launcher._seconds = 1.0  # as if launches were long: from now on they are split
        for _ in range(6):
            simulator.step(LEVEL_COMMAND[level])
        ends.append(states(simulator))
    assert_same(*ends)


def test_partial_reset_disturbs_nobody() -> None:
    """Some environments start anew, the others fly on to the same bytes; a flight does not notice what flew before it there."""
    level, count = "rate_thrust:flightgoggles", 40
    calm = Simulator(vehicle("flightgoggles"), config(level, control_rate=96.0), count, seed=1)
    busy = Simulator(vehicle("flightgoggles"), config(level, control_rate=96.0), count, seed=1)
    ids = np.array([0, 7, 15, 16, 39])
    others = np.setdiff1d(np.arange(count), ids)
    rng = np.random.default_rng(0)
    for k in range(20):
        if k in (5, 11, 12):
            busy.reset(env_ids=ids, velocity=rng.normal(size=3))
        command = np.array(LEVEL_COMMAND[level]) * (1 + 0.01 * k)
        calm.step(command)
        busy.step(command)
    a, b = states(calm), states(busy)
    assert_same({n: v[others] for n, v in a.items()}, {n: v[others] for n, v in b.items()})
    assert not np.array_equal(a["position"][ids], b["position"][ids])
    # Episode 4 of these ids is the same in a simulator that did nothing else.
    busy.reset(env_ids=np.arange(count) < 3)
    fresh = Simulator(vehicle("flightgoggles"), config(level, control_rate=96.0), count, seed=1)
    for _ in range(4):
        fresh.reset(env_ids=[0])
    for _ in range(5):
        busy.step(LEVEL_COMMAND[level])
        fresh.step(LEVEL_COMMAND[level])
    assert int(busy.episode[0]) == int(fresh.episode[0]) == 4
    assert_same({n: v[:1] for n, v in states(busy).items()}, {n: v[:1] for n, v in states(fresh).items()})


def test_reset_of_nobody() -> None:
    """An empty mask, as at most steps of a training run, does nothing."""
    simulator = Simulator(vehicle("flightgoggles"), config("rotor_speed"), 4, seed=1)
    simulator.step(LEVEL_COMMAND["rotor_speed"])
    before = states(simulator)
    for nobody in ([], np.zeros(4, bool)):
        simulator.reset(env_ids=nobody)
    assert_same(before, states(simulator))


def test_no_global_generator() -> None:
    """The global NumPy generator is neither read nor moved."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    simulator = Simulator(vehicle("flightgoggles"), config("rotor_speed"), 8, seed=1)
    simulator.step(LEVEL_COMMAND["rotor_speed"])
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
