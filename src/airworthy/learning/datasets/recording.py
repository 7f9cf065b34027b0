"""`run.json`: how the last run went."""

from __future__ import annotations

from typing import Any

from airworthy import __version__
from airworthy.core.files import write_json
from airworthy.evaluation.machine import describe_machine
from airworthy.learning.datasets.job import Made
from airworthy.learning.datasets.layout import RUN_FILE
from airworthy.learning.synthesis.stages import STAGES

__all__ = ["write_run"]


def write_run(made: Made, command: str, workers: int) -> dict[str, Any]:
    """Write it, and return what it holds.

    Args:
        made: What the run left.
        command: By which it was started.
        workers: Processes.
    """
    flown = made.total("rollouts")
    content = {
        "airworthy": __version__,
        "command": command,
        "hardware": describe_machine(),
        "workers": workers,
        "interrupted": made.interrupted,
        "complete": made.complete,
        **{name: made.total(name) for name in ("rollouts", "kept", "pairs")},
        "keep_rate": made.total("kept") / flown if flown else None,
        "new": dict(made.new),
        "seconds": made.seconds,
        "pairs_per_second": made.new["pairs"] / made.seconds if made.seconds > 0.0 else None,
        "stages_s": {name: made.stages[name] for name in STAGES if name in made.stages},
    }
    write_json(made.folder / RUN_FILE, content)
    return content
