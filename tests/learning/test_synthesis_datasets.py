"""Data sets on disk: the same bytes after any interruption, damage refused in one sentence, and what readers are given."""

from __future__ import annotations

import copy
import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, sha256_file
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, job, shard_files, shard_maker, synthesize_dataset
from airworthy.learning.datasets.card import write_card
from airworthy.learning.datasets.config import LIGHT_MAX, NOISE_MAX, ROLLOUTS_MAX, _typed, shard_name
from airworthy.learning.datasets.shard_maker import Sharding
from airworthy.learning.synthesis import RolloutPlan
from airworthy.vehicles import vehicle, write_vehicle

SMALL = DatasetConfig(
    courses=("robustness", "line"), per_second=1.0, repetitions=2, length=1.1, shard=8, scene="empty_room", view="16", seed=7
)
"""42 roll-outs in 4 + 2 shards, some of which are not kept."""


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file."""
    return {str(path.relative_to(folder)): sha256_file(path) for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished data set; not to be changed."""
    folder = tmp_path_factory.mktemp("made") / "set"
    assert synthesize_dataset(SMALL, folder).complete
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """One to damage."""
    return Path(shutil.copytree(made, tmp_path / "set"))


# ---- the same bytes ---------------------------------------------------------------------------------------------------


def test_nothing_is_made_twice(copied: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*.*") if "shard_" in str(path)}
    again = synthesize_dataset(SMALL, copied)
    assert (again.complete, again.new["shards"], again.total("rollouts")) == (True, 0, 42)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_missing_shards_are_made_as_they_were(made: Path, copied: Path) -> None:
    for shard in (0, 3, 5):
        shutil.rmtree(copied / shard_name(shard))
    assert synthesize_dataset(SMALL, copied).new["shards"] == 3
    assert contents(copied) == contents(made)


@pytest.mark.parametrize("moment", [1, 4, 11])
def test_an_interruption_at_any_file_loses_only_the_shard_at_hand(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """As if the power went, after so many files of shards were put to disk: nothing is tidied up."""

    class Gone(BaseException):
        pass

    count, sync = 0, shard_files._sync

    def fails(path: Path) -> None:
        nonlocal count
        count += 1
        if count == moment:
            raise Gone
        sync(path)

    folder = tmp_path / "set"
    with monkeypatch.context() as patch:
        patch.setattr(shard_files, "_sync", fails)
        patch.setattr(shard_files.shutil, "rmtree", lambda *_, **__: None)
        patch.setattr(job._Run, "make", _without_tidying)
        with pytest.raises(Gone):
            synthesize_dataset(SMALL, folder)
    result = synthesize_dataset(SMALL, folder)
    assert result.complete
    assert contents(folder) == contents(made)


def _without_tidying(run: Any, source: Any) -> bool:
    run._write()
    for shard, facts in source:
        run._count(shard, facts)
    return False


def test_ctrl_c_keeps_what_is_finished(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = shard_maker.write_shard, []

    def stops(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(shard_maker, "write_shard", stops)
        stopped = synthesize_dataset(SMALL, tmp_path / "set")
    assert (stopped.interrupted, stopped.complete, len(stopped.shards)) == (True, False, 2)
    with pytest.raises(AssetError, match="not finished: 2 of 6 shards"):
        ExpertDataset.open(tmp_path / "set")
    assert synthesize_dataset(SMALL, tmp_path / "set").new["shards"] == 4
    assert contents(tmp_path / "set") == contents(made)


@pytest.mark.slow
def test_several_workers_make_the_same_bytes(made: Path, tmp_path: Path) -> None:
    result = synthesize_dataset(SMALL, tmp_path / "set", workers=3)
    assert result.complete
    assert contents(tmp_path / "set") == contents(made)
    assert result.stages["rendering"] > 0.0


def test_groups_without_images_make_the_same_tables(made: Path, tmp_path: Path) -> None:
    """All shards flown together; with images each is flown alone."""
    plain = DatasetConfig(**{**SMALL.described(), "courses": SMALL.courses, "light": SMALL.light, "view": "none"})
    plain = replace(plain, scene=DatasetConfig().scene)
    synthesize_dataset(plain, tmp_path / "set")
    for shard in range(6):
        for name in ("pairs.parquet", "rollouts.parquet"):
            assert sha256_file(tmp_path / "set" / shard_name(shard) / name) == sha256_file(made / shard_name(shard) / name)


def test_every_roll_out_lies_in_one_shard_in_another_order() -> None:
    plan = RolloutPlan(SMALL)
    sharding = Sharding(plan, SMALL.shard)
    parts = [sharding.numbers(k) for k in range(len(sharding))]
    assert [len(part) for part in parts] == [8, 8, 8, 6, 8, 4]
    assert sorted(np.concatenate(parts)) == list(range(42))
    assert sorted(np.concatenate(parts[:4])) == list(range(30))
    assert not np.array_equal(np.concatenate(parts[:4]), np.arange(30))
    assert sharding.held_out.tolist() == [3, 5]


# ---- what cannot be used ----------------------------------------------------------------------------------------------


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["images.npy", "pairs.parquet", "rollouts.parquet"])
@pytest.mark.parametrize("harm", [truncate, flip, Path.unlink])
def test_damage_is_refused_and_mended_on_request(made: Path, copied: Path, name: str, harm: Callable[[Path], Any]) -> None:
    harm(copied / shard_name(2) / name)
    for what in (lambda: ExpertDataset.open(copied), lambda: synthesize_dataset(SMALL, copied)):
        with pytest.raises(AssetError, match=r"damaged|missing") as error:
            what()
        assert name in str(error.value)
        assert "\n" not in str(error.value)
    assert synthesize_dataset(SMALL, copied, repair=True).new["shards"] == 1
    assert contents(copied) == contents(made)


@pytest.mark.parametrize(
    ("text", "other", "message"),
    [
        ('"seed": 7', '"seed": 8', "edited or is damaged"),
        ('"schema_version": 1', '"schema_version": 2', "schema_version 2"),
        ('"kept"', '"keptt"', "does not describe a data set"),
        ('"mass": 0.3,', "", "mass"),
        ('"mass": 0.3,', '"mass": "much",', "mass cannot be 'much'"),
        ("{", "[", "JSON"),
        ('"complete": true', '"complete": false', "edited or is damaged"),
        ('"shard_00001"', '"../shard_00001"', "leads elsewhere"),
    ],
)
def test_an_edited_manifest_is_refused(copied: Path, text: str, other: str, message: str) -> None:
    path = copied / "dataset.json"
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, other, 1))
    with pytest.raises(AssetError, match=message):
        ExpertDataset.open(copied)
    with pytest.raises(AssetError, match="Remove the file"):
        synthesize_dataset(SMALL, copied)


def test_without_its_manifest_a_data_set_is_found_again(made: Path, copied: Path) -> None:
    (copied / "dataset.json").unlink()
    with pytest.raises(AssetError, match="does not hold a data set"):
        ExpertDataset.open(copied)
    assert synthesize_dataset(SMALL, copied).new["shards"] == 0
    assert contents(copied) == contents(made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 8}, "with seed 7, not 8"),
        ({"view": "32"}, "with view 16, not 32"),
        ({"courses": ("line",)}, "with courses robustness line, not line"),
        ({"light": (0.5, 1.0)}, "with light 1.0 1.0, not 0.5 1.0"),
        ({"clear": 1.3}, "with clear 0.0, not 1.3"),
    ],
)
def test_other_options_are_refused(made: Path, changes: dict[str, Any], message: str) -> None:
    config = DatasetConfig(**{**{name: getattr(SMALL, name) for name in SMALL.described()}, **changes})
    before = contents(made)
    with pytest.raises(AirworthyError, match=message):
        synthesize_dataset(config, made)
    assert contents(made) == before


def test_another_version_is_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.learning.datasets import config as identity

    monkeypatch.setattr(identity, "__version__", "99.0")
    with pytest.raises(AirworthyError, match="another version of Airworthy"):
        synthesize_dataset(SMALL, made)


def test_one_run_per_folder(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(AirworthyError, match="Another run"):
        synthesize_dataset(SMALL, tmp_path)


def test_a_full_disk_keeps_what_is_finished(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, count = shard_maker.write_images, 0

    def full(*arguments: Any) -> str:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(shard_maker, "write_images", full)
        with pytest.raises(AirworthyError, match="No space left on device; finished shards are kept"):
            synthesize_dataset(SMALL, tmp_path / "set")
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["dataset.json", "shard_00000", "shard_00001"]
    assert synthesize_dataset(SMALL, tmp_path / "set").new["shards"] == 4
    assert contents(tmp_path / "set") == contents(made)


def test_what_does_not_fit_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job.shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000))
    with pytest.raises(AirworthyError, match="would take"):
        synthesize_dataset(SMALL, tmp_path / "set")
    assert not list((tmp_path / "set").glob("shard*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"workers": 0}, "0 workers"), ({"device": "cuda:9"}, "Unknown device 'cuda:9'"), ({"device": "gpu"}, "Unknown device")],
)
def test_mistakes_of_a_run(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        synthesize_dataset(SMALL, tmp_path, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"view": "x"}, "Unknown view 'x'"),
        ({"light": (0.0, 1.0)}, "between 0.0 and 1.0"),
        ({"light": (1.0, 0.5)}, "between 1.0 and 0.5"),
        ({"shard": 0}, "0 roll-outs"),
        ({"seed": -1}, "seed is -1"),
        ({"courses": ("line", "line")}, "one twice"),
        ({"image_noise": -1.0}, "image_noise -1.0"),
        ({"clear": -1.0}, "clear -1.0"),
        ({"image_noise": 1e300}, "noise of 1e\\+300 counts; expected 0 to 255"),
        ({"light": (1.0, 1e9)}, "up to 100"),
        ({"per_second": 1e9}, "expected above 0 to 1,000"),
        ({"repetitions": 10**9}, "1 to 10,000,000"),
        ({"length": 1e9}, "0.05 to 3,600 s"),
        ({"position": 1e300}, "position 1e\\+300; expected 0 to 1000"),
        ({"physics_rate": 1e12}, "up to 100,000"),
    ],
)
def test_mistakes_of_a_configuration(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        DatasetConfig(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"image_noise": NOISE_MAX},
        {"light": (LIGHT_MAX, LIGHT_MAX)},
        {"shard": 1},
        {"shard": ROLLOUTS_MAX},
        {"seed": 0},
        {"seed": 2**63 - 1},
    ],
)
def test_the_ends_of_a_range_belong_to_it(changes: dict[str, Any]) -> None:
    config = DatasetConfig(**changes)
    assert {name: getattr(config, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("value", "hint", "found"),
    [(1, float, 1.0), (0.5, float, 0.5), (True, bool, True), (3, int, 3), ([1, 2], tuple[float, float], (1.0, 2.0))],
)
def test_a_configuration_on_file_has_the_types_of_its_fields(value: Any, hint: Any, found: Any) -> None:
    read = _typed(value, hint, "field")
    assert read == found
    assert type(read) is type(found)


@pytest.mark.parametrize(
    ("value", "hint"),
    [(True, float), (True, int), (1, bool), ("1", float), (1.0, int), ([1], tuple[float, float]), (None, float)],
)
def test_a_value_of_another_type_is_no_configuration(value: Any, hint: Any) -> None:
    with pytest.raises(TypeError, match="field cannot be"):
        _typed(value, hint, "field")


def test_more_roll_outs_than_fit_are_refused_before_they_are_planned() -> None:
    """Each number by itself is allowed; 16 s of course at a thousand points a second, a million times, fill any memory."""
    with pytest.raises(AirworthyError, match="roll-outs; expected up to 10,000,000: lower per_second or repetitions"):
        RolloutPlan(DatasetConfig(per_second=1000.0, repetitions=1_000_000))


def test_a_shard_that_is_a_dead_link_is_damaged_and_made_again(made: Path, copied: Path) -> None:
    shard = copied / "shard_00001"
    shutil.rmtree(shard)
    shard.symlink_to(shard.name)
    with pytest.raises(AssetError, match="--repair"):
        synthesize_dataset(SMALL, copied)
    assert synthesize_dataset(SMALL, copied, repair=True).new["shards"] == 1
    assert contents(copied) == contents(made)


def test_readers_say_how_damage_is_mended(copied: Path) -> None:
    (copied / "shard_00001" / "pairs.parquet").unlink()
    with pytest.raises(
        AssetError, match=r"is missing: the shard is damaged\. The command that made the data set makes it again"
    ):
        ExpertDataset.open(copied)
    (copied / "shard_00001" / "pairs.parquet").mkdir()
    with pytest.raises(AssetError, match="is no file: the shard is damaged"):
        ExpertDataset.open(copied)
    (copied / "dataset.json").write_text('{"schema_version": 1}')
    with pytest.raises(AssetError, match="does not describe a data set: it lacks 'identity'"):
        ExpertDataset.open(copied)


# ---- reading ----------------------------------------------------------------------------------------------------------


def test_what_readers_are_given(made: Path) -> None:
    data = ExpertDataset.open(made)
    n, k = data.rollouts, data.count
    assert k == n * SMALL.ticks
    assert 0 < n < 42
    assert len(data.flown["kept"]) == 42
    assert (data.sensed.shape, data.true.shape, data.command.shape) == ((k, 11), (k, 11), (k, 4))
    assert (data.parameters.shape, data.objective.shape, data.course.shape) == ((n, 2), (n, 18), (n,))
    assert data.images is not None
    assert data.images.shape == (k, 16, 16, 3)
    assert data.camera is not None
    assert data.camera["fx"] == pytest.approx(185.182 / 14, abs=1e-3)
    time = data.of_rollouts(data.true)[..., 0]
    np.testing.assert_allclose(time, data.start[:, None] + np.arange(SMALL.ticks) / 20.0)
    np.testing.assert_array_equal(data.of_rollouts(data.tick), np.tile(np.arange(SMALL.ticks), (n, 1)))
    assert set(data.objective[data.course == "line"][:, 0]) == {6.0}
    assert set(data.objective[data.course == "robustness"][:, 0]) == {15.0}
    np.testing.assert_array_equal(np.linalg.norm(data.true[:, 7:], axis=1).round(5), 1.0)


def test_the_last_shard_of_each_course_is_held_out(made: Path) -> None:
    data = ExpertDataset.open(made, verify=False)
    last = {name: [item for item in data.shards if item.course == name][-1].pairs for name in SMALL.courses}
    for name in SMALL.courses:
        train, held = data.split(name)
        assert len(held) == last[name]
        assert set(data.course[data.rollout[np.concatenate([train, held])]]) == {name}
        assert train.max() < held.min()
    train, held = data.split()
    assert sorted(np.concatenate([train, held])) == list(range(data.count))
    assert len(held) == sum(last.values())
    with pytest.raises(AirworthyError, match="Unknown course"):
        data.split("extended")


def test_images_are_read_from_any_shard(made: Path) -> None:
    data = ExpertDataset.open(made)
    images = data.images
    assert images is not None
    whole = np.concatenate([np.load(made / item.name / "images.npy") for item in data.shards])
    rows = np.array([5, data.count - 1, 0, data.count // 2, 5])
    np.testing.assert_array_equal(images[rows], whole[rows])
    np.testing.assert_array_equal(images.take(rows), whole[rows])
    np.testing.assert_array_equal(images[10:200:3], whole[10:200:3])
    np.testing.assert_array_equal(images[-1], whole[-1])
    np.testing.assert_array_equal(copy.deepcopy(images)[rows], whole[rows])
    with pytest.raises(IndexError):
        images[data.count]


def test_a_file_that_holds_other_images_is_refused(copied: Path) -> None:
    data = ExpertDataset.open(copied)
    path = copied / shard_name(1) / "images.npy"
    np.save(path, np.zeros((3, 16, 16, 3), np.uint8))
    with pytest.raises(AssetError, match="does not hold"):
        _ = data.images
    with pytest.raises(AssetError, match="damaged"):
        ExpertDataset.open(copied, verify=False)


def test_without_images(tmp_path: Path) -> None:
    synthesize_dataset(DatasetConfig(courses=("hover",), per_second=2.0, repetitions=2, view="none"), tmp_path)
    data = ExpertDataset.open(tmp_path)
    assert data.images is None
    assert data.camera is None
    assert data.identity["scene_sha256"] is None


def test_a_vehicle_of_a_file_is_kept_in_the_folder(tmp_path: Path) -> None:
    mine = replace(vehicle("carl"), name="mine", mass=1.05 * vehicle("carl").mass)
    file = tmp_path / "mine.toml"
    write_vehicle(mine, file)
    config = DatasetConfig(courses=("hover",), per_second=2.0, repetitions=2, view="none", vehicle=str(file))
    assert synthesize_dataset(config, tmp_path / "set").complete
    assert synthesize_dataset(config, tmp_path / "set").new["shards"] == 0
    file.unlink()
    data = ExpertDataset.open(tmp_path / "set")
    assert data.vehicle == mine
    assert abs(float(np.mean(data.parameters[:, 0])) / mine.mass - 1.0) < 0.3
    assert "mine flown by the expert" in write_card(data).read_text()
    write_vehicle(replace(mine, mass=2.0), tmp_path / "set" / "vehicle.toml")
    with pytest.raises(AssetError, match=r"vehicle.toml' is not the vehicle that was flown: it was changed afterwards"):
        _ = ExpertDataset.open(tmp_path / "set").vehicle
    write_vehicle(replace(mine, mass=2.0), file)
    with pytest.raises(AirworthyError, match="another record of the vehicle"):
        synthesize_dataset(config, tmp_path / "set")
