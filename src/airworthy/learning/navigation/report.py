"""Pages of what is learnt about navigation by sight: curves, figures, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import card, fixed, interval, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["write_encoder_report", "write_navigation_report"]

Rows = Sequence[Mapping[str, Any]]
_PLACES = {"launch": "the launch it learnt in", "simulator": "the simulator, 1,000 Hz"}


def _curves(metrics: Rows, across: str, scale: float, below: str, named: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    found = []
    for title, name in named:
        known = [(scale * row[across], float(row[name])) for row in metrics if row.get(name) is not None]
        found.append((title, lines(title.lower(), below, [Line(title.lower(), "flown", known)], name == "squared_error")))
    return found


def write_navigation_report(path: Path, found: Mapping[str, Any], metrics: Rows) -> Path:
    """Write the page of a policy.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    named = [("Level", "level"), ("Success of flights that ended", "success"), ("Reward per step", "reward")]
    curves = _curves(metrics, "env_steps", 1e-6, "decisions [million]", named)
    curves += _curves(metrics, "wall_s", 1.0 / 60.0, "wall time [min]", [("Level by the clock", "level")])
    rows = []
    for place, name in _PLACES.items():
        for row in found[place]:
            low, high = row["success_interval_percent"]
            shares = [fixed(100.0 * row[kind] / row["flights"], 1) for kind in ("success", "crashed", "late")]
            rows.append([name, f"{row['level']}", f"{row['flights']:,}", shares[0], interval(low, high, 1), *shares[1:]])
    steps = max(1, found["env_steps"])
    spent = [(f"{name}, per decision", f"{1e6 * s / steps:.1f} µs by the clock") for name, s in found["seconds"].items()]
    page = page_of(
        "airworthy.reports",
        "training.html.j2",
        brand="Airworthy navigation by sight",
        film=None,
        title=f"{found['kind']}, seed {found['seed']}",
        verdict="A policy that flies through rooms of obstacles to a target, from an image and its own state, learnt from"
        " nothing by the reward of its flights. It is judged in rooms that no training has, with deterministic actions.",
        found=found,
        cards=[
            card("learning took", fixed(found["training_wall_s"] / 60.0, 1), "min", _cpu(found)),
            card("decisions", fixed(1e-6 * found["env_steps"], 2), "million", "of all flights together"),
            card("level reached", f"{found['level']}", "", "things placed in a room, walls included"),
        ],
        curves=curves,
        table_title="In unseen rooms",
        lede="Success: within a metre of the target when time is over, nothing touched on the way. Late: elsewhere by then.",
        columns=("where", "level", "flights", "success [%]", "95 % interval", "touched [%]", "late [%]"),
        rows=rows,
        split=spent,
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def write_encoder_report(path: Path, found: Mapping[str, Any], metrics: Rows) -> Path:
    """Write the page of an encoder.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    unseen = found["unseen"]
    names: dict[str, Callable[[str], str]] = {
        "made again from the latent": lambda kind: fixed(unseen[kind], 3),
        "the depth image itself": lambda kind: fixed(unseen[f"depth_image_{kind}"], 3),
        "the mean collision image": lambda kind: fixed(unseen[f"mean_image_{kind}"], 3),
    }
    page = page_of(
        "airworthy.reports",
        "training.html.j2",
        brand="Airworthy navigation by sight",
        film=None,
        title=f"Deep Collision Encoder, seed {found['options']['seed']}",
        verdict="From a depth image to a latent, which tells how far a body of the vehicle's size could go along each ray."
        + _loses(unseen),
        found=found,
        cards=[
            card("learning took", fixed(found["training_wall_s"] / 60.0, 1), "min", _cpu(found)),
            card("images", fixed(1e-3 * found["images"], 0), "thousand", "each seen once"),
            card("mean error", fixed(100.0 * unseen["mean_error_m"], 1), "cm", "on images of unseen rooms"),
        ],
        curves=_curves(metrics, "iteration", 1e-3, "gradient steps [thousand]", [("Squared error", "squared_error")]),
        table_title="On images of unseen rooms",
        lede=f"{unseen['images']:,} images, on the pixels that the camera sees; distances to 10 m.",
        columns=("collision image", "root mean square [m]", "mean error [m]"),
        rows=[[name, told("rmse_m"), told("mean_error_m")] for name, told in names.items()],
        split=[
            ("of what is within 2 m", f"mean error {fixed(unseen['within_2_m_mean_error_m'], 3)} m"),
            ("of it, said to be farther by 1.8 m or more", f"{fixed(unseen['said_free_percent'], 1)} %"),
        ],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def _loses(unseen: Mapping[str, Any]) -> str:
    """Say where the latent tells less than what it was made from."""
    mine, plain = float(unseen["rmse_m"]), float(unseen["depth_image_rmse_m"])
    if mine < plain:
        return ""
    return (
        f" This one tells less than the depth image itself, whose root mean square error is {fixed(plain, 2)} m beside"
        f" {fixed(mine, 2)} m: it needs more images."
    )


def _cpu(found: Mapping[str, Any]) -> str:
    return f"{found['training_cpu_s']:.0f} s of processor time"
