"""The tracker of a race: from a plan and a state to collective thrust and angular acceleration, of a batch at once.

    f     = T_r b3_r + m (14 e_p + 7 e_v) + drag(v) - drag(v_r)
    alpha = alpha_r(t + lead) + 220 e_R + 26 (w_r - w),  of yaw 0.5 and 0.7 of these
    T     = f . b3 + T_r(t + lead) - T_r(t)

(spec/race 5.2; the form is Lee, Leok and McClamroch 2010 with the rotation vector as attitude error). b3 follows f, b1 the
plan. The lead stands for the rotors' lag and a held command. Where rotors cannot give both, moments come before thrust: a racer
that is turned wrongly flies wrongly with any thrust.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.schema import Bound, check_fields
from airworthy.race.planning.racer import RacerModel

__all__ = ["RaceTracker", "TrackerGains", "rotation_error"]

_YAW_SHARE = np.array([1.0, 1.0, 0.5])
"""Of the attitude gain; yaw has a sixth of the authority and matters least (spec/race 5.2)."""
_YAW_DAMPING = np.array([1.0, 1.0, 0.7])
"""Of the rate gain."""
_TURN_MAX = np.array([150.0, 150.0, 60.0])
"""Most that is asked for [rad/s^2]: half of what the rotors give about roll and pitch; from the prototype of spec/race."""
_REACH = 1.5
"""Longest position error that counts [m]; a farther one pulls no harder."""
ROTOR_MIN = 0.0125
"""Least thrust of a rotor [N]: none stops, for a stopped one starts late."""


@dataclass(frozen=True)
class TrackerGains:
    """Gains and lead; those of spec/race 5.2."""

    position: Annotated[float, Bound(0.0, 1000.0, "1/s^2")] = 14.0
    velocity: Annotated[float, Bound(0.0, 1000.0, "1/s")] = 7.0
    attitude: Annotated[float, Bound(0.0, 10000.0, "1/s^2")] = 220.0
    rate: Annotated[float, Bound(0.0, 1000.0, "1/s")] = 26.0
    lead: Annotated[float, Bound(0.0, 0.2, "s")] = 0.03
    """How far ahead the plan's inputs are read [s]."""
    least_push: Annotated[float, Bound(0.0, 10.0)] = 0.0
    """Thrust of the plan, over the weight, below which errors tilt the vehicle no farther. Where a plan coasts with next to
    no thrust an error of half a metre a second would else turn the vehicle over. Ours; 0 as in spec/race 5.2."""

    def __post_init__(self) -> None:
        check_fields(self, "TrackerGains.")


def rotation_error(attitude: Array, wanted: Array) -> Array:
    """Return the rotation vector from attitudes to those wanted, in the body frame [rad], (n, 3), the shorter way round.

    Args:
        attitude: x y z w, (n, 4).
        wanted: (n, 4).
    """
    return np.asarray(frames.to_rotation_vector(frames.canonical(frames.multiply(frames.conjugate(attitude), wanted))))


class RaceTracker:
    """The law, for vehicles of one model.

    Args:
        model: Its numbers.
        gains: Of the law.
        rotor_min: Least thrust of a rotor [N].
    """

    def __init__(self, model: RacerModel, gains: TrackerGains | None = None, rotor_min: float = ROTOR_MIN) -> None:
        self.model, self.gains, self.rotor_min = model, gains or TrackerGains(), rotor_min

    def command(self, state: Array, reference: Array, inputs: Array, ahead: Array) -> tuple[Array, Array]:
        """Return collective thrust [N], (n,), and angular acceleration [rad/s^2], (n, 3).

        Args:
            state: Position, velocity, attitude x y z w, body rate, (n, 13).
            reference: The plan's states now, (n, 13).
            inputs: The plan's inputs now, (n, 4).
            ahead: Its inputs `gains.lead` later, (n, 4).
        """
        gains, mass = self.gains, self.model.mass
        off = reference[:, :6] - state[:, :6]
        length = np.linalg.norm(off[:, :3], axis=1, keepdims=True)
        off[:, :3] *= np.minimum(1.0, _REACH / np.maximum(length, 1e-9))
        axes = frames.to_matrix(state[:, 6:10])
        planned = frames.to_matrix(reference[:, 6:10])
        force = inputs[:, :1] * planned[..., 2] + mass * (gains.position * off[:, :3] + gains.velocity * off[:, 3:])
        force += self.drag(state[:, 3:10]) - self.drag(reference[:, 3:10])
        # Errors tilt the vehicle as if the plan pushed with that much at least; what is pushed is the force itself.
        lacking = np.maximum(gains.least_push * mass * self.model.gravity - inputs[:, :1], 0.0)
        wanted = frames.from_matrix(_facing(force + lacking * planned[..., 2], planned))
        # Rates and accelerations of the plan are about its own axes: turn them into the vehicle's.
        turn = np.swapaxes(axes, 1, 2) @ planned
        rate = (turn @ reference[:, 10:13, None])[..., 0]
        alpha = (turn @ ahead[:, 1:, None])[..., 0]
        alpha += gains.attitude * _YAW_SHARE * rotation_error(state[:, 6:10], wanted)
        alpha += gains.rate * _YAW_DAMPING * (rate - state[:, 10:13])
        alpha = np.clip(alpha, -_TURN_MAX, _TURN_MAX)
        thrust = np.sum(force * axes[..., 2], axis=1) + ahead[:, 0] - inputs[:, 0]
        return self.within_rotors(thrust, alpha), alpha

    def within_rotors(self, thrust: Array, alpha: Array) -> Array:
        """Return the thrust nearest to one wanted with which no rotor leaves its limits [N], (n,); moments are kept.

        Args:
            thrust: Wanted [N], (n,).
            alpha: Angular acceleration, (n, 3).
        """
        share, moments = self.model.mixer[:, 0], alpha @ self.model.mixer[:, 1:].T
        highest = np.min((self.model.rotor_max - moments) / share, axis=1)
        lowest = np.max((self.rotor_min - moments) / share, axis=1)
        # Where moments alone ask for more than there is, no rotor above its limit is the lesser evil.
        return np.minimum(np.maximum(thrust, lowest), highest)

    def drag(self, motion: Array) -> Array:
        """Return the force that makes up for drag [N], (n, 3).

        Args:
            motion: Velocity, world [m/s], and attitude x y z w, (n, 7).
        """
        velocity = motion[:, :3]
        force = self.model.drag * np.linalg.norm(velocity, axis=1, keepdims=True) * velocity
        if self.model.has_axial_drag:
            force = force + np.stack(self.model.axial_drag(velocity.T, tuple(motion[:, 3:].T)), axis=1)
        return force


def _facing(force: Array, planned: Array) -> Array:
    """Axes with body z along the force and body x as near as can be to the plan's, as columns, (n, 3, 3)."""
    z = force / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-6)
    x = planned[..., 0] - np.sum(planned[..., 0] * z, axis=1, keepdims=True) * z
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
    return np.stack([x, np.cross(z, x), z], axis=-1)
