"""What a capture is aligned by, and what an alignment came to: records, for files and for tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.capture.alignment.floor import Floor
from airworthy.capture.alignment.known_distance import KnownDistance, check_distance
from airworthy.capture.alignment.level import PlaceLevel
from airworthy.capture.alignment.marker_bundle import MarkerBundle
from airworthy.capture.alignment.marker_fit import BLEED, NORMAL_95
from airworthy.capture.alignment.markers import DICTIONARY, SIDE, dictionary_cells
from airworthy.capture.alignment.similarity import Similarity
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields

__all__ = ["AlignOptions", "Alignment"]


@dataclass(frozen=True)
class AlignOptions:
    """What a capture is aligned by.

    Raises:
        AirworthyError: A value cannot be used.
    """

    side: Annotated[float, Bound(0.001, 100.0, "m")] = SIDE
    """Side of the markers' black squares, measured on paper [m]; 0.16 is what `airworthy capture marker` draws."""
    markers: tuple[str, ...] = ("0",)
    """Markers that were laid out, as NUMBER, or NUMBER:SIDE [m] where one is larger; the first makes the origin."""
    dictionary: str = DICTIONARY
    """Of the markers: 4x4_50, ..., 6x6_250, aruco_original, apriltag_36h11, ..."""
    marker_on: Literal["floor", "wall", "any"] = "floor"
    """Where the first marker lies. On the floor it is level with it; elsewhere it gives the scale, and level and floor come
    from edges and points."""
    known_distance: tuple[tuple[str, str, float], ...] = ()
    """Two points and the metres between them; a point is IMAGE:U,V+IMAGE:U,V or X,Y,Z of the capture's frame."""
    level: Literal["auto", "marker", "floor", "verticals", "accelerations", "cameras", "frame"] = "auto"
    """By what the place is made level: all that agrees, one of them, or the capture's own z."""
    bleed: Annotated[float, Bound(0.0, 5.0, "px")] = BLEED
    """Standard deviation of how far edges of markers are seen outside of where they are [px]; 0 without a tone
    curve."""
    unscaled: bool = False
    """Without markers and distances, level the capture and keep its unit."""
    seed: int = 0
    """Of the choice of pairs of images, edges and points."""

    def __post_init__(self) -> None:
        check_fields(self)
        for one in self.known_distance:
            check_distance(*one)
        dictionary_cells(self.dictionary)
        _ = self.sides

    @property
    def sides(self) -> dict[int, float]:
        """Side [m] by the number of the marker."""
        result: dict[int, float] = {}
        for text in self.markers:
            number, _, side = text.partition(":")
            try:
                result[int(number)] = float(side) if side else self.side
            except ValueError as error:
                raise AirworthyError(
                    f"The marker {text!r} is not understood; expected NUMBER or NUMBER:SIDE, as 3:0.341."
                ) from error
        if not result or not all(0.001 <= side <= 100.0 for side in result.values()):
            raise AirworthyError(f"The markers {self.markers} have no sides of 0.001 to 100 m; expected NUMBER or NUMBER:SIDE.")
        return result


@dataclass(frozen=True, eq=False)
class Alignment:
    """The similarity from a capture's frame to a place's, and how sure it is."""

    similarity: Similarity
    """From the frame of `CaptureImages`."""
    scale_half: float
    """Half of the scale's 95 % interval, as a share of it; infinite where nothing told it."""
    scale_by: tuple[str, ...]
    """What told the scale."""
    level: PlaceLevel | None
    floor: Floor | None
    bundle: MarkerBundle | None
    """The markers."""
    distances: tuple[KnownDistance, ...]
    origin: str
    """In words."""
    origin_half: Array | None
    """Half of the 95 % intervals of the origin along the axes of the place (3,) [m], where a marker makes it."""
    options: AlignOptions
    notes: tuple[str, ...] = ()
    """What could not be told, and what contradicts, in sentences."""

    @property
    def metric(self) -> bool:
        """Whether the result is in metres, and z up."""
        return bool(np.isfinite(self.scale_half) and self.level is not None and self.level.told)

    @property
    def agreeing(self) -> ArrayIndex:
        """Numbers of the images with the first marker that agree."""
        return self.bundle.markers[0].images if self.bundle else np.zeros(0, np.intp)

    @property
    def images(self) -> ArrayIndex:
        """Numbers of the images with the first marker."""
        left = [] if self.bundle is None else list(self.bundle.markers[0].left_out)
        return np.array(sorted([*self.agreeing.tolist(), *left]), np.intp)

    @property
    def error(self) -> float:
        """Root mean square distance of the corners from the fit [px]; 0 without markers."""
        return self.bundle.error if self.bundle else 0.0

    def aligned(self, images: CaptureImages) -> CaptureImages:
        """Return the capture in the frame of the place."""
        found = self.similarity
        sure = f" +- {self.scale_half:.2%}" if np.isfinite(self.scale_half) else ", not told"
        note = f"aligned: scale {found.scale:.6g}{sure}, origin {self.origin}"
        if self.level is not None:
            note += f", level within {np.degrees(self.level.tilt95):.2f} degrees by {', '.join(self.level.used)}"
        return images.moved(found.rotation, found.translation, found.scale, note, metric=self.metric)

    def record(self, images: CaptureImages) -> dict[str, Any]:
        """Return figures for files, with the names of images."""
        moved = self.aligned(images).source
        return {
            "metric": self.metric,
            "capture_to_place": {
                "scale": moved.scale, "rotation_xyzw": list(moved.rotation), "translation_m": list(moved.translation),
                "words": "p_place = scale * R(rotation) p_capture + translation, p_capture in the frame of the set's own files",
            },
            "read_to_place": {
                "scale": self.similarity.scale, "rotation_xyzw": self.similarity.rotation.tolist(),
                "translation_m": self.similarity.translation.tolist(),
                "words": "the same from the frame in which `airworthy capture align` reads the set, up turned to z",
            },
            "scale_half_95": self.scale_half if np.isfinite(self.scale_half) else None,
            "scale_by": list(self.scale_by),
            "level": None if self.level is None else self.level.record(),
            "floor": self._floor_record(),
            "origin": self.origin,
            "origin_half_95_m": None if self.origin_half is None else self.origin_half.tolist(),
            "marker_dictionary": self.options.dictionary,
            "marker_side_m": self.options.side,
            "marker_on": self.options.marker_on,
            "markers": [] if self.bundle is None else [self._marker_record(images, k) for k in range(len(self.bundle.markers))],
            "images_with_marker": len(self.images),
            "images_agreeing": len(self.agreeing),
            "corner_error_px": self.error,
            "edge_bleed_px": self.bundle.bleed if self.bundle else 0.0,
            "known_distances": [_distance_record(one) for one in self.distances],
            "notes": list(self.notes),
        }  # fmt: skip

    def _floor_record(self) -> dict[str, Any] | None:
        if self.floor is None:
            return None
        scale = self.similarity.scale
        height = float(scale * self.floor.above(self.similarity.inverse.points(np.zeros(3))))
        return {"points": self.floor.points, "z_m": -height, "z_half_95_m": NORMAL_95 * scale * self.floor.height_sigma}

    def _marker_record(self, images: CaptureImages, index: int) -> dict[str, Any]:
        assert self.bundle is not None
        marker = self.bundle.markers[index]
        return {
            "number": marker.number,
            "side_m": marker.side,
            "position_m": self.similarity.points(marker.position).tolist(),
            "attitude_xyzw": frames.multiply(self.similarity.rotation, marker.attitude).tolist(),
            "scale_alone": marker.own_scale,
            "scale_alone_half_95": marker.own_half,
            "images": {
                images.names[k]: {"error_px": float(error)} for k, error in zip(marker.images, marker.error, strict=True)
            },
            "left_out": {images.names[k]: why for k, why in sorted(marker.left_out.items())},
        }


def _distance_record(one: KnownDistance) -> dict[str, Any]:
    return {
        "points": [end.words for end in one.ends],
        "metres": one.metres,
        "scale_alone": one.scale,
        "scale_alone_half_95": one.scale_half,
        "picks_off_px": [end.error for end in one.ends],
    }
