"""What the tracking protocol makes of flights, places and drones that are written here: numbers, sentences, figures.

Modules: airworthy.benchmarks.tracking.adaptation, .block, .condition_scene, .conditions, .figures, .job, .methods,
.report_text, .room_check, .tables, .trial.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import PLACE, changed_expert, stage
from tests.fixtures.figures import figure_values
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.fixtures.transcripts import Transcript, check_text, plain

from airworthy import __version__
from airworthy.benchmarks.tracking import (
    adaptation,
    block,
    condition_scene,
    conditions,
    figures,
    job,
    methods,
    report_text,
    room_check,
    tables,
    trial,
)
from airworthy.benchmarks.tracking.block import ConditionBlock, Setting
from airworthy.benchmarks.tracking.config import IDLE_RULES, EvaluateConfig
from airworthy.evaluation.metrics import FlightResult
from airworthy.geometry import Box
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.scenes.record import SplatPlacement
from airworthy.scenes.splats import Splats
from airworthy.simulation import FlightTable
from airworthy.tasks import TrackingProtocol, TrackingReference
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

FILES = Path(__file__).parent / "snapshots" / "tracking"
CARL = vehicle("carl")
OUTCOMES = ("success", "success_recovered", "partial", "collision", "off_course", "out_of_bounds", "diverged", "pilot_error")
CONDITIONS = ("baseline", "payload", "payload:1.4", "payload:1.5", "noise:extreme", "noise:challenged", "wind")
FAMILY = ("semi_kinematic",)


def by_line(value: Any, name: str = "") -> list[str]:
    if isinstance(value, dict) and any(isinstance(part, dict | list | tuple) for part in value.values()):
        return [line for key, part in value.items() for line in by_line(part, f"{name}.{key}".strip("."))]
    if isinstance(value, list | tuple) and any(isinstance(part, dict | list | tuple) for part in value):
        return [line for k, part in enumerate(value) for line in by_line(part, f"{name}[{k}]")]
    return [f"{name} = {plain(value)}"]


def flown(pilot: str, family: str, condition: str, flight: int, k: int) -> dict[str, Any]:
    """A row whose values follow from its number."""
    row: dict[str, Any] = {}
    for n, item in enumerate(fields(FlightResult)):
        if item.name == "env":
            continue
        number = 1 + (k * (n + 3)) % 7
        row[item.name] = number if "int" in str(item.type) else 0.1 * number if "float" in str(item.type) else ""
    outcome = OUTCOMES[(k * k + k // 3) % len(OUTCOMES) if k % 3 else k % 2]
    row |= {"outcome": outcome, "samples": 0 if k == 5 else 20 + k, "cause": "" if outcome == "success" else f"reason {k % 4}"}
    row |= {"pilot": pilot, "family": family, "condition": condition, "flight": flight, "course": "robustness"}
    row |= {
        "variant": "sv_net" if pilot == "svnet" else "",
        "scene": "hall",
        "mass_kg": 1.0 + 0.01 * k,
        "thrust_n": 20.0 + 0.1 * k,
    }
    true = 5.0 - (1.0 if "payload" in condition else 0.0)
    row |= {"ratio_true": true, "ratio_nominal": 5.0, "ratio_flown": true * (1.0 + 0.01 * (k % 5))}
    row |= {
        "ratio_told": true + 0.1 * (k % 3) if pilot == "svnet" else float("nan"),
        "ratio_told_std": 0.05,
        "pilot_failures": k % 2,
    }
    return row


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for pilot, families in (("mpc", ("semi_kinematic", "rigid")), ("svnet", ("rigid",))):
        for family in families:
            for name in CONDITIONS:
                found += [flown(pilot, family, name, flight, len(found) + flight) for flight in range(4)]
    return found


@pytest.fixture(scope="module")
def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    config = EvaluateConfig(pilot=("mpc", "svnet"), conditions=CONDITIONS, vehicle="carl", family=FAMILY)
    made = job.summarize(rows, conditions.expanded(CONDITIONS), config)
    state = {"complete": True, "blocks": 3, "blocks_finished": 3, "digest": "0123456789abcdef" * 4}
    return {**made, "state": state, "hardware": {"processor": "one & only"}}


def test_summaries(rows: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    shown = {key: value for key, value in summary.items() if key not in ("version", "flights", "published")}
    text = "\n".join(by_line(shown)).replace(__version__, "VERSION")
    check_text(FILES / "summary.txt", text + "\n")
    other = job.summarize(
        rows[:8], conditions.expanded(("baseline",)), EvaluateConfig(course="line", vehicle="carl", family=FAMILY)
    )
    assert all(entry["published"] is None for entry in other["aggregate"])


def test_the_text_of_the_page(rows: list[dict[str, Any]], summary: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys, {__version__: "VERSION"})
    config, chosen = (
        EvaluateConfig(pilot=("mpc", "svnet"), conditions=CONDITIONS, vehicle="carl", family=FAMILY),
        conditions.expanded(CONDITIONS),
    )
    identity = {"vehicle_sha256": "abc", "pilots": {"mpc": {"pilot": "mpc"}, "svnet": {"pilot": "svnet", "weights": "def"}}}
    made = report_text.content(summary, config, chosen, identity)
    for key in ("config", "notes"):
        made.pop(key, None)
    told.run("all", lambda: print("\n".join(by_line(made))))
    less = {**summary, "aggregate": [], "flights": [], "state": {**summary["state"], "complete": False}}
    told.run("nothing", lambda: (report_text._cards([], [], config.protocol), report_text._verdict([], less["state"])))
    told.run("failures", lambda: report_text._failures_note([{"outcome": "collision", "cause": "x"}] * 121))
    told.run("many", lambda: len(report_text._failures([{**rows[4], "outcome": "collision"}] * 121, {})))
    told.run("thresholds", lambda: report_text._thresholds(TrackingProtocol(yaw_error_max_rad=0.5, end_radius_m=0.75)))
    told.check(FILES / "text.txt")


def test_when_options_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    for changes in (
        {},
        {"contact": "none"},
        {"conditions": ("wind",)},
        {"quick": True},
        {"scene": "forest"},
        {"pilot": ("mpc",)},
    ):
        given = EvaluateConfig(**changes)
        told.run(f"{changes}", lambda given=given: [(rule.options, bool(rule.when(given))) for rule in IDLE_RULES])
    told.check(FILES / "idle.txt")


def test_numbers_of_motion() -> None:
    values: dict[str, Any] = {}
    axis, added = np.array([[0.0, 0.6, 0.8], [0.0, 0.0, 1.0]]), np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    values["absorbed"] = adaptation.absorbed_ratio([10.0, 20.0], axis, added, [0.5, 0.25])
    values["unexplained"] = adaptation.unexplained(axis, added)
    values["best"] = list(adaptation.best_ratio(added, axis, [0.5, 0.4]))
    values["nothing"] = list(adaptation.best_ratio(added, axis, [0.0, 0.0]))
    table = motion()
    values["flown"] = adaptation.flown_ratio(table, 30.0, 4)
    values["of each"] = adaptation.flown_ratio(table, [30.0, 40.0], 4, 9.8)
    values["estimated"] = list(adaptation.estimated_ratio(table))
    bare = FlightTable.from_columns({k: v for k, v in table.columns.items() if not k.startswith(("command", "estimate"))})
    values["untold"] = [adaptation.flown_ratio(bare, 30.0, 4), *adaptation.estimated_ratio(bare)]
    still = table.vector("velocity")[:1]
    values["one row"] = adaptation._ratio_of(table.t[:1], still, table.vector("attitude")[:1], np.ones(1), 9.81)
    for item in adaptation.check_formula(CARL, (0.0, 60.0, 120.0), 1.5):
        values[f"formula {item.angle_deg:g}"] = [
            item.force,
            item.predicted,
            item.fitted,
            item.remainder_predicted,
            item.remainder,
        ]
    for before, after in (((5.0, 5.0), (4.5, 4.0)), ((5.0, 5.0), (4.5, 5.0)), ((5.0, 5.0), (4.5, float("nan")))):
        pair = [dict(zip(("mean", "true"), part, strict=True)) for part in (before, after)]
        values[f"step {before} {after}"] = adaptation.payload_step(*pair)
    check_snapshot(FILES / "motion.txt", values, rtol=1e-5)


def motion() -> FlightTable:
    """Two flights of eight rows: the second meets something at its sixth."""
    t = np.tile(np.arange(8) * 0.05, 2)
    k = np.arange(16)
    columns: dict[str, Any] = {"env": np.repeat([0, 1], 8), "t": t, "status": np.zeros(16, np.int8)}
    for axis, scale in zip("xyz", (0.3, -0.2, 0.1), strict=True):
        columns[f"position_{axis}_m"] = scale * t + 0.3 * (axis == "z")
        columns[f"velocity_{axis}_m_s"] = scale * np.sin(3.0 * t + k // 8)
        columns[f"rate_{axis}_rad_s"] = 0.0 * t
    for axis, value in zip("xyzw", (0.05, -0.1, 0.02, 1.0), strict=True):
        columns[f"attitude_{axis}"] = value + 0.02 * np.cos(2.0 * t)
    columns["command_thrust_n"] = np.where(k % 8 == 3, 0.5, 11.0 + np.sin(k))
    columns["estimate_mass_kg"] = 1.0 + 0.02 * (k % 5)
    columns["estimate_force_n"] = np.where(k == 2, np.nan, 6.0 + 0.1 * (k % 3))
    columns["clearance_m"] = np.where(k == 15, 0.0, 0.5 + 0.01 * k)
    columns["saturated"] = 0.0 * t
    return FlightTable.from_columns(columns)


# ---- places -----------------------------------------------------------------------------------------------------------------


def room() -> Scene:
    """The stage with pillars that overlap, a ladder, a shelf, a cloud and another that is carried."""
    base = stage(0, 0)
    shapes = {**base.shapes, "pillar": Box((0.15, 0.2, 1.0)), "shelf": Box((0.4, 0.2, 0.6))}
    things = (
        Instance("pillar", (0.5, -1.0, 1.0), semantic="pillar", name="one"),
        Instance("pillar", (0.7, -1.1, 1.0), semantic="pillar", name="two", attitude=(0.0, 0.0, 0.6, 0.8)),
        Instance("pillar", (-3.8, 3.0, 1.0), semantic="pillar", name="far"),
        Instance("shelf", (-1.0, 1.2, 0.6), semantic="shelf", name="shelf", scale=0.9),
        Instance("shelf", (1.0, 1.5, 2.2), semantic="shelf", name="hanging"),
    )
    rng = np.random.default_rng(2)
    count = 60
    cloud = Splats(
        rng.uniform((-1.6, 0.6, 0.0), (0.2, 1.8, 1.4), (count, 3)).astype(np.float32),
        np.tile(np.array([0, 0, 0, 1], np.float32), (count, 1)),
        np.full((count, 3), 0.02, np.float32),
        np.full(count, 0.8, np.float32),
        np.zeros((count, 1, 3), np.float32),
    )
    placed = (SplatPlacement("cloud", name="cloud"), SplatPlacement("cloud", name="moved", position=(0.3, 0.0, 0.0)))
    return replace(base, shapes=shapes, instances=(*base.instances, *things), clouds={"cloud": cloud}, splats=placed)


PATH = np.stack([np.linspace(-2.0, 2.0, 41), 0.3 * np.sin(np.linspace(0.0, 3.0, 41)), np.full(41, 1.0)], axis=1)


def contents(item: Scene) -> list[Any]:
    shapes = [(name, shape) for name, shape in sorted(item.shapes.items())]
    return [
        [(thing.name, thing.shape, thing.position, thing.semantic, thing.materials, thing.collide) for thing in item.instances],
        [(name, plain(shape)) for name, shape in shapes],
        [(part.cloud, part.name, part.attached or "") for part in item.splats],
        {name: len(cloud) for name, cloud in item.clouds.items()},
        sorted(item.materials),
        [actor.name for actor in item.actors],
    ]


def test_places(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    item = room()
    plain_condition = conditions.condition("baseline")
    for name, changes in (
        ("as it is", {}),
        ("cleared", {"clear": 1.0}),
        ("without pillars", {"removed": ("pillar",)}),
        ("without shelves", {"removed": ("shelf", "gate")}),
        ("covered", {"covered": True}),
        ("peopled", {"people": 5}),
        ("nothing near", {"removed": ("no such",), "clear": 0.01}),
    ):
        wanted = replace(plain_condition, **changes)
        told.run(name, lambda wanted=wanted: contents(condition_scene.place_of(item, wanted, PATH)))
    bare = replace(item, clouds={}, splats=())
    told.run("no splats", lambda: contents(condition_scene.without(bare, PATH, ["shelf"])))
    darker = condition_scene.place_of(item, replace(plain_condition, light=0.5), PATH)
    told.run("darker", lambda: [light.intensity for light in darker.lights if hasattr(light, "intensity")])
    told.run("extents", lambda: [condition_scene.extent(item, thing) for thing in item.instances[3:]])
    told.run("distances", lambda: [condition_scene.distance(item, thing, PATH) for thing in item.instances])
    told.run("box", lambda: plain(condition_scene.item_box(item, item.instances[4], 0.1)))
    boxes = [(np.array([x, 0.0, 0.0]), np.array([x + 1.0, 1.0, 1.0])) for x in (0.0, 3.0, 0.5, 1.5, 4.0)]
    told.run("merged", lambda: condition_scene._merged(boxes))
    told.check(FILES / "places.txt")


def test_walkers() -> None:
    item = replace(room(), clouds={}, splats=(), instances=room().instances[:3])
    yaw = np.linspace(-0.5, 0.5, 41)
    ground = condition_scene.free_ground(item, PATH, yaw)
    keys = methods.keys_of(3, np.arange(3))
    walkers = condition_scene.Walkers(ground, keys, 2, 4.0)
    values: dict[str, Any] = {
        "ground": [ground.position, ground.along],
        "links": [list(map(float, part)) for part in ground.neighbours],
    }
    values["corners"] = walkers.corners
    for time in (0.0, 0.35, 2.0, 99.0):
        values[f"at {time}"] = list(walkers.at(np.array([time, time + 0.1, time])))
    values["seen"] = (
        condition_scene._in_view(np.array([[0.0, 1.5], [3.0, 0.2], [9.0, 0.0]]), PATH, yaw).sum(axis=1).astype(float)
    )
    values["linked"] = [len(part) for part in condition_scene._linked(SceneBatch(item, 1), ground.position[:6], PATH)]
    check_snapshot(FILES / "walkers.txt", values, rtol=1e-6)
    with pytest.raises(Exception, match="no room for people"):
        condition_scene.free_ground(replace(item, bounds=replace(item.bounds, upper=(-3.0, -3.0, 3.0))), PATH, yaw)


def test_drones() -> None:
    path = course("robustness").trajectory()
    values: dict[str, Any] = {}
    for name, spread in (("usual", methods.VehicleSpread()), ("wide", methods.VehicleSpread(0.5, 0.3, 0.2, 0.1, 0.05))):
        for condition in ("baseline", "payload", "wind"):
            found = methods.draw_drones(CARL, path, spread, conditions.condition(condition), 7, np.array([0, 3, 8]))
            key = f"{name} {condition}"
            values[key] = [found.mass, found.thrust, found.side, found.position, found.velocity, found.attitude]
            values[f"{key} ratios"] = [found.ratio, found.nominal, found.full_of("rigid"), found.full_of("semi_kinematic")]
            gust = trial.gust_of(conditions.condition(condition), path, found, 20.0)
            values[f"{key} gust"] = "none" if gust is None else [gust.start, gust.end, gust.acceleration]
    still = trial.gust_of(conditions.condition("wind"), course("hover").trajectory(), found, 20.0)
    values["still"] = still.acceleration if still else "none"
    check_snapshot(FILES / "drones.txt", values, rtol=1e-7)


def test_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    for name in conditions.condition_names():
        told.run(name, lambda name=name: [plain(item) for item in conditions.expanded((name,))])
    for name in (
        "wind:2.25",
        "noise:challenged",
        "wind:x",
        "wind:inf",
        "wind:101",
        "delay:0.6",
        "payload:0.05",
        "winds",
        "wind:",
        ":3",
    ):
        told.run(name, lambda name=name: plain(conditions.condition(name)))
    for changes in (
        {"people": 33},
        {"people": -1},
        {"mass_spread": 1.0},
        {"thrust_spread": 1.0},
        {"light": 101.0},
        {"clear": 101.0},
    ):
        told.run(f"{changes}", lambda changes=changes: replace(conditions.condition("baseline"), **changes))
    for changes in (
        {"mass": 10.0},
        {"mass": 0.1},
        {"delay": 0.5},
        {"gust": 100.0},
        {"people": 32},
        {"noise": "lot"},
        {"gust": -1.0},
    ):
        told.run(f"{changes}", lambda changes=changes: plain(replace(conditions.condition("baseline"), **changes)))
    for level in conditions.noise_levels():
        told.run(level, lambda level=level: plain(conditions.noise_level(level)))
    told.run("none", lambda: conditions.expanded(()))
    told.run("sweeps", lambda: [(plain(item), item.conditions) for item in conditions.sweeps()])
    told.run("published", lambda: [(plain(row), row.count, row.successes) for row in tables.published_rows()])
    told.run("ratios", lambda: [plain(row) for row in tables.published_ratios()])
    told.run("papers", lambda: job.papers(conditions.expanded(("all",))))
    told.check(FILES / "conditions.txt")


# ---- what became of flights -------------------------------------------------------------------------------------------------


def result(outcome: str, **more: Any) -> FlightResult:
    given: dict[str, Any] = {}
    for item in fields(FlightResult):
        given[item.name] = 0 if "int" in str(item.type) else 0.0 if "float" in str(item.type) else ""
    return FlightResult(**{**given, "outcome": outcome, **more})


def test_causes(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    table, protocol = motion(), TrackingProtocol()
    place = condition_scene.populated(replace(room(), clouds={}, splats=()), 1)
    batch = SceneBatch(place, 2)
    reference = TrackingReference.from_trajectory(course("hover").trajectory(), 20.0)
    near = TrackingReference.from_trajectory(course("line").trajectory(), 20.0)
    for name, item in (
        ("success", result("success")),
        ("pilot", result("pilot_error")),
        ("partial", result("partial", yaw_error_end_rad=0.5, yaw_error_median_rad=1.0)),
        ("diverged", result("diverged")),
        ("collision", result("collision", collisions=1)),
        ("out", result("out_of_bounds", duration_s=3.21)),
        ("end", result("off_course", end_distance_m=1.234)),
    ):
        for followed in (reference, near):
            told.run(name, lambda item=item, f=followed: block.causes_of([item, item], table, f, protocol, batch, "ValueError"))
    strict = TrackingProtocol(path_distance_max_m=0.02)
    told.run("far", lambda: block.causes_of([result("off_course")] * 2, table, near, strict, batch))
    things = [*range(-1, len(place.instances) + 1)]
    told.run("names", lambda: [block._name(k, batch, 1) for k in things])
    told.run("nobody", lambda: block._name(99, SceneBatch(stage(0, 0), 1), 0))
    told.check(FILES / "causes.txt")


def test_decisions_are_written_to_rows() -> None:
    tick, env = np.array([0, 1, 2, 0, 1, 3]), np.array([0, 0, 0, 1, 1, 1])
    decided = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]), np.array([[7.0, 8.0], [9.0, 10.0]])]
    values: dict[str, Any] = dict(block._by_tick(("a", "b"), decided, tick, env))
    assert block._by_tick(("a",), [], tick, env) == {}
    for family in ("rigid", "semi_kinematic"):
        one = ConditionBlock("my pilot", family, conditions.condition("noise:extreme"), "line", PLACE, 4, 3)
        values[f"{family} noise"] = list(block._model_noise(one, changed_expert("my pilot", None)))
        values[f"{family} name"], values[f"{family} numbers"] = one.name, one.number.astype(float)
        values[f"{family} ticks"] = job._ticks(one)
    setting = Setting(conditions.condition("baseline"), "line", PLACE, {PLACE: stage(0, 0)})
    values["points"] = [setting.points.position[:3], len(setting.points.position)]
    plan = block._plan(setting, SimpleNamespace(geometry=None))  # type: ignore[arg-type]
    values["plan"] = [plan.duration, plan.latency, *plan.region]
    check_snapshot(FILES / "decisions.txt", values)


def test_courses_that_pass_too_near(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    scenes = {PLACE: room()}
    setting = Setting(conditions.condition("baseline"), "line", PLACE, {PLACE: replace(room(), clouds={}, splats=())})
    for reach in (0.1, 0.9, 3.0):
        told.run(f"{reach} m", lambda reach=reach: room_check.tight_things(setting, reach))
    for size in ((0.15, 0.15, 0.15), (0.9, 0.2, 0.1)):
        wide = replace(CARL, body=replace(CARL.body, size=size, center=(0.05, 0.0, -0.1)))
        for names in (("baseline",), ("baseline", "lighting", "payload")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                room_check.warn_where_tight(wide, conditions.expanded(names), "line", PLACE, scenes)
            told.run(f"{size} {names}", lambda caught=caught: [str(item.message) for item in caught])
    told.check(FILES / "near.txt")


# ---- figures ----------------------------------------------------------------------------------------------------------------


def test_figures(rows: list[dict[str, Any]], summary: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        figures, "inline_svg", lambda figure, name, words: drawn.update({name: [words, *figure_values(figure)]}) or name
    )
    series = figures.series_of(rows)
    named = {item.name: item.title for item in conditions.expanded(CONDITIONS)}
    figures.figure_published(summary["aggregate"], series)
    figures.figure_distributions(rows, named, series, TrackingProtocol(proximity_m=0.5))
    for sweep in conditions.sweeps():
        if sweep.name in ("payload", "noise", "delay"):
            figures.figure_sweep(sweep, rows, series)
    ends = np.array([-2.5, -1.0]), np.array([2.5, 1.5])
    paths = [("success", PATH), ("collision", PATH[:20] + 0.1), ("partial", PATH[:, [1, 0, 2]])]
    things = [(np.array([0.0, 0.5, 0.0]), np.array([0.5, 0.9, 1.0]))]
    turned = figures.PlanPanel("Turned", PATH[:, [1, 0, 2]], [], [], (ends[0][::-1], ends[1][::-1]))
    panels = [figures.PlanPanel(f"Panel {k}", PATH, paths[: k + 1], things[:k], ends) for k in range(4)]
    figures.figure_plans([*panels, turned], "plans", "From above")
    figures.figure_plans(panels[:1], "one", "From above")
    time = np.arange(10) * 0.05
    estimates = np.array([5.0 + 0.1 * np.sin(time), np.where(time > 0.3, np.nan, 4.8 + time)])
    panel = figures.EstimatePanel("svnet, rigid", [("baseline", time, estimates, 5.0), ("payload", time, 0.8 * estimates, 4.0)])
    figures.figure_estimates([panel])
    figures.figure_estimates([panel] * 3)
    drawn["series"] = [[one.pilot, one.family, one.color, one.label, str(one.mark), str(one.line)] for one in series]
    drawn["drawn"] = [sweep.name for sweep in job.drawn_sweeps(rows)]
    check_snapshot(FILES / "figures.txt", {name: condensed(parts) for name, parts in drawn.items()}, rtol=1e-7, of_means=1e-7)


def test_estimates_over_time(rows: list[dict[str, Any]]) -> None:
    table = motion()
    time, values = job._over_time([table])
    short = FlightTable.from_columns({name: column[:12] for name, column in table.columns.items()})
    check_snapshot(FILES / "over_time.txt", {"time": time, "values": values, "uneven": list(job._over_time([table, short]))})
    kinds = {outcome: tables.class_of(outcome) for outcome in (*OUTCOMES, "aborted")}
    pairs = tables.paired([row for row in rows if row["pilot"] == "mpc"], [row for row in rows if row["pilot"] == "svnet"])
    values_of = {"classes": kinds, "pairs": pairs, "none": tables.paired(rows[:2], []), "protocol": asdict(TrackingProtocol())}
    check_snapshot(FILES / "paired.txt", values_of)
