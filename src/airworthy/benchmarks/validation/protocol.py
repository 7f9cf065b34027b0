"""The experiments: who is fitted to what, and judged on what.

Nothing is judged on windows that it was fitted to. Every model sees the same windows, start states, inputs and integrator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

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

BRUSHLESS_FLIGHTS = ("brushless_eckart00", "brushless_eckart17", "brushless_eckart27")
BRUSHED_FLIGHT = "brushed_jana05"
PWM_FLIGHTS = ("brushed_jana20", "brushed_jana24")
BODY_AIR = ("drag", "drag moment", "damping", "full")
"""Candidates for our model in which the air acts on the body alone."""
HUB_AIR = ("hubs", "hubs and lift", "full and hubs")
"""Candidates with drag at the rotors' hubs, the moment of flapping blades, and translational lift."""
BODY_ONLY = "fitted, no air at the hubs"
"""Variant of our model: the best of the structures in which the air acts on the body alone."""
FLOWN = "fitted, flown as saved"
"""Variant of our model: its saved record, by the simulator."""
TRIMS = tuple(DisturbanceDecay(gain, decay) for gain in (0.6, 1.0) for decay in (0.15, 0.4, 2.0))

BRUSHLESS = Airframe(
    name="crazyflie_brushless_37g",
    mass=0.037,
    arm=0.035355,
    inertia=(2.2e-5, 2.6e-5, 4.2e-5),
    rotor_inertia=3.9e-8,
    torque_ratio=0.0056,
    time_constant=0.05,
    source="prior: Crazyflow's 43.4 g brushless set, inertia scaled by mass",
)
BRUSHED = Airframe(
    name="crazyflie_brushed_35g",
    mass=0.0347,
    arm=0.03253,
    inertia=(1.68e-5, 1.68e-5, 2.98e-5),
    rotor_inertia=3.0e-8,
    torque_ratio=0.0065,
    time_constant=0.08,
    source="prior: Crazyflow's L250 and P250 sets",
)


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
    """Return experiments fed with measured rotor speeds: brushless flights leaving one out, the brushed flight by halves."""
    cut = {name: cut_windows(references[name]) for name in BRUSHLESS_FLIGHTS}
    brushless = [Split(out, join_windows([w for name, w in cut.items() if name != out]), cut[out]) for out in BRUSHLESS_FLIGHTS]
    log = references[BRUSHED_FLIGHT].log
    middle = 0.5 * (log.time[0] + log.time[-1])
    halves = [
        cut_windows(references[BRUSHED_FLIGHT], span=span) for span in ((log.time[0], middle), (middle, float(log.time[-1])))
    ]
    brushed = [
        Split(f"{BRUSHED_FLIGHT} first half", halves[1], halves[0]),
        Split(f"{BRUSHED_FLIGHT} second half", halves[0], halves[1]),
    ]
    return [
        Experiment(
            "brushless",
            "Brushless, measured rotor speeds: each flight judged by a fit to the other two",
            BRUSHLESS,
            brushless,
            True,
        ),
        Experiment(
            "brushed",
            "Brushed, measured rotor speeds: each half of the flight judged by a fit to the other",
            BRUSHED,
            brushed,
            False,
        ),
    ]


def pwm_experiment(references: dict[str, LogReference]) -> tuple[Experiment, dict[str, MotorMap]]:
    """Return an experiment fed with PWM through the motor map: each flight judged by map and fit of the other."""
    maps = {name: fit_motor_map(references[name].log) for name in PWM_FLIGHTS}
    splits = []
    for train, test in (PWM_FLIGHTS, PWM_FLIGHTS[::-1]):
        fed = [speeds_from_pwm(cut_windows(references[name]), references[name].log, maps[train]) for name in (train, test)]
        splits.append(Split(test, fed[0], fed[1]))
    title = "Brushed, PWM through the fitted motor map: each flight judged by map and fit of the other"
    # Errors of predicted speeds weaken the response that a fit sees, so an inertia that also holds that is a candidate here.
    structures = ("drag moment", "damping", "full", "effective inertia")
    return Experiment("pwm", title, BRUSHED, splits, False, structures), maps


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
