"""Whether the interval of upright edges holds the true up, of whole films and of few pictures of them.

    python benchmarks/capture_level.py CAPTURE FILM.truth.json [CAPTURE TRUTH ...]

Captures of `airworthy capture film` (as `capture_distance.py` and `capture_video.py` leave them). Upright edges of all
pictures, and of runs of 8 and of 17 that follow each other, overlapping by half, tell up; it is held against that of the true
attitudes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture import read_capture
from airworthy.capture.alignment.level import RADIUS_95, angle_of, up_by_cameras
from airworthy.capture.alignment.verticals import CONE, Segments, seen_segments, up_by_segments
from airworthy.core import frames
from benchmarks import hardware

RUNS = (8, 17)
"""Pictures in a row."""


def told(capture: Path, truth: Path) -> list[tuple[int, float, float]]:
    """Return how many pictures told up, how far it is off, and the radius within which it is told at 95 % [deg].

    Args:
        capture: Folder of it.
        truth: Of its film.
    """
    images = read_capture(capture, aligned=False)
    numbers = [int(Path(name).stem) for name in images.names]
    attitude = np.array(json.loads(truth.read_text())["attitude"])[numbers]
    true = frames.rotate(images.attitude, frames.rotate_inverse(attitude, np.array([0.0, 0.0, 1.0])))
    segments, guess, found = seen_segments(images), up_by_cameras(images), []
    if guess is None:
        return []
    cone = float(min(max(4.0 * guess.sigma, np.radians(5.0)), CONE))
    for count in (*RUNS, len(images)):
        for first in range(0, len(images) - count + 1, max(1, count // 2)):
            own = (segments.image >= first) & (segments.image < first + count)
            part = Segments(segments.image[own], segments.normal[own], segments.sigma[own])
            up = up_by_segments(part, guess.direction, cone)
            if up is not None:
                mean = true[first : first + count].mean(axis=0)
                off = angle_of(up.direction, mean / np.linalg.norm(mean))
                found.append((count, float(np.degrees(off)), float(np.degrees(RADIUS_95 * up.sigma))))
    return found


def main() -> None:
    """Print hardware, then a row for each number of pictures, all captures together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+", help="captures, each followed by the truth of its film")
    paths = parser.parse_args().paths
    if len(paths) % 2:
        parser.error("each capture is followed by the truth of its film")
    print(json.dumps(hardware.describe(sorted(os.sched_getaffinity(0)))))
    rows = [row for capture, truth in zip(paths[::2], paths[1::2], strict=True) for row in told(capture, truth)]
    for count in sorted({row[0] for row in rows}):
        off, radius = np.array([row[1:] for row in rows if row[0] == count]).T
        held, worst = int((off <= radius).sum()), (off / radius).max()
        print(f"{count} pictures: {held} of {len(off)} held, the worst at {worst:.2f} of the radius", end="")
        print(
            f"; off by {np.median(off):.3f} degrees in the median, {off.max():.3f} at most, told within {np.median(radius):.3f}"
        )


if __name__ == "__main__":
    main()
