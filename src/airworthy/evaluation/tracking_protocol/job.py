"""The job behind `airworthy evaluate`: pilots x families x conditions -> flights -> evidence, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.evaluation.block_job import SUMMARY_FILE, BlocksDone, counting, done_of, keep_each, left_of
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.tracking_protocol.block import CONTROL_RATE, Block, BlockResult, Setting, file_name, fly_block
from airworthy.evaluation.tracking_protocol.conditions import Condition, expanded
from airworthy.evaluation.tracking_protocol.config import EvaluateConfig, blocks_of, check, identity_of, quick
from airworthy.evaluation.tracking_protocol.entrants import Entrant, entrants_of
from airworthy.evaluation.tracking_protocol.store import MANIFEST_FILE, Store
from airworthy.evaluation.tracking_protocol.summing import summarize
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

__all__ = ["SUMMARY_FILE", "Evaluated", "evaluate"]


class Evaluated(BlocksDone):
    """What a run left."""


def evaluate(
    config: EvaluateConfig,
    quiet: bool = True,
    entrants: Sequence[Entrant] | None = None,
    step: Callable[[str], None] | None = None,
) -> Evaluated:
    """Fly what has not been flown, judge everything, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        entrants: Who flies, instead of the pilots that `config.pilot` names; their names must differ.
        step: Told the name of each block when it is finished.

    Raises:
        AirworthyError: With one sentence, if something cannot be flown, or the folder holds something else.
    """
    config = quick(config)
    check(config)
    refuse_foreign(config.out, MANIFEST_FILE)
    flown_by, _ = vehicle(config.vehicle), course(config.course)
    flying = entrants_of(config.pilot) if entrants is None else list(entrants)
    for one in flying:
        if one.sensors is not None:
            one.sensors(flown_by)  # refuses a vehicle without a camera before anything is written
    names = [file_name(item.name) for item in flying]
    if not names or len(set(names)) != len(names):
        raise AirworthyError(f"Pilots of one evaluation need names of their own; they are {', '.join(names) or 'none'}.")
    conditions, scenes = expanded(config.conditions), dict[str, Scene]()
    for item in conditions:
        name = item.scene or config.scene
        scenes[name] = scenes.get(name) or scene(name)
    identity = identity_of(config, flying, {name: scene_digest(place) for name, place in scenes.items()})
    blocks = blocks_of(config, flying)
    with lock_folder(make_folder(config.out)):
        store = Store(config.out, identity)
        finished = _flown(config, flying, left_of(blocks, store), scenes, quiet)
        interrupted = keep_each(finished, lambda block, result: store.keep(block.name, result, _meta(block, config)), step)
        done = done_of(blocks, store)
        summary = _written(config, conditions, done, len(blocks), store)
        report = None
        if config.report and done:
            from airworthy.evaluation.tracking_protocol.report import write_report

            report = write_report(config, conditions, done, store, summary)
    return Evaluated(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _flown(
    config: EvaluateConfig, flying: Sequence[Entrant], left: Sequence[Block], scenes: dict[str, Scene], quiet: bool
) -> Generator[tuple[Block, BlockResult], None, None]:
    """Fly blocks, one after the other."""
    by_name = {item.name: item for item in flying}
    settings: dict[str, Setting] = {}
    flown_by = vehicle(config.vehicle)
    with counting(sum(map(_ticks, left)), "flying", quiet) as told:
        for block in left:
            if block.condition.name not in settings:
                # One at a time: an edited scene of splats is large.
                settings = {block.condition.name: Setting(block.condition, config.course, config.scene, scenes)}
            result = fly_block(
                block,
                settings[block.condition.name],
                by_name[block.entrant],
                flown_by,
                spread=config.spread,
                protocol=config.protocol,
                seed=config.seed,
                contact=config.contact,
                device=config.device,
                told=told,
            )
            if result is None:  # stopped while it flew
                raise KeyboardInterrupt
            yield block, result


def _ticks(block: Block) -> int:
    """Commands of a block's pilot."""
    return round(course(block.course).trajectory().duration * CONTROL_RATE)


def _meta(block: Block, config: EvaluateConfig) -> dict[str, Any]:
    """Said of a block's flights beside them; the same whatever machine flew them."""
    return {
        "version": __version__,
        "vehicle": config.vehicle,
        "scene": block.scene,
        "course": block.course,
        "pilot": block.entrant,
        "seed": config.seed,
        "family": block.family,
        "condition": asdict(block.condition),
        "control_rate_hz": CONTROL_RATE,
    }


def _written(
    config: EvaluateConfig, conditions: Sequence[Condition], done: Sequence[Block], planned: int, store: Store
) -> dict[str, Any]:
    """Write the table of results and the summary."""
    names = [item.name for item in done]
    store.write_results(names)
    rows = [row for name in names for row in store.rows(name)]
    summary = summarize(rows, conditions, config)
    state = {"complete": len(done) == planned, "blocks": planned, "blocks_finished": len(done), "digest": store.digest}
    summary |= {"state": state, "hardware": describe_machine()}
    write_json(store.folder / SUMMARY_FILE, summary)
    return summary
