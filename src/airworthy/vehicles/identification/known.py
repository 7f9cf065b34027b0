"""What is known of a vehicle before its logs are read: mass, geometry, and numbers with errors that somebody measured."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields, shown
from airworthy.vehicles.bench.motor_prior import MotorPrior
from airworthy.vehicles.bench.result import BenchFit
from airworthy.vehicles.check import DELAY_MAX, SAG_MAX, check
from airworthy.vehicles.record import UNCERTAIN, CollisionBody, Drag, Rotor, RotorResponse, Vehicle
from airworthy.vehicles.uncertainty import DRAGS

__all__ = ["MEASURABLE", "Known", "MeasuredValue", "Parts", "frame_vehicle", "measured", "parts_of"]

NO_LOG = "No log was given; expected at least one flight with motor commands, gyro and accelerometer."
SPEED_NOMINAL = 1000.0
"""Rotor state of full command where no log tells speeds [rad/s]: a scale that no flight depends on."""
INERTIA_SHARE = 0.25
"""Ixx over mass and squared arm; of catalogue quadrotors 0.15 to 0.4."""
IZZ_RATIO = 1.83
"""Izz over the mean of Ixx and Iyy of flat quadrotors (Eschmann 2024)."""
TORQUE_SHARE = 0.08
"""Torque over thrust, and over the arm; of propellers C_P / (2 pi C_T) D, D about 1.1 arms."""
GRAVITY = 9.81
LOADING = (0.3, 1000.0)
"""Weight over a disc of twice the arms [N/m^2]: of the catalogue's vehicles 2.8 to 61 (ours, with room on both sides)."""

GYRATION = 1.5
"""Radius of gyration over the distance of the outermost hub from the centre of mass, above which a moment of inertia is none
(ours: of flat quadrotors 0.4 to 0.7)."""

MEASURABLE = {
    "inertia.xx": "inertia_xx",
    "inertia.yy": "inertia_yy",
    "inertia.zz": "inertia_zz",
    "torque_ratio": "torque_ratio",
    "lag": "lag",
    "command_delay": "command_delay",
    "center.x": "center_x",
    "center.y": "center_y",
    "damping": "damping",
    "thrust_linear": "thrust_linear",
    "imu.x": "imu_x",
    "imu.y": "imu_y",
    "imu.z": "imu_z",
    "imu.tilt_x": "imu_tilt_x",
    "imu.tilt_y": "imu_tilt_y",
    "drag.height": "drag_height",
    "force_delay": "force_delay",
    "fall_ratio": "fall_ratio",
}
"""Names of what may be given as measured, and what a fit calls it; the mass has an option of its own."""

_FIXABLE = {
    "command_delay": (0.0, DELAY_MAX, " s"),
    "lag": (1e-4, 10.0, " s"),
    "thrust_linear": (-1.0, 2.0, ""),
    "center_x": (-20.0, 20.0, " m"),
    "center_y": (-20.0, 20.0, " m"),
    "sag": (-SAG_MAX, SAG_MAX, ""),
}
"""Of values on a linear scale, and of times: least and most that may be fixed, and the unit."""

_MEASURED = re.compile(r"\s*([-+0-9.eE]+?)\s*(?:\+-|\+/-|±)\s*([0-9.eE][-+0-9.eE]*)\s*")


@dataclass(frozen=True)
class MeasuredValue:
    """A number with its standard deviation."""

    value: float
    sd: float
    source: str = ""
    """Where it comes from, where it is a prior rather than measured: "CAD: frame.urdf"."""

    def __post_init__(self) -> None:
        check_fields(self, "MeasuredValue.")
        if not (math.isfinite(self.value) and math.isfinite(self.sd) and self.sd > 0.0):
            raise AirworthyError(f"A measured number is {self.value}+-{self.sd}; expected finite numbers, the second above 0.")


def measured(text: str, where: str) -> MeasuredValue:
    """Read "1.52+-0.005".

    Args:
        text: Value and standard deviation, SI units.
        where: Names the option in messages.

    Raises:
        AirworthyError: It is something else.
    """
    found = _MEASURED.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        return MeasuredValue(float(found[1]), float(found[2]))
    except ValueError:
        raise AirworthyError(f"{where} is {shown(text)}; expected VALUE+-ERROR in SI units, as 1.52+-0.005.") from None


def _check_fixed(name: str, value: float) -> None:
    """Refuse a value that no vehicle has."""
    if not math.isfinite(value) or (UNCERTAIN[name] == "log" and value <= 0.0):
        above = " above 0" if UNCERTAIN[name] == "log" else ""
        raise AirworthyError(f"{name} cannot be fixed at {value:g}; expected a finite number{above}.")
    low, high, unit = _FIXABLE.get(name, (-math.inf, math.inf, ""))
    if not low <= value <= high:
        raise AirworthyError(f"{name} cannot be fixed at {value:g}{unit}; expected {low:g} to {high:g}{unit}.")


@dataclass(frozen=True)
class Known:
    """What is known beforehand.

    Raises:
        AirworthyError: The mass is missing, or a number or name cannot be.
    """

    mass: tuple[float, float] | None = None
    """Weighed, with its standard deviation [kg]: a log tells thrust over mass only."""
    vehicle: Vehicle | None = None
    """Geometry, spins, and what else is believed beforehand; None: the log's own geometry."""
    measured: Mapping[str, MeasuredValue] = field(default_factory=dict)
    """By names of `MEASURABLE`, SI units."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Held at these values, by names of `UNCERTAIN`."""
    free: Sequence[str] = ()
    """Fitted although the excitation check says that the logs do not tell them, by names of `UNCERTAIN`."""
    order: Sequence[int] = ()
    """For each rotor the column of the logs' motor commands, counted from 0 (what is printed, and --order, count from 1), where
    that is known; empty: the logs tell it."""
    bench: BenchFit | None = None
    """Of motor and propeller on a stand; it may stand in for the mass, since it tells what lifts the vehicle."""
    motor: MotorPrior | None = None
    """What names of motor and propeller promise."""

    def __post_init__(self) -> None:
        if self.mass is None and self.bench is None:
            raise AirworthyError(
                "The vehicle's mass is not given, and a log tells thrust over mass only: weigh it, and give --mass M+-S in kg."
            )
        check_fields(self, "Known.")
        given = None if self.mass is None else MeasuredValue(*self.mass)
        if given is not None and (given.value <= 0.0 or given.sd > 0.5 * given.value):
            raise AirworthyError(f"The mass is {given.value:g}+-{given.sd:g} kg; expected a positive one, known to half of it.")
        if self.order and sorted(self.order) != list(range(len(self.order))):
            said = ", ".join(map(str, self.order))
            raise AirworthyError(
                f"Known.order is ({said}); expected each column from 0 to {len(self.order) - 1} once: it counts from 0, and"
                " --order of the command line from 1."
            )
        for name, number in self.measured.items():
            if name not in MEASURABLE:
                raise unknown_name("measured quantity", name, MEASURABLE)
            if number.value <= 0.0 and (UNCERTAIN.get(MEASURABLE[name]) == "log" or name in ("inertia.zz", "fall_ratio")):
                raise AirworthyError(f"{name} was measured as {number.value:g}; expected a number above 0.")
        for name in (*self.fixed, *self.free):
            if name not in UNCERTAIN or name in DRAGS:
                raise unknown_name("quantity of a vehicle", name, [n for n in UNCERTAIN if n not in DRAGS])
        both = sorted(set(self.fixed) & set(self.free))
        if both:
            raise AirworthyError(f"{both[0]} is both fixed and free; leave one out.")
        for name, value in self.fixed.items():
            _check_fixed(name, value)

    def measured_values(self) -> dict[str, tuple[float, float]]:
        """Return what was measured by names of a fit, with standard deviations; Izz is none of these, see `izz`."""
        found = {MEASURABLE[name]: (number.value, number.sd) for name, number in self.measured.items()}
        found.pop("inertia_zz", None)
        return found

    @property
    def izz(self) -> MeasuredValue | None:
        """Measured moment of inertia about z [kg m^2]; fits have its ratio to the others as a parameter."""
        return self.measured.get("inertia.zz")


# ---- Frames by name ----------------------------------------------------------------------------------------------------------

_FRAMES = {"quad_x": 4, "quad_plus": 4, "hexa_x": 6, "hexa_plus": 6, "octa_x": 8, "octa_plus": 8}


def frame_vehicle(spec: str, mass: float) -> Vehicle:
    """Return a vehicle of a common frame: geometry as said, all else as vehicles of its size have it.

    Rotors are numbered from the front right one clockwise as seen from above ("plus": from the front one), and neighbours turn
    against each other, the first counter-clockwise.

    Args:
        spec: "quad_x:0.028", the name and a length [m]: of quad_x the hubs' distance from the middle along x and along y, of
            all others the arm.
        mass: [kg]

    Raises:
        AirworthyError: No such frame, or a length that is none.
    """
    name, _, text = spec.partition(":")
    if name not in _FRAMES:
        raise unknown_name("frame", name, _FRAMES, "Expected NAME:LENGTH in metres, as quad_x:0.028.")
    try:
        length = float(text)
    except ValueError:
        length = math.nan
    if not 1e-3 <= length <= 20.0:
        raise AirworthyError(f"--frame {shown(spec)} has no length of 0.001 to 20 m; expected NAME:LENGTH, as quad_x:0.028.")
    count = _FRAMES[name]
    arm = length * math.sqrt(2.0) if name == "quad_x" else length
    first = 0.0 if name.endswith("plus") else -math.pi / count
    angles = first - 2.0 * math.pi / count * np.arange(count)
    spots = [(arm * math.cos(a), arm * math.sin(a), 0.0) for a in angles.tolist()]
    hubs = [tuple(round(v, 9) + 0.0 for v in spot) for spot in spots]
    return believed(
        name,
        mass,
        [(h[0], h[1], h[2]) for h in hubs],
        [(0.0, 0.0, 1.0)] * count,
        [-1 if k % 2 == 0 else 1 for k in range(count)],
    )


def believed(
    name: str,
    mass: float,
    positions: Sequence[tuple[float, float, float]],
    axes: Sequence[tuple[float, float, float]],
    spins: Sequence[int],
    torque_ratio: float | None = None,
) -> Vehicle:
    """Return a vehicle of known geometry, with what vehicles of its size and mass have for the rest.

    Args:
        name: Of the record.
        mass: [kg]
        positions: Of the hubs from the centre of mass [m].
        axes: Of thrust.
        spins: +1 where the reaction torque points along the axis.
        torque_ratio: Torque over thrust [m]; None: by the arm.
    """
    arm = float(np.mean([math.hypot(x, y) for x, y, _ in positions]))
    across = INERTIA_SHARE * mass * arm**2
    ratio = TORQUE_SHARE * arm if torque_ratio is None else torque_ratio
    # Twice the weight at full command, all of it square in the command: a fit puts its own in the place.
    lift = sum(axis[2] for axis in axes)
    square = 2.0 * mass * GRAVITY / max(lift, 1e-6) / SPEED_NOMINAL**2
    rotors = tuple(
        Rotor(
            position=position,
            axis=axis,
            thrust=(0.0, 0.0, square),
            torque=(0.0, 0.0, square * ratio),
            spin=-1 if spin < 0 else 1,
            response=RotorResponse.first_order(0.05),
            speed_max=SPEED_NOMINAL,
        )
        for position, axis, spin in zip(positions, axes, spins, strict=True)
    )
    half = max(arm, 1e-3)
    return check(
        Vehicle(
            name=name,
            mass=mass,
            inertia=(across, across, IZZ_RATIO * across, 0.0, 0.0, 0.0),
            rotors=rotors,
            body=CollisionBody("cylinder", (half, half, 0.25 * half)),
            drag=Drag(),
            extra={"gauge": "nominal"},
        )
    )


Parts = Sequence[tuple[float, float]] | Mapping[str, Sequence[tuple[float, float]]]
"""Of logs, start and stop [s]: the same of all, or by names of logs, "" being all."""


def parts_of(parts: Parts, name: str) -> list[tuple[float, float]]:
    """Return the parts of the log of a name."""
    if isinstance(parts, Mapping):
        return [*parts.get("", ()), *(parts.get(name, ()) if name else ())]
    return list(parts)


def refuse_impossible(vehicle: Vehicle, numbers: Mapping[str, MeasuredValue]) -> None:
    """Refuse a mass, arms and moments of inertia that no multirotor has together.

    Args:
        vehicle: Its mass and its hubs.
        numbers: As of `Known.measured`.

    Raises:
        AirworthyError: One sentence.
    """
    _refuse_loading(vehicle)
    _refuse_inertia(vehicle, numbers)


def _refuse_loading(vehicle: Vehicle) -> None:
    """Refuse grams for kilograms, millimetres for metres."""
    middle = vehicle.center_of_mass
    arm = float(np.mean([math.hypot(r.position[0] - middle[0], r.position[1] - middle[1]) for r in vehicle.rotors]))
    if arm == 0.0:
        return
    load = vehicle.mass * GRAVITY / (math.pi * (2.0 * arm) ** 2)
    if not LOADING[0] <= load <= LOADING[1]:
        raise AirworthyError(
            f"A mass of {vehicle.mass:g} kg on arms of {arm:.3g} m weighs {load:.2g} N on each square metre that its rotors may"
            f" span, and multirotors have {LOADING[0]:g} to {LOADING[1]:g}: give the mass in kg (27 g are 0.027), arms in m."
        )


def _refuse_inertia(vehicle: Vehicle, numbers: Mapping[str, MeasuredValue]) -> None:
    """Refuse a moment that needs mass outside the vehicle: g cm^2 or kg mm^2 for kg m^2."""
    reach = max(math.dist(r.position, vehicle.center_of_mass) for r in vehicle.rotors)
    for name, number in numbers.items():
        if name.startswith("inertia.") and reach > 0.0 and number.value > vehicle.mass * (GYRATION * reach) ** 2:
            raise AirworthyError(
                f"{name} was measured as {number.value:g} kg m^2, a radius of gyration of"
                f" {math.sqrt(number.value / vehicle.mass):.3g} m, and the rotors of this {vehicle.mass:.3g} kg reach"
                f" {reach:.3g} m; expected {GYRATION:g} times that at most: give it in kg m^2."
            )


def with_mass(base: Vehicle, mass: float) -> Vehicle:
    """Return a vehicle of another mass; inertia and thrust follow."""
    factor = mass / base.mass
    rotors = tuple(replace(r, thrust=_times(factor, r.thrust), torque=_times(factor, r.torque)) for r in base.rotors)
    inertia = tuple(factor * v for v in base.inertia)
    return replace(
        base, mass=mass, inertia=(inertia[0], inertia[1], inertia[2], inertia[3], inertia[4], inertia[5]), rotors=rotors
    )


def _times(factor: float, polynomial: tuple[float, float, float]) -> tuple[float, float, float]:
    return (factor * polynomial[0], factor * polynomial[1], factor * polynomial[2])
