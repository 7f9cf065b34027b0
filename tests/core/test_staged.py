"""Folders are replaced as a whole: killed at any system call they hold the old result or the new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airworthy.core import _staged, files
from airworthy.core.errors import AirworthyError

CALLS = ("open", "write", "fsync", "replace", "rename", "chmod", "close", "mkdir", "link", "unlink", "rmdir")
ANCHOR = "meta.json"
OLD = {"meta.json": "old", "flight": "old flight", "pictures/1": "old 1", "pictures/2": "old 2", "report": "old report"}
NEW = {"meta.json": "new", "flight": "new flight", "pictures/1": "new 1"}
USERS = {"notes.txt": "mine", "plots/a.png": "my plot"}


def owns(name: str) -> bool:
    """Entries of a run."""
    return name in {"meta.json", "flight", "pictures", "report"}


def content(folder: Path) -> dict[str, str]:
    """Files by their paths, without the lock of a dead run."""
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return {name: text for name, text in found.items() if not name.endswith(".lock")}


def put(folder: Path, what: dict[str, str]) -> None:
    for name, text in what.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write(target: Path, what: dict[str, str] = NEW, end: Callable[[files.StagedFolder], object] = lambda run: None) -> None:
    """A run, and what it does at its end."""
    with files.staged_folder(target, owns, ANCHOR) as run:
        for name, text in what.items():
            (run.path / name).parent.mkdir(exist_ok=True)
            files.write_text(run.path / name, text)
        end(run)


def killed_at(n: int, work: Callable[[], object]) -> bool:
    """Do it in a child that is killed before the n-th system call; whether it lived to the end."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **keywords: Any) -> Any:
                nonlocal count
                count += 1
                if count == n:
                    os.kill(os.getpid(), 9)
                return original(*arguments, **keywords)

            return call

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        swap = _staged._swap_call()
        if swap is not None:
            _staged._swap_call = lambda: counted(swap)  # type: ignore[assignment, arg-type]
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


EXCHANGES = ["exchanged", "renamed", "inside"]


@pytest.fixture(params=EXCHANGES)
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the folder is replaced."""
    if request.param == "renamed":
        monkeypatch.setattr(_staged, "_swap_call", lambda: None)
    elif request.param == "inside":
        monkeypatch.setattr(_staged, "_cannot_move", lambda target: True)
    elif _staged._swap_call() is None:
        pytest.skip("this system does not exchange folders")
    return str(request.param)


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_call_leaves_the_old_or_the_new_result(exchange: str, stride: int, tmp_path: Path) -> None:
    outcomes, n = [], 1 - stride
    while True:
        n += stride
        home = tmp_path / str(n)
        put(home / "run", OLD | USERS)
        lived = killed_at(n, lambda home=home: write(home / "run"))  # type: ignore[misc]
        found = content(home / "run") if (home / "run").exists() else {}
        mine = {name: text for name, text in found.items() if owns(name.partition("/")[0])}
        if exchange == "exchanged":
            assert mine in (OLD, NEW)
        elif exchange == "renamed":
            assert mine in (OLD, NEW, {})  # the moment between two renames
        elif ANCHOR in mine:  # or nothing takes it for a result
            assert mine in (OLD, NEW)
        outcomes.append("new" if mine == NEW else "old" if mine == OLD else "none")
        write(home / "run", {ANCHOR: "third"})  # the next run mends and sweeps
        assert content(home / "run") == {ANCHOR: "third"} | USERS
        assert [path.name for path in home.iterdir()] == ["run"]
        shutil.rmtree(home)
        if lived:
            break
    assert outcomes[0] == "old"
    assert outcomes[-1] == "new"
    order = [outcome for k, outcome in enumerate(outcomes) if k == 0 or outcome != outcomes[k - 1]]
    assert order in (["old", "new"], ["old", "none", "new"])
    assert n > 20


@pytest.mark.slow
def test_a_kill_of_the_sweep_loses_nothing_either(exchange: str, tmp_path: Path) -> None:
    """The user's folder that was not yet carried over is in the end, wherever the second run was killed too."""
    first, second = tmp_path / "first", tmp_path / "second"
    put(first / "run", OLD | USERS)
    n = 25  # the result is being published
    while not killed_at(n, lambda: write(first / "run")):
        for k in (6, 14, 22, 40):
            shutil.copytree(first, second)
            killed_at(k, lambda: write(second / "run"))
            write(second / "run", {ANCHOR: "third"})
            assert content(second / "run") == {ANCHOR: "third"} | USERS
            shutil.rmtree(second)
        shutil.rmtree(first)
        put(first / "run", OLD | USERS)
        n += 5


def test_an_error_discards_and_leaves_the_old(exchange: str, tmp_path: Path) -> None:
    put(tmp_path / "run", OLD | USERS)
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "run", end=lambda run: 1 // 0)
    assert content(tmp_path / "run") == OLD | USERS
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_is_worth_keeping_is_published_by_an_error_too(exchange: str, tmp_path: Path) -> None:
    put(tmp_path / "run", OLD | USERS)

    def interrupted(run: files.StagedFolder) -> None:
        run.keep()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "run", end=interrupted)
    assert content(tmp_path / "run") == NEW | USERS


def test_a_fresh_folder_and_what_is_added_after_publishing(exchange: str, tmp_path: Path) -> None:
    with files.staged_folder(tmp_path / "a" / "run", owns, ANCHOR) as run:
        assert not run.replaces
        put(run.path, {ANCHOR: "new"})
        assert not (tmp_path / "a" / "run" / ANCHOR).exists()
        run.publish()
        assert run.path == tmp_path / "a" / "run"
        put(run.path, {"report": "new report"})
        with pytest.raises(AirworthyError, match="Another run"), files.lock_folder(tmp_path / "a" / "run"):
            pass
    assert content(tmp_path / "a" / "run") == {ANCHOR: "new", "report": "new report"}
    with files.lock_folder(tmp_path / "a" / "run"):
        pass
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["run"]


def test_a_living_run_is_refused_and_left_alone(exchange: str, tmp_path: Path) -> None:
    put(tmp_path / "run", OLD)
    with files.staged_folder(tmp_path / "run", owns, ANCHOR) as run:
        put(run.path, NEW)
        with pytest.raises(AirworthyError, match=f"process {os.getpid()}"):
            write(tmp_path / "run", {ANCHOR: "third"})
    assert content(tmp_path / "run") == NEW


@pytest.fixture
def stood_in(tmp_path: Path) -> Iterator[Path]:
    """A folder in which somebody stands."""
    (tmp_path / "run").mkdir()
    before = Path.cwd()
    os.chdir(tmp_path / "run")
    yield tmp_path / "run"
    os.chdir(before)


def test_whoever_stands_in_a_folder_stands_in_it_afterwards(stood_in: Path) -> None:
    put(stood_in, OLD | USERS)
    write(Path())
    assert content(Path()) == NEW | USERS
    assert os.path.samefile(".", stood_in)


def test_a_link_stays_one(tmp_path: Path) -> None:
    put(tmp_path / "disk" / "run", OLD)
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    write(tmp_path / "run")
    assert (tmp_path / "run").is_symlink()
    assert content(tmp_path / "disk" / "run") == NEW
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["run"]


def test_temporary_files_of_killed_writers_are_swept_and_no_others(tmp_path: Path) -> None:
    put(tmp_path / "run", OLD | {".meta.0123456789abcdef.tmp.json": "half", ".hidden.tmp": "mine", ".run.new": "mine"})
    put(tmp_path, {".run.0123456789abcdef.new/meta.json": "half", ".other.0123456789abcdef.new/meta.json": "another's"})
    write(tmp_path / "run")
    assert content(tmp_path / "run") == NEW | {".hidden.tmp": "mine", ".run.new": "mine"}
    assert {path.name for path in tmp_path.iterdir()} == {"run", ".other.0123456789abcdef.new"}


@pytest.mark.parametrize("kind", ["new", "old"])
def test_the_users_newer_file_is_not_overwritten_by_what_a_killed_run_left(kind: str, tmp_path: Path) -> None:
    left = f".run.0123456789abcdef.{kind}"
    put(tmp_path, {f"{left}/notes.txt": "older", f"{left}/lost.txt": "only here", f"{left}/meta.json": "half"})
    put(tmp_path / "run", OLD | {"notes.txt": "newer"})
    write(tmp_path / "run")
    assert content(tmp_path / "run") == NEW | {"notes.txt": "newer", "lost.txt": "only here"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_file_that_appears_while_a_run_takes_its_place_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user writes notes anew in the moment after the exchange, before the old folder is dissolved."""
    take_place = _staged._take_place

    def and_then_notes_are_written(staged: Path, target: Path) -> None:
        take_place(staged, target)
        files.write_text(target / "notes.txt", "newer")

    monkeypatch.setattr(_staged, "_take_place", and_then_notes_are_written)
    put(tmp_path / "run", OLD | USERS)
    write(tmp_path / "run")
    assert content(tmp_path / "run") == NEW | USERS | {"notes.txt": "newer"}
