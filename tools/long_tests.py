"""Write `tests/long_tests.txt`, the tests that take a second and more, by what a run has measured.

`make test` leaves them out, `.ci/run` and `make test-slow` run them. On a machine that does nothing else:

    PYTEST_ADDOPTS="--durations=0 --durations-min=0.3" ./.ci/run | tee run.txt
    python tools/long_tests.py run.txt
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "tests" / "long_tests.txt"
LIMIT = 1.0
"""Seconds of set-up and call from which a test is long."""
_LINE = re.compile(r"\s*([0-9.]+)s (?:call|setup)\s+(tests/\S+::\S.*?)\s*$")
_HEAD = """\
# Tests that took {limit:g} s and more on two cores, written by tools/long_tests.py: `make test` leaves them out, `.ci/run` and
# `make test-slow` run them. Lines begin with # or name a test as pytest does.
"""
STAY = ("tests/test_hygiene.py", "tests/test_packaging.py", "tests/test_site.py")
"""What every change is judged by, however long it takes."""


def long_tests(text: str, limit: float = LIMIT) -> list[str]:
    """Return the names of tests that took a limit [s] and more, from the durations that pytest prints.

    Raises:
        ValueError: There are no durations in the text.
    """
    taken: dict[str, float] = defaultdict(float)
    for line in text.splitlines():
        if found := _LINE.match(line):
            taken[found[2]] += float(found[1])
    if not taken:
        raise ValueError("no durations of tests in it")
    return sorted(name for name, seconds in taken.items() if seconds >= limit and not name.startswith(STAY))


def main() -> None:
    """Read what pytest printed and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("printed", type=Path, help="file of what pytest printed, with --durations=0")
    asked = parser.parse_args()
    try:
        names = long_tests(asked.printed.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{asked.printed} cannot be used: {error}; expected what pytest prints with --durations=0.")
    LIST.write_text(_HEAD.format(limit=LIMIT) + "\n".join(names) + "\n")
    print(f"{len(names)} tests in {LIST.name}")


if __name__ == "__main__":
    main()
