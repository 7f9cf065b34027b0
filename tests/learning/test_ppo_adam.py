"""Adam of PPO in torch, against the equations of Kingma & Ba 2015 (section 2, its last form) by hand, and across a stop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airworthy.learning.native_ppo.shared import BETA1, BETA2, EPSILON

torch = pytest.importorskip("torch")


def test_steps_are_those_of_the_equations_and_go_on_after_a_stop() -> None:
    from airworthy.learning.ppo.adam import Adam

    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=4).astype(np.float32)]
    gradients = rng.normal(size=(5, 10))
    parameters = [torch.tensor(x.copy()) for x in start]
    adam = Adam(parameters)
    flat = np.concatenate([x.ravel() for x in start]).astype(np.float64)
    first, second, rate = np.zeros(10), np.zeros(10), 1e-2
    other = [torch.tensor(x.copy()) for x in start]
    for number, gradient in enumerate(gradients, 1):
        first = BETA1 * first + (1.0 - BETA1) * gradient
        second = BETA2 * second + (1.0 - BETA2) * gradient**2
        flat = flat - rate * math.sqrt(1.0 - BETA2**number) / (1.0 - BETA1**number) * first / (np.sqrt(second) + EPSILON)
        adam.step(torch.from_numpy(gradient), rate)
        # Views of one row: the parameters that were given have moved.
        assert np.concatenate([x.numpy().ravel() for x in parameters]) == pytest.approx(flat, abs=1e-6)
        if number == 1:
            # The first step is the rate along the gradient's sign, whatever its size but for epsilon's share.
            assert np.abs(flat - np.concatenate([x.ravel() for x in start])) == pytest.approx(rate, rel=1e-2)
        if number == 3:
            saved, later = adam.saved(), Adam(other)
            later.restore(saved, 3)
        if number > 3:
            later.step(torch.from_numpy(gradient), rate)
    assert np.array_equal(later.flat.numpy(), adam.flat.numpy())
