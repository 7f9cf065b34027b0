"""The five published Crazyflie parameter sets, from rotor speeds in rpm to rad/s."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from airworthy.vehicles.record import CollisionBody, Drag, Rotor, RotorResponse, Vehicle, VoltageChain
from airworthy.vehicles.trim import rotor_state_for_thrust

RPM = 2.0 * math.pi / 60.0
"""rad/s per rpm."""
NO_LAG = 1e-3
"""Time constant [s] of sets without rotor lag: the smallest that a 1 kHz step still integrates."""
_NO_LAG_SOURCE = f"none in the set (rotors follow at once); {NO_LAG:g} s stands for it"
# Reaction torque signs, by rotor: PyBullet lineage adds -t0 + t1 - t2 + t3; crazyflow's mixing matrix has the same yaw row.
_SPIN: tuple[Literal[-1, 1], ...] = (-1, 1, -1, 1)
_BULLET_SPIN_SOURCE = "z torque -t0 + t1 - t2 + t3 of gym-pybullet-drones BaseAviary"


def vehicles(data: Path) -> Iterator[Vehicle]:
    """Yield the sets under the keys of crazyflie_parameters.json."""
    sets = json.loads((data / "boundary_predictor" / "crazyflie_parameters.json").read_text())
    yield _bullet("cf2x_scg_iros2022", sets, _chain(sets))
    yield _bullet("cf2x_gym_pybullet_drones", sets, None)
    yield _fitted("cf2x_L250", sets)
    yield _fitted("cf2x_P250", sets)
    yield _rotorpy(sets)


def _cylinder(values: dict[str, Any]) -> CollisionBody:
    radius, height = values["collision_cylinder"]["radius_m"], values["collision_cylinder"]["height_m"]
    return CollisionBody("cylinder", (radius, radius, height / 2.0))


def _chain(sets: dict[str, Any]) -> VoltageChain:
    """Legacy thrust chain: 60/65536 g per count, volts polynomial and 3 V supply as printed in `legacy_thrust_chain`."""
    values = sets["cf2x_scg_iros2022"]
    return VoltageChain(
        command_to_grams=60.0 / 65536.0,
        volts_linear=0.088,
        volts_quadratic=-0.0006239,
        supply=3.0,
        pwm_min=float(values["pwm_min"]),
        pwm_max=float(values["pwm_max"]),
        speed_slope=values["pwm2rpm_scale"] * RPM,
        speed_offset=values["pwm2rpm_const"] * RPM,
    )


def _bullet(name: str, sets: dict[str, Any], chain: VoltageChain | None) -> Vehicle:
    """PyBullet lineage: quadratic thrust and torque, no lag, optional effects kept aside since they are off by default."""
    values = sets[name]
    thrust, torque = values["kf_N_per_rpm2"] / RPM**2, values["km_Nm_per_rpm2"] / RPM**2
    if chain is None:
        weight = values["mass_kg"] * values["gravity_mps2"]
        limits = 0.0, math.sqrt(values["thrust_to_weight_declared"] * weight / (4.0 * thrust))
        limit_source = f"{values['source']}: declared thrust to weight {values['thrust_to_weight_declared']:g}"
    else:
        low, high = (chain.speed_slope * pwm + chain.speed_offset for pwm in (chain.pwm_min, chain.pwm_max))
        limits, limit_source = (low, high), f"{values['source']}: rotor speeds at PWM 20000 and 65535"
    rotors = tuple(
        Rotor(
            position=(float(p[0]), float(p[1]), float(p[2])),
            thrust=(0.0, 0.0, thrust),
            torque=(0.0, 0.0, torque),
            spin=spin,
            response=RotorResponse.first_order(NO_LAG),
            speed_max=limits[1],
            speed_min=limits[0],
            radius=values["prop_radius_m"],
        )
        for p, spin in zip(values["prop_positions_m"], _SPIN, strict=True)
    )
    sources = _sources(values["source"], _BULLET_SPIN_SOURCE, _NO_LAG_SOURCE, limit_source)
    sources["rotors.radius"] = sources["gravity"] = values["source"]
    if chain is not None:
        sources["voltage_chain"] = sets["legacy_thrust_chain"]["source"]
    return Vehicle(
        name=name,
        mass=values["mass_kg"],
        inertia=(*_diagonal(values), 0.0, 0.0, 0.0),
        rotors=rotors,
        voltage_chain=chain,
        body=_cylinder(values),
        gravity=values["gravity_mps2"],
        sources=sources,
        extra=_optional_effects(values),
    )


def _diagonal(values: dict[str, Any]) -> tuple[float, float, float]:
    xx, yy, zz = values["inertia_diag_kgm2"]
    return (xx, yy, zz)


def _optional_effects(values: dict[str, Any]) -> dict[str, float | str]:
    """Return published beside the set and off by default there: drag per sum of rotor speeds, ground effect, downwash."""
    keys = ("thrust_to_weight_declared", "ground_effect_coeff", "drag_coeff_xy", "drag_coeff_z")
    named = {f"optional_{key}" if "declared" not in key else key: float(values[key]) for key in keys}
    downwash = {f"optional_downwash_{index + 1}": float(v) for index, v in enumerate(values["downwash"])}
    return {"family": "crazyflie", **named, **downwash}


def _fitted(name: str, sets: dict[str, Any]) -> Vehicle:
    """crazyflow's fits: polynomials in rpm, dw/dt = a (c - w) + b (c^2 - w^2) with one pair rising, one falling."""
    values = sets[name]
    arm = values["arm_axis_m"]
    a_rise, b_rise, a_fall, b_fall = (float(value) for value in values["rotor_dyn_coef"])
    prototype = Rotor(
        position=(arm, -arm, 0.0),
        thrust=_in_rad_s(values["rpm2thrust_N"]),
        torque=_in_rad_s(values["rpm2torque_Nm"]),
        spin=-1,
        response=RotorResponse((a_rise, b_rise / RPM), (a_fall, b_fall / RPM)),
        speed_max=1.0,
        inertia=values["prop_inertia_kgm2"],
    )
    low, high = (rotor_state_for_thrust(prototype, values[key]) for key in ("thrust_min_N", "thrust_max_N"))
    shared = {k: getattr(prototype, k) for k in ("thrust", "torque", "response", "inertia")}
    corners = ((arm, -arm), (-arm, -arm), (-arm, arm), (arm, arm))  # front right, back right, back left, front left
    rotors = tuple(
        Rotor(position=(x, y, 0.0), spin=spin, speed_max=high, speed_min=low, **shared)
        for (x, y), spin in zip(corners, _SPIN, strict=True)
    )
    source = values["source"].split(" (")[0]
    mixer = "crazyflow 0.4.0 mixing_matrix: rows roll and pitch give the corners, row yaw the spin"
    lag, limits = f"{source}: rotor_dyn_coef, rpm to rad/s", f"{source}: speeds of thrust_min and thrust_max"
    sources = _sources(source, mixer, lag, limits) | {"rotors.position": mixer, "rotors.inertia": source, "drag": source}
    sources["gravity"] = "crazyflow 0.4.0 dynamics/params.toml"
    sources["body"] = "cylinder of the gym-pybullet-drones cf2x.urdf; the set has no shape"
    return Vehicle(
        name=name,
        mass=values["mass_kg"],
        inertia=(*_diagonal(values), 0.0, 0.0, 0.0),
        rotors=rotors,
        drag=Drag(linear=tuple(values["linear_drag_N_per_mps"])),
        body=_cylinder(sets["cf2x_gym_pybullet_drones"]),
        sources=sources,
        extra={
            "family": "crazyflie",
            "controller_mass_kg": values["controller_mass_kg"],
            "thrust_to_torque_m": values["thrust_to_torque_m"],
            "thrust_min_N": values["thrust_min_N"],
            "thrust_max_N": values["thrust_max_N"],
        },
    )


def _in_rad_s(polynomial: list[float]) -> tuple[float, float, float]:
    """Coefficients per rpm as coefficients per rad/s."""
    return (float(polynomial[0]), polynomial[1] / RPM, polynomial[2] / RPM**2)


def _rotorpy(sets: dict[str, Any]) -> Vehicle:
    values = sets["rotorpy_crazyflie"]
    lever, drag, inflow = values["arm_m"] / math.sqrt(2.0), values["rotor_drag_k_d"], values["inflow_k_z"]
    corners: tuple[tuple[float, float, Literal[-1, 1]], ...] = (
        (lever, lever, 1),
        (lever, -lever, -1),
        (-lever, -lever, 1),
        (-lever, lever, -1),
    )
    rotors = tuple(
        Rotor(
            position=(x, y, 0.0),
            thrust=(0.0, 0.0, values["k_eta_N_per_rads2"]),
            torque=(0.0, 0.0, values["k_m_Nm_per_rads2"]),
            spin=spin,
            response=RotorResponse.first_order(values["rotor_time_constant_s"]),
            speed_max=float(values["rotor_speed_max_radps"]),
            hub_drag=(drag, inflow),
        )
        for x, y, spin in corners
    )
    source = values["source"]
    layout = f"{source}: rotor_pos and rotor_directions (sign of the moment about body z)"
    sources = _sources(source, layout, source, source) | {"rotors.position": layout, "gravity": source}
    sources["rotors.hub_drag"] = f"{source}: k_d, k_z; k_h and k_flap are zero there"
    sources["body"] = "cylinder of the gym-pybullet-drones cf2x.urdf; the set has no shape"
    return Vehicle(
        name="rotorpy_crazyflie",
        mass=values["mass_kg"],
        inertia=(*_diagonal(values), 0.0, 0.0, 0.0),
        rotors=rotors,
        body=_cylinder(sets["cf2x_gym_pybullet_drones"]),
        gravity=values["gravity_mps2"],
        sources=sources,
        extra={"family": "crazyflie"},
    )


def _sources(source: str, spin: str, lag: str, limits: str) -> dict[str, str]:
    names = ("mass", "inertia", "rotors.position", "rotors.thrust", "rotors.torque", "body")
    return dict.fromkeys(names, source) | {
        "rotors.spin": spin,
        "rotors.response": lag,
        "rotors.speed_max": limits,
        "rotors.speed_min": limits,
    }
