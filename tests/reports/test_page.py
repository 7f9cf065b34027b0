"""Parts and numbers of reports, and the frame that all pages have."""

from __future__ import annotations

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


def test_a_page_escapes_its_words_and_has_the_style_once() -> None:
    cards = [card("<b>", "1", "m"), card("plain", "2", tone="poor")]
    page = page_of(
        "airworthy.benchmarks.tuning", vehicle="a&b", verdict="v", cards=cards, front="", steps="", bode="",
        delay="1", margins=[], gains=[], fly="f", command="c",
    )  # fmt: skip
    assert page.startswith("<!doctype html>")
    assert page.count("<style>") == page.count("--sans:") == 1
    assert "a&amp;b" in page
    assert '<div class="card"><div class="label">&lt;b&gt;</div><div class="value">1 <small>m</small></div>' in page
    assert '<div class="card poor"><div class="label">plain</div><div class="value">2</div>' in page
