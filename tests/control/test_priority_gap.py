"""Bounded allocation leaves nothing of the first priority, on airframes of four to sixteen rotors, against linear programs.

A linear program over all thrusts says how much attitude, or force, an airframe can give. `test_spare_rotors.py` compares every
group in its turn.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from airworthy.control import allocate_bounded, allocation_for
from airworthy.control.effectors import working_effectiveness
from airworthy.vehicles import Vehicle, thrust_limits, vehicle, vehicle_names

RACER = vehicle("flightgoggles")


def multirotor(count: int, tilt: float = 0.0) -> Vehicle:
    """Rotors of `RACER` evenly on a circle, of alternating spins, tilted along it in turn."""
    rotors = []
    for k in range(count):
        angle, lean = 2.0 * math.pi * (k + 0.5) / count, tilt * (-1.0) ** k
        axis = np.array([lean * math.sin(angle), -lean * math.cos(angle), 1.0]) / math.hypot(1.0, tilt)
        place = (0.25 * math.cos(angle), 0.25 * math.sin(angle), 0.0)
        x, y, z = axis.tolist()
        rotors.append(replace(RACER.rotors[0], position=place, spin=1 if k % 2 == 0 else -1, axis=(x, y, z)))
    return replace(RACER, name=f"multirotor_{count}", mass=RACER.mass * count / 4.0, rotors=tuple(rotors))


def saturated(body: Vehicle, count: int) -> np.ndarray:
    """(6, count) wrenches beyond what the pseudo-inverse gives within limits; airframes that cannot push sideways are not asked
    to."""
    rng, matrix = np.random.default_rng(8), working_effectiveness(body)
    lower, upper = thrust_limits(body)
    most = np.maximum(matrix * lower, matrix * upper).sum(axis=1)
    w = most[:, None] * rng.normal(size=(6, 8 * count)) * rng.choice([0.05, 0.3, 1.0], size=(6, 8 * count))
    w[2] = most[2] * rng.uniform(-0.2, 1.6, 8 * count)
    inverse = np.array(allocation_for(body).inverse)
    w[:2] *= inverse[:, :2].any()
    thrusts = inverse @ w
    return w[:, np.any((thrusts < lower[:, None]) | (thrusts > upper[:, None]), axis=0)][:, :count]


def best(body: Vehicle, wrenches: np.ndarray, first: str) -> np.ndarray:
    """Largest share (count,) of attitude, or of force, that any thrusts within limits give, as `allocate_bounded` counts it.

    Attitude: without yaw, with any collective, or else with a share of the whole force. Force: without moment; of a collective
    its distance to what is asked, over full thrust, taken off 1.
    """
    matrix, (lower, upper) = working_effectiveness(body), thrust_limits(body)
    n, movable, full = len(lower), any(allocation_for(body).collective), float(upper.sum())
    blocks, count = [], wrenches.shape[1]
    for w in wrenches.T:  # variables: thrusts, share of attitude, share of force or the collective, its distance
        rows = np.zeros((6, n + 3))
        rows[:, :n] = matrix
        rows[3:5, n] = -w[3:5]
        rows[:3, n + 1] = (0.0, 0.0, -1.0) if movable else -w[:3]
        blocks.append((rows[2:] if movable else rows) / np.maximum(np.abs(rows[2 * movable :, :n]).max(axis=1), 1e-9)[:, None])
    bounds = np.zeros((count, n + 3, 2))
    bounds[:, :n, 0], bounds[:, :n, 1] = lower, upper
    bounds[:, n, 1] = first == "attitude"
    bounds[:, n + 1] = (-np.inf, np.inf) if movable else (0.0, 1.0)
    bounds[:, n + 2, 1] = np.inf
    distance = np.zeros((2, n + 3))
    distance[:, n + 1], distance[:, n + 2] = (1.0, -1.0), -1.0
    cost = np.zeros((count, n + 3))
    wanted = n if first == "attitude" else n + 2 if movable else n + 1
    cost[:, wanted] = 1.0 if wanted == n + 2 else -1.0
    equal = scipy.sparse.block_diag(blocks, format="csr")
    far = scipy.sparse.block_diag([distance] * count, format="csr")
    room = np.ravel(np.outer(wrenches[2], [1.0, -1.0])) if movable else np.full(2 * count, 1e9)
    found = scipy.optimize.linprog(cost.ravel(), far, room, equal, np.zeros(equal.shape[0]), bounds.reshape(-1, 2))
    assert found.status == 0, found.message
    shares = found.x.reshape(count, n + 3)[:, wanted]
    return np.asarray(1.0 - shares / full if wanted == n + 2 else shares)


def served(body: Vehicle, wrenches: np.ndarray, first: str) -> np.ndarray:
    """The same of our allocation, from the wrench that its thrusts give."""
    a, order = allocation_for(body), "attitude-force-yaw" if first == "attitude" else "force-attitude-yaw"
    given = working_effectiveness(body) @ np.array(allocate_bounded(tuple(wrenches), a, order))  # type: ignore[arg-type]
    if first == "force" and any(a.collective):
        return np.asarray(1.0 - np.abs(given[2] - wrenches[2]) / float(thrust_limits(body)[1].sum()))
    rows = slice(3, 5) if first == "attitude" else slice(0, 3)
    return np.asarray((given[rows] * wrenches[rows]).sum(axis=0) / (wrenches[rows] ** 2).sum(axis=0))


AIRFRAMES = {
    "quadrotor": multirotor(4),
    "hexarotor": multirotor(6),
    "hexarotor, tilted": multirotor(6, 0.3),
    "octorotor": multirotor(8),
    "12 rotors": multirotor(12),
    "16 rotors": multirotor(16),
}


@pytest.mark.parametrize("first", ["attitude", "force"])
@pytest.mark.parametrize("name", AIRFRAMES)
def test_nothing_is_left_of_the_first_priority(name: str, first: str) -> None:
    body = AIRFRAMES[name]
    wrenches = saturated(body, 60)
    assert np.abs(best(body, wrenches, first) - served(body, wrenches, first)).max() < 1e-5


def test_these_are_the_airframes_of_the_catalogue_with_rotors_to_spare() -> None:
    found = set()
    for name in vehicle_names():
        rows = working_effectiveness(vehicle(name))
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        rank = np.linalg.matrix_rank(rows / np.where(size > 0.0, size, 1.0), tol=2e-6)
        found |= {name} if vehicle(name).rotor_count > rank else set()
    assert found == {"base_octarotor", "base_random"}
