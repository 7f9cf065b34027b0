"""The page of a validation: whether the vehicle explains the logs, by how much, where not, and the command to ask again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airworthy.benchmarks.validation.open_loop.figures import (
    CHANNEL_UNITS,
    along_figure,
    errors_figure,
    responses_figure,
    typical,
    windows_figure,
)
from airworthy.benchmarks.validation.open_loop.judgement import BASELINES, MODELS, ErrorRow, judged_row, trim_sentence
from airworthy.benchmarks.validation.open_loop.validate import LogValidation
from airworthy.core.files import make_folder, staged_folder, write_json, write_text
from airworthy.evaluation.statistics import Estimate
from airworthy.reports.page import DASH, card, fixed, interval, markup, page_of

__all__ = ["PAGE", "SUMMARY", "validation_parts", "write_log_validation"]

PAGE, SUMMARY = "report.html", "validation.json"
TONES = {"flyable": "good", "do not trust": "poor"}
SHOWN, WORST = 4, 4


def write_log_validation(folder: str | Path, found: LogValidation, command: str) -> Path:
    """Write report.html and validation.json; other files of the folder stay.

    Args:
        folder: Made if missing.
        found: What was judged.
        command: That makes it again.

    Returns:
        The page.
    """
    made = make_folder(folder)
    with staged_folder(made, lambda name: name in (PAGE, SUMMARY), SUMMARY) as staged:
        page = page_of(
            "airworthy.benchmarks.validation.open_loop",
            title=f"Does {found.vehicle.name} explain {', '.join(flight.name for flight in found.flights)}?",
            word=found.word,
            said=found.said,
            cards=validation_cards(found),
            command=command,
            flights=_flights(found),
            **validation_parts(found),
        )
        write_text(staged.path / PAGE, page)
        write_json(staged.path / SUMMARY, found.record() | {"command": command})
    return made / PAGE


def validation_cards(found: LogValidation) -> list[dict[str, str]]:
    """Return the large numbers of a validation."""
    row = judged_row(found.rows, "rate")
    lift = next((m.ratio for m in found.mismatches if m.quantity == "lift"), None)
    cards = [card("verdict", found.word, tone=TONES.get(found.word, ""))]
    if row is not None:
        rms, skill = row.rms[MODELS[0]], row.skill[MODELS[1]]
        ahead = f"{1e3 * row.horizon:.0f} ms ahead"
        cards += [
            card(f"rate, {ahead}", fixed(rms.value, 2), "rad/s", f"90 %: {interval(rms.low, rms.high, 2) or 'too few blocks'}"),
            card(f"{row.best}, {ahead}", fixed(row.rms[row.best].value, 2), "rad/s", "needs no vehicle"),
            card(
                "skill, trimmed", fixed(skill.value, 2), "", f"90 %: {interval(skill.low, skill.high, 2) or 'too few blocks'}"
            ),
        ]
    if lift is not None:
        cards.append(card("lift, log over vehicle", fixed(lift.value, 3), "", interval(lift.low, lift.high, 3)))
    cards.append(card("windows", f"{len(found.windows)}", "", f"{int(found.windows.excited.sum())} with turns"))
    return cards


def validation_parts(found: LogValidation) -> dict[str, Any]:
    """Return what a page shows of predictions: figures, tables, sentences; shared with the page of an identified vehicle.

    Args:
        found: What was judged.
    """
    worst = [int(k) for k in found.worst(WORST)]
    return {
        "errors": markup(errors_figure(found)),
        "responses": markup(responses_figure(found)),
        "typical": markup(windows_figure(found, typical(found, SHOWN), "typical")),
        "worst": markup(windows_figure(found, worst, "worst")),
        "along": markup(along_figure(found)),
        "tables": [_table(found, channel) for channel in found.errors],
        "mismatches": [(m.sentence, m.matters) for m in found.mismatches],
        "missing": list(found.missing),
        "notes": list(found.notes),
        "trim_note": trim_sentence(),
        "models": [*MODELS, *BASELINES],
    }


def _table(found: LogValidation, channel: str) -> dict[str, Any]:
    words, unit, factor = CHANNEL_UNITS[channel]
    rows = [_line(row, factor) for row in found.rows if row.channel == channel]
    return {"title": f"{words} [{unit}]", "rows": rows}


def _line(row: ErrorRow, factor: float) -> list[dict[str, str]]:
    digits = 3 if factor == 1.0 else 2
    cells = [_plain(f"{1e3 * row.horizon:.0f} ms"), _plain(row.windows), _plain(str(row.count))]
    for model in (*MODELS, *BASELINES):
        estimate = row.rms.get(model)
        cells.append(_plain(DASH) if estimate is None else _cell(estimate, factor, digits))
    skill = row.skill[MODELS[0]]
    said = row.says()
    tone = {"better": "success_recovered", "worse": "failure"}.get(said, "partial")
    cells += [_cell(skill, 1.0, 2), _plain(said) | {"tag": tone}]
    return cells


def _cell(estimate: Estimate, factor: float, digits: int) -> dict[str, str]:
    below = interval(factor * estimate.low, factor * estimate.high, digits)
    return _plain(fixed(factor * estimate.value, digits)) | {"below": below}


def _plain(text: str) -> dict[str, str]:
    return {"text": text, "below": "", "tag": ""}


def _flights(found: LogValidation) -> list[dict[str, Any]]:
    return [
        {
            "name": flight.name,
            "usable": ", ".join(f"{s.start:.1f} {DASH} {s.stop:.1f} s" for s in flight.segments.usable[:12])
            + (f", and {len(flight.segments.usable) - 12} more" if len(flight.segments.usable) > 12 else ""),
            "fed": "commands" if flight.speeds is None else "measured rotor speeds",
            "poses": "yes" if flight.poses is not None else "no",
            "windows": int((found.windows.flight == k).sum()),
        }
        for k, flight in enumerate(found.flights)
    ]
