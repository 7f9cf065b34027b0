"""Writes docs/howto/idle_options.md: which option of which command is refused when, from the rules that refuse it.

python tools/idle_options_page.py docs/howto/idle_options.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from airworthy.benchmarks.fly.config import FLY_RULES, PLANNER_RULES
from airworthy.benchmarks.navigation.config import NAVIGATION_RULES
from airworthy.benchmarks.tracking.config import IDLE_RULES as EVALUATE_RULES
from airworthy.bridges.server import SERVE_RULES
from airworthy.capture.alignment.align import IDLE_RULES as LEVEL_RULES
from airworthy.capture.filming.film import IDLE_RULES as FILM_RULES
from airworthy.capture.images import IDLE_RULES as READING_RULES
from airworthy.capture.rendering import IDLE_RULES as CAPTURE_RULES
from airworthy.capture.training.options import IDLE_RULES as SPLAT_RULES
from airworthy.capture.video.options import IDLE_RULES as VIDEO_RULES
from airworthy.cli.capture.align import ALIGN_RULES
from airworthy.cli.courses import VALIDATE_RULES
from airworthy.cli.courses.drawing import DRAW_RULES
from airworthy.cli.learning.synthesize import PLACE_RULES
from airworthy.cli.learning.train_hover import ROTORS_RULES
from airworthy.cli.learning.train_task import TASK_RULES
from airworthy.cli.scenes import ACTOR_RULES, EXPORT_RULES, MATERIAL_RULES, RENDER_RULES
from airworthy.cli.vehicle_bench import BENCH_RULES
from airworthy.cli.vehicle_identify import IDENTIFY_RULES
from airworthy.cli.view import RULES as VIEW_RULES
from airworthy.core.idle_options import IdleRule, option_name
from airworthy.gates.benchmark.config import IDLE_RULES as GATES_RULES
from airworthy.gates.labels.config import IDLE_RULES as LABEL_RULES
from airworthy.gates.training.options import IDLE_RULES as BOUNDARY_RULES
from airworthy.learning.avoid.config import IDLE_RULES as AVOID_RULES
from airworthy.learning.datasets.config import IDLE_RULES as DATASET_RULES
from airworthy.learning.datasets.job import CLUSTER_WORKS
from airworthy.learning.gradient.config import IDLE_RULES as HOVER_RULES
from airworthy.learning.native_ppo.config import IDLE_RULES as MOTOR_COMMAND_RULES
from airworthy.learning.svnet.options import IDLE_RULES as SVNET_RULES
from airworthy.learning.svnet.options import RUN_RULES
from airworthy.learning.task_training.config import IDLE_RULES as TASK_CONFIG_RULES
from airworthy.learning.visuomotor.config import IDLE_RULES as VISUOMOTOR_RULES
from airworthy.race.benchmark.job import IDLE_RULES as RACE_RULES
from airworthy.race.learned.config import IDLE_RULES as RACE_POLICY_RULES
from airworthy.scenes.catalogue import IDLE_RULES as SOURCE_RULES

COMMANDS: dict[str, Sequence[IdleRule]] = {
    "airworthy fly": (*FLY_RULES, *PLANNER_RULES),
    "airworthy serve": SERVE_RULES,
    "airworthy courses validate": VALIDATE_RULES,
    "airworthy courses draw": DRAW_RULES,
    "airworthy evaluate": EVALUATE_RULES,
    "airworthy synthesize": (*DATASET_RULES, CLUSTER_WORKS, *PLACE_RULES),
    "airworthy synthesize gates": LABEL_RULES,
    "airworthy train hover": (*HOVER_RULES, *ROTORS_RULES),
    "airworthy train motor_command": MOTOR_COMMAND_RULES,
    "airworthy train race": RACE_POLICY_RULES,
    "airworthy train avoid": AVOID_RULES,
    "airworthy train visuomotor": VISUOMOTOR_RULES,
    "airworthy train TASK": (*TASK_CONFIG_RULES, *TASK_RULES),
    "airworthy train svnet": (*SVNET_RULES, *RUN_RULES),
    "airworthy train boundary": BOUNDARY_RULES,
    "airworthy bench navigation": NAVIGATION_RULES,
    "airworthy bench gates": GATES_RULES,
    "airworthy bench race": RACE_RULES,
    "airworthy scenes show, validate, export, render": SOURCE_RULES,
    "airworthy scenes export": (*EXPORT_RULES, *ACTOR_RULES),
    "airworthy scenes render": (*RENDER_RULES, *ACTOR_RULES),
    "airworthy scenes materials": MATERIAL_RULES,
    "airworthy capture show, align, train": READING_RULES,
    "airworthy capture render": CAPTURE_RULES,
    "airworthy capture align": (*ALIGN_RULES, *LEVEL_RULES),
    "airworthy capture train": SPLAT_RULES,
    "airworthy vehicles bench": BENCH_RULES,
    "airworthy vehicles identify": IDENTIFY_RULES,
    "airworthy view": VIEW_RULES,
    "airworthy capture video": VIDEO_RULES,
    "airworthy capture film": FILM_RULES,
}
"""Command -> its rules."""

HEAD = """# Options that change nothing

An option that somebody gives and nothing reads is an error: one sentence, exit code 2, nothing flown and nothing written.
The same holds in Python, where the same configurations are checked. An option counts as given where it differs from its
default; a key of random numbers (`--seed`) only where a table names it.

*Written by `python tools/idle_options_page.py docs/howto/idle_options.md` from the rules that refuse; a test compares.*
"""

TAIL = """
## Refused with a sentence of their own

| command | option | changes nothing |
| --- | --- | --- |
| `airworthy fly` | `--gains`, `--gain` | for pilots without the geometric law ([control](../concepts/control.md)) |
| `airworthy fly` | `--gain NAME=...` | for a gain or limit that the law does not read at the pilot's level |
| `airworthy fly` | `--priority` | where nothing is allocated: planners, semi-kinematic dynamics, laws that command rotors |
| `airworthy fly` | `--speed`, `--acceleration` | for a course with its own times, which is slower already |
| `airworthy fly` | `--randomize drag=`, `lag=` | where no vehicle has drag, or rotors that lag; in semi-kinematic dynamics |
| `airworthy bench smoke` | `--quick` | always: it is quick by itself |
| `airworthy bench sensitivity` | `--axes` | for pilots to whom what an axis makes worse is nothing (as of `navigation`) |
| `airworthy bench report` | `--why`, `--no-pictures` | of a sensitivity study, whose report has neither |

`airworthy film`, `tune`, `train motor_command`, `train adaptation`, `bench timing`, `bench arena`, `synthesize check`,
`card` and `export`, and `capture marker` and `export` have no option that others could make idle.
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_section(command, rules) for command, rules in COMMANDS.items()) + TAIL


def _section(command: str, rules: Sequence[IdleRule]) -> str:
    rows = "\n".join(_rows(rules))
    return f"\n## `{command}`\n\n| option | changes nothing | so |\n| --- | --- | --- |\n{rows}\n"


def _rows(rules: Sequence[IdleRule]) -> Iterator[str]:
    for rule in rules:
        options = ", ".join(f"`{option_name(name)}`" for name in rule.options)
        yield f"| {options} | {rule.why} | {rule.remedy or 'leave it out'} |"


def main(argv: list[str]) -> int:
    """Write the page to the path that is given."""
    Path(argv[0]).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
