"""`airworthy capture place`: a place to fly in of splats that were trained from a capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from airworthy.cli.common import emit_json
from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json

if TYPE_CHECKING:
    from airworthy.scenes import Splats

__all__ = ["PlaceConfig", "make_place"]


@dataclass(frozen=True)
class PlaceConfig:
    """What to make a place of."""

    trained: Positional[Path]
    """Folder of `airworthy capture train`, or a file of splats in the capture's frame."""
    capture: Path
    """Folder of the capture from which they were trained: its cameras carve the free space."""
    out: Path
    """Folder to write the place to; a place that is there is replaced."""
    cell: float = 0.0
    """Edge of the cells of known space [m]; 0: 0.05 to 0.1, as suits size and memory."""
    radius: float = 0.3
    """Of the ball that must fit where start, goal and bounds are: the vehicle [m]."""
    prune: bool = True
    """Leave out gaussians that fewer than two training cameras see."""
    assume_metric: bool = False
    """Take the unit of a capture that was never aligned for the metre."""
    width: int | None = None
    """Widest image that the figures are made with; wider ones are reduced by averaging areas [px]."""
    every: int = 8
    """As of the training: where the set has no split of its own, every so many-th image is held out; 0: none."""
    up: str | None = None
    """As of the training: axis of the set that points up, or none."""
    images: str | None = None
    """As of the training: folder of COLMAP's images in the capture."""
    json: bool = False
    """Print JSON, and no progress."""


def make_place(config: PlaceConfig) -> int:
    """Make the place, and say what came of it."""
    from airworthy.capture import PlaceOptions, read_capture, write_place

    splats, trained = _trained(config.trained)
    images = read_capture(config.capture, config.width, config.every, config.up, images=config.images, quiet=config.json)
    options = PlaceOptions(
        cell=config.cell,
        radius=config.radius,
        prune=config.prune,
        antialiased=bool(trained.get("antialiased", False)),
        background=1.0 if trained.get("background") == "white" else 0.0,
        assume_metric=config.assume_metric,
    )
    record = write_place(config.out, images, splats, options, quiet=config.json).record
    if config.json:
        emit_json({"out": config.out, **record})
        return 0
    space, some, psnr = record["space_m3"], record["gaussians"], record["psnr_db"]
    print(
        f"{config.out}: {space['free']:.1f} m3 known to be free in cells of {100 * record['cell_m']:.0f} cm,"
        f" {space['unknown']:.1f} m3 unknown, which is solid (--unknown free lets flights pass)."
    )
    left = f"Left out {some['pruned']:,} of {some['trained']:,} gaussians"
    left += f", which {seen_by(some['seen_by_at_least'])}" if some["seen_by_at_least"] else ""
    print(
        f"{left}: PSNR {psnr['before']:.2f} dB before, {psnr['after']:.2f} dB after; {some['background']:,} lie beyond known"
        " space and are seen only."
    )
    for line in record["warnings"]:
        print(f"Note: {line}")
    print(f"Next: airworthy scenes show {quote(str(config.out))}; airworthy fly --scene {quote(str(config.out))}")
    return 0


def seen_by(least: int) -> str:
    """Return which gaussians were left out, as the end of a sentence about them."""
    return "no training camera sees" if least == 1 else f"fewer than {least} training cameras see"


def _trained(path: Path) -> tuple[Splats, dict[str, Any]]:
    """Return splats, and the options of their training where its folder says them."""
    from airworthy.scenes import read_splats

    if not path.is_dir() or not (path / "report.json").is_file():
        if path.is_dir() and (path / "training.json").is_file():
            raise AirworthyError(f"The training in {str(path)!r} is not finished: the command that began it goes on with it.")
        return read_splats(path).splats, {}
    report = read_json(path / "report.json")
    name, options = (report.get(key) if isinstance(report, dict) else None for key in ("splats", "options"))
    if name not in ("splats.ply", "splats.spz") or not isinstance(options, dict):
        raise AirworthyError(f"{str(path / 'report.json')!r} is no report of a training; give the file of the splats instead.")
    return read_splats(path / name).splats, options
