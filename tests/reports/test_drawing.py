"""Parts that figures of reports are drawn with."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from airworthy.reports.drawing import (
    DASHES,
    band,
    mirrored,
    named_lines,
    path_line,
    plan_axes,
    points_key,
    published_mark,
    rate_bar,
    reference_path,
    shares_bar,
    sheet,
    top_key,
    whisker,
)
from airworthy.reports.svg import FIGURE_WIDTH, PALETTE


def test_a_sheet_has_the_size_and_the_style() -> None:
    with sheet(2.0) as figure, sheet(1.0, 3.0) as narrow:
        assert tuple(figure.get_size_inches()) == (FIGURE_WIDTH, 2.0)
        assert tuple(narrow.get_size_inches()) == (3.0, 1.0)
        assert not figure.subplots().spines["top"].get_visible()


def test_intervals_that_are_none_are_not_drawn() -> None:
    with sheet(2.0) as figure:
        axes = figure.subplots()
        whisker(axes, 1.0, nan, 2.0)
        assert not axes.lines
        whisker(axes, 1.0, 2.0, 3.0)
        whisker(axes, 1.0, 2.0, 3.0, level=True, color="red")
        upright, level = axes.lines
        assert (list(upright.get_xdata()), list(upright.get_ydata())) == ([1.0, 1.0], [2.0, 3.0])
        assert (list(level.get_xdata()), list(level.get_ydata())) == ([2.0, 3.0], [1.0, 1.0])
        assert (upright.get_color(), level.get_color()) == (PALETTE["ink"], "red")


def test_a_rate_of_nothing_is_seen() -> None:
    with sheet(2.0) as figure:
        axes = figure.subplots()
        rate_bar(axes, 0.0, 0.8, {"value": 0.0, "low": nan, "high": nan}, "red")
        assert [list(line.get_xdata()) for line in axes.lines] == [[-0.4, 0.4]]
        rate_bar(axes, 1.0, 0.8, {"value": 0.5, "low": 0.25, "high": 0.75}, "red")
        assert list(axes.lines[1].get_ydata()) == [25.0, 75.0]
        assert [bar.get_height() for bar in axes.patches] == [0.0, 50.0]


def test_parts_of_a_whole_lie_behind_one_another() -> None:
    with sheet(2.0) as figure:
        axes = figure.subplots()
        shares_bar(axes, 2.0, [(20.0, "red", 1.0), (30.0, "blue", 0.5)], 0.5)
        assert [(bar.get_x(), bar.get_width(), bar.get_alpha()) for bar in axes.patches] == [
            (0.0, 20.0, None),
            (20.0, 30.0, 0.5),
        ]


def test_marks_of_what_was_published_are_hollow_or_have_a_halo() -> None:
    with sheet(2.0) as figure:
        axes = figure.subplots()
        published_mark(axes, 1.0, 2.0)
        published_mark(axes, 1.0, 2.0, "^", halo=True)
        plain, below, above = axes.lines
        assert (plain.get_markerfacecolor(), plain.get_marker()) == ("none", "D")
        assert (below.get_color(), above.get_color()) == ("white", PALETTE["second"])
        assert below.get_markeredgewidth() > above.get_markeredgewidth()


def test_a_band_holds_its_line() -> None:
    x = np.arange(3.0)
    with sheet(2.0) as figure:
        axes = figure.subplots()
        band(axes, x, (x - 1.0, x + 1.0), x, "red")
        corners = axes.collections[0].get_paths()[0].vertices
        assert (corners[:, 1].min(), corners[:, 1].max()) == (-1.0, 3.0)
        assert list(axes.lines[0].get_ydata()) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("count", "limits"), [(3, (2.5, -0.5)), (0, (0.5, -0.5))])
def test_lines_are_named_from_the_top(count: int, limits: tuple[float, float]) -> None:
    with sheet(2.0) as figure:
        axes = figure.subplots()
        named_lines(axes, [f"line {k}" for k in range(count)])
        assert axes.get_ylim() == limits
        assert [label.get_text() for label in axes.get_yticklabels()] == [f"line {k}" for k in range(count)]


def test_plans_are_turned_but_never_mirrored() -> None:
    assert plan_axes((4.0, 4.0)) == (0, 1)
    assert plan_axes((4.0, 5.0)) == (1, 0)
    path = np.array([[0.0, 0.0, 1.0], [1.0, 5.0, 1.0]])
    with sheet(2.0) as figure:
        axes = figure.subplots()
        path_line(axes, path, 1, 0, "red", linewidth=0.5)
        mirrored(axes, 1, 0)
        low, high = axes.get_ylim()
        assert low > high
        mirrored(axes, 0, 1)
        assert axes.get_ylim() == (low, high)
        reference_path(axes, path, 1, 0)
        flown, asked, start, end = axes.lines
        assert list(flown.get_xdata()) == list(asked.get_xdata()) == [0.0, 5.0]
        assert asked.is_dashed()
        assert DASHES[1] == (4, 2)
        assert [(mark.get_marker(), *mark.get_xydata()[0]) for mark in (start, end)] == [("o", 0.0, 0.0), ("s", 5.0, 1.0)]


def test_a_key_stands_above_the_figure() -> None:
    with sheet(2.0) as figure:
        top_key(figure, [(points_key("s", "red"), "flown"), (points_key("D", "green", hollow=True), "published")])
        (key,) = figure.legends
        assert [text.get_text() for text in key.get_texts()] == ["flown", "published"]
        assert [line.get_markerfacecolor() for line in key.legend_handles] == ["red", "none"]
