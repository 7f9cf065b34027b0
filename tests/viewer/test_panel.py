"""The panel acts on what a browser changes and not on what it shows itself; its keys do what they say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from airworthy.viewer.controls import Actions, Controls


class Panel:
    """Stands for `viser.ViserServer.gui`: keeps what is added to it."""

    def __init__(self) -> None:
        self.handles: dict[str, Any] = {}
        self.keys: dict[str, Callable[[Any], None]] = {}

    def _add(self, name: str, value: Any = None) -> Any:
        handle = SimpleNamespace(value=value, content="", order=0.0, heard=[])
        handle.on_update = handle.on_click = handle.heard.append
        self.handles[name] = handle
        return handle

    def set_panel_label(self, label: str) -> None:
        self.handles["title"] = label

    def add_markdown(self, content: str, visible: bool = True) -> Any:
        return self._add(content or "caption")

    def add_checkbox(self, name: str, value: bool) -> Any:
        return self._add(name, value)

    def add_slider(self, name: str, low: float, high: float, step: float, value: float) -> Any:
        return self._add(name, value)

    def add_dropdown(self, name: str, options: tuple[str, ...], initial_value: str) -> Any:
        return self._add(name, initial_value)

    def add_button(self, name: str) -> Any:
        return self._add(name)

    def add_folder(self, name: str | None, expand_by_default: bool = True) -> Any:
        return nullcontext()

    def add_command(self, label: str, hotkey: str) -> Any:
        return SimpleNamespace(on_trigger=lambda action: self.keys.update({hotkey: action}))


@pytest.fixture
def panel() -> tuple[Panel, list[Any]]:
    """A panel of two flights of 8 s, numbers 3 and 7, and what it asked for."""
    gui, asked = Panel(), []

    def note(name: str) -> Callable[..., None]:
        return lambda *given: asked.append((name, *given))

    actions = Actions(**{name: note(name) for name in ("seek", "play", "choose", "follow", "reset", "switch")})
    Controls(gui, "run", "", 8.0, {3: "third", 7: "seventh"}, True, [("path", "flown path", True)], actions)
    return gui, asked


@pytest.mark.parametrize(
    ("name", "value", "asks"),
    [
        ("time [s]", 2.5, ("seek", 2.5)),
        ("flight", "seventh", ("choose", 7)),
        ("view", "chase", ("follow", "chase")),
        ("flown path", False, ("switch", "path", False)),
    ],
)
def test_only_a_browsers_change_is_acted_upon(panel: tuple[Panel, list[Any]], name: str, value: Any, asks: Any) -> None:
    gui, asked = panel
    handle = gui.handles[name]
    handle.value = value
    (heard,) = handle.heard
    heard(SimpleNamespace(client=None))
    assert asked == []
    heard(SimpleNamespace(client=object()))
    assert asked == [asks]


@pytest.mark.parametrize(
    ("key", "asks"),
    [
        ("R", ("reset",)),
        ("space", ("play",)),
        ("home", ("seek", 0.0)),
        ("end", ("seek", 8.0)),
        ("pagedown", ("choose", 7)),
        ("pageup", ("choose", 7)),
        ("C", ("follow", "chase")),
    ],
)
def test_keys(panel: tuple[Panel, list[Any]], key: str, asks: Any) -> None:
    gui, asked = panel
    gui.keys[key](SimpleNamespace(client=object()))
    assert asked == [asks]
