"""A race pilot under way: rounds of flights in which the expert says what it would have done, and descent on what was flown.

Ross, Gordon and Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning"
(DAgger), with a window over the last rounds. The expert is that of `race:stored`: the stored plan with glances, stretched and
moved with the gates as they are believed, and its tracker, whose clock follows the racer; so a label costs no solver, and
depends on nothing that the policy does not see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.trainer import initial_weights
from airworthy.learning.ppo.threads import one_thread
from airworthy.race.briefing import race_briefing
from airworthy.race.classes import race_class
from airworthy.race.learned.config import RacePolicyOptions
from airworthy.race.learned.contract import RacePolicyContract, course_mark
from airworthy.race.learned.descent import error_gradient, outputs
from airworthy.race.learned.observing import observed_numbers
from airworthy.race.learned.reference import MovedReference, centred, eased
from airworthy.race.learned.surrogate import CourseFlights, CourseRound, FlightNoise
from airworthy.race.pilots.tracker import RaceTracker
from airworthy.race.planning.horizon import whole_openings
from airworthy.race.planning.nominal import nominal_plan
from airworthy.race.planning.plan import flown_gates
from airworthy.race.planning.racer import RacerModel
from airworthy.race.race_file import load_race
from airworthy.vehicles import vehicle

__all__ = ["RacePolicyTraining", "course_flights"]

_RACE, _CLASS = "alphapilot", "noisy"
_CLIP, _LAST = 1.0, 0.01
"""Largest norm of a gradient, and share of the learning rate at the end; ours, as usual."""
_JUDGING = 1 << 32
"""Number of the draws of flights that judge; rounds are fewer."""


def course_flights(options: RacePolicyOptions) -> CourseFlights:
    """Return what makes flights of AlphaPilot.

    Args:
        options: How the expert flies: stretch, ease and spare.
    """
    race, conditions = load_race(_RACE), race_class(_CLASS)
    flown = vehicle(conditions.vehicle)
    model = RacerModel.of(flown)
    gates = whole_openings(flown_gates(race))
    plan = nominal_plan(model, gates)
    briefing = race_briefing(race, conditions)
    slow = eased(plan, briefing.bound[:, :2], options.ease)
    return CourseFlights(
        briefing,
        gates,
        MovedReference(plan, options.stretch, centred(plan, gates, options.spare), slow),
        RaceTracker(model),
        1.0 / float(flown.rotors[0].response.rise[0]),
        model.thrust_max,
    )


class RacePolicyTraining:
    """A policy that learns what `race:stored` would have done where it comes to itself.

    Args:
        options: How.
    """

    trainer: ClassVar[str] = "imitation"

    def __init__(self, options: RacePolicyOptions | None = None):
        self.options = o = options or RacePolicyOptions()
        self.course = course_flights(o)
        observed = observed_numbers(self.course.passages)
        self._descent = Descent(
            initial_weights(((o.hidden, observed), (o.hidden, o.hidden), (4, o.hidden)), np.zeros(4), o.seed)
        )
        self.weights = self._descent.weights
        # A ring: what was seen in the newest round takes the place of the oldest.
        self._seen, self._wanted = np.zeros((o.kept, observed), np.float32), np.zeros((o.kept, 4), np.float32)
        self.iteration = self.env_steps = self.samples = self.lost = self.crossed = self.hit = 0
        self._last: tuple[int, int, int] = (0, 0, 0)

    @property
    def finished(self) -> bool:
        """Whether all rounds are behind it."""
        return self.iteration >= self.options.rounds

    def prepare(self) -> None:
        """Do nothing: there is nothing to build."""

    @property
    def contract(self) -> RacePolicyContract:
        """What the policy reads and gives, with how it has learnt so far."""
        notes = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        return RacePolicyContract(
            race=_RACE,
            gates=self.course.briefing.gates,
            course=course_mark(self.course.briefing.corners, self.course.briefing.start.tolist()),
            vehicle=race_class(_CLASS).vehicle,
            thrust_max=self.course.thrust_max,
            hidden=(self.options.hidden,) * 2,
            training={**notes, "options": asdict(self.options)},
        )

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of a round that came to this cost."""
        crossed, hit, lost = self._last
        return {
            "cost": cost,
            "lost": self.lost,
            "lost_in_round": lost,
            "hit_share": hit / crossed if crossed else None,
            "tutored": self._by_expert(),
        }

    def _by_expert(self) -> float:
        """Share of flights that the expert flies now."""
        end = self.options.tutored * self.options.rounds
        return max(0.0, 1.0 - self.iteration / end) if end > 0.0 else 0.0

    def step(self) -> float:
        """Fly and learn a round; returns the mean squared error of outputs where the policy came to, before it learnt."""
        with one_thread():
            return self._round(np.random.default_rng([self.options.seed, self.iteration]))

    def _round(self, rng: np.random.Generator) -> float:
        o = self.options
        flown = self.course.fly(
            partial(outputs, self.weights),
            rng,
            o.flights,
            o.flight_s,
            self._by_expert(),
            keep_every=o.keep_every,
            noise=FlightNoise(o.gust, o.doubt),
        )
        # A flight that left the numbers teaches nothing.
        sound = np.isfinite(flown.seen).all(axis=1) & np.isfinite(flown.wanted).all(axis=1)
        seen, wanted = flown.seen[sound][-o.kept :], flown.wanted[sound][-o.kept :]
        place = (self.samples + np.arange(len(seen))) % o.kept
        self._seen[place], self._wanted[place] = seen, wanted
        self.samples += len(seen)
        self.env_steps += o.flights * round(o.flight_s * self.contract.rate)
        self.lost, self.crossed, self.hit = self.lost + flown.lost, self.crossed + flown.crossed, self.hit + flown.hit
        self._last = flown.crossed, flown.hit, flown.lost
        self._learn(rng)
        self.iteration += 1
        return flown.error

    def _learn(self, rng: np.random.Generator) -> None:
        o, total = self.options, self.options.rounds * self.options.steps
        rows, done = min(self.samples, o.kept), self.iteration * o.steps
        for k in range(o.steps):
            mine = rng.integers(0, rows, o.batch)
            gradient = error_gradient(self.weights, self._seen[mine], self._wanted[mine])
            share = _LAST + (1.0 - _LAST) * 0.5 * (1.0 + math.cos(math.pi * (done + k) / total))
            self._descent.step(gradient, o.learning_rate * share, _CLIP, done + k)

    def judged(self, weights: Sequence[ArrayF32], flights: int, seconds: float) -> CourseRound:
        """Fly whole courses without gusts, each of its own draw, from the start.

        Args:
            weights: Of the policy.
            flights: How many.
            seconds: How long.
        """
        rng = np.random.default_rng([self.options.seed, _JUDGING])
        every = round(seconds * self.contract.rate)
        with one_thread():
            return self.course.fly(partial(outputs, weights), rng, flights, seconds, on_the_way=0.0, keep_every=every)

    # ---- stopping and going on ---------------------------------------------------------------------------------------

    def save(self) -> Checkpoint:
        """Return everything that the next round depends on."""
        rows = min(self.samples, self.options.kept)
        arrays: dict[str, ArrayAny] = {
            "flat": self._descent.flat,
            "moments": self._descent.moments,
            "seen": self._seen[:rows],
            "wanted": self._wanted[:rows],
        }
        counts = {name: getattr(self, name) for name in ("env_steps", "samples", "lost", "crossed", "hit")}
        return Checkpoint(self.iteration, {name: np.array(x) for name, x in arrays.items()}, counts)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self._descent.flat[:], self._descent.moments[:] = arrays["flat"], arrays["moments"]
        rows = len(arrays["seen"])
        self._seen[:rows], self._wanted[:rows] = arrays["seen"], arrays["wanted"]
        self.iteration = checkpoint.number
        for name in ("env_steps", "samples", "lost", "crossed", "hit"):
            setattr(self, name, int(checkpoint.notes[name]))
