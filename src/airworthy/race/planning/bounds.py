"""What every plan of minimum time is bound by, offline and in flight: how finely it is cut, and what vehicle and frames allow.

Source of the numbers: spec/race 5.4, where nothing else is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.core.schema import Bound, check_fields

__all__ = ["PlanBounds", "RacePlanOptions"]


@dataclass(frozen=True)
class PlanBounds:
    """Bounds of a plan, and how finely it is cut."""

    nodes: Annotated[int, Bound(4, 100)] = 24
    """On each leg. Spec/race 5.4 has 12, for plans in flight, which are solved in half the time; a Runge-Kutta step of 0.17 s
    then errs by 8 mm and 8 cm/s where the start turns, against 0.1 mm with 24."""
    power: Annotated[float, Bound(0.2, 1.0)] = 0.94
    """Largest thrust of each rotor, over what it can give: the rest is the tracker's."""
    rotor_min: Annotated[float, Bound(0.0, 10.0, "N")] = 0.15
    """Least thrust of each rotor [N]."""
    margin: Annotated[float, Bound(0.0, 5.0, "m")] = 0.4
    """Between path and edge of an opening [m]: the vehicle's 0.15 m, half the tube's 0.15 m, and what flying errs."""
    window: Annotated[float, Bound(0.0, 5.0, "m")] = 0.08
    """Least half width and half height that the margin leaves [m]."""
    turn_max: Annotated[float, Bound(1.0, 1000.0, "rad/s^2")] = 80.0
    """Largest angular acceleration of roll and pitch; half of it of yaw [rad/s^2]."""
    rate_max: Annotated[float, Bound(0.5, 100.0, "rad/s")] = 12.0
    """Largest rate of roll and pitch [rad/s]; two thirds of it of yaw."""
    height_min: Annotated[float, Bound(-1000.0, 1000.0, "m")] = 0.4
    """Lowest path [m]."""
    cone: Annotated[float, Bound(0.1, 10.0)] = 1.0
    """Near a gate the path stays within its window and this much more sideways per metre from the plane."""
    cone_nodes: Annotated[int, Bound(0, 50)] = 3
    """Nodes before and behind a gate for which that holds; without them an oblique path shaves a post."""
    iterations: Annotated[int, Bound(1, 100000)] = 500
    """Of the solver, at most."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")


@dataclass(frozen=True)
class RacePlanOptions(PlanBounds):
    """Bounds of an offline plan: those of every plan, and what a course keeps a racer off."""

    speed_max: Annotated[float, Bound(0.1, 1000.0, "m/s")] = 1000.0
    """Largest speed towards gates that may stand elsewhere yet, on the last part of the leg [m/s]; by default none."""
    cruise: Annotated[float, Bound(0.1, 1000.0, "m/s")] = 1000.0
    """Largest speed anywhere [m/s]; by default none."""
    substeps: Annotated[int, Bound(1, 20)] = 1
    """Steps of Runge and Kutta between nodes. More make a coarse plan as exact as a fine one, for less than its price: of eight
    nodes on a leg of 1.6 s that turns by 8 rad/s one step each errs by decimetres."""
    slew: Annotated[float, Bound(0.0, 1e6, "N/s")] = 0.0
    """Fastest change of each rotor's thrust from step to step, at first from hover [N/s]; 0: any. For rotors with a lag that a
    tracker cannot hide, near their limit."""
    clearance: Annotated[float, Bound(0.0, 5.0, "m")] = 0.35
    """Between path and posts, and frames of gates that a leg is not through [m]: as `margin`, and half of a frame's depth."""
    wall: Annotated[float, Bound(0.0, 5.0, "m")] = 0.2
    """Between path and the limits of the race [m]."""
    slack: Annotated[float, Bound(0.0, 1e6, "s/m")] = 0.0
    """Seconds that a metre beside a window or within a clearance costs [s/m]; 0: neither may be. For plans in flight: a gate
    that is told late may stand where its window cannot be reached."""
