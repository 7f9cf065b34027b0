"""What the room of splats computes, number by number: lenses, packing, images of every option, derivatives, training."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.splats.gradient_cases import LENS, SIZE, in_view

from airworthy.geometry import Box, Sphere
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Spherical
from airworthy.scenes import Instance, Region, Scene, SceneBatch
from airworthy.splats import SplatRenderer, gsplat_backend, surfaces, twin
from airworthy.splats.cameras import lens_numbers, reduced_spread, slope_limits
from airworthy.splats.cloud import make_cloud, morton_order, rotation_matrices
from airworthy.splats.exposure import encoded_of, linear_of
from airworthy.splats.lens import Lens
from airworthy.splats.policy_view import PolicyView, triangle_matrix
from airworthy.splats.projected import pinhole_of, ray_views, render_projection
from airworthy.splats.renderer import turns
from airworthy.splats.training import engines, plane_sweep
from airworthy.splats.training import twin as training_twin
from airworthy.splats.training.fields import fields_of
from airworthy.splats.training.optimizer import Rates

SNAPSHOTS = Path(__file__).parent / "snapshots"
POSITION, ATTITUDE = (
    np.array([[0.1, -0.2, 0.0], [0.0, 0.3, -0.5]]),
    np.array([[0.0, 0.0, 0.0, 1.0], [0.05, -0.1, 0.02, 0.9934]]),
)
PROJECTIONS = {
    "straight": Pinhole(*SIZE, 20.0, 22.0, 12.0, 11.0),
    "bent": Pinhole(*SIZE, 20.0, 22.0, 12.0, 11.0, PlumbBob(-0.1, 0.03, 0.004, -0.003)),
    "fisheye": Fisheye(*SIZE, 10.0, 10.0, 13.0, 10.0, AnglePolynomial(0.05, -0.01)),
    "scan": Spherical(30, 9),
    "sector": Spherical(20, 9, (-0.5, 0.6), (-0.3, 0.3)),
}


def splats(count: int = 40, degree: int = 2) -> Any:
    return in_view(np.random.default_rng(7), count, degree)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_images_of_the_twin(degree: int) -> None:
    """Every channel and option; the renderers are held against the twin elsewhere."""
    cloud, values = splats(30, degree), {}
    for name, options in {
        "plain": {},
        "white": {"background": (1.0, 0.5, 0.2)},
        "dilated": {"dilation": 0.1},
    }.items():
        images = twin.render(cloud, *SIZE, LENS, POSITION[0], ATTITUDE[1], **options)
        values |= {f"{name} {key}": image for key, image in images.items()}
    check_snapshot(SNAPSHOTS / f"twin_{degree}.txt", values, 1e-6, 1e-6)


def test_images_of_the_renderer() -> None:
    renderer, values = SplatRenderer(splats()), {}
    for name, options in {
        "plain": {},
        "every": {"channels": ("rgb", "depth", "alpha")},
        "white": {"background": (1.0, 0.5, 0.2)},
        "near": {"near": 2.0},
        "dilated": {"dilation": 0.1},
    }.items():
        images = renderer.render(*SIZE, LENS, POSITION, ATTITUDE, **options)
        values |= {f"{name} {key}": image for key, image in images.items()}
    check_snapshot(SNAPSHOTS / "renderer.txt", values, 1e-4, 1e-4)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_images_of_projections(name: str) -> None:
    projection: Any = PROJECTIONS[name]
    images = render_projection(SplatRenderer(splats()), projection, POSITION, ATTITUDE)
    values: dict[str, Any] = dict(images)
    values["views"] = [condensed(view) for view in ray_views(projection.rays())]
    values["pinhole"] = str(pinhole_of(projection.rays().directions) is None)
    lens = Lens.of(projection)
    if lens is not None:
        found, pixels = lens
        slope = np.random.default_rng(1).uniform(-0.7, 0.7, (30, 2))
        values |= {"numbers": found.numbers, "limit": found.limit, "bend": found.bend(slope), "slopes": found.slopes(slope)}
        point = np.concatenate([slope, np.ones((30, 1))], axis=-1)
        values["unrolled"], values["pixel rays"] = list(found.unroll(point)), list(found.pixel_rays(9, 7, pixels))
        values["rays"] = list(found.rays(slope))
        values["lens numbers"] = condensed(lens_numbers(found, *SIZE, pixels))
    check_snapshot(SNAPSHOTS / f"projection_{name}.txt", values, 1e-4, 1e-4)


def test_packing() -> None:
    cloud = splats(70, 1)
    packed = make_cloud([cloud, splats(5, 1)])
    arrays = {key: value for key, value in vars(packed).items() if isinstance(value, np.ndarray)}
    values: dict[str, Any] = {key: value for key, value in arrays.items() if value.dtype.names is None}
    values["order"], values["matrices"] = morton_order(cloud.position), rotation_matrices(cloud.rotation)
    values["limits"] = slope_limits(*SIZE, LENS[None])
    values["spread"] = [list(reduced_spread(reduced, 0.3)) for reduced in ((1.0, 1.0), (2.0, 3.0), (4.0, 1.5))]
    rng = np.random.default_rng(2)
    values["turns"] = turns(rng.normal(size=(4, 3, 3)), rotation_matrices(cloud.rotation[:4]))
    x = np.linspace(0.0, 1.0, 30, dtype=np.float32)
    values["linear"], values["encoded"] = linear_of(x), encoded_of(x)
    for size, resized in ((640, 256), (480, 256), (256, 256), (100, 256)):
        values[f"resize {size}"] = triangle_matrix(size, resized)
    view = PolicyView((256, 256), (224, 224))
    values["policy"] = [condensed(view), view.corner, view.intrinsics()]
    check_snapshot(SNAPSHOTS / "packing.txt", values, 1e-6, 1e-6)


def test_surfaces() -> None:
    place = Scene(
        "room",
        {"floor": Box((3.0, 3.0, 0.1)), "cube": Box((0.4, 0.5, 0.6)), "ball": Sphere(0.4)},
        instances=(Instance("floor", (0, 0, -0.1)), Instance("cube", (1, 0.5, 0.6)), Instance("ball", (-1, 0.2, 0.4))),
        bounds=Region((-2.5, -2.5, 0.0), (2.5, 2.5, 2.0)),
    )
    batch = SceneBatch(place)
    patches = surfaces.patches_of(place, 0.5)
    eyes = surfaces.viewpoints(batch, 6, 0.3, 2)
    exposure, seen, witnesses = surfaces.exposure_of(batch, patches, eyes)
    weight = np.random.default_rng(3).random(len(exposure))
    chosen, where = surfaces.spread_points(patches, weight, 25)
    values: dict[str, Any] = {
        "patches": condensed(patches),
        "few": condensed(surfaces.patches_of(place, 0.5, 40)),
        "eyes": eyes,
    }
    values |= {"exposure": exposure, "seen": seen, "witnesses": witnesses, "chosen": chosen, "where": where}
    values["sequence"] = [surfaces.sequence(5), surfaces.sequence(3, 7)]
    normals = np.random.default_rng(4).normal(size=(25, 3))
    values["witnessed"] = surfaces.witnessed(batch, where, normals, eyes, witnesses[chosen])
    values["evenly"] = surfaces.evenly(where, normals, np.full(25, 0.6), 9)
    check_snapshot(SNAPSHOTS / "surfaces.txt", values, 1e-5, 1e-5)


def test_training() -> None:
    values: dict[str, Any] = {}
    opacity = np.linspace(0.01, 0.99, 9)
    for copies in (1, 2, 5):
        values[f"shared {copies}"] = list(engines.shared(opacity, np.full(9, copies)))
    rng = np.random.default_rng(5)
    rgb = (rng.random((3, 40, 48, 3)) * 255).astype(np.uint8)
    lens = np.array([40.0, 40.0, 24.0, 20.0])
    view = plane_sweep.small_view(rgb[0], lens, POSITION[0], ATTITUDE[1])
    values["small view"], values["rays"] = condensed(view), view.rays()
    values["at"] = list(view.at(np.array((0.0, 0.0, 3.0)) + rng.normal(size=(20, 3))))
    values["turned"] = plane_sweep.turned(rng.normal(size=(5, 3)), rotation_matrices(ATTITUDE[1:])[0])
    check_snapshot(SNAPSHOTS / "training.txt", values, 1e-5, 1e-5)


def test_a_step_of_training() -> None:
    rng = np.random.default_rng(6)
    found = fields_of(splats(12, 1))
    values: dict[str, Any] = {}
    for number, rates in enumerate(
        (Rates(), Rates(place=1e-3, scale=5e-3, rotation=1e-3, opacity=0.05, color=2e-3, noise=0.1))
    ):
        slopes = rng.normal(size=(12, 16))
        moved = training_twin.step(found, slopes, rng.normal(size=(12, 4, 3)), rates, 3, number, 1e-3)
        values |= {f"{number} {key}": value for key, value in moved.items()}
    check_snapshot(SNAPSHOTS / "step.txt", values, 1e-6, 1e-6)


def test_cameras_of_one_scene_go_to_gsplat_together() -> None:
    """Neighbours of one scene in a group, those that see none apart, and a group no larger than memory allows."""
    renderer = object.__new__(gsplat_backend.GsplatRenderer)
    few, many = {"means": np.zeros((3, 3))}, {"means": np.zeros((gsplat_backend._AT_ONCE // 2, 3))}
    renderer._fields = [few, many]
    rows = np.zeros(7, [("chunk_count", np.int32), ("first_chunk", np.int32)])
    rows["chunk_count"], rows["first_chunk"] = (1, 1, 0, 0, 1, 1, 1), (0, 0, 0, 1, 1, 1, 1)
    asked: Any = SimpleNamespace(cameras=rows, count=7, channels=("rgb",))
    found = [(part.start, part.stop, fields) for part, fields in renderer._groups(asked)]
    assert [(start, stop) for start, stop, _ in found] == [(0, 2), (2, 4), (4, 6), (6, 7)]
    assert [fields is few for _, _, fields in found] == [True, False, False, False]
    assert [fields is None for _, _, fields in found] == [False, True, False, False]
    asked.channels = ()
    assert renderer._groups(asked) == []


def test_cameras_are_rendered_together_as_far_as_memory_allows() -> None:
    renderer = SplatRenderer(splats(5, 0))
    stride = renderer._cloud.chunk_stride
    asked: Any = SimpleNamespace(stride=stride, count=2 * renderer._group + 1, channels=("rgb",), part=lambda some: some)
    whole = [(some.start, some.stop) for _, some in renderer._groups(asked)]
    assert whole == [(0, renderer._group), (renderer._group, 2 * renderer._group), (2 * renderer._group, asked.count)]
    asked.count, asked.stride = 3, 2 * stride * renderer._group
    assert [(some.start, some.stop) for _, some in renderer._groups(asked)] == [(0, 1), (1, 2), (2, 3)]
    asked.stride, asked.count = stride, renderer._group
    assert len(list(renderer._groups(asked, 2))) == 2 + renderer._group % 2
