"""Similarities and markers: exact cases, outliers, noise, and a rendered marker from end to end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.capture import CaptureImages, read_capture
from airworthy.capture.alignment import Similarity, aligned, best_similarity, corners_by_name, find_alignment, find_similarity
from airworthy.capture.markers import SIDE, detect_marker, draw_marker, marker_corners, marker_poses, refined_corners
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import srgb_from_linear
from airworthy.rendering.converting import display_color, lit_batch
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes import Instance, Material, Region, Scene, Texture
from airworthy.scenes.splats import Splats
from airworthy.scenes.viewpoints import look_at

LENS = np.array([1400.0, 1410.0, 540.0, 960.0])


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return frames.normalize(rng.normal(size=4))


@given(st.integers(0, 10**6), st.integers(3, 40), st.floats(1e-3, 1e3))
def test_exact_points_give_the_exact_similarity(seed: int, count: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    source, turn, offset = rng.normal(size=(count, 3)), random_turn(rng), rng.normal(size=3)
    target = scale * frames.rotate(turn, source) + offset
    found = best_similarity(source, target)
    # Three random points may be nearly on a line, which costs digits; 1e-7 of 1e-16 allows a spread of 1e-4.
    assert found.scale == pytest.approx(scale, rel=1e-7)
    assert found.points(source) == pytest.approx(target, abs=1e-9 * (1.0 + scale))
    assert found.inverse.points(target) == pytest.approx(source, abs=1e-9 * (1.0 + 1.0 / scale))


def test_the_fit_is_that_of_least_squares() -> None:
    """No similarity nearby is better, along all seven directions."""
    rng = np.random.default_rng(0)
    source = rng.normal(size=(20, 3))
    target = 2.5 * frames.rotate(random_turn(rng), source) + rng.normal(size=3) + 0.1 * rng.normal(size=(20, 3))
    found = best_similarity(source, target)

    def cost(change: np.ndarray) -> float:
        turn = frames.multiply(frames.from_rotation_vector(change[:3]), found.rotation)
        moved = found.scale * np.exp(change[6]) * frames.rotate(turn, source) + found.translation + change[3:6]
        return float(np.square(moved - target).sum())

    best = cost(np.zeros(7))
    for axis in np.eye(7):
        assert cost(1e-4 * axis) > best
        assert cost(-1e-4 * axis) > best


def test_mirrored_points_give_a_rotation_all_the_same() -> None:
    rng = np.random.default_rng(1)
    source = rng.normal(size=(10, 3))
    found = best_similarity(source, source * (1.0, 1.0, -1.0))
    assert np.linalg.det(frames.to_matrix(found.rotation)) == pytest.approx(1.0)
    assert found.scale < 1.0


@pytest.mark.parametrize("seed", range(10))
def test_thirty_percent_outliers(seed: int) -> None:
    """Places exact to 0.3 mm but for 30 %, which are up to 3 m off: within 1 mm and 0.1 degrees over the set's extent."""
    rng = np.random.default_rng(seed)
    source, turn, offset, scale = rng.normal(size=(60, 3)), random_turn(rng), rng.normal(size=3), float(rng.uniform(0.2, 5.0))
    exact = scale * frames.rotate(turn, source) + offset
    target = exact + 3e-4 * rng.normal(size=(60, 3))
    wrong = rng.permutation(60)[:18]
    target[wrong] += rng.uniform(-3.0, 3.0, (18, 3))
    found = find_similarity(source, target, seed=seed)
    assert np.abs(found.similarity.points(source) - exact).max() < 1e-3
    assert np.degrees(frames.angle_between(found.similarity.rotation, turn)) < 0.1
    assert found.similarity.scale == pytest.approx(scale, rel=1e-3)
    assert found.inlier_ratio == pytest.approx(0.7, abs=0.05)  # an outlier may land nearby by chance
    assert found.residual < 2e-3
    again = find_similarity(source, target, seed=seed)
    assert (again.similarity.rotation == found.similarity.rotation).all()


def test_too_many_outliers_fail() -> None:
    rng = np.random.default_rng(2)
    source = rng.normal(size=(40, 3))
    target = source.copy()
    target[:21] += rng.uniform(1.0, 4.0, (21, 3))
    with pytest.raises(AirworthyError, match=r"Only \d+ of 40 places agree on a similarity within 0.05 m, and 50% are needed"):
        find_similarity(source, target)
    assert find_similarity(source, target, least=0.4).inlier_ratio == pytest.approx(19 / 40, abs=0.03)


@pytest.mark.parametrize(
    "points", [np.zeros((5, 3)), np.outer(np.arange(5.0), (1.0, 2.0, 3.0)), np.zeros((2, 3)), np.full((4, 3), np.nan)]
)
def test_points_that_determine_nothing(points: np.ndarray) -> None:
    with pytest.raises(AirworthyError):
        find_similarity(points, points)
    with pytest.raises(AirworthyError):
        best_similarity(points, points)


def projected_corners(position: np.ndarray, attitude: np.ndarray, side: float = SIDE, lens: np.ndarray = LENS) -> np.ndarray:
    """Pixels of a marker at a pose in the camera's frame."""
    corners = frames.rotate(attitude, marker_corners(side)) + position
    return corners[:, :2] / corners[:, 2:] * lens[:2] + lens[2:]


@given(st.integers(0, 10**6), st.floats(0.05, 2.0))
def test_the_pose_of_a_square(seed: int, side: float) -> None:
    rng = np.random.default_rng(seed)
    attitude = random_turn(rng)
    position = np.array([*rng.uniform(-0.4, 0.4, 2), 1.0]) * rng.uniform(1.5, 8.0) * side
    # Edge on, its corners are on a line and say nothing.
    if abs(frames.rotate(attitude, (0.0, 0.0, 1.0)) @ position) < 0.1 * np.linalg.norm(position):
        return
    best, other = marker_poses(projected_corners(position, attitude, side), LENS, side)
    assert best.error < 1e-6
    assert best.error <= other.error
    assert best.position == pytest.approx(position, abs=1e-6 * side)
    assert frames.angle_between(best.attitude, attitude) < 1e-6
    eye, turn = best.camera
    assert frames.rotate(attitude, eye) + position == pytest.approx(np.zeros(3), abs=1e-6 * side)
    assert frames.multiply(turn, attitude)[3] ** 2 == pytest.approx(1.0)


def test_the_second_pose_is_the_mirror_of_the_first() -> None:
    """Seen from afar, a tilted square looks like one tilted the other way: both are offered, and nearly as good."""
    attitude = frames.multiply(frames.from_axis_angle((0.0, 1.0, 0.0), 0.6), (1.0, 0.0, 0.0, 0.0))
    best, other = marker_poses(projected_corners(np.array([0.0, 0.0, 20.0]), attitude), LENS, SIDE)
    normals = [frames.rotate(pose.attitude, (0.0, 0.0, 1.0)) for pose in (best, other)]
    assert normals[0] == pytest.approx((-np.sin(0.6), 0.0, -np.cos(0.6)), abs=1e-6)
    assert normals[1] == pytest.approx((np.sin(0.6), 0.0, -np.cos(0.6)), abs=0.02)
    assert best.error < 1e-6 < other.error < 0.5


@pytest.mark.parametrize(
    ("corners", "side"),
    [
        (np.zeros((4, 2)), 1.0),
        (np.outer(np.arange(4.0), (1.0, 1.0)), 1.0),
        (np.full((4, 2), np.nan), 1.0),
        (np.zeros((3, 2)), 1.0),
        (np.array([[0, 0], [9, 0], [9, 9], [0, 9.0]]), 0.0),
    ],
)
def test_corners_of_no_square(corners: np.ndarray, side: float) -> None:
    with pytest.raises(AirworthyError):
        marker_poses(corners, LENS, side)


def marked_scene(side: float = SIDE) -> Scene:
    """A marker on a floor of speckled grey."""
    half = 0.5 * side * 8.0 / 6.0  # its white margin is a cell wide
    speckles = np.random.default_rng(0).integers(90, 160, (64, 64, 1)).astype(np.uint8)
    sheet = np.repeat(draw_marker(32)[..., None], 3, axis=-1)

    def square(half: float, height: float) -> Mesh:
        corners = np.array([[-half, half, height], [half, half, height], [half, -half, height], [-half, -half, height]])
        uv = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        return Mesh(corners, np.array([[0, 2, 1], [0, 3, 2]]), uv=uv)

    return Scene(
        "marked",
        shapes={"floor": square(2.0, 0.0), "sheet": square(half, 0.002)},
        textures={"floor": Texture(np.repeat(speckles, 3, axis=-1)), "sheet": Texture(sheet, wrap="clamp")},
        materials={name: Material((1.0, 1.0, 1.0, 1.0), base_color_map=name, roughness=1.0) for name in ("floor", "sheet")},
        instances=(Instance("floor", materials=("floor",)), Instance("sheet", materials=("sheet",))),
        bounds=Region((-2.0, -2.0, 0.0), (2.0, 2.0, 2.0)),
    )


def marked_views(encode: Callable = srgb_from_linear, count: int = 12, size: tuple[int, int] = (320, 240)) -> CaptureImages:
    """Rendered views of the marker from around and above, in which it is 43 to 82 px wide."""
    rng = np.random.default_rng(3)
    turn = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    position = np.stack((np.cos(turn), np.sin(turn), np.full(count, 1.0)), -1) * rng.uniform(0.8, 1.6, (count, 1))
    attitude = np.stack([look_at(place, rng.uniform(-0.1, 0.1, 3)) for place in position])
    lens = Pinhole.from_fov(*size, horizontal=1.0)
    batch = lit_batch(marked_scene(), baked=False)
    shading = ShadingOptions(samples=4)
    env = np.zeros(count, np.int32)
    light = render(batch, lens.rays(), position, attitude, env, ("rgb",), shading, projection=lens)["rgb"]
    rgb = tuple(np.rint(255.0 * encode(0.5 * image)).astype(np.uint8) for image in light)
    intrinsics = np.tile((lens.fx, lens.fy, lens.cx, lens.cy), (count, 1))
    return CaptureImages(rgb, intrinsics, position, attitude, points=rng.uniform(-1.0, 1.0, (9, 3)))


@pytest.fixture(scope="module")
def views() -> CaptureImages:
    return marked_views()


def true_corners(images: CaptureImages) -> np.ndarray:
    """(n, 4, 2) where the printed corners are, in the frame in which the images were rendered."""
    corners = marker_corners(SIDE) + np.array([0.0, 0.0, 0.002])
    eye = frames.rotate_inverse(images.attitude[:, None], corners - images.position[:, None])
    return eye[..., :2] / eye[..., 2:] * images.intrinsics[:, None, :2] + images.intrinsics[:, None, 2:]


def lost(images: CaptureImages, scale: float, seed: int = 0) -> CaptureImages:
    """The capture in some other frame and unit, as a reconstruction leaves it."""
    rng = np.random.default_rng(seed)
    return images.moved(random_turn(rng), rng.normal(size=3), 1.0 / scale)


@pytest.mark.parametrize("scale", [0.13, 1.0, 7.7])
def test_a_rendered_marker_gives_the_scale(views: CaptureImages, scale: float) -> None:
    """Corners found in the pictures themselves, starting a pixel off; two of twelve views are given wrong ones.

    Edges are found to about 0.1 px, of 50 samples each; the marker is 60 px wide and seen ten times: 0.1 %.
    """
    start = true_corners(views) + np.random.default_rng(5).normal(size=(len(views), 4, 2))
    corners = {k: refined_corners(views.rgb[k], place) for k, place in enumerate(start)}
    assert np.abs(np.array([*corners.values()]) - true_corners(views)).max() < 0.3
    corners[3] = corners[3] + (25.0, -10.0)
    corners[8] = corners[8] * 1.2
    images = lost(views, scale)
    found = find_alignment(images, corners, SIDE)
    assert found.agreeing.tolist() == [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]
    assert found.positions.inlier_ratio >= 10 / 12  # shifted corners are a turned camera, at nearly the same place
    assert found.similarity.scale == pytest.approx(scale, rel=0.002)
    back = aligned(images, found)
    assert back.metric
    assert np.linalg.norm(back.position - views.position, axis=-1).max() < 0.01
    assert np.degrees(frames.angle_between(back.attitude, views.attitude)).max() < 0.5
    assert np.abs(np.asarray(back.points) - np.asarray(views.points)).max() < 0.02
    assert back.notes[-1].startswith("aligned to a marker of 0.341 m seen in 12 images: scale ")


def test_a_tone_curve_costs_half_a_percent() -> None:
    """The project's own film curve is not sRGB: it moves blurred edges by 0.2 px, of 60."""
    images = marked_views(display_color)
    corners = {k: refined_corners(images.rgb[k], place) for k, place in enumerate(true_corners(images))}
    assert find_alignment(lost(images, 3.0), corners, SIDE).similarity.scale == pytest.approx(3.0, rel=0.01)


def test_corners_where_there_are_none_stay() -> None:
    rng = np.random.default_rng(0)
    given = np.array([[20.0, 20.0], [60.0, 21.0], [61.0, 60.0], [19.0, 58.0]])
    for rgb in (np.zeros((80, 80, 3), np.uint8), rng.integers(0, 256, (80, 80, 3)).astype(np.uint8)):
        assert (refined_corners(rgb, given) == given).all() or np.abs(refined_corners(rgb, given) - given).max() < 7.0
    assert (refined_corners(np.zeros((80, 80, 3), np.uint8), given - 30.0) == given - 30.0).all()
    assert (refined_corners(np.zeros((1, 1, 3), np.uint8), given) == given).all()


def test_edges_of_an_exact_square() -> None:
    """A square whose borders cut pixels, drawn by the share of each pixel that it covers."""
    place = np.arange(40.0)
    share = np.clip(np.minimum(place + 1.0, 30.3) - np.maximum(place, 9.6), 0.0, 1.0)
    light = 0.9 - 0.85 * share[:, None] * share
    rgb = np.repeat(np.rint(255.0 * srgb_from_linear(light)).astype(np.uint8)[..., None], 3, axis=-1)
    square = np.array([[9.6, 9.6], [30.3, 9.6], [30.3, 30.3], [9.6, 30.3]])
    # Bytes are 1/255 of the encoded range apart, at most 0.008 of light near white: over 8 samples a pixel, 0.02 px.
    assert refined_corners(rgb, square + np.array([1.0, -1.0])) == pytest.approx(square, abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_half_a_pixel_of_noise_leaves_the_scale_within_a_percent(views: CaptureImages, seed: int) -> None:
    """Without looking at the pictures: the corners where they are, and half a pixel of noise on each coordinate."""
    rng = np.random.default_rng(seed)
    noisy = true_corners(views) + 0.5 * rng.normal(size=(len(views), 4, 2))
    found = find_alignment(lost(views, 3.0, seed), dict(enumerate(noisy)), SIDE, seed=seed)
    assert found.similarity.scale == pytest.approx(3.0, rel=0.01)
    assert found.error == pytest.approx(0.5 * np.sqrt(2.0), rel=0.3)
    record = json.loads(json.dumps(found.record()))
    assert record["marker_side_m"] == SIDE
    assert record["images_with_marker"] == 12


def test_exact_corners_give_the_exact_frame(views: CaptureImages) -> None:
    images = lost(views, 2.0)
    found = find_alignment(images, dict(enumerate(true_corners(views))), SIDE)
    assert found.similarity.scale == pytest.approx(2.0, rel=1e-9)
    assert found.error < 1e-6
    back = aligned(images, found)
    assert back.position == pytest.approx(views.position - (0.0, 0.0, 0.002), abs=1e-8)
    assert back.source.rotation == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-8)  # there and back again
    assert back.source.scale == pytest.approx(1.0, rel=1e-9)


def test_three_pairs_are_enough_and_two_are_not() -> None:
    rng = np.random.default_rng(9)
    source = rng.normal(size=(3, 3))
    found = find_similarity(source, 2.0 * source + (1.0, 2.0, 3.0), trials=5)
    assert found.similarity.scale == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(AirworthyError, match="3 or more pairs"):
        find_similarity(source[:2], source[:2])


def test_corners_that_do_not_agree_are_fitted_to_the_end(views: CaptureImages) -> None:
    """Where their squares are least: along no direction is that place a millionth away."""
    rng = np.random.default_rng(5)
    noisy = true_corners(views) + 0.5 * rng.normal(size=(len(views), 4, 2))
    images = lost(views, 3.0)
    found = find_alignment(images, dict(enumerate(noisy)), SIDE)
    assert len(found.agreeing) == len(views)
    corners = marker_corners(SIDE)

    def squares(change: np.ndarray) -> float:
        turn = frames.multiply(frames.from_rotation_vector(change[:3]), found.similarity.rotation)
        moved = Similarity(turn, found.similarity.translation + change[3:6], found.similarity.scale * float(np.exp(change[6])))
        where, attitude = moved.points(images.position), frames.multiply(moved.rotation, images.attitude)
        eye = frames.rotate_inverse(attitude[:, None], corners - where[:, None])
        pixels = eye[..., :2] / eye[..., 2:] * images.intrinsics[:, None, :2] + images.intrinsics[:, None, 2:]
        return float(np.square(pixels - noisy).sum())

    step = 1e-4
    slopes = [(squares(step * axis) - squares(-step * axis)) / (2.0 * step) for axis in np.eye(7)]
    bends = [(squares(step * axis) + squares(-step * axis) - 2.0 * squares(np.zeros(7))) / step**2 for axis in np.eye(7)]
    assert np.abs(np.divide(slopes, bends)).max() < 1e-6


def test_splats_move_with_the_images(views: CaptureImages) -> None:
    """A gaussian at a corner of the marker, in the frame of the capture, is at the marker's corner in metres."""
    images = lost(views, 4.0)
    found = find_alignment(images, dict(enumerate(true_corners(views))), SIDE).similarity
    corner = marker_corners(SIDE)[:1]
    splats = Splats(
        found.inverse.points(corner), np.array([[0.0, 0.0, 0.0, 1.0]]), np.full((1, 3), 0.1), np.ones(1), np.zeros((1, 1, 3))
    )
    moved = found.splats(splats)
    assert moved.position == pytest.approx(corner, abs=1e-6)
    assert moved.scale == pytest.approx(np.full((1, 3), 0.4), rel=1e-6)


def test_markers_seen_too_seldom_or_from_one_line(views: CaptureImages) -> None:
    corners = dict(enumerate(true_corners(views)))
    with pytest.raises(AirworthyError, match="The marker is seen in 2 images, and 3 are needed"):
        find_alignment(views, {0: corners[0], 1: corners[1]})
    three = find_alignment(views, {k: corners[k] for k in (0, 5, 9)})
    assert len(three.images) == 3
    assert three.similarity.scale == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(AirworthyError, match="Corners are given of the image 12, and there are 12"):
        find_alignment(views, {**corners, 12: corners[0]})
    rng = np.random.default_rng(0)
    shuffled = {k: rng.permutation(value) for k, value in corners.items()}
    with pytest.raises(AirworthyError, match="check the side of the marker"):
        find_alignment(views, shuffled)
    along = np.stack((np.linspace(-1.0, 1.0, 12), np.full(12, -1.0), np.ones(12)), axis=-1)
    straight = CaptureImages(views.rgb, views.intrinsics, along, np.stack([look_at(place, np.zeros(3)) for place in along]))
    with pytest.raises(AirworthyError, match=r"lie (within|on) .*line"):
        find_alignment(straight, dict(enumerate(true_corners(straight))))


def test_corners_by_the_names_of_images(views: CaptureImages) -> None:
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    found = corners_by_name(views, {"00003": square}, refine=False)
    assert list(found) == [3]
    assert (found[3] == square).all()
    with pytest.raises(AirworthyError, match="Unknown image 'x'"):
        corners_by_name(views, {"x": square})
    with pytest.raises(AirworthyError, match="are not four pairs of numbers"):
        corners_by_name(views, {"00003": [[0, "a"]]})


def test_the_drawn_marker() -> None:
    """Six cells across: a black border around 1011 0101 0011 0010, white being 1; and white around it all."""
    cells = draw_marker(1)
    assert cells.shape == (8, 8)
    assert (cells[[0, -1]] == 255).all()
    assert (cells[1:7, [1, 6]] == 0).all()
    assert "".join(str(value // 255) for value in cells[2:6, 2:6].ravel()) == "1011010100110010"


def test_markers_are_found_by_opencv(views: CaptureImages) -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    generated = cv2.aruco.generateImageMarker(cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50), 0, 60)
    assert (generated == draw_marker(10)[10:-10, 10:-10]).all()
    sheet = np.pad(np.repeat(draw_marker(20)[..., None], 3, axis=-1), ((40, 40), (60, 60), (0, 0)), constant_values=200)
    square = np.array([[80, 60], [200, 60], [200, 180], [80, 180]])
    assert detect_marker(sheet) == pytest.approx(square, abs=0.2)
    assert detect_marker(sheet, 1) is None
    found = {k: corners for k in range(len(views)) if (corners := detect_marker(views.rgb[k])) is not None}
    assert len(found) >= 10
    assert find_alignment(lost(views, 3.0), found, SIDE).similarity.scale == pytest.approx(3.0, rel=0.002)


def test_without_opencv_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(AirworthyError, match=r"pip install 'airworthy\[capture\]'"):
        detect_marker(np.zeros((10, 10, 3), np.uint8))
    with pytest.raises(AirworthyError, match="0 to 49"):
        detect_marker(np.zeros((10, 10, 3), np.uint8), 50)


def test_an_aligned_capture_is_written_as_metric(views: CaptureImages, tmp_path: Path) -> None:
    from airworthy.capture import write_capture

    images = lost(views, 2.0)
    write_capture(aligned(images, find_alignment(images, dict(enumerate(true_corners(views))), SIDE)), tmp_path)
    again = read_capture(tmp_path)
    assert again.metric
    assert again.position == pytest.approx(views.position - (0.0, 0.0, 0.002), abs=1e-8)
