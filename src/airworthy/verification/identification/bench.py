"""Thrust stands of known motors: what their curves, and a fit of flights beside them, make of the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.schema import check_fields
from airworthy.logs import Log
from airworthy.logs.units import RPM
from airworthy.vehicles import BenchFit, Known, Vehicle, fit_bench, identify, two_wire_inertia
from airworthy.vehicles.bench.columns import GRAM_FORCE
from airworthy.vehicles.bench.curves import SAG_PRIOR
from airworthy.vehicles.bench.table import bench_table
from airworthy.verification.published import Figure, below, within

__all__ = ["StandTruth", "bench_figures", "simulated_stand"]

WIDE = 1.645
"""Deviations on either side that hold 90 %."""
STANDS = 60
"""Stands of the study of intervals."""


@dataclass(frozen=True)
class StandTruth:
    """A motor with its propeller on a stand, by a battery that sags."""

    thrust: tuple[float, float] = (4e-4, 1.1e-5)
    """Linear and square in the speed [N]; of a propeller of 10 inches."""
    torque_ratio: float = 0.018
    """Torque over thrust [m]."""
    offset: float = 120.0
    """Speed just above no command, at `voltage` [rad/s]."""
    slope: float = 820.0
    """[rad/s]"""
    sag: float = 0.8
    """Power of the voltage in the speed."""
    voltage: float = 11.1
    lag: float = 0.045
    """[s]"""
    delay: float = 0.006
    """[s]"""
    tare: float = 0.05
    """Of the scale at the start [N]."""
    drift: float = 0.08
    """Of the scale over the run [N]."""
    hysteresis: float = 0.0
    """Thrust on ways up over that on ways down, less 1."""
    noise: float = 0.03
    """Deviation of a row's thrust [N]."""
    misfit: float = 0.0
    """Amplitude of what the curve has besides both powers, relative, slow over the speed."""

    def __post_init__(self) -> None:
        check_fields(self, "StandTruth.")

    def thrust_at(self, speed: ArrayAny | float) -> Array:
        """Return thrust at speeds [N]."""
        return np.asarray(self.thrust[0] * speed + self.thrust[1] * np.square(speed))


def simulated_stand(
    truth: StandTruth, seed: int = 0, rate: float = 250.0, held: float = 1.5, levels: int = 11, motors: int = 1
) -> dict[str, ArrayAny]:
    """Run a stair up and down, motors off at both ends, and return the columns of a stand's file (as of Tyto's RCbenchmark).

    Args:
        truth: What stands on it.
        seed: Of noise.
        rate: Of rows [Hz].
        held: Time at each level [s].
        levels: Of the stair.
        motors: On the scale, each with a column of its speed where there are several.
    """
    draw = np.random.default_rng(seed)
    stair = np.linspace(0.15, 1.0, levels)
    plan = np.concatenate([[0.0], stair, stair[-2::-1], [0.0]])
    per = int(held * rate)
    command = np.repeat(plan, per)
    count = len(command)
    late = np.concatenate([np.zeros(round(truth.delay * rate)), command])[:count]
    speed, voltage = np.zeros(count), np.zeros(count)
    now, keep = 0.0, math.exp(-1.0 / (rate * truth.lag))
    for k in range(count):
        full = (1.0 + 0.09 * (0.5 - k / count)) * 1.05 * truth.voltage
        pull = float(truth.thrust_at(now)) / float(truth.thrust_at(truth.offset + truth.slope))
        voltage[k] = full - 0.1 * truth.voltage * pull**1.5
        aim = 0.0 if late[k] <= 0.0 else (truth.offset + truth.slope * late[k]) * (voltage[k] / truth.voltage) ** truth.sag
        now = aim + (now - aim) * keep
        speed[k] = now
    speed[speed < 1e-3] = 0.0
    top = truth.offset + truth.slope
    wave = 1.0 + truth.misfit * np.sin(2.0 * np.pi * speed / top + seed)
    up = np.where(np.arange(count) < count // 2, 0.5, -0.5)
    thrust = truth.thrust_at(speed) * wave * (1.0 + truth.hysteresis * up)
    place = np.arange(count) / max(count - 1, 1)
    turning = speed > 0.0
    read = motors * thrust + truth.tare + truth.drift * place + draw.normal(0.0, truth.noise, count)
    seen = [speed * (1.0 + draw.normal(0.0, 0.002, count)) * (1.0 + 0.01 * draw.normal()) for _ in range(motors)]
    power = truth.torque_ratio * thrust * speed / 0.7
    columns: dict[str, ArrayAny] = {
        "Time (s)": np.arange(count) / rate,
        "ESC signal (µs)": 1000.0 + 1000.0 * command,
        "Torque (N·m)": -truth.torque_ratio * thrust + draw.normal(0.0, 1e-3 * truth.torque_ratio, count) * turning,
        "Thrust (gf)": read / GRAM_FORCE,
        "Voltage (V)": voltage + draw.normal(0.0, 0.01, count),
        "Current (A)": motors * power / voltage + 0.1 + draw.normal(0.0, 0.05, count),
    }
    if motors == 1:
        # Of one motor its own scatter of sensors is none.
        columns["Motor Electrical Speed (RPM)"] = speed * (1.0 + draw.normal(0.0, 0.002, count)) / RPM
        columns["Motor Optical Speed (RPM)"] = np.zeros(count)
    else:
        columns |= {f"rpm{k + 1}": seen[k] / RPM for k in range(motors)}
    return columns


def stand_fit(truth: StandTruth, seed: int = 0, **more: float) -> BenchFit:
    """Return what a simulated stand tells."""
    motors = int(more.pop("motors", 1))
    columns = simulated_stand(truth, seed, motors=motors, **more)  # type: ignore[arg-type]
    return fit_bench(bench_table(columns, name="stand.csv"))


def stand_of(vehicle: Vehicle, stretch: float) -> StandTruth:
    """Return a stand with a rotor of a vehicle whose command of 1 is a state of 1,000, which is really so many times as fast.

    Args:
        vehicle: Flown by states that are commands times its `speed_max`.
        stretch: Real speed over state.
    """
    rotor = vehicle.rotors[0]
    full = stretch * rotor.speed_max
    lift = rotor.thrust[1] * rotor.speed_max + rotor.thrust[2] * rotor.speed_max**2
    return StandTruth(
        thrust=(rotor.thrust[1] / stretch, rotor.thrust[2] / stretch**2),
        torque_ratio=rotor.torque[2] / rotor.thrust[2],
        offset=0.0,
        slope=full,
        sag=0.0,
        tare=0.01 * lift,
        drift=0.01 * lift,
        noise=0.005 * lift,
    )


def bench_figures(truth: Vehicle, known: Vehicle, log: Log) -> Iterator[Figure]:
    """Measure what benches tell.

    Args:
        truth: A vehicle that was flown, its commands of 1 a rotor state of 1,000.
        known: Its geometry.
        log: Its flight.
    """
    motor = StandTruth()
    found = stand_fit(motor)
    assert found.thrust is not None
    assert found.torque is not None
    assert found.speed is not None
    assert found.lag is not None
    states = np.linspace(found.thrust.low, found.thrust.high, 9)
    curve = [abs(found.thrust.at(float(s)) / float(motor.thrust_at(s)) - 1.0) for s in states]
    ratio = [found.torque.at(float(s)) / found.thrust.at(float(s)) / motor.torque_ratio - 1.0 for s in states]
    speeds = [found.speed.at(u, 11.1) / (motor.offset + motor.slope * u) - 1.0 for u in np.linspace(0.2, 1.0, 9).tolist()]
    yield below("stand: thrust over speed, worst of nine speeds", max(curve), 0.01)
    yield below("stand: torque over thrust, worst of nine speeds", max(map(abs, ratio)), 0.01)
    yield below("stand: speed over command at one voltage", max(map(abs, speeds)), 0.01)
    yield below("stand: power of the voltage, off by", abs(found.speed.sag - motor.sag), 0.15)
    yield below("stand: lag by steps", abs(found.lag.both[0] / motor.lag - 1.0), 0.05)
    yield from _intervals()
    yield from _beside(truth, known, log)
    yield from _hung()


def _intervals() -> Iterator[Figure]:
    """Share of 90 % intervals that hold the truth, of stands whose curves are not quite those of the fit."""
    inside = {"thrust": 0, "power of the voltage": 0}
    for seed in range(STANDS):
        draw = np.random.default_rng(1000 + seed)
        sag = float(np.clip(draw.normal(*SAG_PRIOR), 0.1, 1.9))
        motor = replace(StandTruth(), misfit=0.01, hysteresis=float(draw.normal(0.0, 0.01)), sag=sag)
        found = stand_fit(motor, seed, rate=20.0, held=1.0)
        assert found.thrust is not None
        assert found.speed is not None
        at = 0.6 * found.thrust.high
        wide = math.hypot(
            found.thrust.sd(at), 0.5 * found.thrust.at(at) * (found.hysteresis.share if found.hysteresis else 0.0)
        )
        inside["thrust"] += abs(found.thrust.at(at) - float(motor.thrust_at(at))) < WIDE * wide
        inside["power of the voltage"] += abs(found.speed.sag - sag) < WIDE * math.sqrt(found.speed.covariance[2][2])
    for name, count in inside.items():
        yield within(f"stand: 90 % intervals of the {name} that hold the truth, of {STANDS}", count / STANDS, 0.9, 0.111)


def _beside(truth: Vehicle, known: Vehicle, log: Log) -> Iterator[Figure]:
    """Identify a vehicle that nobody weighed from a flight with a bench beside it."""
    bench = stand_fit(stand_of(truth, 2.2))
    found = identify([log], Known(mass=None, vehicle=known, bench=bench), quick=True)
    mass = found.value("mass")
    yield below("a vehicle weighed by its bench: mass off by, over its deviation", abs(mass.value - truth.mass) / mass.sd, 2.0)
    yield below("its mass, off by", abs(mass.value / truth.mass - 1.0), 0.04)
    izz = found.vehicle.inertia[2]
    yield below("Izz with the bench's torque, off by", abs(izz / truth.inertia[2] - 1.0), 0.05)
    yield below("full speed by the bench, off by", abs(found.vehicle.rotors[0].speed_max / 2200.0 - 1.0), 0.01)


def _hung() -> Iterator[Figure]:
    """Hang a body on two wires, by its equation of motion."""
    mass, distance, length, inertia = 1.5, 0.2, 0.9, 0.022
    period = swing_period(mass, distance, length, inertia, 0.08)
    found = two_wire_inertia((mass, 0.002), (distance, 0.0005), (length, 0.001), [10.0 * period] * 3, 10)
    yield below(
        "pendulum of two wires against its equation of motion, 5 degrees of twist", abs(found.value / inertia - 1.0), 0.003
    )


def swing_period(mass: float, distance: float, length: float, inertia: float, twist: float, gravity: float = 9.81) -> float:
    """Return the period of a twist by the energy of a body on two wires that do not stretch, at any size of the twist [s].

    Height over the twist t is length - sqrt(length^2 - (distance sin(t/2))^2): with it the quarter of a period is an integral,
    taken over t = twist sin(a), so that nothing is infinite at its end.

    Args:
        mass: [kg]
        distance: Of the wires [m].
        length: Of the wires [m].
        inertia: About the vertical [kg m^2].
        twist: Largest [rad].
        gravity: [m/s^2]
    """
    angle = (np.arange(4000) + 0.5) * (0.5 * np.pi / 4000)
    t = twist * np.sin(angle)

    def height(at: ArrayAny) -> Array:
        return np.asarray(length - np.sqrt(length**2 - (distance * np.sin(0.5 * at)) ** 2))

    # Moving up costs the body's mass kinetic energy too: (dh/dt)^2.
    slope = distance**2 * np.sin(0.5 * t) * np.cos(0.5 * t) / (2.0 * (length - height(t)))
    energy = 2.0 * mass * gravity * (height(np.array(twist)) - height(t))
    rate = np.sqrt(energy / (inertia + mass * slope**2))
    return float(4.0 * np.sum(twist * np.cos(angle) / rate) * (0.5 * np.pi / 4000))
