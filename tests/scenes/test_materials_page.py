"""The page docs/howto/materials.md says what the library holds, and its Python runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.scenes.materials import material_names, material_recipe

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/materials.md").read_text()


def test_the_table_holds_every_material_with_its_numbers() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) to ([\d.]+): ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == material_names()
    for name, tile, albedo, low, high, source in rows:
        recipe = material_recipe(name)
        assert (float(tile), float(albedo), float(low), float(high)) == (recipe.tile, recipe.albedo, *recipe.albedo_range), name
        assert source == recipe.source


def test_its_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AIRWORTHY_CACHE", str(tmp_path))
    place: dict[str, object] = {}
    for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(text, "snippet", "exec"), place)  # the second goes on where the first ends
    assert capsys.readouterr().out == "(128, 128, 4) True\n"


def test_the_sheet_is_small_enough_for_a_page() -> None:
    assert 50_000 < (ROOT / "docs/images/materials.jpg").stat().st_size < 250_000


def test_the_command_lists_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.setenv("AIRWORTHY_CACHE", str(tmp_path / "cache"))
    assert main(["scenes", "materials", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == material_names()
    line = ["scenes", "materials", "steel", "steel@2", "--out", str(tmp_path / "x.png"), "--cell", "48", "--map-size", "64"]
    assert main(line) == 0
    assert "Wrote" in capsys.readouterr().out
    with Image.open(tmp_path / "x.png") as image:
        assert image.size == (96, 66)
        colors = image.crop((0, 0, 48, 48)).getcolors(48 * 48)
    # A picture, and no flat field.
    assert colors is not None
    assert len(colors) > 100


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("steal", "Unknown material 'steal'. Closest: 'steel'"),
        ("steel --out x.txt", "expected an image that ends in .png, .jpg or .webp"),
        ("steel --out x.png --cell 7", "cell"),
    ],
)
def test_mistakes_are_one_sentence(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenes", "materials", *line.split()]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
