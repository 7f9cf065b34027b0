"""The Deep Collision Encoder: from a depth image to a few numbers, from which the *collision* image can be made again.

A pixel of a collision image is how far a body of the vehicle's size could go along its ray. Specification aerial_gym, 9.2,
after Kulkarni and Alexis; the structure is the published one at 36 x 64 pixels instead of 270 x 480, with half its channels, as
the specification (learning by reward, 7.0) asks for on a CPU. Strides are kept but for the last, which would leave one cell.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from airworthy.core.arrays import Array, ArrayF32
from airworthy.learning.navigation.sight import CAMERA, Rays
from airworthy.pilots.navigation_policy.encoder import CELLS_LEFT, HIDDEN, EncoderContract, read_encoder_folder
from airworthy.pilots.navigation_policy.sight import depth_image

__all__ = ["CollisionDecoder", "CollisionEncoder", "LatentEye", "read_encoder"]

_FIRST = (5, 8)
"""Rows and columns with which the decoder begins."""
_CHUNK = 64
"""Images at once, so that layers stay in a core's cache; always as many: a flight's latent does not depend on the batch."""


class CollisionEncoder(nn.Module):
    """Depth images (n, 1, 36, 64), over reach and -1 where invalid, to mean and log-variance (n, latent) each."""

    def __init__(self, channels: int, latent: int):
        super().__init__()
        c = channels
        self.conv0, self.conv0_1 = nn.Conv2d(1, c, 5, 2, 2), nn.Conv2d(c, c, 3, 2, 1)
        self.conv1_0, self.conv1_1 = nn.Conv2d(c, c, 5, 2, 2), nn.Conv2d(c, 2 * c, 3, 1, 1)
        self.skip1 = nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.conv2_0, self.conv2_1 = nn.Conv2d(2 * c, 2 * c, 5, 2, 2), nn.Conv2d(2 * c, 4 * c, 3, 2, 1)
        self.skip2 = nn.Conv2d(2 * c, 4 * c, 5, 4, 2)
        self.conv3 = nn.Conv2d(4 * c, 4 * c, 5, 1, 2)
        self.wide = nn.Linear(4 * c * CELLS_LEFT[0] * CELLS_LEFT[1], HIDDEN)
        self.latent = nn.Linear(HIDDEN, 2 * latent)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance."""
        x0 = F.elu(self.conv0_1(self.conv0(image)))
        x1 = F.elu(self.conv1_1(self.conv1_0(x0)) + self.skip1(x0))
        x2 = F.elu(self.conv2_1(self.conv2_0(x1)) + self.skip2(x1))
        found: Tensor = self.latent(F.elu(self.wide(F.elu(self.conv3(x2)).flatten(1))))
        mean, log_variance = found.chunk(2, 1)
        return mean, log_variance


class CollisionDecoder(nn.Module):
    """Latent (n, latent) to collision images (n, 1, 36, 64), over reach."""

    def __init__(self, channels: int, latent: int):
        super().__init__()
        c = channels
        self.wide, self.first = nn.Linear(latent, HIDDEN), nn.Linear(HIDDEN, 4 * c * _FIRST[0] * _FIRST[1])
        self.up0 = nn.ConvTranspose2d(4 * c, 4 * c, 3, 1, 1)
        self.up1 = nn.ConvTranspose2d(4 * c, 2 * c, 5, 2, 2, output_padding=(0, 1))
        self.up2 = nn.ConvTranspose2d(2 * c, c, 4, 2, 1)
        self.up3 = nn.ConvTranspose2d(c, 1, 4, 2, 1)

    def forward(self, latent: Tensor) -> Tensor:
        """Return images."""
        x = F.relu(self.first(F.relu(self.wide(latent))))
        x = F.relu(self.up0(x.unflatten(1, (-1, *_FIRST))))
        found: Tensor = torch.sigmoid(self.up3(F.relu(self.up2(F.relu(self.up1(x))))))
        return found


class LatentEye:
    """Eye of a policy that reads an encoder's latent: its mean, so that a flight is the same in any batch.

    Args:
        encoder: Learnt.
        rays: Of the camera.
    """

    uniforms = 0

    def __init__(self, encoder: CollisionEncoder, rays: Rays = CAMERA):
        self.encoder, self.rays = encoder.eval(), rays
        self.numbers = encoder.latent.out_features // 2
        self._batch = torch.zeros(_CHUNK, 1, *rays.shape)

    @torch.no_grad()
    def see(self, distance: ArrayF32, uniforms: Array | None = None) -> ArrayF32:
        """Return latents, (n, numbers).

        Args:
            distance: (n, 36, 64) [m].
            uniforms: Not taken.
        """
        found = np.zeros((len(distance), self.numbers), np.float32)
        for k in range(0, len(distance), _CHUNK):
            part = distance[k : k + _CHUNK]
            # A batch that is not full has old images behind its own: sums come in one order whatever the batch.
            self._batch[: len(part), 0] = torch.from_numpy(depth_image(part, self.rays.reach))
            found[k : k + len(part)] = self.encoder(self._batch)[0][: len(part)].numpy()
        return found


def read_encoder(folder: str | Path) -> tuple[EncoderContract, CollisionEncoder, str]:
    """Return contract, encoder and the digest of its weights.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, tensors, digest = read_encoder_folder(folder)
    encoder = CollisionEncoder(contract.channels, contract.latent)
    encoder.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in tensors.items()})
    return contract, encoder, digest
