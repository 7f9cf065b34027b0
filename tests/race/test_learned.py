"""A learned race pilot: what it sees and commands, the expert that it learns of, its folder, and a stopped training."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.distill.training import imitation_gradient
from airworthy.race import load_race, race_class
from airworthy.race.benchmark.flight import RaceFlight, fly_races
from airworthy.race.briefing import BeaconFrame
from airworthy.race.learned import contract
from airworthy.race.learned.batch import CourseBatch, FlightNoise
from airworthy.race.learned.config import RacePolicyOptions
from airworthy.race.learned.contract import read_race_folder, write_race_folder
from airworthy.race.learned.observing import RacerView, commanded, network_outputs, observed_numbers, wanted_outputs
from airworthy.race.learned.pilot import PolicyPilot
from airworthy.race.learned.reference import MovedReference, eased
from airworthy.race.learned.run import train_race
from airworthy.race.learned.training import RacePolicyTraining, course_flights
from airworthy.race.onboard import Onboard, onboard_facts
from airworthy.race.pilots.catalogue import PilotEntry, race_pilot
from airworthy.race.planning.smooth import moved_plan
from airworthy.race.wall.doors import pilot_entry
from airworthy.sensors import rig
from airworthy.vehicles import vehicle

RACE = load_race("alphapilot")
FEW = RacePolicyOptions(trainer="imitation", hidden=8, rounds=3, flights=4, flight_s=0.2, kept=40, steps=6, batch=16)
GATES = len(RACE.order)


@pytest.fixture(scope="module")
def course() -> Any:
    """Flights of AlphaPilot, with the expert at the default pace."""
    return course_flights(RacePolicyOptions())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a policy that learnt nothing."""
    pytest.importorskip("torch")
    training = RacePolicyTraining(FEW)
    return write_race_folder(tmp_path_factory.mktemp("policy"), training.contract, training.weights)


# ---- Seen and commanded -----------------------------------------------------------------------------------------------------


def situation(rng: np.random.Generator, count: int) -> tuple[Array, Array, Array, Array, Any]:
    state = rng.normal(size=(count, 13)) * 5.0
    state[:, 6:10] = frames.normalize(state[:, 6:10])
    corners = rng.normal(size=(count, GATES, 4, 3)) * 20.0
    sigma, unseen = rng.uniform(0.0, 2.0, (count, GATES, 2)), rng.uniform(0.0, 4.0, (count, GATES))
    return state, corners, sigma, unseen, np.array([0, 1, GATES - 2, GATES - 1, GATES])[:count]


def test_what_is_seen_is_what_the_contract_says() -> None:
    """One number after the other, by plain loops."""
    rng = np.random.default_rng(0)
    view = RacerView.of(np.array([1.0, 2.0, 3.0]), 0.7, GATES)
    state, corners, sigma, unseen, following = situation(rng, 5)
    seen = view.observe(state, frames.to_matrix(state[:, 6:10]), corners, sigma, unseen, following)
    assert seen.shape == (5, observed_numbers(GATES))
    for k, row in enumerate(seen):
        inverse = frames.to_matrix(state[k, 6:10]).T
        following_gate = min(int(following[k]), GATES - 1)
        ahead = [min(following_gate + j, GATES - 1) for j in range(3)]
        before = corners[k, following_gate - 1] if following_gate else view.start
        expected = [*(0.1 * inverse @ state[k, 3:6]), *(inverse @ [0.0, 0.0, -1.0]), *(0.2 * state[k, 10:])]
        for point in np.concatenate([before, *(corners[k, gate] for gate in ahead)]):
            away = inverse @ (point - state[k, :3])
            expected += (2.0 * away / (8.0 + np.linalg.norm(away))).tolist()
        expected += [min(2.0 * sigma[k, gate, axis], 2.0) for gate, axis in product(ahead, range(2))]
        expected += [min(0.5 * unseen[k, gate], 1.0) for gate in ahead]
        expected += [float(gate == following_gate) for gate in range(GATES)]
        np.testing.assert_allclose(row, np.array(expected, np.float32), rtol=0.0, atol=1e-6)


def test_what_is_seen_does_not_depend_on_where_north_is() -> None:
    rng = np.random.default_rng(1)
    state, corners, sigma, unseen, _ = situation(rng, 3)
    following = np.array([1, 4, 10])  # behind the start, whose square does not turn along
    turn = frames.from_euler(0.0, 0.0, 1.1)
    turned = state.copy()
    turned[:, :3], turned[:, 3:6] = frames.rotate(turn, state[:, :3]), frames.rotate(turn, state[:, 3:6])
    turned[:, 6:10] = frames.multiply(turn, state[:, 6:10])
    view = RacerView.of(np.zeros(3), 0.0, GATES)
    both = [
        view.observe(s, frames.to_matrix(s[:, 6:10]), c, sigma, unseen, following)
        for s, c in ((state, corners), (turned, frames.rotate(turn, corners)))
    ]
    np.testing.assert_allclose(both[0], both[1], rtol=0.0, atol=1e-6)


def test_outputs_are_commands_the_other_way_round() -> None:
    rng = np.random.default_rng(0)
    outputs = rng.uniform(-1.0, 1.0, (20, 4)).astype(np.float32)
    np.testing.assert_allclose(wanted_outputs(*commanded(outputs, 37.0), 37.0), outputs, atol=1e-6)
    thrust, alpha = commanded(np.array([[-1.0, 1.0, -1.0, 1.0]], np.float32), 37.0)
    assert thrust.tolist() == [0.0]
    assert alpha.tolist() == [[100.0, -100.0, 50.0]]
    assert wanted_outputs(np.array([50.0]), np.array([[-200.0, 0.0, 0.0]]), 37.0).tolist() == [[1.0, -1.0, 0.0, 0.0]]


def test_products_in_torch_are_those_of_numpy() -> None:
    pytest.importorskip("torch")
    from airworthy.race.learned.descent import error_gradient, outputs

    rng = np.random.default_rng(0)
    shapes = ((8, 77), (8,), (8, 8), (8,), (4, 8), (4,))
    weights: list[ArrayF32] = [(0.3 * rng.normal(size=s)).astype(np.float32) for s in shapes]
    seen, wanted = (rng.uniform(-1.0, 1.0, (30, n)).astype(np.float32) for n in (77, 4))
    np.testing.assert_allclose(outputs(weights, seen), network_outputs(weights, seen), rtol=0.0, atol=1e-6)
    _, expected = imitation_gradient([w.astype(np.float64) for w in weights], seen, wanted)  # type: ignore[misc]
    for mine, theirs in zip(error_gradient(weights, seen, wanted), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-7)


# ---- The expert -------------------------------------------------------------------------------------------------------------


def test_the_reference_is_the_moved_plan_wherever_it_is_asked_for(course: Any) -> None:
    """Places and velocities of `moved_plan`'s nodes, and its attitudes there; its slope is its velocity."""
    rng, nominal = np.random.default_rng(0), course.reference.plan
    shifts = rng.uniform(-1.0, 1.0, (GATES, 3)) * [1.0, 1.0, 0.0]
    moved = moved_plan(nominal, shifts, 1.12)
    reference = MovedReference(nominal, 1.12)
    time = np.concatenate([[0.0], np.cumsum(moved.steps)])[1:-1]
    place, velocity, _, _ = reference.path(time, np.tile(shifts, (len(time), 1, 1)))
    # Lines between samples of 2 ms at accelerations up to 40 m/s^2 and 300 m/s^3 of change: a^2 dt / 8 and its slope.
    np.testing.assert_allclose(place, moved.states[1:-1, :3], rtol=0.0, atol=4e-5)
    np.testing.assert_allclose(velocity, moved.states[1:-1, 3:6], rtol=0.0, atol=5e-3)
    h = 1e-3
    around = [reference.path(time + side, np.tile(shifts, (len(time), 1, 1)))[0] for side in (-h, h)]
    np.testing.assert_allclose((around[1] - around[0]) / (2.0 * h), velocity, rtol=0.0, atol=0.1)
    states, _, _ = reference.at(time, np.tile(shifts, (len(time), 1, 1)), 0.03)
    off = frames.to_rotation_vector(
        frames.canonical(frames.multiply(frames.conjugate(states[:, 6:10]), moved.states[1:-1, 6:10]))
    )
    # Thrust at nodes: a mean here, that of the step behind there; only where gates moved does it turn anything.
    assert np.degrees(np.linalg.norm(off, axis=1)).max() < 8.0
    straight = MovedReference(nominal, 1.0).at(time / 1.12, np.zeros((len(time), GATES, 3)), 0.0)[0]
    off = frames.to_rotation_vector(
        frames.canonical(frames.multiply(frames.conjugate(straight[:, 6:10]), nominal.states[1:-1, 6:10]))
    )
    assert np.degrees(np.linalg.norm(off, axis=1)).max() < 0.5


def test_legs_are_slowed_where_gates_may_move_too_far(course: Any) -> None:
    """The pace is a clock of the plan's: flown everywhere alike it is a stretch, and places are what velocities lead to."""
    plan, zero = course.reference.plan, np.zeros((200, GATES, 3))
    bounds = course.briefing.bound[:, :2]
    slow = eased(plan, bounds, 1.4)
    assert [course.briefing.gates[k] for k in np.flatnonzero(slow == slow.max())] == ["Gate1", "Gate22"]
    assert slow.max() == pytest.approx(1.4)
    assert slow[[5, 8]] == pytest.approx([1.1, 1.1])
    np.testing.assert_array_equal(eased(plan, 0.0 * bounds, 1.4), np.ones(GATES))
    time = np.linspace(0.1, 14.0, 200)
    alike = MovedReference(plan, 1.0, slow=np.full(GATES, 1.1)), MovedReference(plan, 1.1)
    for mine, theirs in zip(*(one.path(time, zero) for one in alike), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=1e-9)
    reference = MovedReference(plan, 1.05, slow=slow)
    # Eased legs take longer, and the whole as much as all of them.
    assert reference.legs[6] > 1.05 * 1.3 * plan.legs[6]
    assert reference.duration == pytest.approx(reference.legs.sum())
    fine = np.arange(0.0, reference.duration, 1e-3)
    place, velocity, _, _ = reference.path(fine, np.zeros((len(fine), GATES, 3)))
    reached = place[0] + np.vstack([np.zeros(3), np.cumsum(0.5 * (velocity[1:] + velocity[:-1]), axis=0) * 1e-3])
    # Trapezoids of 1 ms err by a jerk of 1000 m/s^3 times h^2 / 12 a second; lines between samples of places by 0.02 mm.
    np.testing.assert_allclose(reached, place, rtol=0.0, atol=2e-3)


def test_crossings_keep_off_the_edges(course: Any) -> None:
    reference, gates = course.reference, course.gates
    place = reference.path(reference.ends, np.zeros((GATES, GATES, 3)))[0] - gates.center
    for axis, half in ((gates.left, gates.half[:, 0]), (gates.up, gates.half[:, 1])):
        off = np.abs(np.sum(place * axis, axis=1))
        assert np.all(off <= np.maximum(half - RacePolicyOptions().spare, 0.0) + 1e-3)


def test_the_expert_flies_through_gates_that_moved(course: Any) -> None:
    """In flights from the start, through the first gate, which is passed at 2.2 s."""
    zero = np.zeros((6, 4), np.float32)
    flown = course.fly(lambda seen: zero, np.random.default_rng(3), 6, 2.5, by_expert=1.0, on_the_way=0.0, keep_every=60)
    assert (flown.lost, flown.crossed, flown.hit) == (0, 6, 0)
    assert np.isnan(flown.finish).all()
    assert flown.seen.shape == (60, observed_numbers(GATES))
    # Sigma of Gate10, seen all the way, falls; the rest of the course is as unknown as it was.
    first = 9 + 48
    assert np.all(flown.seen[6 * 7 : 6 * 8, first] < flown.seen[:6, first])


def test_flights_are_those_of_their_numbers(course: Any) -> None:
    zero = np.zeros((3, 4), np.float32)

    def fly(seed: int) -> Any:
        return course.fly(lambda seen: zero, np.random.default_rng(seed), 3, 0.2, noise=FlightNoise(1.0, 0.03))

    first, again, other = fly(1), fly(1), fly(2)
    np.testing.assert_array_equal(first.seen, again.seen)
    np.testing.assert_array_equal(first.wanted, again.wanted)
    assert not np.array_equal(first.wanted, other.wanted)


# ---- Learning ---------------------------------------------------------------------------------------------------------------


def test_what_was_saved_goes_on_to_the_same_bits() -> None:
    pytest.importorskip("torch")
    whole, first, second = (RacePolicyTraining(FEW) for _ in range(3))
    costs = [whole.step() for _ in range(3)]
    first.step()
    second.restore(first.save())
    # The window of 40 commands has gone round by now.
    assert [second.step(), second.step()] == costs[1:]
    for mine, others in zip(second.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(mine, others)
    assert second.finished
    assert (second.env_steps, second.samples, second.lost) == (whole.env_steps, whole.samples, whole.lost)


def test_a_folder_that_flies_and_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    few = ["--hidden", "8", "--rounds", "2", "--flights", "2", "--flight-s", "0.2", "--kept", "100", "--steps", "3"]
    asked = ["train", "race", "--out", str(tmp_path), "--trainer", "imitation", *few, "--judged", "2"]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["protocol"]["flights"] == 2
    assert told["decision_us"] > 0.0
    contract, weights = read_race_folder(tmp_path)
    assert contract.training["iterations"] == 2
    assert sum(w.size for w in weights) == told["weights"]
    assert "A learned race pilot" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "checkpoints").exists()
    # Once more: it is finished. Other options are another training.
    assert main(asked) == 0
    assert "finished already" in capsys.readouterr().err
    with pytest.raises(AirworthyError, match=r"stretch was 1\.02, not 1\.3"):
        train_race(tmp_path, replace(FEW, stretch=1.3))


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    whole = train_race(tmp_path / "whole", FEW, 1)
    # Stopped behind the first round, whose checkpoint is written then.
    assert not train_race(tmp_path / "parts", FEW, 1, minutes=1e-6).finished
    parts = train_race(tmp_path / "parts", FEW, 1)
    assert parts.finished
    both = [(done.folder / "weights.safetensors").read_bytes() for done in (whole, parts)]
    assert both[0] == both[1]
    assert whole.figures["gates_passed"] == parts.figures["gates_passed"]


def test_from_python(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    few = {name: getattr(FEW, name) for name in ("trainer", "hidden", "flights", "flight_s", "kept", "steps", "batch")}
    done = aw.train("race", None, tmp_path, rounds=1, judged=1, **few)
    assert done.summary["protocol"]["flights"] == 1
    with pytest.raises(AirworthyError, match="draws itself"):
        aw.train("race", "somewhere", tmp_path)


# ---- Folders, and flights ---------------------------------------------------------------------------------------------------


def test_a_folder_comes_back_as_it_was(folder: Path) -> None:
    contract, weights = read_race_folder(folder)
    training = RacePolicyTraining(FEW)
    assert contract == replace(training.contract, training=contract.training)
    for mine, others in zip(weights, training.weights, strict=True):
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("harm", ["weights", "contract", "missing", "kind"])
def test_a_folder_that_is_damaged_or_another_is_refused(folder: Path, tmp_path: Path, harm: str) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "policy"))
    if harm == "weights":
        data = bytearray((place / "weights.safetensors").read_bytes())
        data[-1] ^= 1
        (place / "weights.safetensors").write_bytes(data)
    elif harm == "contract":
        text = (place / "contract.json").read_text()
        (place / "contract.json").write_text(text.replace('"rate_hz": 240.0', '"rate_hz": 120.0'))
    elif harm == "missing":
        (place / "contract.json").unlink()
    else:
        from airworthy.pilots.network_files import read_contract_table, write_sealed

        table = read_contract_table(place / "contract.json")
        write_sealed(place / "contract.json", {**table, "kind": "motor_policy"})
    said = {"weights": "changed or damaged", "contract": "not as it was sealed", "missing": "does not hold", "kind": "kind"}
    for made in (race_pilot, pilot_entry):
        with pytest.raises(AssetError, match=said[harm]):
            made(f"policy:{place}")


def facts(**changes: Any) -> Any:
    conditions = race_class("noisy")
    lens: Any = rig("flightgoggles_race")["ir_beacons"].projection
    made = onboard_facts(RACE, vehicle(conditions.vehicle), lens, conditions, rates=(960.0, 60.0, 240.0))
    return replace(made, **changes)


def test_another_race_and_another_rate_are_refused(folder: Path) -> None:
    pilot = PolicyPilot(folder)
    pilot.begin(facts())
    known = facts()
    for changes in ({"corners": known.corners + 0.1}, {"start_position": (0.0, 0.0, 1.0)}):
        with pytest.raises(AirworthyError, match="learnt the race 'alphapilot'"):
            pilot.begin(facts(**changes))
    with pytest.raises(AirworthyError, match="240 times a second; it is asked 120"):
        pilot.begin(facts(command_rate=120.0))


class _Recording(PolicyPilot):
    """Keeps what its network saw, and gives up behind a moment."""

    seen: list[Array] = []  # noqa: RUF012 - of the one flight of a test

    def command(self, onboard: Onboard) -> Array:
        if onboard.time >= 0.3:
            raise RuntimeError("enough")
        return super().command(onboard)

    def _track(self, time: float) -> Array:
        self.seen.append(np.concatenate([self._unseen[0], self._sigma[0, :, 0], [time]]))
        return super()._track(time)


def test_it_notices_what_it_sees(folder: Path) -> None:
    _Recording.seen.clear()
    entry = PilotEntry("policy", lambda: _Recording(folder), False, False, 240.0, PolicyPilot.sensors)
    fly_races(RACE, ("nominal",), entry, race_class("noisy"))
    rows = np.array(_Recording.seen)
    # Gate10 stands in front of the start: seen before and in frames, it never is older than some frames, and ever better known.
    assert rows[:, 0].max() < 0.2
    assert rows[-1, GATES] < 0.5 * rows[0, GATES] or rows[0, GATES] < 0.1
    # Gate1 stands behind a wall of the hall.
    assert np.isinf(rows[:, 6]).all()


def test_the_shipped_policy_is_what_the_command_gives() -> None:
    """It was learnt with the defaults of --trainer ppo, on AlphaPilot as it is; whoever changes them trains it anew."""
    pilot = race_pilot("policy").make()
    pilot.begin(facts())
    noted = pilot.contract.training
    options = RacePolicyOptions(trainer="ppo")
    assert noted["options"] == asdict(options)
    assert noted["iterations"] == options.iterations
    place = Path(str(files("airworthy.race.learned").joinpath("alphapilot")))
    assert sum(path.stat().st_size for path in place.iterdir()) < 300_000


@pytest.mark.slow
def test_the_shipped_policy_flies_the_nominal_course() -> None:
    (flown,) = fly_races(RACE, ("nominal",), race_pilot("policy"), race_class("noisy"))
    assert flown.result.end == "finished"
    assert all(passage.loose_time is not None for passage in flown.result.passages)


@pytest.mark.slow
def test_it_flies_behind_the_wall_as_in_this_process(folder: Path) -> None:
    """It falls: a policy that learnt nothing commands half of the thrust, which is more than its weight, and no turn."""
    flown: list[RaceFlight] = []
    for entry in (race_pilot(f"policy:{folder}"), pilot_entry(f"policy:{folder}")):
        assert not entry.plans
        assert entry.identity["policy"] == folder.name
        assert entry.sensors == ("imu", "beacons")
        limited = replace(RACE, limits=replace(RACE.limits, time_s=0.3))
        flown += fly_races(limited, ("nominal",), entry, race_class("noisy"))
    assert flown[0].reason == flown[1].reason == ""
    assert flown[0].commands_sha256 == flown[1].commands_sha256


def test_a_policy_whose_outputs_mean_something_else_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed and whole, but of another range of angular acceleration."""
    told, weights = read_race_folder(folder)
    with monkeypatch.context() as other:
        other.setattr(contract, "TURN_MAX", 2.0 * contract.TURN_MAX)
        write_race_folder(tmp_path / "other", told, weights)
    with pytest.raises(AssetError, match=r"turn_max_rad_s2\[0\] must be 100.0, but is 200.0"):
        read_race_folder(tmp_path / "other")


def test_what_is_not_in_view_grows_older_frame_by_frame(course: Any) -> None:
    batch = CourseBatch(course, np.random.default_rng(2), 16, 0.5, FlightNoise())
    batch.unseen[:] = 0.5
    before = batch.known.copy()
    batch.look()
    seen = np.any(batch.known > before, axis=-1)
    assert np.any(seen)
    assert np.any(~seen)
    assert np.all(batch.unseen[seen] == 0.0)
    np.testing.assert_allclose(batch.unseen[~seen], 0.5 + 1.0 / 60.0)


def test_a_sight_is_as_old_as_its_frame_is_late(folder: Path) -> None:
    """A frame that arrives late shows what was so at its stamp; what was seen before arming is as old as the clock."""
    pilot = PolicyPilot(folder)
    pilot.begin(facts())
    pixel = np.full((1, GATES, 4, 2), np.nan)
    pixel[0, 2] = 100.0
    pixel[0, 4, :2] = 100.0  # two corners are no sight

    pilot._notice(0.5, (BeaconFrame(0.45, pixel),))
    assert pilot._unseen[0, 2] == pytest.approx(0.05)
    assert np.isinf(np.delete(pilot._unseen[0], 2)).all()
    pilot._notice(0.75)
    assert pilot._unseen[0, 2] == pytest.approx(0.3)
    pilot._notice(0.8, (BeaconFrame(-0.2, pixel),))
    assert pilot._unseen[0, 2] == pytest.approx(0.8)
