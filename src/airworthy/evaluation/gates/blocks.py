"""The benchmark's work in parts, each a pure function of the settings: courses, flights, random courses, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airworthy.evaluation.gates.config import GatesConfig, course_of
from airworthy.evaluation.gates.contestants import Contestant
from airworthy.evaluation.gates.courses import course_content, flights_content, random_content
from airworthy.evaluation.gates.predicting import errors_content

__all__ = ["Block", "blocks_of", "worked"]


@dataclass(frozen=True)
class Block:
    """A part of the work."""

    name: str
    kind: str
    """"course", "flights", "random" or "errors"."""
    who: int = 0
    """Number of the contestant."""
    course: str = ""
    family: str = ""
    first: int = 0
    count: int = 0


def blocks_of(config: GatesConfig, contestants: Sequence[Contestant]) -> list[Block]:
    """Every block, in order: all of a course, then the next, so that what is there can be compared early."""
    made = []
    everyone = range(len(contestants))
    for word in config.courses:
        name = course_of(word).name
        for who in everyone:
            made.append(Block(f"{_who(who)}course-{name}", "course", who, word))
            made += [Block(f"{_who(who)}flights-{name}-{family}", "flights", who, word, family) for family in config.families]
    for first in range(0, config.random, config.block):
        count = min(config.block, config.random - first)
        made += [Block(f"{_who(who)}random-{first:06d}", "random", who, first=first, count=count) for who in everyone]
    if config.off_grid:
        asked = [who for who in everyone if contestants[who].truth is not None]
        made += [Block(f"{_who(who)}errors", "errors", who, count=config.off_grid) for who in asked]
    return made


def _who(number: int) -> str:
    return f"beside{number}-" if number else ""


def worked(block: Block, config: GatesConfig, contestants: Sequence[Contestant]) -> dict[str, Any]:
    """Do one block.

    Args:
        block: Which.
        config: Settings.
        contestants: All of them, `--network` first.
    """
    own = contestants[block.who]
    if block.kind == "course":
        # What other planners make of a course does not depend on who predicts: it is found once.
        return course_content(block.course, config, own.predictor, others=block.who == 0)
    if block.kind == "flights":
        return flights_content(block.course, block.family, config, own.predictor)
    if block.kind == "random":
        return random_content(range(block.first, block.first + block.count), config, own.predictor, others=block.who == 0)
    return errors_content(block.count, config.seed, own)
