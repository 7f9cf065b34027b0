"""Twelve small scenes, one for each kind of light and surface, on which two path tracers are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.geometry import Box, Mesh, Shape, Sphere
from airworthy.scenes.record import (
    Instance,
    Light,
    Material,
    PointLight,
    Scene,
    Sky,
    SpotLight,
    Sun,
    Texture,
)
from airworthy.scenes.viewpoints import Viewpoint, look_at

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
GREY, RED, GREEN = (0.7, 0.7, 0.7, 1.0), (0.65, 0.08, 0.07, 1.0), (0.12, 0.45, 0.1, 1.0)


@dataclass(frozen=True)
class StillScene:
    """A scene, and where it is seen from."""

    scene: Scene
    view: Viewpoint
    sun_angle: float = 0.004654
    """Half angle of the sun [rad]."""
    diffuse: bool = True
    """Whether every surface is Lambert's: then baked light should agree, too."""


def _view(eye: tuple[float, float, float], target: tuple[float, float, float], fov: float = 1.0) -> Viewpoint:
    return Viewpoint(np.array(eye), look_at(eye, target), fov)


def _room(
    albedo: tuple[float, float, float, float], glow: float = 0.0, front: bool = True
) -> tuple[dict[str, Shape], dict[str, Material], tuple[Instance, ...]]:
    """Return a room 4 m wide and deep, 3 m high, its walls 0.1 m thick; left red, right green where they do not glow."""
    emissive = (glow, glow, glow)
    materials = {"wall": Material(albedo, emissive=emissive)}
    left, right = ("wall", "wall") if glow else ("red", "green")
    materials |= {} if glow else {"red": Material(RED), "green": Material(GREEN)}
    shapes: dict[str, Shape] = {"level": Box((2.1, 2.1, 0.05)), "side": Box((0.05, 2.1, 1.6)), "end": Box((2.1, 0.05, 1.6))}
    parts = [
        Instance("level", (0.0, 0.0, -0.05), materials=("wall",)),
        Instance("level", (0.0, 0.0, 3.05), materials=("wall",)),
        Instance("side", (-2.05, 0.0, 1.5), materials=(left,)),
        Instance("side", (2.05, 0.0, 1.5), materials=(right,)),
        Instance("end", (0.0, 2.05, 1.5), materials=("wall",)),
    ]
    if front:
        parts.append(Instance("end", (0.0, -2.05, 1.5), materials=("wall",)))
    return shapes, materials, tuple(parts)


def _things(material: str = "wall") -> tuple[dict[str, Shape], tuple[Instance, ...]]:
    """Return a tall box, a low one, and a ball on it."""
    turned = (0.0, 0.0, float(np.sin(0.15)), float(np.cos(0.15)))
    other = (0.0, 0.0, float(np.sin(-0.2)), float(np.cos(-0.2)))
    shapes: dict[str, Shape] = {"tall": Box((0.45, 0.45, 0.9)), "low": Box((0.5, 0.5, 0.4)), "ball": Sphere(0.4)}
    return shapes, (
        Instance("tall", (-0.8, 0.7, 0.9), turned, materials=(material,)),
        Instance("low", (0.8, -0.3, 0.4), other, materials=(material,)),
        Instance("ball", (0.8, -0.3, 1.2), materials=(material,)),
    )


def _floor(material: Material, **more: Material) -> tuple[dict[str, Shape], dict[str, Material], tuple[Instance, ...]]:
    return (
        {"floor": Box((8.0, 8.0, 0.1))},
        {"floor": material, **more},
        (Instance("floor", (0.0, 0.0, -0.1), materials=("floor",)),),
    )


INSIDE = _view((0.0, -1.9, 1.5), (0.0, 1.0, 1.35), 1.5)
OUTSIDE = _view((0.5, -5.0, 2.4), (0.0, 0.3, 0.7), 0.9)


def box() -> StillScene:
    """Return a diffuse room with a point lamp under its ceiling: many bounces."""
    shapes, materials, room = _room(GREY)
    more, things = _things()
    lamp = PointLight((0.2, -0.4, 2.5), (1.0, 0.95, 0.85), 4.0)
    return StillScene(
        Scene("box", {**shapes, **more}, materials, instances=(*room, *things), lights=(lamp,), sky=BLACK), INSIDE
    )


def furnace() -> StillScene:
    """Return a closed room whose walls send 0.2 and reflect 0.8: radiance 1 everywhere."""
    shapes, materials, room = _room((0.8, 0.8, 0.8, 1.0), 0.2)
    more, things = _things()
    return StillScene(Scene("furnace", {**shapes, **more}, materials, instances=(*room, *things), lights=(), sky=BLACK), INSIDE)


def area() -> StillScene:
    """Return the diffuse room under a glowing panel."""
    shapes, materials, room = _room(GREY)
    more, things = _things()
    shapes["panel"] = Box((0.6, 0.5, 0.02))
    panel = Instance("panel", (0.0, 0.0, 2.9), materials=("panel",))
    materials["panel"] = Material((0.0, 0.0, 0.0, 1.0), emissive=(9.0, 8.5, 7.5))
    return StillScene(
        Scene("area", {**shapes, **more}, materials, instances=(*room, *things, panel), lights=(), sky=BLACK), INSIDE
    )


def sun() -> StillScene:
    """Return a place under a low sun nine times as wide as the real one: shadows that soften with the distance."""
    shapes, materials, floor = _floor(Material(GREY), wall=Material((0.6, 0.5, 0.4, 1.0)))
    more, things = _things()
    light = Sun((0.62, 0.45, -0.64), irradiance=3.0)
    dim = Sky((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), (0.1, 0.1, 0.1))
    return StillScene(
        Scene("sun", {**shapes, **more}, materials, instances=(*floor, *things), lights=(light,), sky=dim), OUTSIDE, 0.04
    )


def lamps() -> StillScene:
    """Return a place with a point lamp and two spot lights, one of them with a soft edge."""
    shapes, materials, floor = _floor(Material(GREY), wall=Material((0.5, 0.55, 0.6, 1.0)))
    more, things = _things()
    lights: tuple[Light, ...] = (
        PointLight((2.0, -1.5, 2.0), (1.0, 0.8, 0.6), 3.0),
        SpotLight((-2.0, -2.0, 3.0), (0.45, 0.55, -0.7), 0.2, 0.5, (0.6, 0.8, 1.0), 25.0),
        SpotLight((0.5, 0.5, 4.0), (0.05, -0.2, -0.98), 0.34, 0.35, (0.7, 1.0, 0.7), 12.0),
    )
    return StillScene(
        Scene("lamps", {**shapes, **more}, materials, instances=(*floor, *things), lights=lights, sky=BLACK), OUTSIDE
    )


def sky() -> StillScene:
    """Return a place under the default sky alone."""
    shapes, materials, floor = _floor(Material(GREY), wall=Material((0.75, 0.7, 0.65, 1.0)))
    more, things = _things()
    return StillScene(Scene("sky", {**shapes, **more}, materials, instances=(*floor, *things), lights=()), OUTSIDE)


def metals() -> StillScene:
    """Return balls of metal, smooth to rough, under the sky and a panel."""
    shapes, materials, floor = _floor(Material(GREY))
    shapes["ball"], shapes["panel"] = Sphere(0.5), Box((1.5, 0.02, 0.6))
    colors = ((0.95, 0.64, 0.54), (1.0, 0.78, 0.34), (0.91, 0.92, 0.92), (0.56, 0.57, 0.58))
    parts = []
    for k, (roughness, color) in enumerate(zip((0.15, 0.25, 0.35, 0.5), colors, strict=True)):
        materials[f"metal{k}"] = Material((*color, 1.0), metallic=1.0, roughness=roughness)
        parts.append(Instance("ball", (1.15 * k - 1.72, 0.2 * k, 0.5), materials=(f"metal{k}",)))
    materials["panel"] = Material((0.0, 0.0, 0.0, 1.0), emissive=(4.0, 4.0, 4.0))
    parts.append(Instance("panel", (0.0, -3.0, 3.2), (float(np.sin(0.3)), 0.0, 0.0, float(np.cos(0.3))), materials=("panel",)))
    scene = Scene("metals", shapes, materials, instances=(*floor, *parts), lights=())
    return StillScene(scene, _view((0.0, -4.6, 1.6), (0.0, 0.2, 0.5), 0.9), diffuse=False)


def mirror() -> StillScene:
    """Return a mirror on the wall behind coloured things, under a sun with soft shadows and the sky."""
    shapes, materials, floor = _floor(Material(GREY), wall=Material((0.7, 0.3, 0.2, 1.0)))
    more, things = _things()
    shapes["glass"] = Box((2.6, 0.05, 1.2))
    materials["glass"] = Material((0.95, 0.95, 0.95, 1.0), metallic=1.0, roughness=0.03)
    glass = Instance("glass", (0.0, 2.0, 1.3), materials=("glass",))
    light = Sun((0.4, 0.62, -0.67), irradiance=2.0)
    scene = Scene("mirror", {**shapes, **more}, materials, instances=(*floor, *things, glass), lights=(light,))
    return StillScene(scene, OUTSIDE, 0.02, False)


def _tiles() -> Texture:
    """Return coloured tiles with a mark in one corner, by which a turned or mirrored picture would show."""
    y, x = np.mgrid[0:128, 0:128]
    board = ((x // 32 + y // 32) % 2)[..., None]
    pixels = np.where(board, [200, 180, 150], [70, 90, 120]).astype(np.uint8)
    pixels[4:28, 4:12], pixels[4:12, 4:28] = (220, 40, 30), (220, 40, 30)
    return Texture(pixels)


def texture() -> StillScene:
    """Return a floor and boxes with a texture, laid along their axes, under sun and sky."""
    tiled = Material((0.9, 0.9, 0.9, 1.0), base_color_map="tiles", texture_size=2.0)
    shapes, materials, floor = _floor(tiled, wall=Material((1.0, 1.0, 1.0, 1.0), base_color_map="tiles", texture_size=0.8))
    more, things = _things()
    things = things[:2]
    light = Sun((0.62, 0.45, -0.64), irradiance=2.5)
    scene = Scene("texture", {**shapes, **more}, materials, {"tiles": _tiles()}, (*floor, *things), lights=(light,))
    return StillScene(scene, OUTSIDE, 0.02)


def _leaf() -> Texture:
    """Return a leaf: green, its outline in alpha."""
    y, x = np.mgrid[0:64, 0:64] / 31.5 - 1.0
    inside = np.clip((0.9 * np.cos(0.5 * np.pi * x) - np.abs(y) * 1.6) * 6.0 + 0.5, 0.0, 1.0)
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[..., :3] = (60, 120, 40)
    pixels[np.abs(y) < 0.04] = (120, 150, 70, 0)
    pixels[..., 3] = np.rint(inside * 255)
    return Texture(pixels, wrap="clamp")


def foliage() -> StillScene:
    """Return three hundred leaf cards over a floor, under sun and sky: their shadows are leaves."""
    rng = np.random.default_rng(3)
    centre = rng.uniform((-1.3, -0.6, 0.7), (1.3, 1.2, 2.1), (300, 3))
    first = rng.normal(size=(300, 3))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(first, rng.normal(size=(300, 3)))
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    corner = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * 0.16
    vertices = centre[:, None] + corner[None, :, :1] * first[:, None] + corner[None, :, 1:] * second[:, None]
    faces = np.arange(1200).reshape(300, 4)[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)
    uv = np.tile([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], (300, 1))
    shapes, materials, floor = _floor(Material(GREY))
    shapes["crown"] = Mesh(vertices.reshape(-1, 3), faces, uv=uv)
    materials["leaf"] = Material(base_color=(1.0, 1.0, 1.0, 1.0), base_color_map="leaf", alpha_cutoff=0.5)
    crown = Instance("crown", materials=("leaf",))
    light = Sun((0.4, 0.3, -0.87), irradiance=3.0)
    scene = Scene("foliage", shapes, materials, {"leaf": _leaf()}, (*floor, crown), lights=(light,))
    return StillScene(scene, _view((0.3, -4.5, 2.2), (0.0, 0.2, 1.0), 0.9))


def glass() -> StillScene:
    """Return things behind panes, one of which mirrors at a flat angle, under a sun 30 times as wide as the real one.

    Mitsuba looks for lamps past glass by chance alone: a small sun would be single bright pixels there.
    """
    shapes, materials, floor = _floor(Material(GREY), wall=Material((0.7, 0.5, 0.3, 1.0)))
    more, things = _things()
    card = np.array([[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
    shapes["pane"] = Mesh(card, np.array([[0, 1, 2], [0, 2, 3]]))
    materials["clear"] = Material((1.0, 1.0, 1.0, 1.0), transmission=1.0)
    materials["green"] = Material((0.5, 0.9, 0.6, 1.0), transmission=0.9, ior=1.7)
    panes = (
        Instance("pane", (-1.1, -0.8, 1.0), (0.0, 0.0, 0.3, float(np.sqrt(0.91))), materials=("green",)),
        Instance("pane", (1.5, -1.2, 1.0), (0.0, 0.0, -0.55, float(np.sqrt(1.0 - 0.55**2))), materials=("clear",)),
    )
    light = Sun((0.62, 0.45, -0.64), irradiance=2.5)
    scene = Scene("glass", {**shapes, **more}, materials, instances=(*floor, *things, *panes), lights=(light,))
    return StillScene(scene, OUTSIDE, 0.15, False)


def water() -> StillScene:
    """Return things that stand in clear water, under the sky and a glowing panel: light is bent, gathered, and lost.

    No sun and no lamp: Mitsuba finds those that stand in the air, from a place under water, not at all or by chance.
    """
    shapes, materials, floor = _floor(Material((0.75, 0.72, 0.6, 1.0)), wall=Material((0.7, 0.4, 0.25, 1.0)))
    more, things = _things()
    shapes |= {"water": Box((7.0, 7.0, 0.4)), "panel": Box((1.5, 0.02, 0.6))}
    materials["water"] = Material((1.0, 1.0, 1.0, 1.0), transmission=1.0, ior=1.333, attenuation=(0.6, 0.15, 0.1))
    materials["panel"] = Material((0.0, 0.0, 0.0, 1.0), emissive=(5.0, 4.5, 3.5))
    parts = (
        Instance("water", (0.0, 0.0, 0.3), materials=("water",)),
        Instance("panel", (0.8, 3.0, 2.2), (float(np.sin(-0.25)), 0.0, 0.0, float(np.cos(0.25))), materials=("panel",)),
    )
    scene = Scene("water", {**shapes, **more}, materials, instances=(*floor, *things, *parts), lights=())
    return StillScene(scene, OUTSIDE, 0.15, False)


SCENES: dict[str, Callable[[], StillScene]] = {
    one.__name__: one for one in (box, furnace, sun, lamps, area, sky, metals, mirror, texture, foliage, glass, water)
}
