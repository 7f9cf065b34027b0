"""One policy for all quadrotors: trained on drawn vehicles, flown on every quadrotor of the catalogue, all held out.

    python benchmarks/foundation.py --out runs/foundation    train it, then fly it; minutes
    python benchmarks/foundation.py --policy runs/foundation    fly one that is there

A quadrotor is held where 95 % of its flights end within 10 cm: the same starts, length and physics as `airworthy train hover`
judges by. Time is that of the learning alone; on a machine that does other things, too, read the processor's seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.learning.gradient import HoverStart
from airworthy.learning.gradient.evaluation import HoverProtocol, figures, fly_hover
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.learning.gradient.foundation import FOUNDATION, FoundationTraining, write_foundation_policy
from airworthy.pilots import read_motor_policy
from airworthy.pilots.motor_policy.pilot import MotorPolicy
from airworthy.vehicles import Vehicle, named_vehicle, vehicle_names
from benchmarks import hardware

WITHIN_M = 0.1
"""Acceptance list of the specification (section 9, 15)."""


def quadrotors() -> list[Vehicle]:
    """Return those of the catalogue: every record with four rotors, none left out."""
    return [item for name in vehicle_names() if (item := named_vehicle(name)).rotor_count == 4]


def train(seed: int, iterations: int, out: Path) -> dict[str, Any]:
    """Train one seed and write its policy."""
    begun = time.process_time()
    training = FoundationTraining(replace(FOUNDATION, seed=seed, iterations=iterations))
    training.prepare()
    ready = time.process_time()
    wall = time.perf_counter()
    while not training.finished:
        training.step()
    found = {"setup_cpu_s": ready - begun, "cpu_s": time.process_time() - ready, "wall_s": time.perf_counter() - wall}
    write_foundation_policy(out, training)
    return {**found, "env_steps": training.env_steps, "weights": sum(w.size for w in training.weights)}


def fly(policy: MotorPolicy, vehicle: Vehicle, protocol: HoverProtocol) -> dict[str, Any]:
    """Fly the policy with one vehicle, from the protocol's starts."""
    try:
        own = policy.fitted(vehicle)
    except AirworthyError as refused:
        return {"vehicle": vehicle.name, "refused": str(refused), "held": False}
    c = own.contract
    low, high = np.array(c.limits).T
    flyer = LearntPolicy(list(own.weights), c.history, np.array(c.hover), (low, high), c.rate, c.action)
    found = figures(fly_hover(vehicle, flyer, protocol, HoverStart(), protocol.flights))
    error = found["p95_error_m"]
    return {"vehicle": vehicle.name, **found, "held": error is not None and error <= WITHIN_M}


def main(argv: list[str] | None = None) -> int:
    """Train, fly and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="where a policy that is trained is written")
    parser.add_argument("--policy", type=Path, default=None, help="fly this one instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=FOUNDATION.iterations)
    parser.add_argument("--flights", type=int, default=128, help="of each vehicle")
    parser.add_argument("--json", type=Path, default=None, help="write all figures to this file")
    given = parser.parse_args(argv)
    if (given.out is None) == (given.policy is None):
        parser.error("give either --out, to train, or --policy")
    about = hardware.describe(hardware.use_cores(2))
    print(json.dumps(about))
    trained = train(given.seed, given.iterations, given.out) if given.out is not None else {}
    print(json.dumps(trained))
    policy = read_motor_policy(given.out or given.policy)
    print(f"{'vehicle':28} kept %   median cm   95 % cm   held")
    rows = []
    for item in quadrotors():
        rows.append(fly(policy, item, HoverProtocol(flights=given.flights)))
        row = rows[-1]
        cells = "  ".join(_centimetres(row.get(name)) for name in ("median_error_m", "p95_error_m"))
        print(f"{item.name:28} {row.get('kept_percent', 0.0):6.1f}   {cells}   {'yes' if row['held'] else 'no'}", flush=True)
    held = sum(row["held"] for row in rows)
    print(f"held within {100 * WITHIN_M:g} cm: {held} of {len(rows)} ({100.0 * held / len(rows):.1f} %)")
    if given.json is not None:
        given.json.write_text(json.dumps({"about": about, "trained": trained, "rows": rows}, indent=1))
    return 0


def _centimetres(metres: float | None) -> str:
    return f"{'inf' if metres is None else format(100.0 * metres, '.2f'):>9}"


if __name__ == "__main__":
    raise SystemExit(main())
