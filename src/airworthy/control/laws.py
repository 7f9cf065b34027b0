"""The control laws with the argument lists of the fused step: equations that read one flat command and one record.

`p` is a record of `kernel.control_layout`; `wanted` the command's numbers; vectors are tuples. They run on NumPy arrays in the
twin and are traced into the kernel.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from airworthy.control.allocation import (
    PRIORITIES,
    Allocation,
    Priority,
    allocate_bounded,
    allocate_pseudo_inverse,
    limit_excess,
    rotor_lead,
    speed_for_thrust,
)
from airworthy.control.attitude import attitude_error, heading, into_body, into_world
from airworthy.control.geometric import BodyState, geometric_control, pose_control
from airworthy.control.levels import MODES, Reference, reference_from_command
from airworthy.control.mellinger import (
    MellingerState,
    mellinger_control,
    motor_commands,
    reference_rates,
    speed_of_command,
    thrust_of_command,
)
from airworthy.control.rate_loop import FilterCoefficients, RateLoopState, rate_loop
from airworthy.control.spare_rotors import Spare, spare_shapes
from airworthy.core.ops import sin_cos, where
from airworthy.core.vectors import (
    add,
    choose,
    cross,
    matrix_columns,
    norm,
    quaternion_multiply,
    rotate_inverse,
    symmetric_multiply,
)


def _allocation(p: Any) -> Any:
    spare = Spare(**{name: getattr(p, f"spare_{name}") for name in spare_shapes(len(p.inverse))})
    return Allocation(p.inverse, p.collective, p.thrust_min, p.thrust_max_rotor, spare)


def geometric_wrench(position: Any, velocity: Any, attitude: Any, body_rate: Any, wanted: Any, p: Any, level: str) -> Any:
    """Return the wrench of the geometric law at a level of `levels.MODES`: sideways zeros, thrust [N], moment [N m].

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        wanted: The command's numbers, as `levels` lays them out.
        p: Record of the vehicle's controller.
        level: Of `levels.MODES`.
    """
    mode = MODES[level]
    if level == "acceleration":
        mode = mode._replace(vehicle_frame=p.vehicle_frame)
    if mode.hold_yaw == 0.0 and mode.rate == 0.0:
        # A body that turns for good has its errors of roll and pitch weakened by that of yaw, once a turn to nothing.
        mode = mode._replace(hold_yaw=p.yaw_lost)
    reference = reference_from_command(level, wanted)
    if level == "tracking":
        reference = _against_drag(reference, attitude, p)
    out = geometric_control(BodyState(position, velocity, attitude, body_rate), reference, mode, p)
    return 0.0, 0.0, out.thrust, out.moment


def extrapolated(wanted: Any, elapsed: Any) -> Any:
    """Return a tracking command some time after it was given [s]: moved on by its own derivatives instead of held."""
    p, v, a, j, yaw, yaw_rate = wanted[:3], wanted[3:6], wanted[6:9], wanted[9:12], wanted[12], wanted[13]
    later_a = tuple(x + y * elapsed for x, y in zip(a, j, strict=True))
    later_v = tuple(u + elapsed * (x + elapsed * (0.5 * y)) for u, x, y in zip(v, a, j, strict=True))
    later_p = tuple(
        s + elapsed * (u + elapsed * (0.5 * x + elapsed * (y * (1.0 / 6.0)))) for s, u, x, y in zip(p, v, a, j, strict=True)
    )
    return *later_p, *later_v, *later_a, *j, yaw + yaw_rate * elapsed, yaw_rate, wanted[14], wanted[15]


def _against_drag(reference: Reference, attitude: Any, p: Any) -> Reference:
    """Return the reference with the acceleration that the believed drag takes at the reference velocity added."""
    axes = matrix_columns(attitude)
    body = into_body(axes, reference.velocity)
    speed = norm(reference.velocity)
    push = tuple(v * (a + b * speed) / p.mass for v, a, b in zip(body, p.drag_linear, p.drag_norm, strict=True))
    return reference._replace(acceleration=add(reference.acceleration, into_world(axes, push)))


def tracking_rates(position: Any, velocity: Any, attitude: Any, body_rate: Any, wanted: Any, p: Any) -> Any:
    """Return collective thrust [N] and body rates [rad/s] that follow a tracking command: w_d - (K_R / K_W) e_R.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        wanted: The command's numbers, as `levels` lays them out.
        p: Record of the vehicle's controller.
    """
    state = BodyState(position, velocity, attitude, body_rate)
    out = geometric_control(state, reference_from_command("tracking", wanted), MODES["tracking"], p)
    error = attitude_error(matrix_columns(attitude), out.axes)
    return out.thrust, *(out.body_rate[i] - p.attitude_gain[i] / p.rate_gain[i] * error[i] for i in range(3))


def pose_wrench(position: Any, velocity: Any, attitude: Any, body_rate: Any, wanted: Any, p: Any) -> Any:
    """Return force and moment of full pose control.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        wanted: Position [m] and quaternion, 7 numbers, world.
        p: Record of the vehicle's controller.
    """
    return pose_control(BodyState(position, velocity, attitude, body_rate), wanted[:3], wanted[3:7], p)


def rate_loop_wrench(body_rate: Any, wanted: Any, memory: Any, dt: Any, p: Any) -> Any:
    """Return the wrench of the FlightGoggles rate loop, and its memory (filtered rate, slope, integral).

    Args:
        body_rate: Body [rad/s].
        wanted: Collective thrust [N] and body rates [rad/s].
        memory: Nine numbers from the last step.
        dt: Time since the last step [s].
        p: Record of the vehicle's controller.
    """
    gains = SimpleNamespace(
        inertia=p.inertia,
        proportional=p.rate_proportional,
        integral=p.rate_integral,
        derivative=p.rate_derivative,
        integral_max=p.rate_integral_max,
    )
    state = RateLoopState(memory[:3], memory[3:6], memory[6:9])
    moment, state = rate_loop(body_rate, wanted[1:4], state, FilterCoefficients(*p.filter), dt, gains)
    return (0.0, 0.0, wanted[0], *moment), (*state.filtered, *state.slope, *state.integral)


def _mellinger_law(
    position: Any,
    velocity: Any,
    attitude: Any,
    body_rate: Any,
    reference: Reference,
    memory: Any,
    started: Any,
    dt: Any,
    p: Any,
    hold_yaw: Any = 0.0,
) -> Any:
    gains = SimpleNamespace(**{name[2:]: getattr(p, name) for name in vars(p) if name.startswith("m_")}, gravity=p.gravity)
    state = BodyState(position, velocity, attitude, body_rate)
    kept = MellingerState(memory[:3], memory[3:6], memory[6:9])
    sine, cosine = sin_cos(reference.yaw)
    chi = choose(hold_yaw > 0.5, heading(matrix_columns(attitude)), (cosine, sine, 0.0))
    return mellinger_control(state, reference, reference_rates(reference, p.gravity, chi), kept, started, dt, gains, hold_yaw)


def mellinger_wrench(
    position: Any, velocity: Any, attitude: Any, body_rate: Any, wanted: Any, memory: Any, started: Any, dt: Any, p: Any
) -> Any:
    """Return the wrench of the Mellinger law in SI, and its memory (position and attitude integral, rate error).

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        wanted: The command's numbers, as `levels` lays them out.
        memory: Nine numbers from the last step.
        started: 0 on the first step of a flight, else 1.
        dt: Time since the last step [s].
        p: Record of the vehicle's controller.
    """
    reference = _against_drag(reference_from_command("tracking", wanted), attitude, p)
    # As of the geometric law: a body that turns for good follows the heading that it has.
    thrust, moment, kept = _mellinger_law(
        position, velocity, attitude, body_rate, reference, memory, started, dt, p, hold_yaw=p.yaw_lost
    )
    # The law has no gyroscopic term; a body that turns at 10 to 20 rad/s nutates without it.
    turning = add(moment, cross(body_rate, symmetric_multiply(p.inertia, body_rate)))
    return (0.0, 0.0, thrust, *choose(p.yaw_lost > 0.5, turning, moment)), kept


def crazyflie_states(
    position: Any, velocity: Any, attitude: Any, body_rate: Any, wanted: Any, memory: Any, started: Any, dt: Any, p: Any
) -> Any:
    """Return rotor states of the Mellinger law as the Crazyflie firmware runs it, and its memory.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        wanted: The command's numbers, as `levels` lays them out.
        memory: Nine numbers from the last step.
        started: 0 on the first step of a flight, else 1.
        dt: Time since the last step [s].
        p: Record of the vehicle's controller.
    """
    reference = reference_from_command("tracking", wanted)
    thrust, moment, kept = _mellinger_law(position, velocity, attitude, body_rate, reference, memory, started, dt, p)
    commands = motor_commands(thrust, moment, p.mixer, p.subtract_excess)
    chain = SimpleNamespace(**dict(zip(CHAIN_FIELDS, p.chain, strict=True)))
    states = []
    for command, polynomial, largest in zip(commands, p.thrust_polynomial, p.thrust_max_rotor, strict=True):
        ideal = speed_for_thrust(polynomial, thrust_of_command(command, largest))
        states.append(where(p.use_chain > 0.5, speed_of_command(command, chain), ideal))
    return states, kept


def trimmed(attitude: Any, body_rate: Any, p: Any) -> Any:
    """Return attitude and rates of the frame in which hover is level; those of the body, bit for bit, where that is the same.

    Args:
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body [rad/s].
        p: Record of the vehicle's controller.
    """
    x, y, z, _ = p.trim
    leans = x * x + y * y + z * z > 0.0
    return choose(leans, quaternion_multiply(attitude, p.trim), attitude), choose(
        leans, rotate_inverse(p.trim, body_rate), body_rate
    )


def bounded_thrusts(wrench: Any, p: Any, priority: Priority = PRIORITIES[0], regular: bool = False) -> Any:
    """Return rotor thrusts [N] by priority within limits.

    Args:
        wrench: Force [N] and moment [N m], body, 6 numbers.
        p: Record of the vehicle's controller.
        priority: What is kept where not all fits.
        regular: No airframe is `collective.irregular`.
    """
    return allocate_bounded(wrench, _allocation(p), priority, regular)


def pseudo_inverse_thrusts(wrench: Any, p: Any) -> Any:
    """Return rotor thrusts [N] of the pseudo-inverse, limits ignored."""
    return allocate_pseudo_inverse(wrench, _allocation(p), 0.0)


def exact_thrusts(wrench: Any, p: Any) -> Any:
    """Return pseudo-inverse and by how much its worst rotor exceeds a limit [N]."""
    thrusts = pseudo_inverse_thrusts(wrench, p)
    return thrusts, limit_excess(thrusts, p.thrust_min, p.thrust_max_rotor)


def led_states(state: Any, target: Any, p: Any) -> Any:
    """Return rotor commands that hurry slow rotors.

    Args:
        state: Present rotor states.
        target: Wanted rotor states.
        p: Record of the vehicle's controller.
    """
    return tuple(rotor_lead(w, t, p.lead) for w, t in zip(state, target, strict=True))


def rotor_states(thrusts: Any, p: Any) -> Any:
    """Return rotor states for thrusts, by the believed thrust maps."""
    return tuple(speed_for_thrust(c, t) for c, t in zip(p.thrust_polynomial, thrusts, strict=True))


CHAIN_FIELDS = (
    "command_to_grams",
    "volts_linear",
    "volts_quadratic",
    "supply",
    "pwm_min",
    "pwm_max",
    "speed_slope",
    "speed_offset",
)
