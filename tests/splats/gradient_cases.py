"""Scenes, losses and exact derivatives of the float64 twin that the tests of the splats' derivatives share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer, twin

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


def weights(rng: np.random.Generator, cameras: int) -> dict[str, ArrayF32]:
    """A loss that is a random sum of all pixels of all channels."""
    shape = (cameras, SIZE[1], SIZE[0])
    found = {"rgb": rng.normal(size=(*shape, 3)), "depth": 0.1 * rng.normal(size=shape), "alpha": rng.normal(size=shape)}
    return {name: value.astype(np.float32) for name, value in found.items()}


def twin_loss(fields: dict[str, Any], position: Any, attitude: Any, weight: dict[str, Any], options: dict[str, Any]) -> Any:
    with np.errstate(invalid="ignore"):  # a complex infinity times 1
        images = twin.render(SimpleNamespace(**fields), *SIZE, LENS, position, attitude, **options)
    known = np.isfinite(images["depth"].real)
    total = np.sum(np.where(known, images["depth"], 0.0) * weight["depth"])
    if "normal" in weight:
        total = total + np.sum(images["normal"] * weight["normal"])
    return total + np.sum(images["rgb"] * weight["rgb"]) + np.sum(images["alpha"] * weight["alpha"])


def slopes(loss: Callable[[Any], Any], at: ArrayAny) -> Array:
    """Derivative of a loss with respect to every number of an array."""
    point, found = at.astype(complex), np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        point[index] += STEP * 1j
        found[index] = loss(point).imag / STEP
        point[index] = at[index]
    return found


def turned(attitude: Array, turn: ArrayAny) -> ArrayAny:
    """attitude * (turn / 2, 1): a small turn about the camera's own axes."""
    x, y, z, w = attitude
    a, b, c = 0.5 * turn
    return np.array(
        [x + w * a + y * c - z * b, y + w * b + z * a - x * c, z + w * c + x * b - y * a, w - x * a - y * b - z * c]
    )


def close(found: ArrayAny, expected: ArrayAny, tolerance: float) -> bool:
    return bool(np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected))


def assert_as_the_twin(
    splats: Splats,
    position: Array,
    attitude: Array,
    weight: dict[str, Any],
    options: dict[str, Any],
) -> Any:
    """Every derivative of one camera's loss against the twin's by complex steps; what the renderer found of the cloud."""
    (found,), poses = SplatRenderer(splats).gradients(
        lambda images, some: weight, *SIZE, LENS, position[None], attitude, **options
    )
    fields = {name: getattr(splats, name).astype(float) for name in FIELDS}
    one = {name: value[0] for name, value in weight.items()}
    given = {name: value[0] if name == "limit" else value for name, value in options.items() if name != "channels"}
    for name in FIELDS:
        expected = slopes(lambda x, name=name: twin_loss({**fields, name: x}, position, attitude, one, given), fields[name])
        if name == "rotation":  # along the sphere of unit quaternions
            expected -= fields[name] * np.sum(expected * fields[name], axis=1, keepdims=True)
        # float32 sums over 546 pixels of both signs; a single pixel at 1/255 decided otherwise would be up to 1e-2.
        assert close(getattr(found, name), expected, 2e-3), name
    by_position = slopes(lambda x: twin_loss(fields, x, attitude, one, given), position)
    assert close(poses.position[0], by_position, 2e-3)
    by_turn = slopes(lambda x: twin_loss(fields, position, turned(attitude, x), one, given), np.zeros(3))
    assert close(poses.rotation[0], by_turn, 2e-3)
    return found
