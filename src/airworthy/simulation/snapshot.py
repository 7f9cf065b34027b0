"""A saved instant of a simulation, in memory or on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import write_bytes

FORMAT_VERSION = "1"


@dataclass(frozen=True)
class Snapshot:
    """Everything that the future of a batch depends on, besides its vehicles and configuration."""

    state: NDArray[np.float32]
    inputs: NDArray[np.float32]
    keys: NDArray[np.uint32]
    rows: NDArray[np.float64]
    """Parameters in force; one column where all environments share one."""
    nominal: NDArray[np.float64]
    """Parameters that later flights are drawn around."""
    start_position: NDArray[np.float64]
    """Start of later flights."""
    start_attitude: NDArray[np.float64]
    episode: NDArray[np.uint32]
    step_count: int
    effects: int
    contacts: NDArray[np.float64]
    """Record of impacts with the scene, (env, 10), or (env, 0) without one."""

    def write(self, path: str | Path) -> None:
        """Write as safetensors, atomically."""
        from safetensors.numpy import save

        arrays = {name: getattr(self, name) for name in _ARRAYS}
        metadata = {"format": FORMAT_VERSION, "step_count": str(self.step_count), "effects": str(self.effects)}
        write_bytes(Path(path), save(arrays, metadata))

    @classmethod
    def read(cls, path: str | Path) -> Snapshot:
        """Read a snapshot.

        Raises:
            AssetError: If the file is missing, damaged or of another version.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                metadata: dict[str, Any] = file.metadata() or {}
                if metadata.get("format") != FORMAT_VERSION:
                    raise AssetError(f"{path} is no snapshot of format {FORMAT_VERSION}; write one with save().write(path).")
                arrays = {name: file.get_tensor(name) for name in _ARRAYS}
            step_count, effects = int(metadata["step_count"]), int(metadata["effects"])
        except FileNotFoundError:
            raise AssetError(f"Snapshot {path} does not exist.") from None
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise AssetError(f"Snapshot {path} cannot be read: {error}.") from None
        for name, kind in _ARRAYS.items():
            if arrays[name].dtype != kind:
                raise AssetError(f"Snapshot {path} holds {name} as {arrays[name].dtype}; expected {np.dtype(kind)}.")
        return cls(**arrays, step_count=step_count, effects=effects)


_ARRAYS = {
    "state": np.float32,
    "inputs": np.float32,
    "keys": np.uint32,
    "rows": np.float64,
    "nominal": np.float64,
    "start_position": np.float64,
    "start_attitude": np.float64,
    "episode": np.uint32,
    "contacts": np.float64,
}
