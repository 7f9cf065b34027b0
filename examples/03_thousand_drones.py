"""A batch: 1,024 drones of eight kinds, each with its own mass, motors and wind, in one simulator.

Prints how well each kind does and writes runs/03_thousand_drones/errors.png.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from airworthy.evaluation import evaluate_tracking, wilson_interval
from airworthy.pilots import FlightPlan, fly, tracker
from airworthy.simulation import Randomization, Simulator, SimulatorConfig, Wind
from airworthy.tasks import TrackingReference
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

NAMES = ("carl", "flightgoggles", "lmf2", "magpie", "real_09", "virt_05", "tinyprop", "cf2x_L250")
kinds = [vehicle(name) for name in NAMES]
path = course("line").trajectory()
pilot = tracker("geometric", path)
spread = Randomization(mass=0.2, inertia=0.2, thrust=0.1, rotor=0.05, lag=0.3, wind=2.0, position=0.2)
config = SimulatorConfig(level=pilot.level, randomization=spread, wind=Wind(turbulence=(0.5, 0.5, 0.3)))
simulator = Simulator([kinds[i % 8] for i in range(1024)], config, seed=1)
simulator.reset(position=path.sample(0.0).position)
flown = fly(simulator, pilot, FlightPlan(path.duration + 1.0, reference=path, record_every=5))
results = evaluate_tracking(flown.table, TrackingReference.from_trajectory(path))

for kind, name in enumerate(NAMES):
    mine = results[kind::8]
    rate = wilson_interval(sum(result.outcome == "success" for result in mine), len(mine))
    errors = np.array([result.tracking_error_m for result in mine])
    print(f"{name:14} success {rate.value:4.0%} ({rate.low:.0%} to {rate.high:.0%}), error {np.nanmedian(errors):.3f} m")
    plt.ecdf(errors[np.isfinite(errors)], label=name)
plt.legend()
plt.xlabel("mean distance from the path [m]")
plt.ylabel("share of flights")
Path("runs/03_thousand_drones").mkdir(parents=True, exist_ok=True)
plt.savefig("runs/03_thousand_drones/errors.png", dpi=120)
