"""The page on races keeps its word: its file is a race, its snippets run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.race import check_race, courses_of, load_race, race_classes, race_from_text, race_names

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "race.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_file_of_the_page_is_a_race() -> None:
    (text,) = blocks("toml")
    race = race_from_text(text, "yard.toml")
    check_race(race)
    assert [name for name, _ in race.passes] == ["A", "B", "A"] * 2
    assert len(courses_of(race, "fresh:1/3")) == 3


def test_the_snippets_run(capsys: pytest.CaptureFixture[str]) -> None:
    still = np.tile(np.array(load_race("alphapilot").start.position), (960, 25, 1))
    names: dict[str, Any] = {"pieces": [(still, np.zeros((960, 25), int))] * 2}
    for snippet in blocks("python"):
        exec(snippet, names)
    assert "'runs': 25, 'completed': 0" in capsys.readouterr().out


def test_all_races_and_classes_are_named() -> None:
    named = [f"`{name}`" for name in (*race_names(), *race_classes()) if not name.startswith("lsy")]
    assert [name for name in named if name not in PAGE] == []
