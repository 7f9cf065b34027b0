"""Contact of vehicles with joints with scene geometry: the spheres of their links go straight from step to step.

After each step of a flight that is near something, the way of each sphere is swept through the geometry. What it hit first, or
is in, is its surface; surfaces push by the same impulses through the tree as the ground does. A sphere that went in by more
than half of its radius, which could come out on the other side, takes the whole vehicle back to the instant of its contact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, NDArray
from airworthy.core.frames import normalize
from airworthy.core.native_kernel import native_kernel
from airworthy.dynamics.articulated.contact import BOUNCE
from airworthy.dynamics.articulated.contact_native import jointed_scene_source
from airworthy.dynamics.articulated.flight import (
    JointedShape,
    jointed_constants,
    jointed_input_layout,
    jointed_layout,
    jointed_state_layout,
)
from airworthy.dynamics.articulated.impacts import Surfaces, sphere_centers
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import sweep_sphere
from airworthy.simulation.arrays import Compact
from airworthy.simulation.config import Contact
from airworthy.simulation.family import assembled
from airworthy.simulation.jointed.family import jointed_parameter_layout
from airworthy.simulation.jointed.joints import spheres_for
from airworthy.simulation.obstacles import LEAVING, SHALLOW, environments_of

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

__all__ = ["JointedBodies", "Met", "link_clearance", "met_surfaces"]

DEEP = 0.5
"""Share of its radius by which a sphere may go in within a step."""
_STOPPED = 2.0
_MEASURE = 7
"""Numbers of a surface: depth, normal, velocity."""


@dataclass
class Met:
    """What spheres met on their way through a step; (env, spheres) unless it says otherwise."""

    fraction: Array
    """Of the way until contact; 2 where there is none."""
    depth: Array
    """Below its surface by the end [m]; below zero: not in it."""
    normal: Array
    """(env, spheres, 3)."""
    point: Array
    """Of the surface, world [m], (env, spheres, 3)."""
    instance: NDArray[np.int32]
    """-1: nothing."""
    counts: ArrayBool
    """Whether a contact counts where the first one does: one that the sphere goes into, or is well in."""
    speed: Array
    """Approach, mean over the step [m/s]."""
    velocity: Array
    """Of the surface, world [m/s], (env, spheres, 3)."""

    radius: Array
    """[m]."""

    @property
    def deep(self) -> ArrayBool:
        """Spheres that went in far, from outside, (env, spheres)."""
        return np.asarray((self.depth > DEEP * self.radius) & (self.fraction > 0.0) & (self.fraction <= 1.0))

    def first(self) -> tuple[Array, ArrayIndex]:
        """Return the fraction and the sphere of the first contact of each vehicle; fraction 2: none."""
        table = np.where(self.counts, self.fraction, 2.0)
        sphere = table.argmin(axis=1)
        return table[np.arange(len(table)), sphere], sphere

    def fastest(self) -> ArrayIndex:
        """Return the sphere of each vehicle that is in something and approaches it fastest."""
        return np.where(self.depth > 0.0, self.speed, -np.inf).argmax(axis=1)

    def moved_to(self, centers: Array) -> None:
        """Take spheres to be elsewhere by the end, those that went in far at contact.

        Args:
            centers: World [m], (env, spheres, 3).
        """
        deep = self.deep
        self.depth = np.where(self.instance >= 0, self.radius - _dot(self.normal, centers - self.point), -1.0)
        self.depth = np.where(deep, np.maximum(self.depth, 1e-6), self.depth)

    def surfaces(self) -> Surfaces:
        """Return the same for the equations of impacts."""
        return Surfaces(self.depth.T, self.normal.transpose(1, 2, 0), self.velocity.transpose(1, 2, 0))


def met_surfaces(
    geometry: GeometryBatch,
    env: ArrayIndex,
    begin: Array,
    end: Array,
    radius: Array,
    dt: float,
    velocity_of: Array | None = None,
) -> Met:
    """Return what spheres meet on their way through a step.

    Args:
        geometry: Environments.
        env: Environment of each vehicle, (k,).
        begin: Centres, world [m], (k, spheres, 3).
        end: The same after the free step.
        radius: [m], (spheres,) or (k, spheres).
        dt: Step [s].
        velocity_of: Velocity of each instance that may be hit, world [m/s], (k, instances, 3); None: all stand still.
    """
    shape = begin.shape[:2]
    wide = np.broadcast_to(radius, shape)
    hit = sweep_sphere(geometry, begin.reshape(-1, 3), end.reshape(-1, 3), wide.ravel(), np.repeat(env, shape[1]))
    instance, normal = hit.instance.reshape(shape), hit.normal.reshape(*shape, 3)
    there = instance >= 0
    fraction = np.where(there, hit.fraction.reshape(shape), 2.0)
    point = np.where(there[..., None], hit.point.reshape(*shape, 3), 0.0)
    velocity = np.zeros((*shape, 3))
    if velocity_of is not None:
        velocity = np.where(there[..., None], velocity_of[np.arange(len(env))[:, None], np.maximum(instance, 0)], 0.0)
    inward = -_dot(normal, end - begin)
    counts = there & ((fraction > 0.0) | (inward > LEAVING) | (wide - _dot(normal, begin - point) > SHALLOW))
    depth = np.where(there, wide - _dot(normal, end - point), -1.0)
    speed = inward / dt + _dot(normal, velocity)
    return Met(fraction, depth, normal, point, instance, counts, speed, velocity, np.array(wide))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2])


# ---- The kernel: where spheres are, and what surfaces do ---------------------------------------------------------------------

_ARGUMENTS = """
    state: float32[]
    inputs: float32[]
    params: float32[]
    param_table: int32[]
    keys: uint32[]
    imu_log: float32[]
    elapsed: int32[]
    scene: float32[]  # places of spheres, or surfaces and what came of them, (rows, stride)
    stride: int
    dt: float
    flags: int
    block_count: int
    mode: int
    log_step: int  # step of the log of inertial samples that was just written; -1: none
    held_share: float
    restitution: float
    friction: float
"""
_BATCH = ("state", "inputs", "params", "param_table", "keys", "imu_log", "elapsed")
_PLACES, _MEET = 0, 1


@cache
def scene_kernel(shape: JointedShape) -> Any:
    """Return the contact of flights with scenes, as a Warp kernel; compiled at first launch, then cached on disk.

    Args:
        shape: Of the vehicles.
    """
    return native_kernel(f"jointed_scene_{shape.structure.joint_count}_{shape.rotor_count}", scene_text(shape), _ARGUMENTS)


def scene_text(shape: JointedShape) -> str:
    """Return the complete native source of that kernel.

    Args:
        shape: Of the vehicles.
    """
    parameters = jointed_parameter_layout(shape)
    constants = {"ROTORS": shape.rotor_count, "P_CONTROL_START": jointed_layout(shape).size, **jointed_constants(shape)}
    text = jointed_scene_source(shape, parameters)
    return assembled(text, constants, parameters, jointed_state_layout(shape), jointed_input_layout(shape))


def link_clearance(simulator: Simulator, geometry: GeometryBatch, most: float) -> Array:
    """Return the least distance of any link's surface to anything [m], (env,); below zero where one is inside of something.

    Args:
        simulator: Of vehicles with joints.
        geometry: What may be met: environment k of each, or the only one.
        most: What is farther does not matter [m].
    """
    shape: JointedShape = simulator.shape
    rows = np.asarray(simulator.rows, float)
    p = jointed_layout(shape).record(lambda row: rows[row])
    pose = (np.array(simulator.field(name), float).T for name in ("position", "attitude", "joint"))
    centers = sphere_centers(shape.structure, shape.structure.model(lambda row: rows[row]), p, shape.carriers, *pose)
    radius = np.array([np.broadcast_to(sphere[3], (simulator.env_count,)) for sphere in p.sphere]).T
    fine = np.asarray(np.isfinite(centers).all(axis=(1, 2)))
    env = np.repeat(environments_of(geometry, None, simulator.env_count), len(shape.carriers))
    found = clearance(geometry, np.where(fine[:, None, None], centers, 0.0).reshape(-1, 3), env, most + radius.max())
    away = np.minimum(found.distance, most + radius.max()).reshape(radius.shape) - radius
    return np.where(fine, np.minimum(away.min(axis=1), most), np.nan)


# ---- Contact of a small batch of flights -----------------------------------------------------------------------------------


class JointedBodies:
    """The links of a simulator's vehicles as contact with scenes needs them.

    Args:
        simulator: Whose.
    """

    def __init__(self, simulator: Simulator):
        self.simulator = simulator
        self.reach = np.asarray(simulator.parameter("contact_reach"), float)
        """Farthest that any link extends from the root's own centre of mass, at any angles [m], (env,)."""
        spheres = {id(item): [sphere[3] for _, sphere in spheres_for(item)] for item in simulator.vehicles}
        self.radius = np.array([spheres[id(item)] for item in simulator.vehicles])
        """Of spheres [m], (env, spheres)."""

    def contact_step(self, small: Compact, geometry: GeometryBatch, config: Contact, dt: float) -> JointedContactStep:
        """Return what contact does to the flights of a small batch; see `JointedContactStep`.

        Args:
            small: The batch.
            geometry: The scenes.
            config: What happens.
            dt: Physics step [s].
        """
        return JointedContactStep(self, small, geometry, config, dt)

    def whole(self, ids: ArrayIndex, start: dict[str, Array]) -> dict[str, Array]:
        """Return where centres of mass are and how they move, by state rows; see `Joints.whole`.

        Args:
            ids: Environments, (k,).
            start: State fields, each (k, width).
        """
        simulator = self.simulator
        assert simulator._joints is not None
        return simulator._joints.whole(simulator.rows[simulator._param_layout.rows("tree")][:, ids], start)

    def begin(self, acts: JointedContactStep, env: ArrayIndex, ids: ArrayIndex, sent: Any, velocity_of: Array | None) -> None:
        """Note that flights were taken into a small batch.

        Args:
            acts: Of the batch.
            env: Environment of the geometry, (k,).
            ids: Of the simulator, (k,).
            sent: Not used here: velocities on the device.
            velocity_of: Velocity of each instance that they may hit [m/s], (k, instances, 3).
        """
        acts.begin(env, ids, velocity_of)


class JointedContactStep:
    """What contact does to the flights of a small batch.

    Args:
        bodies: Of the simulator.
        small: The batch.
        geometry: The scenes.
        config: What happens.
        dt: Physics step [s].
    """

    def __init__(self, bodies: JointedBodies, small: Compact, geometry: GeometryBatch, config: Contact, dt: float):
        self._bodies, self._small, self._geometry, self._config, self._dt = bodies, small, geometry, config, dt
        self._shape: JointedShape = bodies.simulator.shape
        self._layout = bodies.simulator.layout
        room, spheres = small.arrays.stride, len(self._shape.carriers)
        self._scene = np.zeros((_MEASURE * spheres, room), np.float32)
        self._record, self._met = np.zeros((room, 10)), np.zeros(room, np.int32)

    def begin(self, env: ArrayIndex, ids: ArrayIndex, velocity_of: Array | None) -> None:
        """Note that flights were taken into the batch: those of its first places, in order.

        Args:
            env: Environment of the geometry, (k,).
            ids: Of the simulator, (k,).
            velocity_of: Velocity of each instance that they may hit [m/s], (k, instances, 3); None: all stand still.
        """
        self._env, self._ids, self._velocity_of = np.asarray(env), np.asarray(ids), velocity_of
        self._record[:] = 0.0
        self._note(self._centers())

    def act(self, log: int = -1) -> None:
        """Let contact act on the step that the batch just flew.

        Args:
            log: Step of the log of inertial samples that it wrote; -1: none.
        """
        self._met[:] = 0
        centers = self._centers()
        flying = self._flew & (self._rows("status")[0] == 0.0) & np.isfinite(centers).all(axis=(1, 2))
        rows = np.flatnonzero(flying)
        if rows.size:
            velocity_of = None if self._velocity_of is None else self._velocity_of[rows]
            begin, radius = self._begin[rows], self._bodies.radius[self._ids[rows]]
            found = met_surfaces(self._geometry, self._env[rows], begin, centers[rows], radius, self._dt, velocity_of)
            responds = self._config.mode == "respond"
            changed = self._respond(rows, found, log) if responds else self._stop(rows, found)
            centers = self._centers() if changed else centers
        self._note(centers)

    def met(self) -> NDArray[np.int32]:
        """Tell whether each flight met something in the last step, (k,), 0 or 1."""
        return self._met[: self._small.count]

    def record(self) -> Array:
        """Return impacts since `begin`, as `ContactRecord.packed`, (k, 10)."""
        return self._record[: self._small.count]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _respond(self, rows: ArrayIndex, found: Met, log: int) -> bool:
        if not (found.depth > 0.0).any():
            return False
        deep = found.deep
        far = np.flatnonzero(deep.any(axis=1))
        if far.size:
            share = np.where(deep, found.fraction, 2.0).min(axis=1)
            self._put_back(rows[far], share[far])
            found.moved_to(self._centers()[rows])
        numbers = np.concatenate([found.depth[..., None], found.normal, found.velocity], axis=2)
        self._scene[:] = 0.0
        self._scene[::_MEASURE] = -1.0
        self._scene[:, rows] = numbers.reshape(len(rows), -1).T
        self._launch(_MEET, log)
        self._met[rows] = self._scene[0, rows] > 0.5
        speed = self._scene[1, rows].astype(float)
        hard = np.flatnonzero((self._met[rows] > 0) & (speed >= BOUNCE))
        sphere = found.fastest()
        self._note_impacts(rows, found, hard, sphere, np.minimum(found.fraction[np.arange(len(rows)), sphere], 1.0), speed)
        return True

    def _stop(self, rows: ArrayIndex, found: Met) -> bool:
        """Count first contacts, and in mode "freeze" end flights there."""
        fraction, sphere = found.first()
        hit = np.flatnonzero(fraction <= 1.0)
        if not hit.size:
            return False
        self._met[rows[hit]] = 1
        speed = np.maximum(found.speed[np.arange(len(rows)), sphere], 0.0)
        self._note_impacts(rows, found, hit, sphere, fraction, speed)
        state, of = self._small.arrays.state(), self._layout.offsets
        at = rows[hit]
        state[of["contact"], at] += 1.0
        state[of["impact_speed"], at] = np.maximum(state[of["impact_speed"], at], speed[hit])
        if self._config.mode == "freeze":
            self._put_back(at, fraction[hit])
            state[of["status"], at] = _STOPPED
            self._put_whole(at)
        self._small.arrays.push_state()
        return True

    def _note_impacts(
        self, rows: ArrayIndex, found: Met, which: ArrayIndex, sphere: ArrayIndex, fraction: Array, speed: Array
    ) -> None:
        """Count, time, point, normal, speed and instance, as `ContactRecord` packs them."""
        at, own = rows[which], sphere[which]
        clock = self._small.clock()[at].astype(float)
        record = self._record
        record[at, 0] += 1.0
        record[at, 1] = (clock - 1.0 + fraction[which]) * self._dt
        record[at, 2:5], record[at, 5:8] = found.point[which, own], found.normal[which, own]
        record[at, 8], record[at, 9] = speed[which], found.instance[which, own]

    def _put_back(self, at: ArrayIndex, share: Array) -> None:
        """Take flights back to a share of the way through their step, velocities too."""
        state, of = self._small.arrays.state(), self._layout
        before, now = self._before[:, at], state[:, at].astype(float)

        def between(name: str) -> Array:
            return before[of.rows(name)] + share * (now[of.rows(name)] - before[of.rows(name)])

        def place(values: Array) -> Array:
            return np.asarray(values[of.rows("position")] + values[of.rows("position_residual")])

        position = place(before) + share * (place(now) - place(before))
        coarse = position.astype(np.float32)
        for name, value in (("position", coarse), ("launch_base", coarse)):
            state[of.rows(name), at] = value
        for name in ("position_residual", "launch_moved"):
            state[of.rows(name), at] = position - coarse
        for name in ("velocity", "rate", "joint_rate"):
            state[of.rows(name), at] = between(name)
        state[of.rows("attitude"), at] = normalize(between("attitude").T).T
        # Angles of joints that turn on without end are wrapped at the end of launches.
        turned = now[of.rows("joint")] - before[of.rows("joint")]
        turned -= 2.0 * np.pi * np.round(turned / (2.0 * np.pi))
        state[of.rows("joint"), at] = before[of.rows("joint")] + share * turned
        self._small.arrays.push_state()

    def _put_whole(self, at: ArrayIndex) -> None:
        """Write centre of mass and velocity of the whole anew."""
        state, of = self._small.arrays.state(), self._layout
        names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
        start = {name: state[of.rows(name)][:, at].T.astype(float) for name in names}
        for name, value in self._bodies.whole(self._ids[at], start).items():
            state[of.rows(name), at] = value

    def _note(self, centers: Array) -> None:
        self._begin = centers
        self._before = self._small.arrays.state().astype(float)
        self._flew = self._rows("status")[0] == 0.0

    def _rows(self, name: str) -> Any:
        return self._small.arrays.state()[self._layout.rows(name), : self._small.count]

    def _centers(self) -> Array:
        """Centres of all spheres, world [m], (k, spheres, 3)."""
        self._launch(_PLACES, -1)
        count, spheres = self._small.count, len(self._shape.carriers)
        root = self._rows("position").astype(float) + self._rows("position_residual")
        offsets = self._scene[: 3 * spheres, :count].astype(float).reshape(spheres, 3, count)
        return np.asarray((offsets + root).transpose(2, 0, 1))

    def _launch(self, mode: int, log: int) -> None:
        arrays, config = self._small.arrays, self._bodies.simulator.config
        effects = self._bodies.simulator.effects
        held = 1.0 if config.integrator == "semi_implicit" else 0.5
        numbers = (mode, log, held, self._config.restitution, self._config.friction)
        arrays.launch_beside(scene_kernel(self._shape), self._scene, self._dt, effects, numbers)
