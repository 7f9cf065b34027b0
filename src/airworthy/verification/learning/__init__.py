"""Acceptance lists of what is learnt, measured: the figures of `airworthy verify --only gates`, and those of `--only sousvide`
but of marker alignment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from airworthy.core.files import data_dir
from airworthy.learning.svnet import ExpertPairs
from airworthy.verification import Figure
from airworthy.verification.gates import gate_figures, gates_left_out
from airworthy.verification.learning.expert import (
    closing_figures,
    dynamics_figures,
    expert_figures,
    instant_figures,
    made_small,
    planner_figures,
    published_set_figures,
    repetition_figures,
)
from airworthy.verification.learning.policy import (
    formula_figures,
    frozen_figures,
    has_torch,
    metric_figures,
    network_figures,
    place_figures,
    runner_figures,
    size_figures,
    usable_policy,
)

__all__ = ["gate_figures", "gates_left_out", "sousvide_figures", "sousvide_left_out"]


def sousvide_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; those without their reference files, the shipped policy or torch are left out.

    Args:
        everything: The 180,000 pairs twice, by one process and by two, and their bytes compared; 100 flights of each kind for
            the history network instead of 20.
    """
    folder = _references()
    yield from dynamics_figures()
    if folder is not None:
        yield from planner_figures(folder)
    yield from expert_figures(None if folder is None else folder / "mpc_reference.json")
    yield from _with_data(everything)
    yield from size_figures()
    yield from place_figures()
    yield from runner_figures()
    if (policy := usable_policy()) is not None:
        yield from network_figures(policy, 100 if everything else 20)
    yield from formula_figures()
    yield from metric_figures()


def _with_data(everything: bool) -> Iterator[Figure]:
    """Items 4, 5 and 9, which need data sets."""
    with TemporaryDirectory(prefix="airworthy_") as name:
        folder = Path(name)
        yield from published_set_figures(folder / "published", again=everything)
        yield from closing_figures()
        small = made_small(folder)
        yield from repetition_figures(small, folder)
        yield from instant_figures(small)
        if has_torch():
            yield from frozen_figures(cast(ExpertPairs, small))


def _references() -> Path | None:
    """Return the folder of reference files; None: there is none."""
    data = data_dir()
    return data / "sousvide" if data is not None and (data / "sousvide").is_dir() else None


def sousvide_left_out() -> list[str]:
    """Return what is not measured here for want of something, one sentence each."""
    lines = []
    if data_dir() is not None and _references() is None:
        lines.append("AIRWORTHY_DATA has no folder 'sousvide': comparisons with its reference files were left out.")
    if not has_torch():
        lines.append("torch is not installed: that training freezes the history network was left out (extra 'learn').")
    if usable_policy() is None:
        lines.append("The policy that ships with the package is missing: figures of its history network were left out.")
    return lines
