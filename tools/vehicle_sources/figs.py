"""The FiGS / SOUS VIDE drone `carl`, converted from z-down to project frames."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from airworthy.vehicles.record import CollisionBody, Rotor, RotorResponse, SensorMount, Vehicle

# Rows roll, pitch and yaw of the published mixer per newton [m, m, m], z-down, are (-0.1, 0.1, 0.1, -0.1),
# (0.075, -0.075, 0.075, -0.075) and (0.04, 0.04, -0.04, -0.04). Turned about x by half a turn, pitch and yaw change sign, and
# with tau_x = y F, tau_y = -x F the rotors stand front right, back left, front left, back right.
_SIDES: tuple[tuple[float, float, Literal[-1, 1]], ...] = ((1.0, -1.0, -1), (-1.0, 1.0, -1), (1.0, 1.0, 1), (-1.0, -1.0, 1))
_LAG = 0.02
_TURN = np.diag([1.0, -1.0, -1.0])
"""z-down body to z-up body, and OpenGL camera (y up, z back) to ours (y down, z forward)."""


def vehicles(data: Path) -> Iterator[Vehicle]:
    """Yield the one vehicle of drone_frames.json, with its camera in both published mounts."""
    frames = json.loads((data / "sousvide" / "drone_frames.json").read_text())["frames"]
    carl, measured = frames["carl"], frames["carl_calibrated_camera"]
    xx, yy, zz = (carl["mass_kg"] * ratio for ratio in carl["inertia_over_mass_m2"])
    source, second = ("{repo}@{commit:.7} {path}".format(**frame["source"]) for frame in (carl, measured))
    yield Vehicle(
        name="carl",
        mass=carl["mass_kg"],
        inertia=(xx, yy, zz, 0.0, 0.0, 0.0),
        rotors=_rotors(carl),
        motor_state="thrust",
        body=CollisionBody("sphere", (0.15, 0.15, 0.15)),
        sensors=(_camera("camera", carl), _camera("camera_calibrated", measured)),
        sources=_sources(source, second),
        extra={"family": "figs", "thrust_scale_N": carl["rotors"] * carl["thrust_per_rotor_N"]},
    )


def _rotors(frame: dict[str, Any]) -> tuple[Rotor, ...]:
    arm_x, arm_y = frame["arm_front_m"]
    return tuple(
        Rotor(
            position=(x * arm_x, y * arm_y, 0.0),
            thrust=(0.0, 1.0, 0.0),
            torque=(0.0, frame["torque_gain_m"], 0.0),
            spin=spin,
            response=RotorResponse.first_order(_LAG),
            speed_max=frame["thrust_per_rotor_N"],
        )
        for x, y, spin in _SIDES
    )


def _camera(name: str, frame: dict[str, Any]) -> SensorMount:
    pose = np.array(frame["T_camera_to_body"])
    left, _, right = np.linalg.svd(pose[:3, :3])  # the measured mount is printed to five decimals: take the nearest rotation
    x, y, z = (_TURN @ pose[:3, 3]).tolist()
    camera = {key: float(frame["camera"][key]) for key in ("width", "height", "fx", "fy", "cx", "cy")}
    return SensorMount(name, "camera", "", (x, y, z), _quaternion(_TURN @ left @ right @ _TURN), tuple(camera.items()))


def _quaternion(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """x, y, z, w with w >= 0, from the eigenvector of the symmetric 4 x 4 form (no branches on the trace)."""
    m = rotation
    form = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
            [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    vector = np.linalg.eigh(form)[1][:, -1]
    x, y, z, w = (float(f"{v:.12g}") for v in (vector if vector[3] >= 0.0 else -vector))
    return (x, y, z, w)


def _sources(source: str, second: str) -> dict[str, str]:
    return {
        "mass": source,
        "inertia": f"{source}: inertia over mass, times mass",
        "motor_state": "the published model has no rotor speed: command and limit are thrusts",
        "rotors.position": f"{source}: arms; order from the mixer (FiGS dynamics_helper.py), z-down turned to z-up",
        "rotors.spin": "yaw row of the same mixer, sign turned with the frame",
        "rotors.thrust": "identity: the state is the thrust",
        "rotors.torque": f"{source}: torque gain 0.040 m",
        "rotors.speed_max": f"{source}: 6.90 N per rotor",
        "rotors.response": f"not published; {_LAG:g} s assumed (machines of this size: 0.0125 to 0.033 s)",
        "body": "0.15 m radius, our choice for this drone's collision metric (unpublished)",
        "sensors.camera": f"{source}: idealised mount, OpenGL camera in z-down body turned to project frames",
        "sensors.camera_calibrated": f"{second}: measured mount, nearest rotation, turned likewise",
    }
