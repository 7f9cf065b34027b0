"""Whether a task can be learnt from at all: it has a reward, and its flights last longer than a decision."""

from __future__ import annotations

import math
from collections.abc import Sequence

from airworthy.core.errors import AirworthyError

__all__ = ["check_observation", "check_reward", "check_update"]

REWARD_MAX = 1e12
"""Ours: the square of a larger one leaves float32, and with it the critic's error."""


def check_observation(task: str, count: int) -> None:
    """Raise where a policy would see nothing.

    Args:
        task: Its name.
        count: Numbers that `observe` returns.

    Raises:
        AirworthyError: There are none.
    """
    if not count:
        raise AirworthyError(
            f"The task {task!r} observes nothing: its observe returns no number; expected a sequence of one or more."
        )


def check_reward(task: str, terms: Sequence[str]) -> None:
    """Raise where a task says no part of a reward.

    Args:
        task: Its name.
        terms: Names of the parts that `judge` returns.

    Raises:
        AirworthyError: There are none.
    """
    if not terms:
        raise AirworthyError(
            f"The task {task!r} has no reward: its judge returns no part; expected Judgement({{'name': value}}, ...)."
        )


def check_update(task: str, decisions: int, terminated: int, reward: float) -> None:
    """Raise where an update had nothing to learn from.

    Args:
        task: Its name.
        decisions: Of the update, over all flights.
        terminated: Flights that ended in it otherwise than by their time.
        reward: Mean per decision.

    Raises:
        AirworthyError: Every decision ended its flight, or rewards leave what can be computed with.
    """
    # A flight that leaves the numbers is ended with a reward of 0, so that no other feels it: where all do, nobody would see.
    if decisions and terminated >= decisions:
        raise AirworthyError(
            f"Every one of {decisions:,} decisions of the task {task!r} ended its flight: its reward, what it remembers or the"
            " vehicle's state is not a number, or it terminates whatever happens."
        )
    if not math.isfinite(reward) or abs(reward) > REWARD_MAX:
        raise AirworthyError(
            f"The reward of the task {task!r} is {reward:.3g} per decision; expected at most {REWARD_MAX:g}: scale it."
        )
