"""Light that surfaces send on at night, where nothing is baked."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.geometry import Box, RayTable
from airworthy.rendering import BakeSettings, StillOptions, render
from airworthy.rendering.light_baking import bake
from airworthy.rendering.shading import ShadingOptions
from airworthy.rendering.stray_light import needs_stray_light, stray_irradiance
from airworthy.scenes import Actor, Instance, Material, PointLight, Region, Scene, SceneBatch, Sky, under_sky, weather_named
from airworthy.scenes.actors import stationary
from airworthy.scenes.appearance import appearance_of

GREY = 0.5
NIGHT = weather_named("night").sky
LAMP = PointLight((0.4, -0.3, 1.5), intensity=0.05, range=100.0, from_dusk=True)


def room(sky: Sky = NIGHT, height: float = 3.0, roof: bool = True) -> Scene:
    """A grey room of 4 m x 4 m with a lamp in it."""
    middle = 0.5 * height
    slabs = {
        "floor": (Box((2.0, 2.0, 0.1)), (0.0, 0.0, -0.1)),
        "west": (Box((0.1, 2.0, middle)), (-2.1, 0.0, middle)),
        "east": (Box((0.1, 2.0, middle)), (2.1, 0.0, middle)),
        "south": (Box((2.0, 0.1, middle)), (0.0, -2.1, middle)),
        "north": (Box((2.0, 0.1, middle)), (0.0, 2.1, middle)),
        "roof": (Box((2.0, 2.0, 0.1)), (0.0, 0.0, height + 0.1)),
        # Behind which no lamp shines.
        "screen": (Box((0.02, 0.5, 0.5)), (1.4, 0.9, 0.5)),
    }
    items = tuple(Instance(name, at, materials=("grey",)) for name, (_, at) in slabs.items() if roof or name != "roof")
    place = Scene(
        "room",
        {name: shape for name, (shape, _) in slabs.items()},
        {"grey": Material((GREY, GREY, GREY, 1.0), roughness=1.0)},
        instances=items,
        lights=(LAMP,),
        bounds=Region((-2.0, -2.0, 0.0), (2.0, 2.0, height)),
    )
    return under_sky(place, sky)


DARK = RayTable(np.array([[[-1.0, 0.0, 0.0]]]))
POSE = np.array([[1.9, 0.9, 0.5]]), np.array([[0.0, 0.0, 0.0, 1.0]])
"""Looks at the side of the screen that the lamp does not reach."""


def seen(batch: SceneBatch, **more: object) -> np.ndarray:
    return np.asarray(render(batch, DARK, *POSE, channels=("rgb",), **more)["rgb"]).reshape(3)  # type: ignore[arg-type]


def test_a_closed_room_sends_around_what_an_integrating_sphere_does() -> None:
    """Of a flux F on an area A of albedo r, F / A (r + r^2 + r^3) after three times."""
    place = room()
    flux, area = 4.0 * math.pi * LAMP.intensity, 2.0 * 16.0 + 4.0 * 12.0 + 2.0
    expected = flux / area * sum(GREY**k for k in (1, 2, 3))
    found = stray_irradiance(place)
    # Walls near the lamp are brighter, and seen from more places than corners: no sphere, but nearly.
    np.testing.assert_allclose(found, expected * np.array(LAMP.color), rtol=0.15)


def test_what_no_lamp_reaches_is_as_bright_as_in_a_still_image_and_not_black() -> None:
    batch = SceneBatch(room())
    assert batch.scenes[0].lights[0].color == LAMP.color
    told = seen(batch)
    still = seen(batch, still=StillOptions(samples=512, seed=1))
    assert (told > 0.5 * still).all()
    assert (told < 2.0 * still).all()
    bare = replace(room(), lights=())
    assert (told > 100.0 * seen(SceneBatch(bare))).all()


def test_by_day_without_lamps_and_under_a_gradient_nothing_is_added() -> None:
    day, plain = weather_named("noon").sky, Sky()
    always = replace(LAMP, from_dusk=False)
    for place in (room(day), replace(room(day), lights=(always,)), replace(room(), sky=plain), replace(room(), lights=())):
        assert not needs_stray_light(place)
        batch = SceneBatch(place)
        before = appearance_of(batch).skies.copy()
        seen(batch)
        assert appearance_of(batch).skies.tobytes() == before.tobytes()
    assert needs_stray_light(room())
    assert needs_stray_light(replace(room(), lights=(always,)))


def test_every_environment_has_the_light_of_its_own_place_whatever_moves_in_it() -> None:
    cart = Actor("cart", (Instance("screen", (0.0, 0.0, 0.0)),), position=(0.5, 0.0, 0.5))
    riding = replace(LAMP, attached="cart", position=(0.0, 0.0, 0.3))
    look = Instance("screen", (0.1, 0.0, 0.0), attached="cart")
    moving = replace(room(), actors=(cart,), looks=(look,), lights=(*room().lights, riding))
    assert stray_irradiance(moving).tobytes() == stray_irradiance(room()).tobytes()
    assert stationary(moving) == room()
    high = room(height=6.0)
    alone = [seen(SceneBatch(place)).tobytes() for place in (room(), high)]
    both = SceneBatch([high, room(), high])
    poses = np.repeat(POSE[0], 3, 0), np.repeat(POSE[1], 3, 0)
    together = render(both, DARK, *poses, np.arange(3), channels=("rgb",))["rgb"].reshape(3, 3)
    assert [row.tobytes() for row in together] == [alone[1], alone[0], alone[1]]


def test_baked_light_takes_its_place_and_looks_that_ride_on_actors_are_left_out_of_baking() -> None:
    cart = Actor("cart", (Instance("screen", (0.0, 0.0, 0.0)),), position=(0.5, 0.0, 0.5))
    moving = replace(room(), actors=(cart,), looks=(Instance("screen", (0.1, 0.0, 0.0), attached="cart"),))
    light = bake(moving, BakeSettings(bounces=1))
    batch = SceneBatch(room())
    appearance_of(batch).use(0, light)
    lit = seen(batch)
    appearance_of(batch).stray(0, np.ones(3))
    assert seen(batch).tobytes() == lit.tobytes()
    assert seen(batch, options=ShadingOptions(baked=False)).mean() > 0.1
