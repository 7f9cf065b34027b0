"""What saturated allocation gives up, on catalogue airframes: against a lexicographic linear program, and in closed loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

from airworthy.benchmarks import FlyConfig, run_fly
from airworthy.control import PRIORITIES, allocate_bounded, allocation_for
from airworthy.control.allocation import Priority, _scale_with_shift, _Shift
from airworthy.control.gain_parameters import priority_of
from airworthy.control.gain_sets import GainSet, Value, read_gain_set, write_gain_set
from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.frames import from_euler, to_matrix
from airworthy.dynamics.state import Effects
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Disturbance, WrenchNoise, control_effectiveness, vehicle
from airworthy.vehicles.trim import thrust_limits

AIRFRAMES = {"lmf2": 250, "x500": 250, "cf2x_L250": 250, "real_01": 250}
"""Saturated wrenches of each: 1,000. `test_spare_rotors.py` has airframes with rotors to spare."""
SOLVER = 1e-10
"""Feasibility tolerance of the linear programs."""


def saturated_wrenches(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """(6, count) wrenches that no rotor thrusts in proportion give: forces around and beyond full, moments likewise."""
    body = vehicle(name)
    matrix, inverse = control_effectiveness(body), np.array(allocation_for(body).inverse)
    lower, upper = thrust_limits(body)
    most = np.maximum(matrix * lower, matrix * upper).sum(axis=1)
    found = np.empty((6, 0))
    while found.shape[1] < count:
        w = most[:, None] * rng.normal(size=(6, 4 * count)) * rng.choice([0.05, 0.3, 1.0], size=(6, 4 * count))
        w[2] = most[2] * rng.uniform(-0.2, 1.6, 4 * count)
        thrusts = inverse @ w
        beyond = np.any((thrusts < lower[:, None]) | (thrusts > upper[:, None]), axis=0)
        found = np.hstack([found, w[:, beyond]])
    return found[:, :count]


def by_linear_programs(name: str, wrenches: np.ndarray, priority: str) -> tuple[np.ndarray, ...]:
    """What each group contributes to a rotor at most, in shares of full thrust, from one linear program per group and wrench.

    Variables of a wrench, each times its direction of largest element 1: the collective, its distance to the one asked for,
    attitude, force beside the collective, and yaw. Programs of all wrenches are solved as one, being independent.

    Returns:
        Attitude, yaw, force beside the collective, and the collective, (count,) each.
    """
    a = allocation_for(vehicle(name))
    directions, sizes, full = in_full_thrust(name, wrenches)
    lower, upper = np.array(a.thrust_min) / full, np.array(a.thrust_max) / full
    movable, count = any(a.collective), wrenches.shape[1]
    thrusts = scipy.sparse.block_diag([np.insert(d, 1, 0.0, axis=1) for d in directions])
    # The distance is at least the difference, both ways.
    far = scipy.sparse.block_diag([[[1.0, -1.0, 0, 0, 0], [-1.0, -1.0, 0, 0, 0]]] * count)
    limits = [np.tile(upper, count), -np.tile(lower, count), np.ravel(np.outer(sizes[:, 0], [1.0, -1.0]))]
    # Low, high of each variable; those whose turn has not come are zero, except the collective, or else the whole force.
    bounds = np.zeros((count, 5, 2))
    bounds[:, 0], bounds[:, 1] = (-np.inf, np.inf) if movable else (0.0, 0.0), (0.0, np.inf)
    bounds[:, 3, 1] = 0.0 if movable else sizes[:, 2]
    stages = {"attitude": [2], "yaw": [4], "force": [1, 3] if movable else [3]}
    for variable in [v for group in priority.split("-") for v in stages[group]]:
        cost = np.zeros((count, 5))
        cost[:, variable] = 1.0 if variable == 1 else -1.0
        if variable != 1:
            bounds[:, variable, 1] = sizes[:, variable - 1]
        rows = scipy.sparse.vstack([thrusts, -thrusts, far])
        precise = {"primal_feasibility_tolerance": SOLVER, "dual_feasibility_tolerance": SOLVER}
        found = scipy.optimize.linprog(
            cost.ravel(), rows, np.concatenate(limits), bounds=bounds.reshape(-1, 2), options=precise
        )
        assert found.status == 0, found.message
        x = found.x.reshape(count, 5)
        # Keep what this group got, up to the solver's own tolerance.
        kept = 0 if variable == 1 else variable
        bounds[:, kept] = x[:, kept, None] + 10.0 * SOLVER * np.array([-1.0, 1.0])
    return x[:, 2], x[:, 4], x[:, 3], x[:, 0]


def in_full_thrust(name: str, wrenches: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Directions (count, rotor, 4: collective, attitude, force beside it, yaw) of largest element 1, how much of each is asked
    for (count, 4), and the full thrust [N] that this is counted in."""
    a = allocation_for(vehicle(name))
    inverse, full = np.array(a.inverse), max(a.thrust_max)
    parts = []
    for w in wrenches.T:
        beside = inverse[:, :2] @ w[:2] + (0.0 if any(a.collective) else inverse[:, 2] * w[2])
        parts.append([np.array(a.collective) * w[2], inverse[:, 3:5] @ w[3:5], beside, inverse[:, 5] * w[5]])
    directions = np.swapaxes(np.array(parts), 1, 2) / full
    sizes = np.abs(directions).max(axis=1)
    signed = sizes * np.where(np.arange(4) == 0, np.sign(wrenches[2])[:, None], 1.0)
    return directions / np.where(sizes > 0.0, signed, 1.0)[:, None, :], signed, full


def contributions(name: str, wrenches: np.ndarray, priority: str) -> tuple[np.ndarray, ...]:
    """The same of our allocation, read back from its thrusts."""
    a = allocation_for(vehicle(name))
    thrusts = np.array(allocate_bounded(tuple(wrenches), a, priority))
    assert np.all((thrusts >= np.array(a.thrust_min)[:, None]) & (thrusts <= np.array(a.thrust_max)[:, None]))
    directions, _, full = in_full_thrust(name, wrenches)
    got = np.array([np.linalg.lstsq(d, t / full)[0] for d, t in zip(directions, thrusts.T, strict=True)])
    left = np.einsum("krj,kj->kr", directions, got) - thrusts.T / full
    assert np.abs(left).max() < 1e-9  # directions are kept
    return got[:, 1], got[:, 3], got[:, 2], got[:, 0]


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("name", AIRFRAMES)
def test_saturated_wrenches_against_linear_programs(name: str, priority: str) -> None:
    wrenches = saturated_wrenches(name, AIRFRAMES[name], np.random.default_rng(8))
    ours, expected = contributions(name, wrenches, priority), by_linear_programs(name, wrenches, priority)
    for mine, theirs in zip(ours, expected, strict=True):
        assert np.abs(mine - theirs).max() < 1e-5  # a rotor that the last group hardly uses magnifies the slack


@pytest.mark.parametrize("name", AIRFRAMES)
def test_attitude_is_served_as_if_nothing_else_was_asked(name: str) -> None:
    """Its share is no smaller for the force and the yaw that come with it, as the default order promises."""
    wrenches = saturated_wrenches(name, 200, np.random.default_rng(9))
    wrenches[3:5] *= np.random.default_rng(1).uniform(0.1, 3.0, 200)
    alone = wrenches.copy()
    alone[[0, 1, 2, 5]] *= 1e-6
    assert np.all(contributions(name, wrenches, PRIORITIES[0])[0] >= contributions(name, alone, PRIORITIES[0])[0] - 1e-9)


@pytest.mark.parametrize("name", ["base_octarotor", "base_random", "lmf2", "x500"])
def test_a_tilt_is_removed_at_one_and_a_half_times_the_thrust(name: str) -> None:
    body = replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())
    lower, upper = thrust_limits(body)
    row = control_effectiveness(body)[2]
    full = np.maximum(row * lower, row * upper).sum()
    tilt = {}
    for priority in PRIORITIES:
        simulator = Simulator([body], SimulatorConfig(level="attitude_thrust", control=ControlConfig(priority=priority)))
        simulator.reset(attitude=from_euler(0.5, 0.0, 0.0))
        simulator.advance(1920, [1.5 * full, 0.0, 0.0, 0.0])
        tilt[priority] = float(np.degrees(np.arccos(min(to_matrix(simulator.attitude[0])[2, 2], 1.0))))
    assert tilt["attitude-force-yaw"] < 0.01
    assert tilt["attitude-yaw-force"] < 0.01
    assert tilt["force-attitude-yaw"] > 10.0


# ---- Where an order is chosen: beside the gains, in their file, or in neither -----------------------------------------------


def _gains(path: Path, priority: Priority | None) -> str:
    values: dict[str, Value] = {"position_gain": (4.0, 4.0, 6.0)}
    return str(write_gain_set(GainSet("mine", "geometric", "", values, values, priority=priority), path))


GAINS = {"law": "'geometric'", "values": "{ position_gain = [4, 4, 6], rate_gain = 0.5 }"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"law": "'rate_loop'"}, "law must be 'geometric', but is 'rate_loop'"),
        ({"law": ""}, "lacks 'law'"),
        ({"nmae": "'a'"}, "has the unknown key 'nmae' (closest: 'name')"),
        ({"name": "3"}, "name must be text, but is 3"),
        ({"priority": "'yaw-first'"}, "priority must be one of 'attitude-force-yaw', "),
        ({"values": "3"}, "values must be a table, but is 3"),
        ({"values": "{}"}, "has no gain in [values]; give at least one of position_gain"),
        ({"values": "{ positoin_gain = 4.0 }"}, "values has the unknown key 'positoin_gain' (closest: 'position_gain')"),
        ({"limits": "{ position_gain = 4.0 }"}, "limits has the unknown key 'position_gain'"),
        ({"values": "{ rate_gain = true }"}, "values.rate_gain must be a number or a list, but is True"),
        ({"values": "{ rate_gain = nan }"}, "values.rate_gain must be a finite number, but is nan"),
        ({"values": "{ rate_gain = [1, 2] }"}, "rate_gain is a list of 2; expected 3 numbers, 0 to 1000000 N m s"),
        ({"values": "{ rate_gain = [1, 2, -3] }"}, "rate_gain[2] is -3 N m s; expected 0 to 1000000"),
        ({"limits": f"{{ thrust_max = 1{'0' * 400} }}"}, "limits.thrust_max must be a number, but is 1000"),
    ],
)
def test_a_file_of_gains_that_does_not_fit(change: dict[str, str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("\n".join(f"{key} = {value}" for key, value in (GAINS | change).items() if value))
    with pytest.raises(AssetError) as caught:
        read_gain_set(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"Gain file {str(file)!r}")


def test_a_file_of_gains_carries_any_name(tmp_path: Path) -> None:
    values: dict[str, Value] = {"position_gain": (4.0, 4.0, 6.0)}
    gains = GainSet("race \U0001f600\x7f", "geometric", 'by "me"', values, values)
    again = read_gain_set(write_gain_set(gains, tmp_path / "own.toml"))
    assert (again.name, again.source) == (gains.name, gains.source)


def test_a_file_of_gains_carries_the_order(tmp_path: Path) -> None:
    own, none = _gains(tmp_path / "own.toml", "force-attitude-yaw"), _gains(tmp_path / "none.toml", None)
    assert read_gain_set(own).priority == "force-attitude-yaw"
    assert read_gain_set(none).priority is None
    assert "priority" not in Path(none).read_text()
    assert priority_of(ControlConfig()) == PRIORITIES[0]
    assert priority_of(ControlConfig(priority=PRIORITIES[1])) == PRIORITIES[1]
    assert priority_of(ControlConfig(gains=own)) == "force-attitude-yaw"
    assert priority_of(ControlConfig(gains=own, priority="force-attitude-yaw")) == "force-attitude-yaw"
    assert priority_of(ControlConfig(gains=none, priority=PRIORITIES[1])) == PRIORITIES[1]
    effects = [
        Simulator(vehicle("lmf2"), SimulatorConfig(level="tracking", control=ControlConfig(gains=name))).effects
        for name in (own, none)
    ]
    assert [Effects.FORCE_FIRST in found for found in effects] == [True, False]


def test_two_orders_that_differ_are_refused(tmp_path: Path) -> None:
    own = _gains(tmp_path / "own.toml", "force-attitude-yaw")
    for order in PRIORITIES[:2]:
        with pytest.raises(AirworthyError, match=f"The priority is {order}, and .* says force-attitude-yaw: leave"):
            Simulator(vehicle("lmf2"), SimulatorConfig(level="tracking", control=ControlConfig(gains=own, priority=order)))
    with pytest.raises(AirworthyError, match="which the pseudo-inverse has no use for"):
        ControlConfig(priority=PRIORITIES[1], allocation="pseudo_inverse")
    with pytest.raises(AirworthyError, match="which the pseudo-inverse has no use for"):
        priority_of(ControlConfig(gains=own, allocation="pseudo_inverse"))
    Path(own).write_text('law = "geometric"\npriority = "yaw-first"\n[values]\nposition_gain = 4.0\n')
    with pytest.raises(AirworthyError, match="yaw-first"):
        read_gain_set(own)


def test_fly_refuses_an_order_of_a_file_beside_another(tmp_path: Path) -> None:
    own = _gains(tmp_path / "own.toml", "force-attitude-yaw")
    with pytest.raises(AirworthyError, match="The priority is attitude-yaw-force, and the gain file"):
        run_fly(FlyConfig(gains=own, priority="attitude-yaw-force", out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("slopes", "tight", "scale"),
    [
        # Thrusts of two rotors of which one is full and one stands still: together they cannot go up nor down.
        ((1e-10, -1e-10), False, 0.0),
        ((1e-10, -1e-10), True, 0.0),
        # Less than 1e-12 N is none.
        ((4e-13, -4e-13), False, 1.0),
        ((4e-13, -4e-13), True, 1.0),
        # Both go along but for a millionth, which is float32's rounding where nothing is left.
        ((1.0, 1.0 - 1e-6), False, 0.0),
        ((1.0, 1.0 - 1e-6), True, 1.0),
        ((1.0, 1.0 - 4e-6), True, 0.0),
    ],
)
def test_which_spread_of_a_direction_counts_where_no_room_is_left(
    slopes: tuple[float, float], tight: bool, scale: float
) -> None:
    found, least, most = _scale_with_shift((1.0, 0.0), slopes, _Shift((1.0, 1.0), -1e9, 1e9), ((0.0, 1.0),) * 2, tight)
    assert found == scale
    assert abs(least) <= 1.0
    assert abs(most) <= 1.0
