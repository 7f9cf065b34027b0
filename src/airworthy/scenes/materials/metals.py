"""Metals: profiled sheet, brushed plates, tread plate, and paint that chips to rust."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.materials.canvas import Canvas, color, over, ramp, shaded, smooth
from airworthy.scenes.materials.layers import Colors, Layers, Numbers


def _rust(canvas: Canvas, c: Colors, label: str) -> tuple[Array, Array]:
    """Return colour and height (deviation 1) of rust: orange powder over brown crust."""
    bloom, grit = canvas.noise(f"{label} bloom", 2.0, 3.0), canvas.noise(f"{label} grit", 0.8, 24.0)
    image = ramp(c["rust"], np.clip(0.48 + 0.20 * bloom + 0.10 * grit, 0.0, 1.0))
    return shaded(image, 1.0 + 0.14 * grit), 0.6 * bloom + 0.7 * grit


def corrugated(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw galvanised sheet in waves that run down, lapped, screwed down, with rust from laps and screws."""
    waves = round(canvas.tile / n["pitch"])
    pitch = canvas.tile / waves
    dent = canvas.noise("dent", 3.4, 2.0, 16.0)
    phase = 2.0 * np.pi * canvas.column / pitch + 0.05 * dent
    wave = 0.5 * n["depth"] * np.cos(phase)
    sheet = canvas.tile / 2.0
    below = np.mod(canvas.row + 0.002 * np.cos(phase), sheet)
    lap = smooth(0.0, 0.006, below)
    spangle = canvas.cells("spangle", int(n["spangles"] * canvas.tile**2), 1.0)
    flake = canvas.rng("spangle tones").random(len(spangle.point))[spangle.index]
    # A zinc crystal's grey depends on how it happens to lie.
    cloud, fine = canvas.noise("cloud", 2.5, 1.0, 60.0, (1.5, 1.0)), canvas.noise("fine", 0.8, 30.0)
    image = ramp(c["body"], np.clip(0.5 + 0.35 * (flake - 0.5) + 0.13 * cloud + 0.04 * fine, 0.0, 1.0))
    height = wave + 0.0009 * dent + 0.0008 * (1.0 - below / sheet)
    side = canvas.tile
    screws = np.full_like(wave, 1.0)
    for band in (0.10, 0.60):
        for k in range(0, waves, 3):
            dr = np.mod(canvas.row - band * side + 0.5 * side, side) - 0.5 * side
            dk = np.mod(canvas.column - (k + 0.0) * pitch + 0.5 * side, side) - 0.5 * side
            screws = np.minimum(screws, np.hypot(dr, dk))
    washer, head = 1.0 - smooth(0.0095, 0.0115, screws), 1.0 - smooth(0.0050, 0.0062, screws)
    height = height + 0.0012 * washer + 0.003 * head
    image = over(image, color(c["washer"][0]), 0.85 * washer * (1.0 - head))
    source = np.maximum(
        (below < 2.0 * canvas.pixel) * smooth(-0.2, 1.2, canvas.noise("seep", 1.2, 3.0, 120.0, (20.0, 1.0))),
        (screws < 0.010) * 0.9,
    )
    run = canvas.streaks("run", source, 0.22) * smooth(-1.8, 0.8, canvas.noise("thin", 1.6, 6.0, 120.0, (7.0, 1.0)))
    spot = (
        smooth(1.0 - 0.30 * canvas.wear, 1.0 - 0.12 * canvas.wear, canvas.rank(canvas.noise("spot", 2.8, 3.0) + 0.05 * fine))
        if canvas.wear > 0
        else 0.0 * cloud
    )
    rusty = np.clip(canvas.wear * 1.5 * run + spot, 0.0, 1.0)
    tone, crust = _rust(canvas, c, "rust")
    image, height = over(image, tone, 0.9 * rusty), height + 0.0003 * crust * rusty
    image = shaded(image, (0.72 + 0.28 * lap) * (1.0 - 0.14 * smooth(0.3, 1.0, -np.cos(phase)) * (0.4 + canvas.wear)))
    rough = np.clip(n["gloss"] + 0.06 * cloud + 0.08 * (flake - 0.5) + 0.5 * rusty, 0.0, 1.0)
    return Layers(image, height, rough, np.clip(1.0 - 1.2 * rusty - 0.5 * washer, 0.0, 1.0))


def brushed(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw brushed steel plates: long scratches, seams, a screw in each corner, finger marks."""
    fine, long = canvas.noise("fine", 0.5, 24.0, 1e9, (1.0, 40.0)), canvas.noise("long", 1.2, 4.0, 1e9, (1.0, 60.0))
    side = canvas.tile / round(canvas.tile / n["plate"])
    per = round(canvas.tile / side)
    r, k = np.floor(canvas.row / side).astype(int), np.floor(canvas.column / side).astype(int)
    tone = canvas.rng("plates").normal(0.0, 1.0, per * per)[(r % per) * per + k % per]
    local_r, local_c = np.mod(canvas.row, side), np.mod(canvas.column, side)
    edge = np.minimum(np.minimum(local_r, side - local_r), np.minimum(local_c, side - local_c))
    seam = 1.0 - smooth(0.0012, 0.0030, edge)
    image = ramp(c["body"], np.clip(0.5 + 0.14 * fine + 0.10 * long + 0.05 * tone, 0.0, 1.0))
    corner_r, corner_c = np.minimum(local_r, side - local_r) - 0.035, np.minimum(local_c, side - local_c) - 0.035
    screw = np.hypot(corner_r, corner_c)
    head, slot = 1.0 - smooth(0.0085, 0.0100, screw), (np.abs(corner_r + 0.6 * corner_c) < 0.0013) & (screw < 0.0075)
    ring = np.exp(-(((screw - 0.0098) / 0.0012) ** 2))
    image = shaded(image, (1.0 - 0.85 * seam) * (1.0 - 0.6 * ring) * (1.0 - 0.7 * slot))
    scratch = canvas.cracks("scratches", round(40 * canvas.wear), 0.25, 0.0007, 0.004, 0.1)
    cut = np.where(scratch.width > 0.0, 1.0 - smooth(0.4, 1.0, scratch.distance / np.maximum(1.6 * scratch.width, 1e-6)), 0.0)
    image = over(image, color((0.75, 0.75, 0.75)), 0.5 * cut)
    smear = smooth(0.70, 1.0, canvas.rank(canvas.noise("smear", 2.6, 2.0, 60.0)))
    lean = 0.004 * tone * (local_c - 0.5 * side) + 0.003 * np.roll(tone, 1) * (local_r - 0.5 * side) * 0.0
    height = (
        0.00002 * fine
        + 0.00002 * long
        + lean
        - 0.003 * seam
        + 0.0016 * head
        - 0.0012 * slot
        + 0.0004 * canvas.noise("bow", 3.6, 1.5, 6.0)
    )
    rough = np.clip(n["gloss"] + 0.05 * fine + 0.05 * long + 0.25 * canvas.wear * smear + 0.3 * seam, 0.0, 1.0)
    return Layers(image, height, rough, 1.0 - 0.6 * seam)


def tread(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw tread plate: lozenges in turn to either side, their tops worn bright, dirt between."""
    per = 2 * round(0.5 * canvas.tile / n["cell"])
    cell = canvas.tile / per
    r, k = canvas.row / cell, canvas.column / cell
    # On a board of fields, each lozenge lies across its neighbours' way.
    turn = np.where(np.mod(np.floor(r) + np.floor(k), 2.0) == 0.0, 0.25 * np.pi, -0.25 * np.pi)
    dr, dk = np.mod(r, 1.0) - 0.5, np.mod(k, 1.0) - 0.5
    along, across = dr * np.sin(turn) + dk * np.cos(turn), dr * np.cos(turn) - dk * np.sin(turn)
    top = smooth(0.0, 0.45, 1.0 - np.abs(along / 0.50) ** 1.7 - (across / 0.14) ** 2)
    fine, cloud = canvas.noise("fine", 0.9, 20.0), canvas.noise("cloud", 2.5, 1.0, 80.0)
    image = ramp(c["body"], np.clip(0.42 + 0.30 * top + 0.10 * cloud + 0.05 * fine, 0.0, 1.0))
    dirt = smooth(-0.9, 1.4, cloud + 0.3 * fine) * (1.0 - top) * canvas.wear
    tone, crust = _rust(canvas, c, "rust")
    rusty = smooth(1.0 - 0.35 * canvas.wear, 1.0, canvas.rank(canvas.noise("rusty", 2.2, 2.0) + 0.2 * fine)) * (1.0 - 0.8 * top)
    image = over(over(image, color(c["dirt"][0]), 0.8 * dirt), tone, 0.85 * rusty)
    height = n["depth"] * top + 0.00006 * fine + 0.0001 * crust * rusty + 0.0008 * canvas.noise("bow", 3.4, 1.5, 8.0)
    return Layers(
        image,
        height,
        np.clip(n["gloss"] + 0.08 * cloud - 0.12 * top + 0.5 * dirt + 0.4 * rusty, 0, 1),
        np.clip(1.0 - dirt - rusty, 0, 1),
    )


def painted(canvas: Canvas, n: Numbers, c: Colors) -> Layers:
    """Draw painted steel whose paint has blistered and chipped down to primer, bare metal and rust that runs."""
    wear = canvas.wear
    fine, orange = canvas.noise("fine", 0.8, 24.0), canvas.noise("orange", 2.0, 20.0, 70.0)
    fields = canvas.noise("chips", 2.7, 2.5) + 0.28 * canvas.noise("chips fine", 1.9, 12.0)
    chip = canvas.rank(fields)
    lost, rim = 0.05 + n["lost"] * wear, 0.02
    gone = smooth(1.0 - lost, 1.0 - lost + 0.004, chip)
    primer = smooth(1.0 - lost - rim, 1.0 - lost - rim + 0.004, chip) * (1.0 - gone)
    deep = smooth(1.0 - 0.8 * lost, 1.0 - 0.55 * lost, chip)
    rust, crust = _rust(canvas, c, "rust")
    steel = shaded(color(c["steel"][0]) + np.zeros((canvas.size, canvas.size, 3)), 1.0 + 0.08 * fine)
    metal = over(steel, rust, np.clip(0.35 + deep + 0.3 * crust, 0.0, 1.0))
    cloud = canvas.noise("cloud", 2.6, 1.0, 60.0)
    paint = shaded(color(c["paint"][0]) + np.zeros((canvas.size, canvas.size, 3)), 1.0 + 0.06 * cloud + 0.02 * fine)
    # Sun bleaches it; scratches show it pale.
    paint = over(paint, paint * 0.6 + 0.22, 0.5 * wear * smooth(-0.8, 1.2, cloud))
    scratch = canvas.cracks("scratches", round(26 * wear), 0.22, 0.0009, 0.004, 0.15)
    cut = np.where(scratch.width > 0.0, 1.0 - smooth(0.4, 1.0, scratch.distance / np.maximum(1.8 * scratch.width, 1e-6)), 0.0)
    paint = over(paint, color(c["primer"][0]), 0.7 * cut)
    stain = canvas.blurred(gone, 0.010)
    run = canvas.streaks("run", gone * smooth(0.2, 1.5, canvas.noise("seep", 1.4, 6.0, 120.0, (3.0, 1.0))), 0.22) * (1.0 - gone)
    run = run * smooth(-1.6, 1.0, canvas.noise("thin", 1.6, 6.0, 120.0, (6.0, 1.0)))
    paint = over(paint, paint * color(c["bleed"][0]), np.clip(1.3 * stain * (1 - gone) + 0.9 * run, 0.0, 0.92))
    image = over(over(paint, color(c["primer"][0]), primer), metal, gone)
    lift = np.exp(-(((chip - (1.0 - lost - rim)) / 0.012) ** 2)) * (1.0 - gone)
    blister = smooth(1.3, 2.2, canvas.noise("blister", 1.8, 8.0, 60.0)) * (1.0 - gone)
    image = shaded(image, 1.0 - 0.35 * np.exp(-(((chip - (1.0 - lost)) / 0.004) ** 2)))
    height = (
        (1.0 - gone) * n["paint"] * (1.0 + 0.5 * lift + 0.10 * orange)
        + 0.0012 * wear * blister
        + gone * 0.00022 * crust
        - 0.5 * n["paint"] * primer
    )
    height = height + 0.0012 * canvas.noise("bow", 3.6, 1.5, 6.0)
    bare = gone * np.clip(0.65 - deep - 0.3 * crust, 0.0, 1.0)
    rough = over(
        over(np.clip(n["gloss"] + 0.35 * wear * smooth(-0.8, 1.2, cloud) + 0.3 * run, 0, 1), np.full_like(gone, 0.75), primer),
        0.92 - 0.5 * bare,
        gone,
    )
    return Layers(image, height, rough, bare)
