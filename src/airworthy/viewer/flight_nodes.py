"""A flight as nodes of the viewer: vehicle, path, planned path, what happened, the camera's frustum with its image.

A vehicle as simple solids: hub, nose, arms, and propellers that turn, from its record.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayLike
from airworthy.core.frames import to_wxyz
from airworthy.geometry import Box, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.formats import tessellate
from airworthy.vehicles import LinkShape, Rotor, Vehicle, frozen
from airworthy.vehicles.links import placed_links
from airworthy.viewer.flights import PlaybackTrack, ShownFlight, segments

if TYPE_CHECKING:
    from airworthy.viewer.cameras import CameraSource, ViewerImage

__all__ = ["SWITCHES", "FlightNodes", "VehicleNodes", "reach_of"]


BODY, NOSE, BLADE, DISC, FRONT_DISC = (45, 50, 58), (230, 70, 40), (35, 38, 44), (120, 132, 148), (240, 140, 60)
_SIZE_MIN = 0.02
"""Least distance from the middle to a rotor that is drawn [m]."""
_BLADE = np.array(
    [(0.08, 0.07, 0.0), (0.55, 0.12, 0.02), (1.0, 0.05, 0.0), (1.0, -0.03, 0.0), (0.55, -0.06, -0.02), (0.08, -0.05, 0.0)]
)
"""Outline of a blade in its plane, in radii; the leading edge is a little higher."""
_FAN = ((0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4))
_BLURRED = 0.15
"""Share of the highest speed from which on a propeller is seen as a disc."""


class VehicleNodes:
    """A vehicle's nodes below the node `name`, in its body frame (x forward, y left, z up); discs ahead are orange.

    Args:
        api: `viser.ViserServer.scene`.
        name: Of a node that stands at the vehicle's centre of mass.
        vehicle: Whose record is drawn.
    """

    def __init__(self, api: Any, name: str, vehicle: Vehicle):
        hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
        middle = hubs.mean(0) if len(hubs) else np.array(vehicle.body.center)
        reach = reach_of(vehicle)
        mass = np.array(vehicle.center_of_mass, float)
        """Flights are recorded of the centre of mass; the record's places count from its reference point."""
        parts = [_placed(_box(0.3 * reach, 0.22 * reach, 0.12 * reach), middle)]
        parts += [_arm(middle, hub, 0.05 * reach) for hub in hubs]
        nose = _placed(_box(0.1 * reach, 0.12 * reach, 0.08 * reach), middle + np.array([0.36 * reach, 0.0, 0.0]))
        self.solids = [_add(api, f"{name}/body", _placed(_joined(parts), -mass), BODY)]
        self.solids.append(_add(api, f"{name}/nose", _placed(nose, -mass), NOSE))
        self.blades: list[Any] = []
        self.discs: list[Any] = []
        self._along = [_along(rotor.axis) for rotor in vehicle.rotors]
        self._sense = np.array([-rotor.spin for rotor in vehicle.rotors], float)
        for number, rotor in enumerate(vehicle.rotors):
            radius = _radius(rotor, hubs, number, reach)
            placed = {"position": hubs[number] - mass, "wxyz": frames.to_wxyz(self._along[number])}
            ahead = rotor.position[0] > middle[0] + 0.1 * reach
            color = FRONT_DISC if ahead else DISC
            self.blades.append(_add(api, f"{name}/rotor_{number}", _propeller(radius, self._sense[number]), BLADE, **placed))
            disc = tessellate(Cylinder(radius, 0.01 * reach), 28)
            self.discs.append(_add(api, f"{name}/disc_{number}", disc, color, opacity=0.45, **placed))

    def turn(self, angles: ArrayLike, share: ArrayLike) -> None:
        """Turn the propellers.

        Args:
            angles: (rotors,) from rest [rad].
            share: (rotors,) speed of each, of the highest; one that stands shows its blades alone.
        """
        turn_propellers(self, angles, share)


def turn_propellers(nodes: VehicleNodes | JointedNodes, angles: ArrayLike, share: ArrayLike) -> None:
    """Turn a vehicle's propellers; see `VehicleNodes.turn`.

    Args:
        nodes: Of the vehicle.
        angles: (rotors,) from rest [rad].
        share: (rotors,) speed of each, of the highest.
    """
    for number, (angle, speed) in enumerate(zip(np.asarray(angles, float), np.asarray(share, float), strict=False)):
        if number >= len(nodes.blades):
            return
        turned = _about_z(float(nodes._sense[number] * angle))
        nodes.blades[number].wxyz = frames.to_wxyz(frames.multiply(nodes._along[number], turned))
        blurred = bool(speed > _BLURRED)
        if nodes.discs[number].visible != blurred:
            nodes.discs[number].visible = blurred


class JointedNodes:
    """A vehicle with joints below the node `name`: a node for each link, which `bend` places; propellers stand on their links.

    Args:
        api: `viser.ViserServer.scene`.
        name: Of a node that stands at the centre of mass of the whole, turned as the root.
        vehicle: With joints.
    """

    def __init__(self, api: Any, name: str, vehicle: Vehicle):
        self._links = vehicle.links
        held, reach = frozen(vehicle), reach_of(vehicle)
        hubs = np.array([rotor.position for rotor in held.rotors], float).reshape(-1, 3)
        self.frames = [api.add_frame(f"{name}/link_{k}", show_axes=False) for k in range(len(vehicle.links))]
        self.solids: list[Any] = []
        for number, mesh in enumerate(link_meshes(vehicle, reach)):
            if mesh is not None:
                color = BODY if number else NOSE
                self.solids.append(_add(api, f"{name}/link_{number}/body", mesh, color))
        place = {link.name: number for number, link in enumerate(vehicle.links)}
        self._along = [_along(rotor.axis) for rotor in vehicle.rotors]
        self._sense = np.array([-rotor.spin for rotor in vehicle.rotors], float)
        self.blades, self.discs = [], []
        for number, rotor in enumerate(vehicle.rotors):
            at = f"{name}/link_{place[rotor.link or vehicle.links[0].name]}"
            radius = _radius(rotor, hubs, number, reach)
            placed = {"position": np.array(rotor.position, float), "wxyz": frames.to_wxyz(self._along[number])}
            blade = _propeller(radius, float(self._sense[number]))
            self.blades.append(_add(api, f"{at}/rotor_{number}", blade, BLADE, **placed))
            disc = tessellate(Cylinder(radius, 0.01 * reach), 28)
            color = DISC if number else FRONT_DISC
            self.discs.append(_add(api, f"{at}/disc_{number}", disc, color, opacity=0.45, **placed))
        self.bend(np.zeros(vehicle.joint_count))

    def bend(self, angles: ArrayLike) -> None:
        """Place the links at joint angles [rad], (joints,)."""
        position, attitude = placed_links(self._links, np.asarray(angles, float))
        for frame, place, turn in zip(self.frames, position, attitude, strict=True):
            frame.position, frame.wxyz = place, frames.to_wxyz(turn)

    def turn(self, angles: ArrayLike, share: ArrayLike) -> None:
        """Turn the propellers; see `VehicleNodes.turn`."""
        turn_propellers(self, angles, share)


def link_meshes(vehicle: Vehicle, reach: float) -> list[Mesh | None]:
    """Return the solids of each link in its own frame: its shapes, or beams to what it carries; None: there is nothing.

    Args:
        vehicle: With joints.
        reach: Size of the vehicle [m].
    """
    found: list[Mesh | None] = []
    for number, link in enumerate(vehicle.links):
        parts = [_link_solid(shape) for shape in link.shapes]
        if not parts:
            ends = [r.position for r in vehicle.rotors if (r.link or vehicle.links[0].name) == link.name]
            ends += [item.joint.position for item in vehicle.links if item.joint is not None and item.parent == link.name]
            beams = [np.array(end, float) for end in ends if np.linalg.norm(end) > 1e-6]
            parts = [_arm(np.zeros(3), end, 0.05 * reach) for end in beams]
            if not number:
                parts.append(_placed(_box(0.3 * reach, 0.22 * reach, 0.12 * reach), np.array(link.center_of_mass, float)))
        found.append(_joined(parts) if parts else None)
    return found


def _link_solid(shape: LinkShape) -> Mesh:
    solid: dict[str, Shape] = {
        "box": Box(shape.size),
        "cylinder": Cylinder(shape.size[0], shape.size[2]),
        "sphere": Sphere(shape.size[0]),
    }
    mesh = tessellate(solid[shape.shape])
    turned = frames.rotate(np.asarray(shape.rotation, float), mesh.vertices.astype(float))
    return Mesh(turned + np.asarray(shape.position, float), mesh.faces)


def reach_of(vehicle: Vehicle) -> float:
    """Return the mean distance from the middle to its rotors' hubs, on average [m]; of a vehicle without rotors, half its
    body's size."""
    vehicle = frozen(vehicle)
    hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
    away = np.linalg.norm(hubs - hubs.mean(0), axis=1) if len(hubs) else np.array(vehicle.body.size)
    return max(float(away.mean()), _SIZE_MIN)


def _radius(rotor: Rotor, hubs: Array, number: int, reach: float) -> float:
    """Return the propeller's radius; where unknown, nearly up to the next rotor's disc."""
    if rotor.radius > 0.0:
        return rotor.radius
    others = np.linalg.norm(np.delete(hubs, number, axis=0) - hubs[number], axis=1)
    apart = others[others > 0.2 * reach]
    return 0.45 * float(apart.min()) if len(apart) else 0.6 * reach


def _propeller(radius: float, sense: float) -> Mesh:
    """Return two blades and a hub, in the plane z = 0; the leading edge is the one that goes ahead in the sense of turning."""
    one = radius * _BLADE * np.array([1.0, sense, 1.0])
    faces = np.array(_FAN, np.int32)
    hub = tessellate(Cylinder(0.1 * radius, 0.06 * radius), 12)
    return _joined([Mesh(one, faces), Mesh(one * np.array([-1.0, -1.0, 1.0]), faces), hub])


def _add(api: Any, name: str, mesh: Mesh, color: tuple[int, int, int], **options: Any) -> Any:
    return api.add_mesh_simple(
        name, mesh.vertices, mesh.faces, color=color, flat_shading=True, side="double", cast_shadow=False, **options
    )


def _box(x: float, y: float, z: float) -> Mesh:
    return tessellate(Box((x, y, z)))


def _placed(mesh: Mesh, position: Array) -> Mesh:
    return Mesh(mesh.vertices + position, mesh.faces)


def _arm(start: Array, end: Array, half: float) -> Mesh:
    """Return a beam between two points."""
    length = float(np.linalg.norm(end - start))
    beam = _box(half, half, max(0.5 * length, half))
    direction = (end - start) / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    return Mesh(frames.rotate(_along(direction), beam.vertices.astype(float)) + 0.5 * (start + end), beam.faces)


def _along(direction: Any) -> Array:
    """Quaternion x, y, z, w that turns z into a direction."""
    x, y, z = np.asarray(direction, float) / np.linalg.norm(direction)
    if z < -1.0 + 1e-9:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return frames.normalize(np.array([-y, x, 0.0, 1.0 + z]))


def _about_z(angle: float) -> Array:
    return np.array([0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)])


def _joined(meshes: list[Mesh]) -> Mesh:
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces)


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
        self.body: VehicleNodes | JointedNodes
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
        angles = self.track.bent(time)
        if angles is not None and isinstance(self.body, JointedNodes):
            self.body.bend(angles)
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
        """Return the middle of the path's box [m]."""
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
        flown = self._flight.vehicle(self.env)
        self.body = (JointedNodes if flown.links else VehicleNodes)(self._api, name, flown)

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
