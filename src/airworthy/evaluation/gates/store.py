"""What a gates benchmark keeps on disk: one JSON file per finished block, whole or not there.

gates_bench.json     what was asked, and its digest
blocks/NAME.json     a block's content with the digest of what it belongs to and a checksum
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, read_json, sha256, write_json
from airworthy.evaluation.gates.config import changed, digest_of

MANIFEST_FILE = "gates_bench.json"
BLOCKS = "blocks"
SCHEMA_VERSION = 2
_MOST_BYTES = 256 << 20


class Store:
    """The folder of a benchmark.

    Args:
        folder: Held by the caller (`lock_folder`).
        identity: Everything that the numbers depend on.

    Raises:
        AirworthyError: The folder holds a benchmark of something else.
        AssetError: Its manifest is damaged.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        self.folder, self.identity = Path(folder), dict(identity)
        self.digest = digest_of(self.identity)
        path = self.folder / MANIFEST_FILE
        if path.is_file():
            self._check(path)
        make_folder(self.folder / BLOCKS)
        write_json(path, {"schema_version": SCHEMA_VERSION, "digest": self.digest, "identity": self.identity})

    def _check(self, path: Path) -> None:
        told = read_json(path)
        if not isinstance(told, dict) or not isinstance(told.get("identity"), dict):
            raise AssetError(f"{str(path)!r} is no manifest of a gates benchmark: move it away, or choose another folder.")
        if told.get("schema_version") != SCHEMA_VERSION:
            version = f"version {told.get('schema_version')!r}, this program writes {SCHEMA_VERSION}"
            raise AssetError(f"{str(self.folder)!r} holds a gates benchmark of {version}: choose another --out, or delete it.")
        if told.get("digest") != digest_of(told["identity"]):
            raise AssetError(f"{str(path)!r} was changed or damaged: choose another folder.")
        if told["digest"] != self.digest:
            raise AirworthyError(
                f"The folder {str(self.folder)!r} holds a benchmark with other settings"
                f" ({changed(told['identity'], self.identity)}): repeat those, choose another --out, or delete it."
            )

    def path(self, name: str) -> Path:
        """Where a block is kept."""
        return self.folder / BLOCKS / f"{name}.json"

    def has(self, name: str) -> bool:
        """Whether a block is finished and whole; one of other settings does not count.

        Raises:
            AssetError: It was changed since it was written.
        """
        return self.path(name).is_file() and self._read(name) is not None

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a finished block."""
        body = dict(content)
        write_json(self.path(name), {"digest": self.digest, "sha256": sha256(json_text(body)), "content": body})

    def content(self, name: str) -> dict[str, Any]:
        """Of a finished block; raises AssetError where it is damaged."""
        found = self._read(name)
        if found is None:
            raise AssetError(f"{str(self.path(name))!r} belongs to another benchmark: delete it, and it is made again.")
        return found

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.path(name)
        told = read_json(path, _MOST_BYTES)
        body = told.get("content") if isinstance(told, dict) else None
        if not isinstance(body, dict) or told.get("sha256") != sha256(json_text(body)):
            raise AssetError(f"{str(path)!r} was changed or damaged: delete it, and it is made again.")
        return body if told.get("digest") == self.digest else None
