"""The checks that the FlightGoggles specification lists (its section 10, numbers 1 to 9), on the race quadrotor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from airworthy.benchmarks.validation.imu import allan_deviation
from airworthy.control import exact_coefficients
from airworthy.control.levels import ControlConfig
from airworthy.control.rate_loop import backward_euler_coefficients, low_pass_constants
from airworthy.core.arrays import Array, NDArray
from airworthy.core.frames import from_euler, rotate
from airworthy.simulation import Imu, Simulator, SimulatorConfig, Twin
from airworthy.vehicles import Drag, Vehicle, hover_speed, vehicle
from airworthy.verification.published import Figure, below, within

HOVER_SPEED = 1133.1511
"""sqrt(m g / (4 k_T)) [rad/s]."""
_QUIET = SimulatorConfig(control_rate=960.0, wrench_noise=False)


def flightgoggles_figures() -> Iterator[Figure]:
    """Run the checks one after the other."""
    yield from _hover()
    yield from _speeds()
    yield _motor_step()
    yield from _filters()
    yield from _wrench_noise()
    yield from _imu()
    yield from _allan()
    yield from _conservation()
    yield from _rate_step()


def _hover() -> Iterator[Figure]:
    sim = Simulator(vehicle("flightgoggles"), _QUIET)
    speeds = hover_speed(vehicle("flightgoggles"))
    yield within("FlightGoggles 1: hover rotor speed", float(speeds[0]), HOVER_SPEED, 1e-6, "rad/s")
    sim.advance(9600, speeds)
    yield below("FlightGoggles 1: hover drift in 10 s, float32 kernel", 1e3 * float(np.linalg.norm(sim.position)), 1.0, "mm")


def _speeds() -> Iterator[Figure]:
    model = vehicle("flightgoggles")
    sim = Simulator(model, _QUIET)
    sim.reset(rotor_speed=np.zeros(4))
    sim.advance(9600, np.zeros(4))
    yield within("FlightGoggles 2: terminal speed of free fall", float(-sim.velocity[0, 2]), 9.905, 0.005, "m/s")
    thrust = 4 * 1.91e-6 * 2200.0**2
    tilt = np.arccos(model.mass * model.gravity / thrust)
    sim.reset(attitude=from_euler(0.0, tilt, 0.0), rotor_speed=np.full(4, 2200.0))
    sim.advance(9600, np.full(4, 2200.0))
    yield within("FlightGoggles 3: top level speed", float(np.hypot(*sim.velocity[0, :2])), 18.88, 0.01, "m/s")


def _motor_step() -> Figure:
    sim = Simulator(vehicle("flightgoggles"), _QUIET)
    sim.reset(rotor_speed=np.zeros(4))
    reached = []
    for _ in range(40):
        sim.advance(1, np.full(4, 2000.0))
        reached.append(float(sim.rotor_speed[0, 0]))
    step = 1 + int(np.argmax(np.array(reached) >= 2000.0 * (1.0 - np.exp(-1.0))))
    return below("FlightGoggles 4: 63.2 % of a motor step, off 0.02 s", abs(step / 960.0 - 0.02) * 960.0, 1.0, "steps")


def _filters() -> Iterator[Figure]:
    p, q = low_pass_constants(30.0)
    dt = 1.0 / 960.0
    s = 2j * np.pi * 30.0
    yield within("FlightGoggles 5: Butterworth at 30 Hz, continuous", _decibel(p / (s * s + q * s + p)), -3.0103, 0.001, "dB")
    exact = _discrete_gain(exact_coefficients(p, q, dt), dt)
    yield within("FlightGoggles 5: exact discretisation at 960 Hz", exact, -3.0103, 0.01, "dB")
    published = _discrete_gain(backward_euler_coefficients(p, q, dt), dt)
    yield within("FlightGoggles 5: published backward Euler at 960 Hz", published, -4.12, 0.005, "dB")


def _decibel(gain: complex) -> float:
    return float(20.0 * np.log10(abs(gain)))


def _discrete_gain(c: object, dt: float) -> float:
    """Gain of x1 at 30 Hz of x+ = A x + b u, after the update."""
    a11, a12, a21, a22, b1, b2 = tuple(c)  # type: ignore[arg-type,var-annotated]
    z = np.exp(2j * np.pi * 30.0 * dt)
    x = np.linalg.solve(z * np.eye(2) - np.array([[a11, a12], [a21, a22]]), np.array([b1, b2]))
    return _decibel(x[0])


def _wrench_noise() -> Iterator[Figure]:
    model = replace(vehicle("flightgoggles"), drag=Drag())
    variance = {}
    for rate, expected in ((960.0, 0.693), (480.0, 0.490)):
        config = SimulatorConfig(physics_rate=rate, control_rate=rate)
        sim = Simulator(model, config, env_count=20_000, seed=1)
        sim.advance(1, hover_speed(model))
        force = np.std((rotate(sim.attitude, sim.field("acceleration")) - [0.0, 0.0, 9.81]) * model.mass)
        yield within(f"FlightGoggles 6: stochastic force at {rate:.0f} Hz", float(force), expected, 0.01, "N")
        sim.reset(rotor_speed=np.zeros(4))
        sim.advance(int(rate), np.zeros(4))
        variance[rate] = float(np.var(sim.velocity[:, :2]))
    share = variance[960.0] / variance[480.0]
    yield within("FlightGoggles 6: velocity variance after 1 s, 960 over 480 Hz", share, 1.0, 0.05)
    yield within("FlightGoggles 6: velocity variance after 1 s", variance[960.0], 5e-4, 0.05, "m^2/s^2")


def _imu() -> Iterator[Figure]:
    model = vehicle("flightgoggles")
    rest = _samples(model, noise=False)
    mean = float(np.abs(rest.mean(axis=(0, 1))[:3] - [0.0, 0.0, 9.81]).max())
    # 960 x 256 samples of sigma 0.0707: the mean is known to 1.4e-4; five of those.
    yield below("FlightGoggles 7: accelerometer mean at rest, off (0, 0, 9.81)", mean, 7e-4, "m/s^2")
    yield within(
        "FlightGoggles 7: accelerometer variance at rest", float(rest[..., :3].var(axis=0).mean()), 0.005, 0.02, "(m/s^2)^2"
    )
    yield within(
        "FlightGoggles 7: gyroscope variance at rest", float(rest[..., 3:].var(axis=0).mean()), 0.003, 0.02, "(rad/s)^2"
    )
    # The first 50 samples only: held at constant rotor speeds, noisy flights drift away from hover.
    hovering = _samples(model, noise=True)[:50, :, :3]
    yield within(
        "FlightGoggles 7: accelerometer variance in hover", float(hovering.var(axis=1).mean()), 0.485, 0.03, "(m/s^2)^2"
    )
    sim = Simulator(model, replace(_QUIET, imu=Imu.named("flightgoggles")), env_count=20_000)
    sim.advance(1920, hover_speed(model))
    bias = np.concatenate([sim.field("accelerometer_bias"), sim.field("gyroscope_bias")], axis=1)
    yield within("FlightGoggles 7: bias variance after 2 s", float(bias.var()), 2e-7, 0.02)


def _allan() -> Iterator[Figure]:
    """Slopes of the Allan deviation: -1/2 for white noise, +1/2 for a random walk (quality 12 asks for 10 %)."""
    for name, sensor, expected in (
        ("white noise", Imu(gyroscope_noise=(1e-3,) * 3), -0.5),
        ("bias walk", Imu(gyroscope_walk=(1e-3,) * 3), 0.5),
    ):
        config = replace(_QUIET, physics_rate=200.0, control_rate=200.0, imu=sensor)
        sim = Simulator(vehicle("flightgoggles"), config)
        parts = [sim.advance(20_000, hover_speed(vehicle("flightgoggles")), imu_log=True) for _ in range(10)]
        samples = np.concatenate([part[:, 0, 3:] for part in parts if part is not None]).astype(np.float64)
        slopes = allan_deviation(samples, 200.0).slope(0.05, 5.0)
        yield within(f"Allan slope of the gyroscope's {name}", float(np.mean(slopes)), expected, 0.1)


def _samples(model: Vehicle, noise: bool) -> Array:
    sim = Simulator(model, replace(_QUIET, wrench_noise=noise, imu=Imu.named("flightgoggles")), env_count=256)
    samples = sim.advance(960, hover_speed(model), imu_log=True)
    assert samples is not None
    return samples.astype(np.float64)


def _conservation() -> Iterator[Figure]:
    """Torque-free tumbling for 10 s, float64: spec 8 asks 1e-6, ours 1e-10 (quality 2)."""
    model = replace(vehicle("flightgoggles"), drag=Drag(), inertia=(2.5e-3, 2.1e-3, 4.3e-3, 0.0, 0.0, 0.0), gravity=0.0)
    sim = Simulator(model, replace(_QUIET, physics_rate=1000.0, control_rate=1000.0))
    sim.reset(rate=[3.0, 1.0, 5.0], rotor_speed=np.zeros(4))
    twin = Twin(sim)
    inertia = np.array(model.inertia[:3])
    before = _energy_momentum(twin.field("rate")[0], twin.field("attitude")[0], inertia)
    twin.advance(10_000, np.zeros(4))
    after = _energy_momentum(twin.field("rate")[0], twin.field("attitude")[0], inertia)
    yield below("FlightGoggles 8: energy error of 10 s torque-free, float64", abs(after[0] / before[0] - 1.0), 1e-10)
    drift = float(np.linalg.norm(after[1] - before[1]) / np.linalg.norm(before[1]))
    yield below("FlightGoggles 8: momentum error of 10 s torque-free, float64", drift, 1e-10)
    sim.advance(10_000, np.zeros(4))
    single = _energy_momentum(sim.rate[0].astype(float), sim.attitude[0].astype(float), inertia)
    yield below("Energy error of 10 s torque-free, float32 kernel", abs(single[0] / before[0] - 1.0), 1e-4)


def _energy_momentum(rate: Array, attitude: Array, inertia: Array) -> tuple[float, NDArray]:
    return float(0.5 * np.sum(inertia * rate * rate)), rotate(attitude, inertia * rate)


_RATE_TIMES = (0.1, 0.2, 0.5, 1.0)
_RATE_STEP = {0.003: (1.49, 2.24, 2.65, 2.71), 0.0: (1.53, 2.41, 3.07, 3.12)}


def _rate_step() -> Iterator[Figure]:
    """Check a roll-rate step of 3 rad/s from hover: published gains and filter, Euler, 960 Hz."""
    for moment, expected in _RATE_STEP.items():
        base = vehicle("flightgoggles")
        model = replace(base, drag=replace(base.drag, angular_norm=(moment,) * 3))
        for published in (True, False):
            config = replace(
                _QUIET,
                integrator="euler",
                level="rate_thrust:flightgoggles",
                control=ControlConfig(allocation="pseudo_inverse", published_filter=published),
            )
            sim = Simulator(model, config)
            rates, command = [], [model.mass * model.gravity, 3.0, 0.0, 0.0]
            for _ in range(960):
                sim.advance(1, command)
                rates.append(float(sim.rate[0, 0]))
            worst = max(abs(rates[round(t * 960) - 1] / x - 1.0) for t, x in zip(_RATE_TIMES, expected, strict=True))
            form = "published" if published else "exact"
            name = f"FlightGoggles 9: rate step, C_M {moment:g}, {form} filter, worst of 0.1 to 1 s"
            yield below(name, 100.0 * worst, 2.0, "%")
