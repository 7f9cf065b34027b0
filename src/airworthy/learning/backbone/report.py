"""The page of a pre-training: its curves, and what a linear map tells of its features beside those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.files import write_text
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import card, fixed, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "probe_means", "write_backbone_report"]

COLUMNS = {
    "position_m": "position [m]",
    "heading_deg": "heading [deg]",
    "tilt_deg": "roll, pitch [deg]",
    "depth_percent": "depth [%]",
}
"""Of a probe: medians of errors."""
_NAMES = {"this": "this backbone", "hall": "the shipped policy's", "random": "random weights"}
_CURVES = {"Pose of the camera": "pose", "Points that are seen": "point", "Depth": "depth"}


def probe_means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean over places of each of `COLUMNS`."""
    return {name: float(np.mean([row[name] for row in rows])) for name in COLUMNS}


def write_backbone_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    means = {name: probe_means(rows) for name, rows in found["probe"].items()}
    curves = []
    for title, name in _CURVES.items():
        known = [(1e-3 * row["iteration"], float(row[name])) for row in metrics if row.get(name) is not None]
        curves.append((title, lines(title.lower(), "gradient steps [thousand]", [Line(title.lower(), "flown", known)], False)))
    mine = found["probe"]["this"]
    page = page_of(
        "airworthy.reports",
        "training.html.j2",
        brand="Airworthy backbone",
        film=None,
        title=f"Backbone, seed {found['options']['seed']}",
        verdict="Convolutions from an image to 512 channels per cell, pre-trained on images of halls that are drawn, without"
        " any foreign weights. Maps in the table are linear, fitted to some images of a place and judged on others.",
        found=found,
        cards=[
            card("learning took", fixed(found["training_wall_s"] / 60.0, 1), "min", f"{found['machine']['threads']} threads"),
            card("images drawn", fixed(1e-3 * found["seen"]["drawn"], 0), "thousand", f"of {found['seen']['places']:,} places"),
            card("position", fixed(means["this"]["position_m"], 2), "m", "median error, mean over places"),
        ],
        curves=curves,
        table_title="In places in which nothing was learnt",
        lede=f"Median errors, mean over {len(mine)} places with {mine[0]['images']:,} images or fewer each.",
        columns=("features of", *COLUMNS.values()),
        rows=[[_NAMES.get(name, name), *(fixed(row[key], 2) for key in COLUMNS)] for name, row in means.items()],
        split=[(row["place"], f"position {fixed(row['position_m'], 2)} m, of {fixed(row['mean_pose_position_m'], 2)} m")
               for row in mine],
        options=flat_options(found["options"]),
    )  # fmt: skip
    return write_text(path, page)
