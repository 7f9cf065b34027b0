"""Damage in the middle of films: how many of the damaged pictures are left out, and how many of whole ones.

    python benchmarks/capture_damage.py                  # bytes written over films, in 20 places each
    python benchmarks/capture_damage.py --whole          # films as they were written, of many kinds and by many options
    python benchmarks/capture_damage.py --codecs libx265 --size 640 360 --places 5

A film of 90 pictures of patterns that pass by, a picture that stands for itself every 30; bytes of its pictures are written
over in one place at a time. Damaged is what differs by over one level of 256 in the mean from the same picture of the whole
film.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture.video.decoding import open_source
from airworthy.core.arrays import ArrayU8
from benchmarks import hardware

COUNT, GROUP, RATE = 90, 30, 30
CODECS = ("libx264", "libx265")
DAMAGES = ("zeros", "other bytes", "one bit")
SIZES = (40, 400, 4000)
_SIGMAS = (1.5, 6.0, 24.0)


# ---- Films ------------------------------------------------------------------------------------------------------------------


def pattern(width: int, height: int) -> ArrayU8:
    """Return a smooth random pattern with structure at several widths, (height, width, 3)."""
    from scipy.ndimage import gaussian_filter

    rng, found = np.random.default_rng(3), np.zeros((height, width, 3))
    for sigma in _SIGMAS:
        part = gaussian_filter(rng.normal(size=(height, width, 3)), (sigma, sigma, 0))
        found += part / part.std()
    return np.clip(128.0 + 35.0 * found, 0, 255).astype(np.uint8)


def pictures(kind: str, count: int, width: int, height: int) -> Iterator[ArrayU8]:
    """Yield the pictures of a film (height, width, 3).

    Args:
        kind: Name in `KINDS`.
        count: How many.
        width: Of each [px].
        height: Of each [px].
    """
    wide, rng = pattern(width + 2000, height + 40), np.random.default_rng(0)
    for k in range(count):
        x, y, change = KINDS[kind](k)
        picture = wide[y : y + height, x : x + width].astype(float)
        yield np.clip(change(picture, rng), 0, 255).astype(np.uint8)


def _noisy(picture: Any, rng: np.random.Generator) -> Any:
    return picture + 3.0 * rng.normal(size=picture.shape)


def _as_it_is(picture: Any, rng: np.random.Generator) -> Any:
    return picture


def _black(picture: Any, rng: np.random.Generator) -> Any:
    return 0.0 * picture


def _dark(picture: Any, rng: np.random.Generator) -> Any:
    return 1.0 + 2.0 * rng.normal(size=picture.shape)


KINDS: dict[str, Callable[[int], tuple[int, int, Callable[[Any, np.random.Generator], Any]]]] = {
    "hand": lambda k: (3 * k, int(20 + 15 * np.sin(k / 5)), _noisy),
    "fast turns": lambda k: (int(900 + 900 * np.sin(k / 6)), 0, _as_it_is),
    "cuts": lambda k: (k // 7 * 211 % 1900 + k % 7, 0, _as_it_is),
    "nothing moves": lambda k: (0, 0, _as_it_is),
    "black": lambda k: (0, 0, _black),
    "dark": lambda k: (0, 0, _dark),
    "fades": lambda k: (2 * k, 0, lambda picture, rng: picture * abs(np.cos(k / 15))),
    "flashes": lambda k: (k, 0, lambda picture, rng: picture if k % 11 else 255.0 + 0.0 * picture),
}
OPTIONS = {
    "as x265 is": "",
    "rate factor 40": "crf=40",
    "quantiser 51": "qp=51",
    "open groups": "open-gop=1:keyint=15",
    "three slices": "slices=3",
    "small blocks": "wpp=0:ctu=16:min-cu-size=8",
    "eight B pictures": "bframes=8:b-adapt=0",
    "P pictures alone": "bframes=0:ref=1",
    "all tools": "tskip=1:rect=1:amp=1",
    "without loss": "lossless=1",
    "each for itself": "keyint=1",
    "no loop filters": "sao=0:deblock=0",
    "ten bits": "ctu=32:wpp=0",
}


def write(path: Path, codec: str, film: Iterator[ArrayU8], size: tuple[int, int], options: str = "") -> Path:
    """Write a film of YUV 4:2:0 as MP4.

    Args:
        path: Of the film.
        codec: Of PyAV.
        film: Its pictures.
        size: Width and height [px].
        options: More of x265's.
    """
    av = importlib.import_module("av")
    group = "" if "keyint" in options else f"keyint={GROUP}:"
    if codec == "libx265":
        # x265's own groups alone: it ends the process where others contradict them.
        more = {"x265-params": f"log-level=none:{group}{options}"}
    else:
        more = {"g": str(GROUP), "keyint_min": str(GROUP), "bf": "2"}
    with av.open(str(path), "w", format="mp4") as file:
        stream = file.add_stream(codec, rate=RATE, options=more)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p10le" if options == OPTIONS["ten bits"] and options else "yuv420p"
        for picture in film:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode(None))
    return path


# ---- Reading them -----------------------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[dict[int, ArrayU8], set[int]]:
    """Return the pictures of a film by their time in units of 1/30 s, and the times of those that are left out."""
    source = open_source(path)
    found, times = {}, []
    for picture in source.pictures():
        times.append(round(picture.time * RATE))
        found[times[-1]] = picture.grey()
    return found, {times[number] for number in source.damaged}


def pieces(path: Path) -> list[tuple[int, int]]:
    """Return place and size in the file of each piece of a film."""
    av = importlib.import_module("av")
    with av.open(str(path)) as file:
        return [(packet.pos, packet.size) for packet in file.demux(video=0) if packet.size]


def damaged(path: Path, kind: str, size: int, rng: np.random.Generator) -> Path:
    """Write a film of which some is written over, beside the whole one."""
    whole, spans = bytearray(path.read_bytes()), pieces(path)
    begin, end = min(at for at, _ in spans), max(at + length for at, length in spans)
    # The first picture's head stays, or the film begins later, and with it the times.
    at = int(rng.integers(begin + 64, end - size))
    if kind == "one bit":
        whole[at] ^= 1 << int(rng.integers(8))
    else:
        whole[at : at + size] = bytes(size) if kind == "zeros" else rng.integers(1, 256, size, dtype=np.uint8).tobytes()
    out = path.with_name("damaged.mp4")
    out.write_bytes(whole)
    return out


def judged(path: Path, whole: dict[int, ArrayU8]) -> tuple[int, int, int]:
    """Return how many pictures of a damaged film are damaged, left out of those, and left out though they look right."""
    found, out = read(path)
    bad = {t for t, grey in found.items() if np.abs(grey.astype(int) - whole[t]).mean() > 1.0}
    return len(bad), len(bad & out), len(out - bad)


# ---- Tables -----------------------------------------------------------------------------------------------------------------


def over(asked: argparse.Namespace, folder: Path) -> None:
    """Print what is left out of films that are written over."""
    width, height = asked.size
    for codec in asked.codecs:
        path = write(folder / "film.mp4", codec, pictures("hand", COUNT, width, height), (width, height))
        begun = time.process_time()
        whole, out = read(path)
        print(f"{codec}: {len(out)} of {len(whole)} whole pictures left out, {time.process_time() - begun:.1f} processor s")
        for kind in DAMAGES:
            rng, counts = np.random.default_rng(1), np.zeros(3, int)
            for size in SIZES if kind != "one bit" else (1,):
                for _ in range(asked.places):
                    counts += judged(damaged(path, kind, size, rng), whole)
            told = dict(zip(("damaged", "left_out", "right_left_out"), map(int, counts), strict=True))
            print(json.dumps({"codec": codec, "over": kind, **told}), flush=True)


def as_written(asked: argparse.Namespace, folder: Path) -> None:
    """Print what is left out of whole films."""
    width, height = asked.size
    total, wrong = 0, 0
    for name, options in OPTIONS.items():
        for kind in KINDS:
            path = write(folder / "whole.mp4", "libx265", pictures(kind, 60, width, height), (width, height), options)
            found, out = read(path)
            total, wrong = total + len(found), wrong + len(out)
            if out:
                print(f"{name}, {kind}: {len(out)} of {len(found)} whole pictures left out")
        print(f"{name}: {wrong} of {total} whole pictures left out until now", flush=True)


def main() -> None:
    """Print hardware, then what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codecs", nargs="+", choices=CODECS, default=CODECS)
    parser.add_argument("--size", type=int, nargs=2, default=(320, 240), help="of the films [px]")
    parser.add_argument("--places", type=int, default=20, help="written over, one at a time, of each kind and size")
    parser.add_argument("--whole", action="store_true", help="films as they were written")
    asked = parser.parse_args()
    print(json.dumps(hardware.describe(sorted(os.sched_getaffinity(0)))))
    with tempfile.TemporaryDirectory() as folder:
        (as_written if asked.whole else over)(asked, Path(folder))


if __name__ == "__main__":
    main()
