"""The district of the navigation benchmark as a film shows it: façades on its boxes, streets between them, a town around.

What is hit, ranged and labelled is the scenario's own, to the byte; what is seen are looks (`Scene.looks`), none of which
stands farther than 5 cm from what is hit within the bounds. Above them, and behind the outer walls, houses go on.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Box, Cylinder
from airworthy.scenes.buildings.house import door_lights, drawn_house, house_materials, house_patches
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.relief import FLAT
from airworthy.scenes.buildings.shade import open_shares
from airworthy.scenes.buildings.surfaces import Fittings
from airworthy.scenes.extent import hidden
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Instance, Scene, Vector3
from airworthy.scenes.streets.cars import CAR_SURFACES, PAINT_COLORS, box_van
from airworthy.scenes.streets.ground import ASPHALT, GROUND_SURFACES, StreetGround

_SWELL = 0.012
"""Walls that are seen stand this far before those that are hit, so that panes can lie behind them [m]."""
_ROAD, _WALK = -0.035, 0.035
"""Heights of roads and pavements: as far apart as may be [m]."""
_STEP = 0.05
"""In which the phase of the grid of streets is looked for [m]."""
_SETBACK = 0.45
"""Of a building within its block at least [m]."""

_LAMPS_APART = 7.0
"""Least distance of two lamps that burn [m]."""

Boxes = tuple[Array, Array]


def dressed_urban(scene: Scene, map_size: int = 512) -> Scene:
    """Return the district with façades, streets and a town around; what is hit stays.

    Args:
        scene: As `scene("urban:3")`.
        map_size: Side of the materials' maps [px].
    """
    rng = generator("dressed urban", scene.name)
    fittings = Fittings(map_size)
    blocks = _solid_boxes(scene)
    top = scene.bounds.upper[2]
    lamps: list[Vector3] = []
    for number, item in enumerate(scene.instances):
        if item.name.startswith("outer"):
            _terrace(fittings, scene, item, blocks, rng)
        elif item.semantic == "building":
            _building(fittings, scene, item, blocks, top, rng, lamps)
        elif item.semantic == "wall":
            _wall(fittings, scene, item, blocks, number, rng)
        elif item.semantic == "pillar":
            _post(fittings, scene, item, rng)
        elif item.semantic == "object":
            _van(fittings, scene, item, number, rng)
    _ground(fittings, scene, blocks, rng)
    bare = replace(
        scene,
        instances=tuple(hidden(item) for item in scene.instances),
        lights=(*scene.lights, *door_lights(lamps, _LAMPS_APART)),
    )
    return fittings.joined(bare, looks=True)


def _solid_boxes(scene: Scene) -> Boxes:
    """Return lower and upper corners (b, 3) of what hides the sky."""
    rows = [
        (np.array(item.position), item.scale * np.array(shape.half_size))
        for item in scene.instances
        if isinstance(shape := scene.shapes[item.shape], Box) and item.semantic in ("building", "wall")
    ]
    return np.array([c - h for c, h in rows]), np.array([c + h for c, h in rows])


def _stand(
    fittings: Fittings,
    name: str,
    patches: PatchMesh,
    materials: tuple[str, ...],
    position: tuple[float, float, float],
    blocks: Boxes,
    semantic: str,
    turn: float = 0.0,
) -> None:
    """Stand a mesh that is used once, with its shade."""
    points, normals = patches.surface()
    c, s = np.cos(turn), np.sin(turn)
    spin = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    shares = open_shares(points @ spin.T + np.array(position), normals @ spin.T, *blocks)
    attitude = (0.0, 0.0, float(np.sin(0.5 * turn)), float(np.cos(0.5 * turn)))
    fittings.thing(name, patches.mesh(shares), materials, position, attitude, semantic)


def _building(
    fittings: Fittings, scene: Scene, item: Instance, blocks: Boxes, top: float, rng: np.random.Generator, lamps: list[Vector3]
) -> None:
    shape = scene.shapes[item.shape]
    assert isinstance(shape, Box)
    x, y, high = (2.0 * item.scale * half for half in shape.half_size)
    sides = ["street", "street", "windows", "windows"]
    order = rng.permutation(4)
    grounds = (sides[order[0]], sides[order[1]], sides[order[2]], sides[order[3]])
    # What ends within the bounds has a flat top; above them roofs may be as they like.
    house = drawn_house((x, y, high), grounds, 20.0 if high > top + 0.2 else 0.0, _SWELL, rng)
    doors: list[tuple[float, float, float]] = []
    patches = house_patches(house, FLAT, rng, doors)
    x0, y0, _ = item.position
    lamps += [(x0 + x, y0 + y, z) for x, y, z in doors]
    where = (item.position[0], item.position[1], 0.0)
    _stand(
        fittings,
        f"house/{item.position[0]:.3f}/{item.position[1]:.3f}",
        patches,
        house_materials(house),
        where,
        blocks,
        "building",
    )


def _terrace(fittings: Fittings, scene: Scene, item: Instance, blocks: Boxes, rng: np.random.Generator) -> None:
    """Stand a row of houses behind the inner face of an outer wall, all higher than it."""
    shape = scene.shapes[item.shape]
    assert isinstance(shape, Box)
    hx, hy, hz = (item.scale * half for half in shape.half_size)
    along_x = hx > hy
    length, thick = (2.0 * hx, hy) if along_x else (2.0 * hy, hx)
    inward = -np.sign(item.position[1] if along_x else item.position[0])
    at = -0.5 * length
    number = 0
    while at < 0.5 * length - 0.5:
        width = min(8.0 + 6.0 * rng.random(), 0.5 * length - at)
        if 0.5 * length - at - width < 6.0:
            width = 0.5 * length - at
        high = 2.0 * hz + 0.2 + 7.0 * rng.random()
        deep = 7.0
        house = drawn_house((width, deep, high), ("street", "blank", "", "blank"), 20.0, 0.0, rng)
        # Its front is where the wall's inner face is, a little before it.
        center = at + 0.5 * width
        face = (item.position[1] if along_x else item.position[0]) + inward * (thick + _SWELL)
        middle = face - inward * 0.5 * deep
        if along_x:
            where, turn = (center + item.position[0], float(middle), 0.0), (0.0 if inward < 0.0 else np.pi)
        else:
            where, turn = (float(middle), center + item.position[1], 0.0), (0.5 * np.pi if inward > 0.0 else -0.5 * np.pi)
        patches = house_patches(house, FLAT, rng)
        # The wall itself hides nothing from its own front.
        _stand(fittings, f"{item.name}/{number}", patches, house_materials(house), where, blocks, "building", turn)
        at += width
        number += 1


def _wall(fittings: Fittings, scene: Scene, item: Instance, blocks: Boxes, number: int, rng: np.random.Generator) -> None:
    """Put brick, coping and bills on a wall that stands free."""
    shape = scene.shapes[item.shape]
    assert isinstance(shape, Box)
    hx, hy, hz = (item.scale * half for half in shape.half_size)
    patches = PatchMesh()
    surface = ("brick", "brick_yellow", "concrete", "stone")[int(rng.random() * 4)]
    e = 0.004
    for axis, half, other in ((0, hy + e, hx + e), (1, hx + e, hy + e)):
        for sign in (-1.0, 1.0):
            cells = np.linspace(-other, other, max(int(other), 1) + 1)
            rows = np.linspace(0.0, 2.0 * hz, max(int(2.0 * hz), 1) + 1)
            for a, b in itertools.pairwise(cells):
                for low, high in itertools.pairwise(rows):
                    if axis == 0:
                        corners = [
                            (-sign * a, sign * half, low),
                            (-sign * b, sign * half, low),
                            (-sign * b, sign * half, high),
                            (-sign * a, sign * half, high),
                        ]
                    else:
                        corners = [
                            (sign * half, sign * a, low),
                            (sign * half, sign * b, low),
                            (sign * half, sign * b, high),
                            (sign * half, sign * a, high),
                        ]
                    shade = [0.72 + 0.28 * min(z, 1.0) for z in (low, low, high, high)]
                    patches.quad(np.array(corners), 0, np.array(shade)[:, None] * np.ones(3))
    o = 0.024
    patches.box((-hx - o, -hy - o, 2.0 * hz - 0.04), (hx + o, hy + o, 2.0 * hz + 0.03), 1, (0.85, 0.84, 0.80))
    _bills(patches, (hx, hy, 2.0 * hz), 2, rng)
    bill = ("poster", "poster_2", "poster_3")[int(rng.random() * 3)]
    where = (item.position[0], item.position[1], 0.0)
    _stand(fittings, f"wall/{number}", patches, (surface, "trim", bill), where, blocks, "wall")


def _bills(patches: PatchMesh, size: tuple[float, float, float], slot: int, rng: np.random.Generator) -> None:
    """Paste bills on the long faces of a wall."""
    hx, hy, high = size
    along_x = hx > hy
    long, out = (hx, hy) if along_x else (hy, hx)
    uv = np.array([[0.15, 0.95], [0.85, 0.95], [0.85, 0.05], [0.15, 0.05]])
    for sign in (-1.0, 1.0):
        at = -long + 0.6 + 1.5 * rng.random()
        while at < long - 0.8 and rng.random() < 0.75:
            wide, tall, low = 0.62, 0.86, 0.85 + 0.25 * rng.random()
            if low + tall > high - 0.2:
                break
            d = sign * (out + 0.008)
            a, b = (sign * at, sign * (at + wide))
            if along_x:
                corners = [(-a, d, low), (-b, d, low), (-b, d, low + tall), (-a, d, low + tall)]
            else:
                corners = [(d, a, low), (d, b, low), (d, b, low + tall), (d, a, low + tall)]
            patches.quad(np.array(corners), slot, (1.0, 1.0, 1.0), uv)
            at += wide + (0.05 if rng.random() < 0.7 else 1.5)


def _post(fittings: Fittings, scene: Scene, item: Instance, rng: np.random.Generator) -> None:
    """Paint a post: a collar at its foot, bands, a cap."""
    shape = scene.shapes[item.shape]
    assert isinstance(shape, Cylinder)
    radius, high = item.scale * shape.radius, 2.0 * item.scale * shape.half_length
    patches = PatchMesh()
    tone = ((0.055, 0.075, 0.065), (0.28, 0.29, 0.29), (0.05, 0.05, 0.055))[int(rng.random() * 3)]
    # One outline, turned about its axis: what lay inside would be seen nowhere, and lie too far from what is hit.
    rows = [(0.0, 0.032), (0.07, 0.032), (0.072, 0.02), (0.86, 0.02), (0.862, 0.032), (0.93, 0.032), (0.932, 0.0)]
    middle = 0.5 * high
    rows += [(middle, -0.005), (middle + 0.002, 0.025), (middle + 0.07, 0.025), (middle + 0.072, -0.006), (high, -0.015)]
    z, more = np.array(rows).T
    patches.tube(np.stack([0.0 * z, 0.0 * z, z], -1), radius + more, 0, tone, 20)
    x, y, _ = item.position
    fittings.thing(f"post/{x:.3f}/{y:.3f}", patches.mesh(), ("painted",), (x, y, 0.0), semantic="pillar")


def _van(fittings: Fittings, scene: Scene, item: Instance, number: int, rng: np.random.Generator) -> None:
    shape = scene.shapes[item.shape]
    assert isinstance(shape, Box)
    x, y, high = (2.0 * item.scale * half for half in shape.half_size)
    long, wide = max(x, y), min(x, y)
    turn = (0.0 if x >= y else 0.5 * np.pi) + (np.pi if rng.random() < 0.5 else 0.0)
    patches = box_van((long, wide, high), int(rng.random() * PAINT_COLORS), number)
    attitude = (0.0, 0.0, float(np.sin(0.5 * turn)), float(np.cos(0.5 * turn)))
    where = (item.position[0], item.position[1], 0.0)
    fittings.thing(f"van/{number}", patches.mesh(), CAR_SURFACES, where, attitude, "object")


# ---- Streets ----------------------------------------------------------------------------------------------------------------


def _spans(block: float, street: float, half: float, built: Array) -> list[tuple[float, float]]:
    """Return where blocks begin and end along an axis: the phase in the middle of those in which all buildings lie in blocks.

    Args:
        block: Length of a block [m].
        street: Width of a street [m].
        half: Half of the area's length [m].
        built: (n, 2): from where to where buildings reach.
    """
    period = block + street
    phases = np.arange(0.0, period, _STEP)
    # A building at the edge may belong to a block that the edge has cut.
    low = np.mod(built[:, 0] - _SETBACK - phases[:, None], period)
    size = built[:, 1] - built[:, 0] + 2.0 * _SETBACK
    slack = (block - low - size).min(1)
    slack = np.minimum(slack, low.min(1))
    phase = float(phases[int(np.argmax(slack))])
    first = phase - period * np.ceil((phase + half) / period)
    found = []
    at = first
    while at < half:
        a, b = max(at, -half), min(at + block, half)
        if b - a > 0.5:
            found.append((a, b))
        at += period
    return found


def _ground(fittings: Fittings, scene: Scene, blocks: Boxes, rng: np.random.Generator) -> None:
    half = np.array(scene.bounds.upper[:2])
    built = [
        (np.array(item.position[:2]), item.scale * np.array(shape.half_size[:2]))
        for item in scene.instances
        if isinstance(shape := scene.shapes[item.shape], Box) and item.semantic == "building"
    ]
    facts = scene.facts
    spans = []
    for axis, name in ((0, "x"), (1, "y")):
        rows = np.array([[c[axis] - h[axis], c[axis] + h[axis]] for c, h in built])
        spans.append(_spans(facts[f"block_{name}_m"], facts[f"street_{name}_m"], float(half[axis]), rows))
    ground = StreetGround(_ROAD, _WALK)
    ground.area((-half[0] - 0.3, -half[1] - 0.3, half[0] + 0.3, half[1] + 0.3), ASPHALT, _ROAD)
    for a in spans[0]:
        for b in spans[1]:
            ground.raised((a[0], b[0], a[1], b[1]))
    _marks(ground, spans, half, rng)
    _stand(fittings, "streets", ground.patches, GROUND_SURFACES, (0.0, 0.0, 0.0), blocks, "ground")


def _gaps(spans: list[tuple[float, float]], half: float) -> list[tuple[float, float]]:
    """Return the streets between blocks."""
    edges = [-half, *(v for span in spans for v in span), half]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 2.5]


def _marks(ground: StreetGround, spans: list[list[tuple[float, float]]], half: Array, rng: np.random.Generator) -> None:
    """Paint lanes and crossings, and let covers, drains and mended places into the roads."""
    streets = [_gaps(spans[0], float(half[0])), _gaps(spans[1], float(half[1]))]
    for along in (0, 1):
        for low, high in streets[1 - along]:
            middle, wide = 0.5 * (low + high), high - low
            for a, b in spans[along]:
                if b - a < 5.0:
                    continue
                if wide > 4.2:
                    start, end = (a + 1.8, middle), (b - 1.8, middle)
                    ground.dashes(start if along == 0 else start[::-1], end if along == 0 else end[::-1])
                for x0, x1 in ((a + 0.3, a + 1.5), (b - 1.5, b - 0.3)):
                    if rng.random() < 0.45:
                        rect = (x0, low + 0.25, x1, high - 0.25) if along == 0 else (low + 0.25, x0, high - 0.25, x1)
                        ground.zebra(rect, along == 0)
                at = a + 2.5 + (b - a - 5.0) * rng.random()
                place = (at, middle + 0.25 * wide) if along == 0 else (middle + 0.25 * wide, at)
                ground.cover(*place)
                for edge in (low + 0.22, high - 0.22):
                    spot = (a + 3.0 + 1.5 * rng.random(), edge)
                    ground.drain(*(spot if along == 0 else spot[::-1]), along_x=along == 0)
                if rng.random() < 0.6:
                    x, y = a + 2.0 + (b - a - 5.0) * rng.random(), low + 0.3 + 0.5 * (wide - 1.6) * rng.random()
                    w, d = 0.8 + 1.6 * rng.random(), 0.6 + 0.5 * rng.random()
                    ground.patch((x, y, x + w, y + d) if along == 0 else (y, x, y + d, x + w))
