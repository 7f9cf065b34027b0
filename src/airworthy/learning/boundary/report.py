"""The page that shows what a training came to: its losses, errors of speed and time, their unsafe shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_text
from airworthy.evaluation.pages import page_of
from airworthy.learning.boundary.drawing import histogram, journal_chart, loss_chart
from airworthy.learning.boundary.errors import Skew, percent_error
from airworthy.learning.training_folder import REPORT_FILE

__all__ = ["write_training_report"]

_NAMES = {"v": "speed through the gate", "t0": "time to the gate"}
_PARTS = {"test": "test", "watched": "watched for the end", "train": "learnt from"}


def write_training_report(
    folder: Path,
    figures: Mapping[str, Any],
    journal: Sequence[Mapping[str, Any]],
    labels: NDArray[np.float64],
    predicted: NDArray[np.float64],
) -> Path:
    """Write `report.html`.

    Args:
        folder: Of the network.
        figures: What `report.json` holds.
        journal: A row per epoch.
        labels: (n, 2) of the test rows, clipped.
        predicted: (n, 2)
    """
    percent = percent_error(labels, predicted)
    page = page_of(
        "airworthy.learning.boundary",
        figures=figures,
        options=figures["options"],
        verdict=_verdict(figures),
        cards=_cards(figures),
        journal=journal_chart(journal, int(figures["best_epoch"])),
        loss=loss_chart(_skew(figures)),
        histograms=[
            (name, note, histogram(f"Percent errors of the {what}", percent[:, column], unsafe_above=column == 0))
            for column, (name, what) in enumerate(_NAMES.items())
            for note in [_note(figures["errors"]["test"][name], name)]
        ],
        names=_NAMES,
        rows=_rows(figures),
        left_out=_left_out(figures),
    )
    return write_text(folder / REPORT_FILE, page)


def _skew(figures: Mapping[str, Any]) -> Skew:
    return Skew(*(float(figures["options"][name]) for name in ("safe", "unsafe", "alpha", "eps")))


def _verdict(figures: Mapping[str, Any]) -> str:
    skew, test = _skew(figures), figures["errors"]["test"]
    speed, time = (test[name]["unsafe_beyond"].get("5") for name in ("v", "t0"))
    lead = (
        "The loss is symmetric."
        if skew.safe == skew.unsafe
        else f"Unsafe errors weigh {skew.unsafe / skew.safe:.3g} times safe ones."
    )
    return (
        f"{lead} Of the test situations, {_percent(speed)} have a speed more than 5 % too high, and {_percent(time)} a time"
        f" more than 5 % too short."
    )


def _cards(figures: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    test, rows = figures["errors"]["test"], figures["rows"]
    cards = [
        ("rows learnt from", f"{rows['train']:,}", f"{rows['watched']:,} watched, {rows['test']:,} tested"),
        ("epochs", f"{figures['epochs']:,}", f"weights of epoch {figures['best_epoch']:,}"),
        ("test loss", f"{test['loss']:.4f}", f"least there is: {figures['loss_minimum']['value']:.4f}"),
    ]
    for name, label in (("v", "speed too high"), ("t0", "time too short")):
        beyond = test[name]["unsafe_beyond"]
        cards.append((f"{label} by 5 %", _percent(beyond.get("5")), f"by 10 %: {_percent(beyond.get('10'))}"))
    if "keep_limit" in test:
        cards.append(("pairs that keep the limit", _percent(test["keep_limit"]), "on both segments, as predicted"))
    cards.append(("rows/s", f"{figures['rows_per_second']:,.0f}", f"forward and backward, {figures['seconds']:,.0f} s in all"))
    return cards


def _note(table: Mapping[str, Any], name: str) -> str:
    if table["percent_mean"] is None:
        return "no labels above zero"
    middle = table["percent_quantiles"]["0.5"]
    note = f"median {middle:+.2f} %, mean {table['percent_mean']:+.2f} %"
    if table["skewness"] is not None:
        note += f", skewness {table['skewness']:+.2f}"
    if name == "v" and table["zero_labels"]:
        note += f"; {table['zero_labels']:,} labels of 0 left out, told {table['median_at_zero_labels']:.3f} m/s in the median"
    return note


def _rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for part, label in _PARTS.items():
        errors = figures["errors"][part]
        for name, what in _NAMES.items():
            table = errors[name]
            shares = [_percent(table["unsafe_beyond"].get(key)) for key in ("0", "5", "10")]
            middle = table["percent_quantiles"].get("0.5")
            found.append(
                {
                    "part": f"{label} ({errors['rows']:,})" if name == "v" else "",
                    "what": what,
                    "shares": shares,
                    "median": "-" if middle is None else f"{middle:+.2f} %",
                    "rms": f"{table['rms']:.4f} {'m/s' if name == 'v' else 's'}",
                }
            )
    return found


def _left_out(figures: Mapping[str, Any]) -> str:
    rows = figures["rows"]
    told = f"{rows['infeasible']:,} of {rows['situations']:,} situations have no admissible pair and are left out; "
    return told + f"{rows['clipped']:,} times were longer than the output and are clipped to where it ends."


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.2f} %"
