"""Flights of a race under way, many at once: where they are, what is believed of gates, what was crossed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt
from airworthy.core.schema import Bound, check_fields
from airworthy.race.estimation.landmarks import gate_axes, gate_corners
from airworthy.race.learned.observing import commanded, wanted_outputs

if TYPE_CHECKING:
    from airworthy.race.learned.surrogate import CourseFlights

__all__ = ["COMMAND_HZ", "FRAME", "LOST_M", "CourseBatch", "FlightNoise", "GateCrossings"]

COMMAND_HZ = 240.0
"""As of `race`."""
FRAME = 4
"""Commands from a frame of beacons to the next."""
_LOOKS = 10
"""Frames before the start that count; more lie beside each other and say the same."""
_CALM_S = 0.2
"""Over which gusts change."""
_ASIDE, _ABOVE = 0.85, 0.62
"""Tangents of the half field of view that count, as of `planning.glances`."""
_SIGHT_M, _SIGHT_SHARE, _SIGHT_SQUARE = 0.01, 0.002, 0.0005
"""Deviation of a gate's place from one frame [m]: at once, per metre and per squared metre of distance; ours, about what 1 px
is in depth: 8 cm at 10 m, 0.25 m at 20 m."""
_SIGHT_MOST = 60.0
"""Farther gates are not seen [m]."""
_REACH, LOST_M = 6.0, 3.0
"""A gate's plane counts up to the first from its centre, as of `GateProgress`; beyond the second from its plan a flight is
lost."""
_PHASE_GAIN, _PHASE_RATES = 5.0, (0.2, 2.0)
"""How fast the plan's clock follows a racer that is ahead or behind [1/s], and its bounds; ours."""
_SLOWEST = 2.0
"""Below this speed nobody is ahead or behind [m/s]: at the start the clock goes on by itself."""
_BODY = 0.15
"""Radius of the vehicle [m]."""
_OWN_SIGMA = 0.02
"""Of the own place, as told with each gate [m]."""
_KNOWN = (0.7, 0.4, 0.15)
"""Shares of flights begun on the way that know the next gate, the one behind it, and each other; ours."""
_KNOWN_M = 0.05
"""How well such a gate is known [m and rad]."""
_BEGIN = np.array([*(0.3,) * 3, *(0.7,) * 3, *(0.1,) * 3, *(0.7,) * 3])
"""Deviations of place, velocity, attitude and rate from the plan at which flights begin on the way, in m, m/s, rad, rad/s."""
_HELD = (
    "truth", "belief", "known", "unseen", "state", "inputs", "phase", "following", "behind", "judged", "gusts", "doubts",
)  # fmt: skip
"""Arrays that the next command depends on; what is believed of gates follows from them."""


@dataclass(frozen=True)
class FlightNoise:
    """What flights are disturbed by; see `RacePolicyOptions`."""

    gust: Annotated[float, Bound(0.0, 20.0, "m/s^2")] = 0.0
    doubt: Annotated[float, Bound(0.0, 1.0, "m")] = 0.0

    def __post_init__(self) -> None:
        check_fields(self, "FlightNoise.")


@dataclass(frozen=True)
class GateCrossings:
    """What happened at gates in one command's period."""

    crossed: ArrayBool
    """Flights that came through the true plane of their next gate, (n,)."""
    margin: Array
    """How far within the true opening, less the vehicle's radius, they did so [m], (n,); negative: outside; infinite: they did
    not."""


class CourseBatch:
    """A batch of flights under way.

    Args:
        course: That they fly.
        rng: Of all that is drawn.
        count: Flights.
        on_the_way: Share of flights that begin somewhere on the course, the others at its start.
        noise: Disturbances.
    """

    def __init__(
        self, course: CourseFlights, rng: np.random.Generator, count: int, on_the_way: float, noise: FlightNoise
    ) -> None:
        self.course, self.rng, self.noise = course, rng, noise
        gates = course.passages
        self.truth = rng.uniform(-1.0, 1.0, (count, gates, 3)) * course.briefing.bound
        self.belief, self.known = np.zeros((count, gates, 3)), np.tile(course.prior, (count, 1, 1))
        self.unseen = np.full((count, gates), np.inf)
        self.state, self.inputs = np.zeros((count, 13)), np.zeros((count, 4))
        self.phase, self.following = np.zeros(count), np.zeros(count, np.int64)
        self.behind: ArrayBool = np.zeros(count, bool)
        # Of the referee here, which knows where gates stand.
        self.judged: ArrayInt = np.zeros(count, np.int64)
        self.gusts, self.doubts = np.zeros((count, 6)), self._drawn_doubts(count)
        self.finish, self.lost, self.crossed, self.hit = np.full(count, np.nan), 0, 0, 0
        self.from_start, self.again = rng.random(count) >= on_the_way, on_the_way > 0.0
        self.true_center, self.true_left = gate_axes(course.briefing, self.truth)[:2]
        self._begin_at_start(np.flatnonzero(self.from_start))
        self._begin_on_the_way(np.flatnonzero(~self.from_start))
        self.believe()

    @property
    def over(self) -> bool:
        """Whether all flights of whole courses are through, or were lost."""
        return not self.again and bool(np.all(~self.from_start | np.isfinite(self.finish)))

    # ---- Beginning ----------------------------------------------------------------------------------------------------------

    def _begin_at_start(self, rows: ArrayInt) -> None:
        known, yaw = self.course.briefing, 0.5 * self.course.briefing.start_yaw
        self.state[rows] = [*known.start, 0.0, 0.0, 0.0, 0.0, 0.0, np.sin(yaw), np.cos(yaw), 0.0, 0.0, 0.0]
        # Rotors that stand: they are armed at the first command.
        self.inputs[rows] = [self.course.tracker.model.mass * self.course.tracker.model.gravity, 0.0, 0.0, 0.0]
        self.phase[rows], self.following[rows], self.judged[rows], self.behind[rows] = 0.0, 0, 0, False
        self.known[rows], self.belief[rows], self.unseen[rows] = self.course.prior, 0.0, np.inf
        if len(rows):
            for _ in range(_LOOKS):
                self._sight(rows)

    def _begin_on_the_way(self, rows: ArrayInt) -> None:
        count, course = len(rows), self.course
        self.phase[rows] = self.rng.uniform(0.0, course.reference.duration - 0.2, count)
        leg = course.reference.leg(self.phase[rows])
        self.following[rows] = self.judged[rows] = leg
        ahead = np.arange(course.passages) - leg[:, None]
        share = np.where(ahead < 0, 1.0, np.where(ahead == 0, _KNOWN[0], np.where(ahead == 1, _KNOWN[1], _KNOWN[2])))
        seen = self.rng.random(share.shape) < share
        self.known[rows] = np.where(seen[..., None], np.maximum(_KNOWN_M**-2, course.prior), course.prior)
        # As far from the truth as is believed.
        off = self.rng.normal(size=(count, course.passages, 3)) / np.sqrt(self.known[rows])
        self.belief[rows] = np.where(seen[..., None], self.truth[rows] + off, 0.0) * (course.briefing.bound > 0.0)
        self.unseen[rows] = np.where(seen, self.rng.uniform(0.0, 2.0, share.shape), np.inf)
        plan, inputs, _ = course.reference.at(self.phase[rows], self._shifts(rows), 0.0)
        off = self.rng.normal(size=(count, 12)) * _BEGIN
        plan[:, :6] += off[:, :6]
        plan[:, 6:10] = frames.normalize(frames.multiply(plan[:, 6:10], frames.from_rotation_vector(off[:, 6:9])))
        plan[:, 10:] += off[:, 9:]
        self.state[rows], self.inputs[rows], self.behind[rows] = plan, inputs, False

    def begin_anew(self, rows: ArrayInt, from_start: float) -> None:
        """Let flights begin again on courses drawn anew.

        Args:
            rows: Which.
            from_start: Share of them that begin at the start, the others somewhere on the course.
        """
        known, count = self.course.briefing, len(rows)
        self.truth[rows] = self.rng.uniform(-1.0, 1.0, (count, *self.truth.shape[1:])) * known.bound
        self.true_center[rows], self.true_left[rows] = gate_axes(known, self.truth[rows])[:2]
        self.doubts[rows], self.gusts[rows] = self._drawn_doubts(count), 0.0
        first = self.rng.random(count) < from_start
        self._begin_on_the_way(rows[~first])
        # One that begins behind its next gate would never come through it.
        late = self._depth(self.state[:, :3], self.true_center, self.truth, self.judged)[0][rows] >= 0.0
        self._begin_at_start(rows[first | late])

    def _drawn_doubts(self, count: int) -> Array:
        return self.rng.normal(size=(count, 6)) * self.noise.doubt * ([1.0] * 3 + [2.0] * 3)

    # ---- Seeing -------------------------------------------------------------------------------------------------------------

    def _shifts(self, rows: ArrayInt | slice = slice(None)) -> Array:
        """Of the openings' centres, as believed [m], (n, passages, 3)."""
        return gate_axes(self.course.briefing, self.belief[rows])[0] - self.course.nominal

    def _sight(self, rows: ArrayInt | slice) -> None:
        """Take one frame: gates in the field of view are measured."""
        state = self.state[rows]
        away = (self.true_center[rows] - state[:, None, :3]) @ frames.to_matrix(state[:, 6:10])
        distance = np.linalg.norm(away, axis=-1)
        ahead = np.maximum(away[..., 0], 1e-6)
        inside = (np.abs(away[..., 1]) < _ASIDE * ahead) & (np.abs(away[..., 2]) < _ABOVE * ahead)
        seen = inside & (distance < _SIGHT_MOST)
        sigma = _SIGHT_M + _SIGHT_SHARE * distance + _SIGHT_SQUARE * distance**2
        told = np.where(seen, sigma**-2, 0.0)[..., None]
        measured = self.truth[rows] + self.rng.normal(size=self.truth[rows].shape) * sigma[..., None]
        known = self.known[rows] + told
        belief = self.belief[rows] + told / known * (measured - self.belief[rows])
        self.known[rows], self.belief[rows] = known, belief
        self.unseen[rows] = np.where(seen, 0.0, self.unseen[rows] + FRAME / COMMAND_HZ)

    def look(self) -> None:
        """Take a frame of every flight."""
        self._sight(slice(None))
        self.believe()

    def believe(self) -> None:
        known, everything = self.course.briefing, np.broadcast_to(np.arange(self.course.passages), self.unseen.shape)
        self.corners = gate_corners(known, everything, self.belief)[0]
        self.center, left, _ = gate_axes(known, self.belief)
        spread = 1.0 / np.sqrt(self.known)
        across = np.sqrt(np.sum((left[..., :2] * spread[..., :2]) ** 2, axis=-1) + _OWN_SIGMA**2)
        self.sigma = np.stack([across, np.full_like(across, _OWN_SIGMA)], axis=-1)
        self.shifts = self.center - self.course.nominal

    def believed(self) -> tuple[Array, Array]:
        """Return the states as they are believed, (n, 13), and their body axes as columns, (n, 3, 3)."""
        state = self.state.copy()
        state[:, :6] += self.doubts
        return state, frames.to_matrix(state[:, 6:10])

    def observe(self, believed: Array, axes: Array) -> ArrayF32:
        """Return what policies see, (n, observed)."""
        return self.course.view.observe(believed, axes, self.corners, self.sigma, self.unseen, self.following)

    def saved(self) -> dict[str, ArrayAny]:
        """Return what the next command depends on beside `rng`, by name."""
        return {name: getattr(self, name) for name in _HELD}

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave."""
        for name in _HELD:
            getattr(self, name)[...] = saved[name]
        self.true_center, self.true_left = gate_axes(self.course.briefing, self.truth)[:2]
        self.believe()

    # ---- The expert, and the flight -----------------------------------------------------------------------------------------

    def label(self, believed: Array) -> ArrayF32:
        """Return the outputs that stand for what the expert would command, (n, 4), and set the plan's clock by the racer."""
        course, tracker = self.course, self.course.tracker
        plan, inputs, ahead = course.reference.at(self.phase, self.shifts, tracker.gains.lead)
        # How far ahead of the plan it is along its way [s].
        speed = np.maximum(np.sum(plan[:, 3:6] ** 2, axis=1), _SLOWEST**2)
        early = np.sum((believed[:, :3] - plan[:, :3]) * plan[:, 3:6], axis=1) / speed
        self.phase = self.phase + np.clip(1.0 + _PHASE_GAIN * early, *_PHASE_RATES) / COMMAND_HZ
        self.away = np.linalg.norm(believed[:, :3] - plan[:, :3], axis=1)
        thrust, alpha = tracker.command(believed, plan, inputs, ahead)
        return wanted_outputs(thrust, alpha, course.thrust_max)

    def advance(self, outputs: ArrayF32, believed: Array, number: int) -> None:
        """Fly a command's period.

        Args:
            outputs: That are flown, (n, 4).
            believed: States, (n, 13).
            number: Of the command, from 0.
        """
        before = self.state
        self.move(outputs)
        self.judge(before)
        self.finish[self.progress(believed) & self.from_start] = (number + 1) / COMMAND_HZ
        # No number is a flight far off.
        lost, done = ~(self.away < LOST_M), self.following >= self.course.passages
        # In flights of whole courses who is through flies on; in others it begins anew.
        gone = (lost & ~done) | (done & self.again)
        if gone.any():
            self.lost += int((lost & ~done).sum())
            self.from_start[gone] = False
            self._begin_on_the_way(np.flatnonzero(gone))
            self.gusts[gone] = 0.0
            self.believe()

    def move(self, outputs: ArrayF32) -> None:
        """Fly a command's period, and nothing else: nobody sees, judges or begins anew.

        Args:
            outputs: That are flown, (n, 4).
        """
        course, dt = self.course, 1.0 / COMMAND_HZ
        thrust, alpha = commanded(outputs, course.thrust_max)
        target = np.hstack([course.tracker.within_rotors(thrust, alpha)[:, None], alpha])
        middle = target + (self.inputs - target) * np.exp(-0.5 * dt / course.lag)
        self.inputs = target + (self.inputs - target) * np.exp(-dt / course.lag)
        keep = np.exp(-dt / _CALM_S)
        drawn = self.rng.normal(size=self.gusts.shape) * self.noise.gust * ([1.0] * 3 + [5.0] * 3)
        self.gusts = keep * self.gusts + np.sqrt(1.0 - keep**2) * drawn
        middle[:, 1:] += self.gusts[:, 3:]
        state = np.stack(course.tracker.model.step(self.state.T, middle.T, dt), axis=1)
        state[:, 3:6] += dt * self.gusts[:, :3]
        state[:, 6:10] = frames.normalize(state[:, 6:10])
        self.state = state

    def _depth(self, position: Array, center: Array, shift: Array, which: ArrayInt) -> tuple[Array, Array]:
        """How far positions lie behind the planes of gates, and from their centres [m], (n,) each."""
        rows, which = np.arange(len(position)), np.minimum(which, self.course.passages - 1)
        normal, turn = self.course.briefing.normal[which], shift[rows, which, 2]
        cosine, sine = np.cos(turn), np.sin(turn)
        away = position - center[rows, which]
        across = (cosine * normal[:, 0] - sine * normal[:, 1]) * away[:, 0]
        return across + (sine * normal[:, 0] + cosine * normal[:, 1]) * away[:, 1], np.linalg.norm(away, axis=1)

    def judge(self, before: Array) -> GateCrossings:
        """Count crossings of the true planes, and those outside the openings.

        Args:
            before: States before the command, (n, 13).
        """
        rows, which = np.arange(len(before)), np.minimum(self.judged, self.course.passages - 1)
        first, near = self._depth(before[:, :3], self.true_center, self.truth, self.judged)
        last, _ = self._depth(self.state[:, :3], self.true_center, self.truth, self.judged)
        crossed = (first < 0.0) & (last >= 0.0) & (near < _REACH) & (self.judged < self.course.passages)
        away = self.state[:, :3] - self.true_center[rows, which]
        aside = np.abs(np.sum(away * self.true_left[rows, which], axis=1))
        free = self.course.gates.half[which] - _BODY
        margin = np.minimum(free[:, 0] - aside, free[:, 1] - np.abs(away[:, 2]))
        self.judged = self.judged + crossed
        self.crossed += int(crossed.sum())
        self.hit += int((crossed & (margin < 0.0)).sum())
        return GateCrossings(crossed, np.where(crossed, margin, np.inf))

    def progress(self, believed: Array) -> ArrayBool:
        """Let flights whose believed place is behind their next gate go on to the one behind it, as `GateProgress`; returns
        which of them have now passed the last one, (n,).

        Args:
            believed: States before the command, (n, 13).
        """
        depth, near = self._depth(believed[:, :3], self.center, self.belief, self.following)
        passed = self.behind & (depth >= 0.0) & (near < _REACH) & (self.following < self.course.passages)
        self.behind = (depth < 0.0) & ~passed
        self.following = self.following + passed
        return passed & (self.following == self.course.passages)
