"""Planners with maps, killed at random again and again: the table is the one of a run that nobody stopped."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airworthy.benchmarks.navigation import store
from airworthy.benchmarks.navigation.store import read_rows

PILOTS = ("ego", "fast", "pgo", "navrl")
KILLS = 10
BLOCKS = 16
"""Of two flights each, four of every pilot: a kill leaves some finished and some not."""


def command(folder: Path) -> list[str]:
    """Thirty-two flights of six seconds at most."""
    arguments = ["--pilots", *PILOTS, "--vehicles", "virt_05", "real_09", "--scenarios", "random_cylinder", "sudden_drop"]
    arguments += ["--trials", "2", "--batch", "2", "--workers", "2", "--no-report", "--protocol.time-limit-s", "6"]
    return [sys.executable, "-m", "airworthy.cli.main", "bench", "navigation", *arguments, "--out", str(folder)]


def finished(folder: Path) -> int:
    """Blocks that lie there."""
    return len(list((folder / store.BLOCKS).glob("*.parquet")))


def killed(folder: Path, blocks: int, later: float) -> None:
    """Start, and kill some seconds after so many blocks are there."""
    process = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while finished(folder) < blocks and process.poll() is None:
        time.sleep(0.02)
    time.sleep(later)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_ten_kills_of_planners_with_maps_change_nothing(tmp_path: Path) -> None:
    """Ten runs of one folder are killed at random between the first block and the last; none loses what was finished."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    done = subprocess.run(command(whole), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rng, counts = random.Random(11), []
    for blocks in sorted(rng.sample(range(BLOCKS - 1), KILLS)):
        killed(stopped, blocks, rng.uniform(0.0, 1.5))
        counts.append(finished(stopped))
    assert counts == sorted(counts)
    assert counts[0] < BLOCKS // 2  # it was stopped in the middle of its work, not at the end
    last = subprocess.run(command(stopped), check=False, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert finished(stopped) == BLOCKS
    assert len(read_rows(whole)) == 2 * BLOCKS
    assert (stopped / store.RESULTS_FILE).read_bytes() == (whole / store.RESULTS_FILE).read_bytes()
