"""What is synthesised: SOUS VIDE's Algorithm 1 with every published input."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.block import Setting
from airworthy.benchmarks.tracking.conditions import Condition, StateNoise, noise_level, noise_levels
from airworthy.control.mpc import MPC_PRESETS
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.scenes import Scene
from airworthy.sensors.carried import vehicle_camera
from airworthy.sensors.devices import Device
from airworthy.trajectories import course
from airworthy.vehicles import Vehicle

__all__ = [
    "NOISE_LEVELS",
    "RATE",
    "STAGES",
    "VIEWS",
    "Stages",
    "StateNoise",
    "SynthesisConfig",
    "cleared_for",
    "evaluation_set",
    "flight_camera",
    "noise_level",
    "view_side",
]

# ---- The camera through which a policy sees: a drone's own camera, at the policy's view or whole ----------------------------

VIEWS = ("none", "full")
"""Names of views; every other view is the side of the policy's image [px]."""
# Ours; published: 224 (spec/sousvide section 7).
SIDE_MIN, SIDE_MAX = 16, 1024


def view_side(view: str) -> int | None:
    """Return the side of a policy's image [px]; None: the view is one of `VIEWS`.

    Raises:
        UnknownNameError: It is neither a name nor a number.
        AirworthyError: The number is out of range.
    """
    if view in VIEWS:
        return None
    if not (view.isascii() and view.isdigit()):
        raise unknown_name("view", view, VIEWS, "A view is also the side of the policy's image in pixels, as 224 or 112.")
    side = int(view)
    if not SIDE_MIN <= side <= SIDE_MAX:
        raise AirworthyError(f"The policy's image has a side of {side} px; expected {SIDE_MIN} to {SIDE_MAX}.")
    return side


def flight_camera(vehicle: Vehicle, camera: str = "camera", view: str = "224") -> Device:
    """Return a camera that a vehicle's record carries, mounted, at a view.

    Args:
        vehicle: Whose record.
        camera: Name of the sensor in the record; of the reference drone "camera" (idealised mount) or "camera_calibrated".
        view: Side of the policy's image [px], or "full".

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: The record has no camera at all, it is no pinhole without distortion, or the view cannot be used.
    """
    vehicle_camera(vehicle)  # a vehicle without any camera is told so, not that it has none of this name
    return vehicle_camera(vehicle, camera, view_side(view))


# ---- Where the time of a long job goes --------------------------------------------------------------------------------------

STAGES = ("planning", "solving", "simulating", "rendering", "writing")
"""Of synthesis: paths and draws; the expert; the drones' motion; images, to 8 bits; files and their checksums."""


class Stages:
    """A stopwatch with one hand per stage; stages do not overlap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """By stage [s]."""

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of the block to a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def add(self, seconds: dict[str, float]) -> None:
        """Count what others measured."""
        for name, value in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value


# ---- The place in which a course is seen: a scene, or that scene cleared round the course's path ----------------------------


def cleared_for(scene: Scene, course: str, radius: float) -> Scene:
    """Return a scene without what stands near a course, surfaces and gaussians.

    It is what a condition of the tracking protocol with this radius as its `clear` shows a policy: the same code makes both.

    Args:
        scene: The scene.
        course: Name of the course.
        radius: Things this near its path are taken out [m]; 0: none.

    Raises:
        UnknownNameError: There is no such course.
    """
    if radius == 0.0:
        return scene
    condition = Condition("cleared", "Cleared", clear=radius)
    return Setting(condition, course, scene.name, {scene.name: scene}).scene


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/sousvide section 2, closed-loop simulator: control 20 Hz.
RATE = 20.0
"""Of sensing and control [Hz]."""
ROLLOUTS_MAX = 10_000_000
"""Of one data set: a few thousand times the published one, and what a plan of them all still fits into memory."""
OFFSET_MAX = 1000.0
"""Of a start [m, m/s, s]; ours: larger is a mistake of units."""

NOISE_LEVELS: Mapping[str, StateNoise] = {name: noise_level(name) for name in noise_levels()}
"""By name, those of the tracking protocol's conditions. The 3 m of the last two published ones prove that a policy does not use
its lateral position."""


@dataclass(frozen=True)
class SynthesisConfig:
    """Roll-outs of the expert: where they begin, with which drones, how long. Published values, if not said otherwise.

    Raises:
        AirworthyError: If a number is out of range or a name unknown.
    """

    courses: tuple[str, ...] = ("robustness",)
    """Names of courses (see `airworthy courses`)."""
    vehicle: str = "carl"
    """Name or TOML file of a vehicle; its mass and rotors are the nominal ones."""
    per_second: float = 10.0
    """Start points per second of a course."""
    repetitions: int = 30
    """Roll-outs per start point."""
    length: float = 2.0
    """Of a roll-out [s]."""
    jitter: float = 0.1
    """Start times are moved by up to this much [s], and stay on the course."""
    position: float = 0.4
    """A start is moved by up to this much along each axis [m]."""
    velocity: float = 0.4
    """So is its velocity [m/s]."""
    attitude: float = 0.2
    """So is each component of its quaternion, before it is normalised."""
    mass: float = 0.3
    """Masses are uniform within this share of the vehicle's."""
    thrust: float = 0.3
    """So are forces of the rotors at full command."""
    keep_within: float = 0.07
    """A roll-out is kept if it ends this close to the course [m]; 0: all are kept."""
    keep_rate: float = 10.0
    """Samples of the course per second to which that end is compared [Hz]; 10 as published, so that at 2 m/s they lie 0.2 m
    apart, and an end on the course between two of them is up to 0.1 m off."""
    noise: str = "baseline"
    """Level of what is sensed: baseline (none), assisted, challenged or extreme; disturbed: the vehicle is pushed about."""
    delay: float = 0.0
    """Of the command [s], in whole steps of the simulation."""
    mpc: str = "flightroom"
    """Weights of the expert's MPC: flightroom (as published for synthesis) or backroom."""
    physics_rate: float = 100.0
    """Steps of the simulation per second [Hz], a multiple of 20."""
    seed: int = 0
    """Of everything that is drawn."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.courses:
            raise AirworthyError("Data cannot be synthesised without a course; name one.")
        noise_level(self.noise)
        if self.mpc not in MPC_PRESETS:
            raise unknown_name("MPC preset", self.mpc, MPC_PRESETS)
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.type == "float"}
        for name, value in numbers.items():
            if not (isfinite(value) and value >= 0.0):
                raise AirworthyError(f"Synthesis got {name} {value}; expected a finite number of 0 or more.")
        if not (0.0 < self.per_second <= 1000.0 and 0.05 <= self.length <= 3600.0 and 1 <= self.repetitions <= ROLLOUTS_MAX):
            raise AirworthyError(
                f"Synthesis got {self.per_second} start points per second, {self.repetitions} repetitions and roll-outs of"
                f" {self.length} s; expected above 0 to 1,000, 1 to {ROLLOUTS_MAX:,}, and 0.05 to 3,600 s."
            )
        for name in ("position", "velocity", "attitude", "jitter"):
            if getattr(self, name) > OFFSET_MAX:
                raise AirworthyError(f"Synthesis got {name} {getattr(self, name)}; expected 0 to {OFFSET_MAX:g}.")
        if not (self.mass < 1.0 and self.thrust < 1.0):
            raise AirworthyError(f"Synthesis got shares of mass {self.mass} and thrust {self.thrust}; expected less than 1.")
        if not 1.0 <= self.keep_rate <= 1e4:
            raise AirworthyError(f"Synthesis got a keep_rate of {self.keep_rate} Hz; expected 1 to 10,000.")
        if not RATE <= self.physics_rate <= 1e5 or self.physics_rate % RATE:
            raise AirworthyError(
                f"Synthesis got a physics_rate of {self.physics_rate} Hz; expected a multiple of {RATE:g} Hz, up to 100,000."
            )
        if not self.delay <= 1.0 / RATE:
            raise AirworthyError(
                f"Synthesis got a delay of {self.delay} s; expected at most a period of control, {1.0 / RATE} s."
            )

    @property
    def ticks(self) -> int:
        """Pairs of a roll-out."""
        return round(self.length * RATE)

    @property
    def half_width(self) -> Array:
        """Of the start's offset, (10,)."""
        return np.repeat([self.position, self.velocity, self.attitude], [3, 3, 4])


def evaluation_set(name: str, **changes: Any) -> SynthesisConfig:
    """Return the published flights by which a policy is judged: 30 of a whole course, from milder offsets, sensed with noise.

    Args:
        name: Of the course.
        changes: Other fields.

    Raises:
        UnknownNameError: There is no such course.
    """
    duration = course(name).trajectory().duration
    given: dict[str, Any] = {"position": 0.2, "velocity": 0.2, "attitude": 0.1, "mass": 0.15, "thrust": 0.15}
    # One start point, at the beginning of the course.
    given |= {"courses": (name,), "per_second": 1.0 / duration, "jitter": 0.0, "length": duration}
    return SynthesisConfig(**{**given, "noise": "challenged", "keep_within": 0.0, **changes})
