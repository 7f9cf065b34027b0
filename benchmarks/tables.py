"""Plain text tables of the results, and of what was aimed at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.interleave import Contest
from benchmarks.ours import NAME

Row = Sequence[str]
STEADY = 1.15
"""Spread of the steadiest side above which a contest is called disturbed."""


def table(title: str, head: Row, rows: Iterable[Row]) -> str:
    """Return a titled table: first column left-aligned, the others right-aligned."""
    lines = [list(head), *[list(row) for row in rows]]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
    return "\n".join(["", title, text[0], "-" * len(text[0]), *text[1:]])


def hardware_table(found: dict[str, Any]) -> str:
    """Return the machine, one fact per line."""
    width = max(len(key) for key in found)
    return "\n".join(f"{key.ljust(width)}  {_fact(value)}" for key, value in found.items())


def _fact(value: object) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def contest_table(contest: Contest) -> str:
    """Every side: median, spread, and how many times our rate is its rate in the same round."""
    ours = NAME in contest.rates
    ordered = sorted(contest.rates, key=contest.median, reverse=True)
    rows = [
        (
            name,
            rate(contest.median(name)),
            f"{rate(min(contest.rates[name]))} .. {rate(max(contest.rates[name]))}",
            f"{contest.ratio(NAME, name):.3g} x" if ours else "-",
        )
        for name in ordered
    ]
    title = f"{contest.scenario.title}; {contest.env_count:,} environments"
    text = table(title, ("side", "env-steps/s", "lowest .. highest", f"{NAME} over it"), rows)
    notes = [f"left out: {name}: {reason[:100]}" for name, reason in contest.dropped.items()]
    if contest.disturbance() > STEADY:
        notes.append(f"NOTICE: every side varied by {contest.disturbance():.2f} x or more; the machine was busy, measure again")
    return "\n".join([text, *notes])


def best_table(contests: Sequence[Contest]) -> str:
    """Each tool at best: its fastest variant at its fastest batch size, among the bare-body contests."""
    best: dict[str, tuple[float, str, int]] = {}
    for contest in (c for c in contests if c.scenario.key == "bare"):
        for name, tool in contest.tools.items():
            if name in contest.rates:
                entry = (contest.median(name), name, contest.env_count)
                best[tool] = max(best.get(tool, entry), entry)
    ours = best.get(NAME, (0.0, "", 0))[0]
    rows = [
        (name, f"{count:,}", rate(value), f"{ours / value:.3g} x" if ours and value else "-")
        for value, name, count in sorted(best.values(), reverse=True)
    ]
    return table(
        "bare body, each tool at its best batch size", ("side", "environments", "env-steps/s", f"{NAME} over it"), rows
    )


def goal_table(goals: Sequence[tuple[str, float | None, float, bool]]) -> str:
    """Goals as (name, found, aimed at, whether higher is better)."""
    rows = []
    for name, found, aim, higher in goals:
        met = "-" if found is None else "yes" if (found >= aim if higher else found <= aim) else "NO"
        rows.append((name, "-" if found is None else number(found), ("at least " if higher else "at most ") + number(aim), met))
    return table("aims", ("figure", "found", "aim", "met"), rows)


def rate(value: float) -> str:
    """Return a rate with its unit prefix."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.3g}"


def number(value: float) -> str:
    """Return a number for reading: rates with a prefix, others with three digits."""
    return rate(value) if value >= 1e4 else f"{value:.3g}"
