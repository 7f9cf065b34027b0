"""What a network's numbers mean: `contract.json`, and the shapes of its tensors.

A contract may come from a stranger: whatever does not fit is refused in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from math import isfinite, pi
from pathlib import Path
from typing import Any

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.schema import check_fields
from airworthy.pilots import network_files
from airworthy.pilots.network_files import (
    CONTRACT_FILE,
    WEIGHTS_FILE,
    Unfit,
    as_number,
    as_table,
    as_text,
    check_kind,
    read_contract_table,
    read_weights,
    refused,
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


@dataclass(frozen=True)
class BoundaryContract:
    """What a network reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
    """

    ranges: tuple[tuple[float, float], ...] = PAPER_RANGES
    """Lowest and highest value of each field; scaled to 0 and 1, beyond them a query is clamped."""
    scales: tuple[float, ...] = SCALES
    """Speed [m/s] and time [s] at which the outputs end."""
    heading: str = "incoming"
    """Rule for the heading of gates in what it learnt from."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the training, and of the labels that it learnt from; free."""
    data: str = ""
    """Digest of those labels."""
    notes: str = ""
    """A sentence or two for people."""

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        if len(self.ranges) != len(FIELDS) or any(len(pair) != 2 for pair in self.ranges):
            raise AirworthyError(f"A network's contract has {len(self.ranges)} ranges; expected {len(FIELDS)} pairs.")
        for name, (low, high) in zip(FIELDS, self.ranges, strict=True):
            if not (_small(low) and _small(high) and high - low >= 1e-6):
                raise AirworthyError(f"A network's contract has the range {low} to {high} of {name}; expected low below high.")
        if len(self.scales) != len(OUTPUTS) or not all(_small(s) and s >= 1e-6 for s in self.scales):
            raise AirworthyError(f"A network's contract has the scales {list(self.scales)}; expected two numbers above 0.")
        if not self.heading or len(self.heading) > 80:
            raise AirworthyError("A network's contract has no rule for headings; expected a word, as 'incoming'.")


def _small(value: float) -> bool:
    return isfinite(value) and abs(value) <= _MAGNITUDE


def tensor_shapes() -> dict[str, tuple[int, ...]]:
    """Name -> shape of each tensor, float32; 145,282 numbers."""
    found: dict[str, tuple[int, ...]] = {}
    for number, (given, wide) in enumerate(pairwise(WIDTHS)):
        found |= {f"layers.{number}.weight": (wide, given), f"layers.{number}.bias": (wide,)}
    return found


def contract_table(contract: BoundaryContract, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Content of contract.json.

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
        "layers": {"widths": list(WIDTHS), "slopes": list(SLOPES), "last": "sigmoid"},
        "heading": contract.heading,
        "weights": dict(weights),
        "data": contract.data,
        "training": dict(contract.training),
        "notes": contract.notes,
    }


def contract_of(table: Any, where: str) -> tuple[BoundaryContract, str]:
    """Contract and digest of the weights in a parsed contract.json.

    Args:
        table: The file's content.
        where: Its place, for messages.

    Raises:
        AssetError: It is not a contract of this kind, or cannot be used.
    """
    with refused(where, "a contract of a boundary network"):
        return _fields(table)


def _fields(table: Any) -> tuple[BoundaryContract, str]:
    check_kind(table, KIND, VERSION)
    if table["layers"] != {"widths": list(WIDTHS), "slopes": list(SLOPES), "last": "sigmoid"}:
        raise Unfit("its layers are others than this program's")
    inputs = _ports(table["inputs"], tuple(zip(FIELDS, UNITS, strict=True)), "inputs")
    outputs = _ports(table["outputs"], OUTPUTS, "outputs")
    contract = BoundaryContract(
        tuple((as_number(port["low"]), as_number(port["high"])) for port in inputs),
        tuple(as_number(port["scale"]) for port in outputs),
        as_text(table["heading"]),
        as_table(table.get("training", {})),
        as_text(table.get("data", "")),
        as_text(table.get("notes", "")),
    )
    return contract, as_text(table["weights"]["sha256"])


def _ports(given: Any, wanted: tuple[tuple[str, str], ...], side: str) -> list[Any]:
    names = [(port["name"], port["unit"]) for port in given]
    if names != list(wanted):
        raise Unfit(f"its {side} are {names}, expected {list(wanted)}")
    return list(given)


# -----------------------------------------------------------------------------------------------------------------------------
# A boundary network's folder: where it lies, how it is written and read. See `airworthy.pilots.network_files`.

WEIGHTS_LIMIT_BYTES = 2 * 1024 * 1024
"""Three times what the tensors take."""


def shipped_networks() -> dict[str, Path]:
    """Name -> folder of the networks that come with the package."""
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
    """Contract and tensors of a network's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    path = Path(folder) / CONTRACT_FILE
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise AssetError(f"{str(folder)!r} does not hold a network: there is no {CONTRACT_FILE} in it.")
    contract, digest = contract_of(read_contract_table(path), str(path))
    return contract, network_tensors(read_weights(folder, digest, WEIGHTS_LIMIT_BYTES), folder)


def network_tensors(data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Tensors of the file of weights of a folder; raises AssetError where they are others."""
    where = str(Path(folder) / WEIGHTS_FILE)
    return network_files.checked_tensors(data, tensor_shapes(), " of a boundary network", where)


def tensor_bytes(weights: Mapping[str, ArrayAny]) -> bytes:
    """Return a safetensors file in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes())
