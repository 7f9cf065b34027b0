"""Glances: what a look is worth against rotations by another library, which gates count, and what is still lacking."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.race import load_race
from airworthy.race.pilots.progress import GateProgress, GlanceLedger
from airworthy.race.planning.glances import Glance, glances_of, looked, nearness

GATES = tuple(name for name, _ in load_race("alphapilot").passes)


def worth(state: np.ndarray, target: np.ndarray, soft: float = 0.1) -> float:
    """The formula of spec/race 5.4, with SciPy's rotations."""
    away = target - state[:3]
    distance = np.sqrt(away @ away + 0.05)
    x, y, z = Rotation.from_quat(state[6:10]).inv().apply(away) / distance
    inside = x - np.sqrt((y / 0.85) ** 2 + (z / 0.62) ** 2 + 1e-3)
    return float(1.0 / (1.0 + np.exp(-inside / soft)) / np.sqrt(1.0 + (distance / 16.0) ** 4))


@pytest.mark.parametrize("soft", [0.1, 1.0])
def test_a_look_against_another_library(soft: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        quaternion = rng.normal(size=4)  # of any length: solvers leave it off one
        state = np.concatenate([rng.normal(size=6) * 10.0, quaternion, np.zeros(3)])
        target = state[:3] + rng.normal(size=3) * rng.uniform(0.5, 30.0)
        assert looked(list(state), list(target), np, soft) == pytest.approx(worth(state, target, soft), rel=1e-9, abs=1e-12)


def test_what_a_look_is_worth() -> None:
    ahead = np.array([0.0] * 9 + [1.0] + [0.0] * 3)
    # Straight ahead from near by everything, at 16 m the root of a half, aside and behind nothing.
    assert looked(ahead, [2.0, 0.0, 0.0], np) == pytest.approx(1.0, abs=1e-3)
    assert looked(ahead, [16.0, 0.0, 0.0], np) == pytest.approx(np.sqrt(0.5), abs=1e-3)
    assert looked(ahead, [-5.0, 0.0, 0.0], np) < 1e-4
    assert looked(ahead, [1.0, 5.0, 0.0], np) < 1e-3
    assert nearness(np.array([0.0, 16.0, 32.0])) == pytest.approx([1.0, np.sqrt(0.5), 1.0 / np.sqrt(17.0)])
    # The picture is wider than high: 38 degrees aside count, 38 degrees up do not.
    assert looked(ahead, [4.0, 3.1, 0.0], np) > 0.5 > looked(ahead, [4.0, 0.0, 3.1], np)


def test_glances_of_the_race_and_of_others() -> None:
    glances = glances_of(GATES)
    named = [(GATES[glance.gate], GATES[glance.first], GATES[glance.last]) for glance in glances]
    # Spec/race 5.4: Gate1 twice, from afar and from near by; gates that are wide or known are not looked at.
    assert [gate for gate, _, _ in named].count("Gate1") == 2
    assert {gate for gate, _, _ in named} == {"Gate21", "Gate13", "Gate9", "Gate1", "Gate15", "Gate23", "Gate6"}
    assert all(glance.first <= glance.last <= glance.gate for glance in glances)
    assert glances_of(("a", "b", "c")) == (Glance(1, 0, 1), Glance(2, 1, 2))


def test_seconds_of_sight_are_counted_where_they_count() -> None:
    ledger = GlanceLedger((Glance(1, 0, 1), Glance(2, 2, 2)), 60.0)
    distance = np.array([1.0, 16.0, 0.0])
    ledger.update(np.array([4, 3, 4]), distance, 0)
    # On leg 0 gate 1 counts by what it is worth from 16 m, gate 2 not yet.
    assert ledger.seconds == pytest.approx([np.sqrt(0.5) / 60.0, 0.0])
    ledger.update(np.array([4, 2, 4]), distance, 1)  # two corners are no look
    assert ledger.seconds[0] == pytest.approx(np.sqrt(0.5) / 60.0)
    for _ in range(12):
        ledger.update(np.array([0, 4, 4]), distance, 2)
    assert ledger.seconds == pytest.approx([np.sqrt(0.5) / 60.0, 0.2])
    ((glance, left),) = ledger.lacking(0.12)
    assert glance.gate == 1
    assert left == pytest.approx(0.12 - np.sqrt(0.5) / 60.0)


def test_gates_are_passed_from_before_to_behind_near_their_centre() -> None:
    centers, normals = np.array([[0.0, 0.0, 2.0], [10.0, 0.0, 2.0]]), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    progress = GateProgress(2)

    def at(x: float, y: float = 0.0) -> bool:
        return progress.update(np.array([x, y, 2.0]), centers, normals)

    assert not at(1.0)  # behind it from the start: it has to come round
    assert not at(-1.0)
    assert not at(0.5, 7.0)  # through the plane far beside the gate
    assert not at(-1.0)
    assert at(0.1)
    # The second is flown the other way: from beyond it.
    assert not at(9.0)
    assert not at(11.0)
    assert at(10.0)
    assert progress.over
    assert not at(11.0)


def test_a_gate_counts_from_its_own_side_alone_also_right_behind_the_last() -> None:
    """Two gates two metres apart, the second flown the other way: who is through the first stands behind the second already."""
    centers, normals = np.array([[0.0, 0.0, 2.0], [2.0, 0.0, 2.0]]), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    progress = GateProgress(2)

    def at(x: float) -> bool:
        return progress.update(np.array([x, 0.0, 2.0]), centers, normals)

    assert not at(-0.1)
    assert at(0.1)
    assert not at(0.2)
    assert progress.next == 1
    assert not at(2.1)
    assert at(1.9)


def test_a_gate_is_taken_back_and_has_to_be_come_round_to() -> None:
    centers, normals = np.array([[0.0, 0.0, 2.0], [9.0, 0.0, 2.0]]), np.tile([1.0, 0.0, 0.0], (2, 1))
    progress = GateProgress(2)
    progress.take_back()
    assert progress.next == 0  # there is none before the first

    def at(x: float) -> bool:
        return progress.update(np.array([x, 0.0, 2.0]), centers, normals)

    assert not at(-1.0)
    assert at(0.5)
    assert not at(1.0)  # before the second, which is what it knows of itself there
    progress.take_back()
    assert progress.next == 0
    assert not at(1.1)
    assert not at(-0.5)
    assert at(0.1)
    assert progress.next == 1
