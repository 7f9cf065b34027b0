"""Texels and colours packed into 32 bits, and mip chains of them.

A word holds 9 bits each of red, green and blue and 5 of alpha. Colours are stored as square roots of linear values, which
spreads the levels about as sRGB does but decodes by one multiplication; filtering happens on decoded values. Data (normals,
roughness) are stored as they are, every 8-bit value exactly.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayFloat, ArrayU8, ArrayU32
from airworthy.scenes.record import Texture

LEVEL = 510
"""Count of the value 1 in 9 bits: twice 255, so that 8-bit data are exact."""
ALPHA_LEVEL = 31


def pack(values: ArrayFloat, squared: bool) -> ArrayU32:
    """Return words of linear values (..., 4) in [0, 1]; `squared`: the square root is stored."""
    v = np.clip(np.asarray(values, np.float32), 0.0, 1.0)
    rgb = np.sqrt(v[..., :3]) if squared else v[..., :3]
    counts = np.rint(rgb * LEVEL).astype(np.uint32)
    alpha = np.rint(v[..., 3] * ALPHA_LEVEL).astype(np.uint32)
    return np.asarray(counts[..., 0] | counts[..., 1] << 9 | counts[..., 2] << 18 | alpha << 27, np.uint32)


def unpack(packed: ArrayU32, squared: bool) -> ArrayF32:
    """Return linear values (..., 4) of words."""
    shifts = np.array([0, 9, 18], np.uint32)
    rgb = ((packed[..., None] >> shifts) & np.uint32(511)).astype(np.float32) / LEVEL
    alpha = (packed >> np.uint32(27)).astype(np.float32) / ALPHA_LEVEL
    return np.concatenate([rgb * rgb if squared else rgb, alpha[..., None]], axis=-1)


def pack_shared_exponent(rgb: ArrayFloat) -> ArrayU32:
    """Return words of unbounded light (..., 3) >= 0: 9 bits per channel and a shared power of two, 2^-23 to 2^7."""
    light = np.minimum(np.nan_to_num(np.maximum(np.asarray(rgb, np.float64), 0.0), posinf=0.0), 127.0)
    exponent = np.clip(np.ceil(np.log2(np.maximum(light.max(axis=-1), 2.0**-23) * 512.0 / 511.0)), -23, 8)
    counts = np.minimum(np.rint(light * np.exp2(9.0 - exponent)[..., None]), 511).astype(np.uint32)
    biased = (exponent + 23).astype(np.uint32)
    return np.asarray(counts[..., 0] | counts[..., 1] << 9 | counts[..., 2] << 18 | biased << 27, np.uint32)


def unpack_shared_exponent(packed: ArrayU32) -> ArrayF32:
    """Return light (..., 3) of words."""
    shifts = np.array([0, 9, 18], np.uint32)
    counts = ((packed[..., None] >> shifts) & np.uint32(511)).astype(np.float32)
    return counts * np.exp2((packed >> np.uint32(27)).astype(np.float32) - 32.0)[..., None]


def linear_pixels(texture: Texture) -> ArrayF32:
    """Return the linear RGBA (height, width, 4) in [0, 1] of a texture; one channel is spread to three."""
    pixels = np.asarray(texture.pixels)
    channels = pixels.shape[2]
    table = np.arange(256, dtype=np.float32) / 255.0
    if texture.srgb:
        table = np.where(table <= 0.04045, table / 12.92, ((table + 0.055) / 1.055) ** 2.4).astype(np.float32)
    out = np.ones((*pixels.shape[:2], 4), np.float32)
    out[..., :3] = table[pixels[..., : 3 if channels >= 3 else 1]]
    if channels in (2, 4):
        out[..., 3] = pixels[..., -1].astype(np.float32) / 255.0
    return out


def halved(image: ArrayF32) -> ArrayF32:
    """Return the next mip level: means of 2 x 2 texels; of an odd side, the last two texels are taken together first."""
    out = image
    for axis in (0, 1):
        size = out.shape[axis]
        if size == 1:
            continue
        if size % 2:  # box filter with the weights of a side shortened by half a texel at each end
            n = size // 2
            k = np.arange(n, dtype=np.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
            take = [np.take(out, np.arange(d, d + 2 * n, 2), axis=axis) for d in range(3)]
            out = (take[0] * (n - k) + take[1] * n + take[2] * (k + 1)) / np.float32(2 * n + 1)
        else:
            first, second = (np.take(out, np.arange(d, size, 2), axis=axis) for d in range(2))
            out = 0.5 * (first + second)
    return np.asarray(out, np.float32)


def mip_sides(width: int, height: int, skip: int) -> list[tuple[int, int]]:
    """Return widths and heights of the levels that `mip_chain` gives, finest first."""
    sides = [(width, height)]
    while sides[-1] != (1, 1):
        sides.append((max(sides[-1][0] // 2, 1), max(sides[-1][1] // 2, 1)))
    return sides[min(skip, len(sides) - 1) :]


def mip_chain(image: ArrayF32, skip: int, squared: bool) -> list[ArrayU32]:
    """Return packed levels of a linear image, without the first `skip` of them (but at least one).

    Args:
        image: Linear, (h, w, 4), in [0, 1].
        skip: Finest levels that are left out.
        squared: Whether square roots are stored, as `pack` does.
    """
    levels: list[ArrayU32] = []
    while True:
        last = image.shape[0] == 1 and image.shape[1] == 1
        if skip <= 0 or last:
            levels.append(pack(image, squared))
        if last:
            return levels
        image, skip = halved(image), skip - 1


def height_to_normal(height: ArrayF32, scale: float, metres: tuple[float, float]) -> ArrayU8:
    """Return the normal map (h, w, 3) of a tileable height map (h, w) in [0, 1].

    Args:
        height: Rows from the top.
        scale: Metres from 0 to 1.
        metres: What one repeat of the map covers along u and v.
    """
    rows, columns = height.shape
    # `roll` goes round the edge, as a tile does.
    slope_u = (np.roll(height, -1, 1) - np.roll(height, 1, 1)) * (0.5 * scale * columns / metres[0])
    slope_v = (np.roll(height, 1, 0) - np.roll(height, -1, 0)) * (0.5 * scale * rows / metres[1])  # green up: against v
    normal = np.stack([-slope_u, -slope_v, np.ones_like(height)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.rint((normal * 0.5 + 0.5) * 255.0).astype(np.uint8)


def octahedral(normals: ArrayFloat) -> ArrayU32:
    """Return unit vectors (..., 3) as two 16-bit coordinates on the octahedron's unfolded faces."""
    n = np.asarray(normals, np.float64)
    n = n / np.maximum(np.abs(n).sum(axis=-1, keepdims=True), 1e-20)
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    # The lower half is folded outwards over the square's corners.
    fold_x, fold_y = (1.0 - np.abs(y)) * np.where(x < 0, -1.0, 1.0), (1.0 - np.abs(x)) * np.where(y < 0, -1.0, 1.0)
    x, y = np.where(z < 0, fold_x, x), np.where(z < 0, fold_y, y)
    # 16 bits each: an error of some thousandth of a degree, which no reflection shows.
    a = np.rint((x * 0.5 + 0.5) * 65535.0).astype(np.uint32)
    b = np.rint((y * 0.5 + 0.5) * 65535.0).astype(np.uint32)
    return np.asarray(a | b << 16, np.uint32)
