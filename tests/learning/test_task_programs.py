"""Programs about single tasks: what could be caught, and what noise of actions does."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.learning.environments import VectorTask, learning_task
from airworthy.vehicles import vehicle
from benchmarks import action_noise, hardware, recovery


def test_the_bound_of_throws_is_that_of_free_fall_and_full_thrust() -> None:
    """Upright at rest is caught; a fall too fast for the thrust that there is, is not; upside down costs height."""
    task, item = learning_task("recovery"), vehicle("cf2x_L250")
    states = VectorTask(task, 4, item, seed=1).state.astype(float)
    states[3:13] = 0.0
    states[9] = 1.0
    able = recovery.indicators(item)
    # With all its thrust at once it would need this much height for a speed downwards; rotors take time, so more.
    speed = np.sqrt(2.0 * item.gravity * (able.thrust_to_weight - 1.0) * task.height_m)
    states[5] = (0.0, -0.5 * speed, -0.99 * speed, -1.01 * speed)
    assert recovery.caught_at_best(task, item, states).tolist() == [True, True, False, False]
    states[5] = -0.85 * speed * np.ones(4)
    states[6:10] = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]] * 2).T
    found = recovery.caught_at_best(task, item, states)
    assert found[1] <= found[0]


def test_the_programs_print_their_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])  # the other tests keep theirs
    assert recovery.main(["--flights", "16"]) == 0
    told = capsys.readouterr().out
    assert "bound: kept at most" in told
    assert "law that turns first" in told
    monkeypatch.setattr(action_noise, "CASES", ((0.0, 0.0), (0.2, 0.0)))
    monkeypatch.setattr(action_noise, "LAWS", {"position_setpoint_velocity": (1.0, 0.0, 1.0)})
    assert action_noise.main(["--flights", "16"]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| position")]
    held = [float(row[5]) for row in rows]
    # Noise of actions, and then that of observations, sink it.
    assert held[0] < 1.0 < held[2] < held[1]
