"""Files that `airworthy scenes export` writes."""

from __future__ import annotations

from pathlib import Path

from airworthy.core.files import make_folder
from airworthy.scenes import Scene, posed, write_scene
from airworthy.scenes.formats import EXPORTS, export_scene, sample_points, write_pcd, write_points_ply

FORMATS = (*EXPORTS, "toml")
"""What can be written; pcd and cloud.ply hold points, toml is a folder."""
_CLOUDS = {"pcd": write_pcd, "cloud.ply": write_points_ply}


def export(scene: Scene, path: Path, ending: str, time: float, spacing: float) -> Path:
    """Write a scene.

    Args:
        scene: The scene.
        path: The file; of toml, its folder.
        ending: One of `FORMATS`.
        time: At which actors stand [s]; toml keeps their motion.
        spacing: Between the points of a cloud [m].

    Returns:
        What was written.

    Raises:
        AirworthyError: The scene cannot be written so, or the file system refused.
    """
    if ending == "toml":
        return write_scene(scene, path.parent if path.suffix == ".toml" else path)
    make_folder(path.parent)
    still = posed(scene, time)
    if ending in _CLOUDS:
        return _CLOUDS[ending](path, sample_points(still, spacing))
    return export_scene(still, path, ending)
