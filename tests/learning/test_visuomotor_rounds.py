"""What rounds draw, when they end, and what a policy that sees is judged by: without flying anything."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from airworthy.core.errors import AirworthyError
from airworthy.learning.folder_training import plain_options
from airworthy.learning.visuomotor import run
from airworthy.learning.visuomotor.config import JUDGED_SEED, VisuomotorOptions, VisuomotorProtocol
from airworthy.learning.visuomotor.dagger import DaggerFlights
from airworthy.learning.visuomotor.judging import condition_rows, verdict_of
from airworthy.learning.visuomotor.run import train_visuomotor
from airworthy.learning.visuomotor.training import VisuomotorTraining, _flight_seed

PLACES = Path(__file__).resolve().parents[2] / "benchmarks" / "places"


class Drawn(VisuomotorTraining):
    """Rounds whose conditions and flights are drawn, and that nobody flies."""

    contract, weights = None, {}  # type: ignore[assignment]

    def __init__(self, **options: Any):
        self.options, self.iteration, self._known, self._threads = VisuomotorOptions(**options), 1, {}, 1
        self.vehicle: Any = None


def drawn_rounds(monkeypatch: pytest.MonkeyPatch, count: int, **options: Any) -> list[list[Any]]:
    """Blocks of so many rounds."""
    flown: list[Any] = []

    def fly(network: Any, contract: Any, block: Any, *others: Any, **named: Any) -> DaggerFlights:
        flown.append(block)
        return DaggerFlights(*(np.zeros((0, width)) for width in (1, 8, 18, 75, 4, 3)))

    monkeypatch.setattr("airworthy.learning.visuomotor.training.dagger_flights", fly)
    monkeypatch.setattr("airworthy.learning.visuomotor.training.SvNetwork", lambda *a, **k: None)
    monkeypatch.setattr("airworthy.learning.visuomotor.training.Setting", lambda *a: None)
    # Behind each block what it held is given back; nothing is, and in a process of many tests each search takes 0.3 s.
    monkeypatch.setattr("airworthy.learning.visuomotor.training.gc.collect", lambda: 0)
    training, rounds = Drawn(**options), []
    for number in range(1, count + 1):
        training.iteration = number
        training._flown()
        rounds.append(list(flown))
        flown.clear()
    return rounds


def test_rounds_fly_flights_that_no_round_flew_and_half_of_them_carry_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = drawn_rounds(monkeypatch, 60, flights=16, delay=0.038)
    blocks = [block for blocks in rounds for block in blocks]
    assert [block.family for block in rounds[0]] == ["rigid", "semi_kinematic"]
    numbers = [number for block in blocks for number in block.number]
    assert len(set(numbers)) == len(numbers) == 60 * 16
    loads = np.array([block.condition.pickup for block in blocks])
    # 120 blocks, half of which are drawn to carry nothing: 60 within 3.3 deviations.
    assert 42 <= np.sum(loads == 0.0) <= 78
    assert np.max(loads) <= 0.3
    assert np.mean(loads[loads > 0.0]) == pytest.approx(0.15, abs=0.04)
    # Hundredths of a second, none beyond the most.
    delays = {block.condition.delay for block in blocks}
    assert delays == {0.0, 0.01, 0.02, 0.03}


def test_no_round_flies_a_flight_that_policies_are_judged_by() -> None:
    """Flights of rounds have seeds of their own, and far from those of anybody's judgement, whichever a training has."""
    seeds = [_flight_seed(seed) for seed in (*range(2000), JUDGED_SEED)]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) > 10_000


class Nothing:
    """Pairs that hold none."""

    history = None

    def __init__(self, *_: Any): ...

    @staticmethod
    def joined(parts: Any) -> Any:
        return Nothing()


class Looking(Drawn):
    """Rounds whose flights, features and heads are nobody's, and which tell what their looks are drawn of."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[Any] = []

    @property
    def _all(self) -> Any:
        return None

    def _flown(self) -> Any:
        return SimpleNamespace(**dict.fromkeys(("images", "state", "objective", "history", "command", "position")))

    def _features(self, images: Any, key: Any) -> Any:
        self.looks.append(key)

    def _judge(self, flown: Any) -> None: ...

    def _latent(self, history: Any) -> Any: ...

    def _learn(self, how: Any, latent: Any) -> float:
        return 0.0

    def _clocked(self, stage: str) -> Any:
        return nullcontext()


def test_what_changes_images_is_drawn_anew_for_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airworthy.learning.visuomotor.training.Pairs", Nothing)
    training = Looking()
    for number in (1, 2, 3):
        training.iteration = number
        training._round()
    assert training.looks == [(1,), (2,), (3,)]


@pytest.mark.parametrize(("judged", "stops"), [(0, ""), (40, ""), (41, "clock")])
def test_time_for_the_judgement_is_kept(judged: int, stops: str) -> None:
    training = Drawn(minutes=10.0)
    training.iteration, training._setup_s, training._judged = 2, 40.0, judged
    # A flight takes 2 s: 40 + 400 of 600 s are spent, a round takes 80, and 80 are left for 40 flights.
    training.log = [{"step_s": 320.0}, {"step_s": 80.0, "flights": 16, "alone": 3, "seconds": {"flights": 32.0}}]
    training.log[1] |= {"tracking_error_m": 0.3}
    assert training._why_stop() == stops


def test_it_ends_with_two_good_rounds_and_not_with_one() -> None:
    training = Drawn(minutes=600.0)
    training._setup_s, training._judged = 0.0, 0
    good = {"step_s": 8.0, "flights": 16, "alone": 16, "seconds": {"flights": 5.0}, "tracking_error_m": 0.05}
    poor = {**good, "alone": 15}
    far = {**good, "tracking_error_m": 0.2}
    for rounds, why in (([poor, good], ""), ([good, far], ""), ([good, good], "flights"), ([good, poor, good], "")):
        training.log = [{"step_s": 60.0}, *rounds]
        training.iteration = len(training.log)
        assert training._why_stop() == why


def test_what_recovered_has_succeeded_too() -> None:
    flight = {"course_index": 0, "condition": "baseline", "family": "rigid", "course": "round", "place": "hut", "cause": "x"}
    flight |= {"collisions": 0, "tracking_error_m": 0.1, "proximity_percent": 90.0, "folder": "evaluate/course_0"}
    rows = condition_rows([{**flight, "outcome": word} for word in ("success", "success_recovered", "crash")])
    assert [(item["successes"], item["touched"], item["flights"], item["control"]) for item in rows] == [(2, 1, 3, False)]
    # What touched something comes behind what failed.
    assert rows[0]["ended"] == ["crash: x", "success recovered: x"]


def judged(name: str, successes: int) -> dict[str, Any]:
    ended = [] if successes == 20 else ["off course: far"]
    about = {"course": name, "condition": "baseline", "family": "rigid", "flights": 20}
    return {**about, "successes": successes, "touched": 0, "tracking_error_m": 0.1, "ended": ended}


def test_the_verdict_names_the_course_where_there_are_several() -> None:
    rows = [judged("loop", 20), judged("stairs", 3)]
    assert "under 'stairs, baseline, rigid'" in verdict_of(rows)[1]


@pytest.mark.slow
def test_how_it_is_judged_is_checked_before_anything_is_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airworthy.learning.visuomotor.run._VisuomotorFolder.train", lambda *a: pytest.fail("it began"))
    with pytest.raises(AirworthyError, match="Unknown family of dynamics 'nope'"):
        VisuomotorProtocol(family=("nope",))
    with pytest.raises(AirworthyError, match="judged under no family"):
        VisuomotorProtocol(family=())
    with pytest.raises(AirworthyError, match="'baseline' is named twice"):
        VisuomotorProtocol(conditions=("baseline", "baseline"))
    with pytest.raises(AirworthyError, match="The course 'hover' is named twice"):
        VisuomotorOptions(course=("hover", "hover"))
    judge: Any = {"conditions": ("baseline",)}
    with pytest.raises(AirworthyError, match="judged by dict; expected VisuomotorOptions and VisuomotorProtocol"):
        train_visuomotor(tmp_path / "a", None, judge)
    street = str(PLACES / "street.json")
    wall = tmp_path / "wall.json"
    about = {"format": "airworthy-course", "version": 1, "frame": "z_up", "name": "wall", "kind": "waypoints", "source": "test"}
    wall.write_text(json.dumps({**about, "waypoints_m": [[-28, 0, 1.5], [-28, 30, 1.5]]}))
    urban = ("urban:1@4",)
    for options, protocol, said in (
        (VisuomotorOptions(scene=urban, course=(street,)), VisuomotorProtocol(conditions=("static",)), "static"),
        (VisuomotorOptions(scene=urban, course=(str(wall),)), None, "give another --course, or another --scene"),
        (VisuomotorOptions(vehicle="cf2x_L250"), None, "no camera"),
    ):
        with pytest.raises(AirworthyError, match=said):
            train_visuomotor(tmp_path / "b", options, protocol)
    # Nothing has taken the folder.
    assert [item.name for item in tmp_path.iterdir()] == ["wall.json"]


@pytest.mark.slow
def test_courses_are_looked_at_in_all_places_and_of_very_many_in_some_that_are_spread_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in places that a policy is only judged in, and not again in a folder in which they were looked at."""
    looked: list[tuple[str, str]] = []

    def check(path: Any, where: str, vehicles: Any, name: str, kind: str, advice: str) -> None:
        looked.append((where, advice.split("another ")[2].split(maxsplit=1)[0]))
        if where == "m:7":
            raise AirworthyError("It leads through a post.")

    monkeypatch.setattr(run, "scene", lambda name: name)
    monkeypatch.setattr(run, "_check_seen", lambda *_: None)
    monkeypatch.setattr(run, "check_course", check)
    monkeypatch.setattr(run._VisuomotorFolder, "train", lambda *a: None)

    def begun(options: VisuomotorOptions, protocol: VisuomotorProtocol) -> None:
        looked.clear()
        train_visuomotor(tmp_path / "a", options, protocol, quiet=False)

    nine = VisuomotorOptions(scene=("m:10-18",))
    elsewhere = VisuomotorProtocol(scene=("n:0-9",))
    begun(nine, elsewhere)
    assert looked == [(f"m:{k}", "--scene") for k in range(10, 19)] + [(f"n:{k}", "--judge.scene") for k in range(10)]
    with pytest.raises(AirworthyError, match="through a post"):
        begun(VisuomotorOptions(scene=("m:0-8",)), elsewhere)
    begun(VisuomotorOptions(scene=("n:0-999",)), VisuomotorProtocol(scene=("o:1",)))
    assert len(looked) == 201
    numbers = np.array([int(place.split(":")[1]) for place, _ in looked[:-1]])
    assert (numbers[0], numbers[-1]) == (0, 999)
    assert set(np.diff(numbers)) == {5, 6}
    assert capsys.readouterr().err == ("Of 1,000 places to learn in courses are looked at in 200, spread over them evenly.\n")
    (tmp_path / "a").mkdir()
    identity = {"kind": "visuomotor", "options": plain_options(nine), "protocol": plain_options(elsewhere)}
    (tmp_path / "a" / "training.json").write_text(json.dumps(identity))
    begun(nine, elsewhere)
    assert looked == []
    begun(nine, VisuomotorProtocol(scene=("m:11", "n:3")))
    assert looked == [("m:11", "--scene"), ("n:3", "--judge.scene")]


def test_a_place_in_which_nothing_is_seen_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text('version = 1\nname = "empty"\n[bounds]\nlower = [-5, -5, 0]\nupper = [5, 5, 3]\n')
    options = VisuomotorOptions(scene=(str(tmp_path / "empty.toml"),), course=("robustness",))
    with pytest.raises(AirworthyError, match=r"There is nothing to see in .*empty\.toml"):
        train_visuomotor(tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_features_that_cannot_be_read_take_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    options = VisuomotorOptions(features=str(tmp_path / "x.safetensors"))
    with pytest.raises(AirworthyError, match=r"not a usable safetensors file"):
        train_visuomotor(tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_one_file_under_two_names_is_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AirworthyError, match=r"The place '\./a\.toml' is named twice|The place 'a\.toml' is named twice"):
        VisuomotorOptions(scene=("a.toml", "./a.toml"))
