"""Unknown space of captured places in evaluations and benchmarks: solid, free, or refused where there is none."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import EXPERT, on_stage

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.flown_folder import config_of
from airworthy.benchmarks.navigation.own_scenes import load_own_scene, make_own_scene, placed
from airworthy.benchmarks.navigation.store import identity_of
from airworthy.benchmarks.tracking import config as configs
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box
from airworthy.scenes import Instance, Region, Scene, with_unknown, write_scene
from airworthy.scenes.carved import FREE, UNKNOWN, CarvedSpace


def written(folder: Path, unknown: tuple[slice, slice]) -> str:
    """Write a room of 8 x 8 x 3 m about the origin with a floor and a post, some columns of its cells of 0.1 m unknown."""
    cells = np.full((80, 80, 30), FREE, np.uint8)
    cells[unknown] = UNKNOWN
    things = (Instance("floor", (0.0, 0.0, -0.1), name="floor"), Instance("post", (-3.0, -3.0, 0.5), name="post"))
    shapes = {"floor": Box((4.0, 4.0, 0.1)), "post": Box((0.05, 0.05, 0.5))}
    bare = Scene("room", shapes, instances=things, bounds=Region((-4.0, -4.0, 0.0), (4.0, 4.0, 3.0)))
    place = with_unknown(replace(bare, carved=CarvedSpace(cells, (-4.0, -4.0, 0.0), 0.1)), "solid")
    write_scene(place, folder)
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A room of which it is known to be free up to x = 0.5 m."""
    return written(tmp_path_factory.mktemp("unknown") / "room", (slice(45, None), slice(None)))


def test_ways_lead_through_unknown_space_where_it_is_free_alone(folder: str) -> None:
    """A body of 0.3 m and 0.25 m to spare keep away from x = 0.5 m; where unknown space is free, half of the room is there."""
    asked = NavigationConfig(("straight",), ("real_09",), scenes=(folder,), pairs=6, least_distance=1.5)
    ends = {}
    for mode in ("solid", "free", None):
        chosen = placed(replace(asked, unknown=mode), 0.3)
        ends[mode] = np.array([[pair.start, pair.goal] for pair in chosen.places[0].pairs])  # type: ignore[attr-defined]
    assert ends["solid"][..., 0].max() < 0.5 - 0.3
    assert ends["free"][..., 0].max() > 0.5
    assert np.array_equal(ends[None], ends["solid"])


def test_pairs_belong_to_what_unknown_space_was(folder: str) -> None:
    item = make_own_scene(folder, 1, 0.3, unknown="free", least=1.0)
    assert load_own_scene(item, "free").carved is not None
    with pytest.raises(AssetError, match="was changed since the pairs"):
        load_own_scene(item)


def test_a_manifest_keeps_it_and_one_of_before_does_not_change(folder: str) -> None:
    asked = NavigationConfig(("straight",), ("real_09",), scenes=(folder,), pairs=1, least_distance=1.0)
    assert "unknown" not in identity_of(asked)["config"]
    told = identity_of(placed(replace(asked, unknown="free"), 0.3))
    assert told["config"]["unknown"] == "free"
    assert config_of({**told, "config": {**told["config"], "pilots": ["straight"]}}).unknown == "free"


def test_an_evaluation_meets_unknown_space_or_does_not(tmp_path: Path) -> None:
    """The hovering course stands at the origin, where a column of 0.4 m is unknown."""
    column, rows = written(tmp_path / "column", (slice(38, 42), slice(38, 42))), {}
    for mode in ("solid", "free"):
        asked = on_stage(tmp_path / mode, scene=column, conditions=("baseline",), flights=1, unknown=mode, report=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the course passes it
            rows[mode] = evaluate(asked, methods=[EXPERT]).summary["flights"][0]
    assert rows["solid"]["collisions"] == 1
    assert "touched the unknown space" in rows["solid"]["cause"]
    assert rows["free"]["collisions"] == 0


def test_where_there_is_none_it_is_refused(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirworthyError, match="for what is no captured place"):
        evaluate(on_stage(tmp_path, unknown="free"))
    with pytest.raises(AirworthyError, match="for what is no captured place"):
        placed(NavigationConfig(("straight",), ("real_09",), scenes=("maze:1",), unknown="free"), 0.3)
    assert main(["bench", "navigation", "--unknown", "free", "--out", str(tmp_path / "run")]) == 2
    assert "--scenes" in capsys.readouterr().err
    assert main(["bench", "race", "--unknown", "free", "--out", str(tmp_path / "run")]) == 2
    assert "--unknown" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_numbers_depend_on_it_and_folders_of_before_go_on(tmp_path: Path) -> None:
    asked = on_stage(tmp_path)
    plain = configs.identity_of(asked, [], {})
    assert "unknown" not in plain["config"]
    assert configs.identity_of(replace(asked, unknown="free"), [], {})["config"]["unknown"] == "free"
