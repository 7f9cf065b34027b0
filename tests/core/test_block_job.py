"""Jobs of blocks: what is left, what is kept, and where it stops."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airworthy.core.jobs.block_job import BlocksDone, counting, done_of, keep_each, left_of


@dataclass(frozen=True)
class Block:
    name: str


@dataclass
class Store:
    kept: dict[str, int] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.kept

    def keep(self, block: Block, result: int) -> None:
        self.kept[block.name] = result


BLOCKS = [Block(name) for name in "abcd"]


def working(left: list[Block], ended: list[str], stopped_at: str = "") -> Generator[tuple[Block, int], None, None]:
    try:
        for block in left:
            if block.name == stopped_at:
                raise KeyboardInterrupt
            yield block, ord(block.name)
    finally:
        ended.append("closed")


def test_every_block_is_kept_in_order() -> None:
    store, reported, ended = Store(), list[str](), list[str]()
    assert not keep_each(working(left_of(BLOCKS, store), ended), store.keep, reported.append)
    assert store.kept == {"a": 97, "b": 98, "c": 99, "d": 100}
    assert reported == list("abcd")
    assert ended == ["closed"]
    assert left_of(BLOCKS, store) == []
    assert done_of(BLOCKS, store) == BLOCKS


def test_a_stop_while_a_block_is_made_keeps_those_before_it() -> None:
    store, ended = Store(), list[str]()
    assert keep_each(working(BLOCKS, ended, stopped_at="c"), store.keep)
    assert [block.name for block in left_of(BLOCKS, store)] == ["c", "d"]
    assert not keep_each(working(left_of(BLOCKS, store), ended), store.keep)
    assert done_of(BLOCKS, store) == BLOCKS


def test_a_stop_behind_a_block_ends_who_makes_them() -> None:
    store, ended = Store(), list[str]()

    def stop(name: str) -> None:
        raise KeyboardInterrupt

    assert keep_each(working(BLOCKS, ended), store.keep, stop)
    assert list(store.kept) == ["a"]
    assert ended == ["closed"]


def test_what_goes_wrong_is_passed_on_and_ends_who_makes_them() -> None:
    ended = list[str]()

    def full(block: Block, result: int) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        keep_each(working(BLOCKS, ended), full)
    assert ended == ["closed"]


def test_complete_is_when_no_block_is_left() -> None:
    assert BlocksDone(Path("out"), {}, 4, 4, False, None).complete
    assert not BlocksDone(Path("out"), {}, 3, 4, True, None).complete


def test_more_than_there_is_can_be_told() -> None:
    with counting(3, "flying", quiet=True) as report:
        report()
        report(2)
        report(5)


def test_counting_says_what_came_together_at_once_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 60.0, 61.0, 120.0])
    monkeypatch.setattr("airworthy.core.jobs.progress.time.monotonic", lambda: next(clock))
    with counting(10, "racing", quiet=False) as report:
        report(5)
        report()
        report(4)
    # The second came a second after the line before it.
    assert capsys.readouterr().err == "racing: 5 of 10 in 60 s, 60 s remaining\nracing: 10 of 10 in 120 s\n"
