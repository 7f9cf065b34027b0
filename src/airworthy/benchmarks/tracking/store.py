"""What an evaluation keeps on disk: blocks of finished flights, each whole or not there, and a manifest of them.

    evaluation.json          what was evaluated and the checksums of every finished block
    blocks/NAME.parquet      one row per flight
    flights/NAME/            the flights themselves (flight.parquet, meta.json) and what the first one saw (seen.png)
    results.parquet          all rows, in the order of the plan
    vehicle.toml             what flew, where it came from a file

A block counts from the moment its rows are there, which are written last. Whatever stops a run, the next one takes up what is
whole and flies the rest, with the same bytes in the end.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.benchmarks.tracking.block import BlockResult
from airworthy.core.errors import AssetError
from airworthy.core.files import make_folder, read_bytes, sha256_file, write_bytes
from airworthy.core.jobs.block_store import BlockStore, ManifestKind, Row, differences, parse_table, table_bytes
from airworthy.simulation import FlightTable, read_flight, write_flight
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE

__all__ = ["MANIFEST_FILE", "RESULTS_FILE", "TrackingStore", "read_results"]

MANIFEST_FILE, RESULTS_FILE = "evaluation.json", "results.parquet"
VEHICLE_FILE = "vehicle.toml"
FLIGHTS, FIRST_IMAGE = "flights", "seen.png"
_ROWS_MAX = 256 << 20


class TrackingStore(BlockStore):
    """The folder of an evaluation; see `BlockStore`."""

    kind = ManifestKind(MANIFEST_FILE, "an evaluation", 1, ("identity", "blocks"))

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        super().__init__(folder, identity)
        make_folder(self.folder / FLIGHTS)
        self.write()

    def _changed(self, before: Mapping[str, Any]) -> list[str]:
        # What the conditions are follows from their names, which are in the configuration, and from the version.
        a, b = ({key: value for key, value in one.items() if key != "conditions"} for one in (before, self.identity))
        found = differences(a, b, {"pilots": "pilot {!r} has other weights"})
        return found or ([] if before == self.identity else ["the conditions mean something else"])

    def _join(self, name: str) -> bool:
        path = self.path(name)
        try:
            about, _ = read_results(path)
        except AssetError:
            return False
        mine = about.get("digest") == self.digest and about.get("block") == name
        return mine and self._note(name, about["files"], path)

    def _note(self, name: str, files: Mapping[str, str], path: Path) -> bool:
        """Add a block to the manifest if its files are as they should be."""
        if any(not (self.folder / file).is_file() or sha256_file(self.folder / file) != sha for file, sha in files.items()):
            return False
        whole = {**files, str(path.relative_to(self.folder)): sha256_file(path)}
        self._known[name] = {"files": whole}
        self.write()
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
        if result.first_image is not None:
            files.append(write_bytes(folder / FIRST_IMAGE, _png(result.first_image)))
        shas = {str(file.relative_to(self.folder)): sha256_file(file) for file in files}
        head = {"digest": self.digest, "block": name, "files": shas}
        path = write_bytes(self.path(name), _parquet(result.rows, head))
        self._note(name, shas, path)

    def rows(self, name: str) -> list[Row]:
        """Return rows of a finished block; raises AssetError where its file is damaged."""
        return read_results(self.path(name))[1]

    def flights(self, name: str) -> FlightTable:
        """Return flights of a finished block."""
        return read_flight(self.folder / FLIGHTS / name)[0]

    def first_image(self, name: str) -> Path | None:
        """Return the picture of what the first flight of a block saw, where there is one."""
        path = self.folder / FLIGHTS / name / FIRST_IMAGE
        return path if path.is_file() else None

    def write_results(self, names: Iterable[str]) -> Path | None:
        """Write the table of all rows of some blocks, in order; None where there are none."""
        rows = [row for name in names for row in self.rows(name)]
        return write_bytes(self.folder / RESULTS_FILE, _parquet(rows, {"digest": self.digest})) if rows else None


def read_results(path: str | Path) -> tuple[dict[str, Any], list[Row]]:
    """Return what a table of results says of itself, and its rows.

    Raises:
        AssetError: It is missing, too large or no such table.
    """
    wrong = "is no table of results, or damaged: delete it, and its flights are flown again."
    about, rows = parse_table(read_bytes(path, _ROWS_MAX), str(path), wrong)
    if not isinstance(about, dict) or not all("outcome" in row and "flight" in row for row in rows):
        raise AssetError(f"{str(path)!r} is no table of results: it lacks the columns 'outcome' and 'flight'.")
    return about, rows


def _parquet(rows: Sequence[Row], head: Mapping[str, Any]) -> bytes:
    return table_bytes(rows, {name: type(value) for name, value in rows[0].items()}, head)


def _png(image: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()
