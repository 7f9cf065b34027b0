"""The job behind `airworthy bench navigation`: pilots x vehicles x scenarios x trials -> flights -> evidence, in one folder."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.aggregation import summarize
from airworthy.benchmarks.navigation.config import (
    NAVIGATION_RULES,
    Flight,
    FlightBlock,
    NavigationConfig,
    asked_flights,
    blocks_of,
    check,
    quick,
    vehicle_names_of,
)
from airworthy.benchmarks.navigation.doubts import warn_of_doubts_in_benchmark
from airworthy.benchmarks.navigation.flight_records import Row, rows_of
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import NavigationMethod, check_ready, method_of
from airworthy.benchmarks.navigation.missions import catalogue_vehicle, check_drawn, largest_radius
from airworthy.benchmarks.navigation.own_scenes import placed
from airworthy.benchmarks.navigation.store import MANIFEST_FILE, NavigationStore, command_line, identity_of
from airworthy.bridges.remote.words import EXTERNAL_KINDS
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, make_folder, read_toml, write_json, write_text
from airworthy.core.idle_options import refuse_idle
from airworthy.core.jobs.block_job import (
    SUMMARY_FILE,
    counting,
    describe_machine,
    done_of,
    keep_each,
    left_of,
    refuse_unknown_figures,
    warn_of_kept,
)
from airworthy.core.jobs.workers import WorkerStopped, check_wanted, shared
from airworthy.pilots.flight_loop import PilotFailure
from airworthy.pilots.pilot import PRIVILEGED
from airworthy.simulation.posterior import draws_record
from airworthy.simulation.start_state import check_device

__all__ = [
    "ACCELERATIONS",
    "SUMMARY_FILE",
    "SYSTEM_KEYS",
    "Benchmarked",
    "Finished",
    "WorkerStopped",
    "flown_rows",
    "fly_block",
    "plan_of",
    "read_system",
    "run_benchmark",
    "track_of",
]

# -----------------------------------------------------------------------------------------------------------------------------
# What flies a block, in whichever process: all at once, and where a pilot of all flights fails, its flights one by one.


def fly_block(
    block: FlightBlock, specifier: str, config: NavigationConfig, progress_callback: Callable[[int], None] | None = None
) -> tuple[list[Row], dict[str, float]]:
    """Return rows of a block in its order, and what it took by part [s].

    Args:
        block: Which flights.
        specifier: The pilot's, as on the command line.
        config: Of the run.
        progress_callback: Called with the number of flights that were decided since.
    """
    try:
        return flown_rows(block.flights, method_of(specifier), config, progress_callback)
    finally:
        # Simulators and pilots know each other, so their maps (gigabytes in a large batch) would wait for Python's rare whole
        # collections while the next block takes as much again.
        gc.collect()


def flown_rows(
    flights: Sequence[Flight],
    who: NavigationMethod,
    config: NavigationConfig,
    progress_callback: Callable[[int], None] | None = None,
) -> tuple[list[Row], dict[str, float]]:
    """Return the same of any flights and method.

    Args:
        flights: Which.
        who: The method that flies them.
        config: How.
        progress_callback: Called with the number of flights that were decided since.
    """
    try:
        flown = fly_flights(flights, who, config, progress_callback)
    except PilotFailure:
        # It cannot be said whose fault it was: alone, only those fail that are at fault.
        # It costs one flight at a time, but nobody loses a flight to somebody else's fault.
        parts = [flown_rows([flight], who, config) for flight in flights]
        seconds: dict[str, float] = {}
        for _, took in parts:
            for name, value in took.items():
                seconds[name] = seconds.get(name, 0.0) + value
        return [row for rows, _ in parts for row in rows], seconds
    return rows_of(flown, who, config), flown.seconds


# -----------------------------------------------------------------------------------------------------------------------------
# Who flies blocks: this process, several, or the machines of a Ray cluster; the same function everywhere.

Result = tuple[list[Row], dict[str, float]]
Finished = Generator[tuple[FlightBlock, Result], None, None]
MethodNames = Mapping[str, str]
"""What each pilot is called on the command line, by its name in results."""


def _fly(method_specifiers: MethodNames, config: NavigationConfig, block: FlightBlock) -> Result:
    """In a worker, which looks between flights whether its run still wants it."""
    return fly_block(block, method_specifiers[block.pilot], config, lambda _flights: check_wanted())


# -----------------------------------------------------------------------------------------------------------------------------
# Closed and open divisions: whether results may stand beside others, and what the system under test is said to be.

_FIXED = ("scenes", "randomize", "layouts", "compute", "a_max", "body", "controller", "protocol", "perturb")
"""What the closed division leaves at its defaults."""
ACCELERATIONS = (6.0, 3.0)
"""Common limits of acceleration at which the closed division is flown [m/s^2], each a table of its own: ours, and the public
default of EGO-Planner. The paper gives none."""
_ODOMETRY = ("position", "velocity", "attitude", "rate", "height")
SYSTEM_KEYS = ("name", "organisation", "description", "processor", "accelerator", "training", "sensors", "notes")
"""What a description of a system under test says, each a text; all but the name may be left out."""
_TEXT_MAX = 4000


def track_of(config: NavigationConfig, methods: Sequence[NavigationMethod]) -> dict[str, Any]:
    """Return the division of a run, and why it is not the closed one.

    Closed: the protocol as it is, ideal sensing, the common limit of acceleration, counted compute, the benchmark's own
    configurations and vehicles, and pilots that know nothing but odometry and the depth camera. Everything else is open. Each
    limit of `ACCELERATIONS` is an axis of its own: numbers of one stand beside each other, never beside those of the other.
    """
    default, why = NavigationConfig(), []
    limit = config.protocol.acceleration_m_s2
    usual = replace(config.protocol, acceleration_m_s2=default.protocol.acceleration_m_s2)
    compared = replace(config, protocol=usual) if limit in ACCELERATIONS else config
    for item in fields(compared):
        if item.name in _FIXED and getattr(compared, item.name) != getattr(default, item.name):
            why.append(f"--{item.name.replace('_', '-')} differs from the benchmark's")
    for who in methods:
        if who.privileged:
            why.append(f"pilot {who.name!r} knows the whole place")
        observes = getattr(who.make, "observes", ()) if who.own and who.kind == "pilot" else ()
        privileged = [name for name in observes if name in PRIVILEGED and name not in _ODOMETRY]
        if privileged:
            why.append(f"pilot {who.name!r} is given {', '.join(privileged)}")
    return {"division": "open" if why else "closed", "because": why, "acceleration_m_s2": limit}


def read_system(path: Path | None) -> dict[str, Any]:
    """Return the description of a system under test.

    Raises:
        AssetError: The file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    system = read_toml(path)
    for key, value in system.items():
        if key not in SYSTEM_KEYS or not isinstance(value, str) or len(value) > _TEXT_MAX:
            raise AssetError(
                f"{str(path)!r} says {key!r}; a description of a system holds texts of at most {_TEXT_MAX} characters named"
                f" {', '.join(SYSTEM_KEYS)}."
            )
    if not system.get("name"):
        raise AssetError(f'{str(path)!r} does not say the system\'s name: add a line name = "...".')
    return dict(system)


# -----------------------------------------------------------------------------------------------------------------------------

SYSTEM_FILE = "system.toml"


@dataclass(frozen=True)
class Benchmarked:
    """What a run left."""

    folder: Path
    summary: dict[str, Any]
    """Content of summary.json."""
    finished: int
    """Flights that are there, of `flights`."""
    flights: int
    interrupted: bool
    report: Path | None

    @property
    def complete(self) -> bool:
        """Whether everything was flown."""
        return self.finished == self.flights


def run_benchmark(config: NavigationConfig, quiet: bool = True, step: Callable[[str], None] | None = None) -> Benchmarked:
    """Fly what has not been flown, judge everything, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        step: Told the name of each block when it is kept.

    Raises:
        AirworthyError: With one sentence, if something cannot be flown, or the folder holds something else.
    """
    check(config)
    refuse_idle(config, NAVIGATION_RULES)
    config = quick(config)
    check_device(config.device)
    if config.cluster:
        importlib.import_module("ray")
    flying = {specifier: method_of(specifier) for specifier in config.pilots}
    names = [item.name for item in flying.values()]
    if len(set(names)) != len(names):
        raise AirworthyError(f"Pilots of one benchmark need names of their own; they are {', '.join(names)}.")
    for item in flying.values():
        if item.single and (config.batch, config.workers) != (1, 1):
            raise AirworthyError(
                f"Pilot {item.name!r} flies one vehicle at a time, on topics that all would share: give --batch 1 --workers 1."
            )
    check_drawn(config)
    config = placed(config, largest_radius(vehicle_names_of(config.vehicles), config.body))
    system = read_system(config.system)
    for item in flying.values():
        check_ready(item)
    refuse_unknown_figures(config.out, MANIFEST_FILE)
    with lock_folder(make_folder(config.out)):
        store = NavigationStore(
            config.out, identity_of(config), _identities(flying.values()), _notes(config, flying.values(), system)
        )
        store.notes["command"] = command_line(replace(config, pilots=tuple(store.notes["words"].values())))
        if config.system is not None:
            write_text(store.folder / SYSTEM_FILE, config.system.read_text("utf-8"))
        mine = blocks_of(names, asked_flights(config), config.batch)
        method_specifiers = {item.name: specifier for specifier, item in flying.items()}
        outside = {item.name for item in flying.values() if item.identity.get("pilot") in EXTERNAL_KINDS}
        warn_of_kept([block for block in mine if block.pilot in outside], store, config.out)
        left = left_of(mine, store)
        # Of what is flown now: who takes up a finished run was told when it flew.
        waiting = {block.pilot for block in left}
        doubted = list(dict.fromkeys(flight for block in left for flight in block.flights))
        warn_of_doubts_in_benchmark([item for item in flying.values() if item.name in waiting], doubted, config)
        interrupted = _fly_all(left, method_specifiers, config, store, quiet, step)
        blocks = plan_of(store, config)
        done = done_of(blocks, store)
        summary = _written(config, blocks, done, store)
        report = None
        if config.report and done:
            from airworthy.benchmarks.navigation.report.page import write_report

            report = write_report(store.folder, quiet=quiet, summary=summary)
    finished = sum(len(block.flights) for block in done)
    return Benchmarked(Path(config.out), summary, finished, sum(len(b.flights) for b in blocks), interrupted, report)


def plan_of(store: NavigationStore, config: NavigationConfig) -> list[FlightBlock]:
    """Return every block of a folder: of all pilots that were ever asked for there, in that order."""
    return blocks_of(list(store.pilots), asked_flights(config), config.batch)


def _identities(flying: Any) -> dict[str, Any]:
    return {item.name: {**item.identity, "title": item.title or item.name} for item in flying}


def _notes(config: NavigationConfig, flying: Any, system: dict[str, Any]) -> dict[str, Any]:
    methods: list[NavigationMethod] = list(flying)
    method_specifiers = dict(zip((item.name for item in methods), config.pilots, strict=True))
    return {"division": track_of(config, methods), "system": system, "words": method_specifiers}


def _fly_all(
    left: Sequence[FlightBlock],
    method_specifiers: dict[str, str],
    config: NavigationConfig,
    store: NavigationStore,
    quiet: bool,
    step: Callable[[str], None] | None,
) -> bool:
    """Fly every block that is not finished; returns whether somebody stopped it."""
    if not left:
        return False
    with counting(sum(len(block.flights) for block in left), "flying", quiet) as progress_callback:
        return keep_each(
            _flown(left, method_specifiers, config, progress_callback),
            lambda block, result: store.keep(block.name, *result),
            step,
        )


def _flown(
    left: Sequence[FlightBlock],
    method_specifiers: MethodNames,
    config: NavigationConfig,
    progress_callback: Callable[[int], None],
) -> Finished:
    """Yield blocks as they are finished; on a cluster, files of users' own pilots must lie under the same path everywhere."""
    return shared(
        partial(_fly, method_specifiers, config),
        left,
        config.workers,
        "finished flights",
        config.cluster,
        here=lambda block: fly_block(block, method_specifiers[block.pilot], config, progress_callback),
        came=lambda block: progress_callback(len(block.flights)),
    )


def _written(
    config: NavigationConfig, blocks: Sequence[FlightBlock], done: Sequence[FlightBlock], store: NavigationStore
) -> dict[str, Any]:
    """Write the table of results and the summary."""
    store.write_results([block.name for block in done])
    rows = [row for block in done for row in store.rows(block.name)]
    state = {"complete": len(done) == len(blocks), "flights": sum(len(b.flights) for b in blocks), "finished": len(rows)}
    took = store.seconds()
    drawn = vehicle_names_of(config.vehicles) if config.randomize else []
    summary = {
        **summarize(rows, config.protocol),
        "state": {**state, "digest": store.digest},
        "hardware": describe_machine(),
        **store.notes,
        **draws_record([catalogue_vehicle(name) for name in drawn], config.spread),
    }
    summary["seconds"] = {
        name: {part: sum(took.get(b.name, {}).get(part, 0.0) for b in done if b.pilot == name) for part in _PARTS}
        for name in store.pilots
    }
    write_json(store.folder / SUMMARY_FILE, summary)
    return summary


_PARTS = ("setup", "flying", "planning", "asked", "thinking", "calls")
