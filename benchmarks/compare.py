"""Compare two result files of `physics.py`: our rates as shares of the machine's own, so that machines may differ.

    python benchmarks/compare.py before.json after.json [--tolerance 0.10]

Exit code 1 when a share fell by more than the tolerance, or an aim was met before and is not now.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

YARDSTICK = {"bare": "hand-written lanes", "full": "floor of its parts", "motor_level": "plain Warp kernel"}
"""Measured in the same rounds as ours, by code that does not change."""


def shares(results: dict[str, Any], ours: str = "Airworthy") -> dict[str, float]:
    """Our rate over the yardstick's, by scenario and batch size."""
    found = {}
    for contest in results["contests"]:
        sides, key = contest["sides"], contest["scenario"]
        yardstick = YARDSTICK.get(key, "")
        if ours in sides and yardstick in sides:
            found[f"{key} {contest['env_count']}"] = sides[ours]["median"] / sides[yardstick]["median"]
    return found


def worse(before: dict[str, Any], after: dict[str, Any], tolerance: float) -> list[str]:
    """One sentence per figure that became worse."""
    old, new = shares(before), shares(after)
    fallen = [
        f"{key}: {new[key]:.3g} of the yardstick, was {old[key]:.3g}"
        for key in old
        if key in new and new[key] < old[key] * (1.0 - tolerance)
    ]
    aims_old, aims_new = before.get("aims", {}), after.get("aims", {})
    missed = [f"{name}: aim no longer met" for name, met in aims_old.items() if met and aims_new.get(name) is False]
    return fallen + missed


def main() -> int:
    """Run the comparison; the exit code says whether something became worse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.10, help="fall of a share that counts as worse [-]")
    options = parser.parse_args()
    try:
        before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    except (OSError, ValueError) as trouble:
        parser.error(f"{trouble}; expected two files written by physics.py --out")
    found = worse(before, after, options.tolerance)
    print("\n".join(found) or f"nothing fell by more than {options.tolerance:.0%}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
