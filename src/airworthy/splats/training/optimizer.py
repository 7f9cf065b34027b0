"""A cloud that learns: rendered, differentiated and moved where the renderer keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.schema import check_fields
from airworthy.scenes.splats.record import C0, COEFFICIENTS, Splats
from airworthy.splats.cameras import CameraView, RenderRequest, camera_view, image_shape
from airworthy.splats.cloud import morton_order
from airworthy.splats.renderer import PoseGradients, pose_gradients
from airworthy.splats.training.engines import engine_on
from airworthy.splats.training.fields import MOST_LOGIT, SETTINGS, GaussianFields, Packed, fields_of, pack

Images = dict[str, ArrayF32]
Loss = Callable[[ArrayF32], tuple[float, ArrayF32]]
"""Of images (c, H, W, 3): the loss and its derivative."""
ChannelsLoss = Callable[[Images], tuple[float, Images]]
"""Of all channels that were rendered: the loss, and its derivatives with respect to those it depends on."""
# Source: reference code of Kerbl et al., 3D Gaussian splatting (2023). Adam's usual 1e-8 would damp: derivatives of a mean over
# all pixels are as small.
_EPSILON = 1e-15


@dataclass(frozen=True)
class Rates:
    """How far a step moves what, at most about, and what else acts on Gaussians."""

    # Source of rates: reference code of Kerbl et al. (2023), colours times C0, because theirs are rates of coefficients. Pulls
    # and noise: Kheradmand et al. (2024); none here, `TrainOptions` has them.
    place: float = 1.6e-4
    """Of means [m]."""
    place_share: float = 0.0
    """Of means, in standard deviations along the longest axis."""
    scale: float = 5e-3
    """Of the logarithms of standard deviations."""
    rotation: float = 1e-3
    """Of quaternions."""
    opacity: float = 0.05
    """Of logits."""
    color: float = 2.5e-3 * C0
    """Of the colour that is the same from everywhere."""
    color_rest: float = 2.5e-3 * C0 / 20.0
    """Of the harmonics of higher degree, as colours."""
    opacity_pull: float = 0.0
    """Derivative of the loss with respect to every opacity."""
    scale_pull: float = 0.0
    """Derivative of the loss with respect to every standard deviation [1/m]."""
    flat_pull: float = 0.0
    """Derivative of the loss with respect to every Gaussian's shortest standard deviation [1/m]."""
    needle_pull: float = 0.0
    """Derivative of the loss with respect to the logarithm of a Gaussian's length over its width, where that is more than
    10."""
    noise: float = 0.0
    """Random motion of means [1/m], times the covariance and what transparency allows."""
    decays: tuple[float, float] = (0.9, 0.999)
    """Of first and second moments."""

    def __post_init__(self) -> None:
        check_fields(self, "Rates.")

    def row(self, least_scale: float) -> ArrayF32:
        """Return the row as the kernel reads them."""
        given = {
            "first_decay": self.decays[0],
            "second_decay": self.decays[1],
            "epsilon": _EPSILON,
            "place_rate": self.place,
            "place_share": self.place_share,
            "scale_rate": self.scale,
            "turn_rate": self.rotation,
            "opacity_rate": self.opacity,
            # A colour is C0 times its coefficient, and coefficients are moved.
            "color_rate": self.color / C0,
            "rest_rate": self.color_rest / C0,
            "opacity_pull": self.opacity_pull,
            "scale_pull": self.scale_pull,
            "noise": self.noise,
            "least_scale": np.log(least_scale),
            "most_scale": np.log(1e5),
            "most_logit": MOST_LOGIT,
            "flat_pull": self.flat_pull,
            "needle_pull": self.needle_pull,
        }
        return np.array([given[name] for name in SETTINGS], np.float32)


class SplatOptimizer:
    """One cloud, its moments, and the step that moves it.

    Only Gaussians that were in an image are moved, and each corrects the bias of its moments by how often it was: one that is
    seen in a few images of hundreds, or was made a moment ago, moves as far at its first step as any other did, and one that is
    out of sight does not drift on old momentum.

    The same cloud, images and version give the same bytes on an instruction set, whatever the threads.

    Args:
        splats: To begin with.
        seed: Of random motion.
        least_scale: No standard deviation falls below this [m].
        threads: Most threads; None: as many as `AIRWORTHY_THREADS` or the machine allows.
        device: `cpu`, or a CUDA device of Warp (`cuda:0`).
        backend: `own`: our renderer; `gsplat`: gsplat's on a CUDA device, whose bytes differ from run to run.

    Raises:
        AirworthyError: If the cloud cannot be rendered, or the device is unknown.
    """

    def __init__(
        self,
        splats: Splats,
        seed: int = 0,
        least_scale: float = 1e-6,
        threads: int | None = None,
        device: str = "cpu",
        backend: str = "own",
    ):
        self._seed, self._least_scale = seed, least_scale
        self.steps = 0
        self._packed = pack(_sorted(fields_of(splats)))
        self._engine = engine_on(device, self._packed, threads, backend)

    def __len__(self) -> int:
        return len(self._packed.number)

    @property
    def degree(self) -> int:
        """Of the harmonics, 0 to 3."""
        return COEFFICIENTS.index(self._packed.shade_moments.shape[1] // 6)

    def _take(self, packed: Packed) -> None:
        self._packed = packed
        self._engine.take(packed)

    def camera_view(
        self,
        width: int,
        height: int,
        intrinsics: Any,
        position: Any,
        attitude: Any,
        antialiased: bool = False,
        near: float = 0.05,
        background: Any = (0.0, 0.0, 0.0),
        channels: Sequence[str] = ("rgb",),
    ) -> CameraView:
        """Return the checked cameras of a step.

        Args:
            width: As of `RenderRequest`, and so the others [px].
            height: [px]
            intrinsics: (c, 4) or (4,) [px].
            position: (c, 3) [m], world.
            attitude: (c, 4) or (4,) quaternion x, y, z, w, camera to world.
            antialiased: Whether narrow Gaussians lose opacity.
            near: [m]
            background: (3,) or (c, 3) colour where nothing is.
            channels: What a step's losses look at; depth is that of planes.
        """
        camera = (width, height, intrinsics, position, attitude, None, background, antialiased, near)
        place = "plane" if "depth" in channels else "mean"
        return camera_view(self._packed.cloud.spans, RenderRequest(*camera, channels=channels, depth_at=place))

    def render(self, asked: CameraView) -> ArrayF32:
        """Return images (c, H, W, 3)."""
        return self.images(asked)["rgb"]

    def images(self, asked: CameraView) -> Images:
        """Return images by channel."""
        shape = (len(asked.cameras), asked.height, asked.width)
        found = {name: np.empty(image_shape(name, shape), np.float32) for name in asked.channels}
        self._engine.render(asked, found)
        return found

    def step(self, asked: CameraView, loss: Loss, rates: Rates) -> tuple[float, PoseGradients]:
        """Render, differentiate and move once.

        Args:
            asked: The cameras.
            loss: Of their images.
            rates: How far.

        Returns:
            The loss before the step, and its derivatives with respect to the cameras' poses.
        """

        def of_channels(images: Images) -> tuple[float, Images]:
            value, slope = loss(images["rgb"])
            return value, {"rgb": slope}

        return self.step_channels(asked, of_channels, rates)

    def step_channels(self, asked: CameraView, loss: ChannelsLoss, rates: Rates) -> tuple[float, PoseGradients]:
        """Render, differentiate and move once by a loss of several channels; as `step`.

        Args:
            asked: The cameras, and which channels.
            loss: Of their images.
            rates: How far.
        """
        images = self.images(asked)
        value, slopes = loss(images)
        self._engine.differentiate(asked, images, slopes)
        poses = pose_gradients(asked.cameras, self._engine.slopes)
        self.move(rates)
        return value, poses

    def move(self, rates: Rates) -> None:
        """Move by the derivatives that the engine holds, which this uses up."""
        # Random words depend on the seed, in two words of 32 bits, and on the step: a training that was stopped draws the same.
        draw = np.array([self._seed & 0xFFFFFFFF, self._seed >> 32 & 0xFFFFFFFF, self.steps], np.uint32).view(np.int32)
        self._engine.move(rates.row(self._least_scale), draw)
        self.steps += 1

    def fields(self) -> GaussianFields:
        """Return the cloud as it is moved, in the order of its places."""
        self._engine.pull()
        return self._packed.fields()

    def replace(self, found: GaussianFields) -> None:
        """Go on with other Gaussians, laid out anew so that near ones lie together."""
        self._take(pack(_sorted(found)))

    def raise_degree(self) -> None:
        """Add one more degree of harmonics, its coefficients zero."""
        self.replace(self.fields().widened(COEFFICIENTS[min(self.degree + 1, 3)]))

    def splats(self) -> Splats:
        """Return the gaussians as a cloud: first those that were there at first, in their order, then those made since."""
        found = self.fields()
        first = np.where(found.number >= 0, found.number, np.iinfo(np.int64).max)
        return found.taken(np.argsort(first, kind="stable")).splats()

    def save(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on."""
        self._engine.pull()
        packed, cloud = self._packed, self._packed.cloud
        return {
            "geometry": cloud.geometry,
            "harmonics": cloud.harmonics,
            "chunks": cloud.chunks.view(np.uint8).reshape(len(cloud.chunks), -1),
            "raw": packed.raw,
            "moments": packed.moments,
            "shade_moments": packed.shade_moments,
            "number": packed.number,
            "steps": np.array([self.steps], np.int64),
        }

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Go on from what `save` gave."""
        old = self._packed.cloud
        chunks = np.ascontiguousarray(saved["chunks"]).view(old.chunks.dtype).reshape(-1)
        cloud = replace(
            old,
            geometry=saved["geometry"].copy(),
            harmonics=saved["harmonics"].copy(),
            chunks=chunks.copy(),
            spans=np.array([(0, len(chunks))], np.int32),
            order=(np.arange(len(saved["number"])),),
        )
        raw, moments, shades = (saved[name].copy() for name in ("raw", "moments", "shade_moments"))
        self._take(Packed(cloud, raw, moments, shades, saved["number"].copy()))
        self.steps = int(saved["steps"][0])


def _sorted(found: GaussianFields) -> GaussianFields:
    return found.taken(morton_order(found.position))
