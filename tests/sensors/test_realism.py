"""Camera realism: its settings, and the chain from light to image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device, device_from
from airworthy.sensors.noise import Draw
from airworthy.sensors.realism import (
    REALISM,
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    MotionBlur,
    Quantization,
    Realism,
    RollingShutter,
    SensorNoise,
    Vignetting,
    realism,
)
from airworthy.sensors.realism.chain import Optics, develop

CAMERA = Pinhole.from_fov(48, 32, vertical=1.0)
OPTICS = Optics.of(CAMERA)


def images(count: int = 4, seed: int = 0) -> np.ndarray:
    """Light of every strength, some of it above what blooms."""
    rng = np.random.default_rng(seed)
    return (rng.lognormal(-1.5, 1.2, (count, 32, 48, 3)) * rng.uniform(0.2, 3.0, (count, 1, 1, 1))).astype(np.float32)


def test_ideal_is_the_identity_bit_for_bit() -> None:
    light = images()
    assert develop(light, REALISM["ideal"], OPTICS, draw=Draw.of(4)) is light


def test_the_defaults_are_the_specifications() -> None:
    """spec/flightgoggles 2.2."""
    assert MotionBlur() == MotionBlur(0.0, 8)
    film = REALISM["cinematic"]
    assert film.auto_exposure == AutoExposure(0.18, 0.5, 4.0)
    assert film.bloom == Bloom(1.0, 5, 0.05)
    assert film.lens_dirt is not None
    assert film.lens_dirt.intensity == 0.3
    assert film.vignetting == Vignetting(0.3)
    assert film.chromatic_aberration == ChromaticAberration(0.002)
    lens = film.depth_of_field
    assert lens is not None
    assert (lens.f_number, lens.focus, lens.sensor_height) == (5.6, 10.0, 4.8e-3)
    assert film.rolling_shutter is None
    assert all(getattr(REALISM["ideal"], name) is None for name in ("bloom", "noise", "motion_blur", "quantization"))


def test_pieces_act_in_their_order() -> None:
    """The whole chain is its pieces one after the other; exposure comes after bloom and before noise."""
    light = images()
    film = REALISM["cinematic"].variant(output="linear")
    draw = Draw.of(4, seed=3, sample=5)
    whole = develop(light, film, OPTICS, np.zeros(4), 0.1, draw)
    only = {name: getattr(film, name) for name in ("vignetting", "chromatic_aberration", "bloom", "lens_dirt")}
    glass = develop(light, Realism(**only), OPTICS)
    rest = Realism(auto_exposure=film.auto_exposure, noise=film.noise, quantization=film.quantization)
    np.testing.assert_array_equal(whole, develop(glass, rest, OPTICS, np.zeros(4), 0.1, draw))
    shown = develop(light, film.variant(output="srgb"), OPTICS, np.zeros(4), 0.1, draw)
    np.testing.assert_array_equal(shown, to_8bit(whole))
    assert shown.dtype == np.uint8


def test_permuting_environments_permutes_images() -> None:
    """Nothing of an image depends on its neighbours in the batch, nor on how many there are."""
    light, order = images(5), np.array([3, 0, 4, 1, 2])
    draw = Draw.of(5, seed=1, sample=7, sensor="front")
    stops = np.array([0.5, -1.0, np.nan, 2.0, 0.0])
    film = REALISM["cinematic"]
    after, moved = stops.copy(), stops[order].copy()
    whole = develop(light, film, OPTICS, after, 0.02, draw)
    turned = Draw(draw.keys[order], draw.sample[order], draw.sensor)
    np.testing.assert_array_equal(develop(light[order], film, OPTICS, moved, 0.02, turned), whole[order])
    np.testing.assert_array_equal(moved, after[order])
    alone = Draw(draw.keys[3:4], draw.sample[3:4], draw.sensor)
    np.testing.assert_array_equal(develop(light[3:4], film, OPTICS, stops[3:4].copy(), 0.02, alone)[0], whole[3])


def test_settings_from_names_and_tables() -> None:
    assert realism(None) is None
    assert realism("cinematic") is REALISM["cinematic"]
    mixed = realism({"preset": "cinematic", "bloom": {"weight": 0.1}, "noise": False, "rolling_shutter": True})
    assert mixed is not None
    assert (mixed.bloom, mixed.noise, mixed.rolling_shutter) == (Bloom(weight=0.1), None, RollingShutter())
    assert mixed.vignetting == Vignetting(0.3)
    entry = {"kind": "camera", "projection": {"model": "pinhole", "width": 8, "height": 6, "vertical_fov": 60.0}}
    camera = make_sensor(device_from("mine", {**entry, "channels": ["rgb"], "realism": {"vignetting": {"strength": 0.5}}}))
    assert camera.real.settings == Realism(vignetting=Vignetting(0.5))  # type: ignore[attr-defined]


def test_unknown_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match="cinematic"):
        realism("cinematik")
    with pytest.raises(UnknownNameError, match="vignetting"):
        realism({"vignete": True})
    with pytest.raises(UnknownNameError, match="strength"):
        realism({"vignetting": {"strenght": 1.0}})
    with pytest.raises(AirworthyError, match="expected true, false or a table"):
        realism({"bloom": 3})
    with pytest.raises(AirworthyError, match="only cameras have a realism"):
        make_sensor(device("base_lidar").variant(realism="cinematic"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: MotionBlur(1.5),
        lambda: MotionBlur(samples=0),
        lambda: RollingShutter(-1.0),
        lambda: AutoExposure(target=0.0),
        lambda: AutoExposure(limit=-1.0),
        lambda: AutoExposure(start=9.0),
        lambda: Bloom(levels=0),
        lambda: Bloom(weight=float("nan")),
        lambda: LensDirt(-1.0),
        lambda: Vignetting(2.0),
        lambda: ChromaticAberration(1.0),
        lambda: DepthOfField(focus=0.0),
        lambda: SensorNoise(full_well=0.0),
        lambda: Quantization(bits=99),
        lambda: Realism(curve="log"),  # type: ignore[arg-type]
        lambda: Realism(output="jpeg"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused_in_one_sentence(make: Any) -> None:
    with pytest.raises(AirworthyError, match=r"expected|Known: "):
        make()


def test_dirt_needs_bloom() -> None:
    with pytest.raises(AirworthyError, match="bloom"):
        Realism(lens_dirt=LensDirt())
    with pytest.raises(UnknownNameError, match="gather"):
        DepthOfField(method="gater")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pieces", "samples"),
    [
        ({}, 1),
        ({"depth_of_field": DepthOfField(samples=8, method="gather")}, 1),
        ({"depth_of_field": DepthOfField(samples=8, method="lens")}, 8),
        ({"motion_blur": MotionBlur(0.0, 4)}, 1),
        ({"motion_blur": MotionBlur(0.5, 4), "depth_of_field": DepthOfField(samples=8, method="lens")}, 8),
        ({"motion_blur": MotionBlur(0.5, 16), "depth_of_field": DepthOfField(samples=8, method="lens")}, 16),
    ],
)
def test_an_image_is_the_mean_of_as_many_as_its_pieces_ask(pieces: dict[str, Any], samples: int) -> None:
    assert Realism(**pieces).samples == samples
