"""How far from its optimum the expert's first solution ends where a drone begins far off its path.

    python benchmarks/mpc_cold_starts.py                   2,000 starts, 20 of them against the float64 twin, three minutes
    python benchmarks/mpc_cold_starts.py --starts 500 --compared 0

Starts lie up to 1.2 m and 2.5 m/s off `robustness` along each axis, quaternions up to 0.2 in each component before they are
normalised; thrust over mass is that of carl, +-30 % each. The optimum of a start is the least cost that anything here finds:
the kernel, the kernel on and on, and the readable twin from the kernel's solution.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.control.mpc import MpcConfig, MpcSolver
from airworthy.control.mpc.twin import solve_twin
from airworthy.core.arrays import Array, ArrayInt
from airworthy.pilots.expert import expert_reference, full_thrust_of
from airworthy.trajectories import course
from airworthy.vehicles import vehicle
from benchmarks import hardware

OFF, FAST, TURNED, SPREAD = 1.2, 2.5, 0.2, 0.3
"""Half widths [m], [m/s], of quaternions' components, and shares of mass and thrust."""
AWAY = 1e-4
"""Share of the optimum's cost above which a solution counts as away from it."""


def far_starts(states: Array, horizon: int, count: int, seed: int) -> tuple[ArrayInt, Array, Array]:
    """Return rows of the path (n,), states beside them (n, 10), and thrust over mass (n,).

    Args:
        states: Of the path, (rows, 10).
        horizon: Rows that a problem reads.
        count: Starts n.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(states) - horizon - 1, count)
    drawn = states[rows].copy()
    for part, half in ((slice(0, 3), OFF), (slice(3, 6), FAST), (slice(6, 10), TURNED)):
        drawn[:, part] += rng.uniform(-half, half, drawn[:, part].shape)
    drawn[:, 6:] /= np.linalg.norm(drawn[:, 6:], axis=1, keepdims=True)
    carl = vehicle("carl")
    mass, thrust = (1.0 + SPREAD * rng.uniform(-1.0, 1.0, count) for _ in range(2))
    return rows, drawn, full_thrust_of(carl) / carl.mass * thrust / mass


def main() -> None:
    """Print how many iterations starts far off take, and how far from the optimum some of them end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=2000)
    parser.add_argument("--compared", type=int, default=20, help="of them, against the optimum; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, value in hardware.describe(hardware.use_cores(1)).items():
        print(f"{name}: {value}")
    table = expert_reference(course("robustness")).table
    rows, states, full = far_starts(table.states, MpcConfig().horizon, given.starts, given.seed)
    found = MpcSolver(given.starts, table).solve(states, full, rows)
    steps = found.iterations
    print(
        f"{given.starts:,} cold starts, {MpcConfig().iterations} iterations allowed: median {np.median(steps):.0f}, over 20"
        f" in {100.0 * np.mean(steps > 20):.1f} %, most {steps.max()}; cut off {int(found.cut_off.sum())}, failed"
        f" {int(found.failed.sum())}."
    )
    if not (some := min(given.compared, given.starts)):
        return
    rows, states, full = rows[:some], states[:some], full[:some]
    ours = MpcSolver(some, table).solve(states, full, rows)
    long = MpcSolver(some, table, MpcConfig(iterations=400, tolerance=0.0)).solve(states, full, rows)
    on = [
        solve_twin(
            states[k : k + 1], full[k], table, row=int(rows[k]), inputs=ours.inputs[k : k + 1].astype(float), iterations=60
        )
        for k in range(some)
    ]
    cold = [solve_twin(states[k : k + 1], full[k], table, row=int(rows[k]), iterations=150) for k in range(some)]
    costs = [
        ours.cost.astype(float),
        long.cost.astype(float),
        *(np.array([float(x.cost[0]) for x in two]) for two in (on, cold)),
    ]
    best = np.min(costs, axis=0)
    short = MpcSolver(some, table, MpcConfig(iterations=20)).solve(states, full, rows)
    for name, cost, cut in (("as it is", costs[0], ours.cut_off), ("20 iterations", short.cost.astype(float), short.cut_off)):
        over = cost / best - 1.0
        print(
            f"{some} of them, {name}: {int((over > AWAY).sum())} over {AWAY:g} from the optimum, worst {over.max():.1e};"
            f" {int(cut.sum())} said to be cut off, {int((over > AWAY)[~cut].sum())} away unsaid."
        )


if __name__ == "__main__":
    main()
