"""Vehicles with joints: accelerations and flights beside MuJoCo, what is conserved, published values, integrators and stops.

Acceptance 1 to 7 and 9 of the specification of articulated airframes (section 8), on bare physics without a controller; what
needs a controller, and more, stands in `articulated_flights`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import data_dir, read_json
from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.dynamics.articulated.composite import center_of_mass, effectiveness, momentum_and_energy
from airworthy.dynamics.articulated.equations import accelerations, kinematics, rotor_loads, velocities
from airworthy.dynamics.articulated.laws import Torque
from airworthy.dynamics.articulated.step import to_world
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.dynamics.articulated.twin import ArticulatedTwin, JointedMotion
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Joint, RotorResponse, Vehicle, frozen, vehicle
from airworthy.verification.articulated.mujoco_model import has_mujoco, mujoco_model
from airworthy.verification.published import Figure, below, within

__all__ = ["articulated_figures", "articulated_left_out"]

ZERO = (0.0, 0.0, 0.0)


def articulated_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; those beside MuJoCo without it are left out.

    Args:
        everything: Flights beside MuJoCo and in free fall for their whole two seconds instead of a tenth of it.
    """
    seconds = 2.0 if everything else 0.2
    if has_mujoco():
        yield from acceleration_figures()
        yield from trajectory_figures(seconds)
    yield from conservation_figures(seconds)
    yield from integrator_figures()
    yield from identification_figures()
    yield from published_allocation()
    yield rigid_figure()
    yield from stop_figures()
    from airworthy.verification.articulated.flights import flight_figures  # which is built on this

    yield from flight_figures()


def articulated_left_out() -> list[str]:
    """Return what cannot be measured here, in sentences."""
    speed = (
        "Speed of vehicles with joints beside MuJoCo (acceptance 10) is measured by python benchmarks/articulated.py, and what"
        " policies of them learn (acceptance 12) by airworthy train morphy_hover and chain_hover: neither fits into a minute."
    )
    missing = "The package mujoco is not installed: comparisons of vehicles with joints were left out."
    return [speed] if has_mujoco() else [missing, speed]


def joints_changed(craft: Vehicle, **changes: Any) -> Vehicle:
    """Return a vehicle with something of all its joints changed.

    Args:
        craft: With joints.
        changes: Fields of `Joint`.
    """
    return replace(craft, links=tuple(replace(k, joint=k.joint and replace(k.joint, **changes)) for k in craft.links))


def endless(name: str, **changes: Any) -> Vehicle:
    """Return a catalogue vehicle without stops, and something of its joints changed.

    Args:
        name: Of the vehicle.
        changes: Fields of `Joint`.
    """
    return joints_changed(vehicle(name), lower=None, upper=None, **changes)


# ---- Beside MuJoCo ----------------------------------------------------------------------------------------------------------


def acceleration_figures(count: int = 200) -> Iterator[Figure]:
    """Compare accelerations in random states, with rotor forces, joint torques and gravity.

    Args:
        count: States of each vehicle.
    """
    # 1e-6 is eight roundings of float32; a chain's roll joint has little inertia beside metres of lever.
    for name, bound, rough in (("morphy_linear", 1e-7, 1e-6), ("snakey", 1e-9, 2.5e-5), ("snakey6", 1e-9, 2.5e-5)):
        craft = vehicle(name)
        tree, state = tree_of(craft), _states(craft, count)
        ours, theirs = _accelerations(tree, state, np.float64), _mujoco_accelerations(craft, state)
        near = {key: value.astype(np.float32).astype(float) for key, value in state.items()}
        single, double = _accelerations(tree, near, np.float32), _accelerations(tree, near, np.float64, rounded=True)
        yield below(f"{name}: accelerations against MuJoCo, {count} states, relative", _relative(ours, theirs), bound)
        yield below(f"{name}: accelerations in float32 against float64, relative", _relative(single, double), rough)


def _relative(found: Array, wanted: Array) -> float:
    return float((np.abs(found - wanted).max(axis=0) / np.abs(wanted).max(axis=0)).max())


def _states(craft: Vehicle, count: int) -> dict[str, Array]:
    rng, n = np.random.default_rng(0), craft.joint_count
    attitude = rng.normal(size=(4, count))
    wide = 0.3 if n == 8 else 1.5
    return {
        "attitude": attitude / np.linalg.norm(attitude, axis=0),
        "velocity": rng.normal(size=(3, count)) * 3.0,
        "rate": rng.normal(size=(3, count)) * 3.0,
        "joint": rng.uniform(-wide, wide, (n, count)),
        "joint_rate": rng.normal(size=(n, count)) * 5.0,
        "torque": rng.normal(size=(n, count)) * 0.02,
        "thrust": rng.uniform(0.0, 2.0, (craft.rotor_count, count)),
    }


def _accelerations(tree: JointTree, state: dict[str, Array], kind: type, rounded: bool = False) -> Array:
    """World acceleration of the root, its angular one, and the joints', stacked, (6 + joints, states)."""
    given = {name: tuple(value.astype(kind)) for name, value in state.items()}
    # The same numbers in both kinds: what is compared is the arithmetic.
    values = np.array(tree.values, np.float32).astype(kind) if kind is np.float32 or rounded else np.array(tree.values)
    structure, model = tree.structure, tree.structure.model(lambda row: values[row])
    frames = kinematics(structure, model, given["joint"])
    turning, _ = velocities(structure, frames, ZERO, given["rate"], given["joint_rate"])
    loads = rotor_loads(structure, model, frames, turning, given["thrust"], (0.0,) * structure.rotor_count)
    acting = [Torque(t, 0.0, hinge.armature) for t, hinge in zip(given["torque"], model.hinges, strict=True)]
    found = accelerations(structure, model, frames, given["rate"], given["joint_rate"], acting, loads)
    world = list(to_world(given["attitude"], found.specific[0]))
    world[2] = world[2] - kind(tree.model.gravity)
    return np.stack([*world, *found.angular[0], *found.joint]).astype(float)


def _mujoco_accelerations(craft: Vehicle, state: dict[str, Array]) -> Array:
    import mujoco

    model = mujoco_model(craft, 0.001, "RK4", passive=False)
    data = mujoco.MjData(model)
    found = []
    for k in range(state["rate"].shape[1]):
        data.qpos[:] = np.r_[ZERO, state["attitude"][[3, 0, 1, 2], k], state["joint"][:, k]]
        data.qvel[:] = np.r_[state["velocity"][:, k], state["rate"][:, k], state["joint_rate"][:, k]]
        data.ctrl[:], data.qfrc_applied[6:] = state["thrust"][:, k], state["torque"][:, k]
        mujoco.mj_forward(model, data)
        found.append(data.qacc.copy())
    return np.array(found).T


SHORT = 0.2
"""Flight over which positions are compared with MuJoCo's [s]."""


def trajectory_figures(seconds: float) -> Iterator[Figure]:
    """Compare flights under held thrust with MuJoCo's Runge-Kutta steps, both of 1 ms.

    Args:
        seconds: Of flight.
    """
    import mujoco

    chain = endless("snakey", kd=0.02, active=False)
    # MuJoCo turns a base's quaternion to second order only (halving its step divides the error of a tumbling body's attitude
    # by 4, of its rate by 16): where the base is follows its attitude, and is compared over a short time only.
    for craft, spread in ((endless("morphy_linear"), 0.1), (chain, 0.5)):
        tree, rng = tree_of(craft), np.random.default_rng(0)
        q = rng.uniform(-spread, spread, craft.joint_count)
        hover = craft.mass * craft.gravity / craft.rotor_count
        thrust = np.full(craft.rotor_count, hover)
        model = mujoco_model(craft, 0.001, "RK4")
        data = mujoco.MjData(model)
        data.qpos[:], data.ctrl[:] = np.r_[ZERO, 1.0, ZERO, q], thrust
        twin, steps = ArticulatedTwin(tree, single=True), round(seconds * 1000)
        state = twin.start(joint=q, rotor=thrust)
        place, short = 0.0, round(1000 * min(seconds, SHORT))
        for k in range(steps):
            mujoco.mj_step(model, data)
            state = twin.step(state, thrust, np.zeros(craft.joint_count), 0.001, "rk4")
            if k < short:
                place = max(place, float(np.abs(state.position[:, 0] - data.qpos[:3]).max()))
        angle = float(np.abs(state.joint[:, 0] - data.qpos[7:]).max())
        yield below(f"{craft.name}: {short / 1000:g} s of flight against MuJoCo's RK4, position", place, 1e-8, "m")
        yield below(f"{craft.name}: {seconds:g} s of flight against MuJoCo's RK4, joints", angle, 1e-9, "rad")


# ---- What is conserved ------------------------------------------------------------------------------------------------------


def conservation_figures(seconds: float) -> Iterator[Figure]:
    """Follow energy and momentum in free flight without damping: RK4, 1 ms.

    Args:
        seconds: Of flight.
    """
    morphy = endless("morphy_linear", kp=0.0, kd=0.0, law="torque")
    chain = endless("snakey", kd=0.0, law="torque", active=False)
    for craft, bound in ((morphy, 1e-5), (chain, 1e-7)):
        drift, linear, angular = conserved(craft, seconds, 0.001)
        yield below(f"{craft.name}: free flight of {seconds:g} s, drift of energy", drift, bound, "J")
        yield below(f"{craft.name}: free flight of {seconds:g} s, linear momentum", linear, 1e-8, "N s")
        yield below(f"{craft.name}: free flight of {seconds:g} s, angular momentum", angular, 1e-8, "N m s")


def conserved(craft: Vehicle, seconds: float, dt: float, integrator: str = "rk4") -> tuple[float, float, float]:
    """Return drifts of energy [J], linear [N s] and angular momentum [N m s] in a fall without thrust and springs.

    Args:
        craft: Without damping.
        seconds: Of flight.
        dt: Step [s].
        integrator: Its name.
    """
    tree, rng = tree_of(craft), np.random.default_rng(1)
    twin, n = ArticulatedTwin(tree, single=True), craft.joint_count
    turning, swinging = (3.0, 5.0) if n == 8 else (0.3, 1.0)
    state = twin.start(
        velocity=rng.normal(size=3),
        rate=rng.normal(size=3) * turning,
        joint=rng.uniform(-0.1, 0.1, n),
        joint_rate=rng.normal(size=n) * swinging,
    )
    first = _quantities(tree, state)
    steps = round(seconds / dt)
    for _ in range(steps):
        state = twin.step(state, np.zeros(craft.rotor_count), np.zeros(n), dt, integrator)
    last = _quantities(tree, state)
    fall = craft.mass * craft.gravity * steps * dt
    return (
        abs(last[2] - first[2]),
        float(np.abs(last[0] - first[0] + np.array([0.0, 0.0, fall])).max()),
        float(np.abs(last[1] - first[1]).max()),
    )


def _quantities(tree: JointTree, state: JointedMotion) -> tuple[Array, Array, float]:
    """Momenta in world axes and total energy."""
    attitude = tuple(state.attitude[:, 0])
    back = (-attitude[0], -attitude[1], -attitude[2], attitude[3])
    velocity = to_world(back, tuple(state.velocity[:, 0]))
    q, qd = tuple(state.joint[:, 0]), tuple(state.joint_rate[:, 0])
    linear, angular, energy = momentum_and_energy(tree.structure, tree.model, q, qd, velocity, tuple(state.rate[:, 0]))
    center = to_world(attitude, center_of_mass(tree.structure, tree.model, q))
    mass = sum(body.mass for body in tree.model.bodies)
    height = float(state.position[2, 0] + center[2])
    return (
        np.array(to_world(attitude, linear)),
        np.array(to_world(attitude, angular)),
        float(energy + mass * tree.model.gravity * height),
    )


# ---- Integrators ------------------------------------------------------------------------------------------------------------

PUBLISHED = {
    ("morphy_linear", 0.002): {"semi_implicit": 2.8, "midpoint": 0.040, "extrapolated": 0.044},
    ("morphy_linear", 0.01): {"semi_implicit": 14.0, "midpoint": 1.1, "extrapolated": 1.0},
}
"""Largest error of position after 0.5 s of random motor steps at 50 Hz [mm]: a prototype's, in double precision."""


def integrator_figures() -> Iterator[Figure]:
    """Measure errors of the native step against its own with an eighth of a millisecond."""
    craft = endless("morphy_linear")
    # The prototype's rotors follow within 20 ms up and down alike.
    lag = RotorResponse.first_order(0.02)
    craft = replace(craft, rotors=tuple(replace(rotor, response=lag) for rotor in craft.rotors))
    wanted = _random_flight(craft, "midpoint", 1.25e-4)
    for (_, dt), errors in PUBLISHED.items():
        for integrator, error in errors.items():
            found = 1e3 * float(np.abs(_random_flight(craft, integrator, dt)["position"] - wanted["position"]).max())
            name = f"morphy_linear: {integrator} at {1e3 * dt:g} ms, position after 0.5 s"
            yield Figure(name, found, f"at most twice {error:g}", found <= 2.0 * error, "mm")
    servo = endless("snakey")
    apart = (
        _random_flight(servo, "extrapolated", 0.01)["joint_rate"] - _random_flight(servo, "extrapolated", 1.25e-4)["joint_rate"]
    )
    yield below("snakey: servos at 10 ms do not ring, joint rate after 0.5 s", float(np.abs(apart).max()), 2e-3, "rad/s")


def _random_flight(craft: Vehicle, integrator: str, dt: float) -> dict[str, Array]:
    rng, count, hover = np.random.default_rng(0), 4, craft.mass * craft.gravity / craft.rotor_count
    chain = craft.joint_count != 8
    batch = ArticulatedBatch(craft, count, dt, integrator)
    wide = np.array([1.2, 0.1] * 3) * rng.uniform(0.7, 1.3, (count, 6)) if chain else rng.uniform(-0.1, 0.1, (count, 8))
    batch.reset(joint=wide, rotor_speed=np.full(craft.rotor_count, hover))
    commands = hover * rng.uniform(0.8, 1.2, (25, count, craft.rotor_count))
    targets = rng.uniform(-0.6, 0.6, (3, count, craft.joint_count))
    for k, command in enumerate(commands):
        if chain and k % 10 == 0:
            batch.target(targets[k // 10])
        batch.advance(round(0.02 / dt), command)
    return {name: batch.field(name).astype(float) for name in ("position", "joint_rate")}


# ---- Published values -------------------------------------------------------------------------------------------------------

RELEASE = {10: 0.285884, 20: 0.279695, 50: 0.263062, 100: 0.242153, 500: 0.178547}
"""Angle [rad] of an arm released from 0.29 rad on a fixed base, by milliseconds."""


def identification_figures() -> Iterator[Figure]:
    """Release the arms of a fixed base, and let the arms bend in hover."""
    craft, worst, now = vehicle("morphy_fixed_base"), 0.0, 0
    # The closed form is that of one hinge: lateral ones are held by stiff springs.
    links = tuple(replace(k, joint=_lateral(k.joint)) if k.mass and k.joint else k for k in craft.links)
    batch = ArticulatedBatch(replace(craft, links=links), 1, 0.001, "rk4")
    batch.reset(joint=(0.29, 0.0) * 4)
    for after, wanted in RELEASE.items():
        batch.advance(after - now, np.zeros(4))
        now = after
        worst = max(worst, float(np.abs(batch.field("joint")[0, ::2] - wanted).max()))
    yield below("morphy_fixed_base: arms released from 0.29 rad, angles at 10 to 500 ms", worst, 1e-5, "rad")
    hover = joints_changed(vehicle("morphy_mixed"), lower=None, upper=None)
    flight = ArticulatedBatch(hover, 1, 0.002, "midpoint")
    thrust = np.full(4, hover.mass * hover.gravity / 4.0)
    flight.reset(rotor_speed=thrust)
    flight.advance(1000, thrust)
    bend = float(flight.field("joint")[0, ::2].mean())
    # Its own closed form: rest - sqrt(T L / (m L^2 k)), of an arm whose law holds its weight.
    wanted = math.radians(7.2) - math.sqrt(thrust[0] * 0.07 / (0.01625 * 0.07**2 * 5834.0))
    name = "morphy_mixed: bend of the arms in hover"
    yield Figure(name, bend, f"{wanted:.4f} within 0.01", abs(bend - wanted) <= 0.01, "rad")


def _lateral(joint: Joint | None) -> Joint | None:
    return joint and replace(joint, law="spring", kp=1.0, kd=0.02, rest=0.0, weight=0.0)


def published_allocation() -> Iterator[Figure]:
    """Compare the effectiveness at neutral about the root's origin with that of the URDFs, where the reference files are."""
    data = data_dir()
    if data is None:
        return
    robots = read_json(data / "aerial_gym" / "robots.json", 16 * 1024 * 1024)["robots"]
    for name in ("morphy", "snakey", "snakey5", "snakey6"):
        craft = vehicle(name)
        tree, derived = tree_of(craft), robots[name]["derived"]
        about = tuple(-x for x in craft.links[0].center_of_mass)
        found = np.array(effectiveness(tree.structure, tree.model, (0.0,) * craft.joint_count, about), float).T
        gap = float(np.abs(found - derived["effectiveness_from_urdf"]["matrix"]).max())
        yield below(f"{name}: effectiveness at neutral against the published geometry", gap, 5e-7)
        yield within(f"{name}: mass", craft.mass, derived["total_mass"], 1e-8, "kg")


def rigid_figure() -> Figure:
    """Fly a vehicle whose joints are locked beside the rigid one that it then is."""
    craft = endless("morphy_linear", kp=1e6, kd=100.0)
    held = replace(frozen(craft), motor_state="thrust")
    thrust = craft.mass * craft.gravity / 4.0 * np.array([1.02, 0.99, 1.0, 1.01])
    config = SimulatorConfig(physics_rate=1000.0, control_rate=100.0, integrator="rk4")
    rigid = Simulator(replace(held, disturbance=replace(held.disturbance, probability=0.0)), config)
    rigid.reset(rotor_speed=thrust)
    batch = ArticulatedBatch(craft, 1, 0.001, "extrapolated")
    batch.reset(rotor_speed=thrust)
    for _ in range(200):
        rigid.step(thrust)
        batch.advance(10, thrust)
    apart = float(np.abs(batch.field("position")[0] - rigid.position[0]).max())
    return below("morphy_linear with locked joints against the rigid family, 2 s, position", 1e3 * apart, 1.0, "mm")


def stop_figures() -> Iterator[Figure]:
    """Press Morphy's arms into their stops with full thrust for 0.2 s."""
    craft = vehicle("morphy_linear")
    limits = np.array([link.joint.upper for link in craft.links if link.joint is not None], float)
    for integrator in ("semi_implicit", "midpoint", "extrapolated"):
        batch, worst, restless = ArticulatedBatch(craft, 1, 0.002, integrator), 0.0, 0.0
        for k in range(100):
            batch.advance(1, np.full(4, 2.0))
            worst = max(worst, float((np.abs(batch.field("joint")[0]) - limits).max()))
            if k >= 75:
                restless = max(restless, float(np.abs(batch.field("joint_rate")).max()))
        yield below(f"morphy_linear: full thrust into the stops, {integrator} at 2 ms, overshoot", 1e3 * worst, 1.0, "mrad")
        yield below(f"morphy_linear: at rest on the stops, {integrator} at 2 ms, joint rate", restless, 0.01, "rad/s")
