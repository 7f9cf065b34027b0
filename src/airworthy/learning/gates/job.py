"""The job behind `airworthy synthesize gates`: every shard of labels that is not there yet, then counts, trials and a report.

Whatever the number of workers, and however often it was interrupted, the folder ends with the same bytes; only `run.json`,
which tells of the run, differs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, make_folder, read_json, write_json
from airworthy.core.progress import progress
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.machine import describe_machine
from airworthy.learning.gates.config import GatesConfig, digest_of, identity_of
from airworthy.learning.gates.counting import added, counts_of, shares_of
from airworthy.learning.gates.craft import craft_for
from airworthy.learning.gates.labels import label
from airworthy.learning.gates.shards import GATES_FILE, shard_file, whole, write_shard
from airworthy.learning.gates.workers import Task, made_by_processes, made_here
from airworthy.simulation.checks import check_device

__all__ = ["Labelled", "synthesize_gates"]

RUN_FILE = "run.json"
WORKERS_MAX = 256
TRIALS = ("none", "paper", "strong")


@dataclass(frozen=True)
class Labelled:
    """What a run left."""

    folder: Path
    about: dict[str, Any]
    """Content of `gates.json`."""
    shards: int
    """Finished, of `shard_count`."""
    shard_count: int
    new: dict[str, int]
    """Situations, rollouts and steps of this run."""
    seconds: float
    """Of this run's search, by the wall's clock."""
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every shard is there."""
        return self.shards == self.shard_count


def synthesize_gates(
    config: GatesConfig,
    out: str | Path,
    *,
    workers: int = 1,
    device: str = "cpu",
    repair: bool = False,
    report: bool = True,
    quiet: bool = True,
    command: str = "",
) -> Labelled:
    """Make labels, or go on with a folder of them.

    Args:
        config: What to make.
        out: The folder.
        workers: Processes, which share the processors.
        device: cpu or cuda:0.
        repair: Make damaged shards again instead of refusing them.
        report: Write report.html at the end.
        quiet: Show no progress.
        command: Kept in run.json and the report.

    Raises:
        AirworthyError: Something cannot be flown, the folder holds other labels or something else, or a shard is damaged.
    """
    if not 1 <= workers <= WORKERS_MAX:
        raise AirworthyError(f"--workers is {workers}: give a whole number from 1 to {WORKERS_MAX}.")
    check_device(device)
    craft_for(config.options())
    refuse_foreign(out, GATES_FILE)
    with lock_folder(make_folder(out)) as folder:
        run = _Run(config, folder, device, quiet)
        run.find(repair)
        begun = time.perf_counter()
        interrupted = run.make(workers)
        seconds = time.perf_counter() - begun
        if not interrupted and run.complete:
            interrupted = run.finish(report, command)
        write_json(folder / RUN_FILE, _run_facts(run, seconds, workers, command, interrupted))
    return Labelled(folder, run.about(), len(run.done), run.count, run.new, seconds, interrupted)


class _Run:
    """A run over the shards of a folder."""

    def __init__(self, config: GatesConfig, folder: Path, device: str, quiet: bool):
        self._config, self._folder, self._device, self._quiet = config, folder, device, quiet
        self._identity = identity_of(config, device)
        self._digest = digest_of(self._identity)
        self._numbers = config.numbers()
        self.count = -(-len(self._numbers) // config.shard)
        self.done: dict[int, dict[str, Any]] = {}
        self.new = {"situations": 0, "rollouts": 0, "steps": 0}
        self._trials: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        return len(self.done) == self.count

    def find(self, repair: bool) -> None:
        """Take what is there and whole; a file that gates.json does not tell of was cut short and is made again."""
        for name in (".labels-*.tmp.*", ".gates.*.tmp.*", ".run.*.tmp.*", ".report.*.tmp.*"):
            for left in self._folder.glob(name):  # what a killed run was writing
                left.unlink(missing_ok=True)
        path = self._folder / GATES_FILE
        if not path.exists():
            return
        about = read_json(path)
        if not isinstance(about, dict) or about.get("digest") != self._digest:
            raise AirworthyError(
                f"{str(self._folder)!r} holds labels of another search (other options, version or device);"
                " choose another --out."
            )
        for shard in range(self.count):
            facts = about.get("files", {}).get(shard_file(shard))
            if facts is None:
                continue
            if whole(self._folder / shard_file(shard), facts):
                self.done[shard] = facts
            elif not repair:
                raise AssetError(
                    f"{str(self._folder / shard_file(shard))!r} is missing or was changed: run the same command with --repair"
                    " to make it again."
                )
        trials = about.get("trials")
        self._trials = trials if isinstance(trials, dict) and self.complete else {}

    def make(self, workers: int) -> bool:
        """Make what is missing; returns whether somebody interrupted it."""
        missing = [shard for shard in range(self.count) if shard not in self.done]
        self._write()
        task = Task(self._config, self._folder.resolve(), self._device)
        many = workers > 1 and len(missing) > 1
        source = made_by_processes(task, missing, min(workers, len(missing))) if many else made_here(task, missing)
        try:
            for shard, facts in progress(source, "Searching", len(missing), quiet=self._quiet):
                self.done[shard] = facts
                for name in self.new:
                    self.new[name] += facts["counts"][name]
                self._write()
        except KeyboardInterrupt:
            return True
        finally:
            source.close()
        return False

    def finish(self, report: bool, command: str) -> bool:
        """Trials of other randomisations, and the report; returns whether somebody interrupted it."""
        try:
            for name in self._untried():
                self._trials[name] = self._trial(name)
            self._write()
            if report:
                from airworthy.learning.gates.report import write_report

                write_report(self._folder, command)
        except KeyboardInterrupt:
            return True
        return False

    def _untried(self) -> Iterator[str]:
        names = [name for name in TRIALS if self._config.trials and name not in self._trials]
        return progress(names, "Other randomisations", quiet=self._quiet)

    def _trial(self, name: str) -> dict[str, Any]:
        options = self._config.options(name)
        numbers = self._numbers[:: self._config.trials]
        situations = self._config.situations().situations(numbers)
        found = label(situations, options, numbers, self._device)
        counts = counts_of(situations, found, options)
        errors = found.error_mean[found.admissible]
        spread = [float(x) for x in np.quantile(errors, (0.5, 0.95, 1.0))] if len(errors) else None
        return {"counts": counts, "shares": shares_of(counts), "error_quantiles_m": spread}

    def about(self) -> dict[str, Any]:
        """Content of `gates.json`."""
        counts = added([self.done[shard]["counts"] for shard in sorted(self.done)])
        return {
            **self._identity,
            "digest": self._digest,
            "complete": self.complete,
            "counts": counts,
            "shares": shares_of(counts) if counts else {},
            "trials": {name: self._trials[name] for name in TRIALS if name in self._trials},
            "files": {shard_file(shard): self.done[shard] for shard in sorted(self.done)},
        }

    def _write(self) -> None:
        write_json(self._folder / GATES_FILE, self.about())


def _run_facts(run: _Run, seconds: float, workers: int, command: str, interrupted: bool) -> dict[str, Any]:
    rates = {f"{name}_per_second": run.new[name] / seconds if seconds > 0.0 else 0.0 for name in ("rollouts", "steps")}
    hardware = describe_machine()
    told = {"command": command, "hardware": hardware, "workers": workers, "interrupted": interrupted}
    return {**told, "new": run.new, "seconds": seconds, **rates}


def make_shard(task: Task, shard: int) -> dict[str, Any]:
    """Search one shard and write its file; returns what `gates.json` tells of it."""
    config = task.config
    numbers = config.numbers()[shard * config.shard : (shard + 1) * config.shard]
    situations, options = config.situations().situations(numbers), config.options()
    found = label(situations, options, numbers, task.device)
    counts = counts_of(situations, found, options)
    return {"sha256": write_shard(task.folder, shard, situations, found), "rows": len(found), "counts": counts}
