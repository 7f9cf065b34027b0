"""The case of validation is a table; no file is named in code."""

from __future__ import annotations

import re
from pathlib import Path

from airworthy.benchmarks.validation.case import validation_case

CODE = Path(__file__).resolve().parents[3] / "src" / "airworthy"


def test_the_case_is_whole() -> None:
    case = validation_case()
    assert [e.name for e in case.experiments] == ["brushless", "brushed", "pwm"]
    assert sum(len(logs) for _, logs in case.vehicles.values()) == 6
    for experiment in case.experiments:
        known = set(case.vehicles[experiment.vehicle][1])
        for split in experiment.splits:
            assert {split.judge, *split.fit} <= known
            # Nothing is judged that it was fitted to.
            apart = split.judge not in split.fit
            parts = (
                split.judge_part is not None and split.fit_part is not None and not overlap(split.judge_part, split.fit_part)
            )
            assert apart or parts
    assert case.experiment("pwm").structures


def overlap(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])


def test_no_log_is_named_in_code() -> None:
    case = validation_case()
    names = [name for _, logs in case.vehicles.values() for name in logs]
    names += [case.folder, case.inertial, *case.benches]
    pattern = re.compile("|".join(rf"\"[^\"\n]*{re.escape(name)}(?!\.toml)" for name in names))
    files = [*(CODE / "benchmarks" / "validation").rglob("*.py"), CODE / "cli" / "validate.py"]
    assert files
    for path in files:
        assert not pattern.search(path.read_text("utf-8")), path.name
