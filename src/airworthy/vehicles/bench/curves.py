"""Curves of a stand by weighted least squares, with errors by groups of levels: neighbours share what is wrong with a curve.

Errors are those of the cluster-robust estimate (Liang and Zeger 1986; factor for few clusters as of Cameron and Miller 2015):
rows of a level, and levels next to each other, are not independent, and a standard error per row would be ten times too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt

__all__ = ["BenchCurve", "BenchSag", "BenchSpeed", "fit_curve", "fit_speed", "is_covariance", "sag_of"]

FLOOR = 0.05
"""Of the largest value: errors are taken to grow with the value from there on."""
SAG_PRIOR = (1.0, 0.5)
"""Mean and deviation beforehand of the power of the voltage: speed goes with it where a controller does not hold speed. Of
215 public tables of stands nine tenths lie between 0.70 and 1.32, with this prior."""
ROUNDS = 12
LINEAR_FROM = 0.15
"""Commands under which a speed map is not fitted: motors start there."""


@dataclass(frozen=True)
class BenchCurve:
    """A value over the rotor's state: linear s + square s |s|, zero at standstill."""

    linear: float
    square: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    """Of both coefficients."""
    rms: float
    """Of what is left at a level, in the value's unit."""
    low: float
    """Least state that was measured."""
    high: float
    """Largest."""

    def at(self, state: float) -> float:
        """Return the value at a state."""
        return self.linear * state + self.square * state * abs(state)

    def slope(self, state: float) -> float:
        """Return the slope over the state."""
        return self.linear + 2.0 * self.square * abs(state)

    def sd(self, state: float) -> float:
        """Return the standard deviation of the value at a state."""
        row = np.array([state, state * abs(state)])
        return float(np.sqrt(max(row @ np.array(self.covariance) @ row, 0.0)))


@dataclass(frozen=True)
class BenchSpeed:
    """Steady speed over command and supply: (offset + slope u)(V / voltage)^sag."""

    offset: float
    """[rad/s]"""
    slope: float
    """[rad/s]"""
    sag: float
    """[1]; the prior's mean where voltage was not measured."""
    voltage: float
    """At which offset and slope hold [V]; 0: not measured."""
    covariance: tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]
    """Of offset, slope and sag."""
    sag_share: float
    """1 - variance of the sag over what was believed of it."""
    rms: float
    """Of what is left at a level [rad/s]."""
    low: float
    """Least command that was measured."""
    high: float
    """Largest."""

    def at(self, command: float, voltage: float = 0.0) -> float:
        """Return the speed at a command [rad/s].

        Args:
            command: Fraction of full.
            voltage: [V]; 0: that of the stand.
        """
        return self.factor(voltage) * (self.offset + self.slope * command)

    def factor(self, voltage: float) -> float:
        """Return the speed at a voltage over that of the stand's own."""
        return (voltage / self.voltage) ** self.sag if voltage > 0.0 and self.voltage > 0.0 else 1.0

    def sd(self, command: float, voltage: float = 0.0) -> float:
        """Return the standard deviation of the speed at a command [rad/s]."""
        factor = self.factor(voltage)
        log = math.log(voltage / self.voltage) if voltage > 0.0 and self.voltage > 0.0 else 0.0
        row = np.array([factor, factor * command, self.at(command, voltage) * log])
        return float(np.sqrt(max(row @ np.array(self.covariance) @ row, 0.0)))


@dataclass(frozen=True)
class BenchSag:
    """How thrust over commands goes with the supply, where no speed was measured: a command counts as u (V / voltage)^power."""

    power: float
    """[1]"""
    sd: float
    voltage: float
    """At which the curve holds [V]."""


def is_covariance(covariance: Array) -> bool:
    """Return whether a matrix is finite, symmetric and positive definite, whatever the units of its rows, (n, n)."""
    sd = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    if not (np.isfinite(covariance).all() and (sd > 0.0).all()):
        return False
    related = covariance / np.outer(sd, sd)
    return bool(np.abs(related - related.T).max() < 1e-6 and np.linalg.eigvalsh(related)[0] > 0.0)


def fit_curve(state: Array, value: Array, group: ArrayInt) -> BenchCurve:
    """Fit a curve that is zero at standstill.

    Args:
        state: (n,)
        value: (n,)
        group: Of each level, (n,).
    """
    rows = np.stack([state, state * np.abs(state)], axis=1)
    weight = 1.0 / (FLOOR * np.max(np.abs(value)) + np.abs(value))
    found, covariance, left = _weighted(rows, value, weight, group)
    c = covariance
    return BenchCurve(
        float(found[0]),
        float(found[1]),
        ((float(c[0, 0]), float(c[0, 1])), (float(c[1, 0]), float(c[1, 1]))),
        float(np.sqrt(np.mean(left**2))),
        float(state.min()),
        float(state.max()),
    )


def sag_of(command: Array, voltage: Array, value: Array, group: ArrayInt) -> BenchSag:
    """Return the power of the voltage that leaves least of a curve over commands, with the prior of `fit_speed`.

    Args:
        command: (n,)
        voltage: [V], (n,)
        value: Thrust, (n,)
        group: Of each level, (n,).
    """
    middle = float(np.median(voltage))
    weight = 1.0 / (FLOOR * np.max(np.abs(value)) + np.abs(value))
    powers = np.linspace(SAG_PRIOR[0] - 3.0 * SAG_PRIOR[1], SAG_PRIOR[0] + 3.0 * SAG_PRIOR[1], 61)
    costs = []
    for power in powers:
        state = command * (voltage / middle) ** power
        left = _weighted(np.stack([state, state**2], axis=1), value, weight, group)[2]
        # Levels of a group count as one.
        costs.append(0.5 * len(np.unique(group)) * math.log(float(np.mean((left * weight) ** 2)) + 1e-12))
    cost = np.array(costs) + 0.5 * ((powers - SAG_PRIOR[0]) / SAG_PRIOR[1]) ** 2
    density = np.exp(cost.min() - cost)
    mean = float(density @ powers / density.sum())
    return BenchSag(mean, float(np.sqrt(density @ (powers - mean) ** 2 / density.sum())), middle)


def fit_speed(command: Array, speed: Array, voltage: Array | None, group: ArrayInt) -> BenchSpeed:
    """Fit speed over command and supply by Gauss-Newton; the sag has a prior, since voltage falls as commands rise.

    Args:
        command: (n,)
        speed: [rad/s], (n,)
        voltage: [V], (n,); None: not measured.
        group: Of each level, (n,).
    """
    inside = command >= min(LINEAR_FROM, 0.5 * float(command.max()))
    command, speed, group = command[inside], speed[inside], group[inside]
    known = None if voltage is None else voltage[inside]
    middle = 0.0 if known is None else float(np.median(known))
    log = np.zeros(len(command)) if known is None else np.log(known / middle)
    theta = np.array([*np.polynomial.polynomial.polyfit(command, speed, 1), SAG_PRIOR[0]])
    weight = 1.0 / speed
    size = float(np.std(speed / np.polynomial.polynomial.polyval(command, theta[:2]) - 1.0)) + 1e-4
    for _ in range(ROUNDS):
        factor = np.exp(theta[2] * log)
        straight = theta[0] + theta[1] * command
        rows = np.stack([factor, factor * command, straight * factor * log], axis=1)
        left = speed - straight * factor
        heavy = rows * weight[:, None]
        # Relative errors of levels of a group are one; the prior counts against so many groups.
        prior = np.diag([0.0, 0.0, (size / SAG_PRIOR[1]) ** 2 * len(speed) / max(len(np.unique(group)), 1)])
        gradient = heavy.T @ (left * weight) + prior @ (np.array([0.0, 0.0, SAG_PRIOR[0]]) - theta)
        step = np.linalg.solve(heavy.T @ heavy + prior + 1e-15 * np.eye(3), gradient)
        theta = theta + step
        size = float(np.sqrt(np.mean((left * weight) ** 2))) + 1e-4
    covariance = _clustered(heavy, left * weight, group, prior)
    # Groups that agree by chance know no more of the sag than the prior and the curvature.
    covariance[2, 2] = min(max(covariance[2, 2], 0.0), SAG_PRIOR[1] ** 2)
    c = [[float(v) for v in row] for row in covariance]
    return BenchSpeed(
        float(theta[0]),
        float(theta[1]),
        float(theta[2]),
        middle,
        ((c[0][0], c[0][1], c[0][2]), (c[1][0], c[1][1], c[1][2]), (c[2][0], c[2][1], c[2][2])),
        float(np.clip(1.0 - covariance[2, 2] / SAG_PRIOR[1] ** 2, 0.0, 1.0)),
        float(np.sqrt(np.mean(left**2))),
        float(command.min()),
        float(command.max()),
    )


def _weighted(rows: Array, value: Array, weight: Array, group: ArrayInt) -> tuple[Array, Array, Array]:
    heavy, target = rows * weight[:, None], value * weight
    scale = np.linalg.norm(heavy, axis=0)
    found = np.linalg.lstsq(heavy / scale, target, rcond=None)[0] / scale
    left = value - rows @ found
    return found, _clustered(heavy, left * weight, group), left


def _clustered(heavy: Array, left: Array, group: ArrayInt, prior: Array | None = None) -> Array:
    """Covariance by groups, at least that of independent levels.

    Args:
        heavy: Rows over their errors, (n, p).
        left: Scaled residuals, (n,).
        group: (n,)
        prior: What is known beforehand, in the same scale, (p, p).
    """
    count, size = heavy.shape
    scale = np.linalg.norm(heavy, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    plain = heavy / scale
    known = np.zeros((size, size)) if prior is None else prior / np.outer(scale, scale)
    inverse = np.linalg.inv(plain.T @ plain + known + 1e-12 * np.eye(size))
    groups = np.unique(group)
    each = np.stack([plain[group == g].T @ left[group == g] for g in groups])
    factor = len(groups) / max(len(groups) - size, 1) * (count - 1) / max(count - size, 1)
    variance = float(left @ left) / max(count - size, 1)
    if prior is not None:
        # A prior that is weighed against groups asks that a group counts as one level.
        variance *= count / len(groups)
    shared = factor * inverse @ each.T @ each @ inverse
    alone = variance * inverse
    wider = np.sqrt(np.maximum(np.diag(shared), np.diag(alone)) / np.maximum(np.diag(alone), 1e-300))
    return np.asarray(alone * np.outer(wider, wider) / np.outer(scale, scale))
