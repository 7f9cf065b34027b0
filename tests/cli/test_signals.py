"""Runs that are stopped: by Ctrl-C, by a batch system, by force; and two in one folder."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import airworthy
from airworthy.cli.main import main
from airworthy.core.files import sha256_file

SOURCE = str(Path(airworthy.__file__).parents[1])
LOCK = ".airworthy.lock"
LONG = ("fly", "--course", "hover", "--hold", "20000", "--envs", "2", "--record-rate", "10", "--no-report")
SHORT = ("fly", "--course", "hover", "--hold", "0", "--no-report")
KEPT = "Interrupted: what was flown until then is kept; unfinished flights count as aborted."


# The command, which tells by one byte when it starts and by another when some rows of its flights are recorded.
TELLING = """
import os, sys
from airworthy.cli.main import main
from airworthy.simulation.recorder import Recorder

record, recorded = Recorder.record, []


def told(*values):
    record(*values)
    recorded.append(True)
    if len(recorded) == 4:
        os.write(int(sys.argv[1]), b"f")


Recorder.record = told
os.write(int(sys.argv[1]), b"s")
sys.exit(main(sys.argv[2:]))
"""
PATIENCE = 300.0
"""How long a command may take before it counts as hanging [s]; on a quiet machine it needs a few seconds."""


class Command:
    """`airworthy` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))}
        self._reports, telling = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TELLING, str(telling), *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[telling],
            text=True,
        )
        os.close(telling)

    def started(self) -> None:
        """Wait until Python has started and the command begins."""
        self._wait(b"s")

    def flying(self) -> None:
        """Wait until it has recorded some of its flights."""
        self._wait(b"sf")

    def _wait(self, words: bytes) -> None:
        for word in words:
            assert select.select([self._reports], [], [], PATIENCE)[0], "the command hangs"
            assert os.read(self._reports, 1) == bytes([word]), self.process.communicate()  # nothing: it has ended

    def locked(self, run: Path, seconds: float) -> None:
        """Wait until it has locked its folder, and a while longer, however far it then is."""
        limit = time.monotonic() + PATIENCE
        while not (run / LOCK).exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.02)
        time.sleep(seconds)

    def kill(self) -> None:
        """End it by force, if it still runs."""
        self.process.kill()
        self.process.communicate()
        os.close(self._reports)

    def ended(self) -> tuple[int, str, list[str]]:
        """Exit code, standard output, and the lines of standard error that are ours."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, [line for line in err.splitlines() if not line.startswith("Warp CUDA warning")]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[list[Command]]:
    """Commands to be killed at the end, however the test goes."""
    started: list[Command] = []
    yield started
    for command in started:
        command.kill()


def start(commands: list[Command], folder: Path, *arguments: str) -> Command:
    commands.append(Command(folder, *arguments))
    return commands[-1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_keeps_what_was_flown(number: signal.Signals, code: int, commands: list[Command], tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = start(commands, tmp_path, *LONG, "--json", "--out", "run")
    command.flying()
    command.process.send_signal(number)
    found, out, err = command.ended()
    assert (found, err) == (code, [KEPT])
    assert json.loads(out)["outcomes"]["aborted"] == 2
    assert {path.name for path in run.iterdir()} == {"config.json", "flight.parquet", "meta.json", "record", "summary.json"}
    meta = json.loads((run / "meta.json").read_text())
    assert meta["interrupted"] is True
    assert meta["rows"] > 2
    assert meta["sha256"] == sha256_file(run / "flight.parquet")
    flights = json.loads((run / "summary.json").read_text())["flights"]
    assert all(0.0 < flight["duration_s"] < 20000.0 for flight in flights)


def test_a_stop_before_the_flight_is_one_word(commands: list[Command], tmp_path: Path) -> None:
    command = start(commands, tmp_path, *LONG, "--out", "run")
    command.started()
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.ended()
    # Just before the command listens Python itself takes the signal, ends by it and says so.
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
    before = contents(run)
    first = start(commands, tmp_path, *LONG, "--out", "run")
    first.flying()
    capsys.readouterr()
    assert main([*SHORT, "--out", "run"]) == 2
    refusal = f"Another run (process {first.process.pid}) is writing in 'run': wait for it or choose another folder.\n"
    assert capsys.readouterr() == ("", refusal)
    first.process.kill()
    assert first.ended()[0] == -signal.SIGKILL
    assert contents(run) == before
    assert main([*SHORT, "--seed", "1", "--out", "run"]) == 0
    assert main(["replay", "run"]) == 0
    assert LOCK not in {path.name for path in run.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # what the killed one left beside it is swept


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path, without the lock of a run."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if name != LOCK}


ASKED = ("fly", "--course", "line", "--envs", "8", "--randomize", "default", "--out", "run", "--seed")


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def whole_runs(*more: str) -> list[dict[str, bytes]]:
    """What two runs into one folder leave that nothing disturbs; the second lies there."""
    found = []
    for seed in ("0", "1"):
        assert main([*ASKED, seed, *more]) == 0
        found.append(contents(Path("run")))
    assert found[0] != found[1]
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("_here")
def test_kills_at_any_time_leave_the_old_run_or_the_new_one(commands: list[Command], tmp_path: Path) -> None:
    """Twelve kills spread over runs that write reports, each over a run with another seed."""
    whole = whole_runs()
    run = tmp_path / "run"
    for k in range(12):
        command = start(commands, tmp_path, *ASKED, str(k % 2))
        command.locked(run, 0.1 * k)
        command.process.kill()
        command.ended()
        assert contents(run) in whole
    for seed in (0, 1):
        assert start(commands, tmp_path, *ASKED, str(seed)).ended()[0] == 0
        assert contents(run) == whole[seed]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert start(commands, tmp_path, "replay", "run").ended()[0] == 0


def interrupted_at(
    commands: list[Command], folder: Path, whole: list[dict[str, bytes]], seconds: list[float], *more: str
) -> list[int]:
    """Ctrl-C so long after each run has begun: nothing is mixed, nothing of a whole flight lost, and no run crashes.

    Returns:
        Exit codes.
    """
    run, codes = folder / "run", []
    for k, delay in enumerate(seconds):
        before, seed = contents(run), k % 2
        command = start(commands, folder, *ASKED, str(seed), *more)
        command.locked(run, delay)
        command.process.send_signal(signal.SIGINT)
        code, _, err = command.ended()
        codes.append(code)
        after = contents(run)
        # An interpreter that is going down behind a finished run takes signals as the system does.
        assert code in (0, 130) or (code == -signal.SIGINT and after == whole[seed]), err
        if code == 0 or after == before:
            continue
        assert json.loads(after["meta.json"])["config"]["seed"] == seed
        if json.loads(after["meta.json"])["interrupted"]:
            continue
        if after != whole[seed]:  # without its summary, or its report
            message = "Interrupted before the flights were judged: they are saved; `airworthy judge run` completes the run."
            assert err[-1] == message
            assert start(commands, folder, "judge", "run").ended()[0] == 0
        assert contents(run) == whole[seed]
    return codes


@pytest.mark.slow
@pytest.mark.usefixtures("_here")
def test_interrupts_leave_the_flights_and_judge_completes_them(commands: list[Command], tmp_path: Path) -> None:
    assert len(interrupted_at(commands, tmp_path, whole_runs("--no-report"), [0.2], "--no-report")) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("_here")
def test_forty_interrupts_at_any_time(commands: list[Command], tmp_path: Path) -> None:
    """None ends in a crash of a thread that works on behind the interrupt."""
    whole = whole_runs()
    seconds = list(np.random.default_rng(0).uniform(0.0, 2.5, 40))
    codes = interrupted_at(commands, tmp_path, whole, seconds)
    assert codes.count(130) > 10


def test_a_request_to_terminate_before_anything_is_flown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While a flight is prepared nothing catches the stop but `main`, which tells it from Ctrl-C by its signal."""
    from airworthy.cli import fly

    def prepare(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)

    monkeypatch.setattr(fly, "run_fly", prepare)
    assert main(["fly", "--out", str(tmp_path / "x")]) == 143


# ---- while the first modules load -----------------------------------------------------------------------------------

LOADING = """
import runpy, sys

class Stopped:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stopped())
sys.argv = ["airworthy", "fly"]
runpy.run_module("airworthy", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["airworthy.cli.main", "airworthy.core.native_kernel", "airworthy.cli.fly"])
def test_a_stop_while_modules_load_is_a_line(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOADING.format(module=module)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")
