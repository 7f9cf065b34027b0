"""Joint refinement: the parameters whose predictions over windows stay closest to what sensors showed, and how sure they are.

Gauss-Newton with Levenberg's damping on errors of rate and specific force, all perturbations of a Jacobian predicted in one
batch, four dampings in another. A window's errors share their cause - a push that lasts turns all of its rates - so they are
weighed by the inverse of their covariance over the window, a mixture of noise and of pushes that last, taken anew from the
fit's errors: what a push explains tells nothing of the vehicle. A window whose error is far beyond the others' counts by its
length and no more (soft L1). How much thrust there is stands beside, as the mean of the whole flight tells it (`levels`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex, ArrayInt
from airworthy.vehicles.identification.fitting.levels import LevelWeight, level_weights
from airworthy.vehicles.identification.fitting.parameters import Parameters
from airworthy.vehicles.identification.fitting.whitening import whitening_of
from airworthy.vehicles.identification.known import MeasuredValue
from airworthy.vehicles.identification.prediction.plant import Plant, distinct
from airworthy.vehicles.identification.prediction.predict import Windows, predicted_means

__all__ = [
    "Descent",
    "Fit",
    "FitProblem",
    "costs_of",
    "curvature_of",
    "descend_by_gauss_newton",
    "left_out_scores",
    "promised_gain",
    "refine",
]

BLOCK_STEPS = 5
"""Steps over which errors are averaged: 25 ms, within which errors are vibration."""
TOLD_BLOCKS = 4
"""First blocks of a window, a tenth of a second, that only foretell the later ones. Pilots act against a push, so that commands
at the start of a window go with the push that was there before it: counted, they would make inertia larger than it is."""
SOFT = 2.0
"""Windows with errors beyond so many times the usual begin to count less; ours: errors of ordinary windows count whole."""
STEP = 1e-3
"""Of differences, in prior deviations."""
FAR = 1e3
"""Scaled error of a prediction that ran away; infinity would stop the least squares."""
ITERATIONS, ITERATIONS_START = 12, 4
GAIN_MIN = 1e-4
"""Smaller gains end the iterations, over the cost."""
RESCALED, SETTLED = 6, 0.1
"""How often, at most, the errors' covariance is taken anew from the fit's own errors, and the largest move that ends it, in
deviations: a covariance that was taken with a cause of errors left out makes that cause look like noise, and goes slowly."""
SHARED = 2.0
"""Time over which windows share what disturbs them, less and less [s]: four times what pushes last."""
FEW_MAX = 4.0
"""Largest factor on a variance for few stretches of that length: with as many parameters as stretches, gradients hardly
scatter, since the fit has made their sum zero. Ours, by a study of 10 s logs (`verification.identification.coverage`)."""
KEPT, KEPT_SETS = 4, 64
"""Batches of errors that are kept of each flight, and the largest: a covariance taken anew weighs the same errors once more."""
LIFT = 5
"""Channel of the specific force along z."""
SCALE_FLOOR = (1e-4, 1e-3)
"""Least scale of rates [rad/s] and specific forces [m/s^2]: float noise must not count as knowledge."""


@dataclass(frozen=True, eq=False)
class FitProblem:
    """What is fitted to what."""

    parameters: Parameters
    windows: tuple[Windows, ...]
    """Of each flight."""
    channels: tuple[bool, bool, bool, bool, bool, bool]
    """Which of rate x, y, z and force x, y, z count."""
    izz: MeasuredValue | None = None
    unheard: tuple[tuple[bool, ...], ...] = ()
    """Of each flight, which of the six do not count there; empty: all that count do everywhere. A flight that cannot tell a
    turn was turned by what its pilot fought, and would tell that the rotors hardly turn it."""
    whitening: tuple[Array, ...] = ()
    """Of each flight, what makes errors of a channel independent and of unit size, (channels, blocks, blocks); empty: not taken
    yet."""
    levels: tuple[LevelWeight | None, ...] = ()
    """Of each flight, what its windows count in the mean error along z; None: that does not count there."""
    _known: OrderedDict[tuple[int, bytes], Array] = field(default_factory=OrderedDict, init=False, repr=False)
    """Errors of vectors that were asked for of late, whatever they are weighed by."""
    _lifted: OrderedDict[tuple[int, bytes], Array] = field(default_factory=OrderedDict, init=False, repr=False)
    """Of these, those along z in the mean over each window."""

    @property
    def picked(self) -> ArrayIndex:
        """Places of the channels that count."""
        return np.flatnonzero(self.channels)

    @property
    def levelled(self) -> tuple[bool, ...]:
        """Of each flight, whether it tells the level of thrust."""
        count = len(self.windows)
        silent = [k < len(self.unheard) and self.unheard[k][LIFT] for k in range(count)]
        return tuple(self.channels[LIFT] and not silent[k] for k in range(count))

    def errors(self, theta: Array, flight: int) -> Array:
        """Return errors of a flight's windows in means over blocks, (sets, windows, blocks, channels).

        Args:
            theta: (sets, parameters).
            flight: Its number.
        """
        key = (flight, theta.tobytes())
        found = self._known.get(key)
        if found is None:
            first, kind = distinct(theta[:, self.parameters.of_flight(flight)])
            plant = self.parameters.plant(theta[first], flight)
            found = window_errors(plant, self.windows[flight])[..., self.picked][kind]
            if len(theta) <= KEPT_SETS:
                self._keep(self._known, key, found)
            if self.channels[LIFT]:
                # Kept of large batches, too: they are asked for again, and small.
                self._keep(self._lifted, key, found[..., np.flatnonzero(self.picked == LIFT)[0]].mean(axis=2))
        else:
            self._known.move_to_end(key)
        return found

    def _keep(self, kept: OrderedDict[tuple[int, bytes], Array], key: tuple[int, bytes], found: Array) -> None:
        kept[key] = found
        kept.move_to_end(key)
        while len(kept) > KEPT * len(self.windows):
            kept.popitem(last=False)

    def lifts(self, theta: Array, flight: int) -> Array:
        """Return errors of a flight's specific force along z in the mean over each window [m/s^2], (sets, windows)."""
        key = (flight, theta.tobytes())
        if key not in self._lifted:
            self._known.pop(key, None)
            self.errors(theta, flight)
        return self._lifted[key]

    def scaled(self, theta: Array) -> FitProblem:
        """Return the problem whose errors are weighed by the covariance that those of one vector have."""
        floor = np.where(self.picked < 3, *SCALE_FLOOR)
        found = [whitening_of(self.errors(theta[None], k)[0], floor, BLOCK_STEPS * w.step) for k, w in enumerate(self.windows)]
        for part, silent in zip(found, self.unheard, strict=False):
            part[np.asarray(silent, bool)[self.picked]] = 0.0
        heard = np.flatnonzero(self.levelled).tolist()
        told = level_weights(
            [self.lifts(theta[None], k)[0] for k in heard], [self.windows[k].start for k in heard], SCALE_FLOOR[1]
        )
        levels: list[LevelWeight | None] = [None] * len(self.windows)
        for k, level in zip(heard, told, strict=True):
            levels[k] = level
        made = replace(self, whitening=tuple(found), levels=tuple(levels))
        # The same windows and parameters: errors that are known stay so.
        object.__setattr__(made, "_known", self._known)
        object.__setattr__(made, "_lifted", self._lifted)
        return made

    def residuals(self, theta: Array) -> tuple[Array, Array]:
        """Return weighed errors of all windows, (sets, windows, numbers), and how many numbers each window counts as."""
        found, counts = [], []
        for flight, whitening in enumerate(self.whitening):
            errors = np.moveaxis(self.errors(theta, flight), -1, 0)
            # Lower triangular: what is left of each block is what those before it in the window did not foretell.
            white = np.matmul(errors, whitening[:, TOLD_BLOCKS:].swapaxes(1, 2)[:, None])
            found.append(np.moveaxis(white, 0, -1).reshape(*errors.shape[1:3], -1))
            heard = int(np.any(whitening, axis=(1, 2)).sum())
            counts.append(np.full(found[-1].shape[1], float(heard * found[-1].shape[2] // len(whitening))))
        flat = np.concatenate(found, axis=1)
        flat = np.clip(np.nan_to_num(flat, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)
        return flat, np.concatenate(counts)

    def beside(self, theta: Array) -> Array:
        """Return what else was measured, and thrust's level in each flight, as scaled errors, (sets, numbers)."""
        found = [self.lifts(theta, k) @ level.weight / level.sd for k, level in enumerate(self.levels) if level is not None]
        levels = np.reshape(found, (len(found), len(theta))).T
        levels = np.clip(np.nan_to_num(levels, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)
        return np.concatenate([self.measured(theta), levels], axis=1)

    def measured(self, theta: Array) -> Array:
        """Return what else was measured, as scaled errors, (sets, numbers)."""
        beside = self.parameters.beside(theta)
        if self.izz is None:
            return beside
        place = self.parameters.place
        xx, yy, ratio = (theta[:, place(name)] for name in ("inertia_xx", "inertia_yy", "inertia_zz_ratio"))
        log = ratio + np.log(0.5 * (np.exp(xx) + np.exp(yy)))
        izz = np.asarray((log - np.log(self.izz.value)) * self.izz.value / self.izz.sd)[:, None]
        return np.concatenate([izz, beside], axis=1)

    def shared(self, length: float) -> Array:
        """Return how much windows of the same flight share of what disturbs them, from 1 to 0, (windows, windows).

        Args:
            length: Distance at which they share nothing [s].
        """
        # Flights lie too far apart to share anything.
        start = np.concatenate([1e6 * k + w.start for k, w in enumerate(self.windows)])
        return np.asarray(np.maximum(1.0 - np.abs(start[:, None] - start[None, :]) / length, 0.0))

    @property
    def covered(self) -> float:
        """Return from the first window of each flight to the end of its last, summed up, less what lies between spans [s]."""
        total = 0.0
        for windows in self.windows:
            start, length = np.sort(windows.start), windows.step * windows.steps
            total += length + float(np.minimum(np.diff(start), length).sum())
        return total


def window_errors(plant: Plant, windows: Windows, push: Array | None = None) -> Array:
    """Return errors of rate and specific force in means over blocks, (sets, windows, blocks, 6).

    Args:
        plant: Sets of parameters.
        windows: Of one flight.
        push: As of `predict`.
    """
    # The mean of what is left is what is left of the means.
    return predicted_means(plant, windows, BLOCK_STEPS, push) - windows.measured_means(BLOCK_STEPS)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit, and its distribution."""

    problem: FitProblem
    theta: Array
    """All parameters, those that are not free at their priors' means, (parameters,)."""
    cost: float
    laplace: Array
    """Standard deviations by the curvature of the cost; of what is not free the prior's, (parameters,)."""
    sandwich: Array
    """The same by the scatter of the gradients of windows, (parameters,)."""
    covariance: Array
    """Of all parameters, with the larger of both deviations, (parameters, parameters)."""
    iterations: int
    starts: tuple[float, ...] = ()
    """Costs from each start."""

    @property
    def sd(self) -> Array:
        """Standard deviations, (parameters,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def share(self) -> Array:
        """1 - variance over the prior's: what the logs told of each, (parameters,)."""
        return np.clip(1.0 - np.diag(self.covariance) / self.problem.parameters.believed_sd**2, 0.0, 1.0)


Descent = Callable[["FitProblem", Array, int], tuple[Array, float, int]]
"""From a problem, a vector and most iterations to the lowest vector, its cost, and iterations that were used."""


def refine(
    problem: FitProblem,
    starts: Sequence[Array],
    say: Callable[[str], None] = lambda _: None,
    descend: Descent | None = None,
) -> Fit:
    """Fit from several starts, the best of them to the end.

    Args:
        problem: Its errors are weighed as those of the first start are.
        starts: Vectors of all parameters.
        say: Told what is done.
        descend: How costs are lowered; None: by Gauss-Newton.
    """
    descend = descend or descend_by_gauss_newton
    problem = problem.scaled(starts[0])
    rough = [descend(problem, start, ITERATIONS_START) for start in starts]
    costs = tuple(cost for _, cost, _ in rough)
    best = int(np.argmin(costs))
    say(f"start {best + 1} of {len(starts)} is the best, cost {costs[best]:.1f}")
    theta, total = rough[best][0], 0
    for _ in range(RESCALED):
        problem, before = problem.scaled(theta), theta
        theta, cost, used = descend(problem, theta, ITERATIONS)
        total += used
        curvature = np.linalg.inv(_system(problem, theta)[0])
        moved = np.abs(theta - before)[problem.parameters.index] / problem.parameters.sd[problem.parameters.index]
        say(f"{used} iterations, cost {cost:.1f}")
        if np.all(moved < SETTLED * np.sqrt(np.diag(curvature))):
            break
    return _distributed(problem, theta, cost, total, costs)


def _derivatives(problem: FitProblem, theta: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Residuals, their slopes by prior deviations, windows' counts, and both of what was measured beside."""
    index, sd = problem.parameters.index, problem.parameters.sd
    moved = np.repeat(theta[None], len(index) + 1, axis=0)
    moved[np.arange(1, len(index) + 1), index] += STEP * sd[index]
    found, counts = problem.residuals(moved)
    beside = problem.beside(moved)
    slopes = np.moveaxis((found[1:] - found[0]) / STEP, 0, -1)
    return found[0], slopes, counts, beside[0], (beside[1:] - beside[0]).T / STEP


def _cost(problem: FitProblem, theta: Array, found: Array, counts: Array, beside: Array, shared: float = 1.0) -> Array:
    """Of several vectors, (sets,)."""
    size = SOFT**2 * counts
    soft = (size * (np.sqrt(1.0 + (found**2).sum(axis=-1) / size) - 1.0)).sum(axis=-1)
    index = problem.parameters.index
    z = ((theta - problem.parameters.mean) / problem.parameters.sd)[:, index]
    return np.asarray(soft / shared + 0.5 * (z**2).sum(axis=1) + 0.5 * (beside**2).sum(axis=1))


def costs_of(problem: FitProblem, theta: Array, shared: float) -> Array:
    """Return costs of several vectors, errors divided by how many windows share what disturbs them, (sets,)."""
    found, counts = problem.residuals(theta)
    return _cost(problem, theta, found, counts, problem.beside(theta), shared)


def curvature_of(problem: FitProblem, theta: Array) -> Array:
    """Return the curvature of the cost by what is free, in prior deviations, (free, free)."""
    return _system(problem, theta)[0]


def left_out_scores(fit: Fit, folds: ArrayInt) -> Array:
    """Return minus the log density of each window's errors under the fit without its fold, (windows,).

    Args:
        fit: To all windows.
        folds: Of each window, from 0, (windows,).
    """
    problem, index, sd = fit.problem, fit.problem.parameters.index, fit.problem.parameters.sd
    found, slopes, counts, beside, beside_slopes = _derivatives(problem, fit.theta)
    weight = 1.0 / np.sqrt(1.0 + (found**2).sum(axis=-1) / (SOFT**2 * counts))
    each = np.einsum("wnp,wn,w->wp", slopes, found, weight, optimize=True)
    heavy = slopes * np.sqrt(weight)[:, None, None]
    count = int(folds.max()) + 1
    own = np.stack([np.einsum("wnp,wnq->pq", heavy[folds == k], heavy[folds == k], optimize=True) for k in range(count)])
    whole = own.sum(axis=0) + np.eye(len(index)) + beside_slopes.T @ beside_slopes
    z = ((fit.theta - problem.parameters.mean) / sd)[index]
    gradient = each.sum(axis=0) + z + beside_slopes.T @ beside
    moved = np.repeat(fit.theta[None], count, axis=0)
    for k in range(count):
        without = gradient - each[folds == k].sum(axis=0)
        # No step leaves the place where the slopes mean something.
        moved[k, index] -= sd[index] * np.clip(np.linalg.solve(whole - own[k], without), -1.0, 1.0)
    moved = np.minimum(moved, problem.parameters.most)
    left, counts = problem.residuals(moved)
    size = SOFT**2 * counts
    soft = size * (np.sqrt(1.0 + (left**2).sum(axis=-1) / size) - 1.0)
    density = []
    for whitening, windows in zip(problem.whitening, problem.windows, strict=True):
        # Of triangular matrices; blocks that only foretell are silent.
        sizes = np.diagonal(whitening, axis1=1, axis2=2)[:, TOLD_BLOCKS:]
        density.append(np.full(len(windows), float(np.log(sizes[sizes > 0.0]).sum())))
    return np.asarray(soft[folds, np.arange(len(folds))] - np.concatenate(density))


def promised_gain(problem: FitProblem, theta: Array) -> float:
    """Return how much one step of Gauss-Newton from a vector lowers the cost, by slopes and curvature there."""
    curvature, gradient, *_ = _system(problem, theta)
    return 0.5 * float(gradient @ np.linalg.solve(curvature, gradient))


def _system(problem: FitProblem, theta: Array) -> tuple[Array, Array, Array, float, Array]:
    """Curvature, gradient, gradients of each window, cost, part of the curvature that no window tells; in prior deviations of
    what is free."""
    found, slopes, counts, beside, beside_slopes = _derivatives(problem, theta)
    index = problem.parameters.index
    z = ((theta - problem.parameters.mean) / problem.parameters.sd)[index]
    weight = 1.0 / np.sqrt(1.0 + (found**2).sum(axis=-1) / (SOFT**2 * counts))
    each = np.einsum("wnp,wn,w->wp", slopes, found, weight, optimize=True)
    heavy = (slopes * np.sqrt(weight)[:, None, None]).reshape(-1, len(index))
    stands = np.eye(len(index)) + beside_slopes.T @ beside_slopes
    curvature = heavy.T @ heavy + stands
    gradient = each.sum(axis=0) + z + beside_slopes.T @ beside
    cost = _cost(problem, theta[None], found[None], counts, beside[None])[0]
    return curvature, gradient, each, float(cost), stands


def descend_by_gauss_newton(problem: FitProblem, theta: Array, iterations: int) -> tuple[Array, float, int]:
    """Descend by Gauss-Newton with Levenberg's damping, as `Descent`."""
    index, sd = problem.parameters.index, problem.parameters.sd
    damping, used, cost = 1e-3, 0, np.inf
    while used < iterations:
        used += 1
        curvature, gradient, _, cost, _ = _system(problem, theta)
        diagonal = np.diag(np.diag(curvature))
        tried = np.repeat(theta[None], 4, axis=0)
        for row, factor in zip(tried, (0.1, 1.0, 10.0, 1e3), strict=True):
            step = np.linalg.solve(curvature + damping * factor * diagonal, gradient)
            # No step leaves the place where the slopes mean something.
            row[index] -= sd[index] * np.clip(step, -2.0, 2.0)
        tried = np.minimum(tried, problem.parameters.most)
        found, counts = problem.residuals(tried)
        costs = _cost(problem, tried, found, counts, problem.beside(tried))
        best = int(np.argmin(costs))
        gained = cost - costs[best]
        if gained <= 0.0:
            damping *= 1e4
            if damping > 1e6:
                break
            continue
        theta, cost = tried[best], float(costs[best])
        damping = max(damping * (0.1, 1.0, 10.0, 1e3)[best], 1e-9)
        if gained < GAIN_MIN * cost:
            break
    return theta, float(cost), used


def _distributed(problem: FitProblem, theta: Array, cost: float, iterations: int, starts: tuple[float, ...]) -> Fit:
    curvature, _, each, cost, stands = _system(problem, theta)
    inverse = np.asarray(np.linalg.inv(curvature), np.float64)
    scattered = np.diag(_scatter(inverse, each, problem.shared(SHARED), problem.covered / SHARED, stands))
    index, sd = problem.parameters.index, problem.parameters.sd
    laplace, sandwich = sd.copy(), sd.copy()
    laplace[index] *= np.sqrt(np.diag(inverse))
    sandwich[index] *= np.sqrt(scattered)
    larger = np.maximum(laplace, sandwich)
    # No log makes one less sure than before it.
    larger = np.minimum(larger, problem.parameters.believed_sd)
    related = inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    covariance = np.diag(sd**2)
    covariance[np.ix_(index, index)] = related * np.outer(larger[index], larger[index])
    return Fit(problem, theta, cost, laplace, sandwich, covariance, iterations, starts)


def _scatter(inverse: Array, each: Array, shared: Array, count: float, stands: Array) -> Array:
    """Covariance by how gradients of windows scatter that share what disturbs them (Newey and West 1987).

    Args:
        inverse: Of the curvature, (p, p).
        each: Gradients, (windows, p).
        shared: (windows, windows).
        count: Stretches that share nothing.
        stands: Curvature of the priors and of what was measured beside, (p, p): these are no gradients that scatter.
    """
    told = float(np.sum(1.0 - np.diag(inverse)))
    factor = min(count / max(count - told, 1e-9), FEW_MAX) if count > told else FEW_MAX
    return np.asarray(inverse @ (factor * each.T @ shared @ each + stands) @ inverse)
