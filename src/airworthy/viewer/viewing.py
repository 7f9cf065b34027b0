"""The viewer: a subject's nodes in the browser, and the controls that play it."""

from __future__ import annotations

import threading
import time as clock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.extent import scene_box
from airworthy.viewer.flight_nodes import FlightNodes
from airworthy.viewer.scene_nodes import SceneNodes
from airworthy.viewer.server import stop, url_of
from airworthy.viewer.splat_nodes import SPLATS_MAX, add_splats
from airworthy.viewer.subjects import Subject

if TYPE_CHECKING:
    import viser

    from airworthy.viewer.cameras import CameraSource

__all__ = ["Viewer"]

TICK = 1.0 / 30.0
"""Between two updates while playing [s]."""
IMAGE_EVERY = 0.12
"""Between two images of the camera while playing [s], so that rendering does not hold up the motion."""
ACTORS_DURATION = 60.0
"""Length of the time line of a scene that moves by itself [s]."""
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")


class Viewer:
    """Shows a subject on a server.

    Args:
        server: Of `serve`.
        subject: What to show.
        camera: Gives the images of the vehicle's camera; None: no camera is shown.
        splats_max: Most gaussians to send.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        subject: Subject,
        camera: CameraSource | None = None,
        splats_max: int = SPLATS_MAX,
    ):
        self.server = server
        self.subject = subject
        self._lock = threading.RLock()
        self._image_at = 0.0
        api = server.scene
        self.scene = None if subject.scene is None else SceneNodes(api, subject.scene)
        self.splats = self._splats(api, splats_max)
        self.flight = None if subject.flight is None else FlightNodes(api, server.gui, subject.flight, camera)
        self.duration = self._duration()
        """Of the time line [s]; 0 without one."""
        self.time = 0.0
        """Shown now [s]."""
        self._aim(server)
        self._controls(server.gui)
        self.show(0.0)

    @property
    def nodes(self) -> dict[str, Any]:
        """Handle of every node that shows something, by its name."""
        shown = {} if self.scene is None else dict(self.scene.nodes)
        shown |= {} if self.splats is None else {self.splats.name: self.splats}
        return shown | ({} if self.flight is None else self.flight.nodes)

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return url_of(self.server)

    def show(self, time: float, image: bool = True) -> None:
        """Put everything where it is at a time.

        Args:
            time: [s], held within the time line.
            image: Also renew the camera's image.
        """
        with self._lock:
            self.time = float(np.clip(time, 0.0, self.duration))
            if self.scene is not None:
                self.scene.advance(self.time)
            if self.flight is not None:
                self.flight.show(self.time, image)
            if self.duration:
                self.slider.value = round(self.time, 2)

    def choose(self, env: int) -> None:
        """Show the flight of another environment, at the same time."""
        with self._lock:
            if self.flight is not None:
                self.flight.choose(env)
                self.flight.show(self.time)

    def step(self, elapsed: float) -> None:
        """Go on by a real time [s] if playing, at the chosen speed; at the end, begin again."""
        if not self.duration or not self.playing.value:
            return
        with self._lock:
            later = self.time + elapsed * float(self.speed.value)
            now = clock.monotonic()
            image = now - self._image_at >= IMAGE_EVERY
            self._image_at = now if image else self._image_at
            self.show(0.0 if later > self.duration else later, image)

    def run(self) -> None:
        """Play until interrupted."""
        last = clock.monotonic()
        while True:
            clock.sleep(TICK)
            now = clock.monotonic()
            self.step(now - last)
            last = now

    def close(self) -> None:
        """End the server."""
        stop(self.server)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _splats(self, api: Any, limit: int) -> Any:
        if self.subject.splats is None:
            return None
        slot = None if self.subject.scene is None else self.subject.scene.splat
        where: dict[str, Any] = (
            {} if slot is None else {"position": slot.position, "attitude": slot.attitude, "scale": slot.scale}
        )
        return add_splats(api, "/splats", self.subject.splats, limit=limit, **where)

    def _duration(self) -> float:
        if self.subject.flight is not None:
            return self.subject.flight.duration
        return ACTORS_DURATION if self.subject.scene is not None and self.subject.scene.actors else 0.0

    def _aim(self, server: viser.ViserServer) -> None:
        """Look at the flight from behind and above, at a scene as its orbit view does, at splats from outside."""
        position, target = self._first_view()
        server.initial_camera.position = position
        server.initial_camera.look_at = target
        server.initial_camera.up = np.array([0.0, 0.0, 1.0])
        size = float(np.linalg.norm(target - position))
        server.initial_camera.near = float(np.clip(0.005 * size, 0.005, 0.1))
        server.initial_camera.far = max(1000.0, 20.0 * size)

    def _first_view(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.subject.scene is not None:
            from airworthy.scenes.viewing import view

            seen = view(self.subject.scene, "orbit")
            if self.flight is not None:
                return seen.position, self.flight.middle()
            # The view's angle is across its width; the browser's is from top to bottom.
            self.server.initial_camera.fov = 2.0 * float(np.arctan(np.tan(0.5 * seen.fov) * 9.0 / 16.0))
            forward = frames.rotate(seen.attitude, np.array([0.0, 0.0, 1.0]))
            box = scene_box(self.subject.scene)
            middle = seen.position + 5.0 * forward if box is None else 0.5 * (box[0] + box[1])
            return seen.position, seen.position + max(float(forward @ (middle - seen.position)), 1.0) * forward
        low, high = self._extent()
        center, size = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 1.0)
        return center + size * np.array([-0.6, -0.6, 0.45]), center

    def _extent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        points = self.subject.splats.position if self.subject.splats is not None else np.zeros((1, 3))
        if self.flight is not None:
            points = self.flight.track.position
        # A few splats often float far away from what was captured.
        low, high = np.quantile(points.astype(np.float64), (0.03, 0.97), axis=0)
        return low, high

    def _controls(self, gui: Any) -> None:
        gui.set_panel_label(f"Airworthy: {self.subject.title}")
        if not self.duration:
            return
        self.playing = gui.add_checkbox("play", self.subject.flight is not None)
        self.slider = gui.add_slider("time [s]", 0.0, round(max(self.duration, 0.01), 2), 0.01, 0.0)
        self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")

        @self.slider.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # not our own while playing
                self.show(self.slider.value)

        if self.subject.flight is not None and len(self.subject.flight.envs) > 1:
            count = len(self.subject.flight.envs)
            self.environment = gui.add_slider("flight", 0, count - 1, 1, 0)
            envs = self.subject.flight.envs

            @self.environment.on_update
            def _(_: Any) -> None:
                self.choose(envs[int(self.environment.value)])
