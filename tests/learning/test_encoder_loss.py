"""What a Deep Collision Encoder learns from: its loss by values of NumPy, over the pixels that the camera sees."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.learning.environments.rooms import RoomForm
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.sight import CAMERA, RoomSight

pytest.importorskip("torch")
import torch

from airworthy.learning.navigation.encoder_training import EncoderTraining, draw_poses, image_pairs

OPTIONS = EncoderOptions(seed=4, iterations=3, batch=48, channels=2, latent=6, beta=200.0)


def test_the_loss_of_a_step_is_the_published_one_where_the_camera_sees() -> None:
    """Of what the network itself made in the step: squared error over pixels with a return, and torch's own divergence."""
    training, made = EncoderTraining(OPTIONS), {}
    for name in ("encoder", "decoder"):
        training.net[name].register_forward_hook(lambda net, given, found, name=name: made.update({name: found}))
    with torch.no_grad():
        # A latent that is far from standard normal: mean and variance each count.
        training.net["encoder"].latent.bias += torch.linspace(-1.5, 1.5, 2 * OPTIONS.latent)
    loss = training.step()
    # The same images once more: the first iteration's are drawn from (seed, 0, 1).
    sight, rng = RoomSight(RoomForm(seed=OPTIONS.seed), CAMERA, OPTIONS.batch), np.random.default_rng([OPTIONS.seed, 0, 1])
    depth, wanted = image_pairs(sight, draw_poses(RoomForm(seed=OPTIONS.seed), OPTIONS.batch, rng), OPTIONS.radius)
    seen = depth != -1.0
    assert 0.001 < 1.0 - seen.mean() < 0.5
    image = made["decoder"].detach().numpy()[:, 0].astype(float)
    error = np.square(image - wanted)[seen].mean()
    assert abs(np.square(image - wanted).mean() / error - 1.0) > 1e-3
    assert training.parts["squared_error"] == pytest.approx(error, rel=1e-5)
    mean, log_variance = (x.detach().double() for x in made["encoder"])
    latent = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    divergence = float(torch.distributions.kl_divergence(latent, torch.distributions.Normal(0.0, 1.0)).mean())
    assert float(mean.square().mean()) > 0.1
    assert training.parts["divergence"] == pytest.approx(divergence, rel=1e-5)
    # Specification aerial_gym, 9.2: beta times latent over the pixels of the published image.
    assert loss == pytest.approx(error + 200.0 * 6 / (270 * 480) * divergence, rel=1e-5)
