"""Splats as any sensor of `optics.projections`, or any table of rays, sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayIndex, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.lenses import ray_steps
from airworthy.optics.projections import Projection
from airworthy.splats.cameras import CHANNELS, DEPTH_MODES, DILATION
from airworthy.splats.cloud import DynamicSplats
from airworthy.splats.lens import Lens
from airworthy.splats.renderer import SplatRenderer

# ---- Fisheye views that cover the directions of a table of rays, and how the rays are read from them ------------------------

FINER = 2.0
"""Pixels of a view per step from one ray to the next."""
SIZE_MAX = 4096
"""Pixels of a view's side."""
_ONE_VIEW = math.cos(math.radians(80.0))
"""Rays that lie this near to their middle are seen in one view; beyond a fisheye stretches, and two face to face do better."""
_LONE = 1e-3
"""Step between rays where there is one only [rad]."""
# A ray at the border is read from pixels on both sides of it.
_EDGE = 2


@dataclass(frozen=True, eq=False)
class RayView:
    """An equidistant view, and the rays that are read from it."""

    width: int
    height: int
    intrinsics: tuple[float, float, float, float]
    lens: Lens
    turn: Array
    """Quaternion, the view's camera frame to that of the rays."""
    spread: float
    """Variance of the rays' steps in the view's pixels [px^2 per step^2]."""
    rays: ArrayIndex
    """(n,) which of the table's rays, row by row."""
    corners: ArrayIndex
    """(4, n) pixels around each."""
    shares: ArrayF32
    """(4, n) of these."""
    directions: Array
    """Unit directions of all rays (m, 3), in their own frame."""

    def limits(self, distance: ArrayF32) -> ArrayF32:
        """Return distances (c, H, W) of the view's pixels from those of the table's rays (c, m): that of the nearest ray."""
        return distance[:, self._nearest].reshape(len(distance), self.height, self.width)

    @cached_property
    def _nearest(self) -> ArrayIndex:
        from scipy.spatial import cKDTree

        needed, _ = self.lens.pixel_rays(self.width, self.height, self.intrinsics)
        return np.asarray(cKDTree(self.directions).query(frames.rotate(self.turn, needed.reshape(-1, 3)))[1], np.intp)


def ray_views(table: RayTable, shown: ArrayBool | None = None) -> tuple[RayView, ...]:
    """Return views of the rays of a table; `shown` (H, W) says which of them count."""
    directions = table.directions.reshape(-1, 3)
    wanted = np.arange(len(directions)) if shown is None else np.flatnonzero(shown)
    if not len(wanted):
        return ()
    step = _step(table, shown)
    middle = directions[wanted].mean(axis=0)
    middle = middle / max(float(np.linalg.norm(middle)), 1e-12)
    if (directions[wanted] @ middle).min() >= _ONE_VIEW:
        return (_view(directions, wanted, middle, step),)
    axis = table.axis / np.linalg.norm(table.axis)
    front = directions[wanted] @ axis >= 0.0
    halves = ((wanted[front], axis), (wanted[~front], -axis))
    return tuple(_view(directions, some, along, step) for some, along in halves if len(some))


def _step(table: RayTable, shown: ArrayBool | None) -> float:
    """Usual angle from one ray to the next, the smaller of those across and down [rad]."""
    found = []
    for steps in ray_steps(table):
        length = np.linalg.norm(steps, axis=-1)
        length = length if shown is None else length[shown]
        if (length > 1e-9).any():
            found.append(float(np.median(length[length > 1e-9])))
    return min(found, default=_LONE)


def _view(directions: Array, rays: ArrayIndex, along: Array, step: float) -> RayView:
    turn = _looking(along)
    lens = Lens("fisheye")
    image_point, _, _ = lens.unroll(frames.rotate_inverse(turn, directions[rays]))
    low, high = image_point.min(axis=0), image_point.max(axis=0)
    focal = min(FINER / step, (SIZE_MAX - 2 * _EDGE - 2) / max(float((high - low).max()), 1e-9))
    corner = np.floor(low * focal) - _EDGE
    width, height = (int(n) for n in np.ceil(high * focal) + _EDGE - corner)
    u, v = (image_point * focal - corner - 0.5).T
    left, top = np.floor(u).astype(np.intp), np.floor(v).astype(np.intp)
    right, down = u - left, v - top
    corners = np.stack([(top + j) * width + left + i for j in (0, 1) for i in (0, 1)])
    shares = np.stack([(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right])
    pixels = (focal, focal, -float(corner[0]), -float(corner[1]))
    spread = (focal * step) ** 2
    return RayView(width, height, pixels, lens, turn, spread, rays, corners, shares.astype(np.float32), directions)


def _looking(along: Array) -> Array:
    """Attitude of a view along `along`, as upright in the rays' frame as it can be."""
    # The axis that is least along the view cannot be parallel to it.
    side = np.eye(3)[int(np.argmin(np.abs(along)))]
    right = np.cross(side, along)
    right = right / np.linalg.norm(right)
    return np.asarray(frames.from_matrix(np.column_stack([right, np.cross(along, right), along])))


def gathered(view: RayView, images: dict[str, ArrayF32], depth_mode: str) -> dict[str, ArrayF32]:
    """Return what the rays see of a view's images: (c, n, 3) and (c, n).

    Colours and opacities are mixed by area, mean depths by area and opacity; a median depth is that of the nearest pixel.

    Args:
        view: Pixels that each ray looks at, and their shares.
        images: Of the view, by channel.
        depth_mode: `expected` or `median`.
    """
    flat = {name: image.reshape(len(image), -1, *image.shape[3:]) for name, image in images.items()}
    found = {name: _mixed(view, values) for name, values in flat.items() if name != "depth"}
    if "depth" in flat:
        depth = flat["depth"]
        if depth_mode == "median":
            nearest = np.take_along_axis(view.corners, view.shares.argmax(axis=0)[None], axis=0)[0]
            found["depth"] = depth[:, nearest]
        else:
            weight = np.where(np.isfinite(depth), flat["alpha"], np.float32(0.0))
            mass = _mixed(view, weight)
            sums = _mixed(view, weight * np.where(np.isfinite(depth), depth, np.float32(0.0)))
            found["depth"] = np.where(mass > 0.0, sums / np.where(mass > 0.0, mass, np.float32(1.0)), np.float32(np.inf))
    return found


def _mixed(view: RayView, values: ArrayF32) -> ArrayF32:
    shares = view.shares if values.ndim == 2 else view.shares[..., None]
    total = values[:, view.corners[0]] * shares[0]
    for corner, share in zip(view.corners[1:], shares[1:], strict=True):
        total += values[:, corner] * share
    return total


# -----------------------------------------------------------------------------------------------------------------------------

Images = dict[str, ArrayF32]
_SAME = 1e-6
"""Directions and origins that differ by less are the same."""
_FIT = 1e-3
"""Rays that pass this near to the centres of a pinhole's pixels are its rays [px]."""
# Ours: 335 MB of colours, depths and coverage, 20 bytes per pixel, at a time.
_PIXELS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class _Plan:
    """How a sensor is rendered."""

    width: int
    height: int
    start: tuple[float, float, float]
    """Where its rays begin, in their frame [m]."""
    lens: Lens | None = None
    intrinsics: tuple[float, float, float, float] = (1.0, 1.0, 0.0, 0.0)
    turn: Array | None = None
    """From the camera's frame to that of the rays; None: the same."""
    along: Array | None = None
    """(H, W) depth per distance, where depth is not along the camera's axis."""
    shown: ArrayBool | None = None
    """(H, W) which pixels have a ray; None: all."""
    views: tuple[RayView, ...] = ()


_PLANS: WeakKeyDictionary[Any, _Plan] = WeakKeyDictionary()


def render_projection(
    renderer: SplatRenderer,
    projection: Projection | RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    scene: ArrayLike | None = None,
    background: ArrayLike = (0.0, 0.0, 0.0),
    channels: Sequence[str] = CHANNELS,
    depth_mode: str = "expected",
    antialiased: bool = False,
    near: float = 0.05,
    dilation: float = DILATION,
    dynamic_instances: DynamicSplats | None = None,
    limit: ArrayLike | None = None,
    depth_at: str = "mean",
) -> Images:
    """Return images of c sensors of one kind.

    Pinholes, with or without distortion, and fisheyes are rendered as they are, and so is a table whose rays are those of a
    pinhole's pixels (within 0.001 px). For all others one or two fisheye views that cover the rays are rendered, with pixels
    half as wide as the rays are apart, and read between four pixels (bilinear). Where the image has second derivatives I_uu and
    I_vv, u and v in steps of the rays, this changes it by at most (|I_uu| + |I_vv|) / 32: a spot of variance s steps^2 and
    height A by up to A / (16 s), at its peak. Rays that are closer together somewhere than mostly, or would need views of more
    than 4096 pixels, are seen less sharply; at the outlines of what is opaque `limit` is then that of a neighbouring ray.

    Args:
        renderer: Of the clouds.
        projection: The sensor, or the table of its rays.
        position: (c, 3) of the sensors, world [m].
        attitude: (c, 4) or (4,) quaternion x, y, z, w, frame of the rays to world (a camera's: x right, y down, z forward).
        scene: As of `SplatRenderer.render`, and so the others.
        background: Also where a pixel has no ray.
        channels: `rgb`, `depth`, `alpha`; depth is along the axis of the rays' table.
        depth_mode: `expected` or `median`.
        antialiased: Whether narrow Gaussians lose opacity.
        near: [m]
        dilation: Variance by which a pixel's width spreads every Gaussian [px^2 of the sensor].
        dynamic_instances: Before the sensors.
        limit: (c, H, W) depth of something opaque, along the same axis [m].
        depth_at: Depth of a Gaussian: of its `mean`, or of its `plane` where a ray meets it.

    Returns:
        An array (c, H, W, ...) per channel, float32.

    Raises:
        AirworthyError: As `SplatRenderer.render`; or rays start at different places.
    """
    plan = _plan(projection)
    where, turned = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
    if turned.ndim == 1 and where.ndim == 2:
        turned = np.broadcast_to(turned, (len(where), len(turned)))
    if where.shape[1:] != (3,) or turned.shape != (len(where), 4):
        raise AirworthyError(
            f"Sensors got positions of shape {where.shape} and attitudes of shape {turned.shape}; expected (c, 3) and (c, 4)."
        )
    if any(plan.start):
        where = where + frames.rotate(turned, np.array(plan.start))
    if "normal" in channels:
        raise AirworthyError("Normals of splats are in the frame of one camera; ask `SplatRenderer.render` for them.")
    options = {"near": near, "antialiased": antialiased, "depth_mode": depth_mode, "depth_at": depth_at}
    if plan.lens is not None:
        images = _direct(renderer, plan, where, turned, limit, channels, options | {
            "scene": scene, "background": background, "dilation": dilation, "dynamic_instances": dynamic_instances,
        })  # fmt: skip
    else:
        images = _resampled(
            renderer, plan, where, turned, scene, background, channels, dilation, dynamic_instances, limit, options
        )
    if plan.shown is not None:
        _blank(images, ~plan.shown, np.asarray(background, np.float32))
    return images


def _direct(
    renderer: SplatRenderer,
    plan: _Plan,
    where: Array,
    turned: Array,
    limit: ArrayLike | None,
    channels: Sequence[str],
    options: dict[str, Any],
) -> Images:
    if plan.turn is not None:
        turned = frames.multiply(turned, plan.turn)
    if plan.along is not None and limit is not None:
        limit = _distances(np.asarray(limit), plan.along)
    images = renderer.render(
        plan.width, plan.height, plan.intrinsics, where, turned, channels=channels, lens=plan.lens, limit=limit,
        distances=plan.along is not None, **options,
    )  # fmt: skip
    if plan.along is not None and "depth" in images:
        images["depth"] = _depths(images["depth"], plan.along)
    return images


def _resampled(
    renderer: SplatRenderer,
    plan: _Plan,
    where: Array,
    turned: Array,
    scene: ArrayLike | None,
    background: ArrayLike,
    channels: Sequence[str],
    dilation: float,
    dynamic_instances: DynamicSplats | None,
    limit: ArrayLike | None,
    options: dict[str, Any],
) -> Images:
    """From views of their directions."""
    assert plan.along is not None
    if options["depth_mode"] not in DEPTH_MODES:
        raise AirworthyError(f"Unknown depth mode {options['depth_mode']!r}; expected one of {', '.join(DEPTH_MODES)}.")
    count, pixels = len(where), plan.width * plan.height
    needed = tuple(dict.fromkeys((*channels, "alpha"))) if "depth" in channels else tuple(channels)
    found = {name: np.empty((count, pixels, 3) if name == "rgb" else (count, pixels), np.float32) for name in needed}
    far = None if limit is None else _distances(np.asarray(limit), plan.along).reshape(count, pixels)
    colour = np.broadcast_to(np.asarray(background, np.float64), (count, 3))
    numbers = None if scene is None else np.broadcast_to(np.asarray(scene), (count,))
    # As `SplatRenderer.render` would choose; said here because it is given some cameras at a time.
    if numbers is None and renderer.scene_count > 1:
        numbers = np.arange(count)
    for view in plan.views:
        size = max(1, _PIXELS_AT_ONCE // (view.width * view.height))
        for first in range(0, count, size):
            some = slice(first, min(first + size, count))
            images = renderer.render(
                view.width, view.height, view.intrinsics, where[some], frames.multiply(turned[some], view.turn),
                scene=None if numbers is None else numbers[some], background=colour[some], channels=needed, lens=view.lens,
                dilation=min(dilation * view.spread, 1e3), limit=None if far is None else view.limits(far[some]),
                dynamic_instances=None if dynamic_instances is None else dynamic_instances.part(some), distances=True,
                **options,
            )  # fmt: skip
            for name, values in gathered(view, images, options["depth_mode"]).items():
                found[name][some, view.rays] = values
    shape = (count, plan.height, plan.width)
    images = {name: found[name].reshape((*shape, 3) if name == "rgb" else shape) for name in dict.fromkeys(channels)}
    if "depth" in images:
        images["depth"] = _depths(images["depth"], plan.along)
    return images


def _distances(depth: ArrayAny, along: Array) -> ArrayF32:
    """Distances along rays of depths along the axis."""
    if depth.shape[1:] != along.shape or depth.dtype.kind != "f":
        raise AirworthyError(f"`limit` is of {depth.dtype}, shape {depth.shape}; expected depths (c, {along.shape}) in metres.")
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(np.isinf(depth) | (np.abs(along) < 1e-9), np.inf, depth / along)
    return np.asarray(found, np.float32)


def _depths(distance: ArrayF32, along: Array) -> ArrayF32:
    needed = np.isfinite(distance)
    return np.where(needed, np.where(needed, distance, 0.0) * along, np.inf).astype(np.float32)


def _blank(images: Images, where: ArrayBool, background: ArrayF32) -> None:
    for name, image in images.items():
        if name == "rgb":
            image[:, where] = background if background.ndim == 1 else background[:, None]
        else:
            image[:, where] = np.inf if name == "depth" else 0.0


def _plan(projection: Projection | RayTable) -> _Plan:
    found = _PLANS.get(projection)
    if found is None:
        found = _PLANS[projection] = _made(projection)
    return found


def _made(projection: Projection | RayTable) -> _Plan:
    size = projection.width, projection.height
    described = None if isinstance(projection, RayTable) else Lens.of(projection)
    if described is not None and not isinstance(projection, RayTable):
        lens, pixels = described
        return _Plan(*size, (0.0, 0.0, 0.0), lens, pixels, shown=projection.mask())
    shown = None if isinstance(projection, RayTable) else projection.mask()
    table = projection if isinstance(projection, RayTable) else projection.rays()
    start = _start(table)
    along = table.directions @ table.axis
    for turn in (None, np.array(frames.BODY_FROM_CAMERA)):
        rays = table.directions if turn is None else frames.rotate_inverse(turn, table.directions)
        fitted = pinhole_of(rays)
        if fitted is not None:
            same = np.abs(along - rays[..., 2]).max() < _SAME
            return _Plan(*size, start, Lens(), fitted, turn, None if same else along, shown)
    return _Plan(*size, start, along=along, shown=shown, views=ray_views(table, shown))


def _start(table: RayTable) -> tuple[float, float, float]:
    if table.origins is None:
        return (0.0, 0.0, 0.0)
    if np.ptp(table.origins, axis=(0, 1)).max() > _SAME:
        raise AirworthyError(
            "Splats cannot be rendered along rays that start at different places; give a table of rays with one origin."
        )
    x, y, z = (float(v) for v in table.origins[0, 0])
    return x, y, z


def pinhole_of(rays: Array) -> tuple[float, float, float, float] | None:
    """Return intrinsics fx, fy, cx, cy of the pinhole whose pixels' rays (H, W, 3) these are; None: of none."""
    height, width = rays.shape[:2]
    if height * width < 2 or not (rays[..., 2] > 1e-3).all():
        return None
    flat = rays[..., :2] / rays[..., 2:]
    wide, tall = float(flat[0, -1, 0] - flat[0, 0, 0]), float(flat[-1, 0, 1] - flat[0, 0, 1])
    fx = (width - 1) / wide if width > 1 and wide > 0.0 else 0.0
    fy = (height - 1) / tall if height > 1 and tall > 0.0 else 0.0
    fx, fy = fx or fy, fy or fx
    if fx <= 0.0 or fy <= 0.0:
        return None
    u, v = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, None]
    cx, cy = float(np.mean(u - fx * flat[..., 0])), float(np.mean(v - fy * flat[..., 1]))
    off = max(np.abs(fx * flat[..., 0] + cx - u).max(), np.abs(fy * flat[..., 1] + cy - v).max())
    return (fx, fy, cx, cy) if off <= _FIT else None
