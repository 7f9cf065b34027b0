"""What a network's numbers mean: `contract.json`, and the shapes of its tensors.

A contract may come from a stranger: whatever does not fit is refused in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from math import pi
from pathlib import Path
from typing import Annotated, Any

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.pilots import network_files
from airworthy.pilots.network_files import (
    CONTRACT_FILE,
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    layer_shapes,
    read_weights,
    write_network_files,
)

__all__ = [
    "CONTRACT_FILE",
    "FIELDS",
    "PAPER_RANGES",
    "SCALES",
    "SLOPES",
    "UNITS",
    "WEIGHTS_FILE",
    "WIDTHS",
    "BoundaryContract",
    "contract_of",
    "contract_table",
    "network_folder",
    "network_tensors",
    "read_network",
    "shipped_networks",
    "tensor_bytes",
    "tensor_shapes",
    "write_network",
]

FIELDS = ("v_prev", "z_prev", "d0", "theta0", "z_i", "df", "thetaf", "z_next")
"""Of a situation (eq. 6): speed at the previous gate, its height; distance, bearing and height of the next one, seen from the
previous one; distance and bearing of the one after it, seen from the next one, and its height."""
UNITS = ("m/s", "m", "m", "rad", "m", "m", "rad", "m")
PAPER_RANGES = (
    (0.0, 1.0),
    (0.3, 0.525),
    (0.8, 1.5),
    (-pi / 4, pi / 4),
    (0.3, 0.525),
    (0.8, 1.5),
    (-pi / 4, pi / 4),
    (0.3, 0.525),
)
"""Table II."""
# Source: spec/boundary_predictor section 7: sigmoid outputs scaled by (2 m/s, 2 s).
OUTPUTS = (("v", "m/s"), ("t0", "s"))
SCALES = (2.0, 2.0)
"""What the two sigmoids are multiplied by [m/s, s]."""
# Source: spec/boundary_predictor section 7: 512, 256, 32, 32, 2 with leaky slopes 0.10, 0.04, 0.02, 0.02.
WIDTHS = (8, 512, 256, 32, 32, 2)
SLOPES = (0.10, 0.04, 0.02, 0.02)
"""Of the leaky rectifiers behind all layers but the last, which has a sigmoid."""
# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "airworthy-boundary", 1
# Ours: weights beyond it may overflow float32 within the five layers.
_MAGNITUDE = 1e6
# Ours: queries are divided by the width of a range, labels by a scale.
_LEAST = 1e-6
_OF_FIELDS, _OF_OUTPUTS = Length(len(FIELDS), len(FIELDS)), Length(len(OUTPUTS), len(OUTPUTS))


@dataclass(frozen=True)
class BoundaryContract:
    """What a network reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
    """

    ranges: Annotated[tuple[tuple[float, float], ...], Bound(-_MAGNITUDE, _MAGNITUDE), _OF_FIELDS] = PAPER_RANGES
    """Lowest and highest value of each field; scaled to 0 and 1, beyond them a query is clamped."""
    scales: Annotated[tuple[float, ...], Bound(_LEAST, _MAGNITUDE), _OF_OUTPUTS] = SCALES
    """Speed [m/s] and time [s] at which the outputs end."""
    heading: Annotated[str, Length(1, 80)] = "incoming"
    """Rule for the heading of gates in what it learnt from."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the training, and of the labels that it learnt from; free."""
    data: str = ""
    """Digest of those labels."""
    notes: str = ""
    """A sentence or two for people."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        for name, (low, high) in zip(FIELDS, self.ranges, strict=True):
            if not high - low >= _LEAST:
                raise AirworthyError(f"Contract.ranges of {name} is {low:g} to {high:g}; expected low below high.")


def tensor_shapes() -> dict[str, tuple[int, ...]]:
    """Return name -> shape of each tensor, float32; 145,282 numbers."""
    return layer_shapes(WIDTHS)


def contract_table(contract: BoundaryContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of contract.json.

    Args:
        contract: What is meant.
        weights: Name, digest and size of the file of weights.
    """
    inputs = [
        {"name": name, "unit": unit, "low": low, "high": high}
        for name, unit, (low, high) in zip(FIELDS, UNITS, contract.ranges, strict=True)
    ]
    outputs = [{"name": name, "unit": unit, "scale": s} for (name, unit), s in zip(OUTPUTS, contract.scales, strict=True)]
    return {
        "kind": KIND,
        "version": VERSION,
        "summary": "Of three gates: speed through the middle one, and time to it",
        "inputs": inputs,
        "outputs": outputs,
        "layers": _layers(),
        "heading": contract.heading,
        "weights": dict(weights),
        "data": contract.data,
        "training": dict(contract.training),
        "notes": contract.notes,
    }


def contract_of(table: Any, where: str) -> tuple[BoundaryContract, str]:
    """Return contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    return contract_and_weights(table, where, "a contract of a boundary network", (KIND, VERSION), _fields)


def _layers() -> dict[str, Any]:
    return {"widths": list(WIDTHS), "slopes": list(SLOPES), "last": "sigmoid"}


def _fields(table: ContractTable) -> BoundaryContract:
    table.must_be("layers", _layers())
    for side, ports in (("inputs", tuple(zip(FIELDS, UNITS, strict=True))), ("outputs", OUTPUTS)):
        table.must_be(side, [{"name": name, "unit": unit} for name, unit in ports], exact=False)
    return BoundaryContract(
        tuple((port.entry("low", float), port.entry("high", float)) for port in table.rows("inputs")),
        tuple(port.entry("scale", float) for port in table.rows("outputs")),
        table.entry("heading", str),
        table.entry("training", dict[str, Any], {}),
        table.entry("data", str, ""),
        table.entry("notes", str, ""),
    )


# -----------------------------------------------------------------------------------------------------------------------------
# A boundary network's folder: where it lies, how it is written and read. See `airworthy.pilots.network_files`.

WEIGHTS_LIMIT_BYTES = 2 * 1024 * 1024
"""Three times what the tensors take."""


def shipped_networks() -> dict[str, Path]:
    """Return name -> folder of the networks that come with the package."""
    assets = Path(str(files("airworthy.gates.planner"))) / "assets"
    if not assets.is_dir():
        return {}
    return {path.name: path for path in sorted(assets.iterdir()) if (path / CONTRACT_FILE).is_file()}


def network_folder(where: str | Path) -> Path:
    """Return where a network lies.

    Args:
        where: A folder; or, where there is no such folder, the name of a network that comes with the package.

    Raises:
        AssetError: There is neither.
    """
    folder = Path(where)
    if os.path.isdir(folder):
        return folder
    shipped = shipped_networks()
    if str(where) in shipped:
        return shipped[str(where)]
    names = f", or one that comes with the package: {', '.join(shipped)}" if shipped else ""
    raise AssetError(f"{str(where)!r} is no folder; expected what `airworthy train boundary` wrote{names}.")


def write_network(folder: str | Path, contract: BoundaryContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a network's folder, the contract last, so that a folder with one is whole; returns the folder.

    Args:
        folder: Made where it is missing.
        contract: What the numbers mean.
        weights: Tensors by the names of `contract.tensor_shapes`.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return write_network_files(folder, tensor_bytes(weights), lambda file: contract_table(contract, file))


def read_network(folder: str | Path) -> tuple[BoundaryContract, dict[str, ArrayF32]]:
    """Return contract and tensors of a network's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, digest = contract_of(*folder_contract(folder, "a network"))
    return contract, network_tensors(read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)


def network_tensors(data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Return tensors of the file of weights of a folder; raises AssetError where they are others."""
    where = str(Path(folder) / WEIGHTS_FILE)
    return network_files.checked_tensors(data, tensor_shapes(), " of a boundary network", where)


def tensor_bytes(weights: Mapping[str, ArrayAny]) -> bytes:
    """Return a safetensors file in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes())
