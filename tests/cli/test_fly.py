"""`airworthy fly`, `demo` and `replay` as users and scripts call them."""

from __future__ import annotations

import errno
import json
import os
import resource
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.cli.common import run_tyro
from airworthy.cli.main import main
from airworthy.core.errors import AssetError
from airworthy.core.files import write_json
from airworthy.evaluation.fly_config import CONFIG_FILE, command_line, read_config, resolved
from airworthy.evaluation.fly_job import FlyConfig, run_fly
from airworthy.simulation import read_flight
from airworthy.tasks import OUTCOMES
from airworthy.trajectories import course

FILES = {"config.json", "flight.parquet", "meta.json", "report.html", "summary.json"}
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def short(*arguments: str) -> list[str]:
    """A flight of a fraction of a second of computing."""
    return ["fly", "--course", "hover", "--hold", "0", "--no-report", "--out", "run", *arguments]


# ---- what a run leaves ------------------------------------------------------------------------------------------------------


def test_a_run_for_people(capsys: Output) -> None:
    assert main(["fly", "--course", "hover", "--envs", "2", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "2 success" in out
    assert "tracking error [m]" in out
    assert out.endswith("Report: run/report.html\n")
    assert {path.name for path in Path("run").iterdir()} == FILES


def test_a_run_for_machines(capsys: Output) -> None:
    assert main(short("--envs", "2", "--json")) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert found["folder"] == "run"
    assert (found["interrupted"], found["pilot_error"]) == (False, None)
    assert list(found["outcomes"]) == list(OUTCOMES)
    summary = json.loads(Path("run/summary.json").read_text())
    assert found["tracking_error_m"] == summary["aggregate"]["tracking_error_m"]
    assert {path.name for path in Path("run").iterdir()} == FILES - {"report.html"}


def test_a_run_in_a_thread_of_a_larger_program() -> None:
    """Signals belong to the main thread: elsewhere the command leaves them alone."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(short("--json"))))
    thread.start()
    thread.join()
    assert codes == [0]


def test_summary_and_meta_say_what_flew() -> None:
    assert main(short("--vehicle", "carl", "lmf2", "--envs", "3", "--seed", "9")) == 0
    flights = json.loads(Path("run/summary.json").read_text())["flights"]
    assert [flight["vehicle"] for flight in flights] == ["carl", "lmf2", "carl"]
    assert {(flight["course"], flight["pilot"], flight["seed"]) for flight in flights} == {("hover", "geometric", 9)}
    _, meta = read_flight("run")
    assert meta["vehicle"] == ["carl", "lmf2"]
    assert meta["config"] == json.loads(Path("run/config.json").read_text())


def test_the_recorded_command_makes_the_same_bytes() -> None:
    """Words with spaces, negative numbers, flags and a path: the command line in the folder is complete."""
    odd = ["--wind", "-1", "0.5", "0", "--randomize", "mass=0.1 wind=1", "--no-report", "--out", "a folder"]
    assert main(["fly", "--waypoints", "-1,0,1", "1,0,1.5", "--ground", "--imu", "bmi088", "--seed", "3", *odd]) == 0
    first = Path("a folder/flight.parquet").read_bytes()
    command = json.loads(Path("a folder/summary.json").read_text())["command"]
    assert main(shlex.split(command)[1:]) == 0
    assert Path("a folder/flight.parquet").read_bytes() == first


@pytest.mark.parametrize("dynamics", ["rigid", "semi_kinematic"])
def test_several_laps_and_another_pace(dynamics: str) -> None:
    options = ("--course", "circle_8", "--laps", "2", "--slower", "0.9", "--dynamics", dynamics)
    assert main(["fly", *options, "--no-report", "--out", "run"]) == 0
    (flight,) = json.loads(Path("run/summary.json").read_text())["flights"]
    assert flight["outcome"] == "success"
    assert flight["path_length_m"] > 1.8 * course("circle_8").trajectory().length()


class Sulking:
    """A pilot that stops half-way."""

    name, level, observes = "sulking", "position", ()

    def command(self, observation: Any) -> Any:
        if observation.time[0] > 0.5:
            raise RuntimeError("no more")
        return [0.0, 0.0, -1.0, 0.0]


def test_what_a_failing_pilot_leaves(capsys: Output) -> None:
    result = run_fly(FlyConfig(course="hover", envs=2, out=Path("run"), report=False), pilot=Sulking())
    assert result.pilot_error.startswith("RuntimeError: no more (test_fly.py, line ")
    flights = result.summary["flights"]
    assert [flight["outcome"] for flight in flights] == ["pilot_error"] * 2
    assert {flight["cause"] for flight in flights} == {result.pilot_error}
    assert result.summary["aggregate"]["outcomes"]["pilot_error"] == 2
    assert read_flight("run")[1]["pilot_error"] == result.pilot_error
    assert main(["replay", "run"]) == 2
    assert "Unknown pilot 'sulking'" in capsys.readouterr().err


# ---- replay -----------------------------------------------------------------------------------------------------------------


def test_replay_of_a_finished_run(finished: Path, capsys: Output) -> None:
    assert main(["replay", str(finished)]) == 0
    assert capsys.readouterr().out.startswith("Equal: every flight has the same bytes (SHA-256 ")
    assert main(["replay", str(finished), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is True
    assert found["recorded_sha256"] == found["repeated_sha256"]


def test_replay_of_another_run_s_numbers(finished: Path, capsys: Output) -> None:
    """A folder that was changed consistently: everything in it fits, and the flights are those of another seed."""
    shutil.copytree(finished, "run")
    for name in ("config.json", "meta.json"):
        path = Path("run") / name
        path.write_text(path.read_text().replace('"seed": 5', '"seed": 6'))
    assert main(["replay", "run"]) == 1
    assert capsys.readouterr().out.startswith("Different: recorded by version ")


def cut(name: str, length: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def edit(name: str, **changes: Any) -> Callable[[Path], object]:
    def do(folder: Path) -> None:
        write_json(folder / name, json.loads((folder / name).read_text()) | changes)

    return do


def flip(folder: Path) -> None:
    data = bytearray((folder / "flight.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "flight.parquet").write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut("config.json", 100), "'run/config.json' is not valid JSON: "),
        (cut("config.json", 0), "'run/config.json' is not valid JSON"),
        (put("config.json", b"[1]"), "'run/config.json' is not a configuration of `airworthy fly` in version 1."),
        (put("config.json", b"\xff\xfe\x00"), "'run/config.json' is not UTF-8 text"),
        (lambda folder: (folder / "config.json").unlink(), "There is no file 'run/config.json'."),
        (edit("config.json", version=2), "in version 1."),
        (edit("config.json", colour="red"), "has the unknown option 'colour'"),
        (edit("config.json", envs="3"), "envs cannot be '3'"),
        (edit("config.json", vehicle="carl"), "vehicle cannot be 'carl'"),
        (edit("config.json", wind=[1.0, 2.0]), "wind cannot be [1.0, 2.0]"),
        (edit("config.json", seed=None), "seed cannot be None"),
        (edit("config.json", dynamics="rubber"), "dynamics cannot be 'rubber'"),
        (edit("config.json", envs=4), "tell of different runs"),
        (edit("meta.json", config=None), "tell of different runs"),
        (edit("meta.json", interrupted=True), "was interrupted; only a finished run"),
        (edit("meta.json", sha256="0"), "'run/flight.parquet' is damaged"),
        (put("meta.json", b"\x00garbage"), "'run/meta.json' is not valid JSON"),
        (put("meta.json", b"null"), "'run/meta.json' holds no table of keys"),
        (cut("meta.json", 60), "'run/meta.json' is not valid JSON"),
        (lambda folder: (folder / "meta.json").unlink(), "There is no file 'run/meta.json'."),
        (flip, "'run/flight.parquet' is damaged: its SHA-256 is not the one in meta.json."),
        (cut("flight.parquet", 500), "'run/flight.parquet' is damaged"),
        (lambda folder: (folder / "flight.parquet").unlink(), "Could not read 'run/flight.parquet'"),
    ],
)
def test_replay_of_a_damaged_folder(damage: Callable[[Path], object], message: str, finished: Path, capsys: Output) -> None:
    shutil.copytree(finished, "run")
    damage(Path("run"))
    assert main(["replay", "run"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@settings(max_examples=100)
@given(data=st.data())
def test_a_config_with_any_byte_changed_loads_or_is_refused(data: st.DataObject, finished: Path) -> None:
    content = bytearray((finished / CONFIG_FILE).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    Path(CONFIG_FILE).write_bytes(content)
    try:
        found: FlyConfig | str = read_config(".")
    except AssetError as error:
        found = str(error)
    assert isinstance(found, FlyConfig) or "\n" not in found


finite = st.floats(-100.0, 100.0, allow_nan=False)
words = st.text("abcäé_-=., 012", min_size=1, max_size=8).filter(lambda word: not word.startswith("-"))
configs = st.builds(
    FlyConfig,
    vehicle=st.lists(words, min_size=1, max_size=3).map(tuple),
    course=st.none() | words,
    waypoints=st.lists(st.tuples(finite, finite, finite).map(lambda p: ",".join(map(str, p))), max_size=3).map(tuple),
    envs=st.integers(1, 10**6),
    randomize=st.lists(words, max_size=2).map(tuple),
    wind=st.tuples(finite, finite, finite),
    speed=st.none() | st.floats(0.01, 1e3),
    ground=st.booleans(),
    report=st.booleans(),
    dynamics=st.sampled_from(["rigid", "semi_kinematic"]),
    seed=st.integers(0, 2**63 - 1),
    imu=st.none() | words,
    out=words.map(Path),
)


@settings(max_examples=60)
@given(config=configs)
def test_configurations_survive_the_file_and_the_command_line(config: FlyConfig) -> None:
    write_json(CONFIG_FILE, resolved(config))
    assert read_config(".") == config
    arguments = shlex.split(command_line(config))
    assert arguments[:2] == ["airworthy", "fly"]
    assert run_tyro(FlyConfig, arguments[2:], "airworthy fly", "") == config


# ---- where it cannot write --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("a_file", "'a_file' is a file; --out names a folder, which is made where it is missing."),
        ("a_file/run", "Could not make the folder 'a_file/run': Not a directory."),
        ("/dev/null/run", "Could not make the folder '/dev/null/run': Not a directory."),
        ("x" * 300, ": File name too long."),
        ("two\nlines", "out is 'two\\nlines', which has letters that are not text; choose another folder."),
        ("half a \udcff letter", "which has letters that are not text; choose another folder."),
    ],
)
def test_a_folder_that_cannot_be(out: str, message: str, capsys: Output) -> None:
    Path("a_file").write_text("")
    assert main([*short()[:-1], out]) == 2
    captured = capsys.readouterr()
    assert captured.err.endswith(f"{message}\n")
    assert captured.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_may_not_be_written(capsys: Output) -> None:
    Path("run").mkdir(mode=0o500)
    assert main(short()) == 2
    assert "Could not write in 'run': Permission denied." in capsys.readouterr().err


@pytest.mark.parametrize("function", ["write", "fsync", "replace"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_disk_that_fills_up_leaves_whole_files_or_none(
    function: str, nth: int, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """The n-th system call fails: one sentence, files whole, nothing temporary, and the next run succeeds."""
    real, calls = getattr(os, function), []

    def fails(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fails)
        code = main(["fly", "--course", "hover", "--hold", "0", "--out", "run"])
    assert len(calls) >= nth
    assert code == 2
    assert capsys.readouterr().err.endswith(": No space left on device.\n")
    assert {path.name for path in Path("run").iterdir()} <= FILES
    for name in ("meta.json", "config.json", "summary.json"):
        if (Path("run") / name).exists():
            json.loads((Path("run") / name).read_text())
    assert main(short()) == 0
    assert main(["replay", "run"]) == 0


@pytest.fixture
def _small_files() -> Iterator[None]:
    """As on a full disk: no file may grow beyond 20 kB, and the system says so to pyarrow as well."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("_small_files")
def test_a_table_that_does_not_fit_on_the_disk(capsys: Output) -> None:
    assert main(["fly", "--course", "line", "--no-report", "--out", "run"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Could not write 'run/flight.parquet': ")
    assert "File too large" in err
    assert list(Path("run").iterdir()) == []


def test_an_older_run_s_summary_does_not_outlive_its_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["fly", "--course", "hover", "--hold", "0", "--out", "run"]) == 0

    def fails(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("airworthy.evaluation.fly_job.evaluate_tracking", fails)
        assert main(["fly", "--course", "hover", "--hold", "0.5", "--out", "run"]) == 130
    assert {path.name for path in Path("run").iterdir()} == {"config.json", "flight.parquet", "meta.json"}
    assert main(["replay", "run"]) == 0  # the flights themselves were whole
