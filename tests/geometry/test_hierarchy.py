"""Trees over triangles: sound, shallow, built once, and quick to build."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.geometry import Box, Mesh
from airworthy.geometry.hierarchy import INSTANCE, LAYOUT, LEAF_SIZE, NODE, SHAPE, TRIANGLE, mesh_tree, shape_arrays


def soup(count: int, seed: int = 0, spread: float = 1.0) -> Mesh:
    rng = np.random.default_rng(seed)
    corners = spread * rng.normal(size=(count, 1, 3)) + 0.05 * rng.normal(size=(count, 3, 3))
    return Mesh(corners.reshape(-1, 3).astype(np.float32), np.arange(3 * count).reshape(-1, 3))


@pytest.mark.parametrize(
    "mesh",
    [soup(1), soup(2), soup(500), soup(3000, spread=0.0), soup(64, spread=1e-30)],
    ids=["one", "two", "many", "heap", "tiny"],
)
def test_every_triangle_is_in_one_leaf_and_inside_all_nodes_above(mesh: Mesh) -> None:
    tree = mesh_tree(mesh)
    reached = np.zeros(len(tree.triangles), int)
    stack, deepest, visited = [(0, 0)], 0, 0
    while stack:
        index, depth = stack.pop()
        node, deepest, visited = tree.nodes[index], max(deepest, depth), visited + 1
        if node["count"] > 0:
            assert node["count"] <= LEAF_SIZE
            inside = tree.triangles[node["first"] : node["first"] + node["count"]]
            for corner in ("a", "b", "c"):
                assert (inside[corner] >= node["lower"]).all()
                assert (inside[corner] <= node["upper"]).all()
            reached[node["first"] : node["first"] + node["count"]] += 1
            continue
        for child in (node["first"], node["first"] + 1):
            assert (tree.nodes[child]["lower"] >= node["lower"]).all()
            assert (tree.nodes[child]["upper"] <= node["upper"]).all()
            stack.append((child, depth + 1))
    assert (reached == 1).all()
    assert visited == len(tree.nodes)
    assert deepest < 60  # the traversal's stack has 64 places
    np.testing.assert_array_equal(np.sort(tree.triangles["face"]), np.arange(len(mesh.faces)))


def test_points_in_one_place_end_in_a_tree_that_is_not_deep() -> None:
    """Nothing parts them; they are halved by number."""
    corners = np.tile(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32), (1000, 1))
    tree = mesh_tree(Mesh(corners, np.arange(3000).reshape(-1, 3)))
    assert len(tree.nodes) < 1100


def test_an_empty_mesh_has_a_tree_that_contains_nothing() -> None:
    tree = mesh_tree(Mesh(np.zeros((0, 3)), np.zeros((0, 3), int)))
    assert len(tree.nodes) == 1
    assert len(tree.triangles) == 0
    assert (tree.nodes[0]["lower"] > tree.nodes[0]["upper"]).all()


def test_a_mesh_is_built_once_and_stored_once() -> None:
    mesh = soup(100)
    assert mesh_tree(mesh) is mesh_tree(mesh)
    assert len(shape_arrays([mesh, Box((1, 1, 1)), mesh]).triangles) == 100
    assert len(shape_arrays([mesh, soup(100, 1)]).triangles) == 200


def test_rows_have_the_sizes_that_native_code_reads() -> None:
    sizes = {NODE: 32, TRIANGLE: 48, SHAPE: 64, INSTANCE: 96, LAYOUT: 16}
    assert all(kind.itemsize == size for kind, size in sizes.items())
