"""Bodies by numbers: cross-sections of trunk and limbs, heads, hands, shoes, in the frames of a person's joints.

Breadths, depths and girths are shares of the stature, from the means of men and women in the 2012 Anthropometric Survey of U.S.
Army Personnel (ANSUR II; Gordon and others 2014, NATICK/TR-15/007): head 199 x 154 mm, chest depth 255, waist depth 235, hip
breadth 347, biceps, forearm, wrist, thigh, calf and ankle 358, 310, 176, 625, 392 and 229 around, of men of 1,756 mm. Between
them, and in faces, curves are drawn by eye. Lengths are those of the joints (`scenes.people`, after Drillis and Contini).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.schema import check_fields
from airworthy.scenes.figures.fields import Field, Limb, ball, blended, limb, sheet

__all__ = ["Build", "arm", "cone", "foot", "forearm", "hair", "hand", "hard_hat", "head", "hips", "shank", "thigh", "trunk"]


@dataclass(frozen=True)
class Build:
    """What bodies of one stature differ by."""

    stature: float = 1.75
    """[m]"""
    weight: float = 0.0
    """-1 slender to 1 heavy: mostly waist and limbs."""
    woman: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "Build.")


def _sized(build: Build, rows: Sequence[tuple[float, ...]], swell: float = 1.0) -> Limb:
    """Return a limb of rows (z, front, back, half width[, axis]) in shares of the stature, rising in z."""
    z, front, back, wide, *middle = np.array(sorted(rows)).T * build.stature
    axis = tuple(middle[0].tolist()) if middle else ()
    ahead, behind, half = (tuple((swell * v).tolist()) for v in (front, back, wide))
    return Limb(tuple(z.tolist()), ahead, behind, half, axis)


def _girth(build: Build, share: float = 0.10) -> float:
    return 1.0 + share * build.weight - (0.04 if build.woman else 0.0)


def hips(build: Build, swell: float) -> Field:
    """Return the pelvis, in its joint's frame, z up."""
    wide = 1.06 if build.woman else 1.0
    waist = (0.88 if build.woman else 1.0) * (1.0 + 0.12 * build.weight)
    belly = 1.0 + 0.30 * max(build.weight, 0.0)
    rows = [
        (-0.062, 0.036, 0.046, 0.062 * wide),
        (-0.045, 0.050, 0.066, 0.084 * wide),
        (-0.010, 0.057, 0.076, 0.0970 * wide),
        (0.025, 0.060 * belly, 0.066, 0.0955 * wide),
        (0.060, 0.062 * belly, 0.052, 0.0880 * waist),
        (0.095, 0.063 * belly, 0.047, 0.0840 * waist),
    ]
    return limb(_sized(build, rows, _girth(build, 0.04)), swell, 2.25)


def trunk(build: Build, swell: float) -> Field:
    """Return waist, chest and shoulders with the foot of the neck, in the torso joint's frame (0.06 over the pelvis), z up."""
    s = build.stature
    waist = (0.87 if build.woman else 1.0) * (1.0 + 0.12 * build.weight)
    chest = (0.93 if build.woman else 1.0) * (1.0 + 0.05 * build.weight)
    belly = 1.0 + 0.28 * max(build.weight, 0.0)
    front = 1.03 if build.woman else 1.0
    rows = [
        (-0.02, 0.061 * belly, 0.051, 0.0900 * waist),
        (0.02, 0.062 * belly, 0.047, 0.0840 * waist),
        (0.06, 0.063 * belly, 0.048, 0.0840 * waist),
        (0.10, 0.066, 0.055, 0.0885 * chest),
        (0.14, 0.070 * front, 0.062, 0.0930 * chest),
        (0.175, 0.063 * front, 0.064, 0.0950 * chest),
        (0.205, 0.047, 0.046, 0.0740 * chest),
        (0.230, 0.034, 0.038, 0.0520),
        (0.252, 0.028, 0.042, 0.0370),
    ]
    parts: list[tuple[Field, float]] = [(limb(_sized(build, rows), swell, 2.35), 0.0)]
    wide = 0.93 if build.woman else 1.0
    for side in (-1.0, 1.0):
        # Over the collar bone to the shoulder, and from the neck down to it.
        bone = cone((0.005, side * 0.05, 0.196), (0.002, side * 0.100 * wide, 0.192), 0.031, 0.028, s, swell)
        parts.append((bone, 0.024 * s))
        parts.append((cone((-0.008, side * 0.008, 0.246), (-0.002, side * 0.085, 0.203), 0.022, 0.016, s, swell), 0.024 * s))
        if build.woman:
            bust = np.array((0.046, side * 0.042, 0.128)) * s
            parts.append((ball(bust, (np.array((0.036, 0.040, 0.042))) * s + swell), 0.03 * s))
    return blended(parts)


def cone(a: tuple[float, ...], b: tuple[float, ...], ra: float, rb: float, scale: float = 1.0, swell: float = 0.0) -> Field:
    """Return a rounded bar whose radius goes from one end's to the other's; all in shares of a scale but `swell` [m]."""
    start, end = np.array(a) * scale, np.array(b) * scale
    axis = end - start
    square = float(axis @ axis)

    def distance(points: Array) -> Array:
        q = points - start
        t = np.clip(q @ axis / square, 0.0, 1.0)
        return np.linalg.norm(q - t[:, None] * axis, axis=1) - ((ra + (rb - ra) * t) * scale + swell)

    return distance


def arm(build: Build, swell: float, loose: float = 0.0) -> Field:
    """Return an upper arm, in its joint's frame, z down the arm negative."""
    g = _girth(build, 0.12)
    rows = [
        (0.004, 0.022, 0.022, 0.020),
        (-0.020, 0.0325, 0.0325, 0.0290),
        (-0.060, 0.0335, 0.0325, 0.0305),
        (-0.110, 0.0315, 0.0305, 0.0285),
        (-0.160, 0.0265, 0.0270, 0.0255),
        (-0.190, 0.0260, 0.0265, 0.0250),
    ]
    return limb(_sized(build, rows, g), swell + loose)


def forearm(build: Build, swell: float, cuff: float = 0.0) -> Field:
    """Return a forearm; a cuff is the least radius of a sleeve at the wrist [m]."""
    g = _girth(build, 0.08)
    least = cuff / (g * build.stature)
    rows = [
        (0.004, 0.0260, 0.0265, 0.0250),
        (-0.035, 0.0280, 0.0280, 0.0262),
        (-0.080, max(0.0250, least), max(0.0250, least), max(0.0225, least)),
        (-0.125, max(0.0180, least), max(0.0180, least), max(0.0150, least)),
        (-0.152, max(0.0168, least), max(0.0168, least), max(0.0128, least)),
    ]
    elbow = ball((0.0, 0.0, 0.0), 0.0258 * g * build.stature + swell)
    return blended([(limb(_sized(build, rows, g), swell), 0.0), (elbow, 0.008 * build.stature)])


def hand(build: Build, side: float) -> Field:
    """Return a hand that hangs, a little closed, its palm towards the body; side 1: the left one."""
    s = build.stature * (0.96 if build.woman else 1.0)
    parts: list[tuple[Field, float]] = [
        (cone((0.0, 0.0, 0.012), (0.0, 0.0, -0.016), 0.0150, 0.0165, s), 0.0),
        (ball(np.array((0.001, 0.0, -0.034)) * s, np.array((0.0235, 0.0125, 0.030)) * s), 0.012 * s),
    ]
    for k, (x, reach) in enumerate(((0.0165, 0.092), (0.0055, 0.098), (-0.0055, 0.094), (-0.0155, 0.084))):
        curl = 0.006 + 0.003 * k
        knuckle, middle = (x, 0.0, -0.055), (x * 0.95 + 0.002, -side * curl * 0.4, -0.5 * (0.055 + reach))
        tip = (x * 0.85 + 0.002, -side * curl * 1.7, -reach)
        parts.append((cone(knuckle, middle, 0.0064, 0.0058, s), 0.008 * s))
        parts.append((cone(middle, tip, 0.0058, 0.0047, s), 0.004 * s))
    parts.append((cone((0.016, -side * 0.002, -0.020), (0.0275, -side * 0.007, -0.045), 0.0085, 0.0066, s), 0.010 * s))
    parts.append((cone((0.0275, -side * 0.007, -0.045), (0.0275, -side * 0.012, -0.066), 0.0064, 0.0050, s), 0.004 * s))
    return blended(parts)


def thigh(build: Build, swell: float, loose: float = 0.0) -> Field:
    """Return a thigh, in its joint's frame, z down the leg negative."""
    g = _girth(build, 0.10)
    rows = [
        (0.030, 0.046, 0.052, 0.0400, 0.0),
        (-0.020, 0.0540, 0.0600, 0.0460, 0.002),
        (-0.070, 0.0540, 0.0570, 0.0470, 0.004),
        (-0.130, 0.0490, 0.0500, 0.0435, 0.005),
        (-0.190, 0.0405, 0.0405, 0.0380, 0.004),
        (-0.245, 0.0365, 0.0365, 0.0345, 0.002),
    ]
    return limb(_sized(build, rows, g), swell + loose)


def shank(build: Build, swell: float, least: float = 0.0) -> Field:
    """Return a lower leg; `least` radius of a trouser's leg below the knee [m]."""
    g = _girth(build, 0.08)
    floor = least / (g * build.stature)
    rows = [
        (0.006, 0.0365, 0.0365, 0.0350, 0.001),
        (-0.035, 0.0350, 0.0360, 0.0340, -0.002),
        (-0.080, 0.0325, 0.0400, 0.0350, -0.003),
        (-0.130, 0.0285, 0.0345, 0.0305, -0.003),
        (-0.190, 0.0225, 0.0240, 0.0215, -0.003),
        (-0.240, 0.0205, 0.0225, 0.0200, -0.002),
    ]
    rows = [(z, max(f, floor), max(b, floor), max(w, floor), m) for z, f, b, w, m in rows]
    # Round the knee, so that it is closed however it bends.
    knee = ball((0.001 * build.stature, 0.0, 0.0), 0.0355 * g * build.stature + swell)
    return blended([(limb(_sized(build, rows, g), swell), 0.0), (knee, 0.01 * build.stature)])


def foot(build: Build) -> Field:
    """Return a shoe on a foot, in the ankle's frame; its sole is flat."""
    s = build.stature
    fine = 0.93 if build.woman else 1.0
    upper = blended(
        [
            (ball(np.array((-0.012, 0.0, -0.022)) * s, np.array((0.029, 0.0215 * fine, 0.024)) * s), 0.0),
            (ball(np.array((0.050, 0.002, -0.030)) * s, np.array((0.046, 0.0285 * fine, 0.017)) * s), 0.022 * s),
            (ball(np.array((0.086, 0.0, -0.031)) * s, np.array((0.0285, 0.0245 * fine, 0.0125)) * s), 0.015 * s),
            (cone((-0.004, 0.0, 0.004), (0.010, 0.0, -0.018), 0.0245, 0.0225, s), 0.02 * s),
            (cone((0.004, 0.0, -0.012), (0.058, 0.0, -0.026), 0.0215, 0.0150, s), 0.02 * s),
        ]
    )
    floor = sheet((0.0, 0.0, -1.0), 0.0388 * s)
    return lambda points: np.maximum(upper(points), floor(points))


# ---- Heads ------------------------------------------------------------------------------------------------------------------

_SKULL = np.array((-0.0035, 0.0, 0.0880))
_SKULL_HALF = np.array((0.0565, 0.0440, 0.0515))


def head(build: Build, chance: Array) -> Field:
    """Return head and neck, in the head joint's frame: its z is up, its x where it looks.

    Args:
        build: Of the body.
        chance: (6,) in 0 to 1: by what faces differ.
    """
    s = build.stature
    jaw = (0.92 if build.woman else 1.0) * (0.97 + 0.06 * chance[0]) * (1.0 + 0.05 * build.weight)
    nose, ridge = 0.9 + 0.25 * chance[1], (0.0063 if build.woman else 0.0075)
    m = np.array

    def at(center: tuple[float, ...], half: tuple[float, ...] | float) -> Field:
        return ball(m(center) * s, m(half) * s)

    solid: list[tuple[Field, float]] = [
        (at(tuple(_SKULL), tuple(_SKULL_HALF)), 0.0),
        (at((0.018, 0.0, 0.052), (0.0325, 0.0360 * jaw, 0.0440)), 0.018 * s),
        (at((0.022, 0.0, 0.026), (0.0240, 0.0290 * jaw, 0.0190)), 0.016 * s),
        (at((0.0395, 0.0, 0.0135), (0.0110, 0.0120 * jaw, 0.0090)), 0.014 * s),
        (cone((-0.014, 0.0, -0.040), (-0.010, 0.0, 0.035), 0.0365 * (0.88 if build.woman else 1.0), 0.0335, s), 0.012 * s),
    ]
    for side in (-1.0, 1.0):
        solid += [
            (at((0.0295, side * 0.0235, 0.0520), (0.0150, 0.0125, 0.0130)), 0.012 * s),
            (
                cone((0.0445, side * 0.006, 0.0795), (0.0370, side * 0.0270, 0.0800), ridge, 0.0050, s),
                0.010 * s,
            ),
        ]
    whole = blended(solid)
    sockets = blended([(at((0.0525, side * 0.0185, 0.0690), (0.0100, 0.0115, 0.0070)), 0.0) for side in (-1.0, 1.0)])
    features: list[tuple[Field, float]] = [
        (cone((0.0470, 0.0, 0.0730), (0.0575, 0.0, 0.0500), 0.0042, 0.0062 * nose, s), 0.008 * s),
        (at((0.0555, 0.0, 0.0470), (0.0075, 0.0105 * nose, 0.0058)), 0.005 * s),
        (at((0.0465, 0.0, 0.0335), (0.0068, 0.0145, 0.0034)), 0.005 * s),
        (at((0.0455, 0.0, 0.0275), (0.0070, 0.0125, 0.0038)), 0.004 * s),
    ]
    for side in (-1.0, 1.0):
        features.append((at((0.0400, side * 0.0185, 0.0690), (0.0078, 0.0100, 0.0072)), 0.003 * s))
        features.append((at((-0.0040, side * 0.0470, 0.0600), (0.0125, 0.0050, 0.0185)), 0.004 * s))
    details = blended(features)

    def distance(points: Array) -> Array:
        base, hollow = whole(points), -sockets(points)
        width = 0.010 * s
        near = np.maximum(width - np.abs(base - hollow), 0.0)
        carved = np.maximum(base, hollow) + near * near / (4.0 * width)
        found = details(points)
        blend = 0.006 * s
        near = np.maximum(blend - np.abs(carved - found), 0.0)
        return np.asarray(np.minimum(carved, found) - near * near / (4.0 * blend))

    return distance


def hair(build: Build, style: str, chance: Array) -> Field:
    """Return hair: "short", "long" or "tied", with brows; in the head's frame."""
    s = build.stature
    thick = {"short": 0.0055, "long": 0.0085, "tied": 0.0055}[style] * (0.8 + 0.5 * chance[2])
    cap = blended(
        [
            (ball(_SKULL * s, (_SKULL_HALF + thick) * s), 0.0),
            (ball(np.array((-0.016, 0.0, 0.068)) * s, (np.array((0.0430, 0.0435, 0.0500)) + 0.5 * thick) * s), 0.01 * s),
        ]
    )
    # The hairline: over the forehead, before the ears, down to the nape.
    forehead = sheet(_unit((0.80, 0.0, -0.60)), (-0.0345 + 0.006 * chance[3]) * s)
    temple = sheet(_unit((0.97, 0.0, -0.10)), -0.0005 * s)
    nape = sheet((0.0, 0.0, -1.0), -0.0300 * s)
    extra: list[tuple[Field, float]] = []
    if style == "long":
        for side in (-1.0, 1.0):
            extra.append((cone((-0.018, side * 0.038, 0.085), (-0.022, side * 0.040, -0.022), 0.017, 0.013, s), 0.015 * s))
        extra.append((cone((-0.040, 0.0, 0.070), (-0.046, 0.0, -0.035), 0.030, 0.026, s), 0.03 * s))
    if style == "tied":
        extra.append((ball(np.array((-0.064, 0.0, 0.080)) * s, np.array((0.017, 0.017, 0.018)) * s), 0.012 * s))
        extra.append((cone((-0.070, 0.0, 0.075), (-0.062, 0.0, 0.010), 0.014, 0.007, s), 0.010 * s))
    brows = blended(
        [
            (cone((0.0492, side * 0.0075, 0.0800), (0.0425, side * 0.0270, 0.0815), 0.0026, 0.0016, s), 0.0)
            for side in (-1.0, 1.0)
        ]
    )
    added = blended(extra) if extra else None

    def distance(points: Array) -> Array:
        line = np.maximum(forehead(points), np.minimum(temple(points), -points[:, 2] + 0.100 * s))
        found = np.maximum(np.maximum(cap(points), line), nape(points))
        if added is not None:
            found = np.minimum(found, added(points))
        # Locks: waves along the head that run down from the crown.
        angle = np.arctan2(points[:, 1], points[:, 0] + 0.02 * s)
        wave = np.sin(17.0 * angle + 60.0 * points[:, 2] + 6.0 * chance[4]) * np.sin(9.0 * angle - 25.0 * points[:, 2])
        return np.minimum(found + 0.0011 * s * wave, brows(points))

    return distance


def hard_hat(build: Build) -> Field:
    """Return a safety helmet with its brim, in the head's frame."""
    s = build.stature
    shell = ball(np.array((-0.002, 0.0, 0.094)) * s, np.array((0.071, 0.0575, 0.060)) * s)
    rib = ball(np.array((-0.002, 0.0, 0.097)) * s, np.array((0.070, 0.012, 0.062)) * s)
    brim = ball(np.array((0.010, 0.0, 0.094)) * s, np.array((0.082, 0.060, 0.0075)) * s)
    under = sheet((0.0, 0.0, -1.0), -0.089 * s)
    dome = blended([(shell, 0.0), (rib, 0.004 * s), (brim, 0.006 * s)])
    return lambda points: np.maximum(dome(points), under(points))


def _unit(vector: tuple[float, ...]) -> tuple[float, ...]:
    length = math.sqrt(sum(v * v for v in vector))
    return tuple(v / length for v in vector)
