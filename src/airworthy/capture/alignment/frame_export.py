"""Splats and cameras for other programs, in the frame of the place or of the capture: Nerfstudio and FiGS.

Both render a pose in a "splat frame" of their own. The folder is written so that this frame is the chosen one: the cloud, the
cameras and the transform between them agree, and the same camera gives the same image there as here.

Nerfstudio: transforms.json has the cameras (camera to world, x right, y up, z backward), splat.ply the cloud with the frame's
own axes, dataparser_transforms.json p_splat = scale (R p_world + t), here the identity: train on it with orientation-method
none, center-method none and auto-scale-poses off, as FiGS does.

FiGS flies in a world W with z down; its splat frame G is the place: T_WG = diag(1, -1, -1, 1) [R: FG
src/render/scene_render.py]. Its cameras look along -z with y up, and a camera is rendered at T_WG T_WC.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.writer import TRANSFORMS, transforms_table, write_capture
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_json
from airworthy.scenes.splats import SourceFrame, Splats, write_splats
from airworthy.scenes.splats.capture_frame import inverse_of

__all__ = ["FIGS_WORLD", "PROGRAMS", "Program", "export_frames", "figs_pose"]

Program = Literal["nerfstudio", "figs"]
PROGRAMS: tuple[Program, ...] = ("nerfstudio", "figs")
FIGS_WORLD = np.diag([1.0, -1.0, -1.0, 1.0])
"""T_WG of FiGS: from its world (z down) to the splat frame (z up), and back, being its own inverse."""
CLOUD, PARSER, FIGS = "splat.ply", "dataparser_transforms.json", "figs.json"


def export_frames(
    splats: Splats,
    images: CaptureImages,
    out: str | Path,
    program: Program = "nerfstudio",
    frame: Literal["place", "capture"] = "place",
    pictures: bool = True,
) -> Path:
    """Write splats and their cameras for another program.

    Args:
        splats: In the frame of the images.
        images: What they were trained from.
        out: Folder.
        program: "nerfstudio" or "figs".
        frame: In which frame both are written. FiGS needs the place: its world is the place, z down.
        pictures: Also write the images, so that the program can train on them.

    Returns:
        The folder.

    Raises:
        AirworthyError: FiGS is to have what is not metric and level, or the frame of the capture; or it cannot be written.
    """
    if program not in PROGRAMS or frame not in ("place", "capture"):
        raise AirworthyError(
            f"An export for {program!r} in the frame {frame!r}; expected {' or '.join(PROGRAMS)}, place or capture."
        )
    if program == "figs" and not (images.metric and frame == "place"):
        raise AirworthyError("FiGS flies in metres with z down: align the capture first, and export it in the frame 'place'.")
    folder, source = make_folder(Path(out)), images.source
    held = images.moved(*inverse_of(source), metric=False) if frame == "capture" else images
    if pictures:
        write_capture(held, folder)
    else:
        names = [Path(name).stem for name in held.names]
        write_json(folder / TRANSFORMS, transforms_table(held, names))
    if frame == "capture":
        write_splats(splats, folder / CLOUD, source=source, frame="capture")
    else:
        write_splats(splats, folder / CLOUD, source=source, up="z")
    write_json(folder / PARSER, {"transform": np.eye(3, 4), "scale": 1.0})
    if program == "figs":
        write_json(folder / FIGS, _figs(held, source))
    return folder


def figs_pose(position: ArrayLike, attitude: ArrayLike) -> Array:
    """Return T_WC (4, 4), the pose of a camera in the world of FiGS: x right, y up, z backward; z down.

    Args:
        position: Of the camera in the place (3,) [m].
        attitude: Of the optical frame (x right, y down, z forward) in the place, quaternion x, y, z, w.
    """
    pose = np.eye(4)
    pose[:3, :3] = frames.to_matrix(frames.opengl_attitude(attitude))
    pose[:3, 3] = position
    # T_GC = T_WG T_WC, and T_WG is its own inverse.
    return FIGS_WORLD @ pose


def _figs(images: CaptureImages, source: SourceFrame) -> dict[str, Any]:
    fx, fy, cx, cy = map(float, images.intrinsics[0])
    return {
        "words": "A camera whose pose in the world (x forward, y right, z down) is T_WC is rendered at T_WG T_WC of splat.ply.",
        "T_WG": FIGS_WORLD,
        "camera": {
            "width": int(images.sizes[0, 0]), "height": int(images.sizes[0, 1]), "fx": fx, "fy": fy, "cx": cx, "cy": cy,
        },
        "capture_to_place": {
            "scale": source.scale, "rotation_xyzw": list(source.rotation), "translation": list(source.translation),
        },
        "cameras": [
            {"name": name, "T_WC": figs_pose(place, turn)}
            for name, place, turn in zip(images.names, images.position, images.attitude, strict=True)
        ],
    }  # fmt: skip
