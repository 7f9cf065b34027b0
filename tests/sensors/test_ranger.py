"""Rangers: FlightGoggles' numbers, several directions, rangers on the edge of what they see."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.geometry import Box
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.lidar import ranger
from airworthy.sensors.noise import Draw

GROUND = (Box((100.0, 100.0, 0.5)), (0.0, 0.0, -0.5))


def test_mean_and_variance_at_five_metres(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    """Spec/flightgoggles 10, check 11: mean 5, variance 0.009."""
    count = 40_000
    sensor = make_sensor("lightware_sf11b")
    out = sensor.capture(place(GROUND), view((0.0, 0.0, 5.0), count, draw=Draw.of(count, seed=2)))
    reading = out["range"].astype(float)
    assert reading.shape == (count, 1)
    assert out["valid"].all()
    # 5 standard errors of mean and variance of a normal.
    assert abs(reading.mean() - 5.0) < 5 * math.sqrt(0.009 / count)
    assert abs(reading.var() - 0.009) < 5 * 0.009 * math.sqrt(2 / count)


def test_no_return_is_21_metres_before_noise_and_flagged(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    count = 40_000
    out = make_sensor("lightware_sf11b").capture(place(GROUND), view((0.0, 0.0, 20.1), count, draw=Draw.of(count)))
    assert not out["valid"].any()
    assert abs(out["range"].astype(float).mean() - 21.0) < 5 * math.sqrt(0.009 / count)
    assert abs(out["range"].astype(float).var() - 0.009) < 5 * 0.009 * math.sqrt(2 / count)
    near = make_sensor("lightware_sf11b").capture(place(GROUND), view((0.0, 0.0, 19.9)))
    assert near["valid"].all()


def test_near_the_ground_noise_may_be_negative(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    count = 1000
    out = make_sensor("lightware_sf11b").capture(place(GROUND), view((0.0, 0.0, 0.01), count, draw=Draw.of(count)))
    assert np.isfinite(out["range"]).all()
    assert (out["range"] < 0).any()


def test_the_sign_of_the_original_messages(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    plain, signed = (
        make_sensor(device("lightware_sf11b").variant(signed=s), "down").capture(place(GROUND), view((0.0, 0.0, 5.0)))
        for s in (False, True)
    )
    np.testing.assert_array_equal(signed["range"], -plain["range"])


def test_any_directions_turn_with_the_body(place: Callable[..., Any], view: Callable[..., Any]) -> None:
    rays = [[0, 0, -1], [1, 0, -1], [0, 0, 1]]
    item = ranger(rays, noise_enabled=False)
    level = make_sensor(item).capture(place(GROUND), view((0.0, 0.0, 4.0)))
    np.testing.assert_allclose(level["range"], [[4.0, 4.0 * math.sqrt(2), 21.0]], atol=1e-5)
    np.testing.assert_array_equal(level["valid"], [[True, True, False]])
    tilted = make_sensor(item).capture(place(GROUND), view((0.0, 0.0, 4.0), attitude=from_euler(0.6, 0.0, 1.0)[None]))
    assert tilted["range"][0, 0] == pytest.approx(4.0 / math.cos(0.6), abs=1e-5)


def test_directions_must_be_vectors() -> None:
    with pytest.raises(AirworthyError, match="expected"):
        ranger([1.0, 0.0, 0.0])
