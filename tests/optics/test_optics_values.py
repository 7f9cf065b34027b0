"""Projections, distortion and tone on random inputs and at the ends of their ranges: by formulas of the tests, and on file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics import tone
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.lenses import (
    Fisheye,
    Pinhole,
    border,
    check_size,
    focal_length,
    inside,
    pixel_centres,
    ray_steps,
    spreads,
    supersampled,
)
from airworthy.optics.projections import Spherical, UserRays

SNAPSHOTS = Path(__file__).parent / "snapshots"
RNG = np.random.default_rng(12)
LENS = PlumbBob(-0.28, 0.09, 4e-3, -3e-3, -0.012)
POLYNOMIAL = AnglePolynomial(0.05, -0.01, 0.003, -2e-4)
PROJECTIONS: dict[str, Any] = {
    "pinhole": Pinhole.from_fov(12, 9, horizontal=1.2),
    "vertical": Pinhole.from_fov(12, 9, vertical=1.2, integer_pixels=True),
    "plumb bob": Pinhole(12, 9, 8.0, 9.0, 6.5, 4.0, LENS),
    "fisheye": Fisheye(12, 9, 4.0, 4.5, 6.0, 4.5, POLYNOMIAL, 1.2),
    "wide fisheye": Fisheye.from_fov(9, 9, 6.0, POLYNOMIAL),
    "scan": Spherical(12, 5),
    "doubled": Spherical(12, 5, duplicate_column=True),
    "sector": Spherical(7, 5, (-0.4, 0.8), (-0.2, 0.5)),
    "centres": Spherical(7, 5, (-0.4, 0.8), (-0.2, 0.5), centres=True),
    "one": Spherical(1, 1, (-0.4, 0.8), (-0.2, 0.5)),
    "uneven": Spherical(7, 3, elevations=(0.4, 0.1, -0.5)),
    "user": UserRays(np.random.default_rng(1).normal(size=(4, 3, 3)), np.ones((4, 3, 3)), (0.0, 1.0, 0.0), True),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections(name: str) -> None:
    projection = PROJECTIONS[name]
    rng = np.random.default_rng(3)
    pixels = np.concatenate([rng.uniform(-2.0, 14.0, (60, 2)), [(0.0, 0.0), (12.0, 9.0), (6.0, 4.5), (6.5, 4.0)]])
    points = np.concatenate([rng.normal(size=(80, 3)), [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)]])
    values: dict[str, Any] = {"unprojected": projection.unproject(pixels), "rays": projection.rays().directions}
    values["axis"], values["optical"] = projection.rays().axis, projection.optical
    values["mask"], values["size"] = str(projection.mask()), (projection.width, projection.height)
    if name != "user":
        values["pixel"], values["inside"] = projection.project(points)
    for key in ("matrix", "horizontal_fov", "vertical_fov", "azimuths", "row_elevations", "full_circle"):
        if hasattr(projection, key):
            values[key] = getattr(projection, key)
    if isinstance(projection, Spherical):
        values["fraction"] = projection.column_fraction()
    check_snapshot(SNAPSHOTS / f"{name.replace(' ', '_')}.txt", values, 1e-8)


def test_lenses_of_their_own() -> None:
    points = np.random.default_rng(2).uniform(-0.8, 0.8, (40, 2))
    angles = np.linspace(0.0, 2.5, 26)
    values: dict[str, Any] = {"distorted": LENS.distort(points), "jacobian": LENS.jacobian(points)}
    values["undistorted"], values["found"] = LENS.undistort(np.random.default_rng(2).uniform(-1.5, 1.5, (40, 2)))
    values |= {"radius": POLYNOMIAL.radius(angles), "slope": POLYNOMIAL.slope(angles)}
    values["limits"] = [AnglePolynomial(k).angle_limit(limit) for k in (-0.4, -0.1, 0.2) for limit in (0.5, 3.0)]
    values["angle"] = POLYNOMIAL.angle(np.linspace(0.0, 2.0, 9), 1.5)
    values["any"] = [str(PlumbBob(**{key: 1e-9}).any) for key in ("k1", "k2", "p1", "p2", "k3")]
    check_snapshot(SNAPSHOTS / "distortion.txt", values, 1e-8)


def test_pixels() -> None:
    values: dict[str, Any] = {"border": border(3, 5), "centres": pixel_centres(3, 5), "whole": pixel_centres(3, 5, 0.0)}
    values["focal"] = [focal_length(640, fov) for fov in (1e-3, 1.0, 3.1)]
    edge = np.array([(x, y) for x in (0.0, 1e-9, 3.0, 5.0 - 1e-9, 5.0) for y in (0.0, 1e-9, 2.0, 3.0 - 1e-9, 3.0)])
    values["inside"] = inside(edge, 3, 5)
    for name in ("pinhole", "scan", "one", "wide fisheye"):
        table = PROJECTIONS[name].rays()
        values[f"steps {name}"], values[f"spreads {name}"] = list(ray_steps(table)), spreads(table)
        for count in (1, 2, 4, 8):
            values[f"samples {name} {count}"] = np.array([part.directions for part in supersampled(table, count)])
    for shape in ((1, 6), (6, 1)):
        row = np.concatenate([np.random.default_rng(5).normal(0.0, 0.1, (*shape, 2)), np.ones((*shape, 1))], axis=-1)
        values[f"steps {shape}"] = list(ray_steps(RayTable(row, None, (0.0, 0.0, 1.0))))
    check_snapshot(SNAPSHOTS / "pixels.txt", values, 1e-6)


@pytest.mark.parametrize("size", [0, 1, 16384, 16385])
def test_sizes(size: int) -> None:
    for width, height in ((size, 5), (5, size)):
        if 1 <= size <= 16384:
            check_size(width, height)
        else:
            with pytest.raises(AirworthyError, match="16384 each way"):
                check_size(width, height)


@pytest.mark.parametrize(
    ("make", "good"),
    [
        (lambda x: focal_length(10, x), (1e-9, math.pi - 1e-9)),
        (lambda x: Fisheye(4, 4, 2.0, 2.0, 2.0, 2.0, angle_max=x), (1e-9, math.pi)),
        (lambda x: Pinhole(4, 4, x, 2.0, 2.0, 2.0), (1e-9, 1e9)),
        (lambda x: Pinhole(4, 4, 2.0, x, 2.0, 2.0), (1e-9, 1e9)),
        (lambda x: Fisheye(4, 4, x, 2.0, 2.0, 2.0), (1e-9, 1e9)),
        (lambda x: Fisheye(4, 4, 2.0, x, 2.0, 2.0), (1e-9, 1e9)),
        (lambda x: Spherical(4, 4, (0.0, x)), (1e-9, 2 * math.pi)),
        (lambda x: Spherical(4, 4, elevation=(-x, x)), (0.0, math.pi / 2)),
    ],
)
def test_what_is_out_of_range_is_refused(make: Any, good: tuple[float, float]) -> None:
    for x in good:
        make(x)
    for x in (-1e-6, good[1] + 1e-6 if good[1] < 1e9 else math.inf, math.nan):
        with pytest.raises(AirworthyError):
            make(x)
    if good[0] > 0.0:
        with pytest.raises(AirworthyError):
            make(0.0)


def srgb(x: np.ndarray) -> np.ndarray:
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.clip(x, 1e-9, 1.0) ** (1 / 2.4) - 0.055)


def test_tone_by_its_formulas() -> None:
    """In double precision, written out again: the encoding both ways, the shoulder, paling, and their inverse."""
    x = np.concatenate([np.linspace(0.0, 1.0, 2001), [0.0031308, 0.04045, 0.5, -1.0, 3.0]])
    np.testing.assert_allclose(tone.srgb_from_linear(x), srgb(np.clip(x, 0.0, 1.0)), atol=3e-7)
    x = x[x >= 0.0]
    inverse = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(tone.linear_from_srgb(x), inverse, rtol=3e-6, atol=1e-7)
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(tone.linear_from_srgb(codes), tone.linear_from_srgb(codes / np.float32(255.0)))
    rgb = np.abs(np.random.default_rng(0).normal(0.0, 1.2, (3000, 3)))
    peak = rgb.max(-1, keepdims=True)
    held = np.where(peak <= 0.7, peak, 1.0 - 0.3 * np.exp(-(peak - 0.7) / 0.3))
    white = 1.0 - 1.0 / (0.35 * (peak - held) + 1.0)
    filmic = rgb * held / peak * (1.0 - white) + held * white
    np.testing.assert_allclose(tone.filmic(rgb), filmic, atol=1e-6)
    np.testing.assert_allclose(tone.display_from_linear(rgb), srgb(filmic), atol=2e-4)
    np.testing.assert_allclose(tone.luminance(rgb), rgb @ (0.2126, 0.7152, 0.0722), rtol=1e-6)
    eight = np.abs(tone.to_8bit(rgb).astype(int) - np.rint(255.0 * srgb(filmic)))
    assert eight.max() <= 1
    assert eight.mean() < 0.02
    mild = rgb[(peak[:, 0] < 1.5) & (rgb.min(-1) > 0.3)]
    np.testing.assert_allclose(tone.linear_from_display(tone.display_from_linear(mild)), mild, rtol=6e-3)


def test_tone_on_file() -> None:
    rgb = np.abs(np.random.default_rng(0).normal(0.0, 1.2, (300, 3))).astype(np.float32)
    display = np.random.default_rng(1).uniform(-0.1, 1.1, (300, 3)).astype(np.float32)
    peaks, pale = tone.paleness_table()
    check_snapshot(
        SNAPSHOTS / "tone.txt",
        {
            "unfolded": tone.linear_from_display(display), "peaks": peaks, "pale": pale, "encoding": tone.encoding_table(),
            "decoding": tone.decoding_table(), "grey": tone.grey_8bit(rgb, 0.7), "linear": tone.grey_8bit(rgb, 0.7, "linear"),
            "shoulder": tone.shoulder(np.linspace(0.0, 3.0, 40)),
        },
        1e-5,
        1e-6,
    )  # fmt: skip
