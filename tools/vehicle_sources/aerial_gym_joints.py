"""What the URDFs of Aerial Gym's articulated robots do not say: laws of their joints, and where each number comes from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from airworthy.vehicles import articulated
from airworthy.vehicles.record import Link, Vehicle

_REPO = "ntnu-arl/aerial_gym_simulator@f0d0f05 (BSD-3-Clause)"
TIP_MASS, ARM, REST, GRAVITY = 0.01625, 0.07, math.radians(7.2), 9.81
"""Of a Morphy arm in the source's torque law: motor [kg], length [m], rest angle [rad], gravity [m/s^2]."""
VERTICAL, LATERAL = "base_link_to_connecting_link_*", "connecting_link_to_arm_motor_*"


def joint_settings(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the table `joints` of a robot's rotors TOML.

    Args:
        name: Of the vehicle.
        config: The source's `reconfiguration_config`.
    """
    if name.startswith("snakey"):
        return _chain(config)
    identified = {
        "law": "morphy",
        "stiffness": _twelve(TIP_MASS * ARM**2 * -config["custom_nonlinear_stiffness"]),
        "damping": _twelve(TIP_MASS * ARM**2 * -config["custom_linear_damping"]),
        "rest": _twelve(REST),
        "weight": _twelve(TIP_MASS * GRAVITY * ARM),
    }
    low, high = config["init_state_min"][0], config["init_state_max"][0]
    made = {}
    for index, pattern in enumerate((VERTICAL, LATERAL)):
        spring = {"stiffness": config["stiffness"][index], "damping": config["damping"][index]}
        linear = name == "morphy_linear" or (name == "morphy_mixed" and pattern == LATERAL)
        made[pattern] = {**(spring if linear else identified), "initial": [float(low[index]), float(high[index])]}
    if name == "morphy_fixed_base":
        # The source releases its arms beyond their own limit of 0.25 rad.
        made[VERTICAL] |= {"lower": -0.5, "upper": 0.5}
    return made


def _chain(config: dict[str, Any]) -> dict[str, Any]:
    """Velocity servos: hinges about z stand before those about x in each pair."""
    low, high = config["init_state_min"][0], config["init_state_max"][0]
    shared = {"law": "spring", "stiffness": 0.0, "damping": config["damping"][0], "armature": 0.001, "active": True}
    turn, roll = ([float(low[k]), float(high[k])] for k in (0, 1))
    return {"link*_to_link*": {**shared, "initial": turn}, "vl*": {**shared, "initial": roll}}


def link_sources(name: str, robot: dict[str, Any]) -> dict[str, str]:
    """Return the sources of the links and of their joints."""
    config, urdf = f"{_REPO} {robot['source']['config']}", f"{_REPO} {robot['source']['urdf']}"
    laws = {
        "morphy": f"law of all joints: {_REPO} aerial_gym/robots/morphy.py, times m L^2 (m 0.01625 kg, L 0.07 m)",
        "morphy_fixed_base": f"law of all joints: {_REPO} aerial_gym/robots/morphy.py; stops at 0.5 rad instead of 0.25 (ours),"
        " since the source releases the arms from 0.29",
        "morphy_mixed": f"law of vertical joints: {_REPO} aerial_gym/robots/morphy.py, of lateral joints (ours): {config},"
        " stiffness and damping",
        "morphy_linear": f"law: {config}, stiffness and damping",
    }
    armature = "; no armature: the source's asset option of 0.001 would outweigh an arm's 8e-5 kg m^2"
    chain = f"law: {config}, damping and dof_mode; armature: the same, robot_asset"
    bar = "; inertia of links (ours): uniform bars of 1.0 x 0.04 x 0.04 m, the motor a point at its middle"
    said = chain if name.startswith("snakey") else laws[name] + armature
    return {"links": f"{urdf}; {said}{bar if name == 'snakey_bar' else ''}", "rotors.link": urdf}


def bars(airframe: Vehicle) -> Vehicle:
    """Return a chain whose links have the inertia of uniform bars, not that of a small quadrotor."""

    def bar(link: Link) -> Link:
        if link.mass == 0.0:
            return link
        mass, long, thick = 0.3, 1.0, 0.04
        across = _twelve(mass * (long**2 + thick**2) / 12.0)
        return replace(link, inertia=(_twelve(mass * 2 * thick**2 / 12.0), across, across, 0.0, 0.0, 0.0))

    given = {name: getattr(airframe, name) for name in ("motor_state", "disturbance", "body", "sources", "extra")}
    return articulated(airframe.name, [bar(link) for link in airframe.links], airframe.rotors, **given)


def _twelve(value: float) -> float:
    return float(f"{value:.12g}")
