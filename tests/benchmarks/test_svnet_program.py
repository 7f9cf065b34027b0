"""The program that prints a policy's decision time and its equality elsewhere: what differs, and what a bar makes of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.svnet_cases import contract, weights

from airworthy.pilots.svnet.contract import write_policy
from benchmarks import svnet

pytest.importorskip("onnx", reason="the extra 'export' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")


def test_a_policy_commands_alike_elsewhere_and_another_does_not(tmp_path: Path) -> None:
    made, tensors = contract("sv_grid", 32), weights("sv_grid")
    write_policy(tmp_path, made, tensors)
    off = svnet.apart(tmp_path, made, tensors, 12)
    assert set(off) == {"onnx", "runner"}
    assert max(off.values()) <= 1e-5
    # 2e-5 of full thrust more than what was exported.
    other = {**tensors, "command.2.bias": tensors["command.2.bias"] - np.array([2e-5, 0, 0, 0], np.float32)}
    changed = svnet.apart(tmp_path, made, other, 12)
    assert min(changed.values()) > 1e-5


def test_bars_are_told_and_a_policy_that_differs_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_policy(tmp_path, contract("sv_grid", 32), weights("sv_grid"))
    rows = iter([0.4, 1.2])
    monkeypatch.setattr(svnet, "sides", lambda *a: {"ours, one thread": None})

    def timed(decide: Any, reading: Any, seconds: float) -> dict[str, float]:
        return {"core_ms": next(rows) if decide is None else 0.3, "wall_ms": 0.5}

    monkeypatch.setattr(svnet, "timed", timed)
    for value, code, said in ((1e-5, 0, "met"), (1.1e-5, 1, "missed")):
        monkeypatch.setattr(svnet, "apart", lambda *a, value=value: {"onnx": 1e-7, "runner": value})
        monkeypatch.setattr(sys, "argv", ["svnet.py", "--policy", str(tmp_path), "--ticks", "1000"])
        assert svnet.main() == code
        out = capsys.readouterr().out
        assert "A decision of sv_grid at 32 x 32" in out
        assert f"apart over 1,000 ticks, {said} (bar 1e-05)." in out
        assert f"A decision: {'0.40 ms of a core, met' if code == 0 else '1.20 ms of a core, missed'} (bar 1 ms)." in out
