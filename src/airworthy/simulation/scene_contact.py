"""Contact of a batch with scene geometry, inside its launches.

Each environment has a safe ball: no part of its vehicle meets anything while the centre of mass stays inside. The fused step
watches every physics step for flights that leave theirs, and holds those as they were. Here they get a new ball and fly again,
in a small batch of their own; those that are truly near something are flown step by step, with exact sweeps, and what they meet
acts. Balls only decide how a flight is computed, never where it goes: flown either way it has the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError
from airworthy.core.vectors import rotate_inverse
from airworthy.dynamics import equations as eq
from airworthy.dynamics.body_spheres import body_spheres, reach
from airworthy.dynamics.scene_contact import Bodies, Motion, approach_speed, split, stacked
from airworthy.dynamics.state import Effects
from airworthy.geometry.batch import GeometryBatch
from airworthy.simulation.arrays import BatchArrays
from airworthy.simulation.compact import Compact, motion_of
from airworthy.simulation.config import Contact
from airworthy.simulation.contacts import ContactRecord
from airworthy.simulation.obstacles import Contacts, Obstacles
from airworthy.simulation.rebound import Rebound, rebound
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

STEPS_MAX = 32
"""Physics steps that fly in one go where there is geometry: what is near something keeps a state for each."""
STOPPED = 2.0
"""Status of a flight that contact stopped."""
_ROUNDING = 1e-6
"""Share of a position that the step's single precision may be wrong by, doubled for the ball's centre."""
_MARGIN = 1e-4
"""[m]"""


class SceneContact:
    """Contact of a simulator's environments with geometry.

    Args:
        simulator: Whose.
        config: What happens.
        geometry: The scenes.
        env: Environment of the geometry that each of the simulator's is in, (env,).
        arrays: Memory of the simulator.
    """

    def __init__(self, simulator: Simulator, config: Contact, geometry: GeometryBatch, env: Ints, arrays: BatchArrays):
        self._simulator, self._config, self._geometry, self._arrays = simulator, config, geometry, arrays
        self._env = env
        self.record = ContactRecord.of(simulator.env_count)
        self.mover_velocity: Array | None = None
        """World velocity of the movers of each geometry environment [m/s], (geometry env, movers, 3); None: at rest."""
        self._spheres = _Spheres(simulator.vehicles)
        self._small: dict[int, Compact] = {}
        self._seen: Any = None
        self._known = np.zeros(simulator.env_count, bool)

    def set_mover_velocity(self, velocity: ArrayLike | None) -> None:
        """See `Simulator.set_mover_velocity`."""
        if velocity is None:
            self.mover_velocity = None
            return
        array, shape = np.asarray(velocity, np.float64), (self._geometry.env_count, self._geometry.mover_count, 3)
        if array.shape != shape or not np.isfinite(array).all():
            raise AirworthyError(f"Movers got velocities of shape {array.shape}; expected finite numbers, shape {shape}.")
        self.mover_velocity = array

    # ---- safe balls -------------------------------------------------------------------------------------------------

    def forget(self, ids: Ints | None = None) -> None:
        """What is around these environments is unknown: they moved, or the geometry did."""
        self._known[slice(None) if ids is None else ids] = False

    def prepare(self, seconds: float) -> None:
        """Before a launch: find what is around environments of which it is not known.

        Args:
            seconds: Length of the launch.
        """
        revision = getattr(self._geometry, "revision", None)
        moved = revision != self._seen if revision is not None else self._geometry.mover_count > 0
        self._seen = revision
        if moved:
            self.forget()
        unknown = np.flatnonzero(~self._known)
        if unknown.size:
            # Movers make every ball short-lived, and short ones are found faster.
            short = self._geometry.mover_count > 0
            self._surround(unknown, 4.0 * seconds if short else np.inf)

    def _surround(self, ids: Ints, horizon: float = np.inf) -> Array:
        """New balls for some environments, as far as they can go in `horizon` seconds; returns their radii."""
        motion = motion_of(self._arrays.state()[:, ids], self._simulator.layout)
        fine = motion.finite()
        centre = np.where(fine[:, None], motion.position, 0.0)
        farthest = np.inf if horizon == np.inf else _speed(motion, fine) * horizon + 0.1
        radius = Obstacles(self._geometry, self._env[ids]).safe_radius(centre, self._spheres.reach[ids], farthest)
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
        """After a launch: fly those that were held, and let contact act."""
        row = self._simulator.layout.offsets["held"]
        held = np.flatnonzero(self._arrays.state_row(row)[: self._simulator.env_count])
        if not held.size:
            return
        motion = motion_of(self._arrays.state()[:, held], self._simulator.layout)
        way = _speed(motion, motion.finite()) * steps / self._simulator.config.physics_rate
        near = self._surround(held) < way
        near[~near] = ~self._try_again(held[~near], steps, effects, elapsed)
        if near.any():
            self._fly_closely(held[near], steps, effects, elapsed)

    def _try_again(self, ids: Ints, steps: int, effects: Effects, elapsed: int) -> NDArray[np.bool_]:
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

    def _fly_closely(self, ids: Ints, steps: int, effects: Effects, elapsed: int) -> None:
        """Fly step by step, look for contacts in all steps at once, and let those happen that there are."""
        small = self._compact(len(ids), steps, effects, elapsed)
        small.take(self._arrays, ids)
        kept, motions = [small.columns()], [small.motion()]
        flying = [small.row("status") == 0.0]
        for step in range(steps):
            self._fly_one(small, step, steps, effects, elapsed)
            kept.append(small.columns())
            motions.append(small.motion())
            flying.append(small.row("status") == 0.0)
        first = self._first_contacts(ids, motions, flying)
        free = first == steps
        self._store(small, ids, free, steps, effects, elapsed)
        if not free.all():
            begin = int(first.min())
            columns = tuple(part[..., ~free] for part in kept[begin])
            self._collide(ids[~free], columns, begin, steps, effects, elapsed)

    def _first_contacts(self, ids: Ints, motions: list[Motion], flying: list[NDArray[np.bool_]]) -> Ints:
        """Step in which each flight first meets something, (k,); the number of steps where it meets nothing."""
        steps, count = len(motions) - 1, len(ids)
        bodies, obstacles = self._bodies(np.tile(ids, steps)), Obstacles(self._geometry, np.tile(self._env[ids], steps))
        hits = obstacles.first(bodies, _joined(motions[:-1]), _joined(motions[1:]))
        met = (hits.instance >= 0).reshape(steps, count) & np.array(flying[:-1])
        return np.where(met.any(axis=0), met.argmax(axis=0), steps)

    def _collide(self, ids: Ints, columns: Any, begin: int, steps: int, effects: Effects, elapsed: int) -> None:
        """Fly step by step from step `begin` on, with contact."""
        small = self._compact(len(ids), steps, effects, elapsed)
        small.take(self._arrays, ids)
        small.put(columns)
        small.shorten_delays(begin)
        for step in range(begin, steps):
            before, flying = small.motion(), small.row("status") == 0.0
            self._fly_one(small, step, steps, effects, elapsed)
            rows = np.flatnonzero(flying & (small.row("status") == 0.0))
            if rows.size:
                self._meet(small, ids, rows, before.take(rows), step, effects, elapsed)
        self._store(small, ids, np.ones(len(ids), bool), steps, effects, elapsed)

    def _fly_one(self, small: Compact, step: int, steps: int, effects: Effects, elapsed: int) -> None:
        flags = effects if step == steps - 1 else effects | Effects.UNFINISHED
        small.fly(self._simulator.config, flags, *self._level(), elapsed + step, 1)
        small.shorten_delays(1)

    def acted(self, envs: Ints, before: Motion, after: Motion) -> tuple[Motion, NDArray[np.bool_], NDArray[np.bool_]]:
        """What contact makes of one physics step, without touching the simulator: the twin's.

        Args:
            envs: Environments, (k,).
            before: At the begin of the step, (k,).
            after: At its end, had nothing been there.

        Returns:
            The motion at its end, which flights met something, and which of them stop there, (k,).

        Raises:
            AirworthyError: In mode "reset", which draws a new flight.
        """
        bodies, obstacles = self._bodies(envs), Obstacles(self._geometry, self._env[envs])
        if self._config.mode == "reset":
            raise AirworthyError("The twin cannot begin new flights; compare with it in contact mode 'freeze' or 'respond'.")
        if self._config.mode == "respond":
            out = self._rebound(envs, before, after)
            return out.end, out.met, np.zeros(len(envs), bool)
        hits = obstacles.first(bodies, before, after)
        met = hits.instance >= 0
        end = after.take(slice(None))
        end.put(met, before.between(after, hits.fraction).take(met))
        return end, met, met

    def _rebound(self, envs: Ints, before: Motion, after: Motion) -> Rebound:
        obstacles, config = Obstacles(self._geometry, self._env[envs]), self._config
        acts = (self._dt, config.restitution, config.friction, self._velocities(envs))
        return rebound(obstacles, self._bodies(envs), before, after, *acts)

    # ---- what contact does ------------------------------------------------------------------------------------------

    def _meet(self, small: Compact, ids: Ints, rows: Ints, before: Motion, step: int, effects: Effects, elapsed: int) -> None:
        """Let contact act on flights of the small batch in the step that they just flew."""
        after = small.motion().take(rows)
        envs = ids[rows]
        bodies, obstacles = self._bodies(envs), Obstacles(self._geometry, self._env[envs])
        if self._config.mode == "respond":
            log = elapsed + step if Effects.IMU_LOG in effects else None
            self._respond(small, rows, envs, self._rebound(envs, before, after), after, log)
            return
        hits = obstacles.first(bodies, before, after)
        met = hits.instance >= 0
        if not met.any():
            return
        at = before.between(after, hits.fraction)
        speed = _closing(at, hits, bodies)
        chosen = Contacts(*(getattr(hits, name)[met] for name in Contacts.__dataclass_fields__))
        self._note(small, rows[met], envs[met], chosen, speed[met])
        small.add_contact(rows[met], speed[met])
        if self._config.mode == "freeze":
            small.set_motion(rows[met], at.take(met))
            small.stop(rows[met], STOPPED)
        else:
            self._simulator.restart(envs[met])
            small.take(self._arrays, envs[met], rows[met])

    def _respond(self, small: Compact, rows: Ints, envs: Ints, out: Rebound, free: Motion, log: int | None) -> None:
        met = np.flatnonzero(out.met)
        if not met.size:
            return
        rows, envs, change = rows[met], envs[met], out.end.velocity[met] - free.velocity[met]
        turn, attitude = out.end.rate[met] - free.rate[met], free.attitude[met]
        small.set_motion(rows, out.end.take(met))
        struck = out.speed[met] >= np.maximum(2.0 * self._gravity(envs) * self._dt, 0.1)
        first = Contacts(*(getattr(out.first, name)[met] for name in Contacts.__dataclass_fields__))
        small.add_contact(rows, out.speed[met])
        hit = Contacts(*(getattr(first, name)[struck] for name in Contacts.__dataclass_fields__))
        self._note(small, rows[struck], envs[struck], hit, out.speed[met][struck])
        self._feel(small, rows, envs, attitude, change / self._dt, turn / self._dt, log)

    def _feel(
        self, small: Compact, rows: Ints, envs: Ints, attitude: Array, force: Array, turn: Array, log: int | None
    ) -> None:
        """Add what contact does to a step's specific force, and to its accelerometer sample."""
        felt = rotate_inverse(split(attitude), split(force))
        layout, state = self._simulator.layout, small.arrays.state()
        place = layout.offsets["acceleration"]
        state[place : place + 3, rows] += stacked(felt).T
        if self._simulator.config.imu is not None and "imu" in layout:
            p = [
                np.asarray(self._simulator.parameter(f"imu_{name}")[envs], np.float64)
                for name in ("rotation", "position", "limit")
            ]
            still = (0.0, 0.0, 0.0)
            sample = eq.accelerometer(felt, still, split(turn), split(p[0]), split(p[1]))
            place, limit = layout.offsets["imu"], p[2][:, 0]
            state[place : place + 3, rows] = np.clip(state[place : place + 3, rows] + stacked(sample).T, -limit, limit)
            if log is not None:
                small.arrays.write_log(log, state[None, place : place + 6, rows], rows)
        small.arrays.push_state()

    def _note(self, small: Compact, rows: Ints, envs: Ints, hit: Contacts, speed: Array) -> None:
        """Record impacts; the clock of a flight stands at the end of the step."""
        if not rows.size:
            return
        steps = small.clock()[rows].astype(np.int64) - 1 + hit.fraction
        self.record.add(envs, steps * self._dt, hit, speed)

    # ---- inside -----------------------------------------------------------------------------------------------------

    @property
    def _dt(self) -> float:
        return 1.0 / self._simulator.config.physics_rate

    def _level(self) -> tuple[int, int]:
        return LEVELS[self._simulator.config.level].number, self._simulator.command_rows

    def _gravity(self, envs: Ints) -> Array:
        return np.asarray(self._simulator.parameter("gravity")[envs], np.float64)

    def _bodies(self, envs: Ints) -> Bodies:
        """Bodies of environments, with the parameters in force."""
        mass = np.asarray(self._simulator.parameter("mass")[envs], np.float64)
        shape = (len(envs), 6)
        known = self._simulator.config.dynamics == "rigid"
        inertia, inverse = (
            np.asarray(self._simulator.parameter(name)[envs], np.float64) if known else np.zeros(shape)
            for name in ("inertia", "inertia_inverse")
        )
        return Bodies(self._spheres.center[envs], self._spheres.radius[envs], mass, inertia, inverse, self._gravity(envs))

    def _velocities(self, envs: Ints) -> Array | None:
        """Velocity of each instance that environments may hit, (k, instances, 3): only movers have one."""
        if self.mover_velocity is None:
            return None
        still = np.zeros((len(envs), self._geometry.mover_start, 3))
        return np.concatenate([still, self.mover_velocity[self._env[envs]]], axis=1)

    def _compact(self, count: int, steps: int, effects: Effects, elapsed: int) -> Compact:
        """A small batch with room for `count` environments."""
        room = 16
        while room < count:
            room *= 4
        if room not in self._small:
            self._small[room] = self._simulator.compact(room)
        if Effects.IMU_LOG in effects:
            self._small[room].arrays.reserve_log(elapsed + steps)
        return self._small[room]

    def _store(self, small: Compact, ids: Ints, done: NDArray[np.bool_], steps: int, effects: Effects, elapsed: int) -> None:
        """Take flights of the small batch, which has those of `ids`, over into the simulator's memory."""
        rows = np.flatnonzero(done)
        if not rows.size:
            return
        state = self._arrays.state()
        self._arrays.keys()[4, ids[rows]] = small.clock()[rows]
        state[:, ids[rows]] = small.arrays.state()[:, rows]
        state[self._simulator.layout.offsets["held"], ids[rows]] = 0.0
        self._arrays.push_state()
        if Effects.IMU_LOG in effects:
            until = elapsed + steps
            self._arrays.write_log(elapsed, small.arrays.log(until)[elapsed:, :, rows], ids[rows])


class _Spheres:
    """Spheres of every environment's body, to the largest number of them."""

    def __init__(self, vehicles: Sequence[Vehicle]):
        known: dict[int, tuple[Array, Array]] = {}
        for item in vehicles:
            if id(item) not in known:
                known[id(item)] = body_spheres(item.body, item.center_of_mass)
        widest = max(len(radius) for _, radius in known.values())
        padded = {key: _padded(*value, widest) for key, value in known.items()}
        count = len(vehicles)
        if len(padded) == 1:
            center, radius = next(iter(padded.values()))
            self.center = np.broadcast_to(center, (count, widest, 3))
            self.radius = np.broadcast_to(radius, (count, widest))
        else:
            self.center = np.stack([padded[id(item)][0] for item in vehicles])
            self.radius = np.stack([padded[id(item)][1] for item in vehicles])
        extents = {key: reach(*value) for key, value in known.items()}
        self.reach = np.array([extents[id(item)] for item in vehicles])
        """Farthest that each body extends from its centre of mass [m], (env,)."""


def _padded(center: Array, radius: Array, count: int) -> tuple[Array, Array]:
    missing = count - len(radius)
    return np.concatenate([center, np.zeros((missing, 3))]), np.concatenate([radius, np.full(missing, -1.0)])


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


def _joined(motions: list[Motion]) -> Motion:
    return Motion(*(np.concatenate([getattr(m, name) for m in motions]) for name in Motion.__dataclass_fields__))


def _speed(motion: Motion, fine: NDArray[np.bool_]) -> Array:
    v = np.where(fine[:, None], motion.velocity, 0.0)
    return np.asarray(np.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1] + v[:, 2] * v[:, 2]))


def _closing(at: Motion, hit: Contacts, bodies: Bodies) -> Array:
    """Speed at which the sphere that hit approaches the surface [m/s], (k,)."""
    speeds = approach_speed(bodies, at, np.repeat(hit.normal[:, None], bodies.radius.shape[1], axis=1))
    return np.maximum(speeds[np.arange(len(hit.sphere)), hit.sphere], 0.0)
