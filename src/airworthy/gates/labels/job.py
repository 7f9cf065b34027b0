"""The job behind `airworthy synthesize gates`: every shard of labels that is not there yet, then counts, trials and a report.

Whatever the number of workers, and however often it was interrupted, the folder ends with the same bytes; only `run.json`,
which tells of the run, differs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, make_folder, read_json, write_json
from airworthy.core.idle_options import refuse_idle
from airworthy.core.jobs.block_job import counting, describe_machine, keep_each, refuse_foreign
from airworthy.core.jobs.block_store import digest_of
from airworthy.core.jobs.progress import progress
from airworthy.core.jobs.workers import shared
from airworthy.gates.labels.candidates import candidates
from airworthy.gates.labels.config import IDLE_RULES, GateLabelsConfig, identity_of, vehicle_of
from airworthy.gates.labels.controller_model import make_controller_model
from airworthy.gates.labels.labels import Labels, label
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.report import GATES_FILE, shard_file, whole, write_shard
from airworthy.simulation.start_state import check_device

__all__ = ["LabelTask", "Labelled", "added", "counts_of", "shares_of", "synthesize_gates"]


@dataclass(frozen=True)
class LabelTask:
    """What a worker needs to know."""

    config: GateLabelsConfig
    folder: Path
    device: str


# ---- Counts over labels: what the limit left, how often simulation changed the choice, what was saturated -------------------


def counts_of(situations: Array, labels: Labels, options: SearchOptions) -> dict[str, Any]:
    """Return the whole numbers that add up over shards.

    Args:
        situations: (k, 8).
        labels: Found for them.
        options: Of the search.
    """
    some = labels.admissible
    found = candidates(situations, options.choices)
    analytic = np.take_along_axis(found.t0, np.maximum(labels.analytic, 0)[:, None], axis=1)[:, 0]
    speeds, ratios = options.choices.speeds, options.choices.ratios
    chosen, first = (np.bincount(x[some] // ratios, minlength=speeds) for x in (labels.candidate, labels.analytic))
    return {
        "situations": len(labels),
        "candidates": len(labels) * options.choices.count,
        "admissible": int(labels.passing.sum()),
        "without_candidate": int((~some).sum()),
        "feasible": int(labels.feasible.sum()),
        "crashed": int(labels.crashed.sum()),
        "skipped": int(labels.skipped.sum()),
        "saturated_analytic": int((some & (analytic > options.t_max)).sum()),
        "saturated": int(labels.saturated.sum()),
        "changed": int((some & labels.changed).sum()),
        "within_reach": int(labels.reach.sum()),
        "alone_in_reach": int((labels.reach == 1).sum()),
        "rollouts": int(labels.tried.sum()) * options.draws,
        "steps": int(labels.steps.sum()),
        "by_speed": [int(n) for n in chosen],
        "by_speed_analytic": [int(n) for n in first],
    }


def added(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return counts of several shards together."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            known = total.get(name)
            if isinstance(value, list):
                total[name] = value if known is None else [a + b for a, b in zip(known, value, strict=True)]
            else:
                total[name] = value + (known or 0)
    return total


def shares_of(counts: dict[str, Any]) -> dict[str, float]:
    """Return shares of the situations that have a candidate."""
    some = max(counts["situations"] - counts["without_candidate"], 1)
    return {
        "changed": counts["changed"] / some,
        "within_reach_mean": counts["within_reach"] / some,
        "alone_in_reach": counts["alone_in_reach"] / some,
        "saturated": counts["saturated"] / some,
        "crashed": counts["crashed"] / some,
        "skipped": counts["skipped"] / some,
    }


# -----------------------------------------------------------------------------------------------------------------------------

RUN_FILE = "run.json"
# Ours: more processes than any one machine of the paper's size (96 vCPU) can use.
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
    config: GateLabelsConfig,
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
    make_controller_model(config.options())
    refuse_idle(config, IDLE_RULES, vehicle_of(config))
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

    def __init__(self, config: GateLabelsConfig, folder: Path, device: str, quiet: bool):
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
        task = LabelTask(self._config, self._folder.resolve(), self._device)
        finished = shared(partial(make_shard, task), missing, workers, "finished shards")

        def keep(shard: int, facts: dict[str, Any]) -> None:
            self.done[shard] = facts
            for name in self.new:
                self.new[name] += facts["counts"][name]
            self._write()
            moved()

        with counting(len(missing), "Searching", self._quiet) as moved:
            return keep_each(finished, keep)

    def finish(self, report: bool, command: str) -> bool:
        """Trials of other randomisations, and the report; returns whether somebody interrupted it."""
        try:
            for name in self._untried():
                self._trials[name] = self._trial(name)
            self._write()
            if report:
                from airworthy.gates.labels.report import write_report

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
    run_facts = {"command": command, "hardware": hardware, "workers": workers, "interrupted": interrupted}
    return {**run_facts, "new": run.new, "seconds": seconds, **rates}


def make_shard(task: LabelTask, shard: int) -> dict[str, Any]:
    """Search one shard and write its file; returns what `gates.json` tells of it."""
    config = task.config
    numbers = config.numbers()[shard * config.shard : (shard + 1) * config.shard]
    situations, options = config.situations().situations(numbers), config.options()
    found = label(situations, options, numbers, task.device)
    counts = counts_of(situations, found, options)
    return {"sha256": write_shard(task.folder, shard, situations, found), "rows": len(found), "counts": counts}
