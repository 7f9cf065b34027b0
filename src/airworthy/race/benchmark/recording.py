"""What is kept of a race flight for pages and films: where it was, what it saw, what its pilot believed, once a frame.

A row is taken at the command behind each frame of beacons, at 60 Hz, and kept in float32, little-endian, bytes of one rank side
by side (so that neighbouring rows compress), deflated, as base64 in the block's JSON.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayIndex
from airworthy.core.errors import AssetError
from airworthy.race.benchmark.telemetry import KEYS, PLAN, telemetry_shape, thinned
from airworthy.race.briefing import BeaconFrame

PLAN_KEPT = 40
"""Points of each plan that are kept; ours: a line on a map needs no more."""


@dataclass(frozen=True, eq=False)
class RaceTrace:
    """One flight, a row per frame."""

    time: ArrayF32
    """Since arming [s], (n,)."""
    position: ArrayF32
    """True, world [m], (n, 3)."""
    velocity: ArrayF32
    """True, world [m/s], (n, 3)."""
    attitude: ArrayF32
    """True, x, y, z, w, body to world, (n, 4)."""
    visible: ArrayAny
    """Beacons of each passage's gate that the frame reports, (n, passages), uint8."""
    end_position: ArrayF32
    """Where the flight ended: its contact, or its last row, (3,)."""
    said: Mapping[str, ArrayF32] = field(default_factory=dict)
    """Telemetry by key, each (n, ...), NaN where nothing was said; keys that were never said are not there, `PLAN` neither."""
    plan_row: ArrayAny = field(default_factory=lambda: np.zeros(0, np.int32))
    """Row from which each plan was said, (m,), int32."""
    plan_size: ArrayAny = field(default_factory=lambda: np.zeros(0, np.int32))
    """Points of each, (m,), int32."""
    plan_points: ArrayF32 = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    """Of all plans in a row, world [m]."""

    def plan_at(self, row: int) -> ArrayF32:
        """Return the plan that was last said at a row, (k, 3); no point where none was."""
        number = int(np.searchsorted(self.plan_row, row, side="right")) - 1
        ends = np.concatenate(([0], np.cumsum(self.plan_size)))
        return self.plan_points[ends[number] : ends[number + 1]] if number >= 0 else self.plan_points[:0]


class FlightRecorder:
    """Takes the rows of a batch of flights.

    Args:
        flights: Of the batch.
        passages: Of the race.
    """

    def __init__(self, flights: int, passages: int):
        self._passages = passages
        self._rows: list[list[tuple[ArrayF32, ArrayAny]]] = [[] for _ in range(flights)]
        self._said: list[list[Mapping[str, ArrayF32]]] = [[] for _ in range(flights)]

    def take(
        self, time: float, state: Array, frame: BeaconFrame, said: Mapping[int, Mapping[str, ArrayF32]], flying: ArrayIndex
    ) -> None:
        """Take a row of each flight.

        Args:
            time: Since arming [s].
            state: True position, velocity and attitude, (flights, 10).
            frame: That arrived last.
            said: Telemetry by the number of the flight.
            flying: Numbers of the flights that go on.
        """
        visible = np.isfinite(frame.pixel[..., 0]).sum(axis=2).astype(np.uint8)
        for flight in flying.tolist():
            row = np.concatenate(([time], state[flight])).astype(np.float32)
            self._rows[flight].append((row, visible[flight]))
            self._said[flight].append(said.get(flight, {}))

    def trace(self, flight: int, contact: Array | None = None) -> RaceTrace:
        """Return the rows of a flight.

        Args:
            flight: Its number in the batch.
            contact: Where it touched something, world [m], (3,); None: its last row is its end.
        """
        rows, said = self._rows[flight], self._said[flight]
        numbers = np.array([row for row, _ in rows], np.float32).reshape(-1, 11)
        end = numbers[-1, 1:4] if contact is None and len(numbers) else np.zeros(3) if contact is None else contact
        given = [key for key in KEYS if key != PLAN and any(key in item for item in said)]
        return RaceTrace(
            time=numbers[:, 0].copy(),
            position=numbers[:, 1:4].copy(),
            velocity=numbers[:, 4:7].copy(),
            attitude=numbers[:, 7:].copy(),
            visible=np.array([seen for _, seen in rows], np.uint8).reshape(-1, self._passages),
            end_position=np.asarray(end, np.float32).copy(),
            said={key: self._of(key, said) for key in given},
            **_plans(said),
        )

    def _of(self, key: str, said: Sequence[Mapping[str, ArrayF32]]) -> ArrayF32:
        nothing = np.full(telemetry_shape(key, self._passages), np.nan, np.float32)
        return np.stack([item.get(key, nothing) for item in said])


def _plans(said: Sequence[Mapping[str, ArrayF32]]) -> dict[str, Any]:
    """Return the plans, each once for as long as it stays."""
    rows: list[int] = []
    kept: list[ArrayF32] = []
    last = b""
    for row, item in enumerate(said):
        if PLAN in item and item[PLAN].tobytes() != last:
            last = item[PLAN].tobytes()
            rows.append(row)
            kept.append(thinned(item[PLAN], PLAN_KEPT))
    points = np.concatenate(kept) if kept else np.zeros((0, 3), np.float32)
    sizes = np.array([len(points) for points in kept], np.int32)
    return {"plan_row": np.array(rows, np.int32), "plan_size": sizes, "plan_points": points}


# ---- As a block of results has it -------------------------------------------------------------------------------------------

_TYPES = {"float32": "<f4", "int32": "<i4", "uint8": "|u1"}


def trace_content(trace: RaceTrace) -> dict[str, Any]:
    """Return a trace as JSON has it."""
    plain = {item.name: _packed(getattr(trace, item.name)) for item in fields(trace) if item.name != "said"}
    return {**plain, "said": {key: _packed(value) for key, value in trace.said.items()}}


def _packed(array: ArrayAny) -> dict[str, Any]:
    kind = str(array.dtype)
    # A column at a time, of each number the first byte, then the second: these change little from frame to frame.
    columns = np.ascontiguousarray(array.reshape(_folded(array.shape)).T).astype(_TYPES[kind])
    ranks = columns.reshape(-1, 1).view(np.uint8).T
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(zlib.compress(ranks.tobytes(), 6)).decode()}


def trace_of(content: Any, where: str, file: str | Path) -> RaceTrace:
    """Return the trace that `trace_content` wrote.

    Args:
        content: As it was read.
        where: What it is called in messages.
        file: That it was read from.

    Raises:
        AssetError: It is none.
    """
    try:
        arrays = {name: _unpacked(value) for name, value in content.items() if name != "said"}
        return RaceTrace(**arrays, said={key: _unpacked(value) for key, value in content["said"].items()})
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise AssetError(
            f"The trace of {where} in {str(file)!r} is damaged: delete that file, and give the same command again, which flies"
            " it anew."
        ) from error


def _unpacked(value: Mapping[str, Any]) -> ArrayAny:
    kind, shape = np.dtype(_TYPES[value["type"]]), tuple(value["shape"])
    size = math.prod(shape)
    # No more than its shape says: what is longer is no trace of ours.
    stream = zlib.decompressobj()
    data = stream.decompress(base64.b64decode(value["data"], validate=True), size * kind.itemsize + 1)
    if not stream.eof:
        raise ValueError("cut off, or longer than it says")
    ranks = np.frombuffer(data, np.uint8).reshape(kind.itemsize, size)
    columns = np.ascontiguousarray(ranks.T).view(kind).reshape(_folded(shape)[::-1])
    return np.ascontiguousarray(columns.T).reshape(shape).astype(value["type"])


def _folded(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of an array of any rank."""
    return shape[0], math.prod(shape[1:])
