"""Angular accelerations through a soft rate loop: a twin of its states, and the command for which it asks what is wanted.

The loop of FlightGoggles (`airworthy.control.rate_loop.rate_loop`) follows a step of its command in half a second. Its
command is not bounded, though, and everything it computes with is known on board: the gyroscope's samples and the command
itself. A twin keeps its low-pass (x1, x2) and its integral I; with error e = W - x1 and the loop's own law

    a = K_P e + K_I (I + e dt) - K_D x2

the command

    W = x1 + (a + K_D x2 - K_I I) / (K_P + K_I dt)

makes it ask for the angular acceleration a (spec/race 5.1, which leaves out the K_I dt of the last step: 0.03 %). What
remains is the lag of rotors, and that a command is held while x1 and x2 go on.
"""

from __future__ import annotations

import numpy as np

from airworthy.control.gain_sets import gain_set
from airworthy.control.gains_for import rate_loop_parameters
from airworthy.control.levels import RATE_LOOP, ControlConfig
from airworthy.control.rate_loop import backward_euler_coefficients, exact_coefficients, low_pass, low_pass_constants
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.simulation.config import SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["RateLoopInverse"]


class RateLoopInverse:
    """The rate loops of a batch of vehicles, followed on board.

    Args:
        vehicle: As the loop believes it to be; its inertia does not matter, as the loop's gains are angular accelerations.
        count: Vehicles.
        rate: Samples per second at which the loop runs [Hz].
        control: With which gains and in which discretisation it runs.

    Raises:
        AirworthyError: Numbers that are no batch or rate.
    """

    def __init__(self, vehicle: Vehicle, count: int, rate: float, control: ControlConfig | None = None) -> None:
        if count < 1 or not rate > 0.0:
            raise AirworthyError(f"A rate loop needs vehicles and a rate above 0 Hz; {count} and {rate:g} Hz arrived.")
        control = control or ControlConfig()
        gains = rate_loop_parameters(vehicle, control.rate_gains)
        p, q = low_pass_constants(gain_set(control.rate_gains).limits["cutoff_hz"])
        discretised = backward_euler_coefficients if control.published_filter else exact_coefficients
        self._coefficients, self._dt = discretised(p, q, 1.0 / rate), 1.0 / rate
        self._kp, self._ki, self._kd = (
            np.asarray(x, np.float64) for x in (gains.proportional, gains.integral, gains.derivative)
        )
        self._clamp = np.asarray(gains.integral_max, np.float64)
        self.filtered, self.slope, self.integral = (np.zeros((count, 3)) for _ in range(3))

    @classmethod
    def of(cls, vehicle: Vehicle, count: int, config: SimulatorConfig) -> RateLoopInverse:
        """Return the twin of the loops of a simulator.

        Args:
            vehicle: As above.
            count: Vehicles.
            config: Of the simulator.

        Raises:
            AirworthyError: It runs another law.
        """
        if config.level != RATE_LOOP:
            raise AirworthyError(
                f"The simulator takes commands at level {config.level!r}, whose law has no inverse here; expected"
                f" {RATE_LOOP!r}: SimulatorConfig.published(vehicle)."
            )
        return cls(vehicle, count, config.physics_rate, config.control)

    def reset(self) -> None:
        """Begin anew: all states zero, as the loop's are at arming."""
        for state in (self.filtered, self.slope, self.integral):
            state[:] = 0.0

    def advance(self, gyro: ArrayLike, command: ArrayLike) -> None:
        """Take samples that the loop has read, in their order.

        Args:
            gyro: Body rates [rad/s], (steps, count, 3), or (count, 3) for one step.
            command: Body rates that were commanded meanwhile [rad/s], (count, 3).
        """
        samples = np.asarray(gyro, np.float64)
        wanted = np.asarray(command, np.float64)
        for sample in samples if samples.ndim == 3 else samples[None]:
            self.filtered, self.slope = low_pass(self.filtered, self.slope, sample, self._coefficients)
            total = self.integral + (wanted - self.filtered) * self._dt
            self.integral = np.clip(total, -self._clamp, self._clamp)

    def command(self, acceleration: ArrayLike) -> Array:
        """Return body rates to command [rad/s], (count, 3).

        Args:
            acceleration: Wanted about the body's axes [rad/s^2], (count, 3) or (3,).
        """
        wanted = np.asarray(acceleration, np.float64)
        total = self._kp + self._ki * self._dt
        return self.filtered + (wanted + self._kd * self.slope - self._ki * self.integral) / total

    def asked(self, command: ArrayLike) -> Array:
        """Return the angular acceleration that the loop asks for in its present state under a command [rad/s^2], (count, 3).

        Args:
            command: Body rates [rad/s], (count, 3) or (3,).
        """
        error = np.asarray(command, np.float64) - self.filtered
        return self._kp * error + self._ki * (self.integral + error * self._dt) - self._kd * self.slope
