"""The library of materials: recipes by name, their maps made once and kept by content, and scenes that use them.

`brick` is the recipe as it is written; `brick@7` the same with another seed, and with hue, level, wear and scale drawn within
what the recipe allows. Maps are kept under AIRWORTHY_CACHE (or the user's cache folder), named by what they were made of.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, unknown_name
from airworthy.core.files import make_folder, packaged_toml, read_bytes, sha256, write_bytes
from airworthy.geometry import Mesh
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.materials import decals, fibres, grounds, metals, walls
from airworthy.scenes.materials.canvas import Canvas
from airworthy.scenes.materials.layers import Layers, MaterialMaps, composed, finished
from airworthy.scenes.record import Decal, Material, Scene, Texture

__all__ = [
    "PREFIX",
    "SIZE",
    "MaterialRecipe",
    "cache_folder",
    "card",
    "decorated",
    "material_maps",
    "material_names",
    "material_recipe",
    "scene_with_materials",
    "with_material",
]

SIZE = 512
"""Default side of maps [px]."""
_SIZE_MIN, _SIZE_MAX = 64, 2048
PREFIX = "library:"
"""Of names of materials that are of the library, where a scene's own stand, too: "library:brick@7"."""
MACRO_SIZE = 128
"""Side of the map that tells tiles apart [px]."""
MACRO_TILES = 7.3
"""Tiles that it spans. No whole number: the two repeat together only after 73 tiles."""
_PACKAGE = "airworthy.scenes.materials"

PATTERNS: dict[str, Callable[[Canvas, Mapping[str, float], Mapping[str, list[list[float]]]], Layers]] = {
    "asphalt": grounds.asphalt,
    "boards": fibres.boards,
    "brushed": metals.brushed,
    "cast": walls.cast,
    "corrugated": metals.corrugated,
    "furrowed": fibres.furrowed,
    "glass": walls.glass,
    "glazed": walls.glazed,
    "grass": grounds.grass,
    "gravel": grounds.gravel,
    "leaf": fibres.leaf,
    "litter": grounds.litter,
    "masonry": walls.masonry,
    "painted": metals.painted,
    "papery": fibres.papery,
    "plaster": walls.plaster,
    "poster": decals.poster,
    "runs": decals.runs,
    "sign": decals.sign,
    "skid": decals.skid,
    "snow": grounds.snow,
    "soil": grounds.soil,
    "stripes": decals.stripes,
    "tread": metals.tread,
    "twill": fibres.twill,
}
"""What a recipe's `pattern` may be."""


@dataclass(frozen=True)
class MaterialRecipe:
    """A material in numbers.

    Raises:
        AirworthyError: A number is out of range.
    """

    name: str
    pattern: str
    """One of `PATTERNS`."""
    summary: str
    tile: float
    """What one repeat covers [m]; of a decal, its side."""
    albedo: float
    """Mean luminance of the linear base colour; of bare metals their normal reflectance."""
    albedo_range: tuple[float, float]
    """Within which it is believable."""
    source: str
    """Where that range is from."""
    shown: str = "wall"
    """How a contact sheet shows it: wall, floor, trunk, window, card, decal or decal_floor."""
    wear: float = 0.3
    """0 (new) to 1 (worn out)."""
    hue_spread: float = 0.05
    """Largest relative change of red against blue of a variant."""
    level_spread: float = 0.2
    """Largest relative change of the albedo."""
    wear_spread: float = 0.3
    """Largest change of the wear."""
    scale_spread: float = 0.1
    """Largest relative change of the tile."""
    macro: float = 0.08
    """Relative deviation of the large-scale factor that tells tiles apart."""
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Factors of red, green and blue."""
    cut: bool = False
    """Alpha cuts it out: a decal or a leaf, laid once on a card, not tiled."""
    soft: bool = False
    """Its alpha is partial over areas, and is kept as a screen of holes, since surfaces are either there or not."""
    seed: int = 0
    numbers: dict[str, float] = field(default_factory=dict)
    """Of the pattern."""
    colors: dict[str, list[list[float]]] = field(default_factory=dict)
    """Linear RGB stops of the pattern; only their ratios count, for `albedo` sets the level."""

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise unknown_name("pattern", self.pattern, PATTERNS)
        low, high = self.albedo_range
        if not (0.0 <= low <= self.albedo <= high <= 1.0):
            raise AirworthyError(f"Material {self.name!r} has the albedo {self.albedo}; expected {low} to {high}.")
        if not (0.0 < self.tile < 1000.0 and 0.0 <= self.wear <= 1.0):
            raise AirworthyError(
                f"Material {self.name!r} has a tile of {self.tile} m and wear {self.wear}; expected more than 0 m, and 0 to 1."
            )

    def varied(self, seed: SupportsIndex) -> MaterialRecipe:
        """Return a variant: another pattern of the same kind, its hue, level, wear and scale drawn within the recipe's spreads.

        Args:
            seed: 0 gives the recipe itself.
        """
        number = checked("seed", seed, 0)
        if number == 0:
            return self
        hue, level, wear, scale = generator("material variant", self.name, number).uniform(-1.0, 1.0, 4).tolist()
        low, high = self.albedo_range
        turn = 1.0 + self.hue_spread * hue
        return replace(
            self,
            seed=number,
            albedo=float(np.clip(self.albedo * (1.0 + self.level_spread * level), low, high)),
            wear=float(np.clip(self.wear + self.wear_spread * wear, 0.0, 1.0)),
            tile=self.tile * (1.0 + self.scale_spread * scale),
            tint=(self.tint[0] * turn, self.tint[1], self.tint[2] / turn),
        )


@cache
def _recipes() -> dict[str, MaterialRecipe]:
    table = packaged_toml(_PACKAGE, "recipes.toml")
    return {name: _recipe(name, dict(body)) for name, body in table.items()}


def _recipe(name: str, body: dict[str, Any]) -> MaterialRecipe:
    base = dict(body)
    # A recipe may build on another: only what differs stands in it.
    parent = base.pop("like", None)
    if parent is not None:
        above = dict(packaged_toml(_PACKAGE, "recipes.toml")[parent])
        for key in ("numbers", "colors"):
            base[key] = {**above.get(key, {}), **base.get(key, {})}
        base = {**above, **base}
    base["albedo_range"] = tuple(base["albedo_range"])
    return MaterialRecipe(name=name, **base)


def material_names() -> list[str]:
    """Return the names of the library's materials and decals."""
    return sorted(_recipes())


def material_recipe(name: str) -> MaterialRecipe:
    """Return a recipe by its name, "brick" or "brick@7"; its fields may be changed with `dataclasses.replace`.

    Raises:
        UnknownNameError: There is no such material.
        AirworthyError: What follows the @ is no whole number.
    """
    stem, at, seed = name.removeprefix(PREFIX).partition("@")
    if stem not in _recipes():
        raise unknown_name("material", stem, _recipes(), "`airworthy scenes materials` lists them.")
    if at and not (seed.isascii() and seed.isdigit() and len(seed) < 10):
        raise AirworthyError(f"The material {name!r} has the seed {seed!r}; expected a whole number from 0 on, as in {stem}@7.")
    return _recipes()[stem].varied(int(seed or 0))


# ---- maps -------------------------------------------------------------------------------------------------------------------


def material_maps(recipe: str | MaterialRecipe, size: int = SIZE, folder: str | Path | None = None) -> MaterialMaps:
    """Return the maps of a material, from the cache where they lie there; else made, and kept.

    Args:
        recipe: A recipe, or its name.
        size: Side of the maps [px], 64 to 2,048.
        folder: The cache; None: `cache_folder()`.

    Raises:
        UnknownNameError: There is no such material.
        AirworthyError: The size is out of range.
    """
    item = material_recipe(recipe) if isinstance(recipe, str) else recipe
    checked("size", size, _SIZE_MIN, _SIZE_MAX)
    text = json.dumps(asdict(item), sort_keys=True)
    return _kept(text, int(size), str(folder or cache_folder()), item.name)


@lru_cache(maxsize=64)
def _kept(text: str, size: int, folder: str, name: str) -> MaterialMaps:
    body: dict[str, Any] = json.loads(text)
    recipe = MaterialRecipe(**{**body, "tint": tuple(body["tint"]), "albedo_range": tuple(body["albedo_range"])})
    path = Path(folder) / f"{name}_{sha256(f'{text} {size} {_code()}')[:32]}.safetensors"
    if path.is_file():
        try:
            return _read_maps(path, size)
        except AssetError:  # damaged: it is only a cache, and is made anew
            pass
    maps = made(recipe, size)
    try:
        make_folder(path.parent)
        write_bytes(path, _packed(maps))
    except AirworthyError as error:
        warnings.warn(f"Maps of {name!r} could not be kept and will be made again: {error}", AssetWarning, stacklevel=3)
    return maps


@cache
def _code() -> str:
    """Return a digest of what draws: maps of before a change are not those of after it."""
    sources = sorted(item.name for item in files(_PACKAGE).iterdir() if item.name.endswith((".py", "letters.toml")))
    return sha256("\n".join(files(_PACKAGE).joinpath(name).read_text("utf-8") for name in sources))


def made(recipe: MaterialRecipe, size: int = SIZE) -> MaterialMaps:
    """Return maps, drawn anew."""
    canvas = Canvas(recipe.name, recipe.seed, size, recipe.tile, recipe.wear)
    layers = PATTERNS[recipe.pattern](canvas, recipe.numbers, recipe.colors)
    maps = finished(layers, recipe.albedo, recipe.tint, recipe.tile, _macro(recipe), closed=not recipe.cut)
    for item in fields(maps):
        value = getattr(maps, item.name)
        # Shared by all scenes: a change in one would be a change in all.
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return maps


def _macro(recipe: MaterialRecipe) -> ArrayU8:
    canvas = Canvas(recipe.name, recipe.seed, MACRO_SIZE, recipe.tile * MACRO_TILES, recipe.wear)
    level = recipe.macro * canvas.noise("macro", 2.2, 1.0, 40.0)
    # Dirt and bleaching change the hue with the level, a little.
    hue = 0.25 * recipe.macro * canvas.noise("macro hue", 2.4, 1.0, 20.0)
    factor = np.clip(1.0 + np.stack([level + hue, level, level - hue], -1), 0.0, 1.99)
    return np.rint(127.5 * factor / factor.mean()).clip(0, 255).astype(np.uint8)


def cache_folder() -> Path:
    """Return where maps are kept: AIRWORTHY_CACHE, else XDG_CACHE_HOME/airworthy, else ~/.cache/airworthy."""
    given = os.environ.get("AIRWORTHY_CACHE", "")
    if given:
        return Path(given) / "materials"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "airworthy" / "materials"


_ARRAYS = ("albedo", "surface", "normal", "height", "macro")


def _packed(maps: MaterialMaps) -> bytes:
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(getattr(maps, name)) for name in _ARRAYS}
    arrays["measures"] = np.array([maps.relief, maps.tile])
    return save(arrays, metadata={"sha256": _digest(arrays)})


def _digest(arrays: Mapping[str, ArrayAny]) -> str:
    return sha256(b"".join(name.encode() + np.ascontiguousarray(arrays[name]).tobytes() for name in sorted(arrays)))


def _read_maps(path: Path, size: int) -> MaterialMaps:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path)
    try:
        arrays = load(data)
        head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        maps = MaterialMaps(
            **{name: arrays[name] for name in _ARRAYS}, relief=float(arrays["measures"][0]), tile=float(arrays["measures"][1])
        )
        if head["__metadata__"]["sha256"] != _digest(arrays) or maps.albedo.shape != (size, size, 4):
            raise ValueError("its digest is another")
    except (SafetensorError, KeyError, ValueError, IndexError) as error:
        raise AssetError(f"{str(path)!r} holds no maps ({error}); delete it, and they are made anew.") from error
    for name in _ARRAYS:
        getattr(maps, name).setflags(write=False)
    return maps


# ---- scenes -----------------------------------------------------------------------------------------------------------------


def textures(maps: MaterialMaps, recipe: MaterialRecipe, prefix: str) -> dict[str, Texture]:
    """Return a material's maps as textures named PREFIX/albedo, /surface, /normal, /height and, where it is tiled, /macro."""
    wrap: Any = "clamp" if recipe.cut else "repeat"
    albedo = _screened(maps.albedo, recipe) if recipe.soft else maps.albedo
    height = np.rint(maps.height[..., None] * 255.0).astype(np.uint8)
    data = {"surface": maps.surface, "normal": maps.normal, "height": height}
    found = {f"{prefix}/albedo": Texture(albedo if recipe.cut else albedo[..., :3], wrap=wrap)}
    found.update({f"{prefix}/{key}": Texture(value, False, wrap) for key, value in data.items()})
    if not recipe.cut:
        found[f"{prefix}/macro"] = Texture(maps.macro, False)
    return found


def _screened(albedo: ArrayU8, recipe: MaterialRecipe) -> ArrayU8:
    """Return partial alpha as a screen: as many pixels there as the alpha says, evenly strewn."""
    canvas = Canvas(recipe.name, recipe.seed, len(albedo), recipe.tile, 0.0)
    # Noise without slow parts has no clumps.
    threshold = canvas.rank(canvas.noise("screen", -1.0, 0.2 * len(albedo)))
    out = albedo.copy()
    out[..., 3] = np.where(albedo[..., 3] / 255.0 > threshold, 255, 0)
    return out


def material(maps: MaterialMaps, recipe: MaterialRecipe, prefix: str) -> Material:
    """Return the record that refers to `textures` of the same prefix."""
    return Material(
        (1.0, 1.0, 1.0, 1.0),
        metallic=1.0,
        roughness=1.0,
        base_color_map=f"{prefix}/albedo",
        metallic_roughness_map=f"{prefix}/surface",
        normal_map=f"{prefix}/normal",
        occlusion_map=f"{prefix}/surface",
        height_map=f"{prefix}/height",
        height_scale=maps.relief,
        detail_map="" if recipe.cut else f"{prefix}/macro",
        detail_repeat=8.0 if recipe.cut else 1.0 / MACRO_TILES,
        texture_size=0.0 if recipe.cut else maps.tile,
        alpha_cutoff=0.5 if recipe.cut else 0.0,
    )


def decorated(maps: MaterialMaps, decals: Sequence[Decal], size: int = SIZE, folder: str | Path | None = None) -> MaterialMaps:
    """Return maps with decals laid on, one over the other.

    Args:
        maps: Of a tiled material.
        decals: What is laid on, the lowest first.
        size: Side of the decals' maps [px].
        folder: The cache; None: `cache_folder()`.

    Raises:
        UnknownNameError: There is no such decal.
        AirworthyError: It is no decal, or has no size.
    """
    for item in decals:
        recipe = material_recipe(item.name)
        side = item.side or recipe.tile
        if not recipe.cut:
            raise AirworthyError(
                f"The material {item.name!r} is no decal, since nothing of it is cut out; lay one of {_decals()}."
            )
        if not 0.0 < side <= maps.tile:
            raise AirworthyError(f"The decal {item.name!r} has a side of {side} m; expected up to the tile's {maps.tile:g} m.")
        maps = composed(maps, material_maps(recipe, size, folder), item.at, side)
    return maps


def _decals() -> str:
    return ", ".join(name for name in material_names() if _recipes()[name].cut)


def with_material(
    scene: Scene,
    recipe: str | MaterialRecipe,
    name: str = "",
    size: int = SIZE,
    decals: Sequence[Decal] = (),
    by_coordinates: bool = False,
    folder: str | Path | None = None,
) -> Scene:
    """Return a scene that holds a material of the library, for instances to name.

    Args:
        scene: The scene.
        recipe: A recipe, or its name ("brick@7").
        name: Of the material in the scene; empty: "library:" and the name that was given.
        size: Side of the maps [px].
        decals: Laid on every tile, the lowest first.
        by_coordinates: Laid by the texture coordinates of meshes that have them, one tile to 1, and not along axes [m].
        folder: The cache of maps; None: `cache_folder()`.

    Raises:
        UnknownNameError: There is no such material.
        AirworthyError: The size is out of range, or a decal does not fit.
    """
    item = material_recipe(recipe) if isinstance(recipe, str) else recipe
    if not name:
        name = PREFIX + (recipe.removeprefix(PREFIX) if isinstance(recipe, str) else f"{item.name}@{item.seed}")
    maps = decorated(material_maps(item, size, folder), decals, size, folder)
    record = material(maps, item, name)
    if by_coordinates:
        record = replace(record, texture_size=0.0)
    return replace(
        scene,
        materials={**scene.materials, name: record},
        textures={**scene.textures, **textures(maps, item, name)},
    )


def scene_with_materials(scene: Scene, size: int = SIZE) -> Scene:
    """Return a scene in which every material that its things name with "library:" is there.

    Args:
        scene: The scene.
        size: Side of the maps [px].

    Raises:
        UnknownNameError: The library has none of that name.
    """
    things = (*scene.instances, *scene.looks, *(part for actor in scene.actors for part in actor.parts))
    wanted = sorted({name for item in things for name in item.materials if name.startswith(PREFIX)})
    for name in wanted:
        if name not in scene.materials:
            scene = with_material(scene, name, name, size)
    return scene


def card(width: float, height: float) -> Mesh:
    """Return an upright rectangle on which a decal or a leaf is seen: in the plane of x and z, seen upright from -y.

    Args:
        width: Along x [m].
        height: Along z [m].

    Raises:
        AirworthyError: A side is not above 0.
    """
    if not (0.0 < width < 1e4 and 0.0 < height < 1e4):
        raise AirworthyError(f"A card of {width} x {height} m: expected sides above 0.")
    x, z = 0.5 * width, 0.5 * height
    corners = np.array([[-x, 0.0, -z], [x, 0.0, -z], [x, 0.0, z], [-x, 0.0, z]], np.float32)
    uv = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], np.float32)
    return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]], np.int32), uv=uv)
