"""What a student's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AssetError
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots.network_files import (
    WEIGHTS_FILE,
    ContractTable,
    checked_tensors,
    contract_and_weights,
    folder_contract,
    read_weights,
    tensor_bytes,
    write_network_files,
)
from airworthy.planners.agile_autonomy.layers import IMAGE, NUMBERS, POINTS, RATE, SPACING, STATE, tensor_shapes
from airworthy.planners.agile_autonomy.level import COLUMNS, ROWS

__all__ = ["KIND", "WEIGHTS_LIMIT_BYTES", "StudentContract", "read_student_folder", "shipped_student", "write_student_folder"]

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "agile_autonomy", 2
_MAGNITUDE = 1e4
"""Ours: weights beyond it may overflow within the layers."""
WEIGHTS_LIMIT_BYTES = 8 * 1024 * 1024
"""Ours: a network of three modes has 1.6 MB."""
INPUTS = (
    ("rotation", 9, "1", "body to world, row by row"),
    ("velocity", 3, "m/s", "body"),
    ("rate", 3, "rad/s", "body"),
    ("reference_direction", 3, "1", "body"),
)
"""Name, numbers, unit and frame of the state, in order."""
VIEW_MEANING = (
    "nearness by level distance, 1 at contact and 0 from 1.25 times the reach on or where nothing returned, of the nearest of"
    " 2 x 2 pixels; and a plane that is 1 where the camera does not look. Rows from 38 to -46 degrees of elevation,"
    " columns from 48 degrees of azimuth left of the nose to 48 right of it, turned level by the rotation; of the navigation"
    " benchmark's camera"
)
MEANING = (
    "per mode: collision score, then x, y and z of 10 points from 0.1 s to 1.0 s ahead, metres in the body frame, told from"
    " v t + ((|v| + 1) d - v) t^2 / 2 with velocity v and reference_direction d; the mode of the score nearest to zero is best"
)


@dataclass(frozen=True)
class StudentContract:
    """What a student learnt for, and how.

    Raises:
        AirworthyError: If a number is out of range.
    """

    modes: Annotated[int, Bound(1, 16)] = 3
    """Trajectories that it gives at once."""
    reach: Annotated[float, Bound(0.5, 100.0, "m")] = 5.0
    """Depth beyond which its images are all alike [m]."""
    speed: Annotated[float, Bound(0.1, 50.0, "m/s")] = 7.0
    """Fastest flight that it learnt [m/s]."""
    blind: bool = False
    """Learnt without an image: its image is empty in flight, too."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it learnt; free."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")


def _table(contract: StudentContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "shape", "unit", "frame")
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Flies to a goal through obstacles by trajectories of one second, from a depth image and its motion",
        "rate_hz": RATE,
        "image": {
            "shape": [IMAGE, IMAGE],
            "reach_m": contract.reach,
            "input": "clip(depth / reach, 0, 1) in 250 steps, of the pixel at a cell's middle; no return is reach",
            "level_view": {"shape": [ROWS, COLUMNS], "meaning": VIEW_MEANING},
            "blind": contract.blind,
        },
        "inputs": [dict(zip(keys, (name, [size], *rest), strict=True)) for name, size, *rest in INPUTS],
        "outputs": {"shape": [contract.modes, NUMBERS], "points": POINTS, "spacing_s": SPACING, "meaning": MEANING},
        "modes": contract.modes,
        "speed_m_s": contract.speed,
        "weights": dict(weights),
        "training": dict(contract.training),
    }


def _fields(table: ContractTable) -> StudentContract:
    contract = StudentContract(
        modes=table.entry("modes", int),
        reach=table.entry("image.reach_m", float),
        speed=table.entry("speed_m_s", float),
        blind=table.entry("image.blind", bool),
        training=table.entry("training", dict[str, Any]),
    )
    expected = _table(contract, {})
    for key in ("rate_hz", "image", "inputs", "outputs"):
        table.must_be(key, expected[key])
    return contract


def read_student_folder(folder: str | Path) -> tuple[StudentContract, dict[str, ArrayF32]]:
    """Return contract and tensors of a student's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    table, where = folder_contract(folder, "a student of Agile-Autonomy")
    contract, digest = contract_and_weights(table, where, "a contract of a student of Agile-Autonomy", (KIND, VERSION), _fields)
    data = read_weights(folder, digest, WEIGHTS_LIMIT_BYTES)
    place = str(Path(folder) / WEIGHTS_FILE)
    return contract, checked_tensors(data, tensor_shapes(contract.modes), " of a student", place, _MAGNITUDE)


def shipped_student() -> Path:
    """Return the folder of the student that comes with the package; how it was trained: docs/howto/agile_autonomy.md.

    Raises:
        AssetError: It is not where it was installed.
    """
    folder = Path(str(files("airworthy.planners.agile_autonomy").joinpath("assets", "shipped")))
    if not folder.is_dir():
        raise AssetError("The student of Agile-Autonomy is missing from the installation: install airworthy again.")
    return folder


def write_student_folder(folder: str | Path, contract: StudentContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a student's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors by the names of `tensor_shapes`.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = tensor_bytes(weights, tensor_shapes(contract.modes), " of a student")
    return write_network_files(folder, data, lambda file: _table(contract, file))


assert sum(size for _, size, *_ in INPUTS) == STATE
