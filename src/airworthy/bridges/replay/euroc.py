"""Visual-inertial data sets in the layout of EuRoC (Burri et al. 2016): folders, tables, and the text of `sensor.yaml`.

mav0/camK/data/STAMP.png, data.csv, sensor.yaml; mav0/imu0; mav0/state_groundtruth_estimate0. T_BS leads from a sensor's frame
to the body's, cameras' x right, y down, z forward; intrinsics count pixels from the centre of the first one, as OpenCV does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.bridges.replay.imu import InertialSeries
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_text, write_text
from airworthy.core.frames import to_matrix, to_wxyz
from airworthy.optics.projections import Fisheye, Pinhole
from airworthy.sensors.devices import Device

__all__ = ["IMU_NOISE", "TRUTH", "camera_lines", "pose_matrix", "read_imu_noise", "write_camera", "write_imu", "write_truth"]

IMU, TRUTH = "imu0", "state_groundtruth_estimate0"
IMU_NOISE: Mapping[str, str] = {
    "gyroscope_noise_density": "rad / s / sqrt(Hz)",
    "gyroscope_random_walk": "rad / s^2 / sqrt(Hz)",
    "accelerometer_noise_density": "m / s^2 / sqrt(Hz)",
    "accelerometer_random_walk": "m / s^3 / sqrt(Hz)",
}
"""Numbers of an inertial sensor's noise, and their units."""
_IMU_COLUMNS = (
    "#timestamp [ns]", "w_RS_S_x [rad s^-1]", "w_RS_S_y [rad s^-1]", "w_RS_S_z [rad s^-1]",
    "a_RS_S_x [m s^-2]", "a_RS_S_y [m s^-2]", "a_RS_S_z [m s^-2]",
)  # fmt: skip
_TRUTH_COLUMNS = (
    "#timestamp", "p_RS_R_x [m]", "p_RS_R_y [m]", "p_RS_R_z [m]", "q_RS_w []", "q_RS_x []", "q_RS_y []", "q_RS_z []",
    "v_RS_R_x [m s^-1]", "v_RS_R_y [m s^-1]", "v_RS_R_z [m s^-1]",
)  # fmt: skip
_BIAS_COLUMNS = (
    "b_w_RS_S_x [rad s^-1]", "b_w_RS_S_y [rad s^-1]", "b_w_RS_S_z [rad s^-1]",
    "b_a_RS_S_x [m s^-2]", "b_a_RS_S_y [m s^-2]", "b_a_RS_S_z [m s^-2]",
)  # fmt: skip
_NOISE_LINE = re.compile(r"^\s*(\w+)\s*:\s*([-+.\deE]+)\s*(#.*)?$", re.MULTILINE)


def pose_matrix(position: ArrayLike, attitude: ArrayLike) -> Array:
    """Return the 4 x 4 matrix of a pose (3,) [m], (4,)."""
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = to_matrix(attitude), np.asarray(position, float)
    return found


def camera_lines(device: Device) -> list[str]:
    """Return the lines of a camera's lens for `sensor.yaml`.

    Raises:
        AirworthyError: The layout has no words for it.
    """
    lens = device.projection
    if not isinstance(lens, Pinhole | Fisheye):
        raise AirworthyError(f"The sensor {device.name!r} is no camera with a lens, which EuRoC's layout has alone.")
    corner = 0.0 if isinstance(lens, Pinhole) and lens.integer_pixels else 0.5
    # Of the layout's four numbers: radial-tangential is k1, k2, p1, p2; equidistant k1 to k4.
    if isinstance(lens, Pinhole):
        bend = lens.distortion
        if bend.k3:
            raise AirworthyError(
                f"The camera {device.name!r} has a third radial coefficient ({bend.k3:g}), for which EuRoC's layout has no"
                " place: choose one without."
            )
        model, numbers = "radial-tangential", (bend.k1, bend.k2, bend.p1, bend.p2)
    else:
        four = lens.polynomial
        model, numbers = "equidistant", (four.k1, four.k2, four.k3, four.k4)
    return [
        f"rate_hz: {device.rate!r}",
        f"resolution: [{lens.width}, {lens.height}]",
        "camera_model: pinhole",
        f"intrinsics: {_numbers((lens.fx, lens.fy, lens.cx - corner, lens.cy - corner))} # fu, fv, cu, cv",
        f"distortion_model: {model}",
        f"distortion_coefficients: {_numbers(numbers)}",
    ]


def _numbers(values: Sequence[float] | Array) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


def _sensor(kind: str, comment: str, matrix: Array, rest: Sequence[str]) -> str:
    rows = ",\n         ".join(", ".join(repr(float(value)) for value in row) for row in matrix)
    head = [f"sensor_type: {kind}", f"comment: {comment}", "T_BS:", "  cols: 4", "  rows: 4", f"  data: [{rows}]"]
    return "\n".join([*head, *rest, ""])


def _comment(text: str) -> str:
    """Return a text as YAML takes it between quotes."""
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'


def _table(columns: Sequence[str], stamps: Any, values: Array) -> str:
    lines = [",".join(columns)]
    # The shortest text that reads back as the same number.
    lines += [
        ",".join((str(stamp), *map(repr, row))) for stamp, row in zip(np.asarray(stamps).tolist(), values.tolist(), strict=True)
    ]
    return "\n".join(lines) + "\n"


def write_camera(folder: Path, name: str, device: Device, body_from_camera: Array, stamps: Any, comment: str) -> None:
    """Write a camera's `sensor.yaml` and `data.csv`; its pictures are `data/STAMP.png`.

    Args:
        folder: `mav0`.
        name: "cam0".
        device: Lens and rate.
        body_from_camera: (4, 4) of its optical frame.
        stamps: Of its pictures [ns].
        comment: What it is.
    """
    make_folder(folder / name / "data")
    text = _sensor("camera", _comment(comment), body_from_camera, camera_lines(device))
    write_text(folder / name / "sensor.yaml", text)
    lines = ["#timestamp [ns],filename", *(f"{stamp},{stamp}.png" for stamp in np.asarray(stamps).tolist())]
    write_text(folder / name / "data.csv", "\n".join(lines) + "\n")


def write_imu(folder: Path, series: InertialSeries, rate: float, noise: Mapping[str, float], comment: str) -> None:
    """Write `imu0`, whose frame is the body's.

    Args:
        folder: `mav0`.
        series: Samples.
        rate: Per second.
        noise: Of `IMU_NOISE` what is known.
        comment: What it is.
    """
    make_folder(folder / IMU)
    known = [f"{key}: {noise[key]!r} # [ {unit} ]" for key, unit in IMU_NOISE.items() if key in noise]
    write_text(folder / IMU / "sensor.yaml", _sensor("imu", _comment(comment), np.eye(4), [f"rate_hz: {rate:.6g}", *known]))
    write_text(folder / IMU / "data.csv", _table(_IMU_COLUMNS, series.stamps, np.hstack([series.rate, series.force])))


def write_truth(
    folder: Path, stamps: Any, position: Array, attitude: Array, velocity: Array, bias: Array | None, comment: str
) -> None:
    """Write `state_groundtruth_estimate0`, whose frame is the body's.

    Args:
        folder: `mav0`.
        stamps: [ns], (n,).
        position: World [m], (n, 3).
        attitude: Body to world, x, y, z, w, (n, 4).
        velocity: World [m/s], (n, 3).
        bias: Of gyroscope and accelerometer, (n, 6); None: not known, and its columns are left out.
        comment: What it is.
    """
    make_folder(folder / TRUTH)
    write_text(folder / TRUTH / "sensor.yaml", _sensor("visual-inertial", _comment(comment), np.eye(4), []))
    columns, values = list(_TRUTH_COLUMNS), [position, to_wxyz(attitude), velocity]
    if bias is not None:
        columns, values = [*columns, *_BIAS_COLUMNS], [*values, bias]
    write_text(folder / TRUTH / "data.csv", _table(columns, stamps, np.hstack(values)))


def read_imu_noise(log: Path) -> dict[str, float]:
    """Return what the `sensor.yaml` of a data set's inertial sensor says of its noise; empty where there is none."""
    for name in ("mav0/imu0/sensor.yaml", "imu0/sensor.yaml", "sensor.yaml"):
        path = log / name if log.is_dir() else log.with_name(name) if "/" not in name else None
        if path is not None and path.is_file():
            found = {}
            for key, number, _ in _NOISE_LINE.findall(read_text(path, 1 << 20)):
                try:
                    value = float(number)
                except ValueError:
                    continue
                if key in IMU_NOISE and np.isfinite(value) and value >= 0.0:
                    found[key] = value
            return found
    return {}
