"""The page of a place from a film: what it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.video.steps import STEP_NAMES
from airworthy.core.arrays import ArrayU8
from airworthy.core.files import write_text
from airworthy.reports.page import DASH, card, fact, fixed, markup, page_of
from airworthy.reports.pictures import data_uri, fitted

__all__ = ["write_video_report"]

_SHOWN, _WIDTH = 8, 360


def write_video_report(
    path: str | Path, folder: str | Path, summary: Mapping[str, Any], images: CaptureImages, coverage: ArrayU8 | None
) -> None:
    """Write the page.

    Args:
        path: File to write.
        folder: Of the capture.
        summary: What summary.json will hold.
        images: Posed pictures, in the frame of the place.
        coverage: The place from above; None: nothing is known.
    """
    seconds = summary["seconds"]
    page = page_of(
        "airworthy.capture.video",
        "video.html.j2",
        summary=summary,
        title=_title(summary),
        cards=_cards(summary),
        facts=_facts(summary),
        steps=[(STEP_NAMES.get(name, name), f"{value:.0f} s") for name, value in seconds.items()],
        total=f"{sum(seconds.values()) / 60.0:.1f}",
        coverage=None if coverage is None else markup(data_uri(coverage, photo=False)),
        pictures=_pictures(images),
        judged=sorted(summary.get("judged", []), key=lambda one: one["psnr_db"]),
        training=(Path(folder) / "splats" / "report.html").is_file(),
    )
    write_text(path, page)


def _title(summary: Mapping[str, Any]) -> str:
    films = ", ".join(summary["inputs"])
    return f"{films}: {summary['registered']} of {summary['pictures']} pictures have a pose"


def _cards(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    found = summary["cameras"][0]
    deviation = found["focal_deviation_px"]
    alignment = summary["alignment"]
    cards = [
        card("pictures with a pose", f"{summary['registered']}", f"of {summary['pictures']}", _components(summary)),
        card("reprojection", fixed(summary["reprojection_px"], 2), "px", f"{summary['points']:,} points, each seen"
             f" {summary['track_length']:.1f} times"),
        card("focal length", fixed(found["focal_px"], 1), "px", "" if deviation is None else f"deviation {deviation:.1f} px"),
        card("scale", "metres" if summary["metric"] else DASH, "", _scale(alignment)),
        card("level", *_level(alignment)),
    ]  # fmt: skip
    if summary["splats"] is not None:
        what = "held-out pictures" if summary["held_out"] else "pictures that were trained on"
        depth = summary["depth"]
        cards += [
            card("PSNR", fixed(summary["psnr_db"], 2), "dB", f"SSIM {summary['ssim']:.3f} on {what}"),
            card(
                "depth against points",
                fixed(depth.get("median_percent"), 1),
                "%",
                f"median of {depth['points']:,}; {depth['within_5_percent']:.0f} % within 5 %" if depth["points"] else "",
                # Summaries of before do not say.
                "" if depth.get("believed", True) else "poor",
            ),
        ]
    return [*cards, *_place_cards(summary["place"])]


def _components(summary: Mapping[str, Any]) -> str:
    parts = summary["components"]
    return "they hang together" if len(parts) == 1 else f"in {len(parts)} parts: {', '.join(map(str, parts))}"


def _scale(alignment: Mapping[str, Any] | None) -> str:
    if alignment is None or not alignment["scale_by"]:
        return "unknown: nothing told it"
    return f"within {100.0 * alignment['scale_half_95']:.2g} % (95 %), by {', '.join(alignment['scale_by'])}"


def _level(alignment: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """Value, unit and words of the card."""
    level = None if alignment is None else alignment["level"]
    if level is None:
        return DASH, "", "nothing told it"
    return fixed(level["tilt_95_deg"], 2), "°", f"95 %, by {', '.join(level['used'])}"


def _place_cards(place: Mapping[str, Any] | None) -> list[dict[str, str]]:
    if place is None:
        return []
    space, (low, high) = place["space_m3"], place["bounds_m"]
    size = " x ".join(f"{b - a:.1f}" for a, b in zip(low, high, strict=True))
    return [
        card("known free", fixed(space["free"], 1), "m³", f"{space['unknown']:.1f} unknown, which is solid; bounds {size} m"),
        card("gaussians left out", f"{place['gaussians']['pruned']:,}", "", f"{place['gaussians']['background']:,} beyond"
             " known space are background"),
    ]  # fmt: skip


def _facts(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    shutter, found = summary["rolling_shutter"], summary["cameras"][0]
    readout = f"{1000 * shutter['readout_s']:.1f} +- {1000 * shutter['half_95_s']:.1f} ms (95 %)"
    return [
        fact("camera", f"{found['model']} {', '.join(f'{value:.4g}' for value in found['parameters'])}"),
        fact("pictures of which something is masked", summary["masked_pictures"]),
        fact("rolling shutter", readout if shutter["half_95_s"] else "not tested (photographs, or too few pictures)"),
    ]


def _pictures(images: CaptureImages) -> list[tuple[str, str]]:
    some = np.unique(np.linspace(0, len(images) - 1, min(_SHOWN, len(images))).astype(int))
    return [(images.names[k], data_uri(fitted(_shown(images, int(k)), _WIDTH))) for k in some]


def _shown(images: CaptureImages, k: int) -> ArrayU8:
    """Return a picture, what is masked of it pale red."""
    mask = images.masks[k]
    if mask is None:
        return images.rgb[k]
    red = (0.4 * images.rgb[k] + 0.6 * np.array([200.0, 40.0, 40.0])).astype(np.uint8)
    return np.where(mask[..., None], images.rgb[k], red).astype(np.uint8)
