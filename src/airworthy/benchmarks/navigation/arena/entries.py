"""Which rows the arena ranks: those of whole folders of the benchmark that may stand beside each other, and of no others.

Folders are of the closed division, flown under the same rules; each common limit of acceleration is a league of its own. What
cannot stand beside the rest is left out and told, with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.flown_folder import NavigationFolder, read_flown
from airworthy.benchmarks.navigation.report.text import titles_of
from airworthy.benchmarks.navigation.store import MANIFEST_FILE, RESULTS_FILE, flight_key
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256_file
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["ArenaEntry", "League", "found_folders", "leagues_of"]

Row = Mapping[str, Any]
_ALIKE = ("compute", "a_max", "body", "sensing", "layouts", "seed", "protocol")
"""What folders of a league have in common: on other terms, flights are no pairs."""


@dataclass(frozen=True)
class ArenaEntry:
    """A folder whose rows are ranked."""

    folder: Path
    pilots: tuple[str, ...]
    flights: int
    version: str
    digest: str
    """SHA-256 of its table of rows."""
    command: str


@dataclass
class League:
    """Folders that may stand beside each other."""

    protocol: NavigationProtocol
    entries: list[ArenaEntry] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    """What pilots are called, by name."""

    @property
    def acceleration(self) -> float:
        """Common limit of acceleration [m/s^2]."""
        return self.protocol.acceleration_m_s2

    @property
    def pilots(self) -> list[str]:
        """Names, in the order of the rows."""
        return list(dict.fromkeys(row["pilot"] for row in self.rows))


def found_folders(paths: Iterable[str | Path]) -> list[Path]:
    """Return the folders of the benchmark among some paths and right below them, in order of their names.

    Raises:
        AssetError: A path is none and holds none.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(item.parent for item in path.glob(f"*/{MANIFEST_FILE}"))
        mine = [path] if (path / MANIFEST_FILE).is_file() else inside
        if not mine:
            raise AssetError(
                f"There is no folder of airworthy bench navigation at {str(path)!r}, nor right below it: name one that holds"
                f" {MANIFEST_FILE} and {RESULTS_FILE}."
            )
        found += [item for item in mine if item not in found]
    return found


def leagues_of(folders: Sequence[Path]) -> tuple[list[League], list[str]]:
    """Return leagues, the highest limit of acceleration first, and what was left out, a sentence each.

    Raises:
        AssetError: A folder is damaged.
        AirworthyError: Nothing is left to rank, or two folders have different flights of one pilot.
    """
    leagues: dict[float, League] = {}
    common: dict[float, dict[str, Any]] = {}
    left_out: list[str] = []
    for folder in folders:
        flown = read_flown(folder)
        manifest = flown.manifest
        config = manifest["identity"]["config"]
        why = [item for item in manifest.get("division", {}).get("because", []) if not item.startswith("pilot ")]
        if why or "division" not in manifest:
            reason = "; ".join(why) or "its manifest does not tell its division"
            left_out.append(f"{folder.name}: not of the closed division ({reason}).")
            continue
        protocol = flown.config.protocol
        limit = protocol.acceleration_m_s2
        terms = {name: config.get(name) for name in _ALIKE}
        differs = [name for name in _ALIKE if common.setdefault(limit, terms)[name] != terms[name]]
        if differs:
            left_out.append(f"{folder.name}: flown with another {' and '.join(differs)} than the folders before it.")
            continue
        league = leagues.setdefault(limit, League(protocol))
        left_out += _join(league, flown)
    if not any(league.rows for league in leagues.values()):
        reason = " ".join(left_out) or "the tables hold no flights."
        raise AirworthyError(f"No flight is left to be ranked: {reason}")
    return [leagues[limit] for limit in sorted(leagues, reverse=True)], left_out


def _join(league: League, flown: NavigationFolder) -> list[str]:
    """Add the rows of a folder to a league; what was left out of them."""
    folder, manifest, rows = flown.folder, flown.manifest, flown.rows
    unfair = {item.split("'")[1] for item in manifest["division"].get("because", []) if item.startswith("pilot '")}
    mine = [row for row in rows if row["pilot"] not in unfair]
    known = {flight_key(row): row for row in league.rows}
    fresh, again = [], 0
    for row in mine:
        before = known.get(flight_key(row))
        if before is not None and (before["trace"], before["outcome"]) != (row["trace"], row["outcome"]):
            raise AirworthyError(
                f"{str(folder)!r} holds other flights of {row['pilot']!r} than a folder before it: a pilot that was changed"
                " needs a name of its own, or the older folder has to go."
            )
        again += before is not None
        fresh += [row] if before is None else []
    told = [
        f"{folder.name}: {name} is privileged, {sum(row['pilot'] == name for row in rows):,} flights."
        for name in sorted(unfair)
    ]
    if again:
        told.append(f"{folder.name}: {again:,} flights that a folder before it holds, too.")
    told += _absent(flown)
    league.rows += fresh
    league.titles |= {name: title for name, title in titles_of(manifest).items() if name not in league.titles}
    pilots = tuple(dict.fromkeys(row["pilot"] for row in fresh))
    command = str(manifest.get("command", ""))
    version = str(manifest["identity"]["version"])
    league.entries.append(ArenaEntry(folder, pilots, len(fresh), version, sha256_file(folder / RESULTS_FILE), command))
    return told


def _absent(flown: NavigationFolder) -> list[str]:
    """Return a sentence that counts the flights which have no row, as of a run that was stopped; none where all have one."""
    if not flown.missing:
        return []
    count = f"{sum(flown.missing.values()):,} of the {flown.flights:,} flights"
    return [f"{flown.folder.name}: {count} that {MANIFEST_FILE} asks for, which have no row ({', '.join(flown.missing)})."]
