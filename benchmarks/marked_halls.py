"""Rendered photographs of a hall with a marker on its floor, and where they were taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.similarity import Similarity
from airworthy.capture.record import CaptureImages
from airworthy.capture.rendering import camera_poses
from airworthy.core import frames
from airworthy.geometry import Mesh
from airworthy.optics.projections import Pinhole
from airworthy.rendering.converting import display_color, lit_batch
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes import Instance, Material, Scene, SceneBatch, Texture, scene
from airworthy.scenes.viewpoints import look_at

RAISED = 0.003
"""Of the sheet above the floor [m], so that both are not at the same place."""


@dataclass(frozen=True, eq=False)
class MarkedHall:
    """A capture of a hall, in a frame and unit of its own."""

    images: CaptureImages
    truth: Similarity
    """From there to the frame of the marker: its centre, z up."""
    widths: np.ndarray
    """(n,) of the marker in the images that look at it [px]; what hides it is not regarded."""


def marked_hall(
    name: str, side: float = 0.16, views: int = 40, width: int = 640, seed: int = 0, far: float = 3.5
) -> MarkedHall:
    """Return views of a scene with a marker on its floor; half of them look at it.

    Args:
        name: Of the scene.
        side: Of the marker's black square [m].
        views: Images.
        width: Of the images [px]; they are 16 to 9.
        seed: Of the places.
        far: Largest distance of those that look at the marker [m].
    """
    rng, plain = np.random.default_rng(seed), scene(name)
    batch = lit_batch(plain, baked=False)
    position, attitude = camera_poses(batch, "", 40 * views)
    middle = _on_floor(batch, np.median(position[:, :2], axis=0))
    turn = frames.from_euler(0.0, 0.0, float(rng.uniform(-np.pi, np.pi)))
    flat = np.linalg.norm(position[:, :2] - middle[:2], axis=-1)
    near = np.flatnonzero((flat > 0.7) & (flat < far) & (position[:, 2] > 0.9) & (position[:, 2] < 2.3))[: views // 2]
    rest = np.setdiff1d(np.arange(len(position)), near)[: views - len(near)]
    looking = [look_at(position[k], middle + rng.uniform(-0.3, 0.3, 3)) for k in near]
    position = np.concatenate((position[near], position[rest]))
    attitude = np.concatenate((np.array(looking).reshape(-1, 4), attitude[rest]))
    lens = Pinhole.from_fov(width, width * 9 // 16, horizontal=1.2)
    rgb, points = _photographs(marked(plain, middle, turn, side), position, attitude, lens, rng)
    true = Similarity(frames.conjugate(turn), -frames.rotate_inverse(turn, middle), 1.0)
    intrinsics = np.tile((lens.fx, lens.fy, lens.cx, lens.cy), (len(position), 1))
    images = CaptureImages(rgb, intrinsics, position, attitude, points=points)
    corners = frames.rotate(turn, marker_corners(side)) + middle
    eye = frames.rotate_inverse(attitude[: len(near), None], corners - position[: len(near), None])
    pixel = eye[..., :2] / eye[..., 2:] * lens.fx
    return _lost(images, true, np.linalg.norm(pixel - np.roll(pixel, 1, axis=1), axis=-1).mean(axis=-1), rng)


def _on_floor(batch: SceneBatch, place: np.ndarray) -> np.ndarray:
    """Return the point (3,) on what lies below a place (2,), mats and all."""
    above, lens = np.append(place, 1.0), Pinhole.from_fov(8, 8, horizontal=0.05)
    down = look_at(above, above - (0.0, 1e-6, 1.0))
    depth = render(batch, lens.rays(), above[None], down[None], np.zeros(1, np.int32), ("depth",), projection=lens)["depth"]
    return np.append(place, 1.0 - float(np.min(depth)) + RAISED)


def _lost(images: CaptureImages, true: Similarity, widths: np.ndarray, rng: np.random.Generator) -> MarkedHall:
    """Turn, move and scale a capture as a reconstruction leaves it, within what people hold cameras tilted."""
    tilt = frames.multiply(frames.from_euler(*rng.uniform(-0.15, 0.15, 2), 0.0), frames.from_euler(0.0, 0.0, rng.uniform(0, 6)))
    lost = Similarity(tilt, rng.uniform(-2.0, 2.0, 3), float(rng.uniform(0.2, 5.0)))
    back = lost.inverse
    turn = frames.multiply(true.rotation, back.rotation)
    truth = Similarity(turn, true.points(back.translation), back.scale)
    return MarkedHall(images.moved(lost.rotation, lost.translation, lost.scale), truth, widths)


def marked(plain: Scene, middle: np.ndarray, turn: np.ndarray, side: float) -> Scene:
    """Return a scene with a sheet on its floor: the marker 0 of 4x4_50 and its margin."""
    half = 0.5 * side * 8.0 / 6.0
    corners = np.array([[-half, half, 0.0], [half, half, 0.0], [half, -half, 0.0], [-half, -half, 0.0]])
    uv = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    sheet = Mesh(corners, np.array([[0, 2, 1], [0, 3, 2]]), uv=uv)
    texture = Texture(np.repeat(draw_marker(32)[..., None], 3, axis=-1), wrap="clamp")
    instance = Instance(
        "marker", tuple(map(float, middle)), tuple(map(float, turn)), materials=("marker",), semantic="marker", collide=False
    )
    return replace(
        plain,
        shapes={**plain.shapes, "marker": sheet},
        textures={**plain.textures, "marker": texture},
        materials={**plain.materials, "marker": Material((1.0, 1.0, 1.0, 1.0), base_color_map="marker", roughness=1.0)},
        instances=(*plain.instances, instance),
    )


def _photographs(
    place: Scene, position: np.ndarray, attitude: np.ndarray, lens: Pinhole, rng: np.random.Generator
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Pictures with noise of a telephone (1.5 counts), and 60 points of each as a reconstruction has them (4 mm)."""
    batch, env = lit_batch(place, baked=False), np.zeros(1, np.int32)
    pictures, points = [], []
    for where, held in zip(position, attitude, strict=True):
        pose = (where[None], held[None], env)
        found = render(batch, lens.rays(), *pose, ("rgb", "depth"), ShadingOptions(samples=4), projection=lens)
        color = 255.0 * display_color(found["rgb"][0], 1.0)
        pictures.append(np.clip(np.rint(color + 1.5 * rng.normal(size=color.shape)), 0, 255).astype(np.uint8))
        u, v = rng.integers(0, lens.width, 60), rng.integers(0, lens.height, 60)
        depth = found["depth"][0][v, u].astype(np.float64)
        ray = np.stack(((u + 0.5 - lens.cx) / lens.fx, (v + 0.5 - lens.cy) / lens.fy, np.ones(60)), axis=-1)
        hit = np.isfinite(depth) & (depth < 50.0)
        points.append(frames.rotate(held, ray[hit] * depth[hit, None]) + where + 0.004 * rng.normal(size=(int(hit.sum()), 3)))
    return tuple(pictures), np.concatenate(points)
