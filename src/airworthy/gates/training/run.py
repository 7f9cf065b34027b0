"""One training under way: where it is, one epoch at a time, and all that the next one depends on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.gates.planner.contract import SLOPES, WIDTHS
from airworthy.gates.training.data import TrainingArrays
from airworthy.gates.training.metrics import SAFE_SIGNS, torch_loss
from airworthy.gates.training.options import BoundaryOptions
from airworthy.learning.machine import ModelState

__all__ = ["DROPPED", "BoundaryNet", "BoundaryRun", "draw_masks"]

# ---- The network in torch, for training: the same tensors that the runner without torch reads -------------------------------
#
# Dropout takes its masks from outside: they are drawn from (seed, epoch), so a training that was stopped goes on with the same
# numbers.

# Source: the table of layers in spec/boundary_predictor section 7; the share is ours, 0.1.
DROPPED = (1, 2)
"""Layers behind whose rectifier numbers are dropped."""


class BoundaryNet(nn.Module):
    """Eight scaled inputs, two scaled outputs.

    Args:
        seed: Of the weights: uniform within 1 / sqrt(inputs of the layer), torch's usual rule.
    """

    def __init__(self, seed: int):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList()
        for given, wide in pairwise(WIDTHS):
            layer = nn.utils.skip_init(nn.Linear, given, wide)
            for tensor in (layer.weight, layer.bias):
                nn.init.uniform_(tensor, -(given**-0.5), given**-0.5, generator=generator)
            self.layers.append(layer)

    def forward(self, x: Tensor, masks: Sequence[Tensor] = ()) -> Tensor:
        """Return (n, 8) -> (n, 2), both in [0, 1].

        Args:
            x: Scaled inputs.
            masks: From `draw_masks`; none: nothing is dropped.
        """
        for number, (layer, slope) in enumerate(zip(self.layers, SLOPES, strict=False)):
            x = functional.leaky_relu(layer(x), slope, inplace=True)
            if masks and number in DROPPED:
                x = x * masks[DROPPED.index(number)]
        found: Tensor = torch.sigmoid(self.layers[-1](x))
        return found


def draw_masks(rows: int, share: float, generator: torch.Generator, device: torch.device) -> list[Tensor]:
    """Return one per layer of `DROPPED`, (rows, width): 0 for that share of numbers, 1 / (1 - share) elsewhere; none of share
    0.

    Args:
        rows: Of the minibatch.
        share: Of numbers dropped.
        generator: Whose state is part of checkpoints.
        device: Where the masks are wanted.
    """
    if share == 0.0:
        return []
    widths = [WIDTHS[number + 1] for number in DROPPED]
    drawn = torch.rand(rows, sum(widths), generator=generator, device=device)
    # Divided by the share that is kept, so that nothing changes in the mean and nothing is scaled at deployment.
    kept = (drawn >= share).to(torch.float32) / (1.0 - share)
    return list(kept.split(widths, dim=1))


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: what lies behind the widest layer takes 8 MB for so many rows.
_EVALUATED_AT_ONCE = 4096


class BoundaryRun:
    """A training, begun anew; all of its rows are on the device.

    Args:
        rows: To learn from, and to watch; scaled.
        options: Chosen.
        device: Where it computes.
    """

    def __init__(self, rows: TrainingArrays, options: BoundaryOptions, device: torch.device):
        self.options, self.device = options, device
        self._inputs, self._labels = (_on(array, device) for array in (rows.inputs, rows.labels))
        self._watched = _on(rows.watched_inputs, device), _on(rows.watched_labels, device)
        self._signs = torch.tensor(SAFE_SIGNS, dtype=torch.float32, device=device)
        # "scaled" noise acts on inputs within 0 and 1; otherwise it is in the inputs' own units, hence the division.
        spread = np.ones(rows.inputs.shape[1]) if options.noise_on == "scaled" else 1.0 / rows.spans
        self._noise = _on((options.noise * spread).astype(np.float32), device)
        self.model = BoundaryNet(options.seed).to(device)
        self._parameters = dict(self.model.named_parameters())
        # Adam's fused form on a GPU, one launch for all tensors; `foreach` elsewhere.
        fused = device.type == "cuda"
        self._adam = torch.optim.Adam(list(self._parameters.values()), lr=options.rate, fused=fused, foreach=not fused)
        self._generator = torch.Generator(device=device)
        self._state = ModelState(self.model, device)
        self.epoch = 0
        """Whole epochs done."""
        self.notes: dict[str, Any] = {"journal": [], "best_loss": None, "best_epoch": 0, "seconds": 0.0, "rows": 0}
        """Training log by epoch; lowest loss of the watched rows, and when; time spent in learning, and rows learnt from."""
        self._saved = self._snapshot()

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or too many have passed without a lower loss."""
        late = self.options.patience and self.epoch - self.notes["best_epoch"] >= self.options.patience
        return self.epoch >= self.options.epochs or bool(late)

    def epochs(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Learn what is left; yields behind each epoch whether it was done, see `learn`."""
        while not self.finished:
            yield self.learn(stopped)

    def learn(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Learn for one epoch.

        Args:
            stopped: Asked at every minibatch; once it says so the epoch is given up, and counts for nothing.

        Returns:
            Whether the epoch was done.

        Raises:
            AirworthyError: A number is not finite any more.
        """
        begun = time.perf_counter()
        # Set every epoch, not by a scheduler object: a scheduler would be one more thing to save in checkpoints.
        for group in self._adam.param_groups:
            group["lr"] = self.options.rate_of(self.epoch)
        inputs, labels = self._drawn()
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for k in range(0, len(inputs), self.options.batch):
            if stopped():
                return False
            x, y = inputs[k : k + self.options.batch], labels[k : k + self.options.batch]
            self._adam.zero_grad(set_to_none=True)
            masks = draw_masks(len(x), self.options.dropout, self._generator, self.device)
            loss = torch_loss(y, self.model(x, masks), self._signs, self.options.skew)
            loss.backward()
            self._adam.step()
            total += loss.detach().double() * len(x)  # read once per epoch: a GPU would be waited for
        self._close(float(total) / len(inputs), self.watched_loss(), time.perf_counter() - begun)
        return True

    def watched_loss(self) -> float:
        """Return the loss of the rows that are watched, with nothing dropped and no noise."""
        inputs, labels = self._watched
        predicted = _predicted(self.model, inputs)
        return float(torch_loss(labels.double(), predicted.double(), self._signs.double(), self.options.skew))

    def weights(self, kind: str) -> dict[str, ArrayF32]:
        """Return tensors of the "best" epoch, or of the "last"."""
        return self._state.weights(kind)

    def save(self) -> Checkpoint:
        """Return everything that the next epoch depends on, as of the last whole one."""
        return self._saved

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        notes = dict(checkpoint.notes)
        self.epoch = int(notes.pop("epoch"))
        self.notes = notes
        self._state.restore(checkpoint.arrays)
        self._state.restore_moments(checkpoint.arrays, self._parameters, self._adam)
        self._saved = self._snapshot()

    def _drawn(self) -> tuple[Tensor, Tensor]:
        """Rows of this epoch in its order, with its noise (eq. 10)."""
        entropy = np.random.SeedSequence((self.options.seed, self.epoch)).generate_state(1, np.uint64)[0]
        # Seeded by epoch, so that a training that goes on from a checkpoint draws what it would have drawn.
        self._generator.manual_seed(int(entropy >> np.uint64(1)))
        count, width = self._inputs.shape
        order = torch.randperm(count, generator=self._generator, device=self.device)
        inputs, labels = self._inputs[order], self._labels[order]
        if self.options.noise:
            share = torch.rand(count, 1, generator=self._generator, device=self.device)
            normal = torch.randn(count, width, generator=self._generator, device=self.device)
            inputs += self._noise * share * normal
        return inputs, labels

    def _close(self, train: float, watched: float, seconds: float) -> None:
        self.epoch += 1
        if not (math.isfinite(train) and math.isfinite(watched)):
            raise AirworthyError(
                f"In epoch {self.epoch} the loss is not finite any more: lower the rate ({self.options.rate:g})."
            )
        self.notes["seconds"] += seconds
        self.notes["rows"] += len(self._inputs)
        rate = self.options.rate_of(self.epoch - 1)
        self.notes["journal"].append({"epoch": self.epoch, "rate": rate, "train_loss": train, "held_out_loss": watched})
        best = self.notes["best_loss"]
        if best is None or watched < best:  # below zero, too: the loss has its least value there
            self.notes |= {"best_loss": watched, "best_epoch": self.epoch}
            self._state.keep_best()
        self._saved = self._snapshot()

    def _snapshot(self) -> Checkpoint:
        # Everything random is a function of seed and epoch: no generator's state is needed.
        notes = {**self.notes, "journal": list(self.notes["journal"]), "epoch": self.epoch}
        return Checkpoint(self.epoch, self._state.arrays(self._parameters, self._adam), notes)


def _predicted(model: BoundaryNet, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([model(inputs[k : k + _EVALUATED_AT_ONCE]) for k in range(0, len(inputs), _EVALUATED_AT_ONCE)])


def _on(array: ArrayF32, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(device)
