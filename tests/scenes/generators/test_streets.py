"""Streets: what stands in them has its size, and the places are sound and functions of their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.scenes import findings, scene, scene_digest
from airworthy.scenes.checking import point_clearance
from airworthy.scenes.extent import triangle_count
from airworthy.scenes.record import SpotLight
from airworthy.scenes.streets.cars import CAR_SURFACES, box_van, car_forms, car_patches
from airworthy.scenes.streets.furniture import FURNITURE, FURNITURE_SURFACES, furniture, wire
from airworthy.scenes.streets.ground import ASPHALT, KERB, PAINT, StreetGround


@pytest.mark.parametrize("form", car_forms())
def test_cars_have_the_size_of_cars(form: str) -> None:
    mesh = car_patches(form, 3).mesh()
    low, high = mesh.vertices.min(0), mesh.vertices.max(0)
    length, width, height = high - low
    assert 3.5 < length < 5.2
    assert 1.7 < width < 2.3  # with mirrors
    assert 1.4 < height < 2.1
    assert abs(low[2]) < 0.01  # wheels touch the ground
    # The left side mirrors the right.
    np.testing.assert_allclose(low[1], -high[1], atol=1e-6)
    assert mesh.face_material is not None
    assert set(np.unique(mesh.face_material)) == set(range(len(CAR_SURFACES)))
    assert len(mesh.faces) < 3000


def test_a_van_fills_its_box_within_five_centimetres() -> None:
    for size in ((4.0, 1.8, 1.6), (3.2, 1.5, 1.9)):
        points = box_van(size, 1, 2).mesh().vertices.astype(float)
        half = 0.5 * np.array(size)
        q = np.abs(points - np.array([0.0, 0.0, half[2]])) - half
        distance = np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(1), 0.0)
        assert np.abs(distance).max() < 0.05


@pytest.mark.parametrize("name", sorted(FURNITURE))
def test_furniture_stands_on_the_ground(name: str) -> None:
    mesh = furniture(name).mesh()
    assert abs(mesh.vertices[:, 2].min()) < 0.07  # a container stands on wheels, its body 6 cm over the ground
    assert 0.4 < mesh.vertices[:, 2].max() < 8.0
    assert mesh.face_material is not None
    assert mesh.face_material.max() < len(FURNITURE_SURFACES)


def test_a_wire_hangs_by_its_sag() -> None:
    points = wire(np.array([0.0, 0.0, 7.0]), np.array([20.0, 0.0, 7.0]), 0.5).mesh().vertices
    assert points[:, 2].min() == pytest.approx(6.5 - 0.009, abs=1e-3)
    assert points[:, 0].min() == pytest.approx(0.0, abs=1e-2)


def test_a_pavement_covers_its_rectangle_and_stands_over_the_road() -> None:
    ground = StreetGround(0.0, 0.12)
    ground.area((-5.0, -5.0, 5.0, 5.0), ASPHALT, 0.0)
    ground.raised((0.0, 0.0, 4.0, 3.0))
    ground.dashes((-4.0, -2.0), (4.0, -2.0), 0.1, 1.0, 1.0)
    mesh = ground.patches.mesh()
    assert mesh.face_material is not None
    corner = mesh.vertices[mesh.faces].astype(float)
    area = 0.5 * np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    top = (np.abs(corner[..., 2] - 0.12) < 1e-6).all(1)
    # The kerb's stones and the slabs within them, each once: no gap and no overlap.
    assert area[top, 2].sum() == pytest.approx(12.0, rel=1e-5)
    upright = (mesh.face_material == KERB) & ~top
    assert np.linalg.norm(area[upright], axis=1).sum() == pytest.approx(2.0 * (4.0 + 3.0) * 0.12, rel=1e-5)
    assert area[mesh.face_material == PAINT, 2].sum() == pytest.approx(4 * 0.1, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["street:0", "street:3@2"])
def test_a_street_is_sound_and_a_function_of_its_name(name: str) -> None:
    place = scene(name)
    assert not [item for item in findings(place) if item.fatal]
    assert scene_digest(scene(name)) == scene_digest(place)
    assert all(item.collide and item.visible for item in place.instances)
    # What is seen and not hit are people, where their capsules are hit, and trees from afar and their shadows.
    assert {item.attached for item in place.looks if item.semantic == "person"} == {actor.name for actor in place.actors}
    rest = [item for item in place.looks if not item.attached]
    assert all(item.semantic == "tree" and (item.shadow == "only" or any(item.footprint)) for item in rest)
    assert place.facts["houses"] >= 20
    assert place.facts["cars"] >= 4
    lamps = [light for light in place.lights if isinstance(light, SpotLight)]
    assert len(lamps) >= 8
    assert all(lamp.from_dusk and lamp.radius > 0.0 for lamp in lamps)
    # Those on poles: what is blocked by a lamp's own housing is grain on every wall that it lights from aside.
    poles = [lamp for lamp in lamps if lamp.radius > 0.1]
    assert len(poles) >= 4
    assert (point_clearance(place, np.array([lamp.position for lamp in poles])) > [lamp.radius for lamp in poles]).all()
    # Of one level of detail: the looks are the same trees once more.
    unique, seen = triangle_count(replace(place, looks=()))
    assert seen < 900_000
    assert unique < 300_000
    assert {"building", "vehicle", "ground", "pillar", "object"} <= {item.semantic for item in place.instances}
