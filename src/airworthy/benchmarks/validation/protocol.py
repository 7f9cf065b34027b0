"""The experiments: who is fitted to what, and judged on what.

Nothing is judged on windows that it was fitted to. Every model sees the same windows, start states, inputs and integrator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.benchmarks.validation.case import validation_case
from airworthy.benchmarks.validation.errors import ErrorSamples, comparators, error_samples, pooled
from airworthy.benchmarks.validation.fits import (
    GRAVITY,
    ModelFit,
    choose,
    cost_per_window,
    fit,
    hover_coefficient,
    refit_thrust,
)
from airworthy.benchmarks.validation.motors import MotorMap, fit_motor_map, speeds_from_pwm
from airworthy.benchmarks.validation.structure import (
    STRUCTURES,
    Airframe,
    DisturbanceDecay,
    Prediction,
    Structure,
    VehicleModel,
    predict,
)
from airworthy.benchmarks.validation.windows import LogReference, LogWindows, cut_windows, join_windows
from airworthy.core.arrays import ArrayBool

OURS, HELD = "Airworthy", "no model"
FITTED, TRIMMED, PUBLISHED, REFITTED, REFITTED_TRIMMED = (
    "fitted",
    "fitted, trimmed",
    "as published",
    "refitted",
    "refitted, trimmed",
)

CASE = validation_case()
BRUSHLESS_FLIGHTS = CASE.vehicles["brushless"][1]
BRUSHED_FLIGHT, *_PWM = CASE.vehicles["brushed"][1]
PWM_FLIGHTS = tuple(_PWM)
BODY_AIR = ("drag", "drag moment", "damping", "full")
"""Candidates for our model in which the air acts on the body alone."""
HUB_AIR = ("hubs", "hubs and lift", "full and hubs")
"""Candidates with drag at the rotors' hubs, the moment of flapping blades, and translational lift."""
BODY_ONLY = "fitted, no air at the hubs"
"""Variant of our model: the best of the structures in which the air acts on the body alone."""
FLOWN = "fitted, flown as saved"
"""Variant of our model: its saved record, by the simulator."""
TRIMS = tuple(DisturbanceDecay(gain, decay) for gain in (0.6, 1.0) for decay in (0.15, 0.4, 2.0))

BRUSHLESS, BRUSHED = CASE.vehicles["brushless"][0], CASE.vehicles["brushed"][0]


@dataclass(frozen=True)
class Split:
    """Windows to fit to and windows to judge on."""

    name: str
    train: LogWindows
    test: LogWindows


@dataclass
class Experiment:
    """One section of the table."""

    name: str
    title: str
    airframe: Airframe
    splits: list[Split]
    brushless: bool
    structures: tuple[str, ...] = BODY_AIR + HUB_AIR
    """Candidates for our model."""
    samples: dict[tuple[str, str], list[ErrorSamples]] = field(default_factory=dict)
    """(set, variant) -> errors on each split's windows."""
    fits: list[ModelFit] = field(default_factory=list)
    """Our fit of each split."""
    chosen: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    """Structure chosen on each split's training windows, and each structure's cross-validated cost."""

    def pooled(self) -> dict[tuple[str, str], ErrorSamples]:
        """Return errors over all splits."""
        return {key: pooled(parts) for key, parts in self.samples.items()}

    def jobs(self) -> Iterator[Callable[[], None]]:
        """Yield what is to be done, one job per model and split."""
        names = list(comparators(self.brushless))
        for split in self.splits:
            yield _job(self._ours, split)
            for name in names:
                yield _job(self._published, split, name)

    def _ours(self, split: Split) -> None:
        structure, costs = choose(self.airframe, split.train, self.structures)
        fitted = fit(self.airframe, split.train, STRUCTURES[structure])
        self.chosen.append((structure, costs))
        self.fits.append(fitted)
        self._evaluate((OURS, FITTED), fitted.model(), split)
        if any(name in HUB_AIR for name in self.structures):
            self._evaluate((OURS, BODY_ONLY), self._body_only(split, structure, costs).model(), split)
        self._evaluate((OURS, TRIMMED), fitted.model(), split, choose_trim(fitted.model(), split.train))
        self._evaluate((HELD, "rates held"), rates_held(self.airframe, split.train), split)

    def _body_only(self, split: Split, chosen: str, costs: dict[str, float]) -> ModelFit:
        """Return our fit with the best structure that has no air at the hubs: what the hubs gain is the difference."""
        allowed = [name for name in costs if name not in HUB_AIR]
        best = min(allowed, key=lambda name: costs[name])
        return self.fits[-1] if best == chosen else fit(self.airframe, split.train, STRUCTURES[best])

    def _published(self, split: Split, name: str) -> None:
        model = comparators(self.brushless)[name]
        refitted = refit_thrust(model, self.airframe.mass, split.train)
        self._evaluate((name, PUBLISHED), model, split)
        self._evaluate((name, REFITTED), refitted, split)
        self._evaluate((name, REFITTED_TRIMMED), refitted, split, choose_trim(refitted, split.train))

    def _evaluate(self, key: tuple[str, str], model: VehicleModel, split: Split, trim: DisturbanceDecay | None = None) -> None:
        self.evaluate(key, predict(split.test, [model], trim), split)

    def evaluate(self, key: tuple[str, str], prediction: Prediction, split: Split) -> None:
        """Add a prediction of a split's windows to the table.

        Args:
            key: Model and variant.
            prediction: States at each horizon.
            split: Whose windows, not fitted to, it is judged on.
        """
        self.samples.setdefault(key, []).append(error_samples(prediction, split.test))


def _job(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
    return lambda: function(*arguments)


def choose_trim(model: VehicleModel, windows: LogWindows) -> DisturbanceDecay:
    """Return the trim that predicts given windows best, among a few."""
    return min(TRIMS, key=lambda trim: cost_per_window(model, windows, trim))


def rates_held(airframe: Airframe, windows: LogWindows) -> VehicleModel:
    """Return the yardstick without a model of rotation: body rates stay as they are, thrust carries the weight on average."""
    model = Structure(airframe, (), hover_coefficient(windows, airframe.mass)).model([])
    immovable = 1e3 * airframe.mass * GRAVITY
    return replace(model, vehicle=replace(model.vehicle, inertia=(immovable, immovable, immovable, 0.0, 0.0, 0.0)))


def measured_experiments(references: dict[str, LogReference]) -> list[Experiment]:
    """Return experiments fed with measured rotor speeds."""
    found = []
    for of in CASE.experiments:
        if of.feed != "speeds":
            continue
        splits = []
        for split in of.splits:
            fitted = [cut_windows(references[name], span=_span(references[name], split.fit_part)) for name in split.fit]
            judge = references[split.judge]
            train = fitted[0] if len(fitted) == 1 else join_windows(fitted)
            splits.append(Split(split.name, train, cut_windows(judge, span=_span(judge, split.judge_part))))
        found.append(Experiment(of.name, of.title, CASE.vehicles[of.vehicle][0], splits, of.vehicle == "brushless"))
    return found


def _span(source: LogReference, part: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return a part of a log in seconds."""
    if part is None:
        return None
    first, last = float(source.log.time[0]), float(source.log.time[-1])
    return first + part[0] * (last - first), first + part[1] * (last - first)


def pwm_experiment(references: dict[str, LogReference]) -> tuple[Experiment, dict[str, MotorMap]]:
    """Return an experiment fed with PWM through the motor map: each flight judged by map and fit of the other."""
    of = next(e for e in CASE.experiments if e.feed == "commands")
    maps = {name: fit_motor_map(references[name].log) for name in CASE.vehicles[of.vehicle][1] if name in of.logs}
    splits = []
    for split in of.splits:
        (train,) = split.fit
        names = (train, split.judge)
        fed = [speeds_from_pwm(cut_windows(references[name]), references[name].log, maps[train]) for name in names]
        splits.append(Split(split.name, fed[0], fed[1]))
    airframe = CASE.vehicles[of.vehicle][0]
    return Experiment(of.name, of.title, airframe, splits, of.vehicle == "brushless", of.structures), maps


def final_fit(experiment: Experiment) -> ModelFit:
    """Fit our model to every window of an experiment, for flying; nothing is judged by it.

    Its structure is the one with the least cross-validated cost over all splits.
    """
    structure = min(experiment.structures, key=lambda name: sum(costs[name] for _, costs in experiment.chosen))
    return fit(experiment.airframe, join_windows(distinct(experiment.splits)), STRUCTURES[structure])


def distinct(splits: Sequence[Split]) -> list[LogWindows]:
    """Return the test windows of all splits: every window once."""
    return [split.test for split in splits]


def below_all(experiment: Experiment, ours: str, others: Sequence[str], statistic: str) -> ArrayBool:
    """Return where our variant's statistic is below that of every published set's variants, (quantity, horizon).

    Args:
        experiment: All predictions.
        ours: Our variant.
        others: Variants of the published sets that count.
        statistic: Name of a method of the errors, such as "rms".
    """
    table = {key: getattr(samples, statistic)() for key, samples in experiment.pooled().items()}
    rivals = [values for (name, variant), values in table.items() if name not in (OURS, HELD) and variant in others]
    return table[(OURS, ours)] < np.min(rivals, axis=0)
