"""One training: its state, its step, what is saved of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.training_options import SplatTrainingPlan, TrainOptions, reduced
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat
from airworthy.core.jobs.progress import progress
from airworthy.rendering.refining import image_psnr, image_ssim
from airworthy.scenes.splats.record import Splats
from airworthy.splats.renderer import PoseGradients
from airworthy.splats.training import ImageLoss, SplatOptimizer
from airworthy.splats.training.engines import relocated
from airworthy.splats.training.plane_sweep import random_points, reach_of, splats_at, swept_points, visible_from

__all__ = ["CameraMotion", "ExposureMaps", "HeldOutQuality", "TrainingRun", "first_splats", "views_reach"]

# ---- What may move beside the Gaussians: colours of single images and their poses -------------------------------------------

_DECAYS = (0.9, 0.999)
_EXPOSURE_RATE = 1e-3


class _Moments:
    """Adam (Kingma, Ba, 2015, algorithm 1) on the rows of one array, each by its own count."""

    def __init__(self, shape: tuple[int, ...]):
        self.mean, self.square, self.times = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])

    def step(self, k: int, slope: ArrayFloat) -> Array:
        """Return what to subtract from row k at a rate of 1."""
        a, b = _DECAYS
        self.times[k] += 1.0
        self.mean[k] = a * self.mean[k] + (1.0 - a) * slope
        self.square[k] = b * self.square[k] + (1.0 - b) * slope**2
        bias = (1.0 - a ** self.times[k], 1.0 - b ** self.times[k])
        return np.asarray(self.mean[k] / bias[0] / (np.sqrt(self.square[k] / bias[1]) + 1e-15))

    def save(self, name: str) -> dict[str, ArrayAny]:
        return {f"{name}_mean": self.mean, f"{name}_square": self.square, f"{name}_times": self.times}

    def restore(self, name: str, saved: dict[str, ArrayAny]) -> None:
        self.mean, self.square, self.times = (saved[f"{name}_{part}"].copy() for part in ("mean", "square", "times"))


class ExposureMaps:
    """Per image a map of colours, c -> A c + b, the identity at first.

    Args:
        count: Images.
    """

    def __init__(self, count: int):
        self._maps = np.tile(np.eye(3, 4), (count, 1, 1))
        self._moments = _Moments((count, 3, 4))

    def applied(self, k: int, image: ArrayF32) -> ArrayF32:
        """Return colours as image k has them."""
        part = self._maps[k].astype(np.float32)
        return np.asarray(image @ part[:, :3].T + part[:, 3])

    def learned(self, k: int, image: ArrayF32, slope: ArrayF32) -> ArrayF32:
        """Move the map by a step; the loss' derivative with respect to the image before it.

        Args:
            k: Number of the image.
            image: As rendered, before the map, linear RGB, (height, width, 3).
            slope: Derivative of the loss with respect to the mapped image, the same shape.
        """
        part = self._maps[k].astype(np.float32)
        # float64: a sum over all pixels of an image.
        flat, colors = slope.reshape(-1, 3).astype(np.float64), image.reshape(-1, 3)
        found = np.concatenate([flat.T @ colors, flat.sum(axis=0)[:, None]], axis=1)
        # By its own Adam and not with the splats: a map is moved in the one step of many in which its image is chosen.
        self._maps[k] -= _EXPOSURE_RATE * self._moments.step(k, found)
        return np.asarray(slope @ part[:, :3], np.float32)

    def save(self) -> dict[str, ArrayAny]:
        """Return everything."""
        return {"exposure": self._maps, **self._moments.save("exposure")}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        self._maps = saved["exposure"].copy()
        self._moments.restore("exposure", saved)


class CameraMotion:
    """Poses that move: a place, and a turn about the camera's own axes.

    Args:
        images: Where they begin.
        rate: Per step [rad, share of the reach].
        reach: [m]
    """

    def __init__(self, images: CaptureImages, rate: float, reach: float):
        self._position = np.array(images.position, np.float64)
        self._attitude = frames.normalize(np.array(images.attitude, np.float64))
        self._rate = np.array([rate * reach] * 3 + [rate] * 3)
        self._moments = _Moments((len(images), 6))

    def pose(self, k: int) -> tuple[Array, Array]:
        """Return the position (1, 3) and attitude (1, 4) of image k."""
        return self._position[k : k + 1], self._attitude[k : k + 1]

    def move(self, k: int, found: PoseGradients) -> None:
        """Advance by one step."""
        slope = np.concatenate([found.position[0], found.rotation[0]])
        step = -self._rate * self._moments.step(k, slope)
        self._position[k] += step[:3]
        # The quaternion of a small turn to first order, about the camera's own axes: from the right.
        self._attitude[k] = frames.normalize(frames.multiply(self._attitude[k], np.append(0.5 * step[3:], 1.0)))

    def save(self) -> dict[str, ArrayAny]:
        """Return everything."""
        return {"camera_position": self._position, "camera_attitude": self._attitude, **self._moments.save("camera")}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        self._position, self._attitude = saved["camera_position"].copy(), saved["camera_attitude"].copy()
        self._moments.restore("camera", saved)


# ---- The Gaussians that a training begins with ------------------------------------------------------------------------------

_ENOUGH_POINTS = 1000
_FILL = 0.1
"""Share of the first Gaussians that stand at random, for what no method found."""
_SWEEP_DEPTHS = (0.08, 3.0)
"""Over the reach."""
_OPACITY = 0.3


def views_reach(images: CaptureImages) -> float:
    """Return how far the scene extends from its cameras, in the set's unit."""
    return reach_of(images.position, images.attitude)


def first_splats(images: CaptureImages, options: TrainOptions, quiet: bool) -> tuple[Splats, str]:
    """Return splats, and in words where they come from.

    Args:
        images: To train on.
        options: Chosen.
        quiet: Show no progress.
    """
    rng = np.random.default_rng((options.seed, 0))
    count = max(1, round(options.start_share * options.count))
    points, colors, origin = _surface(images, options, quiet)
    some = rng.permutation(len(points))[: count - round(_FILL * count)]
    more = _random(images, count - len(some), rng)
    position = np.concatenate([points[some], more])
    color = np.concatenate([colors[some], observed_colors(images, more)])
    least = 1e-5 * views_reach(images)
    return splats_at(position, color, _OPACITY, least), f"{len(some):,} {origin}, {len(more):,} at random" if len(
        some
    ) else origin


def _surface(images: CaptureImages, options: TrainOptions, quiet: bool) -> tuple[ArrayFloat, ArrayFloat, str]:
    """Points (n, 3) on surfaces and their colours."""
    nothing = np.zeros((0, 3))
    known = images.points if images.points is not None else nothing
    if options.start == "points" or (options.start == "auto" and len(known) >= _ENOUGH_POINTS):
        given = images.colors / 255.0 if images.colors is not None else np.full(known.shape, 0.5)
        kept = np.isfinite(known).all(axis=1)
        return known[kept], given[kept], "at the set's points"
    if options.start == "random":
        return nothing, nothing, "all at random in the views' volume"
    reach = views_reach(images)
    near, far = (share * reach for share in _SWEEP_DEPTHS)

    def shown(steps: list[int]) -> Any:
        return progress(steps, "Looking for surfaces", quiet=quiet)

    found = swept_points(images.rgb, images.intrinsics, images.position, images.attitude, near, far, shown)
    return found.position, found.color, "where swept planes agree"


def _random(images: CaptureImages, count: int, rng: np.random.Generator) -> Array:
    return random_points(count, images.intrinsics, images.position, images.attitude, images.sizes, rng)


def observed_colors(images: CaptureImages, points: ArrayFloat) -> Array:
    """Return the mean colour (n, 3) of points in all images in which they are; grey where they are in none."""
    total, number = np.zeros((len(points), 3)), np.zeros((len(points), 1))
    near = 0.02 * views_reach(images)
    for k, image in enumerate(images.rgb):
        one = slice(k, k + 1)
        lens, at, turned = images.intrinsics[one], images.position[one], images.attitude[one]
        pixels, shown = visible_from(points, lens, at, turned, images.sizes[one].astype(np.float64), near)
        x, y = pixels[0, shown[0]].astype(np.intp).T
        total[shown[0]] += image[y, x] / 255.0
        number[shown[0]] += 1.0
    return np.where(number > 0.0, total / np.maximum(number, 1.0), 0.5)


# -----------------------------------------------------------------------------------------------------------------------------

_LEAST_SCALE = 1e-5
"""Of the reach."""
_NEAR = 0.02
"""Nearest that is seen, of the reach."""
_LOSS_EVERY = 100


@dataclass(frozen=True, eq=False)
class HeldOutQuality:
    """How one held-out image is matched."""

    name: str
    psnr: float
    """[dB]"""
    ssim: float
    image: ArrayF32
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
        self._plan = SplatTrainingPlan(o, len(self._train), self._reach)
        self._maps = ExposureMaps(len(self._train)) if o.exposure else None
        self._motion = CameraMotion(self._train, o.camera_rate, self._reach) if o.cameras else None
        self._sums = np.zeros(2)

    @property
    def near(self) -> float:
        """Nearest that is seen [m]."""
        return float(np.clip(_NEAR * self._reach, 1e-4, 1e3))

    def advance(self) -> None:
        """Take one step."""
        step, plan = self.step, self._plan
        while self.optimizer.degree < plan.degree(step):
            self.optimizer.raise_degree()
        k, factor = plan.image(step), plan.reduction(step)
        truth = reduced(self._train.rgb[k], factor)
        mask = self._train.masks[k]
        # Reduced like the image: a pixel counts where more than half of it shows the scene.
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
        # Pixel coordinates begin at the image's corner, so that all four numbers scale alike.
        camera = (shape[1], shape[0], self._train.intrinsics[one] / factor, position, attitude)
        return self.optimizer.camera_view(*camera, antialiased=self.options.antialiased, near=self.near, background=background)

    def _compared(self, image: Any, truth: Any, shown: Any, k: int) -> tuple[float, ArrayF32]:
        """Loss and its derivative with respect to the image as rendered."""
        shown_image = image if self._maps is None else self._maps.applied(k, image)
        if shown is not None:  # where it does not show the scene, nothing differs
            shown_image = np.where(shown, shown_image, truth)
        value, slope = self._loss(np.ascontiguousarray(shown_image, np.float32), truth)
        if shown is not None:
            slope = slope * shown
        return value, slope if self._maps is None else self._maps.learned(k, image, slope)

    def _note(self, loss: float) -> None:
        # A mean since the last note: losses jump from image to image.
        self._sums += (loss, 1.0)
        if self.step % _LOSS_EVERY == 0 or self.step == self.options.steps:
            self.notes["loss"].append([self.step, float(self._sums[0] / self._sums[1])])
            self._sums[:] = 0.0

    def _relocate(self) -> None:
        o, n = self.options, len(self.optimizer)
        wanted = min(max(o.count, n), int(o.grow * n) + 1) if n < o.count else n
        # Drawn by step, not from a generator that goes on: a training that was stopped draws the same.
        rng = np.random.default_rng((o.seed, 3, self.step))
        self.optimizer.replace(relocated(self.optimizer.fields(), rng, wanted)[0])

    def evaluate(self) -> list[HeldOutQuality]:
        """Return the held-out images, or, where there are none, up to ten of those that were trained on."""
        kept = self.images.held_out_ids
        if not len(kept):
            # Evenly over the capture: its first ten may all show one corner.
            kept = self._numbers[np.unique(np.linspace(0, len(self._numbers) - 1, min(10, len(self._numbers))).astype(int))]
        return [self._quality_of(int(k)) for k in kept]

    def _quality_of(self, k: int) -> HeldOutQuality:
        one, (height, width) = slice(k, k + 1), self.images.rgb[k].shape[:2]
        white = 1.0 if self.options.background == "white" else 0.0
        asked = self.optimizer.camera_view(
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
        return HeldOutQuality(self.images.names[k], image_psnr(image, truth, mask), image_ssim(image, truth, mask), image)

    def save(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on."""
        more = {"sums": self._sums}
        if self._maps is not None:
            more |= self._maps.save()
        if self._motion is not None:
            more |= self._motion.save()
        return self.optimizer.save() | more

    def restore(self, step: int, arrays: dict[str, ArrayAny], notes: dict[str, Any]) -> None:
        """Go on from what `save` gave.

        Args:
            step: That it goes on from.
            arrays: From `save`.
            notes: Of the training so far.
        """
        self.optimizer.restore(arrays)
        self._sums = arrays["sums"].copy()
        if self._maps is not None:
            self._maps.restore(arrays)
        if self._motion is not None:
            self._motion.restore(arrays)
        self.step, self.notes = step, notes
