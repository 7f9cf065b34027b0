"""`airworthy capture align`, `marker` and `export`: from the frame of a reconstruction to that of a place, and on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional

from airworthy.capture.alignment.markers import DICTIONARY, SIDE
from airworthy.cli.common import emit_json
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields

if TYPE_CHECKING:
    from airworthy.capture.alignment.level import Accelerations
    from airworthy.capture.alignment.record import Alignment
    from airworthy.capture.record import CaptureImages

__all__ = ["ALIGN_RULES", "ExportCaptureConfig", "MarkerConfig", "align", "check_align", "draw", "export"]


@dataclass(frozen=True)
class MarkerConfig:
    """What to print."""

    out: Path = Path("marker.png")
    """Image to write."""
    side: Annotated[float, Bound(0.01, 5.0, "m")] = SIDE
    """Side of the black square when the image is printed at its own size [m]; 0.16 m fits A4. `align` takes the same one unless
    told otherwise."""
    number: int = 0
    """Of the marker in its dictionary."""
    dictionary: str = DICTIONARY
    """4x4_50, 5x5_100, 6x6_250, aruco_original, apriltag_36h11, ...; all but the first marker of 4x4_50 need the extra
    'capture'."""

    def __post_init__(self) -> None:
        check_fields(self)


ALIGN_RULES = (
    IdleRule(("refine",), lambda config: config.corners is None, "without --corners, whose corners it would keep", "give them"),
    IdleRule(
        ("image_times", "imu_axes"),
        lambda config: config.imu is None,
        "without --imu, whose clock and axes they tell",
        "give that",
    ),
)
"""Options of `airworthy capture align` that change nothing beside the others."""


@dataclass(frozen=True)
class ExportCaptureConfig:
    """What to export, and how."""

    splats: Positional[Path]
    """Splats trained from the capture."""
    capture: Path
    """Folder of the capture that they were trained from."""
    out: Path = Path("export")
    """Folder to write."""
    program: Literal["nerfstudio", "figs"] = "nerfstudio"
    """For which program."""
    frame: Literal["place", "capture"] = "place"
    """In which frame cloud and cameras are written: of the place, or of the capture's own files."""
    pictures: bool = True
    """Also write the images, to train on."""
    crop: tuple[float, float, float, float, float, float] | None = None
    """Keep only gaussians whose centre is in a box of the place, x y z of its lower and x y z of its upper corner [m], as the
    crop box of `airworthy view` prints them."""
    json: bool = False
    """Print JSON, and no progress."""


def draw(config: MarkerConfig) -> int:
    """Draw the marker, and say what to do with it."""
    from airworthy.capture.alignment.marker_sheet import marker_words, write_marker_sheet

    write_marker_sheet(config.out, config.side, config.number, config.dictionary)
    print(
        f"Wrote {config.out}: {marker_words(config.side, config.number, config.dictionary)}. Print it at 100 %, measure the"
        " black square, and lay it flat on the floor."
    )
    return 0


def align(config: Any, images: CaptureImages) -> int:
    """Align a capture and write it, with its record and its page."""
    from airworthy.capture import write_capture
    from airworthy.capture.alignment.align import align_capture, aligned
    from airworthy.capture.alignment.page import write_alignment_page
    from airworthy.core.files import write_json
    from airworthy.scenes.splats import read_splats, write_splats

    corners, accelerations = _given(images, config)
    found = align_capture(images, config.options, corners, accelerations, config.json)
    record, result = found.record(images), aligned(images, found)
    write_capture(result, config.out)
    write_json(config.out / "alignment.json", record)
    write_alignment_page(config.out / "alignment.html", found, images)
    if config.splats is not None:
        cloud = found.similarity.splats(read_splats(config.splats).splats)
        write_splats(cloud, config.out / f"{config.splats.stem}.ply", source=result.source)
    if config.json:
        emit_json({"out": config.out, **record})
        return 0
    for line in said(found):
        print(line)
    print(f"Wrote {config.out}; see {config.out / 'alignment.html'}.")
    return 0


def said(found: Alignment) -> list[str]:
    """Return what an alignment came to, in sentences."""
    import numpy as np

    lines = []
    if found.scale_by:
        lines.append(
            f"Scale: a unit was {found.similarity.scale:.5g} m, within {found.scale_half:.2%} (95 %), by"
            f" {', '.join(found.scale_by)}."
        )
    if found.bundle is not None:
        side = found.bundle.markers[0].side
        # One default for drawing and for looking: whoever printed another size is told what was taken.
        default = " (the default: measure the black square, and say --side)" if side == SIDE else ""
        lines.append(
            f"Marker: dictionary {found.options.dictionary}, side {side:g} m{default}; {len(found.agreeing)} of"
            f" {len(found.images)} images agree, corners within {found.error:.2f} px."
        )
    if found.level is not None:
        lines.append(f"Level: within {np.degrees(found.level.tilt95):.2f} degrees (95 %), by {', '.join(found.level.used)}.")
    lines.append(f"Origin: {found.origin}.")
    return [*lines, *(f"Note: {note}." for note in found.notes)]


def _given(images: CaptureImages, config: Any) -> tuple[dict[int, Any] | None, Accelerations | None]:
    """Corners and accelerations of the files that are named."""
    from airworthy.capture.alignment.align import corners_by_name
    from airworthy.capture.alignment.level import Accelerations, read_accelerations
    from airworthy.core.files import read_json

    corners = accelerations = None
    if config.corners is not None:
        table = read_json(config.corners)
        if not isinstance(table, dict):
            raise AirworthyError(f"{str(config.corners)!r} is no JSON object of images and corners.")
        corners = {next(iter(config.options.sides)): corners_by_name(images, table, config.refine)}
    if config.imu is not None:
        if config.image_times is None:
            raise AirworthyError("--imu needs --image-times, which says when images were taken on its clock.")
        times = read_json(config.image_times)
        if not isinstance(times, dict) or not all(isinstance(t, int | float) for t in times.values()):
            raise AirworthyError(f"{str(config.image_times)!r} is no JSON object of images and seconds.")
        accelerations = Accelerations(read_accelerations(config.imu), times, config.imu_axes)
    return corners, accelerations


def check_align(config: Any) -> None:
    """Refuse options that change nothing, and a folder that would be written over itself."""
    from airworthy.capture.alignment.align import IDLE_RULES

    if config.out.resolve() == config.folder.resolve():
        raise AirworthyError(f"--out is the capture itself, {str(config.folder)!r}; choose another folder.")
    refuse_idle(config, ALIGN_RULES)
    # Before images are read, which takes longer than saying so.
    refuse_idle(config.options, IDLE_RULES, config.corners)


def export(config: ExportCaptureConfig) -> int:
    """Write splats and cameras for another program."""
    from airworthy.capture import read_capture
    from airworthy.capture.alignment.frame_export import export_frames
    from airworthy.scenes.splats import read_splats
    from airworthy.scenes.splats.editing import cropped_to

    images, whole = read_capture(config.capture, quiet=config.json), read_splats(config.splats).splats
    splats = whole if config.crop is None else cropped_to(whole, config.crop[:3], config.crop[3:])
    out = export_frames(splats, images, config.out, config.program, config.frame, config.pictures)
    if config.json:
        emit_json({"out": out, "program": config.program, "frame": config.frame, "gaussians": len(splats)})
        return 0
    some = f"{len(splats):,}" if config.crop is None else f"{len(splats):,} of {len(whole):,}"
    cameras = f"{len(images)} cameras for {config.program} in the frame of the {config.frame}"
    print(f"Wrote {out}: {some} gaussians and {cameras}.")
    return 0
