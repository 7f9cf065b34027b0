"""Rows of the state and input arrays of the rigid family."""

from __future__ import annotations

import math
from enum import IntFlag

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import CollisionBody, Rotor, Vehicle

# ---- Rows of the parameter array of the rigid family, and how a vehicle fills them ------------------------------------------
#
# Parameters are what a vehicle is, relative to its centre of mass, in the units of the equations (`equations.py`). A batch
# holds one column per environment, or one for all where nothing differs.

ROTOR_COUNTS = (4, 6, 8, 12, 16)
"""Rotor numbers that a kernel is built for; vehicles with fewer are padded with rotors that do nothing."""

CONTACT_POINTS = 8

SPANS_MAX = 10_000
"""Most spans of an impulsive disturbance that one step covers; a guard, since a step of 1 s has as many at the highest rate."""


def padded_rotor_count(rotor_count: int) -> int:
    """Return the smallest kernel that carries this many rotors.

    Raises:
        AirworthyError: If there are more than the largest kernel carries.
    """
    for count in ROTOR_COUNTS:
        if rotor_count <= count:
            return count
    raise AirworthyError(f"A vehicle has {rotor_count} rotors; at most {ROTOR_COUNTS[-1]} are supported.")


def rigid_layout(rotor_count: int) -> Layout:
    """Return parameter rows of the rigid family for a padded number of rotors."""
    n = rotor_count
    return Layout(
        {
            "gravity": (),
            "mass": (),
            "mass_inverse": (),
            "inertia": (6,),
            "inertia_inverse": (6,),
            "rotor_count": (),  # rotors that the vehicle has; commands to those beyond are not read
            "rotor_axis": (n, 3),
            "rotor_lever": (n, 3),  # hub from the centre of mass, cross axis [m]
            "rotor_position": (n, 3),
            "rotor_thrust": (n, 3),
            "rotor_torque": (n, 3),  # positive along the axis: the spin is in it
            "rotor_inertia": (n,),  # times spin
            "rotor_min": (n,),
            "rotor_max": (n,),
            "rotor_rise": (n, 2),
            "rotor_fall": (n, 2),
            "rotor_rise_keep": (n,),  # exp(-dt / tau), for the exact update
            "rotor_fall_keep": (n,),
            "rotor_rise_keep_half": (n,),
            "rotor_fall_keep_half": (n,),
            "rotor_hub_drag": (n, 2),  # across and along the axis
            "rotor_flapping": (n,),
            "rotor_translational_lift": (n,),
            "rotor_exact": (),  # 1: rotors advance by their exact solution
            "rotor_radius": (n,),
            "drag_linear": (3,),
            "drag_norm": (3,),
            "drag_axis": (3,),
            "drag_rotor": (3,),
            "drag_center": (3,),  # from the centre of mass
            "angular_linear": (3,),
            "angular_norm": (3,),
            "angular_axis": (3,),
            "force_noise": (3,),  # standard deviation per step
            "moment_noise": (3,),
            "disturbance_probability": (),
            "disturbance_ratio": (),  # spans that a push is drawn for, per physics step
            "disturbance_force": (3,),
            "disturbance_torque": (3,),
            "wind": (3,),
            "gust": (3,),  # peak of a 1-cosine pulse [m/s], world
            "gust_start": (),
            "gust_duration": (),
            "dryden_keep": (3,),  # first-order factor per step and axis
            "dryden_gain": (3,),
            "dryden_mix": (3,),
            "ground_effect": (),  # coefficient of the (radius / 4 h)^2 law; 0: none
            "battery": (6,),  # full, slope per A s, resistance, nominal, 1 / efficiency, capacity
            "imu_rotation": (9,),
            "imu_position": (3,),
            "imu_noise": (6,),  # standard deviation per sample, accelerometer then gyroscope
            "imu_walk": (6,),  # standard deviation of a bias increment per step
            "imu_limit": (2,),
            "contact_point": (CONTACT_POINTS, 3),
            "contact_radius": (),
            "contact_reach": (),  # farthest that the body extends from its centre of mass [m]
            "ground_height": (),
            "friction": (),
            "restitution": (),
            "rolling": (),  # share of the contact radius at which the push can act against rolling
            "limit": (3,),  # distance from the origin, speed, body rate beyond which a flight counts as diverged
        }
    )


def battery_row(vehicle: Vehicle) -> tuple[float, ...]:
    """Return a battery's row: full voltage [V], slope [V/(A s)], resistance [ohm], nominal voltage [V], one over the
    efficiency, capacity [A s]; of a vehicle without, one that never sags.

    Args:
        vehicle: Whose.
    """
    battery = vehicle.battery
    if battery is None:
        return (1.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    slope = (battery.voltage_full - battery.voltage_empty) / battery.capacity
    row = (battery.voltage_full, slope, battery.resistance, battery.voltage_nominal, 1 / battery.efficiency)
    return (*row, battery.capacity)


def body_parameters(vehicle: Vehicle, layout: Layout, rotor_count: int) -> Array:
    """Return the column of a vehicle's rows, shape (layout.size,); rows that depend on the step are left to
    `simulation.family`.

    Args:
        vehicle: The vehicle.
        layout: Of the parameter rows.
        rotor_count: Rotors that the layout holds; those beyond the vehicle's own are padding that gives neither thrust nor
            torque.

    Raises:
        AirworthyError: It has joints.
    """
    refuse_links(vehicle, "The rigid family")
    column = np.zeros(layout.size)
    put = layout.writer(column)
    com = np.asarray(vehicle.center_of_mass, float)

    put("gravity", vehicle.gravity)
    put("mass", vehicle.mass)
    put("mass_inverse", 1.0 / vehicle.mass)
    put("inertia", vehicle.inertia)
    put("inertia_inverse", invert_inertia(vehicle.inertia))
    rotors = vehicle.rotors
    put("rotor_count", len(rotors))
    axis, position = np.zeros((rotor_count, 3)), np.zeros((rotor_count, 3))
    axis[:, 2] = 1.0
    axis[: len(rotors)] = [r.axis for r in rotors]
    position[: len(rotors)] = np.asarray([r.position for r in rotors]) - com
    put("rotor_axis", axis)
    put("rotor_position", position)
    put("rotor_lever", np.cross(position, axis))
    for name, values in (
        ("rotor_thrust", [r.thrust for r in rotors]),
        ("rotor_torque", [np.multiply(r.spin, r.torque) for r in rotors]),
        ("rotor_inertia", [r.spin * r.inertia for r in rotors]),
        ("rotor_min", [_least_speed(r) for r in rotors]),
        ("rotor_max", [r.speed_max for r in rotors]),
        ("rotor_rise", [r.response.rise for r in rotors]),
        ("rotor_fall", [r.response.fall for r in rotors]),
        ("rotor_radius", [r.radius for r in rotors]),
        ("rotor_hub_drag", [r.hub_drag for r in rotors]),
        ("rotor_flapping", [r.flapping for r in rotors]),
        ("rotor_translational_lift", [r.translational_lift for r in rotors]),
    ):
        array = np.zeros((rotor_count, *np.shape(values)[1:]))
        array[: len(rotors)] = values
        put(name, array)
    drag = vehicle.drag
    put("drag_linear", drag.linear)
    put("drag_norm", drag.quadratic_norm)
    put("drag_axis", drag.quadratic_axis)
    put("drag_rotor", drag.rotor_speed)
    put("drag_center", drag.center)
    put("angular_linear", drag.angular_linear)
    put("angular_norm", drag.angular_norm)
    put("angular_axis", drag.angular_axis)
    put("disturbance_probability", vehicle.disturbance.probability)
    put("disturbance_force", vehicle.disturbance.force_max)
    put("disturbance_torque", vehicle.disturbance.torque_max)
    put("battery", battery_row(vehicle))
    points, radius = contact_points(vehicle.body, com)
    put("contact_point", points)
    put("contact_radius", radius)
    put("contact_reach", np.linalg.norm(points, axis=1).max() + radius)
    put("imu_rotation", np.eye(3))
    put("imu_limit", (np.inf, np.inf))
    put("limit", (1e5, 1e3, 1e3))
    return column


def _least_speed(rotor: Rotor) -> float:
    """Lower limit [rad/s]; of a rotor that gives no thrust at any speed, a hundredth of its range below standing still.

    Allocation asks such a rotor to stand still for good: nothing is lost there that it could have given, so that the share of
    steps with a rotor at a limit does not count it. One whose torque is felt at its least speed keeps that speed.
    """
    if any(rotor.thrust) or (any(rotor.torque) and rotor.speed_min > 0.0):
        return rotor.speed_min
    return min(rotor.speed_min, 0.0) - 0.01 * (rotor.speed_max - rotor.speed_min)


def invert_inertia(inertia: tuple[float, ...]) -> Array:
    """Return the inverse of a symmetric 3x3 matrix, both as (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = inertia
    i = np.linalg.inv(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return np.array([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def contact_points(body: CollisionBody, com: Array) -> tuple[Array, float]:
    """Return points of the collision body that meet the ground, from the centre of mass, and the radius about each.

    A box gives its corners, a cylinder four points on each rim, a sphere its centre with its radius.
    """
    center = np.asarray(body.center, float) - com
    if body.shape == "sphere":
        return np.tile(center, (CONTACT_POINTS, 1)), body.size[0]
    corners = np.array([[x, y, z] for z in (-1, 1) for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))], float)
    scale = np.array(body.size, float)
    if body.shape == "cylinder":
        scale = np.array([body.size[0] / np.sqrt(2), body.size[0] / np.sqrt(2), body.size[2]])
    return center + corners * scale, 0.0


# -----------------------------------------------------------------------------------------------------------------------------

COMMAND_ROWS = 16
"""Widest command: a tracking reference (position, velocity, acceleration, jerk, yaw, yaw rate) has 14 numbers."""


DELAY_SLOTS_MAX = 1024
"""Ours: most commands of a vehicle on their way to its rotors; a dead time of a second at 960 Hz."""


def delay_slots(steps: float) -> int:
    """Return how many commands are kept of a vehicle whose dead time lasts some physics steps: 0, or a power of two.

    Raises:
        AirworthyError: There are too many.
    """
    if steps <= 0.0:
        return 0
    # That of the present step, too; between whole steps two are mixed.
    wanted = math.ceil(steps) + 1
    if wanted > DELAY_SLOTS_MAX:
        raise AirworthyError(
            f"A dead time of {steps:.4g} physics steps from command to rotor is more than the {DELAY_SLOTS_MAX - 1} that are"
            " kept: lower physics_rate, or command_delay."
        )
    return 1 << (wanted - 1).bit_length()


def delayed_layout(vehicle: Layout, state: bool, rotor_count: int, slots: int) -> Layout:
    """Return rows of the rigid family with those that a dead time of commands needs behind them.

    Args:
        vehicle: The rows without.
        state: Whether they are those of the state, else of parameters.
        rotor_count: Padded.
        slots: Commands on their way, of `delay_slots`; 0: the rows as they are.
    """
    if not slots:
        return vehicle
    # Commands as limited, oldest first; and the dead time in physics steps.
    own: dict[str, tuple[int, ...]] = {"rotor_queue": (slots, rotor_count)} if state else {"command_delay": ()}
    return Layout({**vehicle.fields, **own})


def rigid_state_layout(rotor_count: int) -> Layout:
    """Return state rows of the rigid family for a padded number of rotors."""
    n = rotor_count
    return Layout(
        {
            "position": (3,),  # world [m]
            "velocity": (3,),  # world [m/s]
            "attitude": (4,),  # x, y, z, w, body to world
            "rate": (3,),  # body [rad/s]
            "rotor_speed": (n,),
            "position_residual": (3,),  # what float32 could not keep of the position [m]
            "launch_base": (3,),  # position that the displacement of an unfinished launch counts from [m]
            "launch_moved": (3,),  # that displacement; both zero between control periods
            "rotor_command": (n,),  # as followed in the last step
            "saturated": (),  # share of the last launch's steps with a rotor command beyond a limit
            "contact": (),  # steps of the last launch that touched the ground or the scene
            "impact_speed": (),  # fastest approach at such a contact in the last launch [m/s]
            "held": (),  # 1 within a launch while it waits for the exact query of scene contact
            "status": (),  # 0 flying, 1 diverged, 2 stopped by contact; a flight whose status is not 0 is frozen
            "acceleration": (3,),  # specific force, body, at the start of the last step [m/s^2]
            "wind": (3,),  # air velocity at the start of the last step, world [m/s]
            "accelerometer_bias": (3,),
            "gyroscope_bias": (3,),
            "imu": (6,),  # last sample: accelerometer [m/s^2], gyroscope [rad/s], sensor frame
            "turbulence": (5,),
            "battery_charge": (),  # used so far [A s]
            "battery_ratio": (),  # voltage over nominal
            "rate_filtered": (3,),  # rate loop: low-passed rate and its derivative
            "rate_slope": (3,),
            "rate_integral": (3,),
            "position_integral": (3,),  # Mellinger
            "moment_integral": (3,),
            "rate_error": (3,),
        }
    )


def input_layout() -> Layout:
    """Return rows of the input array: commands and what acts from outside."""
    return Layout(
        {
            "command": (COMMAND_ROWS,),
            "command_previous": (COMMAND_ROWS,),
            "delay": (),  # steps of a launch that still follow the previous command
            "force": (3,),  # external, world [N]
            "moment": (3,),  # external, body [N m]
            "downwash": (),  # from the vehicles of the group, along world z [N]
            "safe_center": (3,),  # ball in which the centre of mass is free of the scene: its centre, world [m]
            "safe_square": (),  # and its squared radius [m^2]; negative: unknown
        }
    )


class Effects(IntFlag):
    """Uniform switches around the traced blocks: what a launch computes at all."""

    PLANAR = 1 << 0
    SQUARE = 1 << 1
    SHARED_PARAMETERS = 1 << 18
    DRAG = 1 << 16
    DRAG_FULL = 1 << 17
    WRENCH_NOISE = 1 << 2
    IMU = 1 << 3
    IMU_NOISE = 1 << 4
    DISTURBANCE = 1 << 5
    WIND = 1 << 6
    TURBULENCE = 1 << 7
    GROUND = 1 << 8
    GROUND_EFFECT = 1 << 9
    BATTERY = 1 << 10
    EXACT_ROTORS = 1 << 11
    DELAY = 1 << 12
    EXTERNAL = 1 << 13
    IMU_LOG = 1 << 14
    GYRO_FEEDBACK = 1 << 15
    HUB_AIR = 1 << 23
    PSEUDO_INVERSE = 1 << 19
    YAW_BEFORE_FORCE = 1 << 26
    FORCE_FIRST = 1 << 24
    """Orders of the bounded allocation other than attitude, force, yaw."""
    LEANING = 1 << 25
    """Some vehicle does not hover level, and its law steers the frame that does."""
    IRREGULAR = 1 << 27
    """Some vehicle's rotors reach their limits at different values of the collective, and allocation makes use of it."""
    DOWNWASH = 1 << 20
    UNFINISHED = 1 << 21
    """A part of a launch: more of it follows."""
    CLEARANCE = 1 << 22
    """Flights are watched for leaving their safe balls."""
