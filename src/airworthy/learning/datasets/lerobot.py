"""Export in the layout of LeRobot v3.0 (github.com/huggingface/lerobot): Parquet, JSON and, if asked for, MP4.

    meta/info.json                              what there is, with types, shapes and names
    meta/stats.json                             statistics over all frames
    meta/tasks.parquet                          what was asked, one task per course
    meta/episodes/chunk-000/file-000.parquet    a row per roll-out: where its frames are, and their statistics
    data/chunk-000/file-000.parquet             a row per frame; one file per shard, at most 1000 in a chunk
    videos/KEY/chunk-000/file-000.mp4           frames of the same file, where images are kept as video

Episodes to train on come first, those that are held out last. Checked with LeRobot's own reader; see docs/howto/synthesis.md.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.arrays import ArrayAny, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, write_json, write_text
from airworthy.core.jobs.progress import progress
from airworthy.learning.datasets.config import COMMAND_COLUMNS, STATE_COLUMNS
from airworthy.learning.datasets.reader import ExpertDataset
from airworthy.learning.synthesis.config import RATE
from airworthy.reports.film.files import check_video_size, write_video

__all__ = [
    "FEATURES",
    "IMAGE_KEY",
    "VERSION",
    "episode_table",
    "export_lerobot",
    "frame_table",
    "frame_values",
    "image_stats",
    "merged",
    "stats_of",
    "task_table",
]

# ---- Values and statistics of frames, as LeRobot names and counts them ------------------------------------------------------

VERSION = "v3.0"
IMAGE_KEY = "observation.images.camera"
# Source: the LeRobot format, version 3.0: these five are kept of every feature.
QUANTILES = (0.01, 0.10, 0.50, 0.90, 0.99)
# Ours: pixels of neighbouring ticks are nearly the same, and all of them would take longer than the export.
IMAGES_COUNTED = 4
"""Of an episode, for statistics."""
OBJECTIVE = (
    "duration_s",
    *(f"displacement_{a}_m" for a in "xyz"),
    *(f"start_velocity_{a}_m_s" for a in "xyz"),
    *(f"end_velocity_{a}_m_s" for a in "xyz"),
    *(f"start_attitude_{a}" for a in "xyzw"),
    *(f"end_attitude_{a}" for a in "xyzw"),
)
Values = dict[str, ArrayAny]
Kinds = dict[str, ArrayAny]


def _feature(dtype: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [len(names) if names else 1], "names": list(names) if names else None}


FEATURES: dict[str, dict[str, Any]] = {
    "observation.state": _feature("float32", STATE_COLUMNS),
    "observation.environment_state": _feature("float32", OBJECTIVE),
    "action": _feature("float32", COMMAND_COLUMNS),
    "true_state": _feature("float32", STATE_COLUMNS),
    "parameters": _feature("float32", ("mass_kg", "rotor_force_N")),
    "course_time": _feature("float32"),
    "next.done": _feature("bool"),
    "timestamp": _feature("float32"),
    "frame_index": _feature("int64"),
    "episode_index": _feature("int64"),
    "index": _feature("int64"),
    "task_index": _feature("int64"),
}
"""What there is besides images. `observation.environment_state` is what a policy is told of its course."""


def frame_values(data: ExpertDataset, pairs: ArrayInt, episode: int, courses: Sequence[str]) -> Values:
    """Return values (k, ...) of frames, by feature.

    Args:
        data: The data set.
        pairs: (k,) whole roll-outs of it.
        episode: Number of the first of them.
        courses: In the order of the tasks.
    """
    ticks, rollout = data.config.ticks, data.rollout[pairs]
    frame = np.tile(np.arange(ticks), len(pairs) // ticks)
    task = {name: index for index, name in enumerate(courses)}
    return {
        "observation.state": data.sensed[pairs, 1:].astype(np.float32),
        "observation.environment_state": data.objective[rollout].astype(np.float32),
        "action": data.command[pairs].astype(np.float32),
        "true_state": data.true[pairs, 1:].astype(np.float32),
        "parameters": data.parameters[rollout].astype(np.float32),
        "course_time": data.true[pairs, 0].astype(np.float32),
        "next.done": frame == ticks - 1,
        "timestamp": (frame / RATE).astype(np.float32),
        "frame_index": frame.astype(np.int64),
        "episode_index": episode + np.arange(len(pairs)) // ticks,
        "index": episode * ticks + np.arange(len(pairs)),
        "task_index": np.array([task[str(name)] for name in data.course[rollout]], np.int64),
    }


def stats_of(values: ArrayAny) -> Kinds:
    """Return statistics over frames (k, ...) -> (n,) each, and the count."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    found: Kinds = {"min": flat.min(0), "max": flat.max(0), "mean": flat.mean(0), "std": flat.std(0)}
    found["count"] = np.array([len(flat)])
    edges = np.quantile(flat, QUANTILES, axis=0)
    return found | {_quantile(share): edge for share, edge in zip(QUANTILES, edges, strict=True)}


def image_stats(images: ArrayU8) -> Kinds:
    """Return statistics of some images of an episode per channel, values in [0, 1], (3, 1, 1) each, and the count."""
    some = images[np.unique(np.round(np.linspace(0, len(images) - 1, IMAGES_COUNTED)).astype(int))]
    levels = np.arange(256) / 255.0
    counts = np.stack([np.bincount(some[..., channel].ravel(), minlength=256) for channel in range(3)]).astype(np.float64)
    share = counts / counts.sum(1, keepdims=True)
    mean = share @ levels
    found: Kinds = {
        "min": levels[(counts > 0).argmax(1)],
        "max": levels[255 - (counts[:, ::-1] > 0).argmax(1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(share @ levels**2 - mean**2, 0.0)),
    }
    total = share.cumsum(1)
    found |= {_quantile(q): levels[(total >= q - 1e-12).argmax(1)] for q in QUANTILES}
    return {name: value.reshape(3, 1, 1) for name, value in found.items()} | {"count": np.array([len(some)])}


def merged(parts: Sequence[Mapping[str, ArrayAny]]) -> Kinds:
    """Return statistics of several episodes as one; quantiles are means of theirs, weighted by count, as LeRobot merges
    them."""
    count = np.array([float(part["count"][0]) for part in parts])
    share = count / count.sum()

    def weighted(values: ArrayAny) -> ArrayAny:
        return np.asarray(np.tensordot(share, values, axes=1))

    def all_of(name: str) -> ArrayAny:
        return np.stack([part[name] for part in parts])

    mean = weighted(all_of("mean"))
    found: Kinds = {"min": all_of("min").min(0), "max": all_of("max").max(0), "mean": mean}
    # Of parts: variance within plus variance of the means (law of total variance).
    found["std"] = np.sqrt(weighted(all_of("std") ** 2 + (all_of("mean") - mean) ** 2))
    found["count"] = np.array([int(count.sum())])
    return found | {_quantile(q): weighted(all_of(_quantile(q))) for q in QUANTILES}


def _quantile(share: float) -> str:
    return f"q{round(100 * share):02d}"


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Tables of a LeRobot data set; pyarrow is imported where it is used -----------------------------------------------------

PNG_LEVEL = 3
"""Of compression: twice as fast as the default, a tenth larger."""


def frame_table(values: Mapping[str, ArrayAny], features: Mapping[str, Mapping[str, Any]], images: ArrayU8 | None) -> Any:
    """Return a row per frame: vectors as lists of a fixed size, images as PNG.

    Args:
        values: Columns by name, (frames, ...).
        features: Shape and type of each, as `FEATURES`.
        images: (frames, H, W, 3); None: no images.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, feature in features.items():
        if name == IMAGE_KEY:
            continue
        array, size = values[name], feature["shape"][0]
        flat = pa.array(np.ascontiguousarray(array).reshape(-1), pa.from_numpy_dtype(array.dtype))
        columns[name] = flat if size == 1 else pa.FixedSizeListArray.from_arrays(flat, size)
    if images is not None:
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        columns[IMAGE_KEY] = pa.array([{"bytes": _png(image), "path": None} for image in images], kind)
    table = pa.table(columns)
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": _feature_table(features, images is not None)}})}
    )


def episode_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a row per episode, arrays as nested lists."""
    import pyarrow as pa

    names = list(rows[0]) if rows else []
    return pa.table({name: pa.array([_plain(row[name]) for row in rows]) for name in names})


def task_table(tasks: Sequence[str]) -> Any:
    """Return tasks with their numbers; pandas reads the task as the row's name."""
    import pyarrow as pa

    table = pa.table({"task_index": pa.array(np.arange(len(tasks))), "task": pa.array(list(tasks))})
    kinds = (("task_index", "int64", "int64"), ("task", "unicode", "object"))
    written = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": stored, "metadata": None}
            for name, kind, stored in kinds
        ],
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(written)})


def _feature_table(features: Mapping[str, Mapping[str, Any]], pictured: bool) -> dict[str, Any]:
    """Features as the `datasets` library writes them into a file's schema."""
    found: dict[str, Any] = {}
    for name, feature in features.items():
        value = {"dtype": feature["dtype"], "_type": "Value"}
        if name == IMAGE_KEY:
            if pictured:
                found[name] = {"_type": "Image"}
        elif feature["shape"][0] == 1:
            found[name] = value
        else:
            found[name] = {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}
    return found


def _png(image: ArrayU8) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=PNG_LEVEL)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


# -----------------------------------------------------------------------------------------------------------------------------

IMAGES = ("png", "video")
# Source: the LeRobot format, version 3.0, whose default it is.
CHUNK = 1000
"""Files in a folder, at most."""
Stats = dict[str, dict[str, ArrayAny]]


@dataclass(frozen=True)
class _Part:
    """Frames of one shard, as one file."""

    file: int
    pairs: ArrayInt
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
        written = _Export(dataset, make_folder(temporary), images if dataset.images is not None else "none").write(quiet)
        if target.exists():
            target.rmdir()
        os.rename(temporary, target)
    except OSError as error:
        raise AirworthyError(f"Could not write {str(out)!r}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return written


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

    def _row(self, part: _Part, index: int, values: Mapping[str, ArrayAny], stats: Stats) -> dict[str, Any]:
        ticks = self._data.config.ticks
        start = int(values["index"][index * ticks])
        file = {"chunk_index": part.file // CHUNK, "file_index": part.file % CHUNK}
        row: dict[str, Any] = {
            "episode_index": part.first + index,
            "tasks": [list(self._tasks.values())[int(values["task_index"][index * ticks])]],
            "length": ticks,
            **{f"data/{name}": value for name, value in file.items()},
            "dataset_from_index": start,
            "dataset_to_index": start + ticks,
        }
        if self._images == "video":
            row |= {f"videos/{IMAGE_KEY}/{name}": value for name, value in file.items()}
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
            "robot_type": self._data.vehicle.name,
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


def _pictures(data: ExpertDataset, pairs: ArrayInt) -> ArrayU8:
    assert data.images is not None
    return data.images.take(pairs)


def _image_feature(shape: tuple[int, ...], images: str) -> dict[str, Any]:
    feature: dict[str, Any] = {"dtype": "image", "shape": list(shape), "names": ["height", "width", "channels"]}
    if images == "video":
        numbers = {"height": shape[0], "width": shape[1], "codec": "h264", "pix_fmt": "yuv420p", "is_depth_map": False}
        written = {f"video.{name}": value for name, value in {**numbers, "fps": int(RATE), "channels": 3}.items()}
        feature |= {"dtype": "video", "info": {**written, "has_audio": False}}
    return feature


def _write_parquet(table: Any, path: Path, rows: int | None = None) -> None:
    from pyarrow import parquet

    make_folder(path.parent)
    parquet.write_table(table, path, compression="snappy", use_dictionary=True, row_group_size=rows)


def _readme(data: ExpertDataset, total: Mapping[str, int]) -> str:
    config = data.config
    where = f"in the scene {config.scene_title}" if config.pictured else "without images"
    labels = "task_categories:\n- robotics\ntags:\n- LeRobot\nconfigs:\n- config_name: default\n  data_files: data/*/*.parquet"
    return (
        f"---\n{labels}\n---\n\n# {', '.join(config.courses)}: {data.vehicle.name} flown by an MPC expert\n\n"
        f"{total['episodes']:,} roll-outs, {total['frames']:,} frames at 20 Hz, {where}, in the layout of LeRobot {VERSION};"
        f" made by Airworthy {__version__} from the data set {data.digest}.\n\n"
        "World: z up. Body: x forward, y left, z up. Quaternions: x, y, z, w. Image, state and action of a frame are of the"
        " same instant. `observation.state` holds what is sensed, the lateral position included: a policy that is to fly"
        " without it must leave its first two numbers out.\n"
    )
