"""Policies that navigate by sight in unseen rooms, with their image blanked beside them.

    python benchmarks/navigation_rooms.py --policy runs/navigation --levels 15 25 30 50 --flights 300

A row is a policy at a level of clutter, in the launch that it learnt in or in the simulator at 1,000 Hz, seeing or image blank,
in the same rooms, from the same starts. Rows that are in the file are not flown again, so that a stopped table goes
on, and policies can be added, those of a training under way, too.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.evaluation.paired import paired_rate_difference
from airworthy.learning.navigation.eyes import BlindEye
from airworthy.learning.navigation.judging import fly_level, fly_level_piloted, fly_level_simulated, level_row
from airworthy.learning.navigation.options import RoomsProtocol
from airworthy.learning.navigation.run import load_navigator
from airworthy.pilots.navigation_policy.pilot import read_flown_policy
from airworthy.pilots.network_files import WEIGHTS_FILE
from benchmarks.row_file import RowFile, machine_line
from benchmarks.tables import table

PHYSICS: dict[str, Any] = {"launch": fly_level, "simulator": fly_level_simulated}
PILOT = "pilot"
"""In the simulator, too, as `airworthy fly` flies it: by its own camera, holding its place at the target."""
BARS = {30: 0.85, 50: 0.7}
"""Least share of successes by level: acceptance list of the specification, learning by reward, section 9, 13."""


def shown(rows: list[dict[str, Any]]) -> str:
    """Return the table, with Wilson intervals at 95 %."""
    lines = []
    for row in sorted(rows, key=lambda r: (r["policy"], r["level"], r["physics"], r["blind"])):
        low, high = row["success_interval_percent"]
        lost = [f"{100.0 * row[key] / row['flights']:.0f}" for key in ("crashed", "late")]
        success = f"{row['success_percent']:.0f} ({low:.0f} to {high:.0f})"
        who = f"{row['policy']}, {1e-6 * row['env_steps']:.1f} M decisions"
        lines.append((who, str(row["level"]), row["physics"], "blank" if row["blind"] else "seen", success, *lost))
    return table("Unseen rooms", ("policy", "level", "physics", "image", "success [%]", "touched", "late"), lines)


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Return, per policy and bar, what the simulator says."""
    said = []
    for row in rows:
        least = BARS.get(row["level"])
        if least is not None and row["physics"] == "simulator" and not row["blind"]:
            word = "reached" if row["success"] >= least * row["flights"] else "MISSED"
            share = f"{row['success_percent']:.1f} % at level {row['level']}"
            said.append(f"{row['policy']}: {share}: bar of {100.0 * least:.0f} % {word}")
    return said


def apart(rows: list[dict[str, Any]]) -> list[str]:
    """Return, per level and physics, how far policies are apart in the very same rooms, with paired intervals at 95 %."""
    said = []
    seen = sorted((row for row in rows if not row["blind"] and "outcomes" in row), key=lambda r: (r["level"], r["physics"]))
    for first, second in itertools.combinations(seen, 2):
        alike = ("level", "physics", "seed", "flights")
        if any(first[key] != second[key] for key in alike) or first["weights"] == second["weights"]:
            continue
        mine, theirs = ([letter == "s" for letter in row["outcomes"]] for row in (first, second))
        found = paired_rate_difference(mine, theirs)
        told = f"{100.0 * found.value:+.0f} ({100.0 * found.low:+.0f} to {100.0 * found.high:+.0f}) points"
        said.append(f"level {first['level']}, {first['physics']}: {first['policy']} less {second['policy']}: {told}")
    return said


def main(argv: list[str] | None = None) -> int:
    """Fly what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, nargs="+", required=True, help="folders of airworthy train depth_navigation")
    parser.add_argument("--levels", type=int, nargs="*", default=[15, 25, 30, 50])
    parser.add_argument("--flights", type=int, default=300)
    parser.add_argument("--seed", type=int, default=RoomsProtocol.seed)
    parser.add_argument("--physics", nargs="*", default=[*PHYSICS, PILOT], choices=[*PHYSICS, PILOT])
    parser.add_argument("--images", nargs="*", default=["seen", "blank"], choices=["seen", "blank"])
    parser.add_argument("--out", type=Path, default=Path("runs/navigation_rooms.jsonl"))
    given = parser.parse_args(argv)
    known = ("weights", "seed", "flights", "level", "physics", "blind")
    kept = RowFile(given.out, known)
    protocol = RoomsProtocol(given.seed, given.flights)
    for folder in given.policy:
        policy, eye = load_navigator(folder)
        learnt = int(policy.contract.training.get("env_steps", 0))
        # Whatever its folder is called, and whatever lay there before.
        weights = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
        who = {"policy": str(folder), "env_steps": learnt}
        for level in given.levels:
            for physics in given.physics:
                for blind in (image == "blank" for image in given.images):
                    key = (weights, given.seed, given.flights, level, physics, blind)
                    # Whose camera sees nothing is no pilot of `airworthy fly`.
                    if kept.has(*key) or (blind and physics == PILOT):
                        continue
                    cpu = time.process_time()
                    if physics == PILOT:
                        flown = fly_level_piloted(read_flown_policy(folder), eye, protocol, level)
                    else:
                        flown = PHYSICS[physics](policy, BlindEye(eye) if blind else eye, protocol, level)
                    spent = {"cpu_s": round(time.process_time() - cpu, 1)}
                    kept.add({**who, **dict(zip(known, key, strict=True)), **level_row(level, flown), **spent})
    print(shown([row for row in kept.rows if row["seed"] == given.seed]))
    print("\n".join([*verdicts(kept.rows), *apart(kept.rows), machine_line()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
