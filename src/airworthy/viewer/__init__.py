"""Scenes and flights in the browser. Needs the optional package viser: pip install 'airworthy[viewer]'."""

from airworthy.viewer.cameras import LiveCamera, RecordedCamera, Shot
from airworthy.viewer.flights import ShownFlight, load_flight
from airworthy.viewer.server import serve
from airworthy.viewer.subjects import Subject, load_subject
from airworthy.viewer.viewing import Viewer

__all__ = [
    "LiveCamera",
    "RecordedCamera",
    "Shot",
    "ShownFlight",
    "Subject",
    "Viewer",
    "load_flight",
    "load_subject",
    "serve",
]
