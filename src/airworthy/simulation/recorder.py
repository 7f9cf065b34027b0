"""The flight recorder: keeps rows of the state array while a batch flies, and turns them into a flight table afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import slerp
from airworthy.simulation.flights import FlightTable, column_type, write_flight_blocks

__all__ = ["Recorder"]

# ---- Plays recorded flights back: poses at any time, as external pose streams are consumed ----------------------------------


class Replay:
    """Poses of one recorded flight between its rows.

    Args:
        table: Recorded flights.
        env: Which of them.

    Raises:
        AirworthyError: If the flight has no rows.
    """

    def __init__(self, table: FlightTable, env: int):
        flight = table.flight(env)
        self.t = np.array(flight.t)
        """Times of the rows [s], shape (rows,)."""
        self.position = flight.vector("position").astype(np.float64)
        """World [m], shape (rows, 3)."""
        self.attitude = flight.vector("attitude").astype(np.float64)
        """Quaternions x, y, z, w, shape (rows, 4)."""
        if self.t.size == 0:
            raise AirworthyError(f"Environment {env} has no recorded rows to play back.")

    @property
    def duration(self) -> float:
        """Time between the first row and the last [s]."""
        return float(self.t[-1] - self.t[0])

    def pose(self, t: ArrayLike) -> tuple[Array, Array]:
        """Return the position (..., 3) and attitude (..., 4) at times (...): linear and spherical between rows, held outside
        them."""
        times = np.asarray(t, float)
        last = max(self.t.size - 2, 0)
        index = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, last)
        after = np.minimum(index + 1, self.t.size - 1)
        span = self.t[after] - self.t[index]
        share = np.clip((times - self.t[index]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
        position = self.position[index] + share[..., None] * (self.position[after] - self.position[index])
        return position, slerp(self.attitude[index], self.attitude[after], share)


# -----------------------------------------------------------------------------------------------------------------------------

MEMORY_LIMIT_BYTES = 2 << 30
"""Most memory that a recorder takes, unless it is told otherwise."""
_BLOCK_ROWS = 1 << 18


class Recorder:
    """Gathers (rows, environment) arrays during a run into one buffer that is allocated once.

    Recording a step costs one slice copy per block. A buffer larger than `memory_limit_bytes` is kept in a temporary file of
    `spill_folder`, or refused where none is given.
    """

    def __init__(
        self,
        columns: Sequence[str],
        env_count: int,
        steps: int,
        *,
        every: int = 1,
        envs: Sequence[int] | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        spill_folder: str | Path | None = None,
    ):
        """Allocate the buffer.

        Args:
            columns: Name of each recorded row, in the order of the blocks that `record` receives; without `env` and `t`.
            env_count: Environments in the arrays that `record` receives.
            steps: Most calls of `record`.
            every: Keep the first call and every `every`-th after it.
            envs: Environments to keep; all where None.
            memory_limit_bytes: Most memory that the buffer may take.
            spill_folder: Where a larger buffer is kept in a temporary file.

        Raises:
            AirworthyError: A count is not positive, a column is named twice, an environment does not exist, or the buffer is
                too large and there is no folder to spill to.
        """
        if steps < 1 or every < 1 or env_count < 1:
            raise AirworthyError(f"A recorder needs positive counts; got steps={steps}, every={every}, env_count={env_count}.")
        if len(set(columns)) != len(columns) or {"env", "t"} & set(columns):
            raise AirworthyError("The columns of a recorder must differ from each other and from 'env' and 't', which it adds.")
        self.columns = tuple(columns)
        self.envs = _env_ids(envs, env_count)
        self._env_count = env_count
        self._all = self.envs.size == env_count
        self._every = every
        self._calls = 0
        self._kept = 0
        # Rounded up: the first call is kept, whatever `every` is.
        self._shape = (-(-steps // every), len(self.columns), self.envs.size)
        self._t = np.empty(self._shape[0], dtype=np.float64)
        self._values = _allocate(self._shape, memory_limit_bytes, spill_folder)

    @property
    def step_count(self) -> int:
        """Steps kept so far."""
        return self._kept

    def record(self, t: float, *blocks: ArrayAny) -> None:
        """Keep the rows of one step, or skip it.

        Args:
            t: Time of the step [s].
            blocks: Arrays (rows, env_count), or (env_count,) for one row, that together have one row per column.

        Raises:
            AirworthyError: The buffer is full, or the blocks do not fit the columns.
        """
        call, self._calls = self._calls, self._calls + 1
        if call % self._every:
            return
        if self._kept == self._shape[0]:
            raise AirworthyError(f"The recorder is full after {self._kept} kept steps; make it with a larger number of steps.")
        target, row = self._values[self._kept], 0
        for block in blocks:
            row = self._copy(target, row, block)
        if row != len(self.columns):
            raise AirworthyError(f"The recorder got {row} rows and has {len(self.columns)} columns.")
        self._t[self._kept] = t
        self._kept += 1

    def _copy(self, target: ArrayAny, row: int, block: ArrayAny) -> int:
        block = block if block.ndim == 2 else block[None, :]
        after = row + block.shape[0]
        if block.shape[1] != self._env_count or after > len(self.columns):
            raise AirworthyError(f"The recorder got a block of shape {block.shape} for {self._env_count} environments.")
        if self._all:
            target[row:after] = block
        else:
            target[row:after] = block[:, self.envs]
        return after

    def table(self, lengths: ArrayLike | None = None) -> FlightTable:
        """Return what was recorded, as a flight table.

        Args:
            lengths: Steps to keep of each recorded environment, shape (len(envs),); all where None.
        """
        blocks = list(self.blocks(lengths))
        names = self.names
        empty = {name: np.zeros(0, dtype=column_type(name)) for name in names}
        return FlightTable.from_columns({n: np.concatenate([b[n] for b in blocks]) if blocks else empty[n] for n in names})

    def write(self, folder: str | Path, meta: Mapping[str, Any], lengths: ArrayLike | None = None) -> Path:
        """Write the flight folder block by block, without holding the table in memory; see `write_flight`.

        Args:
            folder: Of the flight.
            meta: What else is kept.
            lengths: Rows of each environment that count, (env,); None: all.
        """
        return write_flight_blocks(folder, self.blocks(lengths), self.names, meta)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the table in order."""
        return ("env", "t", *self.columns)

    def blocks(self, lengths: ArrayLike | None = None) -> Iterator[dict[str, ArrayAny]]:
        """Yield columns of whole environments at a time, about 260,000 rows each."""
        keep = self._lengths(lengths)
        first, rows = 0, 0
        for env in range(self.envs.size):
            # Whole environments only, so that a block never splits a flight.
            if rows and rows + keep[env] > _BLOCK_ROWS:
                yield self._block(first, env, keep)
                first, rows = env, 0
            rows += int(keep[env])
        if rows:
            yield self._block(first, self.envs.size, keep)

    def _lengths(self, lengths: ArrayLike | None) -> ArrayInt:
        if lengths is None:
            return np.full(self.envs.size, self._kept, dtype=np.int64)
        keep = np.asarray(lengths, dtype=np.int64)
        if keep.shape != (self.envs.size,) or np.any((keep < 0) | (keep > self._kept)):
            raise AirworthyError(f"The lengths to keep need shape ({self.envs.size},) and values from 0 to {self._kept}.")
        return keep

    def _block(self, first: int, last: int, keep: ArrayInt) -> dict[str, ArrayAny]:
        chosen = np.arange(self._kept)[None, :] < keep[first:last, None]
        columns: dict[str, ArrayAny] = {
            "env": np.repeat(self.envs[first:last], keep[first:last]).astype(np.int32),
            "t": np.broadcast_to(self._t[: self._kept], chosen.shape)[chosen],
        }
        for row, name in enumerate(self.columns):
            values = self._values[: self._kept, row, first:last].T[chosen]
            columns[name] = _flag(values) if name == "saturated" else _code(values) if name == "status" else values
        return columns


def _flag(values: ArrayAny) -> NDArray[np.int8]:
    """1 where any part of the step was saturated: the state holds the share of its sub-steps."""
    return (values > 0.0).astype(np.int8)


def _code(values: ArrayAny) -> NDArray[np.int8]:
    """Status codes; what is not one counts as diverged."""
    # NaN compares false, and so counts as diverged.
    known = (values >= 0.0) & (values <= 127.0)
    return np.where(known, values, 1.0).astype(np.int8)


def _env_ids(envs: Sequence[int] | None, env_count: int) -> ArrayInt:
    if envs is None:
        return np.arange(env_count)
    ids = np.unique(np.asarray(envs, dtype=np.int64))
    if ids.size == 0 or ids[0] < 0 or ids[-1] >= env_count:
        raise AirworthyError(f"Environments to record must lie in 0 to {env_count - 1}; got {list(envs)[:8]}.")
    return ids


def _allocate(shape: tuple[int, ...], limit: int, folder: str | Path | None) -> ArrayF32:
    # Python's integers: a product of 64 bits could wrap round to something small.
    needed = 4 * int(np.prod(shape, dtype=object))
    if needed <= limit:
        return np.empty(shape, dtype=np.float32)
    if folder is None:
        raise AirworthyError(
            f"Recording {shape[0]:,} steps of {shape[2]:,} environments would take {needed / 2**30:.1f} GiB, more than the "
            f"{limit / 2**30:.1f} GiB allowed: record every n-th step, fewer environments, or name a folder to spill to."
        )
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="recorder-") as file:
            if hasattr(os, "posix_fallocate"):
                # Reserved now: a disk that fills up while a mapped file grows would kill the process.
                os.posix_fallocate(file.fileno(), 0, needed)
            return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
    except OSError as error:
        raise AirworthyError(f"Could not make a recording of {needed:,} bytes in {str(folder)!r}: {error.strerror}.") from error
