"""A capture in the browser: where its cameras stood, with their images, and its sparse points."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.images import read_capture
from airworthy.capture.record import CaptureImages
from airworthy.core.arrays import Array
from airworthy.core.frames import rotate, to_wxyz
from airworthy.splats.training.plane_sweep import reach_of

__all__ = ["CaptureNodes", "holds_capture", "read_thumbnails"]

ROOT = "/capture"
THUMBNAIL = 96
"""Width of an image in its frustum [px]."""
CAMERAS_MAX = 400
"""Most cameras that are drawn, evenly over the capture."""
POINTS_MAX = 200_000
TRAINED, HELD_OUT, POINT, WAY = (40, 120, 220), (250, 160, 30), (120, 124, 130), (90, 94, 100)
SWITCHES = {"cameras": "cameras", "points": "sparse points", "way": "the way between"}
"""What can be shown and hidden."""
_SHARE, _SHARE_INSIDE = 0.035, 0.012
"""Size of a frustum, of the extent of the cameras: seen from outside, and from among them, where larger ones would hide
all else."""


def holds_capture(path: Path) -> bool:
    """Tell whether a folder lists posed images."""
    names = ("transforms.json", "transforms_train.json", "sparse/0/cameras.bin", "sparse/0/cameras.txt")
    return path.is_dir() and any((path / name).is_file() for name in (*names, "sparse/cameras.bin", "sparse/cameras.txt"))


def read_thumbnails(folder: Path, quiet: bool = False) -> CaptureImages:
    """Return a capture with small images; raises AirworthyError as `read_capture` does."""
    return read_capture(folder, width=THUMBNAIL, quiet=quiet)


class CaptureNodes:
    """The nodes; `switch` shows and hides, a click on a camera is told to `chosen`.

    Args:
        api: `viser.ViserServer.scene`.
        images: The capture, its images small.
        shown: Kinds that are shown at first.
        inside: Whether one looks from among the cameras at first.
    """

    def __init__(self, api: Any, images: CaptureImages, shown: tuple[str, ...] = ("cameras", "points"), inside: bool = False):
        self._api, self.images = api, images
        self._off = set(SWITCHES) - set(shown)
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        api.add_frame(ROOT, show_axes=False)
        self._frame("cameras")
        few = np.unique(np.linspace(0, len(images) - 1, min(len(images), CAMERAS_MAX)).astype(int))
        self.cameras: dict[str, int] = {}
        """Number of the image by the name of its node."""
        size = max((_SHARE_INSIDE if inside else _SHARE) * self.extent, 1e-3)
        for k in few:
            self._camera(int(k), size)
        self._points()
        self._way()

    @property
    def extent(self) -> float:
        """Of the box around the cameras [m]; of a single one, how far it sees."""
        wide = float(np.linalg.norm(np.ptp(self.images.position, axis=0)))
        return wide if wide > 1e-6 else float(reach_of(self.images.position, self.images.attitude))

    @property
    def box(self) -> tuple[Array, Array]:
        """Around cameras and most points [m]."""
        low, high = self.images.position.min(0), self.images.position.max(0)
        points = self.images.points
        if points is not None and len(points) > 10:
            inner = np.quantile(points[np.isfinite(points).all(1)], (0.05, 0.95), axis=0)
            low, high = np.minimum(low, inner[0]), np.maximum(high, inner[1])
        return np.asarray(low, float), np.asarray(high, float)

    def eye(self) -> tuple[Array, Array, float]:
        """Return a place just before the camera in the middle of the capture, a point it saw, and its upright angle of view.

        Splats are looked at from there: from outside there is only the back of what cameras saw.
        """
        k = len(self.images) // 2
        ahead = rotate(self.images.attitude[k], np.array([0.0, 0.0, 1.0]))
        # Before the image in its own frustum, which is about twice as long as its size.
        position = self.images.position[k] + 4.0 * _SHARE_INSIDE * self.extent * ahead
        height = self.images.rgb[k].shape[0]
        fov = 2.0 * math.atan(0.5 * height / float(self.images.intrinsics[k, 1]))
        return position, position + 0.25 * self.extent * ahead, min(fov, math.radians(100.0))

    @property
    def switches(self) -> dict[str, bool]:
        """Kinds of nodes that there are, and whether they are shown."""
        return {kind: kind not in self._off for kind in SWITCHES if f"{ROOT}/{kind}" in self.nodes}

    def switch(self, kind: str, on: bool) -> None:
        """Show or hide a kind of nodes."""
        (self._off.discard if on else self._off.add)(kind)
        self.nodes[f"{ROOT}/{kind}"].visible = on

    def facts(self) -> str:
        """Return a line about the capture."""
        images = self.images
        unit = "in metres" if images.metric else "not metric: distances are in the capture's own unit"
        points = 0 if images.points is None else len(images.points)
        held = len(images.held_out_ids)
        told = [f"{len(images)} cameras, {held} of them held out (orange)" if held else f"{len(images)} cameras"]
        return f"{', '.join([*told, f'{points:,} sparse points'] if points else told)}; {unit}."

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _frame(self, kind: str) -> None:
        name = f"{ROOT}/{kind}"
        self.nodes[name] = self._api.add_frame(name, show_axes=False, visible=kind not in self._off)

    def _camera(self, k: int, size: float) -> None:
        images = self.images
        height, width = images.rgb[k].shape[:2]
        fov = 2.0 * math.atan(0.5 * height / float(images.intrinsics[k, 1]))
        color = HELD_OUT if bool(np.asarray(images.held_out)[k]) else TRAINED
        name = f"{ROOT}/cameras/{k:05d}"
        options: dict[str, Any] = {"scale": size, "color": color, "thickness": 1.5, "thickness_units": "screen"}
        handle = self._api.add_camera_frustum(
            name, min(fov, math.radians(150.0)), width / height, image=images.rgb[k], **options
        )
        handle.position, handle.wxyz = images.position[k], to_wxyz(images.attitude[k])
        self.nodes[name], self.cameras[name] = handle, k

    def _points(self) -> None:
        points, colors = self.images.points, self.images.colors
        if points is None or not len(points):
            return
        few = np.unique(np.linspace(0, len(points) - 1, min(len(points), POINTS_MAX)).astype(int))
        few = few[np.isfinite(points[few]).all(1)]
        paint = np.full((len(few), 3), POINT, np.uint8) if colors is None else colors[few]
        name = f"{ROOT}/points"
        options: dict[str, Any] = {"point_size": max(0.002 * self.extent, 1e-4), "visible": "points" not in self._off}
        self.nodes[name] = self._api.add_point_cloud(name, points[few].astype(np.float32), paint, **options)

    def _way(self) -> None:
        """Draw a line from camera to camera in the order of names: how somebody walked."""
        if len(self.images) < 2:
            return
        order = np.argsort(np.array(self.images.names), kind="stable")
        place = self.images.position[order].astype(np.float32)
        options: dict[str, Any] = {"thickness": 1.5, "thickness_units": "screen", "visible": "way" not in self._off}
        pieces = np.stack([place[:-1], place[1:]], axis=1)
        self.nodes[f"{ROOT}/way"] = self._api.add_line_segments(f"{ROOT}/way", pieces, WAY, **options)
