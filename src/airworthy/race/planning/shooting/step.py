"""One Runge-Kutta step with its slopes and second derivatives by state, inputs and duration: readable, many steps at once.

    k_i = f(y_i, u),  y_1 = x,  y_{i+1} = x + a_i h k_i,  F = x + h/6 (k_1 + 2 k_2 + 2 k_3 + k_4)

The second derivative of w . F by z = (x, u, h) is the sum of those of f at the four stages, each seen through dy_i/dz, and of
the products of h with the slopes of k_i. The weights of the stages come from the step's adjoint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel
from airworthy.race.planning.shooting.curvature import ACTIVE, FLOW, VEHICLE, Terms, flow_curves, flow_slopes, vehicle_numbers

__all__ = ["ALL", "StepDerivatives", "StepTerms"]

ALL = STATES + INPUTS + 1
"""States, inputs and the duration."""
_AHEAD = (0.5, 0.5, 1.0)
"""a_i of the module."""
_SHARE = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)
"""Of each slope in the step."""


class _Stage(NamedTuple):
    """One of the four."""

    active: Array
    """(n, 11)"""
    seen: Array
    """Slopes of `active` by z, (n, 11, 18)."""
    speed: Array
    """k_i, (n, 13)."""
    turn: Array
    """Slopes of k_i by z, (n, 13, 18)."""
    slopes: Array
    """Of f by `active`, (n, 7, 11)."""


class StepTerms(NamedTuple):
    """Of n steps."""

    after: Array
    """(n, 13)"""
    slopes: Array
    """By z, (n, 13, 18)."""
    curves: Array
    """Second derivatives of weight . F, (n, 18, 18)."""


class StepDerivatives:
    """Steps of one vehicle with their derivatives.

    Args:
        model: Who flies.
    """

    def __init__(self, model: RacerModel) -> None:
        axial, self._vehicle = model.has_axial_drag, vehicle_numbers(model)[:, None]
        self._flow = Terms(lambda x: flow_slopes(x[:ACTIVE], x[ACTIVE:], axial), ACTIVE + VEHICLE)
        bent = ACTIVE + FLOW
        self._bend = Terms(lambda x: flow_curves(x[:ACTIVE], x[ACTIVE:bent], x[bent:], axial), bent + VEHICLE)

    def terms(self, states: Array, inputs: Array, durations: Array, weight: Array) -> StepTerms:
        """Return where steps lead, with derivatives.

        Args:
            states: (n, 13)
            inputs: Held, (n, 4).
            durations: [s], (n,).
            weight: w of the module, (n, 13).
        """
        count, h = len(states), durations[:, None]
        begin = np.zeros((count, STATES, ALL))
        begin[:, np.arange(STATES), np.arange(STATES)] = 1.0
        at, by = states, begin
        stages: list[_Stage] = []
        for number in range(4):
            stage = self._stage(at, by, inputs)
            stages.append(stage)
            if number < 3:
                at = states + _AHEAD[number] * h * stage.speed
                by = begin + _AHEAD[number] * h[:, :, None] * stage.turn
                by[:, :, -1] += _AHEAD[number] * stage.speed
        total = sum(share * stage.speed for share, stage in zip(_SHARE, stages, strict=True))
        slope = sum(share * stage.turn for share, stage in zip(_SHARE, stages, strict=True))
        slopes = begin + h[:, :, None] * slope
        slopes[:, :, -1] += total
        return StepTerms(states + h * total, slopes, self._curves(h, weight, stages))

    def _stage(self, at: Array, by: Array, inputs: Array) -> _Stage:
        active = np.concatenate([at[:, 3:], inputs[:, :1]], axis=1)
        found = self._flow(*active.T, *self._vehicle)
        values, slopes = found[:, :FLOW], found[:, FLOW:].reshape(-1, FLOW, ACTIVE)
        seen = np.concatenate([by[:, 3:], np.zeros((len(at), 1, ALL))], axis=1)
        seen[:, -1, STATES] = 1.0
        turn = np.zeros((len(at), STATES, ALL))
        turn[:, :3], turn[:, 3:10] = by[:, 3:6], slopes @ seen
        turn[:, 10:, STATES + 1 : ALL - 1] = np.eye(3)
        return _Stage(active, seen, np.concatenate([at[:, 3:6], values, inputs[:, 1:]], axis=1), turn, slopes)

    def _curves(self, h: Array, weight: Array, stages: list[_Stage]) -> Array:
        count = len(weight)
        curves, back = np.zeros((count, ALL, ALL)), np.zeros((count, STATES))
        for number in (3, 2, 1, 0):
            stage, ahead = stages[number], _AHEAD[number] if number < 3 else 0.0
            # What weighs this slope, in the sum and through the next stage; without h, for h multiplies it.
            bare = _SHARE[number] * weight + ahead * back
            by_h = np.einsum("ni,nij->nj", bare, stage.turn)
            curves[:, :, -1] += by_h
            curves[:, -1, :] += by_h
            push = h * bare
            second = self._bend(*stage.active.T, *push[:, 3:10].T, *self._vehicle).reshape(-1, ACTIVE, ACTIVE)
            curves += stage.seen.swapaxes(1, 2) @ second @ stage.seen
            back = np.zeros((count, STATES))
            back[:, 3:6] = push[:, :3]
            back[:, 3:] += np.einsum("ni,nij->nj", push[:, 3:10], stage.slopes)[:, : ACTIVE - 1]
        return curves
