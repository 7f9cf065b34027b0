"""Builds the kernel that gives rays their colours: 16 rays per packet on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry import native_source
from airworthy.geometry.native_text import BATCH_SIGNATURE
from airworthy.scenes import appearance, lightmaps, lights
from airworthy.scenes.appearance import FACE_WORDS, VERTEX_WORDS

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
            "OUT_RGB",
            "OUT_ALBEDO",
            "OUT_NORMAL",
            "OUT_HITS",
        )
    )
}
"""Switches of a launch: what is used, what is delivered."""
SETTINGS = ("SET_FAR", "SET_SHADOW", "SET_MIRROR")
"""Numbers of a launch: longest ray [m], farthest shadows [m], roughness below which surfaces mirror."""
CAMERA_WORDS = 12
HOLES_MAX = 8
"""Cut-out surfaces that a ray looks through before it stops at the next."""
SUN_ANGLE_COSINE = 0.99998
"""Of the sun's disc, drawn a little larger (0.36 deg) than it is (0.27), so that it covers a pixel."""
SUN_RADIANCE = 60.0
"""Of the drawn disc; the real one would be 500 times that and make every image depend on one pixel."""


def shading_source() -> str:
    """Complete native source."""
    whole = {
        **FLAGS,
        **{name: k for k, name in enumerate(SETTINGS)},
        "PACKETS_PER_TASK": PACKETS_PER_TASK,
        "RAY_ROWS": 7,
        "CAMERA_WORDS": CAMERA_WORDS,
        "HOLES_MAX": HOLES_MAX,
        "MATERIAL_COLUMNS": appearance.MATERIAL_COLUMNS,
        "TEXTURE_COLUMNS": appearance.TEXTURE_COLUMNS,
        "VERTEX_WORDS": VERTEX_WORDS,
        "FACE_WORDS": FACE_WORDS,
        "LIGHT_COLUMNS": lights.LIGHT_COLUMNS,
        "LIGHT_SUN": lights.LIGHT_SUN,
        "LIGHT_POINT": lights.LIGHT_POINT,
        "LIGHT_SPOT": lights.LIGHT_SPOT,
        "SKY_STEPS": lights.SKY_STEPS,
        "SKY_COLUMNS": lights.SKY_COLUMNS,
        "VOLUME_COLUMNS": lightmaps.VOLUME_COLUMNS,
        "PROBE_WORDS": lightmaps.PROBE_WORDS,
    }
    reals = {
        "HAZE": lights.HAZE,
        "UNWRAPPED_SIZE": appearance.UNWRAPPED_SIZE,
        "SUN_FAR": 1e4,
        "SUN_COSINE": SUN_ANGLE_COSINE,
        "SUN_RADIANCE": SUN_RADIANCE,
    }
    # Not enumerators: lane vectors do not mix with their type.
    names = "\n".join(f"#define {name} {number}" for name, number in whole.items())
    numbers = "\n".join(f"#define {name} {number!r}f" for name, number in reals.items())
    folder = files("airworthy.rendering").joinpath("native")
    texts = [
        folder.joinpath(name).read_text() for name in ("shading_lanes.h", "textures.h", "surface.h", "light.h", "shading.cpp")
    ]
    return "\n".join([native_source("rays.h"), names, numbers, *texts])


ARRAYS = (
    ("rays", "f"),
    ("pixels", "i"),
    ("spreads", "f"),
    ("cameras", "f"),
    ("task_order", "i"),
    ("env_scene", "i"),
    ("env_lights", "i"),
    ("settings", "f"),
    ("materials", "f"),
    ("material_maps", "i"),
    ("shape_looks", "i"),
    ("looks_vertices", "u"),
    ("looks_faces", "u"),
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
)
"""Arrays after those of the geometry batch, in the order of the kernel's arguments, and the type of their words."""


_ARGUMENTS = """
    rays: float32[]  # (packet, 7, 16), of the ray table
    pixels: int32[]  # (packet, 16)
    spreads: float32[]  # (packet, 16): angle that a pixel covers [rad]
    cameras: float32[]  # (camera or camera * width, 12): position, its rest, attitude, env, ignored
    task_order: int32[]  # (task,)
    env_scene: int32[]  # (env,)
    env_lights: int32[]  # (env, 2): first, count
    settings: float32[]  # (SETTINGS,)
    materials: float32[]  # airworthy.scenes.appearance from here on
    material_maps: int32[]
    shape_looks: int32[]
    looks_vertices: uint32[]
    looks_faces: uint32[]
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
