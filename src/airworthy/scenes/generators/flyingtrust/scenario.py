"""Configurations of the scenarios, and their scenes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, SupportsIndex

from airworthy.core.errors import unknown_name
from airworthy.scenes.generators.flyingtrust.build import build
from airworthy.scenes.generators.flyingtrust.difficulty import TERMS
from airworthy.scenes.generators.flyingtrust.layout import Layout
from airworthy.scenes.generators.flyingtrust.ordering import arrange, drawn, rank_sums
from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, SCENARIOS
from airworthy.scenes.generators.seeding import checked
from airworthy.scenes.record import Scene

DEFAULT_SEED = 0
TABLE = "default_seed.json"
"""The search's result for the default seed, so that it need not be repeated; `prove --write` makes it again."""


@dataclass(frozen=True)
class Row:
    """What the search found about one configuration."""

    draw: tuple[int, int]
    """Index and attempt under which it was drawn."""
    free: bool
    """The straight line is free."""
    terms: tuple[float, ...]
    """Detour, tightness [1/m], occlusion, turn [rad] (`difficulty`)."""
    rank_sum: float


def searched(name: str, seed: int) -> tuple[Row, ...]:
    """The ten rows of a seed, by drawing, measuring and arranging: seconds."""
    ten = arrange(name, seed)
    sums = rank_sums([c.difficulty.terms() for c in ten])
    return tuple(
        Row(c.draw, c.free, tuple(round(term, 9) for term in c.difficulty.terms()), float(total))
        for c, total in zip(ten, sums, strict=True)
    )


@lru_cache(maxsize=256)
def rows(name: str, seed: int) -> tuple[Row, ...]:
    """The same; those of the default seed are read from the package."""
    known = _table() if seed == DEFAULT_SEED else {}
    return known[name] if name in known else searched(name, seed)


@cache
def _table() -> dict[str, tuple[Row, ...]]:
    text = files("airworthy.scenes.generators.flyingtrust").joinpath(TABLE).read_text(encoding="utf-8")
    return {name: tuple(_row(**row) for row in ten) for name, ten in json.loads(text).items()}


def _row(draw: Sequence[int], free: bool, terms: Sequence[float], rank_sum: float) -> Row:
    return Row((int(draw[0]), int(draw[1])), free, tuple(terms), rank_sum)


def table_text() -> str:
    """Content of `TABLE`, by searching anew."""
    found: dict[str, list[dict[str, Any]]] = {name: [vars(row) for row in searched(name, DEFAULT_SEED)] for name in SCENARIOS}
    body = ",\n".join(
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in ten) + "\n ]" for name, ten in found.items()
    )
    return "{\n" + body + "\n}\n"


def layout_of(name: str, index: SupportsIndex, seed: SupportsIndex = DEFAULT_SEED) -> Layout:
    """Obstacles of a configuration, with their facts.

    The first call for a (name, seed) other than the default seed draws and measures all ten, which takes seconds.

    Args:
        name: One of `SCENARIOS`.
        index: 1 to 10, from easy to difficult.
        seed: 0: the benchmark's own configurations; others are held out.

    Raises:
        UnknownNameError: If there is no such scenario.
        AirworthyError: If index or seed is not an integer, or the index is out of range.
    """
    if name not in SCENARIOS:
        raise unknown_name("scenario", name, SCENARIOS)
    number, seed = checked("index", index, 1, CONFIGURATIONS), checked("seed", seed)
    row = rows(name, seed)[number - 1]
    layout = drawn(name, seed, *row.draw)
    assert layout is not None, (name, seed, row)
    layout.facts.update({f"difficulty_{term}": value for term, value in zip(TERMS, row.terms, strict=True)})
    layout.facts.update(difficulty_rank_sum=row.rank_sum, straight_line_free=float(row.free))
    return layout


def scene_of(name: str, index: SupportsIndex, seed: SupportsIndex = DEFAULT_SEED) -> Scene:
    """The scene of a configuration; arguments and errors as `layout_of`."""
    return build(layout_of(name, index, seed), checked("index", index), checked("seed", seed))
