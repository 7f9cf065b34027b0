"""The job behind `airworthy bench navigation`: pilots x vehicles x scenarios x trials -> flights -> evidence, in one folder."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json, write_text
from airworthy.evaluation.block_job import SUMMARY_FILE, counting, done_of, keep_each, left_of
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.navigation.choices import check, quick, scenario_names, vehicle_names_of
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.division import division_of, read_system
from airworthy.evaluation.navigation.entrants import Entrant, entrant
from airworthy.evaluation.navigation.identity import command_line, identity_of
from airworthy.evaluation.navigation.plan import Block, blocks_of, flights_of
from airworthy.evaluation.navigation.store import Store
from airworthy.evaluation.navigation.summing import summarize
from airworthy.evaluation.navigation.workers import Finished, flown_by_processes, flown_here, flown_on_cluster
from airworthy.simulation.checks import check_device

__all__ = ["SUMMARY_FILE", "Benchmarked", "plan_of", "run_benchmark"]

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
    config = quick(config)
    check(config)
    check_device(config.device)
    if config.cluster:
        importlib.import_module("ray")
    flying = {word: entrant(word) for word in config.pilots}
    names = [item.name for item in flying.values()]
    if len(set(names)) != len(names):
        raise AirworthyError(f"Pilots of one benchmark need names of their own; they are {', '.join(names)}.")
    system = read_system(config.system)
    with lock_folder(make_folder(config.out)):
        store = Store(config.out, identity_of(config), _identities(flying.values()), _notes(config, flying.values(), system))
        store.notes["command"] = command_line(replace(config, pilots=tuple(store.notes["words"].values())))
        if config.system is not None:
            write_text(store.folder / SYSTEM_FILE, config.system.read_text("utf-8"))
        mine = blocks_of(names, _flights(config), config.batch)
        words = {item.name: word for word, item in flying.items()}
        interrupted = _fly_all(mine, words, config, store, quiet, step)
        blocks = plan_of(store, config)
        done = done_of(blocks, store)
        summary = _written(config, blocks, done, store)
        report = None
        if config.report and done:
            from airworthy.evaluation.navigation.report import write_report

            report = write_report(store.folder, quiet=quiet, summary=summary)
    finished = sum(len(block.flights) for block in done)
    return Benchmarked(Path(config.out), summary, finished, sum(len(b.flights) for b in blocks), interrupted, report)


def plan_of(store: Store, config: NavigationConfig) -> list[Block]:
    """Every block of a folder: of all pilots that were ever asked for there, in that order."""
    return blocks_of(list(store.pilots), _flights(config), config.batch)


def _flights(config: NavigationConfig) -> Any:
    return flights_of(scenario_names(config.scenarios), vehicle_names_of(config.vehicles), config.trials, config.repeats)


def _identities(flying: Any) -> dict[str, Any]:
    return {item.name: {**item.identity, "title": item.title or item.name} for item in flying}


def _notes(config: NavigationConfig, flying: Any, system: dict[str, Any]) -> dict[str, Any]:
    entrants: list[Entrant] = list(flying)
    words = dict(zip((item.name for item in entrants), config.pilots, strict=True))
    return {"division": division_of(config, entrants), "system": system, "words": words}


def _fly_all(
    blocks: Sequence[Block],
    words: dict[str, str],
    config: NavigationConfig,
    store: Store,
    quiet: bool,
    step: Callable[[str], None] | None,
) -> bool:
    """Fly every block that is not finished; returns whether somebody stopped it."""
    left = left_of(blocks, store)
    if not left:
        return False
    with counting(sum(len(block.flights) for block in left), "flying", quiet) as told:
        return keep_each(_flown(left, words, config, told), lambda block, result: store.keep(block.name, *result), step)


def _flown(left: Sequence[Block], words: dict[str, str], config: NavigationConfig, told: Callable[[int], None]) -> Finished:
    if config.cluster:
        return flown_on_cluster(left, words, config, told)
    if config.workers > 1 and len(left) > 1:
        return flown_by_processes(left, words, config, told)
    return flown_here(left, words, config, told)


def _written(config: NavigationConfig, blocks: Sequence[Block], done: Sequence[Block], store: Store) -> dict[str, Any]:
    """Write the table of results and the summary."""
    store.write_results([block.name for block in done])
    rows = [row for block in done for row in store.rows(block.name)]
    state = {"complete": len(done) == len(blocks), "flights": sum(len(b.flights) for b in blocks), "finished": len(rows)}
    took = store.seconds()
    summary = {**summarize(rows), "state": {**state, "digest": store.digest}, "hardware": describe_machine(), **store.notes}
    summary["seconds"] = {
        name: {part: sum(took.get(b.name, {}).get(part, 0.0) for b in done if b.pilot == name) for part in _PARTS}
        for name in store.pilots
    }
    write_json(store.folder / SUMMARY_FILE, summary)
    return summary


_PARTS = ("setup", "flying", "planning", "asked", "thinking", "calls")
