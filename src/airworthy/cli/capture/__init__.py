"""`airworthy capture`: posed images of a place - show, render, align to a marker, train splats."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from tyro.conf import OmitArgPrefixes, Positional

from airworthy.capture.alignment.level import AXES
from airworthy.capture.alignment.record import AlignOptions
from airworthy.capture.training.train import TrainOptions, train_splats
from airworthy.cli.capture.align import ExportCaptureConfig, MarkerConfig, align, check_align, draw, export
from airworthy.cli.capture.place import PlaceConfig, make_place
from airworthy.cli.capture.video import CaptureFilmConfig, VideoConfig, film, video
from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.errors import unknown_name

if TYPE_CHECKING:
    from airworthy.capture import CaptureImages

PROG = "airworthy capture"
_DESCRIPTION = (
    "Show the posed images of a folder: transforms.json (instant-ngp, Nerfstudio, Blender sets) or a sparse model of COLMAP."
    " Also: airworthy capture render SCENE | marker | align FOLDER | train FOLDER | place TRAINED | export SPLATS | video FILM"
    " | film SCENE."
)
INTERRUPTED = 130


@dataclass(frozen=True)
class CaptureConfig:
    """Which capture, and how it is read."""

    folder: Positional[Path]
    """Folder of the capture, or its transforms.json."""
    width: int | None = None
    """Widest image; wider ones are reduced by averaging areas [px]."""
    every: int = 8
    """Where the set has no split of its own, every so many-th image is held out to judge on; 0: none."""
    up: str | None = None
    """Axis of the set that points up (y, -y, z, ...), or none to leave its frame; by default as the set says, else as most of
    its cameras are held."""
    images: str | None = None
    """Folder of COLMAP's images in the capture; by default images, else images_2, images_4, images_8."""


@dataclass(frozen=True)
class ShowCaptureConfig(CaptureConfig):
    """What to show."""

    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class RenderCaptureConfig:
    """What to capture."""

    scene: Positional[str]
    """NAME[:INDEX][@SEED] (`airworthy scenes` lists them), or the path of a scene."""
    out: Path
    """Folder to write; what is there already of the same capture is kept."""
    views: int = 200
    """Images to train on."""
    held_out: int = 20
    """Further images from other free places, to judge on; along a course or flight every eighth is one."""
    size: tuple[int, int] = (320, 180)
    """Width and height of the images [px]."""
    fov: float = 1.4
    """Field of view across the width [rad]."""
    along: str = ""
    """A course, or the folder of a flight, to follow; by default free places all over the scene."""
    points: int = 0
    """Surface points to write beside the images."""
    exposure: float = 1.0
    """Factor on the light."""
    samples: int = 4
    """Rays per pixel: 1, 2, 4 or 8."""
    seed: int = 0
    """Of the choice of points."""
    json: bool = False
    """Print JSON, and no progress."""


@dataclass(frozen=True)
class AlignConfig(CaptureConfig):
    """What to align."""

    out: Path = Path("aligned")
    """Folder to write the metric capture to, with alignment.json and alignment.html."""
    options: OmitArgPrefixes[AlignOptions] = field(default_factory=AlignOptions)
    """By what."""
    corners: Path | None = None
    """JSON of the first marker's corners, {image: [[u, v], ...]}: upper left, upper right, lower right, lower left [px of the
    straight image]; without it markers are looked for, which needs the extra 'capture'."""
    refine: bool = True
    """Move the corners of the file to where the edges of the square meet in the image."""
    imu: Path | None = None
    """CSV of accelerations recorded while filming: t [s], ax, ay, az [m/s^2], at rest upwards."""
    image_times: Path | None = None
    """JSON of when images were taken on the clock of --imu, {image: s}."""
    imu_axes: str = AXES
    """The camera's right, down and forward in the axes of --imu; by default those of a telephone held upright."""
    splats: Path | None = None
    """Splats trained from this capture: written aligned into the folder, too."""
    json: bool = False
    """Print JSON, and no progress."""


def main(argv: list[str]) -> int:
    """Run `airworthy capture`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: dict[str, tuple[Callable[[], Any], Callable[[Any], int], str]] = {
        "show": (lambda: ShowCaptureConfig, _show, _DESCRIPTION),
        "render": (lambda: RenderCaptureConfig, _render, "Render a scene's views with exact poses, metric, to train on."),
        "marker": (lambda: MarkerConfig, draw, "Draw the marker that makes a capture metric."),
        "align": (
            lambda: AlignConfig,
            _align,
            "Make a capture metric and level: by markers, known distances, edges, the floor.",
        ),
        "export": (lambda: ExportCaptureConfig, export, "Write trained splats and their cameras for Nerfstudio or FiGS."),
        "train": (_train_config, _train, "Train splats from posed images; a stopped run goes on where it was."),
        "place": (
            lambda: PlaceConfig,
            make_place,
            "Make a place to fly in of trained splats: known free space, bounds, contact.",
        ),
        "video": (
            lambda: VideoConfig,
            video,
            "Make a place of films or photographs: pictures, poses, masks, scale, splats and a page; a stopped run goes on.",
        ),
        "film": (lambda: CaptureFilmConfig, film, "Film a scene by hand, with the truth beside it: a film to try `video` on."),
    }
    subcommand = argv[0] if argv and not argv[0].startswith("-") else ""
    if subcommand not in commands:
        if subcommand:
            raise unknown_name(f"'{PROG}' subcommand", subcommand, commands)
        subcommand, argv = "show", ["show", *(argv or ["--help"])]
    kind, run, description = commands[subcommand]
    return run(run_tyro(kind(), argv[1:], f"{PROG} {subcommand}", description))


def _read(config: Any, quiet: bool, aligned: bool = True) -> CaptureImages:
    from airworthy.capture import read_capture

    named = {"images": config.images, "aligned": aligned, "quiet": quiet}
    return read_capture(config.folder, config.width, config.every, config.up, **named)


def _show(config: ShowCaptureConfig) -> int:
    images = _read(config, config.json)
    values = summary(images)
    if config.json:
        emit_json(values)
        return 0
    unit = "m" if images.metric else "unit of the set"
    rows = [(key.replace("_", " "), _text(value)) for key, value in values.items() if isinstance(value, str | int | float)]
    for name in ("camera_extent", "points_extent"):
        if values[name] is not None:
            rows.append((f"{name.replace('_', ' ')} [{unit}]", " to ".join(_text(corner) for corner in values[name])))
    show_table(str(config.folder), ("", ""), rows)
    for line in (*images.skipped, *images.notes):
        print(line[0].upper() + line[1:] + ".")
    return 0


def summary(images: CaptureImages) -> dict[str, Any]:
    """Return what there is to say of a capture."""
    sizes = sorted({f"{width} x {height}" for width, height in images.sizes.tolist()})
    masked = sum(mask is not None for mask in images.masks)
    return {
        "images": len(images),
        "held_out": len(images.held_out_ids),
        "sizes_px": ", ".join(sizes[:4]) + (f", ... ({len(sizes)})" if len(sizes) > 4 else ""),
        "focal_length_px": float(np.median(images.intrinsics[:, 0])),
        "images_with_mask": masked,
        "points": 0 if images.points is None else len(images.points),
        "metric": images.metric,
        "camera_extent": _extent(images.position),
        "points_extent": None if images.points is None else _extent(images.points),
        "frame": {"rotation": list(images.source.rotation), "translation": list(images.source.translation)}
        | {"scale": images.source.scale},
        "skipped": list(images.skipped),
        "notes": list(images.notes),
    }


def _extent(points: Any) -> list[list[float]]:
    return [np.round(points.min(axis=0), 4).tolist(), np.round(points.max(axis=0), 4).tolist()]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{number:.4g}" for number in value) + ")"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _render(config: RenderCaptureConfig) -> int:
    from airworthy.capture.rendering import RenderCaptureOptions, render_capture
    from airworthy.scenes import scene

    names = ("views", "held_out", "fov", "along", "points", "exposure", "samples", "seed")
    options = RenderCaptureOptions(width=config.size[0], height=config.size[1], **{n: getattr(config, n) for n in names})
    loaded = scene(config.scene)
    try:
        path = render_capture(loaded, config.out, options, quiet=config.json)
    except KeyboardInterrupt:
        print(f"Stopped; the images in {str(config.out)!r} are kept, and the same command goes on with them.", file=sys.stderr)
        return INTERRUPTED
    if config.json:
        emit_json({"scene": loaded.name, "transforms": path, "images": len(list((config.out / "images").glob("*.png")))})
    else:
        trained = quote(f"{config.out.name}_splats")
        print(f"Wrote {path}. Next: airworthy capture train {quote(str(config.out))} --out {trained}")
    return 0


def _align(config: AlignConfig) -> int:
    check_align(config)
    # What is to be aligned anew is read in its own frame.
    return align(config, _read(config, config.json, aligned=False))


def _train_config() -> Any:
    """Return the options of training, whose module is not read for other subcommands."""

    return TrainConfig


def _train(config: Any) -> int:

    return train(config, _read(config, config.json))


# ---- `airworthy capture train`: splats from posed images -------------------------------------------------------------------


@dataclass(frozen=True)
class TrainConfig(CaptureConfig):
    """What to train from, and how."""

    out: Path = Path("splats")
    """Folder for the splats, the report, and what a stopped run goes on from."""
    training: OmitArgPrefixes[TrainOptions] = field(default_factory=TrainOptions)
    """How."""
    json: bool = False
    """Print JSON, and no progress."""


def train(config: TrainConfig, images: CaptureImages) -> int:
    """Train, and say what came of it."""
    if not config.json:
        for line in (*images.skipped, *images.notes):
            print(line[0].upper() + line[1:] + ".", file=sys.stderr)
    try:
        result = train_splats(images, config.out, config.training, quiet=config.json)
    except KeyboardInterrupt:
        print(
            f"Stopped; what is done is kept in {str(config.out)!r}, and the same command goes on from there.", file=sys.stderr
        )
        return INTERRUPTED
    if config.json:
        emit_json(asdict(result))
        return 0
    evaluated_on = f"{result.held_out} held-out images" if result.held_out else "images it was trained on"
    print(f"{result.splats}: {result.gaussians:,} gaussians after {result.steps:,} steps, {result.seconds:.0f} s.")
    print(f"PSNR {result.psnr:.2f} dB, SSIM {result.ssim:.3f} on {evaluated_on}; see {result.report.with_suffix('.html')}.")
    print(f"Next: airworthy view {quote(str(result.splats))}")
    return 0
