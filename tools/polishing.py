"""Training splats on images of several sizes at once: what a converted scene needs to look right from near and from far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import check_fields
from airworthy.rendering.refining import PosedImages
from airworthy.scenes.splats.record import Splats
from airworthy.splats.training import ImageLoss, Rates, SplatOptimizer
from airworthy.splats.training.geometry_loss import GeometryLoss, SurfaceImages, edge_weights

__all__ = ["PolishOptions", "polished"]

_LEAST_SCALE = 1e-4
"""No standard deviation falls below this [m]."""
_HOLD_EVERY = 100
"""Steps after which Gaussians are brought back to their surfaces."""


@dataclass(frozen=True)
class PolishOptions:
    """How splats are trained. Rates are those at first; they fall to `fall` of that, evenly in their logarithm.

    Raises:
        AirworthyError: If a number is out of range.
    """

    steps: int = 6000
    """Images looked at, one per step."""
    likeness: float = 0.2
    """Share of the structural similarity in the loss; the rest is the mean absolute difference."""
    color: float = 0.025
    opacity: float = 0.04
    """Of its logit."""
    scale: float = 0.025
    """Of its logarithm."""
    rotation: float = 0.006
    place: float = 0.06
    """In standard deviations along the longest axis."""
    drift: float = math.inf
    """Farthest that a mean may leave the plane in which its Gaussian lay at first [m]; inf: anywhere."""
    closed: bool = False
    """Show the views before another colour at every step, not black: dark details are no longer left to holes."""
    degree: int = 0
    """Of the harmonics; at least that of the splats to begin with."""
    flatness: float = 0.0
    """Weight of the mean of the shortest standard deviations in the loss [1/m]."""
    normals: float = 0.0
    """Weight of the difference of the Gaussians' normals and those of the rendered depth of planes."""
    smoothness: float = 0.0
    """Weight of the bends of that depth, where an image has no edge."""
    fall: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, "PolishOptions.")
        rates = (self.color, self.opacity, self.scale, self.rotation, self.place, self.flatness, self.normals, self.smoothness)
        if (
            self.steps < 0
            or self.degree not in range(4)
            or min(*rates, self.drift) < 0.0
            or not 0.0 <= self.likeness <= 1.0
            or not 0.0 < self.fall <= 1.0
        ):
            raise AirworthyError(
                f"Splats cannot be trained with {self}; expected counts and rates of 0 or more, shares up to 1."
            )

    def rates(self, step: int, gaussians: int) -> Rates:
        """Of a step."""
        now = self.fall ** (step / max(self.steps - 1, 1))
        return Rates(
            place=0.0,
            place_share=self.place * now,
            scale=self.scale * now,
            rotation=self.rotation * now,
            opacity=self.opacity * now,
            color=self.color * now,
            color_rest=self.color * now / 20.0,  # as published
            flat_pull=self.flatness / gaussians,
            decays=(0.9, 0.99),  # few steps are made, so the second forgets fast
        )


def polished(splats: Splats, sets: Sequence[PosedImages], options: PolishOptions | None = None, quiet: bool = True) -> Splats:
    """Splats that look more like the images; the same number and order. The same input gives the same bytes.

    Args:
        splats: To begin with.
        sets: Images of one size each, float or 8 bits; all are looked at once, shuffled, and again.
        options: How.
        quiet: Show no progress.

    Raises:
        AirworthyError: There are no images.
    """
    options = options or PolishOptions()
    views = [(one, k) for one in sets for k in range(len(one))]
    if not views:
        raise AirworthyError("Splats cannot be trained without images.")
    rng, behind = np.random.default_rng(options.seed), np.random.default_rng([options.seed, 1])
    planes = _Planes(splats, options.drift)
    rounds = [rng.permutation(len(views)) for _ in range(-(-options.steps // len(views)))]
    optimizer, loss = SplatOptimizer(splats, options.seed, _LEAST_SCALE), ImageLoss(options.likeness)
    surfaces = GeometryLoss(options.normals, options.smoothness) if options.normals or options.smoothness else None
    channels = ("rgb",) if surfaces is None else ("rgb", "depth", "alpha", "normal")
    while optimizer.degree < options.degree:
        optimizer.raise_degree()
    work: Iterable[int] = progress(range(options.steps), "Training", options.steps, quiet=quiet)
    for step in work:
        one, k = views[rounds[step // len(views)][step % len(views)]]
        truth = _floats(one.rgb[k : k + 1])

        width, height, lens, place, turn = one.camera(k)

        def off(
            images: dict[str, ArrayF32], truth: ArrayF32 = truth, lens: ArrayAny = lens
        ) -> tuple[float, dict[str, ArrayF32]]:
            value, slope = loss(images["rgb"], truth)
            if surfaces is None:
                return value, {"rgb": slope}
            shown = SurfaceImages(*(images[name][0] for name in ("depth", "alpha", "normal")))
            _, by_depth, by_normal = surfaces(shown, edge_weights(truth[0]), lens[0])
            return value, {"rgb": slope, "depth": by_depth[None], "normal": by_normal[None]}

        color = behind.random(3) if options.closed else np.zeros(3)
        asked = optimizer.camera_view(width, height, lens, place, turn, background=color, channels=channels)
        optimizer.step_channels(asked, off, options.rates(step, len(optimizer)))
        if step % _HOLD_EVERY == _HOLD_EVERY - 1 or step == options.steps - 1:
            planes.hold(optimizer)
    return optimizer.splats()


class _Planes:
    """In which flat Gaussians lay at first. One that looks right may stand off its surface, and no image brings it back."""

    def __init__(self, splats: Splats, drift: float):
        self._drift, self._place = drift, splats.position.astype(np.float64)
        thin = np.eye(3)[np.argmin(splats.scale, axis=1)]
        self._normal = frames.rotate(splats.rotation.astype(np.float64), thin)

    def hold(self, optimizer: SplatOptimizer) -> None:
        """Bring back what has left its plane too far."""
        if not np.isfinite(self._drift):
            return
        found = optimizer.fields()
        normal = self._normal[found.number]
        away = ((found.position - self._place[found.number]) * normal).sum(axis=-1, keepdims=True)
        over = away - np.clip(away, -self._drift, self._drift)
        optimizer.replace(replace(found, position=(found.position - over * normal).astype(np.float32)))


def _floats(rgb: ArrayAny) -> ArrayF32:
    return rgb.astype(np.float32) / np.float32(255.0) if rgb.dtype == np.uint8 else rgb
