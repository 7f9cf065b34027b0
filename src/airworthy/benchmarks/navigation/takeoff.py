"""From the ground to the start: the part of every flight before its goal is issued, the same for all pilots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import Flight
from airworthy.benchmarks.navigation.missions import FlightDraws, standing
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayLike
from airworthy.planners.common.interface import Mission
from airworthy.simulation import FlightTable, Randomization, Simulator, SimulatorConfig
from airworthy.simulation.posterior import DrawnVehicle
from airworthy.tasks.navigation import GoalWatch, NavigationProtocol, SettleWatch, take_off
from airworthy.vehicles import Vehicle

__all__ = [
    "CONTROL_RATE",
    "PHYSICS_RATE",
    "FlownBatch",
    "FlownTrack",
    "TakeOffState",
    "TraceHash",
    "apply_perturbation",
    "begin",
    "fly_takeoff",
]

# ---- A fingerprint of every number of each flight, and the flown paths of those that are to be looked at --------------------

_PRIME, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_STATE = {
    "position": [f"position_{a}_m" for a in "xyz"],
    "velocity": [f"velocity_{a}_m_s" for a in "xyz"],
    "attitude": [f"attitude_{a}" for a in "xyzw"],
    "rate": [f"rate_{a}_rad_s" for a in "xyz"],
}


class TraceHash:
    """64 bits over the bits of the states of each flight at every tick: equal numbers, equal text.

    It finds out differences that nobody made on purpose; it is no protection against those that somebody did.

    Args:
        rotors: How many each flight's vehicle has, (n,): what a batch adds for neighbours with more is no part of the flight.
    """

    def __init__(self, rotors: ArrayLike):
        self._rotors = np.asarray(rotors, np.int64)
        self._value = np.full(len(self._rotors), _PRIME, np.uint64)

    def update(self, fields: Iterable[ArrayLike], rotor_states: ArrayLike, active: ArrayBool) -> None:
        """Take in a tick of the flights that are active.

        Args:
            fields: Arrays (n, k) that every vehicle has.
            rotor_states: (n, most rotors or more); each flight's own come first.
            active: (n,)
        """
        parts = [np.asarray(part, np.float32).view(np.uint32).reshape(len(active), -1) for part in (*fields, rotor_states)]
        data = np.concatenate(parts, axis=1).astype(np.uint64)
        last = data.shape[1] - parts[-1].shape[1] + self._rotors
        value = self._value.copy()
        for k in range(int(last.max(initial=0))):
            mixed = (value ^ data[:, k]) * _MIX
            mixed ^= mixed >> np.uint64(32)
            value = np.where(k < last, mixed, value)
        self._value = np.where(active, value, self._value)

    def texts(self) -> list[str]:
        """Return the digest of every flight, 16 hexadecimal digits."""
        return [f"{int(value):016x}" for value in self._value]


class FlownTrack:
    """The flown paths, tick by tick, until each flight was decided.

    Args:
        count: Flights.
        rate: Ticks per second [Hz].
    """

    def __init__(self, count: int, rate: float):
        self._count, self._rate = count, rate
        self._rows: list[ArrayF32] = []
        self._active: list[ArrayBool] = []
        self._time: list[Array] = []
        self._rotors = 0

    def add(self, simulator: Simulator, active: ArrayBool) -> None:
        """Keep a tick of the flights that are active (n,)."""
        self._rotors = simulator.rotor_count
        parts = [np.asarray(simulator.field(name), np.float32) for name in _STATE]
        parts += [np.asarray(simulator.rotors(name), np.float32) for name in ("rotor_speed", "rotor_command")]
        parts += [np.asarray(simulator.field("saturated"), np.float32)[:, None]]
        self._rows.append(np.concatenate(parts, axis=1))
        self._active.append(active.copy())
        self._time.append(np.array(simulator.time))

    def path(self, flight: int) -> Array:
        """Return positions (ticks, 3) of a flight [m]."""
        kept = [rows[flight, :3] for rows, active in zip(self._rows, self._active, strict=True) if active[flight]]
        return np.array(kept, np.float64).reshape(-1, 3)

    def attitudes(self, flight: int) -> Array:
        """Return attitudes (ticks, 4) of a flight."""
        kept = [rows[flight, 6:10] for rows, active in zip(self._rows, self._active, strict=True) if active[flight]]
        turned = np.array(kept, np.float64).reshape(-1, 4)
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)

    def table(self, status: int = 0) -> FlightTable:
        """Return the flights as those of `airworthy fly`; `status` is that of their last rows."""
        rows, active = np.stack(self._rows), np.stack(self._active)
        time = np.stack(self._time)
        names = [name for part in _STATE.values() for name in part]
        names += [f"rotor_speed_{i}_rad_s" for i in range(self._rotors)]
        names += [f"rotor_command_{i}_rad_s" for i in range(self._rotors)]
        names += ["saturated"]
        columns: dict[str, Any] = {}
        which = [(flight, np.flatnonzero(active[:, flight])) for flight in range(self._count)]
        columns["env"] = np.concatenate([np.full(len(ticks), flight, np.int32) for flight, ticks in which])
        columns["t"] = np.concatenate([time[ticks, flight] for flight, ticks in which])
        whole = np.concatenate([rows[ticks, flight] for flight, ticks in which])
        columns |= {name: whole[:, k] for k, name in enumerate(names)}
        columns["status"] = np.zeros(len(whole), np.float32)
        columns["status"][np.cumsum([len(ticks) for _, ticks in which]) - 1] = status
        return FlightTable.from_columns(columns)


# -----------------------------------------------------------------------------------------------------------------------------

CONTROL_RATE = 100.0
"""Commands per second [Hz]."""
PHYSICS_RATE = 600.0
"""Steps per second [Hz]: whole numbers of them lie between commands, odometry (200 Hz), images (30 or 20 Hz)."""
STATE = ("position", "velocity", "attitude", "rate", "rotor_speed")


@dataclass(frozen=True, eq=False)
class TakeOffState:
    """Flights at the instant at which their goals are issued."""

    state: dict[str, Array]
    """By name of the simulator's field, (n, k)."""
    time: Array
    """From the ground to there [s], (n,); NaN of those that did not settle."""
    settled: ArrayBool
    """(n,)"""


def begin(simulator: Simulator, draws: FlightDraws, start: Mapping[str, Array]) -> None:
    """Start flights, with what perturbations change of their vehicles and of their controllers' gains.

    Args:
        simulator: Just made, so that the draws of the flight that begins are the same in all that fly it.
        draws: Of the flights.
        start: Fields of `Simulator.reset`.
    """
    apply_perturbation(simulator, draws)
    simulator.reset(**start)
    if simulator.config.randomization.posterior:  # each reset draws rotors anew
        _degrade(simulator, draws)


def apply_perturbation(simulator: Simulator, draws: FlightDraws) -> None:
    """Set what a flight's perturbations change of its vehicle, unless it is drawn anew, and of its controller's gains."""
    if not simulator.config.randomization.posterior:
        _degrade(simulator, draws)
    # Unperturbed runs set nothing, so that their bits are those of a simulator nobody touched.
    if (draws.gains != 1.0).any():
        for k, name in enumerate(("position", "velocity", "attitude", "rate")):
            row = f"control_{name}_gain"
            simulator.set_parameter(row, simulator.parameter(row) * draws.gains[:, k, None])


def _degrade(simulator: Simulator, draws: FlightDraws) -> None:
    """Take from each rotor what its flight has lost of it."""
    if (draws.thrust != 1.0).any():
        for name in ("rotor_thrust", "rotor_torque"):
            rows = simulator.parameter(name).reshape(simulator.env_count, -1, 3)
            lasting = not simulator.config.randomization.posterior
            simulator.set_parameter(name, rows * draws.thrust[:, : rows.shape[1], None], lasting)


def fly_takeoff(
    vehicles: Sequence[Vehicle],
    mission: Mission,
    draws: FlightDraws,
    radius: Array,
    protocol: NavigationProtocol,
    device: str = "cpu",
    spread: Randomization | None = None,
) -> TakeOffState:
    """Take every vehicle from the ground to its start and wait until it is calm there.

    Each flight is taken as it is at the tick at which it has settled, so that it does not depend on how long others take.

    Args:
        vehicles: Of the n flights.
        mission: Whose starts are hovered at.
        draws: Of the flights.
        radius: Of the bodies [m], (n,).
        protocol: Thresholds.
        device: Where it is simulated.
        spread: Between flights; None: vehicles are as their records.
    """
    count = len(mission.start)
    config = SimulatorConfig(
        physics_rate=PHYSICS_RATE, control_rate=CONTROL_RATE, level="tracking", randomization=spread or Randomization()
    )
    simulator = Simulator(list(vehicles), config, count, seed=mission.seed, flight_ids=mission.flight, device=device)
    position, attitude = standing(mission, draws, radius)
    begin(simulator, draws, {"position": position, "attitude": attitude})
    # Decided flight by flight: one that settles later must not change the state from which others begin.
    watch = SettleWatch(mission.start, protocol)
    state = {name: np.array(simulator.field(name), np.float64) for name in STATE}
    taken = np.full(count, np.nan)
    command = np.zeros((count, 14))
    command[:, :3], command[:, 12] = position, draws.yaw
    ticks = int(np.ceil(protocol.settle_limit_s * CONTROL_RATE))
    for _ in range(ticks):
        time = simulator.time
        height, climb, push = take_off(time, position[:, 2], mission.start[:, 2], protocol.climb_speed_m_s)
        command[:, 2], command[:, 5], command[:, 8] = height, climb, push
        simulator.step(command)
        new = watch.update(simulator.time, simulator.position, simulator.velocity) & ~simulator.diverged
        if new.any():
            taken[new] = simulator.time[new]
            for name, kept in state.items():
                kept[new] = simulator.field(name)[new]
        if (watch.settled | simulator.diverged).all():
            break
    return TakeOffState(state, taken, ~np.isnan(taken))


# ---- What a batch of flights leaves -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FlownBatch:
    """What a batch left."""

    flights: Sequence[Flight]
    mission: Mission
    vehicles: Sequence[Vehicle]
    takeoff: TakeOffState
    watch: GoalWatch
    cause: list[str]
    """Why each flight failed, in words; "" of those that succeeded or for which the outcome says it all."""
    position: Array
    """Where each flight was when it was decided [m], (n, 3)."""
    values: dict[str, Array]
    """Diagnostics (n,) by name."""
    planner_log: dict[str, list[Any]]
    """What its pilot told of each flight, by column."""
    trace: list[str]
    """A fingerprint of every number of each flight."""
    seconds: dict[str, float]
    """What it took, by part [s]: of no row."""
    spans: Sequence[tuple[float, int]] = ()
    """Of every tick in which pilots worked: seconds by the clock, and for how many flights; of no row."""
    track: FlownTrack | None = None
    """The flown paths, where they were asked for."""
    drawn: Sequence[DrawnVehicle] = ()
    """What flew, by flight, where flights drew their vehicles."""
