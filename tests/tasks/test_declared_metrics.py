"""Metrics are declared once: their names are those of what is computed, and no report has words of its own for them."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from math import degrees
from pathlib import Path

import pytest
from tests.fixtures.snapshots import check_snapshot

import airworthy
from airworthy.benchmarks.navigation.flight_records import COLUMNS
from airworthy.benchmarks.navigation.report import text as navigation_text
from airworthy.benchmarks.tracking import figures as tracking_figures
from airworthy.benchmarks.tracking.tables import POOLED, mean_of
from airworthy.cli.fly import show_summary
from airworthy.core.errors import AirworthyError
from airworthy.evaluation.metrics import FlightResult
from airworthy.evaluation.statistics import summarize
from airworthy.reports import flight_text
from airworthy.reports.page import heads, measured
from airworthy.tasks import TrackingProtocol
from airworthy.tasks.declared_metrics import (
    CONDITION,
    COURSE_SUMMARY,
    FLIGHT_ROW,
    FLIGHT_ROW_MORE,
    GOAL,
    METRICS,
    PAIRED,
    metric,
)

SOURCE = Path(airworthy.__file__).parent
RESULT = FlightResult(0, "success", tracking_error_m=0.125, proximity_percent=97.5, speed_max_m_s=2.0, path_length_m=8.0)


def test_names_are_those_of_what_is_computed() -> None:
    computed = {item.name for item in fields(FlightResult)}
    assert {*COURSE_SUMMARY, *FLIGHT_ROW, *FLIGHT_ROW_MORE, *CONDITION, *PAIRED} <= computed
    assert set(GOAL) <= set(COLUMNS)
    assert {*COURSE_SUMMARY, *FLIGHT_ROW, *GOAL, "failed_at"} == set(METRICS)


def test_units_agree_with_names() -> None:
    """A stored angle is in radians and shown in degrees; what ends with _m, _s or _percent is shown as it is stored."""
    for name, item in METRICS.items():
        if name.endswith("_rad"):
            assert (item.unit, item.factor) == ("deg", degrees(1.0))
        for end, unit in (("_m_s", "m/s"), ("_per_m", "1/m"), ("_percent", "%"), ("_m", "m"), ("_s", "s")):
            if name.endswith(end):
                assert (item.unit, item.factor) == (unit, 1.0), name
                break
        assert item.better in ("", "lower", "higher")
        assert item.meaning


def test_words_name_the_thresholds_of_the_protocol() -> None:
    near, narrow = metric("proximity_percent"), TrackingProtocol(proximity_m=0.25)
    assert near.heading(short=True, protocol=narrow) == "within 0.25 m [%]"
    assert near.hint(narrow) == "share of samples at most 0.25 m from the path; higher is better"
    assert metric("collisions").heading() == "collisions"
    assert metric("proximity_percent").caption(protocol=narrow) == "Within 0.25 m of the path [%]"
    assert metric("speed_max_m_s").hint() == "greatest speed of a flight"
    with pytest.raises(AirworthyError, match="Unknown metric 'proximity'"):
        metric("proximity")


def test_values_are_written_as_declared() -> None:
    assert measured("yaw_error_median_rad", 0.5) == "28.6"
    assert measured("thrust_saturation", 0.125, "", ",") == "12.5"
    assert measured("tracking_error_m", None, "") == ""
    assert mean_of({"tracking_error_m": {"mean": 0.25}, POOLED["collisions_per_m"]: 0.5}, "tracking_error_m") == 0.25
    assert mean_of({POOLED["collisions_per_m"]: 0.5}, "collisions_per_m") == 0.5


def test_a_changed_declaration_changes_every_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The title of one metric, changed in one place, stands in the page of a run, in both benchmarks and in the command."""
    for name in ("speed_max_m_s", "tracking_error_m"):
        monkeypatch.setitem(METRICS, name, replace(METRICS[name], title=f"new {name}", short="", unit="furlong"))
    summary = summarize([RESULT, replace(RESULT, env=1)], resamples=20)
    page = flight_text.content(summary, {}, None, None)
    for name in ("speed_max_m_s", "tracking_error_m"):
        label = f"new {name} [furlong]"
        assert label in [row["label"] for row in page["aggregate"]]
        assert label in [head["label"] for head in page["heads"]]
        assert f"New {name}" in [card["label"] for card in page["cards"]]
    show_summary(Path("run"), summary)
    assert "new tracking_error_m [furlong]" in capsys.readouterr().out
    assert "new speed_max_m_s [furlong]" in [head["label"] for head in heads(navigation_text.MOTION, short=True)]
    described = {"mean": 0.1, "low": 0.05, "high": 0.2}
    entry = {
        "condition": "baseline", "title": "Baseline", "pilot": "mpc", "family": "rigid", "published": None,
        **dict.fromkeys(PAIRED, described),
    }  # fmt: skip
    svg = tracking_figures.figure_published([entry], tracking_figures.series_of([entry]), TrackingProtocol(proximity_m=0.2))
    assert "New tracking_error_m [furlong]" in svg
    assert "Within 0.2 m [%]" in svg


def test_no_report_has_words_of_its_own() -> None:
    """`time [s]` is also the name of the axis of time."""
    stated = [item.heading() for item in METRICS.values() if item.unit and item.title != "time"]
    own = re.compile("|".join(map(re.escape, stated)), re.IGNORECASE)
    files = [path for room in ("benchmarks", "reports", "cli") for path in sorted((SOURCE / room).rglob("*"))]
    texts = {path: path.read_text("utf-8") for path in files if path.suffix in (".py", ".j2")}
    assert len(texts) > 100
    assert {str(path): found for path, text in texts.items() if (found := own.findall(text))} == {}


def test_how_each_is_written_is_as_it_was_read_through() -> None:
    """Digits, units, factors, ways that are better: those on file; a metric that is new has no line yet."""
    values = {name: {key: x for key, x in vars(item).items() if x is not None} for name, item in METRICS.items()}
    check_snapshot(Path(__file__).parent / "snapshots" / "metrics.txt", values, growing=True)
