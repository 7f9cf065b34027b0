"""The job behind `airworthy bench gates`: courses -> plans -> certificates -> flights -> evidence, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.progress import progress
from airworthy.evaluation.block_job import SUMMARY_FILE, BlocksDone, done_of, keep_each, left_of
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.gates.blocks import Block, blocks_of, worked
from airworthy.evaluation.gates.config import GatesConfig, check, identity_of, quick
from airworthy.evaluation.gates.contestants import Contestant
from airworthy.evaluation.gates.store import MANIFEST_FILE, Store
from airworthy.evaluation.gates.summary import summary_of
from airworthy.simulation.checks import check_device

__all__ = ["SUMMARY_FILE", "GatesBenchmarked", "run_gates"]


class GatesBenchmarked(BlocksDone):
    """What a run left."""


def run_gates(
    config: GatesConfig,
    contestants: Sequence[Contestant],
    quiet: bool = True,
    step: Callable[[str], None] | None = None,
) -> GatesBenchmarked:
    """Do what has not been done, and write the folder.

    Args:
        config: What to do.
        contestants: Who predicts, the one that the report is about first; all on the same courses, under the same certificate,
            in flights with the same draws.
        quiet: Show no progress.
        step: Told the name of each block when it is kept.

    Raises:
        AirworthyError: With one sentence, if something cannot be done, or the folder holds something else.
    """
    config = quick(config)
    check(config)
    check_device(config.device)
    if not contestants or len({item.name for item in contestants}) != len(contestants):
        raise AirworthyError("A benchmark needs predictors with names of their own, one or more.")
    refuse_foreign(config.out, MANIFEST_FILE)
    with lock_folder(make_folder(config.out)):
        store = Store(config.out, identity_of(config, [item.identity for item in contestants]))
        blocks = blocks_of(config, contestants)
        finished = _worked(left_of(blocks, store), config, contestants, quiet)
        interrupted = keep_each(finished, lambda block, content: store.keep(block.name, content), step)
        done = done_of(blocks, store)
        contents = {block.name: store.content(block.name) for block in done}
        summary = summary_of(config, contestants, blocks, contents, store.digest)
        write_json(store.folder / SUMMARY_FILE, summary)
        report = None
        if config.report and done:
            from airworthy.evaluation.gates.report import write_report

            report = write_report(config, done, contents, store, summary)
    return GatesBenchmarked(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _worked(
    left: Sequence[Block], config: GatesConfig, contestants: Sequence[Contestant], quiet: bool
) -> Generator[tuple[Block, dict[str, Any]], None, None]:
    """Blocks, as they are finished."""
    for block in progress(left, "planning and flying", quiet=quiet):
        yield block, worked(block, config, contestants)
