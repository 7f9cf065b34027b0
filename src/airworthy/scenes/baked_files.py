"""Baked light on disk, by the content of what it was baked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.core.files import make_folder, read_bytes, write_bytes
from airworthy.scenes.baking import BakeSettings
from airworthy.scenes.lightmaps import MAP_COLUMNS, PROBE_WORDS, BakedLight
from airworthy.scenes.record import Scene

__all__ = ["load_baked", "save_baked", "scene_hash"]

FORMAT = 2
"""Of the files and of what baking does; part of their names."""


def scene_hash(scene: Scene, settings: BakeSettings) -> str:
    """64 hexadecimal digits that change with anything that baked light depends on."""
    digest = sha256(f"airworthy baked light {FORMAT}".encode())
    parts = (scene.shapes, scene.materials, scene.textures, scene.instances, scene.lights, scene.sky, scene.bounds, settings)
    for part in parts:
        _feed(digest.update, part)
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            update(f"<{key}>".encode())
            _feed(update, value[key])
    elif is_dataclass(value) and not isinstance(value, type):
        update(type(value).__name__.encode())
        for part in fields(value):
            _feed(update, getattr(value, part.name))
    elif isinstance(value, list | tuple):
        update(f"({len(value)}".encode())
        for item in value:
            _feed(update, item)
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
    """Whether there are as many probes as the grid has places."""
    if not (baked.lower.shape == baked.spacing.shape == baked.counts.shape == (3,)):
        return False
    if baked.probes.dtype != np.uint32 or baked.counts.dtype != np.int32 or (baked.counts < 2).any():
        return False
    numbers = np.concatenate([baked.lower, baked.spacing])
    count = int(np.prod(baked.counts.astype(np.float64)))
    return bool(np.isfinite(numbers).all() and (baked.spacing > 0).all() and baked.probes.shape == (count, PROBE_WORDS))


def _maps_fit(baked: BakedLight) -> bool:
    """Whether every map lies within the nodes, and every instance's map exists."""
    if baked.maps.dtype != np.int32 or baked.nodes.dtype != np.uint32 or baked.map_of_instance.dtype != np.int32:
        return False
    if baked.maps.ndim != 2 or baked.maps.shape[1] != MAP_COLUMNS or baked.nodes.ndim != 2 or baked.nodes.shape[1] != 2:
        return False
    if baked.map_of_instance.ndim != 1 or (baked.map_of_instance >= len(baked.maps)).any():
        return False
    first, x, y, z = (baked.maps[:, k].astype(np.int64) for k in range(MAP_COLUMNS))
    last = first + 2 * (y * z + x * z + x * y)
    return bool((baked.maps[:, 1:] >= 2).all() and (first >= 0).all() and (last <= len(baked.nodes)).all())
