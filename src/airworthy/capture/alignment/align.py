"""From the frame of a reconstruction to that of a place: metres, z up, the origin on the floor - and how sure each of it is.

Scale comes from markers of known sides and from known distances; level from what stands upright, the floor, a marker on it and
accelerations; heights from a marker on the floor or the floor itself. What nothing tells is said, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.capture.alignment.floor import Floor, find_floor
from airworthy.capture.alignment.known_distance import KnownDistance, combined_scale, measured_scale
from airworthy.capture.alignment.level import (
    Accelerations,
    PlaceLevel,
    UpDirection,
    angle_of,
    combined_level,
    up_by_accelerations,
    up_by_cameras,
)
from airworthy.capture.alignment.marker_bundle import MarkerBundle, fit_markers, names_of
from airworthy.capture.alignment.marker_fit import BLEED, NORMAL_95
from airworthy.capture.alignment.marker_refinement import PictureRefiner
from airworthy.capture.alignment.markers import SIDE, find_all_markers, find_markers, refined_corners
from airworthy.capture.alignment.pose_spread import PoseSpread
from airworthy.capture.alignment.record import Alignment, AlignOptions
from airworthy.capture.alignment.similarity import Similarity
from airworthy.capture.alignment.verticals import CONE, seen_segments, up_by_segments
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle

__all__ = ["AlignOptions", "Alignment", "align_capture", "aligned", "corners_by_name", "find_alignment", "find_markers"]

IDLE_RULES = (
    IdleRule(("dictionary",), lambda options, corners: corners is not None, "with corners, which say where markers are"),
    IdleRule(
        ("unscaled",), lambda options, corners: bool(options.known_distance), "with a known distance, which gives the scale"
    ),
    IdleRule(
        ("marker_on",), lambda options, corners: options.level == "marker", "with level 'marker', which takes it as the floor"
    ),
)
"""Options that change nothing beside the others, and beside given corners."""

_UNSURE = 0.5
"""A scale whose 95 % interval is wider than this share to a side tells nothing."""
_DOUBTFUL = 0.02
"""... than this is said."""
_SCATTERED = 1.5
"""How much wider the interval of a scale has to be made, as those that tell it differ, for that to be said."""
_ON_FLOOR = np.radians(60.0)
"""A marker whose front points further from up than this does not lie on a floor."""
_HEIGHT_OFF = 0.03
"""A marker this far from the floor [m], and by more than their intervals, does not lie on it."""
_STEEP = np.radians(45.0)
_FRAME_SIGMA = np.radians(0.1)
"""Standard deviation of a set's z about each level axis where somebody says that it is up."""
_MARKER_SLOPE = np.radians(0.2)
"""Standard deviation of a sheet's own slope on a floor about each level axis; ours: a millimetre under an edge of 0.3 m."""

Corners = Mapping[int, Mapping[int, ArrayLike]]
"""(4, 2) [px] by the number of the marker and that of the image."""


def find_alignment(
    images: CaptureImages, corners: Mapping[int, ArrayLike], side: float = SIDE, seed: int = 0, bleed: float = BLEED
) -> Alignment:
    """Return the similarity into the frame of one marker, by this marker alone: its centre the origin, z out of it.

    Args:
        images: The capture.
        corners: (4, 2) [px] by the number of the image; upper left, upper right, lower right, lower left.
        side: Of the marker's black square [m].
        seed: Of the choice of pairs of images.
        bleed: Standard deviation of how far edges are seen outside of where they are [px]; 0 for corners
            that are exact but for noise.

    Raises:
        AirworthyError: As `align_capture`.
    """
    return align_capture(images, AlignOptions(side=side, level="marker", bleed=bleed, seed=seed), {0: corners})


def align_capture(
    images: CaptureImages,
    options: AlignOptions | None = None,
    corners: Corners | None = None,
    accelerations: Accelerations | None = None,
    quiet: bool = True,
    larger: CaptureImages | None = None,
    poses: PoseSpread | None = None,
) -> Alignment:
    """Return the similarity that makes a capture metric and level.

    Args:
        images: The capture.
        options: By what; None: all as it is.
        corners: Of markers, by their numbers and those of images; None: they are looked for.
        accelerations: What was recorded while filming.
        quiet: Show no progress.
        larger: The same images with more pixels, in which markers are looked for; None: there are none.
        poses: How sure poses are (`pose_spread`), for weights and intervals of markers, and intervals of known distances; None:
            they are taken as exact.

    Raises:
        AirworthyError: Larger images are not the same ones; nothing tells the scale, or what tells it contradicts itself: the
            sentence names the images.
    """
    options = options or AlignOptions()
    refuse_idle(options, IDLE_RULES, corners)
    notes: list[str] = []
    if larger is not None and larger.names != images.names:
        raise AirworthyError(
            f"The larger images are {len(larger)} and others than the {len(images)} of the capture: give the same ones, in the"
            " same order."
        )
    bundle = _markers(images, larger or images, options, corners, poses, quiet, notes)
    distances = tuple(measured_scale(images, *one, poses) for one in options.known_distance)
    scale, half, by = _scale(images, options, bundle, distances, notes)
    level, floor = _level(images, options, bundle, accelerations, quiet, notes)
    similarity, origin = _placed(images, options, bundle, level, floor, scale, notes)
    origin_half = None
    if bundle is not None:
        axes = np.abs(frames.to_matrix(similarity.rotation))
        origin_half = axes @ bundle.place_half(0)
    return Alignment(
        similarity, half, by, level, floor, bundle, distances, origin, origin_half, options, tuple(notes)
    )  # fmt: skip


# ---- Scale ------------------------------------------------------------------------------------------------------------------


def _markers(
    images: CaptureImages,
    larger: CaptureImages,
    options: AlignOptions,
    corners: Corners | None,
    poses: PoseSpread | None,
    quiet: bool,
    notes: list[str],
) -> MarkerBundle | None:
    sides = options.sides
    optional = bool(options.known_distance) or options.unscaled
    try:
        found = _found(images, larger, options, quiet) if corners is None else corners
    except AirworthyError as error:
        if not optional:
            raise
        found = {}
        notes.append(f"markers were not looked for: {_clause(error)}")
    seen = {number: some for number, some in found.items() if len(some)}
    if optional:
        # Once is not enough to tell where a marker lies, and is nothing against what tells the scale without it.
        once = [number for number, some in seen.items() if len(some) < 2]
        notes += [f"the marker {number} was not used: it is seen in one image alone" for number in once]
        seen = {number: some for number, some in seen.items() if number not in once}
    if not seen and optional:
        return None
    if not seen:
        raise AirworthyError(
            f"No image shows the marker{'' if len(sides) == 1 else 's'} {', '.join(map(str, sides))} of the dictionary"
            f" {options.dictionary}: check dictionary and number (they are printed beside it) and that pictures are not"
            " flipped; or measure something and say --known-distance A B METRES."
        )
    # The first that was asked for makes the origin.
    first = next(iter(sides))
    lens = np.asarray(images.intrinsics, np.float64)
    # Given corners are taken as they are; what was found in pictures is looked at again.
    finer = PictureRefiner(larger, options.dictionary, lens) if corners is None else None
    bundle = fit_markers(
        images, seen, {number: sides.get(number, options.side) for number in seen}, options.seed, options.bleed, finer, poses
    )
    order = sorted(range(len(bundle.markers)), key=lambda k: bundle.markers[k].number != first)
    if bundle.markers[order[0]].number != first:
        notes.append(f"the marker {first} is not seen twice; the marker {bundle.markers[order[0]].number} makes the origin")
    bundle = _ordered(bundle, order)
    if bundle.bent:
        notes.append(
            f"images see the marker alike within {bundle.alone:.1f} px, and {bundle.error:.1f} px beside where all of the"
            " reconstruction says that it lies: this bends there, as of walks along a line and of few points; the intervals"
            " hold it, and a walk all around the marker makes them narrower"
        )
    for marker in bundle.markers:
        if marker.left_out:
            said = names_of(images, sorted(marker.left_out))
            why = f", where it is {marker.elsewhere:.2f} m away" if marker.elsewhere else ""
            notes.append(f"the marker {marker.number} was not used in {said}{why}: see the table")
    return bundle


def _found(images: CaptureImages, larger: CaptureImages, options: AlignOptions, quiet: bool) -> Corners:
    """Return corners [px of the images] of the markers that can be read in their larger copies."""
    result: dict[int, dict[int, Array]] = {}
    for number, seen in find_all_markers(larger, tuple(options.sides), options.dictionary, quiet).items():
        result[number] = {}
        for k, pixels in seen.items():
            own, other = images.intrinsics[k], larger.intrinsics[k]
            result[number][k] = (pixels - other[2:]) / other[:2] * own[:2] + own[2:]
    return result


def _ordered(bundle: MarkerBundle, order: list[int]) -> MarkerBundle:
    rows = np.concatenate([[0], *[np.arange(1 + 6 * k, 7 + 6 * k) for k in order], [1 + 6 * len(order)]])
    spread = bundle.spread
    turned = replace(
        spread,
        by_corner=spread.by_corner[np.ix_(rows, rows)],
        by_image=None if spread.by_image is None else spread.by_image[np.ix_(rows, rows)],
        by_pose=None if spread.by_pose is None else spread.by_pose[np.ix_(rows, rows)],
    )
    return replace(bundle, markers=tuple(bundle.markers[k] for k in order), spread=turned)


def _scale(
    images: CaptureImages,
    options: AlignOptions,
    bundle: MarkerBundle | None,
    distances: tuple[KnownDistance, ...],
    notes: list[str],
) -> tuple[float, float, tuple[str, ...]]:
    """Metres per unit, half of its 95 % interval as a share, and what says so."""
    found: list[tuple[str, float, float]] = []
    if bundle is not None:
        numbers = ", ".join(f"{marker.number} ({marker.side:g} m)" for marker in bundle.markers)
        found.append((f"marker {numbers}", bundle.scale, bundle.scale_half))
    found += [(f"the distance of {one.metres:g} m", one.scale, one.scale_half) for one in distances]
    if not found:
        notes.append("nothing told the scale: the unit is the capture's own, not the metre")
        return 1.0, np.inf, ()
    bends = [*([None] if bundle is not None else []), *(one.bend for one in distances)]
    combined = combined_scale(found, bends)
    scale, half = combined.scale, combined.half
    if combined.widened > _SCATTERED:
        scales = [one[1] for one in found]
        notes.append(
            f"{len(found)} that tell the scale differ by {max(scales) / min(scales) - 1.0:.1%}, more than their intervals say:"
            f" that of the scale is made {combined.widened:.1f} times as wide; measure again what differs most"
        )
    if not half < _UNSURE:
        where = names_of(images, bundle.markers[0].images) if bundle is not None else "the picked images"
        raise AirworthyError(
            f"The scale is {scale:.4g} m per unit within {half:.0%} only: {where} were taken from nearly one place; film the"
            " marker from all around."
        )
    if half > _DOUBTFUL:
        notes.append(f"the scale is sure within {half:.1%} only: film the marker nearer, and from more places")
    return scale, half, tuple(name for name, _, _ in found)


# ---- Level ------------------------------------------------------------------------------------------------------------------


def _level(
    images: CaptureImages,
    options: AlignOptions,
    bundle: MarkerBundle | None,
    accelerations: Accelerations | None,
    quiet: bool,
    notes: list[str],
) -> tuple[PlaceLevel | None, Floor | None]:
    sources: dict[str, UpDirection] = {}
    cameras = up_by_cameras(images)
    if cameras is not None:
        sources["cameras"] = cameras
    if bundle is not None and options.marker_on == "floor":
        sources["marker"] = _up_by_marker(bundle, cameras)
    if accelerations is not None:
        sources["accelerations"] = up_by_accelerations(images, accelerations)
    if options.level == "marker":
        return _one(sources, "marker"), None
    if options.level == "frame":
        sources["frame"] = UpDirection("frame", np.array([0.0, 0.0, 1.0]), float(_FRAME_SIGMA), "the set's own z, as was asked")
    guess = min(sources.values(), key=lambda one: one.sigma, default=None)
    if guess is None:
        notes.append("which way is up is not known: cameras are held in all directions, and no marker lies on the floor")
        return None, None
    if options.level in ("auto", "verticals"):
        upright = _upright(images, guess, options.seed, quiet, notes)
        if upright is not None:
            sources["verticals"] = upright
    guess = min(sources.values(), key=lambda one: one.sigma)
    floor = find_floor(images, guess.direction, float(min(max(4.0 * guess.sigma, np.radians(3.0)), CONE)), options.seed)
    if floor is not None:
        sources["floor"] = floor.up
    else:
        notes.append("no floor was found" + (": the capture has no points" if images.points is None else " among the points"))
    if options.level != "auto":
        return _one(sources, options.level), floor
    level = combined_level(tuple(sources.values()))
    assert level is not None
    notes.extend(level.against)
    if not level.told:
        notes.append(
            f"level is known within {np.degrees(level.tilt95):.1f} degrees only: no upright edges, floor or marker say more"
        )
    return level, floor


def _one(sources: Mapping[str, UpDirection], name: str) -> PlaceLevel:
    if name not in sources:
        raise AirworthyError(f"Level by {name} is asked for, and there is none; found are {', '.join(sources) or 'none'}.")
    one = sources[name]
    return PlaceLevel(one.direction, one.sigma, tuple(sources.values()), (name,), ())


def _up_by_marker(bundle: MarkerBundle, cameras: UpDirection | None) -> UpDirection:
    marker = bundle.markers[0]
    normal = frames.rotate(marker.attitude, np.array([0.0, 0.0, 1.0]))
    if cameras is not None:
        apart = angle_of(normal, cameras.direction)
        if apart > _ON_FLOOR:
            raise AirworthyError(
                f"The marker {marker.number} faces {np.degrees(apart):.0f} degrees away from up, as the cameras are held: it"
                " does not lie on a floor; say --marker-on wall, or any."
            )
    return UpDirection(
        "marker", normal, float(np.hypot(bundle.tilt(0), _MARKER_SLOPE)), f"the marker {marker.number} on the floor"
    )


def _clause(error: AirworthyError) -> str:
    """Return what an error says as a part of a sentence."""
    text = str(error)
    return text[0].lower() + text[1:].rstrip(".")


def _upright(images: CaptureImages, guess: UpDirection, seed: int, quiet: bool, notes: list[str]) -> UpDirection | None:
    try:
        segments = seen_segments(images, quiet)
    except AirworthyError as error:
        notes.append(f"no upright edges were looked for: {_clause(error)}")
        return None
    found = up_by_segments(segments, guess.direction, float(min(max(4.0 * guess.sigma, np.radians(5.0)), CONE)), seed)
    if found is None:
        notes.append("no upright edges were found in the images")
    return found


# ---- Origin and heading -----------------------------------------------------------------------------------------------------


def _placed(
    images: CaptureImages,
    options: AlignOptions,
    bundle: MarkerBundle | None,
    level: PlaceLevel | None,
    floor: Floor | None,
    scale: float,
    notes: list[str],
) -> tuple[Similarity, str]:
    """Return the similarity, and in words where its origin is."""
    up = np.array([0.0, 0.0, 1.0]) if level is None else level.direction
    if bundle is None:
        place, ahead = images.position.mean(axis=0), _level_x(np.array([1.0, 0.0, 0.0]), up)
        words = "the mean of the cameras, x as the capture's"
    else:
        marker = bundle.markers[0]
        place = marker.position
        normal, right = (frames.rotate(marker.attitude, axis) for axis in np.eye(3)[[2, 0]])
        flat = options.marker_on == "floor" or (options.marker_on == "any" and angle_of(normal, up) < _STEEP)
        ahead = _level_x(right if flat else normal, up)
        words = f"the marker {marker.number}, x to its {'right' if flat else 'front'}"
    on_floor = bundle is not None and options.marker_on == "floor"
    if on_floor and floor is not None:
        assert bundle is not None
        _check_height(bundle, floor, scale, notes)
    if not on_floor and floor is not None:
        # Straight down, along up: the floor itself may slope by a little.
        place = place - up * float(floor.above(place)) / float(up @ floor.normal)
        words = f"on the floor below {words}"
    elif not on_floor:
        notes.append("heights are not from the floor, which was not found: z is 0 at the origin")
        words = f"at {words}"
    rotation = frames.from_matrix(np.array([ahead, np.cross(up, ahead), up]))
    return Similarity(rotation, -scale * frames.rotate(rotation, place), scale), words


def _level_x(direction: Array, up: Array) -> Array:
    across = direction - up * (direction @ up)
    if np.linalg.norm(across) < 1e-6:
        across = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    return np.asarray(across / np.linalg.norm(across))


def _check_height(bundle: MarkerBundle, floor: Floor, scale: float, notes: list[str]) -> None:
    """Say where a marker that should lie on the floor does not."""
    height = scale * float(floor.above(bundle.markers[0].position))
    sure = NORMAL_95 * scale * floor.height_sigma + float(np.linalg.norm(bundle.place_half(0)))
    if abs(height) > max(2.0 * sure, _HEIGHT_OFF):
        side = "above" if height > 0.0 else "below"
        notes.append(
            f"the marker {bundle.markers[0].number} lies {abs(height):.2f} m {side} the floor that the"
            " points show: if it lies on a table, say --marker-on any"
        )


def aligned(images: CaptureImages, alignment: Alignment) -> CaptureImages:
    """Return the capture in the frame of the place: where all is told, in metres and z up."""
    return alignment.aligned(images)


def corners_by_name(images: CaptureImages, table: Mapping[str, Any], refine: bool = True) -> dict[int, Array]:
    """Return corners by the number of the image, of those by its name.

    Args:
        images: The capture.
        table: Four pairs [px] by name: upper left, upper right, lower right, lower left.
        refine: Move them to where the edges of the square meet in the image.

    Raises:
        AirworthyError: There is no such image, or its corners are not four pairs of numbers.
    """
    number = {name: k for k, name in enumerate(images.names)}
    result = {}
    for name, value in table.items():
        if name not in number:
            raise unknown_name("image", name, number)
        try:
            array = np.array(value, np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.zeros(0)
        if array.shape != (4, 2) or not np.isfinite(array).all():
            raise AirworthyError(f"The corners of the image {name!r} are not four pairs of numbers [px].")
        k = number[name]
        result[k] = refined_corners(images.rgb[k], array) if refine else array
    return result
