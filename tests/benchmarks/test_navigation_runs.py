"""Runs of the navigation benchmark: what they keep, how they go on, flying a row again, the report, the command."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airworthy.benchmarks.navigation import job, store
from airworthy.benchmarks.navigation.config import NavigationConfig, Perturbation, blocks_of, check, flights_of, quick
from airworthy.benchmarks.navigation.flight_records import COLUMNS
from airworthy.benchmarks.navigation.job import fly_block, read_system, run_benchmark, track_of
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.benchmarks.navigation.replay import replay_row
from airworthy.benchmarks.navigation.store import command_line, read_rows
from airworthy.cli.bench.navigation import LISTS
from airworthy.cli.common import gathered
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder
from airworthy.planners.mapping import LocalMaps
from airworthy.tasks.navigation import NavigationProtocol

SCENARIOS, VEHICLES = ("narrow_gap", "maze"), ("virt_05", "real_09")


class Killed(BaseException):
    """What a killed process looks like from inside: nothing after it runs but the operating system's own cleaning."""


def small(folder: Path, **changes: Any) -> NavigationConfig:
    """Eight short flights of straight flight in four blocks."""
    given = {"vehicles": VEHICLES, "scenarios": SCENARIOS, "trials": 2, "batch": 2, "report": False, "out": folder}
    return NavigationConfig(**{**given, "protocol": NavigationProtocol(time_limit_s=4.0), **changes})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_benchmark(small(folder)).complete
    return folder


def table(folder: Path) -> bytes:
    return (folder / store.RESULTS_FILE).read_bytes()


# ---- what is kept ---------------------------------------------------------------------------------------------------


def test_a_run_keeps_a_row_per_flight(whole: Path) -> None:
    rows = read_rows(whole)
    assert len(rows) == 8
    assert list(rows[0]) == list(COLUMNS)
    assert [row["outcome"] for row in rows if row["scenario"] == "narrow_gap"] == ["timeout_no_path"] * 4
    summary = json.loads((whole / job.SUMMARY_FILE).read_text())
    assert summary["state"] == {"complete": True, "flights": 8, "finished": 8, "digest": summary["state"]["digest"]}
    assert [row["outcome"] for row in rows if row["scenario"] == "maze"] == ["collision"] * 4
    assert summary["scores"][0]["score"] == 0.0
    assert summary["division"]["division"] == "open"


def test_a_run_stopped_anywhere_ends_with_the_same_table(whole: Path, tmp_path: Path) -> None:
    def kill(name: str) -> None:
        raise Killed

    for left in (3, 2, 1, 0):
        with pytest.raises(Killed) if left or left == 0 else pytest.raises(AssertionError):
            run_benchmark(small(tmp_path), step=kill)
        assert len(list((tmp_path / store.BLOCKS).glob("*.parquet"))) == 4 - left
    assert run_benchmark(small(tmp_path), step=kill).complete  # nothing is left to fly
    assert table(tmp_path) == table(whole)


def test_a_block_that_was_written_when_the_run_was_killed_counts(whole: Path, tmp_path: Path) -> None:
    run_benchmark(small(tmp_path))
    manifest = json.loads((tmp_path / store.MANIFEST_FILE).read_text())
    name = next(iter(manifest["blocks"]))
    manifest["blocks"] = {k: v for k, v in manifest["blocks"].items() if k != name}
    (tmp_path / store.MANIFEST_FILE).write_text(json.dumps(manifest))
    flown: list[str] = []
    assert run_benchmark(small(tmp_path), step=flown.append).complete
    assert flown == []
    assert table(tmp_path) == table(whole)


def test_half_a_block_is_flown_again_and_a_changed_one_refused(whole: Path, tmp_path: Path) -> None:
    run_benchmark(small(tmp_path))
    path = sorted((tmp_path / store.BLOCKS).glob("*.parquet"))[1]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(AssetError, match="changed or damaged"):
        run_benchmark(small(tmp_path))
    path.unlink()
    flown: list[str] = []
    run_benchmark(small(tmp_path), step=flown.append)
    assert flown == [path.stem]
    assert table(tmp_path) == table(whole)


def test_processes_and_batches_give_the_same_rows(whole: Path, tmp_path: Path) -> None:
    done = run_benchmark(small(tmp_path, workers=2))
    assert done.complete
    assert table(tmp_path) == table(whole)


def test_other_batches_give_the_same_rows(whole: Path, tmp_path: Path) -> None:
    run_benchmark(small(tmp_path, batch=5))
    assert read_rows(tmp_path) == read_rows(whole) or str(read_rows(tmp_path)) == str(read_rows(whole))  # NaN is not itself


def test_pilots_join_a_folder(whole: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from airworthy.planners.straight import StraightFlight\n\n\nclass Mine(StraightFlight):\n    name = 'mine'\n"
    )
    out = tmp_path / "out"
    less = {"trials": 1, "scenarios": ("maze",)}
    run_benchmark(small(out, **less))
    done = run_benchmark(small(out, pilots=(f"{own}:Mine",), **less))
    assert (done.complete, done.flights) == (True, 4)
    rows = read_rows(out)
    assert [row["pilot"] for row in rows] == ["straight"] * 2 + ["mine"] * 2
    assert [row["trace"] for row in rows[:2]] == [row["trace"] for row in rows[2:]]
    assert done.summary["paired"][0]["difference"] == 0.0
    assert f"--pilots straight {own}:Mine" in done.summary["command"]
    own.write_text(own.read_text() + "# changed\n")
    with pytest.raises(AirworthyError, match="another pilot 'mine'"):
        run_benchmark(small(out, pilots=(f"{own}:Mine",), **less))


def test_other_settings_and_a_folder_in_use_are_refused(whole: Path) -> None:
    for changes, message in (({"seed": 1}, "seed: 0 before, 1 now"), ({"perturb": Perturbation(drift=0.1)}, "perturb.drift")):
        with pytest.raises(AirworthyError, match=message):
            run_benchmark(small(whole, **changes))
    with lock_folder(whole), pytest.raises(AirworthyError, match="Another run"):
        run_benchmark(small(whole))


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, whole: Path) -> None:
    def stop(name: str) -> None:
        raise KeyboardInterrupt

    done = run_benchmark(small(tmp_path), step=stop)
    assert (done.interrupted, done.complete, done.finished) == (True, False, 2)
    assert len(read_rows(tmp_path)) == 2
    run_benchmark(small(tmp_path))
    assert table(tmp_path) == table(whole)


def test_a_cluster_flies_the_same(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, Any] = {}

    class Remote:
        def __init__(self, function: Any):
            self.remote = lambda *arguments: (function, arguments)

    fake = types.ModuleType("ray")
    fake.init = lambda address, **_: calls.update(address=address)  # type: ignore[attr-defined]
    fake.remote = lambda **_: Remote  # type: ignore[attr-defined]
    fake.wait = lambda waiting, num_returns: (waiting[-1:], waiting[:-1])  # type: ignore[attr-defined]
    fake.get = lambda reference: reference[0](*reference[1])  # type: ignore[attr-defined]
    fake.shutdown = lambda: calls.update(down=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setenv("AIRWORTHY_THREADS", "1")  # as the cluster's machines set it, and put back afterwards
    run_benchmark(small(tmp_path, cluster="10.0.0.1:6379"))
    assert calls == {"address": "10.0.0.1:6379", "down": True}
    assert table(tmp_path) == table(whole)


@pytest.mark.slow
def test_ten_kills_at_random_times_change_nothing(whole: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    arguments = ["--vehicles", *VEHICLES, "--scenarios", *SCENARIOS, "--trials", "2", "--batch", "2", "--no-report"]
    command = [sys.executable, "-m", "airworthy.cli.main", "bench", "navigation", *arguments, "--workers", "2"]
    command += ["--protocol.time-limit-s", "4", "--out", str(tmp_path)]
    for _ in range(10):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(rng.uniform(0.5, 9.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert table(tmp_path) == table(whole)


# ---- again ----------------------------------------------------------------------------------------------------------


def test_every_row_flies_again_to_the_same_bytes(whole: Path) -> None:
    for number in (0, 3, 7):
        found = replay_row(whole, number)
        assert found.equal, found.differs
        assert found.folder is not None
    from airworthy.viewer.subjects import load_subject

    subject = load_subject(str(found.folder))
    assert subject.flight is not None
    assert subject.flight.scene == "maze:2@0"
    assert int(subject.flight.table.status[-1]) == 2


def test_a_changed_row_is_found_out(whole: Path, tmp_path: Path) -> None:
    for name in (store.MANIFEST_FILE, store.RESULTS_FILE):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    rows = read_rows(tmp_path)
    rows[0]["end_x_m"] += 1e-12
    head = {"digest": json.loads((tmp_path / store.MANIFEST_FILE).read_text())["digest"]}
    (tmp_path / store.RESULTS_FILE).write_bytes(store.parquet_bytes(rows, head))
    found = replay_row(tmp_path, 0, keep=False)
    assert (found.equal, found.differs, found.folder) == (False, ("end_x_m",), None)
    with pytest.raises(AirworthyError, match="There is no row 8"):
        replay_row(tmp_path, 8)


def test_a_flight_that_never_began_is_compared_and_leaves_no_flight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With so little thrust it does not settle at its start."""
    weak = Perturbation(motor_degradation=0.9)
    config = small(tmp_path, vehicles=("virt_05",), scenarios=("narrow_gap",), trials=1, perturb=weak)
    run_benchmark(config)
    assert read_rows(tmp_path)[0]["outcome"] == "diverged"
    found = replay_row(tmp_path, 0)
    assert (found.equal, found.folder) == (True, None)
    assert main(["bench", "replay", str(tmp_path), "0"]) == 0
    assert "No flight is kept" in capsys.readouterr().out


def test_measured_latencies_fly_again(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from airworthy.planners.straight import StraightFlight\n\n\n"
        "class Thinks(StraightFlight):\n"
        "    name = 'thinks'\n\n"
        "    def update(self, motion, maps, active):\n"
        "        return {**super().update(motion, maps, active), 'work': {'other': active.astype(float)}}\n"
    )
    out = tmp_path / "out"
    small_run = small(out, pilots=(f"{own}:Thinks",), compute="measured", trials=1, scenarios=("maze",))
    run_benchmark(small_run)
    row = read_rows(out)[0]
    times = json.loads(row["latencies"])
    assert len(times) == row["decisions"] > 10
    assert sum(times) == pytest.approx(row["compute_s"])
    assert replay_row(out, 0, keep=False).equal


# ---- report and words -----------------------------------------------------------------------------------------------


def test_the_report_has_every_figure_and_loads_nothing(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "report", str(whole)]) == 0
    text = (whole / "report.html").read_text()
    assert str(whole / "report.html") in capsys.readouterr().out
    for figure in ("F6", "F7", "F8", "F9", "F10", "F11 to F15", "Table 2"):
        assert f"{figure}." in text or f"{figure}</" in text or f">{figure}" in text, figure
    assert text.count("<svg") == 5 + 1 + 2  # five of all pilots, a heat map each, two places from above
    assert text.count('src="data:image/jpeg') == 2
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert "://" not in text
    assert "published" in text
    assert "open division" in text


def test_why_is_printed_while_a_run_goes_on(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lock_folder(whole):
        assert main(["bench", "report", str(whole), "--why"]) == 0
        text = capsys.readouterr().out
        assert main(["bench", "report", str(whole), "--why", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "success by layout" in text
    assert "why flights failed" in text
    assert {e["cause"] for e in printed["failures"] if e["scenario"] == "maze"} == {"hit a wall"}
    assert [e["flights"] for e in printed["layouts"]] == [{"1": 2, "2": 2}] * 2


def test_the_command_line_says_it_again(tmp_path: Path) -> None:
    config = small(tmp_path, pilots=("straight", "ego"), perturb=Perturbation(drift=0.1), workers=2)
    tokens = command_line(config)
    assert "--perturb.drift 0.1" in tokens
    assert "--workers" not in tokens
    from airworthy.cli.common import run_tyro

    read = run_tyro(NavigationConfig, gathered(tokens.split()[3:], LISTS), "x", "")
    # A folder by its name alone: results name no path of a machine.
    assert read == replace(config, workers=1, report=True, out=Path(tmp_path.name))


def test_gathering_lists() -> None:
    given = ["--pilots", "a", "--seed", "1", "--pilots", "b", "--pilots=c"]
    assert gathered(given, LISTS) == ["--seed", "1", "--pilots", "a", "b", "c"]


def test_divisions() -> None:
    who = [method_of("straight")]
    assert track_of(NavigationConfig(workers=2, seed=3), who) == {
        "division": "closed",
        "because": [],
        "acceleration_m_s2": 6.0,
    }
    knows = track_of(NavigationConfig(), [method_of("expert")])
    assert (knows["division"], knows["because"]) == ("open", ["pilot 'expert' knows the whole place"])
    gentle = track_of(NavigationConfig(protocol=NavigationProtocol(acceleration_m_s2=3.0)), who)
    assert (gentle["division"], gentle["acceleration_m_s2"]) == ("closed", 3.0)  # an axis of its own
    for rules in (NavigationProtocol(acceleration_m_s2=4.0), NavigationProtocol(acceleration_m_s2=3.0, speed_m_s=3.0)):
        assert track_of(NavigationConfig(protocol=rules), who)["division"] == "open"
    for changes in (
        {"layouts": 1},
        {"compute": "zero"},
        {"controller": "nmpc"},
        {"perturb": Perturbation(drift=0.1)},
        {"body": "body"},
    ):
        assert track_of(NavigationConfig(**changes), who)["division"] == "open"


def test_a_system_describes_itself(tmp_path: Path) -> None:
    path = tmp_path / "system.toml"
    path.write_text('name = "ours"\nprocessor = "one core"\n')
    assert read_system(path) == {"name": "ours", "processor": "one core"}
    for text, why in (('speed = "9"', "says 'speed'"), ("name = 3", "says 'name'"), ('notes = "x"', "does not say")):
        path.write_text(text)
        with pytest.raises(AssetError, match=why):
            read_system(path)
    assert read_system(None) == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pilots": ()}, "at least one of --pilots"),
        ({"pilots": ("straight", "straight")}, "named twice"),
        ({"vehicles": ("real_12", "real_12")}, "The same vehicle was named twice"),
        ({"scenarios": ("forest", "forest")}, "The same scenario was named twice"),
        ({"vehicles": ("real_99",)}, "Unknown vehicle 'real_99'"),
        ({"scenarios": ("desert",)}, "Unknown scenario 'desert'"),
        ({"trials": 11}, "expected 1 to 10"),
        ({"batch": 0}, "--batch is 0"),
        ({"vehicles": ("own.toml", "./own.toml")}, "The same vehicle was named twice: own.toml, ./own.toml; name each once."),
        ({"vehicles": ("own.toml", os.path.abspath("own.toml"))}, "The same vehicle was named twice: own.toml, /"),
        ({"seed": -1}, "seed is -1; expected 0 to 2^63 - 1"),
        ({"decision_timeout": 0.0}, "--decision-timeout is 0.0"),
        ({"warm_up": float("nan")}, "warm_up is nan; expected a finite number"),
        ({"perturb": Perturbation(drift=-1.0)}, "--perturb.drift is -1.0"),
        ({"perturb": Perturbation(moving_obstacles=999)}, "moving-obstacles is 999"),
        ({"compute": "magic"}, "Unknown compute 'magic'"),
        ({"controller": "soo3"}, "Unknown controller 'soo3'"),
    ],
)
def test_what_cannot_be_done_is_refused(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=re.escape(why)):
        check(NavigationConfig(**changes, out=tmp_path))


def test_quick_keeps_what_was_named() -> None:
    assert quick(NavigationConfig(quick=True)).trials == 1
    assert quick(NavigationConfig(quick=True, trials=3)).trials == 3
    assert quick(NavigationConfig()).trials == 10


def test_what_is_flown_alone_is_doubted(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run is taken up without a word; of one that lacks a block that block's flights are looked at."""
    folder = tmp_path / "again"
    shutil.copytree(whole, folder)
    asked: list[list[str]] = []

    def told(methods: Any, flights: Any, config: Any) -> None:
        asked.append([item.name for item in methods])
        asked.append([flight.scenario for flight in flights])

    monkeypatch.setattr(job, "warn_of_doubts_in_benchmark", told)
    assert run_benchmark(small(folder)).complete
    assert asked == [[], []]
    next((folder / store.BLOCKS).glob("*.parquet")).unlink()
    assert run_benchmark(small(folder)).complete
    assert asked[2] == ["straight"]
    assert len(asked[3]) == 2
    assert table(folder) == table(whole)


def test_what_is_kept_names_no_path_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder below the working directory is named as seen from there, any other by its own name."""

    def out(folder: Path) -> str:
        return command_line(NavigationConfig(out=folder)).partition("--out ")[2]

    assert out(tmp_path / "runs" / "n") == "n"
    assert out(Path("runs/n")) == "runs/n"
    monkeypatch.chdir(tmp_path)
    assert out(tmp_path / "runs" / "n") == "runs/n"
    assert out(tmp_path) == tmp_path.name


def test_committed_results_name_no_path_of_a_machine() -> None:
    results = Path(__file__).parents[2] / "docs/results"
    path = re.compile(r"(?<![\w+/=.])/(?:work|tmp|home|root|Users)/")
    files = [file for ending in ("json", "html", "md") for file in results.rglob(f"*.{ending}")]
    assert len(files) > 20
    assert not [str(file) for file in files if path.search(file.read_text(encoding="utf-8"))]


def test_commands(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    assert "navigation" in capsys.readouterr().out
    assert main(["bench"]) == 2
    assert main(["bench", "nothing"]) == 2
    assert main(["bench", "report", str(tmp_path)]) == 2
    assert main(["bench", "replay", str(whole), "99"]) == 2
    assert "There is no row 99" in capsys.readouterr().err
    assert main(["bench", "replay", str(whole), "1", "--no-view"]) == 0
    assert "Equal, every byte" in capsys.readouterr().out
    assert main(["bench", "replay", str(whole), "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["equal"]
    assert main(["bench", "navigation", "--vehicles", "real_99", "--out", str(tmp_path)]) == 2
    arguments = ["bench", "smoke", "--scenarios", "maze", "--out", str(tmp_path / "smoke"), "--json", "--no-report"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["state"]["flights"] == 4
    assert os.listdir(tmp_path / "smoke")


def test_a_block_leaves_no_maps_behind(tmp_path: Path) -> None:
    """Simulators and pilots know each other: without a collection their maps would lie there while the next block is flown."""
    config = small(tmp_path, pilots=("ego",), protocol=NavigationProtocol(time_limit_s=0.2))
    flights = flights_of(config.scenarios, config.vehicles, (1,), 1)
    fly_block(blocks_of(["ego"], flights, 4)[0], "ego", config)
    assert not [thing for thing in gc.get_objects() if type(thing) is LocalMaps]  # isinstance would wake lazy attributes
