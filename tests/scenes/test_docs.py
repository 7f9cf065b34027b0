"""The Python of docs/howto/scenes.md runs as printed, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SNIPPETS = re.findall(
    r"^```python\n(.*?)^```", (Path(__file__).parents[2] / "docs/howto/scenes.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("index", range(len(SNIPPETS)))
def test_a_snippet_runs(
    index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(SNIPPETS[index], f"snippet {index}", "exec"), {})
    said = [" ".join(line.split()) for line in capsys.readouterr().out.replace("]\n ", "] ").splitlines()]
    promised = re.findall(r"^print\(.*\)  # (\[\[.*)$", SNIPPETS[index], re.MULTILINE)
    for line in promised:
        assert " ".join(line.split()) in said, said


def test_a_moving_obstacle_is_shown() -> None:
    (shown,) = (text for text in SNIPPETS if "Actor(" in text and "Waypoint(" in text and "Splats" not in text)
    assert len(re.findall(r"# \[\[", shown)) == 2
