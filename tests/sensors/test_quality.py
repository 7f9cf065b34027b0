"""Quality profiles and their memory."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import UnknownNameError
from airworthy.geometry import Box, Mesh
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, Scene, Texture
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import device
from airworthy.sensors.quality import memory, memory_table, profile, profile_names, scene_at

MAPS = ("base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "detail_map")


def sheet(n: int, seed: int = 0) -> Mesh:
    """A wavy sheet of 2 (n - 1)^2 triangles with normals and texture coordinates."""
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    z = 0.1 * np.sin(9 * x + seed) * np.cos(7 * y)
    vertices = np.stack([x, y, z], -1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).reshape(-1, 1)
    faces = np.concatenate([corner + np.array([0, 1, n + 1]), corner + np.array([0, n + 1, n])]).astype(np.int32)
    normals = np.tile(np.array([0.0, 0.0, 1.0], np.float32), (len(vertices), 1))
    return Mesh(vertices, faces, normals, np.stack([x, y], -1).reshape(-1, 2).astype(np.float32))


def large_scene(models: int, side: int, texels: int, instances: int) -> Scene:
    """Unique meshes with six maps each, placed many times."""
    shapes, materials, textures = {}, {}, {}
    for k in range(models):
        names = {key: f"{key}{k}" for key in MAPS}
        shapes[f"m{k}"] = sheet(side, k)
        materials[f"m{k}"] = Material(**names)
        for key, name in names.items():
            pixels = np.full((texels, texels, 3), k % 256, np.uint8)
            textures[name] = Texture(pixels, srgb=key in ("base_color_map", "emissive_map"))
    rng = np.random.default_rng(0)
    things = tuple(
        Instance(f"m{k % models}", tuple(rng.uniform(-20, 20, 3)), materials=(f"m{k % models}",)) for k in range(instances)
    )
    return Scene("large", shapes, materials, textures, things)


def test_the_table_is_the_published_one() -> None:
    """spec/flightgoggles 2.5."""
    rows = [profile(name) for name in profile_names()]
    assert profile_names() == ["VeryLow2GB", "Low2GB", "Medium", "High", "VeryHigh", "Ultra"]
    assert [r.texture_scale for r in rows] == [1 / 8, 1 / 4, 1 / 2, 1, 1, 1]
    assert [r.reflections for r in rows] == [False, False, False, True, True, True]
    assert [r.finest_level for r in rows] == [2, 1, 0, 0, 0, 0]
    assert [r.shadow_distance for r in rows] == [15, 20, 20, 40, 70, 150]
    assert [r.samples for r in rows] == [1, 1, 1, 1, 2, 2]
    assert [r.published_mono for r in rows] == [1.45, 1.56, 1.73, 4.28, 4.28, 4.28]
    assert [r.published_stereo for r in rows] == [2.00, 2.07, 2.30, 4.97, 4.97, 4.97]
    options = profile().options(samples=4)
    assert (options.samples, options.reflections, options.shadow_distance) == (4, True, 40.0)
    with pytest.raises(UnknownNameError, match="Ultra"):
        profile("ultra")


def test_a_camera_uses_its_profile() -> None:
    camera = make_sensor(device("flightgoggles_camera").variant(quality="VeryHigh"))
    assert camera._shading() == profile("VeryHigh").options()  # type: ignore[attr-defined]
    with pytest.raises(UnknownNameError, match="VeryHigh"):
        make_sensor(device("flightgoggles_camera").variant(quality="VeriHigh"))


def test_memory_is_that_of_the_arrays() -> None:
    scene = Scene(
        "s",
        {"m": sheet(60), "b": Box((1, 1, 1))},
        {"m": Material(base_color_map="t", texture_size=1.0)},
        {"t": Texture(np.zeros((256, 256, 3), np.uint8))},
        (Instance("m", materials=("m",)), Instance("b")),
    )
    batch = SceneBatch(scene)
    full, least = (memory(batch, profile(name), 64, 48) for name in ("High", "VeryLow2GB"))
    # Mip levels below the largest are a third of it; of the smallest profile some rows of the table count, too.
    assert full["textures"] == pytest.approx(256 * 256 * 4 * 4 / 3, rel=0.01)
    assert least["textures"] == pytest.approx(full["textures"] / 64, rel=0.1)
    assert least["mesh_triangles"] < 0.08 * full["mesh_triangles"]
    assert full["images"] == 64 * 48 * 75
    assert memory(batch, profile("High"), 64, 48, cameras=2)["images"] == 64 * 48 * (75 + 39)
    assert len(scene_at(scene, profile("Low2GB")).shapes["m"].faces) <= 0.25 * 2 * 59**2  # type: ignore[union-attr]


def test_the_table_of_memory_falls_with_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    batch = SceneBatch(large_scene(3, 24, 64, 9))
    table = memory_table(batch, width=32, height=24)
    mono = [table[name][0] for name in profile_names()]
    assert mono[0] < mono[1] < mono[2] < mono[3] < mono[4] == mono[5]
    assert all(stereo == one + 32 * 24 * 39 for one, stereo in table.values())
    parts = memory(batch, profile("VeryHigh"), 32, 24)
    assert sum(parts.values()) == table["VeryHigh"][0]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[1].split()[0] == "VeryLow2GB"


def _per_unit(name: str) -> tuple[float, float, float]:
    """Bytes of the arrays per texel of a full texture, per triangle of a full mesh, and per instance."""
    small, more = (memory(SceneBatch(large_scene(4, 40, 64, n)), profile(name), 1, 1) for n in (4, 104))
    texels = 4 * len(MAPS) * 64 * 64
    triangles = 4 * 2 * 39**2
    meshes = sum(v for k, v in small.items() if "mesh" in k or "attributes" in k)
    placed = (sum(more.values()) - sum(small.values())) / 100
    return small["textures"] / texels, meshes / triangles, placed


def test_the_published_factory_fits_the_smallest_profile_in_two_gigabytes() -> None:
    """spec/flightgoggles 2.1 and 10.15: 84 unique models, six maps of 4,096 x 4,096 each, 1,050 instances; 40 million triangles
    are drawn, and even if all of them were unique it fits. Bytes per texel, triangle and instance are those of real arrays."""
    texel, triangle, instance = _per_unit("VeryLow2GB")
    images = 1024 * 768 * 75
    total = texel * 84 * 6 * 4096**2 + triangle * 40e6 + instance * 1050 + images
    assert total < 2e9
    # Full textures would not: what the profile is for.
    assert _per_unit("High")[0] * 84 * 6 * 4096**2 > 20e9


@pytest.mark.slow
def test_a_large_scene_stays_below_two_gigabytes() -> None:
    """84 models of 40,000 triangles, 504 maps of 512 x 512, 1,050 instances: all arrays built."""
    batch = SceneBatch(large_scene(84, 142, 512, 1050))
    table = memory_table(batch, ("VeryLow2GB", "High"))
    assert table["VeryLow2GB"][1] < 2e9
    assert table["VeryLow2GB"][0] < 0.2 * table["High"][0]
