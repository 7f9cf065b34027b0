"""The filter with both cameras of the stereo pair: from where corners are seen, slopes, and what a second camera adds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.race.estimates import FRAME, RATE, Flights, errors, moving, nees, seen, some_flights

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.optics import Pinhole
from airworthy.race import BeaconFrame, GateFilter, load_race, race_briefing, race_class
from airworthy.race.briefing import RaceBriefing
from airworthy.race.estimation.estimator import FilterState, GateFilterOptions, UpdateRecord
from airworthy.race.estimation.inertial import InertialMotion, at_rest
from airworthy.race.estimation.landmarks import gate_axes, sighted
from airworthy.race.onboard import onboard_facts
from airworthy.race.vision.holes import around
from airworthy.race.vision.naming import expected_openings, named
from airworthy.race.vision.openings import Opening
from airworthy.sensors import device, rig
from airworthy.vehicles import vehicle

RACE, RIGHT = load_race("alphapilot"), np.array([0.0, -0.32, 0.0])
LAST = 60


@cache
def both_eyes() -> tuple[Flights, Array]:
    """Six flights whose filter is told of the second camera, and its pixels, (frames, flights, gates, 4, 2)."""
    flown = some_flights()
    rng = np.random.default_rng(3)
    right = np.stack(
        [
            seen(flown.briefing, place + Rotation.from_quat(turn).apply(RIGHT), turn, flown.corners)
            for place, turn in zip(flown.position[: LAST + 1], flown.attitude[: LAST + 1], strict=True)
        ]
    )
    right = right + race_class("noisy").pixel_noise * rng.standard_normal(right.shape)
    return replace(flown, briefing=replace(flown.briefing, right_position=RIGHT)), right


def state_at(filter_: GateFilter, flown: Flights, number: int) -> FilterState:
    """The filter's state at a frame, of samples alone."""
    return filter_.advance(filter_.begin(flown.position.shape[1]), flown.samples[: number * FRAME])


def posed(position: ArrayLike, attitude: ArrayLike) -> InertialMotion:
    """One vehicle somewhere, at rest."""
    return replace(at_rest(np.asarray(position, np.float64), 0.0, 1, False), attitude=np.array(attitude, np.float64)[None])


# ---- Where corners are seen -------------------------------------------------------------------------------------------------


def test_what_is_told_of_the_pair_is_that_of_its_rig() -> None:
    lens = device("flightgoggles_camera").projection
    assert isinstance(lens, Pinhole)
    facts = onboard_facts(RACE, vehicle("flightgoggles_2019"), lens, race_class(), rates=(960.0, 60.0, 240.0))
    right = rig("flightgoggles_race")["right"]
    assert facts.right_position == right.mount.position == tuple(RIGHT)
    assert right.projection == facts.camera
    # Estimators are told of one camera, until a pilot tells them of both.
    assert facts.briefing().right_position is None


def test_a_point_10_m_ahead_is_seen_17_5_px_apart() -> None:
    briefing = replace(race_briefing(RACE, race_class()), right_position=RIGHT)
    count = len(briefing.landmarks)
    ahead = np.array([[[10.0, 0.3, 0.2], [10.0, -1.0, 0.0], [5.0, 0.0, 0.0], [20.0, 2.0, -1.0]]])
    corners = np.concatenate([ahead, briefing.corners[1:]])
    view = sighted(
        replace(briefing, corners=corners), posed(np.zeros(3), [0, 0, 0, 1]), np.array([[0, count]]), np.zeros((1, 2, 3))
    )
    left, right = view.pixel[0, :4], view.pixel[0, 4:]
    # f b / z: 548.4 px x 0.32 m / 10 m; the right camera sees a point farther to the left, in the same row.
    np.testing.assert_allclose((left - right)[:, 0], 548.41 * 0.32 / ahead[0, :, 0], atol=1e-3)
    assert (left - right)[0, 0] == pytest.approx(17.55, abs=0.01)
    np.testing.assert_allclose((left - right)[:, 1], 0.0, atol=1e-9)
    np.testing.assert_allclose(view.depth[0, :4], view.depth[0, 4:])


def test_slopes_of_both_cameras_are_central_differences() -> None:
    rng = np.random.default_rng(8)
    tilt = Rotation.from_euler("Y", -20.0, degrees=True).as_quat()
    briefing = replace(
        race_briefing(RACE, race_class()),
        camera_position=np.array([0.1, 0.03, -0.05]), camera_attitude=tilt, right_position=np.array([0.1, -0.29, -0.05]),
    )  # fmt: skip
    motion = posed([17.0, -15.0, 5.0], Rotation.from_euler("ZYX", [1.5, 0.3, -0.4]).as_quat())
    which = np.array([[0, 1, len(briefing.landmarks), len(briefing.landmarks) + 2]])
    shift = rng.uniform(-0.3, 0.3, (1, 4, 3))
    view, step = sighted(briefing, motion, which, shift), 1e-4

    def moved(axis: int, by: float) -> InertialMotion:
        error = by * np.eye(6)[axis]
        turned = Rotation.from_rotvec(error[3:]) * Rotation.from_quat(motion.attitude)
        return replace(motion, position=motion.position + error[:3], attitude=turned.as_quat())

    def close(slope: Array, ahead: Array, behind: Array) -> None:
        # Of some 1,000 px: central differences at 1e-4 leave 1e-16 x 1e3 / 1e-4 of rounding and 1e-8 of the third derivative.
        np.testing.assert_allclose(slope, (ahead - behind) / (2.0 * step), rtol=0, atol=2e-3)

    for axis in range(6):
        slope = view.by_position[..., axis] if axis < 3 else view.by_turn[..., axis - 3]
        close(slope, *(sighted(briefing, moved(axis, by), which, shift).pixel for by in (step, -step)))
    for axis in range(3):
        by_gate = [sighted(briefing, motion, which, shift + by * np.eye(3)[axis]).pixel for by in (step, -step)]
        close(view.by_gate[..., axis], *by_gate)


# ---- One update -------------------------------------------------------------------------------------------------------------


def updated(filter_: GateFilter, *frames_: BeaconFrame) -> tuple[FilterState, UpdateRecord]:
    """The state behind frames before arming, one after the other, of a gate-filter of one flight."""
    state = filter_.begin(1)
    for frame in frames_:
        state, record = filter_.update(state, frame)
    return state, record


def from_the_start(briefing: RaceBriefing, off: float) -> tuple[Array, Array]:
    """What both cameras see of gates from the start, each pixel off by a little at random [px], (1, gates, 4, 2) each."""
    motion = at_rest(briefing.start, briefing.start_yaw, 1, False)
    rng, count = np.random.default_rng(4), len(briefing.landmarks)
    which = np.concatenate([np.arange(11), count + np.arange(11)])[None]
    view = sighted(briefing, motion, which, np.zeros((1, 22, 3)))
    shown = (view.depth > 1.0) & np.all((view.pixel > 0.0) & (view.pixel < [1024.0, 768.0]), axis=-1)
    pixel = np.where(shown[..., None], view.pixel + off * rng.standard_normal(view.pixel.shape), np.nan)
    left, right = pixel.reshape(1, 2, 11, 4, 2).swapaxes(0, 1)
    return left, right


@pytest.mark.parametrize("lit", [False, True])
def test_both_cameras_at_once_are_one_after_the_other_to_first_order(lit: bool) -> None:
    briefing = replace(race_briefing(RACE, race_class()), right_position=RIGHT, start_bound=np.array([0.1, 0.1, 0.1, 0.02]))
    left, right = from_the_start(briefing, 1e-4)
    if lit:  # decoys are numbered between what both cameras see
        briefing = replace(briefing, decoys=briefing.corners[:2] + 3.0)
    filter_ = GateFilter(briefing, GateFilterOptions(iterations=1))
    none = np.full_like(left, np.nan)
    at_once, record = updated(filter_, BeaconFrame(0.0, left, right=right))
    in_turn, _ = updated(filter_, BeaconFrame(-1.0 / 60.0, left), BeaconFrame(0.0, none, right=right))
    # Pixels are off by 1e-4 of their noise: what the slopes differ by is of that order, what is compared of the noise's.
    scale = np.sqrt(np.einsum("nii->ni", filter_.covariance(at_once)))
    scale = np.where(scale > 0.0, scale, 1.0)
    off = filter_.covariance(at_once) - filter_.covariance(in_turn)
    np.testing.assert_allclose(off / scale[:, :, None] / scale[:, None], 0.0, atol=1e-4)
    np.testing.assert_allclose(at_once.now.gates, in_turn.now.gates, atol=1e-7)
    np.testing.assert_allclose(at_once.now.motion.position, in_turn.now.motion.position, atol=1e-7)
    assert record.used[0] == np.isfinite(left).all(-1).sum() + np.isfinite(right).all(-1).sum()
    counted = np.isfinite(left).all(-1).sum(-1) + np.isfinite(right).all(-1).sum(-1)
    np.testing.assert_array_equal(record.seen_of[:, :11], counted)
    assert not record.seen_of[:, 11:].any()


def test_the_distance_of_a_gate_is_better_known_by_both() -> None:
    briefing = replace(race_briefing(RACE, race_class()), right_position=RIGHT)
    filter_ = GateFilter(briefing)
    left, right = from_the_start(briefing, 0.0)
    one, two = (updated(filter_, BeaconFrame(0.0, left, right=given))[0] for given in (None, right))
    gates = np.flatnonzero(np.isfinite(left[0]).all((1, 2)) & np.isfinite(right[0]).all((1, 2)) & briefing.bound[:, :2].all(1))
    assert len(gates) == 2  # Gate10 and Gate13; what else is seen from there moves little or not
    center, _, by_yaw = gate_axes(briefing, np.zeros((1, 11, 3)))
    for gate in gates:
        way = center[0, gate] - briefing.start
        way /= np.linalg.norm(way)
        slope = np.zeros(filter_.covariance(one).shape[1])
        # Of (centre - position) along the line of sight, by the position and the gate's own dx, dy, dyaw.
        slope[:3] = -way
        at = filter_.gates_at + 3 * gate
        slope[at : at + 3] = way[0], way[1], by_yaw[0, gate] @ way
        variance = [float(slope @ filter_.covariance(state)[0] @ slope) for state in (one, two)]
        assert variance[1] < 0.7 * variance[0], briefing.gates[gate]
        # Two looks at the same corners are worth half, and the baseline adds little: it is a sixth of the gate's own width.
        assert variance[1] > 0.4 * variance[0], briefing.gates[gate]


def test_with_both_cameras_errors_are_as_large_as_they_are_said_to_be() -> None:
    flown, right = both_eyes()
    filter_ = GateFilter(flown.briefing)
    state, which, scores = filter_.begin(6), moving(filter_), []
    for number in range(LAST + 1):
        if number:
            state = filter_.advance(state, flown.samples[FRAME * (number - 1) : FRAME * number])
        state, _ = filter_.update(state, BeaconFrame(number * FRAME / RATE, flown.pixel[number], right=right[number]))
        if number > 30:
            scores.append(nees(errors(flown, number, state), filter_.covariance(state), which) / len(which))
    # Errors of a flight follow each other; over six flights of 40 freedoms a mean of 1 deviates by 0.1 or so. The filter
    # assumes 1.3 times the noise there is, and is therefore less sure than it might be.
    assert 0.5 < float(np.mean(scores)) < 1.3


def test_a_batch_with_both_cameras_has_the_bits_of_its_flights() -> None:
    flown, right = both_eyes()
    filter_ = GateFilter(flown.briefing)
    for rows in (slice(0, 1), slice(3, 4)):
        one = replace(flown, position=flown.position[:, rows], samples=flown.samples[:, rows])
        alone, _ = filter_.update(state_at(filter_, one, 30), BeaconFrame(0.5, flown.pixel[30, rows], right=right[30, rows]))
        whole, _ = filter_.update(state_at(filter_, flown, 30), BeaconFrame(0.5, flown.pixel[30], right=right[30]))
        np.testing.assert_array_equal(whole.now.gates[rows], alone.now.gates)
        np.testing.assert_array_equal(whole.now.covariance[rows], alone.now.covariance)


def test_without_pixels_of_the_second_camera_its_place_is_no_matter() -> None:
    flown, _ = both_eyes()
    told, untold = GateFilter(flown.briefing), GateFilter(replace(flown.briefing, right_position=None))
    a, b = (filter_.update(state_at(filter_, flown, 30), BeaconFrame(0.5, flown.pixel[30]))[0] for filter_ in (told, untold))
    np.testing.assert_array_equal(a.now.covariance, b.now.covariance)
    np.testing.assert_array_equal(a.now.motion.position, b.now.motion.position)


def test_what_does_not_fit_is_refused() -> None:
    briefing = race_briefing(RACE, race_class())
    pixel = np.full((1, 11, 4, 2), np.nan)
    with pytest.raises(AirworthyError, match="pixels of a second camera; the briefing tells of one alone"):
        updated(GateFilter(briefing), BeaconFrame(0.0, pixel, right=pixel))
    two = replace(briefing, right_position=RIGHT)
    with pytest.raises(AirworthyError, match=r"A frame of beacons of the second camera has the shape \(1, 2, 4, 2\)"):
        updated(GateFilter(two), BeaconFrame(0.0, pixel, right=pixel[:, :2]))
    with pytest.raises(AirworthyError, match="infinite"):
        updated(GateFilter(two), BeaconFrame(0.0, pixel, right=np.full_like(pixel, np.inf)))
    with pytest.raises(AirworthyError, match=r"'right_position' of a briefing has the shape \(2,\); expected \(3,\)"):
        replace(briefing, right_position=np.zeros(2))
    with pytest.raises(AirworthyError, match="names are matched for one camera alone"):
        replace(two, identified=False)


def test_the_frame_of_one_flight_brings_both_cameras() -> None:
    rng = np.random.default_rng(2)
    frame = BeaconFrame(0.5, rng.random((3, 2, 4, 2)), right=rng.random((3, 2, 4, 2)))
    frame.pixel[1, 0, 1:], frame.right[1, 0, 3:] = np.nan, np.nan  # type: ignore[index]
    one = frame.of(1)
    assert one.right is not None
    assert np.array_equal(one.right, frame.right[1:2], equal_nan=True)  # type: ignore[index]
    assert one.right.base is None
    assert frame.corners_seen.tolist() == [[4, 4], [3, 4], [4, 4]]
    assert BeaconFrame(0.5, frame.pixel).corners_seen.tolist() == [[4, 4], [1, 4], [4, 4]]


# ---- Names ------------------------------------------------------------------------------------------------------------------


def test_openings_are_expected_from_where_the_right_camera_is() -> None:
    briefing = replace(race_briefing(RACE, race_class()), right_position=RIGHT)
    filter_ = GateFilter(briefing)
    begun = filter_.begin(1).now
    left, right = (expected_openings(briefing, begun, filter_.gates_at, camera) for camera in (0, 1))
    # As a vehicle would see them with its only camera there.
    there = begun.motion.position + frames.rotate(begun.motion.attitude, RIGHT)
    moved = expected_openings(briefing, replace(begun, motion=replace(begun.motion, position=there)), filter_.gates_at)
    assert [item.gate for item in right] == [item.gate for item in moved]
    for a, b, c in zip(right, moved, left, strict=True):
        np.testing.assert_allclose(a.corners, b.corners, atol=1e-9)
        np.testing.assert_allclose(a.hidden, b.hidden, atol=1e-9)
        order = around(briefing.corners[a.gate])
        assert np.array_equal(a.order, order)
        assert np.all(c.corners[:, 0] > a.corners[:, 0])
    pixel = named([Opening(right[0].corners, 20.0)], right, 11)
    np.testing.assert_allclose(pixel[right[0].gate, right[0].order], right[0].corners + right[0].hidden)
