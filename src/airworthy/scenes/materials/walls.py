"""Walls: cast concrete, brick in mortar, plaster, glazed tile, window glass."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.materials.canvas import Canvas, color, over, ramp, shaded, smooth
from airworthy.scenes.materials.layers import Colors, Layers, Numbers


def _pores(canvas: Canvas, label: str, count: int, radius: tuple[float, float]) -> Array:
    """Return round holes, 1 in their middle: many small, few large."""
    rng = canvas.rng(label)
    center, size = rng.random((count, 2)) * canvas.tile, radius[0] + (radius[1] - radius[0]) * rng.random(count) ** 3
    trace = canvas.traced(center, size, size, 2.0 * radius[1])
    return np.where(trace.width > 0.0, 1.0 - smooth(0.6, 1.0, trace.distance / np.maximum(trace.width, 1e-9)), 0.0)


def _to_line(coordinate: Array, spacing: float) -> Array:
    """Return the distance to the nearest of lines at whole multiples of a spacing."""
    phase = np.mod(coordinate + 0.5 * spacing, spacing) - 0.5 * spacing
    return np.abs(phase)


def cast(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw concrete as it comes out of the form-work: panels, joints, tie holes, pores, stains, cracks."""
    wear = canvas.wear
    cloud, fine = canvas.noise("cloud", 2.6, 2.5, 60.0), canvas.noise("fine", 1.2, 20.0)
    panel = np.floor(canvas.column / n["panel_width"]).astype(int)
    tone = canvas.rng("tone").normal(0.0, 0.05, 64)[panel % 64]
    image = ramp(c["body"], np.clip(0.5 + 0.17 * cloud + 0.05 * fine + tone, 0.0, 1.0))
    height = 0.0006 * canvas.noise("bow", 3.0, 2.0, 12.0) + 0.00012 * fine + 0.0006 * tone
    joint = np.minimum(_to_line(canvas.column, n["panel_width"]), _to_line(canvas.row, n["panel_height"]))
    fin = joint + 0.0012 * canvas.noise("fin", 1.5, 8.0)
    groove = 1.0 - smooth(0.5 * n["joint"], 1.6 * n["joint"], fin)
    # Paste has bled out of the joint: a paler rim on both sides.
    bleed = np.exp(-((joint / 0.03) ** 2)) * smooth(-0.8, 1.0, cloud)
    image = shaded(image, 1.0 + 0.12 * bleed - 0.45 * groove)
    height = height - n["joint_depth"] * groove
    if n["holes"] > 0.0:
        down, right = n["panel_height"] / n["holes"], n["panel_width"] / n["holes"]
        tie = np.hypot(_to_line(canvas.row - 0.5 * down, down), _to_line(canvas.column - 0.5 * right, right))
        hole = 1.0 - smooth(0.012, 0.016, tie)
        image = shaded(image, (1.0 - 0.65 * hole) * (1.0 - 0.22 * np.exp(-(((tie - 0.019) / 0.004) ** 2))))
        height = height - 0.016 * hole
        weeping = canvas.streaks("weep", hole * (canvas.rank(canvas.noise("weeping", 2.0, 2, 8)) > 1.0 - 0.7 * wear), 0.5)
        image = over(
            image,
            image * color((0.62, 0.58, 0.52)),
            0.55 * weeping * smooth(-1.5, 1.0, canvas.noise("thin", 1.5, 8.0, 90.0, (5.0, 1.0))),
        )
    pore = _pores(canvas, "pores", int(n["pores"] * canvas.tile**2), (0.0015, 0.007))
    image, height = shaded(image, 1.0 - 0.5 * pore), height - 0.003 * pore
    # Water that runs from the joints leaves dirt, in streaks.
    start = (_to_line(canvas.row, n["panel_height"]) < canvas.pixel) * smooth(
        0.1, 1.6, canvas.noise("drip", 0.6, 3.0, 60.0, (40.0, 1.0))
    )
    dirt = canvas.streaks("dirt", start, 0.55) * n["drips"]
    blotch = n["blotch"] * smooth(0.5, 1.0, canvas.rank(canvas.noise("blotch", 2.7, 3.0, 80.0)) + 0.06 * fine)
    image = over(image, image * color(c["dirt"][0]), np.clip(1.1 * wear * dirt + 0.8 * wear * blotch, 0.0, 0.9))
    crack = canvas.cracks("cracks", round(n["cracks"] * wear * canvas.tile), 1.2, 0.0022, 0.02)
    line = np.where(crack.width > 0.0, 1.0 - smooth(0.3, 1.0, crack.distance / np.maximum(1.8 * crack.width, 1e-6)), 0.0)
    halo = np.exp(-((crack.distance / 0.012) ** 2)) * (crack.width > 0)
    image = shaded(image, (1.0 - 0.75 * line) * (1.0 - 0.15 * halo))
    height = height - 0.006 * line
    return Layers(image, height, 0.82 + 0.05 * fine.clip(-2, 2) + 0.08 * groove)


def masonry(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw bricks in running bond, their mortar set back."""
    wear, rng = canvas.wear, canvas.rng("bricks")
    course_height, brick_length, mortar = n["course"], n["length"], n["mortar"]
    courses, stones = round(canvas.tile / course_height), round(canvas.tile / brick_length)
    sway = 0.0012 * canvas.noise("sway", 3.0, 2.0, 20.0), 0.0012 * canvas.noise("swing", 3.0, 2.0, 20.0)
    row, column = canvas.row + sway[0], canvas.column + sway[1]
    course = np.floor(row / course_height).astype(int) % courses
    shifted = column + 0.5 * brick_length * (course % 2) + rng.normal(0.0, 0.0018, courses)[course]
    stone = np.floor(shifted / brick_length).astype(int) % stones
    number = course * stones + stone
    # Each brick has its own size, turn and tone.
    count = courses * stones
    local_r = np.mod(row, course_height) - 0.5 * course_height + rng.normal(0.0, 0.0009, count)[number]
    local_c = np.mod(shifted, brick_length) - 0.5 * brick_length
    local_r = local_r + rng.normal(0.0, 0.006, count)[number] * local_c
    half_r = 0.5 * (course_height - mortar) * rng.uniform(0.97, 1.02, count)[number]
    half_c = 0.5 * (brick_length - mortar) * rng.uniform(0.985, 1.01, count)[number]
    rough, grit = canvas.noise("edge", 1.6, 10.0), canvas.noise("grit", 0.7, 24.0)
    q_r, q_c = np.abs(local_r) - half_r + 0.004, np.abs(local_c) - half_c + 0.004
    inside = -(np.hypot(np.maximum(q_r, 0), np.maximum(q_c, 0)) + np.minimum(np.maximum(q_r, q_c), 0.0) - 0.004)
    chip = 0.0035 * wear * np.maximum(canvas.noise("chips", 2.0, 8.0, 70.0) - 0.7, 0.0) * 2.0
    edge = inside + 0.0011 * rough - chip
    body = smooth(-0.0012, 0.0022, edge)
    pick = rng.random(count)
    tone = ramp(c["brick"], pick[number] * 0.999)
    tone = shaded(
        tone, np.clip(rng.normal(1.0, 0.11, count)[number] + 0.15 * canvas.noise("fire", 2.3, 5.0) + 0.03 * grit, 0.35, 2.0)
    )
    # Some were burnt too hot, towards one end.
    hot = (rng.random(count) < n["burnt"])[number] * smooth(-0.8, 0.9, canvas.noise("hot", 2.6, 5.0, 60.0))
    tone = over(tone, color(c["burnt"][0]), 0.75 * hot)
    joint = shaded(
        color(c["mortar"][0]) + np.zeros((canvas.size, canvas.size, 3)),
        1.0 + 0.10 * canvas.noise("sand", 0.4, 20.0) + 0.07 * canvas.noise("lime", 2.4, 3.0, 60.0),
    )
    image = over(joint, tone, body)
    pits = smooth(1.5, 2.3, canvas.noise("pits", 1.0, 30.0)) * body
    image = shaded(image, 1.0 - 0.35 * pits)
    # The side of the joint lies in shade and dirt.
    image = shaded(image, 1.0 - (0.18 + 0.25 * wear) * np.exp(-((edge / 0.003) ** 2)))
    soot = smooth(0.55, 1.0, canvas.rank(canvas.noise("soot", 2.5, 4.0, 60.0, (1.6, 1.0)))) * wear
    image = over(image, image * color(c["dirt"][0]), 0.75 * soot)
    salt = smooth(0.80, 0.99, canvas.rank(canvas.noise("salt", 2.2, 5.0) + 0.25 * grit)) * wear
    image = over(image, color(c["salt"][0]), 0.5 * salt)
    recess = n["recess"] * (1.0 + 0.15 * canvas.noise("trowel", 2.0, 6.0, 90.0))
    lean = rng.normal(0.0, 0.012, count)[number] * local_r + rng.normal(0.0, 0.005, count)[number] * local_c
    proud = rng.normal(0.0, 0.0008, count)[number] + lean + 0.00035 * rough + 0.00022 * grit - 0.0016 * pits - 2.0 * chip * 0.3
    height = body * proud - (1.0 - body) * (recess + 0.0005 * canvas.noise("sand", 0.4, 20.0))
    return Layers(image, height, np.clip(over(np.full_like(body, 0.95), 0.86 + 0.04 * grit, body), 0.0, 1.0))


def plaster(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw trowelled plaster: arcs of the trowel, sand, damp, hairlines, and places where it has come off the bricks."""
    wear = canvas.wear
    bend = 0.06 * canvas.noise("bend", 3.2, 2.0, 10.0), 0.06 * canvas.noise("turn", 3.2, 2.0, 10.0)
    arcs = canvas.warped(canvas.noise("arcs", 1.6, 6.0, 120.0, (1.0, 6.0)), *bend)
    more = canvas.warped(canvas.noise("cross", 1.6, 6.0, 120.0, (5.0, 1.0)), bend[1], bend[0])
    patch = smooth(-0.5, 0.5, canvas.noise("patch", 3.0, 2.0, 12.0))
    sand = canvas.noise("sand", 0.6, 40.0)
    float_marks = patch * arcs + (1.0 - patch) * more
    height = n["trowel"] * float_marks + n["sand"] * sand + 0.0012 * canvas.noise("bow", 3.4, 1.5, 8.0)
    cloud = canvas.noise("cloud", 2.6, 2.5, 90.0)
    image = ramp(c["body"], 0.5 + 0.14 * cloud + 0.05 * float_marks + 0.03 * sand)
    damp = smooth(0.72, 0.98, canvas.rank(canvas.noise("damp", 2.8, 1.5, 60.0, (1.8, 1.0)) + 0.05 * sand)) * wear
    image = over(image, image * color(c["damp"][0]), 0.8 * damp)
    # The edge of a damp place carries the dirt that the water left.
    image = shaded(image, 1.0 - 0.22 * wear * np.exp(-(((damp - 0.25 * wear) / 0.10) ** 2)) * (damp > 0.01))
    crack = canvas.cracks("cracks", round(n["cracks"] * wear), 0.9, 0.0013, 0.01)
    line = np.where(crack.width > 0.0, 1.0 - smooth(0.4, 1.0, crack.distance / np.maximum(2.2 * crack.width, 1e-6)), 0.0)
    image, height = shaded(image, 1.0 - 0.6 * line), height - 0.002 * line
    lost = max(0.0, wear - 0.35) * n["lost"]
    if lost > 0.0:
        bare = canvas.rank(canvas.noise("bare", 3.3, 1.0, 200.0) + 0.010 * sand)
        gone = smooth(1.0 - lost - 0.006, 1.0 - lost + 0.006, bare)
        wall = masonry(Canvas(canvas.name, canvas.seed, canvas.size, canvas.tile, 0.8), n, c)
        under = np.ptp(wall.height) * 0.5
        image = over(image, wall.albedo, gone)
        height = over(height, wall.height - 0.010 - under, gone)
        # Broken edges are of fresh, pale plaster.
        image = over(image, color(c["break"][0]), 0.8 * np.exp(-(((bare - (1.0 - lost)) / 0.008) ** 2)))
    return Layers(image, height, 0.93)


def glazed(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw glazed tiles in grout: domed, each of its own shade and turn, some cracked, the grout dirty."""
    wear, rng, side = canvas.wear, canvas.rng("tiles"), n["side"]
    per = round(canvas.tile / side)
    r, k = np.floor(canvas.row / side).astype(int) % per, np.floor(canvas.column / side).astype(int) % per
    number, count = r * per + k, per * per
    local_r, local_c = np.mod(canvas.row, side) - 0.5 * side, np.mod(canvas.column, side) - 0.5 * side
    half = 0.5 * (side - n["grout"])
    inside = half - np.maximum(np.abs(local_r), np.abs(local_c))
    corner = 0.006 - np.hypot(np.maximum(np.abs(local_r) - half + 0.006, 0), np.maximum(np.abs(local_c) - half + 0.006, 0))
    edge = np.where(corner < 0.006, np.minimum(inside, corner), inside)
    body = smooth(-0.0006, 0.0008, edge)
    tone = ramp(c["glaze"], rng.random(count)[number])
    pool = canvas.noise("pool", 2.4, 4.0, 120.0)
    tone = shaded(tone, np.clip(1.0 + rng.normal(0.0, 0.05, count)[number] + 0.04 * pool, 0.4, 1.8))
    # Glaze runs thin over the rim, and the body shows through.
    tone = over(tone, color(c["rim"][0]), 0.45 * np.exp(-((edge / 0.0022) ** 2)))
    dirt = smooth(-0.6, 1.2, canvas.noise("dirt", 2.0, 3.0, 120.0))
    grout = shaded(
        color(c["grout"][0]) + np.zeros((canvas.size, canvas.size, 3)),
        1.0 + 0.08 * canvas.noise("sand", 0.5, 30.0) - 0.55 * wear * dirt,
    )
    image = over(grout, tone, body)
    broken = rng.random(count)[number] < n["broken"] * wear
    crack = canvas.cracks("cracks", 14, 0.35, 0.0007, 0.006)
    line = (
        np.where((crack.width > 0) & broken, 1.0 - smooth(0.4, 1.0, crack.distance / np.maximum(2.5 * crack.width, 1e-6)), 0.0)
        * body
    )
    image = shaded(image, 1.0 - 0.7 * line)
    film = smooth(0.75, 1.0, canvas.rank(canvas.noise("film", 2.6, 2.0, 60.0))) * wear
    image = over(image, image * color((0.72, 0.68, 0.60)), 0.6 * film)
    lean = rng.normal(0.0, 0.006, count)[number] * local_r + rng.normal(0.0, 0.006, count)[number] * local_c
    dome = 0.0011 * np.sqrt(np.clip(edge / 0.010, 0.0, 1.0)) + 0.00006 * pool + lean
    height = over(np.full_like(body, -n["depth"]) + 0.0002 * canvas.noise("sand", 0.5, 30.0), dome, body)
    rough = over(np.full_like(body, 0.9), np.clip(n["gloss"] + 0.5 * film + 0.2 * line, 0.0, 1.0), body)
    return Layers(image, height, rough)


def glass(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw window glass: dark, smooth, a little wavy, with the dust and dried drops of its wear."""
    wave = canvas.noise("wave", 3.6, 1.0, 10.0, (1.0, 2.0))
    dust = canvas.noise("dust", 1.6, 2.0)
    drops = _pores(canvas, "drops", int(60 * canvas.tile**2), (0.002, 0.006))
    runs = canvas.streaks("runs", (canvas.rank(canvas.noise("run", 0.3, 8.0)) > 0.9992) * 1.0, 0.12, 0.002)
    dirty = np.clip(canvas.wear * (0.25 * smooth(0.0, 2.4, dust) + 0.30 * drops + 0.35 * runs), 0.0, 1.0)
    image = over(color(c["body"][0]) + np.zeros((canvas.size, canvas.size, 3)), color(c["dust"][0]), dirty)
    return Layers(image, n["wave"] * wave, np.clip(n["gloss"] + 0.5 * dirty, 0.0, 1.0))
