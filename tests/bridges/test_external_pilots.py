"""Pilots outside by the socket protocol: the same bytes as in this process, in Python and C; what goes wrong is named."""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port

import airworthy.bridges.remote.clients as clients
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly
from airworthy.benchmarks.fly.metrics import judge
from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.store import read_rows
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.bridges.remote.clients.airworthy_pilot import server
from airworthy.bridges.remote.pilot import PilotHello, RemoteSettings
from airworthy.bridges.remote.socket_pilot import SocketPilot
from airworthy.bridges.remote.words import ExternalEntry, external_entry, is_external, split_word, without_prefix
from airworthy.bridges.wire import LinkFailure, Message, WireLink, within
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import sha256_file
from airworthy.tasks.navigation import NavigationProtocol

CLIENTS = Path(clients.__file__).parent
CC = shutil.which("cc")
GOAL = np.array([0.0, 0.0, 2.0])
AT_ONCE = RemoteSettings(patience=5.0, wait=0.2)


class Climber:
    """Goes to `GOAL`, at a speed in proportion to how far it is."""

    name, level, observes = "climber", "velocity", ["position"]

    def command(self, data: Any) -> Any:
        away = 0.5 * (GOAL - data["position"])
        return np.column_stack([away, np.zeros(len(away))])


class Batched(Climber):
    batched = True


class Chaser:
    """Goes where its task says: a course's end, or a goal; told nothing it stays."""

    name, level, observes = "chaser", "velocity", ["position"]
    told: Any = None

    def reset(self, task: Any, data: Any) -> None:
        self.to = data["course_position"][-1:] if task["task"] == "course" else data["goal"]
        type(self).told = (task, data)

    def command(self, data: Any) -> Any:
        away = self.to - data["position"]
        return np.column_stack([0.8 * away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1.0), np.zeros(len(away))])


class Along:
    """Follows its course: position, velocity, acceleration, no jerk, yaw, yaw rate."""

    name, level, observes = "along", "tracking", ["position"]

    def reset(self, task: Any, data: Any) -> None:
        self.rows = data

    def command(self, data: Any) -> Any:
        at = np.minimum(np.round(data["time"] / 0.01).astype(int), len(self.rows["course_time"]) - 1)
        row = {name: array[at] for name, array in self.rows.items() if name.startswith("course_")}
        parts = (row["course_position"], row["course_velocity"], row["course_acceleration"], np.zeros((len(at), 3)))
        return np.concatenate([*parts, row["course_yaw"][:, None], row["course_yaw_rate"][:, None]], axis=1)


class Seer(Chaser):
    """The same, and keeps what it has seen."""

    name, observes = "seer", ["position", "sensor:depth"]
    images: list[Any] = []  # noqa: RUF012 - of all flights

    def command(self, data: Any) -> Any:
        assert data["sensor:depth/depth"].ndim == 3
        assert len(data["sensor:depth/depth"]) == len(data["time"])
        self.images.append((data["sensor:depth/number"][0], data["sensor:depth/depth"][0].copy()))
        return super().command(data)


@pytest.fixture
def serve(loopback: None) -> Iterator[Callable[..., str]]:
    running = []

    def start(make: Any) -> str:
        port = free_port()
        made = server(make, port)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        running.append(made)
        return f"external:{port}"

    yield start
    for one in running:
        one.shutdown()
        one.server_close()


def flown(out: Path, pilot: str, **changes: Any) -> Any:
    chosen = {"waypoints": ("0,0,1", "0,0,2"), "hold": 0.2, "report": False, "wait": 1.0} | changes
    return run_fly(FlyConfig(pilot=pilot, out=out, **chosen))


def digest(out: Path) -> str:
    return sha256_file(out / "flight.parquet")


# ---- The same bytes, whoever speaks --------------------------------------------------------------------------------------


OWN = """
import numpy as np


class Climber:
    name, level, observes = "climber", "velocity", ("position",)

    def command(self, observation):
        away = 0.5 * (np.array([0.0, 0.0, 2.0]) - np.asarray(observation["position"], np.float64))
        return np.column_stack([away, np.zeros(len(away))])
"""


def test_a_flight_has_the_bytes_of_one_in_this_process(serve: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    flown(tmp_path / "own", f"{tmp_path / 'own.py'}:Climber", wait=120.0)
    for number, make in enumerate((Climber, Climber, Batched)):
        result = flown(tmp_path / str(number), serve(make))
        assert result.pilot_error == ""
        assert digest(tmp_path / str(number)) == digest(tmp_path / "own")


def test_several_flights_are_as_many_conversations_or_one(serve: Callable[..., str], tmp_path: Path) -> None:
    many = {"envs": 3, "randomize": ("default",)}
    assert flown(tmp_path / "each", serve(Climber), **many).pilot_error == ""
    assert flown(tmp_path / "batch", serve(Batched), **many).pilot_error == ""
    assert digest(tmp_path / "each") == digest(tmp_path / "batch")


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
def test_a_pilot_in_c_flies_the_same_bytes(serve: Callable[..., str], tmp_path: Path) -> None:
    program, port = tmp_path / "climber", free_port()
    flags = (
        "-std=c99",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-Wshadow",
        "-ffp-contract=off",
    )
    source = Path(__file__).with_name("climber.c")
    subprocess.run([str(CC), *flags, f"-I{CLIENTS}", str(source), "-o", str(program)], check=True)
    running = subprocess.Popen([str(program), str(port)])
    try:
        assert flown(tmp_path / "c", f"external:{port}", wait=10.0, envs=2).pilot_error == ""
    finally:
        running.kill()
        running.wait()
    flown(tmp_path / "python", serve(Batched), envs=2)
    assert digest(tmp_path / "c") == digest(tmp_path / "python")


SLOW = """
#include "airworthy_pilot.h"
static int command(const aw_message *seen, double *out, void *mine) {
    (void)seen; (void)mine; (void)out;
    sleep(1);
    return 0;
}
int main(int count, char **words) {
    aw_pilot pilot = {"slow", "velocity", 4, "[]", 0.0, NULL, command, NULL};
    return count > 1 ? aw_serve(&pilot, atoi(words[1])) : 1;
}
"""


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
def test_a_slow_pilot_in_c_outlives_the_flight_that_it_lost(loopback: None, tmp_path: Path) -> None:
    """Its answer finds nobody any more, which is a signal unless it is asked not to be."""
    program, port, source = tmp_path / "slow", free_port(), tmp_path / "slow.c"
    source.write_text(SLOW)
    flags = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", f"-I{CLIENTS}")
    subprocess.run([str(CC), *flags, str(source), "-o", str(program)], check=True)
    running = subprocess.Popen([str(program), str(port)])
    try:
        result = flown(tmp_path / "lost", f"external:{port}", wait=10.0, patience=0.5)
        assert result.summary["flights"][0]["outcome"] == "pilot_error"
        # It serves one after the other: who is greeted now comes behind the answer that nobody took.
        assert external_entry(f"external:{port}", RemoteSettings(patience=10.0)).hello.name == "slow"
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


def test_a_unix_socket_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with server(Climber, "./p.sock") as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        assert external_entry("external:./p.sock", AT_ONCE).hello.name == "climber"
        made.shutdown()


def test_python_client_needs_the_standard_library_and_numpy_alone() -> None:
    tree = ast.parse((CLIENTS / "airworthy_pilot.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert names - set(sys.stdlib_module_names) == {"numpy"}


# ---- What it is told -----------------------------------------------------------------------------------------------------


def test_a_course_is_told_with_its_end_and_its_vehicle(serve: Callable[..., str], tmp_path: Path) -> None:
    flown(tmp_path, serve(Chaser))
    task, data = Chaser.told
    assert (task["task"], task["flights"], data["course_position"][0].tolist()) == ("course", 1, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(data["course_position"][-1], [0.0, 0.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(np.diff(data["course_time"])[:-1], 0.01, atol=1e-12)
    # Velocities are the slopes of positions: central differences err by h^2/6 of the third derivative, some 10 m/s^3.
    slopes = np.gradient(data["course_position"][:-1], 0.01, axis=0)[2:-2]
    np.testing.assert_allclose(data["course_velocity"][2:-3], slopes, atol=1e-3)
    assert 'name = "flightgoggles"' in task["vehicles"][0]


def test_a_rate_of_its_own_holds_commands_between(serve: Callable[..., str], tmp_path: Path) -> None:
    asked = []

    class Slow(Climber):
        rate = 20.0

        def command(self, data: Any) -> Any:
            asked.append(float(data["time"][0]))
            return super().command(data)

    flown(tmp_path, serve(Slow))
    np.testing.assert_allclose(asked, np.arange(len(asked)) / 20.0, atol=1e-9)


@pytest.fixture
def forest(tmp_path: Path) -> Callable[..., Any]:
    def run(word: str, name: str = "run", **changes: Any) -> Any:
        brief = NavigationProtocol(time_limit_s=3.0)
        chosen = {"vehicles": ("real_01",), "scenarios": ("forest",), "configurations": (1, 2), "repeats": 1,
                  "report": False, "warm_up": 0.0, "protocol": brief} | changes  # fmt: skip
        done = run_benchmark(NavigationConfig((word,), out=tmp_path / name, **chosen))
        return done, read_rows(tmp_path / name)

    return run


def test_the_navigation_benchmark_flies_it_twice_the_same(serve: Callable[..., str], forest: Callable[..., Any]) -> None:
    done, rows = forest(serve(Chaser))
    assert done.complete
    assert {row["pilot"] for row in rows} == {"chaser"}
    assert not [row["cause"] for row in rows if row["outcome"] in ("pilot_error", "planner_crash")]
    task, data = Chaser.told
    assert (task["task"], data["goal"].shape, data["vehicle_mass"].shape) == ("goal", (1, 3), (1,))
    assert [row["trace"] for row in forest(serve(Chaser), "again")[1]] == [row["trace"] for row in rows]
    assert done.finished == 2


def test_a_program_that_is_gone_when_the_benchmark_begins_is_told_by_its_place(
    loopback: None, forest: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not by our own timer, which rings as soon as the longest wait for it."""
    hello = PilotHello("gone", "velocity")
    gone = ExternalEntry(hello, lambda: SocketPilot("1", hello, RemoteSettings(wait=0.5)), identity={"pilot": "socket"})
    monkeypatch.setattr("airworthy.benchmarks.navigation.methods.external_entry", lambda word: gone)
    _, rows = forest("external:1", configurations=(1,), decision_timeout=0.3)
    assert rows[0]["outcome"] == "planner_crash"
    assert rows[0]["cause"].startswith("it could not begin: nothing answered at 1 for 0.5 s")


def test_images_come_once_each_and_unchanged(serve: Callable[..., str], forest: Callable[..., Any]) -> None:
    Seer.images.clear()
    _, rows = forest(serve(Seer), configurations=(1,))
    assert rows[0]["outcome"] not in ("pilot_error", "planner_crash")
    numbers = [number for number, _ in Seer.images]
    assert numbers == sorted(numbers)
    shown = dict(Seer.images)
    # 20 Hz of images at 100 Hz of decisions: each is there for five, and is the same each time.
    assert len(numbers) == 5 * len(shown)
    assert all(np.array_equal(image, shown[number]) for number, image in Seer.images)


# ---- What goes wrong -----------------------------------------------------------------------------------------------------


def served(*answers: Message | bytes | None) -> str:
    """Greet as a pilot would on every connection, and answer with what is given; None: end the connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def one(connection: socket.socket) -> None:
        with connection:
            link = WireLink(connection)
            link.send(Message("hello", {"protocol": 2, "name": "liar", "level": "velocity", "observes": ["position"]}))
            try:
                for answer in answers:
                    link.receive(within(20.0))
                    if answer is None:
                        return
                    connection.sendall(answer) if isinstance(answer, bytes) else link.send(answer)
                link.receive(within(20.0))
                link.receive(within(20.0))
            except LinkFailure:
                pass

    def serve() -> None:
        with listening:
            for _ in range(2):
                one(listening.accept()[0])

    threading.Thread(target=serve, daemon=True).start()
    return f"external:{listening.getsockname()[1]}"


READY = Message("ready")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((READY, None), r"the connection was closed, at 0\.00 s of the flight"),
        ((READY,), "it gave no answer in time: none within 0.5 s"),
        ((READY, b"\x10\x00\x00\x00{"), "it gave no answer in time"),
        ((READY, b"HTTP/1.1 400"), "it began with the letters 'HTTP', as a web"),
        ((READY, Message("ready")), "it answered 'ready'; expected 'command'"),
        ((READY, Message("command", {"tick": 1})), "its answer held no array 'command'"),
        ((READY, Message("command")), "its command has the tick None; expected 1, as the observation that it answers has"),
        ((READY, Message("command", {"tick": 2})), "its command has the tick 2; expected 1"),
        ((READY, Message("command", {"tick": "1"})), "its command has the tick '1'; expected 1"),
        ((READY, Message("command", {"tick": -1})), "its command has the tick -1; expected 1"),
        ((READY, Message("command", {"tick": True})), "its command has the tick True; expected 1"),
        (
            (READY, Message("command", {"tick": 1}, {"command": np.zeros((2, 4))})),
            r"has shape \(2, 4\); level 'velocity' takes",
        ),
        ((READY, Message("failure", {"said": "\x1b[2Jno\n"})), r"\?\[2Jno\?"),
        ((Message("failure", {"said": "no such course"}),), "no such course"),
    ],
)
def test_what_a_program_does_wrong_ends_the_flight_with_its_cause(
    loopback: None, tmp_path: Path, answers: tuple[Message | bytes | None, ...], said: str
) -> None:
    result = flown(tmp_path, served(*answers), patience=0.5)
    assert result.summary["flights"][0]["outcome"] == "pilot_error"
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(result.pilot_error)


class Twice:
    """Answers every question twice, the second time with full speed upwards."""

    def __init__(self, again: int = 1):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.word = f"external:{self.listening.getsockname()[1]}"
        self._again, self.asked = again, 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self.listening:
            while True:
                try:
                    link = WireLink(self.listening.accept()[0])
                except OSError:
                    return
                with suppress(LinkFailure):
                    self._converse(link)
                link.close()

    def _converse(self, link: WireLink) -> None:
        about = {"protocol": 2, "name": "twice", "level": "velocity", "observes": ["position"], "batched": True}
        link.send(Message("hello", about))
        while True:
            asked = link.receive(within(20.0))
            if asked.kind == "reset":
                link.send(Message("ready"))
                continue
            if asked.kind != "observation":
                return
            self.asked += 1
            away = 0.5 * (GOAL - asked.arrays["position"])
            command = np.column_stack([away, np.zeros(len(away))])
            for times in range(1 + self._again):
                said = command if not times else np.tile([0.0, 0.0, 3.0, 0.0], (len(away), 1))
                link.send(Message("command", {"tick": asked.fields["tick"]}, {"command": said}))


def test_a_pilot_that_answers_twice_flies_by_its_first_answers_and_is_told_of(
    loopback: None, serve: Callable[..., str], tmp_path: Path
) -> None:
    flown(tmp_path / "once", serve(Batched))
    twice = Twice()
    with pytest.warns(AssetWarning, match=r"twice: \d+ answers to another question than the last one, left out"):
        result = flown(tmp_path / "twice", twice.word)
    assert result.pilot_error == ""
    assert digest(tmp_path / "twice") == digest(tmp_path / "once")
    # One answer too many for each of its questions but the last one.
    (note,) = result.pilot_notes
    assert note == f"twice: {twice.asked - 1:,} answers to another question than the last one, left out."
    assert json.loads((tmp_path / "twice" / "summary.json").read_text())["pilot_notes"] == [note]


def test_who_answers_without_end_is_not_read_without_end(loopback: None, tmp_path: Path) -> None:
    with pytest.warns(AssetWarning, match="answers to another question"):
        result = flown(tmp_path, Twice(1_000_000).word, patience=0.5)
    assert result.summary["flights"][0]["outcome"] == "pilot_error"
    with pytest.raises(AssertionError, match=r"it gave no answer in time: none within 0.5 s|it does not read what it is sent"):
        raise AssertionError(result.pilot_error)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (np.nan, "its command is not finite: [nan, nan, nan, nan]"),
        (np.inf, "its command is not finite: [inf, inf, inf, inf]"),
        (1e300, "its command held 1e+300, beyond what the level takes: velocity has no number beyond 1e+06"),
        (-2e6, "its command held 2e+06, beyond what the level takes: velocity has no number beyond 1e+06"),
    ],
)
def test_commands_that_no_vehicle_can_take_end_the_flight_with_their_cause(
    serve: Callable[..., str], tmp_path: Path, number: float, said: str
) -> None:
    class Odd(Climber):
        def command(self, data: Any) -> Any:
            return np.full((len(data["time"]), 4), number)

    result = flown(tmp_path, serve(Odd))
    assert result.summary["flights"][0]["outcome"] == "pilot_error"
    assert result.pilot_error == said


class Third(Climber):
    """Of three conversations, the second goes wrong in its 31st answer, and the third is silent from its 41st on."""

    begun = 0
    silent = threading.Event()

    def __init__(self) -> None:
        type(self).begun += 1
        # The first conversation asks who it is; those of the flights follow in order.
        self.flight, self.asked = type(self).begun - 2, 0

    def command(self, data: Any) -> Any:
        self.asked += 1
        if self.flight == 1 and self.asked > 30:
            raise ValueError("out of ideas")
        if self.flight == 2 and self.asked > 40:
            self.silent.wait(20.0)
        return super().command(data)


def test_a_program_that_fails_ends_its_own_flight_alone(serve: Callable[..., str], tmp_path: Path) -> None:
    Third.begun = 0
    Third.silent.clear()
    try:
        result = flown(tmp_path / "three", serve(Third), envs=3, patience=0.5)
    finally:
        Third.silent.set()
    assert result.pilot_error == ""
    first, second, third = result.summary["flights"]
    assert first["outcome"] == flown(tmp_path / "one", serve(Climber)).summary["flights"][0]["outcome"]
    assert [second["outcome"], third["outcome"]] == ["pilot_error", "pilot_error"]
    assert "out of ideas" in second["cause"]
    assert third["cause"] == "it gave no answer in time: none within 0.5 s, at 0.40 s of the flight"
    # Rows at 50 Hz until the program failed, in steps of 10 ms.
    assert second["duration_s"] == pytest.approx(0.3, abs=0.03)
    assert third["duration_s"] == pytest.approx(0.4, abs=0.03)
    assert judge(tmp_path / "three").summary["flights"][1]["outcome"] == "pilot_error"


def test_a_silent_program_does_not_take_those_behind_it_along(serve: Callable[..., str], tmp_path: Path) -> None:
    """When it has been waited for in vain, the patience with the others is over, too: they have answered long since."""

    class First(Climber):
        begun, silent = 0, threading.Event()

        def __init__(self) -> None:
            type(self).begun += 1
            self.flight = type(self).begun - 2

        def command(self, data: Any) -> Any:
            if self.flight == 0 and data["time"][0] > 0.2:
                self.silent.wait(20.0)
            return super().command(data)

    try:
        flights = flown(tmp_path, serve(First), envs=3, patience=0.5).summary["flights"]
    finally:
        First.silent.set()
    assert [item["outcome"] == "pilot_error" for item in flights] == [True, False, False]


@pytest.mark.parametrize("level", ["velocity", "rotor_speed"])
def test_a_command_of_another_width_ends_its_own_flight_alone(serve: Callable[..., str], tmp_path: Path, level: str) -> None:
    class Narrow(Climber):
        begun = 0

        def __init__(self) -> None:
            type(self).begun += 1
            self.flight, self.level = type(self).begun - 2, level

        def command(self, data: Any) -> Any:
            found = super().command(data) if level == "velocity" else np.full((1, 4), 900.0)
            return found[:, :3] if self.flight == 1 and data["time"][0] > 0.2 else found

    result = flown(tmp_path, serve(Narrow), envs=3)
    assert result.pilot_error == ""
    flights = result.summary["flights"]
    assert [item["outcome"] == "pilot_error" for item in flights] == [False, True, False]
    assert flights[1]["cause"] == f"its command has shape (1, 3); level '{level}' takes (1, 4) or (4,)"


def test_one_row_of_many_that_is_none_ends_its_own_flight_alone(serve: Callable[..., str], tmp_path: Path) -> None:
    class Row(Batched):
        def command(self, data: Any) -> Any:
            found = super().command(data)
            found[1, 2] = np.nan if data["time"][0] > 0.2 else found[1, 2]
            return found

    flights = flown(tmp_path, serve(Row), envs=3).summary["flights"]
    assert [item["outcome"] == "pilot_error" for item in flights] == [False, True, False]
    assert flights[1]["cause"].startswith("its command is not finite: [")
    assert flights[0]["outcome"] == flights[2]["outcome"]


def test_where_every_flight_fails_the_run_ends(serve: Callable[..., str], tmp_path: Path) -> None:
    class Tired(Climber):
        def command(self, data: Any) -> Any:
            raise ValueError("tired")

    result = flown(tmp_path, serve(Tired), envs=2)
    assert "tired" in result.pilot_error
    assert [item["outcome"] for item in result.summary["flights"]] == ["pilot_error", "pilot_error"]


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        ({}, "names no control level; pilots of races fly in `airworthy bench race`"),
        ({"level": "velocty"}, "velocty"),
        ({"level": "velocity", "name": ""}, "the name ''"),
        ({"level": "velocity", "name": "x" * 41}, "expected 1 to 40 letters"),
        ({"level": "velocity", "rate": -1.0}, "the rate -1.0; expected decisions per second"),
        ({"level": "velocity", "observes": "position"}, "'observes' that is no list of names"),
        ({"level": "velocity", "protocol": 1}, "expected a hello of protocol 2"),
    ],
)
def test_hellos_that_are_none_are_refused(loopback: None, hello: dict[str, Any], said: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            WireLink(connection).send(Message("hello", {"protocol": 2, "name": "x"} | hello))
            time.sleep(0.2)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with pytest.raises(AirworthyError, match=said):
        external_entry(f"external:{listening.getsockname()[1]}", AT_ONCE)
    thread.join()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("external:1", "nothing answered at 1 for 0.2 s"),
        ("external:70000", "has the port 70000; ports are 1 to 65535"),
        ("external:0", "has the port 0; ports are 1 to 65535"),
        ("external:127.0.0.1:65536", "has the port 65536; ports are 1 to 65535"),
        ("external", "'external' names no program: write external:PORT for one that listens there, or external:KIND with"),
        ("external:", "'external:' names no program: write external:PORT"),
        ("external:sockt:5005", "Unknown external pilot 'sockt'. Closest: 'socket'"),
        ("external:ros2:domain=1.5", "was given domain='1.5'; expected a whole number of 0 or more"),
        ("external:px4", "is an autopilot, which holds a vehicle"),
    ],
)
def test_words_that_name_nothing_are_refused(loopback: None, word: str, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        external_entry(word, AT_ONCE)


def test_nobody_is_waited_for_whose_word_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("external:foo", "external", "external:70000"):
        with pytest.raises(AirworthyError):
            run_fly(FlyConfig(pilot=word, waypoints=("0,0,1", "0,0,2"), out=tmp_path), quiet=False)
    assert capsys.readouterr().out == ""


def test_a_name_may_have_forty_letters(serve: Callable[..., str]) -> None:
    class Long(Climber):
        name = "x" * 40

    assert external_entry(serve(Long), AT_ONCE).hello.name == "x" * 40


def test_words() -> None:
    assert split_word("external:5005") == ("socket", "5005")
    assert split_word("external:socket:10.0.0.1:9") == ("socket", "10.0.0.1:9")
    assert split_word("external:/tmp/a.sock") == ("socket", "/tmp/a.sock")
    assert without_prefix("external:betaflight:9002") == "betaflight:9002"
    assert without_prefix("external:5005") == "external:5005"
    assert is_external("external:5005")
    assert not is_external("external:px4")
    assert not is_external("px4")


@pytest.mark.slow
def test_an_evaluation_tells_it_the_course(serve: Callable[..., str], tmp_path: Path) -> None:
    config = EvaluateConfig((serve(Along),), course="line", conditions=("baseline",), flights=2, family=("rigid",),
                            report=False, out=tmp_path)  # fmt: skip
    done = evaluate(config)
    (entry,) = done.summary["aggregate"]
    assert (entry["pilot"], entry["flights"]) == ("along", 2)
    assert entry["success_rate"]["value"] == 1.0


@pytest.mark.slow
def test_an_evaluation_says_that_flights_of_a_program_outside_are_kept(serve: Callable[..., str], tmp_path: Path) -> None:
    """A program that was changed has the same word: its old flights would be taken for the new ones."""
    config = EvaluateConfig((serve(Along), "geometric"), course="line", conditions=("baseline",), flights=1, family=("rigid",),
                            report=False, out=tmp_path)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssetWarning)
        first = evaluate(config).summary["aggregate"]
    with pytest.warns(AssetWarning, match=r"holds 1 of the blocks of programs outside from an earlier run") as told:
        assert evaluate(config).summary["aggregate"] == first
    assert len(told) == 1


def test_an_evaluation_says_what_to_do_where_an_autopilot_does_not_come(
    loopback: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flights before this one may have been flown, and be for nothing without a word."""
    word = f"px4:{free_port()}"
    words = ["--pilot", word, "--vehicle", "x500", "--course", "line", "--conditions", "baseline", "--no-report"]
    assert main(["evaluate", *words, "--wait", "0.1", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out.startswith(f"Each flight of {word} waits for it.")
    assert "within 0.1 s: an evaluation waits for it at each flight, so have it start anew whenever it ends" in said.err
    assert "flights that were flown are kept" in said.err


@pytest.mark.parametrize("word", ["px4:{}", "external:{}"])
def test_an_evaluation_waits_as_long_as_it_is_told(loopback: None, tmp_path: Path, word: str) -> None:
    vehicle = {"vehicle": "x500"} if word.startswith("px4") else {}
    config = EvaluateConfig((word.format(free_port()),), course="line", scene="empty_room", conditions=("baseline",), flights=1,
                            report=False, wait=0.35, out=tmp_path, **vehicle)  # fmt: skip
    with pytest.raises(AirworthyError, match=r"0\.35 s"):
        evaluate(config)


def test_an_evaluation_without_its_betaflight_ends_as_it_does_without_any_other(
    loopback: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It is met in its first flight: over UDP nobody connects before.
    given = ["--pilot", f"betaflight:{free_port()}", "--vehicle", "x500", "--course", "line", "--scene", "empty_room"]
    short = ["--conditions", "baseline", "--flights", "1", "--wait", "0.3", "--no-report"]
    assert main(["evaluate", *given, *short, "--out", str(tmp_path / "run")]) == 2
    assert "The pilot betaflight cannot be flown: betaflight never answered within 0.3 s" in capsys.readouterr().err
    assert not list((tmp_path / "run").rglob("*.parquet"))


def test_an_evaluation_of_our_own_pilots_waits_for_nobody(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="--wait 3 changes nothing for pilots of which none is a program outside"):
        evaluate(EvaluateConfig(("mpc",), wait=3.0, out=tmp_path))


def test_an_evaluation_waits_for_an_autopilot_at_each_flight(
    stand_in: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    port, over = free_port(), threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def again() -> None:
        while not over.is_set():
            started.append(stand_in("px4", port))
            while started[-1].poll() is None and not over.wait(0.05):
                pass
            over.wait(0.1)  # it ends at once where nobody listens yet

    thread = threading.Thread(target=again)
    thread.start()
    try:
        config = EvaluateConfig((f"px4:{port}", "geometric"), vehicle="x500", course="line", scene="empty_room",
                                conditions=("baseline",), flights=2, report=False, out=tmp_path)  # fmt: skip
        done = evaluate(config)
    finally:
        over.set()
        thread.join()
    entry, ours = done.summary["aggregate"]
    assert (entry["pilot"], entry["flights"], entry["family"]) == ("px4", 2, "rigid")
    assert set(entry) == set(ours)
    outcomes = [flight["outcome"] for flight in done.summary["flights"] if flight["pilot"] == "px4"]
    assert len(outcomes) == 2
    assert "pilot_error" not in outcomes
