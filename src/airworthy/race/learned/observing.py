"""What a learned race pilot sees, and what its network's outputs mean; the same in flight and in training, of a batch at once.

Seen are velocity, the direction of gravity and the rate, all in the body frame, the corners of four gates there - the one
passed last, which tells the way that was come, and the next three -, how well the next three are known and how long ago they
were seen, and which gate comes next (spec/race 9, first bullet; the gate passed last and the number of the next one are ours).
A corner c enters as 2 c / (8 m + |c|): centimetres count near by, directions afar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt

__all__ = ["AHEAD", "TURN_MAX", "RacerView", "commanded", "network_outputs", "observed_numbers", "wanted_outputs"]

AHEAD = 3
"""Gates that are seen ahead (spec/race 9)."""
TURN_MAX = np.array([100.0, 100.0, 50.0])
"""Angular acceleration of an output of 1 [rad/s^2]; ours: `race:stored` asks for more in one command of a hundred."""
_VELOCITY, _RATE = 0.1, 0.2
"""By which velocities [m/s] and rates [rad/s] are multiplied: all numbers are then of the size of 1."""
_NEAR_M, _GAIN = 8.0, 2.0
"""Of corners, see the module; ours."""
_SIGMA_M, _SIGMA_MOST = 0.5, 2.0
"""Standard deviations are told in halves of a metre, up to two: a gate that was never seen is within 1.5 m."""
_UNSEEN_S = 2.0
"""Time since the last sight is told in shares of this, up to 1."""
_HALF_START = 1.0
"""Half side of the square at the start that stands for a gate passed [m]."""


def observed_numbers(passages: int) -> int:
    """Return how many numbers are seen in a race of so many passages."""
    return 9 + 12 * (AHEAD + 1) + 2 * AHEAD + AHEAD + passages


@dataclass(frozen=True)
class RacerView:
    """What is the same in all flights of a race.

    Args:
        start: Corners that stand for the gate passed before the first, (4, 3).
        passages: Of the race.
    """

    start: Array
    passages: int

    @classmethod
    def of(cls, position: Array, yaw: float, passages: int) -> RacerView:
        """Return the view of a race.

        Args:
            position: Of the start [m], (3,).
            yaw: There [rad].
            passages: Of the race.
        """
        left, up = np.array([-np.sin(yaw), np.cos(yaw), 0.0]), np.array([0.0, 0.0, 1.0])
        sides = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
        return cls(np.array([position + _HALF_START * (a * left + b * up) for a, b in sides]), passages)

    def observe(self, state: Array, axes: Array, corners: Array, sigma: Array, unseen: Array, following: ArrayInt) -> ArrayF32:
        """Return what is seen, (n, observed).

        Args:
            state: Position, velocity, attitude x y z w, body rate, as believed, (n, 13).
            axes: Body axes in the world as columns, (n, 3, 3).
            corners: Of all passages, as believed [m], (n, passages, 4, 3).
            sigma: Of each passage's place beside the vehicle, to the left and upwards [m], (n, passages, 2).
            unseen: Since each was seen [s], (n, passages).
            following: Number of the next passage, (n,); behind the last, the last.
        """
        count = len(state)
        rows = np.arange(count)[:, None]
        following = np.minimum(following, self.passages - 1)
        # Behind the last gate there is none: the last one stands for those that would follow.
        ahead = np.minimum(following[:, None] + np.arange(AHEAD), self.passages - 1)
        gates = np.empty((count, AHEAD + 1, 4, 3))
        gates[:, 1:] = corners[rows, ahead]
        gates[:, 0] = np.where((following > 0)[:, None, None], corners[rows[:, 0], following - 1], self.start)
        away = (gates - state[:, None, None, :3]).reshape(count, -1, 3) @ axes
        away *= _GAIN / (_NEAR_M + np.sqrt(np.sum(away * away, axis=-1, keepdims=True)))
        number = np.zeros((count, self.passages))
        number[rows[:, 0], following] = 1.0
        return np.concatenate(
            [
                _VELOCITY * (state[:, None, 3:6] @ axes)[:, 0],
                # Gravity points along -z of the world: the third row of the axes, turned round.
                -axes[:, 2],
                _RATE * state[:, 10:13],
                away.reshape(count, -1),
                np.minimum(sigma[rows, ahead] / _SIGMA_M, _SIGMA_MOST).reshape(count, -1),
                np.minimum(unseen[rows, ahead] / _UNSEEN_S, 1.0),
                number,
            ],
            axis=1,
        ).astype(np.float32)


def commanded(outputs: ArrayF32, thrust_max: float) -> tuple[Array, Array]:
    """Return collective thrust [N], (n,), and angular acceleration [rad/s^2], (n, 3), of outputs within -1 and 1, (n, 4).

    Args:
        outputs: Of the network.
        thrust_max: That an output of 1 stands for [N]; -1 is none.
    """
    wide = np.asarray(outputs, np.float64)
    return 0.5 * thrust_max * (1.0 + wide[:, 0]), TURN_MAX * wide[:, 1:]


def wanted_outputs(thrust: Array, alpha: Array, thrust_max: float) -> ArrayF32:
    """Return the outputs that stand for a command, (n, 4), within -1 and 1; `commanded` the other way round.

    Args:
        thrust: [N], (n,).
        alpha: [rad/s^2], (n, 3).
        thrust_max: As of `commanded`.
    """
    whole = np.hstack([(2.0 * thrust / thrust_max - 1.0)[:, None], alpha / TURN_MAX])
    return np.clip(whole, -1.0, 1.0).astype(np.float32)


def network_outputs(weights: list[ArrayF32] | tuple[ArrayF32, ...], observed: ArrayF32) -> ArrayF32:
    """Return outputs of the network, (n, 4): tanh behind each layer, all in float32.

    Args:
        weights: Weight (rows, columns) and bias of each layer.
        observed: (n, observed).
    """
    x = observed
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        x = np.tanh(x @ w.T + b)
    return x
