"""The hall of splats: what is shipped, that it stands on the meshes it was made of, and the statues that are put into it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch
from airworthy.scenes.catalogue import scene, scene_names
from airworthy.scenes.checking import check_scene, description
from airworthy.scenes.generators.halls import hall, hall_statues, hall_with_statues, mid_gate
from airworthy.scenes.generators.halls.splat_hall import FLOOR, STATUES, hall_recipe, hall_splats
from airworthy.trajectories import course

FOLDER = files("airworthy.scenes").joinpath("assets", "hall")


def flown(scene_: object) -> np.ndarray:
    """Clearance along the course, from everything but the floor and its mats [m]."""
    path = course("robustness").trajectory()
    points = path.sample(np.linspace(0.0, path.duration, 601)).position
    batch = SceneBatch(scene_without_ground(scene_))
    return clearance(batch.geometry, points, np.zeros(len(points), np.int32), 2.0).distance


def scene_without_ground(one):
    from dataclasses import replace

    return replace(one, instances=tuple(item for item in one.instances if item.semantic != "ground"))


def test_the_shipped_file_is_the_one_that_was_measured() -> None:
    data, recipe = FOLDER.joinpath("hall.spz").read_bytes(), hall_recipe()
    assert len(data) < 8_000_000
    assert sha256(data) == recipe["sha256"]
    measured = recipe["measured"]
    assert measured["bytes"] == len(data)
    assert measured["gaussians"] == len(hall_splats())
    # What the place promises: see docs/concepts/hall.md.
    assert min(measured["psnr_320"], measured["psnr_640"]) >= 30.0
    assert max(measured["plane_depth_median_m_320"], measured["plane_depth_median_m_640"]) <= 0.02
    assert recipe["licence"] == "Apache-2.0"


def test_hall_is_mid_gate_under_splats() -> None:
    """Same things at the same places; what was seen is covered now, so depth, labels and contact stay those of the meshes."""
    found, meshes = hall(), mid_gate()
    assert found.name == "hall"
    assert found.courses == ("robustness",)
    for name in ("shapes", "lights", "bounds", "start", "spawn", "gates", "semantics"):
        assert getattr(found, name) == getattr(meshes, name) or name == "shapes"
    assert found.shapes.keys() == meshes.shapes.keys()
    for ours, theirs in zip(found.instances, meshes.instances, strict=True):
        assert (ours.shape, ours.position, ours.attitude, ours.collide) == (
            theirs.shape,
            theirs.position,
            theirs.attitude,
            theirs.collide,
        )
        assert ours.covered == theirs.visible
        assert not ours.visible
    assert found.clouds["hall"] is hall().clouds["hall"]  # read once
    assert "hall" in scene_names()
    assert "splats" in description("hall")
    assert not [line for line in check_scene(found) if "cloud" in line or "splat" in line]


def _distances() -> tuple[np.ndarray, np.ndarray]:
    """Of some gaussians inside the hall to its meshes [m], and which are inside."""
    splats, place = hall_splats(), hall()
    low, high = np.array(place.bounds.lower) - 0.1, np.array(place.bounds.upper) + 0.1  # walls lie on the bounds
    inside = ((splats.position > low) & (splats.position < high)).all(axis=1)
    some = splats.position[inside][::37].astype(np.float64)
    batch = SceneBatch(place)
    far = clearance(batch.geometry, some, np.zeros(len(some), np.int32), 1.0).distance
    return far, inside


def test_splats_lie_within_a_centimetre() -> None:
    far, _ = _distances()
    assert np.median(np.abs(far)) < 0.01


def test_splats_lie_on_the_meshes() -> None:
    """Metric: of the gaussians inside the hall, the means are on surfaces; the sky's are far outside."""
    far, inside = _distances()
    # Training moves gaussians by about a centimetre from the plane they lay in (0.96 cm in the median), which the file rounds
    # to less than a millimetre. A scale 1 % off would be 4 cm over half the hall's width.
    assert np.median(np.abs(far)) < 0.015
    assert np.quantile(np.abs(far), 0.95) < 0.05
    assert inside.mean() > 0.8  # windows, lawn and sky are beyond


def test_other_configurations_are_refused() -> None:
    with pytest.raises(AirworthyError, match=r"one configuration, 'hall'.*'mid_gate:3@0' is such a hall"):
        scene("hall:3")
    with pytest.raises(AirworthyError, match="seed 2"):
        scene("hall@2")
    with pytest.raises(AirworthyError, match="one place"):
        hall_statues(1)


def test_statues_need_their_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    with pytest.raises(AirworthyError, match=r"AIRWORTHY_DATA is unset: set it .*or use the scene 'hall'"):
        scene("hall_statues")
    with pytest.raises(AssetError, match=r"needs 'statues_sog/angel-kneeling.sog' in .* which is not there"):
        hall_with_statues(tmp_path)


def test_statues_stand_and_leave_the_course_free(data_dir: Path) -> None:
    place = hall_with_statues(data_dir / "splats")
    assert set(place.clouds) == {"hall", "sign", "flowers", *(one.name for one in STATUES)}
    assert next(splat.name for splat in place.splats) == "hall"
    for one in STATUES:
        mesh = place.shapes[f"{one.name}/surface"]
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        assert low[2] == pytest.approx(FLOOR, abs=1e-6)
        assert 1.6 < high[2] < 2.1  # "2 m tall"
        assert np.abs(0.5 * (low + high)[:2] - one.position).max() < 0.25  # wings and arms reach to one side
    # The course itself passes the ladder's legs and the pillars at 0.35 m or more (test_halls); statues take nothing away.
    assert flown(place).min() >= 0.3
    assert flown(place).min() == pytest.approx(flown(hall()).min(), abs=1e-6)


def test_the_sign_is_a_gate(data_dir: Path) -> None:
    """One flies through between its posts and under its board, and hits these."""
    place = hall_with_statues(data_dir / "splats")
    corners = np.array(place.gates[-1].corners)
    assert place.gates[-1].name == "sign"
    middle, along = corners.mean(axis=0), corners[1] - corners[0]
    tall = corners[0, 2] - corners[3, 2]
    batch = SceneBatch(scene_without_ground(place))
    spots = [middle, middle + 0.56 * along, middle - 0.56 * along, middle + np.array([0.0, 0.0, 0.8 * tall])]
    found = clearance(batch.geometry, np.array(spots), np.zeros(4, np.int32), 2.0).distance
    assert found[0] > 0.3
    assert (found[1:] < 0.06).all()  # two cells: in, or just at, posts and board
