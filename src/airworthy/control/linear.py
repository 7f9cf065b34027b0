"""The closed loop at hover, linearised: poles, loop gains and their margins.

The very equations that fly - `dynamics.equations.derivative`, the control law, its allocation and thrust maps - run on dual
numbers (`core.tracing.dual`), so the matrices are exact derivatives and hold for every airframe that hovers. One loop at a
time is broken where the law hands its wrench to the allocation, the others stay closed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.control import laws
from airworthy.control.kernel import control_column, control_layout
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayLike, NDArray
from airworthy.core.tracing.dual import jacobian
from airworthy.core.vectors import quaternion_multiply
from airworthy.dynamics.equations import derivative
from airworthy.dynamics.state import body_parameters, padded_rotor_count, rigid_layout
from airworthy.vehicles import Vehicle, hover_speed, hover_trim

CHANNELS: tuple[str, ...] = ("thrust", "roll", "pitch", "yaw")
"""Loops that are broken, by what the law asks for in them: force along body z, moments about body x, y, z."""
_WRENCH_ROW = {"thrust": 2, "roll": 3, "pitch": 4, "yaw": 5}
STATES: tuple[str, ...] = (*(f"{name}_{axis}" for name in ("position", "velocity", "tilt", "rate") for axis in "xyz"),)
"""The first twelve states; rotors follow. Tilt is the small rotation from the hover attitude, body frame [rad]."""
FREQUENCIES: Array = np.geomspace(1e-2, 1e3, 4001)
"""Where loop gains are looked at [rad/s]: 800 points a decade, 0.3 % apart."""


@dataclass(frozen=True, eq=False)
class LinearLoop:
    """A vehicle and its controller near hover: x' = A x + B w and w = K x, for the wrench w that the law asks for.

    With n rotors x has 12 + n entries (`STATES`, then rotor states about hover [rad/s, or N]); w is force [N] and moment [N m]
    in the body frame about what hover needs.
    """

    vehicle: str
    a: Array
    """Vehicle, allocation and rotors with all loops open, (12 + n, 12 + n)."""
    b: Array
    """(12 + n, 6)"""
    k: Array
    """The law, (6, 12 + n)."""
    delay: float = 0.0
    """From a measurement until the wrench acts [s]."""

    @property
    def poles(self) -> NDArray[np.complex128]:
        """Poles of the closed loop without its delay [1/s], fastest decay first."""
        found = np.linalg.eigvals(self.a + self.b @ self.k)
        return np.asarray(found[np.argsort(found.real)], np.complex128)

    @property
    def damping(self) -> float:
        """Least damping ratio of the closed loop's poles, -Re / |p| [-]; negative where one is unstable."""
        poles = self.poles
        return float((-poles.real / np.maximum(np.abs(poles), 1e-12)).min())

    def gain(self, channel: str, frequencies: ArrayLike = FREQUENCIES) -> NDArray[np.complex128]:
        """Return the loop gain L(i w) of one channel, the other channels closed; the closed loop is 1 / (1 + L).

        Args:
            channel: One of `CHANNELS`.
            frequencies: [rad/s], (m,).

        Returns:
            (m,)
        """
        row = _WRENCH_ROW[channel]
        # The other five loops stay closed: margins of a loop alone would flatter a vehicle whose axes are coupled.
        others = [i for i in range(6) if i != row]
        w = np.asarray(frequencies, np.float64)
        open_loop = self.a + self.b[:, others] @ self.k[others]
        system = 1j * w[:, None, None] * np.eye(len(self.a)) - open_loop
        response = np.linalg.solve(system, np.broadcast_to(self.b[:, row, None], (len(w), len(self.a), 1)))[..., 0]
        # The delay exactly; a rational approximation would bend the phase where margins are read.
        return -(response @ self.k[row]) * np.exp(-1j * w * self.delay)

    def margins(self, channel: str, frequencies: ArrayLike = FREQUENCIES) -> Margins:
        """Return stability margins of one channel, from its gain at frequencies [rad/s]."""
        return margins_of(frequencies, self.gain(channel, frequencies))


@dataclass(frozen=True)
class Margins:
    """How far a loop is from instability; infinite where it never crosses."""

    gain: float
    """Factor by which its gain may grow."""
    gain_reduction: float
    """Factor by which its gain may fall (below 1; 0: to nothing)."""
    phase: float
    """Phase it may lose [rad]."""
    delay: float
    """Further delay it may have [s]."""
    sensitivity: float
    """Largest 1 / |1 + L|: by how much disturbances are amplified at worst [-]."""
    crossover: float
    """Frequency of |L| = 1 at which the phase margin is taken [rad/s]; 0: it never crosses."""

    @property
    def gain_db(self) -> float:
        """Gain margin [dB]."""
        return 20.0 * math.log10(self.gain) if math.isfinite(self.gain) else math.inf


def margins_of(frequencies: ArrayLike, gain: ArrayLike) -> Margins:
    """Return margins of a sampled loop gain.

    Crossings between samples are found by linear interpolation in log frequency.

    Args:
        frequencies: Rising [rad/s], (m,).
        gain: L(i w), (m,).
    """
    w, loop = np.log(np.asarray(frequencies, np.float64)), np.asarray(gain, np.complex128)
    # Unwrapped: crossings are found where the phase passes odd multiples of pi, not where it jumps.
    size, phase = np.log(np.maximum(np.abs(loop), 1e-300)), np.unwrap(np.angle(loop))
    above, below = 1.0, 0.0
    most, worst, least_delay, crossover = math.inf, math.inf, math.inf, 0.0
    # |L| where the phase is an odd multiple of pi: the gain may grow to 1 / |L| or fall to it.
    turns = (phase / math.pi - 1.0) / 2.0
    for index in np.flatnonzero(np.floor(turns[:-1]) != np.floor(turns[1:])):
        target = max(math.floor(turns[index]), math.floor(turns[index + 1]))
        share = (target - turns[index]) / (turns[index + 1] - turns[index])
        there = math.exp(size[index] + share * (size[index + 1] - size[index]))
        if there < above:
            most = min(most, above / there)
        else:
            below = max(below, above / there)
    for index in np.flatnonzero((size[:-1] > 0.0) != (size[1:] > 0.0)):
        share = size[index] / (size[index] - size[index + 1])
        at = phase[index] + share * (phase[index + 1] - phase[index])
        frequency = math.exp(w[index] + share * (w[index + 1] - w[index]))
        left = float((at + math.pi) % (2.0 * math.pi))  # until -180 degrees
        if left < worst:
            worst, crossover = left, frequency
        least_delay = min(least_delay, left / frequency)
    return Margins(most, below, worst, least_delay, float((1.0 / np.abs(1.0 + loop)).max()), crossover)


def linear_loop(
    vehicle: Vehicle,
    config: ControlConfig | None = None,
    level: str = "tracking",
    physics_rate: float = 960.0,
    gains: Mapping[str, ArrayLike] | None = None,
    delay: float = 0.0,
) -> LinearLoop:
    """Linearise a vehicle under one of the geometric law's levels at hover.

    Rotors that rise and fall at different rates have no derivative at hover; they count with the slower of both.

    Args:
        vehicle: What flies, and what its controller believes.
        config: Gains and variants of the law.
        level: A level of the geometric law that holds a position: "tracking" or "position".
        physics_rate: Rate at which the law runs [Hz]; its command is held for a step, which counts as half a step of delay.
        gains: Rows of `control.kernel.control_layout` to replace, such as "attitude_gain", in their units.
        delay: Further delay from measurement to command, beside the dead time of the vehicle's rotors [s].

    Raises:
        AirworthyError: If the vehicle cannot hover, or a gain set is unknown.
    """
    vehicle = _slower_of_rise_and_fall(vehicle)
    n = padded_rotor_count(vehicle.rotor_count)
    count = vehicle.rotor_count
    body, law = rigid_layout(n), control_layout(n)
    p = _record(body, body_parameters(vehicle, body, n))
    column = control_column(vehicle, config or ControlConfig(), level, 1.0 / physics_rate, n)
    for name, value in (gains or {}).items():
        column[law.rows(name)] = np.broadcast_to(np.asarray(value, np.float64), law.fields[name] or (1,)).ravel()
    c = _record(law, column)
    hover = [*hover_speed(vehicle).tolist(), *[0.0] * (n - count)]
    rest = [0.0] * 12 + hover[:count]
    none, upright = (0.0, 0.0, 0.0), hover_trim(vehicle).attitude

    def motion(*x: Any) -> Any:
        _, velocity, attitude, body_rate, rotors = _unpacked(x[: 12 + count], upright, n)
        command = (*x[12 + count :], *[0.0] * (n - count))
        out = derivative(velocity, attitude, body_rate, rotors, command, none, none, none, None, p)
        return (*velocity, *out[0], *body_rate, *out[2], *out[3][:count])

    def asked(*x: Any) -> Any:
        position, velocity, attitude, body_rate, _ = _unpacked(x, upright, n)
        attitude, body_rate = laws.trimmed(attitude, body_rate, c)  # as the step does for vehicles that lean in hover
        wanted = (0.0,) * 16
        wrench = laws.geometric_wrench(position, velocity, attitude, body_rate, wanted, c, level)
        return (wrench[0], wrench[1], wrench[2], *wrench[3])

    def commands(*x: Any) -> Any:
        target = laws.rotor_states(laws.pseudo_inverse_thrusts(x[:6], c), c)
        return laws.led_states((*x[6:], *[0.0] * (n - count)), target, c)[:count]

    held = [float(value) for value in asked(*rest)]
    f = np.array(jacobian(motion, [*rest, *hover[:count]])[1], np.float64)
    k = np.array(jacobian(asked, rest)[1], np.float64)
    u = np.array(jacobian(commands, [*held, *hover[:count]])[1], np.float64)
    a, by_command = f[:, : 12 + count].copy(), f[:, 12 + count :]
    a[:, 12:] += by_command @ u[:, 6:]
    return LinearLoop(vehicle.name, a, by_command @ u[:, :6], k, delay + vehicle.command_delay + 0.5 / physics_rate)


def _slower_of_rise_and_fall(vehicle: Vehicle) -> Vehicle:
    rotors = []
    for rotor, state in zip(vehicle.rotors, hover_speed(vehicle), strict=True):
        rise, fall = rotor.response.rise, rotor.response.fall
        slower = min((rise, fall), key=lambda ab: ab[0] + 2.0 * ab[1] * abs(float(state)))
        rotors.append(replace(rotor, response=replace(rotor.response, rise=slower, fall=slower)))
    return replace(vehicle, rotors=tuple(rotors))


def _record(layout: Any, column: Array) -> SimpleNamespace:
    return layout.record(lambda row: float(column[row]))


def _unpacked(x: Any, upright: Any, n: int) -> tuple[Any, ...]:
    """Position, velocity, attitude, rate and n rotor states of a state vector; the attitude to first order in the tilt."""
    tilt = x[6:9]
    leaned = (0.5 * tilt[0], 0.5 * tilt[1], 0.5 * tilt[2], 1.0 + 0.0 * tilt[0])
    return x[0:3], x[3:6], quaternion_multiply(upright, leaned), x[9:12], (*x[12:], *[0.0] * (n - (len(x) - 12)))
