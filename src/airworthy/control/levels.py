"""What a user chooses about control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from airworthy.control.allocation import Priority
from airworthy.control.gain_sets import Value, checked_gains
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import Bound, check_fields

if TYPE_CHECKING:
    from airworthy.vehicles.record import Vehicle

# -----------------------------------------------------------------------------------------------------------------------------
# Control levels: what the numbers of a command mean, and which terms of the geometric law each level uses.
#
# | level | command (units) |
# | --- | --- |
# | rotor_speed | one rotor state per rotor [rad/s; N where the vehicle's motor state is thrust] |
# | rotor_thrust | one thrust per rotor [N] |
# | wrench | force and moment, body frame [N, N m] |
# | rate_thrust | collective thrust along body z [N], body rates [rad/s] |
# | attitude_thrust | collective thrust [N], roll, pitch [rad], yaw rate [rad/s] |
# | acceleration | acceleration, vehicle frame [m/s^2], yaw rate |
# | velocity | velocity, vehicle frame [m/s], yaw rate |
# | velocity_steering | velocity, vehicle frame [m/s], yaw [rad] |
# | position | position, world [m], yaw |
# | pose | position, world [m], attitude quaternion x, y, z, w (airframes that can push any way) |
# | tracking | position, velocity, acceleration, jerk, world, then yaw and yaw rate |
#
# The vehicle frame has the vehicle's yaw and z up. Source: spec of the Aerial Gym controllers, section 6.

ZERO: Vector = (0.0, 0.0, 0.0)


class Reference(NamedTuple):
    """What the controller is asked for; a level reads only its own fields."""

    position: Vector = ZERO
    """World [m]."""
    velocity: Vector = ZERO
    """World, or vehicle frame where the mode says so [m/s]."""
    acceleration: Vector = ZERO
    """Same frame as the velocity [m/s^2]."""
    jerk: Vector = ZERO
    """World [m/s^3]."""
    snap: Vector = ZERO
    """World [m/s^4]; used only with `Mode.angular`."""
    yaw: Scalar = 0.0
    """[rad]"""
    yaw_rate: Scalar = 0.0
    """About the world's vertical [rad/s]."""
    yaw_acceleration: Scalar = 0.0
    """[rad/s^2]; used only with `Mode.angular`."""
    thrust: Scalar = 0.0
    """Collective thrust along body z [N]."""
    roll: Scalar = 0.0
    """[rad], Z-Y-X angles with the present yaw."""
    pitch: Scalar = 0.0
    """[rad]"""
    rate: Vector = ZERO
    """Body rates [rad/s]."""


class Mode(NamedTuple):
    """0/1 masks that turn the one geometric law into a level; numbers or traced values."""

    position: Scalar = 0.0
    """The position error acts."""
    velocity: Scalar = 0.0
    """The velocity error acts."""
    vehicle_frame: Scalar = 0.0
    """Velocity and acceleration arrive in the vehicle frame."""
    hold_yaw: Scalar = 0.0
    """Keep the present yaw as the attitude's; the yaw rate is then a (clamped) rate command."""
    attitude: Scalar = 0.0
    """Body z from roll and pitch rather than from the force."""
    thrust: Scalar = 0.0
    """The collective is given."""
    rate: Scalar = 0.0
    """The rates are given, and the attitude is not controlled."""
    flat: Scalar = 0.0
    """Rate feed-forward from jerk and yaw rate."""
    angular: Scalar = 0.0
    """Moment feed-forward from snap and yaw acceleration (with `flat`)."""


MODES: dict[str, Mode] = {
    "rate_thrust": Mode(thrust=1.0, rate=1.0),
    "attitude_thrust": Mode(thrust=1.0, attitude=1.0, hold_yaw=1.0),
    "acceleration": Mode(vehicle_frame=1.0, hold_yaw=1.0),
    "velocity": Mode(velocity=1.0, vehicle_frame=1.0, hold_yaw=1.0),
    "velocity_steering": Mode(velocity=1.0, vehicle_frame=1.0),
    "position": Mode(position=1.0, velocity=1.0),
    "tracking": Mode(position=1.0, velocity=1.0, flat=1.0),
}
"""Levels served by `geometric_control`. For accelerations in the world frame: `mode._replace(vehicle_frame=0.0)`."""

_AXES = ("x", "y", "z")
_FIELDS: dict[str, tuple[str, ...]] = {
    "rate_thrust": ("thrust", *(f"rate_{a}" for a in _AXES)),
    "attitude_thrust": ("thrust", "roll", "pitch", "yaw_rate"),
    "acceleration": (*(f"acceleration_{a}" for a in _AXES), "yaw_rate"),
    "velocity": (*(f"velocity_{a}" for a in _AXES), "yaw_rate"),
    "velocity_steering": (*(f"velocity_{a}" for a in _AXES), "yaw"),
    "position": (*(f"position_{a}" for a in _AXES), "yaw"),
    "tracking": (
        *(f"{quantity}_{a}" for quantity in ("position", "velocity", "acceleration", "jerk") for a in _AXES),
        "yaw",
        "yaw_rate",
    ),
    "wrench": (*(f"force_{a}" for a in _AXES), *(f"moment_{a}" for a in _AXES)),
    "pose": (*(f"position_{a}" for a in _AXES), *(f"attitude_{a}" for a in (*_AXES, "w"))),
}
LEVELS: tuple[str, ...] = (
    "rotor_speed",
    "rotor_thrust",
    "wrench",
    "rate_thrust",
    "attitude_thrust",
    "acceleration",
    "velocity",
    "velocity_steering",
    "position",
    "pose",
    "tracking",
)
"""Every control level, from the rotors up."""


RATE_LOOP = "rate_thrust:flightgoggles"
"""Level of the FlightGoggles rate loop: filtered gyroscope, PID on body rates; the only one that reads the gyroscope."""


def rate_level(vehicle: Vehicle) -> str:
    """Return the level at which a vehicle takes thrust and body rates as its publication flies it: its own loop, if it has one.

    Those of the family FlightGoggles have one; what inverts it loses thrust above another (`SimulatorConfig.published`).
    """
    return RATE_LOOP if vehicle.extra.get("family") == "flightgoggles" else "rate_thrust"


def command_fields(level: str, rotor_count: int = 4) -> tuple[str, ...]:
    """Return names of a level's command numbers, in order.

    Raises:
        UnknownNameError: No such level.
    """
    if level in ("rotor_speed", "rotor_thrust"):
        return tuple(f"{level}_{i}" for i in range(rotor_count))
    if level not in _FIELDS:
        raise unknown_name("control level", level, LEVELS)
    return _FIELDS[level]


def reference_from_command(level: str, command: Vector) -> Reference:
    """Return the command of a level in `MODES` as a reference; an equation, the level being known at build time.

    Args:
        level: A key of `MODES`.
        command: Scalars in the order of `command_fields`; more than it needs are ignored.
    """
    if level not in MODES:
        raise unknown_name("level of the geometric controller", level, MODES)
    names = command_fields(level)
    if len(command) < len(names):
        raise AirworthyError(f"A {level} command has {len(names)} numbers ({', '.join(names)}); {len(command)} arrived.")
    values: dict[str, Any] = {}
    for name, value in zip(names, command, strict=False):
        quantity, _, axis = name.rpartition("_")
        if axis in _AXES:
            values[quantity] = (*values.get(quantity, ()), value)
        else:
            values[name] = value
    return Reference(**values)


def collective_from_normalized(action: Scalar, mass: Scalar, gravity: Scalar) -> Scalar:
    """Return collective thrust [N] of the Aerial Gym action a0: (a0 + 1) m g.

    Args:
        action: a0 in [-1, 1].
        mass: Believed [kg].
        gravity: [m/s^2]
    """
    return (action + 1.0) * mass * gravity


def normalized_from_collective(thrust: Scalar, mass: Scalar, gravity: Scalar) -> Scalar:
    """Return the Aerial Gym action a0 of a collective thrust [N].

    Args:
        thrust: [N]
        mass: Believed [kg].
        gravity: [m/s^2]
    """
    return thrust / (mass * gravity) - 1.0


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ControlConfig:
    """Gains, allocation and variants of the control laws."""

    gains: str = "auto"
    """Geometric gains: "auto" derives them from the vehicle, else the name of a set or a TOML file (`read_gain_set`)."""
    gain_values: tuple[tuple[str, Value], ...] = ()
    """Single gains and limits that replace those of `gains`: names of `gain_sets.GEOMETRIC_GAINS` or `GEOMETRIC_LIMITS`, each
    with its number or numbers."""
    rate_gains: str = "flightgoggles"
    """Gains of the FlightGoggles rate loop."""
    mellinger_gains: str = "mellinger_firmware"
    """Gains of the Mellinger law."""
    joint_allocation: Literal["measured", "neutral"] = "measured"
    """Of vehicles with joints: rotors are allocated by the angles that the joints have, or by those that flights start from;
    centre of mass and inertia follow the joints in both."""
    allocation: Literal["bounded", "pseudo_inverse"] = "bounded"
    """From wrench to rotor thrusts."""
    priority: Priority | None = None
    """What bounded allocation serves first where the rotors cannot give a whole wrench; what comes last is given up first.
    None: as a file of gains says, else attitude-force-yaw (`gain_parameters.priority_of`)."""
    acceleration_frame: Literal["vehicle", "world"] = "vehicle"
    """Frame of commands at level "acceleration"."""
    published_filter: bool = False
    """Discretise the rate loop's low-pass by backward Euler, as published, instead of exactly."""
    overflow: Literal["subtract", "clip"] = "subtract"
    """Crazyflie motor commands above full: take the excess from all motors, or clip each."""
    voltage_chain: bool = True
    """Crazyflie motor commands go through the vehicle's voltage chain where it has one."""
    rotor_lead: Annotated[float, Bound(0.0, 100.0)] = 0.0
    """Factor by which geometric and SI Mellinger laws hurry slow rotors, from their measured state; 1: none, 0: as much as a
    lag above 0.03 s asks for, at most 4 (none with a named gain set)."""
    drag_feed_forward: bool = True
    """Tracking laws make up for the drag that the believed vehicle has at the reference velocity."""

    def __post_init__(self) -> None:
        check_fields(self, "ControlConfig.")
        if self.priority is not None and self.allocation == "pseudo_inverse":
            raise AirworthyError(
                f"ControlConfig.priority is {self.priority}, which the pseudo-inverse has no use for: leave it out, or take"
                ' allocation="bounded".'
            )
        checked_gains(dict(self.gain_values), "gain_values")
