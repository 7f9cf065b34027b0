"""Build the splats of a hall: `python -m airworthy.sensors.splats.build_hall --out hall.spz`.

The scene is converted, refined on rendered views, written as SPZ, read back and judged on views kept aside. The same command
gives the same bytes on a machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.scenes.catalogue import scene as find_scene
from airworthy.scenes.splats import read_splats, write_splats
from airworthy.sensors.splats.converting import ConvertOptions, lit_batch, splats_from_scene
from airworthy.sensors.splats.refining import HELD_OUT, RefineOptions, refined, scene_views, splat_psnr

__all__ = ["BuildHall", "build"]


@dataclass(frozen=True)
class BuildHall:
    """Splats of a scene, converted from its meshes and refined on views."""

    out: Path
    """File to write (.spz or .ply)."""
    scene: str = "mid_gate"
    """Which scene."""
    count: int = 220_000
    """Gaussians on surfaces."""
    views: int = 400
    """Rendered views to refine on, 320x180; at most 1000, so that none is one to judge on."""
    steps: int = 2000
    """Of refinement; 0: only converted."""
    held_out: int = 20
    """Views to judge on."""
    quiet: bool = False
    """Show no progress."""


def build(asked: BuildHall) -> dict[str, float]:
    """Build and judge; gaussians, bytes, and PSNR [dB] of the held-out views: after conversion, of the file, its worst view.

    Raises:
        AirworthyError: Counts are not positive, the scene is unknown or cannot be converted, or the file cannot be written.
    """
    few = min(asked.count, asked.held_out) < 1 or min(asked.steps, asked.views) < 0
    if few or asked.views > HELD_OUT or (asked.steps and not asked.views):
        raise AirworthyError(f"A hall cannot be built with {asked}; expected a count, held-out views, and views to refine on.")
    batch = lit_batch(find_scene(asked.scene))
    kept = scene_views(batch, asked.held_out, first=HELD_OUT)
    splats = splats_from_scene(batch, count=asked.count, options=ConvertOptions())
    before = float(np.mean(splat_psnr(splats, kept)))
    if asked.steps:
        seen = scene_views(batch, asked.views)
        splats = refined(splats, seen, RefineOptions(steps=asked.steps), asked.quiet)
    path = write_splats(splats, asked.out)
    found = splat_psnr(read_splats(path).splats, kept)
    numbers = {"gaussians": len(splats), "bytes": path.stat().st_size, "converted_psnr": before}
    return {**numbers, "psnr": float(np.mean(found)), "worst_psnr": min(found)}


def main() -> int:
    """The command."""
    import tyro

    asked = tyro.cli(BuildHall, prog="python -m airworthy.sensors.splats.build_hall")
    try:
        found = build(asked)
    except AirworthyError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{asked.out}: {found['gaussians']:,.0f} gaussians, {found['bytes'] / 1e6:.2f} MB")
    print(f"PSNR on {asked.held_out} held-out views: {found['converted_psnr']:.2f} dB converted,")
    print(f"{found['psnr']:.2f} dB as written, {found['worst_psnr']:.2f} dB the worst.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
