"""One training: its state, its step, what is saved of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.record import CaptureImages
from airworthy.capture.training_adjusting import CameraMotion, ExposureMaps
from airworthy.capture.training_options import TrainOptions
from airworthy.capture.training_plan import Plan, reduced
from airworthy.capture.training_start import views_reach
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.refining import image_psnr, image_ssim
from airworthy.sensors.splats.training import ImageLoss, SplatOptimizer
from airworthy.sensors.splats.training.relocation import relocated

__all__ = ["Judged", "TrainingRun"]

_LEAST_SCALE = 1e-5
"""Of the reach."""
_NEAR = 0.02
"""Nearest that is seen, of the reach."""
_LOSS_EVERY = 100


@dataclass(frozen=True, eq=False)
class Judged:
    """How one held-out image is matched."""

    name: str
    psnr: float
    """[dB]"""
    ssim: float
    image: NDArray[np.float32]
    """(H, W, 3) as rendered."""


@dataclass(eq=False)
class TrainingRun:
    """A training under way.

    Args:
        images: All of them.
        options: Chosen.
        splats: To begin with.
    """

    images: CaptureImages
    options: TrainOptions
    splats: Splats
    step: int = 0
    """Steps done."""
    notes: dict[str, Any] = field(default_factory=lambda: {"loss": [], "judged": [], "seconds": 0.0, "start": ""})

    def __post_init__(self) -> None:
        o = self.options
        self._numbers = self.images.training
        self._train = self.images[self._numbers]
        self._reach = views_reach(self._train)
        self.optimizer = SplatOptimizer(self.splats, o.seed, _LEAST_SCALE * self._reach, device=o.device)
        self._loss = ImageLoss(o.likeness)
        self._plan = Plan(o, len(self._train), self._reach)
        self._maps = ExposureMaps(len(self._train)) if o.exposure else None
        self._motion = CameraMotion(self._train, o.camera_rate, self._reach) if o.cameras else None
        self._sums = np.zeros(2)

    @property
    def near(self) -> float:
        """Nearest that is seen [m]."""
        return float(np.clip(_NEAR * self._reach, 1e-4, 1e3))

    def advance(self) -> None:
        """One step."""
        step, plan = self.step, self._plan
        while self.optimizer.degree < plan.degree(step):
            self.optimizer.raise_degree()
        k, factor = plan.image(step), plan.reduction(step)
        truth = reduced(self._train.rgb[k], factor)
        mask = self._train.masks[k]
        shown = None if mask is None else reduced(np.repeat(mask[..., None], 3, axis=2) * np.uint8(255), factor) > 0.5
        asked = self._asked(k, truth.shape, factor, plan.background(step))
        loss, poses = self.optimizer.step(
            asked, lambda image: self._compared(image, truth[None], shown, k), plan.rates(step, len(self.optimizer))
        )
        if self._motion is not None:
            self._motion.move(k, poses)
        self.step += 1
        self._note(loss)
        if plan.relocates(self.step):
            self._relocate()

    def _asked(self, k: int, shape: tuple[int, ...], factor: int, background: Any) -> Any:
        one = slice(k, k + 1)
        position, attitude = (
            self._motion.pose(k) if self._motion is not None else (self._train.position[one], self._train.attitude[one])
        )
        camera = (shape[1], shape[0], self._train.intrinsics[one] / factor, position, attitude)
        return self.optimizer.shot(*camera, antialiased=self.options.antialiased, near=self.near, background=background)

    def _compared(self, image: Any, truth: Any, shown: Any, k: int) -> tuple[float, NDArray[np.float32]]:
        """Loss and its derivative with respect to the image as rendered."""
        seen = image if self._maps is None else self._maps.applied(k, image)
        if shown is not None:  # where it does not show the scene, nothing differs
            seen = np.where(shown, seen, truth)
        value, slope = self._loss(np.ascontiguousarray(seen, np.float32), truth)
        if shown is not None:
            slope = slope * shown
        return value, slope if self._maps is None else self._maps.learned(k, image, slope)

    def _note(self, loss: float) -> None:
        self._sums += (loss, 1.0)
        if self.step % _LOSS_EVERY == 0 or self.step == self.options.steps:
            self.notes["loss"].append([self.step, float(self._sums[0] / self._sums[1])])
            self._sums[:] = 0.0

    def _relocate(self) -> None:
        o, n = self.options, len(self.optimizer)
        wanted = min(max(o.count, n), int(o.grow * n) + 1) if n < o.count else n
        rng = np.random.default_rng((o.seed, 3, self.step))
        self.optimizer.replace(relocated(self.optimizer.fields(), rng, wanted)[0])

    def judge(self) -> list[Judged]:
        """The held-out images, or, where there are none, up to ten of those that were trained on."""
        kept = self.images.judging
        if not len(kept):
            kept = self._numbers[np.unique(np.linspace(0, len(self._numbers) - 1, min(10, len(self._numbers))).astype(int))]
        return [self._judged(int(k)) for k in kept]

    def _judged(self, k: int) -> Judged:
        one, (height, width) = slice(k, k + 1), self.images.rgb[k].shape[:2]
        white = 1.0 if self.options.background == "white" else 0.0
        asked = self.optimizer.shot(
            width,
            height,
            self.images.intrinsics[one],
            self.images.position[one],
            self.images.attitude[one],
            antialiased=self.options.antialiased,
            near=self.near,
            background=(white,) * 3,
        )
        image, truth, mask = self.optimizer.render(asked)[0], reduced(self.images.rgb[k], 1), self.images.masks[k]
        return Judged(self.images.names[k], image_psnr(image, truth, mask), image_ssim(image, truth, mask), image)

    def save(self) -> dict[str, NDArray[Any]]:
        """Everything that the next step depends on."""
        more = {"sums": self._sums}
        if self._maps is not None:
            more |= self._maps.save()
        if self._motion is not None:
            more |= self._motion.save()
        return self.optimizer.save() | more

    def restore(self, step: int, arrays: dict[str, NDArray[Any]], notes: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.optimizer.restore(arrays)
        self._sums = arrays["sums"].copy()
        if self._maps is not None:
            self._maps.restore(arrays)
        if self._motion is not None:
            self._motion.restore(arrays)
        self.step, self.notes = step, notes
