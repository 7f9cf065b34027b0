"""What identification promises: known vehicles are flown in the simulator, identified from their logs, compared with the truth.

A pilot that holds height and attitude steps its commands, each rotor's command is logged, and the vehicle answers it late by
its dead time; the log holds what a gyro and an accelerometer of common noise would have read. Aims are those of the
specification of identification, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import data_dir
from airworthy.core.frames import rotate_inverse
from airworthy.logs import Log, LogSource, LogStream, flight_segments, read_log
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import (
    Drag,
    Identified,
    Known,
    Rotor,
    RotorResponse,
    Vehicle,
    control_effectiveness,
    frame_vehicle,
    identify,
)
from airworthy.vehicles.identification.published import identify_published
from airworthy.vehicles.identification.result import hover_command
from airworthy.vehicles.identification.signals import FlightSignals, flight_signals
from airworthy.verification.identify_bench import bench_figures
from airworthy.verification.identify_coverage import HIGHEST, LOWEST, coverage_rows, fit_flights
from airworthy.verification.identify_draws import draw_figures
from airworthy.verification.identify_pilots import flight_figures, tuning_figures
from airworthy.verification.published import Figure, below, within

RATE = 500
"""Of commands and sensors [Hz]."""
SECONDS, REST = 40.0, 2.0
"""In the air, and on the ground before it [s]."""
GYRO_NOISE, FORCE_NOISE = 0.005, 0.15
"""Of a sample [rad/s, m/s^2]."""
GRAVITY = 9.81
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
    small = _craft("crazyflie", "quad_x:0.028", 0.027, (1.5e-5, 1.6e-5, 2.8e-5), 0.055, 1.9)
    racer = _craft("racer", "quad_x:0.088", 0.55, (9e-4, 1.1e-3, 1.9e-3), 0.028, 4.5)
    x500 = _craft("x500", "quad_x:0.17", 2.0, (0.0216, 0.0216, 0.04), 0.045, 2.0)
    hexa = _craft("hexa", "hexa_x:0.275", 2.4, (0.032, 0.035, 0.058), 0.045, 2.2)
    heavy = _craft("heavy", "octa_x:0.55", 10.0, (0.42, 0.45, 0.8), 0.09, 1.9)
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


def _craft(name: str, frame: str, mass: float, inertia: tuple[float, float, float], lag: float, lift: float) -> Vehicle:
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
    simulator = Simulator(vehicle, config, env_count=1, seed=seed, threads=1)
    hover = 1000.0 * hover_command(vehicle)
    simulator.reset(position=[0.0, 0.0, 100.0], rotor_speed=np.full((1, len(rotors)), hover))
    effect = control_effectiveness(vehicle)
    mixing, inertia = np.linalg.pinv(effect[2:]), np.array(vehicle.inertia[:3])
    axes = np.array([r.axis for r in rotors])
    c1, c2 = rotors[0].thrust[1:]
    lag = 1.0 / (rotors[0].response.rise[0] + 2.0 * rotors[0].response.rise[1] * hover)
    gain = min(0.45 / (lag + truth.delay * dt), 14.0)
    steps = np.repeat(draw.choice([-1.0, 0.0, 1.0], (count // (RATE // 4) + 1, 4)), RATE // 4, axis=0)[:count]
    noise_w, noise_f = draw.normal(0.0, GYRO_NOISE, (count, 3)), draw.normal(0.0, FORCE_NOISE, (count, 3))
    gyro, force, commands = np.empty((count, 3)), np.empty((count, 3)), np.full((count, len(rotors)), hover)
    lever, tilt = np.array(truth.lever) - np.array(vehicle.center_of_mass), np.array(truth.tilt)
    damping = np.array(vehicle.drag.angular_linear)
    for k in range(count):
        rate, state = simulator.rate[0].astype(np.float64), simulator.rotor_speed[0].astype(np.float64)
        thrust = c1 * state + c2 * state * np.abs(state)
        turning = (effect[3:] @ thrust - np.cross(rate, inertia * rate) - damping * rate) / inertia
        seen = axes.T @ thrust / vehicle.mass + np.cross(turning, lever) + np.cross(rate, np.cross(rate, lever))
        gyro[k] = rate - np.cross(tilt, rate) + noise_w[k]
        force[k] = seen - np.cross(tilt, seen) + noise_f[k]
        up = rotate_inverse(simulator.attitude[0].astype(np.float64), np.array([0.0, 0.0, 1.0]))
        climb, height = float(simulator.velocity[0, 2]), float(simulator.position[0, 2]) - 100.0
        lift = vehicle.mass * (GRAVITY + 2.5 * steps[k, 0] - 1.0 * climb - 0.3 * height) / max(float(up[2]), 0.5)
        wanted = 0.35 * gain * np.array([-up[1], up[0], 0.0]) + steps[k, 1:] * 0.1 * gain * truth.vigour
        moments = inertia * gain * (wanted - gyro[k])
        share = np.clip(mixing @ np.concatenate([[lift], moments]), 0.0, None)
        commands[k] = np.clip((np.sqrt(c1**2 + 4.0 * c2 * share) - c1) / (2.0 * c2), 80.0, 995.0)
        acting = commands[k - truth.delay] if k >= truth.delay else np.full(len(rotors), hover)
        simulator.step(acting[None])
    return _logged(truth, gyro, force, commands / 1000.0, draw)


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


# ---- Figures -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Misses:
    """How far an identified vehicle is from the truth."""

    name: str
    thrust: float
    """Largest over the flown range, over the truth."""
    lag: float
    """Over the truth."""
    delay: float
    """[s]"""
    inertia: float
    """The larger of xx and yy, over the truth."""
    yaw: float
    """Of torque over Izz, over the truth."""
    center: float
    """Over half a millimetre or 1 % of the arm, whichever is more."""
    lever: float
    """[m]"""
    tilt: float
    """[rad]"""


def misses(truth: FlownTruth, found: Identified) -> Misses:
    """Compare an identified vehicle with the truth."""
    vehicle, made = truth.vehicle, found.vehicle
    _, c1, c2 = vehicle.rotors[0].thrust
    curve = [abs(f / (c1 * 1000.0 * u + c2 * (1000.0 * u) ** 2) - 1.0) for u, f, _ in found.curve]
    hover = 1000.0 * found.fit.problem.parameters.state / made.rotors[0].speed_max
    lag = 1.0 / (vehicle.rotors[0].response.rise[0] + 2.0 * vehicle.rotors[0].response.rise[1] * hover)
    arm = float(np.mean([math.hypot(*r.position[:2]) for r in vehicle.rotors]))
    ratio = vehicle.rotors[0].torque[2] / vehicle.rotors[0].thrust[2]
    off = math.dist(made.center_of_mass[:2], vehicle.center_of_mass[:2])
    lever = [found.value(f"imu_{axis}").value - truth.lever[k] for k, axis in enumerate("xyz")]
    tilt = [found.value(f"imu_tilt_{axis}").value - truth.tilt[k] for k, axis in enumerate("xy")]
    return Misses(
        vehicle.name,
        max(curve),
        abs(found.value("lag").value / lag - 1.0),
        abs(found.value("command_delay").value - truth.delay / RATE),
        max(abs(made.inertia[k] / vehicle.inertia[k] - 1.0) for k in (0, 1)),
        abs(found.value("torque_ratio").value / made.inertia[2] * vehicle.inertia[2] / ratio - 1.0),
        off / max(5e-4, 0.01 * arm),
        max(map(abs, lever)) if found.value("imu_x").word == "identified" else 0.0,
        max(map(abs, tilt)),
    )


def recovered(chosen: Sequence[FlownTruth], quick: bool) -> Iterator[tuple[FlownTruth, Identified, Misses]]:
    """Fly, identify and compare vehicles.

    Args:
        chosen: Vehicles.
        quick: As of `identify`.
    """
    for number, truth in enumerate(chosen):
        mass = truth.vehicle.mass
        found = identify([flown(truth, number)], Known(mass=(mass, MASS_SHARE * mass), vehicle=truth.known), quick=quick)
        yield truth, found, misses(truth, found)


AIMS = (
    ("thrust over command", "thrust", 0.01, ""),
    ("lag", "lag", 0.05, ""),
    ("dead time", "delay", 1.0 / RATE, "s"),
    ("Ixx, Iyy", "inertia", 0.03, ""),
    ("torque over Izz", "yaw", 0.03, ""),
    ("centre of mass, over its aim", "center", 1.0, ""),
    ("lever of the sensor", "lever", 0.003, "m"),
    ("tilt of the sensor", "tilt", math.radians(0.3), "rad"),
)
"""What must be recovered, the field of `Misses`, its aim and unit (11.4)."""


def identify_figures(everything: bool = False) -> Iterator[Figure]:
    """Measure identification.

    Args:
        everything: All vehicles, by the full method, each tuned on what was found of it, and both flights of the Crazyflie;
            else three, by the quick one, of which one is tuned on.
    """
    chosen = truths() if everything else truths()[:3]
    # What fits hold is as large as their logs: only what is compared is kept.
    made = [(truth, found.vehicle, row) for truth, found, row in recovered(chosen, not everything)]
    found = [row for _, _, row in made]
    for title, field, aim, unit in AIMS:
        worst = max(found, key=lambda row: getattr(row, field))
        yield below(f"{title}, worst of {len(found)} flown vehicles ({worst.name})", getattr(worst, field), aim, unit)
    yield from flight_figures([replace(vehicle, name=truth.vehicle.name) for truth, vehicle, _ in made])
    yield from tuning_figures([(truth.flown, vehicle) for truth, vehicle, _ in made[: None if everything else 1]])
    yield from _draws(everything)
    small = truths()[0]
    yield from bench_figures(small.vehicle, small.known, flown(small, 0, 14.0))
    if everything:
        yield from _covered()
    folder = data_dir()
    if folder is not None:
        yield from _published(folder)


def _draws(everything: bool) -> Iterator[Figure]:
    """Draws of an identified vehicle keep thrust over mass (11.8)."""
    truth = truths()[0]
    mass = truth.vehicle.mass
    known = Known(mass=(mass, 0.02 * mass), vehicle=truth.known)
    found = identify([flown(truth, 0, 12.0)], known, quick=True).vehicle
    drawn = found.draw(2000, 0)
    hover = np.array([hover_command(v) for v in drawn.vehicles])
    weights = np.array([v.mass for v in drawn.vehicles])
    yield below("draws of an identified vehicle: share rejected", drawn.rejected / 2000.0, 0.02)
    yield within("draws: deviation of the mass over that of the scales", float(np.std(np.log(weights))) / 0.02, 1.0, 0.05)
    yield below("draws: deviation of hover over that of the mass", float(np.std(np.log(hover)) / np.std(np.log(weights))), 0.25)
    yield from draw_figures(found, everything)


def _covered() -> Iterator[Figure]:
    """Share of the 90 % intervals of one batch of pushed flights that hold the truth; the whole study takes 200 fits (11.6)."""
    rows = coverage_rows(list(fit_flights(0)))
    told = sum(row.fits for row in rows)
    inside = sum(row.inside * row.fits for row in rows) / max(told, 1)
    middle = 0.5 * (LOWEST + HIGHEST)
    title = f"90 % intervals of pushed flights that hold the truth, of {told}"
    yield within(title, inside, middle, round((HIGHEST - LOWEST) / 2.0 / middle, 4))


def _published(folder: Path) -> Iterator[Figure]:
    """Run the published procedure on the published flights (11.2)."""
    place = folder / "flights/crazyflie_sysid"
    if not place.is_dir():
        return
    frame = frame_vehicle("quad_x:0.028", 0.027)
    positions = np.array([r.position for r in frame.rotors])
    axes = np.array([r.axis for r in frame.rotors])
    parts = ((35.0, 65.0),), ((55.0, 61.378845), (61.379683, 80.509798), (80.874170, 90.0))
    flights = [_part(read_log(place / name), of) for name, of in zip(("log10", "log15"), parts, strict=True)]
    found = identify_published(flights[0], flights[1], 0.027, positions, axes, gravity_as_published=True)
    yield within("Eschmann 2024: lag", found.lag, 0.0715657, 1e-5, "s")
    for title, measured, aim, share in (
        ("k0", found.thrust[0], 0.0212656, 1e-3),
        ("k1", found.thrust[1], -0.011175, 1e-3),
        ("k2", found.thrust[2], 0.120130, 1e-3),
        ("k2 alone", found.thrust_square, 0.1500, 1e-3),
        ("Ixx", found.inertia[0], 1.02863e-5, 5e-4),
        ("Iyy", found.inertia[1], 1.10524e-5, 5e-4),
    ):
        yield within(f"Eschmann 2024: {title}", measured, aim, share)


def _part(log: Log, parts: Sequence[tuple[float, float]]) -> FlightSignals:
    begin = log.source.start_ns * 1e-9
    spans = tuple((a - begin + 5e-7, b - begin - 5e-7) for a, b in parts)
    return replace(flight_signals(log, flight_segments(log)), spans=spans)
