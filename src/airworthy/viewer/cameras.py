"""What the vehicle's camera sees at a time: rendered, or as it was recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import Untrusted, read_bytes, read_json
from airworthy.core.frames import camera_attitude
from airworthy.optics.projections import Pinhole, Projection
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device, device
from airworthy.sensors.mounting import AT_ORIGIN, mounted_pose
from airworthy.vehicles import Vehicle

__all__ = ["CameraSource", "LiveCamera", "RecordedCamera", "ViewerImage", "recorded_names"]

SIZE = (320, 200)
"""Width and height of the live image where no device is named: small enough for several a second on two cores."""
WIDTH_MAX = 320
"""Images of devices are reduced to this width."""
FOV = math.radians(90.0)
_ANGLE_MAX = math.radians(150.0)
_IMAGE_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class ViewerImage:
    """An image and where it was taken."""

    image: ArrayU8
    """(h, w, 3)."""
    position: ArrayAny
    """World [m]."""
    attitude: ArrayAny
    """Optical frame (x right, y down, z forward) to world, x, y, z, w."""
    time: float | None = None
    """When it was taken, on the flight's clock [s]; None: nobody knows."""


class CameraSource(Protocol):
    """Gives images."""

    fov: float
    """From top to bottom [rad]."""
    aspect: float
    """Width over height."""

    def take_image(self, env: int, time: float, position: ArrayAny, attitude: ArrayAny) -> ViewerImage | None:
        """Return the image of an environment at a time [s], of a body at this pose; None where there is none.

        Args:
            env: Number of the environment.
            time: On the flight's clock [s].
            position: Of the body [m], world frame, (3,).
            attitude: Of the body, quaternion x, y, z, w, (4,).
        """
        ...


class LiveCamera:
    """Renders the scene, splats included, without other vehicles.

    Args:
        scene: What is seen.
        name: A camera of the device catalogue; "" for the first colour camera that the vehicle carries, or a plain one at its
            middle where it carries none.
        vehicle: Who carries it; flights are recorded of its centre of mass, cameras sit relative to its reference point.

    Raises:
        AirworthyError: The device is no camera.
    """

    def __init__(self, scene: Scene, name: str = "", vehicle: Vehicle | None = None):
        mounted = device(name) if name else _carried(vehicle)
        if mounted is not None and not _takes_images(mounted):
            raise AirworthyError(f"--camera is {name!r}, a {mounted.kind}; name one that takes images (`airworthy sensors`).")
        plain = Pinhole.from_fov(*SIZE, horizontal=FOV)
        self._projection = plain if mounted is None else _small(mounted.projection)
        mount = AT_ORIGIN if mounted is None else mounted.effective_mount
        mass = np.zeros(3) if vehicle is None or mounted is None else np.array(vehicle.center_of_mass, float)
        self._offset, self._turn = np.asarray(mount.position, float) - mass, mount.attitude
        self._rays = self._projection.rays()
        self._scene = scene
        self._batch: SceneBatch | None = None
        self.fov = _fov(self._rays.directions)
        self.aspect = self._projection.width / self._projection.height

    def take_image(self, env: int, time: float, position: ArrayAny, attitude: ArrayAny) -> ViewerImage:
        """Render at a pose of the body; every environment flies in the same scene.

        Args:
            env: Not read: the scene is the same.
            time: To which actors move [s].
            position: Of the body [m], world frame, (3,).
            attitude: Of the body, quaternion x, y, z, w, (4,).
        """
        from airworthy.optics.tone import to_8bit
        from airworthy.rendering.images import render

        if self._batch is None:  # here, in the thread that renders: placing a large scene takes a while
            self._batch = SceneBatch(self._scene, 1)
        position, attitude = mounted_pose(position, attitude, self._offset, self._turn)
        optical = camera_attitude(attitude)
        self._batch.advance(float(time))
        where = np.asarray(position)[None], optical[None], [0]
        linear = render(self._batch, self._rays, *where, ("rgb",), projection=self._projection)["rgb"]
        return ViewerImage(to_8bit(linear)[0], np.asarray(position), optical, float(time))


def _carried(vehicle: Vehicle | None) -> Device | None:
    """Return the first camera of a vehicle's record that sees colours."""
    found = () if vehicle is None else carried_sensors(vehicle).values()
    return next((item for item in found if _takes_images(item) and "rgb" in item.channels), None)


def _takes_images(item: Device) -> bool:
    return item.projection.optical and "camera" in item.kind


def _small(projection: Projection) -> Projection:
    """Return a pinhole's image reduced to the width of a live one; other lenses as they are."""
    if not isinstance(projection, Pinhole) or projection.width <= WIDTH_MAX:
        return projection
    ratio = WIDTH_MAX / projection.width
    height = max(1, round(ratio * projection.height))
    focal = {name: ratio * getattr(projection, name) for name in ("fx", "fy", "cx", "cy")}
    return replace(projection, width=WIDTH_MAX, height=height, **focal)


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

        self.sensor = name
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

    def take_image(self, env: int, time: float, position: ArrayAny, attitude: ArrayAny) -> ViewerImage | None:
        """Return the latest image up to a time, where it was taken; None before the first.

        Args:
            env: Number of the environment.
            time: On the flight's clock [s].
            position: Not read: the pose that was recorded counts.
            attitude: Not read, likewise.
        """
        rows = np.flatnonzero((self._env == env) & (self._time <= time + 1e-9))
        if not rows.size:
            return None
        row = int(rows[np.argmax(self._time[rows])])
        taken = float(self._time[row])
        return ViewerImage(self._image(self._files[row]), self._position[row], camera_attitude(self._attitude[row]), taken)

    def _image(self, name: str) -> ArrayU8:
        import io

        from PIL import Image

        path = Untrusted(self._folder / "index.parquet", self._folder).inside(name)
        data = read_bytes(path, _IMAGE_BYTES)
        try:
            with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
                return np.asarray(picture.convert("RGB"))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise AssetError(f"{str(path)!r} is not an image: {error}.") from error


def recorded_names(folder: Path) -> list[str]:
    """Return sensors of a flight's folder that recorded colour images."""
    return [
        path.parent.name
        for path in sorted((folder / "sensors").glob("*/calibration.json"))
        if "rgb" in (read_json(path).get("files") or {}) and (path.parent / "index.parquet").is_file()
    ]


def _fov(directions: ArrayAny) -> float:
    """Angle between the rays at the middle of the upper and of the lower edge [rad]."""
    middle = directions.shape[1] // 2
    cosine = float(np.clip(directions[0, middle] @ directions[-1, middle], -1.0, 1.0))
    return min(math.acos(cosine), _ANGLE_MAX)
