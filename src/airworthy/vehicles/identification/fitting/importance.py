"""Importance sampling of a fit's distribution: does the normal one that its curvature tells hold?

Sets are drawn from a t distribution about the fit, round after round until enough of them count, and weighed by the cost. The
cost is divided by what windows share, so that its curvature is that of the deviations which the fit tells. Drawing each round
after the weighed sets of the one before it was tried: in twenty dimensions, 256 sets tell no covariance, and fewer count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.fitting.refine import Fit, costs_of, curvature_of

__all__ = ["ImportanceSamples", "sample_fit"]

SETS, ROUNDS, CHUNK = 256, 4, 32
"""Of a round; at most; predicted at once."""
FREEDOM = 40.0
"""Degrees of freedom of the t distribution: tails heavier than the target's. With 5, hardly a set counts."""
EFFECTIVE_MIN = 100.0
"""Effective number of sets that ends it."""
APART = 1.5
"""Ratio of deviations from which on a distribution is called not normal."""
SHARE_MIN = 0.3
"""Values of which a log tells less keep their priors."""


@dataclass(frozen=True, eq=False)
class ImportanceSamples:
    """What importance sampling found."""

    effective: float
    """Effective number of sets."""
    rounds: int
    ratio: Array
    """Deviation of each parameter over the normal one's; 1 for what is not fitted or not told, (parameters,)."""

    @property
    def reached(self) -> bool:
        """Whether enough sets count."""
        return self.effective >= EFFECTIVE_MIN

    def sentence(self, labels: list[str]) -> str:
        """Return what it says, in words.

        Args:
            labels: Of the parameters.
        """
        said = f"importance sampling, {self.rounds} rounds of {SETS} sets: effective size {self.effective:.0f}"
        if not self.reached:
            short = f"{said} of the {EFFECTIVE_MIN:.0f} that are needed"
            return f"WARNING: {short}; deviations stand as curvature and scatter tell them."
        wide = [f"{n} x{r:.2g}" for n, r in zip(labels, self.ratio, strict=True) if r > APART or r < 1.0 / APART]
        return f"{said}; " + (f"not normal: {', '.join(wide)}" if wide else "deviations are those of the normal distribution")


def sample_fit(fit: Fit, seed: int, say: Callable[[str], None] = lambda _: None) -> tuple[Fit, ImportanceSamples]:
    """Sample the distribution of a fit, and widen its deviations where samples spread more than they say.

    Args:
        fit: With its deviations.
        seed: Of the draws.
        say: Told what is done.

    Returns:
        The fit, and what was found. Where too few sets count the fit is as it was.
    """
    problem, draw = fit.problem, np.random.default_rng(seed)
    index, prior = problem.parameters.index, problem.parameters.sd
    told = fit.covariance[index, index] < (1.0 - SHARE_MIN) * prior[index] ** 2
    data = curvature_of(problem, fit.theta) - np.eye(len(index))
    lapped = np.diag(np.linalg.inv(data + np.eye(len(index))))
    wider = fit.covariance[index, index] / prior[index] ** 2 / lapped
    shared = float(np.exp(np.mean(np.log(wider[told])))) if told.any() else 1.0
    # In prior deviations from the fit.
    normal = np.linalg.inv(data / shared + np.eye(len(index)))
    root = np.linalg.cholesky(normal)
    drawn, logs = np.zeros((0, len(index))), np.zeros(0)
    weight, used, effective = np.zeros(0), 0, 0.0
    while used < ROUNDS and effective < EFFECTIVE_MIN:
        used += 1
        scale = np.sqrt(FREEDOM / draw.chisquare(FREEDOM, SETS))[:, None]
        unit = scale * draw.standard_normal((SETS, len(index)))
        theta = np.repeat(fit.theta[None], SETS, axis=0)
        theta[:, index] += (unit @ root.T) * prior[index]
        cost = np.concatenate([costs_of(problem, theta[k : k + CHUNK], shared) for k in range(0, SETS, CHUNK)])
        proposed = -0.5 * (FREEDOM + len(index)) * np.log1p((unit**2).sum(axis=1) / FREEDOM)
        drawn, logs = np.concatenate([drawn, unit @ root.T]), np.concatenate([logs, -cost - proposed])
        weight = _weights(logs)
        effective = 1.0 / float((weight**2).sum())
    apart = drawn - weight @ drawn
    spread = (weight[:, None] * apart**2).sum(axis=0)
    say(f"importance sampling: {used} rounds, effective size {effective:.0f}")
    ratio = np.ones(len(prior))
    ratio[index[told]] = np.sqrt(spread / np.diag(normal))[told]
    found = ImportanceSamples(effective, used, ratio)
    if not found.reached:
        return fit, found
    more = np.where(ratio > APART, ratio, 1.0)
    return replace(fit, covariance=fit.covariance * np.outer(more, more)), found


def _weights(logs: Array) -> Array:
    """Weights that sum to 1 from their logs; what is not finite counts nothing."""
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())
