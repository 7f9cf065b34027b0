"""One training under way: where it is, one minibatch at a time, and all that the next one depends on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.machine import ModelState
from airworthy.learning.svnet.data import TrainingData, batch_order
from airworthy.learning.svnet.data_loader import DataLoader
from airworthy.learning.svnet.metrics import command_metrics, history_metrics
from airworthy.learning.svnet.model import pretrained_init
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.learning.svnet.stages import CommandStage, HistoryStage, TrainingStage, stage_names

__all__ = ["SvNetRun"]

_STAGES: dict[str, Any] = {"history": HistoryStage, "command": CommandStage}


class SvNetRun:
    """A training, begun anew.

    Args:
        data: The pairs.
        options: Chosen.
        device: Where it computes.
        precision: Of the image network: "float32" or "bfloat16".
        resident: See `DataLoader`.
    """

    def __init__(
        self,
        data: TrainingData,
        options: SvNetOptions,
        device: torch.device,
        precision: str = "float32",
        resident: str = "auto",
    ):
        self.data, self.options, self.device = data, options, device
        self.data_loader = DataLoader(data, device, resident)
        self.model = pretrained_init(options, precision).to(device)
        self._names = stage_names(options, self.model)
        self._index, self._step = 0, 0
        self._sum, self._counted = 0.0, 0
        self._state = ModelState(self.model, device)
        self.notes: dict[str, Any] = {"journal": [], "skipped": 0, "best": {}, "seconds": {}, "pairs": {}}
        """Training log by epoch, minibatches left out, best epoch of each step, time and pairs of both passes."""
        self.stage: TrainingStage = self._stage()

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self._index == len(self._names)

    @property
    def number(self) -> int:
        """Minibatches done."""
        return sum(self._sizes()[: self._index]) + self._step

    @property
    def total(self) -> int:
        """Minibatches of the whole training."""
        return sum(self._sizes())

    def minibatches(self) -> Iterator[int]:
        """Learn; yields the number of minibatches done after each. It may be left, and saved, at any of them."""
        while not self.finished:
            stage = self.stage
            epoch, done = divmod(self._step, stage.per_epoch)
            # Of the whole epoch, and then what was done is skipped: a restored training meets the same minibatches.
            order = batch_order(self.data.train, stage.plan.batch, self.options.seed, stage.name, epoch)
            for which, images in stage.stream(islice(order, done, None)):
                # Reading is outside the clock: pairs per second are of the network.
                begun = time.perf_counter()
                self._learn(which, images)
                self._clock(stage.name, len(which), time.perf_counter() - begun)
                if self._step % stage.per_epoch == 0:
                    self._close_epoch(epoch)
                yield self.number

    def weights(self, kind: str) -> dict[str, ArrayF32]:
        """Return tensors of the "best" epoch, or of the "last"."""
        return self._state.weights(kind)

    def save(self) -> Checkpoint:
        """Return everything that the next minibatch depends on."""
        at = {"stage": self._index, "step": self._step, "sum": self._sum, "counted": self._counted}
        # Everything random is a function of these: that is the whole state of the generators.
        random = {"seed": self.options.seed, "stage": self._index, "step": self._step}
        arrays = self._state.arrays(self.stage.trained, self.stage.optimizer)
        return Checkpoint(self.number, arrays, {"at": at, "random": random, **self.notes})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        notes = dict(checkpoint.notes)
        at = notes.pop("at")
        notes.pop("random")
        self.notes = notes
        self._index, self._step, self._sum, self._counted = at["stage"], at["step"], at["sum"], at["counted"]
        self._state.restore(checkpoint.arrays)
        if not self.finished:
            self.stage = self._stage()
            self._state.restore_moments(checkpoint.arrays, self.stage.trained, self.stage.optimizer)

    def _stage(self) -> TrainingStage:
        found: TrainingStage = _STAGES[self._names[self._index]](self.model, self.data_loader, self.options)
        return found

    def _sizes(self) -> list[int]:
        o, pairs = self.options, len(self.data.train)
        sizes = {"history": (o.history_epochs, o.history_batch), "command": (o.epochs, o.batch)}
        return [sizes[name][0] * math.ceil(pairs / sizes[name][1]) for name in self._names]

    def _learn(self, which: Any, images: Tensor | None) -> None:
        loss = self.stage.learn(self._step, which, images)
        self._step += 1
        # A minibatch that was not finite has changed nothing; it is counted, and too many end the training with a sentence.
        if math.isfinite(loss):
            self._sum += loss
            self._counted += 1
            return
        self.notes["skipped"] += 1
        if self.notes["skipped"] > self.options.skip_most:
            raise AirworthyError(
                f"{self.notes['skipped']} minibatches of the {self.stage.name} step gave numbers that are not finite, more than"
                f" skip_most allows ({self.options.skip_most}): look at the data, or lower the rate."
            )

    def _clock(self, name: str, pairs: int, seconds: float) -> None:
        for key, value in (("seconds", seconds), ("pairs", pairs)):
            self.notes[key][name] = self.notes[key].get(name, 0) + value

    def _close_epoch(self, epoch: int) -> None:
        stage, last = self.stage, epoch + 1 == self.stage.plan.epochs
        row: dict[str, Any] = {"stage": stage.name, "epoch": epoch + 1, "minibatches": self._step}
        row |= {"rate": stage.rate(self._step - 1), "train_loss": self._sum / self._counted if self._counted else None}
        self._sum, self._counted = 0.0, 0
        if last or (epoch + 1) % self.options.judge_every == 0:
            row |= self._evaluate(epoch)
        self.notes["journal"].append({**row, "skipped": self.notes["skipped"]})
        if last:
            self._close_stage()

    def _evaluate(self, epoch: int) -> dict[str, Any]:
        """Held-out pairs; the best epoch's weights are kept."""
        history = self.stage.name == "history"
        loss, predicted = self.stage.evaluated(self.data.held_out)
        figures = (history_metrics if history else command_metrics)(self.data, predicted)
        # Most of the history step's loss cannot be learnt (mass and force apart from their ratio): it would choose by chance.
        score = figures["ratio_error"] if history else loss
        best = self.notes["best"].get(self.stage.name)
        if score is not None and math.isfinite(score) and (best is None or score < best["score"]):
            self.notes["best"][self.stage.name] = {"epoch": epoch + 1, "score": score}
            self._state.keep_best()
        return {"held_out_loss": loss if math.isfinite(loss) else None, **figures}

    def _close_stage(self) -> None:
        if self.stage.name == "history":
            self.model.load_state_dict(self.stage.finish(dict(self._state.chosen(self.options.keep))))
            self._state.best = {}
        self._index, self._step = self._index + 1, 0
        if not self.finished:
            self.stage = self._stage()
