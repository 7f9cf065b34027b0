"""USD: stages written by hand, read by the process of its own, and hostile ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AssetError, AssetWarning
from airworthy.scenes import scene
from airworthy.scenes.extent import instances_box
from airworthy.scenes.formats import FileLimits, read_model, usd

needs_usd = pytest.mark.skipif(importlib.util.find_spec("pxr") is None, reason="needs usd-core: pip install 'airworthy[usd]'")

HEAD = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    upAxis = "Y"
)
"""
QUAD = """
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3]
        point3f[] points = [(0, 0, 0), (100, 0, 0), (100, 0, -200), (0, 0, -200)]
"""
STAGE = (
    HEAD
    + """
def Xform "World"
{
    def Mesh "floor" (prepend apiSchemas = ["MaterialBindingAPI"])
    {"""
    + QUAD
    + """
        rel material:binding = </World/Looks/red>
        double3 xformOp:translate = (100, 50, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Mesh "stretched"
    {"""
    + QUAD
    + """
        color3f[] primvars:displayColor = [(0.1, 0.2, 0.3)]
        double3 xformOp:scale = (2, 1, 1)
        uniform token[] xformOpOrder = ["xformOp:scale"]
    }
    def Mesh "hidden" { token visibility = "invisible" """
    + QUAD
    + """ }
    def Sphere "ball"
    {
        double radius = 50
        double3 xformOp:translate = (0, 300, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Cone "hat" {}
    def Scope "Looks"
    {
        def Material "red"
        {
            token outputs:surface.connect = </World/Looks/red/shader.outputs:surface>
            def Shader "shader"
            {
                uniform token info:id = "UsdPreviewSurface"
                color3f inputs:diffuseColor = (0.8, 0.1, 0.05)
                float inputs:roughness = 0.25
                token outputs:surface
            }
        }
    }
}
"""
)
TREE = (
    HEAD.replace("World", "Tree")
    + """def Xform "Tree"
{
    def Cube "trunk"
    {
        double size = 20
    }
}
"""
)
FOREST = (
    HEAD
    + """def Xform "World" {
    def "a" (instanceable = true
        prepend references = @./parts/tree.usda@) {}
    def "b" (instanceable = true
        prepend references = @./parts/tree.usda@)
    {
        double3 xformOp:translate = (500, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def PointInstancer "many"
    {
        rel prototypes = [</World/many/proto>]
        int[] protoIndices = [0, 0, 0]
        point3f[] positions = [(0, 0, 100), (0, 0, 200), (0, 100, 300)]
        def Cube "proto" { double size = 30
 }
    }
}
"""
)


def written(folder: Path, text: str, name: str = "stage.usda") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@needs_usd
def test_a_stage_is_read_in_metres_with_z_up(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, STAGE))
    at = {item.name: item for item in model.instances}
    assert set(at) == {"floor", "stretched", "ball"}
    boxes = {name: np.round(instances_box(model.shapes, [item]), 6) for name, item in at.items()}
    # y up becomes z up: (x, y, z) -> (x, -z, y), and centimetres metres
    np.testing.assert_allclose(boxes["floor"], [[1.0, 0.0, 0.5], [2.0, 2.0, 0.5]], atol=1e-6)
    np.testing.assert_allclose(boxes["stretched"], [[0.0, 0.0, 0.0], [2.0, 2.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(boxes["ball"][:, 2], [2.5, 3.5], atol=1e-3)
    red = model.materials[at["floor"].materials[0]]
    np.testing.assert_allclose([*red.base_color, red.roughness], [0.8, 0.1, 0.05, 1.0, 0.25], atol=1e-6)
    np.testing.assert_allclose(model.materials[at["stretched"].materials[0]].base_color[:3], [0.1, 0.2, 0.3], atol=1e-6)
    assert any("Cone" in remark for remark in model.warnings)
    with pytest.warns(AssetWarning, match="Cone"):
        assert len(scene(tmp_path / "stage.usda").instances) == 3


@needs_usd
def test_prototypes_and_point_instancers_share_their_shapes(tmp_path: Path) -> None:
    written(tmp_path, TREE, "parts/tree.usda")
    model = read_model(written(tmp_path, FOREST))
    assert len(model.instances) == 5
    assert len(model.shapes) == 2
    middles = sorted(tuple(np.round(np.mean(instances_box(model.shapes, [item]), axis=0), 4) + 0.0) for item in model.instances)
    assert middles == [(0.0, -3.0, 1.0), (0.0, -2.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 0.0), (5.0, 0.0, 0.0)]


@needs_usd
def test_faces_keep_their_side_and_their_colours(tmp_path: Path) -> None:
    body = QUAD + 'uniform token orientation = "leftHanded"\ncolor3f[] primvars:displayColor = [(0, 1, 0)] ('
    text = HEAD.replace('"Y"', '"Z"') + 'def Mesh "World" {' + body + 'interpolation = "uniform")\n}\n'
    model = read_model(written(tmp_path, text))
    mesh = next(iter(model.shapes.values()))
    a, b, c = mesh.vertices[mesh.faces[0]]
    assert np.cross(b - a, c - a)[1] < 0.0  # +y for the right-handed quad
    np.testing.assert_allclose(mesh.colors, np.tile([0.0, 1.0, 0.0, 1.0], (4, 1)))


@needs_usd
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#usda 1.0\ndef {{{", "no sound USD file|broke down"),
        ("nothing of the kind", "no sound USD file"),
        ("", "no sound USD file"),
        (HEAD + 'def Xform "World" {}', "no triangle"),
        (HEAD + 'def "World" (references = @/etc/passwd.usda@) {}', "own folder"),
        (HEAD + 'def "World" (payload = @../outside.usda@) {}', "outside its own folder"),
        (HEAD + 'def "World" (references = @http://example.org/a.usda@) {}', "own folder"),
        (HEAD + 'def "World" (references = @secret.txt@) {}', "layers end in"),
        (HEAD + 'def "World" (references = @missing.usda@) {}', "missing.usda"),
        (HEAD.replace("(\n", "(\n    subLayers = [@../outside.usda@]\n") + 'def "World" {}', "outside its own folder"),
        (HEAD + 'def Mesh "World" {' + QUAD.replace("[0, 1, 2, 3]", "[0, 1, 2, 9]") + "}", "does not have"),
        (HEAD + 'def Mesh "World" {' + QUAD.replace("[4]", "[-4]") + "}", "does not have"),
        (HEAD + 'def "a"\n{\n' * 20000 + "}\n" * 20000, "broke down|no sound|nodes"),
    ],
)
def test_hostile_stages_are_refused_in_a_sentence(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(AssetError, match=reason) as caught:
        read_model(written(tmp_path / "in", text))
    assert "\n" not in str(caught.value)


@needs_usd
def test_references_of_references_do_not_grow_without_bound(tmp_path: Path) -> None:
    """Ten layers, each with ten of the next: refused by the number of prims, or the process's limits."""
    lines = [f'def "c{k}" (references = @NEXT@) {{}}' for k in range(10)]
    for level in range(4):
        body = "\n".join(lines).replace("NEXT", f"l{level + 1}.usda")
        written(tmp_path, HEAD + 'def Xform "World" {\n' + body + "\n}\n", f"l{level}.usda")
    written(tmp_path, TREE.replace("Tree", "World"), "l4.usda")
    with pytest.raises(AssetError, match="nodes"):
        read_model(tmp_path / "l0.usda", FileLimits(nodes=2000))


def test_without_the_package_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usd.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AssetError, match=r"pip install 'airworthy\[usd\]'"):
        read_model(written(tmp_path, STAGE))
