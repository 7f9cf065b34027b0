"""A course that is drawn, as nodes: the way-points, the path in colours that say something, and where it is tightest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayU8
from airworthy.tasks import CourseClearance
from airworthy.tasks.course_fit import FAR
from airworthy.tasks.course_room import CourseMargins
from airworthy.trajectories.course_draft import CourseDraft

__all__ = ["COLORED_BY", "CourseNodes", "PlannedCourse", "path_colors", "scale_text"]

ROOT = "/course"
POINT, CHOSEN, HEADING, TIGHT = (250, 250, 250), (255, 170, 30), (60, 130, 220), (230, 40, 50)
LEG = (150, 154, 160)
_LINE, _THIN = 5.0, 1.5
"""Widths on the screen [px]."""

_STOPS = np.array([(200, 20, 30), (240, 120, 20), (235, 205, 40), (60, 170, 80), (30, 110, 200)], np.float64)
"""From tight to free: red, orange, yellow, green, blue. Told apart by brightness too."""
ROOM_WIDE = 1.0
"""Room from which on a path is drawn as free [m]."""


@dataclass(frozen=True, eq=False)
class PlannedCourse:
    """A draft, flown in thought: as far as it can be."""

    draft: CourseDraft
    problem: str = ""
    """Why it could not be planned; empty where it was."""
    margins: CourseMargins | None = None
    clearance: CourseClearance | None = None
    """None without a place."""


COLORED_BY = ("room", "limits", "speed", "rotors")
"""What the colours of a path tell."""


def path_colors(margins: CourseMargins, by: str) -> ArrayU8:
    """Return colours (n, 3) of a path's samples, sRGB: red where it is tight, blue where it is free.

    Args:
        margins: Of the path.
        by: One of `COLORED_BY`; "room" falls back to "limits" where no place is known.
    """
    return _blend(_free(margins, by))


def scale_text(margins: CourseMargins, by: str) -> str:
    """Return what red and blue stand for."""
    if by == "room" and not np.isnan(margins.gap).all():
        return f"red: touches, or outside; yellow: {0.5 * ROOM_WIDE:g} m of room; blue: {ROOM_WIDE:g} m or more"
    if by == "speed":
        return f"red: {margins.speed.max():.2f} m/s, blue: at rest"
    if by == "rotors":
        return "red: a rotor gives all it can, blue: hardly anything"
    return "red: a limit is reached, blue: none is felt"


def _free(margins: CourseMargins, by: str) -> Array:
    """Return how free each sample is, 0 tight to 1."""
    if by == "room" and not np.isnan(margins.gap).all():
        # Outside of the place there may be room, but a flight ends there.
        return np.where(margins.inside, np.clip(margins.gap / ROOM_WIDE, 0.0, 1.0), 0.0)
    if by == "speed":
        return 1.0 - margins.speed / max(float(margins.speed.max()), 1e-9)
    return np.clip(1.0 - (margins.rotor_share if by == "rotors" else margins.used), 0.0, 1.0)


def _blend(free: Array) -> ArrayU8:
    place = np.clip(free, 0.0, 1.0) * (len(_STOPS) - 1)
    first = np.minimum(place.astype(int), len(_STOPS) - 2)
    share = (place - first)[:, None]
    return np.asarray(np.rint((1.0 - share) * _STOPS[first] + share * _STOPS[first + 1]), np.uint8)


def _linear(colors: ArrayU8) -> ArrayU8:
    """Return colours as the browser takes those that differ within a node: without sRGB's curve."""
    return np.asarray(np.rint(255.0 * (colors / 255.0) ** 2.2), np.uint8)


class CourseNodes:
    """The nodes; `show` renews them.

    Args:
        api: `viser.ViserServer.scene`.
        size: Radius of a way-point [m].
        floor: Height down to which thin lines tell where a way-point is [m].
    """

    def __init__(self, api: Any, size: float, floor: float):
        self._api, self._size, self._floor = api, size, floor
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        self._drawn: tuple[Any, ...] = ()
        api.add_frame(ROOT, show_axes=False)

    def show(self, draft: CourseDraft, chosen: int | None) -> bool:
        """Draw the way-points, straight lines between them and down to the floor, and headings; True where they changed."""
        now = (draft.points, draft.yaws, chosen)
        if now == self._drawn:
            return False
        self._drawn = now
        self._remove("points")
        self._remove("legs")
        self._remove("drops")
        self._remove("headings")
        for k, point in enumerate(draft.points):
            self._point(k, point, k == chosen)
        if len(draft) > 1:
            path = np.array(draft.points, np.float32)
            self._lines("legs", np.stack([path[:-1], path[1:]], axis=1), LEG, _THIN)
        if draft.points:
            top = np.array(draft.points, np.float32)
            foot = np.where([False, False, True], np.float32(self._floor), top)
            self._lines("drops", np.stack([top, foot], axis=1), LEG, _THIN)
        self._headings(draft)
        return True

    def show_path(self, planned: PlannedCourse, by: str) -> None:
        """Draw the path in its colours, and a mark where it is tightest; without one where it could not be planned."""
        self._remove("path")
        self._remove("tight")
        margins = planned.margins
        if margins is None:
            return
        place = margins.position.astype(np.float32)
        colors = _linear(path_colors(margins, by))
        pieces = np.stack([place[:-1], place[1:]], axis=1)
        self._lines("path", pieces, np.stack([colors[:-1], colors[1:]], axis=1), _LINE)
        if planned.clearance is not None and planned.clearance.gap < FAR:
            self._tight(planned.clearance)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _point(self, k: int, point: tuple[float, float, float], chosen: bool) -> None:
        size, color = (1.35 * self._size, CHOSEN) if chosen else (self._size, POINT)
        name = f"points/{k}"
        self._put(name, self._api.add_icosphere(f"{ROOT}/{name}", size, color, position=point, cast_shadow=False))
        label = f"points/{k}_number"
        above = (point[0], point[1], point[2] + 1.5 * size)
        self._put(label, self._api.add_label(f"{ROOT}/{label}", str(k + 1), position=above, anchor="bottom-center"))

    def _headings(self, draft: CourseDraft) -> None:
        """Draw an arrow where a heading was set; along the path it shows itself."""
        rows = [(point, yaw) for point, yaw in zip(draft.points, draft.yaws, strict=True) if yaw is not None]
        if rows:
            begin = np.array([point for point, _ in rows], np.float32)
            turn = np.array([(math.cos(yaw), math.sin(yaw), 0.0) for _, yaw in rows], np.float32)
            self._lines("headings", np.stack([begin, begin + 6.0 * self._size * turn], axis=1), HEADING, _LINE)

    def _tight(self, found: CourseClearance) -> None:
        options: dict[str, Any] = {"position": found.position, "cast_shadow": False, "opacity": 0.6}
        self._put("tight", self._api.add_icosphere(f"{ROOT}/tight", 0.8 * self._size, TIGHT, **options))
        text = f"{found.gap:.2f} m from {found.thing}" if found.gap >= 0.0 else f"{-found.gap:.2f} m inside {found.thing}"
        x, y, z = found.position
        place = (x, y, z - 1.5 * self._size)
        self._put("tight_word", self._api.add_label(f"{ROOT}/tight_word", text, position=place, anchor="top-center"))

    def _lines(self, name: str, pieces: Any, color: Any, width: float) -> None:
        options: dict[str, Any] = {"thickness": width, "thickness_units": "screen"}
        self._put(name, self._api.add_line_segments(f"{ROOT}/{name}", pieces, color, **options))

    def _put(self, name: str, handle: Any) -> None:
        self.nodes[f"{ROOT}/{name}"] = handle

    def _remove(self, name: str) -> None:
        full = f"{ROOT}/{name}"
        for key in [key for key in self.nodes if key == full or key.startswith((f"{full}/", f"{full}_"))]:
            self.nodes.pop(key).remove()
