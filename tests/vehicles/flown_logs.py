"""Logs of flights of known vehicles, by equations written anew: what identification finds can be compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.frames import multiply, rotate_inverse
from airworthy.logs import Log, LogSource, LogStream
from airworthy.vehicles import Vehicle
from airworthy.vehicles.identification.known import believed, frame_vehicle

GRAVITY = 9.81
REST = 2.0
"""On the ground, motors off, before the flight [s]."""


@dataclass(frozen=True)
class Craft:
    """The truth."""

    positions: np.ndarray
    axes: np.ndarray
    spins: np.ndarray
    """+1: the reaction torque points along the axis."""
    mass: float = 0.027
    inertia: tuple[float, float, float] = (1.5e-5, 1.6e-5, 2.8e-5)
    thrust: tuple[float, float] = (0.02, 0.12)
    """c1, c2 of c1 s + c2 s|s| [N]."""
    torque_ratio: float = 0.006
    lag: float = 0.058
    delay: float = 0.012
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lever: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0)
    square: bool = False
    """Whether rotors respond by the square of their speeds."""
    drag: float = 0.0
    """Share of the speed across the rotors' axes that the air takes in a second [1/s]."""
    drag_height: float = 0.0
    """Where it acts, above the centre of mass [m]."""
    force_delay: int = 0
    """Samples by which the accelerometer is late."""
    drift: float = 0.0
    """By how much the angular acceleration about x that no rotor tells grows in a second [rad/s^3], 0 in mid-flight."""
    fall: float | None = None
    """Lag of rotors that slow down [s]; None: the same."""
    offset: float = 0.0
    """Steady rotor state just above a command of 0, over that at full command."""
    full: float = 0.0
    """Rotor speed at full command [rad/s]; above 0 the log has speeds."""
    speed_late: int = 0
    """Samples by which speeds are late."""
    drag_z: float = 0.0
    """The same as `drag` along the rotors' axes [1/s]."""
    drag_square: float = 0.0
    """Share of the speed that the air takes in a second for each m/s [1/m]."""
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of a posed flight [m/s]."""
    posed: bool = False
    """Whether the log has attitude, velocity and position; else the pilot knows its velocity and forgets it."""
    sag: float = 0.0
    """Exponent by which commands go with the supply."""
    volts: tuple[float, float] | None = None
    """Of the supply at take-off and at the end, less 2 % at full thrust [V]; their mean leaves commands as they are."""

    @property
    def hover(self) -> float:
        """Command in hover."""
        share = self.mass * GRAVITY / self.axes[:, 2].sum()
        c1, c2 = self.thrust
        return float((-c1 + np.sqrt(c1**2 + 4.0 * c2 * share)) / (2.0 * c2))

    def known(self, mass_sd: float = 1e-3) -> Vehicle:
        """Return the geometry, as somebody who built it knows it."""
        rows = [tuple(float(v) for v in row) for row in self.positions]
        axes = [tuple(float(v) for v in row) for row in self.axes]
        return believed("known", self.mass, rows, axes, [int(s) for s in self.spins])  # type: ignore[arg-type]


def quad(arm: float = 0.028, **changes: object) -> Craft:
    """A Crazyflie, nearly."""
    frame = frame_vehicle(f"quad_x:{arm}", 0.027)
    base = Craft(
        np.array([r.position for r in frame.rotors]),
        np.array([r.axis for r in frame.rotors]),
        np.array([float(r.spin) for r in frame.rotors]),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Excitation:
    """What a flight does besides hovering; sizes of steps."""

    collective: float = 1.5
    """[m/s^2]"""
    tilt: float = 1.2
    """Rate about x and y [rad/s]."""
    yaw: float = 0.8
    """[rad/s]"""


def fly(
    craft: Craft,
    seconds: float = 30.0,
    rate: int = 500,
    excitation: Excitation | None = None,
    seed: int = 0,
    gyro_noise: float = 0.005,
    force_noise: float = 0.15,
    push: float = 0.0,
    speed: float = 4.0,
) -> Log:
    """Fly closed loop and log gyro, accelerometer and motor commands.

    Args:
        craft: What flies.
        seconds: In the air.
        rate: Of everything [Hz].
        excitation: Steps that are flown.
        seed: Of steps and noise.
        gyro_noise: [rad/s]
        force_noise: [m/s^2]
        speed: That posed flights seek, to and fro [m/s].
        push: Deviation of a slow random angular acceleration about x and y [rad/s^2].
    """
    excitation = excitation or Excitation()
    draw, dt = np.random.default_rng(seed), 1.0 / rate
    count, still = int(seconds * rate), int(REST * rate)
    rotors, inertia = len(craft.positions), np.array(craft.inertia)
    arms = np.cross(craft.positions - np.array(craft.center), craft.axes)
    moments = (arms + (craft.spins * craft.torque_ratio)[:, None] * craft.axes).T
    # The pilot is trimmed: it knows where the centre of mass is.
    mixing = np.linalg.pinv(np.vstack([craft.axes[:, 2], moments]))
    steps = np.repeat(draw.choice([-1.0, 0.0, 1.0], (count // (rate // 5) + 1, 4)), rate // 5, axis=0)[:count]
    noise_w, noise_f = draw.normal(0.0, gyro_noise, (count, 3)), draw.normal(0.0, force_noise, (count, 3))
    pushes = draw.standard_normal((count, 2))
    late = round(craft.delay * rate)
    c1, c2 = craft.thrust
    state, commands = np.full(rotors, craft.hover), np.full((count, rotors), craft.hover)
    q, w, velocity, pushed = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), np.zeros(2)
    gyro, force, states = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, rotors))
    lever, tilt = np.array(craft.lever) - np.array(craft.center), np.array(craft.tilt)
    keep_rise, keep_fall = np.exp(-dt / craft.lag), np.exp(-dt / (craft.fall or craft.lag))
    height, air = 0.0, np.zeros(3)
    drags, leak = np.array([craft.drag, craft.drag, craft.drag_z]), 1.0 if craft.posed else 0.999
    place, poses, volts = np.zeros(3), np.empty((count, 10)), np.zeros((count, 1))
    for k in range(count):
        up = rotate_inverse(q, np.array([0.0, 0.0, 1.0]))
        f = c1 * state + c2 * state * np.abs(state)
        acceleration = moments @ f / inertia - np.cross(w, inertia * w) / inertia
        turned_by = pushed + np.array([craft.drift * dt * (k - 0.5 * count), 0.0])
        acceleration[:2] += turned_by
        air = rotate_inverse(q, velocity - np.array(craft.wind))
        pull = -(drags + craft.drag_square * float(np.linalg.norm(air))) * air
        poses[k] = *q, *velocity, *place
        turn = craft.mass * np.cross([0.0, 0.0, craft.drag_height], pull) / inertia
        acceleration += turn
        body = craft.axes.T @ f / craft.mass + pull
        seen = body + np.cross(acceleration, lever) + np.cross(w, np.cross(w, lever))
        gyro[k] = w - np.cross(tilt, w) + noise_w[k]
        force[k] = seen - np.cross(tilt, seen) + noise_f[k]
        wanted = GRAVITY + excitation.collective * steps[k, 0] - 1.0 * velocity[2] - 0.5 * height
        rates = np.array([-up[1], up[0], 0.0]) * 3.0
        if craft.posed:
            # Fast lines to and fro: it leans as its speed asks for.
            wished = speed * np.array([np.sin(0.9 * k * dt), np.cos(0.7 * k * dt), 0.0])
            lean = rotate_inverse(q, np.clip(0.8 * (wished - velocity), -3.0, 3.0) * np.array([1.0, 1.0, 0.0])) / GRAVITY
            rates += 3.0 * np.array([-lean[1], lean[0], 0.0])
        rates += steps[k, 1:] * np.array([excitation.tilt, excitation.tilt, excitation.yaw])
        torque = inertia * 7.0 * (rates - gyro[k])
        lift = mixing @ np.concatenate([[craft.mass * wanted / max(up[2], 0.5)], torque])
        lift = np.clip(lift, 0.0, None)
        steady = np.clip((-c1 + np.sqrt(c1**2 + 4.0 * c2 * lift)) / (2.0 * c2), 0.05 + craft.offset, 1.0)
        commands[k] = (steady - craft.offset) / (1.0 - craft.offset)
        states[k] = state
        acting = craft.offset + (1.0 - craft.offset) * commands[k - late] if k >= late else np.full(rotors, craft.hover)
        if craft.volts is not None:
            full, empty = craft.volts
            volts[k] = (full + (empty - full) * k / count) * (1.0 - 0.02 * state.mean())
            first = np.sign(acting) * craft.offset
            acting = first + (acting - first) * (volts[k, 0] / (0.5 * (full + empty))) ** craft.sag
        keep = np.where(acting >= state, keep_rise, keep_fall)
        if craft.square:
            # Riccati's equation, as good as exact by many small steps.
            rate_b = 1.0 / (2.0 * craft.lag * craft.hover)
            for _ in range(4):
                middle = state + 0.125 * dt * rate_b * (acting**2 - state**2)
                state = state + 0.25 * dt * rate_b * (acting**2 - middle**2)
            after = state
        else:
            after = acting + (state - acting) * keep
        # Midpoint rule for the body, with the thrust of the middle of the step.
        middle = 0.5 * (state + after) if not craft.square else state
        middle = acting + (state - acting) * np.sqrt(keep) if not craft.square else middle
        f = c1 * middle + c2 * middle * np.abs(middle)
        half = w + 0.5 * dt * acceleration
        turned = moments @ f / inertia - np.cross(half, inertia * half) / inertia
        turned[:2] += turned_by
        turned += turn
        w = w + dt * turned
        spun = np.concatenate([0.5 * dt * half, [1.0]])
        moved = multiply(q, spun / np.linalg.norm(spun))
        lifted = _world(q, craft.axes.T @ f / craft.mass + pull) - np.array([0.0, 0.0, GRAVITY])
        velocity = leak * velocity + dt * lifted
        height += dt * velocity[2]
        place = place + dt * velocity
        q, state = moved, after
        pushed = pushed * (1.0 - dt / 0.5) + push * np.sqrt(2.0 * dt / 0.5) * pushes[k]
    force = np.concatenate([np.repeat(force[:1], craft.force_delay, axis=0), force[: count - craft.force_delay]])
    log = _log(craft, rate, still, gyro, force, commands, draw, gyro_noise)
    log = replace(log, streams=(*log.streams, *_beside(craft, log.streams[0].time, still, poses, volts, draw)))
    if not craft.full:
        return log
    states = np.concatenate([np.repeat(states[:1], craft.speed_late, axis=0), states[: count - craft.speed_late]])
    speeds = craft.full * states + draw.normal(0.0, 3.0, states.shape)
    speeds = np.concatenate([np.zeros((still, rotors)), speeds])
    return replace(log, streams=(*log.streams, LogStream("motor_speed", log.streams[0].time, speeds)))


def _beside(
    craft: Craft, time: np.ndarray, still: int, poses: np.ndarray, volts: np.ndarray, draw: np.random.Generator
) -> list[LogStream]:
    """Poses at a fifth of the rate, with a capture system's noise, and the voltage, where the craft has them."""
    streams = []
    if craft.posed:
        rest = np.concatenate([np.repeat(poses[:1], still, axis=0), poses])[::5]
        noise = np.array([0.002] * 4 + [0.02] * 3 + [0.001] * 3)
        seen = rest + noise * draw.standard_normal(rest.shape)
        seen[:, :4] /= np.linalg.norm(seen[:, :4], axis=1, keepdims=True)
        for kind, columns in (("attitude", slice(4)), ("velocity", slice(4, 7)), ("position", slice(7, 10))):
            streams.append(LogStream(kind, time[::5], seen[:, columns], label="capture"))
    if craft.volts is not None:
        seen = np.concatenate([np.full((still, 1), craft.volts[0]), volts])[::5]
        streams.append(LogStream("voltage", time[::5], seen + draw.normal(0.0, 0.01, seen.shape)))
    return streams


def _world(q: np.ndarray, vector: np.ndarray) -> np.ndarray:
    conjugated = q * np.array([-1.0, -1.0, -1.0, 1.0])
    return np.asarray(rotate_inverse(conjugated, vector))


def _log(
    craft: Craft,
    rate: int,
    still: int,
    gyro: np.ndarray,
    force: np.ndarray,
    commands: np.ndarray,
    draw: np.random.Generator,
    gyro_noise: float,
) -> Log:
    """Put a rest before the flight, as of a vehicle that stands level."""
    rest_w, rest_f = draw.normal(0.0, min(gyro_noise, 0.01), (still, 3)), draw.normal(0.0, 0.02, (still, 3))
    level = np.array([0.0, 0.0, GRAVITY])
    rest_f += level - np.cross(np.array(craft.tilt), level)
    time = np.arange(still + len(gyro)) / rate
    idle = np.zeros((still, commands.shape[1]))
    streams = (
        LogStream("gyro", time, np.concatenate([rest_w, gyro])),
        LogStream("accelerometer", time, np.concatenate([rest_f, force])),
        LogStream("motor_command", time, np.concatenate([idle, commands]), stamp="held"),
    )
    return Log("flown", streams, LogSource("flown", "0123456789abcdef", "test"))


def changed(log: Log, kind: str, time: np.ndarray | None = None, values: np.ndarray | None = None) -> Log:
    """Return a log with another stream of a kind."""
    streams = tuple(
        replace(s, time=s.time if time is None else time, values=s.values if values is None else values)
        if s.kind == kind
        else s
        for s in log.streams
    )
    return replace(log, streams=streams)
