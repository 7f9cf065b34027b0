"""`airworthy vehicles watch`: which value of a vehicle has drifted over its logs, by how much and since when."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, show_table
from airworthy.cli.logs import read_options, span_options
from airworthy.core.errors import AirworthyError
from airworthy.core.files import refuse_unwritable, write_text
from airworthy.logs import read_log, refuse_input
from airworthy.vehicles import WatchedVehicle, named_vehicle, watch
from airworthy.vehicles.watching.result import WatchableCause, cause_words
from airworthy.vehicles.watching.watch import ALARM

DESCRIPTION = (
    "Watch a vehicle over its logs: which of its values has drifted - mass, thrust of a rotor or of all, centre of mass, lag,"
    " dead time - by how much and since when, and what these logs cannot tell."
)
LISTS = ("--use", "--skip", "--topic", "--set")
"""Options that may be given several times."""


@dataclass(frozen=True)
class WatchConfig:
    """What to watch."""

    logs: Positional[tuple[Path, ...]]
    """Logs of one vehicle, in order of time, with motor commands, gyro and accelerometer."""
    vehicle: str
    """Who flew: a file that `airworthy vehicles identify` wrote, another vehicle file, or a name of the catalogue."""
    use: tuple[str, ...] = ()
    """Parts of each log, START:STOP in seconds of its clock; without any, all of what is usable."""
    skip: tuple[str, ...] = ()
    """Parts to leave out, START:STOP in seconds."""
    threshold: float = ALARM
    """Score of an alarm, -log10 of the chance by the filter's own noise: a larger one cries less, and later."""
    out: Path | None = None
    """CSV file for every value with its 90 % interval after each half second."""
    fail: bool = False
    """Exit with 1 where something has drifted."""
    json: bool = False
    """Print everything but the rows of --out as JSON."""
    map: Path | None = None
    """As of `airworthy logs show`."""
    set: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""


def run(config: WatchConfig) -> int:
    """Run the command."""
    if config.out is not None:
        refuse_unwritable(config.out)
        refuse_input(config.out, list(config.logs), "log")
        if config.out.suffix.lower() != ".csv":
            raise AirworthyError(f"--out is {str(config.out)!r}; expected a table, NAME.csv.")
    vehicle = named_vehicle(config.vehicle)
    use, skip = span_options(config.use, "--use"), span_options(config.skip, "--skip")
    logs = [read_log(path, read_options(config)) for path in config.logs]
    found = watch(logs, vehicle, use=use, skip=skip, threshold=config.threshold)
    if config.out is not None:
        write_text(config.out, found.rows())
    if config.json:
        emit_json(found.record())
    else:
        _print(found)
        if config.out is not None:
            print(f"Wrote {config.out}.")
    return 1 if config.fail and found.alarm else 0


def _print(found: WatchedVehicle) -> None:
    for note in found.notes:
        print(f"  {note}")
    print(f"{found.vehicle}: {found.seconds:.1f} s of {len(found.logs)} log{'s' if len(found.logs) > 1 else ''} watched.")
    if found.drifts:
        head = ("drifted", "by (90 %)", "since [s]", "(90 %)", "told at [s]", "of log", "score")
        rows = [
            (
                cause_words(d.cause),
                "; ".join(size.text() for size in d.sizes),
                "before" if d.before else round(d.began, 1),
                "" if d.before else f"{d.began_low:.1f} to {d.began_high:.1f}",
                round(d.alarmed, 1),
                d.log,
                round(d.score),
            )
            for d in found.drifts
        ]
        show_table("What has drifted", head, rows)
        for drift in found.drifts:
            print(f"  {drift.sentence}")
    else:
        print("Nothing has drifted that these logs would show.")
    rows_of = [(cause_words(w.cause), _smallest(w)) for w in found.watchable]
    show_table("Smallest change that would have shown within 10 s", ("value", "change"), rows_of)
    blind = [cause_words(w.cause) for w in found.watchable if w.smallest is None]
    if blind:
        print(f"Not watched, since nothing in these logs would show it: {', '.join(blind)}. Steps of thrust and turns would.")


def _smallest(row: WatchableCause) -> str:
    if row.smallest is None:
        return "none"
    factor, unit = {"1": (100.0, "%"), "s": (1e3, "ms"), "m": (1e3, "mm")}[row.unit]
    return f"{factor * row.smallest:.2g} {unit}"
