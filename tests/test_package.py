"""The package as a stranger meets it: how long it takes to load, what it loads, and what the command line answers."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import airworthy
from airworthy.cli import common
from airworthy.cli import main as cli
from airworthy.core.errors import AirworthyError

SOURCE = Path(airworthy.__file__).parents[1]
HEAVY = {"torch", "matplotlib", "pyarrow", "scipy", "warp", "tyro", "rich", "trimesh", "PIL", "jinja2"}


def fresh(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in an interpreter of its own."""
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def airworthy_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return fresh("-m", "airworthy.cli.main", *arguments)


def modules_after(statement: str) -> set[str]:
    result = fresh("-c", f"{statement}\nimport sys, json; print(json.dumps(sorted(sys.modules)))")
    assert result.returncode == 0, result.stderr
    return {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}


def test_import_is_light() -> None:
    assert not modules_after("import airworthy") & HEAVY


def test_help_is_light() -> None:
    assert not modules_after("from airworthy.cli.main import main; main(['--help'])") & HEAVY


def test_flying_needs_no_torch_and_vehicles_no_kernels() -> None:
    loaded = modules_after(
        "import airworthy.core.files, airworthy.core.frames, airworthy.core.jobs.progress, airworthy.vehicles"
    )
    assert not loaded & (HEAVY - {"scipy"})


def test_every_command_loads_without_torch() -> None:
    # A base installation has none: what needs it says so when it begins to train, and not before.
    trainings = {f"airworthy.cli.learning.train_{kind}" for kind in ("hover", "boundary")}
    modules = sorted({module for module, _ in cli.COMMANDS.values()} | trainings)
    result = fresh("-c", f"import sys; sys.modules['torch'] = None\nimport {', '.join(modules)}")
    assert (result.returncode, result.stderr) == (0, "")


def test_rooms_load_on_first_use() -> None:
    assert isinstance(airworthy.core, types.ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'basement'"):
        _ = airworthy.basement


def test_help_names_every_command() -> None:
    result = airworthy_command("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage: airworthy COMMAND")
    for name, (_, summary) in cli.COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert summary in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_version() -> None:
    for result in (airworthy_command("--version"), fresh("-m", "airworthy", "--version")):
        assert (result.returncode, result.stdout) == (0, f"airworthy {airworthy.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vehicels"], "Unknown command 'vehicels'. Closest: 'vehicles', 'view'. Known: "),
        (
            ["--envs", "3", "fly"],
            "The command comes first, '--envs' after it: airworthy COMMAND [options]; see airworthy --help.",
        ),
    ],
)
def test_a_wrong_command_is_one_sentence_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = airworthy_command(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_no_command_prints_help_and_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().out.startswith("usage: ")


def give(command: Callable[[list[str]], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `airworthy test-command` run this function."""
    module = types.ModuleType("airworthy.cli.test_command")
    module.main = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "test-command", (module.__name__, "a test"))


def raising(error: BaseException) -> Callable[[list[str]], int]:
    def command(argv: list[str]) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (AirworthyError("Unknown vehicle 'x'."), 2, "Unknown vehicle 'x'.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (SystemExit(2), 2, ""),
        (SystemExit(None), 0, ""),
        (SystemExit("no"), 2, "no\n"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/f"), 2, "'runs/f': No space left on device.\n"),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch.nn"),
            2,
            "This needs the package 'torch': pip install 'airworthy[learn]'.\n",
        ),
    ],
)
def test_how_a_command_may_end(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(raising(error), monkeypatch)
    assert cli.main(["test-command"]) == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("error", [ZeroDivisionError(), ModuleNotFoundError(name="airworthy.gone"), FileNotFoundError(2, "x")])
def test_a_fault_of_ours_keeps_its_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    give(raising(error), monkeypatch)
    with pytest.raises(type(error)):
        cli.main(["test-command"])


def test_a_command_that_this_version_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(cli.COMMANDS, "capture", ("airworthy.cli.not_there", "a test"))
    assert cli.main(["capture"]) == 2
    assert "has no command 'capture'" in capsys.readouterr().err


def test_a_reader_that_leaves_is_not_an_error() -> None:
    program = (
        "import sys, types; from airworthy.cli import main as cli\n"
        "module = types.ModuleType('airworthy.cli.flood'); sys.modules[module.__name__] = module\n"
        "module.main = lambda argv: [print('x' * 1000) for _ in range(10000)] and 0\n"
        "cli.COMMANDS['flood'] = (module.__name__, ''); sys.argv = ['airworthy', 'flood']; cli.entry()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


@dataclass(frozen=True)
class Options:
    """Options of a command."""

    duration: float = 5.0
    """Length of the flight [s]."""
    seed: int = 0
    """Seed of every random number."""


def test_options_come_from_a_dataclass(capsys: pytest.CaptureFixture[str]) -> None:
    parsed = common.run_tyro(Options, ["--duration", "2.5"], "airworthy test", "Test.")
    assert parsed == Options(duration=2.5)
    with pytest.raises(SystemExit) as end:
        common.run_tyro(Options, ["--help"], "airworthy test", "Test.")
    assert end.value.code in (0, None)
    text = capsys.readouterr().out
    assert "airworthy test" in text
    assert "Length of the flight [s]." in text
    assert "5.0" in text


@pytest.mark.parametrize(
    ("arguments", "what"),
    [(["--duraton", "1"], "--duraton"), (["--seed", "x"], "'x'"), (["extra"], "extra"), (["--seed"], "--seed")],
)
def test_wrong_options_say_what_is_wrong_and_exit_with_2(
    arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        common.run_tyro(Options, arguments, "airworthy test", "Test.")
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert what in err
    assert "Traceback" not in err


def test_json_goes_to_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    common.emit_json([Options()])
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"duration": 5.0, "seed": 0}]
    assert err == ""


def test_tables_show_units_and_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    common.show_table("Vehicles", ["name", "mass [kg]", "reversible"], [["carl", 1.1440001, False], ["x[b]y", None, True]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["Vehicles", "name   mass [kg]  reversible", "carl       1.144  no", "x[b]y             yes"]


def test_help_does_not_break_sentences(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A docstring of several lines is one text in the help, broken only where the terminal ends."""
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["synthesize", "--help"]) == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    rows = [line.strip("│| ") for line in plain.splitlines()]
    start = next(k for k, row in enumerate(rows) if row.startswith("--view"))
    text = rows[start + 1 : start + 5]
    assert "shows the same in a quarter of the pixels" in " ".join(text)
    # Columns are at least 50 wide and words at most 12: a shorter line is a break that nobody wants.
    assert all(len(row) > 35 for row in text[:-1]), text
