"""Lenses: their maps and derivatives, and images through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.likeness import psnr

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Fisheye, Pinhole
from airworthy.scenes.splats.record import Splats
from airworthy.splats import Lens, SplatRenderer, cameras, twin

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
PHONE = Lens("opencv", (0.07277, -0.12544, -0.009, 0.00196))
"""A calibrated telephone's (SOUS VIDE's capture configuration)."""
RATIONAL = Lens("opencv", (0.4, -0.05, 0.001, -0.002, 0.01, 0.6, 0.05, 0.002))
BARREL = Lens("opencv", (-0.25, 0.05, 0.01, -0.008))
WIDE = Lens("fisheye", (-0.02, 0.003, -0.001, 0.0001))
LENSES = [PHONE, RATIONAL, WIDE, Lens("fisheye")]


def images_of(lens: Lens, point: ArrayAny) -> ArrayAny:
    """Points (n, 3) in the image of unit focal length, (n, 2)."""
    return lens.unroll(point)[0] if lens.model == "fisheye" else lens.bend(point[:, :2] / point[:, 2:])


# ---- maps ----------------------------------------------------------------------------------------------------------------

small = st.floats(-0.1, 0.1)
within = st.floats(-0.7, 0.7)


@settings(deadline=None, max_examples=40)
@given(st.lists(small, min_size=8, max_size=8), within, within, st.floats(0.3, 20.0), st.booleans())
def test_derivatives_are_those_of_a_complex_step(k: list[float], x: float, y: float, z: float, fisheye: bool) -> None:
    lens = Lens("fisheye", tuple(k[:4])) if fisheye else Lens("opencv", tuple(k))
    point = np.array([[x * z, y * z, -z if fisheye and k[4] > 0.0 else z]])
    if fisheye and np.hypot(x, y) < 0.1:
        point[:, :2] += 0.2 * z  # far from the pole behind, where a fisheye has no derivative
    _, derivative, _, _ = twin.mapped(lens, point, 10**6, 10**6, (1e-3, 1e-3, 5e5, 5e5))
    steps = point.astype(complex) + 1e-20j * np.eye(3)
    exact = np.stack([images_of(lens, steps[i : i + 1])[0].imag / 1e-20 for i in range(3)], axis=1)
    scale = np.abs(exact).max()
    np.testing.assert_allclose(derivative[0], exact, atol=1e-9 * max(scale, 1.0))


@pytest.mark.parametrize("lens", LENSES)
def test_rays_lead_back_to_the_image(lens: Lens) -> None:
    x, y = np.meshgrid(np.linspace(-0.6, 0.6, 13), np.linspace(-0.5, 0.5, 11))
    place = np.stack([x, y], axis=-1).reshape(-1, 2)
    rays, known = lens.rays(place)
    assert known.all()
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(images_of(lens, rays), place, atol=1e-8)


def test_lenses_of_projections_are_these() -> None:
    """The cameras of `optics.projections` are written and tested on their own."""
    from airworthy.optics.distortion import AnglePolynomial, PlumbBob

    rng = np.random.default_rng(0)
    points = rng.uniform([-1, -1, 2], [1, 1, 4], (50, 3))
    for projection in (
        Pinhole(64, 48, 50.0, 55.0, 30.0, 20.0, PlumbBob(-0.2, 0.05, 0.002, -0.001, 0.01)),
        Pinhole(64, 48, 50.0, 55.0, 30.0, 20.0),
        Fisheye(64, 48, 30.0, 28.0, 31.0, 25.0, AnglePolynomial(-0.02, 0.001)),
    ):
        described = Lens.of(projection)
        assert described is not None
        lens, (fx, fy, cx, cy) = described
        np.testing.assert_allclose(images_of(lens, points) * (fx, fy) + (cx, cy), projection.project(points)[0], atol=1e-9)
    assert Lens.of(object()) is None


def test_a_rational_gain() -> None:
    """u = x (1 + k1 r2 + k2 r4 + k3 r6) / (1 + k4 r2 + k5 r4 + k6 r6) + 2 p1 x y + p2 (r2 + 2 x2), by hand."""
    k1, k2, p1, p2, k3, k4, k5, k6 = RATIONAL.coefficients
    x, y = 0.3, -0.2
    r2 = 0.13
    gain = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
    u = x * gain + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    v = y * gain + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    np.testing.assert_allclose(RATIONAL.bend(np.array([x, y])), [u, v], rtol=1e-14)


def test_the_limit_of_a_lens_that_folds() -> None:
    """r (1 + k1 r^2) grows up to r = 1 / sqrt(-3 k1)."""
    lens = Lens("opencv", (-0.3,))
    assert lens.limit == pytest.approx(1.0 / np.sqrt(0.9), rel=5e-3)
    assert lens.limit < 1.0 / np.sqrt(0.9)
    assert not lens.rays(np.array([[0.9, 0.0]]))[1].any()  # the largest image is 2/3 of that: 0.70
    assert Lens("fisheye").limit == 3.0


# ---- images --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_clouds_equal_the_twin(seed: int, cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(seed)
    splats, view = cloud(rng, 400, seed % 4), pose(rng)
    lens = LENSES[seed % 4]
    pixels = view.lens.copy()
    if lens.model == "fisheye":
        pixels[:2] = view.width / rng.uniform(1.5, 6.0)
    limit = rng.uniform(0.5, 5.0, (1, view.height, view.width)) if seed % 3 == 0 else None
    options = {"antialiased": bool(seed & 4), "depth_mode": "median" if seed & 8 else "expected", "lens": lens}
    camera = (view.width, view.height, pixels)
    ours = SplatRenderer(splats).render(*camera, view.position[None], view.attitude[None], limit=limit, **options)
    theirs = twin.render(splats, *camera, view.position, view.attitude, limit=None if limit is None else limit[0], **options)
    # As without a lens: float32 gives about 1e-7, more where a pixel falls on the other side of 1/255 or of the limit.
    assert np.abs(ours["rgb"][0] - theirs["rgb"]).mean() <= 1e-5
    assert psnr(ours["rgb"][0], theirs["rgb"]) >= 70.0
    depth, expected = ours["depth"][0], theirs["depth"]
    both = np.isfinite(depth) & np.isfinite(expected)
    assert (np.isfinite(depth) != np.isfinite(expected)).mean() <= 1e-3
    assert not both.any() or np.median(np.abs(depth[both] - expected[both])) <= 1e-4


def _smooth(rng: np.random.Generator, count: int = 300) -> Splats:
    """Wide, faint Gaussians in front: images without sharp edges."""
    where = rng.uniform([-5, -4, 3], [5, 4, 8], (count, 3))
    turned = rng.normal(size=(count, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    scale = np.exp(rng.uniform(np.log(0.15), np.log(0.5), (count, 3)))
    return Splats(where, turned, scale, rng.uniform(0.05, 0.3, count), rng.normal(0, 0.5, (count, 1, 3)))


@pytest.mark.parametrize("lens", [BARREL, RATIONAL, WIDE])
def test_a_lens_shows_what_a_pinhole_with_many_pixels_shows_along_its_rays(lens: Lens) -> None:
    """A pinhole of four times the pixels, read along the lens' rays. Both linearise, at the same means but in other images."""
    splats = _smooth(np.random.default_rng(4))
    width, height, focal, finer = 80, 60, 60.0, 4
    pixels = (focal, focal, 40.0, 30.0)
    rays, known = lens.pixel_rays(width, height, pixels)
    assert known.all()
    flat = rays[..., :2] / rays[..., 2:]
    wide, tall = 480, 400
    fine = (focal * finer, focal * finer, wide / 2.0, tall / 2.0)
    place = flat * fine[:2] + fine[2:]
    assert (place >= 1.0).all()
    assert (place <= [wide - 1.0, tall - 1.0]).all()
    renderer, where = SplatRenderer(splats), np.zeros((1, 3))
    image = renderer.render(wide, tall, fine, where, AHEAD, dilation=0.3 * finer**2, channels=("rgb",))["rgb"][0]
    corner = np.floor(place - 0.5).astype(int)
    share = place - 0.5 - corner
    rendered = sum(
        image[corner[..., 1] + j, corner[..., 0] + i]
        * (np.abs(1 - i - share[..., 0]) * np.abs(1 - j - share[..., 1]))[..., None]
        for i in (0, 1)
        for j in (0, 1)
    )
    direct = renderer.render(width, height, pixels, where, AHEAD, lens=lens, channels=("rgb",))["rgb"][0]
    straight = renderer.render(width, height, pixels, where, AHEAD, channels=("rgb",))["rgb"][0]
    # A Gaussian 6 px wide reaches 0.1 of a slope; what a map with second derivatives of 0.3 bends there is 1.5e-3 of a slope, a
    # tenth of a pixel, where edges rise by 3 % per pixel: 0.3 % or 50 dB for what is seen most, 44 with the wider ones. Without
    # the lens things are 1 to 6 px from where they belong.
    assert psnr(direct, rendered) >= 44.0
    assert psnr(straight, rendered) <= 30.0


def test_a_fisheye_sees_behind_itself(plain: Any) -> None:
    """120 degrees off the axis: at 2.094 f pixels, its depth along the axis negative, ordered by distance."""
    direction = np.array([np.sin(2.0943951), 0.0, np.cos(2.0943951)])
    splats = plain([4.0 * direction, 2.0 * direction], 0.3, [[0, 1, 0], [1, 0, 0]], [1.0, 1.0])
    focal = 20.0
    image = SplatRenderer(splats).render(101, 21, (focal, focal, 50.5, 10.5), np.zeros((1, 3)), AHEAD, lens=Lens("fisheye"))
    column = int(50.5 + focal * 2.0943951)
    assert image["rgb"][0, 10, column, 0] > 0.95  # the nearer one hides the farther one
    assert image["rgb"][0, 10, column, 1] < 0.02
    assert image["depth"][0, 10, column] == pytest.approx(2.0 * direction[2], abs=0.03)
    far = SplatRenderer(splats).render(
        101, 21, (focal, focal, 50.5, 10.5), np.zeros((1, 3)), AHEAD, lens=Lens("fisheye"), distances=True
    )
    assert far["depth"][0, 10, column] == pytest.approx(2.0, abs=0.03)


def test_what_a_lens_would_fold_into_the_image_is_not_seen(plain: Any) -> None:
    """At slope 1.6 the polynomial leads back to 0.37, in the image, where another ray belongs."""
    lens = Lens("opencv", (-0.3,))
    splats = plain([1.6, 0.0, 1.0], 0.01, 1.0, 1.0)
    assert abs(lens.bend(np.array([1.6, 0.0]))[0] - 0.3712) < 1e-9
    image = SplatRenderer(splats).render(100, 100, (80.0, 80.0, 50.0, 50.0), np.zeros((1, 3)), AHEAD, lens=lens)
    assert not image["alpha"].any()


@pytest.mark.parametrize("lens", LENSES)
def test_chunks_that_are_left_out_are_not_seen(lens: Lens, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    base = cloud(rng, 12_000, 0)
    splats = Splats(base.position * 2.0, base.rotation, base.scale * 0.5, base.opacity, base.harmonics)
    attitude = rng.normal(size=(6, 4))
    focal = 15.0 if lens.model == "fisheye" else 40.0
    asked = (48, 36, (focal, focal, 30.0, 18.0), rng.uniform(-6, 6, (6, 3)), attitude)
    rendered = SplatRenderer(splats).render(*asked, lens=lens)
    numbers = cameras.lens_numbers.__wrapped__
    monkeypatch.setattr(cameras, "lens_numbers", lambda *a: {**numbers(*a), "field": 1e9})
    everything = SplatRenderer(splats).render(*asked, lens=lens)
    for name, image in rendered.items():
        assert image.tobytes() == everything[name].tobytes()


@pytest.mark.parametrize("lens", [*LENSES, Lens("opencv", (500.0, -900.0, 30.0, -3.0, 1e3)), Lens("fisheye", (-300.0, 1e3))])
def test_extreme_clouds_give_finite_images(lens: Lens, cloud: Any) -> None:
    """The largest and smallest values that are let in, seen from among them, also through lenses that nobody grinds."""
    rng = np.random.default_rng(8)
    base = cloud(rng, 2000, 1)
    scale = 10.0 ** rng.uniform(-30, 5, (2000, 3))
    scale[:50] = 0.0
    where = base.position * 10.0 ** rng.uniform(-6, 5, (2000, 1))
    splats = Splats(where, base.rotation, scale, rng.choice([0.0, 1e-30, 1.0 / 255.0, 0.5, 1.0], 2000), base.harmonics)
    for pixels in ((100.0, 100.0, 30.0, 20.0), (1e30, 1e-30, 0.0, 0.0), (1e4, 1e4, -1e5, 1e5)):
        poses = rng.normal(size=(4, 3)), base.rotation[:4]
        images = SplatRenderer(splats).render(60, 40, pixels, *poses, lens=lens, near=1e-4, antialiased=True)
        assert np.isfinite(images["rgb"]).all()
        assert images["alpha"].min() >= 0.0
        assert images["alpha"].max() <= 1.0
        assert not np.isnan(images["depth"]).any()


def test_a_lens_without_coefficients_is_a_pinhole(cloud: Any) -> None:
    rng = np.random.default_rng(1)
    renderer = SplatRenderer(cloud(rng, 300))
    asked = (60, 40, (50.0, 50.0, 30.0, 20.0), rng.uniform(-1, 1, (2, 3)), rng.normal(size=(2, 4)))
    plain = renderer.render(*asked)
    for lens in (Lens(), Lens("opencv", (0.0, 0.0))):
        assert renderer.render(*asked, lens=lens)["rgb"].tobytes() == plain["rgb"].tobytes()


def test_distances_of_a_pinhole(plain: Any) -> None:
    splats = plain([1.0, 0.0, 2.0], 0.05, 1.0, 1.0)
    asked = (101, 51, (40.0, 40.0, 50.5, 25.5), np.zeros((1, 3)), AHEAD)
    depth = SplatRenderer(splats).render(*asked)["depth"][0, 25, 70]
    distance = SplatRenderer(splats).render(*asked, distances=True)["depth"][0, 25, 70]
    assert depth == pytest.approx(2.0, abs=1e-5)
    assert distance == pytest.approx(np.hypot(1.0, 2.0), abs=1e-4)  # the pixel's own ray has the slope 0.5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Lens("wide"), "Unknown Lens.model"),  # type: ignore[arg-type]
        (lambda: Lens("fisheye", (0.1,) * 5), "at most 4"),
        (lambda: Lens("opencv", (float("nan"),)), "expected a finite number"),
        (lambda: Lens("pinhole", (0.1,)), "at most 0"),
    ],
)
def test_mistakes(make: Any, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        make()
