"""Judge a policy for all quadrotors: with each it holds a place, and flies a tour, beside the geometric controller.

Starts, length and physics of a flight that holds a place are those that `airworthy train hover` judges by
(`airworthy.learning.gradient.evaluation`). The tour begins near its first place, nearly at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.gradient.evaluation import EVALUATION_SEED, HoverProtocol, evaluation_starts, figures, fly_hover
from airworthy.learning.gradient.flyers import GeometricController, LearntPolicy
from airworthy.learning.gradient.hover import HoverStart
from airworthy.pilots import MotorPolicy, motor_pilot, observe
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.trajectories import Limits, Trajectory, from_waypoints
from airworthy.vehicles import Vehicle, indicators, named_vehicle, vehicle_names

__all__ = ["TOUR", "FoundationProtocol", "fly_fleet", "fly_tour", "held_figures", "quadrotors", "tour"]

TOUR = ((0.0, 0.0, 0.0), (1.5, 0.0, 0.5), (1.5, 1.5, 0.0), (0.0, 1.5, 0.5), (0.0, 0.0, 0.0))
"""Places of the tour [m]: ours, a square of 1.5 m whose corners differ in height."""
_TOUR_LIMITS = Limits(speed=1.0, acceleration=1.0)
"""Ours: no faster than the flights that it learns from begin."""
_TOUR_START = HoverStart(position=0.1, velocity=0.1, tilt=0.1, rate=0.1)
"""Ours: nearly at the path's beginning, at rest."""
_END_S = 2.0
"""Ours: after its end the last place is held so long."""


@dataclass(frozen=True)
class FoundationProtocol:
    """How a policy for all quadrotors is judged."""

    flights: Annotated[int, Bound(1, 1_000_000)] = 128
    """Of each vehicle that hold a place."""
    tour_flights: Annotated[int, Bound(0, 1_000_000)] = 16
    """Of each vehicle on the tour; 0: without it."""
    within_m: Annotated[float, Bound(0.001, 100.0, "m")] = 0.1  # specification, learning by reward, 9, 15
    """A vehicle is held where 95 % of its flights, lost ones included, have less error."""
    tour_within_m: Annotated[float, Bound(0.001, 100.0, "m")] = 0.5
    """Ours: it flies the tour where 95 % of its flights are never farther from where they should be."""
    seed: int = EVALUATION_SEED
    """Of starts."""

    def __post_init__(self) -> None:
        check_fields(self, "FoundationProtocol.")

    @property
    def hover(self) -> HoverProtocol:
        """Of the flights that hold a place."""
        return HoverProtocol(flights=self.flights, seed=self.seed)


def quadrotors() -> list[Vehicle]:
    """Return those of the catalogue: every record with four rotors, none left out."""
    return [item for name in vehicle_names() if (item := named_vehicle(name)).rotor_count == 4]


@cache
def tour() -> Trajectory:
    """Return the path of the tour: rest to rest, heading along world x."""
    return from_waypoints(TOUR, _TOUR_LIMITS, yaw=0.0)


def fly_fleet(
    policy: MotorPolicy, vehicles: Iterable[Vehicle], protocol: FoundationProtocol, *, beside: bool = False
) -> Iterator[dict[str, Any]]:
    """Fly each vehicle with the policy; yields a row of figures for each as soon as it has flown.

    Args:
        policy: For all quadrotors.
        vehicles: Each flies by itself.
        protocol: How they are judged.
        beside: Fly the geometric controller from the same starts, too.
    """
    for vehicle in vehicles:
        row: dict[str, Any] = {"vehicle": vehicle.name, **traits(vehicle)}
        try:
            own = policy.fitted(vehicle)
        except AirworthyError as refused:
            yield row | {"refused": str(refused), "held": False}
            continue
        row |= held_figures(own, vehicle, protocol)
        if protocol.tour_flights:
            row |= fly_tour(vehicle, protocol, own)
        if beside:
            row["geometric"] = _known(vehicle, protocol)
        yield row


def traits(vehicle: Vehicle) -> dict[str, float]:
    """Return what tells vehicles apart: mass [kg], and full thrust over weight."""
    return {"mass_kg": vehicle.mass, "thrust_to_weight": indicators(vehicle).thrust_to_weight}


def held_figures(own: MotorPolicy, vehicle: Vehicle, protocol: FoundationProtocol) -> dict[str, Any]:
    """Return figures of flights that hold a place, and whether the vehicle is held.

    Args:
        own: The policy, fitted to the vehicle.
        vehicle: That flies.
        protocol: How it is judged.
    """
    c = own.contract
    low, high = np.array(c.limits).T
    flyer = LearntPolicy(list(own.weights), c.history, np.array(c.hover), (low, high), c.rate, c.action)
    found = figures(fly_hover(vehicle, flyer, protocol.hover, HoverStart(), protocol.flights))
    return found | {"held": _is_held(found, protocol)}


def _is_held(found: dict[str, Any], protocol: FoundationProtocol) -> bool:
    return found["p95_error_m"] is not None and found["p95_error_m"] <= protocol.within_m


def _known(vehicle: Vehicle, protocol: FoundationProtocol) -> dict[str, Any]:
    """Figures of the geometric controller from the same starts; the reason where it does not fly this vehicle."""
    flyer = GeometricController(100.0)
    try:
        found = figures(fly_hover(vehicle, flyer, protocol.hover, HoverStart(), protocol.flights))
        found |= {"held": _is_held(found, protocol)}
        return found | (fly_tour(vehicle, protocol) if protocol.tour_flights else {})
    except AirworthyError as refused:
        return {"refused": str(refused), "held": False}


# ---- the tour --------------------------------------------------------------------------------------------------------


def _commands(simulator: Simulator, own: MotorPolicy | None) -> Callable[[float], ArrayFloat]:
    """Return what gives commands at a time [s]: rotor states of a policy, or numbers of the level `tracking`."""
    if own is not None:
        pilot = motor_pilot(own, simulator, tour())
        return lambda time: pilot.command(observe(simulator, pilot.observes))

    def law(time: float) -> ArrayFloat:
        flat = tour().sample(min(time, tour().duration))
        # Heading 0, which does not turn.
        return np.concatenate([flat.position, flat.velocity, flat.acceleration, flat.jerk, np.zeros(2)])

    return law


def fly_tour(vehicle: Vehicle, protocol: FoundationProtocol, own: MotorPolicy | None = None) -> dict[str, Any]:
    """Return figures of the tour: quantiles of the mean and of the largest distance of flights [m], and whether it is flown.

    Args:
        vehicle: That flies.
        protocol: How it is judged.
        own: The policy, fitted to the vehicle; None: the geometric controller.
    """
    level = "tracking" if own is None else "rotor_speed"
    config = SimulatorConfig(level=level, control_rate=100.0, physics_rate=protocol.hover.physics_rate)
    simulator = Simulator(vehicle, config, protocol.tour_flights, seed=protocol.seed)
    start = evaluation_starts(vehicle, _TOUR_START, protocol.hover, protocol.tour_flights).T
    # Nearly the heading that is asked for: `evaluation_starts` draws any.
    attitude = np.tile([0.0, 0.0, 0.0, 1.0], (len(start), 1))
    simulator.reset(
        position=start[:, :3], velocity=start[:, 3:6], attitude=attitude, rate=start[:, 10:13], rotor_speed=start[:, 13:]
    )
    commands, path, period = _commands(simulator, own), tour(), 1.0 / config.control_rate
    off = []
    for tick in range(round((path.duration + _END_S) / period)):
        simulator.step(commands(tick * period))
        wanted = path.sample(min((tick + 1) * period, path.duration)).position
        away = np.linalg.norm(np.asarray(simulator.position, float) - wanted, axis=1)
        off.append(np.where(simulator.diverged, np.inf, away))
    distance = np.array(off)
    most = distance.max(axis=0)
    with np.errstate(invalid="ignore"):
        mean = np.where(np.isfinite(most), distance.mean(axis=0), np.inf)
    quantiles = {
        "tour_median_error_m": _quantile(mean, 0.5),
        "tour_p95_largest_m": _quantile(most, 0.95),
    }
    worst = quantiles["tour_p95_largest_m"]
    flown = worst is not None and worst <= protocol.tour_within_m
    return {"tour_flights": len(most), **quantiles, "tour_flown": flown}


def _quantile(values: Array, share: float) -> float | None:
    found = float(np.quantile(values, share, method="linear" if np.isfinite(values).all() else "higher"))
    return found if np.isfinite(found) else None
