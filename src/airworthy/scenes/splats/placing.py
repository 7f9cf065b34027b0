"""Splats as parts of scenes: placed, stood on floors, riding on actors, and with something that can be hit at their place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Mesh
from airworthy.scenes.actors import ActorKit, add_actor
from airworthy.scenes.extent import OPAQUE
from airworthy.scenes.record import IDENTITY, Actor, Instance, Quaternion, Scene, SplatPlacement, Vector3
from airworthy.scenes.splats.editing import merged, transformed
from airworthy.scenes.splats.geometry import SplatGeometry, splat_box, splat_geometry
from airworthy.scenes.splats.record import Splats

__all__ = [
    "SURFACE",
    "add_splat_actor",
    "add_splats",
    "placed",
    "solid",
    "standing",
    "static_splats",
    "stood",
    "surface_geometry",
    "surface_resolution",
    "with_surface",
]

SURFACE = "splat_surface"
"""Name of the shape and the instance that are hit in the place of a scene's splats."""
RESOLUTIONS = (0.02, 0.1)
"""Finest and, where memory allows, coarsest edge of a cell of a surface [m]."""
CELLS_MAX = 3_000_000
"""Of a surface whose resolution nobody gave."""
_CELLS_ALONG = 80


def placed(splats: Splats, item: SplatPlacement) -> Splats:
    """Return a cloud where its placement puts it: in the world, or in the frame of the actor it is attached to."""
    if (item.position, item.attitude, item.scale) == ((0.0, 0.0, 0.0), IDENTITY, 1.0):
        return splats
    return transformed(splats, item.attitude, item.position, item.scale)


def static_splats(scene: Scene) -> Splats | None:
    """Return all gaussians of a scene that stand still, in the world; None where there are none.

    Raises:
        UnknownNameError: A placement names a cloud that the scene does not hold.
    """
    parts = [placed(_cloud(scene, item), item) for item in scene.splats if not item.attached]
    return None if not parts else merged(parts) if len(parts) > 1 else parts[0]


def _cloud(scene: Scene, item: SplatPlacement) -> Splats:
    if item.cloud not in scene.clouds:
        raise unknown_name("cloud", item.cloud, scene.clouds, f"Splats of scene {scene.name!r} name it.")
    return scene.clouds[item.cloud]


def add_splats(
    scene: Scene,
    splats: Splats,
    name: str,
    position: Vector3 = (0.0, 0.0, 0.0),
    attitude: Quaternion = IDENTITY,
    scale: float = 1.0,
    attached: str = "",
) -> Scene:
    """Return a scene with one more cloud, placed once. It is rendered, not hit: see `solid` and `with_surface`.

    Args:
        scene: The scene.
        splats: The cloud.
        name: Of the cloud and of its placement.
        position: Of the cloud's origin [m], in the world or the actor's frame.
        attitude: Quaternion x, y, z, w, cloud to that frame.
        scale: Metres per unit.
        attached: Actor with which it moves; empty: fixed in the world.

    Raises:
        AirworthyError: The scene holds another cloud of this name.
    """
    if scene.clouds.get(name, splats) is not splats:
        raise AirworthyError(f"Scene {scene.name!r} already has another cloud {name!r}; give the new one another name.")
    item = SplatPlacement(name, position, attitude, scale, attached, name)
    return replace(scene, clouds={**scene.clouds, name: splats}, splats=(*scene.splats, item))


# ---- objects ------------------------------------------------------------------------------------------------------------


def stood(
    cloud: str, splats: Splats, position: ArrayLike, yaw: float = 0.0, scale: float = 1.0, foot: float = 0.005
) -> SplatPlacement:
    """Return the placement that stands a cloud on a floor: upright as it is, the middle of its foot print at a place.

    Args:
        cloud: Its name in the scene.
        splats: The cloud, of one object, z up.
        position: Where it stands [m], (3,).
        yaw: Turn about z [rad].
        scale: Metres per unit.
        foot: Share of the opaque gaussians that may lie below its foot (captures have some under the ground).

    Raises:
        AirworthyError: Nothing is opaque, or a number is not usable.
    """
    if not 0.0 <= foot < 0.5:
        raise AirworthyError(f"`foot` is {foot}; expected a share of the gaussians, 0 or more and below 0.5.")
    if not (np.isfinite([yaw, scale]).all() and scale > 0.0):
        raise AirworthyError(f"A cloud cannot stand with yaw {yaw} and scale {scale}; expected finite numbers, scale above 0.")
    means = splats.position[splats.opacity >= OPAQUE].astype(np.float64)
    if not len(means):
        raise AirworthyError(f"None of {len(splats)} gaussians has an opacity of {OPAQUE} or more; there is nothing to stand.")
    # Not the lowest: captures have strays under the ground, and an object would hover.
    low, high = np.quantile(means, [foot, 1.0 - foot], axis=0)
    turn = np.array([0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)])
    middle = np.array([*(0.5 * (low + high))[:2], low[2]])
    x, y, z = (float(v) for v in np.asarray(position, np.float64) - scale * frames.rotate(turn, middle))
    return SplatPlacement(cloud, (x, y, z), (0.0, 0.0, float(turn[2]), float(turn[3])), float(scale), name=cloud)


def standing(splats: Splats, position: ArrayLike, yaw: float = 0.0, scale: float = 1.0, foot: float = 0.005) -> Splats:
    """Return the splats themselves where `stood` puts them; errors are its.

    Args:
        splats: Of one object, z up.
        position: Where it stands [m], (3,).
        yaw: Turn about z [rad].
        scale: Metres per unit.
        foot: Share of the opaque gaussians that may lie below its foot.
    """
    return placed(splats, stood("", splats, position, yaw, scale, foot))


# ---- what is hit --------------------------------------------------------------------------------------------------------


def surface_resolution(lower: ArrayLike, upper: ArrayLike) -> float:
    """Return the edge of the cells that suit a box [m]: an eightieth of its longest side within `RESOLUTIONS`, but few enough
    cells."""
    size = np.maximum(np.asarray(upper, float) - np.asarray(lower, float), 1e-3)
    fit = float(np.clip(size.max() / _CELLS_ALONG, *RESOLUTIONS))
    # A large room would otherwise have more cells than memory.
    return max(fit, float(np.cbrt(np.prod(size) / CELLS_MAX)))


def surface_geometry(scene: Scene, resolution: float | None = None, **options: Any) -> SplatGeometry:
    """Return occupied cells of a scene's standing splats, within its bounds.

    Args:
        scene: The scene.
        resolution: Edge of a cell [m]; None: as `surface_resolution` finds.
        **options: Of `scenes.splats.geometry.occupancy`: `threshold`, `support`, `filled`. `filled` closes objects; a room
            that was captured from inside is closed as well, and would be filled.

    Raises:
        AirworthyError: The scene has no standing splats, none within its bounds, or a number is out of range.
    """
    splats = static_splats(scene)
    if splats is None:
        raise AirworthyError(
            f"Scene {scene.name!r} has no splats that stand still to put a surface around; `add_splats` adds some."
        )
    box = splat_box(splats)
    # The size of cells from the box without margin, the margin from the size of cells.
    cell = surface_resolution(*_cut(scene, *box, 0.0)) if resolution is None else resolution
    lower, upper = _cut(scene, *box, cell)  # a floor lies on the bounds, so a cell more
    return splat_geometry(splats, cell, lower, upper, **{"support": 8, **options})


def _cut(scene: Scene, low: Array, high: Array, margin: float) -> tuple[Array, Array]:
    lower = np.maximum(low, np.asarray(scene.bounds.lower) - margin)
    upper = np.minimum(high, np.asarray(scene.bounds.upper) + margin)
    if not (lower < upper).all():
        raise AirworthyError(
            f"The splats of {scene.name!r} lie from {np.round(low, 2).tolist()} to {np.round(high, 2).tolist()}, outside its"
            f" bounds {scene.bounds.lower} to {scene.bounds.upper}; move them or set the bounds."
        )
    return lower, upper


def with_surface(scene: Scene, resolution: float | None = None, **options: Any) -> Scene:
    """Return the scene with what is hit where its standing splats are: a closed mesh around what is opaque.

    The mesh has no look of its own (`covered`, not `visible`): depth, labels and contact come from it, colour from the splats.
    Options and errors are those of `surface_geometry`; where all is too faint or too small, the scene comes back as it was.

    Raises:
        AirworthyError: As `surface_geometry`; or the scene has such a surface already.
    """
    if SURFACE in scene.shapes:
        raise AirworthyError(f"Scene {scene.name!r} has a shape {SURFACE!r} already; give the scene without it.")
    return _surfaced(scene, surface_geometry(scene, resolution, **options).mesh)


def _surfaced(scene: Scene, mesh: Mesh) -> Scene:
    if not len(mesh.faces):
        return scene
    item = Instance(SURFACE, name=SURFACE, visible=False, covered=True)
    return replace(scene, shapes={**scene.shapes, SURFACE: mesh}, instances=(*scene.instances, item))


def solid(scene: Scene, placement: SplatPlacement, resolution: float | None = None, **options: Any) -> Scene:
    """Return the scene with what is hit where one of its placed clouds is: a closed mesh around what is opaque in it.

    As `with_surface`, for one placement, whether it stands or rides on an actor, of which the mesh then becomes a part. What
    stands keeps to the scene's bounds.

    Args:
        scene: The scene.
        placement: One of its splats.
        resolution: Edge of a cell of the mesh [m]; None: as `surface_resolution` finds.
        **options: Of `scenes.splats.geometry.occupancy`: `threshold`, `support`, `filled`.

    Raises:
        AirworthyError: The scene lacks its cloud or its actor, nothing in it is opaque, all is out of bounds, or a number is
            out of range.
    """
    splats = placed(_cloud(scene, placement), placement)
    low, high = splat_box(splats)
    if not placement.attached:
        cell = surface_resolution(*_cut(scene, low, high, 0.0)) if resolution is None else resolution
        low, high = _cut(scene, low, high, cell)
    cell = surface_resolution(low, high) if resolution is None else resolution
    mesh = splat_geometry(splats, cell, low, high, **{"support": 8, **options}).mesh
    if not len(mesh.faces):
        raise AirworthyError(
            f"Nothing in the splats {placement.name or placement.cloud!r} is opaque over {cell:.3g} m; give a smaller cell."
        )
    stem = f"{placement.attached or placement.name or placement.cloud}/{SURFACE}"
    # Among one name more than there are shapes, one is free.
    name = next(key for k in range(len(scene.shapes) + 1) if (key := stem if not k else f"{stem}_{k + 1}") not in scene.shapes)
    item = Instance(name, name=name, visible=False, covered=True)
    shapes = {**scene.shapes, name: mesh}
    if not placement.attached:
        return replace(scene, shapes=shapes, instances=(*scene.instances, item))
    names = [actor.name for actor in scene.actors]
    if placement.attached not in names:
        raise unknown_name("actor", placement.attached, names, f"Splats of scene {scene.name!r} ride on it.")
    actors = tuple(
        replace(actor, parts=(*actor.parts, item)) if actor.name == placement.attached else actor for actor in scene.actors
    )
    return replace(scene, shapes=shapes, actors=actors)


def add_splat_actor(scene: Scene, actor: Actor, splats: Splats, resolution: float | None = None, **options: Any) -> Scene:
    """Return a scene with a moving group of splats: an actor on which the cloud rides, and with which one can collide.

    Args:
        scene: The scene.
        actor: How it moves. Where it has no parts, a closed mesh around what is opaque in the cloud becomes its only one.
        splats: The cloud, in the actor's frame. It gets the actor's name.
        resolution: Edge of a cell of that mesh [m]; None: as `surface_resolution` finds.
        **options: Of `scenes.splats.geometry.occupancy`.

    Raises:
        AirworthyError: A name is taken, nothing in the cloud is opaque, or a number is out of range.
    """
    shapes = {}
    if not actor.parts:
        low, high = splat_box(splats)
        cells = splat_geometry(splats, resolution or surface_resolution(low, high), low, high, **{"support": 8, **options})
        name = f"{actor.name}/{SURFACE}"
        shapes = {name: cells.mesh}
        actor = replace(actor, parts=(Instance(name, name=SURFACE, visible=False, covered=True),))
    joined = add_actor(scene, ActorKit(actor, shapes=dict(shapes)))
    return add_splats(joined, splats, actor.name, attached=actor.name)
