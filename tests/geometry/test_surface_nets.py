"""The surface on which a field is zero: where it lies, that it is closed, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, surface_nets
from airworthy.geometry.query_arguments import is_closed

CELL = 0.1


def ball(radius: float, middle: tuple[float, float, float] = (0.02, -0.03, 0.01)) -> Array:
    """Signed distances from a ball, at the middles of 24^3 cells of 0.1 m about the origin."""
    at = (np.stack(np.indices((24, 24, 24)), -1) + 0.5) * CELL - 1.2
    return np.asarray(np.linalg.norm(at - np.array(middle), axis=-1) - radius)


def volume(mesh: Mesh) -> float:
    """Of a closed mesh, positive where it is counter-clockwise seen from outside."""
    a, b, c = mesh.vertices[mesh.faces].astype(np.float64).transpose(1, 0, 2)
    return float((np.cross(a, b) * c).sum() / 6.0)


def test_a_ball_lies_where_its_distances_say() -> None:
    mesh = surface_nets(ball(0.83), (-1.2, -1.2, -1.2), CELL)
    radius = np.linalg.norm(mesh.vertices - np.array([0.02, -0.03, 0.01]), axis=1)
    # A vertex is a mean of crossings of a curved surface: up to the sagitta of a cell's diagonal inside, 3 h^2 / (8 r), 4.5 mm,
    # of crossings that linear interpolation finds to h^2 / (8 r) = 1.5 mm.
    assert np.abs(radius - 0.83).max() < 0.0061
    assert volume(mesh) == pytest.approx(4.0 / 3.0 * np.pi * 0.83**3, rel=0.02)
    assert is_closed(mesh)


def test_a_plane_between_cells_is_exact() -> None:
    field = np.broadcast_to(((np.arange(6) + 0.5) * CELL - 0.237)[:, None, None], (6, 5, 4))
    mesh = surface_nets(field, (0.0, 0.0, 0.0), CELL)
    # Negative below: closed there by the end of the grid. Away from the edges all of the upper side lies at 0.237.
    inner = mesh.vertices[(mesh.vertices[:, 0] > 0.15) & (np.abs(mesh.vertices[:, 1:] - [0.25, 0.2]) < [0.15, 0.1]).all(axis=1)]
    assert len(inner)
    assert np.abs(inner[:, 0] - 0.237).max() < 1e-6


def test_any_field_gives_a_closed_surface() -> None:
    for seed in range(5):
        mesh = surface_nets(np.random.default_rng(seed).normal(size=(9, 10, 11)), (1.0, 2.0, 3.0), CELL)
        assert is_closed(mesh)
        assert volume(mesh) > 0.0


def test_zeros_and_nothing() -> None:
    assert is_closed(surface_nets(np.where(ball(0.5) < 0.0, -1.0, 0.0), (0.0, 0.0, 0.0), CELL))
    assert not len(surface_nets(np.ones((3, 3, 3)), (0.0, 0.0, 0.0), CELL).faces)


@pytest.mark.parametrize("field", [np.ones((3, 3)), np.full((3, 3, 3), np.nan), np.ones((0, 3, 3))])
def test_what_is_no_grid_is_refused(field: Array) -> None:
    with pytest.raises(AirworthyError, match="field"):
        surface_nets(field, (0.0, 0.0, 0.0), CELL)


def test_cells_without_size_are_refused() -> None:
    with pytest.raises(AirworthyError, match="resolution"):
        surface_nets(np.ones((3, 3, 3)), (0.0, 0.0, 0.0), 0.0)
