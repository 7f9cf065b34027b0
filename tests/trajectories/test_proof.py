"""Bounds along the whole path: never below what dense sampling finds, and close to it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.trajectories import (
    FlatSample,
    Limits,
    Trajectory,
    YawedBox,
    course,
    prove,
    prove_clearance,
    prove_corridor,
    prove_half_space,
    prove_within,
    septic,
    septic_coasting,
    yaw_fixed,
)
from airworthy.trajectories.polynomial import REST_PEAK_ACCELERATION, evaluate, to_bernstein
from airworthy.trajectories.quantities import Quantity, elevate, maximise, multiply
from airworthy.vehicles import vehicle

SLACK = 1.0 + 1e-9
UP = np.array([0.0, 0.0, 9.81])
LOOSE = Limits(
    speed=1e3, acceleration=1e3, jerk=1e4, thrust_max=1e3, thrust_min=1e-3, body_rate=1e3, yaw_rate=1e3, envelope=(1e4, 0.3)
)


def random_path(seed: int, pieces: int = 3, energy: float = 1.0) -> Trajectory:
    """Random degree-7 pieces, continuous in everything up to jerk, with yaw knots of their own."""
    rng = np.random.default_rng(seed)
    spans = rng.uniform(0.5, 2.0, pieces)
    nodes = rng.normal(size=(pieces + 1, 3, 4)) * energy * [2.0, 1.0, 1.0, 1.0]
    knots = np.concatenate(([0.0], np.cumsum(spans)))
    yaw_knots = np.linspace(0.0, knots[-1], pieces + 3)
    yaw = rng.normal(size=(pieces + 2, 4)) * 0.5
    return Trajectory(knots, septic(nodes[:-1], nodes[1:], spans[:, None]), yaw_knots, yaw)


def dense(path: Trajectory) -> FlatSample:
    """Samples, also just before each knot, where derivatives may jump."""
    breaks = np.nextafter(np.concatenate((path.knots[1:], path.yaw_knots[1:])), 0.0)
    return path.sample(np.concatenate((np.linspace(0.0, path.duration, 4001), path.yaw_knots, path.knots, breaks)))


def sampled(s: FlatSample) -> dict[str, float]:
    lengths = {name: np.linalg.norm(getattr(s, name), axis=-1) for name in ("velocity", "acceleration", "jerk")}
    thrust = np.linalg.norm(s.acceleration + UP, axis=-1)
    return {
        "speed": float(np.max(lengths["velocity"])),
        "acceleration": float(np.max(lengths["acceleration"])),
        "jerk": float(np.max(lengths["jerk"])),
        "envelope": float(np.max(lengths["acceleration"] + 0.3 * lengths["velocity"] ** 3)),
        "thrust_max": float(np.max(thrust)),
        "yaw_rate": float(np.max(np.abs(s.yaw_rate))),
        "body_rate": float(np.max(np.linalg.norm(held_rates(s), axis=-1))),
    }


def held_rates(s: FlatSample) -> Array:
    """Body rates of z along the thrust and y along z x heading, by differentiating these axes one after the other."""
    u, heading = s.acceleration + UP, np.stack((np.cos(s.yaw), np.sin(s.yaw), 0.0 * s.yaw), axis=-1)
    aside = s.yaw_rate[..., None] * np.stack((-np.sin(s.yaw), np.cos(s.yaw), 0.0 * s.yaw), axis=-1)
    z, dz = _unit(u, s.jerk)
    y, dy = _unit(np.cross(z, heading), np.cross(dz, heading) + np.cross(z, aside))
    x, dx = np.cross(y, z), np.cross(dy, z) + np.cross(y, dz)
    return np.stack([np.sum(a * b, axis=-1) for a, b in ((dy, z), (dz, x), (dx, y))], axis=-1)


def _unit(v: Array, dv: Array) -> tuple[Array, Array]:
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    u = v / length
    return u, (dv - np.sum(u * dv, axis=-1, keepdims=True) * u) / length


@settings(max_examples=40)
@given(st.integers(0, 100_000))
def test_bounds_hold_everywhere_and_are_tight(seed: int) -> None:
    path = random_path(seed, energy=0.5)
    found, tolerance = sampled(dense(path)), 1e-4
    for name, value in found.items():
        top = (value, 0.3) if name == "envelope" else max(value, 9.9) if name == "thrust_max" else max(value, 1e-3)
        check = prove(path, Limits(**{name: top}), tolerance).check(name)
        assert value <= check.bound * SLACK, name
        assert check.attained <= check.bound
        if check.verdict != "undecided":
            assert check.tolerance <= 1.01 * tolerance * check.limit, name
        # The attained value is real: nothing is claimed beyond what dense sampling finds, up to its own resolution. Body
        # rates near free fall have peaks that no sampling resolves.
        assert (name == "body_rate" and value > 30.0) or check.attained == pytest.approx(value, rel=2e-3, abs=1e-6), name


@settings(max_examples=40)
@given(st.integers(0, 100_000))
def test_the_least_thrust_is_enclosed(seed: int) -> None:
    path = random_path(seed, energy=0.5)
    least = float(np.min(np.linalg.norm(dense(path).acceleration + UP, axis=-1)))
    check = prove(path, Limits(thrust_min=5.0), 1e-4).check("thrust_min")
    assert check.bound <= least * SLACK
    assert check.attained >= check.bound
    assert check.verdict == ("proven" if least > 5.0 else "violated")


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_the_witness_is_where_it_says(seed: int) -> None:
    path = random_path(seed, energy=0.5)
    for check in prove(path, LOOSE, 1e-4).checks:
        # At a knot the later piece speaks, the witness may be the earlier one's end.
        near = path.sample(np.array([check.time - 1e-9, check.time + 1e-9]))
        values = np.array([list(sampled(_at(near, i)).values()) for i in (0, 1)])
        named = dict(zip(sampled(_at(near, 0)), values.T, strict=True))
        named["thrust_min"] = np.linalg.norm(near.acceleration + UP, axis=-1)
        inside = 1e-9 < check.time < path.duration - 1e-9
        if inside:
            assert np.min(np.abs(named[check.quantity] - check.attained)) < 1e-5 * max(1.0, check.attained), check.quantity


def _at(s: FlatSample, index: int) -> FlatSample:
    return FlatSample(*(getattr(s, name)[index : index + 1] for name in s.__dataclass_fields__))


def test_peaks_between_samples_are_found() -> None:
    # Rest to rest over 1 m in 1 s: peak speed 35/16 at the middle, which 11 samples hit and 10 miss by 1 %.
    path = Trajectory([0.0, 1.0], septic_coasting([0.0, 0.0, 1.0], [1.0, 0.0, 1.0], 0.0, 0.0, 1.0)[None], *yaw_fixed(1.0, 0.0))
    assert np.max(np.linalg.norm(path.sample(np.linspace(0.0, 1.0, 10)).velocity, axis=-1)) < 2.17
    assert prove(path, Limits(speed=2.17)).verdict == "violated"
    assert prove(path, Limits(speed=2.1875001)).proven
    peak = prove(path, Limits(acceleration=10.0), 1e-9).check("acceleration")
    assert peak.bound == pytest.approx(REST_PEAK_ACCELERATION, rel=1e-7)
    assert peak.time == pytest.approx(0.5 - 0.1 * 5.0**0.5, abs=1e-3) or peak.time == pytest.approx(
        0.5 + 0.1 * 5.0**0.5, abs=1e-3
    )


def test_a_limit_that_is_met_exactly_stays_open_or_proven() -> None:
    path = Trajectory([0.0, 1.0], septic_coasting([0.0, 0.0, 1.0], [1.0, 0.0, 1.0], 0.0, 0.0, 1.0)[None], *yaw_fixed(1.0, 0.0))
    assert prove(path, Limits(speed=2.1875)).verdict != "violated"


def test_published_courses_are_proved() -> None:
    # Top speeds printed in spec/sousvide section 3.
    for name, speed in (("robustness", 1.32), ("extended", 2.01), ("cluttered", 1.19), ("infinity", 3.13), ("sigmoid", 1.79)):
        assert prove(course(name).trajectory(), Limits(speed=speed)).proven
        assert prove(course(name).trajectory(), Limits(speed=speed - 0.02)).verdict == "violated"


def test_the_body_rate_is_open_where_the_map_is_undefined() -> None:
    # Free fall in the middle: no bound can be given, nothing false is claimed.
    c = np.zeros((1, 3, 5))
    c[0, 2, 2:] = [0.0, -9.81 * 2.0 / 3.0, 9.81 / 3.0]
    path = Trajectory([0.0, 1.0], c, *yaw_fixed(1.0, 0.0))
    assert np.min(np.linalg.norm(dense(path).acceleration + UP, axis=-1)) < 1e-6
    assert prove(path, Limits(body_rate=1.0)).verdict == "undecided"


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_corridors_enclose_the_distance(seed: int) -> None:
    path, rng = random_path(seed), np.random.default_rng(seed + 1)
    polyline = rng.normal(size=(4, 3)) * 2.0
    distance = _to_polyline(dense(path).position, polyline)
    check = prove_corridor(path, polyline, float(np.max(distance)) * 1.05)
    assert check.verdict == "proven"
    assert np.max(distance) <= check.bound * SLACK
    assert prove_corridor(path, polyline, float(np.max(distance)) * 0.95).verdict == "violated"


def _to_polyline(points: Array, polyline: Array) -> Array:
    best = np.full(len(points), np.inf)
    for a, b in pairwise(polyline):
        share = np.clip((points - a) @ (b - a) / np.sum((b - a) ** 2), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    return best


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_clearance_encloses_the_distance_to_boxes(seed: int) -> None:
    path, rng = random_path(seed), np.random.default_rng(seed + 2)
    box = YawedBox((6.0, *rng.normal(size=2)), tuple(rng.uniform(0.1, 1.0, 3)), float(rng.uniform(-3, 3)))  # type: ignore[arg-type]
    turn = frames.from_euler(0.0, 0.0, box.yaw)
    local = np.abs(frames.rotate_inverse(turn, dense(path).position - box.center)) - box.half_size
    nearest = float(np.min(np.linalg.norm(np.maximum(local, 0.0), axis=-1)))
    if nearest < 1e-3:
        assert prove_clearance(path, [box], 0.1).verdict == "violated"
        return
    check = prove_clearance(path, [box], 0.95 * nearest)
    assert check.verdict == "proven"
    assert check.bound <= nearest * SLACK
    assert prove_clearance(path, [box], 1.05 * nearest).verdict == "violated"


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_half_spaces_and_boxes(seed: int) -> None:
    path = random_path(seed)
    position = dense(path).position
    low, high = np.min(position, axis=0), np.max(position, axis=0)
    assert prove_within(path, low - 0.02, high + 0.02).proven
    for axis in range(3):
        assert prove_within(path, low + 0.02 * np.eye(3)[axis], high + 0.02).verdict == "violated"
    normal = np.array([1.0, 2.0, -2.0])
    top = float(np.max(position @ normal)) / 3.0
    assert prove_half_space(path, normal, top + 0.01).verdict == "proven"
    assert prove_half_space(path, normal, top - 0.01).verdict == "violated"


def test_reports_read_well() -> None:
    proof = prove(course("line").trajectory(), Limits(speed=1.1, acceleration=0.5))
    assert proof.verdict == "violated"
    assert not proof.proven
    assert str(proof.check("speed")).startswith("speed at most 1.1 m/s: proven (bound 1")
    assert "violated" in str(proof)
    with pytest.raises(AirworthyError, match="no check of 'jerk'"):
        proof.check("jerk")


@pytest.mark.parametrize(
    "call",
    [
        lambda p: prove_corridor(p, [[0.0, 0.0, 0.0]], 1.0),
        lambda p: prove_half_space(p, [0.0, 0.0, 0.0], 1.0),
        lambda p: prove_clearance(p, [], 1.0),
        lambda p: prove_clearance(p, [YawedBox((0, 0, 0), (1, 1, 1))], 0.0),
        lambda _: Limits(speed=-1.0),
        lambda _: Limits(speed=float("nan")),
        lambda _: Limits(envelope=(2.0, 0.0)),
        lambda _: Limits(thrust_max=9.0),
        lambda _: Limits(thrust_min=10.0),
        lambda _: Limits.for_vehicle(vehicle("carl"), 1.5),
    ],
)
def test_mistakes_are_named(call: object) -> None:
    with pytest.raises(AirworthyError):
        call(course("line").trajectory())  # type: ignore[operator]


def test_limits_of_a_vehicle() -> None:
    # carl: thrust to weight 2.459 (spec/sousvide section 2).
    assert Limits.for_vehicle(vehicle("carl"), 1.0).thrust_max == pytest.approx(27.6 / 1.144, rel=1e-3)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0, 1))
def test_products_and_elevation_in_bernstein_form(a: list[float], b: list[float], tau: float) -> None:
    wanted = evaluate(a, tau) * evaluate(b, tau)
    product = multiply(to_bernstein(a), to_bernstein(b))
    higher = elevate(product, product.shape[-1] + 2)
    assert _bernstein(product, tau) == pytest.approx(wanted, abs=1e-8)
    assert _bernstein(higher, tau) == pytest.approx(wanted, abs=1e-8)


def _bernstein(points: Array, tau: float) -> float:
    while len(points) > 1:
        points = (1.0 - tau) * points[:-1] + tau * points[1:]
    return float(points[0])


def test_work_is_bounded_where_no_bound_exists() -> None:
    flat = Quantity((np.zeros((1, 1, 1)),), np.array([[0.0, 1.0]]), lambda v: v[0][:, 0], lambda c: np.full(len(c[0]), np.inf))
    found = maximise(flat, 1e-3)
    assert (found.bound, found.attained) == (np.inf, 0.0)
