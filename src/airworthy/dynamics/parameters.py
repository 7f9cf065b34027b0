"""Rows of the parameter array of the rigid family, and how a vehicle fills them.

Parameters are what a vehicle is, relative to its centre of mass, in the units of the equations (`equations.py`). A batch holds
one column per environment, or one for all where nothing differs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.vehicles.record import CollisionBody, Vehicle

Array = NDArray[np.float64]

ROTOR_COUNTS = (4, 6, 8)
"""Rotor numbers that a kernel is built for; vehicles with fewer are padded with rotors that do nothing."""

CONTACT_POINTS = 8


def padded_rotor_count(rotor_count: int) -> int:
    """The smallest kernel that carries this many rotors.

    Raises:
        AirworthyError: If there are more than eight.
    """
    for count in ROTOR_COUNTS:
        if rotor_count <= count:
            return count
    raise AirworthyError(f"A vehicle has {rotor_count} rotors; at most {ROTOR_COUNTS[-1]} are supported.")


def rigid_layout(rotor_count: int) -> Layout:
    """Parameter rows of the rigid family for a padded number of rotors."""
    n = rotor_count
    return Layout(
        {
            "gravity": (),
            "mass": (),
            "mass_inverse": (),
            "inertia": (6,),
            "inertia_inverse": (6,),
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
            "limit": (3,),  # distance from the origin, speed, body rate beyond which a flight counts as diverged
        }
    )


def body_parameters(vehicle: Vehicle, layout: Layout, rotor_count: int) -> Array:
    """Column of a vehicle's rows, shape (layout.size,); rows that depend on the step are left to `SimulationParameters`."""
    column = np.zeros(layout.size)
    put = layout.writer(column)
    com = np.asarray(vehicle.center_of_mass, float)

    put("gravity", vehicle.gravity)
    put("mass", vehicle.mass)
    put("mass_inverse", 1.0 / vehicle.mass)
    put("inertia", vehicle.inertia)
    put("inertia_inverse", invert_inertia(vehicle.inertia))
    rotors = vehicle.rotors
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
        ("rotor_min", [r.speed_min for r in rotors]),
        ("rotor_max", [r.speed_max for r in rotors]),
        ("rotor_rise", [r.response.rise for r in rotors]),
        ("rotor_fall", [r.response.fall for r in rotors]),
        ("rotor_radius", [r.radius for r in rotors]),
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
    battery = vehicle.battery
    if battery is not None:
        slope = (battery.voltage_full - battery.voltage_empty) / battery.capacity
        row = (battery.voltage_full, slope, battery.resistance, battery.voltage_nominal, 1 / battery.efficiency)
        put("battery", (*row, battery.capacity))
    else:
        put("battery", (1.0, 0.0, 0.0, 1.0, 1.0, 1.0))
    points, radius = contact_points(vehicle.body, com)
    put("contact_point", points)
    put("contact_radius", radius)
    put("contact_reach", np.linalg.norm(points, axis=1).max() + radius)
    put("imu_rotation", np.eye(3))
    put("imu_limit", (np.inf, np.inf))
    put("limit", (1e5, 1e3, 1e3))
    return column


def invert_inertia(inertia: tuple[float, ...]) -> Array:
    """Inverse of a symmetric 3x3 matrix, both as (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = inertia
    i = np.linalg.inv(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return np.array([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def contact_points(body: CollisionBody, com: Array) -> tuple[Array, float]:
    """Points of the collision body that meet the ground, from the centre of mass, and the radius about each.

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
