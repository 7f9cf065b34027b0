"""From a scene of meshes and solids to Gaussian splats.

Surfaces that can be seen from inside the bounds are covered with flat Gaussians, more of them where they are seen large and
where their colour varies; what the renderer shades at a point, light baked in, becomes its colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.geometry import RayTable, cast
from airworthy.optics.tone import filmic, srgb_from_linear
from airworthy.rendering.light_baking import use_baked
from airworthy.rendering.shading import Cameras, ShadingOptions, shade_channels
from airworthy.scenes.actors import posed
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.extent import scene_box
from airworthy.scenes.record import Scene
from airworthy.scenes.splats.editing import merged
from airworthy.scenes.splats.record import C0, Splats
from airworthy.splats.surfaces import LIFT, Patches, evenly, exposure_of, patches_of, spread_points, viewpoints, witnessed

__all__ = ["ConvertOptions", "display_color", "lit_batch", "splats_from_scene"]


_SHADE = ShadingOptions(sun_disc=False, max_range=1e4)
_RAYS_AT_ONCE = 1 << 18
_LENGTHS = (1e-3, 5.0)
"""Least and greatest standard deviation along a surface [m]."""
_NEAR = 0.5
"""What is at most this far outside the bounds counts as inside [m]."""
_CHOICE = 3
"""Points among which one is chosen."""
_FLAT = 0.03
"""Standard deviation across a surface, as a share of that along it."""


@dataclass(frozen=True)
class ConvertOptions:
    """How a scene is converted.

    Raises:
        AirworthyError: If a number is out of range.
    """

    opacity: float = 0.95
    overlap: float = 0.6
    """Standard deviation of a Gaussian over the distance to its neighbours."""
    detail: float = 1.0
    """How strongly varied surfaces are preferred; 0: not."""
    rays: int = 8
    """Places under a Gaussian whose mean is its colour."""
    eyes: int = 96
    """Places from which it is asked what can be seen."""
    patch: float = 0.15
    """Longest edge of the triangles of which it is asked whether they can be seen [m]."""
    sky: int = 3000
    """Gaussians of a whole dome; only those that are seen are made. 0: none."""
    exposure: float = 1.0
    """Factor on linear radiance before the filmic curve and sRGB."""
    baked: bool = True
    """Light the scene with its baked light."""

    def __post_init__(self) -> None:
        check_fields(self, "ConvertOptions.")
        positive = (self.overlap, self.exposure, self.patch, self.rays, self.eyes)
        if min(positive) <= 0 or not 0.0 < self.opacity < 1.0 or min(self.detail, self.sky) < 0:
            raise AirworthyError(
                f"A scene cannot be converted with {self}; expected counts and factors above 0, opacity below 1."
            )


DEFAULT_CONVERT = ConvertOptions()


def display_color(linear: Any, exposure: float = 1.0) -> ArrayF32:
    """Return what splats hold of linear radiance: after exposure and the filmic curve, sRGB-encoded, in [0, 1]."""
    return srgb_from_linear(filmic(np.asarray(linear, np.float32) * np.float32(exposure)))


def lit_batch(scene: Scene, baked: bool = True) -> SceneBatch:
    """Return a batch of one scene, its actors standing where they begin, with baked light."""
    batch = SceneBatch(posed(scene))
    if baked:
        use_baked(batch)
    return batch


def splats_from_scene(
    scene: Scene | SceneBatch,
    spacing: float | None = None,
    count: int | None = None,
    options: ConvertOptions = DEFAULT_CONVERT,
) -> Splats:
    """Convert a scene.

    Args:
        scene: The scene, or a batch (`lit_batch`) whose first scene is meant.
        spacing: Mean distance of Gaussians on what can be seen [m]; they are denser where they are seen large.
        count: How many on surfaces; the sky's come on top. Give one of the two.
        options: How.

    Returns:
        Splats of degree 0 that hold `display_color` of what is shaded.

    Raises:
        AirworthyError: Both or neither of `spacing` and `count` are given, one is not positive, or nothing can be seen.
    """
    if (spacing is None) == (count is None) or (spacing or count or 0) <= 0:
        raise AirworthyError(f"Splats were asked for with spacing={spacing} and count={count}; give one of them, above 0.")
    batch = scene if isinstance(scene, SceneBatch) else lit_batch(scene, options.baked)
    patches = patches_of(batch.scenes[0], options.patch)
    eyes = viewpoints(batch, options.eyes)
    visible, behind, witnesses = exposure_of(batch, patches, eyes)
    # Nothing is put where no eye sees: the far side of a wall would show through.
    some = visible > 0.0
    patches, visible, behind, witnesses = patches.only(some), visible[some], behind[some], witnesses[some]
    if not len(patches):
        raise AirworthyError(f"Nothing of the scene {batch.scenes[0].name!r} can be seen from within its bounds.")
    if count is None:
        count = max(1, int(patches.area.sum() / float(spacing or 1.0) ** 2))
    sight = SurfaceView(patches, np.where(behind[:, None], -patches.normal, patches.normal), eyes, witnesses)
    # Points per patch grow with its area, so that one wall cut in two gets as many as in one piece.
    weight = patches.area * _worth(visible, patches, batch.scenes[0])
    if options.detail:
        weight *= _variety(batch, sight, weight, max(1, count // 2), options)
    splats = _covered(batch, sight, weight, count, options)
    return _with_sky(batch, splats, eyes, options) if options.sky else splats


def _worth(visible: ArrayFloat, patches: Patches, scene: Scene) -> Array:
    """Density (n,) of Gaussians for solid angles per area `visible`.

    The square root keeps some for what is small in the eyes of most positions but may be flown to; what lies beyond the bounds
    may not.
    """
    middle = patches.corners.mean(axis=1)
    beyond = np.linalg.norm(middle - np.clip(middle, scene.bounds.lower, scene.bounds.upper), axis=-1) > _NEAR
    worth = np.sqrt(visible)
    if beyond.any() and not beyond.all():
        worth[beyond] *= np.minimum(1.0, worth[beyond] / np.sqrt(np.median(visible[~beyond])))
    return np.asarray(worth, np.float64)


@dataclass(frozen=True, eq=False)
class SurfaceView:
    """What is seen, towards which side, and by whom."""

    patches: Patches
    normal: ArrayFloat
    """(n, 3) towards the eyes."""
    eyes: ArrayFloat
    witnesses: ArrayInt

    def points(self, batch: SceneBatch, weight: ArrayFloat, count: int) -> tuple[ArrayInt, ArrayFloat, ArrayFloat]:
        """Return points that are seen, about `count`: the patch of each, where, and how far apart they should be [m].

        Args:
            batch: The scene.
            weight: Of each patch, (n,).
            count: Points wanted, about.
        """
        which, position = spread_points(self.patches, weight, count)
        distance = np.sqrt(weight.sum() / count / weight[which] * self.patches.area[which])
        visible = witnessed(batch, position, self.normal[which], self.eyes, self.witnesses[which])
        return which[visible], position[visible], distance[visible]


def _variety(batch: SceneBatch, sight: SurfaceView, weight: ArrayFloat, count: int, options: ConvertOptions) -> Array:
    """First pass: factor (n,) on the density of patches, from how much the colour differs under coarse Gaussians."""
    which, position, width = sight.points(batch, weight, count)
    _, deviation = _shaded(batch, position, sight.normal[which], width, 6, options.exposure)
    found = np.bincount(which, deviation, len(weight))
    number = np.bincount(which, minlength=len(weight))
    usual = max(float(deviation.mean()) if len(deviation) else 0.0, 1e-4)
    mean = np.where(number > 0, found / np.maximum(number, 1), usual)
    return np.asarray((0.3 + mean / usual) ** options.detail)


def _covered(batch: SceneBatch, sight: SurfaceView, weight: ArrayFloat, count: int, options: ConvertOptions) -> Splats:
    """Second pass: the Gaussians."""
    which, position, expected = sight.points(batch, weight, _CHOICE * count)
    # Of the points that were spread only one in `_CHOICE` is kept: distances on a surface grow with the root.
    expected = expected * np.sqrt(_CHOICE)
    up = sight.normal[which]
    kept = evenly(position, up, expected, count)
    which, position, expected, up = which[kept], position[kept], expected[kept], up[kept]
    along, breadth = sight.patches.along[which], sight.patches.breadth[which]
    width = _distances(position, up, expected)
    # On what is narrower than the Gaussians are apart these lie in a row, and are stretched along it.
    across = np.minimum(options.overlap * width, 0.3 * breadth)
    stretch = np.clip(width / np.maximum(breadth, 1e-4), 1.0, 3.0)
    length = np.minimum(options.overlap * width * stretch, np.maximum(4.0 * across, options.overlap * width))
    length = np.minimum(length, _room(batch, position, up, along, 2.0 * length))
    across = np.minimum(across, _room(batch, position, up, np.cross(up, along), 2.0 * across))
    sigma = np.clip(np.stack((length, across), axis=1), *_LENGTHS)
    thin = np.maximum(_FLAT * sigma.min(axis=1), 0.2 * _LENGTHS[0])
    turn = frames.from_matrix(np.stack((along, np.cross(up, along), up), axis=-1))
    color, _ = _shaded(batch, position, up, np.minimum(width, breadth), options.rays, options.exposure)
    scale = np.concatenate((sigma, thin[:, None]), axis=1)
    return _splats(position, turn, scale, np.full(len(position), options.opacity), color)


def _room(batch: SceneBatch, position: ArrayFloat, normal: ArrayFloat, direction: ArrayFloat, reach: ArrayFloat) -> Array:
    """Greatest standard deviation (n,) along +-`direction` (n, 3) that leaves a Gaussian on its surface.

    The surface is looked for up to `reach` (n,) away.
    """
    room = np.full(len(position), np.inf)
    pose = (np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros(1, np.int32))
    for share in (1.0, 0.75, 0.5, 0.25, 0.1):
        # From above, straight down: where nothing is met at once, the surface has ended.
        for sign in (1.0, -1.0):
            start = position + (sign * share * reach)[:, None] * direction + LIFT * normal
            table = RayTable(-normal[None], start[None])
            found = cast(batch.geometry, table, *pose, ("range",), max_range=4.0 * LIFT)["range"][0, 0]
            # Shares fall from step to step, so the last one that is off leaves the least room.
            off = np.abs(found - LIFT) >= 0.5 * LIFT
            room[off] = 0.5 * share * reach[off]
    return room


def _splats(position: ArrayFloat, turn: ArrayFloat, scale: ArrayFloat, opacity: ArrayFloat, color: ArrayFloat) -> Splats:
    parts = (position, turn, scale, opacity, ((color - 0.5) / C0)[:, None, :])
    return Splats(*(np.asarray(part, np.float32) for part in parts))


def _distances(position: ArrayFloat, normal: ArrayFloat, expected: ArrayFloat) -> Array:
    """Distance (n,) of points to their neighbours on the same side of the same surface, near what is expected."""
    from scipy.spatial import cKDTree

    if len(position) < 2:
        return np.asarray(expected, np.float64)
    distance, index = cKDTree(position).query(position, k=min(9, len(position)))
    # Points across an edge or on a wall's far side are near, but are no neighbours.
    same = (normal[index[:, 1:]] * normal[:, None]).sum(axis=-1) > 0.9
    distance = np.where(same, distance[:, 1:], np.inf)
    distance.sort(axis=1)
    # In a square grid the fourth neighbour is one step away.
    near = distance[:, min(3, distance.shape[1] - 1)]
    return np.clip(np.where(np.isfinite(near), near, expected), 0.5 * expected, 1.8 * expected)


def _shaded(
    batch: SceneBatch, position: ArrayFloat, normal: ArrayFloat, width: ArrayFloat, rays: int, exposure: float
) -> tuple[Array, Array]:
    """Mean colour (n, 3) of places about points, seen from just above them; and its deviation (n,), mean of channels."""
    side = np.cross(normal, np.where(np.abs(normal[:, 2:]) < 0.9, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
    side /= np.linalg.norm(side, axis=-1, keepdims=True)
    other = np.cross(normal, side)
    total, square, number = np.zeros((len(position), 3)), np.zeros((len(position), 3)), np.zeros((len(position), 1))
    for k in range(rays):
        # Places on a sunflower, the first in the middle.
        reach, angle = 0.55 * np.sqrt(k / max(rays, 1)), 2.399963229728653 * k
        at = position + width[:, None] * reach * (np.cos(angle) * side + np.sin(angle) * other)
        color, met = _straight_down(batch, at, normal, k % batch.env_count)
        encoded = display_color(color, exposure) * met[:, None]
        total += encoded
        square += encoded**2
        number += met[:, None]
    mean = total / np.maximum(number, 1)
    return mean, np.sqrt(np.maximum(square / np.maximum(number, 1) - mean**2, 0.0)).mean(axis=1)


def _straight_down(batch: SceneBatch, at: ArrayFloat, normal: ArrayFloat, env: int) -> tuple[ArrayFloat, ArrayBool]:
    colors, met = [], []
    for first in range(0, len(at), _RAYS_AT_ONCE):
        some = slice(first, first + _RAYS_AT_ONCE)
        found = _along(batch, at[some] + LIFT * normal[some], -normal[some], env)
        colors.append(found["rgb"][0, 0])
        met.append(np.abs(found["range"][0, 0] - LIFT) < 0.5 * LIFT)
    return np.concatenate(colors), np.concatenate(met)


def _along(batch: SceneBatch, start: ArrayFloat, directions: ArrayFloat, env: int = 0) -> dict[str, ArrayAny]:
    table = RayTable(directions[None], start[None])
    cameras = Cameras.of(batch, table, np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([env], np.int32))
    return shade_channels(batch, table, cameras, ("rgb", "hits"), _SHADE)


def _with_sky(batch: SceneBatch, splats: Splats, eyes: ArrayFloat, options: ConvertOptions) -> Splats:
    """Add a dome of Gaussians where an eye sees past everything."""
    box = scene_box(batch.scenes[0])
    across = 0.0 if box is None else float(np.linalg.norm(np.subtract(box[1], box[0])))
    middle, radius = eyes.mean(axis=0), 1.5 * across + 10.0
    height = 1.0 - (2 * np.arange(options.sky) + 1.0) / options.sky
    turn = 2.399963229728653 * np.arange(options.sky)
    flat = np.sqrt(1.0 - height**2)
    directions = np.stack((flat * np.cos(turn), flat * np.sin(turn), height), axis=-1)
    identity = np.tile((0.0, 0.0, 0.0, 1.0), (len(eyes), 1))
    visible = np.isinf(
        cast(batch.geometry, RayTable(directions[None]), eyes, identity, np.zeros(len(eyes), np.int32), ("range",))["range"]
    )
    directions = directions[visible[:, 0].any(axis=0)]
    if not len(directions):
        return splats
    position = middle + radius * directions
    color = display_color(_along(batch, position, directions)["rgb"][0, 0], options.exposure)
    sigma = 0.7 * radius * np.sqrt(4.0 * np.pi / options.sky)
    scale, turned = np.full((len(directions), 3), sigma), np.tile((0.0, 0.0, 0.0, 1.0), (len(directions), 1))
    dome = _splats(position, turned, scale, np.full(len(directions), options.opacity), color)
    return merged([splats, dome])
