"""The page "your place, your course": its files, its commands and what it says that they print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.courses import ValidateCourseConfig
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning.datasets import DatasetConfig, synthesize_dataset
from airworthy.learning.datasets.config import PRESETS, with_preset
from airworthy.learning.datasets.dropped import dropped_of
from airworthy.trajectories import read_course

PAGE = (Path(__file__).resolve().parents[2] / "docs/howto/own_place.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
(TOML,) = (text for kind, text in BLOCKS if kind == "toml")
(JSON,) = (text for kind, text in BLOCKS if kind == "json")
FITS, REFUSED = (text for kind, text in BLOCKS if kind == "text")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, and the course that goes straight."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hut.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "round.json").write_text(JSON, encoding="utf-8")
    straight = json.loads(JSON)
    straight |= {"name": "through", "waypoints_m": [straight["waypoints_m"][0], straight["waypoints_m"][-1]]}
    (tmp_path / "through.json").write_text(json.dumps(straight), encoding="utf-8")
    return tmp_path


def test_every_command_of_the_page_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) == 4
    said = {}
    for line in COMMANDS:
        assert main(shlex.split(line)[1:]) == 0, line
        said[line.split()[1]] = capsys.readouterr().out
    assert said["courses"] == FITS
    assert "34  of 34 flown" in said["synthesize"]
    assert (here / "runs/look/card.html").exists()
    assert (here / "runs/round/report.html").exists()


def test_the_course_through_the_partition_is_refused_by_all_three(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", "validate", "through.json", "--scene", "hut.toml"]) == 2
    assert capsys.readouterr().err == REFUSED
    begin = REFUSED.partition(": its centre")[0]
    for command in ("fly --vehicle carl --course", "synthesize --preset look --courses"):
        assert main([*command.split(), "through.json", "--scene", "hut.toml", "--out", "runs/no"]) == 2
        assert begin.replace("'through'", "'through.json'") in (err := capsys.readouterr().err) or begin in err
        assert "--course-check warn" in err
    assert not (here / "runs/no").exists()
    assert main(["courses", "validate", "through.json", "--scene", "hut.toml", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["valid"] is False
    assert answer["clearance"]["touches"][0]["position"] == pytest.approx([0.3, 0.0, 1.2], abs=3e-3)


def test_a_course_check_that_warns_flies(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["fly", "--vehicle", "carl", "--course", "through.json", "--scene", "hut.toml", "--no-report", "--out", "runs/into"]
    assert main([*asked, "--course-check", "warn"]) == 0
    said = capsys.readouterr()
    assert "takes 'carl' into 'partition' of 'hut' at 4.58 s, at (0.301, 0, 1.2) m" in said.err
    assert "it hit 'partition' at 4.58 s, at (0.3, 0, 1.2) m" in said.out


def test_validate_takes_names_of_the_catalogue_and_refuses_what_it_cannot_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", "validate", "hover", "--scene", "empty_room", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clearance"]["gap"] is None
    assert main(["courses", "validate", "hover", "--scene", "empty_room", "--clear", "-1"]) == 2
    assert capsys.readouterr().err == "--clear is -1.0; expected 0 to 100 m.\n"
    assert main(["courses", "validate", "hover", "--scene", "empty_rom"]) == 2
    assert "Unknown scene 'empty_rom'" in capsys.readouterr().err
    assert ValidateCourseConfig(Path("hover")).vehicle == "carl"


def test_a_courses_file_carries_its_speed(here: Path) -> None:
    limits = read_course(here / "round.json").limits
    assert limits is not None
    assert (limits.speed, limits.acceleration) == (1.5, 2.0)


def test_presets_give_way_to_what_was_chosen() -> None:
    usual = DatasetConfig()
    assert with_preset(usual, "published") == usual
    own = with_preset(DatasetConfig(repetitions=3, scene="hut.toml"), "own")
    assert (own.repetitions, own.scene, own.view, own.keep_rate) == (3, "hut.toml", "112", 100.0)
    assert with_preset(DatasetConfig(view="none", keep_within=0.0), "own").light == usual.light
    for name in PRESETS:
        assert with_preset(usual, name).described()
    with pytest.raises(AirworthyError, match=r"Unknown preset 'owned'\. Closest: 'own'"):
        with_preset(usual, "owned")


def test_what_was_not_kept_is_counted_and_advised(tmp_path: Path) -> None:
    """Worked by hand: a roll-out without a solution, one between samples, two far ones of four that began at 3 and 5 s."""
    config = DatasetConfig(courses=("line",), view="none", keep_rate=10.0, length=0.5)
    flown = {
        "course": [0] * 5,
        "kept": [True, False, False, False, False],
        "failed_ticks": [0, 2, 0, 0, 0],
        "end_error_m": [0.01, 0.5, 0.1, 0.2, 0.4],
        "start_s": [0.0, 1.0, 2.0, 3.0, 5.0],
        "rotor_force_N": [5.0, 5.0, 5.0, 4.0, 4.0],
        "mass_kg": [1.0] * 5,
    }
    columns = {name: np.array(values) for name, values in flown.items()}
    (found,) = dropped_of(config, columns, 4, 10.0)
    assert (found.flown, found.kept, found.unsolved, found.lost, found.between, found.far) == (5, 1, 1, 0, 1, 2)
    assert found.spacing == pytest.approx(0.1, abs=1e-3)  # 1 m/s at ten samples a second
    assert found.far_median == pytest.approx(0.3)
    assert found.far_from == pytest.approx((3.5, 4.5))
    assert (found.weight_far, found.weight_kept) == pytest.approx((1.6, 2.0))
    lines = found.lines(config)
    assert lines[0].startswith("line: 4 of 5 roll-outs were not kept: 1 without a solution of the expert at some tick; 1 that")
    assert any("--keep-rate 100" in line for line in lines)
    assert any(line.startswith("--keep-within 0.3") for line in lines)


def test_a_finer_rate_keeps_what_ended_between_samples(tmp_path: Path) -> None:
    """Along `infinity` at up to 3.1 m/s the published samples lie 0.3 m apart."""
    given = {"courses": ("infinity",), "view": "none", "per_second": 1.0, "repetitions": 3}
    coarse = synthesize_dataset(DatasetConfig(**given), tmp_path / "coarse")
    fine = synthesize_dataset(DatasetConfig(**given, keep_rate=100.0), tmp_path / "fine")
    assert fine.total("rollouts") == coarse.total("rollouts")
    assert fine.total("kept") == fine.total("rollouts") > coarse.total("kept")
    with pytest.raises(AirworthyError, match=r"keep_rate of 0\.5 Hz; expected 1 to 10,000"):
        DatasetConfig(keep_rate=0.5)
