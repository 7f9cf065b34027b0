"""One training: its state, its step, what is saved of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.training.image_models import CameraMotion, ExposureMaps, SkyMap, fitted_exposure
from airworthy.capture.training.options import SplatTrainingPlan, TrainOptions, reduced
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat
from airworthy.core.jobs.progress import progress
from airworthy.rendering.refining import image_psnr, image_ssim
from airworthy.scenes.splats import merged
from airworthy.scenes.splats.record import COEFFICIENTS, Splats
from airworthy.splats.cameras import CameraView
from airworthy.splats.training import ImageLoss, SplatOptimizer
from airworthy.splats.training.densify import densified, faded
from airworthy.splats.training.engines import relocated
from airworthy.splats.training.geometry_loss import GeometryLoss, SurfaceImages, edge_weights
from airworthy.splats.training.plane_sweep import random_points, reach_of, swept_points, visible_from
from airworthy.splats.training.starting_splats import splats_at

__all__ = ["CameraMotion", "ExposureMaps", "HeldOutQuality", "TrainingRun", "first_splats", "views_reach"]

# ---- The Gaussians that a training begins with ------------------------------------------------------------------------------

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
    points, colors, origin = _surface(images, options, quiet, rng)
    some = slice(min(len(points), count - round(_FILL * count)))
    more = _random(images, count - some.stop, rng)
    least = 1e-5 * views_reach(images)
    parts = [splats_at(more, observed_colors(images, more), _OPACITY, least)] if len(more) else []
    if some.stop:
        # Round ones stop light before their surface, and those that must first find their direction seldom do.
        parts.insert(0, splats_at(points[some], colors[some], _OPACITY, least, flat=True))
        origin = f"{some.stop:,} {origin}, {len(more):,} at random"
    return merged(parts), origin


def _surface(
    images: CaptureImages, options: TrainOptions, quiet: bool, rng: np.random.Generator
) -> tuple[ArrayFloat, ArrayFloat, str]:
    """Points (n, 3) on surfaces, the first of which are to be taken first, and their colours."""
    if options.start == "random":
        return np.zeros((0, 3)), np.zeros((0, 3)), "all at random in the views' volume"
    # Features lie where texture is, and are exact; walls and tables without any are found by the sweep alone.
    parts, words = [], []
    if options.start in ("points", "auto"):
        parts.append(_given(images))
        words += ["at the set's points"] if len(parts[0][0]) or options.start == "points" else []
    if options.start in ("sweep", "auto"):
        parts.append(_swept(images, quiet))
        words += ["where swept planes agree"]
    orders = [rng.permutation(len(points)) for points, _ in parts]
    points, colors = (np.concatenate([part[k][order] for part, order in zip(parts, orders, strict=True)]) for k in (0, 1))
    return points, colors, " and ".join(words)


def _given(images: CaptureImages) -> tuple[ArrayFloat, ArrayFloat]:
    """Points (n, 3) of the set and their colours."""
    known = images.points if images.points is not None else np.zeros((0, 3))
    colors = images.colors / 255.0 if images.colors is not None else np.full(known.shape, 0.5)
    kept = np.isfinite(known).all(axis=1)
    return known[kept], colors[kept]


def _swept(images: CaptureImages, quiet: bool) -> tuple[ArrayFloat, ArrayFloat]:
    """Points (n, 3) where swept planes agree, and their colours."""
    reach = views_reach(images)
    near, far = (share * reach for share in _SWEEP_DEPTHS)

    def shown(steps: list[int]) -> Any:
        return progress(steps, "Looking for surfaces", quiet=quiet)

    found = swept_points(images.rgb, images.intrinsics, images.position, images.attitude, near, far, shown)
    return found.position, found.color


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
_SKY_RADIUS = 100.0
"""Of the shell that stands for a sky, in reaches: a step of a tenth of a reach moves it by 0.06 degrees."""


@dataclass(frozen=True, eq=False)
class HeldOutQuality:
    """How one held-out image is matched."""

    name: str
    psnr: float
    """[dB]; where exposures are learnt, of the right half, its colours fitted on the left."""
    ssim: float
    image: ArrayF32
    """(H, W, 3) as rendered, and fitted."""
    psnr_unfitted: float
    """Of the whole image as rendered [dB]."""


def judged(name: str, image: ArrayF32, truth: ArrayF32, mask: ArrayBool | None, exposed: bool) -> HeldOutQuality:
    """Return how alike an image and a photograph are.

    A photograph that was held out has an exposure that nobody learnt. Its colours are fitted on its left half, and its right
    half is judged: both halves of a figure from the same pixels would flatter it.

    Args:
        name: Of the image.
        image: (H, W, 3) as rendered.
        truth: The photograph, in [0, 1].
        mask: (H, W) where it shows the scene; None: everywhere.
        exposed: Whether exposures are learnt.
    """
    plain = image_psnr(image, truth, mask)
    if not exposed:
        return HeldOutQuality(name, plain, image_ssim(image, truth, mask), image, plain)
    fitted, half = fitted_exposure(image, truth, mask), (slice(None), slice(truth.shape[1] // 2, None))
    right = None if mask is None else mask[half]
    ssim = image_ssim(fitted[half], truth[half], right)
    return HeldOutQuality(name, image_psnr(fitted[half], truth[half], right), ssim, fitted, plain)


def directions(asked: CameraView) -> Array:
    """Return world directions (H, W, 3), of any length, of the pixels of a pinhole."""
    row = asked.cameras[0]
    fx, fy, cx, cy = row["intrinsics"].astype(np.float64)
    u, v = np.meshgrid((np.arange(asked.width) + 0.5 - cx) / fx, (np.arange(asked.height) + 0.5 - cy) / fy)
    return np.asarray(np.stack([u, v, np.ones_like(u)], axis=-1) @ row["rotation"].reshape(3, 3).astype(np.float64))


def widened(splats: Splats, degree: int) -> Splats:
    """Return a cloud with harmonics up to a degree, those of higher ones zero."""
    harmonics = np.zeros((len(splats), COEFFICIENTS[degree], 3), np.float32)
    harmonics[:, : splats.harmonics.shape[1]] = splats.harmonics
    return replace(splats, harmonics=harmonics)


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
        self.optimizer = SplatOptimizer(self.splats, o.seed, _LEAST_SCALE * self._reach, device=o.device, backend=o.backend)
        self._loss, self._surface_loss = ImageLoss(o.likeness), GeometryLoss(o.normals, o.smoothness)
        self._plan = SplatTrainingPlan(o, len(self._train), self._reach)
        self._maps = ExposureMaps(len(self._train)) if self.exposed else None
        self._sky = SkyMap() if o.background == "sky" else None
        self._motion = CameraMotion(self._train, o.camera_rate, self._reach) if o.cameras else None
        self._sums = np.zeros(2)

    @property
    def exposed(self) -> bool:
        """Whether images have exposures of their own: photographs have."""
        return self.options.exposure == "on" or (self.options.exposure == "auto" and not self.images.rendered)

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
        more = ("depth", "alpha", "normal") if plan.surfaces(step) else ("alpha",) if self._sky is not None else ()
        asked = self._asked(k, truth.shape, factor, plan.background(step), ("rgb", *more))

        def losses(images: dict[str, ArrayF32]) -> tuple[float, dict[str, ArrayF32]]:
            value, slopes = self._colors(images, truth, shown, k, asked)
            if "normal" in images:
                slopes |= self._surfaces(images, truth, shown, asked)
            return value, slopes

        loss, poses = self.optimizer.step_channels(asked, losses, plan.rates(step, len(self.optimizer)))
        if self._motion is not None:
            self._motion.move(k, poses)
        self.step += 1
        self._note(loss)
        if plan.relocates(self.step):
            self._relocate()

    def _asked(self, k: int, shape: tuple[int, ...], factor: int, background: Any, channels: tuple[str, ...]) -> Any:
        one = slice(k, k + 1)
        position, attitude = (
            self._motion.pose(k) if self._motion is not None else (self._train.position[one], self._train.attitude[one])
        )
        # Pixel coordinates begin at the image's corner, so that all four numbers scale alike.
        camera = (shape[1], shape[0], self._train.intrinsics[one] / factor, position, attitude)
        options = {"antialiased": self.options.antialiased, "near": self.near, "background": background}
        return self.optimizer.camera_view(*camera, **options, channels=channels)

    def _colors(
        self, images: dict[str, ArrayF32], truth: ArrayF32, shown: Any, k: int, asked: CameraView
    ) -> tuple[float, dict[str, ArrayF32]]:
        """Loss of colours, and its derivatives with respect to what was rendered."""
        if self._sky is None:
            value, slope = self._compared(images["rgb"], truth[None], shown, k)
            return value, {"rgb": slope}
        alpha, away = images["alpha"][0], directions(asked)
        value, slope = self._compared(self._sky.behind(images["rgb"][0], alpha, away)[None], truth[None], shown, k)
        return value, {"rgb": slope, "alpha": self._sky.learned(slope[0], alpha, away)[None]}

    def _surfaces(self, images: dict[str, ArrayF32], truth: ArrayF32, shown: Any, asked: CameraView) -> dict[str, ArrayF32]:
        """Return derivatives of the loss of surfaces with respect to what was rendered."""
        edges = edge_weights(truth, None if shown is None else shown[..., 0])
        surface = SurfaceImages(images["depth"][0], images["alpha"][0], images["normal"][0])
        _, by_depth, by_normal = self._surface_loss(surface, edges, asked.cameras["intrinsics"][0])
        return {"depth": by_depth[None], "normal": by_normal[None]}

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
        if o.densify == "mcmc":
            self.optimizer.replace(relocated(self.optimizer.fields(), rng, wanted)[0])
            return
        # In half widths of the image, as published; derivatives are per pixel.
        least = o.strain * 2.0 / float(self._train.sizes.max())
        found, _ = densified(self.optimizer.fields(), rng, max(o.count, n), least, self._reach)
        self.optimizer.replace(faded(found) if self._plan.fades(self.step) else found)

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
            channels=("rgb",) if self._sky is None else ("rgb", "alpha"),
        )
        found, truth, mask = self.optimizer.images(asked), reduced(self.images.rgb[k], 1), self.images.masks[k]
        image = found["rgb"][0]
        if self._sky is not None:
            image = self._sky.behind(image, found["alpha"][0], directions(asked))
        return judged(self.images.names[k], image, truth, mask, self.exposed)

    def final_splats(self) -> Splats:
        """Return the Gaussians, and the shell that is their sky where one was learnt."""
        found = self.optimizer.splats()
        if self._sky is None:
            return found
        shell = self._sky.shell(self._train.position.mean(axis=0), _SKY_RADIUS * self._reach)
        return merged([found, widened(shell, found.degree)])

    def save(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on."""
        more = {"sums": self._sums}
        if self._maps is not None:
            more |= self._maps.save()
        if self._motion is not None:
            more |= self._motion.save()
        if self._sky is not None:
            more |= self._sky.save()
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
        if self._sky is not None:
            self._sky.restore(arrays)
        self.step, self.notes = step, notes
