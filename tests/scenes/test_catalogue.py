"""Names of scenes: generators by name, index and seed; files by path; one sentence for everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import airworthy.scenes.generators as rooms
from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError
from airworthy.geometry import Mesh, Sphere
from airworthy.scenes import Instance, Scene, check_scene, register_generator, scene, scene_digest, scene_names, write_scene
from airworthy.scenes.catalogue import first_index, parse_name
from airworthy.scenes.checking import description
from airworthy.scenes.extent import scene_box, triangle_count
from airworthy.scenes.imports import add_model
from airworthy.scenes.point_clouds import cloud_mesh


@given(st.integers(0, 999_999), st.integers(0, 2**63 - 1))
def test_names_say_generator_index_and_seed(index: int, seed: int) -> None:
    assert parse_name("forest") == ("forest", None, 0)
    assert parse_name(f"forest:{index}") == ("forest", index, 0)
    assert parse_name(f"forest@{seed}") == ("forest", None, seed)
    assert parse_name(f"forest:{index}@{seed}") == ("forest", index, seed)


@pytest.mark.parametrize(
    "name", ["", "forest:", "forest@", "forest:x", "forest@7:3", "forest:-1", "a b", "1forest", "forest:1:2", "forest:99999999"]
)
def test_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(AirworthyError):
        scene(name)


def test_a_generator_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "GENERATORS", dict(rooms.GENERATORS))

    def pea(index: int, seed: int) -> Scene:
        return Scene(f"pea:{index}@{seed}", {"pea": Sphere(0.1)}, instances=(Instance("pea"),))

    register_generator("pea", pea)
    assert "pea" in scene_names()
    assert scene("pea:4@5").name == "pea:4@5"
    for name in ("two words", "", "7up"):
        with pytest.raises(AirworthyError, match="letters"):
            register_generator(name, pea)
    with pytest.raises(UnknownNameError, match="'pea'"):
        scene("peas")
    taken = next(name for name in scene_names() if name != "pea")
    with pytest.raises(AirworthyError, match="already"):
        register_generator(taken, pea)


def test_a_name_leads_to_the_first_configuration_with_seed_zero() -> None:
    assert scene_names() == sorted(scene_names())
    assert first_index("forest") == 1
    for name in ("forest", "narrow_gap"):
        assert scene_digest(scene(name)) == scene_digest(scene(f"{name}:{first_index(name)}@0")), name


def test_a_scene_file_by_its_path_or_folder(tmp_path: Path) -> None:
    path = write_scene(Scene("pea", {"pea": Sphere(0.1)}, instances=(Instance("pea"),)), tmp_path / "pea")
    assert scene(str(path)).name == scene(str(path.parent)).name == scene(path).name == "pea"
    with pytest.raises(AirworthyError, match="its own units"):
        scene(path, units="mm")
    with pytest.raises(AssetError, match="no file"):
        scene(str(tmp_path / "none.toml"))


TETRAHEDRON = """\
v 1000 0 0
v 3000 0 0
v 1000 2000 0
v 1000 0 4000
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""


def test_a_model_stands_on_the_floor_in_metres(tmp_path: Path) -> None:
    path = tmp_path / "tetra.obj"
    path.write_text(TETRAHEDRON)
    found = scene(str(path), units="mm")
    box = scene_box(found)
    assert box is not None
    np.testing.assert_allclose(box[0], (-1.0, -1.0, 0.0), atol=1e-6)
    np.testing.assert_allclose(box[1], (1.0, 1.0, 4.0), atol=1e-6)
    assert (np.array(found.bounds.lower) <= box[0]).all()
    assert (np.array(found.bounds.upper) >= box[1]).all()
    turned = scene_box(scene(str(path), units="mm", up="y"))
    assert turned is not None
    np.testing.assert_allclose(turned[1] - turned[0], (2.0, 4.0, 2.0), atol=1e-6)
    assert triangle_count(found) == (4, 4)
    with pytest.raises(AirworthyError, match="'cm'"):
        scene(str(path), units="cn")


def test_models_are_posed_and_do_not_clash(tmp_path: Path) -> None:
    path = tmp_path / "tetra.obj"
    path.write_text(TETRAHEDRON)
    turn = frames.from_euler(0.3, -0.4, 0.5)
    attitude = (float(turn[0]), float(turn[1]), float(turn[2]), float(turn[3]))
    made = add_model(Scene("s"), path, position=(1.0, 2.0, 3.0), attitude=attitude, scale=2.0, units="mm", semantic="panel")
    made = add_model(made, path)
    assert len(made.shapes) == 2 == len({item.shape for item in made.instances})
    first = made.instances[0]
    assert first.semantic == "panel"
    mesh = made.shapes[first.shape]
    assert isinstance(mesh, Mesh)
    placed = np.array(first.position) + first.scale * frames.rotate(np.array(first.attitude), mesh.vertices)
    expected = np.array([1.0, 2.0, 3.0]) + frames.rotate(
        turn, 0.002 * np.array([[1000, 0, 0], [3000, 0, 0], [1000, 2000, 0], [1000, 0, 4000]])
    )
    for point in expected:  # the reader may order vertices as it likes; float32 at 3,000 rounds at 2e-4 mm
        assert np.abs(placed - point).sum(1).min() < 1e-5


def test_a_cloud_becomes_cubes_that_show_only_their_outside() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(4) + 0.5] * 3), axis=-1).reshape(-1, 3)
    mesh = cloud_mesh(grid - 0.5 + 1e-9, 1.0, np.tile(np.array([255, 0, 127], np.uint8), (64, 1)))
    # A solid block of 4 x 4 x 4 cubes has 6 x 16 squares outside, two triangles each.
    assert len(mesh.faces) == 6 * 16 * 2
    corners = mesh.vertices[mesh.faces].astype(float)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert 0.5 * np.linalg.norm(cross, axis=1).sum() == pytest.approx(96.0)
    # The divergence theorem: triangles turned outwards enclose a positive volume.
    assert np.sum(corners[:, 0] * cross) / 6.0 == pytest.approx(64.0)
    assert mesh.colors is not None
    np.testing.assert_allclose(mesh.colors[0], (1.0, 0.0, 0.2122, 1.0), atol=1e-3)  # sRGB 127 is 0.2122 linear
    lone = cloud_mesh([[5.0, 5.0, 5.0], [7.5, 5.0, 5.0]], 1.0)
    assert len(lone.faces) == 24
    with pytest.raises(AirworthyError, match="points"):
        cloud_mesh(np.zeros((0, 3)))


def test_a_point_cloud_is_a_scene(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform((10.0, 20.0, -3.0), (12.0, 21.0, -2.0), (500, 3))
    text = "ply\nformat ascii 1.0\nelement vertex 500\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    path = tmp_path / "cloud.ply"
    path.write_text(text + "\n".join(" ".join(f"{v:.6f}" for v in p) for p in points) + "\n")
    box = scene_box(scene(str(path)))
    assert box is not None
    # It keeps its frame; some cells of a scan without a lattice reach beyond its points.
    np.testing.assert_allclose(box[0], (10.0, 20.0, -3.0), atol=0.3)
    np.testing.assert_allclose(box[1], (12.0, 21.0, -2.0), atol=0.3)
    box = scene_box(scene(str(path), recentre=True))
    assert box is not None
    np.testing.assert_allclose(box[0], (-1.0, -0.5, 0.0), atol=0.3)
    assert box[0][2] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", ["thing.exe", "no/such.glb", "thing.ply", "."])
def test_other_paths_are_refused(name: str) -> None:
    with pytest.raises(AirworthyError):
        scene(name)


SHIPPED = scene_names()
"""As collected: other tests of the same process register scenes of their own later."""


def test_every_generator_has_a_line() -> None:
    for name in SHIPPED:
        line = description(name)
        assert 5 < len(line) < 90, name
        assert "`" not in line, f"{name}: write a line in descriptions.py"


@pytest.mark.parametrize(
    ("file", "units", "up", "height"),
    [
        # Heights by the sources: the room is 3.5 x 3.9 x 5.0 m (as recorded, not upright), the banana is metric.
        ("copyroom/copyroom_c2000_opt.obj", "m", "z", 5.0),
        ("ggg/owl.obj", "mm", "z", None),
        ("egyptian_cat/cat.glb", "m", "z", None),
        ("ycb_banana/textured_simple_reoriented.obj", "m", "z", None),
    ],
)
def test_a_scan_is_a_scene(data_dir: Path, file: str, units: str, up: str, height: float | None) -> None:
    found = scene(data_dir / "meshes" / file, units, up)
    box = scene_box(found)
    assert box is not None
    np.testing.assert_allclose(box[0][:2] + box[1][:2], 0.0, atol=1e-5)  # its middle is the origin
    assert box[0][2] == pytest.approx(0.0, abs=1e-6)
    size = box[1] - box[0]
    assert (size < 6.0).all()
    if height is not None:
        assert sorted(size.round(1).tolist()) == [3.5, 3.9, 5.0]
    assert triangle_count(found)[0] > 1000
    assert not [line for line in check_scene(found) if not line.startswith("note: ")]
