"""Corners whose names are exchanged: matched by distances, however far off a whole gate is, and the filter that knows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.race.estimates import flights

from airworthy.core.arrays import Array
from airworthy.race.briefing import BeaconFrame
from airworthy.race.estimation.association import match_corners
from airworthy.race.estimation.estimator import GateFilter


def test_corners_find_their_pixels_in_any_order() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        # Some 20 px apart, so that a pixel of noise makes nobody another's.
        expected = 20.0 * np.stack(np.divmod(rng.permutation(400)[:12], 20), axis=1) + rng.uniform(-5.0, 5.0, (12, 2))
        order = rng.permutation(12)
        seen = (expected + rng.normal(size=(12, 2)))[order]
        found = match_corners(expected, np.tile(np.eye(2), (12, 1, 1)), seen)
        assert np.array_equal(order[found], np.arange(12))


def test_a_gate_that_stands_elsewhere_is_matched_as_a_whole() -> None:
    """Moved by more than its own width, so that each corner lies nearest to another's place; a known gate keeps its own."""
    rng = np.random.default_rng(5)
    unknown = np.array([[100.0, 100.0], [200.0, 100.0], [200.0, 200.0], [100.0, 200.0]])
    known = unknown + np.array([60.0, 30.0])
    spread = np.concatenate([np.tile(1e4 * np.eye(2), (4, 1, 1)), np.tile(np.eye(2), (4, 1, 1))])
    seen = np.concatenate([unknown + np.array([130.0, -20.0]), known]) + rng.normal(size=(8, 2))
    order = rng.permutation(8)
    found = match_corners(np.concatenate([unknown, known]), spread, seen[order])
    assert np.array_equal(order[found], np.arange(8))


def exchanged(pixel: Array, rng: np.random.Generator) -> Array:
    """Pixels of each flight under each other's names, names of those seen only."""
    given = pixel.copy().reshape(len(pixel), -1, 2)
    for row in given:
        seen = np.flatnonzero(np.isfinite(row).all(-1))
        row[seen] = row[rng.permutation(seen)]
    return given.reshape(pixel.shape)


@pytest.mark.slow
def test_a_filter_without_names_knows_what_one_with_them_knows() -> None:
    flown = flights(3, seed=11, seconds=6.0)
    rng = np.random.default_rng(0)
    named, nameless = GateFilter(flown.briefing), GateFilter(replace(flown.briefing, identified=False))
    told, found, believed = named.begin(3), nameless.begin(3), named.begin(3)
    for number, pixel in enumerate(flown.pixel):
        if number:
            samples = flown.samples[16 * (number - 1) : 16 * number]
            told, found, believed = (
                named.advance(told, samples),
                nameless.advance(found, samples),
                named.advance(believed, samples),
            )
        stamp, mixed = number / 60.0, exchanged(pixel, rng)
        told, _ = named.update(told, BeaconFrame(stamp, pixel))
        found, _ = nameless.update(found, BeaconFrame(stamp, mixed))
        believed, _ = named.update(believed, BeaconFrame(stamp, mixed))
    # Corners of far gates lie within the noise of each other, and are exchanged now and then: that is worth less than 0.1 mm.
    assert np.max(np.abs(found.now.motion.position - told.now.motion.position)) < 1e-3
    assert np.max(np.abs(found.now.gates - told.now.gates)) < 1e-2
    # The test has teeth: who believes the names has the gates elsewhere.
    off = [np.max(np.abs(state.now.gates - flown.shift)[:, 0, :2]) for state in (told, found, believed)]
    assert max(off[:2]) < 0.03
    assert off[2] > 10.0 * max(off[:2])
