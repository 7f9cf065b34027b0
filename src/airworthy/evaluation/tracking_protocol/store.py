"""What an evaluation keeps on disk: blocks of finished flights, each whole or not there, and a manifest of them.

    evaluation.json          what was evaluated and the checksums of every finished block
    blocks/NAME.parquet      one row per flight
    flights/NAME/            the flights themselves (flight.parquet, meta.json) and what the first one saw (seen.png)
    results.parquet          all rows, in the order of the plan

A block counts from the moment its rows are there, which are written last. Whatever stops a run, the next one takes up what is
whole and flies the rest, with the same bytes in the end.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, parse_json, read_bytes, read_json, sha256_file, write_bytes, write_json
from airworthy.evaluation.tracking_protocol.block import BlockResult
from airworthy.evaluation.tracking_protocol.config import changed, digest_of
from airworthy.simulation import FlightTable, read_flight, write_flight
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE

__all__ = ["MANIFEST_FILE", "RESULTS_FILE", "Store", "read_results"]

MANIFEST_FILE, RESULTS_FILE = "evaluation.json", "results.parquet"
BLOCKS, FLIGHTS, SEEN = "blocks", "flights", "seen.png"
SCHEMA_VERSION = 1
_MANIFEST_MAX, _ROWS_MAX = 64 << 20, 256 << 20
_KEY = b"airworthy"

Row = dict[str, Any]


class Store:
    """The folder of an evaluation.

    Args:
        folder: Held by the caller (`lock_folder`).
        identity: Everything that the numbers depend on.

    Raises:
        AirworthyError: The folder holds an evaluation of something else.
        AssetError: Its manifest is damaged.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        self.folder, self.identity = Path(folder), dict(identity)
        self.digest = digest_of(self.identity)
        self._known: dict[str, dict[str, Any]] = self._read()
        for name in (BLOCKS, FLIGHTS):
            make_folder(self.folder / name)
        self._write()

    def _read(self) -> dict[str, dict[str, Any]]:
        path = self.folder / MANIFEST_FILE
        if not path.is_file():
            return {}
        told = read_json(path, _MANIFEST_MAX)
        if not (isinstance(told, dict) and isinstance(told.get("identity"), dict) and isinstance(told.get("blocks"), dict)):
            raise AssetError(f"{str(path)!r} is no manifest of an evaluation: move it away, or choose another folder.")
        if told.get("schema_version") != SCHEMA_VERSION or told.get("digest") != digest_of(told["identity"]):
            raise AssetError(f"{str(path)!r} is damaged or of another version of Airworthy: choose another folder.")
        what = changed(told["identity"], self.identity)
        if what:
            raise AirworthyError(
                f"The folder {str(self.folder)!r} holds an evaluation with other settings ({what}): repeat those, choose"
                " another --out, or delete it."
            )
        return {str(name): dict(entry) for name, entry in told["blocks"].items()}

    def _write(self) -> None:
        content = {"schema_version": SCHEMA_VERSION, "digest": self.digest, "identity": self.identity, "blocks": self._known}
        write_json(self.folder / MANIFEST_FILE, content)

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether a block is finished and whole; one that was finished when a run was killed joins the manifest now.

        Raises:
            AssetError: It was changed since it was written.
        """
        path, entry = self._rows_path(name), self._known.get(name)
        if not path.is_file():
            return False
        if entry is not None:
            for file, digest in entry["files"].items():
                where = self.folder / file
                if not where.is_file() or sha256_file(where) != digest:
                    raise AssetError(
                        f"{str(where)!r} was changed or damaged: delete {str(path)!r}, and its flights are flown again."
                    )
            return True
        try:
            told, _ = self._rows(path)
        except AssetError:
            return False
        mine = told.get("digest") == self.digest and told.get("block") == name
        return mine and self._note(name, told["files"], path)

    def _note(self, name: str, files: Mapping[str, str], path: Path) -> bool:
        """Add a block to the manifest if its files are as they should be."""
        if any(not (self.folder / file).is_file() or sha256_file(self.folder / file) != sha for file, sha in files.items()):
            return False
        whole = {**files, str(path.relative_to(self.folder)): sha256_file(path)}
        self._known[name] = {"files": whole}
        self._write()
        return True

    def keep(self, name: str, result: BlockResult, meta: Mapping[str, Any]) -> None:
        """Write a finished block; nothing of it counts before its rows are there.

        Args:
            name: Of the block.
            result: What it left.
            meta: Said of its flights.
        """
        folder = make_folder(self.folder / FLIGHTS / name)
        write_flight(folder, result.table, dict(meta))
        files = [folder / FLIGHT_FILE, folder / META_FILE]
        if result.seen is not None:
            files.append(write_bytes(folder / SEEN, _png(result.seen)))
        shas = {str(file.relative_to(self.folder)): sha256_file(file) for file in files}
        head = {"digest": self.digest, "block": name, "files": shas}
        path = write_bytes(self._rows_path(name), _parquet(result.rows, head))
        self._note(name, shas, path)

    def rows(self, name: str) -> list[Row]:
        """Rows of a finished block; raises AssetError where its file is damaged."""
        return self._rows(self._rows_path(name))[1]

    def flights(self, name: str) -> FlightTable:
        """Flights of a finished block."""
        return read_flight(self.folder / FLIGHTS / name)[0]

    def seen(self, name: str) -> Path | None:
        """Picture of what the first flight of a block saw, where there is one."""
        path = self.folder / FLIGHTS / name / SEEN
        return path if path.is_file() else None

    def write_results(self, names: Iterable[str]) -> Path | None:
        """Write the table of all rows of some blocks, in order; None where there are none."""
        rows = [row for name in names for row in self.rows(name)]
        return write_bytes(self.folder / RESULTS_FILE, _parquet(rows, {"digest": self.digest})) if rows else None

    def _rows_path(self, name: str) -> Path:
        return self.folder / BLOCKS / f"{name}.parquet"

    def _rows(self, path: Path) -> tuple[dict[str, Any], list[Row]]:
        return read_results(path)


def read_results(path: str | Path) -> tuple[dict[str, Any], list[Row]]:
    """What a table of results says of itself, and its rows.

    Raises:
        AssetError: It is missing, too large or no such table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(path, _ROWS_MAX)
    try:
        table = pq.read_table(pa.BufferReader(data))
        told = parse_json((table.schema.metadata or {})[_KEY].decode(), str(path))
        rows = table.to_pylist()
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise AssetError(
            f"{str(path)!r} is no table of results, or damaged: delete it, and its flights are flown again."
        ) from error
    if not isinstance(told, dict) or not all("outcome" in row and "flight" in row for row in rows):
        raise AssetError(f"{str(path)!r} is no table of results: it lacks the columns 'outcome' and 'flight'.")
    return told, rows


def _parquet(rows: Sequence[Row], head: Mapping[str, Any]) -> bytes:
    """The same bytes for the same rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = {name: pa.array([row[name] for row in rows], kinds[type(value)]) for name, value in rows[0].items()}
    table = pa.table(columns).replace_schema_metadata({_KEY: json_text(dict(head)).encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", version="2.6")
    return sink.getvalue()


def _png(image: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()
