"""Agile-Autonomy flown: images, state, the network without torch, the choice among modes, flights of a random network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.benchmarks.fly.scene import finds_own_way
from airworthy.benchmarks.navigation import NavigationConfig
from airworthy.benchmarks.navigation.config import Flight
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256
from airworthy.core.frames import from_euler, multiply
from airworthy.pilots import policy_word
from airworthy.planners.agile_autonomy import (
    AgileAutonomy,
    DepthImages,
    Student,
    StudentContract,
    level,
    read_student,
    shipped_student,
    write_student_folder,
)
from airworthy.planners.agile_autonomy.layers import IMAGE, STATE, StudentNetwork, tensor_shapes
from airworthy.planners.agile_autonomy.planner import BodyRates, chosen_mode
from airworthy.planners.agile_autonomy.sight import STEPS, encoded, reference_directions, state_rows
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.sampling_expert.sampling import TIMES
from airworthy.tasks.navigation import NavigationProtocol


def random_weights(seed: int = 0, modes: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = tensor_shapes(modes)
    return {name: rng.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:]))) for name, shape in shapes.items()}


class FixedStudent(Student):
    """Gives the same trajectories (3, 10, 3) whatever it sees."""

    def __init__(self, points: np.ndarray):
        super().__init__(StudentContract(), free_weights())
        self.points = points

    def __call__(self, images: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return them, the first one with the best score."""
        return np.tile([0.1, 0.2, 0.3], (len(state), 1)), np.tile(self.points, (len(state), 1, 1, 1))

    def of_both_sides(self, images: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same: in a mirror it sees nothing else."""
        return self(images, state)


def free_weights() -> dict[str, np.ndarray]:
    """Weights that are zero: nothing is told from the free course."""
    return {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(3).items()}


def mission(count: int = 1, speed: float = 4.0) -> Mission:
    rows = [np.tile(row, (count, 1)) for row in ([-6.0, 0.0, 1.5], [6.0, 0.0, 1.5], [-12.0, -8.0, 0.0], [12.0, 8.0, 3.0])]
    return Mission(rows[0], rows[1], np.full(count, speed), np.full(count, 6.0), rows[2], rows[3], np.arange(count), 2)


def motion_at(position: list[float], velocity: list[float], yaw: float = 0.0, time: float = 0.0) -> Motion:
    attitude = np.array([[0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]])
    return Motion(np.array([time]), np.array([position]), np.array([velocity]), attitude)


# ---- what it sees ---------------------------------------------------------------------------------------------------------


def test_images_are_steps_of_the_reach_and_no_return_is_far() -> None:
    depth = np.full((2, 240, 320), 2.0, np.float32)
    depth[1] = 7.0
    depth[0, :, :160] = 0.0
    depth[0, 239, 319] = 1.0
    found = encoded(depth, 5.0)
    assert found.shape == (2, IMAGE, IMAGE)
    assert found.dtype == np.uint8
    assert (found[0, :-1, 112:] == 100).all()
    assert (found[0, :, :112] == STEPS).all()
    assert found[0, -1, -1] == 50
    assert (found[1] == STEPS).all()
    assert (encoded(np.array([[[np.inf, np.nan]]]), 5.0) == STEPS).all()
    with pytest.raises(AirworthyError, match=r"shape \(240, 320\)"):
        encoded(depth[0], 5.0)


def test_state_is_in_the_body_frame() -> None:
    attitude = np.asarray(from_euler(0.0, 0.0, np.pi / 2))[None]
    rows = state_rows(attitude, np.array([[0.0, 2.0, 0.5]]), np.array([[0.1, 0.2, 0.3]]), np.array([[1.0, 0.0, 0.0]]))
    assert rows.shape == (1, STATE)
    np.testing.assert_allclose(rows[0, :9].reshape(3, 3) @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(rows[0, 9:], [2.0, 0.0, 0.5, 0.1, 0.2, 0.3, 0.0, -1.0, 0.0], atol=1e-12)


def test_reference_lies_five_seconds_ahead_and_never_behind_the_goal() -> None:
    start, goal = np.zeros((3, 3)), np.tile([30.0, 0.0, 0.0], (3, 1))
    position = np.array([[0.0, 0.0, 0.0], [5.0, 10.0, 0.0], [28.0, -2.0, 0.0]])
    found = reference_directions(position, start, goal, np.array([4.0, 2.0, 4.0]))
    ahead = np.array([[20.0, 0.0, 0.0], [10.0, -10.0, 0.0], [2.0, 2.0, 0.0]])
    np.testing.assert_allclose(found, ahead / np.linalg.norm(ahead, axis=1, keepdims=True))


def test_body_rates_from_attitudes() -> None:
    rates, turned = BodyRates(1), np.asarray(from_euler(0.3, -0.2, 1.0))
    first = Motion(np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)), turned[None])
    assert (rates.update(first) == 0.0).all()
    half = 0.5 * 0.01 * np.array([2.0, -1.0, 0.5])
    step = np.array([*half, 1.0]) / np.linalg.norm([*half, 1.0])
    later = Motion(np.array([0.01]), np.zeros((1, 3)), np.zeros((1, 3)), np.asarray(multiply(turned, step))[None])
    np.testing.assert_allclose(rates.update(later)[0], [2.0, -1.0, 0.5], rtol=1e-3)


# ---- the network ----------------------------------------------------------------------------------------------------------


def test_numbers_of_a_flight_do_not_depend_on_others() -> None:
    network, rng = StudentNetwork(random_weights(), 3), np.random.default_rng(1)
    images, state = rng.integers(0, 251, (3, IMAGE, IMAGE)).astype(np.uint8), rng.normal(size=(3, STATE))
    score, points = network(images, state)
    assert score.shape == (3, 3)
    assert points.shape == (3, 3, 10, 3)
    for k in range(3):
        alone = network(images[k : k + 1], state[k : k + 1])
        np.testing.assert_array_equal(alone[0][0], score[k])
        np.testing.assert_array_equal(alone[1][0], points[k])
    doubled = StudentNetwork(random_weights(), 3, np.float64)(images, state)[1]
    np.testing.assert_allclose(points, doubled, atol=1e-4)


def test_a_mirrored_instant_is_a_second_opinion_and_comes_back_turned() -> None:
    rng = np.random.default_rng(4)
    student = Student(StudentContract(), random_weights())
    images = rng.integers(0, 251, (2, IMAGE, IMAGE)).astype(np.uint8)
    attitude, pushed = np.asarray(from_euler(0.2, -0.3, 0.7)), np.array([[5.0, 1.0, 0.2]] * 2)
    state = state_rows(np.tile(attitude, (2, 1)), pushed, np.array([[0.3, -0.2, 0.5]] * 2), np.array([[0.8, 0.6, 0.0]] * 2))
    score, points = student.of_both_sides(images, state)
    assert (score.shape, points.shape) == ((2, 6), (2, 6, 10, 3))
    for mine, plain in zip((score[:, :3], points[:, :3]), student(images, state), strict=True):
        np.testing.assert_array_equal(mine, plain)
    # The mirrored instant by hand: a roll the other way and a turn the other way, of what moves the other way.
    other = np.asarray(from_euler(-0.2, -0.3, -0.7))
    flipped = np.array([1.0, -1.0, 1.0])
    rows = state_rows(
        np.tile(other, (2, 1)), pushed * flipped, np.array([[-0.3, -0.2, -0.5]] * 2), np.array([[0.8, -0.6, 0.0]] * 2)
    )
    np.testing.assert_allclose(rows, state * level.STATE_SIGNS, atol=1e-12)
    told = student(np.ascontiguousarray(images[:, :, ::-1]), rows)
    # Where a ray meets the border of two pixels the flipped image may show the other one.
    np.testing.assert_allclose(score[:, 3:], told[0], atol=0.05)
    np.testing.assert_allclose(points[:, 3:], told[1] * flipped, atol=0.05)


def test_points_are_told_from_the_free_course() -> None:
    state = np.zeros((1, STATE))
    state[0, [0, 4, 8]], state[0, 9:12], state[0, 15:18] = 1.0, [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    points = StudentNetwork(free_weights(), 3)(np.zeros((1, IMAGE, IMAGE), np.uint8), state)[1]
    np.testing.assert_allclose(points[0, 1, 9], [1.0, 1.5, 0.0])
    np.testing.assert_allclose(points[0, 2, 0], [0.2 - 0.01, 0.015, 0.0])


def test_weights_that_do_not_fit_are_refused() -> None:
    weights = random_weights()
    weights["cells.bias"] = np.zeros(3)
    with pytest.raises(AirworthyError, match=r"'cells.bias' of shape \(3,\); expected \(48,\)"):
        StudentNetwork(weights, 3)


def test_folder_holds_the_student_and_tells_what_is_wrong(tmp_path: Path) -> None:
    write_student_folder(tmp_path, StudentContract(reach=8.0), random_weights())
    read = read_student(tmp_path)
    assert read.contract == StudentContract(reach=8.0)
    images, state = np.full((1, IMAGE, IMAGE), 90, np.uint8), np.zeros((1, STATE))
    np.testing.assert_allclose(read(images, state)[1], StudentNetwork(random_weights(), 3)(images, state)[1])
    text = (tmp_path / "contract.json").read_text()
    (tmp_path / "contract.json").write_text(text.replace('"reach_m": 8.0', '"reach_m": 9.0'))
    with pytest.raises(AssetError, match="changed or damaged"):
        read_student(tmp_path)
    with pytest.raises(AssetError, match="does not hold a student"):
        read_student(tmp_path.parent)


def test_a_blind_student_sees_nothing() -> None:
    rng = np.random.default_rng(2)
    images, state = rng.integers(0, 251, (2, IMAGE, IMAGE)).astype(np.uint8), np.zeros((2, STATE))
    state[:, [0, 4, 8]] = 1.0
    sees, blind = (Student(StudentContract(blind=flag), random_weights()) for flag in (False, True))
    assert not np.array_equal(sees(images, state)[1][0], sees(images, state)[1][1])
    np.testing.assert_array_equal(blind(images, state)[1][0], blind(images, state)[1][1])
    # Nor in the mirror.
    assert not np.array_equal(*sees.of_both_sides(images, state)[1])
    np.testing.assert_array_equal(*blind.of_both_sides(images, state)[1])


# ---- the choice among modes -----------------------------------------------------------------------------------------------


def straight(*sides: float) -> np.ndarray:
    """Trajectories (modes, 10, 3) at 2 m/s ahead, each with its own speed to the left."""
    return np.array([TIMES[:, None] * [2.0, side, 0.0] for side in sides])


def test_best_score_is_nearest_to_zero() -> None:
    assert chosen_mode(np.array([0.4, -0.1, 0.3]), straight(0.0, 1.0, 2.0), None, 0.0, 0.9) == 1


def test_of_modes_as_good_the_one_nearest_to_the_previous_is_flown() -> None:
    points, score = straight(1.0, -1.0, 0.0), np.array([0.95, 1.0, 3.0])
    for side, expected in ((1.0, 0), (-1.0, 1), (0.0, 0)):
        # Decided 0.1 s ago: where it will be 0.1 s later than now is its second point.
        before = straight(side)[0] - [0.2, 0.1 * side, 0.0]
        assert chosen_mode(score, points, before, 0.1, 0.9) == expected
    # The second is worse by more than a tenth: it does not count, however near.
    assert chosen_mode(np.array([0.85, 1.0, 3.0]), points, straight(-1.0)[0] - [0.2, -0.1, 0.0], 0.1, 0.9) == 0
    assert chosen_mode(np.zeros(3), points, straight(0.0)[0] - [0.2, 0.0, 0.0], 0.1, 0.9) == 2
    # A score that is hardly worse is as good, whatever their ratio.
    small, before = np.array([0.001, 0.03, 3.0]), straight(-1.0)[0] - [0.2, -0.1, 0.0]
    assert chosen_mode(small, points, before, 0.1, 0.9) == 0
    assert chosen_mode(small, points, before, 0.1, 0.9, 0.05) == 1
    # Nothing of what was flown before is about a moment to come.
    assert chosen_mode(score, points, straight(-1.0)[0], 1.5, 0.9) == 0


# ---- the deployment -------------------------------------------------------------------------------------------------------


def images_of(planner: AgileAutonomy, count: int = 1, metres: float = 5.0) -> DepthImages:
    images = planner.maps_for(mission(count))
    images.update(np.arange(count), np.full((count, 24, 32), metres), np.zeros((count, 3)), np.zeros((count, 4)))
    return images


def followed(planner: AgileAutonomy, place: list[float], speed: list[float], seconds: float):  # type: ignore[no-untyped-def]
    """Positions (k, 3), speeds (k,) and states of a vehicle that is always where it should be, its nose to +x."""
    images, flown = images_of(planner), []
    for k in range(round(100 * seconds)):
        told = planner.update(motion_at(place, speed, time=0.01 * k), images, np.ones(1, bool))
        planner.adopt(np.zeros(1))
        wanted = planner.setpoints(np.full(1, 0.01 * k + 0.01))
        place, speed = list(wanted.position[0]), list(wanted.velocity[0])
        flown.append((place, np.linalg.norm(speed), told["state"][0]))
    return np.array([row[0] for row in flown]), np.array([row[1] for row in flown]), [row[2] for row in flown]


def test_waits_for_an_image_and_decides_at_15_hz() -> None:
    planner = AgileAutonomy(student=FixedStudent(straight(0.0, 1.0, -1.0)))
    planner.reset(mission())
    images = planner.maps_for(mission())
    told = planner.update(motion_at([-6.0, 0.0, 1.5], [0.0, 0.0, 0.0]), images, np.ones(1, bool))
    assert (told["replans"][0], told["state"][0]) == (0, 1)
    still = planner.setpoints(np.zeros(1))
    np.testing.assert_array_equal(still.position[0], mission().start[0])
    decided = 0
    for k in range(1, 101):
        told = planner.update(motion_at([-6.0, 0.0, 1.5], [0.0, 0.0, 0.0], time=0.01 * k), images_of(planner), np.ones(1, bool))
        decided += int(told["replans"][0])
        # A look and one in the mirror cost two inferences, and a flight that decides nothing none.
        assert told["work"]["student_inferences"][0] == 2.0 * told["replans"][0]
    assert decided == 15


def test_flies_what_the_student_says_from_where_it_is() -> None:
    planner = AgileAutonomy(student=FixedStudent(straight(1.0, 0.0, -1.0)))
    planner.reset(mission())
    planner.update(motion_at([-6.0, 0.0, 1.5], [0.0, 2.0, 0.0], yaw=np.pi / 2), images_of(planner), np.ones(1, bool))
    planner.adopt(np.zeros(1))
    first, later = planner.setpoints(np.zeros(1)), planner.setpoints(np.full(1, 0.6))
    np.testing.assert_allclose(first.position[0], [-6.0, 0.0, 1.5], atol=1e-9)
    np.testing.assert_allclose(first.velocity[0], [0.0, 2.0, 0.0], atol=1e-9)
    # Ahead is y, left is -x; a metre per second faster than it flew.
    assert later.position[0, 0] < -6.3
    assert later.position[0, 1] > 1.0
    assert np.linalg.norm(later.velocity[0]) == pytest.approx(3.0, abs=0.05)
    assert later.yaw[0] == pytest.approx(np.arctan2(later.velocity[0, 1], later.velocity[0, 0]))


def test_height_is_kept_within_the_box() -> None:
    falling = straight(0.0, 1.0, -1.0)
    falling[:, :, 2] = -3.0 * TIMES
    planner = AgileAutonomy(student=FixedStudent(falling))
    planner.reset(mission())
    flown = followed(planner, [-6.0, 0.0, 1.5], [2.0, 0.0, 0.0], 2.0)[0]
    assert flown[:, 2].min() > 0.3  # the body
    assert flown[-1, 2] < 0.6


def test_arrives_slowly_and_at_the_goal() -> None:
    planner = AgileAutonomy(student=FixedStudent(straight(0.0, 1.0, -1.0)))
    planner.reset(mission())
    flown, speeds, states = followed(planner, [4.0, 0.4, 1.5], [2.0, 0.0, 0.0], 4.0)
    assert states[-1] == 2
    assert np.linalg.norm(flown[-1] - mission().goal[0]) < 0.2
    assert speeds[-50:].max() < 0.4


def test_needs_a_student_and_images() -> None:
    with pytest.raises(AssetError, match="nowhere"):
        AgileAutonomy(folder="nowhere").check_ready()
    planner = AgileAutonomy(student=FixedStudent(straight(0.0, 1.0, -1.0)))
    planner.reset(mission())
    with pytest.raises(AirworthyError, match="sees depth images and was given dict"):
        planner.update(motion_at([0.0, 0.0, 1.5], [0.0, 0.0, 0.0]), {}, np.ones(1, bool))


# ---- by its word ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_a_pilot_of_fly_and_benchmark(tmp_path: Path) -> None:
    write_student_folder(tmp_path, StudentContract(), random_weights())
    word = f"agile_autonomy:{tmp_path}"
    assert finds_own_way(word)
    assert finds_own_way("agile_autonomy")
    method = method_of(word)
    assert (method.name, method.kind, method.privileged) == (word, "planner", False)
    assert len(method.identity["weights"]) == 64
    assert policy_word(tmp_path) == word
    assert isinstance(method.make(), AgileAutonomy)
    with pytest.raises(AssetError, match="nowhere"):
        method_of("agile_autonomy:nowhere")


def test_a_shipped_student_flies_by_its_name_alone() -> None:
    method = method_of("agile_autonomy")
    assert (method.name, method.kind, method.privileged) == ("agile_autonomy", "planner", False)
    assert method.identity["weights"] == sha256((shipped_student() / "weights.safetensors").read_bytes())
    assert (shipped_student() / "weights.safetensors").stat().st_size < 2_000_000
    assert not AgileAutonomy().student.contract.blind


def test_flies_through_the_benchmarks_camera_whatever_flies_beside_it(tmp_path: Path) -> None:
    write_student_folder(tmp_path, StudentContract(), free_weights())
    flights = [Flight("random_cylinder", 1, "real_03"), Flight("random_cylinder", 2, "virt_05")]
    config = NavigationConfig(protocol=NavigationProtocol(time_limit_s=1.5))
    method = method_of(f"agile_autonomy:{tmp_path}")
    both, alone = fly_flights(flights, method, config), fly_flights(flights[1:], method, config)
    # The free course: a metre a second faster at every decision, off the ground though the vehicle leans.
    moved = both.position - both.mission.start
    assert (moved[:, 0] > 1.0).all()
    assert (np.abs(moved[:, 2]) < 0.5).all()
    assert [int(n) for n in both.planner_log["replans"]] == [23, 23]
    assert both.trace[1] == alone.trace[0]


def test_columns_of_a_view_lie_alike_to_both_sides_of_the_nose() -> None:
    axes = level._directions().reshape(level.ROWS, level.COLUMNS, 3)
    np.testing.assert_allclose(axes[:, ::-1] * [1.0, -1.0, 1.0], axes, atol=1e-12)
    azimuth = np.degrees(np.arctan2(axes[0, :, 1], axes[0, :, 0]))
    np.testing.assert_allclose(azimuth[[0, 1, -1]], [47.5, 46.5, -47.5])
