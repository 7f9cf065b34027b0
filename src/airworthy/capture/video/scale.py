"""Scale and level of a place from a film: by what lies in its folder, once, and from then on as its alignment.json says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.alignment.align import align_capture
from airworthy.capture.alignment.known_distance import measured_scale
from airworthy.capture.alignment.markers import SIDE
from airworthy.capture.alignment.page import write_alignment_page
from airworthy.capture.images import read_capture
from airworthy.capture.record import CaptureImages
from airworthy.capture.video.colmap_process import LOSS_PX
from airworthy.capture.video.evidence import poses_by_leftovers, read_leftovers
from airworthy.capture.video.frames import LARGER, read_frames_record
from airworthy.capture.video.options import VideoPlan
from airworthy.capture.video.reconstruction import LEFTOVERS
from airworthy.capture.video.steps import StepProducts
from airworthy.capture.writer import ALIGNMENT
from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json, write_json
from airworthy.core.jobs.block_store import digest_of

__all__ = ["ScaledCapture", "scaled_capture"]

ALIGNMENT_PAGE = "alignment.html"
STEP = "scale"


@dataclass(frozen=True, eq=False)
class ScaledCapture:
    """A capture in the frame of its place, and how it came there."""

    images: CaptureImages
    record: dict[str, Any] | None
    """Of alignment.json; None: the unit is that of the reconstruction."""
    warning: str = ""
    """What to tell a user who has no metres, or metres that hang on a side that nobody measured."""


def scaled_capture(folder: str | Path, plan: VideoPlan, steps: StepProducts, quiet: bool = True) -> ScaledCapture:
    """Return the posed pictures of a reconstruction in the frame of the place: level, and in metres where something tells them.

    What was found before by the same options from the same poses is read from the folder.

    Args:
        folder: Of the capture.
        plan: Of the film.
        steps: What the folder's steps left.
        quiet: Show no progress.

    Raises:
        AirworthyError: No image can be used.
    """
    root = Path(folder)
    made_from = digest_of(
        {"options": asdict(plan.options.aligning()), "poses": steps.digest("frames", "masks", "poses")}
    )  # fmt: skip
    if not steps.whole(STEP, made_from):
        warning, files = _found(root, plan, quiet)
        steps.keep(STEP, made_from, files, {"warning": warning})
    # In one way, whether it was found now or before: splats are trained from these very numbers.
    small = _named(read_capture(root, width=plan.train_width, aligned=False, quiet=quiet))
    warning = str(steps.said(STEP)["warning"])
    if not (root / ALIGNMENT).is_file():
        return ScaledCapture(small, None, warning)
    record = dict(read_json(root / ALIGNMENT))
    return ScaledCapture(_moved(small, record), record, warning)


def _found(root: Path, plan: VideoPlan, quiet: bool) -> tuple[str, list[str]]:
    """Look for scale and level; what is to be said of them, and the files that tell them, none where nothing does."""
    full = _named(read_capture(root, width=None, aligned=False, quiet=quiet))
    larger, warning = _larger(root, full, quiet), ""
    names = [frame.name for frame in read_frames_record(root)[1]]
    poses = poses_by_leftovers(full, read_leftovers(root / LEFTOVERS), names, LOSS_PX)
    for first, second, metres in plan.options.known_distance:
        # Whoever measured it wants these metres, and splats that were trained without them cannot have them later.
        measured_scale(full, first, second, metres, poses)
    try:
        found = align_capture(full, plan.options.aligning(), quiet=quiet, larger=larger, poses=poses)
    except AirworthyError as error:
        # Poses and splats are worth having without metres; other options, or `capture align`, can give them later.
        warning = f"The place has no known scale: {error}"
        try:
            found = align_capture(full, plan.options.aligning(unscaled=True), quiet=quiet, larger=larger, poses=poses)
        except AirworthyError as second:
            # Of an earlier run with other options: nothing tells metres now.
            for name in (ALIGNMENT, ALIGNMENT_PAGE):
                (root / name).unlink(missing_ok=True)
            return f"{warning} Nor is it level: {second}", []
    write_json(root / ALIGNMENT, found.record(full))
    write_alignment_page(root / ALIGNMENT_PAGE, found, full)
    if not warning and found.bundle is not None and found.bundle.markers[0].side == SIDE:
        # One default for drawing and for looking: whoever printed another size is told what was taken.
        warning = (
            f"The marker was taken to be {SIDE:g} m wide, as `airworthy capture marker` draws it: measure its black square, and"
            " say --side where it is not."
        )
    return warning, [ALIGNMENT, ALIGNMENT_PAGE]


def _moved(images: CaptureImages, record: Mapping[str, Any]) -> CaptureImages:
    """Return images in the frame of the place, from that in which they are read; sizes do not change that one."""
    found = record["read_to_place"]
    note = f"aligned: as {ALIGNMENT} says, origin {record['origin']}"
    return images.moved(
        np.array(found["rotation_xyzw"]), np.array(found["translation_m"]), found["scale"], note, metric=bool(record["metric"])
    )  # fmt: skip


def _named(images: CaptureImages) -> CaptureImages:
    """Return images by the names of their files alone."""
    return replace(images, names=tuple(Path(name).name for name in images.names))


def _larger(root: Path, images: CaptureImages, quiet: bool) -> CaptureImages | None:
    """Return larger copies of the same images; None where the film has no more pixels, or one of them cannot be read."""
    if not (root / LARGER).is_dir():
        return None
    found = _named(read_capture(root, width=None, images=LARGER, quiet=quiet))
    return found if found.names == images.names else None
