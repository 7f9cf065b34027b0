"""Drawing a course in the browser: clicks set way-points, arrows drag them, and what is planned is shown at once."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.tasks.course_fit import FAR, CourseClearance
from airworthy.tasks.course_room import CourseRoom, course_margins
from airworthy.trajectories import write_course
from airworthy.trajectories.course_draft import CourseDraft, DraftHistory
from airworthy.vehicles import Vehicle
from airworthy.viewer.drawing.course_nodes import COLORED_BY, ROOT, CourseNodes, PlannedCourse, scale_text
from airworthy.viewer.newest import NewestWorker
from airworthy.viewer.picking import Picker, on_height
from airworthy.viewer.playback import Viewer

__all__ = ["CLICKS", "CourseDrawing", "course_facts", "place_of_click", "plan_draft"]

CLICKS = ("adds at the end", "adds between", "only chooses")
"""What a click beside the way-points does."""
PLACES = ("at the height", "above what is clicked")
"""Where a click puts a way-point: on a level plane, or that much above the surface."""
HEIGHT = 1.2
"""Of the first way-points [m], where the scene has no start: half a room's."""
_HIT = 2.5
"""Balls that a click passes within this many of their radii are meant."""


def plan_draft(draft: CourseDraft, vehicle: Vehicle, room: CourseRoom | None) -> PlannedCourse:
    """Return a draft as it would be flown; where that cannot be planned, why.

    Args:
        draft: What is drawn.
        vehicle: Who flies.
        room: The place, of the same vehicle; None: nothing stands there.
    """
    problem = draft.problem()
    if problem:
        return PlannedCourse(draft, problem)
    try:
        path = draft.course().trajectory()
        margins = course_margins(path, draft.limits, vehicle, room)
        return PlannedCourse(draft, "", margins, None if room is None else room.clearance(path))
    except AirworthyError as error:
        return PlannedCourse(draft, str(error))


def course_facts(planned: PlannedCourse) -> str:
    """Return what there is to say of a planned course, as rows of a table in Markdown."""
    margins, limits, found = planned.margins, planned.draft.limits, planned.clearance
    if margins is None:
        return planned.problem
    length = float(np.linalg.norm(np.diff(margins.position, axis=0), axis=1).sum())
    most = "" if limits.speed is None else f" of {limits.speed:.2f}"
    rows = [
        ("length", f"{length:.2f} m in {margins.duration:.2f} s"),
        ("speed", f"up to {margins.speed.max():.2f}{most} m/s"),
        ("limits", f"{100.0 * margins.used.max():.0f} % used"),
        ("busiest rotor", f"{100.0 * margins.rotor_share.max():.0f} % of its thrust"),
        ("turning", f"up to {margins.body_rate.max():.2f} rad/s, yaw {margins.yaw_rate.max():.2f} rad/s"),
    ]
    if found is not None:
        rows.append(("room", _room(found.gap, found.thing, found.time)))
    if found is not None and found.leaves is not None:
        rows.append(("bounds", f"left at {found.leaves[0]:.2f} s"))
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows)])


def _room(gap: float, thing: str, time: float) -> str:
    if gap < 0.0:
        return f"**touches** {thing} at {time:.2f} s, {-gap:.2f} m deep"
    if not gap < FAR:
        return f"nothing within {FAR:g} m"
    return f"{gap:.2f} m from {thing}, at {time:.2f} s"


def _unfit(found: CourseClearance) -> str:
    parts = [f"it touches {found.touches[0].thing}"] if found.touches else []
    return " and ".join([*parts, *(["it leaves the place"] if found.leaves is not None else [])])


def place_of_click(
    origin: ArrayLike, direction: ArrayLike, picker: Picker | None, where: str, height: float
) -> tuple[Array | None, str]:
    """Return where a click puts a way-point (3,) [m], and else why nowhere.

    Args:
        origin: Of the ray of the click, world [m], (3,).
        direction: Of the ray, (3,).
        picker: Of the place; None: nothing stands there.
        where: One of `PLACES`.
        height: Of the plane, or above the surface [m].
    """
    if where == PLACES[0]:
        point = on_height(origin, direction, height)
        return point, "" if point is not None else f"Nothing is at {height:g} m there: look down on it, or change the height."
    found = None if picker is None else picker.pick(origin, direction)
    if found is None:
        return None, "Nothing was clicked: click a surface, or set way-points at a height."
    return found.point + np.array([0.0, 0.0, height]), ""


class CourseDrawing:
    """Draws in a viewer. Callbacks of browsers come in threads of their own; one lock guards what is drawn.

    Args:
        viewer: Shows the place.
        vehicle: Who is to fly.
        room: The place, of the same vehicle; None: an empty one.
        draft: To begin with.
        out: The course file that "save" writes.
        say: Called with a sentence when something was saved.
    """

    def __init__(
        self,
        viewer: Viewer,
        vehicle: Vehicle,
        room: CourseRoom | None,
        draft: CourseDraft,
        out: Path,
        say: Callable[[str], None] = print,
    ):
        self.viewer, self._vehicle, self._room, self._out, self._say_line = viewer, vehicle, room, out, say
        self.history = DraftHistory(draft)
        self.chosen: int | None = None
        """Number of the way-point that is edited."""
        self.planned = PlannedCourse(draft, draft.problem())
        self._saved: CourseDraft | None = None
        self._ended = False
        self._lock = threading.RLock()
        scene = viewer.subject.scene
        self._size = float(np.clip(0.004 * viewer.view.size, 0.03, 0.12))
        floor = viewer.view.floor if scene is None else float(scene.bounds.lower[2])
        self.nodes = CourseNodes(viewer.server.scene, self._size, floor)
        self._gizmo: Any = None
        start = None if scene is None else scene.start
        self._panel = _Panel(self, HEIGHT if start is None else round(float(start.position[2]), 2))
        self._worker: NewestWorker[CourseDraft] = NewestWorker(self._plan, "course planning")
        viewer.server.scene.on_click()(lambda event: self.click(event.ray_origin, event.ray_direction))
        self._changed()

    @property
    def draft(self) -> CourseDraft:
        """What is drawn now."""
        return self.history.now

    @property
    def unsaved(self) -> bool:
        """Whether there is something that "save" would keep."""
        return bool(len(self.draft)) and self.draft != self._saved

    def click(self, origin: ArrayLike, direction: ArrayLike) -> None:
        """Choose the way-point under a click, or do what clicks do; nothing while the viewer's tools take clicks."""
        with self._lock:
            if self.viewer.tools.active:
                return
            hit = self._under(np.asarray(origin, float), np.asarray(direction, float))
            if hit is not None:
                self.choose(hit)
                return
            if self._panel.clicks == CLICKS[2]:
                self.choose(None)
                return
            point, why = place_of_click(origin, direction, self.viewer.picker(), self._panel.where, self._panel.height)
            if point is None:
                self._panel.say(why)
                return
            between = self._panel.clicks == CLICKS[1] and len(self.draft) > 1
            at = self.draft.nearest_leg(point) + 1 if between else len(self.draft)
            self.chosen = at
            self._do(self.draft.added(point, at))

    def choose(self, k: int | None) -> None:
        """Edit a way-point by its number; None: none."""
        with self._lock:
            self.chosen = k
            self._changed()

    def drag(self, point: ArrayLike, ended: bool) -> None:
        """Move the chosen way-point [m]; only the end of a drag is a step that can be undone."""
        with self._lock:
            if self.chosen is None:
                return
            moved = self.draft.moved(self.chosen, point)
            if ended:
                self._do(moved)
            else:
                self.nodes.show(moved, self.chosen)
                self._worker.ask(moved)

    def edit(self, change: Callable[[CourseDraft], CourseDraft]) -> None:
        """Go on with what a change makes of the draft; what cannot be done is told in the panel."""
        with self._lock:
            try:
                self._do(change(self.draft))
            except AirworthyError as error:
                self._panel.say(str(error))

    def delete(self) -> None:
        """Delete the chosen way-point, else the last."""
        with self._lock:
            k = len(self.draft) - 1 if self.chosen is None else self.chosen
            if 0 <= k < len(self.draft):
                self.chosen = None
                self._do(self.draft.removed(k))

    def undo(self, again: bool = False) -> None:
        """Go back by one step; `again`: forward."""
        with self._lock:
            if self.history.redo() if again else self.history.undo():
                self.chosen = None if self.chosen is not None and self.chosen >= len(self.draft) else self.chosen
                self._changed()

    def save(self) -> bool:
        """Write the course file; False where there is no course yet, which the panel says."""
        with self._lock:
            problem = self.draft.problem()
            if problem:
                self._panel.say(problem)
                return False
            try:
                write_course(self.draft.course(), self._out)
            except AirworthyError as error:
                self._panel.say(str(error))
                return False
            self._saved = self.draft
            self._say_line(f"Wrote {self._out}: {self.draft.name}, {len(self.draft)} way-points.")
            self._panel.renew()
            return True

    def recolor(self) -> None:
        """Draw the path by what the panel says its colours tell."""
        with self._lock, self.viewer.server.atomic():
            self.nodes.show_path(self.planned, self._panel.by)
            self._panel.renew()

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until what is drawn is planned; False where that took longer [s]."""
        return self._worker.wait(timeout)

    def close(self) -> None:
        """End the thread that plans; before the server, which takes nothing more when it has ended."""
        with self._lock:
            self._ended = True
        self._worker.close()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _do(self, draft: CourseDraft) -> None:
        self.history.do(draft)
        self._changed()

    def _changed(self) -> None:
        with self.viewer.server.atomic():
            self.nodes.show(self.draft, self.chosen)
            self._place_gizmo()
            self._panel.renew()
        self._worker.ask(self.draft)

    def _plan(self, draft: CourseDraft) -> None:
        """Plan, in the worker's thread."""
        planned = plan_draft(draft, self._vehicle, self._room)
        with self._lock:
            if not self._ended:
                self._show_planned(planned)

    def _show_planned(self, planned: PlannedCourse) -> None:
        with self.viewer.server.atomic():
            self.planned = planned
            self.nodes.show_path(planned, self._panel.by)
            self._panel.renew()

    def _place_gizmo(self) -> None:
        """Put arrows at the chosen way-point."""
        if self.chosen is None:
            if self._gizmo is not None:
                self._gizmo.visible = False
            return
        place = np.array(self.draft.points[self.chosen])
        if self._gizmo is None:
            options: dict[str, Any] = {"scale": 8.0 * self._size, "disable_rotations": True, "depth_test": False}
            self._gizmo = self.viewer.server.scene.add_transform_controls(f"{ROOT}/arrows", position=place, **options)
            self._gizmo.on_update(lambda event: self.drag(event.target.position, event.phase == "end"))
        self._gizmo.position, self._gizmo.visible = place, True

    def _under(self, origin: Array, direction: Array) -> int | None:
        """Return the way-point that a ray passes near; the nearest to the eye of several."""
        if not len(self.draft):
            return None
        along = direction / max(float(np.linalg.norm(direction)), 1e-300)
        away = np.array(self.draft.points) - origin
        ahead = away @ along
        off = np.linalg.norm(away - ahead[:, None] * along, axis=1)
        meant = (off < _HIT * self._size) & (ahead > 0.0)
        return int(np.argmin(np.where(meant, ahead, np.inf))) if meant.any() else None


class _Panel:
    """The controls of a drawing, in a folder above the viewer's own."""

    def __init__(self, drawing: CourseDrawing, height: float):
        self._drawing = drawing
        self._gui = gui = drawing.viewer.server.gui
        self._note = ""
        self._silent = False
        with gui.add_folder("course", order=-1.0):
            self._words = gui.add_markdown("")
            self._clicks = gui.add_dropdown("a click", CLICKS, initial_value=CLICKS[0])
            self._where = gui.add_dropdown("way-points", PLACES, initial_value=PLACES[0])
            self._height = gui.add_number("height [m]", height, step=0.05)
            buttons = gui.add_button_group("", ("undo", "redo", "delete", "flip"))
            self._edited = self._edit_folder(gui)
            limits = drawing.draft.limits
            self._speed = gui.add_number("speed [m/s]", limits.speed or 0.0, min=0.0, max=100.0, step=0.1)
            self._push = gui.add_number("accel. [m/s²]", limits.acceleration or 0.0, min=0.0, max=100.0, step=0.1)
            self._by = gui.add_dropdown("colours tell", COLORED_BY, initial_value=COLORED_BY[0])
            self._facts = gui.add_markdown("")
            save = gui.add_button(f"save {drawing._out.name}", icon=None)
        save.on_click(lambda _: drawing.save())
        buttons.on_click(lambda event: self._pressed(str(event.target.value)))
        self._by.on_update(lambda event: None if event.client is None else drawing.recolor())
        self._speed.on_update(lambda event: self._limited(event, "speed", self._speed.value))
        self._push.on_update(lambda event: self._limited(event, "acceleration", self._push.value))
        self._keys()

    @property
    def clicks(self) -> str:
        """What a click does, one of `CLICKS`."""
        return str(self._clicks.value)

    @property
    def where(self) -> str:
        """Where it puts a way-point, one of `PLACES`."""
        return str(self._where.value)

    @property
    def height(self) -> float:
        """[m]"""
        return float(self._height.value)

    @property
    def by(self) -> str:
        """What colours tell, one of `COLORED_BY`."""
        return str(self._by.value)

    def say(self, note: str) -> None:
        """Show a sentence until the next step."""
        self._note = note
        self.renew(keep=True)

    def renew(self, keep: bool = False) -> None:
        """Show the state of the drawing."""
        drawing = self._drawing
        self._note = self._note if keep else ""
        kept = "not saved" if drawing.unsaved else ("saved" if len(drawing.draft) else "click into the picture to begin")
        self._set(self._words, f"{len(drawing.draft)} way-points, {kept}." + (f" **{self._note}**" if self._note else ""))
        planned = drawing.planned
        if planned.clearance is not None and not planned.clearance.fits:
            self._set(self._words, f"{self._words.content} **It does not fit: {_unfit(planned.clearance)}.**")
        scale = "" if planned.margins is None else f"\n\n*{scale_text(planned.margins, self.by)}*"
        self._set(self._facts, course_facts(planned) + scale)
        self._renew_edit()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _edit_folder(self, gui: Any) -> Any:
        folder = gui.add_folder("way-point", visible=False)
        with folder:
            self._position = gui.add_vector3("x, y, z [m]", (0.0, 0.0, 0.0), step=0.01)
            self._own = gui.add_checkbox("own heading", False)
            self._yaw = gui.add_slider("yaw [deg]", -180.0, 180.0, 1.0, 0.0, disabled=True)
        self._position.on_update(self._moved)
        self._own.on_update(self._turned)
        self._yaw.on_update(self._turned)
        return folder

    def _renew_edit(self) -> None:
        drawing, k = self._drawing, self._drawing.chosen
        self._edited.visible = k is not None
        if k is None:
            return
        self._edited.label = f"way-point {k + 1}"
        self._set_value(self._position, drawing.draft.points[k])
        yaw = drawing.draft.yaws[k]
        self._set_value(self._own, yaw is not None)
        self._yaw.disabled = yaw is None
        shown = drawing.draft.headings()[k] if yaw is None else yaw
        self._set_value(self._yaw, float(round(math.degrees(math.remainder(shown, 2.0 * math.pi)))))

    def _moved(self, event: Any) -> None:
        if event.client is not None:
            self._drawing.drag(self._position.value, True)

    def _turned(self, event: Any) -> None:
        k = self._drawing.chosen
        if event.client is not None and k is not None:
            yaw = math.radians(float(self._yaw.value)) if self._own.value else None
            self._drawing.edit(lambda draft: draft.turned(k, yaw))

    def _limited(self, event: Any, name: str, value: float) -> None:
        if event.client is not None:
            # An empty limit is none; 0 stands for it in a field of numbers.
            limit = {name: float(value) or None}
            self._drawing.edit(lambda draft: draft.limited(**limit))

    def _pressed(self, name: str) -> None:
        drawing = self._drawing
        if name == "flip":
            drawing.choose(None)
            drawing.edit(lambda draft: draft.flipped())
        elif name == "delete":
            drawing.delete()
        else:
            drawing.undo(again=name == "redo")

    def _keys(self) -> None:
        commands = (("undo", "Z"), ("redo", "Y"), ("delete", "X"))
        for label, key in commands:
            command = self._gui.add_command(f"{label} (course)", hotkey=key)
            command.on_trigger(lambda _, label=label: self._pressed(label))
        self._gui.add_command("save the course", hotkey="V").on_trigger(lambda _: self._drawing.save())

    @staticmethod
    def _set(words: Any, text: str) -> None:
        if words.content != text:
            words.content = text

    @staticmethod
    def _set_value(field: Any, value: Any) -> None:
        if field.value != value:
            field.value = value
