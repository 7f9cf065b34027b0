"""The kernel that lays splats over linear radiance: one task, one block of pixels; on a CPU, where images are put together."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.optics.tone import BRIGHTEST, PATH_TO_WHITE, PURE, SHOULDER, TABLE_SIZE

PIXELS_PER_TASK = 2048

_BODY = """
// tone.filmic, tone.display_from_linear, tone.linear_from_display, one pixel at a time; tests hold them against each other.
const float room = 1.0f - SHOULDER;
const long long begin = (long long)task * PIXELS, end = begin + PIXELS < pixels ? begin + PIXELS : pixels;
for (long long p = begin; p < end; ++p) {
  const float cover = alpha.data[p];
  float* out = radiance.data + 3 * p;
  if (!(cover > 0.0f)) continue;
  float shown[3] = {color.data[3 * p], color.data[3 * p + 1], color.data[3 * p + 2]};
  if (cover < OPAQUE) {
    float under[3], peak = 0.0f;
    for (int k = 0; k < 3; ++k) {
      under[k] = out[k] > 0.0f ? out[k] : 0.0f;
      peak = under[k] > peak ? under[k] : peak;
    }
    if (peak > SHOULDER) {
      const float held = 1.0f - room * expf(-(peak - SHOULDER) / room), share = held / peak;
      const float white = 1.0f - 1.0f / (PATH_TO_WHITE * (peak - held) + 1.0f);
      for (int k = 0; k < 3; ++k) under[k] = under[k] * share + (held - under[k] * share) * white;
    }
    for (int k = 0; k < 3; ++k) {
      const float root = under[k] < 1.0f ? sqrtf(under[k]) : 1.0f;
      shown[k] += (1.0f - cover) * encoded.data[(int)(root * (SIZE - 1.0f) + 0.5f)];
    }
  }
  float most = 0.0f, least = 1.0f;
  for (int k = 0; k < 3; ++k) {
    float index = shown[k] * (SIZE - 1.0f) + 0.5f;
    index = index > 0.0f ? index : 0.0f;  // what is not a number, too
    out[k] = decoded.data[(int)(index < SIZE - 1.0f ? index : SIZE - 1.0f)];
    most = out[k] > most ? out[k] : most;
    least = out[k] < least ? out[k] : least;
  }
  if (most <= SHOULDER) continue;
  float held = most < BRIGHTEST ? most : BRIGHTEST;
  float peak = SHOULDER - room * logf((1.0f - held) / room);
  // tone._paleness: evenly spaced peaks, and what each leaves of the smallest channel.
  const float last = SHOULDER - room * logf((1.0f - BRIGHTEST) / room), allowed = least + PURE;
  int low = 0, high = pale_count - 1;
  if (allowed < pale.data[high]) {
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (pale.data[middle] <= allowed) low = middle; else high = middle;
    }
    const float span = pale.data[high] - pale.data[low];
    const float place = low + (span > 0.0f ? (allowed - pale.data[low]) / span : 0.0f);
    const float purest = SHOULDER + (last - SHOULDER) * place / (pale_count - 1);
    peak = purest < peak ? purest : peak;
  }
  held = peak > SHOULDER ? 1.0f - room * expf(-(peak - SHOULDER) / room) : peak;
  const float white = 1.0f - 1.0f / (PATH_TO_WHITE * (peak - held) + 1.0f);
  for (int k = 0; k < 3; ++k) {
    const float value = ((out[k] < held ? out[k] : held) - held * white) / (1.0f - white) * (peak / held);
    out[k] = value > 0.0f ? value : 0.0f;
  }
}
"""


def _source(opaque: float) -> str:
    numbers = {
        "SHOULDER": f"{SHOULDER!r}f",
        "BRIGHTEST": f"{BRIGHTEST!r}f",
        "PURE": f"{PURE!r}f",
        "PATH_TO_WHITE": f"{PATH_TO_WHITE!r}f",
        "OPAQUE": f"{opaque!r}f",
        "SIZE": f"{float(TABLE_SIZE)!r}f",
        "PIXELS": str(PIXELS_PER_TASK),
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*lines, _BODY, *(f"#undef {name}" for name in numbers), ""])


_ARGUMENTS = """
    color: float32[]  # (pixels * 3,) premultiplied, encoded
    alpha: float32[]  # (pixels,)
    encoded: float32[]  # (TABLE_SIZE,) by the square root of linear values
    decoded: float32[]  # (TABLE_SIZE,)
    pale: float32[]  # (pale_count,)
    # changed in place
    radiance: float32[]  # (pixels * 3,) linear, of what is behind
    pixels: int
    pale_count: int
"""


@cache
def blend_kernel(opaque: float) -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk. Splats that cover more than `opaque` hide all
    behind.
    """
    return native_kernel("splats_blend", _source(opaque), _ARGUMENTS)
