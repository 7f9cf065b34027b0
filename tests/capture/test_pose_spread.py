"""How sure poses are: against adjustments of drawn observations, made another way, whose errors are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.capture.alignment_building import LENS, SIDE, Walk, walk

from airworthy.capture import CaptureImages, best_similarity
from airworthy.capture.alignment.marker_bundle import fit_markers
from airworthy.capture.alignment.marker_fit import MarkerSights, Square, fit_squares
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.pose_spread import BEYOND, PoseSpread, pixel_slopes, pose_spread
from airworthy.core import frames
from airworthy.core.errors import AirworthyError

COUNT, POINTS, VIEWS, NOISE = 18, 150, 6, 0.3
LOSS = 1e6
"""Of the drawn adjustments, whose noise is normal: that of least squares."""


def project(position: np.ndarray, attitude: np.ndarray, points: np.ndarray, focal: np.ndarray | float = 0.0) -> np.ndarray:
    """Pixels of points by cameras, one each."""
    eye = frames.rotate_inverse(attitude, points - position)
    return eye[..., :2] / eye[..., 2:] * (LENS[:2] + focal) + LENS[2:]


def moved(attitude: np.ndarray, turn: np.ndarray) -> np.ndarray:
    return frames.multiply(frames.from_rotation_vector(turn), attitude)


class Adjusted:
    """A walk whose poses come from drawn observations: points of a hall that each a few neighbouring images see."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.walk: Walk = walk(COUNT, seed)
        w = self.walk
        first = rng.integers(0, COUNT, POINTS)
        self.picture = ((first[:, None] + np.arange(VIEWS)) % COUNT).ravel()
        self.point = np.repeat(np.arange(POINTS), VIEWS)
        # About where the first of its images looks.
        ahead = frames.rotate(w.attitude[first], np.array([0.0, 0.0, 1.0]))
        self.points = w.position[first] + rng.uniform(1.5, 4.0, (POINTS, 1)) * ahead + rng.normal(0.0, 0.6, (POINTS, 3))
        eye = frames.rotate_inverse(w.attitude[self.picture], self.points[self.point] - w.position[self.picture])
        seen = eye[:, 2] > 0.4
        self.picture, self.point = self.picture[seen], self.point[seen]
        noise = NOISE * rng.normal(size=(len(self.picture), 2))
        self._adjust(noise)

    def _rows(self, x: np.ndarray) -> np.ndarray:
        """Pixels with centres, turns, points and the focal length moved by x."""
        n, k, p = COUNT, self.picture, self.point
        centre, turn = x[: 3 * n].reshape(n, 3), x[3 * n : 6 * n].reshape(n, 3)
        points = self.points + x[6 * n : -1].reshape(-1, 3)
        return project(self.walk.position[k] + centre[k], moved(self.walk.attitude[k], turn[k]), points[p], x[-1])

    def _adjust(self, noise: np.ndarray) -> None:
        """Gauss and Newton with slopes by differences of all numbers; no gauge but the least of the moves."""
        size = 6 * COUNT + 3 * POINTS + 1
        true, x = self._rows(np.zeros(size)), np.zeros(size)
        slope = np.zeros((2 * len(self.picture), size))
        rows = np.arange(len(slope)).reshape(-1, 2)
        # Of each picture, and of each point, an observation has one: all are moved at once, and each is told by its own.
        for first, of in [(0, self.picture), (3 * COUNT, self.picture), (6 * COUNT, self.point)]:
            for axis in range(3):
                column, step = first + 3 * of + axis, np.zeros(size)
                step[column] = 1e-5
                slope[rows, column[:, None]] = (self._rows(step) - self._rows(-step)) / 2e-5
        step = np.zeros(size)
        step[-1] = 1e-5
        slope[:, -1] = ((self._rows(step) - self._rows(-step)) / 2e-5).ravel()
        normal = slope.T @ slope
        normal[np.diag_indices(size)] += 1e-9 * np.diagonal(normal) + 1e-9
        for _ in range(3):
            x = x + np.linalg.solve(normal, slope.T @ (true + noise - self._rows(x)).ravel())
        n, w = COUNT, self.walk
        back = w.truth.inverse
        position = back.points(w.position + x[: 3 * n].reshape(n, 3))
        attitude = frames.multiply(back.rotation, moved(w.attitude, x[3 * n : 6 * n].reshape(n, 3)))
        lens = np.tile(LENS + np.array([x[-1], x[-1], 0.0, 0.0]), (n, 1))
        self.images: CaptureImages = replace(w.images, position=position, attitude=attitude, intrinsics=lens)
        self.leftover = true + noise - self._rows(x)
        self.position = back.points(self.points + x[6 * n : -1].reshape(-1, 3))[self.point]
        self.metres = best_similarity(position, w.position)

    def spread(self) -> PoseSpread:
        found = pose_spread(self.images, self.picture, self.position, self.leftover, LOSS)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def drawn() -> list[Adjusted]:
    return [Adjusted(seed) for seed in range(40)]


def test_slopes_are_those_of_differences() -> None:
    rng = np.random.default_rng(1)
    w = walk(8, 1)
    points = rng.normal(0.0, 0.3, (8, 3))
    point, camera = pixel_slopes(points, w.position, w.attitude, np.tile(LENS, (8, 1)))
    for axis in range(3):
        way = 1e-6 * np.eye(3)[axis]
        for found, ahead, behind in (
            (point[..., axis], (0.0, 0.0, way), (0.0, 0.0, -way)),
            (camera[..., axis], (way, 0.0, 0.0), (-way, 0.0, 0.0)),
            (camera[..., 3 + axis], (0.0, way, 0.0), (0.0, -way, 0.0)),
        ):
            a, b = (project(w.position + c, moved(w.attitude, np.zeros(3) + t), points + p) for c, t, p in (ahead, behind))
            np.testing.assert_allclose(found, (a - b) / 2e-6, rtol=1e-5, atol=1e-3)
    focal = (project(w.position, w.attitude, points, 0.5) - project(w.position, w.attitude, points, -0.5)) / 1.0
    np.testing.assert_allclose(camera[..., 6], focal, rtol=1e-9, atol=1e-9)
    # COLMAP's SIMPLE_RADIAL: a ray over its depth, times 1 + k r^2.
    flat = (project(w.position, w.attitude, points) - LENS[2:]) / LENS[:2]
    bent = LENS[:2] * flat * (1e-3 * np.square(flat).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(1e-3 * camera[..., 7], bent, rtol=1e-9, atol=1e-9)


def test_centres_are_off_as_much_as_is_told(drawn: list[Adjusted]) -> None:
    """Without the factor, which is for rendered pictures: drawn errors are independent."""
    shares = []
    for case in drawn:
        off = case.metres.points(case.images.position) - case.walk.position
        told = case.metres.scale * case.spread().centres / BEYOND
        shares.append(np.square(off).sum() / np.square(told).sum())
    # 40 times 47 directions, a few of which hold most of the bend.
    assert 0.8 < np.sqrt(np.mean(shares)) < 1.2


def test_the_scale_by_a_marker_is_within_its_interval_where_the_reconstruction_bends(drawn: list[Adjusted]) -> None:
    inside = 0
    for case in drawn:
        near = {k: case.walk.corners()[k] for k in range(6)}
        found = fit_markers(case.images, {0: near}, {0: SIDE}, bleed=0.0, poses=case.spread())
        inside += abs(np.log(found.scale / case.metres.scale)) <= found.scale_half
    assert inside >= 38


def test_weights_by_the_poses_lessen_the_error_where_these_bend_as_is_told(drawn: list[Adjusted]) -> None:
    """Poses that are drawn from the covariance, thrice as large as the adjustment's: corners are surer than these."""
    case, inside = drawn[0], 0
    spread = replace(case.spread(), covariance=9.0 * case.spread().covariance)
    values, vectors = np.linalg.eigh(spread.covariance)
    w, own = case.walk, vectors * np.sqrt(np.maximum(values, 0.0))
    back, rng = w.truth.inverse, np.random.default_rng(3)
    true = Square(back.points(np.zeros((1, 3)))[0], back.rotation, SIDE * back.scale)
    position, attitude = back.points(w.position), frames.multiply(back.rotation, w.attitude)
    errors = []
    for _ in range(40):
        x = own @ rng.normal(size=own.shape[1])
        pose = x[: 6 * COUNT].reshape(COUNT, 6)
        lens = np.tile(LENS + np.array([1.0, 1.0, 0.0, 0.0]) * x[6 * COUNT], (COUNT, 1))
        centres = position + pose[:, :3]
        pixels = w.seen(marker_corners(SIDE)) + 0.1 * rng.normal(size=(COUNT, 4, 2))
        sights = MarkerSights(np.arange(COUNT), pixels, lens, centres, moved(attitude, pose[:, 3:]))
        unit = best_similarity(centres, w.position).scale
        fits = [fit_squares([(true, SIDE)], [sights], 0.0, poses) for poses in (None, spread)]
        errors.append([np.log(SIDE / fit.squares[0].edge / unit) for fit in fits])
        inside += abs(errors[-1][1]) <= fits[1].spread.half95(np.eye(8)[0])
    exact, weighed = np.sqrt(np.square(errors).mean(axis=0))
    # By Gauss and Markov's theorem; both see the same draws.
    assert weighed < exact
    assert inside >= 36


def test_too_few_observations_tell_nothing() -> None:
    case = walk(6)
    assert pose_spread(case.images, [0, 1, 2], np.ones((3, 3)), np.zeros((3, 2)), 0.5) is None
    with pytest.raises(AirworthyError, match=r"3 observations have places \(2, 3\)"):
        pose_spread(case.images, [0, 1, 2], np.ones((2, 3)), np.zeros((3, 2)), 0.5)
