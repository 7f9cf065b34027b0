"""Where to look from: cameras for pictures of a scene."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry.placement import POSITION_LIMIT
from airworthy.scenes.extent import instance_box, scene_box
from airworthy.scenes.record import Scene, SplatPlacement

__all__ = ["VIEWS", "Viewpoint", "look_at", "roofless", "scene_digest", "view"]

# ---- Whether two scenes are the same, to the last bit -----------------------------------------------------------------------


def scene_digest(scene: Scene) -> str:
    """Return the SHA-256 of everything a scene holds, as 64 hexadecimal digits.

    Numbers count by value (1 and 1.0 are equal), arrays by shape, kind and bytes, tables in the order of their names, so that
    equal digests mean equal scenes, on any machine.
    """
    held = hashlib.sha256()
    _hash_into(held, scene)
    return held.hexdigest()


def _hash_into(held: Any, value: Any) -> None:
    """Feed every value with its kind and length before it, so that no two contents run into the same bytes."""
    if isinstance(value, np.ndarray):
        held.update(f"a{value.dtype.str}{value.shape}".encode())
        held.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        held.update(f"r{type(value).__name__}".encode())
        for item in fields(value):
            # Digests are stored (missions, runs): a field that came later counts where it says something, and only there.
            if item.metadata.get("later") and getattr(value, item.name) == item.default:
                continue
            held.update(f"f{item.name}".encode())
            _hash_into(held, getattr(value, item.name))
    elif isinstance(value, dict):
        held.update(f"d{len(value)}".encode())
        # A scene is the same in whichever order its tables were filled.
        for key in sorted(value, key=str):
            _hash_into(held, key)
            _hash_into(held, value[key])
    elif isinstance(value, tuple | list):
        held.update(f"t{len(value)}".encode())
        for part in value:
            _hash_into(held, part)
    elif isinstance(value, bool | str) or value is None:
        text = str(value).encode()
        held.update(f"s{type(value).__name__}{len(text)}:".encode() + text)
    else:
        # Whole and fractional numbers alike: files read 1 and 1.0 as one value.
        held.update(b"n" + struct.pack("<d", float(value)))


# -----------------------------------------------------------------------------------------------------------------------------

MARGIN = 1.04
"""What is shown over what there is."""
HEADINGS, SIGHT, OWN_HEADING = 24, 25.0, 2.0
"""Of a view from inside: ways that are tried, what is seen farther off counts as that [m], and by how much the start's own
heading is preferred; ours."""
WALL, NOTHING = 6.0, 1.5
"""Means of what is seen [m] from which on the start's own heading is preferred, and below which nothing is around; ours."""
_ROOF_SPLATS = 0.15
"""Splats this far under a roof belong to it [m]."""


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """A camera: rays of a pinhole, or parallel ones."""

    position: Array
    """(3,) world [m]."""
    attitude: Array
    """(4,) optical frame (x right, y down, z forward) to world."""
    fov: float = 1.2
    """Across the longer side [rad]."""
    span: tuple[float, float] = (0.0, 0.0)
    """> 0: rays are parallel, and at least this much is seen across and upwards [m]."""

    @property
    def parallel(self) -> bool:
        """Whether rays are parallel."""
        return self.span[0] > 0.0

    def rays(self, width: int, height: int) -> tuple[Array, Array | None]:
        """Return unit directions (h, w, 3) in the optical frame; origins (h, w, 3), or None where all rays leave from one
        point.
        """
        u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
        forward = np.broadcast_to((0.0, 0.0, 1.0), (height, width, 3)).copy()
        if self.parallel:
            # Square pixels that show at least the span both ways.
            pixel = max(self.span[0] / width, self.span[1] / height)
            return forward, np.stack((u * pixel, v * pixel, np.zeros_like(u)), axis=-1)
        spread = 2.0 * math.tan(0.5 * self.fov) / max(width, height)
        rays = forward + np.stack((u * spread, v * spread, np.zeros_like(u)), axis=-1)
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True), None


def look_at(position: ArrayLike, target: ArrayLike) -> Array:
    """Return the attitude (4,) of an optical frame that looks from one point to another, the world's z up in the image.

    Looking straight up or down, the image's right is the world's x.

    Args:
        position: Of the camera, world [m], (3,).
        target: World [m], (3,).

    Raises:
        AirworthyError: The points are the same, or not three coordinates each that a world can have.
    """
    for name, point in (("position", np.asarray(position, float)), ("target", np.asarray(target, float))):
        # NaN fails, too.
        if point.shape != (3,) or not (np.abs(point) <= POSITION_LIMIT).all():
            raise AirworthyError(
                f"A camera's {name} is {point.tolist()}; expected three finite coordinates [m], {POSITION_LIMIT:g} at most."
            )
    forward = np.asarray(target, float) - np.asarray(position, float)
    length = float(np.linalg.norm(forward))
    if not length > 1e-9:
        raise AirworthyError("A camera cannot look at the point where it is; give two points that are apart.")
    z = forward / length
    right = np.cross(z, (0.0, 0.0, 1.0))
    x = right / np.linalg.norm(right) if np.linalg.norm(right) > 1e-6 else np.array([1.0, 0.0, 0.0])
    return frames.from_matrix(np.stack((x, np.cross(z, x), z), axis=1))


def content_box(scene: Scene) -> tuple[Array, Array]:
    """Return what there is to see: the box of instances and splats, cut by the bounds, which hold no endless ground."""
    box = scene_box(scene)
    low, high = np.array(scene.bounds.lower, float), np.array(scene.bounds.upper, float)
    if box is None:
        return low, high
    # A ground of a kilometre would make everything else a dot.
    inner = np.maximum(low, box[0]), np.minimum(high, box[1])
    return inner if (inner[1] - inner[0]).min() >= 0.0 and (inner[1] - inner[0]).max() > 0.0 else box


def roofless(scene: Scene) -> Scene:
    """Return the scene without what covers it from above, so that it can be looked into; the same where nothing does.

    A roof is an instance in the upper half whose outline covers a third of the scene's. With it go the splats above its lower
    side, which show it; in a scene whose walls and roof are splats alone nothing is taken off.
    """
    low, high = content_box(scene)
    area, middle = float(np.prod((high - low)[:2])), 0.5 * (low[2] + high[2])
    kept, height = [], math.inf
    for item in scene.instances:
        box = instance_box(scene.shapes[item.shape], item.position, item.attitude, item.scale)
        outline = np.maximum(np.minimum(box[1], high) - np.maximum(box[0], low), 0.0)[:2]
        if not (box[0][2] > middle and float(np.prod(outline)) > area / 3.0):
            kept.append(item)
        else:
            height = min(height, float(box[0][2]))
    if len(kept) == len(scene.instances):
        return scene
    return _below(replace(scene, instances=tuple(kept)), height - _ROOF_SPLATS)


def _below(scene: Scene, height: float) -> Scene:
    """Return the scene with the standing splats under a height [m] only."""
    from airworthy.scenes.splats.editing import selected
    from airworthy.scenes.splats.placing import placed

    if not scene.splats:
        return scene
    clouds, items = dict(scene.clouds), []
    for index, item in enumerate(scene.splats):
        if item.attached:
            items.append(item)
            continue
        cloud = placed(scene.clouds[item.cloud], item)
        name = f"{item.cloud} {index} below the roof"
        clouds[name] = selected(cloud, cloud.position[:, 2] < height)
        items.append(SplatPlacement(name, name=item.name))
    return replace(scene, clouds=clouds, splats=tuple(items))


def _span(across: float, up: float) -> tuple[float, float]:
    return MARGIN * max(float(across), 0.1), MARGIN * max(float(up), 0.1)


def _top(scene: Scene) -> Viewpoint:
    low, high = content_box(scene)
    size, center = high - low, 0.5 * (low + high)
    # Above all, so that parallel rays start outside of everything.
    above = np.array([center[0], center[1], max(high[2], scene.bounds.upper[2]) + 1.0])
    return Viewpoint(above, look_at(above, above - [0.0, 0.0, 1.0]), span=_span(size[0], size[1]))


def _start(scene: Scene) -> Viewpoint:
    pose = scene.start
    if pose is None:
        raise AirworthyError(f"Scene {scene.name!r} has no start to look from; choose the view 'top' or 'orbit'.")
    ahead = np.array([math.cos(pose.yaw), math.sin(pose.yaw), 0.0])
    return Viewpoint(np.array(pose.position, float), look_at(pose.position, np.asarray(pose.position) + ahead), 1.4)


def _orbit(scene: Scene) -> Viewpoint:
    """From outside and above, or from an upper corner of a room, whose walls would hide it.

    A captured place is looked at from its start, towards its goal: from outside, and from corners that no camera looked into,
    there is only the back of what was seen.
    """
    if scene.carved is not None and scene.start is not None and scene.goal is not None:
        eye, goal = np.array(scene.start.position, float), np.array(scene.goal.position, float)
        if float(np.linalg.norm(goal - eye)) > 0.1:
            return Viewpoint(eye, look_at(eye, goal), 1.4)
    low, high = content_box(scene)
    size, center = high - low, 0.5 * (low + high)
    if roofless(scene) is not scene:
        corner = np.array([low[0] + 0.06 * size[0], low[1] + 0.06 * size[1], low[2] + 0.85 * size[2]])
        target = np.array([center[0] + 0.15 * size[0], center[1] + 0.15 * size[1], low[2] + 0.25 * size[2]])
        return Viewpoint(corner, look_at(corner, target), 1.6)
    fov = 0.9
    away = np.array([-0.62, -0.62, 0.48])
    attitude = look_at(away, np.zeros(3))
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * np.maximum(size, 0.1)
    x, y, z = frames.rotate_inverse(attitude, corners).T
    slope = math.tan(0.5 * fov)
    # As near as every corner of the box is still in a picture of 16:9.
    distance = float(np.max(np.maximum(np.abs(x), np.abs(y) * 16.0 / 9.0) / slope - z)) * MARGIN
    return Viewpoint(center - frames.rotate(attitude, (0.0, 0.0, distance)), attitude, fov)


def _inside(scene: Scene) -> Viewpoint:
    """From where flights start, the way where most is to be seen, the start's own heading before others; as `_orbit` where
    there is no start, or nothing around it."""
    if scene.start is None or scene.carved is not None:
        return _orbit(scene)
    eye = np.array(scene.start.position, float)
    yaws = scene.start.yaw + 2.0 * math.pi * np.arange(HEADINGS) / HEADINGS
    free = _free(scene, eye, yaws)
    if free.max() < NOTHING:
        return _orbit(scene)
    # A wall in the face is no view, whoever flies towards it.
    if free[0] >= WALL:
        free[0] *= OWN_HEADING
    yaw = float(yaws[int(np.argmax(free))])
    return Viewpoint(eye, look_at(eye, eye + np.array((math.cos(yaw), math.sin(yaw), 0.0))), 1.4)


def _free(scene: Scene, eye: Array, yaws: Array) -> Array:
    """Return how far one sees on average to each heading [m], (headings,); where nothing is, one sees 0 m."""
    from airworthy.geometry import RayTable, cast
    from airworthy.scenes.batch import SceneBatch

    aside = np.linspace(-0.5, 0.5, 9)
    level = np.stack((np.sin(aside), np.zeros_like(aside), np.cos(aside)), axis=-1)[None]
    attitude = np.stack([look_at(eye, eye + np.array((math.cos(yaw), math.sin(yaw), 0.0))) for yaw in yaws.tolist()])
    # Light and what carries it have no part in how far one sees.
    batch = SceneBatch(replace(scene, lights=(), beacons=(), looks=()))
    envs = np.zeros(len(yaws), np.int32)
    far = cast(batch.geometry, RayTable(level), np.tile(eye, (len(yaws), 1)), attitude, envs, ("range",))["range"][:, 0]
    return np.asarray(np.where(np.isinf(far), 0.0, np.minimum(far, SIGHT)).mean(axis=1), np.float64)


def _side(scene: Scene) -> Viewpoint:
    low, high = content_box(scene)
    size, center = high - low, 0.5 * (low + high)
    where = np.array([center[0], low[1] - max(1.0, size[1]), center[2]])
    return Viewpoint(where, look_at(where, center), span=_span(size[0], size[2]))


VIEWS: dict[str, Callable[[Scene], Viewpoint]] = {
    "inside": _inside,
    "orbit": _orbit,
    "top": _top,
    "start": _start,
    "side": _side,
}
"""Views by name: from the start along what is freest, from outside above (or a corner of a room), straight down without the
roof, from the start as it heads, along y."""


def view(scene: Scene, name: str) -> Viewpoint:
    """Return a camera by its name; raises UnknownNameError."""
    if name not in VIEWS:
        raise unknown_name("view", name, VIEWS)
    return VIEWS[name](scene)
