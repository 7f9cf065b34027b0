"""Synthetic flights: a reference with turns and climbs, and drones that follow it as well or as badly as a test asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from airworthy.core import frames
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import FlightStatus, TrackingReference

GRAVITY = 9.81
HOVER_SPEED = 1000.0
UP = np.array([0.0, 0.0, GRAVITY])


def course(duration: float = 15.0, rate_hz: float = 20.0) -> TrackingReference:
    """A smooth course from rest to rest: forward 9 m, weaving 1.2 m to both sides, climbing 1 m, turning its nose along."""
    t = np.linspace(0.0, duration, round(duration * rate_hz) + 1)
    s = t / duration
    share = 10 * s**3 - 15 * s**4 + 6 * s**5
    pace = (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    turn = 2.5 * np.pi
    position = np.stack(
        (-4.5 + 9.0 * share, 1.2 * np.sin(turn * share), 1.1 + 0.6 * np.sin(np.pi * share) ** 2 + 0.5 * share), axis=-1
    )
    velocity = np.stack(
        (9.0 * pace, 1.2 * turn * np.cos(turn * share) * pace, (0.6 * np.pi * np.sin(2 * np.pi * share) + 0.5) * pace), axis=-1
    )
    yaw = 0.6 * np.sin(turn * share) + 0.8 * share
    return TrackingReference(t, position, velocity, yaw)


def fly(
    reference: TrackingReference,
    count: int = 64,
    *,
    seed: int = 0,
    rate_hz: float = 100.0,
    extra_s: float = 1.0,
    quality: np.ndarray | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Columns of flights that lag and wobble around a reference, and the parameters that made them do so.

    Args:
        reference: What they follow.
        count: Number of flights.
        seed: Of the parameters.
        rate_hz: Samples per second.
        extra_s: Time flown after the end of the reference.
        quality: Size of the wobble of each flight [m]; drawn where None.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(round((reference.t[-1] + extra_s) * rate_hz) + 1) / rate_hz
    mass = 1.0 + 0.3 * rng.uniform(-1, 1, count)
    wobble = 0.02 + 0.10 * np.abs(mass - 1.0) / 0.3 + 0.02 * rng.uniform(size=count) if quality is None else quality
    lag = 0.05 + 0.08 * rng.uniform(size=count)
    phase = rng.uniform(0, 2 * np.pi, (count, 3))
    pace = 2 * np.pi * rng.uniform(0.15, 0.45, (count, 3))
    fade = np.minimum(1.0, t / 2.0)[None, :, None]
    swing = wobble[:, None, None] * fade * np.sin(pace[:, None, :] * t[None, :, None] + phase[:, None, :])
    smooth = CubicSpline(reference.t, reference.position, bc_type="clamped")
    position = smooth(np.clip(t[None, :] - lag[:, None], 0.0, reference.t[-1])) + swing
    velocity = np.gradient(position, t, axis=1)
    acceleration = np.gradient(velocity, t, axis=1)
    yaw = reference.yaw_at(t[None, :] - lag[:, None]) + 0.3 * swing[:, :, 0]
    attitude = _attitude(acceleration, yaw)
    thrust = mass[:, None] * np.linalg.norm(acceleration + UP, axis=-1) / GRAVITY
    command = HOVER_SPEED * np.sqrt(thrust)[..., None] + 60.0 * rng.standard_normal((count, t.size, 4)) * (0.3 + fade)
    saturated = np.any(command > 1200.0, axis=-1)
    command = np.clip(command, 200.0, 1200.0)
    speed = command.copy()
    for k in range(1, t.size):
        speed[:, k] = speed[:, k - 1] + 0.25 * (command[:, k] - speed[:, k - 1])
    columns: dict[str, np.ndarray] = {"env": np.repeat(np.arange(count), t.size), "t": np.tile(t, count)}
    flat = {"position": position, "velocity": velocity, "rate": np.zeros_like(position), "attitude": attitude}
    flat["reference_position"] = np.broadcast_to(reference.position_at(t), position.shape)
    flat["reference_velocity"] = np.broadcast_to(reference.velocity_at(t), position.shape)
    for field, values in flat.items():
        unit = {"position": "_m", "velocity": "_m_s", "rate": "_rad_s", "attitude": ""}[field.removeprefix("reference_")]
        for k in range(values.shape[-1]):
            columns[f"{field}_{'xyzw'[k]}{unit}"] = values[..., k].ravel()
    for k in range(4):
        columns[f"rotor_speed_{k}_rad_s"] = speed[..., k].ravel()
        columns[f"rotor_command_{k}_rad_s"] = command[..., k].ravel()
    columns["reference_yaw_rad"] = np.broadcast_to(reference.yaw_at(t), yaw.shape).ravel()
    columns["saturated"] = saturated.ravel()
    columns["status"] = np.zeros(columns["t"].size, dtype=np.int8)
    return columns, {"mass_kg": mass, "response_lag_s": lag, "phase_x_rad": phase[:, 0]}


def _attitude(acceleration: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    up = acceleration + UP
    up /= np.linalg.norm(up, axis=-1, keepdims=True)
    heading = np.stack((np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)), axis=-1)
    left = np.cross(up, heading)
    left /= np.linalg.norm(left, axis=-1, keepdims=True)
    return frames.from_matrix(np.stack((np.cross(left, up), left, up), axis=-1))


def mixed(columns: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """The same flights with some that fail: one diverges, one crashes and freezes, one leaves the course, one recovers."""
    per = columns["t"].size // count

    def part(env: int, first: int, last: int | None = None) -> slice:
        return slice(env * per + first, env * per + (per if last is None else last))

    late = part(1 % count, per * 7 // 16)
    for name in ("position_x_m", "velocity_y_m_s", "attitude_w"):
        columns[name] = columns[name].copy()
        columns[name][late] = np.nan
    columns["status"][late] = FlightStatus.DIVERGED
    if count > 4:
        frozen = part(2, per * 9 // 16)
        for name, values in columns.items():
            if name not in ("env", "t") and not name.startswith("reference"):
                columns[name] = values.copy()
                columns[name][frozen] = values[frozen.start]
        columns["status"][frozen] = FlightStatus.COLLISION
        away = part(3, per // 2)
        columns["position_y_m"] = columns["position_y_m"].copy()
        columns["position_y_m"][away] += np.linspace(0.0, 2.2, per - per // 2)
        columns["status"][part(4, per * 6 // 16, per * 7 // 16)] = FlightStatus.COLLISION
    return columns


@pytest.fixture(scope="session")
def reference() -> TrackingReference:
    return course()


@pytest.fixture
def make_flights() -> Callable[..., tuple[FlightTable, dict[str, np.ndarray]]]:
    """Function (reference, count, **options of `fly`, failures=False) -> table, parameters."""

    def make(reference: TrackingReference, count: int, *, failures: bool = False, **options: Any) -> Any:
        columns, parameters = fly(reference, count, **options)
        return FlightTable.from_columns(mixed(columns, count) if failures else columns), parameters

    return make
