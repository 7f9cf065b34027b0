"""Records mounted sensors to disk while they sample: one folder per sensor.

`sensors/<name>/<env>/<step>.png` is the first image channel, `<step>_<channel>.png` the others, `<step>.pcd` the points;
flights that begin while it records go into `flight_1/`, `flight_2/`, ... beside them. `index.parquet` lists every file with its
stamp and pose (and a ranger's or beacon camera's readings), `calibration.json` says what the numbers are. Memory is bounded: a
sample is on the disk before the next is taken.

Images for files and messages from what sensors measure (spec/flightgoggles 2.3).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, write_atomic, write_json
from airworthy.sensors.devices import Device
from airworthy.simulation.mounted import Capture, MountedSensors


def depth_16bit(metres: ArrayLike, unit: float = 1e-3) -> NDArray[np.uint16]:
    """Return 16-bit image of a depth or range: counts of `unit` metres, rounded; 0 where nothing returned or it does not
    fit."""
    return _counted(metres, unit, np.uint16)


def depth_8bit(metres: ArrayLike, unit: float = 0.2) -> ArrayU8:
    """Return 8-bit image: counts of `unit` metres (FlightGoggles 2019: 0.20); 0 where nothing returned or it does not fit."""
    return _counted(metres, unit, np.uint8)


def metres_of(image: ArrayLike, unit: float = 1e-3) -> Array:
    """Return metres of a counted image; +inf where it holds 0."""
    counts = np.asarray(image, np.float64)
    return np.where(counts > 0.0, counts * unit, np.inf)


def ids_16bit(numbers: ArrayLike) -> NDArray[np.uint16]:
    """Return 16-bit image of instance or semantic numbers; 0 where nothing is hit.

    Raises:
        AirworthyError: If a number does not fit into 16 bits.
    """
    array = np.asarray(numbers)
    if array.size and array.max() > 65535:
        raise AirworthyError(f"An image of ids holds {array.max()}, which 16 bits cannot; number instances below 65536.")
    return np.where(array > 0, array, 0).astype(np.uint16)


def normals_8bit(normals: ArrayLike) -> ArrayU8:
    """Return 8-bit image of normals: (n + 1) / 2 x 255 per axis; 0, 0, 0 where nothing is hit."""
    n = np.asarray(normals, np.float64)
    return np.where(np.isnan(n), 0.0, np.rint((n + 1.0) * 127.5)).astype(np.uint8)


def grey(rgb: ArrayLike) -> ArrayU8:
    """Return the grey image of an 8-bit RGB image: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601)."""
    return np.rint(np.asarray(rgb, np.float64) @ (0.299, 0.587, 0.114)).astype(np.uint8)


def _counted(metres: ArrayLike, unit: float, kind: Any) -> ArrayAny:
    with np.errstate(invalid="ignore", over="ignore"):
        counts = np.rint(np.asarray(metres, np.float64) / unit)
        fits = (counts > 0) & (counts <= np.iinfo(kind).max)
    return np.where(fits, counts, 0).astype(kind)


# -----------------------------------------------------------------------------------------------------------------------------
# Files of recorded sensors: PNG images, PCD clouds, calibration. Written beside their name first, then renamed.

# Ours: 16 bits of millimetres reach 65 m; 4 mm and 1 cm reach 262 and 655 m.
UNITS = (1e-3, 4e-3, 1e-2)
"""Metres per count of a 16-bit image, the finest that reaches the device's maximum."""


def depth_unit(device: Device) -> float:
    """Return metres per count for this device's depths or ranges."""
    far = device.limits.maximum
    return next((unit for unit in UNITS if far <= 65535 * unit), UNITS[-1] if np.isfinite(far) else UNITS[0])


def write_png(path: Path, image: ArrayAny) -> None:
    """Write 8- or 16-bit grey, or 8-bit RGB.

    Raises:
        AirworthyError: If the file cannot be written.
    """
    from PIL import Image

    # Fastest compression: images come at frame rate, and a smaller file is not worth a missed one.
    picture = Image.fromarray(np.ascontiguousarray(image))
    replace_file(path, lambda temporary: picture.save(temporary, format="PNG", compress_level=1))


def write_pcd(path: Path, points: ArrayAny) -> None:
    """Write a point cloud (n, 3) float32 as binary PCD 0.7; only finite points.

    Raises:
        AirworthyError: If the file cannot be written.
    """
    cloud = np.asarray(points, "<f4").reshape(-1, 3)
    # PCD has no mark for rays that met nothing.
    cloud = cloud[np.isfinite(cloud).all(axis=1)]
    head = (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {len(cloud)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(cloud)}\nDATA binary\n"
    )
    replace_file(path, lambda temporary: temporary.write_bytes(head.encode() + cloud.tobytes()))


def write_array(path: Path, array: ArrayAny) -> None:
    """Write any other channel, as .npy.

    Raises:
        AirworthyError: If the file cannot be written.
    """

    def save(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            np.save(file, array, allow_pickle=False)

    replace_file(path, save)


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write through a temporary file, so that a reader never sees half an image.

    Images are many, so they are not forced to the disk one by one as `core.files.write_atomic` does; the index is.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AirworthyError(f"Could not write {str(path)!r}: {error.strerror or error}.") from error


def calibration(device: Device, channels: dict[str, str]) -> dict[str, Any]:
    """Return what a reader needs to use a sensor's files: intrinsics, extrinsics, frames, units.

    Args:
        device: As mounted.
        channels: Kind of file of each channel.
    """
    return {
        "device": device.name,
        "kind": device.kind,
        "source": device.source,
        "rate_hz": device.rate,
        "latency_s": device.latency,
        "height": device.height,
        "width": device.width,
        "projection": {"model": type(device.projection).__name__, **_plain(device.projection)},
        "limits": _plain(device.limits),
        "noise": _plain(device.effective_noise),
        "baseline_m": device.baseline,
        "mount_in_body": _plain(device.effective_mount),
        "depth_unit_m": depth_unit(device),
        "depths": (
            "files hold metres, as counts of depth_unit_m; 0 is no measurement."
            + (
                f" In flight the device gives shares of its {device.limits.maximum:g} m, and pilots see those."
                if device.limits.normalize
                else ""
            )
        ),
        "files": channels,
        "frames": (
            "world z up; body and mount x forward, y left, z up; optical x right, y down, z forward; poses in the index are of"
            " the mount in the world, quaternions x, y, z, w; a camera's optical frame is the mount turned by"
            " (-0.5, 0.5, -0.5, 0.5); pixel (u, v) has its origin at the upper left corner, the ray of column j, row i passes"
            " (j + 0.5, i + 0.5)"
        ),
    }


def _plain(value: Any) -> dict[str, Any]:
    """Fields of a record as JSON takes them."""
    fields = asdict(value) if is_dataclass(value) and not isinstance(value, type) else {}
    return {name: _jsonable(item) for name, item in fields.items()}


def _jsonable(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return item.tolist()
    if isinstance(item, dict):
        return {name: _jsonable(inner) for name, inner in item.items()}
    # JSON knows no infinity, which is how a limit that is none is kept.
    if isinstance(item, float) and not np.isfinite(item):
        return None
    return item


# -----------------------------------------------------------------------------------------------------------------------------

INDEX_EVERY = 4096
"""Rows after which an index is written anew; until then they are Python objects, afterwards columns."""
_DISTANCES = ("depth", "range", "true_depth", "true_range")
_IDS = ("instance_id", "semantic_id")
_NORMALS = ("normal_world", "normal_sensor", "normal")
_READINGS = ("ranger", "beacons")


class SensorRecorder:
    """Writes what mounted sensors sample; a context manager, or close it yourself.

    Args:
        folder: The flight's folder; files go into `sensors/` in it.
        mounted: Whose samples.
        names: Sensors to record; None: all.
        envs: Environments to record; None: all.
        every: Keep the first and every n-th sample after it.

    Raises:
        AirworthyError: If a sensor is unknown or the folder cannot be written.
    """

    def __init__(
        self,
        folder: str | Path,
        mounted: MountedSensors,
        names: Sequence[str] | None = None,
        envs: Sequence[int] | None = None,
        every: int = 1,
    ):
        if every < 1:
            raise AirworthyError(f"A sensor recorder keeps every {every}-th sample; expected 1 or more.")
        self.folder = make_folder(Path(folder) / "sensors")
        self._every, self._envs = every, None if envs is None else np.asarray(envs, np.intp)
        self._rate = mounted.simulator.config.physics_rate
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._tables: dict[str, list[Any]] = {}
        for name in mounted.names if names is None else names:
            if name not in mounted.names:
                raise unknown_name("mounted sensor", name, mounted.names)
            self._rows[name], self._tables[name] = [], []
            make_folder(self.folder / name)
        self._simulator = mounted.simulator
        # Flights are counted from where recording began.
        self._first = mounted.simulator.episode.astype(np.int64)
        mounted.listen(self._keep)

    def __enter__(self) -> SensorRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Write the indices; later samples are still recorded, and indexed at the next close."""
        for name in self._rows:
            self._write_index(name)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _keep(self, capture: Capture) -> None:
        if capture.name not in self._rows:
            return
        rows = self._rows[capture.name]
        device = capture.sensor.device
        if not (rows or self._tables[capture.name]):
            kinds = {channel: _kind(channel, array) for channel, array in capture.data.items()}
            write_json(self.folder / capture.name / "calibration.json", calibration(device, kinds))
        for k, env in enumerate(capture.envs):
            if (self._envs is not None and env not in self._envs) or capture.number[k] % self._every:
                continue
            rows.append(self._recorded(capture, k, int(env), device))
            if len(rows) >= INDEX_EVERY:
                self._write_index(capture.name)

    def _recorded(self, capture: Capture, k: int, env: int, device: Device) -> dict[str, Any]:
        """Write one environment's files; its row of the index."""
        step, episode = int(capture.step[k]), int(self._simulator.episode[env])
        row: dict[str, Any] = {
            "env": env,
            "episode": episode,
            "t": step / self._rate,
            "step": step,
            "number": int(capture.number[k]),
        }
        row |= {f"position_{a}_m": float(x) for a, x in zip("xyz", capture.position[k], strict=True)}
        row |= {f"attitude_{a}": float(x) for a, x in zip("xyzw", capture.attitude[k], strict=True)}
        later = episode - int(self._first[env])
        folder = make_folder(self.folder / capture.name / str(env) / (f"flight_{later}" if later else ""))
        first = True
        for channel, array in capture.data.items():
            # A few numbers per sample, of rangers or of a kind of one's own, are no image.
            if device.kind in _READINGS or array.ndim < 3:
                row[channel] = array[k].ravel().tolist()
                continue
            kind = _kind(channel, array)
            stem = f"{step}" if kind == "pcd" or (kind == "png" and first) else f"{step}_{channel}"
            first = first and kind != "png"
            path = folder / f"{stem}.{kind}"
            _write(path, kind, channel, array[k], device)
            row[f"file_{channel}"] = path.relative_to(self.folder / capture.name).as_posix()
        return row

    def _write_index(self, name: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._rows[name]:
            return
        tables = self._tables[name]
        tables.append(pa.Table.from_pylist(self._rows[name], tables[0].schema if tables else None))
        self._rows[name].clear()
        write_atomic(self.folder / name / "index.parquet", lambda path: pq.write_table(pa.concat_tables(tables), path))


def _kind(channel: str, array: ArrayAny) -> str:
    """Kind of file of a channel."""
    if channel == "points":
        return "pcd"
    return "png" if channel in (*_DISTANCES, *_IDS, *_NORMALS, "rgb", "albedo", "valid") else "npy"


def _write(path: Path, kind: str, channel: str, array: ArrayAny, device: Device) -> None:
    if kind == "pcd":
        write_pcd(path, array)
    elif kind == "npy":
        write_array(path, array)
    else:
        write_png(path, _image(channel, array, device))


def _image(channel: str, array: ArrayAny, device: Device) -> ArrayAny:
    if channel in _DISTANCES:
        metres = device.limits.metres(array) if channel in ("depth", "range") else array
        return depth_16bit(metres, depth_unit(device))
    if channel in _IDS:
        return ids_16bit(array)
    if channel in _NORMALS:
        return normals_8bit(array)
    if channel == "valid":
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint8:
        return array
    from airworthy.optics.tone import encode_8bit, to_8bit

    return to_8bit(array) if channel == "rgb" else encode_8bit(array)  # radiance as in every picture; the rest as it is
