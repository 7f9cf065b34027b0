"""Known vehicles, and their flights in the simulator: what identification is compared with.

A pilot that holds height and attitude steps its commands, each rotor's command is logged, and the vehicle answers late by its
dead time; the log holds what a gyro and an accelerometer of common noise would have read, and poses and voltages where asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import rotate_inverse
from airworthy.logs import Log, LogSource, LogStream
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import (
    Drag,
    Rotor,
    RotorResponse,
    Vehicle,
    control_effectiveness,
    frame_vehicle,
)
from airworthy.vehicles.identification.result import hover_command

RATE = 500
"""Of commands and sensors [Hz]."""
SECONDS, REST = 40.0, 2.0
"""In the air, and on the ground before it [s]."""
GYRO_NOISE, FORCE_NOISE = 0.005, 0.15
"""Of a sample [rad/s, m/s^2]."""
GRAVITY = 9.81
FASTEST = 4.0
"""Speed that flights with poses seek, to and fro [m/s]."""
MASS_SHARE = 0.001
"""Error of the scales."""


@dataclass(frozen=True)
class FlownTruth:
    """A vehicle that is flown, and what nobody tells the fit."""

    vehicle: Vehicle
    delay: int
    """Dead time [steps of a sample]."""
    lever: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of the inertial sensor in the body frame [m]."""
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of the sensor [rad]."""
    vigour: float = 1.0
    """Of its turns; a sensor's place shows in fast ones only."""
    excited: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Of steps of collective, of roll and pitch, and of yaw: 0 is none."""
    wind: tuple[float, float, float] | None = None
    """Of a flight to and fro whose log has attitudes and velocities [m/s]; None: it hovers about, and the log has none."""
    sag: float = 0.0
    """Exponent by which commands go with the supply."""
    volts: tuple[float, float] | None = None
    """Of the supply at take-off and at the end [V], whose mean leaves commands as they are; None: it is not logged."""

    @property
    def flown(self) -> Vehicle:
        """Return the vehicle with its dead time."""
        return replace(self.vehicle, command_delay=self.delay / RATE)

    @property
    def known(self) -> Vehicle:
        """Return the geometry as its builder knows it: hubs, axes and spins, and nothing of the rest."""
        plain = frame_vehicle("quad_x:0.1", self.vehicle.mass)
        arm = float(np.mean([math.hypot(*rotor.position[:2]) for rotor in self.vehicle.rotors]))
        across = 0.25 * self.vehicle.mass * arm**2
        square = plain.rotors[0].thrust[2]
        believed = replace(plain.rotors[0], torque=(0.0, 0.0, 0.08 * arm * square))
        rotors = tuple(replace(believed, position=r.position, axis=r.axis, spin=r.spin) for r in self.vehicle.rotors)
        return replace(plain, name=self.vehicle.name, rotors=rotors, inertia=(across, across, 1.83 * across, 0.0, 0.0, 0.0))


def truths() -> list[FlownTruth]:
    """Return the vehicles: small to heavy, four to eight rotors, tilted, off their middle, with sensors off theirs."""
    small = craft("crazyflie", "quad_x:0.028", 0.027, (1.5e-5, 1.6e-5, 2.8e-5), 0.055, 1.9)
    racer = craft("racer", "quad_x:0.088", 0.55, (9e-4, 1.1e-3, 1.9e-3), 0.028, 4.5)
    x500 = craft("x500", "quad_x:0.17", 2.0, (0.0216, 0.0216, 0.04), 0.045, 2.0)
    hexa = craft("hexa", "hexa_x:0.275", 2.4, (0.032, 0.035, 0.058), 0.045, 2.2)
    heavy = craft("heavy", "octa_x:0.55", 10.0, (0.42, 0.45, 0.8), 0.09, 1.9)
    tilted = replace(hexa, name="tilted_hexa", rotors=_tilted(hexa, math.radians(20.0)))
    uneven = replace(x500, name="uneven_arms", rotors=_uneven(x500))
    off = replace(x500, name="center_off", center_of_mass=(0.010, -0.006, 0.0))
    sensor = replace(racer, name="sensor_off")
    square = replace(
        small,
        name="square",
        rotors=tuple(replace(r, response=RotorResponse((0.0, 0.0135), (0.0, 0.0135))) for r in small.rotors),
    )
    coaxial = replace(x500, name="coaxial_octa", rotors=_coaxial(x500), mass=3.0)
    tilt = (math.radians(2.0), math.radians(-1.0), 0.0)
    return [
        FlownTruth(small, 6),
        FlownTruth(tilted, 8),
        FlownTruth(sensor, 4, (0.015, -0.008, 0.004), tilt, 3.0),
        FlownTruth(racer, 3),
        FlownTruth(x500, 6),
        FlownTruth(hexa, 8),
        FlownTruth(heavy, 8, vigour=2.5),
        FlownTruth(uneven, 5),
        FlownTruth(off, 6),
        FlownTruth(square, 6),
        FlownTruth(coaxial, 6),
    ]


def craft(name: str, frame: str, mass: float, inertia: tuple[float, float, float], lag: float, lift: float) -> Vehicle:
    """Return a vehicle whose thrust at full command is `lift` weights, an eighth of it linear."""
    base = frame_vehicle(frame, mass)
    full = lift * mass * GRAVITY / base.rotor_count
    arm = float(np.mean([math.hypot(*r.position[:2]) for r in base.rotors]))
    thrust = (0.0, 0.125 * full / 1000.0, 0.875 * full / 1e6)
    ratio = 0.1 * arm
    torque = (0.0, ratio * thrust[1], ratio * thrust[2])
    response = RotorResponse.first_order(lag)
    rotors = tuple(replace(r, thrust=thrust, torque=torque, response=response) for r in base.rotors)
    damping = tuple(0.2 * moment for moment in inertia)
    drag = Drag(angular_linear=(damping[0], damping[1], damping[2]))
    return replace(base, name=name, rotors=rotors, inertia=(*inertia, 0.0, 0.0, 0.0), drag=drag)


def _tilted(base: Vehicle, angle: float) -> tuple[Rotor, ...]:
    """Rotors that lean along their circle, neighbours against each other."""
    found = []
    for rotor in base.rotors:
        x, y, _ = rotor.position
        around = np.array([-y, x, 0.0]) / math.hypot(x, y)
        lean = angle * rotor.spin
        axis = math.cos(lean) * np.array([0.0, 0.0, 1.0]) + math.sin(lean) * around
        found.append(replace(rotor, axis=(float(axis[0]), float(axis[1]), float(axis[2]))))
    return tuple(found)


def _uneven(base: Vehicle) -> tuple[Rotor, ...]:
    """Front arms shorter than those behind."""
    return tuple(
        replace(r, position=(r.position[0] * (0.8 if r.position[0] > 0 else 1.1), r.position[1], 0.0)) for r in base.rotors
    )


def _coaxial(base: Vehicle) -> tuple[Rotor, ...]:
    """Two rotors on each arm that turn against each other."""
    lower = tuple(replace(r, position=(*r.position[:2], -0.05), spin=-r.spin) for r in base.rotors)
    return base.rotors + lower


# ---- Flights -----------------------------------------------------------------------------------------------------------------


def flown(truth: FlownTruth, seed: int, seconds: float = SECONDS) -> Log:
    """Fly steps of collective, roll, pitch and yaw, and return the log.

    Args:
        truth: What flies.
        seed: Of steps and noise.
        seconds: In the air.
    """
    vehicle, draw = truth.vehicle, np.random.default_rng(seed)
    count, dt = int(seconds * RATE), 1.0 / RATE
    rotors = vehicle.rotors
    exact = rotors[0].response.rise[1] == 0.0
    config = SimulatorConfig(
        physics_rate=2 * RATE, control_rate=RATE, level="rotor_speed", exact_rotors=exact, wrench_noise=False, disturbance=False
    )
    volts = np.ones(count) if truth.volts is None else np.linspace(*truth.volts, count)
    supply = (volts / volts.mean()) ** truth.sag
    # A battery that is full turns rotors faster than the limit of one that is half empty.
    room = tuple(replace(r, speed_max=r.speed_max * max(float(supply.max()), 1.0)) for r in rotors)
    simulator = Simulator(replace(vehicle, rotors=room), config, env_count=1, seed=seed, threads=1)
    hover = 1000.0 * hover_command(vehicle)
    simulator.reset(position=[0.0, 0.0, 100.0], rotor_speed=np.full((1, len(rotors)), hover))
    wind = np.array(truth.wind or (0.0, 0.0, 0.0))
    if truth.wind is not None:
        simulator.set_parameter("wind", wind)
    drag, poses = np.array(vehicle.drag.linear) / vehicle.mass, np.empty((count, 7))
    effect = control_effectiveness(vehicle)
    mixing, inertia = np.linalg.pinv(effect[2:]), np.array(vehicle.inertia[:3])
    axes = np.array([r.axis for r in rotors])
    c1, c2 = rotors[0].thrust[1:]
    lag = 1.0 / (rotors[0].response.rise[0] + 2.0 * rotors[0].response.rise[1] * hover)
    gain = min(0.45 / (lag + truth.delay * dt), 14.0)
    steps = np.repeat(draw.choice([-1.0, 0.0, 1.0], (count // (RATE // 4) + 1, 4)), RATE // 4, axis=0)[:count]
    steps = steps * np.array(truth.excited)[[0, 1, 1, 2]]
    noise_w, noise_f = draw.normal(0.0, GYRO_NOISE, (count, 3)), draw.normal(0.0, FORCE_NOISE, (count, 3))
    gyro, force, commands = np.empty((count, 3)), np.empty((count, 3)), np.full((count, len(rotors)), hover)
    lever, tilt = np.array(truth.lever) - np.array(vehicle.center_of_mass), np.array(truth.tilt)
    damping = np.array(vehicle.drag.angular_linear)
    for k in range(count):
        rate, state = simulator.rate[0].astype(np.float64), simulator.rotor_speed[0].astype(np.float64)
        thrust = c1 * state + c2 * state * np.abs(state)
        turning = (effect[3:] @ thrust - np.cross(rate, inertia * rate) - damping * rate) / inertia
        attitude, velocity = simulator.attitude[0].astype(np.float64), simulator.velocity[0].astype(np.float64)
        poses[k] = *attitude, *velocity
        pulled = -drag * rotate_inverse(attitude, velocity - wind)
        seen = axes.T @ thrust / vehicle.mass + pulled + np.cross(turning, lever) + np.cross(rate, np.cross(rate, lever))
        gyro[k] = rate - np.cross(tilt, rate) + noise_w[k]
        force[k] = seen - np.cross(tilt, seen) + noise_f[k]
        up = rotate_inverse(attitude, np.array([0.0, 0.0, 1.0]))
        climb, height = float(velocity[2]), float(simulator.position[0, 2]) - 100.0
        lift = vehicle.mass * (GRAVITY + 2.5 * steps[k, 0] - 1.0 * climb - 0.3 * height) / max(float(up[2]), 0.5)
        wanted = 0.35 * gain * np.array([-up[1], up[0], 0.0]) + steps[k, 1:] * 0.1 * gain * truth.vigour
        if truth.wind is not None:
            # To and fro: it leans as its speed asks for.
            wished = FASTEST * np.array([math.sin(0.9 * k * dt), math.cos(0.7 * k * dt), 0.0])
            pull = np.clip(0.8 * (wished - velocity), -3.0, 3.0) * np.array([1.0, 1.0, 0.0])
            lean = rotate_inverse(attitude, pull) / GRAVITY
            wanted += 0.35 * gain * np.array([-lean[1], lean[0], 0.0])
        moments = inertia * gain * (wanted - gyro[k])
        share = np.clip(mixing @ np.concatenate([[lift], moments]), 0.0, None)
        commands[k] = np.clip((np.sqrt(c1**2 + 4.0 * c2 * share) - c1) / (2.0 * c2), 80.0, 995.0)
        acting = commands[k - truth.delay] if k >= truth.delay else np.full(len(rotors), hover)
        simulator.step((acting * supply[k])[None])
    log = _logged(truth, gyro, force, commands / 1000.0, draw)
    return replace(log, streams=(*log.streams, *_beside(truth, poses, volts, draw)))


def _logged(truth: FlownTruth, gyro: Array, force: Array, commands: Array, draw: np.random.Generator) -> Log:
    """Put a rest on the ground before the flight."""
    still = int(REST * RATE)
    level = np.array([0.0, 0.0, GRAVITY])
    rest = level - np.cross(np.array(truth.tilt), level) + draw.normal(0.0, 0.02, (still, 3))
    time = np.arange(still + len(gyro)) / RATE
    streams = (
        LogStream("gyro", time, np.concatenate([draw.normal(0.0, GYRO_NOISE, (still, 3)), gyro])),
        LogStream("accelerometer", time, np.concatenate([rest, force])),
        LogStream("motor_command", time, np.concatenate([np.zeros((still, commands.shape[1])), commands]), stamp="held"),
    )
    return Log(truth.vehicle.name, streams, LogSource(truth.vehicle.name, "", "simulated"))


def _beside(truth: FlownTruth, poses: Array, volts: Array, draw: np.random.Generator) -> list[LogStream]:
    """Attitudes, velocities and voltages with the noise of common sensors, 100 times a second, where the log has them."""
    still, every = int(REST * RATE), RATE // 100
    time = np.arange(still + len(poses))[::every] / RATE
    streams = []
    if truth.wind is not None:
        seen = np.concatenate([np.repeat(poses[:1], still, axis=0), poses])[::every]
        seen = seen + np.array([0.002] * 4 + [0.02] * 3) * draw.standard_normal(seen.shape)
        attitude = seen[:, :4] / np.linalg.norm(seen[:, :4], axis=1, keepdims=True)
        streams += [LogStream("attitude", time, attitude), LogStream("velocity", time, seen[:, 4:])]
    if truth.volts is not None:
        seen = np.concatenate([np.full(still, volts[0]), volts])[::every, None]
        streams.append(LogStream("voltage", time, seen + draw.normal(0.0, 0.01, seen.shape)))
    return streams
