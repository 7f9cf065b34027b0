"""Plans through gates: the window, the certificate against dense samples and constructed failures, mending and refusal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.gates.boundary_planner_cases import oracle

from airworthy.core.errors import AirworthyError
from airworthy.gates.crossings import CrossingCheck
from airworthy.gates.planner.certificate import GridCheck, certify, clearance_check, floor_check, stretch
from airworthy.gates.planner.planner import PlanOptions, plan, plan_gates, plan_many
from airworthy.gates.planner.window import RANGES, outside, predict_chain, route_of, situations_of
from airworthy.trajectories import TRACKING_ENVELOPE, Gate, LimitCheck, LimitProof, course, prove_clearance, septic_through
from airworthy.trajectories.generated_courses import RandomCourse, random_course

ALL = ("straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10")
LINE = tuple(Gate((1.2 * k, 0.0, 0.525), 0.0) for k in (1, 2, 3))


def _slow(situations: np.ndarray) -> np.ndarray:
    return np.tile((0.5, 3.0), (len(situations), 1))


def _straight(gates=LINE, predictor=_slow, **options):  # type: ignore[no-untyped-def]
    return plan_gates(gates, (0.0, 0.0, 0.525), 0.0, predictor, PlanOptions(**options))


def test_situations_are_the_legs_that_the_specification_says() -> None:
    # Gate 1 is 1 m ahead, gate 2 1.2 m on and 30 degrees to the right of it, higher.
    turn = np.radians(30.0)
    second = (1.0 + 1.2 * np.cos(turn), -1.2 * np.sin(turn), 0.525)
    gates = (Gate((1.0, 0.0, 0.3), 0.0), Gate(second, -turn))
    rows = situations_of(route_of((0.0, 0.0, 0.3), 0.0, gates))
    assert np.allclose(rows[0], (0.0, 0.3, 1.0, 0.0, 0.3, 1.2, turn, 0.525), atol=1e-12)
    # After the last gate: 0.8 m straight on at its height.
    assert np.allclose(rows[1], (0.0, 0.3, 1.2, turn, 0.525, 0.8, 0.0, 0.525), atol=1e-12)


def test_situations_agree_with_the_search_and_do_not_depend_on_place_and_direction() -> None:
    from airworthy.gates.labels.situations import encode

    made = random_course(2, 5)
    route = route_of(made.start, made.start_yaw, made.gates)
    rows = situations_of(route)
    triples = np.arange(route.count)[:, None] + np.arange(3)
    theirs, _ = encode(route.positions[triples], route.headings[triples], np.zeros(route.count))
    assert np.allclose(rows, theirs, atol=1e-12)
    angle, c, s = 2.0, np.cos(2.0), np.sin(2.0)
    moved = [Gate((c * x - s * y + 5.0, s * x + c * y - 3.0, z), g.yaw + angle) for g in made.gates for x, y, z in [g.position]]
    again = situations_of(route_of((5.0, -3.0, made.start[2]), made.start_yaw + angle, moved))
    assert np.allclose(rows, again, atol=1e-12)


def test_the_chain_hands_speeds_on_clamps_counts_and_caps() -> None:
    asked: list[np.ndarray] = []

    def fast(situations: np.ndarray) -> np.ndarray:
        asked.append(situations.copy())
        return np.tile((1.5, 1.0), (len(situations), 1))

    geometry = situations_of(route_of((0.0, 0.0, 0.525), 0.0, LINE))[None]
    chain = predict_chain(geometry, fast)
    assert [rows[0, 0] for rows in asked] == [0.0, 1.0, 1.0]
    assert chain.situations[0, :, 0].tolist() == [0.0, 1.5, 1.5]
    assert np.allclose(chain.beyond[0, :, 0], (0.0, 0.5, 0.5))
    capped = predict_chain(geometry, fast, caps=1.0)
    # From rest, 1.5 m/s in 1 s becomes 1 m/s in 1.5 s; from 1 m/s on, (1 + 1.5) / (1 + 1).
    assert np.allclose(capped.durations[0], (1.5, 1.25, 1.25))
    assert not outside(capped.situations[0], RANGES).any()
    unasked = predict_chain(geometry, fast, ranges=None)
    assert unasked.beyond.max() == 0.0


@pytest.mark.parametrize("name", ALL)
def test_every_course_of_the_catalogue_is_approved_and_keeps_its_promises_at_dense_samples(name: str) -> None:
    made = plan(course(name), oracle)
    assert made.flyable, made.reason
    path, sure = made.approved(), made.certificate
    assert sure is not None
    assert sure.proven
    t = np.linspace(0.0, path.duration, 4001)
    flat = path.sample(t)
    used = np.linalg.norm(flat.acceleration, axis=1) + 0.3 * np.linalg.norm(flat.velocity, axis=1) ** 3
    assert used.max() <= sure.limit.checks[0].bound <= 2.0
    # Proof and samples meet: the proof's own tolerance is a thousandth of 2, samples miss a maximum by less than that.
    assert used.max() >= sure.limit.checks[0].bound - 5e-3
    assert flat.position[:, 2].min() >= sure.floor.bound
    ends = np.cumsum(made.durations)[:-1]
    assert np.allclose(path.sample(ends).position, [g.position for g in made.gates], atol=1e-9)
    through = np.array([g.normal for g in made.gates]) * made.speeds[1:-1, None]
    assert np.allclose(path.sample(ends).velocity, through, atol=1e-9)


def test_clearance_agrees_with_the_proof_bar_by_bar() -> None:
    made = plan(course("circle_8"), oracle)
    together = clearance_check(made.approved(), made.gates, 0.12)
    boxes = [bar for gate in made.gates[:4] for bar in gate.bars()]
    some = prove_clearance(made.approved(), boxes, 0.12)
    # The same tolerance of a thousandth of the clearance on both sides; the whole course is no clearer than half of it.
    assert together.bound <= some.attained + 2.5e-4
    assert together.attained >= some.bound - 2.5e-4 or together.attained < some.attained


def test_each_promise_is_refused_by_a_path_that_breaks_it() -> None:
    points, ahead = np.array([[0.0, 0.0, 0.5], [2.0, 0.0, 0.5]]), np.array([[1.0, 0.0, 0.0]] * 2)
    nothing = GridCheck(0, {}, {}, 0.0)
    fine = septic_through(points, ahead, np.zeros(2), np.array([4.0]))
    gate = Gate((1.0, 0.0, 0.5), 0.0)
    assert certify(fine, [gate], TRACKING_ENVELOPE, nothing).proven
    fast = septic_through(points, ahead, np.zeros(2), np.array([2.0]))
    assert certify(fast, [gate], TRACKING_ENVELOPE, nothing).limit.verdict == "violated"
    near = Gate((1.0, 0.11, 0.5), 0.0)  # the bar's face is 0.09 m from the path
    check = clearance_check(fine, [near], 0.12)
    assert check.verdict == "violated"
    assert check.bound <= 0.09 <= check.attained + 1e-9
    assert floor_check(fine, 0.499).verdict == "proven"
    assert floor_check(fine, 0.51).verdict == "violated"
    text = str(certify(fast, [near], TRACKING_ENVELOPE, nothing))
    assert text.count("NOT") == 2


def test_the_verdict_is_that_of_the_worst_check_whichever_it_is() -> None:
    points, ahead = np.array([[0.0, 0.0, 0.5], [2.0, 0.0, 0.5]]), np.array([[1.0, 0.0, 0.0]] * 2)
    path = septic_through(points, ahead, np.zeros(2), np.array([4.0]))
    gate = Gate((1.0, 0.0, 0.5), 0.0)
    sure = certify(path, [gate], TRACKING_ENVELOPE, GridCheck(0, {}, {}, 0.0))
    assert sure.proven
    assert certify(path, [gate], TRACKING_ENVELOPE, sure.grid, floor=0.51).verdict == "violated"
    (envelope,) = sure.limit.checks
    # Known to be broken; and not known, since the bound breaks what the value that is attained keeps.
    for attained, bound, verdict in ((0.9, 0.9, "violated"), (1.1, 0.9, "undecided")):
        below = LimitCheck("any", "m", 1.0, bound, attained, 0.0, "at least")
        above = LimitCheck(envelope.quantity, envelope.unit, 1.0, 2.0 - bound, 2.0 - attained, 0.0, "at most")
        met, open_times = ((), ()) if verdict == "violated" else (sure.crossings.crossings, (1.0,))
        crossings = CrossingCheck(met, sure.crossings.asked, open_times)
        for worst in ({"limit": LimitProof((above,))}, {"clearance": below}, {"floor": below}, {"crossings": crossings}):
            found = replace(sure, **worst)
            assert found.verdict == found.described()["verdict"] == verdict, worst
            assert not found.proven


def test_a_sentence_never_promises_more_than_its_proof() -> None:
    sure = plan(course("mixed_10"), oracle).certificate
    assert sure is not None
    stated = float(sure.sentences[0].split("nowhere more than ")[1].split()[0])
    assert stated >= sure.limit.checks[0].bound
    stated = float(sure.sentences[1].split("nowhere less than ")[1].split()[0])
    assert stated <= sure.clearance.bound


def test_too_little_time_is_stretched_and_counted() -> None:
    def hasty(situations: np.ndarray) -> np.ndarray:
        return np.where(situations[:, :1] == 0.0, (0.5, 2.0), (0.5, 1.0))

    made = _straight(predictor=hasty, lowerings=0)
    assert made.flyable
    assert made.stretched[1] > 0
    assert np.allclose(made.durations, made.predicted * 1.1**made.stretched)
    assert not _straight(predictor=hasty, lowerings=0, tries=0).flyable
    counted = stretch(np.array([1.0, 1.0]), lambda i, t: bool(t[i] > (1.25, 9.0)[i]))
    assert counted.counts.tolist() == [3, 10]
    assert counted.durations[1] == 1.0 and counted.kept.tolist() == [True, False]  # noqa: PT018 - one outcome


def test_too_fast_is_lowered_or_refused_with_the_reason() -> None:
    def racing(situations: np.ndarray) -> np.ndarray:
        return np.tile((1.95, 1.3), (len(situations), 1))  # eq. 3 vanishes at 1.882 m/s

    refused = _straight(predictor=racing, lowerings=0)
    assert not refused.flyable
    assert "Envelope is not kept on segment" in refused.reason
    with pytest.raises(AirworthyError, match="was refused: Envelope"):
        refused.approved()
    mended = _straight(predictor=racing)
    assert mended.flyable and mended.lowered.sum() > 0  # noqa: PT018 - one outcome
    assert mended.speeds.max() < 1.882


def test_what_the_predictor_cannot_know_is_refused_or_said() -> None:
    far = (Gate((1.2, 0.0, 0.525), 0.0), Gate((4.0, 0.0, 0.525), 0.0))
    refused = _straight(far)
    assert not refused.flyable and "outside the predictor's ranges" in refused.reason  # noqa: PT018 - one outcome
    assert _straight(far, predictor=lambda e: np.tile((0.5, 8.0), (len(e), 1)), outside="clamp").clamped == 2
    silent = _straight(predictor=lambda e: np.full((len(e), 2), np.nan))
    assert silent.trajectory is None and "no speed and duration for gate 1" in silent.reason  # noqa: PT018 - one outcome
    made = plan(random_course(0, 0, RandomCourse(heading=0.3)), oracle, PlanOptions(outside="clamp"))
    assert any("degrees away from the leg" in line for line in made.certificate.sentences)  # type: ignore[union-attr]


def test_laps_incoming_headings_and_many_at_once() -> None:
    circle = course("circle_8")
    twice = plan(circle, oracle, lap_count=2)
    assert twice.flyable and len(twice.gates) == 16  # noqa: PT018 - one outcome
    turned = [Gate(g.position, g.yaw + 0.2) for g in LINE]
    assert np.allclose(_straight(turned, headings="incoming").route.headings, 0.0)
    courses = [random_course(k, 1) for k in range(4)]
    together = plan_many(courses, oracle)
    for one, made in zip(courses, together, strict=True):
        alone = plan(one, oracle)
        assert np.array_equal(alone.durations, made.durations, equal_nan=True)
    assert together[0].report()["course"] == courses[0].name


def test_mistakes_are_named() -> None:
    with pytest.raises(AirworthyError, match="keyframes, not gates"):
        plan(course("line"), oracle)
    with pytest.raises(AirworthyError, match="at least one gate"):
        plan_gates((), (0.0, 0.0, 0.5), 0.0, oracle)
    with pytest.raises(AirworthyError, match="1 cm aside"):
        plan_gates((Gate((0.0, 0.0, 1.0), 0.0),), (0.0, 0.0, 0.5), 0.0, oracle)
    with pytest.raises(AirworthyError, match="expected \\(1, 2\\)"):
        _straight(predictor=lambda e: np.zeros(3))


def test_a_field_counts_as_outside_from_what_rounding_leaves_on() -> None:
    # Courses are kept with six digits: 1e-5 is inside, a millimetre is not, on either side, of every field.
    for field in range(8):
        for side, sign in ((0, -1.0), (1, 1.0)):
            rows = np.tile(RANGES.mean(axis=1), (3, 1))
            rows[:, field] = RANGES[field, side] + sign * np.array([0.9e-5, 1.1e-5, 1e-3])
            beyond = outside(rows, RANGES)
            assert (beyond[:, field] > 0.0).tolist() == [False, True, True]
            assert beyond[2, field] == pytest.approx(1e-3, rel=1e-9)
            assert np.count_nonzero(beyond) == 2
