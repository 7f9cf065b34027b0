"""Baking light with the renderer itself, and keeping it on disk.

`bake(scene)` gives the light of one scene; `use_baked(batch)` bakes, or finds in the cache, and lights a batch with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_bytes, write_bytes
from airworthy.geometry import RayTable, bounds
from airworthy.rendering.baking import DEFAULT_BAKE, BakeSettings, solve
from airworthy.rendering.glow_lamps import glow_lamps
from airworthy.rendering.shading import Cameras, ShadingOptions, seen_by_colors, shade_channels
from airworthy.scenes.actors import stationary
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import MAP_COLUMNS, PROBE_SIZE, BakedLight
from airworthy.scenes.record import Color, Haze, Light, Material, Rain, Region, Scene, Snow, Sun

__all__ = [
    "SHADE",
    "bake",
    "baked_light",
    "cache_folder",
    "load_baked",
    "relit",
    "save_baked",
    "scene_hash",
    "under_trees",
    "use_baked",
    "use_shade",
]

# ---- Baked light on disk, by the content of what it was baked for -----------------------------------------------------------

FORMAT = 3
"""Of the files and of what baking does; part of their names."""


def scene_hash(scene: Scene, settings: BakeSettings) -> str:
    """Return 64 hexadecimal digits that change with anything that baked light depends on."""
    digest = sha256(f"airworthy baked light {FORMAT}".encode())
    parts: tuple[Any, ...] = (
        scene.shapes,
        scene.materials,
        scene.textures,
        scene.instances,
        scene.lights,
        scene.sky,
        scene.bounds,
        settings,
    )
    if scene.looks:
        parts += (scene.looks,)
    for part in parts:
        _hash_into(digest.update, part)
    return digest.hexdigest()


def _hash_into(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            update(f"<{key}>".encode())
            _hash_into(update, value[key])
    elif is_dataclass(value) and not isinstance(value, type):
        update(type(value).__name__.encode())
        for part in fields(value):
            # Light that was baked before a field came is still that of scenes which never say it.
            if part.metadata.get("later") and getattr(value, part.name) == part.default:
                continue
            _hash_into(update, getattr(value, part.name))
    elif isinstance(value, list | tuple):
        update(f"({len(value)}".encode())
        for item in value:
            _hash_into(update, item)
    else:
        update(f"{value!r};".encode())


_ARRAYS = ("lower", "spacing", "counts", "probes", "map_of_instance", "maps", "nodes")


def save_baked(baked: BakedLight, path: str | Path) -> Path:
    """Write baked light to a file of named arrays (safetensors)."""
    from safetensors.numpy import save

    make_folder(Path(path).parent)
    arrays = {name: np.ascontiguousarray(getattr(baked, name)) for name in _ARRAYS}
    arrays.update({f"occlusion/{name}": np.ascontiguousarray(value) for name, value in baked.occlusion.items()})
    return write_bytes(path, save(arrays))


def load_baked(path: str | Path) -> BakedLight:
    """Read what `save_baked` wrote.

    Raises:
        AssetError: The file is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path)
    try:
        arrays = load(data)
        parts = {name: arrays[name] for name in _ARRAYS}
    except (SafetensorError, KeyError, ValueError) as error:
        raise AssetError(f"{str(path)!r} holds no baked light ({error}); delete it, and it is baked anew.") from error
    occlusion = {name.removeprefix("occlusion/"): array for name, array in arrays.items() if name.startswith("occlusion/")}
    baked = BakedLight(**parts, occlusion=occlusion)
    _check(baked, path)
    return baked


def _check(baked: BakedLight, path: str | Path) -> None:
    """Refuse arrays that shading would read past the end of."""
    if not (_volume_fits(baked) and _maps_fit(baked)):
        raise AssetError(f"{str(path)!r} holds baked light whose arrays do not fit; delete it, and it is baked anew.")


def _volume_fits(baked: BakedLight) -> bool:
    """Tell whether there are as many probes as the grid has places."""
    if not (baked.lower.shape == baked.spacing.shape == baked.counts.shape == (3,)):
        return False
    if baked.probes.dtype != np.uint32 or baked.counts.dtype != np.int32 or (baked.counts < 2).any():
        return False
    numbers = np.concatenate([baked.lower, baked.spacing])
    # As floats: hostile counts could wrap an integer product round to the number of probes.
    count = int(np.prod(baked.counts.astype(np.float64)))
    return bool(np.isfinite(numbers).all() and (baked.spacing > 0).all() and baked.probes.shape == (count, PROBE_SIZE))


def _maps_fit(baked: BakedLight) -> bool:
    """Tell whether every map lies within the nodes, and every instance's map exists."""
    if baked.maps.dtype != np.int32 or baked.nodes.dtype != np.uint32 or baked.map_of_instance.dtype != np.int32:
        return False
    if baked.maps.ndim != 2 or baked.maps.shape[1] != MAP_COLUMNS or baked.nodes.ndim != 2 or baked.nodes.shape[1] != 2:
        return False
    if baked.map_of_instance.ndim != 1 or (baked.map_of_instance >= len(baked.maps)).any():
        return False
    # In 64 bits, for the same reason.
    first, x, y, z = (baked.maps[:, k].astype(np.int64) for k in range(MAP_COLUMNS))
    # Two faces each across x, y and z.
    last = first + 2 * (y * z + x * z + x * y)
    return bool((baked.maps[:, 1:] >= 2).all() and (first >= 0).all() and (last <= len(baked.nodes)).all())


# ---- The same place, brighter or darker -------------------------------------------------------------------------------------


def relit(scene: Scene, factor: float) -> Scene:
    """Return a scene in which everything has `factor` times the radiance: lights, sky, what glows, and splats.

    Light adds up linearly, so images of meshes are scaled exactly. Splats hold light that was there when they were captured,
    encoded; `scenes.splats.brightened` scales it, exactly but in the darkest tones (by at most 0.0175 of full scale).

    Args:
        scene: The scene.
        factor: 0.4 is 40 % of the light, as in the sweep of SOUS VIDE; at least 0.

    Raises:
        AirworthyError: The factor is not finite or below 0.
    """
    if not (np.isfinite(factor) and factor >= 0.0):
        raise AirworthyError(f"A scene cannot be lit {factor} times as brightly; a finite factor of at least 0 was expected.")
    from airworthy.scenes.splats.editing import brightened

    return replace(
        scene,
        lights=tuple(_scaled(light, factor) for light in scene.lights),
        sky=replace(scene.sky, intensity=scene.sky.intensity * factor),
        materials={name: _glowing(material, factor) for name, material in scene.materials.items()},
        clouds={name: brightened(cloud, factor) for name, cloud in scene.clouds.items()},
    )


def _scaled(light: Light, factor: float) -> Light:
    if isinstance(light, Sun):
        return replace(light, irradiance=light.irradiance * factor)
    return replace(light, intensity=light.intensity * factor)


def _glowing(material: Material, factor: float) -> Material:
    if not any(material.emissive):
        return material
    red, green, blue = material.emissive
    glow: Color = (red * factor, green * factor, blue * factor)
    return replace(material, emissive=glow)


# -----------------------------------------------------------------------------------------------------------------------------

_OPTIONS = ShadingOptions(
    specular=False, sun_disc=False, texture_scale=0.125, max_range=2000.0, leaf_shadows=True, own_shadows=True, detail=0.0
)
"""Light that bounces is diffuse, and its colours may be coarse."""
_LEAVES = replace(_OPTIONS, texture_bias=-8.0, texture_scale=0.5)
"""Where there are cut-outs: the mean of a leaf and of what is beside it is no leaf at all."""


class RenderTracer:
    """What directions bring, by the renderer."""

    def __init__(self, batch: SceneBatch, detail: float = 0.0, gloss: bool = False) -> None:
        self.batch = batch
        self.glow = glow_lamps(batch)
        cut = any(material.alpha_cutoff > 0.0 for scene in batch.scenes for material in scene.materials.values())
        self.options = replace(_LEAVES if cut else _OPTIONS, detail=detail, own_shadows=detail == 0.0, specular=gloss)

    def __call__(self, table: RayTable, density: Array, position: Array, attitude: Array) -> tuple[Any, Any, Any]:
        """Return radiance, distance and back faces, as `baking.Tracer` says.

        Args:
            table: The rays.
            density: Of them, (K,) [1/sr].
            position: (n, 3) [m].
            attitude: (n, 4)
        """
        cameras = Cameras.of(self.batch, table, position, attitude, np.zeros(len(position), np.int32))
        found = shade_channels(self.batch, table, cameras, ("rgb", "hits"), self.options)
        if len(self.glow):
            instance = np.maximum(found["instance"], 0)
            static = (found["instance"] >= 0) & (instance < len(self.glow.first))
            node, _, ray = np.nonzero(static & (self.glow.first[np.minimum(instance, len(self.glow.first) - 1)] >= 0))
            way = frames.rotate(attitude[node], table.directions[0][ray]) * found["range"][node, 0, ray][:, None]
            met = found["instance"][node, 0, ray], found["face"][node, 0, ray]
            taken = self.glow.taken(*met, position[node] + way, way, density[ray])
            found["rgb"][node, 0, ray] -= taken.astype(np.float32)
        return found["rgb"], found["range"], found["back"]

    def lamps(self, position: Array, normal: Array | None) -> tuple[Array, Array, Array]:
        """Return directions to points of what glows, their irradiance and density, as `baking.Tracer` says.

        Args:
            position: (n, 3) [m].
            normal: (n, 3); None: from all sides.
        """
        if not len(self.glow):
            none = np.zeros((len(position), 0, 3))
            return none, none, none[..., 0]
        return self.glow.arriving(self.batch.geometry, position, normal)

    def use(self, baked: BakedLight) -> None:
        """Light surfaces with this."""
        appearance_of(self.batch, self.options.texture_scale).use(0, baked)


def bake(scene: Scene, settings: BakeSettings = DEFAULT_BAKE, quiet: bool = True, threads: int | None = None) -> BakedLight:
    """Bake the light of a scene; its actors, and lamps on them, are left out.

    Args:
        scene: The scene.
        settings: How finely.
        quiet: Show no progress.
        threads: Of the CPU; None: all.
    """
    # What moves would leave its shadow where it stood; haze comes between eye and surface, and is no part of what is baked;
    # what is wet sends on a little less, which is left out.
    still = replace(stationary(scene), haze=Haze(), rain=Rain(), snow=Snow())
    batch = seen_by_colors(SceneBatch(still, threads=threads))
    return solve(still, batch.geometry, RenderTracer(batch, settings.detail, settings.gloss), settings, quiet)


def cache_folder() -> Path:
    """Return where baked light is kept: AIRWORTHY_CACHE, else XDG_CACHE_HOME/airworthy, else ~/.cache/airworthy."""
    given = os.environ.get("AIRWORTHY_CACHE", "")
    if given:
        return Path(given) / "light"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "airworthy" / "light"


def baked_light(
    scene: Scene, settings: BakeSettings = DEFAULT_BAKE, folder: str | Path | None = None, quiet: bool = True
) -> BakedLight:
    """Return the baked light of a scene, from the cache where it lies there by its content; else baked and kept.

    Args:
        scene: The scene.
        settings: How finely.
        folder: The cache; None: `cache_folder()`.
        quiet: Show no progress.
    """
    # By content: a scene that is changed back finds its light again, and no file is ever out of date.
    path = Path(folder or cache_folder()) / f"{scene_hash(scene, settings)[:32]}.safetensors"
    if path.is_file():
        try:
            return load_baked(path)
        except AssetError:  # damaged: it is only a cache
            pass
    baked = bake(scene, settings, quiet)
    save_baked(baked, path)
    return baked


def use_baked(
    batch: SceneBatch,
    settings: BakeSettings = DEFAULT_BAKE,
    texture_scale: float = 1.0,
    folder: str | Path | None = None,
    quiet: bool = True,
) -> None:
    """Light every scene of a batch with its baked light.

    Args:
        batch: The scenes.
        settings: How finely.
        texture_scale: Of the `ShadingOptions` that images are made with.
        folder: The cache; None: `cache_folder()`.
        quiet: Show no progress.
    """
    appearance = appearance_of(seen_by_colors(batch), texture_scale)
    for index, scene in enumerate(batch.scenes):
        appearance.use(index, baked_light(scene, settings, folder, quiet))


# ---- Shade under trees ------------------------------------------------------------------------------------------------------

SHADE = BakeSettings(
    tolerance=0.02,
    rays=64,
    probe_spacing=2.0,
    probes_max=3000,
    texel=1e6,
    finest=1.0,
    occlusion_rays=0,
    detail=1.0,
    gloss=True,
)
"""Of places under trees: probes alone, since a texel as wide as that leaves no box a map; a tenth of the time of `DEFAULT_BAKE`
and as near to still images."""
_RIM = 4.0
"""How far around the bounds probes of shade lie [m]; what is farther off is as dark as the outermost."""


def under_trees(scene: Scene) -> bool:
    """Tell whether the ground of a place lies mostly in shade: it is a closed forest (`scenes.vegetation.canopy`)."""
    from airworthy.scenes.vegetation.canopy import CLOSED_FOREST, canopy_cover

    return canopy_cover(scene) > CLOSED_FOREST


def use_shade(batch: SceneBatch, texture_scale: float = 1.0, folder: str | Path | None = None, quiet: bool = True) -> bool:
    """Light scenes of a batch that lie under trees with what of the sky's light comes down there; others stay as they are.

    It is baked light (`SHADE`), kept as such: seconds of a core, once per place.

    Args:
        batch: The scenes.
        texture_scale: Of the `ShadingOptions` that images are made with.
        folder: The cache; None: `cache_folder()`.
        quiet: Show no progress.

    Returns:
        Whether any of them does.
    """
    woods = [index for index, scene in enumerate(batch.scenes) if under_trees(scene)]
    appearance = appearance_of(seen_by_colors(batch), texture_scale) if woods else None
    for index in woods:
        assert appearance is not None
        appearance.use(index, baked_light(_to_the_crowns(batch.scenes[index]), SHADE, folder, quiet))
    return bool(woods)


def _to_the_crowns(scene: Scene) -> Scene:
    """Return a scene whose bounds, where probes lie, reach around it and up to the tops of its trees."""
    low, high = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    items = (*scene.instances, *scene.looks)
    # Trees stand upright.
    height = {name: float(bounds(scene.shapes[name])[1][2]) for name in {item.shape for item in items}}
    places = np.array([item.position for item in items]).reshape(-1, 3)
    near = (np.abs(places[:, :2] - 0.5 * (low + high)[:2]) < 0.5 * (high - low)[:2] + _RIM).all(1)
    tops = places[:, 2] + [item.scale * height[item.shape] for item in items]
    top = max(float(high[2]), *tops[near].tolist())
    wider = low - [_RIM, _RIM, 0.0], np.array([high[0] + _RIM, high[1] + _RIM, top])
    return replace(scene, bounds=Region(*((float(x), float(y), float(z)) for x, y, z in wider)))
