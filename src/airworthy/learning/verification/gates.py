"""The acceptance list of flying gate to gate (specification of the boundary predictor): `airworthy verify --only gates`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from airworthy.core.files import data_dir
from airworthy.evaluation.verification import Figure
from airworthy.learning.verification.gates_plans import loss_figures, network_figures, plan_figures
from airworthy.learning.verification.gates_reference import controller_figures, gain_figures, vector_figures
from airworthy.learning.verification.gates_search import search_figures
from airworthy.pilots.boundary.weights import shipped_networks

__all__ = ["gate_figures", "gates_left_out"]


def gate_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; those without their reference files or a shipped network are left out.

    Args:
        everything: 2,000 situations are searched both ways instead of 200, and the speed is that of eight times the rollouts.
    """
    folder = _references()
    if folder is not None:
        yield from vector_figures(folder / "reference_vectors.json")
        yield from gain_figures(folder / "mellinger_gains.json")
    yield from controller_figures()
    yield from search_figures(everything)
    yield from loss_figures()
    yield from network_figures(list(shipped_networks().items()))
    yield from plan_figures()


def _references() -> Path | None:
    """The folder of reference files; None: there is none."""
    data = data_dir()
    return data / "boundary_predictor" if data is not None and (data / "boundary_predictor").is_dir() else None


def gates_left_out() -> list[str]:
    """What is not measured here for want of something, one sentence each."""
    lines = []
    if data_dir() is not None and _references() is None:
        lines.append("AIRWORTHY_DATA has no folder 'boundary_predictor': comparisons with its reference files were left out.")
    if not shipped_networks():
        lines.append("No boundary network comes with the package: how long it takes for a gate was left out.")
    return lines
