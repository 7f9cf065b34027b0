"""Proposals under a certificate: what leads into a wall never flies, what is good flies, and who flew is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.planners.known_free_cases import ConeMaps, box_world, clearance, fly, mission_of

from airworthy.benchmarks.navigation.methods import method_of
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.avoid_policy.contract import AvoidContract, FleetTold, tensor_shapes
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy
from airworthy.pilots.network_files import write_sealed
from airworthy.planners.agile_autonomy import Student, StudentContract
from airworthy.planners.agile_autonomy.layers import tensor_shapes as student_shapes
from airworthy.planners.agile_autonomy.sight import encoded, reference_directions, state_rows
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.hybrid import (
    AvoidProposer,
    HybridPlanner,
    HybridSettings,
    MapsAndImages,
    StudentProposer,
    read_proposer,
)
from airworthy.planners.hybrid.planner import COUNTS, proposed_trajectories
from airworthy.planners.hybrid.proposers import TIMES
from airworthy.planners.known_free import KnownFreePlanner, KnownFreeSettings
from airworthy.planners.known_free.limits import limits_of

START, GOAL = np.array([[1.5, 5.0, 1.2]]), np.array([[18.5, 5.0, 1.2]])
SIZE = (20.0, 10.0, 3.0)
OPEN = box_world(SIZE)
WALL = box_world(SIZE, (9.5, 10.3, 3.0, 10.0, 0.0, 3.1))


class Scripted:
    """Proposes what a function says."""

    name, title, work = "told", "what it was told", "policy_inferences"

    def __init__(self, points: Any):
        self._points = points
        self.asked = 0

    def reset(self, mission: Mission) -> None:
        """Nothing to begin."""

    def update(self, motion: Motion) -> None:
        """Nothing is kept."""

    def propose(self, ids: ArrayIndex, motion: Motion, images: Array) -> Array:
        """One mode for each flight."""
        self.asked += len(ids)
        return np.stack([self._points(motion.position[k])[None] for k in ids])


class SeenMaps(ConeMaps):
    """Maps that count images, as a hybrid wants to know."""

    @property
    def seen(self) -> ArrayInt:
        """How many have arrived, (n,)."""
        return self.images


def _into_the_wall(position: Array) -> Array:
    """To the wall's middle, and through it."""
    return np.array([9.9, 6.0, 1.2]) + 0.1 * TIMES[:, None] * np.sign(9.9 - position[0])


def _to_the_goal(position: Array) -> Array:
    way = GOAL[0] - position
    return position + way / np.linalg.norm(way) * 2.5 * TIMES[:, None]


def _flown(
    world: ArrayBool, points: Any, options: HybridSettings | None = None, limit: float = 20.0
) -> tuple[HybridPlanner, Any]:
    planner = HybridPlanner(Scripted(points), options=options)
    mission = mission_of([world], START, GOAL, ("virt_05",))
    return planner, fly(planner, [world], mission, limit, maps=SeenMaps([world]))


@pytest.mark.slow
def test_a_proposal_into_a_wall_never_flies() -> None:
    """Also where nothing but the certificate stands against it; and the flight is the planner's own, to the bit."""
    planner, flown = _flown(WALL, _into_the_wall, HybridSettings(beside=100.0, loss=1000.0))
    assert planner.counts["proposals"][0] > 20
    assert planner.counts["proposals_flown"][0] == 0
    assert flown.arrived.all()
    assert clearance(WALL, flown.tracks[0]) > 0.3
    alone = fly(KnownFreePlanner(), [WALL], mission_of([WALL], START, GOAL, ("virt_05",)), 20.0)
    assert np.array_equal(alone.tracks[0], flown.tracks[0])


def test_a_good_proposal_flies_and_is_counted() -> None:
    planner, flown = _flown(OPEN, _to_the_goal)
    assert flown.arrived.all()
    assert flown.blind == 0
    counts = {name: int(planner.counts[name][0]) for name in COUNTS}
    assert counts["proposals_flown"] > 20
    assert counts["proposals_flown"] + counts["plans_flown"] >= counts["proposals"] * 0.5
    # The last two metres are the planner's.
    assert counts["plans_flown"] >= 1


def test_counts_are_those_of_the_work_that_is_told() -> None:
    planner, told = HybridPlanner(Scripted(_to_the_goal)), dict.fromkeys((*COUNTS, "policy_inferences"), 0.0)
    inner = planner.update

    def update(motion: Motion, maps: Any, active: ArrayBool) -> dict[str, Any]:
        report = inner(motion, maps, active)
        for name in told:
            told[name] += float(report["work"][name].sum())
        return report

    planner.update = update  # type: ignore[method-assign]
    fly(planner, [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 4.0, maps=SeenMaps([OPEN]))
    assert {name: told[name] for name in COUNTS} == {name: float(planner.counts[name].sum()) for name in COUNTS}
    assert isinstance(planner.proposer, Scripted)
    assert told["policy_inferences"] == planner.proposer.asked > 20


def test_a_proposal_that_loses_time_is_not_flown() -> None:
    """Certified as it would be: it stays where it is."""
    planner, flown = _flown(OPEN, lambda position: position + 0.0 * TIMES[:, None], limit=4.0)
    assert planner.counts["proposals"][0] > 20
    assert planner.counts["proposals_flown"][0] == 0
    assert flown.tracks[0][-1, 0] > 5.0


def test_what_is_no_number_is_no_proposal() -> None:
    planner, flown = _flown(OPEN, lambda position: np.full((10, 3), np.nan), limit=2.0)
    assert planner.counts["proposals"][0] == planner.counts["proposals_flown"][0] == 0
    assert planner.counts["plans_flown"][0] >= 3
    assert flown.tracks[0][-1, 0] > 2.5


def test_trajectories_of_a_proposal_keep_the_limits_and_stop() -> None:
    mission = mission_of([OPEN], START, GOAL, ("real_12",))
    limits = limits_of(mission, KnownFreeSettings()).of(0)
    start = np.array([START[0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    path = START[0] + np.arange(60)[:, None] * np.array([0.1, 0.0, 0.0])
    points = START[0] + np.stack([1.5 * TIMES, 0.3 * TIMES, 0.0 * TIMES], 1)
    made = proposed_trajectories(start, points[None], 0.05, path, 59, limits, HybridSettings(loss=1000.0), 0.0)
    assert len(made) >= 3
    assert (made.speed <= 1.02 * limits.speed).all()
    first = made.trajectory(0, 7.0)
    track = first.points(0.0, 0.05, float(made.speed[0]))
    np.testing.assert_allclose(track[0], START[0], atol=1e-9)
    stop = first.coefficients[1]
    rate = (np.arange(1, 6)[:, None] * stop[1:] * first.duration[1] ** np.arange(5)[:, None]).sum(0)
    np.testing.assert_allclose(rate, 0.0, atol=1e-9)  # at rest behind it
    late = proposed_trajectories(start, points[None], 0.9, path, 59, limits, HybridSettings(loss=1000.0), 0.0)
    assert len(late) == 0


def test_what_cannot_be_flown_is_refused(tmp_path: Path) -> None:
    planner = HybridPlanner(Scripted(_to_the_goal))
    mission = mission_of([OPEN], START, GOAL, ("virt_05",))
    planner.reset(mission)
    still = Motion(np.zeros(1), START, np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]))
    with pytest.raises(AirworthyError, match="maps and images"):
        planner.update(still, ConeMaps([OPEN]), np.ones(1, bool))
    with pytest.raises(AirworthyError, match="hybrid:FOLDER"):
        HybridPlanner.for_body(0.3)
    with pytest.raises(AssetError):
        read_proposer(tmp_path / "nothing")
    write_sealed(tmp_path / "contract.json", {"kind": "somebody else's"})
    with pytest.raises(AirworthyError, match="somebody else"):
        read_proposer(tmp_path)
    with pytest.raises(AirworthyError, match="loss"):
        HybridSettings(loss=-1.0)
    with pytest.raises(AirworthyError, match="depth images"):
        MapsAndImages(planner.settings, mission).update([0], np.ones((1, 7, 9)), START, np.array([[0.0, 0, 0, 1]]))


def _still(yaw: float = 0.0) -> Motion:
    turned = np.array([[0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)]])
    return Motion(np.zeros(1), START.copy(), np.array([[1.0, 0.0, 0.0]]), turned)


def test_a_student_proposes_its_modes_by_their_scores() -> None:
    contract = StudentContract()
    rng = np.random.default_rng(0)
    weights = {k: (0.05 * rng.normal(size=shape)).astype(np.float32) for k, shape in student_shapes(contract.modes).items()}
    student = Student(contract, weights)
    proposer = StudentProposer(student)
    proposer.reset(mission_of([OPEN], START, GOAL, ("virt_05",)))
    motion, images = _still(), np.full((1, 240, 320), 3.0, np.float32)
    proposer.update(motion)
    found = proposer.propose(np.array([0]), motion, images)
    assert found.shape == (1, contract.modes, 10, 3)
    direction = reference_directions(START, START, GOAL, np.array([4.0]))
    state = state_rows(motion.attitude, motion.velocity, np.zeros((1, 3)), direction)
    score, local = student(encoded(images, contract.reach), state)
    best = int(np.abs(score[0]).argmin())
    np.testing.assert_allclose(found[0, 0], START[0] + local[0, best], atol=1e-6)


def test_an_avoiding_policy_proposes_where_its_acceleration_leads() -> None:
    """Of zeros it asks for nothing: straight on, whatever its heading; told a fleet, within the vehicle's thrust."""
    for fleet in (None, FleetTold("identified", "virtual")):
        contract = AvoidContract(8, fleet=fleet)
        weights = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(contract).items()}
        weights["out.bias"] = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
        proposer = AvoidProposer(AvoidPolicy(contract, weights))
        proposer.reset(mission_of([OPEN], START, GOAL, ("real_09",)))
        images = np.full((1, 240, 320), 3.0, np.float32)
        found = proposer.propose(np.array([0]), _still(np.pi / 2.0), images)
        assert found.shape == (1, 1, 10, 3)
        # Four metres per second squared to the left of a nose along y, for half a second.
        np.testing.assert_allclose(found[0, 0, 4], START[0], atol=1e-6)
        np.testing.assert_allclose(found[0, 0, 9], START[0] + [-0.5, 0.0, 0.0], atol=1e-6)
    with pytest.raises(AirworthyError, match="does not tell"):
        proposer.reset(mission_of([OPEN], START, GOAL))


@pytest.mark.parametrize(
    ("word", "write"),
    [
        ("hybrid", "hybrid:FOLDER, or hybrid:agile_autonomy"),
        ("hybrid:", "hybrid:FOLDER"),
        ("agile_autonomy:", "agile_autonomy:FOLDER"),
        ("avoid:", "avoid:FOLDER"),
    ],
)
def test_a_word_without_its_folder_is_told_so(word: str, write: str) -> None:
    with pytest.raises(AirworthyError, match=f"^Pilot '{word}' names no folder of a trained network; write {write}"):
        method_of(word)
