"""Files that `airworthy scenes export` writes."""

from __future__ import annotations

from pathlib import Path

from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder
from airworthy.scenes import Scene, posed, write_scene
from airworthy.scenes.formats import EXPORTS, export_scene, sample_points, write_pcd, write_points_ply

SPLAT_FORMATS = ("splats.ply", "spz")
FORMATS = (*EXPORTS, *SPLAT_FORMATS, "toml")
"""What can be written; pcd and cloud.ply hold points, splats.ply and spz Gaussian splats, toml is a folder."""
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
    if ending in SPLAT_FORMATS:
        return _export_splats(still, path)
    if ending in _CLOUDS:
        return _CLOUDS[ending](path, sample_points(still, spacing))
    return export_scene(still, path, ending)


def _export_splats(still: Scene, path: Path) -> Path:
    """All splats of a scene as one cloud, where its actors stand."""
    from airworthy.scenes.splats import write_splats
    from airworthy.scenes.splats.placing import static_splats

    splats = static_splats(still)
    if splats is None:
        raise AirworthyError(f"Scene {still.name!r} has no splats to write.")
    return write_splats(splats, path)
