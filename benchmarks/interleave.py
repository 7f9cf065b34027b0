"""Sides measured in turn, A B C A B C ...: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.sides import Scenario, Side


@dataclass
class Contest:
    """Rates of every side in one scenario at one batch size, one per round [env-steps/s]."""

    scenario: Scenario
    env_count: int
    rates: dict[str, list[float]] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    """Side -> why it did not take part."""

    def median(self, name: str) -> float:
        """Median rate of a side."""
        return median(self.rates[name])

    def ratio(self, name: str, other: str) -> float:
        """Median over the rounds of `name`'s rate over `other`'s rate in the same round."""
        return median(a / b for a, b in zip(self.rates[name], self.rates[other], strict=True))

    def disturbance(self) -> float:
        """Highest over lowest rate of the steadiest side: near 1 on an idle machine."""
        return min((max(rates) / min(rates) for rates in self.rates.values() if min(rates) > 0), default=1.0)

    def summary(self, ours: str) -> dict[str, object]:
        """Return the contest as plain data."""
        sides = {
            name: {
                "tool": self.tools[name],
                "median": self.median(name),
                "min": min(rates),
                "max": max(rates),
                "ours_over_it": self.ratio(ours, name) if ours in self.rates else None,
            }
            for name, rates in self.rates.items()
        }
        return {"scenario": self.scenario.key, "env_count": self.env_count, "sides": sides, "dropped": self.dropped}


def run_contest(
    sides: Sequence[Side],
    scenario: Scenario,
    env_count: int,
    rounds: int,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
) -> Contest:
    """Warm every side up, then measure each once per round.

    A side that fails, at any time, is dropped with its reason and leaves the others undisturbed.
    """
    contest = Contest(scenario, env_count)
    for side in sides:
        if side.offers(scenario, env_count) and _try(contest, side, 0.0) is not None:
            contest.rates[side.name], contest.tools[side.name] = [], side.tool
    for number in range(rounds):
        say(f"{scenario.key}, {env_count} environments: round {number + 1} of {rounds}")
        for side in [s for s in sides if s.name in contest.rates]:
            result = _try(contest, side, seconds)
            if result is None:
                del contest.rates[side.name]
            else:
                contest.rates[side.name].append(result)
    return contest


def _try(contest: Contest, side: Side, seconds: float) -> float | None:
    try:
        return side.run(contest.scenario, contest.env_count, seconds)
    except Exception as trouble:  # any side may be missing or broken; the reason is printed
        contest.dropped[side.name] = f"{type(trouble).__name__}: {trouble}"
        return None
