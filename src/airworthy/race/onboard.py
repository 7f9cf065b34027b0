"""What a race pilot is told, given and asked for: the wall between who flies and what is true.

A pilot is told `OnboardFacts` once and given an `Onboard` record at each command: IMU samples, beacon frames, ranger, collision
flag, clock, and images where it asks for them, as the contestants of 2019 were (spec/race 3). Neither holds a simulator, a
scene, a seed, a course or a truth. `Truth` is a record of its own, which only pilots called `truth:...` are given. Arrays have
a row per flight of a batch; the runner cuts them into flights of their own (`Onboard.of`), in memory of their own, so that no
pilot reaches another's rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike, ArrayU8
from airworthy.optics.projections import Pinhole
from airworthy.race.briefing import MARKERS, BeaconFrame, RaceBriefing
from airworthy.race.classes import RaceClass
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.record import Race
from airworthy.scenes.record import GateFrame
from airworthy.sensors.build import STEREO_BASELINE
from airworthy.vehicles import Vehicle

RATE_MAX = 1000.0
"""Commanded body rates are clipped here [rad/s]. Ours, as a bound on nonsense: the published loop takes any rate, and who
inverts it commands tens of rad/s."""


@dataclass(frozen=True)
class OnboardFacts:
    """All that a pilot is told before the start; the same in every course."""

    flights: int
    """Rows of every record that follows."""
    gates: tuple[str, ...]
    """Names in the order of flight, one of each passage."""
    corners: Array
    """Where openings nominally are, world [m], (passages, 4, 3); corner k carries marker k."""
    directions: Array
    """Unit normals along the flight, (passages, 3)."""
    bounds: Array
    """How far a gate may stand beside it: x, y [m] and turn [rad], each uniform in plus or minus, (passages, 3)."""
    pivots: Array
    """x and y of the vertical lines that gates turn about [m], (passages, 2)."""
    start_position: tuple[float, float, float]
    """World [m]."""
    start_yaw: float
    """[rad]."""
    vehicle: Vehicle
    """As the catalogue has it; what flies may differ (class `hard`)."""
    camera: Pinhole
    """Of the camera that sees beacons, and of those that take images: all look along the body's x axis, the first and the left
    one of the stereo pair from the reference point."""
    physics_rate: float
    """IMU samples per second [Hz]."""
    frame_rate: float
    """Beacon frames and ranger samples per second [Hz]."""
    command_rate: float
    """Calls of `command` per second [Hz]."""
    thrust_max: float
    """Of all rotors together [N]; more is clipped."""
    pixel_noise: float
    """Of the camera's data sheet: standard deviation of a beacon's coordinates [px]."""
    identified: bool
    """Whether beacons are reported under their own names; if not, names are exchanged among those seen in a frame."""
    imu_noise: tuple[float, float]
    """Of the inertial sensor's: standard deviation of a sample of accelerometer [m/s^2] and gyroscope [rad/s]."""
    imu_walk: tuple[float, float]
    """How the biases of both wander [m/s^2 and rad/s per sqrt(s)]; zeros: there are none."""
    imu_bias: tuple[float, float]
    """Half widths of both biases at arming [m/s^2, rad/s]."""
    start_bound: tuple[float, float, float, float]
    """How far the vehicle may stand from its nominal start: x, y, z [m] and yaw [rad], plus or minus."""
    decoys: tuple[str, ...] = ()
    """Names of gates that are not flown and bear beacons, too (`--decoy-beacons`): the order of `BeaconFrame.decoys`."""
    decoy_corners: Array = field(default_factory=lambda: np.zeros((0, MARKERS, 3)))
    """Where their openings are, on every course, world [m], (decoys, 4, 3); corner k carries marker k."""
    right_position: tuple[float, float, float] = (0.0, -STEREO_BASELINE, 0.0)
    """Of the right camera of the stereo pair in the body frame (x ahead, y left, z up) [m]; its lens and where it looks are the
    left one's, so that the baseline is how far it stands from the reference point."""

    def briefing(self) -> RaceBriefing:
        """Return the same facts as an estimator takes them."""
        return RaceBriefing(
            gates=self.gates,
            corners=self.corners,
            normal=self.directions,
            bound=self.bounds,
            pivot=self.pivots,
            start=np.array(self.start_position),
            start_yaw=self.start_yaw,
            start_bound=np.array(self.start_bound),
            focal=np.array([self.camera.fx, self.camera.fy]),
            center=np.array([self.camera.cx, self.camera.cy]),
            camera_position=np.zeros(3),
            camera_attitude=np.array([0.0, 0.0, 0.0, 1.0]),
            pixel_noise=self.pixel_noise,
            identified=self.identified,
            noise=np.array(self.imu_noise),
            walk=np.array(self.imu_walk),
            bias=np.array(self.imu_bias),
            imu_hz=self.physics_rate,
            frame_hz=self.frame_rate,
            gravity=self.vehicle.gravity,
            decoys=self.decoy_corners,
        )


@dataclass(frozen=True)
class RangerSample:
    """One sample of the ranger that looks down."""

    stamp: float
    """[s since arming]."""
    distance: Array
    """[m], (flights,); as the device reports it, with its noise and its value for no return."""


@dataclass(frozen=True)
class ImageFrame:
    """One image of the camera of every flight, or one of each camera of its stereo pair, taken at once."""

    stamp: float
    """Of the pose from which it was taken, since arming [s]; before arming not positive, as of beacons."""
    pixels: ArrayU8
    """Of the left camera: colours as a screen has them, the upper left first, (flights, height, width, 3); the lens is
    `OnboardFacts.camera`."""
    right: ArrayU8 | None = None
    """The same of the right camera, which stands at `OnboardFacts.right_position`; only for pilots that name the pair among
    their sensors."""

    def of(self, flight: int) -> ImageFrame:
        """Return the images of one flight, in memory of their own."""
        row = slice(flight, flight + 1)
        return ImageFrame(self.stamp, self.pixels[row].copy(), None if self.right is None else self.right[row].copy())


@dataclass(frozen=True)
class Onboard:
    """What came since the last call."""

    time: float
    """Since arming [s]."""
    imu_stamp: Array
    """[s since arming], (samples,)."""
    imu: Array
    """Specific force [m/s^2] and angular rate [rad/s] in the body frame, (samples, flights, 6)."""
    frames: tuple[BeaconFrame, ...]
    """Images that arrived, oldest first; at the first call those that were looked at before arming."""
    ranger: tuple[RangerSample, ...]
    """Samples that arrived, oldest first."""
    collision: ArrayBool
    """Whether the vehicle has touched anything, (flights,)."""
    images: tuple[ImageFrame, ...] = ()
    """That arrived, oldest first; only for pilots that name a camera or the stereo pair among their sensors."""

    def of(self, flight: int) -> Onboard:
        """Return the record of one flight, in memory of its own."""
        # Copies: a view leads back to the array that it is from, and so to the other flights.
        return Onboard(
            self.time,
            self.imu_stamp.copy(),
            self.imu[:, flight : flight + 1].copy(),
            tuple(frame.of(flight) for frame in self.frames),
            tuple(replace(item, distance=item.distance[flight : flight + 1].copy()) for item in self.ranger),
            self.collision[flight : flight + 1].copy(),
            tuple(image.of(flight) for image in self.images),
        )


@dataclass(frozen=True)
class Truth:
    """What no honest pilot has; given to pilots called `truth:...` beside the `Onboard` record."""

    position: Array
    """World [m], (flights, 3)."""
    velocity: Array
    """World [m/s], (flights, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (flights, 4)."""
    rate: Array
    """Body frame [rad/s], (flights, 3)."""
    corners: Array
    """Where the openings are, world [m], (flights, passages, 4, 3)."""

    def of(self, flight: int) -> Truth:
        """Return the truth of one flight, in memory of its own."""
        rows = (self.position, self.velocity, self.attitude, self.rate, self.corners)
        return Truth(*(array[flight : flight + 1].copy() for array in rows))


class RacePilot(Protocol):
    """A pilot of one flight, or of a batch of them: facts once, then a command for each record."""

    def begin(self, facts: OnboardFacts) -> None:
        """Take what is told before the start; everything of an earlier flight is forgotten."""

    def command(self, onboard: Onboard) -> ArrayLike:
        """Return collective thrust [N] and body rates [rad/s], (flights, 4)."""


def onboard_facts(
    race: Race,
    vehicle: Vehicle,
    camera: Pinhole,
    conditions: RaceClass,
    *,
    rates: tuple[float, float, float],
    decoys: Sequence[GateFrame] = (),
    flights: int = 1,
) -> OnboardFacts:
    """Return what pilots of a race are told.

    Args:
        race: Nominal; of the course that is flown nothing is needed.
        vehicle: Of the catalogue.
        camera: That sees beacons.
        conditions: The class, of which the sensors' data sheets and the start's spread are told.
        rates: Physics, frames and commands per second [Hz].
        decoys: Gates that are not flown and bear beacons, too.
        flights: Rows of the records.
    """
    gates = [race.gate(name) for name, _ in race.passes]
    shapes = [gate_shape(gate) for gate in gates]
    ways = [-1.0 if reverse else 1.0 for _, reverse in race.passes]
    imu, spread, stray = conditions.imu(), race.start.bound, conditions.start_error
    # A density d of white noise is d sqrt(rate) in each sample.
    each = math.sqrt(rates[0])
    return OnboardFacts(
        flights=flights,
        gates=tuple(name for name, _ in race.passes),
        corners=np.stack([shape.corners for shape in shapes]),
        directions=np.stack([way * shape.normal for way, shape in zip(ways, shapes, strict=True)]),
        bounds=np.array([[gate.bound.x, gate.bound.y, math.radians(gate.bound.yaw_deg)] for gate in gates]),
        pivots=np.array([_pivot(gate.pivot, shape.center) for gate, shape in zip(gates, shapes, strict=True)]),
        start_position=race.start.position,
        start_yaw=math.radians(race.start.yaw_deg),
        vehicle=vehicle,
        camera=camera,
        physics_rate=rates[0],
        frame_rate=rates[1],
        command_rate=rates[2],
        thrust_max=thrust_max(vehicle),
        pixel_noise=conditions.pixel_noise,
        identified=not conditions.shuffle,
        imu_noise=(imu.accelerometer_noise[0] * each, imu.gyroscope_noise[0] * each),
        imu_walk=(imu.accelerometer_walk[0], imu.gyroscope_walk[0]),
        imu_bias=(imu.bias_initial[0], imu.bias_initial[1]),
        start_bound=(spread.x + stray, spread.y + stray, spread.z + stray, math.radians(spread.yaw_deg)),
        decoys=tuple(frame.name for frame in decoys),
        decoy_corners=np.array([frame.corners for frame in decoys], np.float64).reshape(-1, MARKERS, 3),
    )


def _pivot(stated: tuple[float, float] | None, center: Array) -> tuple[float, float]:
    return stated if stated is not None else (float(center[0]), float(center[1]))


def thrust_max(vehicle: Vehicle) -> float:
    """Return the largest thrust of all rotors together [N]."""
    total = 0.0
    for rotor in vehicle.rotors:
        w = rotor.speed_max
        c0, c1, c2 = rotor.thrust
        # Of thrust-domain vehicles the state is the thrust itself.
        total += w if vehicle.motor_state == "thrust" else c0 + c1 * w + c2 * w * abs(w)
    return total


def checked_command(given: Any, flights: int) -> Array:
    """Return a pilot's command as numbers, which may still not be finite.

    Args:
        given: What it returned.
        flights: Rows that are expected.

    Raises:
        ValueError: Its shape does not fit, or it holds no numbers.
    """
    array = np.array(given, np.float64)
    if array.shape == (4,) and flights == 1:
        array = array[None]
    if array.shape != (flights, 4):
        raise ValueError(f"a command of shape {array.shape} was returned; expected thrust and three rates, ({flights}, 4)")
    return array


def clipped_command(command: Array, most: float) -> tuple[Array, ArrayBool]:
    """Return finite commands within their bounds, and which rows had to be clipped.

    Args:
        command: (flights, 4).
        most: Thrust of all rotors together [N].
    """
    low, high = np.array([0.0, *(3 * [-RATE_MAX])]), np.array([most, *(3 * [RATE_MAX])])
    bounded = np.clip(command, low, high)
    return bounded, np.any(bounded != command, axis=1)
