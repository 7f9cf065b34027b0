"""Baked light against closed forms, and its cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box, Mesh, RayTable
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.directions import RAYS_PER_PASS, attitudes_towards, hemisphere_table, parts, sphere_table
from airworthy.rendering.light_baking import bake, baked_light, load_baked, save_baked, scene_hash, use_baked
from airworthy.rendering.occlusion import scene_occlusion, vertex_occlusion
from airworthy.rendering.shading import ShadingOptions, shade
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import fill_invalid
from airworthy.scenes.record import Instance, Material, PointLight, Region, Scene, Sky, Sun
from airworthy.scenes.texels import unpack_shared_exponent

WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
COARSE = BakeSettings(bounces=2, rays=128, probe_spacing=1.0, texel=0.5, finest=1.0, occlusion_rays=0)
LAMBERT = ShadingOptions(specular=False, sun_disc=False)


def room(albedo: float = 0.5, half: float = 2.0) -> Scene:
    """A closed cube of side 2 half with a lamp in its middle."""
    shapes = {"wall": Box((half + 0.2, half + 0.2, 0.1))}
    s = float(np.sqrt(0.5))
    turns = [(0.0, 0.0, 0.0, 1.0), (0.0, s, 0.0, s), (s, 0.0, 0.0, s)]
    walls = []
    for axis, turn in zip((2, 0, 1), turns, strict=True):
        for side in (-1, 1):
            place = [0.0, 0.0, 0.0]
            place[axis] = side * (half + 0.1)
            walls.append(Instance("wall", (place[0], place[1], place[2]), turn, materials=("m",)))
    bounds = Region((-half, -half, -half), (half, half, half))
    material = {"m": Material((albedo, albedo, albedo, 1.0))}
    return Scene(
        "room",
        shapes,
        material,
        {},
        tuple(walls),
        lights=(PointLight((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 4.0),),
        sky=WHITE,
        bounds=bounds,
    )


def test_directions_cover_sphere_and_hemisphere_evenly() -> None:
    d = sphere_table(512).directions[0]
    np.testing.assert_allclose(d.mean(0), 0.0, atol=5e-3)
    np.testing.assert_allclose((d**2).mean(0), 1 / 3, atol=2e-3)
    h = hemisphere_table(256).directions[0]
    # Of a cosine-weighted hemisphere the mean cosine is 2/3 and the mean square of a side 1/4.
    np.testing.assert_allclose(h.mean(0), [0.0, 0.0, 2 / 3], atol=1e-2)
    np.testing.assert_allclose((h**2).mean(0), [0.25, 0.25, 0.5], atol=5e-3)


def test_attitudes_turn_z_onto_normals() -> None:
    from airworthy.core.frames import rotate

    n = np.concatenate([np.random.default_rng(0).standard_normal((50, 3)), [[0, 0, -1.0], [0, 0, 1.0]]])
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    np.testing.assert_allclose(rotate(attitudes_towards(n), np.array([0.0, 0.0, 1.0])), n, atol=1e-7)


def test_light_in_a_closed_room_grows_by_its_bounces() -> None:
    """A lamp of intensity I sends 4 pi I; after many bounces the walls of area A hold 4 pi I a / (1 - a) / A of indirect
    irradiance on average, after n of them the first n terms of that series."""
    for bounces in (1, 3):
        baked = bake(room(), replace(COARSE, bounces=bounces))
        nodes = unpack_shared_exponent(baked.nodes[:, 0])
        layout_faces = _inner_nodes(baked)
        mean = float(np.mean([nodes[f, 0].mean() for f in layout_faces]))
        series = sum(0.5**k for k in range(1, bounces + 1))
        # Means over nodes of the whole plate, of which a fifth lies behind its neighbours and took over their light.
        assert mean == pytest.approx(4 * np.pi * 4.0 * series / 96.0, rel=0.1)


def test_light_goes_round_until_it_no_longer_changes() -> None:
    """The whole series: 4 pi I a / (1 - a) / A, in walls that send back 0.8 of what they get."""
    scene = room(0.8)
    mean = {}
    for bounces in (3, 0):
        nodes = unpack_shared_exponent((baked := bake(scene, replace(COARSE, bounces=bounces))).nodes[:, 0])
        mean[bounces] = float(np.mean([nodes[f, 0].mean() for f in _inner_nodes(baked)]))
    assert mean[0] == pytest.approx(4 * np.pi * 4.0 * 0.8 / 0.2 / 96.0, rel=0.1)
    # Three bounces are the first three terms, and short by what the rest of the series has.
    assert mean[3] / mean[0] == pytest.approx(1.0 - 0.8**3, abs=0.03)


def _inner_nodes(baked: object) -> list[np.ndarray]:
    maps = baked.maps  # type: ignore[attr-defined]
    faces = []
    for row, side in enumerate((1, 0, 1, 0, 1, 0)):
        first, x, y, z = (int(v) for v in maps[row])
        start = first + 2 * y * z + 2 * x * z + side * x * y
        kind = row // 2
        # The wall turned about x by 90 degrees looks the other way.
        if kind == 2:
            start = first + 2 * y * z + 2 * x * z + (1 - side) * x * y
        faces.append(np.arange(start, start + x * y))
    return faces


def test_a_floor_between_tall_walls_sees_half_of_the_sky_at_their_feet() -> None:
    """Beside an endless black wall the open share of a cosine-weighted hemisphere is 1/2, far from it 1."""
    shapes = {"floor": Box((20.0, 20.0, 0.5)), "wall": Box((0.5, 20.0, 30.0))}
    materials = {"m": Material((0.0, 0.0, 0.0, 1.0))}
    instances = (Instance("floor", (0.0, 0.0, -0.5), materials=("m",)), Instance("wall", (-20.5, 0.0, 30.0), materials=("m",)))
    scene = Scene("s", shapes, materials, {}, instances, lights=(), sky=WHITE, bounds=Region((-20, -20, 0), (20, 20, 10)))
    baked = bake(
        scene, BakeSettings(bounces=1, rays=256, texel=0.5, probes_max=500, nodes_max=60_000, finest=1.0, occlusion_rays=0)
    )
    first, x, y, z = (int(v) for v in baked.maps[0])
    top = first + 2 * y * z + 2 * x * z + x * y
    light = unpack_shared_exponent(baked.nodes[top : top + x * y, 0]).reshape(x, y, 3)[:, y // 2, 0] / np.pi
    assert light[0] == pytest.approx(0.5, abs=0.04)
    distance = np.linspace(0, 40, x)
    far = np.argmin(np.abs(distance - 20.0))
    rng = np.random.default_rng(0)
    u, azimuth = rng.uniform(size=200_000), rng.uniform(0, 2 * np.pi, 200_000)
    dx, dy, dz = np.sqrt(u) * np.cos(azimuth), np.sqrt(u) * np.sin(azimuth), np.sqrt(1 - u)
    reach = np.where(dx < 0, distance[far] / np.maximum(-dx, 1e-9), 0.0)
    blocked = (dx < 0) & (np.abs(dy * reach) < 20.0) & (dz * reach < 60.0)
    assert light[far] == pytest.approx(1.0 - blocked.mean(), abs=0.02)  # 256 directions
    assert light[far] > light[5] > light[0]


def corner_mesh() -> Mesh:
    """Two square plates of 20 m that meet at a right angle along y, with a vertex in the middle of the edge."""
    s = 10.0
    v = np.array(
        [[0, -s, 0], [2 * s, -s, 0], [2 * s, s, 0], [0, s, 0], [0, -s, 2 * s], [0, s, 2 * s], [0.05, 0, 0], [10.0, 0, 0]]
    )
    f = np.array([[0, 1, 7], [1, 2, 7], [2, 3, 7], [0, 7, 6], [7, 3, 6], [0, 6, 3], [0, 3, 5], [0, 5, 4]])
    n = np.tile(np.float32([0, 0, 1]), (8, 1))
    return Mesh(v.astype(np.float32), f.astype(np.int32), n)


def test_a_vertex_in_a_corner_is_half_open() -> None:
    occlusion = vertex_occlusion(corner_mesh(), 512, 100.0)
    # An endless wall beside the vertex would take half; this one of 20 m within 5 cm takes all but a hundredth of it.
    assert occlusion[6] == pytest.approx(0.5, abs=0.03)
    # From 10 m the wall is a strip up to an elevation of 63 degrees and 45 to each side.
    assert 0.8 < occlusion[7] < 0.95
    assert vertex_occlusion(corner_mesh(), 128, 5.0)[7] == 1.0  # farther than asked
    named = scene_occlusion(Scene("s", {"c": corner_mesh()}, instances=(Instance("c", scale=2.0),)), 16, 2.0, 100)
    assert set(named) == {"c"}


def test_baked_images_lose_the_sky_indoors_and_gain_the_bounce(tmp_path: Path) -> None:
    scene = room()
    batch = SceneBatch(scene)
    table = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    view = (batch, table, [[1.0, 0.5, 0.0]], [[0.0, 0.0, 0.0, 1.0]])
    open_sky = shade(*view, options=LAMBERT)[0, 0, 0, 0]
    use_baked(batch, replace(COARSE, bounces=3), folder=tmp_path)
    lit = shade(*view, options=LAMBERT)[0, 0, 0, 0]
    square = 1.0 + 0.25 + 4.0
    direct = 0.5 / np.pi * 4.0 / square * 2.0 / np.sqrt(square)
    assert open_sky == pytest.approx(direct + 0.5, rel=1e-3)
    indirect = 4 * np.pi * 4.0 * (0.5 + 0.25 + 0.125) / 96.0 * 0.5 / np.pi
    assert lit == pytest.approx(direct + indirect, rel=0.12)  # the mean over walls, and this place
    assert shade(*view, options=replace(LAMBERT, baked=False))[0, 0, 0, 0] == open_sky
    appearance_of(batch).use(0, None)
    assert shade(*view, options=LAMBERT)[0, 0, 0, 0] == open_sky


def test_beyond_the_shadows_reach_the_baked_sun_is_taken() -> None:
    scene = replace(room(), lights=(Sun((0.0, 0.0, -1.0)),), sky=Sky((0, 0, 0), (0, 0, 0), (0, 0, 0)))
    batch = SceneBatch(scene)
    view = (batch, RayTable(np.array([[[0.0, 0.0, -1.0]]])), [[1.0, 0.5, 0.0]], [[0.0, 0.0, 0.0, 1.0]])
    near = replace(LAMBERT, shadow_distance=0.5)
    assert shade(*view, options=near)[0, 0, 0, 0] > 0.3  # no shadow so far away
    appearance_of(batch).use(0, bake(scene, replace(COARSE, bounces=1)))
    assert shade(*view, options=near)[0, 0, 0, 0] < 1e-3


def test_baking_is_deterministic_cached_by_content_and_mends_a_damaged_file(tmp_path: Path) -> None:
    first = baked_light(room(), COARSE, tmp_path)
    (path,) = tmp_path.iterdir()
    again = bake(room(), COARSE, threads=1)
    np.testing.assert_array_equal(first.probes, again.probes)
    np.testing.assert_array_equal(first.nodes, again.nodes)
    loaded = load_baked(path)
    np.testing.assert_array_equal(loaded.nodes, first.nodes)
    assert scene_hash(room(), COARSE) == scene_hash(room(), COARSE)
    assert scene_hash(room(0.6), COARSE) != scene_hash(room(), COARSE)
    assert scene_hash(room(), replace(COARSE, rays=64)) != scene_hash(room(), COARSE)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AssetError, match="baked anew"):
        load_baked(path)
    np.testing.assert_array_equal(baked_light(room(), COARSE, tmp_path).nodes, first.nodes)


def test_baked_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    baked = bake(room(), replace(COARSE, bounces=1, rays=16))
    for wrong in (
        replace(baked, maps=baked.maps + np.array([0, 200, 0, 0], np.int32)),
        replace(baked, counts=baked.counts + 1),
        replace(baked, map_of_instance=baked.map_of_instance + 100),
        replace(baked, spacing=baked.spacing * 0.0),
    ):
        path = save_baked(wrong, tmp_path / "x.safetensors")
        with pytest.raises(AssetError, match="do not fit"):
            load_baked(path)


def test_invalid_cells_take_their_neighbours() -> None:
    values = np.arange(12.0).reshape(3, 4, 1)
    valid = np.ones((3, 4), bool)
    valid[1, 1] = False
    assert fill_invalid(values, valid)[1, 1, 0] == pytest.approx((1 + 9 + 4 + 6) / 4)
    assert np.isfinite(fill_invalid(values, np.zeros((3, 4), bool))).all()


@pytest.mark.parametrize("bad", [{"bounces": -1}, {"rays": 0}, {"texel": 0.0}, {"probe_spacing": -1.0}, {"occlusion_rays": -1}])
def test_settings_refuse_nonsense(bad: dict[str, float]) -> None:
    with pytest.raises(AirworthyError, match="cannot be baked"):
        BakeSettings(**bad)  # type: ignore[arg-type]


def test_passes_are_as_few_as_their_bound_allows() -> None:
    """All points once, in order; a point whose rays alone are more than the bound has a pass of its own."""
    half = RAYS_PER_PASS // 2
    assert [(part.start, part.stop) for part in parts(5, half, "", True)] == [(0, 2), (2, 4), (4, 5)]
    assert [(part.start, part.stop) for part in parts(2, 3 * half, "", True)] == [(0, 1), (1, 2)]
