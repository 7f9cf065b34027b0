"""Where vehicle and gates are, from inertial samples and beacons: an error-state Kalman filter with gates as landmarks.

State: position, velocity and attitude (9), biases of the inertial sensor where the race has them (6), and (dx, dy, dyaw) of
each gate about its pivot. A gate begins with variance bound^2 / 3, that of a uniform draw within its bounds; what has a bound
of 0 has variance 0 and never moves. Vehicles are moved by every sample, the accelerometer as an input, since it feels the force
noise too; the covariance follows at the rate of frames (`airworthy.race.estimation.inertial`). A frame is one update by all its
corners together, iterated (Gauss-Newton) and in Joseph's form, so that the covariance stays symmetric and positive. Corners
farther off than `gate_sigma` of their innovation are left out and counted. Decoys that bear beacons are landmarks that stand
where they are said to: they correct the vehicle alone, and are no part of the state. Corners that a second camera sees are
further rows of the same update: a gate seen by both is two sights of one landmark. Source: spec/race 5.3; the iterated update:
Bell & Cathey 1993.

A frame that comes late is taken where it belongs: the filter keeps the samples and its states of the last 0.1 s, goes back to
the stamp, updates, and moves on through the same samples again, to the same bits as if the frame had been in time.

States are values: a call takes one and returns another. Flights never mix: each has the bits that it has alone. Flights of a
batch share clock and stamps. Where names of beacons are exchanged (class `hard`) they are matched anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.race.briefing import MARKERS, BeaconFrame, RaceBriefing
from airworthy.race.estimation.corner_update import CornerUpdate, SeenPart, motion_of, symmetric
from airworthy.race.estimation.inertial import TURN, InertialMotion, P, added_noise, at_rest, fresh_slopes, moved, transition
from airworthy.race.estimation.landmarks import gate_axes

_OFF_SAMPLE = 0.01
"""How far a frame's stamp may be from a sample, in samples: rounding of a clock, and no more; at 19 m/s a sample is 2 cm."""


@dataclass(frozen=True)
class GateFilterOptions:
    """How frames are taken."""

    pixel_factor: Annotated[float, Bound(0.0, 100.0, above=True)] = 1.3
    """Assumed noise of a pixel over the stated one: what the lens's model leaves out. Source: spec/race 5.3, measured there."""
    pixel_least: Annotated[float, Bound(0.0, 100.0, "px", above=True)] = 0.26
    """Assumed noise is no smaller [px], also where pixels are exact: 1.3 x 0.2 px."""
    iterations: Annotated[int, Bound(1, 20)] = 2
    """Of Gauss-Newton, in each update."""
    gate_sigma: Annotated[float, Bound(0.0, 1000.0, above=True)] = 5.0
    """Corners whose innovation is farther off are left out."""
    ring_s: Annotated[float, Bound(0.0, 10.0, "s")] = 0.1
    """How late a frame may come [s]."""
    euler: bool = False
    """Whether vehicles move in explicit Euler steps, as FlightGoggles' do: half a period of forces is centimetres in a race."""

    def __post_init__(self) -> None:
        check_fields(self, "GateFilterOptions.")


@dataclass(frozen=True)
class Belief:
    """What is believed at one sample; n flights, d = 9 or 15 + 3 gates errors."""

    step: int
    """Samples since arming."""
    motion: InertialMotion
    gates: Array
    """dx, dy [m] and dyaw [rad], (n, gates, 3)."""
    covariance: Array
    """Of the errors where the motion's slopes began, (n, d, d); `GateFilter.covariance` gives that of now."""


@dataclass(frozen=True)
class FilterState:
    """A filter between two calls."""

    now: Belief
    past: tuple[Belief, ...]
    """At frames of the last `ring_s`, the oldest first."""
    samples: Array
    """Since the oldest of them, (k, n, 6)."""
    stamp: float = -np.inf
    """Of the last frame [s]."""


@dataclass(frozen=True)
class UpdateRecord:
    """What one frame did to each flight."""

    step: int
    """Sample that the frame belongs to."""
    nis: Array
    """Normalised innovation squared of the corners used, (n,): chi-square with `freedom` where the filter is consistent."""
    freedom: ArrayInt
    """Two per corner used, (n,)."""
    used: ArrayInt
    """Corners, (n,)."""
    rejected: ArrayInt
    """Corners seen and left out: too far off, or believed behind the camera, (n,)."""
    seen_of: ArrayInt
    """Corners seen of each gate, by both cameras together where there are two, (n, gates)."""
    rejected_of: ArrayInt
    """Of these left out, (n, gates)."""


class GateFilter:
    """The filter of one race; see the module.

    Args:
        briefing: What is known before the start.
        options: How frames are taken.
    """

    def __init__(self, briefing: RaceBriefing, options: GateFilterOptions = GateFilterOptions()) -> None:
        self.briefing, self.options = briefing, options
        self.dt = 1.0 / briefing.imu_hz
        self.frame_steps = round(briefing.imu_hz / briefing.frame_hz)
        # A ring of 0.1 s holds 96 samples, also where 0.1 x 960 is rounded down.
        self.ring_steps = int(np.floor(options.ring_s * briefing.imu_hz + 1e-6))
        self.pixel_variance = max(options.pixel_factor * briefing.pixel_noise, options.pixel_least) ** 2
        self.gates_at = 15 if briefing.biased else 9
        """Where the gates' errors begin in the state."""
        self._corners = CornerUpdate(briefing, options.iterations, options.gate_sigma, self.pixel_variance, self.gates_at)

    # ---- Beginning and moving -----------------------------------------------------------------------------------------------

    def begin(self, flights: int) -> FilterState:
        """Return the state of vehicles at the start, before the first sample; raises AirworthyError for no flights."""
        if isinstance(flights, bool) or not isinstance(flights, int) or flights < 1:
            raise AirworthyError(f"A filter begins with {flights!r} flights; expected a whole number, 1 or more.")
        known = self.briefing
        variance = np.zeros(self.gates_at + 3 * len(known.gates))
        # A uniform draw within plus or minus b has the variance b^2 / 3; what is exact has none.
        variance[P] = known.start_bound[:3] ** 2 / 3.0
        variance[TURN.stop - 1] = known.start_bound[3] ** 2 / 3.0
        if known.biased:
            variance[TURN.stop : self.gates_at] = np.repeat(known.bias**2 / 3.0, 3)
        variance[self.gates_at :] = (known.bound**2 / 3.0).ravel()
        covariance = np.tile(np.diag(variance), (flights, 1, 1))
        gates = np.zeros((flights, len(known.gates), 3))
        belief = Belief(0, at_rest(known.start, known.start_yaw, flights, known.biased), gates, covariance)
        return FilterState(belief, (belief,), np.zeros((0, flights, 6)))

    def advance(self, state: FilterState, samples: ArrayLike) -> FilterState:
        """Return the state after inertial samples, in one call or in pieces: the same bits.

        Args:
            state: Before.
            samples: Specific force [m/s^2] and body rate [rad/s], body frame, (k, n, 6).

        Raises:
            AirworthyError: Another shape, or a number that is not finite.
        """
        given, flights = np.asarray(samples, np.float64), len(state.now.gates)
        if given.ndim != 3 or given.shape[1:] != (flights, 6):
            raise AirworthyError(f"Inertial samples have the shape {given.shape}; expected (samples, {flights}, 6).")
        if not np.isfinite(given).all():
            raise AirworthyError("An inertial sample is not finite; a race ends there, and so does the estimate.")
        now, ticks = self._through(state.now, given)
        past, kept = (*state.past, *ticks), np.concatenate([state.samples, given])
        # The last one from which every sample of the ring can be reached, and all behind it.
        first = max(k for k, belief in enumerate(past) if k == 0 or belief.step <= now.step - self.ring_steps)
        return replace(state, now=now, past=past[first:], samples=kept[past[first].step - past[0].step :])

    def _through(self, belief: Belief, samples: Array) -> tuple[Belief, list[Belief]]:
        """Move through samples, and return the beliefs at the frames on the way, with their covariance, too."""
        ticks, done = [], 0
        while done < len(samples):
            count = min(self.frame_steps - belief.step % self.frame_steps, len(samples) - done)
            motion = moved(belief.motion, samples[done : done + count], self.dt, self.briefing.gravity, self.options.euler)
            belief = replace(belief, step=belief.step + count, motion=motion)
            done += count
            if belief.step % self.frame_steps == 0:
                belief = self._settled(belief)
                ticks.append(belief)
        return belief, ticks

    def _settled(self, belief: Belief) -> Belief:
        """Bring the covariance to now, and begin the slopes anew."""
        if belief.motion.steps == 0:
            return belief
        return replace(belief, motion=fresh_slopes(belief.motion), covariance=self._covariance(belief))

    def _covariance(self, belief: Belief) -> Array:
        known, motion, covariance = self.briefing, belief.motion, belief.covariance.copy()
        step = transition(motion, self.dt)
        count = step.shape[1]
        covariance[:, :count] = step @ covariance[:, :count]
        covariance[:, :, :count] = covariance[:, :, :count] @ np.swapaxes(step, 1, 2)
        covariance[:, :count, :count] += added_noise(motion, self.dt, known.noise, known.walk)
        return symmetric(covariance)

    def covariance(self, state: FilterState) -> Array:
        """Return the covariance of the errors now, (n, d, d): position, velocity, attitude about world axes, biases where they
        are estimated, and the gates.
        """
        return self._covariance(state.now) if state.now.motion.steps else state.now.covariance

    # ---- Doubt --------------------------------------------------------------------------------------------------------------

    def loosened(self, state: FilterState, factor: float) -> FilterState:
        """Return the state with its covariance grown, as of a filter that is surprised by all it sees.

        Args:
            state: Now.
            factor: Of all variances, 1 or more; raises AirworthyError below.
        """
        if not 1.0 <= factor < np.inf:
            raise AirworthyError(f"A covariance is to grow by {factor!r}; expected a finite number, 1 or more.")
        return _each(state, lambda belief: replace(belief, covariance=factor * belief.covariance))

    def forgotten(self, state: FilterState, gate: int) -> FilterState:
        """Return the state with one gate as before anything was seen of it: where it nominally is, within its bounds.

        Args:
            state: Now.
            gate: Its number; raises AirworthyError where there is none.
        """
        if not 0 <= gate < len(self.briefing.gates):
            raise AirworthyError(f"Gate {gate} is to be forgotten; expected 0 to {len(self.briefing.gates) - 1}.")
        rows = slice(self.gates_at + 3 * gate, self.gates_at + 3 * gate + 3)
        prior = np.diag(self.briefing.bound[gate] ** 2 / 3.0)

        def as_new(belief: Belief) -> Belief:
            gates, covariance = belief.gates.copy(), belief.covariance.copy()
            gates[:, gate] = 0.0
            covariance[:, rows] = 0.0
            covariance[:, :, rows] = 0.0
            covariance[:, rows, rows] = prior
            return replace(belief, gates=gates, covariance=covariance)

        return _each(state, as_new)

    # ---- Frames -------------------------------------------------------------------------------------------------------------

    def update(self, state: FilterState, frame: BeaconFrame) -> tuple[FilterState, UpdateRecord]:
        """Return the state with a frame taken, at its stamp, and what it did.

        Args:
            state: Now.
            frame: Of all flights; a flight that sees nothing has NaN.

        Raises:
            AirworthyError: Pixels of another shape; a stamp that lies ahead, further back than the ring, between two samples,
                or not behind the frame before.
        """
        step = self._step_of(state, frame)
        self._check_shapes(state, frame)
        pixel = self._pixels(frame)
        if np.isinf(pixel).any():
            raise AirworthyError("A frame of beacons has a pixel that is infinite; what is not seen is NaN.")
        origin = state.past[0].step
        past = [belief for belief in state.past if belief.step <= step]
        belief, _ = self._through(past[-1], state.samples[past[-1].step - origin : step - origin])
        belief, record = self._taken(self._settled(belief), pixel)
        if past[-1].step == step:
            past.pop()
        now, ticks = self._through(belief, state.samples[step - origin :])
        beliefs = (*past, belief, *ticks)
        samples = state.samples[beliefs[0].step - origin :]
        return FilterState(now, beliefs, samples, float(frame.stamp)), record

    def _pixels(self, frame: BeaconFrame) -> Array:
        """Return pixels of gates and decoys, and where a second camera sees gates once more of all these, (n, sights, 4, 2)."""
        pixel = np.asarray(frame.landmarks, np.float64)
        if frame.right is None:
            return pixel
        # Sights are numbered camera by camera, each with all landmarks: what does not come is not seen.
        both = np.full((len(pixel), 2, len(self.briefing.landmarks), MARKERS, 2), np.nan)
        both[:, 0, : pixel.shape[1]] = pixel
        both[:, 1, : len(self.briefing.gates)] = frame.right
        return both.reshape(len(pixel), -1, MARKERS, 2)

    def _check_shapes(self, state: FilterState, frame: BeaconFrame) -> None:
        flights = len(state.now.gates)
        if frame.right is not None and self.briefing.right_position is None:
            raise AirworthyError("A frame of beacons has pixels of a second camera; the briefing tells of one alone.")
        for what, given, count in (
            ("", frame.pixel, len(self.briefing.gates)),
            (" of the second camera", frame.right, len(self.briefing.gates)),
            # Where no decoy's beacons come none are used; those that come must be those of the briefing.
            (" of decoys", frame.decoys, len(self.briefing.decoys)),
        ):
            expected = (flights, count, MARKERS, 2)
            if given is not None and np.shape(given) != expected:
                raise AirworthyError(
                    f"A frame of beacons{what} has the shape {np.shape(given)}; expected (flights, gates, 4, 2): {expected}."
                )

    def _step_of(self, state: FilterState, frame: BeaconFrame) -> int:
        stamp, now = float(frame.stamp), state.now.step
        if not np.isfinite(stamp):
            raise AirworthyError(f"A frame of beacons has the stamp {stamp} s; expected a finite number.")
        if not stamp > state.stamp:
            raise AirworthyError(f"A frame of beacons is stamped {stamp:.6f} s, not after that before ({state.stamp:.6f} s).")
        # Before arming nothing moves: all such frames belong to the start.
        sample = max(stamp, 0.0) / self.dt
        step = round(sample)
        if abs(sample - step) > _OFF_SAMPLE:
            raise AirworthyError(f"A frame of beacons is stamped {stamp:.6f} s, between two samples of {1.0 / self.dt:g} Hz.")
        if step > now:
            raise AirworthyError(
                f"A frame of beacons is stamped {stamp:.6f} s, ahead of the last sample: {now * self.dt:.6f} s."
            )
        if step < now - self.ring_steps:
            raise AirworthyError(
                f"A frame of beacons comes {(now - step) * self.dt:.4f} s late; the ring of samples holds"
                f" {self.options.ring_s:g} s: set ring_s."
            )
        return step

    def _taken(self, belief: Belief, pixel: Array) -> tuple[Belief, UpdateRecord]:
        """Update every flight that sees something, those together that see equally many gates: sizes, and with them the last
        bits, are a flight's own matter.
        """
        pixel = pixel if self.briefing.identified else self._named(belief, pixel)
        seen: ArrayBool = np.all(np.isfinite(pixel), axis=-1)
        gates_seen = seen.any(-1)
        count = gates_seen.sum(1)
        flights = len(count)
        # Seen gates first, in their order.
        order = np.argsort(~gates_seen, axis=1, kind="stable")
        nis, used, rejected = np.zeros(flights), np.zeros(flights, np.int64), np.zeros(flights, np.int64)
        seen_of, rejected_of = seen.sum(-1), np.zeros(gates_seen.shape, np.int64)
        motion, gates, covariance = belief.motion, belief.gates.copy(), belief.covariance.copy()
        position, velocity = motion.position.copy(), motion.velocity.copy()
        attitude, bias = motion.attitude.copy(), motion.bias.copy()
        for number in np.unique(count[count > 0]):
            rows = np.nonzero(count == number)[0]
            which = order[rows, :number]
            part = SeenPart(motion_of(motion, rows), gates[rows], covariance[rows], which)
            part, verdict = self._corners.corrected(part, pixel[rows[:, None], which])
            position[rows], velocity[rows] = part.motion.position, part.motion.velocity
            attitude[rows], bias[rows] = part.motion.attitude, part.motion.bias
            gates[rows], covariance[rows] = part.gates, part.covariance
            nis[rows], taken = verdict
            used[rows], rejected_of[rows[:, None], which] = taken.sum((1, 2)), (seen[rows[:, None], which] & ~taken).sum(-1)
            rejected[rows] = rejected_of[rows].sum(1)
        motion = replace(motion, position=position, velocity=velocity, attitude=attitude, bias=bias)
        belief = replace(belief, motion=motion, gates=gates, covariance=covariance)
        seen_of, rejected_of = self._of_landmarks(seen_of), self._of_landmarks(rejected_of)
        return belief, UpdateRecord(belief.step, nis, 2 * used, used, rejected, seen_of, rejected_of)

    def _of_landmarks(self, counts: ArrayInt) -> ArrayInt:
        """Return what both cameras count of each landmark, (n, landmarks), from counts of sights."""
        count = len(self.briefing.landmarks)
        return counts if counts.shape[1] <= count else counts.reshape(len(counts), -1, count).sum(1)

    def _named(self, belief: Belief, pixel: Array) -> Array:
        """Return the same pixels under the names that they fit, flight by flight."""
        named = pixel.copy()
        for flight in np.flatnonzero(np.isfinite(pixel).any((1, 2, 3))):
            which = np.flatnonzero(np.isfinite(pixel[flight]).all(-1).any(-1))
            row = np.array([flight])
            part = SeenPart(motion_of(belief.motion, row), belief.gates[row], belief.covariance[row], which[None])
            named[flight, which] = self._corners.named(part, pixel[flight][which])
        return named

    # ---- What a planner asks ------------------------------------------------------------------------------------------------

    def offset_sigma(self, state: FilterState) -> Array:
        """Return how well each gate's place relative to the vehicle is known across the opening: standard deviations [m] of the
        offset to the left and upwards, (n, gates, 2).
        """
        covariance = self.covariance(state)
        _, left, by_yaw = gate_axes(self.briefing, state.now.gates)
        n, count = left.shape[:2]
        slope = np.zeros((n, count, 2, 6))
        # Error of (centre - position) along left, by position and by the gate's own dx, dy, dyaw.
        slope[:, :, 0, :3] = -left
        slope[:, :, 0, 3:5] = left[..., :2]
        slope[:, :, 0, 5] = left[..., 0] * by_yaw[..., 0] + left[..., 1] * by_yaw[..., 1]
        slope[:, :, 1, 2] = -1.0
        own = np.broadcast_to(np.arange(3), (count, 3))
        which = np.concatenate([own, self.gates_at + 3 * np.arange(count)[:, None] + np.arange(3)], axis=1)
        part = covariance[:, which[:, :, None], which[:, None, :]]
        variance = slope @ part @ np.swapaxes(slope, 2, 3)
        return np.asarray(np.sqrt(np.maximum(variance[..., (0, 1), (0, 1)], 0.0)))


def _each(state: FilterState, change: Callable[[Belief], Belief]) -> FilterState:
    """Change what is believed now and was before: a late frame goes back there."""
    return replace(state, now=change(state.now), past=tuple(change(belief) for belief in state.past))
