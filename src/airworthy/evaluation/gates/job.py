"""The job behind `airworthy bench gates`: courses -> plans -> certificates -> flights -> evidence, in one folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.progress import progress
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.gates.blocks import Ask, Block, blocks_of, off_grid, worked
from airworthy.evaluation.gates.config import GatesConfig, check, identity_of, quick
from airworthy.evaluation.gates.store import MANIFEST_FILE, Store
from airworthy.evaluation.gates.summing import course_row, errors_row, flights_row, random_row
from airworthy.evaluation.machine import describe_machine
from airworthy.simulation.checks import check_device

__all__ = ["SUMMARY_FILE", "GatesBenchmarked", "run_gates"]

SUMMARY_FILE = "summary.json"
_TIMED = 200


@dataclass(frozen=True)
class GatesBenchmarked:
    """What a run left."""

    folder: Path
    summary: dict[str, Any]
    """Content of summary.json."""
    finished: int
    """Blocks that are whole, of `blocks`."""
    blocks: int
    interrupted: bool
    report: Path | None

    @property
    def complete(self) -> bool:
        """Whether everything was done."""
        return self.finished == self.blocks


def run_gates(
    config: GatesConfig,
    predictor: Any,
    identity: Mapping[str, Any],
    truth: Ask | None = None,
    quiet: bool = True,
    step: Callable[[str], None] | None = None,
) -> GatesBenchmarked:
    """Do what has not been done, and write the folder.

    Args:
        config: What to do.
        predictor: Who predicts, see `airworthy.pilots.boundary.planner.plan`.
        identity: What it is, as data: results of another one do not mix.
        truth: A fresh search's speed and duration for situations (k, 8), (k, 2), NaN where there is none; None: no errors.
        quiet: Show no progress.
        step: Told the name of each block when it is kept.

    Raises:
        AirworthyError: With one sentence, if something cannot be done, or the folder holds something else.
    """
    config = quick(config)
    check(config)
    check_device(config.device)
    refuse_foreign(config.out, MANIFEST_FILE)
    with lock_folder(make_folder(config.out)):
        store = Store(config.out, identity_of(config, identity))
        blocks = blocks_of(config, truth is not None)
        interrupted = _work(blocks, config, predictor, truth, store, quiet, step)
        done = [block for block in blocks if store.has(block.name)]
        summary = _written(config, blocks, done, store, predictor)
        report = None
        if config.report and done:
            from airworthy.evaluation.gates.report import write_report

            report = write_report(config, done, store, summary)
    return GatesBenchmarked(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _work(
    blocks: Sequence[Block],
    config: GatesConfig,
    predictor: Any,
    truth: Ask | None,
    store: Store,
    quiet: bool,
    step: Callable[[str], None] | None,
) -> bool:
    """Do every block that is not finished; returns whether somebody stopped it."""
    left = [block for block in blocks if not store.has(block.name)]
    try:
        for block in progress(left, "planning and flying", quiet=quiet):
            store.keep(block.name, worked(block, config, predictor, truth))
            if step is not None:
                step(block.name)
    except KeyboardInterrupt:
        return True
    return False


def _written(
    config: GatesConfig, blocks: Sequence[Block], done: Sequence[Block], store: Store, predictor: Any
) -> dict[str, Any]:
    """Write the summary."""
    kinds: dict[str, list[Block]] = {}
    for block in done:
        kinds.setdefault(block.kind, []).append(block)
    contents = {block.name: store.content(block.name) for block in done}
    flights = [contents[block.name] for block in kinds.get("flights", [])]
    summary: dict[str, Any] = {
        "predictor": store.identity["predictor"],
        "courses": [course_row(contents[block.name]) for block in kinds.get("course", [])],
        "flights": [
            {"course": item["course"], "family": item["family"], **flights_row(item["rows"])}
            for item in flights
            if item["rows"]
        ],
        "random": random_row([contents[b.name] for b in kinds["random"]]) if "random" in kinds else None,
        "errors": errors_row(contents["errors"]) if "errors" in contents else None,
        "aggregate": _together(flights),
    }
    state = {"complete": len(done) == len(blocks), "blocks": len(blocks), "finished": len(done), "digest": store.digest}
    summary |= {"state": state, "prediction_us_per_gate": _timed(predictor), "hardware": describe_machine()}
    write_json(store.folder / SUMMARY_FILE, summary)
    return summary


def _together(flights: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Over all courses, by family."""
    families = dict.fromkeys(item["family"] for item in flights)
    rows = {name: [row for item in flights if item["family"] == name for row in item["rows"]] for name in families}
    return {name: flights_row(own) for name, own in rows.items() if own}


def _timed(predictor: Any) -> float:
    """Median time of one question at a time [us], on this machine as it is now."""
    ask = getattr(predictor, "predict", predictor)
    asked = off_grid(_TIMED, 0)
    took = []
    for row in asked:
        begin = time.perf_counter()
        ask(row[None])
        took.append(time.perf_counter() - begin)
    return float(1e6 * np.median(took))
