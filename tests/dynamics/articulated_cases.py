"""Vehicles with joints and states of them that several tests fly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.dynamics.articulated.tree import JointTree
from airworthy.vehicles import Joint, Link, Rotor, RotorResponse, Vehicle, articulated, vehicle

SMALL_ROTOR = Rotor((0.1, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.01, 0.0), 1, RotorResponse.first_order(0.02), 2.0, link="arm")


def small(**joint: Any) -> Vehicle:
    """One arm with one rotor, in general position: no structural zero in its rotation, rotor inertia and reaction torque."""
    axis = np.array([0.36, 0.48, 0.8])
    stiffness = 0.0 if joint.get("law") == "torque" else 0.2  # which a given torque does not read
    hinge = Joint((0.04, 0.01, 0.02), tuple(axis), (0.1, 0.2, 0.3, 0.86**0.5), kp=stiffness, kd=0.002, **joint)  # type: ignore[arg-type]
    base = Link("base", mass=0.2, inertia=(2e-4, 3e-4, 4e-4, 1e-5, -2e-5, 3e-5))
    arm = Link("arm", "base", hinge, 0.05, (0.06, 0.01, -0.02), (2e-5, 6e-5, 5e-5, 1e-6, 0.0, -2e-6))
    rotor = replace(SMALL_ROTOR, axis=(0.6, 0.0, 0.8), inertia=1e-5)
    return articulated("small", [base, arm], [rotor], motor_state="thrust")


def with_joints(craft: Vehicle, **changes: Any) -> Vehicle:
    """The same vehicle with something of all its joints changed."""
    return replace(craft, links=tuple(replace(k, joint=k.joint and replace(k.joint, **changes)) for k in craft.links))


def without_stops(name: str, **changes: Any) -> Vehicle:
    """A catalogue vehicle whose joints never meet a stop."""
    return with_joints(vehicle(name), lower=None, upper=None, **changes)


def random_state(tree: JointTree, count: int, seed: int = 0, spread: float = 0.1) -> dict[str, Array]:
    """States around hover by their fields in a batch, (env, k)."""
    rng, n, r = np.random.default_rng(seed), tree.structure.joint_count, tree.structure.rotor_count
    attitude = rng.normal(size=(count, 4))
    weight = sum(body.mass for body in tree.model.bodies) * tree.model.gravity
    return {
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "velocity": rng.normal(size=(count, 3)),
        "rate": rng.normal(size=(count, 3)),
        "joint": rng.uniform(-spread, spread, (count, n)),
        "joint_rate": 0.5 * rng.normal(size=(count, n)),
        "rotor_speed": weight / r * rng.uniform(0.5, 1.5, (count, r)),
    }


def star(stiffness: float, count: int = 4, **joint: Any) -> Vehicle:
    """A hub of 0.6 kg with arms of 0.1 kg that bend up and down, a rotor at each tip."""
    links = [Link("hub", mass=0.6, inertia=(3e-3, 3e-3, 5e-3, 0.0, 0.0, 0.0))]
    rotors = []
    for k in range(count):
        angle = 2.0 * np.pi * k / count
        hinge = Joint(
            (0.06 * np.cos(angle), 0.06 * np.sin(angle), 0.0),
            (0.0, 1.0, 0.0),
            (0.0, 0.0, np.sin(angle / 2.0), np.cos(angle / 2.0)),
            **{"kp": stiffness, "kd": 0.02, **joint},
        )
        links.append(Link(f"arm{k}", "hub", hinge, 0.1, (0.175, 0.0, 0.0), (3e-5, 5e-4, 5e-4, 0.0, 0.0, 0.0)))
        rotors.append(replace(SMALL_ROTOR, position=(0.25, 0.0, 0.0), spin=1 - 2 * (k % 2), speed_max=6.0, link=f"arm{k}"))
    return articulated("star", links, rotors, motor_state="thrust")


def line(count: int, **joint: Any) -> Vehicle:
    """A chain of links of 0.5 m and 0.35 kg with servos that turn about the vertical, a rotor over the middle of each."""
    links, rotors = [], []
    for k in range(count):
        hinge = Joint((0.5, 0.0, 0.0), (0.0, 0.0, 1.0), kd=5.0, armature=1e-3, active=True, **joint) if k else None
        links.append(
            Link(f"link{k}", f"link{k - 1}" if k else "", hinge, 0.35, (0.25, 0.0, 0.0), (1e-4, 7.3e-3, 7.3e-3, 0.0, 0.0, 0.0))
        )
        spin = 1 - 2 * (k % 2)
        rotors.append(replace(SMALL_ROTOR, position=(0.25, 0.0, 0.03), spin=spin, speed_max=9.0, link=f"link{k}"))
    return articulated("line", links, rotors, motor_state="thrust")
