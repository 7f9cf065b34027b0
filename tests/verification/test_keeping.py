"""Figures that are kept: every row from when it is found, whatever ends the run, and the same rows in the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.verification import keeping
from airworthy.verification.keeping import FigurePart, FigureStore, Memo, figure_identity, memo_in_memory
from airworthy.verification.published import Figure, at_least, below, between, explained, zero

ROWS = [zero("first", 0), below("second", 2.5, 1.0, "m"), Figure("third", math.nan, "a number", False, note="it is none")]


class Measuring:
    """Yields three rows, the second by a result that takes long, and may be killed before any of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ends_before = 4

    def __call__(self, memo: Memo) -> Iterator[Figure]:
        self.asked.append("begun")
        for number, row in enumerate(ROWS):
            if number == self.ends_before:
                raise RuntimeError("killed")
            if number == 1:
                assert memo("long", self.long) == {"value": 2.5}
            yield row

    def long(self) -> dict[str, Any]:
        self.asked.append("long")
        return {"value": 2.5}


@pytest.fixture
def measuring() -> Measuring:
    return Measuring()


def same(found: list[Figure], wanted: list[Figure]) -> bool:
    """NaN is no equal of itself."""
    return list(map(repr, found)) == list(map(repr, wanted))


def told_until_killed(folder: Path, part: FigurePart) -> list[Figure]:
    """Return what a run told before it was killed: what ends it may leave it no time, so rows are kept before they are told."""
    told: list[Figure] = []
    rows = FigureStore(folder, {"all": False}).figures(part)
    with suppress(RuntimeError):
        while True:
            told.append(next(rows))
            kept = FigureStore(folder, {"all": False}).content(part.name)["rows"]
            assert [row["name"] for row in kept] == [row.name for row in told]
    return told


@pytest.mark.parametrize("ends_before", [0, 1, 2])
def test_a_killed_part_keeps_what_it_told_and_goes_on(tmp_path: Path, measuring: Measuring, ends_before: int) -> None:
    part = FigurePart("a", measuring)
    measuring.ends_before = ends_before
    told = told_until_killed(tmp_path, part)
    assert same(told, ROWS[:ends_before])
    measuring.ends_before = 4
    rows = FigureStore(tmp_path, {"all": False}).figures(part)
    # What was found is told at once, before anything is measured.
    begun = len(measuring.asked)
    assert same([next(rows) for _ in told], ROWS[:ends_before])
    assert len(measuring.asked) == begun
    assert same([*told, *rows], ROWS)
    assert same(list(FigureStore(tmp_path, {"all": False}).figures(part)), ROWS)
    assert measuring.asked.count("begun") == 2
    assert measuring.asked.count("long") == 1


def test_a_memo_of_one_run_makes_each_result_once(measuring: Measuring) -> None:
    memo = memo_in_memory()
    for _ in range(2):
        assert same(list(measuring(memo)), ROWS)
    assert measuring.asked == ["begun", "long", "begun"]


def test_a_folder_of_another_verification_is_refused(tmp_path: Path, measuring: Measuring) -> None:
    list(FigureStore(tmp_path, {"all": False}).figures(FigurePart("a", measuring)))
    with pytest.raises(AirworthyError, match=r"holds a verification with other settings \(all: False before, True now\)"):
        FigureStore(tmp_path, {"all": True})
    path = tmp_path / "blocks" / "a.json"
    path.write_text(path.read_text().replace("2.5", "0.5"))
    with pytest.raises(AssetError, match="was changed or damaged"):
        list(FigureStore(tmp_path, {"all": False}).figures(FigurePart("a", measuring)))


def test_rows_are_of_this_program_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert figure_identity(False)["program"] == figure_identity(False)["program"]
    package = tmp_path / "airworthy"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(keeping.airworthy, "__file__", str(package / "__init__.py"))
    found = {figure_identity(True)["program"]}
    for file, text in (("room/a.py", "x = 1"), ("room/a.py", "x = 2"), ("room/b.toml", "x = 2")):
        (package / file).write_text(text)
        found.add(figure_identity(True)["program"])
    assert len(found) == 4
    assert figure_identity(True)["all"]


def test_bounds_and_reasons() -> None:
    assert at_least("a", 1.0, 1.0).passed
    assert not at_least("a", 0.9, 1.0).passed
    assert [between("a", x, 1.0, 2.0).passed for x in (0.9, 1.0, 1.5, 2.0, 2.1)] == [False, True, True, True, False]
    assert between("a", 1.5, 1.0, 2.0, "m").aim == "1 to 2"
    assert explained(below("a", 2.0, 1.0), "because").note == "because"
    assert explained(below("a", 1.0, 1.0), "because").note == ""
