"""A network's folder: `weights.safetensors`, and `contract.json`, which says what the numbers mean and vouches for them.

The contract's last entry is its seal: the SHA-256 of its own text with 64 zeros in the seal's place. It stands for the weights
through their digest in it, and for every scale, range, unit and note: a byte that changed on the way, or a number changed by
hand, is found. It is no signature: who means to deceive can seal again.

Both may come from strangers: sizes are bounded before anything is read, every tensor is compared with its shape, and whatever
does not fit is refused in one sentence. What a contract says is each network's own: it reads a `ContractTable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.files import json_text, make_folder, parse_json, read_bytes, read_text, sha256, write_bytes, write_text
from airworthy.core.table_schema import TableSchema, check_header, check_same

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_LIMIT_BYTES",
    "WEIGHTS_FILE",
    "ContractTable",
    "checked_tensors",
    "contract_and_weights",
    "contract_kind",
    "folder_contract",
    "layer_shapes",
    "parse_contract",
    "read_contract_table",
    "read_weights",
    "sealed_text",
    "tensor_bytes",
    "write_network_files",
    "write_sealed",
]

Shapes = Mapping[str, tuple[int, ...]]
Contract = TypeVar("Contract")
CONTRACT_FILE, WEIGHTS_FILE = "contract.json", "weights.safetensors"
# Ours: contracts of shipped networks have 3.6 kB; a larger file is no contract and is not parsed.
CONTRACT_LIMIT_BYTES = 256 * 1024
# Ours: a folder of runs is searched for a network, a home directory given by mistake is not.
_FOLDERS_MAX = 1000
"""Folders that are looked into for a network, at most."""
_NAMED = 3
"""Of them in a message, at most."""
# What stands in the seal's place while the digest is taken: as long as the digest, so that nothing else moves.
_OPEN = "0" * 64
_SEALED = re.compile(r'"seal": "([0-9a-f]{64})"\n}\n\Z')


# ---- Entries of a contract that may come from a stranger --------------------------------------------------------------------

# Ours: enough for a path and a reason.
_MESSAGE_MAX = 500
"""Characters; what a stranger wrote is quoted, and may be long."""
# The size of a contract's file bounds whatever is in it, and beside the entries that are read others may stand.
SCHEMA = TableSchema(CONTRACT_LIMIT_BYTES, CONTRACT_LIMIT_BYTES, text_max=CONTRACT_LIMIT_BYTES, complete=True)


@dataclass(frozen=True)
class ContractTable:
    """A contract's content, or a table in it, of which a network reads the entries that it knows; raises AssetError."""

    table: Any
    """As it was parsed."""
    where: str
    """Begins messages; a file's place ends in ": "."""

    def entry(self, name: str, kind: Any, default: Any = MISSING) -> Any:
        """Return one entry, as `TableSchema.entry`.

        Args:
            name: Of the entry; dots lead into tables.
            kind: Its type, with bounds as annotations.
            default: Where there is none; without one, it has to be there.
        """
        return SCHEMA.entry(self.table, name, kind, self.where, default)

    def rows(self, name: str) -> list[ContractTable]:
        """Return the tables of a list."""
        label = self._label(name)
        return [ContractTable(row, f"{label}[{k}]") for k, row in enumerate(self.entry(name, tuple[Any, ...]))]

    def must_be(self, name: str, wanted: Any, exact: bool = True, free: str = "") -> None:
        """Refuse an entry other than this program's, as `check_same`.

        Args:
            name: Of the entry.
            wanted: What it is in this program.
            exact: Whether a table may have no other entries than the wanted ones.
            free: Name of an entry of its tables that is not looked at.
        """
        given = self.entry(name, Any)
        check_same(_without(given, free), _without(wanted, free), self._label(name), exact)

    def _label(self, name: str) -> str:
        return self.where + name if self.where.endswith(": ") else f"{self.where}.{name}"


def _without(tables: Any, name: str) -> Any:
    """Return a list of tables, each without one of its entries; whatever else it is, as it is."""
    if not name or not isinstance(tables, list):
        return tables
    return [{k: v for k, v in item.items() if k != name} if isinstance(item, dict) else item for item in tables]


def contract_and_weights(
    table: Any, where: str, what: str, kind: tuple[str, int], fields: Callable[[ContractTable], Contract]
) -> tuple[Contract, str]:
    """Return the contract in a parsed contract.json, and the digest of the weights that it vouches for.

    Args:
        table: The file's content.
        where: Its place, for messages.
        what: It should be, with its article ("a contract of SV-Net").
        kind: That is expected, and the version that this program reads.
        fields: From the file's entries to the contract.

    Raises:
        AssetError: It is not such a contract, or cannot be used.
    """
    check_header(table, repr(where), what, ("kind", kind[0]), kind[1])
    entries = ContractTable(table, f"{where!r}: ")
    try:
        return fields(entries), entries.entry("weights.sha256", str)
    except AssetError:
        raise
    except AirworthyError as error:
        raise AssetError(f"{where!r}: {error}"[:_MESSAGE_MAX]) from None


# ---- Folders ----------------------------------------------------------------------------------------------------------------


def write_network_files(folder: str | Path, data: bytes, table: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Write a network's folder, the contract last, so that a folder with one is whole.

    Args:
        folder: Made where it is missing.
        data: The file of weights, from `tensor_bytes`.
        table: From name, digest and size of that file to the content of contract.json.

    Returns:
        The folder.

    Raises:
        AirworthyError: The contract is too long, or the file system refused.
    """
    where = make_folder(folder)
    content = table({"file": WEIGHTS_FILE, "sha256": sha256(data), "bytes": len(data)})
    text = sealed_text(content)
    if (size := len(text.encode())) > CONTRACT_LIMIT_BYTES:
        raise AirworthyError(
            f"The contract would have {size:,} bytes, more than {CONTRACT_LIMIT_BYTES:,}: note less in `training`."
        )
    try:
        (where / CONTRACT_FILE).unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise AirworthyError(f"Could not replace {str(where / CONTRACT_FILE)!r}: {reason}; remove it, and go on.") from error
    write_bytes(where / WEIGHTS_FILE, data)
    write_text(where / CONTRACT_FILE, text)
    return where


def sealed_text(table: Mapping[str, Any]) -> str:
    """Return the text of a contract with its seal as the last entry."""
    text = json_text({**{key: value for key, value in table.items() if key != "seal"}, "seal": _OPEN})
    begin = text.rindex(_OPEN)
    return text[:begin] + sha256(text) + text[begin + len(_OPEN) :]


def read_contract_table(path: str | Path) -> Any:
    """Return what a sealed contract.json says; raises AssetError as `parse_contract`, and where it cannot be read."""
    return parse_contract(read_text(path, CONTRACT_LIMIT_BYTES), str(path))


def folder_contract(folder: str | Path, what: str) -> tuple[Any, str]:
    """Return what the contract of a network's folder says, and its place.

    Args:
        folder: Of a network.
        what: It should hold, with its article ("a policy").

    Raises:
        AssetError: There is none, or as `read_contract_table`.
    """
    path = Path(folder) / CONTRACT_FILE
    # A link that leads nowhere is a damaged folder, not one without a contract: reading it says so.
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise AssetError(f"{str(folder)!r} does not hold {what}{_instead(_folders_below(folder))}")
    return read_contract_table(path), str(path)


def _instead(below: list[Path]) -> str:
    """Return where the networks are that somebody looked for one floor too high, as the end of a sentence."""
    named = ", ".join(repr(str(path)) for path in below[:_NAMED])
    if len(below) < 2:
        return f"; did you mean {named}?" if below else f": there is no {CONTRACT_FILE} in it."
    more = " ..." if len(below) > _NAMED else ""
    return f" itself, but {len(below)} folders in it do, one per seed or variant: name {named}{more}."


def _folders_below(folder: str | Path) -> list[Path]:
    """Return the networks' folders inside a folder, by name: a demo's, those of several seeds, or of several variants."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_FOLDERS_MAX), strict=False) if entry.is_dir())
    except OSError:
        return []
    return [Path(folder) / name for name in names if (Path(folder) / name / CONTRACT_FILE).is_file()]


@telling_refusals()
def contract_kind(folder: str | Path) -> str:
    """Return the kind of network that a folder's contract names; empty where there is no contract or it names none.

    Raises:
        AssetError: The contract cannot be read or was changed.
    """
    path = Path(folder) / CONTRACT_FILE
    table = read_contract_table(path) if path.is_file() else None
    kind = table.get("kind") if isinstance(table, dict) else None
    return kind if isinstance(kind, str) else ""


def parse_contract(text: str, where: str) -> Any:
    """Return what the text of a sealed contract says.

    Args:
        text: As it was written, to the byte; the caller has bounded its length.
        where: Its place, for messages.

    Raises:
        AssetError: It is not JSON, carries no seal, or is not what was sealed.
    """
    found = _SEALED.search(text)
    if found is None:
        table = parse_json(text, where)
        if isinstance(table, dict) and "seal" in table:
            raise AssetError(f"{where!r} is not as it was sealed: it was changed or damaged.")
        raise AssetError(
            f"{where!r} carries no seal, so that nothing vouches for what its numbers mean: if you know where it comes from,"
            " `airworthy seal FOLDER` checks and seals it (folders of earlier versions need it once)."
        )
    begin, end = found.span(1)
    if sha256(text[:begin] + _OPEN + text[end:]) != found[1]:
        raise AssetError(f"{where!r} is not as it was sealed: it was changed or damaged.")
    return parse_json(text, where)


def write_sealed(path: str | Path, table: Mapping[str, Any]) -> None:
    """Write a contract's file with its seal."""
    write_text(path, sealed_text(table))


def read_weights(folder: str | Path, digest: str, limit_bytes: int) -> bytes:
    """Return the content of a folder's `weights.safetensors`.

    Args:
        folder: Of a network.
        digest: SHA-256 that its contract tells.
        limit_bytes: More is refused unread.

    Raises:
        AssetError: It is missing, too large, or not the file that the contract names.
    """
    path = Path(folder) / WEIGHTS_FILE
    data = read_bytes(path, limit_bytes)
    if (found := sha256(data)) != digest:
        raise AssetError(
            f"{str(path)!r} has the SHA-256 {found[:12]}..., its contract says {digest[:12]}...: it was changed or damaged."
        )
    return data


def layer_shapes(widths: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return name and shape of each tensor of fully connected layers: `layers.0.weight` (out, in), `layers.0.bias` (out,).

    Args:
        widths: Inputs, neurons of each hidden layer, outputs.
    """
    found: dict[str, tuple[int, ...]] = {}
    for number, (given, wide) in enumerate(pairwise(widths)):
        found |= {f"layers.{number}.weight": (wide, given), f"layers.{number}.bias": (wide,)}
    return found


def tensor_bytes(weights: Mapping[str, ArrayAny], shapes: Shapes, whose: str = "") -> bytes:
    """Return a safetensors file in alphabetical order: equal tensors are equal bytes.

    Args:
        weights: Tensors by name; they become float32.
        shapes: Of all there must be.
        whose: They are, for messages (" of variant 'hp_net'").

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    from safetensors.numpy import save

    with np.errstate(over="ignore"):
        arrays = {key: np.ascontiguousarray(weights[key], np.float32) for key in sorted(weights)}
    if fault := _fault(arrays, shapes):
        raise AirworthyError(f"The weights{whose} cannot be written: {fault}.")
    return save(arrays)


def checked_tensors(data: bytes, shapes: Shapes, whose: str, where: str, most: float = np.inf) -> dict[str, ArrayF32]:
    """Return tensors of a safetensors file, which the caller has bounded.

    Args:
        data: The file.
        shapes: Of all there must be.
        whose: They are, for messages (" of variant 'hp_net'").
        where: The file's place, for messages.
        most: Largest number that the network can compute with.

    Raises:
        AssetError: It is damaged, its tensors are others, or their numbers too large.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{where!r} is not a usable safetensors file: {reason}.") from None
    if fault := _fault(arrays, shapes):
        raise AssetError(f"{where!r} does not hold the weights{whose}: {fault}.")
    if beyond := [name for name in shapes if np.abs(arrays[name]).max() > most]:
        raise AssetError(f"{where!r} does not hold usable weights: the tensor {beyond[0]!r} has numbers beyond {most:g}.")
    return arrays


def _fault(arrays: Mapping[str, ArrayAny], shapes: Shapes) -> str:
    """Return what is wrong with tensors, as half a sentence; empty where they fit."""
    if missing := sorted(set(shapes) - set(arrays)):
        return f"the tensor {missing[0]!r} is missing"
    if extra := sorted(set(arrays) - set(shapes)):
        return f"the tensor {extra[0][:80]!r} does not belong there"
    for key, shape in shapes.items():
        array = arrays[key]
        if array.shape != shape:
            return f"the tensor {key!r} has shape {array.shape}, expected {shape}"
        if array.dtype != np.float32:
            return f"the tensor {key!r} is of {array.dtype}, expected float32"
        if not np.isfinite(array).all():
            return f"the tensor {key!r} holds values that are not finite"
    return ""
