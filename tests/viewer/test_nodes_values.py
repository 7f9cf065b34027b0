"""What the browser's library is asked for, call by call, against lines on file: scenes, splats, flights, sky and light."""

from __future__ import annotations

import dataclasses
import json
import struct
from math import inf, nan, pi
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.recording import Recorder
from tests.fixtures.snapshots import check_snapshot
from tests.viewer.test_flights import Slow, _straight

from airworthy.core import frames
from airworthy.geometry import Box, Cylinder, Mesh, Sphere
from airworthy.scenes.record import Actor, Instance, Material, Scene, Sky, SplatPlacement, Sun, Texture, Waypoint
from airworthy.scenes.splats import Splats
from airworthy.scenes.viewpoints import roofless
from airworthy.vehicles import vehicle
from airworthy.viewer import ViewerImage, flight_nodes, load_flight, scene_nodes, splat_nodes, surroundings
from airworthy.viewer.controls import FirstView
from airworthy.viewer.flight_nodes import FlightNodes, VehicleNodes, reach_of
from airworthy.viewer.flights import ActorPoses, between, node_name, segments
from airworthy.viewer.scene_nodes import SceneNodes, by_material, wrapped
from airworthy.viewer.splat_nodes import SplatNodes, covariances
from airworthy.viewer.surroundings import add_grid, light, surround

SNAPSHOTS = Path(__file__).parent / "snapshots" / "nodes.txt"


def check(part: str, lines: dict[str, Any]) -> None:
    """Numbers sent are float32, or made of such."""
    check_snapshot(SNAPSHOTS, lines, rtol=1e-6, of_means=1e-6, part=part)


# ---- vehicles and flights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flightgoggles", "base_octarotor", "cf2x_L250", "virt_01"])
def test_a_vehicle(name: str) -> None:
    api = Recorder("scene")
    nodes = VehicleNodes(api, "/v", vehicle(name))
    count = vehicle(name).rotor_count
    nodes.turn(np.linspace(0.0, 2.0, count + 1), [0.1, *([0.15] * (count - 2)), 0.16])
    nodes.turn([1.0], [0.9])
    check(f"vehicle {name}", api.lines)


def test_a_vehicle_without_rotors_and_one_without_their_sizes() -> None:
    bare = vehicle("flightgoggles")
    api = Recorder("scene")
    VehicleNodes(api, "/bare", dataclasses.replace(bare, rotors=()))
    rotors = tuple(dataclasses.replace(rotor, radius=0.0) for rotor in bare.rotors)
    VehicleNodes(api, "/sizes", dataclasses.replace(bare, rotors=rotors))
    VehicleNodes(api, "/one", dataclasses.replace(bare, rotors=rotors[:1]))
    check("vehicles made up", api.lines)


def test_propellers_turn_against_their_spin_and_show_as_discs_when_fast() -> None:
    record = vehicle("flightgoggles")
    nodes = VehicleNodes(Recorder("scene"), "/v", record)
    nodes.turn([pi / 2] * 4, [0.15, 0.1501, 0.0, 1.0])
    assert [disc.visible for disc in nodes.discs] == [False, True, False, True]
    for rotor, blade in zip(record.rotors, nodes.blades, strict=True):
        turned = frames.rotate(frames.from_wxyz(np.asarray(blade.wxyz)), np.array([1.0, 0.0, 0.0]))
        np.testing.assert_allclose(turned, [0.0, -rotor.spin, 0.0], atol=1e-9)


def test_reach() -> None:
    record = vehicle("flightgoggles")
    hubs = np.array([rotor.position for rotor in record.rotors])
    assert reach_of(record) == pytest.approx(float(np.linalg.norm(hubs - hubs.mean(axis=0), axis=1).mean()))
    bare = dataclasses.replace(record, rotors=())
    assert reach_of(bare) == pytest.approx(np.mean(record.body.size))
    near = dataclasses.replace(record.rotors[0], position=(0.01, 0.0, 0.0))
    assert reach_of(dataclasses.replace(record, rotors=(near,))) == 0.02


@pytest.mark.parametrize("envs", [1, 2, 3])
def test_a_flight(envs: int, tmp_path: Path) -> None:
    outcomes = {0: "success", 1: "collision", 2: "not_at_goal"}
    flight = load_flight(_straight(tmp_path / "run", envs, outcomes={k: outcomes[k] for k in range(envs)}))
    api = Recorder("scene")
    nodes = FlightNodes(api, flight, Slow())
    nodes.show(0.505)
    image = ViewerImage(np.zeros((2, 3, 3), np.uint8), np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.6, 0.0, 0.8]))
    nodes.switch("camera", False)
    nodes.expose(image)
    nodes.expose(image)
    nodes.switch("camera", True)
    nodes.cover("vehicle", True)
    nodes.cover("vehicle", False)
    nodes.switch("vehicle", False)
    nodes.cover("vehicle", False)
    nodes.cover("nothing", True)
    nodes.choose(envs - 1)
    nodes.show(1.7)
    check(f"flights of {envs}", api.lines)
    assert list(nodes.switches.items()) == [
        ("vehicle", False), ("path", True), *([("planned", True)] if "/flight/planned" in nodes.nodes else []),
        ("events", True), ("camera", True), *([("others", False)] if envs > 1 else []),
    ]  # fmt: skip
    np.testing.assert_allclose(nodes.middle(), [0.5 if envs == 2 else 1.0, envs - 1.0, 1.0], atol=0.011)


def test_a_flight_without_a_plan_a_camera_or_an_outcome(tmp_path: Path) -> None:
    flight = load_flight(_straight(tmp_path / "run", 2, crash=None))
    track = dataclasses.replace(flight.track(0), planned=None)
    api = Recorder("scene")
    nodes = FlightNodes(
        api,
        SimpleNamespace(envs=(0, 1), table=flight.table, outcomes={}, vehicle=flight.vehicle, track=lambda env: track),
        None,
    )  # type: ignore[arg-type]
    nodes.expose(ViewerImage(np.zeros((2, 3, 3), np.uint8), np.zeros(3), np.zeros(4)))
    assert "camera" not in nodes.switches
    assert "planned" not in nodes.switches
    assert not any("label" in name or "frustum" in name for name in api.lines)


def test_paths_of_others_are_few_and_thin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_nodes, "OTHERS_MAX", 3)
    monkeypatch.setattr(flight_nodes, "_POINTS", 30)
    api = Recorder("scene")
    flight = load_flight(_straight(tmp_path / "run", 5, outcomes={1: "success_recovered", 2: "timeout"}))
    FlightNodes(api, flight, None)
    (others,) = [value for value in api.lines.values() if value and value["0"] == "/flight/others"]
    assert others["1"].shape == (27, 2, 3)
    colors = others["2"].reshape(3, 9, 6)[:, 0, :3]
    assert colors.tolist() == [list(flight_nodes.OTHER), list(flight_nodes.OTHER), list(flight_nodes.FAILED)]


def test_a_track_between_its_rows(tmp_path: Path) -> None:
    track = load_flight(_straight(tmp_path / "run", 2)).track(1)
    assert [track.row(t) for t in (-1.0, 0.0, 0.019, 0.02, 1.999, 9.0)] == [0, 0, 0, 1, 99, 100]
    assert track.caption(0.5) == "0.50 s, 1.00 m/s, 1.500 m from the plan, flying"
    assert track.caption(1.5) == "1.50 s, 0.00 m/s, 1.732 m from the plan, collided"
    assert dataclasses.replace(track, planned=None).caption(0.0) == "0.00 s, 1.00 m/s, flying"
    other = dataclasses.replace(track, status=np.full(101, 7, np.int8), planned=None)
    assert other.caption(0.0).endswith("m/s, ended")
    assert [event.label for event in other.events] == ["ended"]
    assert other.events[0].time == 0.0
    flips = dataclasses.replace(track, status=np.array([0, 1, 1, 0, 2, 3, 3, *[0] * 94], np.int8))
    assert [(event.label, round(event.time, 2)) for event in flips.events] == [
        ("diverged", 0.02),
        ("collided", 0.08),
        ("out of bounds", 0.1),
    ]
    still = dataclasses.replace(track, rotors=np.zeros((101, 4)))
    np.testing.assert_array_equal(still.turning(0.3), np.zeros(4))
    np.testing.assert_array_equal(still.turned(0.3), np.zeros(4))
    back = dataclasses.replace(track, rotors=-track.rotors)
    np.testing.assert_allclose(back.turning(0.3), (0.5, 1.0, 1.0, 1.0))
    np.testing.assert_allclose(track.turned(-5.0), 0.0)
    np.testing.assert_allclose(track.turned(99.0), track.turned(2.0))


def test_poses_and_pieces() -> None:
    places, turns = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.0, 4.0, 0]]), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    times = np.array([0.0, 1.0, 1.0])
    for time, wanted in (
        (-1.0, (0, 0, 0)),
        (0.25, (0.25, 0, 0)),
        (0.999, (0.999, 0, 0)),
        (1.0, (1.0, 0, 0)),
        (2.0, (1.0, 0, 0)),
    ):
        np.testing.assert_allclose(between(times, places, turns, time)[0], wanted)
    points = np.arange(36.0).reshape(12, 3)
    points[3, 1], points[7, 0] = nan, inf
    found = segments(points, 4)
    assert found.dtype == np.float32
    # Of ten points, four evenly.
    np.testing.assert_array_equal(found[:, 0, 0], [0.0, 12.0, 24.0])
    np.testing.assert_array_equal(found[:, 1, 0], [12.0, 24.0, 33.0])
    assert [node_name(text) for text in ("a b/ü.x", "", "/", "x" * 60)] == ["a_b_.x", "part", "_", "x" * 48]


# ---- scenes -----------------------------------------------------------------------------------------------------------------

PATH = (Waypoint(0.0, (0.0, 0.0, 0.0)), Waypoint(2.0, (4.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))
TRIANGLE = Mesh(
    np.array([[0.0, 0, 0], [1.0, 0, 0], [0.0, 1.0, 0]]), np.array([[0, 1, 2]]), colors=np.full((3, 4), 0.5, np.float32)
)
EMPTY = Mesh(np.zeros((0, 3)), np.zeros((0, 3), int))


def yard() -> Scene:
    """Every kind of thing: single and many, coloured per vertex, empty, covered, of actors, under a roof."""
    shapes = {"slab": Box((4.0, 3.0, 0.1)), "ball": Sphere(0.3), "drum": Cylinder(0.4, 0.5), "tri": TRIANGLE, "none": EMPTY}
    looks = {"red": Material((0.5, 0.1, 0.05, 1.0)), "glow": Material((0.9, 0.5, 0.0, 1.0), emissive=(0.2, 0.0, 0.1))}
    things = (
        Instance("slab", materials=("red",), name="the floor"),
        Instance("slab", (0.0, 0.0, 3.0)),
        *(Instance("ball", (k, 1.0, 0.3), (0.0, 0.0, 0.6, 0.8), 1.0 + k, ("glow",)) for k in range(3)),
        *(Instance("tri", (k, 2.0, 0.5), (0.6, 0.0, 0.0, 0.8)) for k in range(5)),
        Instance("tri", (0.0, 0.0, 1.0), materials=("red", "glow"), scale=0.5),
        Instance("none"),
        Instance("drum", (1.0, -1.0, 0.5), visible=False, covered=True),
        Instance("drum", (2.0, -1.0, 0.5), collide=False),
    )
    cart = Actor("cart", (Instance("drum", (0.0, 0.0, 0.5)), Instance("tri", (0.1, 0.0, 1.0))), "scripted", path=PATH)
    return Scene("yard", shapes, looks, instances=things, actors=(cart,))


def test_a_scene() -> None:
    place = yard()
    api = Recorder("scene")
    poses = ActorPoses(place)
    nodes = SceneNodes(api, place, roofless(place), poses)
    assert nodes.layers == ("meshes", "roof", "covered", "collision")
    poses.advance(1.0)
    nodes.advance()
    for layer, on in (("covered", False), ("covered", True), ("collision", True), ("roof", False), ("collision", False)):
        nodes.switch(layer, on)
    more = dataclasses.replace(place, instances=(*place.instances, Instance("drum", (5.0, 0.0, 0.0), materials=("red",))))
    nodes.extend(more)
    assert nodes.has("collision")
    assert not nodes.has("nothing")
    check("scene", api.lines)


def test_each_material_of_a_thing_has_vertices_of_its_own() -> None:
    """Of parts that shared them all but one were drawn black by the browser's library; what is seen alone is not looked for."""
    kinds = {"checked": Material(base_color_map="squares"), "plain": Material((0.2, 0.3, 0.4, 1.0))}
    corners, faces = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], float), [[0, 1, 2], [0, 2, 3], [0, 1, 4]]
    mesh = Mesh(corners, np.array(faces), uv=corners[:, :2] + 0.5, face_material=np.array([1, 0, 1]))
    squares = {"squares": Texture(np.full((2, 2, 3), 200, np.uint8))}
    person = Instance("ghost", attached="walker")
    place = Scene("place", {"thing": mesh, "ghost": mesh}, kinds, squares, (Instance("thing", materials=("checked", "plain")),))
    place = dataclasses.replace(place, looks=(person,))
    api = Sent()
    SceneNodes(api, place, place, ActorPoses(dataclasses.replace(place, looks=())))
    (data,) = api.files
    length = struct.unpack("<I", data[12:16])[0]
    made = json.loads(data[20 : 20 + length])
    parts = [part for each in made["meshes"] for part in each["primitives"]]
    assert len(parts) == 2
    used = [set(part["attributes"].values()) for part in parts]
    assert not used[0] & used[1]
    counts = {made["materials"][part["material"]]["name"]: made["accessors"][part["indices"]]["count"] for part in parts}
    assert counts == {"checked": 3, "plain": 6}
    halves = dict(by_material(mesh, ("checked", "plain"))[k][::-1] for k in range(2))
    np.testing.assert_array_equal(halves[("checked",)].vertices, corners[[0, 2, 3]])
    np.testing.assert_array_equal(halves[("plain",)].vertices[halves[("plain",)].faces], corners[[[0, 1, 2], [0, 1, 4]]])
    np.testing.assert_array_equal(halves[("plain",)].uv, corners[[0, 1, 2, 4], :2] + 0.5)
    assert by_material(mesh, ("plain",)) == [(mesh, ("plain",))]
    # Faces of more materials than an instance has take its last one.
    more = dataclasses.replace(mesh, face_material=np.array([0, 1, 7]))
    assert [names for _, names in by_material(more, ("checked", "plain"))] == [("checked",), ("plain",)]


def test_glass_and_water_let_through_what_is_behind() -> None:
    kinds = {"pane": Material((0.9, 0.9, 0.9, 1.0), transmission=0.9), "wall": Material((0.9, 0.9, 0.9, 1.0))}
    things = tuple(Instance("slab", (0.0, k, 0.0), materials=(name,)) for k, name in enumerate(kinds))
    place = Scene("place", {"slab": Box((1.0, 0.1, 1.0))}, kinds, instances=things)
    api = Sent()
    SceneNodes(api, place, place, ActorPoses(place))
    assert api.opacities == [pytest.approx(0.35), None]


@pytest.mark.parametrize("count", [1, 40])
def test_glass_with_a_texture_or_beside_other_materials_is_as_clear_as_glass_without(count: int) -> None:
    """In a file of things in few places, and in one whose thing stands in many."""
    squares = {"squares": Texture(np.full((2, 2, 3), 200, np.uint8))}
    kinds = {
        "drawn": Material((0.8, 0.9, 0.7, 1.0), base_color_map="squares", texture_size=1.0, transmission=0.9),
        "wall": Material(base_color_map="squares", texture_size=1.0),
    }
    things = tuple(Instance("slab", (0.0, float(k), 0.0), materials=("drawn",)) for k in range(count))
    wall = Instance("slab", (9.0, 0.0, 0.0), materials=("wall",))
    place = Scene("place", {"slab": Box((1.0, 0.1, 1.0))}, kinds, squares, instances=(*things, wall))
    api = Sent()
    SceneNodes(api, place, place, ActorPoses(place))
    made = {}
    for data in api.files:
        found = json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])
        made |= {material["name"]: material for material in found["materials"]}
        assert "KHR_materials_transmission" not in found.get("extensionsUsed", [])
    assert made["drawn"]["alphaMode"] == "BLEND"
    np.testing.assert_allclose(made["drawn"]["pbrMetallicRoughness"]["baseColorFactor"], [0.8, 0.9, 0.7, 0.35])
    assert "alphaMode" not in made["wall"]
    assert made["wall"]["pbrMetallicRoughness"]["baseColorFactor"][3] == 1.0


class Sent(Recorder):
    """Keeps the files that it is sent, and how opaque meshes are."""

    def __init__(self) -> None:
        super().__init__("scene")
        vars(self).update({"files": [], "opacities": []})

    def add_batched_meshes_simple(self, name: str, *_: object, opacity: float | None, **__: object) -> Recorder:
        self.opacities.append(opacity)
        return Recorder(name)

    def add_glb(self, name: str, data: bytes, **_: object) -> Recorder:
        self.files.append(data)
        return Recorder(name)

    def add_batched_glb(self, name: str, data: bytes, *_: object, **__: object) -> Recorder:
        return self.add_glb(name, data)


def test_colours_of_single_things() -> None:
    place = yard()
    nodes: Any = SimpleNamespace(_scene=place)
    box, plain = scene_nodes.tessellate(Box((1.0, 1.0, 1.0))), SceneNodes._plain
    assert plain(nodes, Instance("slab", materials=("red",)), box) == (128, 26, 13)
    assert plain(nodes, Instance("slab", materials=("glow",)), box) == (255, 128, 26)
    assert plain(nodes, Instance("slab", materials=("unknown",)), box) == plain(nodes, Instance("slab"), box)
    assert plain(nodes, Instance("tri"), TRIANGLE) is None
    assert plain(nodes, Instance("slab", materials=("red", "glow")), box) is not None  # its faces name no material
    painted = dataclasses.replace(box, face_material=np.zeros(len(box.faces), int))
    assert plain(nodes, Instance("slab", materials=("red", "glow")), painted) is None
    assert plain(nodes, Instance("slab", materials=("red",)), painted) == (128, 26, 13)


@pytest.mark.parametrize("size", [0.25, 4.0])
def test_textures_lie_along_the_axis_that_a_face_looks_along(size: float) -> None:
    """On top x runs right and y up; on what stands the first runs along the wall, the second down; mirrored on the far side."""
    box = scene_nodes.tessellate(Box((1.0, 2.0, 3.0)))
    made = wrapped(box, [Material(texture_size=size)], 2.0)
    assert made.uv is not None
    corners, uv = made.vertices.reshape(-1, 3, 3), made.uv.reshape(-1, 3, 2)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for points, coordinates, out in zip(corners.astype(float), uv.astype(float), normal, strict=True):
        axis = int(np.argmax(np.abs(out)))
        sign = np.sign(out[axis])
        x, y, z = points.T
        u = (sign * y, -sign * x, x)[axis]
        v = (-z, -z, -sign * y)[axis]
        np.testing.assert_allclose(coordinates * size / 2.0, np.stack([u, v], axis=1), atol=1e-5)
    two = dataclasses.replace(box, face_material=np.arange(len(box.faces)) % 3)
    mixed = wrapped(two, [Material(), Material(texture_size=size)])
    assert mixed.uv is not None
    # Of more kinds than materials, the last counts; what has no size keeps its coordinates.
    by_size = np.arange(len(box.faces)) % 3 > 0
    assert box.uv is not None
    wanted = np.where(by_size[:, None, None], uv / 2.0, box.uv[box.faces])
    np.testing.assert_allclose(mixed.uv.reshape(-1, 3, 2), wanted, atol=1e-5)


def test_a_small_face_on_the_far_side_is_mirrored_like_a_large_one() -> None:
    points = 0.2 * np.array([[0.0, 0, 0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0, 0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    found = scene_nodes._along(points.reshape(2, 3, 3))
    np.testing.assert_allclose(found[0, :, 0], [0.0, 0.2, 0.0])
    np.testing.assert_allclose(found[1, :, 0], [0.0, 0.0, -0.2])


def test_a_rotor_that_looks_down_is_turned_about_x() -> None:
    np.testing.assert_allclose(flight_nodes._along((0.0, 0.0, -2.0)), [1.0, 0.0, 0.0, 0.0])
    # A hundredth of a degree off that, and less, is still turned to where it looks.
    for angle in (1e-3, 1e-4, 6e-5):
        direction = np.array([np.sin(angle), 0.0, -np.cos(angle)])
        turned = frames.rotate(flight_nodes._along(direction), np.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(turned, direction, atol=1e-8)


def cloud(count: int = 12, seed: int = 1) -> Splats:
    rng = np.random.default_rng(seed)
    turn = frames.normalize(rng.normal(size=(count, 4)))
    scale = 0.1 * rng.uniform(0.1, 1.0, (count, 3))
    return Splats(rng.normal(size=(count, 3)), turn, scale, rng.uniform(size=count), rng.normal(0.0, 1.0, (count, 4, 3)))


def test_splats(monkeypatch: pytest.MonkeyPatch) -> None:
    cart = Actor("cart", (Instance("cube", visible=False, covered=True),), "scripted", path=PATH)
    items = (
        SplatPlacement("a", (1.0, 2.0, 3.0), (0.0, 0.0, 0.6, 0.8), 2.0, name="left part"),
        SplatPlacement("b", (1.0, 0.0, 0.0), attached="cart"),
        SplatPlacement("none"),
        SplatPlacement("a", (9.0, 0.0, 0.0)),
    )
    clouds = {"a": cloud(), "b": cloud(5, 2), "none": cloud(0)}
    place = Scene("splats", {"cube": Box((0.5, 0.5, 0.5))}, actors=(cart,), clouds=clouds, splats=items)
    api = Recorder("scene")
    nodes = SplatNodes(api, place, roofless(place))
    assert (nodes.whole, nodes.count, nodes.kinds) == (29, 29, frozenset())
    poses = ActorPoses(place)
    poses.advance(1.0)
    nodes.advance(poses)
    for on, kind in ((False, ""), (True, "roof"), (True, ""), (False, "roof")):
        nodes.switch(on, kind)
    check("splats", api.lines)
    few = SplatNodes(Recorder("scene"), place, roofless(place), 10)
    assert few.whole == 29
    assert few.count <= 10
    monkeypatch.setattr(splat_nodes, "_BLOCK", 5)
    found = covariances(clouds["a"], 3.0)
    for k in range(12):
        turn = frames.to_matrix(clouds["a"].rotation[k].astype(float))
        wanted = turn @ np.diag((3.0 * clouds["a"].scale[k].astype(float)) ** 2) @ turn.T
        np.testing.assert_allclose(found[k], wanted, rtol=1e-4, atol=1e-6)


def test_the_unit_in_which_a_cloud_is_sent() -> None:
    """Its largest standard deviation becomes 200, unless others would vanish beside it."""
    some = cloud(5)
    scale = np.full((5, 3), 0.01)
    for largest, unit in ((0.5, 400.0), (20.0, 10.0), (50.0, 10.0)):
        scale[0, 1] = largest
        assert splat_nodes._unit(dataclasses.replace(some, scale=scale.astype(np.float32))) == pytest.approx(unit, rel=1e-6)
    assert splat_nodes._unit(cloud(0)) == 200.0
    wide = covariances(dataclasses.replace(some, scale=scale.astype(np.float32)), 10.0)
    assert np.sqrt(np.linalg.eigvalsh(wide[0].astype(float)).max()) == pytest.approx(200.0, rel=1e-4)


# ---- sky, light and grid ----------------------------------------------------------------------------------------------------

VIEW = FirstView(np.zeros(3), np.ones(3), 0.9, np.array([1.0, 2.0, 3.0]), 12.0, -0.5)


def test_what_stands_around() -> None:
    api = Recorder("scene")
    assert list(surround(api, None, VIEW)) == ["grid"]
    place = yard()
    assert surround(api, dataclasses.replace(place, lights=(Sun((0.0, 3.0, -4.0), (1.2, 0.5, -0.1)),), sky=Sky()), VIEW) == {}
    assert list(surround(api, Scene("clouds only"), VIEW)) == ["grid"]
    check("around", api.lines)


@pytest.mark.parametrize(
    ("size", "cell"), [(12.0, 1.0), (37.9, 1.0), (38.0, 10.0), (3.7, 0.1), (3.8, 1.0), (0.0, 0.01), (1e4, 1000.0)]
)
def test_cells_of_a_grid(size: float, cell: float) -> None:
    api = Recorder("scene")
    add_grid(api, np.array([1.0, 2.0, 3.0]), size, -0.5)
    (named,) = api.lines.values()
    assert named["cell_size"] == pytest.approx(cell)
    assert named["section_size"] == pytest.approx(5.0 * cell)
    assert named["fade_distance"] == 10.0 * max(size, 1.0)
    assert named["position"] == [1.0, 2.0, -0.5]


def test_light_shines_from_the_sun() -> None:
    api = Recorder("scene")
    light(api, [Sun((0.0, 3.0, -4.0)), Sun((1.0, 0.0, 0.0))])
    named = next(value for name, value in api.lines.items() if name.endswith("light_directional"))
    assert named["position"] == pytest.approx([0.0, -30.0, 40.0])


def test_the_sky_is_a_dome_of_colours() -> None:
    sky = Sky((0.2, 0.4, 0.6), (0.8, 0.8, 0.4), (0.1, 0.2, 0.3), intensity=0.5)
    data = surroundings._dome(sky, 40.0)
    size, kind = struct.unpack("<II", data[4:12])[1], struct.unpack("<I4s", data[12:20])
    assert (data[:4], size, kind[1]) == (b"glTF", len(data), b"JSON")
    root = json.loads(data[20 : 20 + kind[0]])
    body = data[28 + kind[0] :]
    views = [body[v["byteOffset"] : v["byteOffset"] + v["byteLength"]] for v in root["bufferViews"]]
    points, colors = (np.frombuffer(view, np.float32).reshape(-1, 3) for view in views[:2])
    corners = np.frombuffer(views[2], np.uint32).reshape(-1, 3)
    assert len(points) == len(colors) == 25 * 49
    assert len(corners) == 24 * 48 * 2
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 40.0, rtol=1e-6)
    # Every triangle is small, so that the faces are a closed ball, each pair of neighbours used.
    edges = np.linalg.norm(points[corners] - points[np.roll(corners, 1, axis=1)], axis=2)
    assert edges.max() < 40.0 * np.hypot(pi / 24, pi / 24) + 0.1
    assert set(corners.ravel().tolist()) == set(range(25 * 49))
    horizon, zenith, ground = (0.5 * np.array(part) for part in (sky.horizon, sky.zenith, sky.ground))
    up = points[:, 2].astype(float) / 40.0
    above = horizon + np.clip(up, 0, 1)[:, None] ** 0.6 * (zenith - horizon)
    below = horizon + np.clip(-up / 0.15, 0, 1)[:, None] * (ground - horizon)
    np.testing.assert_allclose(colors, np.where(up[:, None] >= 0.0, above, below), atol=2e-4)
    check(
        "sky",
        {
            "points": points,
            "colors": colors,
            "corners": corners,
            "root": json.dumps({**root, "accessors": len(root["accessors"])}),
        },
    )
    np.testing.assert_allclose(root["accessors"][0]["min"], points.min(0), rtol=1e-6)
    assert [entry["count"] for entry in root["accessors"]] == [1225, 1225, 6912]
    assert surroundings._bytes((1.2, 0.5, -0.1)) == (255, 128, 0)
