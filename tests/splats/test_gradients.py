"""Derivatives against those of the float64 twin (by complex steps, exact to its precision) and differences of images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.splats.gradient_cases import FIELDS, LENS, SIZE, assert_as_the_twin, in_view, weights

from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import merged
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer
from airworthy.splats.cameras import RenderRequest, camera_view, gradient_request
from airworthy.splats.lanes import Slopes


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_equal_those_of_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    degree = seed % 4
    splats, weight = in_view(rng, 12, degree), weights(rng, 1)
    options: dict[str, Any] = {"antialiased": bool(seed & 4), "background": rng.uniform(size=3)}
    position, attitude = 0.2 * rng.normal(size=3), np.array([0.05, -0.03, 0.1, 1.0])
    attitude /= np.linalg.norm(attitude)
    found = assert_as_the_twin(splats, position, attitude, weight, options)
    assert set(np.unique(found.image_count)) <= {0.0, 1.0}


def test_derivatives_predict_the_change_of_the_loss() -> None:
    """Finite differences of the renderer's own images, several cameras and scenes, along the gradient itself."""
    rng = np.random.default_rng(20)
    scenes = [in_view(rng, 40, 1), in_view(rng, 700, 0)]
    weight = weights(rng, 3)
    weight.pop("depth")
    weight = {name: np.abs(value) for name, value in weight.items()}  # or the differences drown in what crosses 1/255
    camera = (*SIZE, LENS, 0.2 * rng.normal(size=(3, 3)), np.array([0.0, 0.0, 0.0, 1.0]), [0, 1, 1])
    renderer = SplatRenderer(scenes)
    found, _ = renderer.gradients(lambda images, some: {name: value[some] for name, value in weight.items()}, *camera)

    def loss(step: float, name: str) -> float:
        moved = []
        for splats, slope in zip(scenes, found, strict=True):
            direction = getattr(slope, name) / np.linalg.norm(getattr(slope, name))
            fields = {field: getattr(splats, field) for field in FIELDS}
            moved.append(Splats(**{**fields, name: fields[name] + np.float32(step) * direction}))
        renderer.replace(moved)
        images = renderer.render(*camera)
        return float(sum(np.sum(images[k].astype(float) * value) for k, value in weight.items()))

    for name, step in (("position", 2e-2), ("scale", 5e-3), ("opacity", 2e-2), ("harmonics", 5e-2)):
        expected = sum(float(np.linalg.norm(getattr(slope, name))) for slope in found)
        # Differences cross pixels' 1/255 and are not infinitely small: 5 %.
        np.testing.assert_allclose((loss(step, name) - loss(-step, name)) / (2.0 * step), expected, rtol=0.05, err_msg=name)


def test_derivatives_are_equal_bits_whatever_threads_and_groups() -> None:
    rng = np.random.default_rng(4)
    scenes, weight = [in_view(rng, 900, 2), in_view(rng, 300, 0)], weights(rng, 5)
    camera = (*SIZE, LENS, 0.2 * rng.normal(size=(5, 3)), np.array([0.0, 0.0, 0.0, 1.0]), [0, 1, 0, 0, 1])
    results = []
    for threads, group in ((1, 99), (3, 8), (2, 1)):
        renderer = SplatRenderer(scenes, threads=threads)
        renderer._group = group
        for _ in range(4):  # threads take part only from the third launch on
            found, poses = renderer.gradients(lambda images, some: {k: v[some] for k, v in weight.items()}, *camera)
        arrays = [getattr(g, name) for g in found for name in (*FIELDS, "image_shift", "image_count")] + [
            poses.position,
            poses.rotation,
        ]
        results.append([array.tobytes() for array in arrays])
    assert results[0] == results[1] == results[2]


def test_a_wrong_colour_is_learned(plain: Any) -> None:
    """Steps against the gradient take one Gaussian's colour and place to those of an image."""
    target = SplatRenderer(plain([0.1, 0.05, 3.0], 0.4, [0.9, 0.3, 0.1], 0.9))
    camera = (*SIZE, LENS, np.zeros((1, 3)), np.array([0.0, 0.0, 0.0, 1.0]))
    wanted = target.render(*camera)["rgb"]
    splats = plain([0.0, 0.0, 3.0], 0.4, 0.5, 0.9)
    renderer = SplatRenderer(splats)
    errors = []
    for _ in range(60):

        def loss(images: dict[str, Any], some: slice) -> dict[str, Any]:
            errors.append(float(np.sum((images["rgb"] - wanted) ** 2)))
            return {"rgb": 2.0 * (images["rgb"] - wanted)}

        ((slope,), _) = renderer.gradients(loss, *camera)
        splats = Splats(
            splats.position - 1e-3 * slope.position, splats.rotation, splats.scale, splats.opacity,
            splats.harmonics - 0.05 * slope.harmonics,
        )  # fmt: skip
        renderer.replace(splats)
    assert errors[-1] < 0.01 * errors[0]


def test_chunks_that_no_camera_sees_are_not_touched() -> None:
    """Nothing is written there, and forgetting leaves nothing behind."""
    rng = np.random.default_rng(30)
    visible, hidden = in_view(rng, 1500, 2), in_view(rng, 2000, 2)
    splats = merged([visible, replace(hidden, position=hidden.position * [1.0, 1.0, -1.0])])
    renderer = SplatRenderer([splats, in_view(rng, 600, 1)])
    pose = np.zeros((1, 3)), [0.0, 0.0, 0.0, 1.0]
    asked = camera_view(renderer._spans, RenderRequest(*SIZE, LENS, *pose, [0], 0.0 * np.ones(3), channels=("rgb",)))
    images = {"rgb": np.empty((1, SIZE[1], SIZE[0], 3), np.float32)}
    renderer._engine.render(asked, images)
    slopes = Slopes(renderer._cloud)
    slopes.add(renderer._engine, asked, images, {"rgb": np.ones_like(images["rgb"])})
    chunks = slopes.gaussians.reshape(len(slopes.touched), -1)
    assert 3 <= slopes.touched.sum() <= 5 < len(slopes.touched)
    assert not slopes.touched[7:].any()  # the other scene
    np.testing.assert_array_equal(chunks.any(axis=1), slopes.touched)
    slopes.clear()
    assert not slopes.gaussians.any()
    assert not slopes.harmonics.any()
    assert not slopes.touched.any()


def test_a_loss_may_not_change_the_images(plain: Any) -> None:
    renderer = SplatRenderer(plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5))

    def loss(images: dict[str, Any], some: slice) -> dict[str, Any]:
        images["rgb"] -= 0.5
        return images

    with pytest.raises(ValueError, match="read-only"):
        renderer.gradients(loss, *SIZE, LENS, np.zeros((1, 3)), np.array([0.0, 0.0, 0.0, 1.0]))


def test_answers_of_a_loss_that_do_not_fit(plain: Any) -> None:
    renderer = SplatRenderer(plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5))
    camera = (*SIZE, LENS, np.zeros((1, 3)), np.array([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(AirworthyError, match="derivatives of alpha of shape"):
        renderer.gradients(lambda images, some: {"alpha": np.zeros(3)}, *camera)
    with pytest.raises(AirworthyError, match="color"):
        renderer.gradients(lambda images, some: {"color": images["rgb"]}, *camera)
    (nothing,), poses = renderer.gradients(lambda images, some: {}, *camera)
    assert not nothing.position.any()
    assert not poses.position.any()
    with pytest.raises(AirworthyError, match="replace 1"):
        renderer.replace([])


def test_gradients_refuse_what_they_cannot_differentiate() -> None:
    camera = (8, 8, (8.0, 8.0, 4.0, 4.0), np.zeros((1, 3)), np.array([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(TypeError, match="depth_mode"):
        gradient_request(*camera, depth_mode="median")
    with pytest.raises(TypeError, match="nine positional"):
        gradient_request(*camera, None, (0.0, 0.0, 0.0), False, 0.05, 0.3)
    assert gradient_request(*camera, dilation=0.4).dilation == 0.4
