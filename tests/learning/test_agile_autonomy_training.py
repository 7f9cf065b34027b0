"""A student's training: what is flown, the distances that scores learn, stopping and going on, what its folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from airworthy.core.errors import AirworthyError  # noqa: E402
from airworthy.core.frames import from_euler, to_matrix  # noqa: E402
from airworthy.learning.agile_autonomy import StudentOptions, StudentProtocol, run, training  # noqa: E402
from airworthy.learning.agile_autonomy.instants import (  # noqa: E402
    FARTHEST,
    FIELD_STEP,
    FIELD_ZERO,
    Instants,
    joined,
    stored_field,
)
from airworthy.learning.agile_autonomy.looks import mirrored  # noqa: E402
from airworthy.learning.agile_autonomy.poses import posed  # noqa: E402
from airworthy.learning.agile_autonomy.rollouts import collected, plan_of  # noqa: E402
from airworthy.learning.agile_autonomy.training import StudentTraining, learning_rate_share  # noqa: E402
from airworthy.learning.timed_training import StepStopped  # noqa: E402
from airworthy.planners.agile_autonomy import read_student  # noqa: E402
from airworthy.planners.agile_autonomy.layers import STEPS, StudentNetwork, tensor_shapes  # noqa: E402
from airworthy.planners.agile_autonomy.level import COLUMNS, ROWS, UNSEEN, level_views  # noqa: E402
from airworthy.planners.sampling_expert.sampling import TIMES  # noqa: E402

SMALL = StudentOptions(rounds=2, batches=3, flights=2, epochs=1, last_epochs=2, batch=4, cycle=10)


def instants(number: int, count: int = 10) -> Instants:
    """Instants whose expert turns to the side on which their view is free; a wall stands behind y = 0."""
    rng = np.random.default_rng(number)
    left = rng.random(count) < 0.5
    views = np.zeros((count, ROWS, COLUMNS), np.uint8)
    views[left, :, COLUMNS // 2 :], views[~left, :, : COLUMNS // 2] = 200, 200
    state = np.zeros((count, 18), np.float32)
    state[:, [0, 4, 8]], state[:, 9], state[:, 15] = 1.0, 3.0, 1.0
    side = np.where(left, 1.0, -1.0)
    expert = np.zeros((count, 3, 10, 3), np.float32)
    expert[..., 0] = 3.0 * TIMES
    expert[..., 1] = side[:, None, None] * TIMES**2 * np.array([1.0, 1.1, 0.9])[:, None]
    away = np.broadcast_to(FIELD_ZERO + np.clip((1.0 - 0.2 * np.arange(20)) / FIELD_STEP, -96, 159), (40, 20))
    wall = np.repeat(away.astype(np.uint8)[..., None], 20, axis=2)
    return Instants(
        views,
        state,
        expert,
        np.full((count, 3), (0.0, 0.0, 1.0), np.float32),
        np.zeros(count, np.int64),
        (wall,),
        np.array([[-1.0, -2.0, 0.0]]),
        {"flights": 2, "success": number % 3, "unlabelled": 0, "helped": 0, "decisions": count},
    )


@pytest.fixture
def flown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Batches that were asked for, and whether a student flew them; instants of our own come back."""
    asked: list[tuple[int, bool]] = []

    def made(options: StudentOptions, number: int, student: Any, alive: Any = lambda: None) -> Instants:
        alive()
        asked.append((number, student is not None))
        return instants(number)

    monkeypatch.setattr(training, "collected", made)
    return asked


# ---- what is flown ----------------------------------------------------------------------------------------------------------


def test_plans_are_functions_of_the_seed_and_never_the_benchmarks_own_layouts() -> None:
    options = StudentOptions()
    plans = [plan_of(options, k) for k in range(24)]
    assert plans == [plan_of(options, k) for k in range(24)]
    assert plans[0] != plan_of(StudentOptions(seed=1), 0)
    assert [plan.scenario for plan in plans[:5]] == ["forest", "random_cylinder", "urban", "perlin", "forest"]
    assert len({plan.layouts for plan in plans}) == 24
    assert min(plan.layouts for plan in plans) > 0
    forest = sorted(plan.speed for plan in plans if plan.scenario == "forest")
    assert forest[0] >= options.slowest
    assert forest[-1] <= options.fastest
    assert np.diff(forest).max() < 2.5
    assert len({flight.vehicle for plan in plans for flight in plan.flights}) > 18


def test_options_that_cannot_be_used_are_told() -> None:
    with pytest.raises(AirworthyError, match="Speed caps go from 9 to 8 m/s"):
        StudentOptions(slowest=9.0)
    with pytest.raises(AirworthyError, match="Unknown scenario 'woods'"):
        StudentOptions(scenarios=("woods",))
    with pytest.raises(AirworthyError, match="at least one scenario"):
        StudentOptions(scenarios=())
    with pytest.raises(AirworthyError, match=r"expected some from 0.5 to 30 m/s"):
        StudentProtocol(speeds=(4.0, 99.0))
    with pytest.raises(AirworthyError, match="Unknown pilot 'nobody'"):
        run.train_agile_autonomy("nowhere", StudentOptions(), StudentProtocol(baselines=("nobody",)))


def test_distances_are_interpolated_and_their_slopes_in_the_body_frame() -> None:
    item = instants(0, 2)
    # The second vehicle is turned to +y: its x axis points along world y, along which the distance falls by 1 per metre.
    item.state[1, :9] = [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    points = np.array([[[1.0, -0.55, 0.0], [1.0, -1.05, 0.1]], [[-0.55, 0.0, 0.0], [50.0, 0.0, 0.0]]])
    found, slope = item.distances(np.array([0, 1]), points)
    # The first cell's middle lies at y = -1.9, a metre off; farther than the map nothing is known to be near.
    at = np.array([[-0.55, -1.05], [-0.55, 50.0]])
    expected = np.where(at < 10.0, 1.0 - (at + 1.9), FARTHEST)
    np.testing.assert_allclose(found, expected, atol=FIELD_STEP)
    np.testing.assert_allclose(slope[0, :, 1], -1.0, atol=0.05)
    np.testing.assert_allclose(slope[1, 0], [-1.0, 0.0, 0.0], atol=0.05)
    assert (slope[1, 1] == 0.0).all()
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = 1e-4
        ends = [item.distances(np.array([0, 1]), points + sign * step)[0] for sign in (1.0, -1.0)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-4, slope[..., axis], atol=1e-6)


def test_stored_fields_keep_every_second_cell_where_it_was() -> None:
    x = 0.1 * (np.arange(40) + 0.5)
    away = np.broadcast_to((x - 1.0)[:, None, None], (40, 8, 8))
    cells, corner = stored_field(away, np.array([2.0, 0.0, 0.0]), 0.1)
    assert cells.shape == (20, 4, 4)
    middles = corner[0] + 0.2 * (np.arange(20) + 0.5)
    np.testing.assert_allclose(middles, 2.0 + x[::2])
    np.testing.assert_allclose(
        (cells[:, 0, 0].astype(int) - FIELD_ZERO) * FIELD_STEP, np.clip(x[::2] - 1.0, -0.77, FARTHEST), atol=0.005
    )


def test_joined_instants_stay_in_their_own_places() -> None:
    parts = [instants(1, 4), instants(2, 6)]
    parts[1].fields[0][:] = 0
    whole, points = joined(parts), np.full((10, 1, 3), (1.0, -1.0, 0.0))
    found = whole.distances(np.arange(10), points)[0]
    np.testing.assert_array_equal(found[:4], parts[0].distances(np.arange(4), points[:4])[0])
    np.testing.assert_allclose(found[4:], -FIELD_ZERO * FIELD_STEP)
    np.testing.assert_array_equal(whole.views[4:], parts[1].views)
    assert len(parts[0].none()) == 0


def test_instants_come_back_from_their_arrays() -> None:
    item = instants(3)
    back = Instants.of_arrays(item.arrays(), item.figures)
    for name, value in item.arrays().items():
        np.testing.assert_array_equal(back.arrays()[name], value)
    broken = item.arrays()
    broken["state"] = broken["state"][:, :5]
    with pytest.raises(AirworthyError, match="do not fit together: state"):
        Instants.of_arrays(broken, {})
    del broken["state"]
    with pytest.raises(AirworthyError, match="lack 'state'"):
        Instants.of_arrays(broken, {})


@pytest.mark.slow
def test_the_expert_labels_where_it_flies() -> None:
    options = StudentOptions(scenarios=("random_cylinder",), flights=1, samples=128, vehicles=("real_03",))
    found = collected(options, 0, None)
    assert len(found) > 20
    assert found.figures["helped"] == found.figures["decisions"]
    # Ahead, within what is flown in a second, and off everything by the expert's own margin, to a cell.
    assert (found.expert[:, 0, -1, 0] > 0.0).mean() > 0.9
    assert np.linalg.norm(found.expert[:, 0, -1], axis=1).max() < 10.0
    assert found.distances(np.arange(len(found)), found.expert[:, 0])[0].min() > 0.1
    again = collected(options, 0, None)
    np.testing.assert_array_equal(again.views, found.views)
    np.testing.assert_array_equal(again.expert, found.expert)


@pytest.mark.slow
def test_poses_are_drawn_off_everything_and_the_expert_knows_a_way() -> None:
    options = StudentOptions(scenarios=("forest",), flights=1, samples=64, poses=40)
    found = posed(options, 0)
    assert 10 < len(found) <= 40
    rows = np.arange(len(found))
    assert found.distances(rows, np.zeros((len(found), 1, 3)))[0].min() > 0.3
    assert found.distances(rows, found.expert[:, 0])[0].min() > 0.2
    assert (found.views == UNSEEN).any()
    assert (found.views[found.views != UNSEEN] > 0).any()
    speed = np.linalg.norm(found.state[:, 9:12], axis=1)
    assert speed.max() <= options.fastest + 1.0
    assert np.ptp(speed) > 3.0
    again = posed(options, 0)
    for name, value in found.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], value)


def test_a_mirror_changes_what_it_should_and_nothing_else() -> None:
    rng = np.random.default_rng(4)
    turn = np.asarray(to_matrix(from_euler(0.3, -0.2, 1.1)))
    velocity, rate, ahead = rng.normal(size=(3, 3))
    state = np.concatenate([turn.reshape(-1), velocity, rate, ahead])[None].astype(np.float32)
    views, expert = rng.integers(0, 251, (1, 4, 6)).astype(np.uint8), rng.normal(size=(1, 3, 10, 3)).astype(np.float32)
    seen, known, taught = mirrored(np.array([True]), views, state, expert)
    np.testing.assert_array_equal(seen[0], views[0, :, ::-1])
    # The mirrored vehicle rolls and turns to the other side, and pitches as before.
    np.testing.assert_allclose(known[0, :9].reshape(3, 3), to_matrix(from_euler(-0.3, -0.2, -1.1)), atol=1e-6)
    np.testing.assert_allclose(known[0, 9:12], velocity * [1.0, -1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(known[0, 12:15], rate * [-1.0, 1.0, -1.0], rtol=1e-6)
    np.testing.assert_allclose(taught[..., 1], -expert[..., 1])
    for same, given in zip(mirrored(np.array([False]), views, state, expert), (views, state, expert), strict=True):
        np.testing.assert_array_equal(same, given)


def test_a_mirrored_place_looks_like_the_mirrored_view() -> None:
    # The camera's middle is not quite its image's: at most two columns from an edge between near and far may differ.
    image = np.full((1, 224, 224), STEPS, np.uint8)
    image[:, 40:150, 30:70] = 100
    turn = np.asarray(to_matrix(np.asarray(from_euler(0.4, 0.2, -0.7))))
    other = np.asarray(to_matrix(np.asarray(from_euler(-0.4, 0.2, 0.7))))
    states = np.zeros((2, 1, 18))
    states[0, 0, :9], states[1, 0, :9] = turn.reshape(-1), other.reshape(-1)
    plain, mirror = level_views(image, states[0], STEPS), level_views(image[:, :, ::-1], states[1], STEPS)
    assert (plain == mirror[:, :, ::-1]).mean() > 0.95


def test_what_the_network_is_told_does_not_turn_with_the_world() -> None:
    rng = np.random.default_rng(3)
    weights = {name: rng.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:]))) for name, shape in tensor_shapes(3).items()}
    network, view = StudentNetwork(weights, 3, np.float64), rng.integers(0, 256, (1, ROWS, COLUMNS)).astype(np.uint8)
    rows = []
    for yaw in (0.2, 2.0):
        state = np.concatenate([np.asarray(to_matrix(np.asarray(from_euler(0.3, -0.2, yaw)))).reshape(-1), np.arange(9.0)])
        rows.append(network.of_views(view, state[None]))
    np.testing.assert_allclose(rows[0][0], rows[1][0], atol=1e-12)
    np.testing.assert_allclose(rows[0][1], rows[1][1], atol=1e-12)


# ---- learning ---------------------------------------------------------------------------------------------------------------


def test_learning_rate_falls_by_cosines_that_begin_again() -> None:
    assert learning_rate_share(0, 100) == pytest.approx(1.0)
    assert learning_rate_share(50, 100) == pytest.approx(0.01 + 0.99 * 0.5)
    assert learning_rate_share(100, 100) == pytest.approx(0.01 + 0.99 * 0.75)
    assert learning_rate_share(175, 100) == pytest.approx(0.01 + 0.99 * 0.375)
    assert learning_rate_share(250, 100) == pytest.approx(0.01 + 0.99 * 0.75**2)


@pytest.mark.slow
def test_learns_to_turn_where_it_is_free_and_blind_ones_do_not(flown: list[tuple[int, bool]]) -> None:
    # One mode, which cannot be on both sides at once.
    how: dict[str, Any] = {"rounds": 1, "batches": 2, "last_epochs": 80, "batch": 10, "modes": 1, "clearance": 0.0}
    seeing, blind = (StudentTraining(StudentOptions(**how, blind=flag)) for flag in (False, True))
    for work in (seeing, blind):
        while not work.finished:
            work.step()
    assert flown == [(0, False), (1, False)] * 2
    assert blind.contract.blind
    assert not seeing.contract.blind
    item = instants(7)
    with torch.no_grad():
        errors = [float(work._losses(item, np.arange(10), np.zeros(10, bool))[0]) for work in (seeing, blind)]
    assert errors[0] < 0.3 * errors[1]


def test_goes_on_to_the_same_bits_and_refuses_changed_flights(flown: list[tuple[int, bool]], tmp_path: Path) -> None:
    whole = StudentTraining(SMALL)
    while not whole.finished:
        whole.step()
    assert flown == [(0, False), (1, False), (2, False), (3, True), (4, True), (5, True)]
    first = StudentTraining(SMALL)
    first.keep_in(tmp_path)
    for _ in range(5):
        first.step()
    saved = first.save()
    second = StudentTraining(SMALL)
    second.keep_in(tmp_path)
    second.restore(saved)
    while not second.finished:
        second.step()
    for name, value in whole.weights.items():
        np.testing.assert_array_equal(second.weights[name], value)
    path = tmp_path / "data" / "batch_0001.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    third = StudentTraining(SMALL)
    third.keep_in(tmp_path)
    with pytest.raises(AirworthyError, match="changed or damaged"):
        third.restore(saved)
    second.forget()
    assert not path.parent.exists()


def test_an_epoch_that_is_stopped_is_learnt_anew(flown: list[tuple[int, bool]]) -> None:
    whole, cut = StudentTraining(SMALL), StudentTraining(SMALL)
    for work in (whole, cut):
        for _ in range(3):
            work.step()
    left = [2]

    def stopped() -> bool:
        left[0] -= 1
        return left[0] < 0

    cut.stopped = stopped
    with pytest.raises(StepStopped):
        cut.step()
    assert (cut.iteration, cut.gradient_steps) == (3, 0)
    cut.stopped = lambda: False
    assert cut.step() == whole.step()


def test_folder_of_a_training(flown: list[tuple[int, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(student: Any, protocol: StudentProtocol, quiet: bool) -> list[dict[str, Any]]:
        told = {"pilot": "student", "scenario": "forest", "speed_m_s": 4.0, "flights": 20, "success": 15, "collision": 4}
        speeds = {"mean_speed_m_s": 3.1, "top_speed_m_s": None}
        return [{**told, "success_interval_percent": [53.1, 88.8], **speeds}]

    monkeypatch.setattr(run, "judged", rows)
    done = run.train_agile_autonomy(tmp_path, SMALL, command="airworthy train agile_autonomy")
    assert done.finished
    assert done.iteration == SMALL.iterations == 9
    assert not (tmp_path / "data").exists()
    assert read_student(tmp_path).contract.training["instants"] == 60
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["instants"] == 60
    assert [row["round"] for row in found["flown"]] == [0, 0, 0, 1, 1, 1]
    page = (tmp_path / "report.html").read_text()
    assert "student, forest, 4 m/s" in page
    again = run.train_agile_autonomy(tmp_path, SMALL)
    assert again.figures["flights"] == found["flights"]
    with pytest.raises(AirworthyError, match="flights was 2, not 4"):
        run.train_agile_autonomy(tmp_path, StudentOptions(**{**vars(SMALL), "flights": 4}))
