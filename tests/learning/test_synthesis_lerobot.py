"""The export for LeRobot: its layout, read back with pyarrow; its own reader was tried by hand (docs/howto/synthesis.md)."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

from airworthy.core.errors import AirworthyError
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, synthesize_dataset
from airworthy.learning.datasets.lerobot import export_lerobot

KEY = "observation.images.camera"
SMALL = DatasetConfig(
    courses=("robustness", "hover"), per_second=0.5, repetitions=2, shard=6, length=0.4, scene="empty_room", view="16",
    keep_within=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> ExpertDataset:
    folder = tmp_path_factory.mktemp("set")
    synthesize_dataset(SMALL, folder)
    return ExpertDataset.open(folder)


@pytest.fixture(scope="module")
def exported(dataset: ExpertDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lerobot") / "out"
    assert export_lerobot(dataset, folder) == {"codebase_version": "v3.0", "episodes": 18, "frames": 144}
    return folder


def test_a_data_set_that_kept_nothing_is_not_exported(tmp_path: Path) -> None:
    few = replace(SMALL, courses=("hover",), keep_within=1e-12, view="none", scene=DatasetConfig().scene)
    synthesize_dataset(few, tmp_path / "set")
    with pytest.raises(AirworthyError, match="kept no roll-out: there is nothing to export"):
        export_lerobot(ExpertDataset.open(tmp_path / "set"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def order(dataset: ExpertDataset) -> np.ndarray[Any, Any]:
    """Pairs as they are exported: what is held out comes last."""
    return np.concatenate(dataset.split())


def frames(folder: Path) -> dict[str, list[Any]]:
    tables = [parquet.read_table(path).to_pydict() for path in sorted((folder / "data").rglob("*.parquet"))]
    return {name: [value for table in tables for value in table[name]] for name in tables[0]}


def test_info_describes_the_files(exported: Path) -> None:
    info = json.loads((exported / "meta/info.json").read_text())
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", 20, "carl")
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (18, 144, 2)
    assert info["splits"] == {"train": "0:12", "test": "12:18"}
    assert info["video_path"] is None
    for index in range(4):
        path = exported / info["data_path"].format(chunk_index=0, file_index=index)
        schema = parquet.read_schema(path)
        assert set(schema.names) == set(info["features"])
        for name, feature in info["features"].items():
            kind = schema.field(name).type
            if feature["dtype"] == "image":
                assert feature["shape"] == [16, 16, 3]
                assert str(kind) == "struct<bytes: binary, path: string>"
            elif feature["shape"] == [1]:
                assert str(kind) == {"float32": "float", "bool": "bool", "int64": "int64"}[feature["dtype"]]
            else:
                assert (kind.list_size, str(kind.value_type)) == (feature["shape"][0], "float")
                assert len(feature["names"]) == feature["shape"][0]
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        assert set(features) == set(schema.names)
    assert not (exported / info["data_path"].format(chunk_index=0, file_index=4)).exists()


def test_frames_are_the_pairs(dataset: ExpertDataset, exported: Path) -> None:
    found, rows = frames(exported), order(dataset)
    np.testing.assert_array_equal(found["observation.state"], dataset.sensed[rows, 1:].astype(np.float32))
    np.testing.assert_array_equal(found["action"], dataset.command[rows].astype(np.float32))
    np.testing.assert_array_equal(found["parameters"], dataset.parameters[dataset.rollout[rows]].astype(np.float32))
    np.testing.assert_array_equal(found["index"], np.arange(144))
    np.testing.assert_array_equal(found["episode_index"], np.arange(144) // 8)
    np.testing.assert_array_equal(found["frame_index"], np.arange(144) % 8)
    np.testing.assert_allclose(found["timestamp"], np.arange(144) % 8 / 20.0, atol=1e-7)
    np.testing.assert_array_equal(found["next.done"], np.arange(144) % 8 == 7)
    assert dataset.images is not None
    for row, image in zip(rows, found[KEY], strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(image["bytes"]))), dataset.images[row])


def test_episodes_say_where_their_frames_are(dataset: ExpertDataset, exported: Path) -> None:
    rows = parquet.read_table(exported / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    tasks = parquet.read_table(exported / "meta/tasks.parquet").to_pydict()
    assert tasks == {"task_index": [0, 1], "task": ["Fly the course robustness.", "Fly the course hover."]}
    assert [row["episode_index"] for row in rows] == list(range(18))
    courses = dataset.course[dataset.rollout[order(dataset)[::8]]]
    for row, course in zip(rows, courses, strict=True):
        assert row["length"] == row["dataset_to_index"] - row["dataset_from_index"] == 8
        assert row["tasks"] == [f"Fly the course {course}."]
        path = exported / f"data/chunk-{row['data/chunk_index']:03d}/file-{row['data/file_index']:03d}.parquet"
        table = parquet.read_table(path, columns=["episode_index", "index", "action"]).to_pydict()
        mine = [k for k, number in enumerate(table["episode_index"]) if number == row["episode_index"]]
        assert [table["index"][k] for k in mine] == list(range(row["dataset_from_index"], row["dataset_to_index"]))
        action = np.array(table["action"])[mine]
        np.testing.assert_allclose(row["stats/action/mean"], action.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(row["stats/action/max"], action.max(axis=0), atol=1e-6)
        assert row["stats/action/count"] == [8]
        assert np.shape(row[f"stats/{KEY}/mean"]) == (3, 1, 1)


def test_statistics_are_over_all_frames(dataset: ExpertDataset, exported: Path) -> None:
    stats = json.loads((exported / "meta/stats.json").read_text())
    command = dataset.command.astype(np.float32).astype(float)
    np.testing.assert_allclose(stats["action"]["mean"], command.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(stats["action"]["std"], command.std(axis=0), rtol=1e-6)
    np.testing.assert_allclose(stats["action"]["q90"], np.quantile(command, 0.9, axis=0), rtol=1e-6)
    assert stats["action"]["count"] == [144]
    assert dataset.images is not None
    images = dataset.images[:] / 255.0
    # Four of each roll-out's eight images are counted, which are much alike.
    np.testing.assert_allclose(np.ravel(stats[KEY]["mean"]), images.mean(axis=(0, 1, 2)), atol=0.01)
    np.testing.assert_allclose(np.ravel(stats[KEY]["std"]), images.std(axis=(0, 1, 2)), atol=0.01)


def test_images_as_video(dataset: ExpertDataset, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    export_lerobot(dataset, tmp_path / "out", "video")
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    rows = parquet.read_table(tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert info["features"][KEY]["dtype"] == "video"
    assert KEY not in parquet.read_schema(tmp_path / "out/data/chunk-000/file-000.parquet").names
    assert dataset.images is not None
    images, first = dataset.images[:].astype(float)[order(dataset)], 0
    for index in range(4):
        path = tmp_path / "out" / info["video_path"].format(video_key=KEY, chunk_index=0, file_index=index)
        with av.open(str(path)) as file:
            shown = [(float(frame.pts * frame.time_base), frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]
        episodes = [row for row in rows if row[f"videos/{KEY}/file_index"] == index]
        assert len(shown) == 8 * len(episodes)
        np.testing.assert_allclose([time for time, _ in shown], np.arange(len(shown)) / 20.0, atol=1e-4)
        begins = [row[f"videos/{KEY}/from_timestamp"] for row in episodes]
        np.testing.assert_allclose(begins, 0.4 * np.arange(len(episodes)), atol=1e-12)
        for _, picture in shown:
            assert np.abs(picture - images[first]).mean() < 12.0  # colour at half the resolution, of 16 x 16 pixels
            first += 1


def test_what_is_not_exported(dataset: ExpertDataset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AirworthyError, match="holds something already"):
        export_lerobot(dataset, tmp_path)
    with pytest.raises(AirworthyError, match="Unknown way to keep images 'gif'"):
        export_lerobot(dataset, tmp_path / "out", "gif")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
