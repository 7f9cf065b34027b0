"""What Gaussian splats promise: containers, images and derivatives as a float64 twin has them, and readers that hold."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.files import data_dir
from airworthy.rendering.refining import HELD_OUT, PosedImages, depth_error, free_poses
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.generators.halls.splat_hall import hall, hall_recipe, hall_splats
from airworthy.scenes.splats import LoadedSplats, Splats, read_splats, thinned, transformed, write_splats
from airworthy.splats import SplatRenderer, twin
from airworthy.splats.policy_view import CAMERA_INTRINSICS, CAMERA_SIZE, PolicyView
from airworthy.verification.damaged_files import damage_outcome
from airworthy.verification.published import Figure, below, zero

Camera = tuple[int, int, ArrayAny, ArrayAny, ArrayAny]
"""Width, height, lens, position (3,), attitude (4,)."""

FILES = {
    "statues_sog/angel.sog": 71_359,
    "statues_sog/angel.compressed.ply": 71_377,
    "statues_sog/angel-kneeling.sog": 83_547,
    "statues_sog/massa.sog": 58_649,
    "statues_sog/narcissus.sog": 101_275,
    "statues_sog/trumpet.sog": 89_292,
    "guitar.compressed.ply": 90_854,
    "flowers_sog_chunks": 542_104,
}
"""Gaussians that the publishers state."""
ROBOT_LEVELS = {0: 500_000, 1: 250_000, 2: 125_000, 3: 31_000, 4: 8_406, 5: 3_000, 6: 1_873}
ANGEL = {
    "statues_sog/angel.sog": ((-0.787, -2.102, -0.702), (0.806, 1.668, 0.642), (0.149, -0.730, -0.103)),
    "statues_sog/angel.compressed.ply": ((-0.806, -1.668, -0.702), (0.787, 2.102, 0.642), (-0.149, 0.730, -0.103)),
}
"""Least, largest and mean positions that are stated of one statue in two containers."""
REAL = ("statues_sog/angel.sog", "guitar.compressed.ply", "flowers_sog_chunks")
REAL_GAUSSIANS = 6_000
"""The twin draws every Gaussian at every pixel: of real captures it gets their merged form."""
SCENES, ALL_SCENES = 10, 50
DAMAGED, ALL_DAMAGED = 1_000, 10_000
WRITTEN = (".ply", ".spz")


def splat_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; those without their reference files are left out.

    Args:
        everything: 50 random scenes instead of 10, 10,000 damaged files of each written container, 20 views of the hall
            instead of 6.
    """
    data = data_dir()
    folder = None if data is None else data / "splats"
    if folder is not None and folder.is_dir():
        yield from _containers(folder)
    yield from _damaged(ALL_DAMAGED if everything else DAMAGED)
    yield from _against_twin(range(ALL_SCENES if everything else SCENES))
    if folder is not None and folder.is_dir():
        yield from _real(folder)
    yield _order()
    yield _bytes()
    yield from _derivatives()
    yield from _hall(everything)


# ---- containers ---------------------------------------------------------------------------------------------------------


def _containers(folder: Path) -> Iterator[Figure]:
    wrong = sum(len(read_splats(folder / name).splats) != count for name, count in FILES.items())
    robot = folder / "playbot_sog_lod"
    wrong += sum(len(read_splats(robot, level=k).splats) != count for k, count in ROBOT_LEVELS.items())
    yield zero(f"Splat files, of {len(FILES) + len(ROBOT_LEVELS)}, with another number of gaussians than stated", wrong)
    angels = {name: read_splats(folder / name, up="z") for name in ANGEL}
    gaps = [float(np.abs(_bounds(angels[name]) - stated).max()) for name, stated in ANGEL.items()]
    # Three decimals are stated: half a unit of the last, and float32.
    yield below("One statue in SOG and packed PLY: bounds and mean off what is stated", 1e3 * max(gaps), 0.51, "1e-3")
    stem = folder / "format_fixtures" / "test-splat.3-points-from-train"
    ply, flat, spz = (read_splats(f"{stem}.{suffix}").splats.position for suffix in ("ply", "splat", "spz"))
    apart = max(float(np.abs(ply - other).max()) for other in (flat, spz))
    yield below("Three gaussians in PLY, .splat and SPZ: positions apart", 1e3 * apart, 0.2, "1e-3")


def _bounds(loaded: LoadedSplats) -> ArrayAny:
    position = loaded.splats.position.astype(np.float64)
    return np.stack([position.min(axis=0), position.max(axis=0), position.mean(axis=0)])


def _damaged(count: int) -> Iterator[Figure]:
    for number, suffix in enumerate(WRITTEN):
        rng = np.random.default_rng([7, number])
        with TemporaryDirectory() as name:
            path = write_splats(_cloud(rng, 5, 1), Path(name) / f"seed{suffix}")
            broken, slowest, _ = damage_outcome(path, read_splats, lambda found: _sound(found.splats), count, rng)
        yield zero(f"Damaged {suffix} files of splats, of {count:,}, that break a reader's promise", broken)
        yield below(f"Slowest of them, {suffix}", slowest, 2.0, "s")


def _sound(splats: Splats) -> bool:
    fields = (splats.position, splats.rotation, splats.scale, splats.opacity, splats.harmonics)
    return all(np.isfinite(values).all() for values in fields) and bool((splats.scale > 0).all())


# ---- images -------------------------------------------------------------------------------------------------------------


def _cloud(rng: np.random.Generator, count: int, degree: int = 0) -> Splats:
    """Gaussians of every size, form and opacity in a cube of 6 m."""
    rotation = rng.normal(size=(count, 4))
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    scale = np.exp(rng.normal(-2.0, 0.8, (count, 3)))
    colours = 0.4 * rng.normal(size=(count, (degree + 1) ** 2, 3))
    return Splats(rng.uniform(-3.0, 3.0, (count, 3)), rotation, scale, rng.uniform(0.0, 1.0, count), colours)


def _camera(rng: np.random.Generator) -> Camera:
    width, height = (int(x) for x in rng.integers(20, 80, 2))
    lens = np.array([*rng.uniform(0.5, 1.5, 2) * width, width * rng.uniform(0.2, 0.8), height * rng.uniform(0.2, 0.8)])
    attitude = rng.normal(size=4)
    return width, height, lens, rng.uniform(-3.0, 3.0, 3), attitude / np.linalg.norm(attitude)


def _ours(splats: Splats, camera: Camera, **options: Any) -> ArrayAny:
    width, height, lens, position, attitude = camera
    images = SplatRenderer(splats).render(width, height, lens, position[None], attitude[None], channels=("rgb",), **options)
    return images["rgb"][0]


def _compared(pairs: Iterator[tuple[Splats, Camera]], what: str) -> Iterator[Figure]:
    """Check the worst mean error and the worst PSNR of images against the twin."""
    mean, psnr = 0.0, np.inf
    for splats, camera in pairs:
        error = _ours(splats, camera) - twin.render(splats, *camera)["rgb"]
        mean = max(mean, float(np.abs(error).mean()))
        psnr = min(psnr, float(-10.0 * np.log10(max(np.square(error).mean(), 1e-30))))
    yield below(f"Splat images, {what}: mean error against the float64 twin, worst", mean, 1e-3)
    yield Figure(f"Splat images, {what}: PSNR against the float64 twin, worst", psnr, "at least 50", psnr >= 50.0, "dB")


def _against_twin(seeds: range) -> Iterator[Figure]:
    def pairs() -> Iterator[tuple[Splats, Camera]]:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            yield _cloud(rng, 500, seed % 4), _camera(rng)

    yield from _compared(pairs(), f"{len(seeds)} random scenes")


def _real(folder: Path) -> Iterator[Figure]:
    def pairs() -> Iterator[tuple[Splats, Camera]]:
        for name in REAL:
            splats = read_splats(folder / name).splats
            few = thinned(splats, REAL_GAUSSIANS)
            low, high = np.quantile(few.position.astype(np.float64), [0.05, 0.95], axis=0)
            size = float(np.linalg.norm(high - low))
            away = 0.5 * (low + high) - np.array([0.0, size, 0.0])
            # From -y towards y: x to the right, z up.
            ahead = np.array([-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
            yield few, (96, 72, np.array([90.0, 90.0, 48.0, 36.0]), away, ahead)

    yield from _compared(pairs(), f"{len(REAL)} real scenes")


def _order() -> Figure:
    rng = np.random.default_rng(11)
    splats, camera = _cloud(rng, 800, 1), _camera(rng)
    order = rng.permutation(len(splats))
    mixed = Splats(*(getattr(splats, name)[order] for name in ("position", "rotation", "scale", "opacity", "harmonics")))
    gap = float(np.abs(_ours(splats, camera) - _ours(mixed, camera)).max())
    return below("Splat images: change by another order of the gaussians", gap, 1e-5)


_PROGRAM = """
from airworthy.verification.splats import image_digest
print(image_digest())
"""


def image_digest() -> str:
    """Return the SHA-256 of an image of a random cloud."""
    rng = np.random.default_rng(1)
    return hashlib.sha256(_ours(_cloud(rng, 3000, 2), _camera(rng)).tobytes()).hexdigest()


def _bytes() -> Figure:
    digests = {image_digest()}
    for threads in ("1", "2"):
        environment = {**os.environ, "AIRWORTHY_THREADS": threads}
        command = [sys.executable, "-c", _PROGRAM]
        digests.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip())
    return zero("Splat images with other bytes in fresh processes of 1 and 2 threads", len(digests) - 1)


# ---- the hall -----------------------------------------------------------------------------------------------------------


def _hall(everything: bool) -> Iterator[Figure]:
    """Check the shipped hall: its size, its depth against that of its meshes, and the policy's view in it."""
    yield below("The hall of splats: its file", hall_recipe()["measured"]["bytes"] / 1e6, 6.0, "MB")
    batch, count = SceneBatch(hall()), 20 if everything else 6
    position, attitude = free_poses(batch, count, first=HELD_OUT)
    focal = 320.0 / np.tan(0.7)
    lens = np.tile((focal, focal, 320.0, 180.0), (count, 1))
    renderer = SplatRenderer(hall_splats())
    views = PosedImages(np.zeros((count, 360, 640, 3), np.float32), lens, position, attitude)
    depth = depth_error(renderer, batch, views)
    yield below("The hall: depth of splats against meshes 4.5 to 5.5 m away, median", 100.0 * depth.median, 2.0, "cm")
    view = PolicyView()
    direct = view.render(renderer, position, attitude, channels=("rgb",))["rgb"]
    whole = renderer.render(*CAMERA_SIZE, CAMERA_INTRINSICS, position, attitude, channels=("rgb",))["rgb"]
    error = np.square(np.clip(direct, 0, 1) - np.clip(view.of(whole), 0, 1)).mean(axis=(1, 2, 3))
    psnr = float(-10.0 * np.log10(error.max()))
    yield Figure("The hall: policy's view against resizing and cropping, worst view", psnr, "at least 32", psnr >= 32.0, "dB")


# ---- derivatives --------------------------------------------------------------------------------------------------------


def _derivatives() -> Iterator[Figure]:
    """Check a loss's change along random directions, by our derivatives and by central differences of the twin."""
    rng = np.random.default_rng(4)
    splats = transformed(_cloud(rng, 40, 1), translation=(0.0, 0.0, 6.0))
    camera: Camera = (40, 30, np.array([40.0, 40.0, 20.0, 15.0]), np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
    weights = rng.normal(size=(30, 40, 3))
    width, height, lens, position, attitude = camera
    slopes = SplatRenderer(splats).gradients(
        lambda images, some: {"rgb": weights[None].astype(np.float32)}, width, height, lens, position[None], attitude[None]
    )[0][0]
    for name in ("position", "scale", "opacity", "harmonics"):
        values = getattr(splats, name).astype(np.float64)
        change = rng.normal(size=values.shape) * (values if name == "scale" else 1.0)
        if name == "opacity":  # stays within [0, 1]
            change *= values * (1.0 - values)
        step = 1e-6
        lower, upper = (twin.render(_changed(splats, name, values + sign * step * change), *camera)["rgb"] for sign in (-1, 1))
        wanted = float((weights * (upper - lower)).sum() / (2.0 * step))
        found = float((getattr(slopes, name).astype(np.float64) * change).sum())
        # float32 sums of some hundred terms; a pixel that comes or goes at 1/255 moves the difference quotient.
        yield below(f"Splat derivatives by {name}: off a central difference of the twin", abs(found / wanted - 1.0), 5e-3)


class _Changed:
    """A cloud in float64 with one field replaced, for the twin."""

    def __init__(self, splats: Splats):
        for name in ("position", "rotation", "scale", "opacity", "harmonics"):
            setattr(self, name, getattr(splats, name).astype(np.float64))


def _changed(splats: Splats, name: str, values: ArrayAny) -> Any:
    made = _Changed(splats)
    setattr(made, name, values)
    return made
