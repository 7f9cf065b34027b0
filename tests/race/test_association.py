"""Corners whose names are exchanged: matched by distances, whatever a whole gate is off, and the filter that then knows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.race.estimates import flights

from airworthy.core.arrays import Array
from airworthy.race.briefing import BeaconFrame
from airworthy.race.estimation.association import match_corners
from airworthy.race.estimation.estimator import GateFilter


def test_corners_find_their_pixels_in_any_order() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        expected = rng.uniform(0.0, 1000.0, (12, 2))
        order = rng.permutation(12)
        seen = (expected + rng.normal(size=(12, 2)))[order]
        found = match_corners(expected, np.tile(np.eye(2), (12, 1, 1)), seen)
        assert np.array_equal(order[found], np.arange(12))


def test_a_gate_that_stands_elsewhere_is_matched_as_a_whole() -> None:
    """Moved by more than its own width, so that each corner lies nearest to another's place; a known gate keeps its own."""
    rng = np.random.default_rng(5)
    unknown = np.array([[100.0, 100.0], [200.0, 100.0], [200.0, 200.0], [100.0, 200.0]])
    known = unknown + [60.0, 30.0]
    spread = np.concatenate([np.tile(1e4 * np.eye(2), (4, 1, 1)), np.tile(np.eye(2), (4, 1, 1))])
    seen = np.concatenate([unknown + [130.0, -20.0], known]) + rng.normal(size=(8, 2))
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


def test_a_filter_without_names_knows_what_one_with_them_knows() -> None:
    flown = flights(3, seed=11, seconds=6.0)
    rng = np.random.default_rng(0)
    named, nameless = GateFilter(flown.briefing), GateFilter(replace(flown.briefing, identified=False))
    told, found, believed = named.begin(3), nameless.begin(3), named.begin(3)
    for number, pixel in enumerate(flown.pixel):
        if number:
            samples = flown.samples[16 * (number - 1) : 16 * number]
            told, found, believed = (
                each.advance(state, samples) for each, state in ((named, told), (nameless, found), (named, believed))
            )
        stamp, mixed = number / 60.0, exchanged(pixel, rng)
        told, _ = named.update(told, BeaconFrame(stamp, pixel))
        found, _ = nameless.update(found, BeaconFrame(stamp, mixed))
        believed, _ = named.update(believed, BeaconFrame(stamp, mixed))
    # To the bit: every corner found its own pixel in every frame.
    assert np.array_equal(found.now.motion.position, told.now.motion.position)
    assert np.array_equal(found.now.gates, told.now.gates)
    assert np.max(np.linalg.norm(found.now.motion.position - flown.position[-1], axis=1)) < 0.1
    # The test has teeth: who believes the names is lost.
    assert np.max(np.linalg.norm(believed.now.motion.position - flown.position[-1], axis=1)) > 0.1
