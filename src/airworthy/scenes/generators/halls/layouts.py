"""The flight halls in the manner of SOUS VIDE: one furnished hall in two layouts, and a cluttered workshop.

Key frames are those of the published courses `robustness`, `extended` and `cluttered`, in project frames (z up). The seed
varies the clutter along the walls; what stands near a course stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.scenes.generators.halls import furniture
from airworthy.scenes.generators.halls.builder import Builder
from airworthy.scenes.generators.halls.furniture import HallRoom, build_room
from airworthy.scenes.record import GateFrame, Pose, Region, Scene, Sky, Sun, Vector3

HALL = HallRoom((-8.5, 9.5), (-5.0, 5.0), 4.4, mats=(-6.5, -3.0, 7.5, 3.0))
WORKSHOP = HallRoom(
    (-3.4, 3.4), (-2.2, 9.4), 3.1, wall="brick", floor="concrete", window_sill=1.1, window_top=2.4, window_count=2
)
SUN = Sun((-0.35, -0.80, -0.49), irradiance=5.0)
SKY = Sky(intensity=1.0)

Piece = Callable[[Builder, np.random.Generator], None]


def mid_gate(index: int = 0, seed: int = 0) -> Scene:
    """Return the hall of the course `robustness`: gate at fo2, ladder above fo3, monitor facing the end."""
    b = _furnished(index, seed)
    gate = _gate(b, (-0.6, 0.0, 1.35), 0.0, (1.3, 1.1))
    for y in (-1.5, 1.5):
        furniture.padded_pillar(b.at(-0.6, y), HALL.height)
    # 0.01: on the mats, as all else that stands in the hall.
    furniture.ladder(b.at(2.5, 0.95, 0.01, 0.285))
    furniture.monitor(b.at(3.6, -1.0, 0.01), 0.95)
    # Beside the course, where they are seen and passed, but not on it.
    for x, y, yaw in ((-3.2, 2.3, 0.4), (-3.0, -2.2, 1.0), (0.8, -2.1, 0.2)):
        furniture.crate(b.at(x, y, 0.01), 0.7, yaw=yaw)
    furniture.carton(b.at(0.75, -2.15, 0.01), (0.4, 0.5, 0.3), 0.7, 0.6)
    furniture.drum(b.at(6.9, 1.6, 0.01))
    for x, y in ((-5.9, 2.3), (-5.9, -2.3), (6.9, -2.4)):
        furniture.cone(b.at(x, y, 0.01))
    text = "Furnished flight hall with a gate, a ladder to fly under and a monitor, for the course robustness."
    return _scene(b, HALL, "mid_gate", index, seed, ("robustness",), (gate,), text, Pose((-4.5, 1.0, 1.0), -1.57))


def flightroom(index: int = 0, seed: int = 0) -> Scene:
    """Return the hall of the course `extended`: two rows of pillars to fly around, a gate on the way out, a ladder on the way
    back.
    """
    b = _furnished(index, seed)
    gate = _gate(b, (0.0, 0.9, 1.0), 0.21, (1.3, 1.1))
    for x, y in ((2.3, 0.0), (-2.3, -0.4), (-3.9, -0.5)):
        furniture.padded_pillar(b.at(x, y), HALL.height)
    furniture.pillar(b.at(4.0, 0.1), HALL.height)
    furniture.ladder(b.at(0.0, -1.4, 0.01, math.pi))
    furniture.monitor(b.at(-6.6, 2.6, 0.01, -0.86), 0.8)
    for x, y, side, yaw in ((2.3, -2.9, 0.7, 0.3), (6.8, 0.2, 0.8, 0.1), (6.8, -1.0, 0.6, 0.5), (-6.5, -1.6, 0.7, 0.2)):
        furniture.crate(b.at(x, y, 0.01), side, yaw=yaw)
    furniture.drum(b.at(2.0, 2.9, 0.01), (0.55, 0.10, 0.05))
    furniture.plant(b.at(-2.4, 2.5, 0.01), 1)
    for x, y in ((6.6, 2.4), (-6.3, -3.1)):
        furniture.cone(b.at(x, y, 0.01))
    text = "Furnished flight hall with pillars, a gate and a ladder, for the course extended."
    return _scene(b, HALL, "flightroom", index, seed, ("extended",), (gate,), text, Pose((-5.0, 1.0, 1.0), 0.0))


def backroom(index: int = 0, seed: int = 0) -> Scene:
    """Return the workshop of the course `cluttered`: a lap around a row of benches, with about 1.0 m between obstacles."""
    _check(index, seed)
    b, rng = Builder(), np.random.default_rng([7, seed & 0xFFFFFFFF, index])
    build_room(b, WORKSHOP)
    _island(b, rng)
    _aisles(b, rng)
    _workshop_ends(b)
    text = "Cluttered workshop, flown near the ground around a row of benches, for the course cluttered."
    return _scene(b, WORKSHOP, "backroom", index, seed, ("cluttered",), (), text, Pose((1.5, 0.0, 0.7), 1.57))


# ---- parts --------------------------------------------------------------------------------------------------------------


def _check(index: int, seed: int) -> None:
    if index < 0 or not -(2**63) <= seed < 2**63:
        raise AirworthyError(
            f"A hall was asked for with index {index} and seed {seed}; expected an index of at least 0 and a 64-bit seed."
        )


def _gate(b: Builder, center: Vector3, yaw: float, opening: tuple[float, float]) -> GateFrame:
    """Return a gate that stands on the mats, and its opening's corners in clockwise order from the upper left as seen in
    flight.
    """
    x, y, z = center
    furniture.gate(b.at(x, y, 0.01, yaw), opening, z - 0.01)
    left = (-math.sin(yaw), math.cos(yaw))
    # Rounded: a file keeps what a person can read, and equals the scene that wrote it.
    corners = []
    for side, up in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        out = 0.5 * side * opening[0]
        corners.append((round(x + out * left[0], 6), round(y + out * left[1], 6), round(z + 0.5 * up * opening[1], 6)))
    a, c, d, e = corners
    return GateFrame("gate", (a, c, d, e), (round(math.cos(yaw), 9) + 0.0, round(math.sin(yaw), 9) + 0.0, 0.0), (x, y))


def _furnished(index: int, seed: int) -> Builder:
    """Return the hall with what stands along its walls."""
    _check(index, seed)
    # The first number tells this hall's draws from those of the others.
    b, rng = Builder(), np.random.default_rng([3, seed & 0xFFFFFFFF, index])
    build_room(b, HALL)
    _right_wall(b, rng)
    _left_wall(b, rng)
    _end_walls(b)
    return b


def _jitter(rng: np.random.Generator, spread: float) -> float:
    # Whole millimetres.
    return round(float(rng.uniform(-spread, spread)), 3)


def _right_wall(b: Builder, rng: np.random.Generator) -> None:
    """Racks, workbenches with screens, and pictures on the wall at smaller y."""
    for k, x in enumerate((-7.4, -5.75)):
        furniture.shelf(b.at(x, -4.7, 0.0, 0.5 * math.pi), int(rng.integers(1000)) + k)
    for k, x in enumerate((-3.2, -1.2, 5.2)):
        _workplace(b, x + _jitter(rng, 0.1), -4.45, 0.5 * math.pi, k, rng)
    furniture.whiteboard(b.at(1.9, -4.55, 0.0, 0.5 * math.pi))
    furniture.shelf(b.at(7.4, -4.7, 0.0, 0.5 * math.pi), int(rng.integers(1000)))
    furniture.plant(b.at(8.9 + _jitter(rng, 0.1), -4.4), 0, 1.5)
    for k, (x, kind) in enumerate(((-3.2, "poster"), (0.2, "tag"), (3.4, "poster"), (5.2, "poster"), (-8.1, "tag"))):
        furniture.poster(b.at(x, -5.0, 0.0, 0.5 * math.pi), 2.25, (0.7, 0.7) if kind == "tag" else (0.75, 1.05), kind, k)
    furniture.extinguisher(b.at(4.3, -5.0, 0.0, 0.5 * math.pi))


def _workplace(b: Builder, x: float, y: float, yaw: float, seed: int, rng: np.random.Generator) -> None:
    """Add a bench with a screen, a chair, and things on and under it."""
    spot = b.at(x, y, 0.0, yaw)
    furniture.table(spot)
    c, s = math.cos(yaw), math.sin(yaw)

    def there(dx: float, dy: float, z: float, turn: float = 0.0) -> Builder:
        return b.at(x + c * dx - s * dy, y + s * dx + c * dy, z, yaw + turn)

    _desk_screen(there(-0.18, -0.3, 0.74), seed)
    furniture.carton(there(-0.1, 0.5, 0.74), (0.3, 0.36, 0.24), yaw=_jitter(rng, 0.3))
    furniture.carton(there(0.0, 0.2, 0.235), (0.4, 0.5, 0.3))
    furniture.chair(
        there(0.75, _jitter(rng, 0.3), 0.0, _jitter(rng, 0.9) + math.pi), (0.10, 0.12, 0.15) if seed % 2 else (0.35, 0.08, 0.06)
    )


def _desk_screen(b: Builder, seed: int) -> None:
    """Add a small screen with a keyboard, standing on a desk."""
    body = b.material("monitor_body", base_color=(0.03, 0.03, 0.035, 1.0), roughness=0.35)
    key = f"screen_{seed}" if seed else "screen"
    picture = b.material(f"screen_{seed}", "screen", seed=seed, emissive=(0.9, 0.9, 0.9), emissive_map=key)
    b.box((-0.025, 0.0, 0.32), (0.03, 0.58, 0.35), body, "monitor")
    b.wrapped((0.0, 0.0, 0.32), (0.012, 0.55, 0.32), picture, "monitor")
    b.box((-0.03, 0.0, 0.08), (0.03, 0.06, 0.16), body, "monitor")
    b.box((-0.02, 0.0, 0.01), (0.18, 0.24, 0.01), body, "monitor")
    b.box((0.3, 0.0, 0.012), (0.14, 0.42, 0.01), body)


def _left_wall(b: Builder, rng: np.random.Generator) -> None:
    """Below the windows: low racks, crates, drums, plants and lamps."""
    low = (0.45, 1.5, 0.95)
    for k, x in enumerate((-6.9, -2.9, 6.1)):
        furniture.shelf(b.at(x, 4.7, 0.0, -0.5 * math.pi), int(rng.integers(1000)) + k, low, 3)
    for x, side in ((-4.9, 0.7), (-4.2, 0.55), (3.2, 0.8), (4.1, 0.6)):
        furniture.crate(b.at(x, 4.5 - _jitter(rng, 0.08), 0.0, _jitter(rng, 0.2)), side)
    furniture.crate(b.at(3.25, 4.5, 0.0, 0.3), 0.5, 0.8)
    for x, color in ((-0.9, (0.06, 0.25, 0.42)), (-0.25, (0.06, 0.25, 0.42)), (-0.55, (0.55, 0.10, 0.05))):
        furniture.drum(b.at(x, 4.6 if x != -0.55 else 4.05), color)
    for k, x in enumerate((0.9, 8.8, -8.0)):
        furniture.plant(b.at(x, 4.5), 2 + k, 1.2 + 0.2 * k)
    furniture.tripod_light(b.at(1.9, 4.3, 0.0, -2.0))


def _end_walls(b: Builder) -> None:
    """Add a roller door and tags at one end; lockers, a door and a picture at the other."""
    # Both ends have something to tell them apart by, for people and for cameras.
    sheet = b.material("roller_door", "corrugated", texture_size=1.5, metallic=0.3, roughness=0.5)
    trim = b.material("warning", "stripes", texture_size=0.4, roughness=0.6)
    x1, x0 = HALL.x[1], HALL.x[0]
    b.box((x1 - 0.02, 0.8, 1.6), (0.04, 3.4, 3.2), sheet, "front_wall")
    for y in (-1.0, 2.6):
        b.box((x1 - 0.04, y, 1.6), (0.08, 0.14, 3.2), trim, "front_wall")
    for k, y in enumerate((-2.4, 3.7)):
        furniture.poster(b.at(x1, y, 0.0, math.pi), 2.0, (0.9, 0.9), "tag", 10 + k)
    grey = (b.material("locker", base_color=(0.45, 0.49, 0.52, 1.0), metallic=0.4, roughness=0.45), "furniture")
    dark = b.material("dark_metal", base_color=(0.05, 0.05, 0.06, 1.0), metallic=0.6, roughness=0.5)
    for k in range(5):
        y = -3.6 + 0.46 * k
        b.box((x0 + 0.26, y, 0.95), (0.5, 0.45, 1.9), *grey)
        b.box((x0 + 0.515, y + 0.15, 1.0), (0.02, 0.03, 0.14), dark)
        for slot in range(4):
            b.box((x0 + 0.511, y, 1.55 + 0.05 * slot), (0.006, 0.22, 0.015), dark, collide=False)
    door = b.material("door", "wood", seed=2, texture_size=2.0, roughness=0.4)
    b.box((x0 + 0.02, 1.6, 1.05), (0.05, 1.0, 2.1), door, "back_wall")
    b.ball((x0 + 0.08, 1.25, 1.05), 0.03, dark, "back_wall")
    furniture.poster(b.at(x0, 3.4), 1.9, (1.6, 1.0), "poster", 21)
    furniture.poster(b.at(x0, -0.4), 2.0, (0.9, 0.9), "tag", 12)


# The course's lanes run at x = 1.47 to 1.57 and x = -1.54 to -1.40: benches to 0.98 and racks from 1.99 m leave about 1.0 m.
_OUTER = 1.99


def _island(b: Builder, rng: np.random.Generator) -> None:
    """Benches back to back, with screens, boxes and stacks; ends at y = 0.6 and 6.4."""
    size = (0.98, 1.55, 0.74)
    for k, y in enumerate((1.5, 3.3, 5.1)):
        for side in (-1.0, 1.0):
            furniture.table(b.at(side * 0.5 * size[0], y), size)
            _desk_screen(b.at(side * 0.12, y - 0.35, 0.74, 0.0 if side > 0 else math.pi), (k + (side > 0)) % 3)
            furniture.carton(b.at(side * 0.5, y + 0.45, 0.74, _jitter(rng, 0.2)), (0.32, 0.38, 0.26))
            furniture.crate(b.at(side * 0.45, y, 0.235), 0.36)
    furniture.drum(b.at(0.55, 6.35))
    furniture.crate(b.at(-0.35, 6.15), 0.6, yaw=0.1)
    furniture.plant(b.at(-0.5, 0.8), 4, 1.25)
    furniture.crate(b.at(0.45, 0.52), 0.5, yaw=0.2)


def _aisles(b: Builder, rng: np.random.Generator) -> None:
    """Racks on both sides, their fronts at the lanes."""
    deep = 0.45
    for k, y in enumerate((0.4, 2.05, 5.0)):
        furniture.shelf(b.at(_OUTER + 0.5 * deep, y, 0.0, math.pi), int(rng.integers(1000)) + k, (deep, 1.5, 1.9))
    furniture.padded_pillar(b.at(_OUTER + 0.2, 3.5), WORKSHOP.height)
    furniture.drum(b.at(_OUTER + 0.35, 6.4))
    for k, y in enumerate((1.0, 4.3)):
        furniture.shelf(b.at(-_OUTER - 0.5 * deep, y), int(rng.integers(1000)) + 7 * k, (deep, 1.5, 1.9))
    furniture.whiteboard(b.at(-_OUTER - 0.35, 2.65), 1)
    for y, color in ((5.6, (0.06, 0.33, 0.14)), (6.3, (0.60, 0.42, 0.05))):
        furniture.drum(b.at(-_OUTER - 0.35, y), color)
    furniture.padded_pillar(b.at(-_OUTER - 0.25, -0.4), WORKSHOP.height)


def _workshop_ends(b: Builder) -> None:
    """Add what stands beyond the two short sides of the lap."""
    for x, y, side, yaw in ((0.3, 8.05, 0.7, 0.2), (-0.6, 8.15, 0.6, -0.1), (2.3, 8.3, 0.8, 0.3), (-2.4, 8.2, 0.8, 0.1)):
        furniture.crate(b.at(x, y), side, yaw=yaw)
    furniture.carton(b.at(0.3, 8.05), (0.45, 0.45, 0.35), 0.7, 0.5)
    furniture.carton(b.at(-2.4, 8.2), (0.5, 0.4, 0.3), 0.8, 0.2)
    furniture.ladder(b.at(1.2, 8.6, 0.0, 0.5 * math.pi), 1.9, 1.1)
    furniture.chair(b.at(0.35, -0.95, 0.0, 1.8), (0.08, 0.20, 0.35))
    furniture.crate(b.at(-0.8, -1.0), 0.6, yaw=0.3)
    furniture.carton(b.at(1.6, -1.25), (0.6, 0.5, 0.4), yaw=0.1)
    furniture.tripod_light(b.at(-2.6, -1.5, 0.0, 1.0))
    for k, (x, kind) in enumerate(((-1.6, "tag"), (0.2, "poster"), (1.8, "tag"))):
        furniture.poster(b.at(x, WORKSHOP.y[0], 0.0, 0.5 * math.pi), 1.7, (0.8, 0.8), kind, 30 + k)
    furniture.extinguisher(b.at(3.4, 7.4, 0.0, math.pi))


def _scene(
    b: Builder,
    room: HallRoom,
    name: str,
    index: int,
    seed: int,
    courses: tuple[str, ...],
    gates: tuple[GateFrame, ...],
    description: str,
    start: Pose,
) -> Scene:
    """Return the finished record."""
    lower, upper = (room.x[0], room.y[0], 0.0), (room.x[1], room.y[1], room.height)
    return Scene(
        name=f"{name}:{index}@{seed}" if (index, seed) != (0, 0) else name,
        shapes=b.shapes,
        materials=b.materials,
        textures=b.textures,
        instances=tuple(b.instances),
        lights=(SUN, *b.lights),
        sky=SKY,
        bounds=Region(lower, upper),
        start=start,
        spawn=(Region(_shifted(start.position, -0.2), _shifted(start.position, 0.2)),),
        gates=gates,
        courses=courses,
        description=description,
        source="generated by airworthy; places of gate, ladder and monitor from the key frames of the published courses",
        facts={"instances": float(len(b.instances)), "width_m": upper[1] - lower[1], "length_m": upper[0] - lower[0]},
    )


def _shifted(position: Vector3, by: float) -> Vector3:
    x, y, z = position
    return (x + by, y + by, z + by)
