"""A student under way: rounds of flights (DAgger), and descent on what was flown lately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.learning.distill.config import DistillOptions
from airworthy.learning.distill.lessons import Lesson, Tutored
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.evaluation import HoverProtocol, fly_hover
from airworthy.learning.gradient.hover import HoverStart
from airworthy.learning.gradient.trainer import initial_weights
from airworthy.pilots.motor_policy.contract import MotorContract
from airworthy.pilots.motor_policy.pilot import MotorPolicy

__all__ = ["DistillTraining", "imitation_gradient"]

_PHYSICS_RATE = 500.0
"""Ours: half of that of the evaluation; a lesson is no judgement."""
_STARTS = 1 << 32
"""Ours: first seed of starts of lessons, because nobody's evaluation has seeds as large."""
_CHOICE, _SAMPLING = 1, 2
"""Steps of the draws of who flies, and of what is kept and learnt of."""
_LEARNING = 1 << 30
"""Before numbers of draws of what is learnt of; those of what is kept are smaller."""
_CLIP, _LAST = 1.0, 0.01
"""Largest norm of a gradient, and share of the learning rate at the end; ours, as usual."""


class DistillTraining:
    """A student that learns what teachers would have done where it comes to itself.

    Ross, Gordon and Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning"
    (DAgger), with a window over the last rounds instead of all.

    Args:
        lessons: Vehicles with their teachers.
        options: How.
    """

    trainer: ClassVar[str] = "distill"
    law: ClassVar[Literal["state", "square"]] = "state"

    def __init__(self, lessons: Sequence[Lesson], options: DistillOptions | None = None):
        self.lessons, self.options = list(lessons), options or DistillOptions()
        o = self.options
        # First of all: a vehicle that the student cannot command is told before any flight.
        self._terms = [lesson.terms(o.band) for lesson in self.lessons]
        self.contract = MotorContract(
            vehicle="any quadrotor",
            family="quadrotor",
            limits=((1.0 - o.band, 1.0 + o.band),) * 4,
            hover=(0.0,) * 4,
            rate=self.lessons[0].teacher.contract.rate,
            history=o.history,
            hidden=(o.hidden, o.hidden),
        )
        width = self.contract.observed
        sizes = ((o.hidden, width), (o.hidden, o.hidden), (4, o.hidden))
        self._descent = Descent(initial_weights(sizes, np.zeros(4), o.seed))
        self.weights = self._descent.weights
        # A ring: what was seen in the newest round takes the place of the oldest.
        kept = o.kept_rounds * len(self.lessons) * o.samples
        self._seen, self._wanted = np.zeros((kept, width), np.float32), np.zeros((kept, 4), np.float32)
        self.iteration = self.lost = 0

    @property
    def finished(self) -> bool:
        """Whether all rounds are behind it."""
        return self.iteration >= self.options.rounds

    @property
    def env_steps(self) -> int:
        """Decisions of all flights so far."""
        o = self.options
        return self.iteration * len(self.lessons) * o.flights * round(o.flight_s * self.contract.rate)

    def prepare(self) -> None:
        """Build kernels: those of the simulator, by a short flight of each vehicle."""
        for lesson in self.lessons:
            self._flown(lesson, self._protocol(0.1), np.zeros(1, bool))

    def policy(self) -> MotorPolicy:
        """Return the student as it is now, of all quadrotors."""
        notes = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        noted = {**notes, "options": asdict(self.options), "vehicles": [lesson.vehicle.name for lesson in self.lessons]}
        return MotorPolicy(replace(self.contract, training=noted), tuple(w.copy() for w in self.weights))

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of a round that came to this cost."""
        return {"cost": cost, "lost": self.lost, "tutored": self._by_teachers()}

    def step(self) -> float:
        """Fly and learn a round; returns the mean squared error of the student's actions where it came to, before it learnt."""
        o, rows = self.options, len(self.lessons) * self.options.samples
        first = self.iteration % o.kept_rounds * rows
        errors = []
        for k, (lesson, terms) in enumerate(zip(self.lessons, self._terms, strict=True)):
            key = flight_key(o.seed, np.arange(o.flights), self.iteration * len(self.lessons) + k)
            # Whole flights, not single decisions: a flight that changes hands shows nobody's way.
            by_teacher = uniforms(key, _CHOICE, Stream.RESET, 4)[:, 0] < self._by_teachers()
            seen, wanted, student = self._flown(lesson, self._protocol(o.flight_s), by_teacher)
            # Before it learns of them: an error on what it has not been taught yet.
            errors.append(float(np.mean((student - wanted) ** 2)))
            chosen = self._drawn(self.iteration * len(self.lessons) + k, o.samples, len(seen))
            span = slice(first + k * o.samples, first + (k + 1) * o.samples)
            # As the student of all quadrotors sees and commands them: `QuadrotorTerms.fitted` the other way round.
            self._seen[span] = seen[chosen] @ terms.seen(seen.shape[1]).T
            self._wanted[span] = wanted[chosen][:, terms.order]
        self.iteration += 1
        self._learn(min(self.iteration, o.kept_rounds) * rows)
        return float(np.mean(errors))

    def _protocol(self, seconds: float) -> HoverProtocol:
        o = self.options
        # Every round of every seed has starts of its own.
        seed = _STARTS + o.seed * 1_000_003 + self.iteration
        return HoverProtocol(flight_s=seconds, steady_s=min(2.0, seconds), physics_rate=_PHYSICS_RATE, seed=seed)

    def _by_teachers(self) -> float:
        """Share of flights that teachers fly now."""
        end = self.options.tutored * self.options.rounds
        return max(0.0, 1.0 - self.iteration / end) if end > 0.0 else 0.0

    def _flown(self, lesson: Lesson, protocol: HoverProtocol, by_teacher: ArrayBool) -> tuple[ArrayF32, Array, Array]:
        """Return what was seen (samples, observed), wanted and what the student would do (samples, 4), in own terms."""
        student = MotorPolicy(self.contract, tuple(self.weights)).fitted(lesson.vehicle)
        flyer = Tutored(student, lesson.teacher, by_teacher)
        flown = fly_hover(lesson.vehicle, flyer, protocol, HoverStart(), len(by_teacher))
        # The short flights that build kernels do not count.
        self.lost += int((~flown.kept).sum()) if protocol.flight_s == self.options.flight_s else 0
        seen, wanted = np.concatenate(flyer.seen), np.concatenate(flyer.wanted)
        # A flight that left the numbers teaches nothing.
        sound = np.isfinite(seen).all(axis=1) & np.isfinite(wanted).all(axis=1)
        return seen[sound], wanted[sound], np.asarray(student.action(seen[sound]), float)

    def _drawn(self, number: int, count: int, most: int) -> Array:
        """Whole numbers below `most`, of seed and number alone."""
        key = flight_key(self.options.seed, _SAMPLING, number)
        return np.minimum((uniforms(key, _SAMPLING, Stream.RESET, count) * most).astype(np.int64), most - 1)

    def _learn(self, rows: int) -> None:
        o, total = self.options, self.options.rounds * self.options.steps
        done = (self.iteration - 1) * o.steps
        chosen = self._drawn(_LEARNING + self.iteration, o.steps * o.batch, rows).reshape(o.steps, o.batch)
        for k, mine in enumerate(chosen):
            gradient = imitation_gradient(self.weights, self._seen[mine], self._wanted[mine])[1]
            share = _LAST + (1.0 - _LAST) * 0.5 * (1.0 + math.cos(math.pi * (done + k) / total))
            self._descent.step(gradient, o.learning_rate * share, _CLIP, done + k)

    # ---- stopping and going on ---------------------------------------------------------------------------------------

    def save(self) -> Checkpoint:
        """Return everything that the next round depends on."""
        arrays = {"flat": self._descent.flat, "moments": self._descent.moments, "seen": self._seen, "wanted": self._wanted}
        return Checkpoint(self.iteration, {name: np.array(x) for name, x in arrays.items()}, {"lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self._descent.flat[:], self._descent.moments[:] = arrays["flat"], arrays["moments"]
        self._seen[:], self._wanted[:] = arrays["seen"], arrays["wanted"]
        self.iteration, self.lost = checkpoint.number, int(checkpoint.notes["lost"])


def imitation_gradient(weights: Sequence[ArrayF32], seen: ArrayF32, wanted: ArrayF32) -> tuple[float, list[ArrayF32]]:
    """Return the mean squared error of actions, and its gradient, shaped as the weights.

    Args:
        weights: Weight (rows, columns) and bias of each layer; tanh behind each.
        seen: (samples, columns).
        wanted: (samples, actions).
    """
    layers: list[Any] = [seen]
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        layers.append(np.tanh(layers[-1] @ w.T + b))
    error = layers[-1] - wanted
    slope = error * np.float32(2.0 / error.size)
    gradient: list[ArrayF32] = []
    for w, (before, after) in zip(weights[-2::-2], reversed(list(pairwise(layers))), strict=True):
        slope = slope * (1.0 - after**2)
        gradient = [slope.T @ before, slope.sum(axis=0), *gradient]
        slope = slope @ w
    return float(np.mean(error**2)), gradient
