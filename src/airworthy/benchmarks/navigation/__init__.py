"""The navigation benchmark (after FLYINGTRUST): which pilot, on which vehicle, in which place, with honest statistics.

`run_benchmark(NavigationConfig(...))` flies what has not been flown and writes a folder; `write_report` makes its page;
`replay_row` flies one row again. `run_study(SensitivityConfig(...))` flies the same flights with and without something that is
worse, and `write_arena` ranks the pilots of folders. A pilot of one's own is a class in a file (`FILE.py:CLASS`);
docs/benchmarks/navigation.md.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.navigation.arena.page import write_arena
    from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation
    from airworthy.benchmarks.navigation.job import Benchmarked, run_benchmark
    from airworthy.benchmarks.navigation.missions import Mission
    from airworthy.benchmarks.navigation.replay import replay_row
    from airworthy.benchmarks.navigation.report.page import write_report
    from airworthy.benchmarks.navigation.score import score_table
    from airworthy.benchmarks.navigation.sensitivity.study import SensitivityConfig, Studied, run_study
    from airworthy.benchmarks.navigation.store import read_rows
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Benchmarked", "Flight", "Mission", "NavigationConfig", "Perturbation", "SensitivityConfig", "Studied", "read_rows",
    "replay_row", "run_benchmark", "run_study", "score_table", "write_arena", "write_report",
]  # fmt: skip
