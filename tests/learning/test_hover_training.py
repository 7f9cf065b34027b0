"""`airworthy train hover`: from a vehicle to a folder with a policy and its evidence; stopped, killed, asked for wrongly."""

from __future__ import annotations

import json
import re
import shutil
import signal
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.learning import HoverConfig, HoverProtocol, timed_training
from airworthy.learning.gradient import GradientOptions, GradientTraining
from airworthy.learning.gradient import run as run_module
from airworthy.learning.gradient.report import rows_beside
from airworthy.learning.gradient.run import train_hover, train_seeds
from airworthy.learning.timed_training import TimedTraining, Trained
from airworthy.pilots.motor_policy.pilot import read_motor_policy
from airworthy.vehicles import vehicle, write_vehicle

TINY = {"env_count": 16, "window": 20, "hidden": 16, "iterations": 12}
FEW = {"flights": 16, "grid_flights": 16, "mpc_flights": 0}
QUICK = HoverProtocol(flights=16, grid_flights=16, mpc_flights=2, flight_s=0.3, steady_s=0.1)
WORDS = [f"--{name.replace('_', '-')}={value}" for name, value in {**TINY, **FEW}.items()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small training, finished and judged; its folder is read only."""
    folder = tmp_path_factory.mktemp("hover") / "run"
    return train_hover(vehicle("cf2x_L250"), folder, GradientOptions(**TINY), QUICK, command="airworthy train hover <x>")


def weights_of(folder: Path) -> list[Any]:
    return list(read_motor_policy(folder).weights)


def test_a_training_leaves_policy_figures_log_and_page(done: Trained) -> None:
    found = json.loads((done.folder / "summary.json").read_text())
    assert found == json.loads(json.dumps(dict(done.figures)))
    assert found["flights"] == 16
    assert found["env_steps"] == 12 * 20 * 16
    assert 0.0 < found["training_wall_s"] == found["seconds"]["train_s"]
    assert found["training_cpu_s"] > 0.0
    assert found["kept_percent"] == pytest.approx(100.0 * found["kept"] / 16)
    assert {"import_s", "compile_s", "train_s", "evaluate_s", "evaluate_cpu_s"} == set(found["seconds"])
    assert {"numpy", "warp-lang", "airworthy"} == set(found["versions"])
    assert {item["name"] for item in found["baselines"]} == {"geometric controller", "MPC"}
    kinds = {row["kind"] for row in found["robustness"]}
    assert kinds == {"command delay", "mass", "thrust", "rotor lag", "wind", "observation noise", "rate", "drawn vehicles"}
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == list(range(1, 13))
    assert rows[-1]["wall_s"] == pytest.approx(found["training_wall_s"], abs=1e-5)
    assert not (done.folder / "checkpoints").exists()
    assert len(weights_of(done.folder)) == 6


def test_the_page_shows_what_the_figures_say(done: Trained) -> None:
    page = done.report.read_text()
    assert "cf2x_L250 learns to hover" in page
    assert "Learning to Fly in Seconds" in page
    assert "The task is not the same" in page
    assert "airworthy train hover &lt;x&gt;" in page  # text is escaped
    for item in done.figures["baselines"]:
        assert item["verdict"] in page
    assert page.count("<polyline") == 2


def film_of(folder: Path) -> tuple[list[str], list[str]]:
    """Titles, and everything that moves, of the film on a training's page."""
    pictures = re.findall(r'<svg class="film".*?</svg>', (folder / "report.html").read_text(), re.DOTALL)
    titles = [re.search("<title>(.*?)</title>", picture) for picture in pictures]
    return [title[1] for title in titles if title], re.findall(r'values="(.*?)"', "".join(pictures))


def test_the_page_has_a_film_from_the_first_weights_to_the_last(done: Trained) -> None:
    titles, moving = film_of(done.folder)
    assert re.fullmatch(r"untrained: 9 of 9 flights kept", titles[0])
    assert [title.partition(" s")[0].rstrip("0123456789.") for title in titles[1:]] == ["after ", "after ", "learnt, after "]
    assert len(moving) == 4 * 9
    # Flights of 0.3 s, a picture every 50 ms; all stages from the same places, from which other weights fly other ways.
    assert {len(drone.split(";")) for drone in moving} == {7}
    stages = [moving[k : k + 9] for k in range(0, 36, 9)]
    assert len({tuple(drone.split(";")[0] for drone in stage) for stage in stages}) == 1
    assert len({tuple(stage) for stage in stages}) == 4


def test_without_a_film_no_weights_are_kept_for_one(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])  # the grid is flown by `done`
    asked = replace(QUICK, mpc_flights=0, film_flights=0)
    bare = train_hover(vehicle("cf2x_L250"), tmp_path / "bare", GradientOptions(**TINY), asked)
    assert film_of(bare.folder) == ([], [])
    assert {path.name for path in done.folder.iterdir()} - {path.name for path in bare.folder.iterdir()} == {"film"}


def test_finished_trainings_are_not_repeated(done: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GradientTraining, "step", lambda self: pytest.fail("it learns again"))
    again = train_hover(vehicle("cf2x_L250"), done.folder, GradientOptions(**TINY), QUICK)
    assert again.finished
    assert again.figures == json.loads(json.dumps(dict(done.figures)))


def test_a_folder_of_another_training_is_refused(done: Trained) -> None:
    item, options = vehicle("cf2x_L250"), GradientOptions(**TINY)
    with pytest.raises(AirworthyError, match=r"holds another training \(seed was 0, not 1\): choose another folder"):
        train_hover(item, done.folder, replace(options, seed=1), QUICK)
    with pytest.raises(AirworthyError, match="its vehicle was another"):
        train_hover(vehicle("tinyprop"), done.folder, options, QUICK)


def test_a_finished_training_is_judged_again_and_learns_nothing(
    done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flights, page and protocol are new; weights, curves, film of earlier stages and what learning took are as they were."""
    folder = Path(shutil.copytree(done.folder, tmp_path / "run"))
    monkeypatch.setattr(GradientTraining, "step", lambda self: pytest.fail("it learns again"))
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])  # the grid is flown by `done`
    item, options, asked = vehicle("cf2x_L250"), GradientOptions(**TINY), replace(QUICK, flights=17)
    learnt = {name: (folder / name).read_bytes() for name in ("weights.safetensors", "contract.json", "metrics.jsonl")}
    stopped = (folder / "summary.json").read_bytes()
    # A shell starts what runs in its background with the signal ignored: then nothing would stop it.
    before_test = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_hover_report", lambda *a: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            train_hover(item, folder, options, asked)
    signal.signal(signal.SIGINT, before_test)
    assert (folder / "summary.json").read_bytes() == stopped  # whoever stops it has the figures that were there
    again = train_hover(item, folder, options, asked, command="airworthy again", quiet=False)
    assert f"judged again (flights was {QUICK.flights}, is now 17)" in capsys.readouterr().err
    assert learnt == {name: (folder / name).read_bytes() for name in learnt}
    found = json.loads((folder / "summary.json").read_text())
    assert found == json.loads(json.dumps(dict(again.figures)))
    assert (found["flights"], found["protocol"]["flights"], found["command"]) == (17, 17, "airworthy again")
    before = json.loads(stopped)
    for name in ("training_wall_s", "training_cpu_s", "env_steps", "iterations", "options", "hardware", "versions"):
        assert found[name] == before[name]
    assert found["seconds"].items() >= {name: before["seconds"][name] for name in ("train_s", "compile_s")}.items()
    pages = [(place / "report.html").read_text() for place in (done.folder, folder)]
    assert pages[0].count('class="film"') == pages[1].count('class="film"') == 4
    assert json.loads((folder / "training.json").read_text())["protocol"]["flights"] == 17
    monkeypatch.setattr(run_module, "fly_hover", lambda *a: pytest.fail("it flies again"))
    assert train_hover(item, folder, options, asked).figures == again.figures


def test_a_film_whose_stages_are_lost_is_of_the_last_one_and_says_so(
    done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(done.folder, tmp_path / "run"))
    shutil.rmtree(folder / "film")
    monkeypatch.setattr(GradientTraining, "step", lambda self: pytest.fail("it learns again"))
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])  # the grid is flown by `done`
    item, options = vehicle("cf2x_L250"), GradientOptions(**TINY)
    with pytest.warns(
        AssetWarning, match=r"lacks 1 of what was written beside its policy: film\. .* is of the last stage alone"
    ):
        assert train_hover(item, folder, options, QUICK).figures == json.loads(json.dumps(dict(done.figures)))
    with pytest.warns(AssetWarning, match=r"film' is missing or not whole: without the stages of its learning"):
        train_hover(item, folder, options, replace(QUICK, flights=17, mpc_flights=0))
    assert (folder / "report.html").read_text().count('class="film"') == 1
    # Of these there are no stages any more, which is known: it is told once.
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssetWarning)
        train_hover(item, folder, options, replace(QUICK, flights=17, mpc_flights=0))


def test_the_folder_of_another_kind_of_training_is_told_as_that(done: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    """Options of one kind say nothing about those of another."""
    said = f"{str(done.folder)!r} holds a training of hover, not of"
    for words in (["recovery", "--env-count", "64"], ["recovery", "--trainer", "gradient"], ["foundation"], ["motor_command"]):
        assert main(["train", *words, "--out", str(done.folder)]) == 2
        assert capsys.readouterr().err == f"{said} {words[0]}: choose another folder.\n"
    assert main(["train", "hover", "--vehicle", "cf2x_L250", "--trainer", "sac", "--out", str(done.folder)]) == 2
    told = capsys.readouterr().err
    assert "another trainer or version (which had blend, clip, cost, critic, and " in told
    assert told.count(",") < 6


def test_a_controller_on_fewer_flights_stands_below_the_policy_on_just_these() -> None:
    def figures(flights: int, kept: float) -> dict[str, Any]:
        return {"flights": flights, "kept": kept}

    beside = [
        {"name": "geometric", **figures(1024, 1.0)},
        {"name": "mpc", **figures(64, 0.5), "learnt": figures(64, 0.75)},
        {"name": "none", "reason": "it cannot"},
    ]
    rows = rows_beside({**figures(1024, 0.9), "baselines": beside}, lambda item: [f"{item['flights']} {item['kept']}"])
    assert rows == [
        ("geometric", ["1024 1.0"], ""),
        ("learnt policy, first 64 starts", ["64 0.75"], ""),
        ("mpc, first 64 starts", ["64 0.5"], ""),
        ("none", [], "it cannot"),
    ]


def test_a_stopped_training_keeps_its_policy_and_goes_on_to_the_same_bits(
    done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, options, step = vehicle("cf2x_L250"), GradientOptions(**TINY), GradientTraining.step
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])  # the grid is flown by `done`

    def interrupted(self: GradientTraining) -> float:
        if self.iteration == 4:
            signal.raise_signal(signal.SIGINT)
        return step(self)

    monkeypatch.setattr(GradientTraining, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_hover(item, tmp_path / "run", options, QUICK)
    monkeypatch.setattr(GradientTraining, "step", step)
    assert not (tmp_path / "run" / "summary.json").exists()
    held = weights_of(tmp_path / "run")  # flies as it is
    assert any((a != b).any() for a, b in zip(held, weights_of(done.folder), strict=True))
    whole = train_hover(item, tmp_path / "run", options, QUICK)
    assert whole.finished
    for a, b in zip(weights_of(tmp_path / "run"), weights_of(done.folder), strict=True):
        np.testing.assert_array_equal(a, b)
    assert film_of(tmp_path / "run")[1] == film_of(done.folder)[1]  # also of what it had learnt before it was stopped
    figures = ("kept", "median_error_m", "median_settling_s", "action_jitter")
    assert [whole.figures[name] for name in figures] == [done.figures[name] for name in figures]


def test_a_killed_training_goes_on_to_the_same_bits(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints at every step; then it dies without a word, and before its first checkpoint."""
    item, options, steps = vehicle("cf2x_L250"), GradientOptions(**TINY), TimedTraining.steps
    monkeypatch.setattr(timed_training, "_SAID_EVERY_S", 0.0)
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])
    for after, folder in ((5, tmp_path / "later"), (0, tmp_path / "at once")):

        def dies(self: TimedTraining[Any], stopped: Any, after: int = after) -> Iterator[int]:
            for k in steps(self, stopped):
                if k == after + 1:
                    raise MemoryError
                yield k

        monkeypatch.setattr(TimedTraining, "steps", dies)
        with pytest.raises(MemoryError):
            train_hover(item, folder, options, QUICK)
        monkeypatch.setattr(TimedTraining, "steps", steps)
        found = train_hover(item, folder, options, QUICK)
        for a, b in zip(weights_of(folder), weights_of(done.folder), strict=True):
            np.testing.assert_array_equal(a, b)
        rows = [json.loads(line)["iteration"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert rows == list(range(1, 13))
        assert found.iteration == 12


def test_it_is_said_how_far_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody has a terminal."""
    monkeypatch.setattr(run_module, "_judged", lambda *a: (_ for _ in ()).throw(AirworthyError("enough")))
    with pytest.raises(AirworthyError, match="enough"):
        train_hover(vehicle("tinyprop"), tmp_path / "run", GradientOptions(**TINY), QUICK, quiet=False)
    said = capsys.readouterr().err
    assert "12 of 12 iterations" in said
    assert "M steps/s" in said


def test_seeds_have_folders_and_one_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"kept_percent": 100.0 - k, "median_error_m": None if k else 0.01} for k in range(3)]

    def trained(item: Any, out: Path, options: GradientOptions, protocol: Any, command: str) -> Trained:
        base = dict.fromkeys(("training_wall_s", "training_cpu_s", "p95_error_m", "env_steps"), 1.0)
        return Trained(out, True, {"seed": options.seed, **base, **rows[options.seed - 4]}, 12)

    monkeypatch.setattr(run_module, "train_hover", trained)
    made = train_seeds(vehicle("tinyprop"), tmp_path, HoverConfig(seed=4, **TINY), 3)
    assert [item.folder.name for item in made] == ["seed_4", "seed_5", "seed_6"]
    found = json.loads((tmp_path / "summary.json").read_text())
    assert [row["seed"] for row in found["seeds"]] == [4, 5, 6]
    assert found["median"]["kept_percent"] == 99.0
    assert found["median"]["median_error_m"] is None  # two of three lost half of their flights
    with pytest.raises(AirworthyError, match="0 seeds are to be trained; expected 1 to 100"):
        train_seeds(vehicle("tinyprop"), tmp_path, HoverConfig(), 0)


def test_options_follow_from_what_is_drawn() -> None:
    plain, drawn = HoverConfig().options(0), HoverConfig(randomize=("default",)).options(3)
    assert (plain.env_count, plain.history, plain.delay, plain.randomization.any) == (32, 0, 0, False)
    assert (drawn.env_count, drawn.history, drawn.delay, drawn.seed) == (64, 8, 2, 3)
    assert (plain.clip, drawn.clip) == (0.5, 0.1)
    assert (plain.keep, drawn.keep) == (1.0, 0.98)
    late = HoverConfig(delay=1).options(0)  # nothing is drawn, and still it is to know what is on its way
    assert (late.env_count, late.history, late.delay, late.iterations, late.clip, late.keep) == (64, 8, 1, 2500, 0.1, 0.98)
    assert HoverConfig(randomize=("default",), memory="gru").options(0).history == 2
    assert (plain.iterations, drawn.iterations) == (1000, 2500)
    assert (drawn.randomization.mass, drawn.randomization.lag) == (0.2, 0.3)
    some = HoverConfig(randomize=("mass=0.1", "lag=0.2 thrust=0.05"), env_count=48).options(0)
    assert (some.env_count, some.delay, some.history) == (48, 0, 8)
    assert (some.randomization.mass, some.randomization.lag, some.randomization.thrust) == (0.1, 0.2, 0.05)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--vehicle", "tinyprob"], "Unknown vehicle 'tinyprob'. Closest: 'tinyprop'"),
        (["--trainer", "trpo"], "Unknown trainer 'trpo'"),
        (["--learning-rate", "nan"], "--learning-rate is nan"),
        (["--rate", "nan"], "rate is nan"),
        (["--randomize", "mas=0.1"], "Unknown quantity to randomize 'mas'. Closest: 'mass'"),
        (["--randomize", "mass=much"], "--randomize got 'mass=much'; write it as mass=NUMBER"),
        (["--randomize", "mass=0"], "--randomize mass=0 changes nothing"),
        (["--learning-rate", "0"], "--learning-rate is 0"),
        (["--rotors", "a.toml"], "--rotors a.toml changes nothing"),
        (["--randomize", "default", "mass=0.1"], "--randomize got 'default' with other words"),
        (["--delay", "2", "--history", "1"], "it cannot know"),
        (["--seeds", "0"], "--seeds is 0; expected 1 to 100"),
        (["--seed=-1"], "seed is -1"),
        (["--hidden", "20"], "--hidden is 20; expected 16, 32, 64"),
        (["--flights", "0"], "flights is 0"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "hover", "--out", str(tmp_path / "run"), *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_vehicles_come_from_files_and_may_be_too_heavy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heavy = replace(vehicle("tinyprop"), name="heavy", mass=5.0)
    write_vehicle(heavy, tmp_path / "heavy.toml")
    assert main(["train", "hover", "--vehicle", str(tmp_path / "heavy.toml"), "--out", str(tmp_path / "run")]) == 2
    assert "heavy cannot hover" in capsys.readouterr().err
    assert not (tmp_path / "run" / "training.json").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "contract.json").write_text("{}")
    assert main(["train", "hover", "--out", str(tmp_path), *WORDS]) == 2
    assert "holds a policy but no training.json: choose another folder" in capsys.readouterr().err


def test_command_and_call_make_the_same_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "robustness", lambda *a: [])
    assert main(["train", "hover", "--vehicle", "cf2x_L250", "--out", str(tmp_path / "a"), "--json", *WORDS]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["finished"]
    assert told["kept_percent"] == 100.0 * told["kept"] / 16
    assert told["seconds"]["import_s"] > 0.0
    result = aw.train("hover", "cf2x_L250", tmp_path / "b", **TINY, **FEW)
    for a, b in zip(weights_of(tmp_path / "a"), weights_of(tmp_path / "b"), strict=True):
        np.testing.assert_array_equal(a, b)
    assert result.summary["median_error_m"] == told["median_error_m"]
    with pytest.raises(AirworthyError, match="Unknown option of train hover 'iteration'"):
        aw.train("hover", "cf2x_L250", tmp_path / "c", iteration=3)


def test_seeds_do_not_take_the_place_of_a_single_training(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text("{}")
    with pytest.raises(AirworthyError, match="holds a single training; several seeds need a folder of their own"):
        train_seeds(vehicle("tinyprop"), tmp_path, HoverConfig(), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["training.json"]
