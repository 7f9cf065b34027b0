"""`airworthy verify --only articulated`: every figure of it is as it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from airworthy.cli.verify import GROUPS, LEFT_OUT
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import vehicle
from airworthy.verification.articulated import figures as articulated
from airworthy.verification.articulated import flights as articulated_flights
from airworthy.verification.articulated.mujoco_model import has_mujoco, mujoco_text
from airworthy.verification.published import Figure

NEEDS_MUJOCO = pytest.mark.skipif(not has_mujoco(), reason="the package mujoco is not installed")


def failed(figures: Iterable[Figure]) -> list[Figure]:
    found = list(figures)
    assert found
    return [figure for figure in found if not figure.passed]


@NEEDS_MUJOCO
def test_accelerations_are_those_of_mujoco() -> None:
    assert failed(articulated.acceleration_figures(60)) == []


@NEEDS_MUJOCO
@pytest.mark.slow
def test_flights_are_those_of_mujoco() -> None:
    assert failed(articulated.trajectory_figures(0.2)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "figures",
    [
        articulated.integrator_figures,
        articulated.identification_figures,
        articulated.stop_figures,
        lambda: [articulated.rigid_figure()],
        lambda: articulated.conservation_figures(0.1),
        articulated_flights.hover_figures,
        lambda: [articulated_flights.determinism_figure()],
    ],
    ids=["integrators", "identification", "stops", "rigid", "conservation", "hover", "determinism"],
)
def test_figures_without_a_reference(figures: Callable[[], Iterable[Figure]]) -> None:
    assert failed(figures()) == []


@pytest.mark.parametrize(
    "figures",
    [
        pytest.param(articulated_flights.order_figures, marks=pytest.mark.slow),
        articulated_flights.example_figures,
        articulated_flights.impact_figures,
    ],
    ids=["orders", "examples", "impacts"],
)
def test_figures_without_a_kernel(figures: Callable[[], Iterable[Figure]]) -> None:
    assert failed(figures()) == []


@pytest.mark.slow
def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An angle that no arm has fails its figure."""
    monkeypatch.setattr(articulated, "RELEASE", {10: 0.25})
    assert len(failed(articulated.identification_figures())) == 1


def test_the_command_knows_the_group_and_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GROUPS["articulated"] is articulated.articulated_figures
    monkeypatch.setattr(articulated, "has_mujoco", lambda: False)
    said, speed = LEFT_OUT["articulated"]()
    assert "python benchmarks/articulated.py" in speed
    assert said == "The package mujoco is not installed: comparisons of vehicles with joints were left out."


def test_laws_that_mujoco_lacks_are_refused() -> None:
    with pytest.raises(AirworthyError, match="MuJoCo has no law 'morphy' with rest"):
        mujoco_text(vehicle("morphy"), 0.001, "RK4")
    assert mujoco_text(vehicle("snakey"), 0.001, "RK4").count("<joint") == 6
