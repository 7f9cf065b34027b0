"""The panel beside the picture: time line, choice of flight and view, switches, the camera's image; and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.viewer.following import MODES

__all__ = ["Actions", "Controls"]

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
        self.words = gui.add_markdown("", visible=bool(duration))
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
        self.boxes: dict[str, Any] = {}
        with gui.add_folder("show", expand_by_default=not follows):
            for key, says, on in switches:
                self._switch(gui, key, says, on)
        if facts:
            gui.add_markdown(facts)
        self._keys(gui, duration, follows)

    def show_time(self, time: float, words: str) -> None:
        """Set the time line and what stands above it."""
        if self.slider is not None:
            self.slider.value = round(time, 2)
        if self.words.content != words:
            self.words.content = words

    def show_image(self, image: NDArray[np.uint8]) -> None:
        """Set the camera's image."""
        if self.picture is None:
            self.picture = self._gui.add_image(image, label="camera", jpeg_quality=85, order=self._place)
        else:
            self.picture.image = image

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
        place = (self._envs.index(self._chosen()) + by) % len(self._envs)
        self._actions.choose(self._envs[place])

    def _next_view(self) -> None:
        assert self.view is not None  # there is a key only where there is a choice
        self.view.value = MODES[(MODES.index(self.view.value) + 1) % len(MODES)]
        self._actions.follow(self.view.value)
