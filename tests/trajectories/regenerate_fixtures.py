"""Thin this project's reference files to what the tests need everywhere.

Run it with AIRWORTHY_DATA set: `python tests/trajectories/regenerate_fixtures.py`. Both were computed for this project: the
gate vectors are kept whole, of the course references every eighth sample and the last. Prints whether a file changed.
"""

from __future__ import annotations

import os
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
STRIDE = 8


def thinned(folder: Path) -> str:
    """The course references in one table, with the course's name in front."""
    lines: list[str] = []
    for path in sorted(folder.glob("reference_*.csv")):
        header, *rows = path.read_text().splitlines()
        name = path.stem.removeprefix("reference_")
        lines = lines or [f"course,{header}"]
        kept = sorted({*range(0, len(rows), STRIDE), len(rows) - 1})
        lines += [f"{name},{rows[index]}" for index in kept]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both fixtures."""
    data = Path(os.environ["AIRWORTHY_DATA"])
    texts = {
        "course_reference.csv": thinned(data / "sousvide"),
        "reference_vectors.json": (data / "boundary_predictor" / "reference_vectors.json").read_text(),
    }
    for name, text in texts.items():
        path = FIXTURES / name
        changed = not path.exists() or path.read_text() != text
        path.write_text(text)
        print(f"{name}: {'changed' if changed else 'unchanged'}, {len(text)} bytes")


if __name__ == "__main__":
    main()
