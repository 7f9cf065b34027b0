"""Optical flow against projecting the same points twice."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.rendering.images import FlowMotion, render
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Actor, Instance, Scene

CAMERA = Pinhole.from_fov(48, 36, vertical=1.0)
ATTITUDE = frames.camera_attitude(frames.from_euler(0.0, 0.0, 0.0))[None]


def batch(actor: bool = False) -> SceneBatch:
    part = Instance("wall", (0.0, 0.0, 0.0))
    wall = Instance("wall", (5.5, 0.0, 0.0))
    actors = (Actor("mover", (part,), position=(5.5, 0.0, 0.0)),) if actor else ()
    return SceneBatch(Scene("s", {"wall": Box((0.5, 1.0, 1.0))}, instances=() if actor else (wall,), actors=actors))


def test_sideways_motion_in_front_of_a_wall_has_flow_focal_length_times_shift_over_depth() -> None:
    p = np.zeros((1, 3))
    next_p = np.array([[0.0, 0.2, 0.0]])  # to the left: everything moves right
    motion = FlowMotion(CAMERA, next_p, ATTITUDE)
    found = render(batch(), CAMERA.rays(), p, ATTITUDE, channels=("flow", "depth"), motion=motion)
    wall = np.isfinite(found["depth"][0])
    np.testing.assert_allclose(
        found["flow"][0][wall], np.array([CAMERA.fx * 0.2 / 5.0, 0.0]) * np.ones((wall.sum(), 2)), atol=1e-4
    )
    np.testing.assert_allclose(found["flow"][0][~wall], 0.0, atol=1e-9)  # the sky is at no distance


def test_rotation_moves_the_sky_too_or_leaves_it_out() -> None:
    p = np.zeros((1, 3))
    turned = frames.camera_attitude(frames.from_euler(0.0, 0.0, 0.01))[None]
    for sky in ("rotation", "nan"):
        motion = FlowMotion(CAMERA, p, turned, sky=sky)  # type: ignore[arg-type]
        found = render(batch(), CAMERA.rays(), p, ATTITUDE, channels=("flow", "depth"), motion=motion)
        missed = np.isinf(found["depth"][0])
        if sky == "nan":
            assert np.isnan(found["flow"][0][missed]).all()
        else:
            middle = found["flow"][0, 18, :, 0]
            x = (np.arange(48) + 0.5 - 24.0) / CAMERA.fx
            exact = CAMERA.fx * (np.tan(np.arctan(x) + 0.01) - x)
            # Row 18 is half a pixel beside the axis: cos of 0.014 rad
            np.testing.assert_allclose(middle, exact, rtol=2e-3)


def test_a_dynamic_instance_carries_its_points() -> None:
    p = np.zeros((1, 3))
    scene = batch(actor=True)
    now = (np.array([[[5.5, 0.0, 0.0]]]), np.array([[[0.0, 0.0, 0.0, 1.0]]]))
    later = (np.array([[[5.5, 0.0, 0.3]]]), np.array([[[0.0, 0.0, 0.0, 1.0]]]))
    motion = FlowMotion(CAMERA, p, ATTITUDE, now, later)
    found = render(scene, CAMERA.rays(), p, ATTITUDE, channels=("flow", "depth"), motion=motion)
    met = np.isfinite(found["depth"][0])
    assert met.sum() > 50
    np.testing.assert_allclose(found["flow"][0][met], [[0.0, -CAMERA.fy * 0.3 / 5.0]] * int(met.sum()), atol=1e-4)


def test_flow_of_a_distorted_random_motion_is_what_projecting_twice_gives() -> None:
    rng = np.random.default_rng(2)
    p, next_p = np.zeros((1, 3)), rng.normal(0.0, 0.2, (1, 3))
    next_q = frames.multiply(ATTITUDE, frames.from_rotation_vector(rng.normal(0.0, 0.02, (1, 3))))
    found = render(
        batch(), CAMERA.rays(), p, ATTITUDE, channels=("flow", "point_world"), motion=FlowMotion(CAMERA, next_p, next_q)
    )
    points = found["point_world"][0].astype(float)
    first, _ = CAMERA.project(frames.rotate_inverse(ATTITUDE[0], points))
    second, _ = CAMERA.project(frames.rotate_inverse(next_q[0], points - next_p[0]))
    met = np.isfinite(points[..., 0])
    np.testing.assert_allclose(found["flow"][0][met], (second - first)[met], atol=2e-3)  # pixels; single precision of points


def test_flow_without_a_next_image_is_refused() -> None:
    with pytest.raises(AirworthyError, match="Motion"):
        render(batch(), CAMERA.rays(), np.zeros((1, 3)), ATTITUDE, channels=("flow",))
