"""A network's folder: `weights.safetensors`, and `contract.json`, which says what the numbers mean and vouches for them.

The contract's last entry is its seal: the SHA-256 of its own text with 64 zeros in the seal's place. It stands for the weights
through their digest in it, and for every scale, range, unit and note: a byte that changed on the way, or a number changed by
hand, is found. It is no signature: who means to deceive can seal again.

Both may come from strangers: sizes are bounded before anything is read, every tensor is compared with its shape, and whatever
does not fit is refused in one sentence. What a contract says is each network's own; see also `contract_fields`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, parse_json, read_bytes, read_text, sha256, write_bytes, write_text

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_LIMIT_BYTES",
    "WEIGHTS_FILE",
    "Unfit",
    "as_number",
    "as_table",
    "as_text",
    "check_kind",
    "checked_tensors",
    "contract_kind",
    "folders_below",
    "parse_contract",
    "read_contract_table",
    "read_weights",
    "refused",
    "sealed_text",
    "tensor_bytes",
    "write_network_files",
    "write_sealed",
]

# ---- Entries of a contract that may come from a stranger: what does not fit becomes one sentence ----------------------------

# Ours: enough for a path and a reason.
_MESSAGE_MAX = 500
"""Characters; what a stranger wrote is quoted, and may be long."""


class Unfit(Exception):
    """What does not fit, in words."""


@contextmanager
def refused(where: str, what: str) -> Iterator[None]:
    """Turn whatever is found wrong inside the block into an AssetError.

    Args:
        where: The contract's place, for messages.
        what: It should be ("a contract of SV-Net").

    Raises:
        AssetError: It is not such a contract, or cannot be used.
    """
    try:
        yield
    except AirworthyError as error:
        raise AssetError(f"{where!r} cannot be used. {error}"[:_MESSAGE_MAX]) from None
    except Unfit as error:
        raise AssetError(f"{where!r} is not {what}: {error}."[:_MESSAGE_MAX]) from None
    except KeyError as error:
        raise AssetError(f"{where!r} is not {what}: it lacks {error.args[0]!r}."[:_MESSAGE_MAX]) from None
    except (TypeError, ValueError, OverflowError):
        raise AssetError(f"{where!r} is not {what}: one of its entries is of another type.") from None


def check_kind(table: Any, kind: str, version: int) -> None:
    """Raise Unfit where a parsed contract is of another kind, or of another version of it.

    Args:
        table: What was parsed.
        kind: That is expected.
        version: That this program reads.
    """
    if not isinstance(table, dict) or table.get("kind") != kind:
        raise Unfit(f"its kind is not {kind!r}")
    if table.get("version") != version:
        raise Unfit(f"its version is {table.get('version')!r}, this program reads {version}")


def as_number(value: Any) -> float:
    """Return an entry that must be a number; raises Unfit."""
    # Python's bool is an int; `true` for a number in a stranger's JSON is a mistake.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"{value!r} is no number")
    return float(value)


def as_text(value: Any) -> str:
    """Return an entry that must be a text; raises Unfit."""
    if not isinstance(value, str):
        raise Unfit(f"{value!r} is no text")
    return value


def as_table(value: Any) -> dict[str, Any]:
    """Return an entry that must be a table; raises Unfit."""
    if not isinstance(value, dict):
        raise Unfit(f"{value!r} is no table")
    return value


# -----------------------------------------------------------------------------------------------------------------------------

Shapes = Mapping[str, tuple[int, ...]]
CONTRACT_FILE, WEIGHTS_FILE = "contract.json", "weights.safetensors"
# Ours: contracts of shipped networks have 3.6 kB; a larger file is no contract and is not parsed.
CONTRACT_LIMIT_BYTES = 256 * 1024
# Ours: a folder of runs is searched, a home directory given by mistake is not.
_FOLDERS_MAX = 1000
"""Folders that are looked into for a network, at most."""
# What stands in the seal's place while the digest is taken: as long as the digest, so that nothing else moves.
_OPEN = "0" * 64
_SEALED = re.compile(r'"seal": "([0-9a-f]{64})"\n}\n\Z')


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
    (where / CONTRACT_FILE).unlink(missing_ok=True)
    write_bytes(where / WEIGHTS_FILE, data)
    write_text(where / CONTRACT_FILE, text)
    return where


def sealed_text(table: Mapping[str, Any]) -> str:
    """Text of a contract with its seal as the last entry."""
    text = json_text({**{key: value for key, value in table.items() if key != "seal"}, "seal": _OPEN})
    begin = text.rindex(_OPEN)
    return text[:begin] + sha256(text) + text[begin + len(_OPEN) :]


def read_contract_table(path: str | Path) -> Any:
    """Return what a sealed contract.json says; raises AssetError as `parse_contract`, and where it cannot be read."""
    return parse_contract(read_text(path, CONTRACT_LIMIT_BYTES), str(path))


def contract_kind(folder: str | Path) -> str:
    """Return the kind of network that a folder's contract names; empty where there is no contract or it names none.

    Raises:
        AssetError: The contract cannot be read or was changed.
    """
    path = Path(folder) / CONTRACT_FILE
    table = read_contract_table(path) if path.is_file() else None
    kind = table.get("kind") if isinstance(table, dict) else None
    return kind if isinstance(kind, str) else ""


def folders_below(folder: str | Path) -> list[Path]:
    """Return the networks' folders inside a folder, by name: a demo's, those of several seeds, or of several variants."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_FOLDERS_MAX), strict=False) if entry.is_dir())
    except OSError:
        return []
    return [Path(folder) / name for name in names if (Path(folder) / name / CONTRACT_FILE).is_file()]


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
    """Content of a folder's `weights.safetensors`.

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


def checked_tensors(data: bytes, shapes: Shapes, whose: str, where: str) -> dict[str, ArrayF32]:
    """Tensors of a safetensors file, which the caller has bounded.

    Args:
        data: The file.
        shapes: Of all there must be.
        whose: They are, for messages (" of variant 'hp_net'").
        where: The file's place, for messages.

    Raises:
        AssetError: It is damaged, or its tensors are others.
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
