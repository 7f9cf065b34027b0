"""`race`: flies the fastest way through the gates as it believes them to stand, by IMU and beacons alone (spec/race 5).

Four parts, each of its own file: a Kalman filter with gates as landmarks (`estimation.estimator`), plans of minimum time with
glances, made anew in flight (`planning.replanner`), a tracker (`tracker`), and the inversion of the published rate loop
(`rate_inversion`). Here they are joined. Plans are work beside the commands: they are there only after the time that they are
charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import from_euler
from airworthy.race.background import Desk, Ticket
from airworthy.race.briefing import BeaconFrame, RaceBriefing
from airworthy.race.estimation.estimator import GateFilter, GateFilterOptions
from airworthy.race.estimation.landmarks import gate_axes
from airworthy.race.gate_geometry import shape_of
from airworthy.race.onboard import Onboard, OnboardFacts
from airworthy.race.pilots.progress import GateProgress, GlanceLedger
from airworthy.race.pilots.rate_inversion import RateLoopInverse
from airworthy.race.pilots.supervisor import Supervisor, flown_ahead, upright
from airworthy.race.pilots.tracker import RaceTracker, TrackerGains
from airworthy.race.planning.detours import BEFORE_M, braked_plan, return_plan
from airworthy.race.planning.glances import glances_of
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import GateWindows, HorizonOptions, whole_openings
from airworthy.race.planning.nominal import nominal_plan
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.replanner import LATE_MAX, RacerBelief, RaceReplanner, ReplanOptions, ReplanRule
from airworthy.race.planning.shooting.planner import prepare_shooting
from airworthy.simulation.config import SimulatorConfig

__all__ = ["RacingPilot"]

_SMOOTHING = 3.5
"""Samples of the gyroscope's filter (spec/race 5.2)."""
_LOOK_EVERY = 6
"""Commands from one question whether to plan to the next: 40 Hz (spec/race 5.4)."""
_LEAST_PUSH = 1.0
"""See `TrackerGains`: the weight. Ours: without it one race of 25 in class `v3` was lost, upside down behind Gate23."""
_LATE = 0.1
"""How long a plan is expected to take [s], until one has been made."""


class RacingPilot:
    """See the module; one flight.

    Args:
        options: Of its plans.
    """

    rate = 240.0
    sensors = ("imu", "beacons")

    def __init__(self, options: ReplanOptions | None = None) -> None:
        self._options = options or ReplanOptions()
        self._desk = Desk(0.0)

    @classmethod
    def check(cls) -> None:
        """Compile what plans, which its own process could not; raises AirworthyError where that fails."""
        prepare_shooting(HorizonOptions())

    def use_desk(self, desk: Desk) -> None:
        """Take the desk to which plans are submitted."""
        self._desk = desk

    def begin(self, facts: OnboardFacts) -> None:
        """Stand at the start with the stored plan; raises AirworthyError where that is none of this race and vehicle."""
        self._facts = facts
        vehicle, config = facts.vehicle, SimulatorConfig.published(facts.vehicle)
        self._model = RacerModel.of(vehicle)
        self._filter = GateFilter(self._told(facts), GateFilterOptions(euler=True))
        self._state = self._filter.begin(1)
        self._inverse = RateLoopInverse(vehicle, 1, facts.physics_rate, config.control)
        self._tracker = RaceTracker(self._model, TrackerGains(least_push=_LEAST_PUSH))
        # Moment of the air per |w| w, over the inertia: the loop knows nothing of it (vehicle v3).
        self._braked = np.asarray(vehicle.drag.angular_norm) / np.asarray(self._model.inertia)
        passages = zip(facts.corners, facts.directions, facts.gates, strict=True)
        self._nominal = whole_openings([shape_of(corners, direction, name) for corners, direction, name in passages])
        self._progress = GateProgress(len(facts.gates))
        self._ledger = GlanceLedger(glances_of(facts.gates), facts.frame_rate)
        self._body_rate, self._sent = np.zeros(3), np.zeros((1, 3))
        self._calls, self._failed, self._nis = 0, 0, float("nan")
        self._supervisor = Supervisor(self._model, self._options.wide, self._desk.note)
        self._prepare()

    def _prepare(self) -> None:
        """Make ready what decides, once all that it may know is there."""
        self._replanner, first = self._planner(self._model, self._nominal, self._options)
        self._replanner.build()
        self._flown = TimedPlan(first, 0.0, 0)
        self._ticket: Ticket[TimedPlan | None] | None = None
        self._late = _LATE
        self._returning = self._slowed = False

    def _told(self, facts: OnboardFacts) -> RaceBriefing:
        """Return what the filter is told."""
        return facts.briefing()

    def _arrived(self, onboard: Onboard) -> Sequence[Any]:
        """Return what frames are made of, oldest first."""
        return onboard.frames

    def _frame(self, arrived: Any) -> BeaconFrame:
        """Return the frame that something which arrived is; the state has come to the moment of arrival."""
        frame: BeaconFrame = arrived
        return frame

    def _start(self) -> Array:
        motion = self._state.now.motion
        return np.concatenate([motion.position[0], motion.velocity[0], motion.attitude[0], np.zeros(3)])

    def _planner(self, model: RacerModel, gates: GateWindows, options: ReplanOptions) -> tuple[ReplanRule, RacePlan]:
        """Return who plans, and the plan to begin with, through all passages as they nominally stand."""
        nominal = nominal_plan(model, gates)
        return RaceReplanner(model, nominal, gates.center, options), nominal

    # ---- Each command -------------------------------------------------------------------------------------------------------

    def command(self, onboard: Onboard) -> Array:
        """Return thrust [N] and rates [rad/s], (1, 4)."""
        self._sense(onboard)
        motion = self._state.now.motion
        self._own = np.concatenate([motion.position[0], motion.velocity[0], motion.attitude[0], self._body_rate])
        self._gates = self._windows(self._state.now.gates)
        if self._progress.update(self._own[:3], self._gates.center, self._gates.normal):
            self._passed(onboard.time)
        self._plan(onboard.time)
        self._calls += 1
        return self._track(onboard.time)

    def _sense(self, onboard: Onboard) -> None:
        """Take samples and frames: where it is, what it has looked at, and what the rate loop has done."""
        arrived = self._arrived(onboard)
        early = [item for item in arrived if item.stamp <= 0.0]
        for item in early:
            # Seen from the start, where it stands: all belong to the first sample.
            self._state, _ = self._filter.update(self._state, self._frame(item))
        if len(onboard.imu):
            self._state = self._filter.advance(self._state, onboard.imu)
            gyro = onboard.imu[:, :, 3:]
            self._inverse.advance(gyro, self._sent)
            bias = self._state.now.motion.bias
            for sample in gyro[:, 0] - (bias[0, 3:] if bias.shape[1] else 0.0):
                self._body_rate = self._body_rate + (sample - self._body_rate) / _SMOOTHING
        for item in arrived[len(early) :]:
            frame = self._frame(item)
            self._state, record = self._filter.update(self._state, frame)
            if record.freedom[0]:
                self._nis = float(record.nis[0]) / float(record.freedom[0])
                if self._supervisor.surprised(self._nis):
                    self._state = self._filter.loosened(self._state, self._supervisor.options.loosened)
            for gate in self._supervisor.excluded(record.seen_of[0], record.rejected_of[0]):
                self._state = self._filter.forgotten(self._state, gate)
            centers, _, _ = gate_axes(self._filter.briefing, self._state.now.gates)
            distance = np.linalg.norm(centers[0] - self._state.now.motion.position[0], axis=1)
            self._ledger.update(frame.corners_seen[0], distance, self._progress.next)

    def _windows(self, shift: Array) -> GateWindows:
        """Return all passages where they are believed, with their whole openings."""
        centers, _, _ = gate_axes(self._filter.briefing, shift)
        turn = from_euler(0.0, 0.0, shift[0, :, 2])
        left, up, normal = (frames.rotate(turn, axis) for axis in (self._nominal.left, self._nominal.up, self._nominal.normal))
        return GateWindows(centers[0], left, up, normal, self._nominal.half)

    def _plan(self, time: float) -> None:
        """Fetch a plan that is ready, and begin one where it is time."""
        if self._ticket is not None and self._ticket.ready:
            made, self._ticket = self._ticket.result, None
            self._failed = self._failed + 1 if made is None else 0
            if made is not None and not self._returning:
                self._flown = made
            elif self._failed == 1:
                self._replanner.hurry()
            elif self._failed:
                self._brake(time)
        if self._ticket is not None or self._progress.over or self._calls % _LOOK_EVERY or self._on_the_way_back():
            return
        sigma = self._filter.offset_sigma(self._state)[0]
        lacking = self._ledger.lacking(self._options.need)
        belief = RacerBelief(time, self._own, self._progress.next, self._gates, sigma, lacking)
        slow = self._slow(belief)
        if self._replanner.wanted(belief, self._flown, self._late) or (slow and not self._slowed):
            begin = self._begin(time) if self._replanner.anywhere else None
            belief = replace(belief, begin=begin, slow=self._supervisor.options.slow if slow else np.inf)
            self._ticket = self._desk.submit(self._replanner.plan(belief, self._flown, self._late))
            # What a plan was charged is what the next one is expected to take.
            self._late = self._ticket.record.charged_s
            self._slowed = slow

    # ---- What its supervisor has it do --------------------------------------------------------------------------------------

    def _slow(self, belief: RacerBelief) -> bool:
        """Tell whether the next gate comes near without being known."""
        number = belief.next
        left = self._flown.crossing(number) - belief.time
        half, sigma = float(belief.gates.half[number, 0]), float(belief.sigma[number, 0])
        return self._replanner.anywhere and self._supervisor.stretched(number, left, half, sigma)

    def _begin(self, time: float) -> Array | None:
        """Return where a plan is to begin instead of where the plan in force leads: where the racer, far off it, will be."""
        if not self._supervisor.strayed(self._own, self._flown, time):
            return None
        return flown_ahead(self._tracker, self._own, self._flown, time, min(self._late, LATE_MAX))

    def _brake(self, time: float) -> None:
        """Fly what is left of the plan in force more and more slowly, until there is another."""
        options, ahead = self._supervisor.options, range(self._progress.next, self._progress.passages)
        braked = braked_plan(self._flown, time, ahead, options.slow, options.braking) if self._replanner.anywhere else None
        if braked is not None:
            self._flown = braked
            self._desk.note("braked")

    def _passed(self, time: float) -> None:
        """Return for a gate whose plane was crossed beside its opening, where that is worth it."""
        number, self._returning = self._progress.next - 1, False
        sigma = self._filter.offset_sigma(self._state)[0, number]
        if not self._supervisor.missed(self._own[:3], self._gates, number, sigma) or not self._replanner.anywhere:
            return
        way = return_plan(self._model, self._own, self._gates, number, time)
        if self._supervisor.worth_returning(way, number, time):
            self._progress.take_back()
            self._flown, self._returning = way, True

    def _on_the_way_back(self) -> bool:
        """Tell whether a detour is flown, whose path no planner knows: until the racer is well before its gate again."""
        if self._returning:
            number = self._progress.next
            depth = float((self._own[:3] - self._gates.center[number]) @ self._gates.normal[number])
            self._returning = depth > -BEFORE_M
        return self._returning

    def _track(self, time: float) -> Array:
        reference, inputs = self._flown.at(time)
        _, ahead = self._flown.at(time + self._tracker.gains.lead)
        if self._supervisor.guards(self._own):
            reference, inputs = upright(self._own, self._model)
            ahead = inputs
        return self._sent_for(*self._tracker.command(self._own[None], reference[None], inputs[None], ahead[None]))

    def _sent_for(self, thrust: Array, alpha: Array) -> Array:
        """Return the command for a collective thrust [N], (1,), and an angular acceleration [rad/s^2], (1, 3)."""
        rate = self._own[10:]
        alpha = alpha + self._braked * np.linalg.norm(rate) * rate
        self._sent = self._inverse.command(alpha)
        return np.hstack([thrust[:, None], self._sent])

    # ---- What it believes ---------------------------------------------------------------------------------------------------

    def telemetry(self) -> Mapping[str, ArrayLike]:
        """Return what it believes, for the report."""
        times = self._flown.begun + np.linspace(0.0, self._flown.plan.duration, 60)
        return {**self._belief(), "plan": self._flown.plan.at(times - self._flown.begun)[0][:, :3]}

    def _belief(self) -> Mapping[str, ArrayLike]:
        covariance = self._filter.covariance(self._state)[0]
        return {
            "position": self._own[:3],
            "position_sigma": np.sqrt(np.diag(covariance)[:3]),
            "gates": self._gates.center,
            "gate_sigma": self._filter.offset_sigma(self._state)[0, :, 0],
            "nis": self._nis,
            "next": self._progress.next,
        }
