"""What measured rotor speeds tell, put beside what gyro and accelerometer tell: lag, dead time and scale of the motors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.vehicles.identification.fitting.parameters import FALL, SPEEDS_LATE, Parameter, Parameters
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.known import Known
from airworthy.vehicles.identification.motors.measured_speeds import MotorFit

__all__ = ["by_speeds", "told_by_speeds"]

OF_MOTORS = ("lag", FALL, "command_delay")
"""What speeds tell alone, in the order of `MotorFit.covariance`."""


def by_speeds(parameters: Parameters, motors: MotorFit, known: Known) -> Parameters:
    """Return what gyro and accelerometer are fitted with while rotors turn as they were measured.

    Their lags and dead time play no part then; by how much measured speeds come late does.

    Args:
        parameters: With all that may be fitted.
        motors: By measured speeds.
        known: What is fixed stays so.
    """
    values = {"lag": math.log(motors.lag), FALL: math.log(motors.ratio), "command_delay": motors.delay}
    values = {name: value for name, value in values.items() if name not in known.fixed}
    late = parameters.free[parameters.place("inertia_xx")]
    return replace(
        parameters,
        items=tuple(_at(item, values) for item in parameters.items),
        free=tuple(
            late if item.name == SPEEDS_LATE else free and item.name not in OF_MOTORS
            for item, free in zip(parameters.items, parameters.free, strict=True)
        ),
    )


def _at(item: Parameter, values: dict[str, float]) -> Parameter:
    return replace(item, mean=values[item.name]) if item.name in values else item


def told_by_speeds(fit: Fit, parameters: Parameters, motors: MotorFit) -> Fit:
    """Return a fit with what speeds told beside it, and windows whose rotors follow commands again, as the vehicle will.

    The dead time is that to the measured speed, less by what the speed is late.

    Args:
        fit: With measured speeds.
        parameters: With all that may be fitted, and their priors.
        motors: By measured speeds.
    """
    theta, covariance = fit.theta.copy(), fit.covariance.copy()
    places = [parameters.place(name) for name in OF_MOTORS]
    free = list(parameters.free)
    free[parameters.place(SPEEDS_LATE)] = fit.problem.parameters.free[parameters.place(SPEEDS_LATE)]
    told = [parameters.items[k].sd > 1e-8 and (name != FALL or motors.apart) for k, name in zip(places, OF_MOTORS, strict=True)]
    late = parameters.place(SPEEDS_LATE)
    found = motors.covariance.copy()
    if free[late]:
        theta[places[2]] = motors.delay - theta[late]
        found[2, 2] += covariance[late, late]
    laplace, sandwich = fit.laplace.copy(), fit.sandwich.copy()
    for i, k in enumerate(places):
        if not told[i]:
            continue
        covariance[k, :] = covariance[:, k] = 0.0
        sd = math.sqrt(found[i, i])
        laplace[k] = sandwich[k] = sd
        free[k] = True
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if told[i] and told[j]:
                covariance[a, b] = found[i, j]
    if told[2] and free[late]:
        # Dead time and lateness are told as a sum.
        covariance[places[2], :] -= np.where(np.isin(np.arange(len(theta)), places), 0.0, fit.covariance[late])
        covariance[:, places[2]] = covariance[places[2], :]
    windows = tuple(replace(w, flight=replace(w.flight, speeds=None)) for w in fit.problem.windows)
    problem = replace(fit.problem, parameters=replace(parameters, free=tuple(free)), windows=windows)
    return replace(fit, problem=problem, theta=theta, covariance=covariance, laplace=laplace, sandwich=sandwich)
