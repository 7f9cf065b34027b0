"""What the tests of this room are given."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest
from tests.fixtures.flights import make_flights, reference  # noqa: F401
from tests.fixtures.small_pictures import small_pictures  # noqa: F401

from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.reports import gallery
from airworthy.scenes import Instance, Scene, Sun
from airworthy.scenes.record import Material, Region


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> gallery.GalleryScene:
    """A place of two boxes on a floor; a clock that goes on by a second each time that it is asked."""
    ticks = count()
    monkeypatch.setattr(gallery, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    monkeypatch.setattr(gallery, "HERO", (32, 16))
    monkeypatch.setattr(gallery, "CARD", 24)
    monkeypatch.setattr(gallery, "SAMPLE_WIDTH", 40)
    monkeypatch.setattr(
        gallery, "Pinhole", SimpleNamespace(from_fov=lambda w, h, horizontal: Pinhole.from_fov(40, 24, horizontal=horizontal))
    )
    things = (Instance("floor", (0.0, 0.0, -0.05), materials=("green",)), Instance("cube", (3.0, 0.2, 1.0), materials=("red",)))
    shapes = {"floor": Box((8.0, 8.0, 0.05)), "cube": Box((0.5, 0.5, 1.0))}
    looks = {"green": Material((0.05, 0.3, 0.05, 1.0)), "red": Material((0.5, 0.1, 0.05, 1.0))}
    bounds = Region((-8.0, -8.0, 0.0), (8.0, 8.0, 4.0))
    place = Scene("yard", shapes, looks, instances=things, lights=(Sun((-0.3, -0.5, -0.8), irradiance=4.0),), bounds=bounds)
    return gallery._stage("Made", place, False, True)
