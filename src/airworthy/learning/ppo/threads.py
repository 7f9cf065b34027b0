"""Threads of ours that share parts of a minibatch, in each of which torch computes on one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch

from airworthy.core.threads import share

__all__ = ["one_thread", "share_alone"]


def share_alone(part: Callable[[int], None], items: Iterable[int], threads: int) -> None:
    """Call a function for every item on several threads, in each of which torch computes on one.

    Args:
        part: Called with each item, in no order.
        items: Of the work.
        threads: Of ours; what comes of them must not depend on how many there are.
    """

    def alone(item: int) -> None:
        # How many threads OpenMP starts is a thread's own affair: `one_thread` says it of the one that calls.
        torch.set_num_threads(1)
        part(item)

    with one_thread():
        share(alone, items, threads)


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch compute on one thread: parts are shared among ours, and its own, which spin, slow small networks down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
