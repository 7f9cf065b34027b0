"""Occupied cells, collision meshes and distances of splats against sheets, slabs and spheres with known surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.geometry import GeometryBatch, Placement
from airworthy.geometry.distance import clearance
from airworthy.geometry.query_arguments import is_closed
from airworthy.scenes.splats.editing import merged
from airworthy.scenes.splats.geometry import SplatGeometry, collision_mesh, occupancy, splat_clearance, splat_geometry
from airworthy.scenes.splats.record import Splats

H = 0.1


def gaussians(position: object, scale: object, opacity: object, rotation: object = (0.0, 0.0, 0.0, 1.0)) -> Splats:
    where = np.atleast_2d(np.asarray(position, float))
    n = len(where)
    turn, size = np.broadcast_to(np.asarray(rotation, float), (n, 4)), np.broadcast_to(np.asarray(scale, float), (n, 3))
    return Splats(where, turn, size, np.broadcast_to(np.asarray(opacity, float), (n,)), np.zeros((n, 1, 3)))


def turning(normal: Array) -> Array:
    """Quaternions (n, 4) that turn z into unit normals (n, 3)."""
    half = np.concatenate([np.cross([0.0, 0.0, 1.0], normal), 1.0 + normal[:, 2:]], -1)
    return half / np.linalg.norm(half, axis=-1, keepdims=True)


def sphere(radius: float, count: int = 30000, opacity: float = 0.9) -> Splats:
    """Flat discs on a sphere around the origin, overlapping."""
    number = np.arange(count) + 0.5
    z, angle = 1.0 - 2.0 * number / count, number * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z * z)
    normal = np.stack([across * np.cos(angle), across * np.sin(angle), z], -1)
    size = 1.5 * radius * np.sqrt(4.0 * np.pi / count)
    return gaussians(radius * normal, (size, size, 1e-3), opacity, turning(normal))


def centres(shape: tuple[int, ...], lower: object, resolution: float) -> Array:
    return np.asarray(lower) + resolution * (np.moveaxis(np.indices(shape), 0, -1) + 0.5)


def plain_occupancy(splats: Splats, lower: object, shape: tuple[int, ...], resolution: float) -> Array:
    """Light stopped by each cell, in float64, from the definition."""
    passing = np.ones(shape)
    for mean, turn, sigma, opacity in zip(splats.position, splats.rotation, splats.scale, splats.opacity, strict=True):
        axes = frames.to_matrix(turn.astype(float))
        offset = centres(shape, lower, resolution) - mean
        reach = 2.0 * np.linalg.norm(axes * sigma, axis=-1)
        off = np.maximum(np.abs(offset @ axes) - 0.5 * resolution * np.abs(axes).sum(0), 0.0) / sigma
        square = (off**2).sum(-1)
        counts = (np.abs(offset) <= reach + 0.5 * resolution).all(-1) & (square <= 4.0)
        passing *= 1.0 - np.where(counts, min(opacity, 0.99) * np.exp(-0.5 * square), 0.0)
    return 1.0 - passing


# ---- occupancy ---------------------------------------------------------------------------------------------------------


def test_equals_the_definition() -> None:
    rng = np.random.default_rng(5)
    turn = rng.normal(size=(60, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    splats = gaussians(rng.uniform(-0.6, 0.6, (60, 3)), np.exp(rng.normal(-3.0, 1.0, (60, 3))), rng.uniform(0, 1, 60), turn)
    ours = occupancy(splats, [-0.5] * 3, [0.5] * 3, H)
    stopped = plain_occupancy(splats, [-0.5] * 3, (10, 10, 10), H)
    clear = np.abs(stopped - 0.5) > 1e-4  # float32 and float64 may differ on the threshold itself
    assert 0.05 < ours.mean() < 0.95
    assert (ours == (stopped >= 0.5))[clear].all()


def test_a_sheet_occupies_the_cells_it_crosses() -> None:
    """Flat discs in the plane z = 0.13: the layer from 0.1 to 0.2, and only that."""
    x, y = np.meshgrid(np.arange(-1.0, 1.01, 0.05), np.arange(-1.0, 1.01, 0.05))
    splats = gaussians(np.stack([x.ravel(), y.ravel(), 0 * x.ravel() + 0.13], -1), (0.05, 0.05, 1e-4), 0.8)
    cells = occupancy(splats, (-0.8, -0.8, -0.5), (0.8, 0.8, 0.5), H)
    assert cells[:, :, 6].all()
    assert cells.sum() == cells[:, :, 6].sum()


@pytest.mark.parametrize("thickness", [0.02, 0.3])
def test_a_slab_is_within_one_cell(thickness: float) -> None:
    """Round gaussians fill |z| <= thickness: what is seen as opaque lies at its faces."""
    rng = np.random.default_rng(1)
    position = rng.uniform([-1.2, -1.2, -thickness], [1.2, 1.2, thickness], (20000, 3))
    splats = gaussians(position, 0.005, 0.9)
    geometry = splat_geometry(splats, H, (-1.0, -1.0, -1.05), (1.0, 1.0, 1.05))
    z = rng.uniform(-1.0, 1.0, 500)
    points = np.stack([rng.uniform(-0.5, 0.5, 500), rng.uniform(-0.5, 0.5, 500), z], -1)
    expected = np.abs(z) - thickness
    outside = expected > H  # between the faces of the cells that hold them, so within an edge
    assert np.abs(geometry.clearance(points) - expected)[outside].max() <= H


@pytest.mark.parametrize("resolution", [0.05, 0.1])
def test_a_sphere_is_within_one_cell(resolution: float) -> None:
    splats = sphere(0.7)
    geometry = splat_geometry(splats, resolution, [-1.0] * 3, [1.0] * 3, filled=True)
    distance = np.linalg.norm(centres(geometry.occupied.shape, geometry.lower, resolution), axis=-1) - 0.7
    # A cell whose centre is farther than half its diagonal, 0.87 edges, from the plane of a disc does not count; that plane
    # stands off the sphere by w^2 / 2 r at w = 2 sigma + 0.87 edges from the middle of the disc, sigma being 0.0215.
    apart = (0.043 + 0.87 * resolution) ** 2 / 1.4
    assert not geometry.occupied[distance > 0.87 * resolution + apart + 0.002].any()
    assert geometry.occupied[distance < 0.0].all()
    points = np.random.default_rng(2).uniform(-0.95, 0.95, (2000, 3))
    exact = np.linalg.norm(points, axis=-1) - 0.7
    found = geometry.clearance(points)
    outside = exact > resolution
    # From centre to centre of cells within one cell; the answer takes half an edge off that, to be on the safe side.
    assert np.abs(found + 0.5 * resolution - exact)[outside].max() <= resolution
    assert (found - exact)[outside].max() <= 0.01
    assert (found[exact < -resolution] < 0.0).all()


def test_nothing_slips_through_a_tilted_sheet() -> None:
    """Every straight line across a tilted opaque sheet meets an occupied cell."""
    normal = np.array([[0.4, 0.5, np.sqrt(1 - 0.41)]])
    turn = turning(normal)
    u, v = np.meshgrid(np.arange(-1.5, 1.5, 0.06), np.arange(-1.5, 1.5, 0.06))
    flat = np.stack([u.ravel(), v.ravel(), 0 * u.ravel()], -1)
    splats = gaussians(frames.rotate(turn[0], flat), (0.06, 0.06, 5e-4), 0.7, turn)
    cells = occupancy(splats, [-0.5] * 3, [0.5] * 3, 0.05)
    assert cells.any(axis=2).mean() > 0.9
    columns = (
        np.abs((centres((*cells.shape[:2], 1), [-0.5, -0.5, 0.0], 0.05)[..., 0, :2] @ normal[0, :2]) / normal[0, 2]) < 0.45
    )
    assert cells.any(axis=2)[columns].all()


def test_floaters_go_and_thin_poles_stay() -> None:
    pole = gaussians(np.stack([np.zeros(30), np.zeros(30), np.linspace(-0.9, 0.9, 30)], -1), (0.004, 0.004, 0.05), 0.9)
    floater = gaussians([0.7, 0.7, 0.0], 0.02, 0.95)
    both = merged([pole, floater])
    box = ([-1.0] * 3, [1.0] * 3, H)
    assert occupancy(both, *box)[16:18, 16:18, 9:11].any()
    kept = occupancy(both, *box, support=9)
    assert not kept[14:].any()
    assert (kept == occupancy(pole, *box)).all()
    assert kept.any(axis=(0, 1)).sum() >= 18


def test_faint_gaussians_add_up() -> None:
    """Six of opacity 0.1 stop 1 - 0.9^6 = 0.47 of the light in a cell, seven 0.52."""
    for count, expected in ((6, 0), (7, 1)):
        assert occupancy(gaussians(np.full((count, 3), 0.05), 0.005, 0.1), [0.0] * 3, [0.2] * 3, H).sum() == expected


def test_what_cannot_be_is_refused() -> None:
    splats = gaussians([0.0] * 3, 0.1, 0.9)
    with pytest.raises(AirworthyError, match="threshold"):
        occupancy(splats, [0.0] * 3, [1.0] * 3, H, threshold=1.0)
    with pytest.raises(AirworthyError, match="support"):
        occupancy(splats, [0.0] * 3, [1.0] * 3, H, support=0)
    with pytest.raises(AirworthyError, match="empty"):
        occupancy(splats, [1.0] * 3, [0.0] * 3, H)
    with pytest.raises(AirworthyError, match="bool"):
        collision_mesh(np.zeros((2, 2, 2)), [0.0] * 3, H)
    with pytest.raises(AirworthyError, match="opacity"):
        splat_geometry(gaussians([0.0] * 3, 0.1, 0.01), H)


def test_no_gaussian_or_only_a_wild_one_occupies_nothing() -> None:
    wild = gaussians([[1e30, 0.0, 0.0], [np.nan, 0.0, 0.0], [0.5, 0.5, 0.5]], [[1.0] * 3, [1.0] * 3, [np.inf] * 3], 0.9)
    for splats in (wild, gaussians(np.zeros((0, 3)), 1.0, 1.0)):
        assert not occupancy(splats, [0.0] * 3, [1.0] * 3, H).any()


# ---- mesh and distances ------------------------------------------------------------------------------------------------


def test_the_mesh_of_random_cells_is_closed_and_holds_their_volume() -> None:
    cells = np.random.default_rng(3).uniform(size=(7, 6, 5)) < 0.4
    mesh = collision_mesh(cells, (1.0, -2.0, 0.5), 0.25)
    assert is_closed(mesh)
    corner = mesh.vertices[mesh.faces].astype(float)
    volume = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])).sum() / 6.0
    assert volume == pytest.approx(cells.sum() * 0.25**3, rel=1e-5)  # vertices are multiples of 0.25: exact but for the sum
    assert len(collision_mesh(np.zeros((2, 2, 2), bool), [0.0] * 3, 1.0).faces) == 0


def test_mesh_in_a_batch_and_field_agree() -> None:
    geometry = splat_geometry(sphere(0.6), 0.08, [-1.0] * 3, [1.0] * 3, filled=True)
    batch = GeometryBatch([geometry.mesh], [Placement.of(shape=[0], position=[[0.0, 0.0, 0.0]])])
    points = np.random.default_rng(4).uniform(-1.2, 1.2, (500, 3))
    exact = clearance(batch, points, env=np.zeros(500, int)).distance
    field = geometry.clearance(points)
    inside = (np.abs(points) < 0.95).all(-1)
    # The field measures between centres of cells: up to half a diagonal, 0.87 edges, from the distance of faces.
    assert np.abs(field - exact)[inside].max() <= 0.08
    assert (field[~inside] <= exact[~inside] + 0.08).all()
    assert (field[~inside] >= 0.0).all()


def test_clearance_beyond_the_grid() -> None:
    """One cell at the origin of a grid of one: distances far away are those to its centre less half an edge."""
    geometry = SplatGeometry(np.ones((1, 1, 1), bool), np.zeros(3), 0.2)
    assert geometry.clearance([[3.1, 0.1, 0.1]])[0] == pytest.approx(2.9)
    empty = SplatGeometry(np.zeros((2, 2, 2), bool), np.zeros(3), 0.2)
    assert np.isinf(empty.clearance([[0.1, 0.1, 0.1], [9.0, 0.0, 0.0]])).all()


def test_one_call_for_one_question() -> None:
    assert splat_clearance(sphere(0.5), [[1.5, 0.0, 0.0]], 0.05)[0] == pytest.approx(1.0, abs=0.07)  # a cell and a third
