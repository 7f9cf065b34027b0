"""The bodies of a simulator's vehicles as contact with scenes needs them, and the environments that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.dynamics.body_spheres import body_spheres, reach
from airworthy.dynamics.scene_contact import Bodies
from airworthy.dynamics.scene_native import BODY_LAYOUT
from airworthy.geometry.batch import GeometryBatch

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


class SceneBodies:
    """Spheres of every environment's body, to the largest number of them, and its parameters in force."""

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        known: dict[int, tuple[Array, Array]] = {}
        for item in simulator.vehicles:
            if id(item) not in known:
                known[id(item)] = body_spheres(item.body, item.center_of_mass)
        widest = max(len(radius) for _, radius in known.values())
        place = {key: number for number, key in enumerate(known)}
        self.kind = np.array([place[id(item)] for item in simulator.vehicles])
        """Which of the bodies each environment has, (env,)."""
        self.table = np.stack([_padded(center, radius, widest) for center, radius in known.values()])
        """Centres from the centre of mass, body frame, and radii [m] (negative: no sphere), (bodies, spheres, 4)."""
        self.reach = np.array([reach(*value) for value in known.values()])[self.kind]
        """Farthest that each body extends from its centre of mass [m], (env,)."""

    def gravity(self, ids: Ints) -> Array:
        """[m/s^2], (k,)."""
        return self._parameter("gravity", ids)

    def bodies(self, ids: Ints) -> Bodies:
        """Bodies of environments for the equations in NumPy."""
        rows = self.table[self.kind[ids]]
        inertia, inverse = self._inertias(ids)
        return Bodies(rows[..., :3], rows[..., 3], self._parameter("mass", ids), inertia, inverse, self.gravity(ids))

    def numbers(self, ids: Ints) -> Array:
        """The same, and the inertial sensors, for the native ones: (k, rows) as `BODY_LAYOUT`."""
        out = np.zeros((len(ids), BODY_LAYOUT.size))
        mass = self._parameter("mass", ids)
        inertia, inverse = self._inertias(ids)
        values = {"mass": mass, "mass_inverse": 1.0 / mass, "inertia": inertia, "inertia_inverse": inverse}
        values |= {"gravity": self.gravity(ids), "reach": self.reach[ids]}
        if self._simulator.config.imu is not None and "imu" in self._simulator.layout:
            values |= {f"imu_{name}": self._parameter(f"imu_{name}", ids) for name in ("rotation", "position", "limit")}
            values["imu_limit"] = values["imu_limit"][:, 0]  # the accelerometer's
        for name, value in values.items():
            out[:, BODY_LAYOUT.rows(name)] = value.reshape(len(ids), -1)
        return out

    def _inertias(self, ids: Ints) -> tuple[Array, Array]:
        """Zero where impulses do not turn a body, (k, 6) each."""
        if self._simulator.config.dynamics != "rigid":
            return np.zeros((len(ids), 6)), np.zeros((len(ids), 6))
        return self._parameter("inertia", ids), self._parameter("inertia_inverse", ids)

    def _parameter(self, name: str, ids: Ints) -> Array:
        return np.asarray(self._simulator.parameter(name)[ids], np.float64)


def _padded(center: Array, radius: Array, count: int) -> Array:
    out = np.zeros((count, 4))
    out[:, 3] = -1.0
    out[: len(radius), :3], out[: len(radius), 3] = center, radius
    return out


def environments_of(geometry: GeometryBatch, env: ArrayLike | None, env_count: int) -> Ints:
    """Environment of the geometry for each of a simulator, by default the same number, or the only one.

    Raises:
        AirworthyError: If the numbers do not fit.
    """
    if env is None:
        if geometry.env_count not in (1, env_count):
            raise AirworthyError(
                f"`geometry` has {geometry.env_count} environments and the simulator {env_count}; give `geometry_env`, the"
                " geometry environment of each."
            )
        return np.arange(env_count) if geometry.env_count > 1 else np.zeros(env_count, np.intp)
    array = np.asarray(env)
    whole = np.issubdtype(array.dtype, np.integer)
    if array.shape != (env_count,) or not whole or array.min() < 0 or array.max() >= geometry.env_count:
        raise AirworthyError(
            f"`geometry_env` is an array of {array.dtype}, shape {array.shape}; expected whole numbers from 0 to"
            f" {geometry.env_count - 1}, shape ({env_count},)."
        )
    return array.astype(np.intp)
