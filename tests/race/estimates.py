"""Flights along smooth paths through gates, with the sensors of the race, for the tests of the estimator: an own generator,
which shares no line with the filter. Motion is analytic, inertial samples are drawn at the middle of their periods, pixels by
an own pinhole, and gates are moved by `moved_gate`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.core.arrays import Array
from airworthy.race import Race, gate_shape, load_race, moved_gate
from airworthy.race.briefing import BeaconFrame, RaceBriefing, race_briefing
from airworthy.race.classes import race_class
from airworthy.race.estimation.estimator import FilterState, GateFilter, UpdateRecord
from airworthy.trajectories import Trajectory, rigid_state, yaw_spline
from airworthy.trajectories.min_snap import hermite_spline

RATE, FRAME = 960, 16
GRAVITY = np.array([0.0, 0.0, 9.81])
ACROSS, UPWARDS = 15.0, 6.0
"""What paths may ask for, level and vertically [m/s^2]: far from free fall, and within two thirds of the thrust there is."""


@dataclass(frozen=True)
class Flights:
    """Truth and sensors of n flights of equally many frames."""

    briefing: RaceBriefing
    position: Array
    """At frames, the first at arming, (frames + 1, n, 3)."""
    velocity: Array
    attitude: Array
    bias: Array
    """(frames + 1, n, 6)."""
    shift: Array
    """dx, dy, dyaw of every gate, (n, gates, 3)."""
    corners: Array
    """True ones, (n, gates, 4, 3)."""
    samples: Array
    """(16 frames, n, 6)."""
    pixel: Array
    """(frames + 1, n, gates, 4, 2)."""


def course(race: Race, rng: np.random.Generator) -> tuple[Race, Array]:
    """Gates moved uniformly within their bounds, and by how much (dx, dy, dyaw [rad])."""
    shifts = np.array([rng.uniform(-1.0, 1.0, 4) * gate.bound.shift for gate in race.gates])
    gates = tuple(moved_gate(gate, shift) for gate, shift in zip(race.gates, shifts, strict=True))
    return race.with_gates(gates), np.column_stack([shifts[:, :2], np.radians(shifts[:, 3])])


def path_through(race: Race, speed: float) -> Trajectory:
    """Smooth, from rest at the start through the gates along their directions, looking at the gate to come."""
    shapes = {gate.name: gate_shape(gate) for gate in race.gates}
    points, looks = [np.array(race.start.position)], [math.radians(race.start.yaw_deg)]
    for name, _ in race.passes:
        shape = shapes[name]
        for along in (-3.0, 3.0):
            points.append(shape.center + along * shape.normal)
    for k in range(1, len(points)):
        # At a gate it still looks through it, behind it at the next.
        aim = points[min(k + 1 if k % 2 else k + 2, len(points) - 1)] - points[k] if k < len(points) - 1 else shape.normal
        looks.append(math.atan2(aim[1], aim[0]))
    gaps = np.linalg.norm(np.diff(points, axis=0), axis=1) / speed
    gaps[0] += 1.0  # from rest
    for _ in range(12):  # legs that ask for too much take longer
        path = _smooth(np.array(points), np.array(looks), gaps, speed * shape.normal)
        times = path.knots[:-1, None] + gaps[:, None] * np.linspace(0.0, 1.0, 9)
        ask = np.abs(path.sample(times).acceleration)
        use = np.maximum(np.hypot(ask[..., 0], ask[..., 1]) / ACROSS, ask[..., 2] / UPWARDS).max(1)
        gaps = gaps * np.clip(np.sqrt(use), 1.0, 1.3)
    return path


def _smooth(points: Array, looks: Array, gaps: Array, last: Array) -> Trajectory:
    # At rest and level at the start, the velocity given at the end, places between: the rest is least snap, and continuous.
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    values, given = np.zeros((len(points), 4, 3)), np.zeros((len(points), 4), bool)
    values[:, 0], given[:, 0], given[0], given[-1, 1] = points, True, True, True
    values[-1, 1] = last
    return Trajectory(times, hermite_spline(gaps, values, given), *yaw_spline(times, np.unwrap(looks)))


def flights(count: int, seed: int, word: str = "noisy", seconds: float | None = None, speed: float = 9.0) -> Flights:
    """Draw flights of the AlphaPilot race."""
    race, conditions = load_race("alphapilot"), race_class(word)
    briefing = race_briefing(race, conditions)
    rng = np.random.default_rng([seed, 5])
    courses = [course(race, rng) for _ in range(count)]
    paths = [path_through(c, speed) for c, _ in courses]
    length = min(path.duration for path in paths) if seconds is None else seconds
    frames = int(length * RATE) // FRAME
    truth = [_motion(path, frames) for path in paths]
    position, velocity, attitude, force, rate = (np.stack(part, axis=1) for part in zip(*truth, strict=True))
    walk = np.repeat(briefing.walk, 3) * math.sqrt(1.0 / RATE)
    bias = np.cumsum(rng.standard_normal((len(force), count, 6)) * walk, axis=0)
    samples = np.concatenate([force, rate], axis=-1) + bias
    samples = samples + rng.standard_normal(samples.shape) * np.repeat(briefing.noise, 3)
    corners = np.array([[gate_shape(gate).corners for gate in c.gates] for c, _ in courses])
    pixel = np.stack([seen(briefing, p, q, corners) for p, q in zip(position, attitude, strict=True)])
    pixel = pixel + conditions.pixel_noise * rng.standard_normal(pixel.shape)
    pixel[rng.uniform(size=pixel.shape[:-1]) < conditions.dropout] = np.nan
    at_frames = np.concatenate([np.zeros((1, count, 6)), bias[FRAME - 1 :: FRAME]])
    shift = np.array([s for _, s in courses])
    return Flights(briefing, position, velocity, attitude, at_frames, shift, corners, samples, pixel)


def _motion(path: Trajectory, frames: int) -> tuple[Array, ...]:
    """At frames: position, velocity, attitude; at the middle of each inertial period: specific force and body rate."""
    at = path.sample(np.arange(frames + 1) * FRAME / RATE)
    flat = rigid_state(at, 1.0, np.array([0.005, 0.005, 0.007, 0.0, 0.0, 0.0]))
    between = path.sample((np.arange(frames * FRAME) + 0.5) / RATE)
    body = rigid_state(between, 1.0, np.array([0.005, 0.005, 0.007, 0.0, 0.0, 0.0]))
    force = Rotation.from_quat(body.attitude).inv().apply(between.acceleration + GRAVITY)
    return at.position, at.velocity, flat.attitude, force, body.body_rate


def seen(briefing: RaceBriefing, position: Array, attitude: Array, corners: Array) -> Array:
    """Pixels of corners (n, gates, 4, 3) from poses (n, 3), (n, 4), NaN outside the image of 1024 x 768 pixels."""
    turns = Rotation.from_quat(attitude).as_matrix()
    away = (corners - position[:, None, None]).reshape(len(turns), -1, 3)
    body = np.swapaxes(turns, 1, 2) @ np.swapaxes(away, 1, 2)
    x, y, z = body[:, 0], body[:, 1], body[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = 512.0 - briefing.focal[0] * y / x, 384.0 - briefing.focal[1] * z / x
    inside = (x > 0.1) & (u > 0) & (u < 1024) & (v > 0) & (v < 768)
    pixel = np.where(inside[..., None], np.stack([u, v], -1), np.nan)
    return pixel.reshape(*corners.shape[:-1], 2)


def estimated(flown: Flights, filter_: GateFilter) -> Iterator[tuple[FilterState, UpdateRecord]]:
    """The filter's states behind every frame, the first that before arming."""
    state = filter_.begin(flown.position.shape[1])
    for number, pixel in enumerate(flown.pixel):
        if number:
            state = filter_.advance(state, flown.samples[FRAME * (number - 1) : FRAME * number])
        state, record = filter_.update(state, BeaconFrame(number * FRAME / RATE, pixel))
        yield state, record


def errors(flown: Flights, number: int, state: FilterState) -> Array:
    """True minus believed at a frame, in the order of the filter's state, (n, d)."""
    now = state.now
    turn = (Rotation.from_quat(flown.attitude[number]) * Rotation.from_quat(now.motion.attitude).inv()).as_rotvec()
    parts = [flown.position[number] - now.motion.position, flown.velocity[number] - now.motion.velocity, turn]
    if now.motion.bias.shape[1]:
        parts.append(flown.bias[number] - now.motion.bias)
    parts.append((flown.shift - now.gates).reshape(len(turn), -1))
    return np.concatenate(parts, axis=1)


def moving(filter_: GateFilter) -> Array:
    """Numbers of the errors that are not 0 by definition."""
    bound = filter_.briefing.bound.ravel()
    return np.r_[np.arange(filter_.gates_at), filter_.gates_at + np.nonzero(bound)[0]]


def nees(error: Array, covariance: Array, which: Array) -> Array:
    """Normalised estimation error squared, (n,)."""
    part = covariance[:, which[:, None], which]
    return np.einsum("ni,ni->n", error[:, which], np.linalg.solve(part, error[:, which][..., None])[..., 0])


def gate_frames(flown: Flights) -> Array:
    """The frame in which each flight is nearest to each gate's centre, (n, gates)."""
    center = flown.corners.mean(2)
    return np.linalg.norm(flown.position[:, :, None] - center, axis=-1).argmin(0)


@cache
def some_flights(word: str = "noisy") -> Flights:
    """Six flights, made once."""
    return flights(6, 11, word)


def exact(briefing: RaceBriefing, **changes: object) -> RaceBriefing:
    """A briefing with other figures."""
    return replace(briefing, **changes)
