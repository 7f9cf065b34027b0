"""Occupancy grids against closed forms, samples, and the clearance."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Capsule, Cylinder, GeometryBatch, Mesh, Placement, Shape, Sphere, twins
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize

SOUP = Mesh(np.random.default_rng(0).normal(size=(30, 3)), np.arange(30).reshape(-1, 3))
SHAPES: list[Shape] = [Box((0.5, 0.3, 0.8)), Sphere(0.6), Cylinder(0.4, 0.7), Capsule(0.3, 0.5), SOUP]


def world(seed: int) -> Placement:
    rng = np.random.default_rng(seed)
    return Placement.of(np.arange(10) % 5, rng.uniform(-1.5, 1.5, (10, 3)), rng.normal(size=(10, 4)), rng.uniform(0.4, 1.0, 10))


def cube_mesh() -> Mesh:
    corners = np.array(list(np.ndindex(2, 2, 2)), float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Mesh(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def test_a_box_on_cell_borders_fills_exactly_its_cells() -> None:
    expected = np.zeros((8, 8, 8), bool)
    expected[2:6, 2:6, 2:6] = True
    for shape, where in ((Box((0.2, 0.2, 0.2)), 0.0), (cube_mesh(), -0.2)):
        scale = 1.0 if isinstance(shape, Box) else 0.4
        batch = GeometryBatch([shape], [Placement.of(0, (where, where, where), scale=scale)])
        np.testing.assert_array_equal(voxelize(batch, 0, (-0.4, -0.4, -0.4), (0.4, 0.4, 0.4), 0.1), expected)


def test_a_sheet_between_two_cells_belongs_to_the_upper_one() -> None:
    sheet = Mesh(np.array([[-9.0, -9, 0], [9, -9, 0], [0, 9, 0]]), np.array([[0, 1, 2]]))
    cells = voxelize(GeometryBatch([sheet], [Placement.of(0)]), 0, (-1, -1, -1), (1, 1, 1), 0.25)
    np.testing.assert_array_equal(cells.any((0, 1)), np.arange(8) == 4)
    assert cells[:, :, 4].all()


@pytest.mark.parametrize("seed", range(3))
def test_samples_on_and_in_everything_lie_in_occupied_cells(seed: int) -> None:
    placement, rng = world(seed), np.random.default_rng(seed)
    batch = GeometryBatch(SHAPES, [placement])
    cells = voxelize(batch, 0, (-3, -3, -3), (3, 3, 3), 0.15)
    points = rng.uniform(-3, 3, (20_000, 3))
    inside = clearance(batch, points, env=0).distance < 0
    samples = [points[inside]]
    triangles = twins.triangles_of(SOUP)
    weights = rng.dirichlet(np.ones(3), (2000, len(triangles)))
    on = np.einsum("nmk,mkd->nmd", weights, triangles).reshape(-1, 3)
    for k in np.flatnonzero(placement.shape == 4):
        samples.append(on @ twins.rotation(placement.attitude[k]).T * placement.scale[k] + placement.position[k])
    at = (np.concatenate(samples) + 3) / 0.15
    # Left out: what reaches less than a thousandth of a cell into its cell.
    safe = (np.abs(at - np.rint(at)) > 2e-3).all(1) & (at > 0).all(1) & (at < 40).all(1)
    assert cells[tuple(at[safe].astype(int).T)].all()


@pytest.mark.parametrize("seed", range(3))
def test_no_cell_is_occupied_by_something_out_of_its_reach(seed: int) -> None:
    batch = GeometryBatch(SHAPES, [world(seed)])
    cells = voxelize(batch, 0, (-3, -3, -3), (3, 3, 3), 0.15)
    centres = -3 + 0.15 * (np.argwhere(np.ones_like(cells)) + 0.5)
    distance = clearance(batch, centres, env=0).distance.reshape(cells.shape)
    assert not cells[distance > 0.075 * np.sqrt(3) + 1e-3].any()
    assert cells[distance < 0.0748].all()
    # Between the two: some of the samples of a cell are inside something, or at least near it.
    between = np.argwhere(cells & (distance > 0.0748))
    offsets = 0.15 * (np.stack(np.meshgrid(*3 * [np.linspace(0, 1, 6)], indexing="ij"), -1).reshape(-1, 3))
    samples = -3 + 0.15 * between[:, None] + offsets
    near = clearance(batch, samples.reshape(-1, 3), env=0).distance.reshape(len(between), -1).min(1)
    # The nearest of samples 0.03 m apart is at most 0.026 m from any point of the cell.
    assert near.max() <= 0.0265


def test_a_radius_grows_by_the_exact_distance_of_the_centres() -> None:
    batch = GeometryBatch(SHAPES, [world(5)])
    bare, grown = (voxelize(batch, 0, (-3, -3, -3), (3, 3, 3), 0.15, r) for r in (0.0, 0.4))
    centres = -3 + 0.15 * (np.argwhere(np.ones_like(bare)) + 0.5)
    near = clearance(batch, centres, env=0).distance.reshape(bare.shape) <= 0.4
    np.testing.assert_array_equal(grown, bare | near)


def test_environments_layouts_and_switches_are_respected() -> None:
    layouts = [Placement.of(1, (0.0, 0, 0)), Placement.of(1, (0.0, 0, 0), collide=False), Placement.empty()]
    dynamic = [Placement.of([0], [[2.0, 0, 0]], visible=False)] * 3
    batch = GeometryBatch(SHAPES, layouts, dynamic_instances=dynamic)
    box = ((-3.0, -1, -1), (3.0, 1, 1), 0.1)
    all_three = voxelize(batch, [0, 1, 2], *box)
    assert all_three.shape == (3, 60, 20, 20)
    for k in range(3):
        np.testing.assert_array_equal(voxelize(batch, k, *box), all_three[k])
    assert all_three[:, 49].any()
    np.testing.assert_array_equal(all_three[:, 30].any((1, 2)), [True, False, False])
    assert not voxelize(batch, 2, *box, ignore=batch.dynamic_start).any()


@pytest.mark.parametrize(
    ("box", "said"),
    [
        (((0, 0, 0), (1, 1, 0), 0.1), "is empty or not finite"),
        (((0, 0, 0), (1, 1, 1), 0.0), "`resolution` is 0.0"),
        (((0, 0, 0), (1e3, 1e3, 1e3), 0.1), "10000 x 10000 x 10000 cells exceed"),
        (((0, 0, 0), (1, 1, 1), 0.1, -1.0), "`radius` is -1.0"),
    ],
)
def test_wrong_boxes_get_one_sentence(box: tuple[object, ...], said: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        voxelize(GeometryBatch(SHAPES, [world(0)]), 0, *box)  # type: ignore[arg-type]
    assert said in str(caught.value)
