"""What moves in a film by itself - people, curtains, screens - by its motion against that of everything else.

Between a picture and one shortly before or after it, all that stands still moves along epipolar lines (or, where the camera
only turns, as one homography says). What does not, seen against both, is masked. Somebody who walks along these lines - which
is what people do on a floor beside which the camera moves - or who stands still is not found, nor is what has no texture:
limits of motion, which a detector of people would not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.video.decoding import open_source, packages
from airworthy.capture.video.frames import TakenFrame, read_frames_record
from airworthy.capture.writer import png_bytes
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayU8
from airworthy.core.files import make_folder, read_json, write_bytes, write_json
from airworthy.core.jobs.progress import progress

__all__ = ["MASKS_FILE", "moving_mask", "write_masks"]

MASKS_FILE, MASKS = "masks.json", "masks"
_SIDE = 480
"""Longer side at which motion is measured [px]."""
_APART_S = (0.03, 0.35)
"""Between a picture and that which it is held against [s]: the next one of a film of 30 Hz, in which limbs can be followed."""
_CONSISTENT_PX, _CONSISTENT_SHARE = 1.0, 0.05
"""Forward and backward motion that differ by more, and by more than this share of it, are no measurement (occlusions, blank
walls)."""
_MOVING_PX = 1.6
_NOISE_FACTOR = 5.0
_TURN_SHARE = 0.85
"""Of the pixels that one homography explains, from where on it is taken instead of epipolar lines."""
_AREA = 0.0015
"""Smallest part of a picture that is masked."""
_MOST = 0.5
"""Share of a picture beyond which not the things moved but the estimate failed."""


@dataclass(frozen=True)
class _Motion:
    """How far pixels are from moving as what stands still does [px], and where that was measured."""

    distance: ArrayF32
    known: ArrayBool


def moving_mask(before: ArrayU8 | None, now: ArrayU8, after: ArrayU8 | None) -> ArrayBool:
    """Return where something moves by itself in a grey picture, (h, w); nothing where that cannot be told.

    Args:
        before: Grey picture shortly before, (h, w); None: there is none.
        now: The picture.
        after: Shortly after.
    """
    cv2, _ = packages()
    found: ArrayBool | None = None
    for other in (before, after):
        motion = None if other is None else _motion(cv2, now, other)
        if motion is None:
            continue
        usual = float(np.median(motion.distance[motion.known]))
        off = motion.distance > max(_MOVING_PX, _NOISE_FACTOR * usual)
        # Unknown counts as seen moving, so that the other picture decides; known in neither is still.
        moves = np.where(motion.known, off, found is not None)
        found = moves if found is None else found & moves
    if found is None:
        return np.zeros(now.shape, bool)
    return _cleaned(cv2, found)


def _motion(cv2: Any, now: ArrayU8, other: ArrayU8) -> _Motion | None:
    flow, known = _consistent_flow(cv2, now, other)
    height, width = now.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    start, end = np.stack((x, y), axis=-1), np.stack((x, y), axis=-1) + flow
    grid = np.zeros(now.shape, bool)
    grid[4::6, 4::6] = True
    rows = np.flatnonzero(known & grid)
    if len(rows) < 60:
        return None
    a, b = start.reshape(-1, 2)[rows], end.reshape(-1, 2)[rows]
    plane, inside = cv2.findHomography(a, b, cv2.RANSAC, 1.0)
    if plane is not None and inside.mean() > _TURN_SHARE:
        return _Motion(np.linalg.norm(_mapped(plane, start) - end, axis=-1).astype(np.float32), known)
    matrix, _ = cv2.findFundamentalMat(a, b, cv2.USAC_MAGSAC, 0.8, 0.999, 2000)
    if matrix is None or np.shape(matrix) != (3, 3):
        return None
    return _Motion(_sampson(matrix, start, end), known)


def _consistent_flow(cv2: Any, now: ArrayU8, other: ArrayU8) -> tuple[ArrayF32, ArrayBool]:
    """Dense motion (h, w, 2) [px], and where it is one: the way back leads home, on something with texture."""
    solver = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
    there, back = solver.calc(now, other, None), solver.calc(other, now, None)
    height, width = now.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    at = (x + there[..., 0], y + there[..., 1])
    home = np.asarray(cv2.remap(back, *at, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
    inside = (at[0] >= 0) & (at[1] >= 0) & (at[0] <= width - 1) & (at[1] <= height - 1)
    smooth = cv2.GaussianBlur(now, (0, 0), 1.5).astype(np.float32)
    slope = np.hypot(cv2.Sobel(smooth, cv2.CV_32F, 1, 0), cv2.Sobel(smooth, cv2.CV_32F, 0, 1))
    textured = cv2.boxFilter(slope, -1, (15, 15)) > 4.0
    allowed = np.maximum(_CONSISTENT_PX, _CONSISTENT_SHARE * np.linalg.norm(there, axis=-1))
    return there, inside & textured & (np.linalg.norm(there + home, axis=-1) < allowed)


def _mapped(plane: Array, points: ArrayF32) -> Array:
    x, y = points[..., 0], points[..., 1]
    rows = [plane[k, 0] * x + plane[k, 1] * y + plane[k, 2] for k in range(3)]
    return np.stack((rows[0], rows[1]), axis=-1) / np.where(np.abs(rows[2]) > 1e-9, rows[2], 1e-9)[..., None]


def _sampson(matrix: Array, start: ArrayF32, end: ArrayF32) -> ArrayF32:
    """First-order distance from the epipolar constraint [px] (Sampson, 1982)."""
    one = np.ones(start.shape[:2], np.float32)
    a, b = np.stack((*np.moveaxis(start, -1, 0), one)), np.stack((*np.moveaxis(end, -1, 0), one))
    line = np.einsum("kl,lhw->khw", matrix, a)
    back = np.einsum("lk,lhw->khw", matrix, b)
    top = np.abs((b * line).sum(axis=0))
    below = np.sqrt(line[0] ** 2 + line[1] ** 2 + back[0] ** 2 + back[1] ** 2)
    return np.asarray(top / np.maximum(below, 1e-12), np.float32)


def _cleaned(cv2: Any, moves: ArrayBool) -> ArrayBool:
    """Return closed regions that are large enough, and a margin; nothing where it would be most of the picture."""
    picture = moves.astype(np.uint8)
    picture = cv2.morphologyEx(picture, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    picture = cv2.morphologyEx(picture, cv2.MORPH_CLOSE, np.ones((15, 15), np.uint8))
    count, labels, figures, _ = cv2.connectedComponentsWithStats(picture)
    large = [k for k in range(1, count) if figures[k, cv2.CC_STAT_AREA] >= _AREA * moves.size]
    kept = np.isin(labels, large).astype(np.uint8)
    # Its shadow, and limbs that stood still for the moment.
    kept = cv2.dilate(kept, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (13, 13)))
    return np.zeros(moves.shape, bool) if kept.mean() > _MOST else kept.astype(bool)


# ---- Masks of a capture -----------------------------------------------------------------------------------------------------


def write_masks(inputs: list[str | Path], folder: str | Path, quiet: bool = True) -> dict[str, Any]:
    """Mask what moves in a capture's pictures of films; a folder that has its masks.json is left as it is.

    Masks are `masks/NAME.png` beside `images/NAME`, black where a picture is not to be used, as COLMAP reads them; pictures
    in which nothing moves have none. Photographs are taken one by one and have none.

    Args:
        inputs: That the pictures came from, in the order of frames.json.
        folder: Of the capture.
        quiet: Show no progress.

    Returns:
        What masks.json holds: masked share by picture.
    """
    root = Path(folder)
    if (root / MASKS_FILE).exists():
        return dict(read_json(root / MASKS_FILE))
    record, frames = read_frames_record(root)
    shares: dict[str, float] = {}
    for k, path in enumerate(inputs):
        own = [frame for frame in frames if frame.source == k]
        if record["sources"][k]["kind"] != "film" or not own:
            continue
        for frame, mask in _film_masks(path, own, quiet):
            if mask.any():
                shares[frame.name] = float(mask.mean())
                write_bytes(make_folder(root / MASKS) / f"{frame.name}.png", png_bytes(_full(mask, frame.size)))
    return _written(root, shares)


def _written(root: Path, shares: dict[str, float]) -> dict[str, Any]:
    write_json(root / MASKS_FILE, {"masked": shares})
    return dict(read_json(root / MASKS_FILE))


def _full(mask: ArrayBool, size: tuple[int, int]) -> ArrayU8:
    """White where a picture of a size is to be used."""
    cv2, _ = packages()
    shown = np.where(mask, 0, 255).astype(np.uint8)
    return np.asarray(cv2.resize(shown, size, interpolation=cv2.INTER_NEAREST))


def _film_masks(path: str | Path, frames: list[TakenFrame], quiet: bool) -> Iterator[tuple[TakenFrame, ArrayBool]]:
    """Yield frames and where something moves in them; the film is read once, and few pictures are held."""
    cv2, _ = packages()
    source = open_source(path)
    scale = _SIDE / max(source.width, source.height)
    size = max(1, round(source.width * scale)), max(1, round(source.height * scale))
    held: list[tuple[float, ArrayU8]] = []
    waiting = list(frames)
    for picture in progress(source.pictures(), f"Masking {source.path.name}", source.count or None, quiet=quiet):
        if not waiting:
            break
        held.append((picture.time, np.asarray(cv2.resize(picture.grey(), size, interpolation=cv2.INTER_AREA))))
        while waiting and picture.time >= waiting[0].time + _APART_S[0]:
            yield waiting[0], _masked(held, waiting[0].time)
            waiting.pop(0)
        oldest = (waiting[0].time if waiting else picture.time) - _APART_S[1]
        held = [one for one in held if one[0] >= oldest]
    for frame in waiting:
        yield frame, _masked(held, frame.time)


def _masked(held: list[tuple[float, ArrayU8]], time: float) -> ArrayBool:
    now = min(held, key=lambda one: abs(one[0] - time))
    near, far = _APART_S
    # The nearest of those that are far enough; slow films have only ones that are farther.
    before = [one for one in held if near <= time - one[0] <= far]
    after = [one for one in held if near <= one[0] - time <= far]
    return moving_mask(before[-1][1] if before else None, now[1], after[0][1] if after else None)
