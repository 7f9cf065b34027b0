"""`docs/concepts/control.md`: its code runs, its table lists every level, and each example hovers or moves as it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from airworthy.control.kernel import LEVELS
from airworthy.control.levels import command_fields
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import hover_speed, vehicle

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "concepts" / "control.md").read_text()
LINES = [line for line in PAGE.splitlines() if re.match(r"\| `[a-z_:]+` \| (\d+|rotors) ", line)]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in LINES]


def test_the_code_runs() -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/concepts/control.md", "exec"), names)


def test_every_level_is_listed_with_its_width() -> None:
    assert sorted(row[0].strip("`") for row in ROWS) == sorted(LEVELS)
    for name, width, _, _ in ROWS:
        level = name.strip("`")
        assert LEVELS[level].rows == (0 if width == "rotors" else int(width))
        assert len(command_fields(level.partition(":")[0])) == LEVELS[level].width(4)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_its_example_flies(row: list[str]) -> None:
    """Half a second from hover: nothing falls, and what is asked to move has begun to."""
    level = row[0].strip("`")
    namespace = {"hover_speed": hover_speed, "vehicle": vehicle}
    command = np.asarray(eval(row[3].strip("`"), {"__builtins__": {}}, namespace), float)
    assert len(command) == LEVELS[level].width(4)
    item = vehicle("lmf2" if level == "tracking:crazyflie" else "flightgoggles")
    sim = Simulator(item, SimulatorConfig(level=level, wrench_noise=False, disturbance=False))
    sim.reset(position=(0.0, 0.0, 1.5))
    for _ in range(50):
        sim.step(command)
    assert not sim.diverged.any()
    if level != "tracking:crazyflie":  # whose commands are those of a Crazyflie's motors
        assert abs(sim.position[0, 2] - 1.5) < 0.2
    moved = {"acceleration": 0.05, "velocity": 0.05, "velocity_steering": 0.05}.get(level, 0.0)
    assert sim.position[0, 0] >= moved
