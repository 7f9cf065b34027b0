"""What of a tree is structure and what is a row, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small, star, with_joints, without_stops

from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.dynamics.articulated.composite import center_of_mass, composite, effectiveness
from airworthy.dynamics.articulated.native import articulated_blocks
from airworthy.dynamics.articulated.parameters import shared_structure, with_number
from airworthy.dynamics.articulated.stiffness import advised_step, default_integrator, fastest_pole
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.vehicles import Drag, articulated_names, control_effectiveness, frozen, vehicle
from airworthy.vehicles.links import six_inertia


def test_vehicles_of_one_structure_share_a_kernel() -> None:
    chain, bars = tree_of(vehicle("snakey")), tree_of(vehicle("snakey_bar"))
    assert chain.structure == bars.structure
    assert hash(chain.structure) == hash(bars.structure)
    assert chain.values != bars.values
    heavier = tree_of(with_joints(vehicle("morphy"), kd=0.03))
    assert heavier.structure == tree_of(vehicle("morphy")).structure


def test_a_batch_has_one_structure() -> None:
    names = ["snakey", "snakey5"]
    with pytest.raises(AirworthyError, match="'snakey' and 'snakey5' have different joints"):
        shared_structure([tree_of(vehicle(name)) for name in names], names)
    with pytest.raises(AirworthyError, match="'morphy' and 'morphy_fixed_base' have different"):
        ArticulatedBatch([vehicle("morphy"), vehicle("morphy_fixed_base")])


def test_rows_may_change_and_structure_may_not() -> None:
    tree = tree_of(vehicle("morphy"))
    rows = np.repeat(np.array(tree.values)[:, None], 3, axis=1)
    changed = with_number(tree, rows, "bodies[2].mass", [0.01, 0.02, 0.03])
    assert changed[tree.row_names.index("bodies[2].mass")].tolist() == [0.01, 0.02, 0.03]
    assert (changed != rows).sum() == 3
    with pytest.raises(AirworthyError, match=r"bodies\[1\]\.mass is 0 by the structure of this vehicle"):
        with_number(tree, rows, "bodies[1].mass", 0.01)
    with pytest.raises(AirworthyError, match=r"Unknown number of the tree 'bodies\[2\]\.mas'"):
        with_number(tree, rows, "bodies[2].mas", 1.0)


def test_structural_zeros_vanish_from_the_code() -> None:
    """The arms of Morphy hang on hinges in one point, and carry points: counts of the specification, stops and torques more."""
    counts = {
        name: articulated_blocks(tree_of(vehicle(name)).structure)[0].operation_count for name in ("morphy_linear", "snakey")
    }
    assert counts["morphy_linear"] < 1.15 * 2823
    assert counts["snakey"] < 1.15 * 2350


UNKNOWN = {
    "has no joints": lambda: vehicle("carl"),
    "has drag, which is not simulated": lambda: replace(vehicle("morphy"), drag=Drag(linear=(0.1, 0.1, 0.1))),
    "drag or lift at its hubs": lambda: replace(small(), rotors=(replace(small().rotors[0], flapping=1e-6),)),
}


@pytest.mark.parametrize("message", UNKNOWN)
def test_what_is_not_simulated_with_joints_is_refused(message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        tree_of(UNKNOWN[message]())


@pytest.mark.parametrize("name", articulated_names())
def test_the_whole_at_bent_joints_is_that_of_the_frozen_record(name: str) -> None:
    """Canonical frames and traced functions beside plain poses of the record."""
    craft = vehicle(name)
    tree = tree_of(craft)
    q = np.random.default_rng(1).uniform(-0.4, 0.4, craft.joint_count)
    held, angles = frozen(craft, q), tuple(q)
    mass, center, inertia = composite(tree.structure, tree.model, angles)
    assert mass == pytest.approx(held.mass, rel=1e-12)
    np.testing.assert_allclose(center, np.subtract(held.center_of_mass, craft.links[0].center_of_mass), atol=1e-9)
    np.testing.assert_allclose(center_of_mass(tree.structure, tree.model, angles), center, atol=1e-15)
    full = np.array(
        [[inertia[0], inertia[3], inertia[4]], [inertia[3], inertia[1], inertia[5]], [inertia[4], inertia[5], inertia[2]]]
    )
    np.testing.assert_allclose(six_inertia(full), held.inertia, rtol=1e-8, atol=1e-11)
    matrix = np.array(effectiveness(tree.structure, tree.model, angles), float).T
    np.testing.assert_allclose(matrix, control_effectiveness(held), atol=1e-9)


def test_published_examples_of_effectiveness() -> None:
    """Figures of the specification, section 8.6, about the whole's centre of mass."""
    tree = tree_of(vehicle("morphy"))
    matrix = np.array(effectiveness(tree.structure, tree.model, (-0.2, 0.0) * 4), float).T
    for row, value in ((2, 0.9801), (3, 0.0818), (4, 0.0869), (5, 0.0109)):
        np.testing.assert_allclose(np.abs(matrix[row]), value, atol=6e-5)
    chain = tree_of(vehicle("snakey"))
    quarter = np.pi / 2
    square = np.array(effectiveness(chain.structure, chain.model, (quarter, 0.0) * 3), float).T
    np.testing.assert_allclose(square[3], [-0.5, 0.0, 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(square[4], [0.0, -0.5, 0.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(center_of_mass(chain.structure, chain.model, (quarter, 0.0) * 3), [0.0, 0.5, 0.0], atol=1e-9)
    zigzag = np.deg2rad([60.0, 0.0, -60.0, 0.0, 60.0, 0.0])
    for q, rank in (((quarter, 0.0) * 3, 4), ((0.0,) * 6, 3), (tuple(zigzag), 3)):
        assert np.linalg.matrix_rank(np.array(effectiveness(chain.structure, chain.model, q), float), tol=1e-9) == rank


def test_fastest_poles_are_those_of_the_specification() -> None:
    linear, arm = tree_of(vehicle("morphy_linear")), tree_of(vehicle("morphy"))
    assert fastest_pole(linear) == pytest.approx(698, rel=0.01)
    assert fastest_pole(arm, (-0.2017, 0.0) * 4) == pytest.approx(498, rel=0.01)
    assert fastest_pole(tree_of(vehicle("snakey"))) == pytest.approx(8900, rel=0.01)
    assert fastest_pole(tree_of(with_joints(vehicle("snakey"), armature=0.0))) == pytest.approx(80800, rel=0.01)
    assert (default_integrator(linear, 0.002), default_integrator(linear, 0.005)) == ("midpoint", "extrapolated")
    assert default_integrator(tree_of(vehicle("snakey")), 0.001) == "extrapolated"
    assert advised_step(linear) == pytest.approx(0.002)


def test_the_fastest_pole_is_that_at_the_stops_where_springs_stiffen() -> None:
    """The slope of the compliant arm's law grows away from its rest: most at a stop that is far."""
    for side, far in (("lower", -0.6), ("upper", 0.9)):
        tree = tree_of(with_joints(vehicle("morphy"), **{side: far}))
        assert fastest_pole(tree) == pytest.approx(fastest_pole(tree, [far] * 8), rel=1e-9)
        assert fastest_pole(tree) > 1.2 * fastest_pole(tree, [0.0] * 8)


def test_stops_give_a_milliradian_to_all_that_rotors_and_drives_can_press() -> None:
    """6 N at 0.25 m, their reaction torque of 0.06 N m, and the drive's 0.5 N m."""
    for drive, load in (({}, 6.0 * 0.25 + 0.06), ({"active": True, "effort": 0.5}, 6.0 * 0.25 + 0.06 + 0.5)):
        hinge = tree_of(star(2.0, lower=-0.5, upper=0.5, **drive)).model.hinges[0]
        assert hinge.stop == pytest.approx(load / 1e-3)


def test_an_explicit_step_too_long_is_refused_with_the_longest() -> None:
    with pytest.raises(AirworthyError, match=r"pole at 8899 1/s, too fast for rk4 at a step of 2 ms: take at most 0\.28 ms"):
        ArticulatedBatch(vehicle("snakey"), 1, integrator="rk4")
    with pytest.raises(AirworthyError, match="Unknown integrator 'rk5'"):
        ArticulatedBatch(without_stops("morphy"), 1, integrator="rk5")
    with pytest.raises(AirworthyError, match=r"dt is -1; expected a step"):
        ArticulatedBatch(without_stops("morphy"), 1, dt=-1)
