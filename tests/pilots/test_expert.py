"""What the expert makes of a solution of its MPC, with a solver that says what it was asked and what it found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.pilots.expert import ExpertPilot


def test_a_failed_problem_keeps_the_last_command_and_is_counted_once() -> None:
    count = 4
    rng = np.random.default_rng(1)
    inputs, before = rng.uniform(0.2, 1.0, (count, 5, 4)).astype(np.float32), rng.normal(size=(count, 4))
    failed, new = np.array([False, True, False, True]), np.array([True, True, False, False])
    asked: dict[str, Any] = {}

    def solve(state: Any, full: Any, row: Any, last: Any, gravity: Any, flights: Any) -> Any:
        asked.update(state=state, full=full, row=row, last=last, gravity=gravity, flights=flights)
        return SimpleNamespace(inputs=inputs, failed=failed, iterations=np.array([3, 4, 5, 6]))

    def nearest(state: Any, time: Any, path: Any, search: Any) -> Any:
        asked.update(looked_up=state)
        return np.arange(count)

    pilot = SimpleNamespace(
        reference=SimpleNamespace(nearest=nearest, last=np.array([10, 20])),
        solver=SimpleNamespace(solve=solve, shift=lambda flights: asked.update(shifted=flights)),
        _full=np.full(count, 20.0),
        _mass=np.full(count, 2.0),
        _gravity=9.81,
        _believed=np.full(count, 0.5),
        _path=np.array([0, 1, 1, 0]),
        _search=None,
        _command=before.copy(),
        failures=np.array([0, 5, 0, 0]),
        iterations=np.zeros(count, np.int64),
    )
    state = np.zeros((count, 10))
    state[0, 3], state[1, 4] = np.nan, np.inf
    ExpertPilot._solve(pilot, state, np.zeros(count), new)  # type: ignore[arg-type]
    first = inputs[:, 0].astype(np.float64)
    np.testing.assert_array_equal(pilot._command[0], [0.5 * first[0, 0], *first[0, 1:]])
    np.testing.assert_array_equal(pilot._command[1:], before[1:])
    assert pilot.failures.tolist() == [0, 6, 0, 0]
    assert pilot.iterations.tolist() == [3, 4, 0, 0]
    assert not asked["looked_up"].any()  # a diverged flight still looks a row up
    assert asked["state"] is state
    assert asked["full"].tolist() == [10.0] * count
    assert asked["last"].tolist() == [10, 20, 20, 10]
    assert asked["flights"] is new
    assert asked["shifted"] is new
