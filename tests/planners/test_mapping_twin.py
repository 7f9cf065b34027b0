"""The compiled update equals the scalar one: rays, log-odds, forgetting, inflation, distances; in the form of a GPU too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.planners.mapping_cases import Array, assert_equals_twin, mission

from airworthy.core.arrays import ArrayF32
from airworthy.core.frames import normalize
from airworthy.core.native_kernel import quiet_warp
from airworthy.optics.projections import Pinhole
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping import LocalMaps, read_pixels
from airworthy.planners.mapping.local import update_kernel
from airworthy.planners.mapping.maps import questions_kernel
from airworthy.planners.mapping.twin import MapTwin, ray_end

CAMERA = Pinhole(24, 18, 14.5, 14.5, 12.1, 9.2, integer_pixels=True)
"""The published field of view with few pixels: the twin is slow."""
TABLES = {
    "ego": MapSettings(field=True),
    "pgo": MapSettings(margin=6, ground=-1.0, border=2, skip=3, ray_min=0.5, ray_max=2.0, field=True, field_margin=0.5),
    "short": MapSettings(margin=2, ray_max=0.8, reach=(0.6, 0.7, 0.5), inflation=0.21, depth_max=2.0, field=True),
    "uneven": MapSettings(margin=4, ray_max=1.5, hit=0.8, miss=0.45, most=0.95, border=1, skip=2),
    "floor": MapSettings(margin=2, ground=-0.43, ray_max=0.8, inflation=0.299, field=True, floor=True),
}
"""The published tables; rays beyond the reach and wide inflation; unequal evidence; a floor that is known."""


def images(rng: np.random.Generator, settings: MapSettings, count: int) -> ArrayF32:
    """Rough surfaces with everything that a depth image can hold."""
    image = read_pixels(CAMERA, settings)
    shape = (count, image.height, image.width)
    depth = rng.uniform(0.25, 0.9 * settings.ray_max, (count, 1, 1)) + 0.02 * rng.normal(size=shape)
    for value in (0.0, np.inf, np.nan, -1.0, 0.1, 50.0):
        depth[rng.random(shape) < 0.02] = value
    return depth.astype(np.float32)


def poses(rng: np.random.Generator, at: Array) -> tuple[Array, Array]:
    """Cameras that look anywhere, up to 0.8 m on."""
    return at + rng.uniform(-0.8, 0.8, at.shape) * (1.0, 1.0, 0.4), normalize(rng.normal(size=(len(at), 4)))


def fly_both(settings: MapSettings, task: Mission, start: Array, seed: int, moves: int) -> None:
    """ArrayF32s from places on a random walk, six from each so that something becomes occupied."""
    rng = np.random.default_rng(seed)
    maps = LocalMaps(settings, task, CAMERA)
    twins = [MapTwin(settings, task, CAMERA, flight) for flight in range(len(start))]
    at, both = start, np.arange(len(start))
    for _ in range(moves):
        at, turn = poses(rng, at)
        depth = images(rng, settings, len(start))
        for _ in range(6):
            maps.update(both, depth, at, turn)
            for flight, twin in enumerate(twins):
                twin.update(depth[flight], at[flight], turn[flight])
        for flight, twin in enumerate(twins):
            assert_equals_twin(maps, twin, flight)
    assert any(twin.inflated[..., :-1].any() for twin in twins)


@pytest.mark.parametrize("table", TABLES)
def test_an_update_equals_the_scalar_reference(table: str) -> None:
    task = mission([[-4.0, -5.0, 0.0], [-3.0, -30.0, 0.0]], [[4.0, 5.05, 3.0], [-0.5, -24.4, 2.0]])
    fly_both(TABLES[table], task, np.array([[-1.0, 2.0, 1.5], [-1.5, -27.0, 1.0]]), seed=len(table), moves=2)


def test_windows_wrap_along_every_axis_and_forget_what_leaves() -> None:
    settings = MapSettings(margin=1, ray_max=0.6, reach=(1.0, 1.0, 1.0), field=True)
    task = mission([[0.0, 0.0, 0.0]], [[4.0, 3.5, 12.0]])
    maps, twin = LocalMaps(settings, task, CAMERA), MapTwin(settings, task, CAMERA)
    assert (maps.boxes.side[0] < maps.boxes.cells[0]).all()
    rng = np.random.default_rng(3)
    for t in np.linspace(0.0, 1.0, 12):
        at, turn = poses(rng, np.array([[0.9 + 2.0 * t, 2.6 - 1.8 * t, 0.6 + 10.5 * t]]))
        depth = images(rng, settings, 1)
        for _ in range(5):
            maps.update([0], depth, at, turn)
            twin.update(depth[0], at[0], turn[0])
        assert_equals_twin(maps, twin, 0)


@pytest.mark.parametrize("floor", [False, True])
def test_a_cloud_equals_the_scalar_reference(floor: bool) -> None:
    settings = MapSettings(reach=(1.5, 1.2, 1.0), inflation=0.15, field=True, floor=floor)
    task = mission([[-4.0, -3.0, 0.0]], [[4.0, 3.0, 3.0]])
    maps, twin = LocalMaps(settings, task, CAMERA), MapTwin(settings, task, CAMERA)
    rng = np.random.default_rng(4)
    for at in ([0.0, 0.0, 1.5], [1.0, 0.5, 1.0], [3.9, -2.9, 0.1]):
        points = np.array(at) + rng.uniform(-2.0, 2.0, (40, 3))
        points[::9] = np.nan
        maps.update_cloud([0], points[None], [at])
        twin.update_cloud(points, at)
        assert_equals_twin(maps, twin, 0)


@pytest.mark.parametrize("table", ["ego", "pgo", "floor"])
def test_the_form_of_a_gpu_gives_the_same_bits(table: str) -> None:
    """One lane, a launch per stage, many threads per flight: all on the CPU."""
    task = mission([[-4.0, -5.0, 0.0]] * 3, [[4.0, 5.0, 3.0]] * 3)
    usual, other = (LocalMaps(TABLES[table], task, CAMERA, threads=3) for _ in range(2))
    other._updater.kernel, other._updater._cpu = update_kernel("#define SCALAR_PATH\n"), False
    rng, at = np.random.default_rng(5), np.array([[0.0, 0.0, 1.0], [3.0, 3.0, 2.0], [-1.0, 0.0, 0.5]])
    for _ in range(4):
        at, turn = poses(rng, at)
        depth = images(rng, TABLES[table], 3)
        for maps in (usual, other):
            maps.update([0, 1, 2], depth, at, turn)
    for name in ("_odds", "_inflated", "_squared"):
        np.testing.assert_array_equal(getattr(usual, name).numpy(), getattr(other, name).numpy())


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
def test_the_kernels_compile_for_cuda(tmp_path: Path) -> None:
    wp: Any = quiet_warp()
    for kernel in (update_kernel(), questions_kernel()):
        folder = tmp_path / kernel.key
        with wp.ScopedLogLevel(wp.LOG_ERROR):
            wp.compile_aot_module(kernel.module, device=None, arch=90, module_dir=folder, use_ptx=True)
        (path,) = folder.glob("*.ptx")
        text = path.read_text(errors="replace")
        assert ".target sm_90" in text
        assert "fma.rn.f64" not in text.partition(".visible .entry")[2].replace("div.rn", "")


def test_a_depth_ends_a_ray_up_to_the_greatest_and_from_the_least_on() -> None:
    settings = MapSettings(depth_min=0.4, depth_max=2.0, ray_max=3.0)
    box, ahead = (np.full(3, -50.0), np.full(3, 50.0)), np.eye(3)
    for depth, hit in ((2.0, True), (np.nextafter(2.0, 3.0), False), (0.0, False), (0.4, True)):
        found = ray_end(settings, box, (0.0, 0.0, depth), np.zeros(3), ahead)
        assert found is not None
        assert found[1] == hit
        assert found[0] == pytest.approx([0.0, 0.0, depth if hit else 3.0])
    assert ray_end(settings, box, (0.0, 0.0, float(np.nextafter(0.4, 0.0))), np.zeros(3), ahead) is None
    # Exactly as long as a ray may be it still hits; a nose longer it ends there without.
    assert ray_end(MapSettings(depth_max=9.0, ray_max=3.0), box, (0.0, 0.0, 3.0), np.zeros(3), ahead)[1]  # type: ignore[index]
    assert not ray_end(MapSettings(depth_max=9.0, ray_max=3.0), box, (0.0, 0.0, 3.0001), np.zeros(3), ahead)[1]  # type: ignore[index]
