"""Jobs of blocks: work in parts, each whole on disk or not there, that is stopped at any time and gone on with.

Whoever runs one holds its folder (`lock_folder`), asks its store which blocks are left (`left_of`), keeps each as it is
finished (`keep_each`), and then writes summary and report of what is there (`done_of`), whether somebody stopped it or not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from airworthy.core.progress import progress

__all__ = ["SUMMARY_FILE", "BlocksDone", "Keeper", "Named", "counting", "done_of", "keep_each", "left_of"]

SUMMARY_FILE = "summary.json"


class Named(Protocol):
    """A block: some work, by a name of its own."""

    @property
    def name(self) -> str:
        """Of its file."""


class Keeper(Protocol):
    """A store of finished blocks."""

    def has(self, name: str) -> bool:
        """Whether a block is finished and whole; raises AssetError where it was changed since."""


Block = TypeVar("Block", bound=Named)
Result = TypeVar("Result")


@dataclass(frozen=True)
class BlocksDone:
    """What a run left."""

    folder: Path
    summary: dict[str, Any]
    """Content of summary.json."""
    finished: int
    """Blocks that are whole, of `blocks`."""
    blocks: int
    interrupted: bool
    report: Path | None

    @property
    def complete(self) -> bool:
        """Whether everything was done."""
        return self.finished == self.blocks


def left_of(blocks: Iterable[Block], store: Keeper) -> list[Block]:
    """Blocks that are still to be done, in order."""
    return [block for block in blocks if not store.has(block.name)]


def done_of(blocks: Iterable[Block], store: Keeper) -> list[Block]:
    """Blocks that are finished and whole, in order."""
    return [block for block in blocks if store.has(block.name)]


def keep_each(
    finished: Generator[tuple[Block, Result], None, None],
    keep: Callable[[Block, Result], None],
    step: Callable[[str], None] | None = None,
) -> bool:
    """Keep blocks as they are finished, until somebody stops it: KeyboardInterrupt, here or where they are made.

    Args:
        finished: Makes blocks and their results; it is closed in any case.
        keep: Writes one.
        step: Told the name of each block when it is kept.

    Returns:
        Whether somebody stopped it.
    """
    try:
        with closing(finished):
            for block, result in finished:
                keep(block, result)
                if step is not None:
                    step(block.name)
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def counting(total: int, text: str, quiet: bool) -> Iterator[Callable[..., None]]:
    """A function that moves a line of progress on, by one or by so many as it is given.

    Args:
        total: Things to be done; a block that ends early jumps its rest.
        text: What is being done.
        quiet: Show nothing.
    """
    bar = progress(range(total + 1), text, quiet=quiet)

    def told(count: int = 1) -> None:
        for _ in range(count):
            next(bar, None)

    told()  # the line is there from the beginning
    try:
        yield told
    finally:
        bar.close()  # type: ignore[attr-defined]
