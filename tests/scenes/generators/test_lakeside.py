"""The lake among wooded hills: water lies in it and nowhere else, and it is hit as it is seen."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.geometry import RayTable, cast
from airworthy.scenes import Material, Scene, SceneBatch, scene, water_material, water_names
from airworthy.scenes.checking import check_scene, findings
from airworthy.scenes.generators.lakeside import Basin
from airworthy.scenes.generators.woodland import HALF, RIM
from airworthy.scenes.materials.water import mean_square_slope


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_land_stands_out_of_the_water_and_the_lake_is_one(seed: int) -> None:
    basin = Basin(np.random.default_rng(seed), 0.85, (24.0, 16.0), 2.5)
    x, y = (np.arange(-h - RIM, h + RIM, 1.0) for h in HALF)
    points = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    height, out = basin(points), basin.reach(points)
    assert (height[out > 1.07] > 0.1).all()
    assert (height[out < 0.9] < 0.0).all()
    assert -2.9 < height.min() < -2.0
    # No water behind the land that hides the sheet's rim.
    assert (np.abs(points[out <= 1.07]) < 1.3 * basin.radii).all()
    dry = basin.dry(points)
    assert 0.5 < len(dry) / len(points) < 0.95
    assert (basin(dry) > 0.0).all()
    assert len(basin.dry(points, 0.4)) > len(dry)


def test_water_has_kinds_and_a_wind() -> None:
    assert water_names() == ["pure", "lake", "pond", "flood"]
    green = [water_material(name).attenuation[1] for name in water_names()]
    assert green == sorted(green)
    assert water_material("pure").attenuation == (0.264, 0.0565, 0.0098)
    assert water_material("lake").wave_slope == 0.0
    assert water_material("lake", 10.0).wave_slope == pytest.approx(np.sqrt(0.0542))
    assert mean_square_slope(0.0) == 0.003
    for wind in (-1.0, 15.0, float("nan")):
        with pytest.raises(AirworthyError, match="0 to 14 m/s"):
            water_material("lake", wind)
    with pytest.raises(UnknownNameError, match="lake"):
        water_material("lak")


def test_numbers_of_water_that_change_nothing_are_told() -> None:
    materials = {
        "shut": Material(attenuation=(1.0, 1.0, 1.0)),
        "thin": Material(transmission=1.0, wave_slope=0.1),
        "pale": Material(scattered=(0.1, 0.1, 0.1)),
        "lake": water_material("lake", 2.0),
        "pane": Material(transmission=0.9),
    }
    told = [item for item in findings(Scene("few", materials=materials)) if "nothing shows" in item]
    assert [sum(f"'{name}'" in text for text in told) for name in materials] == [1, 1, 1, 0, 0]


@pytest.mark.slow
def test_a_lakeside_is_sound_and_its_water_is_hit() -> None:
    place = scene("lakeside:1")
    assert not [item for item in findings(place) if item.fatal], check_scene(place)
    assert place.facts["trees"] > 80
    assert {item.semantic for item in place.instances} == {"ground", "tree", "water"}
    assert all(item.collide for item in place.instances)
    assert scene("lakeside:1").looks == place.looks
    batch = SceneBatch(place)
    down = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    found = cast(batch.geometry, down, [[0.0, 0.0, 1.5]], [[0.0, 0.0, 0.0, 1.0]], np.zeros(1, np.int32), ("range", "instance"))
    assert float(found["range"][0, 0, 0]) == pytest.approx(1.5, abs=1e-4)
    assert place.instances[int(found["instance"][0, 0, 0])].semantic == "water"


def test_a_lake_is_a_function_of_what_draws_it() -> None:
    """Heights as they were when places were first shown: whoever changes them changes every place."""
    basin = Basin(np.random.default_rng(3), 0.6, (22.0, 15.0), 2.0)
    points = np.array([[0.0, 0.0], [10.0, 5.0], [21.0, -3.0], [-30.0, 20.0], [5.0, 16.0]])
    np.testing.assert_allclose(basin(points), [-2.03235089, -1.17764867, -0.14630646, 1.2318222, 0.88017064], atol=1e-7)
    np.testing.assert_allclose(basin.reach(points), [0.0, 0.63430959, 0.9563239, 1.76951279, 1.03430377], atol=1e-7)
