"""How parts of figures, curves, inline SVG and pages come out for given input, against lines on file and by hand."""

from __future__ import annotations

import re
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.figures import figure_details
from tests.fixtures.recording import text_values
from tests.fixtures.snapshots import check_snapshot

from airworthy.reports import drawing, svg
from airworthy.reports import page as pages
from airworthy.reports.page import anchored, card, fact, fixed, heads, interval, labelled, measured, percent, share_interval
from airworthy.reports.svg import Line, inline_svg, lines, span, themed
from airworthy.tasks import TrackingProtocol

SNAPSHOTS = Path(__file__).parent / "snapshots" / "drawing.txt"


def test_every_part_of_a_figure() -> None:
    path = np.array([[0.0, 0.0, 1.0], [1.0, 5.0, 1.0], [2.0, 4.0, 2.0]])
    with drawing.sheet(2.0, 5.0) as figure:
        rates, shares, marks, bands, plan = figure.subplots(1, 5)
        for k, (value, low, high) in enumerate(((0.0, nan, nan), (0.5, 0.25, 0.75), (1.0, 1.0, 1.0), (0.0, 0.0, 0.1))):
            drawing.rate_bar(rates, float(k), 0.8, {"value": value, "low": low, "high": high}, "red")
        drawing.shares_bar(shares, 1.0, [(20.0, "red", 1.0), (30.0, "blue", 0.5), (50.0, "green", 0.999)], 0.4)
        drawing.named_lines(shares, ["first", "second"], 0.7)
        for k, (mark, halo) in enumerate((("D", False), ("^", True), ("v", False))):
            drawing.published_mark(marks, float(k), 2.0, mark, 4.0 + k, halo)
        drawing.whisker(marks, 1.0, 2.0, 3.0, color="red", linewidth=2.0)
        drawing.whisker(marks, 1.0, 2.0, inf)
        drawing.whisker(marks, 1.0, -2.0, 3.0, level=True)
        drawing.band(bands, np.arange(3.0), (np.zeros(3), np.ones(3)), np.full(3, 0.5), "red", linewidth=3.0, linestyle="--")
        drawing.path_line(plan, path, 1, 0, "blue", linewidth=0.5)
        drawing.reference_path(plan, path, 1, 0)
        drawing.reference_path(plan, path[:2], 0, 2, 2.0, 7.0)
        drawing.mirrored(plan, 1, 0)
        drawing.top_key(figure, [(drawing.points_key("s", "red"), "a"), (drawing.points_key("D", "green", True), "b")])
        check_snapshot(SNAPSHOTS, figure_details(figure), part="figure")


@pytest.mark.parametrize(("x", "y", "axes"), [(1.0, 1.2, (0, 1)), (1.0, 1.21, (1, 0)), (5.0, 1.0, (0, 1))])
def test_a_plan_is_turned_where_it_is_a_fifth_longer_along_y(x: float, y: float, axes: tuple[int, int]) -> None:
    assert drawing.plan_axes((x, y)) == axes


# ---- curves and inline SVG --------------------------------------------------------------------------------------------------

CURVES = [
    Line("loss", "flown", [(0.0, 10.0), (1.0, 1.0), (2.0, nan), (3.0, 0.0), (4.0, 0.1)]),
    Line("held <out>", "second", [(0.5, 5.0), (4.0, 2.0)], dashed=True),
    Line("one point", "bad", [(0.0, 1.0)]),
]
KINDS: dict[str, tuple[Any, ...]] = {
    "logarithmic": ("Losses", "epoch", CURVES),
    "linear": ("Losses & more", "epoch", CURVES, False),
    "below 0": ("Shares", "step", [Line("share", "warn", [(1000.0, -1.0), (2500.0, 1.0), (3000.0, -3.0)])], False),
    "level": ("Level", "step", [Line("share", "warn", [(7.0, 2.0), (8.0, 2.0)])], True),
    "seven decades": ("Far", "step", [Line("far", "warn", [(0.0, 1e-4), (1.0, 1e5)])], True),
    "nothing": ("None", "step", [Line("far", "warn", [(0.0, inf), (1.0, 2.0)])], True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_curves(kind: str) -> None:
    numbers, words = text_values(lines(*KINDS[kind]))
    check_snapshot(SNAPSHOTS, {"numbers": numbers, "words": words}, part=f"curves, {kind}")


def test_marks_of_a_linear_axis_are_evenly_apart_and_stand_where_their_values_lie() -> None:
    text = lines("Shares", "step", [Line("share", "warn", [(0.0, 2.0), (1.0, 8.0)])], False)
    found = re.findall(r'<text x="55.0" y="([\d.]+)" text-anchor="end"[^>]*>([^<]*)</text>', text)
    heights, values = [float(y) - 4.0 for y, _ in found], [float(said) for _, said in found]
    np.testing.assert_allclose(values, [0.0, 2.0, 4.0, 6.0, 8.0], atol=5e-3)
    np.testing.assert_allclose(heights, 200.0 - 170.0 * np.array([0.0, 0.25, 0.5, 0.75, 1.0]), atol=0.051)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0.0, 1e-9], (-0.5, 0.5 + 1e-9)),
        ([0.0, 1.1e-9], (0.0, 1.1e-9)),
        ([5.0], (4.5, 5.5)),
        ([-2.0, 3.0], (-2.0, 3.0)),
        ([1e9, 1e9 + 0.5], (1e9 - 0.5, 1e9 + 1.0)),
    ],
)
def test_ends_of_an_axis(values: list[float], ends: tuple[float, float]) -> None:
    assert span(np.array(values)) == ends


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "marks"),
    [
        (0.0, 1.0, True, [0.0, 1.0]),
        (0.0, 0.999, True, [0.0, 0.333, 0.666, 0.999]),
        (1e-10, 1.0, True, [0.0, 1.0]),
        (0.0, 5.0, True, [0.0, 2.0, 4.0]),
        (0.0, 4.0, True, [0.0, 1.0, 2.0, 3.0, 4.0]),
        (0.0, 9.0, False, [0.0, 2.0, 4.0, 6.0, 8.0]),
    ],
)
def test_marks_of_axes(low: float, high: float, logarithmic: bool, marks: list[float]) -> None:
    assert svg._ticks(low, high, logarithmic) == pytest.approx(marks)


FILE = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg height="10pt" width="20pt" viewBox="0 0 20 10" xmlns="http://www.w3.org/2000/svg">
 <metadata>
  <date>today</date>
 </metadata>
 <defs>
  <style type="text/css">*{stroke-linejoin: round}</style>
 </defs>
 <g id="figure_1">
  <!-- a
       note -->
  <path id="patch" d="M 0.123456 9.876543 L 12.3 4" clip-path="url(#clip)" style="fill: #2b6cb0; stroke: #c23b32"/>
  <use xlink:href="#patch" transform="rotate(-0 3.5 4)"/>
  <text style="font: 8px sans; font-family: 'DejaVu Sans', sans-serif; fill: #1b2431">1.23456</text>
 </g>
</svg>"""


def test_a_file_of_matplotlib_becomes_a_part_of_a_page() -> None:
    assert themed(FILE, "fig", "a < b & c") == (
        '<svg viewBox="0 0 20 10" role="img"><title>a &lt; b &amp; c</title>\n'
        "<g>\n"
        '<path id="fig-patch" d="M 0.12 9.87 L 12.3 4" clip-path="url(#fig-clip)"'
        ' style="fill: var(--flown); stroke: var(--bad)"/>\n'
        '<use href="#fig-patch"/>\n'
        '<text style="font: 8px sans; font-family: var(--sans); fill: var(--ink)">1.23456</text>\n'
        "</g>\n"
        "</svg>"
    )
    assert themed("<svg></svg>", "x", "none").startswith('<svg viewBox="0 0 1 1" role="img"><title>none</title>')


def test_a_figure_becomes_svg_with_its_words() -> None:
    with drawing.sheet(1.0, 2.0) as figure:
        figure.subplots().set_title("A title")
        text = inline_svg(figure, "small", "A small figure")
    assert text.startswith('<svg viewBox="0 0 144 72" role="img"><title>A small figure</title>')
    assert ">A title</text>" in text
    assert "Date" not in text
    assert set(re.findall(r'id="([a-z]+)', text)) == {"small"}


# ---- pages ------------------------------------------------------------------------------------------------------------------

PAGE = """<h2>First <b>part</b> &amp; more</h2><p>text</p>
<figure><svg><title>x</title><h2>no</h2></svg><figcaption>A caption</figcaption></figure>
<figure class="wide">bare</figure><div><table><tr></tr></table></div>
<h3 class="x">First part more</h3><table id="own"></table><figure id="mine"><figcaption>c</figcaption></figure>
<h2 id="given">Given</h2><table></table>
<h2>Of a very long heading that nobody reads to its end</h2><h3>!!!</h3><figure></figure></figure>"""


def test_every_heading_figure_and_table_can_be_linked_to() -> None:
    def link(name: str, style: str = "") -> str:
        return f'<a class="anchor{style}" href="#{name}" aria-label="Link to this">#</a>'

    first, second = "first-part-more", "first-part-more-2"
    long = "of-a-very-long-heading-that-nobody-reads"
    assert anchored(PAGE) == (
        f'<h2 id="{first}">First <b>part</b> &amp; more{link(first)}</h2><p>text</p>\n'
        f'<figure id="{first}-figure-1"><svg><title>x</title><h2>no</h2></svg>'
        f"<figcaption>A caption{link(first + '-figure-1')}</figcaption></figure>\n"
        f'<figure class="wide" id="{first}-figure-2">bare</figure>{link(first + "-figure-2", " below")}'
        f'<div><table id="{first}-table-1"><tr></tr></table></div>{link(first + "-table-1", " below")}\n'
        f'<h3 class="x" id="{second}">First part more{link(second)}</h3><table id="own"></table>{link("own", " below")}'
        f'<figure id="mine"><figcaption>c{link("mine")}</figcaption></figure>\n'
        f'<h2 id="given">Given{link("given")}</h2><table id="given-table-1"></table>{link("given-table-1", " below")}\n'
        f'<h2 id="{long}">Of a very long heading that nobody reads to its end{link(long)}</h2>'
        f'<h3 id="part">!!!{link("part")}</h3><figure id="part-figure-1"></figure>{link("part-figure-1", " below")}</figure>'
    )
    assert anchored("<table></table>").startswith('<table id="page-table-1">')


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (fixed(1.005, 1), "1.0"),
        (fixed(-1234.5678, 2, style="+,"), "-1,234.57"),
        (fixed(3.0, 0, style="+"), "+3"),
        (fixed(None, 2), "\N{EN DASH}"),
        (fixed(nan, 2, "none"), "none"),
        (fixed(inf, 2, ""), ""),
        (percent(0.12345), "12.35 %"),
        (percent(0.12345, 1), "12.3 %"),
        (percent(None), "-"),
        (percent(nan, absent="?"), "?"),
        (interval(0.1, 0.25, 2), "0.10 \N{EN DASH} 0.25"),
        (interval(nan, 0.25, 2), ""),
        (interval(0.1, inf, 2), ""),
        (share_interval(0.116, 0.344), "12 \N{EN DASH} 34"),
        (measured("tracking_error_m", 0.12345), "0.123"),
        (measured("yaw_error_median_rad", 0.5, style="+"), "+28.6"),
        (measured("tracking_error_m", None), "\N{EN DASH}"),
        (labelled("wind_speed_m_s2"), "wind speed [m/s\N{SUPERSCRIPT TWO}]"),
        (labelled("rate_rad_s"), "rate [rad/s]"),
        (labelled("control_rate_hz"), "control rate [Hz]"),
        (labelled("kg"), "kg"),
        (labelled("pull_n"), "pull [N]"),
        (labelled("rad_s"), "rad [s]"),
        (labelled("m_s_m_s"), "m s [m/s]"),
        (labelled("plain name"), "plain name"),
    ],
)
def test_numbers_and_names(written: str, text: str) -> None:
    assert written == text


def test_cards_facts_and_heads() -> None:
    assert card("Rate", "5", "%", "of 7", "good") == {
        "label": "Rate",
        "value": "5",
        "unit": "%",
        "below": "of 7",
        "tone": "good",
    }
    assert card("Rate", pages.DASH, "%")["unit"] == ""
    assert fact("x", 1.5, True) == {"name": "x", "value": 1.5, "hash": True}
    assert fact("x", 1)["hash"] is False
    wide = heads(["proximity_percent"], TrackingProtocol(proximity_m=0.75))[0]
    assert "0.75" in wide["label"] + wide["hint"]
    assert heads(["tracking_error_m"], short=True) != heads(["tracking_error_m"])


def test_a_page_of_a_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Folder:
        def __init__(self, package: str):
            self.package = package

        def joinpath(self, name: str) -> Folder:
            asked.append(f"{self.package}/{name}")
            return self

        def read_text(self, encoding: str) -> str:
            return "{% if 1 %}\n  {{ text }}|{{ text | loud }}|{{ css }}\n{% endif %}\n"

    monkeypatch.setattr(pages, "files", Folder)
    given = {"text": "<b>", "filters": {"loud": str.upper}}
    assert pages.page_of("some.package", "own.j2", **given).startswith("  &lt;b&gt;|&lt;B&gt;|{% if 1 %}")
    assert pages.page_of("some.package", "own.j2", trim=False, **given).startswith("\n  &lt;b&gt;")
    assert asked[:3] == ["airworthy.reports/report.css", "airworthy.reports/report.js", "some.package/own.j2"]
