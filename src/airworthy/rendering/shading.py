"""Colours: what rays through a `SceneBatch` see, as linear radiance, albedo and shading normals.

Surfaces are metallic-roughness (Lambert and GGX); the sun and lamps cast hard shadows by rays; light from all sides comes from
the sky, or from what was baked. `airworthy.rendering.images.render` joins this with the geometric channels in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayF32, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_warp, shared_source
from airworthy.core.random import Stream
from airworthy.core.schema import check_fields
from airworthy.geometry import RayTable, native_source
from airworthy.geometry.cast import camera_rows, sensor_environments
from airworthy.geometry.native_text import BATCH_SIGNATURE
from airworthy.geometry.placement import unit_quaternions
from airworthy.geometry.query_arguments import Repeated, striped
from airworthy.optics.exposure import metered
from airworthy.optics.lenses import SUPERSAMPLES, pixel_angle, shifted, spreads, supersampled
from airworthy.rendering import water
from airworthy.rendering.edge_samples import EdgePixels, edge_gain
from airworthy.rendering.gloss import GLOSS_COLUMNS, GLOSS_NUMBERS, spread_gloss
from airworthy.rendering.scattering import ALBEDO_STEPS, albedo_table
from airworthy.scenes import appearance, lights
from airworthy.scenes.appearance import FACE_SIZE, VERTEX_SIZE, Appearance, appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.sky import clouds, snow, stars, wetness

__all__ = [
    "APPEARANCE_CHANNELS",
    "DEFAULT_OPTIONS",
    "HIT_CHANNELS",
    "QUALITIES",
    "SUN_ANGLE",
    "Cameras",
    "ShadingOptions",
    "cloud_times",
    "device_arrays",
    "env_lights",
    "launch",
    "quality_options",
    "renumbered",
    "seen_by_colors",
    "shade",
    "shade_channels",
    "shading_kernel",
    "shading_source",
]


# ---------------------------------------------------------------------------------------------------------------------------
# Builds the kernel that gives rays their colours: 16 rays per packet on a CPU, one per thread on a GPU, from one text

PACKETS_PER_TASK = 8
"""Packets of 16 rays that one CPU task covers."""

FLAGS = {
    name: 1 << k
    for k, name in enumerate(
        (
            "USE_HITS",
            "USE_COLUMNS",
            "USE_OWN_ORIGINS",
            "USE_SHADOWS",
            "USE_SPECULAR",
            "USE_REFLECTIONS",
            "USE_BAKED",
            "USE_HOLES",
            "USE_SUN_DISC",
            "USE_LEAF_SHADOWS",
            "USE_SOFT",
            "USE_GLOSS",
            "USE_GLASS",
            "USE_WATER",
            "USE_LEAVES",
            "USE_OWN_SHADOWS",
            "USE_CHOSEN",
            "SPREAD_GLOSS",
            "OUT_RGB",
            "OUT_ALBEDO",
            "OUT_NORMAL",
            "OUT_HITS",
        )
    )
}
"""Switches of a launch: what is used, what is delivered."""
SETTINGS = (
    *("SET_FAR", "SET_SHADOW", "SET_MIRROR", "SET_SUN_TANGENT", "SET_LIGHT_RAYS", "SET_GLOSS_RAYS", "SET_SAMPLE"),
    "SET_PIXEL",
    "SET_SHARE",
    "SET_TIMES",
)
"""Numbers of a launch: longest ray [m], farthest shadows [m], roughness below which surfaces mirror, tangent of the sun's half
angle, shadow rays per light, rays of gloss, which of the pixel's samples it is, the angle by which levels of detail are chosen
[rad], and the share of a chosen ray in its pixel; then the times of environments, where there are clouds or water."""
SUN_ANGLE = 0.004654
"""Half angle of the sun's disc [rad]: 696,000 km from 149.6 million km (IAU 2015 resolution B3, nominal values)."""
RAYS_MAX = 256
"""Of one kind and sample."""
GLOSS_ROUGHNESS = 0.65
"""Rougher surfaces mirror what was baked; a sixteenth below, all of their gloss is traced."""
SHADE_FAR, SHADE_STEPS = 80.0, 4
"""How far haze is as dark as the shade that was baked there [m], and at how many places of that way it is asked. Ours: beyond
a wood is shut."""
CAMERA_STRIDE = 12
HOLES_MAX = 8
"""Cut-out surfaces that a ray looks through before it stops at the next."""
SUN_ANGLE_COSINE = 0.99998
"""Of the sun's disc, drawn a little larger (0.36 deg) than it is (0.27), so that it covers a pixel."""
SUN_RADIANCE = 60.0
"""Of the drawn disc; the real one would be 500 times that and make every image depend on one pixel."""


def shading_source(body: bool = True, holes: int = HOLES_MAX) -> str:
    """Return the native source.

    Args:
        body: With the kernel itself; False: what it is made of, for another one.
        holes: Cut-out surfaces that a ray looks through.
    """
    whole = {
        **FLAGS,
        **{name: k for k, name in enumerate(SETTINGS)},
        "PACKETS_PER_TASK": PACKETS_PER_TASK,
        "RAY_ROWS": 7,
        "CAMERA_STRIDE": CAMERA_STRIDE,
        "HOLES_MAX": holes,
        "MATERIAL_COLUMNS": appearance.MATERIAL_COLUMNS,
        "TEXTURE_COLUMNS": appearance.TEXTURE_COLUMNS,
        "VERTEX_SIZE": VERTEX_SIZE,
        "FACE_SIZE": FACE_SIZE,
        "LIGHT_COLUMNS": lights.LIGHT_COLUMNS,
        "LIGHT_SUN": lights.LIGHT_SUN,
        "LIGHT_POINT": lights.LIGHT_POINT,
        "LIGHT_SPOT": lights.LIGHT_SPOT,
        "SKY_STEPS": lights.SKY_STEPS,
        "SKY_COLUMNS": lights.SKY_COLUMNS,
        "VOLUME_COLUMNS": lights.VOLUME_COLUMNS,
        "PROBE_SIZE": lights.PROBE_SIZE,
        "ALBEDO_STEPS": ALBEDO_STEPS,
        "GLOSS_COLUMNS": GLOSS_COLUMNS,
        "CLOUD_SIDE": clouds.TILE_SIDE,
        "CLOUD_STEPS": clouds.CLOUD_STEPS,
        "STAR_CELLS": stars.STAR_CELLS,
        "SHADE_STEPS": SHADE_STEPS,
        "WAVE_COUNT": water.WAVE_COUNT,
        "WAVE_TABLE": water.wave_table(),
        "STAR_STREAM": f"{int(Stream.STARS)}u",
        "SHADE_STREAM": f"{int(Stream.SHADING)}u",
    }
    reals = {
        "HAZE": lights.HAZE,
        "GLOSS_ROUGHNESS": GLOSS_ROUGHNESS,
        **GLOSS_NUMBERS,
        "UNWRAPPED_SIZE": appearance.UNWRAPPED_SIZE,
        "SUN_FAR": 1e4,
        "SUN_COSINE": SUN_ANGLE_COSINE,
        "SUN_RADIANCE": SUN_RADIANCE,
        **clouds.CLOUD_NUMBERS,
        **wetness.WET_NUMBERS,
        **snow.SNOW_NUMBERS,
        **stars.NIGHT_NUMBERS,
        "SHADE_FAR": SHADE_FAR,
        "WATER_SLANT": water.WATER_SLANT,
        "WAVE_SLOPE": water.WAVE_SLOPE,
    }
    # Not enumerators: lane vectors do not mix with their type.
    names = "\n".join(f"#define {name} {number}" for name, number in whole.items())
    numbers = "\n".join(f"#define {name} {number!r}f" for name, number in reals.items())
    folder = files("airworthy.rendering").joinpath("native")
    used = (
        "shading_lanes.h",
        "textures.h",
        "surface.h",
        "clouds.h",
        "light.h",
        "water.h",
        *(("gloss.h", "shading.cpp") if body else ()),
    )
    texts = [folder.joinpath(name).read_text() for name in used]
    return "\n".join([native_source("rays.h"), shared_source("random.h"), names, numbers, *texts])


ARRAYS = (
    ("rays", "f"),
    ("pixels", "i"),
    ("spreads", "f"),
    ("cameras", "f"),
    ("task_order", "i"),
    ("chosen", "i"),
    ("env_scene", "i"),
    ("env_lights", "i"),
    ("settings", "f"),
    ("albedos", "f"),
    ("materials", "f"),
    ("material_maps", "i"),
    ("shape_appearance", "i"),
    ("appearance_vertices", "u"),
    ("appearance_faces", "u"),
    ("textures", "i"),
    ("texels", "u"),
    ("lights", "f"),
    ("skies", "f"),
    ("volumes", "f"),
    ("probes", "u"),
    ("map_slots", "i"),
    ("light_maps", "i"),
    ("map_nodes", "u"),
    ("hit_range", "f"),
    ("hit_instance", "i"),
    ("hit_face", "i"),
    ("hit_barycentric", "f"),
    ("out_rgb", "f"),
    ("out_albedo", "f"),
    ("out_normal", "f"),
    ("out_range", "f"),
    ("out_instance", "i"),
    ("out_face", "i"),
    ("out_barycentric", "f"),
    ("out_back", "f"),
    ("glossed", "f"),
)
"""Arrays after those of the geometry batch, in the order of the kernel's arguments, and the type of their elements."""


_ARGUMENTS = """
    rays: float32[]  # (packet, 7, 16), of the ray table
    pixels: int32[]  # (packet, 16)
    spreads: float32[]  # (packet, 16): angle that a pixel covers [rad]
    cameras: float32[]  # (camera or camera * width, 12): position, its rest, attitude, env, ignored
    task_order: int32[]  # (task,)
    chosen: int32[]  # (task * PACKETS_PER_TASK, 16), for USE_CHOSEN: camera * packet * 16 + place, or below 0
    env_scene: int32[]  # (env,)
    env_lights: int32[]  # (env, 2): first, count
    settings: float32[]  # (SETTINGS,)
    albedos: float32[]  # of gloss (airworthy.rendering.scattering), for USE_GLOSS
    materials: float32[]  # airworthy.scenes.appearance from here on
    material_maps: int32[]
    shape_appearance: int32[]
    appearance_vertices: uint32[]
    appearance_faces: uint32[]
    textures: int32[]
    texels: uint32[]
    lights: float32[]
    skies: float32[]
    volumes: float32[]  # airworthy.rendering.baking from here on
    probes: uint32[]
    map_slots: int32[]
    light_maps: int32[]
    map_nodes: uint32[]
    hit_range: float32[]  # (camera, pixel): known hits, for USE_HITS
    hit_instance: int32[]
    hit_face: int32[]
    hit_barycentric: float32[]
    out_rgb: float32[]  # (camera, pixel, 3) linear
    out_albedo: float32[]  # (camera, pixel, 3)
    out_normal: float32[]  # (camera, pixel, 3) world; zeros on a miss
    out_range: float32[]  # (camera, pixel); -1 on a miss
    out_instance: int32[]
    out_face: int32[]
    out_barycentric: float32[]
    out_back: float32[]  # (camera, pixel): 1 where a back face is seen
    glossed: float32[]  # (camera, pixel, GLOSS_COLUMNS), for SPREAD_GLOSS: written, and read for USE_CHOSEN
    packets: int
    pixel_count: int
    width: int
    flags: int
"""


@cache
def shading_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("shade", prefix + shading_source(), BATCH_SIGNATURE + _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- How colours are found, and from where: options and poses, checked ------------------------------------------------------


@dataclass(frozen=True)
class ShadingOptions:
    """How colours are found.

    Raises:
        AirworthyError: If a number is out of range.
    """

    shadows: bool = True
    shadow_distance: float = 1000.0
    """Of the eye's way; surfaces farther off are lit, or take what was baked of the sun [m]."""
    leaf_shadows: bool = False
    """Shadows of cut-out materials have their holes; False: those of their sheets, which is faster."""
    own_shadows: bool = False
    """Everything seen casts its own shadow; False: things do as their `shadow` says, coarse kin of trees in their place."""
    detail: float = 1.0
    """Width of a pixel over its true one by which levels of detail are chosen (`Instance.footprint`); 0: always the finest."""
    specular: bool = True
    """Gloss; False: only Lambert, which has closed forms."""
    sun_angle: float = SUN_ANGLE
    """Half angle of the sun's disc [rad], where it is soft."""
    light_rays: int = 0
    """Shadow rays per sample to the sun's disc and to lamps that have a radius; 0: one to their middles, hard shadows."""
    gloss_rays: int = 0
    """Rays per sample by which surfaces smoother than 0.65 show what is around them; 0: the sky, or what was baked."""
    reflections: bool = False
    """Trace one mirror ray on smooth surfaces, instead of the sky or the volume."""
    mirror_roughness: float = 0.4
    """Surfaces rougher than this do not mirror; half of it mirrors fully."""
    baked: bool = True
    """Use baked light where a scene has it (`rendering.light_baking.bake`)."""
    samples: int = 1
    """Rays per pixel for colours: 1, 2, 4 or 8."""
    contrast: float = 0.0
    """Above 0, one ray through each pixel's middle comes first, and samples only where neighbours differ by more: in the square
    root of their brightness, where 1 is white, or, at night, what a camera would show as white. 0: samples
    everywhere."""
    sun_disc: bool = True
    """Draw the sun."""
    texture_scale: float = 1.0
    """1, 0.5, 0.25 or 0.125: what of the textures is kept in memory."""
    texture_bias: float = 0.0
    """Added to the mip level: above 0 blurrier, below sharper."""
    max_range: float = 1000.0
    """Farther things are sky [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "ShadingOptions.")
        if self.samples not in SUPERSAMPLES:
            raise AirworthyError(f"A pixel cannot have {self.samples} samples; expected 1, 2, 4 or 8.")
        if not (self.shadow_distance >= 0.0 and self.max_range > 0.0 and 0.0 < self.mirror_roughness <= 1.0):
            raise AirworthyError(
                f"Shadows reach {self.shadow_distance} m, rays {self.max_range} m, mirrors have roughness below "
                f"{self.mirror_roughness}; expected 0 or more, more than 0, and 0 to 1."
            )
        if not (0 <= self.light_rays <= RAYS_MAX and 0 <= self.gloss_rays <= RAYS_MAX and 0.0 <= self.sun_angle <= 0.5):
            raise AirworthyError(
                f"{self.light_rays} rays to each light, {self.gloss_rays} of gloss and a sun of half angle {self.sun_angle} rad"
                f" were asked for; expected 0 to {RAYS_MAX} rays, and 0 to 0.5 rad (the real sun has 0.00465)."
            )
        if not 0.0 <= self.contrast <= 1.0:
            raise AirworthyError(f"A contrast of {self.contrast} between neighbours was asked for; expected 0 to 1.")
        if not 0.0 <= self.detail <= 64.0:
            raise AirworthyError(f"Levels of detail were asked for by {self.detail} pixels; expected 0 to 64.")
        if not -8.0 <= self.texture_bias <= 8.0:
            raise AirworthyError(f"A texture bias of {self.texture_bias} levels arrived; expected -8 to 8.")

    def flags(self, appearance: Appearance) -> int:
        """Return switches of the kernel."""
        asked = {
            "USE_SHADOWS": self.shadows,
            "USE_SPECULAR": self.specular,
            "USE_REFLECTIONS": self.reflections,
            "USE_BAKED": self.baked,
            "USE_SUN_DISC": self.sun_disc,
            "USE_HOLES": appearance.has_holes,
            "USE_LEAF_SHADOWS": appearance.has_holes and self.leaf_shadows,
            "USE_SOFT": self.light_rays > 0,
            "USE_GLASS": appearance.has_glass,
            "USE_WATER": appearance.has_water,
            "USE_LEAVES": appearance.has_leaves,
            "USE_GLOSS": self.specular and self.gloss_rays > 0,
            "USE_OWN_SHADOWS": self.own_shadows,
        }
        return sum(FLAGS[name] for name, on in asked.items() if on)


DEFAULT_OPTIONS = ShadingOptions()

QUALITIES: dict[str, ShadingOptions] = {
    "policy": DEFAULT_OPTIONS,
    "standard": ShadingOptions(samples=2, contrast=0.08, texture_bias=-0.5, leaf_shadows=True, light_rays=1, gloss_rays=1),
    "high": ShadingOptions(
        samples=8, texture_bias=-1.5, leaf_shadows=True, light_rays=4, gloss_rays=8, own_shadows=True, detail=0.25
    ),
}
"""From what a policy trains on to what a film shows; beyond them are still images (`StillOptions`). Where rays of a pixel are
averaged, textures need not be: their bias is half of the base-2 logarithm of the samples."""


def quality_options(name: str) -> ShadingOptions:
    """Return the options of a quality: policy, standard or high.

    Raises:
        UnknownNameError: There is no such quality.
    """
    if name not in QUALITIES:
        raise unknown_name("quality", name, list(QUALITIES))
    return QUALITIES[name]


@dataclass(frozen=True, eq=False)
class Cameras:
    """Poses of c cameras, checked: rows of the kernel, (c, 1 or width, 12) numbers."""

    rows: NDArray[np.void]
    env: NDArray[np.int32]
    columns: bool

    @classmethod
    def of(
        cls,
        batch: SceneBatch,
        table: RayTable,
        position: ArrayLike,
        attitude: ArrayLike,
        env: ArrayLike | None = None,
        ignore: ArrayLike | None = None,
        column_position: ArrayLike | None = None,
        column_attitude: ArrayLike | None = None,
    ) -> Cameras:
        """Check and pack poses.

        Args:
            batch: The scenes.
            table: Rays of the cameras, optical frame.
            position: (c, 3) [m], world.
            attitude: (c, 4) quaternion x, y, z, w, optical frame to world.
            env: (c,); None: 0, 1, 2, ...
            ignore: Instance that each camera does not see, (c,); None: none.
            column_position: Of each column, (c, W, 3) [m]; None: all columns at once.
            column_attitude: Of each column, (c, W, 4).

        Raises:
            AirworthyError: If shapes do not fit or a value is not finite.
        """
        columns = column_position is not None and column_attitude is not None
        where = np.asarray(column_position if columns else position, np.float64)
        turned = np.asarray(column_attitude if columns else attitude, np.float64)
        if not columns:
            where, turned = where.reshape(-1, 1, 3), turned.reshape(-1, 1, 4)
        count, width = len(where), table.width if columns else 1
        if where.shape != (count, width, 3) or turned.shape != (count, width, 4):
            raise AirworthyError(
                f"Cameras got positions {where.shape} and attitudes {turned.shape}; expected a pose each, (c, 3) and (c, 4)."
            )
        if not np.isfinite(where).all():
            raise AirworthyError("A camera's position is not finite.")
        envs = sensor_environments(env, count, batch.env_count)
        ignored = np.broadcast_to(np.asarray(-1 if ignore is None else ignore, np.int32), (count,))
        # Brought to unit length here: kernels rotate by products, which would scale rays by the square of it.
        rows = camera_rows(where, unit_quaternions(turned, "A camera's attitude"), envs, np.ascontiguousarray(ignored))
        return cls(rows, envs, columns)

    def __len__(self) -> int:
        return len(self.rows)


def seen_by_colors(batch: SceneBatch) -> SceneBatch:
    """Return the batch that rays of colour are cast in: with looks where its scenes have some (`SceneBatch.rendered`)."""
    return batch.rendered() if batch.has_looks else batch


def renumbered(cameras: Cameras, batch: SceneBatch, seen: SceneBatch) -> Cameras:
    """Return cameras whose ignored instances are numbered as in another view of their batch (`SceneBatch.rendered`).

    Args:
        cameras: Of the batch.
        batch: As it was asked.
        seen: As colours see it.
    """
    first = batch.geometry.dynamic_start
    shift = seen.geometry.dynamic_start - first
    if not shift or not (cameras.rows["ignore"] >= first).any():
        return cameras
    rows = cameras.rows.copy()
    rows["ignore"] += np.where(rows["ignore"] >= first, shift, 0).astype(rows["ignore"].dtype)
    return replace(cameras, rows=rows)


# -----------------------------------------------------------------------------------------------------------------------------
# One launch of the shading kernel: its arrays gathered, sent where they are not yet, and its answers fetched.

Arrays = dict[str, ArrayAny]

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
    "glossed": ("glossed", GLOSS_COLUMNS),
}
_TYPES = {"f": np.float32, "i": np.int32, "u": np.uint32}
_PREFIX = ""
"""Put before the kernel's text; `#define SCALAR_PATH` lets a CPU run the form of a GPU (tests do)."""
_LAUNCHES_KEPT = 8
_launches: WeakKeyDictionary[SceneBatch, dict[Any, Repeated]] = WeakKeyDictionary()


def launch(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    channels: Sequence[str],
    options: ShadingOptions,
    hits: Arrays | None,
    sample: int = 0,
    chosen: NDArray[np.int32] | None = None,
    into: ArrayF32 | None = None,
    glossed: ArrayF32 | None = None,
    share: float | None = None,
) -> Arrays:
    """Return channels (c, H, W, ...) of one table of rays; see `shading.shade_channels`.

    Args:
        batch: The scenes.
        table: Rays of the cameras, optical frame.
        cameras: Checked poses.
        channels: Wanted.
        options: How colours are found.
        hits: Of the same rays, where they are known; None: they are cast.
        sample: Which of each pixel's samples the table is.
        chosen: Rays of USE_CHOSEN, one more sample of their pixels' mean; None: all of the table.
        into: The mean so far, (c, H, W, 3), where rays are chosen: what is given back.
        glossed: Rows of `spread_gloss`, where rays are chosen; the channel of that name asks for them first.
        share: Of a chosen ray in that mean; None: as one more of `sample` that it holds already.
    """
    device = batch.geometry.device
    appearance = appearance_of(batch, options.texture_scale)
    flags = options.flags(appearance) | FLAGS["USE_COLUMNS"] * cameras.columns
    flags |= FLAGS["USE_OWN_ORIGINS"] * (table.origins is not None) | FLAGS["USE_HITS"] * (hits is not None)
    for name in channels:
        flags |= FLAGS[f"OUT_{name.upper()}"] if name != "glossed" else 0
    shape = (len(cameras), table.height, table.width)
    outputs = _outputs(shape, channels) if into is None else {"out_rgb": into}
    flags |= FLAGS["USE_CHOSEN"] * (chosen is not None) | FLAGS["SPREAD_GLOSS"] * (glossed is not None or "glossed" in outputs)
    # A launch of nothing is an error on some devices; arrays without rows have the right shapes already.
    if not len(cameras):
        return {key: outputs[name] for name, (key, _) in _OUTPUTS.items() if name in outputs}
    host = {**_frame_arrays(batch, table, cameras, options, appearance, sample, share), **_hit_arrays(hits, shape), **outputs}
    if chosen is not None:
        host["chosen"] = chosen
    if glossed is not None:
        host["glossed"] = glossed
    # On a CPU a task is some packets of 16 rays in vector lanes, on a GPU a task is one ray.
    in_lanes = device == "cpu" and not _PREFIX
    tasks = len(cameras) * (-(-table.packet_count // PACKETS_PER_TASK) if in_lanes else table.packet_count * CPU_LANES)
    scalars = [table.packet_count, table.height * table.width, table.width, flags]
    # All that a recorded launch cannot exchange; arrays it can.
    key = (table, len(cameras), flags, batch.geometry.version, _PREFIX)
    kept = _launches.setdefault(batch, {})
    if in_lanes:
        host["task_order"] = _order(tasks, batch.threads)
    arguments = device_arrays(ARRAYS, host, appearance, device)
    arrays = [*batch.geometry.arguments(), *arguments]
    # Taken out and put back at the end: the dictionary's order is that of last use.
    run = kept.pop(key, None)
    if run is None:
        run = Repeated(shading_kernel(_PREFIX), tasks, [*arrays, *scalars], device, batch.threads)
    kept[key] = run
    while len(kept) > _LAUNCHES_KEPT:
        kept.pop(next(iter(kept)))
    # Only arrays that are others than last time are set; setting one costs more than comparing it.
    for index, array in enumerate(arrays):
        run.exchange(index, array)
    run.launch()
    return _fetched(outputs, arguments, device)


_ORDERS: dict[tuple[int, int | None], NDArray[np.int32]] = {}


def _order(tasks: int, threads: int | None) -> NDArray[np.int32]:
    if (tasks, threads) not in _ORDERS:
        # One is enough: a batch asks for the same number of tasks again and again.
        _ORDERS.clear()
        _ORDERS[tasks, threads] = striped(tasks, threads)
    return _ORDERS[tasks, threads]


def _outputs(shape: tuple[int, int, int], channels: Sequence[str]) -> Arrays:
    kinds = dict(ARRAYS)
    wanted = [
        n
        for n, (key, _) in _OUTPUTS.items()
        if key in channels or ("hits" in channels and key not in (*APPEARANCE_CHANNELS, "glossed"))
    ]
    sizes = {name: shape if _OUTPUTS[name][1] == 1 else (*shape, _OUTPUTS[name][1]) for name in wanted}
    # Of gloss only those rows are written that have some.
    return {n: (np.zeros if n == "glossed" else np.empty)(sizes[n], _TYPES[kinds[n]]) for n in wanted}


def _hit_arrays(hits: Arrays | None, shape: tuple[int, int, int]) -> Arrays:
    if hits is None:
        return {}
    for name in HIT_CHANNELS:
        if name not in hits or hits[name].shape[:3] != shape:
            raise AirworthyError(f"Known hits need the channel {name!r} of shape {shape}; cast the same rays with it.")
    return {f"hit_{name}": hits[name] for name in HIT_CHANNELS}


def _frame_arrays(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    options: ShadingOptions,
    appearance: Appearance,
    sample: int,
    share: float | None,
) -> Arrays:
    """Arrays that may differ from one launch to the next."""
    numbers = [options.max_range, options.shadow_distance, options.mirror_roughness, np.tan(options.sun_angle)]
    lights, spans = env_lights(batch, appearance)
    spread = spreads(table)
    pixel = options.detail * pixel_angle(table)
    reach = np.array([*numbers, options.light_rays, options.gloss_rays, sample, pixel, share or 1.0 / (sample + 1)], np.float32)
    reach = np.append(reach, cloud_times(batch, appearance))
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
        "albedos": albedo_table() if options.gloss_rays else None,
        "rays": rays,
        "pixels": pixels,
    }
    return found


def cloud_times(batch: SceneBatch, appearance: Appearance) -> ArrayF32:
    """Return the times of environments [s], (env,), by which the wind has moved their clouds and waves; (0,) where no scene has
    any."""
    moves = appearance.has_clouds or appearance.has_water
    return batch.time.astype(np.float32) if moves else np.zeros(0, np.float32)


def env_lights(batch: SceneBatch, appearance: Appearance) -> tuple[ArrayF32, NDArray[np.int32]]:
    """Return rows of lights, and of each environment the first and how many (env, 2); lights on actors are where these are
    now."""
    attached = any(getattr(light, "attached", "") for scene in batch.scenes for light in scene.lights)
    if not attached:
        return appearance.lights, np.ascontiguousarray(appearance.light_spans[batch.scene_of_env])
    points, directions = batch.light_poses()
    counts = appearance.light_spans[batch.scene_of_env, 1]
    first = np.cumsum(counts) - counts
    env = np.repeat(np.arange(batch.env_count), counts)
    number = np.arange(len(env)) - first[env]
    rows = appearance.lights[appearance.light_spans[batch.scene_of_env[env], 0] + number].copy()
    where, towards = points[env, number], directions[env, number]
    rows[:, 1:4] = np.where(np.isnan(where), rows[:, 1:4], where)
    rows[:, 4:7] = np.where(np.isnan(towards), rows[:, 4:7], towards)
    return rows if len(rows) else appearance.lights, np.stack([first, counts], -1).astype(np.int32)


def _appearance_arrays(appearance: Appearance) -> Arrays:
    baked = appearance.baked
    return {
        "materials": appearance.materials,
        "material_maps": appearance.material_maps,
        "shape_appearance": appearance.shape_rows,
        "appearance_vertices": appearance.vertices,
        "appearance_faces": appearance.faces,
        "textures": appearance.textures,
        "texels": appearance.texels,
        "skies": appearance.skies,
        "volumes": baked.volumes,
        "probes": baked.probes,
        "map_slots": baked.slots,
        "light_maps": baked.maps,
        "map_nodes": baked.nodes,
    }


_SENT: WeakKeyDictionary[Appearance, dict[str, tuple[int, dict[str, Any]]]] = WeakKeyDictionary()


def device_arrays(kinds: Sequence[tuple[str, str]], host: Arrays, appearance: Appearance, device: str) -> list[Any]:
    """Return Warp arrays in the order of a kernel's arguments; those of the appearance are sent to a device once.

    Args:
        kinds: Names of the arguments, and the type of their elements: "f", "i" or "u".
        host: Arrays by name; those that are missing get one element.
        appearance: Whose arrays stay where they are from launch to launch.
        device: Warp's name of it.
    """
    # Textures are the largest thing that a scene has: they go to a device once, not with each frame.
    kept = _SENT.setdefault(appearance, {})
    if device not in kept or kept[device][0] != appearance.version:
        kept[device] = (
            appearance.version,
            {name: _sent(array, device) for name, array in _appearance_arrays(appearance).items()},
        )
    still = kept[device][1]
    arguments = []
    for name, kind in kinds:
        if name in still:
            arguments.append(still[name])
        elif host.get(name) is None:
            arguments.append(_nothing(kind, device))
        else:
            arguments.append(_sent(host[name], device))
    return arguments


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


def _fetched(outputs: Arrays, arguments: list[Any], device: str) -> Arrays:
    if device != "cpu":
        order = {name: k for k, (name, _) in enumerate(ARRAYS)}
        for name, array in outputs.items():
            # On a CPU the kernel wrote into the arrays themselves.
            array[...] = arguments[order[name]].numpy().reshape(array.shape)
    return {key: outputs[name] for name, (key, _) in _OUTPUTS.items() if name in outputs}


# -----------------------------------------------------------------------------------------------------------------------------


def shade(
    batch: SceneBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    env: ArrayLike | None = None,
    options: ShadingOptions = DEFAULT_OPTIONS,
) -> ArrayF32:
    """Return colours of c cameras.

    Args:
        batch: The scenes.
        table: Rays in the camera's frame.
        position: World [m], (c, 3).
        attitude: Camera to world, (c, 4).
        env: (c,) environment of each; None: camera k is in environment k, or all are in the only one.
        options: How.

    Returns:
        Linear radiance (c, H, W, 3), in units in which a white surface under an irradiance of pi has 1.
    """
    cameras = Cameras.of(batch, table, position, attitude, env)
    return shade_channels(seen_by_colors(batch), table, cameras, ("rgb",), options)["rgb"]


def shade_channels(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    channels: Sequence[str],
    options: ShadingOptions = DEFAULT_OPTIONS,
    hits: Arrays | None = None,
) -> Arrays:
    """Return channels of `APPEARANCE_CHANNELS`, and "hits": the channels of `HIT_CHANNELS` and "back" (a back face is seen).

    Args:
        batch: The scenes.
        table: The rays.
        cameras: Poses.
        channels: What to give.
        options: How.
        hits: What `geometry.cast` found for these rays (`HIT_CHANNELS`); None: rays are traced. Not used where samples are
            taken beside the middles of pixels.
    """
    if options.samples > 1 and options.contrast > 0.0 and "rgb" in channels and set(channels) <= {"rgb", "hits"}:
        return _where_needed(batch, table, cameras, channels, options)
    tables = supersampled(table, options.samples)
    colored = [name for name in channels if name in APPEARANCE_CHANNELS]
    total: Arrays = {}
    for index, one in enumerate(tables):
        given = hits if len(tables) == 1 else None
        found = launch(batch, one, cameras, channels if index == 0 else colored, options, given, index)
        if not total:
            total = found
            continue
        for name in colored:
            total[name] += found[name]
    if len(tables) > 1:
        for name in colored:
            total[name] *= np.float32(1.0 / len(tables))
    if len(tables) > 1 and "normal" in colored:
        length = np.linalg.norm(total["normal"], axis=-1, keepdims=True)
        total["normal"] = np.where(length > 1e-3, total["normal"] / np.maximum(length, 1e-3), 0.0).astype(np.float32)
    return total


# ---- Samples where they are needed ------------------------------------------------------------------------------------------


def _where_needed(
    batch: SceneBatch, table: RayTable, cameras: Cameras, channels: Sequence[str], options: ShadingOptions
) -> Arrays:
    """Return channels as `shade_channels`: one ray per pixel, and more where that differs from its neighbours."""
    # Textures as blurred as one ray needs them: most pixels keep it.
    glossy = options.specular and options.gloss_rays > 0
    asked = [*channels, "glossed"] if glossy else channels
    found = launch(batch, table, cameras, asked, replace(options, texture_bias=0.0), None)
    glossed = found.pop("glossed", None)
    if not len(cameras):
        return found
    if glossed is not None:
        spread_gloss(glossed, found["rgb"])
    # At night what a camera shows as white is far below 1: it would have no edges.
    pixels = EdgePixels.of(found["rgb"], options.contrast, edge_gain(metered(found["rgb"])))
    chosen = chosen_rays(pixels.strong, table)
    if chosen is not None:
        for index, one in enumerate(supersampled(table, options.samples)):
            launch(batch, one, cameras, ("rgb",), options, None, index + 1, chosen, found["rgb"], glossed)
    corners = np.zeros_like(found["rgb"])
    chosen = chosen_rays(pixels.corners, table)
    if chosen is not None:
        last = options.samples + 1
        launch(batch, shifted(table, 0.5, 0.5), cameras, ("rgb",), options, None, last, chosen, corners, glossed, share=1.0)
    pixels.refine(found["rgb"], corners)
    return found


def chosen_rays(wanted: ArrayBool, table: RayTable) -> NDArray[np.int32] | None:
    """Return the rays of some pixels for USE_CHOSEN, as many as the whole table has places; None where no pixel is wanted.

    Args:
        wanted: (c, H, W)
        table: Rays.
    """
    room = PACKETS_PER_TASK * CPU_LANES
    places = table.pixels.reshape(-1)
    inside = np.where(places < 0, 0, places)
    out = np.full((len(wanted), -(-len(places) // room) * room), -1, np.int32)
    filled = 0
    flat = out.reshape(-1)
    for camera, mask in enumerate(wanted):
        numbers = np.flatnonzero(mask.reshape(-1)[inside] & (places >= 0))
        flat[filled : filled + len(numbers)] = numbers + camera * len(places)
        # A task's rays are of one camera: what is left of its last one stays empty.
        filled += -(-len(numbers) // room) * room
    return flat if filled else None
