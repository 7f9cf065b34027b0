"""The viewer: a subject's nodes in the browser, and the clock that plays it."""

from __future__ import annotations

import json
import math
import struct
import threading
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Color, Scene, Sky, Sun
from airworthy.scenes.splats.placing import with_surface
from airworthy.scenes.viewpoints import roofless
from airworthy.viewer.cameras import CameraSource, ViewerImage
from airworthy.viewer.controls import Actions, Controls, FirstView, Follower, first_view, set_camera
from airworthy.viewer.flight_nodes import SWITCHES, FlightNodes
from airworthy.viewer.flights import ActorPoses
from airworthy.viewer.scene_nodes import LAYERS, SHOWN, SPLATS_MAX, SceneNodes, SplatNodes
from airworthy.viewer.server import stop, url_of
from airworthy.viewer.subjects import Subject

if TYPE_CHECKING:
    import viser

__all__ = ["GREY", "ImageStream", "Request", "Viewer", "add_grid", "add_sky", "light", "surround"]

# ---- What stands around a scene in the browser: a sky, a grid where there is no ground, and light ---------------------------

GREY = Sky((0.30, 0.34, 0.40), (0.62, 0.65, 0.69), (0.34, 0.35, 0.37))
"""Behind splats and flights that have no scene, and so no sky: calm, and neither black nor white."""
_RINGS, _SECTORS = 24, 48
_UNLIT = "KHR_materials_unlit"


def surround(api: Any, scene: Scene | None, view: FirstView) -> dict[str, Any]:
    """Return sky and light as the scene has them, and a grid where no meshes stand.

    Args:
        api: `viser.ViserServer.scene`.
        scene: What is shown; None: nothing but a flight.
        view: How large it is, and where.

    Returns:
        What can be switched off, by its name.
    """
    light(api, [] if scene is None else [lamp for lamp in scene.lights if isinstance(lamp, Sun)])
    stands = scene is not None and bool(scene.instances or scene.actors)
    sky = scene.sky if scene is not None and stands else GREY
    add_sky(api, sky, view.middle, 0.45 * view.far)
    return {} if stands else {"grid": add_grid(api, view.middle, view.size, view.floor)}


def add_sky(api: Any, sky: Sky, middle: ArrayAny, radius: float) -> Any:
    """Return a dome around everything in the colours of a sky, the ground's below the horizon.

    Args:
        api: `viser.ViserServer.scene`.
        sky: Its colours are taken as they are, without the browser's light.
        middle: Of the scene [m].
        radius: Of the dome [m].
    """
    center = np.array([float(middle[0]), float(middle[1]), 0.0])
    return api.add_glb("/sky", _dome(sky, radius), position=center, cast_shadow=False, receive_shadow=False)


def add_grid(api: Any, middle: ArrayAny, size: float, height: float) -> Any:
    """Return a grid of cells of 1, 10 or 0.1 m, as suits the size of what is shown [m].

    Args:
        api: Of viser's scene.
        middle: Of what is shown [m]; its x and y count.
        size: Of what is shown [m].
        height: Of the grid [m].
    """
    # Of powers of ten the one that leaves some 4 to 40 cells across what is shown.
    cell = 10.0 ** max(-2, round(math.log10(max(size, 1e-3) / 12.0)))
    return api.add_grid(
        "/grid",
        infinite_grid=True,
        cell_size=cell,
        section_size=5.0 * cell,
        cell_color=(150, 154, 160),
        section_color=(120, 124, 130),
        fade_distance=10.0 * max(size, 1.0),
        shadow_opacity=0.0,
        position=(float(middle[0]), float(middle[1]), height),
    )


def light(api: Any, suns: list[Sun]) -> None:
    """Add soft light from everywhere, and from a scene's sun where it has one."""
    api.configure_default_lights(enabled=False)
    api.configure_environment_map(None)  # without a GPU it takes many seconds, and adds little to rough surfaces
    api.add_light_hemisphere("/light/sky", sky_color=(235, 242, 255), ground_color=(150, 140, 130), intensity=3.0)
    direction = np.array(suns[0].direction if suns else (-0.35, 0.45, -0.82), float)
    color = _bytes(suns[0].color) if suns else (255, 250, 240)
    position = -50.0 * direction / np.linalg.norm(direction)  # it shines from there towards the origin
    api.add_light_directional("/light/sun", color=color, intensity=2.2, position=tuple(position))


def _bytes(color: Color) -> tuple[int, int, int]:
    red, green, blue = (round(255.0 * min(max(part, 0.0), 1.0)) for part in color)
    return red, green, blue


def _dome(sky: Sky, radius: float) -> bytes:
    """Return a sphere seen from inside, z up, coloured per vertex, as a .glb in memory."""
    up, around = np.meshgrid(
        np.linspace(-0.5, 0.5, _RINGS + 1) * math.pi, np.linspace(0.0, 2.0, _SECTORS + 1) * math.pi, indexing="ij"
    )
    out = np.stack((np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)), axis=-1).reshape(-1, 3)
    corner = np.arange(_RINGS)[:, None] * (_SECTORS + 1) + np.arange(_SECTORS)
    quad = np.stack(
        (corner, corner + _SECTORS + 1, corner + 1, corner + 1, corner + _SECTORS + 1, corner + _SECTORS + 2), axis=-1
    )
    return _glb((radius * out).astype(np.float32), _colors(sky, out[:, 2]), quad.reshape(-1).astype(np.uint32))


def _colors(sky: Sky, height: ArrayAny) -> ArrayF32:
    """Colour (n, 3) of directions by their z, (n,): from the horizon up to the zenith, and quickly to the ground below it."""
    horizon, zenith, ground = (sky.intensity * np.array(part) for part in (sky.horizon, sky.zenith, sky.ground))
    above = np.clip(height, 0.0, 1.0)[:, None] ** 0.6
    below = np.clip(-height / 0.15, 0.0, 1.0)[:, None]
    return np.clip(
        np.where(height[:, None] >= 0.0, horizon + above * (zenith - horizon), horizon + below * (ground - horizon)), 0, 1
    ).astype(np.float32)


def _glb(points: ArrayF32, colors: ArrayF32, corners: ArrayU32) -> bytes:
    blocks = [points.tobytes(), colors.tobytes(), corners.tobytes()]
    starts = np.cumsum([0] + [len(block) for block in blocks])
    low, high = points.min(0).tolist(), points.max(0).tolist()
    root = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, "indices": 2, "material": 0}]}],
        "materials": [{"doubleSided": True, "extensions": {_UNLIT: {}}}],
        "extensionsUsed": [_UNLIT],
        "buffers": [{"byteLength": int(starts[-1])}],
        "bufferViews": [{"buffer": 0, "byteOffset": int(starts[k]), "byteLength": len(blocks[k])} for k in range(3)],
        "accessors": [
            # glTF names types by OpenGL's numbers: 5126 is float32, 5125 uint32.
            {"bufferView": 0, "componentType": 5126, "count": len(points), "type": "VEC3", "min": low, "max": high},
            {"bufferView": 1, "componentType": 5126, "count": len(points), "type": "VEC3"},
            {"bufferView": 2, "componentType": 5125, "count": len(corners), "type": "SCALAR"},
        ],
    }
    text = json.dumps(root, separators=(",", ":")).encode()
    # A .glb pads its chunks to four bytes, JSON with spaces; the other holds numbers of four bytes only.
    text += b" " * (-len(text) % 4)
    body = b"".join(blocks)
    size = 12 + 8 + len(text) + 8 + len(body)
    head = struct.pack("<4sII", b"glTF", 2, size) + struct.pack("<I4s", len(text), b"JSON")
    return head + text + struct.pack("<I4s", len(body), b"BIN\0") + body


# -----------------------------------------------------------------------------------------------------------------------------

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


class ImageStream:
    """Takes the newest request only: whoever drags the time line waits for one image, not for all on the way.

    Args:
        camera: Gives the images, from this feed's thread alone.
        shown: Called with each image, or with what is wrong.
    """

    def __init__(self, camera: CameraSource, shown: Callable[[ViewerImage | None, str], None]):
        self._camera, self._shown = camera, shown
        self._changed = threading.Condition()
        self._wanted: Request | None = None
        self._busy = self._ended = False
        self._thread = threading.Thread(target=self._work, name="viewer images", daemon=True)
        self._thread.start()

    def ask(self, request: Request) -> None:
        """Want an image; an older wish that was not begun is dropped."""
        with self._changed:
            self._wanted = request
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing is wanted that is not shown."""
        with self._changed:
            return not self._busy and self._wanted is None

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until everything wanted is shown; False where that took longer than `timeout` [s]."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and self._wanted is None, timeout)

    def close(self, timeout: float = 2.0) -> None:
        """End the thread, which may be in the middle of an image [s]."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wanted is not None)
                if self._ended:
                    return
                request, self._wanted, self._busy = self._wanted, None, True
            assert request is not None  # waited for
            self._make(request)
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _make(self, request: Request) -> None:
        try:
            viewer_image = self._camera.take_image(
                request.env, request.time, np.asarray(request.position), np.asarray(request.attitude)
            )
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
SPLATS = "splats"
"""Key of a switch, beside those of layers, of flights and of what stands around."""


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
        self.server, self.subject = server, subject
        self._lock = threading.RLock()
        self._captioned = -np.inf
        api, scene = server.scene, subject.scene
        self.poses: ActorPoses | None = None
        self.scene: SceneNodes | None = None
        self.splats: SplatNodes | None = None
        if scene is not None:
            lowered = roofless(scene)
            self.poses = ActorPoses(scene)
            self.scene = SceneNodes(api, scene, lowered, self.poses)
            self.splats = SplatNodes(api, scene, lowered, splats_max) if scene.splats else None
        self.flight = None if subject.flight is None else FlightNodes(api, subject.flight, camera)
        self.follower = None if subject.flight is None else Follower(subject.flight.vehicle(subject.flight.envs[0]))
        self.duration = self._duration()
        """Of the time line [s]; 0 without one."""
        self.time = 0.0
        """Shown now [s]."""
        self.view = first_view(scene, None if self.flight is None else self.flight.track)
        """Where a browser looks from at first."""
        self._aim(self.view)
        self._others = surround(api, scene, self.view)
        self.controls = self._controls()
        self.images = None if camera is None or self.flight is None else ImageStream(camera, self._shown)
        self.show(0.0)

    @property
    def nodes(self) -> dict[str, Any]:
        """Handle of every node that shows something, by its name."""
        parts = [part.nodes for part in (self.scene, self.splats, self.flight) if part is not None]
        return {name: handle for part in parts for name, handle in part.items()}

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return url_of(self.server)

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
                if key == "roof" and self.splats is not None:
                    self.splats.switch(on, roof=True)
            elif key in SWITCHES and self.flight is not None:
                self.flight.switch(key, on)
                self._show_vehicle()
            elif key == SPLATS and self.splats is not None:
                self.splats.switch(on)
            elif key in self._others:
                self._others[key].visible = on
            if key in self.controls.boxes:
                self.controls.boxes[key].value = on

    def close(self) -> None:
        """End the server and the thread of the images."""
        if self.images is not None:
            self.images.close()
        stop(self.server)

    # ---- inside -----------------------------------------------------------------------------------------------------

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
                self.controls.show_image(viewer_image.image)

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
        layers |= {"roof"} if self.splats is not None and self.splats.has_roof else set()
        rows += [(layer, says, layer in SHOWN) for layer, says in LAYERS.items() if layer in layers]
        if self.subject.bare:
            rows.append(("collision", LAYERS["collision"], False))
        return rows + [(key, key, True) for key in self._others]

    def _facts(self) -> str:
        """Return a line about what is shown."""
        said = []
        if self.splats is not None:
            merged = "" if self.splats.count == self.splats.whole else f", merged from {self.splats.whole:,}"
            said.append(f"{self.splats.count:,} gaussians{merged}, mean colours.")
        return " ".join(said)
