"""Published Crazyflie parameter sets as crafts, each with its own equations' effects.

The sets of the catalogue are RotorPy's, Crazyflow's L250 and P250, and gym-pybullet-drones' cf2x. For the brushless vehicle
the two sets published for a brushless Crazyflie are added, since they are the fairer comparison; their numbers stand here
with their source. Rotors are put in the Crazyflie's order by their corner and turn as the real ones do (gym-pybullet-drones'
layout is mirrored, which would only spoil its yaw). The lag of a set is not used: predictions are fed rotor speeds.
"""

from __future__ import annotations

import math
from dataclasses import replace

from airworthy.core.errors import AirworthyError
from airworthy.evaluation.validation.predict import Craft
from airworthy.evaluation.validation.structure import CORNERS, SPINS
from airworthy.vehicles import Drag, Rotor, Vehicle, vehicle

_RPM = 2.0 * math.pi / 60.0


def comparators(brushless: bool) -> dict[str, Craft]:
    """Published sets by the name that tables show.

    Args:
        brushless: Add the sets that were published for a brushless Crazyflie.
    """
    crafts = {
        "RotorPy": _rotorpy(vehicle("rotorpy_crazyflie")),
        "Crazyflow L250": _ordered(vehicle("cf2x_L250")),
        "Crazyflow P250": _ordered(vehicle("cf2x_P250")),
        "gym-pybullet-drones": _bullet(vehicle("cf2x_gym_pybullet_drones")),
    }
    if brushless:
        crafts["RotorPy brushless"] = _rotorpy_brushless()
        crafts["Crazyflow 21B"] = _crazyflow_brushless()
    return crafts


def in_log_order(published: Vehicle) -> Vehicle:
    """The vehicle with rotors in the order front right, back right, back left, front left, turning as the Crazyflie's.

    Raises:
        AirworthyError: It has no rotor in one of the corners.
    """
    rotors: list[Rotor] = []
    for (x, y), spin in zip(CORNERS, SPINS, strict=True):
        found = [r for r in published.rotors if r.position[0] * x > 0.0 and r.position[1] * y > 0.0]
        if len(found) != 1:
            raise AirworthyError(
                f"{published.name} has {len(found)} rotors in the corner x {x:+d}, y {y:+d}; one was expected."
            )
        rotors.append(replace(found[0], spin=-1 if spin < 0 else 1))
    return replace(published, rotors=tuple(rotors))


def _ordered(published: Vehicle) -> Craft:
    return Craft(in_log_order(published))


def _rotorpy(published: Vehicle) -> Craft:
    """RotorPy's drag acts at each hub in its own air, not on the body."""
    hub = published.drag.rotor_speed
    return Craft(replace(in_log_order(published), drag=Drag()), hub_drag=hub)


def _bullet(published: Vehicle) -> Craft:
    """With its optional drag (off by default there), the kinder reading: coefficient x summed rotor speeds x body velocity."""
    xy, z = (float(published.extra[f"optional_drag_coeff_{k}"]) for k in ("xy", "z"))
    return Craft(replace(in_log_order(published), drag=Drag(rotor_speed=(xy, xy, z))))


def _rotorpy_brushless() -> Craft:
    """RotorPy 3.0.0, rotorpy/vehicles/crazyfliebrushless_params.py: a Crazyflie 2.1 Brushless with propeller guards."""
    base = vehicle("rotorpy_crazyflie")
    rotors = tuple(replace(r, thrust=(0.0, 0.0, 4.052e-8), torque=(0.0, 0.0, 7.8e-10)) for r in base.rotors)
    heavy = replace(base, name="rotorpy_brushless", mass=0.044, inertia=(3.3e-5, 3.6e-5, 5.9e-5, 0.0, 0.0, 0.0), rotors=rotors)
    return Craft(replace(in_log_order(heavy), drag=Drag()), hub_drag=(5.09e-6, 5.09e-6, 1.19e-5), translational_lift=1.11e-3)


def _crazyflow_brushless() -> Craft:
    """Crazyflow 0.4.0, crazyflow/dynamics/first_principles/params.toml, set cf21B_500."""
    base = vehicle("cf2x_L250")
    arm = 0.035355
    rotors = tuple(
        replace(
            r,
            position=(math.copysign(arm, r.position[0]), math.copysign(arm, r.position[1]), 0.0),
            thrust=(0.0, -3.133427287299859e-07 / _RPM, 4.407354891648379e-10 / _RPM**2),
            torque=(0.0, 1.65886356219615e-09 / _RPM, 2.4693477924534137e-12 / _RPM**2),
            inertia=3.893e-08,
        )
        for r in base.rotors
    )
    drag = Drag(linear=(0.021643637770852733, 0.021643637770852733, 0.02477138502714662))
    return _ordered(
        replace(base, name="cf21B_500", mass=0.0434, inertia=(25e-6, 28e-6, 49e-6, 0.0, 0.0, 0.0), rotors=rotors, drag=drag)
    )
