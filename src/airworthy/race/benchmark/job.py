"""The job behind `airworthy bench race`: pilots x courses -> refereed flights -> statistics and tables, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, sha256, write_json
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.block_job import (
    SUMMARY_FILE,
    BlocksDone,
    counting,
    describe_machine,
    done_of,
    keep_each,
    left_of,
    refuse_foreign,
)
from airworthy.core.jobs.block_store import ManifestKind, plain
from airworthy.core.jobs.json_blocks import JsonBlockStore
from airworthy.core.jobs.progress import command_line
from airworthy.core.jobs.workers import shared
from airworthy.core.schema import SEED, TEXT_MAX, Bound, Length, check_fields
from airworthy.race.background import CHARGE_S, MEASURED, charge_of
from airworthy.race.benchmark.contact import SWEPT, Detector
from airworthy.race.benchmark.crew import check_rate
from airworthy.race.benchmark.flight import check_flyable, fly_races
from airworthy.race.benchmark.imaging import BEACONS, CAMERA, STEREO, check_sensors
from airworthy.race.benchmark.recording import trace_content, trace_of
from airworthy.race.benchmark.tables import pilot_summary, row_of, rules_mark, tables_of
from airworthy.race.benchmark.timing import TIMING_FILE, flight_timing, pilot_timing, timing_text
from airworthy.race.classes import DEFAULT, RaceClass, race_class
from airworthy.race.courses import course_of
from airworthy.race.pilots.catalogue import WITHOUT_DECOYS, PilotEntry
from airworthy.race.race_file import load_race
from airworthy.race.record import Race
from airworthy.race.referee import PHYSICS_HZ
from airworthy.race.report.crossings import FlownRace, flown_race, gate_accuracy
from airworthy.race.report.film import filmed
from airworthy.race.report.page import ReportInput, write_race_report
from airworthy.race.wall.doors import PATIENCE_S, confinement_of, is_external, pilot_entry
from airworthy.scenes.generators.halls import course_names
from airworthy.simulation.posterior import draws_record, posterior_of
from airworthy.vehicles import named_vehicle

__all__ = ["MANIFEST_FILE", "RaceBenchConfig", "RaceBenched", "run_race_bench"]

MANIFEST_FILE = "race_bench.json"
_CHARGE_DIGITS = 1e9
"""Numbers beyond are no text of a charge; what is refused as one is said as it is."""
_BLOCK, _SEEN_BLOCK = 5, 1
"""Courses that fly together, and those of pilots that are given pictures, which take minutes each: few enough that little is
lost with a run, and no bit depends on it."""


@dataclass(frozen=True)
class RaceBenchConfig:
    """Fly pilots through courses of a race under its information rules, and set their scores beside the published ones."""

    race: str = "alphapilot"
    """Name, or the path of a race TOML, in a scene that can be flown; `airworthy races` lists them."""
    pilot: str = "servo"
    """Words of race pilots, joined by commas. One of your own is FILE.py:CLASS, a program that listens on this machine
    external:PORT, each with truth: before it if it needs the truth."""
    courses: str = "published:0-24"
    """published:0-24, fresh:SEED/COUNT, bounds, nominal, or single ones as published/7, joined by commas."""
    conditions: str = DEFAULT
    """The class: published, noisy, hard or v3; --class is the same."""
    look: Annotated[float | None, Bound(0.0, 60.0, "s")] = None
    """How long pilots look from the start before they are armed [s]; as the race says, where it is not given."""
    contact: Detector = SWEPT
    """What a contact is: swept, the vehicle's sphere along every physics step; or published, as in 2019: where the sphere is 60
    times a second."""
    vehicle: Annotated[str, Length(0, TEXT_MAX)] = ""
    """Another vehicle than the class's: a name of the catalogue, or a file as `vehicles identify` writes it; pilots are told
    its record."""
    randomize: Literal["identified"] | None = None
    """identified: each flight flies a vehicle of its own, drawn from what an identification left open of --vehicle (its
    [uncertainty]); a course draws the same for every pilot, who knows the record. Without it, the record flies as it is."""
    decoy_beacons: bool = False
    """Light the beacons of the gates that are not flown, too; pilots are told where these stand. Whether they were lit in 2019
    is not known."""
    charge_compute: str = str(CHARGE_S)
    """What pilots that plan are charged in simulated time: seconds for each plan, or measured: its processor time."""
    in_process: bool = False
    """Call pilots in the process of the simulation, which is faster, shows what they print, and marks their results."""
    patience: Annotated[float, Bound(0.1, 3600.0, "s")] = PATIENCE_S
    """How long a pilot in another process may take for an answer, by the clock on the wall [s]."""
    seed: Annotated[int, SEED] = 0
    """Of all noise."""
    film_flights: Annotated[int, Bound(0, 1000)] = 0
    """Flights of each pilot that are filmed: the best, the first that was not completed, the first that missed a gate, then
    others; some 4 processor seconds for each second of flight."""
    workers: Annotated[int, Bound(1, 256)] = 1
    """Processes that fly."""
    out: Annotated[str, Length(1, TEXT_MAX)] = "runs/race"
    """Folder of the results; a stopped run goes on there."""
    json: bool = False
    """Print the summary as JSON instead of tables."""

    def __post_init__(self) -> None:
        given: Any = self.charge_compute
        if isinstance(given, int | float) and not isinstance(given, bool) and not abs(given) > _CHARGE_DIGITS:
            # Seconds are a number, from Python.
            object.__setattr__(self, "charge_compute", f"{given:g}")
        check_fields(self)
        charge_of(self.charge_compute)


IDLE_RULES = (
    IdleRule(
        ("charge_compute",),
        lambda config, entries: not any(entry.plans for entry in entries),
        "for pilots that do nothing beside their commands",
        "name one that plans",
    ),
    IdleRule(
        ("in_process",),
        lambda config, entries: all(is_external(entry.name) for entry in entries),
        "for programs that listen on a port, which are no part of this process",
    ),
    IdleRule(
        ("patience",),
        lambda config, entries: all(entry.door is None for entry in entries),
        "for pilots in this process, which are waited for",
        "fly them without --in-process",
    ),
    IdleRule(
        ("decoy_beacons",),
        lambda config, entries: not any(_sees_decoys(entry) for entry in entries),
        f"for {', '.join(WITHOUT_DECOYS)} and pilots whose sensors name no beacons: they read none of gates that are not flown",
        "name another --pilot",
    ),
)


def _sees_decoys(entry: PilotEntry) -> bool:
    return entry.name not in WITHOUT_DECOYS and (not entry.sensors or BEACONS in entry.sensors)


@dataclass(frozen=True)
class RaceBlock:
    """Courses that one pilot flies together."""

    name: str
    pilot: str
    courses: tuple[str, ...]


class RaceStore(JsonBlockStore):
    """The folder of a race benchmark."""

    # 2: blocks hold traces. 3: rows count plans that failed, and notes of pilots. 4: lengths of paths end with the race, and
    # pilots that are given pictures fly one course to a block.
    kind = ManifestKind(MANIFEST_FILE, "a race benchmark", 4)


@dataclass(frozen=True)
class RaceBenched(BlocksDone):
    """What a run left."""

    timing: tuple[Mapping[str, Any], ...]
    """Processor time of each pilot, as of `pilot_timing`; no two runs have the same."""
    flights: int
    """That were asked for, of all pilots; those that are whole stand in the summary."""


def run_race_bench(config: RaceBenchConfig, quiet: bool = True, step: Callable[[str], None] | None = None) -> RaceBenched:
    """Fly what has not been flown, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        step: Told the name of each block when it is kept.

    Raises:
        AirworthyError: With one sentence, if something cannot be flown, or the folder holds something else.
    """
    race, conditions = load_race(config.race), _conditions(config)
    check_flyable(race)
    flown_by, spread = named_vehicle(conditions.vehicle), conditions.vehicles(config.randomize is not None)
    if spread.posterior:
        posterior_of(flown_by, spread)  # refuses a vehicle of which none can be drawn
    words = [word.strip() for word in config.pilot.split(",")]
    if "" in words:
        raise AirworthyError(f"--pilot {config.pilot!r} names no pilot where a word is empty; expected as servo or servo,race.")
    if len(set(words)) < len(words):
        raise AirworthyError(f"--pilot names a pilot twice: {config.pilot!r}; name each once.")
    entries = [pilot_entry(word, config.in_process, config.patience) for word in words]
    refuse_idle(config, IDLE_RULES, entries)
    charge = charge_of(config.charge_compute)
    for entry in entries:
        check_rate(entry, PHYSICS_HZ)
        check_sensors(race, entry.name, entry.sensors, entry.rate)
    names = course_names(config.courses)
    for name in names:
        course_of(race, name)  # refuses it before anything is written
    refuse_foreign(config.out, MANIFEST_FILE)
    identity = plain(
        {
            "version": __version__,
            "race": sha256(repr(race)),
            "class": asdict(conditions),
            "courses": list(names),
            "look_s": race.clock.look_s if config.look is None else config.look,
            "seed": config.seed,
            "contact": config.contact,
            "decoy_beacons": config.decoy_beacons,
            "charge": charge if any(entry.plans for entry in entries) else None,
            "in_process": config.in_process,
            "pilots": {entry.name: {"rate": entry.rate, **entry.identity} for entry in entries},
            # Folders of the class's own vehicle are those of before.
            **({"vehicle": sha256(repr(flown_by))} if config.vehicle else {}),
            **({"randomize": config.randomize} if config.randomize else {}),
        }
    )
    blocks = _blocks(entries, names)
    mark = rules_mark(config.contact, config.decoy_beacons, flown_by.name if config.vehicle else "", spread.posterior)
    with lock_folder(make_folder(config.out)):
        store = RaceStore(config.out, identity)
        interrupted = keep_each(
            _flown(left_of(blocks, store), config, quiet), lambda block, content: store.keep(block.name, content), step
        )
        done = done_of(blocks, store)
        rows = {entry.name: _rows(entry.name, done, store) for entry in entries}
        timing = tuple(
            pilot_timing(entry, charge, _rows(entry.name, done, store, "timing")) for entry in entries if rows[entry.name]
        )
        flights = {entry.name: _traced(race, entry.name, done, store) for entry in entries}
        told = [
            pilot_summary(race, entry, rows[entry.name], mark) | {"gate_accuracy": gate_accuracy(flights[entry.name])}
            for entry in entries
            if rows[entry.name]
        ]
        summary: dict[str, Any] = {
            "version": __version__,
            "race": race.name,
            "class": conditions.name,
            "courses": config.courses,
            "seed": config.seed,
            "contact": config.contact,
            "decoy_beacons": config.decoy_beacons,
            "vehicle": flown_by.name,
            "randomize": config.randomize,
            **draws_record([flown_by], spread),
            # Plans that are charged the time they took arrive at other moments in another run.
            "repeatable": not (charge == MEASURED and any(entry.plans for entry in entries)),
            # What the system enforces on pilots in processes of their own; null where there is none.
            "confinement": _confinement(config, entries),
            "pilots": told,
            "tables": tables_of(race, entries, rows, mark),
            "flights": [row for entry in entries for row in rows[entry.name]],
            "state": {
                "complete": len(done) == len(blocks),
                "blocks": len(blocks),
                "finished": len(done),
                "digest": store.digest,
            },
            "hardware": describe_machine(),
        }
        # The first pilot's figures also stand at the top, for scripts that fly one.
        if summary["pilots"]:
            first = summary["pilots"][0]
            summary |= {key: first[key] for key in ("completed", "runs", "final_score", "mean_score", "mean_time_s")}
        write_json(store.folder / SUMMARY_FILE, summary)
        write_json(store.folder / TIMING_FILE, {"pilots": timing, "hardware": describe_machine()})
        given = ReportInput(
            folder=store.folder,
            command=command_line("airworthy bench race", config, leave_out=("json", "out", "workers")),
            race=race,
            vehicle=flown_by,
            summary=summary,
            flights=flights,
            timing={row["pilot"]: timing_text(row) for row in timing},
        )
        # Numbers are whole before the first film, which takes longer than all else here.
        report = write_race_report(given)
        if config.film_flights and not interrupted:
            given, interrupted = filmed(given, config.film_flights, quiet)
            report = write_race_report(given)
    asked = len(entries) * len(names)
    return RaceBenched(Path(config.out), summary, len(done), len(blocks), interrupted, report, timing, asked)


def _conditions(config: RaceBenchConfig) -> RaceClass:
    """Return the class, with the vehicle that is flown."""
    conditions = race_class(config.conditions)
    return replace(conditions, vehicle=config.vehicle) if config.vehicle else conditions


def _confinement(config: RaceBenchConfig, entries: Sequence[PilotEntry]) -> dict[str, str] | None:
    words = [entry.name for entry in entries if entry.door is not None and not is_external(entry.name)]
    return dict(confinement_of(words[0], config.patience)) if words else None


def _blocks(entries: Sequence[PilotEntry], names: Sequence[str]) -> list[RaceBlock]:
    found = []
    for number, entry in enumerate(entries):
        size = _SEEN_BLOCK if {CAMERA, STEREO} & set(entry.sensors) else _BLOCK
        found += [
            RaceBlock(f"{number}-{at // size:05d}", entry.name, tuple(names[at : at + size]))
            for at in range(0, len(names), size)
        ]
    return found


def _rows(pilot: str, done: Sequence[RaceBlock], store: RaceStore, what: str = "flights") -> list[dict[str, Any]]:
    return [row for block in done if block.pilot == pilot for row in store.content(block.name)[what]]


def _traced(race: Race, pilot: str, done: Sequence[RaceBlock], store: RaceStore) -> list[FlownRace]:
    """Return a pilot's flights with their traces."""
    found = []
    for block in done:
        if block.pilot == pilot:
            content = store.content(block.name)
            for row, trace in zip(content["flights"], content["traces"], strict=True):
                found.append(flown_race(race, row, trace_of(trace, f"{pilot} on {row['course']}", store.path(block.name))))
    return found


def _flown(
    left: Sequence[RaceBlock], config: RaceBenchConfig, quiet: bool
) -> Generator[tuple[RaceBlock, Mapping[str, Any]], None, None]:
    with counting(sum(len(block.courses) for block in left), "racing", quiet) as count:
        function = partial(fly_block, config)
        here = partial(fly_block, config, advanced=count)

        def came(block: RaceBlock) -> None:
            count(len(block.courses))

        yield from shared(function, left, config.workers, "finished blocks", here=here, came=came)


def fly_block(
    config: RaceBenchConfig, block: RaceBlock, advanced: Callable[[int], None] = lambda flights: None
) -> dict[str, Any]:
    """Fly one block; the same wherever it is done.

    Args:
        config: Of the run.
        block: Which pilot, and which courses.
        advanced: Told whenever flights end, and how many.
    """
    race, entry = load_race(config.race), pilot_entry(block.pilot, config.in_process, config.patience)
    flown = fly_races(
        race,
        block.courses,
        entry,
        _conditions(config),
        seed=config.seed,
        look_s=config.look,
        charge=charge_of(config.charge_compute),
        contact=config.contact,
        decoy_beacons=config.decoy_beacons,
        identified=config.randomize is not None,
        advanced=advanced,
    )
    return {
        "flights": [row_of(block.pilot, flight) for flight in flown],
        "timing": [flight_timing(block.pilot, flight) for flight in flown],
        "traces": [trace_content(flight.trace) for flight in flown],
    }
