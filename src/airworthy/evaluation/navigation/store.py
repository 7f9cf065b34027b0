"""What a benchmark keeps on disk: blocks of finished flights, each whole or not there, and a manifest.

    benchmark.json           what was asked, which pilots, the system description, checksums of every finished block
    blocks/NAME.parquet      one row per flight
    results.parquet          all rows, in the order of the plan
    system.toml              the description of the system under test, where one was given

A block counts from the moment its rows are there. Whatever stops a run, the next one takes up what is whole and flies the rest,
with the same table in the end. More pilots may join a folder later; nothing else about it can change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, make_folder, parse_json, read_bytes, sha256, write_bytes, write_json
from airworthy.evaluation.navigation.identity import changed, digest_of
from airworthy.evaluation.navigation.reading import (
    MANIFEST_FILE,
    RESULTS_FILE,
    ROWS_MAX,
    SCHEMA_VERSION,
    Row,
    parquet_bytes,
    parsed_rows,
    read_manifest,
    read_rows,
)

__all__ = ["BLOCKS", "MANIFEST_FILE", "RESULTS_FILE", "Store", "parquet_bytes", "read_manifest", "read_rows"]

BLOCKS = "blocks"


class Store:
    """The folder of a benchmark.

    Args:
        folder: Held by the caller (`lock_folder`).
        identity: Everything but the pilots that rows depend on.
        pilots: Identity of each pilot that is to be flown, by name.
        notes: Said of the run besides (command, division, system), replaced at every run.

    Raises:
        AirworthyError: The folder holds a benchmark of something else.
        AssetError: Its manifest is damaged.
    """

    def __init__(
        self, folder: str | Path, identity: Mapping[str, Any], pilots: Mapping[str, Any], notes: Mapping[str, Any] | None = None
    ):
        self.folder, self.identity = Path(folder), dict(identity)
        self.digest = digest_of(self.identity)
        self.notes = dict(notes or {})
        self.pilots: dict[str, Any] = {}
        self._known: dict[str, dict[str, Any]] = {}
        if (self.folder / MANIFEST_FILE).is_file():
            self._take_up(read_manifest(self.folder))
        for name, mine in parse_json(json_text(dict(pilots)), "the pilots").items():
            if self.pilots.setdefault(name, mine) != mine:
                raise AirworthyError(
                    f"The folder {str(self.folder)!r} holds flights of another pilot {name!r} (its file or settings were"
                    " changed): choose another --out, or delete it."
                )
        make_folder(self.folder / BLOCKS)
        self.write()

    def _take_up(self, told: Mapping[str, Any]) -> None:
        what = changed(told["identity"], self.identity)
        if what:
            raise AirworthyError(
                f"The folder {str(self.folder)!r} holds a benchmark with other settings ({'; '.join(what[:3])}): repeat those,"
                " choose another --out, or delete it."
            )
        self.pilots = dict(told["pilots"])
        self._known = {str(name): dict(entry) for name, entry in told["blocks"].items()}
        self._remember(told)

    def _remember(self, told: Mapping[str, Any]) -> None:
        """What was noted of pilots that were flown here before."""
        words, division = told.get("words"), told.get("division")
        if isinstance(words, dict):
            self.notes["words"] = {**words, **self.notes.get("words", {})}
        if isinstance(division, dict) and isinstance(self.notes.get("division"), dict):
            before = [why for why in division.get("because", []) if str(why).startswith("pilot ")]
            because = list(dict.fromkeys([*self.notes["division"]["because"], *before]))
            self.notes["division"] = {"division": "open" if because else "closed", "because": because}

    def write(self) -> None:
        """Write the manifest."""
        content = {"schema_version": SCHEMA_VERSION, "digest": self.digest, "identity": self.identity, "pilots": self.pilots}
        write_json(self.folder / MANIFEST_FILE, {**content, **self.notes, "blocks": self._known})

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether a block is finished and whole; one that was finished when a run was killed joins the manifest now.

        Raises:
            AssetError: It was changed since it was written.
        """
        path, entry = self._path(name), self._known.get(name)
        if not path.is_file():
            return False
        data = read_bytes(path, ROWS_MAX)
        if entry is not None:
            if sha256(data) != entry["sha256"]:
                raise AssetError(f"{str(path)!r} was changed or damaged: delete it, and its flights are flown again.")
            return True
        try:
            head, rows = parsed_rows(data, str(path))
        except AssetError:
            return False
        if head.get("digest") != self.digest or head.get("block") != name:
            return False
        self._note(name, data, len(rows), {})
        return True

    def keep(self, name: str, rows: Sequence[Row], seconds: Mapping[str, float]) -> None:
        """Write a finished block; `seconds` says what it took, and goes into the manifest only."""
        data = parquet_bytes(rows, {"digest": self.digest, "block": name})
        write_bytes(self._path(name), data)
        self._note(name, data, len(rows), seconds)

    def rows(self, name: str) -> list[Row]:
        """Rows of a finished block; raises AssetError where its file is damaged."""
        return parsed_rows(read_bytes(self._path(name), ROWS_MAX), str(self._path(name)))[1]

    def seconds(self) -> dict[str, dict[str, float]]:
        """What finished blocks took, by name."""
        return {name: dict(entry.get("seconds", {})) for name, entry in self._known.items()}

    def write_results(self, names: Iterable[str]) -> Path | None:
        """Write the table of all rows of some blocks, in order; None where there are none."""
        rows = [row for name in names for row in self.rows(name)]
        if not rows:
            return None
        return write_bytes(self.folder / RESULTS_FILE, parquet_bytes(rows, {"digest": self.digest}))

    def _note(self, name: str, data: bytes, rows: int, seconds: Mapping[str, float]) -> None:
        self._known[name] = {"sha256": sha256(data), "rows": rows, "seconds": {k: round(v, 3) for k, v in seconds.items()}}
        self.write()

    def _path(self, name: str) -> Path:
        return self.folder / BLOCKS / f"{name}.parquet"
