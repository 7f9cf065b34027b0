"""Avoiding policies of a fleet on the half that they did not learn with, flight by flight beside one another.

    python benchmarks/fleet_avoid.py --policies runs/virtual_identified_0 runs/virtual_none_0 --out runs/fleet.jsonl

Folders of `airworthy train avoid --vehicles virtual|real`. A policy that identifies its vehicle flies twice, once told it;
with `--decoded` a third time, told it for its throttles alone, while its network is told the middle vehicle. Each
flight has a forest of its own, and the same vehicle, start and goal for all; what is in the file is not flown again. Printed:
success of each, and the differences to policies that know nothing, of the same fleet and seed, with intervals for pairs.
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

from airworthy.evaluation import paired_rate_difference, wilson_interval
from airworthy.learning.avoid.evaluation import AvoidProtocol, fly_forests, policy_guide
from airworthy.learning.avoid.fleet import FleetVehicles, fleet_names, unseen
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy, read_avoid_policy
from benchmarks.row_file import RowFile, machine_line
from benchmarks.tables import table

WEAK = 2.0
"""Thrust to weight below which a vehicle is weak (the issue's acceptance)."""


_DRAWS = 2000
"""Of a bootstrap."""


def flyers(folders: list[Path], decoded: bool) -> Iterator[tuple[str, str, int, AvoidPolicy]]:
    """Yield condition, fleet, seed and policy of each; of those that identify, both."""
    for folder in folders:
        policy = read_avoid_policy(folder)
        fleet = policy.contract.fleet
        if fleet is None:
            raise SystemExit(f"{folder} holds no policy of a fleet: train it with --vehicles.")
        seed = int(policy.contract.training["options"]["seed"])
        yield fleet.condition, fleet.vehicles, seed, policy
        if fleet.condition == "identified":
            yield "told", fleet.vehicles, seed, policy.told()
        if decoded and fleet.sees:
            # Features are kept within bounds, here of no width, before the network is told them.
            told, middle = policy.told(), (0.0,) * len(fleet.least)
            assert told.contract.fleet is not None
            narrow = replace(told.contract, fleet=replace(told.contract.fleet, least=middle, most=middle))
            yield "decoded", fleet.vehicles, seed, AvoidPolicy(narrow, told.weights)


def flown(policy: AvoidPolicy, fleet: str, protocol: AvoidProtocol, speed: float, area: float) -> dict[str, Any]:
    """Return what became of each flight of one policy."""
    begun, cpu = time.perf_counter(), time.process_time()
    found = fly_forests(policy_guide(policy), protocol, speed, area, fleet=fleet)
    spent = {"wall_s": round(time.perf_counter() - begun, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    through = np.where(found.success, found.speed, np.nan)
    return {
        "outcomes": "".join(
            "s" if s else "t" if t else "l" if o else "-"
            for s, t, o in zip(found.success, found.touched, found.left, strict=True)
        ),
        "speeds": [None if np.isnan(v) else round(float(v), 3) for v in through],
        **spent,
    }


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes two rows the same flights."""
    return tuple(row[name] for name in ("learnt", "training_seed", "speed_m_s", "area_m2", "flights", "seed"))


def successes(row: dict[str, Any]) -> np.ndarray:
    """Return which flights came through, (n,)."""
    return np.array([letter == "s" for letter in row["outcomes"]])


def shares(rows: list[dict[str, Any]]) -> str:
    """Return the table of all rows."""
    lines = []
    for row in sorted(rows, key=lambda r: (*key_of(r), r["knows"])):
        won = successes(row)
        rate = wilson_interval(int(won.sum()), len(won))
        speeds = [v for v in row["speeds"] if v is not None]
        names = fleet_names(unseen(row["learnt"]))
        ratio = FleetVehicles.of(unseen(row["learnt"])).thrust_to_weight
        weak = ratio[np.arange(len(won)) % len(names)] < WEAK
        parts = [f"{100.0 * won[who].mean():.0f}" if who.any() else "-" for who in (weak, ~weak)]
        lines.append(
            (
                row["learnt"],
                str(row["training_seed"]),
                f"{row['speed_m_s']:g}",
                f"{row['area_m2']:g}",
                row["knows"],
                f"{100.0 * rate.value:.1f} ({100.0 * rate.low:.1f} to {100.0 * rate.high:.1f})",
                *parts,
                f"{np.mean(speeds):.2f}" if speeds else "-",
            )
        )
    head = ("learnt on", "seed", "cap [m/s]", "m^2 per tree", "knows", "success [%]", "weak", "others", "mean speed [m/s]")
    return table("On the half that was not learnt with", head, lines)


def by_vehicle(gaps: np.ndarray, vehicles: np.ndarray) -> tuple[float, float]:
    """Return the bootstrap interval of the mean difference in per cent when vehicles are drawn again, not flights.

    Args:
        gaps: Of pairs of flights, (n,).
        vehicles: Their names, (n,).
    """
    means = np.array([gaps[vehicles == name].mean() for name in np.unique(vehicles)])
    drawn = np.random.default_rng(0).integers(0, len(means), (_DRAWS, len(means)))
    low, high = np.percentile(means[drawn].mean(1), [2.5, 97.5])
    return 100.0 * float(low), 100.0 * float(high)


def differences(rows: list[dict[str, Any]]) -> str:
    """Return the table of differences to policies that know nothing, by half and seed, and over all."""
    pairs: dict[tuple[Any, ...], list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for row in rows:
        for other in rows:
            if row["knows"] != "none" and other["knows"] == "none" and key_of(row) == key_of(other):
                names = np.array(fleet_names(unseen(row["learnt"])))
                both = successes(row), successes(other), names[np.arange(row["flights"]) % len(names)]
                cap = f"all, {row['speed_m_s']:g} m/s"
                for group in ((row["learnt"], row["training_seed"]), (row["learnt"], "all"), ("both", cap), ("both", "all")):
                    pairs.setdefault((row["knows"], *group), []).append(both)
    lines = []
    for (knows, learnt, seed), found in sorted(pairs.items(), key=lambda item: tuple(map(str, item[0]))):
        ours, theirs, vehicles = (np.concatenate([pair[k] for pair in found]) for k in range(3))
        gap = paired_rate_difference(ours, theirs)
        interval = f"{100.0 * gap.value:+.1f} ({100.0 * gap.low:+.1f} to {100.0 * gap.high:+.1f})"
        low, high = by_vehicle(ours.astype(float) - theirs, vehicles)
        verdict = "beats it" if gap.low > 0.0 else "loses to it" if gap.high < 0.0 else "open"
        share = f"{100.0 * ours.mean():.1f} and {100.0 * theirs.mean():.1f}"
        lines.append((knows, learnt, str(seed), f"{len(ours):,}", share, interval, f"{low:+.1f} to {high:+.1f}", verdict))
    head = ("knows", "learnt on", "seed", "flights", "success [%], and of none", "difference, pairs", "by vehicle", "verdict")
    return table("Against policies that know nothing, on the same flights", head, lines)


def main() -> int:
    """Fly what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, nargs="+", required=True)
    parser.add_argument("--speeds", type=float, nargs="+", default=[4.0, 7.0])
    parser.add_argument("--areas", type=float, nargs="+", default=[10.0])
    parser.add_argument("--flights", type=int, default=90, help="of each policy, speed and density; a multiple of 18 is fair")
    parser.add_argument("--seed", type=int, default=7919, help="of forests, starts and noise")
    parser.add_argument("--decoded", action="store_true", help="also told for throttles alone")
    parser.add_argument("--out", type=Path, default=Path("runs/fleet_avoid.jsonl"))
    options = parser.parse_args()
    names = ("knows", "learnt", "training_seed", "speed_m_s", "area_m2", "flights", "seed")
    kept = RowFile(options.out, names)
    print(machine_line())
    for knows, learnt, seed, policy in flyers(options.policies, options.decoded):
        for speed in options.speeds:
            for area in options.areas:
                key = (knows, learnt, seed, speed, area, options.flights, options.seed)
                if kept.has(*key):
                    continue
                protocol = AvoidProtocol(seed=options.seed, flights=options.flights, speeds=(speed,), areas=(area,))
                row = dict(zip(names, key, strict=True)) | flown(policy, unseen(learnt), protocol, speed, area)
                kept.add(row)
                print(f"{key}: {row['outcomes'].count('s')} of {options.flights}, {row['cpu_s']:.0f} s", flush=True)
    print(shares(kept.rows))
    print(differences(kept.rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
