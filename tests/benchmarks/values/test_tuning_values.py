"""What tuning and step tests compute, choose, draw and say, for flights that are written here or last a few steps.

Modules: airworthy.benchmarks.tuning.sweep, airworthy.benchmarks.tuning.run, airworthy.benchmarks.step_tests.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.figures import figure_values
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.fixtures.transcripts import Transcript, check_text

from airworthy import __version__
from airworthy.benchmarks import step_tests
from airworthy.benchmarks.tuning import run, sweep
from airworthy.benchmarks.tuning.run import TuneConfig, Tuned
from airworthy.benchmarks.tuning.sweep import CandidateResults, GainCandidate, StepFigures
from airworthy.control.gain_sets import GainSet
from airworthy.control.linear import CHANNELS, Margins, linear_loop
from airworthy.core.arrays import Array
from airworthy.vehicles import hover_speed, vehicle

FILES = Path(__file__).parent / "snapshots" / "tuning"
CARL = vehicle("flightgoggles")


def test_candidates() -> None:
    values: dict[str, Any] = {}
    for count, seed in ((1, 0), (2, 0), (5, 3), (9, 3)):
        found = sweep.candidates_for(count, seed)
        values[f"{count} of {seed}"] = np.array(
            [(c.position, c.position_damping, c.attitude, c.attitude_damping) for c in found]
        )
    odd = GainCandidate(1.5, 0.75, 2.0, 1.25)
    values["factors"], values["gains"] = odd.factors(), sweep.gains_of(CARL, odd, 500.0)
    path = sweep.Path(CARL)
    values["path"] = [path.size, path.pace, path.ramp, path.duration]
    for share in (-0.1, 0.0, 0.1, 0.3, 0.5, 0.6, 0.9, 1.0, 1.1):
        values[f"path at {share}"] = np.round(path.command(share * path.duration), 5)
    check_snapshot(FILES / "candidates.txt", values, rtol=1e-6)


def test_step_figures() -> None:
    time = np.arange(1, 11) * 0.1
    cases = {
        "settles": [0.0, 0.2, 0.5, 0.95, 1.1, 1.03, 0.99, 1.0, 1.01, 1.0],
        "at once": [1.0] * 10,
        "never": [0.0, 0.05] * 5,
        "half way": [0.05, 0.5] * 5,
        "late": [0.5] * 9 + [1.0],
        "leaves at the end": [0.1, 0.9] + [1.0] * 7 + [1.021],
        "at the band": [0.1, 0.9] + [1.02] * 8,
    }
    found = {name: sweep.step_figures(time, np.array(response)) for name, response in cases.items()}
    check_snapshot(FILES / "step_figures.txt", {name: [s.rise, s.overshoot, s.settling] for name, s in found.items()})


def test_flown_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second of flight: every figure of it, one candidate of which has no damping."""
    monkeypatch.setattr(sweep, "STEP_TIME", 0.1)
    init = sweep.Path.__init__

    def short(self: Any, vehicle: Any) -> None:
        init(self, vehicle)
        self.duration = 0.15

    monkeypatch.setattr(sweep.Path, "__init__", short)
    found = sweep.fly_candidates(CARL, [GainCandidate(), GainCandidate(2.0, 0.5, 2.0, 0.8)], 480.0, seed=3)
    values = {"time": found.time, "responses": found.responses, "error": found.tracking_error, "effort": found.effort}
    values |= {"diverged": found.diverged.astype(float), "saturated": found.saturated}
    check_snapshot(FILES / "flown.txt", values, rtol=1e-4, of_means=1e-4)  # single precision


MARGINS = {
    "good": Margins(4.0, 0.25, math.radians(50.0), 0.05, 1.5, 8.0),
    "no gain": Margins(1.9, 0.25, math.radians(50.0), 0.05, 1.5, 8.0),
    "no fall": Margins(4.0, 0.6, math.radians(50.0), 0.05, 1.5, 8.0),
    "no phase": Margins(4.0, 0.25, math.radians(29.9), 0.05, 1.5, 8.0),
    "sensitive": Margins(4.0, 0.25, math.radians(50.0), 0.05, 2.1, 8.0),
    "never": Margins(math.inf, 0.0, math.inf, math.inf, 1.0, 0.0),
    "any": Margins(math.inf, 0.0, math.radians(60.0), 0.0123, 1.25, 3.0),
    "just": Margins(10.0**0.3, 10.0**-0.3, math.radians(30.0), 0.05, 2.0, 8.0),
}


def tuned() -> Tuned:
    candidates = [GainCandidate(), GainCandidate(1.2, 1.1, 1.3, 0.9), GainCandidate(0.8, 1.0, 1.5, 1.2), GainCandidate(2.0)]
    time = np.arange(1, 21) * 0.05
    slow = np.array([1.0, 2.0, 1.5, 0.5])
    responses = 1.0 - np.exp(-slow[None, :, None] * 4.0 * time[:, None, None] * np.ones(4))
    error, effort = np.array([0.1, 0.05, 0.08, np.nan]), np.array([0.2, 0.4, 0.25, np.nan])
    saturated, diverged = np.array([0.0, 0.1, 0.0, 0.5]), np.array([False, False, False, True])
    flown = CandidateResults(time, responses, error, effort, diverged, saturated)
    loops = [linear_loop(CARL, physics_rate=960.0, gains=sweep.gains_of(CARL, c, 960.0), delay=0.005) for c in candidates[:2]]
    margins = [dict.fromkeys(CHANNELS, MARGINS[name]) for name in ("good", "any", "just", "no gain")]
    steps = [{name: StepFigures(0.3 + k, 0.1 * k, 0.9 - 0.1 * k) for name, _ in sweep.STEPS} for k in range(4)]
    gains = {name: tuple(map(float, values)) for name, values in sweep.gains_of(CARL, candidates[1], 960.0).items()}
    safe, front = np.array([True, True, True, False]), np.array([True, True, False, False])
    named = GainSet("tuned", "geometric", "source", gains, gains)
    return Tuned(CARL, candidates, flown, [*loops, *loops], margins, steps, safe, front, 1, named, 960.0)


def test_choices(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys, {__version__: "VERSION"})
    loop = tuned().loops[0]
    for name, margins in MARGINS.items():
        told.run(name, lambda m=margins: (run._holds(m), run._margin_cells(m)))
    good, fine = {"roll": MARGINS["good"]}, {"x": StepFigures(0.3, 0.25, 0.6)}
    cases: dict[str, tuple[Any, Any, Any, Any]] = {
        "safe": (good, fine, True, {"x": 0.6}),
        "fell": (good, fine, False, {"x": 0.6}),
        "slow": (good, fine, True, {"x": 0.59}),
        "auto never settles": (good, fine, True, {"x": math.nan}),
        "overshoots": (good, {"x": StepFigures(0.3, 0.26, 0.6)}, True, {"x": 0.6}),
        "never settles": (good, {"x": StepFigures(0.3, 0.0, math.nan)}, True, {"x": 0.6}),
        "one loop": ({**good, "yaw": MARGINS["no phase"]}, fine, True, {"x": 0.6}),
    }
    for name, case in cases.items():
        told.run(name, lambda case=case: run._is_safe(loop, *case))
    told.run("damping", lambda: round(loop.damping, 5))
    for damping in (0.39, 0.4):
        told.run(f"damping {damping}", lambda d=damping: run._is_safe(Damped(d), *cases["safe"]))  # type: ignore[arg-type]
    error, effort = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 1.0]), np.array([1.0, 4.0, 2.0, 3.0, 0.5, 4.0])
    for among in ([True] * 6, [True, False, True, True, False, True], [False] * 6):
        told.run(f"front of {among}", lambda among=among: run.pareto(error, effort, np.array(among)).tolist())
    front = run.pareto(error, effort, np.ones(6, bool))
    for prefer in (0.0, 0.3, 0.5, 0.8, 1.0):
        told.run(f"prefer {prefer}", lambda prefer=prefer: run.choice(error, effort, front, prefer))
    told.run("one on the front", lambda: run.choice(error, effort, np.arange(6) == 2, 0.5))
    for value in (1.5, math.inf, math.nan):
        told.run(f"{value}", lambda value=value: run._number(value))
    told.run("triple", lambda: run._triple(np.array([1.0, 2.34567, 1e-7])))
    parts = run._joined([tuned().flown, tuned().flown])
    told.run("joined", lambda: [parts.responses.shape, parts.tracking_error.shape, parts.diverged.tolist()])
    told.check(FILES / "choices.txt")


class Damped:
    """A loop of so much damping."""

    def __init__(self, damping: float) -> None:
        self.damping = damping


def test_what_tuning_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr(
        run, "inline_svg", lambda figure, name, words: shown.update({name: [words, *figure_values(figure)]}) or ""
    )
    content: dict[str, Any] = {}
    monkeypatch.setattr(run, "page_of", lambda package, **given: content.update(given) or "page")
    config, made = TuneConfig(vehicle="carl", out=tmp_path / "out", candidates=4, delay=0.005), tuned()
    run.write_report(tmp_path / "page.html", made, config)
    lines = [f"{key} = {value}" for key, value in content.items()]
    run.write_report(tmp_path / "page.html", replace(made, safe=np.array([False, True, True, False])), config)
    lines += [f"unsafe: {content['verdict']}"]
    found = run.summary(made, config)
    found["command"] = found["command"].replace(str(tmp_path), "HERE")
    text = "\n".join(lines).replace(str(tmp_path), "HERE").replace(__version__, "VERSION")
    check_text(FILES / "page.txt", text + "\n")
    check_snapshot(FILES / "summary.txt", {key: part for key, part in found.items() if key != "all"}, rtol=1e-6)
    check_snapshot(
        FILES / "all.txt",
        {f"{k}": {n: str(v) if v is None else v for n, v in entry.items()} for k, entry in enumerate(found["all"])},
    )
    check_snapshot(FILES / "figures.txt", {name: condensed(parts) for name, parts in shown.items()}, rtol=1e-6, of_means=1e-6)


# ---- step tests -------------------------------------------------------------------------------------------------------------


def turned(angles: Array) -> Array:
    return np.stack([0.0 * angles, 0.0 * angles, np.sin(0.5 * angles), np.cos(0.5 * angles)], axis=-1)


def test_faults(capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    rate, count = 10.0, 60
    level = turned(np.zeros(count))
    hover, along_x, _, _, yaw = step_tests._MANOEUVRES

    def at(*ends: float) -> Array:
        position = np.zeros((count, 3))
        position[:, : len(ends)] = ends
        return position

    late = at(2.0)
    late[48] = (1.89, 0.0, 0.0)
    last = at(2.0)
    last[49] = (1.89, 0.0, 0.0)
    drift = at()
    drift[50] = (9.0, 0.0, 0.0)
    for name, manoeuvre, position, attitude in (
        ("hovers", hover, at(0.06, 0.08), level),
        ("strays", hover, at(0.08, 0.08), level),
        ("strays afterwards", hover, drift, level),
        ("arrives", along_x, at(2.0), level),
        ("nearly", along_x, at(1.9), level),
        ("not", along_x, at(1.89, 0.0), level),
        ("in time", along_x, late, level),
        ("too late", along_x, last, level),
        ("tilts", along_x, at(2.0), np.tile([math.sin(0.75), 0.0, 0.0, math.cos(0.75)], (count, 1))),
        ("leans", along_x, at(2.0), np.tile([math.sin(0.65), 0.0, 0.0, math.cos(0.65)], (count, 1))),
        ("turns", yaw, at(), turned(np.full(count, math.pi / 2.0 + 0.05))),
        ("does not turn", yaw, at(), turned(np.full(count, math.pi / 2.0 + 0.1))),
        ("turns too far", yaw, at(), turned(np.full(count, 2.0 * math.pi + math.pi / 2.0))),
    ):
        told.run(name, lambda m=manoeuvre, p=position, a=attitude: step_tests._faults(m, p, a, rate))
    told.run("manoeuvres", lambda: [(item.name, item.goal) for item in step_tests._MANOEUVRES])
    heavy = replace(CARL, mass=500.0)
    told.run("cannot hover", lambda: step_tests.flight_checks([heavy]))
    told.run("nobody", lambda: step_tests.flight_checks([]))
    for window in (0.0, 1e-5, math.inf):
        told.run(f"window {window}", lambda window=window: step_tests.measured_indicators([CARL], window=window))
    told.run("no vehicles", lambda: step_tests.measured_indicators([]))
    told.check(FILES / "faults.txt")


def test_indicators() -> None:
    others = [CARL, vehicle("carl"), vehicle("real_01")]
    values: dict[str, Any] = {f"patterns of {item.name}": step_tests._full_patterns(item) for item in others}
    values["read"] = list(vars(step_tests._read_off(CARL, 9.81, np.arange(15.0).reshape(5, 3))).values())
    weightless = replace(CARL, gravity=0.0)
    values["weightless"] = list(vars(step_tests._read_off(weightless, 9.81, -np.arange(15.0).reshape(5, 3))).values())
    values["padded"] = step_tests._padded([np.ones(2), np.arange(3.0)], 4)
    for lag in (False, True):
        found = step_tests.measured_indicators(others, motor_lag=lag, window=0.002 if not lag else 0.01)
        values[f"lag {lag}"] = np.array([list(vars(item).values()) for item in found])
    bare = step_tests._without_air(replace(CARL, rotors=tuple(replace(r, hub_drag=(1.0, 1.0)) for r in CARL.rotors)))
    values["bare"] = [bare.drag.linear, *(rotor.hub_drag for rotor in bare.rotors), hover_speed(bare)]
    check_snapshot(FILES / "indicators.txt", values, rtol=1e-4)
