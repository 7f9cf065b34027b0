"""Light in mirrors, traced for one pixel of four and spread over the surfaces that it belongs to.

What a rough surface mirrors changes slowly along it; how much of it is seen does not (bumps, worn paint). So rays into mirrors
are sent from pixels that are even in both directions, and what they bring is averaged, surface by surface, with weights that
fall linearly with the distance, before it is multiplied by what each pixel mirrors: a quarter of the rays, and less noise than
a ray of each pixel has. Smooth surfaces and panes show images, of half the resolution. Of a surface that has no ray near - a
wire, a rim - what is near counts, whatever it is of; samples beside the middle of such a pixel send rays of their own. Waves
turn what they mirror from one pixel to the next: water has a ray of each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.native_kernel import native_kernel, quiet_warp
from airworthy.geometry.query_arguments import Repeated

__all__ = ["GLOSS_COLUMNS", "GLOSS_NUMBERS", "spread_gloss", "spread_gloss_by_numpy"]

GLOSS_COLUMNS = 10
"""Of a pixel: light in the mirror (3), what is seen of it (3), instance, material, pixels each way over which it is spread (0:
there is nothing to be added), and whether it is known: traced here, and afterwards of the pixel's own surface."""
GLOSS_SHARP = 0.15
"""Roughness below which mirrors show images: light is spread to the next pixels alone."""
GLOSS_REACH = 4
"""Pixels each way over which light in rougher mirrors is spread; ours, see `docs/concepts/rendering.md`."""
SPECK = 4.0
"""Times the mean of the others that one ray of a rough mirror may bring: more is a lamp that it has met by chance. Ours."""
MIRRORED_WIDTH = 8.0
"""Of a highlight in a mirror, over the angle by which a ray of it spreads, a quarter of its own width: twice that. Ours."""
GLOSS_NUMBERS = {"GLOSS_SHARP": GLOSS_SHARP, "GLOSS_REACH": float(GLOSS_REACH), "MIRRORED_WIDTH": MIRRORED_WIDTH}

_BODY = """
const int y = task % height;
float* image = rows.data + (long long)(task / height) * height * width * COLUMNS;
float* seen = light.data + (long long)(task / height) * height * width * 4;
float* colors = radiance.data + (long long)(task / height) * height * width * 3;
for (int x = 0; x < width; ++x) {
  const long long at = (long long)y * width + x;
  const float* row = image + at * COLUMNS;
  float* out = seen + at * 4;
  out[0] = out[1] = out[2] = out[3] = 0.0f;
  const int reach = (int)row[8];
  if (reach == 0) continue;
  // Of the same surface, and of any, where none of it is near.
  float sum[2][3] = {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}}, weights[2] = {0.0f, 0.0f};
  const float* brightest[2] = {nullptr, nullptr};
  float most[2] = {0.0f, 0.0f}, share[2] = {0.0f, 0.0f};
  const int top = y - reach < 0 ? 0 : (y - reach + 1) / 2 * 2, bottom = y + reach < height ? y + reach : height - 1;
  const int left = x - reach < 0 ? 0 : (x - reach + 1) / 2 * 2, right = x + reach < width ? x + reach : width - 1;
  for (int v = top; v <= bottom; v += 2) {
    for (int u = left; u <= right; u += 2) {
      const float* other = image + ((long long)v * width + u) * COLUMNS;
      if (other[9] == 0.0f) continue;
      const float weight = (float)((reach + 1 - (u > x ? u - x : x - u)) * (reach + 1 - (v > y ? v - y : y - v)));
      const int kind = other[6] == row[6] && other[7] == row[7] ? 0 : 1;
      weights[kind] += weight;
      // The brightest is kept apart, so that what the others bring is known to the last digit.
      const float bright = other[0] + other[1] + other[2];
      const bool first = bright > most[kind];
      const float* added = first ? brightest[kind] : other;
      const float part = first ? share[kind] : weight;
      if (added)
        for (int i = 0; i < 3; ++i) sum[kind][i] += part * added[i];
      if (first) {
        most[kind] = bright;
        share[kind] = weight;
        brightest[kind] = other;
      }
    }
  }
  const int kind = weights[0] > 0.0f ? 0 : 1;
  if (weights[kind] == 0.0f) continue;
  if (brightest[kind]) {
    const float others = weights[kind] - share[kind];
    float part = share[kind];
    if (reach > 1 && others > 0.0f) {
      const float limit = SPECK * (sum[kind][0] + sum[kind][1] + sum[kind][2]) / others;
      if (most[kind] > limit) part *= limit / most[kind];
    }
    for (int i = 0; i < 3; ++i) sum[kind][i] += part * brightest[kind][i];
  }
  for (int i = 0; i < 3; ++i) {
    out[i] = sum[kind][i] / weights[kind];
    colors[3 * at + i] += row[3 + i] * out[i];
  }
  out[3] = kind == 0 ? 1.0f : 0.0f;
}
"""

_ARGUMENTS = """
    rows: float32[]  # (camera, pixel, GLOSS_COLUMNS)
    # output
    light: float32[]  # (camera, pixel, 4): spread, and 1 where it is the surface's own
    # changed in place
    radiance: float32[]  # (camera, pixel, 3)
    height: int
    width: int
"""


_LAUNCHES_KEPT = 8
_launches: dict[tuple[int, ...], Repeated] = {}


@cache
def _kernel() -> Any:
    source = f"#define COLUMNS {GLOSS_COLUMNS}\n#define SPECK {SPECK}f\n{_BODY}#undef COLUMNS\n#undef SPECK\n"
    return native_kernel("spread_gloss", source, _ARGUMENTS)


def spread_gloss(rows: ArrayF32, radiance: ArrayF32) -> None:
    """Add what surfaces mirror to an image, and leave in its rows the light that each pixel's surface has in its mirror.

    Args:
        rows: (c, H, W, GLOSS_COLUMNS) of the shading kernel; changed.
        radiance: (c, H, W, 3); changed.
    """
    wp = quiet_warp()
    light = np.empty((*rows.shape[:3], 4), np.float32)
    arrays = [wp.array(a.reshape(-1), dtype=wp.float32, device="cpu", copy=False) for a in (rows, light, radiance)]
    count, height, width = rows.shape[:3]
    if not count:
        return
    if rows.shape not in _launches:
        # One recorded launch per shape of images; a run that changes them for ever must not keep them all.
        if len(_launches) >= _LAUNCHES_KEPT:
            _launches.clear()
        _launches[rows.shape] = Repeated(_kernel(), count * height, [*arrays, height, width], "cpu")
    launch = _launches[rows.shape]
    for index, array in enumerate(arrays):
        launch.exchange(index, array)
    launch.launch()
    rows[..., :3], rows[..., 9] = light[..., :3], light[..., 3]


def spread_gloss_by_numpy(rows: ArrayF32, radiance: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
    """Return rows and radiance as `spread_gloss` leaves them, plainly.

    Args:
        rows: (c, H, W, GLOSS_COLUMNS).
        radiance: (c, H, W, 3).
    """
    rows, radiance = rows.copy(), radiance.copy()
    given = rows.astype(np.float64)
    for camera, y, x in np.argwhere(given[..., 8] > 0.0):
        row = given[camera, y, x]
        reach = int(row[8])
        up, left = max(y - reach, 0), max(x - reach, 0)
        near = given[camera, up : y + reach + 1, left : x + reach + 1]
        v, u = np.indices(near.shape[:2])
        weight = (reach + 1 - np.abs(v + up - y)) * (reach + 1 - np.abs(u + left - x)) * (near[..., 9] > 0.0)
        own = weight * np.all(near[..., 6:8] == row[6:8], axis=-1)
        used = own if own.any() else weight
        light = _without_speck(used.reshape(-1), near[..., :3].reshape(-1, 3), reach) if used.any() else np.zeros(3)
        rows[camera, y, x, :3], rows[camera, y, x, 9] = light, own.any()
        radiance[camera, y, x] += row[3:6] * light
    return rows, radiance


def _without_speck(weight: Array, light: Array, reach: int) -> Array:
    """Return the mean of light (n, 3) by weights (n,), whose brightest ray is at most `SPECK` times as bright as the others."""
    bright = np.where(weight > 0.0, light.sum(-1), -1.0)
    best = int(np.argmax(bright))
    others = np.where(np.arange(len(weight)) == best, 0.0, weight)
    if reach > 1 and others.any() and bright[best] > 0.0:
        limit = SPECK * (others @ light).sum() / others.sum()
        light = light.copy()
        light[best] *= min(1.0, limit / bright[best])
    return np.asarray(weight @ light / weight.sum())
