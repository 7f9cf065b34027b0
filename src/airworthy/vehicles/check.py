"""What a vehicle's parameters must satisfy before anything flies with them.

Every rule names its physical reason. A violation raises `AirworthyError`; file readers turn it into an `AssetError` that
names the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound
from airworthy.vehicles.record import (
    UNCERTAIN,
    Battery,
    CollisionBody,
    Link,
    LinkShape,
    Rotor,
    RotorResponse,
    SensorMount,
    Uncertainty,
    Vehicle,
    VoltageChain,
)

__all__ = ["check", "check_links", "inertia_matrix", "rotor_thrust", "rotor_torque"]

ROTOR_COUNT_MAX = 16
NUMBER_MAX = 1e9
"""No physical value of a vehicle is larger in SI units; beyond it float32 products overflow."""
NUMBER_MIN = 1e-25
"""No physical value of a vehicle that is not zero is smaller; beneath it float32, and quotients, leave their range."""
MASS = Bound(1e-6, 1e6, "kg")
"""From a milligram, the lightest flying robots weigh some ten, to more than any aircraft."""
MOMENT_MIN = 1e-15
"""Least principal moment of inertia [kg m^2]: a milligram within a tenth of a millimetre has some 1e-14."""
TRIANGLE_TOLERANCE = 0.05
"""Relative: identified inertias are rarely better, and a published set (RotorPy's Crazyflie) misses the inequality by 1 %."""

SAG_MAX = 4.0
"""Of an exponent of the supply: thrust that goes with its square, over a state that goes with thrust's root, is 2 or less."""
DELAY_MAX = 1.0
"""[s]"""
DRIFT_MAX = 1.0
"""Of the logarithm of thrust within a flight [1/s]."""
DRAWN_REACH = 6.0
"""Deviations that draws may reach: one of 500 million is further."""
JOINT_COUNT_MAX = 24
LINK_TRIANGLE_TOLERANCE = 1e-9
"""Relative: links are computed or given exactly, and one that breaks the inequality can make a joint's inertia negative."""
SINGULAR = 1e-9
"""Share of a joint's inertia with all others held below which nothing resists it when they are free."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def inertia_matrix(vehicle: Vehicle) -> np.ndarray:
    """Return the inertia about the centre of mass, body axes [kg m^2], shape (3, 3)."""
    xx, yy, zz, xy, xz, yz = vehicle.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def rotor_thrust(rotor: Rotor, state: float) -> float:
    """Return thrust [N] along the axis at a rotor state [rad/s, or N]: c0 + c1 w + c2 w|w|."""
    c0, c1, c2 = rotor.thrust
    return c0 + c1 * state + c2 * state * abs(state)


def rotor_torque(rotor: Rotor, state: float) -> float:
    """Return the reaction torque [N m] at a rotor state: c0 + c1 w + c2 w|w|; times `spin` it is the moment about the axis."""
    c0, c1, c2 = rotor.torque
    return c0 + c1 * state + c2 * state * abs(state)


def check(vehicle: Vehicle) -> Vehicle:
    """Return the vehicle unchanged if it is physically possible.

    Raises:
        AirworthyError: One sentence with the field, its value and the physical reason.
    """
    _require(bool(_NAME.fullmatch(vehicle.name)), f"name {vehicle.name[:80]!r} must be 1 to 64 letters, digits, '_.-'")
    # Before any rule that computes with them: a NaN would pass comparisons that are written the other way round.
    for where, value in _numbers(vehicle, ""):
        _require(math.isfinite(value), f"{where} is {value}, but must be a finite number")
        _require(abs(value) <= NUMBER_MAX, f"{where} is {value:g}, beyond {NUMBER_MAX:g} in SI units: check its unit")
        tiny = value == 0.0 or abs(value) >= NUMBER_MIN
        _require(tiny, f"{where} is {value:g}, which is not zero but less than {NUMBER_MIN:g} in SI units: check its unit")
    if vehicle.links:
        check_links(vehicle.links)
    _check_carriers(vehicle)
    _require(vehicle.mass > 0.0, f"mass is {vehicle.mass:g} kg, but must be positive")
    _require(MASS.holds(vehicle.mass), f"mass is {vehicle.mass:g} kg, but expected {MASS.expected}")
    _require(vehicle.gravity >= 0.0, f"gravity is {vehicle.gravity:g} m/s^2, but must not be negative")
    _check_inertia(vehicle)
    count = vehicle.rotor_count
    _require(1 <= count <= ROTOR_COUNT_MAX, f"rotors holds {count} rotors, but 1 to {ROTOR_COUNT_MAX} can fly")
    _require(vehicle.motor_state in ("speed", "thrust"), f"motor_state is {vehicle.motor_state!r}, but is 'speed' or 'thrust'")
    for index, rotor in enumerate(vehicle.rotors):
        _check_rotor(rotor, f"rotors[{index}]", vehicle.motor_state)
    low, high = vehicle.rotor_range or (0.0, 1.0)
    _require(low < high, f"rotor_range is [{low:g}, {high:g}], but its first end must be the smaller one")
    if vehicle.command_map is not None:
        first, slope = vehicle.command_map
        _require(
            slope > 0.0 and first + slope > 0.0 and vehicle.motor_state == "speed",
            f"command_map is [{first:g}, {slope:g}] rad/s, but speeds grow with the command, and are positive at full command",
        )
    if vehicle.command_sag is not None:
        power, volts = vehicle.command_sag
        _require(
            volts > 0.0 and abs(power) <= SAG_MAX,
            f"command_sag is [{power:g}, {volts:g} V], but commands go with a power of the supply of up to {SAG_MAX:g}, at a"
            " voltage above 0",
        )
    delay = vehicle.command_delay
    _require(0.0 <= delay <= DELAY_MAX, f"command_delay is {delay:g} s, but lies in 0 to {DELAY_MAX:g}")
    if vehicle.uncertainty is not None:
        _check_uncertainty(vehicle.uncertainty)
        _require(
            vehicle.command_sag is not None or "sag" not in vehicle.uncertainty.names,
            "uncertainty.names has 'sag', but without command_sag, [exponent, V], no command goes with the supply: give it, or"
            " take sag out of the uncertainty",
        )
    _check_energy(vehicle)
    _check_noise(vehicle)
    _check_body(vehicle.body)
    _check_sensors(vehicle.sensors)
    _check_battery(vehicle.battery)
    _check_chain(vehicle.voltage_chain)
    return vehicle


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise AirworthyError(f"This vehicle cannot exist: {reason}.")


def _numbers(value: Any, where: str) -> Iterator[tuple[str, float]]:
    """Yield every number of a record with its dotted name."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield where, float(value)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _numbers(getattr(value, item.name), f"{where}.{item.name}" if where else item.name)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{where}.{key}")


def _check_inertia(vehicle: Vehicle) -> None:
    # Principal moments, since products of inertia can hide a negative one behind a sound diagonal.
    moments = np.linalg.eigvalsh(inertia_matrix(vehicle))
    text = ", ".join(f"{m:.4g}" for m in moments)
    _require(moments[0] > 0.0, f"inertia has the principal moments {text} kg m^2, but all must be positive")
    _require(moments[0] >= MOMENT_MIN, f"inertia has the principal moments {text} kg m^2, but none is under {MOMENT_MIN:g}")
    _require(
        moments[0] + moments[1] >= moments[2] * (1.0 - TRIANGLE_TOLERANCE),
        f"inertia has the principal moments {text} kg m^2, but no body's largest exceeds the sum of the others",
    )


def _check_uncertainty(told: Uncertainty) -> None:
    """Its lists belong together, and what they describe is a distribution."""
    names, count = told.names, len(told.names)
    unknown = [name for name in names if name not in UNCERTAIN]
    _require(not unknown, f"uncertainty.names has {str(unknown[:1])[1:-1]}; known are {', '.join(UNCERTAIN)}")
    _require(len(set(names)) == count > 0, "uncertainty.names is empty or names a value twice")
    for name in ("transform", "mean", "sd", "correlation", "share"):
        length = len(getattr(told, name))
        _require(length == count, f"uncertainty.{name} has {length} entries, but uncertainty.names has {count}")
    for name, transform in zip(names, told.transform, strict=True):
        scale = UNCERTAIN[name]
        _require(transform == scale, f"uncertainty.transform of {name} is {transform!r}, but is {scale!r}")
    _require(all(len(row) == count for row in told.correlation), f"uncertainty.correlation must have {count} rows of {count}")
    _require(min(told.sd) >= 0.0, "uncertainty.sd has a negative entry, but a deviation has no sign")
    for name, mean, sd in zip(names, told.mean, told.sd, strict=True):
        _check_spread(name, mean, sd)
    _require(all(-1e-6 <= s <= 1.0 for s in told.share), "uncertainty.share has an entry outside 0 to 1")
    _require(told.state != 0.0, "uncertainty.state is 0, but thrust is told at a rotor state that has some")
    drift = told.thrust_drift
    if drift is not None:
        _require(drift.sd >= 0.0, f"uncertainty.thrust_drift.sd is {drift.sd:g}, but a deviation has no sign")
        fast = max(abs(drift.rate), drift.sd)
        _require(fast <= DRIFT_MAX, f"uncertainty.thrust_drift tells {fast:g} 1/s, but no battery is empty within a second")
    matrix = np.array(told.correlation)
    even = np.allclose(matrix, matrix.T, atol=1e-9) and np.allclose(np.diag(matrix), 1.0, atol=1e-9)
    _require(bool(even), "uncertainty.correlation must be symmetric with ones on its diagonal")
    least = float(np.linalg.eigvalsh(matrix)[0])
    _require(least > -1e-6, f"uncertainty.correlation has the eigenvalue {least:.3g}, but none of a distribution is negative")


def _check_spread(name: str, mean: float, sd: float) -> None:
    """Refuse a spread of which draws reach numbers that no vehicle has."""
    log = UNCERTAIN[name] == "log"
    low, high = (math.log(NUMBER_MIN), math.log(NUMBER_MAX)) if log else (-NUMBER_MAX, NUMBER_MAX)
    reach = f"uncertainty tells {name} as {mean:g} +- {sd:g}{' of its logarithm' if log else ''}"
    _require(
        low <= mean - DRAWN_REACH * sd and mean + DRAWN_REACH * sd <= high,
        f"{reach}, of which {DRAWN_REACH:g} deviations reach beyond all numbers in SI units: check its scale",
    )


def _check_rotor(rotor: Rotor, where: str, motor_state: str) -> None:
    # Not brought to length 1 here: a file that says otherwise may have meant something else, such as a scale.
    length = math.sqrt(sum(a * a for a in rotor.axis))
    _require(abs(length - 1.0) < 1e-6, f"{where}.axis has length {length:.6g}, but a direction has length 1")
    _require(rotor.spin in (-1, 1), f"{where}.spin is {rotor.spin}, but is +1 (reaction torque along the axis) or -1")
    _require(
        rotor.speed_min < rotor.speed_max,
        f"{where}.speed_min is {rotor.speed_min:g} and speed_max {rotor.speed_max:g}, but the minimum must be smaller",
    )
    _require(rotor.speed_max > 0.0, f"{where}.speed_max is {rotor.speed_max:g}, but must be positive")
    _require(rotor.inertia >= 0.0 and rotor.radius >= 0.0, f"{where}.inertia and radius must not be negative")
    _require(rotor_thrust(rotor, rotor.speed_max) >= 0.0, f"{where}.thrust is negative at speed_max, so it cannot lift")
    _require(rotor_torque(rotor, rotor.speed_max) >= 0.0, f"{where}.torque is negative at speed_max; its sign belongs in spin")
    _require(min(rotor.hub_drag) >= 0.0, f"{where}.hub_drag is negative, which would push, not brake")
    _require(rotor.translational_lift >= 0.0, f"{where}.translational_lift is negative, which would pull the rotor down")
    if motor_state == "thrust":
        _require(rotor.thrust == (0.0, 1.0, 0.0), f"{where}.thrust must be [0, 1, 0] when motor_state is 'thrust'")
    _check_response(rotor.response, f"{where}.response")


def _check_response(response: RotorResponse, where: str) -> None:
    for name, (a, b) in (("rise", response.rise), ("fall", response.fall)):
        _require(a >= 0.0 and b >= 0.0, f"{where}.{name} is [{a:g}, {b:g}], but a negative rate runs away from its command")
        # One of the two is enough: first order has b = 0.
        _require(a + b > 0.0, f"{where}.{name} is zero, so the rotor would never follow its command")


def _check_energy(vehicle: Vehicle) -> None:
    """Drag must take energy out, never put it in."""
    for item in fields(vehicle.drag):
        if item.name == "center":
            continue
        _require(min(getattr(vehicle.drag, item.name)) >= 0.0, f"drag.{item.name} is negative, which would push, not brake")


def _check_noise(vehicle: Vehicle) -> None:
    for name in ("force", "moment"):
        _require(min(getattr(vehicle.wrench_noise, name)) >= 0.0, f"wrench_noise.{name} is a variance and must not be negative")
    disturbance = vehicle.disturbance
    _require(0.0 <= disturbance.probability <= 1.0, f"disturbance.probability is {disturbance.probability:g}, not in 0 to 1")
    _require(0.0 < disturbance.rate <= 1e4, f"disturbance.rate is {disturbance.rate:g} Hz, but lies in 0 to 10000")
    _require(min(disturbance.force_max + disturbance.torque_max) >= 0.0, "disturbance bounds must not be negative")


def _check_body(body: CollisionBody) -> None:
    _require(body.shape in ("sphere", "box", "cylinder"), f"body.shape is {body.shape!r}, but is 'sphere', 'box' or 'cylinder'")
    _require(min(body.size) > 0.0, f"body.size is {list(body.size)}, but every half extent must be positive")
    # Half extents are three numbers for every shape, of which round ones must agree.
    round_pairs = {"sphere": body.size, "cylinder": body.size[:2], "box": ()}[body.shape]
    _require(len(set(round_pairs)) <= 1, f"body.size is {list(body.size)}, but the radii of a {body.shape} must be equal")


def _check_sensors(sensors: tuple[SensorMount, ...]) -> None:
    names = [sensor.name for sensor in sensors]
    for index, sensor in enumerate(sensors):
        length = math.sqrt(sum(q * q for q in sensor.orientation))
        _require(abs(length - 1.0) < 1e-6, f"sensors[{index}].orientation has length {length:.6g}, but a rotation has length 1")
        _require(names.count(sensor.name) == 1, f"two sensors are named {sensor.name!r}, but each needs its own name")
        keys = [key for key, _ in sensor.parameters]
        _require(len(set(keys)) == len(keys), f"sensors[{index}].parameters names a number twice")


def _check_battery(battery: Battery | None) -> None:
    if battery is None:
        return
    _require(battery.voltage_full > battery.voltage_empty > 0.0, "battery.voltage_full must exceed voltage_empty, both zero")
    _require(battery.voltage_nominal > 0.0 and battery.capacity > 0.0, "battery.voltage_nominal and capacity must be positive")
    _require(battery.resistance >= 0.0, f"battery.resistance is {battery.resistance:g} ohm, but must not be negative")
    _require(0.0 < battery.efficiency <= 1.0, f"battery.efficiency is {battery.efficiency:g}, but lies in 0 to 1")


def _check_chain(chain: VoltageChain | None) -> None:
    if chain is None:
        return
    _require(chain.supply > 0.0 and chain.command_to_grams > 0.0, "voltage_chain.supply and command_to_grams must be positive")
    _require(0.0 <= chain.pwm_min < chain.pwm_max, "voltage_chain.pwm_min must be smaller than pwm_max and not negative")
    _require(chain.speed_slope > 0.0, "voltage_chain.speed_slope must be positive, since more voltage spins faster")


# ---- Vehicles with joints ---------------------------------------------------------------------------------------------------


def check_links(links: tuple[Link, ...]) -> None:
    """Check the links of a vehicle with joints, by themselves.

    Raises:
        AirworthyError: They are no tree, a number cannot be, or nothing resists a joint; one sentence.
    """
    for where, value in _numbers(links, "links"):
        _require(
            math.isfinite(value) and abs(value) <= NUMBER_MAX, f"{where} is {value}, but must be finite, up to {NUMBER_MAX:g}"
        )
    _require(links[0].joint is None and not links[0].parent, f"links[0] is the root, but {links[0].name!r} hangs on a joint")
    count = len(links) - 1
    _require(1 <= count <= JOINT_COUNT_MAX, f"links holds {count} joints, but 1 to {JOINT_COUNT_MAX} can be flown")
    known: set[str] = set()
    for index, link in enumerate(links):
        where = f"links[{index}] ({link.name[:60]!r})"
        _require(bool(_NAME.fullmatch(link.name)), f"{where} must be named by 1 to 64 letters, digits, '_.-'")
        _require(link.name not in known, f"two links are named {link.name!r}, but each needs its own name")
        if index:
            _require(
                link.joint is not None,
                f"{where} has no joint, but only the root has none: fixed links belong to what they are fixed to",
            )
            _require(
                link.parent in known, f"{where} hangs on {link.parent[:60]!r}, but that is no link before it: no tree has loops"
            )
            _check_joint(link, where)
        known.add(link.name)
        _require(all(d >= 0.0 for d in link.drag), f"{where}: drag is {link.drag}, but a negative one would drive the link")
        _check_link_inertia(link, where)
        for number, shape in enumerate(link.shapes):
            _check_shape(shape, f"{where}: shapes[{number}]")
    _require(
        links[0].mass > 0.0, f"links[0] ({links[0].name!r}) has no mass, but position is that of the root's own centre of mass"
    )
    _check_resistance(links)


_HEARD = {
    "kp": ("spring", "morphy"),
    "rest": ("spring", "morphy"),
    "weight": ("morphy",),
    "active": ("spring", "spring with kp = 0", "torque"),
}
"""What only some laws read: elsewhere it would be ignored without a word."""


def _check_joint(link: Link, where: str) -> None:
    joint = link.joint
    assert joint is not None
    for name, value in (("axis", joint.axis), ("rotation", joint.rotation)):
        length = math.sqrt(sum(v * v for v in value))
        _require(abs(length - 1.0) < 1e-6, f"{where}: joint.{name} has length {length:.6g}, but must have length 1")
    _require(
        joint.law in ("spring", "morphy", "torque"),
        f"{where}: joint.law is {joint.law!r}, but is 'spring', 'morphy' or 'torque'",
    )
    for name in ("kp", "kd", "armature"):
        value = getattr(joint, name)
        _require(value >= 0.0, f"{where}: joint.{name} is {value:g}, but a negative one would drive the joint")
    for name in ("effort", "rate_max"):
        value = getattr(joint, name)
        _require(value is None or value > 0.0, f"{where}: joint.{name} is {value}, but must be positive, or left out")
    low = -math.inf if joint.lower is None else joint.lower
    high = math.inf if joint.upper is None else joint.upper
    _require(low < high, f"{where}: joint.lower is {low:g} and upper {high:g}, but the lower one must be smaller")
    first, last = joint.initial_low, joint.initial_high
    _require(
        first <= last, f"{where}: joint.initial_low is {first:g} and initial_high {last:g}, but the low one must not be larger"
    )
    _require(
        low <= first and last <= high,
        f"{where}: joint.initial_low to initial_high is {first:g} to {last:g}, beyond the stops at {low:g} and {high:g}: state"
        " both within them",
    )
    for name, heard in _HEARD.items():
        law = "spring with kp = 0" if joint.law == "spring" and joint.kp == 0.0 else joint.law
        _require(
            not getattr(joint, name) or law in heard,
            f"{where}: joint.{name} is {getattr(joint, name)}, but the law {law!r} does not read it: leave it out",
        )


def _check_shape(shape: LinkShape, where: str) -> None:
    _require(
        shape.shape in ("sphere", "box", "cylinder"), f"{where}.shape is {shape.shape!r}, but is 'sphere', 'box' or 'cylinder'"
    )
    _require(min(shape.size) > 0.0, f"{where}.size is {list(shape.size)}, but every half extent must be positive")
    alike = {"sphere": shape.size, "cylinder": shape.size[:2], "box": ()}[shape.shape]
    _require(len(set(alike)) <= 1, f"{where}.size is {list(shape.size)}, but the radii of a {shape.shape} must be equal")
    length = math.sqrt(sum(v * v for v in shape.rotation))
    _require(abs(length - 1.0) < 1e-6, f"{where}.rotation has length {length:.6g}, but a rotation has length 1")


def _check_link_inertia(link: Link, where: str) -> None:
    _require(link.mass >= 0.0, f"{where}: mass is {link.mass:g} kg, but must not be negative")
    xx, yy, zz, xy, xz, yz = link.inertia
    moments = np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    text = ", ".join(f"{m:.4g}" for m in moments)
    small = LINK_TRIANGLE_TOLERANCE * moments[2]
    _require(moments[0] >= -small, f"{where}: inertia has the principal moments {text} kg m^2, but none may be negative")
    _require(
        moments[0] + moments[1] >= moments[2] - small,
        f"{where}: inertia has the principal moments {text} kg m^2, but no body's largest exceeds the sum of the others",
    )


def _check_resistance(links: tuple[Link, ...]) -> None:
    """Refuse a joint that has no inertia when all others are free: articulated inertias, tips first (Featherstone 2008, 7)."""
    from airworthy.vehicles.links import full_inertia, rotation_matrix

    place = {link.name: index for index, link in enumerate(links)}
    free, held = [], []
    for link in links:
        c = _skew(link.center_of_mass)
        inertia = full_inertia(link.inertia) - link.mass * c @ c
        free.append(np.block([[inertia, link.mass * c], [link.mass * c.T, link.mass * np.eye(3)]]))
        held.append(free[-1].copy())
    for index in range(len(links) - 1, 0, -1):
        joint = links[index].joint
        assert joint is not None
        motion = np.array([*joint.axis, 0.0, 0.0, 0.0])
        push, stiff = free[index] @ motion, float(motion @ held[index] @ motion)
        inertia = float(motion @ push) + joint.armature
        _require(
            inertia > max(SINGULAR * stiff, MOMENT_MIN),
            f"links[{index}] ({links[index].name!r}) has no inertia about its joint's axis, so nothing would resist its torque:"
            " give it mass off the axis, an inertia or an armature",
        )
        left = free[index] - np.outer(push, push) / inertia
        turn = rotation_matrix(joint.rotation)
        # To the parent's axes and origin: motion there, brought to the link.
        shift = np.block([[turn.T, np.zeros((3, 3))], [-turn.T @ _skew(joint.position), turn.T]])
        above = place[links[index].parent]
        free[above] += shift.T @ left @ shift
        held[above] += shift.T @ held[index] @ shift


def _skew(v: Any) -> np.ndarray:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _check_carriers(vehicle: Vehicle) -> None:
    """Rotors and sensors name links that are there, and what the record says it weighs is what its links weigh."""
    names = [link.name for link in vehicle.links]
    known = f"its links are {', '.join(names)}" if names else "it has no links"
    carried = [(f"rotors[{k}]", rotor.link) for k, rotor in enumerate(vehicle.rotors)]
    carried += [(f"sensors[{k}]", sensor.link) for k, sensor in enumerate(vehicle.sensors)]
    for where, link in carried:
        _require(not link or link in names, f"{where}.link is {link[:60]!r}, but {known}")
    _require(bool(names) or not vehicle.fixed_base, "fixed_base is for vehicles with links: a rigid one held does nothing")
    if not names:
        return
    from airworthy.vehicles.links import derived_fields

    for name, value in derived_fields(vehicle.links).items():
        given = getattr(vehicle, name)
        size = max(np.abs(value).max(), 1e-12)
        _require(
            bool(np.all(np.abs(np.subtract(given, value)) <= 1e-6 * size)),
            f"{name} is {given}, but that of its links is {value}: leave it to airworthy.vehicles.articulated",
        )
