"""The page that shows what a training came to: curves, commands beside the expert's, the history network beside the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_text
from airworthy.evaluation.pages import page_of
from airworthy.learning.svnet.data import TrainingData
from airworthy.learning.svnet.drawing import Line, lines, scatter
from airworthy.learning.svnet.judging import ratio_of
from airworthy.learning.training_folder import REPORT_FILE
from airworthy.pilots.svnet.features import HISTORY_TICKS

__all__ = ["training_curves", "write_training_report"]

OUTPUTS = (("thrust", "share of full, z down"), ("roll rate", "rad/s"), ("pitch rate", "rad/s"), ("yaw rate", "rad/s"))


def write_training_report(
    folder: Path,
    data: TrainingData,
    figures: Mapping[str, Any],
    journal: Sequence[Mapping[str, Any]],
    commands: NDArray[np.float32],
    estimate: NDArray[np.float32] | None,
) -> Path:
    """Write `report.html`.

    Args:
        folder: Of the policy.
        data: The pairs.
        figures: What `report.json` holds.
        journal: A row per epoch.
        commands: (held-out, 4) predicted.
        estimate: (held-out, 2) of mass and force; None: there is no history network.
    """
    page = page_of(
        "airworthy.learning.svnet",
        figures=figures,
        cards=_cards(figures),
        curves=[(title, svg) for title, svg in training_curves(journal, figures) if svg],
        outputs=_outputs(data, commands),
        ratio=_ratio(data, estimate),
        history=_history_rows(figures),
    )
    return write_text(folder / REPORT_FILE, page)


def _cards(figures: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    share = 1.0 - figures["command_mse"] / max(figures["command_mse_of_mean"], 1e-30)
    thrust, *rates = figures["command_rms"]
    cards = [
        ("pairs learnt from", f"{figures['pairs_trained_on']:,}", f"{figures['pairs_held_out']:,} held out"),
        ("variance explained", f"{100.0 * share:.1f} %", "of the expert's commands, held out"),
        ("thrust error", _told(thrust, 4), "RMS, share of full thrust"),
        ("rate error", _told(_rms(rates), 3), "RMS [rad/s], mean of three axes"),
    ]
    full = figures.get("history_full")
    if full:
        mean = _told(100.0 * (full["ratio_error_of_mean"] or 0.0), 1)
        cards.append(("k/m error", f"{_told(100.0 * (full['ratio_error'] or 0.0), 2)} %", f"always saying the mean: {mean} %"))
    speed = figures["pairs_per_second"].get("command")
    what = f"images/s at {figures['view']} px" if figures["view"] else "pairs/s"
    cards.append((what, f"{speed:,.0f}", "forward and backward"))
    return cards


def training_curves(journal: Sequence[Mapping[str, Any]], figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Titles and figures (SVG) of a journal: loss of both steps, error of k/m; a figure is empty where there is nothing."""
    found = []
    for stage, title in (("command", "Command step: loss"), ("history", "History step: loss")):
        rows = [row for row in journal if row["stage"] == stage]
        pairs = [
            Line(name, role, [(row["epoch"], row[key]) for row in rows if row.get(key) is not None])
            for name, role, key in (("trained on", "second", "train_loss"), ("held out", "flown", "held_out_loss"))
        ]
        best = figures["best_epoch"].get(stage)
        found.append((f"{title}{f', best in epoch {best}' if best else ''}", lines(title, "epoch", pairs)))
    rows = [row for row in journal if row["stage"] == "history" and row.get("ratio_error") is not None]
    mean = [(row["epoch"], row["ratio_error_of_mean"]) for row in rows if row.get("ratio_error_of_mean") is not None]
    ratio = [Line("history network", "flown", [(row["epoch"], row["ratio_error"]) for row in rows])]
    found.append(("Relative error of k/m", lines("k/m", "epoch", [*ratio, Line("mean of the data", "warn", mean, True)])))
    return found


def _outputs(data: TrainingData, commands: NDArray[np.float32]) -> list[dict[str, str]]:
    truth = data.command[data.held_out].astype(np.float64)
    found = []
    for k, (name, unit) in enumerate(OUTPUTS):
        off = commands[:, k] - truth[:, k]
        note = f"RMS error {_told(_rms(off), 4)}, spread of the expert {_told(float(np.std(truth[:, k])), 4)}"
        found.append({"name": name, "unit": unit, "note": note, "svg": scatter(name, truth[:, k], commands[:, k])})
    return found


def _ratio(data: TrainingData, estimate: NDArray[np.float32] | None) -> str:
    if estimate is None:
        return ""
    known = data.ticks[data.held_out] >= HISTORY_TICKS
    truth = ratio_of(data.parameters[data.held_out])[known]
    return scatter("force of a rotor over mass [N/kg]", truth, ratio_of(estimate)[known], "second")


def _history_rows(figures: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    full, every = figures.get("history_full"), figures.get("history")
    if not full or not every:
        return []
    rows = [
        ("k/m, full history, relative", _percent(full["ratio_error"]), _percent(full["ratio_error_of_mean"])),
        ("k/m, all ticks, relative", _percent(every["ratio_error"]), _percent(every["ratio_error_of_mean"])),
        ("k/m, full history, bias", _percent(full["ratio_bias"]), ""),
    ]
    for name, key in (("mass [kg]", "mass_kg"), ("force of a rotor [N]", "force_N")):
        rows.append((name, _told(full[f"{key}_rms"], 4), _told(full[f"{key}_rms_of_mean"], 4)))
    return rows


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(values, np.float64))))) if len(values) else float("nan")


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100.0 * value:.2f} %"


def _told(value: float | None, digits: int) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.{digits}f}"
