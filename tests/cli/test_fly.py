"""`airworthy fly`, `demo` and `replay` as users and scripts call them."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import resource
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.benchmarks.fly.config import CONFIG_FILE, command_line, read_config, resolved
from airworthy.benchmarks.fly.job import FlyConfig, planned, run_fly
from airworthy.cli.common import run_tyro
from airworthy.cli.fly import show_summary
from airworthy.cli.main import main
from airworthy.control.allocation import Priority
from airworthy.core.errors import AssetError
from airworthy.core.files import write_json
from airworthy.scenes import scene, write_scene
from airworthy.simulation import FlightTable, read_flight, write_flight
from airworthy.tasks import OUTCOMES
from airworthy.trajectories import Course, course
from airworthy.trajectories.course_file import write_course
from airworthy.vehicles import vehicle, write_vehicle
from airworthy.viewer.flights import load_flight

FILES = {"config.json", "flight.parquet", "meta.json", "record", "report.html", "summary.json"}
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


@pytest.mark.slow
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


def test_a_pilot_that_fails_gets_no_figure(capsys: Output) -> None:
    """What was flown until then would look better than anything: an error of 0 m, within 100 %."""
    result = run_fly(FlyConfig(course="hover", envs=2, out=Path("run")), pilot=Sulking())
    for name in ("tracking_error_m", "proximity_percent", "speed_max_m_s"):
        assert math.isnan(result.summary["aggregate"][name]["mean"])
    show_summary(Path("run"), result.summary)
    printed = capsys.readouterr().out
    assert "2 pilot_error" in printed
    assert not any(word in printed for word in ("tracking error", "within", "top speed"))
    page = Path("run/report.html").read_text()
    assert "100 %" not in re.sub(r"(?s)<style.*?</style>|<svg.*?</svg>", "", page)


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
texts = st.text("abcäé_-=., 012", min_size=1, max_size=8).filter(lambda word: not word.startswith("-"))
configs = st.builds(
    FlyConfig,
    vehicle=st.lists(texts, min_size=1, max_size=3).map(tuple),
    course=st.none() | texts,
    waypoints=st.lists(st.tuples(finite, finite, finite).map(lambda p: ",".join(map(str, p))), max_size=3).map(tuple),
    envs=st.integers(1, 10**6),
    randomize=st.lists(texts, max_size=2).map(tuple),
    wind=st.tuples(finite, finite, finite),
    speed=st.none() | st.floats(0.01, 1e3),
    ground=st.booleans(),
    report=st.booleans(),
    dynamics=st.sampled_from(["rigid", "semi_kinematic"]),
    seed=st.integers(0, 2**63 - 1),
    imu=st.none() | texts,
    out=texts.map(Path),
)


@settings(max_examples=20)
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


def stopped(*_: Any, **__: Any) -> Any:
    """Ctrl-C at this point."""
    raise KeyboardInterrupt


def test_a_run_stopped_before_it_is_judged_is_completed_to_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Over an older run, whose evidence goes with its flights."""
    asked = ["fly", "--course", "hover", "--hold", "0", "--envs", "3", "--randomize", "default", "--out", "run"]
    assert main(asked) == 0
    whole = contents("run")
    assert main(["fly", "--course", "hover", "--hold", "0", "--out", "run"]) == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr("airworthy.benchmarks.fly.metrics.evaluate_tracking", stopped)
        assert main(asked) == 130
    message = "Interrupted before the flights were judged: they are saved; `airworthy judge run` completes the run.\n"
    assert capsys.readouterr() == ("", message)
    assert contents("run") == {name: data for name, data in whole.items() if name not in ("summary.json", "report.html")}
    assert main(["replay", "run"]) == 0  # the flights themselves were whole
    capsys.readouterr()
    assert main(["judge", "run"]) == 0
    assert capsys.readouterr().out.endswith("Report: run/report.html\n")
    assert contents("run") == whole
    assert main(["judge", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["flights"] == 3
    assert contents("run") == whole


def contents(folder: str) -> dict[str, bytes]:
    """Every file by its path."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_what_a_failing_pilot_left_is_judged_again(capsys: Output) -> None:
    run_fly(FlyConfig(course="hover", envs=2, out=Path("run"), report=False), pilot=Sulking())
    whole = contents("run")
    Path("run/summary.json").unlink()
    assert main(["judge", "run"]) == 0
    assert contents("run") == whole
    flights = json.loads(whole["summary.json"])["flights"]
    assert {(flight["outcome"], flight["cause"][:12]) for flight in flights} == {("pilot_error", "RuntimeError")}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder / "record"), "'run' has no record/record.json: it is no run of"),
        (put("record/record.json", b"[]"), "'run/record/record.json' is not the record of a run"),
        (edit("record/record.json", vehicles=[3]), "'run/record/record.json' is not the record of a run"),
        (edit("record/record.json", copies={"scene": "../../x"}), "'run/record/record.json' is not the record of a run"),
        (edit("record/record.json", vehicles=3), "'run/record/record.json' is not the record of a run"),
        (edit("record/record.json", colour="red"), "'run/record/record.json' is not the record of a run"),
        (put("record/trajectory.json", b"{}"), "'run/record/trajectory.json' is not an airworthy-trajectory file"),
        (put("record/vehicle_0.toml", b"x = 1"), "vehicle_0.toml says no file version: begin it with the line version = 1."),
        (flip, "'run/flight.parquet' is not the file that its meta.json describes"),
    ],
)
def test_judging_a_damaged_folder(damage: Callable[[Path], object], message: str, finished: Path, capsys: Output) -> None:
    shutil.copytree(finished, "run")
    damage(Path("run"))
    assert main(["judge", "run"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


# ---- a folder on its own ----------------------------------------------------------------------------------------------------


def own_inputs() -> list[str]:
    """Files of a user: a vehicle, a course and a scene; the options that name them."""
    home = Path("home")
    home.mkdir()
    write_vehicle(vehicle("carl"), home / "mine.toml")
    place = scene("empty_room")
    x, y, z = 0.5 * (np.array(place.bounds.lower) + np.array(place.bounds.upper))
    write_course(Course("mine", "waypoints", waypoints=((x, y, z), (x + 0.3, y, z))), home / "mine.json")
    write_scene(place, home / "place")
    return ["--vehicle", "home/mine.toml", "--course", "home/mine.json", "--scene", "home/place"]


def test_a_run_is_repeated_elsewhere_when_its_sources_changed_or_went(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    assert main(["fly", *own_inputs(), "--hold", "0", "--out", "run"]) == 0
    Path("elsewhere").mkdir()
    shutil.move("run", "elsewhere/run")
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["replay", "run"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("Equal")
    assert "The scene 'home/place' is not there, seen from this folder." in out
    monkeypatch.chdir(tmp_path)
    assert main(["replay", "elsewhere/run"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1  # the files are as they were
    write_vehicle(replace(vehicle("carl"), mass=9.0), "home/mine.toml")
    write_course(course("robustness"), "home/mine.json")
    shutil.rmtree("home/place")
    assert main(["replay", "elsewhere/run"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("Equal")
    assert "The vehicle 0 'home/mine.toml' has changed since." in out
    assert "The course 'home/mine.json' has changed since." in out
    assert "The scene 'home/place' is not there, seen from this folder." in out
    whole = contents("elsewhere/run")
    assert main(["judge", "elsewhere/run"]) == 0
    assert contents("elsewhere/run") == whole


def test_a_film_is_made_elsewhere_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who flew and where comes from the folder; so does what the viewer shows."""
    assert main(["fly", *own_inputs(), "--hold", "0", "--no-report", "--out", "run"]) == 0
    Path("elsewhere").mkdir()
    shutil.move("run", "elsewhere/run")
    shutil.rmtree("home")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["film", "run", "--camera", "chase", "--size", "64", "48", "--rate", "2", "--samples", "1"]) == 0
    shown = load_flight("run")
    assert shown.scene == "run/record/scene"
    assert [item.name for item in shown.vehicles] == [vehicle("carl").name]


def changed(what: str, value: str) -> Callable[[pytest.MonkeyPatch, Path], None]:
    """A run that was made in other surroundings."""

    def do(patch: pytest.MonkeyPatch, folder: Path) -> None:
        record = json.loads((folder / "record/record.json").read_text())
        record["surroundings"][what] = value
        write_json(folder / "record/record.json", record)

    return do


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (changed("airworthy", "0.0.1"), "The version of this package is another: 0.0.1 then, "),
        (changed("source", "0" * 64), "The source code of this package is another, under the same version."),
        (changed("instruction set", "x86_64 sse2"), "The instruction set is another: x86_64 sse2 then, "),
        (changed("numpy", "1.0"), "The version of NumPy is another: 1.0 then, "),
        (changed("warp", "1.0"), "The version of Warp is another: 1.0 then, "),
    ],
)
def test_the_cause_of_a_difference_is_named(
    change: Callable[[pytest.MonkeyPatch, Path], None],
    cause: str,
    finished: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    shutil.copytree(finished, "run")
    other_table("run")
    change(monkeypatch, Path("run"))
    assert main(["replay", "run"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Different: recorded by version ")
    assert out.splitlines()[1].startswith(cause)
    assert len(out.splitlines()) == 2


def other_table(folder: str) -> None:
    """Flights as they might have been elsewhere: one value is another, and everything in the folder fits."""
    table, meta = read_flight(folder)
    columns = {name: np.array(values) for name, values in table.columns.items()}
    columns["position_x_m"][-1] += 1e-6
    write_flight(folder, FlightTable.from_columns(columns), meta)


def test_a_difference_without_a_cause_is_called_a_fault(finished: Path, capsys: Output) -> None:
    shutil.copytree(finished, "run")
    other_table("run")
    assert main(["replay", "run"]) == 1
    assert capsys.readouterr().out.splitlines()[1].startswith("Nothing that is recorded of inputs and machine differs.")


def test_other_gains_under_the_same_name_are_named(finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    shutil.copytree(finished, "run")
    record = json.loads(Path("run/record/record.json").read_text())
    record["digests"]["gains 0"] = "0" * 64
    write_json(Path("run/record/record.json"), record)
    other_table("run")
    assert main(["replay", "run"]) == 1
    assert capsys.readouterr().out.splitlines()[1].startswith("The gains 0 is another: SHA-256 000000000000... then, ")


def test_a_course_file_s_own_laps_are_flown_unless_others_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    points = ((1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (-1.0, 0.0, 1.0), (0.0, -1.0, 1.0), (1.0, 0.0, 1.0))
    course = Course("twice", "waypoints", waypoints=points, waypoint_yaw="fixed", lap_count=2)
    write_course(course, path)
    once, own, asked = (planned(FlyConfig(course=str(path), laps=laps))[0].duration for laps in (1, None, 3))
    assert own == pytest.approx(2.0 * once)
    assert asked == pytest.approx(3.0 * once)


def test_an_inertial_sensor_is_recorded(tmp_path: Path) -> None:
    """At rest at the end of the course: gravity up, no rate; in the rows of the instant they stand in."""
    run_fly(FlyConfig(course="line", imu="ideal", report=False, out=tmp_path / "run", hold=2.0))
    table, _ = read_flight(tmp_path / "run")
    force = np.stack([table.columns[f"imu_force_{axis}_m_s2"] for axis in "xyz"], axis=1)
    turning = np.stack([table.columns[f"imu_rate_{axis}_rad_s"] for axis in "xyz"], axis=1)
    np.testing.assert_allclose(turning, table.vector("rate"), atol=2e-3)
    assert np.isfinite(force).all()
    run_fly(FlyConfig(course="line", report=False, out=tmp_path / "without"))
    assert not [name for name in read_flight(tmp_path / "without")[0].columns if name.startswith("imu")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pilot", "crazyflie", "--vehicle", "cf2x_L250"], "the law of pilot 'crazyflie' commands the rotors by itself"),
        (["--dynamics", "semi_kinematic"], "semi_kinematic dynamics have no rotors"),
        (["--pilot", "straight", "--scene", "forest", "--start", "1", "1", "1"], "planners bring their own controller"),
    ],
)
def test_a_priority_without_effect_is_refused(arguments: list[str], why: str, capsys: Output) -> None:
    assert main(["fly", *arguments, "--priority", "force-attitude-yaw", "--out", "runs/none"]) == 2
    assert f"--priority changes nothing, since {why}: leave it out." in capsys.readouterr().err


def test_the_priority_of_allocation_decides_what_saturated_rotors_give(tmp_path: Path) -> None:
    """On a course hurried beyond what its rotors give, another order is another flight."""
    flown = {}
    orders: tuple[Priority | None, ...] = (None, "force-attitude-yaw")
    for order in orders:
        out = tmp_path / (order or "usual")
        run_fly(FlyConfig(course="robustness", slower=0.15, priority=order, report=False, out=out))
        flown[order] = read_flight(out)[1]["sha256"]
        assert ("priority" in json.loads((out / "config.json").read_text())) == (order is not None)
    assert len(set(flown.values())) == 2
