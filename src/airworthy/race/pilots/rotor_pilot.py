"""Flies plans by rotor speeds, with the true state: for vehicles that have no rate loop of their own to undo.

The tracker's thrust f and angular accelerations turn into a thrust of each rotor by the model's mixer, and each thrust into the
rotor speed that it needs. Rotors follow dw/dt = a (c - w) + b (c|c| - w|w|), with lags of 20 to 60 ms; commanded is the c for
which a rotor goes to the speed w* that is wanted as one with a lag of `_LAG`:

    a (c - w) + b (c^2 - w^2) = (w* - w) / lag

within its limits. Mass that is not the believed one is found from the accelerations that thrusts bring (`_Load`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.pilots.tracker import RaceTracker, TrackerGains
from airworthy.race.planning.plan import RacePlan
from airworthy.vehicles import Vehicle, thrust_limits

__all__ = ["RotorInverse", "RotorPlanPilot"]

_LAG = 0.0125
"""Lag that rotors are hurried to [s]: a quarter of the slowest of the vehicles at hand, as of `ControlConfig.rotor_lead`."""
_LEAD = 0.02
"""How far ahead a plan's inputs are read by default [s]: that lag and a held command."""
_LOAD_TIME = 0.1
"""Time constant of the estimate of thrust over mass [s]: a tenth of the shortest leg."""
_LOAD = (0.75, 1.33)
"""Bounds of the estimate over what is believed; what is beyond is no mass."""


class RotorInverse:
    """From wanted thrusts to commanded rotor speeds, of vehicles with equal rotors.

    Args:
        vehicle: Whose rotors; thrust without a constant term, as all of the catalogue.

    Raises:
        AirworthyError: Its rotors differ, or its motor state is a thrust.
    """

    def __init__(self, vehicle: Vehicle) -> None:
        kinds = {(rotor.thrust, rotor.response, rotor.speed_min, rotor.speed_max) for rotor in vehicle.rotors}
        if len(kinds) != 1 or vehicle.motor_state != "speed" or vehicle.rotors[0].thrust[2] <= 0.0:
            raise AirworthyError(
                f"The vehicle {vehicle.name!r} has unlike rotors, or rotors without a speed; expected equal ones, as of"
                " cf21B_500 or kingfisher."
            )
        rotor = vehicle.rotors[0]
        self.thrust, self.response = rotor.thrust, rotor.response
        self.low, self.high = rotor.speed_min, rotor.speed_max

    def speed(self, thrust: Array) -> Array:
        """Return the speeds at which rotors give thrusts [rad/s], of any shape."""
        c0, c1, c2 = self.thrust
        root = np.sqrt(np.maximum(c1 * c1 + 4.0 * c2 * (np.asarray(thrust) - c0), 0.0))
        return np.clip((root - c1) / (2.0 * c2), self.low, self.high)

    def command(self, thrust: Array, speed: Array) -> Array:
        """Return rotor speeds to command [rad/s], of the shape of the thrusts.

        Args:
            thrust: Wanted [N].
            speed: Of the rotors now [rad/s].
        """
        slope = (self.speed(thrust) - speed) / _LAG
        rises = slope > 0.0
        a, b = (np.where(rises, up, down) for up, down in zip(self.response.rise, self.response.fall, strict=True))
        # a c + b c^2 = level; without b linear.
        level = slope + a * speed + b * speed * speed
        root = np.sqrt(np.maximum(a * a + 4.0 * b * level, 0.0))
        squared = (root - a) / (2.0 * np.where(b > 0.0, b, 1.0))
        return np.clip(np.where(b > 0.0, squared, level / np.where(a > 0.0, a, 1.0)), self.low, self.high)


class _Load:
    """What thrusts bring in acceleration, over what the model says: the believed mass over the true one."""

    def __init__(self, flights: int) -> None:
        self.scale: Array = np.ones(flights)
        self._before: Array | None = None

    def update(self, velocity: Array, pull: Array, gravity: float, period: float) -> None:
        """Take a velocity and the modelled acceleration by thrust and drag since the last, (flights, 3) each."""
        if self._before is not None and period > 0.0:
            felt = (velocity - self._before) / period + [0.0, 0.0, gravity]
            size = np.sum(pull * pull, axis=1)
            # Least squares along the modelled direction; near free fall there is nothing to learn from.
            now = np.clip(np.sum(felt * pull, axis=1) / np.maximum(size, 1e-6), *_LOAD)
            share = np.where(size > (0.3 * gravity) ** 2, period / _LOAD_TIME, 0.0)
            self.scale = self.scale + share * (now - self.scale)
        self._before = velocity.copy()


class RotorPlanPilot:
    """A batch of vehicles, each with its plan, which may be exchanged in flight.

    Args:
        plans: One for each vehicle, of one model.
        vehicle: As it is believed to be.
        gains: Of the tracker.
    """

    name = "truth:race"
    level = "rotor_speed"

    def __init__(self, plans: Sequence[RacePlan], vehicle: Vehicle, gains: TrackerGains | None = None) -> None:
        self.plans = list(plans)
        self.begun: Array = np.zeros(len(plans))
        """When each plan began [s]."""
        self.model = plans[0].model
        self.inverse = RotorInverse(vehicle)
        least = float(np.max(thrust_limits(vehicle)[0]))
        self.tracker = RaceTracker(self.model, gains or TrackerGains(lead=_LEAD), rotor_min=least)
        self.error: Array = np.zeros(len(plans))
        """Distance from the plan at the last command [m], (flights,)."""
        self._load = _Load(len(plans))
        self._time = 0.0

    def exchange(self, flight: int, plan: RacePlan, begun: float) -> None:
        """Give a vehicle another plan.

        Args:
            flight: Which.
            plan: For the rest of its race.
            begun: When the plan's clock is 0 [s].
        """
        self.plans[flight], self.begun[flight] = plan, begun

    def command(self, time: float, state: Array, rotors: Array) -> Array:
        """Return rotor speeds to command [rad/s], (flights, rotors).

        Args:
            time: Since the start [s].
            state: True position, velocity, attitude x y z w, body rate, (flights, 13).
            rotors: Their speeds [rad/s], (flights, rotors).
        """
        self._weigh(time, state, rotors)
        now, ahead = self._reference(time), self._reference(time + self.tracker.gains.lead)
        thrust, alpha = self.tracker.command(state, now[0], now[1], ahead[1])
        thrust = self.tracker.within_rotors(thrust / self._load.scale, alpha)
        self.error = np.linalg.norm(now[0][:, :3] - state[:, :3], axis=1)
        wanted = np.hstack([thrust[:, None], alpha]) @ self.model.mixer.T
        return self.inverse.command(wanted, rotors)

    def _weigh(self, time: float, state: Array, rotors: Array) -> None:
        c0, c1, c2 = self.inverse.thrust
        thrust = np.sum(c0 + c1 * rotors + c2 * rotors * rotors, axis=1, keepdims=True)
        up = frames.to_matrix(state[:, 6:10])[..., 2]
        pull = (thrust * up - self.tracker.drag(state[:, 3:10])) / self.model.mass
        self._load.update(state[:, 3:6], pull, self.model.gravity, time - self._time)
        self._time = time

    def _reference(self, time: float) -> tuple[Array, Array]:
        pairs = [plan.at([time - begun]) for plan, begun in zip(self.plans, self.begun, strict=True)]
        return np.vstack([states for states, _ in pairs]), np.vstack([inputs for _, inputs in pairs])
