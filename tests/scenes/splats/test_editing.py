"""Crop, delete, merge, duplicate, recolour, brighten, and levels of detail."""

from __future__ import annotations

import numpy as np
import pytest
import splat_building as build

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.formats._images import linear_to_srgb, srgb_to_linear
from airworthy.scenes.splats import Splats, record, transformed
from airworthy.scenes.splats.editing import (
    EditBox,
    brightened,
    cropped,
    deleted,
    duplicated,
    levels_of_detail,
    merged,
    recolored,
    selected,
    thinned,
)

FIELDS = ("position", "rotation", "scale", "opacity", "harmonics")


def same(a: Splats, b: Splats) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def test_cropping_and_deleting_share_the_gaussians() -> None:
    splats = build.random_splats(200, 1)
    box = EditBox.of((-1, -1, -1), (1, 0.5, 2))
    inside = ((splats.position >= (-1, -1, -1)) & (splats.position <= (1, 0.5, 2))).all(1)
    assert 10 < inside.sum() < 190
    assert same(cropped(splats, box), selected(splats, inside))
    assert same(deleted(splats, [box]), selected(splats, ~inside))


def test_a_turned_box() -> None:
    """A thin box along the diagonal of x and y holds what is near that diagonal."""
    splats = build.random_splats(500, 0)
    box = EditBox((0, 0, 0), (10, 0.5, 10), tuple(frames.from_axis_angle((0, 0, 1), np.pi / 4)))
    across = np.abs(splats.position[:, 1] - splats.position[:, 0]) / np.sqrt(2)
    assert same(cropped(splats, box), selected(splats, across <= 0.25))


def test_two_boxes_are_a_union() -> None:
    splats = build.random_splats(200, 0)
    boxes = [EditBox.of((-2, -2, -2), (0, 2, 2)), EditBox.of((-1, -2, -2), (2, 2, 2))]
    assert len(cropped(splats, boxes)) == 200
    assert len(deleted(splats, boxes)) == 0


@pytest.mark.parametrize("size", [(0, 1, 1), (1, -1, 1), (1, 1, np.inf)])
def test_what_is_no_box(size: tuple[float, float, float]) -> None:
    with pytest.raises(AirworthyError, match="no box"):
        EditBox((0, 0, 0), size)


def test_merging_fills_lower_degrees() -> None:
    a, b = build.random_splats(3, 1), build.random_splats(4, 3, seed=1)
    both = merged([a, b])
    assert (len(both), both.degree) == (7, 3)
    assert np.array_equal(both.harmonics[:3, :4], a.harmonics)
    assert not both.harmonics[:3, 4:].any()
    assert same(selected(both, np.arange(3, 7)), b)
    with pytest.raises(AirworthyError, match="no splats"):
        merged([])


def test_copies_stand_where_they_are_put() -> None:
    splats = build.random_splats(5, 2)
    turns = frames.from_euler(0.0, 0.0, np.array([0.5, -1.0]))
    copies = duplicated(splats, [(1, 0, 0), (0, 2, 0)], turns, (1.0, 0.5))
    assert same(selected(copies, np.arange(5, 10)), transformed(splats, turns[1], (0, 2, 0), 0.5))
    with pytest.raises(AirworthyError, match="expected"):
        duplicated(splats, [(1, 0, 0)], turns)


def colors(splats: Splats) -> np.ndarray:
    """Encoded colours from a few directions, not clamped."""
    d = np.array([(1, 0, 0), (0, -1, 0), (0.6, 0, 0.8), (0, 0.6, -0.8)])
    return 0.5 + np.einsum("dk,nkc->dnc", record.basis(d, splats.degree), splats.harmonics.astype(float))


def test_recolouring_mixes_colours_from_every_direction() -> None:
    splats = build.random_splats(20, 3)
    matrix = np.array([(0.2, 0.7, 0.1), (0.2, 0.7, 0.1), (0.1, 0.1, 0.5)])
    assert np.abs(colors(recolored(splats, matrix, (0.1, 0, -0.1))) - (colors(splats) @ matrix.T + (0.1, 0, -0.1))).max() < 1e-5
    assert np.abs(colors(recolored(splats, (1, 0.5, 0)))[..., 1] - colors(splats)[..., 1] * 0.5).max() < 1e-5
    with pytest.raises(AirworthyError, match="mixed"):
        recolored(splats, (1, 2))


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.0])
def test_brightness_scales_radiance(factor: float) -> None:
    splats = build.random_splats(200, 2)
    before, after = colors(splats), colors(brightened(splats, factor))
    usual = (before > 0.1) & (before < 1.0) & (after < 1.0) & (after > 0.0405)  # above the toe of the curve on both sides
    assert usual.mean() > 0.3
    radiance = srgb_to_linear(before) * factor
    assert np.abs(after - linear_to_srgb(radiance))[usual].max() < 1e-5
    dark = (before > 0) & (before < 0.1)
    assert np.abs(np.maximum(after, 0) - linear_to_srgb(radiance))[dark].max() < (0.0175 if factor <= 1 else 0.03)


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_brightness_that_is_none(factor: float) -> None:
    with pytest.raises(AirworthyError, match="Brightness"):
        brightened(build.random_splats(), factor)


def moments(splats: Splats) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Sum of the weights, and the mean, covariance and mean harmonics of all gaussians together, weighted."""
    a, b, c = splats.scale.astype(float).T
    weight = splats.opacity.astype(float) * (a * b + b * c + c * a) / 3
    mean = np.average(splats.position.astype(float), axis=0, weights=weight)
    root = frames.to_matrix(splats.rotation.astype(float)) * splats.scale.astype(float)[:, None]
    away = splats.position - mean
    spread = np.average(root @ root.transpose(0, 2, 1) + away[:, :, None] * away[:, None], axis=0, weights=weight)
    return weight.sum(), mean, spread, np.average(splats.harmonics.astype(float), axis=0, weights=weight)


def test_fewer_gaussians_have_the_same_moments() -> None:
    splats = build.random_splats(3000, 1)
    splats.opacity[:] *= 0.02  # so faint that no sum of opacities reaches 1, which would be cut
    fewer = thinned(splats, 300)
    assert 200 < len(fewer) <= 300
    assert fewer.opacity.max() < 1
    # Sums of float32 values of 3,000 gaussians.
    for ours, theirs in zip(moments(fewer), moments(splats), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert np.abs(np.linalg.norm(fewer.rotation, axis=1) - 1).max() < 1e-5


def test_levels_fall_and_repeat() -> None:
    splats = build.random_splats(2000, 2)
    levels = levels_of_detail(splats, (5000, 1000, 100, 1))
    assert same(levels[0], splats)
    assert [len(level) <= count for level, count in zip(levels, (5000, 1000, 100, 1), strict=True)] == [True] * 4
    assert len(levels[1]) > 800
    assert len(levels[3]) == 1
    assert same(thinned(splats, 100), levels[2])
    with pytest.raises(AirworthyError, match="at least 1"):
        thinned(splats, 0)


def test_gaussians_at_one_place() -> None:
    splats = build.random_splats(10, 0)
    there = Splats(np.ones((10, 3)), splats.rotation, splats.scale, splats.opacity, splats.harmonics)
    assert np.allclose(thinned(there, 3).position, 1.0)
