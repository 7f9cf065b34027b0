"""The printed formulas of rewards, recomputed from what `airworthy tasks show NAME --json` prints alone."""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.cli.main import main
from airworthy.learning.environments import VectorTask, learning_task
from airworthy.learning.environments.tasks import SHIPPED
from airworthy.learning.environments.tasks.gap import sphere_places

NAMES = [task.name for task in SHIPPED]
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.BitOr: operator.or_, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
}  # fmt: skip


def _e(x: Any, m: Any, a: Any) -> Any:
    return m * np.exp(-a * np.square(x))


def _a(x: Any, m: Any, a: Any) -> Any:
    return m * np.exp(-a * np.abs(x))


_CALLS: dict[str, Callable[..., Any]] = {
    "E": _e, "P": lambda x, m, a: _e(x, m, a) - m, "A": _a, "AP": lambda x, m, a: _a(x, m, a) - m,
    "sum": lambda x: np.sum(x, axis=-1), "norm": lambda x: np.linalg.norm(x, axis=-1), "where": np.where, "exp": np.exp,
    "sqrt": np.sqrt, "abs": np.abs, "min": np.minimum, "max": lambda x: np.max(x, axis=-1), "cos": np.cos,
}  # fmt: skip


def computed(text: str, names: dict[str, Any]) -> Any:
    """Value of a formula: vectors have their components in the last axis."""

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return names[node.id]() if callable(names[node.id]) else names[node.id]
        if isinstance(node, ast.Attribute):
            return value(node.value)[node.attr]
        if isinstance(node, ast.Tuple):
            return np.array([value(x) for x in node.elts])
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        if isinstance(node, ast.Compare):
            return _BINARY[type(node.ops[0])](value(node.left), value(node.comparators[0]))
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return _CALLS[node.func.id](*map(value, node.args))

    return value(ast.parse(text, mode="eval").body)


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what the command prints of a task."""
    capsys.readouterr()
    assert main(["tasks", "show", name, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def symbols(flights: VectorTask, before: Any, past: Any, action: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Values of the table's symbols, of states alone."""
    state = flights.state.astype(float)
    rotation = Rotation.from_quat(state[6:10].T)
    axes = rotation.as_matrix()
    found: dict[str, Any] = {
        "p": state[:3].T, "p_z": state[2], "v": state[3:6].T, "w": state[10:13].T, "d": np.linalg.norm(state[:3], axis=0),
        "d_before": np.linalg.norm(before[:3], axis=0), "up": axes[:, 2, 2], "forward": axes[:, 0, 0], "q_w": state[9],
        "yaw": rotation.as_euler("ZYX")[:, 0], "a": action, "a_before": past, "touched": np.zeros(len(action)), "progress": 1.0,
    }  # fmt: skip
    if flights.vehicle.rotors[0].speed_max > 0.0 and flights.action_count == len(flights.vehicle.rotors):
        low, high = (np.array([getattr(r, f"speed_{end}") for r in flights.vehicle.rotors]) for end in ("min", "max"))
        speed = flights.parameter("hover")[:, 0].astype(float)
        found["hover"] = (2.0 * speed - low - high) / (high - low)
    calm = (np.linalg.norm(found["v"], axis=1) < 0.5) & (found["up"] > np.cos(np.radians(15.0)))
    found["calm"] = np.where(calm & (state[2] > -options.get("height_m", 0.0)), 1.0, 0.0)
    roll, pitch = rotation.as_euler("ZYX")[:, 2], rotation.as_euler("ZYX")[:, 1]
    found |= {"w_z": state[12], "roll": roll, "pitch": pitch, "touch": np.zeros(len(action)), "behind": np.zeros(len(action))}
    if flights.shape.traits.jointed:
        found["joint_rates"] = state[13 + len(flights.vehicle.rotors) :].T[:, -flights.shape.form.joint_count :]
    return {**options, **found}


def of_the_gap(flights: VectorTask, before: Any) -> dict[str, Any]:
    """Where the centre of mass is, and how far spheres of links are outside of the funnel."""
    task: Any = flights.task
    p = flights.parameters_of_flight(flights.nominal.astype(float))
    after = tuple(flights.state.astype(float))
    places = [(np.array(place), sphere[3]) for place, (_, sphere) in zip(sphere_places(after, p), p.spheres, strict=True)]
    over = [
        np.maximum(np.abs(place[axis]) + radius + 0.1 - 0.4 - np.maximum(np.abs(place[0]) - 0.25, 0.0), 0.0) ** 2
        for place, radius in places
        for axis in (1, 2)
    ]
    off = [np.array(task.off(tuple(state), p)).T for state in (after, before)]
    return {"off": off[0], "off_before": off[1], "tight": np.sum(over, axis=0)}


@pytest.mark.parametrize("name", NAMES)
def test_every_term_is_what_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(name, capsys)
    reward, options = shown["reward"], shown["options"]
    flights = VectorTask(name, 64, seed=4)
    assert list(reward["terms"]) == list(flights.terms)
    rng = np.random.default_rng(5)
    level = learning_task(name)
    curriculum = getattr(level, "curriculum", None)
    past = np.tile(flights.hover_action.astype(float), (64, 1))
    compared = 0
    for _ in range(6):
        before = flights.state.astype(float).copy()
        action = np.clip(past + 0.3 * rng.normal(size=past.shape), -1.0, 1.0).astype(np.float32).astype(float)
        if name in ("track", "motor_track"):  # where the path is after this step
            p = flights.parameters_of_flight(flights.nominal, (), (0.0, 0.0), tuple(flights.memory.astype(float)))
            point = np.array(level.reference(flights.age.astype(float) + 1.0, p)).T  # type: ignore[attr-defined]
        result = flights.step(action)
        names = symbols(flights, before, past, action, options)
        if curriculum is not None:
            names["progress"] = (flights.level.astype(float) - curriculum.least) / (curriculum.most - curriculum.least)
        if name in ("track", "motor_track"):
            names["path"] = point
        if name == "gap":
            names |= of_the_gap(flights, before)
        for part in ("u", "c"):
            if part in reward["parts"]:
                names[f"{part}_before"] = computed(reward["parts"][part], {**names, "a": past})
        for part, text in {**reward["parts"], **{k: v for k, v in reward["terms"].items() if k not in ("calm",)}}.items():
            names.setdefault(part, lambda text=text, names=names: computed(text, names))  # type: ignore[misc]
        # Of a flight that ended the state is already the next one's.
        on = ~(result.terminated | result.truncated)
        assert on.sum() > 30
        for term, text in reward["terms"].items():
            wanted = np.broadcast_to(computed(text, names), 64) if term != "crash" else np.zeros(64)
            size = np.maximum(np.abs(wanted), 1.0)
            # float32: progress of 400 per metre is a difference of distances.
            assert np.max(np.abs(result.terms[term] - wanted)[on] / size[on]) < 2e-4, term
            compared += int(on.sum())
        if "recovered" not in reward["success"]:
            ended = np.broadcast_to(computed(reward["ends"], names), 64)
            assert not ended[on].any()
        past = action
    assert compared > 700


def test_every_symbol_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        shown = printed(name, capsys)
        reward = shown["reward"]
        texts = [*reward["terms"].values(), *reward["parts"].values(), reward["ends"], reward["success"]]
        used = {node.id for text in texts for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
        known = {*reward["symbols"], *shown["options"], *reward["terms"], *reward["parts"], *_CALLS}
        assert used <= known, (name, used - known)
    assert main(["tasks", "show", "track"]) == 0
    text = capsys.readouterr().out
    for words in ("5 * exp(-norm(p - path))", "ends where", "the point of the drawn path", "length of a vector"):
        assert words in text
