"""What commands of runs ask for and print, with the runs themselves replaced by what is written here; and their exit codes."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.transcripts import Transcript

from airworthy import __version__
from airworthy.benchmarks.fly import run_record
from airworthy.benchmarks.fly.film import Video
from airworthy.benchmarks.fly.job import FlightsKept, FlyResult
from airworthy.benchmarks.fly.replay import Comparison
from airworthy.benchmarks.navigation import flown_folder
from airworthy.benchmarks.navigation import replay as navigation_replay
from airworthy.benchmarks.navigation.job import Benchmarked
from airworthy.benchmarks.navigation.replay import PlanningTime, Replayed
from airworthy.benchmarks.navigation.report import page
from airworthy.benchmarks.tracking.job import Evaluated
from airworthy.cli import evaluate, film, fly, judge, replay, tune, validate, verify, view
from airworthy.cli.bench import gates, navigation, report, timing
from airworthy.cli.bench import replay as row_replay
from airworthy.core.errors import AirworthyError
from airworthy.gates.benchmark import GatesBenchmarked
from airworthy.vehicles import vehicle
from airworthy.verification import Figure

FILES = Path(__file__).parent / "snapshots" / "flights"
Patch = pytest.MonkeyPatch


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    return Transcript(capsys, {__version__: "VERSION"})


# ---- flights ----------------------------------------------------------------------------------------------------------------

OUTCOMES = ("success", "success_recovered", "partial", "collision", "timeout", "pilot_error", "aborted")


def flown(outcomes: dict[str, str], distinct: int | None = None, **measured: Any) -> dict[str, Any]:
    """A summary of flights, by outcome and cause."""
    flights = [{"env": k, "outcome": name.rstrip("'"), "cause": cause} for k, (name, cause) in enumerate(outcomes.items())]
    counts = {name: sum(flight["outcome"] == name for flight in flights) for name in OUTCOMES}
    total = {"flights": len(flights), "outcomes": counts, "distinct_flights": distinct or len(flights), **measured}
    return {"aggregate": total, "flights": flights, "protocol": {"proximity_m": 0.4, "unknown": 1.0}}


SPREAD = {"mean": 0.12345678, "min": 0.1, "max": 0.25}
SUMMARIES = {
    "one": flown({"success": ""}, tracking_error_m=SPREAD, speed_max_m_s={"mean": 3.0, "min": None, "max": None}),
    "one that fails": flown({"collision": "hit the floor"}, tracking_error_m={"mean": None}, saturation_percent=SPREAD),
    "many": flown(
        {"collision": "", "collision'": "hit a tree", "partial": "yaw", "timeout": "too late", "success": "", "aborted": ""},
        proximity_percent={"mean": 50.0, "min": 25.0, "max": None},
        saturation_percent={"mean": 1, "min": 0, "max": 2},
    ),
    "copies": flown({"success": "", "success'": ""}, distinct=1, tracking_error_m=SPREAD),
    "a pilot that fails": flown({"pilot_error": "it raised", "success_recovered": "touched"}, tracking_error_m=SPREAD),
}


@pytest.mark.parametrize("case", ["all"])
def test_summaries(case: str, told: Transcript) -> None:
    for name, summary in SUMMARIES.items():
        told.run(name, lambda summary=summary: fly.show_summary(Path("run"), summary, ["A note."]))
    Path("run").mkdir()
    Path("run/report.html").write_text("")
    told.run("with a report", lambda: fly.show_summary(Path("run"), SUMMARIES["one"]))
    told.check(FILES / "summaries.txt")


FILM = Video(Path("run/film.mp4"), Path("run/film.png"), 2, "chase", (640, 360), 30.0, 90, 0.5, 4.25, "Install more.")


@pytest.mark.parametrize("case", ["all"])
def test_flying(case: str, told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(fly, "_cannot_hover", lambda config: [f"WARNING: {config.vehicle}."])
    whole = {"summary": SUMMARIES["one"], "folder": Path("out"), "interrupted": False}
    results = {
        "whole": FlyResult(**whole),
        "filmed": FlyResult(**whole, video=FILM),
        "stopped": FlyResult(**{**whole, "interrupted": True}),
        "stopped at the film": FlyResult(**whole, film_interrupted=True),
        "a pilot that fails": FlyResult(**whole, pilot_error="ValueError: no"),
        "unjudged": FlightsKept(Path("a run")),
        "unjudged, terminated": FlightsKept(Path("run")),
        "refused": AirworthyError("No."),
    }
    for name, result in results.items():
        monkeypatch.setattr(fly, "run_fly", told.fake("run_fly", result))
        for words in ("--envs 3 --course hover", "--json"):
            told.run(f"fly {words}: {name}", lambda words=words: fly.main(words.split()))
    told.check(FILES / "flying.txt")


def test_vehicles_that_cannot_hover_are_named(told: Transcript, monkeypatch: Patch) -> None:
    from dataclasses import replace

    good = vehicle("carl")
    heavy = replace(good, mass=good.mass * 20.0, name="heavy")
    same_way = tuple(replace(rotor, spin=1) for rotor in good.rotors)
    record = SimpleNamespace(vehicles=["carl", "heavy", "turning"])
    record.vehicle = lambda k: (good, heavy, replace(good, rotors=same_way, name="turning"))[k]
    monkeypatch.setattr(run_record, "read_record", told.fake("read_record", record))
    config = fly.FlyConfig(out=Path("run"))
    told.run("rigid", lambda: fly._cannot_hover(config))
    told.run("semi-kinematic", lambda: fly._cannot_hover(replace(config, dynamics="semi_kinematic")))
    told.check(FILES / "hovering.txt")


def test_judging(told: Transcript, monkeypatch: Patch) -> None:
    for interrupted in (False, True):
        filmed = SimpleNamespace(interrupted=interrupted)
        found = SimpleNamespace(folder=Path("run"), summary=SUMMARIES["many"], filmed=filmed)
        monkeypatch.setattr(judge, "judge", told.fake("judge", found))
        for words in ("run", "run --json"):
            told.run(f"judge {words}, interrupted: {interrupted}", lambda words=words: judge.main(words.split()))
    told.check(FILES / "judging.txt")


def test_repeating(told: Transcript, monkeypatch: Patch) -> None:
    found = {
        "equal": Comparison(True, "0123456789abcdefXYZ", "0123456789abcdefXYZ", "1.0"),
        "equal from copies": Comparison(True, "0" * 64, "0" * 64, "1.0", (), ("a.toml is gone.", "b changed.")),
        "different": Comparison(False, "0" * 64, "1" * 64, "0.9", ("The device: cpu, cuda.", "Another version.")),
        "different without a cause": Comparison(False, "0" * 64, "1" * 64, "1.0", (), ("a.toml is gone.",)),
    }
    for name, comparison in found.items():
        monkeypatch.setattr(replay, "refly", told.fake("refly", comparison))
        for words in ("run", "run --json"):
            told.run(f"replay {words}: {name}", lambda words=words: replay.main(words.split()))
    told.check(FILES / "repeating.txt")


def test_filming(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(film, "record_video", told.fake("record_video", FILM))
    more = (
        "--camera chase+onboard --env 3 --size 320 180 --rate 12.5 --samples 2 --no-caption --scene hall --device cuda:0 --json"
    )
    for words in ("run", "run --out there/x.webp", f"run {more}", "run --camera orbit"):
        told.run(f"film {words}", lambda words=words: film.main(words.split()))
    told.check(FILES / "filming.txt")


# ---- evaluations ------------------------------------------------------------------------------------------------------------


def condition(title: str, success: tuple[float, float, float], error: float | None, published: Any = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"title": title, "pilot": "svnet", "family": "rigid", "published": published}
    entry["success_rate"] = dict(zip(("value", "low", "high"), success, strict=True))
    return entry | {name: {"mean": error} for name in evaluate.CONDITION} | dict.fromkeys(_pooled(), error)


def _pooled() -> list[str]:
    from airworthy.benchmarks.tracking.tables import POOLED

    return list(POOLED.values())


def test_evaluating(told: Transcript, monkeypatch: Patch) -> None:
    nan = float("nan")
    rows = [
        condition("Baseline", (0.875, 0.5, 0.98), 0.12345, {"tracking_error_m": 0.25}),
        condition("Wind", (0.5, nan, nan), nan, {"tracking_error_m": nan}),
        condition("Nothing", (0.0, 0.0, 0.3), None),
    ]
    names = ("command", "state", "against_first_pilot", "against_baseline", "adaptation")
    for name, entries, finished, report_file in (
        ("whole", rows, 4, Path("out/report.html")),
        ("stopped", rows[:1], 2, None),
        ("nearly", [], 3, None),
    ):
        ended = {"pilot": "mpc", "outcome": "off_course", "cause": "1 m off", "flights": 3, "of": 8} if finished == 4 else None
        summary = {"aggregate": entries, "endings": [ended] if ended else [], "more": 1, **{key: f"of {key}" for key in names}}
        changes = {"baseline": {}, "wind": {"gust": 1.5}} if finished == 4 else {}
        summary |= {"changes": changes, "left_out": {"static": "near nothing"}}
        done = Evaluated(Path("out"), summary, finished, 4, finished < 4, report_file)
        monkeypatch.setattr(evaluate, "evaluate", told.fake("evaluate", done))
        for words in ("--pilot mpc --pilot svnet --conditions baseline wind", "--json"):
            told.run(f"evaluate {words}: {name}", lambda words=words: evaluate.main(words.split()))
    monkeypatch.setattr(evaluate, "evaluate", told.fake("evaluate", KeyboardInterrupt()))
    told.run("stopped before the first flight", lambda: evaluate.main([]))
    told.check(FILES / "evaluating.txt")


def test_tuning(told: Transcript, monkeypatch: Patch) -> None:
    steps = [{"2 m": SimpleNamespace(settling=1.0 + k, overshoot=0.125 * k)} for k in range(3)]
    margins = [{"roll": SimpleNamespace(gain_db=6.0 + k, phase=0.5 + 0.25 * k, delay=0.0125 * (k + 1))} for k in range(3)]
    flights = SimpleNamespace(tracking_error=np.array([0.1, 0.2, 0.05]), effort=np.array([4.0, 5.0, 6.25]))
    tuned = SimpleNamespace(vehicle=SimpleNamespace(name="carl"), chosen=2, flown=flights, steps=steps, margins=margins)
    tuned.safe = [False, True, True]
    monkeypatch.setattr(tune, "write_tuned", told.fake("write_tuned", Path("out")))
    monkeypatch.setattr(tune, "summary", told.fake("summary", {"chosen": 2}))
    monkeypatch.setattr(tune, "tune", told.fake("tune", tuned))
    for words in ("carl --candidates 8", "--vehicle carl --json", "", "carl --delay 0.01 --out there"):
        told.run(f"tune {words}", lambda words=words: tune.main(words.split()))
    monkeypatch.setattr(tune, "tune", told.fake("tune", KeyboardInterrupt(15)))
    told.run("stopped", lambda: tune.main([]))
    told.check(FILES / "tuning.txt")


def test_validating(told: Transcript, monkeypatch: Patch) -> None:
    found = SimpleNamespace(measured=["measured"], pwm="pwm")
    monkeypatch.setattr(validate, "simulated_at_rest", told.fake("simulated_at_rest", "samples"))
    monkeypatch.setattr(validate, "run_validation", told.fake("run_validation", found))
    monkeypatch.setattr(validate, "summary", told.fake("summary", {"a": 1.5}))
    monkeypatch.setattr(validate, "print_tables", told.fake("print_tables"))
    for words in ("", "--json --data there", "--out a/b --save-vehicles c"):
        told.run(f"validate {words}", lambda words=words: validate.main(words.split()))
    told.check(FILES / "validating.txt")


def test_verifying(told: Transcript, monkeypatch: Patch) -> None:
    good = Figure("drop [free fall]", 0.123456, "under 0.2", True, "m")
    count, bad = Figure("all of them", 123456.0, "123,456", True), Figure("rate", 2.5, "3 +- 1 %", False, "Hz")

    def motion(whole: bool) -> Any:
        return iter([good, Figure("a", float(whole), "1", True)])

    monkeypatch.setattr(verify, "find_spec", lambda name: None)
    monkeypatch.setattr(verify, "data_dir", lambda: None)
    for only, left in (("motion", []), ("gates", ["No network."]), ("", ["No network."])):
        monkeypatch.setattr(verify, "GROUPS", {"motion": motion, "gates": lambda _: iter([count, bad, good])})
        monkeypatch.setattr(verify, "LEFT_OUT", {"gates": lambda left=left: left})
        for more in ("", "--json", "--all"):
            words = f"--only {only} {more}".split() if only else more.split()
            told.run(f"verify {' '.join(words)}", lambda words=words: verify.main(words))
    monkeypatch.setattr(verify, "find_spec", lambda name: object())
    monkeypatch.setattr(verify, "data_dir", lambda: Path("there"))
    told.run("left out", lambda: verify.left_out(verify.VerifyConfig(all=True)))
    told.check(FILES / "verifying.txt")


# ---- benchmarks -------------------------------------------------------------------------------------------------------------


def test_the_benchmark_of_navigation(told: Transcript, monkeypatch: Patch) -> None:
    scores = [{"pilot": "ego", "score": 61.5, "variance": 2.25, "final": 59.0, "timed": 40.5}]
    summary = {"scores": scores, "scenarios": [{"pilot": "ego", "scenario": "maze", "value": 0.75}]}
    summary["outcomes"] = {"ego": {"success": 6, "pilot_error": 0}}
    for name, flights, finished, where in (("whole", 8, 8, Path("out/report.html")), ("stopped", 5000, 1000, None)):
        done = Benchmarked(Path("out"), summary, finished, flights, finished < flights, where)
        monkeypatch.setattr(navigation, "run_benchmark", told.fake("run_benchmark", done))
        for words in ("--pilots ego --scenarios maze forest --pilots fast", "--json"):
            told.run(f"{words}: {name}", lambda words=words: navigation.main(words.split()))
    for words in ("", "--out there --pilots ego", "--quick"):
        told.run(f"smoke {words}", lambda words=words: navigation.smoke(words.split()))
    told.check(FILES / "navigation.txt")


def test_the_benchmark_of_gates(told: Transcript, monkeypatch: Patch) -> None:
    empty: dict[str, Any] = {"courses": [], "aggregate": {}, "random": None, "beside": False, "compared": []}
    monkeypatch.setattr(gates, "method_of", lambda specifier, limit, device: f"{specifier} {limit} {device}")
    monkeypatch.setattr(gates, "check", told.fake("check"))
    for name, finished, where in (("whole", 7, Path("out/report.html")), ("stopped", 4, None)):
        done = GatesBenchmarked(Path("out"), empty, finished, 7, finished < 7, where)
        monkeypatch.setattr(gates, "run_gates", told.fake("run_gates", done))
        for words in ("--courses oval --baselines time_optimal:x", "--json"):
            told.run(f"{words}: {name}", lambda words=words: gates.main(words.split()))
    told.check(FILES / "gates.txt")


def test_planning_is_timed(told: Transcript, monkeypatch: Patch) -> None:
    found = [
        PlanningTime("ego", "EGO-Planner", 120, 1.25, 2.5, 3.75, 1.5, "3.3", 6.0),
        PlanningTime("mine", "mine", 0, 0.0, 0.0, 0.0, 0.0, "", 0.0),
    ]
    monkeypatch.setattr(navigation_replay, "planning_times", told.fake("planning_times", found))
    monkeypatch.setattr(timing, "describe_machine", lambda: {"processor": "one of a kind"})
    monkeypatch.delenv("AIRWORTHY_THREADS", raising=False)
    wrong = ("--flights 0", "--flights 11", "--vehicle all", "--scenario all", "--seed -1")
    for words in ("--pilots ego --flights 1", "--flights 10 --seed 3 --scenario maze --json", *wrong):
        told.run(words, lambda words=words: timing.main(words.split()))
    assert os.environ.pop("AIRWORTHY_THREADS") == "1"
    told.check(FILES / "timing.txt")


ROW = {"pilot": "ego", "vehicle": "virt_05", "scenario": "maze", "configuration": 3, "outcome": "success", "time_s": 12.345}


def test_a_row_is_repeated(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(view, "main", told.fake("view", 0))
    for name, equal, differs, where in (
        ("equal", True, (), Path("out/replays/row")),
        ("no flight", True, (), None),
        ("different", False, ("time_s", "outcome"), Path("out/replays/row")),
    ):
        found = Replayed(equal, differs, ROW, ROW, where, "1.0", "2.0")
        monkeypatch.setattr(navigation_replay, "replay_row", told.fake("replay_row", found))
        for words in ("out 3", "out 0 --pilot own.py:Own --json", "out 1 --no-view"):
            told.run(f"{words}: {name}", lambda words=words: row_replay.main(words.split()))
    told.check(FILES / "rows.txt")


def flight(pilot: str, configuration: int, success: int, cause: str = "", outcome: str = "collision") -> dict[str, Any]:
    row = {"pilot": pilot, "scenario": "forest", "category": "real", "cause": cause, "configuration": configuration}
    row |= {"outcome": "success" if success else outcome, "success": success, "goal_distance_m": 28.0, "end_z_m": 0.3}
    return row | {"time_s": 8.0, "speed_max_m_s": 4.0, "tracking_rmse_m": 0.2, "thrust_saturation": 0.5}


def test_reports_are_written_again(told: Transcript, monkeypatch: Patch) -> None:
    rows = [
        flight("ego", 1, 1),
        flight("ego", 2, 0, "hit a tree"),
        flight("fast", 1, 0, "late", "timeout"),
        flight("fast", 2, 1),
    ]
    manifest = {"identity": {"config": {"compute": "fixed"}}, "pilots": {"ego": {"title": "EGO-Planner"}, "fast": {}}}
    indicator = {"pilot": "ego", "value": 0.5, "low": 0.25, "high": 0.75, "category": "real", "vehicles": 4}
    names = ("twr", "alpha_xy", "alpha_z")
    pair = {"first": "ego", "second": "fast", "pairs": 4, "difference": 0.25, "low": 0.0, "high": 0.5, "tied": False}
    pair |= {"layout_low": 0.125, "layout_high": 0.375, "only_first": 2, "only_second": 1}
    flip = {"pilot": "ego", "scenario": "static_maze", "combinations": 1200, "flights": 2400, "rate": 0.125, "mixed": 0.25}
    motion = {"latency_median_s": 1e-3, "latency_p95_s": 2e-3, "latency_max_s": 3e-3}
    summary: dict[str, Any] = {
        "scores": [{"pilot": "ego", "score": 61.5, "variance": 2.25, "final": 59.0, "timed": 40.5}],
        "scenarios": [{"pilot": "ego", "scenario": "maze", "value": 0.75}],
        "correlations": [{**indicator, "indicator": name} for name in names],
        "correlations_by_category": [{**indicator, "indicator": name} for name in names],
        "paired": [pair],
        "flips": [flip],
        "motion": {"ego": motion},
        "seconds": {"ego": {"thinking": 0.5, "calls": 250.0, "flying": 3.0, "setup": 1.0}},
        "state": {"complete": True, "flights": 4, "finished": 4},
    }
    partly = {**summary, "flips": [], "state": {"complete": False, "flights": 2520, "finished": 4}}
    Path("out").mkdir()
    flown = SimpleNamespace(manifest=manifest, rows=rows, config=SimpleNamespace(compute="fixed"))
    monkeypatch.setattr(flown_folder, "read_flown", lambda folder: flown)
    monkeypatch.setattr(page, "write_report", told.fake("write_report", Path("out/report.html")))
    monkeypatch.setattr(page, "write_summary", told.fake("write_summary"))
    for name, found in (("repeats", summary), ("none", partly)):
        flown.flights = found["state"]["flights"]
        flown.missing = {} if found["state"]["complete"] else {"ego": flown.flights - len(rows)}
        monkeypatch.setattr(page, "summary_of", lambda flown, found=found: found)
        for words in ("out", "out --json --no-pictures"):
            told.run(f"report {words}: {name}", lambda words=words: report.main(words.split()))
    for words in ("out --why", "out --why --json"):
        told.run(f"report {words}", lambda words=words: report.main(words.split()))
    told.check(FILES / "reports.txt")


# ---- the viewer -------------------------------------------------------------------------------------------------------------


class Shown:
    """In place of the viewer."""

    url = "http://127.0.0.1:8080"

    def __init__(self, told: Transcript, end: BaseException | None) -> None:
        self.run, self.close = told.fake("run", end), told.fake("close")
        self.choose = told.fake("choose")


def test_viewing(told: Transcript, monkeypatch: Patch) -> None:
    pytest.importorskip("viser")
    from airworthy.viewer import cameras, playback, server, subjects

    track = SimpleNamespace(envs=[0, 2], folder="run", vehicle=lambda env: f"vehicle {env}")
    flown, place = (
        SimpleNamespace(title="A flight", flight=track, scene="hall", note="What no stream told."),
        SimpleNamespace(title="A place", flight=None),
    )
    place.scene, bare = "hall", SimpleNamespace(title="Bare", flight=track, scene=None, note="")
    for subject in (flown, place, bare):
        subject.training, subject.capture = None, None
    monkeypatch.setattr(server, "free_port", told.fake("free_port", 8081))
    monkeypatch.setattr(server, "serve", told.fake("serve", "server"))
    monkeypatch.setattr(server, "stop", told.fake("stop"))
    monkeypatch.setattr(webbrowser, "open", told.fake("browser"))
    monkeypatch.setattr(cameras, "LiveCamera", told.fake("LiveCamera", "live"))
    monkeypatch.setattr(cameras, "RecordedCamera", told.fake("RecordedCamera", "recorded"))
    monkeypatch.setattr(cameras, "recorded_names", lambda folder: [])

    def tried(words: str, subject: Any, end: BaseException | None = None) -> None:
        monkeypatch.setattr(subjects, "load_subject", told.fake("load_subject", subject))

        def made(*given: Any) -> Shown:
            told.fake("Viewer")(*given)
            return Shown(told, end)

        monkeypatch.setattr(playback, "Viewer", made)
        told.run(f"view {words}: {subject.title}", lambda: view.main(words.split()))

    for words in (
        "run",
        "run --env 2 --open --port 8080",
        "run --port 0 --camera none --splats 1",
        "run --env 1",
        "run --splats 0",
    ):
        tried(words, flown)
    tried("run --host ::1 --camera hd", flown, KeyboardInterrupt())
    tried("run", flown, AirworthyError("Lost."))
    for words in ("hall", "hall --env 0", "hall --scene other", "hall --camera hd"):
        tried(words, place)
    for words in ("run", "run --camera hd", "run --camera recorded"):
        tried(words, bare)
    monkeypatch.setattr(cameras, "recorded_names", lambda folder: ["left", "right"])
    for words in (
        "run",
        "run --camera recorded",
        "run --camera recorded:right",
        "run --camera recorded:rigt",
        "run --camera hd",
    ):
        tried(words, bare)
    monkeypatch.setattr(playback, "Viewer", told.fake("Viewer", AirworthyError("None.")))
    told.run("no viewer", lambda: view.main(["run"]))
    told.check(FILES / "viewing.txt")
