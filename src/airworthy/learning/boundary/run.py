"""One training under way: where it is, one epoch at a time, and all that the next one depends on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from airworthy.core.checkpoints import Checkpoint
from airworthy.core.errors import AirworthyError
from airworthy.learning.boundary.data import Rows
from airworthy.learning.boundary.errors import SAFE_SIGNS, torch_loss
from airworthy.learning.boundary.model import BoundaryNet, draw_masks
from airworthy.learning.boundary.options import BoundaryOptions
from airworthy.learning.model_state import ModelState

__all__ = ["BoundaryRun"]

_JUDGED_AT_ONCE = 4096


class BoundaryRun:
    """A training, begun anew; all of its rows are on the device.

    Args:
        rows: To learn from, and to watch; scaled.
        options: Chosen.
        device: Where it computes.
    """

    def __init__(self, rows: Rows, options: BoundaryOptions, device: torch.device):
        self.options, self.device = options, device
        self._inputs, self._labels = (_on(array, device) for array in (rows.inputs, rows.labels))
        self._watched = _on(rows.watched_inputs, device), _on(rows.watched_labels, device)
        self._signs = torch.tensor(SAFE_SIGNS, dtype=torch.float32, device=device)
        spread = np.ones(rows.inputs.shape[1]) if options.noise_on == "scaled" else 1.0 / rows.spans
        self._noise = _on((options.noise * spread).astype(np.float32), device)
        self.model = BoundaryNet(options.seed).to(device)
        self._parameters = dict(self.model.named_parameters())
        fused = device.type == "cuda"
        self._adam = torch.optim.Adam(list(self._parameters.values()), lr=options.rate, fused=fused, foreach=not fused)
        self._generator = torch.Generator(device=device)
        self._state = ModelState(self.model, device)
        self.epoch = 0
        """Whole epochs done."""
        self.notes: dict[str, Any] = {"journal": [], "best_loss": None, "best_epoch": 0, "seconds": 0.0, "rows": 0}
        """Journal by epoch; lowest loss of the watched rows, and when; time spent in learning, and rows learnt from."""
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
        """Of the rows that are watched, with nothing dropped and no noise."""
        inputs, labels = self._watched
        predicted = _predicted(self.model, inputs)
        return float(torch_loss(labels.double(), predicted.double(), self._signs.double(), self.options.skew))

    def weights(self, kind: str) -> dict[str, NDArray[np.float32]]:
        """Tensors of the "best" epoch, or of the "last"."""
        return self._state.weights(kind)

    def save(self) -> Checkpoint:
        """Everything that the next epoch depends on, as of the last whole one."""
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
        return torch.cat([model(inputs[k : k + _JUDGED_AT_ONCE]) for k in range(0, len(inputs), _JUDGED_AT_ONCE)])


def _on(array: NDArray[np.float32], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(device)
