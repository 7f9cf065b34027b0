"""What the vehicle's camera sees at a time: rendered, or as it was recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes, read_json
from airworthy.core.frames import camera_attitude
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.sensors.devices import device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.projections import Pinhole

__all__ = ["CameraSource", "LiveCamera", "RecordedCamera", "Shot", "recorded_names"]

Floats = NDArray[Any]
SIZE = (240, 150)
"""Width and height of the live image where no device is named: small enough for ten a second on two cores."""
FOV = math.radians(90.0)
_ANGLE_MAX = math.radians(150.0)
_IMAGE_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Shot:
    """An image and where it was taken."""

    image: NDArray[np.uint8]
    """(h, w, 3)."""
    position: Floats
    """World [m]."""
    attitude: Floats
    """Optical frame (x right, y down, z forward) to world, x, y, z, w."""


class CameraSource(Protocol):
    """Gives images."""

    fov: float
    """From top to bottom [rad]."""
    aspect: float
    """Width over height."""

    def shot(self, env: int, time: float, position: Floats, attitude: Floats) -> Shot | None:
        """The image of an environment at a time [s], of a body at this pose; None where there is none."""
        ...


class LiveCamera:
    """Renders the scene, without other vehicles.

    Args:
        scene: What is seen.
        name: A camera of the device catalogue; "" for a plain one at the middle of the body.

    Raises:
        AirworthyError: The device is no camera.
    """

    def __init__(self, scene: Scene, name: str = ""):
        mounted = device(name) if name else None
        projection = Pinhole.from_fov(*SIZE, horizontal=FOV) if mounted is None else mounted.projection
        if mounted is not None and not (mounted.projection.optical and "camera" in mounted.kind):
            raise AirworthyError(f"--camera is {name!r}, a {mounted.kind}; name one that takes images (`airworthy sensors`).")
        self._mount = None if mounted is None else mounted.effective_mount
        self._rays = projection.rays()
        self._batch = SceneBatch(scene, 1)
        self.fov = _fov(self._rays.directions)
        self.aspect = projection.width / projection.height

    def shot(self, env: int, time: float, position: Floats, attitude: Floats) -> Shot:
        """Render at a pose of the body; every environment flies in the same scene."""
        from airworthy.sensors.capture import render
        from airworthy.sensors.tone import to_8bit

        if self._mount is not None:
            position, attitude = mounted_pose(position, attitude, self._mount.position, self._mount.attitude)
        optical = camera_attitude(attitude)
        self._batch.advance(float(time))
        linear = render(self._batch, self._rays, np.asarray(position)[None], optical[None], [0], ("rgb",))["rgb"]
        return Shot(to_8bit(linear)[0], np.asarray(position), optical)


class RecordedCamera:
    """The images that `airworthy fly --sensors` recorded.

    Args:
        folder: Of the flight.
        name: Of the sensor.

    Raises:
        AssetError: Its files are damaged, or name images outside the folder.
    """

    def __init__(self, folder: Path, name: str):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder = folder / "sensors" / name
        calibration = read_json(self._folder / "calibration.json")
        index = self._folder / "index.parquet"
        try:
            rows = pq.read_table(index).to_pydict()
            self._env, self._time = np.array(rows["env"]), np.array(rows["t"], float)
            self._position = np.array([rows[f"position_{a}_m"] for a in "xyz"], float).T
            self._attitude = np.array([rows[f"attitude_{a}"] for a in "xyzw"], float).T
            self._files = [str(path) for path in rows["file_rgb"]]
            self.aspect = float(calibration["width"]) / float(calibration["height"])
        except (OSError, KeyError, ValueError, TypeError, ZeroDivisionError, pa.ArrowException) as error:
            raise AssetError(f"{str(index)!r} is not an index of recorded colour images: {error}.") from error
        self.fov = self._vertical(calibration.get("projection"), float(calibration["height"]))

    @staticmethod
    def _vertical(projection: Any, height: float) -> float:
        focal = projection.get("fy") if isinstance(projection, dict) else None
        if not isinstance(focal, int | float) or not focal > 0.0:
            return FOV
        return min(2.0 * math.atan(0.5 * height / focal), _ANGLE_MAX)

    def shot(self, env: int, time: float, position: Floats, attitude: Floats) -> Shot | None:
        """The latest image up to a time, where it was taken; None before the first."""
        taken = np.flatnonzero((self._env == env) & (self._time <= time + 1e-9))
        if not taken.size:
            return None
        row = int(taken[np.argmax(self._time[taken])])
        return Shot(self._image(self._files[row]), self._position[row], camera_attitude(self._attitude[row]))

    def _image(self, name: str) -> NDArray[np.uint8]:
        import io

        from PIL import Image

        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            raise AssetError(f"The index in {str(self._folder)!r} names {name!r}, which is outside of it.")
        data = read_bytes(path, _IMAGE_BYTES)
        try:
            with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
                return np.asarray(picture.convert("RGB"))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise AssetError(f"{str(path)!r} is not an image: {error}.") from error


def recorded_names(folder: Path) -> list[str]:
    """Sensors of a flight's folder that recorded colour images."""
    return [
        path.parent.name
        for path in sorted((folder / "sensors").glob("*/calibration.json"))
        if "rgb" in (read_json(path).get("files") or {}) and (path.parent / "index.parquet").is_file()
    ]


def _fov(directions: Floats) -> float:
    """Angle between the rays at the middle of the upper and of the lower edge [rad]."""
    middle = directions.shape[1] // 2
    cosine = float(np.clip(directions[0, middle] @ directions[-1, middle], -1.0, 1.0))
    return min(math.acos(cosine), _ANGLE_MAX)
