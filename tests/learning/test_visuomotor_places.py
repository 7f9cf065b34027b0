"""Several places and courses in one policy: their words, their data as one, and which of them a round is flown in."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.learning.test_visuomotor_training import written_place

from airworthy.benchmarks.tracking.conditions import condition
from airworthy.core.errors import AirworthyError
from airworthy.learning.svnet.data import TrainingData
from airworthy.learning.visuomotor.config import JUDGED_SEED, VisuomotorOptions, VisuomotorProtocol, place_names
from airworthy.learning.visuomotor.judging import condition_rows, is_control, judge, verdict_of
from airworthy.learning.visuomotor.places import _part, flown_in, joined_numbers
from airworthy.learning.visuomotor.run import _check_places, _check_together
from airworthy.trajectories import course, write_course


def test_words_for_many_places() -> None:
    assert place_names(("hall", "mid_gate:9-11@5", "forest:3")) == (
        "hall", "mid_gate:9@5", "mid_gate:10@5", "mid_gate:11@5", "forest:3"
    )  # fmt: skip
    assert len(VisuomotorOptions(scene=("mid_gate:0-199@1",)).places) == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs a place to fly in"),
        (("mid_gate:5-2",), "names places 5 to 2; expected a range"),
        (("mid_gate:0-10000",), "expected a range of 1 to 10,000"),
        (("mid_gate:0-2", "mid_gate:1"), "'mid_gate:1' is named twice"),
    ],
)
def test_words_that_name_no_places_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        VisuomotorOptions(scene=words)
    if words:
        with pytest.raises(AirworthyError, match=said):
            VisuomotorProtocol(scene=words)


def test_pairs_are_shared_by_places() -> None:
    """A pair costs the same wherever it is made, so that minutes allow as many in several places as in one."""
    one = VisuomotorOptions(minutes=10.0)
    many = VisuomotorOptions(minutes=10.0, scene=("mid_gate:0-3",))
    assert many.pairs == one.pairs
    made = [item.dataset(20.0, "x") for item in (one, many)]
    rollouts = [20.0 * config.per_second * config.repetitions for config in made]
    assert rollouts[1] == pytest.approx(rollouts[0] / 4, rel=0.02)
    assert (made[0].repetitions, made[1].repetitions) == (6, 1)


def test_a_round_flies_every_course_in_every_place_where_it_can() -> None:
    options = VisuomotorOptions(scene=("a", "b"), course=("x", "y"), flights=16)
    stops, each = flown_in(options, 3)
    assert Counter(stops) == {("x", "a"): 1, ("x", "b"): 1, ("y", "a"): 1, ("y", "b"): 1}
    assert each == 2
    # As for one place, whose flights were always at least one of each course and family.
    assert flown_in(replace(options, scene=("a",), flights=2), 1) == ([("x", "a"), ("y", "a")], 1)


def test_rounds_take_turns_through_more_places_than_they_have_flights() -> None:
    options = VisuomotorOptions(scene=("m:0-9",), course=("x", "y"), flights=16, seed=4)
    rounds = [flown_in(options, number) for number in range(1, 6)]
    assert all(len(stops) * each * 2 == 16 for stops, each in rounds)
    # 5 rounds of 4 stops: each of the 20 once, in an order of its own.
    flown = [stop for stops, _ in rounds for stop in stops]
    assert len(set(flown)) == 20
    assert flown != sorted(flown)
    assert flown_in(options, 6) == rounds[0]
    # The first round begins with the first of that order.
    stops = [(name, place) for name in options.course for place in options.places]
    order = np.random.default_rng([4, 17]).permutation(20)
    assert rounds[0][0] == [stops[k] for k in order[:4]]


class _Rollouts:
    """Of a place: `count` roll-outs of 5 ticks, as a data set tells of them."""

    camera = {"view": "112", "fx": 1.0, "fy": 1.0, "cx": 1.0, "cy": 1.0}  # noqa: RUF012
    digest, folder = "d", "place"

    def __init__(self, count: int):
        self.rollouts, self.count = count, 5 * count
        rng = np.random.default_rng(count)
        self.rollout = np.repeat(np.arange(count), 5)
        self.sensed = rng.normal(size=(5 * count, 11))
        self.command, self.parameters = rng.uniform(size=(5 * count, 4)), rng.uniform(size=(count, 2))
        self.objective, self.course = rng.normal(size=(count, 18)), np.full(count, "x")
        self.images = np.zeros((5 * count, 8, 8, 3), np.uint8)

    def of_rollouts(self, values: Any) -> Any:
        return np.asarray(values).reshape(self.rollouts, 5, -1)


def test_every_twentieth_rollout_of_all_places_is_held_out() -> None:
    sources: list[Any] = [_Rollouts(count) for count in (13, 4, 30)]
    parts: list[TrainingData] = []
    for source in sources:
        parts.append(_part(source, sum(made.rollouts for made in sources[: len(parts)])))
    together = joined_numbers(parts)
    of_all = np.concatenate([source.rollout + first for source, first in zip(sources, (0, 13, 17), strict=True)])
    assert sorted({int(k) for k in of_all[together.held_out]}) == [19, 39]
    assert sorted([*together.train, *together.held_out]) == list(range(47 * 5))
    commands = np.concatenate([part.command for part in parts])
    np.testing.assert_array_equal(together.command, commands)
    assert together.images is None
    assert together.digest != parts[0].digest
    # One place is what it was: its data set's own split, its digest.
    assert joined_numbers(parts[:1]).digest == parts[0].digest


def _flights(course: int, place: str, condition: str, outcomes: tuple[str, ...]) -> list[dict[str, Any]]:
    row = {"course": f"c{course}", "course_index": course, "place": place, "condition": condition, "family": "rigid"}
    numbers = {"collisions": 0, "tracking_error_m": 0.1, "proximity_percent": 99.0, "cause": "", "folder": f"f_{place}"}
    return [{**row, **numbers, "outcome": outcome} for outcome in outcomes]


def test_places_are_one_row_and_blind_flights_no_part_of_the_verdict() -> None:
    good, bad = ("success",) * 2, ("collision",) * 2
    flights = [
        *_flights(0, "a", "baseline", good), *_flights(0, "b", "baseline", good),
        *_flights(0, "a", "blindfold", bad), *_flights(0, "b", "blindfold", bad),
    ]  # fmt: skip
    rows = condition_rows(flights)
    told = [(row["condition"], row["flights"], row["successes"], row["places"]) for row in rows]
    assert told == [("baseline", 4, 4, 2), ("blindfold", 4, 0, 2)]
    fit, why = verdict_of(rows)
    assert fit
    assert why.startswith("yes, as far as so few flights tell (4), since 4 of 4 flights succeeded without a touch")
    assert "without eyes" not in why
    led = verdict_of(condition_rows([*flights, *_flights(0, "c", "blindfold", good)]))
    assert led == (True, f"{why} Not sight alone leads it: flights succeeded without eyes, 2 of 6 under 'blindfold'.")
    assert not verdict_of(condition_rows([*flights, *_flights(1, "a", "baseline", bad)]))[0]


@pytest.mark.parametrize(
    ("name", "control"),
    [("baseline", False), ("blindfold", True), ("frozen", True), ("late_images", False), ("shifted", False)],
)
def test_controls_are_those_that_take_the_eyes_away(name: str, control: bool) -> None:
    assert is_control(condition(name)) is control


def test_courses_that_only_the_way_between_their_ends_tells_apart_are_refused(tmp_path: Path) -> None:
    one = course("robustness")
    same = tmp_path / "again.json"
    write_course(one, same)
    with pytest.raises(AirworthyError, match="have the same objective"):
        _check_together(VisuomotorOptions(course=("robustness", str(same))), VisuomotorProtocol())
    _check_together(VisuomotorOptions(course=("robustness", "sigmoid", "climbing_orbit")), VisuomotorProtocol())


def test_a_course_that_no_rotor_is_strong_enough_for_is_refused(tmp_path: Path) -> None:
    """Flown in an eighth of its time a course asks 64 times its accelerations."""
    file = tmp_path / "hurried.json"
    write_course(course("robustness"), file)
    told = json.loads(file.read_text())
    for keyframe in told["keyframes"]:
        keyframe["time_s"] /= 8.0
    file.write_text(json.dumps(told))
    with pytest.raises(AirworthyError, match=r"asks \d+ % of what a rotor of 'carl' gives, at \d+\.\d\d s"):
        _check_together(VisuomotorOptions(course=(str(file),)), VisuomotorProtocol())


def test_a_course_out_of_the_place_and_a_condition_that_is_the_baseline_are_refused_before_anything_is_learnt(
    tmp_path: Path,
) -> None:
    place, path = written_place(tmp_path)
    inside = VisuomotorOptions(scene=(place,), course=(path,))
    for word, why in (("lighting:1", "all its values are the baseline's"), ("frozen:100", "is over by then")):
        with pytest.raises(AirworthyError, match=f"A condition changes nothing.*{why}"):
            _check_places(inside, VisuomotorProtocol(conditions=("baseline", word)), {}, True)
    _check_places(inside, VisuomotorProtocol(), {}, True)
    text = (tmp_path / "hut.toml").read_text(encoding="utf-8")
    (tmp_path / "hut.toml").write_text(text.replace("upper = [4.0, 3.0, 3.0]", "upper = [4.0, 0.5, 3.0]"), encoding="utf-8")
    with pytest.raises(AirworthyError, match="leaves the bounds of"):
        _check_places(inside, VisuomotorProtocol(), {}, True)


def test_numbers_of_the_judgement_are_named_as_options_are() -> None:
    with pytest.raises(AirworthyError, match=r"judge\.flights is 0"):
        VisuomotorProtocol(flights=0)


def test_nothing_is_judged_by_flights_without_eyes_alone() -> None:
    with pytest.raises(AirworthyError, match="meant to fail, so nothing is judged: add baseline"):
        _check_together(VisuomotorOptions(), VisuomotorProtocol(conditions=("blindfold", "frozen")))


@pytest.mark.parametrize("places", [("a",), ("a", "b", "c")])
def test_no_two_places_are_judged_by_the_same_starts(
    places: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One place is judged by the protocol's own seed; of several the first is, and all others by seeds of their own."""
    judged: list[Any] = []

    def evaluate(config: Any, *others: Any, **named: Any) -> Any:
        judged.append(config)
        rows = _flights(0, config.scene, "baseline", ("success",))
        return SimpleNamespace(interrupted=False, summary={"flights": rows})

    monkeypatch.setattr("airworthy.learning.visuomotor.judging.evaluate", evaluate)
    options, protocol = VisuomotorOptions(scene=places, course=("x", "y")), VisuomotorProtocol(flights=2)
    judge(tmp_path, options, protocol, quiet=True)
    # Courses of a place share starts, which are told from the course's own; drones are the same ones on both.
    assert [item.seed for item in judged] == 2 * [JUDGED_SEED + k for k in range(len(places))]
    assert [(item.course, item.scene) for item in judged] == [(name, place) for name in "xy" for place in places]
    assert len({item.out for item in judged}) == len(judged)
