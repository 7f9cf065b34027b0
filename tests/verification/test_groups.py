"""Every check of a group is run, with its size: what `airworthy verify` asks for, with and without what takes minutes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import gettempdir
from types import FunctionType, ModuleType
from typing import Any

import pytest
from tests.fixtures.snapshots import check_snapshot

import airworthy.verification.gates as gates
import airworthy.verification.geometry as geometry
import airworthy.verification.learning as learning
import airworthy.verification.learning.trainers as trainers
import airworthy.verification.planning.planners as planners
import airworthy.verification.promises as promises
import airworthy.verification.scenes as scenes
import airworthy.verification.sensors as sensors
import airworthy.verification.splats as splats


def test_what_is_restored_goes_on_to_the_same_bytes() -> None:
    assert promises._restore_failures(3) == 0


def test_random_steps_stay_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "vehicle_names", lambda: ["carl", "base_octarotor"])
    monkeypatch.setattr(promises, "_resident", lambda: 1000)
    escapes, grown = promises._soak(2e4)
    assert escapes.name == "Numbers that are not, in 2e+04 random steps of 2 vehicles"
    assert (escapes.measured, grown.measured, grown.aim) == (0.0, 0.0, "at most 1")


class _Asked:
    """Stands for a check: what it was asked with, whether its figures are gathered or it is one."""

    def __init__(self, name: str, given: object) -> None:
        self.text = f"{name}{given}"

    def __iter__(self) -> Iterator[_Asked]:
        return iter((self,))

    def items(self) -> list[Any]:
        return [self]


GROUPS: dict[str, tuple[ModuleType, Callable[..., Iterable[Any]], dict[str, Any]]] = {
    "geometry": (geometry, geometry.geometry_figures, {"data_dir": Path("DATA"), "find_spec": True}),
    "scenes": (scenes, scenes.scene_figures, {"data_dir": Path("DATA"), "_plans": []}),
    "splats": (splats, splats.splat_figures, {"data_dir": None}),
    "gates": (gates, gates.gate_figures, {"_references": Path("DATA")}),
    "search": (gates, gates.search_figures, {}),
    "sensors": (sensors, sensors.sensor_figures, {}),
    "planners": (planners, planners.planner_figures, {}),
    "learning": (trainers, trainers.learning_figures, {"has_torch": True}),
    "sousvide": (learning, learning.sousvide_figures, {"_references": Path("DATA"), "usable_policy": Path("POLICY")}),
    "without_data": (learning, learning.sousvide_figures, {"_references": None, "usable_policy": None}),
    "data": (learning, learning._with_data, {"has_torch": True}),
}


@pytest.mark.parametrize("group", GROUPS)
def test_every_check_of_a_group_is_run_with_its_size(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a check is asked with, its size above all, is the lines on file: without what takes minutes, and with it."""
    module, gathered, answers = GROUPS[group]
    for name in gathered.__code__.co_names:
        if name in answers:
            monkeypatch.setattr(module, name, lambda *_, _answer=answers[name]: _answer)
        elif isinstance(function := getattr(module, name, None), FunctionType):
            monkeypatch.setattr(module, name, lambda *given, _name=function.__name__, **more: _Asked(_name, (given, more)))
    asked = {f"{all_of_it}.{k}": _plain(item) for all_of_it in (False, True) for k, item in enumerate(gathered(all_of_it))}
    check_snapshot(Path(__file__).parent / "snapshots" / f"group_{group}.txt", asked)


def _plain(asked: Any) -> str:
    text = asked.text.replace(gettempdir(), "TEMP").replace("PosixPath", "Path")
    return re.sub(r"<[^>]*_Asked object[^>]*>", "ASKED", re.sub(r"TEMP/\w+", "TEMP", text))
