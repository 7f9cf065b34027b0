"""Learn tasks by native PPO with their usual settings, several seeds each: a table of every seed, and curves with bands.

    python benchmarks/learn_tasks.py --out runs/learn_tasks                         the position tasks at their usual budget
    python benchmarks/learn_tasks.py --tasks recovery=12e6 track=12e6 px4_motor_command --seeds 0 1 2
    python benchmarks/learn_tasks.py --tasks motor_command --seeds 0 1 2 3 4        task 9.3, 160 million decisions each

Each seed is the training of `airworthy train TASK --seed K`, in a folder of its own below --out: what is finished there is read
and not learnt again, what was stopped goes on. Judged in the simulator at 1,000 Hz on 1,024 starts of seed 7919. The picture
has a panel per task: the mean return of flights that ended, median of the seeds, and a band from the least to the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

# Before NumPy: an evaluation's products are small, and threads of a linear algebra library would wait by spinning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.arrays import Array
from airworthy.learning.gradient.evaluation import HoverProtocol
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.native_ppo.config import MOTOR_COMMAND_REACH_M, MotorCommandConfig
from airworthy.learning.task_training.evaluation import TaskProtocol
from airworthy.learning.task_training.options import TaskTrainingOptions
from airworthy.learning.task_training.run import train_task
from airworthy.learning.timed_training import METRICS_FILE
from airworthy.reports.svg import PALETTE, STYLE
from airworthy.vehicles import named_vehicle
from benchmarks import hardware
from benchmarks.tables import hardware_table

POSITION = ("position_setpoint", "position_setpoint_velocity", "position_setpoint_acceleration")
"""Aerial Gym's; the published budget is 52.4 million decisions, NAME=52.4e6."""
MOTOR_COMMAND = "motor_command"
POINTS = 200
"""At which curves of seeds are compared."""


def learn(task: str, seed: int, out: Path, steps: int | None, quiet: bool) -> dict[str, Any]:
    """Learn one seed, or read what is there; returns its figures and its training log."""
    folder = out / task / f"seed_{seed}"
    figures: Any
    if task == MOTOR_COMMAND:
        config = MotorCommandConfig(seed=seed, **({} if steps is None else {"steps": steps}))
        protocol = HoverProtocol(mpc_flights=0, film_flights=0, grid_flights=16, reach_m=MOTOR_COMMAND_REACH_M)
        figures = train_hover(named_vehicle("tinyprop"), folder, config.options(seed), protocol, quiet=quiet).figures
    else:
        options = TaskTrainingOptions.usual(task, seed, steps=steps)
        figures = train_task(options, folder, protocol=TaskProtocol(mpc_flights=0), quiet=quiet).figures
    rows = [json.loads(line) for line in (folder / METRICS_FILE).read_text(encoding="utf-8").splitlines()]
    return {"task": task, "seed": seed, "figures": dict(figures), "rows": rows}


def table(found: list[dict[str, Any]]) -> str:
    """Every seed as a row of Markdown."""

    def cell(figures: dict[str, Any], name: str, by: float, digits: int) -> str:
        value = figures.get(name)
        return "-" if value is None else f"{by * value:,.{digits}f}"

    names = (
        "decisions",
        "wall [s]",
        "processor [s]",
        "success [%]",
        "kept [%]",
        "median error [cm]",
        "95 % [cm]",
        "without noise [cm]",
        "return",
    )
    lines = [f"| task | seed | {' | '.join(names)} |", "|" + " --- |" * 11]
    for one in found:
        f = one["figures"]
        cells = (
            cell(f, "env_steps", 1e-6, 1) + " M",
            cell(f, "training_wall_s", 1.0, 0),
            cell(f, "training_cpu_s", 1.0, 0),
            cell(f, "success_percent", 1.0, 1),
            cell(f, "kept_percent", 1.0, 1),
            cell(f, "median_error_m", 100.0, 2),
            cell(f, "p95_error_m", 100.0, 2),
            cell(f.get("without_noise", {}), "median_error_m", 100.0, 2),
            cell(f, "mean_return", 1.0, 0),
        )
        lines.append(f"| {one['task']} | {one['seed']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(found: list[dict[str, Any]]) -> str:
    """How the first seed of each task stands to known controllers."""
    said = {}
    for one in found:
        for item in one["figures"]["baselines"]:
            said.setdefault((one["task"], item["name"]), item.get("verdict", item.get("reason", "")))
    return "\n".join(f"{task}: {text}" for (task, _), text in said.items())


def curve(rows: list[dict[str, Any]], at: Array) -> Array:
    """Return of flights that ended, at numbers of decisions."""
    known = [(row["env_steps"], row["episode_return"]) for row in rows if row.get("episode_return") is not None]
    steps, values = np.array(known, float).T
    return np.interp(at, steps, values)


def picture(found: list[dict[str, Any]], path: Path) -> None:
    """Write the curves, a panel per task."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    tasks = list(dict.fromkeys(one["task"] for one in found))
    across = min(3, len(tasks))
    down = -(-len(tasks) // across)
    with mpl.rc_context({**STYLE, "figure.facecolor": "white"}):
        figure, axes = plt.subplots(down, across, figsize=(3.1 * across, 2.2 * down), squeeze=False, layout="constrained")
        for axis, task in zip(axes.flat, tasks, strict=False):
            seeds = [one["rows"] for one in found if one["task"] == task]
            at = np.linspace(0.0, min(rows[-1]["env_steps"] for rows in seeds), POINTS)
            values = np.array([curve(rows, at) for rows in seeds])
            axis.fill_between(1e-6 * at, values.min(axis=0), values.max(axis=0), color=PALETTE["flown"], alpha=0.2, lw=0)
            axis.plot(1e-6 * at, np.median(values, axis=0), color=PALETTE["flown"])
            axis.set_title(f"{task} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})", fontsize=7.5)
            axis.set_xlabel("decisions [million]")
            axis.set_ylabel("return of a flight")
            # The first flights of some tasks lose thousands: the scale is that of what is learnt.
            low = float(np.quantile(values, 0.03))
            axis.set_ylim(low - 0.05 * (values.max() - low), values.max() + 0.05 * (values.max() - low))
        for axis in axes.flat[len(tasks) :]:
            axis.set_axis_off()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def budget(asked: str) -> tuple[str, int | None, list[int] | None]:
    """Name of a task, decisions of a training, and seeds, from NAME, NAME=STEPS or NAME=STEPS:SEED,SEED; None: as usual."""
    name, _, rest = asked.partition("=")
    steps, _, seeds = rest.partition(":")
    return name, int(float(steps)) if steps else None, [int(seed) for seed in seeds.split(",")] if seeds else None


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tasks", nargs="+", default=list(POSITION), help="NAME, NAME=STEPS or NAME=STEPS:SEED,SEED: those of this task alone"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=float, default=0.0, help="decisions of a training; 0: the usual ones of the task")
    parser.add_argument("--out", type=Path, default=Path("runs/learn_tasks"))
    parser.add_argument("--picture", type=Path, help="default: curves.svg below --out")
    parser.add_argument("--quiet", action="store_true")
    asked = parser.parse_args()
    usual = int(asked.steps) or None
    found = [
        learn(task, seed, asked.out, steps or usual, asked.quiet)
        for task, steps, seeds in map(budget, asked.tasks)
        for seed in seeds or asked.seeds
    ]
    print(hardware_table(hardware.describe(hardware.use_cores(2))))
    print(table(found))
    print(beside(found))
    path = asked.picture or asked.out / "curves.svg"
    picture(found, path)
    print(f"Curves: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
