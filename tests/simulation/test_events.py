"""Events between physics steps: on the right step, seen by the right environment, and without a trace in the flight."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.simulation.config import Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.events import FAR, Schedule
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import vehicle

IMU = Imu((0.01,) * 3, (0.002,) * 3, (0.001,) * 3, (0.0002,) * 3, bias_initial=(0.1, 0.02, 0.01), position=(0.05, 0.0, 0.02))
EVERYTHING: dict[str, Any] = {
    "wind": Wind(mean=(1.0, 0.5, 0.0), gust=(2.0, 0.0, 0.0), gust_start=0.05, gust_duration=0.2, turbulence=(0.5, 0.5, 0.3)),
    "imu": IMU,
    "ground": Ground(height=0.9),
    "randomization": Randomization(0.1, 0.1, 0.05, 0.02, 0.2, 0.2, 1.0, 0.3, 0.5),
}
TRACKING = [0.5, 0.2, 1.0, 1.0, 0.5, 0.2, 2.0, -1.0, 0.0, 8.0, 4.0, 0.0, 0.3, 0.1]
CASES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "rotor_speed": (EVERYTHING, [1150.0, 1140.0, 1160.0, 1150.0]),
    "rate_thrust:flightgoggles": ({**EVERYTHING, "gyro_feedback": True}, [10.0, 0.5, -0.3, 0.2]),
    "tracking": ({**EVERYTHING, "integrator": "semi_implicit"}, TRACKING),
    "tracking:mellinger": (EVERYTHING, TRACKING),
    "tracking:crazyflie": ({"integrator": "euler"}, TRACKING),
    "position": ({"exact_rotors": True, "ground_effect": 11.4, "imu": IMU}, [1.0, -0.5, 1.2, 0.3]),
    "semi_kinematic": ({"dynamics": "semi_kinematic", "level": "tracking", "state_noise": (1e-4,) * 10}, TRACKING),
}


class Probe:
    """Looks at every environment on its own schedule, and keeps when and what."""

    def __init__(self, simulator: Simulator, rates: list[float]):
        self.schedules = [Schedule(simulator.config.physics_rate, rate) for rate in rates]
        self.calls: list[list[tuple[int, bytes]]] = [[] for _ in rates]
        self.resets: list[list[int]] = []

    def due(self, flight_step: np.ndarray) -> np.ndarray:
        return np.array([schedule.due(step) for schedule, step in zip(self.schedules, flight_step, strict=True)], np.int64)

    def fire(self, simulator: Simulator) -> None:
        for env, step in enumerate(simulator.flight_step):
            if self.schedules[env].is_due(step):
                self.calls[env].append((int(step), simulator.position[env].tobytes() + simulator.velocity[env].tobytes()))

    def reset(self, env_ids: np.ndarray) -> None:
        self.resets.append(env_ids.tolist())


def states(simulator: Simulator) -> dict[str, bytes]:
    return {name: np.array(simulator.field(name)).tobytes() for name in simulator.layout.fields}


def build(case: str, env_count: int = 20) -> tuple[Simulator, np.ndarray]:
    changes, command = CASES[case]
    config = SimulatorConfig(**{"level": case, "control_rate": 45.0, **changes})
    simulator = Simulator(vehicle("flightgoggles"), config, env_count, seed=5)
    simulator.reset(position=(20.1, -7.3, 1.05), velocity=(0.3, 0.0, -0.4), rate=(0.5, -0.2, 0.1))
    spread = np.random.default_rng(2).uniform(0.98, 1.02, (env_count, len(command)))
    return simulator, np.array(command) * spread


@pytest.mark.parametrize("case", CASES)
def test_events_leave_no_trace(case: str) -> None:
    """Odd rates, delays and partial resets: every row of the state has the bytes of a flight without events."""
    plain, command = build(case)
    probed, _ = build(case)
    probed.add_events(Probe(probed, list(np.linspace(7.3, 311.7, 20))))
    for k in range(12):
        for simulator in (plain, probed):
            simulator.set_command(command * (1.0 + 0.01 * k), delay_steps=np.arange(20) if k % 3 == 1 else None)
            simulator.step()
            if k == 6:
                simulator.reset(env_ids=[2, 17])
        assert states(plain) == states(probed), k
    if CASES[case][0].get("imu"):
        logs = [simulator.advance(33, imu_log=True) for simulator in (plain, probed)]
        assert logs[0].tobytes() == logs[1].tobytes()


def test_samples_fall_where_they_should() -> None:
    """Each environment is seen on steps ceil(k f_physics / f) of its own flight, in the state it has there."""
    rates = [960.0, 333.0, 29.97, 7.0]
    simulator, command = build("rotor_speed", 4)
    probe = Probe(simulator, rates)
    simulator.add_events(probe)
    for k in range(20):
        simulator.step(command)
        if k == 9:
            at_reset = int(simulator.flight_step[1])
            simulator.reset(env_ids=[1])
            assert probe.resets == [[1]]
    total = int(simulator.flight_step[0])
    for env, rate in enumerate(rates):
        exact = Fraction(960) / Fraction(str(rate))
        flights = [at_reset, total - at_reset] if env == 1 else [total]
        expected = [-(-k * exact.numerator // exact.denominator) for n in flights for k in range(1, int(n / exact) + 1)]
        assert [step for step, _ in probe.calls[env]] == expected
    single, command = build("rotor_speed", 4)
    at = dict(probe.calls[2])
    for k in range(20):
        for _ in range(single.substeps(k)):
            single.set_command(command)
            single.advance(1)
            step = int(single.flight_step[2])
            if step in at:  # in single launches positions are rounded more often: 2e-6 of 20 m in float32
                kept = np.frombuffer(at[step], np.float32)
                assert kept[:3] == pytest.approx(single.position[2], abs=1e-5)


@given(
    rate=st.fractions(min_value=Fraction(1, 10), max_value=900, max_denominator=1000),
    physics=st.sampled_from([100, 960, 1000, Fraction(2997, 100)]),
    step=st.integers(0, 10**7),
)
def test_schedule_is_exact(rate: Fraction, physics: Fraction | int, step: int) -> None:
    if rate > physics:
        with pytest.raises(AirworthyError, match="at most physics_rate"):
            Schedule(physics, rate)
        return
    schedule = Schedule(Fraction(physics), rate)
    latest, wait = int(schedule.latest(step)), int(schedule.due(step))
    falls = [
        -(-(k * Fraction(physics) / rate).numerator // (k * Fraction(physics) / rate).denominator) for k in (latest, latest + 1)
    ]
    assert falls[0] <= step < falls[1] == step + wait
    assert bool(schedule.is_due(step)) == (falls[0] == step)


def test_schedule_takes_rates_as_written() -> None:
    assert Schedule(960.0, 29.97).steps_per_sample == Fraction(96000, 2997)
    assert Schedule(960.0, 100 / 3).steps_per_sample == Fraction(288, 10)
    assert Schedule(1000.0, 30.0).step_of(3 * 10**9) == 10**11


def test_a_wrong_source_is_told() -> None:
    simulator, _ = build("rotor_speed", 3)
    with pytest.raises(AirworthyError, match="no method 'due'"):
        simulator.add_events(object())  # type: ignore[arg-type]

    class Stuck(Probe):
        def due(self, flight_step: np.ndarray) -> np.ndarray:
            return np.zeros(3, np.int64)

    simulator.add_events(Stuck(simulator, [1.0] * 3))
    with pytest.raises(AirworthyError, match="at least 1"):
        simulator.advance(4)


def test_a_source_that_is_never_due_costs_no_launch() -> None:
    simulator, command = build("rotor_speed", 3)

    class Never(Probe):
        def due(self, flight_step: np.ndarray) -> np.ndarray:
            return np.full(3, FAR)

        def fire(self, simulator: Simulator) -> None:
            raise AssertionError

    simulator.add_events(Never(simulator, [1.0] * 3))
    plain, _ = build("rotor_speed", 3)
    for one in (simulator, plain):
        one.advance(100, command)
    assert states(simulator) == states(plain)


def test_a_source_may_move_a_vehicle() -> None:
    """What a source writes holds from there on: the rest of the launch starts from it."""
    simulator, _ = build("rotor_speed", 3)

    class MovingProbe(Probe):
        def fire(self, simulator: Simulator) -> None:
            simulator.reset(env_ids=[1], position=(5.0, 5.0, 5.0))

    simulator.add_events(MovingProbe(simulator, [100.0] * 3))
    simulator.advance(15)  # events on step 10
    assert int(simulator.flight_step[1]) == 5
    assert simulator.position[1] == pytest.approx([5.0, 5.0, 5.0], abs=0.6)  # spread of starts
    assert np.linalg.norm(simulator.position[0] - [20.1, -7.3, 1.05]) < 1.0
