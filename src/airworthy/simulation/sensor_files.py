"""Files of recorded sensors: PNG images, PCD clouds, calibration. Written beside their name first, then renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.sensors.devices import Device

UNITS = (1e-3, 4e-3, 1e-2)
"""Metres per count of a 16-bit image, the finest that reaches the device's maximum."""


def depth_unit(device: Device) -> float:
    """Metres per count for this device's depths or ranges."""
    far = device.limits.maximum
    return next((unit for unit in UNITS if far <= 65535 * unit), UNITS[-1] if np.isfinite(far) else UNITS[0])


def write_png(path: Path, image: NDArray[Any]) -> None:
    """8- or 16-bit grey, or 8-bit RGB.

    Raises:
        AirworthyError: If the file cannot be written.
    """
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(image))
    replace_file(path, lambda temporary: picture.save(temporary, format="PNG", compress_level=1))


def write_pcd(path: Path, points: NDArray[Any]) -> None:
    """Point cloud (n, 3) float32 as binary PCD 0.7; only finite points.

    Raises:
        AirworthyError: If the file cannot be written.
    """
    cloud = np.asarray(points, "<f4").reshape(-1, 3)
    cloud = cloud[np.isfinite(cloud).all(axis=1)]
    head = (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {len(cloud)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(cloud)}\nDATA binary\n"
    )
    replace_file(path, lambda temporary: temporary.write_bytes(head.encode() + cloud.tobytes()))


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Any other channel, as .npy.

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
    """What a reader needs to use a sensor's files: intrinsics, extrinsics, frames, units.

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
    if isinstance(item, float) and not np.isfinite(item):
        return None
    return item
