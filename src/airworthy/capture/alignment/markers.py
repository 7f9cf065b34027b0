"""Square markers: where they are in an image, and from where they were seen.

The frame of a marker: its centre, x to its right, y to its top, z out of it. Corners are in the order upper left, upper right,
lower right, lower left of the marker as it is drawn, in pixels whose origin is the upper left corner of the image.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.jobs.progress import progress
from airworthy.optics.tone import linear_from_srgb

__all__ = [
    "DICTIONARIES",
    "DICTIONARY",
    "PUBLISHED_SIDE",
    "SIDE",
    "MarkerPose",
    "detect_marker",
    "detect_markers",
    "dictionary_cells",
    "find_all_markers",
    "find_markers",
    "marker_corners",
    "marker_poses",
    "opencv",
    "refined_corners",
]

# ---- Corners of a dark square to a fraction of a pixel: where lines through its edges meet ----------------------------------
#
# A lens rounds corners off, and a point found there lies too far inside; the middles of the edges stay where they are. They
# are looked for in light, since the encoding of an image moves blurred edges to their dark side.

_ENDS = 0.18
"""Share of an edge that is left out at each end."""
_STEP = 0.25
"""Between samples across an edge [px]."""
_REACH = 2.0
"""Least half of the width that is looked at across an edge [px]: blur is about as wide."""
_CONTRAST = 0.05
"""Least difference of light across an edge."""
_ROUNDS = 4


def refined_corners(rgb: ArrayU8, corners: ArrayLike) -> Array:
    """Return corners (4, 2) [px] of a dark square on white, from ones that are a few pixels off.

    Across every edge the light rises from dark to white; with any symmetric blur the edge is where the areas on both sides of
    it are equal. Cells of a marker and its margin are a sixth of the side, and half of one is looked at to each side.

    Args:
        rgb: (h, w, 3) sRGB-encoded.
        corners: (4, 2) [px], around the square.

    Returns:
        The corners; the given ones where an edge cannot be told or lies elsewhere.
    """
    given = np.asarray(corners, np.float64)
    light = linear_from_srgb(rgb).astype(np.float64) @ (0.2126, 0.7152, 0.0722)
    found = given.copy()
    for _ in range(_ROUNDS):
        lines = [_line(light, found, k) for k in range(4)]
        if any(line is None for line in lines):
            return given
        crossings = [np.cross(lines[k - 1], lines[k]) for k in range(4)]  # type: ignore[arg-type]
        if min(abs(point[2]) for point in crossings) < 1e-9:
            return given
        found = np.array([point[:2] / point[2] for point in crossings])
    side = np.linalg.norm(given - np.roll(given, 1, axis=0), axis=-1).min()
    return found if np.linalg.norm(found - given, axis=-1).max() < max(side / 6.0, 2.0) else given


def _line(light: Array, corners: Array, number: int) -> Array | None:
    """Return the line (a, b, c), a x + b y + c = 0, of an edge from a corner to the next; None where there is no such edge."""
    start, end = corners[number], corners[(number + 1) % 4]
    length = float(np.linalg.norm(end - start))
    # Ours: on fewer pixels an edge has no profile; on more than 100,000 a corner is no number of an image.
    if not 8.0 <= length < 1e5:
        return None
    along = (end - start) / length
    outward = np.array([along[1], -along[0]])
    if outward @ (start + end - 2.0 * corners.mean(axis=0)) < 0.0:
        outward = -outward
    # Ours: half of a cell of six across, as the square is foreshortened across this edge: beyond the black border is white.
    deep = float(np.abs((corners - start) @ outward).max())
    reach = float(np.clip(min(length, deep) / 12.0, _REACH, 12.0))
    share = np.linspace(_ENDS, 1.0 - _ENDS, max(8, int(length)))
    across = np.arange(-reach, reach + 0.5 * _STEP, _STEP)
    middle = start + share[:, None] * (end - start)
    profile = _sampled(light, middle[:, None] + across[:, None] * outward)
    ends = max(2, len(across) // 8)
    dark, white = profile[:, :ends].mean(axis=1), profile[:, -ends:].mean(axis=1)
    good = np.isfinite(profile).all(axis=1) & (white - dark > _CONTRAST)
    if np.count_nonzero(good) < 6:
        return None
    # Normalised by its own dark and white, so that light that falls off along the edge does not move it.
    rise = (profile[good] - dark[good, None]) / (white - dark)[good, None]
    # The area under the rise places the edge by all samples; a threshold would use two.
    offset = reach - np.trapezoid(rise, dx=_STEP, axis=1)
    return _fitted(middle[good] + offset[:, None] * outward)


def _fitted(points: Array) -> Array:
    """Return the line nearest to points (n, 2), those left out that are far from it for most."""
    for _ in range(3):
        middle = points.mean(axis=0)
        # Total least squares: errors are across the line, whichever way it runs.
        normal = np.linalg.svd(points - middle)[2][1]
        off = np.abs((points - middle) @ normal)
        near = off <= max(3.0 * float(np.median(off)), 0.02)
        if near.all() or np.count_nonzero(near) < 4:
            break
        points = points[near]
    return np.array([*normal, -normal @ middle])


def _sampled(light: Array, pixels: Array) -> Array:
    """Light at places (..., 2), bilinear between centres of pixels; NaN outside."""
    height, width = light.shape
    x, y = pixels[..., 0] - 0.5, pixels[..., 1] - 0.5
    inside = (x >= 0.0) & (y >= 0.0) & (x <= width - 1) & (y <= height - 1)
    column = np.clip(np.where(inside, np.floor(x), 0).astype(np.int64), 0, max(width - 2, 0))
    row = np.clip(np.where(inside, np.floor(y), 0).astype(np.int64), 0, max(height - 2, 0))
    u, v = x - column, y - row
    right, below = np.minimum(column + 1, width - 1), np.minimum(row + 1, height - 1)
    upper = (1.0 - u) * light[row, column] + u * light[row, right]
    lower = (1.0 - u) * light[below, column] + u * light[below, right]
    return np.where(inside, (1.0 - v) * upper + v * lower, np.nan)


# -----------------------------------------------------------------------------------------------------------------------------

SIDE = 0.16
"""Side of the black square [m] that is drawn and looked for where nobody says another: it fits A4."""
PUBLISHED_SIDE = 0.341
"""Of the marker in the published captures [m]."""
DICTIONARY = "4x4_50"
DICTIONARIES: dict[str, tuple[str, int, int]] = {
    "4x4_50": ("DICT_4X4_50", 4, 50),
    "4x4_100": ("DICT_4X4_100", 4, 100),
    "4x4_250": ("DICT_4X4_250", 4, 250),
    "5x5_50": ("DICT_5X5_50", 5, 50),
    "5x5_100": ("DICT_5X5_100", 5, 100),
    "5x5_250": ("DICT_5X5_250", 5, 250),
    "6x6_50": ("DICT_6X6_50", 6, 50),
    "6x6_100": ("DICT_6X6_100", 6, 100),
    "6x6_250": ("DICT_6X6_250", 6, 250),
    "aruco_original": ("DICT_ARUCO_ORIGINAL", 5, 1024),
    "apriltag_16h5": ("DICT_APRILTAG_16h5", 4, 30),
    "apriltag_25h9": ("DICT_APRILTAG_25h9", 5, 35),
    "apriltag_36h11": ("DICT_APRILTAG_36h11", 6, 587),
}
"""Name to OpenCV's name, cells across inside the black border, and how many markers it has."""
_STEPS = 20
_ENLARGED_MAX = 4_000_000
"""Pixels of an image that is looked through once more at twice its size."""


@dataclass(frozen=True, eq=False)
class MarkerPose:
    """A marker in the frame of a camera (x right, y down, z forward)."""

    position: Array
    """(3,) its centre [m]."""
    attitude: Array
    """(4,) marker to camera."""
    error: float
    """Root mean square distance of its corners from those in the image [px]."""

    @property
    def camera(self) -> tuple[Array, Array]:
        """Optical centre (3,) and camera-to-marker attitude (4,), frame of the marker."""
        return -frames.rotate_inverse(self.attitude, self.position), frames.conjugate(self.attitude)


def marker_corners(side: float) -> Array:
    """Return (4, 3) corners in the frame of the marker [m]."""
    return 0.5 * side * np.array([[-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 0.0]])


def marker_poses(corners: ArrayLike, intrinsics: ArrayLike, side: float) -> tuple[MarkerPose, MarkerPose]:
    """Return the two poses at which a square looks like this, the better first.

    From the homography of the corners follow two poses (Collins and Bartoli, 2014, Infinitesimal plane-based pose estimation);
    each is refined by Gauss-Newton on the corners. Seen small or from straight ahead, the two are nearly equally good.

    Args:
        corners: (4, 2) [px].
        intrinsics: (4,) fx, fy, cx, cy [px] of a pinhole.
        side: Of the black square [m].

    Raises:
        AirworthyError: The corners are those of no square in front of the camera, or a number cannot be used.
    """
    pixels, lens = np.asarray(corners, np.float64), np.asarray(intrinsics, np.float64)
    if pixels.shape != (4, 2) or lens.shape != (4,) or not np.isfinite([*pixels.ravel(), *lens, side]).all() or not side > 0.0:
        raise AirworthyError("A marker's pose needs 4 corners, fx, fy, cx, cy and a side above 0, all finite.")
    flat = (pixels - lens[2:]) / lens[:2]
    square = marker_corners(side)
    found = []
    for rotation, origin in _starts(flat, side):
        position, attitude = _refined(square, pixels, lens, origin, frames.from_matrix(rotation))
        error = float(np.sqrt(np.square(_residuals(square, pixels, lens, position, attitude)).sum(axis=-1).mean()))
        found.append(MarkerPose(position, attitude, error))
    found.sort(key=lambda pose: pose.error)
    return found[0], found[1]


def _starts(flat: Array, side: float) -> list[tuple[Array, Array]]:
    """Rotation and position of a square whose corners are seen at (4, 2) of the plane z = 1, both ways.

    At the centre, the image of the plane moves by J = B R22 / z, where R22 is the upper left of the rotation about the ray to
    the centre; a rotation's R22 has the largest singular value 1, which gives z, and its third row up to its sign.
    """
    matrix = _homography(marker_corners(side)[:, :2], flat)
    q = matrix[:2, 2]
    slope = matrix[:2, :2] - np.outer(q, matrix[2, :2])
    ray = np.array([*q, 1.0]) / np.sqrt(1.0 + q @ q)
    axis = np.cross([0.0, 0.0, 1.0], ray)
    turn = frames.to_matrix(frames.from_axis_angle(axis, np.array(np.arctan2(np.linalg.norm(axis), ray[2]))))
    upper = np.linalg.solve((np.eye(2, 3) - np.outer(q, [0.0, 0.0, 1.0])) @ turn[:, :2], slope)
    largest = float(np.linalg.svd(upper, compute_uv=False)[0])
    if not (np.isfinite(largest) and largest > 0.0):
        raise AirworthyError("The corners of a marker are those of no square in front of the camera.")
    upper = upper / largest
    rest = np.eye(2) - upper.T @ upper
    row = np.sqrt(np.maximum(np.diag(rest), 0.0)) * (1.0, np.sign(rest[0, 1]) or 1.0)
    origin = np.array([*q, 1.0]) / largest
    results = []
    for third in (row, -row):
        columns = np.vstack((upper, third))
        local = np.column_stack((columns, np.cross(columns[:, 0], columns[:, 1])))
        results.append((turn @ local, origin))
    return results


def _homography(plane: Array, image: Array) -> Array:
    """(3, 3) with a last entry of 1 that maps points (4, 2) of a plane onto others, exactly."""
    rows, values = [], []
    for (x, y), (u, v) in zip(plane, image, strict=True):
        rows += [[x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y], [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y]]
        values += [u, v]
    try:
        return np.append(np.linalg.solve(np.array(rows), np.array(values)), 1.0).reshape(3, 3)
    except np.linalg.LinAlgError as error:
        raise AirworthyError("The corners of a marker lie on a line; four corners of a square were expected.") from error


def _residuals(square: Array, pixels: Array, lens: Array, position: Array, attitude: Array) -> Array:
    camera_points = frames.rotate(attitude, square) + position
    with np.errstate(all="ignore"):
        return np.asarray(camera_points[:, :2] / camera_points[:, 2:] * lens[:2] + lens[2:] - pixels)


def _refined(square: Array, pixels: Array, lens: Array, position: Array, attitude: Array) -> tuple[Array, Array]:
    """Gauss-Newton on the eight coordinates; stops where a step does not help."""
    best = float(np.square(_residuals(square, pixels, lens, position, attitude)).sum())
    for _ in range(_STEPS):
        arm = frames.rotate(attitude, square)
        x, y, z = (arm + position).T
        zero = np.zeros(4)
        across = lens[0] * np.stack((1.0 / z, zero, -x / z**2), axis=-1)
        down = lens[1] * np.stack((zero, 1.0 / z, -y / z**2), axis=-1)
        slope = np.stack((across, down), axis=1)
        turned = np.cross(arm[:, None], slope)  # d(w x arm) . slope = w . (arm x slope)
        matrix = np.concatenate((slope, turned), axis=2).reshape(8, 6)
        residual = _residuals(square, pixels, lens, position, attitude).ravel()
        step = np.linalg.lstsq(matrix, -residual, rcond=None)[0]
        moved = position + step[:3]
        turn = frames.normalize(frames.multiply(frames.from_rotation_vector(step[3:]), attitude))
        error = float(np.square(_residuals(square, pixels, lens, moved, turn)).sum())
        if not error < best or not moved[2] > 0.0:
            break
        gain, best = best - error, error
        position, attitude = moved, turn
        if gain < 1e-14 * (1.0 + best):
            break
    return position, attitude


def detect_markers(rgb: ArrayU8, dictionary: str = DICTIONARY, numbers: Collection[int] | None = None) -> dict[int, Array]:
    """Return corners (4, 2) [px] of the markers of a dictionary in an image (h, w, 3), by their numbers.

    A number that is seen twice in an image is left out: nobody can tell which of the two is meant.

    Args:
        rgb: sRGB-encoded.
        dictionary: A name in `DICTIONARIES`.
        numbers: Those that are asked for; None: all.

    Raises:
        AirworthyError: OpenCV is not installed, or the dictionary is unknown or has no such marker.
    """
    wanted = set(_numbers(dictionary, numbers))
    detector = _detector(dictionary)
    found = _detected(detector, rgb, 1)
    # Cells of under 3 pixels are read in an enlarged image, or not at all.
    if not wanted <= set(found) and rgb.shape[0] * rgb.shape[1] <= _ENLARGED_MAX:
        found = _detected(detector, rgb, 2) | found
    return {
        number: refined_corners(rgb, corners)
        for number, corners in sorted(found.items())
        if corners is not None and (numbers is None or number in wanted)
    }


def detect_marker(rgb: ArrayU8, number: int = 0, dictionary: str = DICTIONARY) -> Array | None:
    """Return corners (4, 2) [px] of one marker in an image (h, w, 3); None where it is not seen, as `detect_markers`."""
    return detect_markers(rgb, dictionary, (number,)).get(number)


def find_markers(images: CaptureImages, number: int = 0, quiet: bool = True) -> dict[int, Array]:
    """Return corners (4, 2) [px] of one marker of the dictionary 4x4_50 by the number of the image."""
    return find_all_markers(images, (number,), quiet=quiet)[number]


def find_all_markers(
    images: CaptureImages, numbers: Collection[int] = (0,), dictionary: str = DICTIONARY, quiet: bool = True
) -> dict[int, dict[int, Array]]:
    """Return corners (4, 2) [px] by the number of the marker and that of the image, of all images that show one.

    Args:
        images: The capture.
        numbers: Of the markers.
        dictionary: A name in `DICTIONARIES`.
        quiet: Show no progress.

    Raises:
        AirworthyError: As `detect_markers`.
    """
    _numbers(dictionary, numbers)
    result: dict[int, dict[int, Array]] = {number: {} for number in numbers}
    for k, rgb in enumerate(progress(images.rgb, "Finding markers", quiet=quiet)):
        for number, corners in detect_markers(rgb, dictionary, numbers).items():
            result[number][k] = corners
    return result


def dictionary_cells(dictionary: str) -> int:
    """Return how many cells a marker has across, its black border among them; raises AirworthyError for an unknown name."""
    if dictionary not in DICTIONARIES:
        raise unknown_name("marker dictionary", dictionary, DICTIONARIES)
    return DICTIONARIES[dictionary][1] + 2


def _numbers(dictionary: str, numbers: Collection[int] | None) -> Collection[int]:
    dictionary_cells(dictionary)
    count = DICTIONARIES[dictionary][2]
    for number in numbers or ():
        if not 0 <= number < count:
            raise AirworthyError(f"The dictionary {dictionary} has the markers 0 to {count - 1}; {number} is none of them.")
    return range(count) if numbers is None else numbers


def opencv() -> Any:
    """Return the module cv2; raises AirworthyError where OpenCV is not installed."""
    try:
        return importlib.import_module("cv2")
    except ModuleNotFoundError as error:
        raise AirworthyError(
            "Finding markers and lines in images needs the package 'cv2': pip install 'airworthy[capture]'; or give corners."
        ) from error


def _detector(dictionary: str) -> Any:
    cv2 = opencv()
    parameters = cv2.aruco.DetectorParameters()
    parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    # Ours: OpenCV passes over squares whose outline is under 3 % of the image's width, 14 px a side in one of 1,920.
    parameters.minMarkerPerimeterRate = 0.01
    words = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, DICTIONARIES[dictionary][0]))
    return cv2.aruco.ArucoDetector(words, parameters)


def _detected(detector: Any, rgb: ArrayU8, times: int) -> dict[int, Array | None]:
    """Corners by number, of an image enlarged so many times; None where a number is seen twice."""
    picture = np.ascontiguousarray(rgb[..., ::-1])
    if times > 1:
        picture = opencv().resize(picture, None, fx=times, fy=times, interpolation=opencv().INTER_CUBIC)
    corners, numbers, _ = detector.detectMarkers(picture)
    found: dict[int, Array | None] = {}
    for square, number in zip(corners, [] if numbers is None else np.ravel(numbers).tolist(), strict=True):
        # OpenCV's origin is the centre of the first pixel.
        place = (np.asarray(square, np.float64).reshape(4, 2) + 0.5) / times
        found[number] = None if number in found else place
    return found
