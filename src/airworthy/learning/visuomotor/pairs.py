"""What heads learn from: frozen features or images, numbers and the expert's command of one instant, for many instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayInt, ArrayU8, NDArray

__all__ = ["Pairs"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """k pairs as the network reads them: world z down, see `airworthy.pilots.svnet.features`."""

    features: NDArray[np.float16] | ArrayU8
    """(k, looks, cells^2, channels) whitened; the looks at a pair are one image as it is, and changed ones of it. Where
    convolutions learn, too: the images themselves, (k, 1, H, W, 3) of 8 bits."""
    state: ArrayF32
    """(k, 8) observable."""
    objective: ArrayF32
    """(k, 18)"""
    history: ArrayF32
    """(k, 75)"""
    command: ArrayF32
    """(k, 4) of the expert: thrust in [-1, 0], body rates [rad/s]."""
    position: ArrayF32
    """(k, 3) where the vehicle truly was, world [m]; no policy is told, but heads learn faster that are asked."""

    def __len__(self) -> int:
        return len(self.state)

    @property
    def looks(self) -> int:
        """Images of each pair."""
        return int(self.features.shape[1])

    def some(self, which: ArrayInt) -> Pairs:
        """Return some of them, by their numbers."""
        return Pairs(*(getattr(self, item.name)[which] for item in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """Return all pairs of several, in order."""
        return cls(*(np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(cls)))

    def arrays(self) -> dict[str, ArrayAny]:
        """Return them by name, for a checkpoint."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Pairs:
        """Return what `arrays` gave."""
        return cls(*(np.asarray(arrays[item.name]) for item in fields(cls)))
