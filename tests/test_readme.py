"""The README's commands and Python run as printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import airworthy
from airworthy.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
FENCES = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SHELL = [line.split(" #")[0].strip() for kind, text in FENCES if kind in ("sh", "bash", "shell") for line in text.splitlines()]
WORDS = [*SHELL, *re.findall(r"`((?:airworthy|make) [^`\n]+)`", README)]
AIRWORTHY = list(dict.fromkeys(line for line in WORDS if line.startswith("airworthy ")))
MAKE = sorted({word for line in WORDS if line.startswith("make ") for word in line.split()[1:]})
PYTHON = [text for kind, text in FENCES if kind == "python"]
SLOW = {"tune", "bench", "bench-rays", "evaluate", "film", "synthesize", "train", "validate", "verify", "view"}
"""Commands of minutes, or that serve until they are stopped: they are only asked for their help here; suites of their own run
them."""


def test_the_readme_shows_commands() -> None:
    assert any(line.startswith("airworthy fly ") for line in AIRWORTHY)
    assert {"demo", "test"} <= set(MAKE)


@pytest.mark.parametrize("flights", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_commands_run_as_printed(
    flights: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the README's order in one empty folder: some look at what others wrote, and nothing lands in the checkout.

    Its flights and pictures take minutes together; without them those commands are only asked for their help.
    """
    monkeypatch.chdir(tmp_path)
    for line in AIRWORTHY:
        arguments = shlex.split(line)[1:]
        assert arguments[0] in COMMANDS, line
        short = arguments[0] in SLOW or (arguments[0] in ("fly", "scenes", "sensors") and not flights)
        assert main([arguments[0], "--help"] if short else arguments) == 0, (line, capsys.readouterr().err)


@pytest.mark.parametrize("target", MAKE)
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_python_runs_as_printed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(airworthy.__file__).parents[1])}
    for code in PYTHON:
        arguments = [sys.executable, "-c", code]
        done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", sorted(set(re.findall(r"`airworthy\.(\w+)`", README))))
def test_named_rooms_can_be_imported(room: str) -> None:
    assert hasattr(airworthy, room)
