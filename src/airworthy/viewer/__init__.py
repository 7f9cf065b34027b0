"""Scenes and flights in the browser. Needs the optional package viser: pip install 'airworthy[viewer]'."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.viewer.cameras import LiveCamera, RecordedCamera, ViewerImage
    from airworthy.viewer.flights import ShownFlight, load_flight
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.server import serve
    from airworthy.viewer.subjects import Subject, load_subject
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "LiveCamera",
    "RecordedCamera",
    "ShownFlight",
    "Subject",
    "Viewer",
    "ViewerImage",
    "load_flight",
    "load_subject",
    "serve",
]  # fmt: skip
