"""Manifests of long jobs: what a folder's bytes depend on, its digest, and what differs where a run asks for something else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, parse_json, read_json, sha256

__all__ = ["ManifestKind", "differences", "digest_of", "plain"]

_LIMIT_BYTES = 64 << 20
_TEXT_MAX = 60
"""Characters of a value in a message."""


def plain(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Give an identity as JSON gives it back, so that it can be held against what a folder says."""
    return dict(parse_json(json_text(dict(identity)), "the configuration"))


def digest_of(identity: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of an identity."""
    return sha256(json_text(dict(identity)))


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any], whole: Mapping[str, str] | None = None, head: str = ""
) -> list[str]:
    """Tell what differs between two identities, in a few words each; none where nothing does.

    Args:
        before: Of the folder.
        now: Asked for.
        whole: Tables whose entries are not looked into, and what is said of one ("pilot {!r} has other weights").
        head: Name of the table that both are; fields of "config" are named alone, as options are.
    """
    found: list[str] = []
    # Each once, in the order in which the folder's identity has them.
    for key in dict.fromkeys([*before, *now]):
        a, b = before.get(key), now.get(key)
        name = key if head in ("", "config") else f"{head}.{key}"
        if a == b:
            continue
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += [whole[head].format(key)] if whole and head in whole else differences(a, b, whole, name)
        else:
            found.append(f"{name}: {_short(a)} before, {_short(b)} now")
    return found


def _short(value: Any) -> str:
    if value is None or isinstance(value, Mapping):
        return "none" if value is None else "some"
    # As it would be typed after an option.
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


@dataclass(frozen=True)
class ManifestKind:
    """The manifest of one kind of job."""

    file: str
    what: str
    """That the folder holds, with its article ("an evaluation")."""
    version: int
    """Of its layout."""
    tables: Collection[str] = ("identity",)
    """What must be there, each a table."""

    def read(self, folder: str | Path) -> dict[str, Any]:
        """Read that of a folder.

        Raises:
            AssetError: There is none, or it is damaged or of another version.
        """
        path = Path(folder) / self.file
        manifest = read_json(path, _LIMIT_BYTES)
        if not isinstance(manifest, dict) or not all(isinstance(manifest.get(name), dict) for name in self.tables):
            raise AssetError(f"{str(path)!r} is no manifest of {self.what}: move it away, or choose another folder.")
        if manifest.get("schema_version") != self.version or manifest.get("digest") != digest_of(manifest["identity"]):
            raise AssetError(f"{str(path)!r} is damaged or of another version of Airworthy: choose another folder.")
        return manifest

    def refuse(self, folder: str | Path, changed: Collection[str]) -> None:
        """Refuse to go on with a folder from which a run differs in something.

        Raises:
            AirworthyError: `changed` names anything.
        """
        if changed:
            raise AirworthyError(
                f"The folder {str(folder)!r} holds {self.what} with other settings ({'; '.join(list(changed)[:3])}): repeat"
                " those, choose another --out, or delete it."
            )
