"""What a user chooses about the training of splats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import check_fields
from airworthy.scenes.splats.record import C0
from airworthy.splats.training import Rates

__all__ = ["IDLE_RULES", "SplatTrainingPlan", "TrainOptions", "reduced"]


@dataclass(frozen=True)
class TrainOptions:
    """How splats are trained from posed images. Lengths are shares of the reach, which is how far the cameras' scene extends.

    Raises:
        AirworthyError: If a number is out of range.
    """

    steps: int = 12_000
    """Images looked at, one per step."""
    count: int = 200_000
    """Most Gaussians."""
    degree: int = 1
    """Of the harmonics, 0 to 3: how colour changes with the direction it is seen from."""
    degree_every: int = 1000
    """Steps after which one more degree is used."""
    start: Literal["auto", "points", "sweep", "random"] = "auto"
    """Gaussians at first: at the set's sparse points, where swept planes agree, at random in the views' volume; auto: at the
    set's points and where swept planes agree."""
    start_share: float = 0.5
    """How many Gaussians at first, over `count`."""
    densify: Literal["mcmc", "gradient"] = "mcmc"
    """How they become `count`: mcmc adds a share of those there are, where others are, at random; gradient clones and splits
    those whose place in the image the loss would move most, and removes what shows nothing."""
    grow: float = 1.05
    """Factor on their number each time, up to `count`; of mcmc."""
    strain: float = 2e-4
    """Mean derivative with respect to the place in the image, in half widths of it, from which one is cloned or split; of
    gradient."""
    fade_every: int = 3000
    """Steps after which all opacities are lowered, so that what is not needed dies; of gradient."""
    relocate_every: int = 100
    """Steps after which Gaussians that show nothing are moved to where something is to be shown, or removed."""
    relocate_until: float = 0.8
    """Share of the steps up to which that is done."""
    likeness: float = 0.2
    """Share of the structural similarity in the loss, the rest being the mean absolute difference."""
    coarse: float = 0.05
    """Share of the steps at a quarter of the resolution, and again at half of it."""
    place_rate: float = 5e-4
    """Motion of a Gaussian in a step, at first; falls to a hundredth."""
    scale_rate: float = 0.01
    """Change of the logarithm of a standard deviation in a step; this and the following fall to a tenth over the last third."""
    rotation_rate: float = 1e-3
    """Change of a quaternion."""
    opacity_rate: float = 0.05
    """Change of the logit of an opacity."""
    color_rate: float = 0.0025
    """Change of a coefficient of the colour; a twentieth of it for those of higher degree."""
    opacity_pull: float = 0.001
    """Weight of the mean opacity in the loss: what is not needed vanishes."""
    scale_pull: float = 0.01
    """Weight of the mean standard deviation in the loss."""
    flatness: float = 0.0
    """Weight of the mean of the shortest standard deviations in the loss: Gaussians become flat, and surfaces of them thin."""
    needles: float = 0.0
    """Weight of the mean, over Gaussians more than ten times as long as wide, of the logarithm of that ratio over ten."""
    normals: float = 0.0
    """Weight of the difference of the Gaussians' normals and those of the rendered depth."""
    smoothness: float = 0.0
    """Weight of the bends of the rendered depth, where the photograph has no edge."""
    surfaces_from: float = 0.3
    """Share of the steps after which `normals` and `smoothness` act: before, depth is still anywhere."""
    noise: float = 5e5
    """Random motion of what is nearly transparent, over its rate and covariance; 0: none."""
    antialiased: bool = False
    """Render with the opacity of narrow Gaussians lowered; the file is then to be rendered so, too."""
    background: Literal["black", "white", "random", "sky"] = "black"
    """Behind everything; random: another colour at every step; sky: learnt, by direction, and written as a far shell of
    Gaussians."""
    exposure: Literal["auto", "on", "off"] = "auto"
    """Let every image have its own affine map of colours (changing exposure, white balance); auto: of all but rendered
    images."""
    cameras: bool = False
    """Let the poses of the images move, too (poses that are a little off)."""
    camera_rate: float = 1e-4
    """Their motion in a step [rad, share of the reach]."""
    seed: int = 0
    """Of everything random."""
    judge_every: int = 1000
    """Steps after which the held-out images are judged; they are never trained on."""
    checkpoint_seconds: float = 120.0
    """How often everything is saved, so that a run that was stopped goes on."""
    container: Literal["ply", "spz"] = "ply"
    """Of the file that is written."""
    device: str = "cpu"
    """Where to train."""
    backend: Literal["own", "gsplat"] = "own"
    """What renders and differentiates: our renderer, or gsplat on a CUDA device."""

    def __post_init__(self) -> None:
        check_fields(self)
        positive = ("steps", "count", "degree_every", "relocate_every", "judge_every", "fade_every")
        self._check(positive, lambda x: x >= 1, "1 or more")
        rates = ("place_rate", "scale_rate", "rotation_rate", "opacity_rate", "color_rate", "camera_rate")
        pulls = ("opacity_pull", "scale_pull", "flatness", "needles", "normals", "smoothness", "strain", "noise")
        self._check((*rates, *pulls, "checkpoint_seconds"), lambda x: 0 <= x < 1e9, "0 or more")
        self._check(("start_share", "relocate_until", "likeness", "surfaces_from"), lambda x: 0.0 <= x <= 1.0, "0 to 1")
        self._check(("coarse",), lambda x: 0.0 <= x <= 0.5, "0 to 0.5")
        self._check(("grow",), lambda x: 1.0 <= x <= 2.0, "1 to 2")
        self._check(("degree",), lambda x: x in range(4), "0 to 3")
        self._check(("seed",), lambda x: 0 <= x < 1 << 63, "0 or more")
        if self.backend == "gsplat":
            self._check_gsplat()
        refuse_idle(self, IDLE_RULES)
        if self.count > 50_000_000:
            raise AirworthyError(f"Training got count={self.count}; expected at most 50,000,000 Gaussians.")

    def _check_gsplat(self) -> None:
        if not self.device.startswith("cuda"):
            raise AirworthyError(
                f"gsplat trains on a CUDA device, not on {self.device!r}; give device='cuda:0', or backend='own'."
            )
        if self.normals or self.smoothness:
            raise AirworthyError("gsplat renders no planes of Gaussians: give normals=0 and smoothness=0, or backend='own'.")

    def _check(self, names: tuple[str, ...], fits: Callable[[Any], bool], expected: str) -> None:
        for name in names:
            if not fits(getattr(self, name)):
                raise AirworthyError(f"Training got {name}={getattr(self, name)}; expected {expected}.")

    def differences(self, other: dict[str, object]) -> list[str]:
        """Return what was chosen otherwise before, of what changes the result."""
        free = ("checkpoint_seconds", "judge_every")
        names = [field.name for field in fields(self) if field.name not in free]
        return [f"{n} {other.get(n)!r} before, {getattr(self, n)!r} now" for n in names if other.get(n) != getattr(self, n)]


IDLE_RULES = (
    IdleRule(("camera_rate",), lambda options: not options.cameras, "without --cameras, whose motion it is", "add that"),
    IdleRule(("degree_every",), lambda options: options.degree == 0, "with --degree 0", "choose a higher one"),
    IdleRule(
        ("relocate_every", "grow", "strain", "fade_every"),
        lambda options: options.relocate_until == 0.0,
        "with --relocate-until 0, after which nothing is moved or added",
        "raise that",
    ),
    IdleRule(("strain", "fade_every"), lambda options: options.densify == "mcmc", "with --densify mcmc", "choose gradient"),
    IdleRule(("grow", "noise"), lambda options: options.densify == "gradient", "with --densify gradient", "choose mcmc"),
    IdleRule(
        ("surfaces_from",),
        lambda options: options.normals == 0.0 and options.smoothness == 0.0,
        "without --normals or --smoothness, which it delays",
        "give a weight to one",
    ),
    IdleRule(
        ("noise",), lambda options: options.place_rate == 0.0, "with --place-rate 0, of which it is a multiple", "raise that"
    ),
)
"""Options that change nothing beside the others."""

# ---- What each step of a training does: which image, how finely, how far things move ----------------------------------------

_PLACE_FALL, _LATE_FALL = 0.01, 0.1
_LATE = 2.0 / 3.0
"""Share of the steps after which all rates fall."""
_SETTLE = 500
"""Steps before Gaussians are moved about: what shows nothing must have had its chance."""


class SplatTrainingPlan:
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
        """Return which image: all once, shuffled, and again."""
        epoch, index = divmod(step, self._count)
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._options.seed, 1, epoch)).permutation(self._count)
            self._epoch = epoch
        return int(self._order[index])

    def reduction(self, step: int) -> int:
        """Return pixels of the image in one, each way."""
        coarse = self._options.coarse * self._options.steps
        return 4 if step < coarse else 2 if step < 2.0 * coarse else 1

    def background(self, step: int) -> Array:
        """Return the colour behind everything."""
        if self._options.background == "random":
            return np.random.default_rng((self._options.seed, 2, step)).random(3)
        return np.full(3, 1.0 if self._options.background == "white" else 0.0)

    def rates(self, step: int, gaussians: int) -> Rates:
        """Return how far things move."""
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
            flat_pull=o.flatness / (gaussians * self._reach),
            needle_pull=o.needles / gaussians,
            # In a scene of reach 1 the published factor times the rate of means.
            noise=o.noise * place / self._reach**2 if o.densify == "mcmc" else 0.0,
        )

    def surfaces(self, step: int) -> bool:
        """Return whether surfaces are compared."""
        o = self._options
        return (o.normals > 0.0 or o.smoothness > 0.0) and step >= o.surfaces_from * o.steps

    def fades(self, step: int) -> bool:
        """Return whether, after this many steps, all opacities are lowered: not so late that they could not recover."""
        o = self._options
        due = step // o.fade_every > (step - o.relocate_every) // o.fade_every
        return o.densify == "gradient" and due and step + o.fade_every <= o.relocate_until * o.steps

    def relocates(self, step: int) -> bool:
        """Return whether, after this many steps, what shows nothing is moved."""
        o = self._options
        return step % o.relocate_every == 0 and min(_SETTLE, o.steps // 4) <= step <= o.relocate_until * o.steps

    def degree(self, step: int) -> int:
        """Return the degree of the harmonics."""
        return min(self._options.degree, step // self._options.degree_every)


def reduced(image: ArrayU8, factor: int) -> ArrayF32:
    """Return (H, W, 3) in [0, 1], every `factor` pixels each way their mean; what does not fill a whole one is left out."""
    if factor == 1:
        return image.astype(np.float32) / np.float32(255.0)
    h, w = image.shape[0] // factor, image.shape[1] // factor
    whole = image[: h * factor, : w * factor].reshape(h, factor, w, factor, 3)
    return np.asarray(whole.mean(axis=(1, 3), dtype=np.float32) / np.float32(255.0))
