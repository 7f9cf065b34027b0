"""A flight as nodes of the viewer: vehicle, path, planned path, the camera's frustum with its image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import to_wxyz
from airworthy.viewer.flights import ShownFlight, Track, segments
from airworthy.viewer.vehicle_nodes import add_vehicle

if TYPE_CHECKING:
    from airworthy.viewer.cameras import CameraSource

__all__ = ["FlightNodes"]

ROOT = "/flight"
FLOWN, PLANNED, OTHER, FRUSTUM = (255, 92, 40), (40, 120, 220), (140, 145, 150), (250, 190, 40)
OTHERS_MAX = 200
"""Most paths of other environments that are drawn."""
_LINE, _THIN = 3.0, 1.0
"""Widths on the screen [px]."""


class FlightNodes:
    """The flight's nodes; `show` moves them, `choose` changes the environment.

    Args:
        api: `viser.ViserServer.scene`.
        gui: `viser.ViserServer.gui`.
        flight: What to show.
        camera: Gives the images; None: no camera is shown.
    """

    def __init__(self, api: Any, gui: Any, flight: ShownFlight, camera: CameraSource | None):
        self._api, self._flight, self._camera = api, flight, camera
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        self._words = gui.add_markdown("")
        self._picture: Any = None
        self._gui = gui
        api.add_frame(ROOT, show_axes=False)
        self.track: Track
        self.choose(flight.envs[0])
        self._others()
        self._switches(gui)

    def choose(self, env: int) -> None:
        """Show another environment; raises AirworthyError where it has no rows."""
        self.track, self.env = self._flight.track(env), env
        self._vehicle()
        self._line("path", self.track.position, FLOWN)
        if self.track.planned is not None:
            self._line("planned", self.track.planned, PLANNED)

    def show(self, time: float, image: bool = True) -> None:
        """Put the vehicle and its camera where they are at a time [s]."""
        position, attitude = self.track.pose(time)
        body = self.nodes[f"{ROOT}/vehicle"]
        body.position, body.wxyz = position, to_wxyz(attitude)
        if image:
            self._words.content = f"flight {self.env}: {self.track.words(time)}"
            self._shoot(time, position, attitude)

    def middle(self) -> NDArray[np.float64]:
        """Middle of the path's box [m]."""
        return 0.5 * (self.track.position.min(0) + self.track.position.max(0)).astype(np.float64)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _vehicle(self) -> None:
        name = f"{ROOT}/vehicle"
        if name in self.nodes:
            self.nodes[name].remove()  # its children with it
        self.nodes[name] = self._api.add_frame(name, show_axes=False)
        add_vehicle(self._api, name, self._flight.vehicle(self.env))

    def _line(self, name: str, points: NDArray[Any], color: tuple[int, int, int], width: float = _LINE) -> None:
        path = f"{ROOT}/{name}"
        pieces = segments(points)
        shown = self.nodes[path].visible if path in self.nodes else True
        if path in self.nodes:
            self.nodes.pop(path).remove()
        if len(pieces):
            self.nodes[path] = self._api.add_line_segments(
                path, pieces, color, thickness=width, thickness_units="screen", visible=shown
            )

    def _others(self) -> None:
        """Paths of the first environments in one node, hidden at first."""
        envs = self._flight.envs[:OTHERS_MAX]
        if len(envs) < 2:
            return
        limit = max(2, 40_000 // len(envs))
        pieces = [segments(self._flight.table.flight(env).vector("position"), limit) for env in envs]
        path = f"{ROOT}/others"
        self.nodes[path] = self._api.add_line_segments(
            path, np.concatenate(pieces), OTHER, thickness=_THIN, thickness_units="screen", visible=False
        )

    def _shoot(self, time: float, position: NDArray[Any], attitude: NDArray[Any]) -> None:
        shot = None if self._camera is None else self._camera.shot(self.env, time, position, attitude)
        if shot is None or self._camera is None:
            return
        name = f"{ROOT}/camera"
        if name not in self.nodes:
            self.nodes[name] = self._api.add_camera_frustum(
                name, self._camera.fov, self._camera.aspect, scale=0.35, thickness=2.0, thickness_units="screen", color=FRUSTUM
            )
            self._picture = self._gui.add_image(shot.image, label="camera")
        frustum = self.nodes[name]
        frustum.image, frustum.position, frustum.wxyz = shot.image, shot.position, to_wxyz(shot.attitude)
        self._picture.image = shot.image

    def _switches(self, gui: Any) -> None:
        """One switch per kind of node."""
        kinds = {"path": True, "planned": True, "others": False, "camera": True}
        for kind, on in kinds.items():
            there = f"{ROOT}/{kind}" in self.nodes or (kind == "camera" and self._camera is not None)
            if there:
                self._switch(gui.add_checkbox(_LABELS[kind], on), f"{ROOT}/{kind}")

    def _switch(self, box: Any, name: str) -> None:
        @box.on_update
        def _(_: Any) -> None:
            if name in self.nodes:
                self.nodes[name].visible = box.value


_LABELS = {"path": "flown path", "planned": "planned path", "others": "all paths", "camera": "camera in the scene"}
