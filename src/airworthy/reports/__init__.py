"""Pages, pictures and films of what was flown: each one file, complete in itself, readable offline."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.reports.film.cameras import CameraPath, camera_path
    from airworthy.reports.film.files import read_frames, write_video
    from airworthy.reports.flight_report import write_report
    from airworthy.reports.gallery import GalleryConfig, write_gallery
    from airworthy.reports.pictures import (
        distance_picture,
        flow_picture,
        normal_picture,
        number_picture,
        points_picture,
        sensor_pictures,
    )
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "CameraPath", "GalleryConfig", "camera_path", "distance_picture", "flow_picture", "normal_picture", "number_picture",
    "points_picture", "read_frames", "sensor_pictures", "write_gallery", "write_report", "write_video",
]  # fmt: skip
