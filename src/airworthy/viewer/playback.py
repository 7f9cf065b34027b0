"""The viewer: a subject's nodes in the browser, and the clock that plays it."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Scene
from airworthy.scenes.splats.placing import with_surface
from airworthy.scenes.viewpoints import roofless
from airworthy.viewer.cameras import CameraSource, RecordedCamera, ViewerImage
from airworthy.viewer.captures import SWITCHES as CAPTURE_SWITCHES
from airworthy.viewer.captures import CaptureNodes
from airworthy.viewer.controls import Actions, Controls, FirstView, Follower, first_view, set_camera
from airworthy.viewer.flight_nodes import SWITCHES, FlightNodes, reach_of
from airworthy.viewer.flights import ActorPoses, PlaybackTrack
from airworthy.viewer.newest import NewestWorker
from airworthy.viewer.panes import SensorPanes, recorded_images
from airworthy.viewer.picking import Picker
from airworthy.viewer.plots import FlightPlots, Plot, room_plot
from airworthy.viewer.scene_nodes import LAYERS, SHOWN, SceneNodes
from airworthy.viewer.server import stop, url_of
from airworthy.viewer.splat_nodes import BEYOND, ROOF, SPLATS_MAX, SplatNodes, ViewColors, without_beyond
from airworthy.viewer.subjects import Subject, splat_scene
from airworthy.viewer.surroundings import surround
from airworthy.viewer.tools import ClickTools, CropBox, cropped_file
from airworthy.viewer.trainings import TrainingState, TrainingWatch

if TYPE_CHECKING:
    import viser

__all__ = ["ImageStream", "Request", "Viewer"]

# ---- The camera's images, made in a thread of their own, so that rendering does not hold up what moves ----------------------


@dataclass(frozen=True, eq=False)
class Request:
    """Of which moment an image is wanted."""

    env: int
    time: float
    """[s]"""
    position: ArrayAny
    """Of the body, world [m]."""
    attitude: ArrayAny


class ImageStream(NewestWorker[Request]):
    """Takes the camera's images at the newest moment that is wanted.

    Args:
        camera: Gives the images, from this stream's thread alone.
        shown: Called with each image, or with what is wrong.
    """

    def __init__(self, camera: CameraSource, shown: Callable[[ViewerImage | None, str], None]):
        self._camera, self._shown = camera, shown
        super().__init__(self._make, "viewer images")

    def _make(self, request: Request) -> None:
        position, attitude = np.asarray(request.position), np.asarray(request.attitude)
        try:
            viewer_image = self._camera.take_image(request.env, request.time, position, attitude)
        except AirworthyError as error:
            self._shown(None, str(error))
            return
        self._shown(viewer_image, "")


# -----------------------------------------------------------------------------------------------------------------------------

TICK = 1.0 / 30.0
"""Between two updates while playing [s]."""
CAPTION_PERIOD = 0.1
"""Between two changes of the time line and the words above it while playing [s]."""
ACTORS_DURATION = 60.0
"""Length of the time line of a scene that moves by itself [s]."""
SPLATS, DIRECTIONS = "splats", "directions"
"""Keys of switches, beside those of layers, of flights, of captures and of what stands around."""


def _say(text: str) -> None:
    print(text, flush=True)


def _cameras_shown(subject: Subject) -> tuple[str, ...]:
    """Return what of a capture is shown at first: sparse points only where there is nothing else to see."""
    return ("cameras",) if subject.scene is not None else ("cameras", "points")


class Viewer:
    """Shows a subject on a server.

    Args:
        server: Of `serve`.
        subject: What to show.
        camera: Gives the images of the vehicle's camera; None: no camera is shown.
        splats_max: Most gaussians to send.
        say: Called with what was measured, marked or cropped.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        subject: Subject,
        camera: CameraSource | None = None,
        splats_max: int = SPLATS_MAX,
        say: Callable[[str], None] = _say,
    ):
        self.server, self.subject = server, subject
        self._lock = threading.RLock()
        self._captioned = -np.inf
        self._lowered: Scene | None = None
        self._roof = self._beyond = True
        api, scene = server.scene, subject.scene
        self.poses: ActorPoses | None = None
        self.scene: SceneNodes | None = None
        self.splats: SplatNodes | None = None
        if scene is not None:
            self._lowered = roofless(scene)
            self.poses = ActorPoses(scene)
            self.scene = SceneNodes(api, scene, self._lowered, self.poses)
            self.splats = SplatNodes(api, scene, self._lowered, splats_max) if scene.splats else None
        inside = scene is not None and (scene.carved is not None or subject.bare)
        self.capture = None if subject.capture is None else CaptureNodes(api, subject.capture, _cameras_shown(subject), inside)
        self.flight = None if subject.flight is None else FlightNodes(api, subject.flight, camera)
        self.follower = None if subject.flight is None else Follower(subject.flight.vehicle(subject.flight.envs[0]))
        self.duration = self._duration()
        """Of the time line [s]; 0 without one."""
        self.time = 0.0
        """Shown now [s]."""
        self.view = first_view(
            scene,
            None if self.flight is None else self.flight.track,
            None if self.capture is None or not (scene is None or subject.bare) else self.capture.box,
            self._reach(),
        )
        """Where a browser looks from at first."""
        if self.capture is not None and scene is not None and subject.bare and self.flight is None:
            position, target, fov = self.capture.eye()
            self.view = replace(self.view, position=position, target=target, fov=fov)
        self._aim(self.view)
        self._others = surround(api, scene, self.view)
        self.colors = self._view_colors()
        self.controls = self._controls()
        self.images = None if camera is None or self.flight is None else ImageStream(camera, self._shown)
        self.plots, self.panes = self._flight_panels(camera)
        self._splats_max = splats_max
        self._picker: Picker | None = None
        self._picked: tuple[Scene | None, bool] = (None, True)
        self.tools = ClickTools(api, server.gui, self.picker, self.view.size, say)
        self.crop = self._crop_box(say)
        self._watch: TrainingWatch | None = None
        api.on_click()(lambda event: self.tools.click(event.ray_origin, event.ray_direction))
        self.show(0.0)

    @property
    def nodes(self) -> dict[str, Any]:
        """Handle of every node that shows something, by its name."""
        parts = [part.nodes for part in (self.scene, self.splats, self.capture, self.flight) if part is not None]
        return {name: handle for part in parts for name, handle in part.items()}

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return url_of(self.server)

    @property
    def shown_scene(self) -> Scene | None:
        """The scene as it is shown: without its roof where that is taken off."""
        return self.subject.scene if self._roof else self._lowered

    def show(self, time: float, tell: bool = True) -> None:
        """Put everything where it is at a time.

        Args:
            time: [s], held within the time line.
            tell: Also renew the time line and the words above it.
        """
        with self._lock, self.server.atomic():
            self.time = float(np.clip(time, 0.0, self.duration))
            self._move()
            caption = f"{self.time:.2f} s"
            if self.flight is not None:
                position, attitude = self.flight.show(self.time)
                caption = f"flight {self.flight.env}: {self.flight.track.caption(self.time)}"
                if self.images is not None and (self.images.idle or tell):
                    self.images.ask(Request(self.flight.env, self.time, position, attitude))
                self._follow(position, attitude)
            if tell and self.flight is not None:
                self._renew_panels()
            if tell:
                self.controls.show_time(self.time, caption)

    def choose(self, env: int) -> None:
        """Show the flight of another environment, at the same time; raises AirworthyError where there is none."""
        with self._lock, self.server.atomic():
            if self.flight is None or self.follower is None or self.subject.flight is None:
                return
            self.flight.choose(env)
            self.follower.aim(self.subject.flight.vehicle(env))
            if self.controls.flight is not None:
                self.controls.choose(env)
            self._show_vehicle()
            if self.plots is not None:
                self.plots.choose(self.flight.track)
            self.show(self.time)

    def step(self, elapsed: float) -> None:
        """Go on by a real time [s] if playing, at the chosen speed; at the end, begin again."""
        if not self.duration or not self.controls.playing.value:
            return
        with self._lock:
            later = self.time + elapsed * float(self.controls.speed.value)
            now = clock.monotonic()
            tell = now - self._captioned >= CAPTION_PERIOD
            self._captioned = now if tell else self._captioned
            self.show(0.0 if later > self.duration else later, tell)

    def run(self) -> None:
        """Play until interrupted, while somebody looks on."""
        last = clock.monotonic()
        while True:
            clock.sleep(max(0.0, TICK - (clock.monotonic() - last)))
            now = clock.monotonic()
            # Left open without a browser, a viewer that plays would keep a quarter of a core busy for nobody.
            if self.server.get_clients():
                self.step(now - last)
            last = now

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until the camera's image is that of the time shown; False where it took longer [s]."""
        return self.images is None or self.images.wait(timeout)

    def follow(self, mode: str) -> None:
        """Look on freely, from behind the vehicle ("chase") or with its eyes ("onboard")."""
        with self._lock:
            if self.follower is not None:
                self.follower.choose(mode)
                self.controls.view.value = mode
                self._show_vehicle()
                self.show(self.time)

    def reset(self) -> None:
        """Look as at the beginning, with every browser."""
        self.follow("free")
        for client in self.server.get_clients().values():
            set_camera(client, (self.view.position, self.view.target, np.array([0.0, 0.0, 1.0])))

    def switch(self, key: str, on: bool) -> None:
        """Show or hide a layer of the scene, a part of the flight, the splats or the grid."""
        with self._lock:
            if key in LAYERS and self.scene is not None:
                self._surface(key, on)
                self.scene.switch(key, on)
                if key == "roof":
                    self._roof = on
                    if self.splats is not None:
                        self.splats.switch(on, ROOF)
            elif key in SWITCHES and self.flight is not None:
                self.flight.switch(key, on)
                self._show_vehicle()
            elif key in (SPLATS, BEYOND) and self.splats is not None:
                self.splats.switch(on, BEYOND if key == BEYOND else "")
                self._beyond = on if key == BEYOND else self._beyond
            elif key == DIRECTIONS and self.colors is not None:
                self.colors.on = on
                self.colors.renew()
            elif key in CAPTURE_SWITCHES and self.capture is not None:
                self.capture.switch(key, on)
            elif key in self._others:
                self._others[key].visible = on
            if key in self.controls.boxes:
                self.controls.boxes[key].value = on

    def picker(self) -> Picker | None:
        """Return what finds surfaces in the scene as it is shown; None where there is no scene."""
        scene = self.shown_scene
        if scene is None:
            return None
        if self._picker is None or self._picked[0] is not scene or self._picked[1] != self._beyond:
            self._picked = scene, self._beyond
            # What is hidden is clicked through.
            self._picker = Picker(scene if self._beyond else without_beyond(scene))
        return self._picker

    def watch(self) -> None:
        """Keep up with the training that is shown, until it ends."""
        if self.subject.training is not None and self._watch is None:
            self._watch = TrainingWatch(self.subject.training, self._trained)

    def close(self) -> None:
        """End the server and all threads."""
        for thread in (self.images, self.plots, self.colors, self._watch):
            if thread is not None:
                thread.close()
        stop(self.server)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _reach(self) -> float:
        """Return half of the vehicle's size, where a flight is shown with nothing around it [m]."""
        if self.flight is None or self.subject.flight is None or self.subject.scene is not None:
            return 0.0
        return 2.0 * reach_of(self.subject.flight.vehicle(self.flight.env))

    def _move(self) -> None:
        """Actors, and what rides on them."""
        if self.poses is None or not self.poses.parts:
            return
        self.poses.advance(self.time)
        if self.scene is not None:
            self.scene.advance()
        if self.splats is not None:
            self.splats.advance(self.poses)

    def _follow(self, position: Any, attitude: Any) -> None:
        view = None if self.follower is None else self.follower.view(self.time, position, attitude)
        if view is not None:
            for client in self.server.get_clients().values():
                set_camera(client, view)

    def _show_vehicle(self) -> None:
        """Hide the vehicle where it is followed: it is not seen out of its own eyes, and its frustum would stand in the way
        from behind, too.
        """
        if self.flight is not None and self.follower is not None:
            self.flight.cover("vehicle", self.follower.mode == "onboard")
            self.flight.cover("camera", self.follower.mode != "free")

    def _shown(self, viewer_image: ViewerImage | None, problem: str) -> None:
        """Note that an image has been made, in the thread of the images."""
        with self._lock:
            if problem:
                self.controls.show_time(self.time, f"The camera shows nothing: {problem}")
            if viewer_image is not None and self.flight is not None:
                self.flight.expose(viewer_image)
                self._show_vehicle()
                self.controls.show_image(viewer_image.image, viewer_image.time)

    def _trained(self, state: TrainingState | None, problem: str) -> None:
        """Show a newer state of a training, in the thread that watches."""
        with self._lock, self.server.atomic():
            if state is not None and self.splats is not None:
                self.splats.replace(state.splats, self._splats_max)
                self._picker = None
                assert self.subject.scene is not None  # the training's own
                later = splat_scene(self.subject.scene.name, state.splats)
                self.subject = replace(self.subject, scene=later, note=f"{state.text()}.")
                if self.colors is not None:
                    self.colors.renew()
            self.controls.renew_facts(problem or self._facts())

    def _view_colors(self) -> ViewColors | None:
        """Return what colours splats for the place one looks from; None where all are of one colour from everywhere."""
        # The degree of a training's harmonics grows while it is watched.
        if self.splats is None or not (self.splats.degree or self.subject.training is not None):
            return None
        return ViewColors(self.server, self.splats.color, self.view.size)

    def _flight_panels(self, camera: CameraSource | None) -> tuple[FlightPlots | None, SensorPanes | None]:
        """Return plots and panes of recorded images."""
        if self.flight is None or self.subject.flight is None:
            return None, None
        shown = (camera.sensor, "rgb") if isinstance(camera, RecordedCamera) else None
        images = [item for item in recorded_images(self.subject.flight.folder) if (item.sensor, item.channel) != shown]
        with self.controls.below:
            panes = SensorPanes(self.server.gui, images) if images else None
            more = None if self.subject.scene is None else self._room_plot
            plots = FlightPlots(self.server.gui, more, self.subject.flight.streams)
        plots.choose(self.flight.track)
        return plots, panes

    def _room_plot(self, track: PlaybackTrack) -> Plot:
        assert self.subject.scene is not None  # it is asked for with a scene only
        assert self.subject.flight is not None
        assert self.flight is not None
        return room_plot(track, self.subject.scene, self.subject.flight.vehicle(self.flight.env))

    def _renew_panels(self) -> None:
        if self.plots is not None:
            self.plots.show(self.time)
        if self.panes is not None and self.flight is not None:
            self.panes.show(self.flight.env, self.time)

    def _crop_box(self, say: Callable[[str], None]) -> CropBox | None:
        scene = self.subject.scene
        if self.splats is None or scene is None:
            return None
        bounds = scene.bounds
        return CropBox(self.server.scene, self.server.gui, bounds.lower, bounds.upper, self._cropped, self._crop_file, say)

    def _cropped(self, box: tuple[Any, Any] | None) -> int:
        assert self.splats is not None  # there is a box only where there are splats
        left = self.splats.crop(box)
        if self.colors is not None:
            self.colors.renew()
        return left

    def _crop_file(self, lower: Array, upper: Array) -> tuple[str, bytes]:
        assert self.subject.scene is not None  # there is a box only where there are splats
        return cropped_file(self.subject.title, self.subject.scene, lower, upper)

    def _surface(self, key: str, on: bool) -> None:
        """Find a splat file's surface when it is asked for."""
        if key == "collision" and on and self.subject.bare and self.scene is not None and not self.scene.has(key):
            assert self.subject.scene is not None  # it is what is bare
            self.scene.extend(with_surface(self.subject.scene))

    def _duration(self) -> float:
        if self.subject.flight is not None:
            return self.subject.flight.duration
        return ACTORS_DURATION if self.subject.scene is not None and self.subject.scene.actors else 0.0

    def _aim(self, view: FirstView) -> None:
        camera = self.server.initial_camera
        camera.position, camera.look_at, camera.up = view.position, view.target, np.array([0.0, 0.0, 1.0])
        camera.fov = view.fov
        camera.near, camera.far = view.near, view.far

    def _controls(self) -> Controls:
        flight = self.subject.flight
        labels = (
            {}
            if flight is None
            else {env: f"{env}  {flight.outcomes.get(env, '')}".replace("_", " ").strip() for env in flight.envs}
        )
        actions = Actions(self.show, self._play, self.choose, self.follow, self.reset, self.switch)
        return Controls(
            self.server.gui,
            self.subject.title,
            self._facts(),
            self.duration,
            labels,
            flight is not None,
            self._switches(),
            actions,
        )

    def _play(self) -> None:
        self.controls.playing.value = not self.controls.playing.value

    def _switches(self) -> list[tuple[str, str, bool]]:
        """Return what can be shown and hidden."""
        rows = [] if self.flight is None else [(kind, SWITCHES[kind], on) for kind, on in self.flight.switches.items()]
        rows += [] if self.splats is None else [(SPLATS, "splats", True)]
        layers = set() if self.scene is None else set(self.scene.layers)
        kinds = frozenset() if self.splats is None else self.splats.kinds
        layers |= kinds & {ROOF}
        rows += [(layer, says, layer in SHOWN) for layer, says in LAYERS.items() if layer in layers]
        rows += [(BEYOND, "beyond known space", True)] if BEYOND in kinds else []
        if self.subject.bare:
            rows.append(("collision", LAYERS["collision"], False))
        rows += [] if self.colors is None else [(DIRECTIONS, "colours by direction", True)]
        rows += (
            [] if self.capture is None else [(kind, CAPTURE_SWITCHES[kind], on) for kind, on in self.capture.switches.items()]
        )
        return rows + [(key, key, True) for key in self._others]

    def _facts(self) -> str:
        """Return a line about what is shown."""
        said = [self.subject.note] if self.subject.note else []
        if self.splats is not None:
            merged = "" if self.splats.count == self.splats.whole else f", merged from {self.splats.whole:,}"
            colors = "one colour each" if self.colors is None else "colours for where you look from, once it rests"
            said.append(f"{self.splats.count:,} gaussians{merged}, {colors}.")
        if self.capture is not None:
            said.append(self.capture.facts())
        return " ".join(said)
