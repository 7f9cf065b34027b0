"""Lamps that burn from dusk on, and meshes that know how much of the light from all sides reaches them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.geometry import Box, Mesh, RayTable
from airworthy.rendering import StillOptions, render
from airworthy.scenes import (
    Instance,
    PointLight,
    Scene,
    SceneBatch,
    Sky,
    SpotLight,
    Sun,
    read_scene,
    under_sky,
    weather_named,
    write_scene,
)
from airworthy.scenes.appearance import OPEN_CHANNEL
from airworthy.scenes.lights import is_burning, light_rows
from airworthy.scenes.record import Light

LAMP = SpotLight((0.0, 0.0, 3.0), (0.0, 0.0, -1.0), 0.9, 1.4, intensity=0.05, from_dusk=True)
DOWN = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
POSE = np.array([[0.3, 0.2, 2.0]]), np.array([[0.0, 0.0, 0.0, 1.0]])


def floor(lights: tuple[Light, ...], sky: Sky) -> Scene:
    return Scene(
        "floor", {"floor": Box((4.0, 4.0, 0.1))}, instances=(Instance("floor", (0.0, 0.0, -0.1)),), lights=lights, sky=sky
    )


def test_lamps_burn_while_the_sun_stands_low() -> None:
    for name, burning in (("noon", False), ("evening", False), ("overcast", False), ("dusk", True), ("night", True)):
        assert is_burning(LAMP, weather_named(name).sky) is burning
    assert not is_burning(LAMP, Sky())  # of a gradient nobody knows the hour
    always = replace(LAMP, from_dusk=False)
    assert is_burning(always, weather_named("noon").sky)
    assert is_burning(Sun((0.0, 0.0, -1.0)), weather_named("night").sky)


def test_a_lamp_that_is_out_gives_the_bytes_of_no_lamp() -> None:
    bare = under_sky(floor((), Sky()), weather_named("noon").sky)
    dark, night = replace(bare, lights=(*bare.lights, LAMP)), weather_named("night").sky
    seen = [render(SceneBatch(place), DOWN, *POSE, channels=("rgb",))["rgb"] for place in (bare, dark)]
    assert seen[0].tobytes() == seen[1].tobytes()
    lit = [render(SceneBatch(under_sky(place, night)), DOWN, *POSE, channels=("rgb",))["rgb"] for place in (bare, dark)]
    assert lit[1].mean() > 100.0 * lit[0].mean()
    still = [
        render(SceneBatch(place), DOWN, *POSE, channels=("rgb",), still=StillOptions(samples=4))["rgb"]
        for place in (bare, dark)
    ]
    assert still[0].tobytes() == still[1].tobytes()


def test_lamps_keep_their_numbers_where_some_ride_on_actors() -> None:
    noon = weather_named("noon").sky
    riding = PointLight((0.0, 0.0, 1.0), attached="cart")
    rows, spans = light_rows([floor((LAMP, riding), noon)])
    assert spans.tolist() == [[0, 2]]
    assert not rows[0, 7:10].any()
    assert rows[1, 7:10].all()
    rows, spans = light_rows([floor((LAMP,), noon), floor((LAMP, Sun((0.0, 0.0, -1.0))), weather_named("night").sky)])
    assert spans.tolist() == [[0, 0], [0, 2]]


def test_a_scene_file_keeps_when_lamps_burn(tmp_path: Path) -> None:
    place = floor((LAMP, replace(LAMP, from_dusk=False)), weather_named("night").sky)
    assert read_scene(write_scene(place, tmp_path)).lights == place.lights


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_mesh_takes_its_share_of_the_light_from_all_sides(share: float) -> None:
    """Half of the sky's light where half is open; a still image looks for itself."""
    corners = np.array([[-4.0, -4.0, 0.0], [4.0, -4.0, 0.0], [4.0, 4.0, 0.0], [-4.0, 4.0, 0.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])

    def seen(channels: dict[str, np.ndarray], still: StillOptions | None = None) -> np.ndarray:
        place = Scene("sheet", {"sheet": Mesh(corners, faces, channels=channels)}, instances=(Instance("sheet"),), lights=())
        return np.asarray(render(SceneBatch(place), DOWN, *POSE, channels=("rgb",), still=still)["rgb"]).reshape(3)

    shaded, plain = seen({OPEN_CHANNEL: np.full(4, share, np.float32)}), seen({})
    # 16 bits of the share.
    np.testing.assert_allclose(shaded, share * plain, atol=1e-4)
    still = StillOptions(samples=2)
    assert seen({OPEN_CHANNEL: np.full(4, share, np.float32)}, still).tobytes() == seen({}, still).tobytes()
