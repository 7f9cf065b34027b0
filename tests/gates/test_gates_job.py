"""The job: the same bytes however it is made, refusals, counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.gates.labels import job
from airworthy.gates.labels.config import GateLabelsConfig
from airworthy.gates.labels.job import synthesize_gates
from airworthy.gates.labels.report import read_labels

SMALL = GateLabelsConfig(every=2160, shard=20, trials=30)
"""60 situations in three files."""


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "run.json"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize_gates(SMALL, tmp_path_factory.mktemp("gates") / "whole", command="airworthy synthesize gates").folder


def test_a_folder_holds_labels_counts_and_a_report(made: Path) -> None:
    held = read_labels(made)
    assert held.situations.shape == (60, 8)
    assert len(held.labels) == 60
    np.testing.assert_array_equal(held.labels.index, np.arange(60) * 2160)
    counts = held.about["counts"]
    assert counts["situations"] == 60
    assert counts["candidates"] == 4200
    assert counts["admissible"] == held.labels.passing.sum()
    assert sum(counts["by_speed"]) == 60 - counts["without_candidate"]
    assert set(held.about["trials"]) == {"none", "paper", "strong"}
    page = (made / "report.html").read_text()
    assert "Gate to gate: labels" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_run_that_was_killed_between_two_files_ends_with_the_same_bytes(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, write = tmp_path / "cut", job.write_shard

    def killed(*arguments: Any) -> str:
        written = write(*arguments)  # the file is there, but nothing tells of it
        if arguments[1] == 1:
            raise MemoryError
        return written

    monkeypatch.setattr(job, "write_shard", killed)
    with pytest.raises(MemoryError):
        synthesize_gates(SMALL, folder, command="airworthy synthesize gates")
    monkeypatch.setattr(job, "write_shard", write)
    went_on = synthesize_gates(SMALL, folder, command="airworthy synthesize gates")
    assert went_on.new["situations"] == 40
    assert went_on.complete
    assert _bytes(folder) == _bytes(made)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = job.write_shard

    def stopped(*arguments: Any) -> str:
        if arguments[1] == 2:
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(job, "write_shard", stopped)
    found = synthesize_gates(SMALL, tmp_path / "stopped")
    assert found.interrupted
    assert found.shards == 2
    with pytest.raises(AssetError, match="is not finished"):
        read_labels(tmp_path / "stopped")


@pytest.mark.slow
def test_several_processes_make_the_same_bytes(made: Path, tmp_path: Path) -> None:
    synthesize_gates(SMALL, tmp_path / "many", workers=2, command="airworthy synthesize gates")
    assert _bytes(tmp_path / "many") == _bytes(made)


def test_other_options_and_damaged_files_are_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="labels of another search"):
        synthesize_gates(replace(SMALL, seed=1), made)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, data in _bytes(made).items():
        (copy / name).write_bytes(data)
    (copy / "labels-00001.parquet").write_bytes(b"nothing")
    with pytest.raises(AssetError, match="is not the file"):
        read_labels(copy)
    with pytest.raises(AssetError, match="--repair"):
        synthesize_gates(SMALL, copy)
    synthesize_gates(SMALL, copy, repair=True, command="airworthy synthesize gates")
    assert _bytes(copy) == _bytes(made)
