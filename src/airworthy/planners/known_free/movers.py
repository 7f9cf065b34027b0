"""What moves among what stands: told from what came into seen space, followed, and foretold.

Something that is seen where rays passed before, all around, has come there (`KnownSpace.entered`). Of what comes, the outline
from where the camera is gives a circle on the ground plan, whatever its height; a filter of constant velocity (Bar-Shalom, Li
and Kirubarajan, "Estimation with Applications to Tracking and Navigation", 2001, section 6.2) follows its middle. While a
flight follows anything, what comes is no part of its memory: space is free again as soon as it is left. What stops, or was out
of sight for long, is taken to stand where it was seen last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.known_free.known_space import ENTERED_ROOM, CellSource, KnownSpace

__all__ = ["FollowedMover", "Look", "MoversSeen"]

# Ours, all of them.
_ENOUGH = 6
"""Cells that something must enter to be followed: noise of depth enters one or two."""
_GATE, _REACH, _LINK = 0.35, 0.8, 0.31
"""Cells so near the circle of what is followed are its own; so near the middle of what came, at first; and cells so near one
another are of one thing [m]."""
_NOISE, _PUSH = 0.08, 1.5
"""Deviation of a measured middle [m], and root of the spectral density of its acceleration [m/s^1.5]."""
_FIRST = 2.0
"""Deviation of a velocity before anything of it is known [m/s]."""
_UNSEEN, _STANDS, _FRESH = 3.0, 1.0, 0.2
"""It is given up after so long out of sight; it stands where it was slow for so long, if it was seen so lately [s]."""
_SLOW, _FAST, _GONE, _EVEN, _LOOKS = 0.15, 0.5, 0.3, 0.8, 5
"""Slower it stands [m/s]; so fast [m/s], so far [m], so evenly and for so many images it must have gone until it is sure
that it moves: under an estimate of the own position that drifts by 0.1 m/sqrt(s) all that stands seems to move at 0.2 m/s."""
_FASTEST = 6.0
"""[m/s]"""
_NARROW, _BROAD = 0.1, 0.8
"""Least and most half width that is believed [m]."""
_WATCHED, _TURN = 6.0, 0.4
"""So near things are looked at [m], if they are so far from straight ahead; so far at most the camera turns to them [rad]."""
_EDGE = 0.05
"""So near the edge of the image a thing may go on behind it [rad]."""
_CELLS, _COLUMN, _LEFT = 3, 3, 0.25
"""Columns of it that are seen, at least, to be measured; cells of each that are hit, at least; and cells that rays passed since
then for each of those, at most."""
_SPARE, _DOUBT, _DOUBT_MOST = 0.15, 0.12, 0.45
"""Kept from where it will be, more for each second since it was seen, and at most [m], [m/s]."""


@dataclass(eq=False)
class FollowedMover:
    """One thing that moves."""

    state: Array
    """(2, 2) middle and velocity on the ground plan, x and y in columns [m], [m/s]."""
    time: float
    """Of the state [s]."""
    seen: float
    """When it was last measured [s]."""
    radius: float
    """[m]"""
    covariance: Array = field(default_factory=lambda: np.diag([0.2**2, _FIRST**2]))
    """(2, 2) of middle and velocity along either axis."""
    moved: float = 0.0
    """When it was last faster than slow [s]."""
    first: tuple[Array, float] | None = None
    """Where it was measured first, (2,) [m], and when [s]."""
    broad: int = 0
    """In so many images in a row it was as broad as a wall."""
    looks: int = 0
    """How often it was measured."""
    sure: bool = False
    """Whether it has been seen to move."""
    told: bool = False
    """Whether it has been counted."""

    @property
    def is_none(self) -> bool:
        """Whether it is part of something large, or faster than anything that is believed: a wall whose seen part changes."""
        return self.broad >= 3 or float(np.linalg.norm(self.state[1])) > _FASTEST

    def to(self, time: float) -> None:
        """Move on to a time [s]."""
        dt = max(time - self.time, 0.0)
        step = np.array([[1.0, dt], [0.0, 1.0]])
        push = _PUSH**2 * np.array([[dt**3 / 3.0, dt**2 / 2.0], [dt**2 / 2.0, dt]])
        self.state, self.covariance = step @ self.state, step @ self.covariance @ step.T + push
        self.time = max(time, self.time)

    def measure(self, middle: Array, radius: float) -> None:
        """Take a measured middle (2,) [m] and half width [m] in, at the time of the state."""
        gain = self.covariance[:, 0] / (self.covariance[0, 0] + _NOISE**2)
        self.state = self.state + gain[:, None] * (middle - self.state[0])
        self.covariance = self.covariance - np.outer(gain, self.covariance[0])
        self.radius = max(0.9 * self.radius, radius)
        self.broad = self.broad + 1 if radius >= _BROAD else 0
        self.seen = self.time
        self.looks += 1
        if self.first is None:
            self.first = (middle, self.time)
        self.sure |= self._moves(*self.first)

    def _moves(self, middle: Array, since: float) -> bool:
        """Return whether it has gone far enough from where it was first, in the direction and about as fast as it goes now."""
        gone, speed = self.state[0] - middle, float(np.linalg.norm(self.state[1]))
        far = float(np.linalg.norm(gone))
        even = far > _EVEN * _FAST * (self.time - since) and float(gone @ self.state[1]) > _EVEN * far * speed
        return self.looks >= _LOOKS and far > _GONE and speed > _FAST and even and self.radius < _BROAD

    def middle(self, time: Array) -> Array:
        """Return where it will be at times (m,), (m, 2) [m]."""
        return np.asarray(self.state[0] + (time - self.time)[:, None] * self.state[1])


@dataclass(frozen=True)
class Look:
    """From where an image was taken, and whither."""

    camera: Array
    """(2,) on the ground plan [m]."""
    heading: float
    """[rad]"""
    sight: float
    """Half of the width of what it shows [rad]."""

    def bearing(self, points: Array) -> Array:
        """Return the angles (k,) between the heading and points (k, 2) [rad]."""
        away = points - self.camera
        turned = np.arctan2(away[:, 1], away[:, 0]) - self.heading
        return np.asarray((turned + np.pi) % (2.0 * np.pi) - np.pi)


def outline(cells: Array, look: Look, known: float) -> tuple[Array, float]:
    """Return middle (2,) and half width [m] of a circle whose near side is seen.

    Args:
        cells: Middles of the cells that are seen of it, on the ground plan, (k, 2) [m].
        look: From where.
        known: Half width where it is cut by the edge of the image, at least [m].
    """
    bearing = look.bearing(cells)
    near = float(np.quantile(np.linalg.norm(cells - look.camera, axis=1), 0.1))
    low, high = float(bearing.min()), float(bearing.max())
    # Of a circle at the distance near + radius the sine of half of what is seen is radius / (near + radius).
    sine = np.sin(0.5 * (high - low))
    radius = float(np.clip(sine * near / max(1.0 - sine, 1e-3), _NARROW, _BROAD))
    turn = 0.5 * (low + high)
    if max(-low, high) > look.sight - _EDGE:
        radius = max(radius, known)
        half = float(np.arcsin(radius / (near + radius)))
        turn = high - half if -low > high else low + half
    turn += look.heading
    return look.camera + np.array([np.cos(turn), np.sin(turn)]) * (near + radius), radius


class MoversSeen:
    """What n flights see move.

    Args:
        count: n.
    """

    def __init__(self, count: int):
        self._followed: list[list[FollowedMover]] = [[] for _ in range(count)]
        self.found = np.zeros(count, np.int64)
        """How many each flight has followed, (n,)."""

    def of(self, flight: int) -> list[FollowedMover]:
        """Return what a flight follows."""
        return self._followed[flight]

    def sure(self, flight: int) -> list[FollowedMover]:
        """Return what a flight follows and has seen to move."""
        return [mover for mover in self._followed[flight] if mover.sure]

    def any(self, flight: int) -> bool:
        """Return whether a flight has seen anything move that it follows."""
        return any(mover.sure for mover in self._followed[flight])

    def see(self, flight: int, time: float, look: Look, space: KnownSpace, source: CellSource) -> None:
        """Take in what an image showed.

        Args:
            flight: Whose.
            time: Of the image [s].
            look: From where it was taken.
            space: Memory of the flight, into which the image has been merged.
            source: What was merged.
        """
        followed = self._followed[flight]
        if not followed and len(space.entered) < _ENOUGH:
            return
        seen = _SeenCells(space, source)
        time = source.time if np.isfinite(source.time) else time
        for mover in followed:
            mover.to(time)
            self._measure(mover, seen, look, mover.radius + _GATE)
        self._begin(flight, time, look, space, seen)
        self._part(flight, time, space)

    def _measure(self, mover: FollowedMover, seen: _SeenCells, look: Look, reach: float) -> bool:
        cells = seen.near(mover.state[0], reach)
        cells = cells[np.abs(look.bearing(cells)) < look.sight]
        if len(cells) < _CELLS:
            return False
        middle, radius = outline(cells, look, mover.radius)
        mover.measure(middle, radius)
        if float(np.linalg.norm(mover.state[1])) > _SLOW:
            mover.moved = mover.time
        return True

    def _begin(self, flight: int, time: float, look: Look, space: KnownSpace, seen: _SeenCells) -> None:
        """Follow what came and is not followed; what is too little or too broad for that is left to the memory."""
        left = space.entered
        if len(left) >= ENTERED_ROOM:
            # So much comes at once only where the estimate of the own position has jumped.
            space.block_entered(left)
            return
        followed = self._followed[flight]
        while len(left):
            points = space.origin[:2] + (left[:, :2] + 0.5) * space.resolution
            own = np.zeros(len(left), bool)
            for mover in followed:
                own |= np.linalg.norm(points - mover.state[0], axis=1) < mover.radius + _GATE + 0.2
            left, points = left[~own], points[~own]
            if not len(left):
                return
            group = _connected(points)
            broad = float(np.ptp(points[group], axis=0).max()) > 2.0 * _BROAD
            if int(group.sum()) >= _ENOUGH and not broad:
                mover = FollowedMover(np.stack([points[group].mean(0), np.zeros(2)]), time, time, 0.3, moved=time)
                self._measure(mover, seen, look, _REACH)
                followed.append(mover)
            elif space.follows:
                space.block_entered(left[group])
            left = left[~group]

    def _part(self, flight: int, time: float, space: KnownSpace) -> None:
        """Leave to the memory what stands by now, or was out of sight for long; of two that are one keep the older."""
        kept: list[FollowedMover] = []
        for mover in self._followed[flight]:
            if any(np.linalg.norm(mover.state[0] - other.state[0]) < max(other.radius, mover.radius) for other in kept):
                continue
            self.found[flight] += int(mover.sure and not mover.told)
            mover.told = mover.sure
            stands = time - mover.moved > _STANDS and time - mover.seen < _FRESH
            if stands or time - mover.seen > _UNSEEN or mover.is_none:
                space.block_around(mover.state[0], mover.radius + _GATE)
            else:
                kept.append(mover)
        self._followed[flight] = kept
        follows = self.any(flight)
        if space.follows and not follows:
            for mover in kept:
                space.block_around(mover.state[0], mover.radius + _GATE)
        if follows and not space.follows:
            for mover in kept:
                space.free_entered(mover.state[0], mover.radius + 2.0 * _REACH)
        space.follows = follows

    def gap(self, flight: int, points: Array, time: Array, body: float) -> Array:
        """Return how much room is left between a body on its ways and all that moves, (k, m) [m]; below 0: too little.

        Args:
            flight: Whose.
            points: Where the body will be, (k, m, 3) [m].
            time: When, (m,) [s].
            body: Its radius [m].
        """
        found = np.full(points.shape[:2], np.inf)
        # While anything is followed for sure, what is not sure yet is in no memory either.
        for mover in self._followed[flight] if self.any(flight) else ():
            away = np.linalg.norm(points[..., :2] - mover.middle(time), axis=-1)
            doubt = np.minimum(_SPARE + _DOUBT * np.maximum(time - mover.seen, 0.0), _DOUBT_MOST)
            found = np.minimum(found, away - doubt - mover.radius - body)
        return found

    def heading(self, flight: int, here: Array, ahead: float) -> float:
        """Return where a flight should look to keep what moves in its image [rad].

        It turns to the nearest thing within `_WATCHED`, so far that this comes into the image, and no farther than `_TURN`: it
        goes on seeing where it flies to.

        Args:
            flight: Whose.
            here: Where it is, (3,) [m].
            ahead: Where it would look otherwise [rad].
        """
        away = [mover.state[0] - here[:2] for mover in self.sure(flight)]
        distance = [float(np.linalg.norm(part)) for part in away]
        if not away or min(distance) > _WATCHED:
            return ahead
        part = away[int(np.argmin(distance))]
        off = (float(np.arctan2(part[1], part[0])) - ahead + np.pi) % (2.0 * np.pi) - np.pi
        return ahead + float(np.sign(off) * np.clip(abs(off) - _TURN, 0.0, _TURN))

    def near(self, flight: int, here: Array, reach: float) -> bool:
        """Return whether something that a flight has seen to move is near, on the ground plan.

        Args:
            flight: Whose.
            here: Where it is, (3,) [m].
            reach: [m]
        """
        return any(float(np.linalg.norm(mover.state[0] - here[:2])) < reach for mover in self.sure(flight))


def _connected(points: Array) -> ArrayBool:
    """Return which of points (k, 2) hang together with the first, by steps of at most `_LINK`; (k,)."""
    near = np.linalg.norm(points[:, None] - points, axis=2) < _LINK
    group = near[0]
    while True:
        grown = near[group].any(0)
        if (grown == group).all():
            return np.asarray(group)
        group = grown


class _SeenCells:
    """Middles on the ground plan of cells that an image saw to be occupied."""

    def __init__(self, space: KnownSpace, source: CellSource):
        self._space, self._source = space, source
        self._odds = source.odds.reshape(tuple(source.side.tolist()))
        self._passed = min(source.hit, int(source.odds.max(initial=1)) - 1)

    def near(self, middle: Array, reach: float) -> Array:
        """Return those within a distance [m] of a point (2,) on the ground plan, (k, 2) [m]."""
        space, source = self._space, self._source
        at = np.append(middle, 0.0)
        low = np.maximum(space.cell_at(at - reach), source.first)
        high = np.minimum(space.cell_at(at + reach) + 1, source.last)
        low[2], high[2] = source.first[2], source.last[2]
        if (low >= high).any():
            return np.zeros((0, 2))
        index = [(np.arange(a, b) + s) % n for a, b, s, n in zip(low, high, source.shift, source.side, strict=True)]
        odds = self._odds[np.ix_(*index)]
        # Rays pass some of the cells of a column that was left by each image, and hit some of one that is taken.
        hit, passed = (odds > self._passed).sum(2), ((odds > source.free) & (odds <= self._passed)).sum(2)
        here: ArrayBool = (hit >= _COLUMN) & (passed <= _LEFT * hit)
        cells: ArrayInt = np.argwhere(here) + low[:2]
        points = space.origin[:2] + (cells + 0.5) * space.resolution
        return np.asarray(points[np.linalg.norm(points - middle, axis=1) < reach])
