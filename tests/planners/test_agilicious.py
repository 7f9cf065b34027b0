"""Controllers of Agilicious: equations against matrix twins, filters, allocation, step responses, the guard."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy
from scipy.spatial.transform import Rotation

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import observe
from airworthy.planners.agilicious.dfbc import DFBC_GAINS, GUARD_GAINS, dfbc_control, quaternion_of_axes, tilt_first
from airworthy.planners.agilicious.guard import Guarded, GuardLimits, RateCommand, _error
from airworthy.planners.agilicious.pipeline import Butterworth, Dfbc, Pipeline, VehicleBodies, indi_moment, plain_moment
from airworthy.planners.common.interface import Mission, Setpoints
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

CONFIG = SimulatorConfig(physics_rate=480.0)


def rows(array: Array) -> tuple[Array, ...]:
    return tuple(np.ascontiguousarray(array.T))


# ---- equations ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gains", [DFBC_GAINS, GUARD_GAINS])
def test_flatness_controller_equals_its_matrix_twin(gains) -> None:  # type: ignore[no-untyped-def]
    rng, n = np.random.default_rng(1), 200
    position, velocity, rate, air = (rng.normal(0.0, 1.0, (n, 3)) for _ in range(4))
    attitude = Rotation.random(n, rng=rng)
    p_ref, v_ref, a_ref, jerk = (rng.normal(0.0, s, (n, 3)) for s in (1.0, 1.0, 2.0, 5.0))
    yaw, yaw_rate, thrust = rng.uniform(-3, 3, n), rng.normal(size=n), rng.uniform(2.0, 20.0, n)
    wanted = SimpleNamespace(
        position=rows(p_ref), velocity=rows(v_ref), acceleration=rows(a_ref), jerk=rows(jerk), yaw=yaw, yaw_rate=yaw_rate
    )
    out = dfbc_control(rows(position), rows(velocity), rows(attitude.as_quat()), rows(rate), wanted, gains, rows(air), thrust)

    kp, kd, k_rate = (np.array(getattr(gains, name)) for name in ("position", "velocity", "rate"))
    e_p = np.clip(p_ref - position, -np.array(gains.position_max), np.array(gains.position_max))
    e_v = np.clip(v_ref - velocity, -np.array(gains.velocity_max), np.array(gains.velocity_max))
    asked = kp * e_p + kd * e_v + a_ref + [0.0, 0.0, 9.81] + air
    z = asked / np.linalg.norm(asked, axis=1, keepdims=True)
    x = np.cross(np.stack([-np.sin(yaw), np.cos(yaw), 0.0 * yaw], axis=1), z)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.cross(z, x)
    error = (attitude.inv() * Rotation.from_matrix(np.stack([x, y, z], axis=2))).as_quat()
    ex, ey, ez, ew = error.T
    turn = np.stack([ew * ex - ey * ez, ew * ey + ex * ez, np.sign(ew) * ez], axis=1)
    turn *= 2.0 / np.sqrt(ew**2 + ez**2)[:, None] * [gains.tilt, gains.tilt, gains.yaw]
    h = (jerk - (z * jerk).sum(axis=1, keepdims=True) * z) / thrust[:, None]
    turn += k_rate * (np.stack([-(h * y).sum(axis=1), (h * x).sum(axis=1), yaw_rate], axis=1) - rate)
    assert np.allclose(out.thrust, np.linalg.norm(asked, axis=1), atol=1e-12)
    assert np.allclose(np.stack(out.turn, axis=1), turn, atol=1e-9)


def test_quaternions_of_axes_and_the_tilt_that_comes_first() -> None:
    rng = np.random.default_rng(2)
    # Near half turns too: each of the four numbers is the largest somewhere.
    turns = Rotation.concatenate([Rotation.random(100, rng=rng), Rotation.from_rotvec(np.pi * np.eye(3))])
    axes = tuple(rows(turns.as_matrix()[:, :, i]) for i in range(3))
    q = np.stack(quaternion_of_axes(axes), axis=1)  # type: ignore[arg-type]
    assert np.allclose(np.abs((q * turns.as_quat()).sum(axis=1)), 1.0)
    # A small tilt and a large yaw: roll and pitch act as if there were no yaw error.
    target = (Rotation.from_rotvec([0.1, 0.0, 0.0]) * Rotation.from_rotvec([0.0, 0.0, 2.5])).as_quat()
    tilt = np.array(tilt_first((0.0, 0.0, 0.0, 1.0), tuple(target), 1.0, 0.0))
    assert np.allclose(tilt[:2], [0.1, 0.0], atol=1e-4)


def test_incremental_inversion_cancels_what_it_cannot_know() -> None:
    """With a disturbing moment and a wrong inertia the change is from what is measured: at the goal nothing changes."""
    inertia = (1e-2, 1.2e-2, 2e-2, 0.0, 0.0, 0.0)
    turn, rate, acting = (3.0, -2.0, 1.0), (1.0, 2.0, 3.0), (0.05, -0.02, 0.01)
    moment = indi_moment(turn, rate, turn, acting, inertia)
    assert moment[:2] == pytest.approx(acting[:2])
    assert moment[2] == pytest.approx(plain_moment(turn, rate, inertia)[2])
    j, w = np.diag(inertia[:3]), np.array(rate)
    assert np.allclose(plain_moment(turn, rate, inertia), j @ turn + np.cross(w, j @ w))


def test_filter_is_the_butterworth_of_its_frequency() -> None:
    signal = np.random.default_rng(3).normal(size=400)
    b, a = scipy.signal.butter(2, 12.0, fs=300.0)
    filtered = Butterworth(12.0, 300.0)
    fresh = np.zeros(1, bool)
    out = [filtered.step(np.array([[0.0]]), np.ones(1, bool)), *(filtered.step(np.array([[s]]), fresh) for s in signal)]
    assert np.allclose(np.array(out[1:])[:, 0, 0], scipy.signal.lfilter(b, a, signal), atol=1e-12)
    started = Butterworth(12.0, 300.0).step(np.array([[5.0]]), np.ones(1, bool))
    assert started[0, 0] == pytest.approx(5.0)  # begins at rest


def test_allocation_keeps_limits_and_gives_up_yaw_first() -> None:
    airframe = [vehicle("virt_05"), vehicle("real_09")]
    bodies = VehicleBodies(airframe)
    hover = bodies.allocated(bodies.mass * 9.81, [np.zeros(2)] * 3)
    assert np.allclose(bodies.wrench(hover)[:, 2], bodies.mass * 9.81)
    far = bodies.allocated(bodies.mass * 9.81, [np.full(2, 0.05), np.zeros(2), np.full(2, 50.0)])
    assert (far >= bodies.lowest - 1e-9).all()
    assert (far <= bodies.highest + 1e-9).all()
    assert np.allclose(bodies.wrench(far)[:, 3], 0.05)
    assert np.allclose(bodies.wrench(far)[:, 2], bodies.mass * 9.81)


# ---- step responses -------------------------------------------------------------------------------------------------------


class Step:
    """A set-point that jumps."""

    name = "step"
    settings = None

    def __init__(self, jump: tuple[float, float, float], yaw: float = 0.0):
        self.jump, self.yaw = np.array(jump), yaw

    def reset(self, mission: Mission) -> None:
        self.mission = mission

    def update(self, motion, maps, active):  # type: ignore[no-untyped-def]
        return {"work": {}, "replans": 0, "state": 0}

    def adopt(self, delay: Array) -> None:
        pass

    def setpoints(self, time: Array) -> Setpoints:
        late = (time >= 0.5)[:, None]
        zero = np.zeros_like(self.mission.start)
        return Setpoints(self.mission.start + late * self.jump, zero, zero, late[:, 0] * self.yaw, np.zeros(len(time)))

    preview = setpoints


def stepped(controller, airframe, jump, yaw: float = 0.0, seconds: float = 5.0):  # type: ignore[no-untyped-def]
    count = len(airframe)
    start = np.tile([0.0, 0.0, 5.0], (count, 1))
    box = np.full((count, 3), -50.0), np.full((count, 3), 50.0)
    mission = Mission(start, start, np.full(count, 4.0), np.full(count, 6.0), *box, np.arange(count))
    pilot = PlannerPilot(Step(jump, yaw), mission, airframe, controller=controller)
    simulator = Simulator(airframe, pilot.configured(CONFIG))
    simulator.reset(position=start)
    pilot.attach(simulator)
    out, turns = [], []
    for _ in range(round(seconds * simulator.config.control_rate)):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
        out.append(np.array(simulator.position) - start)
        turns.append(np.array(simulator.attitude))
    return np.array(out), np.array(turns), pilot


AIRFRAME = ("virt_05", "real_05", "real_18")


@pytest.mark.parametrize("name", ["so3_indi", "dfbc", "dfbc_indi", "rate_command"])
def test_steps_settle_on_any_vehicle(name: str) -> None:
    airframe = [vehicle(n) for n in AIRFRAME]
    slow_yaw = name.startswith("dfbc")
    out, turns, _ = stepped(name, airframe, (1.0, -0.5, 0.5), yaw=0.6, seconds=4.0 if slow_yaw else 3.0)
    assert np.abs(out[-1] - [1.0, -0.5, 0.5]).max() < 0.05  # drag and lag leave nothing at rest
    assert out[..., 0].max() < 1.45  # the so3's poles have a damping of 0.35: 30 % and the step's saturation
    yaw = Rotation.from_quat(turns[-1]).as_euler("ZYX")[:, 0]
    # The flatness controller's yaw creeps by its gains: 3 / 8 per second, 0.6 exp(-3.5 * 3 / 8) = 0.16 rad, and its limits.
    assert np.abs(yaw - 0.6).max() < (0.25 if slow_yaw else 0.05)


@pytest.mark.parametrize("name", [pytest.param("nmpc", marks=pytest.mark.slow), "rate_mpc"])
def test_predictive_steps_settle(name: str) -> None:
    out, _, pilot = stepped(name, [vehicle("virt_05")], (1.0, 0.0, 0.5), seconds=2.0)
    assert np.abs(out[-1] - [1.0, 0.0, 0.5]).max() < 0.05
    assert out[..., 0].max() < 1.15
    # It sees the jump coming a second ahead and has begun before it.
    early = round(0.5 * pilot.configured(CONFIG).control_rate)
    assert out[early, 0, 0] > 0.02


def test_flights_do_not_depend_on_their_batch() -> None:
    airframe = [vehicle(n) for n in AIRFRAME]
    whole, _, _ = stepped("dfbc_indi", airframe, (1.0, 0.0, 0.0), seconds=1.0)
    alone, _, _ = stepped("dfbc_indi", airframe[1:2], (1.0, 0.0, 0.0), seconds=1.0)
    assert np.array_equal(whole[:, 1], alone[:, 0])


# ---- guard ----------------------------------------------------------------------------------------------------------------


def test_guard_takes_over_where_a_vehicle_strays_and_only_there() -> None:
    airframe = [vehicle("virt_05")] * 2
    guarded = Guarded(Pipeline("dfbc", Dfbc()), GuardLimits(distance=3.0))
    out, _, _ = stepped(guarded, airframe, (1.0, 0.0, 0.0), seconds=2.0)
    assert not guarded.taken.any()

    class Lost(Dfbc):
        def wish(self, wanted, measured):  # type: ignore[no-untyped-def]
            force, turn = super().wish(wanted, measured)
            return np.where(np.arange(2) == 1, 0.3 * force, force), turn

    guarded = Guarded(Pipeline("lost", Lost()), GuardLimits(distance=1.0))
    out, _, _ = stepped(guarded, airframe, (0.0, 0.0, 0.0), seconds=3.5)
    assert guarded.taken.tolist() == [False, True]
    assert np.abs(out[-1, 0]).max() < 0.01
    # Held where it was taken over, about a metre below, and at rest.
    assert out[-1, 1, 2] == pytest.approx(guarded._hold[1, 2] - 5.0, abs=0.05)
    assert np.abs(out[-1, 1] - out[-200, 1]).max() < 0.02


def test_unknown_inner_controllers_are_refused() -> None:
    with pytest.raises(AirworthyError, match="Unknown inner controller 'pid'"):
        Pipeline("x", Dfbc(), "pid")


def test_rate_controller_turns_the_shorter_way() -> None:
    now, target = Rotation.from_rotvec([0.0, 0.0, 0.2]), Rotation.from_rotvec([0.1, 0.0, 0.2])
    for sign in (1.0, -1.0):
        error = _error(now.as_quat()[None], sign * target.as_quat()[None])[0]
        assert np.allclose(2.0 * error, (now.inv() * target).as_rotvec(), atol=1e-3)
    assert RateCommand().level == "rate_thrust"
