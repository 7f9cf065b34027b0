"""The filter on samples of the simulator: they mean what it takes them for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.race import GateFilter, GateFilterOptions, load_race, race_briefing, race_class
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

FLIGHTS, STEPS, DT = 6, 960, 1.0 / 960.0


def test_dead_reckoning_on_the_simulator_is_off_by_its_euler_steps_alone() -> None:
    racer = vehicle("flightgoggles_2019")
    config = SimulatorConfig.published(racer, control_rate=60.0, wrench_noise=False, imu=Imu())
    simulator = Simulator(racer, config, FLIGHTS)
    briefing = race_briefing(load_race("alphapilot"), race_class())
    filter_, stepped = GateFilter(briefing), GateFilter(briefing, GateFilterOptions(euler=True))
    state = filter_.begin(FLIGHTS)
    start = {name: np.array(getattr(simulator, name), float) for name in ("position", "velocity", "attitude")}
    state = replace(state, now=replace(state.now, motion=replace(state.now.motion, **start)))
    rng = np.random.default_rng(0)
    parts = []
    for number in range(STEPS // 16):
        if number % 15 == 0:
            command = np.column_stack([rng.uniform(8.0, 22.0, FLIGHTS), rng.uniform(-2.5, 2.5, (FLIGHTS, 3))])
        log = simulator.advance(16, command, imu_log=True)
        assert log is not None
        parts.append(np.array(log, float))
    samples = np.concatenate(parts)
    begun, state = state, filter_.advance(state, samples)
    motion = state.now.motion
    turn = (Rotation.from_quat(np.array(simulator.attitude, float)) * Rotation.from_quat(motion.attitude).inv()).magnitude()
    # Its attitude differs by Euler's third order and by rounding of float32, its velocity by forces taken half a period early,
    # |w x f| dt / 2 of each, its position by half a period of the velocity gained, and by the velocity's own difference.
    assert turn.max() < 2e-5
    rate, force = np.linalg.norm(samples[..., 3:], axis=-1), np.linalg.norm(samples[..., :3], axis=-1)
    early = 0.5 * DT * np.sum(rate * force, axis=0) * DT
    velocity = np.linalg.norm(np.array(simulator.velocity, float) - motion.velocity, axis=1)
    position = np.linalg.norm(np.array(simulator.position, float) - motion.position, axis=1)
    speed = np.linalg.norm(motion.velocity, axis=1)
    rounding = 1e-4  # of 960 sums in float32 at 10 m and 10 m/s
    assert np.all(velocity < early + rounding)
    assert np.all(position < 0.5 * DT * speed + early * STEPS * DT + rounding)
    assert speed.max() > 5.0
    # Who takes the same steps differs by rounding alone.
    same = stepped.advance(begun, samples).now.motion
    assert np.max(np.abs(np.array(simulator.velocity, float) - same.velocity)) < 1e-3
    assert np.max(np.abs(np.array(simulator.position, float) - same.position)) < 1e-3
    assert np.max(position) > 10.0 * np.max(np.abs(np.array(simulator.position, float) - same.position))
