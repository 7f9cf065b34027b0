"""Looks as flat arrays: texels, mip levels, vertex words, lights."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Mesh
from airworthy.scenes.appearance import Appearance, appearance_of, basis, packed_faces, packed_vertices, uv_density
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, Scene, Texture
from airworthy.scenes.texels import (
    halved,
    height_to_normal,
    linear_pixels,
    mip_chain,
    mip_sides,
    octahedral,
    pack,
    pack_shared_exponent,
    unpack,
    unpack_shared_exponent,
)
from airworthy.scenes.textures import procedural

RNG = np.random.default_rng(0)


def test_eight_bit_data_survive_packing_exactly_and_colours_nearly() -> None:
    codes = np.arange(256) / 255.0
    values = np.stack([codes, codes[::-1], codes, np.ones(256)], -1)
    np.testing.assert_allclose(unpack(pack(values, False), False)[:, :3], values[:, :3], atol=1e-7)
    # Half a count of the root: at most a quarter of a step of an 8-bit image with a gamma of 2.
    roots = np.sqrt(unpack(pack(values, True), True)[:, :3])
    assert np.abs(roots - np.sqrt(values[:, :3])).max() <= 0.5 / 510 + 1e-6


def test_light_without_bounds_survives_to_two_parts_in_a_thousand_of_its_brightest_channel() -> None:
    light = np.exp(RNG.uniform(-12, 4.5, (2000, 3)))
    back = unpack_shared_exponent(pack_shared_exponent(light))
    assert (np.abs(back - light) / light.max(1, keepdims=True)).max() < 2.1e-3
    assert (unpack_shared_exponent(pack_shared_exponent(np.array([[0.0, 0.0, 0.0], [np.nan, -1.0, 1e9]]))) >= 0.0).all()


@pytest.mark.parametrize("shape", [(8, 8), (7, 5), (1, 6), (3, 1)])
def test_every_mip_level_has_the_mean_of_the_image(shape: tuple[int, int]) -> None:
    image = RNG.uniform(0, 1, (*shape, 4)).astype(np.float32)
    mean = image.mean((0, 1))
    while max(image.shape[:2]) > 1:
        image = halved(image)
        np.testing.assert_allclose(image.mean((0, 1)), mean, atol=2e-6)
    assert len(mip_chain(RNG.uniform(0, 1, (8, 8, 4)).astype(np.float32), 0, True)) == 4


def test_scaled_textures_leave_their_first_levels_out() -> None:
    image = RNG.uniform(0, 1, (16, 16, 4)).astype(np.float32)
    whole, half = mip_chain(image, 0, True), mip_chain(image, 1, True)
    np.testing.assert_array_equal(half[0], whole[1])
    assert len(mip_chain(image, 9, True)) == 1


@pytest.mark.parametrize(("width", "height", "skip"), [(8, 8, 0), (13, 5, 1), (1, 7, 0), (6, 1, 9), (1, 1, 0), (12, 9, 2)])
def test_sides_of_levels_are_those_of_the_chain(width: int, height: int, skip: int) -> None:
    levels = mip_chain(RNG.uniform(0, 1, (height, width, 4)).astype(np.float32), skip, False)
    assert mip_sides(width, height, skip) == [(level.shape[1], level.shape[0]) for level in levels]


def test_texels_are_held_once() -> None:
    """Beside `texels` an appearance holds no words as many as they are, whatever is reached from it."""
    pixels = RNG.integers(0, 256, (256, 256, 3), np.uint8)
    batch = SceneBatch(scene(pixels))
    looks = Appearance(batch)
    seen, held, queue = set(), 0, list(vars(looks).values())
    while queue:
        item = queue.pop()
        if id(item) in seen or item is batch:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            held += item.nbytes if item.dtype == np.uint32 and item.size > 1000 else 0
        elif isinstance(item, dict | list | tuple | set):
            queue += list(item.values() if isinstance(item, dict) else item)
        elif type(item).__module__.endswith("scenes.appearance"):
            queue += list(vars(item).values())
    assert held == looks.texels.nbytes


def test_grey_and_transparent_images_are_spread() -> None:
    grey = linear_pixels(Texture(np.full((1, 1, 1), 51, np.uint8), srgb=False))
    np.testing.assert_allclose(grey[0, 0], [0.2, 0.2, 0.2, 1.0], atol=1e-6)
    clear = linear_pixels(Texture(np.array([[[0, 255, 0, 51]]], np.uint8)))
    np.testing.assert_allclose(clear[0, 0], [0.0, 1.0, 0.0, 0.2], atol=1e-6)


def test_a_ramp_of_height_becomes_its_slope() -> None:
    rows = np.linspace(0.0, 1.0, 32, dtype=np.float32)[:, None] * np.ones((1, 16), np.float32)
    normal = height_to_normal(rows, 0.1, (2.0, 1.0))[10, 5] / 127.5 - 1.0
    slope = 0.1 * (32 / 31) / 1.0  # metres per metre downwards in the image: the surface falls towards its top
    np.testing.assert_allclose(normal, np.array([0.0, slope, 1.0]) / np.hypot(slope, 1.0), atol=0.01)


def test_normals_survive_the_octahedron() -> None:
    n = RNG.standard_normal((5000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    packed = octahedral(n)
    x, y = (packed & 65535) / 65535 * 2 - 1, (packed >> 16) / 65535 * 2 - 1
    z = 1 - np.abs(x) - np.abs(y)
    fold = z < 0
    x, y = (
        np.where(fold, (1 - np.abs(y)) * np.where(x < 0, -1, 1), x),
        np.where(fold, (1 - np.abs(x)) * np.where(y < 0, -1, 1), y),
    )
    back = np.stack([x, y, z], -1)
    back /= np.linalg.norm(back, axis=1, keepdims=True)
    assert np.abs(back - n).max() < 1e-4


def test_tangents_follow_u_and_know_mirrored_coordinates() -> None:
    vertices = np.array([[0, 0, 0], [2, 0, 0], [2, 1, 0]], np.float32)
    normals = np.tile(np.float32([0, 0, 1]), (3, 1))
    for sign in (1.0, -1.0):
        uv = np.stack([sign * vertices[:, 0] * 0.5, -vertices[:, 1]], -1)
        mesh = Mesh(vertices, np.array([[0, 1, 2]]), normals, uv)
        word = packed_vertices(mesh)[0, 4]
        first, second = basis(normals[0])
        angle = (word & 32767) / 32768 * 2 * np.pi
        np.testing.assert_allclose(np.cos(angle) * first + np.sin(angle) * second, [sign, 0.0, 0.0], atol=2e-4)
        assert bool(word >> 15 & 1) == (sign > 0)  # v grows downwards: n x u points against it
        assert word >> 16 == 65535
    np.testing.assert_allclose(uv_density(mesh), np.sqrt(0.5))  # half a repeat per metre along, one across
    assert packed_faces(mesh)[0, 0] == 0


def scene(pixels: np.ndarray | None = None) -> Scene:
    shared = Texture(np.zeros((64, 64, 3), np.uint8) if pixels is None else pixels)
    materials = {"a": Material(base_color_map="t"), "b": Material(base_color_map="t", emissive_map="t")}
    instances = (Instance("box", materials=("a",)), Instance("box", (3.0, 0.0, 0.0), materials=("b",)))
    return Scene("s", {"box": Box((1, 1, 1))}, materials, {"t": shared}, instances)


def test_textures_are_shared_scaled_and_bounded() -> None:
    batch = SceneBatch(scene())
    looks = Appearance(batch)
    assert len(looks.textures) == 1
    assert looks.texels.size == sum(4**k for k in range(7))
    assert Appearance(batch, 0.125).texels.size == sum(4**k for k in range(4))
    with pytest.raises(AirworthyError, match="MiB"):
        Appearance(batch, texel_bytes_max=1000)
    with pytest.raises(AirworthyError, match=r"0\.125"):
        Appearance(batch, 0.3)
    assert looks.memory()["textures"] >= looks.texels.nbytes


def test_looks_are_packed_once_until_scenes_join() -> None:
    batch = SceneBatch([scene(), scene()])
    first = appearance_of(batch)
    assert appearance_of(batch) is first
    assert appearance_of(batch, 0.5) is not first
    batch.assign([0], scene(np.full((4, 4, 3), 9, np.uint8)))
    second = appearance_of(batch)
    assert second is not first
    assert len(second.skies) == 3


def test_a_checker_has_eight_fields_a_side() -> None:
    pixels = procedural("checker", 64).pixels.astype(int)
    field = np.indices((64, 64)) // 8
    dark, light = pixels[0, 0], pixels[0, 8]
    assert (dark < light).all()
    np.testing.assert_array_equal(pixels, np.where((field.sum(0) % 2 == 0)[..., None], dark, light))
