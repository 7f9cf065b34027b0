"""Render the pictures of README and documentation anew: `python tools/pictures.py [NAME ...]`.

What each shows stands in `tools/pictures.toml`: commands whose images are put side by side. Pictures of flights, films and
pages are made by the commands of the pages that show them. A picture is written once all of its commands came to an end.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
GAP = 4
"""White between two cells [px]."""
QUALITY = 88
"""Of the JPEG."""


def listed(path: Path = LIST) -> list[dict[str, Any]]:
    """Return the pictures of a list; raises SystemExit where an entry is none."""
    pictures: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get("pictures", [])
    for entry in pictures:
        lacking = {"file", "size", "cells"} - set(entry)
        if lacking or set(entry) - {"file", "size", "cells", "columns"} or not entry["cells"]:
            raise SystemExit(f"{path.name}: a picture has file, size, cells and maybe columns; got {sorted(entry)}.")
    return pictures


def rendered(command: str, size: tuple[int, int], folder: Path) -> Image.Image:
    """Return what a command draws, in twice the cell's size unless it says another, filtered down to the cell."""
    out = folder / "cell.png"
    words = [sys.executable, "-m", "airworthy", *shlex.split(command), "--out", str(out)]
    if "--width" not in words:
        words += ["--width", str(2 * size[0]), "--height", str(2 * size[1])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"airworthy {command} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    with Image.open(out) as image:
        return image.convert("RGB").resize(size, Image.Resampling.LANCZOS)


def composed(cells: list[Image.Image], columns: int) -> Image.Image:
    """Return cells of one size, row by row."""
    width, height = cells[0].size
    rows = -(-len(cells) // columns)
    whole = Image.new("RGB", (columns * width + (columns - 1) * GAP, rows * height + (rows - 1) * GAP), "white")
    for number, cell in enumerate(cells):
        row, column = divmod(number, columns)
        whole.paste(cell, (column * (width + GAP), row * (height + GAP)))
    return whole


def main() -> None:
    """Render those that are named, or all."""
    pictures = {Path(entry["file"]).stem: entry for entry in listed()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(pictures))
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in pictures]
    if unknown:
        parser.error(f"there is no picture {unknown[0]!r}: choose from {', '.join(pictures)}")
    for name in asked.names or pictures:
        entry = pictures[name]
        size = (int(entry["size"][0]), int(entry["size"][1]))
        with tempfile.TemporaryDirectory() as folder:
            cells = []
            for number, command in enumerate(entry["cells"], 1):
                print(f"{name}: {number} of {len(entry['cells'])}, airworthy {command}", flush=True)
                cells.append(rendered(command, size, Path(folder)))
        composed(cells, int(entry.get("columns", 1))).save(REPOSITORY / entry["file"], quality=QUALITY)
        print(f"Wrote {entry['file']}.", flush=True)


if __name__ == "__main__":
    main()
