"""The job behind `airworthy evaluate`: pilots x families x conditions -> flights -> evidence, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.progress import progress
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.tracking_protocol.block import CONTROL_RATE, Block, Setting, file_name, fly_block
from airworthy.evaluation.tracking_protocol.conditions import Condition, expanded
from airworthy.evaluation.tracking_protocol.config import EvaluateConfig, blocks_of, check, identity_of, quick
from airworthy.evaluation.tracking_protocol.entrants import Entrant, entrants_of
from airworthy.evaluation.tracking_protocol.store import MANIFEST_FILE, Store
from airworthy.evaluation.tracking_protocol.summing import summarize
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

__all__ = ["SUMMARY_FILE", "Evaluated", "evaluate"]

SUMMARY_FILE = "summary.json"


@dataclass(frozen=True)
class Evaluated:
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
        """Whether everything was flown."""
        return self.finished == self.blocks


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
        interrupted = _fly_all(config, flying, conditions, blocks, scenes, store, quiet, step)
        done = [item for item in blocks if store.has(item.name)]
        summary = _written(config, conditions, done, len(blocks), store)
        report = None
        if config.report and done:
            from airworthy.evaluation.tracking_protocol.report import write_report

            report = write_report(config, conditions, done, store, summary)
    return Evaluated(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _fly_all(
    config: EvaluateConfig,
    flying: Sequence[Entrant],
    conditions: Sequence[Condition],
    blocks: Sequence[Block],
    scenes: dict[str, Scene],
    store: Store,
    quiet: bool,
    step: Callable[[str], None] | None,
) -> bool:
    """Fly every block that is not finished; returns whether somebody stopped it."""
    by_name = {item.name: item for item in flying}
    left = [item for item in blocks if not store.has(item.name)]
    settings: dict[str, Setting] = {}
    flown_by = vehicle(config.vehicle)
    try:
        with _ticking(config, left, quiet) as told:
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
                if result is None:
                    return True
                store.keep(block.name, result, _meta(block, config))
                if step is not None:
                    step(block.name)
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def _ticking(config: EvaluateConfig, left: Sequence[Block], quiet: bool) -> Iterator[Callable[[], None]]:
    """A function to call after every tick, that moves a line of progress on; a flight that ends early jumps the rest."""
    ticks = sum(round(course(block.course).trajectory().duration * CONTROL_RATE) for block in left)
    bar = progress(range(ticks), "flying", quiet=quiet)

    def tick() -> None:
        next(bar, None)

    try:
        yield tick
    finally:
        bar.close()  # type: ignore[attr-defined]


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
