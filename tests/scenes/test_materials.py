"""The library of materials: maps that agree with one another, no seam, believable numbers, same bytes, honest refusals."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.capture.photograph import power_slope
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, UnknownNameError
from airworthy.geometry import Box
from airworthy.scenes import (
    Decal,
    Instance,
    Material,
    MaterialRecipe,
    Scene,
    check_scene,
    read_scene,
    scene_digest,
    write_scene,
)
from airworthy.scenes.appearance import Appearance
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.materials import (
    MaterialMaps,
    card,
    decorated,
    library,
    material_maps,
    material_names,
    material_recipe,
    scene_with_materials,
    with_material,
)
from airworthy.scenes.materials.canvas import Canvas
from airworthy.scenes.materials.layers import LUMINANCE, decoded, occluded
from airworthy.scenes.materials.swatches import swatch

SIZE = 128
"""Small: what is tested holds at every size."""
NAMES = material_names()
TILED = [name for name in NAMES if not material_recipe(name).cut]
SEED = 5


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this file's own, so that what is tested is drawn by the code of today."""
    path = tmp_path_factory.mktemp("materials")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRWORTHY_CACHE", str(path))
        yield path / "materials"


def maps(name: str, size: int = SIZE) -> MaterialMaps:
    return material_maps(name, size)


def test_the_library_holds_what_its_page_promises() -> None:
    promised = (
        "concrete asphalt asphalt_marked brick plaster bark_oak bark_pine bark_birch leaf grass gravel soil leaf_litter snow"
        " corrugated steel painted_steel planks cloth tile glass dirt_run leak poster sign_speed tyre_marks hazard_stripes"
    )
    assert set(promised.split()) <= set(NAMES)
    for name in NAMES:
        recipe = material_recipe(name)
        assert recipe.summary, name
        assert recipe.source, name


# ---- no seam ----------------------------------------------------------------------------------------------------------------


def _steps(image: Array, axis: int) -> tuple[float, float]:
    """Mean absolute step over the map's edge, and the largest mean step between any other two lines."""
    step = np.abs(image - np.roll(image, 1, axis)).mean(axis=tuple(k for k in range(image.ndim) if k != axis))
    return float(step[0]), float(np.sort(step[1:])[-1])


@pytest.mark.parametrize("name", TILED)
def test_tiles_join(name: str) -> None:
    """Over the edge no line differs more from its neighbour than the most different two lines inside."""
    found = maps(name)
    for field in (found.linear_albedo(), found.height.astype(float), found.surface[..., 1] / 255.0):
        for axis in (0, 1):
            over, inside = _steps(field, axis)
            # Joints of bricks, boards and sheets lie on the edge as elsewhere.
            assert over <= 1.3 * inside + 1e-9, (name, axis)


def test_noise_is_periodic_and_has_the_slope_asked_for() -> None:
    field = Canvas("test", 1, 256, 1.0, 0.0).noise("n", 2.0, 2.0)
    power = np.abs(np.fft.fft2(field)) ** 2
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(256, 1 / 256), np.fft.fftfreq(256, 1 / 256)))
    rings = [power[(frequency >= f) & (frequency < 2 * f)].mean() for f in (8, 16, 32)]
    # A ring twice as far has a quarter of the power: the mean of some hundred draws, each as uncertain as itself.
    np.testing.assert_allclose(np.diff(np.log2(rings)), -2.0, atol=0.25)
    assert abs(field.mean()) < 1e-12


# ---- maps that agree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TILED)
def test_normals_are_those_of_the_height(name: str) -> None:
    """By differences taken here: the normal stands on the relief within what eight bits keep."""
    found = maps(name)
    height = found.height.astype(np.float64) * found.relief
    pixel = found.tile / SIZE
    right = (np.roll(height, -1, 1) - np.roll(height, 1, 1)) / (2.0 * pixel)
    down = (np.roll(height, -1, 0) - np.roll(height, 1, 0)) / (2.0 * pixel)
    # Green is up in the image, which is against the rows.
    wanted = np.stack([-right, down, np.ones_like(right)], -1)
    wanted /= np.linalg.norm(wanted, axis=-1, keepdims=True)
    kept = found.normal / 255.0 * 2.0 - 1.0
    # Half a step of 2 / 255 per channel, and float32 heights.
    assert np.abs(kept - wanted).max() <= 1.0 / 255.0 + 1e-3, name


@pytest.mark.parametrize("name", NAMES)
def test_occlusion_is_a_share_and_hollows_are_darker(name: str) -> None:
    found = maps(name)
    assert found.occlusion.min() >= 0.0
    assert found.occlusion.max() <= 1.0
    if found.occlusion.min() > 0.98:
        return  # flat: nothing stands before anything
    height = found.height.astype(float)
    # Against its surroundings: a hollow of the relief, not the low side of a slope.
    near = height - _mean_around(height, 4)
    low, high = np.quantile(near, (0.03, 0.97))
    deep, proud = found.occlusion[near <= low].mean(), found.occlusion[near >= high].mean()
    assert deep < proud, name


def _mean_around(field: Array, reach: int) -> Array:
    shifts = [(r, c) for r in range(-reach, reach + 1, 2) for c in range(-reach, reach + 1, 2)]
    return np.mean([np.roll(field, shift, (0, 1)) for shift in shifts], axis=0)


def test_occlusion_of_a_groove_has_its_closed_form() -> None:
    """In the middle of a long groove of depth d and half width w, horizons stand at d / w across and at 0 along."""
    height = np.zeros((64, 64))
    height[:, 28:37] = -0.03
    found = occluded(height, 0.01)
    # Across: 5 pixels to the wall on both sides; found at 7 by the steps looked at. Diagonally the same by root of 2.
    across, slant = 1.0 / (1.0 + (0.03 / 0.07) ** 2), 1.0 / (1.0 + (0.03 / (0.07 * 2**0.5)) ** 2)
    assert found[32, 32] == pytest.approx((2.0 * across + 4.0 * slant + 2.0) / 8.0, abs=1e-12)
    assert found[32, 5] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["concrete", "brick", "tile", "planks"])
def test_cracks_and_joints_are_dark_and_deep(name: str) -> None:
    found = maps(name, 256)
    height, level = found.height.astype(float), found.linear_albedo() @ LUMINANCE
    bottom = height - _mean_around(height, 8) <= np.quantile(height - _mean_around(height, 8), 0.02)
    assert found.occlusion[bottom].mean() < found.occlusion.mean() - 0.02
    if name != "brick" and name != "tile":  # mortar and grout are paler than what they join
        assert level[bottom].mean() < 0.85 * level.mean()


# ---- numbers that are believable --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_mean_albedo_is_within_what_was_measured(name: str) -> None:
    for variant in (name, f"{name}@{SEED}"):
        recipe, found = material_recipe(variant), maps(variant)
        there = found.albedo[..., 3] >= 128
        mean = float((found.linear_albedo() @ LUMINANCE)[there].mean())
        low, high = recipe.albedo_range
        assert low - 0.005 <= mean <= high + 0.005, variant
        # Eight bits of sRGB, and what was clipped at white.
        assert mean == pytest.approx(recipe.albedo, abs=0.01), variant


GRAINY = ("asphalt", "grass")
"""Grains of one size all over, which real ones have too: flatter spectra than a photograph of a whole place."""
NATURAL = [name for name in TILED if name not in (*GRAINY, "brick", "cloth", "glass", "steel", "tile", "tread_plate")]
"""What is not laid to one period, nor without pattern."""


def albedo_slope(name: str) -> float:
    albedo = maps(name, 512).linear_albedo() @ LUMINANCE
    return power_slope(albedo - albedo.mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURAL)
def test_albedo_has_the_spectrum_of_natural_images(name: str) -> None:
    """Power per area of the frequency plane falls as frequency^-s; of photographs s is about 2 (Field 1987), here 1.5 to 3."""
    # At the size that is the default: finer pixels show finer stones, and coarser ones average them.
    slope = albedo_slope(name)
    assert -3.0 <= slope <= -1.5, (name, slope)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAINY)
def test_grains_have_flatter_spectra(name: str) -> None:
    """What stands in docs/howto/materials.md: -1 to -1.5."""
    slope = albedo_slope(name)
    assert -1.5 <= slope <= -1.0, (name, slope)


@pytest.mark.parametrize("name", TILED)
def test_the_large_scale_factor_keeps_the_mean(name: str) -> None:
    found = maps(name)
    assert found.macro.astype(float).mean() == pytest.approx(127.5, abs=0.6)
    assert found.macro.std() > 1.0


# ---- same bytes, and others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["brick", "grass", "poster"])
def test_equal_seeds_give_equal_bytes_and_others_do_not(name: str) -> None:
    recipe = material_recipe(name)
    first, again, other = library.made(recipe, SIZE), library.made(recipe, SIZE), library.made(recipe.varied(SEED), SIZE)
    for key in ("albedo", "surface", "normal", "height", "macro"):
        assert getattr(first, key).tobytes() == getattr(again, key).tobytes(), key
    assert first.albedo.tobytes() != other.albedo.tobytes()
    assert first.height.tobytes() != other.height.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_variants_stay_within_their_recipe(name: str) -> None:
    recipe = material_recipe(name)
    variants = [recipe.varied(seed) for seed in range(1, 40)]
    assert recipe.varied(0) is recipe
    for item in variants:
        assert recipe.albedo_range[0] <= item.albedo <= recipe.albedo_range[1]
        assert 0.0 <= item.wear <= 1.0
        assert abs(item.tile / recipe.tile - 1.0) <= recipe.scale_spread + 1e-12
        assert abs(item.tint[0] / recipe.tint[0] - 1.0) <= recipe.hue_spread + 1e-12
    assert len({item.albedo for item in variants}) > 5


def test_variants_of_a_record_share_its_maps() -> None:
    base = Material((1.0, 0.9, 0.8, 1.0), base_color_map="x", texture_size=2.0, roughness=0.7)
    found = [base.varied(seed) for seed in range(1, 60)]
    assert base.varied(0) is base
    assert base.varied(3) == base.varied(3)
    assert len({item.base_color for item in found}) == len(found)
    for item in found:
        assert (item.base_color_map, item.base_color[3]) == ("x", 1.0)
        assert max(item.base_color) <= 1.0
        assert 0.9 <= item.texture_size / 2.0 <= 1.1
        assert 0.0 <= item.roughness <= 1.0
    leaf = replace(base, texture_size=0.0, alpha_cutoff=0.5)
    assert all(leaf.varied(seed).uv_scale == (1.0, 1.0) for seed in range(1, 9))
    with pytest.raises(AirworthyError, match="`seed` is -1; expected an integer from 0 on"):
        base.varied(-1)


# ---- refusals and the cache -------------------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_closest() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown material 'brik'. Closest: 'brick'.*airworthy scenes materials"):
        material_recipe("brik")
    with pytest.raises(AirworthyError, match=r"has the seed 'x'; expected a whole number from 0 on, as in brick@7"):
        material_recipe("brick@x")
    with pytest.raises(AirworthyError, match="`size` is 8; expected an integer from 64 to 2048"):
        material_maps("brick", 8)
    with pytest.raises(AirworthyError, match=r"has the albedo 0.9; expected 0.2 to 0.4"):
        replace(material_recipe("brick"), albedo=0.9)
    with pytest.raises(AirworthyError, match=r"wear 1.5; expected more than 0 m, and 0 to 1"):
        replace(material_recipe("brick"), wear=1.5)


def test_maps_are_kept_and_damage_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = material_maps("steel", 64, tmp_path)
    (file,) = tmp_path.iterdir()
    drawn = []
    monkeypatch.setattr(library, "made", lambda recipe, size: drawn.append(1) or first)
    for damage, count in ((None, 0), (1, 1), (0, 2)):
        library._kept.cache_clear()
        data = bytearray(file.read_bytes())
        if damage is not None:  # one bit of the middle; and a file cut off
            data = data[: len(data) // 2] if damage == 0 else data
            data[len(data) // 2] ^= damage
            file.write_bytes(bytes(data))
        found = material_maps("steel", 64, tmp_path)
        assert found.albedo.tobytes() == first.albedo.tobytes()
        assert (found.relief, found.tile) == (first.relief, first.tile)
        assert len(drawn) == count
    library._kept.cache_clear()


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    library._kept.cache_clear()
    with pytest.warns(AssetWarning, match=r"Maps of 'steel' could not be kept and will be made again"):
        material_maps("steel", 64, tmp_path / "file" / "cache")
    library._kept.cache_clear()


# ---- in scenes --------------------------------------------------------------------------------------------------------------


def problems(place: Scene) -> list[str]:
    return [line for line in check_scene(place) if not line.startswith("note: ")]


def _room(name: str) -> Scene:
    return Scene(
        "room", shapes={"wall": Box((1.0, 0.1, 1.0))}, instances=(Instance("wall", (0.0, 3.0, 1.0), materials=(name,)),)
    )


def test_a_scene_takes_materials_by_name() -> None:
    place = scene_with_materials(_room("library:brick@7"), SIZE)
    assert problems(place) == []
    record = place.materials["library:brick@7"]
    assert record.texture_size == material_recipe("brick@7").tile
    assert place.textures[record.normal_map].srgb is False
    assert record.occlusion_map == record.metallic_roughness_map
    assert with_material(Scene("x"), "library:brick@7", size=SIZE).materials == {"library:brick@7": record}
    # Colour, surface, normal and the large-scale factor are looked up; the height is for export.
    assert len(Appearance(SceneBatch(place)).textures) == 4
    with pytest.raises(UnknownNameError, match="Closest: 'gravel'"):
        scene_with_materials(_room("library:gravl"), SIZE)


FILE = """\
version = 1
name = "yard"
[shapes.wall]
kind = "box"
half_size = [1.0, 0.1, 1.0]
[shapes.sheet]
kind = "card"
size = [0.6, 0.4]
[materials.wall]
library = "plaster@3"
map_size = 64
roughness = 0.5
decals = [{ name = "leak", at = [0.8, 0.6], side = 0.7 }]
[[instances]]
shape = "wall"
position = [0.0, 3.0, 1.0]
materials = ["wall"]
[[instances]]
shape = "sheet"
position = [0.0, 2.0, 1.0]
materials = ["library:poster"]
"""


def test_a_scene_file_names_materials(tmp_path: Path) -> None:
    (tmp_path / "scene.toml").write_text(FILE)
    place = read_scene(tmp_path)
    assert problems(place) == []
    assert place.materials["wall"].roughness == 0.5
    assert place.materials["library:poster"].alpha_cutoff == 0.5
    assert place.textures["wall/albedo"].pixels.shape == (64, 64, 3)
    plain = FILE.replace('decals = [{ name = "leak", at = [0.8, 0.6], side = 0.7 }]\n', "")
    (tmp_path / "scene.toml").write_text(plain)
    bare = read_scene(tmp_path)
    stained = place.textures["wall/albedo"].pixels != bare.textures["wall/albedo"].pixels
    assert 0.01 < stained.any(-1).mean() < 0.2
    # Written out, it needs the library no more.
    again = read_scene(write_scene(place, tmp_path / "copy"))
    assert scene_digest(again) == scene_digest(place)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('library = "plaster@3"', 'library = "plastr"', r"materials.wall: Unknown material 'plastr'. Closest: 'plaster'"),
        ("roughness = 0.5", "roughnes = 0.5", r"unknown key 'roughnes' \(closest: 'roughness'\)"),
        ("map_size = 64", "map_size = 7", "`size` is 7; expected an integer from 64 to 2048"),
        ('name = "leak"', 'name = "brick"', "'brick' is no decal, since nothing of it is cut out; lay one of dirt_run"),
        ("side = 0.7", "side = 9.0", r"'leak' has a side of 9.0 m; expected up to the tile's"),
        ('"library:poster"', '"library:postr"', "Unknown material 'postr'. Closest: 'poster'"),
        ("size = [0.6, 0.4]", "size = [0.0, 0.4]", "A card of 0.0 x 0.4 m: expected sides above 0"),
        ("size = [0.6, 0.4]", "sizes = [0.0, 0.4]", "unknown key 'sizes' .closest: 'size'"),
    ],
)
def test_a_scene_file_is_refused_in_one_sentence(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in FILE
    (tmp_path / "scene.toml").write_text(FILE.replace(old, new))
    with pytest.raises(AssetError, match=message):
        read_scene(tmp_path)


def test_decals_change_what_lies_under_them_alone() -> None:
    under = maps("plaster")
    found = decorated(under, [Decal("poster", (0.5 * under.tile, 0.5 * under.tile), 0.5 * under.tile)], SIZE)
    changed = (found.albedo != under.albedo).any(-1)
    rows, columns = np.nonzero(changed)
    inside = slice(SIZE // 4 - 1, 3 * SIZE // 4 + 1)
    assert changed[inside, inside].sum() == changed.sum() > 0.1 * SIZE**2
    assert (rows.min(), columns.min()) >= (SIZE // 4 - 1, SIZE // 4 - 1)
    # At its middle there is paper and ink, and no plaster.
    poster = maps("poster").linear_albedo()[SIZE // 2 - 8 : SIZE // 2 + 8, SIZE // 2 - 8 : SIZE // 2 + 8].mean((0, 1))
    middle = decoded(found.albedo[SIZE // 2 - 4 : SIZE // 2 + 4, SIZE // 2 - 4 : SIZE // 2 + 4, :3]).mean((0, 1))
    np.testing.assert_allclose(middle, poster, atol=0.03)


@pytest.mark.parametrize("name", ["dirt_run", "leak", "tyre_marks"])
def test_partial_alpha_is_kept_as_a_screen_of_the_same_share(name: str) -> None:
    found, recipe = maps(name), material_recipe(name)
    screen = library.textures(found, recipe, "x")["x/albedo"].pixels[..., 3]
    assert set(np.unique(screen)) <= {0, 255}
    soft = found.albedo[..., 3] / 255.0
    # A screen of n pixels is as exact as that many draws; even noise does better.
    assert (screen / 255.0).mean() == pytest.approx(soft.mean(), abs=0.02)


def test_a_card_is_upright_and_its_picture_too() -> None:
    made = card(0.6, 0.4)
    np.testing.assert_allclose(made.vertices.min(0), (-0.3, 0.0, -0.2), atol=1e-7)
    # Row 0 of an image is its top.
    assert made.uv is not None
    top = made.vertices[:, 2] > 0
    np.testing.assert_array_equal(made.uv[top, 1], 0.0)


@pytest.mark.parametrize("stage", sorted({material_recipe(name).shown for name in NAMES}))
def test_every_stage_shows_its_material(stage: str) -> None:
    recipe: MaterialRecipe = next(material_recipe(name) for name in NAMES if material_recipe(name).shown == stage)
    place, view = swatch(recipe, 64)
    assert problems(place) == []
    assert any("shown" in item.materials for item in place.instances)
    assert np.isfinite(view.position).all()


def test_nothing_is_said_on_the_way() -> None:
    """No division by zero, no overflow: at the ends of wear, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in NAMES:
            for wear in (0.0, 1.0):
                found = library.made(replace(material_recipe(name), wear=wear), 64)
                assert np.isfinite(found.height).all(), name
