"""The renderer against its float64 twin on many scenes, random and captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.likeness import psnr

from airworthy.core.arrays import ArrayAny
from airworthy.scenes.splats import Splats, read_splats
from airworthy.splats import SplatRenderer, twin

MEAN_MAX, DECIBELS_MIN = 1e-3, 50.0
"""Asked of any scene."""


def test_fifty_random_scenes(cloud: Any, pose: Any) -> None:
    """All sizes, forms and opacities, degrees 0 to 3, with and without anti-aliasing, any lens and view."""
    for seed in range(50):
        rng = np.random.default_rng(1000 + seed)
        splats, view = cloud(rng, int(rng.integers(1, 350)), seed % 4), pose(rng, 70)
        options = {"antialiased": bool(seed % 3 == 0), "background": rng.uniform(size=3)}
        camera = (view.width, view.height, view.lens)
        ours = SplatRenderer(splats).render(*camera, view.position[None], view.attitude[None], **options)
        theirs = twin.render(splats, *camera, view.position, view.attitude, **options)
        for name in ("rgb", "alpha"):
            assert np.abs(ours[name][0] - theirs[name]).mean() <= MEAN_MAX, (seed, name)
            assert psnr(ours[name][0], theirs[name]) >= DECIBELS_MIN, (seed, name)
        # What float32 gives in fact, but for pixels on the other side of 1/255.
        assert np.median(np.abs(ours["rgb"][0] - theirs["rgb"])) <= 2e-6


@pytest.mark.parametrize(
    ("name", "options"),
    [("statues_sog/angel.sog", {}), ("guitar.compressed.ply", {}), ("playbot_sog_lod", {"level": 3})],
)
def test_captured_scenes(name: str, options: dict[str, Any], data_dir: Path, ring: Any) -> None:
    """Whole scenes in small images: the twin takes every Gaussian that reaches the image to every pixel."""
    loaded = read_splats(data_dir / "splats" / name, **options).splats
    where, turned = ring(loaded)
    rows = [2, 6]
    camera = (48, 27, (160.0, 160.0, 24.2, 13.6))
    ours = SplatRenderer(loaded).render(*camera, where[rows], turned[rows])
    for k, row in enumerate(rows):
        theirs = twin.render(_in_view(loaded, camera, where[row], turned[row]), *camera, where[row], turned[row])
        assert theirs["alpha"].max() > 0.9
        for channel in ("rgb", "alpha"):
            assert np.abs(ours[channel][k] - theirs[channel]).mean() <= MEAN_MAX
            assert psnr(ours[channel][k], theirs[channel]) >= DECIBELS_MIN


def _in_view(splats: Splats, camera: Any, position: ArrayAny, attitude: ArrayAny) -> Splats:
    """Those whose ellipse of opacity 1/255 comes within a pixel of the image, in float64."""
    projected = twin.project(splats, *camera, position, attitude)
    form = np.linalg.inv(projected.precision)
    reach = np.sqrt(2.0 * np.log(np.maximum(255.0 * projected.opacity, 1.0)))
    half = reach[:, None] * np.sqrt(np.stack([form[:, 0, 0], form[:, 1, 1]], axis=1)) + 1.0
    near = ((projected.mean + half > 0.0) & (projected.mean - half < camera[:2])).all(axis=1) & (
        projected.opacity >= 1.0 / 255.0
    )
    kept = np.sort(projected.index[near])
    return Splats(*(getattr(splats, n)[kept] for n in ("position", "rotation", "scale", "opacity", "harmonics")))
