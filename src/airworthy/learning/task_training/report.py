"""The page of a task's policy: what it took, how well it does what the task asks for, and beside whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.learning.gradient.report import flat_options, rows_beside
from airworthy.reports.page import DASH, card, fixed, interval, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "task_cells", "write_task_report"]

_BY = {"reward": "the reward of its flights", "cost": "the gradient of its flights, which descends a cost of its own"}
COLUMNS = ("flights", "success [%]", "95 % interval", "kept [%]", "95 % interval", "median error [cm]", "95 % error [cm]")


def write_task_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    steps = [1e-6 * row["env_steps"] for row in metrics]

    def curve(title: str, name: str, symbol: str, rows: Sequence[Any]) -> tuple[str, str]:
        known = [(x, float(y)) for x, y in zip(steps, rows, strict=True) if y is not None]
        # Rewards may be negative; a deviation and a cost fall by shares.
        return title, lines(name, "env-steps [million]", [Line(name, symbol, known)], name in ("deviation", "cost"))

    # Who learns by gradient descends a cost of its own, not the task's reward.
    what = "reward" if not metrics or "reward" in metrics[0] else "cost"
    curves = [
        curve(f"{what.capitalize()} per step", what, "flown", [row.get(what) for row in metrics]),
        curve("Return of flights that ended", "return", "flown", [row.get("episode_return") for row in metrics]),
    ]
    if metrics and "std" in metrics[0]:
        curves.append(curve("Deviation of actions", "deviation", "reference", [row["std"] for row in metrics]))
    learnt, judged = metrics[-1].get("terms", {}) if metrics else {}, found.get("terms", {})
    page = page_of(
        "airworthy.learning.task_training",
        found=found,
        cards=_cards(found),
        curves=curves,
        columns=COLUMNS,
        rows=[("learnt policy", task_cells(found), ""), *_without_noise(found), *rows_beside(found, task_cells)],
        verdicts=[item["verdict"] for item in found["baselines"] if "verdict" in item],
        by_what=_BY[what],
        terms=[
            (name, *(f"{side[name]:.4g}" if name in side else DASH for side in (learnt, judged)))
            for name in dict.fromkeys((*learnt, *judged))
        ],
        split=[(name.removesuffix("_s").replace("_", " "), fixed(s, 2)) for name, s in found["seconds"].items()],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def _cards(found: Mapping[str, Any]) -> list[dict[str, str]]:
    low, high = found["success_interval_percent"]
    error = found.get("median_error_m")
    speed = f"{found['env_steps_per_s'] / 1e6:.2f} M/s"
    cards = [
        card("learning took", fixed(found["training_wall_s"], 1), "s", f"{found['training_cpu_s']:.1f} s of processor time"),
        card(
            "success", fixed(found["success_percent"], 1), "%", f"of {found['flights']:,} flights; {interval(low, high, 1)} %"
        ),
        card("kept", fixed(found["kept_percent"], 1), "%", "never ended by what happened in them"),
        card("flown in training", f"{found['env_steps'] / 1e6:.1f} M", "steps", speed),
    ]
    if error is not None:
        cards.insert(2, card("median error", fixed(100.0 * error, 2), "cm", "mean distance over the end of a flight"))
    return cards


def task_cells(figures: Mapping[str, Any]) -> list[str]:
    """Write figures of flights as the cells of `COLUMNS`."""

    def scaled(name: str) -> str:
        value = figures.get(name)
        return DASH if value is None else fixed(100.0 * value, 2)

    success, kept = (interval(*_pair(figures[f"{name}_interval_percent"]), 2) for name in ("success", "kept"))
    rates = [fixed(figures[f"{name}_percent"], 2) for name in ("success", "kept")]
    errors = (scaled("median_error_m"), scaled("p95_error_m"))
    return [f"{figures['flights']:,}", rates[0], success, rates[1], kept, *errors]


def _without_noise(found: Mapping[str, Any]) -> list[tuple[str, list[str], str]]:
    quiet = found.get("without_noise")
    return [] if quiet is None else [("learnt policy, without noise of observations", task_cells(quiet), "")]


def _pair(values: Sequence[float]) -> tuple[float, float]:
    low, high = values
    return low, high
