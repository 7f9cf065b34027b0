"""Backbones: pre-training to the same bits, places kept for judging, the probe's arithmetic, words and their errors."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256_file
from airworthy.learning.backbone.config import HELD_OUT_SEED, BackboneOptions
from airworthy.learning.backbone.contract import read_backbone, trunk_shapes, trunk_tensors, write_backbone
from airworthy.learning.backbone.halls import drawn_hall
from airworthy.learning.backbone.pictures import (
    _CELL_PIXELS,
    CELLS,
    POSE,
    SIDE,
    SUBCELLS,
    PlacePictures,
    drawn_poses,
    pictures_of,
)
from airworthy.learning.backbone.probe import (
    CHANNELS,
    HELD_OUT,
    ProbeOptions,
    ProbePlace,
    _depth_error,
    _row,
    held_out_places,
    probe_backbone,
    ridge,
)
from airworthy.learning.backbone.sources import backbone_weights, shipped_backbone
from airworthy.pilots.svnet.contract import shipped_policy
from airworthy.scenes import Region, Scene, SceneBatch

torch = pytest.importorskip("torch")

import airworthy as aw  # noqa: E402
from airworthy.learning.backbone import run, training  # noqa: E402
from airworthy.learning.backbone.training import BackboneTraining  # noqa: E402
from airworthy.learning.backbone.trunk import BackboneTrunk, PlaceSolver  # noqa: E402
from airworthy.learning.machine import TrainingRunOptions  # noqa: E402
from airworthy.learning.svnet.data_loader import normalized  # noqa: E402

SMALL = BackboneOptions(iterations=4, places=2, images=4, renew=2, batch_places=2, batch_images=4)
PROBE = ProbeOptions(probed=("drawn_hall:0@7919",), fitted_images=12, judged_images=4)


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw and render each place once for all tests: it takes a second, and what it gives is tested by itself."""
    monkeypatch.setattr(training, "drawn_hall", lambda number, seed: SimpleNamespace(name=f"drawn_hall:{number}@{seed}"))
    monkeypatch.setattr(training, "pictures_of", lambda scene, *rest: _looked(scene.name, json.dumps(rest)))


@cache
def _looked(name: str, rest: str) -> PlacePictures:
    number, _, seed = name.removeprefix("drawn_hall:").partition("@")
    return pictures_of(drawn_hall(int(number), int(seed)), *json.loads(rest))


@cache
def probed() -> list[ProbePlace]:
    return held_out_places(PROBE, 1)


def same(one: dict[str, ArrayF32], other: dict[str, ArrayF32]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(value, other[name]) for name, value in one.items())


# ---- Learning ---------------------------------------------------------------------------------------------------------------


def test_a_training_goes_on_to_the_same_bits_past_a_renewal() -> None:
    whole, first, second = (BackboneTraining(SMALL, 1) for _ in range(3))
    for _ in range(4):
        whole.step()
    assert whole.finished
    assert whole.seen == {"places": 3, "images": 12, "drawn": 32}
    for _ in range(3):
        first.step()
    second.restore(first.save())
    second.step()
    assert same(second.weights, whole.weights)


def test_another_seed_learns_otherwise() -> None:
    one, other = BackboneTraining(SMALL, 1), BackboneTraining(replace(SMALL, seed=1), 1)
    one.step()
    other.step()
    assert not same(one.weights, other.weights)


def test_a_folder_is_stopped_gone_on_with_probed_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "held_out_places", lambda options: probed())
    short = TrainingRunOptions("cpu", 1, 1.0, minutes=1e-9)
    assert not run.train_backbone(tmp_path / "a", SMALL, PROBE, short).finished
    done = run.train_backbone(tmp_path / "a", SMALL, PROBE)
    assert done.finished
    assert done.report.is_file()
    assert set(done.figures["probe"]) == {"this", *run.COMPARED}
    straight = aw.train("backbone", out=tmp_path / "b", **{**vars(SMALL), **vars(PROBE)}, threads=1)
    assert same(backbone_weights(str(tmp_path / "a")), backbone_weights(str(tmp_path / "b")))
    assert straight.summary["probe"] == done.figures["probe"]
    again = run.train_backbone(tmp_path / "a", SMALL, PROBE)
    assert again.read_back
    assert again.figures == json.loads((tmp_path / "a" / "summary.json").read_text())


def test_folded_normalisations_do_the_same() -> None:
    torch.manual_seed(0)
    trunk = BackboneTrunk()
    images = np.random.default_rng(0).integers(0, 255, (16, SIDE, SIDE, 3), np.uint8)
    for _ in range(3):
        trunk(normalized(torch.from_numpy(images)))
    with torch.no_grad():
        wanted = trunk.eval()(normalized(torch.from_numpy(images)))
    from airworthy.learning.visuomotor.features import FrozenTrunk

    found = FrozenTrunk(trunk.folded(), 1)(images)
    np.testing.assert_allclose(found, wanted.flatten(2).transpose(1, 2), atol=2e-3 * float(wanted.abs().max()))


def test_the_solver_leaves_one_out_as_if_it_were_fitted_without_it() -> None:
    rng = np.random.default_rng(1)
    solver, features = PlaceSolver(), torch.from_numpy(rng.normal(size=(1, 6, 512, 6, 6)).astype(np.float32))
    pose = torch.from_numpy(rng.normal(size=(1, 6, POSE)).astype(np.float32))
    with torch.no_grad():
        found = solver.pose_errors(features, pose)[0]
        held = torch.relu(solver.pose(features[0])).flatten(1).double()
        held = held - held.mean(0)
        gram = held @ held.T
        gram = gram / (gram.diagonal().mean() + 1e-6) + 1.0
        for left in range(6):
            kept = [k for k in range(6) if k != left]
            fixed = gram[kept][:, kept] + 0.1 * torch.eye(5)
            made = gram[left, kept] @ torch.linalg.solve(fixed, pose[0, kept].double())
            np.testing.assert_allclose(found[left], pose[0, left] - made, atol=1e-4)


def test_a_step_needs_points_that_are_seen_only_where_there_are_any() -> None:
    rng = np.random.default_rng(2)
    solver, features = PlaceSolver(), torch.from_numpy(rng.normal(size=(2, 4, 512, 6, 6)).astype(np.float32))
    points = torch.from_numpy(rng.normal(size=(2, 4, 6, 6, 3)).astype(np.float32))
    valid = torch.from_numpy(rng.random((2, 4, 6, 6, 1)) < 0.7)
    other = torch.where(valid, points, 99.0)
    errors, changed = (solver.point_errors(features, x, valid) * valid for x in (points, other))
    np.testing.assert_allclose(errors.detach(), changed.detach(), atol=1e-4)


# ---- Places -----------------------------------------------------------------------------------------------------------------


def test_a_hall_is_of_its_number_and_seed() -> None:
    one, again, other, more = (drawn_hall(*key) for key in ((3, 5), (3, 5), (4, 5), (3, 6)))
    assert one.name == "drawn_hall:3@5"
    assert one.instances == again.instances
    assert one.materials == again.materials
    assert one.lights == again.lights
    assert one.bounds not in (other.bounds, more.bounds)


def test_nothing_is_learnt_where_backbones_or_policies_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirworthyError, match=rf"Seed {HELD_OUT_SEED} is that of the halls"):
        BackboneOptions(seed=HELD_OUT_SEED)
    seen: list[str] = []

    def told(scene: Scene, *rest: Any) -> PlacePictures:
        seen.append(scene.name)
        return _looked(scene.name, json.dumps(rest))

    monkeypatch.setattr(training, "pictures_of", told)
    pool = training.PlacePool(SMALL, 1)
    for first in (0, 1):
        pool.hold(first)
    assert seen == ["drawn_hall:0@0", "drawn_hall:1@0", "drawn_hall:2@0"]
    assert not set(seen) & set(HELD_OUT)


def test_a_cell_shows_what_lies_in_the_middle_of_what_it_sees() -> None:
    """Where a layer of 3 pixels looks from is one of its inputs' steps further in, and its own steps are twice as long."""
    first, step = 0, 1
    for _ in range(4):
        first, step = first + step, 2 * step
    assert np.arange(SIDE)[_CELL_PIXELS].tolist() == [first + step * n for n in range(6)]


def test_images_do_not_depend_on_how_many_there_are() -> None:
    few, many = (pictures_of(drawn_hall(0, 0), count, [0, 0, 1], 1) for count in (3, 5))
    assert few.images.shape == (3, SIDE, SIDE, 3)
    assert few.log_depth.shape[1:] == (CELLS * SUBCELLS, CELLS * SUBCELLS)
    assert few.points.shape[1:] == (CELLS, CELLS, 3)
    for name in ("images", "pose", "log_depth", "points"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:3], err_msg=name)


def test_poses_are_told_from_the_middle_of_where_they_lie() -> None:
    """In the air beside a hall, in a box 12 x 10 m that nothing is near to: all of it but a quarter of a metre is flown in."""
    hall = drawn_hall(0, 0)
    place = replace(hall, bounds=Region((130.0, 140.0, 1.0), (142.0, 150.0, 9.0)))
    poses = drawn_poses(place, SceneBatch(place, 1, "cpu", 1), 64, [1, 2])
    # Heights from 0.3 to 2.5 m above its floor.
    np.testing.assert_allclose(poses.middle, [136.0, 145.0, 0.5 * (1.3 + 3.5)])
    np.testing.assert_allclose(poses.told[:, :3], poses.position - [136.0, 145.0, 2.4], atol=1e-5)
    assert (np.abs(poses.told[:, :3]) <= np.array([5.75, 4.75, 1.1]) + 1e-5).all()
    # They lie around it, not to one side.
    assert (np.abs(poses.told[:, :2].mean(axis=0)) < [2.5, 2.0]).all()


# ---- The probe --------------------------------------------------------------------------------------------------------------


def test_a_ridge_finds_what_is_linear_and_nothing_in_noise() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(120, 8)).repeat(20, axis=1).astype(np.float32)
    told = np.column_stack([features[:, 0] - 2.0 * features[:, 20] + 3.0, rng.normal(size=120)])
    made = ridge(features, told, 80)
    np.testing.assert_allclose(made[:, 0], told[80:, 0], atol=0.02)
    # Of what is not there the mean is the best that can be said.
    assert np.square(made[:, 1] - told[80:, 1]).mean() < 1.3 * np.square(told[80:, 1] - told[:80, 1].mean()).mean()


def test_a_map_is_of_what_it_is_fitted_to_alone() -> None:
    """Means are those of the images that are fitted: what is judged changes nothing, and neither does where zero is."""
    rng = np.random.default_rng(6)
    features = rng.normal(size=(100, 160)).astype(np.float32)
    # What is judged lies elsewhere, so that a mean over all would be another.
    features[80:] += 2.0
    told = np.column_stack([features[:, 0] + 5.0, rng.normal(size=100)])
    made = ridge(features, told, 80)
    np.testing.assert_allclose(ridge(features[:81], told[:81], 80), made[:1], atol=1e-5)
    np.testing.assert_array_equal(ridge(features, np.concatenate([told[:80], np.zeros((20, 2))]), 80), made)
    # Float32 features of size 8 are rounded to 5e-7 of themselves.
    np.testing.assert_allclose(ridge(features + 8.0, told + 3.0, 80), made + 3.0, atol=1e-3)


def drawn_depths(rng: np.random.Generator) -> tuple[ArrayF32, ArrayF32]:
    """Features of 60 images and logarithms of depth that are linear in them; neither has the mean 0."""
    features = (3.0 + rng.normal(size=(60, CELLS**2, 32))).astype(np.float32)
    cells = 1.5 + 0.1 * (features - 3.0) @ rng.normal(size=(32, SUBCELLS**2))
    whole = cells.reshape(60, CELLS, CELLS, SUBCELLS, SUBCELLS).swapaxes(2, 3).reshape(60, CELLS * SUBCELLS, CELLS * SUBCELLS)
    return features, whole.astype(np.float32)


def test_depths_that_are_linear_are_told_and_others_are_off_by_as_much() -> None:
    features, log_depth = drawn_depths(np.random.default_rng(7))
    log_depth[:, 0, 0] = np.nan
    # The ridge is 1e-3 of the features' variance, and so is the share of the depths' spread that it leaves.
    assert _depth_error(features, log_depth, 48) < 0.002
    # What is judged is a tenth deeper than all that the map was fitted to: 1 / 1.1 of it is told.
    log_depth[48:] += np.log(1.1)
    assert _depth_error(features, log_depth, 48) == pytest.approx(1.0 - 1.0 / 1.1, abs=0.002)


def test_the_probe_stands_beside_the_mean_pose() -> None:
    rng = np.random.default_rng(8)
    count, fitted = 24, 18
    pose = rng.normal(size=(count, POSE)).astype(np.float32)
    pose[fitted:, :3] += 4.0
    depths = np.zeros((count, CELLS * SUBCELLS, CELLS * SUBCELLS), np.float32)
    images, points = np.zeros((count, 1, 1, 3), np.uint8), np.zeros((count, CELLS, CELLS, 3), np.float32)
    trunk: Any = lambda images: rng.normal(size=(len(images), CELLS**2 * CHANNELS)).astype(np.float32)  # noqa: E731
    row = _row(trunk, ProbePlace("x", PlacePictures(images, pose, depths, points), fitted))
    off = np.linalg.norm(pose[fitted:, :3] - pose[:fitted, :3].mean(axis=0), axis=1)
    assert row["mean_pose_position_m"] == pytest.approx(np.median(off), rel=1e-5)
    # Noise says nothing: a map of it is about as far off as the mean.
    assert row["position_m"] == pytest.approx(row["mean_pose_position_m"], rel=0.3)


def test_a_probe_is_of_its_images_alone() -> None:
    one, other = (probe_backbone(backbone_weights("random", 4), probed(), 1) for _ in range(2))
    assert one == other
    assert {"position_m", "heading_deg", "tilt_deg", "depth_percent"} < set(one[0])
    assert one[0]["images"] == 16


# ---- Words and files --------------------------------------------------------------------------------------------------------


def test_the_shipped_backbone_is_what_its_contract_vouches_for() -> None:
    folder = shipped_backbone()
    table = json.loads((folder / "contract.json").read_text())
    assert table["weights"]["sha256"] == sha256_file(folder / "weights.safetensors")
    assert table["weights"]["bytes"] < 1_500_000
    told, tensors = read_backbone(folder)
    # What its command gives: the defaults of the options.
    assert told["options"] == json.loads(json.dumps(vars(BackboneOptions())))
    assert told["iterations"] == BackboneOptions().iterations
    assert {name: value.shape for name, value in tensors.items()} == trunk_shapes()
    assert same(tensors, backbone_weights("own"))


@pytest.mark.parametrize("word", ["own", "hall", "random"])
def test_words_give_tensors_of_one_kind(word: str) -> None:
    found = backbone_weights(word)
    assert {name: value.shape for name, value in found.items()} == trunk_shapes()
    assert all(value.dtype == np.float32 and np.isfinite(value).all() for value in found.values())


def test_random_weights_are_of_their_seed() -> None:
    assert same(backbone_weights("random", 2), backbone_weights("random", 2))
    assert not same(backbone_weights("random", 2), backbone_weights("random", 3))


def test_a_file_with_torchvisions_names_is_read_with_or_without_classifier(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    tensors = backbone_weights("random", 5)
    save_file({**tensors, "classifier.1.weight": np.zeros((1000, 512, 1, 1), np.float32)}, tmp_path / "a.safetensors")
    assert same(backbone_weights(str(tmp_path / "a.safetensors")), tensors)


def test_what_is_no_backbone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    from safetensors.numpy import save

    with pytest.raises(AssetError, match="no backbone 'owm'; expected own, hall, random, efficientnet_lite0, a folder of"):
        backbone_weights("owm")
    with pytest.raises(AssetError, match="does not hold a backbone"):
        backbone_weights(str(tmp_path))
    with pytest.raises(AssetError, match=r"contract of a backbone"):
        backbone_weights(str(shipped_policy("hall")))
    tensors = backbone_weights("random")
    name = "features.0.bias"
    for changed, reason in (
        ({key: value for key, value in tensors.items() if key != name}, "is missing"),
        ({**tensors, name: np.zeros(3, np.float32)}, r"has shape \(3,\), expected \(64,\)"),
        ({**tensors, name: np.full(64, np.nan, np.float32)}, "not finite"),
    ):
        with pytest.raises(AssetError, match=rf"holds no SqueezeNet 1.1: the tensor '{name}' .*{reason}"):
            trunk_tensors(save(changed), "x")
    with pytest.raises(AirworthyError, match="cannot be written: the tensor 'more' does not belong there"):
        write_backbone(tmp_path / "a", {**tensors, "more": np.zeros(1, np.float32)}, {})
    with pytest.raises(AirworthyError, match="not finite"):
        write_backbone(tmp_path / "a", {**tensors, name: np.full(64, 1e6, np.float32)}, {})
    write_backbone(tmp_path / "b", tensors, {})
    data = bytearray((tmp_path / "b" / "weights.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "b" / "weights.safetensors").write_bytes(bytes(data))
    with pytest.raises(AssetError, match="changed or damaged"):
        backbone_weights(str(tmp_path / "b"))


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AirworthyError, match="batch_places is 5, but there are 4 places"):
        BackboneOptions(places=4, batch_places=5)
    with pytest.raises(AirworthyError, match="expected an even number"):
        BackboneOptions(batch_images=5)
