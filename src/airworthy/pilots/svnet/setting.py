"""Where a policy's numbers come from: vehicle, camera and courses that it learnt from, as its contract tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import BODY_FROM_CAMERA, multiply
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.core.table_schema import hints
from airworthy.pilots.network_files import ContractTable
from airworthy.pilots.svnet.features import OBJECTIVE_SIZE, to_objective
from airworthy.vehicles import Vehicle

__all__ = ["CourseObjective", "PolicyMount", "PolicySetting", "policy_setting", "read_setting", "setting_table"]

_OBJECTIVE_MAX = 1e6
"""Of a number of an objective [s, m, m/s]; ours: beyond it is a mistake of units."""
_Pixels = Annotated[float, Bound(-1e6, 1e6, "px")]
_Side = Annotated[int, Bound(1, 65536, "px")]
# Ours: lighter than a grain or heavier than a ship is a mistake of units.
_Mass = Annotated[float, Bound(1e-6, 1e6, "kg")]
_Force = Annotated[float, Bound(1e-6, 1e8, "N")]


@dataclass(frozen=True)
class PolicyMount:
    """Camera of the training's vehicle: how it is mounted, and its whole image.

    Raises:
        AirworthyError: If a number is out of range.
    """

    sensor: str
    """Its name in the vehicle's record."""
    position: Annotated[tuple[float, ...], Bound(-1e3, 1e3, "m"), Length(3, 3)]
    """Of its optical centre in the body's frame (x forward, y left, z up) [m], from the body's origin."""
    attitude: Annotated[tuple[float, ...], Bound(-1.0, 1.0), Length(4, 4)]
    """Quaternion x, y, z, w that turns vectors of the optical frame (x right, y down, z forward) into the body's."""
    width: _Side
    """Of the images that the data were made of [px]: whole ones, or the view itself."""
    height: _Side
    fx: _Pixels
    """[px]"""
    fy: _Pixels
    cx: _Pixels
    """From the left edge of the image [px]."""
    cy: _Pixels

    def __post_init__(self) -> None:
        check_fields(self, "Mount.")


@dataclass(frozen=True)
class CourseObjective:
    """What the network is told of one course that it learnt from.

    Raises:
        AirworthyError: If a number is out of range.
    """

    course: str
    """Its name."""
    objective: Annotated[tuple[float, ...], Bound(-_OBJECTIVE_MAX, _OBJECTIVE_MAX), Length(OBJECTIVE_SIZE, OBJECTIVE_SIZE)]
    """In the frames of the network, as the input `objective` reads them."""

    def __post_init__(self) -> None:
        check_fields(self, "Objective.")


@dataclass(frozen=True)
class PolicySetting:
    """What a policy was trained on.

    Raises:
        AirworthyError: If a number is out of range.
    """

    vehicle: str
    """Name of the record."""
    mass: _Mass
    """Of the record [kg]; the training's drones were drawn round it."""
    full_thrust: _Force
    """Of the record: all rotors at full command along the body's z axis [N]."""
    mass_spread: Annotated[float, Bound(0.0, 1.0)]
    """Drones of the training had masses uniform within this share of it."""
    thrust_spread: Annotated[float, Bound(0.0, 1.0)]
    """So had they full thrusts; a command is a share of each drone's own."""
    gravity: Annotated[float, Bound(0.0, 1e3, "m/s^2")]
    command_delay: Annotated[float, Bound(0.0, 10.0, "s")]
    """From what was sensed to the command's effect in the training [s]; images were of the same instant as the state."""
    camera: PolicyMount | None
    """None of a policy that does not see."""
    courses: tuple[CourseObjective, ...]

    def __post_init__(self) -> None:
        check_fields(self, "Setting.")

    def objective(self, course: str) -> Array:
        """Return what the network is told of a course, (18,).

        Raises:
            AirworthyError: It did not learn from a course of this name.
        """
        for item in self.courses:
            if item.course == course:
                return np.array(item.objective)
        known = ", ".join(item.course for item in self.courses)
        raise AirworthyError(f"The policy's contract tells no objective of a course {course!r}; it tells those of {known}.")


def policy_setting(
    vehicle: Vehicle,
    camera: Mapping[str, Any] | None,
    courses: Mapping[str, ArrayLike],
    spread: tuple[float, float] = (0.0, 0.0),
    delay: float = 0.0,
) -> PolicySetting:
    """Return what a policy was trained on.

    Args:
        vehicle: The record that was flown.
        camera: Of the images, as a data set's manifest tells it; None: there were none.
        courses: Objectives (18,) by course, as `objective_of` gives them, z up.
        spread: Shares by which masses and full thrusts were drawn round the record's.
        delay: From what was sensed to the command's effect [s].
    """
    # The expert's commands are shares of this thrust, and only here is it imported: it brings the MPC with it.
    from airworthy.pilots.expert import full_thrust_of

    told = tuple(CourseObjective(name, _floats(to_objective(numbers))) for name, numbers in courses.items())
    full = full_thrust_of(vehicle)
    mount = None if camera is None else _mount(camera)
    return PolicySetting(vehicle.name, vehicle.mass, full, *spread, vehicle.gravity, delay, mount, told)


def _mount(camera: Mapping[str, Any]) -> PolicyMount:
    # A mount looks along its x axis; strangers know optical frames.
    turned = multiply(np.asarray(camera["mount_attitude"], np.float64), BODY_FROM_CAMERA)
    lens = [float(camera[name]) for name in ("fx", "fy", "cx", "cy")]
    sides = int(camera["width"]), int(camera["height"])
    return PolicyMount(str(camera["sensor"]), _floats(camera["mount_position_m"]), _floats(turned), *sides, *lens)


def _floats(values: ArrayLike) -> tuple[float, ...]:
    # Without negative zeros, which say nothing.
    return tuple(float(value) + 0.0 for value in np.asarray(values, np.float64))


def setting_table(setting: PolicySetting | None) -> dict[str, Any] | None:
    """Return a setting as a contract's table.

    Args:
        setting: None: nobody told.
    """
    if setting is None:
        return None
    camera = setting.camera
    return {
        "vehicle": setting.vehicle,
        "mass_kg": setting.mass,
        "full_thrust_n": setting.full_thrust,
        "mass_spread": setting.mass_spread,
        "thrust_spread": setting.thrust_spread,
        "gravity": setting.gravity,
        "command_delay_s": setting.command_delay,
        "camera": None if camera is None else {**asdict(camera), "frames": _MOUNT},
        "courses": [asdict(item) for item in setting.courses],
    }


_MOUNT = (
    "position [m] of the optical centre from the body's origin, sensed body frame (x forward, y left, z up); attitude x, y, z,"
    " w turns vectors of the optical frame (x right, y down, z forward) into that frame; width to cy [px] are of the images"
    " that the training read: whole ones, or the view itself"
)


def read_setting(table: ContractTable) -> PolicySetting | None:
    """Return a setting from a contract, of its entry `setting`; raises AssetError where it cannot be used."""
    if table.entry("setting", Any) is None:
        return None
    one = ContractTable(table.entry("setting", dict[str, Any]), f"{table.where}setting")
    camera = None
    if one.entry("camera", Any) is not None:
        told = ContractTable(one.entry("camera", dict[str, Any]), f"{one.where}.camera")
        camera = PolicyMount(*[told.entry(item.name, hints(PolicyMount)[item.name]) for item in fields(PolicyMount)])
    return PolicySetting(
        vehicle=one.entry("vehicle", str),
        mass=one.entry("mass_kg", float),
        full_thrust=one.entry("full_thrust_n", float),
        mass_spread=one.entry("mass_spread", float),
        thrust_spread=one.entry("thrust_spread", float),
        gravity=one.entry("gravity", float),
        command_delay=one.entry("command_delay_s", float),
        camera=camera,
        courses=one.entry("courses", tuple[CourseObjective, ...]),
    )
