"""The 36 FlyingTrust platforms: 18 real and 18 virtual quadrotors."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from airworthy.vehicles.record import CollisionBody, Drag, Rotor, RotorResponse, Vehicle

TABLE = "FlyingTrust Table I (arXiv 2510.26588v1)"
AGILE = "virt_02"
"""The Agile-Autonomy research vehicle: its lever and its two motor constants are published, not derived."""
_RULES = {
    "derived": "estimated by us from published mass and indicators: cross layout, arm 0.25 m^(1/3), tip speed 100 m/s",
    "recovered": "recovered recipe of the fleet: Jxx = 0.04 m d^2, Jzz = 2 Jxx, torque/thrust d/20, tip speed 200 m/s",
    "published": "public EGO-Planner simulator, so3_quadrotor_simulator Quadrotor.cpp",
    "published+solved": "public Agile-Autonomy vehicle (hummingbird.xacro, mpc_params.yaml); torque/thrust from printed yaw",
}
# Back, right, front, left (eq 4) and back left, back right, front right, front left (eq 5): the torque rows hold as printed.
_PLUS = ((-1.0, 0.0), (0.0, -1.0), (1.0, 0.0), (0.0, 1.0))
_CROSS = ((-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (1.0, 1.0))
_SPIN: tuple[Literal[-1, 1], ...] = (1, -1, 1, -1)


def vehicles(data: Path) -> Iterator[Vehicle]:
    """Yield one record per row of platforms.csv."""
    with open(data / "flyingtrust" / "platforms.csv", newline="") as file:
        for row in csv.DictReader(file):
            yield _vehicle(row)


def _lever(row: dict[str, str]) -> float:
    """Distance of a hub from the body axes it does not lie on [m]."""
    if row["layout"] == "plus":
        return float(row["arm_m"])
    return float(row["lever_m"]) if row["id"] == AGILE else float(row["arm_m"]) / math.sqrt(2.0)


def _rotors(row: dict[str, str]) -> tuple[Rotor, ...]:
    lever = _lever(row)
    # The table rounds the EGO-Planner simulator's 1/30 s.
    response = RotorResponse.first_order(0.0125, 0.025) if row["id"] == AGILE else RotorResponse.first_order(1.0 / 30.0)
    return tuple(
        Rotor(
            position=(x * lever, y * lever, 0.0),
            thrust=(0.0, 0.0, float(row["cT"])),
            torque=(0.0, 0.0, float(row["cM"])),
            spin=spin,
            response=response,
            speed_max=float(row["omega_max_rad_s"]),
            speed_min=float(row["omega_min_rad_s"]),
            radius=float(row["prop_diam_m"]) / 2.0,
        )
        for (x, y), spin in zip(_PLUS if row["layout"] == "plus" else _CROSS, _SPIN, strict=True)
    )


def _vehicle(row: dict[str, str]) -> Vehicle:
    drag = float(row["drag_quad_N_s2_m2"])
    return Vehicle(
        name=row["id"],
        mass=float(row["mass_kg"]),
        inertia=(float(row["Jxx"]), float(row["Jyy"]), float(row["Jzz"]), 0.0, 0.0, 0.0),
        rotors=_rotors(row),
        drag=Drag(quadratic_norm=(drag, drag, drag)),
        body=CollisionBody("sphere", (0.3, 0.3, 0.3)),
        sources=_sources(row),
        extra=_extra(row),
    )


def _sources(row: dict[str, str]) -> dict[str, str]:
    rule = _RULES[row["param_source"]]
    lag = "Agile-Autonomy simulator, 0.0125 s up, 0.025 s down" if row["id"] == AGILE else "EGO-Planner simulator, 1/30 s"
    return {
        "mass": f"{TABLE}",
        "inertia": rule,
        "rotors.position": f"{rule}; numbering of eqs 4 and 5",
        "rotors.spin": "eqs 4 and 5, last row",
        "rotors.thrust": rule,
        "rotors.torque": rule,
        "rotors.speed_max": rule,
        "rotors.speed_min": "5 % of speed_max, our choice",
        "rotors.radius": "half the propeller diameter of the same rule",
        "rotors.response": lag,
        "drag": "0.1 pi d^2 |v| v, EGO-Planner simulator",
        "body": "one 0.3 m sphere for all vehicles, our choice (12 of the 36 real outlines would not pass the narrow gaps)",
    }


def _extra(row: dict[str, str]) -> dict[str, float | str]:
    numbers = {
        "body_radius_m": "body_radius_m",
        "published_thrust_to_weight": "twr_max",
        "published_alpha_xy_max": "alpha_xy_max",
        "published_alpha_z_max": "alpha_z_max",
        "arm_m": "arm_m",
    }
    texts = {key: key for key in ("category", "family", "layout")} | {"title": "name", "parameter_source": "param_source"}
    return {k: row[c] for k, c in texts.items()} | {k: float(row[c]) for k, c in numbers.items()}
