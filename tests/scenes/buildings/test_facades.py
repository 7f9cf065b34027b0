"""Façades: the split grammar covers them, styles end in pieces that can be built, houses are functions of their seeds."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.scenes.buildings.facade import Facade
from airworthy.scenes.buildings.grammar import FacadeSplit, Piece, Rules, derived, divided, fixed, repeated, share
from airworthy.scenes.buildings.house import House, house_materials, house_patches
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.relief import DEEP, FLAT, SLOTS
from airworthy.scenes.buildings.shade import open_shares
from airworthy.scenes.buildings.styles import building_style, building_styles, facade_rules
from airworthy.scenes.buildings.surfaces import surface_recipe
from airworthy.scenes.generators.seeding import generator


def covered_once(pieces: list[Piece], whole: Piece) -> None:
    """Assert that pieces cover a rectangle, and no two of them overlap: on the grid of all of their edges."""
    x = np.unique([v for p in pieces for v in (p.left, p.right)])
    z = np.unique([v for p in pieces for v in (p.low, p.high)])
    assert (x[0], x[-1], z[0], z[-1]) == (whole.left, whole.right, whole.low, whole.high)
    count = np.zeros((len(x) - 1, len(z) - 1), int)
    for p in pieces:
        i, j = np.searchsorted(x, [p.left, p.right]), np.searchsorted(z, [p.low, p.high])
        count[i[0] : i[1], j[0] : j[1]] += 1
    # By edges that are equal to the bit: neither a gap nor an overlap of any width.
    np.testing.assert_array_equal(count, 1)


@pytest.mark.parametrize("name", building_styles())
def test_a_grammar_covers_every_facade_without_gaps_or_overlaps(name: str) -> None:
    style, rng = building_style(name), generator("façades of any size", name)
    for _ in range(12):
        whole = Piece("facade", 0.0, 1.5 + 20.0 * rng.random(), 0.0, 3.2 + 17.0 * rng.random())
        for ground in ("shop", "door", "windows", "blank"):
            rules = facade_rules(style, whole.width, whole.height, ground, balconies=bool(rng.random() < 0.5))
            pieces = derived(rules, whole)
            covered_once(pieces, whole)
            assert all(piece.width > 0.0 and piece.height > 0.0 for piece in pieces)
            Facade(
                PatchMesh(), np.zeros(3), np.array([1.0, 0.0, 0.0]), style, FLAT, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), rng
            ).build(pieces)


def test_parts_are_fixed_shared_or_repeated_in_turns() -> None:
    assert divided(0.0, 10.0, (fixed("a", 1.0), share("b", 1.0), share("c", 2.0))) == [
        ("a", 0.0, 1.0),
        ("b", 1.0, 4.0),
        ("c", 4.0, 10.0),
    ]
    turns = divided(0.0, 9.0, (fixed("m", 1.0), repeated("x", 2.0), repeated("y", 1.9)))
    assert [symbol for symbol, _, _ in turns] == ["m", "x", "y", "x", "y"]
    assert turns[-1][2] == 9.0
    squeezed = divided(0.0, 1.0, (fixed("a", 3.0), share("b", 1.0), fixed("c", 1.0)))
    assert squeezed == [("a", 0.0, 0.75), ("c", 0.75, 1.0)]
    assert divided(2.0, 3.0, (fixed("a", 4.0),)) == [("a", 2.0, 3.0)]


def test_grammars_that_cannot_be_followed_are_refused() -> None:
    with pytest.raises(AirworthyError, match="shares or repeats but not both"):
        divided(0.0, 1.0, (share("a", 1.0), repeated("b", 1.0)))
    with pytest.raises(AirworthyError, match="sizes above 0"):
        divided(0.0, 1.0, (share("a", 0.0),))
    endless: Rules = {"a": FacadeSplit("up", (share("a", 1.0),))}
    with pytest.raises(AirworthyError, match="leads back to itself"):
        derived(endless, Piece("a", 0.0, 1.0, 0.0, 1.0))
    with pytest.raises(UnknownNameError, match="terrace"):
        building_style("terrasse")
    with pytest.raises(UnknownNameError, match="slabs"):
        surface_recipe("slab")


@pytest.mark.parametrize("name", building_styles())
def test_a_house_is_a_function_of_its_seed_and_stays_near_its_box(name: str) -> None:
    house = House((8.0, 7.0, 9.0), name, 3, ("shop", "door", "windows", "blank"), roof=0.0, swell=0.012)

    def mesh(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        made = house_patches(house, FLAT, generator("house", seed)).mesh()
        assert made.face_material is not None
        assert made.colors is not None
        return made.vertices, made.face_material, made.colors

    first, again, other = mesh(1), mesh(1), mesh(2)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, again, strict=True))
    assert first[2].tobytes() != other[2].tobytes()
    points, slots, _ = first
    assert len(house_materials(house)) == len(SLOTS) > slots.max()
    assert 500 < len(slots) < 12_000
    # Nothing stands out of the box, or lies in it, by more than 5 cm: distance to the box's surface.
    half = np.array([4.0, 3.5, 4.5])
    q = np.abs(points - np.array([0.0, 0.0, 4.5])) - half
    distance = np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(1), 0.0)
    assert np.abs(distance).max() < 0.05


def test_facades_face_outwards() -> None:
    patches = house_patches(
        House((8.0, 7.0, 9.0), "stucco", 0, ("door", "door", "windows", "blank")), DEEP, generator("outwards")
    )
    mesh = patches.mesh()
    corner = mesh.vertices[mesh.faces].astype(float)
    flat = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    assert mesh.normals is not None
    assert ((flat * mesh.normals[mesh.faces[:, 0]]).sum(1) > 0.0).all()
    front = (np.abs(corner[:, :, 1] + 3.5) < 1e-4).all(1) & (corner[:, :, 2] > 0.5).all(1)
    assert (flat[front, 1] < 0.0).mean() > 0.95


def test_shade_between_walls_has_a_closed_form() -> None:
    """A point at the foot of an endless wall opposite of another as high as the street is wide."""
    lower, upper = np.array([[10.0, -4000.0, 0.0]]), np.array([[11.0, 4000.0, 10.0]])
    level = open_shares(np.array([[0.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0]]), lower, upper)[0]
    # Level ground: what a wall of infinite length up to elevation e hides is (1 - cos e) / 2; 0.3 of it comes back.
    hidden = 0.5 * (1.0 - np.cos(np.pi / 4.0))
    assert level == pytest.approx(1.0 - 0.7 * hidden, abs=0.04)
    away = open_shares(np.array([[0.0, 0.0, 5.0]]), np.array([[-1.0, 0.0, 0.0]]), lower, upper)
    assert away[0] == 1.0
    assert open_shares(np.zeros((3, 3)), np.eye(3), np.zeros((0, 3)), np.zeros((0, 3))).tolist() == [1.0, 1.0, 1.0]
