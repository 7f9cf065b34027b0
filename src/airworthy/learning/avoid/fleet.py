"""Flights of a fleet: each with a vehicle of one half of the benchmark's 36, a little changed, commanded by throttle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airworthy.core.arrays import Array, ArrayAny, ArrayIndex
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.learning.avoid.flights import AvoidFlights
from airworthy.learning.avoid.places import Places
from airworthy.pilots.avoid_policy.fleet import (
    FEATURES,
    HISTORY,
    HISTORY_ROW,
    feature_rows,
    given_by_throttle,
    history_row,
    ratio_of,
)
from airworthy.pilots.avoid_policy.sight import RATE
from airworthy.vehicles import indicators, vehicle, vehicle_names

__all__ = ["FLEETS", "FLEET_MARGIN", "SPREAD", "FleetFlights", "FleetVehicles", "fleet_names", "thrust_lag", "unseen"]

FLEETS = ("virtual", "real", "all")
"""Halves of the navigation benchmark's fleet (specification flyingtrust, section 3), and both."""
_PREFIXES = {"virtual": ("virt_",), "real": ("real_",), "all": ("virt_", "real_")}
SPREAD = 0.15
"""Ours: standard deviation of the logarithm by which a flight's indicators differ from its vehicle's."""
_LEAST_RATIO = 1.25
"""Ours: drawn vehicles with less have it; what can hardly hover teaches nothing."""
FLEET_MARGIN = 0.4
"""That a policy is told in flight [m]: the benchmark's body of 0.3 m and a decimetre."""
_MARGINS = (0.3, 0.45)
"""That flights of training are told [m]."""
# Of the response to an acceleration in `Simulator` with the vehicle's own gains, measured over the 36; see `thrust_lag`.
_LAG_S, _LAG_PER_MOTOR, _ANGLE = 0.10, 1.8, 0.42


def fleet_names(fleet: str) -> list[str]:
    """Return names of the vehicles of a fleet.

    Raises:
        UnknownNameError: There is no such fleet.
    """
    if fleet not in FLEETS:
        raise unknown_name("fleet", fleet, FLEETS)
    return [name for name in vehicle_names() if name.startswith(_PREFIXES[fleet])]


def unseen(fleet: str) -> str:
    """Return the fleet that a policy of a fleet is judged on: the other half, or all where it learnt on all."""
    return {"virtual": "real", "real": "virtual"}.get(fleet, fleet)


def thrust_lag(thrust_to_weight: Array, alpha_xy: Array, motor: Array) -> Array:
    """Return time constants (n,) [s] with which vehicles follow an acceleration that is asked for.

    Of two the longer: that of motors and loops, and the time in which it tilts by some 0.4 rad and is at rest there,
    2 sqrt(angle / alpha), with the share of the roll acceleration that is left at hover. Measured in `Simulator` at steps of 4
    and 8 m/s^2: 0.13 to 0.16 s for all but the weakest, 0.22 to 0.28 s for them.

    Args:
        thrust_to_weight: (n,)
        alpha_xy: Largest roll acceleration [rad/s^2], (n,).
        motor: Mean time constant of its rotors [s], (n,).
    """
    hover = 1.0 / thrust_to_weight
    left = 2.0 * np.minimum(hover, 1.0 - hover) * alpha_xy
    return np.asarray(np.maximum(_LAG_S + _LAG_PER_MOTOR * motor, 2.0 * np.sqrt(_ANGLE / left)))


@dataclass(frozen=True, eq=False)
class FleetVehicles:
    """What is drawn from, (k,) each."""

    thrust_to_weight: Array
    alpha_xy: Array
    """[rad/s^2]"""
    alpha_z: Array
    """[rad/s^2]"""
    motor: Array
    """Mean time constant of the rotors [s]."""

    @classmethod
    @cache
    def of(cls, fleet: str) -> FleetVehicles:
        """Return those of a fleet.

        Raises:
            UnknownNameError: There is no such fleet.
        """
        records = [vehicle(name) for name in fleet_names(fleet)]
        found = [indicators(item) for item in records]
        return cls(
            np.array([item.thrust_to_weight for item in found]),
            np.array([item.alpha_xy_max for item in found]),
            np.array([item.alpha_z_max for item in found]),
            np.array([_motor_lag(item) for item in records]),
        )

    @property
    def features(self) -> Array:
        """What is told of each, (k, 3)."""
        return feature_rows(self.thrust_to_weight, self.alpha_xy, self.alpha_z)

    def drawn(self, count: int, rng: np.random.Generator) -> FleetVehicles:
        """Return so many vehicles like these, each a little changed."""
        of = rng.integers(0, len(self.motor), count)
        factor = np.exp(SPREAD * rng.normal(size=(3, count)))
        ratio = np.maximum(self.thrust_to_weight[of] * factor[0], _LEAST_RATIO)
        return FleetVehicles(ratio, self.alpha_xy[of] * factor[1], self.alpha_z[of] * factor[2], self.motor[of])

    @property
    def told_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Least and largest features of what is drawn, but for one in twenty: flights are told nothing beyond."""
        spare = 2.0 * SPREAD * np.array([1.0, 0.5, 0.5])
        low, high = self.features.min(0) - spare, self.features.max(0) + spare
        return tuple(float(x) for x in low), tuple(float(x) for x in high)


def _motor_lag(record: Any) -> float:
    # Rotors of the fleet are lags of first order: a rate each way, and no square.
    return float(np.mean([0.5 / rotor.response.rise[0] + 0.5 / rotor.response.fall[0] for rotor in record.rotors]))


class FleetFlights(AvoidFlights):
    """`AvoidFlights` whose vehicles are drawn from a fleet.

    Args:
        count: At once.
        places: Where.
        hidden: Width of the network's memory.
        fastest: Largest top speed but half a metre per second [m/s].
        fleet: "virtual", "real" or "all".
        condition: What the policy knows: "none", "told", or "identified" with an `identifier`.
        blind: Blank all images.
        threads: Most threads of the kernel.
    """

    margins = _MARGINS

    def __init__(
        self,
        count: int,
        places: Places,
        hidden: int,
        fastest: float,
        fleet: str,
        condition: str,
        blind: bool = False,
        threads: int | None = None,
    ):
        super().__init__(count, places, hidden, fastest, blind, threads)
        self.fleet, self.condition = FleetVehicles.of(fleet), condition
        low, high = self.fleet.told_bounds
        self._low, self._high = torch.tensor(low), torch.tensor(high)
        self.ratio, self.features = torch.ones(count, 1), torch.zeros(count, len(FEATURES))
        """Thrust to weight, and what would be told, of each flight's vehicle."""
        self.history = torch.zeros(count, HISTORY * HISTORY_ROW)
        self.throttle, self.felt = torch.zeros(count, 3), torch.zeros(count, 3)
        """Of the decision before: what was sent, and the velocity that was known, world."""
        self.begun = torch.zeros(count, 1)
        """1 behind a flight's first decision."""
        self.identifier: Any = None
        """Makes features of a history; None: what is told is the truth."""
        self.believed = torch.zeros(count, len(FEATURES))
        """What the policy reckoned with at its last decision."""

    def _draw_bodies(self, ids: ArrayIndex, rng: np.random.Generator) -> None:
        super()._draw_bodies(ids, rng)
        drawn = self.fleet.drawn(len(ids), rng)
        told = feature_rows(drawn.thrust_to_weight, drawn.alpha_xy, drawn.alpha_z)
        lag = 1.0 / thrust_lag(drawn.thrust_to_weight, drawn.alpha_xy, drawn.motor)
        self.body.lag[ids] = torch.as_tensor(lag[:, None], dtype=torch.float32)
        self._put("ratio", ids, drawn.thrust_to_weight[:, None])
        self._put("features", ids, told)
        for name in ("history", "throttle", "felt", "begun"):
            getattr(self, name)[ids] = 0

    def _known(self, felt: Tensor, up: Tensor) -> list[Tensor]:
        """Features that the policy is given, (env, 3), or nothing.

        Args:
            felt: Velocity as it is known, heading frame [m/s], (env, 3).
            up: Of the body, heading frame, (env, 3).
        """
        world = self._turned(felt, back=True)
        change = self._turned(world - self.felt) * (RATE * self.begun)
        row = history_row(self._turned(self.throttle), change, up, torch)
        self.history = torch.cat([self.history[:, HISTORY_ROW:], row], 1).detach()
        self.felt, self.begun = world.detach(), torch.ones_like(self.begun)
        if self.condition == "none":
            return []
        # Decoded is by what is believed; the network is told nothing beyond what is drawn.
        self.believed = self.features if self.identifier is None else self.identifier(self.history).detach()
        return [self.believed.clamp(self._low, self._high)]

    def _acting(self, asked: Tensor, noise: Tensor) -> Tensor:
        # A vehicle that nobody knows is taken for the middle one, whose features are 0.
        features = torch.zeros_like(self.features) if self.condition == "none" else self.believed
        given, throttle = given_by_throttle(asked, ratio_of(features, torch), self.ratio, torch)
        self.throttle = throttle.detach()
        return given * (1.0 + noise)

    def arrays(self) -> dict[str, ArrayAny]:
        """Return everything that the next decision depends on, by name."""
        own = {name: getattr(self, name).numpy() for name in _OWN}
        return super().arrays() | {f"fleet.{name}": np.array(a) for name, a in own.items()}

    def restore(self, arrays: Any) -> None:
        """Take what `arrays` gave.

        Raises:
            AirworthyError: They are of flights without a fleet.
        """
        super().restore(arrays)
        for name in _OWN:
            if f"fleet.{name}" not in arrays:
                raise AirworthyError("The checkpoint is of flights without a fleet; begin the training in another folder.")
            setattr(self, name, torch.from_numpy(np.array(arrays[f"fleet.{name}"])))


_OWN = ("ratio", "features", "history", "throttle", "felt", "begun")
