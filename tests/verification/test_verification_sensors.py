"""The figures of the sensors are as they must be, and each kind of check can fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from airworthy.optics.projections import Pinhole
from airworthy.scenes import SceneBatch
from airworthy.sensors import SampleClock
from airworthy.sensors.noise import measure
from airworthy.verification import sensor_figures, sensors
from airworthy.verification.published import Figure
from airworthy.verification.sensors import exact_step, lens_figures


def test_all_are_as_they_must_be() -> None:
    figures = list(sensor_figures())
    assert len(figures) == 25
    assert [f for f in figures if not f.passed] == []


def failing(figures: Iterator[Figure]) -> list[str]:
    return [f.name for f in figures if not f.passed]


def test_a_lens_that_is_off_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    unproject = Pinhole.unproject
    monkeypatch.setattr(Pinhole, "unproject", lambda self, pixels: unproject(self, np.asarray(pixels) + 2e-3))
    assert [name.split(":")[0] for name in failing(lens_figures(100))] == ["Lens pinhole", "Lens plumb-bob"]


def test_noise_of_the_wrong_size_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "measure", lambda values, *rest: 1.02 * measure(values, *rest))
    assert len(failing(sensors._noise(10_000))) >= 5


def test_beacons_seen_through_walls_show(monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.sensors import build

    monkeypatch.setattr(build, "occluded", lambda batch, start, *rest: np.zeros(len(start), bool))
    assert sensors._hidden_wrongly() == 2


def test_beacons_hidden_by_their_own_gate_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sensors._gate_beacons().measured == 0
    monkeypatch.setattr(SceneBatch, "beacon_groups", lambda self: np.zeros((1, 4), np.int32))
    assert sensors._gate_beacons().measured > 600


def test_a_shadow_elsewhere_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.sensors import camera

    shadow = camera.stereo_shadow
    monkeypatch.setattr(camera, "stereo_shadow", lambda *args: np.roll(shadow(*args), 3, axis=2))
    assert len(failing(sensors._stereo())) == 1


def test_a_clock_that_rounds_down_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = SampleClock.step_of
    monkeypatch.setattr(SampleClock, "step_of", lambda self, sample: steps(self, sample) - (np.asarray(sample) % 7 == 3))
    figure = next(sensors._stamps())
    assert figure.measured == 1
    assert not figure.passed


@pytest.mark.parametrize(("sample", "rate", "step"), [(0, 7, 0), (1, 7, 138), (7, 7, 960), (1, 60, 16), (29, 14.5, 1920)])
def test_exact_steps(sample: int, rate: float, step: int) -> None:
    assert exact_step(sample, rate, 960.0) == step


def test_a_large_profile_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*args: Any) -> dict[str, int]:
        return {"textures": 3_000_000_000}

    monkeypatch.setattr(sensors, "memory", taken)
    assert not sensors._memory().passed
