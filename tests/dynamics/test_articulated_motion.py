"""Motion of vehicles with joints against closed forms, conservation laws and orders of convergence, in double precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small, with_joints

from airworthy.core.arrays import Array
from airworthy.dynamics.articulated.composite import center_of_mass
from airworthy.dynamics.articulated.equations import kinematics
from airworthy.dynamics.articulated.step import to_world
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.dynamics.articulated.twin import ArticulatedTwin, JointedMotion
from airworthy.vehicles import Joint, Link, RotorResponse, Vehicle, articulated
from airworthy.verification.articulated.figures import _quantities, conserved

FREE = with_joints(small(), kp=0.0, kd=0.0, law="torque")


def fly(
    twin: ArticulatedTwin,
    state: JointedMotion,
    steps: int,
    dt: float,
    integrator: str,
    command: float = 0.9,
    target: float = 0.0,
) -> JointedMotion:
    for _ in range(steps):
        state = twin.step(state, [command], [target], dt, integrator)
    return state


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit", 1), ("midpoint", 2), ("extrapolated", 2), ("rk4", 4)])
def test_orders_of_convergence(integrator: str, order: int) -> None:
    """Three halvings of the step; springs, damping, rotor lag, rotor inertia and a turning base."""
    twin = ArticulatedTwin(tree_of(small()), single=True)
    start = twin.start(rate=(1.0, -2.0, 0.5), joint=(0.3,), joint_rate=(2.0,), rotor=(0.2,))
    seconds = 0.08
    steps = (32, 64, 128)
    reference = fly(twin, start, 320, seconds / 320, "rk4")

    def error(count: int) -> float:
        end = fly(twin, start, count, seconds / count, integrator)
        return max(
            float(np.abs(getattr(end, n) - getattr(reference, n)).max()) for n in ("velocity", "rate", "joint", "joint_rate")
        )

    errors = [error(count) for count in steps]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(slopes - order) < 0.35), (errors, slopes)


def test_a_free_flight_keeps_energy_and_momenta() -> None:
    energy, linear, angular = conserved(replace(FREE, rotors=(replace(FREE.rotors[0], inertia=0.0),)), 0.2, 0.001)
    assert energy < 1e-9
    assert linear < 1e-12
    assert angular < 1e-11


def test_a_rotor_that_spins_up_turns_its_link_the_other_way() -> None:
    """Angular momentum of bodies and rotor together, though the rotor gives neither thrust nor drag."""
    rotor = replace(
        small().rotors[0],
        thrust=(0.0, 0.0, 0.0),
        torque=(0.0, 0.0, 0.0),
        speed_max=500.0,
        response=RotorResponse.first_order(0.05),
    )
    craft = replace(FREE, rotors=(rotor,), motor_state="speed")
    tree = tree_of(craft)
    twin = ArticulatedTwin(tree, single=True)
    state = twin.start(rate=(0.3, 0.1, -0.2), joint_rate=(1.0,))
    before = _with_rotor(tree, state)
    state = fly(twin, state, 100, 0.001, "rk4", command=400.0)
    assert float(state.rotor[0, 0]) > 300.0
    np.testing.assert_allclose(_with_rotor(tree, state), before, atol=1e-9)
    assert (
        np.abs(_quantities(tree, state)[1] - _quantities(tree, twin.start(rate=(0.3, 0.1, -0.2), joint_rate=(1.0,)))[1]).max()
        > 1e-3
    )


def _with_rotor(tree: JointTree, state: JointedMotion) -> Array:
    item = tree.model.propellers[0]
    frames = kinematics(tree.structure, tree.model, tuple(state.joint[:, 0]))
    axis = np.array(frames[1].rotation, float) @ np.array(item.axis)
    own = to_world(tuple(state.attitude[:, 0]), tuple(-item.inertia * state.rotor[0, 0] * axis))
    return _quantities(tree, state)[1] + np.array(own)


def test_what_pushes_the_base_moves_the_whole() -> None:
    tree = tree_of(small())
    twin = ArticulatedTwin(tree)
    state = twin.start(joint=(0.4,))
    dv, dw, qdd, _, _ = twin.evaluate(state, state, (0.0,), (0.0,), 0.0, 0.0, force=(0.3, -0.2, 0.5), moment=(0.01, 0.0, 0.02))
    center = np.array(center_of_mass(tree.structure, tree.model, (0.4,)), float)
    # The whole's centre of mass by differences of the joint's angle; everything starts at rest.
    step = 1e-6
    ahead = np.array(center_of_mass(tree.structure, tree.model, (0.4 + step,)), float)
    moved = dv[:, 0] + np.cross(dw[:, 0], center) + (ahead - center) / step * qdd[0, 0]
    mass = sum(body.mass for body in tree.model.bodies)
    np.testing.assert_allclose(moved, np.array([0.3, -0.2, 0.5]) / mass - [0.0, 0.0, 9.81], atol=1e-5)


def test_a_hinge_on_a_held_base_is_a_pendulum() -> None:
    """A point on an arm: m L^2 qdd = m g L cos q about a level axis, and the base feels gravity turned round."""
    joint = Joint((0.1, 0.0, 0.0), (0.0, 1.0, 0.0), law="torque")
    base = Link("base", mass=1.0, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0))
    arm = Link("arm", "base", joint, mass=0.05, center_of_mass=(0.2, 0.0, 0.0))
    craft = articulated("stand", [base, arm], [small().rotors[0]], motor_state="thrust", fixed_base=True)
    twin = ArticulatedTwin(tree_of(replace(craft, rotors=(replace(craft.rotors[0], inertia=0.0),))))
    for q in (0.0, 0.7, -1.2):
        state = twin.start(joint=(q,))
        dv, dw, qdd, _, felt = twin.evaluate(state, state, (0.0,), (0.0,), 0.0, 0.0)
        assert qdd[0, 0] == pytest.approx(9.81 / 0.2 * math.cos(q), rel=1e-9)  # polynomials of sine and cosine
        assert not dv.any()
        assert not dw.any()
        np.testing.assert_allclose(felt[:, 0], [0.0, 0.0, 9.81], atol=1e-12)


def driven(**changes: object) -> Vehicle:
    return with_joints(small(), kp=0.0, active=True, **changes)


@pytest.mark.parametrize("integrator", ["semi_implicit", "extrapolated"])
def test_a_servo_reaches_its_rate_within_its_effort(integrator: str) -> None:
    """Stiff (a pole near 1e5 1/s) and weak: it saturates, then settles without chatter, and is never driven harder."""
    craft = driven(kd=10.0, effort=0.05)
    twin = ArticulatedTwin(tree_of(craft), single=True)
    state, most = twin.start(), 0.0
    rates = []
    for _ in range(60):
        found = twin.evaluate(state, state, (0.0,), (8.0,), 0.002, 0.002)
        most = max(most, float(np.abs(found[3]).max()))
        state = twin.step(state, [0.0], [8.0], 0.002, integrator)
        rates.append(float(state.joint_rate[0, 0]))
    assert most <= 0.05 * (1.0 + 1e-9)
    assert rates[0] < 4.0  # held back at first
    settled = np.array(rates[30:])
    assert np.abs(settled - 8.0).max() < 0.05
    assert np.abs(np.diff(settled)).max() < 0.01


@pytest.mark.parametrize("integrator", ["semi_implicit", "midpoint", "extrapolated", "rk4"])
def test_a_stop_gives_back_no_energy(integrator: str) -> None:
    craft = with_joints(small(), kp=0.0, kd=0.0, law="torque", lower=-0.5, upper=0.1)
    tree = tree_of(replace(craft, rotors=(replace(craft.rotors[0], inertia=0.0),)))
    twin = ArticulatedTwin(tree, single=True)
    state = twin.start(joint_rate=(4.0,))
    first = energy = _quantities(tree, state)[2]
    turned = []
    for _ in range(60):
        state = twin.step(state, [0.0], [0.0], 0.001, integrator)
        energy = max(energy, _quantities(tree, state)[2])
        turned.append(float(state.joint[0, 0]))
    assert max(turned) < 0.1 + 2e-2
    assert turned[-1] < max(turned) - 1e-3  # it came back
    assert energy < first + 1e-4 * abs(first)
