"""Printed formulas of rewards of navigation by sight, recomputed from what `airworthy tasks show NAME --json` prints alone."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.learning.test_reward_formulas import _CALLS, computed, printed

from airworthy.cli.main import main
from airworthy.learning.environments import VectorTask
from airworthy.learning.navigation.environments import sight_term, time_to_collision
from airworthy.learning.navigation.options import NAVIGATION_TASKS
from airworthy.learning.navigation.sight import CAMERA, LIDAR, POSE_NUMBERS

NAMES = tuple(NAVIGATION_TASKS)
COUNT, LEVEL = 160, 31.0


def _moved(rng: np.random.Generator, actions: int) -> dict[str, Any]:
    """States before and after a step, targets, actions, contact, of flights near to their targets and far."""
    far = np.where(np.arange(COUNT) < COUNT // 2, 0.5, 3.0)[:, None]
    target = rng.uniform(-3.0, 3.0, (COUNT, 3))
    p = target + rng.normal(size=(COUNT, 3)) * far
    a, a_before = rng.uniform(-1.0, 1.0, (2, COUNT, actions))
    return {
        "target": target, "yaw": rng.uniform(-3.0, 3.0, COUNT), "p_before": p, "p": p + 0.1 * rng.normal(size=(COUNT, 3)),
        "v": 1.5 * rng.normal(size=(COUNT, 3)), "w": rng.normal(size=(COUNT, 3)), "a": a, "a_before": a_before,
        "q": Rotation.from_euler("ZYX", rng.uniform(-1.0, 1.0, (COUNT, 3)) * [3.0, 0.4, 0.4]).as_quat(),
        "contact": (rng.random(COUNT) < 0.2).astype(float),
    }  # fmt: skip


def _told(name: str, r: dict[str, Any], as_published: bool) -> Any:
    """What the task itself judges."""
    flights = VectorTask(NAVIGATION_TASKS[name](as_published=as_published), 16)
    state = [np.concatenate([r[p], r["v"], r["q"], r["w"], np.ones((COUNT, 4))], 1).T for p in ("p_before", "p")]
    memory = np.concatenate([r["target"], np.zeros((COUNT, 6)), r["yaw"][:, None]], 1).T
    flight = (3.0, LEVEL + 0.0 * r["contact"], r["contact"], *np.zeros((15, COUNT)))
    p = flights.parameters_of_flight(flights.nominal.astype(float), tuple(r["a_before"].T), flight, tuple(memory))
    task: Any = flights.task
    return task.judge(tuple(state[0]), tuple(state[1]), tuple(r["a"].T), tuple(r["a_before"].T), p), task


def _symbols(name: str, r: dict[str, Any], options: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Values of the table's symbols, of states alone."""
    way, before = (r["target"] - r[p] for p in ("p", "p_before"))
    heading = Rotation.from_quat(r["q"]).as_euler("ZYX")[:, 0]
    speed, angle = r["a"][:, 0] + 1.0, 0.25 * np.pi * r["a"][:, 1]
    old, tilt = r["a_before"][:, 0] + 1.0, 0.25 * np.pi * r["a_before"][:, 1]
    rows = [
        np.stack([s * np.cos(x), 0.0 * s, s * np.sin(x), np.pi / 3.0 * a[:, 2]], 1)
        for s, x, a in ((speed, angle, r["a"]), (old, tilt, r["a_before"]))
    ]
    if name == "lidar_navigation":
        rows = [a * [2.0, 2.0, 2.0, np.pi / 3.0] for a in (r["a"], r["a_before"])]
    c = options["curriculum"]
    return {
        **options, "gap": np.linalg.norm(way, axis=1), "gap_before": np.linalg.norm(before, axis=1), "contact": r["contact"],
        "progress": (LEVEL - c["least"]) / (c["most"] - c["least"]), "c": rows[0], "c_before": rows[1], "v": r["v"],
        "w_z": r["w"][:, 2], "e": (r["yaw"] - heading + np.pi) % (2.0 * np.pi) - np.pi,
        "along": (r["v"] * way).sum(1) / np.linalg.norm(r["v"], axis=1) / np.linalg.norm(way, axis=1),
        "v_x": r["v"][:, 0] * np.cos(heading) + r["v"][:, 1] * np.sin(heading),
    }  # fmt: skip


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_term_is_what_is_printed(name: str, as_published: bool, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(name, capsys)
    reward, rng = shown["reward"], np.random.default_rng(6)
    r = _moved(rng, 3 if name == "depth_navigation" else 4)
    judged, task = _told(name, r, as_published)
    names = _symbols(name, r, {**shown["options"], "as_published": as_published}, rng)
    for part, text in reward["parts"].items():
        names[part] = computed(text, names)
    rays = CAMERA if name == "depth_navigation" else LIDAR
    distance = rng.uniform(0.2, 10.0, (COUNT, *rays.shape)).astype(np.float32)
    poses = np.zeros((COUNT, POSE_NUMBERS), np.float32)
    names["nearest"] = distance.reshape(COUNT, -1).min(1).astype(float)
    names["meeting"] = time_to_collision(distance, rays.directions, r["v"], poses)
    factor = 1.0 + 2.0 * names["progress"] if name == "lidar_navigation" else 1.0
    sight = factor * sight_term(task, distance, rays.directions, r["v"], poses)
    assert set(reward["terms"]) == {*judged.terms, "sight"}
    for term, text in reward["terms"].items():
        wanted = np.broadcast_to(computed(text, names), COUNT)
        if term == "sight":
            np.testing.assert_allclose(sight, wanted, rtol=1e-6, atol=1e-9)
            continue
        # Where the flight ends, crash alone, which is 0 elsewhere.
        wanted = np.where((r["contact"] > 0.0) == (term == "crash"), wanted, 0.0)
        np.testing.assert_allclose(judged.terms[term], wanted, rtol=1e-6, atol=1e-6, err_msg=term)
    np.testing.assert_array_equal(judged.terminated > 0.5, computed(reward["ends"], names))
    np.testing.assert_array_equal(judged.success > 0.5, computed(reward["success"], names) & (r["contact"] == 0.0))


def test_they_are_listed_and_every_symbol_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "list"]) == 0
    listed = capsys.readouterr().out
    for name in NAMES:
        assert name in listed
        shown = printed(name, capsys)
        reward = shown["reward"]
        texts = [*reward["terms"].values(), *reward["parts"].values(), reward["ends"], reward["success"]]
        used = {node.id for text in texts for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
        assert used <= {*reward["symbols"], *shown["options"], *reward["parts"], *_CALLS}
    assert main(["tasks", "show", "navigation"]) == 2
    assert "depth_navigation" in capsys.readouterr().err
