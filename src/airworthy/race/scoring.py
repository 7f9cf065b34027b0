"""What runs are worth: the result of each, its score, and statistics over several that say how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import Estimate, describe, wilson_interval
from airworthy.race.record import RaceScore
from airworthy.race.referee import Irregular, RaceEnd, Referee, RefereeState

NAN = float("nan")


@dataclass(frozen=True)
class PassageResult:
    """One passage of one flight, by both tests."""

    gate: str
    loose_time: float
    """[s]; NaN where it was not passed, and in races that know the strict test alone."""
    missed: bool
    """Skipped in the loose test."""
    strict_time: float
    """[s]; NaN where it was not passed."""
    offset: tuple[float, float]
    """To the left and up from the opening's centre at the strict passage [m]; NaN where there is none."""


@dataclass(frozen=True)
class RaceResult:
    """What became of one flight."""

    end: str
    """Name of the `RaceEnd` in small letters; "running" where the flight was not judged to its end."""
    outcome: str
    """The same as an outcome of `airworthy.tasks`."""
    completed: bool
    time_s: float
    """By the race's clock; NaN where it was not completed."""
    passed: int
    """Passages that count."""
    score: float
    """Points; of races scored by time the time itself, NaN where it was not completed."""
    passages: tuple[PassageResult, ...]
    differing: tuple[str, ...]
    """Gates that one test counts and the other does not; empty in races that know the strict test alone."""
    irregular: tuple[Irregular, ...]
    """Crossings that did not count in the strict test."""
    irregular_count: int
    """Of these, also those beyond the first hundred."""
    after_finish: str
    """What ended the flight between the loose finish and the end of the 0.3 s behind it; changes nothing."""


def race_results(referee: Referee, state: RefereeState) -> tuple[RaceResult, ...]:
    """Return what became of each flight.

    Args:
        referee: Who judged.
        state: Behind the last sample.
    """
    return tuple(_result(referee, state, flight) for flight in range(referee.flights))


def _result(referee: Referee, state: RefereeState, flight: int) -> RaceResult:
    race = referee.race
    loose = race.test == "loose"
    end, after = RaceEnd(int(state.end[flight])), RaceEnd(int(state.after[flight]))
    counted = state.loose_time[flight] if loose else state.strict_time[flight]
    completed = end == RaceEnd.FINISHED
    # A flying start leaves out the first gate's approach; the race file allows it with the strict test alone.
    began = float(counted[0]) if race.clock.starts == "first_gate" else 0.0
    time = float(counted[-1]) - began if completed else NAN
    passages = tuple(
        PassageResult(
            name,
            float(state.loose_time[flight, k]),
            bool(state.missed[flight, k]),
            float(state.strict_time[flight, k]),
            (float(state.offset[flight, k, 0]), float(state.offset[flight, k, 1])),
        )
        for k, (name, _) in enumerate(race.passes)
    )
    passed = int(np.sum(np.isfinite(counted)))
    differing = [x.gate for x in passages if math.isfinite(x.loose_time) != math.isfinite(x.strict_time)] if loose else []
    return RaceResult(
        end=end.name.lower(),
        outcome=end.outcome,
        completed=completed,
        time_s=time,
        passed=passed,
        score=run_score(race.score, passed, time),
        passages=passages,
        differing=tuple(differing),
        irregular=tuple(item for item in state.irregular if item.flight == flight),
        irregular_count=int(state.irregular_count[flight]),
        after_finish=after.name.lower() if after else "",
    )


def run_score(rule: RaceScore, passed: int, time: float) -> float:
    """Return what one run is worth.

    Args:
        rule: Of the race.
        passed: Gates that were passed; missed ones are none.
        time: To the last gate [s]; NaN where the run was not completed.
    """
    if rule.rule == "time":
        return time
    # The qualifier's: 10 N - T, and nothing for a run that ended otherwise.
    return rule.gate_points * passed - time if math.isfinite(time) else 0.0


def final_score(rule: RaceScore, scores: ArrayLike) -> float:
    """Return the mean of the best runs: the largest scores by points, the least times; NaN where there is none.

    Args:
        rule: Of the race.
        scores: Of all runs, (n,).

    Raises:
        AirworthyError: More runs than the rule takes, fewer than count, or none.
    """
    values = _finite_scores(rule, scores)
    if rule.of and not rule.best <= np.size(scores) <= rule.of:
        raise AirworthyError(f"{np.size(scores)} runs were given; expected {rule.best} to {rule.of} for a final score.")
    return _best_mean(rule, values)


def _finite_scores(rule: RaceScore, scores: ArrayLike) -> Array:
    values = np.asarray(scores, np.float64).ravel()
    if rule.rule == "points" and not np.all(np.isfinite(values)):
        raise AirworthyError("A score by points is not a number; a run that did not finish has 0.")
    return values[np.isfinite(values)]


def _best_mean(rule: RaceScore, values: Array) -> float:
    if not values.size:
        return NAN
    ordered = np.sort(values) if rule.rule == "time" else np.sort(values)[::-1]
    return float(np.mean(ordered[: rule.best or None]))


def best_interval(
    rule: RaceScore, scores: ArrayLike, *, seed: int = 0, confidence: float = 0.95, resamples: int = 2000
) -> Estimate:
    """Return the final score and a percentile bootstrap interval of it (Efron and Tibshirani 1993, chapter 13).

    Runs are drawn again with replacement, as many as there are, and the best of each draw averaged. The best of a number of
    runs grows with the number: the interval says how the final score of as many runs scatters, not what others would give.

    Args:
        rule: Of the race.
        scores: Of all runs, (n,), at most as many as the rule takes.
        seed: Of the draws.
        confidence: Inside (0, 1).
        resamples: Number of draws.
    """
    values = np.asarray(scores, np.float64).ravel()
    value = final_score(rule, values)
    if values.size < 2 or not 0.0 < confidence < 1.0:
        return Estimate(value, NAN, NAN)
    rng = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, values.size])
    # Whole runs are drawn, those that did not finish among them: completion is part of what scatters.
    rows = rng.integers(values.size, size=(resamples, values.size))
    drawn = np.array([_best_mean(rule, _finite_scores(rule, values[row])) for row in rows])
    drawn = drawn[np.isfinite(drawn)]
    if not drawn.size:
        return Estimate(value, NAN, NAN)
    low, high = np.quantile(drawn, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    return Estimate(value, float(low), float(high))


def blocks_of(rule: RaceScore, scores: ArrayLike) -> tuple[tuple[float, ...], ...]:
    """Return the scores in blocks of as many runs as make one final score, in their order; a rest that is smaller is left out.

    Args:
        rule: Of the race; where it takes any number of runs, all are one block, and so are fewer than it takes, if as many as
            count.
        scores: Of all runs, (n,).
    """
    values = np.asarray(scores, np.float64).ravel()
    size = rule.of or max(1, values.size)
    # A trial of ten runs has a final score too; that it is of ten is said beside it.
    if max(1, rule.best) <= values.size < size:
        size = values.size
    return tuple(tuple(values[at : at + size].tolist()) for at in range(0, values.size - size + 1, size))


def race_statistics(
    rule: RaceScore, results: Sequence[RaceResult], *, seed: int = 0, confidence: float = 0.95
) -> dict[str, Any]:
    """Return all runs together: completion with Wilson's interval, mean and deviation, median time, final scores.

    Args:
        rule: Of the race.
        results: Of all runs, in their order.
        seed: Of the bootstrap intervals.
        confidence: Of all intervals.
    """
    if not results:
        raise AirworthyError("No run was given; statistics need one at least.")
    done = sum(result.completed for result in results)
    scores = [result.score for result in results]
    blocks = blocks_of(rule, scores)
    finals = [asdict(best_interval(rule, block, seed=seed, confidence=confidence)) for block in blocks]
    return {
        "runs": len(results),
        "completed": done,
        "completion": asdict(wilson_interval(done, len(results), confidence)),
        "score": describe(scores, "score", seed=seed, confidence=confidence),
        "time_s": describe([result.time_s for result in results], "time_s", seed=seed, confidence=confidence),
        "final": finals,
        "final_runs": [len(block) for block in blocks],
        "left_out": len(results) - sum(len(block) for block in blocks),
        "ends": {name: sum(result.end == name for result in results) for name in sorted({result.end for result in results})},
        "passages_missed": sum(not math.isfinite(x) for result in results for x in _counted(result)),
        "differing": sum(len(result.differing) for result in results),
    }


def _counted(result: RaceResult) -> list[float]:
    """Return times of a completed run's passages by the test that counts."""
    if not result.completed:
        return []
    loose = any(math.isfinite(item.loose_time) for item in result.passages)
    return [item.loose_time if loose else item.strict_time for item in result.passages]
