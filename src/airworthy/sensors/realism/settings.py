"""What a real camera adds to an ideal image: which pieces, presets, and how they are named.

The numbers of every piece of camera realism.

Numbers without a source of their own are the defaults of spec/flightgoggles 2.2; FlightGoggles publishes none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.optics.exposure import LINEAR_EV, Metering, ev100
from airworthy.optics.tone import CURVES, Curve
from airworthy.sensors.realism.rain import RainDrops, RainStreaks

Focusing = Literal["lens", "gather"]
# Ours: each sample is a whole image.
SAMPLES_MAX = 256


def _check(piece: Any, **bounds: tuple[float, float]) -> None:
    """Check that every named field is a finite number within its bounds (both included)."""
    for name, (low, high) in bounds.items():
        value = getattr(piece, name)
        if not (math.isfinite(value) and low <= value <= high):
            raise AirworthyError(f"{type(piece).__name__}.{name} is {value}; expected a number from {low:g} to {high:g}.")


@dataclass(frozen=True)
class MotionBlur:
    """The mean of several exposures while the shutter is open.

    Raises:
        AirworthyError: If a number is out of range; so of every piece.
    """

    # Source of the defaults of all pieces but noise and quantisation: spec/flightgoggles 2.2, which names them ours: the paper
    # prints none.
    percent: float = 0.0
    """Share of the frame period that the shutter is open, ending at the stamp; 0: an instant."""
    samples: int = 8

    def __post_init__(self) -> None:
        check_fields(self, "MotionBlur.")
        _check(self, percent=(0.0, 1.0), samples=(1, SAMPLES_MAX))


@dataclass(frozen=True)
class RollingShutter:
    """Rows are exposed one after the other, the last one until the stamp."""

    # Ours: a rolling chip needs part of its frame period to read out; half is common.
    readout: float = 0.5
    """Share of the frame period from row to row, times the number of rows."""

    def __post_init__(self) -> None:
        check_fields(self, "RollingShutter.")
        _check(self, readout=(0.0, 1.0))


@dataclass(frozen=True)
class DepthOfField:
    """A thin lens in focus at one depth."""

    f_number: float = 5.6
    focus: float = 10.0
    """Depth of what is sharp [m]."""
    sensor_height: float = 4.8e-3
    """Height of the image on the chip [m]."""
    samples: int = 16
    """Points on the lens, or places that are gathered from."""
    method: Focusing = "lens"
    """"lens": rays through points of the aperture, exact. "gather": one image blurred by its depth, fast."""

    def __post_init__(self) -> None:
        check_fields(self, "DepthOfField.")
        _check(self, f_number=(0.1, 1e3), focus=(1e-2, 1e6), sensor_height=(1e-5, 1.0), samples=(1, SAMPLES_MAX))
        if self.method not in get_args(Focusing):
            raise unknown_name("method of depth of field", self.method, get_args(Focusing))


@dataclass(frozen=True)
class Vignetting:
    """Light falls off with cos^4 of the angle off the axis."""

    strength: float = 0.3
    """0: none, 1: all of cos^4."""

    def __post_init__(self) -> None:
        check_fields(self, "Vignetting.")
        _check(self, strength=(0.0, 1.0))


@dataclass(frozen=True)
class ChromaticAberration:
    """Red is imaged larger and blue smaller, about the principal point."""

    shift: float = 0.002
    """Scale of red less 1, and 1 less that of blue."""

    def __post_init__(self) -> None:
        check_fields(self, "ChromaticAberration.")
        _check(self, shift=(-0.2, 0.2))


@dataclass(frozen=True)
class Bloom:
    """A halo around what is brighter than a threshold."""

    # Source of all three: spec/flightgoggles 2.2 (threshold 1.0 linear, 5 levels, weight 0.05): ours, since the
    # paper publishes no values; 1 is white, so that only what is brighter glows.
    threshold: float = 1.0
    """Linear value of the brightest channel, before exposure."""
    levels: int = 5
    """Of the pyramid; each is half as large as the one before."""
    weight: float = 0.05

    def __post_init__(self) -> None:
        check_fields(self, "Bloom.")
        _check(self, threshold=(0.0, 1e6), levels=(1, 12), weight=(0.0, 10.0))


@dataclass(frozen=True)
class LensDirt:
    """Specks and smears on the lens, which show where the bloom shines on them."""

    # Source: spec/flightgoggles 2.2: intensity 0.3, ours.
    intensity: float = 0.3
    seed: int = 7
    # Any number would do.
    """Of the specks' places; two lenses need two."""

    def __post_init__(self) -> None:
        check_fields(self, "LensDirt.")
        _check(self, intensity=(0.0, 1.0))


@dataclass(frozen=True)
class AutoExposure:
    """Follows the mean luminance, with a first-order lag."""

    # Source of target, lag and limit: spec/flightgoggles 2.2: ours as well; 0.18 is a photographer's middle grey.
    target: float = 0.18
    """Mean linear luminance wanted."""
    time_constant: float = 0.5
    """[s]; 0: at once."""
    limit: float = 4.0
    """Most stops up or down [EV]."""
    start: float | None = None
    """Of a flight [EV]; None: settled on its first image."""
    metering: Metering = "mean"
    """"mean": all pixels alike. "center": the middle most. "highlights": so that little is brighter than white."""
    compensation: float = 0.0
    """Added to what the meter asks for [EV]; above 0 brighter."""
    opening: float = 0.0
    """Stops up that a longer shutter and a wider aperture give before light is amplified, and its noise with it [EV]."""

    def __post_init__(self) -> None:
        check_fields(self, "AutoExposure.")
        bounds = {"target": (1e-6, 1e6), "time_constant": (0.0, 1e6), "limit": (0.0, 32.0), "compensation": (-16.0, 16.0)}
        _check(self, **bounds, opening=(0.0, 32.0))
        if self.start is not None:
            _check(self, start=(-self.limit, self.limit))

    @classmethod
    def of_camera(cls, f_number: float, time: float, iso: float, base_iso: float = 100.0, **more: Any) -> AutoExposure:
        """Return the automatic of a camera that brightens up to these settings, and no further: a dark night stays dark.

        A camera that films at 30 Hz with f/2.8 and up to ISO 12,800 reaches EV 0.9: a lit street, not ground under stars.

        Args:
            f_number: Of the aperture, wide open.
            time: Longest that the shutter is open [s]: a frame's period where it films.
            iso: Highest sensitivity.
            base_iso: Lowest; what lies above it is amplification.
            more: The other fields.

        Raises:
            AirworthyError: A number is not above 0, or these settings are for more light than `LINEAR_EV`'s.
        """
        limit = LINEAR_EV - ev100(f_number, time, iso)
        if not limit >= 0.0:
            raise AirworthyError(
                f"An automatic up to f/{f_number:g}, {time:g} s and ISO {iso:g} ends at EV {LINEAR_EV - limit:.1f}; expected at"
                f" most {LINEAR_EV:g}, a sunny day. Give the longest shutter and the highest sensitivity."
            )
        return cls(limit=limit, opening=max(LINEAR_EV - ev100(f_number, time, min(base_iso, iso)), 0.0), **more)


@dataclass(frozen=True)
class FixedExposure:
    """An exposure that stays, in EV at ISO 100."""

    ev: float = LINEAR_EV
    """15 leaves linear values as they are (a sunny day), one less is twice as bright; dusk is at 5, a lit street at night at
    3."""

    def __post_init__(self) -> None:
        check_fields(self, "FixedExposure.")
        _check(self, ev=(-32.0, 32.0))

    @classmethod
    def of_camera(cls, f_number: float, time: float, iso: float = 100.0) -> FixedExposure:
        """Return the exposure of a camera's settings.

        Args:
            f_number: Of the aperture.
            time: That the shutter is open [s].
            iso: Sensitivity.
        """
        return cls(ev100(f_number, time, iso))


@dataclass(frozen=True)
class SensorNoise:
    """Shot and read noise in electrons. Our defaults: a small industrial sensor."""

    # Ours: 2,500 electrons at white leave two stops up to the full well.
    photons: float = 4000.0
    """Of a pixel and channel at the linear value 1 without gain."""
    efficiency: float = 0.625
    """Electrons per photon."""
    full_well: float = 10_000.0
    """Electrons at which a pixel saturates."""
    read_noise: float = 3.0
    """Standard deviation [electrons]."""

    def __post_init__(self) -> None:
        check_fields(self, "SensorNoise.")
        _check(self, photons=(1e-3, 1e9), efficiency=(1e-3, 1.0), full_well=(1.0, 1e9), read_noise=(0.0, 1e6))

    @property
    def white(self) -> float:
        """Electrons at the linear value 1."""
        return self.photons * self.efficiency


@dataclass(frozen=True)
class Quantization:
    """Whole counts of a converter."""

    # Ours, as of common machine-vision chips; the full scale is that of the full well above, 10,000 / 2,500.
    bits: int = 12
    full_scale: float = 4.0
    """Linear value of the highest count; values beyond are clipped."""

    def __post_init__(self) -> None:
        check_fields(self, "Quantization.")
        _check(self, bits=(1, 24), full_scale=(1e-6, 1e6))

    @property
    def step(self) -> float:
        """Linear value of one count."""
        return self.full_scale / (2.0**self.bits - 1.0)


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
    exposure: FixedExposure | None = None
    """Instead of `auto_exposure`."""
    rain_streaks: RainStreaks | None = None
    """The first of all pieces, as drops on the lens are the second."""
    rain_drops: RainDrops | None = None

    def __post_init__(self) -> None:
        check_fields(self, "Realism.")
        if self.lens_dirt is not None and self.bloom is None:
            raise AirworthyError("Lens dirt shows only in bloom; give `bloom=Bloom()` too.")
        if self.exposure is not None and self.auto_exposure is not None:
            raise AirworthyError("An exposure is fixed or automatic; give `exposure` or `auto_exposure`, and the other None.")
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
    "exposure": FixedExposure,
    "rain_streaks": RainStreaks,
    "rain_drops": RainDrops,
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
