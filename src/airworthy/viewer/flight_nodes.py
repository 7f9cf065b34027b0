"""A flight as nodes of the viewer: vehicle, path, planned path, what happened, the camera's frustum with its image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.frames import to_wxyz
from airworthy.viewer.flights import PlaybackTrack, ShownFlight, segments
from airworthy.viewer.vehicle_nodes import VehicleNodes, reach_of

if TYPE_CHECKING:
    from airworthy.viewer.cameras import CameraSource, ViewerImage

__all__ = ["SWITCHES", "FlightNodes"]

ROOT = "/flight"
FLOWN, PLANNED, FRUSTUM, MARK = (255, 92, 40), (40, 120, 220), (250, 190, 40), (230, 40, 50)
OTHER, FAILED = (70, 75, 80), (150, 15, 15)
"""Paths of other flights: those that went well or were not judged, and those that did not. Linear, as the browser takes colours
that differ within a node."""
SWITCHES = {
    "vehicle": "vehicle",
    "path": "flown path",
    "planned": "planned path",
    "events": "events",
    "camera": "camera",
    "others": "all paths",
}
"""What can be shown and hidden, and what the switches say."""
HIDDEN = ("others",)
"""Those that are hidden at first."""
OTHERS_MAX = 200
"""Most paths of other environments that are drawn."""
SPIN = 11.0
"""Rate at which a propeller at the highest speed is drawn to turn [rad/s]: faster, it would seem to stand or to go back."""
_LINE, _THIN = 4.0, 1.5
"""Widths on the screen [px]."""
_POINTS = 40_000
"""Most points of all other paths together."""


class FlightNodes:
    """The flight's nodes; `show` moves them, `choose` changes the environment, `switch` shows and hides.

    Args:
        api: `viser.ViserServer.scene`.
        flight: What to show.
        camera: Of whose images the frustum is shown; None: of none.
    """

    def __init__(self, api: Any, flight: ShownFlight, camera: CameraSource | None):
        self._api, self._flight, self._camera = api, flight, camera
        self._off = set(HIDDEN)
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        self.track: PlaybackTrack
        self.body: VehicleNodes
        self.env = flight.envs[0]
        api.add_frame(ROOT, show_axes=False)
        self.choose(self.env)
        self._others()

    @property
    def switches(self) -> dict[str, bool]:
        """Kinds of nodes that there are, and whether they are shown."""
        there = {kind: self._has(kind) for kind in SWITCHES} | {"camera": self._camera is not None}
        return {kind: kind not in self._off for kind in SWITCHES if there[kind]}

    def switch(self, kind: str, on: bool) -> None:
        """Show or hide a kind of nodes."""
        (self._off.discard if on else self._off.add)(kind)
        for name, handle in self.nodes.items():
            if name == f"{ROOT}/{kind}" or name.startswith(f"{ROOT}/{kind}/"):
                handle.visible = on

    def cover(self, kind: str, covered: bool) -> None:
        """Hide a kind for as long as it is covered, whatever its switch says."""
        name = f"{ROOT}/{kind}"
        if name in self.nodes:
            self.nodes[name].visible = not covered and kind not in self._off

    def choose(self, env: int) -> None:
        """Show another environment; raises AirworthyError where it has no rows."""
        self.track, self.env = self._flight.track(env), env
        self._vehicle()
        self._line("path", self.track.position, FLOWN)
        self._line("planned", np.zeros((0, 3)) if self.track.planned is None else self.track.planned, PLANNED)
        self._events()

    def show(self, time: float) -> tuple[ArrayAny, ArrayAny]:
        """Put the vehicle where it is at a time [s]; its position and attitude."""
        position, attitude = self.track.pose(time)
        frame = self.nodes[f"{ROOT}/vehicle"]
        frame.position, frame.wxyz = position, to_wxyz(attitude)
        self.body.turn(SPIN * self.track.turned(time), self.track.turning(time))
        return position, attitude

    def expose(self, viewer_image: ViewerImage) -> None:
        """Show an image in the camera's frustum, where it was taken."""
        name = f"{ROOT}/camera"
        if self._camera is None:
            return
        if name not in self.nodes:
            size = max(0.2, 1.6 * reach_of(self._flight.vehicle(self.env)))
            options: dict[str, Any] = {"thickness": 2.0, "thickness_units": "screen", "color": FRUSTUM, "cast_shadow": False}
            self.nodes[name] = self._api.add_camera_frustum(
                name, self._camera.fov, self._camera.aspect, scale=size, visible="camera" not in self._off, **options
            )
        frustum = self.nodes[name]
        frustum.image, frustum.position, frustum.wxyz = (
            viewer_image.image,
            viewer_image.position,
            to_wxyz(viewer_image.attitude),
        )

    def middle(self) -> Array:
        """Middle of the path's box [m]."""
        return 0.5 * (self.track.position.min(0) + self.track.position.max(0)).astype(np.float64)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _has(self, kind: str) -> bool:
        return any(name == f"{ROOT}/{kind}" or name.startswith(f"{ROOT}/{kind}/") for name in self.nodes)

    def _remove(self, kind: str) -> None:
        name = f"{ROOT}/{kind}"
        if name in self.nodes:
            self.nodes.pop(name).remove()  # its children with it
        self.nodes = {key: handle for key, handle in self.nodes.items() if not key.startswith(f"{name}/")}

    def _vehicle(self) -> None:
        self._remove("vehicle")
        name = f"{ROOT}/vehicle"
        self.nodes[name] = self._api.add_frame(name, show_axes=False, visible="vehicle" not in self._off)
        self.body = VehicleNodes(self._api, name, self._flight.vehicle(self.env))

    def _line(self, kind: str, points: ArrayAny, color: tuple[int, int, int]) -> None:
        self._remove(kind)
        pieces = segments(points)
        if len(pieces):
            options: dict[str, Any] = {"thickness": _LINE, "thickness_units": "screen", "visible": kind not in self._off}
            self.nodes[f"{ROOT}/{kind}"] = self._api.add_line_segments(f"{ROOT}/{kind}", pieces, color, **options)

    def _events(self) -> None:
        """Draw a ball and a word where something happened, and how the flight ended."""
        self._remove("events")
        root = f"{ROOT}/events"
        self.nodes[root] = self._api.add_frame(root, show_axes=False, visible="events" not in self._off)
        size = 0.25 * reach_of(self._flight.vehicle(self.env))
        for number, event in enumerate(self.track.events):
            options: dict[str, Any] = {"position": event.position, "cast_shadow": False}
            self._api.add_icosphere(f"{root}/{number}", size, MARK, **options)
            self._label(f"{root}/{number}_word", f"{event.label} at {event.time:.2f} s", event.position)
        outcome = self._flight.outcomes.get(self.env)
        if outcome is not None and not self.track.events:
            self._label(f"{root}/outcome", outcome.replace("_", " "), self.track.position[-1])

    def _label(self, name: str, text: str, position: Any) -> None:
        self._api.add_label(name, text, position=np.asarray(position, float), anchor="bottom-center", font_screen_scale=0.9)

    def _others(self) -> None:
        """Paths of the first environments in one node, hidden at first; those that failed are red."""
        envs = self._flight.envs[:OTHERS_MAX]
        if len(envs) < 2:
            return
        limit = max(2, _POINTS // len(envs))
        pieces = [segments(self._flight.table.flight(env).vector("position"), limit) for env in envs]
        good = (None, "success", "success_recovered")
        paints = [OTHER if self._flight.outcomes.get(env) in good else FAILED for env in envs]
        colors = np.concatenate(
            [np.broadcast_to(np.array(paint, np.uint8), piece.shape) for paint, piece in zip(paints, pieces, strict=True)]
        )
        name, options = f"{ROOT}/others", {"thickness": _THIN, "thickness_units": "screen", "visible": False}
        self.nodes[name] = self._api.add_line_segments(name, np.concatenate(pieces), colors, **options)
