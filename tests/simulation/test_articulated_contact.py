"""Contact of vehicles with joints: impulses through the tree take energy, and add none; links rest on the ground."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small, with_joints, without_stops

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated import contact
from airworthy.dynamics.articulated.composite import momentum_and_energy
from airworthy.dynamics.articulated.impacts import meet_ground
from airworthy.dynamics.articulated.spheres import contact_spheres, sphere_reach
from airworthy.dynamics.articulated.stiffness import joint_response
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.dynamics.contact import ground_frame
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import Vehicle, vehicle
from airworthy.vehicles.record import LinkShape


def full(lower: Any, pivots: Any) -> Array:
    """H of its factors, one environment."""
    n = len(pivots)
    matrix = np.eye(n)
    matrix[np.tril_indices(n, -1)] = np.array(lower, float).ravel()
    return np.asarray(matrix @ np.diag(1.0 / np.array(pivots, float).ravel()) @ matrix.T)


def spheres(craft: Vehicle) -> tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]:
    found = contact_spheres(craft, tree_of(craft))
    return tuple(body for body, _ in found), tuple(sphere for _, sphere in found)


@pytest.mark.parametrize("name", ["morphy", "snakey"])
def test_the_inertia_matrix_is_that_of_the_energy(name: str) -> None:
    tree = tree_of(vehicle(name))
    structure, rng = tree.structure, np.random.default_rng(0)
    q, u = tuple(rng.uniform(-0.5, 0.5, structure.joint_count)), rng.normal(size=6 + structure.joint_count)
    carriers, places = spheres(vehicle(name))
    lower, pivots, *_ = contact.contact_tree(structure, tree.model, q, places, carriers)
    matrix = full(lower, pivots)
    linear, _, energy = momentum_and_energy(structure, tree.model, q, tuple(u[6:]), tuple(u[:3]), tuple(u[3:6]))
    assert 0.5 * u @ matrix @ u == pytest.approx(float(energy), rel=1e-9)
    np.testing.assert_allclose((matrix @ u)[:3], np.array(linear, float), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.linalg.inv(matrix)[6:, 6:], joint_response(tree, q), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["morphy", "snakey", "snakey6"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_contact_never_adds_energy(name: str, restitution: float) -> None:
    """Source: spec/articulated 8.9: over 100 random impacts of links on a floor; here with what lifting costs, too."""
    craft, count = vehicle(name), 100
    tree, rng = tree_of(craft), np.random.default_rng(3)
    structure, n = tree.structure, tree.structure.joint_count
    carriers, places = spheres(craft)
    turn = rng.normal(size=(4, count))
    turn /= np.linalg.norm(turn, axis=0)
    motion = (
        rng.uniform(-0.5, 0.8, count) * sphere_reach(tree, tuple(zip(carriers, places, strict=True))),
        tuple(rng.normal(size=(3, count)) * 2.0), tuple(turn), tuple(rng.normal(size=(3, count)) * 3.0),
        tuple(rng.uniform(-0.5, 0.5, (n, count))), tuple(rng.normal(size=(n, count)) * 3.0),
    )  # fmt: skip
    p = SimpleNamespace(sphere=places, ground_height=0.0, friction=0.6, restitution=restitution)
    found = meet_ground(structure, tree.model, p, carriers, motion, 0.002, 0.5)
    met, change, raised, approach = found.met, found.change, found.moved[2], found.approach
    assert 20 < met.sum() <= count
    start = ground_frame(motion[1], motion[2])[1]
    before = np.stack([*start, *motion[3], *motion[5]])
    after = before + change

    def energy(u: Array) -> Array:
        found = momentum_and_energy(structure, tree.model, motion[4], tuple(u[6:]), tuple(u[:3]), tuple(u[3:6]))
        return np.asarray(found[2])

    weight = craft.mass * craft.gravity
    assert np.all(energy(after) + weight * raised <= energy(before) * (1.0 + 1e-9))
    assert not change[:, ~met].any()
    hit = met & (approach > 0.5)
    assert np.all(energy(after)[hit] < energy(before)[hit]) or restitution == 1.0
    assert raised.max() > 0.0


def falling(craft: Vehicle, integrator: str, **ground: Any) -> tuple[Simulator, Array]:
    made = SimulatorConfig(
        dynamics="articulated", physics_rate=1000.0, integrator=integrator, ground=Ground(**ground), disturbance=False
    )  # type: ignore[arg-type]
    simulator = Simulator(craft, made, 8)
    rng = np.random.default_rng(1)
    simulator.reset(
        position=np.stack([np.zeros(8), np.zeros(8), np.full(8, 0.35)], axis=1), attitude=rng.normal(size=(8, 4)),
        rotor_speed=np.zeros(craft.rotor_count),
    )  # fmt: skip
    tree = tree_of(craft)
    energies = []
    for _ in range(60):
        simulator.advance(25, np.zeros(craft.rotor_count))
        center, drift = simulator.center.astype(float), simulator.field("velocity").astype(float)
        turn = simulator.attitude.astype(float).T
        body = ground_frame(tuple(drift.T), tuple(turn))[1]
        fields = [simulator.field(name).astype(float).T for name in ("joint", "joint_rate", "rate")]
        moving = momentum_and_energy(tree.structure, tree.model, tuple(fields[0]), tuple(fields[1]), body, tuple(fields[2]))[2]
        energies.append(np.asarray(moving) + craft.mass * craft.gravity * center[:, 2])
    return simulator, np.array(energies)


@pytest.mark.parametrize("integrator", ["semi_implicit", "midpoint"])
def test_a_vehicle_with_a_loose_arm_falls_and_comes_to_rest(integrator: str) -> None:
    loose = with_joints(small(), kp=0.0, kd=1e-4)
    arm = replace(loose.links[1], shapes=(LinkShape("sphere", (0.03, 0.03, 0.03), (0.06, 0.01, -0.02)),))
    base = replace(loose.links[0], shapes=(LinkShape("box", (0.12, 0.03, 0.03)),))
    craft = replace(loose, links=(base, arm))
    simulator, energies = falling(craft, integrator, restitution=0.4)
    assert simulator.shape.carriers == (0, 0, 0, 1)
    # Of some 1 J. Free flight is not exact: a first-order step turns a tumbling arm by a little too much or too little.
    assert np.diff(energies, axis=0).max() < (1e-3 if integrator == "semi_implicit" else 1e-4)
    assert energies[-1].max() < 0.5 * energies[0].min()
    assert simulator.field("contact").any()
    assert not simulator.diverged.any()
    lowest = simulator.position[:, 2]
    assert np.all(lowest > 0.02)
    assert np.abs(simulator.velocity).max() < 0.2


def test_the_step_meets_the_ground_as_its_twin() -> None:
    made = SimulatorConfig(
        dynamics="articulated", physics_rate=500.0, integrator="midpoint", ground=Ground(restitution=0.3), imu=Imu(link="arm")
    )
    simulator = Simulator(small(), made, 4)
    simulator.reset(
        position=[0.0, 0.0, 0.16], velocity=[0.3, 0.0, -1.5], attitude=np.random.default_rng(0).normal(size=(4, 4)),
        rotor_speed=[0.0], joint_rate=[1.0],
    )  # fmt: skip
    twin = JointedTwin(simulator)
    simulator.advance(12, [0.0])
    twin.advance(12, [0.0])
    bounds = {"position": 2e-6, "velocity": 1e-4, "rate": 2e-3, "joint": 1e-5, "joint_rate": 2e-3, "imu": 0.1}
    for name, bound in bounds.items():
        np.testing.assert_allclose(simulator.field(name), twin.field(name), atol=bound, err_msg=name)
    assert simulator.field("contact").min() >= 1.0
    assert simulator.field("impact_speed").max() > 1.0


def test_a_flight_above_the_ground_keeps_its_bits() -> None:
    def flown(ground: Ground | None) -> bytes:
        simulator = Simulator(small(), SimulatorConfig(dynamics="articulated", integrator="midpoint", ground=ground), 20)
        simulator.reset(position=np.stack([np.zeros(20), np.zeros(20), np.linspace(0.05, 5.0, 20)], axis=1))
        simulator.advance(20, [1.0])
        return simulator.field("position")[10:].tobytes() + simulator.field("joint_rate")[10:].tobytes()

    assert flown(None) == flown(Ground())


def test_spheres_of_links() -> None:
    craft = vehicle("snakey")
    carriers, places = spheres(craft)
    assert carriers == (0, 0, 0, 2, 2, 2, 4, 4, 4, 6, 6, 6)
    assert [round(place[3], 6) for place in places] == [0.02] * 12
    # From the middle of a link of 0.9 m, two centimetres before its ends.
    assert sorted(abs(x) for x in np.array(places)[0, :3].tolist())[-1] == pytest.approx(0.43)
    assert sphere_reach(tree_of(craft), tuple(zip(carriers, places, strict=True))) > 3.4
    bare = without_stops("morphy")
    bare = replace(bare, links=tuple(replace(link, shapes=()) for link in bare.links))
    assert spheres(bare)[0] == (0,)
    other = replace(craft, links=tuple(replace(link, shapes=link.shapes[:0]) for link in craft.links))
    with pytest.raises(AirworthyError, match="other spheres"):
        Simulator([craft, other], SimulatorConfig(dynamics="articulated", integrator="extrapolated"), 2)
