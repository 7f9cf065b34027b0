"""Images for pilots that ask for a camera: the flown hall through the contest's lens, once a frame; others have none rendered.

The cameras are those of 2019: the left one of the stereo pair, with the lens and the place of the beacon camera, ahead along
the body's x axis, and for pilots that ask for the pair the right one beside it. Their images are ideal (spec/flightgoggles 2.2
has blur and noise as options of the original): what a class does to beacons it does not do to images, but for their delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import ArrayIndex, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import to_8bit
from airworthy.race.classes import FRAME_HZ, RaceClass
from airworthy.race.onboard import ImageFrame, Onboard
from airworthy.race.record import Race
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors import SensorView, rig
from airworthy.sensors.camera import Camera
from airworthy.sensors.mounting import mounted_pose

__all__ = ["BEACONS", "CAMERA", "STEREO", "RaceCamera", "check_sensors", "granted"]

CAMERA, STEREO, BEACONS, IMU, RANGER = "camera", "stereo", "beacons", "imu", "ranger"
"""How pilots name these sensors."""
_GIVEN = (IMU, BEACONS, RANGER, CAMERA, STEREO)
"""Sensors of which a record brings something."""
_IMAGES = (CAMERA, STEREO)
"""Those that are images: of the left camera alone, or of both."""
_RIG = "flightgoggles_race"
_SHOWN = 40
"""Characters of a stranger's word in a message; ours."""


class RaceCamera:
    """The left camera of a batch of flights, or both of the pair.

    Args:
        scenes: One environment per flight.
        conditions: Of the class, how late images come.
        pair: Whether the right camera takes images, too.
    """

    def __init__(self, scenes: SceneBatch, conditions: RaceClass, pair: bool = False):
        self._scenes, self._delay = scenes, conditions.frame_delay
        members = rig(_RIG)
        self._left = Camera(members["left"], "left")
        self._right = Camera(members["right"], "right") if pair else None
        self._waiting: list[ImageFrame] = []

    def begin(self, position: np.ndarray, attitude: np.ndarray, seconds: float, flying: ArrayIndex) -> list[ImageFrame]:
        """Return what is seen before arming and at the start, as far as it has arrived then, oldest first.

        Before arming it is one image, since nothing moves and images are ideal; for the same reason that of the start has the
        same pixels, and is rendered with it.

        Args:
            position: Of the vehicles [m], (flights, 3).
            attitude: Quaternions x, y, z, w, (flights, 4).
            seconds: How long it looks before arming; less than a frame is nothing.
            flying: Numbers of the flights that are looked for.
        """
        start = self._taken(position, attitude, 0.0, flying)
        arrived: list[ImageFrame] = []
        if math.floor(seconds * FRAME_HZ + 1e-9) >= 1:
            # Copies: who writes into one image finds the other as it was.
            right = None if start.right is None else start.right.copy()
            arrived += self._arrived(ImageFrame(-1.0 / FRAME_HZ, start.pixels.copy(), right))
        return arrived + self._arrived(start)

    def take(self, position: np.ndarray, attitude: np.ndarray, stamp: float, flying: ArrayIndex) -> list[ImageFrame]:
        """Return the images that arrive as one is taken: it, or one that was taken earlier.

        Args:
            position: Of the vehicles [m], (flights, 3).
            attitude: Quaternions x, y, z, w, (flights, 4).
            stamp: Of the pose [s].
            flying: Numbers of the flights that go on; the images of others are black.
        """
        return self._arrived(self._taken(position, attitude, stamp, flying))

    def _taken(self, position: np.ndarray, attitude: np.ndarray, stamp: float, flying: ArrayIndex) -> ImageFrame:
        left = self._pictures(self._left, position, attitude, flying)
        right = None if self._right is None else self._pictures(self._right, position, attitude, flying)
        return ImageFrame(stamp, left, right)

    def _arrived(self, taken: ImageFrame) -> list[ImageFrame]:
        """Return what arrives as an image is taken."""
        self._waiting.append(taken)
        ready = max(0, len(self._waiting) - self._delay)
        arrived, self._waiting = self._waiting[:ready], self._waiting[ready:]
        return arrived

    def _pictures(self, camera: Camera, position: np.ndarray, attitude: np.ndarray, flying: ArrayIndex) -> ArrayU8:
        """Return what a camera sees of the flights that go on, (flights, height, width, 3), and black of others."""
        projection, mount = camera.device.projection, camera.device.mount
        place, turned = mounted_pose(position, attitude, mount.position, mount.attitude)
        pixels = np.zeros((len(position), projection.height, projection.width, 3), np.uint8)
        # One at a time: the radiance of an image is four times its bytes, and no image depends on another.
        for flight in flying:
            row = np.array([flight])
            view = SensorView(place[row], turned[row], row)
            pixels[flight] = to_8bit(camera.capture(self._scenes, view, ("rgb",))["rgb"][0])
        return pixels


def check_sensors(race: Race, name: str, sensors: Sequence[str], rate: float) -> None:
    """Refuse a pilot that names a sensor which is none, or not of this race, or that does not take images as they come.

    Args:
        race: Its rules.
        name: Of the pilot.
        sensors: That it names.
        rate: Its commands per second [Hz].

    Raises:
        AirworthyError: With the reason.
    """
    known: set[str] = set(race.information.sensors)
    if STEREO in known:
        # Who has two cameras may use one.
        known.add(CAMERA)
    # Named wrongly, a sensor would be withheld without a word.
    wrong = [sensor for sensor in sensors if sensor not in known or sensor not in _GIVEN]
    if wrong or len(set(sensors)) < len(sensors):
        which = f"the sensor {wrong[0][:_SHOWN]!r}" if wrong else "a sensor twice"
        allowed = ", ".join(sensor for sensor in _GIVEN if sensor in known)
        raise AirworthyError(
            f"The race pilot {name!r} names {which}; the race {race.name!r} gives {allowed or 'none'}, each to be named once."
        )
    if all(kind in sensors for kind in _IMAGES):
        raise AirworthyError(
            f"The race pilot {name!r} names {CAMERA} and {STEREO}; expected one of them: {CAMERA} is the left one of the pair."
        )
    if not any(kind in sensors for kind in _IMAGES):
        return
    # An image has 2.4 MB: a record with a second of them, or half a second of pairs, would not cross the wall
    # (`wire.ARRAYS_MAX`).
    if rate < FRAME_HZ:
        raise AirworthyError(
            f"The race pilot {name!r} names a camera and commands {rate:g} times a second; expected {FRAME_HZ:g} or more, so"
            " that each record has one image of a camera at most."
        )


def granted(onboard: Onboard, sensors: Sequence[str]) -> Onboard:
    """Return a record as a pilot is given it: of sensors those that it names, by which it stands in Table IV.

    Args:
        onboard: All that was sensed.
        sensors: That the pilot names; none: it does not say, and is given all but images.
    """
    if not sensors:
        return onboard
    if IMU not in sensors:
        onboard = replace(onboard, imu_stamp=onboard.imu_stamp[:0], imu=onboard.imu[:0])
    return replace(
        onboard,
        frames=onboard.frames if BEACONS in sensors else (),
        ranger=onboard.ranger if RANGER in sensors else (),
    )
