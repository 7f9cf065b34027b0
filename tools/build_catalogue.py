"""Compare the catalogue with what the published numbers give, print the differences, and write them with --write."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir, write_text
from vehicle_sources import catalogue_texts, rotors_texts


def main(argv: list[str]) -> int:
    """Exit code 0: nothing differs (or all was written); 1: files differ; 2: no data."""
    parser = argparse.ArgumentParser(prog="python tools/build_catalogue.py", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files that differ")
    write = parser.parse_args(argv).write
    data = data_dir()
    if data is None:
        raise AirworthyError("AIRWORTHY_DATA is not set: point it at the folder that holds flyingtrust/ and the others.")
    changed = _compare(rotors_texts(data), write)  # first, since the URDF import reads these files
    changed += _compare(catalogue_texts(data), write)
    print(f"{changed} files {'written' if write else 'differ'}")
    return 1 if changed and not write else 0


def _compare(texts: dict[Path, str], write: bool) -> int:
    changed = 0
    for path, text in texts.items():
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        changed += 1
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), path.name, "rebuilt", n=0))
        if write:
            path.parent.mkdir(exist_ok=True)
            write_text(path, text)
    return changed


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except AirworthyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
