"""Procedural textures: tileable images of common surfaces, a pure function of (kind, size, seed).

Everything is drawn with NumPy from noise with a falling spectrum, whose Fourier transform makes it periodic: a texture laid
side by side with itself shows no seam.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from airworthy.core.arrays import ArrayFloat
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes.record import Texture

Rng = np.random.Generator

SIZE = 512
"""Default side in pixels."""
_SIZE_MAX = 4096


@cache
def procedural(kind: str, size: int = SIZE, seed: int = 0) -> Texture:
    """Return a tileable texture.

    Args:
        kind: One of `texture_kinds()`.
        size: Side in pixels, 8 to 4,096.
        seed: Variant.

    Raises:
        UnknownNameError: If there is no such kind.
        AirworthyError: If the size is out of range.
    """
    if kind not in KINDS:
        raise unknown_name("texture", kind, KINDS)
    if not 8 <= size <= _SIZE_MAX:
        raise AirworthyError(f"A texture's size is {size}; expected 8 to {_SIZE_MAX} pixels.")
    # The name is part of the seed: two kinds with one seed must not share their patterns.
    key = [seed & 0xFFFFFFFF, *kind.encode()]
    image = KINDS[kind](size, np.random.default_rng(key))
    pixels = np.clip(np.rint(image * 255.0), 0, 255).astype(np.uint8)
    # Textures are shared by scenes; a change in one would be a change in all.
    pixels.setflags(write=False)
    return Texture(pixels)


def texture_kinds() -> list[str]:
    """Return names that `procedural` takes."""
    return sorted(KINDS)


# ---- building blocks ----------------------------------------------------------------------------------------------------


def _noise(size: int, rng: Rng, slope: float = 1.6, stretch: tuple[float, float] = (1.0, 1.0), low: float = 0.0) -> ArrayFloat:
    """Tileable noise in [0, 1], mean 0.5: white noise with amplitude falling as frequency to the power of -slope.

    `stretch` lengthens features along rows and columns; frequencies below `low` cycles per tile are left out.
    """
    # Filtered in frequency, noise is periodic over the tile: it repeats without a seam.
    spectrum = np.fft.rfft2(rng.standard_normal((size, size)))
    rows = np.fft.fftfreq(size, 1.0 / size)[:, None] * stretch[0]
    columns = np.fft.rfftfreq(size, 1.0 / size)[None, :] * stretch[1]
    frequency = np.hypot(rows, columns)
    # Its weight is set to 0 below; a power of 0 would be infinite before that.
    frequency[0, 0] = 1.0
    weight = np.where(frequency < max(low, 0.5), 0.0, frequency**-slope)
    # No mean of its own: it is set to 0.5 below, whatever was drawn.
    weight[0, 0] = 0.0
    field = np.fft.irfft2(spectrum * weight, s=(size, size))
    # Three standard deviations to either side fill [0, 1].
    return np.clip(0.5 + field / (6.0 * max(float(field.std()), 1e-12)), 0.0, 1.0)


def _grid(size: int) -> tuple[ArrayFloat, ArrayFloat]:
    """Row and column coordinates of pixel centres in [0, 1)."""
    axis = (np.arange(size) + 0.5) / size
    return np.broadcast_to(axis[:, None], (size, size)), np.broadcast_to(axis[None, :], (size, size))


def _mix(low: tuple[float, ...], high: tuple[float, ...], share: ArrayFloat) -> ArrayFloat:
    """Between two colours."""
    share = np.clip(share, 0.0, 1.0)[..., None]
    return np.asarray(low) * (1.0 - share) + np.asarray(high) * share


def _shade(image: ArrayFloat, factor: ArrayFloat) -> ArrayFloat:
    return np.clip(image * factor[..., None], 0.0, 1.0)


def _lines(coordinate: ArrayFloat, count: int, width: float) -> ArrayFloat:
    """1 within half a width of `count` evenly spaced lines, else 0; the width is a share of the spacing."""
    phase = (coordinate * count) % 1.0
    return (np.minimum(phase, 1.0 - phase) < 0.5 * width).astype(float)


# ---- surfaces -----------------------------------------------------------------------------------------------------------


def _concrete(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.46, 0.46, 0.45), (0.66, 0.65, 0.63), _noise(size, rng, 1.5))
    fine = 0.9 + 0.2 * _noise(size, rng, 0.6)
    pores = 1.0 - 0.35 * (_noise(size, rng, 0.9, low=16) > 0.78)
    return _shade(_shade(base, fine), pores)


def _epoxy(size: int, rng: Rng) -> ArrayFloat:
    """Polished floor with wear."""
    wear = _noise(size, rng, 1.9)
    base = _mix((0.36, 0.40, 0.43), (0.48, 0.52, 0.54), wear)
    scratches = 1.0 + 0.10 * (_noise(size, rng, 1.0, (1.0, 14.0)) > 0.68)
    return _shade(_shade(base, scratches), 0.96 + 0.08 * _noise(size, rng, 0.4))


def _plaster(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.80, 0.79, 0.75), (0.90, 0.89, 0.86), _noise(size, rng, 1.3))
    return _shade(base, 0.95 + 0.1 * _noise(size, rng, 0.7, low=12))


def _brick(size: int, rng: Rng) -> ArrayFloat:
    rows, columns = _grid(size)
    courses, stones = 12, 4
    course = np.floor(rows * courses).astype(int)
    # Running bond: every other course by half a stone, and periodic, so that tiles join.
    shifted = (columns + 0.5 / stones * (course % 2)) % 1.0
    stone = np.floor(shifted * stones).astype(int)
    tints = rng.uniform(0.0, 1.0, (courses, stones))
    base = _mix((0.45, 0.19, 0.13), (0.66, 0.33, 0.23), tints[course, stone])
    base = _shade(base, 0.8 + 0.4 * _noise(size, rng, 0.9))
    joint = np.maximum(_lines(rows, courses, 0.12), _lines(shifted, stones, 0.04))
    mortar = _shade(_mix((0.60, 0.58, 0.54), (0.72, 0.70, 0.66), _noise(size, rng, 0.8)), np.ones((size, size)))
    return np.where(joint[..., None] > 0, mortar, base)


def _grain(size: int, rng: Rng) -> ArrayFloat:
    """Wood grain along columns: rings cut lengthwise."""
    rows, _ = _grid(size)
    bend = _noise(size, rng, 2.0, (1.0, 6.0))
    # Seven rings to a tile: a whole number, or the edges would not meet.
    rings = 0.5 + 0.5 * np.sin(2.0 * np.pi * (7.0 * rows + 5.0 * bend))
    return np.clip(0.65 * rings + 0.6 * (_noise(size, rng, 0.8, (1.0, 30.0)) - 0.3), 0.0, 1.0)


def _wood(size: int, rng: Rng) -> ArrayFloat:
    return _mix((0.74, 0.55, 0.35), (0.52, 0.34, 0.19), 0.8 * _grain(size, rng))


def _planks(size: int, rng: Rng) -> ArrayFloat:
    """Four boards, laid along columns, butt joints staggered."""
    rows, columns = _grid(size)
    boards = 6
    board = np.floor(rows * boards).astype(int)
    # Modulo 1, for a joint that falls on the tile's edge.
    joint = np.abs(((columns - rng.uniform(0, 1, boards)[board]) % 1.0) - 0.5) < 0.004
    base = _mix((0.66, 0.47, 0.29), (0.44, 0.28, 0.15), 0.7 * _grain(size, rng))
    base = _shade(base, rng.uniform(0.82, 1.12, boards)[board])
    dark = 1.0 - 0.6 * np.maximum(_lines(rows, boards, 0.04), joint)
    return _shade(base, dark)


def _plywood(size: int, rng: Rng) -> ArrayFloat:
    return _mix((0.85, 0.70, 0.50), (0.70, 0.53, 0.34), 0.8 * _noise(size, rng, 1.4, (1.0, 9.0)))


def _metal(size: int, rng: Rng) -> ArrayFloat:
    brushed = _noise(size, rng, 0.7, (1.0, 60.0))
    return _shade(np.full((size, size, 3), 0.74), 0.82 + 0.36 * brushed)


def _rust(size: int, rng: Rng) -> ArrayFloat:
    return _mix((0.33, 0.36, 0.38), (0.48, 0.24, 0.12), 3.0 * (_noise(size, rng, 1.7) - 0.42))


def _fabric(size: int, rng: Rng) -> ArrayFloat:
    rows, columns = _grid(size)
    weave = 0.5 + 0.25 * np.sin(2 * np.pi * 64 * rows) + 0.25 * np.sin(2 * np.pi * 64 * columns)
    return _shade(np.full((size, size, 3), 0.85), 0.7 + 0.3 * weave * (0.7 + 0.6 * _noise(size, rng, 0.5)))


def _carpet(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.26, 0.29, 0.34), (0.40, 0.43, 0.48), _noise(size, rng, 0.3))
    return _shade(base, 0.85 + 0.3 * _noise(size, rng, 1.5))


def _foam(size: int, rng: Rng) -> ArrayFloat:
    """Interlocking sports mats, two by two."""
    rows, columns = _grid(size)
    checker = (np.floor(2 * rows) + np.floor(2 * columns)) % 2
    base = _mix((0.13, 0.25, 0.40), (0.22, 0.24, 0.27), checker)
    wave_r, wave_c = 0.012 * np.sin(2 * np.pi * 20 * columns), 0.012 * np.sin(2 * np.pi * 20 * rows)
    seam = np.maximum(_lines(rows + wave_r, 2, 0.03), _lines(columns + wave_c, 2, 0.03))
    dimple = 0.93 + 0.07 * np.sin(2 * np.pi * 48 * rows) * np.sin(2 * np.pi * 48 * columns)
    return _shade(_shade(base, dimple * (0.9 + 0.2 * _noise(size, rng, 0.8))), 1.0 - 0.55 * seam)


def _bark(size: int, rng: Rng) -> ArrayFloat:
    ridges = np.abs(2.0 * _noise(size, rng, 1.3, (5.0, 1.0)) - 1.0)
    base = _mix((0.16, 0.11, 0.07), (0.46, 0.36, 0.27), 1.6 * ridges)
    return _shade(base, 0.75 + 0.5 * _noise(size, rng, 0.7))


def _leaves(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.08, 0.20, 0.05), (0.34, 0.50, 0.16), _noise(size, rng, 0.9, low=6))
    return _shade(base, 0.6 + 0.8 * _noise(size, rng, 0.5, low=20))


def _grass(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.20, 0.30, 0.09), (0.42, 0.48, 0.20), _noise(size, rng, 1.1))
    return _shade(base, 0.65 + 0.7 * _noise(size, rng, 0.5, (0.4, 1.0), low=10))


def _soil(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.24, 0.18, 0.12), (0.46, 0.37, 0.27), _noise(size, rng, 1.2))
    litter = _noise(size, rng, 0.8, low=18) > 0.66
    return np.where(litter[..., None], _shade(base, np.full((size, size), 1.35)), base)


def _asphalt(size: int, rng: Rng) -> ArrayFloat:
    base = _mix((0.17, 0.17, 0.18), (0.28, 0.28, 0.28), _noise(size, rng, 1.4))
    return _shade(base, 0.75 + 0.5 * _noise(size, rng, 0.1))


def _facade(size: int, rng: Rng) -> ArrayFloat:
    """Return a storey of windows, three by three."""
    rows, columns = _grid(size)
    wall = _shade(_mix((0.60, 0.55, 0.48), (0.70, 0.65, 0.58), _noise(size, rng, 1.2)), 0.92 + 0.16 * _noise(size, rng, 0.5))
    r, c = (rows * 3) % 1.0, (columns * 3) % 1.0
    frame = (np.abs(r - 0.5) < 0.34) & (np.abs(c - 0.5) < 0.27)
    glass = (np.abs(r - 0.5) < 0.30) & (np.abs(c - 0.5) < 0.23) & (np.abs(c - 0.5) > 0.012)
    pane = rng.uniform(0.0, 1.0, (3, 3))[(rows * 3).astype(int), (columns * 3).astype(int)]
    sky = _mix((0.10, 0.14, 0.18), (0.42, 0.52, 0.60), 0.5 * pane + 0.5 * (1.0 - r))
    return np.where(glass[..., None], sky, np.where(frame[..., None], 0.88, wall))


def _crate(size: int, rng: Rng) -> ArrayFloat:
    """Return a wooden crate's side with frame and brace."""
    rows, columns = _grid(size)
    image = _planks(size, rng) * 1.05
    edge = np.minimum(np.minimum(rows, 1 - rows), np.minimum(columns, 1 - columns))
    brace = np.abs(rows - columns) < 0.06
    frame = _mix((0.62, 0.44, 0.27), (0.50, 0.34, 0.19), _grain(size, rng))
    image = np.where(((edge < 0.11) | brace)[..., None], frame, image)
    shadow = np.where((np.abs(edge - 0.115) < 0.008) | (np.abs(np.abs(rows - columns) - 0.064) < 0.006), 0.45, 1.0)
    return _shade(image, shadow)


def _cardboard(size: int, rng: Rng) -> ArrayFloat:
    rows, columns = _grid(size)
    base = _shade(
        _mix((0.62, 0.46, 0.30), (0.72, 0.56, 0.38), _noise(size, rng, 1.3)), 0.96 + 0.06 * np.sin(2 * np.pi * 90 * columns)
    )
    tape = np.abs(rows - 0.5) < 0.06
    label = (np.abs(rows - 0.25) < 0.12) & (np.abs(columns - 0.72) < 0.17)
    text = label & (_lines(rows, 40, 0.5) > 0) & (np.abs(columns - 0.70) < 0.12)
    image = np.where(tape[..., None], np.array([0.78, 0.66, 0.44]), base)
    image = np.where(label[..., None], np.array([0.93, 0.93, 0.91]), image)
    return np.where(text[..., None], np.array([0.2, 0.2, 0.22]), image)


def _screen(size: int, rng: Rng) -> ArrayFloat:
    """Return a monitor's picture: a plot over a dark desktop."""
    rows, columns = _grid(size)
    image = _mix((0.05, 0.09, 0.16), (0.09, 0.17, 0.30), rows)
    window = (np.abs(rows - 0.47) < 0.34) & (np.abs(columns - 0.5) < 0.40)
    image = np.where(window[..., None], np.array([0.95, 0.96, 0.97]), image)
    image = np.where((window & (rows < 0.19))[..., None], np.array([0.22, 0.42, 0.72]), image)
    inside = (np.abs(rows - 0.5) < 0.27) & (np.abs(columns - 0.5) < 0.36)
    grid = inside & ((_lines(rows, 12, 0.05) > 0) | (_lines(columns, 12, 0.05) > 0))
    image = np.where(grid[..., None], np.array([0.82, 0.85, 0.88]), image)
    for color, phase in (((0.85, 0.25, 0.20), 0.0), ((0.15, 0.55, 0.35), 1.3), ((0.20, 0.35, 0.80), 2.6)):
        wave = (
            0.5 + 0.13 * np.sin(9.0 * columns + phase) + 0.06 * np.sin(23.0 * columns + 2.0 * phase) + rng.uniform(-0.05, 0.05)
        )
        image = np.where((inside & (np.abs(rows - wave) < 0.007))[..., None], np.array(color), image)
    return image


def _tag(size: int, rng: Rng) -> ArrayFloat:
    """Return a square fiducial: a black border around random bits."""
    bits = 6
    cells = np.zeros((bits + 4, bits + 4))
    cells[0, :] = cells[-1, :] = cells[:, 0] = cells[:, -1] = 1.0
    # The ring of zeros that stays around the bits is the black border, the ones outside it the white that sets it off.
    cells[2:-2, 2:-2] = rng.integers(0, 2, (bits, bits))
    rows, columns = _grid(size)
    value = cells[(rows * (bits + 4)).astype(int), (columns * (bits + 4)).astype(int)]
    return np.repeat((0.06 + 0.88 * value)[..., None], 3, axis=2)


def _checker(size: int, rng: Rng) -> ArrayFloat:
    rows, columns = _grid(size)
    value = (np.floor(8 * rows) + np.floor(8 * columns)) % 2
    return np.repeat((0.08 + 0.84 * value)[..., None], 3, axis=2)


def _poster(size: int, rng: Rng) -> ArrayFloat:
    """Bands, a disc and lines of text."""
    rows, columns = _grid(size)
    paper, ink, accent = rng.uniform(0.1, 0.9, (3, 3))
    image = _mix(tuple(0.45 + 0.55 * paper), tuple(0.3 + 0.6 * paper), rows)
    angle = rng.uniform(0.0, np.pi)
    band = ((np.cos(angle) * rows + np.sin(angle) * columns) * 3.0) % 1.0 < 0.28
    image = np.where((band & (rows < 0.66))[..., None], ink, image)
    center = rng.uniform(0.3, 0.6, 2)
    disc = np.hypot(rows - center[0], columns - center[1]) < rng.uniform(0.14, 0.24)
    image = np.where(disc[..., None], accent, image)
    text = (rows > 0.72) & (rows < 0.93) & (_lines(rows, 22, 0.42) > 0) & (np.abs(columns - 0.5) < 0.40)
    image = np.where(text[..., None], np.array([0.1, 0.1, 0.12]), image)
    edge = np.minimum(np.minimum(rows, 1 - rows), np.minimum(columns, 1 - columns)) < 0.03
    return np.where(edge[..., None], 0.95, image)


def _whiteboard(size: int, rng: Rng) -> ArrayFloat:
    """Equations, a diagram, and traces of what was wiped off."""
    rows, columns = _grid(size)
    image = _shade(np.full((size, size, 3), 0.96), 0.96 + 0.05 * _noise(size, rng, 1.8))
    inks = ((0.10, 0.20, 0.55), (0.70, 0.12, 0.12), (0.08, 0.35, 0.15))
    for line in range(9):
        height, start, end = 0.10 + 0.085 * line, 0.06, rng.uniform(0.25, 0.5)
        scrawl = height + 0.011 * np.sin(columns * rng.uniform(160, 260)) + 0.008 * np.sin(columns * rng.uniform(60, 110))
        stroke = (np.abs(rows - scrawl) < 0.0045) & (columns > start) & (columns < end)
        image = np.where(stroke[..., None], np.array(inks[line % 3]), image)
    for k in range(3):
        radius = np.hypot(rows - 0.3 - 0.2 * k, columns - 0.75 + 0.08 * (k % 2))
        image = np.where((np.abs(radius - 0.07) < 0.005)[..., None], np.array(inks[k]), image)
    return image


def _stripes(size: int, rng: Rng) -> ArrayFloat:
    """Warning stripes."""
    rows, columns = _grid(size)
    yellow = ((rows + columns) * 4.0) % 1.0 < 0.5
    base = np.where(yellow[..., None], np.array([0.93, 0.72, 0.08]), np.array([0.09, 0.09, 0.09]))
    return _shade(base, 0.9 + 0.2 * _noise(size, rng, 1.0))


def _ceiling(size: int, rng: Rng) -> ArrayFloat:
    """Acoustic tiles, two by two."""
    rows, columns = _grid(size)
    base = _shade(np.full((size, size, 3), 0.90), 0.96 + 0.08 * _noise(size, rng, 0.4))
    holes = (_noise(size, rng, 0.5, low=20) > 0.72) * 0.18
    return _shade(base, (1.0 - holes) * (1.0 - 0.35 * np.maximum(_lines(rows, 2, 0.02), _lines(columns, 2, 0.02))))


def _corrugated(size: int, rng: Rng) -> ArrayFloat:
    """Profiled sheet, ribs along rows."""
    _, columns = _grid(size)
    rib = 0.78 + 0.22 * np.cos(2 * np.pi * 12 * columns)
    return _shade(_mix((0.50, 0.54, 0.57), (0.62, 0.65, 0.67), _noise(size, rng, 1.6, (0.2, 1.0))), rib)


KINDS: dict[str, Callable[[int, Rng], ArrayFloat]] = {
    "asphalt": _asphalt,
    "bark": _bark,
    "brick": _brick,
    "cardboard": _cardboard,
    "carpet": _carpet,
    "ceiling": _ceiling,
    "checker": _checker,
    "concrete": _concrete,
    "corrugated": _corrugated,
    "crate": _crate,
    "epoxy": _epoxy,
    "fabric": _fabric,
    "facade": _facade,
    "foam": _foam,
    "grass": _grass,
    "leaves": _leaves,
    "metal": _metal,
    "planks": _planks,
    "plaster": _plaster,
    "plywood": _plywood,
    "poster": _poster,
    "rust": _rust,
    "screen": _screen,
    "soil": _soil,
    "stripes": _stripes,
    "tag": _tag,
    "whiteboard": _whiteboard,
    "wood": _wood,
}
"""Name -> drawing, from (size, generator) to (size, size, 3) sRGB in [0, 1]."""
