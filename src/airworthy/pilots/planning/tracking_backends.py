"""Controllers that follow set-points on the rigid family: the common one, and others for comparison.

A back end says at which level and rate the simulator must be built, sets its gains, and turns set-points into commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.control.config import ControlConfig
from airworthy.core.errors import unknown_name
from airworthy.pilots.pilot import Observation
from airworthy.pilots.planning.interface import Motion, Setpoints
from airworthy.pilots.planning.tracking_so3 import GENTLE_SHARE, LAG_SHARE, so3_rows
from airworthy.simulation.simulator import Simulator

__all__ = ["Backend", "Fused", "backend", "backend_names", "register_backend"]

Array = NDArray[np.float64]


class Backend(Protocol):
    """Follows set-points."""

    name: str
    level: str
    """Control level of its commands."""
    rate: float
    """Commands per second that it wants [Hz]."""
    observes: tuple[str, ...]
    """State that it reads besides position, velocity and attitude."""

    @property
    def ahead(self) -> tuple[float, ...]:
        """Times from now at which it also wants set-points [s]; of planners with `preview`, else by their motion now."""
        ...

    def control(self) -> ControlConfig:
        """With which the simulator must be built."""
        ...

    def configure(self, simulator: Simulator) -> None:
        """Take the simulator's vehicles as its controllers believe them to be; once, before flying."""
        ...

    def command(
        self,
        wanted: Setpoints,
        motion: Motion,
        errors: tuple[Array, Array],
        observation: Observation,
        ahead: Sequence[Setpoints] = (),
    ) -> Array:
        """Commands (n, width).

        Args:
            wanted: What to follow.
            motion: Odometry.
            errors: Of odometry, position and velocity (n, 3) each: what the motion has too much.
            observation: All that was declared.
            ahead: What to follow at the times of `ahead`.
        """
        ...


@dataclass
class Fused:
    """Laws that run inside the simulator's step, at its physics rate, at level "tracking".

    They close the loop on the true state; errors of odometry act through the set-points, from which they are taken.

    Attributes:
        name: As in results.
        gains: "so3", "so3_fixed", "so3_gentle", or "auto" for the airframe's own.
        level: Of the law.
    """

    name: str
    gains: str
    level: str = "tracking"
    rate: float = 100.0
    observes: tuple[str, ...] = ()
    ahead: tuple[float, ...] = ()

    def control(self) -> ControlConfig:
        """The published controller hurries no rotors and knows no drag."""
        return ControlConfig() if self.gains == "auto" else ControlConfig(rotor_lead=1.0, drag_feed_forward=False)

    def configure(self, simulator: Simulator) -> None:
        """Put the gains into the rows of the simulator's controllers."""
        if self.gains != "auto":
            share = GENTLE_SHARE if self.gains == "so3_gentle" else LAG_SHARE
            for name, rows in so3_rows(simulator.vehicles, self.gains == "so3_fixed", share).items():
                simulator.set_parameter(name, rows)

    def command(
        self,
        wanted: Setpoints,
        motion: Motion,
        errors: tuple[Array, Array],
        observation: Observation,
        ahead: Sequence[Setpoints] = (),
    ) -> Array:
        """Position, velocity, acceleration, no jerk, yaw, yaw rate."""
        zero = np.zeros_like(wanted.position)
        heading = np.stack([wanted.yaw, wanted.yaw_rate], axis=1)
        parts = (wanted.position - errors[0], wanted.velocity - errors[1], wanted.acceleration, zero, heading)
        return np.concatenate(parts, axis=1)


_MAKERS: dict[str, tuple[Callable[[], Backend], str]] = {
    "so3": (lambda: Fused("so3", "so3"), "SO(3) controller of EGO-Planner and Fast-Planner, gains scaled to each vehicle"),
    "so3_fixed": (lambda: Fused("so3_fixed", "so3_fixed"), "the same with its absolute gains on every vehicle"),
    "so3_gentle": (lambda: Fused("so3_gentle", "so3_gentle"), "the same, turning no faster than a quarter of 1 / rotors' lag"),
    "geometric": (lambda: Fused("geometric", "auto"), "geometric law at each vehicle's own bandwidth, rotors hurried"),
    "mellinger": (lambda: Fused("mellinger", "auto", "tracking:mellinger"), "Mellinger law at each vehicle's own bandwidth"),
}


def register_backend(name: str, make: Callable[[], Backend], text: str) -> None:
    """Add a controller by name."""
    _MAKERS[name] = (make, text)


def backend_names() -> dict[str, str]:
    """Controllers and what they are."""
    _load()
    return {name: text for name, (_, text) in _MAKERS.items()}


def backend(name: str) -> Backend:
    """A controller by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    _load()
    if name not in _MAKERS:
        raise unknown_name("controller", name, _MAKERS)
    return _MAKERS[name][0]()


def _load() -> None:
    """Controllers of other folders add themselves when they are imported."""
    import airworthy.pilots.agilicious  # noqa: F401
