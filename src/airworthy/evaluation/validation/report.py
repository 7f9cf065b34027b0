"""The validation as one page that opens offline."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from airworthy.core.files import read_bytes, write_text
from airworthy.evaluation.validation.protocol import OURS, Experiment
from airworthy.evaluation.validation.table import HEADINGS, counts, rows, verdict
from airworthy.evaluation.validation.windows import HORIZONS

CAPTIONS = {
    "errors": "RMS prediction error over the horizon. Dotted: as published; solid: refitted or fitted; dashed: ours with trim.",
    "flight": "A flight that the model was not fitted to, and predictions that start every 0.2 s.",
    "motor_lag": "Rotor speed from PWM: map and lag.",
    "thrust_map": "Thrust per rotor: load cell, fits to flights, published maps. Dotted line: hover.",
    "battery": "Battery: sag over current, voltage in flight.",
    "imu_allan": "Allan deviation of the inertial sensor, three axes each.",
}
_NOTE = "Cells are RMS/median over windows that the model was not fitted to. Made by <code>airworthy validate</code>."
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1250px; padding: 0 1rem; color: #222; background:
#fff } table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; margin: 1rem 0 } th, td {
padding: 2px 7px; text-align: right; white-space: nowrap } th { border-bottom: 1px solid #999 } td:nth-child(-n+2),
th:nth-child(-n+2) { text-align: left } tr.ours { font-weight: 600; background: #fbeaea } figure { margin: 2rem 0 } img {
max-width: 100% } .wide { overflow-x: auto } figcaption, .note { color: #555 }
"""


def write_page(
    path: Path, measured: Sequence[Experiment], pwm: Experiment, pictures: Sequence[Path], summary: dict[str, Any]
) -> Path:
    """Write the page: tables, verdicts, pictures inline."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Airworthy: validation</title>",
        f"<style>{_STYLE}</style><h1>Prediction error on real flights</h1>",
        f"<p class='note'>airworthy {escape(summary['version'])}, {escape(str(summary['hardware']['processor']))}. {_NOTE}</p>",
    ]
    for experiment in (*measured, pwm):
        windows = "/".join(map(str, counts(experiment)))
        parts.append(f"<h2>{escape(experiment.title)}</h2><p>{escape(verdict(experiment))} Windows per horizon: {windows}.</p>")
        parts.append(_table(experiment))
    for picture in pictures:
        data = base64.b64encode(read_bytes(picture)).decode()
        caption = escape(CAPTIONS.get(picture.stem, picture.stem))
        parts.append(
            f"<figure><img alt='{caption}' src='data:image/png;base64,{data}'><figcaption>{caption}</figcaption></figure>"
        )
    return write_text(path, "\n".join(parts) + "</html>\n")


def _table(experiment: Experiment) -> str:
    head = "".join(f"<th>{escape(q)}<br>{h:g} s</th>" for q in HEADINGS for h in HORIZONS)
    lines = []
    for name, variant, values in rows(experiment):
        mark = " class='ours'" if name == OURS else ""
        lines.append(
            f"<tr{mark}><td>{escape(name)}</td><td>{escape(variant)}</td>{''.join(f'<td>{v}</td>' for v in values)}</tr>"
        )
    return f"<div class='wide'><table><tr><th>model</th><th>parameters</th>{head}</tr>{''.join(lines)}</table></div>"
