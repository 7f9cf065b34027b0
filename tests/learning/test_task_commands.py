"""`airworthy tasks`, and the table of tasks in the documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.learning.environments.tasks import SHIPPED

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "reinforcement_learning.md"


def test_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {task.name for task in SHIPPED} <= set(rows)  # other tests register their own
    assert rows["position_setpoint_velocity"]["commands"] == "velocity"
    assert rows["l2f_position"]["curriculum"]
    assert all(row["description"].endswith(".") for name, row in rows.items() if "test" not in name)
    assert main(["tasks", "list"]) == 0
    assert "px4_motor_command" in capsys.readouterr().out


def test_a_task_is_shown_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "show", "recovery", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["options"]["rate_max"] == 10.0
    assert main(["tasks", "show", "recovery"]) == 0
    assert re.search(r"rate_max +10.0", capsys.readouterr().out)
    assert main(["tasks", "show", "recover"]) == 2
    assert "Unknown learning task 'recover'" in capsys.readouterr().err


def test_the_documents_name_every_task() -> None:
    table = HOWTO.read_text(encoding="utf-8").split("## Tasks")[1].split("##")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [task.name for task in SHIPPED]
