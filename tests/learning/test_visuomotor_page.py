"""The page of a policy that sees, and its summary: verdict, flights, seconds, steps and pictures as they were."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from airworthy.learning.timed_training import read_metrics
from airworthy.learning.visuomotor.report import learning_curves, step_cells, write_visuomotor_report
from airworthy.learning.visuomotor.step_times import stage_seconds
from airworthy.learning.visuomotor.training import VisuomotorTraining

IMITATED = {"pairs": 8_000, "error": 0.4, "step_s": 61.7, "step_cpu_s": 110.0, "iteration": 1, "wall_s": 60.0}
IMITATED |= {"seconds": {"data": 40.0, "heads": 20.0}, "cpu_seconds": {"data": 75.0, "heads": 33.0}}
FLOWN = {"pairs": 9_500, "error": 0.3, "step_s": 30.2, "step_cpu_s": 55.0, "iteration": 2, "wall_s": 90.0, "flights": 16}
FLOWN |= {"alone": 11, "tracking_error_m": 0.123, "helped_percent": 4.56}
FLOWN |= {"seconds": {"flights": 20.0, "heads": 10.0}, "cpu_seconds": {"flights": 31.0, "heads": 17.0}}
LOST = {**FLOWN, "iteration": 3, "wall_s": 150.0, "pairs": 11_000, "alone": 0, "tracking_error_m": None}


def row(condition: str, successes: int, error: float | None, ended: list[str]) -> dict[str, Any]:
    return {
        "course": "round", "places": 1, "condition": condition, "family": "semi_kinematic", "flights": 20,
        "successes": successes, "interval_percent": [12.4, 98.6], "collisions": 3, "tracking_error_m": error,
        "proximity_percent": 87.654, "ended": ended, "folder": "evaluate/course_0",
    }  # fmt: skip


def summary(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "scene": "my <hut>", "courses": ["round"], "fit": False, "verdict": "no, since 3 of 20 flights failed.",
        "training_wall_s": 150.0, "training_cpu_s": 275.5, "pairs": 11_000, "rounds": 2, "stopped_by": "clock", "places": 1,
        "judged_places": 1, "steps": [IMITATED, FLOWN, LOST], "options": {"minutes": 10.0, "scene": ["my <hut>"]},
        "flights": [], "conditions": [row("baseline", 20, 0.051, []), row("drones", 17, 0.149, ["crash: floor", "late: time"])],
        "seconds": {"data_s": 40.0, "data_cpu_s": 75.0, "evaluate_s": 30.0, "evaluate_cpu_s": 44.5},
        "command": "airworthy train",
        "hardware": {"cpu": "a core", "system": "Linux", "python": "3.11", "load_average": None}, "machine": {"threads": 2},
    }  # fmt: skip
    return found | changes


def written(folder: Path, found: dict[str, Any]) -> str:
    return write_visuomotor_report(folder, folder / "report.html", found, found["steps"]).read_text(encoding="utf-8")


def cells(page: str, word: str) -> list[str]:
    """The cells of the table's row that begins with a word."""
    return next(
        found
        for text in re.findall(r"<tr>(.*?)</tr>", page)
        if (found := re.findall(r"<td>(.*?)</td>", text)) and word in found[:2]
    )


def test_verdict_flights_and_seconds_stand_as_they_were(tmp_path: Path) -> None:
    page = written(tmp_path, summary())
    assert page.index("No, since 3 of 20 flights failed.") < page.index("<table ")
    assert "my &lt;hut&gt;" in page
    assert "<hut>" not in page
    assert cells(page, "drones") == [
        "round", "drones", "semi kinematic", "17 of 20", "12 to 99", "14.9", "87.7", "3", "crash: floor"
    ]  # fmt: skip
    assert "37 of 40 flights" in page
    # 150 s of learning and 30 s of judging; their processor seconds alike.
    text = re.sub(r"<[^>]+>|&nbsp;", " ", page)
    assert re.search(r"all of it took\s+3\.0\s+min", text)
    assert "320 s of processor time" in text
    assert re.search(r"tracking error\s+15\s+cm", text)
    assert "40.0 s, 75.0 s of processor time" in page
    assert "30.0 s, 44.5 s of processor time" in page
    assert "would not have ended within the minutes" in page
    assert 'href="evaluate/course_0/report.html"' in page
    assert "It learnt in" not in page


def test_steps_tell_imitation_from_rounds() -> None:
    assert step_cells(IMITATED)[0] == "imitation"
    assert step_cells(IMITATED)[4:] == ["8,000", "62"]
    assert step_cells(FLOWN) == ["round", "11 of 16", "12.3", "4.6", "9,500", "30"]
    # A round whose flights all diverged has no error, and that is no zero.
    assert step_cells(LOST)[2] == step_cells(IMITATED)[2]


def test_curves_leave_out_what_was_not_flown() -> None:
    curves = dict(learning_curves([IMITATED, FLOWN, LOST]))
    drawn = [re.search(r'<polyline points="([^"]*)"', svg) for svg in curves.values()]
    assert [len(line[1].split()) for line in drawn if line] == [2, 1, 3]
    assert [title.split()[0] for title in curves] == ["Flights", "Tracking", "Pairs"]


def test_several_places_and_pictures_are_named(tmp_path: Path) -> None:
    import imageio.v3 as imageio

    flights = [
        {
            "course": "round",
            "place": place,
            "condition": named,
            "family": "semi_kinematic",
            "folder": f"evaluate/course_0{place}",
        }
        for place in ("a", "b")
        for named in ("baseline", "blindfold", "late_images:0.3")
        for _ in range(2)
    ]
    for place in "ab":
        for named in ("baseline", "blindfold", "late_images-0.3"):
            folder = tmp_path / "evaluate" / f"course_0{place}" / "flights" / f"svnet__semi_kinematic__{named}__00000"
            folder.mkdir(parents=True)
            imageio.imwrite(folder / "seen.png", np.zeros((2, 2, 3), np.uint8))
    page = written(tmp_path, summary(places=200, judged_places=40, fit=True, verdict="yes.", flights=flights))
    assert "It learnt in 200 places, and was judged in 40." in page
    titles = re.findall(r"<figcaption>(.*?): the first flight", page)
    blind = "Blindfold, semi-kinematic (as the camera saw it; the policy was shown black images)"
    late = "Late images: 0.3 s, semi-kinematic (as the camera saw it; the policy was shown images 0.3 s late)"
    assert titles == [f"{text}, round in {place}" for place in "ab" for text in ("Baseline, semi-kinematic", blind, late)]
    assert page.count("data:image/png;base64,") == 6


def test_stages_are_summed_over_steps_by_the_clock_and_by_the_processor() -> None:
    # A try at the last round was broken off.
    lost = {**LOST, "earlier": {"seconds": {"flights": 3.0, "heads": 0.0}, "cpu_seconds": {"flights": 5.0, "heads": 0.0}}}
    assert stage_seconds([IMITATED, FLOWN, lost]) == {
        "data_s": 40.0, "heads_s": 40.0, "flights_s": 43.0,
        "data_cpu_s": 75.0, "heads_cpu_s": 67.0, "flights_cpu_s": 67.0,
    }  # fmt: skip


def test_every_row_of_the_log_has_the_same_names(tmp_path: Path) -> None:
    """A reader takes a row with others for damaged, and a finished training could not be judged again."""
    training = object.__new__(VisuomotorTraining)
    rows = []
    for step in (IMITATED, FLOWN, LOST):
        training._row = dict(step)
        rows.append(training.metrics(0.5))
    assert len({frozenset(item) for item in rows}) == 1
    assert (rows[0]["data_s"], rows[0]["flights_s"], rows[1]["data_s"], rows[1]["flights_s"]) == (40.0, None, None, 20.0)
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(item) + "\n" for item in rows))
    assert len(read_metrics(tmp_path)) == 3


def test_controls_are_no_part_of_what_the_page_counts(tmp_path: Path) -> None:
    blind = row("blindfold", 0, 1.43, ["far: off"]) | {"control": True}
    page = re.sub(r"<[^>]+>|&nbsp;", " ", written(tmp_path, summary(conditions=[*summary()["conditions"], blind])))
    assert "37 of 40 flights" in page
    assert re.search(r"tracking error\s+15\s+cm", page)
