"""Which pictures of films and photographs are reconstructed: sharp ones, well spread in time and in motion.

frames.json     sources, and of every chosen picture its name, source, time, sharpness and motion; written last
images/         the pictures, upright, JPEG of quality 95 without subsampled colours
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from airworthy.capture.alignment.markers import detect_marker
from airworthy.capture.filming.film import jpeg_bytes
from airworthy.capture.video.decoding import Source, open_source, packages
from airworthy.core.arrays import Array, ArrayInt, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_json, write_bytes, write_json
from airworthy.core.jobs.progress import progress

__all__ = [
    "FRAMES_FILE",
    "LARGER",
    "FrameLook",
    "TakenFrame",
    "choose_frames",
    "farthest_in_time",
    "looked_at",
    "published_frames",
    "read_frames_record",
    "take_frames",
]

FRAMES_FILE, IMAGES, LARGER = "frames.json", "images", "larger"
Rule = Literal["spread", "published", "all"]
LEAST = 8
"""Pictures under which no place is reconstructed. Ours: two see a point, and a loop of fewer leaves gaps."""
_LOOK_SIDE, _TRACK_SIDE = 960, 320
"""Longer sides at which sharpness and motion are measured [px]."""
_TRACKED = 120
_NEIGHBOURS_S = 0.7
"""Sharpness is held against pictures within so many seconds: what is seen there is nearly the same."""
_TIME_SHARE = 0.5
"""How much of the spread is by time, the rest is by motion. Ours: who stands still films the same picture again, and who turns
quickly needs more of them."""
_BLURRED = 0.45
"""Of the sharpness of its neighbours, below which a picture counts as shaken."""
PUBLISHED_MARKED, PUBLISHED_FREE = 20, 280
"""Frames with exactly the marker in view and without (SOUS VIDE, figs/utilities/capture_helper.py)."""


@dataclass(frozen=True)
class FrameLook:
    """What one look at a picture tells."""

    number: int
    time: float
    """[s]"""
    sharpness: float
    """Mean square of the Laplacian over that of the contrast; comparable among pictures of one place."""
    motion: tuple[float, float]
    """Of the image since the picture before, right and down, as shares of its longer side; median over tracked corners."""
    path: float
    """Median length of that motion, which turns on the spot and walks alike."""
    marked: bool = False


@dataclass(frozen=True)
class TakenFrame:
    """A picture that was taken into the capture."""

    name: str
    """Of the file in `images`."""
    source: int
    number: int
    """In its source."""
    time: float
    """[s]"""
    sharpness: float
    relative_sharpness: float
    """Over the median of its neighbours in time."""
    rate: tuple[float, float]
    """Motion of the image, right and down [longer sides per second]."""
    size: tuple[int, int]
    """Width and height of the file [px]."""
    marked: bool = False


# ---- Looking at all pictures ------------------------------------------------------------------------------------------------


def looked_at(source: Source, marker: bool = False, quiet: bool = True) -> list[FrameLook]:
    """Return a look at every picture of a source that is not damaged.

    Args:
        source: Film or photographs.
        marker: Whether it is looked for (of the published rule).
        quiet: Show no progress.
    """
    cv2, _ = packages()
    found, before = [], None
    total = source.count or None
    for picture in progress(source.pictures(), f"Looking at {source.path.name}", total, quiet=quiet):
        grey = picture.grey()
        small = _sized(cv2, grey, _TRACK_SIDE)
        motion, path = ((0.0, 0.0), 0.0) if before is None else _motion(cv2, before, small)
        marked = marker and detect_marker(np.repeat(grey[..., None], 3, axis=2)) is not None
        sharp = _sharpness(cv2, _sized(cv2, grey, _LOOK_SIDE))
        found.append(FrameLook(picture.number, picture.time, sharp, motion, path, marked))
        before = small
    return [look for look in found if look.number not in source.damaged]


def _sized(cv2: Any, image: ArrayU8, side: int) -> ArrayU8:
    scale = side / max(image.shape[:2])
    if scale >= 1.0:
        return image
    size = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def _sharpness(cv2: Any, grey: ArrayU8) -> float:
    # A little blur first, or a chip's noise would count as detail.
    smooth = cv2.GaussianBlur(grey, (0, 0), 1.0).astype(np.float32)
    contrast = float(smooth.var())
    return float(np.square(cv2.Laplacian(smooth, cv2.CV_32F)).mean()) / max(contrast, 1.0)


def _motion(cv2: Any, before: ArrayU8, now: ArrayU8) -> tuple[tuple[float, float], float]:
    """Motion between two small pictures; where too little can be tracked it counts as much."""
    side = float(max(now.shape))
    if before.shape == now.shape:
        corners = cv2.goodFeaturesToTrack(before, _TRACKED, 0.01, 8)
        if corners is not None and len(corners) >= 8:
            moved, good, _ = cv2.calcOpticalFlowPyrLK(before, now, corners, None, winSize=(15, 15), maxLevel=3)
            shift = (moved - corners).reshape(-1, 2)[np.ravel(good) == 1]
            if len(shift) >= 8:
                middle = np.median(shift, axis=0) / side
                return (float(middle[0]), float(middle[1])), float(np.median(np.linalg.norm(shift, axis=1))) / side
    return (0.0, 0.0), 0.15


# ---- Choosing ---------------------------------------------------------------------------------------------------------------


def relative_sharpness(times: ArrayLike, sharpness: ArrayLike, within: float = _NEIGHBOURS_S) -> Array:
    """Return sharpness over the median of pictures near in time, (n,).

    Args:
        times: Increasing [s], (n,).
        sharpness: (n,)
        within: How near [s].
    """
    t, s = np.asarray(times, np.float64), np.asarray(sharpness, np.float64)
    low, high = np.searchsorted(t, t - within), np.searchsorted(t, t + within, side="right")
    median = np.array([np.median(s[a:b]) for a, b in zip(low, high, strict=True)])
    return np.asarray(s / np.maximum(median, 1e-12))


def choose_frames(times: ArrayLike, sharpness: ArrayLike, path: ArrayLike, count: int) -> ArrayInt:
    """Return numbers of up to `count` pictures, increasing: well spread, and each the sharpest near its place.

    Places are even along a measure that grows with time and with motion, half of it each; near a place is two fifths of the
    way to the next one.

    Args:
        times: Increasing [s], (n,).
        sharpness: Of each, (n,).
        path: Motion of the image since the picture before, (n,).
        count: How many.
    """
    t, moved = np.asarray(times, np.float64), np.cumsum(np.asarray(path, np.float64))
    if len(t) <= count:
        return np.arange(len(t))
    quality = relative_sharpness(t, sharpness)
    measure = _TIME_SHARE * _share(t) + (1.0 - _TIME_SHARE) * _share(moved)
    if not measure[-1] > 0.0:
        measure = np.linspace(0.0, 1.0, len(t))
    step = measure[-1] / count
    taken: list[int] = []
    for place in (np.arange(count) + 0.5) * step:
        low, high = np.searchsorted(measure, [place - 0.4 * step, place + 0.4 * step])
        low = max(int(low), taken[-1] + 1 if taken else 0)
        nearest = min(max(int(np.searchsorted(measure, place)), low), len(t) - 1)
        window = np.arange(low, max(int(high), low + 1)) if low < len(t) else np.array([], int)
        if not len(window):
            continue
        taken.append(int(window[np.argmax(quality[window])]) if high > low else nearest)
    return np.unique(np.array(taken, np.int64))


def _share(values: Array) -> Array:
    span = values[-1] - values[0]
    return (values - values[0]) / span if span > 0.0 else np.zeros(len(values))


def farthest_in_time(times: ArrayLike, count: int) -> ArrayInt:
    """Return numbers of `count` instants, increasing, each farthest from those before it: the published spread.

    Args:
        times: (n,) [s].
        count: How many; all where there are no more.
    """
    t = np.asarray(times, np.float64)
    if len(t) <= count:
        return np.arange(len(t))
    taken = [0]
    distance = np.abs(t - t[0])
    while len(taken) < count:
        taken.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.abs(t - t[taken[-1]]))
    return np.sort(np.array(taken, np.int64))


def published_frames(
    times: ArrayLike, marked: ArrayLike, with_marker: int = PUBLISHED_MARKED, without: int = PUBLISHED_FREE
) -> ArrayInt:
    """Return numbers of the published choice: 20 with exactly the marker in view, 280 without, each spread in time.

    Args:
        times: (n,) [s].
        marked: Whether exactly the marker is seen, (n,).
        with_marker: How many with it.
        without: And without.
    """
    t, seen = np.asarray(times, np.float64), np.asarray(marked, bool)
    parts = [(np.flatnonzero(seen), with_marker), (np.flatnonzero(~seen), without)]
    return np.sort(np.concatenate([which[farthest_in_time(t[which], count)] for which, count in parts if len(which)]))


# ---- Taking them ------------------------------------------------------------------------------------------------------------


def take_frames(
    inputs: Sequence[str | Path],
    folder: str | Path,
    count: int = 120,
    side: int = 960,
    rule: Rule = "spread",
    quiet: bool = True,
) -> dict[str, Any]:
    """Choose pictures of films and folders, and write them; a folder that has its frames.json is left as it is.

    Args:
        inputs: Films and folders of photographs, all of one place.
        folder: To write `images` and `frames.json` into.
        count: Most pictures, dealt out to the sources by how much is to be seen in them.
        side: Longest side of what is written [px].
        rule: "spread": sharp and spread in time and motion; "published": 20 with the marker and 280 without; "all": all.
        quiet: Show no progress.

    Returns:
        What frames.json holds.

    Raises:
        AirworthyError: An input cannot be read, or there are too few pictures.
    """
    root = Path(folder)
    if (root / FRAMES_FILE).exists():
        return dict(read_json(root / FRAMES_FILE))
    sources = [open_source(path) for path in inputs]
    looks = [looked_at(source, rule == "published", quiet) for source in sources]
    chosen = _chosen(looks, count, rule, sources)
    _check_enough(sources, looks, chosen)
    make_folder(root / IMAGES)
    # Of a run that was killed while it wrote one; the folder is ours alone.
    for left in (root / IMAGES).glob(".*.tmp*"):
        left.unlink(missing_ok=True)
    taken: list[TakenFrame] = []
    names: set[str] = set()
    for k, source in enumerate(sources):
        taken += _written(source, k, looks[k], chosen[k], root / IMAGES, side, len(sources) > 1, names, quiet)
    record = {
        "rule": rule,
        "side_px": side,
        "sources": [_source_record(s, look) for s, look in zip(sources, looks, strict=True)],
        "frames": [asdict(one) for one in taken],
    }
    write_json(root / FRAMES_FILE, record)
    return dict(read_json(root / FRAMES_FILE))


def _chosen(looks: list[list[FrameLook]], count: int, rule: Rule, sources: list[Source]) -> list[ArrayInt]:
    lengths = np.array([_length(one) for one in looks])
    # Largest remainders, so that shares add up to the count.
    exact = count * lengths / max(float(lengths.sum()), 1e-12)
    shares = np.floor(exact).astype(int)
    shares[np.argsort(shares - exact)[: count - int(shares.sum())]] += 1
    found = []
    for look, share, source in zip(looks, shares, sources, strict=True):
        times = [one.time for one in look]
        if rule == "all":
            found.append(np.arange(len(look)))
        elif rule == "published":
            marked = np.array([one.marked for one in look], bool)
            if marked.sum() < PUBLISHED_MARKED:
                source.say(f"the marker is seen in {marked.sum()} pictures; the published choice has {PUBLISHED_MARKED}")
            found.append(published_frames(times, marked))
        else:
            found.append(choose_frames(times, [o.sharpness for o in look], [o.path for o in look], max(1, int(share))))
    return found


def _length(look: list[FrameLook]) -> float:
    """How much there is to be seen in a source: photographs count each, films by time and motion."""
    return float(len(look)) * (1.0 + float(np.mean([one.path for one in look]))) if look else 0.0


def _check_enough(sources: list[Source], looks: list[list[FrameLook]], chosen: list[ArrayInt]) -> None:
    count = sum(map(len, chosen))
    if count < LEAST:
        names = ", ".join(source.path.name for source in sources)
        damage = "; ".join(note for source in sources if source.damaged for note in source.notes)
        raise AirworthyError(
            f"{names}: only {count} pictures, and {LEAST} are needed, better 100: film for a minute or two, walking slowly"
            f" round the room, or take more photographs.{f' First, though, copy the film again ({damage}).' if damage else ''}"
        )
    for source, look in zip(sources, looks, strict=True):
        moved = float(np.sum([one.path for one in look]))
        if source.kind == "film" and look and moved < 0.1:
            raise AirworthyError(
                f"The camera hardly moves in {source.path.name}: walk through the room with it; a camera that stands still"
                " sees no depth."
            )


def _written(
    source: Source, index: int, look: list[FrameLook], chosen: ArrayInt, folder: Path, side: int, prefixed: bool,
    names: set[str], quiet: bool,
) -> list[TakenFrame]:  # fmt: skip
    cv2, _ = packages()
    relative = relative_sharpness([o.time for o in look], [o.sharpness for o in look])
    if source.kind == "photographs":
        relative = np.ones(len(look))
    wanted = {look[int(k)].number: int(k) for k in chosen}
    taken = []
    last = max(wanted, default=-1)
    for picture in progress(source.pictures(), f"Taking pictures of {source.path.name}", source.count or None, quiet=quiet):
        if picture.number > last:
            break
        k = wanted.get(picture.number)
        if k is None:
            continue
        name = _free_name(f"{index}_{picture.name}" if prefixed else picture.name, names)
        whole = picture.rgb()
        pixels = _sized(cv2, whole, side)
        write_bytes(folder / name, jpeg_bytes(pixels))
        if max(whole.shape[:2]) > side:
            # Cells of a marker across the room are a pixel or two: what tells the metres is looked for at twice the size.
            write_bytes(make_folder(folder.parent / LARGER) / name, jpeg_bytes(_sized(cv2, whole, 2 * side)))
        size = (pixels.shape[1], pixels.shape[0])
        taken.append(_frame(name, index, size, look, k, float(relative[k]), source.kind == "film"))
    return taken


def _free_name(name: str, names: set[str]) -> str:
    """Return under what a picture is written, and keep it: no blanks, since COLMAP's lists of pairs are parted by them, and no
    name twice, as of 1.png beside 1.jpg, also where capitals are the same."""
    stem = re.sub(r"\s+", "_", Path(name).stem)
    found, number = f"{stem}.jpg", 1
    while found.lower() in names:
        number += 1
        found = f"{stem}-{number}.jpg"
    names.add(found.lower())
    return found


def _frame(
    name: str, index: int, size: tuple[int, int], look: list[FrameLook], k: int, relative: float, film: bool
) -> TakenFrame:
    """Describe a picture; its motion is the mean of that since the one before and until the next."""
    rates = []
    for a, b in ((k - 1, k), (k, k + 1)):
        # Between them damaged ones may have been left out, and the motion is that since the last of those.
        if film and a >= 0 and b < len(look) and look[b].number == look[a].number + 1 and look[b].time > look[a].time:
            rates.append(np.array(look[b].motion) / (look[b].time - look[a].time))
    rate = np.mean(rates, axis=0) if rates else np.zeros(2)
    one = look[k]
    moved = (float(rate[0]), float(rate[1]))
    return TakenFrame(name, index, one.number, one.time, one.sharpness, relative, moved, size, one.marked)


def _source_record(source: Source, look: list[FrameLook]) -> dict[str, Any]:
    sharp = relative_sharpness([o.time for o in look], [o.sharpness for o in look])
    return {
        "name": source.path.name,
        "kind": source.kind,
        "width": source.width,
        "height": source.height,
        "pictures": len(look),
        "seconds": look[-1].time - look[0].time if source.kind == "film" and look else None,
        "shaken": int((sharp < _BLURRED).sum()) if source.kind == "film" else 0,
        "focal_over_longer_side": source.focal,
        "notes": list(source.notes),
    }


def read_frames_record(folder: str | Path) -> tuple[dict[str, Any], list[TakenFrame]]:
    """Return what frames.json of a folder holds, and its frames.

    Args:
        folder: Of the capture.
    """
    record = dict(read_json(Path(folder) / FRAMES_FILE))
    pairs = ("rate", "size")
    frames = [TakenFrame(**{**one, **{name: tuple(one[name]) for name in pairs}}) for one in record["frames"]]
    return record, frames
