"""Runs that are stopped: by Ctrl-C, by a batch system, by force; and two in one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import airworthy
from airworthy.cli.main import main
from airworthy.core.files import sha256_file

SOURCE = str(Path(airworthy.__file__).parents[1])
LOCK = ".airworthy.lock"
LONG = ("fly", "--course", "hover", "--hold", "20000", "--envs", "2", "--record-rate", "10", "--no-report")
SHORT = ("fly", "--course", "hover", "--hold", "0", "--no-report")
KEPT = "Interrupted: what was flown until then is kept; unfinished flights count as aborted."


class Command:
    """`airworthy` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "airworthy.cli.main", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def flying(self, run: Path, seconds: float = 0.2) -> None:
        """Wait until it has locked its folder, and a moment longer."""
        limit = time.monotonic() + 60.0
        while not (run / LOCK).exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.02)
        time.sleep(seconds)

    def ended(self) -> tuple[int, str, list[str]]:
        """Exit code, standard output, and the lines of standard error that are ours."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, [line for line in err.splitlines() if not line.startswith("Warp CUDA warning")]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[list[Command]]:
    """Commands to be killed at the end, however the test goes."""
    started: list[Command] = []
    yield started
    for command in started:
        command.process.kill()
        command.process.communicate()


def start(commands: list[Command], folder: Path, *arguments: str) -> Command:
    commands.append(Command(folder, *arguments))
    return commands[-1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_keeps_what_was_flown(number: signal.Signals, code: int, commands: list[Command], tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = start(commands, tmp_path, *LONG, "--json", "--out", "run")
    command.flying(run)
    command.process.send_signal(number)
    found, out, err = command.ended()
    assert (found, err) == (code, [KEPT])
    assert json.loads(out)["outcomes"]["aborted"] == 2
    assert {path.name for path in run.iterdir()} == {"config.json", "flight.parquet", "meta.json", "summary.json"}
    meta = json.loads((run / "meta.json").read_text())
    assert meta["interrupted"] is True
    assert meta["rows"] > 2
    assert meta["sha256"] == sha256_file(run / "flight.parquet")
    flights = json.loads((run / "summary.json").read_text())["flights"]
    assert all(0.0 < flight["duration_s"] < 20000.0 for flight in flights)


def test_a_stop_before_the_flight_is_one_word(commands: list[Command], tmp_path: Path) -> None:
    command = start(commands, tmp_path, *LONG, "--out", "run")
    time.sleep(0.25)
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.ended()
    # On a slow machine Python itself may still be starting, which ends by the signal and says so.
    assert code in (130, -signal.SIGINT)
    assert out == ""
    assert code != 130 or err in (["Interrupted."], [KEPT])


def test_two_runs_in_one_folder_and_a_killed_one(
    commands: list[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is refused while the first lives; the first's death frees the folder, and leaves the older run whole."""
    run = tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "--out", "run"]) == 0
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    first = start(commands, tmp_path, *LONG, "--out", "run")
    first.flying(run)
    capsys.readouterr()
    assert main([*SHORT, "--out", "run"]) == 2
    refusal = f"Another run (process {first.process.pid}) is writing in 'run': wait for it or choose another folder.\n"
    assert capsys.readouterr() == ("", refusal)
    first.process.kill()
    assert first.ended()[0] == -signal.SIGKILL
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.name != LOCK} == before
    assert main([*SHORT, "--seed", "1", "--out", "run"]) == 0
    assert main(["replay", "run"]) == 0
    assert LOCK not in {path.name for path in run.iterdir()}


@pytest.mark.slow
def test_kills_at_any_time_leave_whole_files(commands: list[Command], tmp_path: Path) -> None:
    """Twelve kills spread over a run that writes a report: every file is whole or absent, and a re-run gives the same bytes."""
    arguments = ("fly", "--course", "line", "--envs", "8", "--randomize", "default", "--out", "run")
    assert start(commands, tmp_path, *arguments).ended()[0] == 0
    run = tmp_path / "run"
    good = (run / "flight.parquet").read_bytes()
    for k in range(12):
        command = start(commands, tmp_path, *arguments)
        command.flying(run, 0.1 * k)
        command.process.kill()
        command.ended()
        assert (run / "flight.parquet").read_bytes() == good
        for path in run.glob("*.json"):
            json.loads(path.read_text())
    assert start(commands, tmp_path, *arguments).ended()[0] == 0
    assert (run / "flight.parquet").read_bytes() == good
    assert start(commands, tmp_path, "replay", "run").ended()[0] == 0


def test_a_request_to_terminate_before_anything_is_flown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While a flight is prepared nothing catches the stop but `main`, which tells it from Ctrl-C by its signal."""
    from airworthy.cli import fly

    def prepare(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)

    monkeypatch.setattr(fly, "run_fly", prepare)
    assert main(["fly", "--out", str(tmp_path / "x")]) == 143
