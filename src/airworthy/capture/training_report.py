"""The page that shows what a training came to: held-out images beside what the splats make of them, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy import __version__
from airworthy.capture.record import CaptureImages
from airworthy.core.files import write_text
from airworthy.evaluation.pictures import data_uri, fitted

if TYPE_CHECKING:
    from airworthy.capture.training_run import Judged

__all__ = ["curve", "write_training_report"]

_SHOWN = 8
"""Images on the page: from the worst to the best."""
_WIDTH = 480
_CURVE = (520, 190)
_MARGIN = (58, 14, 30, 14)
"""Left, right, bottom, top."""


def write_training_report(path: Path, report: Mapping[str, Any], found: Sequence[Judged], images: CaptureImages) -> None:
    """Write the page.

    Args:
        path: File to write.
        report: What `report.json` holds.
        found: The judged images.
        images: All of them.
    """
    import jinja2

    ordered = sorted(found, key=lambda one: one.psnr)
    some = [ordered[k] for k in np.unique(np.linspace(0, len(ordered) - 1, min(_SHOWN, len(ordered))).astype(int))]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    curves = report["curves"]
    page = environment.from_string(files("airworthy.capture").joinpath("training.html.j2").read_text()).render(
        css=files("airworthy.evaluation").joinpath("report.css").read_text(),
        report=report,
        rows=[_row(one, images) for one in some],
        curves=[
            ("Loss", "mean of 100 steps", curve([(s, v) for s, v in curves["loss"]], "Loss over steps")),
            ("PSNR [dB]", _of(report), curve([(s, p) for s, p, _ in curves["held_out"]], "PSNR over steps")),
            ("SSIM", _of(report), curve([(s, v) for s, _, v in curves["held_out"]], "Structural similarity over steps")),
        ],
        judged="held-out" if report["held_out"] else "trained-on",
        minutes=f"{report['seconds'] / 60.0:.1f}",
        version=__version__,
    )
    write_text(path, page)


def _of(report: Mapping[str, Any]) -> str:
    return "mean of the held-out images" if report["held_out"] else "mean of some images that were trained on"


def _row(one: Judged, images: CaptureImages) -> dict[str, Any]:
    k = images.names.index(one.name)
    truth, mask = images.rgb[k], images.masks[k]
    shown = np.clip(one.image, 0.0, 1.0)
    off = np.clip(3.0 * np.abs(shown - truth / np.float32(255.0)), 0.0, 1.0)
    off = off if mask is None else off * mask[..., None]
    pictures = [truth, *(np.asarray(255.0 * part + 0.5, np.uint8) for part in (shown, off))]
    return {"name": one.name, "psnr": one.psnr, "ssim": one.ssim, "images": [data_uri(fitted(p, _WIDTH)) for p in pictures]}


def curve(points: Sequence[tuple[float, float]], description: str) -> str:
    """A line as inline SVG, with the extremes of both axes; empty where there are fewer than two points."""
    if len(points) < 2:
        return ""
    x, y = np.array(points, np.float64).T
    (width, height), (left, right, bottom, top) = _CURVE, _MARGIN
    low, high = float(y.min()), float(y.max())
    spread = max(high - low, 1e-12)
    across = left + (x - x[0]) / max(x[-1] - x[0], 1e-12) * (width - left - right)
    down = top + (high - y) / spread * (height - top - bottom)
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    digits = max(0, 2 - int(np.floor(np.log10(spread)))) if spread > 1e-9 else 3
    label = 'font-size="14" fill="var(--muted)" font-family="var(--sans)"'
    rules = "".join(
        f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--grid)"/>'
        f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" {label}>{value:.{min(digits, 4)}f}</text>'
        for value, at in ((v, top + (high - v) / spread * (height - top - bottom)) for v in np.linspace(low, high, 3))
    )
    ends = "".join(
        f'<text x="{at:.1f}" y="{height - 8}" text-anchor="{anchor}" {label}>{int(value):,}</text>'
        for value, at, anchor in ((x[0], left, "start"), (x[-1], width - right, "end"))
    )
    drawn = f'<polyline points="{line}" fill="none" stroke="var(--flown)" stroke-width="1.6" stroke-linejoin="round"/>'
    return f'<svg viewBox="0 0 {width} {height}" role="img"><title>{description}</title>{rules}{ends}{drawn}</svg>'
