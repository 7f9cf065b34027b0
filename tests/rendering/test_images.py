"""The one call for all channels."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.frames import camera_attitude, from_euler
from airworthy.geometry import CHANNELS, Box, Mesh, cast
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import luminance
from airworthy.rendering.images import CHANNEL_NAMES, FlowMotion, render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, Scene, Texture

CAMERA = Pinhole.from_fov(40, 30, vertical=1.0)
ATTITUDE = camera_attitude(from_euler(0.0, 0.6, 0.0))[None]
POSITION = np.array([[-2.0, 0.0, 2.0]])


def quad(**parts: object) -> Mesh:
    vertices = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], np.float32)
    uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], np.float32)
    return Mesh(vertices, np.array([[0, 1, 2], [0, 2, 3]]), uv=uv, **parts)  # type: ignore[arg-type]


def batch(hole: bool = False) -> SceneBatch:
    pixels = np.full((2, 2, 4), 255, np.uint8)
    pixels[..., 3] = 0 if hole else 255
    materials = {"cut": Material(base_color_map="t", alpha_cutoff=0.5), "plain": Material((0.2, 0.3, 0.4, 1.0))}
    sheet = Instance("sheet", (0.0, 0.0, 0.5), materials=("cut",), name="sheet")
    floor = Instance("floor", (0.0, 0.0, -0.5), materials=("plain",))
    heat = quad(channels={"heat": np.array([0.0, 1.0, 2.0, 3.0], np.float32)})
    shapes = {"sheet": heat, "floor": Box((3.0, 3.0, 0.5))}
    return SceneBatch(Scene("s", shapes, materials, {"t": Texture(pixels)}, (floor, sheet)))


def test_every_channel_is_delivered_alone_and_together() -> None:
    motion = FlowMotion(CAMERA, POSITION + 0.1, ATTITUDE)
    everything = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=CHANNEL_NAMES, motion=motion)
    assert set(everything) == set(CHANNEL_NAMES)
    for name, array in everything.items():
        assert array.shape[:3] == (1, 30, 40), name
        alone = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=(name,), motion=motion)
        assert list(alone) == [name]
        # Behind cut-out sheets a ray begins anew, a rounding away: the last bit of colours may differ.
        np.testing.assert_allclose(alone[name], array, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(everything["grey"], luminance(everything["rgb"]), rtol=1e-6)


def test_vertex_channels_are_interpolated() -> None:
    found = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("heat", "point_world", "instance"))
    sheet = found["instance"][0] == 1
    x, y = found["point_world"][0, ..., 0][sheet], found["point_world"][0, ..., 1][sheet]
    lower = x >= y  # the first triangle: corners 0, 1, 2 with heat 0, 1, 2
    expected = np.where(lower, (x + 1) / 2 + (y + 1) / 2, -(x + 1) / 2 + 3 * (y + 1) / 2)
    np.testing.assert_allclose(found["heat"][0][sheet], expected, atol=1e-4)
    assert np.isnan(found["heat"][0][~sheet]).all()


def test_rays_of_all_channels_go_through_holes() -> None:
    names = tuple(CHANNELS)
    found = render(batch(hole=True), CAMERA.rays(), POSITION, ATTITUDE, channels=names)
    bare = batch(hole=True)
    bare.geometry.set_layout_active(0, np.array([True, False]))
    clear = cast(bare.geometry, CAMERA.rays(), POSITION, ATTITUDE, channels=names)
    met = np.isfinite(clear["range"])
    for name in names:
        # The second ray starts a millimetre before what is met: single precision of a few metres.
        np.testing.assert_allclose(found[name][met], clear[name][met], atol=3e-6 if name != "face" else 0, err_msg=name)
        np.testing.assert_array_equal(found[name][~met], clear[name][~met], err_msg=name)
    solid = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("instance",))["instance"]
    assert (solid == 1).any()


def test_rows_may_have_poses_of_their_own() -> None:
    where, turned = np.repeat(POSITION[:, None], 40, 1), np.repeat(ATTITUDE[:, None], 40, 1)
    plain = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("rgb", "depth"))
    rolled = render(
        batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("rgb", "depth"), column_position=where, column_attitude=turned
    )
    for name in plain:
        np.testing.assert_array_equal(rolled[name], plain[name])


def test_a_camera_does_not_see_what_it_ignores() -> None:
    found = render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("rgb", "instance"), ignore=np.array([1]))
    assert not (found["instance"] == 1).any()


def test_names_and_shapes_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="heat"):
        render(batch(), CAMERA.rays(), POSITION, ATTITUDE, channels=("heet",))
    with pytest.raises(AirworthyError, match=r"environments|sensors"):
        render(batch(), CAMERA.rays(), POSITION, ATTITUDE, env=np.array([3]))
    with pytest.raises(AirworthyError, match="finite"):
        render(batch(), CAMERA.rays(), POSITION * np.nan, ATTITUDE, channels=("rgb",))
    empty = render(
        batch(), CAMERA.rays(), np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0, int), options=ShadingOptions(samples=2)
    )
    assert empty["rgb"].shape == (0, 30, 40, 3)
