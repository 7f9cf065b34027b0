"""How fast saturated rotors are served: allocation by priority, on regular and on irregular airframes.

    python benchmarks/saturated.py               about a minute; prints hardware, versions and command
    python benchmarks/saturated.py --json

Steps of physics of 4,096 environments whose wrenches leave the limits, each step anew: the dearest that allocation gets. Steps
per second of processor time of all threads, the best of a few launches after one that compiles, so that a busy machine changes
little. With `PYTHONPATH` at the `src` of another checkout the same is measured of that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.control import PRIORITIES, ControlConfig
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, control_effectiveness, thrust_limits, vehicle
from benchmarks import hardware

ENVIRONMENTS = 4_096
STEPS = 20
"""Of one launch."""
ARMS = (0.7, 1.2, 1.0, 1.3)
"""Lengths of the irregular airframe's arms, times those of the regular one."""


def airframes() -> dict[str, Vehicle]:
    """Return the airframes by name; the irregular one differs by its arms alone."""
    regular = vehicle("flightgoggles")
    rotors = []
    for rotor, length in zip(regular.rotors, ARMS, strict=True):
        x, y, z = rotor.position
        rotors.append(replace(rotor, position=(length * x, length * y, length * z)))
    return {
        "regular, 4 rotors": regular,
        "irregular, 4 rotors": replace(regular, rotors=tuple(rotors)),
        "with rotors to spare, 8": vehicle("base_octarotor"),
    }


def wrenches(body: Vehicle) -> np.ndarray:
    """Return wrenches around and beyond what an airframe gives, (environment, 6) float32."""
    rng, matrix = np.random.default_rng(8), control_effectiveness(body)
    lower, upper = thrust_limits(body)
    most = np.maximum(matrix * lower, matrix * upper).sum(axis=1)
    asked = most * rng.normal(size=(ENVIRONMENTS, 6))
    asked[:, 2] = most[2] * rng.uniform(0.8, 1.6, ENVIRONMENTS)
    return asked.astype(np.float32)


def rate(body: Vehicle, priority: str, rounds: int) -> float:
    """Return environment steps per second of processor time."""
    config = SimulatorConfig(level="wrench", control=ControlConfig(priority=priority))  # type: ignore[arg-type]
    simulator, asked = Simulator([body] * ENVIRONMENTS, config), wrenches(body)
    seconds = []
    for _ in range(rounds + 1):
        simulator.reset()
        begun = time.process_time()
        simulator.advance(STEPS, asked)
        seconds.append(time.process_time() - begun)
    return ENVIRONMENTS * STEPS / min(seconds[1:])


def main() -> None:
    """Measure every airframe in every order, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=12, help="launches of each, of which the best counts")
    asked = parser.parse_args()
    rates = {name: {p: rate(body, p, asked.rounds) for p in PRIORITIES} for name, body in airframes().items()}
    about = hardware.describe(hardware.use_cores(2))
    if asked.json:
        print(json.dumps({"hardware": about, "steps_per_cpu_second": rates}, indent=2))
        return
    print(f"{about['cpu']}, {about['versions']}, `{about['command']}`:")
    print(f"{'million steps per second of processor time':45}" + "".join(f"{p:>22}" for p in PRIORITIES))
    for name, row in rates.items():
        print(f"{name:45}" + "".join(f"{row[p] / 1e6:22.2f}" for p in PRIORITIES))


if __name__ == "__main__":
    main()
