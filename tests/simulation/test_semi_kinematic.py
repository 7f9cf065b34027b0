"""The semi-kinematic family against its twin, closed forms, SciPy and the published courses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.simulation import Randomization, SemiKinematicTwin, Simulator, SimulatorConfig
from airworthy.trajectories import course, kinematic_state
from airworthy.vehicles import vehicle

CARL = vehicle("carl")
CONFIG = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
HOVER = [CARL.mass * CARL.gravity, 0.0, 0.0, 0.0]


def simulator(count: int = 1, **changes: object) -> Simulator:
    return Simulator(CARL, replace(CONFIG, **changes), env_count=count)


def test_hover_holds() -> None:
    # SOUS VIDE acceptance 12.1: drift below 1e-6 m in 10 s, quaternion norm 1 +- 1e-9 (float64).
    twin = SemiKinematicTwin(simulator())
    twin.advance(1000, HOVER)
    assert np.abs(twin.field("position")).max() < 1e-6
    assert abs(np.linalg.norm(twin.field("attitude")) - 1.0) < 1e-9


def test_full_thrust_is_the_published_scale() -> None:
    # k_th = 4 x 6.90 N; at full thrust the acceleration is k_th / m - g, constant: v = a t.
    sim = simulator()
    for _ in range(20):
        sim.step([1e6, 0.0, 0.0, 0.0])
    assert sim.velocity[0, 2] == pytest.approx(27.6 / 1.144 - 9.81, rel=1e-5)
    assert sim.field("saturated")[0] == 1.0


def test_a_ten_times_finer_step_agrees() -> None:
    # Spec section 2: RK4 at the simulation rate agrees with a 10x finer one within 1e-6 m over 2 s.
    command = [1.1 * HOVER[0], 0.8, -0.6, 0.4]
    coarse, fine = SemiKinematicTwin(simulator()), SemiKinematicTwin(simulator(physics_rate=1000.0))
    coarse.advance(200, command)
    fine.advance(2000, command)
    assert np.abs(coarse.field("position") - fine.field("position")).max() < 1e-6


def test_kernel_equals_twin() -> None:
    rng = np.random.default_rng(0)
    for level, noise in (("rate_thrust", 0.0), ("tracking", 0.0), ("rate_thrust", 1e-3)):
        sim = simulator(40, level=level, state_noise=(noise,) * 10, randomization=Randomization(mass=0.2, thrust=0.1))
        attitude = rng.standard_normal((40, 4)) * 0.3 + [0.0, 0.0, 0.0, 1.0]
        sim.reset(position=rng.uniform(-2, 2, (40, 3)), velocity=rng.standard_normal((40, 3)), attitude=attitude)
        twin = SemiKinematicTwin(sim)
        if level == "tracking":
            command = rng.uniform(-1.0, 1.0, (40, 14))
        else:
            command = np.concatenate([rng.uniform(5.0, 20.0, (40, 1)), rng.uniform(-2.0, 2.0, (40, 3))], axis=1)
        sim.advance(10, command)
        twin.advance(10, command)
        for name in ("position", "velocity", "attitude", "rate", "thrust"):
            # 10 float32 steps of order-one numbers: a few roundings of 6e-8 each; thrusts are of order 20.
            np.testing.assert_allclose(sim.field(name), twin.field(name), rtol=2e-5, atol=2e-5, err_msg=f"{level} {name}")


def test_flat_inputs_of_a_course_replay_its_path() -> None:
    # The inputs that the flatness map gives for a course reproduce it, in open loop, at 20 Hz x 20 steps.
    path = course("robustness").trajectory()
    t = np.arange(0.0, path.duration, 1.0 / 400.0)
    state = kinematic_state(path.sample(t + 0.5 / 400.0))
    start = kinematic_state(path.sample(np.zeros(1)))
    sim = Simulator(CARL, replace(CONFIG, physics_rate=400.0, control_rate=400.0), env_count=1)
    first = path.sample(np.zeros(1))
    sim.reset(position=first.position[0], velocity=first.velocity[0], attitude=start.attitude[0])
    twin = SemiKinematicTwin(sim)
    for thrust, rate in zip(state.thrust, state.body_rate, strict=True):
        twin.advance(1, [thrust * CARL.mass, *rate])
    # Inputs taken in the middle of each held interval: second order, so (2.5 ms)^2 of order-one derivatives over 15 s.
    assert np.linalg.norm(twin.field("position")[0] - path.sample(path.duration).position) < 1e-3


def test_command_delay_is_counted_in_steps() -> None:
    sim = simulator(2)
    sim.step(HOVER)
    sim.set_command(np.tile([2.0 * HOVER[0], 0.0, 0.0, 0.0], (2, 1)), delay_steps=[0, 3])
    sim.step()
    # 5 steps of 10 ms at 1 g net; the delayed one has 2 of them.
    np.testing.assert_allclose(sim.velocity[:, 2], [9.81 * 0.05, 9.81 * 0.02], rtol=1e-4)


def test_what_these_dynamics_do_not_have_is_said() -> None:
    with pytest.raises(AirworthyError, match="does not fit these dynamics"):
        simulator(level="rotor_speed")
    with pytest.raises(AirworthyError, match="rotor_speed, which semi_kinematic dynamics do not have"):
        simulator().reset(rotor_speed=np.zeros(4))


def test_diverged_flights_freeze_and_leave_others_alone() -> None:
    clean, spoiled = simulator(40), simulator(40)
    command = np.tile(HOVER, (40, 1)) + np.linspace(0.0, 1.0, 40)[:, None]
    broken = command.copy()
    broken[[3, 17]] = np.nan
    for _ in range(5):
        clean.step(command)
        spoiled.step(broken)
    others = np.setdiff1d(np.arange(40), [3, 17])
    assert spoiled.diverged[[3, 17]].all()
    assert not spoiled.diverged[others].any()
    assert clean.position[others].tobytes() == spoiled.position[others].tobytes()
