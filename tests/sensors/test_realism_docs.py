"""What docs/concepts/realism.md shows is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from airworthy.sensors.quality import LEVELS, PROFILES
from airworthy.sensors.realism import realism
from airworthy.sensors.realism.settings import _PIECES


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "concepts" / "realism.md").read_text()


def test_the_snippet_prints_what_it_says(text: str) -> None:
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == code.rstrip().rsplit("# ", 1)[1]


def test_every_piece_has_its_row(text: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert rows == [kind.__name__ for kind in _PIECES.values()]
    assert realism({"preset": "cinematic", "bloom": False, "lens_dirt": False, "vignetting": {"strength": 0.5}})


def test_the_profiles_are_the_tables(text: str) -> None:
    def row(name: str) -> list[str]:
        line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        return [cell.strip() for cell in line.strip("|").split("|")][1:]

    profiles = PROFILES.values()
    assert row("finest meshes") == [LEVELS[p.finest_level] for p in profiles]
    assert row("shadow distance, m") == [f"{p.shadow_distance:g}" for p in profiles]
    assert row("samples per pixel") == [str(p.samples) for p in profiles]
    assert row("mirror rays") == ["yes" if p.reflections else "no" for p in profiles]
    assert row("largest texture level") == [f"1/{1 / p.texture_scale:g}".replace("1/1", "1") for p in profiles]
