"""How long plans in flight take: our kernel beside CasADi with IPOPT, on the same plans, in the same run.

    python benchmarks/race_plans.py                  60 plans of AlphaPilot, a minute
    python benchmarks/race_plans.py --plans 200 --json plans.json
    python benchmarks/race_plans.py --device cuda:0  the kernel's batch on a GPU

A plan is asked for at a moment of AlphaPilot's stored plan, every so often from the start to the last gate, by a racer that
is off it by 0.1 m and 0.1 m/s (standard deviation, each axis) and finds each gate up to --moved metres from where the plan had
it; looks and margins are those of the pilot `race`, and solvers begin at the stored plan. Both minimise the same: seconds, and
the price of what windows and looks lack. Time is the processor's, of one thread, without building the solvers; each plan is
solved once before it is timed. "Same" is a price within 0.5 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.errors import AirworthyError
from airworthy.race import RacerModel, course_of, load_race
from airworthy.race.planning.glances import glances_of
from airworthy.race.planning.guess import TimedPlan, begun_guess
from airworthy.race.planning.horizon import GateWindows, HorizonAnswer, horizon_planner, whole_openings
from airworthy.race.planning.minimum_time import casadi_module
from airworthy.race.planning.plan import RacePlan, flown_gates, packaged_plan
from airworthy.race.planning.replanner import ReplanOptions, glance_needs, inner_windows
from airworthy.race.planning.shooting.planner import HorizonAsked, ShootingPlanner
from airworthy.vehicles import vehicle
from benchmarks import hardware

OFF = 0.1
"""Standard deviation of where a racer is off its plan [m], [m/s]."""
SAME = 5e-3
OPTIONS = ReplanOptions()
LATE = np.full(11, 0.2)
"""Share of a gate's own leg that is too late to look at it."""


def asked(model: RacerModel, count: int, moved: float) -> list[HorizonAsked]:
    """Return what is asked for, the same numbers in each run."""
    race = course_of(load_race("alphapilot"), "nominal")
    stored, gates = packaged_plan("alphapilot_glances", model), whole_openings(flown_gates(race))
    lacking = [(glance, OPTIONS.need) for glance in glances_of([name for name, _ in race.passes])]
    times = np.linspace(0.0, stored.duration - 0.2, count)
    return [_one(stored, gates, lacking, float(t), moved, np.random.default_rng(k)) for k, t in enumerate(times)]


def _one(
    stored: RacePlan, gates: GateWindows, lacking: list[Any], moment: float, moved: float, rng: np.random.Generator
) -> HorizonAsked:
    flown, nodes = TimedPlan(stored, 0.0, 0), OPTIONS.horizon.bounds.nodes
    first = int(np.searchsorted(stored.gate_times, moment, side="right"))
    passages = range(first, min(first + OPTIONS.horizon.ahead, len(stored.legs)))
    rows = slice(passages.start, passages.stop)
    shifts = rng.uniform(-moved, moved, gates.center.shape) * [1.0, 1.0, 0.2]
    centers = gates.center + shifts
    some = GateWindows(centers[rows], gates.left[rows], gates.up[rows], gates.normal[rows], gates.half[rows])
    state = flown.at(moment)[0]
    state[:6] += OFF * rng.standard_normal(6)
    guess = begun_guess(moment, passages, nodes, before=flown, nominal=stored, shifts=shifts)
    windows = inner_windows(some, np.zeros((len(passages), 2)), OPTIONS)
    return state, windows, guess, glance_needs(lacking, centers, passages, nodes, LATE)


def timed(plans: list[HorizonAsked], solve: Callable[[HorizonAsked], HorizonAnswer]) -> tuple[list[HorizonAnswer], Array]:
    """Return answers and milliseconds."""
    answers, spent = [], []
    for plan in plans:
        solve(plan)
        begin = time.thread_time()
        answers.append(solve(plan))
        spent.append(1e3 * (time.thread_time() - begin))
    return answers, np.array(spent)


def price(answer: HorizonAnswer) -> float:
    """Return what both minimise, but for the ends of seconds that calm turning costs [s]."""
    horizon = OPTIONS.horizon
    lacking = horizon.window_price * np.sum(answer.window_slack) + horizon.glance_price * np.sum(answer.glance_slack)
    return answer.plan.duration + float(lacking)


def batched(model: RacerModel, plans: list[HorizonAsked], device: str) -> float:
    """Return milliseconds of the wall clock per plan, all at once, on all threads or a GPU; the best of three."""
    planner = ShootingPlanner(model, OPTIONS.horizon, len(plans), device)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        planner.solve_all(plans)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * min(seconds[2:]) / len(plans)


def summary(answers: list[HorizonAnswer], spent: Array) -> dict[str, Any]:
    """Return the figures of one solver."""
    percentiles = dict(zip(("median", "p90", "max"), np.percentile(spent, (50, 90, 100)).round(2).tolist(), strict=True))
    return {
        "ms": percentiles,
        "iterations": float(np.mean([answer.iterations for answer in answers])),
        "usable": sum(answer.usable for answer in answers),
        "defect": max(float(np.max(answer.plan.defects())) for answer in answers if answer.usable),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=60, help="plans (default 60)")
    parser.add_argument(
        "--moved", type=float, default=0.15, help="how far gates turn out to stand elsewhere [m] (default 0.15)"
    )
    parser.add_argument("--cores", type=int, default=2, help="of the CPU, for the batch (default 2)")
    parser.add_argument("--device", default="cpu", help="of the batch: cpu or a CUDA device of Warp")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    given = parser.parse_args()
    about = hardware.describe(hardware.use_cores(given.cores))
    model = RacerModel.of(vehicle("flightgoggles_2019"))
    plans = asked(model, given.plans, given.moved)
    native = horizon_planner(model, OPTIONS.horizon.ahead, OPTIONS.horizon)
    ours, ours_ms = timed(plans, lambda plan: native.solve(*plan))
    rows = {"native": summary(ours, ours_ms)}
    rows["native"]["batch_ms"] = batched(model, plans, given.device)
    result: dict[str, Any] = {**about, "plans": len(plans), "moved_m": given.moved, "solvers": rows}
    try:
        casadi_module()
    except AirworthyError as error:
        print(f"Nothing to compare with: {error}")
    else:
        other = replace(OPTIONS.horizon, solver="casadi")
        theirs, theirs_ms = timed(plans, lambda plan: horizon_planner(model, len(plan[2].legs), other).solve(*plan))
        rows["casadi"] = summary(theirs, theirs_ms)
        gain = np.array([price(a) / price(b) - 1.0 for a, b in zip(ours, theirs, strict=True)])
        result["casadi_version"] = hardware.version("casadi")
        result["prices"] = {
            "same": int(np.sum(np.abs(gain) <= SAME)),
            "ours_better": int(np.sum(gain < -SAME)),
            "theirs_better": int(np.sum(gain > SAME)),
        }
        result["times_as_fast"] = {
            name: round(rows["casadi"]["ms"][name] / rows["native"]["ms"][name], 1) for name in ("median", "p90", "max")
        }
    print(json.dumps(result, indent=1))
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
