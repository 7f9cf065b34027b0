"""Folders of jobs of blocks: a manifest, and blocks that are each whole on disk or not there.

    MANIFEST.json            the identity, its digest, and checksums of every finished block
    blocks/NAME.ENDING       a block's rows, written last: it counts from the moment they are there

Whatever stops a run, the next one takes up what is whole and does the rest, with the same bytes in the end.

Manifests of long jobs: what a folder's bytes depend on, its digest, and what differs where a run asks for something else.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, parse_json, read_json, sha256, sha256_file, write_json

__all__ = [
    "BLOCKS",
    "KIND_NAMES",
    "BlockStore",
    "ManifestKind",
    "Row",
    "arrow_kinds",
    "differences",
    "digest_of",
    "parse_table",
    "plain",
    "table_bytes",
]


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


# -----------------------------------------------------------------------------------------------------------------------------
# Tables of a job's rows: Parquet with the same bytes for the same rows, and a head that says what they belong to.

Row = dict[str, Any]
KIND_NAMES = {str: "string", int: "int64", float: "float64"}
"""How columns of Python's kinds are kept, in the words of Arrow."""
_KEY = b"airworthy"


def arrow_kinds(kinds: Mapping[str, type]) -> dict[str, Any]:
    """Give Arrow's type of each column."""
    import pyarrow as pa

    return {name: getattr(pa, KIND_NAMES[kind])() for name, kind in kinds.items()}


def table_bytes(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type], head: Mapping[str, Any]) -> bytes:
    """Write rows as Parquet, each page with its checksum; the same bytes for the same rows.

    Args:
        rows: Each with all columns.
        kinds: Columns in order, each str, int or float.
        head: What the table says of itself: the digest of its run, the name of its block.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in arrow_kinds(kinds).items()}
    table = pa.table(columns).replace_schema_metadata({_KEY: json_text(dict(head)).encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", version="2.6", write_page_checksum=True)
    return sink.getvalue()


def parse_table(
    data: bytes, where: str, wrong: str, content: Callable[[Any], Any] = lambda table: table.to_pylist()
) -> tuple[Any, Any]:
    """Parse what `table_bytes` wrote, checksums compared; tables of before have none, and are read alike.

    Args:
        data: Content of the file.
        where: What it is called in messages.
        wrong: What is said of one that cannot be parsed ("is no table of flights, or damaged: ...").
        content: Makes rows of the `pyarrow.Table`; what it raises of a damaged one is refused alike.

    Returns:
        The head, of any kind where it was not us who wrote it, and what `content` made.

    Raises:
        AssetError: It is no such table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        return parse_json((table.schema.metadata or {})[_KEY].decode(), where), content(table)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise AssetError(f"{where!r} {wrong}") from error


# -----------------------------------------------------------------------------------------------------------------------------

BLOCKS = "blocks"


class BlockStore(ABC):
    """The folder of a job of blocks; a job's own store derives from it, and writes the manifest once it is set up.

    Args:
        folder: Held by the caller (`lock_folder`).
        identity: Everything that the numbers depend on.

    Raises:
        AirworthyError: The folder holds a job of something else.
        AssetError: Its manifest is damaged.
    """

    kind: ClassVar[ManifestKind]
    ending: ClassVar[str] = ".parquet"

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        self.folder, self.identity = Path(folder), dict(identity)
        self.digest = digest_of(self.identity)
        self._known: dict[str, dict[str, Any]] = {}
        if (self.folder / self.kind.file).is_file():
            manifest = self._manifest()
            self.kind.refuse(self.folder, self._changed(manifest["identity"]))
            # Blocks that were finished are not flown again.
            self._take_up(manifest)
        make_folder(self.folder / BLOCKS)

    # ---- what a job's own store says otherwise ----------------------------------------------------------------------

    def _manifest(self) -> dict[str, Any]:
        """Read the manifest that is there."""
        return self.kind.read(self.folder)

    def _changed(self, before: Mapping[str, Any]) -> list[str]:
        """Tell in what the folder's identity differs from this run's."""
        return differences(before, self.identity)

    def _take_up(self, manifest: Mapping[str, Any]) -> None:
        """Go on with what a manifest says."""
        self._known = {str(name): dict(entry) for name, entry in manifest["blocks"].items()}

    def _content(self) -> dict[str, Any]:
        """Of the manifest, behind version, digest and identity."""
        return {"blocks": self._known}

    def _files(self, name: str) -> dict[str, str]:
        """SHA-256 of each file of a block that the manifest knows, by its path below the folder."""
        return dict(self._known[name]["files"])

    @abstractmethod
    def _join(self, name: str) -> bool:
        """Take a block into the manifest that was finished when a run was killed; False: it does not belong here."""

    # ---- the manifest and its blocks --------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the manifest."""
        head = {"schema_version": self.kind.version, "digest": self.digest, "identity": self.identity}
        write_json(self.folder / self.kind.file, {**head, **self._content()})

    def path(self, name: str) -> Path:
        """Return where a block's rows are kept."""
        return self.folder / BLOCKS / f"{name}{self.ending}"

    def has(self, name: str) -> bool:
        """Return whether a block is finished and whole; one that was finished when a run was killed joins the manifest now.

        Raises:
            AssetError: It was changed since it was written.
        """
        path = self.path(name)
        if not path.is_file():
            # Told now, and not when what takes minutes is to be kept there.
            if os.path.lexists(path):
                raise AssetError(f"{str(path)!r} is no file, as a block's is: move it away, and the block is made again.")
            return False
        if name not in self._known:
            return self._join(name)
        for file, digest in self._files(name).items():
            where = self.folder / file
            if not where.is_file() or sha256_file(where) != digest:
                what = "it" if where == path else repr(str(path))
                raise AssetError(f"{str(where)!r} was changed or damaged: delete {what}, and its flights are flown again.")
        return True
