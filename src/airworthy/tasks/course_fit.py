"""The room that a course leaves a vehicle in a place: how near its body comes to what can be hit, where it meets it, where it
leaves the place.

The body is the one with which the simulator collides, at the attitude that following the course exactly asks for. Between two
samples no part of it moves farther than its speed and turn allow, so that a wall between them is not missed: intervals are
halved until it is certain whether the body touches within them, or they are shorter than `FINEST`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.frames import rotate
from airworthy.dynamics.scene_native import body_core
from airworthy.geometry import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import body_clearance
from airworthy.scenes import Scene, SceneBatch
from airworthy.scenes.splats.placing import SURFACE, with_surface
from airworthy.trajectories import Trajectory, kinematic_state
from airworthy.vehicles import Vehicle

__all__ = [
    "CourseCheck",
    "CourseClearance",
    "CourseTouch",
    "check_course",
    "course_clearance",
    "gap_of",
    "solid_scene",
    "thing_name",
]

CourseCheck = Literal["refuse", "warn", "none"]
"""What becomes of a course that does not fit: an error, a warning, or nothing, not even a look."""

# Ours: a body that stands on a floor, as at a start, overlaps it by rounding.
SLACK = 1e-3
"""An overlap up to this is no contact [m]."""
FINEST = 2e-3
"""Intervals in which the body moves less are not halved any more [m]."""
FAR = 5.0
"""Things farther away are not looked for [m]."""
STEP = 0.1
"""Of the first samples along the course [m], and of its time [s]."""
SAMPLES_MAX = 200_000

Gap = Callable[[Array], tuple[Array, ArrayInt]]


@dataclass(frozen=True)
class CourseTouch:
    """A stretch of a course on which the body overlaps one thing."""

    thing: str
    """Name of what is met first."""
    begin: float
    """When it is met [s of the course]; `end` likewise."""
    end: float
    position: tuple[float, float, float]
    """Of the centre of mass at the begin, world [m]."""
    nearest_time: float
    """When the centre of mass is nearest to it, or deepest inside [s]."""
    center_distance: float
    """Distance of the centre of mass from any surface then [m]; negative inside a solid or closed mesh."""
    needed: float
    """What the body would need there [m]: `center_distance` less the body's own, negative, distance."""


@dataclass(frozen=True)
class CourseClearance:
    """How a course lies in a place."""

    vehicle: str
    scene: str
    gap: float
    """Least distance of the body from anything that can be hit [m]; negative: it overlaps; inf: nothing within `FAR`."""
    time: float
    """When that is [s of the course]."""
    position: tuple[float, float, float]
    """Of the centre of mass then, world [m]."""
    thing: str
    """Name of what is nearest then; empty where nothing is."""
    touches: tuple[CourseTouch, ...]
    """In order of time."""
    leaves: tuple[float, tuple[float, float, float]] | None
    """When and where the course leaves the bounds of the scene first; None: it stays inside."""

    @property
    def fits(self) -> bool:
        """Whether the body meets nothing and stays inside of the place."""
        return not self.touches and self.leaves is None

    def room(self) -> str:
        """Return how much room there is, as the end of a sentence about the vehicle."""
        if not np.isfinite(self.gap):
            return f"meets nothing within {FAR:g} m of its course"
        return f"keeps {self.gap:.2f} m from {self.thing}, nearest at {self.time:.2f} s, at {_point(self.position)} m"

    def problem(self, course: str) -> str:
        """Return one sentence, without its full stop, on what does not fit; empty where all does.

        Args:
            course: How the course is called.
        """
        parts = [_met(course, self.vehicle, self.scene, self.touches)] if self.touches else []
        if self.leaves is not None:
            time, position = self.leaves
            subject = "it" if parts else f"The course {course!r}"
            parts.append(f"{subject} leaves the bounds of {self.scene!r} at {time:.2f} s, at {_point(position)} m")
        return ", and ".join(parts)


def _met(course: str, vehicle: str, scene: str, touches: tuple[CourseTouch, ...]) -> str:
    first = touches[0]
    depth = first.center_distance
    if depth < 0.0:
        how = f"its centre is {-depth:.2f} m inside at {first.nearest_time:.2f} s"
    else:
        how = f"its centre comes within {depth:.2f} m at {first.nearest_time:.2f} s, where its body needs {first.needed:.2f} m"
    begins = {item.thing: item.begin for item in reversed(touches) if item.thing != first.thing}
    others = [f"{thing} at {begin:.2f} s" for thing, begin in sorted(begins.items(), key=lambda item: item[1])]
    more = f" (then {', '.join(others[:3])}{', ...' if len(others) > 3 else ''})" if others else ""
    where = f"at {first.begin:.2f} s, at {_point(first.position)} m"
    return f"The course {course!r} takes {vehicle!r} into {first.thing} of {scene!r} {where}: {how}{more}"


def _point(position: tuple[float, float, float]) -> str:
    return "(" + ", ".join(f"{round(value, 3) + 0.0:.3g}" for value in position) + ")"


def solid_scene(scene: Scene) -> Scene:
    """Return what of a scene can be hit and stands still, without gaussians; where a captured place has nothing to hit, with
    the surface around what is opaque.

    Args:
        scene: The scene.
    """
    if any(not item.attached for item in scene.splats) and not any(item.collide for item in scene.instances):
        scene = with_surface(scene)
    return replace(scene, actors=(), clouds={}, splats=(), lights=(), beacons=())


def thing_name(scene: Scene, instance: int) -> str:
    """Return how a thing of a scene is called in messages.

    Args:
        scene: The scene.
        instance: Its number among the scene's instances; -1: none.
    """
    if not 0 <= instance < len(scene.instances):
        return ""
    item = scene.instances[instance]
    if SURFACE in (item.shape, item.name):
        return "the captured surface"
    return repr(item.name) if item.name else f"the {item.semantic.replace('_', ' ')}"


def course_clearance(
    path: Trajectory, scene: Scene, vehicle: Vehicle, *, solid: Scene | None = None, geometry: GeometryBatch | None = None
) -> CourseClearance:
    """Return how much room a course leaves a vehicle in a scene.

    What moves in the scene is left out.

    Args:
        path: The course as it is flown.
        scene: The place.
        vehicle: Whose body it is.
        solid: Of `solid_scene`, where it was made before.
        geometry: That of `solid`, where it was placed before; of one environment.

    Raises:
        AirworthyError: The course is so long, and so near to things, that it cannot be looked at throughout.
    """
    bare = solid_scene(scene) if solid is None else solid
    geometry = SceneBatch(bare, 1).geometry if geometry is None else geometry
    core = body_core(vehicle.body, vehicle.center_of_mass)
    gap_at = gap_of(path, geometry, core, vehicle.gravity)
    t, gap, met = _refined(path, gap_at, float(core[8]), vehicle.gravity)
    k = int(np.argmin(gap))
    nothing = gap[k] >= FAR
    return CourseClearance(
        vehicle=vehicle.name,
        scene=scene.name,
        gap=float("inf") if nothing else float(gap[k]) + 0.0,
        time=float(t[k]),
        position=_place(path, t[k]),
        thing="" if nothing else thing_name(bare, int(met[k])),
        touches=_touches(path, geometry, bare, t, gap, met),
        leaves=_leaves(path, scene, t),
    )


def check_course(
    path: Trajectory,
    scene: Scene,
    vehicles: Sequence[Vehicle],
    name: str,
    check: CourseCheck,
    advice: str,
    *,
    bounds: bool = True,
) -> None:
    """Refuse, or warn of, a course on which a vehicle meets something or leaves the place.

    Args:
        path: The course as it is flown.
        scene: The place.
        vehicles: Who flies; each body is looked at once.
        name: How the course is called.
        check: What becomes of a course that does not fit.
        advice: What to do about it, the end of the sentence.
        bounds: Whether leaving the bounds of the scene counts.

    Raises:
        AirworthyError: It does not fit, and `check` is "refuse".
    """
    if check == "none":
        return
    solid = solid_scene(scene)
    for vehicle in {(item.body, item.center_of_mass): item for item in reversed(vehicles)}.values():
        found = course_clearance(path, scene, vehicle, solid=solid)
        problem = (found if bounds else replace(found, leaves=None)).problem(name)
        if problem and check == "refuse":
            raise AirworthyError(f"{problem}: {advice}.")
        if problem:
            warnings.warn(f"{problem}.", AssetWarning, stacklevel=3)
            return


def gap_of(path: Trajectory, geometry: GeometryBatch, core: Array, gravity: float) -> Gap:
    """Return what gives the body's distances at times, at most `FAR`, and what is nearest."""

    def gap_at(t: Array) -> tuple[Array, ArrayInt]:
        sample = path.sample(t)
        attitude = kinematic_state(sample, gravity).attitude
        env = np.zeros(len(t), np.int32)
        if core[0] < 0.5:  # a sphere
            found = clearance(geometry, sample.position + rotate(attitude, core[4:7]), env=env, max_distance=FAR + core[7])
            return np.minimum(found.distance - core[7], FAR), found.instance.astype(np.int64)
        rows = np.broadcast_to(core, (len(t), len(core)))
        body = body_clearance(geometry, rows, (sample.position, attitude), env, FAR + float(core[7]))
        return np.minimum(body.distance - core[7], FAR), body.instance.astype(np.int64)

    return gap_at


def _refined(path: Trajectory, gap_at: Gap, reach: float, gravity: float) -> tuple[Array, Array, ArrayInt]:
    """Return times, the body's distances and what is nearest, fine enough to know where it touches and where it is nearest."""
    count = int(np.ceil(max(path.length() / STEP, path.duration / STEP))) + 1
    t = np.linspace(0.0, path.duration, max(count, 2))
    gap, met = gap_at(t)
    while True:
        moved = _moved(path, t, reach, gravity)
        low, high = (0.5 * (gap[:-1] + gap[1:] + sign * moved) for sign in (-1.0, 1.0))
        undecided = (low < -SLACK) & (high > -SLACK)
        nearer = low < gap.min() - FINEST
        split = np.flatnonzero((undecided | nearer) & (moved > FINEST))
        if not len(split):
            return t, gap, met
        if len(t) + len(split) > SAMPLES_MAX:
            raise AirworthyError(
                f"The course is {path.length():,.0f} m long, and so near to things that more than {SAMPLES_MAX:,} places of it"
                " would have to be looked at: cut it into shorter ones."
            )
        new = 0.5 * (t[split] + t[split + 1])
        more, other = gap_at(new)
        t, gap = np.insert(t, split + 1, new), np.insert(gap, split + 1, more)
        met = np.insert(met, split + 1, other)


def _moved(path: Trajectory, t: Array, reach: float, gravity: float) -> Array:
    """Return how far any point of the body moves in each interval at most, by speeds and turn rates within it [m]."""
    step = np.diff(t)
    shares = np.linspace(0.0, 1.0, 5)
    sample = path.sample((t[:-1, None] + shares * step[:, None]).ravel())
    speed = np.linalg.norm(sample.velocity, axis=-1).reshape(-1, len(shares)).max(1)
    push = np.linalg.norm(sample.acceleration, axis=-1).reshape(-1, len(shares)).max(1)
    turn = np.linalg.norm(kinematic_state(sample, gravity).body_rate, axis=-1).reshape(-1, len(shares)).max(1)
    # Between two of the five looked at the speed may be higher by what acceleration adds in half of an eighth.
    return np.asarray(step * (speed + push * step / 8.0 + reach * turn), np.float64)


def _touches(path: Trajectory, geometry: Any, scene: Scene, t: Array, gap: Array, met: ArrayInt) -> tuple[CourseTouch, ...]:
    """Stretches on which the body overlaps something, cut where what it is in changes."""
    found = []
    for first, last in _runs((gap < -SLACK), met):
        times = t[first : last + 1]
        positions = path.sample(times).position
        center = clearance(geometry, positions, env=np.zeros(len(times), np.int32), max_distance=FAR).distance
        k = int(np.argmin(center))
        found.append(
            CourseTouch(
                thing=thing_name(scene, int(met[first])),
                begin=float(times[0]),
                end=float(times[-1]),
                position=_place(path, times[0]),
                nearest_time=float(times[k]),
                center_distance=float(center[k]) + 0.0,
                needed=float(center[k] - gap[first + k]),
            )
        )
    return tuple(found)


def _runs(inside: ArrayBool, met: ArrayInt) -> list[tuple[int, int]]:
    """First and last index of every stretch that is inside of one and the same thing."""
    key = np.where(inside, met, -2)
    edges = np.flatnonzero(np.diff(key)) + 1
    begins = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [len(key)]]) - 1
    return [(int(a), int(b)) for a, b in zip(begins, ends, strict=True) if inside[a]]


def _leaves(path: Trajectory, scene: Scene, t: Array) -> tuple[float, tuple[float, float, float]] | None:
    position = path.sample(t).position
    lower, upper = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    out = ((position < lower - SLACK) | (position > upper + SLACK)).any(-1)
    if not out.any():
        return None
    k = int(np.argmax(out))
    return float(t[k]), _place(path, t[k])


def _place(path: Trajectory, time: float) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in path.sample(np.array([time])).position[0])
    return x, y, z
