"""Contact of a batch with scene geometry, inside its launches.

Each environment has a safe ball: no part of its vehicle meets anything while the centre of mass stays inside. The fused step
watches every physics step for flights that leave theirs, and holds those as they were. Here they get a new ball and fly again,
in a small batch of their own; those that are truly near something are flown step by step, with exact sweeps, and what they meet
acts. Balls only decide how a flight is computed, never where it goes: flown either way it has the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import native_kernel, quiet_warp
from airworthy.dynamics.rigid import native_text
from airworthy.dynamics.scene_contact import SETTLED, SWEEPS, BodyMotion
from airworthy.dynamics.scene_native import BODY_LAYOUT, scene_source
from airworthy.dynamics.state import Effects
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source
from airworthy.geometry.query_arguments import Repeated, closed_flags
from airworthy.simulation.arrays import BatchArrays, Compact, columns, motion_of
from airworthy.simulation.config import CONTACT_MODES, Contact
from airworthy.simulation.events import ContactRecord
from airworthy.simulation.obstacles import BAND, GAP, LEAVING, SAME, SHALLOW, TILT, Obstacles, SceneBodies
from airworthy.simulation.rebound import PASSES, STEP_OUT, Rebound, rebound

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator


# ---- The kernel of contact with scenes: one task, one flight, after the physics step that it just flew --------------------

STOPPED = 2.0
"""Status of a flight that contact stopped."""

STATE_ROWS = (
    "position",
    "position_residual",
    "launch_base",
    "launch_moved",
    "velocity",
    "attitude",
    "rate",
    "status",
    "contact",
    "impact_speed",
    "acceleration",
    "imu",
)
"""State fields that the kernel reads or writes; it is told their rows, so that one kernel serves every family."""

NUMBERS = ("count", "room", "stride", "mode", "log", "begin", "moving", "spheres", *STATE_ROWS)
"""Integers of a launch, in order.

count: flights; room: places of the batch, a multiple of 16; stride: of its rows; mode: number of the contact mode; log: step of
the IMU log that was just written, or -1; begin: 1 where nothing was flown yet; moving: 1 where dynamic instances have
velocities; spheres: per body."""


def contact_source() -> str:
    """Complete native source of the kernel."""
    constants: dict[str, float] = {
        "gap": GAP, "band": BAND, "leaving": LEAVING, "shallow": SHALLOW, "passes": PASSES, "step_out": STEP_OUT,
        "same": SAME, "tilt": TILT, "push_sweeps": SWEEPS, "settled": SETTLED, "stopped": STOPPED,
    }  # fmt: skip
    rows = ", ".join(f"R_{name}" for name in NUMBERS)
    modes = ", ".join(f"MODE_{name.upper()}" for name in CONTACT_MODES)
    geometry = native_source("distance.h", "clearance.h", "sweep.h", "convex.h")
    return "\n".join(
        [geometry, f"enum {{ {rows} }};\nenum {{ {modes} }};", scene_source(**constants), native_text("scene_flight.h")]
    )


_ARGUMENTS = """
    closed: int32[]
    state: float32[]  # rows of the batch
    keys: uint32[]
    imu_log: float32[]
    dynamic_velocity: float64[]  # world [m/s], (env, dynamic_count, 3)
    before: float64[]  # motion at the begin of the step, and whether it flew, (room, 14)
    bodies: float64[]  # as BODY_LAYOUT, (room, rows)
    places: int32[]  # environment of the geometry, kind of body, (room, 2)
    sphere_table: float64[]  # centre, radius, (kinds, spheres, 4)
    core_table: float64[]  # as CORE, (kinds, 9)
    settings: float64[]  # step [s], restitution, friction, rolling
    numbers: int32[]  # as NUMBERS
    record: float64[]  # impacts, as ContactRecord packs them, (room, 10)
    met: int32[]  # whether the flight met something in this step, (room,)
"""


@cache
def contact_kernel() -> Any:
    """Return the contact of flights with scenes, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("contact", contact_source(), BATCH_SIGNATURE + _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Contact of a small batch of flights with the geometry: one native launch after each physics step -----------------------

_FLIGHTS = ("state", "keys", "imu_log")
_OWN = ("dynamic_velocity", "before", "bodies", "places", "sphere_table", "core_table", "settings", "numbers", "record", "met")


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
        cores: Of each kind of body, as `airworthy.geometry.sweep.CORE`, (kinds, 9).
    """

    def __init__(
        self, small: Compact, state: Layout, geometry: GeometryBatch, config: Contact, dt: float, spheres: Array, cores: Array
    ):
        self._small, self._geometry, self._wp = small, geometry, quiet_warp()
        room = small.arrays.stride
        self._host: dict[str, Any] = {
            "before": np.zeros((room, 14)),
            "bodies": np.zeros((room, BODY_LAYOUT.size)),
            "places": np.zeros((room, 2), np.int32),
            "sphere_table": np.array(spheres),
            "core_table": np.array(cores),
            "settings": np.array([dt, config.restitution, config.friction, config.rolling]),
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

    def begin(self, env: ArrayIndex, kind: ArrayIndex, bodies: Array, dynamic_velocity: Any = None) -> None:
        """Note that flights were taken into the batch: those of its first places, in order.

        Args:
            env: Environment of the geometry, (k,).
            kind: Of body, (k,).
            bodies: Numbers of each, (k, rows) as `dynamics.scene_native.BODY_LAYOUT`.
            dynamic_velocity: Warp array, world [m/s]; None: dynamic instances stand still.
        """
        count = len(env)
        self._host["bodies"][:count] = bodies
        self._host["places"][:count, 0], self._host["places"][:count, 1] = env, kind
        self._push("bodies", "places")
        self._sent["dynamic_velocity"] = self._still if dynamic_velocity is None else dynamic_velocity
        self._set(count=count, moving=dynamic_velocity is not None, begin=1, log=-1)
        self._launch("begin")

    def act(self, log: int = -1) -> None:
        """Let contact act on the step that the batch just flew.

        Args:
            log: Step of the IMU log that it wrote; -1: none.
        """
        self._set(begin=0, log=log)
        self._launch("busy" if self._is_busy() else "quiet")

    def met(self) -> NDArray[np.int32]:
        """Tell whether each flight met something in the last step, (k,), 0 or 1."""
        return np.asarray(self._fetch("met")[: self._small.count])

    def record(self) -> Array:
        """Return impacts since `begin`, as `ContactRecord.packed`, (k, 10)."""
        return np.asarray(self._fetch("record")[: self._small.count])

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _set(self, **numbers: int) -> None:
        for name, value in numbers.items():
            self._host["numbers"][NUMBERS.index(name)] = value

    def _is_busy(self) -> bool:
        """Tell whether many flights met something in the last step, and so will in the next."""
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


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: longer launches cost less each, but a flight near an obstacle flies all their steps twice.
STEPS_MAX = 32
"""Physics steps that fly in one go where there is geometry: a flight that is held flies all of them once more."""
# Ours: 2^-20, eight steps of float32's 2^-23.
_ROUNDING = 1e-6
"""Share of a position that the step's single precision may be wrong by, doubled for the ball's centre."""
# Ours: five times GAP of `obstacles`, at which bodies count as touching.
_MARGIN = 1e-4
"""[m]"""


class RigidBodies(SceneBodies):
    """The bodies of a simulator's rigid vehicles, and how contact acts on them."""

    def contact_step(self, small: Compact, geometry: GeometryBatch, config: Contact, dt: float) -> ContactStep:
        """Return what contact does to the flights of a small batch; see `ContactStep`.

        Args:
            small: The batch.
            geometry: The scenes.
            config: What happens.
            dt: Physics step [s].
        """
        return ContactStep(small, self._simulator.layout, geometry, config, dt, self.table, self.cores)

    def begin(self, acts: ContactStep, env: ArrayIndex, ids: ArrayIndex, sent: Any, velocity_of: Array | None) -> None:
        """Note that flights were taken into a small batch.

        Args:
            acts: Of the batch.
            env: Environment of the geometry, (k,).
            ids: Of the simulator, (k,).
            sent: Warp array of the velocities of dynamic instances [m/s]; None: they stand still.
            velocity_of: Not used here: the same for each flight.
        """
        acts.begin(env, self.kind[ids], self.numbers(ids), sent)


def _bodies_of(simulator: Simulator) -> Any:
    """Bodies of the vehicles; those of links are loaded where there are some."""
    if simulator.config.dynamics != "articulated":
        return RigidBodies(simulator)
    from airworthy.simulation.jointed.scene import JointedBodies

    return JointedBodies(simulator)


class SceneContact:
    """Contact of a simulator's environments with geometry.

    Args:
        simulator: Whose.
        config: What happens.
        geometry: The scenes.
        env: Environment of the geometry that each of the simulator's is in, (env,).
        arrays: Memory of the simulator.
    """

    def __init__(self, simulator: Simulator, config: Contact, geometry: GeometryBatch, env: ArrayIndex, arrays: BatchArrays):
        self._simulator, self.config, self._geometry, self._arrays = simulator, config, geometry, arrays
        self._env = env
        self.record = ContactRecord.of(simulator.env_count)
        self.dynamic_velocity: Array | None = None
        """World velocity of the dynamic instances [m/s], (geometry env, dynamic_count, 3); None: at rest."""
        self._bodies = _bodies_of(simulator)
        self._small: dict[int, Compact] = {}
        self._steps: dict[int, Any] = {}
        self._dynamic_velocity_sent: Any = None
        self._revision: Any = None
        self._known = np.zeros(simulator.env_count, bool)
        self._on_trial = False

    def set_dynamic_velocity(self, velocity: ArrayLike | None) -> None:
        """See `Simulator.set_dynamic_velocity`."""
        if velocity is None:
            self.dynamic_velocity = self._dynamic_velocity_sent = None
            return
        array, shape = np.asarray(velocity, np.float64), (self._geometry.env_count, self._geometry.dynamic_count, 3)
        if array.shape != shape or not np.isfinite(array).all():
            raise AirworthyError(
                f"Dynamic instances got velocities of shape {array.shape}; expected finite numbers, shape {shape}."
            )
        self.dynamic_velocity = array
        self._dynamic_velocity_sent = quiet_warp().array(array.ravel(), device=self._geometry.device)

    # ---- trials -----------------------------------------------------------------------------------------------------

    def begin_trial(self) -> tuple[Array, ArrayBool, Any]:
        """Begin a trial: from here to `end_trial` no new flight begins in mode "reset"; returns what `end_trial` puts back."""
        self._on_trial = True
        return self.record.packed(), self._known.copy(), self._revision

    def end_trial(self, before: tuple[Array, ArrayBool, Any]) -> None:
        """Forget what was met, and what was found to be around flights whose balls the simulator has put back."""
        self._on_trial = False
        self.record.unpack(before[0])
        self._known[...], self._revision = before[1], before[2]

    # ---- safe balls -------------------------------------------------------------------------------------------------

    def forget(self, ids: ArrayIndex | None = None) -> None:
        """Forget what is around these environments: they moved, or the geometry did."""
        self._known[slice(None) if ids is None else ids] = False

    def prepare(self, seconds: float) -> None:
        """Prepare a launch: find what is around environments of which it is not known.

        Args:
            seconds: Length of the launch.
        """
        # Anything may have moved: what was known of the surroundings is void.
        if self._geometry.revision != self._revision:
            self._revision = self._geometry.revision
            self.forget()
        unknown = np.flatnonzero(~self._known)
        if unknown.size:
            # Dynamic instances make every ball short-lived, and short ones are found faster.
            short = self._geometry.dynamic_count > 0
            self._surround(unknown, 4.0 * seconds if short else np.inf)

    def _surround(self, ids: ArrayIndex, horizon: float = np.inf) -> Array:
        """Return new balls for some environments, as far as they can go in `horizon` seconds; returns their radii."""
        motion = motion_of(self._arrays.state()[:, ids], self._simulator.layout)
        fine = motion.finite()
        centre = np.where(fine[:, None], motion.position, 0.0)
        farthest = np.inf if horizon == np.inf else _speed(motion, fine) * horizon + 0.1
        radius = Obstacles(self._geometry, self._env[ids]).safe_radius(centre, self._bodies.reach[ids], farthest)
        # The ball is tested in single precision far from the origin: what that may lose is taken off first.
        radius = radius - _MARGIN - _ROUNDING * np.abs(centre).max(axis=1)
        inputs, offsets = self._arrays.inputs(), self._simulator.inputs_layout.offsets
        inputs[offsets["safe_center"] : offsets["safe_center"] + 3, ids] = centre.T
        # A flight that is no number any more is stopped by the step itself.
        inputs[offsets["safe_square"], ids] = np.where(fine, np.copysign(radius * radius, radius), np.inf)
        self._arrays.push_inputs()
        self._known[ids] = True
        return np.asarray(radius)

    # ---- launches ---------------------------------------------------------------------------------------------------

    def finish(self, steps: int, effects: Effects, elapsed: int) -> None:
        """Finish a launch: fly those that were held, and let contact act.

        Args:
            steps: Of the launch.
            effects: Compiled into the kernel.
            elapsed: Steps of the same launch that lie behind.
        """
        row = self._simulator.layout.offsets["held"]
        held = np.flatnonzero(self._arrays.state_row(row)[: self._simulator.env_count])
        if not held.size:
            return
        motion = motion_of(self._arrays.state()[:, held], self._simulator.layout)
        # A flight whose new ball holds the whole launch needs no steps one by one.
        path = _speed(motion, motion.finite()) * steps / self._simulator.config.physics_rate
        near = self._surround(held) < path
        near[~near] = ~self._try_again(held[~near], steps, effects, elapsed)
        if near.any():
            self._fly_closely(held[near], steps, effects, elapsed)

    def _try_again(self, ids: ArrayIndex, steps: int, effects: Effects, elapsed: int) -> ArrayBool:
        """Fly with new balls, all steps at once; returns which did not leave them, and are done."""
        if not ids.size:
            return np.zeros(0, bool)
        small = self._compact(len(ids), steps, effects, elapsed)
        small.take(self._arrays, ids)
        small.set_balls(self._arrays, ids)
        small.fly(self._simulator.config, effects, *self._level(), elapsed, steps)
        done = small.row("held") == 0.0
        self._store(small, ids, done, steps, effects, elapsed)
        return np.asarray(done)

    def _fly_closely(self, ids: ArrayIndex, steps: int, effects: Effects, elapsed: int) -> None:
        """Fly step by step, and let contact act after each."""
        small = self._compact(len(ids), steps, effects, elapsed)
        small.take(self._arrays, ids)
        acts = self._acts(small)
        self._begin(acts, ids)
        for step in range(steps):
            flags = effects if step == steps - 1 else effects | Effects.UNFINISHED
            small.fly(self._simulator.config, flags, *self._level(), elapsed + step, 1)
            if Effects.DELAY in effects:
                small.shorten_delays(1)
            acts.act(elapsed + step if Effects.IMU_LOG in effects else -1)
            if self.config.mode == "reset" and not self._on_trial and acts.met().any():
                self._restart(small, acts, ids, np.flatnonzero(acts.met()))
        self.record.add(ids, acts.record())
        self._store(small, ids, np.ones(len(ids), bool), steps, effects, elapsed)

    def _restart(self, small: Compact, acts: Any, ids: ArrayIndex, rows: ArrayIndex) -> None:
        """Begin new flights at some places of the small batch."""
        self.record.add(ids, acts.record())
        self._simulator.restart(ids[rows])
        small.take(self._arrays, ids[rows], rows)
        self._begin(acts, ids)

    def _begin(self, acts: Any, ids: ArrayIndex) -> None:
        self._bodies.begin(acts, self._env[ids], ids, self._dynamic_velocity_sent, self._velocities(ids))

    def acted(self, envs: ArrayIndex, before: BodyMotion, after: BodyMotion) -> tuple[BodyMotion, ArrayBool, ArrayBool]:
        """Return what contact makes of one physics step, without touching the simulator: the twin's.

        Args:
            envs: Environments, (k,).
            before: At the begin of the step, (k,).
            after: At its end, had nothing been there.

        Returns:
            The motion at its end, which flights met something, and which of them stop there, (k,).

        Raises:
            AirworthyError: In mode "reset", which draws a new flight.
        """
        bodies, obstacles = self._bodies.bodies(envs), Obstacles(self._geometry, self._env[envs])
        if self.config.mode == "reset":
            raise AirworthyError("The twin cannot begin new flights; compare with it in contact mode 'freeze' or 'respond'.")
        if self.config.mode == "respond":
            out = self._rebound(envs, before, after)
            return out.end, out.met, np.zeros(len(envs), bool)
        hits = obstacles.first(bodies, before, after)
        met = hits.instance >= 0
        end = after.take(slice(None))
        end.put(met, before.between(after, hits.fraction).take(met))
        return end, met, met

    def met_surfaces(self, envs: ArrayIndex, begin: Array, end: Array, radius: Array) -> Any:
        """Return what spheres of links meet; see `jointed.scene.met_surfaces`.

        Args:
            envs: Environments, (k,).
            begin: Centres, world [m], (k, spheres, 3).
            end: The same after the free step.
            radius: [m], (k, spheres).
        """
        from airworthy.simulation.jointed.scene import met_surfaces

        return met_surfaces(self._geometry, self._env[envs], begin, end, radius, self._dt, self._velocities(envs))

    def _rebound(self, envs: ArrayIndex, before: BodyMotion, after: BodyMotion) -> Rebound:
        obstacles, config = Obstacles(self._geometry, self._env[envs]), self.config
        acts = (self._dt, config.restitution, config.friction, config.rolling, self._velocities(envs))
        return rebound(obstacles, self._bodies.bodies(envs), before, after, *acts)

    # ---- inside -----------------------------------------------------------------------------------------------------

    @property
    def _dt(self) -> float:
        return 1.0 / self._simulator.config.physics_rate

    def _level(self) -> tuple[int, int]:
        return LEVELS[self._simulator.config.level].number, self._simulator.command_rows

    def _velocities(self, envs: ArrayIndex) -> Array | None:
        """Velocity of each instance that environments may hit, (k, instances, 3): only dynamic instances have one."""
        if self.dynamic_velocity is None:
            return None
        still = np.zeros((len(envs), self._geometry.dynamic_start, 3))
        return np.concatenate([still, self.dynamic_velocity[self._env[envs]]], axis=1)

    def _compact(self, count: int, steps: int, effects: Effects, elapsed: int) -> Compact:
        """Return a small batch with room for `count` environments."""
        room = 16
        while room < count:
            room *= 2
        if room not in self._small:
            self._small[room] = self._simulator.compact(room)
        if Effects.IMU_LOG in effects:
            self._small[room].arrays.reserve_log(elapsed + steps)
        return self._small[room]

    def _acts(self, small: Compact) -> Any:
        """Contact of the flights of a small batch."""
        room = small.arrays.stride
        if room not in self._steps:
            self._steps[room] = self._bodies.contact_step(small, self._geometry, self.config, self._dt)
        return self._steps[room]

    def _store(self, small: Compact, ids: ArrayIndex, done: ArrayBool, steps: int, effects: Effects, elapsed: int) -> None:
        """Take flights of the small batch, which has those of `ids`, over into the simulator's memory."""
        rows = np.flatnonzero(done)
        if not rows.size:
            return
        state, to, of = self._arrays.state(), columns(ids[rows]), columns(rows)
        self._arrays.keys()[4, to] = small.clock()[of]
        state[:, to] = small.arrays.state()[:, of]
        state[self._simulator.layout.offsets["held"], to] = 0.0
        self._arrays.push_state()
        if Effects.IMU_LOG in effects:
            until = elapsed + steps
            self._arrays.write_log(elapsed, small.arrays.log(until)[elapsed:, :, rows], ids[rows])


def _speed(motion: BodyMotion, fine: ArrayBool) -> Array:
    v = np.where(fine[:, None], motion.velocity, 0.0)
    return np.asarray(np.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1] + v[:, 2] * v[:, 2]))
