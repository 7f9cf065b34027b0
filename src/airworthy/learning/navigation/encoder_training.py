"""Learns a Deep Collision Encoder from images of rooms that are drawn as it goes, and judges it in rooms it has not seen."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.environments.rooms import WALLS, RoomForm
from airworthy.learning.environments.start import euler_quaternion
from airworthy.learning.machine import ModelState
from airworthy.learning.navigation.encoder import CollisionDecoder, CollisionEncoder
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.sight import CAMERA, POSE_NUMBERS, RoomSight
from airworthy.learning.navigation.tasks import DepthNavigation
from airworthy.pilots.navigation_policy.encoder import EncoderContract
from airworthy.pilots.navigation_policy.sight import INVALID, NEAREST, depth_image

__all__ = ["UNSEEN_SEED", "EncoderTraining", "draw_poses", "image_pairs"]

UNSEEN_SEED = 7919
"""Of rooms in which nothing is learnt (specification, learning by reward, section 8)."""
_JUDGED = 2000
"""Images of a judgement; ours."""
_TILT = math.radians(15.0)
"""Most roll and pitch of a pose [rad]; ours."""
_DROPPED, _NOISE = 0.01, 0.01
"""Share of pixels without a return, and relative deviation of depth: those of the published camera (sensors.json)."""
_GRADIENT_NORM = 1.0
"""Ours, as usual: one image with something close does not outweigh a minibatch."""
# Source: specification aerial_gym, 9.2, Deep Collision Encoder: images of 270 x 480, over which beta is normalised.
_PUBLISHED_PIXELS = 270 * 480


def draw_poses(form: RoomForm, count: int, rng: np.random.Generator) -> ArrayF32:
    """Return poses of cameras in rooms of any level, (count, `POSE_NUMBERS`): anywhere, more often heading along the room.

    Args:
        form: Of the rooms.
        count: How many.
        rng: Of all that is drawn.
    """
    # Of any number of things, as flights of all levels will see them.
    place = np.stack(np.broadcast_arrays(*form.place(tuple(rng.random((16, count))), rng.uniform(WALLS, 50.0, count))))
    # Not in the walls: nothing can be learnt from the back of one.
    shares = rng.uniform(0.05, 0.95, (3, count))
    position = place[3:6] + shares * (place[6:9] - place[3:6])
    roll, pitch = rng.uniform(-_TILT, _TILT, (2, count))
    # Half look along the room, within a radian, as vehicles do that fly through it.
    yaw = np.where(rng.random(count) < 0.5, rng.uniform(-np.pi, np.pi, count), rng.uniform(-1.0, 1.0, count))
    attitude = list(euler_quaternion(roll, pitch, yaw))
    mount = np.stack([rng.uniform(low, high, count) for low, high in zip(*DepthNavigation.mount, strict=True)])
    found = np.concatenate([position, np.stack(attitude), mount, place]).T.astype(np.float32)
    assert found.shape == (count, POSE_NUMBERS)
    return found


def image_pairs(sight: RoomSight, poses: ArrayF32, radius: float) -> tuple[ArrayF32, ArrayF32]:
    """Return depth images, over reach and -1 where invalid, and collision images, over reach: (n, 36, 64) each.

    Args:
        sight: Of the rooms.
        poses: (n, `POSE_NUMBERS`).
        radius: By which obstacles are grown [m].
    """
    depth = depth_image(sight.look(poses))
    return depth, sight.look(poses, radius) / np.float32(CAMERA.reach)


class EncoderTraining:
    """A training under way; the same options give the same bits on the same machine.

    Args:
        options: What to learn, and how.
        threads: Most threads of the images' kernel; the numbers are the same.
    """

    def __init__(self, options: EncoderOptions, threads: int | None = None):
        self.options, self.iteration, self._threads = options, 0, threads
        torch.manual_seed(options.seed % (1 << 63))
        self.net = nn.ModuleDict(
            {
                "encoder": CollisionEncoder(options.channels, options.latent),
                "decoder": CollisionDecoder(options.channels, options.latent),
            }
        )
        self._adam = torch.optim.Adam(self.net.parameters(), options.learning_rate)
        self._state = ModelState(self.net, torch.device("cpu"))
        self._form = RoomForm(seed=options.seed)
        self._sight = RoomSight(self._form, CAMERA, options.batch, threads)
        self.parts: dict[str, float] = {}
        """Of the last step's loss, before their weights."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    def step(self) -> float:
        """Learn from images that are drawn anew; returns the loss."""
        o = self.options
        # Of this iteration: what is drawn depends on nothing that was drawn before it.
        rng = np.random.default_rng([o.seed, self.iteration, 1])
        depth, wanted = image_pairs(self._sight, draw_poses(self._form, o.batch, rng), o.radius)
        # Noise grows with depth; pixels without a return stay what they are.
        noisy = np.where(depth < 0.0, depth, depth * (1.0 + _NOISE * rng.normal(size=depth.shape)))
        noisy = np.where(rng.random(depth.shape) < _DROPPED, INVALID, noisy).astype(np.float32)
        # Half of the images are made again from the mean, which is what flights read: a decoder that has known nothing but
        # noise makes twice the squared error of it.
        drawn = rng.normal(size=(o.batch, o.latent)) * (rng.random((o.batch, 1)) < 0.5)
        noise = torch.from_numpy(drawn.astype(np.float32))
        # Ours, since the published encoder's learning is not known (specification aerial_gym, 9.2): by a cosine to a fiftieth.
        fall = 0.5 * (1.0 + math.cos(math.pi * self.iteration / o.iterations))
        for group in self._adam.param_groups:
            group["lr"] = o.learning_rate * (0.02 + 0.98 * fall)
        loss = self._loss(torch.from_numpy(noisy), torch.from_numpy(wanted), torch.from_numpy(depth >= 0.0), noise)
        self._adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), _GRADIENT_NORM)
        self._adam.step()
        self.iteration += 1
        return float(loss.detach())

    def _loss(self, image: Tensor, wanted: Tensor, valid: Tensor, noise: Tensor) -> Tensor:
        o = self.options
        mean, log_variance = self.net["encoder"](image[:, None])
        # Before exp: an encoder that begins far off must not make infinities of it.
        log_variance = log_variance.clamp(-10.0, 10.0)
        made = self.net["decoder"](mean + noise * torch.exp(0.5 * log_variance))[:, 0]
        # Only where there is a return: what lies beyond the camera's reach nobody can know.
        error = ((made - wanted).square() * valid).sum() / valid.sum()
        # To a standard normal distribution in closed form (Kingma and Welling 2014, appendix B).
        divergence = -0.5 * (1.0 + log_variance - mean.square() - log_variance.exp()).mean()
        self.parts = {"squared_error": float(error.detach()), "divergence": float(divergence.detach())}
        # The published weight as a number: beta times latent over pixels of the published image.
        return error + o.beta * o.latent / _PUBLISHED_PIXELS * divergence

    @torch.no_grad()
    def judged(self) -> dict[str, float]:
        """Return errors of what is made again of images of unseen rooms, where the camera sees, beside two that learn
        nothing."""
        o = self.options
        form = replace(self._form, seed=UNSEEN_SEED)
        sight = RoomSight(form, CAMERA, _JUDGED, self._threads)
        poses = draw_poses(form, _JUDGED, np.random.default_rng([UNSEEN_SEED, 2]))
        depth, wanted = image_pairs(sight, poses, o.radius)
        parts = [self.net["encoder"](x[:, None])[0] for x in torch.from_numpy(depth).split(256)]
        made = np.concatenate([self.net["decoder"](x)[:, 0].numpy() for x in parts])
        valid = depth >= 0.0
        # The best image that knows nothing of its input: a yardstick for what is read from it.
        mean = np.where(valid, wanted, 0.0).sum(0) / np.maximum(valid.sum(0), 1)
        found: dict[str, float] = {"images": _JUDGED, "valid_percent": 100.0 * float(valid.mean())}
        for name, image in (("", made), ("mean_image_", np.broadcast_to(mean, wanted.shape)), ("depth_image_", depth)):
            error = CAMERA.reach * (image - wanted)[valid]
            found[f"{name}rmse_m"] = float(np.sqrt(np.square(error, dtype=float).mean()))
            found[f"{name}mean_error_m"] = float(np.abs(error).mean(dtype=float))
        near = valid & (wanted * CAMERA.reach < _NEAR)
        error = CAMERA.reach * (made - wanted)[near]
        # Of what is near, which is what flights run into.
        found[f"within_{_NEAR:g}_m_mean_error_m"] = float(np.abs(error).mean(dtype=float))
        found["said_free_percent"] = 100.0 * float((error > _NEAR - NEAREST).mean())
        return found

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last step."""
        return {"cost": cost, **self.parts}

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the encoder as it is."""
        head = "encoder."
        return {name.removeprefix(head): x for name, x in self._state.weights("last").items() if name.startswith(head)}

    @property
    def contract(self) -> EncoderContract:
        """What it learnt from, and how far it came."""
        o = self.options
        told = {"iterations": self.iteration, "images": self.iteration * o.batch, "options": asdict(o)}
        return EncoderContract(o.channels, o.latent, o.radius, told)

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        return Checkpoint(self.iteration, self._state.arrays(dict(self.net.named_parameters()), self._adam), {})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self._state.restore(checkpoint.arrays)
        self._state.restore_moments(checkpoint.arrays, dict(self.net.named_parameters()), self._adam)
        self.iteration = checkpoint.number


_NEAR = 2.0
"""Ours: what a second of flight at the task's largest speed reaches [m]."""
