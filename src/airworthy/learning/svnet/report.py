"""The page that shows what a training came to: curves, commands beside the expert's, the history network beside the mean."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.files import write_text
from airworthy.learning.svnet.data import TrainingData
from airworthy.learning.svnet.metrics import ratio_of
from airworthy.learning.training_folder import REPORT_FILE
from airworthy.pilots.svnet.features import HISTORY_TICKS
from airworthy.reports.page import card, fixed, page_of, percent
from airworthy.reports.svg import TEXT, Line, lines, number, span

__all__ = ["Line", "lines", "scatter", "training_curves", "write_training_report"]

# ---- Figures of a training's report as inline SVG; colours are the style sheet's --------------------------------------------

SIDE = 250.0
# Ours: more points hide each other and make the page heavy.
POINTS_MOST = 600


def scatter(title: str, true: ArrayLike, predicted: ArrayLike, role: str = "flown") -> str:
    """Return the predicted over true values, with the diagonal on which they agree; evenly chosen points where there are many.

    Args:
        title: Of the figure.
        true: (n,)
        predicted: Predicted, (n,).
        role: Colour of the points.
    """
    x, y = np.asarray(true, np.float64), np.asarray(predicted, np.float64)
    fine = np.isfinite(x) & np.isfinite(y)
    x, y = x[fine], y[fine]
    if len(x) < 2:
        return ""
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), POINTS_MOST)).astype(int))
    low, high = span(np.concatenate([np.quantile(v, (0.001, 0.999)) for v in (x, y)]))
    room = (50.0, SIDE - 8.0, SIDE - 26.0, 8.0)

    def at(values: Array, horizontal: bool) -> Array:
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        return room[0] + share * (room[1] - room[0]) if horizontal else room[2] - share * (room[2] - room[3])

    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.6"/>' for a, b in zip(at(x[some], True), at(y[some], False), strict=True)
    )
    x0, x1, y0, y1 = room
    box = f'x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}"'
    frame = f'<rect {box} fill="none" stroke="var(--grid)"/>'
    diagonal = f'<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="var(--axis)" stroke-dasharray="4 4"/>'
    labels = "".join(
        f'<text x="{a}" y="{b}" text-anchor="{anchor}" {TEXT}>{text}</text>'
        for a, b, anchor, text in (
            (room[0], SIDE - 9.0, "start", number(low)),
            (room[1], SIDE - 9.0, "end", number(high)),
            ((room[0] + room[1]) / 2, SIDE - 9.0, "middle", "expert" if role == "flown" else "true"),
            (room[0] - 6.0, room[2], "end", number(low)),
            (room[0] - 6.0, room[3] + 10.0, "end", number(high)),
        )
    )
    inside = f'{frame}{diagonal}<g fill="var(--{role})" fill-opacity="0.45">{dots}</g>{labels}'
    return f'<svg viewBox="0 0 {SIDE:g} {SIDE:g}" role="img"><title>{html.escape(title)}</title>{inside}</svg>'


# -----------------------------------------------------------------------------------------------------------------------------

OUTPUTS = (("thrust", "share of full, z down"), ("roll rate", "rad/s"), ("pitch rate", "rad/s"), ("yaw rate", "rad/s"))


def write_training_report(
    folder: Path,
    data: TrainingData,
    figures: Mapping[str, Any],
    training_log: Sequence[Mapping[str, Any]],
    commands: ArrayF32,
    estimate: ArrayF32 | None,
) -> Path:
    """Write `report.html`.

    Args:
        folder: Of the policy.
        data: The pairs.
        figures: What `report.json` holds.
        training_log: A row per epoch.
        commands: (held-out, 4) predicted.
        estimate: (held-out, 2) of mass and force; None: there is no history network.
    """
    page = page_of(
        "airworthy.learning.svnet",
        figures=figures,
        cards=_cards(figures),
        curves=[(title, svg) for title, svg in training_curves(training_log, figures) if svg],
        outputs=_outputs(data, commands),
        ratio=_ratio(data, estimate),
        history=_history_rows(figures),
    )
    return write_text(folder / REPORT_FILE, page)


def _cards(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    share = 1.0 - figures["command_mse"] / max(figures["command_mse_of_mean"], 1e-30)
    thrust, *rates = figures["command_rms"]
    cards = [
        card("pairs learnt from", f"{figures['pairs_trained_on']:,}", below=f"{figures['pairs_held_out']:,} held out"),
        card("variance explained", f"{100.0 * share:.1f} %", below="of the expert's commands, held out"),
        card("thrust error", _digits(thrust, 4), below="RMS, share of full thrust"),
        card("rate error", _digits(_rms(rates), 3), below="RMS [rad/s], mean of three axes"),
    ]
    full = figures.get("history_full")
    if full:
        mean = _digits(100.0 * (full["ratio_error_of_mean"] or 0.0), 1)
        off = _digits(100.0 * (full["ratio_error"] or 0.0), 2)
        cards.append(card("k/m error", f"{off} %", below=f"always saying the mean: {mean} %"))
    speed = figures["pairs_per_second"].get("command")
    what = f"images/s at {figures['view']} px" if figures["view"] else "pairs/s"
    cards.append(card(what, f"{speed:,.0f}", below="forward and backward"))
    return cards


def training_curves(training_log: Sequence[Mapping[str, Any]], figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return titles and figures (SVG) of a training log: loss of both steps, error of k/m; empty where there is nothing."""
    found = []
    for stage, title in (("command", "Command step: loss"), ("history", "History step: loss")):
        rows = [row for row in training_log if row["stage"] == stage]
        pairs = [
            Line(name, role, [(row["epoch"], row[key]) for row in rows if row.get(key) is not None])
            for name, role, key in (("trained on", "second", "train_loss"), ("held out", "flown", "held_out_loss"))
        ]
        best = figures["best_epoch"].get(stage)
        found.append((f"{title}{f', best in epoch {best}' if best else ''}", lines(title, "epoch", pairs)))
    rows = [row for row in training_log if row["stage"] == "history" and row.get("ratio_error") is not None]
    mean = [(row["epoch"], row["ratio_error_of_mean"]) for row in rows if row.get("ratio_error_of_mean") is not None]
    ratio = [Line("history network", "flown", [(row["epoch"], row["ratio_error"]) for row in rows])]
    found.append(("Relative error of k/m", lines("k/m", "epoch", [*ratio, Line("mean of the data", "warn", mean, True)])))
    return found


def _outputs(data: TrainingData, commands: ArrayF32) -> list[dict[str, str]]:
    truth = data.command[data.held_out].astype(np.float64)
    found = []
    for k, (name, unit) in enumerate(OUTPUTS):
        off = commands[:, k] - truth[:, k]
        note = f"RMS error {_digits(_rms(off), 4)}, spread of the expert {_digits(float(np.std(truth[:, k])), 4)}"
        found.append({"name": name, "unit": unit, "note": note, "svg": scatter(name, truth[:, k], commands[:, k])})
    return found


def _ratio(data: TrainingData, estimate: ArrayF32 | None) -> str:
    if estimate is None:
        return ""
    known = data.ticks[data.held_out] >= HISTORY_TICKS
    truth = ratio_of(data.parameters[data.held_out])[known]
    return scatter("force of a rotor over mass [N/kg]", truth, ratio_of(estimate)[known], "second")


def _history_rows(figures: Mapping[str, Any]) -> list[tuple[str, ...]]:
    full, every = figures.get("history_full"), figures.get("history")
    if not full or not every:
        return []
    rows = [
        (f"k/m, {name}, relative", *(percent(of[key], absent="") for key in ("ratio_error", "ratio_error_of_mean")))
        for name, of in (("full history", full), ("all ticks", every))
    ]
    rows.append(("k/m, full history, bias", percent(full["ratio_bias"], absent=""), ""))
    for name, key in (("mass [kg]", "mass_kg"), ("force of a rotor [N]", "force_N")):
        rows.append((name, _digits(full[f"{key}_rms"], 4), _digits(full[f"{key}_rms_of_mean"], 4)))
    return rows


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(values, np.float64))))) if len(values) else float("nan")


def _digits(value: float | None, digits: int) -> str:
    return fixed(value, digits, "-")
