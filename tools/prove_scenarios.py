"""Prove that every configuration of the FLYINGTRUST scenarios can be solved, and that difficulty rises from 1 to 10.

    python tools/prove_scenarios.py                 all scenarios, default seed
    python tools/prove_scenarios.py maze --seed 7

A configuration is solvable when a grid search with cells of 0.1 m finds a way from start to goal that stays 0.30 m away from
obstacles, outer walls, floor and ceiling.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.scenes.generators.flyingtrust.layout import straight_clearance
from airworthy.scenes.generators.flyingtrust.parameters import COLLISION_RADIUS, CONFIGURATIONS, RESOLUTION, SCENARIOS
from airworthy.scenes.generators.flyingtrust.scenario import DEFAULT_SEED, TABLE, layout_of, searched, solvable

__all__ = ["Proof", "main", "prove", "table_text"]

_HEADING = ("scenario", "#", "obstacles", "detour", "tightness", "occlusion", "turn", "rank sum", "way [m]", "straight")
_WIDTHS = (16, 2, 9, 6, 9, 9, 5, 8, 8, 8)


@dataclass(frozen=True)
class Proof:
    """What was found about one configuration."""

    scenario: str
    index: int
    facts: dict[str, float]
    path_length: float
    """Of the shortest way on the grid [m]; NaN: there is none."""
    straight_clearance: float
    """Least distance of the straight line to an obstacle [m]."""

    @property
    def straight_flight(self) -> bool:
        """An ideal point with the collision radius that flies straight arrives."""
        return self.straight_clearance >= COLLISION_RADIUS


def table_text() -> str:
    """Content of `TABLE`, by searching anew."""
    found: dict[str, list[dict[str, Any]]] = {name: [vars(row) for row in searched(name, DEFAULT_SEED)] for name in SCENARIOS}
    body = ",\n".join(
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in ten) + "\n ]" for name, ten in found.items()
    )
    return "{\n" + body + "\n}\n"


def prove(name: str, index: int, seed: int = DEFAULT_SEED, resolution: float = RESOLUTION) -> Proof:
    """Examine one configuration."""
    layout = layout_of(name, index, seed)
    clearance = straight_clearance(layout.obstacles(), layout.stated)
    return Proof(name, index, layout.facts, solvable(layout, resolution), clearance)


def _line(proof: Proof) -> str:
    facts = proof.facts
    count = facts.get("obstacles", facts.get("voxels", 0.0))
    terms = (facts["difficulty_detour"], facts["difficulty_tightness"], facts["difficulty_occlusion"], facts["difficulty_turn"])
    cells = [proof.scenario, str(proof.index), f"{count:.0f}", *(f"{t:.3f}" for t in terms)]
    cells += [f"{facts['difficulty_rank_sum']:.1f}", f"{proof.path_length:.1f}", "free" if proof.straight_flight else "blocked"]
    return "  ".join(cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(cells, _WIDTHS, strict=True)))


def _lines(names: Sequence[str], seed: int, resolution: float, wrong: list[str]) -> Iterator[str]:
    yield "  ".join(h.ljust(w) if k == 0 else h.rjust(w) for k, (h, w) in enumerate(zip(_HEADING, _WIDTHS, strict=True)))
    for name in names:
        last, free = 0.0, 0
        for index in range(1, CONFIGURATIONS + 1):
            proof = prove(name, index, seed, resolution)
            yield _line(proof)
            free += proof.straight_flight
            if math.isnan(proof.path_length) or proof.facts["difficulty_rank_sum"] < last:
                wrong.append(f"{name}:{index}")
            last = proof.facts["difficulty_rank_sum"]
        low, high = SCENARIOS[name].free
        if not low <= free <= high:
            wrong.append(f"{name}: straight flight succeeds in {free}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a configuration breaks a rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), help="names of scenarios; default: all")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="0: the benchmark's own configurations")
    parser.add_argument("--resolution", type=float, default=RESOLUTION, help="edge of a cell [m]; 0.1 or 0.2")
    parser.add_argument("--write", type=Path, help=f"search the default seed anew and write the table here ({TABLE})")
    options = parser.parse_args(arguments)
    if options.write is not None:
        write_text(options.write, table_text())
        return 0
    wrong: list[str] = []
    for line in _lines(options.scenarios, options.seed, options.resolution, wrong):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    sys.stdout.write("all solvable, difficulty rises\n" if not wrong else f"broken: {', '.join(wrong)}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
