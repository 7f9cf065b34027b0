"""A fingerprint of every number of each flight, and the flown paths of those that are to be looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.simulation import FlightTable, Simulator

__all__ = ["TraceHash", "Track"]

Bools = NDArray[np.bool_]
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
        count: Flights n.
    """

    def __init__(self, count: int):
        self._value = np.full(count, _PRIME, np.uint64)

    def update(self, fields: Iterable[ArrayLike], active: Bools) -> None:
        """Take in arrays (n, k) of the flights that are active (n,)."""
        parts = [np.asarray(part, np.float32).view(np.uint32).reshape(len(active), -1) for part in fields]
        words = np.concatenate(parts, axis=1).astype(np.uint64)
        value = self._value.copy()
        for k in range(words.shape[1]):
            value = (value ^ words[:, k]) * _MIX
            value ^= value >> np.uint64(32)
        self._value = np.where(active, value, self._value)

    def texts(self) -> list[str]:
        """Of every flight, 16 hexadecimal digits."""
        return [f"{int(value):016x}" for value in self._value]


class Track:
    """The flown paths, tick by tick, until each flight was decided.

    Args:
        count: Flights.
        rate: Ticks per second [Hz].
    """

    def __init__(self, count: int, rate: float):
        self._count, self._rate = count, rate
        self._rows: list[NDArray[np.float32]] = []
        self._active: list[Bools] = []
        self._time: list[NDArray[np.float64]] = []
        self._rotors = 0

    def add(self, simulator: Simulator, active: Bools) -> None:
        """Keep a tick of the flights that are active (n,)."""
        self._rotors = simulator.rotor_count
        parts = [np.asarray(simulator.field(name), np.float32) for name in _STATE]
        parts += [np.asarray(simulator.field(name), np.float32)[:, : self._rotors] for name in ("rotor_speed", "rotor_command")]
        parts += [np.asarray(simulator.field("saturated"), np.float32)[:, None]]
        self._rows.append(np.concatenate(parts, axis=1))
        self._active.append(active.copy())
        self._time.append(np.array(simulator.time))

    def path(self, place: int) -> NDArray[np.float64]:
        """Positions (ticks, 3) of a flight [m]."""
        kept = [rows[place, :3] for rows, active in zip(self._rows, self._active, strict=True) if active[place]]
        return np.array(kept, np.float64).reshape(-1, 3)

    def attitudes(self, place: int) -> NDArray[np.float64]:
        """Attitudes (ticks, 4) of a flight."""
        kept = [rows[place, 6:10] for rows, active in zip(self._rows, self._active, strict=True) if active[place]]
        turned = np.array(kept, np.float64).reshape(-1, 4)
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)

    def table(self, status: int = 0) -> FlightTable:
        """The flights as those of `airworthy fly`; `status` is that of their last rows."""
        rows, active = np.stack(self._rows), np.stack(self._active)
        time = np.stack(self._time)
        names = [name for part in _STATE.values() for name in part]
        names += [f"rotor_speed_{i}_rad_s" for i in range(self._rotors)]
        names += [f"rotor_command_{i}_rad_s" for i in range(self._rotors)]
        names += ["saturated"]
        columns: dict[str, Any] = {}
        which = [(place, np.flatnonzero(active[:, place])) for place in range(self._count)]
        columns["env"] = np.concatenate([np.full(len(ticks), place, np.int32) for place, ticks in which])
        columns["t"] = np.concatenate([time[ticks, place] for place, ticks in which])
        whole = np.concatenate([rows[ticks, place] for place, ticks in which])
        columns |= {name: whole[:, k] for k, name in enumerate(names)}
        columns["status"] = np.zeros(len(whole), np.float32)
        columns["status"][np.cumsum([len(ticks) for _, ticks in which]) - 1] = status
        return FlightTable.from_columns(columns)
