"""Policies that avoid in unseen forests, beside EGO-Planner, Fast-Planner and straight flight in the same places.

    python benchmarks/avoid.py --policy runs/avoid --out runs/avoid_table.jsonl

A row is a pilot at a top speed in a density: 100 flights, each in a forest of its own, the same for all pilots, noisy depth.
Rows that are in the file are not flown again, so that a stopped table goes on, and policies and pilots can be added. `blind` is
the first policy with its image blanked. `--picture` draws flights through one forest from above.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.evaluation.statistics import wilson_interval
from airworthy.learning.avoid.evaluation import AvoidProtocol, fly_forests, planner_guide, policy_guide
from airworthy.learning.avoid.forests import CEILING, FOREST_LENGTH, FOREST_WIDTH, draw_trunks
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy, read_avoid_policy
from benchmarks.row_file import RowFile, machine_line
from benchmarks.tables import table

PLANNERS = ("straight", "ego", "fast")
BARS = {4.0: 0.9, 8.0: 0.6}
"""Least share of successes by top speed [m/s]: acceptance list of the specification, section 9, 14."""


def makers(policies: list[Path], pilots: list[str]) -> Iterator[tuple[str, Any]]:
    """Name and maker of whoever flies."""
    held = [read_avoid_policy(folder) for folder in policies]
    for policy in held:
        yield f"policy, seed {policy.contract.training['options']['seed']}", policy_guide(policy)
    if held and "blind" in pilots:
        blind = AvoidPolicy(replace(held[0].contract, blind=True), held[0].weights)
        yield "policy, image blanked", policy_guide(blind)
    for name in pilots:
        if name != "blind":
            yield name, planner_guide(name)


def flown(name: str, make: Any, protocol: AvoidProtocol, speed: float, area: float) -> dict[str, Any]:
    """Return one row of the table."""
    begun, cpu = time.perf_counter(), time.process_time()
    found = fly_forests(make, protocol, speed, area).figures
    spent = {"wall_s": round(time.perf_counter() - begun, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    return {"pilot": name, "seed": protocol.seed, "speed_m_s": speed, "area_m2": area, **found, **spent}


def shown(rows: list[dict[str, Any]]) -> str:
    """Return the table, with Wilson intervals at 95 %."""
    lines = []
    for row in sorted(rows, key=lambda r: (r["speed_m_s"], -r["area_m2"], r["pilot"])):
        rate = wilson_interval(row["success"], row["flights"])
        success = f"{100.0 * rate.value:.0f} ({100.0 * rate.low:.0f} to {100.0 * rate.high:.0f})"
        speed = "-" if row["mean_speed_m_s"] is None else f"{row['mean_speed_m_s']:.1f}"
        lost = [f"{100.0 * row[key] / row['flights']:.0f}" for key in ("touched", "left", "late")]
        pilot = row["pilot"] if row["flights"] == 100 else f"{row['pilot']} ({row['flights']} flights)"
        lines.append((f"{row['speed_m_s']:g}", f"{row['area_m2']:g}", pilot, success, *lost, speed))
    head = ("top speed [m/s]", "m^2 per tree", "pilot", "success [%]", "touched", "left", "late", "mean speed [m/s]")
    return table("Unseen forests", head, lines)


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Return, per policy and bar, all densities together."""
    said = []
    for pilot in sorted({row["pilot"] for row in rows if row["pilot"].startswith("policy, seed")}):
        for speed, least in BARS.items():
            own = [row for row in rows if row["pilot"] == pilot and row["speed_m_s"] == speed]
            if own:
                share = sum(r["success"] for r in own) / sum(r["flights"] for r in own)
                word = "reached" if share >= least else "MISSED"
                said.append(f"{pilot}: {100.0 * share:.1f} % at {speed:g} m/s over {len(own)} densities: bar of"
                            f" {100.0 * least:.0f} % {word}")  # fmt: skip
    return said


def picture(path: Path, tracks: list[tuple[str, np.ndarray, np.ndarray]], trunks: np.ndarray, title: str) -> None:
    """Draw flights through one forest from above.

    Args:
        path: The file.
        tracks: Name, way (tick, 3) [m] and whether it came through, of each flight.
        trunks: x, y, radius [m], (n, 3).
        title: In the picture.
    """
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    figure, axes = plt.subplots(figsize=(9.0, 5.2))
    for x, y, r in trunks:
        axes.add_patch(Circle((x, y), r, color="#6b4f36"))
    fastest = max(float(np.linalg.norm(np.diff(way, axis=0), axis=1).max()) * 100.0 for _, way, _ in tracks)
    for _, way, through in tracks:
        flat = way[::5, :2]
        speed = np.linalg.norm(np.diff(way[::5], axis=0), axis=1) * 20.0
        drawn = LineCollection(list(np.stack([flat[:-1], flat[1:]], 1)), array=speed, cmap="viridis", linewidths=1.6)
        drawn.set_clim(0.0, fastest)
        axes.add_collection(drawn)
        axes.plot(*flat[-1], "o" if through else "X", color="#1a7f37" if through else "#c62828", markersize=6)
    figure.colorbar(drawn, ax=axes, label="speed [m/s]", shrink=0.8)
    axes.set(xlim=(-5, FOREST_LENGTH + 5), ylim=(-FOREST_WIDTH / 2, FOREST_WIDTH / 2), aspect="equal", title=title)
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    figure.savefig(path, bbox_inches="tight", dpi=110)


def draw(path: Path, policy: AvoidPolicy, protocol: AvoidProtocol, speed: float, area: float, number: int) -> None:
    """Draw one flight of each of several starts through the same forest."""
    flown = fly_forests(policy_guide(policy), protocol, speed, area, number)
    tracks = [(str(k), flown.track[:, k], flown.success[k]) for k in range(protocol.flights)]
    for k, (name, way, through) in enumerate(tracks):
        moving = np.flatnonzero(np.abs(np.diff(way, axis=0)).max(1) > 0.0)
        tracks[k] = (name, way[: (moving[-1] + 2 if len(moving) else 2)], through)
    title = f"{protocol.flights} flights at up to {speed:g} m/s, a tree per {area:g} m$^2$, below {CEILING:g} m"
    picture(path, tracks, draw_trunks(protocol.seed, number, area), title)


def main(argv: list[str] | None = None) -> int:
    """Fly what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, nargs="*", default=[], help="folders that airworthy train avoid wrote")
    parser.add_argument("--pilots", nargs="*", default=["blind", *PLANNERS], choices=["blind", *PLANNERS])
    parser.add_argument("--speeds", type=float, nargs="*", default=[2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    parser.add_argument("--areas", type=float, nargs="*", default=[5.0, 3.3, 2.5])
    parser.add_argument("--flights", type=int, default=100)
    parser.add_argument("--seed", type=int, default=AvoidProtocol.seed)
    parser.add_argument("--out", type=Path, default=Path("runs/avoid_table.jsonl"))
    parser.add_argument("--picture", type=Path, default=None, help="draw 12 flights of the first policy here, .jpg or .png")
    given = parser.parse_args(argv)
    protocol = AvoidProtocol(given.seed, given.flights, tuple(given.speeds), tuple(given.areas))
    if given.picture is not None:
        policy = read_avoid_policy(given.policy[0])
        draw(given.picture, policy, replace(protocol, flights=12), given.speeds[0], given.areas[0], 0)
    kept = RowFile(given.out, ("pilot", "seed", "flights", "speed_m_s", "area_m2"))
    for name, make in makers(given.policy, given.pilots):
        for speed in given.speeds:
            for area in given.areas:
                if not kept.has(name, given.seed, given.flights, speed, area):
                    kept.add(flown(name, make, protocol, speed, area))
    print(shown([row for row in kept.rows if row["seed"] == given.seed]))
    print("\n".join([*verdicts(kept.rows), machine_line()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
