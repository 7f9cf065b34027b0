"""The scene and the sensors of a run of `airworthy fly`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.evaluation.fly_config import FlyConfig
from airworthy.sensors import carried_sensors, device, device_names
from airworthy.simulation import Contact, MountedSensor, MountedSensors, SensorRecorder, Simulator
from airworthy.simulation.flights import META_FILE
from airworthy.trajectories import course_names
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import GateFrame, Scene, SceneBatch

Point = NDArray[np.float64]
GATE_RUN = 1.5
"""Straight way before and behind a gate [m]."""

CARRIED = "carried"
"""Word of `--sensors` for what the vehicle's record says it carries."""


def place_of(config: FlyConfig) -> Scene | None:
    """The scene to fly in; None without one.

    Raises:
        AirworthyError: If there is none of this name, or its file is damaged.
    """
    if config.scene is None:
        return None
    from airworthy.scenes import scene

    return scene(config.scene)


def with_way(config: FlyConfig, place: Scene | None) -> tuple[str | None, tuple[str, ...]]:
    """Course and waypoints of a run: what was asked for, or else what the scene is made for.

    A scene's own course; or through its gates from its start; or straight from its start to its goal.

    Raises:
        AirworthyError: If neither the user nor the scene names a way.
    """
    if place is None or config.course is not None or config.waypoints:
        return config.course, config.waypoints
    known = [name for name in place.courses if name in course_names()]
    if known:
        return known[0], ()
    points = [] if place.start is None else [np.array(place.start.position, float)]
    if place.gates:
        points += _through_gates(place.gates, points)
    elif place.goal is not None:
        points.append(np.array(place.goal.position, float))
    if len(points) < 2:
        raise AirworthyError(f"Scene {place.name!r} has no course, gates or goal of its own: give --course or --waypoints.")
    return None, tuple(",".join(f"{value:.6g}" for value in point) for point in points)


def _through_gates(gates: Sequence[GateFrame], before: list[Point]) -> list[Point]:
    """Points in front of, in and behind each gate, so that it is flown through at a right angle."""
    centers = [np.mean(gate.corners, axis=0) for gate in gates]
    line = [*(before or centers[:1]), *centers, centers[-1]]
    points: list[Point] = []
    for k, gate in enumerate(gates):
        sides = np.array(gate.corners) - centers[k]
        normal = np.linalg.svd(sides)[2][2]
        # The marker order does not tell the direction of flight; where one comes from and goes to does.
        ahead = line[k + 2] - line[k] if len(gates) > 1 else normal
        normal = normal if float(normal @ ahead) >= 0.0 else -normal
        points += [centers[k] - GATE_RUN * normal, centers[k], centers[k] + GATE_RUN * normal]
    return points


def batch_of(config: FlyConfig, place: Scene | None) -> SceneBatch | None:
    """The scene, ready for queries by every flight."""
    if place is None:
        if config.sensors:
            raise AirworthyError("Sensors need something to see: name a --scene (`airworthy scenes` lists them).")
        return None
    from airworthy.scenes import SceneBatch

    return SceneBatch(place, config.envs, device=config.device)


def contact_of(config: FlyConfig) -> Contact | None:
    """What happens at an impact; None where there is nothing to hit, or vehicles fly through it."""
    return None if config.scene is None or config.contact == "none" else Contact(mode=config.contact)


def mounted_sensors(config: FlyConfig, vehicles: Sequence[Vehicle]) -> dict[str, MountedSensor]:
    """Sensors by their names, from words "DEVICE", "NAME=DEVICE", "NAME=DEVICE:CHANNEL,CHANNEL" or "carried".

    Raises:
        AirworthyError: If a word is none of these, a device is unknown, or a name is given twice.
    """
    found: dict[str, MountedSensor] = {}
    for word in (part for text in config.sensors for part in text.split()):
        if word == CARRIED:
            _add_carried(found, vehicles)
            continue
        name, named, rest = word.partition("=")
        kind, _, channels = (rest if named else name).partition(":")
        if kind not in device_names():
            hint = "Write --sensors NAME=DEVICE or DEVICE; `airworthy sensors` lists the devices."
            raise unknown_name("sensor", kind, device_names(), hint)
        wanted = tuple(channel for channel in channels.split(",") if channel) or None
        _add(found, (name if named else kind) or kind, MountedSensor(device(kind), channels=wanted))
    return found


def _add_carried(found: dict[str, MountedSensor], vehicles: Sequence[Vehicle]) -> None:
    carried = [carried_sensors(vehicle) for vehicle in vehicles]
    if not carried[0]:
        raise AirworthyError(f"The record of {vehicles[0].name!r} names no sensor that looks out: name a device instead.")
    if any(set(other) != set(carried[0]) for other in carried):
        raise AirworthyError("The vehicles of this run carry different sensors: name devices, which all then carry.")
    for name, item in carried[0].items():
        _add(found, name, MountedSensor(item))


def _add(found: dict[str, MountedSensor], name: str, item: MountedSensor) -> None:
    if name in found:
        raise AirworthyError(f"Two sensors are named {name!r}: give one another name, as in --sensors left={name}.")
    if not name.replace("_", "").replace("-", "").isalnum():
        raise AirworthyError(f"A sensor is named {name!r}; expected letters, digits, '-' and '_'.")
    found[name] = item


def clear_recording(folder: Path) -> None:
    """Remove what the sensors of an earlier run in this folder recorded: it must not stand beside other flights."""
    old = folder / "sensors"
    if (folder / META_FILE).is_file() and old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)


def recording(folder: Path, mounted: MountedSensors | None, names: tuple[str, ...]) -> AbstractContextManager[Any]:
    """Writes what the named sensors sample, as long as it is open."""
    return nullcontext() if mounted is None or not names else SensorRecorder(folder, mounted, names)


def mount(
    config: FlyConfig, simulator: Simulator, batch: SceneBatch | None, sensors: dict[str, MountedSensor]
) -> MountedSensors | None:
    """The sensors on every vehicle; None where none is asked for."""
    return MountedSensors(simulator, batch, sensors) if sensors and batch is not None else None


def region_of(place: Scene | None) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Corners of the scene's bounds [m]."""
    return None if place is None else (np.array(place.bounds.lower, float), np.array(place.bounds.upper, float))
