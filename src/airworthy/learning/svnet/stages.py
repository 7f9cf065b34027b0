"""The two steps of a training: the history network learns the drone's parameters, then the rest learns the commands."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.core.arrays import ArrayF32, ArrayInt
from airworthy.learning.svnet.data_loader import DataLoader, normalized
from airworthy.learning.svnet.model import SvNet, draw_masks, mask_widths
from airworthy.learning.svnet.options import SvNetOptions

__all__ = ["CommandStage", "HistoryStage", "TrainingStage", "stage_names"]

# Ours: four times the published minibatch, since nothing is kept for a backward pass.
EVALUATED_AT_ONCE = 256
_NUMBERS = {"history": 1, "command": 2}
"""Of the generators; part of every result."""


def stage_names(options: SvNetOptions, model: SvNet) -> tuple[str, ...]:
    """Return steps of a training, in order."""
    before = ("history",) if model.variant.learns_history and options.history_epochs else ()
    return (*before, "command")


@dataclass(frozen=True)
class LearningPlan:
    """How a step learns."""

    epochs: int
    batch: int
    rate: float
    dropout: Mapping[str, float]
    """Share dropped, by block."""


class TrainingStage(ABC):
    """A step of a training: what learns, from what, by how much.

    Args:
        name: "history" or "command".
        model: Whose parameters learn.
        data_loader: The pairs.
        options: Of the training.
        plan: Of this step.
        trained: Names of the tensors that learn.
    """

    def __init__(
        self,
        name: str,
        model: SvNet,
        data_loader: DataLoader,
        options: SvNetOptions,
        plan: LearningPlan,
        trained: Callable[[str], bool],
    ):
        self.name, self.model, self.data_loader, self.options, self.plan = name, model, data_loader, options, plan
        self.per_epoch = math.ceil(len(data_loader.data.train) / plan.batch)
        self.minibatches = plan.epochs * self.per_epoch
        """Of the whole step."""
        for key, parameter in model.named_parameters():
            # Frozen here and not in the optimiser alone: gradients that nobody reads would cost time and memory.
            parameter.requires_grad_(trained(key))
        self.trained = {key: value for key, value in model.named_parameters() if value.requires_grad}
        fused = data_loader.device.type == "cuda"
        self.optimizer = torch.optim.Adam(list(self.trained.values()), lr=plan.rate, fused=fused, foreach=not fused)
        self._generator = torch.Generator(device=data_loader.device)
        found = mask_widths(model.variant, name)
        self._widths = [(width, plan.dropout[block]) for block, widths in found.items() for width in widths]

    def learn(self, step: int, which: ArrayInt, images: Tensor | None) -> float:
        """Learn from a minibatch.

        Args:
            step: Minibatches of this step before it: everything random follows from it and the seed.
            which: Pairs.
            images: Of them, 8 bits.

        Returns:
            The loss; NaN where something was not finite, and nothing was learnt.
        """
        entropy = np.random.SeedSequence((self.options.seed, _NUMBERS[self.name], step)).generate_state(1, np.uint64)[0]
        # Seeded by stage and minibatch, so that a training can stop and go on anywhere with the same numbers.
        self._generator.manual_seed(int(entropy >> np.uint64(1)))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.zero_grad(set_to_none=True)
        masks = draw_masks(len(which), self._widths, self._generator, self.data_loader.device)
        loss = self.loss(self.predicted(which, self._shown(images), masks), which)
        loss.backward()
        # `clip` of 0 clips nothing; the norm is wanted all the same, as it shows what is not finite.
        length = nn.utils.clip_grad_norm_(list(self.trained.values()), self.options.clip or math.inf)
        # One transfer for both numbers: each read waits for the device.
        value, finite = torch.stack([loss.detach(), torch.isfinite(loss + length).float()]).tolist()
        if not finite:
            return math.nan
        self.optimizer.step()
        return float(value)

    def rate(self, step: int) -> float:
        """Return the size of Adam's step."""
        share = min(1.0, (step + 1) / self.options.warmup) if self.options.warmup else 1.0
        if self.options.schedule == "cosine":
            share *= 0.5 * (1.0 + math.cos(math.pi * step / self.minibatches))
        return self.plan.rate * share

    def evaluated(self, which: ArrayInt) -> tuple[float, ArrayF32]:
        """Return the loss over some pairs with nothing dropped, and what is predicted (n, k)."""
        found, total = [], 0.0
        # In parts: the images of all pairs would not fit into memory.
        batches = [which[first : first + EVALUATED_AT_ONCE] for first in range(0, len(which), EVALUATED_AT_ONCE)]
        with torch.no_grad():
            for some, images in self.stream(batches):
                shown = None if images is None else normalized(images)
                predicted = self.predicted(some, shown, None)
                total += float(self.loss(predicted, some)) * len(some)
                found.append(self.physical(predicted).cpu().numpy())
        return total / max(len(which), 1), np.concatenate(found)

    def stream(self, batches: Any) -> Any:
        """Return minibatches, with images where this step sees them."""
        return ((which, None) for which in batches)

    @abstractmethod
    def predicted(self, which: ArrayInt, images: Tensor | None, masks: Any) -> Tensor:
        """Return (n, k)

        Args:
            which: Pairs (n,).
            images: (n, 3, H, W); None where this stage sees none.
            masks: Of dropped numbers; None: nothing is dropped.
        """

    @abstractmethod
    def loss(self, predicted: Tensor, which: ArrayInt) -> Tensor:
        """Return the mean of squares."""

    def physical(self, predicted: Tensor) -> Tensor:
        """Return the output in units of the data."""
        return predicted

    def finish(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return weights as they are used afterwards."""
        return state

    def _shown(self, images: Tensor | None) -> Tensor | None:
        o = self.options
        return None if images is None else normalized(images, self._generator, o.brightness, o.image_noise, o.paste)


class HistoryStage(TrainingStage):
    """Mean squared error of mass and force of a rotor; only the history network learns."""

    def __init__(self, model: SvNet, data_loader: DataLoader, options: SvNetOptions):
        plan = LearningPlan(
            options.history_epochs, options.history_batch, options.history_rate, {"history": options.history_dropout}
        )
        super().__init__("history", model, data_loader, options, plan, lambda key: key.startswith("history."))
        train = data_loader.data.train
        self._given = self._spread("history", train)
        self._asked = self._spread("parameters", train)

    def predicted(self, which: ArrayInt, images: Tensor | None, masks: Any) -> Tensor:
        """Return (n, 2)

        Args:
            which: Pairs (n,).
            images: Not read.
            masks: Of dropped numbers; None: nothing is dropped.
        """
        mean, spread = self._given
        found: Tensor = self.model.history((self.data_loader.numbers(which, "history") - mean) / spread, masks)[1]
        return found

    def loss(self, predicted: Tensor, which: ArrayInt) -> Tensor:
        """Return the loss over both numbers."""
        mean, spread = self._asked
        return ((predicted - (self.data_loader.numbers(which, "parameters") - mean) / spread) ** 2).mean()

    def physical(self, predicted: Tensor) -> Tensor:
        """Return the output kg, N"""
        mean, spread = self._asked
        return predicted * spread + mean

    def finish(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the mean and spread of inputs and outputs, folded into the first and last layer."""
        if not self.options.normalize:
            return state
        (mean, spread), (offset, scale) = self._given, self._asked
        # Folded in double precision, so that the policy's contract knows of no normalisation and keeps its published shapes.
        first = state["history.body.0.weight"].double() / spread.double()
        last = {key: state[f"history.estimate.{key}"].double() for key in ("weight", "bias")}
        folded = {
            "history.body.0.weight": first,
            "history.body.0.bias": state["history.body.0.bias"].double() - first @ mean.double(),
            "history.estimate.weight": last["weight"] * scale.double()[:, None],
            "history.estimate.bias": last["bias"] * scale.double() + offset.double(),
        }
        return state | {key: value.float() for key, value in folded.items()}

    def _spread(self, name: str, train: ArrayInt) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of a field; 0 and 1 where they are not taken off, or where nothing varies."""
        values = getattr(self.data_loader.data, name)[train].astype(np.float64)
        # One row that is not finite would make mean and spread so, too.
        values = values[np.isfinite(values).all(axis=1)]
        mean, spread = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.options.normalize and len(values):
            mean, spread = values.mean(axis=0), values.std(axis=0)
            # What does not vary is not divided: a course at one height has a constant input.
            spread = np.where(spread > 1e-6, spread, 1.0)
        device = self.data_loader.device
        return torch.from_numpy(mean.astype(np.float32)).to(device), torch.from_numpy(spread.astype(np.float32)).to(device)


class CommandStage(TrainingStage):
    """Mean squared error of the expert's commands; a history network that learnt before stays as it is."""

    def __init__(self, model: SvNet, data_loader: DataLoader, options: SvNetOptions):
        shares = {"history": options.history_dropout, "vision": options.dropout, "command": options.dropout}
        # What was pre-trained stays as it is: the command network learns to read its latent (spec/sousvide section 7, step 2).
        frozen = model.variant.learns_history
        plan = LearningPlan(options.epochs, options.batch, options.rate, shares)
        super().__init__(
            "command",
            model,
            data_loader,
            options,
            plan,
            lambda key: not (frozen and key.startswith("history.")) and _used(model, key),
        )
        self._frozen = frozen
        self._call: Any = model if options.compile == "none" else torch.compile(model, mode=options.compile)
        spread = np.ones(4)
        if options.balance:
            commands = data_loader.data.command[data_loader.data.train].astype(np.float64)
            # Squares of thrust shares and body rates differ by orders of magnitude; balanced, each counts by its own spread.
            spread = np.maximum(commands[np.isfinite(commands).all(axis=1)].std(axis=0), 1e-6)
        self._weight = torch.from_numpy((1.0 / spread).astype(np.float32)).to(data_loader.device)

    def predicted(self, which: ArrayInt, images: Tensor | None, masks: Any) -> Tensor:
        """Return (n, 4)

        Args:
            which: Pairs (n,).
            images: (n, 3, H, W); None where this stage sees none.
            masks: Of dropped numbers; None: nothing is dropped.
        """
        inputs = self.data_loader.inputs(which, images)
        latent = None
        if self._frozen:
            with torch.no_grad():
                latent = self.model.history(inputs.history)
        found: Tensor = self._call(inputs, masks, latent)
        return found

    def loss(self, predicted: Tensor, which: ArrayInt) -> Tensor:
        """Return the loss over all four numbers."""
        return (((predicted - self.data_loader.numbers(which, "command")) * self._weight) ** 2).mean()

    def stream(self, batches: Any) -> Any:
        """Return minibatches with images."""
        return self.data_loader.stream(batches)


def _used(model: SvNet, key: str) -> bool:
    """Return the estimate is not read by a network that is given the latent: it would only be carried along."""
    return not key.startswith("history.estimate.") or model.variant.history == "estimate"
