"""What an estimating pilot is told before a race, and the frames of beacons it is given: what the rules allow, and no more.

Nothing here is truth: gates are nominal, with how far they may stand elsewhere, and noise is that of the data sheet. Whatever
keeps the truth from pilots hands over these two records and inertial samples, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.optics import Pinhole
from airworthy.race.classes import FRAME_HZ, RaceClass
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.record import Race
from airworthy.race.referee import PHYSICS_HZ
from airworthy.sensors import rig

MARKERS = 4
"""Beacons of a gate, one at each corner of its opening, in the order in which the race lists them."""
_BEACONS = ("flightgoggles_race", "ir_beacons")
"""Rig and name of the device whose lens and mount count."""


@dataclass(frozen=True)
class RaceBriefing:
    """What is known before the start.

    Raises:
        AirworthyError: Shapes that do not belong together, or a number that is not finite.
    """

    gates: tuple[str, ...]
    """Names of the gates."""
    corners: Array
    """Nominal [m], world, (gates, 4, 3)."""
    normal: Array
    """Nominal direction of flight, unit length, (gates, 3)."""
    bound: Array
    """Half widths of x [m], y [m] and yaw [rad] within which a gate may stand elsewhere, (gates, 3)."""
    pivot: Array
    """x and y of the vertical lines about which gates turn [m], (gates, 2)."""
    start: Array
    """Position at arming [m], (3,)."""
    start_yaw: float
    """Heading at arming [rad]; the vehicle stands level and still."""
    start_bound: Array
    """Half widths of x, y, z [m] and yaw [rad] of the start, (4,)."""
    focal: Array
    """Focal lengths of the camera [px], (2,)."""
    center: Array
    """Its principal point [px], (2,)."""
    camera_position: Array
    """Of the camera in the body [m], (3,)."""
    camera_attitude: Array
    """Of its housing in the body, quaternion x, y, z, w (x where it looks, z its top), (4,)."""
    pixel_noise: float
    """Standard deviation of each coordinate of a beacon [px]."""
    noise: Array
    """Standard deviation of an inertial sample: accelerometer [m/s^2], gyroscope [rad/s], (2,)."""
    walk: Array
    """How biases wander, of both [m/s^2 and rad/s per sqrt(s)], (2,); zeros: there are none to be estimated."""
    bias: Array
    """Half widths of the biases at arming, of both, (2,)."""
    identified: bool = True
    """Whether beacons are reported under their own names; if not, names are exchanged among those seen in a frame."""
    imu_hz: float = PHYSICS_HZ
    frame_hz: float = FRAME_HZ
    gravity: float = 9.81
    decoys: Array = field(default_factory=lambda: np.zeros((0, MARKERS, 3)))
    """Corners of gates that are not flown and bear beacons, too [m], (decoys, 4, 3): landmarks that stand where they are said
    to."""
    right_position: Array | None = None
    """Of a second camera with the same lens and attitude in the body [m], (3,); None: there is none."""

    def __post_init__(self) -> None:
        count = len(self.gates)
        shapes = {
            "decoys": (len(self.decoys), MARKERS, 3),
            "corners": (count, MARKERS, 3), "normal": (count, 3), "bound": (count, 3), "pivot": (count, 2), "start": (3,),
            "start_bound": (4,), "focal": (2,), "center": (2,), "camera_position": (3,), "camera_attitude": (4,),
            "noise": (2,), "walk": (2,), "bias": (2,),
        }  # fmt: skip
        for name, shape in shapes.items():
            object.__setattr__(self, name, _finite(getattr(self, name), shape, name))
        if self.right_position is not None:
            object.__setattr__(self, "right_position", _finite(self.right_position, (3,), "right_position"))
            if not self.identified:
                raise AirworthyError(
                    "A briefing has a second camera and exchanged names; names are matched for one camera alone."
                )
        if not (self.imu_hz > 0.0 and self.frame_hz > 0.0 and (self.imu_hz / self.frame_hz).is_integer()):
            raise AirworthyError(
                f"A briefing has {self.imu_hz:g} inertial samples and {self.frame_hz:g} frames per second; expected a whole"
                " number of samples from frame to frame."
            )

    @cached_property
    def landmarks(self) -> Array:
        """Nominal corners of gates, and of decoys behind them [m], (gates + decoys, 4, 3)."""
        return np.concatenate([self.corners, self.decoys])

    @cached_property
    def axes(self) -> Array:
        """Pivots of the same [m], (gates + decoys, 2); those of decoys, which never turn, are the origin."""
        return np.concatenate([self.pivot, np.zeros((len(self.decoys), 2))])

    @cached_property
    def eyes(self) -> Array:
        """Where cameras are in the body [m], (cameras, 3): the first, and the second where there is one."""
        return np.stack([self.camera_position, *([] if self.right_position is None else [self.right_position])])

    @property
    def biased(self) -> bool:
        """Whether the inertial sensor has biases that are worth estimating."""
        return bool(np.any(self.walk) or np.any(self.bias))


def _finite(value: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.array(value, np.float64)
    if array.shape != shape:
        raise AirworthyError(f"{name!r} of a briefing has the shape {array.shape}; expected {shape}.")
    if not np.isfinite(array).all():
        raise AirworthyError(f"{name!r} of a briefing holds a number that is not finite.")
    array.setflags(write=False)
    return array


def race_briefing(race: Race, conditions: RaceClass) -> RaceBriefing:
    """Return what a pilot is told of a race.

    Args:
        race: Nominal, as `load_race` gives it: a course has no bounds any more, and says where gates stand.
        conditions: Its class.

    Raises:
        AirworthyError: Gates that may stand higher or lower, which no landmark of ours does, a lens that distorts, or an
            inertial sensor that is not at the body's origin.
    """
    moving = [gate.name for gate in race.gates if gate.bound.z > 0.0]
    if moving:
        raise AirworthyError(
            f"Gate {moving[0]!r} of the race {race.name!r} may stand higher or lower; gates as landmarks move in x, y and yaw"
            " only."
        )
    camera, imu = rig(_BEACONS[0])[_BEACONS[1]], conditions.imu()
    lens = camera.projection
    if not isinstance(lens, Pinhole) or lens.distortion.any:
        raise AirworthyError(f"Device {camera.name!r} has no plain pinhole; beacons are predicted by one.")
    if any(imu.position) or imu.mounting() != (0.0, 0.0, 0.0, 1.0):
        raise AirworthyError(
            f"The inertial sensor of class {conditions.name!r} is mounted off the body; expected in its frame."
        )
    shapes = [gate_shape(gate) for gate in race.gates]
    spread = race.start.bound
    stray = conditions.start_error
    return RaceBriefing(
        gates=tuple(gate.name for gate in race.gates),
        corners=np.array([shape.corners for shape in shapes]),
        normal=np.array([shape.normal for shape in shapes]),
        bound=np.array([(g.bound.x, g.bound.y, math.radians(g.bound.yaw_deg)) for g in race.gates]),
        pivot=np.array([gate.pivot or shape.center[:2] for gate, shape in zip(race.gates, shapes, strict=True)]),
        start=np.array(race.start.position),
        start_yaw=math.radians(race.start.yaw_deg),
        start_bound=np.array([spread.x + stray, spread.y + stray, spread.z + stray, math.radians(spread.yaw_deg)]),
        focal=np.array([lens.fx, lens.fy]),
        center=np.array([lens.cx, lens.cy]),
        camera_position=np.array(camera.mount.position),
        camera_attitude=np.array(camera.mount.attitude),
        pixel_noise=conditions.pixel_noise,
        identified=not conditions.shuffle,
        # A density d of white noise is d sqrt(rate) in each sample.
        noise=np.array([imu.accelerometer_noise[0], imu.gyroscope_noise[0]]) * math.sqrt(PHYSICS_HZ),
        walk=np.array([imu.accelerometer_walk[0], imu.gyroscope_walk[0]]),
        bias=np.array(imu.bias_initial[:2]),
    )


@dataclass(frozen=True)
class BeaconFrame:
    """One frame of the beacon camera of every flight: what was seen at one moment, whenever it arrives."""

    stamp: float
    """Of the pose from which it was taken, since arming [s]; before arming, while the vehicle stands, not positive."""
    pixel: Array
    """[px], origin at the upper left, NaN where a beacon is not reported, (flights, gates, 4, 2)."""
    decoys: Array | None = None
    """The same of the gates that are not flown, (flights, decoys, 4, 2); None where these bear no beacons."""
    right: Array | None = None
    """What a second camera sees of the gates at the same moment, as `pixel`; None where there is none."""

    def of(self, flight: int) -> BeaconFrame:
        """Return the frame of one flight, in memory of its own."""
        row = slice(flight, flight + 1)
        rows = (None if item is None else item[row].copy() for item in (self.decoys, self.right))
        return BeaconFrame(self.stamp, self.pixel[row].copy(), *rows)

    @property
    def corners_seen(self) -> ArrayInt:
        """Corners seen of each gate, by the camera that sees most of it, (flights, gates)."""
        seen = np.isfinite(self.pixel).all(-1).sum(-1)
        return seen if self.right is None else np.maximum(seen, np.isfinite(self.right).all(-1).sum(-1))

    @property
    def landmarks(self) -> Array:
        """Pixels of gates, and of decoys behind them, (flights, gates + decoys, 4, 2)."""
        return self.pixel if self.decoys is None else np.concatenate([self.pixel, self.decoys], axis=1)

    @classmethod
    def of_reports(cls, briefing: RaceBriefing, stamp: float, flights: int, reports: ArrayLike) -> BeaconFrame:
        """Return a frame from rows as the sensor reports them.

        Args:
            briefing: Whose gates count.
            stamp: See the class [s].
            flights: How many there are.
            reports: Rows (n, 5): number of the flight, of the gate in the briefing, of the marker from 0, x and y [px].

        Raises:
            AirworthyError: Rows of another form, or of a flight, gate or marker that there is not.
        """
        rows = np.asarray(reports, np.float64).reshape(-1, 5) if np.size(reports) % 5 == 0 else np.zeros((0, 0))
        if rows.shape[1] != 5:
            raise AirworthyError(f"Reports of beacons have the shape {np.shape(reports)}; expected (n, 5).")
        ends = (flights, len(briefing.gates), MARKERS)
        which = rows[:, :3].astype(np.int64)
        if np.any(which != rows[:, :3]) or np.any(which < 0) or np.any(which >= ends):
            raise AirworthyError(
                f"A report of a beacon names a flight, gate or marker that there is not; expected whole numbers below {ends}."
            )
        pixel = np.full((*ends, 2), np.nan)
        pixel[tuple(which.T)] = rows[:, 3:]
        return cls(stamp, pixel)
