"""Whole flights with stand-in autopilots: they hover, they fly a square, twice the same; whatever ends them is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import CORNERS, KINDS, SQUARE, START, rate_of

EVERY = pytest.mark.parametrize("kind", KINDS)


def places(run: Any) -> np.ndarray:
    return np.stack([run.table.columns[f"position_{axis}_m"] for axis in "xyz"], axis=-1)


@EVERY
@pytest.mark.parametrize("yaw", [0.0, 2.2])
def test_a_hover(flown: Callable[..., Any], kind: str, yaw: float) -> None:
    run, pilot = flown(kind, 1.2, yaw=yaw)
    assert (run.pilot_error, run.causes) == ("", {})
    assert pilot.exchanges == round(1.2 * rate_of(kind))
    # It is let go at rest with rotors at hover; a hover drifts by what the stand-in's delays and quantised truth do.
    assert np.abs(places(run) - START).max() < 0.25
    assert pilot.notes() == []


@EVERY
def test_two_flights_have_the_same_bytes(flown: Callable[..., Any], kind: str) -> None:
    runs = [flown(kind, 0.6)[0] for _ in range(2)]
    assert runs[0].pilot_error == ""
    for name, values in runs[0].table.columns.items():
        np.testing.assert_array_equal(values, runs[1].table.columns[name], err_msg=name)


@pytest.mark.slow
@EVERY
def test_a_square(flown: Callable[..., Any], kind: str) -> None:
    run, _ = flown(kind, 12.0, "--square", path=SQUARE)
    assert run.pilot_error == ""
    path = places(run)
    for corner in CORNERS:
        assert np.linalg.norm(path - corner, axis=1).min() < 0.25
    assert np.linalg.norm(path[-1] - START) < 0.25
