"""Pilots in processes of their own: the same bytes as without, no truth in reach, and each failure one sentence."""

from __future__ import annotations

import importlib.util
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from airworthy.bridges.wire import LinkFailure, Message, WireLink, packed, within
from airworthy.core.errors import AirworthyError
from airworthy.race import load_race, race_class
from airworthy.race.background import MEASURED
from airworthy.race.benchmark.flight import RaceFlight, fly_races
from airworthy.race.benchmark.tables import row_of
from airworthy.race.onboard import Onboard
from airworthy.race.wall.confinement import own_paths, results_below
from airworthy.race.wall.doors import _greeting, confinement_of, pilot_entry
from airworthy.race.wall.records import HELLO, READY
from airworthy.race.wall.seats import STALE, Opened

RACE = load_race("alphapilot")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "21_race_pilot_of_another_program.py"
OWN = '''
import os, time
from airworthy.race.pilots.servo import Servo

SECONDS = 0.4


class Short(Servo):
    """The servo, which gives up after a moment."""

    def command(self, onboard, *truth):
        if onboard.time >= SECONDS:
            raise RuntimeError("enough")
        command = super().command(onboard)
        return command + 1e-3 * truth[0].corners[0, 0, 0, 0] if truth else command


class Plans(Short):
    def use_desk(self, desk):
        self.desk = desk

    def begin(self, facts):
        super().begin(facts)
        self.ticket, self.extra = self.desk.submit(lambda: 0.5), 0.0

    def command(self, onboard):
        if self.ticket.ready:
            self.extra, self.ticket = self.extra + self.ticket.result, self.desk.submit(lambda: 0.5)
            self.desk.submit(lambda: None)
            self.desk.note("thought again")
        return super().command(onboard) + self.extra


class Dies(Short):
    def command(self, onboard):
        os._exit(3)


class Killed(Short):
    def command(self, onboard):
        os.kill(os.getpid(), 9)


class Hangs(Short):
    def command(self, onboard):
        time.sleep(1000.0)


class Babbles(Short):
    """Writes on every socket that it finds."""

    def command(self, onboard):
        for number in range(3, 64):
            try:
                os.write(number, b"thrust " * 100)
            except OSError:
                pass
        return super().command(onboard)


class NoBeginning(Short):
    def begin(self, facts):
        raise KeyboardInterrupt


class Mumbles(Short):
    def telemetry(self):
        return {"position": [0.0, 1.0]}
'''


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], str]:
    (tmp_path / "mine.py").write_text(OWN)
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def fly(word: str, courses: tuple[str, ...] = ("published/0",), in_process: bool = False, **options: Any) -> list[RaceFlight]:
    entry = pilot_entry(word, in_process, options.pop("patience", 120.0))
    return list(fly_races(RACE, courses, entry, race_class("noisy"), **options))


def rows(flown: list[RaceFlight]) -> list[dict[str, Any]]:
    return [row_of("pilot", flight) for flight in flown]


# ---- The same flights -------------------------------------------------------------------------------------------------------


def test_flights_are_the_same_bytes_with_the_wall_and_without_alone_and_together(own: Callable[[str], str]) -> None:
    courses = ("published/2", "fresh/3/1")
    walled = fly(own("Short"), courses)
    assert rows(walled) == rows(fly(own("Short"), courses, in_process=True))
    assert rows(walled)[1:] == rows(fly(own("Short"), courses[1:]))
    assert walled[0].commands_sha256 != walled[1].commands_sha256
    # What it believes comes through, too.
    assert walled[0].telemetry_errors == 0
    local = fly(own("Short"), courses, in_process=True)[0].trace.said
    assert local
    assert walled[0].trace.said.keys() == local.keys()
    assert all(np.array_equal(value, local[key], equal_nan=True) for key, value in walled[0].trace.said.items())
    assert "RuntimeError: enough (mine.py, line" in walled[0].reason


@pytest.mark.slow
def test_same_sensor_bytes_in_another_world_give_the_same_commands_through_the_wall(own: Callable[[str], str]) -> None:
    def leaks(word: str) -> bool:
        kept: dict[int, Onboard] = {}
        (here,) = fly(word, tap=kept.setdefault)
        (played,) = fly(word, ("published/9",), tap=kept.get)
        return played.commands_sha256 != here.commands_sha256

    assert not leaks(own("Short"))
    # The test has teeth: who is given the truth is found out.
    assert leaks(f"truth:{own('Short')}")


@pytest.mark.slow
def test_plans_are_charged_in_the_pilots_process_and_told(own: Callable[[str], str]) -> None:
    (walled,), (local,) = (fly(own("Plans"), in_process=here, charge=0.1) for here in (False, True))
    assert rows([walled]) == rows([local])
    assert [item.submitted_s for item in walled.planned] == [item.submitted_s for item in local.planned]
    assert {item.charged_s for item in walled.planned} == {0.1}
    # Every second one leads nowhere, and is noted.
    assert [item.failed for item in walled.planned] == [False] + [False, True] * (len(walled.planned) // 2)
    assert walled.noted == local.noted
    assert [item.word for item in walled.noted] == ["thought again"] * (len(walled.planned) // 2)
    assert row_of("plans", walled)["notes"] == {"thought again": len(walled.noted)}
    assert row_of("plans", walled)["planning"]["failed"] == len(walled.noted) > 0
    (measured,) = fly(own("Plans"), charge=MEASURED)
    assert all(item.charged_s == item.cpu_s for item in measured.planned)
    assert len(measured.planned) > len(walled.planned)


# ---- Failures ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Dies", "its process ended with exit code 3"),
        ("Killed", "its process was killed by SIGKILL"),
        pytest.param("Hangs", "it gave no answer in time: none within 4 s", marks=pytest.mark.slow),
        ("Babbles", "it does not speak this protocol: it began with the letters 'thru'"),
        ("NoBeginning", "KeyboardInterrupt"),
    ],
)
def test_failure_of_a_process_ends_its_flight_with_a_sentence(own: Callable[[str], str], name: str, said: str) -> None:
    (flown,) = fly(own(name), patience=4.0)
    assert (flown.result.end, flown.result.score) == ("pilot_error", 0.0)
    assert said in flown.reason


@pytest.mark.slow
def test_telemetry_that_fits_nothing_is_counted_with_its_sentence(own: Callable[[str], str]) -> None:
    (walled,), (local,) = (fly(own("Mumbles"), in_process=here) for here in (False, True))
    assert walled.telemetry_errors == local.telemetry_errors > 0
    assert walled.telemetry_reason == local.telemetry_reason
    assert "of shape (2,)" in walled.telemetry_reason


def test_pilot_that_cannot_be_made_is_refused_before_anything_is_flown(tmp_path: Path, own: Callable[[str], str]) -> None:
    (tmp_path / "broken.py").write_text("raise ValueError('not today')")
    with pytest.raises(AirworthyError, match="cannot be imported: ValueError: not today"):
        pilot_entry(f"{tmp_path / 'broken.py'}:Pilot")
    with pytest.raises(AirworthyError, match="has no class 'Nobody'"):
        pilot_entry(own("Nobody"))
    with pytest.raises(AirworthyError, match="Unknown race pilot 'nobody'"):
        pilot_entry("nobody")


def test_files_code_is_not_run_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(
        f"import os\nPARENT = os.getpid()\n{OWN}\nclass Mine(Short):\n    rate = float(PARENT)\n"
    )
    assert pilot_entry(f"{tmp_path / 'looks.py'}:Mine").rate != os.getpid()


# ---- What the process may touch ---------------------------------------------------------------------------------------------

TRIES = """
import os, socket, subprocess
import airworthy

HERE = os.path.dirname(airworthy.__file__)
TRIES = {
    "published courses": lambda: open(os.path.join(HERE, "scenes/generators/halls/alphapilot_published.json")).read(),
    "a course": lambda: airworthy.race.course_of(airworthy.race.load_race("alphapilot"), "published/3"),
    "a folder": lambda: os.listdir(SECRET),
    "a file": lambda: open(os.path.join(SECRET, "summary.json")).read(),
    "writing": lambda: open("note", "w"),
    "writing beside": lambda: open(os.path.join(os.path.dirname(__file__), "note"), "w"),
    "own results": lambda: open(os.path.join(os.path.dirname(__file__), "runs", "race", "summary.json")).read(),
    "a process": lambda: os.fork() or os._exit(0),
    "a program": lambda: subprocess.run(["/bin/true"]),
    "memory": lambda: open(f"/proc/{os.getppid()}/mem", "rb"),
    "environment": lambda: open(f"/proc/{os.getppid()}/environ", "rb"),
    "a signal": lambda: os.kill(os.getppid(), 0),
    "a port": lambda: socket.create_connection(("127.0.0.1", PORT)),
}


class Tries:
    def begin(self, facts):
        import airworthy.race
        done = []
        for name, attempt in TRIES.items():
            try:
                attempt()
                done.append(name)
            except OSError:
                pass
        own = open(os.path.join(os.path.dirname(__file__), "weights")).read()
        own += open(os.path.join(os.path.dirname(__file__), "runs", "table")).read()
        raise RuntimeError(f"{done} {own} {sorted(os.listdir())} {sorted(os.environ)}")
"""


def test_process_reaches_its_own_folder_and_nothing_else(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> None:
    secret = tmp_path_factory.mktemp("results")
    (secret / "summary.json").write_text("{}")
    monkeypatch.setenv("COURSE", "published/3")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        known = f"SECRET = {str(secret)!r}\nPORT = {listening.getsockname()[1]}\n"
        (tmp_path / "tries.py").write_text(f"{known}{TRIES}\n    def command(self, onboard):\n        return [0.0] * 4\n")
        (tmp_path / "weights").write_text("weights")
        # Results below the pilot's own folder, where `--out runs/race` puts them; what lies beside them is its own.
        results = tmp_path / "runs" / "race"
        results.mkdir(parents=True)
        (results / "race_bench.json").write_text("{}")
        (results / "summary.json").write_text("{}")
        (tmp_path / "runs" / "table").write_text("table")
        word = f"{tmp_path / 'tries.py'}:Tries"
        holds = confinement_of(word)
        if not holds["signals"] or not holds["processes"]:
            pytest.skip(f"this system enforces {holds}: all of it needs Landlock 6, Linux 6.12, and x86_64 or aarch64")
        (flown,) = fly(word)
    assert flown.reason.startswith("RuntimeError: [] weightstable [] [")
    # Neither what the run was started with, nor where it is.
    assert "COURSE" not in flown.reason
    assert "PWD" not in flown.reason


def test_results_are_found_and_too_much_to_look_through_leaves_the_pilots_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "race_bench.json").write_text("{}")
    (tmp_path / "mine.py").write_text("")
    assert results_below(tmp_path) == [tmp_path / "a" / "b"]
    assert own_paths(tmp_path) == [tmp_path]
    monkeypatch.setattr("airworthy.race.wall.confinement._LOOKED_MAX", 2)
    assert results_below(tmp_path) is None
    assert own_paths(tmp_path) == [tmp_path / "mine.py"]


def test_a_process_without_others_has_threads() -> None:
    """In a process of its own, for there is no way back."""
    code = """
import os, threading
from airworthy.race.wall.system_calls import no_processes
held, done = no_processes(), []
for attempt in (lambda: os.fork() or os._exit(0), lambda: os.posix_spawn("/bin/true", ["true"], {})):
    try:
        attempt()
    except PermissionError:
        done.append("refused")
thread = threading.Thread(target=lambda: done.append("thread"))
thread.start()
thread.join()
status = open("/proc/self/status").read()
print(held, *done, status.split("NoNewPrivs:")[1].split()[0], status.split("Seccomp:")[1].split()[0])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    if said[0] == "False":
        pytest.skip("this system has no filter of system calls")
    assert said[1:] == ["refused", "refused", "thread", "1", "2"]


def test_limits_are_those_that_are_said() -> None:
    """In a process of its own, which may have had more of each before, and writes cores."""
    code = """
import resource
from airworthy.race.wall.confinement import _limit
kinds = [getattr(resource, "RLIMIT_" + name) for name in ("NOFILE", "DATA", "FSIZE", "CORE")]
for kind in kinds:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (hard, hard))
before = [resource.getrlimit(kind)[1] for kind in kinds]
said = _limit()
print(said, *before, *(number for kind in kinds for number in resource.getrlimit(kind)))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    said, *numbers = map(int, out.split())
    before, after = numbers[:4], numbers[4:]
    for had, wanted, soft, hard in zip(before, (256, 4 << 30, 0, 0), after[::2], after[1::2], strict=True):
        # -1: no limit.
        expected = wanted if had == -1 else min(wanted, had)
        assert (soft, hard) == (expected, expected)
    assert said == after[2]
    if before[3] == 0:
        pytest.skip("this system allows no cores: whether they are forbidden cannot be seen")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sensors": [f"{k}" for k in range(10)]}, ""),
        ({"sensors": [f"{k}" for k in range(11)]}, "sensors that are no list of names"),
        ({"sensors": ["x" * 40]}, ""),
        ({"sensors": ["x" * 41]}, "sensors that are no list of names"),
        ({"sensors": "imu"}, "sensors that are no list of names"),
        ({"sensors": [1]}, "sensors that are no list of names"),
        ({"rate": 240}, ""),
        ({"rate": "fast"}, "the rate 'fast'; expected commands per second"),
        ({"rate": True}, "the rate True; expected commands per second"),
        ({"protocol": 2}, "expected a hello of protocol 1"),
    ],
)
def test_a_hello_is_bounded(fields: dict[str, Any], said: str) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(packed(Message(HELLO, {"protocol": 1, **fields})))
        opened = Opened(WireLink(ours))
        try:
            if said:
                with pytest.raises(LinkFailure, match=said):
                    _greeting(opened, within(5.0))
            else:
                assert _greeting(opened, within(5.0)).items() >= fields.items()
        finally:
            opened.close()


# ---- Anybody's program ------------------------------------------------------------------------------------------------------


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("race_pilot_of_another_program", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_needs_the_standard_library_and_numpy_alone() -> None:
    head = EXAMPLE.read_text().split("__main__")[0]
    imports = {line.split()[1] for line in head.splitlines() if line.startswith(("import ", "from "))}
    assert imports - set(sys.stdlib_module_names) == {"numpy"}


@pytest.mark.slow
def test_program_on_a_port_flies_each_course_on_a_connection_of_its_own(loopback: None) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), example().Leans) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        word = f"external:{server.server_address[1]}"
        assert pilot_entry(word).sensors == ("imu",)
        both = fly(word, ("nominal", "published/4"))
        assert [flight.result.end for flight in both] == ["contact", "contact"]
        assert rows(fly(word, ("published/4",))) == rows(both[1:])
        server.shutdown()


def served(*answers: bytes) -> tuple[str, threading.Thread]:
    """Answer each message of one connection after another with given bytes; returns the pilot's word."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening:
            for first in (True, False):
                connection, _ = listening.accept()
                with connection:
                    link = WireLink(connection)
                    connection.sendall(packed(Message(HELLO, {"protocol": 1, "rate": 240.0})))
                    try:
                        for answer in () if first else answers:
                            link.receive(within(20.0))
                            connection.sendall(answer)
                        # Silent from then on, until the other end has had enough.
                        while True:
                            link.receive(within(20.0))
                    except LinkFailure:
                        pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return f"external:{listening.getsockname()[1]}", thread


READY_BYTES = packed(Message(READY))


def told(tick: int | str) -> bytes:
    return packed(Message("command", {"tick": tick}, {"command": np.array([[9.81, 0.0, 0.0, 0.0]])}))


def test_commands_that_answer_an_earlier_record_are_counted_and_left_out(loopback: None) -> None:
    word, thread = served(READY_BYTES, told(1) + told(1), told(1) + told(2))
    (flight,) = fly(word, patience=0.5)
    thread.join(20.0)
    assert [note.word for note in flight.noted] == [STALE, STALE]
    assert "it gave no answer in time" in flight.reason
    word, thread = served(READY_BYTES, told("1"))
    (flight,) = fly(word, patience=0.5)
    thread.join(20.0)
    assert "its command has the tick '1'; expected 1, as the record has" in flight.reason


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "it does not speak this protocol: it began with the letters 'HTTP', as a web"),
        ((READY_BYTES, packed(Message("failure", {"said": "\x1b[2Jgone\n"}))), "?[2Jgone?"),
        ((READY_BYTES, packed(Message("command"))), "its answer held no command"),
        ((READY_BYTES, packed(Message("surprise"))), "it answered 'surprise'; expected 'command'"),
        ((READY_BYTES, packed(Message("failure", {"said": "no way through"}))), "no way through"),
        ((READY_BYTES, b"\x02\x00\x00\x00[]"), "the header has no kind"),
        pytest.param((READY_BYTES, b"\x05\x00\x00\x00"), "it gave no answer in time", marks=pytest.mark.slow),
        pytest.param((READY_BYTES,), "it gave no answer in time", marks=pytest.mark.slow),
        ((), "it gave no answer in time"),
    ],
)
def test_answers_of_a_program_that_are_none_end_the_flight(loopback: None, answers: tuple[bytes, ...], said: str) -> None:
    word, thread = served(*answers)
    (flown,) = fly(word, patience=2.0)
    assert flown.result.end == "pilot_error"
    assert said in flown.reason
    thread.join(30.0)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("external:", "names no port; expected external:PORT"),
        ("external:70000", "names no port"),
        ("truth:external:x", "names no port"),
        ("external:1", "nothing answers on 127.0.0.1:1 "),
    ],
)
def test_port_that_is_none_is_refused(loopback: None, word: str, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        pilot_entry(word)
