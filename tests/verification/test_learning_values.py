"""What checks of the expert and of the policy feed to what they check, and how they judge: values on file, bars, formulas."""

# ruff: noqa: PLW0108 - functions are looked up when they are called, since names of their modules are replaced.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.verification.conftest import Compare

import airworthy.verification.learning.expert as expert
import airworthy.verification.learning.policy as policy
from airworthy.core.frames import to_matrix, z_down_attitude
from airworthy.pilots.svnet.variants import tensor_shapes

MODULES = (expert, policy)
CASES: dict[str, Callable[[], Any]] = {
    "metrics": lambda: policy.metric_figures(),
    "sizes": lambda: policy.size_figures(),
    "formula": lambda: policy.formula_figures(),
    "weights": lambda: [policy.random_weights(name) for name in ("sv_net", "hp_net")],
    "readings": lambda: policy._reading(2, 8),
    "dynamics": lambda: expert.dynamics_figures(),
    "closing": lambda: expert.closing_figures(900),
    "closed loop": lambda: expert.warm_figures(4),
    "line": lambda: expert._line(),
    "scene": lambda: expert._scene(),
    "balls": lambda: expert._projected(np.array([0.5, 0.2, 1.0, 1.0, 0.0, 0.0, 0.1, 0.0, 0.2, 0.97])),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_and_judged(case: str, compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert, "TICKS", 12)
    monkeypatch.setattr(expert, "DRONES", 3)
    ticks = count()
    monkeypatch.setattr(expert, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    compare("learning.txt", case, MODULES, CASES[case], unsteady="warm solves of 40 steps|kernel")


def test_where_a_policy_is_does_not_matter(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "PUBLISHED", ("sv_net", "hp_net"))
    monkeypatch.setattr(policy, "TICKS", 3)
    compare("learning.txt", "places", MODULES, lambda: policy.place_figures(), leave_out=("random_weights",))


def test_references_of_the_planner_and_of_optima(compare: Compare, data_dir: Path) -> None:
    folder = data_dir / "sousvide"
    compare("learning.txt", "planner", MODULES, lambda: expert.planner_figures(folder))
    compare("learning.txt", "optima", MODULES, lambda: expert._optima(folder / "mpc_reference.json"))


def test_many_problems_in_one_call(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert, "PROBLEMS", 5)
    compare("learning.txt", "one call", MODULES, lambda: expert._one_call())


# ---- bars of the expert -----------------------------------------------------------------------------------------------------


class Solver:
    """Stands for a solver of some problems; answers are given."""

    def __init__(self, count: int, reference: Any, config: Any = None):
        self.count = count

    def reset(self) -> None:
        pass

    def solve(self, state: Any, full: Any, row: Any) -> Any:
        inputs = np.zeros((self.count, 2, 4)) + row[:, None, None]
        steps = np.full(self.count, Solver.steps) if self.count > 1 else np.full(1, 5)
        inputs = inputs + (1.0 if self.count == 1 and row[0] in Solver.other else 0.0)
        failed = np.isin(row, Solver.failing) if self.count > 1 else np.zeros(1, bool)
        return SimpleNamespace(inputs=inputs, cost=0.0 * row, iterations=steps, failed=failed)

    steps, other, failing = 5, (), ()  # type: ignore[var-annotated]


@pytest.mark.parametrize(("failing", "other", "steps"), [((), (), 5), ((3,), (1, 3), 5), ((), (), 6)])
def test_problems_that_are_solved_otherwise_alone(
    failing: Any, other: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expert, "MpcSolver", Solver)
    monkeypatch.setattr(expert, "MpcConfig", lambda: SimpleNamespace(iterations=6))
    monkeypatch.setattr(Solver, "failing", failing)
    monkeypatch.setattr(Solver, "other", other)
    monkeypatch.setattr(Solver, "steps", steps)
    monkeypatch.setattr(expert, "PROBLEMS", 4)
    rows = np.arange(4)
    some = SimpleNamespace(reference=None, state=np.zeros((4, 10)), full=np.ones(4), row=rows)
    monkeypatch.setattr(expert, "_problems", lambda count: some)
    found = list(expert._one_call())
    wanted = [float(len(failing)), float(len(set(failing) | set(other)) if steps == 5 else 4), float(steps)]
    assert [figure.measured for figure in found] == wanted
    assert [figure.passed for figure in found] == [wanted[0] == 0, wanted[1] == 0, steps < 6]
    assert found[2].aim == "under 6, where it stops"


@pytest.mark.parametrize(("warm", "rate", "passed"), [(2.0, 1.01e4, [True, True]), (3.0, 1e4, [False, False])])
def test_warm_starts_are_to_be_quicker(warm: float, rate: float, passed: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = expert.WARM_TICKS
    seconds = [9.0, *[4.0 / rate] * (ticks - 1)]
    flown = {"iterations": [3.0, *[warm] * (ticks - 1)], "seconds": seconds}
    monkeypatch.setattr(expert, "_problems", lambda count: SimpleNamespace(reference=None))
    monkeypatch.setattr(expert, "MpcSolver", Solver)
    monkeypatch.setattr(expert, "_closed_loop", lambda solver, some: flown)
    monkeypatch.setattr(expert, "_off_the_optimum", lambda some, flown: (1e-4, 1e-2))
    found = list(expert.warm_figures(4))
    assert [found[0].passed, found[3].passed] == passed
    assert found[3].measured == pytest.approx(rate)
    assert (found[1].passed, found[2].passed) == (True, True)


@pytest.mark.parametrize(
    ("start", "middle", "end", "failures", "passed"),
    [
        (0.41, 0.0199, 0.0699, 0, [True] * 4),
        (0.40, 0.0199, 0.0699, 0, [False, True, True, True]),
        (0.41, 0.0201, 0.0699, 0, [True, False, True, True]),
        (0.41, 0.0199, 0.0701, 0, [True, True, False, True]),
        (0.41, 0.0199, 0.0699, 2, [True, True, True, False]),
    ],
)
def test_an_expert_closes_in(
    start: float, middle: float, end: float, failures: int, passed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SimpleNamespace(duration=1.0, sample=lambda t: SimpleNamespace(position=np.stack([t, 0 * t, 0 * t], 1)))
    plan = SimpleNamespace(paths=[path], count=60)
    state = np.zeros((3, 4, 10))
    state[:, 0, 1], state[:, -1, 1] = [0.1, start, 0.2], [0.0, middle, end]
    asked: list[Any] = []
    monkeypatch.setattr(expert, "RolloutPlan", lambda config: plan)
    rolled = SimpleNamespace(state=state, failures=np.array([failures, 0]))
    monkeypatch.setattr(expert, "roll_out", lambda plan, rows: asked.append(rows.tolist()) or rolled)
    found = list(expert.closing_figures())
    assert asked == [[0, 20, 40]]
    assert [figure.passed for figure in found] == passed
    assert [figure.measured for figure in found] == pytest.approx([start, 100 * middle, 100 * end, failures])


@pytest.mark.parametrize(
    ("kept", "rollouts", "seconds", "passed"),
    [(95, 100, 180.0, [True] * 4), (94, 100, 180.1, [True, True, False, False]), (99, 99, 1.0, [False, False, True, True])],
)
def test_the_published_set(
    kept: int, rollouts: int, seconds: float, passed: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(ticks=40)
    made = SimpleNamespace(total=lambda name: {"rollouts": rollouts, "kept": kept}[name], seconds=seconds)
    asked: list[Any] = []
    monkeypatch.setattr(expert, "_made", lambda *given, **named: asked.append((given, named)) or made)
    monkeypatch.setattr(expert, "_contents", lambda folder: {"a": folder.name, "b": "same"})
    found = list(expert.published_set_figures(tmp_path, config, {"rollouts": 100, "pairs": 4000}, again=True))
    assert [figure.passed for figure in found[:4]] == passed
    assert [figure.measured for figure in found[:4]] == [rollouts, 40 * rollouts, pytest.approx(100 * kept / rollouts), seconds]
    assert found[4].measured == 1.0
    assert asked == [((config, tmp_path / "set"), {}), ((config, tmp_path / "again"), {"workers": 2})]
    assert len(list(expert.published_set_figures(tmp_path, config, {"rollouts": 100, "pairs": 4000}))) == 4


def test_files_that_differ_are_counted(tmp_path: Path) -> None:
    assert expert._different({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "x", "d": "3"}) == 3
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").write_bytes(b"1")
    assert list(expert._contents(tmp_path)) == ["sub/x"]


def test_balls_by_the_specifications_projection() -> None:
    """T_WC = T_WB T_BC: each corner of the chain by itself."""
    state = np.array([0.5, 0.2, 1.0, 0.0, 0.0, 0.0, 0.02, -0.03, 0.3, 0.95])
    state[6:] /= np.linalg.norm(state[6:])
    found = expert._projected(state)
    body = to_matrix(z_down_attitude(state[6:]))
    fx, fy, cx, cy = expert.POLICY_VIEW
    seen = 0
    for ball, pixel in zip(expert.BALLS, found, strict=True):
        world = np.array([ball[0], -ball[1], -ball[2]]) - np.array([state[0], -state[1], -state[2]])
        camera = expert.MOUNT[:, :3].T @ (body.T @ world - expert.MOUNT[:, 3])
        if camera[2] < -0.5:
            seen += 1
            np.testing.assert_allclose(pixel, [cx - fx * camera[0] / camera[2], cy + fy * camera[1] / camera[2]], atol=1e-6)
        else:
            assert np.isnan(pixel).all()
    assert 10 < seen < 62


def test_the_middle_of_the_red_around_a_pixel() -> None:
    image = np.zeros((120, 160, 3), np.uint8)
    image[48:52, 58:62, 0] = 200  # its middle is at (60, 50)
    pixels = np.array([[63.0, 54.0], [120.0, 60.0], [130.0, 61.0], [10.0, 50.0], [80.0, 110.0], [np.nan, np.nan]])
    assert expert._off(image, pixels).tolist() == pytest.approx([5.0])  # two are near each other, two near the edge
    image[30:34, 110:114, 0] = 90
    one = expert._off(image, np.array([[112.0, 90.0]]))
    assert one.tolist() == pytest.approx([16.0 * np.sqrt(2.0)])  # no red within reach


@pytest.mark.parametrize(
    ("gap", "later", "images", "passed"),
    [
        (0.19, 1.1, 50, [True] * 5),
        (0.21, 1.1, 50, [True, False, True, True, True]),
        (0.51, 1.1, 50, [True, False, False, True, True]),
        (0.19, 0.8, 50, [True, True, True, False, False]),
        (0.19, 1.1, 49, [False, True, True, True, True]),
    ],
)
def test_images_and_states_are_of_one_instant(
    gap: float, later: float, images: int, passed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images of two balls each, the second half of another roll-out, whose states would be far off."""
    rollout = np.arange(images) // 25
    moment = np.arange(float(images)) + 100.0 * rollout
    monkeypatch.setattr(expert, "_projected", lambda state: state)
    monkeypatch.setattr(expert, "_off", lambda image, pixel: np.full(2, gap + later * abs(float(pixel[0]) - float(image[0]))))
    sensed = np.stack([np.zeros(images), moment], axis=1)
    data: Any = SimpleNamespace(images=moment[:, None], sensed=sensed, count=images, rollout=rollout)
    found = list(expert.instant_figures(data))
    assert [figure.passed for figure in found] == passed
    assert [figure.measured for figure in found] == pytest.approx([2 * images, gap, gap, gap + later, gap + later])


# ---- bars of the policy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "nominal", "share", "size"),
    [(0.99, 0.0099, 0.70, 8.0e6), (1.0, 0.0101, 0.699, 8.001e6), (0.5, -0.0101, 1.301, 1.0), (0.5, -0.0099, 1.30, 1.0)],
)
def test_a_history_network_has_four_bars(
    error: float, nominal: float, share: float, size: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / policy.WEIGHTS_FILE, "wb") as file:
        file.truncate(int(size))
    monkeypatch.setattr(policy, "_ratio_errors", lambda folder: (error, 1.0, 7))
    asked: list[Any] = []
    found = SimpleNamespace(nominal=SimpleNamespace(error=nominal), payload_share=share)
    monkeypatch.setattr(policy, "measure_adaptation", lambda folder, config: asked.append(config.flights) or found)
    weights, ratio, mean, payload = policy.network_figures(tmp_path, 9)
    assert asked == [9]
    assert [weights.passed, ratio.passed] == [size <= 8e6, error < 1.0]
    assert [mean.passed, payload.passed] == [abs(nominal) <= 0.01, 0.7 <= share <= 1.3]
    assert (weights.measured, mean.measured, payload.measured) == pytest.approx(
        (int(size) / 1e6, 100 * abs(nominal), 100 * share)
    )


def test_numbers_of_blocks_are_those_of_their_tensors() -> None:
    shapes = tensor_shapes("sv_net")
    total = sum(int(np.prod(shape)) for shape in shapes.values())
    assert policy._numbers("sv_net") == total
    assert sum(policy._numbers("sv_net", block) for block in policy.BLOCKS if block) == total
    figure = policy._count("x", 4, 5)
    assert (figure.passed, figure.aim) == (False, "5")


def test_tensors_that_stay_are_counted() -> None:
    one = {"a": np.zeros(3, np.float32), "b": np.ones(2, np.float32)}
    other = {"a": np.zeros(3, np.float32), "b": np.full(2, 1.0 + 1e-6, np.float32)}
    assert policy._same(one, other, ["a", "b"]) == 1
    assert policy._same(one, other, ["b"]) == 0


@pytest.mark.parametrize(
    ("spoilt", "measured"), [("", [0, 0, 0]), ("frozen", [1, 0, 0]), ("idle", [0, 1, 0]), ("rest", [0, 0, 1])]
)
def test_a_training_that_moves_the_wrong_tensors_is_seen(
    spoilt: str, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(pairs: Any, name: str) -> Any:
        names = ("history.0", "history.1", "command.0")
        steps = [{key: np.array([k]) for key in names} for k in (0.0, 1.0, 2.0)]
        before, between, after = steps
        after |= {"history.0": between["history.0"], "history.1": between["history.1"]}
        if spoilt == "frozen":
            after["history.1"] = np.array([9.0])
        if spoilt == "idle":
            before["history.0"] = between["history.0"]
        if spoilt == "rest":
            after["command.0"] = between["command.0"]
        return before, between, after

    monkeypatch.setattr(policy, "_trained", trained)
    pairs: Any = None
    found = list(policy.frozen_figures(pairs, ("sv_net",)))
    assert [figure.measured for figure in found] == measured
    assert "of 2 tensors" in found[0].name
    assert "of 1 other tensors" in found[2].name


def test_commands_that_depend_on_the_place_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def flown(name: str, start: Any) -> Any:
        commands = np.arange(24.0).reshape(2, 3, 4)
        if start[0]:
            commands[0, 1, 2] += 1e-9
        if start[2] > 1.0:
            commands[1:] += 1.0
        return commands

    monkeypatch.setattr(policy, "PUBLISHED", ("sv_net",))
    monkeypatch.setattr(policy, "_flown", flown)
    assert [figure.measured for figure in policy.place_figures()] == [1.0, 3.0]


def test_hand_made_flights_that_are_judged_otherwise_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = policy.evaluate_tracking

    def spoilt(table: Any, line: Any) -> Any:
        (found,) = plain(table, line)
        return (replace(found, collisions=found.collisions + 1),)

    monkeypatch.setattr(policy, "evaluate_tracking", spoilt)
    assert [figure.measured for figure in policy.metric_figures()][:5] == [1.0] * 5
