"""What a data set is made of: roll-outs, the place they are seen in, and how they lie in files."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.synthesis.cameras import view_side
from airworthy.learning.synthesis.config import ROLLOUTS_MAX, SynthesisConfig

__all__ = ["DatasetConfig", "config_from"]

SEED_LIMIT = 1 << 64
LIGHT_MAX, NOISE_MAX = 100.0, 255.0
"""Of an image's brightness, as a factor, and of its noise [counts]: beyond them nothing is left to see."""
LATER: dict[str, Any] = {"clear": 0.0}
"""Fields that came after data sets had been made: at these values they are left out of what is described, so that a data set of
before is still itself."""


@dataclass(frozen=True)
class DatasetConfig(SynthesisConfig):
    """A data set of expert roll-outs.

    Raises:
        AirworthyError: If a number is out of range or a name unknown.
    """

    scene: str = "hall"
    """What is seen: a scene by name (see `airworthy scenes`) or path."""
    clear: float = 0.0
    """Each course is seen in the scene without what stands this near its path [m], as `airworthy evaluate` clears it; 0: as it
    is."""
    view: str = "224"
    """Of the images: the side of the policy's view [px] (224 as published, 112 shows the same in a quarter of the pixels), full
    for the camera's own, none for no images."""
    camera: str = "camera"
    """Of the vehicle's record; for carl, camera is the idealised mount and camera_calibrated the measured one."""
    light: tuple[float, float] = (1.0, 1.0)
    """Brightness of each roll-out, uniform between these factors of linear radiance."""
    image_noise: float = 0.0
    """Standard deviation of each pixel's noise [counts of 255]."""
    shard: int = 50
    """Roll-outs per shard; the last shard of a course is held out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        view_side(self.view)
        low, high = self.light
        if not 0.0 < low <= high <= LIGHT_MAX:
            raise AirworthyError(
                f"Brightness is between {low} and {high}; expected two factors above 0, up to {LIGHT_MAX:g}, the smaller one"
                " first."
            )
        if self.image_noise > NOISE_MAX:
            raise AirworthyError(f"The images have noise of {self.image_noise} counts; expected 0 to {NOISE_MAX:g}.")
        if not 1 <= self.shard <= ROLLOUTS_MAX:
            raise AirworthyError(f"A shard has {self.shard} roll-outs; expected 1 to {ROLLOUTS_MAX:,}.")
        if not 0 <= self.seed < SEED_LIMIT:
            raise AirworthyError(f"The seed is {self.seed}; expected 0 to 2^64 - 1.")
        if len(set(self.courses)) < len(self.courses):
            raise AirworthyError(f"The courses {', '.join(self.courses)} name one twice; name each once.")

    @property
    def pictured(self) -> bool:
        """Whether there are images."""
        return self.view != "none"

    def described(self) -> dict[str, Any]:
        """Every field as plain data, in order, but those of `LATER` that are not used."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if name not in LATER or value != LATER[name]}

    @property
    def place_words(self) -> str:
        """What is seen, in words."""
        if not self.pictured:
            return "none"
        return f"{self.scene}, cleared {self.clear:g} m round each course" if self.clear else self.scene


def config_from(values: Mapping[str, Any], where: str) -> DatasetConfig:
    """A configuration from what `described` gave.

    Args:
        values: By field.
        where: The file they are from, for the message.

    Raises:
        AssetError: A field is missing, unknown or of another type.
    """
    hints = typing.get_type_hints(DatasetConfig)
    names = {field.name for field in fields(DatasetConfig)}
    values = {**LATER, **values}
    wrong = sorted(names.symmetric_difference(values))
    if wrong:
        raise AssetError(f"{where!r} has no field {wrong[0]!r}, or one too many: another version wrote it, or it was edited.")
    try:
        return DatasetConfig(**{name: _typed(values[name], hints[name], name) for name in sorted(names)})
    except (TypeError, AirworthyError) as error:
        raise AssetError(f"{where!r} holds no usable configuration: {error}") from error


def _typed(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, types.GenericAlias) and isinstance(value, list):
        wanted = typing.get_args(hint)
        if wanted[-1] is Ellipsis or len(wanted) == len(value):
            return tuple(_typed(item, wanted[0], name) for item in value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise TypeError(f"{name} cannot be {value!r}."[:200])
