"""How many tracking problems are solved per second, in closed loop, beside CasADi with IPOPT and our own NumPy twin.

    python benchmarks/mpc.py                 1,024 drones on the course `robustness`, about a minute
    python benchmarks/mpc.py --device cuda:0

Each drone has its own mass and thrust (+-30 %) and starts off the course by up to 0.4 m and 0.4 m/s. At every tick of 20 Hz its
problem (40 steps, bounds on all inputs) is solved from the last solution, moved on by a step, until an iteration lowers the
cost by less than a millionth; the drone flies the first command. Solutions on the way are compared with ones iterated to the
end: the cost and the first command must be those of the optimum within 1e-4 and 1e-2. Costs are compared as long as the drone
is still on its way to the course, above 0.01: on it they vanish, and float32 keeps fewer digits of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.control.mpc import MpcConfig, MpcReference, MpcSolver
from airworthy.control.mpc.stage import derivative, step
from airworthy.control.mpc.twin import solve_twin
from airworthy.pilots.expert import expert_reference
from airworthy.trajectories import course
from benchmarks import hardware

AIM = 10_000
"""Warm solves per second on two cores."""
FULL = 27.6 / 1.144
"""Thrust at full command over mass of SOUS VIDE's drone [m/s^2]."""
TICKS = 100
CHECKED = 10
"""Tick whose solutions are compared."""
LEAST_COST = 0.01


def starts(reference: MpcReference, count: int, rng: np.random.Generator) -> tuple[Array, Array, ArrayInt]:
    """States, thrusts over mass, and rows of the course at which the drones begin."""
    row = rng.integers(0, len(reference) - TICKS - 1, count)
    off = rng.uniform(-1, 1, (count, 10)) * np.array([0.4] * 6 + [0.2] * 4)
    state = reference.states[row] + off
    state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    full = FULL * rng.uniform(0.7, 1.3, count) / rng.uniform(0.7, 1.3, count)
    return state, full, row


def closed_loop(solver: MpcSolver, state: Array, full: Array, row: ArrayInt) -> dict[str, Any]:
    """Fly TICKS ticks; the time of the solver alone, iterations, and the last problems with their solutions."""
    seconds, iterations, last = [], [], {}
    for tick in range(TICKS):
        begin = time.perf_counter()
        found = solver.solve(state, full, row + tick)
        seconds.append(time.perf_counter() - begin)
        iterations.append(float(found.iterations.mean()))
        if tick == CHECKED:
            last = {"state": state, "cost": np.array(found.cost), "first": np.array(found.inputs[:, 0]), "row": row + tick}
        first = np.array(found.inputs[:, 0], float)
        begin = time.perf_counter()
        solver.shift()
        seconds[-1] += time.perf_counter() - begin
        state = np.stack(step(tuple(state.T), tuple(first.T), full, 9.81, 0.05), axis=-1)
        state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    return {"seconds": seconds, "iterations": iterations, **last}


def errors(reference: MpcReference, flown: dict[str, Any], full: Array, count: int) -> tuple[float, float]:
    """Worst relative cost error and worst first command of some of the last solutions, against ones iterated to the end."""
    config = MpcConfig(iterations=100, tolerance=0.0)
    done = MpcSolver(count, reference, config).solve(flown["state"][:count], full[:count], flown["row"][:count])
    compared = done.cost > LEAST_COST
    cost = float(np.abs(flown["cost"][:count] / done.cost - 1.0)[compared].max())
    return cost, float(np.abs(flown["first"][:count] - done.inputs[:, 0]).max())


def numpy_side(reference: MpcReference, state: Array, full: Array) -> float:
    """Solves per second of the twin: 64 problems, 3 iterations each."""
    few = slice(0, 64)
    begin = time.perf_counter()
    solve_twin(state[few], full[few], reference, row=0, iterations=3)
    return 64 / (time.perf_counter() - begin)


def casadi_side(reference: MpcReference, state: Array, full: Array, count: int = 8) -> tuple[float, Array]:
    """Solves per second of IPOPT, started from the reference, and the costs it finds."""
    solve = casadi_solver(reference)
    solve(state[0], float(full[0]))
    begin = time.perf_counter()
    cost = np.array([solve(state[k], float(full[k]))[0] for k in range(count)])
    return count / (time.perf_counter() - begin), cost


def casadi_solver(reference: MpcReference, config: MpcConfig | None = None) -> Callable[[Array, float], tuple[float, Array]]:
    """Return the problem of row 0 as a nonlinear programme: from state and thrust over mass to cost and inputs."""
    import casadi

    config = config or MpcConfig()
    count, dt = config.horizon, 1.0 / config.rate
    wanted = reference.rows()[np.minimum(np.arange(count + 1), len(reference) - 1)]
    x, u, full = (casadi.MX.sym(name, *size) for name, size in (("x", (10, count + 1)), ("u", (4, count)), ("c", (1, 1))))
    sx, su, sc = casadi.SX.sym("x", 10), casadi.SX.sym("u", 4), casadi.SX.sym("c")
    cells = [[v[i] for i in range(v.shape[0])] for v in (sx, su)]
    k1 = casadi.Function("f", [sx, su, sc], [casadi.vertcat(*derivative(tuple(cells[0]), tuple(cells[1]), sc, 9.81))])
    a = k1(sx, su, sc)
    b = k1(sx + 0.5 * dt * a, su, sc)
    c = k1(sx + 0.5 * dt * b, su, sc)
    d = k1(sx + dt * c, su, sc)
    move = casadi.Function("step", [sx, su, sc], [sx + dt / 6.0 * (a + 2.0 * (b + c) + d)])
    cost, gaps, x0 = 0.0, [], casadi.MX.sym("x0", 10)
    for k in range(count):
        goal = casadi.vertcat(wanted[k, 10] / full, casadi.DM(wanted[k, 11:]))
        off, change = x[:, k] - casadi.DM(wanted[k, :10]), u[:, k] - goal
        cost += casadi.dot(casadi.DM(config.state_weights) * off, off)
        cost += casadi.dot(casadi.DM(config.input_weights) * change, change)
        gaps.append(x[:, k + 1] - move(x[:, k], u[:, k], full))
    off = x[:, count] - casadi.DM(wanted[count, :10])
    cost += casadi.dot(casadi.DM(config.terminal_weights) * off, off)
    free = casadi.vertcat(casadi.vec(x), casadi.vec(u))
    rules = casadi.vertcat(x[:, 0] - x0, *gaps)
    problem = {"x": free, "f": cost, "g": rules, "p": casadi.vertcat(x0, full)}
    options = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes"}
    solver = casadi.nlpsol("mpc", "ipopt", problem, options)
    low = np.concatenate([np.full(x.numel(), -np.inf), np.tile(config.lower, count)])
    high = np.concatenate([np.full(x.numel(), np.inf), np.tile(config.upper, count)])

    def solve(state: Array, thrust: float) -> tuple[float, Array]:
        guess = np.concatenate([wanted[:, :10].reshape(-1), np.tile([9.81 / thrust, 0, 0, 0], count)])
        found = solver(x0=guess, p=np.append(state, thrust), lbg=0, ubg=0, lbx=low, ubx=high)
        return float(found["f"]), np.array(found["x"]).reshape(-1)[x.numel() :].reshape(count, 4)

    return solve


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1024, help="drones (default 1024)")
    parser.add_argument("--cores", type=int, default=2, help="of the CPU (default 2)")
    parser.add_argument("--device", default="cpu", help="cpu or a CUDA device of Warp")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    asked = parser.parse_args()
    about = hardware.describe(hardware.use_cores(asked.cores))
    for name, value in about.items():
        print(f"{name}: {value}")
    reference = expert_reference(course("robustness")).table
    state, full, row = starts(reference, asked.count, np.random.default_rng(0))
    solver = MpcSolver(asked.count, reference, device=asked.device, threads=asked.cores)
    closed_loop(solver, state, full, row)  # compiles, and finds out how to share the work
    solver.reset()
    flown = closed_loop(solver, state, full, row)
    warm = asked.count * (TICKS - 1) / sum(flown["seconds"][1:])
    cost, first = errors(reference, flown, full, min(asked.count, 256))
    rates = {"ours": warm, "numpy twin, 3 iterations": numpy_side(reference, state, full)}
    numbers: dict[str, Any] = {"hardware": about, "rates": rates, "cost_error": cost, "command_error": first}
    try:
        near = state[:8] - reference.states[row[:8]] + reference.states[0]
        rates["casadi ipopt, cold"], theirs = casadi_side(reference, near, full)
        ours = MpcSolver(8, reference).solve(near, full[:8], 0).cost
        numbers["casadi_cost_gap"] = float(np.abs(ours / theirs - 1.0).max())
    except ImportError:
        print("casadi is not installed: left out.")
    print(f"\n{asked.count} drones, {TICKS} ticks, 40 steps each, {asked.cores} cores, {asked.device}")
    print(f"iterations: first tick {flown['iterations'][0]:.1f}, later {np.mean(flown['iterations'][1:]):.2f}")
    for name, rate in rates.items():
        print(f"{name:28} {rate:10,.0f} solves/s   ours is {warm / rate:,.1f} times as fast")
    print(f"aim {AIM:,} solves/s: {warm / AIM:.2f} of it")
    print(f"at tick {CHECKED}: cost error {cost:.1e} (at most 1e-4), first command {first:.1e} (at most 1e-2)")
    if "casadi_cost_gap" in numbers:
        print(f"cold solutions beside IPOPT's: cost {numbers['casadi_cost_gap']:.1e} apart")
    if asked.json:
        asked.json.write_text(json.dumps(numbers, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
