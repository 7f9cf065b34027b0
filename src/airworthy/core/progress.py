"""Progress of long work with remaining time, on standard error and only where a person watches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def progress(iterable: Iterable[Item], text: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Item]:
    """Yield the items of an iterable while a line shows how far it is and how long it will still take.

    Args:
        iterable: What is worked through.
        text: What is being done ("Flying").
        total: Number of items; by default the length of the iterable, where it has one.
        quiet: Show nothing (a command run with --json). Nothing is shown either where standard error is not a terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield from iterable
        return
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    yield from _shown(iterable, text, total)


def _shown(iterable: Iterable[Item], text: str, total: int | None) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(text, total=total)
        for item in iterable:
            yield item
            display.advance(task)
