"""Exposure in EV: cameras' settings, metering, and the pieces of realism that use them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.optics.exposure import LINEAR_EV, ev100, exposure_factor, metered
from airworthy.optics.tone import luminance
from airworthy.scenes.sky.atmosphere import LUX_PER_UNIT
from airworthy.sensors.realism import AutoExposure, FixedExposure, Realism, realism
from airworthy.sensors.realism.chain import Optics, develop, next_stops, wanted_stops

OPTICS = Optics(np.ones((8, 12), np.float32), (6.0, 4.0))


def image(*values: float) -> np.ndarray:
    """Grey images (c, 8, 12, 3)."""
    return np.ones((len(values), 8, 12, 3), np.float32) * np.float32(values)[:, None, None, None]


def test_ev_of_a_camera() -> None:
    assert ev100(1.0, 1.0) == 0.0
    # Sunny 16: f/16, one over the sensitivity; cameras' 1/125 s is nominal for 1/128.
    assert ev100(16.0, 1.0 / 128.0) == 15.0
    assert ev100(16.0, 1.0 / 128.0, 400.0) == 13.0
    np.testing.assert_array_equal(exposure_factor([LINEAR_EV, 14.0, 17.0]), [1.0, 2.0, 0.25])
    # ISO 12232 by saturation: white is 1.2 x 2^EV cd/m2.
    assert LUX_PER_UNIT / exposure_factor(12.0) == pytest.approx(1.2 * 2.0**12)


@pytest.mark.parametrize("numbers", [(0.0, 0.01, 100.0), (4.0, -1.0, 100.0), (4.0, 0.01, math.inf)])
def test_settings_that_no_camera_has_are_refused(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(AirworthyError, match="expected a finite number above 0"):
        ev100(*numbers)


def test_meters() -> None:
    flat = image(0.3, 2.0)
    for name in ("mean", "center"):
        np.testing.assert_allclose(metered(flat, name), [0.3, 2.0], rtol=1e-6)  # type: ignore[arg-type]
    # A bright window at the border of a dark room.
    window = np.full((1, 80, 120, 3), 0.05, np.float32)
    window[:, :, 108:] = 4.0
    mean, center, held = (float(metered(window, name)[0]) for name in ("mean", "center", "highlights"))  # type: ignore[arg-type]
    assert mean == pytest.approx(0.9 * 0.05 + 0.1 * 4.0, rel=1e-5)
    assert center < 0.2 * mean
    # What the meter asks for shows the window as white.
    assert held == pytest.approx(0.18 * 4.0, rel=1e-5)
    window[0, 3, 4] = np.nan
    assert np.isfinite([float(metered(window, name)[0]) for name in ("mean", "center", "highlights")]).all()  # type: ignore[arg-type]
    assert metered(np.full((1, 4, 4, 3), np.nan, np.float32), "center")[0] == 0.0
    with pytest.raises(AirworthyError, match="Unknown metering 'spot'"):
        metered(flat, "spot")  # type: ignore[arg-type]


def test_automatic_exposure_meters_and_compensates() -> None:
    assert wanted_stops(0.09, AutoExposure()) == pytest.approx(1.0)
    assert wanted_stops(0.09, AutoExposure(compensation=-0.5)) == pytest.approx(0.5)
    # The limit is of the camera, whatever is asked for.
    assert wanted_stops(0.09, AutoExposure(limit=2.0, compensation=9.0)) == pytest.approx(2.0)
    stops = np.full(1, np.nan)
    scene = np.full((1, 8, 12, 3), 0.02, np.float32)
    scene[:, :, :2] = 1.5
    settings = Realism(auto_exposure=AutoExposure(metering="highlights", time_constant=0.0))
    shown = develop(scene, settings, OPTICS, stops)
    assert luminance(shown).max() == pytest.approx(1.0, rel=1e-4)
    assert next_stops(stops, metered(scene, "highlights"), 0.1, AutoExposure(time_constant=0.0)) == pytest.approx(stops)


def test_a_fixed_exposure_stays() -> None:
    scenes = image(0.1, 0.4)
    np.testing.assert_array_equal(develop(scenes, Realism(exposure=FixedExposure()), OPTICS), scenes)
    np.testing.assert_array_equal(develop(scenes, Realism(exposure=FixedExposure(13.0)), OPTICS), 4.0 * scenes)
    assert FixedExposure.of_camera(2.8, 1.0 / 60.0, 800.0).ev == pytest.approx(5.88, abs=0.01)
    assert realism({"exposure": {"ev": 12.0}}) == Realism(exposure=FixedExposure(12.0))
    with pytest.raises(AirworthyError, match="fixed or automatic"):
        realism({"preset": "cinematic", "exposure": True})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"exposure": {"ev": 99.0}}, "FixedExposure.ev is 99"),
        ({"auto_exposure": {"metering": "spot"}}, r"Unknown AutoExposure\.metering 'spot'"),
        ({"auto_exposure": {"compensation": 20.0}}, "AutoExposure.compensation is 20"),
    ],
)
def test_bad_exposures_are_one_sentence(table: dict[str, object], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        realism(table)
