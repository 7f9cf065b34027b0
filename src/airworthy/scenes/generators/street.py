"""Street: two rows of houses of different styles and heights, a road between them, and what stands beside it.

Everything is hit as it is seen. Layouts, styles, colours and season are drawn; nothing of it is a benchmark's.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.actors import add_actor
from airworthy.scenes.buildings.house import House, door_lights, drawn_house, house_materials, house_patches
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.relief import DEEP
from airworthy.scenes.buildings.shade import open_shares
from airworthy.scenes.buildings.surfaces import Fittings
from airworthy.scenes.figures.figure import FigureForm
from airworthy.scenes.figures.stances import Stance
from airworthy.scenes.figures.wearing import with_figure
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.materials.library import with_material
from airworthy.scenes.people import person
from airworthy.scenes.record import Haze, Light, Pose, Region, Scene, SpotLight, Vector3
from airworthy.scenes.sky.weather import under_sky, weather_named
from airworthy.scenes.streets.cars import CAR_SURFACES, PAINT_COLORS, car_forms, car_patches
from airworthy.scenes.streets.furniture import FURNITURE_SURFACES, LAMP_HEAD, POLE_TOP, furniture, wire
from airworthy.scenes.streets.ground import ASPHALT, GROUND_SURFACES, StreetGround
from airworthy.scenes.vegetation.kinds import SEASONS, Season
from airworthy.scenes.vegetation.planting import Planting
from airworthy.scenes.vegetation.tree import TreeForm

__all__ = ["street"]

_HALF = 46.0
"""Half of the street's length [m]."""
_CROSS = 9.0
"""Width of the streets at both ends [m]."""
_CEILING = 14.0
_CLEAR = 5.0
"""Around start and goal nothing stands on the road [m]."""
_WALK = 0.12
"""Height of pavements over the road [m]."""
_DEEP = 11.0
"""Of houses [m]."""
_DOORS_APART = 11.0
"""Least distance of lamps over doors that burn [m]."""
_LAMP_COLOR = (1.0, 0.74, 0.44)
_LAMP_INTENSITY = 0.09
_LAMP_RADIUS = 0.12
"""Of street lamps: some 3,500 cd, in the unit of 39.3 klx."""


_Stood = tuple[House, Array, Array, float]
"""A house, lower and upper corner of its box (3,) [m], and how it is turned [rad]."""


@dataclass
class _Plan:
    """Measures of one street [m]."""

    lane: float
    parking: tuple[bool, bool]
    """On the right (y < 0), on the left."""
    walk: tuple[float, float]
    season: Season
    trees: bool
    wires: bool

    @property
    def kerbs(self) -> tuple[float, float]:
        """y of the kerbs."""
        wide = [self.lane + (2.15 if parked else 0.0) for parked in self.parking]
        return (-wide[0], wide[1])

    @property
    def fronts(self) -> tuple[float, float]:
        """y of the houses' fronts."""
        return (self.kerbs[0] - self.walk[0], self.kerbs[1] + self.walk[1])


def street(index: int, seed: int) -> Scene:
    """Return a street.

    Args:
        index: Which one, from 0 on.
        seed: Of the series.
    """
    index, seed = checked("index", index, 0), checked("seed", seed)
    rng = generator("street", index, seed)
    plan = _drawn_plan(index, rng)
    fittings = Fittings()
    rows = _rows(plan, rng)
    blocks = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    lamps: list[Vector3] = []
    for number, (house, low, high, turn) in enumerate(rows):
        doors: list[tuple[float, float, float]] = []
        patches = house_patches(house, DEEP, rng, doors)
        middle = 0.5 * (low + high)
        lamps += _turned(doors, middle, turn)
        _shaded(
            fittings,
            f"house/{number}",
            patches,
            house_materials(house),
            (middle[0], middle[1], _WALK),
            blocks,
            "building",
            turn,
        )
    _road(fittings, plan, blocks, rng)
    cars = _cars(fittings, plan, rng)
    lights = (*_beside(fittings, plan, rng), *door_lights(lamps, _DOORS_APART))
    scene = Scene(
        f"street:{index}" + (f"@{seed}" if seed else ""),
        lights=lights,
        bounds=Region((-_HALF - 2.0, plan.fronts[0] + 0.2, 0.0), (_HALF + 2.0, plan.fronts[1] - 0.2, _CEILING)),
        start=Pose((-_HALF + 3.0, 0.0, 1.8), 0.0),
        goal=Pose((_HALF - 3.0, 0.0, 1.8), 0.0),
        description=f"street {index} of seed {seed}: {len(rows)} houses, {cars} parked cars, {plan.season}",
        source="Generated; façades by a split grammar after Müller and others 2006, trees after Weber and Penn 1995",
        facts={
            "houses": float(len(rows)),
            "cars": float(cars),
            "lamps": float(len(lights)),
            "road_m": plan.kerbs[1] - plan.kerbs[0],
        },
    )
    scene = fittings.joined(scene, looks=False)
    scene = _signs(scene, plan, rng)
    if plan.trees:
        scene = _trees(scene, plan, rng)
    scene = _people(scene, plan, rng)
    weather = weather_named("noon")
    return under_sky(scene, weather.sky, Haze(0.0008, 60.0))


def _turned(places: list[Vector3], middle: Array, turn: float) -> list[Vector3]:
    """Return places in a house's frame where they are in the world, houses standing on the pavement."""
    c, s = math.cos(turn), math.sin(turn)
    return [(float(middle[0] + c * x - s * y), float(middle[1] + s * x + c * y), z + _WALK) for x, y, z in places]


def _drawn_plan(index: int, rng: np.random.Generator) -> _Plan:
    parking = ((True, True), (True, False), (False, True))[int(rng.random() * 3)]
    walks = (2.6 + 1.4 * rng.random(), 2.6 + 1.4 * rng.random())
    season = SEASONS[1] if index == 0 else SEASONS[int(rng.random() * 3)]
    return _Plan(
        2.8 + 0.5 * rng.random(), parking, walks, season, index == 0 or rng.random() < 0.75, index == 0 or rng.random() < 0.6
    )


def _shaded(
    fittings: Fittings,
    name: str,
    patches: PatchMesh,
    materials: tuple[str, ...],
    position: tuple[float, float, float],
    blocks: tuple[Array, Array],
    semantic: str,
    turn: float = 0.0,
) -> None:
    """Stand a mesh that is used once, with its shade."""
    points, normals = patches.surface()
    c, s = math.cos(turn), math.sin(turn)
    spin = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    shares = open_shares(points @ spin.T + np.array(position), normals @ spin.T, *blocks)
    fittings.thing(name, patches.mesh(shares), materials, position, _about_up(turn), semantic)


def _about_up(turn: float) -> tuple[float, float, float, float]:
    return (0.0, 0.0, math.sin(0.5 * turn), math.cos(0.5 * turn))


# ---- Houses -----------------------------------------------------------------------------------------------------------------


def _rows(plan: _Plan, rng: np.random.Generator) -> list[_Stood]:
    """Return houses with the corners of their boxes (3,) and how they are turned: two rows, and one across each end."""
    found = []
    for side in (0, 1):
        front = plan.fronts[side]
        outward = -1.0 if side == 0 else 1.0
        for a, b in _lots(-_HALF, _HALF, rng):
            high = 7.5 + 9.5 * rng.random()
            first, last = abs(a + _HALF) < 1e-9, abs(b - _HALF) < 1e-9
            # Seen from the road the right side lies to the east of what looks south.
            ends = ("windows" if last else "blank", "windows" if first else "blank")
            grounds = ("street", *((ends[1], "windows", ends[0]) if side == 0 else (ends[0], "windows", ends[1])))
            house = drawn_house((b - a, _DEEP, high), grounds, 9.0, 0.0, rng)
            y0, y1 = sorted((front, front + outward * _DEEP))
            # A house's front looks along -y: that of the left row as it is, that of the right row turned about.
            found.append((house, np.array([a, y0, 0.0]), np.array([b, y1, high]), math.pi if side == 0 else 0.0))
    for end in (-1.0, 1.0):
        wall = end * (_HALF + _CROSS)
        for a, b in _lots(plan.fronts[0] - 18.0, plan.fronts[1] + 18.0, rng):
            high = 8.5 + 9.0 * rng.random()
            house = drawn_house((b - a, _DEEP, high), ("street", "blank", "", "blank"), 9.0, 0.0, rng)
            x0, x1 = sorted((wall, wall + end * _DEEP))
            # Looks at the street: along -x at its far end.
            found.append(
                (house, np.array([x0, a, 0.0]), np.array([x1, b, high]), -0.5 * math.pi if end > 0.0 else 0.5 * math.pi)
            )
    return found


def _lots(low: float, high: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Cut a row into lots of 6 to 15 m."""
    edges = [low]
    while high - edges[-1] > 15.0:
        edges.append(edges[-1] + 6.5 + 7.5 * rng.random())
    return list(zip(edges, [*edges[1:], high], strict=True))


# ---- Ground -----------------------------------------------------------------------------------------------------------------


def _road(fittings: Fittings, plan: _Plan, blocks: tuple[Array, Array], rng: np.random.Generator) -> None:
    right, left = plan.kerbs
    ground = StreetGround(0.0, _WALK)
    ends = _HALF + _CROSS
    ground.area((-ends - 1.0, plan.fronts[0] - 20.0, ends + 1.0, plan.fronts[1] + 20.0), ASPHALT, 0.0)
    ground.raised((-_HALF - 2.0, plan.fronts[0] - _DEEP - 1.0, _HALF + 2.0, right))
    ground.raised((-_HALF - 2.0, left, _HALF + 2.0, plan.fronts[1] + _DEEP + 1.0))
    for end in (-1.0, 1.0):
        x0, x1 = sorted((end * (ends - 2.4), end * (ends + 0.5)))
        ground.raised((x0, plan.fronts[0] - 20.0, x1, plan.fronts[1] + 20.0))
        inner = end * (_HALF - 0.5)
        middle = 0.5 * (right + left)
        # A broad line where one has to give way, and a crossing behind it.
        stop = sorted((inner, inner + end * 0.4))
        ground.mark((stop[0], right + 0.2, stop[1], middle) if end < 0.0 else (stop[0], middle, stop[1], left - 0.2))
        bars = sorted((inner - end * 4.2, inner - end * 1.2))
        ground.zebra((bars[0], right + 0.15, bars[1], left - 0.15), True)
        x = end * (_HALF + 0.5 * _CROSS - 1.2)
        ground.dashes((x, plan.fronts[0] - 18.0), (x, plan.fronts[1] + 18.0))
    drive = (right + (2.15 if plan.parking[0] else 0.0), left - (2.15 if plan.parking[1] else 0.0))
    ground.dashes((-_HALF + 6.5, 0.5 * (drive[0] + drive[1])), (_HALF - 6.5, 0.5 * (drive[0] + drive[1])))
    for side in (0, 1):
        if plan.parking[side]:
            for x in np.arange(-_HALF + 7.0, _HALF - 6.9, 6.0):
                a, b = sorted((drive[side], plan.kerbs[side]))
                ground.mark((x - 0.05, a + 0.1, x + 0.05, b - 0.1))
            ground.dashes((-_HALF + 7.0, drive[side]), (_HALF - 7.0, drive[side]), 0.1, 1.0, 1.0)
        gutter = plan.kerbs[side] - (0.16 if side else -0.16)
        for x in np.arange(-_HALF + 5.0, _HALF, 17.0):
            ground.drain(float(x + 2.0 * rng.random()), gutter, True)
    for x in np.arange(-_HALF + 8.0, _HALF - 4.0, 13.0):
        ground.cover(float(x + 6.0 * rng.random()), 0.5 * (drive[0] + drive[1]) + (1.4 if rng.random() < 0.5 else -1.4))
    for _ in range(5):
        x, y = (2.0 * rng.random() - 1.0) * (_HALF - 10.0), drive[0] + 0.4 + (drive[1] - drive[0] - 2.0) * rng.random()
        ground.patch((x, y, x + 1.0 + 3.0 * rng.random(), y + 0.6 + 0.6 * rng.random()))
    for side in (0, 1):  # small covers in the pavement
        for _ in range(5):
            y = plan.kerbs[side] + (0.9 if side else -0.9)
            ground.cover((2.0 * rng.random() - 1.0) * (_HALF - 2.0), y, 0.22, True)
    _shaded(fittings, "ground", ground.patches, GROUND_SURFACES, (0.0, 0.0, 0.0), blocks, "ground")


# ---- On the road and beside it ----------------------------------------------------------------------------------------------


def _cars(fittings: Fittings, plan: _Plan, rng: np.random.Generator) -> int:
    forms = car_forms()
    count = 0
    for side in (0, 1):
        if not plan.parking[side]:
            continue
        y = plan.kerbs[side] + (1.12 if side == 0 else -1.12)
        for x in np.arange(-_HALF + 10.0, _HALF - 9.0, 6.0):
            if rng.random() < 0.28:
                continue
            form = forms[min(int(rng.random() * (len(forms) + 2)), len(forms) + 1) % len(forms)]
            color = int(rng.random() * PAINT_COLORS)
            where = (float(x + 0.5 * (rng.random() - 0.5)), y + 0.12 * (rng.random() - 0.5), 0.0)
            turn = (0.0 if side == 0 else math.pi) + 0.03 * (rng.random() - 0.5)
            patches = car_patches(form, color)
            # What lies under a car is dark.
            half_long = 2.0
            patches.quad(
                np.array(
                    [[-half_long, -0.78, 0.008], [half_long, -0.78, 0.008], [half_long, 0.78, 0.008], [-half_long, 0.78, 0.008]]
                ),
                2,
                (0.012, 0.012, 0.012),
            )
            fittings.thing(f"car/{form}/{color}", patches.mesh(), CAR_SURFACES, where, _about_up(turn), "vehicle")
            count += 1
    return count


def _put(fittings: Fittings, name: str, x: float, y: float, z: float, turn: float = 0.0, semantic: str = "object") -> None:
    known = fittings.shapes.get(f"street/{name}")
    shape = furniture(name).mesh() if known is None else known
    fittings.thing(f"street/{name}", shape, FURNITURE_SURFACES, (x, y, z), _about_up(turn), semantic)


def _beside(fittings: Fittings, plan: _Plan, rng: np.random.Generator) -> tuple[Light, ...]:
    """Stand lamps, poles with wires, bins, benches and the like on the pavements; return the lamps' lights."""
    lights: list[Light] = []
    for side in (0, 1):
        sign = -1.0 if side == 0 else 1.0
        edge = plan.kerbs[side] + sign * 0.42
        turn = math.pi if side == 0 else 0.0
        for x in np.arange(-_HALF + 5.0 + 11.0 * side, _HALF - 2.0, 22.0):
            _put(fittings, "lamp", float(x), edge, _WALK, turn, "pillar")
            lights.append(_lamp_light(float(x), edge, -sign))
        house = plan.fronts[side] - sign * 0.42
        for x in np.arange(-_HALF + 2.0, _HALF - 2.0, 5.5):
            at, kind = float(x + 3.0 * rng.random()), rng.random()
            if kind < 0.10:
                _put(fittings, "bench", at, house, _WALK, turn)
            elif kind < 0.24:
                _put(fittings, "wheelie_bin", at, house, _WALK, turn + 0.3 * (rng.random() - 0.5))
            elif kind < 0.34:
                _put(fittings, "planter", at, house, _WALK, turn)
            elif kind < 0.42:
                _put(fittings, "cabinet", at, house, _WALK, turn)
        for x in np.arange(-_HALF + 3.0, _HALF - 2.0, 14.5):
            at, kind = float(x + 4.0 * rng.random()), rng.random()
            if kind < 0.35:
                _put(fittings, "bin", at, edge, _WALK, turn)
            elif kind < 0.45:
                _put(fittings, "mail_box", at, edge, _WALK, turn)
        if not plan.parking[side]:
            for x in np.arange(-_HALF + 4.0, _HALF - 3.9, 2.6):
                _put(fittings, "bollard", float(x), plan.kerbs[side] + sign * 0.3, _WALK)
    if plan.wires:
        _wires(fittings, plan)
    return tuple(lights)


def _lamp_light(x: float, y: float, over: float) -> SpotLight:
    # Seen from aside its disc stands upright: none of it may lie within the lamp's own housing.
    head = (x, y + over * -LAMP_HEAD[1], _WALK + LAMP_HEAD[2] - _LAMP_RADIUS)
    return SpotLight(head, (0.0, 0.0, -1.0), 0.9, 1.75, _LAMP_COLOR, _LAMP_INTENSITY, 30.0, radius=_LAMP_RADIUS, from_dusk=True)


def _wires(fittings: Fittings, plan: _Plan) -> None:
    """Stand poles on the left pavement, wires between them and one to every second house across."""
    y = plan.kerbs[1] + 0.5
    places = np.arange(-_HALF + 8.0, _HALF, 25.0)
    for x in places:
        _put(fittings, "pole", float(x), y, _WALK, 0.0, "pillar")
    height = _WALK + POLE_TOP + 0.12
    number = 0
    for a, b in itertools.pairwise(places):
        for across in (-0.72, -0.4, 0.4, 0.72):
            patches = wire(np.array([a, y + across, height]), np.array([b, y + across, height]), 0.45)
            fittings.thing(f"wire/{number}", patches.mesh(), ("painted",), semantic="thin")
            number += 1
    for x in places:
        end = np.array([x + 4.0, plan.fronts[0] - 0.02, 6.2])
        patches = wire(np.array([x, y - 0.4, height]), end, 0.3, 0.007)
        fittings.thing(f"wire/{number}", patches.mesh(), ("painted",), semantic="thin")
        number += 1


def _signs(scene: Scene, plan: _Plan, rng: np.random.Generator) -> Scene:
    """Hang signs on posts at both ends."""
    fittings = Fittings()
    names = ("sign_speed", f"sign_speed@{1 + int(rng.random() * 5)}")
    for name in names:
        scene = with_material(scene, name, name, 256, by_coordinates=True)
        # A round plate stands behind the card: what is cut out of it is of no use there.
    for end, side, name in ((-1.0, 0, names[0]), (1.0, 1, names[1])):
        x, y = end * (_HALF - 7.0), plan.kerbs[side] + (-0.4 if side == 0 else 0.4)
        turn = 0.5 * math.pi * end
        _put(fittings, "sign_post", x, y, _WALK, turn)
        face = PatchMesh()
        angle = 2.0 * np.pi * np.arange(24) / 24.0
        rim = np.stack([0.28 * np.cos(angle), np.full(24, -0.043), 2.4 + 0.28 * np.sin(angle)], -1)
        uv = np.stack([0.5 + 0.468 * np.cos(angle), 0.5 - 0.468 * np.sin(angle)], -1)
        faces = np.array([[0, k, k + 1] for k in range(1, 23)])
        face.add(rim, faces, np.repeat([[0.0, -1.0, 0.0]], 24, 0), 0, (1.0, 1.0, 1.0), uv)
        scene = replace(
            scene,
            shapes={**scene.shapes, f"face/{name}": face.mesh()},
            materials={**scene.materials, name: replace(scene.materials[name], alpha_cutoff=0.0)},
        )
        fittings.shapes[f"face/{name}"] = scene.shapes[f"face/{name}"]
        fittings.materials[name] = scene.materials[name]
        fittings.thing(f"face/{name}", scene.shapes[f"face/{name}"], (name,), (x, y, _WALK), _about_up(turn), "object")
    return fittings.joined(scene, looks=False)


def _trees(scene: Scene, plan: _Plan, rng: np.random.Generator) -> Scene:
    planting = Planting()
    kind = ("maple", "birch", "beech", "maple")[int(rng.random() * 4)]
    fittings = Fittings()
    for side in (0, 1):
        sign = -1.0 if side == 0 else 1.0
        y = plan.kerbs[side] + sign * 0.75
        if plan.wires and side == 1:
            continue
        for x in np.arange(-_HALF + 10.0, _HALF - 6.0, 11.0):
            if abs((x + _HALF - 5.0 - 11.0 * side) % 22.0 - 11.0) > 9.5 or rng.random() < 0.2:
                continue
            form = TreeForm(kind, int(rng.random() * 2), plan.season, 0.42, 0.34, 2)
            planting.tree(form, (float(x), y, _WALK - 0.03), 6.28 * rng.random(), 0.85 + 0.3 * rng.random())
            pit = PatchMesh()
            pit.quad(
                np.array([[-0.6, -0.6, 0.004], [0.6, -0.6, 0.004], [0.6, 0.6, 0.004], [-0.6, 0.6, 0.004]]), 0, (0.8, 0.8, 0.8)
            )
            fittings.thing("tree pit", pit.mesh(), ("soil",), (float(x), y, _WALK), semantic="ground")
    hit = planting.solid()
    street = fittings.joined(scene, looks=False)
    return planting.joined(replace(street, instances=street.instances + hit))


def _people(scene: Scene, plan: _Plan, rng: np.random.Generator) -> Scene:
    """Let some people stand on the pavements, one of them alone, two talking."""
    shirts = (
        (0.05, 0.07, 0.12),
        (0.30, 0.28, 0.24),
        (0.12, 0.03, 0.03),
        (0.04, 0.08, 0.05),
        (0.02, 0.02, 0.02),
        (0.45, 0.44, 0.42),
    )
    number = 0
    for group in range(4):
        side = group % 2
        sign = -1.0 if side == 0 else 1.0
        x, y = (2.0 * rng.random() - 1.0) * (_HALF - 8.0), plan.kerbs[side] + sign * (1.25 + 0.5 * rng.random())
        facing = 6.28 * rng.random()
        for k in range(1 + group % 2):
            where = (x + 0.8 * k * math.cos(facing), y + 0.3 * k, _WALK)
            height = round(1.6 + 0.28 * rng.random(), 2)
            kit = person(
                f"person {number}",
                height,
                position=where,
                yaw=facing + math.pi * k,
                shirt=shirts[int(rng.random() * len(shirts))],
            )
            scene = add_actor(scene, with_figure(kit, _passer_by(scene, number, height, plan.season)))
            number += 1
    return scene


def _passer_by(scene: Scene, number: int, height: float, season: Season) -> FigureForm:
    """Return how somebody looks: by numbers of their own, so that nothing else of the street is drawn otherwise."""
    rng = generator("passer-by", scene.name, number)
    woman = height < 1.70 if rng.random() < 0.8 else height >= 1.70
    warm = rng.random() < (0.75 if season == "summer" else 0.15)
    look = float(0.9 * (rng.random() - 0.5))
    return FigureForm(
        height,
        float(np.clip(0.15 + 0.45 * rng.normal(), -1.0, 0.6)),
        bool(woman),
        "shirt" if warm else "jacket",
        int(rng.random() * 10_000),
        Stance(look=round(look, 2)),
    )
