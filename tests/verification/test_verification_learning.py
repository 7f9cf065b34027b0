"""Figures of what learns: what they measure, and that they see what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airworthy.learning.environments.tasks import PositionByVelocity
from airworthy.verification.learning import trainers


def test_what_learns_is_as_it_must_be() -> None:
    found = [*trainers.reward_figures(), *trainers.adjoint_figures(), *trainers.stopping_figures()]
    assert len(found) == 6
    assert all(figure.passed for figure in found)
    # With room: what differences are off by themselves.
    assert max(figure.measured for figure in found[1:4]) < 1e-7


def test_a_reward_that_is_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = PositionByVelocity.judge

    def off(self: Any, *given: Any) -> Any:
        found = judge(self, *given)
        return replace(found, terms={**found.terms, "yaw": found.terms["yaw"] + 1e-5})

    monkeypatch.setattr(PositionByVelocity, "judge", off)
    (figure,) = trainers.reward_figures()
    assert not figure.passed


def test_slopes_that_are_off_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    adjoint = trainers.adjoint

    def off(*given: Any) -> Any:
        values, slopes = adjoint(*given)
        return values, [slope + 1e-3 * abs(slope).max() for slope in slopes]

    monkeypatch.setattr(trainers, "adjoint", off)
    assert not any(figure.passed for figure in trainers.adjoint_figures())


def test_a_hover_that_is_not_learnt_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    few = trainers.GradientOptions(env_count=16, window=20, hidden=16, iterations=2)
    monkeypatch.setattr(trainers, "GradientOptions", lambda: few)
    monkeypatch.setattr(trainers, "HoverProtocol", lambda: HOVER)
    kept, error, took = trainers.hover_figures("carl")
    assert not (kept.passed and error.passed)
    assert (took.aim, took.passed) == ("told, no bar", True)


HOVER = trainers.HoverProtocol(flights=16)


def test_throughput_is_told_and_held_against_nothing() -> None:
    figure = trainers.throughput_figure()
    assert figure.measured > 0.0
    assert (figure.aim, figure.unit) == ("told, no bar", "M/s")
