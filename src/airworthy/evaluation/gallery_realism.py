"""What each piece of camera realism does to one picture, for the gallery."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import from_euler, multiply
from airworthy.evaluation.pictures import Picture
from airworthy.scenes import SceneBatch
from airworthy.sensors import Draw, View, device, make_sensor
from airworthy.sensors.realism import (
    REALISM,
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    MotionBlur,
    Realism,
    RollingShutter,
    SensorNoise,
    Vignetting,
)
from airworthy.sensors.tone import to_8bit

Floats = NDArray[np.float64]

RATE = 30.0
"""Images per second."""
SPEED = 2.0
"""Sideways speed in the pictures with motion [m/s]."""
TURN = 1.2
"""Turning rate in them [rad/s]."""

# Name, what is to be seen, settings, and whether the camera moves.
_SHOWN: tuple[tuple[str, str, Realism, bool], ...] = (
    ("ideal", "everything off", REALISM["ideal"], False),
    (
        "motion blur",
        "shutter open 60 % of a frame, 2 m/s sideways and 1.2 rad/s",
        Realism(motion_blur=MotionBlur(0.6, 16)),
        True,
    ),
    ("rolling shutter", "rows over 90 % of a frame, the same motion", Realism(rolling_shutter=RollingShutter(0.9)), True),
    ("depth of field", "f/1.4, focus at 3 m", Realism(depth_of_field=DepthOfField(1.4, 3.0, samples=32)), False),
    ("vignetting", "all of cos^4", Realism(vignetting=Vignetting(1.0)), False),
    ("chromatic aberration", "five times the default", Realism(chromatic_aberration=ChromaticAberration(0.01)), False),
    ("bloom", "from linear 1 on, four times the default weight", Realism(bloom=Bloom(weight=0.2)), False),
    ("lens dirt", "where the bloom shines on it", Realism(bloom=Bloom(weight=0.3), lens_dirt=LensDirt(1.0)), False),
    ("auto-exposure", "settled on a mean luminance of 0.18", Realism(auto_exposure=AutoExposure()), False),
    (
        "shot and read noise",
        "600 photons at white, 12 electrons of read noise",
        Realism(noise=SensorNoise(600.0, read_noise=12.0)),
        False,
    ),
    ("cinematic", "the preset, still", REALISM["cinematic"], False),
    ("cinematic, moving", "the preset, in motion", REALISM["cinematic"], True),
)


def realism_pictures(batch: SceneBatch, position: Floats, attitude: Floats, seed: int) -> list[tuple[str, str, Picture]]:
    """Name, words and picture of each piece alone, and of the presets.

    Args:
        batch: Where.
        position: Of the camera, world [m], (3,).
        attitude: Of its mount, (4,).
        seed: Of the noise.
    """
    return [(name, words, _taken(batch, position, attitude, kind, moving, seed)) for name, words, kind, moving in _SHOWN]


def _taken(batch: SceneBatch, position: Floats, attitude: Floats, kind: Realism, moving: bool, seed: int) -> Picture:
    """The second of two images: shutters need to know where the camera was."""
    camera = make_sensor(device("flightgoggles_camera_v3").variant(realism=kind, rate=RATE))
    picture: NDArray[np.generic] = np.zeros((1, 1, 3), np.uint8)
    for number in range(2):
        ahead = (number - 1) / RATE if moving else 0.0
        turned = multiply(from_euler(0.0, 0.0, TURN * ahead), attitude)
        view = View(
            (position + np.array([0.0, SPEED * ahead, 0.0]))[None],
            np.asarray(turned, float)[None],
            np.zeros(1, int),
            Draw.of(1, seed=seed, sample=number, sensor="gallery"),
        )
        picture = camera.capture(batch, view, ("rgb",))["rgb"][0]
    return np.asarray(picture) if picture.dtype == np.uint8 else to_8bit(picture)
