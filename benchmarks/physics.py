"""How fast the physics is, beside other simulators and the machine's own limits, all measured in one run.

    python benchmarks/physics.py --out physics.json           about 10 minutes, plus the one-time installation of the yardsticks
    python benchmarks/physics.py --quick --no-install         about 2 minutes, with what is installed

What each number means is said in docs/benchmarks/speed.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import body, check, environment, floor, hardware, primitives, remote, sides, startup, tables
from benchmarks.interleave import Contest, run_contest
from benchmarks.ours import FULL_INTEGRATOR, NAME, airworthy_side

Goal = tuple[str, float | None, float, bool]

BARE_SIZES = (1, 64, 1_024, 8_192, 65_536)
FULL_SIZES = (1, 64, 65_536)
GPU_SIZES = (2**16, 2**20, 2**22)
BUSY_LOAD = 0.5
PARTS = ("machine", "bare", "full", "startup", "gpu")


def main() -> int:
    """Run the chosen parts, print every table, write the JSON file."""
    options = _options()
    cores = hardware.use_cores(options.cores)
    results: dict[str, Any] = {"hardware": hardware.describe(cores), "settings": _settings(options)}
    print(tables.hardware_table(results["hardware"]), flush=True)
    if max(results["hardware"]["load_average"][:1], default=0.0) > BUSY_LOAD:
        print("NOTICE: other programs are running; sides on several threads suffer most, so ratios are indicative only")
    _quiet_warp()
    if "machine" in options.parts:
        results["machine"] = _machine(len(cores), options.seconds)
    contests = _contests(options, cores, results)
    results["contests"] = [contest.summary(NAME) for contest in contests]
    if "startup" in options.parts:
        results["startup"] = _startup(1 if options.quick else 5)
    goals = _goals(contests, results)
    results["aims"] = {
        name: None if found is None else (found >= aim if up else found <= aim) for name, found, aim, up in goals
    }
    if any(contest.scenario.key == sides.BARE.key for contest in contests):
        print(tables.best_table(contests))
    print(tables.goal_table(goals))
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
        print(f"\nwritten to {options.out}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["machine", "bare", "full", "startup"])
    parser.add_argument("--cores", type=int, default=2, help="cores that every side may use")
    parser.add_argument("--rounds", type=int, default=7, help="rounds A B C A B C ... of each contest")
    parser.add_argument("--seconds", type=float, default=1.0, help="time that a side runs in a round [s]")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of environments, in place of the usual ones")
    parser.add_argument(
        "--full-integrator", choices=("euler", "rk4"), default=FULL_INTEGRATOR, help="integrator of the full step"
    )
    parser.add_argument("--device", default="cuda:0", help="GPU of the part `gpu`")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.4 s: indicative only")
    parser.add_argument("--no-install", action="store_true", help="use only published simulators that are already installed")
    parser.add_argument("--no-published", action="store_true", help="leave the published simulators out")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = min(options.rounds, 3), min(options.seconds, 0.4)
    return options


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()}


def _quiet_warp() -> None:
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR if hasattr(wp, "LOG_ERROR") else 40


def _machine(threads: int, seconds: float) -> dict[str, float]:
    """Peaks of the machine and costs of the building blocks, on one thread and on all."""
    found: dict[str, float] = {}
    for n in sorted({1, threads}):
        found[f"multiply-add, {n} thread(s) [GFLOP/s]"] = primitives.flops_per_second(n, seconds) / 1e9
        found[f"memory read, {n} thread(s) [GB/s]"] = primitives.bytes_per_second("read", n, seconds) / 1e9
        found[f"memory update, {n} thread(s) [GB/s]"] = primitives.bytes_per_second("update", n, seconds) / 1e9
        found[f"Threefry4x32-13 blocks, {n} thread(s) [1e9/s]"] = primitives.draws_per_second("blocks", n, seconds) / 1e9
        found[f"normal numbers, {n} thread(s) [1e9/s]"] = primitives.draws_per_second("normals", n, seconds) / 1e9
    for integrator in ("euler", "rk4"):
        found[f"bare body, {integrator} [flop/env-step]"] = body.flops_per_env_step(integrator)
    found["rest of the full step [flop/env-step]"] = floor.rest_flops_per_env_step()
    for problem in check.problems():
        print(f"WARNING: a yardstick is wrong. {problem}")
    print(tables.table("the machine and the building blocks", ("figure", "value"), [(k, f"{v:.4g}") for k, v in found.items()]))
    return found


def _contests(options: argparse.Namespace, cores: list[int], results: dict[str, Any]) -> list[Contest]:
    contests: list[Contest] = []
    threads = len(cores)
    if "bare" in options.parts:
        published = [] if options.no_published else _published(cores, not options.no_install)
        everyone: list[sides.Side] = [
            sides.CeilingSide(threads),
            airworthy_side(threads),
            airworthy_side(threads, specialized=True),
            sides.lanes_side(threads),
            sides.warp_side(threads),
            *published,
        ]
        contests += _run(everyone, sides.BARE, options.sizes or BARE_SIZES, options)
        results["published_versions"] = {side.name: side.versions for side in published if side.versions}
    if "full" in options.parts:
        under = floor.FloorSide(threads, options.full_integrator)
        ours = airworthy_side(threads, full_integrator=options.full_integrator)
        alone = airworthy_side(threads, full_integrator=options.full_integrator, specialized=True)
        contests += _run([under, ours, alone], sides.FULL, options.sizes or FULL_SIZES, options)
        results["floor"] = _floor(under)
    if "gpu" in options.parts:
        both: list[sides.Side] = [airworthy_side(threads, options.device), sides.warp_side(threads, options.device)]
        for scenario in (sides.MOTOR_LEVEL, sides.BARE):
            contests += _run(both, scenario, options.sizes or GPU_SIZES, options)
    return contests


def _run(
    everyone: Sequence[sides.Side], scenario: sides.Scenario, sizes: Sequence[int], options: argparse.Namespace
) -> list[Contest]:
    contests = []
    for size in sizes:
        contests.append(run_contest(everyone, scenario, size, options.rounds, options.seconds, _progress))
        print(tables.contest_table(contests[-1]), flush=True)
    for side in everyone:
        side.close()
    return contests


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<70}", end="", file=sys.stderr, flush=True)


def _published(cores: list[int], install: bool) -> list[remote.RemoteSide]:
    ready = environment.prepare(install)
    for name, trouble in ready.items():
        if trouble:
            print(f"NOTICE: {name} is left out: {trouble}")
    return remote.published_sides(cores, ready)


def _floor(under: floor.FloorSide) -> dict[str, float]:
    """Median cost of each part over the rounds [ns per env-step, all threads together]."""
    if not under.floors:
        return {}
    parts = {name: median(getattr(f, name) for f in under.floors) for name in ("normals", "body", "rest")}
    rows = [(name, f"{value:.3g}", f"{value / sum(parts.values()):.0%}") for name, value in parts.items()]
    print(tables.table("floor of the full step", ("part", "ns per env-step", "share"), rows))
    return parts


def _startup(repeats: int) -> dict[str, Any]:
    found = startup.measure(repeats)
    rows = [(name, f"{value:.3f} s" if isinstance(value, float) else f"failed: {value[:70]}") for name, value in found.items()]
    print(tables.table("waiting times of whole processes", ("process", "time"), rows))
    return found


def _goals(contests: Sequence[Contest], results: dict[str, Any]) -> list[Goal]:
    """Return what the project aims at, with what this run found (None where it was not measured)."""
    rates = {(c.scenario.key, c.env_count): c.median(NAME) for c in contests if NAME in c.rates}
    full = {
        c.env_count: c.ratio(NAME, floor.FloorSide.name) for c in contests if {NAME, floor.FloorSide.name} <= c.rates.keys()
    }
    waits = {k: v for k, v in results.get("startup", {}).items() if isinstance(v, float)}
    gpu = {key: max((r for (k, _), r in rates.items() if k == key), default=None) for key in ("motor_level",)}
    goals: list[Goal] = [
        ("bare body, 65,536 environments [env-steps/s]", rates.get(("bare", 65_536)), 15e6, True),
        ("bare body, 64 environments [env-steps/s]", rates.get(("bare", 64)), 1e6, True),
        ("bare body, one environment [env-steps/s]", rates.get(("bare", 1)), 20e3, True),
        ("full step over its floor, 65,536 environments", full.get(65_536), 0.5, True),
        ("import airworthy [s]", waits.get("import airworthy"), 1.0, False),
        ("airworthy --help [s]", waits.get("airworthy --help"), 0.7, False),
        ("first flight, cold [s]", waits.get("first flight, cold kernel cache"), 10.0, False),
        ("first flight, warm [s]", waits.get("first flight, warm kernel cache"), 2.0, False),
    ]
    if gpu["motor_level"] is not None:
        fused = max((r for (k, _), r in rates.items() if k == "bare"), default=0.0) * body.SUB_STEPS
        goals = [
            ("GPU, one RK4 sub-step [env-steps/s]", gpu["motor_level"], 1e9, True),
            ("GPU, fused [sub-steps/s]", fused, 1e10, True),
        ]
    return goals


if __name__ == "__main__":
    raise SystemExit(main())
