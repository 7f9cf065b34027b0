"""Rolling shutter and motion blur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import linear_from_srgb, srgb_from_linear
from airworthy.scenes.splats import Splats
from airworthy.splats import DynamicSplats, Exposure, SplatRenderer, render_exposed
from airworthy.splats.exposure import encoded_of, linear_of

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
WIDTH, HEIGHT = 96, 64
LENS = (100.0, 100.0, 48.0, 32.0)
CAMERA = (WIDTH, HEIGHT, LENS)


def edge(distance: float = 2.0, light: float = 1.0) -> Splats:
    """A white half-plane x > 0 at a distance: opaque Gaussians 1 cm wide in front, a dark wall behind."""
    x, y = np.meshgrid(np.arange(0.0, 1.6, 0.012), np.arange(-1.0, 1.0, 0.012))
    where = np.stack([x, y, np.full_like(x, distance)], axis=-1).reshape(-1, 3)
    n = len(where)
    colour = np.full((n, 1, 3), (light - 0.5) / 0.28209479177387814)
    return Splats(where, np.tile(AHEAD, (n, 1)), np.tile([0.01, 0.01, 1e-4], (n, 1)), np.full(n, 0.99), colour)


def crossing(row: ArrayAny) -> float:
    """Where a row that rises from dark to light passes one half, in pixels from the image's left border."""
    k = int(np.argmax(row >= 0.5))
    return float(k - 1 + (0.5 - row[k - 1]) / (row[k] - row[k - 1]) + 0.5)


def sideways(speed: float, duration: float) -> tuple[ArrayAny, ArrayAny, ArrayAny]:
    """Times, positions and attitudes of one camera that moves right."""
    times = np.linspace(0.0, duration, 3)
    position = np.zeros((1, 3, 3))
    position[0, :, 0] = speed * times
    return times, position, np.tile(AHEAD, (1, 3, 1))


@pytest.fixture(scope="module")
def wall() -> SplatRenderer:
    return SplatRenderer(edge())


def test_a_camera_that_stands_still_sees_the_plain_image(cloud: Any) -> None:
    rng = np.random.default_rng(0)
    renderer = SplatRenderer([cloud(rng, 600, 1), cloud(rng, 300, 0)])
    attitude = rng.normal(size=(3, 4))
    attitude /= np.linalg.norm(attitude, axis=1, keepdims=True)
    where, scene = rng.uniform(-2, 2, (3, 3)), [1, 0, 1]
    background = rng.uniform(size=(3, 3))
    plain = renderer.render(*CAMERA, where, attitude, scene=scene, background=background)
    poses = ([0.0, 1.0], np.repeat(where[:, None], 2, 1), np.repeat(attitude[:, None], 2, 1))
    for exposure in (Exposure(0.1, 0.5, 0.2, samples=4, bands=9), Exposure(0.1, samples=3), Exposure()):
        exposed = render_exposed(renderer, *CAMERA, *poses, exposure, scene=scene, background=background)
        for name in ("rgb", "alpha"):
            # The same but for rounding: places are counted from the top of a band, and colours decoded and encoded again.
            # Where that puts a Gaussian on the other side of 1/255 a pixel changes by that.
            assert np.abs(exposed[name] - plain[name]).mean() <= 1e-5
            assert np.abs(exposed[name] - plain[name]).max() <= 1.5 / 255.0


def test_a_rolling_shutter_shears_a_vertical_edge(wall: SplatRenderer) -> None:
    """At v = 1 m/s, 2 m away, f = 100 px, the edge moves 50 px/s: a row at height v is read readout * v / H later."""
    readout = 0.2
    exposed = render_exposed(wall, *CAMERA, *sideways(1.0, 0.3), Exposure(0.0, readout, bands=HEIGHT))["rgb"][0, :, :, 0]
    rows = np.arange(8, HEIGHT - 8)
    found = np.array([crossing(exposed[row]) for row in rows])
    expected = crossing(wall.render(*CAMERA, np.zeros((1, 3)), AHEAD)["rgb"][0, 32, :, 0]) - 50.0 * readout * rows / HEIGHT
    # Read between two pixels by a straight line, an edge of this softness is found to 0.2 px; the slope of all rows to 1 %.
    np.testing.assert_allclose(found, expected, atol=0.2)
    assert np.polyfit(rows, found, 1)[0] == pytest.approx(-50.0 * readout / HEIGHT, rel=0.01)


def test_bands_are_chosen_by_the_motion(wall: SplatRenderer) -> None:
    """20 px within the readout, as seen 1 m away: the choice agrees with a band per row to about a pixel of the edge."""
    fine = render_exposed(wall, *CAMERA, *sideways(1.0, 0.3), Exposure(0.0, 0.2, bands=HEIGHT))["rgb"][0, :, :, 0]
    chosen = render_exposed(wall, *CAMERA, *sideways(1.0, 0.3), Exposure(0.0, 0.2))["rgb"][0, :, :, 0]
    off = [crossing(a) - crossing(b) for a, b in zip(fine[8:-8], chosen[8:-8], strict=True)]
    assert 0.05 <= np.abs(off).max() <= 0.6  # half a band of 1 px at 1 m, the edge being at 2 m


def test_a_clock_that_began_long_ago_shows_the_same(wall: SplatRenderer) -> None:
    """Moved by 1,024 s, which binary numbers add to these times without rounding that is seen (1e-13 s)."""
    times, *motion = sideways(1.0, 0.3)
    now = render_exposed(wall, *CAMERA, times, *motion, Exposure(0.0, 0.2))["rgb"]
    late = render_exposed(wall, *CAMERA, 1024.0 + times, *motion, Exposure(0.0, 0.2, start=1024.0))["rgb"]
    np.testing.assert_allclose(late, now, atol=1e-5)


@pytest.mark.parametrize("samples", [16, 32])
def test_the_blur_of_an_edge_is_as_wide_as_its_way(wall: SplatRenderer, samples: int) -> None:
    """Over 0.2 s the edge moves 10 px; in linear radiance it becomes a ramp of that width."""
    exposed = render_exposed(wall, *CAMERA, *sideways(1.0, 0.2), Exposure(0.2, samples=samples))["rgb"][0, 32, :, 0]
    light = linear_of(exposed)
    level = np.array([0.1, 0.5, 0.9])
    columns = np.arange(WIDTH) + 0.5
    rising = slice(int(np.argmax(light > 0.02)) - 1, int(np.argmax(light > 0.98)) + 1)
    low, middle, high = np.interp(level, light[rising], columns[rising])
    start = crossing(wall.render(*CAMERA, np.zeros((1, 3)), AHEAD)["rgb"][0, 32, :, 0])
    # 80 % of the way between 10 % and 90 %; the edge itself, 1 px wide, and steps of 10 / samples px add a little.
    assert high - low == pytest.approx(8.0, abs=0.4)
    assert middle == pytest.approx(start - 5.0, abs=0.3)


def test_light_adds_up_linearly() -> None:
    """Half of the time white, half black: linear 0.5, which is 0.735 as encoded."""
    renderer = SplatRenderer(edge())
    times = [0.0, 0.4999, 0.5001, 1.0]
    where = np.zeros((1, 4, 3))
    where[0, 2:, 0] = -100.0
    exposed = render_exposed(renderer, *CAMERA, times, where, np.tile(AHEAD, (1, 4, 1)), Exposure(1.0, samples=2))
    assert exposed["rgb"][0, 32, 80, 0] == pytest.approx(float(srgb_from_linear(0.5)), abs=2e-3)
    assert exposed["alpha"][0, 32, 80] == pytest.approx(0.5, abs=2e-3)


def test_curves_are_those_of_the_room_and_go_on_above_one() -> None:
    x = np.linspace(0.0, 1.0, 101, dtype=np.float32)
    np.testing.assert_allclose(linear_of(x), linear_from_srgb(x), atol=1e-7)
    np.testing.assert_allclose(encoded_of(x), srgb_from_linear(x), atol=1e-6)
    wide = np.linspace(-0.5, 4.0, 91, dtype=np.float32)
    np.testing.assert_allclose(encoded_of(linear_of(wide)), wide, atol=2e-6)


def test_dynamic_instances_may_move_while_the_camera_sees(plain: Any) -> None:
    """A thing that moves with the camera stays sharp before a camera that moves; one that stands is blurred."""
    renderer = SplatRenderer(plain([0.0, 0.0, 2.0], 0.02, 1.0, 0.99))
    poses = sideways(1.0, 0.2)
    along = lambda t, camera: DynamicSplats(  # noqa: E731
        [0], np.column_stack([t, 0 * t, 0 * t])[:, None], np.tile(AHEAD, (len(t), 1, 1))
    )
    still = DynamicSplats([0], np.zeros((1, 1, 3)), np.tile(AHEAD, (1, 1, 1)))
    sharp = render_exposed(renderer, *CAMERA, *poses, Exposure(0.2), scene=[-1], dynamic_instances=along)["alpha"][0]
    blurred = render_exposed(renderer, *CAMERA, *poses, Exposure(0.2), scene=[-1], dynamic_instances=still)["alpha"][0]
    plain_image = renderer.render(*CAMERA, np.zeros((1, 3)), AHEAD)["alpha"][0]
    np.testing.assert_allclose(sharp, plain_image, atol=1e-4)
    assert blurred.max() < 0.5 * plain_image.max()
    assert blurred.sum() == pytest.approx(float(plain_image.sum()), rel=0.05)


def test_threads_and_neighbours_change_no_byte(cloud: Any) -> None:
    rng = np.random.default_rng(3)
    splats = cloud(rng, 400)
    where, attitude = rng.uniform(-1, 1, (3, 2, 3)), np.tile(AHEAD, (3, 2, 1))
    exposure = Exposure(0.3, 0.6, samples=2, bands=5)
    whole = render_exposed(SplatRenderer(splats, threads=2), *CAMERA, [0.0, 1.0], where, attitude, exposure)
    one = render_exposed(SplatRenderer(splats, threads=1), *CAMERA, [0.0, 1.0], where[1:2], attitude[1:2], exposure)
    for name, image in whole.items():
        assert image[1].tobytes() == one[name][0].tobytes()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda r: Exposure(-1.0), "duration"),
        (lambda r: Exposure(samples=0), "samples"),
        (lambda r: render_exposed(r, *CAMERA, *sideways(1.0, 0.1), Exposure(0.2)), "but poses are given"),
        (lambda r: render_exposed(r, *CAMERA, [0.0, 0.0, 1.0], *sideways(1.0, 0.1)[1:], Exposure()), "do not rise"),
        (lambda r: render_exposed(r, *CAMERA, [0.0], *sideways(1.0, 0.1)[1:], Exposure()), "expected \\(k,\\)"),
    ],
)
def test_mistakes(make: Any, said: str, wall: SplatRenderer) -> None:
    with pytest.raises(AirworthyError, match=said):
        make(wall)
