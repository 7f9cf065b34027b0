"""The committed catalogue against the published files it was made from (needs AIRWORTHY_DATA)."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.vehicles import Vehicle, control_effectiveness, import_urdf, inertia_matrix, vehicle
from vehicle_sources import ROTORS, catalogue_texts, rotors_texts
from vehicle_sources.aerial_gym import RIGID


@pytest.fixture(scope="module")
def robots(data_dir: Path) -> dict[str, Any]:
    return json.loads((data_dir / "aerial_gym" / "robots.json").read_text())["robots"]


def imported(data_dir: Path, robots: dict[str, Any], name: str) -> Vehicle:
    return import_urdf(data_dir / "aerial_gym" / robots[name]["urdf_copy"], ROTORS / f"{name}.toml")


@pytest.mark.parametrize("name", RIGID)
def test_the_urdf_import_equals_the_catalogue(name: str, data_dir: Path, robots: dict[str, Any]) -> None:
    fresh, kept = imported(data_dir, robots, name), vehicle(name)
    for item in fields(Vehicle):
        assert getattr(fresh, item.name) == getattr(kept, item.name), item.name


@pytest.mark.parametrize("name", RIGID)
def test_mass_centre_and_inertia_equal_an_independent_computation(name: str, data_dir: Path, robots: dict[str, Any]) -> None:
    airframe, derived = imported(data_dir, robots, name), robots[name]["derived"]
    # The reference prints eight significant digits.
    np.testing.assert_allclose(airframe.mass, derived["total_mass"], rtol=1e-7)
    np.testing.assert_allclose(airframe.center_of_mass, derived["com_in_root_neutral"], atol=1e-8)
    np.testing.assert_allclose(inertia_matrix(airframe), derived["inertia_about_com_neutral"], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", RIGID)
def test_effectiveness_equals_an_independent_computation(name: str, data_dir: Path, robots: dict[str, Any]) -> None:
    expected = robots[name]["derived"]["effectiveness_from_urdf"]
    matrix = control_effectiveness(imported(data_dir, robots, name), "root")
    np.testing.assert_allclose(matrix, expected["matrix"], atol=1e-6)
    assert np.linalg.matrix_rank(matrix, tol=1e-6) == expected["rank"]


@pytest.mark.parametrize("name", ["base_quadrotor", "tinyprop", "base_random"])
def test_effectiveness_equals_the_shipped_matrix(name: str, data_dir: Path, robots: dict[str, Any]) -> None:
    shipped = robots[name]["config"]["control_allocator_config"]["allocation_matrix"]
    np.testing.assert_allclose(control_effectiveness(imported(data_dir, robots, name), "root"), shipped, atol=1e-6)


def test_the_catalogue_is_what_its_builder_writes(data_dir: Path) -> None:
    for path, text in {**rotors_texts(data_dir), **catalogue_texts(data_dir)}.items():
        assert path.read_text() == text, f"{path.name}: run python tools/build_catalogue.py"


def test_articulated_urdfs_import_in_their_neutral_pose(data_dir: Path, robots: dict[str, Any], tmp_path: Path) -> None:
    # With joints held, by a TOML of a rigid vehicle: same total mass and centre as computed independently.
    text = (ROTORS / "morphy_stiff.toml").read_text()
    (tmp_path / "morphy.toml").write_text(text)
    airframe = import_urdf(data_dir / "aerial_gym" / robots["morphy"]["urdf_copy"], tmp_path / "morphy.toml", "frozen")
    assert airframe.extra["movable_joints_frozen"] == robots["morphy"]["derived"]["n_movable_joints"]
    np.testing.assert_allclose(airframe.mass, robots["morphy"]["derived"]["total_mass"])
