"""The FlightGoggles race quadrotor: the current release, and the one of the 2019 AlphaPilot qualifier."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airworthy.vehicles.record import CollisionBody, Drag, Rotor, RotorResponse, SensorMount, Vehicle, WrenchNoise

_REPO = "mit-aera/FlightGoggles@6842078 config/drone/drone.yaml"
_CHALLENGE = "mit-aera/FlightGoggles@80b1a48 (qualifier of March 2019)"


def vehicles(data: Path) -> Iterator[Vehicle]:
    """`flightgoggles` and `flightgoggles_2019`."""
    table = json.loads((data / "flightgoggles" / "vehicle.json").read_text())
    yield _current(table)
    yield _challenge(table)


def _rotors(values: dict[str, Any], rotor_inertia: float) -> tuple[Rotor, ...]:
    motor = values["motor"]
    return tuple(
        Rotor(
            position=tuple(item["position_m"]),
            thrust=(0.0, 0.0, motor["thrust_coefficient_N_per_radps2"]),
            torque=(0.0, 0.0, motor["torque_coefficient_Nm_per_radps2"]),
            spin=item["torque_sign"],  # theirs is ours: the sign of the reaction moment about body z
            response=RotorResponse.first_order(motor["time_constant_s"]),
            speed_max=motor["max_speed_radps"],
            speed_min=motor["min_speed_radps"],
            inertia=rotor_inertia,
        )
        for item in values["motors"]
    )


def _imu(table: dict[str, Any], walk: bool) -> SensorMount:
    values = table["imu"]
    keys = ["rate_hz", "accel_noise_variance_m2ps4", "gyro_noise_variance_rad2ps2"]
    if walk:
        keys += ["accel_bias_walk_autocorrelation_m2ps5", "gyro_bias_walk_autocorrelation_rad2ps3"]
        keys += ["accel_bias_initial_variance", "gyro_bias_initial_variance"]
    return SensorMount("imu", "imu", parameters=tuple((key, float(values[key])) for key in keys))


def _vehicle(name: str, table: dict[str, Any], zz: float, rotor_inertia: float, **rest: Any) -> Vehicle:
    values = table["current"]
    c = values["drag_coefficient_N_per_mps2"]
    m = values["aero_moment_coefficient_Nm_per_radps2"]
    moment = (m["xx"], m["yy"], m["zz"]) if name == "flightgoggles" else (0.0, 0.0, 0.0)
    inertia = values["inertia_kgm2"]
    return Vehicle(
        name=name,
        mass=values["mass_kg"],
        inertia=(inertia["xx"], inertia["yy"], zz, 0.0, 0.0, 0.0),
        rotors=_rotors(values, rotor_inertia),
        drag=Drag(quadratic_norm=(c, c, c), angular_norm=moment),
        body=CollisionBody("sphere", (0.15, 0.15, 0.15)),
        gravity=values["gravity_mps2"],
        **rest,
    )


def _current(table: dict[str, Any]) -> Vehicle:
    values = table["current"]
    force, moment = values["force_noise_autocorrelation_N2s"], values["moment_noise_autocorrelation_N2m2s"]
    return _vehicle(
        "flightgoggles",
        table,
        values["inertia_kgm2"]["zz"],
        values["motor"]["rotor_inertia_kgm2"],
        wrench_noise=WrenchNoise((force, force, force), (moment, moment, moment)),
        sensors=(_imu(table, walk=True),),
        sources=_sources(_REPO),
        extra={"family": "flightgoggles", "physics_rate_hz": 960.0},
    )


def _challenge(table: dict[str, Any]) -> Vehicle:
    values, base = table["challenge_2019_03"], table["current"]
    zz, mass = values["inertia_zz_kgm2"], base["mass_kg"]
    # Noise was stated on accelerations: a force is mass, a moment inertia times it, so variances scale with their squares.
    force = values["linear_accel_noise_autocorrelation_m2ps3"] * mass**2
    turn = values["angular_accel_noise_autocorrelation_rad2ps3"]
    moments = tuple(turn * j**2 for j in (base["inertia_kgm2"]["xx"], base["inertia_kgm2"]["yy"], zz))
    return _vehicle(
        "flightgoggles_2019",
        table,
        zz,
        values["rotor_inertia_kgm2"],
        wrench_noise=WrenchNoise((force, force, force), moments),
        sensors=(_imu(table, walk=False),),
        sources=_sources(_REPO) | _challenge_sources(),
        extra={"family": "flightgoggles", "physics_rate_hz": 960.0, "arming_thrust_N": values["min_arming_thrust_N"]},
    )


def _sources(repo: str) -> dict[str, str]:
    names = ("mass", "inertia", "rotors.thrust", "rotors.torque", "rotors.speed_max", "rotors.speed_min", "rotors.response")
    node = "flightgoggles_uav_dynamics node: motor layout"
    fixed = {"rotors.position": node, "rotors.spin": f"{node}; sign of the reaction moment about body z"}
    aero = {"drag": f"{repo}; isotropic, so the same in world and body axes", "wrench_noise": repo, "rotors.inertia": repo}
    rest = {"gravity": repo, "sensors.imu": repo, "body": "collision sphere of 0.15 m, FlightGoggles renderer"}
    return dict.fromkeys(names, repo) | fixed | aero | rest


def _challenge_sources() -> dict[str, str]:
    return {
        "inertia": f"{_REPO}; zz from {_CHALLENGE}",
        "wrench_noise": f"{_CHALLENGE}: acceleration noise, turned to force by mass and to moment by inertia, squared",
        "rotors.inertia": f"{_CHALLENGE}: no rotor inertia",
        "drag": f"{_REPO}; no aerodynamic moment in {_CHALLENGE}",
        "sensors.imu": f"{_REPO}; no bias model in {_CHALLENGE}",
    }
