"""The sensitivity study: points along axes, the same flights with and without, what that changes, and a folder that goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation, check
from airworthy.benchmarks.navigation.flown_folder import config_of
from airworthy.benchmarks.navigation.fly_batch import NOT_SETTLED
from airworthy.benchmarks.navigation.missions import draws_of
from airworthy.benchmarks.navigation.sensitivity import study
from airworthy.benchmarks.navigation.sensitivity.axes import AXES, IDEAL, MOVERS, StudyPoint, points_of
from airworthy.benchmarks.navigation.sensitivity.effects import effects_of, idle_points
from airworthy.benchmarks.navigation.sensitivity.page import study_page
from airworthy.benchmarks.navigation.sensitivity.study import (
    SensitivityConfig,
    read_study,
    report_study,
    run_study,
    study_rows,
)
from airworthy.benchmarks.navigation.store import identity_of
from airworthy.cli.bench.sensitivity import told_idle
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError
from airworthy.core.files import json_text, read_json, write_json

# ---- Points -----------------------------------------------------------------------------------------------------------------


def test_every_declared_point_is_one_thing_that_is_worse() -> None:
    ideal, *points = points_of(["all"])
    assert ideal.name == IDEAL
    assert len({point.name for point in points}) == sum(len(axis.levels) for axis in AXES.values())
    default = NavigationConfig()
    assert ideal.applied(default) == default
    for point in points:
        made = point.applied(default)
        check(made)
        different = [f.name for f in dataclasses.fields(made) if getattr(made, f.name) != getattr(default, f.name)]
        assert different == ["controller" if point.axis == "controller" else "perturb"], point.name


def test_levels_of_ones_own_and_pillars_for_a_speed() -> None:
    _, slow, late = points_of(["moving_speed:0.5", "latency:0.25"])
    assert slow.applied(NavigationConfig()).perturb == Perturbation(moving_obstacles=MOVERS, moving_speed=0.5)
    assert (late.name, late.words) == ("latency_0.25", "0.25 s")
    assert points_of(["moving_obstacles:4"])[1] == StudyPoint("moving_obstacles", 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["latency:0"], "is the ideal itself"),
        (["gain_scale:1"], "is the ideal itself"),
        (["controller:so3"], "is the ideal itself"),
        (["latency:soon"], "expected numbers, as in latency:0.05,0.2"),
        (["moving_obstacles:2.5"], "expected whole numbers"),
        (["latency:0.1", "latency:0.1,0.2"], "'latency_0.1' twice"),
        ([], "at least one of --axes"),
    ],
)
def test_points_that_cannot_be_flown_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        points_of(words)


def test_unknown_axes_and_controllers_are_named() -> None:
    with pytest.raises(UnknownNameError, match="latency"):
        points_of(["latencyy"])
    with pytest.raises(UnknownNameError, match="dfbc_indi"):
        points_of(["controller:dfbc_indy"])


# ---- The factor of all gains ------------------------------------------------------------------------------------------------


def test_gains_are_scaled_alike_in_every_flight_and_as_before_at_one() -> None:
    flights = [Flight("forest", k, "real_01") for k in (1, 2)]
    usual, half = (draws_of(flights, 0, Perturbation(gain_scale=scale)).gains for scale in (1.0, 0.5))
    assert (usual == 1.0).all()
    assert (half == 0.5).all()
    spread = draws_of(flights, 0, Perturbation(gain_error=0.3)).gains
    assert (draws_of(flights, 0, Perturbation(gain_error=0.3, gain_scale=2.0)).gains == 2.0 * spread).all()


def test_folders_of_before_are_gone_on_with() -> None:
    usual = identity_of(NavigationConfig())
    assert "gain_scale" not in usual["config"]["perturb"]
    scaled = identity_of(NavigationConfig(perturb=Perturbation(gain_scale=0.5)))
    assert scaled["config"]["perturb"]["gain_scale"] == 0.5
    assert config_of(scaled).perturb.gain_scale == 0.5
    assert config_of(usual).perturb == Perturbation()


@pytest.mark.parametrize("scale", [0.0, 0.05, 11.0, -1.0])
def test_gains_that_control_nothing_are_refused(scale: float) -> None:
    with pytest.raises(AirworthyError, match=r"gain-scale is .*; expected 0.1 to 10"):
        check(NavigationConfig(perturb=Perturbation(gain_scale=scale)))


# ---- What a point changes ---------------------------------------------------------------------------------------------------


def flights(point: StudyPoint, arrived: set[int], trace: str = "", **changes: Any) -> list[dict[str, Any]]:
    """Twelve flights of a pilot at a point, of which some arrive."""
    common = {
        "point": point.name, "axis": point.axis, "level": str(point.level), "pilot": "ego", "scenario": "forest", "cause": "",
        "vehicle": "v", "repeat": 0, "seed": 0, "layouts": 0, "time_s": 4.0, "jerk_integral": 36.0,
        "tracking_rmse_m": 0.1, "latency_p95_s": 0.001, **changes,
    }  # fmt: skip
    return [
        {**common, "configuration": k, "success": int(k in arrived), "trace": f"{trace}{k}",
         "outcome": "success" if k in arrived else "collision"}
        for k in range(12)
    ]  # fmt: skip


IDEALLY, LATE = StudyPoint(), StudyPoint("latency", 0.1)


def test_the_same_flights_are_compared_with_and_without() -> None:
    rows = [
        *flights(IDEALLY, set(range(10))),
        *flights(LATE, {0, 1, 2, 3, 4, 5, 11}, "x", jerk_integral=144.0, tracking_rmse_m=0.3),
    ]
    ideal, late = effects_of(rows)
    assert (ideal["successes"], ideal["pairs"]) == (10, 0)
    assert (late["pairs"], late["gained"], late["lost"], late["changed"]) == (12, 1, 4, 12)
    assert late["difference"] == pytest.approx(-3 / 12)
    assert late["difference_low"] < -3 / 12 < late["difference_high"]
    assert late["low"] < 7 / 12 < late["high"]
    jerk, off, slow = (late["effects"][name] for name in ("jerk_rms_m_s3", "tracking_rmse_m", "latency_p95_s"))
    # Six arrive both times: sqrt(36 / 4) = 3 without, sqrt(144 / 4) = 6 with.
    assert (jerk["pairs"], jerk["without"], jerk["with"], jerk["difference"]) == (6, 3.0, 6.0, 3.0)
    assert off["difference"] == pytest.approx(0.2)
    assert slow["difference"] == 0.0


def test_a_point_that_changes_nothing_is_told() -> None:
    entries = effects_of([*flights(IDEALLY, {1, 2}), *flights(LATE, {1, 2})])
    assert idle_points(entries) == [{"point": "latency_0.1", "axis": "latency", "level": "0.1", "pilot": "ego", "pairs": 12}]
    (line,) = told_idle({"idle": idle_points(entries)})
    assert line == ("Warning: latency:0.1 changed none of 12 flights of ego; nothing it makes worse reached that pilot.")
    assert idle_points(effects_of([*flights(IDEALLY, {1, 2}), *flights(LATE, {1, 2}, "x")])) == []


def test_flights_without_a_counterpart_are_left_out() -> None:
    (_, late) = effects_of([*flights(IDEALLY, {1})[:5], *flights(LATE, {1})])
    assert (late["flights"], late["pairs"]) == (12, 5)


def test_what_was_lost_before_the_goal_is_counted() -> None:
    lost = {"outcome": "diverged", "cause": NOT_SETTLED, "success": 0, "tracking_rmse_m": float("nan")}
    rows = flights(LATE, {1})
    (late,) = effects_of([*rows[:10], *({**row, **lost} for row in rows[10:])])
    assert (late["unsettled"], late["crashes"]) == (2, 0)


def test_a_measure_that_nobody_has_is_told_from_flights_that_never_arrived() -> None:
    rows = [*flights(IDEALLY, {1, 2}), *flights(LATE, {1, 2}, "x", tracking_rmse_m=float("nan"))]
    _, late = effects_of(rows)
    assert (late["arrived"], late["effects"]["tracking_rmse_m"]["pairs"]) == (2, 0)
    assert late["effects"]["jerk_rms_m_s3"]["pairs"] == 2


# ---- Folders ----------------------------------------------------------------------------------------------------------------

SMALL = SensitivityConfig(("straight",), ("gain_scale:0.5",), ("real_09",), ("maze",), (1, 2))


def written(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("results.parquet", "summary.json", "report.html")]


def test_a_study_is_flown_gone_on_with_and_grown(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, out=tmp_path / "study")
    done = run_study(config)
    entries = done.summary["entries"]
    assert [(entry["point"], entry["flights"]) for entry in entries] == [(IDEAL, 2), ("gain_scale_0.5", 2)]
    assert entries[1]["changed"] == 2
    assert done.summary["idle"] == []
    assert done.report is not None
    assert done.report.read_text(encoding="utf-8") == study_page(config.out)
    before = written(config.out)
    run_study(config)
    assert written(config.out) == before
    # Committed without its points, it grows by another axis and keeps what was there.
    for point in (config.out / "points").iterdir():
        if point.name != IDEAL:
            point.rename(tmp_path / point.name)
    more = run_study(dataclasses.replace(config, axes=("gain_scale:1.5",)))
    assert [entry["point"] for entry in more.summary["entries"]] == [IDEAL, "gain_scale_0.5", "gain_scale_1.5"]
    assert "gain_scale:0.5 gain_scale:1.5" in read_json(config.out / "sensitivity.json")["command"]
    grown = written(config.out)
    report_study(config.out)
    assert written(config.out) == grown
    with pytest.raises(AirworthyError, match="configurations: 1 2 before, 3 now"):
        run_study(dataclasses.replace(config, configurations=(3,)))


def test_a_study_that_is_stopped_keeps_what_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fly, flown = study.run_benchmark, []

    def stopped(config: NavigationConfig, quiet: bool) -> Any:
        flown.append(config.out.name)
        done = fly(config, quiet) if len(flown) == 1 else None
        return SimpleNamespace(interrupted=done is None)

    config = dataclasses.replace(SMALL, out=tmp_path / "study")
    with monkeypatch.context() as patched:
        patched.setattr(study, "run_benchmark", stopped)
        done = run_study(config)
    assert (done.interrupted, flown) == (True, [IDEAL, "gain_scale_0.5"])
    assert [entry["point"] for entry in done.summary["entries"]] == [IDEAL]
    assert "gain_scale_0.5" in read_study(config.out)["points"]
    whole = run_study(config)
    assert not whole.interrupted
    assert [entry["point"] for entry in whole.summary["entries"]] == [IDEAL, "gain_scale_0.5"]


def test_the_committed_page_is_what_the_command_makes_of_the_committed_rows() -> None:
    folder = Path(__file__).parents[2] / "docs" / "results" / "sensitivity"
    assert study_page(folder) == (folder / "report.html").read_text(encoding="utf-8"), (
        "airworthy bench report docs/results/sensitivity makes its report.html again"
    )
    entries = effects_of(study_rows(folder))
    assert json_text({"entries": entries}) == json_text({"entries": read_json(folder / "summary.json")["entries"]})


def test_what_reaches_no_pilot_is_refused_before_anything_flies(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"latency .* changes nothing for straight"):
        run_study(dataclasses.replace(SMALL, axes=("gain_scale", "latency"), out=tmp_path / "study"))
    assert not (tmp_path / "study").exists()


def test_damaged_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(AssetError):
        report_study(tmp_path)
    write_json(tmp_path / "sensitivity.json", {"points": {}, "pilots": {}, "identity": {}})
    with pytest.raises(AssetError, match="damaged"):
        report_study(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"no table")
    with pytest.raises(AssetError, match="no table of a sensitivity study"):
        study_rows(tmp_path)


def test_the_command_prints_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--pilots straight --axes gain_scale:0.5 --vehicles real_09 --scenarios maze --configurations 1"
    out = ["--out", str(tmp_path / "study")]
    assert main(["bench", "sensitivity", *words.split(), *out]) == 0
    assert "control gains" in capsys.readouterr().out
    assert main(["bench", "report", str(tmp_path / "study")]) == 0
    assert "report.html" in capsys.readouterr().out
    assert main(["bench", "report", str(tmp_path / "study"), "--why"]) == 2
    assert "--why changes nothing" in capsys.readouterr().err


def test_axes_declare_the_levels_that_the_page_of_the_benchmark_names() -> None:
    assert {name: axis.levels for name, axis in AXES.items()} == {
        "gain_scale": (0.5, 0.75, 1.25, 1.5),
        "controller": ("dfbc_indi", "nmpc"),
        "motor_degradation": (0.1, 0.3),
        "depth_noise": (0.02, 0.05),
        "depth_dropout": (0.3, 0.7),
        "latency": (0.05, 0.2),
        "drift": (0.02, 0.1),
        "moving_obstacles": (4, 12),
        "moving_speed": (0.5, 2.0),
        "gain_error": (0.3,),
    }
