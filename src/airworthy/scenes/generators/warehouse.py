"""Warehouse: a hall of steel frames with racks full of goods, machines, docks of which one is open, lamps and skylights.

Everything is hit as it is seen. Measures, colours, goods, what stands about and which lamps burn are drawn; nothing of it is a
benchmark's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Mesh
from airworthy.scenes.actors import add_actor
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.shade import open_shares
from airworthy.scenes.buildings.surfaces import Fittings
from airworthy.scenes.figures.figure import FigureForm
from airworthy.scenes.figures.stances import Stance
from airworthy.scenes.figures.wearing import with_figure
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.people import person
from airworthy.scenes.record import Light, Pose, Region, Scene, Sky, SpotLight
from airworthy.scenes.sky.weather import under_sky
from airworthy.scenes.warehouses import overhead, shell
from airworthy.scenes.warehouses.doors import GATE, door, gate
from airworthy.scenes.warehouses.goods import LOADS, load, pallet, pallet_stack
from airworthy.scenes.warehouses.labels import LABEL_NUMBERS, label_material
from airworthy.scenes.warehouses.machines import equipment
from airworthy.scenes.warehouses.parts import HALL_SURFACES, Color3, facing_quad, included, label
from airworthy.scenes.warehouses.racks import BAY, DEPTH, LEVELS, SLOTS, RackPaint, bay_level, guard, upright
from airworthy.scenes.warehouses.shell import HallMeasures, HallWall, Hole

__all__ = ["warehouse", "warehouse_scene"]

_HALF_WIDTH = 12.0
_ROWS = (-10.75, -6.45, -5.15, -0.85, 0.45)
"""Middles of racks [m]: one along a wall, then pairs back to back."""
_AISLES = (-8.6, -3.0)
"""Middles of what trucks drive along between racks [m]."""
_FLIGHT = -3.0
"""y of start and goal [m]."""
_GATES = (-9.0, -3.0, 3.0)
"""Middles of the docks [m]; the second is open."""
_LAMP_ROWS = (-8.6, -3.0, 2.8, 8.2)
_LAMP_HEIGHT = 6.35
_LAMP_STEP = 9.0
_LAMP_RANGE = 10.5
_LAMP_RADIUS = 0.15
_LAMP_COLOR = (1.0, 0.955, 0.87)
_LAMP_INTENSITY = 130.0
_SUN = (0.60, 0.42)
"""Elevation and azimuth [rad]: it shines into the docks."""
_INSIDE = 0.8
"""Share of the sky's light that reaches what stands in the hall, by windows and from wall to wall."""
_YELLOW: Color3 = (0.95, 0.62, 0.06)
_WHITE: Color3 = (0.9, 0.9, 0.88)
_PAINTS = (
    RackPaint((0.02, 0.075, 0.26), (0.56, 0.17, 0.012)),
    RackPaint((0.30, 0.31, 0.32), (0.58, 0.34, 0.012)),
    RackPaint((0.035, 0.16, 0.09), (0.56, 0.17, 0.012)),
    RackPaint((0.03, 0.06, 0.13), (0.50, 0.03, 0.02)),
)
_FRAMES: tuple[Color3, ...] = ((0.10, 0.16, 0.22), (0.36, 0.37, 0.38), (0.20, 0.055, 0.04), (0.07, 0.15, 0.12))
_SHEETS: tuple[Color3, ...] = ((0.90, 0.90, 0.87), (0.72, 0.77, 0.80), (0.86, 0.82, 0.72))


@dataclass
class _Hall:
    """What is put together."""

    measures: HallMeasures
    side: float
    """-1: all of it is mirrored across the hall's middle line."""
    frame: Color3
    rack: RackPaint
    bays: int
    first: float
    """x where racks begin [m]."""
    rng: np.random.Generator
    fittings: Fittings
    blocks: list[tuple[Array, Array]] = field(default_factory=list)
    """Boxes of what hides light from floor and walls."""

    @property
    def last(self) -> float:
        """x where racks end [m]."""
        return self.first + self.bays * BAY

    def put(
        self, name: str, x: float, y: float, z: float = 0.0, turn: float = 0.0, semantic: str = "object", share: float = _INSIDE
    ) -> None:
        """Stand a thing that `_shape` knows; y and turn [rad] as before mirroring."""
        shape = self.fittings.shapes.get(f"hall/{name}")
        if shape is None:
            shape = _even(_shape(self, name), share)
        angle = turn if self.side > 0.0 else math.pi - turn
        attitude = (0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle))
        self.fittings.thing(f"hall/{name}", shape, HALL_SURFACES, (x, self.side * y, z), attitude, semantic)


def warehouse(index: int, seed: int) -> Scene:
    """Return a warehouse.

    Args:
        index: Which one, from 0 on.
        seed: Of the series.
    """
    return warehouse_scene(index, seed)


def warehouse_scene(index: int, seed: int = 0, map_size: int = 512) -> Scene:
    """Return a warehouse.

    Args:
        index: Which one, from 0 on.
        seed: Of the series.
        map_size: Side of its materials' maps [px].
    """
    index, seed = checked("index", index, 0), checked("seed", seed)
    hall = _drawn_hall(index, generator("warehouse", index, seed), map_size)
    material, texture = label_material()
    hall.fittings.materials["labels"], hall.fittings.textures["labels"] = material, texture
    loads = _racks(hall)
    lamps = _lamps(hall)
    lights: tuple[Light, ...] = tuple(_light(hall, x, y) for x, y, burns in lamps if burns)
    _stage(hall)
    machines = _machines(hall)
    _walls(hall)
    _roof(hall, lamps)
    _floor(hall)
    lx, rng = hall.measures.half_length, hall.rng
    scene = Scene(
        f"warehouse:{index}" + (f"@{seed}" if seed else ""),
        lights=lights,
        bounds=Region((-lx, -_HALF_WIDTH, 0.0), (lx, _HALF_WIDTH, hall.measures.eave - 0.6)),
        start=Pose((-lx + 2.4, hall.side * _FLIGHT, 1.8), 0.0),
        goal=Pose((lx - 3.0, hall.side * _FLIGHT, 1.8), 0.0),
        description=f"warehouse {index} of seed {seed}: {len(_ROWS) * hall.bays} bays, {loads} loads, {machines} machines",
        source="Generated; pallets after EN 13698-1, what else there is after the proportions of common makes",
        facts={
            "bays": float(len(_ROWS) * hall.bays),
            "loads": float(loads),
            "machines": float(machines),
            "lamps": float(len(lights)),
            "length_m": 2.0 * lx,
        },
    )
    scene = _people(hall.fittings.joined(scene, looks=False), hall, rng)
    return under_sky(scene, Sky(model="daylight", elevation=_SUN[0], azimuth=hall.side * _SUN[1], turbidity=2.5))


def _drawn_hall(index: int, rng: np.random.Generator, map_size: int) -> _Hall:
    half = 20.0 if index == 0 else (17.5, 20.0, 22.5)[int(rng.random() * 3)]
    eave = 7.2 + 0.5 * rng.random()
    bays = round(2.0 * half / 5.0)
    lit = tuple(k for k in range(bays) if k % 2 == 1)
    measures = HallMeasures(
        half, _HALF_WIDTH, eave, eave + 1.5, 5.0, index == 0 or rng.random() < 0.5, _SHEETS[int(rng.random() * 3)], lit
    )
    count = int((2.0 * half - 13.5) / BAY)
    number = 0 if index == 0 else int(rng.random() * len(_PAINTS))
    frame = _FRAMES[int(rng.random() * len(_FRAMES))]
    side = 1.0 if index == 0 or rng.random() < 0.5 else -1.0
    return _Hall(measures, side, frame, _PAINTS[number], count, -half + 4.5, rng, Fittings(map_size))


def _shape(hall: _Hall, name: str) -> PatchMesh:
    """Return the shape of a name: "load ...", "pallet", "pallets 5", and the parts of racks and roofs."""
    kind, _, rest = name.partition("/")
    measures = hall.measures
    makers = {
        "load": lambda: load(rest),
        "pallets": lambda: pallet_stack(int(rest)),
        "pallet": pallet,
        "guard": guard,
        "row": lambda: _row_sign(int(rest)),
        "column": lambda: overhead.column(measures, hall.frame),
        "pipes": lambda: overhead.wall_pipes(measures.eave - 0.6),
        "gate": lambda: gate(int(rest[0]), rest.endswith("open"), (0.62, 0.63, 0.63)),
        "door": door,
    }
    return makers[kind]() if kind in makers else equipment(name)


def _even(patches: PatchMesh, share: float = _INSIDE) -> Mesh:
    """Return the mesh of a thing that the sky's light reaches evenly."""
    return patches.mesh(np.full(len(patches.surface()[0]), share))


def _row_sign(number: int) -> PatchMesh:
    """Return the sign of a row, for the end of a rack: it looks along x."""
    patches = PatchMesh()
    patches.box((0.0, -0.24, 2.3), (0.02, 0.24, 2.78), 1, (0.3, 0.3, 0.3))
    row = LABEL_NUMBERS["rack"] + number % 4
    label(patches, facing_quad((0.022, 0.0, 2.54), (1.0, 0.0, 0.0), 0.46, 0.46), row, (1.0, 1.0, 1.0), (0.4375, 0.5625))
    return patches


# ---- Racks ------------------------------------------------------------------------------------------------------------------


def _racks(hall: _Hall) -> int:
    """Stand racks and fill them; return how many loads stand in them."""
    rng, names, count = hall.rng, list(LOADS), 0
    post, levels = upright(hall.rack).mesh(), [bay_level(hall.rack, k).mesh() for k in range(3)]
    for row, y in enumerate(_ROWS):
        steel = PatchMesh()
        for k in range(hall.bays + 1):
            included(steel, post, (k * BAY, 0.0, 0.0))
        hall.put("guard", hall.first - 0.25, y)
        hall.put("guard", hall.last + 0.25, y)
        hall.put(f"row/{(row + 1) // 2}", hall.last + 0.06, y)
        for k in range(hall.bays):
            # Goods of one kind stand together, as they come.
            favourite = names[int(rng.random() * len(names))]
            full = 0.9 if rng.random() < 0.75 else 0.35
            for level, z in enumerate(LEVELS):
                if level:
                    included(steel, levels[int(rng.random() * 3)], (k * BAY, 0.0, z))
                for slot in SLOTS:
                    if rng.random() > full:
                        if rng.random() < 0.2:
                            hall.put("pallet", hall.first + (k + 0.5) * BAY + slot, y, z)
                        continue
                    name = favourite if rng.random() < 0.55 else names[int(rng.random() * len(names))]
                    x = hall.first + (k + 0.5) * BAY + slot + 0.04 * (rng.random() - 0.5)
                    turn = (0.0 if rng.random() < 0.5 else math.pi) + 0.04 * (rng.random() - 0.5)
                    hall.put(f"load/{name}", x, y + 0.05 * (rng.random() - 0.5), z, turn, share=0.8 * _INSIDE)
                    count += 1
        where = (hall.first, hall.side * y, 0.0)
        hall.fittings.thing(f"hall/rack {row}", _even(steel), HALL_SURFACES, where, semantic="shelf")
        low = np.array([hall.first, hall.side * y - 0.5 * DEPTH, 0.3])
        high = np.array([hall.last, hall.side * y + 0.5 * DEPTH, 6.0])
        hall.blocks.append((low, high))
    return count


# ---- On the floor -----------------------------------------------------------------------------------------------------------


def _stage(hall: _Hall) -> None:
    """Put goods where they wait for trucks, the forklift, stacks of pallets, posts and cones."""
    rng, names, lx = hall.rng, list(LOADS), hall.measures.half_length
    for y in (-10.2, -7.6, 0.6):
        for k in range(3):
            x = hall.last + 2.6 + 1.35 * k
            if x > lx - 3.6 or rng.random() < 0.25:
                continue
            turn = 0.12 * (rng.random() - 0.5)
            hall.put(f"load/{names[int(rng.random() * len(names))]}", x, y + 0.2 * (rng.random() - 0.5), 0.0, turn)
    for k, count in enumerate((9, 6, 12)):
        hall.put(f"pallets/{count}", -lx + 0.9 + 0.05 * rng.random(), -7.4 + 1.35 * k, 0.0, 0.08 * (rng.random() - 0.5))
    x, y = lx - 5.2, 4.6
    turn = 2.1 + 0.5 * rng.random()
    hall.put("forklift", x, y, 0.0, turn, "vehicle")
    ahead = np.array([math.sin(turn), -math.cos(turn)])
    hall.put("load/cartons 1", x + 1.42 * ahead[0], y + 1.42 * ahead[1], 0.06, turn)
    hall.put("hand truck", hall.last + 2.0, 2.4, 0.0, 0.9 + rng.random())
    hall.put("hand truck", -lx + 2.6, 4.0, 0.0, -0.6)
    for center in _GATES:
        for side in (-1.0, 1.0):
            hall.put("post", lx - 0.75, center + side * (0.5 * GATE[0] + 0.45), semantic="pillar")
        hall.put("dock plate", lx - 0.05, center, semantic="ground")
    for k in range(3):
        hall.put("cone", hall.last + 1.4 + 0.5 * rng.random(), 4.6 + 1.1 * k)
    hall.put("skip", -lx + 1.6, 9.6, 0.0, 0.1)


def _machines(hall: _Hall) -> int:
    """Stand machines in the part without racks; return how many."""
    lx, rng = hall.measures.half_length, hall.rng
    places = [
        ("turning centre", -0.78 * lx + 1.6, 9.6),
        ("turning centre", -0.78 * lx + 7.4, 9.6),
        ("press", -0.78 * lx + 12.0, 9.7),
        ("turning centre" if rng.random() < 0.5 else "press", -0.78 * lx + 16.0, 9.6),
    ]
    for name, x, y in places:
        hall.put(name, x + 0.3 * (rng.random() - 0.5), y, 0.0, 0.04 * (rng.random() - 0.5))
        middle = np.array([x, hall.side * y, 0.0])
        hall.blocks.append((middle - np.array([1.5, 0.9, 0.0]), middle + np.array([1.5, 0.9, 2.0])))
    x = -0.78 * lx + 19.6
    hall.put("compressor", x + 0.6, 10.4)
    hall.put("bench", x + 4.6, 10.7)
    hall.put("shelf", x + 7.2, 10.9)
    hall.put("cabinet", x + 9.6, 11.0)
    hall.put("bench", -0.78 * lx + 4.2, 5.9, 0.0, math.pi)
    hall.put("shelf", -0.78 * lx + 7.2, 5.8, 0.0, math.pi)
    hall.put("load/box 1", -0.78 * lx + 10.0, 7.0, 0.0, 0.3)
    hall.put("load/box 2", -0.78 * lx + 14.2, 7.3, 0.0, 1.5)
    hall.put("load/cartons 5", -0.78 * lx + 17.6, 7.2, 0.0, 0.1)
    return len(places)


def _people(scene: Scene, hall: _Hall, rng: np.random.Generator) -> Scene:
    """Let two people in bright shirts stand where work is done."""
    places = ((-0.78 * hall.measures.half_length + 9.0, 7.9, 1.5), (hall.last + 3.6, 3.6, 2.6))
    for number, (x, y, yaw) in enumerate(places):
        height = round(1.66 + 0.2 * rng.random(), 2)
        kit = person(
            f"person {number}",
            height,
            position=(x, hall.side * y, 0.0),
            yaw=hall.side * yaw,
            shirt=((0.75, 0.28, 0.01), (0.55, 0.62, 0.02))[number],
        )
        drawn = generator("worker", scene.name, number)
        look, weight = float(0.7 * (drawn.random() - 0.5)), float(np.clip(0.25 + 0.4 * drawn.normal(), -1.0, 0.6))
        form = FigureForm(height, weight, False, "worker", int(drawn.random() * 10_000), Stance(look=round(look, 2)))
        scene = add_actor(scene, with_figure(kit, form))
    return scene


# ---- Walls, roof, floor -----------------------------------------------------------------------------------------------------


def _shaded(hall: _Hall, name: str, patches: PatchMesh, semantic: str, inside: bool = True, turn: float = 0.0) -> None:
    """Stand a part of the shell, turned about z, with the shade of racks and machines."""
    points, normals = patches.surface()
    c, s = math.cos(turn), math.sin(turn)
    spin = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    low, high = np.array([b[0] for b in hall.blocks]), np.array([b[1] for b in hall.blocks])
    shares = open_shares(points @ spin.T, normals @ spin.T, low, high) * _INSIDE if inside else np.ones(len(points))
    attitude = (0.0, 0.0, math.sin(0.5 * turn), math.cos(0.5 * turn))
    hall.fittings.thing(f"hall/{name}", patches.mesh(shares), HALL_SURFACES, attitude=attitude, semantic=semantic)


def _walls(hall: _Hall) -> None:
    """Raise four walls with windows, docks and doors, and what hangs on them."""
    measures, rng = hall.measures, hall.rng
    lx, ly, eave, ridge = measures.half_length, _HALF_WIDTH, measures.eave, measures.ridge
    level = ((0.0, eave), (2.0 * lx, eave))
    gable = ((0.0, eave), (ly, ridge), (2.0 * ly, eave))
    windows = tuple(
        Hole(float(a) + 0.7, float(a) + 4.3, 4.45, 5.75, True)
        for a in np.arange(0.0, 2.0 * lx - 1.0, 5.0)
        if rng.random() < 0.8
    )
    docks = tuple(
        Hole(ly + hall.side * center - 0.5 * GATE[0], ly + hall.side * center + 0.5 * GATE[0], 0.0, GATE[1])
        for center in _GATES
    )
    walls = {
        "right": (HallWall((-lx, -ly), (1.0, 0.0), 2.0 * lx, windows), level),
        "docks": (HallWall((lx, -ly), (0.0, 1.0), 2.0 * ly, docks), gable),
        "left": (HallWall((lx, ly), (-1.0, 0.0), 2.0 * lx, windows), level),
        "back": (HallWall((-lx, ly), (0.0, -1.0), 2.0 * ly, (Hole(6.0, 18.0, 4.45, 5.75, True),)), gable),
    }
    for name, (wall, tops) in walls.items():
        _shaded(hall, f"wall/{name}", shell.wall_patches(wall, measures, tops, rng), "wall")
    for number, center in enumerate(_GATES):
        hall.put(f"gate/{number + 1}{' open' if number == 1 else ''}", lx, center, 0.0, -0.5 * math.pi, "wall")
    for x, y, turn in ((lx - 0.12, 7.6, -0.5 * math.pi), (-lx + 0.12, -1.2, 0.5 * math.pi)):
        hall.put("door", x, y, 0.0, turn, "wall")
        hall.put("exit sign", x, y, 2.5, turn)
        hall.put("extinguisher", x, y + 1.5, 0.0, turn)
    hall.put("extinguisher", -lx + 7.6, ly - 0.12)
    hall.put("extinguisher", 0.2 * lx, ly - 0.12)
    hall.put("pipes", -lx + 0.14, 8.4, 0.0, -0.5 * math.pi)
    hall.put("pipes", 0.5 * lx + 0.9, ly - 0.14, 0.0, math.pi)


def _roof(hall: _Hall, lamps: list[tuple[float, float, bool]]) -> None:
    """Lay the roof, and hang under it what runs along the hall, and lamps: one mesh, which rays find fast."""
    measures = hall.measures
    lx, low = measures.half_length, measures.eave - 0.42
    patches = shell.roof_patches(measures)
    steel = overhead.girder(measures, hall.frame).mesh()
    for k, x in enumerate(measures.frames):
        end = k in (0, len(measures.frames) - 1)
        if not end:
            included(patches, steel, (float(x), 0.0, 0.0))
        for side in (-1.0, 1.0):
            inner = float(np.clip(x, -lx + 0.2, lx - 0.2))
            hall.put("column", inner, side * (measures.half_width - 0.30), 0.0, 0.0 if side > 0.0 else math.pi, "pillar")
    included(patches, overhead.purlins(measures, (0.34, 0.35, 0.36)).mesh(), (0.0, 0.0, 0.0))
    included(patches, overhead.duct(2.0 * lx - 2.0, 0.32).mesh(), (-lx + 1.0, hall.side * 9.6, low - 0.5))
    for number, y in enumerate((1.6, -10.9)):
        included(patches, overhead.cable_tray(2.0 * lx - 1.0, number).mesh(), (-lx + 0.5, hall.side * y, low - 0.15))
    included(patches, overhead.sprinklers(measures, hall.side * 5.6).mesh(), (0.0, 0.0, 0.0))
    forms = {burns: overhead.lamp(burns).mesh() for burns in (False, True)}
    for x, y, burns in lamps:
        included(patches, forms[burns], (x, hall.side * y, _LAMP_HEIGHT))
    _shaded(hall, "roof", patches, "ceiling")
    for side in (-1.0, 1.0):
        rails = overhead.rails(measures, (0.34, 0.35, 0.36), side)
        hall.fittings.thing(f"hall/rails {side:+.0f}", _even(rails), HALL_SURFACES, semantic="wall")


def _lamps(hall: _Hall) -> list[tuple[float, float, bool]]:
    """Return where lamps hang in rows over aisles (x, and y before mirroring), and whether they burn: some are out."""
    lx = hall.measures.half_length
    places = [(float(x), y) for y in _LAMP_ROWS for x in np.arange(-lx + 3.75, lx - 2.0, _LAMP_STEP)]
    return [(x, y, hall.rng.random() < 0.87) for x, y in places]


def _light(hall: _Hall, x: float, y: float) -> SpotLight:
    # Seen from aside its disc stands upright: none of it may lie within the lamp's own housing.
    where = (x, hall.side * y, _LAMP_HEIGHT - 0.03 - _LAMP_RADIUS)
    return SpotLight(where, (0.0, 0.0, -1.0), 0.75, 1.35, _LAMP_COLOR, _LAMP_INTENSITY, _LAMP_RANGE, radius=_LAMP_RADIUS)


def _floor(hall: _Hall) -> None:
    """Lay the floor with its lanes, and the yard outside."""
    measures = hall.measures
    lx, first, last = measures.half_length, hall.first, hall.last
    patches = PatchMesh()
    _shaded(hall, "floor", shell.floor_patches(measures, hall.rng), "ground", turn=-0.5 * math.pi)

    def rect(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
        low, high = sorted((hall.side * y0, hall.side * y1))
        return (x0, low, x1, high)

    for middle in _AISLES:
        for off in (-1.32, 1.26):
            shell.line(patches, rect(first - 1.0, middle + off, last + 1.0, middle + off + 0.08), _YELLOW)
    for y in (1.75, 3.25):
        shell.line(patches, rect(-lx + 1.5, y, last + 1.4, y + 0.1), _WHITE)
    for k in range(int((last + 1.0 + lx - 2.0) / 6.0)):  # a zebra here and there across the way for people
        x = -lx + 4.0 + 6.0 * k
        for bar in range(3):
            shell.line(patches, rect(x + 0.5 * bar, 1.95, x + 0.5 * bar + 0.25, 3.15), _WHITE)
    for y0, y1 in ((-11.0, -6.8), (-0.3, 1.5)):
        for a, b, c, d in ((0.0, 0.0, 4.2, 0.08), (0.0, 1.0, 4.2, 1.08)):
            x0, y = last + 1.9, y0 if b == 0.0 else y1
            shell.line(patches, rect(x0 + a, y, x0 + c, y + d - b), _YELLOW)
        for k in range(4):
            shell.line(patches, rect(last + 1.9 + 1.38 * k, y0, last + 1.98 + 1.38 * k, y1), _YELLOW)
    for center in _GATES:
        shell.stripes(patches, rect(lx - 3.2, center - 1.9, lx - 2.9, center + 1.9))
    for x in (-0.78 * lx - 0.3, -0.78 * lx + 18.2):
        shell.line(patches, rect(x, 4.9, x + 0.1, 11.2), _YELLOW)
    shell.line(patches, rect(-0.78 * lx - 0.3, 4.9, -0.78 * lx + 18.3, 5.0), _YELLOW)
    _shaded(hall, "markings", patches, "ground")
    _shaded(hall, "yard", shell.yard_patches(measures), "ground", inside=False)
    _shaded(hall, "containers", shell.yard_things(measures), "object", inside=False)
