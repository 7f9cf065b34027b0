"""Moments of inertia of a CAD model, as a prior: batteries, screws and wires are where no model has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.vehicles.files import read_vehicle
from airworthy.vehicles.identification.known import MeasuredValue
from airworthy.vehicles.urdf_tree import read_urdf

__all__ = ["CAD_SD", "cad_inertia"]

CAD_SD = 0.15
"""Relative deviation of a CAD model's moments (specification of identification, section 7)."""
MASS_FACTOR = 2.0
"""A model whose mass is beyond this factor from the weighed one is of another vehicle, or without its battery."""


def cad_inertia(path: str | Path, mass: tuple[float, float] | None = None) -> dict[str, MeasuredValue]:
    """Return moments of inertia about the centre of mass, for `Known.measured`.

    Args:
        path: URDF with inertial elements, joints at zero, or a vehicle TOML; x forward, y left, z up.
        mass: Weighed [kg], to which the model's is taken; None: the model's own.

    Raises:
        AirworthyError: It has no masses, or its mass is far from the weighed one.
    """
    path = Path(path)
    if path.suffix.lower() == ".urdf":
        tree = read_urdf(path)
        total, moments = tree.mass, np.diag(tree.inertia())
    else:
        record = read_vehicle(path)
        total, moments = record.mass, np.array(record.inertia[:3])
    if not (total > 0.0 and (moments > 0.0).all()):
        raise AirworthyError(f"{str(path)!r} has no mass or no moments of inertia; give its links inertial elements.")
    factor = 1.0 if mass is None else mass[0] / total
    if not 1.0 / MASS_FACTOR <= factor <= MASS_FACTOR:
        weighed = "" if mass is None else f" of {mass[0]:g} kg"
        raise AirworthyError(
            f"{str(path)!r} has {total:.3g} kg, and the vehicle{weighed} is {factor:.3g} times that: is it the same vehicle,"
            " with its battery?"
        )
    source = f"CAD: {path.name}"
    return {
        f"inertia.{axis}{axis}": MeasuredValue(float(factor * value), float(CAD_SD * factor * value), source)
        for axis, value in zip("xyz", moments, strict=True)
    }
