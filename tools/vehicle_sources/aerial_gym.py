"""Aerial Gym's robots that fly: rotors and joint laws from the configuration classes, everything else from their URDFs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airworthy.vehicles import files
from airworthy.vehicles.files import VERSION
from airworthy.vehicles.lookup import import_urdf
from airworthy.vehicles.record import Vehicle
from vehicle_sources.aerial_gym_joints import bars, joint_settings, link_sources

# base_rov swims.
RIGID = (
    "base_quadrotor",
    "base_quad_root_link_control",
    "base_octarotor",
    "base_random",
    "lmf1",
    "lmf2",
    "magpie",
    "x500",
    "tinyprop",
    "morphy_stiff",
)
ARTICULATED = {
    "morphy": "morphy",
    "morphy_fixed_base": "morphy_fixed_base",
    "morphy_mixed": "morphy",
    "morphy_linear": "morphy",
    "snakey": "snakey",
    "snakey5": "snakey5",
    "snakey6": "snakey6",
    "snakey_bar": "snakey",
}
"""Those with joints, and whose numbers they have."""
_HEADER = "# Rotors of a URDF for import_urdf: links in the source's motor order. SI units, rotor speed in rad/s.\n"


def _robots(data: Path) -> dict[str, Any]:
    return json.loads((data / "aerial_gym" / "robots.json").read_text())["robots"]


def vehicles(data: Path, rotors: Path) -> Iterator[Vehicle]:
    """Import every robot from its URDF and the rotors TOML in the folder `rotors`."""
    for name, robot in _flown(data).items():
        found = import_urdf(data / "aerial_gym" / robot["urdf_copy"], rotors / f"{name}.toml")
        yield bars(found) if name == "snakey_bar" else found


def rotors_texts(data: Path) -> dict[str, str]:
    """Text of the rotors TOML of every robot."""
    return {name: _HEADER + files.text_of(_table(name, robot)) for name, robot in _flown(data).items()}


def _flown(data: Path) -> dict[str, Any]:
    robots = _robots(data)
    return {name: robots[name] for name in RIGID} | {name: robots[robot] for name, robot in ARTICULATED.items()}


def _middle(motor: dict[str, float], key: str) -> float:
    """Middle of the range from which the source draws a value at every reset."""
    return float(f"{0.5 * (motor[f'{key}_min'] + motor[f'{key}_max']):.12g}")


def _in_thrust(motor: dict[str, Any]) -> bool:
    """Tell whether the source's motor state is thrust: its flag use_rps is off (a must for reversible rotors)."""
    return not motor["use_rps"]


def _rotor(motor: dict[str, Any]) -> dict[str, Any]:
    """Values that all rotors share."""
    rates = [1.0 / _middle(motor, f"motor_time_constant_{step_direction}") for step_direction in ("increasing", "decreasing")]
    shared: dict[str, Any] = {"response": {"rise": [rates[0], 0.0], "fall": [rates[1], 0.0]}}
    low, high, ratio = float(motor["min_thrust"]), float(motor["max_thrust"]), motor["thrust_to_torque_ratio"]
    if _in_thrust(motor):
        return {"thrust": [0.0, 1.0, 0.0], "torque": [0.0, ratio, 0.0], "speed_max": high, "speed_min": low} | shared
    c = _middle(motor, "motor_thrust_constant")
    return {
        "thrust": [0.0, 0.0, c],
        "torque": [0.0, 0.0, float(f"{c * ratio:.12g}")],
        "speed_max": math.sqrt(high / c),
        "speed_min": math.sqrt(low / c),
    } | shared


def _table(name: str, robot: dict[str, Any]) -> dict[str, Any]:
    allocation = robot["config"]["control_allocator_config"]
    motor = allocation["motor_model_config"]
    links, directions = robot["derived"]["motor_links"], allocation["motor_directions"]
    disturbance = robot["config"]["disturbance"]
    bounds = disturbance["max_force_and_torque_disturbance"]
    if name in ARTICULATED:
        joints: dict[str, Any] = {"joints": joint_settings(name, robot["config"]["reconfiguration_config"])}
        sources = {**_sources(robot), **link_sources(name, robot)}
        for key in ("mass", "inertia", "center_of_mass"):
            del sources[key]
    else:
        joints, sources = {}, _sources(robot)
    return {
        "version": VERSION,
        "name": name,
        **({"fixed_base": True} if name == "morphy_fixed_base" else {}),
        "motor_state": "thrust" if _in_thrust(motor) else "speed",
        "rotor": _rotor(motor),
        # Their torque is -d c_tau u about the rotor axis, so our spin is -d.
        "rotors": [{"link": link, "spin": -direction} for link, direction in zip(links, directions, strict=True)],
        "disturbance": {
            "probability": disturbance["prob_apply_disturbance"] if disturbance["enable_disturbance"] else 0.0,
            "force_max": [float(v) for v in bounds[:3]],
            "torque_max": [float(v) for v in bounds[3:]],
        },
        **joints,
        "sources": sources,
        "extra": _extra(robot, motor, disturbance),
    }


def _sources(robot: dict[str, Any]) -> dict[str, str]:
    repo = "ntnu-arl/aerial_gym_simulator@f0d0f05 (BSD-3-Clause)"
    config, urdf = f"{repo} {robot['source']['config']}", f"{repo} {robot['source']['urdf']}"
    reordered = "motor_links_note" in robot["derived"]
    note = "; order and pairing from the signs of the shipped allocation matrix" if reordered else ""
    return {
        "mass": urdf,
        "inertia": f"{urdf}, summed about the centre of mass",
        "center_of_mass": urdf,
        "rotors.position": f"{urdf}{note}",
        "rotors.axis": urdf,
        "rotors.spin": f"{config}: minus motor_directions{note}",
        "rotors.thrust": f"{config}: middle of the range of motor_thrust_constant, taken as rad/s",
        "rotors.torque": f"{config}: thrust_to_torque_ratio",
        "rotors.speed_max": f"{config}: max_thrust",
        "rotors.speed_min": f"{config}: min_thrust",
        "rotors.response": f"{config}: middle of the ranges of motor_time_constant",
        "motor_state": f"{config}: use_rps",
        "disturbance": f"{config}; probability 0 where it is disabled there",
        "body": f"{urdf}, collision element",
    }


def _extra(robot: dict[str, Any], motor: dict[str, Any], disturbance: dict[str, Any]) -> dict[str, float | str]:
    keys = [
        f"motor_time_constant_{step_direction}_{end}"
        for step_direction in ("increasing", "decreasing")
        for end in ("min", "max")
    ]
    keys += [f"motor_thrust_constant_{end}" for end in ("min", "max")]
    return {
        "family": "aerial_gym",
        "controller_gains": robot["controller_gains"],
        "published_disturbance_probability": float(disturbance["prob_apply_disturbance"]),
        **{key: float(motor[key]) for key in keys},
    }
