"""Files of labels: one Parquet table per shard, with the checksum that `gates.json` tells of it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetError
from airworthy.core.files import json_text, read_bytes, read_json, sha256, write_bytes, write_text
from airworthy.gates.labels.labels import Labels, join_labels
from airworthy.gates.labels.situations import FIELDS
from airworthy.learning.datasets.card_svg import Panel, histogram
from airworthy.reports.page import card, markup, page_of, percent

__all__ = ["GATES_FILE", "REPORT_FILE", "LabelFolder", "read_labels", "shard_file", "write_report", "write_shard"]

GATES_FILE = "gates.json"
# Ours: labels of 129,600 situations take some megabytes; a folder may come from a stranger.
_FILE_MAX = 1 << 30
_FACTS_MAX = 1 << 24


@dataclass(frozen=True)
class LabelFolder:
    """Labels as they lie on disk."""

    situations: Array
    """Shape (k, 8)."""
    labels: Labels
    about: Mapping[str, Any]
    """Content of `gates.json`."""


def shard_file(number: int) -> str:
    """Return the name of a shard's file."""
    return f"labels-{number:05d}.parquet"


def write_shard(folder: Path, number: int, situations: Array, labels: Labels) -> str:
    """Write a shard, all or nothing; returns its SHA-256.

    Args:
        folder: Of the labels.
        number: Of the shard.
        situations: (k, 8).
        labels: Found for them, (k,).

    Raises:
        AirworthyError: The file system refused.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {name: situations[:, k] for k, name in enumerate(FIELDS)}
    columns |= {item.name: getattr(labels, item.name) for item in fields(Labels)}
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer, compression="zstd", write_page_checksum=True)
    data = buffer.getvalue()
    write_bytes(folder / shard_file(number), data)
    return sha256(data)


def read_labels(folder: str | Path) -> LabelFolder:
    """Read every shard of a folder, comparing checksums.

    Raises:
        AssetError: It holds no labels, is not finished, or a file is damaged.
    """
    where = Path(folder)
    about = read_json(where / GATES_FILE, _FACTS_MAX)
    files = about.get("files") if isinstance(about, dict) else None
    if not isinstance(files, dict) or about.get("kind") != "gate labels":
        raise AssetError(f"{str(where / GATES_FILE)!r} does not describe labels of gates; give the folder of a search.")
    if not about.get("complete"):
        raise AssetError(f"{str(folder)!r} is not finished: run the same 'airworthy synthesize gates' again.")
    parts = [_read(where / str(name), files[name]) for name in sorted(files)]
    return LabelFolder(np.concatenate([e for e, _ in parts]), join_labels([one for _, one in parts]), about)


def whole(path: Path, facts: Any) -> bool:
    """Tell whether a shard's file is there and has the checksum told."""
    return path.is_file() and isinstance(facts, dict) and sha256(read_bytes(path, _FILE_MAX)) == facts.get("sha256")


def _read(path: Path, facts: Any) -> tuple[Array, Labels]:
    import pyarrow as pa
    from pyarrow import parquet

    data = read_bytes(path, _FILE_MAX)
    if not isinstance(facts, dict) or sha256(data) != facts.get("sha256"):
        raise AssetError(f"{str(path)!r} is not the file that {GATES_FILE} tells of: run the search again with --repair.")
    try:
        table = parquet.read_table(io.BytesIO(data), use_threads=False)
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        situations = np.stack([columns[name] for name in FIELDS], axis=-1)
        return situations, Labels(*(columns[item.name] for item in fields(Labels)))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise AssetError(f"{str(path)!r} does not hold labels: {(str(error).splitlines() or ['damaged'])[0][:160]}.") from error


# -----------------------------------------------------------------------------------------------------------------------------
# The report of a search: what the limit left, what simulation chose, and how often that was another candidate.

REPORT_FILE = "report.html"
Content = dict[str, Any]


def write_report(folder: str | Path, command: str = "") -> Path:
    """Write `report.html` into the folder of a finished search.

    Raises:
        AssetError: The search is not finished, or a file is damaged.
        AirworthyError: The file system refused.
    """
    held = read_labels(folder)
    page = page_of(
        "airworthy.gates.labels",
        panels=[markup(histogram(panel)) for panel in _panels(held)],
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
            f"Of {counts['situations']:,} situations {counts['feasible']:,} have a label. In {percent(shares['changed'])} of"
            f" them simulation chose another candidate than the fastest that keeps the limit. {mode}"
        ),
        "cards": _cards(counts, shares),
        "speeds": _speeds(about),
        "trials": [_trial(name, trial) for name, trial in about["trials"].items()],
    }


def _cards(counts: Mapping[str, Any], shares: Mapping[str, float]) -> list[dict[str, str]]:
    per = counts["rollouts"] / max(counts["situations"], 1)
    late = f"time above the network's; {counts['saturated_analytic']:,} by the limit alone"
    reach = f"candidates per situation; one alone in {percent(shares['alone_in_reach'])}"
    flown = f"rollouts, {per:.2f} per situation; {counts['steps'] / 1e6:,.0f} million steps"
    return [
        card("admissible candidates", f"{counts['admissible']:,}", below=f"of {counts['candidates']:,}"),
        card("without a candidate", f"{counts['without_candidate']:,}", below="situations, not learnt from"),
        card("saturated", f"{counts['saturated']:,}", below=late),
        card("crashed / skipped", f"{counts['crashed']:,} / {counts['skipped']:,}", below="labels whose flight does"),
        card("within reach", f"{shares['within_reach_mean']:.2f}", below=reach),
        card("flown", f"{counts['rollouts']:,}", below=flown),
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
        "changed": percent(shares["changed"]),
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
