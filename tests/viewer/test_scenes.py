"""Scenes and splats as nodes on a live server."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from airworthy.core import frames
from airworthy.geometry import Box, Mesh
from airworthy.scenes import add_actor, scene
from airworthy.scenes.actors import posed
from airworthy.scenes.carved import CarvedSpace
from airworthy.scenes.extent import hidden, seen_from_near
from airworthy.scenes.formats import tessellate
from airworthy.scenes.people import person
from airworthy.scenes.record import Actor, Instance, Material, Scene, SplatPlacement, Waypoint
from airworthy.scenes.splats import Splats, write_splats
from airworthy.viewer import Subject, Viewer, load_subject
from airworthy.viewer.flights import ActorPoses
from airworthy.viewer.scene_nodes import SceneNodes, wrapped
from airworthy.viewer.splat_nodes import SplatNodes, covariances
from airworthy.viewer.surroundings import GREY, _dome

PATH = (Waypoint(0.0, (0.0, 0.0, 0.0)), Waypoint(2.0, (4.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))


def _splats(count: int = 5, size: float = 0.1) -> Splats:
    rng = np.random.default_rng(1)
    turn = frames.normalize(rng.normal(size=(count, 4)))
    scale = size * rng.uniform(0.1, 1.0, (count, 3))
    return Splats(rng.normal(size=(count, 3)), turn, scale, np.full(count, 0.5), np.zeros((count, 1, 3)))


def _layer(viewer: Viewer, layer: str) -> list[Any]:
    return [handle for name, handle in viewer.nodes.items() if name.startswith(f"/scene/{layer}/")]


class TestMeshes:
    def test_one_node_per_shape_and_materials(self, server: Any) -> None:
        x, y = np.divmod(np.arange(4000), 64)
        trees = [Instance(("oak", "fir")[k % 2], (x[k], y[k], 0.0), materials=(("a", "b")[k // 2 % 2],)) for k in range(4000)]
        hidden = Instance("oak", visible=False, collide=False)
        shapes = {"oak": Box((0.2, 0.2, 1.0)), "fir": Box((0.1, 0.1, 2.0))}
        place = Scene("forest", shapes, {"a": Material(), "b": Material()}, instances=(*trees, hidden))
        viewer = Viewer(server, Subject("forest", place))
        nodes = _layer(viewer, "meshes")
        assert [len(node.batched_positions) for node in nodes] == [1000] * 4

    def test_textures_come_as_files_in_memory(self, server: Any, tmp_path: Path) -> None:
        from airworthy.scenes.formats.read import read_model
        from airworthy.scenes.record import Texture

        checks = Texture(np.tile(np.array([[0, 255], [255, 0]], np.uint8)[..., None], (4, 4, 3)))
        paint = {"checks": Material(base_color_map="checks", texture_size=0.5)}
        things = (Instance("cube", materials=("checks",)), Instance("cube", (2.0, 0.0, 0.0), materials=("checks",)))
        place = Scene("tiles", {"cube": Box((0.5, 0.5, 0.5))}, paint, {"checks": checks}, things)
        (node,) = _layer(Viewer(server, Subject("tiles", place)), "meshes")
        assert node.glb_data[:4] == b"glTF"
        (tmp_path / "sent.glb").write_bytes(node.glb_data)
        sent = read_model(tmp_path / "sent.glb")
        assert len(sent.textures) == 1  # for both
        np.testing.assert_allclose([item.position for item in sent.instances], [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)], atol=1e-6)
        things += tuple(Instance("cube", (2.0, k, 0.0), materials=("checks",)) for k in range(5))
        more = Scene("tiles", place.shapes, paint, place.textures, things)
        server.scene.reset()
        (node,) = _layer(Viewer(server, Subject("tiles", more)), "meshes")
        assert node.batched_positions.shape == (7, 3)

    def test_actors_of_one_shape_move_as_one_node(self, server: Any) -> None:
        part = Instance("cube", (0.0, 0.0, 0.5))
        still = Actor("parked", (part,), position=(0.0, 3.0, 0.0))
        actors = (Actor("cart", (part,), "scripted", path=PATH), still)
        viewer = Viewer(server, Subject("yard", Scene("yard", {"cube": Box((0.5, 0.5, 0.5))}, actors=actors)))
        (node,) = _layer(viewer, "meshes")
        viewer.show(1.0)
        np.testing.assert_allclose(node.batched_positions, [(2.0, 0.0, 0.5), (0.0, 3.0, 0.5)], atol=1e-6)  # float32
        assert viewer.controls.slider.value == 1.0

    def test_actors_are_where_the_scene_puts_them(self) -> None:
        place = scene("dynamic_environment:3@2")
        poses = ActorPoses(place)
        poses.advance(7.3)
        expected = posed(place, 7.3, skins=False).instances[len(place.instances) :]
        # Both are the same float64 arithmetic.
        np.testing.assert_allclose(poses.part_position, [item.position for item in expected], atol=1e-9)
        angles = frames.angle_between(poses.part_attitude, np.array([item.attitude for item in expected]))
        assert angles.max() < 1e-6

    @pytest.mark.parametrize("animation", ["standing", "walking"])
    def test_people_are_seen_as_figures_and_hit_as_capsules(self, server: Any, animation: str) -> None:
        walk = (Waypoint(0.0, (1.0, 0.0, 0.0)), Waypoint(4.0, (5.0, 0.0, 0.0)))
        kit = person("somebody", animation=animation, motion="scripted", path=walk)
        lump = Mesh(np.eye(4, 3), np.array([[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]]))
        named = [("figure", 0.0), ("figure", 0.02)] if animation == "standing" else [("head", 0.0), ("hand_left", 0.0)]
        looks = tuple(
            Instance("lump", materials=("paint",), name=name, footprint=(least, 0.0), attached="somebody")
            for name, least in named
        )
        hit = dataclasses.replace(kit.actor, parts=tuple(hidden(part) for part in kit.actor.parts))
        kit = dataclasses.replace(kit, actor=hit, looks=looks, shapes=kit.shapes | {"lump": lump})
        place = add_actor(Scene("yard", materials={"paint": Material()}), kit)
        viewer = Viewer(server, Subject("yard", place))
        assert sum(len(node.batched_positions) for node in _layer(viewer, "meshes")) == sum(least == 0.0 for _, least in named)
        viewer.switch("collision", True)
        assert sum(len(node.batched_positions) for node in _layer(viewer, "collision")) == 15
        viewer.show(2.0)
        expected = [item.position for item in seen_from_near(posed(place, 2.0).looks)]
        found = np.concatenate([node.batched_positions for node in _layer(viewer, "meshes")])
        np.testing.assert_allclose(found, expected, atol=1e-6)  # float32
        assert (found[:, 0] > 2.0).all()

    def test_colour_is_the_material_linear(self, server: Any) -> None:
        paint = {"red": Material((1.0, 0.0, 0.2, 1.0))}  # the browser takes instances' colours as linear
        place = Scene("one", {"cube": Box((0.5, 0.5, 0.5))}, paint, instances=(Instance("cube", materials=("red",)),))
        viewer = Viewer(server, Subject("one", place))
        (node,) = viewer.nodes.values()
        assert np.asarray(node.batched_colors).reshape(-1)[:3].tolist() == [255, 0, 51]

    def test_what_glows_is_no_brighter_than_white(self, server: Any) -> None:
        paint = {"lamp": Material((0.2, 0.4, 0.6, 1.0), emissive=(0.0, 0.2, 0.9))}
        place = Scene("one", {"cube": Box((0.5, 0.5, 0.5))}, paint, instances=(Instance("cube", materials=("lamp",)),))
        (node,) = Viewer(server, Subject("one", place)).nodes.values()
        assert np.asarray(node.batched_colors).reshape(-1)[:3].tolist() == [51, 153, 255]
        # What is asked of the browser's library, which would put up with more.
        nodes: Any = SimpleNamespace(_scene=place)
        assert SceneNodes._plain(nodes, place.instances[0], tessellate(Box((0.5, 0.5, 0.5)))) == (51, 153, 255)

    def test_what_is_covered_shows_when_asked_for(self, server: Any) -> None:
        shown, covered = Instance("cube"), Instance("cube", (2.0, 0.0, 0.0), visible=False, covered=True)
        air = Instance("cube", (4.0, 0.0, 0.0), collide=False)
        viewer = Viewer(server, Subject("yard", Scene("yard", {"cube": Box((0.5, 0.5, 0.5))}, instances=(shown, covered, air))))
        assert list(viewer.controls.boxes) == ["meshes", "covered", "collision"]
        assert [len(node.batched_positions) for node in _layer(viewer, "meshes")] == [2]
        assert not _layer(viewer, "covered")
        viewer.switch("covered", True)
        (node,) = _layer(viewer, "covered")
        np.testing.assert_allclose(node.batched_positions, [(2.0, 0.0, 0.0)])
        viewer.switch("collision", True)
        (hit,) = _layer(viewer, "collision")
        np.testing.assert_allclose(hit.batched_positions, [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)])  # whatever can be hit
        viewer.switch("covered", False)
        assert not node.visible
        assert not viewer.controls.boxes["covered"].value  # the switch follows
        assert hit.visible

    def test_a_roof_can_be_taken_off(self, server: Any) -> None:
        shapes = {"slab": Box((4.0, 3.0, 0.1)), "wall": Box((4.0, 0.1, 1.5))}
        things = (Instance("slab"), Instance("wall", (0.0, 3.0, 1.5)), Instance("slab", (0.0, 0.0, 3.0)))
        viewer = Viewer(server, Subject("room", Scene("room", shapes, instances=things)))
        (roof,) = _layer(viewer, "roof")
        np.testing.assert_allclose(roof.batched_positions, [(0.0, 0.0, 3.0)])
        viewer.switch("roof", False)
        assert not roof.visible
        assert all(node.visible for node in _layer(viewer, "meshes"))

    def test_what_lies_beyond_known_space_is_hidden_by_itself(self, server: Any) -> None:
        clouds = {"room": _splats(), "background": _splats()}
        place = Scene("p", clouds=clouds, splats=tuple(SplatPlacement(name, name=name) for name in clouds))
        known = CarvedSpace(np.zeros((2, 2, 2), np.uint8), (0.0, 0.0, 0.0), 0.1)
        viewer = Viewer(server, Subject("p", dataclasses.replace(place, carved=known)))
        inside, beyond = viewer.nodes["/splats/0_room"], viewer.nodes["/splats/1_background"]
        assert viewer.controls.boxes["beyond"].value
        viewer.switch("beyond", False)
        assert (inside.visible, beyond.visible) == (True, False)
        picker = viewer.picker()
        assert picker is not None
        assert [item.cloud for item in picker.scene.splats] == ["room"]  # what is hidden is clicked through
        assert viewer.picker() is picker
        viewer.switch("splats", False)
        viewer.switch("beyond", True)
        assert not beyond.visible
        viewer.switch("splats", True)
        assert beyond.visible
        # In any other scene a cloud of this name is like others.
        assert SplatNodes(server.scene, place, place).kinds == frozenset()

    def test_the_splats_of_a_roof_go_with_it(self, server: Any) -> None:
        shapes = {"slab": Box((4.0, 3.0, 0.1)), "wall": Box((4.0, 0.1, 1.5))}
        hidden: dict[str, Any] = {"visible": False, "covered": True}
        places = (("slab", (0.0, 0.0, 0.0)), ("wall", (0.0, 3.0, 1.5)), ("slab", (0.0, 0.0, 3.0)))
        things = tuple(Instance(shape, where, **hidden) for shape, where in places)
        where = np.random.default_rng(2).uniform((-4.0, -3.0, 0.0), (4.0, 3.0, 3.0), (3000, 3))
        cloud = dataclasses.replace(_splats(3000), position=where.astype(np.float32))
        place = Scene("room", shapes, instances=things, clouds={"x": cloud}, splats=(SplatPlacement("x", name="room"),))
        viewer = Viewer(server, Subject("room", place))
        below, above = viewer.nodes["/splats/0_room"], viewer.nodes["/splats/0_room_roof"]
        assert len(below.buffer) + len(above.buffer) == 3000
        # The slab's lower side is at 2.9 m, and the splats up to 0.15 m under it belong to it: 8.3 % of the height.
        assert len(above.buffer) == pytest.approx(250, abs=50)
        viewer.switch("roof", False)
        assert (below.visible, above.visible) == (True, False)
        viewer.switch("splats", False)
        viewer.switch("roof", True)
        assert not above.visible  # all splats are off

    def test_textures_by_size_repeat_per_metre(self) -> None:
        box = tessellate(Box((2.0, 1.0, 0.5)))
        made = wrapped(box, [Material(texture_size=0.5)])
        assert made.uv is not None
        top = made.vertices[:, 2] > 0.49
        spans = np.ptp(made.uv.reshape(-1, 3, 2)[top.reshape(-1, 3).all(1)].reshape(-1, 2), axis=0)
        np.testing.assert_allclose(spans, (8.0, 4.0), rtol=1e-6)  # 4 m and 2 m in repeats of half a metre
        assert wrapped(box, [Material()]) is box

    def test_the_sky_is_a_sound_file(self, tmp_path: Path) -> None:
        from airworthy.scenes.formats.read import read_model

        (tmp_path / "sky.glb").write_bytes(_dome(GREY, 100.0))
        (mesh,) = read_model(tmp_path / "sky.glb").shapes.values()
        assert np.linalg.norm(mesh.vertices, axis=1) == pytest.approx(100.0, rel=1e-6)  # float32


class TestSplats:
    def test_a_splat_file_is_a_scene(self, server: Any, tmp_path: Path) -> None:
        write_splats(_splats(), tmp_path / "cloud.ply")
        subject = load_subject(str(tmp_path / "cloud.ply"))
        assert subject.bare
        viewer = Viewer(server, subject)
        assert list(viewer.nodes) == ["/splats/0_cloud"]
        assert viewer.nodes["/splats/0_cloud"].buffer.shape == (5, 8)
        assert list(viewer.controls.boxes) == ["splats", "collision", "grid"]
        viewer.switch("splats", False)
        assert not viewer.nodes["/splats/0_cloud"].visible

    def test_what_vehicles_hit_in_a_splat_file(self, server: Any, tmp_path: Path) -> None:
        x, y = np.meshgrid(np.arange(-1.0, 1.0, 0.04), np.arange(-1.0, 1.0, 0.04))
        points = np.stack((x, y, 0.0 * x), axis=-1).reshape(-1, 3)
        count = len(points)
        flat = np.tile((0.03, 0.03, 0.01), (count, 1))
        turns = np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
        write_splats(Splats(points, turns, flat, np.full(count, 0.95), np.zeros((count, 1, 3))), tmp_path / "floor.spz")
        viewer = Viewer(server, load_subject(str(tmp_path / "floor.spz")))
        assert not _layer(viewer, "collision")
        viewer.switch("collision", True)
        (node,) = _layer(viewer, "collision")
        low, high = node.vertices.min(0), node.vertices.max(0)
        assert (high - low)[:2].min() > 1.8  # the floor is 2 m wide; the mesh is of cells
        assert abs(float(high[2] + low[2])) < 0.2

    def test_a_scene_places_its_splats(self, server: Any) -> None:
        item = SplatPlacement("x", (1.0, 2.0, 3.0), scale=2.0)
        cloud = _splats()
        viewer = Viewer(server, Subject("captured", Scene("captured", clouds={"x": cloud}, splats=(item,))))
        node = viewer.nodes["/splats/0_x"]
        np.testing.assert_allclose(node.position, (1.0, 2.0, 3.0))
        sent = np.ascontiguousarray(node.buffer[:, :3]).view(np.float32)
        # Sent in a unit of its own, which the node's scale takes back: float32 of both.
        np.testing.assert_allclose(sent * node.scale, 2.0 * cloud.position, rtol=1e-5)

    def test_splats_ride_on_actors(self, server: Any) -> None:
        item = SplatPlacement("x", (1.0, 0.0, 0.0), attached="cart")
        actor = Actor("cart", (Instance("cube", visible=False, covered=True),), "scripted", path=PATH)
        place = Scene("yard", {"cube": Box((0.5, 0.5, 0.5))}, actors=(actor,), clouds={"x": _splats()}, splats=(item,))
        viewer = Viewer(server, Subject("yard", place))
        node = viewer.nodes["/splats/0_x"]
        viewer.show(0.0)
        np.testing.assert_allclose(node.position, (1.0, 0.0, 0.0), atol=1e-6)
        viewer.show(2.0)  # the cart is at (4, 0, 0) and has turned round
        np.testing.assert_allclose(node.position, (3.0, 0.0, 0.0), atol=1e-6)
        assert frames.angle_between(frames.from_wxyz(np.asarray(node.wxyz)), np.array([0.0, 0.0, 1.0, 0.0])) < 1e-6

    def test_clouds_share_the_most_that_is_sent(self, server: Any) -> None:
        clouds = {"a": _splats(3000), "b": _splats(1000)}
        items = (SplatPlacement("a"), SplatPlacement("b"), SplatPlacement("b", (9.0, 0.0, 0.0)))
        viewer = Viewer(server, Subject("many", Scene("many", clouds=clouds, splats=items)), splats_max=500)
        counts = [len(handle.buffer) for handle in viewer.nodes.values()]
        assert sum(counts) <= 500
        assert counts[0] == pytest.approx(3 * counts[1], rel=0.1)  # in proportion; merging meets a number nearly
        assert "merged from 5,000" in viewer._facts()

    @pytest.mark.parametrize("size", [1e-4, 0.1, 30.0])
    def test_fine_splats_survive_half_precision(self, server: Any, size: float) -> None:
        """A cloud in any unit arrives with its shape: half precision has 11 bits, its square root 12."""
        cloud = dataclasses.replace(_splats(200, size))
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": cloud}, splats=(SplatPlacement("x"),))))
        node = viewer.nodes["/splats/0_x"]
        halves = np.ascontiguousarray(node.buffer[:, 4:7]).view(np.float16).astype(float) * node.scale**2
        expected = covariances(cloud).reshape(-1, 9)[:, [0, 1, 2, 4, 5, 8]]
        diagonal = np.abs(expected[:, [0, 3, 5]]).max(1, keepdims=True)
        assert np.abs((halves - expected) / diagonal).max() < 1e-3

    def test_covariances_have_the_scales_along_the_axes(self) -> None:
        splats = _splats(20)
        variance = np.linalg.eigvalsh(covariances(splats).astype(float))
        np.testing.assert_allclose(variance, np.sort(splats.scale.astype(float) ** 2, axis=1), rtol=1e-3)  # float32 sums


def test_textures_finer_than_a_decimetre_are_wrapped_too() -> None:
    made = wrapped(tessellate(Box((2.0, 1.0, 0.5))), [Material(texture_size=0.05)])
    assert made.uv is not None
    assert np.ptp(made.uv, axis=0).max() == pytest.approx(80.0)  # 4 m in repeats of 5 cm
