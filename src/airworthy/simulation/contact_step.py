"""Contact of a small batch of flights with the geometry: one native launch after each physics step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.layout import Layout
from airworthy.core.native_kernel import quiet_warp
from airworthy.dynamics.scene_native import BODY_LAYOUT
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.launching import Repeated
from airworthy.geometry.query_launch import closed_flags
from airworthy.simulation.compact import Compact
from airworthy.simulation.config import CONTACT_MODES, Contact
from airworthy.simulation.contact_kernel import NUMBERS, STATE_ROWS, contact_kernel

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

_FLIGHTS = ("state", "keys", "imu_log")
_OWN = ("mover_velocity", "before", "bodies", "places", "sphere_table", "settings", "numbers", "record", "met")


class ContactStep:
    """What contact does to the flights of a small batch.

    Args:
        small: The batch.
        state: Its state rows.
        geometry: The scenes.
        config: What happens.
        dt: Physics step [s].
        spheres: Of each kind of body: centre from the centre of mass, body frame, and radius [m] (negative: none),
            (kinds, spheres, 4).
    """

    def __init__(self, small: Compact, state: Layout, geometry: GeometryBatch, config: Contact, dt: float, spheres: Array):
        self._small, self._geometry, self._wp = small, geometry, quiet_warp()
        room = small.arrays.stride
        self._host: dict[str, Any] = {
            "before": np.zeros((room, 14)),
            "bodies": np.zeros((room, BODY_LAYOUT.size)),
            "places": np.zeros((room, 2), np.int32),
            "sphere_table": np.array(spheres),
            "settings": np.array([dt, config.restitution, config.friction]),
            "numbers": np.zeros(len(NUMBERS), np.int32),
            "record": np.zeros((room, 10)),
            "met": np.zeros(room, np.int32),
        }
        numbers = {"room": room, "stride": room, "mode": CONTACT_MODES.index(config.mode), "spheres": spheres.shape[1]}
        self._set(**numbers, **{name: state.offsets.get(name, -1) for name in STATE_ROWS})
        self._on_cpu = geometry.device == "cpu"
        self._sent = {
            name: self._wp.array(array.ravel(), device=geometry.device, copy=not self._on_cpu)
            for name, array in self._host.items()
        }
        self._still = self._wp.zeros(3, dtype=self._wp.float64, device=geometry.device)
        self._launchers: dict[str, Repeated] = {}

    def begin(self, env: Ints, kind: Ints, bodies: Array, mover_velocity: Any = None) -> None:
        """Flights were taken into the batch: those of its first places, in order.

        Args:
            env: Environment of the geometry, (k,).
            kind: Of body, (k,).
            bodies: Numbers of each, (k, rows) as `dynamics.scene_native.BODY_LAYOUT`.
            mover_velocity: Warp array, world [m/s]; None: movers stand still.
        """
        count = len(env)
        self._host["bodies"][:count] = bodies
        self._host["places"][:count, 0], self._host["places"][:count, 1] = env, kind
        self._push("bodies", "places")
        self._sent["mover_velocity"] = self._still if mover_velocity is None else mover_velocity
        self._set(count=count, moving=mover_velocity is not None, begin=1, log=-1)
        self._launch("begin")

    def act(self, log: int = -1) -> None:
        """Let contact act on the step that the batch just flew.

        Args:
            log: Step of the IMU log that it wrote; -1: none.
        """
        self._set(begin=0, log=log)
        self._launch("busy" if self._is_busy() else "quiet")

    def met(self) -> NDArray[np.int32]:
        """Whether each flight met something in the last step, (k,), 0 or 1."""
        return np.asarray(self._fetch("met")[: self._small.count])

    def record(self) -> Array:
        """Impacts since `begin`, as `ContactRecord.packed`, (k, 10)."""
        return np.asarray(self._fetch("record")[: self._small.count])

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _set(self, **numbers: int) -> None:
        for name, value in numbers.items():
            self._host["numbers"][NUMBERS.index(name)] = value

    def _is_busy(self) -> bool:
        """Whether many flights met something in the last step, and so will in the next."""
        return self._on_cpu and 8 * int(np.count_nonzero(self._host["met"])) > self._small.arrays.stride

    def _launch(self, kind: str) -> None:
        """Launch; of each kind the shortest launch so far decides whether it gains from more threads."""
        self._push("numbers")
        arrays = self._small.arrays
        flights = [arrays.lent(name, self._geometry.device) for name in _FLIGHTS]
        arguments = [*self._geometry.arguments(), closed_flags(self._geometry), *flights, *(self._sent[name] for name in _OWN)]
        launcher = self._launchers.get(kind)
        if launcher is None:
            room, threads = arrays.stride, self._geometry.threads
            launcher = self._launchers[kind] = Repeated(contact_kernel(), room, arguments, self._geometry.device, threads)
        for index, argument in enumerate(arguments):
            launcher.exchange(index, argument)
        launcher.launch()
        for name, array in zip(_FLIGHTS, flights, strict=True):
            arrays.give_back(name, array)

    def _push(self, *names: str) -> None:
        if not self._on_cpu:
            for name in names:
                self._sent[name].assign(self._host[name].ravel())

    def _fetch(self, name: str) -> Any:
        if not self._on_cpu:
            self._host[name].ravel()[...] = self._sent[name].numpy()
        return self._host[name]
