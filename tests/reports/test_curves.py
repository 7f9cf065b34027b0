"""Curves of a training are drawn where their numbers are."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from airworthy.reports import svg as curves
from airworthy.reports.svg import PERCENT, Line, lines, number, span

LOSS = Line("loss", "flown", [(0.0, 10.0), (1.0, 1.0), (2.0, math.nan), (3.0, 0.0), (4.0, 0.1)])
OTHER = Line("held <out>", "second", [(0.0, 5.0), (4.0, 2.0)], dashed=True)


def _polylines(svg: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in points.split())] for points in found]


def test_an_axis_reaches_what_it_is_to_hold() -> None:
    """A quarter of the way up where no more than 25 % was reached; what goes beyond is still within the frame."""
    share = [Line("share", "flown", [(0.0, 0.0), (10.0, 25.0)])]
    (held,) = _polylines(lines("Share", "step", share, False, PERCENT))
    (free,) = _polylines(lines("Share", "step", share, False))
    assert held[0][1] - held[1][1] == pytest.approx(0.25 * (free[0][1] - free[1][1]), abs=0.1)
    (beyond,) = _polylines(lines("Share", "step", [Line("share", "flown", [(0.0, 0.0), (10.0, 125.0)])], False, PERCENT))
    assert beyond == free


def test_points_of_a_logarithmic_axis_lie_in_proportion_to_their_decades() -> None:
    first, second = _polylines(lines("Losses", "epoch", [LOSS, OTHER]))
    assert len(first) == 3  # what is not finite and what is not positive is left out
    (left, right), (top, bottom) = (62.0, 406.0), (30.0, 200.0)
    x0, x1, y0, y1 = 0.0, 4.0, -1.0, 1.0
    for points, wanted in ((first, [(0.0, 10.0), (1.0, 1.0), (4.0, 0.1)]), (second, [(0.0, 5.0), (4.0, 2.0)])):
        for (x, y), (a, b) in zip(points, wanted, strict=True):
            assert x == pytest.approx(left + (a - x0) / (x1 - x0) * (right - left), abs=0.051)
            assert y == pytest.approx(bottom - (math.log10(b) - y0) / (y1 - y0) * (bottom - top), abs=0.051)


def test_a_linear_axis_begins_at_0() -> None:
    (points,) = _polylines(lines("Share", "step", [Line("share", "warn", [(0.0, 0.5), (10.0, 1.0)])], logarithmic=False))
    assert points == [(62.0, 115.0), (406.0, 30.0)]
    (points,) = _polylines(lines("Share", "step", [Line("share", "warn", [(0.0, -1.0), (10.0, 1.0)])], logarithmic=False))
    assert points == [(62.0, 200.0), (406.0, 30.0)]


def test_few_points_are_marks_and_none_is_no_figure() -> None:
    assert lines("Nothing", "step", []) == ""
    assert lines("Nothing known", "step", [Line("a", "bad", [(0.0, math.nan)])]) == ""
    for count in (1, 2, 3):
        svg = lines("Few", "step", [Line("a", "bad", [(7.0 + k, 1.0 + k) for k in range(count)])])
        marks = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([^"]*)" cy="([^"]*)"', svg)]
        assert marks == (_polylines(svg)[0] if count < 3 else [])
    # Of one point the axis tells its own number, and not the ends that make room for it.
    (one,) = [re.findall(r">([^<]*)</text>", lines("One", "step", [Line("a", "bad", [(7.0, 1.0)])], False))]
    assert "7" in one
    assert "6.5" not in one


def test_a_logarithmic_axis_says_so_and_holds_what_is_not_positive_by_being_none() -> None:
    assert ">log</text>" in lines("Losses", "epoch", [LOSS, OTHER])
    assert ">log</text>" not in lines("Losses", "epoch", [LOSS, OTHER], logarithmic=False)
    svg = lines("Rewards", "step", [Line("a", "bad", [(0.0, -1.0), (1.0, 0.0), (2.0, -0.5)])])
    assert ">log</text>" not in svg
    assert len(_polylines(svg)[0]) == 3


def test_an_axis_holds_its_values() -> None:
    assert span(np.array([3.0, 1.0, 2.0])) == (1.0, 3.0)
    assert span(np.array([2.0, 2.0])) == (1.5, 2.5)
    assert span(np.array([1e6, 1e6 + 1e-4])) == (1e6 - 0.5, 1e6 + 1e-4 + 0.5)


def test_marks_of_an_axis() -> None:
    assert curves._ticks(-2.0, 1.0, True) == [-2.0, -1.0, 0.0, 1.0]
    assert curves._ticks(-2.1, 7.2, True) == [-2.0, 0.0, 2.0, 4.0, 6.0]
    assert curves._ticks(0.2, 0.8, True) == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert curves._ticks(0.2, 1.8, True) == pytest.approx(np.linspace(0.2, 1.8, 4))
    assert curves._ticks(-3.0, 6.0, False) == [-2.0, 0.0, 2.0, 4.0, 6.0]
    assert curves._ticks(0.0, 0.83, False) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert curves._ticks(-3.88, 7.99, False) == [-2.5, 0.0, 2.5, 5.0, 7.5]
    assert curves._ticks(0.0, 39.0, False) == [0.0, 10.0, 20.0, 30.0]
    assert curves._ticks(10.0, 10.4, False) == pytest.approx([10.0, 10.1, 10.2, 10.3, 10.4])


@pytest.mark.parametrize("scale", [1e-6, 0.03, 1.0, 7.7, pytest.param(4e5, marks=pytest.mark.slow)])
def test_linear_marks_are_round_and_as_many_as_there_is_room_for(scale: float) -> None:
    for high in np.geomspace(scale, 10.0 * scale, 97):
        marks = np.array(curves._ticks(-0.2 * high, high, False))
        assert 3 <= len(marks) <= 6
        assert marks.min() >= -0.2 * high * (1 + 1e-9)
        assert marks.max() <= high * (1 + 1e-9)
        step = marks[1] - marks[0]
        np.testing.assert_allclose(np.diff(marks), step)
        assert np.abs(marks / step - np.round(marks / step)).max() < 1e-6
        leading = step / 10.0 ** np.floor(np.log10(step * (1 + 1e-9)))
        assert min(abs(leading - round_one) for round_one in (1.0, 2.0, 2.5, 5.0)) < 1e-6


def test_an_axis_begins_at_zero_where_its_values_nearly_do() -> None:
    def ends(curve: list[tuple[float, float]]) -> list[str]:
        drawn = lines("Share", "step", [Line("share", "warn", curve)], logarithmic=False)
        return re.findall(r'text-anchor="(?:start|end|middle)"[^>]*>([-\d.,]+)</text>', drawn)

    assert ends([(0.0164, 0.0), (20.0, 0.0), (10.0, 0.0)]) == ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0", "20"]
    assert ends([(2.0, 1.0), (20.0, 4.0), (10.0, 0.5)])[-2:] == ["2", "20"]


def test_numbers_at_an_axis() -> None:
    assert [number(v) for v in (0.0, 0.01234, 999.0, 1000.0, -1234.6, -0.5)] == [
        "0",
        "0.0123",
        "999",
        "1,000",
        "-1,235",
        "-0.5",
    ]


def test_words_of_a_figure_are_escaped() -> None:
    svg = lines("Losses", "epoch & more", [LOSS, OTHER])
    assert "held &lt;out&gt;" in svg
    assert "epoch &amp; more" in svg
    assert lines("Share", "step", [Line("share", "warn", [(0.0, 0.5), (10.0, 2000.0)])], logarithmic=False)
