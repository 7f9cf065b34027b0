"""What each step of a training does: which image, how finely, how far things move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.training_options import TrainOptions
from airworthy.scenes.splats.harmonics import C0
from airworthy.sensors.splats.training import Rates

__all__ = ["Plan", "reduced"]

_PLACE_FALL, _LATE_FALL = 0.01, 0.1
_LATE = 2.0 / 3.0
"""Share of the steps after which all rates fall."""
_SETTLE = 500
"""Steps before Gaussians are moved about: what shows nothing must have had its chance."""


class Plan:
    """A pure function of options, number of images and reach; nothing is drawn from a generator that goes on.

    Args:
        options: Chosen.
        count: Images to train on.
        reach: Of the views [m].
    """

    def __init__(self, options: TrainOptions, count: int, reach: float):
        self._options, self._count, self._reach = options, count, reach
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def image(self, step: int) -> int:
        """Which image: all once, shuffled, and again."""
        epoch, place = divmod(step, self._count)
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._options.seed, 1, epoch)).permutation(self._count)
            self._epoch = epoch
        return int(self._order[place])

    def reduction(self, step: int) -> int:
        """Pixels of the image in one, each way."""
        coarse = self._options.coarse * self._options.steps
        return 4 if step < coarse else 2 if step < 2.0 * coarse else 1

    def background(self, step: int) -> NDArray[np.float64]:
        """Colour behind everything."""
        if self._options.background == "random":
            return np.random.default_rng((self._options.seed, 2, step)).random(3)
        return np.full(3, 1.0 if self._options.background == "white" else 0.0)

    def rates(self, step: int, gaussians: int) -> Rates:
        """How far things move."""
        o = self._options
        part = step / o.steps
        late = _LATE_FALL ** max(0.0, (part - _LATE) / (1.0 - _LATE))
        place = o.place_rate * self._reach * _PLACE_FALL**part
        return Rates(
            place=place,
            scale=o.scale_rate * late,
            rotation=o.rotation_rate * late,
            opacity=o.opacity_rate * late,
            color=o.color_rate * C0 * late,
            color_rest=o.color_rate * C0 / 20.0 * late,
            opacity_pull=o.opacity_pull / gaussians,
            scale_pull=o.scale_pull / (3.0 * gaussians * self._reach),
            # In a scene of reach 1 the published factor times the rate of means.
            noise=o.noise * place / self._reach**2,
        )

    def relocates(self, step: int) -> bool:
        """Whether, after this many steps, what shows nothing is moved."""
        o = self._options
        return step % o.relocate_every == 0 and min(_SETTLE, o.steps // 4) <= step <= o.relocate_until * o.steps

    def degree(self, step: int) -> int:
        """Of the harmonics."""
        return min(self._options.degree, step // self._options.degree_every)


def reduced(image: NDArray[np.uint8], factor: int) -> NDArray[np.float32]:
    """(H, W, 3) in [0, 1], every `factor` pixels each way their mean; what does not fill a whole one is left out."""
    if factor == 1:
        return image.astype(np.float32) / np.float32(255.0)
    h, w = image.shape[0] // factor, image.shape[1] // factor
    whole = image[: h * factor, : w * factor].reshape(h, factor, w, factor, 3)
    return np.asarray(whole.mean(axis=(1, 3), dtype=np.float32) / np.float32(255.0))
