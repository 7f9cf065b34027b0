"""What others reached in the AlphaPilot qualifier, Tables III and IV, and our rows among theirs, marked as what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from airworthy.core.arrays import ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.files import packaged_toml
from airworthy.core.table_schema import TableSchema
from airworthy.race.record import RaceScore
from airworthy.race.scoring import final_score

_FILE = "alphapilot_results.toml"
_SCHEMA = TableSchema(32, 64, "rows", "numbers")
QUALIFIER = RaceScore("points", gate_points=10.0, best=5, of=25)
"""How the qualifier scored."""
OURS = "ours, on other courses than the 2019 evaluation set"
"""Mark of every row of ours: the evaluation's courses were never published, and are not what we fly."""
TRUE_STATE = "with true state"
"""Mark of a pilot that is given the truth."""
TRUTH = "truth:"
"""Before the name of such a pilot."""


@dataclass(frozen=True)
class ScoreRow:
    """A row of Table III: five best scores of 25 and their mean."""

    rank: int
    """Among the published twenty; ours stand where they would rank, without moving anybody."""
    final: float
    best: tuple[float, ...]
    """Largest first."""
    name: str = ""
    """Of our pilot; the table names no teams."""
    note: str = ""
    """Empty for published rows."""


@dataclass(frozen=True)
class SensorRow:
    """A row of Table IV: teams by the sensors they used, over all 25 courses."""

    used: tuple[str, ...]
    teams: int
    completed_percent: float
    """Of all their runs."""
    mean: float
    """Of all their scores."""
    std: float
    """Of single scores."""
    note: str = ""
    """Empty for published rows."""


@dataclass(frozen=True)
class _Tables:
    source: str
    teams: tuple[tuple[int, float, float, float, float, float, float], ...]
    sensors: tuple[SensorRow, ...]


@cache
def _tables() -> _Tables:
    tables: _Tables = _SCHEMA.record(
        _Tables, packaged_toml("airworthy.race", "alphapilot_results.toml"), "alphapilot_results.toml"
    )
    return tables


def published_source() -> str:
    """Return where both tables are from."""
    return _tables().source


def published_scores() -> tuple[ScoreRow, ...]:
    """Return Table III: the twenty best teams."""
    return tuple(ScoreRow(rank, final, tuple(best)) for rank, final, *best in _tables().teams)


def published_sensors() -> tuple[SensorRow, ...]:
    """Return Table IV: results by sensors."""
    return _tables().sensors


def scores_with_ours(ours: Mapping[str, ArrayLike], marks: Mapping[str, str] | None = None) -> tuple[ScoreRow, ...]:
    """Return Table III with our pilots at the rank that their final score would have had; who ties a team stands behind it.

    Args:
        ours: Scores of up to 25 runs, (n,), by the name of the pilot.
        marks: What is noted of some of them besides, by the name of the pilot.

    Raises:
        AirworthyError: Fewer runs than count, or more than the table's rule takes.
    """
    # 0 before 1: of equal scores the published one stands first.
    rows = [(-row.final, 0, row) for row in published_scores()]
    for name, scores in ours.items():
        final = final_score(QUALIFIER, scores)
        best = np.sort(np.asarray(scores, np.float64).ravel())[::-1][: QUALIFIER.best]
        # Among the published alone: two pilots of ours may have one rank.
        rank = 1 + sum(row.final >= final for row in published_scores())
        note = noted(name.startswith(TRUTH), (marks or {}).get(name, ""))
        rows.append((-final, 1, ScoreRow(rank, final, tuple(best.tolist()), name, note)))
    return tuple(row for _, _, row in sorted(rows, key=lambda item: item[:2]))


def noted(truth: bool, mark: str = "") -> str:
    """Return the note of a row of ours.

    Args:
        truth: Whether its pilot was given the true state.
        mark: What else is to be noted; empty: nothing.
    """
    return ", ".join([OURS, *([TRUE_STATE] if truth else []), *([mark] if mark else [])])


def sensors_with_ours(
    ours: Mapping[tuple[str, ...], Sequence[tuple[bool, float]]], marks: Mapping[tuple[str, ...], str] | None = None
) -> tuple[SensorRow, ...]:
    """Return Table IV with our rows behind the published ones.

    Args:
        ours: Whether each run was completed and its score, by the sensors that the pilot used.
        marks: What is noted of some rows besides, by the sensors.

    Raises:
        AirworthyError: Sensors without a run.
    """
    rows = list(published_sensors())
    for used, runs in ours.items():
        if not runs:
            raise AirworthyError(f"No run was given for the sensors {', '.join(used)}; a row needs one at least.")
        scores = np.array([score for _, score in runs], np.float64)
        share = 100.0 * sum(done for done, _ in runs) / len(runs)
        # Of single scores, as the published one, which is far larger than that of a mean.
        deviation = float(np.std(scores, ddof=1)) if len(runs) > 1 else float("nan")
        note = noted(False, (marks or {}).get(used, ""))
        rows.append(SensorRow(tuple(used), 1, share, float(np.mean(scores)), deviation, note))
    return tuple(rows)
