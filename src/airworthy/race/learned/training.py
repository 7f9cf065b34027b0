"""A race pilot under way: rounds of flights in which the expert says what it would have done, and descent on what was flown;
behind them, updates by reward (`airworthy.race.learned.improvement`).

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
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.trainer import initial_weights
from airworthy.learning.native_ppo.options import PpoUpdate
from airworthy.learning.ppo.threads import one_thread
from airworthy.race.briefing import race_briefing
from airworthy.race.classes import race_class
from airworthy.race.learned.batch import FlightNoise
from airworthy.race.learned.config import JUDGED_SEED, RacePolicyOptions
from airworthy.race.learned.contract import RacePolicyContract, course_mark
from airworthy.race.learned.descent import error_gradient, outputs
from airworthy.race.learned.improvement import RaceImprovement
from airworthy.race.learned.observing import observed_numbers
from airworthy.race.learned.reference import MovedReference, centred, eased
from airworthy.race.learned.surrogate import CourseFlights, CourseRound
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
_COUNTS = ("env_steps", "samples", "lost", "crossed", "hit")
_PPO = "ppo_"
"""Begins names of PPO's arrays in a checkpoint."""


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
    """A policy that learns what `race:stored` would have done where it comes to itself, and then by reward.

    Args:
        options: How.
    """

    def __init__(self, options: RacePolicyOptions | None = None):
        self.options = o = options or RacePolicyOptions()
        self.course = course_flights(o)
        observed = observed_numbers(self.course.passages)
        self._descent = Descent(
            initial_weights(((o.hidden, observed), (o.hidden, o.hidden), (4, o.hidden)), np.zeros(4), o.seed)
        )
        # A ring: what was seen in the newest round takes the place of the oldest.
        self._seen, self._wanted = np.zeros((o.kept, observed), np.float32), np.zeros((o.kept, 4), np.float32)
        self._improvement: RaceImprovement | None = None
        self.iteration = self.env_steps = self.samples = self.lost = self.crossed = self.hit = 0
        self._last: tuple[int, int, int] = (0, 0, 0)
        self._told: PpoUpdate | None = None

    @property
    def trainer(self) -> str:
        """What learns last."""
        return self.options.trainer

    @property
    def finished(self) -> bool:
        """Whether all rounds and updates are behind it."""
        return self.iteration >= self.options.iterations

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy."""
        return self._improvement.weights if self._improvement else self._descent.weights

    @property
    def imitated(self) -> list[ArrayF32]:
        """Those that imitation alone has learnt."""
        return self._descent.weights

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
        """Return what is written down of a round or an update that came to this cost; what the other stage has is None."""
        crossed, hit, lost = self._last
        told = self._told
        second = self.contract.rate / self.options.hold
        return {
            "stage": "ppo" if told else "imitation",
            "cost": cost,
            "lost": self.lost,
            "lost_in_round": lost,
            "hit_share": hit / crossed if crossed else None,
            "tutored": None if told else self._by_expert(),
            "gained": second * told.reward if told else None,
            "terms": {name: second * value for name, value in told.terms.items()} if told else {},
            "divergence": told.divergence if told else None,
            "explained": _number(told.explained) if told else None,
            "std": told.std if told else None,
        }

    def _by_expert(self) -> float:
        """Share of flights that the expert flies now."""
        end = self.options.tutored * self.options.rounds
        return max(0.0, 1.0 - self.iteration / end) if end > 0.0 else 0.0

    def step(self) -> float:
        """Fly and learn a round or, behind the last, an update.

        Returns:
            Of a round the mean squared error of outputs where the policy came to, before it learnt; of an update minus the
            reward per second of flight.
        """
        with one_thread():
            if self.iteration < self.options.rounds:
                return self._round(np.random.default_rng([self.options.seed, self.iteration]))
            return self._update()

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

    def _update(self) -> float:
        o = self.options
        improving = self._improvement = self._improvement or RaceImprovement(self.course, o, self._descent.weights)
        before = improving.environments.counts
        self._told = told = improving.update()
        crossed, hit, lost = (after - b for after, b in zip(improving.environments.counts, before, strict=True))
        self._last = crossed, hit, lost
        self.crossed, self.hit, self.lost = self.crossed + crossed, self.hit + hit, self.lost + lost
        # Counted as of rounds: commands, not decisions.
        self.env_steps += o.env_count * o.rollout * o.hold
        self.iteration += 1
        return -told.reward * self.contract.rate / o.hold

    def judged(self, weights: Sequence[ArrayF32], flights: int, seconds: float) -> CourseRound:
        """Fly whole courses without gusts, each of its own draw, from the start: the same ones for every policy.

        Args:
            weights: Of the policy.
            flights: How many.
            seconds: How long.
        """
        rng = np.random.default_rng(JUDGED_SEED)
        every = round(seconds * self.contract.rate)
        with one_thread():
            return self.course.fly(partial(outputs, weights), rng, flights, seconds, on_the_way=0.0, keep_every=every)

    # ---- stopping and going on ---------------------------------------------------------------------------------------

    def save(self) -> Checkpoint:
        """Return everything that the next round or update depends on."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        arrays: dict[str, ArrayAny] = {"flat": self._descent.flat}
        if self._improvement:
            # What was flown for imitation is of no use any more.
            inner = self._improvement.save()
            arrays |= {f"{_PPO}{name}": x for name, x in inner.arrays.items()}
            return Checkpoint(self.iteration, arrays, {**counts, "ppo": dict(inner.notes), "updates": inner.number})
        rows = min(self.samples, self.options.kept)
        arrays |= {"moments": self._descent.moments, "seen": self._seen[:rows], "wanted": self._wanted[:rows]}
        return Checkpoint(self.iteration, {name: np.array(x) for name, x in arrays.items()}, counts)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self._descent.flat[:] = arrays["flat"]
        if "ppo" in checkpoint.notes:
            self._improvement = RaceImprovement(self.course, self.options, self._descent.weights)
            inner = {name.removeprefix(_PPO): x for name, x in arrays.items() if name.startswith(_PPO)}
            self._improvement.restore(Checkpoint(int(checkpoint.notes["updates"]), inner, checkpoint.notes["ppo"]))
        else:
            self._descent.moments[:] = arrays["moments"]
            rows = len(arrays["seen"])
            self._seen[:rows], self._wanted[:rows] = arrays["seen"], arrays["wanted"]
        self.iteration = checkpoint.number
        for name in _COUNTS:
            setattr(self, name, int(checkpoint.notes[name]))


def _number(value: float) -> float | None:
    """Return a number as JSON takes it: None for what is none."""
    return value if math.isfinite(value) else None
