"""Still images of ten scenes beside Mitsuba 3's of the same scenes, exported: PSNR after equal tone mapping, ratio of energy.

Mitsuba is an independent path tracer (BSD licence). It is no dependency: `pip install mitsuba==3.9.1` into any environment
beside this package (its variant `scalar_rgb` needs nothing else), then

    python benchmarks/mitsuba_judge.py --samples 256 --out runs/judge

Both render each scene twice, with different random numbers. Columns: `raw_db` of the mean of our two images against the mean
of theirs, PSNR after the same tone curve; `still_db` the same with noise apart: the product of the errors of two independent
pairs has the squared difference of the converged images as its mean (at most 60 dB are told apart); `energy` mean of ours over
mean of theirs, linear; `baked_db` of our image by baked light (`use_baked`) in quality `high` against our own still images,
noise apart; with gloss, coats included, where not all is diffuse.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.files import make_folder, write_json
from airworthy.geometry import RayTable
from airworthy.optics.tone import display_from_linear, to_8bit
from airworthy.rendering import BakeSettings, StillOptions, image_psnr, quality_options, render, use_baked
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats.mitsuba import write_mitsuba
from benchmarks.still_scenes import SCENES, StillScene

LEAST_DB, ENERGY = 40.0, 0.02


def ours(item: StillScene, size: tuple[int, int], samples: int, seed: int, coat: bool = False) -> np.ndarray:
    """Linear radiance (H, W, 3)."""
    batch, table = SceneBatch(item.scene), RayTable(*item.view.rays(*size))
    still = StillOptions(samples=samples, seed=seed, sun_angle=item.sun_angle, coat=coat, bounces=200)
    pose = item.view.position[None], item.view.attitude[None]
    return np.asarray(render(batch, table, *pose, channels=("rgb",), still=still)["rgb"][0])


def baked(item: StillScene, size: tuple[int, int], bounces: int) -> np.ndarray:
    """Linear radiance (H, W, 3) of the standard renderer with baked light."""
    batch, table = SceneBatch(item.scene), RayTable(*item.view.rays(*size))
    use_baked(batch, BakeSettings(bounces=bounces))
    pose = item.view.position[None], item.view.attitude[None]
    options = replace(quality_options("high"), sun_angle=item.sun_angle, sun_disc=not item.diffuse, specular=not item.diffuse)
    return np.asarray(render(batch, table, *pose, channels=("rgb",), options=options)["rgb"][0])


def mitsubas(item: StillScene, size: tuple[int, int], samples: int, folder: Path) -> tuple[list[np.ndarray], list[str]]:
    """Linear radiance (H, W, 3) by Mitsuba, with two seeds, and what was not exported as it is."""
    import mitsuba

    mitsuba.set_variant("scalar_rgb")
    notes = write_mitsuba(folder, item.scene, item.view, size, samples=samples, sun_angle=item.sun_angle, coat=False)
    loaded: Any = mitsuba.load_file(str(folder / "scene.xml"))
    return [np.array(mitsuba.render(loaded, spp=samples, seed=k)).reshape(size[1], size[0], 3) for k in (0, 1)], notes


def beside(image: np.ndarray, stills: list[np.ndarray]) -> float:
    """PSNR of an image against still images with independent noise, that noise apart (at most 60 dB)."""
    first, second = (display_from_linear(image).astype(float) - display_from_linear(still) for still in stills)
    return float(-10.0 * np.log10(max(float(np.mean(first * second)), 1e-6)))


def judged(name: str, size: tuple[int, int], samples: int, bounces: int, out: Path | None) -> dict[str, Any]:
    """One row of the table."""
    item = SCENES[name]()
    begun = time.perf_counter()
    mine = [ours(item, size, samples, seed) for seed in (0, 1)]
    seconds = time.perf_counter() - begun
    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        theirs, notes = mitsubas(item, size, samples, Path(folder))
        other_seconds = time.perf_counter() - begun
    image, truth = np.mean(mine, axis=0), np.mean(theirs, axis=0)
    shown = {"still": image, "mitsuba": truth}
    errors = [display_from_linear(a).astype(float) - display_from_linear(b) for a, b in zip(mine, theirs, strict=True)]
    row: dict[str, Any] = {
        "scene": name,
        "still_db": -10.0 * np.log10(max(float(np.mean(errors[0] * errors[1])), 1e-6)),
        "raw_db": image_psnr(display_from_linear(image), display_from_linear(truth)),
        "energy": float(image.mean() / truth.mean()),
        "still_s": seconds,
        "mitsuba_s": other_seconds,
        "notes": notes,
    }
    shown["baked"] = baked(item, size, bounces)
    stills = mine if item.diffuse else [ours(item, size, samples, seed, coat=True) for seed in (0, 1)]
    row["baked_db"] = beside(shown["baked"], stills)
    if out is not None:
        from PIL import Image

        error = np.abs(display_from_linear(image) - display_from_linear(truth)) * 10.0
        tiles = [to_8bit(part) for part in shown.values()] + [(np.clip(error, 0, 1) * 255).astype(np.uint8)]
        Image.fromarray(np.concatenate(tiles, axis=1)).save(out / f"{name}.png")
    return row


def main() -> None:
    """Print a row per scene; exit with 1 where one is below what is required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES), help="which")
    parser.add_argument("--samples", type=int, default=256, help="paths per pixel of both")
    parser.add_argument("--bounces", type=int, default=0, help="of baked light; 0: until it no longer changes")
    parser.add_argument("--width", type=int, default=96, help="pixels")
    parser.add_argument("--height", type=int, default=72, help="pixels")
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for pictures (ours, Mitsuba's, baked, ten times the difference)"
    )
    parser.add_argument("--json", type=Path, default=None, help="file for the rows")
    asked = parser.parse_args()
    try:
        import mitsuba  # noqa: F401
    except ImportError:
        raise SystemExit(
            "Mitsuba is not installed; run `pip install mitsuba==3.9.1` in this environment, then this again."
        ) from None
    if asked.out is not None:
        make_folder(asked.out)
    print(f"{'scene':10} {'still_db':>9} {'raw_db':>9} {'energy':>8} {'baked_db':>9} {'ours, s':>8} {'mitsuba':>8}")
    rows = []
    for name in asked.scenes:
        row = judged(name, (asked.width, asked.height), asked.samples, asked.bounces, asked.out)
        rows.append(row)
        print(
            f"{name:10} {row['still_db']:9.1f} {row['raw_db']:9.1f} {row['energy']:8.4f} {row['baked_db']:9.1f}"
            f" {row['still_s']:8.1f} {row['mitsuba_s']:8.1f}  {'; '.join(row['notes'])}",
            flush=True,
        )
    if asked.json is not None:
        write_json(asked.json, rows)
    short = [row["scene"] for row in rows if row["still_db"] < LEAST_DB or abs(row["energy"] - 1.0) > ENERGY]
    if short:
        raise SystemExit(f"Below {LEAST_DB:g} dB or beyond {ENERGY:.0%} of energy: {', '.join(short)}.")


if __name__ == "__main__":
    main()
