"""Where a browser looks from at first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.record import Scene
from airworthy.scenes.viewing import content_box, view
from airworthy.viewer.flights import Track

__all__ = ["FirstView", "first_view"]

Floats = NDArray[np.float64]
FOV = np.radians(55.0)
"""From top to bottom, where there is no scene [rad]."""
_SHAPE = 9.0 / 16.0
_AWAY = np.array([-0.62, -0.62, 0.42])


@dataclass(frozen=True, eq=False)
class FirstView:
    """A camera, and the size of what it looks at."""

    position: Floats
    target: Floats
    fov: float
    """From top to bottom [rad]."""
    middle: Floats
    """Of what is shown [m]."""
    size: float
    """Diagonal of its box [m]."""
    floor: float
    """Its lowest height [m]."""

    @property
    def near(self) -> float:
        """Distance from which on things are drawn [m]."""
        return float(np.clip(0.002 * self.size, 0.002, 0.05))

    @property
    def far(self) -> float:
        """Distance up to which things are drawn [m]."""
        return max(1000.0, 20.0 * self.size)


def first_view(scene: Scene | None, track: Track | None) -> FirstView:
    """At a flight from behind and above, at a scene as its orbit view does.

    Args:
        scene: What stands there; None: nothing.
        track: Of the flight that is shown at first; None: none is.
    """
    low, high = _box(scene, track)
    middle, size, floor = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 0.1), float(low[2])
    if scene is None:
        distance = 0.54 * size / np.tan(0.5 * FOV)
        away = _AWAY / np.linalg.norm(_AWAY)
        return FirstView(middle + distance * away, middle, float(FOV), middle, size, floor)
    seen = view(scene, "orbit")
    # The view's angle is across its width; the browser's is from top to bottom.
    fov = 2.0 * float(np.arctan(np.tan(0.5 * seen.fov) * _SHAPE))
    if track is not None:
        flown = track.position.astype(np.float64)
        return FirstView(seen.position, 0.5 * (flown.min(0) + flown.max(0)), fov, middle, size, floor)
    forward = frames.rotate(seen.attitude, np.array([0.0, 0.0, 1.0]))
    ahead = max(float(forward @ (middle - seen.position)), 0.1 * size)
    return FirstView(seen.position, seen.position + ahead * forward, fov, middle, size, floor)


def _box(scene: Scene | None, track: Track | None) -> tuple[Floats, Floats]:
    """Around what is shown: the scene's things within its bounds, and the flight."""
    boxes: list[tuple[Any, Any]] = []
    if scene is not None:
        boxes.append(content_box(scene))
    if track is not None:
        boxes.append((track.position.min(0), track.position.max(0)))
    if not boxes:
        return np.array([-5.0, -5.0, 0.0]), np.array([5.0, 5.0, 3.0])
    low, high = np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)
    return np.asarray(low, np.float64), np.asarray(high, np.float64)
