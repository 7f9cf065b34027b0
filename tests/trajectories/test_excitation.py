"""Excitation flights: sized for the vehicle, in their box, and of keyframes that give back what was meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import (
    ExcitationConfig,
    ExcitationPart,
    ExcitationPlan,
    Keyframe,
    excitation_plan,
    minimum_snap,
    read_course,
    write_course,
)
from airworthy.trajectories.min_snap import solve_dense
from airworthy.vehicles import vehicle

VEHICLES = ("cf2x_L250", "x500", "real_18", "base_octarotor", "tinyprop")
"""Slow rotors of a nano vehicle, a strong quad, the heaviest one, eight rotors that turn both ways, little thrust to spare."""


@pytest.fixture(scope="module", params=VEHICLES)
def plan(request: pytest.FixtureRequest) -> ExcitationPlan:
    return excitation_plan(vehicle(request.param))


def pieces(plan: ExcitationPlan, name: str) -> list[ExcitationPart]:
    return [item for item in plan.parts if item.name == name]


def part(plan: ExcitationPlan, name: str) -> ExcitationPart:
    return pieces(plan, name)[0]


def test_all_parts_have_their_length(plan: ExcitationPlan) -> None:
    assert [item.name for item in plan.parts] == ["lines", "yaw", "doublets", "collective", "doublets", "yaw", "lines"]
    lengths = {name: sum(item.stop - item.start for item in pieces(plan, name)) for name in ("collective", "doublets", "yaw")}
    assert lengths["collective"] == pytest.approx(30.0)
    assert lengths["doublets"] == pytest.approx(30.0)
    # Weak yaw makes a pulse long: one is flown in any case. Between lines along x and along y it has to move.
    assert 20.0 - 1e-9 <= lengths["yaw"] < 25.0
    assert 20.0 <= sum(item.stop - item.start for item in pieces(plan, "lines")) < 30.0
    assert plan.duration < 130.0


@pytest.mark.parametrize(
    "names", [("collective", "doublets", "yaw", "lines"), ("collective", "doublets", "yaw"), ("yaw", "lines")]
)
@pytest.mark.parametrize("length", [0.5, 1.0])
def test_every_kind_is_seen_by_fit_and_by_what_judges_it(names: tuple[str, ...], length: float) -> None:
    """Two thirds of a flight are fitted, less a guard of 5 s or a tenth, and the last one judges; yaw and lines lay in that."""
    found = excitation_plan(vehicle("x500"), ExcitationConfig(parts=names, length=length))
    cut = 2.0 / 3.0 * found.duration
    until = cut - min(5.0, 0.1 * found.duration)
    for name in names:
        before = sum(max(min(item.stop, until) - item.start, 0.0) for item in pieces(found, name))
        after = sum(max(item.stop - max(item.start, cut), 0.0) for item in pieces(found, name))
        assert min(before, after) > 4.0 * length


def test_a_short_plan_is_flown_once() -> None:
    """Halves of it would be single pulses."""
    found = excitation_plan(vehicle("x500"), ExcitationConfig(length=0.2))
    assert [item.name for item in found.parts] == ["collective", "doublets", "yaw", "lines"]


def test_it_stays_in_its_box_and_within_the_rotors(plan: ExcitationPlan) -> None:
    assert np.all(np.array(plan.lowest) >= [-2.0, -2.0, 1.0])
    assert np.all(np.array(plan.highest) <= [2.0, 2.0, 3.0])
    assert all(0.05 < item.rotor_use <= 0.62 for item in plan.parts)


def test_thrust_goes_up_and_down_by_fifteen_percent(plan: ExcitationPlan) -> None:
    """The share of the time at either level is what tells thrust over command: deviation of over 10 % of gravity."""
    found = part(plan, "collective")
    sample = plan.course.trajectory().sample(np.arange(found.start, found.stop, 0.002))
    share = sample.acceleration[:, 2] / 9.81
    assert found.size == pytest.approx(0.15)
    assert share.max() == pytest.approx(0.15, abs=1e-6)
    assert share.min() == pytest.approx(-0.15, abs=1e-6)
    assert share.std() > 0.1
    assert np.abs(sample.acceleration[:, :2]).max() < 1e-9


def test_pulses_come_back(plan: ExcitationPlan) -> None:
    """Where each part ends it stands, where it began but for lines, which end at an end of the box."""
    path = plan.course.trajectory()
    for item in plan.parts:
        ends = path.sample(np.array([item.start, item.stop]))
        assert np.abs(ends.velocity).max() < 1e-6
        assert np.abs(ends.yaw).max() < 1e-9
        if item.name != "lines":
            assert np.abs(ends.position[1] - ends.position[0]).max() < 1e-9


def test_the_course_file_gives_the_same_flight(plan: ExcitationPlan, tmp_path: Path) -> None:
    write_course(plan.course, tmp_path / "a.json")
    time = np.linspace(0.0, plan.duration, 1001)
    again = read_course(tmp_path / "a.json").trajectory().sample(time)
    meant = plan.course.trajectory().sample(time)
    assert np.array_equal(again.position, meant.position)
    assert np.array_equal(again.yaw, meant.yaw)
    names = [frame.name for frame in plan.course.keyframes if frame.name]
    assert names == [item.name for item in plan.parts]


def test_snap_does_not_jump() -> None:
    """The moment that rotors are asked for goes with the snap: one that jumps cannot be followed."""
    found = excitation_plan(vehicle("x500"), ExcitationConfig(parts=("doublets",)))
    path = found.course.trajectory()
    knots = np.array([frame.time for frame in found.course.keyframes[2:-2]])
    before, after = path.sample(knots - 1e-6), path.sample(knots + 1e-6)
    largest = np.abs(path.sample(np.arange(0.0, path.duration, 0.002)).snap).max()
    assert np.abs(after.snap - before.snap).max() < 1e-3 * largest


def test_yaw_turns_at_sixty_degrees_a_second() -> None:
    found = part(excitation_plan(vehicle("cf2x_L250")), "yaw")
    assert found.size == pytest.approx(np.radians(60.0))
    assert found.rate == pytest.approx(np.radians(60.0), rel=1e-6)


def test_a_small_box_makes_it_small_and_says_so() -> None:
    found = excitation_plan(vehicle("cf2x_L250"), ExcitationConfig(box=(0.6, 0.6, 0.4)))
    assert np.all(np.array(found.highest) - found.lowest <= [0.6, 0.6, 0.4])
    assert any("drag shows above 2" in text for text in found.advice)


def test_speed_bounds_lines_in_a_large_box() -> None:
    lines = excitation_plan(vehicle("x500"), ExcitationConfig(box=(60.0, 60.0, 5.0), speed=3.0, parts=("lines",))).parts[0]
    assert lines.speed == pytest.approx(3.0, abs=1e-3)


@pytest.mark.slow
def test_what_has_no_room_is_left_out_and_told() -> None:
    weak = vehicle("x500")
    # Rotors that lift 5 % more than the weight: no step of 3.75 % (a quarter of 15 %) within 60 % of that.
    share = 1.05 * weak.mass * weak.gravity / 4.0
    rotors = tuple(replace(r, speed_max=float(np.sqrt(share / r.thrust[2]))) for r in weak.rotors)
    found = excitation_plan(replace(weak, rotors=rotors))
    assert "collective" not in [item.name for item in found.parts]
    assert any("thrust over command shows at hover only" in text for text in found.advice)


def test_vehicles_that_cannot_are_refused() -> None:
    heavy = replace(vehicle("x500"), mass=50.0)
    with pytest.raises(AirworthyError, match="cannot hover, and no flight can be planned"):
        excitation_plan(heavy)
    quad = vehicle("x500")
    rotors = tuple(replace(r, torque=(0.0, 0.0, 1e-3 * r.torque[2])) for r in quad.rotors)
    with pytest.raises(AirworthyError, match="No excitation flight of x500 fits: its rotors"):
        excitation_plan(replace(quad, rotors=rotors), ExcitationConfig(parts=("yaw",)))


def test_parts_that_are_none_are_refused() -> None:
    with pytest.raises(AirworthyError, match="Unknown part of an excitation flight 'roll'"):
        ExcitationConfig(parts=("roll",))
    with pytest.raises(AirworthyError, match="each once"):
        ExcitationConfig(parts=("yaw", "yaw"))
    with pytest.raises(AirworthyError, match="box"):
        ExcitationConfig(box=(0.0, 1.0, 1.0))


def test_pieces_that_are_given_whole_need_no_minimum() -> None:
    """400 of them: what is solved at once may have 200. Few ones are those of the dense solve."""
    draw = np.random.default_rng(3)
    frames = [Keyframe(0.1 * k, *(tuple(draw.normal(size=4)) for _ in range(4))) for k in range(401)]
    path = minimum_snap(frames)
    few = minimum_snap(frames[:6])
    spans = np.diff([frame.time for frame in frames[:6]])
    dense = solve_dense(spans, [frame.yaw for frame in frames[:6]], 8, 2)
    assert np.allclose(few.yaw_coefficients, dense, rtol=1e-9, atol=1e-9)
    at = path.sample(np.array([frame.time for frame in frames]))
    assert np.allclose(at.yaw, [frame.yaw[0] for frame in frames])
    assert np.allclose(at.yaw_rate, [frame.yaw[1] for frame in frames])
