"""Something opaque among the Gaussians: exact compositing by a depth per pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import selected
from airworthy.splats import SplatRenderer, twin

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
LENS = (50.0, 50.0, 30.5, 20.5)


def test_a_wall_between_two_layers(plain: Any) -> None:
    """Green behind, red in front, both half transparent; a blue wall between them on the left, nothing on the right."""
    splats = plain([[0, 0, 6.0], [0, 0, 3.0]], 5.0, [[0, 1, 0], [1, 0, 0]], [0.8, 0.6])
    limit = np.full((1, 41, 61), np.inf)
    limit[:, :, :30] = 4.0
    image = SplatRenderer(splats).render(61, 41, LENS, np.zeros((1, 3)), AHEAD, limit=limit)
    rgb = image["rgb"] + (1.0 - image["alpha"])[..., None] * np.where(np.isinf(limit), 0.0, 1.0)[..., None] * (0.0, 0.0, 1.0)
    np.testing.assert_allclose(rgb[0, 20, 27], [0.6, 0.0, 0.4], atol=2e-3)  # 5 m wide: 3 columns from the middle
    np.testing.assert_allclose(rgb[0, 20, 33], [0.6, 0.32, 0.0], atol=2e-3)
    np.testing.assert_allclose(image["alpha"][0, 20, [27, 33]], [0.6, 0.92], atol=2e-3)
    np.testing.assert_allclose(image["depth"][0, 20, 27], 3.0, atol=1e-4)


@pytest.mark.parametrize("mode", ["expected", "median"])
@pytest.mark.parametrize("seed", range(4))
def test_random_limits_equal_the_twin(seed: int, mode: str, cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(seed)
    splats, view = cloud(rng, 500, seed), pose(rng)
    camera = (view.width, view.height, view.lens)
    limit = np.where(rng.uniform(size=(view.height, view.width)) < 0.2, np.inf, rng.uniform(-1, 6, (view.height, view.width)))
    channels = ("rgb", "depth", "alpha") if seed % 2 else ("rgb", "alpha")
    ours = SplatRenderer(splats).render(
        *camera, view.position[None], view.attitude[None], limit=limit[None], depth_mode=mode, channels=channels
    )
    theirs = twin.render(splats, *camera, view.position, view.attitude, limit=limit, depth_mode=mode)
    assert np.abs(ours["rgb"][0] - theirs["rgb"]).mean() <= 1e-5
    assert np.abs(ours["alpha"][0] - theirs["alpha"]).mean() <= 1e-5
    if "depth" in channels:
        assert (np.isfinite(ours["depth"][0]) != np.isfinite(theirs["depth"])).mean() <= 1e-3


def test_one_depth_for_all_leaves_out_what_is_beyond_it(cloud: Any) -> None:
    """The bytes of the cloud without the Gaussians whose means lie beyond."""
    rng = np.random.default_rng(5)
    splats = cloud(rng, 800, 1)
    camera = (70, 50, (60.0, 60.0, 35.0, 25.0), np.zeros((1, 3)), AHEAD)
    limited = SplatRenderer(splats).render(*camera, limit=np.full((1, 50, 70), 1.5))
    near = SplatRenderer(selected(splats, splats.position[:, 2] <= np.float32(1.5))).render(*camera)
    for name, image in near.items():
        np.testing.assert_allclose(limited[name], image, atol=1e-6)


def test_no_limit_and_one_behind_everything_are_the_same(cloud: Any) -> None:
    rng = np.random.default_rng(6)
    renderer = SplatRenderer(cloud(rng, 500, 2))
    camera = (65, 45, (50.0, 50.0, 30.0, 20.0), rng.uniform(-1, 1, (2, 3)), rng.normal(size=(2, 4)))
    free = renderer.render(*camera)
    for limit in (np.inf, 1e6):
        for name, image in renderer.render(*camera, limit=np.full((2, 45, 65), limit, np.float32)).items():
            assert image.tobytes() == free[name].tobytes()
    nothing = renderer.render(*camera, limit=np.zeros((2, 45, 65)))
    assert not nothing["alpha"].any()
    assert np.isinf(nothing["depth"]).all()


@pytest.mark.parametrize("limit", [np.zeros((1, 5, 6)), np.zeros((6, 5)), np.full((1, 6, 5), np.nan), np.zeros((1, 6, 5), int)])
def test_mistakes(limit: Any, plain: Any) -> None:
    with pytest.raises(AirworthyError, match="`limit` is of"):
        SplatRenderer(plain([0, 0, 3.0], 0.1, 0.5, 0.5)).render(5, 6, LENS, np.zeros((1, 3)), AHEAD, limit=limit)
