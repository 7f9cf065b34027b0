"""The Mellinger controller as the Crazyflie runs it, in motor-command units or in SI; equations.

Source: spec/boundary_predictor section 9 (bitcraze/crazyflie-firmware `controller_mellinger.c`), in one right-handed body
frame (x forward, y left, z up), without the firmware's flips of the pitch axis. The attitude error is not halved.

Motor-command units: thrust in 0..65535 per motor, moments in the firmware's units; `motor_commands` mixes them. In SI
(`mellinger_gains.si_gains`): thrust [N] and moment [N m] along body axes, for any airframe's allocation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.control.attitude import desired_axes, flat_rates, heading, rotation_difference, unit_or
from airworthy.control.geometric import BodyState
from airworthy.control.levels import Reference
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import clip, maximum, minimum, sin_cos, where
from airworthy.core.vectors import choose, dot, matrix_columns, norm, scale

# Source: spec/boundary_predictor section 9: commands of 16 bits; the clip of 32000 per moment is about half of it.
COMMAND_MAX = 65535.0
"""Full motor command."""


class MellingerParameters(NamedTuple):
    """Gains and the controller's own mass; any record with these attributes will do."""

    mass: Scalar
    """[kg]"""
    gravity: Scalar
    """[m/s^2]"""
    kp: Vector
    """Position [N/m]."""
    kd: Vector
    """Velocity [N s/m]."""
    ki: Vector
    """Position integral [N/(m s)]."""
    integral_max: Vector
    """Clamp of the position integral [m s]."""
    attitude_gain: Vector
    """k_R per unit of the un-halved error."""
    rate_gain: Vector
    """k_w [s/rad]."""
    attitude_integral_gain: Vector
    """ki_m [1/s]."""
    attitude_integral_max: Vector
    """Clamp of the attitude integral [s]."""
    rate_derivative_gain: Vector
    """kd_omega [s^2/rad]; the firmware has none for yaw."""
    thrust_scale: Scalar
    """massThrust: command per newton (1 in SI)."""
    moment_max: Vector
    """Clip of each moment; 32000 in the firmware."""


class MellingerState(NamedTuple):
    """What the controller carries from step to step."""

    position_integral: Vector
    """[m s]"""
    attitude_integral: Vector
    """[s]"""
    rate_error: Vector
    """Of the last step [rad/s]."""


def mellinger_control(
    state: BodyState,
    reference: Reference,
    rate_reference: Vector,
    memory: MellingerState,
    started: Scalar,
    dt: Scalar,
    p: Any,
    hold_yaw: Scalar = 0.0,
) -> tuple[Scalar, Vector, MellingerState]:
    """Return thrust and moments, and the next memory.

    Args:
        state: Present state.
        reference: Position, velocity, acceleration (world) and yaw are used.
        rate_reference: Body rates w_ref [rad/s]; zeros, or `reference_rates`.
        memory: From the last step.
        started: 0 at the first step of a flight (no difference of rate errors yet), else 1.
        dt: Step [s]; 1/500 in the firmware.
        p: `MellingerParameters` or alike.
        hold_yaw: 0/1 mask: the heading that the body has instead of the reference's, for airframes that cannot hold their yaw.

    Returns:
        Thrust and moments in the units of the gains. Where thrust <= 0: no moments, integrals reset.
    """
    integral, force = _force(state, reference, memory, dt, p)
    axes = matrix_columns(state.attitude)
    thrust = p.thrust_scale * dot(force, axes[2])
    sine, cosine = sin_cos(reference.yaw)
    direction = unit_or(force, axes[2], 1e-6 * (p.mass * p.gravity) * (p.mass * p.gravity))
    chi = choose(hold_yaw > 0.5, heading(axes), (cosine, sine, 0.0))
    target = desired_axes(direction, chi, hold_yaw, axes)
    error = rotation_difference(axes, target)

    moment, attitude_integral, rate_error = [], [], []
    for i in range(3):
        turning = rate_reference[i] - state.body_rate[i]
        change = where(started > 0.5, (turning - memory.rate_error[i]) / dt, 0.0)
        limit = p.attitude_integral_max[i]
        total = clip(memory.attitude_integral[i] - error[i] * dt, -limit, limit)
        m = -p.attitude_gain[i] * error[i] + p.rate_gain[i] * turning
        m = m + p.attitude_integral_gain[i] * total + p.rate_derivative_gain[i] * change
        moment.append(clip(m, -p.moment_max[i], p.moment_max[i]))
        attitude_integral.append(total)
        rate_error.append(turning)
    flying = where(thrust > 0.0, 1.0, 0.0)
    memory = MellingerState(scale(integral, flying), scale(tuple(attitude_integral), flying), tuple(rate_error))
    return thrust, scale(tuple(moment), flying), memory


def _force(state: BodyState, reference: Reference, memory: MellingerState, dt: Scalar, p: Any) -> tuple[Vector, Vector]:
    """Position integral and F = m (a_ref + g e3) + kp e_p + kd e_v + ki I [N]."""
    integral, force = [], []
    for i in range(3):
        error = reference.position[i] - state.position[i]
        total = clip(memory.position_integral[i] + error * dt, -p.integral_max[i], p.integral_max[i])
        lift = p.gravity if i == 2 else 0.0
        feedback = p.kp[i] * error + p.kd[i] * (reference.velocity[i] - state.velocity[i]) + p.ki[i] * total
        force.append(p.mass * (reference.acceleration[i] + lift) + feedback)
        integral.append(total)
    return tuple(integral), tuple(force)


def reference_rates(reference: Reference, gravity: Scalar, chi: Vector | None = None) -> Vector:
    """Return body rates of a flat reference in its own attitude [rad/s], from acceleration, jerk, yaw and yaw rate.

    Args:
        reference: A flat reference.
        gravity: [m/s^2]
        chi: Heading of its attitude, unit, horizontal; None: that of its yaw.
    """
    thrust = (reference.acceleration[0], reference.acceleration[1], reference.acceleration[2] + gravity)
    if chi is None:
        sine, cosine = sin_cos(reference.yaw)
        chi = (cosine, sine, 0.0)
    level = (chi, (-chi[1], chi[0], 0.0), (0.0, 0.0, 1.0))
    axes = desired_axes(unit_or(thrust, level[2]), chi, 0.0, level)
    return flat_rates(axes, norm(thrust), reference.jerk, chi, reference.yaw_rate)


def motor_commands(thrust: Scalar, moment: Vector, mixer: tuple[Vector, ...], subtract_excess: Scalar = 1.0) -> Vector:
    """Return motor commands 0..65535 of thrust and moments in the firmware's units.

    Args:
        thrust: Command per motor.
        moment: Mx, My, Mz.
        mixer: Per rotor its weights of Mx, My, Mz; see `mellinger_gains.mixer_for`.
        subtract_excess: 1: what the largest motor has too much is taken from all (recent firmware); 0: each is clipped.
    """
    raw = [thrust + row[0] * moment[0] + row[1] * moment[1] + row[2] * moment[2] for row in mixer]
    highest = raw[0]
    for command in raw[1:]:
        highest = maximum(highest, command)
    excess = where(subtract_excess > 0.5, maximum(highest - COMMAND_MAX, 0.0), 0.0)
    return tuple(clip(command - excess, 0.0, COMMAND_MAX) for command in raw)


def thrust_of_command(command: Scalar, thrust_max: Scalar) -> Scalar:
    """Return thrust [N] of a motor command with an ideal thrust map: command / 65535 of the largest thrust."""
    return command * (thrust_max * (1.0 / COMMAND_MAX))


def speed_of_command(command: Scalar, chain: Any) -> Scalar:
    """Return the rotor speed [rad/s] of a motor command through the legacy chain of grams, volts and PWM.

    Args:
        command: 0..65535.
        chain: `airworthy.vehicles.VoltageChain` or alike.
    """
    grams = chain.command_to_grams * command
    volts = chain.volts_linear * grams + chain.volts_quadratic * grams * grams
    pwm = clip(COMMAND_MAX * minimum(volts / chain.supply, 1.0), chain.pwm_min, chain.pwm_max)
    return chain.speed_slope * pwm + chain.speed_offset
