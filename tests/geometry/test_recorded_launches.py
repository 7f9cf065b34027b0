"""Recorded launches: made once per key, the oldest forgotten, gone with what they belong to."""

from __future__ import annotations

from typing import Any

from airworthy.geometry.query_arguments import _KEPT, _launches, recorded


class Batch:
    """Stands for a batch of scenes."""


def test_so_many_launches_are_kept_and_the_oldest_are_made_again() -> None:
    batch, made = Batch(), []

    def ask(key: int) -> Any:
        return recorded(batch, key, lambda: made.append(key) or key)  # type: ignore[arg-type,func-returns-value,return-value]

    assert [ask(key) for key in range(_KEPT)] == list(range(_KEPT))
    assert ask(0) == 0
    assert made == list(range(_KEPT))
    ask(_KEPT)
    assert list(_launches[batch]) == list(range(1, _KEPT + 1))
    ask(0)
    assert made == [*range(_KEPT + 1), 0]
    before = len(_launches)
    del batch
    assert len(_launches) == before - 1
