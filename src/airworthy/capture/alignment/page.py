"""The page that shows what an alignment rests on: the marker in the images, what says which way is up, each image's error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.alignment.marker_bundle import FittedMarker
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.record import Alignment
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.files import write_text
from airworthy.reports.page import card, fixed, page_of
from airworthy.reports.pictures import data_uri

__all__ = ["alignment_cards", "marker_crops", "write_alignment_page"]

_SHOWN = 18
"""Pictures of the marker: from the worst to the best."""
_CROP = 220
"""Width of a picture [px]."""
_ROOM = 1.9
"""Width of what is cut out, in widths of the marker."""
_RED, _GREEN = (224, 55, 43), (16, 161, 74)


def write_alignment_page(path: Path, found: Alignment, images: CaptureImages) -> None:
    """Write the page.

    Args:
        path: File to write.
        found: The alignment.
        images: What was aligned, as it was before.
    """
    record = found.record(images)
    page = page_of(
        "airworthy.capture.alignment",
        "alignment.html.j2",
        title=_title(found),
        verdict=_verdict(found),
        cards=alignment_cards(found),
        notes=[note[0].upper() + note[1:] for note in found.notes],
        levels=_levels(found),
        crops=marker_crops(found, images),
        rows=_rows(found, images),
        scales=_scales(found),
        transform=record["capture_to_place"],
        origin=found.origin,
    )
    write_text(path, page)


def _title(found: Alignment) -> str:
    if found.metric:
        return "Metric and level"
    return "Level, without a scale" if not np.isfinite(found.scale_half) else "In metres, not known to be level"


def _verdict(found: Alignment) -> str:
    if found.bundle is None:
        return "No marker was used."
    used, seen = len(found.agreeing), len(found.images)
    first = found.bundle.markers[0]
    return (
        f"{used} of {seen} images agree on marker {first.number} of the dictionary {found.options.dictionary}, whose black"
        f" square is {first.side:g} m wide; its corners lie within {found.error:.2f} px of where the fit puts them."
    )


def alignment_cards(found: Alignment) -> list[dict[str, str]]:
    """Return scale, level, floor and origin with their intervals, for a page's cards."""
    cards = []
    if np.isfinite(found.scale_half):
        tone = "good" if found.scale_half <= 0.01 else "poor"
        cards.append(
            card("Scale", f"{found.similarity.scale:.5g}", "m per unit", f"95 %: +- {100.0 * found.scale_half:.2f} %", tone)
        )
    if found.level is not None:
        tilt = float(np.degrees(found.level.tilt95))
        tone = "good" if tilt <= 0.5 else "poor"
        cards.append(card("Level", f"{tilt:.2f}", "deg", f"off at most, 95 %; by {', '.join(found.level.used)}", tone))
    if found.floor is not None:
        scale = found.similarity.scale
        height = -scale * float(found.floor.above(found.similarity.inverse.points(np.zeros(3))))
        cards.append(card("Floor", fixed(100.0 * height + 0.0, 1, style="+"), "cm", f"its z; {found.floor.points:,} points"))
    if found.origin_half is not None:
        cards.append(card("Origin", f"{1e3 * float(found.origin_half.max()):.1f}", "mm", "off at most along an axis, 95 %"))
    return cards


def _levels(found: Alignment) -> list[dict[str, Any]]:
    if found.level is None:
        return []
    record = found.level.record()
    return [
        {
            "name": one["name"],
            "tilt": one["tilt_95_deg"],
            "off": one["from_result_deg"],
            "used": "yes" if one["name"] in found.level.used else "no",
            "words": one["words"],
        }
        for one in record["sources"]
    ]


def _scales(found: Alignment) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if found.bundle is not None:
        rows += [
            {"name": f"marker {m.number}, {m.side:g} m", "scale": m.own_scale, "half": m.own_half} for m in found.bundle.markers
        ]
    rows += [{"name": f"distance of {one.metres:g} m", "scale": one.scale, "half": one.scale_half} for one in found.distances]
    return rows


def _rows(found: Alignment, images: CaptureImages) -> list[dict[str, Any]]:
    rows = []
    for marker in found.bundle.markers if found.bundle else ():
        for k, error, pixels in zip(marker.images, marker.error, marker.pixels, strict=True):
            rows.append(
                {
                    "number": marker.number,
                    "name": images.names[k],
                    "size": f"{_size(pixels):.0f}",
                    "error": f"{error:.2f}",
                    "words": "",
                }
            )
        rows += [
            {"number": marker.number, "name": images.names[k], "size": "", "error": "", "words": f"not used: {why}"}
            for k, why in sorted(marker.left_out.items())
        ]
    return rows


def _size(pixels: Array) -> float:
    return float(np.linalg.norm(pixels - np.roll(pixels, 1, axis=0), axis=-1).mean())


def marker_crops(found: Alignment, images: CaptureImages, most: int = _SHOWN) -> list[dict[str, Any]]:
    """Return pictures of the markers with their corners as found and as fitted, from the worst to the best.

    Args:
        found: The alignment.
        images: What was aligned, as it was before.
        most: Pictures.
    """
    every = [(marker, i) for marker in (found.bundle.markers if found.bundle else ()) for i in range(len(marker.images))]
    every.sort(key=lambda one: -float(one[0].error[one[1]]))
    some = [every[k] for k in np.unique(np.linspace(0, len(every) - 1, min(most, len(every))).astype(int))] if every else []
    return [
        {
            "name": images.names[marker.images[i]],
            "number": marker.number,
            "words": f"{marker.error[i]:.2f} px off, {_size(marker.pixels[i]):.0f} px wide",
            "image": data_uri(_crop(found, images, marker, i)),
        }
        for marker, i in some
    ]


def _crop(found: Alignment, images: CaptureImages, marker: FittedMarker, index: int) -> ArrayU8:
    from PIL import Image, ImageDraw

    k, pixels = int(marker.images[index]), marker.pixels[index]
    centre, half = pixels.mean(axis=0), max(0.5 * _ROOM * float(np.ptp(pixels, axis=0).max()), 6.0)
    low = np.floor(centre - half).astype(int)
    side = int(np.ceil(2.0 * half))
    picture = Image.fromarray(images.rgb[k]).crop((low[0], low[1], low[0] + side, low[1] + side))
    picture = picture.resize((_CROP, _CROP), Image.Resampling.NEAREST)
    draw, zoom = ImageDraw.Draw(picture), _CROP / side
    assert found.bundle is not None
    square = marker_corners(marker.side / found.bundle.scale)
    edge = marker.side / found.bundle.scale
    axes = np.array([[0.0, 0.0, 0.0], [0.5 * edge, 0.0, 0.0], [0.0, 0.5 * edge, 0.0]])
    fit, arrows = (_seen(images, k, frames.rotate(marker.attitude, part) + marker.position) for part in (square, axes))
    fit, arrows, given = ((part - low) * zoom for part in (fit, arrows, pixels))
    draw.line([tuple(p) for p in (*fit, fit[0])], _GREEN, 2)
    for end in arrows[1:]:
        draw.line([tuple(arrows[0]), tuple(end)], _GREEN, 2)
    for x, y in given:
        draw.line([(x - 6, y), (x + 6, y)], _RED, 2)
        draw.line([(x, y - 6), (x, y + 6)], _RED, 2)
    return np.asarray(picture)


def _seen(images: CaptureImages, k: int, world: Array) -> Array:
    """Pixels (n, 2) of points (n, 3) in image k."""
    eye = frames.rotate_inverse(images.attitude[k], world - images.position[k])
    return np.asarray(eye[:, :2] / np.maximum(eye[:, 2:], 1e-9) * images.intrinsics[k, :2] + images.intrinsics[k, 2:])
