"""The one call: any set of geometric and appearance channels of any number of cameras.

A channel that is not named is not computed. Geometric channels come from `geometry.cast`, colours from `sensors.shading`; where
both are asked for, rays are traced once. In scenes with cut-out materials the geometric channels too look through the holes.
In scenes with splats colours are those of `sensors.splats.overlay`; geometric channels are of the geometry all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import CHANNELS, Mesh, RayTable, cast, interpolate
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.flow import MoverPoses, optical_flow
from airworthy.sensors.projections import Projection
from airworthy.sensors.shading import DEFAULT_OPTIONS, HIT_CHANNELS, Cameras, ShadingOptions, shade_channels
from airworthy.sensors.tone import luminance

__all__ = ["CHANNEL_NAMES", "Motion", "render"]

Arrays = dict[str, NDArray[Any]]

COLOR_CHANNELS = ("rgb", "grey", "albedo", "normal")
SPLAT_CHANNELS = ("splat_depth", "splat_alpha")
CHANNEL_NAMES = (*CHANNELS, *COLOR_CHANNELS, "flow", *SPLAT_CHANNELS)
"""Channels of `render`; names of the meshes' own vertex channels may be given too."""


@dataclass(frozen=True, eq=False)
class Motion:
    """What flow needs: the projection, and where everything will be in the next image."""

    projection: Projection
    position: ArrayLike
    """Of the cameras, world [m], (c, 3)."""
    attitude: ArrayLike
    """Camera to world, (c, 4)."""
    movers: MoverPoses | None = None
    """Poses of the movers now: positions (env, movers, 3), attitudes (env, movers, 4)."""
    next_movers: MoverPoses | None = None
    """Poses of the movers in the next image."""
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
    motion: Motion | None = None,
    projection: Projection | None = None,
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

    Raises:
        AirworthyError: A name is unknown, a shape does not fit, or `flow` is asked for without `motion`.
    """
    names = list(dict.fromkeys(channels))
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
    if (colors and geometric) and options.samples == 1:
        geometric += HIT_CHANNELS
    over = ("rgb" in colors or splats) and any(scene.splats for scene in batch.scenes)
    found = _geometry(batch, table, cameras, list(dict.fromkeys(geometric)), options) if geometric else {}
    if splats and not over:
        shape = (len(cameras), table.height, table.width)
        found.update(splat_depth=np.full(shape, np.inf, np.float32), splat_alpha=np.zeros(shape, np.float32))
    if over:
        found.update(_with_splats(batch, table, cameras, projection, [*colors, *splats], options))
        colors = [name for name in colors if name != "rgb"]
    if colors:
        hits = found if options.samples == 1 and geometric else None
        found.update(shade_channels(batch, table, cameras, colors, options, hits))
    if "grey" in names:
        found["grey"] = luminance(found["rgb"]).astype(np.float32)
    for name in own:
        found[name] = interpolate(batch.geometry, {**found, "env": cameras.env}, name)
    if "flow" in names and motion is not None:
        found["flow"] = _flow(batch, cameras, found, attitude, motion)
    return {name: found[name] for name in names}


def _check(batch: SceneBatch, own: list[str], motion: Motion | None, names: list[str]) -> None:
    if own:
        there = {name for shape in batch.geometry.shapes if isinstance(shape, Mesh) for name in shape.channels}
        for name in own:
            if name not in there:
                raise unknown_name("channel", name, [*CHANNEL_NAMES, *sorted(there)])
    if "flow" in names and motion is None:
        raise AirworthyError(
            "The channel 'flow' needs to know the next image; give `motion=Motion(...)`: projection and poses."
        )


def _flow(batch: SceneBatch, cameras: Cameras, found: Arrays, attitude: ArrayLike, motion: Motion) -> NDArray[np.float32]:
    if cameras.columns:
        raise AirworthyError("Flow of a rolling image is not one displacement per pixel; ask for it without poses per column.")
    return optical_flow(
        motion.projection,
        found["point_world"],
        motion.position,
        motion.attitude,
        attitude,
        instance=found["instance"],
        mover_start=batch.geometry.mover_start,
        env=cameras.env,
        movers=motion.movers,
        next_movers=motion.next_movers,
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
    from airworthy.sensors.splats.overlay import overlaid

    seen = batch.seen()
    front = _geometry(seen, table, cameras, ["depth", *HIT_CHANNELS], options)
    behind = None
    if "rgb" in names:
        hits = front if options.samples == 1 else None
        behind = shade_channels(seen, table, cameras, ("rgb",), options, hits)["rgb"]
    return overlaid(batch, table, cameras, projection, front, behind, [name for name in names if name in SPLAT_CHANNELS])


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
    """The same channels where rays go on through the holes of cut-out materials: cast again, from just before what is met."""
    seen = shade_channels(batch, table, cameras, ("hits",), options)["range"]
    rows = cameras.rows
    where, attitude = rows["position"].astype(np.float64) + rows["rest"], rows["attitude"].astype(np.float64)
    start = 0.0 if table.origins is None else table.origins
    for camera in range(len(cameras)):
        met = seen[camera] >= 0.0
        skipped = np.where(met, np.maximum(seen[camera] * (1.0 - 1e-4) - 1e-3, 0.0), 2.0 * options.max_range)
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


def _whole(name: str, values: NDArray[Any], skipped: NDArray[np.float64], table: RayTable) -> NDArray[Any]:
    """Distances from the eye, of distances from where the second ray began."""
    if name == "range":
        return np.asarray(values + skipped)
    if name == "depth":
        return np.asarray(values + skipped * (table.directions @ table.axis))
    return values


def _spread(mask: NDArray[np.bool_], dimensions: int) -> NDArray[np.bool_]:
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
