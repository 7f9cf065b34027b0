"""Batches of environments: layers, dynamic instances, what changes and what must not; the form that a GPU runs."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core import frames, native_kernel
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.geometry import (
    CHANNELS,
    Box,
    Capsule,
    Cylinder,
    GeometryBatch,
    Mesh,
    Placement,
    RayTable,
    Shape,
    Sphere,
    cast,
    occluded,
)
from airworthy.geometry.cast import SEGMENTS, cast_kernel
from airworthy.geometry.distance import clearance
from airworthy.geometry.hierarchy import build_kernel
from airworthy.geometry.query_arguments import Repeated

MODULES: list[Any] = [sys.modules[f"airworthy.geometry.{name}"] for name in ("cast", "occlusion")]
FORWARD = (-0.5, 0.5, -0.5, 0.5)
ENVS, DYNAMIC_COUNT = 6, 5
ALL = tuple(CHANNELS)
U, V = np.meshgrid((np.arange(37) + 0.5) / 18.5 - 1, (np.arange(22) + 0.5) / 18.5 - 0.6)
TABLE = RayTable(np.stack([U, V, np.ones_like(U)], -1))
TETRAHEDRON = Mesh(
    np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32),
    np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]),
)
SHAPES: list[Shape] = [
    Box((0.5, 0.6, 0.7)),
    Sphere(0.6),
    Cylinder(0.4, 0.6),
    Capsule(0.3, 0.5),
    TETRAHEDRON,
    Box((50, 50, 0.1)),
]


def crowd(seed: int, count: int) -> Placement:
    rng = np.random.default_rng(seed)
    place = rng.uniform([2, -5, 0], [12, 5, 3], (count, 3))
    kind, turn, scale = rng.integers(0, 5, count), rng.normal(size=(count, 4)), rng.uniform(0.5, 1.5, count)
    return Placement.of(kind, place, turn, scale, group=np.arange(count) % 3)


LAYOUTS = [crowd(k, 8 + k) for k in range(3)]
TEAMS = [crowd(50 + k, DYNAMIC_COUNT) for k in range(ENVS)]
ENV_LAYOUT = np.array([0, 1, 2, 2, 1, 0])
POSITION = np.random.default_rng(0).normal(size=(ENVS, 3)) * 0.2 + [0, 0, 1.5]
ATTITUDE = np.tile(FORWARD, (ENVS, 1))


def batch(order: Any = None, **options: Any) -> GeometryBatch:
    order = np.arange(ENVS) if order is None else order
    return GeometryBatch(SHAPES, LAYOUTS, ENV_LAYOUT[order], [TEAMS[k] for k in order], **options)


def images(geometry: GeometryBatch, order: Any = None) -> dict[str, Any]:
    order = np.arange(geometry.env_count) if order is None else order
    return cast(geometry, TABLE, POSITION[order], ATTITUDE[order], channels=ALL)


def same(a: dict[str, Any], b: dict[str, Any], rows: Any = slice(None), others: Any = slice(None)) -> bool:
    return all(np.ascontiguousarray(a[n][rows]).tobytes() == np.ascontiguousarray(b[n][others]).tobytes() for n in a)


# ---- order, threads, forms -------------------------------------------------------------------------------------------


def test_permuted_environments_give_permuted_images_bit_for_bit() -> None:
    order = np.array([4, 2, 5, 0, 3, 1])
    assert same(images(batch()), images(batch(order), order), order)


def test_an_environment_alone_sees_what_it_sees_among_others() -> None:
    whole = images(batch())
    for k in range(ENVS):
        alone = GeometryBatch(SHAPES, [LAYOUTS[ENV_LAYOUT[k]]], [0], [TEAMS[k]])
        found = images_of_one(alone, k)
        for name in set(ALL) - {"instance"}:  # dynamic instances are numbered after the largest layout of the batch
            assert found[name].tobytes() == whole[name][k : k + 1].tobytes(), name


def images_of_one(geometry: GeometryBatch, k: int) -> dict[str, Any]:
    return cast(geometry, TABLE, POSITION[k : k + 1], ATTITUDE[k : k + 1], channels=ALL)


def test_threads_and_neighbouring_rays_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = images(batch())
    monkeypatch.setattr(native_kernel, "SPLIT_SECONDS", 0.0)
    for threads in (1, 2, 3):
        geometry = batch(threads=threads)
        for _ in range(4):
            assert same(images(geometry), expected)
    turned = RayTable(TABLE.directions[::-1, ::-1])
    mirrored = cast(batch(), turned, POSITION, ATTITUDE, channels=ALL)
    assert all(mirrored[n][:, ::-1, ::-1].tobytes() == expected[n].tobytes() for n in ALL)


class Singly(Repeated):
    """One task per ray, as on a GPU."""

    def __init__(self, kernel: Any, count: int, arguments: list[Any], device: str, threads: int | None):
        packets, flags = arguments[-5], arguments[-2]
        cameras = count // -(-packets // 16)
        super().__init__(kernel, packets if flags & SEGMENTS else cameras * packets * CPU_LANES, arguments, device, threads)


def test_the_gpu_form_gives_the_bytes_of_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ray after the other, compiled for the CPU: cameras, rays of their own origins, rolling scans, segments."""
    rng = np.random.default_rng(5)
    offsets = RayTable(TABLE.directions, 0.2 * rng.normal(size=TABLE.directions.shape))
    place, turn = 0.1 * rng.normal(size=(ENVS, 37, 3)) + [0, 0, 1], ATTITUDE[:, None] + 0.1 * rng.normal(size=(ENVS, 37, 4))
    start, end, env = rng.uniform(-2, 12, (500, 3)), rng.uniform(-2, 12, (500, 3)), rng.integers(0, ENVS, 500)
    group = rng.integers(0, 3, 500)

    def everything() -> list[dict[str, Any]]:
        geometry = batch()
        rolled = cast(geometry, TABLE, [], [], channels=ALL, column_position=place, column_attitude=turn)
        shifted = cast(geometry, offsets, POSITION, ATTITUDE, channels=ALL)
        seen = {"occluded": occluded(geometry, start, end, env), "through": occluded(geometry, start, end, env, through=group)}
        return [images(geometry), shifted, rolled, seen]

    lanes = everything()
    single = cast_kernel("#define SCALAR_PATH\n")
    for module in MODULES:
        monkeypatch.setattr(module, "cast_kernel", lambda: single)
        monkeypatch.setattr(module, "Repeated", Singly)
    for mine, theirs in zip(lanes, everything(), strict=True):
        assert same(mine, theirs)
    assert 0.1 < lanes[3]["occluded"].mean() < 0.9
    assert 0 < lanes[3]["through"].sum() < lanes[3]["occluded"].sum()


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
@pytest.mark.parametrize("kernel", [cast_kernel, build_kernel], ids=["cast", "build"])
def test_the_kernels_compile_for_cuda(kernel: Any, tmp_path: Path) -> None:
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(kernel().module, device=None, arch=90, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob("*.ptx")
    text = path.read_text(errors="replace")
    assert ".target sm_90" in text
    # Correctly rounded and not contracted: the bits of a CPU; no double arithmetic.
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)
    assert not re.search(r"^\s*(add|sub|mul|div|fma|cvt)\.\S*f64", text, re.MULTILINE)


# ---- dynamic instances ----------------------------------------------------------------------------------------------


def test_a_moved_dynamic_instance_shows_in_the_next_frame_and_only_in_its_environment() -> None:
    geometry = batch()
    before = images(geometry)
    place = np.stack([t.position for t in TEAMS])
    turn = np.stack([t.attitude for t in TEAMS])
    place[3, 2] = (3.0, 0.0, 1.5)
    geometry.set_dynamic_instances(place[3:4], turn[3:4], env_ids=[3])
    after = images(geometry)
    others = np.arange(ENVS) != 3
    assert same(before, after, others, others)
    number = geometry.dynamic_start + 2
    assert (after["instance"][3] == number).sum() > 50
    moved = [*TEAMS]
    moved[3] = Placement.of(TEAMS[3].shape, place[3], turn[3], TEAMS[3].scale)
    assert same(after, images(GeometryBatch(SHAPES, LAYOUTS, ENV_LAYOUT, moved)))


def test_all_dynamic_instances_at_once_and_back_again() -> None:
    geometry = batch()
    expected = images(geometry)
    place, turn = np.stack([t.position for t in TEAMS]), np.stack([t.attitude for t in TEAMS])
    geometry.set_dynamic_instances(place + 1.0, turn)
    assert not same(images(geometry), expected)
    geometry.set_dynamic_instances(place, turn)
    assert same(images(geometry), expected)


def test_dynamic_instances_that_are_switched_off_are_not_there() -> None:
    geometry = batch()
    place, turn = np.stack([t.position for t in TEAMS]), np.stack([t.attitude for t in TEAMS])
    expected = images(geometry)
    geometry.set_dynamic_instances(place, turn, active=np.zeros((ENVS, DYNAMIC_COUNT), bool))
    still = images(geometry)
    assert (still["instance"] < geometry.dynamic_start).all()
    assert same({n: still[n] for n in ALL}, images(GeometryBatch(SHAPES, LAYOUTS, ENV_LAYOUT)))
    geometry.set_dynamic_instances(place, turn, active=np.ones((ENVS, DYNAMIC_COUNT), bool))
    assert same(images(geometry), expected)


# ---- layouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3, 60])
def test_a_replaced_layout_is_as_if_it_had_always_been_there(count: int) -> None:
    """Also where it needs more room than the old one."""
    geometry, other = batch(), crowd(99, count)
    images(geometry)
    geometry.set_layout(1, other)
    fresh = GeometryBatch(SHAPES, [LAYOUTS[0], other, LAYOUTS[2]], ENV_LAYOUT, TEAMS)
    mine, theirs = images(geometry), images(fresh)
    met = {n: v for n, v in theirs.items() if n != "instance"}
    assert same(met, mine)


def test_a_layout_with_shadows_of_their_own_takes_the_place_of_one_without() -> None:
    """Its tree has three parts, for which the old one kept no room."""
    geometry, other = batch(), crowd(99, len(LAYOUTS[1]))
    kinds = replace(other, shadow=np.arange(len(other), dtype=np.int32) % 3)
    images(geometry)
    geometry.set_layout(1, kinds)
    theirs = images(GeometryBatch(SHAPES, [LAYOUTS[0], kinds, LAYOUTS[2]], ENV_LAYOUT, TEAMS))
    assert same({n: v for n, v in theirs.items() if n != "instance"}, images(geometry))


def test_instances_switched_off_and_environments_that_use_another_layout() -> None:
    geometry = batch()
    first = images(geometry)
    geometry.assign([0, 5], 2)
    expected = images(GeometryBatch(SHAPES, LAYOUTS, [2, 1, 2, 2, 1, 2], TEAMS))
    assert same(images(geometry), expected)
    geometry.assign([0, 5], [0, 0])
    assert same(images(geometry), first)
    active = np.arange(len(LAYOUTS[0])) % 2 == 0
    geometry.set_layout_active(0, active)
    hits = images(geometry)["instance"][[0, 5]]
    assert set(np.unique(hits[(hits >= 0) & (hits < geometry.dynamic_start)])) <= set(np.flatnonzero(active))
    geometry.set_layout_active(0, np.ones(len(LAYOUTS[0]), bool))
    assert same(images(geometry), first)


def test_a_layout_of_thousands_is_what_its_parts_are() -> None:
    rng = np.random.default_rng(2)
    many = Placement.of(
        rng.integers(0, 5, 3000), rng.uniform([2, -40, -10], [90, 40, 20], (3000, 3)), rng.normal(size=(3000, 4))
    )
    whole = images_of_one(GeometryBatch(SHAPES, [many]), 0)
    nearest = np.full(whole["range"].shape, np.inf, np.float32)
    for k in range(3):
        part = Placement.of(many.shape[k::3], many.position[k::3], many.attitude[k::3])
        nearest = np.minimum(nearest, images_of_one(GeometryBatch(SHAPES, [part]), 0)["range"])
    np.testing.assert_array_equal(whole["range"], nearest)


def test_memory_is_unique_triangles_plus_instances() -> None:
    few, many = (GeometryBatch(SHAPES, [LAYOUTS[0]], np.zeros(n, int), [TEAMS[0]] * n).memory() for n in (1, 1000))
    assert many["mesh_triangles"] == few["mesh_triangles"] == 4 * 48
    assert many["layouts"] == few["layouts"]
    assert many["movers"] == 1000 * few["movers"]
    assert few["movers"] == DYNAMIC_COUNT * (2 * 32 + 96 + 44)


# ---- mistakes --------------------------------------------------------------------------------------------------------


def test_mistakes_get_one_sentence() -> None:
    geometry = batch()
    turn = np.stack([t.attitude for t in TEAMS])
    mistakes = {
        "no layouts": lambda: GeometryBatch(SHAPES, []),
        "names shape 9": lambda: GeometryBatch(SHAPES, [Placement.of([9])]),
        "expected 0 to 2": lambda: batch().assign([0], 3),
        "float64, shape (1,); expected ints": lambda: batch().assign([0], [1.0]),
        "int64, shape (1, 2); expected ints": lambda: GeometryBatch(SHAPES, LAYOUTS, [[0, 1]]),
        "expected 0 to 5": lambda: batch().set_dynamic_instances(np.zeros((1, DYNAMIC_COUNT, 3)), turn[:1], env_ids=[6]),
        "give all the same number": lambda: GeometryBatch(SHAPES, LAYOUTS, None, [crowd(0, 2), crowd(0, 3), crowd(0, 2)]),
        "(6, 5, 3)": lambda: geometry.set_dynamic_instances(np.zeros((ENVS, 2, 3)), turn),
        "not finite": lambda: geometry.set_dynamic_instances(np.full((ENVS, DYNAMIC_COUNT, 3), np.nan), turn),
        "zero or not finite": lambda: geometry.set_dynamic_instances(np.zeros((ENVS, DYNAMIC_COUNT, 3)), 0 * turn),
        "no layout 3": lambda: geometry.set_layout(3, LAYOUTS[0]),
        "one per instance": lambda: geometry.set_layout_active(0, np.ones(3, bool)),
        "index -1": lambda: Placement.of([-1]),
        "one row per instance": lambda: Placement.of([0, 0], scale=np.ones(3)),
        "one factor > 0": lambda: Placement.of([0], scale=0.0),
    }
    for message, mistake in mistakes.items():
        with pytest.raises(AirworthyError) as caught:
            mistake()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_revision_rises_with_every_change() -> None:
    """Whoever keeps what it found around a point sees that it must look again."""
    place = Placement.of(shape=[0], position=[[1.0, 0.0, 0.0]])
    batch = GeometryBatch([Box((0.1, 0.1, 0.1))], [place, place], [0, 1], [place, place])
    revisions = [batch.revision]
    changes = (
        lambda: batch.set_dynamic_instances(np.zeros((2, 1, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (2, 1, 1))),
        lambda: batch.set_layout(0, place),
        lambda: batch.set_layout_active(1, [False]),
        lambda: batch.assign([0], [1]),
        lambda: batch.replace_dynamic_instances([1], [place]),
    )
    for change in changes:
        change()
        revisions.append(batch.revision)
    assert (np.diff(revisions) > 0).all()
    batch.arguments()
    assert batch.revision == revisions[-1]


def test_many_layouts_are_built_by_one_launch_with_the_bits_of_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    import airworthy.geometry.batch as module

    rng = np.random.default_rng(5)
    shapes = (Box((0.3, 0.2, 0.1)), Sphere(0.4))
    layouts = [
        Placement.of(
            rng.integers(0, 2, count), rng.uniform(-5.0, 5.0, (count, 3)), frames.normalize(rng.normal(size=(count, 4)))
        )
        for count in rng.integers(0, 30, 40)
    ]
    launched = []
    real = module.run_build
    monkeypatch.setattr(module, "run_build", lambda *given: (launched.append(given[1]), real(*given)))
    batch = GeometryBatch(shapes, layouts)
    points = rng.uniform(-6.0, 6.0, (40 * 25, 3))
    env = np.repeat(np.arange(40), 25)
    found = clearance(batch, points, env)
    assert launched == [40]
    for k in range(40):
        alone = clearance(GeometryBatch(shapes, [layouts[k]]), points[env == k], 0)
        for name in ("distance", "point", "normal", "instance"):
            np.testing.assert_array_equal(getattr(found, name)[env == k], getattr(alone, name))


def test_a_layout_that_gets_shadows_gets_room_for_its_three_trees() -> None:
    """Things that cast none and shadows alone part the top level; eyes meet the same as when only what they see is there."""
    plain = Placement.of(0, position=[[3.0 * k, 0.0, 0.0] for k in range(5)])
    shadow = np.array([0, 1, 2, 1, 2], np.int32)
    batch = GeometryBatch([Sphere(1.0)], [plain, plain])
    table = RayTable(np.array([[[1.0, 0.0, 0.0]]]))

    def seen(env: int, x: float) -> int:
        return int(cast(batch, table, [[x, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], [env], ("instance",))["instance"][0, 0, 0])

    assert [seen(0, x) for x in (-3.0, 1.5, 4.5, 7.5, 10.5)] == [0, 1, 2, 3, 4]
    batch.set_layout(0, replace(plain, shadow=shadow))
    assert [seen(0, x) for x in (-3.0, 1.5, 4.5, 7.5, 10.5)] == [0, 1, 3, 3, -1]
    assert [seen(1, x) for x in (-3.0, 1.5, 4.5, 7.5, 10.5)] == [0, 1, 2, 3, 4]
    batch.set_layout(0, replace(plain, shadow=np.full(5, 2, np.int32)))
    assert seen(0, -3.0) == -1
    batch.set_layout(0, plain)
    assert seen(0, 4.5) == 2
