"""`race`: flies the fastest way through the gates as it believes them to stand, by IMU and beacons alone (spec/race 5).

Four parts, each of its own file: a Kalman filter with gates as landmarks (`estimation.estimator`), plans of minimum time with
glances, made anew in flight (`planning.replanner`), a tracker (`tracker`), and the inversion of the published rate loop
(`rate_inversion`). Here they are joined. Plans are work beside the commands: they are there only after the time that they are
charged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import from_euler
from airworthy.race.background import Desk, Ticket
from airworthy.race.estimation.estimator import GateFilter, GateFilterOptions
from airworthy.race.estimation.landmarks import gate_axes
from airworthy.race.gate_geometry import shape_of
from airworthy.race.onboard import Onboard, OnboardFacts
from airworthy.race.pilots.progress import GateProgress, GlanceLedger
from airworthy.race.pilots.rate_inversion import RateLoopInverse
from airworthy.race.pilots.tracker import RaceTracker
from airworthy.race.planning.glances import glances_of
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import GateWindows, whole_openings
from airworthy.race.planning.minimum_time import casadi_module
from airworthy.race.planning.plan import RacePlan, packaged_plan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.replanner import RacerBelief, RaceReplanner, ReplanOptions, ReplanRule
from airworthy.simulation.config import SimulatorConfig

__all__ = ["RacingPilot"]

_SMOOTHING = 3.5
"""Samples of the gyroscope's filter (spec/race 5.2)."""
_LOOK_EVERY = 6
"""Commands from one question whether to plan to the next: 40 Hz (spec/race 5.4)."""
NOMINAL = "alphapilot_glances"
"""The stored plan with glances: what is flown first, and where solvers begin."""
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
        """Raise AirworthyError where there is no solver to plan with."""
        casadi_module()

    def use_desk(self, desk: Desk) -> None:
        """Take the desk to which plans are submitted."""
        self._desk = desk

    def begin(self, facts: OnboardFacts) -> None:
        """Stand at the start with the stored plan; raises AirworthyError without CasADi, or for another vehicle."""
        self._facts = facts
        vehicle, config = facts.vehicle, SimulatorConfig.published(facts.vehicle)
        self._model = RacerModel.of(vehicle)
        self._filter = GateFilter(facts.briefing(), GateFilterOptions(euler=True))
        self._state = self._filter.begin(1)
        self._inverse = RateLoopInverse(vehicle, 1, facts.physics_rate, config.control)
        self._tracker = RaceTracker(self._model)
        # Moment of the air per |w| w, over the inertia: the loop knows nothing of it (vehicle v3).
        self._braked = np.asarray(vehicle.drag.angular_norm) / np.asarray(self._model.inertia)
        passages = zip(facts.corners, facts.directions, facts.gates, strict=True)
        self._nominal = whole_openings([shape_of(corners, direction, name) for corners, direction, name in passages])
        self._progress = GateProgress(len(facts.gates))
        self._ledger = GlanceLedger(glances_of(facts.gates), facts.frame_rate)
        self._replanner, first = self._planner(self._model, self._nominal, self._options)
        self._replanner.build()
        self._flown = TimedPlan(first, 0.0, 0)
        self._ticket: Ticket[TimedPlan | None] | None = None
        self._late = _LATE
        self._body_rate, self._sent = np.zeros(3), np.zeros((1, 3))
        self._calls, self._nis = 0, float("nan")

    def _start(self) -> Array:
        motion = self._state.now.motion
        return np.concatenate([motion.position[0], motion.velocity[0], motion.attitude[0], np.zeros(3)])

    def _planner(self, model: RacerModel, gates: GateWindows, options: ReplanOptions) -> tuple[ReplanRule, RacePlan]:
        """Return who plans, and the plan to begin with, through all passages as they nominally stand."""
        nominal = packaged_plan(NOMINAL, model)
        return RaceReplanner(model, nominal, gates.center, options), nominal

    # ---- Each command -------------------------------------------------------------------------------------------------------

    def command(self, onboard: Onboard) -> Array:
        """Return thrust [N] and rates [rad/s], (1, 4)."""
        self._sense(onboard)
        motion = self._state.now.motion
        self._own = np.concatenate([motion.position[0], motion.velocity[0], motion.attitude[0], self._body_rate])
        self._gates = self._windows(self._state.now.gates)
        self._progress.update(self._own[:3], self._gates.center, self._gates.normal)
        self._plan(onboard.time)
        self._calls += 1
        return self._track(onboard.time)

    def _sense(self, onboard: Onboard) -> None:
        """Take samples and frames: where it is, what it has looked at, and what the rate loop has done."""
        early = [frame for frame in onboard.frames if frame.stamp <= 0.0]
        for frame in early:
            # Seen from the start, where it stands: all belong to the first sample.
            self._state, _ = self._filter.update(self._state, frame)
        if len(onboard.imu):
            self._state = self._filter.advance(self._state, onboard.imu)
            gyro = onboard.imu[:, :, 3:]
            self._inverse.advance(gyro, self._sent)
            bias = self._state.now.motion.bias
            for sample in gyro[:, 0] - (bias[0, 3:] if bias.shape[1] else 0.0):
                self._body_rate = self._body_rate + (sample - self._body_rate) / _SMOOTHING
        for frame in onboard.frames[len(early) :]:
            self._state, record = self._filter.update(self._state, frame)
            if record.freedom[0]:
                self._nis = float(record.nis[0]) / float(record.freedom[0])
            seen = np.isfinite(frame.pixel[0]).all(-1).sum(-1)
            centers, _, _ = gate_axes(self._filter.briefing, self._state.now.gates)
            distance = np.linalg.norm(centers[0] - self._state.now.motion.position[0], axis=1)
            self._ledger.update(seen, distance, self._progress.next)

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
            self._flown = made or self._flown
        if self._ticket is not None or self._progress.over or self._calls % _LOOK_EVERY:
            return
        sigma = self._filter.offset_sigma(self._state)[0]
        lacking = self._ledger.lacking(self._options.need)
        belief = RacerBelief(time, self._own, self._progress.next, self._gates, sigma, lacking)
        if self._replanner.wanted(belief, self._flown, self._late):
            self._ticket = self._desk.submit(self._replanner.plan(belief, self._flown, self._late))
            # What a plan was charged is what the next one is expected to take.
            self._late = self._ticket.record.charged_s

    def _track(self, time: float) -> Array:
        reference, inputs = self._flown.at(time)
        _, ahead = self._flown.at(time + self._tracker.gains.lead)
        thrust, alpha = self._tracker.command(self._own[None], reference[None], inputs[None], ahead[None])
        rate = self._own[10:]
        alpha = alpha + self._braked * np.linalg.norm(rate) * rate
        self._sent = self._inverse.command(alpha)
        return np.hstack([thrust[:, None], self._sent])

    # ---- What it believes ---------------------------------------------------------------------------------------------------

    def telemetry(self) -> Mapping[str, ArrayLike]:
        """Return what it believes, for the report."""
        covariance = self._filter.covariance(self._state)[0]
        times = self._flown.begun + np.linspace(0.0, self._flown.plan.duration, 60)
        return {
            "position": self._own[:3],
            "position_sigma": np.sqrt(np.diag(covariance)[:3]),
            "gates": self._gates.center,
            "gate_sigma": self._filter.offset_sigma(self._state)[0, :, 0],
            "nis": self._nis,
            "next": self._progress.next,
            "plan": self._flown.plan.at(times - self._flown.begun)[0][:, :3],
        }
