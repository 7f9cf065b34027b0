"""Conditions say in numbers what they change; one that changes nothing is refused, or left out of a group."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import EXPERT, PLACE, on_stage

from airworthy.benchmarks.tracking.block import Setting, _plan
from airworthy.benchmarks.tracking.condition_change import change_of, change_text, drop_unchanged
from airworthy.benchmarks.tracking.condition_edits import moved_scene, splat_boxes, without_boxes
from airworthy.benchmarks.tracking.conditions import condition, described, expanded
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import VehicleSpread, draw_drones
from airworthy.benchmarks.tracking.seen_images import SeenImages
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.pilots.pilot import Observation
from airworthy.scenes import Instance, Scene, SceneBatch, scene
from airworthy.scenes.checking import point_clearance
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.placing import SURFACE, add_splats, with_surface
from airworthy.simulation.sensor_state import Sample
from airworthy.trajectories import course
from airworthy.vehicles import vehicle


def _changes(names: tuple[str, ...], flown: str, place: Scene) -> dict[str, Any]:
    return {item.name: change_of(item, flown, place.name, {place.name: place}) for item in expanded(names)}


def test_numbers_of_what_changes() -> None:
    on_stage(Path())
    names = (
        "baseline",
        "static",
        "lighting",
        "payload",
        "pickup:0.2",
        "without_nearest:1",
        "late_images:0.4",
        "shifted:0.5",
        "sousvide_test",
    )
    found = _changes((*names, "noise:extreme", "blindfold"), "hover", scene(PLACE))
    assert found == {
        "baseline": {},
        "static": {"things_out": ["post"]},
        "lighting": {"light": 0.4},
        "payload": {"mass": 1.3},
        "pickup:0.2": {"pickup": 0.2},
        "without_nearest:1": {"things_out": ["post"]},
        "late_images:0.4": {"image_delay": 0.4},
        "shifted:0.5": {"shift": 0.5},
        "sousvide_test": {
            "mass_spread": 0.15, "thrust_spread": 0.15, "position_spread": 0.2, "velocity_spread": 0.2,
            "attitude_spread": 0.1, "noise_sensor": 3.0,
        },
        "noise:extreme": {"noise_sensor": 3.0, "noise_model": 0.02},
        "blindfold": {"blind": True},
    }  # fmt: skip
    assert change_text(found["static"]) == "1 thing (post) taken out"
    assert change_text(found["pickup:0.2"]) == "0.2 of the mass hung on in flight"
    assert change_text({"things_out": list("abcdef"), "gaussians_out": 12345}) == (
        "6 things (a, b, c, d, ...) taken out, 12,345 gaussians taken out"
    )


def test_one_that_was_named_is_refused_and_one_of_a_group_is_left_out() -> None:
    on_stage(Path())
    bare = replace(scene(PLACE), instances=())
    conditions = expanded(("table_2",))
    changes = _changes(("table_2",), "hover", bare)
    with pytest.raises(AirworthyError) as caught:
        drop_unchanged(("baseline", "static"), conditions, changes, "hover", PLACE)
    assert str(caught.value) == (
        "A condition changes nothing, and would be flown as the baseline: 'static': near the course 'hover' the scene"
        " 'tracking_stage' has no gate and no ladder and no monitor. Leave it out as --conditions baseline lighting dynamic"
        " payload wind, or take out what is there: without_nearest:3, of a captured place without_boxes:3."
    )
    with pytest.warns(AssetWarning, match="1 of 6 conditions would change nothing, and is left out: static: near the course"):
        assert list(drop_unchanged(("table_2",), conditions, changes, "hover", PLACE)) == ["static"]
    # The first point of a sweep is the baseline, and stays in its sweep; named alone it is refused.
    swept = expanded(("lighting_sweep",))
    changes = _changes(("lighting_sweep",), "hover", bare)
    assert drop_unchanged(("lighting_sweep",), swept, changes, "hover", PLACE) == {}
    # Its other points are left out where there is nothing to take.
    swept = expanded(("without_nearest_sweep",))
    changes = _changes(("without_nearest_sweep",), "hover", bare)
    with pytest.warns(AssetWarning, match="4 of 5 conditions would change nothing, and are left out: without_nearest:1: near"):
        assert list(drop_unchanged(("without_nearest_sweep",), swept, changes, "hover", PLACE)) == [
            f"without_nearest:{count}" for count in (1, 2, 4, 8)
        ]
    changes = _changes(("lighting:1",), "hover", bare)
    with pytest.raises(AirworthyError, match="'lighting:1': all its values are the baseline's"):
        drop_unchanged(("lighting:1",), expanded(("lighting:1",)), changes, "hover", PLACE)
    # Whoever is over before images freeze sees what the baseline sees.
    seconds = course("robustness").trajectory().duration
    assert _changes(("frozen",), "robustness", bare)["frozen"]
    for word, idle in ((f"frozen:{seconds - 0.5:g}", False), (f"frozen:{seconds + 0.5:g}", True)):
        assert (not _changes((word,), "robustness", bare)[word]) is idle


def test_commands_of_a_condition_are_as_late_as_it_says() -> None:
    late = replace(condition("baseline"), name="late", delay=0.12)
    setting = Setting(late, "hover", PLACE, {})
    assert _plan(setting, SceneBatch(setting.scene, 1)).latency == 0.12


def test_a_run_leaves_out_what_changes_nothing_and_writes_what_the_others_change(tmp_path: Path) -> None:
    config = on_stage(tmp_path / "out", conditions=("baseline", "payload", "without_boxes"), flights=1, report=False)
    with pytest.raises(AirworthyError, match=r"'without_boxes': near the course 'hover' the scene .* has no gaussians"):
        evaluate(config, methods=[EXPERT])
    assert not (tmp_path / "out").exists()
    evaluate(replace(config, conditions=("baseline", "payload")), methods=[EXPERT])
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["changes"] == {"baseline": {}, "payload": {"mass": 1.3}}
    assert summary["left_out"] == {}


def test_the_nearest_things_go_first_and_the_room_stays() -> None:
    on_stage(Path())
    place = scene(PLACE)
    far = replace(place, instances=(*place.instances, Instance("post", (0.0, -2.0, 0.5), semantic="gate", name="far")))
    for count, left in ((1, ["floor", "wall", "far"]), (2, ["floor", "wall"]), (9, ["floor", "wall"])):
        setting = Setting(condition(f"without_nearest:{count}"), "hover", PLACE, {PLACE: far})
        assert [item.name for item in setting.scene.instances] == left


def _cloud() -> Splats:
    """A wall of gaussians 1 m to the left of the hovering course, and a floor."""
    x, z = (a.ravel() for a in np.meshgrid(np.arange(-2, 2, 0.05), np.arange(0, 2, 0.05)))
    wall = np.stack([x, np.full_like(x, 1.0), z], 1)
    n = len(wall)
    return Splats(wall, np.tile([0, 0, 0, 1.0], (n, 1)), np.full((n, 3), 0.04), np.full(n, 0.99), np.zeros((n, 1, 3)))


def test_boxes_take_gaussians_and_the_surface_around_them() -> None:
    """The nearest gaussian of a wall at y = 1 m beside a hover at (0, 0, 1): a box of 1 m round it is a hole in the wall."""
    place = with_surface(add_splats(Scene(PLACE), _cloud(), "wall"))
    path = np.array([[0.0, 0.0, 1.0]])
    (box,) = splat_boxes(place, path, 1)
    assert box.center == pytest.approx((0.0, 1.0, 1.0), abs=0.03)
    holed = without_boxes(place, [box])
    inside = box.holds(_cloud().position)
    (left,) = holed.clouds.values()
    assert len(left) == len(_cloud()) - inside.sum()
    assert not box.holds(left.position).any()
    assert len(holed.shapes[SURFACE].faces) < len(place.shapes[SURFACE].faces)
    before, after = (point_clearance(item, path)[0] for item in (place, holed))
    assert before == pytest.approx(1.0, abs=0.15)
    assert after == pytest.approx(np.hypot(1.0, 0.5), abs=0.15)
    change = change_of(condition("without_boxes:1"), "hover", PLACE, {PLACE: place})
    assert change["gaussians_out"] == inside.sum()
    assert change["faces_out"] == len(place.shapes[SURFACE].faces) - len(holed.shapes[SURFACE].faces)
    assert splat_boxes(Scene("bare"), path, 3) == []


def test_a_shifted_place_is_the_place_elsewhere() -> None:
    """1 m to the left of a course that faces x is +1 m along y; distances move with it, gaussians too."""
    on_stage(Path())
    place = add_splats(scene(PLACE), _cloud(), "wall")
    setting = Setting(condition("shifted"), "line", PLACE, {PLACE: place})
    assert setting.offset == pytest.approx((0.0, 1.0, 0.0))
    moved = moved_scene(place, np.array([0.3, -0.2, 0.1]))
    points = np.random.default_rng(3).uniform(-2, 2, (50, 3))
    assert point_clearance(moved, points + np.array([0.3, -0.2, 0.1])) == pytest.approx(
        point_clearance(place, points), abs=1e-9
    )
    assert moved.splats[0].position == pytest.approx((0.3, -0.2, 0.1))
    assert moved.bounds.lower == pytest.approx((-3.7, -4.2, 0.1))
    assert SceneBatch(setting.scene, 1).env_count == 1


def _seen(name: str, times: list[float]) -> list[list[int]]:
    """What two flights are shown, when flight 1 is 0.1 s behind flight 0 and the k-th image is all k + 1."""
    shown, images = [], SeenImages(condition(name))
    for k, t in enumerate(times):
        data = {"rgb": np.full((2, 1, 1, 3), k + 1.0)}
        number = np.full(2, k)
        sample = Sample(np.full(2, t), number, number, np.ones(2, bool), np.zeros((2, 3)), np.zeros((2, 4)), data)
        seen = images.of(Observation(np.array([t, t - 0.1]), {}, {"camera": sample})).sample("camera")["rgb"]
        assert not seen.flags.writeable
        shown.append(seen[:, 0, 0, 0].astype(int).tolist())
    return shown


def test_images_are_black_frozen_or_late_for_each_flight_by_its_own_clock() -> None:
    times = [0.0, 0.1, 0.2, 0.3, 0.4]
    assert _seen("blindfold", times) == [[0, 0]] * 5
    assert _seen("late_images:0.2", times) == [[1, 1], [1, 1], [1, 1], [2, 2], [3, 3]]
    assert _seen("frozen:0.2", times) == [[1, 1], [2, 2], [3, 3], [3, 4], [3, 4]]


def test_the_published_test_set_draws_wider_starts() -> None:
    path, number = course("line").trajectory(), np.arange(200)
    narrow = draw_drones(vehicle("carl"), path, VehicleSpread(), condition("baseline"), 0, number)
    wide = draw_drones(vehicle("carl"), path, VehicleSpread(), condition("sousvide_test"), 0, number)
    start = path.sample(np.zeros(1)).position[0]
    # Twice as wide, the same draws.
    assert wide.position - start == pytest.approx(2.0 * (narrow.position - start), abs=1e-12)
    assert np.abs(wide.mass / vehicle("carl").mass - 1.0).max() == pytest.approx(0.15, abs=0.01)


def test_what_came_later_is_described_only_where_it_is_used() -> None:
    """So that results of before keep their identity."""
    assert "blind" not in described(condition("payload"))
    assert described(condition("blindfold"))["blind"] is True


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("without_nearest:1.5", "has nearest 1.5; expected a whole number of 0 to 100"),
        ("late_images:11", "has image_delay 11; expected 0 to 10"),
        ("shifted:-1", r"has shift -1.0; expected a finite number of 0 or more"),
        ("shifted:x", "ends with 'x'; expected a number"),
    ],
)
def test_values_out_of_range_are_refused(name: str, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        condition(name)
