"""What a user chooses about the training of splats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

from airworthy.core.errors import AirworthyError

__all__ = ["TrainOptions"]


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
    """Gaussians at first: at the set's sparse points, where swept planes agree, at random in the views' volume; auto: at points
    where the set has 1,000 or more, else swept."""
    start_share: float = 0.5
    """How many Gaussians at first, over `count`."""
    grow: float = 1.05
    """Factor on their number each time, up to `count`."""
    relocate_every: int = 100
    """Steps after which Gaussians that show nothing are moved to where something is to be shown."""
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
    noise: float = 5e5
    """Random motion of what is nearly transparent, over its rate and covariance; 0: none."""
    antialiased: bool = False
    """Render with the opacity of narrow Gaussians lowered; the file is then to be rendered so, too."""
    background: Literal["black", "white", "random"] = "black"
    """Behind everything; random: another colour at every step."""
    exposure: bool = False
    """Let every image have its own affine map of colours (photographs with changing exposure or white balance)."""
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

    def __post_init__(self) -> None:
        positive = ("steps", "count", "degree_every", "relocate_every", "judge_every")
        self._check(positive, lambda x: x >= 1, "1 or more")
        rates = ("place_rate", "scale_rate", "rotation_rate", "opacity_rate", "color_rate", "camera_rate")
        self._check((*rates, "opacity_pull", "scale_pull", "noise", "checkpoint_seconds"), lambda x: 0 <= x < 1e9, "0 or more")
        self._check(("start_share", "relocate_until", "likeness"), lambda x: 0.0 <= x <= 1.0, "0 to 1")
        self._check(("coarse",), lambda x: 0.0 <= x <= 0.5, "0 to 0.5")
        self._check(("grow",), lambda x: 1.0 <= x <= 2.0, "1 to 2")
        self._check(("degree",), lambda x: x in range(4), "0 to 3")
        self._check(("seed",), lambda x: 0 <= x < 1 << 63, "0 or more")
        choices = {"start": ("auto", "points", "sweep", "random"), "background": ("black", "white", "random")}
        for name, known in {**choices, "container": ("ply", "spz")}.items():
            if getattr(self, name) not in known:
                raise AirworthyError(f"Training got {name}={getattr(self, name)!r}; expected one of {', '.join(known)}.")
        if self.count > 50_000_000:
            raise AirworthyError(f"Training got count={self.count}; expected at most 50,000,000 Gaussians.")

    def _check(self, names: tuple[str, ...], fits: Callable[[Any], bool], expected: str) -> None:
        for name in names:
            if not fits(getattr(self, name)):
                raise AirworthyError(f"Training got {name}={getattr(self, name)}; expected {expected}.")

    def differences(self, other: dict[str, object]) -> list[str]:
        """What was chosen otherwise before, of what changes the result."""
        free = ("checkpoint_seconds", "judge_every")
        names = [field.name for field in fields(self) if field.name not in free]
        return [f"{n} {other.get(n)!r} before, {getattr(self, n)!r} now" for n in names if other.get(n) != getattr(self, n)]
