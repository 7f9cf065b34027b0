"""Images of several files as one array on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError

__all__ = ["ImageStack"]

Images = NDArray[np.uint8]


class ImageStack:
    """Images (k, H, W, 3) of 8 bits, mapped into memory and read where they are asked for.

    It is indexed as an array's first axis is: by a number, a slice, or an array of numbers or of truth values.

    Args:
        files: Paths of `.npy` files, and how many images each has.
        shape: Of an image.

    Raises:
        AssetError: A file is not what it should be.
    """

    def __init__(self, files: Sequence[tuple[Path, int]], shape: tuple[int, int, int]):
        self._files, self._image = list(files), shape
        self._maps = [_mapped(path, (count, *shape)) for path, count in files]
        self._first = np.concatenate([[0], np.cumsum([count for _, count in files])]).astype(np.int64)
        self.shape = (int(self._first[-1]), *shape)
        self.dtype = np.dtype(np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        # For a loader's worker processes: they map the files themselves, nothing is copied.
        return ImageStack, (self._files, self._image)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Images:
        which = np.arange(len(self))[index]
        if which.ndim == 0:
            return self.take(which[None])[0]
        return self.take(which)

    def take(self, which: NDArray[np.int64]) -> Images:
        """Images (n, H, W, 3) by their numbers (n,), copied; numbers in order are read fastest."""
        found = np.empty((len(which), *self.shape[1:]), np.uint8)
        owner = np.searchsorted(self._first, which, side="right") - 1
        for shard in np.unique(owner):
            mine = np.flatnonzero(owner == shard)
            found[mine] = self._maps[shard][which[mine] - self._first[shard]]
        return found


def _mapped(path: Path, shape: tuple[int, ...]) -> Images:
    if not shape[0]:
        return np.empty(shape, np.uint8)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise AssetError(f"{str(path)!r} is not a file of images: {error}.") from error
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype != np.uint8:
        raise AssetError(f"{str(path)!r} does not hold {shape[0]} images of {shape[2]} x {shape[1]} pixels in 8 bits.")
    return found
