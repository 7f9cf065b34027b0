"""What learning by gradient computes, number by number: starts, steps, vehicles drawn, films, pages, logs, options, seeds."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.recording import plain
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning import timed_training
from airworthy.learning.foundation import training as foundation
from airworthy.learning.foundation.training import drawn_quadrotor
from airworthy.learning.gradient import GradientOptions, GradientTraining, report, run
from airworthy.learning.gradient.config import HoverConfig, randomization_of
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.evaluation import (
    HoverCondition,
    HoverFlights,
    HoverProtocol,
    _Late,
    figures,
    fly_hover,
)
from airworthy.learning.gradient.film import STAGES, FilmedStage, LearningStage, film_learning, stage_svg
from airworthy.learning.gradient.flyers import GeometricController, LearntPolicy
from airworthy.learning.gradient.hover import HoverStart
from airworthy.learning.gradient.policy import contract_of_training
from airworthy.learning.gradient.trainer import initial_weights
from airworthy.learning.seeds import SEEDS_MAX
from airworthy.learning.timed_training import Trained
from airworthy.simulation import Randomization
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
SMALL = GradientOptions(env_count=16, window=6, hidden=16, iterations=8, flight_s=0.1, seed=3)


@pytest.fixture(scope="module")
def begun() -> GradientTraining:
    """A training that has not learnt anything; read only."""
    return GradientTraining(vehicle("tinyprop"), SMALL)


# ---- training --------------------------------------------------------------------------------------------------------


def test_steps_of_a_training() -> None:
    """Flights that end by their time and by their reach, and begin anew; the rate along its cosine."""
    work = GradientTraining(vehicle("tinyprop"), replace(SMALL, reach_m=1.1))
    values: dict[str, Any] = {"hover": work.hover, "first": work.window.state.copy(), "age": work.age.copy()}
    for k in range(5):
        values[f"step {k}"] = [work.step(), work.lost, work.env_steps]
    values |= {"state": work.window.state, "episode": work.episode, "ages": work.age}
    values |= {f"weights {k}": w for k, w in enumerate(work.weights)}
    check_snapshot(SNAPSHOTS / "gradient.txt", values, 2e-3, 2e-3, part="training")
    assert work.metrics(0.5) == {"cost": 0.5, "lost": work.lost}
    assert not work.finished
    saved = work.save()
    assert (saved.number, saved.notes) == (5, {"lost": work.lost})


def test_drawn_and_late_vehicles() -> None:
    o = replace(SMALL, history=3, delay=2, randomization=Randomization(mass=0.4, thrust=0.3), least_thrust_to_weight=1.9)
    work = GradientTraining(vehicle("tinyprop"), o)
    values: dict[str, Any] = {str(row): x for row, x in work.window.parameters.items()}
    values |= {"raised": work.raised, "state": work.window.state, "cost": work.step()}
    contract = contract_of_training(work, "said")
    values["contract"] = {k: v for k, v in plain(contract).items() if k not in ("training", "digest")}
    assert {k: contract.training[k] for k in ("trainer", "iterations", "env_steps")} == {
        "trainer": "gradient", "iterations": 1, "env_steps": 96
    }  # fmt: skip
    check_snapshot(SNAPSHOTS / "gradient.txt", values, 1e-3, 1e-3, part="drawn")
    assert work.raised > 0


def test_the_first_step_of_adam_goes_by_the_rate() -> None:
    """However long the gradient is; the second by what the moments say."""
    drawn = [np.zeros((3, 2), np.float32), np.ones(3, np.float32)]
    descent = Descent(drawn)
    slope = np.ones(9)
    slope[::2] = -3.0
    parts = [slope[:6].reshape(3, 2).astype(np.float32), slope[6:].astype(np.float32)]
    descent.step(parts, 0.02, 2.0, 0)
    before = np.concatenate([w.ravel() for w in drawn])
    np.testing.assert_allclose(descent.flat - before, -0.02 * np.sign(slope), rtol=1e-3, atol=1e-6)
    assert [w.shape for w in descent.weights] == [(3, 2), (3,)]
    np.testing.assert_array_equal(descent.weights[1], descent.flat[6:])
    middle = descent.flat.astype(float).copy()
    descent.step([0.5 * part for part in parts], 0.02, 2.0, 1)
    whole, half = (slope * min(1.0, 2.0 / (k * math.sqrt(float(slope @ slope)))) * k for k in (1.0, 0.5))
    first, second = 0.9 * 0.1 * whole + 0.1 * half, 0.999 * 0.001 * whole**2 + 0.001 * half**2
    ahead, spread = first / (1.0 - 0.9**2), np.sqrt(second / (1.0 - 0.999**2))
    np.testing.assert_allclose(descent.flat - middle, -0.02 * ahead / spread, rtol=2e-3, atol=1e-6)


def test_a_short_gradient_stays_as_long_as_it_is() -> None:
    descent = Descent([np.zeros(4, np.float32)])
    descent.step([np.array([1.5, 0.0, 0.0, 0.0], np.float32)], 0.02, 2.0, 0)
    assert descent.moments[0, 0] == pytest.approx(0.15, rel=1e-5)
    assert descent.moments[1, 0] == pytest.approx(0.00225, rel=1e-3)
    descent.step([np.zeros(4, np.float32)], 0.02, 2.0, 1)
    assert np.isfinite(descent.flat).all()


def test_the_rate_falls_by_half_a_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    work = GradientTraining(vehicle("tinyprop"), SMALL)
    asked: list[Any] = []
    monkeypatch.setattr(work._descent, "step", lambda gradient, rate, clip, done: asked.append((rate, clip, done)))
    for _ in range(3):
        work.step()
    shares = [0.03 + 0.97 * 0.5 * (1.0 + math.cos(math.pi * k / 8)) for k in range(3)]
    assert asked == [(pytest.approx(0.02 * share), 0.5, k) for k, share in enumerate(shares)]


def test_flights_end_where_their_limits_say(begun: GradientTraining) -> None:
    work = GradientTraining(vehicle("tinyprop"), replace(SMALL, reach_m=2.0))
    x = work.window.state
    x[:13] = 0.0
    x[9] = 1.0
    work.age[:] = [0] * 8 + [9, 10, 11] + [0] * 5
    x[0, :3] = [1.999, 2.001, np.nan]
    work.lost = 0
    ended = work._ended()
    assert np.flatnonzero(ended).tolist() == [1, 2, 9, 10]
    assert work.lost == 2


def test_first_weights(begun: GradientTraining) -> None:
    drawn = initial_weights([(4, 5), (3, 4), (2, 3)], np.array([0.5, 1.0]), 6)
    check_snapshot(SNAPSHOTS / "gradient.txt", {str(k): w for k, w in enumerate(drawn)}, 1e-6, 1e-6, part="weights")
    np.testing.assert_allclose(np.tanh(drawn[-1]), [0.5, 0.99], rtol=1e-6)
    large = initial_weights([(300, 400), (200, 300), (4, 200)], np.zeros(4), 6)
    for w, deviation in zip(large[::2], (1 / 20.0, 1 / math.sqrt(300), 0.01 / math.sqrt(200)), strict=True):
        assert float(w.std()) == pytest.approx(deviation, rel=0.05)
    assert (begun.hidden, begun.history, begun.flown_rate) == ((16, 16), 0, 100.0)


# ---- vehicles of all kinds -------------------------------------------------------------------------------------------


def test_vehicles_drawn_from_nothing() -> None:
    values = {str(k): condensed(json.loads(json.dumps(asdict(drawn_quadrotor(5, k)), default=str))) for k in range(8)}
    check_snapshot(SNAPSHOTS / "gradient.txt", values, 1e-9, part="quadrotors")


def test_vehicles_are_dealt_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foundation, "_POOL", 24)
    work = foundation.FoundationTraining(replace(SMALL, history=2))
    work.episode[:] = np.arange(16) % 3
    work._deal(np.array([1, 5, 15]))
    for row, values in work.window.parameters.items():
        if row in work._pool:
            for k in (1, 5, 15):
                assert values[k] == work._pool[row][(k + (k % 3) * 16) % 24]
    contract = foundation.foundation_contract(work, "said")
    assert (contract.vehicle, contract.family, contract.hover, contract.digest) == (
        "any quadrotor", "quadrotor", (0.0,) * 4, ""
    )  # fmt: skip
    assert contract.limits == ((0.85, 1.15),) * 4


# ---- judgement -------------------------------------------------------------------------------------------------------


def test_flights_that_are_judged(begun: GradientTraining) -> None:
    """An untrained policy and the geometric law, as they are and under conditions."""
    protocol = HoverProtocol(flight_s=0.3, steady_s=0.1, reach_m=1.2)
    grid = {
        "as it is": HoverCondition(),
        "late": HoverCondition("delay", "13 ms", delay_s=0.013),
        "noisy": HoverCondition("noise", "x 3", noise=3.0),
        "heavy": HoverCondition("mass", "+20 %", mass=1.2, lag=1.3),
        "windy": HoverCondition("wind", "3 m/s", wind=3.0),
        "slow": HoverCondition("rate", "50 Hz", rate=50.0),
        "drawn": HoverCondition("drawn", "", drawn=Randomization(mass=0.4, thrust=0.5)),
    }
    values: dict[str, Any] = {}
    for name, condition in grid.items():
        found = fly_hover(begun.vehicle, LearntPolicy.of(begun), protocol, HoverStart(), 8, condition)
        values[name] = vars(found)
        values[f"{name} figures"] = {k: v for k, v in figures(found).items() if v is not None}
    found = fly_hover(begun.vehicle, GeometricController(100.0), protocol, HoverStart(), 8, grid["heavy"])
    values["law"] = vars(found)
    check_snapshot(SNAPSHOTS / "gradient.txt", values, 2e-3, 2e-3, part="judged")
    with pytest.raises(AirworthyError, match="delay is not its"):
        fly_hover(begun.vehicle, GeometricController(100.0), protocol, HoverStart(), 8, grid["late"])


def test_commands_that_come_late() -> None:
    for delay, whole, rest in ((0.0, 0, 0), (0.004, 0, 4), (0.01, 1, 0), (0.013, 1, 3), (0.03, 3, 0)):
        told: list[Any] = []
        simulator: Any = SimpleNamespace(
            config=SimpleNamespace(physics_rate=1000.0, control_rate=100.0), env_count=2,
            set_command=lambda command, late, told=told: told.append((float(command[0, 0]), late)), step=lambda: None,
        )  # fmt: skip
        late = _Late(simulator, delay, np.full(4, 7.0))
        for k in range(4):
            late.step(np.full((2, 4), float(k)))
        assert told == [(value, rest or None) for value in [7.0] * whole + list(range(4 - whole))], delay


def test_figures() -> None:
    kept = np.array([True, True, True, False])
    ones = np.arange(4.0)
    flights = HoverFlights(kept, ones, 2.0 * ones, 3.0 * ones, 4.0 * ones, 5.0 * ones, 0.1 * ones, 1.7)
    found = figures(flights)
    assert found["median_error_m"] == 2.0
    assert (found["median_settling_s"], found["p95_settling_s"], found["p95_error_m"]) == (4.0, None, None)
    assert (found["median_overshoot_m"], found["energy_of_hover"], found["action_jitter"]) == (3.0, 4.0, 5.0)
    assert found["worst_tilt_deg"] == pytest.approx(math.degrees(0.2))
    assert (found["kept"], found["kept_percent"], found["thrust_to_weight"]) == (3, 75.0, 1.7)


# ---- film and page ---------------------------------------------------------------------------------------------------


def test_films(begun: GradientTraining) -> None:
    protocol = HoverProtocol(flight_s=0.5, film_flights=3, steady_s=0.1)
    stages = [LearningStage("a < b", begun.weights), LearningStage("learnt", [1.3 * w for w in begun.weights])]
    filmed = film_learning(begun.vehicle, LearntPolicy.of(begun), stages, protocol, HoverStart())
    values: dict[str, Any] = {}
    for k, stage in enumerate(filmed):
        values[f"{k}"] = vars(stage)
    check_snapshot(SNAPSHOTS / "gradient.txt", values, 2e-3, 2e-3, part="film")
    # Of flights written by hand, so that whole numbers do not depend on rounding.
    place = np.array(
        [[[0.0, 0.0, 0.0], [1.0, 2.0, 0.5]], [[0.3, 0.1, 0.2], [1.0, 2.0, 0.5]], [[99.0, 0.0, 0.0], [1.0, 2.5, 0.5]]]
    )
    turn = np.tile([0.0, 0.0, 0.6, 0.8], (3, 2, 1))
    drawn = stage_svg(begun.vehicle, FilmedStage("by <hand>", place, turn, np.array([False, True])), 2.5)
    numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", drawn)]
    words = re.sub(r"-?\d+\.?\d*", "#", drawn).split("<")
    still = stage_svg(begun.vehicle, FilmedStage("still", place[:1], turn[:1], np.array([False, True])), 2.5)
    check_snapshot(
        SNAPSHOTS / "gradient.txt", {"numbers": np.array(numbers), "words": condensed(words), "still": len(still)}, part="svg"
    )
    assert "by &lt;hand&gt;: 1 of 2 flights kept" in drawn
    assert 'dur="0.1s"' in drawn
    assert 'dur="0.05s"' in still


def _row(percent: float, error: float | None) -> dict[str, Any]:
    return {
        "flights": 1024, "kept_percent": percent, "kept_interval_percent": [percent - 1.0, percent + 0.5],
        "median_error_m": error, "p95_error_m": 0.3, "median_settling_s": 1.25, "median_overshoot_m": None,
        "energy_of_hover": 1.0213, "action_jitter": 0.0123, "worst_tilt_deg": 44.6, "thrust_to_weight": 2.345,
    }  # fmt: skip


@pytest.mark.parametrize("trainer", ["gradient", "native_ppo", "ppo", "sac", "td3"])
def test_what_the_page_is_given(trainer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(report, "page_of", lambda package, **given: told.update(given, package=package) or "page")
    monkeypatch.setattr(report, "lines", lambda *given: given)
    found: dict[str, Any] = {
        **_row(93.75, None if trainer == "sac" else 0.0213), "kind": "motor_command" if trainer == "ppo" else "hover",
        "trainer": trainer, "training_wall_s": 12.345, "training_cpu_s": 45.678, "env_steps": 12_345_678,
        "env_steps_per_s": 1.26e6, "seconds": {"import_s": None, "compile_s": 1.234}, "options": {"a": {"b": 1}},
        "baselines": [{"name": "law", "verdict": "wins", **_row(50.0, 0.5)}, {"name": "MPC", "reason": "too slow"}],
        "robustness": [
            {"kind": "mass", "value": "+20 %", "learnt": _row(80.0, None), "known": None},
            {"kind": "rate", "value": "50 Hz", "learnt": _row(70.0, 0.25), "known": _row(60.0, 0.125)},
        ],
    }  # fmt: skip
    name = "cost" if trainer == "gradient" else "reward"
    rows = [{"wall_s": 0.5 * k, name: 1.0 / (k + 1), "lost": k * k} for k in range(4)]
    report.write_hover_report(tmp_path / "p.html", found, rows, [("a", "b", "c")])
    told.pop("found")
    check_snapshot(SNAPSHOTS / "gradient.txt", {key: plain(value) for key, value in told.items()}, part=f"page of {trainer}")
    report.write_hover_report(tmp_path / "p.html", found, [])
    assert [plain(curve[0]) for curve in told["curves"]] == ["Cost per step", "Flights lost since the point before"]


# ---- runs ------------------------------------------------------------------------------------------------------------


class _Work:
    """A training whose steps cost what they are numbered."""

    def __init__(self, iterations: int):
        self.iteration, self.options, self.lost = 0, SimpleNamespace(iterations=iterations), 12
        self.weights = [np.zeros(2, np.float32)]
        self.told: list[Any] = []

    finished = property(lambda self: self.iteration >= self.options.iterations)
    env_steps = property(lambda self: 1000 * self.iteration)

    def step(self) -> float:
        self.iteration += 1
        self.weights[0] += 1.0
        return float(self.iteration)

    def metrics(self, cost: float) -> dict[str, Any]:
        return {"cost": cost}

    def save(self) -> Checkpoint:
        return Checkpoint(self.iteration, {"x": np.ones(2)}, {"lost": 4})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.told.append(checkpoint.number)

    def keep_in(self, folder: Path) -> None:
        self.told.append(folder)

    def forget(self) -> None:
        self.told.append("forgotten")


def _filmed(work: Any) -> timed_training.TimedTraining[Any]:
    return timed_training.TimedTraining(work, timed_training.FLOWN_ROWS, stages=STAGES)


def test_the_log_and_the_stages_of_the_film(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(timed_training.time, "perf_counter", lambda: 7.0)
    monkeypatch.setattr(timed_training.time, "process_time", lambda: 9.0)
    work: Any = _Work(850)
    held = _filmed(work)
    held.wall_s, held.cpu_s = 3.5, 4.25
    assert list(held.steps()) == list(range(1, 851))
    assert [row["iteration"] for row in held.metrics] == list(range(2, 851, 2))
    assert held.metrics[0] == {"iteration": 2, "env_steps": 2000, "wall_s": 3.5, "cpu_s": 4.25, "cost": 2.0}
    # Twentieths and quarters of 850 are 42.5 and 212.5: the next whole number.
    assert {at: (wall_s, w[0][0]) for at, (wall_s, w) in held.earlier.items()} == {
        0: (3.5, 0.0), 43: (3.5, 43.0), 213: (3.5, 213.0)
    }  # fmt: skip
    saved = held.save()
    assert saved.notes["earlier"] == [[0, 3.5, 1], [43, 3.5, 1], [213, 3.5, 1]]
    other = _filmed(_Work(850))
    other.restore(saved)
    assert (other.metrics, other.wall_s, other.cpu_s) == (held.metrics, 3.5, 4.25)
    assert {at: w[0].tolist() for at, (_, w) in other.earlier.items()} == {0: [0.0] * 2, 43: [43.0] * 2, 213: [213.0] * 2}
    odd: Any = _filmed(_Work(801))
    assert [row["iteration"] for _ in [list(odd.steps())] for row in odd.metrics] == [*range(2, 801, 2), 801]
    assert not list(_filmed(_Work(5)).steps(lambda: True))
    held.keep_in(tmp_path)
    held.forget()
    assert work.told == [tmp_path, "forgotten"]


def test_what_is_said_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    monkeypatch.setattr(timed_training.time, "monotonic", lambda: now[0])
    work: Any = _Work(3000)
    held = _filmed(work)
    line = timed_training.TrainingLine(held, quiet=False)
    work.iteration, now[0] = 1500, 100.99
    line.stepped()
    assert capsys.readouterr().err == ""
    now[0] = 101.0
    held.metrics.append({"cost": 0.25})
    line.stepped()
    assert "1,500 of 3,000 iterations, 1.50 M steps/s, cost 0.250, 12 flights lost" in capsys.readouterr().err
    work.iteration, now[0] = 3000, 101.5  # finished: at once
    held.metrics.append({"reward": -0.125, "cost": 0.125})
    line.stepped()
    assert "3,000 of 3,000 iterations, 3.00 M steps/s, reward -0.125, 12" in capsys.readouterr().err
    row = {"env_steps": 5, "reward": 1.5, "note": "x", "none": None, "terms": {"near": 0.5}}
    assert timed_training.metric_scalars(row) == (5, {"env_steps": 5, "reward": 1.5, "terms/near": 0.5})
    assert timed_training.used_packages("ppo") == ("numpy", "warp-lang", "torch")
    assert timed_training.used_packages("gradient") == ("numpy", "warp-lang")


def test_medians_of_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def train(item: Any, folder: Path, options: Any, protocol: Any, command: str = "", **told: Any) -> Any:
        asked.append((folder.name, options.seed, command, told))
        k = options.seed - 4
        shown = {
            "seed": k, "training_wall_s": 3.0 - k, "training_cpu_s": 2.0 * k, "kept_percent": 90.0 + k,
            "median_error_m": (0.3, None, 0.1)[k % 3], "p95_error_m": None, "env_steps": 100 * k,
        }  # fmt: skip
        return Trained(folder, k != 3, shown)

    monkeypatch.setattr(run, "train_hover", train)
    config = HoverConfig(seed=4)
    assert len(run.train_seeds(vehicle("tinyprop"), tmp_path, config, 3, commands=["a", "b", "c"], quiet=True)) == 3
    assert asked == [(f"seed_{k}", k, word, {"quiet": True}) for k, word in zip((4, 5, 6), "abc", strict=True)]
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["kind"], found["vehicle"]) == ("hover seeds", "tinyprop")
    assert found["median"] == {
        "training_wall_s": 2.0, "training_cpu_s": 2.0, "kept_percent": 91.0, "median_error_m": 0.3, "p95_error_m": None,
        "env_steps": 100.0,
    }  # fmt: skip
    assert len(run.train_seeds(vehicle("tinyprop"), tmp_path / "more", config, 5)) == 4
    assert not (tmp_path / "more" / "summary.json").exists()
    for count in (0, SEEDS_MAX + 1):
        with pytest.raises(AirworthyError, match=f"{count} seeds are to be trained; expected 1 to 100"):
            run.train_seeds(vehicle("tinyprop"), tmp_path / "x", config, count)


# ---- options ---------------------------------------------------------------------------------------------------------


def test_what_options_become() -> None:
    cases = {
        "usual": HoverConfig(),
        "drawn": HoverConfig(randomize=("mass=0.2 lag=0.1", "drag=0.3")),
        "default": HoverConfig(randomize=("default",)),
        "late": HoverConfig(delay=3, iterations=5, env_count=16, learning_rate=0.5),
        "seen": HoverConfig(history=4, delay=0),
        "native_ppo": HoverConfig("native_ppo", steps=5000, env_count=64),
        "ppo": HoverConfig("ppo", learning_rate=0.1, mirror="xy", rate=50.0),
        "sac": HoverConfig("sac"),
        "td3": HoverConfig("td3", rate=50.0, steps=50_000, env_count=32),
    }
    values = {name: plain(config.options(9)) for name, config in cases.items()}
    check_snapshot(SNAPSHOTS / "gradient.txt", values, part="options")
    for words, told in ((("mass",), "mass=NUMBER"), (("mass=x",), "mass=NUMBER"), (("lag=0",), "changes nothing"),
                        (("wind=1",), "Unknown quantity"), (("default", "mass=0.2"), "either it or the numbers")):  # fmt: skip
        with pytest.raises(AirworthyError, match=told):
            randomization_of(words)
    assert randomization_of(()) == Randomization()
    with pytest.raises(AirworthyError, match="draws late commands"):
        HoverConfig("native_ppo", randomize=("default",))
    for given, told in (({"hidden": 17}, "16, 32, 64"), ({"env_count": 17}, "multiple of 16"), ({"delay": 2}, "see")):
        with pytest.raises(AirworthyError, match=told):
            GradientOptions(**given)
    GradientOptions(delay=2, history=2)
    with pytest.raises(AirworthyError, match="over 5 s of flights of 4 s"):
        HoverProtocol(flight_s=4.0, steady_s=5.0)
    HoverProtocol(flight_s=4.0, steady_s=4.0)
