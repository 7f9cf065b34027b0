"""Who is better, a learnt policy or a known controller: a sentence that says by which measure, how surely, on which flights."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import Estimate, paired_median_difference, paired_rate_difference

__all__ = ["JudgedFlights", "beside_controller"]


@dataclass(frozen=True, eq=False)
class JudgedFlights:
    """What of flights decides, (flights,) each; the same starts in the same order for both."""

    good: ArrayBool
    """Whether a flight did what was asked."""
    kept: ArrayBool
    """Whether it was not lost: of others there is no error."""
    error: Array | None
    """Its distance from where it should be [m]; None: the task has none."""


def beside_controller(learnt: JudgedFlights, known: JudgedFlights, name: str, share: str) -> dict[str, Any]:
    """Return how a policy stands to a controller on the same starts: `verdict`, a sentence, and `comparison`, its numbers.

    First by the share of good flights; where that is a tie, by the median difference of the errors of flights that neither
    lost. A difference whose interval of 95 % holds 0 is a tie: more flights may decide it, and then the sentence says by what.
    Where neither has a good flight, and no error decides, nothing says who is better, and the sentence says that.

    Args:
        learnt: Of the policy.
        known: Of the controller.
        name: Of the controller.
        share: What the share of good flights is called: "flights kept", "success".

    Raises:
        AirworthyError: They did not fly the same number of starts.
    """
    count = len(learnt.good)
    if count != len(known.good):
        raise AirworthyError(
            f"{count:,} flights cannot be set beside {len(known.good):,} of the {name}; expected the same starts."
        )
    rate = paired_rate_difference(learnt.good, known.good)
    signs = {share: _sign(rate)}
    mine, other = (100.0 * float(np.mean(x.good)) for x in (learnt, known))
    shown = _within(rate, 100.0, "%", 1)
    # Two shares of 0 are no tie of two that did it: one of them may do something else altogether, as a controller beside a
    # task of one's own.
    none = not (learnt.good.any() or known.good.any())
    said = [f"{share} {mine:.1f} % against {other:.1f} %, difference {shown}{_tie(signs[share])}"]
    if none:
        said = [f"{share} 0.0 % of either, which compares nothing"]
    numbers: dict[str, Any] = {"flights": count, "difference_percent": _bounds(rate, 100.0)}
    both = learnt.kept & known.kept
    if learnt.error is not None and known.error is not None and both.any():
        apart = paired_median_difference(learnt.error[both], known.error[both])
        # Nearer is better.
        signs["error"] = -_sign(apart)
        shown = _within(apart, 100.0, "cm", 2)
        # Of pairs: the medians in a table may differ the other way, where some flights are much harder than others.
        said.append(
            f"error flight by flight, median of the {int(both.sum()):,} that neither lost: {shown}{_tie(signs['error'])}"
        )
        numbers |= {"flights_both_kept": int(both.sum()), "error_difference_m": _bounds(apart)}
    decided = next((measure for measure, sign in signs.items() if sign), None)
    stands, by = "ties with", ""
    if decided is not None:
        stands, by = "wins against" if signs[decided] > 0 else "loses to", f" by {decided}"
    told = f"The learnt policy {stands} the {name}{by}"
    if none and decided is None:
        told = f"Nothing says whether the learnt policy or the {name} is better"
    verdict = f"{told}, on the same {count:,} starts: {'; '.join(said)}."
    return {"verdict": verdict, "comparison": {"decided_by": decided, **numbers}}


def _sign(difference: Estimate) -> int:
    """1 or -1 where the whole interval lies on one side of 0, else 0."""
    return int(difference.low > 0.0) - int(difference.high < 0.0)


def _tie(sign: int) -> str:
    return "" if sign else ", a tie"


def _within(difference: Estimate, by: float, unit: str, digits: int) -> str:
    """Write a difference and its interval, so that 0 is seen to be inside or not."""
    if not (isfinite(difference.low) and isfinite(difference.high)):
        return f"{by * difference.value:+.{digits}f} {unit} (too few for an interval)"
    low, high = (_clear(by * bound, digits) for bound in (difference.low, difference.high))
    return f"{by * difference.value:+.{digits}f} {unit} (95 % interval {low} to {high} {unit})"


def _clear(value: float, digits: int) -> str:
    """Write it with as many digits as show that a bound is not 0, up to six."""
    while value and digits < 6 and float(f"{value:.{digits}f}") == 0.0:
        digits += 1
    return f"{value:+.{digits}f}"


def _bounds(difference: Estimate, by: float = 1.0) -> list[float | None]:
    """Difference, lower and upper bound; None where there are too few for one."""
    numbers = (difference.value, difference.low, difference.high)
    return [by * x if isfinite(x) else None for x in numbers]
