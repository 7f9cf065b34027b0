"""Parked cars: a body lofted over cross-sections, glass, wheels, lights; and a box van that fills a box.

Frames: on the ground, x forward, y left, z up, metres. Shapes are drawn by hand after the proportions of common cars, of no
make.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.generators.seeding import generator

__all__ = ["CAR_SURFACES", "PAINT_COLORS", "CarForm", "box_van", "car_forms", "car_patches"]

CAR_SURFACES = ("lacquer", "window glass", "matt", "metal")
"""Materials of a car's faces, in the order of their numbers."""
_BODY, _GLASS, _MATT, _METAL = range(4)
_COLORS = (
    (0.62, 0.63, 0.64), (0.70, 0.70, 0.68), (0.030, 0.031, 0.034), (0.10, 0.105, 0.11), (0.28, 0.29, 0.30),
    (0.018, 0.045, 0.13),    (0.30, 0.018, 0.020), (0.05, 0.09, 0.07), (0.20, 0.25, 0.30), (0.36, 0.31, 0.24),
)  # fmt: skip
PAINT_COLORS = len(_COLORS)
"""Different colours of cars: mostly greys, as on any road."""
_TYRE, _DARK = (0.022, 0.022, 0.023), (0.012, 0.012, 0.013)
_PANE = (0.055, 0.064, 0.07)
_HEADLIGHT, _TAILLIGHT, _PLATE = (0.62, 0.64, 0.66), (0.30, 0.012, 0.012), (0.62, 0.60, 0.50)


@dataclass(frozen=True)
class CarForm:
    """Proportions of a car [m]; places along it are shares of the length from the nose."""

    length: float
    width: float
    height: float
    hood: tuple[float, float]
    """Height of the bonnet at the nose and at the windscreen."""
    screen: tuple[float, float]
    """Where the windscreen begins and ends."""
    rear: tuple[float, float]
    """Where the rear window begins and ends."""
    tail: float
    """Height of the body behind the rear window."""
    wheel: float
    """Radius of wheels."""
    axles: tuple[float, float]
    pillars: tuple[float, ...]
    """Where posts stand between side windows."""


_FORMS: dict[str, CarForm] = {
    "hatch": CarForm(3.95, 1.72, 1.46, (0.66, 0.96), (0.25, 0.43), (0.86, 0.985), 0.98, 0.30, (0.20, 0.83), (0.60, 0.83)),
    "saloon": CarForm(4.55, 1.80, 1.44, (0.66, 0.95), (0.29, 0.45), (0.72, 0.86), 1.02, 0.32, (0.19, 0.80), (0.57, 0.74)),
    "estate": CarForm(
        4.60, 1.80, 1.47, (0.68, 0.97), (0.27, 0.43), (0.90, 0.985), 1.00, 0.32, (0.19, 0.80), (0.56, 0.74, 0.91)
    ),
    "suv": CarForm(4.40, 1.84, 1.66, (0.82, 1.08), (0.26, 0.42), (0.88, 0.985), 1.12, 0.35, (0.20, 0.81), (0.57, 0.76, 0.89)),
    "van": CarForm(4.85, 1.90, 1.95, (0.86, 1.16), (0.12, 0.30), (0.97, 0.99), 1.20, 0.33, (0.17, 0.80), (0.43,)),
}


def car_forms() -> list[str]:
    """Return the names of the forms there are."""
    return list(_FORMS)


def car_patches(form: str, color: int) -> PatchMesh:
    """Return a car.

    Args:
        form: One of `car_forms`.
        color: Number of its paint.
    """
    shape, paint = _FORMS[form], _COLORS[color % len(_COLORS)]
    patches = PatchMesh()
    stations = _stations(shape)
    rings = np.array([_ring(shape, u) for u in stations])
    _shell(patches, shape, stations, rings, paint)
    for end in (0, -1):
        _cap(patches, rings[end], 1.0 if end == 0 else -1.0, paint)
    _face(patches, shape, rings)
    for share in shape.axles:
        for side in (-1.0, 1.0):
            _wheel(patches, (shape.length * (0.5 - share), side * 0.5 * shape.width, shape.wheel), side, shape.wheel)
    _seams(patches, shape)
    return patches


def _stations(shape: CarForm) -> Array:
    marks = [0.0, 0.012, 0.04, 0.10, 0.18, *shape.screen, *shape.rear, 0.985, 1.0]
    marks += [0.5 * (shape.screen[0] + shape.screen[1]), 0.5 * (shape.rear[0] + shape.rear[1])]
    for post in shape.pillars:
        marks += [post - 0.012, post + 0.012]
    marks += [0.5, 0.65]
    kept: list[float] = []
    for mark in sorted(marks):
        if 0.0 <= mark <= 1.0 and (not kept or mark - kept[-1] > 0.008):
            kept.append(mark)
    return np.array(kept)


def _top(shape: CarForm, u: float) -> float:
    """Return the height of the outline over its middle line [m]."""
    places = [0.0, 0.012, 0.06, shape.screen[0], shape.screen[1], 0.5 * (shape.screen[1] + shape.rear[0]), shape.rear[0]]
    nose, cowl = shape.hood
    heights = [nose - 0.14, nose - 0.05, nose + 0.03, cowl, shape.height - 0.03, shape.height, shape.height - 0.05]
    end = min(shape.rear[1], 0.985)
    places += [end, 1.0]
    heights += [shape.tail, shape.tail - 0.10]
    return float(np.interp(u, places, heights))


def _belt(shape: CarForm, u: float) -> float:
    """Return the height at which side windows begin [m], never above the outline."""
    level = float(np.interp(u, [0.0, shape.screen[0], 1.0], [shape.hood[0] - 0.05, shape.hood[1] - 0.04, shape.tail - 0.02]))
    return min(level, _top(shape, u) - 0.02)


def _ring(shape: CarForm, u: float) -> Array:
    """Return a cross-section (13, 3) from the right sill over the roof to the left sill."""
    x = shape.length * (0.5 - u)
    # Rounded in plan at both ends.
    plan = 1.0 - 0.16 * max(0.0, 1.0 - u / 0.10) ** 2 - 0.12 * max(0.0, 1.0 - (1.0 - u) / 0.08) ** 2
    half = 0.5 * shape.width * plan
    top, belt = _top(shape, u), _belt(shape, u)
    low = 0.20 + 0.10 * max(0.0, 1.0 - u / 0.05) + 0.10 * max(0.0, 1.0 - (1.0 - u) / 0.05)
    rise = np.clip((top - belt) / max(shape.height - belt, 0.1), 0.0, 1.0)
    edge = half * (0.955 - 0.20 * rise)
    side = [(0.93, low), (1.0, low + 0.14), (1.0, 0.5 * (low + belt)), (0.985, belt - 0.04), (0.955, belt)]
    points = [(half * share, min(z, belt)) for share, z in side]
    crown = 0.05 * rise + 0.02
    points += [(edge, top - crown), (0.82 * edge, top - 0.35 * crown)]
    right = [(x, -y, z) for y, z in points]
    left = [(x, y, z) for y, z in reversed(points)]
    return np.array([*right, (x, 0.0, top), *left])


def _shell(patches: PatchMesh, shape: CarForm, stations: Array, rings: Array, paint: tuple[float, ...]) -> None:
    """Join neighbouring cross-sections, glass where windows are."""
    count, across = rings.shape[:2]
    normals = _normals(rings)
    slots = np.full((count - 1, across - 1), _BODY)
    middle = 0.5 * (stations[1:] + stations[:-1])
    posts = np.zeros(len(middle), bool)
    for post in shape.pillars:
        posts |= np.abs(middle - post) < 0.0125
    side_glass = (middle > shape.screen[0] + 0.05) & (middle < shape.rear[1] - 0.02) & ~posts
    if shape.height > 1.9:
        side_glass &= middle < shape.pillars[0]
    slots[side_glass, 4] = slots[side_glass, across - 6] = _GLASS
    front = (middle > shape.screen[0]) & (middle < shape.screen[1])
    back = (middle > shape.rear[0]) & (middle < shape.rear[1])
    over = slice(6, across - 7)
    slots[front | back, 5 : across - 6] = _GLASS
    slots[front | back, over] = _GLASS
    i, j = np.meshgrid(np.arange(count - 1), np.arange(across - 1), indexing="ij")
    a = i * across + j
    b, c, d = a + 1, a + across, a + across + 1
    for slot, color in ((_BODY, paint), (_GLASS, _PANE)):
        chosen = slots == slot
        faces = np.concatenate([np.stack([a, b, c], -1)[chosen], np.stack([b, d, c], -1)[chosen]])
        used = np.unique(faces)
        index = np.zeros(count * across, int)
        index[used] = np.arange(len(used))
        # The nose is station 0, x falls from one to the next, and rings run from right to left: counter-clockwise from outside.
        patches.add(rings.reshape(-1, 3)[used], index[faces], normals.reshape(-1, 3)[used], slot, color)


def _normals(rings: Array) -> Array:
    along = np.gradient(rings, axis=0)
    across = np.gradient(rings, axis=1)
    normal = np.cross(across, along)
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)
    # Outwards: away from the car's middle.
    middle = np.array([0.0, 0.0, 0.7])
    flip = ((rings - middle) * normal).sum(-1, keepdims=True) < 0.0
    return np.asarray(np.where(flip, -normal, normal))


def _cap(patches: PatchMesh, ring: Array, ahead: float, paint: tuple[float, ...]) -> None:
    """Close an end by a fan."""
    middle = ring.mean(0)
    points = np.concatenate([ring, middle[None]])
    last = len(points) - 1
    faces = np.array([[k, (k + 1) % last, last] for k in range(last)])
    normal = np.array([ahead, 0.0, 0.0])
    turned = np.cross(points[1] - points[0], middle - points[0])[0] * ahead < 0.0
    patches.add(points, faces[:, ::-1] if turned else faces, np.repeat(normal[None], len(points), 0), _BODY, paint)


def _plate(
    patches: PatchMesh, x: float, ahead: float, span: tuple[float, float, float, float], slot: int, color: tuple[float, ...]
) -> None:
    """Add an upright quad that faces along x: from y0 to y1, z0 to z1."""
    y0, y1, z0, z1 = span
    corners = [(x, y0, z0), (x, y1, z0), (x, y1, z1), (x, y0, z1)]
    patches.quad(np.array(corners if ahead > 0.0 else [corners[k] for k in (1, 0, 3, 2)]), slot, color)


def _face(patches: PatchMesh, shape: CarForm, rings: Array) -> None:
    """Add lights, grille, bumpers and number plates."""
    nose, tail, half = 0.5 * shape.length, -0.5 * shape.length, 0.5 * shape.width
    z = shape.hood[0] - 0.19
    _plate(patches, nose + 0.004, 1.0, (-0.42 * half, 0.42 * half, z - 0.16, z + 0.04), _MATT, _DARK)
    _plate(patches, nose + 0.010, 1.0, (-0.26, 0.26, z - 0.27, z - 0.16), _MATT, _PLATE)
    for side in (-1.0, 1.0):
        inner, outer = sorted((side * 0.46 * half, side * 0.80 * half))
        _plate(patches, nose + 0.006, 1.0, (inner, outer, z - 0.03, z + 0.07), _GLASS, _HEADLIGHT)
        inner, outer = sorted((side * 0.56 * half, side * 0.86 * half))
        level = shape.tail - 0.26
        _plate(patches, tail - 0.006, -1.0, (inner, outer, level - 0.06, level + 0.12), _GLASS, _TAILLIGHT)
    _plate(patches, tail - 0.008, -1.0, (-0.26, 0.26, shape.tail - 0.38, shape.tail - 0.27), _MATT, _PLATE)
    _plate(patches, tail - 0.004, -1.0, (-0.8 * half, 0.8 * half, 0.30, 0.40), _MATT, _DARK)
    for side in (-1.0, 1.0):  # mirrors
        x = shape.length * (0.5 - shape.screen[0] - 0.075)
        z = shape.hood[1] + 0.03
        y0, y1 = sorted((side * (half - 0.05), side * (half + 0.16)))
        patches.box((x - 0.05, y0, z), (x + 0.06, y1, z + 0.13), _MATT, _DARK)


def _wheel(patches: PatchMesh, center: tuple[float, float, float], side: float, radius: float) -> None:
    """Add a wheel, and the dark of its arch."""
    x, y, z = center
    outward = np.array([0.0, side, 0.0])
    middle = np.array([x, y, z])
    _arch(patches, middle + 0.003 * outward, outward, radius)
    patches.tube(np.array([middle - 0.16 * outward, middle + 0.012 * outward]), radius, _MATT, _TYRE, 20)
    patches.disc(middle + 0.014 * outward, outward, 0.66 * radius, _METAL, (0.42, 0.43, 0.44), 20)
    for k in range(5):
        angle = 2.0 * np.pi * (k + 0.25) / 5.0
        at = middle + 0.017 * outward + 0.40 * radius * np.array([np.cos(angle), 0.0, np.sin(angle)])
        patches.disc(at, outward, 0.13 * radius, _MATT, _DARK, 8)
    patches.disc(middle + 0.018 * outward, outward, 0.12 * radius, _MATT, (0.05, 0.05, 0.05), 8)


def _arch(patches: PatchMesh, middle: Array, outward: Array, radius: float) -> None:
    """Add the dark of an arch: a disc that ends below at the height of the axle."""
    angle = np.pi * np.linspace(0.0, 1.0, 15)
    rim = middle + 1.16 * radius * np.stack([np.cos(angle), 0.0 * angle, np.sin(angle)], -1)
    # Seen from the left counter-clockwise turns the other way.
    rim = rim if outward[1] < 0.0 else rim[::-1]
    faces = np.array([[0, k, k + 1] for k in range(1, len(rim) - 1)])
    patches.add(rim, faces, np.repeat(outward[None], len(rim), 0), _MATT, _DARK)


def _seams(patches: PatchMesh, shape: CarForm) -> None:
    """Draw the gaps of doors and their handles on both sides."""
    half = 0.5 * shape.width
    marks = [shape.screen[0] + 0.055, shape.pillars[0], *(shape.pillars[1:2] if shape.height < 1.9 else ())]
    for side in (-1.0, 1.0):
        out = side * (half + 0.002)
        for mark in marks:
            x = shape.length * (0.5 - mark)
            low, high = 0.36, _belt(shape, mark) - 0.06
            _side(patches, (x - 0.005, x + 0.005, low, high), out, side, _MATT, _DARK)
        for mark in marks[1:]:
            x, z = shape.length * (0.5 - mark) + 0.14, _belt(shape, mark) - 0.14
            _side(patches, (x - 0.10, x + 0.06, z - 0.015, z + 0.015), out + side * 0.01, side, _MATT, _DARK)


def _side(
    patches: PatchMesh, span: tuple[float, float, float, float], y: float, side: float, slot: int, color: tuple[float, ...]
) -> None:
    x0, x1, z0, z1 = span
    corners = [(x0, y, z0), (x1, y, z0), (x1, y, z1), (x0, y, z1)]
    patches.quad(np.array(corners if side < 0.0 else [corners[k] for k in (1, 0, 3, 2)]), slot, color)


# ---- A van that fills a box -------------------------------------------------------------------------------------------------


def box_van(size: tuple[float, float, float], color: int, seed: int = 0) -> PatchMesh:
    """Return a small van whose surface stays within 5 cm of a box's, its foot at z = 0.

    Args:
        size: Length along x, width, height [m].
        color: Number of its paint.
        seed: Of what is written on it.
    """
    patches = PatchMesh()
    length, width, height = size
    hx, hy = 0.5 * length, 0.5 * width
    paint = np.array(_COLORS[color % len(_COLORS)])
    rng = generator("box van", seed)
    edge = 0.035
    _rounded(patches, (hx, hy, height), edge, paint)
    glass, belt, top = 0.004, 0.58 * height, 0.90 * height
    for side in (-1.0, 1.0):
        out = side * (hy + glass)
        spans = [(0.62 * hx, 0.93 * hx), (0.10 * hx, 0.57 * hx), (-0.44 * hx, 0.05 * hx), (-0.92 * hx, -0.50 * hx)]
        for x0, x1 in spans[: 4 if rng.random() < 0.6 else 2]:
            _side(patches, (x0 - 0.02, x1 + 0.02, belt - 0.02, top + 0.02), side * (hy + 0.002), side, _MATT, _DARK)
            _side(patches, (x0, x1, belt, top), out, side, _GLASS, _PANE)
        for x in (0.60 * hx, 0.07 * hx, -0.47 * hx):
            _side(patches, (x - 0.006, x + 0.006, 0.2 * height, 0.95 * height), side * (hy + 0.003), side, _MATT, _DARK)
        _side(patches, (-hx + 0.05, hx - 0.05, 0.02, 0.19 * height), side * (hy + 0.002), side, _MATT, _DARK)
        for x in (0.62 * hx, -0.62 * hx):
            center = np.array([x, side * (hy + 0.006), 0.19 * height])
            out_y = np.array([0.0, side, 0.0])
            for radius, lift, slot, tone in (
                (0.36, 0.0, _MATT, _DARK),
                (0.295, 0.004, _MATT, _TYRE),
                (0.19, 0.008, _METAL, (0.4, 0.4, 0.41)),
                (0.05, 0.012, _MATT, _DARK),
            ):
                low = center + lift * out_y
                low[2] = max(low[2], min(radius, 0.30))
                patches.disc(low, out_y, min(radius, low[2] + 0.04), slot, tone, 20)
    for ahead, x in ((1.0, hx), (-1.0, -hx)):
        at = x + ahead * 0.003
        _plate(patches, at, ahead, (-0.86 * hy, 0.86 * hy, belt, 0.93 * height), _GLASS, _PANE)
        _plate(patches, at, ahead, (-hy + 0.06, hy - 0.06, 0.03, 0.22 * height), _MATT, _DARK)
        _plate(patches, at + ahead * 0.003, ahead, (-0.26, 0.26, 0.24 * height, 0.31 * height), _MATT, _PLATE)
        for side in (-1.0, 1.0):
            inner, outer = sorted((side * 0.62 * hy, side * 0.90 * hy))
            tone = _HEADLIGHT if ahead > 0.0 else _TAILLIGHT
            _plate(patches, at + ahead * 0.003, ahead, (inner, outer, 0.36 * height, 0.46 * height), _GLASS, tone)
    return patches


def _rounded(patches: PatchMesh, half: tuple[float, float, float], edge: float, paint: Array) -> None:
    """Add a box whose upright and upper edges are cut off."""
    hx, hy, high = half
    plan = np.array(
        [
            [hx - edge, -hy],
            [hx, -hy + edge],
            [hx, hy - edge],
            [hx - edge, hy],
            [-hx + edge, hy],
            [-hx, hy - edge],
            [-hx, -hy + edge],
            [-hx + edge, -hy],
        ]
    )
    for k in range(8):
        a, b = plan[k], plan[(k + 1) % 8]
        for z0, z1, shade in ((0.0, 0.4, 0.8), (0.4, high - edge, 1.0)):
            patches.quad(np.array([[*a, z0], [*b, z0], [*b, z1], [*a, z1]]), _BODY, shade * paint)
        inner_a, inner_b = a - edge * np.sign(a), b - edge * np.sign(b)
        patches.quad(np.array([[*a, high - edge], [*b, high - edge], [*inner_b, high], [*inner_a, high]]), _BODY, paint)
    ring = plan - edge * np.sign(plan)
    points = np.concatenate([ring, np.full((8, 1), high)], 1)
    faces = np.array([[0, k, k + 1] for k in range(1, 7)])
    patches.add(points, faces, np.repeat([[0.0, 0.0, 1.0]], 8, 0), _BODY, paint)
