"""The figures of `airworthy verify --only gates`: they hold, and would not if what they measure were wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.gates.labels.options import Choices
from airworthy.gates.planner.contract import BoundaryContract, tensor_shapes, write_network
from airworthy.verification import Figure, gates
from airworthy.verification.published import zero


def failed(figures: Iterator[Figure]) -> list[str]:
    """Names of those that are not as they must be; they are all told apart by their names."""
    found = list(figures)
    assert found
    assert len({figure.name for figure in found}) == len(found)
    return [figure.name for figure in found if not figure.passed]


# ---- reference files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def vectors(data_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(data_dir / "boundary_predictor" / "reference_vectors.json", tmp_path / "vectors.json"))


def test_reference_vectors(vectors: Path) -> None:
    assert failed(gates.vector_figures(vectors)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["segments"][1]["samples"][2].update(a=t["segments"][1]["samples"][2]["a"] + 2e-9), "x, v, a, j"),
        (lambda t: t["segments"][1]["coefficients_p7_to_p0"].__setitem__(0, -0.087791493), "coefficients"),
        (lambda t: t["unit_basis"]["g0"].__setitem__(4, -19), "basis"),
        (lambda t: t["yaw"][1].update(psi=0.15709), "yaw"),
        (lambda t: t["limit"][2].update(a_max=1.7000001), "limit"),
        (lambda t: t["loss"][0].update(value=0.56016227), "loss"),
    ],
)
def test_a_spoilt_vector_is_found(vectors: Path, change: Any, message: str) -> None:
    table = json.loads(vectors.read_text())
    change(table)
    vectors.write_text(json.dumps(table))
    (name,) = failed(gates.vector_figures(vectors))
    assert message in name


def test_gains(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "boundary_predictor" / "mellinger_gains.json"
    assert failed(gates.gain_figures(path)) == []
    table = json.loads(path.read_text())
    table["crazyflow"]["kd_z"] = 0.4
    table["si_equivalents"]["kw_z_Nms"] *= 1.003
    (tmp_path / "gains.json").write_text(json.dumps(table))
    assert len(failed(gates.gain_figures(tmp_path / "gains.json"))) == 2


def test_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(gates.controller_figures()) == []
    mixed = gates.motor_commands
    monkeypatch.setattr(gates, "motor_commands", lambda *given: mixed(*given)[::-1])
    assert ["mixer" in name for name in failed(gates.controller_figures())] == [True]
    monkeypatch.setattr(gates, "motor_commands", lambda thrust, *rest: mixed(0.9 * thrust, *rest))
    assert len(failed(gates.controller_figures())) == 2


# ---- the search ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_counts_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(gates.grid_figures()) == []
    assert failed(gates.segment_figures()) == []
    # With a limit a ten-thousandth higher some more are admissible.
    monkeypatch.setattr(gates, "Choices", lambda: Choices(limit=(2.0002, 0.3)))
    assert len(failed(gates.segment_figures())) == 1


def test_another_limit_shows_in_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of all situations what one has under a tighter limit.
    one = gates.candidates(gates.SHORT[:1], Choices(limit=(1.9, 0.3)))
    monkeypatch.setattr(gates, "candidates", lambda e: one)
    assert len(failed(gates.grid_figures())) == 3


def test_the_oracle_is_the_fastest_admissible_pair() -> None:
    e = gates.SHORT
    found = gates.candidates(e)
    times = np.where(found.admissible, found.t0, np.inf)
    np.testing.assert_allclose(gates.oracle(e)[:, 1], times.min(axis=1), atol=1e-9)
    none = gates.oracle(np.array([[1.0, 0.3, 0.8, 3.0, 0.525, 0.8, 0.0, 0.3]]))
    assert np.isnan(none).all()


def test_pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(gates.pruning_figures(12)) == []
    label = gates.label

    def losing(e: Any, options: Any, numbers: Any) -> Any:
        found = label(e, options, numbers)
        return found if options.exhaustive else replace(found, candidate=found.candidate + (np.arange(len(e)) == 3))

    monkeypatch.setattr(gates, "label", losing)
    figure = next(gates.pruning_figures(12))
    assert (figure.measured, figure.passed) == (1.0, False)


def test_kernel_and_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SHORT", gates.SHORT[:1])
    monkeypatch.setattr(gates, "SHORT_SPEED", gates.SHORT_SPEED[:1])
    monkeypatch.setattr(gates, "SHORT_TIME", gates.SHORT_TIME[:1])
    assert failed(gates.twin_figures()) == []
    fly = gates.fly

    def off(*given: Any, twin: bool, **options: Any) -> Any:
        found = fly(*given, **options)
        return replace(found, error_mean=found.error_mean + 2e-5, skipped=~found.skipped) if twin else found

    monkeypatch.setattr(gates, "fly", off)
    assert len(failed(gates.twin_figures())) == 2


def test_speed_is_told_and_not_judged() -> None:
    steps, core, rollouts = gates.speed_figures(64)
    assert all(figure.passed and figure.measured > 0.0 for figure in (steps, core, rollouts))
    assert "5e7" in steps.aim


# ---- network and plans --------------------------------------------------------------------------------------------------


def test_loss_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(gates.loss_figures()) == []
    monkeypatch.setattr(gates, "loss_minimum", lambda: (0.05, -0.0128, 0.0916))
    monkeypatch.setattr(gates, "tensor_shapes", lambda: {**tensor_shapes(), "more": (1,)})
    assert len(failed(gates.loss_figures())) == 4


def test_time_of_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes().items()}
    folder = write_network(tmp_path / "net", BoundaryContract(), weights)
    monkeypatch.setattr(gates.time, "thread_time", iter(np.arange(0.0, 1.0, 2e-5)).__next__)
    assert failed(gates.network_figures([("net", folder)], 50)) == []
    monkeypatch.setattr(gates.time, "thread_time", iter(np.arange(0.0, 1.0, 2e-4)).__next__)
    assert len(failed(gates.network_figures([("net", folder)], 5))) == 1


def test_certificates() -> None:
    assert failed(gates.plan_figures()) == []


def test_a_plan_that_is_refused_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "oracle", lambda e: np.full((len(e), 2), np.nan))
    (name,) = failed(gates.plan_figures(("circle_8",)))
    assert "without a proven plan" in name


@pytest.mark.parametrize("part", ["limit", "floor", "clearance"])
def test_a_certificate_that_promises_too_much_shows(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    made = gates.plan

    def boasting(*given: Any) -> Any:
        found = made(*given)
        sure = found.certificate
        better = getattr(sure, part)
        if part == "limit":
            better = replace(better, checks=(replace(better.checks[0], bound=better.checks[0].bound - 1e-2),))
        else:
            better = replace(better, bound=better.bound + 1e-3)
        return replace(found, certificate=replace(sure, **{part: better}))

    monkeypatch.setattr(gates, "plan", boasting)
    (name,) = failed(gates.plan_figures(("circle_8",)))
    assert {"limit": "its proven bound", "floor": "height", "clearance": "frame"}[part] in name


# ---- the group ----------------------------------------------------------------------------------------------------------


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gates, "shipped_networks", dict)
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path))
    data, network = gates.gates_left_out()
    assert "has no folder 'boundary_predictor'" in data
    assert "No boundary network comes with the package" in network
    monkeypatch.delenv("AIRWORTHY_DATA")
    monkeypatch.setattr(gates, "shipped_networks", lambda: {"net": tmp_path})
    assert gates.gates_left_out() == []


def test_reference_files_are_asked_for_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("vector", "gain", "controller", "search", "loss", "network", "plan"):
        monkeypatch.setattr(gates, f"{name}_figures", lambda *given, n=name: iter([zero(n, 0)]))
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    without = [figure.name for figure in gates.gate_figures()]
    assert without == ["controller", "search", "loss", "network", "plan"]
    (tmp_path / "boundary_predictor").mkdir()
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path))
    assert [figure.name for figure in gates.gate_figures()] == ["vector", "gain", *without]


@pytest.mark.slow
def test_the_whole_group() -> None:
    """In ten seconds of processor time."""
    assert failed(gates.gate_figures()) == []
