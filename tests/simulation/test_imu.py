"""Inertial sensor: what it reads at rest, off centre, turned and saturated, and the statistics of its errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.errors import UnknownNameError
from airworthy.core.frames import to_matrix
from airworthy.simulation.config import Ground, Imu, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import hover_speed, vehicle
from airworthy.vehicles.record import Drag, Vehicle, WrenchNoise

G = 9.81
MOUNT = (0.1, -0.3, 0.2, 0.92)


def quiet(**changes: object) -> Vehicle:
    return replace(vehicle("flightgoggles"), wrench_noise=WrenchNoise(), **changes)  # type: ignore[arg-type]


def simulator_with(imu: Imu, env_count: int = 1, **config: object) -> Simulator:
    return Simulator(quiet(), SimulatorConfig(imu=imu, **config), env_count=env_count)  # type: ignore[arg-type]


def test_rest_reads_up() -> None:
    """+g along body z at hover: 1e-6 in float64, float32's own rounding in the kernel; zero in free fall."""
    item = quiet(drag=Drag())
    simulator = Simulator(item, SimulatorConfig(imu=Imu()), env_count=2)
    hover = hover_speed(item)
    simulator.reset(rotor_speed=[hover, np.zeros(4)])
    twin = Twin(simulator)
    twin.state["rotor_speed"] = np.array([hover, np.zeros(4)]).T.copy()
    twin.advance(1, [hover, np.zeros(4)])
    simulator.set_command([hover, np.zeros(4)])
    expected = np.array([[0, 0, G, 0, 0, 0], np.zeros(6)])
    assert twin.field("imu") == pytest.approx(expected, abs=1e-9)
    assert simulator.imu == pytest.approx(expected, abs=4e-6)  # four units in the last place of 9.81


def test_mounting_turns_the_reading() -> None:
    simulator = simulator_with(Imu(orientation=MOUNT))
    rate = np.array([0.3, -0.2, 0.5])
    simulator.reset(rate=rate)
    simulator.set_command(np.full(4, hover_speed(quiet())[0]))
    turn = to_matrix(np.array(MOUNT) / np.linalg.norm(MOUNT)).T
    assert simulator.imu[0, :3] == pytest.approx(turn @ [0, 0, G], abs=1e-5)
    assert simulator.imu[0, 3:] == pytest.approx(turn @ rate, abs=1e-6)


def test_lever_arm() -> None:
    """Off centre: w x (w x r) + dw/dt x r, here with J dw/dt = -w x J w - C |w| w, computed by hand."""
    r, rate = np.array([0.1, -0.05, 0.03]), np.array([3.0, -2.0, 4.0])
    item = quiet(center_of_mass=(0.02, 0.01, -0.01))
    simulator = Simulator(item, SimulatorConfig(imu=Imu(position=tuple(r))))
    simulator.reset(rate=rate, rotor_speed=np.zeros(4))
    simulator.set_command(np.zeros(4))
    j = np.array(item.inertia[:3])
    turn = (-np.cross(rate, j * rate) - 0.003 * np.linalg.norm(rate) * rate) / j
    lever = r - np.array(item.center_of_mass)
    expected = np.cross(rate, np.cross(rate, lever)) + np.cross(turn, lever)
    assert simulator.imu[0, :3] == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())


def test_saturation() -> None:
    imu = Imu(accelerometer_limit=5.0, gyroscope_limit=2.0)
    simulator = simulator_with(imu, 2)
    simulator.reset(rate=[[3.0, -4.0, 1.0], [-1.0, 2.5, 0.0]])
    simulator.set_command(np.full(4, 1133.0))
    assert simulator.imu[0] == pytest.approx([0, 0, 5.0, 2.0, -2.0, 1.0], abs=1e-5)
    assert simulator.imu[1, 3:] == pytest.approx([-1.0, 2.0, 0.0])
    # Upside down, the other limit.
    simulator.reset(attitude=(1, 0, 0, 0))
    simulator.set_external(force=(0, 0, 30.0))
    simulator.set_command(np.zeros(4))
    assert simulator.imu[0, 2] == pytest.approx(-5.0)


NOISY = Imu((0.01,) * 3, (0.01,) * 3, (0.01,) * 3, (0.01,) * 3)


@pytest.mark.parametrize("level", ["rotor_speed", "rate_thrust"])
def test_a_reading_is_of_the_present_instant(level: str) -> None:
    """Also right after a reset: the sample with which the next log begins, bit for bit."""
    command = np.full(4, 1100.0) if level == "rotor_speed" else np.array([0.3, -0.2, 0.1, 0.6])
    simulator = simulator_with(NOISY, 5, level=level)
    simulator.reset(rate=(3.0, -2.0, 1.0))
    simulator.set_command(command, delay_steps=3)
    for steps in (1, 7, 20):
        reading = simulator.imu
        assert np.abs(reading).min() > 0.0
        log = simulator.advance(steps, imu_log=True)
        assert log is not None
        assert np.array_equal(log[0], reading)
        assert np.array_equal(simulator.field("imu"), log[-1])
    simulator.reset([2], rate=(0.0, 0.0, 4.0))
    assert simulator.imu[2, 5] == pytest.approx(4.0, abs=2.0)  # noise of 0.01 x sqrt(960), five deviations and more


def test_a_reading_changes_nothing() -> None:
    """A batch whose IMU is read at every step flies the same bits as one that is not read."""
    batches = [simulator_with(NOISY, 5, wind=Wind(turbulence=(1.0,) * 3), ground=Ground()) for _ in range(2)]
    for read, simulator in zip((True, False), batches, strict=True):
        simulator.reset(position=[(0.0, 0.0, 0.3 * k) for k in range(5)])
        for k in range(12):
            simulator.set_command(np.full(4, 700.0 + 20.0 * k), delay_steps=k % 3)
            if read:
                assert np.array_equal(simulator.imu, simulator.imu)
            simulator.advance(5)
    first, second = (simulator.save() for simulator in batches)
    for name in ("state", "inputs", "keys", "rows", "episode"):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True), name
    assert (first.step_count, first.effects) == (second.step_count, second.effects)


def test_log_holds_every_sample() -> None:
    """`imu_log` returns what single steps would have read."""
    whole, single = simulator_with(NOISY, 5), simulator_with(NOISY, 5)
    log = whole.advance(20, np.full(4, 1100.0), imu_log=True)
    samples = []
    for _ in range(20):
        single.set_command(np.full(4, 1100.0))
        samples.append(single.imu)
        single.advance(1)
    assert log is not None
    assert np.array_equal(log, np.array(samples))
    assert np.array_equal(whole.imu, single.imu)


@pytest.mark.parametrize("rate", [200, 960])
def test_noise_density_and_initial_bias(rate: int) -> None:
    """White noise of a density d has the variance d^2 f; initial biases are uniform within their half widths."""
    imu = Imu(accelerometer_noise=(0.01, 0.02, 0.03), gyroscope_noise=(0.002, 0.003, 0.004), bias_initial=(0.3, 0.05, 0.0))
    simulator = simulator_with(imu, 2048, physics_rate=rate, ground=Ground())
    simulator.reset(position=(0, 0, 0.15), rotor_speed=np.zeros(4))
    bias = np.concatenate([simulator.field("accelerometer_bias"), simulator.field("gyroscope_bias")], axis=1)
    for half, part in ((0.3, bias[:, :3]), (0.05, bias[:, 3:])):
        assert np.abs(part).max() <= half
        assert part.std(axis=0) == pytest.approx(np.full(3, half / np.sqrt(3)), rel=0.05)
    log = simulator.advance(200, np.zeros(4), imu_log=True)
    assert log is not None
    spread = (log[20:] - log[20:].mean(axis=0)).std(axis=(0, 1), dtype=float)
    assert spread == pytest.approx(np.array([0.01, 0.02, 0.03, 0.002, 0.003, 0.004]) * np.sqrt(rate), rel=0.01)


def test_mounting_tolerance() -> None:
    """Each flight's sensor is turned by its own angles; small ones tilt gravity by as much."""
    simulator = simulator_with(Imu(bias_initial=(0.0, 0.0, 0.02)), 2048)
    simulator.advance(1, np.full(4, hover_speed(quiet())[0]))
    tilt = simulator.imu[:, :2] / G
    assert np.abs(tilt).max() < 0.0205
    assert tilt.std(axis=0) == pytest.approx([0.02 / np.sqrt(3)] * 2, rel=0.05)


NOISE, WALK = 0.02, 0.01


def allan(samples: np.ndarray, rate: float, times: np.ndarray) -> np.ndarray:
    """Allan deviation by its definition, over non-overlapping means, pooled over all sensors; samples (steps, sensors)."""
    out = []
    for time in times:
        width = round(time * rate)
        count = len(samples) // width
        means = samples[: count * width].reshape(count, width, -1).mean(axis=1, dtype=float)
        out.append(np.sqrt(0.5 * np.mean(np.diff(means, axis=0) ** 2)))
    return np.array(out)


def test_allan_slopes() -> None:
    """240 s at rest, 48 sensors: slope -1/2 from white noise, +1/2 from the walk, and both densities recovered.

    White noise and walk meet at sqrt(3) N / K = 3.5 s; a tenth and ten times of it, each is under 2 % of the other.
    """
    rate, seconds, count = 200, 240, 16
    imu = Imu((NOISE,) * 3, (NOISE,) * 3, (WALK,) * 3, (WALK,) * 3)
    simulator = simulator_with(imu, count, physics_rate=rate, ground=Ground())
    simulator.reset(position=(0, 0, 0.15), rotor_speed=np.zeros(4))
    log = simulator.advance(seconds * rate, np.zeros(4), imu_log=True)
    assert log is not None
    for part in (slice(0, 3), slice(3, 6)):
        samples = log[:, :, part].reshape(len(log), -1)
        short, long = np.array([0.02, 0.04, 0.08, 0.16, 0.32]), np.array([12.0, 20.0, 30.0])
        white, walk = allan(samples, rate, short), allan(samples, rate, long)
        assert np.polyfit(np.log(short), np.log(white), 1)[0] == pytest.approx(-0.5, abs=0.05)
        assert np.polyfit(np.log(long), np.log(walk), 1)[0] == pytest.approx(0.5, abs=0.1)
        assert white * np.sqrt(short) == pytest.approx(np.full(5, NOISE), rel=0.05)
        # sigma^2 = N^2 / t + K^2 t / 3
        assert walk**2 == pytest.approx(NOISE**2 / long + WALK**2 * long / 3, rel=0.2)


def test_bias_walk_grows_with_time() -> None:
    simulator = simulator_with(Imu(accelerometer_walk=(0.1,) * 3, gyroscope_walk=(0.02,) * 3), 2048)
    command = np.full(4, hover_speed(quiet())[0])
    for seconds in (1, 4):
        simulator.advance((1 if seconds == 1 else 3) * 960, command)
        assert simulator.field("accelerometer_bias").std() == pytest.approx(0.1 * np.sqrt(seconds), rel=0.04)
        assert simulator.field("gyroscope_bias").std() == pytest.approx(0.02 * np.sqrt(seconds), rel=0.04)


def test_named_device() -> None:
    """A named device reads with its data sheet's noise."""
    imu = Imu.named("bmi088")
    simulator = simulator_with(imu, 1024, ground=Ground())
    simulator.reset(position=(0, 0, 0.15), rotor_speed=np.zeros(4))
    log = simulator.advance(200, np.zeros(4), imu_log=True)
    assert log is not None
    spread = (log - log.mean(axis=0)).std(axis=(0, 1), dtype=float)
    assert spread == pytest.approx(np.array([*imu.accelerometer_noise, *imu.gyroscope_noise]) * np.sqrt(960), rel=0.02)
    with pytest.raises(UnknownNameError, match="bmi"):
        Imu.named("bmi08")
