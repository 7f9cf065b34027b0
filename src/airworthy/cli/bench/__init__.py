"""`airworthy bench`: navigation, gates and races, the report of a run, flying a row again, and a quick look at all of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from airworthy.core.errors import AirworthyError, unknown_name

_ACTIONS: dict[str, tuple[str, str, str]] = {
    "navigation": (
        "airworthy.cli.bench.navigation",
        "main",
        "pilots x vehicles x scenarios -> flights and a report",
    ),
    "sensitivity": (
        "airworthy.cli.bench.sensitivity",
        "main",
        "the same flights with and without something worse -> what each pilot loses by it",
    ),
    "gates": ("airworthy.cli.bench.gates", "main", "plans through gates, certified and flown -> evidence and a report"),
    "race": ("airworthy.cli.bench.race", "main", "pilots behind the sensors of 2019, refereed -> scores beside the teams'"),
    "report": ("airworthy.cli.bench.report", "main", "write the report of a folder again"),
    "arena": ("airworthy.cli.bench.arena", "main", "rank the pilots of folders over places, vehicles and speed, on one page"),
    "replay": ("airworthy.cli.bench.replay", "main", "fly one row of a folder again, compare every byte, and look at it"),
    "timing": ("airworthy.cli.bench.timing", "main", "how long planners think on this machine, beside what was published"),
    "smoke": ("airworthy.cli.bench.navigation", "smoke", "four vehicles, one layout of each scenario: under two minutes"),
}


def help_text() -> str:
    """Return what `airworthy bench --help` prints."""
    width = max(map(len, _ACTIONS))
    lines = [f"  {name:{width}}  {summary}" for name, (_, _, summary) in _ACTIONS.items()]
    return "\n".join(
        [
            "usage: airworthy bench ACTION [options]",
            "",
            "Which pilot, on which vehicle, in which place, after FLYINGTRUST; gate to gate, after BoundaryPredictor.",
            "",
            "actions:",
            *lines,
            "",
            "  airworthy bench ACTION --help  options of an action, with units and defaults",
        ]
    )


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0 if argv else 2
    if argv[0].startswith("-"):
        raise AirworthyError(f"The action comes first, {argv[0]!r} after it: airworthy bench ACTION [options].")
    if argv[0] not in _ACTIONS:
        raise unknown_name("action of airworthy bench", argv[0], _ACTIONS)
    module, name, _ = _ACTIONS[argv[0]]
    action: Callable[[list[str]], int] = getattr(import_module(module), name)
    return action(argv[1:])
