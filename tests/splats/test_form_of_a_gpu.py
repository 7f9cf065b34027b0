"""The form of the splat kernels that a GPU runs: on a CPU, compiled for CUDA without a GPU, and compared where a GPU is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.splats import DynamicSplats, Lens, SplatRenderer, Window
from airworthy.splats.kernels import arrange_kernel, project_kernel, raster_kernel
from airworthy.splats.single import Single

CAPABILITY = 90


def _cameras(cloud: Any) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(9)
    scenes = [cloud(rng, n, degree) for n, degree in ((1200, 0), (600, 2))]
    attitude = rng.normal(size=(6, 4))
    return scenes, {
        "width": 75,
        "height": 50,
        "intrinsics": (60.0, 70.0, 37.0, 25.0),
        "position": rng.uniform(-2, 2, (6, 3)),
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "scene": [0, 1, 1, 0, 0, 1],
        "background": (0.1, 0.5, 0.9),
    }


@pytest.mark.parametrize("mode", ["expected", "median"])
def test_one_by_one_gives_the_bytes_of_the_lanes(mode: str, cloud: Any) -> None:
    """Other lists (a radix sort over all tiles), no packing, no blocks of pixels; the same arithmetic in the same order."""
    scenes, cameras = _cameras(cloud)
    lanes = SplatRenderer(scenes).render(**cameras, depth_mode=mode, antialiased=mode == "median")
    single = SplatRenderer(scenes)
    single._engine = Single(single._cloud, "cpu", "#define SCALAR_PATH\n")
    other = single.render(**cameras, depth_mode=mode, antialiased=mode == "median")
    assert lanes["alpha"].max() > 0.5
    for name, image in lanes.items():
        assert image.tobytes() == other[name].tobytes(), name


def _more_options() -> dict[str, dict[str, Any]]:
    """What else a call may ask for, for the cameras above."""
    rng = np.random.default_rng(1)
    attitude = rng.normal(size=(6, 5, 4))
    dynamic = DynamicSplats([0, 1, 1, 0, 1], rng.uniform(-2, 2, (6, 5, 3)), attitude, rng.uniform(size=(6, 5)) < 0.8)
    limit = np.where(rng.uniform(size=(6, 50, 75)) < 0.3, np.inf, rng.uniform(0.0, 4.0, (6, 50, 75)))
    return {
        "opencv": {"lens": Lens("opencv", (-0.2, 0.03, 0.002, -0.003, 0.01, 0.1, 0.02, 0.001))},
        "fisheye": {"lens": Lens("fisheye", (-0.01, 0.002)), "intrinsics": (20.0, 21.0, 37.0, 25.0)},
        "dynamic_instances": {"dynamic_instances": dynamic, "scene": [0, 1, -1, 0, -1, 1]},
        "limit": {"limit": limit},
        "limit without depth": {"limit": limit, "channels": ("rgb", "alpha")},
        "reduced": {"reduced": (0.4, 0.7)},
        "all": {
            "lens": Lens("fisheye", (0.01,)), "intrinsics": (20.0, 21.0, 70.0, 45.0), "dynamic_instances": dynamic,
            "limit": limit, "reduced": (0.4, 1.5), "window": Window(150, 100, (40, 20)), "antialiased": True,
            "depth_mode": "median",
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_more_options()))
def test_every_option_gives_the_bytes_of_the_lanes(name: str, cloud: Any) -> None:
    scenes, cameras = _cameras(cloud)
    asked = {**cameras, **_more_options()[name]}
    lanes = SplatRenderer(scenes).render(**asked)
    single = SplatRenderer(scenes)
    single._engine = Single(single._cloud, "cpu", "#define SCALAR_PATH\n")
    other = single.render(**asked)
    assert lanes["alpha"].max() > 0.5
    for channel, image in lanes.items():
        assert image.tobytes() == other[channel].tobytes(), channel


def test_images_may_stay_on_the_device(cloud: Any) -> None:
    scenes, cameras = _cameras(cloud)
    renderer = SplatRenderer(scenes)
    plain = renderer.render(**cameras)
    for name, image in renderer.render_on_device(**cameras).items():
        assert image.tobytes() == plain[name].tobytes()
    renderer._engine = Single(renderer._cloud, "cpu", "#define SCALAR_PATH\n")
    renderer._group = 4
    for name, image in renderer.render_on_device(**cameras).items():
        assert image.numpy().tobytes() == plain[name].tobytes()
    with pytest.raises(AirworthyError, match="on the host"):
        renderer.render_on_device(**cameras, distances=True)


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
@pytest.mark.parametrize("kernel", [project_kernel, arrange_kernel, raster_kernel], ids=lambda k: k.__name__)
def test_kernels_compile_for_cuda_without_a_gpu(kernel: Any, tmp_path: Path) -> None:
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(kernel().module, device=None, arch=CAPABILITY, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob(f"*.sm{CAPABILITY}.ptx")
    text = path.read_text(errors="replace")
    assert f".target sm_{CAPABILITY}" in text
    assert not any(word in text for word in ("div.approx", "div.full", "sqrt.approx", ".ftz"))
    assert "__local_depot" not in text  # nothing of a thread lies outside its registers


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(_more_options()))
def test_a_gpu_takes_every_option(name: str, cloud: Any) -> None:
    scenes, cameras = _cameras(cloud)
    asked = {**cameras, **_more_options()[name]}
    cpu, gpu = (SplatRenderer(scenes, device=device).render(**asked) for device in ("cpu", "cuda:0"))
    for channel, image in cpu.items():
        np.testing.assert_allclose(gpu[channel], image, atol=1e-5)


@pytest.mark.gpu
def test_a_gpu_gives_the_images_of_the_cpu(cloud: Any) -> None:
    scenes, cameras = _cameras(cloud)
    cpu = SplatRenderer(scenes).render(**cameras)
    gpu = SplatRenderer(scenes, device="cuda:0")
    first, second = gpu.render(**cameras), gpu.render(**cameras)
    for name, image in cpu.items():
        assert first[name].tobytes() == second[name].tobytes()
        np.testing.assert_allclose(first[name], image, atol=1e-5)  # by design the same bits; promised per device type
