"""Scenes become splats that look like them."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Cylinder
from airworthy.rendering.converting import ConvertOptions, _distances, display_color, splats_from_scene
from airworthy.rendering.refining import HELD_OUT, image_psnr, image_quality, scene_views
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, PointLight, Region, Scene
from airworthy.scenes.splats import Splats
from airworthy.splats.surfaces import SIZE_DOUBLES, evenly, exposure_of, patches_of, spread_points, viewpoints
from polishing import PolishOptions, polished

PLAIN = ConvertOptions(baked=False, eyes=16)


def _room() -> Scene:
    """A closed room of 4 x 4 x 3 m whose walls are 0.2 m thick, a lamp, a red box and a blue column."""
    wall, side = Box((2.2, 0.1, 1.7)), Box((0.1, 2.2, 1.7))
    items = [Instance("lid", (0, 0, -0.1), materials=("floor",)), Instance("lid", (0, 0, 3.1), materials=("white",))]
    items += [Instance("wall", (0, y, 1.5), materials=("white",)) for y in (-2.1, 2.1)]
    items += [Instance("side", (x, 0, 1.5), materials=("white",)) for x in (-2.1, 2.1)]
    items += [Instance("crate", (1, 0.8, 0.3), materials=("red",)), Instance("column", (-1, -0.5, 1.5), materials=("blue",))]
    colors = {"white": (0.8, 0.8, 0.8), "floor": (0.35, 0.4, 0.35), "red": (0.7, 0.1, 0.08), "blue": (0.1, 0.15, 0.6)}
    return Scene(
        "room",
        {"wall": wall, "side": side, "lid": Box((2.2, 2.2, 0.1)), "crate": Box((0.3, 0.3, 0.3)), "column": Cylinder(0.15, 1.5)},
        {name: Material((*color, 1.0), roughness=1.0) for name, color in colors.items()},
        instances=tuple(items),
        lights=(PointLight((0.2, 0.1, 2.6), intensity=8.0),),
        bounds=Region((-2, -2, 0), (2, 2, 3)),
    )


@pytest.fixture(scope="module")
def batch() -> SceneBatch:
    return SceneBatch(_room())


@pytest.fixture(scope="module")
def splats(batch: SceneBatch) -> Splats:
    return splats_from_scene(batch, count=8000, options=PLAIN)


def test_patches_keep_the_area_and_are_small() -> None:
    patches = patches_of(_room(), 0.4)
    boxes = 2 * 8 * (2.2 * 0.1 + 2.2 * 1.7 + 0.1 * 1.7) * 2 + 2 * 8 * (2.2 * 2.2 + 2 * 2.2 * 0.1) + 6 * 0.36
    segments = 64  # of the column, a prism inside the cylinder
    across = 0.5 * segments * 0.15**2 * np.sin(2 * np.pi / segments)
    column = 2 * across + segments * 2 * 0.15 * np.sin(np.pi / segments) * 3.0
    # Vertices are float32, 1e-7 of a few metres.
    assert patches.area.sum() == pytest.approx(boxes + column, rel=1e-5)
    edges = np.linalg.norm(np.roll(patches.corners, -1, axis=1) - patches.corners, axis=-1)
    # Twice as long where a patch is SIZE_DOUBLES outside the bounds, in proportion between.
    middle, bounds = patches.corners.mean(axis=1), _room().bounds
    outside = np.linalg.norm(middle - np.clip(middle, bounds.lower, bounds.upper), axis=-1)
    assert (edges.max(axis=1) <= 0.4 * (1.0 + outside / SIZE_DOUBLES)).all()
    assert len(patches_of(_room(), 0.001, count_max=3000)) == 3000


def test_points_come_in_proportion_to_their_weight() -> None:
    patches = patches_of(_room(), 0.4)
    weight = np.arange(1.0, len(patches) + 1.0)
    which, place = spread_points(patches, weight, 20_000)
    number = np.bincount(which, minlength=len(patches))
    assert np.abs(number - 20_000 * weight / weight.sum()).max() <= 1.0 + 1e-6  # stratified
    off = ((place - patches.corners[which, 0]) * patches.normal[which]).sum(axis=-1)
    assert np.abs(off).max() < 1e-9  # in the plane of their triangles


def test_kept_points_leave_each_other_room() -> None:
    rng = np.random.default_rng(3)
    place = np.concatenate((rng.random((6000, 2)), np.zeros((6000, 1))), axis=1)
    up, distance = np.tile((0.0, 0.0, 1.0), (6000, 1)), np.full(6000, np.sqrt(1.0 / 2000))
    kept = evenly(place, up, distance, 1500)
    assert len(kept) == len(set(kept)) == 1500
    gaps = np.linalg.norm(place[kept][:, None] - place[kept], axis=-1) + np.eye(1500)
    assert gaps.min() >= 0.78 * distance[0]


def test_outer_faces_are_not_seen_from_inside(batch: SceneBatch) -> None:
    patches = patches_of(batch.scenes[0], 0.4)
    exposed, behind, witnesses = exposure_of(batch, patches, viewpoints(batch, 16))
    outside = np.abs(patches.corners[..., :2]).min(axis=1).max(axis=1) > 2.15
    assert outside.sum() > 100
    assert not exposed[outside].any()
    assert (witnesses[outside] == -1).all()
    assert not behind[exposed > 0].any()  # solids are seen from outside their own triangles
    floor = (np.abs(patches.corners[..., 2]) < 1e-6).all(axis=1) & (patches.normal[:, 2] > 0.5)
    middle = patches.corners[floor].mean(axis=1)
    free = (np.abs(middle[:, :2]) < 1.9).all(axis=1) & (middle[:, 0] * middle[:, 1] < 0.0) & (middle[:, 0] > 0.0)
    assert free.sum() > 20
    assert (exposed[floor][free] > 0).all()  # the quarter of the floor without crate and column


def test_gaussians_lie_flat_on_what_is_seen(splats: Splats) -> None:
    assert splats.degree == 0
    assert len(splats) == 8000  # the room is closed: no sky
    # Within the room's inner faces, float32.
    assert (np.abs(splats.position[:, :2]) < 2.0 + 1e-5).all()
    assert (splats.position[:, 2] > -1e-5).all()
    floor = np.abs(splats.position[:, 2]) < 1e-5
    assert floor.sum() > 500
    up = frames.rotate(splats.rotation[floor].astype(np.float64), np.array([0.0, 0.0, 1.0]))
    assert np.abs(up[:, 2]).min() > 1 - 1e-6
    assert (splats.scale[:, 2] <= splats.scale[:, :2].min(axis=1)).all()


def test_the_room_looks_like_itself_and_training_helps(batch: SceneBatch, splats: Splats) -> None:
    kept = scene_views(batch, 4, 160, 90, first=HELD_OUT)
    before = image_quality(splats, kept).psnr
    better = polished(splats, [scene_views(batch, 24, 160, 90)], PolishOptions(steps=48))
    after = image_quality(better, kept).psnr
    # Figures of a first run, less 2 dB: a hole, a wrong side or a wrong tone costs more than that.
    assert before > 33.5
    assert after > before + 2.5
    assert len(better) == len(splats)
    assert np.isfinite(better.harmonics).all()


def test_same_scene_same_bytes() -> None:
    one, two = (splats_from_scene(_room(), count=500, options=PLAIN) for _ in range(2))
    for name in ("position", "rotation", "scale", "opacity", "harmonics"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_spacing_sets_the_number_and_an_open_scene_has_a_sky() -> None:
    room = _room()
    tray = Scene("tray", room.shapes, room.materials, instances=room.instances[:1], lights=room.lights, bounds=room.bounds)
    found = splats_from_scene(tray, spacing=0.1, options=PLAIN)
    ground = np.abs(found.position[:, 2]) < 0.2
    far = np.linalg.norm(found.position, axis=1) > 10.0
    assert ground.sum() == pytest.approx(4.4 * 4.4 / 0.1**2, rel=0.02)  # its top is seen whole, its rim not from above
    assert far.sum() > 1000
    assert (far | ground).all()


def test_tone_and_psnr() -> None:
    # 0.5 is below the shoulder: sRGB of 0.5 is 0.735357.
    assert display_color(np.full(3, 0.25), 2.0) == pytest.approx(np.full(3, 0.735357), abs=1e-5)
    assert image_psnr(np.full((4, 4, 3), 0.6), np.full((4, 4, 3), 0.5)) == pytest.approx(20.0)


def test_bad_requests_are_refused(batch: SceneBatch) -> None:
    for request in ({}, {"spacing": 0.1, "count": 5}, {"count": -1}):
        with pytest.raises(AirworthyError, match="give one of them"):
            splats_from_scene(batch, **request)
    with pytest.raises(AirworthyError, match="no visible surface"):
        patches_of(Scene("nothing"))
    with pytest.raises(AirworthyError, match="cannot be converted"):
        ConvertOptions(opacity=1.0)


def test_distances_of_points_stay_near_what_is_expected() -> None:
    """A grid of steps of 1 m: as measured where that is expected, else at most 1.8 times and at least half of it."""
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    up = np.tile([0.0, 0.0, 1.0], (len(grid), 1))
    inner = 12  # the middle of the grid, which has its four neighbours
    for expected, found in ((1.2, 1.0), (0.1, 0.18), (4.0, 2.0)):
        assert _distances(grid, up, np.full(len(grid), expected))[inner] == pytest.approx(found, rel=1e-12)
