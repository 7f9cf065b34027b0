"""What a click in the picture can do: measure, mark a place, set a start and a goal; and a box that crops splats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Scene
from airworthy.scenes.splats.editing import cropped_to
from airworthy.scenes.splats.placing import static_splats
from airworthy.scenes.splats.write import write_splats
from airworthy.viewer.picking import Pick, Picker

__all__ = ["CLICKS", "ClickTools", "CropBox", "Place", "cropped_file", "distance_text", "place_text", "printed_text"]

ROOT = "/tools"
CLICKS = ("only looks", "measures", "marks", "sets the start", "sets the goal")
"""What a click does."""
KINDS = {CLICKS[2]: "mark", CLICKS[3]: "start", CLICKS[4]: "goal"}
COLORS = {"mark": (250, 190, 40), "start": (60, 170, 80), "goal": (220, 60, 60), "measure": (40, 120, 220)}
_LINE = 3.0
_SHARE = 0.004
"""Radius of a mark, of the size of what is shown."""


@dataclass(frozen=True)
class Place:
    """A place that was clicked."""

    kind: str
    """ "mark", "start" or "goal"."""
    position: tuple[float, float, float]
    """World [m]."""


def place_text(position: ArrayLike) -> str:
    """Return coordinates to the millimetre, as options take them: "x y z"."""
    return " ".join(f"{round(float(value), 3) + 0.0:g}" for value in np.asarray(position, float))


def distance_text(begin: ArrayLike, end: ArrayLike) -> str:
    """Return how far two places are from each other [m], and how much of it is level and upright."""
    span = np.asarray(end, float) - np.asarray(begin, float)
    level = float(np.hypot(span[0], span[1]))
    return f"{float(np.linalg.norm(span)):.3f} m ({level:.3f} m level, {abs(float(span[2])):.3f} m up)"


def printed_text(begin: ArrayLike, end: ArrayLike) -> str:
    """Return the line that is printed of two places: their distance, and their coordinates as --known-distance takes them."""
    one, two = (place_text(point).replace(" ", ",") for point in (begin, end))
    return f"measured {distance_text(begin, end)} from {one} to {two}; in truth? --known-distance {one} {two} METRES"


class ClickTools:
    """The tools, in a folder of the panel.

    Args:
        api: `viser.ViserServer.scene`.
        gui: `viser.ViserServer.gui`.
        picker: Gives what finds surfaces in the scene as it is shown now; None where there is nothing to click.
        size: Of what is shown [m].
        say: Called with each sentence, for the terminal.
    """

    def __init__(self, api: Any, gui: Any, picker: Callable[[], Picker | None], size: float, say: Callable[[str], None]):
        self._api, self._picker, self._say_line = api, picker, say
        self._radius = max(_SHARE * size, 1e-3)
        self.places: list[Place] = []
        self._begin: Array | None = None
        self.measured: list[tuple[Array, Array]] = []
        self._nodes: dict[str, Any] = {}
        self._count = 0
        with gui.add_folder("tools", expand_by_default=False):
            self.choice = gui.add_dropdown("a click", CLICKS, initial_value=CLICKS[0])
            self.lift = gui.add_number("lift by [m]", 0.0, step=0.05)
            self.words = gui.add_markdown("", visible=False)
            gui.add_button("clear").on_click(lambda _: self.clear())
        self.choice.on_update(lambda _: self._restart())

    @property
    def active(self) -> bool:
        """Whether a click does something."""
        return str(self.choice.value) != CLICKS[0]

    def click(self, origin: ArrayLike, direction: ArrayLike) -> None:
        """Do what a click does, at the surface under it."""
        does = str(self.choice.value)
        if does == CLICKS[0]:
            return
        picker = self._picker()
        found = None if picker is None else picker.pick(origin, direction)
        if found is None:
            self._say("Nothing is there: click a surface.")
        elif does == CLICKS[1]:
            self._measure(found)
        else:
            self._put(KINDS[does], found.point + np.array([0.0, 0.0, float(self.lift.value)]), found.what)

    def clear(self) -> None:
        """Take everything away that was clicked."""
        for node in self._nodes.values():
            node.remove()
        self._nodes.clear()
        self.places.clear()
        self.measured.clear()
        self._begin = None
        self.words.visible = False

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _restart(self) -> None:
        self._begin = None

    def _measure(self, found: Pick) -> None:
        self._ball(found.point, "measure", "")
        if self._begin is None:
            self._begin = found.point
            self._say(f"From {place_text(found.point)} ({found.what}): click the other end.")
            return
        begin, end = self._begin, found.point
        self._begin = None
        self.measured.append((begin, end))
        pieces = np.stack([begin, end])[None].astype(np.float32)
        options: dict[str, Any] = {"thickness": _LINE, "thickness_units": "screen"}
        self._keep(self._api.add_line_segments(self._name("line"), pieces, COLORS["measure"], **options))
        text = distance_text(begin, end)
        self._keep(self._api.add_label(self._name("word"), text.partition(" (")[0], position=0.5 * (begin + end)))
        self._say(f"{text}  \nfrom {place_text(begin)}  \nto {place_text(end)}")
        self._say_line(printed_text(begin, end))

    def _put(self, kind: str, point: Array, what: str) -> None:
        if kind != "mark":  # there is one of each
            self.places = [place for place in self.places if place.kind != kind]
        x, y, z = (float(value) for value in point)
        self.places.append(Place(kind, (x, y, z)))
        self._ball(point, kind, f"{kind} {place_text(point)}")
        self._say(f"{kind} at {place_text(point)} ({what})")
        self._say_line(f"{kind} at {place_text(point)}, on {what}")
        ends = {place.kind: place_text(place.position).replace(" ", ",") for place in self.places if place.kind != "mark"}
        if len(ends) == 2:
            self._say_line(f"to fly it: --waypoints {ends['start']} {ends['goal']}")

    def _ball(self, point: Array, kind: str, text: str) -> None:
        # Of start and goal the name is the kind's own, so that a new one takes the place of the one before.
        name = f"{ROOT}/{kind}" if kind in ("start", "goal") else self._name(kind)
        self._keep(self._api.add_icosphere(name, self._radius, COLORS[kind], position=point, cast_shadow=False))
        if text:
            above = point + np.array([0.0, 0.0, 1.5 * self._radius])
            self._keep(self._api.add_label(f"{name}_word", text, position=above, anchor="bottom-center"))

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{ROOT}/{kind}_{self._count}"

    def _keep(self, handle: Any) -> None:
        # A node of the same name takes the place of the one before, which viser removes.
        self._nodes[handle.name] = handle

    def _say(self, text: str) -> None:
        self.words.content, self.words.visible = text, True


class CropBox:
    """A box whose corners are numbers in the panel; what it crops is told when it changes.

    Args:
        api: `viser.ViserServer.scene`.
        gui: `viser.ViserServer.gui`.
        lower: Corners at first, world [m], (3,).
        upper: [m], (3,).
        changed: Called with the corners, or with None where nothing is cropped; returns how many gaussians are shown.
        saved: Called with the corners; returns name and content of a file of what is inside, or raises AirworthyError.
        say: Called with a sentence, for the terminal.
    """

    def __init__(
        self,
        api: Any,
        gui: Any,
        lower: ArrayLike,
        upper: ArrayLike,
        changed: Callable[[tuple[Array, Array] | None], int],
        saved: Callable[[Array, Array], tuple[str, bytes]],
        say: Callable[[str], None],
    ):
        self._api, self._changed, self._saved, self._say_line = api, changed, saved, say
        self._node: Any = None
        low, high = (tuple(np.round(np.asarray(corner, float), 2).tolist()) for corner in (lower, upper))
        step = max(round(float(np.max(np.subtract(high, low))) / 200.0, 3), 1e-3)
        with gui.add_folder("crop box", expand_by_default=False):
            self.on = gui.add_checkbox("crop splats", False)
            self.lower = gui.add_vector3("lower [m]", low, step=step)
            self.upper = gui.add_vector3("upper [m]", high, step=step)
            self.save = gui.add_button("save as a cloud (.ply)", disabled=True)
            self.words = gui.add_markdown("", visible=False)
        self.save.on_click(lambda event: self.download(event.client))
        for field in (self.on, self.lower, self.upper):
            field.on_update(lambda event: None if event.client is None else self.renew())

    def renew(self) -> None:
        """Crop by what stands in the panel."""
        low, high = np.array(self.lower.value, float), np.array(self.upper.value, float)
        if not self.on.value:
            self._changed(None)
            self._show(None, None, "")
        elif not (low < high).all():
            self._show(None, None, "The lower corner must be below the upper one in x, y and z.")
        else:
            left = self._changed((low, high))
            text = f"{left:,} gaussians are inside, from {place_text(low)} to {place_text(high)}"
            self._show(low, high, text)
            self._say_line(f"crop box: {text}; as a new cloud: --crop {place_text(low)} {place_text(high)}")

    def download(self, client: Any) -> None:
        """Send a browser the gaussians that are inside as a file, all of them and with all harmonics, however few are shown.

        Args:
            client: `viser.ClientHandle`; None: nobody asked.
        """
        if client is None or self._node is None:  # there is a box only while it crops
            return
        try:
            name, content = self._saved(np.array(self.lower.value, float), np.array(self.upper.value, float))
        except AirworthyError as error:
            self.words.content, self.words.visible = str(error), True
            return
        client.send_file_download(name, content, save_immediately=True)
        self.words.content, self.words.visible = f"{name}, {len(content) / 1e6:.1f} MB, is among the browser's downloads", True

    def _show(self, low: Array | None, high: Array | None, text: str) -> None:
        self.words.content, self.words.visible = text, bool(text)
        if self._node is not None:
            self._node.remove()
            self._node = None
        if low is not None and high is not None:
            options: dict[str, Any] = {"thickness": 2.0, "thickness_units": "screen"}
            self._node = self._api.add_line_segments(f"{ROOT}/crop", _edges(low, high), COLORS["mark"], **options)
        self.save.disabled = self._node is None


def cropped_file(title: str, scene: Scene, lower: ArrayLike, upper: ArrayLike) -> tuple[str, bytes]:
    """Return name and content of a PLY of the gaussians that stand in a box, in the world.

    Args:
        title: Of what is shown, from which the file has its name.
        scene: With splats.
        lower: Corner of the box, world [m], (3,).
        upper: The opposite one [m], (3,).

    Raises:
        AirworthyError: Nothing is inside, or all splats ride on actors.
    """
    whole = static_splats(scene)
    if whole is None:
        raise AirworthyError(f"All splats of {scene.name!r} ride on actors: none stand that could be cut out.")
    stem = "".join(c if c.isalnum() or c in "_.-" else "_" for c in title).lstrip("_.-") or "splats"
    with TemporaryDirectory() as folder:
        path = write_splats(cropped_to(whole, lower, upper), Path(folder) / f"{stem}_cropped.ply")
        return path.name, path.read_bytes()


def _edges(low: Array, high: Array) -> Any:
    """Twelve edges of a box, (12, 2, 3)."""
    bits = np.array([[k >> 2 & 1, k >> 1 & 1, k & 1] for k in range(8)])
    corner = np.where(bits == 1, high, low)
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(bits[a] - bits[b]).sum() == 1]
    return np.array([[corner[a], corner[b]] for a, b in pairs], np.float32)
