"""Fitting by multi-step prediction error: the parameters whose open-loop predictions stay closest to what happened.

Gauss-Newton with all parameter perturbations of a Jacobian predicted in one batch, a robust loss (soft L1), and the priors as
further residuals. Errors of one window share their cause and windows overlap, so a window counts as less than its 36 numbers:
`REDUNDANCY` of them make one observation, otherwise the priors would mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.benchmarks.validation.errors import error_vectors
from airworthy.benchmarks.validation.structure import (
    SPEED_NOMINAL,
    STRUCTURES,
    Airframe,
    DisturbanceDecay,
    Structure,
    VehicleModel,
    predict,
)
from airworthy.benchmarks.validation.windows import LogWindows
from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Rotor

ERROR_SCALE = np.array([[0.003, 0.012, 0.05], [0.03, 0.1, 0.2], [0.02, 0.07, 0.2], [0.3, 0.5, 0.8]])
"""Errors that count alike: position [m], velocity [m/s], attitude [rad], rate [rad/s], per horizon."""
REDUNDANCY = 45.0
GRAVITY = 9.81
ITERATIONS = 12
FOLDS = 2
_STEP = 1e-3
_FAR = 1e3
_WINDOWS_MIN = 20
_ITERATIONS_CHOICE = 6
_GAIN_MIN = 5e-4
_WIDE_FACTOR, _SHARE = 0.5, 0.2


@dataclass(frozen=True)
class ModelFit:
    """A fitted model."""

    structure: Structure
    theta: Array
    cost: float
    """Robust cost per window, without the priors."""

    def model(self, name: str = "") -> VehicleModel:
        """Return the model that it is."""
        return self.structure.model(self.theta, name)

    def values(self) -> dict[str, float]:
        """Return free parameters by name."""
        return dict(zip(self.structure.free, (float(t) for t in self.theta), strict=True))


def residuals(models: Sequence[VehicleModel], windows: LogWindows, trim: DisturbanceDecay | None = None) -> Array:
    """Return scaled errors, (model, number); errors at horizons without a trustworthy reference are zero.

    Args:
        models: Parameter sets.
        windows: Of logs, with what must be predicted.
        trim: Disturbance that is carried over from before each window; None: none.
    """
    blocks = [
        (vectors / ERROR_SCALE[i][None, None, :, None] * windows.valid[None, :, :, None]).reshape(len(models), -1)
        for i, vectors in enumerate(error_vectors(predict(windows, models, trim, coarse=True), windows))
    ]
    # A prediction that ran away counts as very far off; infinity would stop the least squares.
    flat = np.clip(np.nan_to_num(np.concatenate(blocks, axis=1), nan=_FAR), -_FAR, _FAR)
    return flat / np.sqrt(REDUNDANCY)


def gauss_newton(
    make: Callable[[Array], VehicleModel],
    windows: LogWindows,
    size: int,
    trim: DisturbanceDecay | None = None,
    iterations: int = ITERATIONS,
) -> tuple[Array, float]:
    """Minimise soft-L1 prediction errors plus a unit prior about zero.

    Args:
        make: Model of a parameter vector whose prior is zero mean, unit deviation, (size,).
        windows: What to predict.
        size: Number of parameters.
        trim: Let each model start with the disturbance of the moment before, as of `predict`; None: without.
        iterations: At most this many accepted steps.

    Returns:
        The parameters and the cost of the errors.
    """
    z, damping = np.zeros(size), 1e-3
    base = residuals([make(z)], windows, trim)[0]
    best = _cost(base)
    for _ in range(iterations):
        moved = residuals([make(z + _STEP * e) for e in np.eye(size)], windows, trim)
        jacobian = (moved - base).T / _STEP
        # Soft L1 of r in observations: rho' = (1 + r^2)^(-1/2), r in units of the error scale.
        weight = 1.0 / np.sqrt(1.0 + REDUNDANCY * base**2)
        normal = jacobian.T @ (weight[:, None] * jacobian) + np.eye(size)
        gradient = jacobian.T @ (weight * base) + z
        # Several dampings are tried in one batch: a batch of four costs hardly more than one.
        dampings = damping * np.array([0.1, 1.0, 10.0, 1e3])
        tried = [z - np.linalg.solve(normal + d * np.diag(np.diag(normal)), gradient) for d in dampings]
        errors = residuals([make(t) for t in tried], windows, trim)
        costs = [_cost(e) + 0.5 * float(t @ t) for e, t in zip(errors, tried, strict=True)]
        k = int(np.argmin(costs))
        gained = best - costs[k]
        if gained <= 0.0:
            damping *= 1e4
            if damping > 1e8:
                break
            continue
        z, base, best, damping = tried[k], errors[k], costs[k], max(float(dampings[k]), 1e-6)
        if gained < _GAIN_MIN * best:
            break
    return z, _cost(base)


def _cost(residual: Array) -> float:
    return float(np.sum(np.sqrt(1.0 + REDUNDANCY * residual**2) - 1.0) / REDUNDANCY)


def cost_per_window(model: VehicleModel, windows: LogWindows, trim: DisturbanceDecay | None = None) -> float:
    """Return the robust cost of a model's prediction errors per window.

    Args:
        model: Parameter set.
        windows: Of logs.
        trim: Disturbance that is carried over from before each window; None: none.
    """
    return _cost(residuals([model], windows, trim)[0]) / len(windows)


def hover_coefficient(windows: LogWindows, mass: float) -> float:
    """Return thrust per squared speed that carries the weight on average [N s^2/rad^2]."""
    return mass * GRAVITY / float(np.mean(np.sum(windows.rotor_speed**2, axis=-1)))


def fit(
    airframe: Airframe,
    windows: LogWindows,
    free: tuple[str, ...],
    trim: DisturbanceDecay | None = None,
    iterations: int = ITERATIONS,
) -> ModelFit:
    """Fit the free parameters of an airframe to windows.

    Args:
        airframe: What was measured of the vehicle.
        windows: To fit to.
        free: Names of the parameters that are fitted.
        trim: Disturbance that is carried over from before each window; None: none.
        iterations: Gauss-Newton steps, at most.

    Raises:
        AirworthyError: There are too few windows to fit anything.
    """
    if len(windows) < _WINDOWS_MIN:
        raise AirworthyError(
            f"Only {len(windows)} windows of {airframe.name} can be used; at least {_WINDOWS_MIN} are needed for a fit."
        )
    structure = Structure(airframe, free, hover_coefficient(windows, airframe.mass))
    mean, deviation = structure.mean, structure.deviation
    z, cost = gauss_newton(lambda z: structure.model(mean + deviation * z), windows, len(free), trim, iterations)
    return ModelFit(structure, mean + deviation * z, cost / len(windows))


def choose(airframe: Airframe, windows: LogWindows, structures: Sequence[str]) -> tuple[str, dict[str, float]]:
    """Return the structure that predicts best where it was not fitted, by cross-validation inside the given windows.

    Args:
        airframe: What was measured of the vehicle.
        windows: To choose by.
        structures: Names in `STRUCTURES`.

    Returns:
        Its name, and each structure's cost per window.
    """
    # Whole stretches of time and not single windows: neighbours overlap, and would tell of what they are tested on.
    fold = folds(windows)
    costs = {}
    for name in structures:
        free, total = STRUCTURES[name], 0.0
        for k in range(FOLDS):
            fitted = fit(airframe, thinned(windows.select(fold != k)), free, iterations=_ITERATIONS_CHOICE)
            total += cost_per_window(fitted.model(), windows.select(fold == k))
        costs[name] = total / FOLDS
    return min(costs, key=lambda name: costs[name]), costs


def folds(windows: LogWindows) -> ArrayInt:
    """Fold of each window: whole flights where there are as many, else consecutive stretches of time."""
    flights = sorted(set(windows.flight))
    if len(flights) >= FOLDS:
        return np.array([flights.index(f) % FOLDS for f in windows.flight])
    return np.arange(len(windows)) * FOLDS // len(windows)


def thinned(windows: LogWindows, keep: int = 60) -> LogWindows:
    """Return evenly chosen windows, about `keep` of them."""
    return windows.select(np.arange(0, len(windows), max(1, round(len(windows) / keep))))


def refit_thrust(model: VehicleModel, mass: float, windows: LogWindows, trim: DisturbanceDecay | None = None) -> VehicleModel:
    """Return a published model with the measured mass and a thrust map refitted to windows by the same method.

    Each rotor gets its own factor, and all share how much of the thrust is linear in speed. The priors are so wide that they
    only keep the solution finite: this is the thrust map that helps the model most, whether a real rotor could have it or
    not.

    Args:
        model: The published model.
        mass: Measured [kg].
        windows: Windows to fit to.
        trim: As of `gauss_newton`.
    """
    heavy = replace(model.vehicle, mass=mass)
    speeds = np.moveaxis(windows.rotor_speed, -1, 0)
    thrust = sum(r.thrust[1] * w + r.thrust[2] * w**2 for r, w in zip(heavy.rotors, speeds, strict=True))
    level = mass * GRAVITY / float(np.mean(thrust))

    def refitted(rotor: Rotor, factor: float, share: float) -> Rotor:
        moved = share * rotor.thrust[2] * SPEED_NOMINAL
        linear, square = rotor.thrust[1] + moved, rotor.thrust[2] - moved / SPEED_NOMINAL
        return replace(rotor, thrust=(0.0, factor * linear, factor * square))

    def make(z: Array) -> VehicleModel:
        factors = level * np.exp(_WIDE_FACTOR * z[:4])
        rotors = tuple(refitted(r, float(f), _SHARE * float(z[4])) for r, f in zip(heavy.rotors, factors, strict=True))
        return replace(model, vehicle=replace(heavy, rotors=rotors))

    z, _ = gauss_newton(make, windows, 5, trim)
    return make(z)
