"""What docs/concepts/trajectories.md shows works, and its table is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.main import main
from airworthy.trajectories import course, course_names


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "concepts" / "trajectories.md").read_text()


def test_the_snippets_run_and_print_what_they_say(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "trajectories.md", "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        assert bool(printed) == ("print(" in code)
        assert printed == [line[2:] for line in code.splitlines() if printed and line.startswith("# ")]


def test_the_commands_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    Path("mine.json").write_text(block)
    # Drawing opens a browser: `tests/cli/test_course_drawing.py` runs it.
    commands = re.findall(r"^    airworthy (courses (?!draw).*)$", text, re.MULTILINE)
    assert len(commands) == 3
    for line in commands:
        assert main(re.split(r"  +", line)[0].split()) == 0


def test_the_table_is_the_catalogue(text: str) -> None:
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    table = {name: kind.strip() for names, kind in rows for name in re.findall(r"`([^`]+)`", names)}
    assert table == {name: course(name).kind for name in course_names()}
