"""One launch of the shading kernel: its arrays gathered, sent where they are not yet, and its answers fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.geometry import RayTable
from airworthy.geometry.launching import Repeated, striped
from airworthy.scenes.appearance import Appearance, appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.pixel_rays import spreads
from airworthy.sensors.shading_kernel import ARRAYS, FLAGS, PACKETS_PER_TASK, shading_kernel
from airworthy.sensors.shading_options import Cameras, ShadingOptions

__all__ = ["APPEARANCE_CHANNELS", "HIT_CHANNELS", "launch"]

Arrays = dict[str, NDArray[Any]]

APPEARANCE_CHANNELS = ("rgb", "albedo", "normal")
HIT_CHANNELS = ("range", "instance", "face", "barycentric")
"""What `geometry.cast` must have found for rays not to be traced again."""

_OUTPUTS = {
    "out_rgb": ("rgb", 3),
    "out_albedo": ("albedo", 3),
    "out_normal": ("normal", 3),
    "out_range": ("range", 1),
    "out_instance": ("instance", 1),
    "out_face": ("face", 1),
    "out_barycentric": ("barycentric", 2),
    "out_back": ("back", 1),
}
_TYPES = {"f": np.float32, "i": np.int32, "u": np.uint32}
_PREFIX = ""
"""Put before the kernel's text; `#define SCALAR_PATH` lets a CPU run the form of a GPU (tests do)."""
_LAUNCHES_KEPT = 8
_launches: WeakKeyDictionary[SceneBatch, dict[Any, Repeated]] = WeakKeyDictionary()


def launch(
    batch: SceneBatch, table: RayTable, cameras: Cameras, channels: Sequence[str], options: ShadingOptions, hits: Arrays | None
) -> Arrays:
    """Channels (c, H, W, ...) of one table of rays; see `shading.shade_channels`."""
    device = batch.geometry.device
    appearance = appearance_of(batch, options.texture_scale)
    flags = options.flags(appearance) | FLAGS["USE_COLUMNS"] * cameras.columns
    flags |= FLAGS["USE_OWN_ORIGINS"] * (table.origins is not None) | FLAGS["USE_HITS"] * (hits is not None)
    for name in channels:
        flags |= FLAGS[f"OUT_{name.upper()}"]
    shape = (len(cameras), table.height, table.width)
    outputs = _outputs(shape, channels)
    if not len(cameras):
        return {key: outputs[name] for name, (key, _) in _OUTPUTS.items() if name in outputs}
    host = {**_frame_arrays(batch, table, cameras, options, appearance), **_hit_arrays(hits, shape), **outputs}
    in_lanes = device == "cpu" and not _PREFIX
    tasks = len(cameras) * (-(-table.packet_count // PACKETS_PER_TASK) if in_lanes else table.packet_count * CPU_LANES)
    scalars = [table.packet_count, table.height * table.width, table.width, flags]
    key = (table, len(cameras), flags, batch.geometry.version, _PREFIX)
    kept = _launches.setdefault(batch, {})
    if in_lanes:
        host["task_order"] = _order(tasks, batch.threads)
    words = _device_words(host, appearance, device)
    arrays = [*batch.geometry.arguments(), *words]
    run = kept.pop(key, None)
    if run is None:
        run = Repeated(shading_kernel(_PREFIX), tasks, [*arrays, *scalars], device, batch.threads)
    kept[key] = run
    while len(kept) > _LAUNCHES_KEPT:
        kept.pop(next(iter(kept)))
    for index, array in enumerate(arrays):
        run.exchange(index, array)
    run.launch()
    return _fetched(outputs, words, device)


_ORDERS: dict[tuple[int, int | None], NDArray[np.int32]] = {}


def _order(tasks: int, threads: int | None) -> NDArray[np.int32]:
    if (tasks, threads) not in _ORDERS:
        _ORDERS.clear()
        _ORDERS[tasks, threads] = striped(tasks, threads)
    return _ORDERS[tasks, threads]


def _outputs(shape: tuple[int, int, int], channels: Sequence[str]) -> Arrays:
    kinds = dict(ARRAYS)
    wanted = [
        n for n, (key, _) in _OUTPUTS.items() if key in channels or ("hits" in channels and key not in APPEARANCE_CHANNELS)
    ]
    sizes = {name: shape if _OUTPUTS[name][1] == 1 else (*shape, _OUTPUTS[name][1]) for name in wanted}
    return {name: np.empty(sizes[name], _TYPES[kinds[name]]) for name in wanted}


def _hit_arrays(hits: Arrays | None, shape: tuple[int, int, int]) -> Arrays:
    if hits is None:
        return {}
    for name in HIT_CHANNELS:
        if name not in hits or hits[name].shape[:3] != shape:
            raise AirworthyError(f"Known hits need the channel {name!r} of shape {shape}; cast the same rays with it.")
    return {f"hit_{name}": hits[name] for name in HIT_CHANNELS}


def _frame_arrays(batch: SceneBatch, table: RayTable, cameras: Cameras, options: ShadingOptions, looks: Appearance) -> Arrays:
    """Arrays that may differ from one launch to the next."""
    reach = np.array([options.max_range, options.shadow_distance, options.mirror_roughness], np.float32)
    lights, spans = env_lights(batch, looks)
    spread = spreads(table)
    if options.texture_bias:
        spread = spread * np.float32(2.0**options.texture_bias)
    rays, pixels = table.arrays(batch.geometry.device)
    found: dict[str, Any] = {
        "spreads": spread,
        "cameras": cameras.rows.view(np.float32),
        "env_scene": batch.scene_of_env,
        "env_lights": spans,
        "lights": lights,
        "settings": reach,
        "rays": rays,
        "pixels": pixels,
    }
    return found


def env_lights(batch: SceneBatch, looks: Appearance) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Rows of lights, and of each environment the first and how many (env, 2); lights on actors are where these are now."""
    attached = any(getattr(light, "attached", "") for scene in batch.scenes for light in scene.lights)
    if not attached:
        return looks.lights, np.ascontiguousarray(looks.light_spans[batch.scene_of_env])
    points, ways = batch.light_poses()
    counts = looks.light_spans[batch.scene_of_env, 1]
    first = np.cumsum(counts) - counts
    env = np.repeat(np.arange(batch.env_count), counts)
    number = np.arange(len(env)) - first[env]
    rows = looks.lights[looks.light_spans[batch.scene_of_env[env], 0] + number].copy()
    where, way = points[env, number], ways[env, number]
    rows[:, 1:4] = np.where(np.isnan(where), rows[:, 1:4], where)
    rows[:, 4:7] = np.where(np.isnan(way), rows[:, 4:7], way)
    return rows if len(rows) else looks.lights, np.stack([first, counts], -1).astype(np.int32)


def _looks_arrays(looks: Appearance) -> Arrays:
    baked = looks.baked
    return {
        "materials": looks.materials,
        "material_maps": looks.material_maps,
        "shape_looks": looks.shape_rows,
        "looks_vertices": looks.vertices,
        "looks_faces": looks.faces,
        "textures": looks.textures,
        "texels": looks.texels,
        "skies": looks.skies,
        "volumes": baked.volumes,
        "probes": baked.probes,
        "map_slots": baked.slots,
        "light_maps": baked.maps,
        "map_nodes": baked.nodes,
    }


_SENT: WeakKeyDictionary[Appearance, dict[str, tuple[int, dict[str, Any]]]] = WeakKeyDictionary()


def _device_words(host: Arrays, looks: Appearance, device: str) -> list[Any]:
    """Warp arrays in the order of `ARRAYS`; those of the appearance are sent to a device once."""
    kept = _SENT.setdefault(looks, {})
    if device not in kept or kept[device][0] != looks.version:
        kept[device] = (looks.version, {name: _sent(array, device) for name, array in _looks_arrays(looks).items()})
    still = kept[device][1]
    words = []
    for name, kind in ARRAYS:
        if name in still:
            words.append(still[name])
        elif host.get(name) is None:
            words.append(_nothing(kind, device))
        else:
            words.append(_sent(host[name], device))
    return words


def _sent(array: Any, device: str) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    wp = quiet_warp()
    kind = {np.dtype(np.int32): wp.int32, np.dtype(np.uint32): wp.uint32}.get(array.dtype, wp.float32)
    shared = wp.array(np.ascontiguousarray(array).reshape(-1), dtype=kind, device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)


_NOTHING: dict[tuple[str, str], Any] = {}


def _nothing(kind: str, device: str) -> Any:
    if (kind, device) not in _NOTHING:
        _NOTHING[kind, device] = _sent(np.zeros(1, _TYPES[kind]), device)
    return _NOTHING[kind, device]


def _fetched(outputs: Arrays, words: list[Any], device: str) -> Arrays:
    if device != "cpu":
        places = {name: k for k, (name, _) in enumerate(ARRAYS)}
        for name, array in outputs.items():
            array[...] = words[places[name]].numpy().reshape(array.shape)
    return {key: outputs[name] for name, (key, _) in _OUTPUTS.items() if name in outputs}
