"""Still images by path tracing: all light there is, by as many paths per pixel as are asked for.

One text is the kernel on a CPU (16 pixels in lanes) and on a GPU (a pixel per thread). A path's random numbers depend on the
seed, its pixel, its sample and the surface along it, so an image has the same bytes whatever else is rendered, on how many
threads, or in how many parts.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress
from airworthy.core.native_kernel import CPU_LANES, native_kernel
from airworthy.core.random import Stream
from airworthy.core.schema import SEED, check_fields
from airworthy.geometry import RayTable
from airworthy.geometry.native_text import BATCH_SIGNATURE
from airworthy.geometry.query_arguments import Repeated, striped
from airworthy.optics.lenses import ray_steps
from airworthy.rendering.emitters import emitters_of
from airworthy.rendering.scattering import albedo_table
from airworthy.rendering.shading import (
    SUN_ANGLE,
    Cameras,
    cloud_times,
    device_arrays,
    env_lights,
    seen_by_colors,
    shading_source,
)
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch

__all__ = ["DEFAULT_STILL", "SUN_ANGLE", "StillOptions", "path_kernel", "path_source", "still_images"]

SAMPLES_MAX, BOUNCES_MAX = 1 << 20, 1000
LIGHTS_MAX = 250
"""Of a scene: each has random numbers of its own at every surface of a path."""


@dataclass(frozen=True)
class StillOptions:
    """How a still image is made.

    Raises:
        AirworthyError: If a number is out of range.
    """

    samples: int = 256
    """Paths per pixel: noise falls with the root of their number."""
    seed: Annotated[int, SEED] = 0
    """Another seed, other noise."""
    bounces: int = 32
    """Surfaces at most along a path; from the fourth on faint paths end by chance, with the right mean."""
    sun_angle: float = SUN_ANGLE
    """Half angle of the sun's disc [rad]; 0: hard shadows, and no disc."""
    sun_disc: bool = True
    """Whether the eye sees the sun itself; mirrors always do."""
    specular: bool = True
    """Gloss; False: every surface is Lambert's."""
    coat: bool = True
    """Whether dielectrics reflect 4 % at normal incidence, as in glTF; False: they are Lambert's, only metals have gloss."""
    texture_scale: float = 1.0
    """1, 0.5, 0.25 or 0.125: what of the textures is kept in memory."""
    max_range: float = 1000.0
    """Farther things are sky [m]."""
    quiet: bool = True
    """Show no progress."""

    def __post_init__(self) -> None:
        check_fields(self, "StillOptions.")
        if not 1 <= self.samples <= SAMPLES_MAX:
            raise AirworthyError(
                f"A still image with {self.samples} samples per pixel was asked for; expected 1 to {SAMPLES_MAX}."
            )
        if not 0 <= self.bounces <= BOUNCES_MAX:
            raise AirworthyError(f"Light cannot be followed over {self.bounces} bounces; expected 0 to {BOUNCES_MAX}.")
        if not 0.0 <= self.sun_angle <= 0.5:
            raise AirworthyError(
                f"A sun of half angle {self.sun_angle} rad was asked for; expected 0 to 0.5 (the real one: 0.00465)."
            )
        if not self.max_range > 0.0:
            raise AirworthyError(f"Rays reach {self.max_range} m; expected metres, more than 0.")


DEFAULT_STILL = StillOptions()

# ---- The kernel -------------------------------------------------------------------------------------------------------------

_SWITCHES = (
    "PATH_COLUMNS",
    "PATH_OWN_ORIGINS",
    "PATH_HOLES",
    "PATH_SPECULAR",
    "PATH_COAT",
    "PATH_SUN_DISC",
    "PATH_GLASS",
    "PATH_WATER",
    "PATH_LEAVES",
)
FLAGS = {name: 1 << k for k, name in enumerate(_SWITCHES)}
SETTINGS = ("SET_FAR", "SET_SUN_TANGENT", "SET_SUN_SINE", "SET_SUN_CHORD", "SET_TIMES")
"""Numbers of a launch: longest ray [m]; of the sun's half angle tangent, sine, the square of the chord;
then the times of environments, where there are clouds."""
HOLES_MAX = 64
"""Cut-out surfaces that a ray looks through before it stops at the next."""
DRAWS_PER_DEPTH = 256
"""Blocks of four random numbers that a surface along a path may take: scattering, glow, then one per lamp; the last of the
first surface is the place in the pixel."""
ROULETTE_DEPTH = 3
GLASS_MAX = 16
"""Sheets of glass that a shadow ray goes through."""
MIRROR_DENSITY = 1e9
"""Of a direction that a sheet mirrors, against those in which lamps are found [1/sr]: it has no other."""
BENT_DENSITY = -2.0
"""Of one that was scattered and then bent, by which no lamp or sun is looked for."""
SAMPLES_PER_LAUNCH = 16
"""Summed in float32 by one launch; the sums of launches are summed in float64. Fixed: an image must not depend on how it was
cut."""

ARRAYS = (
    ("rays", "f"),
    ("steps", "f"),
    ("pixels", "i"),
    ("cameras", "f"),
    ("task_order", "i"),
    ("env_scene", "i"),
    ("env_lights", "i"),
    ("env_emitters", "i"),
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
    ("emitter_sums", "f"),
    ("emitter_densities", "f"),
    ("emitter_places", "i"),
    ("emitter_slots", "i"),
    ("out_sum", "f"),
    ("out_broken", "i"),
)
"""Arrays after those of the geometry batch, in the order of the kernel's arguments, and the type of their elements."""
_TYPES = {"f": "float32", "i": "int32", "u": "uint32"}
_SCALARS = """
    packets: int
    pixel_count: int
    width: int
    flags: int
    bounces: int
    first_sample: int
    last_sample: int
    seed_low: uint32
    seed_high: uint32
"""
_PREFIX = ""
"""Put before the kernel's text; `#define SCALAR_PATH` lets a CPU run the form of a GPU (tests do)."""


def path_source() -> str:
    """Return the complete native source: that of shading but for its body, and what paths need."""
    whole = {
        **FLAGS,
        **{name: k for k, name in enumerate(SETTINGS)},
        "DRAWS_PER_DEPTH": DRAWS_PER_DEPTH,
        "ROULETTE_DEPTH": ROULETTE_DEPTH,
        "GLASS_MAX": GLASS_MAX,
        "MIRROR_DENSITY": f"{MIRROR_DENSITY!r}f",
        "BENT_DENSITY": f"{BENT_DENSITY!r}f",
        "PATH_STREAM": f"{int(Stream.PATHS)}u",
    }
    names = "\n".join(f"#define {name} {number}" for name, number in whole.items())
    folder = files("airworthy.rendering").joinpath("native")
    texts = [folder.joinpath(name).read_text() for name in ("scattering.h", "path.cpp")]
    return "\n".join([shading_source(body=False, holes=HOLES_MAX), names, *texts])


@cache
def path_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    arguments = "".join(f"    {name}: {_TYPES[kind]}[]\n" for name, kind in ARRAYS)
    return native_kernel("path", prefix + path_source(), BATCH_SIGNATURE + arguments + _SCALARS)


# ---- A launch ---------------------------------------------------------------------------------------------------------------


def still_images(batch: SceneBatch, table: RayTable, cameras: Cameras, options: StillOptions = DEFAULT_STILL) -> ArrayF32:
    """Return linear radiance (c, H, W, 3) of c cameras, the mean over each pixel's area.

    Args:
        batch: The scenes; splats in them have no surface that light could meet.
        table: Rays in the cameras' frame; pixels reach half-way to their neighbours.
        cameras: Poses.
        options: How.

    Raises:
        AirworthyError: A scene holds splats, or more lights than can be sampled.
    """
    for scene in batch.scenes:
        if scene.splats:
            raise AirworthyError(
                f"The scene {scene.name!r} shows splats, which have no surface that light could be followed to;"
                " still images are of meshes and solids, so render it in another quality."
            )
        if len(scene.lights) > LIGHTS_MAX:
            raise AirworthyError(
                f"The scene {scene.name!r} has {len(scene.lights)} lights; still images take at most {LIGHTS_MAX}:"
                " make some of them emissive surfaces."
            )
    shape = (len(cameras), table.height, table.width, 3)
    total, broken = np.zeros(shape, np.float64), 0
    if not len(cameras):
        return total.astype(np.float32)
    run = _Launch(seen_by_colors(batch), table, cameras, options)
    firsts = range(0, options.samples, SAMPLES_PER_LAUNCH)
    for first in progress(firsts, "Tracing paths", quiet=options.quiet):
        found, lost = run(first, min(first + SAMPLES_PER_LAUNCH, options.samples))
        total += found
        broken += lost
    if broken:
        paths = options.samples * total[..., 0].size
        warnings.warn(f"{broken:,} of {paths:,} paths found no finite light and count as black.", RuntimeWarning, stacklevel=2)
    return (total / options.samples).astype(np.float32)


class _Launch:
    """The kernel, and everything that does not change from one span of samples to the next."""

    def __init__(self, batch: SceneBatch, table: RayTable, cameras: Cameras, options: StillOptions) -> None:
        self.device, self.shape = batch.geometry.device, (len(cameras), table.height, table.width)
        appearance = appearance_of(batch, options.texture_scale)
        lights, spans = env_lights(batch, appearance)
        emitters = emitters_of(batch)
        rays, pixels = table.arrays(self.device)
        in_lanes = self.device == "cpu" and not _PREFIX
        tasks = len(cameras) * table.packet_count * (1 if in_lanes else CPU_LANES)
        host: dict[str, Any] = {
            "rays": rays,
            "steps": _steps(table),
            "pixels": pixels,
            "cameras": cameras.rows.view(np.float32),
            "task_order": striped(tasks, batch.threads) if in_lanes else None,
            "env_scene": batch.scene_of_env,
            "env_lights": spans,
            "lights": lights,
            "env_emitters": emitters.spans,
            "settings": np.append(_settings(options), cloud_times(batch, appearance)),
            "albedos": albedo_table(),
            "emitter_sums": emitters.sums,
            "emitter_densities": emitters.densities,
            "emitter_places": emitters.places,
            "emitter_slots": emitters.slots,
            "out_sum": np.empty((*self.shape, 3), np.float32),
            "out_broken": np.empty(self.shape, np.int32),
        }
        arrays = [*batch.geometry.arguments(), *device_arrays(ARRAYS, host, appearance, self.device)]
        self.outputs = arrays[-2:]
        flags = {
            "PATH_COLUMNS": cameras.columns,
            "PATH_OWN_ORIGINS": table.origins is not None,
            "PATH_HOLES": appearance.has_holes,
            "PATH_SPECULAR": options.specular,
            "PATH_COAT": options.coat,
            "PATH_SUN_DISC": options.sun_disc,
            "PATH_GLASS": appearance.has_glass,
            "PATH_WATER": appearance.has_water,
            "PATH_LEAVES": appearance.has_leaves,
        }
        on = sum(FLAGS[name] for name, wanted in flags.items() if wanted)
        seed = options.seed & 0xFFFFFFFFFFFFFFFF
        scalars = [table.packet_count, table.height * table.width, table.width, on, options.bounces, 0, 0]
        self.span = len(arrays) + len(scalars) - 2
        self.arrays = arrays
        self.run = Repeated(
            path_kernel(_PREFIX), tasks, [*arrays, *scalars, seed & 0xFFFFFFFF, seed >> 32], self.device, batch.threads
        )

    def __call__(self, first: int, last: int) -> tuple[Array, int]:
        """Return sums of the radiance of some samples (c, H, W, 3), and how many of them were not finite."""
        self.run.exchange(self.span, first)
        self.run.exchange(self.span + 1, last)
        self.run.launch()
        found, broken = (array.numpy() for array in self.outputs)
        return found.reshape(*self.shape, 3).astype(np.float64), int(broken.sum())


def _settings(options: StillOptions) -> ArrayF32:
    angle = options.sun_angle
    return np.array([options.max_range, np.tan(angle), np.sin(angle), (2.0 * np.sin(0.5 * angle)) ** 2], np.float32)


def _steps(table: RayTable) -> ArrayF32:
    """From one pixel to the next, across and down, in the table's packets (packet, 6, 16)."""
    both = np.concatenate([part.reshape(-1, 3) for part in ray_steps(table)], axis=-1)
    chosen: NDArray[np.int32] = np.maximum(table.pixels, 0)
    return np.ascontiguousarray(both[chosen].transpose(0, 2, 1), np.float32)
