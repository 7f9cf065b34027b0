"""What the room of learning computes, number by number: roll-outs, data sets, their exports, metrics, charts, hover."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.learning.datasets import DatasetConfig, ExpertDataset, card, card_pictures, synthesize_dataset
from airworthy.learning.datasets.card_pictures import plan_picture, sheet, spread_pairs
from airworthy.learning.datasets.card_svg import Panel, histogram, time_bar
from airworthy.learning.datasets.lerobot import export_lerobot, image_stats, merged, stats_of
from airworthy.learning.datasets.shard_maker import Sharding
from airworthy.learning.gradient import evaluation, hover
from airworthy.learning.gradient.evaluation import HoverProtocol, conditions
from airworthy.learning.gradient.hover import HoverCost, HoverStart
from airworthy.learning.svnet import adaptation, data_loader, metrics, model, report
from airworthy.learning.svnet.data import batch_order
from airworthy.learning.synthesis.config import Stages, SynthesisConfig, evaluation_set, flight_camera, noise_level, view_side
from airworthy.learning.synthesis.plan import RolloutPlan
from airworthy.pilots.svnet.variants import VARIANTS
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent / "snapshots"
SMALL = DatasetConfig(
    courses=("robustness", "line"), per_second=0.5, repetitions=2, length=0.8, shard=6, scene="empty_room", view="16", seed=7
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> ExpertDataset:
    folder = tmp_path_factory.mktemp("set") / "set"
    assert synthesize_dataset(SMALL, folder).complete
    return ExpertDataset.open(folder)


def test_roll_outs(dataset: ExpertDataset) -> None:
    values: dict[str, Any] = {key: value for key, value in vars(dataset).items() if isinstance(value, np.ndarray)}
    values = {key: value if value.dtype.kind in "biuf" else condensed(value.tolist()) for key, value in values.items()}
    values["split"], values["line"] = list(dataset.split()), list(dataset.split("line"))
    assert dataset.images is not None
    values["shape"] = dataset.images.shape
    values["order"] = list(batch_order(np.arange(17), 5, 3, "history", 2))
    check_snapshot(SNAPSHOTS / "rollouts.txt", values, 1e-4, 1e-4)


def test_the_card(dataset: ExpertDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its panels, with every number drawn; its pictures, coarsely."""
    values: dict[str, Any] = {}
    groups = card._groups(dataset)
    values["groups"] = condensed([json.loads(json.dumps(group, default=str)) for group in groups])
    values["pairs"] = [spread_pairs(dataset, count) for count in (1, 3, 8, 200)]
    values["of line"] = spread_pairs(dataset, 5, ("line",))
    check_snapshot(SNAPSHOTS / "card.txt", values, 1e-3, 1e-3)
    assert dataset.images is not None
    pictures = {"plan": plan_picture(dataset, "robustness", None, 200)}
    pictures["sheet"] = sheet(dataset.images, spread_pairs(dataset, 7), [str(k) for k in spread_pairs(dataset, 7)], 3, 240)
    rows = {f"{name} {k}": band for name, picture in pictures.items() for k, band in enumerate(np.array_split(picture, 6))}
    check_snapshot(SNAPSHOTS / "card_pictures.txt", rows, 1e-2, 5e-3)


def test_the_whole_course_is_in_its_picture(monkeypatch: pytest.MonkeyPatch, dataset: ExpertDataset) -> None:
    """From its first instant to its last; as wide as the picture with a margin."""
    asked: list[Any] = []

    def sampled(times: Any) -> Any:
        asked.append(times)
        return SimpleNamespace(position=np.stack([2.0 * times, 0.0 * times, 0.0 * times], axis=1))

    line = SimpleNamespace(duration=7.0, sample=sampled)
    monkeypatch.setattr(card_pictures, "course", lambda name: SimpleNamespace(trajectory=lambda: line))
    plan_picture(dataset, "robustness", None, 200)
    np.testing.assert_allclose(asked[0], 7.0 * np.arange(400) / 399)


def test_panels() -> None:
    rng = np.random.default_rng(3)
    panels = {
        "plain": Panel("a < b", "m/s", rng.normal(size=300)),
        "marked": Panel("marks", "", rng.normal(3.0, 0.01, 50), (3.0, 3.2), (2.0, 3.1)),
        "one": Panel("one", "s", [4.0, 4.0, np.nan]),
        "none": Panel("none", "s", []),
        "large": Panel("large", "N", 1e5 * rng.random(100), (-2e4,)),
    }
    drawn = {name: histogram(panel).replace("<", "\n<").split("\n") for name, panel in panels.items()}
    drawn["bar"] = time_bar({"fly": 3.0, "see": 1.25, "wait": 0.0, "a & b": 0.5}).replace("<", "\n<").split("\n")
    drawn["empty bar"] = time_bar({}).split("\n")
    true = rng.normal(size=200)
    drawn["scatter"] = report.scatter("t", true, true + 0.1 * rng.normal(size=200)).replace("<", "\n<").split("\n")
    check_snapshot(SNAPSHOTS / "panels.txt", {name: condensed(lines) for name, lines in drawn.items()})


def test_exports(dataset: ExpertDataset, tmp_path: Path) -> None:
    info = export_lerobot(dataset, tmp_path / "out")
    values: dict[str, Any] = {"info": condensed(json.loads(json.dumps(info, default=str).replace(str(tmp_path), "")))}
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    values["files"] = [str(path.relative_to(tmp_path / "out")) for path in files]
    for path in files:
        name = str(path.relative_to(tmp_path / "out"))
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
            plain = [column for column in table.column_names if "image" not in column]
            values[name] = [table.schema.names, condensed(table.select(plain).to_pydict())]
        elif path.suffix in (".json", ".jsonl") and "stats" not in name:
            values[name] = condensed(json.loads(path.read_text()))
    numbers = np.random.default_rng(4).normal(size=(50, 3))
    values["stats"] = condensed(stats_of(numbers))
    values["merged"] = condensed(merged([stats_of(numbers[:20]), stats_of(numbers[20:])]))
    values["image stats"] = condensed(image_stats((255 * np.random.default_rng(5).random((4, 6, 5, 3))).astype(np.uint8)))
    check_snapshot(SNAPSHOTS / "exports.txt", values, 1e-4, 1e-4)


def test_plans_and_cameras() -> None:
    values: dict[str, Any] = {}
    for name in ("robustness", "line"):
        values[name] = condensed(evaluation_set(name, repetitions=3))
    config = SynthesisConfig(courses=("line",), per_second=2.0, repetitions=3, seed=5)
    starts = RolloutPlan(config).starts(np.arange(12))
    values["starts"] = {key: value for key, value in vars(starts).items() if isinstance(value, np.ndarray)}
    values["ticks"], values["half"] = config.ticks, config.half_width
    values["noise"] = [condensed(noise_level(name)) for name in ("assisted", "baseline", "challenged", "extreme")]
    values["sides"] = [str(view_side(view)) for view in ("224", "64", "full")]
    for view in ("224", "64"):
        values[f"camera {view}"] = condensed(flight_camera(vehicle("carl"), "camera", view))
    plan = RolloutPlan(SynthesisConfig(courses=("line", "robustness"), per_second=1.0, repetitions=3, seed=5))
    for size in (1, 5, 64):
        sharding = Sharding(plan, size)
        values[f"shards {size}"] = [sharding.course, sharding.held_out, *(sharding.numbers(k) for k in range(len(sharding)))][
            :9
        ]
    check_snapshot(SNAPSHOTS / "plans.txt", values, 1e-6, 1e-6)


def test_metrics_and_batches() -> None:
    rng = np.random.default_rng(6)
    parameters = rng.uniform(0.7, 1.3, (40, 2))
    values: dict[str, Any] = {"ratio": metrics.ratio_of(parameters)}
    generator = torch.Generator().manual_seed(3)
    images = torch.from_numpy(rng.random((4, 3, 12, 12)).astype(np.float32))
    values["pasted"] = data_loader.pasted(images.clone(), generator, 0.5).numpy()
    values["masks"] = [mask.numpy() for mask in model.draw_masks(5, ((4, 0.3), (3, 0.5)), generator, "cpu") or []]
    for kind in VARIANTS.values():
        values[f"widths {kind.name}"] = [condensed(model.mask_widths(kind, stage)) for stage in ("history", "command")]
    known = adaptation._known(rng.normal(size=(4, 30)), rng.normal(size=(4, 30)))
    values["known"] = condensed(known)
    estimated = 1.0 + 0.2 * (1.0 - np.exp(-np.arange(120) / 9.0)) + 0.01 * rng.normal(size=(8, 120))
    values["response"] = condensed(adaptation._response(estimated, np.repeat([[1.0, 1.2]], 8, 0).repeat(60, 1), 60))
    check_snapshot(SNAPSHOTS / "svnet.txt", values, 1e-5, 1e-5)


def test_hover() -> None:
    rng = np.random.default_rng(7)
    values: dict[str, Any] = {"conditions": condensed(conditions()), "calm": condensed(conditions(winds=False))}
    for name in ("cf2x_L250", "carl"):
        values[name] = evaluation.evaluation_starts(vehicle(name), HoverStart(), HoverProtocol(), 12)
        values[f"{name} drag"] = str(evaluation.has_drag(vehicle(name)))
    uniforms = rng.random((hover.START_UNIFORMS, 9))
    hover_speed, low, high = np.full(4, 300.0), np.full(4, 50.0), np.full(4, 700.0)
    values["start"] = hover.hover_start(uniforms, hover_speed, low, high, HoverStart())
    state = tuple(rng.normal(size=17))
    values["observation"] = [float(x) for x in hover.hover_observation(state)]
    rotors = SimpleNamespace(rotor_min=tuple(low), rotor_max=tuple(high))
    action = tuple(rng.uniform(-1.0, 1.0, 4))
    values["cost"] = float(hover.hover_cost(state, action, tuple(rng.uniform(-1.0, 1.0, 4)), HoverCost()))
    values["command"] = [float(x) for x in hover.hover_command(action, rotors)]
    for number in range(3):
        noise = evaluation._noise(HoverProtocol(), conditions()[number], 5, 4)
        values[f"noise {number}"] = "none" if noise is None else noise
    check_snapshot(SNAPSHOTS / "hover.txt", values, 1e-6, 1e-6)


def test_times_of_stages_add_up() -> None:
    stages = Stages()
    stages.add({"fly": 2.0, "see": 0.5})
    stages.add({"fly": 1.5})
    assert stages.seconds == {"fly": 3.5, "see": 0.5}
