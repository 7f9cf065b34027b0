"""The form of the kernels of vehicles with joints that a GPU runs: compiled without one, and compared where a GPU is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.test_cuda import GPU, compiled
from tests.dynamics.articulated_cases import small
from tests.simulation.test_articulated_scene import rooms, thrown

from airworthy.core.arrays import Array
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.dynamics.articulated.native import articulated_kernel
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.simulation import Contact, Ground, Imu, Simulator, SimulatorConfig
from airworthy.simulation.jointed import scene
from airworthy.simulation.jointed.family import jointed_kernel
from airworthy.vehicles import vehicle

NEEDS_NVRTC = pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")


def simulator(device: str = "cpu", level: str = "tracking", **changes: Any) -> Simulator:
    """A vehicle with noise and the ground below: a small one with a sensor on its arm, or where a law steers, Morphy."""
    craft, link = (small(), "arm") if level == "rotor_speed" else (vehicle("morphy"), "")
    made = SimulatorConfig(
        dynamics="articulated", physics_rate=500.0, integrator="midpoint", level=level, ground=Ground(), imu=Imu(link=link),
        **changes,
    )  # fmt: skip
    one = Simulator(craft, made, 20, seed=5, device=device)
    rng = np.random.default_rng(1)
    one.reset(
        position=np.stack([np.zeros(20), np.zeros(20), np.linspace(0.05, 1.0, 20)], axis=1), velocity=rng.normal(size=(20, 3)),
        attitude=rng.normal(size=(20, 4)), joint=rng.uniform(-0.1, 0.1, (20, craft.joint_count)),  # Morphy's stops are at 0.1
    )  # fmt: skip
    return one


def kernels() -> dict[str, Callable[[], Any]]:
    one = simulator(level="rotor_speed")
    return {
        "bare": lambda: articulated_kernel(tree_of(small()).structure),
        "flight": lambda: jointed_kernel(one.shape),
        "scene": lambda: scene.scene_kernel(one.shape),
    }


@NEEDS_NVRTC
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare", "flight", "scene"])
def test_a_kernel_compiles_for_cuda(name: str, tmp_path: Path) -> None:
    text = compiled(kernels()[name](), tmp_path, use_ptx=True).read_text(errors="replace")
    assert re.search(r"\.visible \.entry airworthy_\w*_cuda_kernel_forward", text)
    assert "div.rn.f32" in text
    # Nothing contracted, nothing flushed to zero, no arithmetic in double precision: the same bits as on a CPU.
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)
    assert not re.search(r"^\s*(add|sub|mul|div|fma|cvt)\.\S*f64", text, re.MULTILINE)


def test_contact_with_scenes_one_by_one_gives_the_bits_of_the_lanes() -> None:
    """The C++ of a GPU's form, run on a CPU: as many tasks as environments, one lane each."""
    one = thrown(Contact("respond"), np.arange(20))
    shape, spheres = one.shape, len(one.shape.carriers)
    rng = np.random.default_rng(0)
    surfaces = np.zeros((7 * spheres, 32), np.float32)
    surfaces[::7] = rng.uniform(-0.01, 0.01, (spheres, 32))
    for k in range(spheres):
        normal = rng.normal(size=(3, 32))
        surfaces[7 * k + 1 : 7 * k + 4] = normal / np.linalg.norm(normal, axis=0)
    wp = quiet_warp()
    lanes, source = scene.scene_kernel(shape), "#define SCALAR_PATH\n" + scene.scene_text(shape)
    single = native_kernel("jointed_scene_single", source, scene._ARGUMENTS)
    for mode in (scene._PLACES, scene._MEET):
        found: list[tuple[bytes, bytes]] = []
        for kernel, tasks in ((lanes, 1), (single, 32)):
            memory = {name: np.array(one._arrays._host[name]) for name in scene._BATCH}
            rows = surfaces.copy()
            sent = [wp.array(memory[name].ravel(), device="cpu", copy=False) for name in scene._BATCH]
            sent.append(wp.array(rows.ravel(), device="cpu", copy=False))
            numbers = [32, 1e-3, int(one.effects), 2, mode, -1, 0.5, 0.3, 0.6]
            quiet_launch(kernel, tasks, [*sent, *numbers, 0], "cpu")
            found.append((memory["state"][:, :20].tobytes(), rows[:, :20].tobytes()))
        assert found[0] == found[1]
        assert found[0][1] != surfaces[:, :20].tobytes()


# ---- with a GPU ------------------------------------------------------------------------------------------------------


def fields(one: Simulator) -> dict[str, Array]:
    return {name: np.array(one.field(name), float) for name in one.layout.fields}


@pytest.mark.gpu
@pytest.mark.parametrize("level", ["rotor_speed", "tracking"])
def test_steps_on_a_gpu_equal_the_cpu(level: str) -> None:
    """To 1e-5; by design to the bit, but that is promised per device type only."""
    results = []
    for device in ("cpu", GPU):
        one = simulator(device, level)
        one.advance(3)
        results.append(fields(one))
    for name, value in results[0].items():
        scale = max(1.0, float(np.abs(value).max(initial=0.0)))
        assert np.abs(results[1][name] - value).max(initial=0.0) <= 1e-5 * scale, name


@pytest.mark.gpu
def test_a_gpu_repeats_itself_to_the_byte() -> None:
    runs = []
    for _ in range(2):
        one = simulator(GPU)
        for _ in range(10):
            one.step()
        runs.append(fields(one))
    for name, value in runs[0].items():
        assert runs[1][name].tobytes() == value.tobytes(), name


@pytest.mark.gpu
def test_scenes_are_met_on_a_gpu_as_on_a_cpu() -> None:
    found = []
    for device in ("cpu", GPU):
        one = thrown(Contact("respond"), np.arange(8), rooms(4, device), height=0.2, device=device)
        one.advance(150, [0.0])
        found.append((one.contacts.count.copy(), np.array(one.position)))
    assert found[0][0].sum() > 0
    assert np.array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-4)
