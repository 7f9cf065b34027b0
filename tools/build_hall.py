"""Build the splats of a hall: `python tools/build_hall.py --out hall.spz`.

The hall is lit softly, converted, trained on rendered views, written as SPZ, read back and judged on views kept aside. Beside
the file lies `hall.toml` with the recipe and what was measured. The same command gives the same bytes on a machine.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from airworthy.core import files
from airworthy.core.errors import AirworthyError
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.converting import ConvertOptions, splats_from_scene
from airworthy.rendering.refining import HELD_OUT, PosedImages, depth_error, image_quality
from airworthy.rendering.soft_light import FINE_BAKE, SoftLight, soft_views, softly_lit
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene as find_scene
from airworthy.scenes.record import Scene, SpotLight
from airworthy.scenes.splats import read_splats, write_splats
from airworthy.scenes.splats.editing import selected
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cloud import morton_order
from airworthy.splats.renderer import SplatRenderer
from polishing import PolishOptions, polished

__all__ = ["BuildHall", "build", "panel_lit"]

SMALL, LARGE = (320, 180), (640, 360)
"""Widths and heights of views [px]."""
_PANEL = "light_panel"
"""Material of the panels under a hall's ceiling."""


@dataclass(frozen=True)
class BuildHall:
    """Splats of a hall, converted from its meshes and trained on views."""

    out: Path
    """File to write (.spz or .ply); a .toml with the recipe and the figures goes beside it."""
    scene: str = "mid_gate"
    """Which scene."""
    count: int = 380_000
    """Gaussians on surfaces."""
    views: int = 300
    """Rendered views to train on, 320x180."""
    large_views: int = 600
    """And 640x360; both together at most 1000, so that none is one to judge on."""
    steps: int = 10_000
    """Of training, one view each; 0: only converted."""
    degree: int = 0
    """Of the harmonics: 0 for colours that are the same from everywhere."""
    flatness: float = 0.0
    """Weight of the shortest standard deviations, and so of thin surfaces, in training [1/m]."""
    normals: float = 0.0
    """Weight of normals that agree with the depth."""
    smoothness: float = 0.0
    """Weight of depth that does not bend."""
    closed: bool = False
    """Train before another colour at every step, so that dark details are not left to holes."""
    held_out: int = 20
    """Views to judge on, of either size."""
    exposure: float = 1.25
    """Factor on light before the film's curve."""
    samples: int = 16
    """Per pixel, each under lamps and a sun elsewhere on their discs; a power of two."""
    coarse: bool = False
    """Bake the light coarsely: minutes less, shadows blurred."""
    quiet: bool = False
    """Show no progress."""


def panel_lit(scene: Scene) -> Scene:
    """Return a hall whose spot lights hang under its light panels, together as bright as they were; one without panels, as it
    is.
    """
    spots = [light for light in scene.lights if isinstance(light, SpotLight)]
    panels = [item.position for item in scene.instances if item.materials == (_PANEL,)]
    if not (spots and panels):
        return scene
    each = sum(light.intensity for light in spots) / len(panels)
    lamps = tuple(replace(spots[0], position=(x, y, z - 0.02), intensity=each) for x, y, z in panels)
    return replace(scene, lights=(*(light for light in scene.lights if not isinstance(light, SpotLight)), *lamps))


def build(asked: BuildHall) -> dict[str, float]:
    """Build and judge.

    Returns:
        Gaussians, bytes; PSNR [dB] and structural similarity of the file's images of held-out views, mean and worst, in both
        sizes; PSNR after conversion; and the error of depth [m] where meshes are 4.5 to 5.5 m away, in the large views.

    Raises:
        AirworthyError: Counts are not positive, the scene is unknown or cannot be converted, or the file cannot be written.
    """
    few = min(asked.count, asked.held_out) < 1 or min(asked.steps, asked.views, asked.large_views) < 0
    view_count = asked.views + asked.large_views
    if few or view_count > HELD_OUT or (asked.steps and not view_count):
        raise AirworthyError(f"A hall cannot be built with {asked}; expected a count, held-out views, and views to train on.")
    files.make_folder(asked.out.parent)  # before an hour of work, not after it
    light = SoftLight(samples=asked.samples, bake=BakeSettings() if asked.coarse else FINE_BAKE)
    batch = softly_lit(panel_lit(find_scene(asked.scene)), light, asked.quiet)
    splats = splats_from_scene(batch, count=asked.count, options=ConvertOptions(exposure=asked.exposure))
    view_options: dict[str, Any] = {"first": HELD_OUT, "exposure": asked.exposure, "quiet": asked.quiet}
    kept = {size: soft_views(batch, asked.held_out, *size, **view_options) for size in (SMALL, LARGE)}
    converted = {f"converted_psnr_{size[0]}": image_quality(splats, views).psnr for size, views in kept.items()}
    if asked.steps:
        splats = polished(splats, _training(asked, batch), _polish_options(asked), asked.quiet)
    path = _written(splats, asked.out)
    found = _metrics_of(path, batch, kept)
    numbers = {"gaussians": float(len(splats)), "bytes": float(path.stat().st_size), **converted, **found}
    _write_recipe(asked, path, numbers)
    return numbers


def _polish_options(asked: BuildHall) -> PolishOptions:
    names = ("steps", "degree", "flatness", "normals", "smoothness", "closed")
    return PolishOptions(**{name: getattr(asked, name) for name in names})


def _training(asked: BuildHall, batch: SceneBatch) -> list[PosedImages]:
    """Return views to train on, in 8 bits: floats would need gigabytes. The small ones look farther up and down than those to
    judge on, as a drone that tilts does."""
    wanted = ((asked.views, SMALL, 0, 0.7), (asked.large_views, LARGE, asked.views, 0.4))
    more: dict[str, Any] = {"exposure": asked.exposure, "eight_bits": True, "quiet": asked.quiet}
    return [soft_views(batch, count, *size, first=first, pitch=pitch, **more) for count, size, first, pitch in wanted if count]


def _written(splats: Splats, path: Path) -> Path:
    """Near ones side by side: the file packs better."""
    return write_splats(selected(splats, morton_order(splats.position)), path)


def _metrics_of(path: Path, batch: SceneBatch, kept: dict[tuple[int, int], PosedImages]) -> dict[str, float]:
    renderer = SplatRenderer(read_splats(path).splats)
    found: dict[str, float] = {}
    for (width, _), views in kept.items():
        quality = image_quality(renderer, views)
        found |= {f"{name}_{width}": value for name, value in asdict(quality).items()}
    depth = depth_error(renderer, batch, kept[LARGE])
    for (width, _), views in kept.items():
        planes = depth_error(renderer, batch, views, depth_at="plane")
        found |= {f"plane_depth_median_m_{width}": planes.median, f"plane_depth_bias_m_{width}": planes.bias}
    return {**found, "depth_median_m": depth.median, "depth_bias_m": depth.bias, "depth_within_5_cm": depth.within}


def _write_recipe(asked: BuildHall, path: Path, numbers: dict[str, float]) -> None:
    """Write the recipe and the figures, to lie beside the file."""
    recipe = {name: value for name, value in asdict(asked).items() if name not in ("out", "quiet")}
    lines = [
        "# Written by `python tools/build_hall.py`: how the splats were made, and what was measured.",
        f'file = "{path.name}"',
        f'sha256 = "{files.sha256(path.read_bytes())}"',
        'source = "generated, lit, rendered and trained by airworthy"',
        'licence = "Apache-2.0"',
        "",
        "[recipe]",
        *(f"{name} = {_toml(value)}" for name, value in recipe.items()),
        "",
        "[training]",
        *(f"{name} = {_toml(value)}" for name, value in asdict(_polish_options(asked)).items()),
        "",
        "[measured]",
        *(f"{name} = {_toml(round(value, 4))}" for name, value in numbers.items()),
    ]
    files.write_bytes(path.with_suffix(".toml"), ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) else repr(value)


def main() -> int:
    """Return the command."""
    import tyro

    asked = tyro.cli(BuildHall, prog="python tools/build_hall.py")
    try:
        found = build(asked)
    except AirworthyError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{asked.out}: {found['gaussians']:,.0f} gaussians, {found['bytes'] / 1e6:.2f} MB")
    for width, height in (SMALL, LARGE):
        print(
            f"{asked.held_out} held-out views of {width}x{height}: PSNR {found[f'psnr_{width}']:.2f} dB, worst"
            f" {found[f'worst_psnr_{width}']:.2f} (converted {found[f'converted_psnr_{width}']:.2f});"
            f" SSIM {found[f'ssim_{width}']:.3f}, worst {found[f'worst_ssim_{width}']:.3f}"
        )
    print(
        f"Depth where meshes are 4.5 to 5.5 m away: median error {100 * found['depth_median_m']:.2f} cm, bias"
        f" {100 * found['depth_bias_m']:+.2f} cm, {100 * found['depth_within_5_cm']:.1f} % within 5 cm; of planes"
        f" {100 * found['plane_depth_median_m_320']:.2f} and {100 * found['plane_depth_median_m_640']:.2f} cm."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
