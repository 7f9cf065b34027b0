"""What a real camera adds to an ideal image: which pieces, presets, and how they are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.optics.tone import CURVES, Curve
from airworthy.sensors.realism.pieces import (
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    MotionBlur,
    Quantization,
    RollingShutter,
    SensorNoise,
    Vignetting,
)

Output = Literal["linear", "srgb"]


@dataclass(frozen=True)
class Realism:
    """All pieces, in the order in which light passes them; None switches one off.

    Raises:
        AirworthyError: If there is dirt without bloom, or the output or curve is unknown.
    """

    motion_blur: MotionBlur | None = None
    rolling_shutter: RollingShutter | None = None
    depth_of_field: DepthOfField | None = None
    vignetting: Vignetting | None = None
    chromatic_aberration: ChromaticAberration | None = None
    bloom: Bloom | None = None
    lens_dirt: LensDirt | None = None
    auto_exposure: AutoExposure | None = None
    noise: SensorNoise | None = None
    quantization: Quantization | None = None
    output: Output = "linear"
    """"linear": float32 as it came. "srgb": 8 bit, through the tone curve."""
    curve: Curve = "filmic"
    """Of the 8-bit output."""

    def __post_init__(self) -> None:
        check_fields(self, "Realism.")
        if self.lens_dirt is not None and self.bloom is None:
            raise AirworthyError("Lens dirt shows only in bloom; give `bloom=Bloom()` too.")
        if self.output not in get_args(Output) or self.curve not in CURVES:
            raise AirworthyError(
                f"A camera's output is {self.output!r} by the curve {self.curve!r}; expected 'linear' or 'srgb', and one of "
                f"{', '.join(CURVES)}."
            )

    @property
    def samples(self) -> int:
        """Images that one image is the mean of."""
        blur, lens = self.motion_blur, self.depth_of_field
        exposures = blur.samples if blur is not None and blur.percent > 0.0 else 1
        return max(exposures, lens.samples if lens is not None and lens.method == "lens" else 1)

    def variant(self, **changes: Any) -> Realism:
        """Return the same with other pieces.

        Raises:
            UnknownNameError: If there is no such piece.
        """
        for name in changes:
            if name not in self.__dataclass_fields__:
                raise unknown_name("piece of camera realism", name, self.__dataclass_fields__)
        return replace(self, **changes)


REALISM: dict[str, Realism] = {
    "ideal": Realism(),
    "cinematic": Realism(
        motion_blur=MotionBlur(0.5, 8),
        # At these numbers the lens blurs what is very near, by a pixel or two: the fast way is good enough.
        depth_of_field=DepthOfField(method="gather"),
        vignetting=Vignetting(0.3),
        chromatic_aberration=ChromaticAberration(),
        bloom=Bloom(),
        lens_dirt=LensDirt(),
        auto_exposure=AutoExposure(),
        noise=SensorNoise(),
        quantization=Quantization(),
        output="srgb",
    ),
}
"""Presets. "ideal": every piece off, images stay what they are, bit for bit."""

_PIECES: dict[str, Any] = {
    "motion_blur": MotionBlur,
    "rolling_shutter": RollingShutter,
    "depth_of_field": DepthOfField,
    "vignetting": Vignetting,
    "chromatic_aberration": ChromaticAberration,
    "bloom": Bloom,
    "lens_dirt": LensDirt,
    "auto_exposure": AutoExposure,
    "noise": SensorNoise,
    "quantization": Quantization,
}


def realism(what: Realism | str | Mapping[str, Any] | None) -> Realism | None:
    """Return settings from a preset's name, from a table as in a TOML file, or as they are.

    A table names pieces: `{preset = "cinematic", bloom = false, vignetting = {strength = 0.5}}`; true takes a piece's defaults.

    Raises:
        AirworthyError: If a name is unknown or a number is out of range.
    """
    if what is None or isinstance(what, Realism):
        return what
    if isinstance(what, str):
        if what not in REALISM:
            raise unknown_name("preset of camera realism", what, REALISM)
        return REALISM[what]
    rest = dict(what)
    base = realism(str(rest.pop("preset", "ideal"))) or Realism()
    return base.variant(**{name: _piece(name, value) for name, value in rest.items()})


def _piece(name: str, value: Any) -> Any:
    kind = _PIECES.get(name)
    if kind is None:
        return value
    if isinstance(value, bool) or value is None:
        return kind() if value else None
    if not isinstance(value, Mapping):
        raise AirworthyError(f"The piece {name!r} of camera realism is {value!r}; expected true, false or a table.")
    known = [item.name for item in fields(kind)]
    for key in value:
        if key not in known:
            raise unknown_name(f"setting of {name!r}", str(key), known)
    return kind(**value)
