"""Small places for sensors: what is where can be said in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import GeometryBatch, Placement, Shape
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import View

Place = Callable[..., GeometryBatch]


@pytest.fixture
def place() -> Place:
    """`place((shape, position), ..., env_count=1)`: one layout, the same in every environment."""

    def build(*things: tuple[Shape, Any], env_count: int = 1) -> GeometryBatch:
        shapes = [shape for shape, _ in things]
        layout = Placement.of(shape=np.arange(len(things)), position=np.array([p for _, p in things], float).reshape(-1, 3))
        return GeometryBatch(shapes, [layout], np.zeros(env_count, np.int64))

    return build


@pytest.fixture
def view() -> Callable[..., View]:
    """`view(position, count=1, ...)`: level sensors that look along world x."""

    def build(position: Any = (0.0, 0.0, 0.0), count: int = 1, **fields: Any) -> View:
        places = np.broadcast_to(np.asarray(position, float), (count, 3))
        fields.setdefault("attitude", np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)))
        fields.setdefault("env", np.zeros(count, np.int64))
        fields.setdefault("draw", Draw.of(count))
        return View(places, **fields)

    return build
