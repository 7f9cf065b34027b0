"""Builds the kernel that gives rays their colours: 16 rays per packet on a CPU, one per thread on a GPU, from one text."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.geometry import native_source
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


@cache
def shading_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()

    @wp.func_native(prefix + shading_source())
    def native_shade(
        shape_rows: wp.array[wp.float32],
        mesh_nodes: wp.array[wp.float32],
        mesh_triangles: wp.array[wp.float32],
        mesh_vertices: wp.array[wp.float32],
        mesh_faces: wp.array[wp.int32],
        layout_rows: wp.array[wp.int32],
        layout_nodes: wp.array[wp.float32],
        layout_instances: wp.array[wp.float32],
        env_layout: wp.array[wp.int32],
        mover_nodes: wp.array[wp.float32],
        mover_instances: wp.array[wp.float32],
        batch_numbers: wp.array[wp.int32],
        rays: wp.array[wp.float32],
        pixels: wp.array[wp.int32],
        spreads: wp.array[wp.float32],
        cameras: wp.array[wp.float32],
        task_order: wp.array[wp.int32],
        env_scene: wp.array[wp.int32],
        env_lights: wp.array[wp.int32],
        settings: wp.array[wp.float32],
        materials: wp.array[wp.float32],
        material_maps: wp.array[wp.int32],
        shape_looks: wp.array[wp.int32],
        looks_vertices: wp.array[wp.uint32],
        looks_faces: wp.array[wp.uint32],
        textures: wp.array[wp.int32],
        texels: wp.array[wp.uint32],
        lights: wp.array[wp.float32],
        skies: wp.array[wp.float32],
        volumes: wp.array[wp.float32],
        probes: wp.array[wp.uint32],
        map_slots: wp.array[wp.int32],
        light_maps: wp.array[wp.int32],
        map_nodes: wp.array[wp.uint32],
        hit_range: wp.array[wp.float32],
        hit_instance: wp.array[wp.int32],
        hit_face: wp.array[wp.int32],
        hit_barycentric: wp.array[wp.float32],
        out_rgb: wp.array[wp.float32],
        out_albedo: wp.array[wp.float32],
        out_normal: wp.array[wp.float32],
        out_range: wp.array[wp.float32],
        out_instance: wp.array[wp.int32],
        out_face: wp.array[wp.int32],
        out_barycentric: wp.array[wp.float32],
        out_back: wp.array[wp.float32],
        packets: int,
        pixel_count: int,
        width: int,
        flags: int,
        task: int,
    ): ...

    def airworthy_shade(
        shape_rows: wp.array[wp.float32],
        mesh_nodes: wp.array[wp.float32],
        mesh_triangles: wp.array[wp.float32],
        mesh_vertices: wp.array[wp.float32],
        mesh_faces: wp.array[wp.int32],
        layout_rows: wp.array[wp.int32],
        layout_nodes: wp.array[wp.float32],
        layout_instances: wp.array[wp.float32],
        env_layout: wp.array[wp.int32],
        mover_nodes: wp.array[wp.float32],
        mover_instances: wp.array[wp.float32],
        batch_numbers: wp.array[wp.int32],
        rays: wp.array[wp.float32],  # (packet, 7, 16), of the ray table
        pixels: wp.array[wp.int32],  # (packet, 16)
        spreads: wp.array[wp.float32],  # (packet, 16): angle that a pixel covers [rad]
        cameras: wp.array[wp.float32],  # (camera or camera * width, 12): position, its rest, attitude, env, ignored
        task_order: wp.array[wp.int32],  # (task,)
        env_scene: wp.array[wp.int32],  # (env,)
        env_lights: wp.array[wp.int32],  # (env, 2): first, count
        settings: wp.array[wp.float32],  # (SETTINGS,)
        materials: wp.array[wp.float32],  # airworthy.scenes.appearance from here on
        material_maps: wp.array[wp.int32],
        shape_looks: wp.array[wp.int32],
        looks_vertices: wp.array[wp.uint32],
        looks_faces: wp.array[wp.uint32],
        textures: wp.array[wp.int32],
        texels: wp.array[wp.uint32],
        lights: wp.array[wp.float32],
        skies: wp.array[wp.float32],
        volumes: wp.array[wp.float32],  # airworthy.rendering.baking from here on
        probes: wp.array[wp.uint32],
        map_slots: wp.array[wp.int32],
        light_maps: wp.array[wp.int32],
        map_nodes: wp.array[wp.uint32],
        hit_range: wp.array[wp.float32],  # (camera, pixel): known hits, for USE_HITS
        hit_instance: wp.array[wp.int32],
        hit_face: wp.array[wp.int32],
        hit_barycentric: wp.array[wp.float32],
        out_rgb: wp.array[wp.float32],  # (camera, pixel, 3) linear
        out_albedo: wp.array[wp.float32],  # (camera, pixel, 3)
        out_normal: wp.array[wp.float32],  # (camera, pixel, 3) world; zeros on a miss
        out_range: wp.array[wp.float32],  # (camera, pixel); -1 on a miss
        out_instance: wp.array[wp.int32],
        out_face: wp.array[wp.int32],
        out_barycentric: wp.array[wp.float32],
        out_back: wp.array[wp.float32],  # (camera, pixel): 1 where a back face is seen
        packets: int,
        pixel_count: int,
        width: int,
        flags: int,
        first: int,
    ):
        native_shade(
            shape_rows,
            mesh_nodes,
            mesh_triangles,
            mesh_vertices,
            mesh_faces,
            layout_rows,
            layout_nodes,
            layout_instances,
            env_layout,
            mover_nodes,
            mover_instances,
            batch_numbers,
            rays,
            pixels,
            spreads,
            cameras,
            task_order,
            env_scene,
            env_lights,
            settings,
            materials,
            material_maps,
            shape_looks,
            looks_vertices,
            looks_faces,
            textures,
            texels,
            lights,
            skies,
            volumes,
            probes,
            map_slots,
            light_maps,
            map_nodes,
            hit_range,
            hit_instance,
            hit_face,
            hit_barycentric,
            out_rgb,
            out_albedo,
            out_normal,
            out_range,
            out_instance,
            out_face,
            out_barycentric,
            out_back,
            packets,
            pixel_count,
            width,
            flags,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_shade, module="unique", module_options=MODULE_OPTIONS)
