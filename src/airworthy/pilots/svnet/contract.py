"""What a policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

Both come from strangers, perhaps: sizes are bounded before anything is read, every tensor is compared with its variant, and
whatever does not fit is refused in one sentence. See `airworthy.pilots.network_files`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json
from airworthy.pilots.contract_fields import Unfit, as_number, as_table, as_text, check_kind, refused
from airworthy.pilots.network_files import CONTRACT_FILE, CONTRACT_LIMIT_BYTES, WEIGHTS_FILE, read_weights, write_network_files
from airworthy.pilots.svnet.features import HISTORY_TICKS, IMAGE_MEAN, IMAGE_STD, Form
from airworthy.pilots.svnet.ports import ports_of
from airworthy.pilots.svnet.squeezenet import least_size
from airworthy.pilots.svnet.tensors import checked_tensors, tensor_bytes
from airworthy.pilots.svnet.variants import variant

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_KEY",
    "CONTRACT_LIMIT_BYTES",
    "WEIGHTS_FILE",
    "Contract",
    "View",
    "contract_from",
    "read_contract",
    "read_policy",
    "write_policy",
]

Floats = NDArray[np.float32]
KIND, VERSION = "airworthy-svnet", 1
CONTRACT_KEY = "airworthy_contract"
"""Of an exported model's metadata; the value is the text of contract.json."""
WEIGHTS_LIMIT_BYTES = 16 * 1024 * 1024
"""Twice what the largest variant takes."""
SIDE_MAX = 1024
FOCAL_MIN = 1.0
"""Of a view [px]; a lens of less would see nearly half a sphere in every pixel."""
_FOLDERS_MAX = 1000
"""Folders that are looked into for a policy, at most."""


@dataclass(frozen=True)
class View:
    """The image that the policy was shown: a pinhole's, without distortion.

    The default is SOUS VIDE's: the reference drone's 640 x 360 image resized to 256 x 256, its middle 224 x 224.

    Raises:
        AirworthyError: If a number is out of range.
    """

    width: int = 224
    """[px]"""
    height: int = 224
    fx: float = 185.1824
    """[px]"""
    fy: float = 329.24586666666664
    cx: float = 113.2304
    """From the left edge of the image [px]."""
    cy: float = 112.84195555555556

    def __post_init__(self) -> None:
        least = least_size()
        if not all(type(side) is int and least <= side <= SIDE_MAX for side in (self.width, self.height)):
            raise AirworthyError(
                f"A policy's view is {self.width} x {self.height} px; expected whole numbers of {least} to {SIDE_MAX}."
            )
        for name in ("fx", "fy", "cx", "cy"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
                raise AirworthyError(f"A policy's view has {name} {value!r}; expected a finite number of pixels.")
        if not (self.fx >= FOCAL_MIN and self.fy >= FOCAL_MIN):
            raise AirworthyError(
                f"A policy's view has focal lengths {self.fx} and {self.fy} px; expected {FOCAL_MIN:g} or more."
            )

    @classmethod
    def of_side(cls, side: int) -> View:
        """The published view in other pixels, `side` of them along each side."""
        share = side / 224
        fx, fy, cx, cy = (value * share for value in (cls.fx, cls.fy, cls.cx, cls.cy))
        return cls(side, side, fx, fy, cx, cy)


@dataclass(frozen=True)
class Contract:
    """What a policy reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
        UnknownNameError: There is no such variant.
    """

    variant: str = "sv_net"
    view: View | None = field(default_factory=View)
    """None for a variant that does not see."""
    rate: float = 20.0
    """Decisions per second [Hz]; the time between two ticks of the history."""
    history: Form = "paper"
    """Form of the history's position rows."""
    image_mean: tuple[float, ...] = IMAGE_MEAN
    """Taken off red, green, blue in [0, 1]."""
    image_std: tuple[float, ...] = IMAGE_STD
    """By which they are then divided."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of the training; free."""
    data: str = ""
    """Digest of the data that it learnt from."""
    notes: str = ""
    """A sentence or two for people."""

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Rows and columns of the image; None of a variant that does not see."""
        return None if self.view is None else (self.view.height, self.view.width)

    def __post_init__(self) -> None:
        kind = variant(self.variant)
        if kind.vision and self.view is None:
            raise AirworthyError(f"A contract of variant {self.variant!r}, which sees, has no view.")
        if self.history not in ("paper", "code"):
            raise AirworthyError(f"A contract has the history form {self.history!r}; expected 'paper' or 'code'.")
        if not (isfinite(self.rate) and 1.0 <= self.rate <= 1000.0):
            raise AirworthyError(f"A contract has a rate of {self.rate} Hz; expected 1 to 1,000.")
        for name in ("image_mean", "image_std"):
            values = getattr(self, name)
            if len(values) != 3 or not all(isfinite(v) and abs(v) < 1e3 for v in values):
                raise AirworthyError(f"A contract has {name} {list(values)}; expected three numbers, none beyond 1,000.")
        if min(self.image_std) < 1e-3:
            raise AirworthyError(f"A contract has image_std {list(self.image_std)}; expected 0.001 or more of each.")


def write_policy(folder: str | Path, contract: Contract, weights: Mapping[str, NDArray[Any]]) -> Path:
    """Write a policy's folder; the contract last, so that a folder with one is whole.

    Args:
        folder: Made where it is missing.
        contract: What it means.
        weights: Tensors by the names of `variants.tensor_shapes`, float32.

    Returns:
        The folder.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    data = tensor_bytes(weights, contract.variant)
    return write_network_files(folder, data, lambda file: _table(contract, file))


def read_contract(folder: str | Path) -> Contract:
    """The contract of a policy's folder, without its weights; raises AssetError as `read_policy`."""
    return _read(Path(folder))[0]


def read_policy(folder: str | Path) -> tuple[Contract, dict[str, Floats]]:
    """Contract and tensors of a policy's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another variant, or not the one that the contract names.
    """
    where = Path(folder)
    contract, digest = _read(where)
    data = read_weights(where, digest, WEIGHTS_LIMIT_BYTES)
    return contract, checked_tensors(data, contract.variant, str(where / WEIGHTS_FILE))


def _read(folder: Path) -> tuple[Contract, str]:
    """Contract of a folder and the digest of its weights."""
    path = folder / CONTRACT_FILE
    if folder.is_dir() and not os.path.lexists(path):
        below = _below(folder)
        hint = f"; did you mean {str(below)!r}?" if below else f": there is no {CONTRACT_FILE} in it."
        raise AssetError(f"{str(folder)!r} does not hold a policy{hint}")
    return _parsed(read_json(path, CONTRACT_LIMIT_BYTES), str(path))


def _below(folder: Path) -> Path | None:
    """The first policy inside a folder, by name: a demo's, or one of several variants."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_FOLDERS_MAX), strict=False) if entry.is_dir())
    except OSError:
        return None
    return next((folder / name for name in names if (folder / name / CONTRACT_FILE).is_file()), None)


def contract_from(table: Any, where: str) -> Contract:
    """The contract in a parsed contract.json; raises AssetError where it cannot be used, `where` being its place in words."""
    return _parsed(table, where)[0]


def _table(contract: Contract, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Content of contract.json."""
    kind = variant(contract.variant)
    inputs, outputs = ports_of(kind, contract.image_size)
    head = {"kind": KIND, "version": VERSION, "variant": contract.variant, "summary": kind.summary}
    image = {"mean": list(contract.image_mean), "std": list(contract.image_std)}
    return {
        **head,
        "rate_hz": contract.rate,
        "history": {"form": contract.history, "ticks": HISTORY_TICKS},
        "view": asdict(contract.view) if contract.view and kind.vision else None,
        "image": image if kind.vision else None,
        "inputs": inputs,
        "outputs": outputs,
        "weights": dict(weights),
        "data": contract.data,
        "training": dict(contract.training),
        "notes": contract.notes,
    }


def _parsed(table: Any, where: str) -> tuple[Contract, str]:
    """Contract and the digest of its weights."""
    with refused(where, "a contract of SV-Net"):
        return _fields(table)


def _fields(table: Any) -> tuple[Contract, str]:
    check_kind(table, KIND, VERSION)
    name = as_text(table["variant"])
    kind = variant(name)
    view = _view(table["view"]) if kind.vision else None
    image = table["image"] if kind.vision else {"mean": list(IMAGE_MEAN), "std": list(IMAGE_STD)}
    if table["history"]["ticks"] != HISTORY_TICKS:
        raise Unfit(f"its history has {table['history']['ticks']!r} ticks, this program's {HISTORY_TICKS}")
    contract = Contract(
        name,
        view,
        as_number(table["rate_hz"]),
        table["history"]["form"],
        tuple(map(as_number, image["mean"])),
        tuple(map(as_number, image["std"])),
        as_table(table.get("training", {})),
        as_text(table.get("data", "")),
        as_text(table.get("notes", "")),
    )
    _check_ports(table, contract)
    return contract, as_text(table["weights"]["sha256"])


def _check_ports(table: Mapping[str, Any], contract: Contract) -> None:
    """Names and shapes must be ours; what people wrote about them is free."""
    for side, wanted in zip(("inputs", "outputs"), ports_of(variant(contract.variant), contract.image_size), strict=True):
        given = [(port["name"], port["shape"]) for port in table[side]]
        if given != [(port["name"], port["shape"]) for port in wanted]:
            expected = [(port["name"], port["shape"]) for port in wanted]
            raise Unfit(f"its {side} are {given}; those of variant {contract.variant!r} are {expected}")


def _view(value: Any) -> View:
    known = set(View.__dataclass_fields__)
    if set(as_table(value)) != known:
        raise Unfit(f"a table has the entries {sorted(value)}, expected {sorted(known)}")
    return View(**value)
