"""What `airworthy` itself prints, and what becomes of every way that a command can end: `airworthy.cli.main`, `.cli.common`."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fixtures.transcripts import Transcript
from tyro.conf import Positional

from airworthy import __version__
from airworthy.cli import bench, common, main
from airworthy.cli.learning import train
from airworthy.core import native_kernel
from airworthy.core.errors import AirworthyError, AssetWarning

FILES = Path(__file__).parent / "snapshots" / "entry"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def told(capsys: Output) -> Transcript:
    return Transcript(capsys, {__version__: "VERSION"})


def ends(patch: pytest.MonkeyPatch, end: BaseException | int) -> None:
    """Let every command end so."""

    def command(argv: list[str]) -> int:
        if isinstance(end, BaseException):
            raise end
        return end

    patch.setattr(main, "_load", lambda name: command)


def test_words_before_a_command(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some of the commands: what others there are is not this test's.
    monkeypatch.setattr(main, "COMMANDS", {name: main.COMMANDS[name] for name in ("fly", "film", "bench", "train")})
    monkeypatch.setattr(train, "KINDS", {"svnet": "a network, from data", "motor_command": "a policy, in minutes"})
    monkeypatch.setattr(train, "_tasks", lambda: ["recovery", "track"])
    for words in ("", "-h", "--help", "help", "-V", "--version", "--hlep", "--verison", "-x", "--json fly", "flly", "zzz"):
        told.run(f"airworthy {words}", lambda words=words: main.main(words.split()))
    told.run("bench", lambda: main.main(["bench"]))
    for words in ("-h", "--help", "help", "--json", "navigatoin", "zzz"):
        told.run(f"bench {words}", lambda words=words: main.main(["bench", words]))
    for words in ("", "-h", "--help", "--json", "svnt", "zzz"):
        told.run(f"train {words}", lambda words=words: main.main(["train", *words.split()]))
    told.check(FILES / "help.txt")


ENDS: dict[str, BaseException | int] = {
    "a code": 3,
    "nothing": 0,
    "Ctrl-C": KeyboardInterrupt(),
    "a request to terminate": KeyboardInterrupt(signal.SIGTERM),
    "a mistake": AirworthyError("One sentence."),
    "no torch": ModuleNotFoundError("No module named 'torch'", name="torch"),
    "a part of an extra": ModuleNotFoundError("No module named 'cv2.aruco'", name="cv2.aruco"),
    "a fault of ours": ModuleNotFoundError("No module named 'airworthy.nothing'", name="airworthy.nothing"),
    "nameless": ModuleNotFoundError("No module"),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "not permitted": OSError(errno.EPERM, "Operation not permitted", "/there/x"),
    "read only": OSError(errno.EROFS, "Read-only file system", "y"),
    "over its share": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "beyond a limit": OSError(errno.EFBIG, "File too large", "/there/x"),
    "denied": OSError(errno.EACCES, "Permission denied"),
    "another error": OSError(errno.EIO, "Input/output error"),
    "exit": SystemExit(),
    "exit 0": SystemExit(0),
    "exit 2": SystemExit(2),
    "exit with text": SystemExit("Ended here."),
}


@pytest.mark.parametrize("case", ["all"])
def test_ends_of_commands(case: str, told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, end in ENDS.items():
        ends(monkeypatch, end)
        told.run(name, lambda: main.main(["fly"]))
    told.check(FILES / "ends.txt")


def test_a_command_that_is_not_in_this_version(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "later", ("airworthy.cli.later", "in another version"))
    monkeypatch.setitem(main.COMMANDS, "broken", ("tests.fixtures.nothing.later", "its own module is missing"))
    told.run("later", lambda: main.main(["later", "--json"]))
    told.run("broken", lambda: main.main(["broken"]))
    told.check(FILES / "versions.txt")


def test_a_reader_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch, BrokenPipeError())
    silenced = []
    monkeypatch.setattr(main, "_silence_stdout", lambda: silenced.append(1))
    assert main.main(["fly"]) == 141
    assert silenced == [1]


def test_a_silenced_output_goes_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        main._silence_stdout()
        print("lost", flush=True)
        again = os.open(os.devnull, os.O_RDONLY)
        os.close(again)
    assert (tmp_path / "out").read_text() == ""
    assert again == free  # what it opened is closed


def test_closed_streams_are_opened_on_their_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[tuple[int, int]] = []
    closed: list[int] = []
    monkeypatch.setattr(main, "os", SimpleNamespace(**{**vars(os), "dup2": lambda a, b: copied.append((a, b))}))
    monkeypatch.setattr(main.os, "open", lambda *_: 77)
    monkeypatch.setattr(main.os, "close", closed.append)
    opened: list[tuple[Any, ...]] = []
    monkeypatch.setattr("builtins.open", lambda number, mode, **named: opened.append((number, mode, named)) or io.StringIO())
    monkeypatch.setattr(sys, "stderr", None)
    main._open_streams()
    assert (copied, closed) == ([(77, 2)], [77])
    assert opened == [(2, "w", {"encoding": "utf-8", "closefd": False})]
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(main.os, "open", lambda *_: 1)  # the descriptor that was free is that of the stream
    main._open_streams()
    assert (copied, closed) == ([(77, 2)], [77])
    assert opened[1:] == [(1, "w", {"encoding": "utf-8", "closefd": False})]


@pytest.mark.parametrize(("argv", "announced"), [(["fly", "--help"], 1), (["--help"], 0), ([], 0), (["flyy"], 0)])
def test_the_console_script(argv: list[str], announced: int, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    heard: list[Callable[[str], None]] = []
    given: list[list[str]] = []
    monkeypatch.setattr(native_kernel, "announce_builds", heard.append)
    monkeypatch.setattr(main, "main", lambda argv: given.append(argv) or 7)
    monkeypatch.setattr(sys, "argv", ["airworthy", *argv])
    with pytest.raises(SystemExit) as end:
        main.entry()
    assert end.value.code == 7
    assert given == [argv]
    assert len(heard) == announced
    for tell in heard:
        tell("Building.")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "Building.\n" * announced)


def test_warnings_of_files_are_lines_said_once(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[str] = []

    def command(argv: list[str]) -> int:
        for text in ("it lost a, b", "it lost c", "it lost a, b"):
            warnings.warn(text, AssetWarning, stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old", DeprecationWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(main, "_load", lambda name: command)
    monkeypatch.setattr(warnings, "showwarning", lambda message, category, *_, **__: others.append(str(message)))
    told.run("fly", lambda: main.main(["fly"]))
    assert others == ["old"]
    told.check(FILES / "warnings.txt")


# ---- what commands share ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """What to do."""

    name: Positional[str]
    """Which one."""
    size: tuple[int, int] = (3, 4)
    """Width
    and height [px]."""
    rate: float = 2.5
    """Per second [Hz]."""
    count: int = 1
    """Of them."""
    on: bool = False
    """Whether."""


WORDS = (
    "a",
    "a --size 5 6 --rate 1e3 --count 7 --on",
    "a --no-on --count=-1",
    "",
    "a b",
    "a --count 1.5",
    "a --rate fast",
    "a --size 1",
    "a --rat 2",
    "a --on yes",
)


def test_words_become_options(told: Transcript) -> None:
    for words in WORDS:
        told.run(words, lambda words=words: common.run_tyro(Options, words.split(), "airworthy try", "Try it."))
    told.check(FILES / "options.txt")


BOX = """\
\u256d\u2500 Value error \u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256e
\u2502 Error parsing --x:     \u2502
\u2502 'a' is -- not - known. \u2502
\u2502 {rule} \u2502
\u2502 More.                  \u2502
\u2570{rule}\u256f
"""


@pytest.mark.parametrize("rule", ["\u2500" * 22, "-" * 22, "-"])
def test_a_box_is_a_sentence_wherever_it_is_drawn(rule: str) -> None:
    said = "Error parsing --x: 'a' is -- not - known."
    assert common._sentence(BOX.format(rule=rule)) == said
    hyphens = f" Value error\n {rule} \n  Error parsing --x:\n  'a' is -- not - known. \n  {rule}\n  More.\n"
    assert common._sentence(hyphens) == said
    assert common._sentence("") == common._sentence("Title") == "."


def test_help_has_every_word_of_the_fields(capsys: Output) -> None:
    with pytest.raises(SystemExit) as end:
        common.run_tyro(Options, ["--help"], "airworthy try", "Try it.")
    said = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0
    for words in ("usage: airworthy try", "Try it.", "Which one.", "Width and height [px].", "2.5", "3 4", "--no-on"):
        assert words in said


def test_docstrings_are_read_as_before_once_options_are_parsed() -> None:
    import docstring_parser

    before = docstring_parser.parse_from_object
    common.run_tyro(Options, ["a"], "airworthy try", "")
    assert docstring_parser.parse_from_object is before


def test_subcommands(told: Transcript) -> None:
    runs = {name: told.fake(name, code) for name, code in (("list", 0), ("show", 5))}
    commands: Any = {"list": (common.ListConfig, runs["list"], "List."), "show": (Options, runs["show"], "Show.")}
    for words in ("", "--json", "list", "list --json", "show", "show x --count 2", "shwo x", "zzz"):
        told.run(words, lambda words=words: common.run_subcommand("airworthy things", commands, words.split()))
    told.check(FILES / "subcommands.txt")


def test_lists_that_are_given_several_times(told: Transcript) -> None:
    for words in (
        "",
        "x --a 1 2 --b 3 --a 4 y",
        "--a=1 --a=2 3 --c 4",
        "--a --b 1",
        "--a=-1 --b 2 --a 3",
        "x y --d --a 1 --d 2 3",
        "--a= 1",
    ):
        told.run(words, lambda words=words: common.gathered(words.split(), ("--a", "--b")))
    told.check(FILES / "gathered.txt")


ROWS = {
    "numbers and words": (
        ("a", 1, 2.0, None, True),
        ("bcd", 12345, 1.23456e-7, 0.5, False),
        ("e", -3, float("nan"), 1e9, None),
    ),
    "a mixed column": (("a", "x", 2.5, 1, "[kg]"), ("b", 3, "two", 2, "[/bold]")),
    "none": (),
}


@pytest.mark.parametrize("case", ["all"])
def test_tables(case: str, told: Transcript) -> None:
    heads = ("name", "count", "share [%]", "mean [kg]", "yes or no")
    for name, rows in ROWS.items():
        told.run(name, lambda rows=rows: common.show_table("A title", heads, rows))
        told.run(f"{name}, without a title", lambda rows=rows: common.show_table("", heads, rows))
    told.run("wide", lambda: common.show_table("", ("a", "b"), [("x" * 120, "y " * 60)]))
    told.run("json", lambda: common.emit_json({"b": 1, "a": [1.5, None, float("inf"), float("nan")], "c": Path("x/y")}))
    told.check(FILES / "tables.txt")


def test_a_terminal_decides_the_width_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, int]] = []
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    common._console(lambda **named: asked.append(named))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: False))
    common._console(lambda **named: asked.append(named))
    assert asked == [{}, {"width": 200}]


def test_stopped_runs(told: Transcript) -> None:
    told.run("Ctrl-C", lambda: common.interrupted([], "Kept."))
    told.run("terminated", lambda: common.interrupted([15, 2], "Kept."))

    def terminated() -> list[int]:
        with common.stopped_by_terminate() as received:
            try:
                signal.raise_signal(signal.SIGTERM)
            except KeyboardInterrupt as stop:
                return [*received, *stop.args]
        return []

    before = signal.getsignal(signal.SIGTERM)
    told.run("a signal", terminated)
    assert signal.getsignal(signal.SIGTERM) is before
    found: list[object] = []

    def elsewhere() -> None:
        with common.stopped_by_terminate() as received:
            found.extend([list(received), signal.getsignal(signal.SIGTERM) is before])

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [[], True]
    told.check(FILES / "stopped.txt")


def test_folders_that_are_begun(told: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/x").write_text("")
    Path("empty").mkdir()
    Path("file").write_text("")
    told.run("none", lambda: train.refuse_begun([]))
    told.run("one is", lambda: train.refuse_begun([Path("empty"), Path("nowhere"), Path("file"), Path("full")]))
    told.check(FILES / "begun.txt")


def test_every_action_of_bench_is_there() -> None:
    from importlib import import_module

    for module, name, _ in bench._ACTIONS.values():
        assert callable(getattr(import_module(module), name))
    for module, _ in main.COMMANDS.values():
        assert callable(import_module(module).main)
