"""Whether this checkout is as fast as another commit: both measured in turn, in one run, on the same machine.

    python benchmarks/beside.py 3650d36 --rounds 5 --out beside.json      about 8 minutes per round
    python benchmarks/beside.py HEAD~20 --parts physics rays --rounds 3

The other commit is checked out into a folder of its own for the time of the run, and its own benchmark programs measure it; its
package is taken from there, everything else from this environment. In every other round the two change places: what the
machine does meanwhile is met by both alike. Printed is, for each figure, the median over the rounds of now over then (above 1:
this checkout is faster), with the least and the largest, and how far rounds of one side lie apart: a ratio within that spread
says nothing. The exit code is 1 if a figure's median is below 1 - `--tolerance` and the best of its rounds is below 1, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import hardware

REPOSITORY = Path(__file__).resolve().parents[1]
OURS = "Airworthy"
COMMANDS: dict[str, tuple[str, ...]] = {
    "physics": ("physics.py", "--parts", "bare", "full", "--sizes", "64", "4096", "--rounds", "3", "--no-published", "--out"),
    "rays": ("rays.py", "--rounds", "3", "--seconds", "0.5", "--out"),
    "splats": ("splats.py", "--rounds", "3", "--out"),
    "mpc": ("mpc.py", "--json"),
}


def physics_figures(result: dict[str, Any]) -> dict[str, float]:
    """Environment steps per second of our side, by scenario and number of environments."""
    return {f"{c['scenario']}, {c['env_count']} environments [steps/s]": c["sides"][OURS]["median"] for c in result["contests"]}


def rays_figures(result: dict[str, Any]) -> dict[str, float]:
    """Frames per second of our side, by sensor and scene."""
    return {f"{name} [frames/s]": median(contest["rates"][OURS]) for name, contest in result["contests"].items()}


def splats_figures(result: dict[str, Any]) -> dict[str, float]:
    """Frames per second, and per second of processor time, of every scene and size."""
    found = {}
    for path, value in _leaves(result["scenes"]):
        if path[-1] == "processor_ms":
            found[", ".join(path[:-1]) + " [frames/CPU-s]"] = 1e3 / value
        elif path[-1] == "frames_per_second":
            found[", ".join(path[:-1]) + " [frames/s]"] = value
    return found


def mpc_figures(result: dict[str, Any]) -> dict[str, float]:
    """Problems solved per second."""
    return {"closed loop [solves/s]": result["rates"]["ours"]}


FIGURES: dict[str, Callable[[dict[str, Any]], dict[str, float]]] = {
    "physics": physics_figures,
    "rays": rays_figures,
    "splats": splats_figures,
    "mpc": mpc_figures,
}


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(tree, dict):
        for name, inner in tree.items():
            yield from _leaves(inner, (*path, str(name)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, float(tree)


def compared(now: list[dict[str, float]], then: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Ratios now over then of the same round: median, least, largest; and the spread of each side's own rounds.

    Args:
        now: Figures of this checkout, one record per round; larger is faster.
        then: Of the other commit, in the same rounds.
    """
    names = [name for name in now[0] if all(name in record for record in (*now, *then))]
    table = {}
    for name in names:
        a, b = ([record[name] for record in side] for side in (now, then))
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        table[name] = {
            "ratio": median(ratios),
            "least": min(ratios),
            "largest": max(ratios),
            "spread": max(max(side) / min(side) for side in (a, b)) - 1.0,
            "now": median(a),
            "then": median(b),
        }
    return table


def slower(table: dict[str, dict[str, float]], tolerance: float) -> list[str]:
    """Names of figures that fell by more than the tolerance in the median, and in no round reached the other commit's."""
    return [name for name, row in table.items() if row["ratio"] < 1.0 - tolerance and row["largest"] < 1.0]


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Give the files of a commit in a folder that lives as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "then"
        _git("worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> None:
    done = subprocess.run(("git", *arguments), cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")


def measured(root: Path, part: str, folder: Path) -> dict[str, float]:
    """Run a checkout's own benchmark in a process of its own, and return its figures."""
    out = folder / f"{part}.json"
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(root / "benchmarks" / COMMANDS[part][0]), *COMMANDS[part][1:], str(out)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return FIGURES[part](json.loads(out.read_text()))


def main() -> int:
    """Measure both in turn; print and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what to compare with: a commit, branch or tag of this repository")
    parser.add_argument("--parts", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--rounds", type=int, default=5, help="times that each side is measured")
    parser.add_argument("--tolerance", type=float, default=0.05, help="fall of a median that counts [-]")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error(f"--rounds is {asked.rounds}; expected at least 1.")
    about = hardware.describe(hardware.use_cores(os.cpu_count() or 1))
    print("\n".join(f"{key:22} {value}" for key, value in about.items()), flush=True)
    tables = {}
    with checkout(asked.commit) as then, tempfile.TemporaryDirectory() as folder:
        for part in asked.parts:
            sides: dict[Path, list[dict[str, float]]] = {REPOSITORY: [], then: []}
            for number in range(asked.rounds):
                for root in (REPOSITORY, then) if number % 2 == 0 else (then, REPOSITORY):
                    print(
                        f"{part}: round {number + 1} of {asked.rounds}, {'now' if root == REPOSITORY else 'then'}",
                        file=sys.stderr,
                    )
                    sides[root].append(measured(root, part, Path(folder)))
            tables[part] = compared(sides[REPOSITORY], sides[then])
            _show(part, tables[part])
    if asked.out:
        asked.out.write_text(json.dumps({"hardware": about, "commit": asked.commit, "tables": tables}, indent=1) + "\n")
    found = [f"{part}: {name}" for part, table in tables.items() for name in slower(table, asked.tolerance)]
    print(f"\nslower by more than {asked.tolerance:.0%}: {'; '.join(found) or 'none'}")
    return 1 if found else 0


def _show(part: str, table: dict[str, dict[str, float]]) -> None:
    print(f"\n{part:64} now/then   least .. largest   own spread        now       then")
    for name, row in table.items():
        bounds = f"{row['least']:.2f} .. {row['largest']:.2f}"
        print(
            f"{name:64} {row['ratio']:8.3f}   {bounds:16} {row['spread']:12.0%} {row['now']:10,.4g} {row['then']:10,.4g}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
