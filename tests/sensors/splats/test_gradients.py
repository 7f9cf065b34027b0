"""Derivatives against those of the float64 twin (by complex steps, exact to its precision) and differences of images."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats import SplatRenderer, twin

FIELDS = ("position", "rotation", "scale", "opacity", "harmonics")
SIZE = (26, 21)
LENS = np.array([20.0, 22.0, 12.0, 11.0])
STEP = 1e-30
"""Of a complex step: the derivative is the imaginary part over it, with nothing cancelled."""


def in_view(rng: np.random.Generator, count: int, degree: int) -> Splats:
    """Gaussians before a camera near the origin, some beyond the image's edges."""
    rotation = rng.normal(size=(count, 4))
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    scale = np.exp(rng.normal(-1.5, 0.6, (count, 3)))
    where = rng.uniform([-2.5, -2.0, 1.0], [2.5, 2.0, 5.0], (count, 3))
    return Splats(where, rotation, scale, rng.uniform(0.1, 0.95, count), 0.3 * rng.normal(size=(count, (degree + 1) ** 2, 3)))


def weights(rng: np.random.Generator, cameras: int) -> dict[str, NDArray[np.float32]]:
    """A loss that is a random sum of all pixels of all channels."""
    shape = (cameras, SIZE[1], SIZE[0])
    found = {"rgb": rng.normal(size=(*shape, 3)), "depth": 0.1 * rng.normal(size=shape), "alpha": rng.normal(size=shape)}
    return {name: value.astype(np.float32) for name, value in found.items()}


def twin_loss(fields: dict[str, Any], position: Any, attitude: Any, weight: dict[str, Any], options: dict[str, Any]) -> Any:
    images = twin.render(SimpleNamespace(**fields), *SIZE, LENS, position, attitude, **options)
    known = np.isfinite(images["depth"].real)
    total = np.sum(np.where(known, images["depth"], 0.0) * weight["depth"])
    return total + np.sum(images["rgb"] * weight["rgb"]) + np.sum(images["alpha"] * weight["alpha"])


def slopes(loss: Callable[[Any], Any], at: NDArray[Any]) -> NDArray[np.float64]:
    """Derivative of a loss with respect to every number of an array."""
    point, found = at.astype(complex), np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        point[index] += STEP * 1j
        found[index] = loss(point).imag / STEP
        point[index] = at[index]
    return found


def turned(attitude: NDArray[np.float64], turn: NDArray[Any]) -> NDArray[Any]:
    """attitude * (turn / 2, 1): a small turn about the camera's own axes."""
    x, y, z, w = attitude
    a, b, c = 0.5 * turn
    return np.array(
        [x + w * a + y * c - z * b, y + w * b + z * a - x * c, z + w * c + x * b - y * a, w - x * a - y * b - z * c]
    )


def close(found: NDArray[Any], expected: NDArray[Any], tolerance: float) -> bool:
    return bool(np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected))


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_equal_those_of_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    degree = seed % 4
    splats, weight = in_view(rng, 12, degree), weights(rng, 1)
    options: dict[str, Any] = {"antialiased": bool(seed & 4), "background": rng.uniform(size=3)}
    position, attitude = 0.2 * rng.normal(size=3), np.array([0.05, -0.03, 0.1, 1.0])
    attitude /= np.linalg.norm(attitude)
    (found,), poses = SplatRenderer(splats).gradients(
        lambda images, some: weight, *SIZE, LENS, position[None], attitude, **options
    )
    fields = {name: getattr(splats, name).astype(float) for name in FIELDS}
    one = {name: value[0] for name, value in weight.items()}
    for name in FIELDS:
        expected = slopes(lambda x, name=name: twin_loss({**fields, name: x}, position, attitude, one, options), fields[name])
        if name == "rotation":  # along the sphere of unit quaternions
            expected -= fields[name] * np.sum(expected * fields[name], axis=1, keepdims=True)
        # float32 sums over 546 pixels of both signs; a single pixel at 1/255 decided otherwise would be up to 1e-2.
        assert close(getattr(found, name), expected, 2e-3), name
    by_position = slopes(lambda x: twin_loss(fields, x, attitude, one, options), position)
    assert close(poses.position[0], by_position, 2e-3)
    by_turn = slopes(lambda x: twin_loss(fields, position, turned(attitude, x), one, options), np.zeros(3))
    assert close(poses.rotation[0], by_turn, 2e-3)
    assert set(np.unique(found.seen)) <= {0.0, 1.0}


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
            way = getattr(slope, name) / np.linalg.norm(getattr(slope, name))
            fields = {field: getattr(splats, field) for field in FIELDS}
            moved.append(Splats(**{**fields, name: fields[name] + np.float32(step) * way}))
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
        arrays = [getattr(g, name) for g in found for name in (*FIELDS, "image_shift", "seen")] + [
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
