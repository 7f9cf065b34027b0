"""Parts and numbers of reports, and the frame that all pages have."""

from __future__ import annotations

import re
from importlib.resources import files
from math import inf, nan

from airworthy.reports.page import DASH, card, fixed, interval, page_of, percent


def test_numbers_have_one_writing() -> None:
    assert [fixed(1234.567, 1), fixed(nan, 1), fixed(None, 1, ""), fixed(0.25, 2, style="+"), fixed(1234.5, 0, style=",")] == [
        "1234.6", DASH, "", "+0.25", "1,234",
    ]  # fmt: skip
    assert interval(0.1, 0.25, 2) == f"0.10 {DASH} 0.25"
    assert interval(0.1, inf, 2) == ""
    assert [percent(0.1234), percent(None), percent(nan, absent="")] == ["12.34 %", "-", ""]


def test_a_card_without_a_number_has_no_unit() -> None:
    assert card("error", DASH, "m")["unit"] == ""
    assert card("error", "0.1", "m", "mean", "good") == {
        "label": "error", "value": "0.1", "unit": "m", "below": "mean", "tone": "good",
    }  # fmt: skip


def test_a_long_value_breaks_between_its_parts_and_never_before_a_unit() -> None:
    """At 136 px a card holds some eight letters: "11 min 30 s" ran over its edge."""
    space = "\N{NO-BREAK SPACE}"
    assert card("trained in", "11 min 30 s")["value"] == f"11{space}min 30{space}s"
    assert card("flights", "3 of 12")["value"] == f"3{space}of 12"
    css = files("airworthy.reports").joinpath("report.css").read_text()
    rule = re.search(r"\.card \.value \{[^}]*\}", css)
    assert rule is not None
    assert "nowrap" not in rule[0]
    assert "overflow-wrap: break-word" in rule[0]


def test_a_page_escapes_its_words_and_has_the_style_once() -> None:
    cards = [card("<b>", "1", "m"), card("plain", "2", tone="poor")]
    page = page_of(
        "airworthy.benchmarks.tuning", vehicle="a&b", verdict="v", cards=cards, front="", steps="", bode="",
        delay="1", margins=[], gains=[], fly="f", command="c",
    )  # fmt: skip
    assert page.startswith("<!doctype html>")
    assert page.count("<style>") == page.count("--sans:") == 1
    assert "a&amp;b" in page
    assert '<div class="card"><div class="label">&lt;b&gt;</div><div class="value">1&nbsp;<small>m</small></div>' in page
    assert '<div class="card poor"><div class="label">plain</div><div class="value">2</div>' in page
