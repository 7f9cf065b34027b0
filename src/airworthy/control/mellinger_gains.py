"""Parameters of the Mellinger controller: published sets, the Crazyflie's mixer, and SI gains for any airframe."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from airworthy.control.gain_sets import gain_set
from airworthy.control.gains_for import DAMPING, POSITION_DAMPING, bandwidth
from airworthy.control.mellinger import COMMAND_MAX, MellingerParameters
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle


def mellinger_parameters(
    name: str = "mellinger_firmware", gravity: float = 9.81, mass: float | None = None
) -> MellingerParameters:
    """Return a published Mellinger set in motor-command units.

    Args:
        name: Gain set.
        gravity: [m/s^2]
        mass: The mass the controller believes in [kg]; the set's by default.
    """
    gains = gain_set(name)
    if gains.law != "mellinger":
        raise AirworthyError(f"Gain set {name!r} is for the {gains.law} law; choose e.g. 'mellinger_firmware'.")
    values = gains.midpoint()
    if mass is not None:
        values["mass"] = mass
    return MellingerParameters(gravity=gravity, **values)


def mixer_for(vehicle: Vehicle) -> tuple[tuple[float, float, float], ...]:
    """Return the firmware's mixer for a vehicle's own rotor order: weights of Mx, My, Mz per rotor.

    With right-handed moments a rotor on the left (y > 0) gets +Mx/2, one in front (x > 0) -My/2, and one whose reaction torque
    points up (spin +1) +Mz. The firmware's motors m1 to m4 sit front right, back right, back left and front left; its
    +p for the front is the same as -My/2 here, its pitch axis being flipped.

    Raises:
        AirworthyError: Not a quadrotor in X with thrust along body z.
    """
    weights = []
    for rotor in vehicle.rotors:
        x, y, _ = (p - c for p, c in zip(rotor.position, vehicle.center_of_mass, strict=True))
        if rotor.axis[2] < 0.999 or min(abs(x), abs(y)) < 1e-4:
            break
        weights.append((math.copysign(0.5, y), -math.copysign(0.5, x), float(rotor.spin)))
    if len(weights) != 4 or any(sum(column) for column in zip(*weights, strict=True)):
        raise AirworthyError(
            f"{vehicle.name} is not a quadrotor in X, so the Crazyflie's mixer does not fit it; use the Mellinger law in SI "
            "(si_gains), whose moments go through the airframe's own allocation."
        )
    return tuple(weights)


def si_gains(p: MellingerParameters, thrust_max: float, lever: float, torque_ratio: float) -> MellingerParameters:
    """Return motor-command gains in newtons and newton metres, for the same quadrotor.

    A moment command Mx moves each motor by Mx/2, i.e. 2 lever F_max / 65535 newton metres in all; Mz by Mz, 4 kappa F_max /
    65535. With F_max 0.12 N, lever 0.03253 m, kappa 0.00735 m: k_R 0.00834 N m, k_w 0.00238 N m s; yaw 0.00323, 0.00065.

    Args:
        p: In motor-command units.
        thrust_max: Thrust of one motor at full command [N].
        lever: Distance of the rotors from the roll and pitch axes [m].
        torque_ratio: kappa, reaction torque over thrust [m].
    """
    per_command = thrust_max / COMMAND_MAX
    factors = (2.0 * lever * per_command, 2.0 * lever * per_command, 4.0 * torque_ratio * per_command)
    return p._replace(
        attitude_gain=_times(p.attitude_gain, factors),
        rate_gain=_times(p.rate_gain, factors),
        attitude_integral_gain=_times(p.attitude_integral_gain, factors),
        rate_derivative_gain=_times(p.rate_derivative_gain, factors),
        thrust_scale=1.0,
        moment_max=_times(p.moment_max, factors),
    )


def mellinger_for(vehicle: Vehicle, control_period: float = 0.002, lead: float = 1.0) -> MellingerParameters:
    """Return the Mellinger law in SI for any airframe: the firmware's shape at the airframe's own bandwidth.

    k_R = J w^2 / 2 (the error is not halved), k_w = 2 zeta J w, and position gains m w_p^2, 2 zeta m w_p, with `bandwidth`.
    Integral gains and ranges keep the firmware's ratios to the proportional ones. No kd_omega: without a gyro filter it
    needs rotors that lag.

    Args:
        vehicle: The airframe as the controller believes it to be.
        control_period: Time between controller updates [s].
        lead: Factor of `rotor_lead`, if the rotors are driven with it.
    """
    band = bandwidth(vehicle, control_period, lead)
    inertia = vehicle.inertia[:3]
    firmware = mellinger_parameters("mellinger_firmware", vehicle.gravity)
    kp = tuple(vehicle.mass * w * w for w in band.position)
    # Half: the firmware's error is twice that of the 2011 paper (spec/boundary_predictor section 9, "NOT halved").
    attitude = tuple(0.5 * j * w * w for j, w in zip(inertia, band.attitude, strict=True))
    share = _over(firmware.ki, firmware.kp)
    yaw_share = _over(firmware.attitude_integral_gain, firmware.attitude_gain)
    return firmware._replace(
        mass=vehicle.mass,
        kp=kp,
        kd=tuple(2.0 * POSITION_DAMPING * vehicle.mass * w for w in band.position),
        ki=_times(kp, share),
        attitude_gain=attitude,
        rate_gain=tuple(2.0 * z * j * w for z, j, w in zip(DAMPING, inertia, band.attitude, strict=True)),
        attitude_integral_gain=_times(attitude, yaw_share),
        rate_derivative_gain=(0.0, 0.0, 0.0),
        thrust_scale=1.0,
        moment_max=(1e6, 1e6, 1e6),
    )


def hover_integral(missing_force: float, integral_gain: float, integral_max: float) -> float:
    """Return the position integral [m s] that holds a force [N] the controller's mass does not account for, within its clamp.

    Args:
        missing_force: [N]
        integral_gain: [N/(m s)]
        integral_max: Clamp [m s].
    """
    if integral_gain <= 0.0:
        return 0.0
    return float(np.clip(missing_force / integral_gain, -integral_max, integral_max))


def _times(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _over(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    return tuple(x / y for x, y in zip(a, b, strict=True))
