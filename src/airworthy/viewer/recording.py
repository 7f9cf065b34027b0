"""A flight or scene as one HTML file that plays without a server, a network, or anything but a browser.

viser brings its own client and a recording of what it would have been sent; beside it stand the words, the plots and the
camera's images, which follow the recording's time line by its slider.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_text
from airworthy.viewer.playback import Viewer
from airworthy.viewer.plots import COLORS, Plot

__all__ = ["Exported", "export_recording"]

RATE = 20.0
"""Poses a second: the client moves from one to the next without steps between."""
IMAGE_RATE = 2.0
"""Images of the camera a second: each takes the renderer a moment, and the file some kilobytes."""
FRAMES_MAX = 12_000
BYTES_MAX = 400 << 20
"""Larger files open slowly or not at all, since a browser takes the whole into memory, several times."""
_POINTS = 400
_QUALITY = 70
_COLORED = "Splats have the colours that are seen from the first view."
_SLIDER = '[role="slider"]'
"""By which the client's time line is found: it says its value as accessible pages do."""


@dataclass(frozen=True)
class Exported:
    """A recording that was written."""

    path: Path
    size: int
    """[bytes]"""
    duration: float
    """[s]; 0: nothing moves."""
    frames: int
    images: int
    """Of the camera."""

    def text(self) -> str:
        """Return what was written, in words."""
        size = f"{self.size / 1e6:.1f} MB"
        if not self.duration:
            return f"{self.path}: {size}, a scene that stands still; it opens without a server"
        images = f", {self.images} images of the camera" if self.images else ""
        return f"{self.path}: {size}, {self.duration:.1f} s in {self.frames} steps{images}; it opens without a server"


def export_recording(
    viewer: Viewer, path: str | Path, rate: float = RATE, tick: Callable[[int], None] | None = None
) -> Exported:
    """Write what a viewer shows as one HTML file; of flights the one that is chosen, from its begin to its end.

    Args:
        viewer: As it is to be seen at first.
        path: Of the file.
        rate: Poses a second.
        tick: Called with the number of each step that is done, for a display of progress.

    Raises:
        AirworthyError: The flight is too long for a file, the file would be too large, or cannot be written.
    """
    steps = max(1, round(viewer.duration * rate)) + 1 if viewer.duration else 1
    if steps > FRAMES_MAX:
        most = FRAMES_MAX / rate
        raise AirworthyError(
            f"{viewer.duration:.0f} s at {rate:g} poses a second are {steps:,}: a recording holds {FRAMES_MAX:,}, {most:.0f} s."
        )
    notes = _Notes(viewer)
    viewer.show(0.0)
    viewer.settle()
    if viewer.splats is not None and viewer.colors is not None:
        # Nobody evaluates harmonics without a server: colours are those of the first view, and the page says so.
        viewer.splats.color(viewer.view.position)
    serializer = viewer.server.get_scene_serializer()
    for k in range(steps):
        time = viewer.duration * k / max(steps - 1, 1)
        if k:
            serializer.insert_sleep(viewer.duration / (steps - 1))
        viewer.show(time, tell=False)
        notes.note(time, k, max(1, round(rate / IMAGE_RATE)))
        if tick is not None:
            tick(k)
    page = notes.page(serializer.as_html())
    if len(page) > BYTES_MAX:
        raise AirworthyError(
            f"The recording would be {len(page) / 1e6:.0f} MB, more than browsers open well ({BYTES_MAX / 1e6:.0f} MB): show"
            " fewer gaussians with --splats."
        )
    written = write_text(Path(path), page)
    return Exported(written, written.stat().st_size, viewer.duration, steps, len(notes.images))


class _Notes:
    """What stands beside the picture: words, plots, images."""

    def __init__(self, viewer: Viewer):
        self._viewer = viewer
        self.images: list[tuple[float, str]] = []
        self._captions: list[tuple[float, str]] = []
        if viewer.plots is not None:
            viewer.plots.settle()
        self._plots = [] if viewer.plots is None else [_thin(plot) for plot in viewer.plots.plots]

    def note(self, time: float, step: int, every: int) -> None:
        """Note a step; every so many-th the camera's image is waited for."""
        viewer = self._viewer
        if viewer.flight is None:
            return
        self._captions.append((round(time, 3), viewer.flight.track.caption(time)))
        if viewer.images is not None and step % every == 0:
            viewer.show(time)
            viewer.settle()
            picture = viewer.controls.picture
            if picture is not None:
                self.images.append((round(time, 3), _jpeg(np.asarray(picture.image))))

    def page(self, client: str) -> str:
        """Return the client's page with the notes in it."""
        title = html.escape(f"Airworthy: {self._viewer.subject.title}")
        data = {
            "title": self._viewer.subject.title,
            "captions": self._captions,
            "images": self.images,
            "plots": self._plots,
            "colors": COLORS,
            "note": "" if self._viewer.colors is None else _COLORED,
        }
        # A closing tag inside the data would end the script.
        text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
        slider = json.dumps(_SLIDER)
        notes = f"<script>\nconst airworthy={text};\nconst airworthySlider={slider};\n{_SCRIPT}\n</script>"
        body = client.rindex("</body>")
        page = client[:body] + f"<style>{_STYLE}</style>\n{notes}\n" + client[body:]
        begin, end = page.index("<title>"), page.index("</title>")
        return page[:begin] + f"<title>{title}" + page[end:]


def _thin(plot: Plot) -> dict[str, Any]:
    """Return a plot as the page draws it; null where there is no value."""
    rows = np.unique(np.linspace(0, len(plot.time) - 1, min(len(plot.time), _POINTS)).astype(int))
    lines = [[None if not np.isfinite(v) else round(float(v), 4) for v in line[rows]] for _, line in plot.lines]
    return {
        "title": plot.title,
        "time": [round(float(t), 3) for t in plot.time[rows]],
        "lines": lines,
        "span": [round(float(v), 4) for v in plot.span],
    }


def _jpeg(image: ArrayU8) -> str:
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(image).save(data, "JPEG", quality=_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode("ascii")


_STYLE = """
#airworthy{position:fixed;top:12px;right:12px;z-index:5;width:300px;max-height:calc(100vh - 84px);overflow:auto;
font:13px system-ui,sans-serif;color:#1f2937;background:rgba(255,255,255,.92);border-radius:6px;padding:10px 12px;
box-shadow:0 1px 10px rgba(0,0,0,.15)}
#airworthy h1{font-size:14px;margin:0 0 4px;cursor:pointer}
#airworthy p{margin:0 0 6px;min-height:1.2em}
#airworthy img{width:100%;border-radius:4px;display:block;margin-bottom:6px}
#airworthy canvas{width:100%;height:84px;display:block}
#airworthy.small > :not(h1){display:none}
"""

_SCRIPT = """
(function(){
  const data = airworthy, box = document.createElement('div');
  box.id = 'airworthy';
  const add = (tag, text) => { const e = document.createElement(tag); e.textContent = text || ''; box.append(e); return e; };
  const head = add('h1', data.title);
  head.title = 'click to fold';
  head.onclick = () => box.classList.toggle('small');
  const words = data.captions.length ? add('p') : null;
  const image = data.images.length ? add('img') : null, stamp = image ? add('p') : null;
  const canvases = data.plots.map(() => add('canvas'));
  if (data.note) add('p', data.note);
  document.body.append(box);
  const last = (rows, t) => {
    let low = 0, high = rows.length - 1;
    while (low < high) { const m = (low + high + 1) >> 1; if (rows[m][0] <= t + 1e-6) low = m; else high = m - 1; }
    return rows[low];
  };
  const draw = (canvas, plot, now) => {
    const w = canvas.clientWidth, h = canvas.clientHeight, r = window.devicePixelRatio || 1;
    if (!w) return;
    canvas.width = w * r; canvas.height = h * r;
    const c = canvas.getContext('2d'); c.scale(r, r);
    const t0 = plot.time[0], t1 = plot.time[plot.time.length - 1], [low, high] = plot.span;
    const left = 42, top = 16, bottom = h - 4;
    const x = t => left + (t - t0) / Math.max(t1 - t0, 1e-9) * (w - left - 6);
    const y = v => bottom - (v - low) / Math.max(high - low, 1e-9) * (bottom - top);
    c.font = '11px system-ui,sans-serif'; c.fillStyle = '#374151'; c.fillText(plot.title, left, 11);
    c.fillStyle = '#6b7280'; c.textAlign = 'right';
    c.fillText(high.toPrecision(3), left - 4, top + 8); c.fillText(low.toPrecision(2), left - 4, bottom);
    c.textAlign = 'left'; c.strokeStyle = '#d1d5db'; c.strokeRect(left, top, w - left - 6, bottom - top);
    plot.lines.forEach((line, k) => {
      c.strokeStyle = data.colors[k % data.colors.length]; c.lineWidth = 1.4; c.beginPath();
      let open = false;
      line.forEach((v, i) => {
        if (v === null) { open = false; return; }
        if (open) c.lineTo(x(plot.time[i]), y(v)); else c.moveTo(x(plot.time[i]), y(v));
        open = true;
      });
      c.stroke();
    });
    c.strokeStyle = '#111827'; c.lineWidth = 1; c.beginPath(); c.moveTo(x(now), top); c.lineTo(x(now), bottom); c.stroke();
  };
  let shown = -1;
  const follow = () => {
    const slider = document.querySelector(airworthySlider);
    const now = slider ? parseFloat(slider.getAttribute('aria-valuenow')) || 0 : 0;
    if (now !== shown) {
      shown = now;
      if (words) words.textContent = last(data.captions, now)[1];
      if (image) { const one = last(data.images, now);
        if (image.src !== one[1]) { image.src = one[1]; stamp.textContent = 'camera, ' + one[0].toFixed(2) + ' s'; } }
      data.plots.forEach((plot, k) => draw(canvases[k], plot, now));
    }
    requestAnimationFrame(follow);
  };
  follow();
})();
"""
