"""One policy for all quadrotors: flown with every quadrotor of the catalogue, or as the controller of FlyingTrust's fleet.

    python benchmarks/foundation.py --out runs/foundation        train it as `airworthy train foundation` does; minutes
    python benchmarks/foundation.py --policy runs/foundation     fly one that is there
    python benchmarks/foundation.py --policy runs/foundation --fleet

The last flies the 36 vehicles of FlyingTrust, with the geometric controller beside it, and says which are not held, and why.

A quadrotor is held where 95 % of its flights end within 10 cm: the same starts, length and physics as `airworthy train hover`
judges by. On the tour it flies through five places at up to 1 m/s; flown where 95 % of flights are never farther than 0.5 m
from where they should be. Time is that of the learning alone; on a machine that does other things, too, read the processor's
seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.benchmarks.navigation.config import FLEET
from airworthy.learning.foundation.config import FoundationConfig
from airworthy.learning.foundation.evaluation import FoundationProtocol, fly_fleet, quadrotors
from airworthy.learning.foundation.report import fleet_cells
from airworthy.learning.foundation.run import fleet_figures, train_foundation
from airworthy.learning.foundation.training import FOUNDATION
from airworthy.pilots import read_motor_policy
from airworthy.vehicles import named_vehicle
from benchmarks import hardware

FIRST = ("vehicle", "mass [kg]", "thrust to weight")
FIGURES = ("kept [%]", "median [cm]", "95 % [cm]", "held", "tour, mean [cm]", "tour, 95 % of largest [cm]", "flown")


def table_row(row: dict[str, Any]) -> str:
    """Write a vehicle's figures as a row of Markdown; behind them, where it flew, those of the geometric controller."""
    cells = [row["vehicle"], *fleet_cells(row)]
    if "geometric" in row:
        cells += fleet_cells(row["geometric"])[2:]
    return f"| {' | '.join(cells)} |"


def why(row: dict[str, Any]) -> str:
    """Say why a vehicle is not held, or does not fly the tour, as far as its figures tell."""
    if "refused" in row:
        return f"{row['vehicle']}: refused: {row['refused']}"
    lost = 100.0 - row["kept_percent"]
    said = []
    if not row["held"]:
        if lost > 0.0:
            said.append(f"{lost:.1f} % of its flights are lost")
        error = row["p95_error_m"]
        said.append(f"95 % of them end within {'no bound' if error is None else format(100.0 * error, '.1f') + ' cm'}")
    if row.get("tour_flown") is False:
        far = row["tour_p95_largest_m"]
        said.append(f"on the tour it is up to {'lost' if far is None else format(100.0 * far, '.0f') + ' cm off'}")
    known = row.get("geometric", {})
    if known:
        said.append(f"the geometric controller {'holds' if known['held'] else 'does not hold'} it")
    return f"{row['vehicle']} ({row['mass_kg']:.3f} kg, thrust {row['thrust_to_weight']:.2f} of its weight): {'; '.join(said)}"


def main(argv: list[str] | None = None) -> int:
    """Train, fly and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="where a policy that is trained is written")
    parser.add_argument("--policy", type=Path, default=None, help="fly this one instead")
    parser.add_argument(
        "--fleet", action="store_true", help="fly FlyingTrust's 36 vehicles, the geometric controller beside it"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=FOUNDATION.iterations)
    parser.add_argument("--flights", type=int, default=128, help="of each vehicle")
    parser.add_argument("--json", type=Path, default=None, help="write all figures to this file")
    given = parser.parse_args(argv)
    if (given.out is None) == (given.policy is None):
        parser.error("give either --out, to train, or --policy")
    about = hardware.describe(hardware.use_cores(2))
    print(json.dumps(about))
    trained: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    if given.out is not None:
        config = FoundationConfig(seed=given.seed, iterations=given.iterations, flights=given.flights)
        done = train_foundation(given.out, config.options(given.seed), config.protocol)
        trained = {name: done.figures[name] for name in ("training_wall_s", "training_cpu_s", "env_steps", "weights")}
        rows = [] if given.fleet else list(done.figures["vehicles"])
    print(json.dumps(trained))
    policy = read_motor_policy(given.out or given.policy)
    protocol = FoundationProtocol(flights=given.flights)
    columns = [*FIRST, *FIGURES, *(f"geometric: {name}" for name in FIGURES if given.fleet)]
    print(f"| {' | '.join(columns)} |")
    print("| --- " * len(columns) + "|")
    vehicles = [named_vehicle(name) for name in FLEET] if given.fleet else quadrotors()
    flown = iter(rows) if rows else fly_fleet(policy, vehicles, protocol, beside=given.fleet)
    rows = []
    for row in flown:
        rows.append(row)
        print(table_row(row), flush=True)
    found = fleet_figures(rows)
    print(f"held within {100 * protocol.within_m:g} cm: {found['held']} of {len(rows)} ({found['held_percent']:.1f} %)")
    print(f"fly the tour: {found.get('tour_flown', 0)} of {len(rows)}")
    if given.fleet:
        known = [row["geometric"] for row in rows if "geometric" in row]
        both = sum(k["held"] for k in known), sum(k.get("tour_flown", False) for k in known)
        print(f"geometric controller: {both[0]} held, {both[1]} fly the tour")
    for row in rows:
        if not row["held"] or row.get("tour_flown") is False:
            print(why(row))
    if given.json is not None:
        given.json.write_text(json.dumps({"about": about, "trained": trained, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
