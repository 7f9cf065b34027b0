"""The navigation benchmark (after FLYINGTRUST): which pilot, on which vehicle, in which place, with honest statistics.

`run_benchmark(NavigationConfig(...))` flies what has not been flown and writes a folder; `write_report` makes its page;
`replay_row` flies one row again. A pilot of one's own is a class in a file (`FILE.py:CLASS`); docs/navigation_benchmark.md.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Benchmarked",
    "Flight",
    "Mission",
    "NavigationConfig",
    "Perturbation",
    "read_rows",
    "replay_row",
    "run_benchmark",
    "score_table",
    "write_report",
]

_WHERE = {
    "Benchmarked": "job",
    "Flight": "plan",
    "Mission": "missions",
    "NavigationConfig": "config",
    "Perturbation": "config",
    "read_rows": "store",
    "replay_row": "replay",
    "run_benchmark": "job",
    "score_table": "score",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    """Names are imported where they are first used: most of them bring the simulator with them."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
