"""A visuomotor training under way: imitation of the expert's roll-outs first, then rounds of flights of its own.

Each step ends with heads that fly. A round is flown by the heads of the step before it, on starts and drones that are new to
them: its flights first say how good they are, and then they are learnt from.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.benchmarks.tracking.block import ConditionBlock, Setting
from airworthy.benchmarks.tracking.methods import VehicleSpread
from airworthy.core.arrays import ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.jobs.progress import ProgressLine
from airworthy.learning.backbone import backbone_weights
from airworthy.learning.svnet.data import TrainingData, batch_order
from airworthy.learning.svnet.data_loader import DataLoader
from airworthy.learning.svnet.model import SvNet
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.learning.svnet.stages import HistoryStage
from airworthy.learning.svnet.training import contract_of
from airworthy.learning.synthesis.config import RATE
from airworthy.learning.timed_training import StepStopped
from airworthy.learning.visuomotor.augment import augmented
from airworthy.learning.visuomotor.config import Augmentation, VisuomotorOptions
from airworthy.learning.visuomotor.dagger import DaggerFlights, dagger_condition, dagger_flights
from airworthy.learning.visuomotor.features import VARIANT, FrozenTrunk, Whitening, image_scale, variant_of
from airworthy.learning.visuomotor.heads import HeadLearning, Heads, learn_heads, policy_tensors
from airworthy.learning.visuomotor.pairs import Pairs
from airworthy.learning.visuomotor.places import expert_data, flown_in, joined_numbers
from airworthy.learning.visuomotor.sight import Sight
from airworthy.learning.visuomotor.step_times import STAGES, earlier_seconds, guessed_times, summed_seconds
from airworthy.pilots.svnet.contract import PolicyContract
from airworthy.pilots.svnet.network import SvNetwork
from airworthy.scenes import Scene
from airworthy.trajectories import course
from airworthy.vehicles import named_vehicle

__all__ = ["VisuomotorTraining", "mean_of_finite"]

_HISTORY = SvNetOptions(
    variant=VARIANT,
    history_epochs=6,
    history_batch=256,
    history_rate=1e-3,
    history_dropout=0.0,
    normalize=True,
    schedule="cosine",
)
"""How the history network learns: in a second or two, as well as by the published settings (docs/howto/svnet.md)."""
# Ours: between 1,000 and 3,000 minibatches of the first step held-out error changed by less than seeds do.
_FIRST, _AGAIN = HeadLearning(minibatches=1500), HeadLearning(minibatches=700, rate=5e-4)
"""How heads learn after imitation, and behind each round, from where they were."""
_FIRST_JOINT, _AGAIN_JOINT = replace(_FIRST, minibatches=400, batch=64), replace(_AGAIN, minibatches=150, batch=64)
"""With convolutions, whose minibatch of 64 takes ten times as long as one of 256 of heads alone; ours: a few times the time of
frozen ones, so that a control is done in minutes."""
_PROJECTED = 4000
"""Images, at most, by which features are whitened."""
_NOISES = ("baseline", "assisted", "challenged")
_GUST = 2.0
"""Most of a round's lateral pushes [m/s^2]."""
_LIGHT = (0.5, 1.3)
"""Factors of linear radiance that rounds are flown in."""
_SCENES_KEPT = 16
"""Read for rounds, at most at once."""
_ROUNDS, _LOOKS, _LEARNING = 11, 12, 13
"""Streams of what is drawn here."""


class VisuomotorTraining:
    """Begun; see `TimedWork`.

    Args:
        options: What to learn, and how.
        folder: Of the training; the expert's data lie below it.
        threads: Most of a CPU.
        setup_s: Of the minutes there are, spent before this object was asked for [s].
        judged_flights: That come behind learning, and for which time is kept.
        quiet: Say nothing.
        precision: Of convolutions that learn: "float32" or "bfloat16".

    Raises:
        AirworthyError: Scene, course, vehicle and features do not fit together.
    """

    def __init__(
        self,
        options: VisuomotorOptions,
        folder: Path,
        threads: int | None,
        setup_s: float = 0.0,
        judged_flights: int = 0,
        quiet: bool = True,
        precision: str = "float32",
    ):
        begun = time.perf_counter()
        self.options, self.iteration, self._quiet = options, 0, quiet
        self._folder, self._threads, self._judged = folder, threads, judged_flights
        self.variant, self._half = variant_of(options.features), precision == "bfloat16"
        self.trunk = backbone_weights(options.trunk, options.seed)
        self.vehicle = named_vehicle(options.vehicle)
        self.courses = [course(name) for name in options.course]
        self._see = FrozenTrunk(self.trunk, threads, self.variant)
        self._known: dict[str, Scene] = {}
        self.whitening: Whitening | None = None
        self.heads = Heads(options.channels, options.seed, self.variant)
        self.history: dict[str, ArrayF32] = {}
        self.pairs: Pairs | None = None
        self.log: list[dict[str, Any]] = []
        """A row per step: flights, successes, errors, seconds by stage."""
        self.stopped: Callable[[], bool] = lambda: False
        """Whether somebody wants it to stop; asked all the time, so that a step ends soon behind it."""
        self._earlier: dict[str, dict[str, float]] = {}
        """What tries at the next step took that were broken off: `seconds` and `cpu_seconds` by stage; empty: none was."""
        self.stopped_by = ""
        """Why no more rounds are flown: flights, clock or rounds; empty while it learns."""
        self._contract: PolicyContract | None = None
        self._row: dict[str, Any] = {}
        self._setup_s = setup_s + time.perf_counter() - begun

    # ---- What a folder asks of a training ------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return bool(self.stopped_by)

    @property
    def env_steps(self) -> int:
        """Decisions flown by the policy so far."""
        return int(sum(row.get("decisions", 0) for row in self.log))

    def step(self) -> float:
        """Imitate the expert, or fly a round and learn from it; returns the error of what was learnt.

        Raises:
            StepStopped: Somebody wants it to stop; all is as it was before the step, but that the time it took is kept.
        """
        before, earlier = self.save(), self._earlier
        begun, cpu = time.perf_counter(), time.process_time()
        self._row = {"seconds": {}, "cpu_seconds": {}}
        try:
            loss = self._imitate() if self.iteration == 0 else self._round()
        except StepStopped:
            spent = {kind: self._row[kind] for kind in ("seconds", "cpu_seconds")}
            self.restore(before)
            self._earlier = summed_seconds(earlier, spent)
            raise
        self.iteration += 1
        took = {"step_s": time.perf_counter() - begun, "step_cpu_s": time.process_time() - cpu}
        self._row |= {**took, "pairs": len(self._all), "error": loss}
        if earlier:
            self._row["earlier"], self._earlier = earlier, {}
        self.log.append(self._row)
        self.stopped_by = self._why_stop()
        return loss

    def _go_on(self, *_: object) -> None:
        """Raise `StepStopped` where somebody wants it to stop."""
        if self.stopped():
            raise StepStopped

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last step."""
        names = ("flights", "successes", "alone", "tracking_error_m", "helped_percent", "pairs", "error", "dropped")
        row = {name: self._row.get(name) for name in names}
        # The same names in every row: a log's reader takes one that has others for damaged.
        spent = {f"{name}_s": self._row["seconds"].get(name) for name in STAGES}
        return {"cost": cost, **row, **{name: None if value is None else round(value, 3) for name, value in spent.items()}}

    @property
    def contract(self) -> PolicyContract:
        """What the policy is."""
        if self._contract is None:
            seconds = sum(item.trajectory().duration for item in self.courses)
            parts = [part.data for part in expert_data(self.options, self._folder, seconds, True)[0]]
            self._contract = self._contract_of(joined_numbers(parts), parts[0])
        return replace(self._contract, training={**self._contract.training, "rounds": max(0, self.iteration - 1)})

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the policy as it is."""
        assert self.whitening is not None
        return policy_tensors(self.trunk, self.whitening, self.heads, self.history)

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        arrays = {f"heads.{key}": value.detach().numpy().copy() for key, value in self.heads.state_dict().items()}
        arrays |= {f"history.{key}": value for key, value in self.history.items()}
        if self.whitening is not None and self.pairs is not None:
            arrays |= {"whitening.mean": self.whitening.mean, "whitening.matrix": self.whitening.matrix}
            arrays |= {f"pairs.{key}": value for key, value in self.pairs.arrays().items()}
        if self.options.trains_trunk:
            arrays |= {f"trunk.{key}": value for key, value in self.trunk.items()}
        # The log is copied: it goes on growing.
        notes = {"log": list(self.log), "stopped_by": self.stopped_by, "earlier": self._earlier}
        return Checkpoint(self.iteration, arrays, notes)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self.heads.load_state_dict({key: torch.from_numpy(np.array(value)) for key, value in _under(arrays, "heads.").items()})
        self.heads.eval()
        self.history = {key: np.asarray(value, np.float32) for key, value in _under(arrays, "history.").items()}
        if "whitening.mean" in arrays:
            self.whitening = Whitening(np.asarray(arrays["whitening.mean"]), np.asarray(arrays["whitening.matrix"]))
            self.pairs = Pairs.of_arrays(_under(arrays, "pairs."))
        else:
            self.whitening = self.pairs = None
        if self.options.trains_trunk:
            self.trunk = {key: np.asarray(value, np.float32) for key, value in _under(arrays, "trunk.").items()}
        self.log, self.stopped_by = list(checkpoint.notes["log"]), str(checkpoint.notes["stopped_by"])
        # Checkpoints of before have none.
        self._earlier = dict(checkpoint.notes.get("earlier", {}))
        self.iteration = checkpoint.number
        self._row = self.log[-1] if self.log else {}

    # ---- Imitation -----------------------------------------------------------------------------------------------------------

    def _imitate(self) -> float:
        with self._clocked("data"):
            seconds = sum(item.trajectory().duration for item in self.courses)
            shown, self._row["kept_rollouts"] = expert_data(self.options, self._folder, seconds, self._quiet, self._go_on)
        parts = [part.data for part in shown]
        data, position = joined_numbers(parts), np.concatenate([part.position for part in shown])
        which = data.train
        with self._clocked("features"):
            every = max(1, len(which) // _PROJECTED)
            self.whitening = Whitening.of(self._see(_images_of(parts, every), self._go_on), self.options.channels)
            features = np.concatenate([self._features(*seen) for seen in _numbered_images(parts)])
        with self._clocked("history"):
            self.history, self._row["ratio_error"] = _history_network(data, self.options.seed, self._go_on)
        self.pairs = Pairs(
            features, data.state[which], data.objective[which], data.history[which], data.command[which], position[which]
        )
        self._contract = self._contract_of(data, parts[0])
        with self._clocked("heads"):
            latent = self._latent(self.pairs.history)
            names = ("state", "objective", "command", "position")
            self.heads.scale_by({**{name: getattr(self.pairs, name) for name in names}, "latent": latent})
            return self._learn(_FIRST_JOINT if self.options.trains_trunk else _FIRST, latent)

    def _contract_of(self, data: TrainingData, first: TrainingData) -> PolicyContract:
        o = self.options
        about = {"job": "visuomotor", "features": o.features, "minutes": o.minutes, "seed": o.seed}
        # Of the rounds: commands up to so late, loads up to this share of the mass, drones within this share of the record.
        about |= {"delay_s": [0.0, o.delay], "pickup": o.pickup, "drones": o.drones}
        made = contract_of(replace(data, images=first.images), SvNetOptions(variant=self.variant), about)
        mean, std = image_scale(self.variant)
        return replace(made, image_mean=mean, image_std=std)

    # ---- Rounds --------------------------------------------------------------------------------------------------------------

    def _round(self) -> float:
        with self._clocked("flights"):
            flown = self._flown()
        self._judge(flown)
        with self._clocked("features"):
            features = self._features(flown.images, (self.iteration,))
        new = Pairs(features, flown.state, flown.objective, flown.history, flown.command, flown.position)
        self.pairs = Pairs.joined([self._all, new])
        with self._clocked("heads"):
            return self._learn(_AGAIN_JOINT if self.options.trains_trunk else _AGAIN, self._latent(self.pairs.history))

    def _flown(self) -> DaggerFlights:
        """Return the round's flights: blocks by family and course, each under a condition that the round draws."""
        o, parts = self.options, []
        network = SvNetwork(self.contract, self.weights, threads=self._threads)
        rng = np.random.default_rng([o.seed, _ROUNDS, self.iteration])
        stops, each = flown_in(o, self.iteration)
        for number, (family, (name, place)) in enumerate(product(("rigid", "semi_kinematic"), stops)):
            condition = dagger_condition(
                f"round_{self.iteration}_{number}",
                o.drones,
                o.start,
                str(rng.choice(_NOISES)),
                # Whole physics steps of both families, and none beyond the most.
                int(rng.integers(0, int(100.0 * o.delay + 1e-9) + 1)) / 100.0,
                float(rng.uniform(0.0, _GUST)),
                float(np.exp(rng.uniform(*np.log(_LIGHT)))),
                # Half of them carry nothing.
                max(0.0, o.pickup * float(rng.uniform(-1.0, 1.0))),
            )
            first = each * (self.iteration * 2 * len(stops) + number)
            if len(self._known) >= _SCENES_KEPT:
                self._known.clear()
            block = ConditionBlock("dagger", family, condition, name, place, first, each)
            setting = Setting(condition, name, place, self._known)
            spread, seed = VehicleSpread(), _flight_seed(o.seed)
            flown = dagger_flights(network, self.contract, block, setting, self.vehicle, spread, seed, alive=self._go_on)
            if flown is None:
                raise KeyboardInterrupt
            parts.append(flown)
            # As an evaluation's blocks, whose pilots and simulators know each other.
            gc.collect()
        return DaggerFlights.joined(parts)

    def _judge(self, flown: DaggerFlights) -> None:
        rows = flown.rows
        self._row |= {
            "flights": len(rows),
            "successes": sum(str(row["outcome"]).startswith("success") for row in rows),
            "alone": sum(bool(row["alone"]) for row in rows),
            "tracking_error_m": mean_of_finite([row["tracking_error_m"] for row in rows]),
            "helped_percent": float(np.mean([row["helped_percent"] for row in rows])),
            "decisions": len(flown.state) + flown.dropped,
            "dropped": flown.dropped,
        }

    def _why_stop(self) -> str:
        """Return why no other round is flown; empty: one is."""
        o, rounds = self.options, self.iteration - 1
        if o.rounds or self.iteration >= o.iterations:
            return "rounds" if self.iteration >= o.iterations else ""
        good = [row for row in self.log[-2:] if row.get("flights") and self._good(row)]
        if len(good) == 2:
            return "flights"
        # The next round takes about as long as the last one; then it is judged.
        last = self.log[-1]
        if rounds and last.get("flights"):
            each, took = last["seconds"]["flights"] / last["flights"], last["step_s"]
        else:
            length = sum(item.trajectory().duration for item in self.courses) / len(self.courses)
            each, took = guessed_times(last, o.round_flights, RATE * length)
        spent = self._setup_s + sum(row["step_s"] + earlier_seconds(row) for row in self.log)
        return "clock" if spent + took + self._judged * each > 60.0 * o.minutes else ""

    def _good(self, row: Mapping[str, Any]) -> bool:
        o = self.options
        near = row["tracking_error_m"] is not None and row["tracking_error_m"] <= o.good_m
        return bool(100.0 * row["alone"] >= o.good_percent * row["flights"] and near)

    # ---- What both do --------------------------------------------------------------------------------------------------------

    @property
    def _all(self) -> Pairs:
        assert self.pairs is not None
        return self.pairs

    def _features(self, images: ArrayU8, part: tuple[int, ...]) -> NDArray[np.float16] | ArrayU8:
        """Return (n, looks, cells^2, channels): the first look is the image as it is. Where convolutions learn, the images."""
        assert self.whitening is not None
        if self.options.trains_trunk:
            return images[:, None]
        told = self._line("Looking at images", len(images) * self.options.looks)
        looks = [self._see.whitened(images, self.whitening, told)]
        for look in range(1, self.options.looks):
            changed = augmented(images, self.options.augmentation, (self.options.seed, _LOOKS, *part, look), self._go_on)
            further = partial(_further, told, look * len(images))
            looks.append(self._see.whitened(changed, self.whitening, further))
        return np.stack(looks, axis=1)

    def _learn(self, how: HeadLearning, latent: ArrayF32) -> float:
        told, o, sight = self._line("Learning from pairs", how.minibatches), self.options, None
        if o.trains_trunk:
            assert self.whitening is not None
            changed = partial(_changed_by, o.augmentation)
            sight = Sight(self.trunk, self.whitening, o.looks, changed, self._half)
        error = learn_heads(self.heads, self._all, latent, how, (o.seed, _LEARNING, self.iteration), told, sight)
        if sight is not None:
            self.trunk = sight.tensors()
        return error

    def _line(self, text: str, total: int) -> Callable[[int], None]:
        """Return what is told how far a part of a step is: it says so each half minute, and ends where somebody wants that."""
        line = None if self._quiet else ProgressLine(text, total)

        def told(done: int) -> None:
            self._go_on()
            if line is not None:
                line.at(done)

        return told

    def _latent(self, history: ArrayF32) -> ArrayF32:
        model = SvNet(VARIANT, 0)
        model.load_state_dict({key: torch.from_numpy(value) for key, value in self.history.items()}, strict=False)
        with torch.no_grad():
            return np.asarray(model.history(torch.from_numpy(history))[0].numpy())

    @contextmanager
    def _clocked(self, name: str) -> Iterator[None]:
        begun, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            for kind, spent in (("seconds", time.perf_counter() - begun), ("cpu_seconds", time.process_time() - cpu)):
                self._row[kind][name] = self._row[kind].get(name, 0.0) + spent


def _changed_by(how: Augmentation, images: ArrayU8, seed: tuple[int, ...]) -> ArrayU8:
    return augmented(images, how, seed)


def _further(told: Callable[[int], None], before: int, count: int) -> None:
    told(before + count)


def _images_of(parts: Sequence[TrainingData], every: int) -> ArrayU8:
    """Return every so many-th image to learn from, of all places."""
    return np.concatenate([images.take(part.train[::every]) for part in parts if (images := part.images) is not None])


def _numbered_images(parts: Sequence[TrainingData]) -> Iterator[tuple[ArrayU8, tuple[int, ...]]]:
    """Yield the images of each place to learn from, with what its looks are drawn by."""
    for number, part in enumerate(parts):
        if part.images is not None and len(part.train):
            yield part.images.take(part.train), (0,) if len(parts) == 1 else (0, number)


def mean_of_finite(values: Sequence[float | None]) -> float | None:
    """Return the mean of the numbers among values; None: there is none, as of flights that diverged at once."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else None


def _flight_seed(seed: int) -> int:
    """Return the seed of a training's flights: none of them is one that policies are judged by, whatever the seed."""
    return int(np.random.SeedSequence([seed, _ROUNDS]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _history_network(data: TrainingData, seed: int, alive: Callable[[], None]) -> tuple[dict[str, ArrayF32], float]:
    """Return tensors `history.*` of a network that learnt mass and force of a rotor, and its error of their ratio."""
    options = replace(_HISTORY, seed=seed)
    model = SvNet(VARIANT, seed)
    stage = HistoryStage(model, DataLoader(replace(data, images=None), torch.device("cpu")), options)
    number = 0
    for epoch in range(options.history_epochs):
        for which in batch_order(data.train, options.history_batch, seed, "history", epoch):
            alive()
            if not np.isfinite(stage.learn(number, which, None)):
                raise AirworthyError("The history network met numbers that are not finite: look at the vehicle's record.")
            number += 1
    state = stage.finish(dict(model.state_dict()))
    model.load_state_dict(state)
    with torch.no_grad():
        told = model.history(torch.from_numpy(data.history[data.held_out]))[1].numpy().astype(float)
    true = data.parameters[data.held_out].astype(float)
    error = np.abs((told[:, 1] / told[:, 0]) / (true[:, 1] / true[:, 0]) - 1.0)
    found = {key: value.detach().numpy().copy() for key, value in state.items() if key.startswith("history.")}
    return found, float(np.median(error))


def _under(arrays: Mapping[str, Any], head: str) -> dict[str, Any]:
    return {key[len(head) :]: value for key, value in arrays.items() if key.startswith(head)}
