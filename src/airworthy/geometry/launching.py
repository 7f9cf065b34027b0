"""Launches that are recorded once and then repeated with other arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import Launcher, quiet_warp, thread_limit

_KEPT = 16
"""Recorded launches kept per batch."""
_launches: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


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


def recorded(batch: Any, key: Any, make: Callable[[], Repeated]) -> Repeated:
    """The launch that was recorded for a batch under a key, made now if there is none; the oldest are forgotten."""
    kept = _launches.setdefault(batch, {})
    if key not in kept:
        while len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = make()
    launch: Repeated = kept[key]
    return launch


_NOTHING: dict[tuple[bool, str], Any] = {}


def word_kind(whole: bool) -> Any:
    """Warp's type of a 32-bit word: whole number or not."""
    wp = quiet_warp()
    return wp.int32 if whole else wp.float32


def nothing(whole: bool, device: str) -> Any:
    """An array for an argument that a launch does not use."""
    if (whole, device) not in _NOTHING:
        _NOTHING[whole, device] = quiet_warp().zeros(1, dtype=word_kind(whole), device=device)
    return _NOTHING[whole, device]
