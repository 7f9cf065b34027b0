"""Export in the layout of LeRobot v3.0 (github.com/huggingface/lerobot): Parquet, JSON and, if asked for, MP4.

    meta/info.json                              what there is, with types, shapes and names
    meta/stats.json                             statistics over all frames
    meta/tasks.parquet                          what was asked, one task per course
    meta/episodes/chunk-000/file-000.parquet    a row per roll-out: where its frames are, and their statistics
    data/chunk-000/file-000.parquet             a row per frame; one file per shard, at most 1000 in a chunk
    videos/KEY/chunk-000/file-000.mp4           frames of the same file, where images are kept as video

Episodes to train on come first, those that are held out last. Checked with LeRobot's own reader; see docs/synthesis.md.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy import __version__
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, write_json, write_text
from airworthy.core.progress import progress
from airworthy.evaluation.video_files import check_video_size, write_video
from airworthy.learning.datasets.lerobot_tables import episode_table, frame_table, task_table
from airworthy.learning.datasets.lerobot_values import FEATURES, IMAGE_KEY, VERSION, frame_values, image_stats, merged, stats_of
from airworthy.learning.datasets.reader import ExpertDataset
from airworthy.learning.synthesis.config import RATE

__all__ = ["export_lerobot"]

IMAGES = ("png", "video")
CHUNK = 1000
"""Files in a folder, at most."""
Stats = dict[str, dict[str, NDArray[Any]]]


@dataclass(frozen=True)
class _Part:
    """Frames of one shard, as one file."""

    file: int
    pairs: NDArray[np.int64]
    """Of the data set, in order."""
    first: int
    """Of its episodes in the export."""

    def name(self, kind: str) -> str:
        return f"chunk-{self.file // CHUNK:03d}/file-{self.file % CHUNK:03d}.{kind}"


def export_lerobot(dataset: ExpertDataset, out: str | Path, images: str = "png", quiet: bool = True) -> dict[str, Any]:
    """Write a data set for LeRobot.

    Args:
        dataset: What to write.
        out: A folder that is empty or not there.
        images: How images are kept: "png" (lossless, in the tables) or "video" (MP4, not exact; extra 'video').
        quiet: Show no progress.

    Returns:
        Version of the layout, and how many episodes and frames there are.

    Raises:
        AirworthyError: The data set is empty, the folder holds something, the images cannot be kept so, or the file system
            refused.
    """
    target = Path(out)
    if not dataset.count:
        raise AirworthyError(f"The data set in {str(dataset.folder)!r} kept no roll-out: there is nothing to export.")
    if images not in IMAGES:
        raise unknown_name("way to keep images", images, IMAGES)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AirworthyError(f"{str(out)!r} holds something already: choose a folder that is empty or not there.")
    if images == "video" and dataset.images is not None:
        check_video_size((dataset.images.shape[2], dataset.images.shape[1]))
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        told = _Export(dataset, make_folder(temporary), images if dataset.images is not None else "none").write(quiet)
        if target.exists():
            target.rmdir()
        os.rename(temporary, target)
    except OSError as error:
        raise AirworthyError(f"Could not write {str(out)!r}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return told


class _Export:
    def __init__(self, dataset: ExpertDataset, folder: Path, images: str):
        self._data, self._folder, self._images = dataset, folder, images
        self._tasks = {name: f"Fly the course {name}." for name in dataset.config.courses}
        self._features = dict(FEATURES)
        if images != "none":
            assert dataset.images is not None
            self._features[IMAGE_KEY] = _image_feature(dataset.images.shape[1:], images)

    def write(self, quiet: bool) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        parts, held = self._parts()
        for part in progress(parts, "Exporting", quiet=quiet):
            rows += self._part(part)
        _write_parquet(episode_table(rows), self._folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
        _write_parquet(task_table(list(self._tasks.values())), self._folder / "meta" / "tasks.parquet")
        total = {"episodes": len(rows), "frames": sum(row["length"] for row in rows)}
        make_folder(self._folder / "meta")
        write_json(self._folder / "meta" / "stats.json", self._stats(rows))
        write_json(self._folder / "meta" / "info.json", self._info(total, held))
        write_text(self._folder / "README.md", _readme(self._data, total))
        return {"codebase_version": VERSION, **total}

    def _parts(self) -> tuple[list[_Part], int]:
        """Files in order, and the first episode that is held out."""
        ticks = self._data.config.ticks
        first = np.concatenate([[0], np.cumsum([item.pairs for item in self._data.shards])])
        last = {item.course: index for index, item in enumerate(self._data.shards)}
        train = [k for k, item in enumerate(self._data.shards) if last[item.course] != k]
        parts: list[_Part] = []
        episode, held = 0, 0
        for shard in (*train, *last.values()):
            held = episode if shard == next(iter(last.values())) else held
            pairs = np.arange(first[shard], first[shard + 1])
            if len(pairs):
                parts.append(_Part(len(parts), pairs, episode))
            episode += len(pairs) // ticks
        return parts, held

    def _part(self, part: _Part) -> list[dict[str, Any]]:
        """Write a file of frames; its rows of the table of episodes."""
        data, ticks = self._data, self._data.config.ticks
        values = frame_values(data, part.pairs, part.first, list(self._tasks))
        pictures = None if self._images == "none" else _pictures(data, part.pairs)
        table = frame_table(values, self._features, pictures if self._images == "png" else None)
        _write_parquet(table, self._folder / "data" / part.name("parquet"), ticks)
        if self._images == "video" and pictures is not None:
            path = self._folder / "videos" / IMAGE_KEY / part.name("mp4")
            make_folder(path.parent)
            write_video(path, pictures, len(pictures), (pictures.shape[2], pictures.shape[1]), RATE)
        rows = []
        for index in range(len(part.pairs) // ticks):
            mine = slice(index * ticks, (index + 1) * ticks)
            stats = {name: stats_of(array[mine]) for name, array in values.items()}
            if pictures is not None:
                stats[IMAGE_KEY] = image_stats(pictures[mine])
            rows.append(self._row(part, index, values, stats))
        return rows

    def _row(self, part: _Part, index: int, values: Mapping[str, NDArray[Any]], stats: Stats) -> dict[str, Any]:
        ticks = self._data.config.ticks
        start = int(values["index"][index * ticks])
        place = {"chunk_index": part.file // CHUNK, "file_index": part.file % CHUNK}
        row: dict[str, Any] = {
            "episode_index": part.first + index,
            "tasks": [list(self._tasks.values())[int(values["task_index"][index * ticks])]],
            "length": ticks,
            **{f"data/{name}": value for name, value in place.items()},
            "dataset_from_index": start,
            "dataset_to_index": start + ticks,
        }
        if self._images == "video":
            row |= {f"videos/{IMAGE_KEY}/{name}": value for name, value in place.items()}
            row |= {f"videos/{IMAGE_KEY}/{edge}_timestamp": (index + k) * ticks / RATE for k, edge in enumerate(("from", "to"))}
        row |= {f"stats/{name}/{kind}": value for name, kinds in stats.items() for kind, value in kinds.items()}
        return row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}

    def _stats(self, rows: list[dict[str, Any]]) -> Stats:
        """Over all frames: exact, but for images, of which a few per episode were counted."""
        names = [name for name in self._features if name != IMAGE_KEY]
        order = np.concatenate([part.pairs for part in self._parts()[0]])
        values = frame_values(self._data, order, 0, list(self._tasks))
        found = {name: stats_of(values[name]) for name in names}
        if self._images != "none":
            kinds = [key.rsplit("/", 1)[1] for key in rows[0] if key.startswith(f"stats/{IMAGE_KEY}/")]
            found[IMAGE_KEY] = merged([{kind: row[f"stats/{IMAGE_KEY}/{kind}"] for kind in kinds} for row in rows])
        return found

    def _info(self, total: Mapping[str, int], held: int) -> dict[str, Any]:
        count = total["episodes"]
        splits = {"train": f"0:{held}", "test": f"{held}:{count}"} if 0 < held < count else {"train": f"0:{count}"}
        return {
            "codebase_version": VERSION,
            "robot_type": self._data.config.vehicle,
            "total_episodes": count,
            "total_frames": total["frames"],
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": int(RATE),
            "splits": splits,
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
            if self._images == "video"
            else None,
            "features": self._features,
        }


def _pictures(data: ExpertDataset, pairs: NDArray[np.int64]) -> NDArray[np.uint8]:
    assert data.images is not None
    return data.images.take(pairs)


def _image_feature(shape: tuple[int, ...], images: str) -> dict[str, Any]:
    feature: dict[str, Any] = {"dtype": "image", "shape": list(shape), "names": ["height", "width", "channels"]}
    if images == "video":
        numbers = {"height": shape[0], "width": shape[1], "codec": "h264", "pix_fmt": "yuv420p", "is_depth_map": False}
        told = {f"video.{name}": value for name, value in {**numbers, "fps": int(RATE), "channels": 3}.items()}
        feature |= {"dtype": "video", "info": {**told, "has_audio": False}}
    return feature


def _write_parquet(table: Any, path: Path, rows: int | None = None) -> None:
    from pyarrow import parquet

    make_folder(path.parent)
    parquet.write_table(table, path, compression="snappy", use_dictionary=True, row_group_size=rows)


def _readme(data: ExpertDataset, total: Mapping[str, int]) -> str:
    config = data.config
    seen = f"in the scene {config.place_words}" if config.pictured else "without images"
    labels = "task_categories:\n- robotics\ntags:\n- LeRobot\nconfigs:\n- config_name: default\n  data_files: data/*/*.parquet"
    return (
        f"---\n{labels}\n---\n\n# {', '.join(config.courses)}: {config.vehicle} flown by an MPC expert\n\n"
        f"{total['episodes']:,} roll-outs, {total['frames']:,} frames at 20 Hz, {seen}, in the layout of LeRobot {VERSION};"
        f" made by Airworthy {__version__} from the data set {data.digest}.\n\n"
        "World: z up. Body: x forward, y left, z up. Quaternions: x, y, z, w. Image, state and action of a frame are of the"
        " same instant. `observation.state` holds what is sensed, the lateral position included: a policy that is to fly"
        " without it must leave its first two numbers out.\n"
    )
