"""Films of recorded flights: where they are seen from, what is on stage, and the files they become."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.reports.film.cameras import CameraPath, camera_path
    from airworthy.reports.film.files import read_frames, write_video
    from airworthy.reports.film.flight_track import FlightTrack, film_content
    from airworthy.reports.film.rendered_scene import puppet
    from airworthy.reports.film.sheet import contact_sheet
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CameraPath", "FlightTrack", "camera_path", "contact_sheet", "film_content", "puppet", "read_frames", "write_video",
]  # fmt: skip
