"""Judge a policy that holds a place: flights in the simulator, whose physics it never learnt with, beside known controllers.

The same starts for everybody, of a key that no training has (specification, learning by reward, section 8); then the same
under what no training said: late commands, other vehicles, wind, noise, other rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, normals, uniforms
from airworthy.core.schema import Bound, check_fields
from airworthy.evaluation import wilson_interval
from airworthy.learning.gradient.flyers import Flyer, LearntPolicy
from airworthy.learning.gradient.hover import START_UNIFORMS, HoverStart, hover_start
from airworthy.learning.verdicts import JudgedFlights, beside_controller
from airworthy.simulation import Randomization, Simulator, SimulatorConfig, Wind
from airworthy.vehicles import Vehicle, hover_speed

__all__ = [
    "AS_IT_IS",
    "HoverCondition",
    "HoverFlights",
    "HoverProtocol",
    "compare",
    "conditions",
    "evaluation_starts",
    "figures",
    "fly_hover",
    "has_drag",
    "robustness",
]

# Source: specification, learning by reward, section 8: key (seed 7919).
EVALUATION_SEED = 7919
"""Of the starts on which policies are judged, and nothing is chosen."""
_NOISE = (0.001, 0.002, 0.001, 0.002)
"""Standard deviation of position [m], velocity [m/s], attitude [rad], body rate [rad/s] as observed: those of L2F's training
(specification, section 3.3)."""
_LEAST_THRUST_TO_WEIGHT = 1.2  # specification, section 10: weaker draws can hardly hover; the same as in training
_SETTLED = 0.1
"""Ours: a flight has settled within this share of the farthest that it was away, because flights begin with a speed, too."""


@dataclass(frozen=True)
class HoverProtocol:
    """How policies are judged."""

    flights: Annotated[int, Bound(1, 1_000_000)] = 1024
    """As they are; also of the geometric controller."""
    grid_flights: Annotated[int, Bound(1, 1_000_000)] = 256
    """Under each condition of the robustness grid, the first of the same starts."""
    mpc_flights: Annotated[int, Bound(0, 1_000_000)] = 64
    """Of the MPC, which takes more time, the first of the same starts; 0: without it."""
    film_flights: Annotated[int, Bound(0, 32)] = 9
    """On film, the first of the same starts; 0: no film."""
    flight_s: Annotated[float, Bound(0.1, 1e3, "s")] = 5.0  # this, the end and reach: the specification's trial, 6.3
    """Length of a flight."""
    steady_s: Annotated[float, Bound(0.01, 1e3, "s")] = 2.0
    """Its end, over which the error is the mean distance."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 3.0
    """A flight that was ever farther off is lost."""
    physics_rate: Annotated[float, Bound(100.0, 1e5, "Hz")] = 1000.0
    """Steps of the equations per second; in training they are as many as decisions, or few more."""
    seed: int = EVALUATION_SEED
    """Of starts and of whatever is random."""

    def __post_init__(self) -> None:
        check_fields(self, "HoverProtocol.")
        if self.steady_s > self.flight_s:
            raise AirworthyError(f"The error is taken over {self.steady_s:g} s of flights of {self.flight_s:g} s.")


@dataclass(frozen=True)
class HoverCondition:
    """What differs from the vehicle as it is."""

    kind: str = "as it is"
    value: str = ""
    delay_s: Annotated[float, Bound(0.0, 1.0, "s")] = 0.0
    """Commands come later [s]; before the first the vehicle is commanded to hover."""
    mass: Annotated[float, Bound(0.01, 100.0)] = 1.0
    """Factor; inertia follows."""
    thrust: Annotated[float, Bound(0.01, 100.0)] = 1.0
    """Factor of thrust and torque of all rotors."""
    lag: Annotated[float, Bound(0.01, 100.0)] = 1.0
    """Factor of the rotors' time constants."""
    wind: Annotated[float, Bound(-100.0, 100.0, "m/s")] = 0.0
    """Along world x [m/s]."""
    noise: Annotated[float, Bound(0.0, 1000.0)] = 0.0
    """Multiple of the noise of observations."""
    rate: Annotated[float, Bound(0.0, 1000.0, "Hz")] = 0.0
    """Decisions per second [Hz]; 0: as in training."""
    drawn: Randomization = field(default_factory=Randomization)
    """How the vehicles of flights differ; each has a thrust-to-weight of at least `least_thrust_to_weight`."""

    def __post_init__(self) -> None:
        check_fields(self, "HoverCondition.")

    @property
    def of_vehicle(self) -> bool:
        """Whether it is vehicle and air that differ, not what lies between them and a policy."""
        return not (self.delay_s or self.noise or self.rate)

    @property
    def factors(self) -> dict[str, float]:
        """By parameter rows of the simulator."""
        named = {"mass": self.mass, "inertia": self.mass, "rotor_thrust": self.thrust, "rotor_torque": self.thrust}
        named |= {f"rotor_{way}": 1.0 / self.lag for way in ("rise", "fall")}
        return {name: factor for name, factor in named.items() if factor != 1.0}


AS_IT_IS = HoverCondition()
DRAWN = Randomization(mass=0.2, inertia=0.3, thrust=0.1, lag=0.3)
"""Of the acceptance list of the specification (section 9, 9), as all vehicles are drawn from it alike."""


def conditions(winds: bool = True) -> list[HoverCondition]:
    """Return the robustness grid of the specification (section 8).

    Args:
        winds: Whether wind does anything to the vehicle.
    """
    grid = [HoverCondition("command delay", f"{1e3 * t:g} ms", delay_s=t) for t in (0.0, 0.01, 0.02, 0.03)]
    grid += [HoverCondition("mass", f"{100 * x:+g} %", mass=1.0 + x) for x in (-0.2, 0.2)]
    grid += [HoverCondition("thrust", f"{100 * x:+g} %", thrust=1.0 + x) for x in (-0.1, 0.1)]
    grid += [HoverCondition("rotor lag", f"{100 * x:+g} %", lag=1.0 + x) for x in (-0.3, 0.3)]
    grid += [HoverCondition("wind", f"{w:g} m/s", wind=w) for w in (1.0, 3.0, 5.0) if winds]
    grid += [HoverCondition("observation noise", f"x {k:g}", noise=k) for k in (1.0, 3.0, 5.0)]
    grid += [HoverCondition("rate", f"{f:g} Hz", rate=f) for f in (50.0, 200.0, 500.0)]
    # Section 8 changes one thing at a time; this is item 9 of section 9, where all change together.
    every = [HoverCondition("drawn vehicles", f"{1e3 * t:g} ms late", delay_s=t, drawn=DRAWN) for t in (0.0, 0.01, 0.02)]
    return [*grid, *every]


def has_drag(vehicle: Vehicle) -> bool:
    """Return whether wind does anything to a vehicle."""
    trial = Simulator(vehicle, SimulatorConfig(), 1)
    names = (
        "drag_linear",
        "drag_norm",
        "drag_axis",
        "drag_rotor",
        "rotor_hub_drag",
        "rotor_flapping",
        "rotor_translational_lift",
    )
    return any(np.any(trial.parameter(name) != 0.0) for name in names)


@dataclass(frozen=True, eq=False)
class HoverFlights:
    """What was measured of flights, (flights,) each unless said otherwise."""

    kept: ArrayBool
    """Never beyond reach, and in the numbers all the time."""
    error: Array
    """Mean distance over the end [m]."""
    settling: Array
    """When the distance was at last within a tenth of the farthest [s]; infinite: never."""
    overshoot: Array
    """Farthest beyond the target, seen from the start [m]."""
    energy: Array
    """Sum of thrust^1.5 over rotors, mean over the flight, as a multiple of hover's."""
    jitter: Array
    """Mean change of a rotor's command from one sample at the policy's rate to the next, as a share of its range."""
    tilt: Array
    """Largest angle between body z and world z [rad]."""
    thrust_to_weight: float
    """Of the vehicle under the condition; the least, where vehicles are drawn."""


def evaluation_starts(vehicle: Vehicle, spread: HoverStart, protocol: HoverProtocol, count: int) -> Array:
    """Return the first states of the protocol's flights, (13 + rotors, count).

    A training draws its starts from episode 1 on, these are of episode 0: whatever the seeds, none is seen twice.

    Args:
        vehicle: That flies.
        spread: Half widths of the starts.
        protocol: With the seed of the starts.
        count: Flights.
    """
    u = uniforms(flight_key(protocol.seed, np.arange(count), 0), 0, Stream.RESET, START_UNIFORMS).T
    lower, upper = (np.array([getattr(rotor, f"speed_{end}") for rotor in vehicle.rotors]) for end in ("min", "max"))
    return hover_start(u, np.asarray(hover_speed(vehicle)), lower, upper, spread)


def fly_hover(
    vehicle: Vehicle,
    flyer: Flyer,
    protocol: HoverProtocol,
    spread: HoverStart,
    count: int,
    condition: HoverCondition = AS_IT_IS,
) -> HoverFlights:
    """Fly the first starts of the protocol and measure them.

    Args:
        vehicle: What flies.
        flyer: Who decides.
        protocol: How it is judged.
        spread: Of starts.
        count: Flights.
        condition: What differs.

    Raises:
        AirworthyError: The flyer cannot fly this vehicle, or not under this condition.
    """
    if not (condition.of_vehicle or flyer.outside):
        raise AirworthyError(
            f"The {flyer.name} decides inside the simulator's step, on its true state: {condition.kind} is not its."
        )
    rate = condition.rate or flyer.rate
    config = SimulatorConfig(
        level=flyer.level,
        control_rate=rate,
        physics_rate=protocol.physics_rate,
        wind=Wind(mean=(condition.wind, 0.0, 0.0)),
        randomization=condition.drawn,
    )
    simulator = Simulator(vehicle, config, count, seed=protocol.seed)
    for name, factor in condition.factors.items():
        simulator.set_parameter(name, simulator.parameter(name) * factor)
    start = evaluation_starts(vehicle, spread, protocol, count).T
    simulator.reset(
        position=start[:, :3], velocity=start[:, 3:6], attitude=start[:, 6:10], rate=start[:, 10:13], rotor_speed=start[:, 13:]
    )
    # Behind the reset, which is what draws the vehicles.
    if condition.drawn.any:
        _keep_thrust(simulator)
    flyer.begin(simulator)
    late = _Late(simulator, condition.delay_s, flyer.hover) if condition.delay_s else None
    seen = _Measured(simulator, protocol, rate)
    for tick in range(round(protocol.flight_s * rate)):
        command = flyer.command(simulator, _noise(protocol, condition, tick, count))
        if late is None:
            simulator.step(command)
        else:
            late.step(command)
        seen.add()
    return seen.result()


def _keep_thrust(simulator: Simulator) -> None:
    """Raise the thrust of drawn vehicles that could hardly hover, as a training does (specification, section 10)."""
    raised = np.maximum(1.0, _LEAST_THRUST_TO_WEIGHT / _thrust_to_weight(simulator))
    for name in ("rotor_thrust", "rotor_torque"):
        value = simulator.parameter(name)
        simulator.set_parameter(name, value * raised.reshape(-1, *(1,) * (value.ndim - 1)))


def _thrust_to_weight(simulator: Simulator) -> Array:
    n = simulator.rotor_count
    full = np.asarray(simulator.parameter("rotor_max"), float)[:, :n]
    thrust = _thrusts(simulator, full).sum(axis=1)
    return np.asarray(thrust / (simulator.parameter("mass") * simulator.parameter("gravity")))


def _thrusts(simulator: Simulator, rotors: Array) -> Array:
    c = np.asarray(simulator.parameter("rotor_thrust"), float).reshape(simulator.env_count, -1, 3)[:, : simulator.rotor_count]
    return c[..., 0] + rotors * (c[..., 1] + c[..., 2] * np.abs(rotors))


class _Late:
    """Steps a simulator with commands that act later; what acts before the first is hover's, as in training."""

    def __init__(self, simulator: Simulator, delay_s: float, hover: Array):
        config = simulator.config
        steps, period = round(delay_s * config.physics_rate), config.physics_rate / config.control_rate
        self._simulator, self._rest = simulator, round(steps % period)
        self._waiting = [np.broadcast_to(hover, (simulator.env_count, len(hover)))] * int(steps // period)

    def step(self, command: Array) -> None:
        self._waiting.append(command)
        # Whole periods wait in the list; the simulator holds back what is left of one.
        self._simulator.set_command(self._waiting.pop(0), self._rest or None)
        self._simulator.step()


def _noise(protocol: HoverProtocol, condition: HoverCondition, tick: int, count: int) -> Array | None:
    """Return what is added to position, velocity, attitude as a small rotation, and body rate, (12, count)."""
    if not condition.noise:
        return None
    # Of flight and decision alone: every policy is shown the same noise.
    drawn = normals(flight_key(protocol.seed, np.arange(count)), tick, Stream.SENSED, 12).T
    return np.repeat(np.array(_NOISE), 3)[:, None] * condition.noise * drawn


class _Measured:
    """Gathers what flights are judged by, a sample per decision."""

    def __init__(self, simulator: Simulator, protocol: HoverProtocol, rate: float):
        self._simulator, self._protocol, self._rate = simulator, protocol, rate
        n = simulator.rotor_count
        self._range = np.asarray(simulator.parameter("rotor_max") - simulator.parameter("rotor_min"), float)[:, :n]
        first = np.array(simulator.position, float)
        # A flight that begins at its target has no far side: its overshoot stays 0.
        self._away = first / np.maximum(np.linalg.norm(first, axis=1), 1e-9)[:, None]
        self._distance = [np.linalg.norm(first, axis=1)]
        self._beyond, self._tilt, self._energy, self._change = (np.zeros(simulator.env_count) for _ in range(4))
        self._command = np.array(simulator.rotor_speed, float)
        weight = simulator.parameter("mass") * simulator.parameter("gravity")
        self._hover = n * (weight / n) ** 1.5
        self._ratio = float(_thrust_to_weight(simulator).min())

    def add(self) -> None:
        s = self._simulator
        position, attitude = np.array(s.position, float), np.array(s.attitude, float)
        self._distance.append(np.linalg.norm(position, axis=1))
        np.maximum(self._beyond, -(position * self._away).sum(axis=1), out=self._beyond)
        up = 1.0 - 2.0 * (attitude[:, 0] ** 2 + attitude[:, 1] ** 2)
        np.maximum(self._tilt, np.arccos(np.clip(up, -1.0, 1.0)), out=self._tilt)
        # By momentum theory a rotor's induced power goes with thrust^1.5 (specification, section 8).
        self._energy += (np.maximum(_thrusts(s, np.array(s.rotor_speed, float)), 0.0) ** 1.5).sum(axis=1)
        command = np.array(s.rotors("rotor_command"), float)
        self._change += (np.abs(command - self._command) / self._range).mean(axis=1)
        self._command = command

    def result(self) -> HoverFlights:
        distance, rate = np.array(self._distance), self._rate
        ticks = len(distance) - 1
        far = distance.max(axis=0)
        kept = (far <= self._protocol.reach_m) & ~self._simulator.diverged
        outside = distance > _SETTLED * far
        last = ticks - np.argmax(outside[::-1], axis=0)
        settling = np.where(outside[-1], np.inf, (last + 1) / rate)
        error = distance[-max(1, round(self._protocol.steady_s * rate)) :].mean(axis=0)
        energy, jitter = self._energy / (ticks * self._hover), self._change / ticks
        return HoverFlights(kept, error, settling, self._beyond, energy, jitter, self._tilt, self._ratio)


def figures(flights: HoverFlights) -> dict[str, Any]:
    """Return the figures of flights, as `summary.json` has them.

    Rates with their Wilson interval of 95 %. Distances are quantiles over all flights, a lost one being infinitely far (None
    where the quantile is one of those); the others are over the flights that were kept.
    """
    kept, count = flights.kept, len(flights.kept)
    rate = wilson_interval(int(kept.sum()), count)
    error = np.where(kept, flights.error, np.inf)
    settled = np.where(kept, flights.settling, np.inf)

    def of_kept(values: Array, of: Any) -> float | None:
        return _finite(of(values[kept])) if kept.any() else None

    return {
        "flights": count,
        "kept": int(kept.sum()),
        "kept_percent": 100.0 * rate.value,
        "kept_interval_percent": [100.0 * rate.low, 100.0 * rate.high],
        "median_error_m": _finite(_quantile(error, 0.5)),
        "p95_error_m": _finite(_quantile(error, 0.95)),
        "median_settling_s": _finite(_quantile(settled, 0.5)),
        "p95_settling_s": _finite(_quantile(settled, 0.95)),
        "median_overshoot_m": of_kept(flights.overshoot, np.median),
        "energy_of_hover": of_kept(flights.energy, np.mean),
        "action_jitter": of_kept(flights.jitter, np.mean),
        "worst_tilt_deg": of_kept(np.degrees(flights.tilt), np.max),
        "thrust_to_weight": flights.thrust_to_weight,
    }


def _quantile(values: Array, share: float) -> float:
    """Of values that may be infinite: the upper of the two beside it, since between them there is no number."""
    return float(np.quantile(values, share, method="linear" if np.isfinite(values).all() else "higher"))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def compare(learnt: HoverFlights, other: HoverFlights, name: str) -> dict[str, Any]:
    """Return who holds the place better, as `beside_controller` does: by flights kept, and by the error where those are tied.

    Args:
        learnt: Flights of the policy.
        other: Of the controller beside it, from the same starts.
        name: Of that.
    """
    mine, theirs = (JudgedFlights(flights.kept, flights.kept, flights.error) for flights in (learnt, other))
    return beside_controller(mine, theirs, name, "flights kept")


def robustness(
    vehicle: Vehicle,
    learnt: LearntPolicy,
    known: Flyer | None,
    protocol: HoverProtocol,
    spread: HoverStart,
    grid: Sequence[HoverCondition],
) -> list[dict[str, Any]]:
    """Fly a grid of conditions.

    Args:
        vehicle: What flies.
        learnt: Policy.
        known: A controller to set beside it, under conditions that concern it; None: none.
        protocol: How they are judged.
        spread: Of starts.
        grid: Conditions.

    Returns:
        A row each: kind, value, and figures of "learnt" and "known".
    """
    rows = []
    for item in grid:
        row: dict[str, Any] = {"kind": item.kind, "value": item.value}
        row["learnt"] = figures(fly_hover(vehicle, learnt, protocol, spread, protocol.grid_flights, item))
        row["known"] = None
        if known is not None and item.of_vehicle:
            row["known"] = figures(fly_hover(vehicle, known, protocol, spread, protocol.grid_flights, item))
        rows.append(row)
    return rows
