"""Of how many pairs, and of how much processor time, a policy learns to fly by sight, by what its images are read with.

    python benchmarks/visuomotor_features.py --scene backroom:3@77 --course cluttered --out runs/features

trains `airworthy train visuomotor --rounds N` for all features and seeds, one after the other, and prints by round how many of
the flights of that round, which were new to the policy, succeeded without help; all seeds together, with Wilson's interval.
Rounds are flown by what was learnt before them: the first by imitation alone. A policy has arrived with the first round of
which at least 95 % succeed; pairs and processor seconds are those that it had learnt of until then. Every folder stays, and
what is in it is not made again: a stopped benchmark goes on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.evaluation.statistics import wilson_interval
from airworthy.learning.visuomotor import VisuomotorOptions, VisuomotorProtocol, train_visuomotor
from benchmarks import hardware

FEATURES = ("own", "hall", "random", "efficientnet_lite0", "trained")
"""Of which `efficientnet_lite0` needs the extra imagenet, and `trained` about twice the processor time of the others."""
ARRIVED_PERCENT = 95.0


def trained(folder: Path, options: VisuomotorOptions, protocol: VisuomotorProtocol, threads: int) -> dict[str, Any]:
    """Train one policy, or read it where it is trained, and return its summary."""
    return dict(train_visuomotor(folder, options, protocol, threads=threads, quiet=True).figures)


def rounds_of(summary: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return flights without help of each round, with pairs and processor seconds that went before it."""
    found, pairs, cpu = [], 0, 0.0
    for step in summary["steps"]:
        if step.get("flights"):
            found.append({"alone": step["alone"], "flights": step["flights"], "pairs": pairs, "cpu_s": cpu})
        pairs, cpu = step["pairs"], cpu + step["step_cpu_s"]
    return found


def arrival(rounds: Sequence[Mapping[str, float]]) -> Mapping[str, float] | None:
    """Return the first round of which at least 95 % succeeded without help; None: there is none."""
    return next((row for row in rounds if 100.0 * row["alone"] >= ARRIVED_PERCENT * row["flights"]), None)


def _share(good: float, count: float) -> str:
    rate = wilson_interval(int(good), int(count))
    return f"{int(good)} of {int(count)} ({100.0 * rate.low:.0f} to {100.0 * rate.high:.0f} %)"


def _spread(values: Sequence[float], digits: int = 0) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def told(features: str, summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return what all seeds of one kind of features came to, as text."""
    runs = [rounds_of(summary) for summary in summaries]
    lines = [f"{features}, {len(runs)} seeds"]
    for number in range(max(map(len, runs))):
        rows = [run[number] for run in runs if number < len(run)]
        learnt = "imitation alone" if number == 0 else f"{number} rounds"
        share = _share(sum(row["alone"] for row in rows), sum(row["flights"] for row in rows))
        pairs, cpu = (_spread([row[key] for row in rows]) for key in ("pairs", "cpu_s"))
        lines.append(f"  {learnt}: {share} without help, learnt of {pairs} pairs in {cpu} processor seconds")
    arrived = [row for row in map(arrival, runs) if row is not None]
    if arrived:
        pairs, cpu = (_spread([row[key] for row in arrived]) for key in ("pairs", "cpu_s"))
        lines.append(
            f"  95 %: {len(arrived)} of {len(runs)} seeds arrived, of {pairs} pairs, in {cpu} processor seconds; median"
            " (least to most) of those that did"
        )
    else:
        lines.append(f"  95 %: none of {len(runs)} seeds arrived")
    for condition in dict.fromkeys(row["condition"] for summary in summaries for row in summary["conditions"]):
        rows = [row for summary in summaries for row in summary["conditions"] if row["condition"] == condition]
        share = _share(sum(row["successes"] for row in rows), sum(row["flights"] for row in rows))
        errors = [100.0 * row["tracking_error_m"] for row in rows if row["tracking_error_m"] is not None]
        off = f", {_spread(errors, 1)} cm off" if errors else ""
        lines.append(f"  judged, {condition}: {share}{off}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", default="hall")
    parser.add_argument("--course", default="robustness")
    parser.add_argument("--features", nargs="+", default=list(FEATURES), help="as of airworthy train visuomotor")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flights", type=int, default=16, help="of a round")
    parser.add_argument("--minutes", type=float, default=10.0, help="which say how many pairs the expert makes")
    parser.add_argument("--judged", type=int, default=20, help="flights of each condition")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: two cores and all their threads")
    parser.add_argument("--out", type=Path, default=Path("runs/features"))
    given = parser.parse_args(argv)
    about = hardware.describe(hardware.use_cores(given.threads or 2))
    print(json.dumps(about))
    protocol = VisuomotorProtocol(flights=given.judged)
    for features in given.features:
        summaries = []
        for seed in given.seeds:
            options = VisuomotorOptions(
                scene=(given.scene,), course=(given.course,), features=features, seed=seed,
                minutes=given.minutes, rounds=given.rounds, flights=given.flights,
            )  # fmt: skip
            name = f"{Path(features).stem.replace(':', '_')}_{seed}"
            summaries.append(trained(given.out / name, options, protocol, given.threads))
            steps = ", ".join(f"{row['alone']:.0f}" for row in rounds_of(summaries[-1]))
            print(f"{name}: {steps} of {given.flights} without help, round by round", flush=True)
        print(told(features, summaries), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
