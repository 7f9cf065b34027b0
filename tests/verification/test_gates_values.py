"""What the checks of flying gate to gate feed to what they check, and how they judge, against lines on file."""

# ruff: noqa: PLW0108 - functions are looked up when they are called, since names of their modules are replaced.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.verification.conftest import Compare

import airworthy.verification.gates as gates
from airworthy.gates.planner.contract import shipped_networks

CASES: dict[str, Callable[[], Any]] = {
    "segments": lambda: gates.segment_figures(),
    "pruning": lambda: gates.pruning_figures(3),
    "twin": lambda: gates.twin_figures(),
    "speed": lambda: gates.speed_figures(64),
    "loss": lambda: gates.loss_figures(),
    "network": lambda: gates.network_figures(list(shipped_networks().items())[:1], 3),
    "plans": lambda: gates.plan_figures(("straight_8", "circle_8")),
    "controller": lambda: gates.controller_figures(),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_and_judged(case: str, compare: Compare) -> None:
    compare(
        "gates.txt",
        case,
        [gates],
        CASES[case],
        unsteady="per second|processor time",
        leave_out=("segment_admissible", "_along"),
    )


def test_references_of_the_specification(compare: Compare, data_dir: Path) -> None:
    folder = data_dir / "boundary_predictor"
    compare("gates.txt", "vectors", [gates], lambda: gates.vector_figures(folder / "reference_vectors.json"))
    compare("gates.txt", "gains", [gates], lambda: gates.gain_figures(folder / "mellinger_gains.json"))


def test_the_grid_is_counted_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every situation once, in blocks; over 2 s counts as slow, none admissible as without."""
    asked: list[int] = []

    def candidates(situations: Any) -> Any:
        asked.append(len(situations))
        times = np.array([[2.0, 3.0], [2.1, 9.0], [0.5, 1.0]])
        return SimpleNamespace(admissible=np.array([[True, True], [True, False], [False, False]]), t0=times)

    monkeypatch.setattr(gates, "candidates", candidates)
    found = list(gates.grid_figures())
    assert asked == [12_960] * 10
    assert [figure.measured for figure in found] == [30.0, 10.0, 10.0]
    assert [figure.aim for figure in found] == ["3,035,608", "912", "2,688"]
    assert not any(figure.passed for figure in found)


@pytest.mark.parametrize(("tried", "passed"), [(19.9, True), (20.0, False)])
def test_pruning_leaves_less_than_a_fifth(tried: float, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def label(situations: Any, options: Any, numbers: Any) -> Any:
        many = np.full(5, 100.0 if options.exhaustive else tried)
        values = {item.name: np.zeros(5) for item in gates.fields(gates.Labels)}
        values |= {"tried": many, "steps": many}
        first = next(name for name in values if name not in ("tried", "steps"))
        values[first] = np.array([np.nan, 1.0, 2.0, np.nan, 0.0]) + (0.0 if options.exhaustive else np.array([0, 0, 1, 0, 0]))
        return SimpleNamespace(**values)

    monkeypatch.setattr(gates, "label", label)
    other, share = gates.pruning_figures(5)
    assert (other.measured, other.passed) == (1.0, False)
    assert (share.measured, share.passed) == (pytest.approx(tried), passed)


def test_the_oracle_takes_the_fastest_pair_that_the_limit_admits() -> None:
    from airworthy.gates.labels.candidates import candidates
    from airworthy.gates.labels.situations import PAPER

    situations = PAPER.situations(np.arange(0, PAPER.size, 9_001))
    found, pairs = candidates(situations), gates.oracle(situations)
    times = np.where(found.admissible, found.t0, np.inf)
    np.testing.assert_array_equal(pairs[:, 1], np.where(np.isfinite(times.min(axis=1)), times.min(axis=1), np.nan))
    for k in np.flatnonzero(np.isfinite(pairs[:, 0])):
        assert ((found.v[k] == pairs[k, 0]) & (found.t0[k] == pairs[k, 1]) & found.admissible[k]).any()


@pytest.mark.parametrize(("lift", "passed"), [(1.0401, True), (1.0399, False), (1.0799, True), (1.0801, False)])
def test_the_lift_in_hover_has_two_bars(lift: float, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    body = gates.vehicle("cf2x_scg_iros2022")
    speed = np.sqrt(lift * body.mass * 9.8 / (4.0 * body.rotors[0].thrust[2]))
    monkeypatch.setattr(gates, "speed_of_command", lambda command, chain: speed)
    *_, figure = gates.controller_figures()
    assert figure.measured == pytest.approx(lift)
    assert figure.passed is passed


def test_a_least_of_the_loss_that_is_off_by_a_digit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gates.loss_minimum()
    for k, step in enumerate((1e-4, 1e-5, 1e-4)):
        wrong = tuple(value + step * (j == k) for j, value in enumerate(right))
        monkeypatch.setattr(gates, "loss_minimum", lambda wrong=wrong: wrong)
        found = list(gates.loss_figures())[1:4]
        assert [figure.passed for figure in found] == [j != k for j in range(3)]
        monkeypatch.setattr(gates, "loss_minimum", lambda: right)
    assert all(figure.passed for figure in gates.loss_figures())


def test_gains_that_differ_are_counted(data_dir: Path) -> None:
    table = gates.read_json(data_dir / "boundary_predictor" / "mellinger_gains.json")
    p = gates.mellinger_parameters("mellinger_firmware")
    assert gates._other_gains(p, table["firmware"], table) == 0
    for name in (*gates.NAMES, "attitude_integral_gain", "attitude_integral_max", "rate_derivative_gain", "moment_max"):
        changed = tuple(value + 1.0 for value in getattr(p, name))
        assert gates._other_gains(p._replace(**{name: changed}), table["firmware"], table) == 1
    assert gates._other_gains(p._replace(thrust_scale=p.thrust_scale + 1.0), table["firmware"], table) == 1


def test_a_plan_that_is_worse_than_its_proof_fails() -> None:
    """Each of six bars, by a certificate whose bounds are moved."""
    made = gates.plan(gates.course("straight_8"), gates.oracle)
    used, beyond, slack, low, near, miss = gates._checked(made)
    assert used <= 2.0
    assert (beyond <= 1e-9, slack <= gates.SLACK, low <= 1e-9, near <= 1e-9, miss <= 1e-9) == (True,) * 5
    sure = made.certificate
    assert sure is not None
    check = sure.limit.checks[0]
    lower = replace(sure, limit=replace(sure.limit, checks=(replace(check, bound=check.bound - 0.5), *sure.limit.checks[1:])))
    found = gates._checked(replace(made, certificate=lower))
    assert found[1] == pytest.approx(beyond + 0.5)
    assert found[2] == pytest.approx(slack - 0.5)
    assert gates._checked(replace(made, certificate=replace(sure, floor=replace(sure.floor, bound=sure.floor.bound + 0.25))))[
        3
    ] == pytest.approx(low + 0.25)
    assert gates._checked(
        replace(made, certificate=replace(sure, clearance=replace(sure.clearance, bound=sure.clearance.bound + 0.25)))
    )[4] == pytest.approx(near + 0.25)
    assert gates._checked(replace(made, speeds=1.01 * made.speeds))[5] == pytest.approx(
        0.01 * made.speeds[1:-1].max(), rel=1e-6
    )


def test_distance_from_the_bars_of_gates() -> None:
    made = gates.plan(gates.course("circle_8"), gates.oracle)
    bar = made.gates[2].bars()[1]
    half, c, s = np.array(bar.half_size), np.cos(bar.yaw), np.sin(bar.yaw)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for offset, wanted in (
        ((0.0, 0.0, 0.0), 0.0),
        ((half[0] + 0.02, 0.0, 0.0), 0.02),
        ((half[0] + 0.03, half[1] + 0.04, 0.0), 0.05),
    ):
        point = np.array(bar.center) + turn @ np.array(offset)
        assert (
            gates._clearance(point[None], made) == pytest.approx(wanted, abs=1e-9)
            or gates._clearance(point[None], made) < wanted
        )
    far = np.array([[0.0, 0.0, 500.0]])
    assert gates._clearance(far, made) == pytest.approx(500.0, abs=3.0)


@pytest.mark.parametrize(("refused", "count"), [((), 0), (("flyable",), 1), (("certificate",), 1), (("proven",), 1)])
def test_courses_without_a_proven_plan_are_counted(
    refused: tuple[str, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure = SimpleNamespace(proven="proven" not in refused)
    made = SimpleNamespace(
        flyable="flyable" not in refused, certificate=None if "certificate" in refused else sure, trajectory=None
    )
    monkeypatch.setattr(gates, "plan", lambda course, oracle: made)
    (figure,) = gates.plan_figures(("straight_8",))
    assert (figure.measured, figure.passed) == (float(count), count == 0)


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gates, "shipped_networks", dict)
    monkeypatch.setattr(gates, "data_dir", lambda: tmp_path)
    assert [line.split(":")[0] for line in gates.gates_left_out()] == [
        "AIRWORTHY_DATA has no folder 'boundary_predictor'",
        "No boundary network comes with the package",
    ]
    (tmp_path / "boundary_predictor").mkdir()
    assert len(gates.gates_left_out()) == 1
    assert gates._references() == tmp_path / "boundary_predictor"
    monkeypatch.setattr(gates, "data_dir", lambda: None)
    assert len(gates.gates_left_out()) == 1
    assert gates._references() is None
