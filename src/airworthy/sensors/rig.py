"""Rigs: several sensors that belong together, by name, and the camera matrices of stereo pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import unknown_name
from airworthy.core.frames import from_euler
from airworthy.sensors.devices import Device, device
from airworthy.sensors.mounting import Mount, Vector3
from airworthy.sensors.projections import Pinhole

STEREO_BASELINE = 0.32
"""FlightGoggles 2019: the left camera at the body's origin, the right one at y = -0.32 m (spec/flightgoggles 2.4)."""


def _at(position: Vector3, pitch: float = 0.0) -> Mount:
    x, y, z, w = (float(value) for value in from_euler(0.0, pitch, 0.0))
    return Mount(position, (x, y, z, w))


def _flightgoggles(right: bool, race: bool) -> dict[str, Device]:
    camera = device("flightgoggles_camera")
    members = {"left": camera}
    if right:
        members["right"] = camera.variant(mount=_at((0.0, -STEREO_BASELINE, 0.0)))
    if race:
        members["ir_beacons"] = device("flightgoggles_beacons")
        members["downward_laser_rangefinder"] = device("lightware_sf11b")
    return members


def _release_3() -> dict[str, Device]:
    camera = device("flightgoggles_camera_v3")
    places = {"left": _at((0.0, 0.05, 0.0)), "right": _at((0.0, -0.05, 0.0)), "down": _at((0.0, 0.0, 0.0), math.pi / 2)}
    return {name: camera.variant(mount=mount) for name, mount in places.items()}


_RIGS = {
    "flightgoggles_mono": lambda: _flightgoggles(right=False, race=False),
    "flightgoggles_stereo": lambda: _flightgoggles(right=True, race=False),
    "flightgoggles_race": lambda: _flightgoggles(right=True, race=True),
    "flightgoggles_v3": _release_3,
}


def rig_names() -> list[str]:
    """Names of the known rigs."""
    return sorted(_RIGS)


def rig(name: str) -> dict[str, Device]:
    """The sensors of a rig by their names, each with its mount; all sample together, since their rates are equal.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in _RIGS:
        raise unknown_name("rig of sensors", name, rig_names())
    return _RIGS[name]()


def projection_matrix(camera: Pinhole, baseline: float = 0.0) -> NDArray[np.float64]:
    """ROS' projection matrix (3, 4) of a rectified camera; of the right one of a pair, P[0, 3] = -fx baseline."""
    matrix = np.zeros((3, 4))
    matrix[:, :3] = camera.matrix
    matrix[0, 3] = -camera.fx * baseline
    return matrix
