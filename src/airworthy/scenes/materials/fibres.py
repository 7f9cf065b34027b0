"""What has grown or was woven: bark, leaves, boards, cloth."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.materials.canvas import Canvas, color, over, ramp, shaded, smooth
from airworthy.scenes.materials.layers import Colors, Layers, Numbers


def furrowed(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw bark in ridges or plates between deep furrows, flaking, with lichen."""
    bend = (
        1.5 * n["bend"] * canvas.noise("bend", 2.6, 2.0, 60.0, (2.0, 1.0)),
        n["bend"] * canvas.noise("sway", 2.3, 2.0, 90.0, (3.5, 1.0)),
    )
    cell = canvas.cells("plates", int(n["plates"] * canvas.tile**2), n["stretch"], bend)
    rng = canvas.rng("plates tones")
    wide = n["furrow"] * (1.0 + 0.35 * canvas.noise("wide", 2.2, 3.0, 60.0)).clip(0.15, 3.0)
    ridge = smooth(0.0, 1.0, cell.border / np.maximum(wide, 1e-6))
    fibre = canvas.noise("fibre", 1.3, 6.0, 200.0, (n["fibre"], 1.0))
    fine = canvas.noise("fine", 1.2, 14.0)
    # Flakes: a slow field cut into steps, whose rims cast small shadows.
    slow = canvas.noise("flakes", 2.4, 3.0, 60.0, (1.6, 1.0)) + 0.25 * fine
    steps = n["flakes"]
    level = slow * steps
    flake = (np.floor(level) + smooth(0.80, 1.0, np.mod(level, 1.0))) / max(steps, 1e-6)
    height = n["depth"] * (
        ridge * (0.75 + 0.10 * rng.normal(0.0, 1.0, len(cell.point))[cell.index])
        + 0.10 * flake * ridge
        + 0.07 * fibre
        + 0.025 * fine
    )
    cross = smooth(1.1, 1.9, canvas.noise("cross", 1.6, 5.0, 90.0, (1.0, n["cross"]))) * ridge
    height = height - 0.22 * n["depth"] * cross
    tone = np.clip(
        0.30 + 0.42 * ridge + 0.10 * flake + 0.07 * fibre + 0.05 * fine + rng.normal(0, 0.05, len(cell.point))[cell.index], 0, 1
    )
    image = ramp(c["body"], tone)
    rim = smooth(0.80, 1.0, np.mod(level, 1.0)) * ridge
    image = over(image, color(c["fresh"][0]), 0.45 * n["fresh"] * rim)
    image = shaded(image, (1.0 - 0.45 * cross) * (0.34 + 0.66 * smooth(-0.05, 0.75, ridge)))
    lichen = (
        smooth(
            1.0 - n["lichen"] * (0.5 + canvas.wear),
            1.0 - 0.5 * n["lichen"],
            canvas.rank(canvas.noise("lichen", 2.2, 2.0) + 0.35 * fine),
        )
        * ridge
    )
    image = over(
        image, shaded(color(c["lichen"][0]) + np.zeros((canvas.size, canvas.size, 3)), 1.0 + 0.15 * fine), 0.7 * lichen
    )
    return Layers(image, height, 0.94)


def papery(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw birch bark: white paper in level strips that peel, dark pores in dashes, black scars."""
    fine, cloud = canvas.noise("fine", 1.0, 20.0, 1e9, (1.0, 3.0)), canvas.noise("cloud", 2.4, 1.0, 60.0, (1.0, 2.5))
    band = canvas.noise("band", 1.8, 3.0, 200.0, (1.0, 14.0))
    image = ramp(c["body"], np.clip(0.60 + 0.20 * cloud + 0.10 * band + 0.05 * fine, 0.0, 1.0))
    height = 0.0006 * band + 0.0003 * fine + 0.002 * canvas.noise("bow", 3.2, 1.5, 8.0)
    rng = canvas.rng("pores")
    count = int(n["pores"] * canvas.tile**2)
    center, half = rng.random((count, 2)) * canvas.tile, n["dash"] * rng.uniform(0.15, 1.0, count) ** 1.6
    share = np.linspace(-1.0, 1.0, 60)
    points = np.stack(
        [
            (center[:, :1] + 0.0012 * rng.normal(0, 1, (count, 1)) * share).ravel(),
            (center[:, 1:] + half[:, None] * share).ravel(),
        ],
        -1,
    )
    thick = (np.sqrt(half / n["dash"])[:, None] * 0.0034 * np.sqrt(1.02 - share**2)).ravel()
    dash = canvas.traced(points, thick, thick, 0.02)
    pore = np.where(
        dash.width > 0.0, 1.0 - smooth(0.55, 1.15, (dash.distance + 0.0004 * fine) / np.maximum(dash.width, 1e-6)), 0.0
    )
    image = over(image, color(c["pore"][0]), 0.85 * pore)
    height = height + 0.0012 * pore
    # Strips of paper end in a curled, torn rim with the tan inner bark below.
    tear = canvas.warped(
        canvas.noise("tear", 2.2, 2.0, 60.0, (1.0, 7.0)), 0.003 * canvas.noise("rag", 2.2, 4.0, 1e9, (1.0, 2.0)), 0.0
    )
    peel = canvas.rank(tear)
    bare = smooth(1.0 - n["peel"] * (0.5 + canvas.wear), 1.0 - n["peel"] * (0.5 + canvas.wear) + 0.012, peel)
    image = over(
        image,
        shaded(color(c["inner"][0]) + np.zeros((canvas.size, canvas.size, 3)), 1.0 + 0.12 * band + 0.1 * fine),
        0.9 * bare,
    )
    lip = np.exp(-(((peel - (1.0 - n["peel"] * (0.5 + canvas.wear))) / 0.012) ** 2))
    image = shaded(image, 1.0 - 0.35 * lip)
    height = height - 0.0016 * bare + 0.0014 * lip
    # Scars where branches were: black, wide triangles that droop to both sides, rough inside.
    scars = int(max(1, round(n["scars"] * canvas.tile**2)))
    dark = np.zeros_like(cloud)
    for r, k, s in zip(
        rng.random(scars) * canvas.tile, rng.random(scars) * canvas.tile, rng.uniform(0.5, 1.0, scars) * n["scar"], strict=True
    ):
        dr = np.mod(canvas.row - r + 0.5 * canvas.tile, canvas.tile) - 0.5 * canvas.tile
        dk = np.mod(canvas.column - k + 0.5 * canvas.tile, canvas.tile) - 0.5 * canvas.tile
        drooped = dr - 0.35 * np.abs(dk)
        reach = 1.0 - np.abs(dk) / s - np.abs(drooped) / (0.24 * s)
        dark = np.maximum(dark, smooth(-0.05, 0.2, reach + 0.10 * canvas.noise("scar rag", 1.6, 8.0)))
    rough = canvas.noise("scar", 1.4, 10.0)
    image = over(image, shaded(color(c["scar"][0]) + np.zeros((canvas.size, canvas.size, 3)), 1.0 + 0.35 * rough), 0.96 * dark)
    height = height + 0.004 * dark + 0.0022 * dark * rough
    return Layers(image, height, 0.7 + 0.25 * np.maximum(dark, pore))


def _boards(canvas: Canvas, width: float, label: str) -> tuple[Array, Array, Array, Array]:
    """Return number, distance from the middle [m], distance along from its end [m] and gap of boards laid to the right."""
    rng, count = canvas.rng(label), round(canvas.tile / width)
    board = np.floor(canvas.row / width).astype(int) % count
    start = rng.random(count) * canvas.tile
    along = np.mod(canvas.column - start[board], canvas.tile)
    across = np.mod(canvas.row, width) - 0.5 * width
    end = np.minimum(along, canvas.tile - along)
    return board, across, along, np.minimum(0.5 * width - np.abs(across), end)


def boards(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw boards: rings cut lengthwise that part around knots, gaps, nails, weathered to grey by wear."""
    wear, rng, width = canvas.wear, canvas.rng("boards"), n["board"]
    board, across, along, gap = _boards(canvas, width, "layout")
    count = int(board.max()) + 1
    # Where in the log it was cut: slow along, so that rings run long; periodic with the tile.
    drift = (
        canvas.noise("drift", 3.2, 1.0, 8.0, (0.02, 6.0)) * 0.010
        + canvas.noise("drift fine", 2.4, 2.0, 60.0, (0.6, 16.0)) * 0.0016
    )
    depth = (
        across
        + rng.uniform(-0.4, 0.4, count)[board] * width
        + rng.normal(0.0, 0.015, count)[board] * np.sin(2 * np.pi * along / canvas.tile)
        + drift
    )
    bowed = np.sqrt(depth**2 + (rng.uniform(0.01, 0.06, count)[board]) ** 2)
    knots = np.zeros_like(bowed)
    eye = np.zeros_like(bowed)
    for k in range(round(n["knots"] * count)):
        b, at, off, size = k % count, rng.random() * canvas.tile, rng.uniform(-0.35, 0.35) * width, rng.uniform(0.006, 0.014)
        da = np.mod(along - at + 0.5 * canvas.tile, canvas.tile) - 0.5 * canvas.tile
        d2 = (da / 3.2) ** 2 + (across - off) ** 2
        here = board == b
        knots = np.where(
            here,
            knots
            + 1.7
            * size
            * np.exp(-d2 / (2.0 * size) ** 2)
            * np.sign(across - off + 1e-9)
            * np.clip(np.abs(across - off) / size, 0, 1),
            knots,
        )
        near = np.sqrt((da / 1.35) ** 2 + (across - off) ** 2) + 0.0009 * canvas.noise("knot rag", 1.6, 8.0)
        eye = np.where(here, np.maximum(eye, 1.0 - smooth(0.75 * size, 1.05 * size, near)), eye)
    rings = np.mod((bowed + knots + eye * 0.004 * canvas.noise("eye", 2.0, 6.0)) / n["ring"] + rng.random(count)[board], 1.0)
    # Early wood is pale and soft; late wood narrow, dark, and stands out once it has weathered.
    late = smooth(0.35, 0.88, rings) * (1.0 - smooth(0.94, 1.0, rings))
    vessel = canvas.noise("vessel", 0.9, 16.0, 1e9, (1.0, 26.0))
    tone = np.clip(rng.uniform(0.15, 0.55, count)[board] + 0.42 * late + 0.06 * vessel, 0.0, 1.0)
    image = ramp(c["body"], tone)
    image = over(image, color(c["knot"][0]), 0.85 * eye)
    grey = np.clip(
        wear * (0.75 + 0.35 * canvas.noise("grey", 2.4, 1.5, 60.0, (1.0, 3.0)) + 0.2 * rng.normal(0, 1, count)[board]), 0.0, 1.0
    )
    image = over(image, ramp(c["grey"], np.clip(0.75 - 0.5 * late + 0.08 * vessel, 0.0, 1.0)), 0.85 * grey)
    split = smooth(1.9, 2.4, canvas.noise("split", 1.8, 3.0, 120.0, (0.6, 40.0))) * wear
    image = shaded(image, 1.0 - 0.65 * split)
    body = smooth(0.5 * n["gap"], 0.5 * n["gap"] + 0.0022, gap + 0.0004 * vessel)
    image = shaded(image, 0.10 + 0.90 * body)
    image = shaded(image, 1.0 - 0.25 * np.exp(-(((gap - 0.003) / 0.006) ** 2)))
    stain = canvas.noise("stain", 2.6, 1.5, 40.0)
    image = shaded(image, np.clip(1.0 + 0.07 * stain + rng.normal(0.0, 0.06, count)[board], 0.4, 1.6))
    cup = rng.normal(0.0, 1.0, count)[board] * (across / width) ** 2 * 0.004
    height = (
        body * (0.012 + cup + rng.normal(0.0, 0.0006, count)[board] + (0.0002 + 0.0005 * wear) * late + 0.00010 * vessel)
        - 0.0016 * split
    )
    nail = np.full_like(body, 1.0)
    for at in np.arange(n["nails"]) / max(n["nails"], 1.0) * canvas.tile:
        d = np.mod(canvas.column - at + 0.5 * canvas.tile, canvas.tile) - 0.5 * canvas.tile
        nail = np.minimum(nail, np.hypot(d, np.abs(across) - 0.28 * width))
    head = 1.0 - smooth(0.0038, 0.0052, nail)
    rust = np.exp(-((nail / 0.010) ** 2)) * wear
    image = over(over(image, image * color((0.45, 0.36, 0.32)), 0.8 * rust), color(c["nail"][0]), head * (gap > 0.006))
    return Layers(image, height, np.clip(0.62 + 0.25 * grey - 0.08 * late + 0.2 * (1 - body), 0.0, 1.0))


def twill(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw woven cloth: threads over and under one another, uneven, faded along folds."""
    threads = round(canvas.tile / n["thread"])
    pitch = canvas.tile / threads
    uneven = (
        0.16 * pitch * canvas.noise("uneven", 1.8, 3.0, 60.0, (8.0, 1.0)),
        0.16 * pitch * canvas.noise("weft", 1.8, 3.0, 60.0, (1.0, 8.0)),
    )
    x, y = (canvas.column + uneven[0]) / pitch, (canvas.row + uneven[1]) / pitch
    warp, weft = np.floor(x).astype(int), np.floor(y).astype(int)
    # Over `float` threads, under one, and the next row a thread further: the diagonal rib of twill; plain weave is 1.
    turn = int(n["float"]) + 1
    on_top = np.mod(warp + weft, turn) != 0
    dx, dy = np.mod(x, 1.0) - 0.5, np.mod(y, 1.0) - 0.5
    place = np.mod(y + warp, turn) - 0.5 * (turn + 1)
    warp_z = np.cos(np.pi * dx) * (0.72 + 0.28 * np.cos(2.0 * np.pi * place / turn))
    weft_z = np.cos(np.pi * dy) * (0.72 + 0.28 * np.cos(np.pi * dx))
    fuzz = canvas.noise("fuzz", 0.9, 40.0)
    height = n["thick"] * np.where(on_top, warp_z, 0.8 * weft_z) + 0.05 * n["thick"] * fuzz
    rng = canvas.rng("threads")
    dyed = np.clip(1.0 + rng.normal(0.0, 0.09, threads)[warp % threads], 0.6, 1.5)
    spun = 1.0 + 0.16 * canvas.noise("spun", 1.0, 10.0, 1e9, (9.0, 1.0))
    tone = np.where(
        on_top[..., None],
        shaded(color(c["warp"][0]) + np.zeros((*x.shape, 3)), dyed * spun),
        shaded(color(c["weft"][0]) + np.zeros((*x.shape, 3)), 1.0 + 0.08 * fuzz),
    )
    fold = canvas.noise("fold", 3.2, 1.0, 10.0, (1.0, 1.6))
    faded = smooth(0.2, 1.6, fold) * canvas.wear
    tone = over(tone, tone * 0.4 + 0.6 * color(c["weft"][0]) * 0.7, 0.55 * faded)
    tone = shaded(tone, 0.72 + 0.28 * np.clip(height / n["thick"], 0, 1) + 0.06 * fuzz)
    stain = smooth(0.9, 1.0, canvas.rank(canvas.noise("stain", 2.6, 2.0, 60.0))) * canvas.wear
    return Layers(shaded(tone, 1.0 - 0.3 * stain), height + n["fold"] * fold, 0.95)


def leaf(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw one leaf that fills the square, its stalk below: blade cut out by alpha, ribs, side ribs, a net of veins."""
    u = 2.0 * canvas.row / canvas.tile - 1.0  # -1 at the tip
    v = 2.0 * canvas.column / canvas.tile - 1.0
    fine, cloud = canvas.noise("fine", 1.2, 12.0), canvas.noise("cloud", 2.4, 1.0, 40.0)
    v = v - 0.05 * np.sin(2.0 * u)
    t = np.clip((u + 0.97) / 1.72, 0.0, 1.0)  # 0 at the tip, 1 where the stalk begins
    form = n["broad"] * np.sqrt(np.clip(t, 0, 1)) ** n["tip"] * np.sqrt(np.clip(1.0 - t, 0.0, 1.0)) * 1.9
    slant = (u + 0.55 * np.abs(v)) * n["ribs"]
    tooth = np.mod(slant * 3.0, 1.0)
    lobe = np.sqrt(0.5 + 0.5 * np.cos(2.0 * np.pi * slant + 0.6))
    form = form * (1.0 - n["teeth"] * (1.0 - tooth)) * (1.0 - n["lobes"] * lobe) * smooth(-0.02, 0.10, t) ** 0.5
    stalk = (np.abs(v + 0.02 * np.sin(6 * u)) < 0.016 + 0.012 * smooth(0.9, 1.0, u)) & (u > 0.7) & (u < 0.985)
    edge = form - np.abs(v)
    blade = (edge > 0.0) & (t > 0.0) & (t < 1.0)
    side = np.abs(np.mod(slant + 0.5, 1.0) - 0.5) / n["ribs"]
    rib = np.exp(-((np.abs(v) / (0.010 + 0.014 * t)) ** 2))
    branch = np.exp(-((side / 0.011) ** 2)) * smooth(0.0, 0.10, edge)
    net = canvas.cells("net", 900, 1.0, (0.02 * canvas.tile * fine * 0.3, 0.02 * canvas.tile * cloud * 0.3))
    vein = np.exp(-((net.border / (0.006 * canvas.tile)) ** 2))
    image = ramp(c["body"], np.clip(0.5 + 0.16 * cloud + 0.06 * fine + 0.12 * smooth(0.0, 0.3, edge), 0.0, 1.0))
    image = over(image, color(c["rib"][0]), np.clip(0.75 * rib + 0.5 * branch + 0.13 * vein, 0.0, 1.0))
    spots = smooth(
        1.6 - 0.7 * canvas.wear,
        2.2,
        canvas.noise("spots", 1.6, 5.0, 60.0) - 1.5 * np.clip(edge - 0.05, 0.0, 0.5) + 0.9 * canvas.wear - 0.4,
    )
    image = over(image, color(c["spot"][0]), 0.8 * spots)
    image = np.where(stalk[..., None], color(c["rib"][0]), image)
    puff = np.sqrt(np.clip(side * n["ribs"] * 2.0, 0.0, 1.0))
    height = n["relief"] * (0.6 * puff * smooth(0.0, 0.15, edge) - 0.7 * rib - 0.08 * vein) * blade
    alpha = smooth(0.0, 0.012, edge) * (t > 0.0) * (t < 1.0)
    return Layers(image, height, 0.45 + 0.15 * spots, 0.0, np.where(stalk, 1.0, alpha))
