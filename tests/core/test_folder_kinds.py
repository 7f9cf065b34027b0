"""What a folder holds, and that nothing writes over what another command made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airworthy.benchmarks.tracking.store import MANIFEST_FILE
from airworthy.cli.demo.page import DEMO_FILE
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.block_job import KINDS, kind_of, refuse_foreign, where_else
from airworthy.learning.datasets.config import DATASET_FILE
from airworthy.pilots.svnet.contract import CONTRACT_FILE
from airworthy.simulation.flights import FLIGHT_FILE


def put(folder: Path, name: str) -> Path:
    """A folder with a file in it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("{}")
    return folder


def test_the_kinds_are_named_by_the_files_that_the_commands_leave() -> None:
    assert {DEMO_FILE, DATASET_FILE, MANIFEST_FILE, CONTRACT_FILE, FLIGHT_FILE} < set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_is_its_own_and_nobody_elses(tmp_path: Path, name: str) -> None:
    assert kind_of(tmp_path) == ""
    refuse_foreign(tmp_path)
    put(tmp_path, name)
    assert kind_of(tmp_path) == KINDS[name]
    refuse_foreign(tmp_path, name)
    with pytest.raises(AirworthyError, match=f"holds {KINDS[name]}, over which nothing else is written: choose another --out"):
        refuse_foreign(tmp_path, "other.json")


@pytest.mark.parametrize("name", ["summary.json", "report.html"])
def test_a_summary_of_nobody_knows_what_is_not_written_over(tmp_path: Path, name: str) -> None:
    put(tmp_path, "notes.txt")
    refuse_foreign(tmp_path, DEMO_FILE)
    put(tmp_path, name)
    with pytest.raises(AirworthyError, match=f"holds a {name} that no run here has left"):
        refuse_foreign(tmp_path, DEMO_FILE)
    # Who leaves it itself goes on, and so does who has left another file of its own beside it.
    refuse_foreign(tmp_path, name)
    put(tmp_path, DEMO_FILE)
    refuse_foreign(tmp_path, DEMO_FILE)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(AirworthyError, match="is a file; --out names a folder"):
        refuse_foreign(tmp_path / "x")
    refuse_foreign(tmp_path / "not there")


def test_the_working_directory_is_nobodys_while_it_holds_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_foreign(".", DEMO_FILE)
    for name in ("d", "c", "b", "a"):
        put(tmp_path, name)
    for word in (".", str(tmp_path), "../" + tmp_path.name):
        with pytest.raises(
            AirworthyError, match=r"is the folder you work in, and holds other files \(a, b, c, \.\.\.\): choose an"
        ):
            refuse_foreign(word, DEMO_FILE)
    put(tmp_path, DEMO_FILE)
    refuse_foreign(".", DEMO_FILE)


def test_what_was_meant_is_said(tmp_path: Path) -> None:
    assert where_else("nowhere", DATASET_FILE) == "There is no folder 'nowhere'; expected the folder of a data set."
    assert "does not hold a data set: there is no dataset.json in it." in where_else(tmp_path, DATASET_FILE)
    put(tmp_path, DEMO_FILE)
    assert where_else(tmp_path, DATASET_FILE).endswith("holds a demo, not a data set.")
    put(tmp_path / "data", DATASET_FILE)
    assert where_else(tmp_path, DATASET_FILE).endswith(f"did you mean {str(tmp_path / 'data')!r}?")
    put(tmp_path, "file")
    assert where_else(tmp_path / "file", DATASET_FILE).endswith("is a file; expected the folder of a data set.")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("synthesize", "--courses", "hover", "--view", "none"), FLIGHT_FILE),
        (("evaluate", "--conditions", "baseline", "--flights", "1"), FLIGHT_FILE),
        (("evaluate", "--conditions", "baseline", "--flights", "1"), DATASET_FILE),
        (("demo", "--flights", "1", "--quick"), MANIFEST_FILE),
    ],
)
def test_commands_leave_a_foreign_folder_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], name: str
) -> None:
    put(tmp_path, name)
    (tmp_path / "report.html").write_text("evidence")
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert f"holds {KINDS[name]}, over which" in capsys.readouterr().err
    found: dict[str, Any] = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {name: "{}", "report.html": "evidence"}


def test_a_folder_with_one_of_several_files_of_its_writer_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text("{}")
    refuse_foreign(tmp_path, "contract.json", "training.json")
    with pytest.raises(AirworthyError, match="holds a training"):
        refuse_foreign(tmp_path, "contract.json")


def test_at_most_a_thousand_entries_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one folder that is meant is found as the thousandth entry, and no more as the next."""
    for place, found in ((1000, True), (1001, False)):
        monkeypatch.setattr(os, "scandir", lambda folder, place=place: _entries(place))
        meant = put(tmp_path / "meant", "scene.toml")
        assert (str(meant) in where_else(tmp_path, "scene.toml")) == found


@contextlib.contextmanager
def _entries(place: int) -> Iterator[Iterator[Any]]:
    """Files, and the folder `meant` as the entry of a number."""
    files = SimpleNamespace(name="file", is_dir=lambda: False)
    meant = SimpleNamespace(name="meant", is_dir=lambda: True)
    yield iter([files] * (place - 1) + [meant])
