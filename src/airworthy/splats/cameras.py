"""Cameras as rows of the kernels: poses, lenses, and the clouds that stand before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.splats.cloud import DynamicSplats, rotation_matrices
from airworthy.splats.lens import Lens
from airworthy.splats.native_text import CAMERA, FLAGS

__all__ = [
    "CHANNELS",
    "DEPTH_MODES",
    "DILATION",
    "SIDE_MARGIN",
    "CameraView",
    "RenderRequest",
    "camera_view",
    "gradient_request",
    "slope_limits",
]


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a larger image: what is rendered is that part, pixel for pixel."""

    width: int
    """Of the larger image [px]; intrinsics are its."""
    height: int
    corner: ArrayLike
    """(2,) or (c, 2) column and row of the larger image at which the part begins."""


# Source: the rasteriser of 3D Gaussian splatting (1.3 times the half image), and gsplat after it.
SIDE_MARGIN = 0.15
"""Part of the image, beyond its edges, up to which a Gaussian's projection is linearised at its own mean; one farther out is
linearised there, or its image would grow without bound towards the plane of the camera."""
# Ours: float32 keeps 6 cm there; scenes lie orders of magnitude nearer.
POSITION_LIMIT = 1e6
_SAMPLES = 33

CHANNELS = ("rgb", "depth", "alpha")
MORE_CHANNELS = ("normal",)
"""Delivered where they are asked for by name."""
DEPTH_MODES = ("expected", "median")
DEPTH_PLACES = ("mean", "plane")
DILATION = 0.3
"""Variance that the width of a pixel adds to every Gaussian in the image [px^2]."""
SIZE_LIMIT = 8192
NEAR_LIMITS = (1e-4, 1e3)
PINHOLE = Lens()


@dataclass(frozen=True, eq=False)
class RenderRequest:
    """What a splat renderer is asked for: c cameras, and how they see. `camera_view` checks it.

    A frozen record, so that the renderers, their derivatives and the back ends spell its fields once.
    """

    width: int
    """Of the images [px]."""
    height: int
    """Of the images [px]."""
    intrinsics: ArrayLike
    """(c, 4) or (4,) fx, fy, cx, cy [px], the upper left corner of the image being (0, 0)."""
    position: ArrayLike
    """(c, 3) of the cameras, world [m]."""
    attitude: ArrayLike
    """(c, 4) or (4,) quaternion x, y, z, w, camera (x right, y down, z forward) to world."""
    scene: ArrayLike | None = None
    """(c,) which scene each camera sees, -1: none; None: all the only one, or camera k scene k."""
    background: ArrayLike = (0.0, 0.0, 0.0)
    """(3,) or (c, 3) colour where nothing is."""
    antialiased: bool = False
    """Whether a Gaussian narrower than a pixel loses opacity as it is widened to one (for clouds trained so)."""
    near: float = 0.05
    """Means nearer than this along the axis are not seen [m]."""
    channels: Sequence[str] = CHANNELS
    """What to deliver; beside these three `normal`."""
    depth_mode: str = "expected"
    """`expected` or `median`."""
    dilation: float = DILATION
    """Variance by which a pixel's width spreads every Gaussian [px^2]."""
    lens: Lens | None = None
    """How the cameras bend rays; None: a pinhole. A fisheye sorts by distance instead of depth."""
    dynamic_instances: DynamicSplats | None = None
    """Clouds that stand or move before the cameras, beside the scene; all are sorted together."""
    limit: ArrayLike | None = None
    """(c, H, W) depth of something opaque [m]; Gaussians whose mean is beyond it are not blended. What is there is then seen by
    (1 - alpha)."""
    distances: bool = False
    """Whether `depth` and `limit` are distances along the pixels' rays instead."""
    window: Window | None = None
    """The larger image of which this is a part; None: it is whole."""
    reduced: tuple[float, float] | None = None
    """What a camera's image is resized by, across and down (0.5: to half as many pixels): Gaussians are spread by the camera's
    pixels, and then, keeping their light, by an antialiased linear filter, so that the image is what resizing the camera's
    gives. None: the pixels are the camera's."""
    depth_at: str = "mean"
    """Depth of a Gaussian at a pixel: of its `mean`, or where the pixel's ray meets its `plane`: where it is densest along
    the ray, by the lens' derivative at the mean. Order and limit are those of means in any case."""


_NOT_DIFFERENTIATED = ("depth_mode", "distances", "window", "reduced")


def gradient_request(*camera: Any, **options: Any) -> RenderRequest:
    """Return the request of a call of `gradients`: the three channels and those that are asked for, depths `expected`.

    Args:
        camera: Fields of `RenderRequest` in their order, `near` the last.
        options: The others, by name.

    Raises:
        TypeError: One of them is not an argument of `gradients`.
    """
    named = [name for name in _NOT_DIFFERENTIATED if name in options]
    if named or len(camera) > 9:  # behind `near` the order of the fields is that of `render`
        raise TypeError(f"gradients() takes nine positional arguments after the loss, and no {', '.join(named) or 'more'}")
    options["channels"] = (*CHANNELS, *options.get("channels", ()))
    return RenderRequest(*camera, **options)


def camera_rows(spans: NDArray[np.int32], asked: RenderRequest) -> tuple[NDArray[np.void], int]:
    """Return rows of `CAMERA`, those of the images and then those of their dynamic instances, and how many images there are.

    Raises:
        AirworthyError: If something does not fit.
    """
    lens, window = asked.lens or PINHOLE, asked.window
    where = values("position", asked.position, 3)
    count = len(where)
    turned, pixels = values("attitude", asked.attitude, 4, count), values("intrinsics", asked.intrinsics, 4, count)
    behind = values("background", asked.background, 3, count)
    if not (np.abs(where) <= POSITION_LIMIT).all():
        raise AirworthyError(f"A camera's position is beyond {POSITION_LIMIT:g} m.")
    if not (pixels[:, :2] > 0.0).all():
        raise AirworthyError("A focal length is not above 0; expected fx, fy, cx, cy in pixels.")
    norm = np.linalg.norm(turned, axis=1, keepdims=True)
    if not (norm > 1e-9).all():
        raise AirworthyError("A camera's attitude is a quaternion of zeros; expected x, y, z, w.")
    rotation = rotation_matrices(turned / norm).swapaxes(1, 2)
    rows = np.zeros(count, CAMERA)
    rows["rotation"], rows["position"] = rotation.reshape(count, 9), where
    rows["intrinsics"], rows["background"] = pixels, behind
    if window is None:
        _set_lens(rows, asked.width, asked.height, pixels, lens)
    else:
        _set_lens(rows, window.width, window.height, pixels, lens)
        rows["intrinsics"][:, 2:] = pixels[:, 2:] - values("corners of windows", window.corner, 2, count)
    numbers = _scene_numbers(asked.scene, count, len(spans))
    rows["first_chunk"], rows["chunk_count"] = np.where(numbers[:, None] < 0, 0, spans[numbers]).T
    rows["slot_count"] = rows["chunk_count"]
    if asked.dynamic_instances is not None:
        rows = _with_dynamic_instances(rows, spans, where, rotation, asked.dynamic_instances)
    return rows, count


def _with_dynamic_instances(
    rows: NDArray[np.void],
    spans: NDArray[np.int32],
    where: Array,
    rotation: Array,
    dynamic_instances: DynamicSplats,
) -> NDArray[np.void]:
    count = len(rows)
    if dynamic_instances.camera_count != count:
        raise AirworthyError(
            f"Dynamic instances are for {dynamic_instances.camera_count} cameras, and {count} were given; expected one row"
            " each."
        )
    camera, cloud, inside, turned = dynamic_instances.views(where, rotation)
    if len(cloud) and not (cloud.min() >= 0 and cloud.max() < len(spans)):
        raise AirworthyError(f"Dynamic instances name clouds {cloud.min()} to {cloud.max()}; expected 0 to {len(spans) - 1}.")
    more = rows[camera]
    more["rotation"], more["position"] = turned.reshape(-1, 9), inside
    more["first_chunk"], more["chunk_count"] = spans[cloud].T
    each = np.bincount(camera, minlength=count)
    first = np.concatenate([[0], np.cumsum(each)])
    # In 64 bits: many images of many chunks pass 2^31.
    chunks = np.concatenate([[0], np.cumsum(more["chunk_count"].astype(np.int64))])
    more["slot"] = rows["chunk_count"][camera] + chunks[:-1] - chunks[first[camera]]
    rows["more_first"], rows["more_count"] = count + first[:-1], each
    rows["slot_count"] = rows["chunk_count"] + chunks[first[1:]] - chunks[first[:-1]]
    return np.concatenate([rows, more])


def part_of(images: NDArray[np.void], rows: NDArray[np.void], some: slice) -> NDArray[np.void]:
    """Return rows of some of the images, with those of their dynamic instances among all rows.

    Args:
        images: Rows of all images.
        rows: Rows of all images, then of all their dynamic instances.
        some: Which images, neighbours.
    """
    part = images[some]
    if not part["more_count"].any():
        return part
    begin, last = int(part["more_first"][0]), int(part["more_first"][-1] + part["more_count"][-1])
    part = part.copy()
    # Rows of dynamic instances follow those of the images, of which there are fewer now.
    part["more_first"] += len(part) - begin
    return np.concatenate([part, rows[begin:last]])


def _set_lens(rows: NDArray[np.void], width: int, height: int, pixels: Array, lens: Lens) -> None:
    if lens.straight:
        rows["slopes"] = slope_limits(width, height, pixels)
        return
    # A lens is sampled once for each kind of camera, not for each camera.
    kinds, which = np.unique(pixels, axis=0, return_inverse=True)
    found = [lens_numbers(lens, width, height, tuple(kind.tolist())) for kind in kinds]
    which = which.reshape(-1)
    for name in ("slopes", "field", "least_gain", "steepest"):
        rows[name] = np.array([one[name] for one in found])[which] if len(rows) else 0.0
    rows["lens"], rows["lens_limit"] = lens.numbers, lens.limit


def slope_limits(width: int, height: int, pixels: Array) -> Array:
    """Return ray slopes x_low, x_high, y_low, y_high (c, 4) between which projections of a pinhole are linearised at the mean.

    Args:
        width: Of the images [px].
        height: Of the images [px].
        pixels: fx, fy, cx, cy (c, 4) [px].
    """
    size = np.array([width, height], np.float64)
    # Beyond the image by a margin: Gaussians whose middle is outside may reach into it, but far out the linearisation explodes.
    low = (-SIDE_MARGIN * size - pixels[:, 2:]) / pixels[:, :2]
    high = ((1.0 + SIDE_MARGIN) * size - pixels[:, 2:]) / pixels[:, :2]
    return np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=1)


@lru_cache(maxsize=64)
def lens_numbers(lens: Lens, width: int, height: int, pixels: tuple[float, ...]) -> dict[str, Any]:
    """Return what the kernels need to know of a lens that is not straight, before one camera.

    `slopes`: as of `slope_limits`, of the undistorted image; `field`: the image's greatest distance from the principal point
    [px]; `least_gain` and `steepest`: the least that a slope or an angle becomes in pixels, and the most that a length over its
    distance becomes, by which chunks are culled.

    Args:
        lens: Not straight.
        width: Of the images [px].
        height: Of the images [px].
        pixels: fx, fy, cx, cy [px].
    """
    focal, centre, size = np.array(pixels[:2]), np.array(pixels[2:]), np.array([width, height], np.float64)
    # The farthest point of a rectangle from any point is a corner.
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * size - centre
    field = float(np.linalg.norm(corners, axis=1).max())
    if lens.model == "fisheye":
        angle = np.linspace(1e-3, lens.limit, 256)
        image_point, derivative, _ = lens.unroll(np.stack([np.sin(angle), 0.0 * angle, np.cos(angle)], axis=1))
        gain, steep = (image_point[:, 0] / angle).min(), np.linalg.norm(derivative, 2, axis=(1, 2)).max()
        slopes = np.zeros(4)
    else:
        slopes = _opencv_limits(lens, size, focal, centre)
        low_x, high_x, low_y, high_y = slopes.tolist()
        x, y = np.meshgrid(np.linspace(low_x, high_x, _SAMPLES), np.linspace(low_y, high_y, _SAMPLES))
        held = np.stack([x, y], axis=-1).reshape(-1, 2)
        steep = (np.linalg.norm(lens.slopes(held), 2, axis=(1, 2)) * np.sqrt(1.0 + (held * held).sum(axis=1))).max()
        turn, radius = np.linspace(0.0, 2.0 * np.pi, _SAMPLES), np.linspace(1e-3, lens.limit, 256)[:, None]
        ring = np.stack([np.cos(turn) * radius, np.sin(turn) * radius], axis=-1)
        gain = (np.linalg.norm(lens.bend(ring), axis=-1) / radius).min()
    # Sampled, hence margins; both are only used to leave out what cannot be seen.
    return {
        "slopes": slopes,
        "field": field + 1.0,
        "least_gain": 0.95 * float(focal.min()) * float(gain),
        "steepest": 1.1 * float(focal.max()) * float(steep),
    }


def _opencv_limits(lens: Lens, size: Array, focal: Array, centre: Array) -> Array:
    """Slopes between which the lens' images of what is around the picture lie; where it has none, up to its limit."""
    share = np.linspace(-SIDE_MARGIN, 1.0 + SIDE_MARGIN, _SAMPLES)
    low, high = np.full(_SAMPLES, share[0]), np.full(_SAMPLES, share[-1])
    edge = np.concatenate([np.stack(side, axis=-1) for side in ((share, low), (share, high), (low, share), (high, share))])
    image_point = (edge * size - centre) / focal
    rays, known = lens.rays(image_point)
    slope = np.where(
        known[:, None], rays[:, :2] / rays[:, 2:], lens.limit * image_point / np.linalg.norm(image_point, axis=1, keepdims=True)
    )
    return np.stack([slope.min(axis=0), slope.max(axis=0)], axis=1).reshape(-1)


def values(name: str, value: ArrayLike, size: int, count: int | None = None) -> Array:
    """Return (count, size) from that, or, for all cameras, from (size,).

    Args:
        name: Of the argument, for messages.
        value: As it was given.
        size: Numbers per camera.
        count: Cameras; None: as many as there are rows.

    Raises:
        AirworthyError: If the shape is another or a number is not finite.
    """
    array = np.asarray(value, np.float64)
    if array.ndim == 1 and count is not None:
        array = np.broadcast_to(array, (count, len(array)))
    if array.ndim != 2 or array.shape[1] != size or (count is not None and len(array) != count):
        wanted = f"({'c' if count is None else count}, {size})"
        raise AirworthyError(f"Cameras got {name} of shape {np.shape(value)}; expected {wanted}, one row per camera.")
    if not np.isfinite(array).all():
        raise AirworthyError(f"Cameras got {name} that is not finite.")
    return array


def _scene_numbers(scene: ArrayLike | None, count: int, scene_count: int) -> ArrayAny:
    if scene is None:
        if scene_count not in (1, count):
            raise AirworthyError(f"{count} cameras arrived for {scene_count} scenes; give `scene`, one number per camera.")
        return np.zeros(count, np.int64) if scene_count == 1 else np.arange(count)
    numbers = np.broadcast_to(np.asarray(scene), (count,)) if np.ndim(scene) == 0 else np.asarray(scene)
    if numbers.shape != (count,) or not np.issubdtype(numbers.dtype, np.integer):
        raise AirworthyError(
            f"`scene` is an array of {numbers.dtype}, shape {numbers.shape}; expected whole numbers ({count},)."
        )
    if count and not (numbers.min() >= -1 and numbers.max() < scene_count):
        raise AirworthyError(
            f"`scene` names scenes {numbers.min()} to {numbers.max()}; expected 0 to {scene_count - 1}, or -1 for none."
        )
    return numbers


# ---- What a splat renderer is asked for, checked ----------------------------------------------------------------------------


@dataclass(frozen=True)
class CameraView:
    """One call, checked."""

    width: int
    height: int
    flags: int
    channels: tuple[str, ...]
    near: float
    dilation: float
    cameras: NDArray[np.void]
    """Rows of `CAMERA`: one per image, then those of dynamic instances."""
    count: int
    """Images."""
    stride: int
    """Slots of each image: chunks of all that may be before it."""
    limit: ArrayF32 | None = None
    """(c, H, W) of what the kernels sort by: depth, of a fisheye distance; beyond it nothing is blended [m]."""
    scale: Array | None = None
    """(c or 1, H, W) the depths to deliver, per what the kernels sort by; None: 1."""

    def part(self, some: slice) -> CameraView:
        """Return some of the images, neighbours."""
        if some == slice(0, self.count):
            return self
        limit = None if self.limit is None else self.limit[some]
        scale = self.scale if self.scale is None or len(self.scale) == 1 else self.scale[some]
        rows = part_of(self.cameras[: self.count], self.cameras, some)
        return replace(self, cameras=rows, count=some.stop - some.start, limit=limit, scale=scale)


def camera_view(spans: NDArray[np.int32], request: RenderRequest) -> CameraView:
    """Check what is asked of a renderer.

    Args:
        spans: First chunk and number of chunks of each scene, (scenes, 2).
        request: What is asked for.

    Raises:
        AirworthyError: If something does not fit.
    """
    width, height, dilation = request.width, request.height, request.dilation
    if not (1 <= width <= SIZE_LIMIT and 1 <= height <= SIZE_LIMIT):
        raise AirworthyError(f"An image of {width} x {height} pixels was asked for; expected 1 to {SIZE_LIMIT} each way.")
    if not NEAR_LIMITS[0] <= request.near <= NEAR_LIMITS[1]:
        raise AirworthyError(f"`near` is {request.near}; expected {NEAR_LIMITS[0]:g} to {NEAR_LIMITS[1]:g} m.")
    if not 1e-3 <= dilation <= 1e3:
        raise AirworthyError(f"`dilation` is {dilation}; expected 0.001 to 1000 px^2.")
    for name in request.channels:
        if name not in (*CHANNELS, *MORE_CHANNELS):
            raise unknown_name("channel", name, (*CHANNELS, *MORE_CHANNELS))
    if request.depth_mode not in DEPTH_MODES:
        raise unknown_name("depth mode", request.depth_mode, DEPTH_MODES)
    if request.depth_at not in DEPTH_PLACES:
        raise unknown_name("place of depth", request.depth_at, DEPTH_PLACES)
    lens, channels = request.lens or PINHOLE, tuple(dict.fromkeys(request.channels))
    cameras, count = camera_rows(spans, request)
    flags = _flags(request, lens, channels)
    if request.reduced is not None:
        cameras["kept"], cameras["spread"] = reduced_spread(request.reduced, dilation)
        dilation = float(cameras["spread"].max(initial=dilation))
    asked = CameraView(
        width, height, flags, channels, float(request.near), float(dilation), cameras, count,
        _stride(int(spans[:, 1].max()), cameras[:count]),
    )  # fmt: skip
    # The kernels sort by depth, of a fisheye by distance: only where the other one is wanted there is something to convert.
    other = request.distances != (lens.model == "fisheye") and (request.limit is not None or "depth" in channels)
    scale = _scale(asked, lens, request.distances) if other else None
    return replace(asked, limit=None if request.limit is None else _limit(asked, request.limit, scale), scale=scale)


def _flags(request: RenderRequest, lens: Lens, channels: tuple[str, ...]) -> int:
    flags = sum(FLAGS[name] for name in channels) | FLAGS["antialiased"] * bool(request.antialiased)
    flags |= FLAGS[request.depth_mode] * ("depth" in channels) | FLAGS["limit"] * (request.limit is not None)
    flags |= FLAGS["plane"] * (request.depth_at == "plane" and "depth" in channels)
    flags |= 0 if lens.straight else FLAGS[lens.model]
    return flags | FLAGS["reduced"] * (request.reduced is not None)


def image_shape(channel: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a channel's images (c, H, W), or (c, H, W, 3) of what has three numbers per pixel."""
    return (*shape, 3) if channel in ("rgb", "normal") else shape


def reduced_spread(reduced: tuple[float, float], dilation: float) -> tuple[Array, Array]:
    """Return variances across and down [px^2] by which an image that was reduced has spread Gaussians: by the camera's pixels,
    in all.

    The filter is a triangle that ends where the next pixels' centres are (of the camera's pixels, where these are wider): its
    variance is a sixth of the square of that.
    """
    share = np.asarray(reduced, np.float64)
    if share.shape != (2,) or not ((share > 1e-3) & (share < 1e3)).all():
        raise AirworthyError(f"`reduced` is {reduced}; expected two factors, of the width and the height, 0.001 to 1000.")
    kept = dilation * share**2
    return kept, kept + np.maximum(1.0, share) ** 2 / 6.0


def _stride(most: int, images: NDArray[np.void]) -> int:
    """Slots per image; beyond a whole scene in few sizes: memory and launches stay when dynamic instances come and go."""
    needed = int(images["slot_count"].max(initial=0))
    if needed <= most:
        return most
    step = max(8, 1 << max(needed.bit_length() - 3, 0))
    return -(-needed // step) * step


def _scale(asked: CameraView, lens: Lens, distances: bool) -> Array:
    """Distances along rays per depth along the axis, or the other way round."""
    kinds, which = np.unique(asked.cameras["intrinsics"][: asked.count], axis=0, return_inverse=True)
    kinds = kinds.astype(np.float64)
    found = np.stack([lens.pixel_rays(asked.width, asked.height, kind)[0][..., 2] for kind in kinds] or [np.zeros((0, 0))])
    found = found if len(kinds) <= 1 else found[which.reshape(-1)]
    return 1.0 / found if distances else found


def _limit(asked: CameraView, limit: ArrayLike, scale: Array | None) -> ArrayF32:
    shape = (asked.count, asked.height, asked.width)
    given = np.asarray(limit)
    if given.shape != shape or given.dtype.kind != "f" or np.isnan(given).any():
        raise AirworthyError(
            f"`limit` is of {given.dtype}, shape {given.shape}; expected depths {shape} in metres, +inf where nothing is."
        )
    if scale is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            given = np.where(np.isinf(given), given, given / scale)
    return np.ascontiguousarray(given, np.float32)
