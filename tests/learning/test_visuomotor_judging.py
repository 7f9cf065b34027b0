"""How a policy is judged and judged again: what it took over all runs, and what lies there whenever one is broken off."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from airworthy.core.errors import AssetError
from airworthy.core.files import write_json
from airworthy.learning.folder_training import ONE_THREAD
from airworthy.learning.visuomotor import judging
from airworthy.learning.visuomotor.config import VisuomotorOptions, VisuomotorProtocol
from airworthy.learning.visuomotor.judging import judge
from airworthy.learning.visuomotor.run import _VisuomotorFolder

OPTIONS = VisuomotorOptions(scene=("hut",), course=("round",), rounds=1)
FIRST, SECOND, THIRD = (VisuomotorProtocol(conditions=("baseline",), flights=count) for count in (2, 3, 4))


class Clock:
    """Time that passes where a test says so [s]."""

    wall = cpu = 0.0

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.cpu

    def run(self, wall: float, cpu: float) -> None:
        self.wall, self.cpu = self.wall + wall, self.cpu + cpu


class Flown:
    """In place of `evaluate`: a flight is a second and two of the processor, and a line of a file; no line is written twice."""

    def __init__(self, clock: Clock):
        self.clock, self.stops_at, self.count = clock, -1, 0

    def __call__(self, config: Any, quiet: bool, step: Callable[[str], None]) -> Any:
        path = Path(config.out) / "flights.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.read_text().split() if path.is_file() else []
        for number in range(len(there), config.flights):
            if number == self.stops_at:
                return SimpleNamespace(interrupted=True, summary={})
            self.clock.run(1.0, 2.0)
            self.count += 1
            path.write_text(f"{path.read_text() if path.is_file() else ''}{config.flights}:{number}\n")
            step(f"flight_{number}")
        numbers = {"collisions": 0, "tracking_error_m": 0.1, "proximity_percent": 99.0, "cause": "", "outcome": "success"}
        row = {"course": config.course, "condition": "baseline", "family": "rigid", **numbers}
        return SimpleNamespace(interrupted=False, summary={"flights": [row] * config.flights})


@pytest.fixture
def flown(monkeypatch: pytest.MonkeyPatch) -> Flown:
    found = Flown(Clock())
    monkeypatch.setattr(judging, "evaluate", found)
    monkeypatch.setattr(judging, "time", found.clock)
    return found


def flights_in(folder: Path) -> list[str]:
    return (folder / "course_0" / "flights.txt").read_text().split()


# ---- What it took ------------------------------------------------------------------------------------------------------------


def test_what_judging_took_counts_over_all_runs(flown: Flown, tmp_path: Path) -> None:
    flown.stops_at = 1
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path, OPTIONS, SECOND, quiet=True)
    # Another process, whose clocks know nothing of this one's; it is killed within its second flight, the first being kept.
    flown.clock.wall, flown.clock.cpu, flown.stops_at = 1000.0, 5.0, 2
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path, OPTIONS, SECOND, quiet=True)
    flown.clock.wall, flown.clock.cpu, flown.stops_at = 50.0, 70.0, -1
    found = judge(tmp_path, OPTIONS, SECOND, quiet=True)
    assert found["seconds"] == {"evaluate_s": 3.0, "evaluate_cpu_s": 6.0}
    assert flown.count == 3
    assert flights_in(tmp_path / "evaluate") == ["3:0", "3:1", "3:2"]


def test_what_a_block_took_is_kept_with_it_whoever_kills_the_run(
    flown: Flown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written behind a kill: what counts is what lay there when the last block was kept."""
    kept: list[Any] = []

    def noted(path: Path, value: Any) -> None:
        kept.append((value["seconds"], value["cpu_seconds"]))

    monkeypatch.setattr(judging, "write_json", noted)
    judge(tmp_path, OPTIONS, FIRST, quiet=True)
    assert kept == [(0.0, 0.0), (1.0, 2.0), (2.0, 4.0), (2.0, 4.0)]


def test_a_first_judgement_that_is_asked_for_otherwise_begins_anew(flown: Flown, tmp_path: Path) -> None:
    flown.stops_at = 1
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path, OPTIONS, FIRST, quiet=True)
    flown.stops_at = -1
    assert judge(tmp_path, OPTIONS, SECOND, quiet=True)["seconds"]["evaluate_s"] == 3.0
    assert flights_in(tmp_path / "evaluate") == ["3:0", "3:1", "3:2"]


def test_a_note_that_says_nothing_is_refused(flown: Flown, tmp_path: Path) -> None:
    (tmp_path / "evaluate").mkdir()
    write_json(tmp_path / "evaluate" / "judging.json", {"protocol": {}, "seconds": "long"})
    with pytest.raises(AssetError, match=r"judging\.json' does not say how flights are judged: delete '.*evaluate'"):
        judge(tmp_path, OPTIONS, FIRST, quiet=True)


# ---- Judged again ------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Judged(_VisuomotorFolder):
    """A training that is finished: nothing is read of its policy, and its page is a line."""

    def data(self, folder: Path) -> dict[str, Any]:
        self.folder = folder
        return {}

    def read(self, folder: Path) -> Any:
        return None

    def report(self, folder: Path, found: Any, *_: Any) -> None:
        (folder / "report.html").write_text(f"page of {found['protocol']['flights']}")


def training(protocol: VisuomotorProtocol) -> Judged:
    return Judged(options=OPTIONS, run=ONE_THREAD, command="", quiet=True, protocol=protocol, begun=0.0)


@pytest.fixture
def finished(flown: Flown, tmp_path: Path) -> Path:
    """A folder that was judged by the first protocol."""
    folder = tmp_path / "policy"
    folder.mkdir()
    identity = training(FIRST).identity(folder)
    write_json(folder / "training.json", {**identity, "machine": {}})
    (folder / "metrics.jsonl").write_text('{"iteration": 1}\n')
    found = {"iterations": 1, "protocol": identity["protocol"], **judge(folder, OPTIONS, FIRST, quiet=True)}
    training(FIRST).report(folder, found)
    write_json(folder / "summary.json", found)
    return folder


def told(folder: Path) -> tuple[int, str, int]:
    """Of how many flights summary, page and flights are."""
    summary = json.loads((folder / "summary.json").read_text())
    page = (folder / "report.html").read_text()
    return summary["protocol"]["flights"], page, int(flights_in(folder / "evaluate")[0].partition(":")[0])


def names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir() if item.name.startswith("evaluate")}


def test_a_second_judgement_takes_the_place_of_the_first(flown: Flown, finished: Path) -> None:
    assert training(SECOND).train(finished).figures["seconds"] == {"evaluate_s": 3.0, "evaluate_cpu_s": 6.0}
    assert told(finished) == (3, "page of 3", 3)
    assert names(finished) == {"evaluate"}
    before = flown.count
    training(SECOND).train(finished)
    assert flown.count == before


def test_a_second_judgement_that_is_stopped_leaves_the_first_and_goes_on(flown: Flown, finished: Path) -> None:
    flown.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        training(SECOND).train(finished)
    assert told(finished) == (2, "page of 2", 2)
    flown.stops_at, flown.count = -1, 0
    done = training(SECOND).train(finished)
    # Two of three lay there, and the time that they took with them.
    assert flown.count == 1
    assert done.figures["seconds"]["evaluate_s"] == 3.0
    assert told(finished) == (3, "page of 3", 3)
    assert names(finished) == {"evaluate"}


def test_flights_of_a_judgement_that_nobody_wants_any_more_are_not_taken_for_another(flown: Flown, finished: Path) -> None:
    flown.stops_at = 2
    with pytest.raises(KeyboardInterrupt):
        training(SECOND).train(finished)
    flown.stops_at = -1
    assert training(THIRD).train(finished).figures["seconds"]["evaluate_s"] == 4.0
    assert flights_in(finished / "evaluate") == ["4:0", "4:1", "4:2", "4:3"]
    assert names(finished) == {"evaluate"}


def test_a_second_judgement_killed_at_any_moment_is_lost_nowhere(
    flown: Flown, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is copied before each of its changes, as a kill would leave it: flights, page and summary are of one
    judgement when it is next opened by the first protocol, and the second flies what was not flown, and no more.
    """
    copies = copied_before_changes(finished, tmp_path / "copies", monkeypatch)
    training(SECOND).train(finished)
    monkeypatch.undo()
    monkeypatch.setattr(judging, "evaluate", flown)
    monkeypatch.setattr(judging, "time", flown.clock)
    assert len(copies) > 10
    for number, copy in enumerate(copies):
        whole = told_by(copy, "summary.json")
        other = tmp_path / f"other_{number}"
        shutil.copytree(copy, other)
        training(FIRST if whole == 2 else SECOND).train(copy)
        assert told(copy) == (whole, f"page of {whole}", whole), number
        there = sum(len(set(path.read_text().split()) & {"3:0", "3:1", "3:2"}) for path in other.rglob("flights.txt"))
        flown.count = 0
        training(SECOND).train(other)
        assert told(other) == (3, "page of 3", 3), number
        assert flown.count == 3 - there, number
        assert names(other) == {"evaluate"}, number


def told_by(folder: Path, name: str) -> int:
    return int(json.loads((folder / name).read_text())["protocol"]["flights"])


def copied_before_changes(folder: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Copies of a folder, one before each change of it from here on."""
    copies: list[Path] = []

    def watch(owner: Any, name: str) -> None:
        change = getattr(owner, name)

        def changed(*given: Any, **named: Any) -> Any:
            copies.append(into / str(len(copies)))
            shutil.copytree(folder, copies[-1], ignore=shutil.ignore_patterns(".airworthy.lock"))
            return change(*given, **named)

        monkeypatch.setattr(owner, name, changed)

    for owner, name in ((Path, "rename"), (os, "replace"), (shutil, "rmtree"), (os, "rmdir"), (Path, "write_text")):
        watch(owner, name)
    return copies
