"""Launches that are recorded once and then repeated with other arrays."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import Launcher, thread_limit


class Repeated(Launcher):
    """A `Launcher` whose arguments can be exchanged between launches."""

    def __init__(self, kernel: Any, block_count: int, arguments: list[Any], device: str, threads: int | None = None):
        super().__init__(kernel, block_count, arguments, device, threads)
        self._held = list(arguments)  # recorded launches hold addresses only

    def exchange(self, index: int, argument: Any) -> None:
        """Take another array for argument `index` from now on."""
        if argument is self._held[index]:
            return
        self._held[index] = argument
        for record in chain([self._whole], self._parts):
            record.set_param_at_index(index, argument)


def striped(count: int, threads: int | None) -> NDArray[np.int32]:
    """An order of `count` tasks in which each thread's share is spread evenly over all: skies are cheap, and come together."""
    parts = threads or thread_limit()
    return np.concatenate([np.arange(k, count, parts, dtype=np.int32) for k in range(parts)])
