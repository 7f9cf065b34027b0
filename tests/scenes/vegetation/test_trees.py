"""Trees: what a kind says of itself, and what grows of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.geometry import Mesh
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.vegetation.cache import kept_mesh
from airworthy.scenes.vegetation.growth import crown_share, grown
from airworthy.scenes.vegetation.kinds import tree_kind, tree_kinds
from airworthy.scenes.vegetation.planting import COARSE, Planting, scattered
from airworthy.scenes.vegetation.tree import BARK, LEAVES, TreeForm, crown_mesh, tree_mesh, trunk_mesh
from airworthy.scenes.vegetation.undergrowth import fallen_trunk, fern, grass_tuft, hedge_panel, litter, patch, stone


def size(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    used = mesh.vertices[np.unique(mesh.faces)]
    return used.min(0), used.max(0)


def materials(mesh: Mesh) -> np.ndarray:
    assert mesh.face_material is not None
    return np.asarray(mesh.face_material)


@pytest.mark.parametrize("name", list(tree_kinds()))
def test_a_grown_tree_is_as_large_as_its_kind_and_stands_on_its_foot(name: str) -> None:
    kind, mesh = tree_kind(name), tree_mesh(TreeForm(name, detail=0))
    low, high = size(mesh)
    assert high[2] == pytest.approx(kind.height, rel=0.25)
    # Leaves of least detail are large: their tips reach beyond the twigs.
    assert 0.5 * kind.spread < float(np.mean((high - low)[:2])) < 1.6 * kind.spread + 2.0
    foot = mesh.vertices[(mesh.vertices[:, 2] < 0.01) & (mesh.vertices[:, 2] > -0.01)]
    assert np.hypot(foot[:, 0], foot[:, 1]).max() == pytest.approx(kind.girth * kind.height, abs=0.1)
    assert set(materials(mesh)) == {BARK, LEAVES}
    assert mesh.normals is not None
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1.0, atol=1e-5)


def test_seasons_change_leaves_alone_and_evergreens_keep_them() -> None:
    summer, autumn, winter = (tree_mesh(TreeForm("oak", season=season, detail=0)) for season in ("summer", "autumn", "winter"))
    wood = summer.vertices[np.unique(summer.faces[materials(summer) == BARK])]
    np.testing.assert_array_equal(wood, winter.vertices[np.unique(winter.faces)])
    assert (materials(winter) == BARK).all()
    leaves = [np.unique(mesh.faces[materials(mesh) == LEAVES]) for mesh in (summer, autumn)]
    assert summer.colors is not None
    assert autumn.colors is not None
    green, brown = summer.colors[leaves[0]].mean(0), autumn.colors[leaves[1]].mean(0)
    assert green[1] > green[0] > green[2]
    assert brown[0] > 1.3 * brown[1]
    bare = tree_mesh(TreeForm("spruce", season="winter", detail=0))
    assert (materials(bare) == LEAVES).any()


def test_branches_grow_on_their_bearers_and_are_thinner() -> None:
    kind = tree_kind("beech")
    levels = grown(kind, generator("test"))
    assert [len(stems) > 0 for stems in levels] == [True] * 4
    for bearer, stems in pairwise(levels):
        roots = stems.points[:, 0]
        ends = bearer.points[:, :-1].reshape(-1, 3), bearer.points[:, 1:].reshape(-1, 3)
        for root, radius in zip(roots[::17], stems.radius[::17, 0], strict=True):
            along = ends[1] - ends[0]
            t = np.clip(((root - ends[0]) * along).sum(1) / (along**2).sum(1), 0.0, 1.0)
            assert np.linalg.norm(ends[0] + t[:, None] * along - root, axis=1).min() < 1e-9
            assert radius <= bearer.radius.max()
    assert levels[1].points[:, 0, 2].min() >= kind.bare * kind.height - 1e-9


def test_crowns_have_the_shapes_of_the_paper() -> None:
    r = np.linspace(0.0, 1.0, 101)
    assert np.argmax(crown_share("conical", r)) == 100
    assert np.argmax(crown_share("spherical", r)) == 50
    assert np.argmax(crown_share("flame", r)) == 70
    assert (crown_share("cylindrical", r) == 1.0).all()


def test_a_bole_among_others_is_straight_and_hardly_tapers() -> None:
    form = TreeForm("oak", 1, bare=0.42, detail=1)
    mesh, kind = tree_mesh(form), tree_kind("oak")
    assert mesh.face_material is not None
    points = mesh.vertices[np.unique(mesh.faces)]
    bole = points[(points[:, 2] > 0.5) & (points[:, 2] < 0.40 * kind.height)]
    radius = np.hypot(bole[:, 0], bole[:, 1])
    assert radius.min() > 0.90 * kind.girth * kind.height
    assert radius.max() < 1.04 * kind.girth * kind.height


def test_the_same_tree_in_another_process() -> None:
    code = (
        "import hashlib\nfrom airworthy.scenes.vegetation.tree import TreeForm, tree_mesh\n"
        "m = tree_mesh(TreeForm('birch', 3, 'autumn', detail=0))\n"
        "print(hashlib.sha256(m.vertices.tobytes() + m.colors.tobytes()).hexdigest())"
    )
    told = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told[0] == told[1] != ""
    first, other = (tree_mesh(TreeForm("birch", seed, detail=0)).vertices for seed in (3, 4))
    assert first.shape != other.shape or (first != other).any()


def test_what_is_asked_wrongly_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="beech"):
        tree_kind("beach")
    with pytest.raises(AirworthyError, match="age"):
        TreeForm("oak", age=3.0)


def test_undergrowth_keeps_to_its_heights() -> None:
    for seed in range(3):
        assert size(litter(seed))[1][2] <= 0.03 + 1e-6
        assert size(grass_tuft(seed, 0.05, 0.4, 120))[1][2] <= 0.05 + 1e-6
        assert 0.4 < size(fern(seed))[1][2] < 1.0
        low, high = size(hedge_panel(seed, 2.0, 3.0))
        assert -0.05 - 1e-6 <= low[1] <= high[1] <= 0.02 + 1e-6
        assert size(stone(seed))[0][2] < 0.0 < size(stone(seed))[1][2]
        assert size(fallen_trunk(seed))[1][0] == pytest.approx(2.5, abs=0.5)


def test_scattered_points_keep_apart_and_out() -> None:
    rng = np.random.default_rng(2)
    points = scattered(rng, (0.0, 0.0), (10.0, 8.0), 0.7, 2000, [np.array([5.0, 4.0, 2.0])])
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + 10.0 * np.eye(len(points))
    assert len(points) > 80
    assert gaps.min() >= 0.7
    assert np.linalg.norm(points - [5.0, 4.0], axis=1).min() > 2.0


def test_a_thousand_trees_cost_a_trunk_and_a_crown() -> None:
    planting = Planting()
    for k in range(1000):
        planting.tree(TreeForm("birch", detail=0), (k, 0.0, 0.0), 0.1 * k)
    assert len(planting.shapes) == 2
    assert len(planting.items) == 2000


def test_a_tree_with_detail_has_coarse_kin_for_afar_and_for_its_shadow() -> None:
    """At any width of a pixel one crown is seen, and one, always the same, casts the shadow."""
    planting = Planting()
    form = TreeForm("birch", detail=1)
    trunk = planting.tree(form, (0.0, 0.0, 0.0))
    fine, far, shade = planting.items[1:]
    assert trunk == planting.items[0]
    assert (trunk.shadow, fine.shadow, far.shadow, shade.shadow) == ("own", "none", "none", "only")
    assert fine.footprint == (0.0, COARSE)
    assert far.footprint == (COARSE, 0.0)
    assert far.shape == shade.shape != fine.shape
    # Trunk and crown are the tree, and the coarse one is about as large.
    parts = [trunk_mesh(replace(form, detail=2)), crown_mesh(form)]
    assert sum(len(part.faces) for part in parts) == len(tree_mesh(form).faces)
    for ours, whole in zip(size(crown_mesh(replace(form, detail=0))), size(crown_mesh(form)), strict=True):
        np.testing.assert_allclose(ours, whole, atol=1.0)


def test_a_plant_is_made_once_and_read_again_with_the_same_bits(tmp_path: Path) -> None:
    made = []

    def make() -> Mesh:
        made.append(1)
        return crown_mesh(TreeForm("larch", detail=0))

    first, again = (kept_mesh("larch", make, tmp_path) for _ in range(2))
    assert len(made) == 1
    for name in ("vertices", "faces", "normals", "uv", "colors", "face_material"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    kept_mesh("larch", make, tmp_path)
    assert len(made) == 2, "a damaged file is made anew"


def test_a_patch_is_its_plants() -> None:
    tufts = [grass_tuft(seed, 0.05, 0.4, 12) for seed in range(2)]
    made = patch(1, 2.0, 1.0, tufts)
    assert len(made.faces) % len(tufts[0].faces) == 0
    assert len(made.faces) >= 9 * len(tufts[0].faces)
    assert np.hypot(made.vertices[:, 0], made.vertices[:, 1]).max() < 2.0 + 0.6
    assert size(made)[1][2] <= 0.05 + 1e-6
