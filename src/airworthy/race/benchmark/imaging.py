"""Images for pilots that ask for a camera: the flown hall through the contest's lens, once a frame; others have none rendered.

The camera is that of 2019, with the lens and the place of the beacon camera: left of the stereo pair, ahead along the body's x
axis. Its images are ideal (spec/flightgoggles 2.2 has blur and noise as options of the original): what a class does to beacons
it does not do to images, but for their delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import to_8bit
from airworthy.race.classes import FRAME_HZ, RaceClass
from airworthy.race.onboard import ImageFrame, Onboard
from airworthy.race.record import Race
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors import SensorView, device
from airworthy.sensors.camera import Camera

__all__ = ["BEACONS", "CAMERA", "RaceCamera", "check_sensors", "granted"]

CAMERA, BEACONS, IMU, RANGER = "camera", "beacons", "imu", "ranger"
"""How pilots name these sensors."""
_GIVEN = (IMU, BEACONS, RANGER, CAMERA)
"""Sensors of which a record brings something."""
_RULES = ("camera", "stereo")
"""Sensors of a race's rules that allow one camera: who has two of them may use one."""
_DEVICE = "flightgoggles_camera"
_SHOWN = 40
"""Characters of a stranger's word in a message; ours."""


class RaceCamera:
    """The camera of a batch of flights.

    Args:
        scenes: One environment per flight.
        conditions: Of the class, how late images come.
    """

    def __init__(self, scenes: SceneBatch, conditions: RaceClass):
        self._scenes, self._delay = scenes, conditions.frame_delay
        self._camera = Camera(device(_DEVICE), CAMERA)
        self._waiting: list[ImageFrame] = []

    def look(self, position: np.ndarray, attitude: np.ndarray, seconds: float, flying: ArrayIndex) -> list[ImageFrame]:
        """Return what was seen before arming, oldest first: one image, since nothing moves and images are ideal.

        Args:
            position: Of the vehicles [m], (flights, 3).
            attitude: Quaternions x, y, z, w, (flights, 4).
            seconds: How long it looks; less than a frame is nothing.
            flying: Numbers of the flights that are looked for.
        """
        if math.floor(seconds * FRAME_HZ + 1e-9) < 1:
            return []
        return self.take(position, attitude, -1.0 / FRAME_HZ, flying)

    def take(self, position: np.ndarray, attitude: np.ndarray, stamp: float, flying: ArrayIndex) -> list[ImageFrame]:
        """Return the images that arrive as one is taken: it, or one that was taken earlier.

        Args:
            position: Of the vehicles [m], (flights, 3).
            attitude: Quaternions x, y, z, w, (flights, 4).
            stamp: Of the pose [s].
            flying: Numbers of the flights that go on; the images of others are black.
        """
        projection = self._camera.device.projection
        pixels = np.zeros((len(position), projection.height, projection.width, 3), np.uint8)
        # One at a time: the radiance of an image is four times its bytes, and no image depends on another.
        for flight in flying:
            row = np.array([flight])
            view = SensorView(position[row], attitude[row], row)
            pixels[flight] = to_8bit(self._camera.capture(self._scenes, view, ("rgb",))["rgb"][0])
        self._waiting.append(ImageFrame(stamp, pixels))
        ready = max(0, len(self._waiting) - self._delay)
        arrived, self._waiting = self._waiting[:ready], self._waiting[ready:]
        return arrived


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
    known = {CAMERA if rule in _RULES else rule for rule in race.information.sensors}
    # Named wrongly, a sensor would be withheld without a word.
    wrong = [sensor for sensor in sensors if sensor not in known or sensor not in _GIVEN]
    if wrong or len(set(sensors)) < len(sensors):
        which = f"the sensor {wrong[0][:_SHOWN]!r}" if wrong else "a sensor twice"
        allowed = ", ".join(sensor for sensor in _GIVEN if sensor in known)
        raise AirworthyError(
            f"The race pilot {name!r} names {which}; the race {race.name!r} gives {allowed or 'none'}, each to be named once."
        )
    if CAMERA not in sensors:
        return
    # An image has 2.4 MB: a record with a second of them would not cross the wall (`wire.ARRAYS_MAX`).
    if rate < FRAME_HZ:
        raise AirworthyError(
            f"The race pilot {name!r} names a camera and commands {rate:g} times a second; expected {FRAME_HZ:g} or more, so"
            " that each record has one image at most."
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
