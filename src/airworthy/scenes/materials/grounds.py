"""Grounds: asphalt and its markings, grass, gravel, soil, fallen leaves, snow."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.materials.canvas import Canvas, color, over, ramp, shaded, smooth
from airworthy.scenes.materials.layers import Colors, Layers, Numbers
from airworthy.scenes.materials.strewn import Strewn, blades, leaves, stones


def _flat(canvas: Canvas, rgb: list[float]) -> Array:
    return color(rgb) + np.zeros((canvas.size, canvas.size, 3))


def asphalt(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw asphalt: stones in binder, tracks polished by wheels, cracks, sealed cracks, oil, and a worn line of paint."""
    wear, rng = canvas.wear, canvas.rng("stones")
    cell = canvas.cells("stones", int((canvas.tile / n["stone"]) ** 2))
    bare = rng.random(len(cell.point))[cell.index]
    dome = np.clip(1.0 - cell.nearest / (0.62 * n["stone"]), 0.0, 1.0)
    # Traffic wears the binder off the tops of some stones.
    shown = smooth(0.0, 0.5, dome) * (bare < 0.25 + 0.5 * wear)
    grain, cloud = canvas.noise("grain", 0.3, 40.0), canvas.noise("cloud", 2.1, 1.5)
    stone = ramp(c["stone"], rng.random(len(cell.point))[cell.index])
    image = over(shaded(_flat(canvas, c["binder"][0]), 1.0 + 0.10 * grain), stone, 0.5 * shown)
    track = 0.5 - 0.5 * np.cos(4.0 * np.pi * canvas.column / canvas.tile)
    image = shaded(
        image,
        np.clip(
            1.0 + 0.15 * cloud + 0.10 * wear * track * (1 + 0.3 * canvas.noise("track", 2.0, 2.0, 40.0, (4.0, 1.0))), 0.3, 2.0
        ),
    )
    oil = smooth(0.86, 1.0, canvas.rank(canvas.noise("oil", 2.7, 2.0, 90.0))) * wear
    image = shaded(image, 1.0 - 0.45 * oil)
    height = 0.0016 * dome + 0.0003 * grain + 0.002 * canvas.noise("bow", 3.2, 2.0, 10.0)
    crack = canvas.cracks("cracks", round(n["cracks"] * wear), 1.5, 0.006, 0.05)
    wide = np.maximum(crack.width * (1.0 + 0.35 * grain.clip(-2, 2)), 1e-6)
    line = np.where(crack.width > 0.0, 1.0 - smooth(0.45, 1.0, crack.distance / wide), 0.0)
    image, height = shaded(image, 1.0 - 0.7 * line), height - 0.008 * line
    rough = 0.9 + 0.0 * grain
    sealed = canvas.cracks("sealed", round(n["sealed"] * wear), 1.9, 0.022, 0.06)
    seal = np.where(
        sealed.width > 0.0, 1.0 - smooth(0.7, 1.0, (sealed.distance + 0.003 * grain) / np.maximum(0.022, 1e-6)), 0.0
    )
    image, rough = over(image, color(c["seal"][0]), 0.92 * seal), over(rough, 0.0 * grain + 0.55, seal)
    height = over(height, height * 0.3 + 0.0025, seal)
    if n["line"] > 0.0:
        middle = np.abs(canvas.column - n["line_at"] * canvas.tile)
        dash = np.mod(canvas.row + 0.5 * (canvas.tile - n["dash"]), canvas.tile)
        within = np.minimum(0.5 * n["line"] - middle, np.minimum(dash, n["dash"] - dash) if n["dash"] > 0 else 1.0)
        paint = smooth(-0.003, 0.003, within + 0.002 * grain)
        # It goes first from the tops of the stones and along cracks, and in patches.
        hold = canvas.noise("hold", 1.9, 3.0) + 0.7 * grain - 1.1 * dome
        paint = paint * smooth(wear * 2.6 - 2.9, wear * 2.6 - 2.2, -hold + 0.4) * (1.0 - 0.9 * line) * (1.0 - 0.8 * seal)
        tone = shaded(
            _flat(canvas, c["paint"][0]), 1.0 + 0.04 * cloud - 0.12 * wear * (0.5 + 0.5 * np.tanh(grain)) - 0.15 * oil
        )
        image, rough = over(image, tone, 0.95 * paint), over(rough, 0.0 * grain + 0.65, paint)
        height = height + 0.0012 * paint
    return Layers(image, height, rough)


def gravel(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw gravel: two layers of broken stones over sand."""
    sand = canvas.noise("sand", 0.8, 30.0)
    ground = 0.002 * sand + 0.006 * canvas.noise("bow", 3.0, 2.0, 10.0)
    area = canvas.tile**2
    low = stones(
        canvas, "low", int(n["count"] * area), (n["small"], 0.7 * n["large"]), n["flatness"], int(n["facets"]), 2.0, ground
    )
    top = stones(
        canvas,
        "top",
        int(0.8 * n["count"] * area),
        (n["small"], n["large"]),
        n["flatness"],
        int(n["facets"]),
        n["steep"],
        ground + n["small"],
    )
    image, height = _laid(
        canvas, shaded(_flat(canvas, c["sand"][0]), 1.0 + 0.15 * sand), ground, low, c["stone"], "low", n["vary"]
    )
    image, height = _laid(canvas, image, height, top, c["stone"], "top", n["vary"])
    grain = canvas.noise("grain", 1.0, 30.0)
    image = shaded(image, (1.0 + 0.06 * grain.clip(-2.5, 2.5)) * np.clip(1.0 + 0.14 * canvas.noise("wash", 2.2, 2.0), 0.4, 1.8))
    # Dust lies where water and wind leave it: low.
    image = over(image, color(c["sand"][0]), 0.35 * (1.0 - canvas.rank(height)) ** 2)
    return Layers(image, height + 0.0002 * grain, 0.88)


def _laid(
    canvas: Canvas, image: Array, height: Array, things: Strewn, colors: list[list[float]], label: str, vary: float
) -> tuple[Array, Array]:
    """Return image and height with stones laid on: each of one colour, some with a vein."""
    rng = canvas.rng(f"{label} colors")
    count = int(things.thing.max()) + 1
    tone = ramp(colors, rng.random(count)[things.thing])
    level = np.clip(rng.normal(1.0, vary, count), 0.35, 2.2)[things.thing]
    vein = np.abs(things.along + 0.8 * things.across + rng.normal(0, 0.5, count)[things.thing]) < 0.07
    veined = vein & (rng.random(count) < 0.06)[things.thing]
    tone = shaded(tone, level * np.where(veined, 1.7, 1.0))
    above = things.there & (things.height > height)
    return np.where(above[..., None], tone, image), np.where(above, things.height, height)


def soil(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw soil: crumbs of every size over loam, stones, straws and drying cracks."""
    rough, fine = canvas.noise("rough", 2.2, 2.0), canvas.noise("fine", 0.8, 30.0)
    ground = 0.006 * rough + 0.0012 * fine
    area = canvas.tile**2
    crumbs = stones(canvas, "crumbs", int(n["crumbs"] * area), (0.002, n["largest"]), 0.6, 3, 4.5, ground)
    pebbles = stones(canvas, "pebbles", int(n["pebbles"] * area), (0.004, 0.016), 0.5, 4, 2.5, ground)
    wet = smooth(-1.2, 1.6, canvas.noise("wet", 2.6, 1.0, 40.0))
    base = ramp(c["body"], np.clip(0.30 + 0.45 * wet + 0.07 * rough + 0.10 * fine, 0.0, 1.0))
    rng = canvas.rng("crumb tones")
    level = np.clip(rng.normal(1.04, 0.11, int(crumbs.thing.max()) + 1), 0.5, 1.6)[crumbs.thing]
    above = crumbs.there & (crumbs.height > ground)
    height = np.where(above, crumbs.height, ground)
    image = np.where(above[..., None], shaded(base, level), base)
    image, height = _laid(canvas, image, height, pebbles, c["stone"], "pebbles", 0.2)
    straw = blades(canvas, "straw", int(n["straws"] * area), (0.02, 0.07), 0.0022, 0.012)
    on = straw.there & (straw.height + ground > height)
    tone = ramp(c["straw"], rng.random(int(straw.thing.max()) + 1)[straw.thing])
    image, height = np.where(on[..., None], tone, image), np.where(on, straw.height + ground, height)
    # Hollows are moist, and darker.
    image = shaded(image, (0.74 + 0.34 * canvas.rank(canvas.blurred(height, 0.004))) * (1.0 + 0.10 * fine.clip(-2, 2)))
    return Layers(image, height + 0.0005 * fine, 0.96)


def grass(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw a lawn from above: tufts of bent blades over thatch, some dry, some broad leaves of clover."""
    area = canvas.tile**2
    under = soil(Canvas(f"{canvas.name} soil", canvas.seed, canvas.size, canvas.tile, canvas.wear), n, c)
    image, height = under.albedo, under.height - 0.02
    dry_place = smooth(-0.6, 1.6, canvas.noise("dry", 2.2, 4.0, 40.0))
    clump = canvas.noise("clump", 2.2, 4.5)
    for label, count, rise in (("thatch", 0.5, 0.3), ("blades", 1.0, 1.0)):
        grown = blades(
            canvas,
            label,
            int(count * n["blades"] * area * (1.0 - 0.35 * canvas.wear)),
            (n["short"], n["long"]),
            n["width"],
            rise * n["rise"],
        )
        rng = canvas.rng(f"{label} tones")
        total = int(grown.thing.max()) + 1
        dry = rng.random(total)[grown.thing] < np.clip(
            (0.9 if label == "thatch" else 0.06) * 0.6 + 0.9 * canvas.wear * dry_place - 0.05, 0.0, 1.0
        )
        green = ramp(c["green"], np.clip(rng.normal(0.5, 0.24, total)[grown.thing] + 0.10 * clump, 0.0, 1.0))
        brown = ramp(c["dry"], rng.random(total)[grown.thing])
        tone = np.where(dry[..., None], brown, green)
        # Pale at the root and along the midrib, and darker to the tip's side that folds away.
        t = 0.5 + 0.5 * grown.along
        tone = shaded(
            tone, (0.55 + 0.65 * t) * (1.0 - 0.18 * (grown.across > 0.0)) * (1.0 + 0.15 * (np.abs(grown.across) < 0.3))
        )
        above = grown.there & (grown.height > height)
        image, height = np.where(above[..., None], tone, image), np.where(above, grown.height, height)
    deep = canvas.rank(canvas.blurred(height, 0.0015))
    image = shaded(image, (0.3 + 0.85 * deep**0.8) * np.clip(1.0 + 0.24 * clump, 0.4, 1.8))
    return Layers(image, height * 0.6, 0.85)


def litter(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw fallen leaves of a broad-leaved wood, layer on layer, with twigs, over dark mould."""
    area = canvas.tile**2
    under = soil(Canvas(f"{canvas.name} soil", canvas.seed, canvas.size, canvas.tile, canvas.wear), n, c)
    image, height = shaded(under.albedo, np.full((canvas.size, canvas.size), 0.6)), under.height
    for label, share, lift, age in (("old", 1.0, 0.012, 0.75), ("middle", 0.8, 0.022, 0.45), ("new", 0.5, 0.03, 0.0)):
        fallen = leaves(canvas, label, int(share * n["leaves"] * area), (n["short"], n["long"]), lift)
        rng = canvas.rng(f"{label} tones")
        total = int(fallen.thing.max()) + 1
        tone = ramp(c["leaf"], np.clip(rng.random(total) * (1.0 - 0.35 * age), 0, 1)[fallen.thing])
        tone = shaded(tone, np.clip(rng.normal(1.0, 0.17, total), 0.5, 1.6)[fallen.thing] * (1.0 - 0.45 * age))
        u, v = fallen.along, fallen.across
        rib = np.exp(-((v / 0.045) ** 2))
        side = np.exp(-((np.mod(u * 4.5 - 2.2 * np.abs(v) + 0.5, 1.0) - 0.5) ** 2) / 0.012) * (np.abs(v) > 0.05)
        blotch = smooth(0.9, 1.6, canvas.noise(f"{label} spots", 1.8, 12.0))
        tone = shaded(
            tone,
            (1.0 + 0.30 * rib + 0.13 * side) * (1.0 - 0.45 * blotch) * (1.0 + 0.08 * canvas.noise(f"{label} grain", 1.2, 20.0)),
        )
        # The rim of a dry leaf has browned.
        top = fallen.height + 0.002 * rib - 0.0006 * side
        above = fallen.there & (top + lift * 0.3 > height)
        image, height = np.where(above[..., None], tone, image), np.where(above, top + lift * 0.3, height)
    twigs = blades(canvas, "twigs", int(n["twigs"] * area), (0.04, 0.16), 0.0045, 0.03)
    on = twigs.there & (twigs.height + 0.012 > height)
    image = np.where(on[..., None], shaded(_flat(canvas, c["twig"][0]), 0.7 + 0.5 * (twigs.across < 0.1)), image)
    height = np.where(on, twigs.height + 0.012, height)
    image = shaded(image, 0.35 + 0.75 * canvas.rank(canvas.blurred(height, 0.003)))
    return Layers(image, height, 0.85)


def snow(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw snow that wind has laid in ripples: steep to leeward, crusted, sprinkled with specks from trees."""
    bend = 0.10 * canvas.noise("bend", 3.4, 1.5, 8.0)
    waves = round(n["waves"])
    phase = waves * (canvas.row + bend) / canvas.tile + 0.13 * canvas.noise("part", 2.6, 2.0, 20.0)
    step = np.mod(phase, 1.0)
    # A long rise and a short fall.
    ripple = np.where(step < 0.72, smooth(0.0, 0.72, step), 1.0 - smooth(0.72, 1.0, step))
    patch = smooth(-0.9, 0.9, canvas.noise("patch", 2.8, 1.5, 12.0))
    crust, grain = canvas.noise("crust", 2.2, 6.0, 160.0), canvas.noise("grain", 0.5, 50.0)
    height = n["ripple"] * ripple * patch + 0.02 * canvas.noise("drift", 3.6, 1.0, 6.0) + 0.0016 * crust + 0.0005 * grain
    image = ramp(c["body"], 0.55 + 0.10 * crust + 0.12 * grain.clip(-2, 2) + 0.10 * canvas.noise("cloud", 2.6, 1.0, 60.0))
    crystal = canvas.rank(canvas.noise("crystal", 0.0, 60.0)) > 0.9985
    image = np.where(crystal[..., None], 1.0, image)
    speck = stones(canvas, "specks", int(n["specks"] * canvas.tile**2 * (0.3 + canvas.wear)), (0.002, 0.006), 0.4, 2, 3.0)
    image = np.where(speck.there[..., None], color(c["speck"][0]), image)
    return Layers(image, height, np.where(crystal, 0.25, 0.6 + 0.05 * grain.clip(-2, 2)))
