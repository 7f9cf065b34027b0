"""`airworthy verify`: which groups are measured, what is printed, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from airworthy.cli import verify
from airworthy.cli.verify import GROUPS, LEFT_OUT, VerifyConfig, main
from airworthy.core.errors import AirworthyError
from airworthy.verification import Figure
from airworthy.verification.keeping import FigurePart
from airworthy.verification.published import below, explained, zero


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Groups that were measured, in order; each has one figure of its own and one that all share."""
    found: list[tuple[str, bool]] = []

    def group(name: str) -> Iterator[Figure]:
        def figures(everything: bool) -> Iterator[Figure]:
            found.append((name, everything))
            yield zero(f"of {name}", 0)
            yield zero("of all", 0)

        return figures  # type: ignore[return-value]

    for name in GROUPS:
        monkeypatch.setitem(verify.GROUPS, name, group(name))
    for name in LEFT_OUT:
        monkeypatch.setitem(verify.LEFT_OUT, name, lambda name=name: [f"Something of {name} was left out."])
    return found


def test_all_groups_once_each(asked: list[tuple[str, bool]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--all"]) == 0
    assert asked == [(name, True) for name in GROUPS]
    names = [figure["name"] for figure in json.loads(capsys.readouterr().out)]
    # What two groups measure is told once.
    assert sorted(names) == sorted([*(f"of {name}" for name in GROUPS), "of all"])


@pytest.mark.parametrize("group", ["navigation", "gates"])
def test_one_group(asked: list[tuple[str, bool]], capsys: pytest.CaptureFixture[str], group: str) -> None:
    assert main(["--only", group]) == 0
    assert asked == [(group, False)]
    said = capsys.readouterr().out
    assert "2 of 2 figures are as they must be." in said
    assert f"Something of {group} was left out." in said
    assert said.count("Something of") == 1
    assert "run with --all" in said


def test_a_figure_that_fails_fails_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(
        verify.GROUPS, "gates", lambda everything: iter([below("too much", 2.5, 1.0, "m"), zero("many", 3_035_608)])
    )
    assert main(["--only", "gates"]) == 1
    said = capsys.readouterr().out
    assert "0 of 2 figures are as they must be." in said
    assert "NO" in said
    assert "3035608" in said  # not 3.036e+06


def test_figures_of_one_name_that_differ_are_both_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(verify.GROUPS, "gates", lambda everything: iter([zero("of two", count) for count in (1, 0, 1)]))
    assert main(["--only", "gates", "--json"]) == 1
    assert [figure["passed"] for figure in json.loads(capsys.readouterr().out)] == [False, True]


def test_why_a_figure_is_not_as_it_must_be_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(
        verify.GROUPS, "gates", lambda everything: iter([explained(below("much", 2.5, 1.0), "It is heavy."), zero("of it", 0)])
    )
    assert main(["--only", "gates"]) == 1
    assert capsys.readouterr().out.count("It is heavy.") == 1
    assert main(["--only", "gates", "--json"]) == 1
    assert [figure["note"] for figure in json.loads(capsys.readouterr().out)] == ["It is heavy.", ""]


# ---- Found one after the other, and kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("json_wanted", [True, False])
def test_figures_are_printed_as_they_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], json_wanted: bool
) -> None:
    """A program that is killed has printed what it found: each is on a line of its own."""
    said: list[str] = []

    def figures(everything: bool) -> Iterator[Figure]:
        for name in ("one", "two"):
            yield zero(name, 0)
            said.append(capsys.readouterr().out)

    monkeypatch.setitem(verify.GROUPS, "gates", figures)
    assert main(["--only", "gates", *["--json"] * json_wanted]) == 0
    assert ["one" in said[0], "two" in said[0], "two" in said[1]] == [True, False, True]
    if json_wanted:
        assert json.loads(said[1].removeprefix(",\n"))["name"] == "two"
        assert json.loads("".join(said) + capsys.readouterr().out)[1]["name"] == "two"


def test_no_figures_are_a_list_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(verify.GROUPS, "gates", lambda everything: iter(()))
    assert main(["--only", "gates", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_run_that_was_stopped_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of a group in parts and of one without; what is told in the end is what a whole run tells."""
    stop, measured = [True], []

    def part(name: str, count: int) -> FigurePart:
        def rows(memo: object) -> Iterator[Figure]:
            measured.append(name)
            for number in range(count):
                if name == "second" and number == 1 and stop.pop():
                    raise KeyboardInterrupt
                yield zero(f"{name} {number}", 0)

        return FigurePart(name, rows)

    monkeypatch.setitem(verify.GROUPS, "gates", lambda everything: [part("first", 2), part("second", 3)])
    monkeypatch.setitem(verify.GROUPS, "learning", lambda everything: iter([zero("alone", 0)]))
    words = ["--only", "gates", "learning", "--json", "--out", str(tmp_path / "kept")]
    assert main(words) == 130
    out, said = capsys.readouterr()
    assert [figure["name"] for figure in json.loads(out)] == ["first 0", "first 1", "second 0"]
    assert "Stopped after 3 figures; the same command goes on" in said
    stop.append(False)
    assert main(words) == 0
    assert [figure["name"] for figure in json.loads(capsys.readouterr().out)] == [
        *("first 0", "first 1", "second 0", "second 1", "second 2", "alone")
    ]
    assert measured == ["first", "second", "second"]
    with pytest.raises(AirworthyError, match="with other settings"):
        main([*words, "--all"])
    stop.append(True)
    assert main(["--only", "gates"]) == 130
    assert "nothing is kept without --out" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text("{}")
    with pytest.raises(AirworthyError, match="holds a training, over which nothing else is written"):
        main(["--only", "gates", "--out", str(tmp_path)])


def test_groups_that_are_not_there_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--only", "navigate"])
    assert stopped.value.code == 2


def test_every_group_can_be_asked_for() -> None:
    assert set(LEFT_OUT) <= set(GROUPS)
    assert len(verify.left_out(VerifyConfig(only=("motion",), all=True))) <= 1


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(("only", "concerned"), [((), True), (("geometry",), True), (("gates",), False)])
def test_a_missing_embree_is_told_where_it_would_have_been_asked(
    asked: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, there: bool, only: tuple[str, ...], concerned: bool
) -> None:
    monkeypatch.setattr(verify, "find_spec", lambda name: object() if there else None)
    messages = [line for line in verify.left_out(VerifyConfig(only=only)) if "embreex" in line]
    assert len(messages) == (concerned and not there)
