"""The hall of the AlphaPilot qualifier: published gates, drawn perturbations, and a procedural hall around them.

Gates: spec/flightgoggles 8.2; directions: spec/race 1. The hall, 80 x 100 x 20 m, with pillars and clutter at least 3 m off
the nominal path, is ours (section 9 there); so is the tube of 0.15 m around each opening. Index 0 is the nominal course; any
other index, with the seed, draws one of the distribution of the qualifier's courses. `race_courses` gives courses by name, the
25 published ones among them; the organisers' own 25 evaluation courses were never published.

A course is its *shifts*: dx [m], dy [m] and dyaw [deg] of every race gate in their order, (gates, 3), as the organisers' files
list them, dyaw positive clockwise seen from above.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.halls.builder import Builder
from airworthy.scenes.record import Beacon, GateFrame, Pose, Region, Scene, Sky, Sun, Vector3

TUBE = 0.15
"""Side of a gate's square tube [m]."""
LOWER, UPPER = (-44.0, -48.0, 0.0), (36.0, 52.0, 20.0)
"""Inner corners of the hall."""
CLEARANCE = 3.0
"""Least distance of pillars and clutter from the nominal path [m]."""
_HANGING = 4.0
"""A gate whose lowest corner is above this height hangs from the roof [m]."""


@cache
def _published() -> dict[str, Any]:
    text = files("airworthy.scenes.generators.halls").joinpath("alphapilot_gates.json").read_text()
    data: dict[str, Any] = json.loads(text)
    return data


def gate_order() -> tuple[str, ...]:
    """Return names of the race's gates, in the order in which they are flown."""
    return tuple(_published()["order"])


def shift_bounds() -> Array:
    """Return what bounds the shifts of a course, as they: dx [m], dy [m], dyaw [deg] of every race gate, (gates, 3)."""
    return np.array([_published()["gates"][name]["bound"] for name in gate_order()], float)


def drawn_shifts(index: int, seed: int = 0) -> Array:
    """Return shifts of a drawn course, (gates, 3); all zero for index 0.

    Args:
        index: 0: nominal; otherwise a course drawn from the published bounds.
        seed: Of the draws.
    """
    rng = np.random.default_rng([19, seed & 0xFFFFFFFFFFFFFFFF, index])
    bounds = shift_bounds()
    return rng.uniform(-1.0, 1.0, bounds.shape) * bounds if index else np.zeros(bounds.shape)


def gate_corners(index: int = 0, seed: int = 0) -> dict[str, Array]:
    """Return corners of every gate's opening [m], (4, 3), in the order of the markers; decoys never move.

    Args:
        index: 0: nominal; otherwise a course drawn from the published bounds.
        seed: Of the draws.
    """
    return shifted_corners(drawn_shifts(index, seed))


def shifted_corners(shifts: Array) -> dict[str, Array]:
    """Return corners as `gate_corners`, of a course given by its shifts."""
    corners = {name: np.array(gate["corners"], float) for name, gate in _published()["gates"].items()}
    for name, shift in zip(gate_order(), shifts, strict=True):
        corners[name] = perturbed(corners[name], _published()["gates"][name]["pivot"], shift)
    return corners


def gate_frames(shifts: Array) -> tuple[GateFrame, ...]:
    """Return the race's gates in their order, of a course given by its shifts: corners, direction of flight and pivot."""
    corners = shifted_corners(shifts)
    return tuple(_frame(name, corners[name], shift) for name, shift in zip(gate_order(), shifts, strict=True))


def _frame(name: str, quad: Array, shift: Array) -> GateFrame:
    gate = _published()["gates"][name]
    # The file says the way through with two digits: exact is the opening's own normal, towards where that points.
    points = _corners(quad)
    through = np.array(GateFrame(name, points).axes[0])
    ahead = perturbed(np.array([[*gate["direction"], 0.0]]), (0.0, 0.0), np.array([0.0, 0.0, shift[2]]))[0]
    x, y, z = (round(float(value), 9) + 0.0 for value in (through if through @ ahead > 0.0 else -through))  # no -0.0 in files
    pivot = round(gate["pivot"][0] + float(shift[0]), 6), round(gate["pivot"][1] + float(shift[1]), 6)
    return GateFrame(name, points, (x, y, z), pivot)


def perturbed(corners: Array, pivot: tuple[float, float], shift: Array) -> Array:
    """Return corners moved by (dx [m], dy [m]) and turned about a vertical pivot by dyaw [deg], positive clockwise seen from
    above.

    Args:
        corners: World [m], (n, 3).
        pivot: x and y of the vertical axis, world [m].
        shift: dx [m], dy [m], dyaw [deg].
    """
    angle = -math.radians(float(shift[2]))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    center = np.asarray(pivot, float)
    moved = corners.copy()
    moved[:, :2] = (corners[:, :2] - center) @ turn.T + center + shift[:2]
    return moved


def alphapilot(index: int = 0, seed: int = 0) -> Scene:
    """Return the race hall.

    Raises:
        AirworthyError: If the index is negative.
    """
    if index < 0:
        raise AirworthyError(f"The AlphaPilot hall was asked for with index {index}; expected 0 (nominal) or more.")
    return race_hall("alphapilot" if (index, seed) == (0, 0) else f"alphapilot:{index}@{seed}", drawn_shifts(index, seed))


def decoy_frames() -> tuple[GateFrame, ...]:
    """Return the gates that are not flown, which stand in the same places on every course; they have no direction."""
    race = gate_order()
    return tuple(
        GateFrame(name, _corners(np.array(gate["corners"], float)))
        for name, gate in _published()["gates"].items()
        if name not in race
    )


def race_hall(name: str, shifts: Array, decoy_beacons: bool = False) -> Scene:
    """Return the hall with the gates of a course.

    Args:
        name: Of the scene.
        shifts: Of the course, (gates, 3).
        decoy_beacons: Whether decoys bear beacons, too. Ours: whether those of 2019 were lit is not known.
    """
    b, corners = Builder(), shifted_corners(shifts)
    race = gate_order()
    _hall(b)
    frames = gate_frames(shifts)
    known = {frame.name: frame for frame in frames}
    for gate, quad in corners.items():
        _gate(b, known.get(gate) or GateFrame(gate, _corners(quad)), quad, lit=gate in known or decoy_beacons)
    path = nominal_path()
    pillars = _pillars(b, path)
    clutter = _clutter(b, path, list(corners.values()))
    start = _published()["start"]
    # Decoys' last: the noise of a beacon follows its number, and those of the race keep theirs.
    bearing = (*frames, *(decoy_frames() if decoy_beacons else ()))
    beacons = tuple(Beacon(frame.name, str(k + 1), point) for frame in bearing for k, point in enumerate(frame.corners))
    return Scene(
        name=name,
        shapes=b.shapes,
        materials=b.materials,
        textures=b.textures,
        instances=tuple(b.instances),
        lights=(Sun((-0.45, 0.35, -0.82), irradiance=2.5), *b.lights),
        sky=Sky(intensity=1.1),
        bounds=Region(LOWER, UPPER),
        start=Pose(tuple(start["position"]), math.radians(start["yaw_deg"])),
        gates=frames,
        beacons=beacons,
        description="AlphaPilot 2019 qualifier: eleven race gates, twelve decoys, in a procedural hall.",
        source=_published()["source"],
        facts={
            "gates": float(len(race)),
            "decoys": float(len(corners) - len(race)),
            "pillars": float(pillars),
            "clutter": float(clutter),
            "path_length_m": float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()),
        },
    )


def nominal_path() -> Array:
    """Start and the nominal gate centres in order, (12, 3) [m]."""
    published = _published()
    centers = [np.mean(published["gates"][name]["corners"], axis=0) for name in gate_order()]
    return np.array([published["start"]["position"], *centers])


# ---- parts --------------------------------------------------------------------------------------------------------------


def _corners(quad: Array) -> tuple[Vector3, Vector3, Vector3, Vector3]:
    a, b, c, d = ((round(float(p[0]), 6), round(float(p[1]), 6), round(float(p[2]), 6)) for p in quad)
    return a, b, c, d


def _around(quad: Array) -> Array:
    """Return the corners in cyclic order; markers are listed row by row on some gates."""
    center = quad.mean(axis=0)
    _, _, axes = np.linalg.svd(quad - center)
    angle = np.arctan2((quad - center) @ axes[1], (quad - center) @ axes[0])
    return quad[np.argsort(angle, kind="stable")]


def _side(frame: GateFrame, point: Array) -> str:
    """Tell where a part of a gate is, as who flies through sees it: "left", "right", "top" or "bottom" of the opening."""
    _, left, up = np.array(frame.axes)
    wide, high = frame.opening
    away = point - np.array(frame.center)
    across, above = float(away @ left) / wide, float(away @ up) / high
    if abs(across) > abs(above):
        return "left" if across > 0.0 else "right"
    return "top" if above > 0.0 else "bottom"


def _gate(b: Builder, frame: GateFrame, quad: Array, lit: bool) -> None:
    """Add a square tube around the opening, and posts down to the floor.

    Parts are named as who hits them says it ("Gate21, left side", "Gate21, left post"); the tube carries the gate's beacons.

    Args:
        b: Collects them.
        frame: The gate; a decoy has no direction.
        quad: Corners of its opening, (4, 3) [m].
        lit: Whether it bears beacons.
    """
    orange = b.material("race_gate", base_color=(0.95, 0.33, 0.02, 1.0), roughness=0.4, emissive=(0.10, 0.03, 0.0))
    decoy = b.material("decoy_gate", base_color=(0.16, 0.18, 0.21, 1.0), metallic=0.4, roughness=0.5)
    lamp = b.material("beacon", base_color=(1.0, 1.0, 1.0, 1.0), emissive=(2.0, 0.1, 0.3))
    material = orange if frame.direction is not None else decoy
    own = {"carries": frame.name} if lit else {}
    ring = _around(quad)
    center = ring.mean(axis=0)
    half = 0.5 * TUBE
    normal = np.array(frame.axes)[0]
    # Faces of all tubes lie along the gate's plane, so that none of them juts into the opening.
    facing = math.atan2(float(normal[1]), float(normal[0]))
    # Each side moves outwards by half the tube, and is longer by the tube, so that the opening stays free.
    for a, c in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        along = (c - a) / np.linalg.norm(c - a)
        out = 0.5 * (a + c) - center
        out -= (out @ along) * along
        out *= half / np.linalg.norm(out)
        start, end = a + out - half * along, c + out + half * along
        side = _side(frame, 0.5 * (a + c))
        name = f"{frame.name}, {side} side"
        b.beam(tuple(start), tuple(end), TUBE, TUBE, material, "gate", facing=facing, name=name, **own)
    for k, point in enumerate(quad if lit else ()):
        at = tuple(point + (point - center) / np.linalg.norm(point - center) * 0.1)
        b.ball(at, 0.06, lamp, "gate", collide=False, name=f"{frame.name}, lamp {k + 1}", **own)
    _carry(b, frame, ring, decoy)


def _carry(b: Builder, frame: GateFrame, ring: Array, material: str) -> None:
    """Add posts under a low gate; a high one hangs from the roof, so that its posts do not stand in other legs of the race.

    Args:
        b: Collects them.
        frame: The gate.
        ring: Its corners in cyclic order, (4, 3) [m].
        material: Name.
    """
    center = ring.mean(axis=0)
    order = np.argsort(ring[:, 2], kind="stable")
    hangs = bool(ring[order[0], 2] > _HANGING)
    for corner in ring[order[2:] if hangs else order[:2]]:
        out = (corner - center) * [1.0, 1.0, 0.0]
        x, y, z = (float(value) for value in corner + 0.5 * TUBE * out / max(float(np.linalg.norm(out)), 1e-9))
        low, high = (z + TUBE, UPPER[2]) if hangs else (0.0, z - TUBE)
        if high - low > 0.2:
            _, left, _ = np.array(frame.axes)
            side = "left" if float((corner - center) @ left) > 0.0 else "right"
            name = f"{frame.name}, {side} {'hanger' if hangs else 'post'}"
            b.upright((x, y, low), 0.02 if hangs else 0.05, round(high - low, 3), material, "gate", name=name)


def _hall(b: Builder) -> None:
    """Concrete floor with lanes, brick plinth, profiled walls, trusses and strips of light."""
    (x0, y0, _), (x1, y1, top) = LOWER, UPPER
    cx, cy, long, wide = 0.5 * (x0 + x1), 0.5 * (y0 + y1), x1 - x0, y1 - y0
    floor = b.material("hall_floor", "concrete", texture_size=5.0, roughness=0.6)
    sheet = b.material("hall_sheet", "corrugated", texture_size=4.0, metallic=0.2, roughness=0.6)
    brick = b.material("hall_brick", "brick", texture_size=3.0, roughness=0.9)
    roof = b.material("hall_roof", "corrugated", seed=1, texture_size=5.0, base_color=(0.7, 0.72, 0.75, 1.0))
    steel = b.material("hall_steel", "rust", texture_size=3.0, metallic=0.4, roughness=0.6)
    strip = b.material("skylight", base_color=(1.0, 1.0, 1.0, 1.0), emissive=(4.2, 4.4, 4.8))
    lane = b.material("lane", base_color=(0.85, 0.65, 0.06, 1.0), roughness=0.6)
    b.box((cx, cy, -0.15), (long + 1, wide + 1, 0.3), floor, "ground", name="floor")
    b.box((cx, cy, top + 0.15), (long + 1, wide + 1, 0.3), roof, "top_wall", name="roof")
    for sign, name in ((-1.0, "back_wall"), (1.0, "front_wall")):
        x = cx + sign * (0.5 * long + 0.15)
        b.box((x, cy, 0.5 * top), (0.3, wide + 0.6, top), sheet, name, name=name)
        b.box((x - sign * 0.2, cy, 1.5), (0.1, wide, 3.0), brick, name, name=f"{name}, plinth")
    for sign, name in ((-1.0, "right_wall"), (1.0, "left_wall")):
        y = cy + sign * (0.5 * wide + 0.15)
        b.box((cx, y, 0.5 * top), (long, 0.3, top), sheet, name, name=name)
        b.box((cx, y - sign * 0.2, 1.5), (long, 0.1, 3.0), brick, name, name=f"{name}, plinth")
    for k in range(10):
        y = y0 + (k + 0.5) * wide / 10
        _truss(b, y, steel, f"truss {k + 1}")
        for x in (-30.0, -14.0, 6.0, 22.0):
            b.box((x, y, top - 0.02), (5.0, 1.6, 0.03), strip, "top_wall", collide=False)
    for x in (-24.0, 12.0):
        for y in (-34.0, -10.0, 14.0, 38.0):
            b.lamp((x, y, top - 2.2), 900.0)
    for x in (-20.0, 4.0, 28.0):
        b.box((x, cy, 0.003), (0.15, wide - 6, 0.006), lane, "ground", collide=False)


def _truss(b: Builder, y: float, steel: str, name: str) -> None:
    """Add two chords and zig-zag webs across the hall, under the roof.

    Args:
        b: Collects them.
        y: Where it spans the hall [m].
        steel: Material.
        name: Of every part.
    """
    x0, x1, top = LOWER[0], UPPER[0], UPPER[2] - 0.3
    low = top - 1.4
    for z in (top, low):
        b.box((0.5 * (x0 + x1), y, z), (x1 - x0, 0.18, 0.18), steel, "top_wall", name=name)
    count = 16
    step = (x1 - x0) / count
    for k in range(count):
        a, c = ((low, top), (top, low))[k % 2]
        b.beam((x0 + k * step, y, a), (x0 + (k + 1) * step, y, c), 0.1, 0.1, steel, "top_wall", name=name)


def _distance_to_path(point: tuple[float, float], path: Array) -> float:
    """Horizontal distance of a point from the polyline [m]."""
    p, a, c = np.array(point), path[:-1, :2], path[1:, :2]
    edge = c - a
    share = np.clip(((p - a) * edge).sum(1) / np.maximum((edge**2).sum(1), 1e-9), 0.0, 1.0)
    return float(np.linalg.norm(a + share[:, None] * edge - p, axis=1).min())


def _pillars(b: Builder, path: Array) -> int:
    """Columns on a grid, left out near the path."""
    concrete = b.material("hall_pillar", "concrete", seed=3, texture_size=2.0, roughness=0.85)
    band = b.material("warning", "stripes", texture_size=0.8, roughness=0.6)
    count = 0
    for x in (-36.0, -24.0, -12.0, 0.0, 12.0, 24.0, 33.0):
        for y in (-42.0, -30.0, -18.0, -6.0, 6.0, 18.0, 30.0, 42.0):
            # 2.5 m more than asked for: gates may be moved by so much.
            if _distance_to_path((x, y), path) < CLEARANCE + 2.5 + 0.6:
                continue
            count += 1
            b.box((x, y, 0.5 * UPPER[2]), (0.8, 0.8, UPPER[2]), concrete, "pillar", name=f"pillar {count}")
            b.box((x, y, 1.1), (0.83, 0.83, 0.6), band, "pillar", name=f"pillar {count}")
    return count


_PAINT = ((0.48, 0.09, 0.06), (0.05, 0.18, 0.36), (0.09, 0.28, 0.13), (0.55, 0.36, 0.05), (0.30, 0.31, 0.33))


def _clutter(b: Builder, path: Array, gates: list[Array]) -> int:
    """Containers, crates and drums at random, away from the path, the gates and each other."""
    rng = np.random.default_rng([23, 1])
    taken: list[tuple[float, float, float]] = [(*quad.mean(axis=0)[:2].tolist(), 4.0) for quad in gates]
    count = 0
    for _ in range(400):
        x, y = rng.uniform(LOWER[0] + 4, UPPER[0] - 4), rng.uniform(LOWER[1] + 5, UPPER[1] - 5)
        reach = 4.2 if count % 3 == 0 else 1.8
        if _distance_to_path((x, y), path) < CLEARANCE + 2.5 + reach:
            continue
        if any(math.hypot(x - a, y - c) < r + reach + 1.0 for a, c, r in taken):
            continue
        taken.append((x, y, reach))
        _heap(b.at(round(x, 2), round(y, 2), 0.0, round(float(rng.uniform(0, 3.1)), 2)), count, rng)
        count += 1
        if count == 48:
            break
    return count


def _heap(b: Builder, number: int, rng: np.random.Generator) -> None:
    """Add one heap of clutter at the builder's origin."""
    if number % 3 == 0:
        for level in range(1 + int(rng.random() < 0.45)):
            k = int(rng.integers(len(_PAINT)))
            paint = b.material(f"container_{k}", "corrugated", texture_size=1.5, base_color=(*_PAINT[k], 1.0), roughness=0.55)
            at, name = (0.3 * level, 0.0, 1.3 + 2.6 * level), f"container {number + 1}"
            b.box(at, (6.06, 2.44, 2.59), paint, "object", 0.06 * level, name=name)
        return
    crate = b.material("crate", "crate", roughness=0.8)
    for dx, dy, side in ((-0.7, -0.3, 1.2), (0.7, 0.2, 1.0), (-0.1, 1.1, 0.9)):
        yaw, name = float(rng.uniform(-0.3, 0.3)), f"crates {number + 1}"
        b.wrapped((dx, dy, 0.5 * side), (side, side, side), crate, "object", yaw, name=name)
    if number % 3 == 1:
        b.wrapped((-0.6, -0.2, 1.65), (0.9, 0.9, 0.9), crate, "object", 0.4, name=f"crates {number + 1}")
