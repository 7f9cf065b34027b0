"""What planners may look at: the map view, and the vehicle in the mission."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from tests.planners.mapping_cases import CAMERA, EVERY, centres, looking, mission, wall_image

from airworthy.core.errors import AirworthyError
from airworthy.planners.common.interface import Airframes, Maps, MapSettings, MapView, Mission, Motion
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.planners.common.tracking_faults import Alone
from airworthy.planners.mapping import FREE, OCCUPIED, UNKNOWN, LocalMaps, maps_of_cells
from airworthy.planners.straight import StraightFlight
from airworthy.vehicles import vehicle


def mapped_hall() -> LocalMaps:
    """Two flights in boxes of different size; the second has looked at walls nine times, and wrapped its window."""
    maps = LocalMaps(EVERY, mission([(-6, -6, 0), (-20, -5, 0)], [(6, 6, 3), (20, 5, 4)]), CAMERA)
    for k, x in enumerate((-15.0, -3.0, *[9.3] * 7)):
        maps.update([1], wall_image(1), [(x, 0.2, 1.5)], [looking(0.1)], time=[0.5 * k])
    return maps


def test_a_view_is_what_the_maps_say_cell_by_cell() -> None:
    maps = mapped_hall()
    view = maps.view(1)
    asked = centres(maps, 1)
    np.testing.assert_array_equal(view.cells, maps.state([1], asked.reshape(1, -1, 3)).reshape(view.shape))
    np.testing.assert_array_equal(view.inflated, maps.occupied([1], asked.reshape(1, -1, 3)).reshape(view.shape))
    np.testing.assert_allclose(view.centers(np.moveaxis(np.indices(view.shape), 0, -1).reshape(-1, 3)), asked.reshape(-1, 3))
    assert {int(v) for v in np.unique(view.cells)} == {UNKNOWN, FREE, OCCUPIED}
    assert (view.resolution, view.time, view.images) == (0.1, 4.0, 9)
    # All that is occupied is the wall, which stands 2 m before the camera; before it is room.
    wall = view.centers(np.argwhere(view.cells == OCCUPIED)) - (9.3, 0.2, 1.5)
    assert len(wall) > 100
    np.testing.assert_allclose(wall[:, :2] @ (np.cos(0.1), np.sin(0.1)), 2.0, atol=0.1)
    assert view.cells[tuple(view.index(np.array([10.3, 0.3, 1.5])))] == FREE


def test_views_are_of_single_flights_and_cannot_be_written() -> None:
    maps = mapped_hall()
    first, second = maps.views()
    assert first.images == 0
    assert np.isnan(first.time)
    assert (first.cells == UNKNOWN).all()
    assert [v.images for v in maps.views([1])] == [9]
    before = second.cells.copy()
    for array in (second.cells, second.inflated, second.origin):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    maps.update([1], wall_image(1, 4.0), [(9.3, 0.2, 1.5)], [looking(1.5)], time=[5.0])
    np.testing.assert_array_equal(second.cells, before)  # a copy: what is seen later does not change it
    assert maps.view(1).time == 5.0
    maps.reset([1])
    assert (maps.view(1).cells == UNKNOWN).all()
    assert maps.view(1).images == 0
    with pytest.raises(AirworthyError, match="asked for flight 2"):
        maps.view(2)


def test_maps_that_know_the_place_have_views_too() -> None:
    cells = np.zeros((20, 20, 21), bool)
    cells[5:8, 5:8, :] = True
    task = mission([(0, 0, 0)], [(2, 2, 2)])
    maps = maps_of_cells([cells], task, MapSettings(inflation=0.0, ground=0.0))
    view = maps.view(0)
    np.testing.assert_array_equal(view.cells[..., :20] == OCCUPIED, cells[..., :20])
    assert (view.cells[..., 20] == OCCUPIED).all()  # the virtual ceiling
    assert not (view.cells == UNKNOWN).any()


def test_a_planner_of_one_flight_looks_at_its_own_map() -> None:
    looked: list[MapView] = []

    class Looking(StraightFlight):
        def update(self, motion: Motion, maps: Maps | None, active: Any) -> dict[str, Any]:
            assert maps is not None
            looked.append(maps.view(0))
            return super().update(motion, maps, active)

    maps, task = mapped_hall(), mission([(-6, -6, 0), (-20, -5, 0)], [(6, 6, 3), (20, 5, 4)])
    planner = Alone(Looking)
    planner.reset(task)
    still = np.zeros((2, 3))
    planner.update(Motion(np.zeros(2), still, still, np.tile((0.0, 0.0, 0.0, 1.0), (2, 1))), maps, np.ones(2, bool))
    assert [view.images for view in looked] == [0, 9]


# ---- the vehicle ----------------------------------------------------------------------------------------------------


def test_a_mission_carries_what_its_vehicles_can_do() -> None:
    crafts = [vehicle("real_09"), vehicle("virt_05"), vehicle("real_09")]
    airframes = Airframes.of(crafts, 0.3)
    assert len(airframes) == 3
    np.testing.assert_array_equal(airframes.radius, 0.3)
    for k, airframe in enumerate(crafts):
        # Four rotors alike (FlyingTrust, eq. 2), and the indicators that were published of these vehicles.
        rotor = airframe.rotors[0]
        top = rotor.thrust[2] * rotor.speed_max**2
        assert airframes.mass[k] == airframe.mass
        assert airframes.thrust_to_weight[k] == pytest.approx(4 * top / (airframe.mass * airframe.gravity), rel=1e-6)
        assert airframes.alpha_xy[k] == pytest.approx(float(airframe.extra["published_alpha_xy_max"]), rel=0.02)
        ratio = airframes.thrust_to_weight[k]
        assert airframes.acceleration[k] == pytest.approx(airframe.gravity * np.sqrt(ratio**2 - 1.0))
    one = replace(mission([(0, 0, 0)] * 3, [(1, 1, 1)] * 3), vehicle=airframes).of_flights(slice(1, 2))
    assert one.vehicle is not None
    assert {item.name: getattr(one.vehicle, item.name).tolist() for item in fields(Airframes)} == {
        item.name: [getattr(airframes, item.name)[1]] for item in fields(Airframes)
    }
    assert Airframes.of([vehicle("lmf2")]).radius[0] > 0.05
    late = replace(vehicle("lmf2"), command_delay=0.02)
    np.testing.assert_allclose(Airframes.of([vehicle("lmf2"), late]).lag, [0.065, 0.085])
    with pytest.raises(AirworthyError, match="expected one above 0 for each"):
        Airframes.of(crafts, [0.3, 0.3])


def test_planners_are_told_what_they_fly_alone_and_together() -> None:
    heard: list[Mission] = []

    class Listening(StraightFlight):
        def reset(self, mission: Mission) -> None:
            heard.append(mission)
            super().reset(mission)

    task = mission([(-9, -9, 0)] * 2, [(9, 9, 9)] * 2)
    crafts = [vehicle("real_09"), vehicle("virt_05")]
    for planner in (Listening(), Alone(Listening)):
        pilot = PlannerPilot(planner, task, crafts)
        pilot.guard.reset(pilot.mission)
    whole, first, second = heard
    assert whole.vehicle is not None
    assert first.vehicle is not None
    assert second.vehicle is not None
    np.testing.assert_array_equal(whole.vehicle.mass, [crafts[0].mass, crafts[1].mass])
    assert (first.vehicle.mass.tolist(), second.vehicle.mass.tolist()) == ([crafts[0].mass], [crafts[1].mass])
