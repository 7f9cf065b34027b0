"""The figures of the ray engine, the distance fields and contact are as they must be, and each kind of check can fail."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box, Capsule, Cylinder, Sphere
from airworthy.simulation import Simulator
from airworthy.verification import contact, geometry, geometry_figures
from airworthy.verification.contact import contact_figures
from airworthy.verification.geometry import brute_force_figures, embree_figures, silhouette, solid_range, triangle_hits


@pytest.mark.slow
def test_all_are_as_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    figures = list(geometry_figures())
    assert len(figures) == 21 + 2 * (find_spec("embreex") is not None)
    assert [f for f in figures if not f.passed] == []


@pytest.mark.skipif(find_spec("embreex") is None, reason="embreex is not installed")
@pytest.mark.parametrize(
    ("meshes", "scans"),
    [(9, ("ggg/owl.obj", "egyptian_cat/cat.glb")), pytest.param(40, geometry.SCANS, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_scans_against_embree(meshes: int, scans: tuple[str, ...], data_dir: Path) -> None:
    figures = list(embree_figures(data_dir, meshes, scans))
    assert len(figures) == 4
    assert [f for f in figures if not f.passed] == []


def shifted(channel: str, by: Any) -> Callable[..., dict[str, Any]]:
    """`cast` with an error in one channel."""

    def wrong(*args: Any, **more: Any) -> dict[str, Any]:
        found = geometry_cast(*args, **more)
        found[channel] = found[channel] + by
        return found

    return wrong


geometry_cast = geometry.cast


@pytest.mark.parametrize(("channel", "by", "failing"), [("face", 1, 0), ("depth", 2e-4, 1), ("point_world", 1e-4, 2)])
def test_errors_of_the_engine_show(monkeypatch: pytest.MonkeyPatch, channel: str, by: Any, failing: int) -> None:
    monkeypatch.setattr(geometry, "cast", shifted(channel, by))
    *_, figure = islice(brute_force_figures(4), failing + 1)
    assert not figure.passed


def test_an_engine_that_forgets_dynamic_instances_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry.GeometryBatch, "set_dynamic_instances", lambda *args, **more: None)
    assert not geometry._moved().passed


def test_distances_that_are_not_exact_show(monkeypatch: pytest.MonkeyPatch) -> None:
    class Field:
        def __init__(self, grid: Any) -> None:
            self.values = np.zeros(grid.shape, np.float32)

    monkeypatch.setattr(geometry, "distance_field", lambda grid, resolution: Field(grid))
    assert not geometry._distance_field().passed


def test_passing_through_and_gaining_energy_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(items: Any, count: int, place: Any, contact_mode: Any) -> Simulator:
        simulator = build(items, count, place, contact_mode)
        monkeypatch.setattr(simulator, "step", lambda *args: None)
        return simulator

    build = contact._simulator
    monkeypatch.setattr(contact, "_simulator", without)
    # Nothing moves, whatever the vehicle: the catalogue's other ones would show the same.
    monkeypatch.setattr(contact, "vehicle_names", lambda: ("carl", "base_octarotor"))
    rising = iter(range(10**6))
    monkeypatch.setattr(contact, "_energy", lambda items, simulator: np.full(len(items), 1.0 + next(rising)))
    through, gain, *_, bounced = contact_figures(40)
    assert through.measured == 40
    assert not through.passed
    assert not gain.passed
    assert not bounced.passed


def test_the_references_are_right_where_it_can_be_said_by_hand() -> None:
    start, along = np.array([[0.0, 0.0, -5.0], [0.5, 0.0, -5.0], [3.0, 0.0, -5.0]]), np.tile([0.0, 0.0, 1.0], (3, 1))
    inf = np.inf
    assert solid_range(Sphere(1.0), start, along) == pytest.approx([4.0, 5.0 - np.sqrt(0.75), inf])
    assert solid_range(Box((1.0, 1.0, 2.0)), start, along) == pytest.approx([3.0, 3.0, inf])
    assert solid_range(Cylinder(1.0, 2.0), start, along) == pytest.approx([3.0, 3.0, inf])
    assert solid_range(Capsule(1.0, 2.0), start, along) == pytest.approx([2.0, 3.0 - np.sqrt(0.75), inf])
    across = np.array([[0.0, 1.0, 0.0]])
    assert solid_range(Cylinder(1.0, 2.0), np.array([[0.0, -4.0, 1.9]]), across) == pytest.approx([3.0])
    assert solid_range(Capsule(1.0, 2.0), np.array([[0.0, -4.0, 2.5]]), across) == pytest.approx([4.0 - np.sqrt(0.75)])
    corners = np.array([[[-1, -1, 0], [2, -1, 0], [-1, 2, 0]], [[-1, -1, -1], [2, -1, -1], [-1, 2, -1]]], float)
    distance, face = triangle_hits(start, along, corners)
    assert distance == pytest.approx([4.0, 4.0, inf])
    assert face.tolist() == [1, 1, -1]


def test_the_silhouette_is_one_pixel_wide() -> None:
    labels = np.zeros((1, 7, 9), int)
    labels[0, :, 5:] = 1
    band = silhouette(labels)[0, 1:-1]
    assert band.tolist() == [[True, False, False, False, True, True, False, False, True]] * 5


def test_images_that_depend_on_the_number_of_their_environment_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """As made by a stand-in of the engine, first from where the camera is, then from the environment's number alone."""

    def seen(batch: Any, table: Any, position: Any, attitude: Any, channels: Any) -> dict[str, Any]:
        return dict.fromkeys(channels, np.asarray(position).sum(axis=1, keepdims=True))

    def numbered(batch: Any, table: Any, position: Any, attitude: Any, channels: Any) -> dict[str, Any]:
        return dict.fromkeys(channels, np.arange(len(position), dtype=float)[:, None])

    monkeypatch.setattr(geometry, "cast", seen)
    assert [figure.measured for figure in geometry._order()] == [0, 0]
    monkeypatch.setattr(geometry, "cast", numbered)
    other, alone = geometry._order()
    assert other.measured > 40
    assert alone.measured == 9  # of every fifth of 48, all but the first
