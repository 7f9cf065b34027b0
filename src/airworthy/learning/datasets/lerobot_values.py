"""Values and statistics of frames, as LeRobot names and counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.learning.datasets.layout import COMMAND_COLUMNS, STATE_COLUMNS
from airworthy.learning.datasets.reader import ExpertDataset
from airworthy.learning.synthesis.config import RATE

__all__ = ["FEATURES", "IMAGE_KEY", "VERSION", "frame_values", "image_stats", "merged", "stats_of"]

VERSION = "v3.0"
IMAGE_KEY = "observation.images.camera"
QUANTILES = (0.01, 0.10, 0.50, 0.90, 0.99)
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
Values = dict[str, NDArray[Any]]
Kinds = dict[str, NDArray[Any]]


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


def frame_values(data: ExpertDataset, pairs: NDArray[np.int64], episode: int, courses: Sequence[str]) -> Values:
    """Values (k, ...) of frames, by feature.

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


def stats_of(values: NDArray[Any]) -> Kinds:
    """Statistics over frames (k, ...) -> (n,) each, and the count."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    found: Kinds = {"min": flat.min(0), "max": flat.max(0), "mean": flat.mean(0), "std": flat.std(0)}
    found["count"] = np.array([len(flat)])
    edges = np.quantile(flat, QUANTILES, axis=0)
    return found | {_quantile(share): edge for share, edge in zip(QUANTILES, edges, strict=True)}


def image_stats(images: NDArray[np.uint8]) -> Kinds:
    """Statistics of some images of an episode per channel, values in [0, 1], (3, 1, 1) each, and the count."""
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


def merged(parts: Sequence[Mapping[str, NDArray[Any]]]) -> Kinds:
    """Statistics of several episodes as one; quantiles are means of theirs, weighted by count, as LeRobot merges them."""
    count = np.array([float(part["count"][0]) for part in parts])
    share = count / count.sum()

    def weighted(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.tensordot(share, values, axes=1))

    def all_of(name: str) -> NDArray[Any]:
        return np.stack([part[name] for part in parts])

    mean = weighted(all_of("mean"))
    found: Kinds = {"min": all_of("min").min(0), "max": all_of("max").max(0), "mean": mean}
    found["std"] = np.sqrt(weighted(all_of("std") ** 2 + (all_of("mean") - mean) ** 2))
    found["count"] = np.array([int(count.sum())])
    return found | {_quantile(q): weighted(all_of(_quantile(q))) for q in QUANTILES}


def _quantile(share: float) -> str:
    return f"q{round(100 * share):02d}"
