"""Blocks of a job as JSON, one file each: a block's content with the digest of what it belongs to and a checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from airworthy.core.errors import AssetError
from airworthy.core.files import json_text, read_json, sha256, write_json
from airworthy.core.jobs.block_store import BlockStore

__all__ = ["JsonBlockStore"]

# Ours: what is larger was not written here, and is not parsed.
_MOST_BYTES = 256 << 20


class JsonBlockStore(BlockStore):
    """A job's folder; its blocks vouch for themselves, so that the manifest does not name them."""

    ending: ClassVar[str] = ".json"

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        super().__init__(folder, identity)
        self.write()

    def _take_up(self, manifest: Mapping[str, Any]) -> None:
        """Nothing is known before a block is read."""

    def _content(self) -> dict[str, Any]:
        return {}

    def _join(self, name: str) -> bool:
        """Every block is read and checked when it is asked for; one of other settings does not count."""
        return self._read(name) is not None

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a finished block."""
        body = dict(content)
        write_json(self.path(name), {"digest": self.digest, "sha256": sha256(json_text(body)), "content": body})

    def content(self, name: str) -> dict[str, Any]:
        """Return the content of a finished block; raises AssetError where it is damaged."""
        found = self._read(name)
        if found is None:
            raise AssetError(f"{str(self.path(name))!r} belongs to another benchmark: delete it, and it is made again.")
        return found

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.path(name)
        try:
            written = read_json(path, _MOST_BYTES)
        except AssetError:
            written = None  # cut off, or nothing that JSON is: damaged like any other
        body = written.get("content") if isinstance(written, dict) else None
        if not isinstance(body, dict) or written.get("sha256") != sha256(json_text(body)):
            raise AssetError(f"{str(path)!r} was changed or damaged: delete it, and it is made again.")
        return body if written.get("digest") == self.digest else None
