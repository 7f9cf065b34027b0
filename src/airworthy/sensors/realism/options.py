"""What a real camera does to an ideal image: each piece with its numbers (spec/flightgoggles 2.2). A piece that is None is off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.tone import CURVES, Curve


def _need(good: bool, what: str, expected: str) -> None:
    if not good:
        raise AirworthyError(f"{what}; expected {expected}.")


@dataclass(frozen=True)
class MotionBlur:
    """The mean of sub-exposures while the shutter is open."""

    percent: float = 0.0
    """Share of the frame period for which it is open: 0 an instant, 1 all the time."""
    samples: int = 8

    def __post_init__(self) -> None:
        _need(0.0 <= self.percent <= 1.0, f"The shutter is open for {self.percent} of the frame period", "0 to 1")
        _need(1 <= self.samples <= 256, f"Motion blur has {self.samples} samples", "1 to 256")


@dataclass(frozen=True)
class RollingShutter:
    """Rows are exposed one after the other, from the top."""

    line_time: float = 30e-6
    """From one row to the next [s]."""

    def __post_init__(self) -> None:
        _need(self.line_time >= 0.0, f"A rolling shutter's line time is {self.line_time} s", "0 or more")


@dataclass(frozen=True)
class AutoExposure:
    """Gain that follows the image's mean luminance."""

    target: float = 0.18
    """Mean luminance that it strives for."""
    time_constant: float = 0.5
    """[s]"""
    limit: float = 4.0
    """Largest gain and loss, in doublings [EV]."""

    def __post_init__(self) -> None:
        _need(self.target > 0.0, f"Auto-exposure strives for a luminance of {self.target}", "more than 0")
        _need(self.time_constant >= 0.0, f"Auto-exposure has a time constant of {self.time_constant} s", "0 or more")
        _need(self.limit >= 0.0, f"Auto-exposure is limited to {self.limit} EV", "0 or more")


@dataclass(frozen=True)
class Bloom:
    """Light around what is brighter than white."""

    weight: float = 0.05
    threshold: float = 1.0
    levels: int = 5

    def __post_init__(self) -> None:
        _need(0.0 <= self.weight <= 1.0, f"Bloom's weight is {self.weight}", "0 to 1")
        _need(1 <= self.levels <= 12, f"Bloom has {self.levels} levels", "1 to 12")


@dataclass(frozen=True)
class LensDirt:
    """Specks and smears that light up with the bloom; without bloom it shows nothing."""

    intensity: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        _need(self.intensity >= 0.0, f"Lens dirt has intensity {self.intensity}", "0 or more")


@dataclass(frozen=True)
class Vignetting:
    """Natural fall-off: the fourth power of the cosine of the field angle."""

    strength: float = 0.3
    """0 none, 1 all of it."""

    def __post_init__(self) -> None:
        _need(0.0 <= self.strength <= 1.0, f"Vignetting has strength {self.strength}", "0 to 1")


@dataclass(frozen=True)
class ChromaticAberration:
    """Red is imaged a little larger, and blue smaller, than green."""

    k: float = 0.002
    """Share of the radius at the image's corner."""

    def __post_init__(self) -> None:
        _need(abs(self.k) < 0.2, f"Chromatic aberration is {self.k}", "less than 0.2")


@dataclass(frozen=True)
class DepthOfField:
    """A thin lens: what is not in focus becomes a disc."""

    f_number: float = 5.6
    focus: float = 10.0
    """Distance along the optical axis that is sharp [m]."""
    sensor_height: float = 4.8e-3
    """[m]"""
    samples: int = 8
    """Points of the aperture; the larger of this and the motion blur's is taken for both."""

    def __post_init__(self) -> None:
        _need(self.f_number > 0.0, f"The lens has f-number {self.f_number}", "more than 0")
        _need(self.focus > 0.0, f"The lens is focused at {self.focus} m", "more than 0")
        _need(self.sensor_height > 0.0, f"The sensor is {self.sensor_height} m high", "more than 0")
        _need(1 <= self.samples <= 256, f"The aperture has {self.samples} samples", "1 to 256")


@dataclass(frozen=True)
class SensorNoise:
    """Electrons: their number scatters by its root, reading adds some, and the converter counts whole steps."""

    full_well: float = 10_000.0
    """Electrons of a linear value of 1, at a gain of 1."""
    read: float = 6.0
    """Standard deviation of reading [electrons]."""
    bits: int = 10
    """Of the converter; 0: not quantised."""

    def __post_init__(self) -> None:
        _need(self.full_well > 0.0, f"A full well holds {self.full_well} electrons", "more than 0")
        _need(self.read >= 0.0, f"Reading scatters by {self.read} electrons", "0 or more")
        _need(0 <= self.bits <= 24, f"The converter has {self.bits} bits", "0 to 24")


@dataclass(frozen=True)
class Realism:
    """The chain, in the order of light: aperture and shutter, gain, lens, sensor, tone curve."""

    motion_blur: MotionBlur | None = None
    rolling_shutter: RollingShutter | None = None
    depth_of_field: DepthOfField | None = None
    auto_exposure: AutoExposure | None = None
    chromatic_aberration: ChromaticAberration | None = None
    vignetting: Vignetting | None = None
    bloom: Bloom | None = None
    lens_dirt: LensDirt | None = None
    noise: SensorNoise | None = None
    exposure: float = 0.0
    """Fixed gain [EV], besides what auto-exposure finds."""
    curve: Curve = "filmic"
    """Tone curve of 8-bit images."""

    def __post_init__(self) -> None:
        _need(self.curve in CURVES, f"The tone curve is {self.curve!r}", " or ".join(CURVES))
        _need(abs(self.exposure) <= 20.0, f"The exposure is {self.exposure} EV", "-20 to 20")

    def but(self, **changes: Any) -> Realism:
        """This chain with pieces exchanged; None takes one out.

        Raises:
            UnknownNameError: There is no such piece.
        """
        for name in changes:
            if name not in self.__dataclass_fields__:
                raise unknown_name("piece of the realism chain", name, self.__dataclass_fields__)
        return replace(self, **changes)

    @property
    def open_share(self) -> float:
        """Share of the frame period for which the shutter is open."""
        return self.motion_blur.percent if self.motion_blur else 0.0

    @property
    def samples(self) -> int:
        """Sub-exposures per frame."""
        blur = self.motion_blur.samples if self.motion_blur and self.motion_blur.percent > 0.0 else 1
        return max(blur, self.depth_of_field.samples if self.depth_of_field else 1)


PRESETS = {
    "ideal": Realism(curve="linear"),
    "cinematic": Realism(
        motion_blur=MotionBlur(percent=0.5),
        depth_of_field=DepthOfField(),
        auto_exposure=AutoExposure(),
        chromatic_aberration=ChromaticAberration(),
        vignetting=Vignetting(),
        bloom=Bloom(),
        lens_dirt=LensDirt(),
        noise=SensorNoise(),
    ),
}
"""`ideal`: everything off, for measurements; `cinematic`: everything but the rolling shutter, with the specification's values."""


def preset(name: str) -> Realism:
    """A preset by name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in PRESETS:
        raise unknown_name("realism preset", name, PRESETS)
    return PRESETS[name]
