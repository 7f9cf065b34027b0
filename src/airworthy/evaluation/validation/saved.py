"""Fitted vehicles as records that can be flown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from airworthy.core.files import make_folder
from airworthy.evaluation.validation.fits import Fit
from airworthy.evaluation.validation.protocol import Experiment
from airworthy.evaluation.validation.structure import SPEED_MAX
from airworthy.vehicles import CollisionBody, Vehicle, write_vehicle


def save_vehicles(fits: Sequence[tuple[Experiment, Fit]], folder: Path) -> list[Path]:
    """Write each experiment's final fit as `<airframe>.toml`; returns the paths."""
    make_folder(folder)
    paths = []
    for experiment, fitted in fits:
        path = folder / f"{experiment.airframe.name}.toml"
        write_vehicle(flyable(experiment, fitted), path)
        paths.append(path)
    return paths


def flyable(experiment: Experiment, fitted: Fit) -> Vehicle:
    """The fitted vehicle with a source per value; the fitted tilt of the thrust stands in `extra`."""
    craft = fitted.craft(experiment.airframe.name)
    flights = ", ".join(dict.fromkeys(str(name) for split in experiment.splits for name in dict.fromkeys(split.test.flight)))
    source = f"fitted to {flights} by airworthy validate"
    prior = experiment.airframe.source
    sources = dict.fromkeys(("inertia", "rotors.thrust", "rotors.torque", "rotors.inertia", "drag"), f"{source}; {prior}")
    sources |= {
        "mass": "weighed, SOURCES.md of the logs",
        "rotors.position": prior,
        "rotors.spin": "regression of angular acceleration on rotor speeds in the logs",
        "rotors.response": "PWM to rotor speed in the logs; one time constant",
        "rotors.speed_max": f"{SPEED_MAX:g} rad/s, above what the logs reach",
        "body": "cylinder of the gym-pybullet-drones cf2x.urdf",
    }
    axis = craft.vehicle.rotors[0].axis
    extra: dict[str, float | str] = {
        "family": "crazyflie",
        "thrust_axis_x": axis[0],
        "thrust_axis_y": axis[1],
    }
    # The fitted tilt of the thrust is mostly the IMU's against the arms; upright axes let the vehicle hover level.
    rotors = tuple(replace(rotor, axis=(0.0, 0.0, 1.0)) for rotor in craft.vehicle.rotors)
    body = CollisionBody("cylinder", (0.06, 0.06, 0.0125))
    drag = replace(craft.vehicle.drag, center=craft.drag_center)
    return replace(craft.vehicle, rotors=rotors, drag=drag, body=body, sources=sources, extra=extra)
