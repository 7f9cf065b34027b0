"""Square markers: their poses and corners in single images, dictionaries, and the sheet that is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.capture.alignment.marker_sheet import NOTE, draw_marker, draw_marker_sheet, write_marker_sheet
from airworthy.capture.alignment.markers import (
    DICTIONARIES,
    SIDE,
    detect_marker,
    detect_markers,
    marker_corners,
    marker_poses,
    refined_corners,
)
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import srgb_from_linear

LENS = np.array([1400.0, 1410.0, 540.0, 960.0])


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return frames.normalize(rng.normal(size=4))


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


def test_the_drawn_marker() -> None:
    """Six cells across: a black border around 1011 0101 0011 0010, white being 1; and white around it all."""
    cells = draw_marker(1)
    assert cells.shape == (8, 8)
    assert (cells[[0, -1]] == 255).all()
    assert (cells[1:7, [1, 6]] == 0).all()
    assert "".join(str(value // 255) for value in cells[2:6, 2:6].ravel()) == "1011010100110010"


def test_without_opencv_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(AirworthyError, match=r"pip install 'airworthy\[capture\]'"):
        detect_marker(np.zeros((10, 10, 3), np.uint8))
    with pytest.raises(AirworthyError, match="0 to 49"):
        detect_marker(np.zeros((10, 10, 3), np.uint8), 50)


def on_paper(marker: np.ndarray, margin: int = 40) -> np.ndarray:
    """A marker on grey paper, RGB."""
    return np.pad(np.repeat(marker[..., None], 3, axis=-1), ((margin, margin), (margin, margin), (0, 0)), constant_values=200)


def test_markers_are_found_by_opencv() -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    generated = cv2.aruco.generateImageMarker(cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50), 0, 60)
    assert (generated == draw_marker(10)[10:-10, 10:-10]).all()
    sheet = on_paper(draw_marker(20))
    square = np.array([[60, 60], [180, 60], [180, 180], [60, 180]])
    assert detect_marker(sheet) == pytest.approx(square, abs=0.2)
    assert detect_marker(sheet, 1) is None


@pytest.mark.parametrize("dictionary", ["4x4_50", "6x6_250", "aruco_original", "apriltag_36h11"])
def test_markers_of_every_kind_are_found_where_they_are_drawn(dictionary: str) -> None:
    """Corners in the order of the drawing, to what 8 bits leave; two different ones side by side are told apart."""
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    cells = DICTIONARIES[dictionary][1] + 2
    pair = np.concatenate([on_paper(draw_marker(12, number, dictionary)) for number in (3, 17)], axis=1)
    found = detect_markers(pair, dictionary)
    assert list(found) == [3, 17]
    side, step = 12 * cells, 12 * (cells + 2) + 80
    for index, number in enumerate((3, 17)):
        left = 52 + index * step
        square = np.array([[left, 52], [left + side, 52], [left + side, 52 + side], [left, 52 + side]])
        assert found[number] == pytest.approx(square, abs=0.2)
    assert list(detect_markers(pair, dictionary, (17,))) == [17]


def test_a_number_that_is_seen_twice_is_no_marker() -> None:
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    twice = np.concatenate([on_paper(draw_marker(12))] * 2, axis=1)
    assert detect_markers(twice) == {}


def test_edges_of_a_foreshortened_marker_are_refined() -> None:
    """Twice as wide as high, 3 px a cell: what is looked at across the long edges ends within the black border."""
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    from PIL import Image

    # Reduced eightfold by the mean of light, as a lens does: bytes and blur leave a tenth of a pixel.
    big = np.pad(draw_marker(48)[::2], ((203, 197), (325, 315)), constant_values=255)
    light = (big / 255.0).reshape(big.shape[0] // 8, 8, big.shape[1] // 8, 8).mean(axis=(1, 3))
    blurred = Image.fromarray(np.float32(light)).resize((light.shape[1], light.shape[0]))
    rgb = np.repeat(np.rint(255.0 * srgb_from_linear(np.asarray(blurred)))[..., None], 3, axis=-1).astype(np.uint8)
    left, top, wide, high = (325 + 48) / 8, (203 + 24) / 8, 6 * 48 / 8, 6 * 24 / 8
    square = np.array([[left, top], [left + wide, top], [left + wide, top + high], [left, top + high]])
    assert refined_corners(rgb, square + 0.4) == pytest.approx(square, abs=0.1)


def test_unknown_dictionaries_and_numbers() -> None:
    with pytest.raises(AirworthyError, match=r"Unknown marker dictionary '4x4'. Closest: '4x4_50'"):
        draw_marker(4, 0, "4x4")
    with pytest.raises(AirworthyError, match="apriltag_36h11 has the markers 0 to 586; 587 is none of them"):
        draw_marker(4, 587, "apriltag_36h11")


def test_the_sheet_says_what_it_is(tmp_path: Path) -> None:
    """Its size on paper, the bar of 100 mm beside it, and what was drawn as text in the file."""
    from PIL import Image

    pixels, density = draw_marker_sheet(0.16)
    columns = np.flatnonzero((pixels[:700] < 50).any(axis=0))
    assert (columns[-1] + 1 - columns[0]) / density == pytest.approx(0.16, abs=1e-3)
    # It must fit the width of A4 less what printers leave white, or they shrink it.
    assert pixels.shape[1] / density <= 0.2001
    assert pixels.shape[0] / density <= 0.287
    bar = pixels[np.flatnonzero((pixels < 50).any(axis=1))[-8]]
    ends = np.flatnonzero(bar < 50)
    assert (ends[-1] - ends[0]) / density == pytest.approx(0.1, abs=1e-3)
    held = write_marker_sheet(tmp_path / "m.png", 0.25)
    assert held == {"dictionary": "4x4_50", "number": 0, "side_m": 0.25}
    with Image.open(tmp_path / "m.png") as image:
        assert json.loads(image.text[NOTE]) == held
    with pytest.raises(AirworthyError, match=r"expected a name that ends in \.png"):
        write_marker_sheet(tmp_path / "m.jpg")
    with pytest.raises(AirworthyError, match=r"expected 0\.01 to 5 m"):
        draw_marker_sheet(6.0)
