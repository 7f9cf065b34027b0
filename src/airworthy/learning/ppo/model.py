"""Policy and critic in torch: tanh layers, an image through convolutions, a gated recurrent unit, a Gaussian over actions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.learning.native_ppo.shared import orthogonal
from airworthy.learning.ppo.layers import GatedSequence, TanhLayer
from airworthy.learning.ppo.options import TorchPpoOptions

__all__ = ["ActorCritic", "Gaussian", "Trunk"]

_GAIN = math.sqrt(2.0)
"""Of layers that are not last (specification, learning by reward, section 5)."""
_LAST_GAIN, _VALUE_GAIN = 0.01, 1.0
"""Of the last layers of policy (the same place) and critic (usual with PPO: Huang et al., 2022)."""
_CHANNELS = (16, 32, 32)
"""Of three convolutions, 3 x 3 with stride 2 each: ours, for images of 12 x 16 to 64 x 64 on a CPU."""
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SAFE = 0.99
"""Of the bounds: hover's action is brought within it, so that its inverse tanh is finite (ours)."""

Draw = Callable[[tuple[int, int], float], Array]


@dataclass(frozen=True)
class Gaussian:
    """Distribution of actions, before they are squashed where they are."""

    mean: Tensor
    """(..., actions)."""
    log_std: Tensor
    """The same, or (actions,)."""
    squash: bool

    def log_probability(self, taken: Tensor) -> Tensor:
        """Return the log probability of what was drawn (before squashing), (...,)."""
        z = (taken - self.mean) * torch.exp(-self.log_std)
        found = (-0.5 * z * z - self.log_std).sum(-1) - taken.shape[-1] * _HALF_LOG_TWO_PI
        # By change of variables the density of a = tanh(u) is that of u over da/du = 1 - tanh(u)^2.
        return found - _log_slope(taken).sum(-1) if self.squash else found

    def entropy(self, noise: Tensor | None = None) -> Tensor:
        """Return the mean over all; of squashed actions, which have no closed form, estimated with noise (..., actions)."""
        plain = (self.log_std + (_HALF_LOG_TWO_PI + 0.5)).sum(-1).mean()
        if not self.squash or noise is None:
            return plain
        return plain + _log_slope(self.mean + torch.exp(self.log_std) * noise).sum(-1).mean()

    def action(self, taken: Tensor) -> Tensor:
        """Return what is commanded by what was drawn."""
        return torch.tanh(taken) if self.squash else taken


def _log_slope(u: Tensor) -> Tensor:
    """log(1 - tanh(u)^2), written so that it stays finite where tanh(u) rounds to 1."""
    return 2.0 * (math.log(2.0) - u - nn.functional.softplus(-2.0 * u))


class Trunk(nn.Module):
    """All layers before the last.

    Args:
        observed: Numbers of an observation.
        options: Widths, memory and image.
        draw: First weights of a layer, by shape and gain.
    """

    def __init__(self, observed: int, options: TorchPpoOptions, draw: Draw):
        super().__init__()
        self.image = options.image
        self.vector = observed - math.prod(options.image) if options.image else observed
        inputs = self.vector
        self.convolutions = nn.ModuleList()
        if options.image:
            channels, height, width = options.image
            for wide in _CHANNELS:
                layer = nn.Conv2d(channels, wide, 3, stride=2, padding=1)
                _set(layer, draw((wide, channels * 9), _GAIN).reshape(wide, channels, 3, 3))
                self.convolutions.append(layer)
                channels, height, width = wide, (height - 1) // 2 + 1, (width - 1) // 2 + 1
            inputs += channels * height * width
        self.layers = nn.ModuleList()
        for width in options.hidden:
            self.layers.append(_linear(inputs, width, draw, _GAIN))
            inputs = width
        self.width = options.recurrent or inputs
        self.cell = None
        if options.recurrent:
            self.cell = nn.GRUCell(inputs, options.recurrent)
            _set(self.cell, None)
            for weight in (self.cell.weight_ih, self.cell.weight_hh):
                # Three gates, each orthogonal by itself, as usual with recurrent units.
                parts = [torch.from_numpy(draw((options.recurrent, weight.shape[1]), 1.0)) for _ in range(3)]
                weight.data.copy_(torch.cat(parts))

    def features(self, x: Tensor) -> Tensor:
        """Return features without memory, (..., width of the last hidden layer); of observations (..., observed)."""
        if self.image:
            picture = x[..., self.vector :].reshape(-1, *self.image)
            for layer in self.convolutions:
                picture = torch.relu(layer(picture))
            x = torch.cat([x[..., : self.vector], picture.reshape(*x.shape[:-1], -1)], -1)
        rows = x.reshape(-1, x.shape[-1])
        for layer in self.layers:
            rows = TanhLayer.apply(rows, layer.weight, layer.bias)
        return rows.reshape(*x.shape[:-1], -1)

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Run one instant: (batch, width), and the memory after it (batch, width)."""
        found = self.features(x)
        if self.cell is None:
            return found, memory
        memory = self.cell(found, memory)
        return memory, memory

    def sequence(self, x: Tensor, memory: Tensor, ended: Tensor) -> tuple[Tensor, Tensor]:
        """Run instants one after the other: (time, batch, width), and the memory behind the last.

        Args:
            x: (time, batch, observed).
            memory: Before the first, (batch, width).
            ended: Where a flight ended with the step behind an instant, so that the next knows nothing of it, (time, batch).
        """
        found = self.features(x)
        if self.cell is None:
            return found, memory
        told, after = GatedSequence.apply(found, memory, ended, *self.cell.parameters())
        return told, after


class ActorCritic(nn.Module):
    """A policy and its critic.

    Args:
        sizes: Numbers of an observation, of what the critic sees, and of an action.
        options: How they are made.
        hover: Actions with which the policy begins, (actions,).
        seed: Of the first weights.
    """

    def __init__(self, sizes: tuple[int, int, int], options: TorchPpoOptions, hover: ArrayFloat, seed: int):
        super().__init__()
        observed, critic_observed, actions = sizes
        self.options = options
        count = 0

        def draw(shape: tuple[int, int], gain: float) -> Array:
            nonlocal count
            count += 1
            return orthogonal(seed, count - 1, shape, gain)

        self.actor = Trunk(observed, options, draw)
        self.mean = _linear(self.actor.width, actions, draw, _LAST_GAIN)
        # Specification, section 10: with thrusts at mid range most flights are over in half a second.
        self.mean.bias.data.copy_(torch.from_numpy(_hover_sums(hover)))
        self.critic = self.actor if options.shared else Trunk(critic_observed, options, draw)
        self.value_layer = _linear(self.critic.width, 1, draw, _VALUE_GAIN)
        if options.deviation == "parameter":
            self.log_std = nn.Parameter(torch.full((actions,), math.log(options.initial_std)))
        else:
            self.log_std_layer = _linear(self.actor.width, actions, draw, _LAST_GAIN)
            low, high = math.log(options.least_std), math.log(options.most_std)
            share = min(max((math.log(options.initial_std) - low) / (high - low), 1.0 - _SAFE), _SAFE)
            self.log_std_layer.bias.data.fill_(math.log(share / (1.0 - share)))

    def ordered_parameters(self) -> list[Tensor]:
        """Return those of the policy, of the critic, and deviations, in the order of `NativePpo.parameters`."""
        found: list[Tensor] = [*self.actor.parameters(), *self.mean.parameters()]
        if not self.options.shared:
            found += self.critic.parameters()
        found += self.value_layer.parameters()
        if self.options.deviation == "parameter":
            return [*found, self.log_std]
        return [*found, *self.log_std_layer.parameters()]

    def policy(self, features: Tensor) -> Gaussian:
        """Return the distribution of actions, of what the policy's trunk makes of observations."""
        o = self.options
        sums = self.mean(features)
        if o.deviation == "parameter":
            log_std: Tensor = self.log_std
        else:
            low, high = math.log(o.least_std), math.log(o.most_std)
            log_std = low + (high - low) * torch.sigmoid(self.log_std_layer(features))
        # The mean is within the bounds of actions either way; noise goes before the tanh, or behind it.
        return Gaussian(sums if o.squash else torch.tanh(sums), log_std, o.squash)

    def value(self, features: Tensor) -> Tensor:
        """Return the value (...,), of what the critic's trunk makes of what it sees."""
        return self.value_layer(features).squeeze(-1)

    def memory(self, count: int, device: torch.device) -> Tensor:
        """Return the memory of new flights, (env, width); without recurrent layers of width 0."""
        return torch.zeros(count, self.options.recurrent, device=device)


def _hover_sums(hover: ArrayFloat) -> Array:
    """Return sums of the last layer whose tanh is an action."""
    return np.asarray(np.arctanh(np.clip(hover, -_SAFE, _SAFE)), float)


def _linear(inputs: int, outputs: int, draw: Draw, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    _set(layer, draw((outputs, inputs), gain))
    return layer


def _set(layer: nn.Module, weight: Array | None) -> None:
    """Set a layer's weight, and all its biases to 0."""
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
        elif weight is not None:
            parameter.data.copy_(torch.from_numpy(weight))
