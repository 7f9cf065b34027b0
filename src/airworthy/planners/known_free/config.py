"""Settings of the planner that flies in known free space, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields, check_signs
from airworthy.planners.common.interface import MapSettings

__all__ = ["KnownFreeSettings", "KnownFreeState", "RouteSettings"]


class KnownFreeState(IntEnum):
    """What a flight is about."""

    WAITING = 0
    """No image yet, or at the goal."""
    FLYING = 1
    """On a certified plan."""
    BLOCKED = 2
    """At rest before what it does not know, or what is in the way."""
    SEARCHING = 3
    """No route is left."""


# Ours: one hit makes a cell occupied, and about eight images that see through it make it free again.
_MAPS = MapSettings(
    margin=1, hit=0.98, miss=0.4, least=0.12, most=0.9, occupied=0.8, ray_min=0.1, ray_max=4.9, inflation=0.0, floor=True
)


@dataclass(frozen=True)
class RouteSettings:
    """What a metre costs on the way to the goal, as a multiple of one in the open, all ours."""

    near: float = 2.0
    """Within `near_radius` of something."""
    wide: float = 1.25
    """Within `wide_radius` of something."""
    partly: float = 2.5
    """Where only part of a node has room for the body."""
    unknown: float = 1.05
    """Not seen yet."""
    column: float = 8.0
    """Not seen yet, above or below something that was: most things stand upright."""
    blind: float = 2.0
    """Added where it is not seen yet within `blind_radius`: a camera that sees 29 degrees up and down shows the upper and lower
    edges of a body of 0.31 m only from 0.56 m on, and those of one that climbs by 27 degrees from farther."""
    escape: float = 10.0
    """Nearer to something than the body allows, around the start alone."""
    weight: float = 1.25
    """Of the estimate of what is left: so much more than the cheapest a route may cost, and is found much sooner."""
    near_radius: float = 0.6
    """[m]"""
    wide_radius: float = 1.0
    """[m]"""
    escape_radius: float = 0.6
    """[m]"""
    blind_radius: float = 1.2
    """[m]"""
    loyalty: float = 8.0
    """By so much a route elsewhere must be shorter than the one that is flown [m in the open]: who turns round for every guess
    about what nobody has seen flies all of them."""
    expansions: int = 1_000_000
    """Nodes at most."""

    def __post_init__(self) -> None:
        check_fields(self, "RouteSettings.")
        check_signs(self, "A route's")


_MAY_BE_ZERO = ("spare", "spare_per_speed", "spare_free_speed", "spare_most", "height_spare", "lead", "patience", "route_every")


@dataclass(frozen=True)
class KnownFreeSettings:
    """Numbers of the planner, all ours where no source is named."""

    maps: MapSettings = field(default_factory=lambda: _MAPS)
    """Of the local maps that fill the memory."""
    route: RouteSettings = field(default_factory=RouteSettings)
    """Of the way to the goal."""
    body: float = 0.3
    """Radius of what collides [m]."""
    spare: float = 0.01
    """Kept from what is occupied beyond the body, at rest [m]."""
    spare_per_speed: float = 0.05
    """More of it for each m/s beyond `spare_free_speed` [s]."""
    spare_free_speed: float = 0.7
    """[m/s]"""
    spare_most: float = 0.2
    """[m]"""
    seen_at_start: float = 0.9
    """Radius around the start that is taken as free: the vehicle has come to rest in it [m]."""
    height_spare: float = 0.12
    """Kept from floor and ceiling beyond the body [m]."""
    speed: float = 3.8
    """Fastest [m/s]."""
    acceleration: float = 6.0
    """Most, whatever vehicle and mission allow [m/s^2]: a camera that looks ahead is to go on seeing where it flies to."""
    jerk: float = 60.0
    """Most [m/s^3]."""
    horizon: float = 6.0
    """How far a route is looked along [m]."""
    lead: float = 0.03
    """A plan begins so long after the odometry that it was made from, beside its compute [s]."""
    look_ahead: float = 2.5
    """The camera looks to where the route is so far ahead, at most [m]."""
    route_every: float = 0.5
    """Time between two searches of a route that is still good [s]."""
    sight: float = 0.66
    """Half of the width of what the camera sees [rad]; the benchmark's has 0.69. Of things that move nothing beyond it is
    believed to be where it was seen last."""
    patience: float = 0.5
    """At rest, looking at what stays unknown, so long until it is taken as blocked [s]."""
    look_back: bool = True
    """Going back, look along the way where that is not known to be free, instead of to what could not be seen: a trail of
    points cuts the corners of what was seen, and without it a flight may stand before one until its time is over."""

    def __post_init__(self) -> None:
        check_fields(self, "KnownFreeSettings.")
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, float) and not (value > 0.0 or (value == 0.0 and item.name in _MAY_BE_ZERO)):
                least = "at least" if item.name in _MAY_BE_ZERO else "more than"
                raise AirworthyError(f"This planner's {item.name} is {value!r}; expected {least} 0.")
