"""A box of a room whose depths are known in closed form, and as splats: what carving and places are tested with."""

from __future__ import annotations

import numpy as np

from airworthy.capture import CaptureImages
from airworthy.capture.places.depth_views import DepthViews
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.scenes.splats.record import C0, Splats
from airworthy.scenes.viewpoints import look_at
from airworthy.splats import SplatRenderer

LOW, HIGH = np.array([-2.0, -1.5, 0.0]), np.array([2.0, 1.5, 2.4])
"""Of the room [m]."""
PILLAR = np.array([0.4, 0.2, 0.0]), np.array([0.8, 0.6, 2.4])
"""A closed box that stands in it."""
WIDTH, HEIGHT, LENS = 96, 64, np.array([55.0, 55.0, 48.0, 32.0])


def poses(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Free places in the room, looking all around, a little up or down: positions (n, 3) and attitudes (n, 4)."""
    rng = np.random.default_rng(seed)
    eye = rng.uniform(LOW + 0.4, HIGH - 0.4, (4 * count, 3))
    free = (eye[:, :2] < PILLAR[0][:2] - 0.3).any(axis=1) | (eye[:, :2] > PILLAR[1][:2] + 0.3).any(axis=1)
    eye = eye[free][:count]
    yaw = 2.399963 * np.arange(count)
    pitch = rng.uniform(-0.5, 0.5, count)
    ahead = np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], axis=1)
    return eye, np.stack([look_at(np.zeros(3), one) for one in ahead])


def depth_of(eye: Array, attitude: Array, window: tuple[Array, Array] | None = None, ceiling: float = HIGH[2]) -> Array:
    """Depth (HEIGHT, WIDTH) along the optical axis of what a camera in the room sees [m].

    Args:
        eye: World [m], (3,).
        attitude: (4,) camera to world.
        window: Opening in the wall at the highest x, lower and upper corner (y, z); 3 m behind it all ends. None: none.
        ceiling: Height at which rays end upwards [m].
    """
    u, v = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    ray = frames.rotate(attitude, np.stack([(u - LENS[2]) / LENS[0], (v - LENS[3]) / LENS[1], np.ones_like(u)], -1))
    with np.errstate(divide="ignore"):
        far = np.where(ray > 0.0, (np.array([*HIGH[:2], ceiling]) - eye) / ray, (LOW - eye) / ray)
        enter, leave = (np.sort(np.stack([(corner - eye) / ray for corner in PILLAR]), axis=0)[k] for k in (0, 1))
    depth = far.min(axis=-1)
    if window is not None:
        at = eye + ray * depth[..., None]
        opening = (far.argmin(axis=-1) == 0) & (ray[..., 0] > 0.0)
        opening &= (at[..., 1:] > window[0]).all(axis=-1) & (at[..., 1:] < window[1]).all(axis=-1)
        depth = np.where(opening, (HIGH[0] + 3.0 - eye[0]) / np.where(opening, ray[..., 0], 1.0), depth)
    first, last = enter.max(axis=-1), leave.min(axis=-1)
    return np.asarray(np.where((first < last) & (first > 0.0), first, depth))


def exact_views(
    count: int = 40, seed: int = 0, window: tuple[Array, Array] | None = None, ceiling: float = HIGH[2]
) -> DepthViews:
    """Exact depths of the room, all certain."""
    eye, attitude = poses(count, seed)
    depth = tuple(depth_of(*one, window, ceiling).astype(np.float32) for one in zip(eye, attitude, strict=True))
    return DepthViews(depth, depth, np.tile(LENS, (count, 1)), eye, attitude)


def wall_points(spacing: float = 0.1) -> Array:
    """Points (n, 3) all over walls and floor of the room, up to the ceiling's edge; none on the ceiling itself."""
    x, y, z = (np.linspace(low, high, round((high - low) / spacing) + 1) for low, high in zip(LOW, HIGH, strict=True))
    sides = [(x, y, LOW[2:]), (x, LOW[1:2], z), (x, HIGH[1:2], z), (LOW[:1], y, z), (HIGH[:1], y, z)]
    return np.concatenate([np.stack(np.meshgrid(*side), -1).reshape(-1, 3) for side in sides])


def room_splats(spacing: float = 0.08) -> Splats:
    """The room's and the pillar's surfaces as flat opaque gaussians in colours that change from place to place."""
    parts, turns = [], []
    for low, high in ((LOW, HIGH), PILLAR):
        for axis in range(3):
            rest = [k for k in range(3) if k != axis]
            lines = [np.arange(low[k] + 0.5 * spacing, high[k], spacing) for k in rest]
            grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 2)
            for side in (low[axis], high[axis]):
                at = np.full((len(grid), 3), side)
                at[:, rest] = grid
                parts.append(at)
                turns.append(np.full(len(grid), axis))
    at, axis = np.concatenate(parts), np.concatenate(turns)
    scale = np.full((len(at), 3), 0.6 * spacing)
    scale[np.arange(len(at)), axis] = 0.004
    shade = 0.5 + 0.4 * np.stack([np.sin(3.0 * at[:, 0] + at[:, 1]), np.cos(4.0 * at[:, 1]), np.sin(5.0 * at[:, 2])], -1)
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (len(at), 1))
    return Splats(at, turn, scale, np.full(len(at), 0.97), ((shade - 0.5) / C0)[:, None])


def room_capture(splats: Splats, count: int = 40) -> CaptureImages:
    """Images of the room from all around, every fifth held out; its points are some of the gaussians' means."""
    eye, attitude = poses(count)
    images = SplatRenderer(splats).render(WIDTH, HEIGHT, LENS, eye, attitude, channels=("rgb",))["rgb"]
    # Noise as of a telephone's photographs in a room, 34 dB: what a gaussian adds is worth nothing far below it.
    noisy = 255.0 * images + np.random.default_rng(2).normal(0.0, 5.0, images.shape)
    pixels = tuple((image.clip(0.0, 255.0) + 0.5).astype(np.uint8) for image in noisy)
    held = np.arange(count) % 5 == 4
    points = splats.position[::7].astype(np.float64)
    return CaptureImages(pixels, np.tile(LENS, (count, 1)), eye, attitude, held_out=held, points=points, metric=True)
