"""What learners with a replay keep of every step, in the order in which it was flown, and how it goes to files and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, aligned_zeros
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_bytes, sha256, write_bytes

__all__ = ["REPLAY_LIMIT_BYTES", "ReplayRecords"]

REPLAY_LIMIT_BYTES = 4 << 30
"""Ours: most machines have so much; small tasks are learnt from a fiftieth of it."""


class ReplayRecords:
    """Steps of all environments since the training began: nothing is ever overwritten.

    Args:
        steps: Of every environment that are to come.
        env_count: Environments.
        record: Numbers of a step.
        observed: Numbers of an observation.
        episode_steps: After which a flight is cut off.
        terms: Parts of the reward that are kept, so that steps can be scored anew; 0: none.

    Raises:
        AirworthyError: It would take more memory than `REPLAY_LIMIT_BYTES`.
    """

    def __init__(self, steps: int, env_count: int, record: int, observed: int, episode_steps: int, terms: int):
        # Flights are cut off at their time limit at the earliest, but for the first, which may have begun at any age.
        cut = env_count * (steps // episode_steps + 2)
        size = 4 * ((steps + 1) * env_count * (record + terms) + cut * observed)
        if size > REPLAY_LIMIT_BYTES:
            most = REPLAY_LIMIT_BYTES // (4 * (record + terms)) // 1000 * 1000
            raise AirworthyError(
                f"A replay of {steps * env_count:,} steps takes {size / 2**30:.1f} GiB; expected at most"
                f" {REPLAY_LIMIT_BYTES / 2**30:g}: learn for fewer steps (about {most:,} here), or with native_ppo."
            )
        self.records: ArrayF32 = aligned_zeros((steps + 1, env_count, record))
        """Observation, action, reward, and how it went on (0; -1: it ended; k: cut off, with final observation k - 1)."""
        self.finals: ArrayF32 = aligned_zeros((cut, observed))
        """What flights saw last that were only cut off."""
        self.terms: ArrayF32 = aligned_zeros((steps, terms, env_count))
        """Parts of the reward, for weights of 1."""
        self._written: list[dict[str, Any]] = []

    def rescore(self, count: int, weights: Array, reward_at: int) -> None:
        """Score what was flown anew, as the published training does when weights of the reward rise.

        Args:
            count: Steps of every environment.
            weights: Of the parts of the reward, (terms,).
            reward_at: Place of the reward in a record.
        """
        self.records[:count, :, reward_at] = np.einsum("tke,k->te", self.terms[:count], np.asarray(weights, np.float32))

    # ---- files: a part for what was flown since the last time, so that each step is written once ------------------------

    def save(self, folder: Path, count: int, finals: int) -> list[dict[str, Any]]:
        """Write what was flown since the last time; returns all parts, as `restore` wants them.

        Args:
            folder: Made where it is missing.
            count: Steps of every environment.
            finals: Final observations.
        """
        first, first_final = (self._written[-1][name] if self._written else 0 for name in ("count", "finals"))
        if count > first:
            # The observation after the last step lies in the next record, and is the environments' own.
            parts = (self.records[first:count], self.terms[first:count], self.finals[first_final:finals])
            data = b"".join(part.tobytes() for part in parts)
            name = f"part_{first:09d}_{count:09d}.f32"
            write_bytes(make_folder(folder) / name, data)
            held = {"file": name, "count": count, "finals": finals, "bytes": len(data), "sha256": sha256(data)}
            self._written.append(held)
        return [dict(item) for item in self._written]

    def restore(self, folder: Path, parts: Sequence[Mapping[str, Any]]) -> None:
        """Read parts back, to the same bits, and remove what is none of them.

        Raises:
            AssetError: A part is missing or is not what was written.
        """
        first = first_final = 0
        for part in parts:
            path = folder / Path(part["file"]).name
            lost = "what was flown is lost; delete the folder and begin anew."
            try:
                data = read_bytes(path, part["bytes"])
            except AssetError as error:
                raise AssetError(f"{str(error).rstrip('.')}: {lost}") from error
            if sha256(data) != part["sha256"]:
                raise AssetError(f"{str(path)!r} is not what was written: {lost}")
            numbers = np.frombuffer(data, np.float32)
            rows = (self.records[first : part["count"]], self.terms[first : part["count"]])
            at = 0
            for to in (*rows, self.finals[first_final : part["finals"]]):
                size = math.prod(to.shape)
                to[...] = numbers[at : at + size].reshape(to.shape)
                at += size
            first, first_final = part["count"], part["finals"]
        self._written = [dict(item) for item in parts]
        names = {item["file"] for item in self._written}
        for path in folder.glob("part_*.f32"):
            if path.name not in names:
                path.unlink(missing_ok=True)
