"""What a policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

Both come from strangers, perhaps: sizes are bounded before anything is read, every tensor is compared with its variant, and
whatever does not fit is refused in one sentence. See `airworthy.pilots.network_files`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.pilots import network_files
from airworthy.pilots.network_files import (
    CONTRACT_FILE,
    CONTRACT_LIMIT_BYTES,
    WEIGHTS_FILE,
    Unfit,
    as_number,
    as_table,
    as_text,
    check_kind,
    folders_below,
    read_contract_table,
    read_weights,
    refused,
    write_network_files,
)
from airworthy.pilots.svnet.features import HISTORY_SIZE, HISTORY_TICKS, IMAGE_MEAN, IMAGE_STD, OBJECTIVE_SIZE, Form
from airworthy.pilots.svnet.variants import COMMAND, ESTIMATE, Variant, least_size, tensor_shapes, variant

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_KEY",
    "CONTRACT_LIMIT_BYTES",
    "SHIPPED",
    "WEIGHTS_FILE",
    "PolicyContract",
    "PolicyImage",
    "checked_tensors",
    "contract_and_digest",
    "contract_from",
    "policy_folder",
    "policy_tensors",
    "ports_of",
    "read_contract",
    "read_policy",
    "shipped_name",
    "shipped_policy",
    "tensor_bytes",
    "write_policy",
]

# ---- Policies that come with the package, and where a policy's word leads ---------------------------------------------------

SHIPPED = {"hall": "the course robustness in the hall: through the gate, under the ladder, to the monitor"}
"""Name -> what it flies. How each was trained: docs/concepts/policies.md."""
DEFAULT = "hall"


def shipped_policy(name: str = DEFAULT) -> Path:
    """Return the folder of a policy that comes with the package.

    Raises:
        UnknownNameError: There is none of this name.
        AssetError: It is not where it was installed.
    """
    if name not in SHIPPED:
        raise unknown_name("shipped policy", name, SHIPPED)
    folder = Path(str(files("airworthy.pilots.svnet").joinpath("assets", name)))
    if not folder.is_dir():
        raise AssetError(f"The policy {name!r} is missing from the installation: install airworthy again.")
    return folder


def shipped_name(folder: Path) -> str:
    """Return the name of a shipped policy by its folder; empty where it is another folder."""
    return next((name for name in SHIPPED if folder == shipped_policy(name)), "")


def policy_folder(specifier: str) -> Path:
    """Return where a policy lies that is named behind `svnet:`.

    Args:
        word: A folder; or, where there is no such folder, the name of a shipped policy; empty: the first of these.

    Raises:
        AssetError: There is neither a folder nor a shipped policy of this name.
    """
    if not specifier:
        return shipped_policy()
    folder = Path(specifier)
    if folder.is_dir():
        return folder
    if specifier in SHIPPED:
        return shipped_policy(specifier)
    names = ", ".join(SHIPPED)
    raise AssetError(
        f"{specifier!r} is no folder; svnet:FOLDER names what `airworthy train svnet` wrote, or a shipped policy: {names}."
    )


# -----------------------------------------------------------------------------------------------------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# The policy's inputs and outputs, one by one: names, shapes, units and frames, as its contract says them.

_FRAMES = "world x forward, y right, z down; body x forward, y right, z down; quaternions x, y, z, w, body to world"


def ports_of(kind: Variant, image: tuple[int, int] | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return inputs and outputs of a variant, in order; the batch axis, which comes first, is not in the shapes.

    Args:
        kind: The variant.
        image: Rows and columns of the image, of a variant that sees.
    """
    inputs = [_state(kind), _port("objective", OBJECTIVE_SIZE, _OBJECTIVE)]
    if kind.history != "none":
        inputs.append(_port("history", HISTORY_SIZE, _HISTORY))
    if kind.vision and image is not None:
        inputs.append({"name": "image", "shape": [*image, 3], "type": "uint8", "meaning": _IMAGE})
    outputs = [_port("command", COMMAND, _COMMAND)]
    if kind.history != "none":
        outputs.append(_port("estimate", ESTIMATE, "mass [kg]; force of one rotor at full command [N]"))
    return inputs, outputs


_IMAGE = "red, green, blue, sRGB, rows from the top; the network divides by 255, takes image.mean off and divides by image.std"
_COMMAND = "thrust as a share of full thrust, -1 full to 0 none; body rates x, y, z [rad/s], z down; not clipped"
_OBJECTIVE = (
    "of the course: duration [s]; displacement from start to end (3) [m]; velocity at the start (3) and at the end (3) [m/s];"
    f" quaternion at the start (4) and at the end (4); {_FRAMES}"
)
_HISTORY = (
    f"the last {HISTORY_TICKS} ticks, newest first, all ticks of the first number, then of the second, and so on; of each tick"
    " time since the tick before [s], movement (3) [m], change of velocity (3) [m/s], quaternion from the attitude before to"
    f" this one (4), the command given at the tick before (4); zeros where there was no tick; {_FRAMES}"
)


def _state(kind: Variant) -> dict[str, Any]:
    if kind.vision:
        about = f"z (1) [m], down; velocity (3) [m/s], world; quaternion (4); {_FRAMES}; no lateral position"
    else:
        about = f"time (1) [s]; position (3) [m]; velocity (3) [m/s], world; quaternion (4); {_FRAMES}"
    return _port("state", kind.state_size, about)


def _port(name: str, size: int, meaning: str) -> dict[str, Any]:
    return {"name": name, "shape": [size], "type": "float32", "meaning": meaning}


# -----------------------------------------------------------------------------------------------------------------------------
# The tensors of a policy in safetensors: compared with their variant before and after they are in a file.


def tensor_bytes(weights: Mapping[str, ArrayAny], name: str) -> bytes:
    """Return a safetensors file of a variant's tensors, in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes(name), _whose(name))


def checked_tensors(data: bytes, name: str, where: str) -> dict[str, ArrayF32]:
    """Tensors of a safetensors file, which the caller has bounded.

    Args:
        data: Of the file.
        name: Of the variant, which has the shapes.
        where: What messages call the file.

    Raises:
        AssetError: It is damaged, or its tensors are not the variant's.
    """
    return network_files.checked_tensors(data, tensor_shapes(name), _whose(name), where)


def _whose(name: str) -> str:
    return f" of variant {name!r}"


# -----------------------------------------------------------------------------------------------------------------------------

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "airworthy-svnet", 1
CONTRACT_KEY = "airworthy_contract"
"""Of an exported model's metadata; the value is the text of contract.json."""
WEIGHTS_LIMIT_BYTES = 16 * 1024 * 1024
"""Twice what the largest variant takes."""
# Ours: work memory of the backbone grows with the square; published policies have 224.
SIDE_MAX = 1024
FOCAL_MIN = 1.0
"""Of a view [px]; a lens of less would see nearly half a sphere in every pixel."""


@dataclass(frozen=True)
class PolicyImage:
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
    def of_side(cls, side: int) -> PolicyImage:
        """Return the published view in other pixels, `side` of them along each side."""
        share = side / 224
        fx, fy, cx, cy = (value * share for value in (cls.fx, cls.fy, cls.cx, cls.cy))
        return cls(side, side, fx, fy, cx, cy)


@dataclass(frozen=True)
class PolicyContract:
    """What a policy reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
        UnknownNameError: There is no such variant.
    """

    variant: str = "sv_net"
    view: PolicyImage | None = field(default_factory=PolicyImage)
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
        check_fields(self, "Contract.")
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


def write_policy(folder: str | Path, contract: PolicyContract, weights: Mapping[str, ArrayAny]) -> Path:
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


def read_contract(folder: str | Path) -> PolicyContract:
    """Return the contract of a policy's folder, without its weights; raises AssetError as `read_policy`."""
    return _read(Path(folder))[0]


def read_policy(folder: str | Path) -> tuple[PolicyContract, dict[str, ArrayF32]]:
    """Contract and tensors of a policy's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another variant, or not the one that the contract names.
    """
    where = Path(folder)
    contract, digest = _read(where)
    return contract, policy_tensors(contract, read_weights(where, digest, WEIGHTS_LIMIT_BYTES), where)


def policy_tensors(contract: PolicyContract, data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Tensors of the file of weights of a folder; raises AssetError where they are others.

    Args:
        contract: Names the variant.
        data: Of the file of weights.
        folder: That it comes from, for messages.
    """
    return checked_tensors(data, contract.variant, str(Path(folder) / WEIGHTS_FILE))


def _read(folder: Path) -> tuple[PolicyContract, str]:
    """Contract of a folder and the digest of its weights."""
    path = folder / CONTRACT_FILE
    if folder.is_dir() and not os.path.lexists(path):
        below = folders_below(folder)
        hint = f"; did you mean {str(below[0])!r}?" if below else f": there is no {CONTRACT_FILE} in it."
        raise AssetError(f"{str(folder)!r} does not hold a policy{hint}")
    return contract_and_digest(read_contract_table(path), str(path))


def contract_from(table: Any, where: str) -> PolicyContract:
    """Return the contract in a parsed contract.json; raises AssetError where it cannot be used, `where` being its place in
    words.
    """
    return contract_and_digest(table, where)[0]


def _table(contract: PolicyContract, weights: Mapping[str, Any]) -> dict[str, Any]:
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


def contract_and_digest(table: Any, where: str) -> tuple[PolicyContract, str]:
    """Contract and the digest of its weights; raises AssetError as `contract_from`."""
    with refused(where, "a contract of SV-Net"):
        return _fields(table)


def _fields(table: Any) -> tuple[PolicyContract, str]:
    check_kind(table, KIND, VERSION)
    name = as_text(table["variant"])
    kind = variant(name)
    view = _view(table["view"]) if kind.vision else None
    image = table["image"] if kind.vision else {"mean": list(IMAGE_MEAN), "std": list(IMAGE_STD)}
    if table["history"]["ticks"] != HISTORY_TICKS:
        raise Unfit(f"its history has {table['history']['ticks']!r} ticks, this program's {HISTORY_TICKS}")
    contract = PolicyContract(
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


def _check_ports(table: Mapping[str, Any], contract: PolicyContract) -> None:
    """Names and shapes must be ours; what people wrote about them is free."""
    for side, wanted in zip(("inputs", "outputs"), ports_of(variant(contract.variant), contract.image_size), strict=True):
        given = [(port["name"], port["shape"]) for port in table[side]]
        if given != [(port["name"], port["shape"]) for port in wanted]:
            expected = [(port["name"], port["shape"]) for port in wanted]
            raise Unfit(f"its {side} are {given}; those of variant {contract.variant!r} are {expected}")


def _view(value: Any) -> PolicyImage:
    known = set(PolicyImage.__dataclass_fields__)
    if set(as_table(value)) != known:
        raise Unfit(f"a table has the entries {sorted(value)}, expected {sorted(known)}")
    return PolicyImage(**value)
