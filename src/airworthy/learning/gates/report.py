"""The report of a search: what the limit left, what simulation chose, and how often that was another candidate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.files import json_text, write_text
from airworthy.evaluation.pages import page_of
from airworthy.learning.datasets.card_svg import Panel, histogram
from airworthy.learning.gates.shards import LabelFolder, read_labels

__all__ = ["REPORT_FILE", "write_report"]

REPORT_FILE = "report.html"
Content = dict[str, Any]


def write_report(folder: str | Path, command: str = "") -> Path:
    """Write `report.html` into the folder of a finished search.

    Raises:
        AssetError: The search is not finished, or a file is damaged.
        AirworthyError: The file system refused.
    """
    from markupsafe import Markup

    held = read_labels(folder)
    page = page_of(
        "airworthy.learning.gates",
        panels=[Markup(histogram(panel)) for panel in _panels(held)],  # noqa: S704
        command=command,
        options=json_text({key: held.about[key] for key in ("grid", "options", "device", "shard")}),
        digest=held.about["digest"],
        **_content(held.about),
    )
    return write_text(Path(folder) / REPORT_FILE, page)


def _content(about: Mapping[str, Any]) -> Content:
    counts, shares = about["counts"], about["shares"]
    mode = "Every admissible candidate was flown." if about["options"]["exhaustive"] else "Pruned without loss."
    return {
        "verdict": (
            f"Of {counts['situations']:,} situations {counts['feasible']:,} have a label. In {_percent(shares['changed'])} of"
            f" them simulation chose another candidate than the fastest that keeps the limit. {mode}"
        ),
        "cards": _cards(counts, shares),
        "speeds": _speeds(about),
        "trials": [_trial(name, trial) for name, trial in about["trials"].items()],
    }


def _cards(counts: Mapping[str, Any], shares: Mapping[str, float]) -> list[tuple[str, str, str]]:
    per = counts["rollouts"] / max(counts["situations"], 1)
    return [
        ("admissible candidates", f"{counts['admissible']:,}", f"of {counts['candidates']:,}"),
        ("without a candidate", f"{counts['without_candidate']:,}", "situations, not learnt from"),
        (
            "saturated",
            f"{counts['saturated']:,}",
            f"time above the network's; {counts['saturated_analytic']:,} by the limit alone",
        ),
        ("crashed / skipped", f"{counts['crashed']:,} / {counts['skipped']:,}", "labels whose flight does"),
        (
            "within reach",
            f"{shares['within_reach_mean']:.2f}",
            f"candidates per situation; one alone in {_percent(shares['alone_in_reach'])}",
        ),
        ("flown", f"{counts['rollouts']:,}", f"rollouts, {per:.2f} per situation; {counts['steps'] / 1e6:,.0f} million steps"),
    ]


def _speeds(about: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    choices, counts = about["options"]["choices"], about["counts"]
    speeds = np.linspace(0.0, choices["speed_max"], choices["speeds"])
    rows = zip(speeds, counts["by_speed_analytic"], counts["by_speed"], strict=True)
    return [(f"{v:.3f}", f"{limit:,}", f"{chosen:,}") for v, limit, chosen in rows]


def _trial(name: str, trial: Mapping[str, Any]) -> Content:
    counts, shares, spread = trial["counts"], trial["shares"], trial["error_quantiles_m"] or (float("nan"),) * 3
    return {
        "name": name,
        "situations": f"{counts['situations']:,}",
        "changed": _percent(shares["changed"]),
        "reach": f"{shares['within_reach_mean']:.2f}",
        "ended": f"{counts['crashed']:,} / {counts['skipped']:,}",
        "errors": " / ".join(f"{100.0 * value:.2f}" for value in spread),
    }


def _panels(held: LabelFolder) -> list[Panel]:
    labels, t_max = held.labels, float(held.about["options"]["t_max"])
    some = labels.admissible
    changed = some & labels.changed
    return [
        Panel("speed through the gate", "m/s", labels.v[some]),
        Panel("time to the gate", "s", labels.t0[some], marks=(t_max,)),
        Panel("mean tracking error", "cm", 100.0 * labels.error_mean[some]),
        Panel("candidates within reach", "", labels.reach[some]),
        Panel("rollouts per situation", "", labels.tried[some]),
        Panel("speed where changed", "m/s", labels.v[changed]),
    ]


def _percent(share: float) -> str:
    return f"{100.0 * share:.2f} %"
