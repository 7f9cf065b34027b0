"""The one call: any set of geometric and appearance channels of any number of cameras.

A channel that is not named is not computed. Geometric channels come from `geometry.cast`, colours from `rendering.shading`;
where both are asked for, rays are traced once. In scenes with cut-out materials the geometric channels too look through the
holes.
In scenes with splats colours are those of `rendering.images`; geometric channels are of the geometry all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import native_kernel, quiet_warp
from airworthy.geometry import CHANNELS, Mesh, RayTable, cast, interpolate
from airworthy.geometry.query_arguments import Repeated
from airworthy.optics.projections import Pinhole, Projection, pixel_centres
from airworthy.optics.tone import (
    BRIGHTEST,
    PATH_TO_WHITE,
    PURE,
    SHOULDER,
    TABLE_SIZE,
    decoding_table,
    encoding_table,
    luminance,
    paleness_table,
)
from airworthy.rendering.shading import (
    DEFAULT_OPTIONS,
    HIT_CHANNELS,
    Cameras,
    ShadingOptions,
    renumbered,
    seen_by_colors,
    shade_channels,
)
from airworthy.rendering.splat_images import SplatView, splats_of
from airworthy.rendering.still import StillOptions, still_images
from airworthy.rendering.stray_light import with_stray_light
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch

__all__ = [
    "BEHIND",
    "CHANNEL_NAMES",
    "DynamicPoses",
    "FlowMotion",
    "blend_kernel",
    "blended",
    "optical_flow",
    "overlaid",
    "render",
]


# ---------------------------------------------------------------------------------------------------------------------------
# The kernel that lays splats over linear radiance: one task, one block of pixels; on a CPU, where images are put together

PIXELS_PER_TASK = 2048

_BODY = """
// tone.filmic, tone.display_from_linear, tone.linear_from_display, one pixel at a time; tests hold them against each other.
const float room = 1.0f - SHOULDER;
const long long begin = (long long)task * PIXELS, end = begin + PIXELS < pixels ? begin + PIXELS : pixels;
for (long long p = begin; p < end; ++p) {
  const float cover = alpha.data[p];
  float* out = radiance.data + 3 * p;
  if (!(cover > 0.0f)) continue;
  float shown[3] = {color.data[3 * p], color.data[3 * p + 1], color.data[3 * p + 2]};
  if (cover < OPAQUE) {
    float under[3], peak = 0.0f;
    for (int k = 0; k < 3; ++k) {
      under[k] = out[k] > 0.0f ? out[k] : 0.0f;
      peak = under[k] > peak ? under[k] : peak;
    }
    if (peak > SHOULDER) {
      const float held = 1.0f - room * expf(-(peak - SHOULDER) / room), share = held / peak;
      const float white = 1.0f - 1.0f / (PATH_TO_WHITE * (peak - held) + 1.0f);
      for (int k = 0; k < 3; ++k) under[k] = under[k] * share + (held - under[k] * share) * white;
    }
    for (int k = 0; k < 3; ++k) {
      const float root = under[k] < 1.0f ? sqrtf(under[k]) : 1.0f;
      shown[k] += (1.0f - cover) * encoded.data[(int)(root * (SIZE - 1.0f) + 0.5f)];
    }
  }
  float most = 0.0f, least = 1.0f;
  for (int k = 0; k < 3; ++k) {
    float index = shown[k] * (SIZE - 1.0f) + 0.5f;
    index = index > 0.0f ? index : 0.0f;  // what is not a number, too
    out[k] = decoded.data[(int)(index < SIZE - 1.0f ? index : SIZE - 1.0f)];
    most = out[k] > most ? out[k] : most;
    least = out[k] < least ? out[k] : least;
  }
  if (most <= SHOULDER) continue;
  float held = most < BRIGHTEST ? most : BRIGHTEST;
  float peak = SHOULDER - room * logf((1.0f - held) / room);
  // tone._paleness: evenly spaced peaks, and what each leaves of the smallest channel.
  const float last = SHOULDER - room * logf((1.0f - BRIGHTEST) / room), allowed = least + PURE;
  int low = 0, high = pale_count - 1;
  if (allowed < pale.data[high]) {
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (pale.data[middle] <= allowed) low = middle; else high = middle;
    }
    const float span = pale.data[high] - pale.data[low];
    const float place = low + (span > 0.0f ? (allowed - pale.data[low]) / span : 0.0f);
    const float purest = SHOULDER + (last - SHOULDER) * place / (pale_count - 1);
    peak = purest < peak ? purest : peak;
  }
  held = peak > SHOULDER ? 1.0f - room * expf(-(peak - SHOULDER) / room) : peak;
  const float white = 1.0f - 1.0f / (PATH_TO_WHITE * (peak - held) + 1.0f);
  for (int k = 0; k < 3; ++k) {
    const float value = ((out[k] < held ? out[k] : held) - held * white) / (1.0f - white) * (peak / held);
    out[k] = value > 0.0f ? value : 0.0f;
  }
}
"""


def _source(opaque: float) -> str:
    numbers = {
        "SHOULDER": f"{SHOULDER!r}f",
        "BRIGHTEST": f"{BRIGHTEST!r}f",
        "PURE": f"{PURE!r}f",
        "PATH_TO_WHITE": f"{PATH_TO_WHITE!r}f",
        "OPAQUE": f"{opaque!r}f",
        "SIZE": f"{float(TABLE_SIZE)!r}f",
        "PIXELS": str(PIXELS_PER_TASK),
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*lines, _BODY, *(f"#undef {name}" for name in numbers), ""])


_ARGUMENTS = """
    color: float32[]  # (pixels * 3,) premultiplied, encoded
    alpha: float32[]  # (pixels,)
    encoded: float32[]  # (TABLE_SIZE,) by the square root of linear values
    decoded: float32[]  # (TABLE_SIZE,)
    pale: float32[]  # (pale_count,)
    # changed in place
    radiance: float32[]  # (pixels * 3,) linear, of what is behind
    pixels: int
    pale_count: int
"""


@cache
def blend_kernel(opaque: float) -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk. Splats that cover more than `opaque` hide all
    behind.
    """
    return native_kernel("splats_blend", _source(opaque), _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Splats over the shaded image of a scene --------------------------------------------------------------------------------
#
# Splats hold what a picture shows, since they are trained on pictures: colours after the filmic curve, sRGB-encoded. So a
# pixel is blended in that space, over what a picture would show of the surface or the sky behind, and the result is taken
# back to linear radiance by the inverse of the same curves: `tone.to_8bit` of the image then shows the splats' own colours.
# Pixels without splats keep their radiance, bit for bit.

Arrays = dict[str, ArrayAny]
BEHIND = 0.2
"""Splats up to this far behind a covered surface are seen [m]: they lie on it as well as its mesh and theirs agree."""
_OPAQUE = 1.0 - 2e-4
"""Splats that cover more hide what is behind: it would change 8 bits by a twentieth of a count."""
_FAINT = 1e-3
"""Splats that cover less have no depth."""


def overlaid(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    projection: Projection | None,
    front: Arrays,
    behind: ArrayF32 | None,
    names: Sequence[str],
) -> Arrays:
    """Return images of c cameras with the splats of their scenes.

    Args:
        batch: The scenes.
        table: Rays in the camera's frame.
        cameras: Poses.
        projection: Of the rays, if known.
        front: `depth` and `instance` of what colours see, (c, H, W).
        behind: Linear radiance (c, H, W, 3) of the scenes without their splats; None: no `rgb` is wanted.
        names: Further channels: `splat_depth`, `splat_alpha`.

    Returns:
        `rgb` (c, H, W, 3), linear, where `behind` is given; and those asked for.
    """
    shape = front["depth"].shape
    out: Arrays = {} if behind is None else {"rgb": behind}
    blank = {"splat_depth": np.inf, "splat_alpha": 0.0}
    out |= {name: np.full(shape, blank[name], np.float32) for name in names}
    splats = splats_of(batch.origin)
    some = splats.visible_in(batch, cameras.env)
    if not len(some):
        return out
    rows = cameras.rows[some] if cameras.columns else cameras.rows[some, 0]
    where, turned = rows["position"].astype(np.float64) + rows["rest"], rows["attitude"].astype(np.float64)
    limit = _limits(batch, cameras.env[some], front["depth"][some], front["instance"][some])
    view = SplatView(table, where, turned, cameras.env[some], limit, projection)
    channels = ["alpha", *(["rgb"] if behind is not None else []), *(["depth"] if "splat_depth" in names else [])]
    images = splats.render(batch, view, channels)
    alpha = images["alpha"]
    if behind is not None:
        out["rgb"][some] = blended(images["rgb"], alpha, behind[some])
    if "splat_alpha" in names:
        out["splat_alpha"][some] = alpha
    if "splat_depth" in names:
        out["splat_depth"][some] = np.where(alpha > _FAINT, images["depth"], np.float32(np.inf))
    return out


def blended(color: ArrayF32, alpha: ArrayF32, behind: ArrayF32) -> ArrayF32:
    """Return the linear radiance of splats (premultiplied, encoded; over black) over linear radiance, (c, H, W, 3).

    Args:
        color: Of splats, premultiplied and encoded, (c, H, W, 3).
        alpha: Their cover, (c, H, W).
        behind: Linear radiance, (c, H, W, 3).
    """
    result = np.array(behind, np.float32, order="C")
    wp = quiet_warp()
    tables = (encoding_table(), decoding_table(), _paleness())
    arrays = [
        wp.array(np.ascontiguousarray(array, np.float32).reshape(-1), dtype=wp.float32, device="cpu", copy=False)
        for array in (color, alpha, *tables, result)
    ]
    pixels = alpha.size
    blocks = -(-pixels // PIXELS_PER_TASK)
    if blocks not in _launches:
        # One recorded launch per image size; a run that changes its sizes for ever must not keep them all.
        if len(_launches) >= _LAUNCHES_KEPT:
            _launches.clear()
        _launches[blocks] = Repeated(blend_kernel(_OPAQUE), blocks, [*arrays, pixels, len(tables[2])], "cpu")
    launch = _launches[blocks]
    for index, argument in enumerate([*arrays, pixels]):
        launch.exchange(index, argument)
    launch.launch()
    return result


@cache
def _paleness() -> ArrayF32:
    return paleness_table()[1].astype(np.float32)


_LAUNCHES_KEPT = 16
_launches: dict[int, Repeated] = {}


def _limits(batch: SceneBatch, env: NDArray[np.int32], depth: ArrayAny, instance: ArrayAny) -> ArrayF32:
    """Depth beyond which splats are hidden, (c, H, W): that of what is met, and a little more where splats cover it."""
    covered = _covered(batch)[batch.scene_of_env[env]]
    if not covered.any():
        return np.asarray(depth, np.float32)
    number = np.maximum(instance, 0).reshape(len(env), -1)
    on = np.take_along_axis(covered, number, axis=1).reshape(depth.shape) & (instance >= 0)
    return np.where(on, depth + BEHIND, depth).astype(np.float32)


_CACHE: WeakKeyDictionary[SceneBatch, tuple[tuple[int, int], ArrayBool]] = WeakKeyDictionary()


def _covered(batch: SceneBatch) -> ArrayBool:
    """Tell whether each instance number of each unique scene is of something covered, (scene, number)."""
    state = (len(batch.scenes), id(batch.geometry))
    kept = _CACHE.get(batch)
    if kept is None or kept[0] != state:
        first, count = batch.geometry.dynamic_start, batch.geometry.dynamic_count
        table = np.zeros((len(batch.scenes), max(first + count, 1)), bool)
        for index, scene in enumerate(batch.scenes):
            table[index, : len(scene.instances)] = [item.covered for item in scene.instances]
            parts = [part.covered for actor in scene.actors for part in actor.parts]
            table[index, first + batch.extra_count :][: len(parts)] = parts
        kept = _CACHE[batch] = (state, table)
    return kept[1]


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Optical flow, exact: where what a pixel sees now will be in the camera's next image ------------------------------------
#
# Flow is in pixels, (u, v) as in `projections`: next place minus place now. A point on something that moves is carried along
# with it. What a ray does not meet (the sky) is at no distance: its flow is that of the camera's rotation alone, or NaN where
# asked.

DynamicPoses = tuple[ArrayLike, ArrayLike]
"""Positions (env, dynamic_count, 3) and attitudes (env, dynamic_count, 4)."""


def optical_flow(
    projection: Projection,
    point_world: ArrayLike,
    next_position: ArrayLike,
    next_attitude: ArrayLike,
    attitude: ArrayLike,
    *,
    instance: ArrayLike | None = None,
    dynamic_start: int = 0,
    env: ArrayLike | None = None,
    dynamic_instances: DynamicPoses | None = None,
    next_dynamic_instances: DynamicPoses | None = None,
    sky: Literal["rotation", "nan"] = "rotation",
) -> ArrayF32:
    """Return the flow of c cameras.

    Args:
        projection: Of the cameras.
        point_world: What pixels see now, world [m], (c, H, W, 3); NaN for the sky.
        next_position: Of the cameras in the next image, world [m], (c, 3).
        next_attitude: Camera to world in the next image, (c, 4).
        attitude: Camera to world now, (c, 4).
        instance: Instance numbers (c, H, W), where things move.
        dynamic_start: Number of the first dynamic instance (`GeometryBatch.dynamic_start`).
        env: Environment of each camera, (c,); None: camera k is in environment k.
        dynamic_instances: Poses of the dynamic instances now.
        next_dynamic_instances: Poses of the dynamic instances in the next image.
        sky: Flow of pixels that meet nothing.

    Returns:
        (c, H, W, 2); NaN where the next place is behind the camera, or cannot be projected.
    """
    points = np.asarray(point_world, np.float64)
    if points.ndim != 4 or points.shape[-1] != 3 or points.shape[1:3] != (projection.height, projection.width):
        raise AirworthyError(
            f"Flow got points of shape {points.shape}; expected one per pixel, (c, {projection.height}, {projection.width}, 3)."
        )
    if dynamic_instances is not None and next_dynamic_instances is not None and instance is not None:
        count = len(points)
        envs = np.arange(count) if env is None else np.asarray(env, np.int64)
        points = carried(points, np.asarray(instance) - dynamic_start, envs, dynamic_instances, next_dynamic_instances)
    position, turned = np.asarray(next_position, np.float64), np.asarray(next_attitude, np.float64)[:, None, None]
    local = frames.rotate_inverse(turned, points - position[:, None, None])
    centres = pixel_centres(projection.height, projection.width)
    missed = np.isnan(points[..., 0])
    if sky == "rotation" and missed.any():
        rays = frames.rotate(np.asarray(attitude, np.float64)[:, None, None], projection.unproject(centres)[None])
        local = np.where(missed[..., None], frames.rotate_inverse(turned, rays), local)
    pixel, _ = projection.project(local)
    flow = pixel - centres
    if isinstance(projection, Pinhole):
        flow = np.where(local[..., 2:3] > 0.0, flow, np.nan)
    return np.asarray(np.where(np.isfinite(flow), flow, np.nan), np.float32)


def carried(points: Array, dynamic_instance: ArrayInt, env: ArrayInt, before: DynamicPoses, after: DynamicPoses) -> Array:
    """Return world points (c, H, W, 3), those on dynamic instances (number >= 0, (c, H, W)) where these will have taken them.

    Args:
        points: (c, H, W, 3) [m], world.
        dynamic_instance: Number of the dynamic instance that each pixel shows, (c, H, W); -1: none.
        env: Environment of each camera, (c,).
        before: Poses of the dynamic instances then.
        after: And now.
    """
    out = points.copy()
    camera, row, column = np.nonzero(dynamic_instance >= 0)
    if not len(camera):
        return out
    which = (env[camera], dynamic_instance[camera, row, column])
    (p0, q0), (p1, q1) = ((np.asarray(p, np.float64)[which], np.asarray(q, np.float64)[which]) for p, q in (before, after))
    local = frames.rotate_inverse(q0, points[camera, row, column] - p0)
    out[camera, row, column] = frames.rotate(q1, local) + p1
    return out


# -----------------------------------------------------------------------------------------------------------------------------


COLOR_CHANNELS = ("rgb", "grey", "albedo", "normal")
SPLAT_CHANNELS = ("splat_depth", "splat_alpha")
CHANNEL_NAMES = (*CHANNELS, *COLOR_CHANNELS, "flow", *SPLAT_CHANNELS)
"""Channels of `render`; names of the meshes' own vertex channels may be given too."""


@dataclass(frozen=True, eq=False)
class FlowMotion:
    """What flow needs: the projection, and where everything will be in the next image."""

    projection: Projection
    position: ArrayLike
    """Of the cameras, world [m], (c, 3)."""
    attitude: ArrayLike
    """Camera to world, (c, 4)."""
    dynamic_instances: DynamicPoses | None = None
    """Poses of the dynamic instances now: positions (env, dynamic_count, 3), attitudes (env, dynamic_count, 4)."""
    next_dynamic_instances: DynamicPoses | None = None
    """Poses of the dynamic instances in the next image."""
    sky: Literal["rotation", "nan"] = "rotation"
    """Flow of pixels that meet nothing: of a point at no distance, or NaN."""


def render(
    batch: SceneBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    env: ArrayLike | None = None,
    channels: Sequence[str] = ("rgb", "depth"),
    options: ShadingOptions = DEFAULT_OPTIONS,
    *,
    ignore: ArrayLike | None = None,
    column_position: ArrayLike | None = None,
    column_attitude: ArrayLike | None = None,
    motion: FlowMotion | None = None,
    projection: Projection | None = None,
    still: StillOptions | None = None,
) -> Arrays:
    """Render c cameras.

    Channels, each (c, H, W) or (c, H, W, k), are those of `geometry.cast`, and

    * `rgb` (3): linear radiance; `grey`: its luminance; `albedo` (3): reflectance, 0 on a miss;
    * `normal` (3): shading normal with vertex normals and normal maps, world, 0 on a miss;
    * `flow` (2): pixels to the place in the next image; needs `motion`;
    * `splat_depth`: mean depth of the splats that are seen [m], +inf where there are none; `splat_alpha`: how much they cover;
    * the name of a vertex channel of the scenes' meshes: interpolated, NaN elsewhere.

    Args:
        batch: The scenes.
        table: Rays in the camera's frame.
        position: World [m], (c, 3).
        attitude: Camera to world, (c, 4).
        env: (c,) environment of each; None: camera k is in environment k, or all are in the only one.
        channels: What to give.
        options: How colours are found.
        ignore: (c,) instance number that each camera does not see (its own body); None: none.
        column_position: (c, W, 3) a pose per column instead; None: none.
        column_attitude: (c, W, 4)
        motion: For `flow`.
        projection: What the table came from, if that is known: splats are then projected through a lens directly.
        still: Make `rgb` (and `grey`) a still image: by path tracing, seconds to minutes; `options` is then for the other
            channels. None: as `options` say, for films and training.

    Raises:
        AirworthyError: A name is unknown, a shape does not fit, `flow` is asked for without `motion`, or `still` where no
            colour is asked for or a scene holds splats.
    """
    names = list(dict.fromkeys(channels))
    if still is not None and not {"rgb", "grey"} & set(names):
        raise AirworthyError(
            f"Options of a still image arrived, but of the channels {', '.join(names)} none has light; ask for 'rgb' or 'grey'."
        )
    own = [name for name in names if name not in CHANNEL_NAMES]
    _check(batch, own, motion, names)
    colors = list(dict.fromkeys("rgb" if name == "grey" else name for name in names if name in COLOR_CHANNELS))
    splats = [name for name in names if name in SPLAT_CHANNELS]
    geometric = [name for name in names if name in CHANNELS]
    if "flow" in names:
        geometric += ["point_world", "instance"]
    if own:
        geometric += ["instance", "face", "barycentric"]
    cameras = Cameras.of(batch, table, position, attitude, env, ignore, column_position, column_attitude)
    # Colours see looks, and not what these stand for; then one trace cannot serve both.
    seen = seen_by_colors(batch)
    shared = options.samples == 1 and seen is batch
    if colors and geometric and shared:
        geometric += HIT_CHANNELS
    watching = renumbered(cameras, batch, seen)
    traced = {} if still is None else {"rgb": still_images(seen, table, watching, still)}
    if traced:
        colors.remove("rgb")
    if "rgb" in colors:
        with_stray_light(seen, options.texture_scale)
    over = ("rgb" in colors or splats) and any(scene.splats for scene in batch.scenes)
    found = _geometry(batch, table, cameras, list(dict.fromkeys(geometric)), options) if geometric else {}
    if splats and not over:
        shape = (len(cameras), table.height, table.width)
        found.update(splat_depth=np.full(shape, np.inf, np.float32), splat_alpha=np.zeros(shape, np.float32))
    if over:
        found.update(_with_splats(batch, table, cameras, projection, [*colors, *splats], options))
        colors = [name for name in colors if name != "rgb"]
    if colors:
        hits = found if shared and geometric else None
        found.update(shade_channels(seen, table, watching, colors, options, hits))
    found.update(traced)
    if "grey" in names:
        found["grey"] = luminance(found["rgb"]).astype(np.float32)
    for name in own:
        found[name] = interpolate(batch.geometry, {**found, "env": cameras.env}, name)
    if "flow" in names and motion is not None:
        found["flow"] = _flow(batch, cameras, found, attitude, motion)
    return {name: found[name] for name in names}


def _check(batch: SceneBatch, own: list[str], motion: FlowMotion | None, names: list[str]) -> None:
    if own:
        there = {name for shape in batch.geometry.shapes if isinstance(shape, Mesh) for name in shape.channels}
        for name in own:
            if name not in there:
                raise unknown_name("channel", name, [*CHANNEL_NAMES, *sorted(there)])
    if "flow" in names and motion is None:
        raise AirworthyError(
            "The channel 'flow' needs to know the next image; give `motion=Motion(...)`: projection and poses."
        )


def _flow(batch: SceneBatch, cameras: Cameras, found: Arrays, attitude: ArrayLike, motion: FlowMotion) -> ArrayF32:
    if cameras.columns:
        raise AirworthyError("Flow of a rolling image is not one displacement per pixel; ask for it without poses per column.")
    return optical_flow(
        motion.projection,
        found["point_world"],
        motion.position,
        motion.attitude,
        attitude,
        instance=found["instance"],
        dynamic_start=batch.geometry.dynamic_start,
        env=cameras.env,
        dynamic_instances=motion.dynamic_instances,
        next_dynamic_instances=motion.next_dynamic_instances,
        sky=motion.sky,
    )


def _with_splats(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    projection: Projection | None,
    names: list[str],
    options: ShadingOptions,
) -> Arrays:
    """`rgb`, `splat_depth` and `splat_alpha`, those that are asked for: splats over what is shaded behind them."""

    ranges = batch.rendered()
    cameras = renumbered(cameras, batch, ranges)
    front = _geometry(ranges, table, cameras, ["depth", *HIT_CHANNELS], options)
    behind = None
    if "rgb" in names:
        hits = front if options.samples == 1 else None
        behind = shade_channels(ranges, table, cameras, ("rgb",), options, hits)["rgb"]
    return overlaid(ranges, table, cameras, projection, front, behind, [name for name in names if name in SPLAT_CHANNELS])


def _geometry(batch: SceneBatch, table: RayTable, cameras: Cameras, names: list[str], options: ShadingOptions) -> Arrays:
    """Geometric channels, by the engine's rays."""
    rows = cameras.rows
    where = rows["position"].astype(np.float64) + rows["rest"]
    attitude = rows["attitude"].astype(np.float64)
    columns: dict[str, Any] = {"column_position": where, "column_attitude": attitude} if cameras.columns else {}
    first = (where[:, 0], attitude[:, 0])
    ignore = rows["ignore"][:, 0]
    found = cast(
        batch.geometry, table, *first, cameras.env, tuple(names), max_range=options.max_range, ignore=ignore, **columns
    )
    if not appearance_of(batch, options.texture_scale).has_holes:
        return found
    return _through_holes(batch, table, cameras, names, options, found)


def _through_holes(
    batch: SceneBatch, table: RayTable, cameras: Cameras, names: list[str], options: ShadingOptions, found: Arrays
) -> Arrays:
    """Return the same channels where rays go on through the holes of cut-out materials: cast again, from just before what is
    met.
    """
    ranges = shade_channels(batch, table, cameras, ("hits",), options)["range"]
    rows = cameras.rows
    where, attitude = rows["position"].astype(np.float64) + rows["rest"], rows["attitude"].astype(np.float64)
    start = 0.0 if table.origins is None else table.origins
    for camera in range(len(cameras)):
        met = ranges[camera] >= 0.0
        skipped = np.where(met, np.maximum(ranges[camera] * (1.0 - 1e-4) - 1e-3, 0.0), 2.0 * options.max_range)
        moved = RayTable(table.directions, start + table.directions * skipped[..., None], table.axis)
        poses = (where[camera, :1], attitude[camera, :1])
        columns: dict[str, Any] = {}
        if cameras.columns:
            columns = {"column_position": where[camera : camera + 1], "column_attitude": attitude[camera : camera + 1]}
        one = slice(camera, camera + 1)
        again = cast(batch.geometry, moved, *poses, cameras.env[one], names, ignore=rows["ignore"][one, 0], **columns)
        for name, array in again.items():
            found[name][camera] = np.where(_spread(met, array[0].ndim), _whole(name, array[0], skipped, table), _MISSED[name])
    return found


def _whole(name: str, values: ArrayAny, skipped: Array, table: RayTable) -> ArrayAny:
    """Distances from the eye, of distances from where the second ray began."""
    if name == "range":
        return np.asarray(values + skipped)
    if name == "depth":
        return np.asarray(values + skipped * (table.directions @ table.axis))
    return values


def _spread(mask: ArrayBool, dimensions: int) -> ArrayBool:
    return mask if dimensions == 2 else mask[..., None]


_MISSED: dict[str, float | int] = {
    "range": np.inf,
    "depth": np.inf,
    "instance": -1,
    "face": -1,
    "instance_id": -2,
    "semantic_id": -2,
    "barycentric": 0.0,
    **dict.fromkeys(("point_world", "point_sensor", "normal_world", "normal_sensor", "local_point"), np.nan),
}
