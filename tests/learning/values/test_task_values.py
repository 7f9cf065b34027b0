"""What learning a task makes of flights: figures, pages, settings, contracts, and summaries of seeds."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.recording import plain
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.errors import AirworthyError
from airworthy.evaluation import wilson_interval
from airworthy.learning.environments import VectorTask, learning_task
from airworthy.learning.native_ppo.options import PpoOptions
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.learning.seeds import SEEDS_MAX
from airworthy.learning.task_training import evaluation, options, report, run
from airworthy.learning.task_training.config import TaskConfig, _value
from airworthy.learning.task_training.evaluation import (
    PathController,
    TaskFlights,
    TaskProtocol,
    fly_task,
    known_controllers,
    task_figures,
)
from airworthy.learning.task_training.options import TaskTrainingOptions, cut_off, task_settings
from airworthy.learning.task_training.own_tasks import is_learning_task, is_own_task
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.learning.task_training.training import TaskTraining
from airworthy.learning.timed_training import Trained

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
TASKS = (
    "hover", "l2f_position", "motor_command", "position_setpoint", "position_setpoint_acceleration",
    "position_setpoint_velocity", "px4_motor_command", "recovery", "track",
)  # fmt: skip


# ---- figures ---------------------------------------------------------------------------------------------------------


def _flights(error: list[float] | None, lost: list[int], success: list[int], returns: list[float] | None = None) -> TaskFlights:
    count = 10
    gone, good = np.isin(np.arange(count), lost), np.isin(np.arange(count), success)
    told = None if returns is None else np.array(returns)
    return TaskFlights(gone, good, None if error is None else np.array(error), told, {"a": 0.5, "b": -1.0})


def test_figures_by_hand() -> None:
    found = task_figures(_flights([float(k) for k in range(10)], [2, 9], [0, 1, 3], [1.0] * 4 + [3.0] * 6))
    kept, success = wilson_interval(8, 10), wilson_interval(3, 10)
    assert found == {
        "flights": 10,
        "kept_percent": pytest.approx(80.0),
        "kept_interval_percent": pytest.approx([100.0 * kept.low, 100.0 * kept.high]),
        "success_percent": pytest.approx(30.0),
        "success_interval_percent": pytest.approx([100.0 * success.low, 100.0 * success.high]),
        "median_error_m": 6.0,  # the upper of the two in the middle: 0 1 3 4 5 6 7 8 inf inf
        "p95_error_m": None,
        "mean_error_m": pytest.approx((0 + 1 + 3 + 4 + 5 + 6 + 7 + 8) / 8),
        "mean_return": pytest.approx(2.2),
        "terms": {"a": 0.5, "b": -1.0},
    }
    whole = task_figures(_flights([float(k) for k in range(10)], [], []))
    assert (whole["median_error_m"], whole["p95_error_m"]) == (4.5, pytest.approx(8.55))
    assert "mean_return" not in whole
    nobody = task_figures(_flights([0.0] * 10, list(range(10)), [], [0.0] * 10))
    assert (nobody["median_error_m"], nobody["mean_error_m"]) == (None, None)
    assert set(task_figures(_flights(None, [], []))) == {
        "flights", "kept_percent", "kept_interval_percent", "success_percent", "success_interval_percent"
    }  # fmt: skip


@pytest.mark.parametrize(("lost", "median", "p95"), [([], 19.5, 37.05), ([5], 21.0, 39.0), ([5, 7], 22.0, None)])
def test_quantiles_of_errors_with_flights_that_were_lost(lost: list[int], median: float, p95: float | None) -> None:
    """Of errors 0 to 39 the lost are infinitely far: places 19.5 and 37.05 lie between neighbours, or the upper one counts."""
    flights = TaskFlights(np.isin(np.arange(40), lost), np.ones(40, bool), np.arange(40.0), None)
    found = task_figures(flights)
    assert found["median_error_m"] == pytest.approx(median)
    assert found["p95_error_m"] == (None if p95 is None else pytest.approx(p95))


# ---- known controllers -----------------------------------------------------------------------------------------------


def test_derivatives_of_a_path_are_those_of_a_polynomial() -> None:
    """Of third degree, whose differences are exact but for the cubic's share of the velocity; then limits on both sides."""
    rate = 50.0
    flights = SimpleNamespace(age=np.array([0.0, 10.0]), record=lambda: None, task=SimpleNamespace())
    a, b = np.array([[0.3], [-0.2], [0.1]]), np.array([[1.0], [2.0], [-1.5]])

    def cubic(age: Any, p: Any) -> Any:
        t = np.asarray(age) / rate
        return tuple(a * t**3 + b * t**2)

    flights.task.reference = cubic
    law = PathController(rate)
    law.follow(flights)
    found = law.command(None, None)  # type: ignore[arg-type]
    t = flights.age / rate
    np.testing.assert_allclose(found[:, :3].T, a * t**3 + b * t**2, atol=1e-12)
    np.testing.assert_allclose(found[:, 3:6].T, a * (3.0 * t**2 + 0.02**2) + 2.0 * b * t, atol=1e-9)
    np.testing.assert_allclose(found[:, 6:9].T, 6.0 * a * t + 2.0 * b, atol=1e-8)
    np.testing.assert_allclose(found[:, 9:12].T, np.repeat(6.0 * a, 2, axis=1), atol=1e-6)
    assert found.shape == (2, 14)
    assert (found[:, 12:] == 0.0).all()
    for size, length in ((4.9, 9.8), (4.91, 9.81)):  # twice the coefficient is the acceleration; 9.81 is the most
        flights.task.reference = lambda age, p, size=size: (size * (np.asarray(age) / rate) ** 2, 0.0 * age, 0.0 * age)
        assert law.command(None, None)[1, 6] == pytest.approx(length, rel=1e-6)  # type: ignore[arg-type]
    flights.task.reference = lambda age, p: (100.0 * (np.asarray(age) / rate) ** 3, 0.0 * age, 0.0 * age)
    assert np.linalg.norm(law.command(None, None)[:, 9:12], axis=1) == pytest.approx([100.0, 100.0])  # type: ignore[arg-type]
    found = evaluation._within(np.array([[3.0, 0.3], [4.0, 0.4], [0.0, 0.0]]), 2.0)
    np.testing.assert_allclose(found.T, [[1.2, 1.6, 0.0], [0.3, 0.4, 0.0]])


class _Plain(SimpleNamespace):
    """A task of one's own without a way of telling errors; remembered by what it is, as any object."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_who_flies_beside_a_policy() -> None:
    protocol = TaskProtocol(flights=20, mpc_flights=5)
    found = {name: [(x.name, n) for x, n in known_controllers(learning_task(name), protocol)] for name in TASKS}
    check_snapshot(SNAPSHOTS / "tasks.txt", {k: repr(v) for k, v in found.items()}, part="beside")
    task = learning_task("position_setpoint")
    (alone,) = known_controllers(task, replace(protocol, mpc_flights=0))
    assert alone[1] == 20
    kept = _Plain(error=None, rate=100.0, episode_steps=50)
    assert known_controllers(kept, protocol) == []  # type: ignore[arg-type]


class _Acting:
    """Actions that depend on what is seen."""

    def action(self, seen: Any) -> Any:
        width = self.width
        return 1.4 * np.cos(seen[:, :width] * 3.0 + np.arange(width))

    def __init__(self, width: int):
        self.width = width


@pytest.mark.parametrize("name", ["position_setpoint_velocity", "recovery", "track", "l2f_position", "hover"])
def test_flights_of_a_policy(name: str) -> None:
    """What a policy of known actions comes to; half a second of flight, so that rounding stays small."""
    task = replace(learning_task(name), episode_steps=40)
    starts = VectorTask(task, 16)
    flights = fly_task(task, starts.vehicle, _Acting(starts.action_count), TaskProtocol(steady_s=0.1), 16)
    values = {key: value for key, value in vars(flights).items() if value is not None}
    check_snapshot(SNAPSHOTS / "tasks.txt", values, 2e-3, 2e-3, part=f"flown {name}")
    short = fly_task(replace(task, episode_steps=4), starts.vehicle, _Acting(starts.action_count), TaskProtocol(), 16)
    one = fly_task(replace(task, episode_steps=1), starts.vehicle, _Acting(starts.action_count), TaskProtocol(), 16)
    ends = {"short": short.error, "one": one.error}
    check_snapshot(
        SNAPSHOTS / "tasks.txt", {k: v for k, v in ends.items() if v is not None}, 1e-3, 1e-3, part=f"ends of {name}"
    )


def test_a_flight_that_leaves_the_numbers_is_lost() -> None:
    task = replace(learning_task("position_setpoint_velocity"), episode_steps=6)
    starts = VectorTask(task, 16)
    flights = evaluation._Flights(starts, evaluation.traits_of(task), TaskProtocol(), None, task.rate)
    now = flights._now

    def broken() -> Any:
        found = now()
        found[4, 3] = np.nan
        return found

    flights._now = broken  # type: ignore[method-assign]
    for _ in range(6):
        flights.step(_Acting(starts.action_count))
    found = flights.result()
    assert np.flatnonzero(found.lost).tolist() == [3]
    assert not found.success[3]
    assert found.returns is not None
    assert found.returns[3] == 0.0
    assert flights._judged == 16 + 5 * 15


# ---- pages -----------------------------------------------------------------------------------------------------------


def _found(error: float | None = 0.0213, **more: Any) -> dict[str, Any]:
    return {
        "task": "recovery", "vehicle": "lmf2", "level": "rates", "trainer": "native_ppo", "rate": 100.0, "flight_s": 5.0,
        "flights": 1024, "success_percent": 91.23, "success_interval_percent": [90.0, 92.0],
        "kept_percent": 99.12, "kept_interval_percent": [98.5, 99.5], "median_error_m": error, "p95_error_m": 0.5,
        "training_wall_s": 12.34, "training_cpu_s": 45.67, "env_steps": 12_345_678, "env_steps_per_s": 1.23e6,
        "terms": {"near": 0.5}, "seconds": {"compile_s": 1.234, "train_s": None},
        "baselines": [{"name": "law", "verdict": "wins", **_cells()}, {"name": "MPC", "reason": "too slow"}],
        "options": {"a": 1, "ppo": {"b": 2, "c": {"d": 3}}}, **more,
    }  # fmt: skip


def _cells() -> dict[str, Any]:
    return {
        "flights": 64, "success_percent": 50.0, "success_interval_percent": [40.0, 60.0], "kept_percent": 75.0,
        "kept_interval_percent": [70.0, 80.0], "median_error_m": None, "p95_error_m": None,
    }  # fmt: skip


def test_what_the_page_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(report, "page_of", lambda package, **given: told.update(given, package=package) or "page")
    monkeypatch.setattr(report, "lines", lambda *given: given)
    rows = [{"env_steps": 1e6 * k, "reward": 0.1 * k, "std": 0.3, "terms": {"near": k, "far": 2}} for k in range(1, 4)]
    rows = [{**row, "episode_return": None if k == 1 else float(k)} for k, row in enumerate(rows)]
    values: dict[str, Any] = {}
    cases = {
        "whole": (_found(), rows),
        "no error": (_found(None), rows[:1]),
        "replay": (_found(), [{k: v for k, v in row.items() if k != "std"} for row in rows]),
        "nothing": (_found(), []),
    }
    for name, (found, metrics) in cases.items():
        assert report.write_task_report(tmp_path / "p.html", found, metrics).read_text() == "page"
        told.pop("found")
        values |= {f"{name} {key}": plain(value) for key, value in told.items()}
    check_snapshot(SNAPSHOTS / "tasks.txt", values, part="page")


# ---- settings --------------------------------------------------------------------------------------------------------


TABLE: dict[str, Any] = {
    "any": {"env_count": 2048, "steps": 30_000, "staggered": True, "ppo": {"hidden": [24, 16], "clip": 0.2, "lam": 0.98}},
    "recovery": {"steps": 500, "ppo": {"clip": 0.1, "minibatches": 4}},
}
"""In place of the shipped table, which is tuned."""


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_table", lambda: TABLE)


@pytest.mark.usefixtures("table")
def test_settings_of_tasks() -> None:
    own = task_settings("recovery")
    assert (own["steps"], own["env_count"]) == (500, 2048)
    assert own["ppo"] == {"hidden": (24, 16), "clip": 0.1, "lam": 0.98, "minibatches": 4}
    assert task_settings("somebodys_own") == {**TABLE["any"], "ppo": {**TABLE["any"]["ppo"], "hidden": (24, 16)}}
    assert "minibatches" not in TABLE["any"]["ppo"]
    for trainer, kind in (("native_ppo", PpoOptions), ("ppo", TorchPpoOptions)):
        made = TaskTrainingOptions.usual("recovery", 4, trainer, clip=0.3, randomization=None)
        assert type(made.ppo) is kind
        assert (made.ppo.clip, made.ppo.lam, made.ppo.minibatches, made.ppo.hidden, made.seed) == (0.3, 0.98, 4, (24, 16), 4)
        assert (made.steps, made.ppo.decay_steps, made.env_count) == (500, 500, 2048)
        chosen = TaskTrainingOptions.usual("recovery", 4, trainer, steps=9000, decay_steps=7)
        assert (chosen.steps, chosen.ppo.decay_steps) == (9000, 7)
        assert TaskTrainingOptions.usual("recovery", 4, trainer, steps=9000).ppo.decay_steps == 9000
    one = TaskTrainingOptions.usual("recovery", env_count=64, rollout=8, steps=512)
    assert [replace(one, steps=n).iterations for n in (511, 512, 513)] == [1, 1, 2]
    changed = json.loads(json.dumps(asdict(one)))
    assert one.differences(changed) == []
    assert replace(one, steps=7).differences(changed) == ["steps was 512, not 7"]
    changed["ppo"]["clip"] = 0.9
    assert one.differences(changed) == [f"clip was 0.9, not {one.ppo.clip:g}"]


def test_options_of_tasks_as_words() -> None:
    assert [_value("x", text, True) for text in ("true", "False", "TRUE")] == [True, False, True]
    assert (_value("x", "7", 3), _value("x", "7", 3.0), _value("x", "7", "a")) == (7, 7.0, "7")
    for text, now, kind in (("yes", True, "true or false"), ("7.5", 3, "a whole number"), ("fast", 3.0, "a number")):
        with pytest.raises(AirworthyError, match=f"got x={text}; expected {kind}, as x={now} is"):
            _value("x", text, now)
    found = TaskConfig(option=("rate_max=5", "episode_steps=30")).training("recovery", 2)
    assert (dict(found.options), found.seed) == ({"rate_max": 5.0, "episode_steps": 30}, 2)
    for words, told in ((("rate_max=5", "rate_max=6"), "once"), (("rate_max",), "rate_max=VALUE")):
        with pytest.raises(AirworthyError, match=told):
            TaskConfig(option=words).training("recovery", 2)
    assert TaskConfig(flights=7, mpc_flights=3).protocol == TaskProtocol(flights=7, mpc_flights=3)
    for trainer in ("sac", "td3", "ppo"):
        assert TaskConfig(trainer, learning_rate=0.007).training("l2f_position", 1).seed == 1
    by_slope: Any = TaskConfig("gradient", env_count=64, learning_rate=0.007).training("l2f_position", 5)
    assert (by_slope.env_count, by_slope.learning_rate, by_slope.seed) == (64, 0.007, 5)
    with pytest.raises(AirworthyError, match="not the task 'px4_motor_command'"):
        TaskConfig("gradient").training("px4_motor_command", 5)
    assert [is_own_task(word) for word in ("a.py:B", "a.py", "a:B.py", "recovery")] == [True, False, False, False]
    assert [is_learning_task(word) for word in ("a.py:B", "recovery", "recovry")] == [True, True, False]


def test_flights_are_cut_off_where_they_can_be() -> None:
    task = learning_task("recovery")
    assert cut_off(task, 0) is task
    assert cut_off(task, 7).episode_steps == 7
    bare: Any = SimpleNamespace(name="bare")
    assert cut_off(bare, 0) is bare
    with pytest.raises(AirworthyError, match="'bare' has no option episode_steps"):
        cut_off(bare, 7)


def test_contracts_of_tasks() -> None:
    values: dict[str, Any] = {}
    for name in TASKS:
        made = contract_of_task(VectorTask(learning_task(name), 16), NetworkForm((8, 4), "elu", "clip"), {"a": 1}, None, "said")
        fields = {k: v for k, v in vars(made).items() if k not in ("observe", "command", "remember", "digest")}
        values[name] = condensed(json.loads(json.dumps(fields, default=str)))
        values[f"{name} widths"] = list(made.widths)
    check_snapshot(SNAPSHOTS / "tasks.txt", values, 1e-6, 1e-6, part="contracts")
    environments = VectorTask(learning_task("recovery"), 16)
    assert contract_of_task(environments, NetworkForm((8,)), {}, 70.0).rate == 70.0
    assert contract_of_task(environments, NetworkForm((8,)), {}).rate == environments.task.rate


# ---- trainings -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("trainer", ["native_ppo", "ppo"])
def test_what_a_training_writes_down(trainer: str) -> None:
    """Two updates, with a curriculum where there is one: rows of the log and the numbers of the policy."""
    values: dict[str, Any] = {}
    for name in ("position_setpoint_velocity", "l2f_position"):
        chosen = TaskTrainingOptions.usual(
            name, 3, trainer, env_count=32, steps=4 * 256, rollout=8, hidden=(16, 8), minibatches=2, episode_steps=5
        )
        training = TaskTraining(None, chosen, threads=1)
        assert (training.trainer, training.finished, training.iteration) == (trainer, False, 0)
        for k in range(2):
            values[f"{name} {k}"] = training.metrics(training.step())
        values[f"{name} counts"] = [training.iteration, training.env_steps, training.lost]
        for k, w in enumerate(training.weights):
            values[f"{name} weights {k}"] = w
        saved = training.save()
        assert saved.notes["lost"] == training.lost
        values[f"{name} action"] = training.action(
            np.linspace(-1, 1, 2 * training.environments.observation_count).reshape(2, -1)
        )
        told = training.contract().training
        assert (told["trainer"], told["iterations"], told["env_steps"]) == (trainer, 2, 512)
    check_snapshot(SNAPSHOTS / "tasks.txt", values, 2e-3, 2e-3, part=f"updates of {trainer}")


def test_medians_of_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three; a median error that is none counts as infinitely far, and a training that was stopped ends the row."""
    shown = [
        {"seed": k, "task": "recovery", "vehicle": "lmf2", "training_wall_s": 3.0 - k, "training_cpu_s": 2.0 * k,
         "kept_percent": 90.0 + k, "success_percent": 80.0, "env_steps": 100 * k, "median_error_m": error, "p95_error_m": None}
        for k, error in enumerate((0.3, None, 0.1))
    ]  # fmt: skip
    asked: list[Any] = []

    def train(options: Any, folder: Path, vehicle: Any, protocol: Any, command: str = "", **told: Any) -> Any:
        asked.append((options.seed, folder.name, vehicle, protocol, command, told))
        return Trained(folder, options.seed != 9, shown[options.seed % 9])

    monkeypatch.setattr(run, "train_task", train)
    asked_for = [TaskTrainingOptions.usual("recovery", k) for k in range(3)]
    done = run.train_task_seeds(asked_for, tmp_path, "lmf2", None, commands=["a", "b", "c"], quiet=True)
    assert [item.figures["seed"] for item in done] == [0, 1, 2]
    assert asked[1] == (1, "seed_1", "lmf2", None, "b", {"quiet": True})
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["kind"], found["vehicle"]) == ("task recovery seeds", "lmf2")
    assert found["median"] == {
        "training_wall_s": 2.0, "training_cpu_s": 2.0, "kept_percent": 91.0, "success_percent": 80.0, "env_steps": 100.0,
        "median_error_m": 0.3, "p95_error_m": None,
    }  # fmt: skip
    assert found["seeds"][1]["median_error_m"] is None
    stopped = [TaskTrainingOptions.usual("recovery", k) for k in (0, 9, 2)]
    assert len(run.train_task_seeds(stopped, tmp_path / "other")) == 2
    assert asked[-1][4] == ""
    assert not (tmp_path / "other" / "summary.json").exists()
    for count in (0, SEEDS_MAX + 1):
        with pytest.raises(AirworthyError, match=f"{count} seeds are to be trained"):
            run.train_task_seeds(asked_for[:1] * count, tmp_path / "more")
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "contract.json").write_text("{}")
    with pytest.raises(AirworthyError, match="holds a single training"):
        run.train_task_seeds(asked_for, tmp_path / "single")
