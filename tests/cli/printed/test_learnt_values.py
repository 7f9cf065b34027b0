"""What commands that learn, label and capture ask for and print: `train`, `synthesize`, `export`, `seal`, `capture`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.fixtures.transcripts import Transcript

from airworthy import __version__
from airworthy.capture.alignment.record import AlignOptions
from airworthy.capture.record import CaptureImages
from airworthy.capture.training.train import TrainResult
from airworthy.cli import capture
from airworthy.cli.learning import (
    export,
    seal,
    synthesize,
    synthesize_gates,
    train,
    train_agile_autonomy,
    train_avoid,
    train_boundary,
    train_hover,
    train_task,
)
from airworthy.core.errors import AirworthyError
from airworthy.gates.labels import job as labels_job
from airworthy.gates.labels.job import Labelled
from airworthy.gates.training import TrainedBoundary
from airworthy.learning.datasets import Made
from airworthy.learning.datasets import job as datasets_job
from airworthy.learning.datasets.shard_files import ShardFacts
from airworthy.learning.svnet import TrainedSvNet
from airworthy.learning.svnet.adaptation import Adaptation, AdaptationConfig, RatioKnown
from airworthy.learning.timed_training import Trained

FILES = Path(__file__).parent / "snapshots" / "learnt"
Patch = pytest.MonkeyPatch


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    for module in (train, train_boundary):
        monkeypatch.setattr(module, "load_torch", lambda: None)
    return Transcript(capsys, {__version__: "VERSION"})


# ---- networks ---------------------------------------------------------------------------------------------------------------


def svnet(variant: str, finished: bool, mse: float = 0.25, **more: Any) -> TrainedSvNet:
    known = {"ratio_error": 0.0125, "ratio_error_of_mean": 0.05}
    figures = {"command_mse": mse, "command_mse_of_mean": 1.0, "history_full": known, "view": 112}
    figures |= {"pairs_per_second": {"command": 1234.5}} | more
    return TrainedSvNet(Path("out") / variant, variant, finished, 30, 120, figures if finished else {})


@pytest.mark.parametrize(("words", "code"), [([], 2), (["--help"], 0), (["-h"], 0), (["--json"], 2), (["-h", "svnet"], 0)])
def test_without_a_kind_the_kinds_are_told(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(words) == code
    text = capsys.readouterr().out
    assert all(kind in text for kind in train.KINDS)


def test_visuomotor_policies(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning import svnet as package

    monkeypatch.setattr(train, "ExpertDataset", None, raising=False)
    import airworthy.learning.datasets as datasets

    monkeypatch.setattr(datasets.ExpertDataset, "open", told.fake("open", "pairs"))
    bare = {"history_full": None, "pairs_per_second": {}, "command_mse_of_mean": 0.0}
    for name, done in (
        ("whole", svnet("sv_net", True)),
        ("without a history", svnet("sv_net", True, **bare)),
        ("out of time", svnet("sv_net", False)),
        ("of nothing", replace(svnet("sv_net", False), minibatches=0, total=0)),
        ("stopped", KeyboardInterrupt()),
    ):
        monkeypatch.setattr(package, "train_svnet", told.fake("train_svnet", done))
        for words in ("svnet data --epochs 3 --out out", "svnet data --json --no-verify --no-resume"):
            told.run(f"train {words}: {name}", lambda words=words: train.main(words.split()))
    names = iter([svnet(name, True) for name in train.PUBLISHED])
    monkeypatch.setattr(package, "train_svnet", lambda *given, **named: next(names))
    told.run("train all", lambda: train.main(["svnet", "data", "--variant", "all", "--out", "out"]))
    told.run("ablation", lambda: print(Path("out/ablation.json").read_text()))
    some = iter([svnet("sv_net", True), svnet("no_rma", False)])
    monkeypatch.setattr(package, "train_svnet", lambda *given, **named: next(some))
    told.run("train all, out of time", lambda: train.main(["svnet", "data", "--variant", "all", "--out", "other", "--json"]))
    assert not Path("other").exists()
    Path("full").mkdir()
    Path("full/x").write_text("")
    told.run("no resume", lambda: train.main(["svnet", "data", "--out", "full", "--no-resume"]))
    told.check(FILES / "svnet.txt")


def test_adaptation_is_measured(told: Transcript, monkeypatch: Patch) -> None:
    found = Adaptation(
        AdaptationConfig(), RatioKnown(9.5, 0.125, 10.0), RatioKnown(8.0, 0.25, 7.5), 0.72, {"0.5 s": 0.25, "1 s": 1.0}
    )
    monkeypatch.setattr(train, "measure_adaptation", told.fake("measure_adaptation", found))
    for words in ("adaptation there", "adaptation there --json --device cuda:0 --payload 0.5"):
        told.run(f"train {words}", lambda words=words: train.main(words.split()))
    told.check(FILES / "adaptation.txt")


def test_boundaries(told: Transcript, monkeypatch: Patch) -> None:
    table = {"unsafe_beyond": {"0": 0.125, "5": 0.0625}, "percent_quantiles": {"0.5": 1.5}, "rms": 0.25}
    errors = {
        part: {"v": table, "t0": {**table, "unsafe_beyond": {}, "percent_quantiles": {}}}
        for part in ("test", "watched", "train")
    }
    monkeypatch.setattr(train_boundary, "read_labels", told.fake("read_labels", "labels"))
    for name, done in (
        ("whole", TrainedBoundary(Path("out"), True, 12, {"errors": errors})),
        ("out of time", TrainedBoundary(Path("out"), False, 1200)),
        ("stopped", KeyboardInterrupt()),
    ):
        monkeypatch.setattr(train_boundary, "train_boundary", told.fake("train_boundary", done))
        for words in ("boundary labels --epochs 3", "boundary labels --json --no-verify"):
            told.run(f"train {words}: {name}", lambda words=words: train.main(words.split()))
    told.check(FILES / "boundary.txt")


def hover(seed: int, finished: bool = True, **more: Any) -> Trained:
    figures = {"seed": seed, "vehicle": "carl", "median_error_m": 0.0125, "p95_error_m": 0.05, "training_wall_s": 1.25}
    figures |= {"training_cpu_s": 2.5, "kept_percent": 99.5, "env_steps_per_s": 12.5e6}
    figures |= {"baselines": [{"name": "MPC", "verdict": "Better than the MPC."}, {"name": "PID", "reason": "it has none"}]}
    return Trained(Path("out") / str(seed), finished, {**figures, **more} if finished else {}, 1234)


def test_hovering(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(train_hover, "_import_s", 0.5)
    monkeypatch.setattr(train_hover, "named_vehicle", told.fake("named_vehicle", "a vehicle"))
    ended = (
        ("whole", hover(3)),
        ("never kept", hover(3, median_error_m=None, p95_error_m=None)),
        ("out of time", hover(3, False)),
        ("stopped", KeyboardInterrupt()),
    )
    for name, done in ended:
        monkeypatch.setattr(train_hover, "train_hover", told.fake("train_hover", done))
        for words in ("hover --vehicle carl --seed 3 --minutes 0.5 --flights 64", "hover --json", "motor_command --seed 2"):
            told.run(f"train {words}: {name}", lambda words=words: train.main(words.split()))
    for name, several in (
        ("whole", [hover(3), hover(4)]),
        ("out of time", [hover(3), hover(4, False)]),
        ("stopped", KeyboardInterrupt()),
    ):
        monkeypatch.setattr(train_hover, "train_seeds", told.fake("train_seeds", several))
        for words in ("hover --seeds 2 --seed 3 --out out", "hover --seeds 2 --json", "motor_command --seeds 2 --out out"):
            told.run(f"train {words}: {name}", lambda words=words: train.main(words.split()))
    told.run("rotors", lambda: train.main(["hover", "--rotors", "x.toml"]))
    told.run("rotors of a URDF", lambda: train.main(["hover", "--vehicle", "a.URDF", "--rotors", "x.toml", "--json"]))
    told.check(FILES / "hover.txt")


def avoiding(finished: bool = True) -> Any:
    row = {
        "speed_m_s": 4.0,
        "area_m2": 3.3,
        "flights": 80,
        "success": 60,
        "touched": 15,
        "left": 4,
        "late": 1,
        "mean_speed_m_s": 3.625,
    }
    figures = {"flights": [row, {**row, "success": 0, "mean_speed_m_s": None}], "training_wall_s": 123.4}
    return Trained(
        folder=Path("out"),
        finished=finished,
        iteration=1234,
        figures=figures if finished else {},
    )


def test_avoiding(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning.avoid import run as avoid_run

    monkeypatch.setattr(train_avoid, "load_torch", lambda: None)
    for name, done in (("whole", avoiding()), ("out of time", avoiding(False)), ("stopped", KeyboardInterrupt())):
        monkeypatch.setattr(avoid_run, "train_avoid", told.fake("train_avoid", done))
        for words in ("--iterations 5 --seed 3 --threads 2 --minutes 0.5 --speeds 4 6 --areas 3 --flights 7", "--json"):
            told.run(f"train avoid {words}: {name}", lambda words=words: train_avoid.main(words.split()))
    told.check(FILES / "avoiding.txt")


def student(finished: bool = True) -> Any:
    row = {
        "pilot": "student",
        "scenario": "forest",
        "speed_m_s": 4.0,
        "flights": 20,
        "success": 15,
        "success_interval_percent": [53.1, 88.8],
        "collision": 4,
        "mean_speed_m_s": 3.625,
    }
    figures = {"flights": [row, {**row, "pilot": "blanked", "success": 0, "mean_speed_m_s": None}], "training_wall_s": 123.4}
    return Trained(folder=Path("out"), finished=finished, iteration=12, figures=figures if finished else {})


def test_students(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning.agile_autonomy import run as student_run

    monkeypatch.setattr(train_agile_autonomy, "load_torch", lambda: None)
    for name, done in (("whole", student()), ("out of time", student(False)), ("stopped", KeyboardInterrupt())):
        monkeypatch.setattr(student_run, "train_agile_autonomy", told.fake("train_agile_autonomy", done))
        for words in ("--rounds 2 --seed 3 --minutes 0.5 --speeds 4 6 --judged-scenarios maze --baselines ego", "--json"):
            told.run(f"train agile_autonomy {words}: {name}", lambda words=words: train_agile_autonomy.main(words.split()))
    told.check(FILES / "students.txt")


def task_done(seed: int, finished: bool = True, **more: Any) -> Any:
    figures = {"seed": seed, "task": "recovery", "vehicle": "carl", "median_error_m": 0.0125, "training_wall_s": 1.25}
    figures |= {"training_cpu_s": 2.5, "success_percent": 87.5, "kept_percent": 99.5, "env_steps_per_s": 12.5e6}
    figures |= {"baselines": [{"name": "MPC", "verdict": "Better than the MPC."}, {"name": "PID", "reason": "it has none"}]}
    folder = Path("out") / str(seed)
    figures = {**figures, **more} if finished else {}
    return Trained(folder, finished, figures, iteration=1234)


def test_tasks(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(train_task, "named_vehicle", told.fake("named_vehicle", "a vehicle"))
    for name, done in (
        ("whole", task_done(3)),
        ("without an error", task_done(3, median_error_m=None)),
        ("out of time", task_done(3, False)),
        ("stopped", KeyboardInterrupt()),
    ):
        monkeypatch.setattr(train_task, "train_task", told.fake("train_task", done))
        for words in ("recovery --vehicle carl --seed 3 --minutes 0.5 --flights 64 --steps 5000", "track --json"):
            told.run(f"train {words}: {name}", lambda words=words: train_task.main(words.split()))
    for name, several in (
        ("whole", [task_done(3), task_done(4)]),
        ("out of time", [task_done(3), task_done(4, False)]),
        ("stopped", KeyboardInterrupt()),
    ):
        monkeypatch.setattr(train_task, "train_task_seeds", told.fake("train_task_seeds", several))
        for words in ("recovery --seeds 2 --seed 3 --out out", "recovery --seeds 2 --json"):
            told.run(f"train {words}: {name}", lambda words=words: train_task.main(words.split()))
    told.check(FILES / "tasks.txt")


def test_exports(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning import export_motor

    for size, name in ((1_500_000, "a.onnx"), (1_000_000, "b.onnx"), (999_000, "policy.h"), (1_499, "c.onnx")):
        Path(name).write_bytes(bytes(size))
        monkeypatch.setattr(export_motor, "export_policy", told.fake("export_policy", Path(name)))
        for words in ("there", f"there --out {name} --json"):
            told.run(f"export {words}: {size}", lambda words=words: export.main(words.split()))
    told.check(FILES / "exports.txt")


def test_seals(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.verification import sealing

    for made in ("sealed", "rewritten", ""):
        monkeypatch.setattr(sealing, "seal", told.fake("seal", made))
        told.run(f"seal, made: {made}", lambda: seal.main(["there"]))
    told.check(FILES / "seals.txt")


# ---- data -------------------------------------------------------------------------------------------------------------------


def shard(course: str, pairs: int) -> ShardFacts:
    return ShardFacts("a", "digest", course, 1200, 900, pairs, {})


def test_data_sets(told: Transcript, monkeypatch: Patch) -> None:
    run = {"pairs_per_second": 1234.5, "stages_s": {"flying": 3.0, "images": 1.0}}
    new = {"shards": 2, "rollouts": 10, "kept": 5, "pairs": 100}
    whole = Made(Path("out"), (shard("a", 500), shard("a", 600), shard("b", 700)), 3, new, 8.0, run["stages_s"])
    monkeypatch.setattr(synthesize, "_written_card", told.fake("card", Path("out/card.html")))
    monkeypatch.setattr(synthesize, "_explain", told.fake("explain", None))
    for name, made in (
        ("whole", whole),
        ("stopped", replace(whole, shards=whole.shards[:1], interrupted=True)),
        ("nothing kept", replace(whole, shards=(shard("a", 0),) * 3, new={**new, "pairs": 0}, stages={})),
        ("all held out", replace(whole, shards=(shard("a", 5), shard("b", 5)), shard_count=2)),
        ("not whole", replace(whole, shard_count=5)),
        ("stopped before the first", KeyboardInterrupt()),
    ):
        stages = {} if isinstance(made, KeyboardInterrupt) else made.stages
        monkeypatch.setattr(datasets_job, "write_run", told.fake("write_run", {**run, "stages_s": stages}))
        monkeypatch.setattr(synthesize, "synthesize_dataset", told.fake("synthesize_dataset", made))
        for words in ("--courses line --seed 3 --workers 2", "--json --no-card --repair --device cuda:0"):
            told.run(f"synthesize {words}: {name}", lambda words=words: synthesize.main(words.split()))
    for words in ("chek x", "zzz"):
        told.run(f"synthesize {words}", lambda words=words: synthesize.main(words.split()))
    told.check(FILES / "datasets.txt")


def test_data_sets_are_checked(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning.datasets import lerobot

    dataset = SimpleNamespace(rollouts=1200, count=34567, shards=[1, 2], digest="abc")
    monkeypatch.setattr(synthesize.ExpertDataset, "open", told.fake("open", dataset))
    monkeypatch.setattr(synthesize, "_written_card", told.fake("card", Path("out/card.html")))
    done = {"codebase_version": "v3.0", "episodes": 1200, "frames": 34567}
    monkeypatch.setattr(lerobot, "export_lerobot", told.fake("export_lerobot", done))
    for words in ("check x", "check x --json", "card x", "card x --json", "export x", "export x --out y --images video --json"):
        told.run(f"synthesize {words}", lambda words=words: synthesize.main(words.split()))
    told.check(FILES / "checked.txt")


def test_labels(told: Transcript, monkeypatch: Patch) -> None:
    counts = {"situations": 1000, "without_candidate": 1200, "admissible": 50, "candidates": 4000, "saturated": 5}
    counts |= {"saturated_analytic": 4, "crashed": 3, "skipped": 2, "changed": 7}
    shares = {"changed": 0.125, "within_reach_mean": 2.5}
    about: dict[str, Any] = {"digest": "d", "complete": True, "counts": counts, "shares": shares}
    about["trials"] = {"0.1": {"shares": {"changed": 0.5, "within_reach_mean": 1.234}}}
    new = {"situations": 10, "rollouts": 3000, "steps": 5_000_000}
    whole = Labelled(Path("out"), about, 4, 4, new, 2.0)
    nothing = {"situations": 0, "rollouts": 0, "steps": 0}
    for name, made in (
        ("whole", whole),
        ("stopped", replace(whole, shards=1, interrupted=True, about={**about, "counts": {}, "trials": {}})),
        ("made already", replace(whole, new=nothing, seconds=0.0)),
        ("not whole", replace(whole, shards=3)),
        ("stopped before the first", KeyboardInterrupt(15)),
    ):
        monkeypatch.setattr(labels_job, "synthesize_gates", told.fake("synthesize_gates", made))
        for words in ("gates --workers 2", "gates --json --no-report --repair", "gates --no-report"):
            told.run(f"synthesize {words}: {name}", lambda words=words: synthesize.main(words.split()))
    told.check(FILES / "labels.txt")
    assert synthesize_gates.PROG == "airworthy synthesize gates"


# ---- captures ---------------------------------------------------------------------------------------------------------------


def images(count: int = 6, **more: Any) -> CaptureImages:
    sizes = [(4 + k % 5, 3) for k in range(count)]
    rgb = tuple(np.zeros((h, w, 3), np.uint8) for w, h in sizes)
    intrinsics = np.array([[100.0 + k, 100.0, 2.0, 1.5] for k in range(count)])
    position = np.array([[0.1 * k, 1.0 - k, 2.0] for k in range(count)])
    attitude = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    masks = (np.ones((3, 4), bool), *(None,) * (count - 1))
    held = np.arange(count) % 3 == 2
    return CaptureImages(rgb, intrinsics, position, attitude, masks=masks, held_out=held, **more)


POINTS = np.array([[0.123456, 1.0, 2.0], [3.0, -1.0, 0.0]])


def test_captures(told: Transcript, monkeypatch: Patch) -> None:
    for name, found in (
        ("of a set", images()),
        ("metric", images(3, metric=True, points=POINTS, skipped=("two are missing",), notes=("it was turned",))),
    ):
        monkeypatch.setattr(capture, "_read", lambda config, quiet, found=found: told.fake("read")(config, quiet) or found)
        for words in ("show there --width 320 --every 4", "show there --json"):
            told.run(f"capture {words}: {name}", lambda words=words: capture.main(words.split()))
    monkeypatch.setattr(capture, "_read", told.fake("read", images(1)))
    for words in ("there", "shwo there", "zzz"):
        told.run(f"capture {words}", lambda words=words: capture.main(words.split()))
    for value in ([1.0, 2.34567], True, False, 1.23456789, 3, "x"):
        told.run(f"{value}", lambda value=value: capture._text(value))
    told.check(FILES / "captures.txt")


def test_captures_are_read_as_asked(told: Transcript, monkeypatch: Patch) -> None:
    import airworthy.capture as package

    monkeypatch.setattr(package, "read_capture", told.fake("read_capture", images(1)))
    for words in ("show there", "show there --width 64 --every 0 --up=-y --images small --json"):
        told.run(f"capture {words}", lambda words=words: capture.main(words.split()))
    told.check(FILES / "read.txt")


def test_captures_are_rendered(told: Transcript, monkeypatch: Patch) -> None:
    import airworthy.scenes as scenes_package
    from airworthy.capture import rendering

    monkeypatch.setattr(scenes_package, "scene", told.fake("scene", SimpleNamespace(name="hall")))
    Path("out/images").mkdir(parents=True)
    for k in range(3):
        Path(f"out/images/{k}.png").write_text("")
    more = "--views 12 --size 64 32 --fov 1.2 --along line --points 5 --exposure 2 --samples 2 --seed 3"
    for end in (Path("out/transforms.json"), KeyboardInterrupt()):
        monkeypatch.setattr(rendering, "render_capture", told.fake("render_capture", end))
        for words in ("hall --out out", f"hall --out out --json {more}"):
            told.run(f"render {words}: {type(end).__name__}", lambda words=words: capture.main(["render", *words.split()]))
    told.check(FILES / "captures_rendered.txt")


def test_markers(told: Transcript, monkeypatch: Patch) -> None:
    cases = ("", "--side 0.01 --out a/b.PNG", "--side 5", "--side 0.009", "--side 5.1", "--out x.jpg")
    for words in cases:
        told.run(f"marker {words}", lambda words=words: capture.main(["marker", *words.split()]))
    told.check(FILES / "markers.txt")
    for path, side in (("marker.png", 5.0), ("a/b.PNG", 0.01)):
        # The black square has six cells of 120 pixels, and its side is theirs at so many to the inch.
        with Image.open(path) as picture:
            assert picture.info["dpi"] == pytest.approx((720 / side * 0.0254,) * 2, rel=0.01)
            assert picture.width == 7.5 * 120


def test_captures_are_aligned(told: Transcript, monkeypatch: Patch) -> None:
    import airworthy.capture as package
    import airworthy.scenes.splats as splats
    from airworthy.capture.alignment import align as alignment
    from airworthy.capture.alignment import page as alignment_page
    from airworthy.capture.alignment.level import PlaceLevel, UpDirection

    level = PlaceLevel(
        np.array([0.0, 0.0, 1.0]), 0.002, (UpDirection("floor", np.zeros(3), 0.002, ""),), ("floor", "marker"), ()
    )
    found = SimpleNamespace(
        images=[2, 0, 1], agreeing=[2, 0], error=0.4567, level=level, scale_half=0.00123, scale_by=("marker 0 (0.5 m)",),
        origin="the marker 0, x to its right", notes=("the floor was not found",), options=AlignOptions(),
        bundle=SimpleNamespace(markers=[SimpleNamespace(side=0.5)]),
        similarity=SimpleNamespace(scale=1.23456, splats=told.fake("turned", "turned splats")),
    )  # fmt: skip
    found.record = lambda images: {"scale": 1.5, "images_with_marker": 7}
    monkeypatch.setattr(capture, "_read", lambda config, quiet, **_: images())
    monkeypatch.setattr(package, "write_capture", told.fake("write_capture"))
    monkeypatch.setattr(alignment, "aligned", lambda images, found: SimpleNamespace(source="source"))
    monkeypatch.setattr(alignment, "corners_by_name", lambda images, *more: told.fake("corners_by_name", "corners")(*more))
    monkeypatch.setattr(alignment, "align_capture", lambda images, *more: told.fake("align_capture", found)(*more))
    monkeypatch.setattr(alignment_page, "write_alignment_page", lambda path, *more: told.fake("write_alignment_page")(path))
    monkeypatch.setattr(splats, "read_splats", lambda path: SimpleNamespace(splats=f"splats of {path}"))
    monkeypatch.setattr(splats, "write_splats", told.fake("write_splats"))
    Path("corners.json").write_text('{"a": [[1, 2]]}')
    Path("list.json").write_text("[1]")
    Path("aligned").mkdir()
    more = "--side 0.5 --level floor --seed 4 --splats a/b.spz --json"
    for words in (
        "there",
        f"there --markers 3 5:0.3 {more}",
        "there --corners corners.json",
        "there --corners corners.json --no-refine --marker-on wall",
        "there --corners list.json",
        "there --no-refine",
        "there --imu a.csv",
        "there --image-times a.json",
        "aligned",
    ):
        told.run(f"align {words}", lambda words=words: capture.main(["align", *words.split()]))
    told.run("alignment.json", lambda: print(Path("aligned/alignment.json").read_text()))
    told.check(FILES / "aligned.txt")


def test_splats_are_trained(told: Transcript, monkeypatch: Patch) -> None:
    found = images(3, skipped=("two are missing",), notes=("it was turned",))
    monkeypatch.setattr(capture, "_read", lambda config, quiet: found)
    result = TrainResult(Path("out/a.ply"), Path("out/report.json"), 12345, 3000, 61.4, 27.456, 0.87654, 4)
    for name, end in (("whole", result), ("none held out", replace(result, held_out=0)), ("stopped", KeyboardInterrupt())):
        monkeypatch.setattr(
            capture, "train_splats", lambda images, *more, end=end, **named: told.fake("train", end)(*more, **named)
        )
        for words in ("train there", "train there --out out --steps 50 --json"):
            told.run(f"capture {words}: {name}", lambda words=words: capture.main(words.split()))
    told.check(FILES / "splats.txt")
    assert math.isfinite(result.psnr)
    with pytest.raises(AirworthyError):
        capture.MarkerConfig(side=math.nan)
