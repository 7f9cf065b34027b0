"""Pre-trains a backbone on images of places that are drawn as it goes: what poses, depths and points have in common everywhere.

What a cell shows is told in a place's own coordinates, so that it cannot be known of a place that was never seen. What is asked
of features is therefore that *little* is needed to tell it: in every batch, some images of a place are all that a linear map is
fitted to, in closed form, and its errors on others of the same place are the loss (Bertinetto et al.: Meta-learning with
differentiable closed-form solvers, arXiv 1805.08136). Depth is told by one map for all places.
"""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.backbone.config import BackboneOptions
from airworthy.learning.backbone.halls import drawn_hall
from airworthy.learning.backbone.pictures import PlacePictures, pictures_of
from airworthy.learning.backbone.trunk import BackboneTrunk, DepthHead, PlaceSolver
from airworthy.learning.machine import ModelState
from airworthy.learning.svnet.data_loader import normalized

__all__ = ["BackboneTraining", "PlacePool"]

# All numbers of this file are ours.
_POSE_SCALE = (4.0, 4.0, 1.0, 1.0, 1.0, 0.43, 0.43)
"""By which the numbers of a pose are divided: m, m, m, -, -, rad, rad."""
_POINT_SCALE = 4.0
"""By which points are divided [m]."""
_SHARPNESS = {"depth": 3.0, "pose": 2.0, "point": 2.0}
"""By which an error is multiplied: beyond 1 it counts linearly."""
_WEIGHTS = {"depth": 1.0, "pose": 2.0, "point": 1.0}
"""Of the parts of the loss."""
_BRIGHTNESS, _NOISE, _PASTED, _TINT = 0.4, 3.0, 0.3, 0.1
"""How images are changed: as of `normalized`, and the deviation of a factor for each colour."""
_DECAY, _GRADIENT_NORM = 1e-4, 1.0
_WARMUP = 50
"""Steps over which the rate rises."""
_SETTLED = 0.9
"""Share of the training behind which normalisations keep their statistics, as they will be in use."""


class PlacePool:
    """Images of the newest places; the oldest makes room for the next. What it holds depends on nothing but their numbers.

    Args:
        options: How many places and images, and their seed.
        threads: Of the renderer.
    """

    def __init__(self, options: BackboneOptions, threads: int | None):
        self._options, self._threads = options, threads
        self._held: dict[int, int] = {}
        self._arrays: dict[str, Tensor] = {}

    def hold(self, first: int) -> None:
        """Have the places from this number on."""
        count = self._options.places
        for number in range(first, first + count):
            if self._held.get(number % count) != number:
                self._put(number)

    def _put(self, number: int) -> None:
        o = self._options
        found = _whole(pictures_of(drawn_hall(number, o.seed), o.images, [o.seed, number, 1], self._threads), o.images)
        if not self._arrays:
            self._arrays = {name: torch.empty((o.places, *x.shape), dtype=x.dtype) for name, x in found.items()}
        for name, x in found.items():
            self._arrays[name][number % o.places] = x
        self._held[number % o.places] = number

    def drawn(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """Return a batch, (places, images, ...) of each array of `PlacePictures`."""
        o = self._options
        places = torch.from_numpy(rng.permutation(o.places)[: o.batch_places])
        which = np.stack([rng.permutation(o.images)[: o.batch_images] for _ in range(o.batch_places)])
        return {name: x[places[:, None], torch.from_numpy(which)] for name, x in self._arrays.items()}


def _whole(found: PlacePictures, count: int) -> dict[str, Tensor]:
    """Return arrays of as many images as are wanted: those of a place with little room come again."""
    again = np.arange(count) % len(found.images)
    return {item.name: torch.from_numpy(getattr(found, item.name)[again]) for item in fields(found)}


class BackboneTraining:
    """A training under way; the same options give the same bits on the same machine.

    Args:
        options: What to learn, and how.
        threads: Most threads of the renderer; images are the same.
        precision: Of the trunk's convolutions: "float32" or "bfloat16".
    """

    def __init__(self, options: BackboneOptions, threads: int | None = None, precision: str = "float32"):
        self.options, self.iteration, self._half = options, 0, precision == "bfloat16"
        torch.manual_seed(options.seed % (1 << 63))
        self.net = nn.ModuleDict({"trunk": BackboneTrunk(), "depth": DepthHead(), "solver": PlaceSolver()})
        self.net["trunk"].to(memory_format=torch.channels_last)
        self._adam = torch.optim.AdamW(self.net.parameters(), options.learning_rate, weight_decay=_DECAY)
        self._state = ModelState(self.net, torch.device("cpu"))
        self._pool = PlacePool(options, threads)
        self.parts: dict[str, float] = {}
        """Of the last step's loss, before their weights."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def seen(self) -> dict[str, int]:
        """How many places and images were seen, and how often one was drawn."""
        o = self.options
        places = o.places + max(0, self.iteration - 1) // o.renew
        return {"places": places, "images": places * o.images, "drawn": self.iteration * o.batch_places * o.batch_images}

    def step(self) -> float:
        """Learn from a batch; returns the loss."""
        o = self.options
        self._pool.hold(self.iteration // o.renew)
        # Of this iteration: what is drawn depends on nothing that was drawn before it.
        rng = np.random.default_rng([o.seed, self.iteration, 2])
        batch = self._pool.drawn(rng)
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        share = self.iteration / o.iterations
        self.net["trunk"].train(share < _SETTLED)
        rate = min(1.0, (self.iteration + 1) / _WARMUP) * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * share)))
        for group in self._adam.param_groups:
            group["lr"] = o.learning_rate * rate
        loss = self._loss(batch, generator)
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), _GRADIENT_NORM)
        self._adam.step()
        self.iteration += 1
        return float(loss.detach())

    def _loss(self, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        images = normalized(batch["images"].flatten(0, 1), generator, _BRIGHTNESS, _NOISE, _PASTED)
        images = images * (1.0 + _TINT * torch.randn((len(images), 3, 1, 1), generator=generator))
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            features = self.net["trunk"](images)
        features = features.float()
        pose = batch["pose"] / torch.tensor(_POSE_SCALE)
        errors = {"depth": (self.net["depth"](features) - _known(batch["log_depth"]).flatten(0, 1))[..., None]}
        valid = {"depth": torch.isfinite(batch["log_depth"]).flatten(0, 1)[..., None]}
        solver, held = self.net["solver"], features.unflatten(0, pose.shape[:2])
        errors["pose"], valid["pose"] = solver.pose_errors(held, pose), torch.ones(())
        points = batch["points"] / _POINT_SCALE
        valid["point"] = torch.isfinite(points).all(dim=-1, keepdim=True)
        errors["point"] = solver.point_errors(held, _known(points), valid["point"])
        losses = {name: _robust(_SHARPNESS[name] * error, valid[name]) for name, error in errors.items()}
        self.parts = {name: float(loss.detach()) for name, loss in losses.items()}
        return torch.stack([_WEIGHTS[name] * loss for name, loss in losses.items()]).sum()

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last step."""
        return {"cost": cost, **self.parts}

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the trunk as it is, normalisations folded in."""
        trunk: BackboneTrunk = self.net["trunk"]
        return trunk.folded()

    @property
    def told(self) -> dict[str, Any]:
        """What it learnt from, and how far it came."""
        return {"iterations": self.iteration, **self.seen, "options": asdict(self.options)}

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        return Checkpoint(self.iteration, self._state.arrays(dict(self.net.named_parameters()), self._adam), {})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits; places are rendered again."""
        self._state.restore(checkpoint.arrays)
        self._state.restore_moments(checkpoint.arrays, dict(self.net.named_parameters()), self._adam)
        self.iteration = checkpoint.number


def _known(values: Tensor) -> Tensor:
    """Return values with 0 where there is none."""
    return torch.where(torch.isfinite(values), values, 0.0)


def _robust(errors: Tensor, valid: Tensor) -> Tensor:
    """Return the mean of errors, squared while they are small, where there is something."""
    size = errors.abs()
    counted = torch.where(size < 1.0, 0.5 * size.square(), size - 0.5) * valid
    share = valid.expand_as(errors).float().sum()
    return counted.sum() / share.clamp(min=1.0)
