"""What bodies meet in scene geometry: first contacts of a sub-step, and what touches at an instant.

On NumPy arrays over many bodies: the readable twin of `dynamics/native/scene_sweep.h`, which flies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.dynamics.scene_contact import BodyMotion, ContactBodies
from airworthy.dynamics.scene_native import BODY_LAYOUT, POINTS_MAX, RIM, body_core, body_points
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import body_clearance, sweep_body, sweep_sphere

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

# -----------------------------------------------------------------------------------------------------------------------------
# The bodies of a simulator's vehicles as contact with scenes needs them, and the environments that they are in.


class SceneBodies:
    """Points and cores of every environment's body, to the largest number of them, and its parameters in force."""

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        known: dict[int, tuple[Array, Array, Array]] = {}
        for item in simulator.vehicles:
            if id(item) not in known:
                known[id(item)] = (*body_points(item.body, item.center_of_mass), body_core(item.body, item.center_of_mass))
        widest = max(len(radius) for _, radius, _ in known.values())
        index = {key: number for number, key in enumerate(known)}
        self.kind = np.array([index[id(item)] for item in simulator.vehicles])
        """Which of the bodies each environment has, (env,)."""
        self.table = np.stack([_padded(center, radius, widest) for center, radius, _ in known.values()])
        """Centres from the centre of mass, body frame, and radii [m] (negative: no sphere), (bodies, spheres, 4)."""
        self.cores = np.stack([core for _, _, core in known.values()])
        """As `airworthy.geometry.sweep.CORE`, kind 0 for a sphere, (bodies, 9)."""
        self.reach = self.cores[self.kind, 8]
        """Farthest that each body extends from its centre of mass [m], (env,)."""

    def gravity(self, ids: ArrayIndex) -> Array:
        """Return [m/s^2], (k,)."""
        return self._parameter("gravity", ids)

    def bodies(self, ids: ArrayIndex) -> ContactBodies:
        """Return bodies of environments for the equations in NumPy."""
        rows = self.table[self.kind[ids]]
        inertia, inverse = self._inertias(ids)
        cores = self.cores[self.kind[ids]]
        return ContactBodies(
            rows[..., :3], rows[..., 3], cores, self._parameter("mass", ids), inertia, inverse, self.gravity(ids)
        )

    def numbers(self, ids: ArrayIndex) -> Array:
        """Return the same, and the inertial sensors, for the native ones: (k, rows) as `BODY_LAYOUT`."""
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

    def _inertias(self, ids: ArrayIndex) -> tuple[Array, Array]:
        """Zero where impulses do not turn a body, (k, 6) each."""
        if self._simulator.config.dynamics != "rigid":
            return np.zeros((len(ids), 6)), np.zeros((len(ids), 6))
        return self._parameter("inertia", ids), self._parameter("inertia_inverse", ids)

    def _parameter(self, name: str, ids: ArrayIndex) -> Array:
        return np.asarray(self._simulator.parameter(name)[ids], np.float64)


def _padded(center: Array, radius: Array, count: int) -> Array:
    out = np.zeros((count, 4))
    out[:, 3] = -1.0
    out[: len(radius), :3], out[: len(radius), 3] = center, radius
    return out


def environments_of(geometry: GeometryBatch, env: ArrayLike | None, env_count: int) -> ArrayIndex:
    """Return the environment of the geometry for each of a simulator, by default the same number, or the only one.

    Args:
        geometry: With its environments.
        env: Environment of each of the simulator's, (env,); None: see above.
        env_count: Of the simulator.

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


# -----------------------------------------------------------------------------------------------------------------------------

# Ours, as all of these: above what single precision loses at some tens of metres (4e-6 m at 50 m), below what anyone sees.
GAP = 2e-5
"""Distance at which bodies count as touching, and are kept from surfaces [m]."""
BAND = 1e-4
"""What is nearer than this beyond the gap, at an impact elsewhere, takes part in it [m]."""
LEAVING = 1e-7
"""Depth into a surface over a sub-step that does not count as an approach [m]: a tenth of a micrometre."""
SHALLOW = 1e-3
"""Overlap up to which a body may slide or fly out; a deeper one is a contact whatever it does [m]."""
SAME = 1e-4
"""Points of a body that are nearer to each other are one [m]."""
TILT = 1e-3
"""By which a body is tilted to find the ends of what it lies on [rad]."""
PAIRS_MAX = 1 << 18
"""Spheres that are swept in one call."""


@dataclass
class Contacts:
    """First contacts of bodies in motion."""

    fraction: Array
    """Of the motion until contact, (k,); 1 where there is none."""
    sphere: ArrayIndex
    """Which sphere of the body, (k,); -1: it is a box or cylinder."""
    normal: Array
    """From the surface to the body, world, (k, 3)."""
    point: Array
    """On the surface, world [m], (k, 3); NaN where there is none."""
    instance: NDArray[np.int32]
    """What was hit, (k,); -1: nothing."""
    arm: Array
    """Box, cylinder: nearest point of the core, body frame [m], (k, 3)."""
    depth: Array
    """Box, cylinder: how far that is from where it should be kept [m], (k,): positive where it is deeper."""

    def drop(self, rows: ArrayBool) -> None:
        """Drop some bodies, which meet nothing."""
        self.fraction[rows], self.instance[rows], self.normal[rows], self.point[rows] = 1.0, -1, 0.0, np.nan


class Obstacles:
    """Scene geometry as bodies meet it.

    Args:
        geometry: Environments.
        env: Environment of each body, (k,).
    """

    def __init__(self, geometry: GeometryBatch, env: ArrayIndex):
        self._geometry, self.env = geometry, env

    def take(self, rows: Any) -> Obstacles:
        """Return the obstacles as some of the bodies meet it."""
        return Obstacles(self._geometry, self.env[rows])

    def safe_radius(self, position: Array, reach: Array, farthest: Array | float = np.inf) -> Array:
        """Return the distance that a body may go without meeting anything [m], (k,); negative where it may have already.

        Args:
            position: Centre of mass, (k, 3).
            reach: Farthest that each body extends from it, (k,).
            farthest: A larger answer is of no use [m].
        """
        found = clearance(self._geometry, position, self.env, farthest + reach)
        return np.minimum(found.distance, farthest + reach) - reach

    def first(self, bodies: ContactBodies, start: BodyMotion, end: BodyMotion) -> Contacts:
        """Return the first contact of each body between two motions.

        Spheres move straight from where they were to where they are; boxes and cylinders turn along their path.

        Args:
            bodies: k of them.
            start: At the begin, (k,).
            end: At the end, had nothing been there, (k,).
        """
        # In blocks, which bounds the memory of the tables below.
        block = max(PAIRS_MAX // bodies.radius.shape[1], 1)
        count = len(self.env)
        if count > block:
            parts = [slice(k, k + block) for k in range(0, count, block)]
            chunks = [self.take(rows).first(bodies.take(rows), start.take(rows), end.take(rows)) for rows in parts]
            return Contacts(*(np.concatenate([getattr(f, name) for f in chunks]) for name in Contacts.__dataclass_fields__))
        fine, convex = start.finite() & end.finite(), bodies.core[:, 0] > 0.5
        # Padding has a negative radius; boxes and cylinders are swept by themselves, below.
        there = (bodies.radius >= 0.0) & (fine & ~convex)[:, None]
        row, sphere = np.nonzero(there)
        begin = bodies.centers_at(start.position, start.attitude)[row, sphere]
        final = bodies.centers_at(end.position, end.attitude)[row, sphere]
        hits = self._sweep(begin, final, bodies.radius[row, sphere] + GAP, self.env[row])
        # 2: later than any contact, whose fraction is 1 at most.
        table = np.full(there.shape, 2.0)
        table[row, sphere] = np.where(hits.instance >= 0, hits.fraction, 2.0)
        best = table.argmin(axis=1)
        # Tables of bodies by spheres, padded: one sweep serves bodies with different numbers of spheres.
        number = np.full(there.shape, -1)
        number[row, sphere] = np.arange(len(row))
        chosen = number[np.arange(count), best]
        met = table[np.arange(count), best] <= 1.0
        chosen = np.where(met, chosen, -1)  # the last row of the padded tables: nothing
        pad = {"fraction": 1.0, "normal": np.zeros(3), "point": np.full(3, np.nan), "instance": np.int32(-1)}
        values = {name: np.concatenate([getattr(hits, name), np.asarray(value)[None]])[chosen] for name, value in pad.items()}
        found = Contacts(sphere=best, arm=np.zeros((count, 3)), depth=np.zeros(count), **values)
        rows = np.flatnonzero(fine & convex)
        if rows.size:
            found.sphere[rows] = -1
            self._first_convex(rows, bodies, start, end, found)
        return found

    def _first_convex(
        self, rows: ArrayIndex, bodies: ContactBodies, start: BodyMotion, end: BodyMotion, found: Contacts
    ) -> None:
        """Find the first hits of some boxes and cylinders, into `found`."""
        core, (begin, final) = bodies.core[rows], [(m.position[rows], m.attitude[rows]) for m in (start, end)]
        hit = sweep_body(self._geometry, core, begin, final, self.env[rows], gap=GAP, leaving=LEAVING, shallow=SHALLOW)
        for name in ("fraction", "normal", "point", "instance", "arm"):
            getattr(found, name)[rows] = getattr(hit, name)
        found.depth[rows] = np.where(hit.instance >= 0, core[:, 7] + GAP - hit.distance, 0.0)

    def _sweep(self, begin: Array, final: Array, radius: Array, env: ArrayIndex) -> Contacts:
        """Sweeps of spheres; one that touches at the start without going further in is swept as if it did not touch."""
        hit = sweep_sphere(self._geometry, begin, final, radius, env)
        none, arm = np.zeros(len(env)), np.zeros((len(env), 3))
        found = Contacts(hit.fraction, none.astype(np.intp), hit.normal, hit.point, hit.instance, arm, none)
        path = final - begin
        inward, length = -_dot(path, found.normal), np.sqrt(_dot(path, path))
        found.drop((found.instance >= 0) & (found.fraction > 0.0) & (length <= LEAVING))
        again = np.flatnonzero((found.instance >= 0) & (found.fraction <= 0.0) & (inward <= LEAVING))
        if not again.size:
            return found
        near = clearance(self._geometry, begin[again], env[again], radius[again] + SHALLOW)
        depth = radius[again] - near.distance
        again, smaller = again[depth <= SHALLOW], (near.distance - 2.0 * LEAVING)[depth <= SHALLOW]
        again, smaller = again[smaller > 0.0], smaller[smaller > 0.0]
        hit = sweep_sphere(self._geometry, begin[again], final[again], np.minimum(smaller, radius[again]), env[again])
        for mine, new in ((found.fraction, hit.fraction), (found.normal, hit.normal), (found.point, hit.point)):
            mine[again] = new
        found.instance[again] = hit.instance
        return found

    def touching(self, bodies: ContactBodies, at: BodyMotion, hit: Contacts) -> tuple[ContactBodies, ArrayBool, Array, Array]:
        """Return what touches at an impact: the sphere that hit, or the points of a box or cylinder, and those that nearly do.

        Args:
            bodies: k of them.
            at: At the impact, (k,).
            hit: What was hit.

        Returns:
            The bodies with all points that may touch, which of these do, (k, m), the normals there, (k, m, 3), and how far each
            is from where it should be kept, (k, m) [m]: positive where it is deeper.
        """
        row, sphere = np.nonzero(bodies.radius >= 0.0)
        points = bodies.centers_at(at.position, at.attitude)[row, sphere]
        radius = bodies.radius[row, sphere]
        near = clearance(self._geometry, points, self.env[row], radius + 2.0 * SHALLOW + BAND)
        normal, depth = np.zeros((*bodies.radius.shape, 3)), np.full(bodies.radius.shape, -np.inf)
        normal[row, sphere] = near.normal
        depth[row, sphere] = radius + GAP - near.distance
        touch = depth > -BAND
        which = np.flatnonzero(hit.sphere >= 0)
        touch[which, hit.sphere[which]] = True
        # A sphere in a corner is near two surfaces: the one that it hit counts.
        normal[which, hit.sphere[which]] = hit.normal[which]
        if len(which) == len(touch):
            return bodies, touch, normal, depth
        return self._patches(bodies, at, hit, touch, normal, depth)

    def _patches(
        self, bodies: ContactBodies, at: BodyMotion, hit: Contacts, touch: ArrayBool, normal: Array, depth: Array
    ) -> tuple[ContactBodies, ArrayBool, Array, Array]:
        """Five more points for boxes and cylinders that lie on something smaller than their face.

        The nearest point, and, since that may be anywhere in the common patch, those that become the nearest when the body is
        tilted a little four ways: the ends of the patch.
        """
        count, old = touch.shape
        center, radius = np.zeros((count, old + 5, 3)), np.full((count, old + 5), -1.0)
        center[:, :old], radius[:, :old] = bodies.center, bodies.radius
        touch, normal = np.pad(touch, ((0, 0), (0, 5))), np.pad(normal, ((0, 0), (0, 5), (0, 0)))
        depth = np.pad(depth, ((0, 0), (0, 5)), constant_values=-np.inf)
        for k in np.flatnonzero(hit.sphere < 0):
            mine = np.flatnonzero(touch[k])
            if _carried(bodies.core[k], hit.normal[k], hit.arm[k], center[k, mine], normal[k, mine]):
                continue
            added = []
            if not _known(center[k, mine], hit.arm[k], 1e-9):
                added.append((hit.arm[k], hit.depth[k], hit.normal[k]))
            for arm in self._ends(bodies.core[k], at.take([k]), hit.normal[k], self.env[k]):
                if len(mine) + len(added) >= POINTS_MAX:
                    break
                if _known([*center[k, mine], *(a for a, *_ in added)], arm, 10.0 * SAME):
                    continue
                margin = bodies.core[k, 7]
                position = at.position[k] + rotate(at.attitude[k], arm)
                near = clearance(self._geometry, position[None], self.env[k], margin + 2.0 * SHALLOW + BAND)
                deep = margin + GAP - near.distance[0]
                if deep > -BAND:
                    added.append((arm, deep, near.normal[0]))
            for slot, (arm, deep, direction) in enumerate(added, old):
                center[k, slot], radius[k, slot], touch[k, slot] = arm, bodies.core[k, 7], True
                depth[k, slot], normal[k, slot] = deep, direction
        return replace(bodies, center=center, radius=radius), touch, normal, depth

    def _ends(self, core: Array, at: BodyMotion, n: Array, env: Any) -> list[Array]:
        """Points of a core that are the nearest when its body is tilted four ways, body frame."""
        side = np.cross(n, [1.0, 0.0, 0.0] if abs(n[0]) < 0.6 else [0.0, 1.0, 0.0])
        side /= np.linalg.norm(side)
        along, q, ends = np.cross(n, side), at.attitude[0], []
        for a, b in ((0.8, 0.6), (-0.6, 0.8), (-0.8, -0.6), (0.6, -0.8)):
            v = (a * side + b * along) * (0.5 * TILT)
            turned = np.r_[q[:3] + v * q[3] + np.cross(v, q[:3]), q[3] - v @ q[:3]]
            pose = (at.position, turned / np.linalg.norm(turned))
            found = body_clearance(self._geometry, core, pose, env, SHALLOW + 2.0 * TILT * core[8])
            if found.instance[0] >= 0:
                ends.append(found.arm[0])
        return ends


def _known(points: Any, arm: Array, within: float) -> bool:
    return any(np.linalg.norm(point - arm) < within for point in points)


def _carried(core: Array, normal: Array, arm: Array, points: Array, normals: Array) -> bool:
    """Tell whether points of a body that touch carry it where it hit: a whole face, an edge, or a corner."""
    alike = points[normals @ normal > 1.0 - 1e-9]
    if len(alike) >= (4 if core[0] < 1.5 else RIM):
        return True
    if not 0 < len(alike) < 3:
        return False
    edge = alike[-1] - alike[0]
    share = np.clip((arm - alike[0]) @ edge / max(edge @ edge, 1e-30), 0.0, 1.0)
    return bool(np.linalg.norm(alike[0] + share * edge - arm) < SAME)


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2])
