"""The form of the splats' derivatives that a GPU runs: on a CPU, compiled for CUDA without a GPU, compared where a GPU is.

A thread of a GPU does what a lane of a CPU's vector does, from one text. So what is tried on a CPU is the order of the lists,
of the records and of the sums; of the lanes' own operations (in `native/group.h`) only a GPU tells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.splats.gradient_cases import FIELDS

from airworthy.core.native_kernel import quiet_warp
from airworthy.splats import SplatRenderer
from airworthy.splats.cloud import DynamicSplats
from airworthy.splats.kernels import project_back_kernel, raster_back_kernel
from airworthy.splats.lens import Lens
from airworthy.splats.single import Single

CAPABILITY = 90
SIZE = (75, 50)


def _case(cloud: Any, kind: str) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Scenes, cameras among them, and a loss of all channels."""
    rng = np.random.default_rng(9)
    scenes = [cloud(rng, n, degree) for n, degree in ((1200, 0), (600, 3))]
    attitude = rng.normal(size=(6, 4))
    cameras: dict[str, Any] = {
        "width": SIZE[0],
        "height": SIZE[1],
        "intrinsics": (60.0, 70.0, 37.0, 25.0),
        "position": rng.uniform(-2, 2, (6, 3)),
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "scene": [0, 1, 1, 0, 0, 1],
        "background": (0.1, 0.5, 0.9),
        "antialiased": kind == "antialiased",
    }
    if kind == "fisheye":
        cameras["lens"] = Lens("fisheye", (0.02, -0.005))
    if kind == "dynamic_instances":
        where, turn = rng.uniform(-2, 2, (6, 3, 3)), np.tile([0.0, 0.0, 0.6, 0.8], (6, 3, 1))
        cameras["dynamic_instances"] = DynamicSplats(np.array([1, 0, 1]), where, turn, rng.uniform(size=(6, 3)) < 0.7)
        cameras["limit"] = rng.uniform(1.0, 6.0, (6, SIZE[1], SIZE[0]))
    shape = (6, SIZE[1], SIZE[0])
    weight = {"rgb": rng.normal(size=(*shape, 3)), "depth": 0.1 * rng.normal(size=shape), "alpha": rng.normal(size=shape)}
    return scenes, cameras, {k: v for k, v in weight.items() if kind != "plain" or k == "rgb"}


def _arrays(renderer: SplatRenderer, cameras: dict[str, Any], weight: dict[str, Any]) -> dict[str, Any]:
    found, poses = renderer.gradients(lambda images, some: {k: v[some] for k, v in weight.items()}, **cameras)
    names = (*FIELDS, "image_shift", "image_count")
    arrays = {f"{name} {k}": getattr(one, name) for k, one in enumerate(found) for name in names}
    return {**arrays, "pose position": poses.position, "pose rotation": poses.rotation}


@pytest.mark.parametrize("kind", ["plain", "antialiased", "fisheye", "dynamic_instances"])
def test_one_list_gives_the_derivatives_of_the_bands(kind: str, cloud: Any) -> None:
    scenes, cameras, weight = _case(cloud, kind)
    lanes = _arrays(SplatRenderer(scenes), cameras, weight)
    single = SplatRenderer(scenes)
    single._engine = Single(single._cloud, "cpu", "#define SCALAR_PATH\n")
    for group in (99, 4):
        single._group = group
        other = _arrays(single, cameras, weight)
        assert np.abs(lanes["position 0"]).max() > 0.0
        for name, value in lanes.items():
            if "image_count" in name:  # bands also count what meets a tile's bounds, but no pixel of it
                assert (value >= other[name]).all()
                assert other[name].any()
            else:
                assert np.array_equal(value, other[name]), name  # the same bits, but for the sign of zero


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
@pytest.mark.parametrize("kernel", [raster_back_kernel, project_back_kernel], ids=lambda k: k.__name__)
def test_kernels_compile_for_cuda_without_a_gpu(kernel: Any, tmp_path: Path) -> None:
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(kernel().module, device=None, arch=CAPABILITY, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob(f"*.sm{CAPABILITY}.ptx")
    text = path.read_text(errors="replace")
    assert f".target sm_{CAPABILITY}" in text
    assert not any(word in text for word in ("div.approx", "div.full", "sqrt.approx", ".ftz"))
    # Lanes speak to each other within half a warp; nothing is added by whoever comes first.
    assert "shfl.sync.bfly" in text
    assert "vote.sync.ballot" in text
    assert "atom." not in text
    assert "red.global" not in text


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["plain", "antialiased", "fisheye", "dynamic_instances"])
def test_a_gpu_gives_the_derivatives_of_the_cpu(kind: str, cloud: Any) -> None:
    scenes, cameras, weight = _case(cloud, kind)
    cpu = _arrays(SplatRenderer(scenes), cameras, weight)
    gpu = SplatRenderer(scenes, device="cuda:0")
    first, second = _arrays(gpu, cameras, weight), _arrays(gpu, cameras, weight)
    for name, value in cpu.items():
        if "image_count" in name:
            continue
        assert first[name].tobytes() == second[name].tobytes()
        # By design the same bits but for the poses' sums; promised per device type.
        np.testing.assert_allclose(first[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max(), err_msg=name)
