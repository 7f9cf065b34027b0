"""What a benchmark keeps on disk: blocks of finished flights, each whole or not there, and a manifest.

    benchmark.json           what was asked, which pilots, the system description, checksums of every finished block
    blocks/NAME.parquet      one row per flight
    results.parquet          all rows, in the order of the plan
    system.toml              the description of the system under test, where one was given

A block counts from the moment its rows are there. Whatever stops a run, the next one takes up what is whole and flies the rest,
with the same table in the end. More pilots may join a folder later; nothing else about it can change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.benchmarks.navigation.config import (
    CONFIGURATIONS,
    SCENARIO_NAMES,
    NavigationConfig,
    is_file,
    scenario_names,
    vehicle_names_of,
)
from airworthy.benchmarks.navigation.flight_records import COLUMNS, DRAWN, LINE
from airworthy.benchmarks.navigation.flight_values import impossible
from airworthy.benchmarks.navigation.own_scenes import is_own
from airworthy.benchmarks.navigation.score import line_of
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, parse_json, read_bytes, sha256, sha256_file, write_bytes
from airworthy.core.jobs import progress
from airworthy.core.jobs.block_store import (
    BLOCKS,
    BlockStore,
    ManifestKind,
    Row,
    arrow_kinds,
    digest_of,
    parse_table,
    plain,
    table_bytes,
)
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES

__all__ = [
    "BLOCKS",
    "MANIFEST_FILE",
    "RESULTS_FILE",
    "ROWS_MAX",
    "WRITTEN",
    "NavigationStore",
    "Row",
    "command_line",
    "digest_of",
    "flight_key",
    "identity_of",
    "parquet_bytes",
    "parsed_rows",
    "read_manifest",
    "read_rows",
    "spelled_folder",
]

# ---- What the numbers of a run depend on, and the command that repeats it ---------------------------------------------------

FREE = ("out", "report", "quick", "json", "workers", "cluster", "system", "pilots")
"""Fields that no row depends on; pilots are told apart in the identity."""
_UNSAID = (
    "device",
    "controller",
    "warm_up",
    "configurations",
    "hard_repeats",
    "scenes",
    "pairs",
    "least_distance",
    "unknown",
    "randomize",
)
"""Fields that came later: where they are at their defaults, folders stay what they were."""
_UNSAID_PERTURBATIONS = ("gain_scale",)
"""The same of `Perturbation`."""
WRITTEN = {"decision_timeout": "patience"}
"""Fields whose names in manifests are older than those here: folders stay what they were."""


def identity_of(config: NavigationConfig) -> dict[str, Any]:
    """Return everything but the pilots that rows depend on, as plain data; of `_UNSAID` only what differs from the default."""
    default = NavigationConfig()
    left = (*FREE, *(name for name in _UNSAID if getattr(config, name) == getattr(default, name)))
    chosen = {WRITTEN.get(item.name, item.name): getattr(config, item.name) for item in fields(config) if item.name not in left}
    usual, perturb = asdict(default.perturb), asdict(config.perturb)
    kept = {name: value for name, value in perturb.items() if name not in _UNSAID_PERTURBATIONS or value != usual[name]}
    chosen |= {"perturb": kept}
    chosen |= {"vehicles": vehicle_names_of(config.vehicles), "scenarios": scenario_names(config.scenarios)}
    files = {name: sha256_file(name) for name in chosen["vehicles"] if is_file(name)}
    chosen |= {"vehicle_files": files} if files else {}
    return plain({"version": __version__, "config": chosen})


def command_line(config: NavigationConfig) -> str:
    """Return the exact command that makes the results again."""
    leave = ("json", "quick", "workers", "cluster", "report", "places")
    config = replace(config, out=Path(spelled_folder(config.out)))
    return progress.command_line("airworthy bench navigation", config, leave_out=leave, short_numbers=True)


def spelled_folder(folder: str | Path) -> str:
    """Return a folder's name for what is kept: below the working directory as seen from there, elsewhere its own name alone.

    Results are shown to others, whom the path on a machine tells nothing, and its owner too much.
    """
    path = Path(folder)
    if not path.is_absolute():
        return str(folder)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else path.name


# -----------------------------------------------------------------------------------------------------------------------------
# Reading a benchmark's folder, which may come from anywhere: what does not fit is refused in one sentence.

MANIFEST_FILE, RESULTS_FILE = "benchmark.json", "results.parquet"
_MANIFEST = ManifestKind(MANIFEST_FILE, "a navigation benchmark", 1, ("identity", "pilots", "blocks"))
ROWS_MAX = 1 << 30


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of a folder; whatever else it says is of the kinds that a run writes.

    Raises:
        AssetError: There is none, or it is damaged.
    """
    path, manifest = Path(folder) / MANIFEST_FILE, _MANIFEST.read(folder)
    wrong = [name for name, good in _KINDS.items() if name in manifest and not good(manifest[name])]
    if wrong:
        raise AssetError(f"{str(path)!r} is damaged, its {wrong[0]!r} is not what a run writes: choose another folder.")
    return manifest


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _block(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("sha256"), str):
        return False
    seconds = value.get("seconds", {})
    return isinstance(seconds, dict) and all(isinstance(item, int | float) for item in seconds.values())


def _track(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("division"), str):
        return False
    because = value.get("because")
    return isinstance(because, list) and all(isinstance(why, str) for why in because)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "identity": lambda value: isinstance(value.get("config"), dict) and isinstance(value.get("version"), str),
    "pilots": lambda value: all(isinstance(item, dict) for item in value.values()),
    "blocks": lambda value: all(map(_block, value.values())),
    "words": _texts,
    "system": _texts,
    "division": _track,
    "command": lambda value: isinstance(value, str),
}


def read_rows(path: str | Path) -> list[Row]:
    """Return rows of a table: a file, or the `results.parquet` of a folder.

    Raises:
        AssetError: It is missing, too large or no such table.
    """
    where = Path(path) / RESULTS_FILE if Path(path).is_dir() else Path(path)
    return parsed_rows(read_bytes(where, ROWS_MAX), str(where))[1]


def parsed_rows(data: bytes, where: str) -> tuple[dict[str, Any], list[Row]]:
    """Return head and rows of a table; `where` is what it is called in what is said. Raises AssetError where it is damaged."""

    def content(table: Any) -> tuple[str, list[Row]]:
        column = _wrong_column(table)
        return column, [] if column else table.to_pylist()

    damaged = "is no table of flights, or damaged: the command of its benchmark writes it again."
    head, (wrong, rows) = parse_table(data, where, damaged, content)
    what = f"its column {wrong!r} is missing or of another kind" if wrong else _wrong_row(rows)
    if what or not isinstance(head, dict):
        raise AssetError(f"{where!r} is damaged, {what or 'its head is none'}: the command of its benchmark writes it again.")
    return head, rows


def _wrong_column(table: Any) -> str:
    """Return the first column that is not there, of another kind, or not filled; "" where all are well."""
    for name, kind in arrow_kinds(COLUMNS).items():
        if name not in table.column_names or table.schema.field(name).type != kind or table.column(name).null_count:
            return name
    return ""


def flight_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a row's flight from every other of its table."""
    return (row["pilot"], row["scenario"], row["configuration"], row["vehicle"], row["repeat"])


def _wrong_row(rows: Sequence[Row]) -> str:
    """Return what is wrong with the first row that cannot stand in a table, by its number from 0; "" where all are well."""
    seen: dict[tuple[Any, ...], int] = {}
    category: dict[str, str] = {}
    for number, row in enumerate(rows):
        if not _makes_sense(row):
            return f"row {number} tells of no flight"
        if not _known_vehicle(row["vehicle"]):
            return f"row {number} is of the vehicle {row['vehicle'][:60]!r}, which is none of the catalogue and no file"
        expected = category.setdefault(row["vehicle"], _category(row["vehicle"]) or row["category"])
        if row["category"] != expected:
            return f"row {number} calls {row['vehicle'][:60]!r} {row['category'][:60]!r}, which is {expected!r}"
        if what := impossible(row):
            return f"row {number} {what}"
        before = seen.setdefault(flight_key(row), number)
        if before != number:
            return f"row {number} is the flight of row {before} once more"
    return ""


@cache
def _known_vehicle(name: str) -> bool:
    from airworthy.vehicles import vehicle_names

    return is_file(name) or name in vehicle_names()


@cache
def _category(name: str) -> str:
    """Return the category of a vehicle of the catalogue; "" of a file, which may lie on another machine."""
    from airworthy.vehicles import vehicle

    return "" if is_file(name) else str(vehicle(name).extra.get("category", "other"))


def _makes_sense(row: Row) -> bool:
    """Tell whether a row is of a flight that there may have been."""
    known = row["outcome"] in NAVIGATION_OUTCOMES and row["success"] == (row["outcome"] == "success")
    own = is_own(row["scenario"])
    counted = 1 <= row["configuration"] <= (_PAIRS_MOST if own else CONFIGURATIONS) and row["repeat"] >= 0
    if own:
        return known and counted and _OWN_NAME.fullmatch(row["scenario"]) is not None and 0.0 < row.get(LINE, 0.0) < _LINE_MOST
    return known and counted and row["scenario"] in SCENARIO_NAMES


_PAIRS_MOST, _LINE_MOST = 1000, 1e6
_OWN_NAME = re.compile(r"own_[A-Za-z0-9_.-]{1,60}")


def parquet_bytes(rows: Sequence[Row], head: Mapping[str, Any]) -> bytes:
    """Return the same bytes for the same rows."""
    columns, whole = dict(COLUMNS), rows
    if any(LINE in row for row in rows):
        columns[LINE], whole = float, [{**row, LINE: row.get(LINE, line_of(row))} for row in whole]
    if any(DRAWN in row for row in rows):
        columns[DRAWN] = str
    return table_bytes(whole, columns, head)


# -----------------------------------------------------------------------------------------------------------------------------


class NavigationStore(BlockStore):
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

    kind = _MANIFEST

    def __init__(
        self, folder: str | Path, identity: Mapping[str, Any], pilots: Mapping[str, Any], notes: Mapping[str, Any] | None = None
    ):
        self.notes = dict(notes or {})
        self.pilots: dict[str, Any] = {}
        super().__init__(folder, identity)
        for name, mine in parse_json(json_text(dict(pilots)), "the pilots").items():
            if self.pilots.setdefault(name, mine) != mine:
                raise AirworthyError(
                    f"The folder {str(self.folder)!r} holds flights of another pilot {name!r} (its file or settings were"
                    " changed): choose another --out, or delete it."
                )
        self.write()

    def _manifest(self) -> dict[str, Any]:
        return read_manifest(self.folder)

    def _take_up(self, manifest: Mapping[str, Any]) -> None:
        super()._take_up(manifest)
        self.pilots = dict(manifest["pilots"])
        self._remember(manifest)

    def _remember(self, manifest: Mapping[str, Any]) -> None:
        """Remember what was noted of pilots that were flown here before."""
        method_specifiers, track = manifest.get("words"), manifest.get("division")
        if isinstance(method_specifiers, dict):
            self.notes["words"] = {**method_specifiers, **self.notes.get("words", {})}
        if isinstance(track, dict) and isinstance(self.notes.get("division"), dict):
            before = [why for why in track.get("because", []) if str(why).startswith("pilot ")]
            because = list(dict.fromkeys([*self.notes["division"]["because"], *before]))
            self.notes["division"] |= {"division": "open" if because else "closed", "because": because}

    def _content(self) -> dict[str, Any]:
        return {"pilots": self.pilots, **self.notes, **super()._content()}

    def _files(self, name: str) -> dict[str, str]:
        return {str(self.path(name).relative_to(self.folder)): self._known[name]["sha256"]}

    def _join(self, name: str) -> bool:
        data = read_bytes(self.path(name), ROWS_MAX)
        try:
            head, rows = parsed_rows(data, str(self.path(name)))
        except AssetError:
            return False
        mine: bool = head.get("digest") == self.digest and head.get("block") == name
        if mine:
            self._note(name, data, len(rows), {})
        return mine

    def keep(self, name: str, rows: Sequence[Row], seconds: Mapping[str, float]) -> None:
        """Write a finished block; `seconds` says what it took, and goes into the manifest only.

        Args:
            name: Of the block.
            rows: Its flights.
            seconds: What it took by part [s].
        """
        data = parquet_bytes(rows, {"digest": self.digest, "block": name})
        write_bytes(self.path(name), data)
        self._note(name, data, len(rows), seconds)

    def rows(self, name: str) -> list[Row]:
        """Return rows of a finished block; raises AssetError where its file is damaged."""
        return parsed_rows(read_bytes(self.path(name), ROWS_MAX), str(self.path(name)))[1]

    def seconds(self) -> dict[str, dict[str, float]]:
        """Return what finished blocks took, by name."""
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
