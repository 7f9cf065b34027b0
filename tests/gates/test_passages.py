"""Judging flights through gates: against the single-gate functions, constructed crossings and contacts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.gates.task import FLOOR, OBSTACLE, GateJudge, GateProtocol, body_extent, judge_path
from airworthy.trajectories import Gate, YawedBox, gate_passages
from airworthy.trajectories.gates import match_in_order

GATES = (Gate((1.0, 0.0, 0.5), 0.0), Gate((2.0, 1.0, 0.5), np.pi / 2), Gate((1.0, 2.0, 0.3), np.pi))


def _line(*points: tuple[float, float, float], step: float = 0.004) -> np.ndarray:
    """Places along a polyline, at most `step` apart."""
    parts = []
    for a, b in itertools.pairwise(points):
        count = max(2, int(np.linalg.norm(np.subtract(b, a)) / step) + 1)
        parts.append(np.linspace(a, b, count)[:-1])
    return np.concatenate([*parts, [points[-1]]])


THROUGH = _line((0, 0, 0.5), (1.5, 0, 0.5), (2, 0.5, 0.5), (2, 1.5, 0.5), (1.5, 2, 0.3), (0.5, 2, 0.3))


def _results(path: np.ndarray, gates=GATES, **kwargs):  # type: ignore[no-untyped-def]
    return judge_path(gates, np.arange(len(path)) * 0.002, path, **kwargs)


def test_a_clean_flight_passes_all_and_agrees_with_the_single_gate_functions() -> None:
    results = _results(THROUGH)
    assert results.outcomes.tolist() == ["success"]
    assert results.skipped.tolist() == [0]
    expected = gate_passages(GATES, np.arange(len(THROUGH)) * 0.002, THROUGH)
    assert np.allclose(results.times[0], [p.time for p in expected], atol=1e-12)
    assert np.allclose(results.offsets[0], [p.offset for p in expected], atol=1e-12)
    assert results.lap_time[0] == results.times[0, -1]


def test_backwards_aside_and_out_of_order_are_skips() -> None:
    assert _results(THROUGH[::-1]).passed.sum() == 0
    aside = _line((0, 0.6, 0.5), (1.5, 0.6, 0.5), (2, 0.7, 0.5), (2, 1.5, 0.5), (1.5, 2, 0.3), (0.5, 2, 0.3))
    results = _results(aside)
    assert results.passed.tolist() == [[False, True, True]]
    assert results.outcomes[0] == "partial"
    # The second gate first: two of three can be matched in order.
    assert _results(THROUGH, gates=(GATES[1], GATES[0], GATES[2])).skipped[0] == 1


def test_laps_ask_for_a_gate_again() -> None:
    back = _line((0.5, 2, 0.3), (-0.5, 1, 0.5), (0, 0, 0.5))
    twice = np.concatenate((THROUGH, back[1:], THROUGH[1:]))
    assert _results(twice, gates=GATES * 2).outcomes[0] == "success"
    assert _results(THROUGH, gates=GATES * 2).skipped[0] == 3


@pytest.mark.parametrize(("aside", "hits"), [(0.139, False), (0.141, True), (0.309, True), (0.311, False)])
def test_the_body_touches_an_upright_bar_where_geometry_says(aside: float, hits: bool) -> None:
    # Opening 0.2 m to each side, bar to 0.25 m, body 0.06 m: touched from 0.14 to 0.31 m.
    results = _results(_line((0, aside, 0.5), (2, aside, 0.5)), gates=GATES[:1])
    assert bool(results.crashed[0]) is hits
    assert not hits or results.crash_into[0] == 0


@pytest.mark.parametrize(("above", "hits"), [(0.187, False), (0.188, True), (0.262, True), (0.263, False)])
def test_and_a_level_one(above: float, hits: bool) -> None:
    # 0.2 - 0.0125 to 0.25 + 0.0125 m.
    assert bool(_results(_line((0, 0, 0.5 + above), (2, 0, 0.5 + above)), gates=GATES[:1]).crashed[0]) is hits


def test_frames_are_turned_with_their_gates_and_fast_moves_do_not_jump_over_bars() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        yaw, aside = rng.uniform(-np.pi, np.pi), rng.uniform(-0.4, 0.4)
        gate = Gate((1.0, 2.0, 0.6), yaw)
        left, ahead = np.array([-np.sin(yaw), np.cos(yaw), 0.0]), gate.normal
        ends = np.array([gate.position + aside * left + far * ahead for far in (-1.0, 1.0)])
        if min(abs(abs(aside) - edge) for edge in (0.14, 0.31)) > 1e-3:
            # Two samples, two metres apart: looked at in parts of a centimetre.
            assert bool(judge_path([gate], [0.0, 1.0], ends).crashed[0]) is (0.14 < abs(aside) < 0.31)


def test_floor_obstacles_and_what_comes_after_a_crash() -> None:
    low = _line((0, 0, 0.5), (0.5, 0, 0.005), (1, 0, 0.5), (1.5, 0, 0.5))
    results = _results(low, gates=GATES[:1])
    assert results.crashed[0]
    assert results.crash_into[0] == FLOOR
    assert not results.passed.any()
    post = YawedBox((1.5, 0.0, 0.5), (0.05, 0.05, 0.5))
    results = _results(THROUGH, obstacles=[post])
    assert results.crash_into[0] == OBSTACLE
    assert results.passed.tolist() == [[True, False, False]]
    # The post's face at 1.45 m is touched by the body's edge at 1.39 m; a step is 4 mm.
    assert results.crash_time[0] == pytest.approx(1.39 / 4e-3 * 0.002, abs=0.003)


def test_a_flight_does_not_depend_on_the_others_or_on_how_it_is_cut() -> None:
    other = THROUGH + np.array([0.0, 0.15, 0.0])
    both, t = np.stack((THROUGH, other), axis=1), np.arange(len(THROUGH)) * 0.002
    judge = GateJudge([GATES, GATES[:2]])
    for k in range(0, len(t) - 1, 37):
        judge.watch(t[k : k + 38], both[k : k + 38])
    cut, alone = judge.results(), _results(THROUGH)
    assert np.array_equal(cut.times[0], alone.times[0])
    assert cut.asked.tolist() == [3, 2]
    assert not cut.passed[1, 2]
    assert cut.crashed.tolist() == [False, True]


def test_a_tilted_body_is_never_taken_for_smaller() -> None:
    rng = np.random.default_rng(0)
    up = rng.normal(size=(200, 3))
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    radius, half = body_extent(0.06, 0.0125, up)
    around = np.linspace(0.0, 2.0 * np.pi, 60)
    for axis, r, h in zip(up, radius, half, strict=True):
        a = np.cross(axis, (1.0, 0.0, 0.0) if abs(axis[0]) < 0.9 else (0.0, 1.0, 0.0))
        a /= np.linalg.norm(a)
        rim = 0.06 * (np.cos(around)[:, None] * a + np.sin(around)[:, None] * np.cross(axis, a)) + 0.0125 * axis
        assert np.hypot(rim[:, 0], rim[:, 1]).max() <= r + 1e-12
        assert np.abs(rim[:, 2]).max() <= h + 1e-12


def test_matching_and_mistakes() -> None:
    assert match_in_order([0, 1, 2], [2, 0, 2]) == [(0, 1), (2, 2)]
    assert match_in_order([0, 1], []) == []
    with pytest.raises(AirworthyError, match="at least one gate"):
        GateJudge([[]])
    with pytest.raises(AirworthyError, match="shape"):
        GateJudge([GATES]).watch([0.0, 1.0], np.zeros((2, 2, 3)))
    with pytest.raises(AirworthyError, match="body_radius_m"):
        GateProtocol(body_radius_m=0.0)


TURNED = Gate((1.0, 0.0, 0.5), np.pi)


def test_a_passage_the_wrong_way_is_no_success_whatever_follows() -> None:
    # Backwards through the opening, round the frame, and then as asked.
    there = _line((0, 0, 0.5), (2, 0, 0.5))
    again = _line((2, 0, 0.5), (0, 0, 0.5))
    results = _results(np.concatenate((there, again[1:])), gates=(TURNED,))
    assert results.passed.all()
    assert (results.skipped[0], results.wrong_way[0]) == (0, 1)
    assert results.outcomes[0] == "partial"
    # Beside the frame it is no passage; nor before the first gate's turn a passage of a later one in its own direction.
    round_it = _line((0, 0.6, 0.5), (2, 0.6, 0.5), (2, 0, 0.5), (0, 0, 0.5))
    assert _results(round_it, gates=(TURNED,)).outcomes[0] == "success"
    # After the last gate, too.
    late = np.concatenate((again, there[1:]))
    assert _results(late, gates=(TURNED,)).wrong_way[0] == 1
    # The same in pieces: the judge carries what it must.
    whole = np.concatenate((there, again[1:]))
    judge = GateJudge([(TURNED,)])
    for begin in range(0, len(whole) - 1, 7):
        part = whole[begin : begin + 8]
        judge.watch(np.arange(begin, begin + len(part)) * 0.002, part[:, None])
    assert judge.results().wrong_way.tolist() == [1]


def test_trembling_in_the_plane_is_no_passage() -> None:
    # A course may begin in the plane of its last gate; a hovering body crosses it many times, never wholly.
    hover = np.array([(1.0 + 0.03 * np.sin(k / 5), 0.0, 0.5) for k in range(200)])
    results = _results(hover, gates=(GATES[0],))
    assert results.wrong_way[0] == 0
    # Nor is a body that leaves a gate backwards before it was wholly through.
    half = _line((0, 0, 0.5), (1.05, 0, 0.5), (0, 0, 0.5), (1.5, 0, 0.5))
    assert _results(half, gates=(GATES[0],)).outcomes[0] == "success"


def test_what_happens_after_a_crash_is_no_passage() -> None:
    path = np.concatenate((_line((0, 0, 0.5), (0, 0, -0.1)), _line((0, 0, 0.5), (2, 0, 0.5))))
    results = _results(path, gates=(TURNED,))
    assert results.crashed[0]
    assert results.wrong_way[0] == 0


def test_the_judge_tells_when_each_flight_crashed_while_it_watches() -> None:
    wide = np.array([[0.0, 5.0, 0.5], [1.0, 5.0, 0.5], [2.0, 5.0, 0.5]])
    into = np.array([[0.0, 0.2, 0.5], [1.0, 0.2, 0.5], [2.0, 0.2, 0.5]])  # the left bar of a gate at x = 1
    judge = GateJudge([[Gate((1.0, 0.0, 0.5), 0.0)]] * 2)
    assert np.isnan(judge.crash_time).all()
    judge.watch([0.0, 1.0, 2.0], np.stack((wide, into), axis=1))
    assert judge.crashed.tolist() == [False, True]
    assert np.isnan(judge.crash_time[0])
    assert 0.9 < judge.crash_time[1] <= 1.0
