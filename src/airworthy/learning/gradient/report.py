"""The page of a policy that hovers: what it took, how well it holds, beside whom, and what it bears."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.reports.page import DASH, card, fixed, interval, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "PUBLISHED", "figure_cells", "flat_options", "rows_beside", "write_hover_report"]

COLUMNS = (
    "flights",
    "kept [%]",
    "95 % interval",
    "median error [cm]",
    "95 % error [cm]",
    "settled [s]",
    "overshoot [cm]",
    "energy of hover",
    "jitter [%]",
    "worst tilt [deg]",
)

PUBLISHED = (
    ("Learning to Fly in Seconds (arXiv 2311.13081)", "18 s", "a laptop's CPU", "TD3, 300,000 steps, a Crazyflie"),
    ("RLtools, its example of today", "4 to 6 s", "a laptop's or desktop's CPU", "SAC, 200,000 steps, the same task"),
)
"""Who, time of training, on what, how. Not the same task: theirs starts at up to 90 degrees, with noise, a disturbance and 32
past actions; ours commands rotor speeds as well, from up to 40 degrees, with gradients of the model."""

MOTOR_COMMAND_PUBLISHED = (
    (
        "Aerial Gym (arXiv 2503.01471), motor commands",
        "not stated",
        "not stated",
        "PPO, 160,000,000 steps; 0.09 m on the real vehicle",
    ),
)
APART = {
    "hover": "The task is not the same: theirs begins at tilts of up to 90 degrees, with noise, a disturbance and a history of"
    " actions, and learns without a model's gradient. The times stand here as an order of magnitude, not as a race.",
    "motor_command": "The same reward and number of steps. Starts are metres around the target, not ratios of a box; the error"
    " here is in simulation, theirs was measured in flight.",
}
"""By kind: how what was published differs."""
LEARNT = {
    "gradient": ("gradient", "by the gradient of its flights"),
    "native_ppo": ("reward (PPO)", "by the reward of its flights"),
    "ppo": ("reward (PPO, in torch)", "by the reward of its flights"),
    "sac": ("reward (SAC)", "by the reward of its flights, all of which it keeps"),
    "td3": ("reward (TD3)", "by the reward of its flights, all of which it keeps"),
}
"""By trainer: its name on the page, and how it learns."""


def write_hover_report(
    path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], film: Sequence[tuple[str, str, str]] = ()
) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
        film: Title, what became of the flights, and picture of each stage; without any there is no film.
    """
    # A trainer by reward writes that down, too; its cost is only the reward's opposite.
    name = "reward" if metrics and "reward" in metrics[0] else "cost"
    wall = [(row["wall_s"], row[name]) for row in metrics]
    gone = [(b["wall_s"], float(b["lost"] - a["lost"])) for a, b in pairwise(metrics)]
    page = page_of(
        "airworthy.learning.gradient",
        found=found,
        cards=_cards(found),
        curves=[
            (f"{name.capitalize()} per step", lines(name, "wall time [s]", [Line(name, "flown", wall)], name == "cost")),
            ("Flights lost since the point before", lines("lost", "wall time [s]", [Line("lost", "bad", gone)], False)),
        ],
        film=film,
        columns=COLUMNS,
        rows=_rows(found),
        verdicts=[item["verdict"] for item in found["baselines"] if "verdict" in item],
        grid=_grid(found),
        learnt=LEARNT[found["trainer"]],
        published=MOTOR_COMMAND_PUBLISHED if found["kind"] == "motor_command" else PUBLISHED,
        apart=APART[found["kind"]],
        split=[(name.removesuffix("_s").replace("_", " "), fixed(s, 2)) for name, s in found["seconds"].items()],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def _cards(found: Mapping[str, Any]) -> list[dict[str, str]]:
    low, high = found["kept_interval_percent"]
    error = found["median_error_m"]
    return [
        card("learning took", fixed(found["training_wall_s"], 2), "s", f"{found['training_cpu_s']:.2f} s of processor time"),
        card("kept", fixed(found["kept_percent"], 2), "%", f"of {found['flights']:,} flights; {interval(low, high, 2)} %"),
        card("median error", DASH if error is None else fixed(100.0 * error, 2), "cm", "mean distance over the last 2 s"),
        card("flown in training", f"{found['env_steps'] / 1e6:.2f} M", "steps", f"{found['env_steps_per_s'] / 1e6:.1f} M/s"),
    ]


def figure_cells(figures: Mapping[str, Any]) -> list[str]:
    """Write figures of flights as the cells of `COLUMNS`."""

    def scaled(name: str, by: float, digits: int) -> str:
        value = figures[name]
        return DASH if value is None else fixed(by * value, digits)

    low, high = figures["kept_interval_percent"]
    return [
        f"{figures['flights']:,}",
        fixed(figures["kept_percent"], 2),
        interval(low, high, 2),
        scaled("median_error_m", 100.0, 2),
        scaled("p95_error_m", 100.0, 2),
        scaled("median_settling_s", 1.0, 2),
        scaled("median_overshoot_m", 100.0, 2),
        scaled("energy_of_hover", 1.0, 3),
        scaled("action_jitter", 100.0, 2),
        scaled("worst_tilt_deg", 1.0, 0),
    ]


def _rows(found: Mapping[str, Any]) -> list[tuple[str, list[str], str]]:
    return [("learnt policy", figure_cells(found), ""), *rows_beside(found, figure_cells)]


def rows_beside(found: Mapping[str, Any], cells: Callable[[Mapping[str, Any]], list[str]]) -> list[tuple[str, list[str], str]]:
    """Return name, cells and reason of each known controller; one on fewer flights stands below the policy on just these.

    Args:
        found: What `summary.json` holds.
        cells: Writes figures of flights as cells.
    """
    rows: list[tuple[str, list[str], str]] = []
    for item in found["baselines"]:
        if "reason" in item:
            rows.append((item["name"], [], item["reason"]))
            continue
        first = f", first {item['flights']:,} starts" if item["flights"] != found["flights"] else ""
        if "learnt" in item:
            rows.append((f"learnt policy{first}", cells(item["learnt"]), ""))
        rows.append((f"{item['name']}{first}", cells(item), ""))
    return rows


def _grid(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for row in found["robustness"]:
        cells = []
        for figures in (row["learnt"], row["known"]):
            if figures is None:
                cells += ["", ""]
                continue
            error = figures["median_error_m"]
            cells += [fixed(figures["kept_percent"], 1), DASH if error is None else fixed(100.0 * error, 2)]
        rows.append((row["kind"], row["value"], fixed(row["learnt"]["thrust_to_weight"], 2), *cells))
    return rows


def flat_options(options: Mapping[str, Any], head: str = "") -> list[tuple[str, Any]]:
    """Return options as names and values, those of tables with dots."""
    pairs: list[tuple[str, Any]] = []
    for name, value in options.items():
        pairs += flat_options(value, f"{head}{name}.") if isinstance(value, Mapping) else [(f"{head}{name}", value)]
    return pairs
