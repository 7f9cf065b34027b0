"""The trunk of SqueezeNet 1.1 in torch, and what tells depth, poses and points by its features while it learns."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.core.arrays import ArrayF32
from airworthy.learning.backbone.pictures import SUBCELLS
from airworthy.pilots.svnet.variants import FIRES, POOLS

__all__ = ["CHANNELS", "BackboneTrunk", "DepthHead", "PlaceSolver"]

CHANNELS = 512
"""Of what the trunk gives."""
_EXPANSIONS = ("expand1x1", "expand3x3")
_SQUEEZED = 64
"""Channels of a cell to which a place's maps are fitted; ours: as many as heads keep that are learnt on frozen features."""


class BackboneTrunk(nn.Module):
    """Images to features, every convolution before batch normalisation, which `folded` puts into the convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleDict({"0": _convolution(3, 64, 3, stride=2)})
        self.norms = nn.ModuleDict({"0": nn.BatchNorm2d(64)})
        for number, (given, squeezed, expanded) in FIRES.items():
            self.convolutions[f"{number}_squeeze"] = _convolution(given, squeezed, 1)
            self.convolutions[f"{number}_expand1x1"] = _convolution(squeezed, expanded, 1)
            self.convolutions[f"{number}_expand3x3"] = _convolution(squeezed, expanded, 3, padding=1)
            self.norms[f"{number}_squeeze"] = nn.BatchNorm2d(squeezed)
            # Of both expansions: of parts of an array the derivative would be taken in a third of the speed.
            self.norms[f"{number}_expand"] = nn.BatchNorm2d(2 * expanded)
        self._order = tuple(sorted((*FIRES, *POOLS), key=int))

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, 3, H, W) -> (n, 512, h, w)"""
        x = functional.relu(self.norms["0"](self.convolutions["0"](images)), inplace=True)
        for number in self._order:
            x = functional.max_pool2d(x, 3, 2, ceil_mode=True) if number in POOLS else self._fire(x, number)
        return x

    def _fire(self, x: Tensor, number: str) -> Tensor:
        squeezed = self.norms[f"{number}_squeeze"](self.convolutions[f"{number}_squeeze"](x))
        x = functional.relu(squeezed, inplace=True)
        parts = [self.convolutions[f"{number}_{part}"](x) for part in _EXPANSIONS]
        return functional.relu(self.norms[f"{number}_expand"](torch.cat(parts, dim=1)), inplace=True)

    @torch.no_grad()
    def folded(self) -> dict[str, ArrayF32]:
        """Return tensors by torchvision's names: convolutions that do what they and their normalisations do."""
        found: dict[str, ArrayF32] = {}
        for key, norm in self.norms.items():
            scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            offset = norm.bias - norm.running_mean * scale
            names = [f"{key.removesuffix('expand')}{part}" for part in _EXPANSIONS] if key.endswith("expand") else [key]
            for name, own, rest in zip(names, scale.chunk(len(names)), offset.chunk(len(names)), strict=True):
                weight, torchvision = self.convolutions[name].weight, f"features.{name.replace('_', '.')}"
                found[f"{torchvision}.weight"] = (weight * own.view(-1, 1, 1, 1)).contiguous().numpy().copy()
                found[f"{torchvision}.bias"] = rest.numpy().copy()
        return found


def _convolution(given: int, out: int, side: int, **more: int) -> nn.Conv2d:
    conv = nn.Conv2d(given, out, side, bias=False, **more)
    # As SqueezeNet's own class (He et al., 2015).
    nn.init.kaiming_uniform_(conv.weight, nonlinearity="relu")
    return conv


class PlaceSolver(nn.Module):
    """Pose of the camera and point of each cell, by linear maps of a place's own, fitted to some images of it in closed form.

    How features become what is fitted, and how much is known beforehand (that maps are small), is learnt for all places.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pose, self.point = nn.Conv2d(CHANNELS, _SQUEEZED, 1), nn.Conv2d(CHANNELS, _SQUEEZED, 1)
        self.smallness = nn.Parameter(torch.zeros(2))

    def pose_errors(self, features: Tensor, pose: Tensor) -> Tensor:
        """Return errors (p, k, 7) of each image's pose by the map that is fitted to all others of its place.

        Args:
            features: (p, k, 512, 6, 6) of k images of each of p places.
            pose: (p, k, 7)
        """
        held = functional.relu(self.pose(features.flatten(0, 1))).flatten(1).unflatten(0, features.shape[:2])
        held = held - held.mean(dim=1, keepdim=True)
        gram = held @ held.mT
        gram = gram / _mean_diagonal(gram)
        count = gram.shape[1]
        # The ones stand for a constant, whose size costs next to nothing. Leaving one out in closed form: Allen (1974).
        inverse = torch.linalg.inv(gram + 1.0 + 0.1 * self.smallness[0].exp() * torch.eye(count))
        return (inverse @ pose) / inverse.diagonal(dim1=1, dim2=2)[..., None]

    def point_errors(self, features: Tensor, points: Tensor, valid: Tensor) -> Tensor:
        """Return errors (p, k, 6, 6, 3) of what cells show, by the map that is fitted to the other half of its place's images.

        Args:
            features: (p, k, 512, 6, 6); k is even.
            points: (p, k, 6, 6, 3)
            valid: (p, k, 6, 6, 1) whether a cell shows anything.
        """
        held = functional.relu(self.point(features.flatten(0, 1))).permute(0, 2, 3, 1).unflatten(0, features.shape[:2])
        held = torch.cat([held, torch.ones_like(held[..., :1])], dim=-1)
        halves = [x.chunk(2, dim=1) for x in (held, points, valid)]
        found = []
        for one, other in ((0, 1), (1, 0)):
            a, y, known = (x[one].flatten(1, 3) for x in halves)
            weighed = a * known
            gram = weighed.mT @ a
            size = _mean_diagonal(gram)
            fixed = gram / size + 1e-3 * self.smallness[1].exp() * torch.eye(gram.shape[1])
            found.append(halves[0][other].flatten(1, 3) @ torch.linalg.solve(fixed, weighed.mT @ y / size))
        made = torch.cat(found[::-1], dim=1).reshape(points.shape)
        return made - points


def _mean_diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2).mean(dim=1)[:, None, None] + 1e-6


class DepthHead(nn.Module):
    """Features to logarithms of depth, (n, 12, 12)."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Conv2d(CHANNELS, 64, 1), nn.Conv2d(64, SUBCELLS**2, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, 512, 6, 6) -> (n, 12, 12)"""
        out: Tensor = functional.pixel_shuffle(self.out(functional.relu(self.hidden(features))), SUBCELLS)
        return out[:, 0]
