"""The panel beside the picture: time line, choice of flight and view, switches, the camera's image; and keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.scenes.record import Scene
from airworthy.scenes.viewpoints import content_box, view
from airworthy.vehicles import Vehicle
from airworthy.viewer.flight_nodes import reach_of
from airworthy.viewer.flights import PlaybackTrack

__all__ = ["MODES", "Actions", "Controls", "FirstView", "Follower", "first_view"]

# ---- Where the browser looks from: free, behind the vehicle, or out of its own eyes -----------------------------------------

MODES = ("free", "chase", "onboard")
DISTANCE, RISE = 8.0, math.radians(18.0)
"""Of a camera that follows: reaches behind the vehicle, and how far above its horizon."""
_CALM = 0.5
"""Time in which a camera that follows turns after the vehicle [s]."""
_DISTANCE_MIN = 0.8


class Follower:
    """Moves the cameras of all browsers that look on."""

    def __init__(self, vehicle: Vehicle):
        self.mode = MODES[0]
        self.aim(vehicle)
        self._heading: float | None = None
        self._time = 0.0

    def aim(self, vehicle: Vehicle) -> None:
        """Follow a vehicle of another size."""
        self._away = max(DISTANCE * reach_of(vehicle), _DISTANCE_MIN)

    def choose(self, mode: str) -> None:
        """Look from elsewhere; the turn behind the vehicle begins anew."""
        self.mode, self._heading = mode, None

    def view(self, time: float, position: ArrayAny, attitude: ArrayAny) -> tuple[ArrayAny, ArrayAny, ArrayAny] | None:
        """Return position, the point looked at, and the direction that is up, for a vehicle's pose; None: the browser's own.

        Args:
            time: Of the flight [s].
            position: Of the vehicle [m].
            attitude: Of the vehicle.
        """
        if self.mode == "free":
            return None
        ahead = frames.rotate(attitude, np.array([1.0, 0.0, 0.0]))
        if self.mode == "onboard":
            return np.asarray(position), position + ahead, frames.rotate(attitude, np.array([0.0, 0.0, 1.0]))
        heading = self._calm(time, math.atan2(ahead[1], ahead[0]))
        flat = np.array([math.cos(heading), math.sin(heading), 0.0])
        back = -math.cos(RISE) * flat + np.array([0.0, 0.0, math.sin(RISE)])
        return position + self._away * back, np.asarray(position), np.array([0.0, 0.0, 1.0])

    def _calm(self, time: float, wanted: float) -> float:
        """Return the heading, turned after the vehicle's without haste; at once after a jump of the time."""
        passed, self._time = time - self._time, time
        if self._heading is None or not 0.0 <= passed < 2.0:
            self._heading = wanted
        turn = math.remainder(wanted - self._heading, 2.0 * math.pi)
        self._heading += (1.0 - math.exp(-passed / _CALM)) * turn
        return self._heading


def set_camera(client: Any, view: tuple[ArrayAny, ArrayAny, ArrayAny]) -> None:
    """Put one browser's camera somewhere."""
    position, target, up = view
    with client.atomic():
        client.camera.up_direction = up
        client.camera.position = position
        client.camera.look_at = target


# ---- Where a browser looks from at first ------------------------------------------------------------------------------------

FOV = np.radians(55.0)
"""From top to bottom, where there is no scene [rad]."""
# Ours: height over width of most screens.
_SHAPE = 9.0 / 16.0
_AWAY = np.array([-0.62, -0.62, 0.42])


@dataclass(frozen=True, eq=False)
class FirstView:
    """A camera, and the size of what it looks at."""

    position: Array
    target: Array
    fov: float
    """From top to bottom [rad]."""
    middle: Array
    """Of what is shown [m]."""
    size: float
    """Diagonal of its box [m]."""
    floor: float
    """Its lowest height [m]."""

    @property
    def near(self) -> float:
        """Distance from which on things are drawn [m]."""
        # Nearer, depth far away would lose its precision; farther, the wall before a drone would be cut away.
        return float(np.clip(0.002 * self.size, 0.002, 0.05))

    @property
    def far(self) -> float:
        """Distance up to which things are drawn [m]."""
        return max(1000.0, 20.0 * self.size)


def first_view(
    scene: Scene | None, track: PlaybackTrack | None, box: tuple[Array, Array] | None = None, reach: float = 0.0
) -> FirstView:
    """Look at a flight from behind and above, at a scene as its orbit view does.

    Args:
        scene: What stands there; None: nothing.
        track: Of the flight that is shown at first; None: none is.
        box: Around what else is shown [m]; None: around scene and flight.
        reach: Half of the vehicle's size [m]: one that hovers takes more room than its path.
    """
    low, high = _box(scene, track, reach) if box is None else box
    middle, size, floor = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 0.1), float(low[2])
    if scene is None:
        # Half of the diagonal fills half of the view, with a little room around it.
        distance = 0.54 * size / np.tan(0.5 * FOV)
        away = _AWAY / np.linalg.norm(_AWAY)
        return FirstView(middle + distance * away, middle, float(FOV), middle, size, floor)
    viewpoint = view(scene, "orbit")
    # The view's angle is across its width; the browser's is from top to bottom.
    fov = 2.0 * float(np.arctan(np.tan(0.5 * viewpoint.fov) * _SHAPE))
    if track is not None:
        flown = track.position.astype(np.float64)
        return FirstView(viewpoint.position, 0.5 * (flown.min(0) + flown.max(0)), fov, middle, size, floor)
    forward = frames.rotate(viewpoint.attitude, np.array([0.0, 0.0, 1.0]))
    ahead = max(float(forward @ (middle - viewpoint.position)), 0.1 * size)
    return FirstView(viewpoint.position, viewpoint.position + ahead * forward, fov, middle, size, floor)


def _box(scene: Scene | None, track: PlaybackTrack | None, reach: float) -> tuple[Array, Array]:
    """Around what is shown: the scene's things within its bounds, and the flight."""
    boxes: list[tuple[Any, Any]] = []
    if scene is not None:
        boxes.append(content_box(scene))
    if track is not None:
        boxes.append((track.position.min(0) - reach, track.position.max(0) + reach))
    if not boxes:
        return np.array([-5.0, -5.0, 0.0]), np.array([5.0, 5.0, 3.0])
    low, high = np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)
    return np.asarray(low, np.float64), np.asarray(high, np.float64)


# -----------------------------------------------------------------------------------------------------------------------------

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
LISTED = 300
"""Most flights that are listed by name; more are chosen by their number."""
KEYS = "Space plays, Home and End go to the ends, Page Up and Page Down choose the flight, C the view, R resets it."


@dataclass(frozen=True)
class Actions:
    """What the controls do."""

    seek: Callable[[float], None]
    """Go to a time [s]."""
    play: Callable[[], None]
    """Play, or pause."""
    choose: Callable[[int], None]
    """Show a flight by its environment."""
    follow: Callable[[str], None]
    """Look from elsewhere, by the name of a mode."""
    reset: Callable[[], None]
    """Look as at the beginning."""
    switch: Callable[[str, bool], None]
    """Show or hide something, by its key."""


class Controls:
    """The panel.

    Args:
        gui: `viser.ViserServer.gui`.
        title: Of the panel.
        facts: A line about what is shown.
        duration: Of the time line [s]; 0: there is none.
        flights: Label by environment; one or none: there is no choice.
        follows: Whether there is a vehicle to follow.
        switches: Key, what it says, and whether it is on.
        actions: What they do.
    """

    def __init__(
        self,
        gui: Any,
        title: str,
        facts: str,
        duration: float,
        flights: Mapping[int, str],
        follows: bool,
        switches: Sequence[tuple[str, str, bool]],
        actions: Actions,
    ):
        self._gui, self._actions, self._envs = gui, actions, tuple(flights)
        self.picture: Any = None
        """The camera's image; None before the first."""
        gui.set_panel_label(f"Airworthy: {title}")
        self.caption = gui.add_markdown("", visible=bool(duration))
        self.playing: Any = None
        self.slider: Any = None
        self.speed: Any = None
        self.flight: Any = None
        self.view: Any = None
        if duration:
            self._time_line(gui, duration, follows)
        if len(flights) > 1:
            self._flights(gui, flights)
        if follows:
            self.view = gui.add_dropdown("view", MODES, initial_value=MODES[0])
            self._views(self.view)
        gui.add_button("reset view").on_click(lambda _: actions.reset())
        self._place = gui.add_markdown("", visible=False).order
        """Where the image comes: above the switches."""
        self.below = gui.add_folder(None)
        """Where plots and recorded images come, under the camera's."""
        self.boxes: dict[str, Any] = {}
        with gui.add_folder("show", expand_by_default=not follows):
            for key, says, on in switches:
                self._switch(gui, key, says, on)
        self._facts = gui.add_markdown(facts, visible=bool(facts))
        self._keys(gui, duration, follows)

    def show_time(self, time: float, caption: str) -> None:
        """Set the time line and what stands above it."""
        if self.slider is not None:
            self.slider.value = round(time, 2)
        if self.caption.content != caption:
            self.caption.content = caption

    def show_image(self, image: ArrayU8, time: float | None = None) -> None:
        """Set the camera's image, and when it was taken [s]."""
        label = "camera" if time is None else f"camera, {time:.2f} s"
        if self.picture is None:
            self.picture = self._gui.add_image(image, label=label, jpeg_quality=85, order=self._place)
        else:
            self.picture.image, self.picture.label = image, label

    def renew_facts(self, facts: str) -> None:
        """Set the line about what is shown."""
        self._facts.content, self._facts.visible = facts, bool(facts)

    def choose(self, env: int) -> None:
        """Set the choice of flight."""
        if isinstance(self._labels, dict):
            self.flight.value = self._labels[env]
        else:
            self.flight.value = self._envs.index(env)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _time_line(self, gui: Any, duration: float, playing: bool) -> None:
        self.playing = gui.add_checkbox("play", playing)
        self.slider = gui.add_slider("time [s]", 0.0, round(max(duration, 0.01), 2), 0.01, 0.0)
        self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")

        @self.slider.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # not our own while playing
                self._actions.seek(self.slider.value)

    def _flights(self, gui: Any, flights: Mapping[int, str]) -> None:
        self._labels = dict(flights) if len(flights) <= LISTED else None
        if self._labels is None:
            self.flight = gui.add_slider("flight", 0, len(flights) - 1, 1, 0)
        else:
            names = tuple(self._labels.values())
            self.flight = gui.add_dropdown("flight", names, initial_value=names[0])

        @self.flight.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self._actions.choose(self._chosen())

    def _views(self, view: Any) -> None:
        @view.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self._actions.follow(view.value)

    def _chosen(self) -> int:
        if self._labels is None:
            return self._envs[int(self.flight.value)]
        return next(env for env, label in self._labels.items() if label == self.flight.value)

    def _switch(self, gui: Any, key: str, says: str, on: bool) -> None:
        box = self.boxes[key] = gui.add_checkbox(says, on)

        @box.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self._actions.switch(key, box.value)

    def _keys(self, gui: Any, duration: float, follows: bool) -> None:
        """Keys that the browser's own steering leaves free (it has the letters W, A, S, D, Q, E and the arrows)."""
        actions = self._actions
        commands: list[tuple[str, str, Callable[[], None]]] = [("reset view", "R", actions.reset)]
        if duration:
            commands.append(("play or pause", "space", actions.play))
            commands.append(("to the beginning", "home", lambda: actions.seek(0.0)))
            commands.append(("to the end", "end", lambda: actions.seek(duration)))
        if len(self._envs) > 1:
            commands.append(("next flight", "pagedown", lambda: self._step(1)))
            commands.append(("previous flight", "pageup", lambda: self._step(-1)))
        if follows:
            commands.append(("next view", "C", self._next_view))
        for label, key, action in commands:
            gui.add_command(label, hotkey=key).on_trigger(lambda _, action=action: action())

    def _step(self, by: int) -> None:
        index = (self._envs.index(self._chosen()) + by) % len(self._envs)
        self._actions.choose(self._envs[index])

    def _next_view(self) -> None:
        assert self.view is not None  # there is a key only where there is a choice
        self.view.value = MODES[(MODES.index(self.view.value) + 1) % len(MODES)]
        self._actions.follow(self.view.value)
