"""How much thrust there is comes from the mean of whole flights: windows alone leave it to its prior where something drifts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.vehicles.flown_logs import Excitation, changed, fly, quad

from airworthy.logs import Log
from airworthy.vehicles import Identified, Known, identify
from airworthy.vehicles.identification.fitting.levels import LASTING, LEAST, level_weights
from airworthy.vehicles.identification.fitting.refine import FitProblem, costs_of, curvature_of

SEED = np.random.default_rng(11)
STILL = 2.0
"""How long a vehicle of `fly` rests [s]."""


def test_a_flight_is_as_sure_as_what_lasts_within_it_leaves_it() -> None:
    start = np.arange(0.0, 40.0, 0.5)
    error = 0.3 + SEED.normal(0.0, 0.1, len(start))
    (found,) = level_weights([error], [start], 1e-3)
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.weight @ error == pytest.approx(0.3, abs=0.03)
    # 39.5 s are 9.9 stretches of 4 s beside the first, which share nothing: so many tell how far their mean is off.
    assert found.sd == pytest.approx(np.sqrt(found.weight @ (error - found.weight @ error) ** 2 / (39.5 / LASTING)))
    (thin,) = level_weights([error[::20]], [start[::20]], 1e-3)
    # Windows that lie far apart: no more of them count than there are.
    assert thin.sd == pytest.approx(np.sqrt(thin.weight @ (error[::20] - thin.weight @ error[::20]) ** 2 / 3.0))


def test_what_lies_between_parts_of_a_flight_makes_no_one_surer() -> None:
    start = np.array([0.0, 1.0, 2.0, 100.0, 101.0, 102.0])
    error = np.array([0.1, -0.1, 0.1, -0.1, 0.1, -0.1])
    (found,) = level_weights([error], [start], 1e-3)
    # Four seconds between neighbours, and no more across the gap: two stretches beside the first.
    assert found.sd == pytest.approx(0.1 / np.sqrt(2.0), rel=1e-3)
    # And one that is no longer than what lasts hardly knows how far it is off.
    (short,) = level_weights([error[:3]], [start[:3] / 10.0], 1e-3)
    assert short.sd == pytest.approx(np.sqrt(short.weight @ (error[:3] - short.weight @ error[:3]) ** 2 / LEAST))


def test_windows_are_as_far_off_as_they_usually_are() -> None:
    error = np.append(np.linspace(-1.0, 1.0, 41), 1.4826)
    (found,) = level_weights([error], [np.arange(42.0)], 1e-3)
    # The middle half lies within 0.5, as of a normal distribution of deviation 0.74: twice that counts by 1 / sqrt(2).
    assert found.weight[-1] / found.weight[20] == pytest.approx(np.sqrt(0.5), abs=0.03)


def test_windows_far_off_count_less_and_float_noise_is_no_knowledge() -> None:
    start = np.arange(0.0, 20.0, 0.5)
    error = np.zeros(40)
    error[7] = 50.0
    (found,) = level_weights([error], [start], 1e-2)
    assert found.weight[7] < 1e-3 * found.weight[6]
    assert abs(found.weight @ error) < 0.02
    (still,) = level_weights([np.zeros(40)], [start], 1e-2)
    assert still.sd == pytest.approx(1e-2 / np.sqrt(19.5 / LASTING))


def test_flights_that_differ_leave_the_level_that_unsure() -> None:
    start = np.arange(0.0, 40.0, 0.5)
    noise = SEED.normal(0.0, 0.05, (3, len(start)))
    alike = level_weights(list(noise), [start] * 3, 1e-3)
    apart = level_weights([row + shift for row, shift in zip(noise, (-0.4, 0.0, 0.4), strict=True)], [start] * 3, 1e-3)
    alone = [level_weights([row], [start], 1e-3)[0].sd for row in noise]
    assert [item.sd for item in alike] == pytest.approx(alone)
    assert all(item.sd == pytest.approx(0.4, rel=0.1) for item in apart)


def emptied(log: Log, share: float) -> Log:
    """Return a log whose motors lift less and less, as on a battery that no voltage tells."""
    stream = log.stream("accelerometer")
    assert stream is not None
    values, flown = np.array(stream.values), np.clip((stream.time - STILL) / (stream.time[-1] - STILL), 0.0, 1.0)
    values[:, 2] *= 1.0 - share * flown
    return changed(log, "accelerometer", values=values)


def lifted(found: Identified, command: float) -> float:
    """Thrust of one rotor at a command [N]."""
    rotor = found.vehicle.rotors[0]
    state = command * rotor.speed_max
    return rotor.thrust[1] * state + rotor.thrust[2] * state**2


def test_a_battery_that_no_voltage_tells_leaves_thrust_where_the_flight_has_it() -> None:
    craft = quad()
    # Steps of the collective are small: changes within windows hardly tell the level.
    flown = fly(craft, 14.0, push=1.0, excitation=Excitation(collective=0.2))
    known = Known(mass=(craft.mass, 0.002 * craft.mass), vehicle=craft.known())
    truth = craft.thrust[0] * craft.hover + craft.thrust[1] * craft.hover**2
    fallen = identify([emptied(flown, 0.10)], known, quick=True)
    # The first two thirds are fitted, so a third of the fall is their mean.
    found = lifted(fallen, craft.hover) / truth
    assert found == pytest.approx(1.0 - 0.1 / 3.0, abs=0.012)
    at = fallen.fit.problem.parameters.place("thrust")
    # And it is said how unsure that is: the trend itself lasts.
    assert 0.005 < fallen.fit.sd[at] < 0.05
    check_what_stands_beside(fallen.fit.problem, fallen.fit.theta)


def check_what_stands_beside(problem: FitProblem, theta: np.ndarray) -> None:
    """What the level tells is in the curvature, and is not divided among windows that share their pushes."""
    index, sd = problem.parameters.index, problem.parameters.sd
    moved = np.repeat(theta[None], len(index) + 1, axis=0)
    moved[np.arange(1, len(index) + 1), index] += 1e-3 * sd[index]
    beside = problem.beside(moved)
    slopes = (beside[1:] - beside[0]).T / 1e-3
    without = replace(problem, levels=(None,) * len(problem.windows))
    gained = curvature_of(problem, theta) - curvature_of(without, theta)
    np.testing.assert_allclose(gained, slopes.T @ slopes, rtol=1e-6, atol=1e-6 * np.abs(gained).max())
    one, half = costs_of(problem, theta[None], 1.0)[0], costs_of(problem, theta[None], 2.0)[0]
    z = ((theta - problem.parameters.mean) / sd)[index]
    # Windows count half, and nothing else does.
    assert one - 2.0 * (one - half) == pytest.approx(0.5 * float(z @ z) + 0.5 * float(beside[0] @ beside[0]), rel=1e-6)


def test_flights_that_cannot_tell_the_force_tell_no_level() -> None:
    two: Any = (SimpleNamespace(start=np.array([0.0, 0.2, 10.0]), step=0.01, steps=30),) * 2
    nothing: Any = None
    every, silent = (True,) * 6, (False,) * 5 + (True,)
    assert FitProblem(nothing, two, every, unheard=((False,) * 6, silent)).levelled == (True, False)
    assert FitProblem(nothing, two, (*every[:5], False)).levelled == (False, False)
    # Covered is what windows cover, not what lies between them.
    assert FitProblem(nothing, two, every).covered == pytest.approx(2.0 * (0.3 + 0.2 + 0.3))
