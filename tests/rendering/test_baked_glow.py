"""Light that goes round and light of what glows, as baking has them: against matrices, closed forms and leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box, Mesh, RayTable, Shape, Sphere
from airworthy.rendering import relaxation
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.glow_lamps import LAMP_POINTS, glow_lamps
from airworthy.rendering.light_baking import bake
from airworthy.rendering.occlusion import scene_occlusion
from airworthy.rendering.shading import ShadingOptions, shade
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, Region, Scene, Sky, Sun, Texture
from airworthy.scenes.texels import unpack_shared_exponent

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
ONCE = BakeSettings(bounces=1, rays=64, texel=0.5, finest=1.0, probes_max=27, occlusion_rays=0)


def test_mixing_rounds_finds_the_fixed_point_of_a_linear_map_long_before_repeating_does() -> None:
    rng = np.random.default_rng(0)
    share = rng.uniform(0.5, 1.5, (40, 40))
    share *= 0.85 / share.sum(1, keepdims=True)
    given = rng.uniform(size=(40, 3))
    exact = np.linalg.solve(np.eye(40) - share, given)
    state, mixed = np.zeros_like(given), relaxation.Relaxation()
    repeated = np.zeros_like(given)
    for _ in range(6):
        state = mixed.next(state, share @ state + given)
        repeated = share @ repeated + given
    assert np.abs(state - exact).max() < 1e-4 * exact.max()
    assert mixed.change < 1e-4
    assert np.abs(repeated - exact).max() > 0.3 * exact.max()  # 0.85^6 of it is missing
    assert np.isinf(relaxation.Relaxation().change)


def test_no_light_becomes_negative_by_mixing() -> None:
    mixed = relaxation.Relaxation()
    mixed.next(np.zeros((2, 1)), np.array([[1.0], [0.0]]))
    found = mixed.next(np.array([[1.0], [0.0]]), np.array([[0.1], [0.05]]))
    assert (found >= 0.0).all()


def lit_floor(*glowing: Instance, **shapes: Shape) -> Scene:
    """A black floor whose top is z = 0 under things that send 5."""
    materials = {"floor": Material((0.0, 0.0, 0.0, 1.0)), "glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(5.0, 2.5, 1.0))}
    floor = Instance("floor", (0.0, 0.0, -0.1), materials=("floor",))
    things: dict[str, Shape] = {"floor": Box((2.0, 2.0, 0.1)), **shapes}
    return Scene("s", things, materials, {}, (floor, *glowing), lights=(), sky=BLACK, bounds=Region((-2, -2, 0), (2, 2, 2)))


def light_below(scene: Scene) -> np.ndarray:
    """Irradiance of the floor's middle, (3,)."""
    baked = bake(scene, ONCE)
    first, x, y, z = (int(v) for v in baked.maps[0])
    top = first + 2 * y * z + 2 * x * z + x * y
    return np.asarray(unpack_shared_exponent(baked.nodes[top : top + x * y, 0]).reshape(x, y, 3)[x // 2, y // 2])


def test_a_small_panel_lights_a_floor_as_its_form_factor_says() -> None:
    """Under the corner of a rectangle a x b at height h: F = (A/sqrt(1+A^2) atan(B/sqrt(1+A^2)) + ...) / 2 pi, A = a/h, B = b/h
    (Siegel and Howell). A panel of 0.2 x 0.2 m at 1.9 m is met by one of 64 directions, or by none."""
    scene = lit_floor(Instance("panel", (0.0, 0.0, 1.91), materials=("glow",)), panel=Box((0.1, 0.1, 0.01)))
    side = 0.1 / 1.9
    root = np.sqrt(1.0 + side * side)
    factor = 4.0 * 2.0 * side / root * np.arctan(side / root) / (2.0 * np.pi)
    # The floor's light is the mean over 3 x 3 nodes (0.5 m): their edges get less, by the fourth power of the cosine.
    offset = np.array([-0.5, 0.0, 0.5])
    fall = (1.9**2 / (1.9**2 + offset[:, None] ** 2 + offset[None] ** 2)) ** 2
    blur = np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25])
    expected = np.pi * factor * (fall * blur).sum() * np.array([5.0, 2.5, 1.0])
    # A face has a whole number of the 64 points, the panel's lower one 27 for 26.7; and nodes keep nine bits.
    np.testing.assert_allclose(light_below(scene), expected, rtol=0.03)


def test_a_glowing_ball_lights_as_its_disc() -> None:
    """Irradiance under a ball: pi L (r / d)^2, here of a ball, and of the same by triangles."""
    ball = lit_floor(Instance("ball", (0.0, 0.0, 1.5), materials=("glow",)), ball=Sphere(0.2))
    offset = np.array([-0.5, 0.0, 0.5])
    square = 1.5**2 + offset[:, None] ** 2 + offset[None] ** 2
    each = np.pi * 0.2**2 / square * 1.5 / np.sqrt(square)
    expected = (each * np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25])).sum()
    assert light_below(ball)[0] == pytest.approx(5.0 * expected, rel=0.06)  # 64 points, half of them on its back


def test_points_lie_on_what_glows_in_proportion_to_its_light() -> None:
    scene = lit_floor(
        Instance("panel", (1.0, 0.0, 1.0), materials=("glow",)),
        Instance("card", (0.0, 1.0, 1.0), scale=2.0, materials=("glow",)),
        panel=Box((0.3, 0.3, 1e-4)),
        card=Mesh(np.array([[0.0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]]), np.array([[0, 1, 2]])),
    )
    glow = glow_lamps(SceneBatch(scene))
    face, point, normal = glow.points()
    on_card = np.isclose(point[:, 1:2], point[:, 1:2]).all(1) & (point[:, 1] > 0.5)
    # The panel's two faces have 0.72 m^2, the card 0.5.
    assert on_card.sum() == pytest.approx(LAMP_POINTS * 0.5 / 1.22, abs=2)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0)
    assert (np.abs(point[~on_card, :2] - [1.0, 0.0]) <= 0.3 + 1e-9).all()
    assert (point[on_card] @ [1.0, 1.0, 0.0] <= 2.0 + 1e-9).all()
    assert (glow.first == [-1, 0, 6]).all()
    assert len(np.unique(face)) >= 3


@pytest.mark.parametrize("patchy", [{"alpha_cutoff": 0.5}, {"emissive_map": "where"}])
def test_points_are_chosen_on_nothing_that_glows_in_places(patchy: dict[str, Any]) -> None:
    """A hole sends nothing, and a map says where light is sent: a point on either would light a floor from nowhere."""
    whole = lit_floor(
        Instance("panel", (1.0, 0.0, 1.0), materials=("glow",)),
        Instance("panel", (-1.0, 0.0, 1.0), materials=("patchy",)),
        panel=Box((0.3, 0.3, 1e-4)),
    )
    where = {"where": Texture(np.full((4, 4, 4), 255, np.uint8))}
    look = {**whole.materials, "patchy": replace(whole.materials["glow"], base_color_map="where", **patchy)}
    glow = glow_lamps(SceneBatch(replace(whole, materials=look, textures=where)))
    assert glow.first.tolist() == [-1, 0, -1]
    assert (glow.points()[1][:, 0] > 0.0).all()


def leaf_scene() -> Scene:
    """A card over a floor whose left half is a hole, under a sun from above."""
    pixels = np.full((8, 8, 4), 255, np.uint8)
    pixels[:, :4, 3] = 0
    card = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    uv = np.array([[0.0, 1], [1, 1], [1, 0], [0, 0]])
    materials = {
        "floor": Material((0.5, 0.5, 0.5, 1.0)),
        "leaf": Material((1.0, 1.0, 1.0, 1.0), base_color_map="leaf", alpha_cutoff=0.5),
    }
    shapes: dict[str, Shape] = {"floor": Box((2.0, 2.0, 0.1)), "card": Mesh(card, np.array([[0, 1, 2], [0, 2, 3]]), uv=uv)}
    parts = (
        Instance("floor", (0.0, 0.0, -0.1), materials=("floor",)),
        Instance("card", (0.0, 0.0, 1.0), materials=("leaf",)),
    )
    leaf = {"leaf": Texture(pixels, wrap="clamp")}
    return Scene("s", shapes, materials, leaf, parts, lights=(Sun((0.0, 0.0, -1.0), irradiance=np.pi),), sky=BLACK)


def test_leaves_cast_the_shadow_of_their_holes_where_it_is_asked_for() -> None:
    batch = SceneBatch(leaf_scene())
    # From under the card, straight down, left and right of its middle, and beside it.
    places = np.array([[-0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [1.5, 0.0, 0.5]])
    down = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    sheet = ShadingOptions(specular=False)
    found = shade(batch, down, places, turn, np.zeros(3, int), sheet)[:, 0, 0, 0]
    np.testing.assert_allclose(found, [0.0, 0.0, 0.5], atol=1e-5)
    found = shade(batch, down, places, turn, np.zeros(3, int), replace(sheet, leaf_shadows=True))[:, 0, 0, 0]
    np.testing.assert_allclose(found, [0.5, 0.0, 0.5], atol=1e-5)


def test_a_crown_of_cut_outs_has_no_shade_of_its_own_twice() -> None:
    scene = leaf_scene()
    assert scene_occlusion(scene, 16, 2.0, 1000) == {}
    solid = replace(scene, materials={**scene.materials, "leaf": Material()})
    assert set(scene_occlusion(solid, 16, 2.0, 1000)) == {"card"}
