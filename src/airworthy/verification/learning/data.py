"""Data synthesis: items 4 and 5 of SOUS VIDE's acceptance list (specification, sections 5, 6 and 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.files import sha256_file
from airworthy.core.frames import to_matrix, z_down_attitude, z_down_vector
from airworthy.evaluation.metrics import path_distance
from airworthy.geometry import Sphere
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, Made, synthesize_dataset
from airworthy.learning.datasets.config import PAIRS_FILE, ROLLOUTS_FILE
from airworthy.learning.synthesis import RolloutPlan, SynthesisConfig, roll_out
from airworthy.scenes import Instance, Material, Scene, Sky, write_scene
from airworthy.verification.published import Figure, below, zero

__all__ = ["closing_figures", "instant_figures", "made_small", "published_set_figures", "repetition_figures"]

PUBLISHED = {"rollouts": 4_500, "pairs": 180_000}
"""Of the 15 s course, before any is left out."""
BALLS = np.array([[0.5 + 9.0 * np.cos(a), 9.0 * np.sin(a), z] for a in np.arange(24) * np.pi / 12 for z in (-1.5, 1.0, 3.5)])
"""(72, 3) red balls all round the course."""
RADIUS, REACH = 0.15, 16.0
"""Of a ball [m]; how far around its pixel red is looked for, and how far from the edge and from others it must be [px]."""
# StanfordMSL/SousVide, configs/frame/carl.json: camera (x right, y up, z backward) to body (x forward, y right, z down).
MOUNT = np.array([[0.0, 0.0, -1.0, 0.10], [1.0, 0.0, 0.0, -0.03], [0.0, -1.0, 0.0, -0.01]])
POLICY_VIEW = (185.182, 329.246, 113.230, 112.842)
"""fx, fy, cx, cy [px] of the policy's image (specification, section 6)."""
SMALL = DatasetConfig(per_second=1.0, repetitions=1, length=0.4, keep_within=0.0, shard=5)
"""15 roll-outs of 8 pairs in 3 shards, with images of 224 x 224; the scene is put in."""


# ---- 4: synthesis -------------------------------------------------------------------------------------------------------


def published_set_figures(
    folder: Path, config: DatasetConfig | None = None, expected: dict[str, int] | None = None, again: bool = False
) -> Iterator[Figure]:
    """Make the published set without images, and count.

    Args:
        folder: Empty, for the data.
        config: Other than the published one (tests).
        expected: Its `rollouts`, and `pairs` of all of them.
        again: Also compare it with one that two processes make, in other groups.
    """
    config, expected = config or DatasetConfig(view="none"), expected or PUBLISHED
    made = _made(config, folder / "set")
    rollouts, kept = made.total("rollouts"), made.total("kept")
    pairs = rollouts * config.ticks
    for name, count in (("rollouts", rollouts), ("pairs", pairs)):
        aim = f"{expected[name]:,}, as published"
        kind = name.replace("rollouts", "roll-outs")
        yield Figure(f"SOUS VIDE 4, data of robustness: {kind}", count, aim, count == expected[name])
    # Nothing is published about how many are left out; an expert that works loses few.
    share = 100.0 * kept / rollouts
    yield Figure("SOUS VIDE 4, data of robustness: roll-outs kept", share, "at least 95", share >= 95.0, "%")
    yield below(f"SOUS VIDE 4, data of robustness: making {pairs:,} pairs without images", made.seconds, 180.0, "s")
    if again:
        _made(config, folder / "again", workers=2)
        other = _different(_contents(folder / "set"), _contents(folder / "again"))
        yield zero(f"SOUS VIDE 4, {pairs:,} pairs made again by two processes: files with other bytes", other)


def closing_figures(every: int = 20) -> Iterator[Figure]:
    """Measure where the expert is, two seconds after it began off the course.

    Args:
        every: Take every so many of the published roll-outs.
    """
    plan = RolloutPlan(SynthesisConfig())
    flown = roll_out(plan, np.arange(0, plan.count, every))
    path = plan.paths[0]
    line = path.sample(np.linspace(0.0, path.duration, 3001)).position
    start, end = (path_distance(flown.state[:, k, :3], line) for k in (0, -1))
    label = f"SOUS VIDE 4, expert 2 s after up to 0.4 m and 0.4 m/s per axis off, {len(end)} roll-outs: off the course"
    yield Figure(
        "SOUS VIDE 4, starts of these roll-outs: off the course, worst", float(start.max()), "over 0.4", start.max() > 0.4, "m"
    )
    yield below(f"{label}, median", 100.0 * float(np.median(end)), 2.0, "cm")
    yield below(f"{label}, worst", 100.0 * float(end.max()), 7.0, "cm")  # that of the keep rule
    yield zero("SOUS VIDE 4, expert: ticks of these roll-outs without a solution", int(flown.failures.sum()))


def made_small(folder: Path) -> ExpertDataset:
    """Return a small set with images, seen in a black place with red balls; `folder` gets `scene` and `small`."""
    config = replace(SMALL, scene=str(write_scene(_scene(), folder / "scene")))
    _made(config, folder / "small")
    return ExpertDataset.open(folder / "small")


def repetition_figures(data: ExpertDataset, folder: Path) -> Iterator[Figure]:
    """Check the same seed once more, by two processes; and its tables once more without images, all shards flown together.

    Args:
        data: Of `made_small`.
        folder: For the others.
    """
    _made(data.config, folder / "by_two", workers=2)
    first = _contents(data.folder)
    other = _different(first, _contents(folder / "by_two"))
    yield zero(f"SOUS VIDE 4, the same seed by one process and by two: of {len(first)} files, with other bytes", other)
    _made(replace(data.config, view="none"), folder / "together")
    tables = {name: digest for name, digest in first.items() if Path(name).name in (PAIRS_FILE, ROLLOUTS_FILE)}
    found = {name: digest for name, digest in _contents(folder / "together").items() if name in tables}
    label = f"SOUS VIDE 4, the same seed, shards flown alone and together: of {len(tables)} tables, with other bytes"
    yield zero(label, _different(tables, found))


def _made(config: DatasetConfig, folder: Path, workers: int = 1) -> Made:
    made = synthesize_dataset(config, folder, workers=workers)
    if made.interrupted:  # it keeps what is finished and ends; here nobody would go on with it
        raise KeyboardInterrupt
    return made


def _contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file by its path."""
    return {str(path.relative_to(folder)): sha256_file(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _different(a: dict[str, str], b: dict[str, str]) -> int:
    return sum(a.get(name) != b.get(name) for name in {*a, *b})


# ---- 5: image and state are of one instant ------------------------------------------------------------------------------


def _scene() -> Scene:
    red = Material(base_color=(0.0, 0.0, 0.0, 1.0), emissive=(1.0, 0.0, 0.0))
    balls = tuple(
        Instance("ball", tuple(position.tolist()), materials=("red",), name=f"ball {k}") for k, position in enumerate(BALLS)
    )
    black = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    return Scene("red_balls", {"ball": Sphere(RADIUS)}, {"red": red}, instances=balls, lights=(), sky=black)


def instant_figures(data: ExpertDataset) -> Iterator[Figure]:
    """Measure where each image shows the balls, beside where the state of its own pair puts them, and those of its neighbours.

    Args:
        data: Of `made_small`.
    """
    images = data.images
    assert images is not None
    pixels = [_projected(state[1:]) for state in data.sensed]
    gaps: dict[int, list[Array]] = {-1: [], 0: [], 1: []}
    for k in range(data.count):
        image = np.asarray(images[k])
        for shift, found in gaps.items():
            other = k + shift
            if 0 <= other < data.count and data.rollout[other] == data.rollout[k]:
                found.append(_off(image, pixels[other]))
    own, before, after = (np.concatenate(gaps[shift]) for shift in (0, -1, 1))
    yield Figure(f"SOUS VIDE 5, balls seen in {data.count} images", len(own), "at least 100", len(own) >= 100)
    label = "SOUS VIDE 5, balls in images: off the projection of"
    # The middle of a ball's image is off the image of its middle by some hundredths of a pixel.
    yield below(f"{label} the pair's own state, median", float(np.median(own)), 0.2, "px")
    yield below(f"{label} the pair's own state, 98 %", float(np.quantile(own, 0.98)), 0.5, "px")
    for kind, neighbours in (("state a tick earlier", before), ("state a tick later", after)):
        middle = float(np.median(neighbours))
        yield Figure(f"{label} the {kind}, median", middle, "over 1", middle > 1.0, "px")


def _projected(state: Array) -> Array:
    """Pixels (balls, 2) by the specification's formulas, T_WC = T_WB T_BC with z down; NaN behind the camera."""
    body = to_matrix(z_down_attitude(state[6:]))
    turn, position = body @ MOUNT[:, :3], z_down_vector(state[:3]) + body @ MOUNT[:, 3]
    x, y, z = turn.T @ (z_down_vector(BALLS) - position).T
    fx, fy, cx, cy = POLICY_VIEW
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(z < -0.5, np.array([cx - fx * x / z, cy + fy * y / z]), np.nan).T


def _off(image: ArrayU8, pixels: Array) -> Array:
    """Distance [px] from each ball that stands free in the image to the middle of the red around its pixel."""
    red, size = image[..., 0].astype(np.float64), np.array(image.shape[1::-1])
    apart = np.linalg.norm(pixels[:, None] - pixels[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    inside = (pixels > REACH).all(axis=1) & (pixels < size - REACH).all(axis=1)
    found = []
    for pixel in pixels[inside & (np.nan_to_num(apart, nan=np.inf).min(axis=1) > 2.0 * REACH)]:
        left, top = np.floor(pixel - REACH).astype(int)
        right, bottom = np.ceil(pixel + REACH).astype(int)
        v, u = np.mgrid[top:bottom, left:right] + 0.5
        weight = red[top:bottom, left:right] * (np.hypot(u - pixel[0], v - pixel[1]) < REACH)
        total = weight.sum()
        middle = np.array([(weight * u).sum(), (weight * v).sum()]) / total if total else pixel + REACH
        found.append(np.linalg.norm(middle - pixel))
    return np.array(found)
