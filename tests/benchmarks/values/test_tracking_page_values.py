"""What the page of an evaluation takes from the flights on disk, and which pilots its words name.

Modules: airworthy.benchmarks.tracking.job, .methods.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import PLACE, stage
from tests.fixtures.snapshots import check_snapshot
from tests.fixtures.transcripts import Transcript

from airworthy.benchmarks.tracking import conditions, job, methods
from airworthy.benchmarks.tracking.block import ConditionBlock, Setting
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.figures import Series
from airworthy.geometry import Box
from airworthy.scenes import Instance, Scene
from airworthy.simulation import FlightTable

FILES = Path(__file__).parent / "snapshots" / "tracking"
SERIES = [
    Series("mpc", "rigid", "#111", True),
    Series("svnet", "rigid", "#222", True),
    Series("svnet", "semi_kinematic", "#333", False),
]
MAIN = conditions.expanded(("baseline", "payload", "noise:extreme", "wind"))


def table(rows: tuple[int, ...], tells: bool, unknown: int = 0) -> FlightTable:
    """Flights of so many rows; those that tell their mass tell nothing in the first rows."""
    env = np.repeat(np.arange(len(rows)), rows)
    t = np.concatenate([np.arange(n) for n in rows]) * 0.05
    columns: dict[str, Any] = {"env": env, "t": t, "status": np.zeros(len(t), np.int8)}
    for axis, scale in zip("xyz", (1.5, -0.4, 0.2), strict=True):
        columns[f"position_{axis}_m"] = scale * t + 0.1 * env
        columns[f"velocity_{axis}_m_s"] = columns[f"rate_{axis}_rad_s"] = 0.0 * t
    for axis, value in zip("xyzw", (0.0, 0.0, 0.0, 1.0), strict=True):
        columns[f"attitude_{axis}"] = value + 0.0 * t
    if tells:
        columns["estimate_mass_kg"] = np.where(t < 0.05 * unknown, 0.0, 1.0 + t)
        columns["estimate_force_n"] = np.where(t < 0.05 * unknown, 0.0, 5.0 + env)
    return FlightTable.from_columns(columns)


def block(method: str, family: str, condition: str, first: int, count: int) -> ConditionBlock:
    return ConditionBlock(method, family, conditions.condition(condition), "line", PLACE, first, count)


class Kept:
    """A store of six blocks of one or two flights."""

    def __init__(self) -> None:
        self.blocks = [
            block("mpc", "rigid", "baseline", 0, 2),
            block("svnet", "rigid", "baseline", 0, 2),
            block("svnet", "rigid", "baseline", 2, 1),
            block("svnet", "rigid", "payload", 0, 2),
            block("svnet", "rigid", "noise:extreme", 0, 2),
            block("svnet", "semi_kinematic", "wind", 0, 1),
        ]
        lengths = ((6, 9), (8, 5), (7,), (150, 4), (5, 5), (6,))
        names = [item.name for item in self.blocks]
        self.tables = {
            name: table(rows, k > 0, 99 if k == 5 else k) for k, (name, rows) in enumerate(zip(names, lengths, strict=True))
        }
        self.told: dict[str, list[dict[str, Any]]] = {
            name: [
                {
                    "outcome": ("success", "collision")[(n + k) % 2],
                    "samples": (size, 0, size - 1)[(n + k) % 3],
                    "ratio_true": 5.0 - 0.1 * k - 0.05 * n,
                }
                for n, size in enumerate(rows)
            ]
            for k, (name, rows) in enumerate(zip(names, lengths, strict=True))
        }

    def flights(self, name: str) -> FlightTable:
        return self.tables[name]

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.told[name]

    def first_image(self, name: str) -> Path | None:
        return Path(f"{name}.png") if name.startswith("svnet") and "extreme" not in name else None


def place() -> Scene:
    """Besides the post and the wall of the stage: boxes above, under, beside, and at the limits of heights."""
    base = stage(0, 0)
    box = Box((0.2, 0.1, 0.15))
    at = {
        "above": (0.5, 0.2, 2.2),
        "under": (0.5, 0.2, 0.1),
        "reaches": (0.5, 0.2, 0.2),
        "hangs": (0.6, 0.2, 2.1),
        "just above": (0.7, 0.2, 2.15),
        "just under": (0.8, 0.2, 0.15),
        "far in y": (0.5, 9.0, 1.0),
        "far in x": (-9.0, 0.2, 1.0),
    }
    more = tuple(Instance("box", where, semantic="thing", name=name) for name, where in at.items())
    outside = Instance("box", (0.5, 0.4, 1.0), semantic="building", name="house")
    return Scene(PLACE, shapes={**base.shapes, "box": box}, instances=(*base.instances, *more, outside), bounds=base.bounds)


def test_a_panel_has_paths_to_their_ends_and_what_stands_at_flying_height() -> None:
    kept = Kept()
    setting = Setting(conditions.condition("baseline"), "line", PLACE, {PLACE: place()})
    found = {}
    for name, mine in (("one", kept.blocks[:1]), ("two", kept.blocks[1:3]), ("long", kept.blocks[3:4]), ("none", [])):
        panel = job._plan(mine[0].condition if mine else MAIN[0], setting, mine, kept)  # type: ignore[arg-type]
        found[name] = {
            "title": panel.title,
            "paths": [[outcome, path] for outcome, path in panel.paths],
            "things": [list(corners) for corners in panel.things],
            "box": list(panel.box),
            "course": [panel.course[0], panel.course[-1], len(panel.course)],
        }
    check_snapshot(FILES / "plan_panels.txt", found, rtol=1e-6)


def test_panels_of_a_page_are_by_pilot_family_and_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    seen: dict[str, Any] = {}
    monkeypatch.setattr(job, "_bare_setting", lambda item, config, known: item.name)
    monkeypatch.setattr(job, "_plan", lambda item, setting, mine, store: [item.name, setting, [one.name for one in mine]])
    monkeypatch.setattr(job, "markup", lambda text: text)
    monkeypatch.setattr(job, "figure_plans", lambda plans, name, words: seen.update({name: [words, *plans]}) or name)
    config = EvaluateConfig(course="line", scene=PLACE)
    seen["figures"] = job._plans(config, MAIN, kept.blocks, kept, SERIES)  # type: ignore[arg-type]
    seen["nothing"] = job._plans(config, MAIN, [], kept, SERIES)  # type: ignore[arg-type]
    monkeypatch.setattr(job, "PLANS_MAX", 1)
    seen["only the first"] = job._plans(config, MAIN, kept.blocks, kept, SERIES)  # type: ignore[arg-type]
    monkeypatch.setattr(job, "figure_estimates", lambda panels: [[one.title, *map(list, one.lines)] for one in panels])
    seen["told"] = job._estimates(MAIN, kept.blocks, kept, SERIES)  # type: ignore[arg-type]
    seen["nobody told"] = job._estimates(MAIN, kept.blocks, kept, SERIES[::2])  # type: ignore[arg-type]
    monkeypatch.setattr(job, "_jpeg", lambda path: path.name)
    seen["seen"] = job._first_pictures(MAIN, kept.blocks, kept)  # type: ignore[arg-type]
    check_snapshot(FILES / "page_parts.txt", seen, rtol=1e-6)


def test_a_bare_setting_has_neither_splats_nor_people(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(job, "replace", lambda one, **changes: (one, changes))
    monkeypatch.setattr(job, "scene", lambda name, unknown: read.append(name) or f"scene {name}")
    monkeypatch.setattr(job, "Setting", lambda *given: list(given))
    known: dict[str, Any] = {}
    config = EvaluateConfig(course="line", scene=PLACE)
    for _ in range(2):
        _, course, name, shared = job._bare_setting(MAIN[0], config, known)  # type: ignore[misc]
        assert (course, name, shared) == ("line", PLACE, known)
    assert read == [PLACE]
    assert known == {PLACE: (f"scene {PLACE}", {"clouds": {}, "splats": ()})}
    (item, changes), *_ = job._bare_setting(MAIN[1], config, known)  # type: ignore[misc]
    assert item is MAIN[1]
    assert changes == {"light": 1.0, "people": 0}


OWN = """
class Steady:
    name, level, observes = "steady", "{level}", ()

    def command(self, observation):
        return observation
"""


def test_which_pilots_words_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = Transcript(capsys, {str(tmp_path): "FOLDER"})

    def words(*tokens: str) -> list[list[Any]]:
        found = methods.methods_of(tokens)
        return [[one.name, one.senses, one.sensors is None, one.variant, sorted(one.identity)] for one in found]

    for name, level in (("right", "rate_thrust"), ("wrong", "rotor")):
        (tmp_path / f"{name}.py").write_text(OWN.format(level=level), encoding="utf-8")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    tokens: tuple[tuple[str, ...], ...] = (
        ("mpc",),
        ("svnet",),
        ("mpc", "svnet"),
        ("svnet", "svnet"),
        ("svnet:",),
        ("svnet:nowhere",),
        ("mpc:x",),
        ("policy",),
        ("policy:x",),
        ("svnett",),
        (f"{right}:Steady",),
        (f"{wrong}:Steady",),
        (f"{right}:Nobody",),
        (f"{tmp_path / 'missing.py'}:Steady",),
        ("mpc", "mpc"),
        (),
    )
    for given in tokens:
        told.run(" ".join(given).replace(str(tmp_path), "FOLDER") or "none", lambda given=given: words(*given))
    told.check(FILES / "words.txt")
