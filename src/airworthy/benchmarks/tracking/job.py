"""The job behind `airworthy evaluate`: pilots x families x conditions -> flights -> evidence, in one folder."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.tracking import report_text
from airworthy.benchmarks.tracking.adaptation import check_formula
from airworthy.benchmarks.tracking.block import CONTROL_RATE, BlockResult, ConditionBlock, Setting, file_name, fly_block
from airworthy.benchmarks.tracking.condition_change import change_of, drop_unchanged
from airworthy.benchmarks.tracking.condition_scene import ROOM, extent
from airworthy.benchmarks.tracking.conditions import Condition, Sweep, expanded, sweeps
from airworthy.benchmarks.tracking.config import (
    IDLE_RULES,
    EvaluateConfig,
    blocks_of,
    check,
    command_line,
    from_file,
    identity_of,
    quick,
    settled,
    vehicle_of,
    vehicle_word,
)
from airworthy.benchmarks.tracking.endings import endings
from airworthy.benchmarks.tracking.figures import (
    EstimatePanel,
    PlanPanel,
    Series,
    figure_distributions,
    figure_estimates,
    figure_plans,
    figure_published,
    figure_sweep,
    series_of,
)
from airworthy.benchmarks.tracking.idle_conditions import warn_where_idle
from airworthy.benchmarks.tracking.methods import Patience, TrackingMethod, methods_of
from airworthy.benchmarks.tracking.room_check import warn_where_tight
from airworthy.benchmarks.tracking.store import MANIFEST_FILE, VEHICLE_FILE, TrackingStore
from airworthy.benchmarks.tracking.tables import (
    OPTIONS,
    SOURCE,
    adaptation_of,
    condition_row,
    paired,
    published_ratios,
    published_row,
    published_rows,
    select,
)
from airworthy.bridges.remote.words import EXTERNAL_KINDS
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json, write_text
from airworthy.core.idle_options import refuse_idle
from airworthy.core.jobs.block_job import (
    SUMMARY_FILE,
    BlocksDone,
    counting,
    describe_machine,
    done_of,
    keep_each,
    left_of,
    refuse_foreign,
    warn_of_kept,
)
from airworthy.reports.page import markup, page_of
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.simulation import FlightTable
from airworthy.simulation.posterior import draws_record, posterior_of
from airworthy.tasks import TrackingProtocol
from airworthy.trajectories import course
from airworthy.vehicles import write_vehicle

__all__ = ["REPORT_FILE", "SUMMARY_FILE", "Evaluated", "evaluate", "papers", "summarize", "write_report"]

# ---- `report.html` of an evaluation: our simulated flights beside the published real ones, readable offline -----------------

REPORT_FILE = "report.html"
PLANS_MAX = 12
"""Conditions drawn from above, per pilot and family."""
PATH_POINTS = 120
FLYING = (0.3, 2.0)
"""Things between these heights are drawn [m]."""
AROUND = 1.2
"""Round a course, in plans [m]."""
JPEG_QUALITY = 82
ESTIMATED = ("baseline", "payload", "wind")
"""Conditions whose estimates are drawn over time."""


def write_report(
    config: EvaluateConfig,
    conditions: Sequence[Condition],
    blocks: Sequence[ConditionBlock],
    store: TrackingStore,
    summary: Mapping[str, Any],
) -> Path:
    """Write it into the store's folder.

    Args:
        config: Of the run.
        conditions: In order.
        blocks: Those that are finished.
        store: Where they lie.
        summary: Content of summary.json.

    Returns:
        The path of the report.
    """
    rows = summary["flights"]
    series = series_of(rows)
    lines = drawn_sweeps(rows)
    swept = {name for sweep in lines for name in sweep.conditions}
    main = [item for item in conditions if item.name not in swept]
    content = report_text.content(summary, config, conditions, store.identity)
    content |= {
        "figures": _figures(summary, main, series, config.protocol),
        "plans": _plans(config, main, blocks, store, series),
        "sweeps": [
            {"title": sweep.title, "svg": markup(figure_sweep(sweep, rows, series, config.protocol))} for sweep in lines
        ],
        "left_out": left_out(main, conditions),
        "told": _estimates(main, blocks, store, series),
        "seen": _first_pictures(main or list(conditions), blocks, store),
    }
    return write_text(store.folder / REPORT_FILE, page_of("airworthy.benchmarks.tracking", trim=False, **content))


def drawn_sweeps(rows: Sequence[Row]) -> list[Sweep]:
    """Return the sweeps of which at least two points were flown: these are lines, a single point is a condition like others."""
    flown = {row["condition"] for row in rows}
    return [sweep for sweep in sweeps() if sum(name in flown for name in sweep.conditions) > 1]


def left_out(main: Sequence[Condition], conditions: Sequence[Condition]) -> str:
    """Return which conditions the figures of single conditions do not show, in a sentence; empty where they show all.

    Args:
        main: Those that they show.
        conditions: All that were flown.
    """
    shown = {item.name for item in main}
    swept = [item.name for item in conditions if item.name not in shown]
    told = [f'Points of sweeps ({", ".join(swept)}) are drawn under "How much it bears".'] if swept else []
    if len(main) > PLANS_MAX:
        names = ", ".join(item.title for item in main[PLANS_MAX:])
        told.append(f"From above, the first {PLANS_MAX} conditions are drawn, and not {names}.")
    return " ".join(told)


def _figures(
    summary: Mapping[str, Any], main: Sequence[Condition], series: Sequence[Series], protocol: TrackingProtocol
) -> dict[str, Any]:
    named = {item.name for item in main}
    shown = [entry for entry in summary["aggregate"] if entry["condition"] in named or entry["condition"].startswith("all:")]
    rows, titles = summary["flights"], {item.name: item.title for item in main}
    found = {}
    if shown:
        found["beside"] = markup(figure_published(shown, series, protocol))
        found["distributions"] = markup(figure_distributions(rows, titles, series, protocol))
    return found


def _plans(
    config: EvaluateConfig,
    main: Sequence[Condition],
    blocks: Sequence[ConditionBlock],
    store: TrackingStore,
    series: Sequence[Series],
) -> list[dict[str, Any]]:
    """Return a figure per pilot and family: flights from above, a panel per condition."""
    known: dict[str, Scene] = {}
    settings = {item.name: _bare_setting(item, config, known) for item in main[:PLANS_MAX]}
    figures = []
    for index, one in enumerate(series):
        plans = []
        for item in main[:PLANS_MAX]:
            mine = [b for b in blocks if (b.method, b.family, b.condition.name) == (one.pilot, one.family, item.name)]
            if mine:
                plans.append(_plan(item, settings[item.name], mine, store))
        if plans:
            svg = figure_plans(plans, f"plans-{index}", f"Flights of {one.label} from above")
            figures.append({"title": one.label, "svg": markup(svg)})
    return figures


def _read(name: str, config: EvaluateConfig) -> Scene:
    """Return a scene by its name; of the run's own, unknown space is as was chosen, a condition's own knows none."""
    return scene(name, unknown=config.unknown if name == config.scene else None)


def _bare_setting(condition: Condition, config: EvaluateConfig, known: dict[str, Scene]) -> Setting:
    """Return a setting without splats and people, for where things stand."""
    name = condition.scene or config.scene
    if name not in known:
        known[name] = replace(_read(name, config), clouds={}, splats=())
    return Setting(replace(condition, light=1.0, people=0), config.course, config.scene, known)


def _plan(condition: Condition, setting: Setting, blocks: Sequence[ConditionBlock], store: TrackingStore) -> PlanPanel:
    course = np.asarray(setting.points.position)
    low, high = course.min(0)[:2] - AROUND, course.max(0)[:2] + AROUND
    paths = []
    for block in blocks:
        table, rows = store.flights(block.name), store.rows(block.name)
        position = table.vector("position").astype(float)
        for k, row in enumerate(rows):
            one = position[table.starts[k] : table.starts[k + 1]][: max(int(row["samples"]), 1)]
            paths.append((row["outcome"], one[np.unique(np.linspace(0, len(one) - 1, PATH_POINTS).astype(int))]))
    things = []
    for item in setting.scene.instances:
        lower, upper = extent(setting.scene, item)
        at_height = lower[2] < FLYING[1] and upper[2] > FLYING[0]
        if item.semantic not in ROOM and at_height and (lower[:2] < high).all() and (upper[:2] > low).all():
            things.append((lower, upper))
    return PlanPanel(condition.title, course, paths, things, (low, high))


def _estimates(
    main: Sequence[Condition], blocks: Sequence[ConditionBlock], store: TrackingStore, series: Sequence[Series]
) -> Any:
    """Return what pilots with a history network told over time; nothing where none did."""
    panels = []
    for one in series:
        lines = []
        for item in (item for item in main if item.name.partition(":")[0] in ESTIMATED):
            mine = [b for b in blocks if (b.method, b.family, b.condition.name) == (one.pilot, one.family, item.name)]
            tables = [table for b in mine if "estimate_mass_kg" in (table := store.flights(b.name)).columns]
            if tables:
                true = float(np.mean([row["ratio_true"] for b in mine for row in store.rows(b.name)]))
                lines.append((item.title.lower(), *_over_time(tables), true))
        if lines and any(np.isfinite(values).any() for _, _, values, _ in lines):
            panels.append(EstimatePanel(one.label, [line for line in lines if np.isfinite(line[2]).any(axis=0).all()]))
    return markup(figure_estimates(panels)) if panels else None


def _over_time(tables: Sequence[FlightTable]) -> tuple[Array, Array]:
    """Return times (n,) and estimates (flights, n), NaN where a flight had ended, from the second tick on."""
    rows = []
    for table in tables:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = table.columns["estimate_force_n"].astype(float) / table.columns["estimate_mass_kg"].astype(float)
        rows += [ratio[first:last] for first, last in zip(table.starts[:-1], table.starts[1:], strict=True)]
    longest = max(map(len, rows))
    padded = np.stack([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in rows])[:, 1:-1]
    known = np.isfinite(padded).any(axis=0)
    return (np.arange(1, longest - 1) / CONTROL_RATE)[known], padded[:, known]


def _first_pictures(
    conditions: Sequence[Condition], blocks: Sequence[ConditionBlock], store: TrackingStore
) -> list[dict[str, Any]]:
    """Return what the first flight of the first pilot saw under each condition."""
    shown = []
    for item in conditions:
        path = next((found for b in blocks if b.condition.name == item.name and (found := store.first_image(b.name))), None)
        if path is not None:
            shown.append({"title": item.title, "says": item.says, "image": _jpeg(path)})
    return shown


def _jpeg(path: Path) -> str:
    import base64
    import io

    from PIL import Image

    stream = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").save(stream, "JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


# -----------------------------------------------------------------------------------------------------------------------------

# ---- The content of an evaluation's `summary.json` --------------------------------------------------------------------------

Row = Mapping[str, Any]
PUBLISHED_COURSE = "robustness"
"""On which the paper's conditions were flown, but those with courses of their own."""


def summarize(rows: Sequence[Row], conditions: Sequence[Condition], config: EvaluateConfig) -> dict[str, Any]:
    """Build it, keys in a stable order.

    Args:
        rows: Of all finished flights.
        conditions: Of the run, in order.
        config: Of the run.
    """
    flown_by = vehicle_of(config)
    return {
        "version": __version__,
        "command": command_line(config),
        "protocol": asdict(config.protocol),
        "spread": asdict(config.spread),
        **draws_record([flown_by], config.between),
        "statistics": {**OPTIONS, "rates": "Wilson score", "means": "the wider of Student's t and bootstrap-t"},
        "flights": [{"vehicle": vehicle_word(config, flown_by), "seed": config.seed, **row} for row in rows],
        "aggregate": _aggregates(rows, conditions, config.course == PUBLISHED_COURSE),
        "endings": endings(rows),
        "published": {"source": SOURCE, "rows": [asdict(row) for row in published_rows()]},
        "against_first_pilot": _against_pilot(rows, conditions),
        "against_baseline": _against_baseline(rows, conditions),
        "adaptation": {
            "estimates": adaptation_of(rows),
            "published": [asdict(row) for row in published_ratios()],
            "formula": [asdict(item) for item in check_formula(flown_by)],
        },
    }


def papers(conditions: Sequence[Condition]) -> dict[str, tuple[str, ...]]:
    """Return rows of the paper that several conditions stand beside, and these conditions' names."""
    named = dict.fromkeys(item.paper for item in conditions if item.paper)
    groups = {paper: tuple(item.name for item in conditions if item.paper == paper) for paper in named}
    return {paper: names for paper, names in groups.items() if len(names) > 1}


def _aggregates(rows: Sequence[Row], conditions: Sequence[Condition], published: bool) -> list[dict[str, Any]]:
    """Return one entry per condition, family and pilot, and one per group of conditions that is a row of the paper.

    What was flown on another course than the paper's (not `published`) has no row of it beside it.
    """
    found = []
    wanted: list[tuple[str, str, tuple[str, ...], str]] = [
        (item.name, item.title, (item.name,), item.paper if published or item.course else "") for item in conditions
    ]
    wanted += [(f"all:{paper}", paper, names, paper) for paper, names in papers(conditions).items()]
    several = papers(conditions)
    for name, title, names, paper in wanted:
        real_flights = published_row(paper) if paper and (len(names) > 1 or paper not in several) else None
        for family in dict.fromkeys(row["family"] for row in rows):
            for pilot in dict.fromkeys(row["pilot"] for row in rows):
                mine = select(rows, condition=names, family=family, pilot=pilot)
                if mine:
                    head = {"condition": name, "title": title, "family": family, "pilot": pilot, "variant": mine[0]["variant"]}
                    found.append(
                        {**head, **condition_row(mine), "published": None if real_flights is None else asdict(real_flights)}
                    )
    return found


def _against_pilot(rows: Sequence[Row], conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Return every other pilot minus the first, flight by flight."""
    pilots = list(dict.fromkeys(row["pilot"] for row in rows))
    found = []
    for item in conditions:
        for family in dict.fromkeys(row["family"] for row in rows):
            first = select(rows, condition=item.name, family=family, pilot=pilots[0]) if pilots else []
            for pilot in pilots[1:]:
                mine = select(rows, condition=item.name, family=family, pilot=pilot)
                if mine and first:
                    head = {"condition": item.name, "family": family, "pilot": pilot, "minus": pilots[0]}
                    found.append({**head, **paired(mine, first)})
    return found


def _against_baseline(rows: Sequence[Row], conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Return every condition minus the baseline, flight by flight, where they share a course."""
    found = []
    for pilot in dict.fromkeys(row["pilot"] for row in rows):
        for family in dict.fromkeys(row["family"] for row in rows):
            base = select(rows, condition="baseline", family=family, pilot=pilot)
            for item in conditions:
                mine = select(rows, condition=item.name, family=family, pilot=pilot)
                paired_row = paired(mine, base) if mine and base and item.name != "baseline" else {"pairs": 0}
                if paired_row["pairs"]:
                    found.append({"condition": item.name, "family": family, "pilot": pilot, "minus": "baseline", **paired_row})
    return found


# -----------------------------------------------------------------------------------------------------------------------------


class Evaluated(BlocksDone):
    """What a run left."""


def evaluate(
    config: EvaluateConfig,
    quiet: bool = True,
    methods: Sequence[TrackingMethod] | None = None,
    step: Callable[[str], None] | None = None,
) -> Evaluated:
    """Fly what has not been flown, judge everything, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        methods: Who flies, instead of the pilots that `config.pilot` names; their names must differ.
        step: Told the name of each block when it is finished.

    Raises:
        AirworthyError: With one sentence, if something cannot be flown, or the folder holds something else.
    """
    expanded(config.conditions)
    refuse_idle(config, IDLE_RULES)
    config = quick(config)
    check(config)
    refuse_foreign(config.out, MANIFEST_FILE)
    flown_by, _ = vehicle_of(config), course(config.course)
    flying = methods_of(config.pilot, Patience(config.patience, config.wait)) if methods is None else list(methods)
    config = settled(config, flying)
    if config.randomize is not None:
        posterior_of(flown_by, config.between)  # refuses a vehicle of which none can be drawn
    for one in flying:
        if one.sensors is not None:
            one.sensors(flown_by)  # refuses a vehicle without a camera before anything is written
    names = [file_name(item.name) for item in flying]
    if not names or len(set(names)) != len(names):
        raise AirworthyError(f"Pilots of one evaluation need names of their own; they are {', '.join(names) or 'none'}.")
    conditions, scenes = expanded(config.conditions), dict[str, Scene]()
    for item in conditions:
        name = item.scene or config.scene
        scenes[name] = scenes.get(name) or _read(name, config)
    changes = {item.name: change_of(item, config.course, config.scene, scenes) for item in conditions}
    dropped = drop_unchanged(config.conditions, conditions, changes, config.course, config.scene)
    if dropped:
        conditions = tuple(item for item in conditions if item.name not in dropped)
        config = replace(config, conditions=tuple(item.name for item in conditions))
    identity = identity_of(config, flying, {name: scene_digest(item) for name, item in scenes.items()}, flown_by)
    blocks = blocks_of(config, flying)
    warn_where_idle(conditions, config.course, config.scene, scenes, flying, flown_by)
    if config.contact != "none":
        warn_where_tight(flown_by, conditions, config.course, config.scene, scenes)
    with lock_folder(make_folder(config.out)):
        store = TrackingStore(config.out, identity)
        if from_file(config.vehicle):
            write_vehicle(flown_by, store.folder / VEHICLE_FILE)
        outside = {item.name for item in flying if item.identity.get("pilot") in EXTERNAL_KINDS}
        warn_of_kept([block for block in blocks if block.method in outside], store, config.out)
        finished = _flown(config, flying, left_of(blocks, store), scenes, quiet)
        rates = {item.name: item.rate for item in flying}
        interrupted = keep_each(
            finished, lambda block, result: store.keep(block.name, result, _meta(block, config, rates[block.method])), step
        )
        done = done_of(blocks, store)
        told = {"changes": {item.name: changes[item.name] for item in conditions}, "left_out": dropped}
        summary = _written(config, conditions, done, len(blocks), store, told)
        report = None
        if config.report and done:
            report = write_report(config, conditions, done, store, summary)
    return Evaluated(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _flown(
    config: EvaluateConfig,
    flying: Sequence[TrackingMethod],
    left: Sequence[ConditionBlock],
    scenes: dict[str, Scene],
    quiet: bool,
) -> Generator[tuple[ConditionBlock, BlockResult], None, None]:
    """Fly blocks, one after the other."""
    by_name = {item.name: item for item in flying}
    settings: dict[str, Setting] = {}
    flown_by = vehicle_of(config)
    with counting(sum(map(_ticks, left)), "flying", quiet) as progress_callback:
        for block in left:
            if block.condition.name not in settings:
                # One at a time: an edited scene of splats is large.
                settings = {block.condition.name: Setting(block.condition, config.course, config.scene, scenes)}
            try:
                result = fly_block(
                    block,
                    settings[block.condition.name],
                    by_name[block.method],
                    flown_by,
                    spread=config.spread,
                    protocol=config.protocol,
                    seed=config.seed,
                    contact=config.contact,
                    randomization=config.between,
                    device=config.device,
                    progress_callback=progress_callback,
                )
            finally:
                # Simulators and pilots know each other, so their scenes and images (hundreds of megabytes in a captured place)
                # would wait for Python's rare whole collections while the next block takes as much again.
                gc.collect()
            if result is None:  # stopped while it flew
                raise KeyboardInterrupt
            yield block, result


def _ticks(block: ConditionBlock) -> int:
    """Commands of a block's pilot."""
    return round(course(block.course).trajectory().duration * CONTROL_RATE)


def _meta(block: ConditionBlock, config: EvaluateConfig, rate: float) -> dict[str, Any]:
    """Said of a block's flights beside them, at `rate` commands per second; the same whatever machine flew them."""
    return {
        "version": __version__,
        "vehicle": vehicle_word(config, vehicle_of(config)),
        "scene": block.scene,
        "course": block.course,
        "pilot": block.method,
        "seed": config.seed,
        "family": block.family,
        "condition": asdict(block.condition),
        "control_rate_hz": rate,
    }


def _written(
    config: EvaluateConfig,
    conditions: Sequence[Condition],
    done: Sequence[ConditionBlock],
    planned: int,
    store: TrackingStore,
    told: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the table of results and the summary; `told` is what conditions change."""
    names = [item.name for item in done]
    store.write_results(names)
    rows = [row for name in names for row in store.rows(name)]
    summary = summarize(rows, conditions, config)
    state = {"complete": len(done) == planned, "blocks": planned, "blocks_finished": len(done), "digest": store.digest}
    summary |= {**told, "state": state, "hardware": describe_machine()}
    write_json(store.folder / SUMMARY_FILE, summary)
    return summary
