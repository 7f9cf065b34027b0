"""The adjoint through a fit's windows against differences of its cost, and descent by it beside Gauss-Newton's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, fly, quad

from airworthy.vehicles import Identified, Known, identify
from airworthy.vehicles.identification.fitting.descent import compared_descents, descend_by_gradient
from airworthy.vehicles.identification.fitting.gradient import cost_and_gradient
from airworthy.vehicles.identification.fitting.refine import KEPT, FitProblem, costs_of
from airworthy.vehicles.identification.fitting.structures import start_vector

pytestmark = pytest.mark.slow
"""The identification that all of them look at takes ten seconds and more."""

CRAFT = quad(
    inertia=(1.5e-5, 1.6e-5, 2.8e-5),
    center=(0.0005, -0.0003, 0.0),
    drag=0.35,
    drag_height=0.012,
    force_delay=2,
    fall=0.09,
    lever=(0.003, 0.002, -0.001),
    tilt=(0.02, -0.01, 0.0),
)
"""Everything that a cost may depend on: a sensor off its place, tilted and late, air, two lags."""


def identified(craft: Craft, seconds: float, **options: object) -> Identified:
    log = fly(craft, seconds, push=2.0, gyro_noise=0.02)
    known = Known(mass=(craft.mass, 0.002 * craft.mass), vehicle=craft.known())
    return identify([log], known, quick=True, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Identified:
    return identified(CRAFT, 8.0, refine="both")


def differences(problem: FitProblem, theta: np.ndarray) -> np.ndarray:
    index, sd = problem.parameters.index, problem.parameters.sd
    slopes = []
    for k in index:
        moved = np.repeat(theta[None], 2, axis=0)
        moved[0, k] += 3e-4 * sd[k]
        moved[1, k] -= 3e-4 * sd[k]
        high, low = costs_of(problem, moved, 1.0)
        slopes.append((high - low) / 6e-4)
    return np.array(slopes)


@pytest.mark.parametrize("near", [True, False])
def test_the_adjoint_is_the_slope_of_the_cost(found: Identified, near: bool) -> None:
    problem, theta = found.fit.problem, found.fit.theta.copy()
    index = problem.parameters.index
    if near:
        theta[index] += 0.3 * found.fit.sd[index] * np.random.default_rng(0).standard_normal(len(index))
    else:
        # Where the air acts at the centre of mass and rotors fall as they rise: slopes are not zero there.
        theta = start_vector(problem.parameters, found.start, found.start.cells[0])
    cost, slopes = cost_and_gradient(problem, theta)
    assert cost == pytest.approx(costs_of(problem, theta[None], 1.0)[0], rel=1e-9)
    wanted = differences(problem, theta)
    labels = [problem.parameters.items[k].label for k in index]
    assert {"drag_height", "fall_ratio", "imu_z", "force_delay", "command_delay", "inertia_zz_ratio"} <= set(labels)
    for label, slope, want in zip(labels, slopes, wanted, strict=True):
        # Where rise turns into fall the cost has a kink: a difference across it is between both slopes.
        most = 0.02 if label == "fall_ratio" and not near else 2e-3
        assert slope == pytest.approx(want, rel=most, abs=0.02), label


def test_both_descents_find_the_same(found: Identified) -> None:
    newton, gradient = found.raced
    assert (newton.method, gradient.method) == ("gauss-newton", "gradient")
    assert gradient.cost == pytest.approx(newton.cost, rel=5e-3)
    assert newton.steps < 13 < gradient.steps
    assert max(newton.apart, gradient.apart) < 0.5
    told = found.record()["refinements"]
    # What is written is the same on any machine.
    assert all("seconds" not in row for row in told)


def test_a_fit_by_the_gradient_alone() -> None:
    plain = replace(CRAFT, fall=None)
    told = identified(plain, 8.0, refine="gradient")
    # Of eight seconds full of pushes a standard error is no certainty: rise and fall may come out apart, and then alike.
    assert told.structure.startswith("first power")
    for name, truth in (("lag", 0.058), ("inertia_xx", 1.5e-5), ("inertia_yy", 1.6e-5), ("fall_ratio", 1.0)):
        value = told.value(name)
        assert abs(value.value - truth) < max(4.0 * value.sd, 0.02 * truth), name
    assert told.raced == ()


def test_measured_speeds_have_slopes(found: Identified) -> None:
    """Their lateness is one of the values, and lags play no part."""
    told = identified(replace(CRAFT, full=2500.0, speed_late=1), 6.0, refine="both")
    assert told.motors is not None
    assert {row.method for row in told.raced} == {"gauss-newton", "gradient"}
    assert max(row.apart for row in told.raced) < 0.5


def test_no_descent_leaves_what_can_be(found: Identified) -> None:
    problem = found.fit.problem
    place = problem.parameters.place("inertia_zz_ratio")
    theta = found.fit.theta.copy()
    theta[place] = problem.parameters.most[place]
    after, cost, _ = descend_by_gradient(problem, theta, 1)
    assert np.all(after <= problem.parameters.most)
    assert cost <= costs_of(problem, theta[None], 1.0)[0]
    assert len(compared_descents(found.fit, found.fit.theta)) == 2


def test_errors_that_are_kept_are_those_of_their_vector(found: Identified) -> None:
    """Of a problem that is weighed anew the same, of one with other parameters its own; few are kept."""
    problem, theta = replace(found.fit.problem), found.fit.theta
    first = problem.errors(theta[None], 0)
    assert problem.errors(theta[None], 0) is first
    assert problem.scaled(theta).errors(theta[None].copy(), 0) is first
    heavier = replace(problem.parameters.base, center_of_mass=(0.0, 0.0, 0.01))
    other = replace(problem, parameters=replace(problem.parameters, base=heavier))
    assert not np.array_equal(other.errors(theta[None], 0), first)
    moved = theta + 0.1 * found.fit.sd
    assert not np.array_equal(problem.errors(moved[None], 0), first)
    for k in range(2 * KEPT):
        problem.errors((theta + 1e-3 * k)[None], 0)
    again = problem.errors(theta[None], 0)
    assert again is not first
    np.testing.assert_array_equal(again, first)
    both = problem.errors(np.stack([moved, theta]), 0)
    np.testing.assert_array_equal(both[1], first[0])


def test_rates_that_a_flight_cannot_tell_do_not_count_there(found: Identified) -> None:
    """As if nobody had looked at them: in the cost, in its slopes, and in how much a window weighs."""
    theta = found.fit.theta + 0.2 * found.fit.sd
    deaf = replace(found.fit.problem, unheard=((False, False, True, False, False, False),), whitening=()).scaled(theta)
    blind = replace(found.fit.problem, channels=(True, True, False, True, True, True), whitening=()).scaled(theta)
    for of in (
        lambda problem: cost_and_gradient(problem, theta),
        lambda problem: (costs_of(problem, theta[None], 1.0)[0], 0.0),
    ):
        (cost, slopes), (other, others) = of(deaf), of(blind)
        assert cost == pytest.approx(other, rel=1e-12)
        np.testing.assert_allclose(slopes, others, rtol=1e-9, atol=1e-9)
    assert costs_of(deaf, theta[None], 1.0)[0] < costs_of(found.fit.problem.scaled(theta), theta[None], 1.0)[0]
