"""Recorded launches: made once per key, the oldest forgotten, gone with what they belong to."""

from __future__ import annotations

import gc
from typing import Any

from airworthy.geometry.query_arguments import _KEPT, _launches, recorded


class Batch:
    """Stands for a batch of scenes."""


def test_so_many_launches_are_kept_and_the_oldest_are_made_again() -> None:
    batch: Any = Batch()
    made: list[int] = []

    def ask(key: int, batch: Any = batch) -> Any:
        def make() -> Any:
            made.append(key)
            return key

        return recorded(batch, key, make)

    assert [ask(key) for key in range(_KEPT)] == list(range(_KEPT))
    assert ask(0) == 0
    assert made == list(range(_KEPT))
    ask(_KEPT)
    assert list(_launches[batch]) == list(range(1, _KEPT + 1))
    ask(0)
    assert made == [*range(_KEPT + 1), 0]


def test_launches_go_with_what_they_belong_to() -> None:
    batch, before = Batch(), len(_launches)
    recorded(batch, 0, lambda: None)  # type: ignore[arg-type,return-value]
    assert len(_launches) == before + 1
    del batch
    gc.collect()
    assert len(_launches) <= before
