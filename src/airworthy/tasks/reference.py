"""What a tracking task asks for: where to be, how fast and facing where, over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrackingReference:
    """A time-sampled reference. Its path is the polyline through the positions; after the last sample the end pose is held.

    Raises:
        AirworthyError: Shapes disagree, a value is not finite, or times do not rise.
    """

    t: Array
    """Times [s], rising, shape (K,)."""
    position: Array
    """World [m], shape (K, 3)."""
    velocity: Array
    """World [m/s], shape (K, 3)."""
    yaw: Array
    """Heading [rad], shape (K,); need not be unwrapped."""

    def __post_init__(self) -> None:
        shapes = {"t": (), "position": (3,), "velocity": (3,), "yaw": ()}
        for name in shapes:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        count = self.t.size
        if count == 0:
            raise AirworthyError("A tracking reference needs at least one sample; it has none.")
        for name, tail in shapes.items():
            values = getattr(self, name)
            if values.shape != (count, *tail):
                raise AirworthyError(f"The reference's {name} has shape {values.shape}; expected {(count, *tail)}.")
            if not np.isfinite(values).all():
                raise AirworthyError(f"The reference's {name} holds a value that is not finite.")
        if np.any(np.diff(self.t) <= 0.0):
            raise AirworthyError("The reference's times must rise from sample to sample.")

    @classmethod
    def from_trajectory(cls, trajectory: Any, rate_hz: float = 20.0) -> TrackingReference:
        """Sample a trajectory.

        Args:
            trajectory: Has `duration` [s] and `sample(t)` with `position`, `velocity` (..., 3) and `yaw` (...).
            rate_hz: Samples per second; the end is always one of them.
        """
        steps = max(1, round(float(trajectory.duration) * rate_hz))
        t = np.linspace(0.0, float(trajectory.duration), steps + 1) if trajectory.duration > 0.0 else np.zeros(1)
        flat = trajectory.sample(t)
        return cls(t, np.asarray(flat.position), np.asarray(flat.velocity), np.asarray(flat.yaw))

    @property
    def duration(self) -> float:
        """Time from the first sample to the last [s]."""
        return float(self.t[-1] - self.t[0])

    @property
    def path(self) -> Array:
        """Corners of the polyline without repetitions [m], shape (at least 1, 3)."""
        moved = np.any(np.diff(self.position, axis=0) != 0.0, axis=1)
        return self.position[np.concatenate(([True], moved))]

    @property
    def length(self) -> float:
        """Length of the path [m]."""
        return float(np.sum(np.linalg.norm(np.diff(self.position, axis=0), axis=1)))

    def position_at(self, t: ArrayLike) -> Array:
        """Position [m] at times (...), linear between samples, shape (..., 3)."""
        return self._at(t, self.position)

    def velocity_at(self, t: ArrayLike) -> Array:
        """Velocity [m/s] at times (...), linear between samples and zero after the last, shape (..., 3)."""
        t = np.asarray(t, dtype=np.float64)
        return np.where((t > self.t[-1])[..., None], 0.0, self._at(t, self.velocity))

    def yaw_at(self, t: ArrayLike) -> Array:
        """Heading [rad] at times (...), continuous, shape (...)."""
        return np.interp(np.asarray(t, dtype=np.float64), self.t, np.unwrap(self.yaw))

    def _at(self, t: ArrayLike, values: Array) -> Array:
        t = np.asarray(t, dtype=np.float64)
        return np.stack([np.interp(t, self.t, values[:, axis]) for axis in range(3)], axis=-1)
