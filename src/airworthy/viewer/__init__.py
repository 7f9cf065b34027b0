"""Scenes, flights, captures and trainings in the browser, and courses drawn there.

Needs the optional package viser: pip install 'airworthy[viewer]'.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.viewer.cameras import LiveCamera, RecordedCamera, ViewerImage
    from airworthy.viewer.drawing.course_drawing import CourseDrawing
    from airworthy.viewer.flights import ShownFlight, load_flight
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.recording import Exported, export_recording
    from airworthy.viewer.server import serve
    from airworthy.viewer.subjects import Subject, load_subject
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CourseDrawing",
    "Exported",
    "LiveCamera",
    "RecordedCamera",
    "ShownFlight",
    "Subject",
    "Viewer",
    "ViewerImage",
    "export_recording",
    "load_flight",
    "load_subject",
    "serve",
]  # fmt: skip
