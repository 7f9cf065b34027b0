"""What the room of gates computes, number by number: plans, flights, reports, labels, judgements."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.figures import figure_values
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.gates.boundary_planner_cases import oracle

from airworthy.core.errors import AirworthyError
from airworthy.gates.benchmark import report
from airworthy.gates.benchmark.baselines import OTHERS, Lap, baseline_laps, least_time
from airworthy.gates.benchmark.blocks import blocks_of
from airworthy.gates.benchmark.config import GatesBenchConfig, rotor_bounds
from airworthy.gates.benchmark.families import FAMILIES, FlightSpread, GatesMethod, drawn_vehicles, hover_integrals
from airworthy.gates.benchmark.job import run_gates
from airworthy.gates.benchmark.predictions import off_grid
from airworthy.gates.labels.candidates import candidates, fastest
from airworthy.gates.labels.controller_model import gyro_filter, hover, make_controller_model
from airworthy.gates.labels.labels import label
from airworthy.gates.labels.options import GRAVITY, RANDOMISATIONS, Choices, SearchOptions
from airworthy.gates.labels.situations import clamp, corners, draw, encode, grid_named, noise, outside
from airworthy.gates.planner.network import Skew, loss_minimum, loss_of, percent_error, safe_error
from airworthy.gates.planner.planner import plan
from airworthy.gates.task import GateProtocol, bars_of, body_extent, judge_path, touched
from airworthy.gates.training import training
from airworthy.gates.training.metrics import kept_limit, metrics_of
from airworthy.trajectories import Limits, YawedBox
from airworthy.trajectories.generated_courses import straight_course
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent / "snapshots"
VEHICLES = ("cf2x_scg_iros2022", "cf2x_L250", "cf2x_gym_pybullet_drones", "rotorpy_crazyflie")


@pytest.mark.parametrize("name", VEHICLES)
def test_models_of_controllers(name: str) -> None:
    model = make_controller_model(SearchOptions(vehicle=name))
    values = {"model": model._asdict(), "hover": hover(model, model.mass * np.array([0.8, 1.0, 1.3]))}
    values["filter"] = [gyro_filter(cutoff) for cutoff in (20.0, 80.0, 240.0)]
    check_snapshot(SNAPSHOTS / f"model_{name}.txt", values)


def test_situations_candidates_and_labels() -> None:
    values: dict[str, Any] = {}
    for name in ("paper", "extended", "racing"):
        grid = grid_named(name)
        rows = np.random.default_rng(1).choice(grid.size, 40, replace=False)
        e = grid.situations(rows)
        values[name] = [e, grid.ranges, grid.shape, *corners(e)]
        found = candidates(e)
        values[f"{name} candidates"] = condensed(found)
        values[f"{name} fastest"] = fastest(found)
    off = off_grid(30, 4)
    beyond = off * np.random.default_rng(2).uniform(0.5, 1.6, off.shape)
    values |= {"off": off, "outside": outside(beyond), "clamped": clamp(beyond)}
    positions, headings = (
        np.random.default_rng(3).normal(0.0, 2.0, (5, 4, 3)),
        np.random.default_rng(3).normal(0.0, 2.0, (5, 4)),
    )
    values["encoded"] = list(encode(positions[:, :3], headings[:, :3], np.linspace(0.0, 2.0, 5)))
    e = grid_named("paper").situations(np.arange(7, 129_600, 16_001))
    for name, law in RANDOMISATIONS.items():
        values[f"labels {name}"] = condensed(label(e, SearchOptions(randomisation=law, draws=2), np.arange(len(e))))
    model = make_controller_model(SearchOptions())
    for name, law in RANDOMISATIONS.items():
        rollouts = draw(model, law, 3, np.arange(6), np.arange(6) % 2)
        values[f"drawn {name}"] = [rollouts.mass, rollouts.inertia, rollouts.keys, noise(rollouts.keys, 7, law)]
    check_snapshot(SNAPSHOTS / "situations.txt", values, 1e-6, 1e-7)


def test_limits_and_rotors() -> None:
    values: dict[str, Any] = {}
    for kind in ("tracking", "vehicle"):
        for families in (("competition",), ("competition", "crazyflow")):
            config = GatesBenchConfig(certificate=kind, families=families)  # type: ignore[arg-type]
            values[f"{kind} {len(families)}"] = config.limits
    values["bounds"] = rotor_bounds(("competition", "crazyflow"), 0.005)
    check_snapshot(SNAPSHOTS / "bench_limits.txt", {key: condensed(value) for key, value in values.items()}, 1e-8)


def test_flown_vehicles() -> None:
    values: dict[str, Any] = {}
    for key, family in FAMILIES.items():
        nominal = vehicle(family.vehicle)
        many = drawn_vehicles(nominal, FlightSpread(), 3, range(4))
        values[f"{key} mass"] = [item.mass for item in many]
        values[f"{key} integral"] = hover_integrals(family, nominal, many)
    check_snapshot(SNAPSHOTS / "families.txt", values, 1e-8)


def test_losses_and_metrics() -> None:
    e = np.linspace(-0.5, 0.5, 41)
    values: dict[str, Any] = {}
    for skew in (Skew(), Skew(1.0, 1.0), Skew(2.0, 5.0, 0.2, 0.05)):
        values[f"loss {skew.safe:g} {skew.unsafe:g}"] = [loss_of(e, skew), loss_minimum(skew)]
    rng = np.random.default_rng(5)
    labels, predicted = rng.uniform(0.0, 2.0, (50, 2)), rng.uniform(0.0, 2.0, (50, 2))
    labels[:5, 0] = 0.0
    values |= {"safe": safe_error(labels, predicted), "percent": percent_error(labels, predicted)}
    situations = grid_named("paper").situations(np.arange(0, 129_600, 2_600))[:50]
    values["metrics"] = condensed(metrics_of(labels, predicted, (2.0, 1.5)))
    for limit in ((2.0, 0.3), (4.0, 0.1)):
        values[f"kept {limit}"] = kept_limit(situations, labels + 0.3, limit)
    check_snapshot(SNAPSHOTS / "losses.txt", values, 1e-8)


def test_charts() -> None:
    rng = np.random.default_rng(6)
    log = [{"epoch": k, "train_loss": 1.0 / k, "held_out_loss": 1.1 / k + 0.01 * (k % 3)} for k in range(1, 30)]
    charts = {
        "loss": training.loss_chart(Skew()),
        "even loss": training.loss_chart(Skew(2.0, 2.0)),
        "log": training.training_log_chart(log, 20),
        "short log": training.training_log_chart(log[:1], 1),
        "two": training.training_log_chart(log[:2], 3),
    }
    for name, scale in (("narrow", 0.3), ("wide", 40.0), ("beyond", 400.0)):
        for above in (True, False):
            charts[f"{name} {above}"] = training.histogram("t", rng.normal(0.0, scale, 500), unsafe_above=above)
    charts["none"] = training.histogram("t", [np.nan], unsafe_above=True)
    rows = {key: text.replace("<", "\n<").split("\n") for key, text in charts.items()}
    check_snapshot(SNAPSHOTS / "charts.txt", {key: condensed(lines) for key, lines in rows.items()})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Figures that the report drew, by their names."""
    figures: dict[str, Any] = {}
    real = report.inline_svg

    def kept(figure: Any, name: str, title: str) -> str:
        figures[name] = condensed([title, figure_values(figure)])
        return real(figure, name, title)

    monkeypatch.setattr(report, "inline_svg", kept)
    return figures


def test_a_small_benchmark(tmp_path: Path, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its summary, blocks and figures."""
    from airworthy.gates.benchmark import blocks

    laps = [Lap(name, 3.0 + k, "proven" if k % 2 else "refused", k % 3 == 0) for k, name in enumerate(OTHERS)]
    monkeypatch.setattr(blocks, "baseline_laps", lambda *_: laps)
    config = GatesBenchConfig(
        courses=("straight:2",),
        families=("competition",),
        flights=2,
        random=3,
        random_gates=2,
        block=2,
        off_grid=5,
        out=tmp_path,
    )
    methods = [GatesMethod("oracle", oracle), GatesMethod("slower", lambda e: oracle(e) * (0.9, 1.2))]
    done = run_gates(config, methods)
    assert done.complete
    values: dict[str, Any] = {"figures": drawn}
    summary = json.loads((tmp_path / "summary.json").read_text())
    for key in ("hardware", "seconds", "prediction_us_per_gate", "made"):
        summary.pop(key, None)
    values |= {key: condensed(value) for key, value in summary.items() if "us_per_gate" not in json.dumps(value)}
    values["verdict"] = report.verdict(summary)
    values["blocks"] = sorted(block.name for block in blocks_of(config, methods))
    check_snapshot(SNAPSHOTS / "benchmark.txt", values, 1e-4, 1e-4)


def test_other_planners() -> None:
    course = straight_course(2)
    made = plan(course, oracle)
    laps = baseline_laps(course.start, course.start_yaw, course.gates, Limits(envelope=(2.0, 0.3)), 0.12, 0.07)
    values: dict[str, Any] = {"laps": condensed(laps), "report": condensed(made.report())}
    values["least"] = least_time(np.array([[0.0, 0.0, 1.0], [2.0, 1.0, 1.0], [3.0, 0.0, 2.0]]), Limits(envelope=(2.0, 0.3)))
    check_snapshot(SNAPSHOTS / "planners.txt", values, 1e-5, 1e-5)


def test_judgements() -> None:
    """Flights that zigzag through gates, graze bars, meet a box and the floor, come back: what each comes to."""
    gates = straight_course(3).gates
    rng = np.random.default_rng(8)
    t = np.linspace(0.0, 6.0, 121)
    centres = np.array([gate.position for gate in gates])
    ends = centres[0] - (centres[1] - centres[0]), centres[-1] + (centres[1] - centres[0])
    corners_ = np.stack([ends[0], *centres, ends[1]])
    line = np.stack([np.interp(t, np.linspace(0.0, 6.0, len(corners_)), corners_[:, k]) for k in range(3)], axis=-1)
    wander = rng.normal(0.0, 1.0, (120, 3)) * rng.uniform(0.0, 0.45, (120, 1)) * (0.2, 1.0, 1.0)
    paths = line[:, None] + wander * np.sin(t * 2.0)[:, None, None] ** 2 + wander[::-1] * 0.7
    paths[:, 100:] = paths[::-1, 100:]
    box = YawedBox(tuple(centres[1] + (0.3, 0.4, 0.0)), (0.1, 0.05, 0.2), 0.4)
    values: dict[str, Any] = {}
    for name, protocol in {"default": None, "wide": GateProtocol(0.15, 0.06, 0.35, 0.05)}.items():
        for others in ((), (box,)):
            found = judge_path(gates, t, paths, protocol, others)
            values[f"{name} {len(others)}"] = [vars(found), found.skipped, found.lap_time, "|".join(found.outcomes)]
    up = rng.normal(size=(9, 3))
    values["extent"] = [body_extent(0.06, 0.0125, up), body_extent(0.06, 0.2, up / 3.0), body_extent(0.06, 0.0125, None)]
    check_snapshot(SNAPSHOTS / "judged.txt", values)


def test_a_bar_far_from_the_middle_of_a_wide_gate_is_met() -> None:
    """Of gates far wider than high, and far higher than wide: the body meets each of the four bars, and passes between."""
    for size in ((2.4, 0.4), (0.4, 2.4)):
        gate = replace(straight_course(1).gates[0], opening=size)
        middle, left = np.array(gate.position), np.array((-np.sin(gate.yaw), np.cos(gate.yaw), 0.0))
        ends = [sign * (0.5 * size[0] + 0.5 * gate.bar) * left for sign in (-1.0, 1.0)]
        ends += [np.array((0.0, 0.0, sign * (0.5 * size[1] + 0.5 * gate.bar))) for sign in (-1.0, 1.0)]
        frame = bars_of([[gate]])
        found = [int(touched(frame, (middle + offset)[None, None], 0.06, 0.0125, (), -2)[0, 0]) for offset in ends]
        assert found == [0, 0, 0, 0]
        assert int(touched(frame, middle[None, None], 0.06, 0.0125, (), -2)[0, 0]) not in (0, -2)


def test_a_search_needs_more_thrust_than_weight() -> None:
    Choices(thrust=float(np.nextafter(GRAVITY, 99.0)))
    for thrust in (GRAVITY, np.inf, 0.0):
        with pytest.raises(AirworthyError):
            Choices(thrust=thrust)
