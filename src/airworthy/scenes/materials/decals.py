"""Decals: what lies on a surface, cut out by alpha: runs of dirt, leaks, posters, signs, tyre marks, stripes of hazard."""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import packaged_toml
from airworthy.scenes.materials.canvas import Canvas, color, over, ramp, shaded, smooth
from airworthy.scenes.materials.layers import Colors, Layers, Numbers


@cache
def _letters() -> dict[str, list[list[float]]]:
    return packaged_toml("airworthy.scenes.materials", "letters.toml")


def lettering(canvas: Canvas, text: str, middle: tuple[float, float], height: float, stroke: float) -> Array:
    """Return a line of text, 1 inside of its strokes, softened over a pixel.

    Args:
        canvas: Where.
        text: Capital letters, digits and blanks.
        middle: Row and column of its middle, as shares of the square.
        height: Of its letters, as a share of the square.
        stroke: Half width of strokes, as a share of the height.
    """
    unit, advance = height / 4.0, 2.9
    left = middle[1] - 0.5 * unit * (advance * len(text) - 0.9)
    far = np.full_like(canvas.row, 1.0)
    r, k = canvas.row / canvas.tile, canvas.column / canvas.tile
    for place, letter in enumerate(text):
        for line in _letters().get(letter, []):
            points = np.asarray(line, float).reshape(-1, 2)
            x, y = left + unit * (advance * place + points[:, 0]), middle[0] + unit * (2.0 - points[:, 1])
            for a in range(len(points) - 1):
                far = np.minimum(far, _to_segment(k, r, (x[a], y[a]), (x[a + 1], y[a + 1])))
    return 1.0 - smooth(stroke * height - 0.7 / canvas.size, stroke * height + 0.7 / canvas.size, far)


def _to_segment(x: Array, y: Array, a: tuple[float, float], b: tuple[float, float]) -> Array:
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = np.clip(((x - a[0]) * dx + (y - a[1]) * dy) / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
    return np.asarray(np.hypot(x - a[0] - t * dx, y - a[1] - t * dy))


def _plain(canvas: Canvas, rgb: list[float]) -> Array:
    return color(rgb) + np.zeros((canvas.size, canvas.size, 3))


def _unit(canvas: Canvas) -> tuple[Array, Array]:
    """Return row and column as shares of the square."""
    return canvas.row / canvas.tile, canvas.column / canvas.tile


def runs(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw what water has washed down from an edge (many runs) or from one place (a leak)."""
    r, k = _unit(canvas)
    fine, thin = canvas.noise("fine", 1.2, 10.0), canvas.noise("thin", 1.8, 3.0, 200.0, (9.0, 1.0))
    top = canvas.rng("top")
    share = np.zeros_like(r)
    bent = 0.012 * canvas.noise("swerve", 2.4, 2.0, 20.0, (5.0, 1.0))
    for _ in range(int(n["runs"])):
        at = 0.5 + (top.random() - 0.5) * n["spread"]
        length, wide = top.uniform(0.35, 0.97) * n["reach"], top.uniform(0.4, 1.0) * n["width"]
        swerve = top.uniform(-1.0, 1.0) * bent + 0.004 * top.normal() * r
        t = r / length
        narrow = wide * (0.55 + 0.75 * np.exp(-6.0 * t) + 0.25 * t)
        body = np.exp(-(((k - at + swerve) / narrow) ** 2)) * (1.0 - smooth(0.25, 1.0, t)) ** 0.8
        # Where a run dries, it leaves a darker rim.
        rim = np.exp(-(((np.abs(k - at + swerve) - 1.1 * narrow) / (0.30 * wide)) ** 2)) * (1.0 - smooth(0.2, 0.9, t)) * 0.35
        share = np.maximum(share, np.maximum(body, rim) * top.uniform(0.55, 1.0))
    seep = np.exp(-((r / (0.035 * (1.0 + 0.5 * thin.clip(-1, 2)))) ** 2)) * (
        np.abs(k - 0.5) < 0.5 * n["spread"] + 0.06 * (1.0 + 0.4 * fine)
    )
    share = np.maximum(share, 0.85 * seep) * smooth(-1.7, 0.7, thin) * smooth(0.0, 0.05, np.minimum(k, 1.0 - k))
    image = ramp(c["body"], np.clip(0.5 + 0.2 * fine + 0.4 * (share - 0.5), 0.0, 1.0))
    alpha = np.clip(n["strength"] * np.sqrt(share) * (0.65 + 0.6 * canvas.wear), 0.0, 1.0)
    # A film: no thickness of which a rim could be seen.
    return Layers(image, np.zeros_like(share), 0.9, 0.0, alpha * smooth(0.0, 0.02, r))


def poster(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw a printed poster, pasted on, creased, faded and torn at its corners."""
    r, k = _unit(canvas)
    rng = canvas.rng("layout")
    scheme = [c["ground"][0], c["figure"][0], c["accent"][0]]
    order = rng.permutation(3) if canvas.seed else np.arange(3)
    ground, figure, accent = (scheme[int(index)] for index in order)
    image = ramp([ground, (0.75 * np.asarray(ground)).tolist()], r)
    sun = np.hypot(r - 0.36, k - rng.uniform(0.38, 0.62))
    image = over(image, color(accent), 1.0 - smooth(0.205, 0.208, sun))
    for rise, level, tone in ((0.10, 0.50, 0.75), (0.13, 0.58, 0.5), (0.08, 0.66, 0.28)):
        peaks = np.abs(np.mod(k * rng.uniform(1.6, 2.6) + rng.random(), 1.0) - 0.5) * 2.0
        hill = level + rise * (peaks - 0.5) + 0.012 * np.sin(23.0 * k + 9.0 * level)
        image = over(image, tone * color(figure), smooth(0.0, 0.004, r - hill))
    words = [["FLY IN", "THE OPEN"], ["AIR SHOW", "JUNE 21"], ["NIGHT", "MARKET"], ["NEW WORKS", "HALL 7"]][
        int(rng.integers(0, 4)) if canvas.seed else 0
    ]
    band = (r > 0.70) & (r < 0.95)
    image = np.where(band[..., None], color(c["paper"][0]), image)
    for line, at in zip(words, (0.752, 0.842), strict=True):
        image = over(image, color(c["ink"][0]), lettering(canvas, line, (at, 0.5), min(0.062, 0.84 / len(line)), 0.085))
    image = over(image, color(c["ink"][0]), lettering(canvas, "ENTRY FREE", (0.913, 0.5), 0.022, 0.08))
    margin = np.minimum(np.minimum(r - 0.02, 0.98 - r), np.minimum(k - 0.12, 0.88 - k))
    image = over(color(c["paper"][0]) + 0.0 * image, image, smooth(0.018, 0.021, margin))
    crease = canvas.noise("crease", 2.6, 2.0, 60.0)
    ridge = np.exp(-((canvas.noise("wrinkle", 2.8, 2.0, 24.0) / 0.05) ** 2))
    fold = np.exp(-((np.minimum(np.abs(r - 0.5), np.abs(k - 0.5)) / 0.003) ** 2))
    fade = np.clip(canvas.wear * (0.6 + 0.15 * crease), 0.0, 0.85)
    image = over(image, (image @ np.array([0.25, 0.5, 0.25]))[..., None] * 0.6 + 0.35, fade)
    image = over(image, color(c["paper"][0]), np.clip(0.45 * ridge * canvas.wear + 0.35 * fold, 0.0, 1.0))
    image = shaded(image, 1.0 - 0.18 * canvas.wear * smooth(0.2, 1.6, canvas.noise("dirt", 2.2, 2.0)))
    corner = np.minimum.reduce([np.hypot(r - a, k - b) for a, b in ((0.02, 0.12), (0.02, 0.88), (0.98, 0.12), (0.98, 0.88))])
    tear = (
        0.16 * canvas.wear * (1.0 + 0.4 * canvas.noise("tear", 2.0, 2.0, 80.0))
        + 0.01 * canvas.noise("ragged", 1.4, 8.0) * canvas.wear
    )
    torn = np.minimum(margin, corner - tear * (rng.random() * 0.6 + 0.4))
    image = over(color((0.82, 0.80, 0.76)) + 0.0 * image, image, smooth(0.0, 0.012, torn))
    height = 0.0003 + 0.0006 * canvas.wear * ridge + 0.0002 * fold + 0.0008 * crease * canvas.wear
    return Layers(image, height, 0.55 + 0.3 * canvas.wear, 0.0, smooth(-0.001, 0.001, torn))


def sign(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw a traffic sign: a ring with a number, or a triangle with an exclamation mark, weathered."""
    r, k = _unit(canvas)
    fine, cloud = canvas.noise("fine", 1.4, 8.0), canvas.noise("cloud", 2.4, 1.0, 40.0)
    soft = 0.8 / canvas.size
    if n["speed"] > 0.0:
        far = np.hypot(r - 0.5, k - 0.5)
        ring = smooth(0.355 - soft, 0.355 + soft, far)
        image = over(_plain(canvas, c["face"][0]), color(c["ring"][0]), ring * (1.0 - smooth(0.465 - soft, 0.465 + soft, far)))
        # Signs are bold; another number by seed.
        number = str(int(n["speed"])) if canvas.seed == 0 else str(int(canvas.rng("number").choice([20, 30, 40, 50, 60, 80])))
        ink = lettering(canvas, number, (0.5, 0.5), 0.34, 0.075)
        inside = 0.48 - far
    else:
        # Distance to the sides of an equilateral triangle that stands on its base.
        side = np.minimum.reduce([0.86 - r, *(0.5 * (r - 0.02) + s * 0.866 * (k - 0.5) for s in (-1.0, 1.0))])
        inside = side
        image = over(_plain(canvas, c["ring"][0]), color(c["face"][0]), smooth(0.075 - soft, 0.075 + soft, side))
        bar = (np.abs(k - 0.5) < 0.030 - 0.035 * (r - 0.36)) & (r > 0.36) & (r < 0.63)
        ink = np.maximum(bar * 1.0, 1.0 - smooth(0.033 - soft, 0.033 + soft, np.hypot(r - 0.705, k - 0.5)))
    image = over(image, color(c["ink"][0]), ink)
    scratch = canvas.cracks("scratches", round(14 * canvas.wear), 0.12, 0.0012, 0.008, 0.1)
    cut = np.where(scratch.width > 0.0, 1.0 - smooth(0.4, 1.0, scratch.distance / np.maximum(1.6 * scratch.width, 1e-6)), 0.0)
    image = over(image, color(c["metal"][0]), 0.7 * cut)
    dirt = smooth(0.0, 1.8, cloud + 0.4 * fine) * canvas.wear
    run = canvas.streaks("run", (canvas.rank(canvas.noise("seep", 0.6, 6.0)) > 0.9985) * 1.0, 0.25) * canvas.wear
    image = over(image, image * color(c["dirt"][0]), np.clip(0.5 * dirt + 0.7 * run, 0.0, 0.9))
    bolts = np.minimum(np.hypot(r - 0.5 + 0.22, k - 0.5), np.hypot(r - 0.5 - 0.22, k - 0.5)) * canvas.tile
    head = 1.0 - smooth(0.007, 0.009, bolts)
    image = over(image, color(c["metal"][0]), head)
    height = 0.002 * smooth(0.0, 0.012, inside) + 0.003 * head + 0.0008 * canvas.noise("bow", 3.4, 1.0, 4.0) * canvas.wear
    return Layers(image, height, np.clip(0.3 + 0.5 * dirt, 0.0, 1.0), 0.0, smooth(-soft, soft, inside))


def skid(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw the marks of two tyres that braked: ribs of rubber, breaking up towards their beginning."""
    r, k = _unit(canvas)
    fine, long = canvas.noise("fine", 0.8, 20.0), canvas.noise("long", 1.6, 3.0, 200.0, (16.0, 1.0))
    bend = 0.05 * np.sin(2.4 * r + canvas.rng("bend").uniform(-1.0, 1.0)) + 0.02 * r
    share = np.zeros_like(r)
    for at, gain in ((0.5 - 0.5 * n["track"], 1.0), (0.5 + 0.5 * n["track"], 0.85)):
        across = (k - at - bend) / (0.5 * n["width"])
        body = 1.0 - smooth(0.80, 1.0, np.abs(across))
        # Grooves of the tread stay clean; the shoulders press hardest.
        groove = sum(np.exp(-(((across - g) / 0.07) ** 2)) for g in (-0.52, -0.16, 0.2, 0.55))
        share = np.maximum(share, gain * body * (0.68 + 0.32 * np.abs(across)) * (1.0 - 0.75 * np.clip(groove, 0.0, 1.0)))
    fade = smooth(0.0, 0.55, r + 0.06 * long) * (1.0 - 0.6 * smooth(0.86, 1.0, r)) * smooth(0.0, 0.02, 1.0 - r)
    hop = 1.0 - 0.4 * (1.0 - smooth(0.2, 0.8, r)) * (0.5 + 0.5 * np.sin(2 * np.pi * 14 * r))
    share = share * fade * hop * np.clip(0.85 + 0.18 * long + 0.16 * fine, 0.0, 1.2)
    image = ramp(c["body"], np.clip(0.5 + 0.2 * fine, 0.0, 1.0))
    return Layers(image, np.zeros_like(share), 0.8, 0.0, np.clip(n["strength"] * share, 0.0, 1.0))


def stripes(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw stripes of warning, aslant, their paint scuffed and chipped."""
    r, k = _unit(canvas)
    fine = canvas.noise("fine", 1.0, 16.0)
    wave = np.mod((r + k) * round(n["stripes"]) + 0.01 * canvas.noise("hand", 2.0, 3.0, 40.0), 1.0)
    soft = 2.0 * round(n["stripes"]) / canvas.size
    dark = smooth(0.5 - soft, 0.5, wave) * (1.0 - smooth(1.0 - soft, 1.0, wave))
    image = over(_plain(canvas, c["bright"][0]), color(c["dark"][0]), dark)
    scuff = smooth(0.4, 2.0, canvas.noise("scuff", 1.6, 3.0, 200.0, (1.0, 5.0)))
    image = over(image, image * 0.6 + color(c["dust"][0]) * 0.35, 0.65 * scuff * canvas.wear)
    image = shaded(
        image, np.clip(1.0 + 0.05 * fine - 0.3 * canvas.wear * smooth(0.2, 1.8, canvas.noise("dirt", 2.4, 2.0, 90.0)), 0.2, 1.3)
    )
    chip = canvas.rank(canvas.noise("chips", 1.9, 3.0) + 0.3 * fine)
    kept = 1.0 - smooth(1.0 - n["lost"] * canvas.wear - 0.004, 1.0 - n["lost"] * canvas.wear + 0.004, chip)
    return Layers(image, 0.0004 * kept + 0.00005 * fine, np.clip(0.45 + 0.35 * canvas.wear * scuff, 0, 1), 0.0, kept)
