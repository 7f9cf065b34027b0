"""`airworthy bench gates` as a person types it: words for predictors, what they learnt from, mistakes in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AssetError
from airworthy.gates.benchmark.methods import method_of, search_answers, search_of
from airworthy.gates.labels.options import Choices, SearchOptions
from airworthy.gates.planner.contract import PAPER_RANGES, BoundaryContract, tensor_shapes, write_network
from airworthy.gates.planner.network import Boundary

LIMIT = (2.0, 0.3)
LEARNT = SearchOptions(choices=Choices(speeds=3, ratios=2, limit=(3.0, 0.2)), yaw_ramp=0.0)


def _network(folder: Path, search: object) -> Path:
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0.0, 0.1, shape).astype(np.float32) for name, shape in tensor_shapes().items()}
    ranges = ((0.0, 1.6), *PAPER_RANGES[1:])
    return write_network(folder, BoundaryContract(ranges, (2.0, 1.5), "incoming", {"search": search}), weights)


def test_a_network_is_held_against_the_search_that_it_learnt_from(tmp_path: Path) -> None:
    word = str(_network(tmp_path / "net", {"options": LEARNT.described()}))
    own = method_of(word, LIMIT)
    assert search_of(Boundary.read(word), word) == LEARNT
    assert own.ranges[0].tolist() == [0.0, 1.6]
    assert own.ends == (2.0, 1.5)
    situation = np.array([[0.5, 0.3, 1.2, 0.1, 0.525, 1.0, -0.2, 0.3]])
    beside = method_of(f"search:{word}", LIMIT)
    assert own.truth is not None
    assert np.array_equal(own.truth(situation), beside.ask(situation))
    assert beside.ranges[0].tolist() == [0.0, 1.6]
    assert beside.identity["weights"] == own.identity["weights"]
    assert method_of("oracle", LIMIT).identity["search"]["choices"]["limit"] == [2.0, 0.3]


def test_an_answer_of_the_search_does_not_depend_on_what_else_is_asked() -> None:
    rng = np.random.default_rng(2)
    low, high = np.array(PAPER_RANGES).T
    rows = rng.uniform(low, high, (4, 8))
    together = search_answers(LEARNT)(rows)
    ask = search_answers(LEARNT)
    alone = np.concatenate([ask(row[None]) for row in rows[::-1]])[::-1]
    assert np.array_equal(together, alone, equal_nan=True)
    assert np.array_equal(ask(rows), together, equal_nan=True)


@pytest.mark.parametrize(
    ("search", "says"),
    [
        (None, "does not tell the search"),
        ({"options": {}}, "cannot be repeated"),
        ({"options": {**LEARNT.described(), "choices": {"speeds": 3, "limit": [-1.0, 0.0]}}}, "cannot be repeated"),
    ],
)
def test_a_contract_that_does_not_tell_its_search_is_refused(tmp_path: Path, search: object, says: str) -> None:
    word = str(_network(tmp_path / "net", search))
    with pytest.raises(AssetError, match=says):
        method_of(word, LIMIT)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--network", "nowhere"), "'nowhere' is no folder"),
        (("--network", "oracle", "--baselines", "oracle"), "named once"),
        (("--baselines", "search:nowhere"), "'nowhere' is no folder"),
        (("--certificate", "vehicle", "--reserve", "0.5"), "could not hover"),
        (("--certificate", "moon"), "invalid choice 'moon'"),
        (("--yaw-rate", "-1"), "--yaw-rate 0 to 100"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    try:
        code = main(["bench", "gates", "--out", str(out), *arguments])
    except SystemExit as stop:
        code = int(str(stop.code))
    assert code == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reserve", "0.3"], "--reserve 0.3 changes nothing without --certificate vehicle: add that, or leave it out."),
        (["--rotor-share", "0.8"], "--rotor-share 0.8 changes nothing without --certificate vehicle: "),
        (["--random", "0", "--random-gates", "4"], "--random-gates 4 changes nothing without --random above 0: "),
    ],
)
def test_options_without_effect_are_refused(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "gates", *arguments, "--out", str(tmp_path / "run")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
