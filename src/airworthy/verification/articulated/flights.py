"""Vehicles with joints under control and in contact, orders of the integrators, worked examples of allocation, determinism.

Acceptance 3, 6, 8, 9 and 11 of the specification of articulated airframes (section 8), beside those of `articulated`. The
others take a machine of their own or a training: see `articulated_left_out`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.dynamics.articulated.composite import center_of_mass, effectiveness, momentum_and_energy
from airworthy.dynamics.articulated.impacts import meet_ground
from airworthy.dynamics.articulated.spheres import contact_spheres, sphere_reach
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.dynamics.contact import ground_frame
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, vehicle
from airworthy.verification.articulated.figures import conserved, endless
from airworthy.verification.published import Figure, below

__all__ = ["flight_figures"]


def flight_figures() -> Iterator[Figure]:
    """Run the checks one after the other."""
    yield from order_figures()
    yield from example_figures()
    yield from hover_figures()
    yield from impact_figures()
    yield determinism_figure()


# ---- Orders (acceptance 3) ---------------------------------------------------------------------------------------------------

ORDERS = {"semi_implicit": 1, "midpoint": 2, "extrapolated": 2, "rk4": 4}
"""Of the integrators."""


def order_figures() -> Iterator[Figure]:
    """Halve the step of a free flight: the drift of energy falls by two to the power of the integrator's order."""
    morphy = endless("morphy_linear", kp=0.0, kd=0.0, law="torque")
    chain = endless("snakey", kd=0.0, law="torque", active=False)
    for craft in (morphy, chain):
        for integrator, order in ORDERS.items():
            coarse, fine = (conserved(craft, 0.2, dt, integrator)[0] for dt in (0.004, 0.002))
            ratio, wanted = coarse / fine, 2.0**order
            name = f"{craft.name}: {integrator}, drift of energy over that at half the step"
            # The next term of the error is a step's share of it: some percent here.
            yield Figure(name, ratio, f"{wanted:g} within 5 %", abs(ratio / wanted - 1.0) <= 0.05)


# ---- Worked examples of allocation (acceptance 6) ---------------------------------------------------------------------------


def example_figures() -> Iterator[Figure]:
    """Compare effectiveness about the centre of mass with the specification's examples."""
    bent = _about_center(vehicle("morphy"), (-0.2, 0.0) * 4)
    found = np.sort(np.abs(bent), axis=1)
    wanted = np.repeat([[0.9801], [0.0818], [0.0869], [0.0109]], 4, axis=1)
    gap = float(np.abs(found - wanted).max())
    yield below("morphy, arms at -0.2 rad: force and moments of a newton of each rotor", gap, 1e-4)
    square = _about_center(vehicle("snakey"), (np.pi / 2, 0.0) * 3)
    moments = np.array([[-0.5, 0.0, 0.5, 0.0], [0.0, -0.5, 0.0, 0.5]])
    gap = float(np.abs(square[1:3] - moments).max())
    yield below("snakey as a square: moments about x and y of a newton of each rotor", gap, 1e-9)
    for what, angles in (("straight", (0.0,) * 6), ("as a zigzag", tuple(np.radians((60.0, 0.0, -60.0, 0.0, 60.0, 0.0))))):
        rank = float(np.linalg.matrix_rank(_about_center(vehicle("snakey"), angles), 1e-6))
        yield Figure(f"snakey {what}: rank of the effectiveness, as its motors lie on one line", rank, "3", rank == 3.0)


def _about_center(craft: Vehicle, q: tuple[float, ...]) -> Array:
    """Rows fz, Mx, My, Mz about the centre of mass, (4, rotors)."""
    tree = tree_of(craft)
    center = tuple(float(x) for x in center_of_mass(tree.structure, tree.model, q))
    return np.array(effectiveness(tree.structure, tree.model, q, center), float).T[2:]


# ---- Hover (acceptance 8) ----------------------------------------------------------------------------------------------------


_SEEN = (0.01, 0.05)
"""Standard deviations of what a law is told of place [m] and velocity [m/s], anew at each of 100 commands a second."""


def hover_figures() -> Iterator[Figure]:
    """Hold a chain while it changes shape, and Morphy from perturbed starts, by the built-in law.

    It is told the truth, or what sensors make of it: it reads place and velocity as differences from what is commanded, so that
    noise of the one is noise of the other. That of an inertial sensor would change nothing: only the rate loop reads it.
    """
    for seen, what, most in (((0.0, 0.0), "", 0.05), (_SEEN, ", told its place to 1 cm, its velocity to 5 cm/s", 0.1)):
        away = _morphed(seen)
        yield below(
            f"snakey closes from 90 to 55 degrees and opens in 12 s{what}, centre of mass off its place", away, most, "m"
        )
    for seen, what, most in (((0.0, 0.0), "", 0.01), (_SEEN, ", told its place to 1 cm, its velocity to 5 cm/s", 0.1)):
        yield below(f"morphy from 0.5 m and 1 rad/s per axis, last 2 of 6 s{what}, off its place", _settled(seen), most, "m")


def _told(place: Array, seen: tuple[float, float], rng: np.random.Generator) -> Array:
    """Return commands of the level "tracking" (env, 14) to rest at places (env, 3), less the noise of what is seen."""
    command = np.zeros((len(place), 14))
    command[:, :3] = place + seen[0] * rng.normal(size=place.shape)
    command[:, 3:6] = seen[1] * rng.normal(size=place.shape)
    return command


def _settled(seen: tuple[float, float]) -> float:
    """Greatest distance of four Morphys from their places in the last 2 of 6 s [m]."""
    made = SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint", level="tracking")
    arms = Simulator(vehicle("morphy"), made, 4)
    rng = np.random.default_rng(2)
    arms.reset(position=rng.uniform(-0.5, 0.5, (4, 3)), rate=rng.uniform(-1.0, 1.0, (4, 3)))
    worst = 0.0
    for k in range(600):
        arms.step(_told(np.zeros((4, 3)), seen, rng))
        worst = max(worst, float(np.linalg.norm(arms.center, axis=1).max()) if k >= 400 else 0.0)
    return worst


def _morphed(seen: tuple[float, float]) -> float:
    """Greatest distance of a chain's centre of mass from its place while it closes and opens [m]."""
    made = SimulatorConfig(
        dynamics="articulated", physics_rate=500.0, integrator="extrapolated", level="tracking", disturbance=False
    )
    chain = Simulator(vehicle("snakey"), made, 1)
    place, worst, rng = chain.center.astype(float), 0.0, np.random.default_rng(3)
    for k in range(1200):
        share = 2.0 * np.pi * 0.01 * k / 12.0
        angle, rate = np.full(6, np.nan), np.full(6, np.nan)
        angle[::2] = np.pi / 2 - np.radians(35.0) * (1.0 - np.cos(share)) / 2.0
        rate[::2] = -np.radians(35.0) * np.sin(share) * np.pi / 12.0
        chain.set_joint_command(angle=angle, rate=rate)
        chain.step(_told(place, seen, rng))
        worst = max(worst, float(np.linalg.norm(chain.center - place)))
    return worst


# ---- Contact (acceptance 9) and determinism (acceptance 11) ------------------------------------------------------------------


def impact_figures(count: int = 100) -> Iterator[Figure]:
    """Let random links hit a floor: energy after, with what lifting costs, over that before.

    Args:
        count: Impacts of each vehicle.
    """
    for name in ("morphy", "snakey"):
        craft = vehicle(name)
        tree, rng = tree_of(craft), np.random.default_rng(3)
        structure, n, found = tree.structure, tree.structure.joint_count, contact_spheres(craft, tree)
        turn = rng.normal(size=(4, count))
        motion = (
            rng.uniform(-0.5, 0.3, count) * sphere_reach(tree, found), tuple(rng.normal(size=(3, count)) * 2.0),
            tuple(turn / np.linalg.norm(turn, axis=0)), tuple(rng.normal(size=(3, count)) * 3.0),
            tuple(rng.uniform(-0.5, 0.5, (n, count))), tuple(rng.normal(size=(n, count)) * 3.0),
        )  # fmt: skip
        p = SimpleNamespace(sphere=tuple(k for _, k in found), ground_height=0.0, friction=0.6, restitution=1.0)
        impact = meet_ground(structure, tree.model, p, tuple(body for body, _ in found), motion, 0.002, 0.5)
        before = np.stack([*ground_frame(motion[1], motion[2])[1], *motion[3], *motion[5]])

        def energy(u: Array, tree: Any = tree, q: Any = motion[4]) -> Array:
            return np.asarray(momentum_and_energy(tree.structure, tree.model, q, tuple(u[6:]), tuple(u[:3]), tuple(u[3:6]))[2])

        after = energy(before + impact.change) + craft.mass * craft.gravity * impact.moved[2]
        gain = float((after / energy(before) - 1.0)[impact.met].max())
        name = f"{name}: {int(impact.met.sum())} impacts on a floor with full rebound, greatest gain of energy, relative"
        yield below(name, max(gain, 0.0), 1e-9)


ROUNDED = ("position", "position_residual", "stop")
"""Fields that launches write by themselves."""


def determinism_figure() -> Figure:
    """Fly environments with parameters of their own together, in another order and in pieces: bits that differ."""
    craft, count = endless("morphy_linear"), 20
    rows = ArticulatedBatch(craft, count).rows * np.random.default_rng(0).uniform(0.95, 1.05, (1, count))
    rates = np.random.default_rng(1).normal(size=(count, 3))
    thrust = np.full(4, craft.mass * craft.gravity / 4.0)

    # What a launch rounds at its end, the position to its sum and residual, depends on where launches are cut, and is left out.
    def flown(order: ArrayIndex, parts: tuple[int, ...]) -> Array:
        batch = ArticulatedBatch(craft, len(order), 0.002, "midpoint", rows=rows[:, order])
        batch.reset(rate=rates[order], rotor_speed=thrust)
        for part in parts:
            batch.advance(part, thrust)
        return np.concatenate([batch.field(name) for name in batch.layout.fields if name not in ROUNDED], axis=1)

    whole = flown(np.arange(count), (60,))
    order = np.arange(count)[::-1]
    others = (flown(order, (60,))[::-1], flown(np.arange(count), (7, 20, 33)))
    alone = flown(np.array([13]), (60,))[0]
    differ = sum(int(np.count_nonzero(whole.view(np.uint32) != other.copy().view(np.uint32))) for other in others)
    differ += int(np.count_nonzero(whole[13].view(np.uint32) != alone.copy().view(np.uint32)))
    name = "morphy_linear: alone, in another order, in launches cut elsewhere, numbers with other bits"
    return Figure(name, float(differ), "0", differ == 0)
