"""A course from a recorded walk: the cameras' places, smoothed, made simple, and kept clear of what can be hit.

Who filmed a place walked where there is room, and the films show best what was seen from there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.jobs.progress import TOLD_EVERY_S, progress, waiting
from airworthy.core.schema import Bound, check_fields
from airworthy.scenes.actors import three
from airworthy.tasks.course_fit import CourseClearance
from airworthy.tasks.course_room import CourseRoom, course_margins
from airworthy.tasks.walk_detour import detoured
from airworthy.trajectories import DEFAULT_LIMITS, Limits
from airworthy.trajectories.course_draft import CourseDraft
from airworthy.vehicles import Vehicle

__all__ = ["WalkCourse", "WalkOptions", "walk_course"]

SPACING = 0.05
"""Between the places at which a walk is looked at [m]."""
SHORTEST = 0.5
"""A walk that stays within this is none [m]."""
STRAY = 4.0
"""Steps of a walk are at most this many times the way to the nearest other camera, in the middle of all."""
PUSHES, ROUNDS = 60, 40
"""Most moves away from surfaces, and most way-points that are put back where the flown path cuts a corner."""
PUSHED_MOST = 0.5
"""Farther a point is not pushed where its walk is led round [m]."""
WITH_ROOM = 0.5
"""Share of a walk that must have the room, before what has none is led round."""
SPARE = 0.02
"""Way-points are moved this much farther away than asked for, since the path between them bends [m]."""
ROTOR_SHARE = 0.9
"""Most of its thrust that a rotor of the room's vehicle may be asked for: what is left steers."""
_SLOWER, _SLOWER_MOST = 1.1, 25
"""Factor on the time of a course that asks more, and how often: to a tenth of the speed. What still asks more then is warned
of, and refused where it is to be learnt."""
_SAMPLE_RATE = 20.0
"""At which rotors are looked at [Hz], as experts decide."""
_NEAR_ENOUGH = 5e-3
_PLACES_MAX = 20_000


@dataclass(frozen=True)
class WalkOptions:
    """How a walk becomes a course."""

    height: Annotated[float | None, Bound(-1e3, 1e3, "m")] = None
    """Fly the whole course at this height above the world's origin [m]; None: as high as the camera was carried."""
    smooth: Annotated[float, Bound(0.0, 5.0, "m")] = 0.3
    """Bends narrower than about this are smoothed away [m]."""
    detail: Annotated[float, Bound(0.01, 5.0, "m")] = 0.1
    """Way-points are left out where the way through the others passes within this [m]."""
    clear: Annotated[float, Bound(0.0, 10.0, "m")] = 0.3
    """Room to keep between the vehicle's body and anything that can be hit [m]."""
    look: Literal["forward", "camera"] = "forward"
    """Where the vehicle looks: along the path, or where the camera looked."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class WalkCourse:
    """A course that follows a walk."""

    draft: CourseDraft
    recorded: int
    """Cameras of the walk."""
    moved: int
    """Way-points that were pushed off surfaces, by more than 5 mm from the smoothed walk."""
    farthest: float
    """How far the farthest of them was pushed [m]."""
    clearance: CourseClearance | None
    """The room that it leaves; None where there is no place to look at."""
    around: float = 0.0
    """How much of the walk has no such room near by, and is led round or left out at its ends [m]."""
    led: int = 0
    """Way-points of where it is led round: they follow the way round, not the walk."""
    aside: float = 0.0
    """How far the farthest of them lies from the walk [m]."""
    slower: float = 1.0
    """By how much its speed limit is below the one that was asked for, since rotors could not follow: 1 is not at all."""


@dataclass(frozen=True, eq=False)
class _ClearWay:
    """A smoothed walk that keeps the room."""

    points: Array
    """(n, 3) [m]"""
    pushed: Array
    """(n,) how far each was pushed off surfaces [m]."""
    led: ArrayBool
    """(n,) which of them follow a way round instead of the walk."""
    around: float = 0.0
    """[m]"""


def walk_course(
    position: ArrayLike,
    room: CourseRoom | None = None,
    options: WalkOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    heading: ArrayLike | None = None,
    name: str = "walk",
    source: str = "a recorded walk",
    quiet: bool = True,
) -> WalkCourse:
    """Return a course along the places of a walk.

    Args:
        position: Where the cameras were, in the order of time, world [m], (n, 3).
        room: The place and who flies there; None: nothing is kept clear of.
        options: How; None: all as they are.
        limits: How fast it may be flown; in a room slower, where a rotor of its vehicle would be asked for over `ROTOR_SHARE`.
        heading: Where the cameras looked, angle about z [rad], (n,); for `look` "camera".
        name: Of the course.
        source: What its file says of where it comes from.
        quiet: Show no progress.

    Raises:
        AirworthyError: The places are no walk, most lie outside of the place, or no way along them keeps the room.
    """
    options = options or WalkOptions()
    walked = _checked(position)
    if room is not None:
        _refuse_elsewhere(walked, room, source)
    way, turns = _smoothed(walked, options, heading)
    if options.height is not None:
        way[:, 2] = options.height
    clear = _pushed_way(way, way) if room is None else _kept_clear(way, room, options, quiet)
    clear_way = clear.points
    kept = _simplified(clear_way, options.detail)

    def draft(numbers: Sequence[int]) -> CourseDraft:
        rows = list(numbers)
        yaws = () if turns is None else tuple(float(turns[k]) for k in rows)
        return CourseDraft(tuple(three(clear_way[k]) for k in rows), yaws, limits, name, source)

    found, clearance, slower = draft(kept), None, 1.0
    if room is not None:
        simple = kept
        for tried in range(_SLOWER_MOST + 1):
            kept, clearance = _followed(draft, simple, clear_way, room, options, quiet)
            found, slower = draft(kept), _SLOWER**tried
            share = _rotor_share(found, room.vehicle)
            if share <= ROTOR_SHARE or tried == _SLOWER_MOST:
                break
            limits = _slower(limits)
        if share > ROTOR_SHARE:
            warnings.warn(
                f"The course {name!r} asks {100.0 * share:.0f} % of what a rotor of {room.vehicle.name!r} gives, also"
                f" {slower:.2g} times slower than asked for: smooth the walk more, or keep other room.",
                AssetWarning,
                stacklevel=2,
            )
    led, away = clear.led[kept], clear.pushed[kept]
    # A way round has as many points as the walk that it stands for, but not beside each other.
    aside = float(_to_nearest(clear_way[kept][led], way).max(initial=0.0))
    moved = int((away > _NEAR_ENOUGH).sum())
    return WalkCourse(found, len(walked), moved, float(away.max()), clearance, clear.around, int(led.sum()), aside, slower)


def _rotor_share(draft: CourseDraft, vehicle: Vehicle) -> float:
    """Return the largest share of its thrust that a rotor is asked for."""
    path = draft.course().trajectory()
    samples = max(2, round(_SAMPLE_RATE * path.duration) + 1)
    return float(course_margins(path, Limits(), vehicle, samples=samples).rotor_share.max())


def _slower(limits: Limits) -> Limits:
    """Return limits under which the same way is flown a tenth more slowly."""
    speed, acceleration, jerk = limits.speed, limits.acceleration, limits.jerk
    return replace(
        limits,
        speed=None if speed is None else speed / _SLOWER,
        acceleration=None if acceleration is None else acceleration / _SLOWER**2,
        jerk=None if jerk is None else jerk / _SLOWER**3,
    )


def _checked(position: ArrayLike) -> Array:
    """Return places (n, 3) that can be a walk."""
    walked = np.asarray(position, np.float64)
    if walked.ndim != 2 or walked.shape[1:] != (3,) or len(walked) < 2 or not np.isfinite(walked).all():
        raise AirworthyError(f"A walk is places of the shape {walked.shape}; expected two or more, (n, 3), all of them finite.")
    extent = float(np.linalg.norm(np.ptp(walked, axis=0)))
    if extent < SHORTEST:
        raise AirworthyError(
            f"The {len(walked)} cameras stay within {extent:.2f} m, which is no walk: give way-points with --points instead."
        )
    steps = np.linalg.norm(np.diff(walked, axis=0), axis=1)
    if len(walked) > 8 and np.median(steps) > STRAY * np.median(_nearest_others(walked)) + 1e-9:
        raise AirworthyError(
            f"The {len(walked)} cameras do not follow each other as in a walk (a step is {np.median(steps):.2f} m, the nearest"
            f" other camera {np.median(_nearest_others(walked)):.2f} m away): give way-points with --points instead."
        )
    return walked


def _nearest_others(places: Array) -> Array:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(places).query(places, k=2)[0][:, 1], np.float64)


def _to_nearest(points: Array, places: Array) -> Array:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(places).query(points)[0], np.float64) if len(points) else np.zeros(0)


def _refuse_elsewhere(walked: Array, room: CourseRoom, source: str) -> None:
    bounds = room.scene.bounds
    inside = ((walked >= np.array(bounds.lower)) & (walked <= np.array(bounds.upper))).all(axis=1)
    if inside.mean() < 0.5:
        raise AirworthyError(
            f"{int((~inside).sum())} of {len(walked)} cameras of {source} are outside of {room.scene.name!r}: name the capture"
            " that the place was made from, in metres and in the same frame."
        )


def _smoothed(walked: Array, options: WalkOptions, heading: ArrayLike | None) -> tuple[Array, Array | None]:
    """Return the walk at even spacing without what is narrower than `smooth`, (m, 3), and headings there [rad], (m,)."""
    if options.look == "camera" and heading is None:
        raise AirworthyError("Where the cameras looked is not known; look 'forward' instead.")
    steps = np.linalg.norm(np.diff(walked, axis=0), axis=1)
    along = np.concatenate(([0.0], np.cumsum(steps)))
    length = float(along[-1])
    count = min(max(int(np.ceil(length / SPACING)), 2), _PLACES_MAX) + 1
    places = np.linspace(0.0, length, count)
    # A camera that stood still has several rows at one place along the way: the first counts.
    unique = np.concatenate(([True], steps > 0.0))
    even = np.stack([np.interp(places, along[unique], walked[unique, axis]) for axis in range(3)], axis=1)
    width = 0.5 * options.smooth * (count - 1) / length
    way = _blurred(even, width)
    if options.look == "forward" or heading is None:
        return way, None
    angle = np.asarray(heading, np.float64)[unique]
    facing = np.stack([np.interp(places, along[unique], part(angle)) for part in (np.cos, np.sin)], axis=1)
    facing = _blurred(facing, width)
    return way, np.unwrap(np.arctan2(facing[:, 1], facing[:, 0]))


def _blurred(values: Array, width: float) -> Array:
    """Return rows (n, k) under a Gaussian of `width` rows; the ends stay, since rows go on point-symmetrically beyond them."""
    from scipy.ndimage import gaussian_filter1d

    reach = min(int(4.0 * width) + 1, len(values) - 1)
    before = 2.0 * values[:1] - values[reach:0:-1]
    after = 2.0 * values[-1:] - values[-2 : -reach - 2 : -1]
    whole = np.concatenate([before, values, after])
    blurred = gaussian_filter1d(whole, width, axis=0) if width > 0.0 else whole
    return np.array(blurred[len(before) : len(before) + len(values)])


def _kept_clear(way: Array, room: CourseRoom, options: WalkOptions, quiet: bool) -> _ClearWay:
    """Return the way, moved off surfaces until a ball around the body has the room everywhere, or led round what leaves none.

    Raises:
        AirworthyError: Along most of it there is no such place near by, or no way round.
    """
    need = room.radius + options.clear + (SPARE if options.clear > 0.0 else 0.0)
    lower, upper = (np.array(corner) for corner in (room.scene.bounds.lower, room.scene.bounds.upper))
    # In a place lower than the body nothing fits, and its middle is tried.
    edge = np.minimum(room.radius, 0.5 * (upper - lower))
    # With a height asked for, moves are sideways only.
    free = np.array([1.0, 1.0, 0.0 if options.height is not None else 1.0])
    moved = way.copy()
    for _ in progress(range(PUSHES), "Moving the walk off surfaces", quiet=quiet):
        moved = np.clip(moved, lower + edge, upper - edge) * free + moved * (1.0 - free)
        near = room.nearest(moved)
        short = need - near.distance
        close = short > 1e-4
        if not close.any():
            return _pushed_way(way, moved)
        push = np.where(close[:, None], near.normal * free, 0.0)
        # Halfway at a time: between two walls, what is too much for one is too little for the other.
        moved = moved + 0.5 * np.maximum(short, 0.0)[:, None] * np.nan_to_num(push)
        moved[1:-1] += 0.25 * (moved[:-2] - 2.0 * moved[1:-1] + moved[2:]) * free * close[1:-1, None]
    near = room.nearest(moved)
    k = int(np.argmin(near.distance))
    gap = float(near.distance[k]) - room.radius
    if gap >= options.clear - SPARE:
        return _pushed_way(way, moved)
    pushed, good = _pushed_or_not(way, moved, room, need - SPARE)
    with waiting("Looking for ways round", quiet=quiet, every_s=TOLD_EVERY_S):
        led = detoured(pushed, good, room, need - SPARE, options.height is not None) if good.mean() > WITH_ROOM else None
    if led is not None:
        steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
        around = float(steps[~(good[:-1] & good[1:])].sum())
        first, last = np.flatnonzero(good)[[0, -1]]
        # Ends without room were drawn together into the first and the last point that has it.
        of = np.clip(np.arange(len(way)), first, last)
        aside = (led != pushed[of]).any(axis=1)
        return _ClearWay(led, np.where(aside, 0.0, _pushed_way(way, pushed).pushed[of]), aside, around)
    raise AirworthyError(
        f"Near {_said(way[k])} m the walk leaves {room.vehicle.name!r} {max(gap, 0.0):.2f} m of room, and {options.clear:g} m"
        f" are asked for, which {good.mean():.0%} of it have, and no way leads round: choose another height, less room to keep"
        " clear, or a smaller vehicle."
    )


def _pushed_way(way: Array, moved: Array) -> _ClearWay:
    return _ClearWay(moved, np.linalg.norm(moved - way, axis=1), np.zeros(len(way), bool))


def _pushed_or_not(way: Array, moved: Array, room: CourseRoom, need: float) -> tuple[Array, ArrayBool]:
    """Return the way with those of its parts moved that got their room by little, and which points have it then.

    Points that were pushed far end in pockets, each in its own: such a part stays as it was, and is to be led round.
    """
    result, good = way.copy(), np.asarray(room.nearest(way).distance >= need) & room.holds(way)
    fits = np.asarray(room.nearest(moved).distance >= need) & (np.linalg.norm(moved - way, axis=1) <= PUSHED_MOST)
    for part in np.split(np.arange(len(way)), np.flatnonzero(np.diff(good.astype(int))) + 1):
        if not good[part[0]] and fits[part].all():
            result[part], good[part] = moved[part], True
    return result, good


def _simplified(way: Array, detail: float) -> list[int]:
    """Return numbers of rows whose straight connections pass within `detail` [m] of all others (Douglas, Peucker, 1973)."""
    kept, open_parts = {0, len(way) - 1}, [(0, len(way) - 1)]
    while open_parts:
        first, last = open_parts.pop()
        if last - first < 2:
            continue
        span = way[last] - way[first]
        inner = way[first + 1 : last] - way[first]
        share = np.clip(inner @ span / max(float(span @ span), 1e-12), 0.0, 1.0)
        off = np.linalg.norm(inner - share[:, None] * span, axis=1)
        k = int(np.argmax(off))
        if off[k] > detail:
            middle = first + 1 + k
            kept.add(middle)
            open_parts += [(first, middle), (middle, last)]
    return _apart(sorted(kept), way)


def _apart(numbers: list[int], way: Array) -> list[int]:
    """Return them without neighbours that are nearly at one place; both ends stay."""
    kept = [numbers[0]]
    for k in numbers[1:-1]:
        if np.linalg.norm(way[k] - way[kept[-1]]) > SPACING and np.linalg.norm(way[k] - way[numbers[-1]]) > SPACING:
            kept.append(k)
    return [*kept, numbers[-1]]


def _followed(
    draft: Callable[[Sequence[int]], CourseDraft],
    kept: list[int],
    way: Array,
    room: CourseRoom,
    options: WalkOptions,
    quiet: bool,
) -> tuple[list[int], CourseClearance]:
    """Return way-points between which the flown path keeps the room, too, and that room.

    The trajectory swings out of the straight lines between its way-points; where it comes too near, one more of the way is put
    in.

    Raises:
        AirworthyError: It meets something, however many are put in.
    """
    wanted = options.clear - SPARE
    best: tuple[float, list[int], CourseClearance] | None = None
    for _ in progress(range(ROUNDS), "Flying the course in thought", quiet=quiet):
        found = room.clearance(draft(kept).course().trajectory())
        if best is None or found.gap > best[0]:
            best = found.gap, kept, found
        if found.gap >= wanted and found.leaves is None:
            return kept, found
        worst = found.position if found.gap < wanted or found.leaves is None else found.leaves[1]
        more = int(np.argmin(np.linalg.norm(way - np.array(worst), axis=1)))
        fuller = _apart(sorted({*kept, more}), way)
        if fuller == kept:
            break
        kept = fuller
    assert best is not None  # a round was made
    _, kept, found = best
    if not found.fits:
        raise AirworthyError(f"{found.problem('walk')}: choose more room to keep clear, finer detail, or another height.")
    return kept, found


def _said(point: Array) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in point) + ")"
