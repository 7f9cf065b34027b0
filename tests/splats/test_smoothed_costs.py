"""Costs along lines of an image: the same from either end and along either axis."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.splats.training.plane_sweep import _smoothed


@pytest.mark.parametrize("axis", [0, 1])
def test_a_mirrored_image_has_mirrored_costs(axis: int) -> None:
    cost = np.random.default_rng(0).random((6, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(np.flip(_smoothed(np.flip(cost, axis)), axis), _smoothed(cost), rtol=1e-5)
    np.testing.assert_allclose(_smoothed(cost.swapaxes(0, 1)).swapaxes(0, 1), _smoothed(cost), rtol=1e-5)


def test_equal_costs_are_charged_once_per_path_and_pixel() -> None:
    """Where every depth costs 1 each of the four paths adds 1 at every pixel: changes of depth are never worth it."""
    np.testing.assert_array_equal(_smoothed(np.ones((3, 4, 5), np.float32)), np.full((3, 4, 5), 4.0, np.float32))
